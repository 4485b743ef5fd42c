"""Our verdicts on runs that people reported: `outcome` is `tables/facts/outcome.csv` with what the formulas say of each.

    right             what ran is no `no`, and what did not run is no `fits` (nor `multi-gpu`)
    false fits        what did not run is told to fit
    needless refusal  what ran is told not to
    not known         there is no verdict, and a reason

A run that its program refuses by default is told rightly, too, where the answer comes with the setting that cures it. What nobody said of a
run is what its program does by itself.
"""

from __future__ import annotations

import duckdb

from pipeline.book.packs import Packs
from pipeline.book.scenario import TYPES
from pipeline.book.schema import FACTS
from pipeline.press.kept_footprints import answer

# settings of a server that leave more for one request
_CURES = "--gpu-memory-utilization|--max-num-seqs"
_FAR = 1_048_576  # where nobody says how far a model reads


def fill_outcomes(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """Fills `outcome` of a database that holds facts, anatomy and formulas, and nothing else. What `packs` know is not asked again."""
    said = ", ".join(name for name in TYPES if name in FACTS["outcome"].column_names and name != "model_id")
    (places,) = connection.execute("SELECT 1 + count(*) FROM outcome_fact").fetchone()
    # Rows may be longer than their model was trained for: positions are stretched that far, and a little more, by which an answer is known again.
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE outcome_place AS SELECT outcome_id, row_number() OVER (ORDER BY outcome_id) AS place FROM outcome_fact;
        CREATE OR REPLACE TEMP TABLE outcome_asked AS FROM no_scenario UNION ALL BY NAME
        SELECT coalesce(model.model_id, outcome_fact.model_id) AS model_id, {said},
            {places} * (greatest(context_tokens, coalesce(model.max_context_tokens, {_FAR})) // {places} + 1) + place AS max_context_tokens
        FROM outcome_fact JOIN outcome_place USING (outcome_id) LEFT JOIN model ON model.model_id = known_model(outcome_fact.model_id)
    """)
    answer(connection, "outcome_asked", "outcome_answer", packs)
    connection.execute("DELETE FROM outcome")
    connection.execute(_OUTCOMES.format(places=places))
    for name in ("outcome_place", "outcome_asked", "outcome_answer"):
        connection.execute(f"DROP TABLE {name}")


# A row in one column: of a table's row DuckDB plans all columns each time that a macro reads one of them (tables/sql/ask/fits_on.sql).
_OUTCOMES = f"""
INSERT INTO outcome BY NAME
WITH answered AS (
    SELECT o AS report, f AS footprint FROM outcome_fact AS o JOIN outcome_place AS p ON p.outcome_id = o.outcome_id
    LEFT JOIN outcome_answer AS f ON f.max_context_tokens % {{places}} = p.place
),
windowed AS (SELECT DISTINCT model_id FROM attention_layer WHERE window_tokens IS NOT NULL),
described AS (
    SELECT report, footprint.*, model.vocab_size, running_format(model, footprint.dtype_id, footprint.engine_id) AS running_format,
        footprint.model_id IN (FROM windowed) AS has_windows, seeing.model_id IS NOT NULL AS sees, seeing.has_counted_tower,
        sharing.data_setting, sharing.expert_setting, sharing.context_setting, kv, cache_setting(kv, footprint.program) AS kv_setting
    FROM answered
    LEFT JOIN model ON model.model_id = footprint.model_id
    LEFT JOIN seeing_model AS seeing ON seeing.model_id = footprint.model_id
    LEFT JOIN data_parallel_rule AS sharing ON sharing.engine_id = footprint.engine_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = footprint.kv_dtype_id
),
judged AS (
    SELECT report, footprint, card, coalesce(card_reason(running), images_reason(running, footprint.images),
            program_card_reason(footprint, card),
            kv_reason(footprint.kv, older.least_capability, card.vendor, card.compute_capability)) AS not_there
    FROM (SELECT described.report, described AS footprint FROM described)
    JOIN card_row ON card_row.gpu_id = report.gpu_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = footprint.kv_dtype_id AND older.engine_id = footprint.engine_id
        AND older.model_id = footprint.model_id AND is_from(footprint.program_version, older.min_version)
    LEFT JOIN runs_on_kind AS running ON running.engine_id = footprint.engine_id AND running.running_id = footprint.running_format
        AND running.phase_id = footprint.phase_id AND running.attention = footprint.attention AND running.card_kind = card.card_kind
),
told AS (
    SELECT report.*, footprint.total_bytes, footprint.error_band, card.capacity_bytes, footprint.holds_for,
        iif(not_there IS NULL, card_verdict(footprint.total_bytes, footprint.error_band, card.capacity_bytes, footprint.gpu_count), NULL) AS verdict,
        engine_setting(footprint, card, constants) AS engine_setting,
        no_verdict_reason(card.gpu_id, report.gpu_id, footprint.total_bytes, footprint.unknown_reason, report.model_id, not_there) AS unknown_reason
    FROM judged CROSS JOIN constants_row
)
SELECT *, CASE
    WHEN verdict IS NULL THEN 'not known'
    WHEN outcome = 'ran' THEN iif(verdict = 'no', 'needless refusal', 'right')
    WHEN verdict IN ('no', 'tight') THEN 'right'
    WHEN outcome = 'refused by default' AND regexp_matches(engine_setting, '{_CURES}') THEN 'right'
    ELSE 'false fits'
END AS judgement
FROM told
"""
