"""The formulas in the browser against the SQL that they are translated from: random scenarios by the thousand, to the byte."""

import json
import random
import re
from pathlib import Path

import polars as pl
import pytest

from pipeline.book.scenario import TYPES
from pipeline.render.data import calculator
from pipeline.render.data.mirror import ENTRY, Mirror, Untranslatable
from tests.browser.reckoned import reckoned
from tests.few import EXPERTS

pytestmark = pytest.mark.browser
ASSETS = Path(__file__).parents[2] / "site" / "assets"
EACH = 50
LOADED = "Qwen/Qwen3-8B"
SEEING = ("Qwen/Qwen2.5-VL-7B-Instruct", "google/gemma-3-4b-it")
PARTS = ("weights", "kv_cache", "kv_padding", "state", "activations", "gradients", "optimizer", "adapters", "overhead")
OUT = (*(f"{part}_bytes" for part in PARTS), "total_bytes", "error_band", "peak_moment", "unknown_reason", "holds_for")
# The scenario as it was understood, defaults filled in: what both sides must agree on before any number.
ASKED = ("model_id", *(name for name in TYPES if name != "model_id"))


TRAINING = (
    "optimizer_id", "checkpointing", "precision", "loss", "gradient_accumulation", "ema", "optimizer_rank", "reduce_bucket_elements",
    "expandable_segments",
)  # fmt: skip
ADAPTERS = ("lora_rank", "lora_targets", "lora_dropout", "trains_embeddings")
FOREIGN = {
    "inference": (*TRAINING, *ADAPTERS),
    "pretrain": ("kv_dtype_id", *ADAPTERS),
    "full-finetune": ("kv_dtype_id", *ADAPTERS),
    "lora": ("kv_dtype_id",),
    "qlora": ("kv_dtype_id",),
}


def of_models(book):
    """What decides which arguments a model may have, by its id: layers of text, routed experts, its context, and whether it sees."""
    query = """
        SELECT model_id, model.caches IS NOT NULL AND len(model.caches) > 0 AS is_text,
            coalesce(list_bool_or(list_transform(model.blocks, lambda block: block.expert_count > 0)), false) AS has_experts,
            model.max_context_tokens, model.tower IS NOT NULL AS sees
        FROM shape_row
    """
    names = ("is_text", "has_experts", "max_context_tokens", "sees")
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in book.execute(query).fetchall()}


def possible(scenario, model, dice):
    """The same scenario with arguments that go together: what another phase, another model or another way to share has, is left out."""
    phase, is_inference = scenario["phase_id"], scenario["phase_id"] == "inference"
    scenario |= dict.fromkeys((*FOREIGN[phase], "engine_id", "audio_seconds", "reduce_bucket_elements"))
    if scenario["program"] is None or scenario["program_version"] == "x":
        scenario["program_version"] = None
    most = model["max_context_tokens"] or 512
    scenario["context_tokens"] = dice.choice([None, *(n for n in (1, 100, 512, 2048, 8192, 32768) if n <= most)])
    if not (model["sees"] and is_inference):
        scenario |= dict.fromkeys(("images", "image_width", "image_height"))
    if not model["has_experts"]:
        scenario["expert_parallel"] = None
        if "experts" in (scenario["lora_targets"] or ""):
            scenario["lora_targets"] = "all-linear"
    scenario["attention"] = dice.choice([None, "flash", "eager"])
    if is_inference:
        scenario["kv_dtype_id"] = dice.choice([None, None, "bf16", "fp8"])
        scenario["sharding"] = dice.choice([None, "tp"])
        scenario["checkpointing"] = None
    else:
        alone = (scenario["gpu_count"] or 1) == 1 and not scenario.get("offload")
        scenario["loss"] = dice.choice([None, None, "full", "chunked", *(["score"] if alone else [])])
    if scenario["pipeline_parallel"] == 3:
        scenario["pipeline_parallel"] = 2
    if scenario["trains_embeddings"]:
        scenario |= {"gpu_count": 1, "sharding": None, "offload": None, "loss": None, "optimizer_id": None}
    return scenario


def scenarios(book, count, seed=20, model=None):
    """Three of four as a reader would ask of this model (more than half, of no model in particular), the others with anything in any field, so
    that every reason is met too."""
    dice = random.Random(seed)
    ids = {
        name: [r[0] for r in book.execute(f"select distinct {name}_id from {name} order by 1").fetchall()]
        for name in ("dtype", "engine", "kv_dtype", "optimizer", "phase", "program")
    }
    maybe = lambda values: dice.choice([None, *values])  # noqa: E731
    for _ in range(count):
        phase = dice.choice(ids["phase"])
        sane = dice.random() < (0.75 if model else 0.6)
        divided = phase != "inference" and dice.random() < 0.3
        dtype = (
            {"qlora": "nf4"}.get(phase, dice.choice(["bf16", "fp16", "fp32"]))
            if sane and phase != "inference"
            else None
        )
        scenario = {
            "dtype_id": dtype or dice.choice(ids["dtype"]),
            "phase_id": phase,
            "engine_id": None if sane else maybe(ids["engine"]),
            "context_tokens": dice.choice([None, 1, 100, 512, 2048, 4097, 8192, 32768, 131072]),
            "sequences": dice.choice([1, 1, 2, 3, 8, 33]),
            "images": dice.choice([None, None, None, 0, 1, 3]) if phase == "inference" or not sane else None,
            "image_width": dice.choice([None, None, 300, 1920, 4001]),
            "image_height": dice.choice([None, None, 99, 1080, 3000]),
            "audio_seconds": dice.choice([None] * 9 + [0.5, 30.0]) if not sane else None,
            # (caches that one engine alone has are asked of its own formats)
            "kv_dtype_id": maybe([kv for kv in ids["kv_dtype"] if not (sane and kv.startswith("exl3"))]),
            "optimizer_id": maybe(["adamw", "adamw-8bit", "sgd"] if sane else ids["optimizer"]),
            "checkpointing": maybe(["none", "full", "selective"]),
            "lora_rank": maybe([4, 64]),
            "lora_targets": maybe(["attention", "query-value", "all-linear", "experts", "attention-experts"]),
            "lora_dropout": maybe([0.0, 0.05]) if dice.random() < 0.3 else None,
            "trains_embeddings": maybe([True, False]) if phase in ("lora", "qlora") and dice.random() < 0.5 else None,
            "adapter": maybe(["lora", "rslora", "dora", "llama-adapter"]) if phase in ("lora", "qlora") else None,
            "loss": maybe(["full", "chunked", "fused", "score"]),
            "gradient_accumulation": maybe([1, 4]),
            "ema": maybe([True, False]),
            "optimizer_rank": maybe([64]),
            "reduce_bucket_elements": maybe([10**8]) if dice.random() < 0.1 else None,
            "expandable_segments": maybe([True, False]),
            "max_context_tokens": maybe([131072]),
            "precision": maybe(["mixed", "amp", "pure"]),
            "attention": maybe(["flash", "eager", "masked"]),
            "sharding": None if divided else maybe(["zero1", "zero2", "zero3", "ddp", "tp", "pp"]),
            "gpu_count": 8 if divided else dice.choice([1, 1, 1, 2, 4, 8, 16]),
            "tensor_parallel": maybe([2]) if divided else None,
            "pipeline_parallel": maybe([2, 3]) if divided else None,
            "context_parallel": maybe([2]) if divided else None,
            "expert_parallel": maybe([2]) if divided else None,
            "micro_batches_in_flight": maybe([1]) if divided else None,
            "sequence_parallel": maybe([True, False]),
            "offload": maybe(["optimizer", "all"]) if divided else None,
            "program": dice.choice(["vLLM", "nobody", *ids["program"]]) if dice.random() < 0.1 else None,
            "program_version": dice.choice([None] * 6 + ["0.8", "v0.27.1", "1.0", "b9452", "0.31.2", "x", "5.23.0"]),
        }
        if scenario["program"] is None and dice.random() < 0.9:
            scenario["program_version"] = None
        if sane:  # arguments of another phase are refused, which the others meet
            scenario = possible(scenario, model, dice) if model else scenario | dict.fromkeys(FOREIGN[phase])
        yield scenario


def answers(book, asked):
    """The SQL's rows by the scenario as it was understood."""
    book.register("mirror_rows", pl.DataFrame(asked, schema_overrides=TYPES, strict=False).to_arrow())
    book.execute("create or replace temp table mirror_asked as from mirror_rows")
    book.unregister("mirror_rows")
    result = book.execute("from footprints('mirror_asked')")
    names = [column[0] for column in result.description]
    rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    book.execute("drop table mirror_asked")
    return {tuple(row[name] for name in ASKED): row for row in rows}


@pytest.mark.parametrize("count", [12, pytest.param(60, marks=pytest.mark.full)])
def test_the_mirror_says_what_the_sql_says(book, browser, count):
    known = [
        r[0] for r in book.execute("select model_id from shape order by hash(model_id) limit $1", [count]).fetchall()
    ]
    known = [LOADED, *(model for model in known if model not in (LOADED, *SEEING)), *SEEING]
    models = of_models(book)
    served = {"model_id": LOADED, "engine_id": "vllm", "dtype_id": "bf16", "sequences": 1, "context_tokens": 4096}
    asked = [  # (adapters that are served, of which the others say nothing)
        served | {"gpu_count": gpus, "max_loras": slots, "max_lora_rank": rank}
        for gpus in (1, 4)
        for slots in (None, 1, 8)
        for rank in (None, 64, 65)
    ]
    asked += [  # (and trainings on images, of which the others say little)
        {
            "model_id": model,
            "phase_id": phase,
            "program": program,
            "checkpointing": checkpointing,
            "context_tokens": 2048,
            "images": images,
        }
        for model in SEEING
        for phase in ("lora", "qlora")
        for program in ("ms-swift", "llama-factory")
        for checkpointing in ("full", "none")
        for images in (1, 2)
    ]
    asked += [
        {"model_id": model} | scenario
        for seed, model in enumerate(known)
        for scenario in scenarios(book, EACH, seed, models[model])
    ]  # fmt: skip
    unique = list({json.dumps(s): s for s in asked}.values())
    expected = answers(book, unique)
    mirror = Mirror(book)
    module = mirror.module()
    shared = calculator.shared_tables(book, mirror.tables)
    own = calculator.model_tables(book, mirror.tables, known)
    page = browser.new_page()
    text = {"/data/formulas.js": module, "/assets/almanac/sql_words.js": (ASSETS / "sql_words.js").read_text(), "/": ""}
    page.route(
        "http://mirror.test/**",
        lambda route: route.fulfill(
            body=text[route.request.url.removeprefix("http://mirror.test")],
            content_type="text/javascript" if route.request.url.endswith("js") else "text/html",
        ),
    )
    page.goto("http://mirror.test/")
    found = page.evaluate(
        """async ([shared, own, asked, names]) => {
            const { footprints } = await import("/data/formulas.js");
            return asked.map((s) => {
                const row = footprints({ ...shared, ...own[s.model_id] }, s);
                return names.map((n) => row[n] ?? null);
            });
        }""",
        [shared, own, unique, [*ASKED, *OUT]],
    )
    page.close()
    wrong = []
    for scenario, mine in zip(unique, found, strict=True):
        row = expected.get(tuple(mine[: len(ASKED)]))
        if row is None:
            wrong.append(("understood otherwise", mine[: len(ASKED)], scenario))
            continue
        for name, value in zip(OUT, mine[len(ASKED) :], strict=True):
            beyond = isinstance(value, int) and value > 2**53  # a double holds no odd number there
            if value != row[name] and not (beyond and value == pytest.approx(row[name], rel=1e-15)):
                wrong.append((name, value, row[name], scenario))
    assert not wrong, f"{len(wrong)} differ over {len(unique)} scenarios, such as {wrong[:3]}"
    expected = expected.values()
    assert sum(row["total_bytes"] is not None for row in expected) > len(unique) / 3
    assert {row["phase_id"] for row in expected if row["total_bytes"]} == {
        "inference",
        "lora",
        "qlora",
        "full-finetune",
        "pretrain",
    }


def test_words_of_sql_compare_names_and_tell_no_figure_that_is_none(browser):
    page = browser.new_page()
    text = {"/sql_words.js": (ASSETS / "sql_words.js").read_text(), "/": ""}
    page.route(
        "http://words.test/**",
        lambda route: route.fulfill(
            body=text[route.request.url.removeprefix("http://words.test")],
            content_type="text/javascript" if route.request.url.endswith("js") else "text/html",
        ),
    )
    page.goto("http://words.test/")
    found = page.evaluate(
        """async () => {
            const q = await import("/sql_words.js"), no = q.div(0, 0);
            return [q.list_max([null, "a/b", "a/c"]), q.list_min(["a/b", "a/c"]), q.greatest("x", null), q.list_max([3, 10, null]),
                no, q.add(1, NaN), q.concat("loading ", q.mul(Infinity, 0)), q.round(NaN)];
        }"""
    )
    page.close()
    assert found == ["a/c", "a/b", "x", 10, None, None, None, None]


def test_what_unsloth_loads_is_told_by_its_name(book, browser):
    """Of the repository that its table of names has for a model; a page once told a number that is none."""
    with reckoned(book, browser, [LOADED]) as ask:
        asked = {"model_id": LOADED, "phase_id": "qlora", "program": "unsloth"}
        told = ask("return r.ask(own, more[0]).holds_for", LOADED, asked)
    columns = ", ".join(f"{name} := '{value}'" for name, value in asked.items() if name != "model_id")
    (expected,) = book.execute(f"SELECT holds_for FROM footprint_of('{LOADED}', {columns})").fetchall()[0]
    assert ", loading unsloth/" in told and told == expected


def test_a_verdict_that_the_copy_decides_is_told_as_one(book, browser):
    """Of a mixture in AWQ what makers leave in 16 bits is in the band: with room for all of it it fits, with room for a part it hangs on the copy,
    and with less room than its own margin takes it is tight whatever the copy."""
    with reckoned(book, browser, [EXPERTS]) as ask:
        row = ask(
            "return r.ask(own, more[0])", EXPERTS, {"model_id": EXPERTS, "dtype_id": "awq-int4", "engine_id": "vllm"}
        )
        most, more = row["total_bytes"] * (1 + row["error_band"]), row["more_bytes"]
        sizes = [most + 1, most - more / 2, (row["total_bytes"] + most - more) / 2, row["total_bytes"] - 1]
        told = ask(
            "return more[0].map(([row, n]) => [r.verdict(row, n), r.hangsOnCopy(row, n)])",
            EXPERTS,
            [[row, n] for n in sizes],
        )
    assert more > 2**30
    assert told == [["fits", False], ["tight", True], ["tight", False], ["no", False]]


def test_the_context_that_a_program_takes_follows_the_cards(book, browser):
    """Ollama's by itself: 4,096 tokens below 23 GiB of all cards together, 32,768 below 47, then 262,144; up to 0.15.4 4,096 everywhere."""
    with reckoned(book, browser, [LOADED]) as ask:
        asked = [
            [program, version, gib] for program, version in (("ollama", ""), ("vllm", "")) for gib in (22.9, 23, 46, 47)
        ]
        asked += [["ollama", "0.31", 80], ["ollama", "0.20", 80]]
        told = ask(
            "return more[0].map(([p, v, gib]) => r.ownContext(p, v, gib * 2 ** 30)?.taken ?? null)", LOADED, asked
        )
    assert told == [4096, 32768, 32768, 262144, *[None] * 4, 262144, None]


def test_no_layers_lie_beside_a_chip_whose_memory_is_the_computers(book, browser):
    query = f"SELECT gpu_layers > 0, unknown_reason FROM layers_that_fit($1, '{LOADED}', dtype_id := 'gguf-q8_0', context_tokens := 8192)"
    with reckoned(book, browser, [LOADED]) as ask:
        told = ask(
            "return more[0].map((segment) => almanac.many(2, { segment, short: 'X' }))",
            LOADED,
            ["consumer", "datacenter", "unified", "embedded"],
        )
    assert told == ["2 × X", "2 × X", "2 × X (2 computers)", "2 × X (2 computers)"]
    reason = "its memory is the computer's, and there is no other to share a model with"
    assert book.execute(query, ["m1-8gb"]).fetchall()[0] == (None, reason)
    assert book.execute(query, ["rtx-4060-ti-8gb"]).fetchall()[0] == (True, None)


def test_an_unknown_word_is_refused(book):
    cursor = book.cursor()
    cursor.execute("create or replace temp macro odd(a) as regexp_replace(a, 'x', 'y')")
    mirror = Mirror(cursor)
    mirror.macros[ENTRY] = ([], "SELECT odd('a') AS b FROM query_table('x')", "table_macro")
    with pytest.raises(Untranslatable, match="regexp_replace"):
        mirror.module()
    cursor.close()


@pytest.mark.full
def test_the_rows_that_a_name_is_looked_up_in_stand_in_the_order_of_their_joins(book):
    """In any other the text would vary from build to build."""
    module = Mirror(book).module()
    lookups = list(re.finditer(r'q\.pick\("\w+", row, (\$\w+(?:, \$\w+)+)\)', module))
    assert len(lookups) > 3
    for found in lookups:
        places = [module.rfind(f"const {name} =", 0, found.start()) for name in found[1].split(", ")]
        assert places == sorted(places) and places[0] >= 0, found[0]


def test_the_calculator_offers_programs_by_name_and_by_version(book, browser):
    mirror = Mirror(book)
    mirror.module()
    shared = calculator.shared_tables(book, mirror.tables)
    page = browser.new_page()
    text = {"/scenario_fields.js": (ASSETS / "scenario_fields.js").read_text(), "/": ""}
    page.route(
        "http://fields.test/**",
        lambda route: route.fulfill(
            body=text[route.request.url.removeprefix("http://fields.test")],
            content_type="text/javascript" if route.request.url.endswith("js") else "text/html",
        ),
    )
    page.goto("http://fields.test/")
    programs, versions, shown = page.evaluate(
        """async (shared) => {
            const { FIELDS, applies } = await import("/scenario_fields.js");
            const shown = ["", "ollama"].map((program) => applies("program_version", { program }));
            const of = (s) => FIELDS.program_version.choices(shared, null, s);
            return [FIELDS.program.choices(shared), [
                of({ program: "vllm", phase_id: "inference" }), of({ program: "trl", phase_id: "lora" }),
                of({ program: "trl", phase_id: "lora", objective_id: "dpo" }), of({ program: "vllm", phase_id: "", program_version: "0.27.1" }),
            ], shown];
        }""",
        shared,
    )
    page.close()
    assert programs[0] == ["", "none in particular"] and ["lm-studio", "LM Studio"] in programs
    assert shown == [False, True]
    serving, training, preferences, between = versions
    # of the program that is chosen, for what is asked of it: the newest first, and one that a link names
    assert serving[:2] == [["", "the newest that is known"], ["0.33", "vLLM 0.20 to 0.33"]]
    assert all(name.startswith("vLLM ") for _version, name in serving[1:])
    assert (
        all(name.startswith("TRL ") for _version, name in (*training[1:], *preferences[1:])) and training != preferences
    )
    assert between == [*serving, ["0.27.1", "0.27.1"]]
    assert len({program for program, _name in programs}) == len(programs)


SEES = "Qwen/Qwen2.5-VL-7B-Instruct"


def test_ways_to_make_it_fit_hold_the_images_that_were_asked(book, browser):
    """What is offered instead takes memory for images too: a training by Unsloth was offered with the figure of text alone."""
    image = {"images": 1, "image_width": 1024, "image_height": 1024}
    asked = [
        {"phase_id": "lora", "program": "ms-swift", "context_tokens": 2048, "sequences": 1},
        {"phase_id": "inference", "dtype_id": "bf16", "engine_id": "vllm", "context_tokens": 2048, "sequences": 1},
    ]
    code = """
        r.shared.opening ??= {};
        return more[0].map((said) => {
            const row = r.ask(own, said), told = [];
            const world = { own, row, asked: said, bytes: row.total_bytes * 0.8, runs: (other) => (told.push(other), true), to: () => "" };
            ways.ways({ ...world, card: "card", gpu: null });
            return [row.total_bytes, told.map((other) => [other.engine_id, other.images])];
        });
    """
    with reckoned(book, browser, [SEES], ("almanac", "reckon", "sql_words", "ways")) as ask:
        told = ask(code, SEES, [{"model_id": SEES, **said, **image} for said in asked])
    for total, others in told:
        assert total and others and all(images == 1 for _engine, images in others), told
    assert not any(engine == "unsloth" for engine, _images in told[0][1])
