"""What is shipped is named with its licence, and what is installed is held by hashes."""

from __future__ import annotations

import csv
import json
import re
from importlib.metadata import files

import pytest

from tests.supply import licences

ROOT = licences.ROOT
LOCKS = ("requirements.lock", "cluster.lock", "supply.lock", "tests/old-duckdb.lock")
# what may be built with, and what may lie in a site that anybody may copy
PERMISSIVE = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0", "W3C",
}  # fmt: skip
NOT_SHIPPED = {"MPL-2.0"}


def report() -> list[dict[str, str]]:
    with licences.REPORT.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_report_is_of_what_is_locked():
    """Of every part by name and version; `make licences` writes it anew."""
    assert report() == list(licences.rows())
    assert {(row["part"], row["version"]) for row in report()} >= set(licences.locked())


def test_every_licence_allows_what_is_done():
    for row in report():
        words = set(re.findall(r"[\w.+-]+", row["licence"])) - {"AND", "OR"}
        allowed = PERMISSIVE | (NOT_SHIPPED if row["is_shipped"] == "false" else set())
        assert words and words <= allowed, row
        assert row["source"], row


def test_what_the_theme_brings_along_is_named():
    """By the source maps of its own scripts and styles: a new release that bundles more is seen."""
    found = set()
    for file in files("mkdocs-material"):
        if file.name.endswith(".map"):
            sources = json.loads(file.read_text(encoding="utf-8"))["sources"]
            found |= {match[1] for name in sources if (match := re.search(r"node_modules/((?:@[^/]+/)?[^/]+)", name))}
    assert found == {row["part"] for row in report() if row["part_of"] == "mkdocs-material"}


def test_a_package_that_says_nothing_is_asked_about(monkeypatch):
    monkeypatch.setattr(licences, "metadata", lambda name: _Said({"License": "see the file"}))
    with pytest.raises(licences.NoLicence, match="name its licence in"):
        licences.licence("anything")


class _Said(dict):
    def get_all(self, name):
        return self.get(name)


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_version_has_its_hashes_and_no_place(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    pinned = [line for line in re.split(r"\n(?=\S)", text.replace("\\\n", " ")) if line and not line.startswith("#")]
    assert pinned
    for line in pinned:
        assert re.match(r"[\w.-]+==\S+", line) and "--hash=sha256:" in line, line[:80]
    assert not re.search(r"https?://|file:|--index", text)


def test_shared_libraries_are_of_one_version():
    """An auditor sees what is installed, and a cluster's worker reads what a build writes."""
    versions = dict(licences.locked())
    for name in ("cluster.lock", "supply.lock"):
        for part, version in licences.locked(ROOT / name):
            assert versions.get(part, version) == version, (name, part)
