"""The plans that are published, for the sets of tables/facts/plan_set.csv: what the macros of tables/sql/plans answer, asked all at once."""

from __future__ import annotations

import duckdb

from pipeline.book.packs import Packs, fingerprint

PLANS = ("plan_serving", "plan_training")

# every question of a set; a model that the snapshot does not have is none
_SERVING = """
CREATE OR REPLACE TEMP TABLE serving_question AS
SELECT DISTINCT gpu.gpu_id, model.model_id, dtype_id, users::BIGINT AS users, context_tokens::BIGINT AS context_tokens,
    NULL::VARCHAR AS kv_dtype_id, NULL::VARCHAR AS engine_id
FROM plan_set, unnest(string_split(model_ids, ' ')) AS named(model_id), unnest(string_split(dtype_ids, ' ')) AS format(dtype_id),
    unnest(string_split(gpu_ids, ' ')) AS card(gpu_id), unnest(string_split(user_counts, ' ')) AS served(users),
    unnest(string_split(contexts, ' ')) AS length(context_tokens)
JOIN model ON model.model_id = named.model_id JOIN gpu ON gpu.gpu_id = card.gpu_id
WHERE list_contains(string_split(phase_ids, ' '), 'inference')
"""
_TRAINING = """
CREATE OR REPLACE TEMP TABLE training_question AS
SELECT DISTINCT model.model_id, gpu.gpu_id, phase_id, NULL::VARCHAR AS dtype_id, size::DOUBLE AS data_bytes, NULL::DOUBLE AS data_tokens,
    1::DOUBLE AS days, 1::DOUBLE AS epochs, NULL::DOUBLE AS bytes_per_token, NULL::DOUBLE AS global_batch_tokens,
    NULL::DOUBLE AS price_per_gpu_hour
FROM plan_set, unnest(string_split(model_ids, ' ')) AS named(model_id), unnest(string_split(gpu_ids, ' ')) AS card(gpu_id),
    unnest(string_split(data_sizes, ' ')) AS data(size), unnest(string_split(phase_ids, ' ')) AS done(phase_id)
JOIN model ON model.model_id = named.model_id JOIN gpu ON gpu.gpu_id = card.gpu_id
WHERE phase_id <> 'inference'
"""


# All that a plan takes from models: of the table `model` not what changes weekly.
_MADE_OF = """
WITH planned AS (SELECT DISTINCT unnest(string_split(model_ids, ' ')) AS model_id FROM plan_set),
text AS (
    SELECT to_json(shape)::VARCHAR AS said FROM shape SEMI JOIN planned USING (model_id)
    UNION ALL SELECT to_json(weight)::VARCHAR FROM weight SEMI JOIN planned USING (model_id)
    UNION ALL SELECT to_json(told)::VARCHAR FROM (SELECT * EXCLUDE (downloads_30d, likes, facts_as_of) FROM model) AS told
    SEMI JOIN planned USING (model_id)
)
SELECT sha256(concat_ws(' ', 'plans', $formulas, string_agg(said, ' ' ORDER BY said))) FROM text
"""


def fill_plans(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """Fills the tables of plans, with what `packs` know where nothing of these models changed."""
    if packs is None:
        _work_out(connection)
        return
    [(key,)] = connection.execute(_MADE_OF, {"formulas": fingerprint()}).fetchall()
    known = next((tables for _keys, tables in packs.taken([key])), {})
    if not known:
        _work_out(connection)
        packs.put([key], {name: connection.sql(f"FROM {name} ORDER BY ALL").to_arrow_table() for name in PLANS})
        return
    for name in PLANS:
        connection.register("known", known[name])
        connection.execute(f"DELETE FROM {name}; INSERT INTO {name} BY NAME FROM known")
        connection.unregister("known")


def _work_out(connection: duckdb.DuckDBPyConnection) -> None:
    """Where no number of cards holds the users, the row that is told is that of one card."""
    connection.execute(_SERVING)
    connection.execute("DELETE FROM plan_serving")
    connection.execute(
        "INSERT INTO plan_serving BY NAME FROM serving_plans_in('serving_question') "
        "WHERE verdict IN ('fits', 'multi-gpu', 'tight') OR plan_rank = 1"
    )
    connection.execute("DROP TABLE serving_question")
    connection.execute(_TRAINING)
    # the ways to share know no data: they are searched once for all sizes
    connection.execute("CREATE OR REPLACE TEMP TABLE training_found AS FROM plans_for(NULL, NULL) LIMIT 0")
    pairs = "SELECT DISTINCT gpu_id, model_id, phase_id FROM training_question ORDER BY ALL"
    for pair in connection.execute(pairs).fetchall():
        connection.execute(
            "INSERT INTO training_found BY NAME FROM plans_for($1, $2, phase_id := $3, sequences := NULL)", list(pair)
        )
    connection.execute("DELETE FROM plan_training")
    columns = ", ".join(row[0] for row in connection.execute("DESCRIBE plan_training").fetchall())
    connection.execute(
        f"INSERT INTO plan_training BY NAME SELECT {columns} FROM training_plans_in('training_question', 'training_found')"
    )
    connection.execute("DROP TABLE training_question; DROP TABLE training_found")
