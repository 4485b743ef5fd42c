"""Models whose forward pass was counted whole, in the words of a terminal."""

from __future__ import annotations

import pytest

from tests.few import DETECTS, FORECASTS


@pytest.mark.full
def test_a_picture_or_a_series_is_named_as_it_was_counted(ask, ask_json):
    """Of a picture there is no longest context; of a series its patches are tokens, and batches are asked as sequences."""
    ended, out, _error = ask("fits", DETECTS, "--gpu", "rtx-4090")
    said = " ".join(out.split())
    assert ended == 0 and "GiB for a picture of 640 × 640 pixels." in said and "longest context" not in said
    assert "8 at once, each a picture" in " ".join(ask("fits", DETECTS, "--gpu", "rtx-4090", "--users", "8")[1].split())
    told = ask_json("fits", FORECASTS, "--gpu", "rtx-4090")
    assert told["verdict"] == "fits" and {row["dtype_id"] for row in told["formats"]} == {"bf16", "fp32"}
    assert told["best"]["context_tokens"] == 513 and told["input"]["program"] == "chronos-forecasting"
    assert "as chronos-forecasting runs it" in " ".join(ask("fits", FORECASTS, "--gpu", "rtx-4090")[1].split())
    many = ask_json("fits", FORECASTS, "--gpu", "rtx-4090", "--users", "256", "--format", "fp32")
    assert many["best"]["total_bytes"] > 9e9 and many["verdict"] == "fits"
    packed = ask_json("fits", FORECASTS, "--gpu", "rtx-4090", "--format", "int8")
    assert packed["verdict"] is None and "16 or 32 bits" in packed["reason"]
