"""The table of models by card in a real browser: a card, a scenario, part of a name; remembered, shared, and used by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from tests.render.tiny_models import GPUS, MODELS

pytestmark = pytest.mark.browser
ROW = "#matrix tbody:not([aria-hidden]) tr:not([hidden])"


def names(page):
    return page.locator(f"{ROW} th a").all_text_contents()


@pytest.mark.full
def test_the_matrix_answers_at_once(open_page):
    page = open_page("matrix/")
    assert len(names(page)) == len(MODELS)
    assert page.locator("#count").inner_text().startswith(f"{len(MODELS)} models")
    assert "fits" in page.locator(f"{ROW} td.v-fits").first.inner_text()  # a word and a number, not only a colour
    assert "%" in page.locator(f"{ROW} td.v-fits").first.inner_text()


@pytest.mark.full
@pytest.mark.parametrize(
    ("typed", "found"),
    [("alpha", "acme/Alpha-7B-Instruct"), ("coder.2", "acme/CamelCoder.2-405B"), ("ACME moe", "acme/Beta-MoE-30B-A3B")],
)
def test_any_part_of_a_name_finds_it(open_page, typed, found):
    page = open_page("matrix/")
    page.get_by_label("Part of a model’s name").fill(typed)
    assert names(page) == [found]
    page.get_by_label("Part of a model’s name").fill("")
    assert len(names(page)) == len(MODELS)


def test_my_card_comes_first_and_is_remembered(open_page, site_url):
    page = open_page("matrix/")
    page.locator("select[name=gpu]").select_option("rtx-4090")
    assert "RTX 4090" in page.locator("#matrix thead th.g").first.inner_text()
    assert "on one RTX 4090" in page.locator("#count").inner_text()
    page.goto(f"{site_url}matrix/")
    page.wait_for_selector('html[data-almanac="ready"]')
    assert page.locator("select[name=gpu]").input_value() == "rtx-4090"


def test_the_address_holds_the_state(open_page):
    page = open_page("matrix/?gpu=l40s&phase=lora&context=512&find=alpha&cards=all&sort=need+up")
    assert page.locator("select[name=gpu]").input_value() == "l40s"
    assert page.get_by_label("LoRA", exact=True).is_checked()
    assert page.locator("select[name=context]").input_value() == "512"
    assert names(page) == ["acme/Alpha-7B-Instruct"]
    assert page.locator("#matrix thead th.g").count() == len(GPUS)
    page.locator("select[name=context]").select_option("2048")
    page.wait_for_url("**context=2048**")


@pytest.mark.full
def test_a_phase_changes_the_numbers_and_the_questions(open_page):
    page = open_page("matrix/")
    before = page.locator(f"{ROW} td.n").all_text_contents()
    drawn = page.locator("#matrix").inner_text()
    page.get_by_text("Full fine-tune", exact=True).click()
    page.wait_for_selector("select[name=checkpointing]")
    expect(page.locator("#matrix")).not_to_have_text(drawn, use_inner_text=True)
    assert page.locator(f"{ROW} td.n").all_text_contents() != before
    assert page.locator("select[name=dtype]").input_value() == "bf16"


@pytest.mark.full
def test_sorting_says_its_direction(open_page):
    page = open_page("matrix/")
    page.locator("#matrix thead").get_by_role("button", name="Size").click()
    assert page.locator("#matrix thead th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert names(page)[0] == "acme/CamelCoder.2-405B"
    page.locator("#matrix thead").get_by_role("button", name="Size").click()
    assert names(page)[0] == "tiny-lab/embed-small"


def test_unknown_is_a_word_with_a_reason(open_page):
    page = open_page("matrix/?find=no-config")
    assert (
        page.locator(f"{ROW} td.v-unknown").inner_text()
        == "unknown: No config is published, and no sibling has its shape"
    )


@pytest.mark.full
def test_a_phase_that_is_none_leaves_the_opening_scenario(open_page):
    page = open_page("matrix/?phase=foo")
    assert "phase=foo" in page.locator("#note").inner_text()
    assert page.get_by_label("Context").input_value() == open_page("matrix/").get_by_label("Context").input_value()


def test_a_model_that_reads_less_answers_for_all_that_it_reads(open_page):
    page = open_page("matrix/?find=embed-small&context=8192")
    assert page.locator(f"{ROW} td.n").nth(1).inner_text().endswith("at 2k")
    assert page.locator(f"{ROW} td.v").first.inner_text().startswith("fits")
    assert not page.locator("#note").inner_text()


@pytest.mark.full
def test_what_the_address_asks_for_and_is_not_here_is_said(open_page):
    page = open_page("matrix/?gpu=rtx-9999&context=7000&dtype=bf16")
    note = page.locator("#note")
    assert "gpu=rtx-9999, context=7000" in note.inner_text()
    page.get_by_label("Context").select_option(label="2k tokens")
    expect(note).not_to_contain_text("rtx-9999")


def test_hostile_name_is_text(open_page):
    page = open_page("matrix/?find=evil")
    assert names(page)[0].startswith("evil-org/\\u202e<script>alert(")
    page.locator(f"{ROW} th a").click()
    page.wait_for_selector("article.model")
    assert page.title().startswith("evil-org/\\u202e<script>")


def test_keyboard_alone(open_page):
    page = open_page("matrix/")
    page.locator("select[name=gpu]").focus()
    page.keyboard.press("Tab")  # the phases are one stop, with arrows inside
    assert page.evaluate("document.activeElement.value") == "inference"
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("select[name=checkpointing]")
    assert page.evaluate("document.activeElement.value") == "lora"
    page.keyboard.press("Tab")
    page.keyboard.type("alpha")
    assert names(page) == ["acme/Alpha-7B-Instruct"]
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#matrix tbody a') !== null"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("article.model")


def test_verdicts_of_the_matrix_are_those_of_the_pages(open_page):
    """The browser's comparison against the pages', which is held to the published view."""
    page = open_page("matrix/?find=beta&dtype=bf16+(transformers)&cards=all")
    shown = page.evaluate(
        """() => [...document.querySelectorAll('#matrix thead th.g a')].map((a, i) =>
        [a.href, document.querySelectorAll('#matrix tbody:not([aria-hidden]) td.v')[i].textContent])"""
    )
    link = page.locator(f"{ROW} th a")
    link.click()
    page.wait_for_selector("[data-matrix=inference]")
    row = page.locator("[data-matrix=inference] tbody tr").filter(has=page.locator("th", has_text="bf16transformers"))
    cells = row.locator("td.v").all_text_contents()
    heads = page.locator("[data-matrix=inference] thead th.g a").evaluate_all("all => all.map((a) => a.href)")
    assert dict(shown) == dict(zip(heads, cells, strict=True))


@pytest.mark.full
def test_a_phase_opens_with_what_it_is_usually_done_in(open_page):
    page = open_page("matrix/?phase=qlora")
    assert page.locator("select[name=dtype]").input_value() == "nf4"
    assert page.locator("select[name=context]").input_value() == "2048"


@pytest.mark.full
def test_a_pinned_card_comes_first_and_is_in_the_address(open_page, site_url):
    page = open_page("matrix/")
    page.get_by_label("Pin MI300X").click()
    page.wait_for_url("**pins=mi300x")
    assert "MI300X" in page.locator("#matrix thead th.g").first.inner_text()
    again = open_page(page.url.removeprefix(site_url))
    assert "MI300X" in again.locator("#matrix thead th.g").first.inner_text()
    again.get_by_label("Pin MI300X").press("Enter")
    assert "MI300X" not in again.locator("#matrix thead th.g").first.inner_text()


@pytest.mark.full
def test_of_many_cards_only_those_in_sight_are_drawn(open_page):
    """Two hundred cards made of the six: every cell that is drawn is that of its own card, wherever one scrolls."""
    page = open_page("about/")
    page.route("**/data/scenarios.json*", lambda route: route.fulfill(json=many(route.fetch().json())))
    page.goto(page.url.replace("about/", "matrix/?cards=all&find=alpha"))
    page.wait_for_selector('html[data-almanac="ready"]')
    shown = """() => [...document.querySelectorAll('#matrix thead th.g')].map((head, i) =>
        [head.querySelector('a').textContent, document.querySelectorAll('#matrix tbody:not([aria-hidden]) td.v')[i].textContent])"""
    first = dict(page.evaluate(shown))
    assert 6 < len(first) < 40
    page.locator("#matrix").evaluate("box => box.scrollTo(9000, 0)")
    # (a function to wait for is a script, which the page's policy refuses)
    expect(page.locator("#matrix thead th.g").first).to_have_attribute(
        "aria-colindex", re.compile(r"^(2[1-9]|[3-9]\d|\d{3,})$")
    )
    later = dict(page.evaluate(shown))
    assert len(later) == len(first) and not first.keys() & later.keys()
    text = {name.rpartition(" no. ")[0]: cell for name, cell in {**first, **later}.items()}
    for name, cell in {**first, **later}.items():
        assert cell == text[name.rpartition(" no. ")[0]], name


def many(scenarios):
    """The same cards many times over, under other names."""
    gpus = scenarios["gpus"]
    scenarios["gpus"] = [
        [f"{g[0]}-{i}", g[1], f"{g[2]} no. {i}", f"{g[3]} no. {i}", *g[4:]] for i in range(33) for g in gpus
    ]
    return scenarios


@pytest.mark.full
def test_a_cell_tells_what_stays_free(open_page, site_url):
    page = open_page("matrix/?find=alpha&gpu=rtx-4090")
    cell = page.locator(f"{ROW} td.v").first
    assert "%" in cell.inner_text()
    cell.hover()
    assert "GeForce RTX 4090 gives" in cell.get_attribute("title") and "stay free" in cell.get_attribute("title")
    page.get_by_text("More filters").click()
    page.get_by_label("Figure in a cell").select_option("free")
    assert cell.inner_text().endswith("free")
    page.wait_for_url("**figure=free**")
    again = open_page(page.url.removeprefix(site_url))
    assert again.locator(f"{ROW} td.v").first.inner_text() == cell.inner_text()


@pytest.mark.full
def test_a_cell_tells_what_vllm_has_to_be_told(open_page):
    """30 × 10⁹ weights in 4.2 bits and 8k tokens of cache are three quarters of a card, and vLLM takes 70 % here: the share has the band too. Of a model with
    windows half of the tokens are told, whose cache holds those of two steps."""
    page = open_page("matrix/?find=beta&gpu=rtx-4090&dtype=awq-int4")
    cell = page.locator(f"{ROW} td.v").first
    cell.hover()
    share = re.search(
        r"--gpu-memory-utilization (0\.\d\d) --max-num-seqs 256 --max-num-batched-tokens 4096$",
        cell.get_attribute("title"),
    )
    told = int(re.search(r"(\d+)\s%", cell.inner_text())[1])
    assert share and told < 100 * float(share[1]) <= 1.06 * told
    larger = page.locator(f"{ROW} td.v").nth(3)
    larger.hover()
    assert "stay free" in larger.get_attribute("title") and "--gpu" not in larger.get_attribute("title")
    assert larger.get_attribute("title").endswith("start it with --max-num-seqs 256 --max-num-batched-tokens 4096")


@pytest.mark.full
def test_cards_by_vendor_and_by_memory(open_page):
    page = open_page("matrix/?cards=vendor:amd")
    assert (
        page.locator("#matrix thead th.g").count() == 1 and "MI300X" in page.locator("#matrix thead th.g").inner_text()
    )
    page.locator("select[name=cards]").select_option("memory:24-31")
    assert "RTX 4090" in page.locator("#matrix thead th.g").inner_text()


def test_what_is_not_listed_is_answered_in_words(open_page):
    page = open_page("matrix/?find=nobody-has-this")
    assert page.locator("#nothing").is_visible() and "base model" in page.locator("#nothing").inner_text()
    page.get_by_label("Part of a model’s name").fill("alpha")
    assert not page.locator("#nothing").is_visible()


@pytest.mark.full
def test_the_matrix_is_a_query_too(open_page):
    page = open_page("matrix/?gpu=l40s&phase=lora&context=512")
    page.get_by_text("As SQL").click()
    expect(page.locator("#as-sql code")).to_contain_text("l40s")
    text = page.locator("#as-sql code").inner_text()
    assert "phase_id = 'lora'" in text and "context_tokens = 512" in text and "optimizer_id = 'adamw'" in text


@pytest.mark.full
def test_a_system_changes_every_verdict_and_goes_along(open_page):
    """What a card gives under Windows is 81 % of what it is sold with; cards of servers give the same."""
    page = open_page("matrix/?gpu=rtx-3060-12gb&dtype=gguf-q8_0")
    row = page.locator("#matrix tbody:not([aria-hidden]) tr", has_text="Alpha-7B").first
    before, count = row.locator("td.v").all_inner_texts(), page.locator("#count").inner_text()
    page.locator("summary", has_text="More filters").click()
    page.locator("#ask select[name=system]").select_option("windows")
    page.wait_for_url("**system=windows**")
    expect(page.locator("#matrix thead th.g").first).to_contain_text("9.7")
    after = row.locator("td.v").all_inner_texts()
    assert after[0] != before[0] and after[-1] == before[-1] and "on one RTX 3060 12GB" in count
    assert "system=windows" in row.locator("a").get_attribute("href")
    expect(page.locator("#as-sql code")).to_contain_text("-- as the cards give under Linux")
    again = open_page(page.url.partition("/deep/")[2])
    assert (
        again.locator("#matrix tbody:not([aria-hidden]) tr", has_text="Alpha-7B")
        .first.locator("td.v")
        .all_inner_texts()
        == after
    )
