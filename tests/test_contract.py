"""What scripts rely on: the tables and columns by name, ids of formats and phases, and a database that old readers open."""

from __future__ import annotations

import pytest

from pipeline.book.schema import COLUMNS, DUCKDB_TYPES, PUBLISHED
from pipeline.press import file
from tests import few

CONTRACT = {
    "model": "model_id revision pipeline_tag library license is_gated downloads_30d likes family model_type parameter_count "
    "stored_parameter_count active_parameter_count max_context_tokens anatomy_grade anatomy_note facts_as_of",
    "tensor_class": "model_id tensor_class element_count layer_count is_quantisable",
    "attention_layer": "model_id kind layer_count elements_per_token window_tokens state_elements",
    "gpu": "gpu_id name vendor segment architecture compute_capability memory_gib_nominal capacity_bytes capacity_basis "
    "memory_bandwidth_gb_s bf16_tflops_dense source",
    "dtype": "dtype_id name engine_id",
    "phase": "phase_id",
    "footprint": "model_id dtype_id phase_id engine_id context_tokens sequences kv_dtype_id optimizer_id precision checkpointing "
    "sharding gpu_count weights_bytes kv_cache_bytes kv_padding_bytes state_bytes activations_bytes gradients_bytes "
    "optimizer_bytes adapters_bytes overhead_bytes total_bytes error_band",
    "compatibility": "model_id dtype_id phase_id gpu_id total_bytes gpu_count_needed verdict",
    "constant": "constant_id value unit source",
    "source": "source_id",
    "measured": "metric value_bytes source",
    "accuracy": "metric phase_id engine_id",
}
DTYPES = (
    "fp32 bf16 fp16 fp8 int8 nf4 awq-int4 gptq-int4 mxfp4 nvfp4 gguf-q8_0 gguf-q6_k gguf-q5_k_m gguf-q4_k_m gguf-q3_k_m "
    "gguf-q2_k stored"
)


@pytest.mark.parametrize("table", CONTRACT)
def test_tables_have_the_columns_of_the_contract(book, table):
    columns = {row[0] for row in book.execute(f"DESCRIBE {table}").fetchall()}
    assert set(CONTRACT[table].split()) <= columns


@pytest.mark.parametrize("name", [n for n in PUBLISHED])
def test_tables_are_as_the_schema_declares_them(book, name):
    types = {row[0]: row[1] for row in book.execute(f"DESCRIBE {name}").fetchall()}
    declared = {column.name: DUCKDB_TYPES[column.type] for column in PUBLISHED[name].columns}
    assert {n: t for n, t in types.items() if n in declared} == declared


def test_every_format_and_phase_of_the_contract_is_there(book):
    assert {row[0] for row in book.execute("SELECT dtype_id FROM dtype").fetchall()} >= set(DTYPES.split())
    phases = {row[0] for row in book.execute("SELECT phase_id FROM phase").fetchall()}
    assert phases == {"inference", "pretrain", "full-finetune", "lora", "qlora"}


def test_footprint_of_takes_every_parameter_of_the_contract(book):
    parameters = book.execute(
        "SELECT parameters FROM duckdb_functions() WHERE function_name = 'footprint_of'"
    ).fetchall()[0][0]
    assert set(parameters) == set(
        [
            "model_id",
            "dtype_id",
            "phase_id",
            "context_tokens",
            "sequences",
            "kv_dtype_id",
            "optimizer_id",
            "checkpointing",
            "lora_rank",
            "lora_targets",
            "precision",
            "attention",
            "sharding",
            "gpu_count",
            "engine_id",
            "adapter",
            "loss",
            "gradient_accumulation",
            "ema",
            "optimizer_rank",
            "max_context_tokens",
            "tensor_parallel",
            "pipeline_parallel",
            "context_parallel",
            "expert_parallel",
            "micro_batches_in_flight",
            "sequence_parallel",
            "offload",
            "images",
            "image_width",
            "image_height",
            "audio_seconds",
            "lora_dropout",
            "reduce_bucket_elements",
            "expandable_segments",
            "trains_embeddings",
            "program",
            "program_version",
            "data_parallel",
            "decode_context_parallel",
            "batched_tokens",
            "max_num_seqs",
            "text_only",
            "enforce_eager",
            "max_loras",
            "max_lora_rank",
        ]
    )


def test_byte_counts_are_signed_64_bit_everywhere():
    assert all(c.type == "integer" for c in COLUMNS.everywhere() if c.name.endswith(("_bytes", "_tokens", "_count")))
    assert DUCKDB_TYPES["integer"] == "BIGINT"


def test_the_database_opens_in_duckdb_1_2():
    """The storage version is written into the file's header; files of version 64 open since 1.0, 65 since 1.2."""
    with (few.written() / file.DATABASE).open("rb") as written:
        header = written.read(4096)
    assert header[8:12] == b"DUCK"
    assert int.from_bytes(header[12:20], "little") <= 65
