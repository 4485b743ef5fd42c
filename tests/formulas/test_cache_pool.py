"""DeepSeek-V4 in vLLM: pages that layers of all kinds share, against what its logs say, and what a step of it holds beside."""

from __future__ import annotations

import pytest

FLASH, LATER = "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash-0731"
PRO, PACKED, SEEING = (
    "deepseek-ai/DeepSeek-V4-Pro",
    "nvidia/DeepSeek-V4-Flash-NVFP4",
    "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp",
)
GIB, LONGEST = 2**30, 1_048_576
# as vLLM 0.26 names and sizes it (models/deepseek_v4/nvidia/model.py)
STREAMS, CHOSEN, ROTATIONS = 4 * 4096 * 2, 1024 * 4, 2 * 64 * 4


@pytest.fixture(scope="module")
def held(footprints):
    usual = {"model_id": FLASH, "dtype_id": "stored", "engine_id": "vllm", "context_tokens": 30_000, "gpu_count": 2}
    usual |= {"kv_dtype_id": "fp8", "pipeline_parallel": 1, "sequences": 1, "data_parallel": 1}
    asked = {
        "two": {},
        "one": {"gpu_count": 1},
        "eight": {"gpu_count": 8, "context_tokens": LONGEST},
        "ranks": {"gpu_count": 8, "data_parallel": 8, "sequences": 8, "context_tokens": LONGEST},
        "many": {"sequences": 5},
        "stages": {"pipeline_parallel": 2},
        "sixteen": {"kv_dtype_id": "bf16"},
        "later": {"model_id": LATER},
        "packed": {"model_id": PACKED},
        "pro": {"model_id": PRO, "gpu_count": 8},
        "sees": {"model_id": SEEING},
        "sglang": {"engine_id": "sglang"},
        "integers": {"dtype_id": "awq-int4"},
    }
    answers = footprints([usual | scenario for scenario in asked.values()])
    for name in ("kv_dtype_id", "pipeline_parallel", "data_parallel"):
        del usual[name]
    unsaid = {"unsaid": {}, "transformers": {"engine_id": "transformers", "dtype_id": "bf16"}}
    answers += footprints([usual | scenario for scenario in unsaid.values()])
    return dict(zip((*asked, *unsaid), answers, strict=True))


def pool(book, model, context, in_flight):
    """Bytes that one request sets aside, by the macro itself."""
    query = """
        SELECT pool_bytes(model, {'rank_sequences': 1, 'context_tokens': $2, 'tokens_beyond_window': $3 - 1, 'stage_share': 1})
        FROM shape_row WHERE model_id = $1
    """
    return book.execute(query, [model, context, in_flight]).fetchall()[0][0]


def cached(row):
    return row["kv_cache_bytes"] + row["kv_padding_bytes"] + row["state_bytes"]


@pytest.mark.parametrize(("context", "gib"), [(30_000, 6.66), (13_528, 5.44)])
def test_a_request_sets_aside_what_a_log_says(book, context, gib):
    """vllm-project/vllm issue 44376, 0.22: 6.66 GiB are needed for 30,000 tokens, 5.44 hold 13,528, in steps of 16,384."""
    assert round(pool(book, FLASH, context, 16_384) / GIB, 2) == gib


def test_pages_are_counted_by_hand(book):
    """43 layers with a window in two groups of 22 and 21, 21 and 20 compressed ones: 22 layers a page."""
    pages = -(-30_000 // 256) + 2 * (-(-8_319 // 64) + 1) + -(-8_199 // 4) + 1 + -(-8_319 // 8) + 1
    assert pool(book, FLASH, 30_000, 8_192) == pages * 22 * (37_440 + 8_640 + 1_728)
    # 61 in two groups of 31 and 30, beside 30 and 31
    assert pool(book, PRO, 30_000, 8_192) == pages * 31 * (37_440 + 8_640 + 1_728)


def test_two_small_computers_hold_just_short_of_four_requests(book):
    """27.93 GiB are left for the cache of two GB10 (forums.developer.nvidia.com/t/370416): "just short of 4 concurrent requests"."""
    assert 3.7 < 27.93 * GIB / pool(book, FLASH, LONGEST, 8_192) < 4


def test_the_cache_of_a_footprint_is_the_pool_and_whole_on_every_card(book, held):
    assert cached(held["two"]) == pool(book, FLASH, 30_000, 8_192)
    assert cached(held["many"]) == 5 * cached(held["two"])
    assert cached(held["eight"]) == pool(book, FLASH, LONGEST, 8_192)
    assert cached(held["ranks"]) == cached(held["eight"]), "each rank serves one of the eight"
    assert cached(held["stages"]) == cached(held["two"]) / 22 * 12, "of 22 of 43 layers"


def test_loading_takes_what_a_log_says(held):
    """vllm-project/vllm issue 40821: 74.85 GiB on each of two cards, in steps of 32,768 tokens."""
    standing = LONGEST * ROTATIONS + 32_768 * (STREAMS + CHOSEN)
    assert held["two"]["weights_bytes"] + standing == pytest.approx(74.85 * GIB, rel=0.005)


def test_what_is_left_on_eight_cards_is_what_a_log_says_and_no_more(held):
    """vllm-project/recipes issue 762 (vllm issue 51454, 0.25 on B200 of 178.35 GiB at a share of 0.95): 20.43 requests of the whole context, and 156.9 of
    eight ranks."""
    for name, reported, least in (("eight", 20.43, 0.94), ("ranks", 156.9 / 8, 0.88)):
        row = held[name]
        left = 0.95 * 178.35 * GIB - (row["total_bytes"] - cached(row))
        assert least < left / cached(row) / reported <= 1, name


def test_a_step_holds_no_less_than_a_log_says(held):
    """Issue 44376: 84.4 GiB of 0.95 × 94.6 GiB are not left for the cache, with steps of 16,384 tokens; half of them take less."""
    row = held["two"]
    steps = row["activations_bytes"] - LONGEST * ROTATIONS - 512 * 2**20
    assert row["total_bytes"] - cached(row) + steps > (0.95 * 94.6 - 5.44) * GIB


def test_the_cache_is_in_eight_bits_where_nobody_says_and_in_no_other_format(held):
    assert held["unsaid"] == held["two"]
    assert held["sixteen"]["unknown_reason"] == "vllm is not described with a KV cache of this architecture in bf16"
    assert held["transformers"]["kv_dtype_id"] == "bf16"


def test_a_checkpoint_is_held_as_it_is_published(book, held):
    """By config (Flash, its copy in NVFP4) or by the size of the repository (Flash-0731, 166.9 GB with its draft): experts in 4.25 or
    4.5 bits, compressors in 16, all other matrices in 8."""
    experts, eight, wide = 277_025_390_592, 5_857_345_536, 1_449_494_103
    whole = experts * 4.25 / 8 + eight + 2 * wide
    assert held["one"]["weights_bytes"] == pytest.approx(whole, rel=1e-6)
    assert held["later"]["weights_bytes"] == held["two"]["weights_bytes"]
    assert held["packed"]["weights_bytes"] - held["two"]["weights_bytes"] == pytest.approx(
        experts * 0.25 / 8 / 2, rel=0.01
    )
    query = "SELECT model_id, stored_format, stored_unknown_reason FROM model WHERE model_id IN ($1, $2, $3) ORDER BY 1"
    found = book.execute(query, [FLASH, LATER, PACKED]).fetchall()
    assert found == [(FLASH, "mxfp4", None), (LATER, "mxfp4", None), (PACKED, "nvfp4", None)]


def test_what_nobody_read_stays_unknown(held):
    """The class that sees, and SGLang."""
    for name in ("sees", "sglang"):
        assert held[name]["total_bytes"] is None and "not known" in held[name]["unknown_reason"], name
    assert held["pro"]["unknown_reason"] is None
    reason = "vllm is answered for this architecture in fp8, mxfp4, nvfp4, stored"
    assert held["integers"]["unknown_reason"] == reason, "its own loader takes no other format"


def test_a_card_that_reads_more_at_a_time_is_told_to_read_less(book):
    """By its defaults an H20 holds the tokens of two steps of 8,192; figures count half of that."""
    query = """
        SELECT engine_setting FROM fits_on('h20', $1, dtype_id := 'stored', engine_id := 'vllm', context_tokens := 121344, gpu_count := 2)
    """
    (setting,) = book.execute(query, [FLASH]).fetchall()[0]
    assert "--max-num-batched-tokens 4096" in setting and "--kv-cache-dtype fp8" in setting


@pytest.mark.parametrize(("heads", "counted_heads"), [(20, 7), (64, 16)])
def test_what_a_token_of_a_step_holds_by_hand(book, heads, counted_heads):
    """Streams that are alive and the one that is read, three tensors of heads, places that were chosen, two tables of compressed entries."""
    told = book.execute(
        """
        SELECT pool_attention_bytes_per_token({'pool': {'live_streams': 2, 'residual_streams': 3, 'padded_heads': 7, 'chosen_tokens': 13,
            'compressed_state_tokens': 8}, 'hidden_size': 5, 'head_max': $1, 'head_dim_max': 11},
            {'compute_bytes': 2, 'tensor_parallel': 4, 'context_tokens': 100})
        """,
        [heads],
    ).fetchall()
    assert told == [(2 * (3 * 3 * 5 + 3 * counted_heads * 11) + 4 * 13 + 8 * 13,)]
