"""What the layers of models weigh, and how a card and the CPU share them: worked out for the first of each twins, in the formats of llama.cpp
whose layers may lie beside the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from pipeline.book.content import CONTENT, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.press.held import renamed

# what each layer weighs, in the formats whose layers may lie beside the CPU
LAYERS = "layer_weight"
# its rows for the pairs of model and format in a relation `layered`
WEIGHED = """
    SELECT model_id, dtype_id, list(layer_bytes ORDER BY block) AS layer_bytes, list(expert_bytes ORDER BY block) AS expert_bytes,
        max(matrix_bytes) AS matrix_bytes
    FROM layer_weights_in('layered') GROUP BY ALL ORDER BY ALL
"""
LAYER_COLUMNS = "model_id VARCHAR, dtype_id VARCHAR, layer_bytes BIGINT[], expert_bytes BIGINT[], matrix_bytes BIGINT"
_OF_LAYERS = ("twin_layer", "twin_split")
# what the layers of a model weigh, and how they are split, is made of its content, of these rows, and of some columns of `model`
_LAYERED_OF = ("tensor", "attention_layer", "feed_forward_layer")


def weigh(connection: duckdb.DuckDBPyConnection, packs: Packs | None = None) -> None:
    """`layer_weight` and `cpu_split` as views: what the layers of the first of each twins weigh in the formats of llama.cpp that are published,
    and what a card and the CPU hold of them."""
    connection.execute(
        """
        CREATE OR REPLACE TABLE layered AS
        SELECT DISTINCT held.model_id, held.dtype_id FROM twin_footprint AS held
        JOIN footprint_scenario AS asked ON asked.scenario = held.scenario
        JOIN weight ON weight.model_id = held.model_id AND weight.dtype_id = held.dtype_id
        WHERE asked.engine_id = 'llama.cpp' AND weight.layer_bytes > 0
        """
    )
    keys = _layer_keys(connection) if packs else {}
    known = [_known_layers(tables, found, keys) for found, tables in packs.taken(keys)] if packs else []
    there = [keys[key] for found, _rows in known for key in found]
    connection.execute("DELETE FROM layered WHERE list_contains($there, model_id)", {"there": there})
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE twin_layer AS {WEIGHED};
        -- of these alone, as long as it is the table that `cpu_split` reads
        INSERT INTO {LAYERS} BY NAME FROM twin_layer;
        CREATE OR REPLACE TABLE twin_split AS FROM cpu_split;
        DROP TABLE {LAYERS};
        DROP TABLE layered
        """
    )
    left = {key: model for key, model in keys.items() if model not in set(there)}
    if packs and left:
        made = {name: connection.sql(f"FROM {name} ORDER BY ALL").to_arrow_table() for name in _OF_LAYERS}
        names = {model: key for key, model in left.items()}
        packs.put(list(left), {name: renamed(rows, "model_id", "key", names) for name, rows in made.items()})
    for _found, tables in known:
        for name, rows in tables.items():
            connection.register("known", rows)
            connection.execute(f"INSERT INTO {name} BY NAME FROM known")
            connection.unregister("known")
    pairs = "twin.first_id AND held.dtype_id = twin.dtype_id"
    for name, held in zip((LAYERS, "cpu_split"), _OF_LAYERS, strict=True):
        connection.execute(
            f"CREATE OR REPLACE VIEW {name} AS "
            f"SELECT twin.model_id, held.* EXCLUDE (model_id) FROM twin JOIN {held} AS held ON held.model_id = {pairs}"
        )


def _layer_keys(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The models of `layered` by a hash of all that what is said of their layers is made of."""
    query = f"""
        WITH said AS (
            {rows_as_text(connection, _LAYERED_OF, "layered")}
            UNION ALL SELECT model_id, dtype_id FROM layered
            UNION ALL FROM {CONTENT} SEMI JOIN layered USING (model_id)
        )
        SELECT sha256(concat_ws(' ', 'layers', $formulas, model_id, any_value(model.stored_format), any_value(model.model_type),
            any_value(model_id IN (SELECT kept.model_id FROM keeps_experts AS kept)), string_agg(said, ' ' ORDER BY said))), model_id
        FROM said JOIN model USING (model_id) GROUP BY model_id
    """
    return dict(connection.execute(query, {"formulas": fingerprint()}).fetchall())


def _known_layers(
    tables: Mapping[str, pa.Table], found: Sequence[str], models: Mapping[str, str]
) -> tuple[Sequence[str], dict[str, pa.Table]]:
    names = {key: models[key] for key in found}
    return found, {name: renamed(tables[name], "key", "model_id", names) for name in _OF_LAYERS}
