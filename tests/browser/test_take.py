"""Take it with you: every table is saved as it is shown, and its address opens it again."""

from __future__ import annotations

import csv
import io

import pytest
from playwright.sync_api import Page, expect

from tests.render.tiny_models import HOSTILE

pytestmark = pytest.mark.browser


def saved(page: Page, name: str) -> list[list[str]]:
    """The rows of the file that the button of a table gives."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"CSV: {name}", exact=True).click()
    assert download.value.suggested_filename.endswith(".csv")
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        return list(csv.reader(io.StringIO(file.read())))


def test_a_filtered_table_is_saved_with_the_rows_that_are_left(open_page):
    page = open_page("gpus/rtx-4090/")
    whole = saved(page, "Models on this card")
    table = page.locator("#fits-table")
    assert whole[0][:2] == ["Model", "Size"]
    assert len(whole) - 1 == table.locator("tbody tr").count() > 1
    page.get_by_label("Filter").fill("alpha")
    left = saved(page, "Models on this card")
    shown = table.locator("tbody tr:not([hidden]) th").all_inner_texts()
    assert [row[0] for row in left[1:]] == shown and 0 < len(shown) < len(whole) - 1
    assert {len(row) for row in left} == {len(whole[0])}


def test_a_table_of_a_model_is_saved_as_it_was_chosen(open_page):
    page = open_page("models/acme/Alpha-7B-Instruct/?gpu=h100-sxm&context=2048")
    rows = saved(page, "Formats by GPU, inference")
    table = page.locator('[data-matrix="inference"]')
    cells = table.locator("tbody tr").first.locator("td").all_inner_texts()
    assert [text.replace("\xa0", " ") for text in cells] == rows[1][1:]
    assert len(rows) - 1 == table.locator("tbody tr").count()
    assert any(head.startswith("H100 SXM") for head in rows[0])


def test_names_with_commas_and_quotes_stay_in_their_cell(open_page):
    page = open_page("gpus/rtx-4090/")
    names = [row[0] for row in saved(page, "Models on this card")[1:]]
    assert names == page.locator("#fits-table tbody th").all_inner_texts()
    assert HOSTILE  # the tables hold such a name


def test_the_matrix_gives_every_model_and_card_that_it_lists_and_not_only_what_is_in_sight(open_page):
    page = open_page("matrix/?find=alpha&cards=all")
    rows = saved(page, "Models by GPU")
    assert len(rows) - 1 == int(page.locator("#matrix table").get_attribute("aria-rowcount")) - 1 > 0
    assert len(rows[0]) == int(page.locator("#matrix table").get_attribute("aria-colcount"))
    assert all("alpha" in row[0].lower() for row in rows[1:])
    assert rows[1][2] == page.locator("#matrix tbody tr:not([hidden]) td.n").nth(1).inner_text()


@pytest.mark.full
def test_the_link_of_a_table_opens_what_was_chosen_at_its_place(open_page, site_url):
    page = open_page("models/acme/Alpha-7B-Instruct/?gpu=h100-sxm")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="Copy link: What each card does with it").click()
    copied = page.evaluate("window.copied")
    assert copied == f"{site_url}models/acme/Alpha-7B-Instruct/?gpu=h100-sxm#cards"
    expect(open_page(copied.removeprefix(site_url)).locator("tr.mine th")).to_contain_text("H100 SXM")


@pytest.mark.full
def test_every_kind_of_table_has_its_buttons_and_none_moves_the_page(open_page):
    for path in ("accuracy/", "gpus/", "gpus/rtx-4090/", "models/acme/Alpha-7B-Instruct/", "compare/?gpus=rtx-4090"):
        page = open_page(path)
        tables = page.locator(".md-content table:is(.mx, .bd)").count()
        assert tables and page.locator("p.take").count() == tables, path
        page.emulate_media(media="print")
        assert not page.locator("p.take").first.is_visible()
        page.emulate_media(media="screen")
