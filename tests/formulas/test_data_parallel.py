"""Servers that share routed experts among data-parallel ranks: what a card holds, by hand from the config, and what cannot be has a reason."""

from __future__ import annotations

import pytest

V3, GLM, QWEN, DENSE = "deepseek-ai/DeepSeek-V3", "zai-org/GLM-4.6", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-8B"
GIB = 2**30
ALL = {"gpu_count": 8, "data_parallel": 8, "expert_parallel": 8}
# of DeepSeek-V3: the three matrices of an expert in fp8
EXPERT = 3 * 7168 * 2048
HEAD = 2 * 129280 * 7168


@pytest.fixture(scope="module")
def asked(footprint_of):
    """footprint_of, each question asked once: no test here changes the book."""
    kept = {}

    def ask(model, **scenario):
        usual = {"dtype_id": "fp8", "engine_id": "vllm", "context_tokens": 8192, "sequences": 64}
        key = (model, *sorted((usual | scenario).items()))
        if key not in kept:
            kept[key] = footprint_of(model, **(usual | scenario))
        return kept[key]

    return ask


def beside_experts(book, model=V3):
    query = "SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'fp8'"
    return book.execute(query, [model]).fetchall()[0][0] - 58 * 256 * EXPERT


def test_a_card_has_all_but_the_experts_whole_and_a_share_of_these(book, asked):
    row = asked(V3, **ALL)
    # what expands the latent of 512 to 128 heads of 128 + 128 stands once more in 16 bits
    copied = 2 * 61 * 512 * 128 * 256
    assert row["weights_bytes"] == pytest.approx(58 * 32 * EXPERT + beside_experts(book) + copied, rel=1e-6)
    assert row["sharding"] == "dp+ep"
    # eight sequences of its own, 512 + 64 elements a token and layer
    assert row["kv_cache_bytes"] == 8 * 8192 * 61 * 576 * 2
    assert asked(V3, gpu_count=8)["kv_cache_bytes"] == 8 * row["kv_cache_bytes"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("engine", "dtype", "copies"), [("vllm", "fp8", 1), ("vllm", "bf16", 0), ("sglang", "bf16", 1)]
)
def test_tensor_parallel_leaves_what_makes_the_latents_whole(book, asked, engine, dtype, copies):
    """Habana's fork of vLLM 0.6 says 79.41 GiB of DeepSeek-R1 on each of 8 devices before it makes the copies; this is 79.27."""
    query = "SELECT weights_bytes, replicated_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2"
    whole, replicated = book.execute(query, [V3, dtype]).fetchall()[0]
    (count,) = book.execute("SELECT parameter_count FROM shape WHERE model_id = $1", [V3]).fetchall()[0]
    latents = 61 * 7168 * (1536 + 576) * whole / count
    copied = copies * 2 * 61 * 512 * 128 * 256
    eight, one = (asked(V3, engine_id=engine, dtype_id=dtype, gpu_count=n)["weights_bytes"] for n in (8, 1))
    expected = replicated + (whole - replicated + 7 * latents + copied) / 8
    assert eight == pytest.approx(expected, abs=2) and one == pytest.approx(whole + copied, abs=2)
    if (engine, dtype) == ("vllm", "fp8"):
        assert (eight - copied / 8) / GIB == pytest.approx(79.41, rel=0.002)


@pytest.mark.full
def test_programs_without_a_description_divide_all_but_what_every_rank_has(asked):
    row = asked("deepseek-ai/DeepSeek-V2-Lite", engine_id="transformers", dtype_id="bf16")
    assert row["weights_bytes"] == asked("deepseek-ai/DeepSeek-V2-Lite", dtype_id="bf16")["weights_bytes"]


@pytest.mark.full
def test_sequences_that_do_not_divide_are_rounded_up(asked):
    assert asked(V3, **ALL, sequences=9)["kv_cache_bytes"] == asked(V3, **ALL, sequences=16)["kv_cache_bytes"]
    assert asked(V3, **ALL, sequences=8)["kv_cache_bytes"] == asked(V3, **ALL, sequences=1)["kv_cache_bytes"]


def test_vllm_gives_the_first_ranks_one_expert_more(book, asked):
    row = asked(V3, data_parallel=24, expert_parallel=24, context_tokens=4096)
    held = row["weights_bytes"] - beside_experts(book) - 2 * 61 * 512 * 128 * 256
    assert held == pytest.approx(58 * 11 * EXPERT, rel=1e-6)


def test_tensor_parallel_within_a_rank_divides_its_attention_and_not_the_shared_experts(book, asked):
    whole, halved = asked(V3, **ALL), asked(V3, gpu_count=8, data_parallel=4, expert_parallel=8)
    assert (halved["tensor_parallel"], halved["sharding"]) == (2, "dp+tp+ep")
    # matrices that make the latents (1536 and 576 wide), norms, routers and shared experts stay whole
    latents = 61 * 7168 * (1536 + 576)
    shared = 58 * EXPERT
    norms_and_routers = book.execute(
        "SELECT replicated_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'fp8'", [V3]
    ).fetchall()[0][0]
    divided = whole["weights_bytes"] - 58 * 32 * EXPERT - latents - shared - norms_and_routers
    assert whole["weights_bytes"] - halved["weights_bytes"] == pytest.approx(divided / 2, rel=1e-3)


@pytest.mark.full
def test_experts_that_are_divided_by_their_width_take_as_much(asked):
    assert asked(V3, gpu_count=8, data_parallel=8)["weights_bytes"] == asked(V3, **ALL)["weights_bytes"]


def test_sglang_divides_head_dense_layers_and_shared_experts_by_all_cards(asked):
    vllm, sglang = asked(V3, **ALL), asked(V3, **ALL, engine_id="sglang")
    dense = 3 * 3 * 7168 * 18432
    assert vllm["weights_bytes"] - sglang["weights_bytes"] == pytest.approx(
        7 / 8 * (HEAD + dense + 58 * EXPERT), rel=1e-6
    )
    assert sglang["kv_cache_bytes"] == vllm["kv_cache_bytes"]
    # each rank reads an eighth of a chunk; of vLLM as much as all
    assert sglang["activations_bytes"] < vllm["activations_bytes"] / 4


@pytest.mark.full
def test_work_spaces_have_the_size_that_is_published_of_the_worst_case(asked):
    """20 GiB of GLM-4.6 on 16 ranks of 8192 tokens (vllm-project/vllm pull request 57270), beside what goes in and out."""
    row = asked(GLM, data_parallel=16, expert_parallel=16, sequences=16)
    spaces = 16 * 8192 * 8 * 2 * (5120 + 5120)
    assert spaces == 20 * GIB
    assert spaces + 16 * 8192 * 2 * 2 * 5120 < row["activations_bytes"] < 1.2 * spaces


@pytest.mark.full
def test_experts_in_mxfp4_are_rounded_up_once_for_each_that_a_card_has(asked):
    """gpt-oss-120b: 128 experts of 2880, rounded up to 3072 by 2944, or 1536 where two cards divide each."""
    named = {"dtype_id": "mxfp4", "gpu_count": 2, "data_parallel": 2}
    whole, divided = (asked("openai/gpt-oss-120b", **named, expert_parallel=n)["weights_bytes"] for n in (2, 1))
    rounded = lambda experts, width, held: experts * 36 * 3 * (3072 * width - 2880 * held) * 4.25 / 8  # noqa: E731
    assert whole - divided == pytest.approx(rounded(64, 2944, 2880) - rounded(128, 1536, 1440), rel=1e-3)


@pytest.mark.full
def test_one_rank_is_what_was_always_told(footprint_of):
    for model in (V3, DENSE):
        alone = footprint_of(model, engine_id="vllm", gpu_count=8)
        assert footprint_of(model, engine_id="vllm", gpu_count=8, data_parallel=1, expert_parallel=1) == alone


@pytest.mark.full
def test_a_dense_model_is_copied(footprint_of):
    one = footprint_of(DENSE, engine_id="vllm", context_tokens=8192, sequences=2)
    copies = footprint_of(DENSE, engine_id="vllm", context_tokens=8192, sequences=3, data_parallel=2)
    for name in ("weights_bytes", "kv_cache_bytes", "state_bytes"):
        assert copies[name] == one[name]
    assert copies["gpu_count"] == 2


@pytest.mark.full
def test_states_of_recurrent_layers_are_of_its_own_sequences_too(footprint_of):
    named = {"engine_id": "vllm", "context_tokens": 4096}
    one = footprint_of("Qwen/Qwen3-Next-80B-A3B-Instruct", **named, sequences=3)
    spread = footprint_of("Qwen/Qwen3-Next-80B-A3B-Instruct", **named, sequences=6, data_parallel=2, expert_parallel=2)
    assert spread["state_bytes"] == one["state_bytes"] > 0


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "scenario", "reason"),
    [
        (V3, {"data_parallel": 0}, "start at 1"),
        (V3, {"gpu_count": 8, "data_parallel": 3}, "gpu_count 8 is no multiple of data_parallel 3"),
        (V3, {"gpu_count": 8, "data_parallel": 4, "tensor_parallel": 4}, "gpu_count 8 is not data_parallel × tensor_parallel = 4 × 4"),
        (V3, {"gpu_count": 8, "data_parallel": 8, "expert_parallel": 4}, "among all of its GPUs or none: expert_parallel := 8 or 1"),
        (V3, {"expert_parallel": 8}, "more than the 1 GPUs: gpu_count := 8"),
        (V3, {"gpu_count": 8, "data_parallel": 4, "pipeline_parallel": 2}, "without pipeline stages: pipeline_parallel := 1"),
        (V3, {"gpu_count": 6, "data_parallel": 6, "expert_parallel": 4, "engine_id": "sglang"}, "gpu_count 6 is no multiple of expert_parallel 4"),
        (V3, {"data_parallel": 24, "expert_parallel": 24, "engine_id": "sglang"}, "256 experts do not divide by expert_parallel 24"),
        (V3, {"data_parallel": 512, "expert_parallel": 512}, "256 experts are fewer than expert_parallel 512"),
        (QWEN, {"data_parallel": 5}, "experts of width 768 do not divide among 5 GPUs: expert_parallel := 5"),
        (DENSE, {"gpu_count": 2, "expert_parallel": 2}, "the model has no routed experts"),
        (DENSE, {"data_parallel": 2, "engine_id": "sglang"}, "was read for models of type deepseek_v2"),
        (DENSE, {"data_parallel": 2, "dtype_id": "bf16", "engine_id": "transformers"}, "engine_id := vllm or sglang"),
        (V3, {"gpu_count": 8, "tensor_parallel": 2}, "(or data_parallel := 4)"),
        (V3, {"data_parallel": 2, "context_parallel": 2}, "for training"),
        (V3, {"data_parallel": 2.5}, "no whole number"),
        (V3, {"data_parallel": 2_000_000}, "the most that is worked out"),
        (V3, {"gpu_count": 8, "sharding": "dp+ep"}, "asked for by data_parallel and expert_parallel"),
        (V3, {"phase_id": "full-finetune", "dtype_id": "bf16", "engine_id": None, "data_parallel": 2}, "data_parallel belongs to the phases of inference"),
    ],
)  # fmt: skip
def test_what_cannot_be_says_what_can(asked, model, scenario, reason):
    row = asked(model, **scenario)
    assert reason in row["unknown_reason"]
    assert row["total_bytes"] is None


@pytest.mark.full
def test_what_is_told_can_be_asked_back(asked):
    row = asked(V3, **ALL)
    assert asked(V3, **ALL, sharding=row["sharding"]) == row
    assert asked(V3, data_parallel=8, expert_parallel=8) == row


@pytest.mark.full
@pytest.mark.parametrize(
    ("scenario", "setting"),
    [
        ({"engine_id": "vllm", **ALL}, "--tensor-parallel-size 1 --data-parallel-size 8 --enable-expert-parallel"),
        ({"engine_id": "vllm", "gpu_count": 8, "expert_parallel": 8}, "--enable-expert-parallel"),
        ({"engine_id": "sglang", "gpu_count": 8, "data_parallel": 4, "expert_parallel": 8}, "--tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 --mem-fraction-static 0.6"),
    ],
)  # fmt: skip
def test_the_engine_is_told_how(book, scenario, setting):
    named = "".join(f", {name} := ${name}" for name in scenario)
    query = f"SELECT verdict, engine_setting FROM fits_on('h200-sxm', '{V3}', dtype_id := 'fp8', context_tokens := 8192, sequences := 16{named})"
    verdict, said = book.execute(query, scenario).fetchall()[0]
    assert verdict == "fits"
    assert said.startswith(setting)


@pytest.mark.full
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_from_one_card_to_many_each_serves_its_share(book, footprint_of, engine):
    query = f"""SELECT gpu_count, sharding, stages, total_bytes, max_sequences, unknown_reason FROM on_several_gpus('h200-sxm', '{V3}',
        dtype_id := 'fp8', engine_id := '{engine}', context_tokens := 8192, sequences := 16, data_parallel := true)"""
    [(capacity,)] = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = 'h200-sxm'").fetchall()
    rows = {row[0]: row[1:] for row in book.execute(query).fetchall()}
    for count in (8, 16):
        sharding, stages, total, most, _reason = rows[count]
        named = {"dtype_id": "fp8", "engine_id": engine, "context_tokens": 8192}
        degrees = {"data_parallel": count, "expert_parallel": count}
        assert (sharding, stages) == ("dp+ep", 1)
        assert footprint_of(V3, **named, **degrees, sequences=16)["total_bytes"] == total
        assert most % count == 0
        row = footprint_of(V3, **named, **degrees, sequences=most)
        assert row["total_bytes"] * (1 + row["error_band"]) <= capacity * (1 + 1e-6)
    assert (rows[24][2] is None) == (engine == "sglang")


@pytest.mark.full
def test_a_flag_that_is_none_has_a_reason(book):
    query = f"SELECT DISTINCT unknown_reason FROM on_several_gpus('h200-sxm', '{V3}', data_parallel := 'perhaps')"
    assert book.execute(query).fetchall() == [("data_parallel := perhaps is neither true nor false",)]
