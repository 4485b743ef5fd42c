"""Classes whose forward pass was run whole, against tests/oracle/forward_passes.csv, and what is not known of them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.formulas.at_once import at_once

ROWS = list(
    csv.DictReader(
        (Path(__file__).parents[1] / "oracle" / "forward_passes.csv").read_text(encoding="utf-8").splitlines()
    )
)
FORECASTS, BOLT = "amazon/chronos-2", "amazon/chronos-bolt-base"


def told(book, model, columns, **asked):
    given = "".join(f", {name} := ${name}" for name in asked)
    (row,) = book.execute(f"SELECT {columns} FROM footprint_of($model{given})", {"model": model, **asked}).fetchall()
    return row


def test_classes_hold_what_was_counted(footprints):
    assert len(ROWS) > 50  # (beside the 0.3 GB of a process three megabytes are nothing)
    # one size is asked without a length, which is the model's own; where there are several each is said
    for rows in ([row for row in ROWS if row["height"]], [row for row in ROWS if not row["height"]]):
        answers = footprints([_asked(row) for row in rows])
        for row, told_ in zip(rows, answers, strict=True):
            counted = int(row["peak_bytes"])
            assert told_["unknown_reason"] is None, row
            assert counted <= told_["activations_bytes"] <= 1.03 * counted + 3_000_000, row


def _asked(row):
    format_ = {"2": "bf16", "4": "fp32"}[row["element_bytes"]]
    asked = {"model_id": row["model_id"], "dtype_id": format_, "sequences": int(row["sequences"])}
    return asked | ({} if row["height"] else {"context_tokens": int(row["tokens"])})


def test_every_class_was_counted_and_nothing_else_is_known_of_it(any_book):
    """One size and precision after the other; a model whose layers are described is answered from them."""
    counted = {(row["parameter_count"], row["element_bytes"]) for row in ROWS}
    listed = any_book.execute(
        "SELECT DISTINCT parameter_count::VARCHAR, element_bytes::VARCHAR FROM forward_pass"
    ).fetchall()
    assert counted == set(listed)
    passed = "FROM forward_pass AS pass JOIN model ON model_type = pass_type AND model.parameter_count = pass.parameter_count"
    sizes = "SELECT count(DISTINCT (pass_type, pass.parameter_count))"
    assert (
        any_book.execute(f"{sizes} {passed}").fetchall()[0]
        == any_book.execute(f"{sizes} FROM forward_pass AS pass").fetchall()[0]
    )
    caching = "SELECT model_id FROM attention_layer WHERE mechanism <> 'bidirectional'"
    described = f"SELECT model_id {passed} WHERE model_id IN (SELECT model_id FROM tower UNION {caching})"
    assert any_book.execute(described).fetchall() == []


def test_series_of_a_batch_are_asked_together(book):
    """Chronos-2 attends among the series of a batch: a mask grows with the square of how many there are."""
    asked = ({"sequences": 1}, {"sequences": 256}, {"context_tokens": 33})
    cases = [{"model_id": FORECASTS, "dtype_id": "fp32"} | case for case in asked]
    (one,), (many,), (short,) = at_once(book, "footprint_of", ("model_id",), cases)
    assert one["weights_bytes"] == many["weights_bytes"] == 4 * 119_477_664 and one["context_tokens"] == 513
    assert 256 * one["activations_bytes"] < many["activations_bytes"] < 270 * one["activations_bytes"]
    assert one["total_bytes"] < 1.1e9 < 9e9 < many["total_bytes"] < 11e9
    assert short["activations_bytes"] < one["activations_bytes"] / 3


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"dtype_id": "int8"}, "counted in 16 or 32 bits"),
        ({"engine_id": "transformers-4.44"}, "in PyTorch"),
        ({"phase_id": "lora"}, "not what training holds"),
        ({"gpu_count": 2}, "on one GPU"),
        ({"context_tokens": 514}, "up to 513 tokens"),
        ({"context_tokens": 600, "max_context_tokens": 1000}, "up to 513 tokens"),
        ({"images": 1}, "one sequence here"),
        ({"sequences": 0}, "start at 1"),
    ],
)
def test_what_was_not_counted_has_a_reason(book, asked, reason):
    total, weights, said = told(book, FORECASTS, "total_bytes, weights_bytes, unknown_reason", **asked)
    assert (total, weights) == (None, None) and reason in said


@pytest.mark.full
def test_a_card_has_a_verdict(book):
    query = "SELECT verdict FROM fits_on('rtx-3060-12gb', $1, dtype_id := 'fp32', sequences := $2)"
    assert [book.execute(query, [BOLT, n]).fetchall() for n in (1, 4096)] == [[("fits",)], [("no",)]]
