"""Writes licences.csv (`make licences`): every part that builds or tests, and what of others is shipped, with its licence.

Versions are those of requirements.lock, licences what a package says of itself, in words of SPDX. What says nothing, or says it in other
words, is a row of said.csv with the place where it was read; so is what a package brings along from others (parts.csv). Sources of data are no
rows here: the table `source` has the licence of each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK, REPORT = ROOT / "requirements.lock", ROOT / "licences.csv"
HERE = Path(__file__).parent
COLUMNS = ("part", "version", "part_of", "licence", "is_shipped", "source")
SHIPPED = (
    "mkdocs-material",
)  # its pages, styles and scripts are in the site; all else only builds, tests, or is installed by its own name
_PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)", re.M)
# classifiers that name one licence
_CLASSIFIERS = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


class NoLicence(LookupError):
    """A package that says nothing that can be understood: it wants a row in said.csv."""


def rows() -> Iterator[dict[str, str]]:
    """The report, by name."""
    said = {row["part"]: row for row in _read("said.csv")}
    # of what only other systems install, what was found there
    said |= {row["part"]: row for row in _kept() if row["part"] not in said and not _is_installed(row["part"])}
    found = [
        {
            "part": name,
            "version": version,
            "part_of": "",
            "licence": said[name]["licence"] if name in said else licence(name),
            "is_shipped": str(name in SHIPPED).lower(),
            "source": said[name]["source"] if name in said else "its own metadata",
        }
        for name, version in locked()
    ]
    yield from sorted([*found, *_read("parts.csv")], key=lambda row: (row["part_of"], row["part"]))


def locked(lock: Path = LOCK) -> list[tuple[str, str]]:
    return [(found["name"], found["version"]) for found in _PINNED.finditer(lock.read_text(encoding="utf-8"))]


def _kept() -> list[dict[str, str]]:
    if not REPORT.exists():
        return []
    with REPORT.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if (row["part"], row["version"]) in locked()]


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata(name))
    except PackageNotFoundError:
        return False


def licence(name: str) -> str:
    """What an installed package says of itself. Raises NoLicence."""
    if not _is_installed(name):
        raise NoLicence(f"{name} is not installed here: say in tests/supply/said.csv what its licence is")
    about = metadata(name)
    short = (about.get("License") or "").strip()
    for text in (about.get("License-Expression") or "", short if len(short) < 40 else ""):
        if _SPDX.fullmatch(text) and text not in ("UNKNOWN", "BSD"):
            return text
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or [] if c.startswith("License")]
    known = {_CLASSIFIERS[c] for c in classifiers if c in _CLASSIFIERS}
    if len(known) != 1:
        raise NoLicence(
            f"{name} says {short[:40] or classifiers or 'nothing'}: name its licence in tests/supply/said.csv"
        )
    return known.pop()


def _read(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    found = list(rows())
    with REPORT.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(found)


if __name__ == "__main__":
    main()
