"""What an older DuckDB is asked of the published file: every macro, found in the file itself, so that a new one cannot be forgotten."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb

from pipeline.press.formulas import sql_files
from pipeline.render.data.calculator import SCALARS

TEXT, PIPELINE, SEES = "Qwen/Qwen3-8B", "stabilityai/stable-diffusion-xl-base-1.0", "google/gemma-4-12B-it"
# One row that is true by each macro that answers with a table.
QUERIES = {
    "footprint_of": f"SELECT total_bytes > 0 FROM footprint_of('{TEXT}', context_tokens := 40000, sequences := 7)",
    "footprints": "SELECT total_bytes > 0 FROM footprints('one_scenario')",
    "footprints_as_written": "SELECT total_bytes > 0 FROM internal.footprints_as_written('one_scenario')",
    "footprints_in": "SELECT total_bytes > 0 FROM footprints_in('one_scenario', 'inference')",
    "footprints_of_inference": "SELECT total_bytes > 0 FROM internal.footprints_of_inference('one_scenario')",
    "footprints_of_training": "SELECT count(*) = 0 FROM internal.footprints_of_training('one_scenario')",
    "footprints_of_plain_inference": "SELECT total_bytes > 0 FROM internal.footprints_of_plain_inference('one_scenario')",
    "footprints_of_usual_inference": "SELECT total_bytes > 0 FROM internal.footprints_of_usual_inference('one_scenario')",
    **{
        f"footprints_of_{width}_{kind}": f"WITH tuned AS (SELECT * REPLACE ('{phase}' AS phase_id) FROM one_scenario) "
        f"SELECT total_bytes > 0 FROM internal.footprints_of_{width}_{kind}('tuned')"
        for width in ("plain", "usual")
        for kind, phase in (("adapters", "lora"), ("whole", "full-finetune"))
    },
    "scenarios": "SELECT sequences = 1 FROM internal.scenarios('one_scenario')",
    "fits_on": f"SELECT verdict = 'fits' FROM fits_on('rtx-4090', '{TEXT}')",
    "counted_kinds": f"SELECT count(*) > 0 AND min(counted_bits) < 5 FROM internal.counted_kinds(['{TEXT}'])",
    "packed_otherwise": f"SELECT count(*) > 0 AND min(more_bytes) > 0 FROM internal.packed_otherwise('cyankiwi/', ['{TEXT}'])",
    "fits_in": "SELECT verdict = 'fits' AND max_context_tokens > 0 FROM fits_in('one_scenario', 'rtx-4090')",
    "with_program": "SELECT program_reason IS NULL FROM internal.with_program('one_scenario')",
    "with_program_in": "SELECT program_reason IS NULL FROM internal.with_program_in('one_scenario', true)",
    "container_of": "SELECT container_id = 'gguf' AND program_name = 'llama.cpp' FROM container_of('someone/Qwen3-8B-GGUF')",
    "repository_of": f"SELECT model_id = '{TEXT}' AND dtype_id = 'awq-int4' FROM repository_of('someone/Qwen3-8B-AWQ')",
    "gpus_called": "SELECT count(*) = 1 FROM gpus_called('4090')",
    "program_called": "SELECT engine_id = 'vllm' AND is_known FROM program_called('vLLM')",
    "own_context_of": "SELECT max(context_tokens) FILTER (is_taken) = 32768 FROM own_context_of('ollama', gpu_bytes := 25000000000)",
    "what_fits": "SELECT count(*) > 0 FROM what_fits('rtx-4090')",
    "plans_for": f"SELECT count(*) > 0 FROM plans_for('h100-sxm', '{TEXT}')",
    "plan_for": f"SELECT verdict = 'fits' FROM plan_for('h100-sxm', '{TEXT}', users := 3)",
    "serving_plans_in": "SELECT verdict = 'fits' FROM internal.serving_plans_in('one_plan') ORDER BY plan_rank",
    "plan_training_for": f"SELECT finishes = 'yes' FROM plan_training_for('h100-sxm', '{TEXT}', data_bytes := 1000000)",
    "training_plans_in": "WITH way AS (FROM plans_for('h100-sxm', 'Qwen/Qwen3-8B', phase_id := 'lora')) SELECT hours > 0 "
    "FROM internal.training_plans_in('one_training', 'way') ORDER BY plan_rank",
    "drafted_on": f"SELECT draft_bytes > 0 FROM drafted_on('h100-sxm', '{TEXT}', '{TEXT}')",
    "techniques_for": f"SELECT total_bytes > 0 FROM techniques_for('h100-sxm', '{TEXT}')",
    "on_several_gpus": f"SELECT count(verdict) = 4 FROM on_several_gpus('rtx-4090', '{TEXT}')",
    "limits_on": f"SELECT max_context_tokens > 0 FROM limits_on('rtx-4090', '{TEXT}')",
    "speed_on": f"SELECT decode_tokens_per_second_most > 0 FROM speed_on('rtx-4090', '{TEXT}')",
    "layer_weights": f"SELECT count(*) = 36 FROM internal.layer_weights('{TEXT}')",
    "layer_weights_in": f"WITH pairs AS (SELECT '{TEXT}' AS model_id, 'gguf-q4_k_m' AS dtype_id) "
    "SELECT count(*) = 36 FROM internal.layer_weights_in('pairs')",
    "fits_together": f"SELECT count(verdict) = 2 FROM fits_together(['rtx-3090', 'rtx-3060-12gb'], '{TEXT}')",
    "speculative_of": f"SELECT total_bytes > 0 FROM speculative_of('{TEXT}', '{TEXT}', dtype_id := 'gguf-q4_k_m')",
    "speculative_fits_on": f"SELECT verdict = 'fits' FROM speculative_fits_on('rtx-4090', '{TEXT}', '{TEXT}', dtype_id := 'gguf-q4_k_m')",
    "preference_of": f"SELECT total_bytes > 0 FROM preference_of('dpo', '{TEXT}', phase_id := 'lora')",
    "preference_fits_on": f"SELECT verdict IS NOT NULL AND unknown_reason IS NULL FROM preference_fits_on('h100-sxm', 'grpo', '{TEXT}', phase_id := 'lora', generator := 'vllm-colocate')",
    "layers_that_fit": f"SELECT gpu_layers = 37 FROM layers_that_fit('rtx-4090', '{TEXT}')",
    "what_fits_beside": "SELECT count(*) > 0 FROM what_fits_beside('rtx-4090', 68719476736, free_bytes := 4000000000)",
    "ways_beside": f"WITH one AS (SELECT '{TEXT}' AS model_id, 'gguf-q8_0' AS dtype_id, 9e9 AS total_bytes, 0.05 AS error_band, 4e9 AS bytes) "
    "SELECT count(*) = 0 FROM internal.ways_beside('one', 1)",
    "image_tokens_of": f"SELECT prompt_tokens > 0 FROM image_tokens_of('{SEES}')",
    "pictures": "SELECT count(*) = 1 FROM internal.pictures('one_picture')",
    "pipeline_stages": f"SELECT count(*) > 1 FROM pipeline_stages('{PIPELINE}')",
    "pipeline_of": f"SELECT min(total_bytes) > 0 FROM pipeline_of('{PIPELINE}')",
    "pipeline_fits_on": f"SELECT max(verdict) = 'fits' FROM pipeline_fits_on('rtx-4090', '{PIPELINE}')",
    "pipeline_fits_in": f"WITH one AS (SELECT '{PIPELINE}' AS model_id, 1024 AS width, 1024 AS height, 1 AS frames, 1 AS images) "
    "SELECT max(verdict) = 'fits' FROM pipeline_fits_in('one', 'rtx-4090')",
    "pipeline_training_of": f"SELECT min(total_bytes) > 0 FROM pipeline_training_of('{PIPELINE}')",
    "training_asked": f"SELECT count(*) > 0 FROM internal.training_asked('{PIPELINE}')",
    "pipeline_training_fits_on": f"SELECT max(verdict) = 'fits' FROM pipeline_training_fits_on('rtx-4090', '{PIPELINE}')",
    "speech_asked": f"SELECT counted_bits IS NULL FROM internal.speech_asked('{TEXT}', 30, 'bf16', 'transformers', 512)",
    "speech_of": f"SELECT unknown_reason LIKE '%speech_model%' FROM speech_of('{TEXT}')",
    "speech_fits_on": f"SELECT verdict IS NULL AND unknown_reason LIKE '%speech_model%' FROM speech_fits_on('rtx-4090', '{TEXT}')",
}
# Views, and the macros that only Python or people ask.
BESIDES = [
    "SELECT gpu_named('NVIDIA GeForce RTX 4090', 25757220864) = 'rtx-4090'",
    f"SELECT known_model('{TEXT.lower()}') = '{TEXT}'",
    f"SELECT nearest_models('{TEXT}') IS NOT NULL AND nearest_gpus('rtx-409') IS NOT NULL AND nearest_ids('dtype', 'bf-16') IS NOT NULL",
    "SELECT count(*) > 0 FROM footprint",
    f"SELECT count(*) > 36 FROM cpu_split WHERE model_id = '{TEXT}' AND dtype_id = 'gguf-q4_k_m'",
    "SELECT internal.system_bytes(gpu, 'windows', constants) > 0 FROM gpu, internal.constants WHERE gpu_id = 'rtx-4090'",
    f"SELECT count(verdict) > 0 FROM compatibility WHERE model_id = '{TEXT}' AND gpu_id = 'rtx-4090'",
    "SELECT count(*) > 0 FROM (SELECT internal.ladder_contexts(m, k) FROM internal.shape AS m, internal.constants AS k)",
]
_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import duckdb
connection = duckdb.connect(sys.argv[2], read_only=True)
connection.execute("SET enable_progress_bar = false")  # 1.5 prints it wherever a query takes two seconds
connection.execute("CREATE TEMP TABLE one_scenario AS " + sys.argv[3])
picture = "SELECT 'google/gemma-4-12B-it' AS model_id, NULL::BIGINT AS image_width, NULL::BIGINT AS image_height"
connection.execute("CREATE TEMP TABLE one_picture AS " + picture)
plan = "SELECT 'Qwen/Qwen3-8B' AS model_id, 'h100-sxm' AS gpu_id, 'fp8' AS dtype_id, 3 AS users, 8192 AS context_tokens"
connection.execute("CREATE TEMP TABLE one_plan AS " + plan + ", NULL AS kv_dtype_id, NULL AS engine_id")
training = "SELECT 'Qwen/Qwen3-8B' AS model_id, 'h100-sxm' AS gpu_id, 'lora' AS phase_id, NULL::VARCHAR AS dtype_id, "
numbers = ", ".join(f"{value}::DOUBLE AS {name}" for name, value in (("data_bytes", 1e6), ("data_tokens", "NULL"), ("days", 1),
    ("epochs", 1), ("bytes_per_token", "NULL"), ("global_batch_tokens", "NULL"), ("price_per_gpu_hour", "NULL")))
connection.execute("CREATE TEMP TABLE one_training AS " + training + numbers)
print(json.dumps([duckdb.__version__, [connection.execute(query).fetchall()[0][0] for query in json.loads(sys.argv[4])]]))
"""


def queries(database: Path) -> list[str]:
    """All that is asked of a file. Fails where it holds a table macro without a query, or a scalar one that no query reaches."""
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = connection.execute(
            "SELECT function_name, macro_definition, function_type FROM duckdb_functions() "
            "WHERE NOT internal AND function_type IN ('macro', 'table_macro')"
        ).fetchall()
        views = "\n".join(
            r[0] for r in connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
        )
    tables = {name for name, _text, kind in rows if kind == "table_macro"}
    assert tables == set(QUERIES), f"a query for each table macro: {sorted(tables ^ set(QUERIES))}"
    texts: dict[str, str] = {}
    for name, text, _kind in rows:
        texts[name] = texts.get(name, "") + text
    # (the calculator asks some by themselves, in JavaScript)
    waiting, reached = [*QUERIES.values(), *BESIDES, views, " ".join(SCALARS)], set()
    while waiting:
        words = set(re.findall(r"\w+", waiting.pop()))
        found = (words & texts.keys()) - reached
        reached |= found
        waiting += [texts[name] for name in found]
    # those that the tables are filled by, before anybody reads them
    filled = "\n".join(path.read_text(encoding="utf-8") for path in sql_files())
    statements = [
        part
        for part in filled.split(";\n")
        if re.search(r"CREATE (OR REPLACE )?(TEMP )?(TABLE|VIEW)|UPDATE|INSERT", part)
    ]
    build_words = set(re.findall(r"\w+", "\n".join(statements)))
    more = build_words & texts.keys()
    while more - reached:
        name = (more - reached).pop()
        reached.add(name)
        more |= set(re.findall(r"\w+", texts[name])) & texts.keys()
    assert not texts.keys() - reached, f"no query reaches {sorted(texts.keys() - reached)}"
    return [*QUERIES.values(), *BESIDES]


def ask(folder: Path, database: Path, asked: list[str], scenario: str) -> tuple[str, list[object]]:
    """The version of the DuckDB in a folder, and its first value of each query; in a process of its own, as one process loads one."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder), str(database), scenario, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    version, values = json.loads(done.stdout)
    return version, values


def scenario(names: list[str]) -> str:
    """One scenario, every argument left to its default, as a query."""
    return f"SELECT '{TEXT}' AS model_id, " + ", ".join(f"NULL AS {name}" for name in names if name != "model_id")
