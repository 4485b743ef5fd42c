"""Selective checkpointing as torchtitan has it: of a layer's products the first, the third and so on are kept."""

from __future__ import annotations

import pytest

LLAMA = "meta-llama/Llama-3.1-8B"
# out of the config: query, key, value, output, gate, up, down, in the order in which the layer's code calls them
PRODUCTS = (4096, 1024, 1024, 4096, 14336, 14336, 4096)
LAYERS = 32


def test_every_other_product_is_the_one_that_the_policy_keeps(book):
    kept = [out for number, out in enumerate(PRODUCTS, start=1) if number % 2 != 0]
    asked = "SELECT linear_output_sum, alternate_output_sum FROM shape WHERE model_id = ?"
    assert book.execute(asked, [LLAMA]).fetchall() == [(LAYERS * sum(PRODUCTS), LAYERS * sum(kept))]


def test_only_an_engine_that_says_so_leaves_products_out(book):
    query = """
        SELECT kept_product_sum(shape, {'keeps_alternate_products': run.keeps_alternate_products}), run.engine_id
        FROM shape, engine_row AS run WHERE shape.model_id = ? AND run.engine_id IN ('torchtitan', 'transformers')
    """
    kept = {engine: kept for kept, engine in book.execute(query, [LLAMA]).fetchall()}
    assert kept == {"transformers": LAYERS * sum(PRODUCTS), "torchtitan": LAYERS * sum(PRODUCTS[::2])}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model_id", "more"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", {}),  # a product with a bias is another operator
        ("Qwen/Qwen3-30B-A3B", {}),
        (LLAMA, {"tensor_parallel": 2}),
        (LLAMA, {"phase_id": "lora"}),
    ],
)
def test_where_the_order_is_not_read_there_is_a_reason(footprint_of, model_id, more):
    scenario = {
        "phase_id": "full-finetune",
        "engine_id": "torchtitan",
        "checkpointing": "selective",
        "gpu_count": 8,
    } | more
    row = footprint_of(model_id, **scenario)
    assert row["total_bytes"] is None and "keeps every other product of a layer" in row["unknown_reason"]
