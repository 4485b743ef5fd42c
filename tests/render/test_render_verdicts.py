"""The pages' comparison against the published view: the same verdict and the same number of cards for every cell."""

import random
import re
from array import array
from dataclasses import replace

import duckdb
import polars as pl
import pytest

from pipeline.book.scenario import written_out
from pipeline.press.formulas import SQL
from pipeline.render import words
from pipeline.render.data import book as books
from pipeline.render.data import limits, rules
from pipeline.render.data import tables as tables_module
from pipeline.render.data.mirror import Mirror, Untranslatable
from pipeline.render.data.slices import place_of
from pipeline.render.data.support import Support
from pipeline.render.pages.answer import Answers
from pipeline.render.pages.bars import bars
from pipeline.render.pages.bycard import ByCard
from pipeline.render.words import GIB
from tests.render.tiny_models import SHORT, SHORT_TOKENS
from tests.render.tiny_tables import built

# the view and what it is made of
FILES = (
    "words",
    "ask/nearest",
    "capacity/verdict",
    "state/state",
    "capacity/support",
    "ask/engine_setting",
    *(f"capacity/{name}" for name in ("reason", "limits", "points", "compatibility")),
)


@pytest.fixture(scope="module")
def tables():
    return built()


@pytest.fixture(scope="module")
def book(tables):
    return tables_module.read(tables)


def with_view(connection, tables):
    connection.execute(f"attach '{tables / 'almanac.duckdb'}' as almanac (read_only)")
    for name in (
        "footprint",
        "gpu",
        "model",
        "ladder",
        "constants",
        "engine",
        "dtype",
        "phase",
        "optimizer",
        "kv_dtype",
        "kv_reader",
        "attention_layer",
        "support",
        "sharding_rule",
    ):
        connection.execute(f"create table {name} as from almanac.{name}")
    connection.execute("create view constants_row as select constants from constants")
    connection.execute("create table program_known as select distinct program_id from almanac.program")
    # (versions of programs, of which no page asks)
    connection.execute(
        "create table program_row (program_id varchar, phase_id varchar, from_number bigint, below_number bigint, holds_for varchar, "
        "capability_words varchar, least_capability double)"
    )
    connection.execute("CREATE MACRO models_near(asked) AS NULL::VARCHAR[]")  # (words of names, which no verdict asks)
    for name in FILES:
        connection.execute(written_out((SQL / f"{name}.sql").read_text(encoding="utf-8")))
    connection.execute(
        "create or replace table runs_on_kind as select distinct running.* exclude (gpu_id), card_kind(gpu) as card_kind "
        "from almanac.runs_on as running join gpu using (gpu_id)"
    )


def test_limits_are_those_of_the_view(book, tables):
    """Every model, format and card of inference: the longest context and the most sequences."""
    cards = {g["gpu_id"]: g["capacity_bytes"] for g in book.gpus}
    known = limits.points(tables)
    longest = limits.longest(known, cards, book["constant"])
    most = limits.most(known, cards, book["constant"])
    with duckdb.connect() as connection:
        with_view(connection, tables)
        rows = connection.execute(
            "select model_id, dtype_id, engine_id, context_tokens, sequences, gpu_id, max_context_tokens, max_sequences "
            "from compatibility where phase_id = 'inference' and verdict is not null"
        ).fetchall()
    of_longest = {row[:4]: dict(zip(cards, row[4:], strict=True)) for row in longest.iter_rows()}
    of_most = {row[:4]: dict(zip(cards, row[4:], strict=True)) for row in most.iter_rows()}
    assert len(rows) > 1000
    for model, dtype, engine, context, sequences, gpu, tokens, users in rows:
        assert of_longest[model, dtype, engine, sequences][gpu] == tokens, (model, dtype, gpu)
        assert of_most[model, dtype, engine, context][gpu] == users, (model, dtype, gpu)
    assert {0} < {row[6] for row in rows} and len({row[6] for row in rows}) > 20


def test_verdicts_are_those_of_the_view(book, tables):
    with duckdb.connect() as connection:
        with_view(connection, tables)
        rows = connection.execute(
            f"select model_id, gpu_id, verdict, gpu_count_needed, {', '.join(books.KEYS)} from compatibility"
        )
        expected = {(row[0], row[1], books.Scenario(*row[4:])): row[2:4] for row in rows.fetchall()}
    longer = sum(s.context_tokens > SHORT_TOKENS for s in book.scenarios)  # which one of the models does not read
    assert len(expected) == (len(book.models) * len(book.scenarios) - longer) * len(book.gpus)
    seen, support = set(), Support(book)
    for number, model in enumerate(book.models):
        for place, scenario in enumerate(book.scenarios):
            totals = book.totals(number, place)
            for gpu in book.gpus:
                verdict, gpus, _kib = words.judge(totals, book.counts, gpu["capacity_bytes"] // 1024)
                if support.refusal(scenario, support.format(scenario, number), gpu["gpu_id"]):
                    verdict, gpus = None, None
                wanted = expected.get((model["model_id"], gpu["gpu_id"], scenario), (None, None))
                assert (verdict, gpus) == wanted, (model, scenario, gpu)
                seen.add(verdict)
    assert seen == {"fits", "tight", "multi-gpu", "no", None}


def test_both_orders_hold_the_same_numbers(book):
    width = book.width * 4
    for number in range(len(book.models)):
        mine = book.model_bytes(number)
        for place in range(len(book.scenarios)):
            totals = mine[place * width : (place + 1) * width]
            assert book.scenario_bytes(number, [place]) == book.totals(number, place).tobytes() == totals
            assert book.column(place)[book.row(number)] == book.totals(number, place)[0]


def test_a_model_that_reads_less_is_in_a_slice_with_all_that_it_reads(book):
    numbers = {m["model_id"]: i for i, m in enumerate(book.models)}
    for scenario in book.scenarios:
        for model_id, number in numbers.items():
            read = min(scenario.context_tokens, SHORT_TOKENS) if model_id == SHORT else scenario.context_tokens
            place = book.index[replace(scenario, context_tokens=read)]
            assert place_of(book, scenario, book.models[number]["max_context_tokens"]) == place


def test_totals_are_those_of_the_table(book, tables):
    frame = pl.read_parquet(tables / "footprint.parquet")
    at = {m["model_id"]: i for i, m in enumerate(book.models)}
    for row in frame.sample(300, seed=7).iter_rows(named=True):
        place = book.index[books.Scenario(*(row[k] for k in books.KEYS))]
        kib = book.totals(at[row["model_id"]], place)[book.counts.index(row["gpu_count"])]
        if row["total_bytes"] is None:
            assert kib == books.UNKNOWN_KIB
        else:
            assert kib * 1024 == pytest.approx(row["total_bytes"], rel=1e-6)


@pytest.mark.parametrize(
    ("totals", "capacity", "expected"),
    [
        ([90, 50, 500, 1000], 100, ("fits", 1)),
        ([96, 50, 500, 1000], 100, ("tight", 1)),
        ([101, 90, 500, 1000], 100, ("multi-gpu", 2)),
        ([101, 95, 500, 1000], 100, ("tight", 2)),
        ([101, 101, 500, 1000], 100, ("no", None)),
        ([101, 90, 80, 500, 1000, 3000], 100, ("multi-gpu", 2)),  # each count by its own band
        ([101, 95, 80, 500, 1000, 1000], 100, ("multi-gpu", 3)),
        ([books.UNKNOWN_KIB, 101, 0, 0], 100, ("no", None)),
        ([books.UNKNOWN_KIB, 50, 0, 0], 100, ("multi-gpu", 2)),
        ([books.UNKNOWN_KIB, books.UNKNOWN_KIB, 0, 0], 100, (None, None)),
    ],
)
def test_judge(totals, capacity, expected):
    assert words.judge(totals, [1, 2, 3][: len(totals) // 2], capacity)[:2] == expected


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ((95, 60, 40), ("multi-gpu", 2)),  # (one barely does: that was told as if no number of them did)
        ((95, books.UNKNOWN_KIB, books.UNKNOWN_KIB), ("tight", 1)),
        ((190, 95, 60), ("multi-gpu", 3)),
        ((190, 95, 95), ("tight", 2)),
        ((400, 200, 120), ("no", None)),
    ],
)
def test_several_of_a_card_hold_what_one_barely_does(totals, expected):
    assert words.several((*totals, 1000, 1000, 1000), [1, 2, 3], 100)[:2] == expected


def answer(book, number):
    return Answers(book, Support(book)).of(number, 8192, 2048)[0]


def test_answer_of_a_model_too_large_for_anything(book):
    number = next(i for i, m in enumerate(book.models) if "405B" in m["model_id"])
    assert "full fine-tuning needs more than 16 × 80 GB" in answer(book, number)


def of_engines(book, **needs_gib):
    """The book, a model of it, and its scenarios of bf16, which engines need so much for on one card or on any number of them."""
    number = next(i for i, m in enumerate(book.models) if m["model_id"] == SHORT)
    rows = book.rows(["inference"], dtype_id="bf16", **book.default("inference", context_tokens=SHORT_TOKENS))
    changed = replace(book, array=book.array[:])
    for s in rows:
        at = (number * len(book.scenarios) + book.index[s]) * book.width
        needed = needs_gib.get(s.engine_id.replace("-", "_"))
        known = [needed * 1024**2 if needed else books.UNKNOWN_KIB] * len(book.counts)
        changed.array[at : at + book.width] = array("f", [*known, *[500] * len(book.counts)])
    return changed, number, rows


@pytest.mark.parametrize(
    ("needs_gib", "chosen", "said"),
    [
        ({"transformers": 20, "vllm": 9}, "vllm", "one 12 GB card"),
        ({"transformers": 9.5, "vllm": 9}, "transformers", "one 12 GB card"),
        ({"transformers": 9, "vllm": 20}, "transformers", "one 12 GB card"),
        ({"transformers": 5000, "vllm": 70}, "vllm", "one 80 GB card"),
        ({"vllm": 20}, "vllm", "one 24 GB card"),
        ({"transformers": 5000, "vllm": 6000}, "transformers", "None"),
    ],
)
def test_a_format_is_told_of_the_engine_that_needs_the_least_hardware(book, needs_gib, chosen, said):
    changed, number, rows = of_engines(book, **needs_gib)
    scenario, where = Answers(changed, Support(changed)).least(number, rows)["bf16"]
    assert (scenario.engine_id, str(where)) == (chosen, said)


def test_an_engine_that_runs_on_no_card_of_the_answer_does_not_speak_of_them(book):
    changed, number, rows = of_engines(book, transformers=20, vllm=9)
    mac = [row | ({"runs": False} if row["engine_id"] == "vllm" else {}) for row in changed["runs_on"]]
    changed = replace(changed, tables=changed.tables | {"runs_on": mac})
    answers = Answers(changed, Support(changed))
    assert answers.least(number, rows)["bf16"][0].engine_id == "transformers"
    assert "bf16 on transformers" in answers.of(number, SHORT_TOKENS, SHORT_TOKENS)[1]
    alone, number, rows = of_engines(book, vllm=9)
    told = Answers(replace(alone, tables=changed.tables), Support(changed)).of(number, SHORT_TOKENS, SHORT_TOKENS)
    assert "bf16 on vllm" not in told[1]


def test_a_bar_is_of_the_engine_that_the_answer_speaks_of_and_says_so(book):
    points = {
        ("inference", "bf16", engine): [[SHORT_TOKENS], [size * GIB], [0.05], {"weights_bytes": size * GIB}, None]
        for engine, size in (("transformers", 20), ("vllm", 9))
    }
    changed, number, rows = of_engines(book, transformers=20, vllm=9)
    chosen = [s for s, _where in Answers(changed, Support(changed)).least(number, rows).values()]
    (bar,) = bars(points, chosen, {s: "vLLM" for s in chosen}, None, (), [("12 GB", 12)])
    assert (bar["label"], bar["engine"], bar["total"]) == ("bf16", "vLLM", 9 * GIB)


@pytest.mark.parametrize(
    ("spoken_of", "first", "said"), [("vllm", "vllm", "bf16 vllm"), ("transformers", "transformers", "bf16")]
)
def test_on_every_card_a_format_is_that_of_the_engine_that_the_answer_speaks_of(book, spoken_of, first, said):
    number = next(i for i, m in enumerate(book.models) if m["model_id"] == SHORT)
    rows = book.rows(["inference"], **book.default("inference", context_tokens=SHORT_TOKENS))
    many = [SHORT_TOKENS] * len({gpu["capacity_bytes"] for gpu in book.gpus})
    known = {("bf16", "transformers"): many, ("bf16", "vllm"): many, ("gguf-q8_0", "llama.cpp"): many}
    held = {"longest": {SHORT: known}, "most": {SHORT: {}}, "lengths": {}, "looked": {}}
    cards = ByCard(book, Support(book), lambda: held, lambda _number: {"bf16": spoken_of})
    assert cards.formats(number)[:1] + cards.formats(number)[-1:] == [("bf16", first), ("gguf-q8_0", "llama.cpp")]
    told = cards.values(number, rows, SHORT_TOKENS)["rows"]
    nvidia = [gpu["vendor"] == "nvidia" for gpu in book.common]
    cells = [re.sub("<[^>]+>", "", row[row.index("<td") :][: row[row.index("<td") :].index("</td>")]) for row in told]
    assert {cell for cell, is_there in zip(cells, nvidia, strict=True) if is_there} == {said}


def by_card(book, name, longest, converted):
    """Of a model that is published in fp8 the formats, and what each common card is said to do with it."""
    packed = [m | {"stored_format": "fp8" if m["model_id"] == name else m["stored_format"]} for m in book.models]
    changed = replace(book, tables=book.tables | {"model": packed})
    number = next(i for i, m in enumerate(packed) if m["model_id"] == name)
    held = {"longest": {name: longest}, "most": {}, "lengths": {}, "looked": {}}
    cards = ByCard(changed, Support(book), lambda: held, lambda _number: {}, lambda _number: converted)
    context = SHORT_TOKENS if name == SHORT else 8192
    rows = book.rows(["inference"], **book.default("inference", context_tokens=context))
    told = cards.values(number, rows, context, is_packed=True)["rows"]
    ids = [gpu["gpu_id"] for gpu in book.common]
    return cards.formats(number), dict(zip(ids, (row.partition("</th>")[2] for row in told), strict=True))


def test_what_is_published_in_few_bits_goes_on_to_what_it_is_converted_to(book):
    published, four = ("stored", "transformers"), ("gguf-q4_k_m", "llama.cpp")
    places = len({gpu["capacity_bytes"] for gpu in book.gpus})
    no, all_ = [0] * places, [SHORT_TOKENS] * places
    known = {published: no, four: all_, ("bf16", "vllm"): all_}
    formats, cells = by_card(book, SHORT, known, {"gguf-q4_k_m"})
    assert formats == [published, four], "bf16 nobody publishes"
    assert all("Q4_K_M" in cell and "v-fits" in cell for cell in cells.values())
    assert by_card(book, SHORT, known | {published: all_}, {"gguf-q4_k_m"})[1]["rtx-4090"].count("as published") == 1
    formats, cells = by_card(book, SHORT, known, ())  # a quantisation of another's model is that alone
    assert formats == [published] and not any("Q4_K_M" in cell for cell in cells.values())


def test_of_what_is_published_in_few_bits_cards_are_counted_in_both(book):
    places = len({gpu["capacity_bytes"] for gpu in book.gpus})
    known = {("stored", "transformers"): [0] * places, ("gguf-q8_0", "llama.cpp"): [0] * places}
    _formats, cells = by_card(book, "acme/CamelCoder.2-405B", known, {"gguf-q8_0"})
    assert "4 cards, in Q8_0; 8 as published<" in cells["mi300x"]


def test_a_format_that_holds_less_than_is_asked_is_not_said_to_fit(book):
    places = len({gpu["capacity_bytes"] for gpu in book.gpus})
    _formats, cells = by_card(book, SHORT, {("stored", "transformers"): [SHORT_TOKENS - 1] * places}, ())
    assert all("falls short" in cell and "v-fits" not in cell for cell in cells.values())


def test_what_is_published_in_few_bits_is_told_as_it_is(book):
    number = next(i for i, m in enumerate(book.models) if m["model_id"] == "acme/Beta-MoE-30B-A3B")
    plain = answer(book, number)
    packed = [m | {"stored_format": "mxfp4" if i == number else m["stored_format"]} for i, m in enumerate(book.models)]
    four, eight = (
        replace(
            book,
            tables=book.tables
            | {"model": [m | {"stored_format": kind} if m["stored_format"] == "mxfp4" else m for m in packed]},
        )
        for kind in ("mxfp4", "fp8")
    )
    assert " in 4-bit at 8k tokens" in plain and "as published" not in plain
    assert " as published (mxfp4) at 8k tokens; LoRA needs" in answer(four, number)
    assert " as published (fp8) at 8k tokens; 4-bit needs" in answer(eight, number)
    assert "bf16" in plain and "bf16" not in answer(four, number) + answer(eight, number), "which nobody publishes"


def borders(number):
    """Cards, and totals in whole KiB with bands in ten-thousandths, as pages hold them, at and around every border of the card."""
    dice, counts = random.Random(7), [1, 2, 4]
    for _ in range(number):
        capacity = dice.choice([11_000_000, 24_000_000, 80_000_000])
        bands = [dice.choice([0, 300, 1000, 2500]) for _ in counts]
        totals = [capacity * 10_000 // (10_000 + dice.choice([0, *bands])) + dice.choice([-1, 0, 1]) for _ in counts]
        yield capacity, counts, [t if dice.random() < 0.6 else dice.randint(1, 3 * capacity) for t in totals], bands


@pytest.fixture(scope="module")
def sql(tables):
    with duckdb.connect() as connection:
        with_view(connection, tables)
        yield lambda what, **named: connection.execute(f"SELECT {what}", named).fetchall()[0][0]


def test_pages_judge_any_footprint_as_the_formulas_do(sql):
    for capacity, counts, totals, bands in borders(400):
        rows = [
            {"gpu_count": n, "total": 1024 * kib, "need": 1024 * kib * (1 + band / 10_000)}
            for n, kib, band in zip(counts, totals, bands, strict=True)
        ]
        said = sql("verdict_of($rows, chosen($rows, $capacity), $capacity)", rows=rows, capacity=1024 * capacity)
        told, gpus, _kib = words.judge([*totals, *bands], counts, capacity)
        assert said == told, (totals, bands, capacity)
        if gpus:
            at = counts.index(gpus)
            of = {"total": 1024 * totals[at], "band": bands[at] / 10_000, "gpu_count": gpus}
            assert sql("card_verdict($total, $band, $capacity, $gpu_count)", capacity=1024 * capacity, **of) == told


def test_columns_are_judged_as_single_values_are():
    """The file of `compatibility` against the pages: one text, two translations."""
    found, cards = list(borders(300)), pl.col("capacity")
    asked, in_columns = rules.in_python(), rules.in_columns()
    lines = []
    for capacity, counts, totals, bands in found:
        row = {"capacity": capacity}
        for i, (count, total) in enumerate(zip(counts, totals, strict=True)):
            row |= {
                f"gpu_count_{i}": count,
                f"total_{i}": total,
                f"need_{i}": asked.needed(total, bands[i] / 10_000),
            }
        lines.append(row)
    slots = [{field: pl.col(f"{field}_{i}") for field in ("gpu_count", "total", "need")} for i in range(3)]
    chosen = in_columns.chosen(slots, cards)
    frame = pl.DataFrame(lines).select(
        place=chosen.place(slots),
        verdict=in_columns.verdict_of(pl.col("total_0"), {k: chosen.column(k) for k in slots[0]}, cards),
    )
    for (capacity, counts, totals, bands), (place, verdict) in zip(found, frame.rows(), strict=True):
        gpus = None if place is None else counts[place]
        assert (verdict, gpus) == words.judge([*totals, *bands], counts, capacity)[:2]


@pytest.mark.parametrize("engine", ["vllm", "vllm-0.8", "sglang", "llama.cpp", "mlx-lm", "transformers"])
def test_engines_have_one_cap_and_one_cell_everywhere(sql, book, engine):
    asked = sql("[line_end($id, constants), context_multiple($id, constants)] FROM constants", id=engine)
    told = limits.of_engines(book["constant"])
    assert asked == [told["most"].get(engine), told["multiple"].get(engine, 1)]
    assert (sql("most_requests($id, constants) FROM constants", id=engine) is None) == (
        engine in ("llama.cpp", "mlx-lm", "transformers")
    )


@pytest.mark.parametrize(
    ("total", "band", "said"),
    [(20.0, 0.05, None), (21.0, 0.0, None), (21.0, 0.04, "0.91"), (21.0, 0.2, "0.94"), (22.5, 0.0, "0.94"), (23.9, 0.05, "0.98"), (24.1, 0.0, None)],
)  # fmt: skip
def test_what_a_server_has_to_be_told_is_one_rule(sql, total, band, said):
    asked = {"engine": "vllm", "total": total, "need": total * (1 + band), "capacity": 24.0}
    constants = {
        "vllm_default_share": 0.9,
        "whole": 24.0,
        "apart": 0.3,
    }  # what is not free when it starts cannot be its share
    told = rules.in_python().share_needed(*asked.values(), constants)
    assert told == sql("share_needed($engine, $total, $need, $capacity, $constants)", constants=constants, **asked)
    assert told == (said and f"--gpu-memory-utilization {said}")


def test_a_word_of_a_rule_that_no_translation_knows_stops_the_build():
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO odd(x) AS md5(x)")
        for kind in (Mirror, rules.InPython):
            with pytest.raises(Untranslatable, match="md5"):
                kind(connection).functions(["odd"])
