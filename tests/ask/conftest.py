"""The small almanac of tests/few.py, and the command as people type it."""

from __future__ import annotations

import copy
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipeline.ask import command
from pipeline.ask.almanac import Almanac
from pipeline.base.caches import cache_folder
from pipeline.base.readonly import at_hand
from pipeline.press import blank, build
from tests import few
from tests.once import FOLDER, blank_folder
from tests.planned import Planned, PlannedFits


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """build/tables as far as the command reads it: no footprints, which it does without."""
    # a command opens it once; here hundreds of questions do
    with at_hand(few.written() / build.DATABASE):
        yield few.written()


@pytest.fixture(scope="session", autouse=True)
def planned_once(folder: Path) -> Iterator[None]:
    """What was asked of the small almanacs is not planned again: tests ask the same model in words and as JSON, and look up the same names;
    planning takes most of their time. Nothing is kept of a file that lies elsewhere, nor of a problem."""
    places, answers = os.environ[FOLDER], {}
    planned = functools.cache(lambda place: PlannedFits(Path(place)))

    def remembered(asked: Callable[..., list[dict[str, Any]]]) -> Callable[..., list[dict[str, Any]]]:
        @functools.wraps(asked)
        def ask(almanac: Almanac, *given: Any, **named: Any) -> list[dict[str, Any]]:
            # a question about scenarios is told from others by them, and not by the table that they are written to
            if not almanac.place.startswith(places) or "'asked'" in str(given[0]):
                return asked(almanac, *given, **named)
            key = almanac.place, asked.__name__, repr(given), repr(sorted(named.items()))
            if key not in answers and asked is Almanac.ask.__wrapped__ and all(map(Planned.takes, given[0])):
                answers[key] = planned(almanac.place).ask(
                    *given, **named
                )  # (tests/ask/test_planned.py holds it to what is asked)
            elif key not in answers:
                answers[key] = asked(almanac, *given, **named)
            return copy.deepcopy(answers[key])

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for method in (Almanac.rows, Almanac.ask):
            patch.setattr(Almanac, method.__name__, remembered(method))
        yield


@pytest.fixture
def alone(tmp_path, monkeypatch, folder):
    """A machine without cards, with an empty cache and a home of its own, whose almanac is the small one."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    kept = blank.kept(blank_folder())  # as on a machine that has read a config before
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_folder().mkdir(parents=True)
    (cache_folder() / kept.name).hardlink_to(kept)
    monkeypatch.setenv("VRAM_ALMANAC", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    return bin_folder


@pytest.fixture
def ask(alone, capsys):
    """Runs the command. Returns its status, what it printed, and what it said of problems."""

    def run(*arguments: object):
        try:
            status = command.main([str(a) for a in arguments])
        except SystemExit as ended:  # argparse
            status = ended.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def ask_json(ask):
    def run(*arguments: object):
        status, out, _err = ask(*arguments, "--json")
        told = json.loads(out)
        assert told["status"] == status
        return told

    return run


@pytest.fixture
def tool(alone):
    """Puts a tool of a maker on the machine: a script that prints a text and ends with a status."""

    def put(name: str, text: str, status: int = 0, unless: str = "") -> None:
        path = alone / name
        other = (
            f"""case "$*" in *{unless}*) echo 'Field "{unless}" is not a valid field to query.'; exit 2;; esac\n"""
            if unless
            else ""
        )
        path.write_text(f"#!/bin/sh\n{other}cat <<'TEXT'\n{text}\nTEXT\nexit {status}\n", encoding="utf-8")
        path.chmod(0o755)

    return put


@pytest.fixture
def macro(folder):
    """The published macros, asked as SQL: rows as dicts."""
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:

        def ask(query, **values):
            found = connection.execute(query, values)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        yield ask
