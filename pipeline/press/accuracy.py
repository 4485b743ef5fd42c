"""Our error: what the formulas say for the scenario of every measurement, against what was measured.

`reading.csv` says how the words of `measured` are read as a scenario. A row that it cannot read, or whose model or format the
almanac does not know, keeps a reason and is counted. `fill_accuracy` fills `prediction` and `accuracy` and nothing else.

A run that generates after its prompt has two moments, the prompt's forward and the last token; the larger one is compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import polars as pl

from pipeline.book.packs import Packs
from pipeline.book.scenario import TYPES
from pipeline.press.kept_footprints import answer

Row = Mapping[str, Any]

# What a run of a diffusion pipeline was asked, in the words of `pipeline_of`: it has no context, and is another question.
PIPELINE = dict.fromkeys(("placement", "denoiser_dtype_id", "text_dtype_id"), pl.String)
PIPELINE |= dict.fromkeys(("width", "height", "frames"), pl.Int64) | {"is_tiled": pl.Boolean}
# what a server's log says of its card
LOGGED = {"card_gib": pl.Float64, "card_share": pl.Float64}

# What a scenario must have before it is asked for, and what is said where the words do not give it.
_REQUIRED = {
    "compared_with": "the metric has no counterpart in a footprint",
    "engine_id": "the program is not an engine of ours",
    "phase_id": "the phase is none of ours",
    "dtype_id": "the format of the weights is not stated, or not one of ours",
    "context_tokens": "the context is not stated as one number",
    "sequences": "the number of sequences is not stated",
    "gpu_count": "more than one kind of parallelism",
}
_NUMBERS = (
    "context_tokens", "sequences", "gpu_count", "tensor_parallel", "pipeline_parallel", "context_parallel", "lora_rank",
    "generated_tokens", "gradient_accumulation", "reduce_bucket_elements", "width", "height", "frames",
)  # fmt: skip
# how a word of reading.csv becomes a share or a flag
_AS = {pl.Float64: float, pl.Boolean: "true".__eq__}
# Between two steps, and what cuBLAS takes of the allocator on the card that was measured: for each thread that multiplies, in
# training that of the forward pass and autograd's.
_RESIDENT = "f.weights_bytes + f.kv_cache_bytes + f.kv_padding_bytes + f.state_bytes + resting_bytes(m, {'rotations_in': run.rotations_in, 'dtype_id': f.dtype_id, 'context_tokens': f.context_tokens})::BIGINT"
_WORKSPACE = (
    "(iif(f.phase_id = 'inference', 1, 2) * CASE a.workspace WHEN 'hopper' THEN k.cublas_workspace_bytes "
    "WHEN 'older' THEN k.cublas_workspace_old_bytes ELSE 0 END)::BIGINT"
)
# Versions that hand the cache over as tuples keep the old one while a step makes the new one.
_OLD_CACHE = "iif(f.engine_id = 'transformers-4.44', f.kv_cache_bytes, 0)"
# AutoAWQ's fused attention holds rotations of every position of its cache in each layer: a complex number for two elements of a head.
_FUSED_ROTATIONS = (
    "8 * m.head_dim_max / 2 * f.context_tokens * list_sum(list_transform(m.caches, lambda layer: layer.layer_count))"
)
# (the driver holds paged states, and PyTorch's allocator knows nothing of them)
_PAGED = "iif(starts_with(f.optimizer_id, 'paged-'), f.optimizer_bytes, 0)"
_ALLOCATED = f"f.total_bytes - f.overhead_bytes - {_PAGED} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE}"
# What a process takes of a Hopper card beyond the context that every footprint counts: it is on the card's side (capacity).
_BEYOND = "(k.cuda_context_hopper_mib * 1048576 - k.process_context_bytes)::BIGINT"
# Of so many GiB of a card and of it such a share, as a server's log names both: what weights, profiling run and the rest leave.
_CACHE_LEFT = "a.card_share * a.card_gib * 1073741824 - f.weights_bytes - rounding_bytes(m, f) - f.activations_bytes - non_torch_bytes(f, k)"
# Sums of components that measurements are compared with, over a footprint f, its weights w, the constants k and the measurement a.
COMPARED = {
    "allocated": _ALLOCATED,
    # of a first step, whose packed layers' inputs of the step before are not there yet
    "allocated_first": f"{_ALLOCATED} - (f.context_tokens * f.sequences * packed_inputs(m, {{'keeps_packed_inputs': run.keeps_packed_inputs, "
    "'phase_id': f.phase_id, 'compute_bytes': 2, 'adapter': f.adapter}))::BIGINT",
    # summed over two and three cards, each of which has the activations of a layer at some time
    "allocated_on_two": f"{_ALLOCATED} + f.activations_bytes",
    "allocated_on_three": f"{_ALLOCATED} + 2 * f.activations_bytes",
    "loaded": "f.weights_bytes + rounding_bytes(m, f)::BIGINT + rotation_table_bytes(m, f)",
    "with_adapters": "f.weights_bytes + f.adapters_bytes",
    # what the allocator holds of a model that was loaded, with its adapters
    "reserved_before_training": "f.weights_bytes + f.adapters_bytes + rounding_bytes(m, f)::BIGINT + packing_bytes(m, f)",
    "reserved": "f.total_bytes - k.process_context_bytes::BIGINT",
    "resident": f"{_RESIDENT} + {_WORKSPACE}",
    "resident_fused": f"{_RESIDENT} + {_FUSED_ROTATIONS} + {_WORKSPACE}",
    "generated": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE}",
    # as the driver sees it
    "generated_total": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE} + k.process_context_bytes::BIGINT",
    "generated_on_hopper": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE} + k.process_context_bytes::BIGINT + {_BEYOND}",
    "profiled": "f.activations_bytes - rotation_table_bytes(m, f)",
    "cache": "f.kv_cache_bytes + f.kv_padding_bytes",
    # what a server leaves for its cache of the share of the card that its log names
    "cache_left": _CACHE_LEFT,
    "tokens_left": f"16 * floor(({_CACHE_LEFT}) / (f.kv_cache_bytes / (f.context_tokens * f.sequences)) / 16)",
    # of the layers without a window, which some engines print by themselves
    "cache_of_whole_context": "(f.sequences * f.context_tokens * 2 * list_sum(list_transform(m.caches, lambda layer: "
    "iif(layer.window_tokens IS NULL, layer.layer_count * layer.elements_per_token, 0))))::BIGINT",
    "device_weights": "f.weights_bytes",
    "weights_without_embedding": "f.weights_bytes - w.input_bytes",
    # of a process that has loaded a model and runs nothing yet
    "loaded_total": "f.weights_bytes + coalesce(run.process_context_bytes, k.process_context_bytes)::BIGINT",
    "non_torch": "non_torch_bytes(f, k)::BIGINT",
    "graphs": "graphs_bytes_vllm(m, f, k)::BIGINT",
    "states": "f.weights_bytes + f.gradients_bytes + f.optimizer_bytes",
    # of a stage of a pipeline that has neither embedding nor head: the first stage's without its embedding
    "states_of_middle": "((f.weights_bytes + f.gradients_bytes + f.optimizer_bytes) * (m.layer_elements / f.pipeline_parallel) "
    "/ (m.layer_elements / f.pipeline_parallel + m.input_elements))::BIGINT",
    "context": "k.process_context_bytes::BIGINT",
    "total_on_hopper": f"f.total_bytes + {_BEYOND}",
    "parameter_count": "m.parameter_count",
    # of a file, of which an engine may leave a part in the computer's memory
    "weights_bytes": "f.weights_bytes + if(f.engine_id IN (SELECT engine_id FROM engine_memory WHERE inputs_on_host), "
    "coalesce(w.input_bytes, 0), 0)",
    **{name: f"f.{name}" for name in ("kv_cache_bytes", "activations_bytes", "total_bytes")},
}


# The same of a pipeline p: of the part that allocates most, which need not be the one whose unused blocks make it the largest; and
# of one whose denoiser stays while the other parts come and go.
COMPARED_PIPELINE = {
    "allocated": "p.allocated_bytes",
    "allocated_beside_denoiser": "p.beside_denoiser_bytes",
    "reserved": "p.total_bytes - k.process_context_bytes::BIGINT",
    "total_bytes": "p.total_bytes",
}


class ReadingError(ValueError):
    """A rule of reading.csv that speaks of something that does not exist, or a scenario that is not answered just once."""


def read_scenarios(measured: Iterable[Row], rules: Iterable[Row]) -> list[dict[str, Any]]:
    """One scenario per measurement: columns of TYPES, `compared_with`, `generated_tokens`, `workspace` and `reason`."""
    measured = list(measured)
    rules = _compiled(rules)
    tokens = {row["group_id"]: row["value"] for row in measured if row["metric"] == "kv_tokens"}
    scenarios = []
    for row in measured:
        words = {name: "" if value is None else str(value).strip() for name, value in row.items()}
        words["is_trap"] = words["is_trap"].lower()
        words["group_kv_tokens"] = ""
        if row["metric"] == "kv_cache_bytes" and words["framework"].startswith("vLLM"):
            # what is left for the cache depends on the card; its size per token is what can be compared
            count = tokens.get(row["group_id"])
            words["group_kv_tokens"] = "unknown" if count is None else f"{count:.0f}"
        scenarios.append({"measured_id": row["measured_id"], **_with_defaults(_read(words, rules))})
    return scenarios


def _compiled(rules: Iterable[Row]) -> list[dict[str, Any]]:
    known = {*TYPES, *PIPELINE, *LOGGED, "compared_with", "generated_tokens", "workspace", "reason"}
    ready = []
    for rule in sorted(rules, key=lambda rule: rule["rank"]):
        if rule["reads"] not in known:
            raise ReadingError(f"reading.csv: rank {rule['rank']} reads {rule['reads']!r}, which no scenario has")
        if rule["reads"] == "compared_with" and rule["as_value"] not in COMPARED | COMPARED_PIPELINE:
            raise ReadingError(
                f"reading.csv: rank {rule['rank']} compares with {rule['as_value']!r}, which nothing computes"
            )
        try:
            patterns = re.compile(rule["pattern"] or ""), re.compile(rule["when_pattern"] or "")
        except re.error as error:
            raise ReadingError(f"reading.csv: rank {rule['rank']} is no regular expression: {error}") from None
        ready.append({**rule, "pattern": patterns[0], "when_pattern": patterns[1]})
    return ready


def _read(words: Mapping[str, str], rules: Iterable[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rule in rules:
        field = rule["reads"]
        if field in found or (rule["when_column"] and not rule["when_pattern"].fullmatch(words[rule["when_column"]])):
            continue
        if match := rule["pattern"].fullmatch(words[rule["column_name"]]):
            value = match.expand(rule["as_value"])
            if field in _NUMBERS:
                value = math.prod(map(int, value.split("*")))
            found[field] = (
                _AS.get((TYPES | PIPELINE | LOGGED).get(field), str)(value) if field not in _NUMBERS else value
            )
    return found


def _with_defaults(found: dict[str, Any]) -> dict[str, Any]:
    """Every column, with what a measurement means where it says nothing."""
    row = (
        dict.fromkeys((*TYPES, *PIPELINE, *LOGGED, "compared_with", "generated_tokens", "workspace", "reason")) | found
    )
    if row["placement"] is not None:
        return _of_pipeline(row)
    if row["reason"] is None:
        row["reason"] = next((why for name, why in _REQUIRED.items() if row[name] is None), None)
    trains, adapts = row["phase_id"] not in (None, "inference"), row["phase_id"] in ("lora", "qlora")
    row["kv_dtype_id"] = None if trains else row["kv_dtype_id"] or ("fp32" if row["dtype_id"] == "fp32" else "bf16")
    row["optimizer_id"] = (row["optimizer_id"] or "adamw") if trains else None
    row["checkpointing"] = (row["checkpointing"] or "none") if trains else None
    row["attention"] = row["attention"] or "flash"
    row["precision"] = (row["precision"] or _precision(row)) if trains else None
    # what was measured did run
    row["max_context_tokens"] = row["context_tokens"] and row["context_tokens"] + (row["generated_tokens"] or 0)
    row["loss"] = (row["loss"] or "full") if trains else None
    row["gradient_accumulation"] = (row["gradient_accumulation"] or 1) if trains else None
    row["ema"], row["optimizer_rank"] = (False, 128) if trains else (None, None)
    row["adapter"] = (row["adapter"] or "lora") if adapts else None
    row["lora_rank"] = (row["lora_rank"] or 16) if adapts else None
    row["trains_embeddings"] = bool(row["trains_embeddings"]) if adapts else None
    if adapts and row["lora_targets"] is None:
        row["reason"] = row["reason"] or "the adapters' targets are not attention or all linear layers"
        row["lora_targets"] = "all-linear"
    elif not adapts:
        row["lora_targets"] = None
    row["sharding"] = "none" if row["gpu_count"] == 1 else row["sharding"] or "tp"
    tensor, pipeline = row["sharding"] == "tp", row["sharding"] == "pp"
    row["tensor_parallel"] = row["tensor_parallel"] or (row["gpu_count"] if tensor else 1)
    row["pipeline_parallel"] = row["pipeline_parallel"] or (row["gpu_count"] if pipeline else 1)
    row["micro_batches_in_flight"] = row["pipeline_parallel"]
    row["context_parallel"], row["expert_parallel"] = row["context_parallel"] or 1, row["expert_parallel"] or 1
    row["offload"] = "none"
    return row


def _of_pipeline(row: dict[str, Any]) -> dict[str, Any]:
    needed = ("compared_with", "phase_id", "dtype_id")
    row["reason"] = row["reason"] or next((_REQUIRED[name] for name in needed if row[name] is None), None)
    if row["reason"] is None and row["compared_with"] not in COMPARED_PIPELINE:
        row["reason"] = "the metric has no counterpart in a pipeline"
    return row | {"sequences": 1, "gpu_count": 1, "sharding": "none"}


def _precision(row: Row) -> str:
    return "amp" if row["phase_id"] == "qlora" else "pure" if row["dtype_id"] == "fp32" else "mixed"


def fill_accuracy(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """Fills `prediction` and `accuracy` of a database that holds facts, anatomy and formulas. What `packs` know is not asked again."""
    measured = _rows(connection, "FROM measured ORDER BY measured_id")
    scenarios = read_scenarios(measured, _rows(connection, "FROM reading"))
    schema = {
        "measured_id": pl.String,
        **TYPES,
        **PIPELINE,
        **LOGGED,
        "compared_with": pl.String,
        "generated_tokens": pl.Int64,
        "workspace": pl.String,
        "reason": pl.String,
    }
    connection.register("scenario_rows", pl.DataFrame(scenarios, schema=schema).to_arrow())
    # a model goes by the name that it has in this snapshot, as whoever asks for it finds it
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE measured_scenario AS SELECT * REPLACE (known_model(model_id) AS model_id) FROM scenario_rows"
    )
    connection.unregister("scenario_rows")
    connection.execute(_MOMENTS)
    columns = list(TYPES)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE moment_asked AS SELECT DISTINCT {', '.join(columns)} FROM measured_moment"
    )
    answer(connection, "moment_asked", "moment_answer", packs)
    compared = " ".join(f"WHEN '{name}' THEN {expression}" for name, expression in COMPARED.items())
    # what nobody says, the model or the engine decides
    same = " AND ".join(f"(a.{name} IS NULL OR a.{name} = f.{name})" for name in columns if name not in _REQUIRED)
    same += "".join(f" AND a.{name} = f.{name}" for name in columns if name in _REQUIRED)
    _ask_once(connection, same)
    connection.execute(_PIPELINES.format(asked=_PIPELINE_ASKED))
    connection.execute("DELETE FROM prediction")
    connection.execute("DELETE FROM accuracy")
    of_pipelines = " ".join(f"WHEN '{name}' THEN {expression}" for name, expression in COMPARED_PIPELINE.items())
    words = {"compared": compared, "same": same, "generated": COMPARED["generated"], "of_pipelines": of_pipelines}
    connection.execute(_PREDICTIONS.format(**words))
    connection.execute(_ACCURACY)
    for name in ("measured_scenario", "measured_moment", "moment_asked", "moment_answer", "measured_pipeline"):
        connection.execute(f"DROP TABLE {name}")


def _ask_once(connection: duckdb.DuckDBPyConnection, same: str) -> None:
    """No measurement is left out, or compared twice: its scenario and its answer find each other."""
    lost = connection.execute(f"""
        SELECT measured_id, count(f.model_id) FROM measured_moment AS a LEFT JOIN moment_answer AS f ON {same}
        GROUP BY measured_id, compared_with, a.context_tokens HAVING count(f.model_id) <> 1 ORDER BY ALL
    """).fetchall()
    if lost:
        raise ReadingError("; ".join(f"{measured_id} has {answers} answers" for measured_id, answers in lost))


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


# The prompt, and the end of generation: its cache without the prompt's activations.
_MOMENTS = """
CREATE OR REPLACE TEMP TABLE measured_moment AS
SELECT * EXCLUDE (compared_with) REPLACE (if(starts_with(compared_with, 'resident'), context_tokens + coalesce(generated_tokens, 0), context_tokens)
    AS context_tokens), compared_with, false AS is_end
FROM measured_scenario WHERE reason IS NULL AND placement IS NULL
UNION ALL
SELECT * EXCLUDE (compared_with) REPLACE (context_tokens + generated_tokens AS context_tokens),
    CASE compared_with WHEN 'total_bytes' THEN 'generated_total' WHEN 'total_on_hopper' THEN 'generated_on_hopper' ELSE 'generated' END, true
FROM measured_scenario WHERE reason IS NULL AND placement IS NULL AND generated_tokens > 0
    AND (starts_with(compared_with, 'allocated') OR compared_with IN ('total_bytes', 'total_on_hopper'))
"""

# What is not said is what `pipeline_of` takes where nobody says it.
_PIPELINES = """
CREATE OR REPLACE TEMP TABLE measured_pipeline AS
WITH scenario AS (FROM measured_scenario WHERE reason IS NULL AND placement IS NOT NULL),
part AS (
    SELECT asked.measured_id, iif(asked.placement = 'resident', sum(told.weights_bytes), 0)
        + max(stays(told, asked.placement) + told.activations_bytes) AS allocated_bytes,
        sum(iif(told.stage = 'denoise', told.weights_bytes, 0)) + max(iif(told.stage = 'denoise', 0, told.weights_bytes)
            + told.activations_bytes) AS beside_denoiser_bytes
    FROM scenario, LATERAL (SELECT scenario.*) AS asked, pipeline_stages({asked}) AS told
    GROUP BY asked.measured_id, asked.placement
)
SELECT asked.measured_id, asked.compared_with, told.*, iif(told.unknown_reason IS NULL, part.allocated_bytes, NULL)::BIGINT AS allocated_bytes,
    part.beside_denoiser_bytes::BIGINT AS beside_denoiser_bytes
FROM scenario, LATERAL (SELECT scenario.*) AS asked, pipeline_of({asked}) AS told
LEFT JOIN part ON part.measured_id = asked.measured_id
WHERE told.placement = asked.placement
"""
_PIPELINE_ASKED = "asked.model_id" + "".join(
    f", {name} := asked.{name}" for name in ("dtype_id", *PIPELINE) if name != "placement"
)

_PREDICTIONS = """
INSERT INTO prediction BY NAME
WITH moment AS (
    SELECT a.measured_id, CASE a.compared_with {compared} END AS predicted, f.unknown_reason,
        -- nothing runs a whole prompt at the end of generation
        if(a.is_end, {generated} + k.process_context_bytes::BIGINT, f.total_bytes) AS total_bytes,
        if(a.is_end, k.error_band_transformers, f.error_band) AS error_band
    FROM measured_moment AS a
    CROSS JOIN constants AS k
    LEFT JOIN moment_answer AS f ON {same}
    LEFT JOIN engine_row AS run ON run.engine_id = f.engine_id
    LEFT JOIN shape AS m ON m.model_id = a.model_id
    LEFT JOIN weight AS w ON w.model_id = a.model_id AND w.dtype_id = a.dtype_id
    UNION ALL BY NAME
    SELECT p.measured_id, CASE p.compared_with {of_pipelines} END AS predicted, p.unknown_reason, p.total_bytes, p.error_band
    FROM measured_pipeline AS p CROSS JOIN constants AS k
),
peak AS (
    SELECT measured_id, if(count(predicted) = count(*), max(predicted), NULL) AS predicted,
        max(total_bytes) AS total_bytes, arg_max(error_band, needed(total_bytes, error_band)) AS error_band, any_value(unknown_reason) AS unknown_reason
    FROM moment GROUP BY measured_id
)
SELECT
    s.measured_id, s.phase_id, s.engine_id, coalesce(s.model_id, measured.model_id) AS model_id, s.dtype_id, s.context_tokens,
    s.generated_tokens, s.sequences, s.sharding, s.gpu_count, s.compared_with, peak.predicted AS predicted_bytes,
    peak.predicted / coalesce(measured.value_bytes, measured.value) - 1 AS error,
    peak.total_bytes, peak.error_band,
    coalesce(s.reason, if(peak.predicted IS NULL, coalesce(peak.unknown_reason, 'the footprint is not known'), NULL)) AS reason
FROM measured_scenario AS s
JOIN measured USING (measured_id)
LEFT JOIN peak USING (measured_id)
"""

# A peak on the card is what was measured, and the context of the process where the allocator was asked. What the driver shows
# after a cache has grown token by token to twice its prompt and more is no peak of anything: blocks that grow do not fit the holes of those before, and the
# allocator gives whole free segments back when memory runs out (PyTorch, CUDACachingAllocator.cpp, release_cached_blocks).
# Whatever was held at some moment can show a false "fits". That we refused needlessly is shown by a whole run alone: not by what lies there
# between two steps, at a first step or once a model is loaded, and not by live tensors where the same run has what the allocator or the
# driver held of them.
_MOMENTS_OF_A_RUN = ("resident", "resident_fused", "allocated_first", "loaded_total")
_RUN = (
    "group_id", "model_id", "phase", "weights_dtype", "optimizer", "micro_batch", "seq_len", "grad_accum", "act_ckpt",
    "lora", "parallelism", "framework", "gpu", "kv_dtype", "trainable_params",
)  # fmt: skip
_ACCURACY = f"""
INSERT INTO accuracy BY NAME
WITH peak AS (
    SELECT measured_id, total_bytes, needed(total_bytes, error_band) AS claimed,
        value_bytes + CASE WHEN metric <> 'nvidia_smi_total' THEN k.process_context_bytes
            WHEN compared_with = 'total_on_hopper' THEN -{_BEYOND} ELSE 0 END AS needed,
        compared_with NOT IN {_MOMENTS_OF_A_RUN} AND (metric <> 'peak_allocated' OR bool_and(metric = 'peak_allocated')
            OVER (PARTITION BY {", ".join(f"measured.{name}" for name in _RUN)})) AS is_whole
    FROM prediction JOIN measured USING (measured_id) CROSS JOIN constants AS k
    WHERE error IS NOT NULL AND gpu_count = 1 AND metric IN ('peak_allocated', 'peak_reserved', 'nvidia_smi_total')
        AND NOT starts_with(compared_with, 'allocated_on_') AND NOT (metric = 'nvidia_smi_total' AND coalesce(generated_tokens, 0) > context_tokens)
),
judged AS (
    SELECT measured_id, count(*) AS verdicts, count(*) FILTER (is_whole) AS whole_verdicts,
        count(*) FILTER (claimed <= capacity_bytes AND needed > capacity_bytes) AS wrong_fits,
        count(*) FILTER (is_whole AND total_bytes > capacity_bytes AND needed <= capacity_bytes) AS needless_refusals,
        count(*) FILTER (is_whole AND total_bytes <= capacity_bytes AND claimed > capacity_bytes AND needed <= capacity_bytes)
            AS needless_doubts
    FROM peak CROSS JOIN gpu GROUP BY measured_id
)
SELECT
    metric, coalesce(p.phase_id, measured.phase) AS phase_id, coalesce(p.engine_id, 'not read') AS engine_id,
    coalesce(strict_set, 'other') AS strict_set,
    count(*) AS measured_count, count(error) AS row_count,
    median(abs(error)) AS median_error, quantile_cont(abs(error), 0.95) AS p95_error,
    min(error) AS worst_under, max(error) AS worst_over,
    sum(verdicts) AS verdict_count, sum(wrong_fits) AS wrong_fits_count, sum(whole_verdicts) AS whole_verdict_count,
    sum(needless_refusals) AS needless_refusal_count, sum(needless_doubts) AS needless_doubt_count
FROM prediction AS p JOIN measured USING (measured_id) LEFT JOIN judged USING (measured_id)
GROUP BY ALL
"""


def shown(connection: duckdb.DuckDBPyConnection) -> str:
    """The accuracy table for people, and how many measurements are not compared, by reason."""
    heads = ("rows", "median", "p95", "under", "over", "wrong fits", "wrong no", "doubted")
    lines = [f"{'metric':18}{'phase':15}{'engine':18}{'set':6}" + "".join(f"{head:>11}" for head in heads)]
    for row in _rows(connection, "FROM accuracy ORDER BY metric, phase_id, engine_id, strict_set"):
        shares = [row[name] for name in ("median_error", "p95_error", "worst_under", "worst_over")]
        shares.append(_share(row["wrong_fits_count"], row["verdict_count"]))
        shares += [_share(row[f"needless_{kind}_count"], row["whole_verdict_count"]) for kind in ("refusal", "doubt")]
        named = f"{row['metric']:18}{row['phase_id']:15}{row['engine_id']:18}{row['strict_set']:6}"
        counted = f"{row['row_count']}/{row['measured_count']}"
        lines.append(
            f"{named}{counted:>11}" + "".join(f"{'–' if x is None else f'{100 * x:.2f}%':>11}" for x in shares)
        )
    measured, compared = connection.execute("SELECT count(*), count(error) FROM prediction").fetchall()[0]
    lines.append(f"\n{compared} of {measured} measurements are compared. Not compared: {measured - compared}")
    reasons = "SELECT count(*) AS rows, reason FROM prediction WHERE reason IS NOT NULL GROUP BY reason ORDER BY rows DESC, reason"
    lines += [f"{count:5}  {reason}" for count, reason in connection.execute(reasons).fetchall()]
    return "\n".join(lines)


def _share(some: int | None, whole: int | None) -> float | None:
    return some / whole if whole else None
