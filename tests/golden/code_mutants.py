"""Which numbers and operators of a file of Python no test holds: each is changed in turn, in a copy of the repository, and the tests are asked.

    python -m tests.golden.code_mutants pipeline/hub/gguf.py tests/hub/test_gguf_config.py        # every place
    python -m tests.golden.code_mutants pipeline/hub/gguf.py tests/hub/test_gguf_config.py 20     # so many, drawn at random

A whole number becomes the next one, a comparison loses or gains its end, sums become differences, `and` becomes `or`, and a `not` is left out.
A mutant is killed by a test that fails or takes ten times as long. Prints the survivors and the share that was killed; ends with 1 below 95 %.
mutants.py does the same to the formulas.
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPIED, LINKED = (
    ("pipeline", "tests"),
    ("tables", "site", "mkdocs.yml", "pyproject.toml", "requirements.lock", "README.md"),
)
LEAST = 0.95
OTHERS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Add: "-", ast.Sub: "+", ast.Mult: "+",
    ast.FloorDiv: "*", ast.Div: "*", ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.And: "or", ast.Or: "and",
}  # fmt: skip


class Mutant(NamedTuple):
    """A place of a text, what stands there, and what it becomes."""

    start: int
    stop: int
    text: str
    line: int


def mutants(source: str) -> list[Mutant]:
    """Outside of annotations, which run nothing."""
    tree, starts = ast.parse(source), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    content = source.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def between(left: ast.AST, right: ast.AST, kind: ast.AST) -> Iterator[Mutant]:
        begin, end = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
        other = OTHERS.get(type(kind))
        if other:
            brackets = [bytes(c for c in content[begin:end] if c in b"()\n\t ").decode()]
            before, after = brackets[0].count(")"), brackets[0].count("(")
            yield Mutant(begin, end, f"{')' * before} {other} {'(' * after}", left.end_lineno)

    idle = {
        id(part)
        for node in ast.walk(tree)
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if note is not None
        for part in ast.walk(note)
    }
    found: list[Mutant] = []
    for node in ast.walk(tree):
        if id(node) in idle:
            continue
        if isinstance(node, ast.Constant) and type(node.value) is int:
            start, stop = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            found.append(Mutant(start, stop, str(node.value + 1), node.lineno))
        elif isinstance(node, ast.Compare):
            for left, kind, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                found += between(left, right, kind)
        elif isinstance(node, ast.BinOp):
            found += between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                found += between(left, right, node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.append(
                Mutant(
                    at(node.lineno, node.col_offset), at(node.operand.lineno, node.operand.col_offset), "", node.lineno
                )
            )
    return sorted(found)


def mutated(source: str, mutant: Mutant) -> str | None:
    """None where the text would be no Python."""
    content = source.encode()
    text = (content[: mutant.start] + mutant.text.encode() + content[mutant.stop :]).decode()
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return text


def copied(folder: Path) -> None:
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)


def passes(folder: Path, tests: str, most: float | None = None) -> bool:
    """Whether all tests do; one that goes on for too long does not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split(",")]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=most, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main(path: str, tests: str, sample: str = "") -> int:
    source = (ROOT / path).read_text(encoding="utf-8")
    asked = [(one, text) for one in mutants(source) if (text := mutated(source, one)) is not None]
    chosen = sorted(random.Random(path).sample(asked, min(int(sample), len(asked)))) if sample else asked
    lines, survivors = source.splitlines(), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        copied(folder)
        began = time.monotonic()
        if not passes(folder, tests):
            print(f"{tests} fails without any change", file=sys.stderr)
            return 2
        most = 10 * (time.monotonic() - began) + 10
        for one, text in chosen:
            (folder / path).write_text(text, encoding="utf-8")
            if passes(folder, tests, most):
                survivors += 1
                was = source.encode()[one.start : one.stop].decode().strip()
                print(
                    f"{path}:{one.line}: {was} as {one.text.strip() or 'nothing'} in: {lines[one.line - 1].strip()}",
                    flush=True,
                )
    killed = 1 - survivors / len(chosen)
    print(f"{path}: {len(chosen)} of {len(asked)} places, {100 * killed:.0f} % killed by {tests}")
    return 1 if killed < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
