"""What the calculator reads: the formulas as a module, the small tables that they ask, and the rows of one model."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, MutableMapping
from functools import cached_property
from pathlib import Path

import duckdb

from pipeline.base.readonly import reading
from pipeline.book import beside
from pipeline.book.components import COMPONENTS
from pipeline.book.content import SHAPE, WEIGHT
from pipeline.render.data.book import Book
from pipeline.render.data.kept import Kept, hashed, rows_in
from pipeline.render.data.made import size_of
from pipeline.render.data.mirror import ENTRY, Mirror

KEY = "model_id"
# Of the table `model` the formulas ask only why nothing is known.
COLUMNS = {"model": ("model_id", "anatomy_note")}
# what these hold of a model is its name and why nothing is known: every model has a row
OF_ALL = ("model", "model_name")
# What the browser asks beside the footprint and the rules of rules.py: speeds, the parts of pipelines, layers beside the CPU, unlike cards, plans.
SCALARS = (
    "decode_reason",
    "decode_most",
    "prefill_most",
    "state_slots",
    "stage_of",
    "pipeline_whole",
    # LoRA of a pipeline's denoiser
    "is_asked_rule",
    "packed_as",
    "trained_step",
    "trained_reason",
    "training_sum",
    "training_total",
    "encoder_weights",
    "encoder_activations",
    "encoder_reason",
    "layer_caches",
    "cpu_splits",
    "most_layers",
    "fewest_experts",
    "way_beside",
    "ram_takes",
    "has_layers_apart",
    "slots_of_card",
    "held_together",
    "together_refusal",
    # likely speeds, how long a training takes, and the machine around it
    "decode_likely",
    "prefill_likely",
    "likely_reason",
    "is_speed_of",
    "share_tflops",
    "multiplied_elements",
    "attended_elements",
    "training_operations",
    "training_reason",
    "product_tflops",
    "cards_scale",
    "token_bytes_of",
    "batch_most_of",
    "micro_batches_of",
    "ideal_hours_of",
    "hours_of",
    # the ways that plans search, and which of them is taken
    "way_gpu_counts",
    "way_degrees",
    "is_way",
    "way_sequences",
    "is_way_sequences",
    "training_gpu_counts",
    "is_grown_way",
    "is_batch_enough",
    "effort_of",
    "wait_ratio",
    "idle_ratio",
    "finishes_in",
    "training_cpu_count",
    "serving_cpu_count",
    "training_memory_bytes",
    "training_disk_bytes",
    "network_gb_s",
    "link_gb_s",
    "serving_engine",
    "draft_reason",
    "drafting_reason",
    "draft_round_seconds",
    "update_seconds",
    "token_seconds",
    # trainings on preferences
    "asked_of_objective",
    "objective_bytes",
    "objective_holds_for",
    "preference_reason",
    "objective_rank",
    "counted_range",
    "version_number",
    "version_told",
    # the context that a program takes by itself, which for some depends on the cards
    "context_of_cards",
)
# which rules of these ask beside what the formulas do
ASKED_BESIDE = (
    "kv_older",
    "engine_speed",
    "training_share",
    "technique",
    "plan_way",
    "draft_rule",
    "denoiser_format",
    "objective",
)
LAYERS = "layer_weight"  # what each layer weighs, which those of the CPU are told from
PARTS = "part_of_pipeline"  # what the formulas of pipelines read of each
TRAINED = "pipeline_trained"  # and of a denoiser that is trained


def shared_tables(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> dict[str, list[dict]]:
    """The tables without a model: dtypes, engines, optimizers, constants."""
    return {name: _rows(connection, name) for name in sorted(set(names) - _of_models(connection))}


def model_tables(
    connection: duckdb.DuckDBPyConnection, names: Iterable[str], models: Iterable[str] | None = None
) -> dict[str, dict[str, list[dict]]]:
    """Rows by model and table, nulls left out."""
    found: dict[str, dict[str, list[dict]]] = defaultdict(dict)
    wanted = None if models is None else list(models)
    of_models = sorted(_of_models(connection) & set(names))
    for name in of_models:
        for row in _rows(connection, name, wanted):
            found[row[KEY]].setdefault(name, []).append(row)
    for tables in found.values():
        for name in of_models:
            tables.setdefault(name, [])
    return found


def _of_models(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The relations whose rows are of models."""
    query = "SELECT DISTINCT table_name FROM duckdb_columns() WHERE column_name = ?"
    return {name for (name,) in connection.execute(query, [KEY]).fetchall()}


def _rows(connection: duckdb.DuckDBPyConnection, name: str, models: list[str] | None = None) -> list[dict]:
    columns = ", ".join(COLUMNS.get(name, ("*",)))
    some = "" if models is None else f"WHERE {KEY} IN (SELECT unnest($1::VARCHAR[]))"
    result = connection.execute(
        f"SELECT {columns} FROM {name} {some} ORDER BY ALL", *([] if models is None else [[models]])
    )
    names = [column[0] for column in result.description]
    return [
        {k: v for k, v in zip(names, row, strict=True) if v is not None and not hasattr(v, "isoformat")}
        for row in result.fetchall()
    ]


def _there(connection: duckdb.DuckDBPyConnection, names: Iterable[str]) -> set[str]:
    """Those of these relations that the database has."""
    found = {name for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    return found & set(names)


def _arguments(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """What `footprint_of` can be asked, where the database holds it: the fields that the page shows."""
    query = "SELECT parameters FROM duckdb_functions() WHERE function_name = 'footprint_of' LIMIT 1"
    found = connection.execute(query).fetchall()
    return {"arguments": list(found[0][0])} if found else {}


def _without_cache(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, dict[str, str]]]:
    """Formats of the KV cache that a card is not known to read: format → card → reason, as `fits_on` gives it; and the cards that read it of some models."""
    if not connection.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = 'kv_reason' LIMIT 1").fetchall():
        return {}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    query = """
        SELECT kv_dtype_id, gpu_id, kv_reason(kv, NULL, vendor, compute_capability) AS reason
        FROM kv_dtype AS kv CROSS JOIN gpu WHERE reason IS NOT NULL ORDER BY ALL
    """
    for held, card, reason in connection.execute(query).fetchall():
        found[held][card] = reason
    # (of models that have a row of kv_older for it, more cards are known)
    query = """
        SELECT DISTINCT kv_dtype_id, gpu_id FROM kv_older JOIN kv_dtype AS kv USING (kv_dtype_id) CROSS JOIN gpu
        WHERE kv_reason(kv, kv_older.least_capability, vendor, compute_capability) IS NULL ORDER BY ALL
    """
    older: dict[str, list[str]] = defaultdict(list)
    if _there(connection, ["kv_older"]):
        for held, card in connection.execute(query).fetchall():
            if card in found[held]:
                older[held].append(card)
    return {"without_cache": found, "older_cache": older}


class Calculator:
    """The formulas of a published database for the browser; without formulas in it, nothing.
    Raises Untranslatable for a word of theirs that the translation does not know: no site is published without its calculator."""

    def __init__(self, folder: Path, kept: Kept) -> None:
        self.database, self.kept = folder / "almanac.duckdb", kept
        self.module, self.shared, self.tables, self.pipelines = "", {}, set(), {}
        with reading(self.database) as connection:
            self.module, asked = self._translated(connection)
            # where there are none the page says so; a word that cannot be translated fails the build
            if self.module:
                # what engines allow is asked of it beside the footprint
                self.tables = set(asked) | {"constants", LAYERS, *_there(connection, ASKED_BESIDE)}
                for row in _rows(connection, PARTS):
                    self.pipelines.setdefault(row.pop(KEY), []).append(row)
                for row in _rows(connection, TRAINED):
                    part = next(part for part in self.pipelines[row[KEY]] if part["pipeline_part"] == "denoiser")
                    part["trained"] = {"blocks": row["blocks"], "rules": row["rules"]}
                self.shared = (
                    shared_tables(connection, self.tables) | _arguments(connection) | _without_cache(connection)
                )

    def _translated(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, list[str]]:
        """The module, empty where there are no formulas, and the tables that it reads: of the same texts and columns it is the same."""

        def make(names: list[str]) -> dict[str, bytes]:
            mirror = Mirror(connection)
            module = mirror.module(SCALARS) if ENTRY in mirror.macros else ""
            return dict.fromkeys(names, json.dumps([module, sorted(mirror.tables)]).encode())

        made_of = [connection.execute(query).fetchall() for query in _TRANSLATED_OF]
        key = hashed("formulas", self.kept.shared, made_of)
        module, tables = json.loads(self.kept.values("formulas", {"": key}, make)[key])
        return module, tables

    @cached_property
    def own(self) -> Own:
        """The rows of every model by table, read when they are asked for."""
        return Own(self.database, self.tables)

    @cached_property
    def said(self) -> dict[str, str]:
        """By model a hash of its rows; of one that has a content (pipeline/book/content.py) but for those that this is made of."""
        with reading(self.database) as connection:
            tables = self.tables & _of_models(connection)
            models = [model for (model,) in connection.execute("SELECT model_id FROM model").fetchall()]
            others = [model for model in models if model not in self.kept.contents]
            of_others = rows_in(connection, sorted(tables), others) if tables and others else {}
            return (rows_in(connection, sorted(tables - {SHAPE, WEIGHT}), models) if tables else {}) | of_others

    def files(self, book: Book) -> dict[str, str]:
        """What all scenarios share, by name: the tables, what a field holds where nothing is chosen, and how reasons are worded."""
        shared = self.shared | {"opening": book.openings, "words": book.word_rules, "components": COMPONENTS}
        shared |= {"beside": beside.WORDS}
        shared |= {"made": {name: size_of(name == "video") for name in ("picture", "video")}}
        if "without_cache" in shared:
            said = {
                card: {k: book.plainly(why) for k, why in row.items()} for card, row in shared["without_cache"].items()
            }
            shared["without_cache"] = said
        if not self.module:
            return {}
        return {"formulas.js": self.module, "calculator.json": _json(shared), "pipelines.json": _json(self.pipelines)}


# all that a translation is made of, beside the code that translates
_TRANSLATED_OF = (
    "SELECT function_name, function_type, parameters, macro_definition FROM duckdb_functions() WHERE NOT internal "
    "AND function_type IN ('macro', 'table_macro') ORDER BY ALL",
    "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
    "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL",
)


class Own(MutableMapping[str, dict[str, list[dict]]]):
    """By model its rows by table; of models that nobody asks about nothing is read. Whoever means several says so first."""

    def __init__(self, database: Path, tables: Collection[str]) -> None:
        self.database, self.tables = database, tables
        self.rows: dict[str, dict[str, list[dict]]] = {}
        self.asked: set[str] = set()

    def ask(self, models: Iterable[str]) -> None:
        if new := [model for model in models if model not in self.asked]:
            with reading(self.database) as connection:
                self.rows |= model_tables(connection, self.tables, new)
            self.asked.update(new)

    @cached_property
    def shaped(self) -> set[str]:
        """The models whose shape is known: `has_shape`, without their rows."""
        with reading(self.database) as connection:
            names = sorted(_of_models(connection).intersection(self.tables) - set(OF_ALL))
            query = " UNION ".join(f"SELECT {KEY} FROM {name}" for name in names)
            return {model for (model,) in connection.execute(query).fetchall()} if names else set()

    def __getitem__(self, model: str) -> dict[str, list[dict]]:
        self.ask([model])
        return self.rows[model]

    def __setitem__(self, model: str, rows: dict[str, list[dict]]) -> None:
        self.rows[model] = rows
        self.asked.add(model)

    def __delitem__(self, model: str) -> None:
        raise TypeError("what was read stays")

    def __iter__(self) -> Iterator[str]:
        with reading(self.database) as connection:
            self.ask([model for (model,) in connection.execute("SELECT model_id FROM model").fetchall()])
        return iter(self.rows)

    def __len__(self) -> int:
        return sum(1 for _model in self)


def has_shape(tables: dict[str, list[dict]] | None) -> bool:
    """Whether the formulas can be asked of a model with these rows: its shape is known."""
    return bool(tables) and any(rows for name, rows in tables.items() if name not in OF_ALL)


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
