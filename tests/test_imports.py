"""Imports run one way: schema ← hub, anatomy, facts ← build ← publish, render ← __main__."""

from __future__ import annotations

import ast
from pathlib import Path

PIPELINE = Path(__file__).resolve().parent.parent / "pipeline"
# What each room may read from; a room may always read itself.
ALLOWED = {
    "failures": {"hub"},
    "schema_columns": {"failures"},
    "schema": {"schema_columns", "anatomy"},
    "progress": set(),
    "anatomy": {"schema", "hub", "failures"},
    "hub": {"schema"},
    "facts": {"schema"},
    "sources": {"schema", "facts", "hub"},
    "scenarios": {"schema"},
    "quarantine": {"schema", "hub", "anatomy"},
    "anatomise": {"schema", "facts", "hub", "anatomy", "progress", "quarantine"},
    "compatibility": {"schema"},
    "accuracy": {"scenarios"},
    "lookup": {"scenarios", "schema", "progress"},
    "build": {"failures", "schema", "facts", "hub", "anatomise", "compatibility", "accuracy", "lookup", "progress"},
    "own": {"failures", "anatomise", "anatomy", "build", "facts", "hub", "lookup", "schema"},
    "readonly": {"failures"},
    "checks": {"schema", "facts", "progress", "readonly"},
    "digest": set(),
    "changes": {"digest"},
    "manifest": {"schema", "hub", "compatibility"},
    "output": {"failures", "manifest", "schema"},
    "render": {"schema", "facts", "progress", "readonly", "scenarios"},
    "hosting": {"render"},
    "serve": set(),
    "publish": {"build", "changes", "checks", "manifest", "output", "render", "hub", "progress"},
    "brought": {"failures", "anatomise", "build", "facts", "hub", "progress", "scenarios", "schema"},
    "console": {
        "failures",
        "brought",
        "accuracy",
        "anatomise",
        "build",
        "checks",
        "facts",
        "hosting",
        "manifest",
        "publish",
        "hub",
        "progress",
    },
    "__main__": {
        "failures",
        "anatomy",
        "build",
        "changes",
        "console",
        "output",
        "own",
        "publish",
        "serve",
        "sources",
        "facts",
        "hub",
    },
}


def room(path: Path) -> str:
    return path.relative_to(PIPELINE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("pipeline.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline"):
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {a.name for a in node.names}
    return names


def test_imports_run_one_way():
    wrong = []
    for path in sorted(PIPELINE.rglob("*.py")):
        if path.name == "__init__.py" and path.parent == PIPELINE:
            continue
        here = room(path)
        wrong += [f"{path.relative_to(PIPELINE)} reads {name}" for name in imported(path) - {here} - ALLOWED[here]]
    assert not wrong
