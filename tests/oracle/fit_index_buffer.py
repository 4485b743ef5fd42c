"""Fits engine_index.csv: the least numbers with which the formula is nowhere less than what llama.cpp was counted to reserve.

    python tests/oracle/fit_index_buffer.py almanac.duckdb     # of a build; rows of compute_buffer.csv that are not held back

Fitted for each type are those of FITTED that its line has at all: which these are, heads of fp32 (score_head_bytes_each), what is cached more and what
is given for each cell is read off llama.cpp's graph and stands as it is. All regimes of a type are one linear program: the sum of what is told too much,
each row's by its buffer, is the least, and no row is short by more than LEFT. A row is held to its logits where these are all that it has, else to what
picks. Lines of the table are what it prints, rounded up.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import duckdb

ROWS = Path(__file__).with_name("compute_buffer.csv")
TABLE = Path(__file__).parents[2] / "tables" / "facts" / "engine_index.csv"
BITS = {"bf16": 16.0, "q8_0": 8.5, "q4_0": 4.5}
LEFT = 4 << 20  # bytes of blocks that are too small, which no formula knows
BATCH, COPIES = 512, 4  # (llama_cpp_micro_batch_tokens, llama_cpp_pipeline_copies)
FITTED = (
    "graph_input_bytes_each", "picking_bytes_each", "picking_sequence_bytes_each", "layer_input_bytes_each", "handed_layer_bytes_each",
    "picking_queries", "picking_elements", "logit_hidden", "handed_hidden", "score_queries",
    "score_bytes_each", "score_input_bytes_each",
)  # fmt: skip
SHAPES = """
    SELECT model_id, model.model_type, model.hidden_size, model.vocab_size, model.query_max, model.head_max, indexed_layers(model, scenario),
        unpacked_cache_bytes_llama_cpp(model, scenario, constants), context_cells_llama_cpp(scenario, constants)
    FROM wanted JOIN shape_row USING (model_id), constants, (SELECT unnest([{{'stage_share': least(ceil((model.layer_count + 1) / gpus) / model.layer_count, 1),
        'kv_element_bits': bits, 'context_tokens': tokens, 'sequences': sequences}}]) AS scenario)
    WHERE number = {number}
"""


def terms(row: dict, shape: tuple, rule: dict[str, float]) -> list[tuple[dict[str, float], float]]:
    """The moments of a row: bytes for each unit of what is fitted, and bytes that are known."""
    _, _, hidden, vocabulary, queries, heads, layers, unpacked, cells = shape
    token_cells, width = BATCH * cells, 4 * BATCH
    several = row["gpu_count"] != "1"
    copies = COPIES if several else 1
    given = {"graph_input_bytes_each": copies * token_cells, "layer_input_bytes_each": copies * token_cells * layers}
    handed = {"handed_hidden": COPIES * width * hidden} if several else {}
    handed_layers = {"handed_layer_bytes_each": COPIES * token_cells * layers} if several else {}
    picked = {"picking_queries": width * queries, "picking_elements": width}
    beside = width * rule["picking_hidden"] * hidden
    cell_bytes = copies * cells * rule["graph_cell_bytes_each"]
    logits = ({"logit_hidden": width * hidden}, width * (vocabulary + hidden))
    if row["attention"] == "eager":
        more = {"score_input_bytes_each": (COPIES - 1) * token_cells} if several else {}
        scores = {"score_queries": width * queries, "score_bytes_each": token_cells} | more | handed
        return [
            (logits[0] | more | handed, logits[1]),
            (scores, token_cells * rule["score_head_bytes_each"] * heads),
        ]
    picking = picked | given | handed | handed_layers | {"picking_bytes_each": token_cells}
    picking["picking_sequence_bytes_each"] = token_cells * (int(row["sequences"]) - 1)
    under = given | handed | handed_layers if several else {}
    return [
        (logits[0] | under, logits[1] + (cell_bytes if several else 0)),
        (picking, beside + cell_bytes + unpacked),
    ]


def fit(
    rows: list[tuple[int, list[tuple[dict[str, float], float]]]], rule: dict[str, float], names: list[str]
) -> dict[str, float]:
    """Which moment a row is held to follows what was fitted so far: at first its logits where they are larger without what picks."""
    from scipy.optimize import linprog

    now = {name: rule[name] for name in names}
    for _ in range(4):
        more, most, cost = [], [], [0.0] * len(names)
        for counted, moments in rows:
            units, known = max(
                moments, key=lambda moment: moment[1] + sum(now.get(n, 0) * by for n, by in moment[0].items())
            )
            more.append([-units.get(name, 0) / counted for name in names])
            most.append((known - counted + LEFT) / counted)
            cost = [sum(pair) for pair in zip(cost, (units.get(name, 0) / counted for name in names), strict=True)]
        best = linprog(cost, A_ub=more, b_ub=most, bounds=(0, None))
        now = dict(zip(names, best.x, strict=True))
    return now


def main() -> None:
    book = duckdb.connect()
    book.execute(f"ATTACH '{sys.argv[1]}' AS almanac (READ_ONLY)")
    book.execute("SET search_path = 'almanac.internal,almanac.main,memory.main'")
    book.execute(
        "CREATE TEMP TABLE wanted (number INT, model_id TEXT, tokens BIGINT, sequences BIGINT, bits DOUBLE, gpus INT)"
    )
    with ROWS.open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["buffer_bytes"] and row["is_held"] == "false" and not row["output_tokens"]
        ]
    book.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?)", [
        (number, row["model_id"], int(row["context_tokens"]), int(row["sequences"]), BITS[row["kv_dtype_id"]], int(row["gpu_count"]))
        for number, row in enumerate(rows)
    ])  # fmt: skip
    with TABLE.open(newline="") as file:
        rules = {kind: line for line in csv.DictReader(file) for kind in line["model_types"].split()}
    of: dict[str, list] = {}
    for number, row in enumerate(rows):
        shape = book.execute(SHAPES.format(number=number)).fetchall()[0]
        line = rules.get(shape[1]) if shape else None
        if not line or (line["is_for_one_sequence"] == "true" and int(row["sequences"]) > 1):
            continue
        rule = {
            name: float(value) for name, value in line.items() if name in FITTED or name.endswith(("_each", "_hidden"))
        }
        of.setdefault(line["model_types"], []).append((int(row["buffer_bytes"]), terms(row, shape, rule)))
    for types, counted in of.items():
        line = rules[types.split()[0]]
        rule = {name: float(value) for name, value in line.items() if name in FITTED}
        names = [name for name in FITTED if rule[name] or name == "picking_elements"]
        best = fit(counted, rule, names)
        print(
            types,
            len(counted),
            {n: math.ceil(best[n]) if n == "picking_elements" else math.ceil(best[n] * 100) / 100 for n in names},
        )


if __name__ == "__main__":
    main()
