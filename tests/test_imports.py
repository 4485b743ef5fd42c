"""Imports run one way through the rooms, and no two modules need each other."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PIPELINE = Path(__file__).resolve().parent.parent / "pipeline"
# From the ground up. A room may read from itself and from these.
READS = {
    "base": set(),
    "anatomy": {"base"},
    "book": {"base", "anatomy"},
    "hub": {"base", "book"},
    "confirm": {"base", "hub", "anatomy"},
    "render": {"base", "book"},
    "press": {"base", "anatomy", "book", "hub", "confirm", "render"},
    "release": {"base", "book", "hub", "press", "render"},
    "cli": {"base", "anatomy", "book", "hub", "press", "release"},
    "ask": {"base", "book", "cli"},
    "__main__": {"base", "book", "hub", "press", "release", "cli", "ask"},
}


def modules() -> dict[str, Path]:
    found = {".".join(path.relative_to(PIPELINE.parent).with_suffix("").parts): path for path in PIPELINE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the press that a file names, also inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names |= {module if module in known else node.module for module in inner.values()}
    return names & known.keys()


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_room_is_named():
    assert {room(module) for module in modules()} - {""} == READS.keys()


def test_rooms_are_read_one_way():
    list(TopologicalSorter(READS).static_order())  # raises where two rooms read from each other
    known = modules()
    wrong = [
        f"{module} reads {other}"
        for module, path in known.items()
        for other in imported(path, known)
        if room(other) and room(other) not in {room(module), *READS.get(room(module), ())}
    ]
    assert not wrong


def test_no_module_needs_one_that_needs_it():
    known = modules()
    TopologicalSorter({module: imported(path, known) - {module} for module, path in known.items()}).prepare()
