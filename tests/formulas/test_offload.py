"""Sharing a model with the CPU: the layers add up to the model, and what is said to fit is what the forward formula would hold."""

from __future__ import annotations

import pytest

from tests.few import EXPERTS

CARDS = ("gtx-1050-ti", "rtx-3060-12gb", "rtx-4090", "l40s", "h100-sxm", "b200")
MODELS = ("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct", "google/gemma-3-27b-it", "Qwen/Qwen3-30B-A3B")


def ask(book, card, model, **scenario):
    named = "".join(f", {name} := ${name}" for name in scenario)
    result = book.execute(f"FROM layers_that_fit($card, $model{named})", {"card": card, "model": model} | scenario)
    names = [column[0] for column in result.description]
    [row] = result.fetchall()
    return dict(zip(names, row, strict=True))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "dtype", ["bf16", "fp8", "w8a8-int8", "gguf-q4_k_m", "gguf-q3_k_l", "gguf-iq3_xs", "gguf-iq2_m", "gguf-q8_0"]
)
def test_the_layers_add_up_to_what_the_table_has(book, dtype):
    models = book.execute(
        "SELECT model_id, layer_bytes FROM weight JOIN shape USING (model_id) JOIN model USING (model_id) "
        "WHERE dtype_id = $1 AND weights_bytes IS NOT NULL AND layer_bytes > 0 AND pipeline_tag = 'text-generation' "
        # (beside a draw one whose experts stay in MXFP4 whatever the mix)
        "ORDER BY model_id <> $2, hash(model_id || $1) LIMIT 7",
        [dtype, EXPERTS],
    ).fetchall()
    assert not dtype.startswith("gguf-") or EXPERTS in dict(models)
    for model, expected in models:
        found = book.execute(
            "SELECT sum(layer_bytes) FROM layer_weights($1, dtype_id := $2)", [model, dtype]
        ).fetchall()
        # one division for all layers of a row rounds up once, one for each layer rounds up each time
        assert found[0][0] == pytest.approx(expected, rel=1e-6), (model, dtype)


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS)
def test_more_memory_takes_more_layers_and_nothing_is_lost(book, footprint_of, model):
    whole = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=8192)
    blocks, embedding = book.execute(
        "SELECT layer_count, embedding_bytes FROM shape JOIN weight USING (model_id) "
        "WHERE model_id = $1 AND dtype_id = 'gguf-q4_k_m'",
        [model],
    ).fetchall()[0]
    before = -1
    for card in CARDS:
        row = ask(book, card, model, context_tokens=8192)
        if row["gpu_layers"] is None:
            assert row["unknown_reason"]
            continue
        assert row["gpu_layers"] >= before
        before = row["gpu_layers"]
        [(capacity,)] = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = $1", [card]).fetchall()
        assert row["gpu_bytes"] * (1 + whole["error_band"]) <= capacity
        held = row["gpu_bytes"] + row["host_bytes"]
        if row["gpu_layers"] == blocks + 1:
            # all on the card but the input embeddings, of which a tied head is a copy
            assert row["gpu_bytes"] == whole["total_bytes"]
            assert row["host_bytes"] == embedding
        else:
            assert held > whole["total_bytes"], "a matrix of the CPU's layers is brought over"
    assert before == blocks + 1


def test_without_a_layer_on_the_card_it_holds_no_cache_but_what_is_brought_over(book):
    """llama.cpp's own account of Qwen3-8B in 16 bits with -ngl 0: a buffer of 1,491.75 MiB, of which its head is 1,187; 304.75 with -ngl 1."""
    scenario = {"dtype_id": "gguf-q8_0", "context_tokens": 8192}
    none, one = (ask(book, "rtx-4090", "Qwen/Qwen3-8B", free_bytes=mib << 20, **scenario) for mib in (1315, 1370))
    assert (none["gpu_layers"], one["gpu_layers"]) == (0, 1)
    # (the output is held there, or brought over; a norm in 32 bits stands before it)
    assert one["gpu_bytes"] - none["gpu_bytes"] == 4096 * (12288 * 34 // 32 + 4)
    assert none["host_bytes"] - one["host_bytes"] == 4096 * (151_936 * 34 // 32 + 4)


@pytest.mark.full
def test_a_longer_context_leaves_fewer_layers(book):
    layers = [
        ask(book, "rtx-4090", "meta-llama/Llama-3.3-70B-Instruct", context_tokens=context)["gpu_layers"]
        for context in (512, 8192, 65536)
    ]
    assert layers == sorted(layers, reverse=True) and layers[0] > layers[-1] > 0


@pytest.mark.full
def test_experts_on_the_cpu_leave_room_for_all_else(book):
    row = ask(book, "rtx-4090", "openai/gpt-oss-120b", context_tokens=8192)
    assert 0 < row["gpu_layers"] < row["layer_count"]
    assert 0 < row["cpu_expert_layers"] <= row["layer_count"]
    larger = ask(book, "l40s", "openai/gpt-oss-120b", context_tokens=8192)
    assert larger["cpu_expert_layers"] < row["cpu_expert_layers"]
    assert ask(book, "rtx-4090", "meta-llama/Llama-3.1-8B-Instruct", context_tokens=8192)["cpu_expert_layers"] is None


@pytest.mark.full
def test_transformers_keeps_the_cache_on_the_card(book, footprint_of):
    row = ask(book, "rtx-4090", "Qwen/Qwen2.5-32B-Instruct", dtype_id="bf16", context_tokens=4096)
    assert 0 < row["gpu_layers"] < row["layer_count"]
    fits = ask(book, "rtx-4090", "Qwen/Qwen3-0.6B", dtype_id="bf16", context_tokens=4096)
    assert fits["gpu_layers"] == fits["layer_count"] and fits["host_bytes"] == 0
    assert fits["gpu_bytes"] == footprint_of("Qwen/Qwen3-0.6B", context_tokens=4096)["total_bytes"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("card", "model", "dtype", "why"),
    [
        ("no-such-card", "Qwen/Qwen3-0.6B", "gguf-q4_k_m", "no such GPU"),
        ("rtx-4090", "no/such-model", "gguf-q4_k_m", "no such model"),
        ("rtx-4090", "Qwen/Qwen3-8B", "nf4", "on the GPU only"),
        ("rtx-4090", "Qwen/Qwen3-8B", "fp8", "llama.cpp and Transformers"),
    ],
)
def test_what_is_not_known_has_a_reason(book, card, model, dtype, why):
    row = ask(book, card, model, dtype_id=dtype, context_tokens=4096)
    assert row["gpu_layers"] is None and row["gpu_bytes"] is None and why in row["unknown_reason"]


def together(book, cards, model, **scenario):
    named = "".join(f", {name} := ${name}" for name in scenario)
    result = book.execute(f"FROM fits_together($cards, $model{named})", {"cards": cards, "model": model} | scenario)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.mark.full
def test_like_cards_together_hold_what_so_many_of_them_do(book, footprint_of):
    model = "meta-llama/Llama-3.3-70B-Instruct"
    rows = together(book, ["rtx-3090", "rtx-3090"], model, context_tokens=8192)
    whole = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=8192, gpu_count=2)
    # 81 slots: the first card has one more, the last has the output
    assert [row["gpu_layers"] for row in rows] == [41, 40]
    assert max(row["gpu_bytes"] for row in rows) == pytest.approx(whole["total_bytes"], rel=0.03)
    assert {row["verdict"] for row in rows} == {"fits"}


@pytest.mark.full
def test_unlike_cards_hold_layers_by_what_they_give(book, footprint_of):
    """As load_tensors of llama.cpp has it: slot i of n + 1 lies where the share of the cards up to there is more than i / (n + 1)."""
    cards, model = ["rtx-3090", "rtx-3060-12gb"], "Qwen/Qwen3-32B"
    rows = together(book, cards, model, context_tokens=8192)
    shares = [row["capacity_bytes"] // 2**20 for row in rows]
    slots = 64 + 1
    on_the_first = lambda first: sum(i / slots < first / sum(shares) for i in range(slots))  # noqa: E731
    expected = on_the_first(shares[0])
    assert [row["gpu_layers"] for row in rows] == [expected, slots - expected]
    assert {row["engine_setting"] for row in rows} == {f"--tensor-split {shares[0]},{shares[1]}"}
    assert [row["verdict"] for row in rows] == ["fits", "fits"]
    one, two = (footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=8192, gpu_count=n) for n in (1, 2))
    beside = 2 * (two["activations_bytes"] + two["overhead_bytes"])
    held = one["weights_bytes"] + one["kv_cache_bytes"] + one["kv_padding_bytes"]
    assert sum(row["gpu_bytes"] for row in rows) == pytest.approx(held + beside, abs=4)
    # in the other order the small card has the first layers
    assert together(book, cards[::-1], model, context_tokens=8192)[0]["gpu_layers"] == on_the_first(shares[1])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cards", "scenario", "why"),
    [
        (["rtx-3090", "rtx-9999"], {}, "rtx-9999"),
        (["rtx-3090"], {}, "two or more"),
        (["rtx-3090", "rx-7900-xtx"], {}, "different makers"),
        (["rtx-3090", "rtx-3060-12gb"], {"dtype_id": "bf16"}, "only llama.cpp"),
    ],
)
def test_what_is_not_known_of_cards_together_has_a_reason(book, cards, scenario, why):
    rows = together(book, cards, "Qwen/Qwen3-8B", **scenario)
    assert len(rows) == len(cards)
    assert all(row["verdict"] is None and why in row["unknown_reason"] for row in rows)


@pytest.mark.full
@pytest.mark.parametrize(
    "model", ["google/gemma-4-E2B-it", "google/gemma-4-E4B-it", "Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B"]
)
def test_llama_cpp_leaves_tables_that_are_read_by_rows_in_the_computers_memory(book, footprint_of, model):
    """They are tensors of its input layer (llama-arch.cpp), on the CPU whatever -ngl says: 262,144 × 8,960 of Gemma 4 E2B's 5.1
    billion, and 151,936 × 4,096 of Qwen3 8B, whose output is a matrix of its own. Qwen3 0.6B's is not, and is on the card."""
    whole, elements = book.execute(
        "SELECT weights_bytes, (SELECT sum(element_count) FROM tensor WHERE model_id = $1 AND (role = 'per_layer_embedding' "
        "OR role = 'embedding' AND model_id = 'Qwen/Qwen3-8B')) "
        "FROM weight WHERE model_id = $1 AND dtype_id = 'fp16'",
        [model],
    ).fetchall()[0]
    here, there = (
        footprint_of(model, dtype_id="fp16", context_tokens=512, engine_id=engine)["weights_bytes"]
        for engine in ("llama.cpp", "transformers")
    )
    assert (there, whole - here) == (whole, 2 * (elements or 0))
    # all layers on the card, by the table of the split with the CPU: what it holds is told alike
    split = "SELECT max(gpu_bytes) FROM cpu_split WHERE model_id = $1 AND dtype_id = 'gguf-q4_k_m' AND cpu_expert_layers = 0"
    row = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=8192)
    if most := book.execute(split, [model]).fetchall()[0][0]:
        assert most == pytest.approx(row["total_bytes"], rel=0.01)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "program", "setting"),
    [
        ("google/gemma-3-27b-it", None, "--parallel 1"),
        ("Qwen/Qwen3.6-27B", "llama.cpp", "--parallel 1"),
        ("Qwen/Qwen3-8B", "llama.cpp", None),  # whole contexts share one cache
        ("google/gemma-3-27b-it", "ollama", None),  # says so itself
    ],
)
def test_llama_server_is_told_its_slots_where_each_takes_memory(book, model, program, setting):
    """It opens four by itself (n_parallel -1); size_swa is window × slots + micro-batch, and a recurrent state is there for each."""
    query = "SELECT engine_setting FROM fits_on('rtx-4090', $1, dtype_id := 'gguf-q4_k_m', program := $2, context_tokens := 8192)"
    assert book.execute(query, [model, program]).fetchall() == [(setting,)]


def test_a_card_holds_the_caches_of_its_own_layers(book):
    """Every sixth layer of Gemma 3 27B reads the whole context, 5 to 59: seven of them are among the first 46 of 63 slots, three behind them."""

    def held(context):
        asked = "FROM fits_together(['rtx-5090', 'rtx-3060-12gb'], 'google/gemma-3-27b-it', context_tokens := $1)"
        return book.execute(f"SELECT gpu_layers, gpu_bytes {asked}", [context]).fetchall()

    (first, before), (second, below) = held(65536)
    (_, after), (_, above) = held(131072)
    assert (first, second) == (46, 17)
    a_layer = 2 * 4096 * 65536  # keys and values of 16 heads of 128, in 16 bits (buffers grow alike on both cards)
    assert (after - before) - (above - below) == pytest.approx((7 - 3) * a_layer, rel=1e-6)


# the layers that llama.cpp's cache without windows has, as its log lists them (llama-cpp-layers-two-gpus): 29 and 35 on one GPU, 41 to 59 on the other
def test_layers_lie_where_a_log_has_them(book):
    rows = book.execute(
        "SELECT blocks FROM attention_layer WHERE model_id = 'google/gemma-4-31B-it' AND component = 'text' AND window_tokens IS NULL"
    ).fetchall()
    [(blocks,)] = rows
    assert set(map(int, blocks.split())) >= {29, 35, 41, 47, 53, 59} and len(blocks.split()) == 10


@pytest.mark.some(4)
@pytest.mark.parametrize("model", ["google/gemma-3-27b-it", EXPERTS, "Qwen/Qwen3-0.6B"])
@pytest.mark.parametrize("context", [1000, 8192, 30000])
def test_caches_of_all_layers_are_never_less_than_the_whole(book, footprint_of, model, context):
    """And hardly more: what a window holds beside what is read is counted whole, and the others' part of it too."""
    whole = footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=context)
    parts = {name: whole[name] for name in ("kv_cache_bytes", "kv_padding_bytes", "state_bytes")}
    told = ", ".join(f"'{name}': {value}" for name, value in {**parts, "context_tokens": context}.items())
    query = f"SELECT layer_caches(shape, {{{told}}}), layer_count FROM shape WHERE model_id = $1"
    [(caches, layers)] = book.execute(query, [model]).fetchall()
    assert len(caches) == layers
    assert sum(parts.values()) - layers <= sum(caches) <= sum(parts.values()) + parts["kv_padding_bytes"]


def test_without_what_it_sees_with_more_layers_fit(book, footprint_of):
    """text_only takes the tower off the card, and nothing else."""
    asked = {"dtype_id": "gguf-q4_k_m", "context_tokens": 8192, "told_gpu_layers": 10}
    model = "google/gemma-3-27b-it"
    whole, alone = (ask(book, "rtx-3060-12gb", model, **asked, text_only=text) for text in (False, True))
    both = [footprint_of(model, dtype_id="gguf-q4_k_m", context_tokens=8192, text_only=text) for text in (False, True)]
    assert whole["gpu_bytes"] - alone["gpu_bytes"] == both[0]["total_bytes"] - both[1]["total_bytes"] > 2**28
    assert whole["host_bytes"] == alone["host_bytes"]
