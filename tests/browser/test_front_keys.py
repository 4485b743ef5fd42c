"""The first screen by the keyboard."""

import pytest

from tests.browser.first_screen import ROW, answer

pytestmark = pytest.mark.browser


def test_the_first_answer_is_within_five_tabs(open_page):
    """The four words of the sentence, then what it says; before them the skip link and the frame, which stand on every page."""
    page = open_page("?gpu=rtx-4090")
    page.locator("#window select[name=count]").focus()
    seen = []
    for _ in range(4):
        seen.append(page.evaluate("document.activeElement.name"))
        page.keyboard.press("Tab")
    assert seen == ["count", "gpu", "want", "context"]


@pytest.mark.full
def test_a_keyboard_has_the_first_answer_within_five_tabs(open_page):
    """From the top of the page: the skip link, then the sentence; what is typed in a list chooses the card."""
    page = open_page()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "gpu":
            break
    page.keyboard.type("RTX 4090")
    page.keyboard.press("Enter")
    page.wait_for_url("**gpu=rtx-4090*")
    assert answer(page).startswith("On RTX 4090")


@pytest.mark.full
def test_arrows_go_from_cell_to_cell(open_page):
    page = open_page("?gpu=rtx-4090")
    page.wait_for_selector("#window[data-whole]")
    page.locator(f"{ROW} th > a").first.focus()
    here = "document.activeElement.closest('th, td').textContent"
    for key, text in (("ArrowRight", "Q8_0"), ("ArrowRight", "all 32k"), ("ArrowDown", "–"), ("ArrowLeft", "Q5_K_M")):
        page.keyboard.press(key)
        assert text in page.evaluate(here), key
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "Beta-MoE-30B-A3B"
    page.keyboard.press("ArrowDown")
    assert "CamelCoder" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowDown")  # there is no further row
    assert "CamelCoder" in page.evaluate("document.activeElement.textContent")
