"""The one big product, scenario × GPU, as a Parquet file: the rows of the view `compatibility`, a block of models at a time.

polars writes a block several times faster than COPY. The verdicts are by the same text as the view's, translated to columns of
polars; a test holds file and view equal. Cards that give the same, or that do not run it for the same reason, are judged once: a card that is only
another chip with the same memory costs a line and no verdict.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.packs import Packs
from pipeline.book.schema import ENUMS, PUBLISHED
from pipeline.press import blocks
from pipeline.press.blocks import Block, Contents, Cut
from pipeline.render.data.column_words import chain
from pipeline.render.data.rules import in_columns

# ten or so models have nearly a million rows
CUT = Cut(least=5, most=15, one_of=8, together=16)
_PAGE_BYTES = (
    16 * 1024**2
)  # a column of a group in one page: a third fewer bytes than in pages of 1 MiB, which nobody skips
# different on every row: they would be nine tenths of the bytes
DERIVED = ("max_context_tokens", "max_sequences")
_COLUMNS = [name for name in PUBLISHED["compatibility"].column_names if name not in DERIVED]
_MADE = ("gpu_id", "total_bytes", "gpu_count_needed", "sharding", "verdict", "unknown_reason")
_SCENARIO = [name for name in _COLUMNS if name not in _MADE]
_TEXTS = [c.name for c in PUBLISHED["compatibility"].columns if c.type == "string" and c.name in _COLUMNS]
_AS_TEXT = ("model_id", "sharding", "verdict")  # to readers that know categories, which the others are
FIELDS = ("gpu_count", "sharding", "total", "need")  # of a row of `totals`
# What decides whether a card runs a scenario, as one word: engine, format as it runs, phase, kind of attention.
_RUNS = ("engine_id", "running_id", "phase_id", "attention")
# For every such word the cards that share a verdict: those that give the same, and those that do not run it for one reason.
_CARDS = """
WITH judged AS (
    SELECT running, gpu.gpu_id, card_reason(r) AS card_reason, iif(card_reason IS NULL, gpu.capacity_bytes, NULL) AS capacity_bytes
    FROM asked JOIN gpu ON true
    LEFT JOIN runs_on_kind AS r
        ON r.engine_id = asked.engine_id AND r.running_id = asked.running_id AND r.phase_id = asked.phase_id
        AND r.attention = asked.attention AND r.card_kind = card_kind(gpu)
)
SELECT running, capacity_bytes, card_reason, list(gpu_id ORDER BY gpu_id) AS gpu_id
FROM judged GROUP BY ALL ORDER BY running, capacity_bytes NULLS LAST, card_reason
"""


def write_compatibility(
    connection: duckdb.DuckDBPyConnection, path: Path, packs: Packs | None = None, contents: Contents | None = None
) -> int:
    """Writes the file, sorted by scenario and then by what the card gives: rows that say the same stand together. Returns its rows. What
    `packs` hold is copied from there."""
    contents = contents or blocks.contents_of(connection, packs)
    return blocks.write(contents, path, CUT, _pattern(), partial(_worked_out, connection), packs)


def _pattern() -> bytes:
    """A file without rows. Readers that know categories are told of them."""
    kinds = {
        c.name: pl.Int64 if c.name not in _TEXTS else pl.String if c.name in _AS_TEXT else pl.Categorical
        for c in PUBLISHED["compatibility"].columns
        if c.name in _COLUMNS
    }
    return _file(pl.DataFrame(schema={name: kinds[name] for name in _COLUMNS}))


def _file(rows: pl.DataFrame) -> bytes:
    """One group of rows. Nothing is skipped by ranges of values but models, and those are told when files are put together."""
    file = io.BytesIO()
    how = {"compression": "zstd", "compression_level": 9, "data_page_size": _PAGE_BYTES, "statistics": False}
    rows.write_parquet(file, row_group_size=max(rows.height, 1), **how)
    return file.getvalue()


def _worked_out(connection: duckdb.DuckDBPyConnection, some: Sequence[Block]) -> Iterator[bytes]:
    """The file of each of some blocks."""
    scenarios, slots = _scenarios(connection, [model for block in some for model in block.models])
    cards = _cards(connection, scenarios)
    for block in some:
        rows = scenarios.filter(pl.col("model_id").is_in(block.models))
        judged = cards.join(rows.select("running").unique(), on="running", how="semi", maintain_order="left")
        yield _file(_verdict_rows(*_as_few(rows, judged), slots).explode("gpu_id"))


def _as_few(rows: pl.DataFrame, cards: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Words that repeat on every row as numbers of lists that are the block's own: the same whatever was read before."""
    texts = {name for name, kind in rows.schema.items() if kind == pl.String} - {"running"}
    ways = [name for name in texts if name.startswith("sharding_")]
    lists = {name: _words(rows[name]) for name in texts} | dict.fromkeys(ways, _words(*(rows[name] for name in ways)))
    lists["unknown_reason"] = reasons = _words(rows["unknown_reason"], cards["card_reason"])
    return (
        rows.with_columns(pl.col(name).cast(words) for name, words in lists.items()),
        cards.with_columns(
            pl.col("card_reason").cast(reasons), pl.col("gpu_id").cast(pl.List(_words(cards["gpu_id"].explode())))
        ),
    )


def _words(*columns: pl.Series) -> pl.Enum:
    return pl.Enum(sorted(set().union(*(column.drop_nulls().unique() for column in columns))))


def _cards(connection: duckdb.DuckDBPyConnection, scenarios: pl.DataFrame) -> pl.DataFrame:
    connection.register("asked", scenarios.select(*_RUNS, "running").unique().to_arrow())
    try:
        return connection.sql(_CARDS).pl()
    finally:
        connection.unregister("asked")


def _scenarios(connection: duckdb.DuckDBPyConnection, models: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """One row per scenario; for the n-th GPU count that has a total the fields of that row of `totals`: gpu_count_n, sharding_n, total_n, need_n.
    And how many of these there are."""
    # a table: it is asked twice, and gathering it takes longer than all that is made of it
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE gathered AS FROM scenario_totals WHERE list_contains($models, model_id)",
        {"models": list(models)},
    )
    slots = connection.execute("SELECT coalesce(max(len(totals)), 1) FROM gathered").fetchall()[0][0]
    fields = ", ".join(f"s.totals[{slot + 1}].{field} AS {field}_{slot}" for slot in range(slots) for field in FIELDS)
    order = ", ".join(f"s.{name} NULLS LAST" for name in _SCENARIO)
    query = f"""
        SELECT {", ".join(f"s.{name}" for name in _SCENARIO)}, s.unknown_reason, s.attention,
            running_format(m, s.dtype_id, s.engine_id) AS running_id, concat_ws(' ', {", ".join(_RUNS)}) AS running, {fields}
        FROM gathered AS s JOIN model AS m USING (model_id) ORDER BY {order}
    """
    rows = connection.sql(query).pl()
    connection.execute("DROP TABLE gathered")
    return rows, slots


def _verdict_rows(rows: pl.DataFrame, cards: pl.DataFrame, slots: int) -> pl.DataFrame:
    """The columns of the view, in its order, a row for all cards that say the same; what is chosen is found once and then looked up."""
    rules, capacity = in_columns(), pl.col("capacity_bytes")
    is_known, runs = pl.col("total_0").is_not_null(), pl.col("card_reason").is_null()
    totals = [{field: pl.col(f"{field}_{slot}") for field in FIELDS} for slot in range(slots)]
    place = pl.when(runs).then(rules.chosen(totals, capacity).place(totals))

    def of_place(field: str) -> pl.Expr:
        return chain([(pl.col("place") == slot, row[field]) for slot, row in enumerate(totals)])

    chosen = {field: pl.col(field) for field in FIELDS}
    verdict = rules.verdict_of(pl.when(runs).then(pl.col("total_0")), chosen, capacity)
    made = {
        "total_bytes": pl.coalesce("total", "total_0"),
        "gpu_count_needed": pl.col("gpu_count"),
        "sharding": pl.coalesce("sharding", "sharding_0"),
        "verdict": verdict.cast(pl.Enum(sorted(ENUMS["verdict"]))),
        "unknown_reason": pl.when(is_known).then("card_reason").otherwise("unknown_reason"),
    }
    return (
        rows.lazy()
        .join(cards.lazy(), on="running", how="inner", maintain_order="left_right")
        .with_columns(place=place)
        .with_columns(of_place(field).alias(field) for field in FIELDS)
        .select(made[name].alias(name) if name in made else pl.col(name) for name in _COLUMNS)
        .collect()
    )
