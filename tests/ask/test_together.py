"""Several unlike cards together, and a draft beside its model: as the macros say it."""

from __future__ import annotations

import pytest

from pipeline.ask import several
from tests.few import LARGE, SEEING, SMALL, TEXT


@pytest.mark.full
def test_unlike_cards_are_asked_together(ask_json, ask, macro):
    told = ask_json("fits", LARGE, "--gpu", "RTX 3090 + rtx-3060-12gb", "--context", 8192)
    rows = told["together"]
    dtype = rows[0]["dtype_id"]
    query = "FROM fits_together(['rtx-3090', 'rtx-3060-12gb'], $m, dtype_id := $d, context_tokens := 8192)"
    assert [{k: v for k, v in row.items() if k != "name"} for row in rows] == macro(query, m=LARGE, d=dtype)
    # no better format fits both
    better = several.TOGETHER[: several.TOGETHER.index(dtype)]
    others = f"FROM unnest($better) AS said(dtype), LATERAL ({query.replace('$d', 'said.dtype')})"
    told_of = macro(f"SELECT dtype, list(DISTINCT verdict) AS verdicts {others} GROUP BY dtype", m=LARGE, better=better)
    assert len(told_of) == len(better) and ["fits"] not in [row["verdicts"] for row in told_of]
    assert told["verdict"] == "fits" and told["status"] == 0
    assert told["commands"][0]["command"].endswith(rows[0]["engine_setting"])
    status, _out, said = ask("fits", LARGE, "--gpu", "rtx-3090 + rtx-3060-12gb", "--phase", "lora")
    assert status == 2 and "llama.cpp" in said


@pytest.mark.full
def test_prediction_layers_are_asked_for_as_a_draft(ask_json, ask):
    """In the program that is named, or that has the format; else in vLLM."""
    asked = ("fits", SEEING, "--gpu", "rtx-4090", "--draft", "mtp", "--context", 8192)
    for more, engine in (((), "vllm"), (("--format", "bf16"), "vllm"), (("--format", "Q4_K_M"), "llama.cpp")):
        told = ask_json(*asked, *more)
        assert (told["drafted"]["engine_id"], told["verdict"], told["status"]) == (engine, "fits", 0)
        assert told["drafted"]["draft_model_id"] == "mtp" and told["drafted"]["draft_weights_bytes"] > 0
    said = ask(*asked)[1]
    assert "with its own prediction layers (MTP) drafting for it" in " ".join(said.split()) and "mtp" in said
    status, said, _ = ask("fits", TEXT, "--gpu", "rtx-4090", "--draft", "nextn")
    assert status == 3 and "has no layers that predict further tokens" in " ".join(said.split())


@pytest.mark.full
def test_a_draft_is_asked_beside_its_model(ask_json, ask, macro):
    told = ask_json("fits", LARGE, "--gpu", "rtx-5090", "--draft", SMALL, "--context", 8192)
    query = "FROM speculative_fits_on('rtx-5090', $m, $d, dtype_id := {}, draft_dtype_id := 'gguf-q8_0', context_tokens := 8192)"
    # no better format fits
    formats = several.TOGETHER[: several.TOGETHER.index(told["drafted"]["dtype_id"]) + 1]
    others = f"FROM unnest($formats) AS said(dtype), LATERAL ({query.format('said.dtype')}) AS told"
    *better, row = macro(
        f"SELECT told.* {others} ORDER BY list_position($formats, dtype_id)", m=LARGE, d=SMALL, formats=formats
    )
    assert (
        row.items() <= told["drafted"].items() and row["verdict"] == told["verdict"] == "fits" and told["status"] == 0
    )
    assert len(better) == len(formats) - 1 > 0 and "fits" not in {one["verdict"] for one in better}
    asked = ("fits", LARGE, "--gpu", "rtx-4090", "--draft", SMALL, "--program", "vllm", "--users", 2, "--format", "fp8")
    status, out, _said = ask(*asked)
    assert status == 1 and "drafting" in out
    for wrong in (("--phase", "lora"), ("--free", "10GiB")):
        status, _out, said = ask("fits", LARGE, "--gpu", "rtx-4090", "--draft", SMALL, *wrong)
        assert status == 2 and "--draft" in said
