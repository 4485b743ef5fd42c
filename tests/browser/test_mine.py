"""What a model's page says of the reader's own card: how fast at most, under which system, and what else where it does not fit."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
MODEL = "models/acme/Alpha-7B-Instruct/"
LARGE = "models/acme/CamelCoder.2-405B/"


def test_how_fast_one_s_card_is_at_most_is_its_bandwidth_by_what_a_token_reads(open_page, tiny):
    page = open_page(f"{MODEL}?gpu=rtx-3060-12gb")
    said = page.locator("[data-mine] li", has_text="tokens a second")
    expect(said).to_contain_text("Q8_0 writes at most")
    card = next(g for g in tiny["gpu"] if g["gpu_id"] == "rtx-3060-12gb")
    most = card["memory_bandwidth_gb_s"] * 1e9 / (7e9 * 8.5 / 8 + 131_072 * 8192)
    assert int(re.search(r"at most ([\d,]+)", said.inner_text())[1].replace(",", "")) == round(most)
    expect(said).to_contain_text("not a measurement")
    assert open_page(MODEL).locator("[data-mine] li").count() == 0  # nobody said which card


@pytest.mark.full
def test_windows_leaves_less_of_a_card_and_changes_every_verdict(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-3060-12gb")
    mine = page.locator("[data-cards] tr.mine td")
    expect(mine.first).to_have_text("Q8_0")
    longest = mine.nth(1).inner_text()
    needs = page.locator("[data-matrix=inference] th.mine small")
    before = needs.inner_text()
    page.locator("[data-controls=mine] select[name=system]").select_option("windows")
    page.wait_for_url("**system=windows**")
    expect(mine.nth(1)).not_to_have_text(longest)
    expect(page.locator("[data-mine]")).to_contain_text("about 81 %")
    assert needs.inner_text() != before
    again = open_page(f"{MODEL}?gpu=rtx-3060-12gb&system=windows")
    assert again.locator("[data-cards] tr.mine td").nth(1).inner_text() == mine.nth(1).inner_text()
    assert again.locator("[data-controls=mine] select[name=system]").input_value() == "windows"
    server = open_page(f"{MODEL}?gpu=h100-sxm&system=windows").locator("[data-cards] tr.mine td")
    assert (
        server.all_inner_texts()
        == open_page(f"{MODEL}?gpu=h100-sxm").locator("[data-cards] tr.mine td").all_inner_texts()
    )
    wrong = open_page(f"{MODEL}?system=desktop")  # nobody knows what one leaves
    expect(wrong.locator(".told")).to_contain_text("system=desktop")


def test_where_no_published_number_of_cards_holds_it_the_page_says_how_many_do_and_which_sibling_fits(open_page):
    page = open_page(f"{LARGE}?gpu=rtx-3060-12gb")
    notes = page.locator("[data-mine]")
    many = notes.locator("li", has_text="× RTX 3060 12GB")
    expect(many).to_contain_text(re.compile(r"hold it in Q2_K at 8k tokens, and up to [\d,]+\."))
    count = int(many.locator("b").inner_text().split(" ")[0])
    assert 8 < count <= 64
    expect(page.locator("[data-cards] tr.mine td").first).to_have_text(re.compile(rf"^{count} cards, in Q2_K: \d+k$"))
    # the same card says the same while another is the reader's own
    other = page.locator("[data-cards] tr", has=page.locator("[data-gpu=rtx-3060-12gb]")).locator("td").first
    page.locator("[data-controls=mine] select[name=gpu]").select_option("rtx-4090")
    expect(other).to_have_text(f"{count} cards, in Q2_K")
    page.locator("[data-controls=mine] select[name=gpu]").select_option("rtx-3060-12gb")
    sibling = notes.locator("li", has_text="A smaller sibling fits")
    expect(sibling).to_contain_text("Alpha-7B-Instruct (7B) in Q8_0")
    sibling.locator("a").click()
    page.wait_for_selector("[data-cards] tr.mine td.v-fits")  # the card goes along


@pytest.mark.full
def test_the_way_to_the_cards_that_hold_it_asks_the_same(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-3060-12gb&system=windows")
    page.get_by_role("link", name="Which card for this?").click()
    page.wait_for_selector('html[data-almanac="ready"]')
    assert "model=acme%2FAlpha-7B-Instruct" in page.url and "system=windows" in page.url
    expect(page.locator("#which")).to_contain_text("Alpha-7B-Instruct")


@pytest.mark.full
def test_a_training_that_no_published_number_of_cards_holds_says_how_many_do(open_page):
    page = open_page(f"{LARGE}?gpu=h100-sxm", unfold=False)
    cells = page.locator("[data-matrix=training] tbody td:nth-child(3)")
    no = cells.locator("xpath=self::*[contains(@class, 'v-no')]")
    before = no.count()
    page.locator("summary", has_text="Training by all cards").click()
    told = page.locator("[data-matrix=training] tbody td:nth-child(3)[title*='shared by ZeRO-3']")
    expect(told.first).to_have_text(re.compile(r"^\d+ × \d+\s%$"))
    assert before and no.count() < before
    # of a card that is nobody's the published numbers stand
    assert page.locator("[data-matrix=training] tbody td:not(:nth-child(3))[title*='shared by ZeRO-3']").count() == 0


def test_the_system_is_remembered_as_the_card_is(open_page, site_url):
    """A card gives less under Windows: who said so once is answered so on every page."""
    page = open_page("?gpu=rtx-3060-12gb")
    page.locator("#window select[name=system]").select_option("windows")
    page.wait_for_url("**system=windows**")
    for path, field in (
        ("", "#window select[name=system]"),
        (MODEL, "[data-controls=mine] select[name=system]"),
        ("matrix/", "select[name=system]"),
        ("calculator/", "#calc select[name=system]"),
        ("which-card/", "select[name=system]"),
        ("compare/?gpus=rtx-3060-12gb", "select[name=system]"),
    ):
        page.goto(f"{site_url}{path}")
        expect(page.locator(field).first).to_have_value("windows")
    page.goto(f"{site_url}{MODEL}?system=linux")  # what the address says is so
    expect(page.locator("[data-controls=mine] select[name=system]")).to_have_value("linux")


def test_a_system_that_an_address_names_is_kept_where_another_is_remembered(open_page, site_url):
    page = open_page("?gpu=rtx-3060-12gb&system=windows")
    page.locator("#window select[name=system]").select_option("linux")
    page.locator("#window select[name=system]").select_option("windows")
    page.goto(f"{site_url}?gpu=rtx-3060-12gb&system=linux")
    expect(page.locator("#window .answer")).not_to_contain_text("Windows")
    page.reload()
    expect(page.locator("#window .answer")).not_to_contain_text("Windows")
    expect(page.locator("#window select[name=system]")).to_have_value("linux")
    page.locator("#window .list tbody a").first.click()
    expect(page.locator("[data-controls=mine] select[name=system]")).to_have_value("linux")


def test_a_cards_page_says_first_what_it_leaves_under_windows_to_who_is_there(open_page, site_url):
    page = open_page("gpus/rtx-3060-12gb/")
    assert page.locator("#systems").evaluate("e => e.className") == "fine"
    page.evaluate("localStorage.setItem('almanac:system', 'windows')")
    page.reload()
    expect(page.locator("#systems.told + p.answer")).to_be_visible()


def test_a_mac_is_under_no_system_of_a_pc(open_page):
    page = open_page("?gpu=m4-max-128gb")
    expect(page.locator("#window .answer")).to_contain_text("M4 Max 128GB")
    assert not page.locator("#window select[name=system]").is_visible()
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=m4-max-128gb")
    expect(page.locator("#calc .answer")).to_contain_text("M4 Max")
    assert not page.locator("#calc select[name=system]").is_visible()
    page = open_page(f"{MODEL}?gpu=m4-max-128gb")
    expect(page.locator("[data-controls=mine] label", has=page.locator("select[name=system]"))).to_contain_text(
        "Other cards under"
    )


def test_how_far_a_model_goes_that_does_not_say_how_far_it_reads_is_marked(open_page):
    page = open_page(f"{MODEL}?gpu=rtx-4090")
    longest = page.locator("table.by tr.mine td").nth(1)
    expect(longest).to_contain_text("k")
    assert "?" not in longest.inner_text()
    page.evaluate("document.querySelector('article.model').dataset.limit = ''")
    page.locator("[data-controls=mine] select[name=gpu]").select_option("rtx-3060-12gb")
    expect(longest).to_contain_text("?")
    assert "made to read" in longest.get_attribute("title")
