"""Shared by the suite: the book as the formulas see it, with the models that tests name, or with every model of the bundled snapshot."""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import settings

from pipeline.ask.almanac import FOR_MANY_ROWS
from pipeline.book.scenario import PLAIN, TYPES
from pipeline.hub.snapshot import Snapshot
from pipeline.press.anatomise import anatomise
from tests import books
from tests.named import named_snapshot
from tests.once import FOLDER, bundled_snapshot, first_alone, once
from tests.planned import Planned

# a machine that is busy is no fault of ours
settings.register_profile("any machine", deadline=None, max_examples=50)
settings.register_profile("check-full", deadline=None, max_examples=100)

Asked = dict[str, object]
CACHE = pytest.StashKey[tempfile.TemporaryDirectory]()
_FEW = 1_000  # scenarios of a question that needs no optimizer; tens of thousands do not end without it
# Files that take longest: begun first, or one worker is still at them when the others have nothing left (with --no-loadscope-reorder).
LONGEST = (
    "ask/test_answers.py",
    "ask/test_wrong_questions.py",
    "browser/test_front.py",
    "press/test_flat.py",
    "formulas/test_golden_asked.py",
    "test_readme.py",
    "browser/test_model_page.py",
    "browser/test_pages.py",
    "browser/test_formulas.py",
    "ask/test_program.py",
    "browser/test_tasks.py",
    "browser/test_matrix.py",
    "press/test_compatibility.py",
    "render/test_render_paths.py",
    "ask/test_sounds.py",
    "ask/test_together.py",
    "browser/test_backwards.py",
    "browser/test_tools.py",
)
# A question of few rows takes longest to plan, as in the command, and each further thread prepares itself for rows that do not come: a tenth of the
# CPU. Who asks of many resets the first (`RESET disabled_optimizers`); workers take all cores by themselves.
FEW_ROWS = f"SET disabled_optimizers = '{','.join(FOR_MANY_ROWS)}'; SET threads = 1"
NO_BROWSER = "no browser, and none could be installed"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: tests wait for browsers, servers, timers and each other's fixtures; what each worker reads and starts costs ten
    seconds and more."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is marked `some(count)` so many cases, evenly spaced, are of `make test`, and all of `make check-full`."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("full"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cases.values():
        (count,) = each[0].get_closest_marker("some").args
        kept = {i * len(each) // count for i in range(count)}
        for i, item in enumerate(each):
            if i not in kept:
                item.add_marker("full")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    path = item.nodeid.partition("::")[0].removeprefix("tests/")
    return LONGEST.index(path) if path in LONGEST else len(LONGEST)


def loopback_alone(look_up: Callable[..., object]) -> Callable[..., object]:
    """`socket.getaddrinfo` of a machine without a network: no test asks anybody, and none waits for an answer."""

    def look(host: str | bytes | None, *more: object, **named: object) -> object:
        name = host.decode() if isinstance(host, bytes) else host
        if name in (None, "", "localhost") or name.startswith("127.") or name == "::1":
            return look_up(host, *more, **named)
        raise socket.gaierror(socket.EAI_NONAME, f"tests ask loopback alone, not {name}")

    return look


def pytest_configure(config: pytest.Config) -> None:
    """What this machine keeps for its user is left alone: a folder for caches that all workers of a run share."""
    socket.getaddrinfo = loopback_alone(socket.getaddrinfo)
    settings.load_profile("check-full" if config.option.markexpr == "full" else "any machine")
    if hasattr(config, "workerinput"):
        os.environ.pop("LD_PRELOAD", None)  # is of this process: a browser brings its own allocator
    else:
        config.stash[CACHE] = tempfile.TemporaryDirectory(prefix="almanac-cache-")
        os.environ["XDG_CACHE_HOME"] = config.stash[CACHE].name
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="once-", dir=config.stash[CACHE].name)
        if sys.dont_write_bytecode:  # not beside the sources, but all that this run starts would compile them by itself
            sys.dont_write_bytecode, sys.pycache_prefix = False, f"{config.stash[CACHE].name}/bytecode"
            os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """One worker reads the tests, and the others take what it compiled: two thirds of the time of each."""
    if not hasattr(session.config, "workerinput"):
        return (yield)
    with first_alone("collected"):
        # what is read here stays: nothing of it is looked through again for what nobody needs
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run without a browser says so, and how many tests that is: nobody takes it for a whole one."""
    if CACHE in config.stash:
        config.stash[CACHE].cleanup()
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    count = sum(NO_BROWSER in str(report.longrepr) for report in skipped)
    if count:
        reporter.write_line(
            f"NOT A WHOLE RUN: {count} browser tests were left out: {NO_BROWSER}. Install Chromium (apt-get install chromium, or "
            "python -m playwright install chromium), or name one: CHROMIUM=/path/to/chrome.",
            red=True,
            bold=True,
        )


@pytest.fixture(scope="session")
def config_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config.json that somebody downloaded: that of Qwen3-0.6B."""
    config = next(record.config for record in bundled_snapshot().records if record.model_id == "Qwen/Qwen3-0.6B")
    path = tmp_path_factory.mktemp("config") / "config.json"
    path.write_text(json.dumps(dict(config)), encoding="utf-8")
    return path


def _anatomies(name: str, snapshot: Callable[[], Snapshot]) -> dict[str, pl.DataFrame]:
    """By table: read once for all tests, and by one worker for all."""

    def read(folder: Path) -> None:
        for table, frame in anatomise(snapshot()).items():
            frame.write_ipc(folder / f"{table}.arrow")

    return {path.stem: pl.read_ipc(path) for path in sorted(once(name, read).iterdir())}


@pytest.fixture(scope="session")
def named() -> dict[str, pl.DataFrame]:
    """The anatomy of the models that tests name, by table: a quarter of the snapshot, and of the time."""
    return _anatomies("named", named_snapshot)


@pytest.fixture(scope="session")
def bundled() -> dict[str, pl.DataFrame]:
    """The anatomy of every model of the bundled snapshot, by table: of check-full alone, since reading it takes 45 seconds of a core."""
    return _anatomies("bundled", bundled_snapshot)


@pytest.fixture(scope="session", params=["named", pytest.param("bundled", marks=pytest.mark.full)])
def anatomies(request: pytest.FixtureRequest) -> dict[str, pl.DataFrame]:
    """What holds for every model: in `make test` for those that tests name, in check-full for all of the snapshot."""
    return request.getfixturevalue(request.param)


def _opened(filled: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with books.copied(filled) as connection:
        connection.execute(FEW_ROWS)
        yield connection


@pytest.fixture(scope="session")
def book(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with facts, formulas and the anatomy of the models that tests name, but without the default lookup: scenarios are asked for one
    by one."""
    yield from _opened(once("book", lambda folder: books.fill(folder, request.getfixturevalue("named"))))


@pytest.fixture(scope="session")
def whole_book(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same with every model of the snapshot, for what is asked of all (of check-full alone)."""
    yield from _opened(once("whole-book", lambda folder: books.fill(folder, request.getfixturevalue("bundled"))))


@pytest.fixture(scope="session", params=["book", pytest.param("whole_book", marks=pytest.mark.full)])
def any_book(request: pytest.FixtureRequest) -> duckdb.DuckDBPyConnection:
    """What holds for every model of a book: in `make test` for those that tests name, in check-full for all of the snapshot."""
    return request.getfixturevalue(request.param)


def unoptimised(
    connection: duckdb.DuckDBPyConnection, asked: str, values: Mapping[str, object]
) -> tuple[list[str], list[tuple]]:
    """Columns and rows of a question about a few scenarios, for which DuckDB's optimizer takes longer than it saves: up to half of the time."""
    connection.execute("PRAGMA disable_optimizer")
    try:
        return _rows(connection.execute(asked, values))
    finally:
        connection.execute("PRAGMA enable_optimizer")


def _rows(result: duckdb.DuckDBPyConnection) -> tuple[list[str], list[tuple]]:
    return [column[0] for column in result.description], result.fetchall()


def answering(book: duckdb.DuckDBPyConnection) -> Callable[[list[Asked]], list[Asked]]:
    """Answers a batch of scenarios in one query, in their order. All of a batch must name the same columns."""

    def ask(scenarios: list[Asked]) -> list[Asked]:
        named = tuple(scenarios[0])
        assert all(set(scenario) == set(named) for scenario in scenarios)
        by_scenario: dict[tuple[object, ...], Asked] = {}
        # scenarios of one phase are planned in a fraction of the time (tests/press/test_flat.py holds that they are answered alike)
        for phase in sorted({scenario.get("phase_id") or "inference" for scenario in scenarios}):
            rows = [scenario for scenario in scenarios if (scenario.get("phase_id") or "inference") == phase]
            book.register("batch_rows", pl.DataFrame(rows, schema_overrides=TYPES, strict=False).to_arrow())
            book.execute("CREATE OR REPLACE TEMP TABLE batch AS FROM no_scenario")
            book.execute("INSERT INTO batch BY NAME FROM batch_rows")
            asked = f"FROM footprints_in('batch', $phase, is_plain := {'true' if PLAIN.issuperset(named) else 'false'})"
            columns, answered = (
                unoptimised(book, asked, {"phase": phase})
                if len(rows) <= _FEW
                else _rows(book.execute(asked, {"phase": phase}))
            )
            answers = [dict(zip(columns, row, strict=True)) for row in answered]
            by_scenario |= {tuple(row[name] for name in named): row for row in answers}
        return [by_scenario[tuple(scenario[name] for name in named)] for scenario in scenarios]

    return ask


@pytest.fixture(scope="session")
def footprints(book: duckdb.DuckDBPyConnection) -> Callable[[list[Asked]], list[Asked]]:
    return answering(book)


@pytest.fixture(scope="session")
def footprint_of(book: duckdb.DuckDBPyConnection) -> Callable[..., Asked]:
    """footprint_of(model_id, context_tokens=…, …) as a dict of columns: the statement that the macro is, planned once for all that ask alike
    (tests/formulas/test_footprint_asked.py holds it to the macro), and the macro where a table could not hold what is said."""
    planned = Planned(book)

    def ask(model_id: str, **scenario: object) -> Asked:
        said = {"model_id": model_id, **scenario}
        columns, rows = planned.ask(said) if Planned.takes(said) else macro_of(book, said)
        assert len(rows) == 1, f"{len(rows)} rows for one scenario"
        return dict(zip(columns, rows[0], strict=True))

    return ask


def macro_of(connection: duckdb.DuckDBPyConnection, said: Asked) -> tuple[list[str], list[tuple]]:
    """Columns and rows of the macro itself."""
    named = "".join(f", {name} := ${name}" for name in said if name != "model_id")
    return unoptimised(connection, f"FROM footprint_of($model_id{named})", said)
