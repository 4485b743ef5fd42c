"""Which card for this: every card that holds a model as it is to be used, by price, speed, room and power."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
GIB = 2**30
WEIGHTS, TOKEN = int(7e9 * 4.85 / 8), 32 * 2048 * 2
ROWS = "#which tbody tr"


@pytest.fixture(params=[pytest.param(1440, marks=pytest.mark.full), 390])
def page(open_page, request):
    width = request.param
    return open_page("which-card/?model=acme/Alpha-7B-Instruct", width=width, height=900 if width > 400 else 844)


def test_the_cheapest_card_comes_first_with_its_numbers(page):
    row = page.locator(ROWS).first
    free, bound = 11.6 - (WEIGHTS + 8192 * TOKEN) / GIB, 1008e9 / (WEIGHTS + 8192 * TOKEN)
    assert row.locator("th").inner_text() == "RTX 3060 12GB"
    assert row.locator("td").all_inner_texts() == ["329", f"{free:.1f}", f"≤ {bound:.0f}", "450", "2022"]
    said = page.locator("#which .answer").inner_text()
    assert "takes 5.0 GiB" in said and "6 of 6 cards hold it alone" in said
    assert "Cheapest at list price: RTX 3060 12GB (329 USD" in said
    # what has no list price is not the cheapest
    assert page.locator(ROWS).last.locator("td").first.inner_text() == "–"


def test_more_users_need_more_or_larger_cards(page, site_url, open_page):
    page.get_by_label("Users at once").fill("8")
    page.get_by_label("Context, tokens").fill("16384")
    # 3.9 GiB of weights and 8 × 2 of cache: two cards of 12, one of 24
    expect(page.locator(ROWS).first).to_contain_text("2 × RTX 3060 12GB")
    assert page.locator(ROWS).first.locator("td").first.inner_text() == "658"
    expect(page.locator("#which .answer")).to_contain_text("5 of 6 cards hold it alone")
    expect(page.locator("#which .answer")).to_contain_text("alone RTX 4090 (1,599 USD")
    page.get_by_label("Cards together").select_option("1")
    expect(page.locator(ROWS).first).to_contain_text("RTX 4090")
    page.wait_for_url("**users=8**up_to=1**")
    again = open_page(page.url.removeprefix(site_url))
    expect(again.locator(ROWS).first).to_contain_text("RTX 4090")


def test_cards_are_ordered_and_kept_apart(page):
    page.get_by_label("Order").select_option("room")
    expect(page.locator(ROWS).first).to_contain_text("MI300X")
    page.locator("select[name=kind]").select_option("consumer")
    expect(page.locator(ROWS)).to_have_count(2)


@pytest.mark.full
def test_a_card_that_does_not_run_the_format_is_left_out(page):
    page.locator("select[name=dtype]").select_option("awq-int4")
    expect(page.locator("#which .answer")).to_contain_text("awq-int4")
    page.locator("select[name=dtype]").select_option("nf4")  # nobody says that it runs on AMD
    expect(page.locator(ROWS)).to_have_count(5)
    assert "MI300X" not in page.locator("#which tbody").inner_text()


@pytest.mark.full
def test_another_model_is_typed(page):
    page.get_by_label("Model", exact=True).fill("acme/CamelCoder.2-405B")
    expect(page.locator("#which .answer")).to_contain_text("No card holds it alone")
    page.get_by_label("Model", exact=True).fill("acme/No-Config")
    expect(page.locator("#which .answer")).to_contain_text("Unknown")
    assert not page.locator("#which table").is_visible()


@pytest.mark.full
def test_the_table_is_taken_along(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("gpu_id,cards,list_price_usd,free_bytes") and lines[1].startswith("rtx-3060-12gb,1,329,")
    assert len(lines) == page.locator(ROWS).count() + 1


@pytest.mark.full
def test_a_wrong_address_says_which_and_what_was_taken(open_page):
    page = open_page("which-card/?model=acme/Alpha-7B-Instruct&context=abc&users=0&sort=beauty&colour=red&dtype=int3")
    told = page.locator('#which [data-part="note"]').inner_text()
    for part in (
        "context=abc",
        "users=0",
        "sort=beauty",
        "colour=red",
        "dtype=int3",
        "What the fields show is used instead",
    ):
        assert part in told
    assert page.get_by_label("Context, tokens").input_value() == "8192" and page.locator(ROWS).count() == 6


@pytest.mark.full
def test_the_plot_has_a_point_for_each_price(open_page):
    page = open_page("which-card/?model=acme/Alpha-7B-Instruct")
    points = page.locator("#which figure circle")
    expect(points).to_have_count(3)
    assert points.first.locator("title").text_content().startswith("RTX 3060 12GB: 329 USD, 6.")
    page.get_by_label("Model", exact=True).fill("acme/Beta-MoE-30B-A3B")
    page.get_by_label("Cards together").select_option("1")
    expect(page.locator("#which figure")).to_be_hidden()  # two points are no plot


def test_what_a_desktop_takes_is_typed_and_taken_off_every_card(page, site_url):
    page.locator("#which select[name=system]").select_option("desktop")
    said = page.locator("#which .answer")
    expect(said).to_contain_text("What a desktop takes of a card is not known here: type it")
    assert not page.locator(ROWS).first.is_visible()
    page.get_by_label("The desktop takes").fill("6.7")
    expect(said).to_contain_text("5 of 6 cards hold it alone")  # 11.6 less 6.7 holds no 5.0 GiB
    expect(page.locator(ROWS).first).to_contain_text("2 × RTX 3060 12GB")
    page.goto(page.url)
    page.wait_for_selector('html[data-almanac="ready"]')
    expect(said).to_contain_text("5 of 6 cards hold it alone")
    page.locator("#which select[name=system]").select_option("linux")
    expect(said).to_contain_text("6 of 6 cards hold it alone")
    assert "used" not in page.url and not page.get_by_label("The desktop takes").is_visible()
    page.goto(f"{site_url}which-card/?system=desktop&used=-3")
    expect(page.locator("#which [data-part=note]")).to_contain_text("used=-3")
