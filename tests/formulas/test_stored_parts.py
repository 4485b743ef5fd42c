"""Weights of checkpoints that quantise only some modules: by hand, against what repositories hold, and in every reader of the table."""

import pytest

from tests.once import bundled_snapshot

LLAMA, GEMMA = "meta-llama/Llama-3.1-405B-Instruct-FP8", "nvidia/Gemma-4-31B-IT-NVFP4"


@pytest.fixture(scope="module")
def weight(book):
    rows = book.execute("SELECT model_id, dtype_id, weights_bytes, unknown_reason FROM weight").fetchall()
    return {(model, dtype): (size, reason) for model, dtype, size, reason in rows}


def test_llama_405b_in_fp8_by_hand(weight, footprint_of):
    """Feed-forward alone, and not in the first and the last of 126 layers; all else in 16 bits; an fp32 scale per row comes on top."""
    eight = 124 * 3 * 53_248 * 16_384
    scales = 4 * 124 * (2 * 53_248 + 16_384)
    published = eight + 2 * (405_853_388_800 - eight) + scales
    for dtype in ("stored", "fp8"):
        size, _ = weight[LLAMA, dtype]
        assert size == pytest.approx(published, rel=0.001)
        assert footprint_of(LLAMA, dtype_id=dtype, context_tokens=8192)["weights_bytes"] == size
    assert weight["meta-llama/Llama-3.1-405B-FP8", "fp8"] == weight[LLAMA, "fp8"], "its copy shows it by its total"
    assert weight[LLAMA, "bf16"][0] == 2 * 405_853_388_800, "what another checkpoint of it would need is not changed"


@pytest.mark.full
def test_llama_405b_in_fp8_has_less_room_on_eight_cards(book):
    """Three requests of 131,072 tokens: 410 GB of weights would leave room for them, 487 GB do not."""
    asked = "FROM on_several_gpus('h100-sxm', $model, dtype_id := 'fp8', context_tokens := 131072, sequences := 3) SELECT verdict WHERE gpu_count = 8"
    assert book.execute(asked, {"model": LLAMA}).fetchall() == [("no",)]


@pytest.mark.some(2)
# Repositories that hold nothing but what is loaded and a tokenizer: bytes, and what prediction layers in 16 bits add.
@pytest.mark.parametrize(
    ("model_id", "beside_elements"),
    [
        (GEMMA, 0),
        ("moonshotai/Kimi-K3", 0),
        ("nvidia/GLM-5.2-NVFP4", 9_952_920_576),
        ("nvidia/Qwen3.6-35B-A3B-NVFP4", 844_640_768),
        ("Inferact/Qwen3.8-27B-NVFP4", 424_699_392),
        ("ornith-ai/Ornith-1.5-397B-NVFP4", 0),
    ],
)
def test_weights_are_what_the_repository_holds(weight, model_id, beside_elements):
    used = next(r.storage_bytes for r in bundled_snapshot().records if r.model_id == model_id)
    size, reason = weight[model_id, "stored"]
    assert reason is None
    assert used - 2 * beside_elements == pytest.approx(size, rel=0.003)
    assert size <= used


def test_a_format_that_a_checkpoint_is_published_in_is_loaded_as_it_is(any_book):
    different = any_book.execute(
        "SELECT model.model_id FROM model JOIN dtype ON dtype.dtype_id = model.stored_format AND dtype.engine_id IN ('vllm', 'transformers') "
        "AND dtype.bits_per_weight < 16 JOIN weight AS own ON own.model_id = model.model_id AND own.dtype_id = 'stored' "
        "JOIN weight AS named ON named.model_id = model.model_id AND named.dtype_id = model.stored_format "
        "WHERE own.weights_bytes IS DISTINCT FROM named.weights_bytes"
    ).fetchall()
    assert different == []


def test_a_total_that_leaves_open_what_the_rest_is_held_in_gives_no_weights(weight):
    model = "ig1/Qwen3.5-9B-NVFP4"  # what is not in 4 bits may be in 8 or in 16, and its total does not show it
    for dtype in ("stored", "nvfp4"):
        size, reason = weight[model, dtype]
        assert size is None and "whether the rest is held in 8 bits or in 16" in reason
    assert weight[model, "bf16"][0]


def test_parts_are_the_whole_model(any_book):
    wrong = any_book.execute(
        "SELECT model_id FROM stored_part JOIN model USING (model_id) GROUP BY model_id, parameter_count "
        "HAVING sum(element_count) <> parameter_count"
    ).fetchall()
    assert wrong == []
    assert any_book.execute("SELECT count(DISTINCT model_id) FROM stored_part").fetchall()[0][0] > 30


def test_weights_of_a_recipe_never_lie_below_its_format_throughout(any_book):
    """What a list leaves out can only add; a head that it takes in can only save."""
    rows = any_book.execute(
        "SELECT weight.model_id, weights_bytes, parameter_count, stored_format FROM weight JOIN model USING (model_id) "
        "WHERE dtype_id = 'stored' AND weights_bytes IS NOT NULL AND model_id IN (SELECT model_id FROM stored_part)"
    ).fetchall()
    bits = dict(any_book.execute("SELECT dtype_id, bits_per_weight FROM dtype").fetchall())
    assert rows and all(count * bits[kind] / 8 <= size <= 2.001 * count for _, size, count, kind in rows)
