"""What Unsloth's own layers hold: its functions on fake tensors, as PyTorch compiles them and without (tests/oracle/count_unsloth_blocks.py).

The formula alone is held to the counts, with what it counts beside or elsewhere taken off by name. Shapes that were not looked at when it was made
are held like the others.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = list(csv.DictReader((ROOT / "tests" / "oracle" / "unsloth_blocks.csv").read_text(encoding="utf-8").splitlines()))
RANK = 16
ROUNDED = 4096  # of some eight small tensors, to 512 bytes each; of those of a token that no block of 512 is full of
PADDED = 128
ASKED = """SELECT own_block_kept(layer, model, scenario) AS kept, own_block_work(layer, block, model, scenario) AS work FROM (SELECT
    {'query_width': $query, 'key_width': $key, 'head_count': $heads, 'kv_head_count': $kv_heads, 'has_qk_norm': $qk_norm} AS layer,
    {'width': $intermediate} AS block, {'hidden_size': $hidden, 'max_context_tokens': 32768, 'head_dim_max': $head_dim} AS model,
    {'context_tokens': $tokens, 'sequences': $sequences, 'context_parallel': 1, 'compute_bytes': 2, 'lora_rank': $rank,
        'unsloth_rotation_step': 8192, 'unsloth_padded_rows': 128, 'dequantised': $unpacked} AS scenario)"""


def read(row: dict[str, str]) -> dict:
    words = {"qk_norm", "attention", "base", "looked_at"}
    told = {name: value if name in words else int(value) for name, value in row.items()}
    told["qk_norm"] = row["qk_norm"] == "true"
    told |= {"query": told["heads"] * told["head_dim"], "key": told["kv_heads"] * told["head_dim"], "rank": RANK}
    largest = 2 * told["hidden"] * max(told["intermediate"], told["query"])
    return told | {
        "unpacked": largest if row["base"] == "packed" else 0,
        "all_tokens": told["tokens"] * told["sequences"],
    }


def unpadded(row: dict) -> int:
    """What is told of rows of padding that are not there: of up to 128, and of none in flash attention."""
    there = 0 if row["attention"] == "flash" else PADDED - row["tokens"] % PADDED
    return row["sequences"] * (PADDED - there) * (4 * (row["query"] + row["key"]) + 4 * row["heads"])


@pytest.fixture(scope="module")
def told(book):
    """(row, bytes that are kept, bytes that are worked with) of each row, by the formula."""
    names = [
        "query",
        "key",
        "heads",
        "kv_heads",
        "qk_norm",
        "intermediate",
        "hidden",
        "head_dim",
        "tokens",
        "sequences",
        "rank",
        "unpacked",
    ]
    rows = [read(row) for row in ROWS]
    return [(row, *book.execute(ASKED, {name: row[name] for name in names}).fetchall()[0]) for row in rows]


def halves(row: dict, elements: int) -> int:
    """Bytes of so many elements of each token in 16 bits."""
    return 2 * row["all_tokens"] * elements


def left(row: dict, kept: float, work: float) -> float:
    """What is told beyond the larger count, less what is told for a reason: to the byte but for rounding where the formula is the layer's."""
    beyond = kept + work - max(row["compiled_bytes"], row["eager_bytes"]) - unpadded(row)
    beyond -= 3 * 8 * row["all_tokens"]  # ids, labels and positions, which the layer is not given here
    if row["attention"] == "flash":
        beyond -= halves(row, row["query"])  # attention's result has no second place
    if work == halves(row, 6 * row["intermediate"]):
        # of both products of an adapter's rank the compiler keeps one, beside the copy in 16 bits of an adapter
        return beyond - halves(row, RANK) + 2 * RANK * row["intermediate"]
    # (gradients of the block's adapters are there, and are told with all others)
    return beyond + 3 * 4 * RANK * (row["hidden"] + row["intermediate"])


def is_narrow(row: dict) -> bool:
    return 6 * row["intermediate"] < 6 * row["query"] + 2 * row["key"]


def test_layers_hold_what_the_formula_tells_to_the_byte(told):
    wide = [(row, kept, work) for row, kept, work in told if not is_narrow(row)]
    assert {name for row, *_ in wide for name in (row["base"], row["attention"], row["qk_norm"], row["looked_at"])} == {
        "bf16", "packed", "cudnn", "flash", True, False, "true", "false",
    }  # fmt: skip
    assert {(row["compiled_bytes"] > row["eager_bytes"]) for row, *_ in wide} == {True, False}
    assert sum(row["looked_at"] == "false" for row, *_ in wide) >= 8
    outside = [(row, left(row, kept, work)) for row, kept, work in wide if abs(left(row, kept, work)) > ROUNDED]
    assert not outside


def test_of_a_block_that_is_narrower_than_attention_the_formula_is_a_bound(told):
    """What its layer holds differs with sizes that are the same by chance."""
    beyond = [
        (kept + work) / max(row["compiled_bytes"], row["eager_bytes"]) - 1 for row, kept, work in told if is_narrow(row)
    ]
    assert len(beyond) == 8
    assert min(beyond) > 0.05 and max(beyond) < 0.3
