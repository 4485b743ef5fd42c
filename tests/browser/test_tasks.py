"""What people come for, done as they would do it, and how many things they have to touch: a click or a field counts as one."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
ROW = "#window tbody:not(.misses) tr"


class Hand:
    """Touches a page and counts."""

    def __init__(self, page):
        self.page, self.touched = page, 0

    def choose(self, field, value, inside="#window"):
        self.touched += 1
        self.page.locator(f"{inside} select[name={field}]").select_option(value)

    def type(self, label, text):
        self.touched += 1
        self.page.get_by_label(label).fill(text)

    def click(self, target):
        self.touched += 1
        target.click()

    def search(self, text):
        """Of the header: type and press Enter."""
        self.touched += 1
        self.page.locator(".md-search__input").click()
        self.page.locator(".md-search__input").press_sequentially(text)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("article.model")
        self.page.wait_for_selector('html[data-almanac="ready"]')


@pytest.fixture(params=[1440, 390])
def hand(open_page, request):
    width = request.param
    return Hand(open_page("", width=width, height=900 if width > 400 else 844, unfold=False))


@pytest.fixture
def desk(open_page):
    return Hand(open_page("", width=1440, unfold=False))


def test_which_chat_models_my_card_runs_in_which_format_how_far(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    row = hand.page.locator(ROW).first
    assert "Alpha-7B" in row.locator("th").inner_text() and "Q8_0" in row.locator("td.rec").inner_text()
    assert row.locator("td.best").inner_text() == "16k" and hand.touched == 1


def test_a_model_on_two_cards_and_the_context_that_it_has_there(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    hand.choose("count", "2")
    hand.type("Part of a model’s name", "30b a3b")
    row = hand.page.locator(ROW).filter(has_text="Beta")
    assert "Q4_K_M" in row.locator("td.rec").inner_text() and "8k" in row.locator("td.best").inner_text()
    assert hand.touched == 3


def test_how_long_a_sequence_lora_has_on_my_card(desk):
    desk.search("alpha 7b")
    desk.choose("gpu", "rtx-4090", "[data-controls=mine]")
    first = desk.page.locator("[data-cards] tr.mine")
    expect(first).to_have_count(1)
    head = desk.page.locator("[data-cards] thead th").all_inner_texts()
    assert head[-1] == "LoRA" and first.locator("td").last.inner_text() == "all 32k" and desk.touched == 2


def test_how_many_cards_a_model_needs_that_none_holds(desk):
    desk.search("camelcoder")
    desk.choose("gpu", "h100-sxm", "[data-controls=mine]")
    expect(desk.page.locator("[data-cards] tr.mine")).to_contain_text("4 cards, in Q5_K_M")
    assert desk.touched == 2


def test_how_many_users_a_card_serves_at_once(desk):
    desk.search("alpha 7b")
    row = desk.page.locator("[data-cards] tbody tr", has_text="H100 SXM")
    assert int(row.locator("td").nth(2).inner_text()) > 10 and desk.touched == 1


def test_which_cards_hold_a_model_and_how_far_each_goes(desk):
    desk.search("30b a3b")
    rows = {
        r.locator("th").inner_text(): r.locator("td").all_inner_texts()
        for r in desk.page.locator("[data-cards] tbody tr").all()
    }
    assert (
        rows["RTX 3060 12GB"][0] == "2 cards, in Q4_K_M"
        and rows["RTX 4090"][:2] == ["Q5_K_M", "8k"]
        and rows["L40S"][0] == "Q8_0"
    )
    assert desk.touched == 1


def test_all_that_fits_my_card_as_a_file(desk):
    desk.choose("gpu", "rtx-4090")
    with desk.page.expect_download() as waited:
        desk.click(desk.page.get_by_role("button", name="CSV"))
    lines = Path(waited.value.path()).read_text(encoding="utf-8").splitlines()
    assert "max_context_tokens gguf-q4_k_m" in lines[0] and len(lines) == 3 and desk.touched == 2


def test_how_far_a_cache_of_eight_bits_goes(desk):
    desk.search("30b a3b")
    desk.choose("gpu", "rtx-4090", "[data-controls=mine]")
    desk.click(desk.page.get_by_text("It does not fit: now what?"))
    way = desk.page.locator("[data-help] li", has_text="A cache of 8 bits")
    expect(way).to_contain_text(re.compile(r"holds [\d,]+ tokens"))
    assert desk.touched == 3


def test_what_to_paste(desk):
    desk.search("alpha 7b")
    desk.choose("gpu", "rtx-3060-12gb", "[data-controls=mine]")
    expect(desk.page.locator("details.run code").first).to_contain_text("-c 16384 -ngl 99")
    assert desk.touched == 2


def test_which_card_to_buy_for_a_model(hand):
    hand.type("Part of a model’s name", "30b a3b")
    hand.click(hand.page.get_by_role("link", name="Which card for Beta-MoE-30B-A3B?"))
    row = hand.page.locator("#which tbody tr").first  # the cheapest
    expect(row).to_contain_text("2 × RTX 3060 12GB")
    assert row.locator("td").first.inner_text() == "658" and "≤" in row.locator("td").nth(2).inner_text()
    assert hand.touched == 2


def test_what_my_own_config_comes_to(desk):
    desk.click(desk.page.locator(".md-tabs").get_by_role("link", name="Calculator"))
    desk.page.wait_for_selector("#calc .answer:not([hidden])")
    desk.click(desk.page.get_by_text("A model of your own"))
    desk.touched += 1
    desk.page.get_by_label("config.json", exact=True).fill('{"model_type": "qwen3"}')
    expect(desk.page.locator("#calc form details")).to_contain_text("python -m pipeline fits config.json")
    assert desk.touched == 3


def test_how_a_system_changes_what_fits(hand):
    hand.choose("gpu", "rtx-3060-12gb")
    linux = hand.page.locator(ROW).first.locator("td.best").inner_text()
    hand.choose("system", "windows")
    expect(hand.page.locator("#window .answer")).to_contain_text("under Windows")
    assert hand.page.locator(ROW).first.locator("td.best").inner_text() != linux and hand.touched == 2


def test_the_answer_on_one_sheet_of_paper(open_page):
    page = open_page("?gpu=rtx-4090", unfold=False)
    from tests.browser.many_rows import sheets

    assert sheets(page.pdf()) == 1
    page = open_page("models/acme/Alpha-7B-Instruct/?gpu=rtx-4090", unfold=False)
    assert sheets(page.pdf()) <= 2
    page.emulate_media(media="print")
    assert page.locator("p.answer").is_visible() and page.locator("[data-cards] tr").nth(1).is_visible()


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
