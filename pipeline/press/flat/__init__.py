"""The macros that are asked, made of the macros that are read.

tables/sql says what a thing is, as a person verifies it: macros that call macros. DuckDB puts the text of each in the place of each call
and binds all of it at every question, which took longer than any answer. Here that text is read once and written anew: rows of tables
are joined once, what is said twice is a column of a step, constants and words of the book stand as they are, what depends on the model alone
is a table. The numbers are the same to the bit; a test asks both.

    footprints(relation)                      any scenarios
    footprints_in(relation, phase_id)         scenarios of one phase: half of the text
    footprints_in(…, is_usual := true)        and with nothing but the arguments of USUAL
    footprints_in(…, is_plain := true)        and with nothing but those of PLAIN
    footprints_as_written(relation)           the text of tables/sql, which the calculator is translated from
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from pipeline.book.scenario import PLAIN, TYPES, USUAL
from pipeline.press.flat import grid
from pipeline.press.flat.reading import Reading
from pipeline.press.flat.sides import DERIVED, SERVING, Formulas

__all__ = ["ARGUMENTS", "DERIVED", "flatten"]

AS_WRITTEN = "footprints_as_written"
# of the macros that are made here, those that may be left out
ARGUMENTS = {"footprints_in": "relation, phase_id, is_plain := false, is_usual := false"}
# tables whose words cannot change once the file is made, and are few
WORDS = ("dtype", "engine", "kv_dtype", "optimizer", "phase", "sharding_rule")
ADAPTERS = ("lora", "qlora")
# how much a question says, by the first word of the relation that answers it
WIDTHS = {"plain": PLAIN, "usual": USUAL}


def flatten(connection: duckdb.DuckDBPyConnection) -> str:
    """Replaces `footprints` and `footprints_in` of a database whose formulas are there. Returns the statement that makes what is derived of
    its models: it is run again where models are added. Raises Unreadable for a construct that is not known here."""
    reading = Reading(connection, tuple(TYPES), WORDS)
    definition = reading.macros["footprints"][1]
    formulas = Formulas(reading)
    relations = {
        "footprints_of_inference": formulas.relation(True),
        "footprints_of_training": formulas.relation(False),
    }
    kinds = _kinds_of_training(connection)
    for width, said in WIDTHS.items():
        relations[f"footprints_of_{width}_inference"] = formulas.relation(True, said)
        for kind, phases in kinds.items():
            relations[f"footprints_of_{width}_{kind}"] = formulas.relation(False, said, phases)
    connection.execute(f"CREATE OR REPLACE MACRO {AS_WRITTEN}(relation) AS TABLE {definition}")
    derived = f"CREATE OR REPLACE TABLE {DERIVED} AS {formulas.derived_table()}"
    connection.execute(derived)
    for name, steps in relations.items():
        connection.execute(f"CREATE OR REPLACE MACRO {name}(relation) AS TABLE {formulas.text(steps)}")
    connection.execute(
        "CREATE OR REPLACE MACRO footprints(relation) AS TABLE "
        "FROM footprints_of_inference(relation) UNION ALL BY NAME FROM footprints_of_training(relation)"
    )
    connection.execute(
        f"CREATE OR REPLACE MACRO footprints_in({ARGUMENTS['footprints_in']}) AS TABLE FROM query("
        f"'FROM footprints_of_' || {_relation_named(kinds)} || '(''' || relation || ''')')"
    )
    grid.keep(connection, formulas)
    return derived


def _kinds_of_training(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Phases that train the same: adapters beside a base that stands still, or the whole of it."""
    phases = connection.execute("SELECT phase_id FROM phase WHERE phase_id <> 'inference' ORDER BY 1").fetchall()
    kinds: dict[str, list[str]] = {"adapters": [], "whole": []}
    for (phase,) in phases:
        kinds["adapters" if phase in ADAPTERS else "whole"].append(phase)
    return kinds


def _relation_named(kinds: Mapping[str, Sequence[str]]) -> str:
    """The end of the name of the relation that answers, as SQL: for a phase that nobody knows, and where all may be said, that of any training."""
    phase = f"coalesce(lower(phase_id::VARCHAR), {SERVING})"
    width = " ".join(f"WHEN is_{width} THEN '{width}_'" for width in WIDTHS)
    of_kind = " ".join(
        f"WHEN ({' OR '.join(f'is_{width}' for width in WIDTHS)}) AND {phase} IN ({', '.join(map(repr, phases))}) "
        f"THEN (CASE {width} END) || '{kind}'"
        for kind, phases in kinds.items()
    )
    serving = f"WHEN {phase} = {SERVING} THEN (CASE {width} ELSE '' END) || 'inference'"
    return f"(CASE {serving} {of_kind} ELSE 'training' END)"
