"""What people come for, done as they would do it on a desk and on a phone, and how many things they have to touch: a click or a field counts as one.

The letters are those of a survey: eleven people's questions. What needs real shapes (g: pictures; e: layers beside the CPU) is asked in real/,
f and k also backwards in test_backwards.py.
"""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.many_rows import sheets
from tests.browser.swipe import swipe

pytestmark = pytest.mark.browser
A4 = 718  # pixels of a sheet between the browser's margins
# What of a page lies beyond the paper's edge.
BEYOND = """(width) => [...document.querySelectorAll("article :is(th, td, p, pre, svg)")]
    .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > width + 1).map((e) => e.textContent)"""
ROW = "#window tbody:not(.misses) tr"


class Hand:
    """Touches a page and counts."""

    def __init__(self, page):
        self.page, self.touched = page, 0
        self.narrow = page.viewport_size["width"] < 960  # asked of the page it could be asked before its styles lie

    def choose(self, field, value, inside="#window"):
        self.touched += 1
        self.page.locator(f"{inside} select[name={field}]").select_option(value)

    def type(self, label, text):
        self.touched += 1
        self.page.get_by_label(label).fill(text)

    def click(self, target):
        self.touched += 1
        target.click()

    def open(self, name):
        """One of the five ways that lead on, which a phone keeps in a drawer."""
        if self.narrow:
            self.click(self.page.locator(".md-header__button[for=__drawer]"))
        place = ".md-nav--primary" if self.narrow else ".md-tabs"
        self.click(self.page.locator(place).get_by_role("link", name=name).first)

    def search(self, text):
        """Of the header: type and press Enter."""
        self.touched += 1
        glass, field = ".md-header__button[for=__search]", ".md-search__input"
        self.page.locator(glass if self.narrow else field).click()  # a phone has a glass instead of the field
        self.page.locator(".md-search__input").press_sequentially(text)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("article.model")
        self.page.wait_for_selector('html[data-almanac="ready"]')


@pytest.fixture(params=[pytest.param(1440, marks=pytest.mark.full), 390])
def hand(open_page, request):
    width = request.param
    phone = {"has_touch": True, "is_mobile": True}
    return Hand(
        open_page("", width=width, height=900 if width > 400 else 844, unfold=False, **(phone if width < 400 else {}))
    )


def test_a_which_chat_models_my_card_runs_in_which_format_how_far(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    row = hand.page.locator(ROW).first
    assert "Alpha-7B" in row.locator("th").inner_text() and "Q8_0" in row.locator("td.rec").inner_text()
    assert row.locator("td.best").inner_text() == "16k" and hand.touched == 1


def test_b_a_model_on_two_cards_and_the_context_that_it_has_there(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    hand.choose("count", "2")
    hand.type("Part of a model’s name", "30b a3b")
    row = hand.page.locator(ROW).filter(has_text="Beta")
    assert "Q4_K_M" in row.locator("td.rec").inner_text() and "8k" in row.locator("td.best").inner_text()
    assert hand.touched == 3


@pytest.mark.full
def test_c_how_long_a_sequence_lora_has_on_my_card(hand):
    hand.search("alpha 7b")
    hand.choose("gpu", "rtx-4090", "[data-controls=mine]")
    first = hand.page.locator("[data-cards] tr.mine")
    expect(first).to_have_count(1)
    head = hand.page.locator("[data-cards] thead th").all_inner_texts()
    assert head[-1] == "LoRA" and first.locator("td").last.inner_text() == "all 32k" and hand.touched == 2


def test_d_how_many_cards_a_model_needs_that_none_holds(hand):
    hand.search("camelcoder")
    hand.choose("gpu", "h100-sxm", "[data-controls=mine]")
    expect(hand.page.locator("[data-cards] tr.mine")).to_contain_text(re.compile(r"[34] cards, in Q\d_K.*: \d+k"))
    assert hand.touched == 2


@pytest.mark.full
def test_d_how_many_cards_training_every_weight_needs(hand):
    hand.search("camelcoder")
    hand.choose("gpu", "h100-sxm", "[data-controls=mine]")
    hand.click(hand.page.get_by_text("Training by all cards"))
    told = hand.page.locator("[data-matrix=training] tbody td:nth-child(3)[title*='shared by ZeRO-3']")
    expect(told.first).to_have_text(re.compile(r"^\d+ × \d+\s%$"))  # a number of cards, and how full each is
    assert hand.touched == 3


@pytest.mark.full
def test_f_how_far_three_users_come_on_eight_cards(hand):
    hand.open("Calculator")
    page = hand.page
    page.wait_for_selector("#calc .answer:not([hidden])")
    before = hand.touched
    for label, value in (("Model", "acme/Beta-MoE-30B-A3B"), ("Users at once", "3"), ("GPUs", "8")):
        hand.touched += 1
        page.locator("#calc").get_by_label(label, exact=True).fill(value)
    for label, value in (("My card", "rtx-4090"), ("I want to know", "context")):
        hand.touched += 1
        page.get_by_label(label).select_option(value)
    expect(page.locator("#calc .answer")).to_contain_text(
        re.compile(r"Up to [\d,]+ tokens for each of 3 users on 8 × RTX 4090")
    )
    assert hand.touched - before == 5


@pytest.mark.full
def test_f_how_many_users_a_card_serves_at_once(hand):
    hand.search("alpha 7b")
    row = hand.page.locator("[data-cards] tbody tr", has_text="H100 SXM")
    assert int(row.locator("td").nth(2).inner_text()) > 10 and hand.touched == 1


@pytest.mark.full
def test_e_which_cards_hold_a_model_and_how_far_each_goes(hand):
    hand.search("30b a3b")
    rows = {
        r.locator("th").inner_text(): r.locator("td").all_inner_texts()
        for r in hand.page.locator("[data-cards] tbody tr").all()
    }
    assert (
        rows["RTX 3060 12GB"][0] == "2 cards, in Q4_K_M"
        and rows["RTX 4090"][:2] == ["Q5_K_M", "8k"]
        and rows["L40S"][0] == "Q8_0"
    )
    assert hand.touched == 1


def test_i_all_that_fits_my_card_as_a_file(hand):
    hand.choose("gpu", "rtx-4090")
    with hand.page.expect_download() as waited:
        hand.click(hand.page.get_by_role("button", name="CSV"))
    lines = Path(waited.value.path()).read_text(encoding="utf-8").splitlines()
    assert "max_context_tokens gguf-q4_k_m" in lines[0] and len(lines) == 3 and hand.touched == 2


@pytest.mark.full
def test_k_how_far_a_cache_of_eight_bits_goes(hand):
    hand.search("30b a3b")
    hand.choose("gpu", "rtx-4090", "[data-controls=mine]")
    hand.click(hand.page.get_by_text("It does not fit: now what?"))
    way = hand.page.locator("[data-help] li", has_text="A cache of 8 bits")
    expect(way).to_contain_text(re.compile(r"holds [\d,]+ tokens"))
    assert hand.touched == 3


def test_what_to_paste(hand):
    hand.search("alpha 7b")
    hand.choose("gpu", "rtx-3060-12gb", "[data-controls=mine]")
    expect(hand.page.locator("details.run code").first).to_contain_text("-c 16384 -ngl 99")
    assert hand.touched == 2


def test_h_which_card_to_buy_for_a_model(hand):
    hand.type("Part of a model’s name", "30b a3b")
    hand.click(hand.page.get_by_role("link", name="Which card for Beta-MoE-30B-A3B?"))
    row = hand.page.locator("#which tbody tr").first  # the cheapest
    expect(row).to_contain_text("2 × RTX 3060 12GB")
    assert row.locator("td").first.inner_text() == "658" and "≤" in row.locator("td").nth(2).inner_text()
    assert hand.touched == 2


def test_j_what_my_own_config_comes_to(hand):
    hand.open("Calculator")
    hand.page.wait_for_selector("#calc .answer:not([hidden])")
    hand.click(hand.page.get_by_text("A model of your own"))
    hand.touched += 1
    hand.page.get_by_label("config.json", exact=True).fill('{"model_type": "qwen3"}')
    expect(hand.page.locator("#calc form details")).to_contain_text("vram-almanac fits config.json")
    assert hand.touched <= 4  # with the drawer of a phone


def test_how_a_system_changes_what_fits(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    linux = hand.page.locator(ROW).first.locator("td.best").inner_text()
    hand.choose("system", "windows")
    expect(hand.page.locator("#window .answer")).to_contain_text("under Windows")
    assert hand.page.locator(ROW).first.locator("td.best").inner_text() != linux and hand.touched == 2


@pytest.mark.full
@pytest.mark.parametrize("width", [1440, 390])
def test_the_answer_on_one_sheet_of_paper(open_page, width):
    """What somebody takes along, printed from a desk and from a phone: a card's list, a model, a scenario."""
    for path, most, answer in (
        ("?gpu=rtx-4090", 1, "#window .answer"),
        ("models/acme/Alpha-7B-Instruct/?gpu=rtx-4090", 2, "p.answer"),
        ("calculator/?gpu=rtx-4090", 2, "#calc .answer"),
    ):
        page = open_page(path, width=width, unfold=False)
        page.locator(f"{answer}:not([hidden])").wait_for()
        assert sheets(page.pdf()) <= most, path
        page.emulate_media(media="print")
        page.set_viewport_size({"width": A4, "height": 1000})
        assert page.locator(answer).is_visible() and not page.evaluate(BEYOND, A4), path
        if path.startswith("models/"):
            assert page.locator("[data-cards] tr").nth(1).is_visible()


@pytest.mark.full
@pytest.mark.parametrize("path", ["?gpu=rtx-4090", "models/acme/Alpha-7B-Instruct/"])
def test_a_finger_moves_the_page_and_it_stays(open_page, path):
    page = open_page(path, width=390, height=500, has_touch=True, is_mobile=True)
    for _ in range(2):
        swipe(page, 150, 420, 200)
    page.wait_for_timeout(300)
    there = page.evaluate("scrollY")
    page.wait_for_timeout(400)
    assert 200 < there <= 400 and page.evaluate("scrollY") == there
    assert page.evaluate("scrollX") == 0 and page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.full
@pytest.mark.parametrize("path", ["", "models/acme/Alpha-7B-Instruct/"])
def test_wheel_and_keys_scroll_the_page_and_stop(open_page, path):
    page = open_page(path, height=500)
    page.mouse.move(600, 300)
    for _ in range(3):
        page.mouse.wheel(0, 120)
        page.wait_for_timeout(40)
    page.wait_for_timeout(600)
    there = page.evaluate("scrollY")
    page.wait_for_timeout(600)
    assert 0 < there <= 360 == 360 and page.evaluate("scrollY") == there
    page.keyboard.press("PageDown")
    page.wait_for_timeout(700)
    assert page.evaluate("scrollY") >= there
