"""Fits engine_graph.csv: the fewest streams of a type of model with which the formula is nowhere less than what llama.cpp was counted to reserve.

    python tests/oracle/fit_compute_buffer.py almanac.duckdb [counts.csv]    # of a build; rows of compute_buffer.csv that are not held back, or others

Says for each type what its rows want beyond what the formula counts of every model, and how far it is off with that. Types that want the same are one
line of the table. What llama.cpp's source says (logit_elements, early_logit_elements, hands_layer_inputs, holds_layer_inputs) is taken as it stands in
the table and not fitted. Then what a layer holds where a server reserves logits of few tokens (server_streams): the fewest streams, with all other
columns as the table has them. At last the streams that experts which see every token leave alive (constant llama_cpp_shared_streams): the fewest with which
no model that has them is short of its rows, whatever its type.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from string import Template

import duckdb

ROWS = Path(__file__).with_name("compute_buffer.csv")
BITS = {"bf16": 16.0, "q8_0": 8.5, "q4_0": 4.5}
STEP, MOST = 0.5, 24
MOST_SERVED = 48  # (all that a layer holds, and not what it holds beside what is counted)
LEFT = 4 << 20  # bytes of blocks that are too small, which no formula knows
FITTED = ("logit_streams", "has_masks_below_logits", "layer_streams", "unfused_streams", "handed_streams")
# which rows a column is fitted to: short contexts, long ones, packed caches, no fused attention, several GPUs
OF = (
    "gpus = 1 AND attention = 'flash' AND tokens <= 8192 AND bits = 16",
    "gpus = 1 AND attention = 'flash' AND bits = 16",
    "gpus = 1 AND attention = 'flash'",
    "gpus = 1 AND attention = 'eager'",
    "gpus > 1",
)
SCENARIO = """{'context_tokens': tokens, 'sequences': sequences, 'kv_element_bits': bits, 'attention': attention,
    'pipeline_parallel': gpus, 'engine_id': 'llama.cpp', 'stage_share': ceil(model.layer_count / gpus) / model.layer_count,
    'program_base': {'server_slot_count': outputs}}"""
TOLD = """
    CREATE OR REPLACE TEMP TABLE told AS
    SELECT wanted.*, tried, compute_buffer_bytes_llama_cpp(struct_update(model, engine_graph := {
        'logit_elements': coalesce(model.engine_graph.logit_elements, 0)::BIGINT,
        'early_logit_elements': coalesce(model.engine_graph.early_logit_elements, 0)::BIGINT,
        'hands_layer_inputs': coalesce(model.engine_graph.hands_layer_inputs, false),
        'holds_layer_inputs': coalesce(model.engine_graph.holds_layer_inputs, false), 'server_streams': NULL::DOUBLE, $fields}),
        $scenario, constants) - bytes AS over
    FROM wanted JOIN shape_row USING (model_id) JOIN rule USING (kind), constants, (SELECT unnest($tries) AS tried)
    WHERE outputs IS NULL AND $of
"""
SERVED = """
    SELECT kind, arg_min(tried, (greatest(-least, $left), tried::DOUBLE)), arg_min(least, (greatest(-least, $left), tried::DOUBLE)) FROM (
        SELECT kind, tried, min(told - bytes) AS least FROM (
            SELECT kind, tried, bytes, compute_buffer_bytes_llama_cpp(struct_update(model, engine_graph := {
                $fields, 'server_streams': tried}), $scenario, constants) AS told
            FROM wanted JOIN shape_row USING (model_id), constants, (SELECT unnest(list_transform(range($tries), lambda n: n * $step)) AS tried)
            WHERE outputs IS NOT NULL AND attention = 'flash' AND bits = 16 AND model.engine_index IS NULL AND coalesce(model.cross_layer_count, 0) = 0
        ) GROUP BY kind, tried
    ) GROUP BY kind ORDER BY kind
"""


def tell(book: duckdb.DuckDBPyConnection, tried: str | None, tries: str, of: str) -> None:
    fields = ", ".join(f"'{name}': {'tried' if name == tried else 'rule.' + name}" for name in FITTED)
    book.execute(Template(TOLD).substitute(fields=fields, tries=tries, of=of, scenario=SCENARIO))


def fit(book: duckdb.DuckDBPyConnection, column: str, of: str) -> None:
    """The least of what is tried that leaves nothing missing, or least of it; an upper bound of masks only where it helps."""
    is_flag = column == "has_masks_below_logits"
    tell(
        book,
        column,
        "[false, true]" if is_flag else f"list_transform(range({int(MOST / STEP)}), lambda n: n * {STEP})",
        of,
    )
    book.execute(f"""
        UPDATE rule SET {column} = best FROM (
            SELECT kind, arg_min(tried, (greatest(-least, {LEFT}), tried::DOUBLE)) AS best
            FROM (SELECT kind, tried, min(over) AS least FROM told GROUP BY kind, tried) GROUP BY kind
        ) AS fitted WHERE fitted.kind = rule.kind
    """)


def server_streams(book: duckdb.DuckDBPyConnection) -> list[tuple]:
    """By kind what a layer holds where logits of few tokens are reserved, all else as the table has it, and how many bytes are missing with that."""
    numbers = (
        "logit_elements",
        "logit_streams",
        "layer_streams",
        "early_logit_elements",
        "unfused_streams",
        "handed_streams",
    )
    flags = ("has_masks_below_logits", "hands_layer_inputs", "holds_layer_inputs")
    usual = [
        f"'{name}': coalesce(model.engine_graph.{name}, {none})"
        for names, none in ((numbers, 0), (flags, "false"))
        for name in names
    ]
    text = Template(SERVED).substitute(
        fields=", ".join(usual), scenario=SCENARIO, left=LEFT, tries=int(MOST_SERVED / STEP), step=STEP
    )
    return book.execute(text).fetchall()


def shared_streams(book: duckdb.DuckDBPyConnection) -> list[tuple]:
    """What is missing at most, in MiB, by how many streams."""
    return book.execute(f"""
        SELECT streams, round(max(bytes - compute_buffer_bytes_llama_cpp(model, scenario, constants)) / 2 ** 20, 1),
            arg_max(model_id, bytes - compute_buffer_bytes_llama_cpp(model, scenario, constants))
        FROM (
            SELECT model_id, model, bytes, streams, {SCENARIO} AS scenario, struct_update(constants, llama_cpp_shared_streams := streams) AS constants
            FROM wanted JOIN shape_row USING (model_id), constants, (SELECT unnest(range(8))::DOUBLE AS streams)
            WHERE outputs IS NULL AND model.shared_max > 0 AND model.engine_index IS NULL
        ) GROUP BY streams ORDER BY streams
    """).fetchall()


def main() -> None:
    book = duckdb.connect()
    book.execute(f"ATTACH '{sys.argv[1]}' AS almanac (READ_ONLY)")
    book.execute("SET search_path = 'almanac.internal,almanac.main,memory.main'")
    kinds = dict(book.execute("SELECT model_id, model.model_type FROM shape_row").fetchall())
    book.execute(
        "CREATE TEMP TABLE wanted (kind TEXT, model_id TEXT, tokens BIGINT, sequences BIGINT, bits DOUBLE, attention TEXT, gpus INT, outputs INT, bytes BIGINT)"
    )
    with (Path(sys.argv[2]) if len(sys.argv) > 2 else ROWS).open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["buffer_bytes"] and row["model_id"] in kinds and row.get("is_held") != "true"
        ]
    book.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [
        (kinds[row["model_id"]], row["model_id"], int(row["context_tokens"]), int(row["sequences"]), BITS[row["kv_dtype_id"]],
            row["attention"], int(row["gpu_count"]), int(row["output_tokens"] or 0) or None, int(row["buffer_bytes"]))
        for row in rows
    ])  # fmt: skip
    book.execute("""
        CREATE TEMP TABLE rule AS SELECT DISTINCT kind, 0.0::DOUBLE AS logit_streams, false AS has_masks_below_logits,
            0.0::DOUBLE AS layer_streams, 0.0::DOUBLE AS unfused_streams, 0.0::DOUBLE AS handed_streams FROM wanted
    """)
    for column, of in zip(FITTED, OF, strict=True):
        fit(book, column, of)
    tell(book, None, "[0]", "true")
    for row in book.execute(f"""
        SELECT kind, {", ".join(FITTED)}, min(over / bytes), max(over / bytes) FROM told JOIN rule USING (kind)
        GROUP BY ALL HAVING {" OR ".join(f"{name}::DOUBLE > 0" for name in FITTED)} OR min(over) < -{LEFT} ORDER BY kind
    """).fetchall():
        wants = {name: value for name, value in zip(FITTED, row[1:-2], strict=True) if value}
        print(row[0], wants, f"{row[-2]:+.1%} to {row[-1]:+.1%}", flush=True)
    for kind, streams, over in server_streams(book):
        print("server_streams", kind, float(streams), f"missing MiB {max(0, -over) / 2**20:.1f}", flush=True)
    for streams, missing, model_id in shared_streams(book):
        print("llama_cpp_shared_streams", streams, "missing MiB at most", missing, model_id)


if __name__ == "__main__":
    main()
