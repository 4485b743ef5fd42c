"""Which numbers and operators of a file of Python no test holds: each is changed in turn, in a copy of the repository, and the tests are asked.

    python -m tests.golden.code_mutants pipeline/hub/gguf.py tests/hub/test_gguf_config.py        # every place
    python -m tests.golden.code_mutants pipeline/hub/gguf.py tests/hub/test_gguf_config.py 20     # so many, drawn at random
    python -m tests.golden.code_mutants pipeline/anatomy anatomy 60 autumn                         # of all files of a folder, another draw

`anatomy` is golden anatomy (varied.py, then anatomy.py), which asks each reader in seconds; tests that are named after it (anatomy,tests/…) are asked where it feels nothing.

A whole number becomes the next one, a comparison loses or gains its end, sums become differences, `and` becomes `or`, and a `not` is left out.
A mutant is killed by a test that fails or takes ten times as long. Prints the survivors and the share that was killed; ends with 1 below 95 %.
equal_code_mutants.csv lists the places whose change makes no difference to anything that is read, each with its reason: they are not asked.
mutants.py does the same to the formulas.
"""

from __future__ import annotations

import ast
import csv
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tests.golden import anatomy, varied

ROOT = Path(__file__).resolve().parents[2]
COPIED, NOT_NEEDED = ("pipeline", "tests"), ("build",)
LEAST = 0.95
EQUAL = Path(__file__).with_name("equal_code_mutants.csv")
ANATOMY = "anatomy"
Function = tuple[str, int]
TRACED = 8  # one of so many variations is asked what it runs, which takes three times as long; who runs a place only in others is asked last
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
    for path in ROOT.iterdir():
        if path.name not in (*COPIED, *NOT_NEEDED) and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)


def passes(folder: Path, tests: str, most: float | None = None) -> bool:
    """Whether all tests do; one that goes on for too long does not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split(",")]
    return _run(folder, command, most) is not None


class Digests:
    """Golden anatomy in the place of tests: what the readers make of varied configs, as varied.csv has it, those of the types that run a place
    first; and where that is kept, what they make of one model of each kind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hub, named = folder, folder / "hub", anatomy.read().keys()
        (self.hub / "model").mkdir(parents=True)
        shutil.copy(ROOT / "tables" / "hub" / "snapshot.json", self.hub)
        chosen: dict[str, str] = {}
        for path in sorted((ROOT / "tables" / "hub" / "model").glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                config = record.get("config") or {}
                kind = repr([config.get(name) for name in ("model_type", "_class_name", "architectures")])
                if record["model_id"] in named:
                    chosen.setdefault(kind, line)
        (self.hub / "model" / "a.jsonl").write_text("\n".join(chosen.values()), encoding="utf-8")
        began = time.monotonic()
        self.truth = self._said()
        self.types, self.is_as_the_file_has_it = varied_types()
        self.most = 10 * (time.monotonic() - began) + 60

    def _said(self, most: float | None = None) -> bytes | None:
        return _run(self.folder, [sys.executable, "-m", "tests.golden.anatomy", "--of", str(self.hub)], most)

    def _are_as_the_file_has_them(self, names: Sequence[str], most: float) -> bool:
        command = [sys.executable, "-m", "tests.golden.varied", "--check", *names]
        return _run(self.folder, command, most) is not None

    def are_kept(self, file: Path, one: Mutant) -> bool:
        runs = runs_in(file, one)
        first = sorted((type_ for type_ in self.types if runs & type_.functions), key=lambda type_: type_.seconds)
        names, most = [type_.name for type_ in first], 10 * sum(type_.seconds for type_ in first) + 60
        return (
            (not names or self._are_as_the_file_has_them(names, most))
            and self._said(self.most) == self.truth
            and self._are_as_the_file_has_them(
                [type_.name for type_ in self.types if type_.name not in names], self.most
            )
        )


class Varied(NamedTuple):
    """A type of varied.py: the functions that its configs run, each with its file and line, and how long they take."""

    name: str
    functions: frozenset[Function]
    seconds: float


def varied_types() -> tuple[list[Varied], bool]:
    """All, and whether what is read of them is as the file has it."""
    held, found, are_kept = varied.read(), [], True
    for name, kind in varied.all_kinds().items():
        run: set[Function] = set()

        def noted(frame: FrameType, _event: str, _held: object, run: set[Function] = run) -> None:
            run.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

        sys.settrace(noted)
        for _words, config in itertools.islice(varied.asked(kind), 0, None, TRACED):
            varied.said(config)
        sys.settrace(None)
        began = time.monotonic()
        are_kept &= varied.digest_of(kind) == held.get(name)
        found.append(Varied(name, frozenset(run), time.monotonic() - began))
    return found, are_kept


def runs_in(file: Path, one: Mutant) -> set[Function]:
    """The function that a place is in, or all of its file: what is outside of them is run before."""
    spans = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            body = node.body if isinstance(node, ast.Lambda) else node.body[0]
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            spans.append((body.lineno, node.end_lineno, first))
    around = [span for span in spans if span[0] <= one.line <= span[1]]
    return {(str(file), first) for _begin, _end, first in ([max(around)] if around else spans)}


def _run(folder: Path, command: list[str], most: float | None) -> bytes | None:
    """What a command prints; None where it fails or goes on for too long."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=most, check=False)
    except subprocess.TimeoutExpired:
        return None
    return run.stdout if run.returncode == 0 else None


def equal() -> set[tuple[str, str, str]]:
    """The file, its line's text and what stands there."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        return {(row["file"], row["line_text"], row["place"]) for row in csv.DictReader(file)}


def drawn(path: str, sample: str, seed: str) -> list[tuple[Path, Mutant, str]]:
    """Places of a file, or of all files of a folder."""
    files = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
    asked, known = [], equal()
    for file in files:
        source, name = file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix()
        lines = source.splitlines()
        for one in mutants(source):
            was = source.encode()[one.start : one.stop].decode().strip()
            if (name, lines[one.line - 1].strip(), was) not in known and (text := mutated(source, one)) is not None:
                asked.append((file, one, text))
    return sorted(random.Random(path + seed).sample(asked, min(int(sample), len(asked)))) if sample else asked


def main(path: str, tests: str, sample: str = "", seed: str = "") -> int:
    chosen, survivors = drawn(path, sample, seed), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        copied(folder)
        began = time.monotonic()
        digests = Digests(folder) if tests.startswith(ANATOMY) else None
        others = tests.removeprefix(ANATOMY).strip(",")
        if (digests and not (digests.truth and digests.is_as_the_file_has_it)) or (
            others and not passes(folder, others)
        ):
            print(f"{tests} fails without any change", file=sys.stderr)
            return 2
        most = 10 * (time.monotonic() - began) + 60
        for file, one, text in chosen:
            place, source = folder / file.relative_to(ROOT), file.read_text(encoding="utf-8")
            place.write_text(text, encoding="utf-8")
            if (digests is None or digests.are_kept(file, one)) and (not others or passes(folder, others, most)):
                survivors += 1
                was = source.encode()[one.start : one.stop].decode().strip()
                line = source.splitlines()[one.line - 1].strip()
                told = f"{file.relative_to(ROOT)}:{one.line}: {was} as {one.text.strip() or 'nothing'} in: {line}"
                print(told, flush=True)
            place.write_text(source, encoding="utf-8")
    killed = 1 - survivors / len(chosen)
    print(f"{path}: {len(chosen)} places, {100 * killed:.0f} % killed by {tests}")
    return 1 if killed < LEAST else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
