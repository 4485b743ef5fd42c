"""A model's page as people use it: with their own card, from a link, on a phone and on paper, in a real browser."""

import re
import zlib
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
MODEL = "models/acme/Alpha-7B-Instruct/"
LARGE = "models/acme/CamelCoder.2-405B/"  # which some of the cards do not hold at all
PAPER = {"A4": 703, "Letter": 725}  # CSS pixels between the margins of a sheet

# Of each table by card: where its first card stands, and what the scroll box around it shows.
FIRST_CARDS = """() => [...document.querySelectorAll("article table.mx:not(.by)")].map((table) => {
    const place = table.dataset.matrix ? 2 : 1;
    const cell = [...table.tBodies[0].rows].map((row) => row.cells[place]).find((c) => c && /[0-9]/.test(c.textContent)) ?? table.tHead.rows[0].cells[place];
    const box = table.parentNode.getBoundingClientRect(), at = cell.getBoundingClientRect();
    return { name: table.dataset.matrix ?? table.dataset.reach, head: table.tHead.rows[0].cells[place].textContent, left: at.left, right: at.right, from: box.left, to: Math.min(box.right, innerWidth) };
})"""

# What of a page lies beyond the paper's edge.
BEYOND = """(width) => [...document.querySelectorAll("article :is(th, td, pre, svg)")]
    .filter((e) => e.getBoundingClientRect().right > width + 1).map((e) => e.textContent)"""


def heads(page):
    """The first card of every table by card."""
    return page.evaluate(
        "[...document.querySelectorAll('article table.mx:not(.by)')].map((t) => t.tHead.querySelector('.g').textContent)"
    )


@pytest.mark.full
def test_every_table_takes_the_card_that_is_chosen_in_any_of_them(open_page):
    page = open_page(MODEL)
    page.locator("[data-controls=reach] select[name=gpu]").select_option("mi300x")
    page.locator("[data-reach=inference] th.mine").wait_for()
    assert all("MI300X" in head and "mine" in head for head in heads(page)) and len(heads(page)) == 4
    for form in ("inference", "training", "reach"):
        assert page.locator(f"[data-controls={form}] select[name=gpu]").input_value() == "mi300x"
    page.locator("[data-controls=training] select[name=cards]").select_option("mine")
    assert page.locator("[data-reach=inference] thead th").count() == 2


@pytest.mark.full
def test_a_card_that_is_not_among_the_common_ones_has_a_longest_context(open_page):
    """The tiny book has few cards, so all of them are common: whichever is asked for, the limits stay what they were."""
    page = open_page(MODEL)
    drawn = [page.locator(f"[data-reach={kind}]").inner_text() for kind in ("inference", "training")]
    assert "all 32k" in drawn[0] and "LoRA" in drawn[1]
    page.locator("[data-controls=reach] select[name=cards]").select_option("all")
    page.locator("[data-controls=reach] select[name=gpu]").select_option("rtx-3060-12gb")  # the smallest: first already
    page.locator("[data-reach=inference] th.mine").wait_for()
    again = [page.locator(f"[data-reach={kind}]").inner_text() for kind in ("inference", "training")]
    assert [text.replace("mine · ", "") for text in again] == drawn


@pytest.mark.full
def test_what_is_folded_is_made_of_the_files_for_programs(open_page):
    page = open_page(MODEL)
    told = page.request.get(page.url.replace("/models/", "/api/v1/models/").rstrip("/") + ".json").json()
    (lora,) = (f for f in told["footprints"] if f["phase_id"] == "lora")
    at = lora["context_tokens"].index(2048)
    row = page.locator("[data-breakdown] tbody tr", has_text="LoRA").first
    cells = row.locator("td.x").all_inner_texts()
    assert cells[0] == f"{lora['weights_bytes']:,}" == "14,000,000,000" and cells[-1] == f"{lora['total_bytes'][at]:,}"
    assert row.locator("svg.bar path").count() == len(cells) - 1
    assert page.locator("[data-legend] a").first.inner_text() == "Weights"
    # GiB along the contexts, for each number of sequences
    heads = page.locator("[data-contexts] thead tr").nth(1).locator("th").all_inner_texts()
    assert heads == ["2k", "8k"] * 2
    bf16 = page.locator("[data-contexts] tbody tr", has_text="bf16 (transformers)")
    (inference,) = (
        f
        for f in told["footprints"]
        if (f["dtype_id"], f["engine_id"]) == ("bf16", "transformers") and f["phase_id"] == "inference"
    )
    sizes = [f"{total / 2**30:.1f}" for total in inference["total_bytes"]]
    assert bf16.locator("td").all_inner_texts()[:2] == sizes
    assert "Parameters by class" in page.locator("[data-anatomy]").inner_text()


@pytest.mark.full
def test_what_was_chosen_stands_in_the_address_and_comes_back(open_page, site_url):
    page = open_page(MODEL)
    page.locator("[data-controls=inference] select[name=context]").select_option("2048")
    page.locator("[data-controls=training] select[name=checkpointing]").select_option("none")
    page.locator("[data-controls=inference] select[name=gpu]").select_option("l40s")
    address = page.url.partition("?")[2]
    assert set(address.split("&")) == {"gpu=l40s", "context=2048", "training.checkpointing=none"}
    again = open_page(page.url.removeprefix(site_url))
    assert again.locator("[data-controls=inference] select[name=context]").input_value() == "2048"
    assert again.locator("[data-controls=training] select[name=checkpointing]").input_value() == "none"
    assert "adamw, all activations kept" in again.locator("[data-matrix=training] caption").inner_text()
    assert all("mine" in head for head in heads(again))
    again.locator("[data-matrix=inference] tbody th a").first.click()
    again.wait_for_selector("#calc .answer")
    again.go_back()
    again.wait_for_selector('html[data-almanac="ready"]')
    assert again.locator("[data-controls=inference] select[name=context]").input_value() == "2048"
    again.evaluate("location.hash = '#reach'")
    again.locator("[data-controls=inference] select[name=context]").select_option("8192")
    again.go_back()
    again.wait_for_selector("[data-controls=inference] [name=context]")
    expect(again.locator("[data-controls=inference] [name=context]")).to_have_value("2048")


@pytest.mark.full
def test_the_keys_are_those_of_the_matrix_and_of_sql(open_page):
    page = open_page(f"{MODEL}?phase=lora&context=512&checkpointing=none&dtype=bf16")
    training = page.locator("[data-controls=training]")
    assert training.locator("[name=context]").input_value() == "512"
    assert training.locator("[name=checkpointing]").input_value() == "none"
    assert page.locator("[data-controls=inference] [name=context]").input_value() == "8192"
    assert "LoRA" in page.locator("tr.asked").inner_text() and page.locator("tr.asked").count() == 1
    page = open_page(f"{MODEL}?gpu_id=L40S&context_tokens=2k&dtype_id=gguf-q8_0")
    assert page.locator("[data-controls=inference] [name=context]").input_value() == "2048"
    assert page.locator("[data-controls=reach] [name=gpu]").input_value() == "l40s"
    assert "gguf-q8_0" in page.locator("tr.asked").inner_text()
    assert page.locator(".told").count() == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("context=9999", "8192"),
        ("context=abc", "8192"),
        ("context=-1", "8192"),
        ("context=1e999", "8192"),
        ("context=3000", "2048"),
        ("gpu=rtx-9999", "8192"),
        ("cards=mars", "8192"),
        ("phase=dreaming", "8192"),
        ("dtype=int3", "8192"),
        ("figure=left", "8192"),
        ("sequences=7", "8192"),
        ("training.context=1", "8192"),
    ],
)
def test_what_the_address_asks_for_in_vain_is_told(open_page, asked, left):
    page = open_page(f"{MODEL}?{asked}")
    assert asked in page.locator(".told").inner_text()
    assert page.locator("[data-controls=inference] [name=context]").input_value() == left
    page.locator("[data-controls=inference] [name=sequences]").select_option("8")
    assert page.locator(".told").count() == 0


@pytest.mark.full
def test_a_click_on_the_matrix_carries_card_and_scenario(open_page):
    page = open_page("matrix/?gpu=l40s&phase=lora&context=2048&checkpointing=none&find=Alpha")
    page.locator("#matrix tbody th a", has_text="acme/Alpha-7B-Instruct").click()
    page.wait_for_selector("article.model")
    page.wait_for_selector('html[data-almanac="ready"]')
    assert all("mine" in head for head in heads(page))
    training = page.locator("[data-controls=training]")
    assert [training.locator(f"[name={key}]").input_value() for key in ("context", "checkpointing")] == ["2048", "none"]
    assert "LoRA" in page.locator("tr.asked").inner_text()


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.full), 360])
@pytest.mark.parametrize("cards", ["mine", "common", "memory:64-127"])
@pytest.mark.parametrize("path", [MODEL, LARGE])
def test_on_a_phone_the_numbers_of_ones_own_card_are_in_view(open_page, width, cards, path):
    page = open_page(f"{path}?gpu=rtx-4090&cards={cards}", width=width, height=844)
    page.evaluate(
        "document.querySelectorAll('.why').forEach((w) => w.textContent += ' because of a reason that is told at length')"
    )
    tables = page.evaluate(FIRST_CARDS)
    assert [table["name"] for table in tables] == ["inference", "training", "inference", "training"]
    for table in tables:
        assert "RTX 4090" in table["head"], table
        assert table["from"] <= table["left"] and table["right"] <= table["to"] + 0.5, table


@pytest.mark.full
def test_a_long_reason_makes_no_page_wider(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-4090&cards=mine", width=390, height=844)
    page.locator("[data-left=inference]").evaluate("why => why.textContent = 'for a reason '.repeat(60)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


CARDS = "[data-cards] tbody tr"


def by_card(page, rows=CARDS):
    return {
        row.locator("th").inner_text().partition("\n")[0].replace("mine", "").strip(): row.locator(
            "td"
        ).all_inner_texts()
        for row in page.locator(rows).all()
    }


def test_of_ones_own_card_the_page_tells_format_reach_users_and_training_first(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-4090", unfold=False)
    first = page.locator(CARDS).first
    assert "RTX 4090" in first.inner_text() and "mine" in first.inner_text()
    format_, context, users, qlora, lora = first.locator("td").all_inner_texts()
    assert format_ == "bf16" and context == "all 32k" and int(users) > 0 and qlora == "all 32k" and lora == "all 32k"
    assert not page.locator("[data-matrix=inference]").is_visible()  # all else is folded


@pytest.mark.some(2)
@pytest.mark.parametrize("path", [MODEL, "models/tiny-lab/embed-small/", LARGE, "models/acme/Beta-MoE-30B-A3B/"])
def test_what_scripts_say_of_each_card_is_what_the_page_says(open_page, path):
    plain = by_card(open_page(path, java_script_enabled=False))
    drawn = by_card(open_page(f"{path}?gpu=mi300x"))  # of one's own that holds none scripts say more (test_mine.py)
    assert plain == drawn and len(plain) == 6
    assert path != LARGE or {text for cells in drawn.values() for text in cells if "cards" in text}


@contextmanager
def page_says(visits, site_url, **values):
    """Pages of models with other values in some of their data, as those of other models have."""

    def other(route):
        html = route.fetch().text()
        for name, value in values.items():
            html = re.sub(f'data-{name}="[^"]*"', f'data-{name}="{value}"', html)
        route.fulfill(body=html, content_type="text/html")

    context, _stays = visits(site_url, {})
    context.route(re.compile(r"/models/acme/[^/]+/(\?.*)?$"), other)
    yield
    context.unroute_all()


def test_of_what_is_published_in_few_bits_scripts_count_cards_in_both(open_page, visits, site_url):
    with page_says(visits, site_url, cards="stored/transformers gguf-q8_0/llama.cpp"):
        page = open_page(LARGE)
        assert by_card(page)["MI300X"][0] == "4 cards, in Q8_0; 8 as published"
        page.locator("[data-controls=mine] select[name=gpu]").select_option("mi300x")
        expect(page.locator("[data-mine]")).to_contain_text(
            re.compile(r"3 × MI300X hold it in Q8_0 .*; \d as published\.")
        )
        expect(page.locator("[data-cards] tr.mine td").first).to_have_text(
            re.compile(r"^3 cards, in Q8_0: .*; \d as published$")
        )


def test_a_format_that_holds_less_than_is_asked_falls_short_and_is_no_fit(open_page, visits, site_url):
    with page_says(visits, site_url, cards="gguf-q8_0/llama.cpp", context="32768"):
        page = open_page(f"{MODEL}?gpu=rtx-3060-12gb")
        mine = page.locator("[data-cards] tr.mine td")
        expect(mine.first).to_have_text("Q8_0 falls short")
        expect(mine.nth(1)).to_have_text("16k")
        assert page.locator("[data-cards] tr.mine td.v-fits").count() == 0
        expect(page.locator("[data-mine] li", has_text="2 × RTX 3060 12GB")).to_contain_text("hold it in Q8_0 at 32k")


@pytest.mark.full
def test_a_card_that_holds_nothing_says_how_many_do(open_page):
    cells = by_card(open_page(LARGE))
    assert cells["RTX 3060 12GB"][0] == "no, not on 8 cards" and cells["H100 SXM"][0] == "4 cards, in Q5_K_M"


@pytest.mark.full
def test_the_bars_of_formats_open_to_their_parts(open_page):
    page = open_page(MODEL, unfold=False)
    bars = page.locator(".bars details")
    assert "Q4_K_M" in bars.first.inner_text()  # four bits come before whole precision
    names = bars.locator("b").all_text_contents()
    assert names.index("Q4_K_M") < names.index("bf16")
    bf16 = bars.filter(has=page.locator("summary b", has_text=re.compile("^bf16$")))
    assert not bf16.locator("p").first.is_visible()
    bf16.locator("summary").click()
    assert (
        "Weights 13.0" in bf16.locator("p").first.inner_text()
        and "bytes, ± 4 %" in bf16.locator("p").first.inner_text()
    )
    assert bf16.locator("p").count() == 2  # two engines of one format together
    assert page.locator("#levels").get_attribute("d").count("M") >= 1
    assert page.locator(".bars > p text").first.text_content() == "12"  # what the first line is


def commands(page):
    return {
        d.get_attribute("data-engine"): d.locator("code").text_content()
        for d in page.locator("details.run").all()
        if d.is_visible()
    }


@pytest.mark.full
def test_what_to_paste_has_the_format_and_the_context_that_fit_the_card(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-3060-12gb")
    page.wait_for_selector("[data-cards] tr.mine")
    assert (
        "llama-quantize model.gguf model-Q8_0.gguf Q8_0 && llama-server -m model-Q8_0.gguf -c 16384 -ngl 99"
        in commands(page)["llama.cpp"]
    )
    assert "Q8_0 on one RTX 3060 12GB: up to 16,384 tokens fit." in page.locator("details.run").first.inner_text()
    page.locator("[data-controls=mine] select[name=gpu]").select_option("rtx-4090")
    expect(page.locator("details.run code").first).to_contain_text("-c 32768")
    vllm = commands(page)["vllm"]
    assert re.fullmatch(
        r"vllm serve acme/Alpha-7B-Instruct --max-model-len \d+ --gpu-memory-utilization 0\.9\d --max-num-seqs 256 --max-num-batched-tokens 8192",
        vllm,
    ), vllm


def test_what_does_not_run_on_the_card_has_no_command(open_page):
    page = open_page(f"{MODEL}?gpu=m4-max-128gb")
    page.wait_for_selector("[data-cards] tr.mine")
    assert "vllm" not in commands(page) and "llama.cpp" in commands(page)


@pytest.mark.full
def test_several_cards_are_in_the_command(open_page):
    page = open_page(f"{LARGE}?gpu=mi300x")
    page.wait_for_selector("[data-cards] tr.mine")
    assert "--tensor-parallel-size 8" in commands(page)["vllm"]
    page.locator("details.run[data-engine=vllm] summary").click()
    assert "Not on one MI300X: on 8, in bf16" in page.locator("details.run[data-engine=vllm]").inner_text()
    page.locator("[data-controls=mine] select[name=gpu]").select_option("h100-sxm")
    expect(page.locator("details.run[data-engine=vllm] small")).to_contain_text("Does not fit on H100 SXM")
    assert not page.locator("details.run[data-engine=vllm] pre").is_visible()  # nothing to paste that would fail


@pytest.mark.full
def test_a_model_that_writes_nothing_is_not_started_as_one_that_does(open_page):
    assert open_page("models/tiny-lab/embed-small/").locator("details.run").count() == 0


def test_what_does_not_fit_is_told_how_it_does(open_page):
    page = open_page(f"{LARGE}?gpu=h100-sxm#now-what")
    more = page.locator("[data-help] li", has_text="4 × H100 SXM hold Q4_K_M at 8k tokens")
    expect(more).to_contain_text(re.compile(r"one lacks \d+ GiB"))
    smaller = open_page("models/acme/Beta-MoE-30B-A3B/?gpu=rtx-4090#now-what")
    expect(smaller.locator("[data-help] li", has_text="A cache of 8 bits")).to_contain_text("-ctk q8_0 -ctv q8_0")
    expect(smaller.locator("[data-help] li", has_text="In Q5_K_M")).to_contain_text("it fits at 8k tokens; in Q8_0")


def sheets(pdf: bytes) -> list[int]:
    """How many pieces of text each sheet of a PDF draws."""
    objects = {int(n): body for n, body in re.findall(rb"(?s)(\d+) 0 obj(.*?)endobj", pdf)}
    found = []
    for body in objects.values():
        contents = re.search(rb"/Contents (\d+) 0 R", body)
        if contents and re.search(rb"/Type\s*/Page\b", body):
            stream = re.search(rb"(?s)stream\r?\n(.*?)\r?\nendstream", objects[int(contents[1])])[1]
            found.append(len(re.findall(rb"T[jJ]\b", zlib.decompress(stream))))
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("paper", PAPER)
def test_on_paper_no_card_is_lost_and_no_sheet_is_blank(open_page, paper):
    page = open_page(f"{MODEL}?gpu=l40s")
    printed = sheets(page.pdf(format=paper))
    assert 2 <= len(printed) <= 10 and min(printed) > 0, printed
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER[paper], "height": 1000})
    assert not page.evaluate(BEYOND, PAPER[paper])
    assert page.locator("details.run:visible").count() == 1, "a command that is folded is no bare title"
