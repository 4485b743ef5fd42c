"""Reasons that reach a reader: said without the names that SQL gives to arguments, tables and ids."""

import re

import polars as pl
import pytest

from pipeline.book.scenario import TYPES
from pipeline.render.pages import plain
from tests.browser.test_formulas import scenarios

# what a reader of pages never types: `name := value`, snake_case, a table's name, an engine's id where its name differs
SQL_WORDS = re.compile(r":=|\b[a-z]+_[a-z_0-9]+|\(table |\b(vllm|mlx-lm|sglang|transformers|llama_cpp)\b|\bdtype\b")
ODD = (
    {"context_tokens": 0},
    {"gpu_count": 0},
    {"lora_rank": 0, "phase_id": "lora"},
    {"lora_targets": "everything", "phase_id": "lora"},
    {"adapter": "ia3", "phase_id": "lora"},
    {"adapter": "dora", "phase_id": "pretrain"},
    {"optimizer_id": "nobody", "phase_id": "lora"},
    {"optimizer_id": "galore-adamw", "phase_id": "lora"},
    {"optimizer_id": "galore-adamw", "phase_id": "pretrain", "optimizer_rank": 0},
    {"optimizer_id": "galore-adamw", "phase_id": "pretrain", "gpu_count": 2, "sharding": "zero3"},
    {"loss": "some", "phase_id": "lora"},
    {"loss": "fused", "phase_id": "pretrain", "precision": "amp"},
    {"gradient_accumulation": 0, "phase_id": "lora"},
    {"precision": "much", "phase_id": "lora"},
    {"checkpointing": "some", "phase_id": "lora"},
    {"attention": "some"},
    {"sharding": "some", "gpu_count": 2},
    {"kv_dtype_id": "fp4"},
    {"dtype_id": "fp3"},
    {"phase_id": "dream"},
    {"engine_id": "nobody"},
    {"image_width": 0},
    {"images": 1, "phase_id": "lora"},
    {"images": 900, "context_tokens": 512},
    {"offload": "some", "phase_id": "lora"},
    {"tensor_parallel": 0, "gpu_count": 2},
    {"context_parallel": 2, "gpu_count": 2},
    {"context_parallel": 2, "gpu_count": 2, "phase_id": "lora", "context_tokens": 7},
    {"context_parallel": 2, "gpu_count": 2, "phase_id": "lora", "attention": "eager"},
    {"dtype_id": "fp8", "phase_id": "pretrain"},
    {"dtype_id": "gguf-q4_k_m", "phase_id": "pretrain"},
    {"dtype_id": "gguf-q4_k_m", "phase_id": "lora"},
    {"dtype_id": "bf16", "phase_id": "qlora"},
    {"max_context_tokens": 100},
)
NAMES = ("dtype", "engine", "optimizer")


@pytest.fixture(scope="module")
def pairs(book):
    read = lambda name: book.sql(f"from {name}").pl().to_dicts()  # noqa: E731
    return plain.rules({name: read(name) for name in NAMES})


@pytest.fixture(scope="module")
def reasons(book):
    """Reasons that the formulas give: of questions at random, and of one for each thing that can be asked wrongly."""
    ids = [row[0] for row in book.execute("select model_id from shape order by hash(model_id) limit 10").fetchall()]
    ids += [
        "black-forest-labs/FLUX.1-dev",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "openai/gpt-oss-20b",
        "openai/whisper-large-v3",
    ]
    asked = [{"model_id": m} | s for seed, m in enumerate(ids) for s in scenarios(book, 20, seed)]
    asked += [{"model_id": m} | odd for m in ids for odd in ODD]
    blank = {name: pl.Series([], dtype=kind) for name, kind in TYPES.items()}
    frame = pl.concat([pl.DataFrame(blank), pl.DataFrame(asked, schema_overrides=TYPES, strict=False)], how="diagonal")
    book.register("asked_rows", frame.to_arrow())
    book.execute("create or replace temp table reasons_asked as from asked_rows")
    book.unregister("asked_rows")
    found: set = set()
    for query in (
        "select distinct unknown_reason from footprints('reasons_asked')",
        "select distinct how from runs_on where how is not null and runs is distinct from true",
        "select distinct kv_reason(kv, NULL, vendor, compute_capability) from kv_dtype as kv, gpu",
        "select distinct unknown_reason from pipeline_of('MiniMaxAI/MiniMax-Music3')",
        "select distinct told.unknown_reason from (select distinct model_id from component) as c, "
        "pipeline_of(c.model_id, denoiser_dtype_id := 'gguf-q4_k_m') as told",
        "select distinct told.unknown_reason from (select distinct model_id from component) as c, "
        "pipeline_training_of(c.model_id, denoiser_dtype_id := 'nf4') as told",
        "select distinct unknown_reason from pipeline_training_of('black-forest-labs/FLUX.1-dev', checkpointing := 'selective')",
        "select distinct unknown_reason from pipeline_training_of('black-forest-labs/FLUX.1-dev', lora_rank := 0)",
    ):
        found |= {row[0] for row in book.execute(query).fetchall()} - {None}
    return sorted(found)


def test_no_reason_that_reaches_a_reader_speaks_sql(pairs, reasons):
    assert len(reasons) > 60 and sum(bool(SQL_WORDS.search(reason)) for reason in reasons) > 20
    tell = plain.teller(pairs)
    told = {tell(reason): reason for reason in reasons}
    assert not {said: reason for said, reason in told.items() if SQL_WORDS.search(said)}


def test_a_reason_says_what_it_is_about():
    tell = plain.teller(plain.rules({"engine": [{"engine_id": "mlx-lm", "name": "MLX LM"}]}))
    beyond = "context_tokens := 131072 is beyond the 40960 tokens of this model (max_context_tokens := n where its positions are stretched)"
    assert (
        tell(beyond)
        == "a context of 131,072 tokens is beyond the 40,960 that this model reads, unless its positions are stretched"
    )
    assert tell("mlx-lm cannot load this architecture (table engine_gap)") == "MLX LM cannot load this architecture"
    assert (
        tell("12 attention heads do not divide by tensor_parallel 8") == "12 attention heads do not divide among 8 GPUs"
    )
    assert tell("attention := 'eager' says what is needed") == "eager attention says what is needed"
