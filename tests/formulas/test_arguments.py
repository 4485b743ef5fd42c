"""What people type: capitals, halves, negatives, numbers beyond all sense, arguments of another phase. Each is told what is wrong."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from pipeline.book.facts import read_facts
from pipeline.book.scenario import TYPES

MODEL, SEES = "Qwen/Qwen3-8B", "Qwen/Qwen2.5-VL-7B-Instruct"
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
HUGE = str(2**63 - 1)
REFUSED = [
    ({"sequences": "1.5"}, "sequences := 1.5 is no whole number"),
    ({"sequences": "many"}, "sequences := many is no whole number"),
    ({"context_tokens": "8192.7"}, "context_tokens := 8192.7 is no whole number"),
    ({"phase_id": "lora", "lora_rank": "1.5"}, "lora_rank := 1.5 is no whole number"),
    ({"gpu_count": "1.5"}, "gpu_count := 1.5 is no whole number"),
    ({"phase_id": "lora", "ema": "2"}, "ema := 2 is neither true nor false"),
    ({"context_tokens": HUGE}, f"context_tokens := {HUGE} is beyond 1073741824"),
    ({"max_context_tokens": HUGE}, f"max_context_tokens := {HUGE} is beyond"),
    ({"sequences": HUGE}, f"sequences := {HUGE} is beyond 1048576"),
    ({"sequences": f"-{HUGE}"}, f"sequences := -{HUGE} is no count"),
    ({"phase_id": "lora", "lora_rank": "1000000000000000"}, "lora_rank := 1000000000000000 is beyond"),
    ({"gpu_count": HUGE}, f"gpu_count := {HUGE} is beyond"),
    (
        {"phase_id": "pretrain", "tensor_parallel": "100000", "pipeline_parallel": "100000"},
        "tensor_parallel × pipeline_parallel × context_parallel := 10000000000",
    ),
    ({"model_id": SEES, "images": "1", "image_width": "1000000000"}, "image_width := 1000000000 is beyond 65536"),
    ({"model_id": SEES, "images": "1", "image_width": "0"}, "image_width and image_height at 1"),
    ({"model_id": SEES, "images": "1", "image_height": "-5"}, "image_width and image_height at 1"),
    ({"audio_seconds": "nan"}, "audio_seconds := nan is no number"),
    ({"optimizer_id": "zzz"}, "optimizer_id belongs to the phases of training"),
    ({"checkpointing": "zzz"}, "checkpointing belongs to the phases of training"),
    ({"lora_rank": "8"}, "lora_rank belongs to the phases lora and qlora"),
    ({"phase_id": "full-finetune", "lora_targets": "attention"}, "lora_targets belongs to the phases lora and qlora"),
    ({"phase_id": "full-finetune", "kv_dtype_id": "fp8"}, "kv_dtype_id belongs to the phases of inference"),
    ({"phase_id": "full-finetune", "checkpointing": "true"}, "checkpointing is none, full or selective"),
    ({"dtype_id": ""}, "no such dtype: "),
    ({"model_id": None}, "no model was named"),
]
# what a person means by these is plain
TAKEN = [
    {"model_id": MODEL.lower(), "context_tokens": "4096.0"},
    {
        "model_id": MODEL.upper(),
        "context_tokens": "4096",
        "dtype_id": "BF16",
        "engine_id": "vLLM",
        "kv_dtype_id": "FP8",
    },
    {"context_tokens": "4096", "phase_id": "LoRA", "optimizer_id": "AdamW", "ema": "true", "checkpointing": "Full"},
]


def answers(book, scenarios):
    """The rows of a relation of text, as a CSV is read: each scenario alone would do, together none may take the others down."""
    rows = [dict.fromkeys(TYPES) | {"model_id": MODEL} | scenario for scenario in scenarios]
    book.register("typed_rows", pl.DataFrame(rows, schema=dict.fromkeys(TYPES, pl.String)).to_arrow())
    try:
        result = book.execute("SELECT * FROM footprints('typed_rows')")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    finally:
        book.unregister("typed_rows")


@pytest.fixture(scope="module")
def asked_together(book):
    return answers(book, [scenario for scenario, _reason in REFUSED] + TAKEN)


@pytest.mark.parametrize(("scenario", "reason"), REFUSED, ids=[reason[:40] for _scenario, reason in REFUSED])
def test_what_cannot_be_counted_is_named(asked_together, scenario, reason):
    found = [row for row in asked_together if f" {reason}" in f" {row['unknown_reason']}"]
    assert found and all(row["total_bytes"] is None for row in found)
    for name in ("context_tokens", "sequences"):
        if scenario.get(name, "").isdigit():
            assert str(found[0][name]) == scenario[name], "what was asked is told, not a default"


def test_one_bad_row_takes_no_other_down(asked_together):
    assert len(asked_together) == len(REFUSED) + len(TAKEN)
    known = [row for row in asked_together if row["total_bytes"] is not None]
    assert len(known) == len(TAKEN)
    assert {row["model_id"] for row in known} == {MODEL} and {row["context_tokens"] for row in known} == {4096}
    assert {(row["dtype_id"], row["engine_id"], row["checkpointing"]) for row in known} >= {
        ("bf16", "vllm", None),
        ("bf16", "transformers", "full"),
    }


@pytest.mark.full
def test_numbers_as_sql_types_them_are_refused_too(book):
    query = (
        "SELECT unknown_reason FROM footprint_of($model, phase_id := 'lora', lora_rank := 1.5, checkpointing := true)"
    )
    assert book.execute(query, {"model": MODEL}).fetchall() == [("lora_rank := 1.5 is no whole number",)]


@pytest.mark.full
def test_the_largest_numbers_that_are_taken_overflow_nothing(any_book):
    """All bounds at once, for the models with most layers, experts, heads and vocabulary: a number or a reason, never an error."""
    bounds = dict(
        any_book.execute(
            "SELECT constant_id, value::BIGINT::VARCHAR FROM constant WHERE constant_id LIKE 'most_%'"
        ).fetchall()
    )
    long, many = bounds["most_context_tokens"], bounds["most_sequences"]
    models = any_book.execute(
        "SELECT model_id FROM shape WHERE layer_count IS NOT NULL ORDER BY parameter_count DESC LIMIT 8"
    ).fetchall()
    models += any_book.execute(
        "SELECT model_id FROM shape WHERE tower IS NOT NULL ORDER BY hash(model_id) LIMIT 8"
    ).fetchall()
    ways = [
        {"attention": "eager"},
        {"engine_id": "vllm"},
        {"engine_id": "llama.cpp", "dtype_id": "gguf-q8_0"},
        {
            "images": bounds["most_images"],
            "image_width": bounds["most_image_side"],
            "image_height": bounds["most_image_side"],
        },
        {"phase_id": "lora", "lora_rank": bounds["most_rank"]},
        {"phase_id": "pretrain", "gpu_count": bounds["most_gpu_count"], "gradient_accumulation": many},
        {"phase_id": "full-finetune", "attention": "eager", "optimizer_id": "adamw"},
    ]
    asked = [
        way | {"model_id": model, "context_tokens": context, "max_context_tokens": long, "sequences": sequences}
        for (model,) in models
        for way in ways
        for context, sequences in ((long, many), (long, "1"), ("8192", many))
    ]
    rows = answers(any_book, asked)
    assert len(rows) == len(asked)
    assert all((row["total_bytes"] is None) != (row["unknown_reason"] is None) for row in rows)


CARDLESS = {
    "fits_on": f"SELECT verdict, unknown_reason FROM fits_on(NULL, '{MODEL}')",
    "pipeline_fits_on": f"SELECT verdict, unknown_reason FROM pipeline_fits_on(NULL, '{SDXL}') LIMIT 1",
    "speech_fits_on": f"SELECT verdict, unknown_reason FROM speech_fits_on(NULL, '{MODEL}')",
    "preference_fits_on": f"SELECT verdict, unknown_reason FROM preference_fits_on(NULL, 'grpo', '{MODEL}', phase_id := 'lora')",
    "layers_that_fit": f"SELECT gpu_layers, unknown_reason FROM layers_that_fit(NULL, '{MODEL}')",
}


@pytest.mark.some(1)
@pytest.mark.parametrize("macro", CARDLESS)
def test_no_card_is_a_reason(book, macro):
    assert book.execute(CARDLESS[macro]).fetchall() == [(None, "no GPU was named")]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(verdict) FROM fits_on('RTX-4090', 'qwen/qwen3-0.6b', dtype_id := 'BF16')",
        "SELECT count(max_context_tokens) FROM limits_on('RTX-4090', 'qwen/qwen3-0.6b')",
        "SELECT count(gpu_layers) FROM layers_that_fit('RTX-4090', 'qwen/qwen3-0.6b', dtype_id := 'GGUF-Q4_K_M')",
        "SELECT count(verdict) FROM on_several_gpus('RTX-4090', 'qwen/qwen3-0.6b')",
        "SELECT count(verdict) FROM plans_for('RTX-4090', 'qwen/qwen3-0.6b')",
        "SELECT count(*) FROM layer_weights('qwen/qwen3-0.6b', dtype_id := 'BF16')",
        f"SELECT count(verdict) FROM pipeline_fits_on('RTX-4090', '{SDXL.upper()}', dtype_id := 'BF16')",
        f"SELECT count(prompt_tokens) FROM image_tokens_of('{SEES.upper()}')",
    ],
)
def test_capitals_find_their_row_in_every_macro(book, query):
    assert book.execute(query).fetchall()[0][0] > 0


def test_two_models_that_differ_in_case_answer_to_their_own_spelling_only(any_book):
    twins = any_book.execute(
        "SELECT list(model_id ORDER BY model_id) FROM model GROUP BY lower(model_id) HAVING count(*) > 1 ORDER BY 1"
    ).fetchall()
    assert twins
    for (both,) in twins:
        asked = [*both, both[0].swapcase()]
        assert [any_book.execute("SELECT known_model($id)", {"id": name}).fetchall()[0][0] for name in asked] == asked


def test_ids_of_facts_are_lower_case():
    """The macros look them up by lower(...)."""
    facts = read_facts()
    for table in ("gpu", "dtype", "engine", "optimizer", "phase", "kv_dtype"):
        ids = facts[table][f"{table}_id"].to_list()
        assert ids == [name.lower() for name in ids], table


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("context_tokens := 5000", "context_tokens := 5000 is not published for this phase (512, 2048, 8192)"),
        ("sequences := 3", "sequences := 3 is not published for this phase (1, 8)"),
        ("sequences := 1.5", "sequences := 1.5 is not published"),
        ("engine_id := 'zzz'", "no such engine: zzz"),
        ("engine_id := 'sglang'", "engine_id := sglang is not published for this phase (transformers)"),
        ("dtype_id := 'nf4'", "dtype_id := nf4 is not published for this phase (bf16)"),
    ],
)
def test_a_list_of_what_is_not_published_is_an_error_that_names_what_is(book, arguments, told):
    book.execute("BEGIN")
    try:
        for context, sequences in ((512, 1), (2048, 8), (8192, 1)):
            book.execute(
                "INSERT INTO footprint BY NAME SELECT 'Qwen/Qwen3-8B' AS model_id, 'bf16' AS dtype_id, 'inference' AS phase_id, "
                "'transformers' AS engine_id, $1 AS context_tokens, $2 AS sequences, 'flash' AS attention, 'none' AS sharding, "
                "1 AS gpu_count, 10 AS total_bytes, 0.1 AS error_band",
                [context, sequences],
            )
        assert book.execute("SELECT count(*) FROM what_fits('RTX-4090', dtype_id := 'BF16')").fetchall() == [(1,)]
        with pytest.raises(duckdb.InvalidInputException) as raised:
            book.execute(f"FROM what_fits('rtx-4090', {arguments})").fetchall()
        assert told in str(raised.value)
    finally:
        book.execute("ROLLBACK")


@pytest.mark.full
def test_pictures_that_a_pipeline_refuses_have_a_reason(book):
    query = "SELECT DISTINCT total_bytes, unknown_reason FROM pipeline_of($id, width := $width)"
    for width, reason in (
        (1001, "multiples of 8 in this pipeline"),
        (10**9, "width := 1000000000 is beyond 65536"),
        (0, "start at 1"),
        (1024.5, "width := 1024.5 is no whole number"),
    ):
        (row,) = book.execute(query, {"id": SDXL, "width": width}).fetchall()
        assert row[0] is None and reason in row[1]
    assert book.execute("SELECT count(total_bytes) FROM pipeline_of($id, width := NULL)", {"id": SDXL}).fetchall() == [
        (4,)
    ]


def test_a_format_that_llama_cpp_has_not_is_told(book):
    query = "SELECT gpu_layers, unknown_reason FROM layers_that_fit('rtx-3060-12gb', $id, dtype_id := 'bf16', context_tokens := 131072)"
    layers, reason = book.execute(query, {"id": "meta-llama/Llama-3.1-405B"}).fetchall()[0]
    assert layers is None and "bf16 is no format of llama.cpp" in reason
