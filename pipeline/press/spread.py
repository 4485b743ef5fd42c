"""Footprints by more than one machine: shards are worked out wherever there are workers, and kept as packs that a build then finds.

A shard is what a build would work out in one step, and the worker asks the same formulas in the same way: so there is one build, which
only has less left to do. A shard that is kept is not asked for again; one whose worker died is given to another, and what nobody could
work out is left to the build. Workers need this checkout, and say so where their formulas are others.

`run(function, shards)` is the engine: it yields (shard, result) in any order, and an exception in the place of a result. `over_dask` is one.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from pipeline.base.caches import cache_folder
from pipeline.base.progress import Progress, quiet
from pipeline.book.packs import Packs, fingerprint
from pipeline.hub.snapshot import Snapshot
from pipeline.press import blank, lookup
from pipeline.press.anatomise import anatomise

Rows = tuple[list[str], dict[str, pa.Table]]
Run = Callable[[Callable[["Shard"], Rows], Iterator["Shard"]], Iterator[tuple["Shard", Any]]]
RETRIES = 2  # of a shard whose worker failed by an error; one that died is replaced by the engine itself
AHEAD = 2  # shards that wait at each worker: it has one when it is done with the last, and a scheduler never holds all


class OtherFormulas(RuntimeError):
    """A worker has another checkout than the one that asks."""


@dataclass(frozen=True)
class Shard:
    """Models to work out: the fingerprint of the formulas, the keys of the rows, and what is known of the models as Arrow files by table."""

    formulas: str
    keys: tuple[str, ...]
    tables: Mapping[str, bytes]


@dataclass(frozen=True)
class Spread:
    """What became of the shards: how many were worked out, and why others were not."""

    done: int
    failed: tuple[str, ...]


def spread(snapshot: Snapshot, packs: Packs, run: Run, progress: Progress = quiet) -> Spread:
    """Has everything worked out that packs do not hold, and keeps it there as it comes."""
    with blank.copied(cache_folder()) as connection:
        frames = anatomise(snapshot, progress, packs)
        blank.fill(connection, frames)
        shards = _shards(connection, frames, packs)
        done, failed = 0, []
        for _shard, result in progress(run(worked_out, iter(shards)), desc="shards", total=len(shards)):
            if isinstance(result, Exception):
                failed.append(f"{type(result).__name__}: {result}")
            elif packs.put(*result):
                done += 1
            else:
                failed.append(f"{packs.folder} takes nothing")
    packs.tidy()
    return Spread(done, tuple(failed))


def _shards(connection: duckdb.DuckDBPyConnection, frames: Mapping[str, pl.DataFrame], packs: Packs) -> Sequence[Shard]:
    """What is left to work out, each made when it is asked for: together they may be larger than memory."""
    lookup.find_twins(connection)
    lookup.find_keys(connection, packs)
    keys = dict(connection.execute("SELECT model_id, key FROM pair_key").fetchall())
    known = {key for found, _tables in packs.taken(keys.values()) for key in found}
    connection.register("known", pl.DataFrame({"key": sorted(known)}, schema={"key": pl.String}).to_arrow())
    connection.execute("DELETE FROM pair_key WHERE key IN (SELECT key FROM known)")
    connection.unregister("known")
    twins = connection.sql("FROM twin WHERE model_id = first_id ORDER BY ALL").pl()
    formulas = fingerprint()

    class Made(Sequence):
        steps = lookup.steps(connection)

        def __len__(self) -> int:
            return len(self.steps)

        def __getitem__(self, place: int) -> Shard:
            models = self.steps[place]
            tables = {name: frame.filter(pl.col("model_id").is_in(models)) for name, frame in frames.items()}
            tables["twin"] = twins.filter(pl.col("model_id").is_in(models))
            written = {name: _written(table) for name, table in tables.items() if table.height}
            return Shard(formulas, tuple(sorted(keys[model] for model in models)), written)

    return Made()


def _written(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_ipc(file, compression="zstd")
    return file.getvalue()


def worked_out(shard: Shard) -> Rows:
    """The rows of a shard, by the worker that has it. Raises OtherFormulas."""
    if fingerprint() != shard.formulas:
        raise OtherFormulas("this worker's checkout has other formulas, facts or libraries than the one that asks")
    tables = {name: pl.read_ipc(io.BytesIO(content)) for name, content in shard.tables.items()}
    twins = tables.pop("twin")
    found: list[Rows] = []

    class Collected(Packs):
        def taken(self, keys: Iterable[str]) -> Iterator[Rows]:
            return iter(())

        def put(self, keys: Sequence[str], rows: Mapping[str, pa.Table]) -> bool:
            found.append((list(keys), dict(rows)))
            return True

    with blank.copied(cache_folder()) as connection:
        blank.fill(connection, tables)
        lookup.work_out(connection, packs=Collected(cache_folder()), twins=twins)
    keys = tuple(sorted(key for those, _rows in found for key in those))
    if keys != shard.keys:
        raise OtherFormulas("this worker makes other models of the same facts than the one that asks")
    return list(keys), {
        name: pa.concat_tables([rows[name] for _keys, rows in found]) for name in (found[0][1] if found else ())
    }


def over_dask(address: str | None = None, workers: int = 2) -> Run:
    """Dask's workers: those of the scheduler at an address, however they were started (SSH, Slurm, Kubernetes), or some of this machine."""

    def run(function: Callable[[Shard], Rows], shards: Iterator[Shard]) -> Iterator[tuple[Shard, Any]]:
        from distributed import Client, LocalCluster, as_completed

        cluster = address or LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        with Client(cluster) as client:
            given: dict[Any, Shard] = {}

            def give() -> Any:
                shard = next(shards, None)
                if shard is None:
                    return None
                future = client.submit(function, shard, retries=RETRIES, pure=False)
                given[future.key] = shard
                return future

            ahead = AHEAD * max(sum(client.nthreads().values()), workers)
            ready = as_completed([future for future in (give() for _ in range(ahead)) if future is not None])
            for future in ready:
                yield given.pop(future.key), future.exception() or future.result()
                following = give()
                if following is not None:
                    ready.add(following)
        if address is None:
            cluster.close()

    return run
