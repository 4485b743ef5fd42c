"""What a new snapshot of the Hub changes, told before it takes the place of the last: how many models each grade wins and loses, which
known models would be known no more, and which verdicts flip in the scenarios that pages open with.

A grade says how far a model's anatomy is known (the column anatomy_grade of the table model); a model without one is not in the tables.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import duckdb
import polars as pl

from pipeline.base.failures import interruptible
from pipeline.base.progress import Progress, quiet, step
from pipeline.book.facts import read_facts, read_measured
from pipeline.book.scenario import scenario_grid
from pipeline.book.schema import ENUMS
from pipeline.hub.crawl import Brought
from pipeline.hub.snapshot import Snapshot
from pipeline.press import formulas
from pipeline.press.anatomise import anatomise

UNKNOWN, NOT_KNOWN = "unknown", "not known"  # a grade; in place of a verdict
_WEEKLY = ("downloads_30d", "likes", "facts_as_of")  # columns of model that change without the model
_NO_ANATOMY = ("rejected", "model")
_SHOWN = 3
Frames = Mapping[str, pl.DataFrame]
Verdicts = dict[tuple[str, str, str], str | None]  # by model, scenario and card


def brought(before: Snapshot, now: Snapshot, progress: Progress = quiet) -> Brought:
    """Raises FactError where the book cannot be read."""
    if before.records == now.records:
        return Brought(["no fact of any model has changed"])
    with step(progress, "what it brings"):
        frames = anatomise(before), anatomise(now)
        were, are = map(_grades, frames)
        held = {record.model_id for record in now.records}
        lost = {
            model_id: _why_lost(model_id in held, model_id in are)
            for model_id, grade in were.items()
            if grade != UNKNOWN and are.get(model_id, UNKNOWN) == UNKNOWN
        }
        changed = _changed(*frames, {key for key in were.keys() & are.keys() if UNKNOWN not in (were[key], are[key])})
        verdicts = [_verdicts(each, changed) for each in frames] if changed else [{}, {}]
    flipped = _flipped(*verdicts)
    return Brought([*_told_of_grades(were, are), *_told_of_verdicts(flipped)], lost, flipped)


def _why_lost(is_held: bool, is_read: bool) -> str:
    if is_read:
        return "nothing would be known of their shape any more"
    return "their facts contradict each other" if is_held else "the crawl leaves them out"


def _grades(frames: Frames) -> dict[str, str]:
    return dict(frames["model"].select("model_id", "anatomy_grade").rows())


def _changed(before: Frames, now: Frames, models: set[str]) -> list[str]:
    """Those of the models whose rows are others."""
    old, new = _digests(before), _digests(now)
    return sorted(model_id for model_id in models if old.get(model_id) != new.get(model_id))


def _digests(frames: Frames) -> dict[str, str]:
    digests: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    model = frames["model"].drop([name for name in _WEEKLY if name in frames["model"].columns])
    for name, frame in [("model", model), *((name, f) for name, f in frames.items() if name not in _NO_ANATOMY)]:
        for row in frame.select("model_id", pl.exclude("model_id")).sort(pl.all()).rows():
            digests[row[0]].update(repr((name, *row[1:])).encode())
    return {model_id: digest.hexdigest() for model_id, digest in digests.items()}


def _verdicts(frames: Frames, models: list[str]) -> Verdicts:
    facts = read_facts()
    held = {name: frame.filter(pl.col("model_id").is_in(models)) for name, frame in frames.items()}
    grid = scenario_grid(facts["scenario_set"].filter(purpose="opening")).drop("least_parameter_count")
    with duckdb.connect() as connection, interruptible(connection):
        formulas.load(connection, facts, {**held, "measured": read_measured()})
        formulas.run_sql(connection)
        connection.register("grid", grid.to_arrow())
        connection.execute(
            """CREATE TEMP TABLE opened AS
            SELECT shape.model_id, grid.* REPLACE (least(grid.context_tokens, shape.max_context_tokens) AS context_tokens)
            FROM shape CROSS JOIN grid"""
        )
        rows = connection.execute(
            """SELECT f.model_id, concat_ws(' ', f.phase_id, f.dtype_id), gpu_id,
                card_verdict(f.total_bytes, f.error_band, gpu.capacity_bytes, f.gpu_count)
            FROM footprints('opened') AS f CROSS JOIN gpu"""
        ).fetchall()
    return {(model_id, scenario, gpu): verdict for model_id, scenario, gpu, verdict in rows}


def _told_of_grades(were: dict[str, str], are: dict[str, str]) -> Iterator[str]:
    parts = []
    for grade in ENUMS["anatomy_grade"]:
        old, new = ({key for key, held in each.items() if held == grade} for each in (were, are))
        if old != new:
            parts.append(f"{grade} won {len(new - old):,} and lost {len(old - new):,}")
    yield f"grades: {'; '.join(parts) or 'as they were'} ({len(are.keys() - were.keys()):,} models are new)"


def _flipped(were: Verdicts, are: Verdicts) -> list[tuple[str, ...]]:
    """Model, scenario, card, verdict before and now: what fitted and does not any more goes first, and inference before training."""
    found = [
        (*key, were[key] or NOT_KNOWN, are[key] or NOT_KNOWN)
        for key in were.keys() & are.keys()
        if were[key] != are[key]
    ]
    return sorted(found, key=lambda row: (row[3:] != ("fits", "no"), "inference" not in row[1], row))


def _told_of_verdicts(flipped: list[tuple[str, ...]]) -> Iterator[str]:
    if not flipped:
        yield "verdicts: none has flipped in what pages open with"
        return
    ways = Counter(f"{old} → {new}" for *_, old, new in flipped)
    count = len({model_id for model_id, *_ in flipped})
    told = ", ".join(f"{way} {number:,}" for way, number in ways.most_common())
    yield f"verdicts: {len(flipped):,} have flipped, of {count:,} models ({told})"
    for model_id, scenario, gpu, old, new in flipped[:_SHOWN]:
        yield f"  {model_id}, {scenario} on {gpu}: {old} → {new}"
