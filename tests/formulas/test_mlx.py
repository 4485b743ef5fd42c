"""MLX LM on Apple's GPUs: what its chunks, caches and formats hold, and what is refused rather than guessed."""

from __future__ import annotations

import pytest

QWEN3 = "Qwen/Qwen3-8B"
MLX = {"dtype_id": "mlx-4bit", "engine_id": "mlx-lm"}


@pytest.mark.full
def test_each_format_takes_its_bits_and_two_16_bit_numbers_per_group(footprint_of, book):
    parameters = book.execute("SELECT parameter_count FROM model WHERE model_id = $1", [QWEN3]).fetchall()[0][0]
    for dtype, bits in (("mlx-8bit", 8.5), ("mlx-4bit", 4.5), ("mlx-4bit-g32", 5.0), ("mlx-mxfp4", 4.25)):
        weights = footprint_of(QWEN3, dtype_id=dtype, context_tokens=512)["weights_bytes"]
        assert weights * 8 / parameters == pytest.approx(bits, rel=0.002), dtype


def test_embedding_and_head_are_packed_but_norms_are_not(book):
    held = book.execute(
        "SELECT tensor_class, sum(bytes) * 8 / sum(element_count) FROM tensor_bytes WHERE model_id = $1 AND dtype_id = 'mlx-4bit' "
        "GROUP BY 1",
        [QWEN3],
    ).fetchall()
    bits = dict(held)
    assert bits["embedding"] == bits["head"] == bits["attention"] == pytest.approx(4.5)
    assert bits["norm"] == 16


def test_a_matrix_whose_rows_do_not_fill_groups_stays_in_16_bits(book):
    bits = book.execute(
        """
        SELECT DISTINCT tensor.in_features % format.group_elements = 0 AS fills, bytes * 8 / tensor.element_count AS bits
        FROM tensor_bytes AS tensor JOIN element_format AS format USING (dtype_id, operator, tensor_class, role)
        WHERE dtype_id = 'mlx-4bit' AND format.group_elements IS NOT NULL AND tensor.in_features IS NOT NULL
        """
    ).fetchall()
    assert {fills for fills, _ in bits} == {True, False}, "no model of the snapshot has such a matrix"
    assert all(value == pytest.approx(4.5 if fills else 16, abs=0.01) for fills, value in bits)


@pytest.mark.parametrize(
    ("model", "dtype", "text_mib"), [("Qwen/Qwen3.5-9B", "mlx-4bit", 4805), ("google/gemma-3-4b-it", "bf16", 7401)]
)
def test_what_sees_and_hears_is_left_out_since_its_classes_drop_it(footprint_of, book, model, dtype, text_mib):
    """mlx_lm drops them in `sanitize`, before any of their arrays is read; other programs load them."""
    row = footprint_of(model, dtype_id=dtype, engine_id="mlx-lm", context_tokens=512)
    whole, towers = book.execute(
        "SELECT weights_bytes, tower_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2", [model, dtype]
    ).fetchall()[0]
    assert row["weights_bytes"] == whole - towers and round(row["weights_bytes"] / 2**20) == text_mib
    if dtype == "bf16":
        assert (
            footprint_of(model, dtype_id=dtype, engine_id="llama.cpp", context_tokens=512)["weights_bytes"]
            > whole - towers
        )


def test_every_architecture_whose_towers_are_left_out_is_one_that_is_loaded(book):
    rows = book.execute("SELECT model_types FROM engine_gap WHERE engine_id = 'mlx-lm' AND gap = 'load'").fetchall()
    unloaded = {name for (types,) in rows for name in types.split()}
    rows = book.execute("SELECT model_types FROM engine_part WHERE engine_id = 'mlx-lm'").fetchall()
    assert rows and not unloaded & {name for (types,) in rows for name in types.split()}


@pytest.mark.parametrize(
    ("model", "dtype", "context", "reported"),
    [
        ("google/gemma-4-E4B-it", "mlx-8bit", 1152, 8.95e9),  # jundot/omlx issue 1789
        ("Qwen/Qwen3.5-35B-A3B", "mlx-8bit", 16512, 39.14e9),  # jundot/omlx issue 1212
    ],
)
def test_peaks_that_were_reported_of_text_alone_are_told_and_little_more(footprint_of, model, dtype, context, reported):
    told = footprint_of(model, dtype_id=dtype, context_tokens=context)["total_bytes"]
    assert reported <= told < 1.03 * reported


@pytest.mark.some(1)
@pytest.mark.parametrize(("asked", "held"), [(1, 256), (2048, 2048), (2049, 2304)])
def test_a_cache_grows_in_steps_of_256_tokens(footprint_of, asked, held):
    row = footprint_of(QWEN3, **MLX, context_tokens=asked)
    assert row["kv_cache_bytes"] + row["kv_padding_bytes"] == held * row["kv_cache_bytes"] // asked


def test_a_window_keeps_what_is_read_at_a_time_and_an_unused_one_the_whole_context(footprint_of):
    long = {"context_tokens": 32768}
    gemma = footprint_of("google/gemma-3-27b-it", **MLX, **long)
    assert gemma["kv_padding_bytes"] > 0
    # Gemma 2 has windows too, but its module caches everything
    whole = footprint_of("google/gemma-2-9b-it", **MLX, context_tokens=8192)
    assert whole["kv_padding_bytes"] == pytest.approx(whole["kv_cache_bytes"] / 3, rel=0.01)


def test_only_a_chunk_of_the_prompt_is_alive_at_a_time(footprint_of):
    """Heads of 128 have a fused kernel: beyond a chunk only the copies of a growing cache are added."""
    short, long = (footprint_of(QWEN3, **MLX, context_tokens=n) for n in (4096, 8192))
    one_layer = (long["kv_cache_bytes"] - short["kv_cache_bytes"]) / 36
    assert long["activations_bytes"] - short["activations_bytes"] == pytest.approx(2 * one_layer, rel=1e-6)


@pytest.mark.full
def test_heads_without_a_fused_kernel_hold_their_scores(footprint_of):
    """16 heads of 256, 2048 tokens against the context in 16 bits, and two copies of a layer's cache of 2 × 2 × 256 elements."""
    short, long = (footprint_of("Qwen/Qwen3.6-35B-A3B", **MLX, context_tokens=n) for n in (65536, 131072))
    per_token = (long["activations_bytes"] - short["activations_bytes"]) / 65536
    assert per_token == pytest.approx(2 * 16 * 2048 + 2 * 2 * 1024, rel=1e-6)


@pytest.mark.parametrize(("context", "read"), [(1000, 1000), (2560, 2560), (4000, 2560)])
def test_scores_of_a_window_are_of_it_and_the_chunk_that_is_read(book, context, read):
    """8 heads of 96 have no fused kernel; a rotating cache keeps 512 tokens and the 2048 of a chunk."""
    layer = "{'mechanism': 'sliding', 'head_count': 8, 'query_width': 768, 'context_width': 768, 'window_tokens': 512}"
    asked = f"""
        SELECT scores_bytes_mlx({{'mixers': [{layer}], 'windowed_engines': ['mlx-lm'], 'has_score_cap': false}},
            {{'context_tokens': $1, 'compute_bytes': 2}}, constants)
        FROM constants_row
    """
    assert book.execute(asked, [context]).fetchall()[0][0] == 2 * 8 * min(context, 2048) * read


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "scenario", "why"),
    [
        ("ibm-granite/granite-3.3-8b-instruct", {}, "table engine_gap"),
        ("sentence-transformers/all-MiniLM-L6-v2", {"context_tokens": 256}, "cannot load"),
        ("deepseek-ai/DeepSeek-V2-Lite", {}, "not known: it caches whole keys and values of a latent attention"),
        (QWEN3, {"gpu_count": 2}, "several machines"),
        (QWEN3, {"phase_id": "full-finetune", "engine_id": None}, "gradients cannot flow"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", {"images": 1}, "reads text only"),
    ],
)
def test_what_is_not_known_is_refused_with_a_reason(footprint_of, model, scenario, why):
    row = footprint_of(model, **(MLX | {"context_tokens": 2048} | scenario))
    assert row["total_bytes"] is None
    assert why in row["unknown_reason"]


def test_granite_in_16_bits_is_answered(footprint_of):
    assert footprint_of("ibm-granite/granite-3.3-8b-instruct", dtype_id="bf16", engine_id="mlx-lm")["total_bytes"]


def test_formats_of_mlx_have_verdicts_on_apple_alone_and_no_other_program_loads_them(book):
    runs = book.execute(
        "SELECT DISTINCT r.engine_id, gpu.vendor, r.runs FROM runs_on AS r JOIN gpu USING (gpu_id) WHERE r.dtype_id LIKE 'mlx-%'"
    ).fetchall()
    assert {(engine, vendor) for engine, vendor, does in runs if does} == {("mlx-lm", "apple"), ("mlx-vlm", "apple")}
    others = book.execute(
        "SELECT DISTINCT dtype_id FROM runs_on WHERE engine_id = 'mlx-lm' AND runs AND dtype_id NOT LIKE 'mlx-%' ORDER BY 1"
    ).fetchall()
    assert [dtype for (dtype,) in others] == ["bf16", "fp16", "fp32"]


def test_a_buffer_that_a_server_ran_out_at_is_that_of_four_prompts(book):
    """0xSero/local-ai-registry pull 43 (mlx_lm.server 0.31.3): "Attempting to allocate 22011707392 bytes". One prompt takes a quarter of it."""
    asked = "{'context_tokens': 83968, 'sequences': $1, 'compute_bytes': 2}"
    scores = f"""
        SELECT chunk_prompts_mlx({asked}, constants) * scores_bytes_mlx(model, {asked}, constants)
        FROM shape_row CROSS JOIN constants_row WHERE model_id = 'Qwen/Qwen3.5-9B'
    """
    assert [book.execute(scores, [n]).fetchall()[0][0] for n in (4, 1)] == [22011707392, 22011707392 / 4]


@pytest.mark.full
def test_its_server_is_told_how_many_prompts_are_counted(book):
    """It reads 8 and writes 32 together by itself (mlx_lm/server.py), also what a client without a stream gave up."""
    told = "SELECT engine_setting FROM fits_on('m4-pro-48gb', 'Qwen/Qwen3-8B', dtype_id := 'mlx-4bit', context_tokens := 4096, sequences := $1)"
    assert [book.execute(told, [n]).fetchall()[0][0] for n in (1, 12)] == [
        "--prompt-concurrency 1 --decode-concurrency 1",
        "--prompt-concurrency 8 --decode-concurrency 12",
    ]


def test_mlx_vlm_holds_what_sees_and_the_embeddings_of_the_whole_prompt(footprint_of, book):
    """mlx_vlm 0.7.10 loads the tower, embeds the prompt at once, and reads it in the chunks of MLX LM."""
    model, asked = "Qwen/Qwen3.5-9B", {"dtype_id": "mlx-4bit", "context_tokens": 16384}
    text, whole = (footprint_of(model, engine_id=engine, **asked) for engine in ("mlx-lm", "mlx-vlm"))
    (tower,) = book.execute(
        "SELECT tower_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'mlx-4bit'", [model]
    ).fetchall()[0]
    assert whole["weights_bytes"] - text["weights_bytes"] == tower > 8e8
    assert whole["activations_bytes"] - text["activations_bytes"] == pytest.approx(16384 * 2 * 4096, rel=1e-6)
    assert (whole["kv_cache_bytes"], whole["state_bytes"]) == (text["kv_cache_bytes"], text["state_bytes"])


@pytest.mark.parametrize(
    ("model", "reported_gb"), [("Qwen/Qwen3.5-35B-A3B", 24), ("Qwen/Qwen3.8-27B", 21), ("Qwen/Qwen3.5-9B", 10)]
)
def test_peaks_of_mlx_vlm_that_others_saw_lie_between_short_and_long_prompts(footprint_of, model, reported_gb):
    """With one photograph, of which nobody says how many tokens it was (Blaizzy/mlx-vlm issues 2009 and 2159, in two digits)."""
    short, long = (
        footprint_of(model, dtype_id="mlx-4bit", engine_id="mlx-vlm", context_tokens=n)["total_bytes"] / 1e9
        for n in (2048, 32768)
    )
    assert short < reported_gb < long


def test_what_mlx_vlm_was_not_read_for_has_a_reason(footprint_of):
    assert (
        "was read for models of type" in footprint_of(QWEN3, dtype_id="mlx-4bit", engine_id="mlx-vlm")["unknown_reason"]
    )
    seen = footprint_of("Qwen/Qwen3.5-9B", dtype_id="mlx-4bit", engine_id="mlx-vlm", context_tokens=8192, images=1)
    assert seen["unknown_reason"] == "what MLX-VLM holds while it sees an image is not counted"
