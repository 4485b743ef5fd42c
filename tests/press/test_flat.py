"""The formulas as they are asked against the formulas as they are written: the same rows, to the bit."""

from contextlib import contextmanager

import duckdb
import polars as pl
import pytest

from pipeline.book.facts import read_facts
from pipeline.book.scenario import PLAIN, TYPES, USUAL, scenario_grid, written_out
from pipeline.press import flat, lookup
from pipeline.press.flat import grid
from pipeline.press.flat.reading import Reading, Unreadable
from pipeline.press.flat.steps import joins_of
from tests.browser.test_formulas import scenarios

MODELS, EACH = 40, 40


@pytest.fixture(scope="module")
def asked(book):
    """Published scenarios of some models, and random ones with anything in any field."""
    ids = [
        row[0]
        for row in book.execute("SELECT model_id FROM shape ORDER BY hash(model_id) LIMIT $n", {"n": MODELS}).fetchall()
    ]
    grid = scenario_grid(read_facts()["scenario_set"]).drop("least_parameter_count")
    rows = [grid.sample(60, seed=i).with_columns(model_id=pl.lit(model)) for i, model in enumerate(ids)]
    odd = pl.DataFrame(scenarios(book, MODELS), schema=TYPES, infer_schema_length=None, strict=False)
    book.register(
        "flat_rows",
        pl.concat([*(r.select(list(TYPES)) for r in rows), odd.select(list(TYPES))], how="vertical_relaxed").to_arrow(),
    )
    book.execute("CREATE OR REPLACE TEMP TABLE flat_asked AS FROM flat_rows")
    book.unregister("flat_rows")
    book.execute("CREATE OR REPLACE TEMP TABLE flat_answered AS FROM footprints('flat_asked')")
    return "flat_asked"


@contextmanager
def unoptimised(book):
    """For questions of few rows, which take longest to plan."""
    book.execute("PRAGMA disable_optimizer")
    yield
    book.execute("PRAGMA enable_optimizer")


def differences(book, left, right):
    """How many rows are in one of two queries only, each as often as it is there. Each is planned and asked once."""
    for name, query in (("left_rows", left), ("right_rows", right)):
        book.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
    both = "(FROM left_rows EXCEPT ALL FROM right_rows) UNION ALL (FROM right_rows EXCEPT ALL FROM left_rows)"
    return book.execute(f"SELECT count(*) FROM ({both})").fetchall()[0][0]


@pytest.mark.full
def test_what_is_asked_says_what_is_written(book, asked):
    assert differences(book, "FROM flat_answered", f"FROM {flat.AS_WRITTEN}('{asked}')") == 0
    known = book.execute("SELECT count(total_bytes), count(unknown_reason) FROM flat_answered").fetchall()[0]
    assert min(known) > 300


@pytest.mark.full
@pytest.mark.parametrize("phase", ["inference", "pretrain", "full-finetune", "lora", "qlora", "no-such-phase"])
def test_a_relation_of_one_phase_says_the_same(book, asked, phase):
    book.execute(
        f"CREATE OR REPLACE TEMP TABLE flat_phase AS FROM {asked} WHERE coalesce(lower(phase_id), 'inference') = '{phase}'"
    )
    answered = f"FROM flat_answered WHERE lower(phase_id) = '{phase}'"
    assert differences(book, f"FROM footprints_in('flat_phase', '{phase}')", answered) == 0
    others = ", ".join(f"NULL AS {name}" for name in sorted(TYPES.keys() - PLAIN))
    book.execute(f"CREATE OR REPLACE TEMP TABLE flat_plain AS SELECT * REPLACE ({others}) FROM flat_phase")
    plain = f"FROM footprints_in('flat_plain', '{phase}', is_plain := true)"
    assert differences(book, plain, "FROM footprints('flat_plain')") == 0
    others = ", ".join(f"NULL AS {name}" for name in sorted(TYPES.keys() - USUAL))
    book.execute(f"CREATE OR REPLACE TEMP TABLE flat_usual AS SELECT * REPLACE ({others}) FROM flat_phase")
    usual = f"FROM footprints_in('flat_usual', '{phase}', is_usual := true)"
    assert differences(book, usual, "FROM footprints('flat_usual')") == 0


@pytest.mark.full
def test_a_row_of_another_phase_is_not_answered_as_one_of_those_asked_for(book):
    """The text for adapters knows no phases but theirs, and would take a full fine-tuning for one of them."""
    phases = ["inference", "pretrain", "full-finetune", "LoRA", "qlora"]
    book.execute(
        f"CREATE OR REPLACE TEMP TABLE flat_mixed AS SELECT 'Qwen/Qwen3-8B' AS model_id, unnest({phases}) AS phase_id"
    )
    for phase, width, answered in (
        ("lora", "is_plain", ["lora", "qlora"]),
        ("lora", "is_usual", ["lora", "qlora"]),
        ("pretrain", "is_plain", ["full-finetune", "pretrain"]),
        ("training", "is_plain", ["full-finetune", "lora", "pretrain", "qlora"]),
        ("inference", "is_usual", ["inference"]),
    ):
        query = f"SELECT phase_id FROM footprints_in('flat_mixed', '{phase}', {width} := true) ORDER BY 1"
        with unoptimised(book):
            assert [said for (said,) in book.execute(query).fetchall()] == answered


def test_every_macro_takes_every_argument_of_a_scenario(book):
    query = "SELECT parameters FROM duckdb_functions() WHERE function_name = $name"
    for name, before in (("footprint_of", []), ("fits_on", ["gpu_id"]), ("limits_on", ["gpu_id"])):
        assert book.execute(query, {"name": name}).fetchall()[0][0] == [*before, *TYPES], name


@pytest.mark.parametrize("argument", sorted(TYPES.keys() - PLAIN))
def test_an_argument_that_few_ask_for_is_not_left_out(argument):
    """It would be dropped without a word: the plain text knows nothing of it."""
    none = ", ".join(f"NULL AS {n}" for n in TYPES)
    one = ", ".join(f"{1 if n == argument else 'NULL'} AS {n}" for n in TYPES)
    for word, said in (("{is_plain}", PLAIN), ("{is_usual}", USUAL)):
        assert duckdb.sql(f"SELECT {written_out(word)} FROM (SELECT {none})").fetchall() == [(True,)]
        assert duckdb.sql(f"SELECT {written_out(word)} FROM (SELECT {one})").fetchall() == [(argument in said,)]


@pytest.mark.full
def test_columns_have_their_names_and_types(book, asked):
    told, written = (
        book.execute(f"DESCRIBE FROM {name}('{asked}')").fetchall() for name in ("footprints", flat.AS_WRITTEN)
    )
    assert told == written


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "asked",
    ["footprints_in('{}', 'inference')", "footprints('{}')", "footprints_in('{}', NULL, is_plain := true)"],
)
def test_a_relation_may_leave_columns_out(book, asked):
    """As tables/schema/macro.csv promises: what is not there is not asked for."""
    few = "SELECT 'Qwen/Qwen3-8B' AS model_id, unnest([4096, NULL]) AS context_tokens"
    book.execute(f"CREATE OR REPLACE TEMP TABLE flat_few AS {few}")
    book.execute(f"CREATE OR REPLACE TEMP TABLE flat_all AS FROM no_scenario UNION ALL BY NAME {few}")
    with unoptimised(book):
        assert differences(book, f"FROM {asked.format('flat_few')}", f"FROM {asked.format('flat_all')}") == 0
    told = book.execute("SELECT context_tokens FROM left_rows WHERE total_bytes > 0 ORDER BY ALL")
    assert told.fetchall() == [(4096,), (8192,)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("SELECT count(*) AS n FROM query_table(relation) GROUP BY model_id", "a step that groups"),
        ("SELECT model_id FROM query_table(relation) UNION SELECT 'a'", "a union"),
        ("SELECT no_such_name AS n FROM query_table(relation)", "the name no_such_name"),
        ("SELECT (SELECT max(tokens) FROM a JOIN b USING (id)) AS n FROM query_table(relation)", "a subquery of more"),
    ],
)
def test_a_construct_that_is_not_known_stops_the_build_by_its_name(body, said):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE MACRO footprints(relation) AS TABLE {body}")
        with pytest.raises(Unreadable, match=said):
            Reading(connection, tuple(TYPES)).macro("footprints")


@pytest.mark.full
@pytest.mark.parametrize("side", grid.SIDES)
def test_what_is_published_is_worked_out_as_it_is_asked(book, side):
    """In tiers, every row of which stands for many scenarios: short models, large ones, all formats."""
    models = "SELECT model_id FROM shape SEMI JOIN weight USING (model_id) ORDER BY hash(model_id) LIMIT 12"
    cursor = book.cursor()
    lookup.find_twins(cursor, [row[0] for row in cursor.execute(models).fetchall()])
    lookup.find_keys(cursor)
    lookup.prepare(cursor)
    lookup.worked_out_of(cursor, lookup.steps(cursor)[0], side)
    columns = ", ".join(name for name in TYPES if name in grid.SAID) + ", model_id"
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE tier_asked AS SELECT DISTINCT {columns} FROM asked_{side}")
    answers = ", ".join(
        name for (name, *_) in cursor.execute(f"DESCRIBE answer_{side}").fetchall() if name not in grid.HANDED_ON
    )
    phase = "inference" if side == "serving" else "training"
    # (what is asked for itself divides by nothing, of which a tier would make a null without a word)
    cursor.execute("RESET error_on_division_by_zero")
    told = f"SELECT {answers} FROM footprints_in('tier_asked', '{phase}')"
    assert differences(cursor, f"SELECT DISTINCT * FROM (SELECT {answers} FROM answer_{side})", told) == 0
    assert cursor.execute(f"SELECT count(total_bytes) FROM answer_{side}").fetchall()[0][0] > 5_000


@pytest.mark.parametrize(
    "question",
    [
        "footprint_of('{model}')",
        "footprint_of('{model}', phase_id := 'lora', loss := 'fused-at-once', engine_id := 'unsloth')",
        "fits_on('rtx-4090', '{model}')",
        "limits_on('rtx-4090', '{model}')",
    ],
)
def test_nothing_of_a_common_question_hangs_on_its_rows(book, question):
    """A subquery for each row (a delim join) takes as long to plan as a tenth of all formulas."""
    (model,) = book.execute("SELECT model_id FROM shape WHERE layer_count > 0 ORDER BY model_id LIMIT 1").fetchall()[0]
    plan = book.execute("EXPLAIN FROM " + question.format(model=model)).fetchall()[0][1]
    assert "delim" not in plan.lower()


@pytest.mark.parametrize(
    ("first", "joins"),
    [
        ({2: 1}, [2]),
        ({1: 5, 2: 29}, [1]),
        ({1: 5, 2: 31}, [1, 2]),
        ({1: 1, 4: 10, 5: 10}, [1, 4]),
        ({1: 1, 3: 40, 9: 40}, [1, 3, 9]),
    ],
)
def test_a_row_is_joined_again_where_that_saves_more_than_a_join(first, joins):
    """By step, how many columns are first read there; a join is worth 30 columns that are handed on by one step."""
    assert joins_of(first, 30) == joins
