"""Speculative decoding: what a draft adds to its model in each engine that was read, and reasons for what it does not take."""

import pytest

from pipeline.book.facts import read_facts
from tests.formulas.at_once import one_each

MODEL, DRAFT = "Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B"


HEAD = "RedHatAI/Qwen3-8B-speculator.eagle3"
SHORTER, BEYOND = "HuggingFaceTB/SmolLM2-135M-Instruct", 9192
IN_SGLANG = dict(engine_id="sglang", dtype_id="bf16", context_tokens=8192, sequences=4)


@pytest.fixture(scope="module")
def pairs(book):
    """What is said of each pair."""
    head, mtp = dict(model="Qwen/Qwen3-8B", draft=HEAD), dict(draft="mtp")
    on_vllm = dict(engine_id="vllm", dtype_id="bf16", context_tokens=8192)
    cases = {name: case for name, (case, _reason) in REFUSED.items()} | {
        "llama.cpp": dict(dtype_id="gguf-q4_k_m", draft_dtype_id="gguf-q8_0", context_tokens=16384, kv_dtype_id="q8_0"),
        "vLLM": dict(dtype_id="fp8", engine_id="vllm", gpu_count=2),
        "beyond its draft": dict(draft=SHORTER, context_tokens=BEYOND, engine_id="transformers"),
        "a head": head | on_vllm,
        "a head on two cards": head | on_vllm | {"gpu_count": 2},
        "a head in SGLang": head | IN_SGLANG,
        "prediction layers": mtp | on_vllm | {"model": "Qwen/Qwen3.5-9B", "context_tokens": 8192},
        "prediction layers in fp8": mtp
        | dict(model="deepseek-ai/DeepSeek-V3", engine_id="vllm", dtype_id="fp8", gpu_count=8),
        "prediction layers of packed weights": mtp
        | dict(model="deepseek-ai/DeepSeek-V3", engine_id="sglang", dtype_id="awq-int4", gpu_count=8),
        "another vocabulary in llama.cpp": dict(
            model="Qwen/Qwen2.5-72B-Instruct", draft="Qwen/Qwen2.5-0.5B-Instruct", dtype_id="gguf-q4_k_m"
        ),
    }
    cases |= {model: mtp | dict(model=model, engine_id="vllm", dtype_id=dtype) for model, (dtype, *_) in LOADED.items()}
    cases |= {
        model: mtp | dict(model=model, dtype_id="gguf-q4_k_m", context_tokens=tokens, kv_dtype_id="q8_0")
        for model, (tokens, _told) in CONTEXTS.items()
    }
    usual = {"model": MODEL, "draft": DRAFT}
    return one_each(book, "speculative_of", tuple(usual), {name: usual | case for name, case in cases.items()})


@pytest.mark.full
def test_what_is_asked_alone_is_what_is_asked_with_others(book, pairs):
    asked = book.execute(f"FROM speculative_of('{MODEL}', '{DRAFT}', dtype_id := 'fp8', engine_id := 'vllm', gpu_count := 2)")  # fmt: skip
    assert asked.fetchall() == [tuple(pairs["vLLM"].values())]


def held(row):
    return row["kv_cache_bytes"] + row["kv_padding_bytes"] + row["state_bytes"]


@pytest.mark.full
def test_llama_cpp_gives_the_draft_a_cache_and_a_buffer_of_its_own_in_one_process(pairs, footprint_of):
    both = pairs["llama.cpp"]
    model = footprint_of(MODEL, dtype_id="gguf-q4_k_m", context_tokens=16384, kv_dtype_id="q8_0")
    # a draft's cache is in 16 bits whatever the model's is in, and its process is the model's
    draft = footprint_of(DRAFT, dtype_id="gguf-q8_0", context_tokens=16384, kv_dtype_id="bf16")
    assert (both["kv_dtype_id"], both["draft_kv_dtype_id"]) == ("q8_0", "bf16")
    assert both["draft_weights_bytes"] == draft["weights_bytes"] and both["draft_cache_bytes"] == held(draft)
    assert both["activations_bytes"] == model["activations_bytes"]
    assert both["draft_buffers_bytes"] == draft["activations_bytes"]
    assert both["total_bytes"] == model["total_bytes"] + draft["total_bytes"] - draft["overhead_bytes"]
    assert both["engine_setting"] == "--model-draft FILE" and both["holds_for"] == "llama.cpp 0c1e57098"


@pytest.mark.full
def test_a_server_has_buffers_of_the_drafts_width_and_two_rows_of_logits_a_request(pairs, footprint_of, book):
    both = pairs["vLLM"]
    model = footprint_of(MODEL, dtype_id="fp8", engine_id="vllm", gpu_count=2)
    draft = footprint_of(DRAFT, dtype_id="bf16", engine_id="vllm", gpu_count=2)
    tokens, sequences, graphs = book.execute(
        "SELECT vllm_batched_tokens, vllm_default_sequences, vllm_cuda_graph_bytes FROM constants"
    ).fetchall()[0]
    assert both["draft_buffers_bytes"] == 2 * tokens * 2 * 1024 + 12 * sequences * 151936 + graphs
    assert both["activations_bytes"] == max(model["activations_bytes"], draft["activations_bytes"] + 2 * 5120 * tokens)
    parts = ("weights_bytes", "draft_weights_bytes", "cache_bytes", "draft_cache_bytes", "activations_bytes",
             "draft_buffers_bytes", "overhead_bytes")  # fmt: skip
    assert both["total_bytes"] == sum(both[part] for part in parts)
    assert DRAFT in both["engine_setting"] and both["error_band"] >= model["error_band"]


def test_a_draft_reads_as_far_as_its_model(pairs, book):
    (most,) = book.execute("SELECT max_context_tokens FROM model WHERE model_id = $1", [SHORTER]).fetchall()[0]
    row = pairs["beyond its draft"]
    assert row["unknown_reason"] is None and row["context_tokens"] == BEYOND > most


def test_a_head_holds_as_many_elements_as_its_repository_publishes(book):
    """Its total counts two tables besides, what its tokens are called in the model and which of the model's it has, of which vLLM loads the first."""
    rows = book.execute("""
        SELECT head.model_id, (head_weights_bytes(shape, head, 1) - 8 * head.draft_vocab_size) / 2 + head.draft_vocab_size + shape.vocab_size,
            model.stored_parameter_count
        FROM draft_head AS head JOIN shape ON shape.model_id = head.of_model_id JOIN model ON model.model_id = head.model_id
    """).fetchall()
    assert len(rows) == len({head for head, *_ in rows}) == len(read_facts()["draft_head"]) >= 3
    assert not [(head, counted, published) for head, counted, published in rows if counted != published]


def test_a_head_that_reads_layers_has_one_layer_of_the_models_cache_and_stands_beside_its_pass(
    pairs, footprint_of, book
):
    both, shared = pairs["a head"], pairs["a head on two cards"]
    model = footprint_of("Qwen/Qwen3-8B", engine_id="vllm", dtype_id="bf16", context_tokens=8192)
    (tokens,) = book.execute("SELECT vllm_batched_tokens FROM constants").fetchall()[0]
    assert both["draft_cache_bytes"] * 36 == held(model) == both["cache_bytes"]
    # the hidden states of three layers, side by side once more, and what is made of them
    assert both["activations_bytes"] == model["activations_bytes"] + 7 * 2 * 4096 * tokens
    assert both["draft_weights_bytes"] == 2 * (1_022_037_632 - 151936 - 32000) + 8 * 32000
    assert '"method": "eagle3"' in both["engine_setting"] and both["holds_for"] == "vLLM 0.33"
    assert both["draft_weights_bytes"] / 2 < shared["draft_weights_bytes"] < both["draft_weights_bytes"]


def test_sglang_holds_a_head_beside_a_pass_of_its_own_length(pairs, footprint_of, book):
    both, model = pairs["a head in SGLang"], footprint_of("Qwen/Qwen3-8B", **IN_SGLANG)
    (tokens,) = book.execute("SELECT sglang_prefill_tokens FROM constants").fetchall()[0]
    # one layer more in a pool as long as the model's of 36
    assert both["draft_cache_bytes"] * 36 == held(model) == both["cache_bytes"]
    assert both["activations_bytes"] == model["activations_bytes"] + 7 * 2 * 4096 * tokens
    # SpecForge's config of a head for this model: a feed-forward block of 12288, 32000 tokens of its own, an embedding
    elements = 4096 * (
        151936 + 32000 + 2 * (32 * 128 + 2 * 8 * 128) + 32 * 128 + 3 * 12288 + 3 * 4096 + 4
    )  # fmt: skip
    assert both["draft_weights_bytes"] == 2 * elements + 8 * 32000
    # graphs and buffers of its own
    assert both["draft_buffers_bytes"] == (512 + 976) * 2**20
    assert (
        both["engine_setting"].startswith("--speculative-algorithm EAGLE3 ")
        and "LlamaForCausalLMEagle3" in both["holds_for"]
    )


# What vLLM's start-up logs say that it loaded with its own prediction layers, in GiB, and without where that is told.
LOADED = {
    # Qwen3.5-9B: "Model loading took 18.12 GiB memory" with them, 17.66 without
    "Qwen/Qwen3.5-9B": ("bf16", 18.12, 17.66),
}


@pytest.mark.parametrize("model", LOADED)
def test_prediction_layers_weigh_what_logs_say(pairs, model):
    _dtype, loaded, without = LOADED[model]
    row = pairs[model]
    own, both = row["draft_weights_bytes"] / 2**30, (row["weights_bytes"] + row["draft_weights_bytes"]) / 2**30
    assert abs(both - loaded) < 0.01 * loaded
    assert without is None or abs(own - (loaded - without)) < 0.01


def test_prediction_layers_hold_a_layers_cache_and_states_for_each_drafted_token(pairs, footprint_of, book):
    """vLLM pads 24 layers of states to 27 where nine layers of attention stand in a group, one of them the ninth that predicts: "Add 3
    padding layers, may waste at most 12.50% KV cache memory"."""
    row = pairs["prediction layers"]
    model = footprint_of("Qwen/Qwen3.5-9B", engine_id="vllm", dtype_id="bf16", context_tokens=8192)
    layer = (model["kv_cache_bytes"] + model["kv_padding_bytes"]) / 8
    states = row["draft_cache_bytes"] - layer + model["state_bytes"]
    assert 2 * 27 / 24 < states / model["state_bytes"] < 2 * 27 / 24 * 1.1
    tokens = book.execute("SELECT vllm_batched_tokens FROM constants").fetchall()[0][0]
    assert row["draft_buffers_bytes"] > 8 * tokens * 2 * 4096 and row["activations_bytes"] == model["activations_bytes"]
    assert (
        '"method": "mtp"' in row["engine_setting"]
        and row["holds_for"] == "vLLM 0.33"
        and row["draft_model_id"] == "mtp"
    )


def test_prediction_layers_of_a_checkpoint_in_fp8_lie_in_fp8_and_the_ends_are_the_models(pairs, book):
    packed, wide = pairs["prediction layers in fp8"], pairs["prediction layers of packed weights"]
    # 14.0e9 by its README with its embedding and its head, which are 7168 by 129280 each
    (elements,) = book.execute(
        "SELECT predicting_parameter_count FROM model WHERE model_id = 'deepseek-ai/DeepSeek-V3'"
    ).fetchall()[0]
    assert 13.4e9 < elements + 2 * 7168 * 129280 < 14.1e9
    assert elements / 8 < packed["draft_weights_bytes"] < 1.2 * elements / 8
    assert 1.95 * elements / 8 < wide["draft_weights_bytes"] < 2.2 * elements / 8
    assert packed["holds_for"] == "vLLM 0.33" and wide["holds_for"] == "SGLang 0.5.23"


# "[spec] estimated memory usage of MTP context is 162.02 MiB": Qwen3.8-27B, of the shape of 3.6, 8192 tokens; the same of a 2B at 4096
CONTEXTS = {"Qwen/Qwen3.6-27B": (8192, 162.02), "Qwen/Qwen3.5-2B": (4096, 56.02)}


@pytest.mark.some(1)
@pytest.mark.parametrize("model", CONTEXTS)
def test_llama_cpp_gives_prediction_layers_a_context_of_their_own(pairs, footprint_of, model):
    tokens, told = CONTEXTS[model]
    row = pairs[model]
    alone = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=tokens, kv_dtype_id="q8_0")
    # three drafted tokens, each with a state; keys and values in 16 bits beside a cache in eight
    own = row["draft_cache_bytes"] - 3 * alone["state_bytes"] + row["draft_buffers_bytes"]
    assert 1 <= own / 2**20 / told < 1.1
    assert row["engine_setting"] == "--spec-type draft-mtp" and row["activations_bytes"] == alone["activations_bytes"]


PACKED = dict(model=MODEL, draft=DRAFT, dtype_id="gguf-q4_k_m")
OF_LAYERS = dict(card="rtx-5090", model="Qwen/Qwen3.6-27B", draft="mtp", engine_id="vllm")


@pytest.fixture(scope="module")
def verdicts(book):
    """What is said of each pair on a card."""
    cases = {
        "layers in 4 bits": OF_LAYERS | dict(dtype_id="awq-int4"),
        "layers in 16 bits": OF_LAYERS | dict(dtype_id="bf16"),
        "8192": PACKED | dict(card="rtx-4090", context_tokens=8192),
        "14336": PACKED | dict(card="rtx-4090", context_tokens=14336),
        "no such card": PACKED | dict(card="none-such", context_tokens=8192),
    }
    told = one_each(book, "speculative_fits_on", ("card", "model", "draft"), cases)
    return {name: (row["verdict"], row["unknown_reason"]) for name, row in told.items()}


def test_the_verdict_with_prediction_layers_is_of_both(verdicts):
    # (which parts a copy in 4 bits leaves in 16 is in its band)
    assert (verdicts["layers in 4 bits"][0], verdicts["layers in 16 bits"][0]) == ("tight", "no")


REFUSED = {
    "nothing that predicts": (dict(model="Qwen/Qwen3-8B", draft="mtp", engine_id="vllm"), "has no layers that predict"),
    "predicts elsewhere": (dict(model="Qwen/Qwen3.5-27B", draft="MTP", engine_id="sglang"), "is not described; known: "),
    "another type that predicts": (dict(model="MiniMaxAI/MiniMax-M2", draft="mtp", engine_id="vllm"), "MTP"),
    "a head of another": (dict(model="Qwen/Qwen3-0.6B", draft=HEAD, engine_id="vllm"), "is a head for Qwen/Qwen3-8B"),
    "a head elsewhere": (dict(model="Qwen/Qwen3-8B", draft=HEAD, engine_id="transformers"), "not described; it is of sglang, vllm"),
    "a head in 8 bits": (dict(model="Qwen/Qwen3-8B", draft=HEAD, engine_id="vllm", draft_dtype_id="fp8"), "in bf16"),
    "a head and windows": (dict(model="openai/gpt-oss-20b", draft="RedHatAI/gpt-oss-20b-speculator.eagle3", engine_id="vllm"),
                           "does with a head where layers keep a window"),
    "another vocabulary": (dict(draft="Qwen/Qwen2.5-0.5B-Instruct", model="Qwen/Qwen2.5-72B-Instruct", engine_id="vllm"),
                           "vllm refuses a draft of 151936 tokens for a model of 152064"),
    "several sequences": (dict(engine_id="transformers", sequences=2), "transformers drafts for 1 sequence at a time"),
    "windows": (dict(model="google/gemma-3-27b-it", draft="google/gemma-3-27b-it", engine_id="vllm"), "keep a window"),
    "caches of two kinds": (dict(model="deepseek-ai/DeepSeek-V2-Lite-Chat", engine_id="transformers"),
                            "between a latent cache and one of keys and values is not described"),
    "a head of another model": (dict(model="Qwen/Qwen3-8B", draft="z-lab/Qwen3-8B-DFlash-b16", engine_id="vllm"),
                                "is a head that reads layers"),
    "an engine that nobody read": (dict(engine_id="vllm-0.8"), "what vllm-0.8 holds for a draft is not known"),
    "no such draft": (dict(draft="nobody/nothing"), "the draft: no such model"),
    "no number": (dict(context_tokens="many"), "context_tokens"),
    "no model at all": (dict(model=None, draft=None), "no model was named"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_known_or_not_taken_has_a_reason_and_no_number(pairs, case):
    row = pairs[case]
    assert row["total_bytes"] is None and row["engine_setting"] is None and REFUSED[case][1] in row["unknown_reason"]


def test_a_head_that_reads_layers_of_another_model_is_never_said_to_run_alone(footprints):
    """It has no embedding and no head of its own. An encoder of pictures embeds no tokens either, and runs alone."""
    alone = ("google/vit-base-patch16-224", "openai/clip-vit-large-patch14", "openai/whisper-tiny", DRAFT)
    head = [{"model_id": "z-lab/Qwen3-8B-DFlash-b16", "phase_id": phase} for phase in ("inference", "lora")]
    of_heads, others = footprints(head), footprints([{"model_id": model} for model in alone])
    for row in of_heads:
        assert row["total_bytes"] is None
        assert "runs beside the model that it was made for, and never alone" in row["unknown_reason"]
    assert all(row["total_bytes"] > 0 for row in others)


def test_vocabularies_that_differ_a_little_are_llama_cpps_own(pairs):
    row = pairs["another vocabulary in llama.cpp"]
    assert row["unknown_reason"] is None and row["draft_weights_bytes"] > 0


def test_the_verdict_is_of_both(verdicts, book):
    alone = "SELECT verdict FROM fits_on('rtx-4090', $1, dtype_id := 'gguf-q4_k_m', context_tokens := 14336)"
    assert verdicts["8192"] == ("fits", None) and verdicts["14336"][0] == "no"
    assert book.execute(alone, [MODEL]).fetchall()[0][0] == "fits"
    assert verdicts["no such card"] == (None, "no such GPU: none-such")


def test_each_rule_names_constants_that_there_are():
    facts = read_facts()
    assert set(facts["prediction_rule"]["tokens_constant"]) <= set(facts["constant"]["constant_id"])
    assert set(facts["prediction_rule"]["engine_id"]) <= set(facts["draft_rule"]["engine_id"])
    assert set(facts["draft_rule"]["head_tokens_constant"].drop_nulls()) <= set(facts["constant"]["constant_id"])
    named = {name for each in facts["draft_rule"]["overhead_constants"].drop_nulls() for name in each.split()}
    known = set(facts["constant"]["constant_id"])
    assert named and named <= known
