"""What generates answers beside a training: vLLM's share of a card, what it needs to start, what stays while it sleeps, and reasons."""

import math

import pytest

from tests.formulas.at_once import at_once, one_each

GIB = 2**30
CARD, MODEL, LONG = "h100-sxm", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct"
TRAINED = dict(phase_id="lora", dtype_id="bf16", generator="vllm-colocate")


SHORT = TRAINED | {"generator_context_tokens": 2048}
FULL = dict(phase_id="full-finetune", sequences=2, program_version="1.13", model="Qwen/Qwen3-1.7B")
TURNS = FULL | {"generator": "vllm-colocate", "generator_context_tokens": 2048}
SERVER = dict(phase_id="lora", generator="vllm-server")
BETWEEN = {sleeps: TRAINED | {"generator_context_tokens": 4096, "generator_sleeps": sleeps} for sleeps in (False, True)}
FITS = {
    "short": SHORT,
    "long": TRAINED | {"generator_context_tokens": 40960},
    "many answers": SHORT | {"gradient_accumulation": 64},
    "more answers": SHORT | {"gradient_accumulation": 128},
    "all that it reads": TRAINED | {"model": LONG},
    "less than it reads": SHORT | {"model": LONG},
    "too large": TRAINED | {"model": "Qwen/Qwen3-32B", "sequences": 1, "card": "rtx-4090"},
    "asleep": TURNS | {"generator_sleeps": True, "generator_share": 0.05},
    "asleep with much": TURNS | {"generator_sleeps": True, "generator_share": 0.6},
    "awake with much": TURNS | {"generator_share": 0.6},
    "a server": SERVER | {"program_version": "1.9"},
    "the newest server": SERVER,
    "alone": {"phase_id": "qlora"},
    "DPO": {"phase_id": "qlora", "objective": "dpo", "sequences": 1},
    "1.0": SHORT | {"program_version": "1.0"},
    "1.9": SHORT | {"program_version": "1.9"},
    "TRL 1.13.0": SHORT | {"program": "TRL", "program_version": "1.13.0"},
    "1.14": SHORT | {"program_version": "1.14"},
    "1.16": SHORT | {"program_version": "1.16"},
    "no card": TRAINED | {"card": None},
    "between, awake": BETWEEN[False],
    "between, asleep": BETWEEN[True],
}
TRAINS = {"lora": dict(phase_id="lora", dtype_id="bf16"), "full": FULL, "1.9": dict(phase_id="lora", program_version="1.9"), "qlora": dict(phase_id="qlora")}  # fmt: skip
FIRST = ("card", "objective", "model")
USUAL = {"card": CARD, "objective": "grpo", "model": MODEL}


@pytest.fixture(scope="module")
def fits(book):
    """What is said of each case of FITS, and of each that is refused."""
    refused = {name: {"phase_id": "lora"} | case for name, (case, _reason) in REFUSED.items()}
    cases = {name: USUAL | case for name, case in (FITS | refused).items()}
    return one_each(book, "preference_fits_on", FIRST, cases)


@pytest.fixture(scope="module")
def trains(book):
    """The trainings alone."""
    cases = {name: {"objective": "grpo", "model": MODEL} | case for name, case in TRAINS.items()}
    return one_each(book, "preference_of", FIRST[1:], cases)


@pytest.mark.full
def test_what_is_asked_alone_is_what_is_asked_with_others(fits, book):
    said = "phase_id := 'lora', dtype_id := 'bf16', generator := 'vllm-colocate', generator_context_tokens := 2048"
    asked = book.execute(f"FROM preference_fits_on('{CARD}', 'grpo', '{MODEL}', {said})")
    assert fits["short"] == dict(zip([column[0] for column in asked.description], asked.fetchall()[0], strict=True))


def step_bytes(training, cache_token_bytes):
    """A training whose answers another program writes: without what is told of Transformers' cache of them (generation_unused_share) and of the
    tokens that it writes (generation_bytes_per_token)."""
    tokens = training["sequences"] * training["context_tokens"]
    left = math.ceil(2.3 * tokens * cache_token_bytes) + 94_208 * training["context_tokens"]
    return training["total_bytes"] - left


def constants(book, *names):
    return book.execute(f"SELECT {', '.join(names)} FROM constants").fetchall()[0]


def test_the_share_is_of_all_that_cuda_sees(book):
    """vLLM multiplies what the driver gives in all: of cards whose total was read, that to the byte."""
    rows = book.execute("""
        SELECT whole_card_bytes, gpu.memory_mib_cuda * 1048576, gpu.capacity_bytes
        FROM gpu JOIN card_whole USING (gpu_id) WHERE gpu.memory_mib_cuda IS NOT NULL AND gpu.vendor = 'nvidia'
    """).fetchall()
    assert len(rows) > 5
    assert all(abs(told - read) < 1048576 and told >= capacity for told, read, capacity in rows)


@pytest.mark.full
def test_an_engine_that_is_awake_keeps_its_share_beside_the_whole_step(fits, trains, book):
    row, training = fits["short"], trains["lora"]
    (graphs,) = constants(book, "vllm_cuda_graph_bytes")
    (total,) = book.execute("SELECT whole_card_bytes FROM card_whole WHERE gpu_id = $1", [CARD]).fetchall()[0]
    assert row["training_bytes"] == step_bytes(training, 36 * 2 * 8 * 128 * 2) and row["peak_phase"] == "training"
    # 0.3 is what TRL takes where nobody says
    assert row["generator_share"] == 0.3 and abs(row["generator_bytes"] - 0.3 * total - graphs) <= 2
    assert row["total_bytes"] == row["training_bytes"] + row["generator_bytes"]
    assert row["verdict"] == "fits" and row["holds_for"] == "TRL 1.15.0 to 1.16.0, vLLM 0.11 to 0.28"
    assert row["engine_setting"] == (
        'use_vllm=True, vllm_mode="colocate", vllm_gpu_memory_utilization=0.3, vllm_max_model_length=2048'
    )


@pytest.mark.full
def test_what_it_starts_with_is_weights_a_pass_and_one_sequence(fits):
    """Qwen3 8B by hand: 8.19 billion weights in 16 bits, 36 layers of 2 × 8 heads of 128, a pass of 4096 tokens."""
    short, long, many, more = (fits[name] for name in ("short", "long", "many answers", "more answers"))
    a_token = 36 * 2 * 8 * 128 * 2
    assert long["generator_needed_bytes"] - short["generator_needed_bytes"] == a_token * (40960 - 2048)
    beside = short["generator_needed_bytes"] - 2 * 8_190_735_360 - 2048 * a_token
    # (a pass of 4096 tokens 0.4, graphs of 36 layers 1.1, libraries 0.3)
    assert 1.6 * GIB < beside < 1.9 * GIB
    # so many answers at once that their logits are the larger part of the profiling run (151,936 words)
    assert many["generator_needed_bytes"] > short["generator_needed_bytes"]
    assert more["generator_needed_bytes"] - many["generator_needed_bytes"] == pytest.approx(
        8 * 64 * 151_936 * 22, rel=0.001
    )


def test_a_context_whose_cache_does_not_fit_the_share_does_not_start(fits):
    """Nobody who trains Llama 3.1 on 1,024 tokens says how far vLLM reads: it wants a cache of all 131,072."""
    row = fits["all that it reads"]
    assert row["generator_context_tokens"] == 131072 and row["verdict"] == "no" and row["headroom_bytes"] > 0
    assert "vLLM does not start" in row["verdict_reason"] and "generator_context_tokens" in row["verdict_reason"]
    assert fits["less than it reads"]["verdict"] == "fits"
    card = fits["too large"]
    assert card["generator_share_least"] is None and card["verdict"] == "no"


@pytest.mark.full
def test_between_its_bounds_a_share_fits_and_beyond_them_none_does(fits, book):
    cases = []
    for sleeps, row in ((False, fits["between, awake"]), (True, fits["between, asleep"])):
        least, most = row["generator_share_least"], row["generator_share_most"]
        assert 0 < least < most < 1
        shares = (round(least - 0.02, 2), least, most, round(most + 0.01, 2))
        cases += [USUAL | BETWEEN[sleeps] | {"generator_share": share} for share in shares]
    verdicts = [row["verdict"] for (row,) in at_once(book, "preference_fits_on", FIRST, cases)]
    for below, at_least, at_most, above in (verdicts[:4], verdicts[4:]):
        assert (at_least, at_most) == ("fits", "fits") and "fits" not in (below, above)


@pytest.mark.full
def test_asleep_the_larger_phase_counts(fits, trains, book):
    training = trains["full"]
    graphs, libraries = constants(book, "vllm_cuda_graph_bytes", "vllm_non_torch_bytes")
    small, large, awake = (fits[name] for name in ("asleep", "asleep with much", "awake with much"))
    assert small["generator_asleep_bytes"] == graphs + libraries and small["peak_phase"] == "training"
    total_bytes = step_bytes(training, 28 * 2 * 8 * 128 * 4)
    assert small["total_bytes"] == total_bytes + graphs + libraries
    standing = total_bytes - training["activations_bytes"] - training["gradients_bytes"]
    assert large["peak_phase"] == "generation" and large["total_bytes"] == standing + large["generator_bytes"]
    # (tight: the margin of the training lies on all of it)
    assert (large["verdict"], awake["verdict"]) == ("tight", "no") and awake["generator_asleep_bytes"] is None
    assert "vllm_enable_sleep_mode=True" in large["engine_setting"]


@pytest.mark.full
def test_a_server_on_other_cards_is_joined_and_no_more(fits, trains, book):
    (joined,) = constants(book, "nccl_many_gpus_bytes")
    row, newest = fits["a server"], fits["the newest server"]
    assert row["generator_bytes"] == joined and row["generator_share"] is None
    assert row["total_bytes"] == step_bytes(trains["1.9"], 36 * 2 * 8 * 128 * 4) + joined
    assert newest["verdict"] is None and "what trl 1.15 tells vLLM is not described" in newest["unknown_reason"]


@pytest.mark.full
def test_what_trains_alone_is_judged_as_it_is(fits, trains):
    row, dpo = fits["alone"], fits["DPO"]
    assert row["total_bytes"] == trains["qlora"]["total_bytes"] and row["verdict"] == "fits"
    assert row["generator_id"] == "transformers" and row["generator_bytes"] == 0
    assert dpo["generator_id"] is None and dpo["verdict"] == "fits" and dpo["engine_setting"] is None


def test_a_release_between_those_that_were_read_is_answered(fits):
    oldest, own, between, newest = (fits[version] for version in ("1.0", "1.9", "1.14", "1.16"))
    assert own == fits["TRL 1.13.0"] and newest == fits["short"]
    # (up to 1.6 the entropy keeps a copy of the logits)
    assert oldest["training_bytes"] > own["training_bytes"] > between["training_bytes"] > newest["training_bytes"]
    assert oldest["generator_bytes"] == own["generator_bytes"]


def test_without_a_card_there_is_no_share(fits):
    row = fits["no card"]
    assert row["training_bytes"] > 0 and row["generator_needed_bytes"] > 0
    assert row["generator_bytes"] is row["total_bytes"] is row["verdict"] is None
    assert row["unknown_reason"] == "no GPU was named"


VLLM = {"generator": "vllm-colocate"}
REFUSED = {
    "another engine": ({"generator": "sglang"}, "no such generator: sglang (transformers, vllm-colocate, vllm-server)"),
    "an objective without answers": (VLLM | {"objective": "dpo"}, "DPO generates nothing"),
    "a packed base": (VLLM | {"phase_id": "qlora"}, "a vLLM that holds them packed"),
    "a packed checkpoint": (
        VLLM | {"model": "openai/gpt-oss-20b", "program_version": "1.6"},
        "a vLLM that holds them packed",
    ),
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
        "program_version := 1.0 to 1.6, 1.7 to 1.13",
    ),
    "a server that gets packed weights": (
        {"generator": "vllm-server", "program_version": "1.12"},
        "trl 1.12 tells vLLM is not described; known: program_version := 1.0 to 1.9",
    ),
    "the newest": (VLLM | {"program_version": "1.17"}, "how trl 1.17 does GRPO was not counted"),
    "a card too old": (VLLM | {"card": "t4"}, "compute capability 8.0 for bf16"),
    "no such card": (VLLM | {"card": "h10"}, "no such GPU"),
    "no such model": (VLLM | {"model": "nobody/nothing"}, "no such model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_known_has_a_reason_and_no_verdict(fits, case):
    row = fits[case]
    assert row["verdict"] is None and row["verdict_reason"] is None and REFUSED[case][1] in row["unknown_reason"]
