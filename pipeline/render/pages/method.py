"""What the method pages show of the formulas: every file of the folder that has the page's name, its opening note, the constants that it reads."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from pipeline.book.scenario import written_out


def files(component: str, folder: Path) -> list[dict]:
    """Name, opening note and text of a component's SQL files: all of its folder, or the one file of that name."""
    place = folder / component
    found = [place] if place.is_file() else sorted(place.rglob("*.sql"))
    return [
        {"name": f.relative_to(folder).as_posix(), **opening(written_out(f.read_text(encoding="utf-8")))} for f in found
    ]


def opening(text: str) -> dict:
    """A file's first comment, as blocks of prose and of formula (indented), and the text itself."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        line = line.removeprefix("--").removeprefix(" ")
        kind = "formula" if line.startswith("  ") else "prose"
        if not line.strip():
            blocks.append(("gap", []))
        elif kind == "formula" and blocks and blocks[-1][0] == "prose":
            blocks[-1][1].append(line.strip())  # an indented line right below prose carries it on
        elif blocks and blocks[-1][0] == kind and (kind == "formula" or not re.match(r"[A-Z][\w ]*:", line)):
            blocks[-1][1].append(line)
        else:
            blocks.append((kind, [line]))
    join = {"formula": "\n", "prose": " "}
    return {"text": text, "note": [(kind, textwrap.dedent(join[kind].join(lines))) for kind, lines in blocks if lines]}


def constants(component: str, folder: Path, rows: list[dict]) -> list[dict]:
    """The constants that the component's files read."""
    text = "\n".join(file["text"] for file in files(component, folder))
    named = set(re.findall(r"\bconstants\.(\w+)", text))
    return [c for c in rows if c["constant_id"] in named]
