"""The table of thousands of rows: it goes where one scrolls, and stays there; on paper it is a table of its first rows."""

import pytest
from playwright.sync_api import expect

from tests.browser.many_rows import many_models, sheets
from tests.browser.swipe import swipe

pytestmark = pytest.mark.browser
TOP = "document.getElementById('matrix').scrollTop"
ROW = "#matrix tbody:not([aria-hidden]) tr:not([hidden])"


@pytest.fixture
def long_page(open_page, site_url):
    def open_(query="", **options):
        page = open_page("about/", **options)
        many_models(page)
        page.goto(f"{site_url}matrix/{query}")
        page.wait_for_selector('html[data-almanac="ready"]')
        page.wait_for_timeout(200)
        return page

    return open_


def stands_still(page) -> float:
    """Where the table is once it has been left alone, and two seconds later."""
    page.wait_for_timeout(700)  # a smooth scroll takes its time
    there = page.evaluate(TOP)
    page.wait_for_timeout(2000)
    assert page.evaluate(TOP) == there
    return there


def test_the_wheel_turns_the_table_as_far_as_it_is_turned(long_page):
    page = long_page()
    assert page.evaluate("document.getElementById('matrix').scrollHeight") > 50_000
    page.locator("#matrix").hover()
    for _ in range(12):
        page.mouse.wheel(0, 120)
        page.wait_for_timeout(30)
    assert stands_still(page) == 1440
    shown = page.locator(ROW).first.get_attribute("aria-rowindex")
    assert 20 < int(shown) < 80  # some fifty rows down


@pytest.mark.full
@pytest.mark.parametrize("key", ["PageDown", "Space"])
def test_a_key_turns_one_page(long_page, key):
    page = long_page()
    page.locator("#matrix").focus()
    page.keyboard.press(key)
    height = page.locator("#matrix").evaluate("box => box.clientHeight")
    assert 0.5 * height < stands_still(page) <= height


@pytest.mark.full
def test_arrows_go_from_cell_to_cell_as_far_as_there_are_rows(long_page):
    page = long_page()
    page.locator(f"{ROW} th a").first.focus()
    here = "(() => { const c = document.activeElement.closest('th, td'); return [+c.parentElement.ariaRowIndex, c.cellIndex]; })()"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(here) == [2, 2]
    for _ in range(60):  # far beyond what was drawn
        page.keyboard.press("ArrowDown")
    assert page.evaluate(here) == [62, 2]
    box = page.locator("#matrix").bounding_box()
    cell = page.evaluate("(({ top, bottom }) => [top, bottom])(document.activeElement.getBoundingClientRect())")
    assert box["y"] < cell[0] and cell[1] <= box["y"] + box["height"] + 1
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(here) == [61, 0] and page.evaluate("document.activeElement.matches('a')")


@pytest.mark.full
def test_a_swipe_moves_the_table_under_the_finger(long_page):
    page = long_page(width=390, height=844, has_touch=True, is_mobile=True)
    page.locator("#matrix").scroll_into_view_if_needed()
    box = page.locator("#matrix").bounding_box()
    far, swipes = min(300, box["height"] - 80), 4
    for _ in range(swipes):
        swipe(page, box["x"] + 100, box["y"] + box["height"] - 40, far)
    assert 0.6 * far * swipes < stands_still(page) <= far * swipes


@pytest.mark.full
def test_on_paper_the_first_rows_stand_on_the_first_sheet(long_page):
    page = long_page()
    page.locator("#matrix").hover()
    page.mouse.wheel(0, 3000)
    page.wait_for_timeout(600)
    before = page.evaluate(TOP)
    assert sheets(page.pdf(prefer_css_page_size=True)) <= 2 and sheets(page.pdf()) <= 2
    assert page.evaluate(TOP) == before  # the reader is where they were
    page.emulate_media(media="print")
    expect(page.locator(ROW)).to_have_count(40)
    assert page.locator(ROW).first.get_attribute("aria-rowindex") == "2"
    expect(page.locator("#on-paper")).to_have_text(". On paper: the first 40 of 4,200 models")
    box = page.locator("#matrix")
    assert box.evaluate("e => e.scrollHeight <= e.clientHeight + 1 && getComputedStyle(e).overflow") == "visible"
    assert page.locator("#matrix table").evaluate("e => getComputedStyle(e).breakInside") == "auto"
    page.emulate_media(media="screen")
    expect(page.locator("#on-paper")).to_be_empty()


def test_of_many_cards_paper_has_the_first(open_page):
    page = open_page("matrix/?cards=all")
    page.emulate_media(media="print")
    assert not page.locator("#on-paper").inner_text()  # all six fit
    assert page.locator("#matrix thead th.g").count() == 6
