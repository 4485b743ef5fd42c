"""Our error: what the formulas say for the scenario of every measurement, against what was measured.

`reading.csv` says how the words of `measured` are read as a scenario. A row that it cannot read, or whose model or format the
almanac does not know, keeps a reason and is counted. `fill_accuracy` fills `prediction` and `accuracy` and nothing else.

A run that generates after its prompt has two moments, the prompt's forward and the last token; the larger one is compared.
"""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl

from pipeline.book.packs import Packs
from pipeline.book.scenario import TYPES
from pipeline.press.compared import BEYOND, COMPARED, COMPARED_PIPELINE
from pipeline.press.kept_footprints import answer
from pipeline.press.measured_words import LOGGED, PIPELINE, REQUIRED, ReadingError, read_scenarios


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
    same = " AND ".join(f"(a.{name} IS NULL OR a.{name} = f.{name})" for name in columns if name not in REQUIRED)
    same += "".join(f" AND a.{name} = f.{name}" for name in columns if name in REQUIRED)
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
            WHEN compared_with = 'total_on_hopper' THEN -{BEYOND} ELSE 0 END AS needed,
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
