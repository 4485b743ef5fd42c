"""Pages, calculator and SQL say the same of real models: tables of a few of them, built by the book's own formulas, in a real browser."""

import random
import re

import pytest
from playwright.sync_api import expect

from pipeline.ask import command
from pipeline.render import words
from pipeline.render.data import tables
from tests.browser.real.models import CARD, KNOWN, MODELS, released
from tests.browser.test_model_page import BEYOND, PAPER

pytestmark = [pytest.mark.browser, pytest.mark.full]
ROWS = """() => [...document.querySelectorAll("[data-matrix] tbody tr")].filter((row) => row.querySelector("th a")).map((row) => ({
    href: row.querySelector("th a").href, gib: row.querySelector("td.n").textContent, own: row.querySelector("td.v").textContent,
}))"""
VERDICTS = {"fits on": "fits", "is tight on": "tight", "does not fit on": "no", "it does not run there": "won’t run"}


@pytest.mark.some(1)
@pytest.mark.parametrize("model", KNOWN)
def test_the_limits_of_a_page_are_those_of_the_view_for_every_card(open_page, folder, model):
    page = open_page(f"models/{model}/")
    article = page.locator("article.model")
    context, length = (int(article.get_attribute(f"data-{name}")) for name in ("context", "length"))
    found = page.evaluate(
        """async (name) => {
            const of = (file) => document.querySelector('script[src*="almanac/page.js"]').src.replace("page.js", file);
            const [a, limits] = [await import(of("almanac.js")), await import(of("limits.js"))];
            const world = await a.world();
            const rows = limits.rows((await a.shape(name)).points);
            return rows.flatMap((row) => world.gpus.map((g) => [row.phase, row.dtypeId, row.engine, g.id, ...limits.reach(world.limits, row, g.bytes)]));
        }""",
        article.get_attribute("data-shape"),
    )
    mine = {tuple(row[:4]): tuple(row[4:]) for row in found}
    with released(folder) as connection:
        rows = connection.execute(
            """
            select phase_id, dtype_id, engine_id, gpu_id, max_context_tokens, max_sequences from compatibility
            where model_id = $1 and verdict is not null and sequences = 1 and case when phase_id = 'inference' then context_tokens = $2
                else context_tokens = $3 and optimizer_id = 'adamw' and checkpointing = 'full' end
            """,
            [model, context, length],
        ).fetchall()
    assert len(rows) > 1500 and {row[0] for row in rows} > {"inference", "lora"}
    wrong = [(row, mine.get(row[:4])) for row in rows if mine.get(row[:4]) != row[4:]]
    assert not wrong, f"{len(wrong)} of {len(rows)}, such as {wrong[:3]}"


def test_the_page_shows_these_limits_for_a_card_that_is_not_common(open_page, folder):
    page = open_page(f"models/Qwen/Qwen3-8B/?gpu={CARD}")
    cells = page.locator("[data-reach=inference] tbody tr", has_text="gguf-q8_0").locator("td")
    with released(folder) as connection:
        context, users = connection.execute(
            "select max_context_tokens, max_sequences from compatibility where model_id = 'Qwen/Qwen3-8B' and gpu_id = $1 "
            "and dtype_id = 'gguf-q8_0' and engine_id = 'llama.cpp' and context_tokens = 8192 and sequences = 1",
            [CARD],
        ).fetchall()[0]
    assert context == 40960 and cells.first.inner_text().split() == ["all", "40k", str(users), "×"]
    row = page.locator("[data-reach=inference] tbody tr", has_text="mlx-4bit").locator("td").first
    assert row.inner_text() == "–" and "MLX" in row.get_attribute("title")  # it does not run there, and says why
    text = open_page(f"gpus/{CARD}/").locator("#fits-table tbody tr", has_text="Qwen3-8B").inner_text()
    assert text.split("\t")[-2].startswith("all 40k")
    asked = f"FROM speed_on('{CARD}', 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m', context_tokens := 8192)"
    with released(folder) as connection:
        most = connection.execute(f"SELECT decode_tokens_per_second_most {asked}").fetchall()[0][0]
    assert text.split("\t")[-1] == f"≤ {words.rate(most)}"


@pytest.mark.some(1)
@pytest.mark.parametrize("model", KNOWN)
def test_a_row_of_a_page_and_the_calculator_that_it_links_to_agree(open_page, model):
    page = open_page(f"models/{model}/?gpu=rtx-4090")
    rows = page.evaluate(ROWS)
    assert len(rows) > 15
    first = [row for row in rows if "phase_id=inference" not in row["href"]][:3]
    for row in [*random.Random(model).sample(rows, 4), *first]:
        page.goto(row["href"])
        page.wait_for_selector('html[data-almanac="ready"]')
        said = page.locator("#calc .answer").inner_text()
        assert said.startswith(f"{row['gib']} GiB"), (row, said)
        verdict = next((word for text, word in VERDICTS.items() if text in said), "unknown")
        assert row["own"].startswith(verdict) or (verdict == "no" and "×" in row["own"]), (row, said)


def test_what_nobody_chose_is_the_same_on_the_page_and_in_the_calculator(open_page):
    page = open_page("models/Qwen/Qwen3-8B/?gpu=rtx-4090")
    row = page.locator("[data-matrix=training] tbody tr", has_text="LoRA").locator("nth=1")
    need = row.locator("td.n").inner_text()
    page = open_page("calculator/?model=Qwen/Qwen3-8B&phase_id=lora")
    assert float(need) > 15 and page.locator("#calc .answer").inner_text().startswith(f"{need} GiB")
    shown = {
        key: page.locator(f"[name={key}]").input_value() for key in ("checkpointing", "context_tokens", "lora_rank")
    }
    assert shown == {"checkpointing": "full", "context_tokens": "2048", "lora_rank": "16"}
    assert "default" not in page.locator("#calc form").inner_text()
    empty = page.locator("#calc :is(select, input):visible").evaluate_all(
        "all => all.filter((e) => e.value === '' && !['gpu', 'free', 'program', 'objective_id', 'data_mb', 'data_millions'].includes(e.name)).map((e) => e.name)"
    )
    assert not empty
    short = open_page("calculator/?model=sentence-transformers/all-MiniLM-L6-v2")
    assert short.locator("[name=context_tokens]").input_value() == "512"


def test_a_training_on_preferences_is_asked_of_its_own_macro(open_page, folder):
    page = open_page(f"calculator/?model={KNOWN[0]}&gpu=h100-sxm&phase_id=lora&program=trl&program_version=1.5")
    answer = page.locator("#calc .answer")
    page.get_by_label("Learns from").select_option("dpo")
    expect(answer).to_contain_text("Holds for TRL 1.0.0")
    query = page.locator("#calculated code").inner_text()
    assert query.startswith(f"FROM preference_of('dpo', '{KNOWN[0]}'")
    with released(folder) as connection:
        result = connection.execute(query)
        row = dict(zip([column[0] for column in result.description], result.fetchall()[0], strict=True))
    assert (
        answer.inner_text().startswith(f"{words.gib(row['total_bytes'])} GiB") and "does not fit" in answer.inner_text()
    )
    assert page.get_by_label("Micro-batch, pairs or answers").input_value() == str(row["sequences"]) == "8"
    newest = open_page(
        f"calculator/?model={KNOWN[0]}&phase_id=lora&objective_id=dpo"
    )  # which releases are taken unasked
    assert newest.locator("select[name=program_version] option:checked").inner_text() == "TRL 1.15.0 to 1.16.0"
    ways = page.locator('#calc [data-part="ways"] li a')
    expect(ways.filter(has_text=re.compile(r"^\d pairs at once$"))).to_have_count(1)
    for link in [link.get_attribute("href") for link in ways.all()]:
        assert "objective_id=dpo" in link
        page.goto(page.url.partition("?")[0] + link)
        expect(answer).to_contain_text(re.compile(r"fits on (\d+ × )?H100 SXM5 80GB"))
        assert "Holds for TRL 1." in answer.inner_text()
    page.locator("select[name=phase_id]").select_option("inference")
    expect(page.get_by_label("Learns from")).not_to_be_visible()


def test_a_page_draws_its_tables_as_they_come(open_page, folder):
    path = "models/Qwen/Qwen3-8B/"
    plain, drawn = open_page(path, java_script_enabled=False), open_page(path)
    # without scripts a row says what a way of training needs; with them also how full each card gets
    rows = "rows => rows.map(r => [r.querySelector('th').textContent.trim().replace(/\\s+/g, ' '), r.querySelector('td').textContent.trim()])"
    said = [page.locator("[data-matrix=training] tbody tr:has(td)").evaluate_all(rows) for page in (plain, drawn)]
    assert len(said[0]) > 2 and [row for row in said[0] if row not in said[1]] == []
    assert drawn.locator("[data-matrix=inference] td").count() > 100
    engines = [s.engine_id for s in tables.read(folder / "tables").scenarios if s.dtype_id == "bf16"]
    assert engines[0] == "transformers"  # a format's own engine is told first


def test_sentences_for_people_hold_no_words_of_sql(open_page):
    page = open_page("calculator/?model=Qwen/Qwen3-8B&context_tokens=131072")
    answer = page.locator("#calc .answer").inner_text()
    assert answer.startswith("Unknown: a context of 131,072 tokens is beyond the 40,960 that this model reads")
    page = open_page("calculator/?model=Qwen/Qwen3-8B&gpu_count=8&tensor_parallel=3&engine_id=vllm")
    answer = page.locator("#calc .answer").inner_text()
    assert answer.startswith("Unknown: 8 GPUs are no multiple") and "_" not in answer


def test_the_browser_words_a_reason_as_the_pages_do(open_page, folder):
    book = tables.read(folder / "tables")
    with released(folder) as connection:
        reasons = [r[0] for r in connection.execute("select distinct unknown_reason from footprint").fetchall() if r[0]]
    said = open_page().evaluate(
        """async (reasons) => {
            const { words } = await (await fetch("data/calculator.json")).json();
            const rules = words.map(([pattern, text]) => [new RegExp(pattern, "g"), text]);
            return reasons.map((reason) => rules.reduce((told, [pattern, text]) => told.replace(pattern, text), reason));
        }""",
        reasons,
    )
    assert len(reasons) > 5 and said == [book.plainly(reason) for reason in reasons]


@pytest.mark.some(1)
@pytest.mark.parametrize("paper", PAPER)
def test_more_cards_than_a_sheet_is_wide_are_printed_below_each_other(open_page, paper):
    page = open_page(f"models/Qwen/Qwen3-8B/?cards=consumer&gpu={CARD}")
    wanted = set(page.locator("[data-matrix=inference] thead th.g a").all_inner_texts())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER[paper], "height": 1000})
    page.wait_for_selector(".printed", state="attached")
    section = "section[aria-labelledby=inference]"
    assert len(wanted) > 40 and set(page.locator(f"{section} thead th.g a").all_inner_texts()) == wanted
    assert not page.evaluate(BEYOND, PAPER[paper])
    page.emulate_media(media="screen")
    page.wait_for_selector(".printed", state="detached")


@pytest.mark.full
def test_what_helps_where_it_does_not_fit_is_what_sql_says(open_page, folder):
    """By the formulas in the page: a cache of 8 bits, and the cards that full fine-tuning takes."""
    page = open_page("models/Qwen/Qwen3-8B/?gpu=rtx-3060-12gb#now-what")
    way = page.locator("[data-help] li", has_text="A cache of 8 bits")
    way.wait_for()
    said = re.search(r": (\w+) holds ([\d,]+) tokens, with one of 16 bits ([\d,]+)", way.inner_text())
    tuned = page.locator("[data-help] li", has_text="Full fine-tuning").inner_text()
    with released(folder) as connection:

        def longest(cache):
            asked = f"from limits_on('rtx-3060-12gb', 'Qwen/Qwen3-8B', dtype_id := 'gguf-{said[1].lower()}', kv_dtype_id := {cache})"
            return connection.execute(f"select max_context_tokens {asked}").fetchall()[0][0]

        assert [int(n.replace(",", "")) for n in said.groups()[1:]] == [longest("'q8_0'"), longest("null")]
        cards = int(re.search(r"(\d+) × RTX 3060", tuned)[1])
        for count, holds in ((cards, True), (cards // 2, False)):
            needs, capacity = connection.execute(
                "select total_bytes * (1 + error_band), capacity_bytes from footprint_of('Qwen/Qwen3-8B', dtype_id := 'bf16', "
                f"phase_id := 'full-finetune', context_tokens := 2048, sequences := 1, optimizer_id := 'adamw', checkpointing := 'full', "
                f"gpu_count := {count}, sharding := 'zero3'), gpu where gpu_id = 'rtx-3060-12gb'"
            ).fetchall()[0]
            assert (needs <= capacity) is holds


SPLIT = "SELECT * FROM layers_that_fit($gpu, $model, dtype_id := $dtype, context_tokens := 8192)"
MOST = """
    SELECT max(gpu_layers) FILTER (cpu_expert_layers = 0), min(cpu_expert_layers) FILTER (gpu_layers = most)
    FROM (SELECT *, max(gpu_layers) OVER () AS most FROM cpu_split WHERE model_id = $model AND dtype_id = $dtype), gpu
    WHERE gpu_id = $gpu AND gpu_bytes * (1 + error_band) <= capacity_bytes
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "dtype", "gpu"),
    [("openai/gpt-oss-20b", "gguf-mxfp4", "rtx-4060"), ("openai/gpt-oss-20b", "gguf-mxfp4", "rtx-3050-laptop-4gb")],
)
def test_what_does_not_fit_says_how_much_of_it_goes_to_the_card(open_page, folder, model, dtype, gpu):
    asked = {"model": model, "dtype": dtype, "gpu": gpu}
    with released(folder) as connection:
        split = connection.sql(SPLIT, params=asked).pl().row(0, named=True)
        # the table that people join says the same as the macro
        assert connection.execute(MOST, asked).fetchall()[0] == (split["gpu_layers"], split["cpu_expert_layers"])
    flags = f"-ngl {split['gpu_layers']}"
    host = words.gib(split["host_bytes"])
    page = open_page(f"models/{model}/?gpu={gpu}")
    note = page.locator("[data-mine] li", has_text="Shared with the CPU")
    expect(note).to_contain_text(flags)
    expect(note).to_contain_text(f"{split['gpu_layers']} of {split['layer_count'] + 1} layers on the card")
    expect(note).to_contain_text(host)
    if split["cpu_expert_layers"]:
        expect(note).to_contain_text(f"-ngl 99 --n-cpu-moe {split['cpu_expert_layers']}")
        flags, host = f"-ngl 99 --n-cpu-moe {split['cpu_expert_layers']}", words.gib(split["cpu_expert_host_bytes"])
    command = page.locator('.run[data-engine="llama.cpp"]')
    expect(command.locator("code")).to_contain_text(f" {flags} ")
    expect(command.locator("small")).to_contain_text(f"needs {host} GiB of the computer’s memory")
    calculator = open_page(f"calculator/?model={model}&dtype_id={dtype}&context_tokens=8192&gpu={gpu}")
    expect(calculator.locator('.answer [data-part="split"]')).to_contain_text(f"-ngl {split['gpu_layers']}")
    front = open_page(f"?gpu={gpu}&find={model.partition('/')[2]}")
    expect(front.locator("#window tbody.misses tr", has_text=model.partition("/")[2])).to_contain_text(
        f"-ngl {split['gpu_layers']}"
    )


@pytest.mark.full
def test_a_card_says_of_what_does_not_fit_how_many_layers_do(open_page, folder):
    cell = open_page("gpus/gtx-1050-ti/").locator("#fits-table tbody tr", has_text="Qwen3-8B").locator("td").nth(-2)
    with released(folder) as connection:
        asked = {"model": "Qwen/Qwen3-8B", "dtype": "gguf-q4_k_m", "gpu": "gtx-1050-ti"}
        split = connection.sql(SPLIT, params=asked).pl().row(0, named=True)
    assert cell.inner_text().split("\n") == [
        f"{split['gpu_layers']} of {split['layer_count'] + 1} layers",
        f"+ {words.gib(split['host_bytes'])} GiB of RAM",
    ]


@pytest.mark.parametrize("path", ["", "gpus/rtx-4090/"])
def test_programs_that_run_llama_cpp_are_named_beside_it(open_page, path):
    assert "LM Studio and Ollama" in open_page(path).locator("p.fine", has_text="llama.cpp").first.text_content()


def test_pages_that_thousands_are_of_hold_no_frame_of_their_own(folder, open_page, browser):
    text = (folder / "site/models/Qwen/Qwen3-8B/index.html").read_text(encoding="utf-8")
    assert "md-search" not in text and text.count("assets/almanac/frame-model-") == 1
    page = open_page("models/Qwen/Qwen3-8B/")
    expect(page.locator("header .md-logo").first).to_be_visible()
    expect(page.locator(".md-tabs__link", has_text="Calculator")).to_be_visible()
    assert page.locator('[data-md-component="header-topic"] .md-ellipsis').inner_text() in ("", "Qwen/Qwen3-8B")
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    expect(plain.locator(".plain-nav a")).to_have_text(
        ["VRAM Almanac", "Models", "GPUs", "Calculator", "How we know", "Data"]
    )
    for width in (1440, 390):  # the menu stands above the page, and takes no width of it
        plain.set_viewport_size({"width": width, "height": 900})
        menu, article = (plain.locator(each).bounding_box() for each in (".plain-nav", "article.model"))
        assert menu["y"] + menu["height"] <= article["y"] and article["width"] > 0.85 * width
    context.close()


@pytest.mark.full
@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.full), 390])
def test_unlike_cards_in_the_calculator_hold_what_the_macro_says(open_page, folder, site_url, width):
    page = open_page("calculator/?model=Qwen/Qwen3-8B&gpu=gtx-1660-ti&context_tokens=4096", width=width)
    assert page.locator("#calc select[name=with-0]").is_visible()
    page.locator("#calc select[name=with-0]").select_option("rtx-3060-12gb")
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("Fits on GTX 1660 Ti + RTX 3060 12GB together")
    page.locator("#calc select[name=with-1]").select_option("gtx-1050-ti")
    expect(answer).to_contain_text("GTX 1050 Ti together")
    assert "with=rtx-3060-12gb%2Cgtx-1050-ti" in page.url
    asked = "['gtx-1660-ti', 'rtx-3060-12gb', 'gtx-1050-ti'], 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m'"
    with released(folder) as connection:
        ask = lambda more: connection.sql(f"FROM fits_together({asked}, {more})").pl().to_dicts()  # noqa: E731
        rows = ask("context_tokens := 4096")
        cells = [row.locator("td").all_inner_texts() for row in page.locator("#calculated tbody tr").all()]
        assert cells == [
            [str(r["gpu_layers"]), words.gib(r["gpu_bytes"]), words.gib(r["capacity_bytes"]), r["verdict"]]
            for r in rows
        ]
        assert answer.locator("code").inner_text() == rows[0]["engine_setting"]
        assert page.locator("#calculated pre code").inner_text().startswith(f"FROM fits_together({asked}")
        page.get_by_label("I want to know").select_option("context")
        expect(answer).to_contain_text("together up to")
        longest = int(re.search(r"up to ([\d,]+) tokens", answer.inner_text())[1].replace(",", ""))
        ends = [{row["verdict"] for row in ask(f"context_tokens := {n}")} for n in (longest, longest + 1)]
        assert ends[0] == {"fits"} and (longest == 40960 or ends[1] != {"fits"})
    page.goto(f"{page.url}&dtype_id=bf16")  # another engine has a reason
    expect(answer).to_contain_text("only llama.cpp shares a model among unlike cards")
    page.goto(f"{site_url}calculator/?model=Qwen/Qwen3-8B&gpu=gtx-1660-ti&with=no-such-card")
    expect(page.locator("#calc form > .told")).to_contain_text("with=no-such-card")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def least(folder):
    """GiB of a QLoRA of Qwen3-8B at 2k tokens in the program that takes least, in the format that it packs or loads by itself."""
    with released(folder) as connection:
        found = connection.execute(
            "SELECT total_bytes FROM footprint_of($1, phase_id := 'qlora', context_tokens := 2048, sequences := 1, program := 'trl')",
            [MODELS[0]],
        )
        return words.gib(found.fetchall()[0][0])


def test_the_first_screen_says_whose_choices_a_training_counts_and_who_makes_it_fit(open_page, least):
    page = open_page("?gpu=rtx-3060-12gb&want=qlora&find=qwen3-8b")
    expect(page.locator("#window .answer")).to_contain_text("No trainer is named, so these choices are ours: AdamW")
    miss = page.locator("#window .misses tr").first
    expect(miss).to_contain_text(f"With TRL it fits, one sequence at a time: {least} GiB.")
    assert "Not even" not in miss.inner_text()
    miss.get_by_role("link", name="Calculate it").click()
    expect(page.locator("#calc .answer")).to_contain_text(f"{least} GiB; up to")
    expect(page.locator("#calc .answer")).to_contain_text("fits on RTX 3060 12GB")


@pytest.mark.full
def test_a_training_that_does_not_fit_is_told_the_program_that_makes_it_fit(open_page, least):
    """QLoRA of Qwen3-8B is beyond 12 GB in Transformers and within them in the program that takes least, page and calculator alike."""
    page = open_page(f"models/{MODELS[0]}/?gpu=rtx-3060-12gb#now-what")
    expect(page.locator("[data-help] li", has_text="QLoRA with TRL")).to_contain_text(f"2k tokens: {least} GiB")
    page = open_page(f"calculator/?model={MODELS[0]}&phase_id=qlora&gpu=rtx-3060-12gb")
    way = page.locator('#calc [data-part="ways"] li', has_text="With TRL")
    expect(way).to_contain_text(f"{least}\u00a0GiB")
    way.locator("a").click()
    expect(page.locator("#calc .answer")).to_contain_text("fits on RTX 3060 12GB")
    # nobody trains nf4 on a Mac, on however many
    help_ = open_page(f"models/{MODELS[0]}/?gpu=m4-16gb#now-what").locator("[data-help]")
    expect(help_.locator("li").first).to_be_visible()
    assert "LoRA" not in help_.inner_text()


def test_the_calculator_says_how_a_smaller_cache_is_asked_for(open_page):
    page = open_page(
        "calculator/?model=Qwen/Qwen3-8B&dtype_id=bf16&engine_id=vllm&gpu=rtx-4090&context_tokens=8192&kv_dtype_id=fp8"
    )
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("start it with --kv-cache-dtype fp8_e4m3")
    page.get_by_label("Cache format").select_option("bf16")
    expect(answer).to_contain_text("--max-num-seqs")
    expect(answer).not_to_contain_text("--kv-cache-dtype")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "dtype", "gpu"),
    [("openai/gpt-oss-20b", "gguf-mxfp4", "rtx-4060"), ("Qwen/Qwen3-8B", "gguf-q4_k_m", "rtx-3050-laptop-4gb")],
)
def test_memory_of_the_computer_is_part_of_the_answer_as_in_the_terminal(open_page, folder, capsys, model, dtype, gpu):
    given = ["--gpu", gpu, "--format", dtype, "--context", "8192", "--ram", "32GB"]
    assert command.main(["fits", model, *given, "--data", str(folder / "tables")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    page = open_page(f"calculator/?model={model}&gpu={gpu}&dtype_id={dtype}&context_tokens=8192&ram=32")
    said = page.locator("#calc .answer").inner_text()
    assert said.startswith("Yes, with ") and told.startswith(said)
    page.get_by_label("RAM of the computer, GB").fill("4")
    expect(page.locator("#calc .answer")).to_contain_text("does not fit on")
    page.get_by_label("RAM of the computer, GB").fill("31")
    page.evaluate(f"localStorage.setItem('almanac:gpu', '{gpu}')")
    expect(page.locator("#calc .answer")).to_contain_text("of 31.0 GiB of RAM")
    page.goto(page.url.partition("calculator/")[0] + f"?gpu={gpu}&find={model.partition('/')[2]}")
    # mixtures of experts have a part of the table of their own
    rows = page.locator("#window tbody.beside tr, #window tbody.misses tr", has_text=model.partition("/")[2])
    expect(rows.first).to_contain_text("of 31.0 GiB of RAM")
