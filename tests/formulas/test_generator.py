"""What generates answers beside a training: vLLM's share of a card, what it needs to start, what stays while it sleeps, and reasons."""

import math

import pytest

GIB = 2**30
CARD, MODEL, LONG = "h100-sxm", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct"
TRAINED = dict(phase_id="lora", dtype_id="bf16", generator="vllm-colocate")


@pytest.fixture(scope="module")
def fits_on(book):
    def ask(model=MODEL, card=CARD, objective="grpo", **said):
        named = "".join(f", {name} := ${name}" for name in said)
        result = book.execute(
            f"FROM preference_fits_on($card, $objective, $model{named})",
            {"card": card, "objective": objective, "model": model, **said},
        )
        names = [column[0] for column in result.description]
        (row,) = result.fetchall()
        return dict(zip(names, row, strict=True))

    return ask


def preference_of(book, model=MODEL, **said):
    named = "".join(f", {name} := ${name}" for name in said)
    result = book.execute(f"FROM preference_of('grpo', $model{named})", {"model": model, **said})
    return dict(zip([column[0] for column in result.description], result.fetchone(), strict=True))


def step_bytes(training, cache_token_bytes):
    """A training whose answers another program writes: without what Transformers' cache of them leaves (generation_unused_share)."""
    tokens = training["sequences"] * training["context_tokens"]
    return training["total_bytes"] - math.ceil(2.3 * tokens * cache_token_bytes)


def constants(book, *names):
    return book.execute(f"SELECT {', '.join(names)} FROM constants").fetchone()


def test_the_share_is_of_all_that_cuda_sees(book):
    """vLLM multiplies what the driver gives in all: of cards whose total was read, that to the byte."""
    rows = book.execute("""
        SELECT whole_card_bytes, gpu.memory_mib_cuda * 1048576, gpu.capacity_bytes
        FROM gpu JOIN card_whole USING (gpu_id) WHERE gpu.memory_mib_cuda IS NOT NULL AND gpu.vendor = 'nvidia'
    """).fetchall()
    assert len(rows) > 5
    assert all(abs(told - read) < 1048576 and told >= capacity for told, read, capacity in rows)


def test_an_engine_that_is_awake_keeps_its_share_beside_the_whole_step(fits_on, book):
    row = fits_on(**TRAINED, generator_context_tokens=2048)
    (graphs,) = constants(book, "vllm_cuda_graph_bytes")
    (total,) = book.execute("SELECT whole_card_bytes FROM card_whole WHERE gpu_id = $1", [CARD]).fetchone()
    training = preference_of(book, phase_id="lora", dtype_id="bf16")
    assert row["training_bytes"] == step_bytes(training, 36 * 2 * 8 * 128 * 2) and row["peak_phase"] == "training"
    # 0.3 is what TRL takes where nobody says
    assert row["generator_share"] == 0.3 and abs(row["generator_bytes"] - 0.3 * total - graphs) <= 2
    assert row["total_bytes"] == row["training_bytes"] + row["generator_bytes"]
    assert row["verdict"] == "fits" and row["holds_for"] == "TRL 1.15.0 to 1.16.0, vLLM 0.11 to 0.28"
    assert row["engine_setting"] == (
        'use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.3, vllm_max_model_length=2048'
    )


def test_what_it_starts_with_is_weights_a_pass_and_one_sequence(fits_on):
    """Qwen3 8B by hand: 8.19 billion weights in 16 bits, 36 layers of 2 × 8 heads of 128, a pass of 4096 tokens."""
    short, long = (fits_on(**TRAINED, generator_context_tokens=tokens) for tokens in (2048, 40960))
    a_token = 36 * 2 * 8 * 128 * 2
    assert long["generator_needed_bytes"] - short["generator_needed_bytes"] == a_token * (40960 - 2048)
    beside = short["generator_needed_bytes"] - 2 * 8_190_735_360 - 2048 * a_token
    # (a pass of 4096 tokens, graphs and libraries)
    assert 0.9 * GIB < beside < 1.6 * GIB
    # so many answers at once that their logits are the larger part of the profiling run (151,936 words)
    many = fits_on(**TRAINED, generator_context_tokens=2048, gradient_accumulation=64)
    more = fits_on(**TRAINED, generator_context_tokens=2048, gradient_accumulation=128)
    assert many["generator_needed_bytes"] > short["generator_needed_bytes"]
    assert more["generator_needed_bytes"] - many["generator_needed_bytes"] == pytest.approx(
        8 * 64 * 151_936 * 38.5, rel=0.001
    )


def test_a_context_whose_cache_does_not_fit_the_share_does_not_start(fits_on):
    """Nobody who trains Llama 3.1 on 1,024 tokens says how far vLLM reads: it wants a cache of all 131,072."""
    row = fits_on(LONG, **TRAINED)
    assert row["generator_context_tokens"] == 131072 and row["verdict"] == "no" and row["headroom_bytes"] > 0
    assert "vLLM does not start" in row["verdict_reason"] and "generator_context_tokens" in row["verdict_reason"]
    assert fits_on(LONG, **TRAINED, generator_context_tokens=2048)["verdict"] == "fits"
    card = fits_on("Qwen/Qwen3-32B", **TRAINED | {"sequences": 1}, card="rtx-4090")
    assert card["generator_share_least"] is None and card["verdict"] == "no"


@pytest.mark.parametrize("sleeps", [False, True])
def test_between_its_bounds_a_share_fits_and_beyond_them_none_does(fits_on, sleeps):
    asked = TRAINED | dict(generator_context_tokens=4096, generator_sleeps=sleeps)
    row = fits_on(**asked)
    least, most = row["generator_share_least"], row["generator_share_most"]
    assert 0 < least < most < 1
    verdicts = [
        fits_on(**asked, generator_share=share)["verdict"]
        for share in (round(least - 0.02, 2), least, most, round(most + 0.01, 2))
    ]
    assert verdicts[1:3] == ["fits", "fits"] and "fits" not in (verdicts[0], verdicts[3])


def test_asleep_the_larger_phase_counts(fits_on, book):
    trained = dict(phase_id="full-finetune", sequences=2, program_version="1.13")
    said = trained | dict(generator="vllm-colocate", generator_context_tokens=2048)
    model = "Qwen/Qwen3-1.7B"
    training = preference_of(book, model, **trained)
    total_bytes = step_bytes(training, 28 * 2 * 8 * 128 * 4)
    graphs, libraries = constants(book, "vllm_cuda_graph_bytes", "vllm_non_torch_bytes")
    small = fits_on(model, **said, generator_sleeps=True, generator_share=0.05)
    assert small["generator_asleep_bytes"] == graphs + libraries and small["peak_phase"] == "training"
    assert small["total_bytes"] == total_bytes + graphs + libraries
    large = fits_on(model, **said, generator_sleeps=True, generator_share=0.6)
    standing = total_bytes - training["activations_bytes"] - training["gradients_bytes"]
    assert large["peak_phase"] == "generation" and large["total_bytes"] == standing + large["generator_bytes"]
    awake = fits_on(model, **said, generator_share=0.6)
    assert (large["verdict"], awake["verdict"]) == ("fits", "no") and awake["generator_asleep_bytes"] is None
    assert "vllm_enable_sleep_mode=True" in large["engine_setting"]


def test_a_server_on_other_cards_is_joined_and_no_more(fits_on, book):
    (joined,) = constants(book, "nccl_many_gpus_bytes")
    row = fits_on(phase_id="lora", generator="vllm-server", program_version="1.9")
    assert row["generator_bytes"] == joined and row["generator_share"] is None
    training = preference_of(book, phase_id="lora", program_version="1.9")
    assert row["total_bytes"] == step_bytes(training, 36 * 2 * 8 * 128 * 4) + joined
    newest = fits_on(phase_id="lora", generator="vllm-server")
    assert newest["verdict"] is None and "what trl 1.15 tells vLLM is not described" in newest["unknown_reason"]


def test_what_trains_alone_is_judged_as_it_is(fits_on, book):
    row = fits_on(phase_id="qlora")
    assert row["total_bytes"] == preference_of(book, phase_id="qlora")["total_bytes"] and row["verdict"] == "fits"
    assert row["generator_id"] == "transformers" and row["generator_bytes"] == 0
    dpo = fits_on(objective="dpo", phase_id="qlora", sequences=1)
    assert dpo["generator_id"] is None and dpo["verdict"] == "fits" and dpo["engine_setting"] is None


def test_a_release_between_those_that_were_read_is_answered(fits_on):
    asked = TRAINED | dict(generator_context_tokens=2048)
    own = fits_on(**asked, program_version="1.9")
    assert own == fits_on(**asked, program="TRL", program_version="1.13.0")
    oldest = fits_on(**asked, program_version="1.0")
    # (up to 1.6 the entropy keeps a copy of the logits)
    assert oldest["training_bytes"] > own["training_bytes"]
    assert oldest["generator_bytes"] == own["generator_bytes"]
    newest = fits_on(**asked, program_version="1.16")
    assert newest == fits_on(**asked)
    between = fits_on(**asked, program_version="1.14")
    assert newest["training_bytes"] < between["training_bytes"] < own["training_bytes"]


def test_without_a_card_there_is_no_share(fits_on):
    row = fits_on(card=None, **TRAINED)
    assert row["training_bytes"] > 0 and row["generator_needed_bytes"] > 0
    assert row["generator_bytes"] is row["total_bytes"] is row["verdict"] is None
    assert row["unknown_reason"] == "no GPU was named"


VLLM = {"generator": "vllm-colocate"}
REFUSED = {
    "another engine": ({"generator": "sglang"}, "no such generator: sglang (transformers, vllm-colocate, vllm-server)"),
    "an objective without answers": (VLLM | {"objective": "dpo"}, "DPO generates nothing"),
    "a packed base": (VLLM | {"phase_id": "qlora"}, "a vLLM that holds them packed"),
    "a packed checkpoint": (VLLM | {"model": "openai/gpt-oss-20b"}, "a vLLM that holds them packed"),
    "more than a card": (VLLM | {"generator_share": 1.1}, "above 0 and up to 1"),
    "no share": (VLLM | {"generator_share": "much"}, "above 0 and up to 1"),
    "no flag": (VLLM | {"generator_sleeps": "maybe"}, "true or false"),
    "a share of nobody": ({"generator_share": 0.3}, "generator := vllm-colocate"),
    "more cards than train": (VLLM | {"generator_tensor_parallel": 2}, "divides gpu_count"),
    "beyond the model": (VLLM | {"generator_context_tokens": 50000}, "beyond the 40960 tokens"),
    "no number of tokens": (VLLM | {"generator_context_tokens": "long"}, "no whole number"),
    "sleep and segments": (VLLM | {"generator_sleeps": True, "expandable_segments": True}, "expandable_segments"),
    "sleep of several": (
        VLLM | {"generator_sleeps": True, "generator_tensor_parallel": 2, "gpu_count": 2, "sharding": "ddp"},
        "is not settled",
    ),
    "Unsloth": (VLLM | {"program": "unsloth"}, "fast_inference"),
    "a release that nobody read": (
        VLLM | {"program": "trl", "program_version": "0.29"},
        "program_version := 1.0 to 1.13",
    ),
    "a server that gets packed weights": (
        {"generator": "vllm-server", "program_version": "1.12"},
        "trl 1.12 tells vLLM is not described; known: program_version := 1.0 to 1.9",
    ),
    "the newest": (VLLM | {"program_version": "1.16"}, "since TRL 1.16"),
    "a card too old": (VLLM | {"card": "t4"}, "compute capability 8.0 for bf16"),
    "no such card": (VLLM | {"card": "h10"}, "no such GPU"),
    "no such model": (VLLM | {"model": "nobody/nothing"}, "no such model"),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_known_has_a_reason_and_no_verdict(fits_on, case):
    asked, reason = REFUSED[case]
    row = fits_on(**{"phase_id": "lora"} | asked)
    assert row["verdict"] is None and row["verdict_reason"] is None and reason in row["unknown_reason"]
