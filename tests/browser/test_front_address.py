"""The first screen by its address: every choice comes back, what is wrong is told, old addresses lead on."""

import pytest
from playwright.sync_api import expect

from tests.browser.first_screen import GPU, answer, names

pytestmark = pytest.mark.browser


def test_every_choice_is_in_the_address_and_comes_back(open_page, site_url):
    page = open_page()
    for field, value in (("gpu", "l40s"), ("want", "lora"), ("context", "512"), ("count", "2")):
        page.locator(f"#window select[name={field}]").select_option(value)
        page.wait_for_url(f"**{field}={value}**")
    page.get_by_label("Order").select_option("size")
    page.get_by_label("Part of a model’s name").fill("7b")
    page.wait_for_url("**find=7b")
    said, rows = answer(page), names(page)
    again = open_page(page.url.removeprefix(site_url))
    assert answer(again) == said and names(again) == rows == ["Alpha-7B-Instruct"]


@pytest.mark.full
@pytest.mark.parametrize(
    "asked",
    ["gpu=rtx-9999", "count=3", "count=abc", "want=fly", "context=7000", "context=-1", "context=1e999", "sort=zz", "zz=1", "__proto__=1", "system=os2", "free=lots"],
)  # fmt: skip
def test_a_wrong_value_is_told_and_the_usual_is_taken(open_page, asked):
    page = open_page(f"?{asked}")
    told = page.locator("#window .told")
    assert f"{asked}." in told.inner_text() and "Taken instead" in told.inner_text()
    assert ("other numbers are the calculator’s" in told.inner_text()) == asked.startswith("count=")
    assert answer(page) == answer(open_page())
    page.locator(GPU).select_option("l40s")
    expect(told).to_be_empty()
    assert asked not in page.url


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "field", "value"),
    [("gpu_id=L40S", "gpu", "l40s"), ("context_tokens=32k", "context", "32768"), ("gpu_count=2", "count", "2")],
)
def test_the_address_may_say_it_as_sql_does(open_page, asked, field, value):
    page = open_page(f"?{asked}&utm_source=letter")
    assert page.locator(f"#window select[name={field}]").input_value() == value
    assert not page.locator("#window .told").is_visible()


@pytest.mark.full
@pytest.mark.parametrize("asked", ["phase=lora&gpu=l40s", "dtype=bf16", "cards=all", "sort=need+up", "task=zz"])
def test_addresses_of_the_old_front_page_open_the_matrix(open_page, site_url, asked):
    page = open_page("about/")
    page.goto(f"{site_url}?{asked}")
    page.wait_for_url(f"{site_url}matrix/?{asked.replace('task=zz', '')}*")
    page.wait_for_selector("#matrix table.virtual")
