"""Single figures that any correct tool must produce (tests/golden/figures.csv), each within its own tolerance."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

FIGURES = list(
    csv.DictReader((Path(__file__).parents[1] / "golden" / "figures.csv").read_text(encoding="utf-8").splitlines())
)


def _ask(footprint_of, figure, **more):
    named = {name: figure[name] for name in ("dtype_id", "phase_id") if figure[name]}
    named |= {name: int(figure[name]) for name in ("context_tokens", "sequences") if figure[name]}
    return footprint_of(figure["model_id"], **named, **more)


def _states(row):
    return row["weights_bytes"] + row["gradients_bytes"] + row["optimizer_bytes"]


def _predicted(figure, book, footprint_of):
    quantity = figure["quantity"]
    if quantity == "parameter_count":
        query = "SELECT parameter_count FROM model WHERE model_id = ?"
        return book.execute(query, [figure["model_id"]]).fetchall()[0][0]
    if quantity == "image_tokens":
        width, height = map(int, figure["other"].split("x"))
        query = "SELECT prompt_tokens FROM image_tokens_of(?, image_width := ?, image_height := ?)"
        return book.execute(query, [figure["model_id"], width, height]).fetchall()[0][0]
    if quantity == "states":
        return _states(_ask(footprint_of, figure))
    if quantity == "sharded_states":
        return _states(_ask(footprint_of, figure, gpu_count=8, sharding="zero2"))
    if quantity == "adapter_parameters":
        row = _ask(footprint_of, figure, lora_rank=16, lora_targets="all-linear")
        return row["adapters_bytes"] // 4  # adapters are fp32
    if quantity == "logits_bytes":
        # what the formulas hold per logit where a loop keeps the model's outputs
        query = """
            WITH x AS (SELECT true AS keeps_logits, false AS keeps_unpacked, 'full' AS loss, 'pure' AS precision, 2 AS compute_bytes,
                1 AS tensor_parallel, 1 AS context_parallel, 1 AS sequences, NULL::INTEGER AS loss_chunk_tokens, ?::BIGINT AS context_tokens)
            SELECT (kept_per_logit(m, x) + gradients_per_logit(m, x)) * logit_width(m, x) * step_tokens(x)
            FROM shape AS m, x WHERE m.model_id = ?
        """
        return book.execute(query, [int(figure["context_tokens"]), figure["model_id"]]).fetchall()[0][0]
    if quantity == "weights_bytes" and figure["dtype_id"].startswith(("gguf", "mlx")):
        # a file holds the embedding too, which stays in the computer's memory, and what sees, which MLX LM leaves out
        query = "SELECT weights_bytes FROM weight WHERE model_id = ? AND dtype_id = ?"
        return book.execute(query, [figure["model_id"], figure["dtype_id"]]).fetchall()[0][0]
    return _ask(footprint_of, figure)[quantity]


@pytest.mark.some(18)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f"{f['quantity']}-{f['model_id']}-{f['dtype_id']}")
def test_figure(figure, book, footprint_of):
    predicted, expected = _predicted(figure, book, footprint_of), float(figure["expected"])
    assert predicted is not None, "the almanac has no such figure"
    assert abs(predicted - expected) <= float(figure["tolerance"]) * expected, f"{predicted} against {expected}"


@pytest.mark.some(1)
@pytest.mark.parametrize(("stage", "gib"), [("zero1", 41.13), ("zero2", 28.05), ("zero3", 14.96)])
def test_zero_divides_what_its_stage_says(footprint_of, stage, gib):
    """Llama-3.1-8B in bf16 with fp32 masters and AdamW on 8 GPUs, from the ZeRO paper's accounting."""
    row = footprint_of("meta-llama/Llama-3.1-8B-Instruct", phase_id="full-finetune", gpu_count=8, sharding=stage)
    assert _states(row) / 2**30 == pytest.approx(gib, rel=0.01)
