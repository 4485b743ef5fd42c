"""Whose card it is: guessed by what the browser draws with, and refused or chosen by a person."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.first_screen import answer

pytestmark = pytest.mark.browser

GUESS = """(text) => {
    for (const kind of [WebGLRenderingContext, WebGL2RenderingContext]) {
        kind.prototype.getExtension = () => ({ UNMASKED_RENDERER_WEBGL: 37446 });
        kind.prototype.getParameter = () => text;
    }
    HTMLCanvasElement.prototype.getContext = () => new Proxy({}, { get: (_, name) => name === "getExtension" ? () => ({ UNMASKED_RENDERER_WEBGL: 37446 }) : () => text });
}"""


@pytest.fixture
def drawn_with(open_page, site_url):
    def open_(text, query=""):
        page = open_page("about/")
        page.add_init_script(f"({GUESS})({json.dumps(text)})")
        page.goto(site_url + query)
        page.wait_for_selector('html[data-almanac="ready"]')
        return page

    return open_


NAMED = """async ([text, cards]) => (await import(document.querySelector('script[src*="almanac/page.js"]').src.replace("page.js", "guess.js"))).named(text, cards).map((c) => c.id)"""
LIST = [
    ("3060", "GeForce RTX 3060 12GB", 12), ("3060-8", "GeForce RTX 3060 8GB", 8), ("3060-ti", "GeForce RTX 3060 Ti", 8),
    ("4090", "GeForce RTX 4090", 24), ("4090-l", "GeForce RTX 4090 Laptop GPU", 16), ("m2-pro", "Apple M2 Pro 32GB", 32), ("m2", "Apple M2 24GB", 24),
    ("7900", "Radeon RX 7900 XTX", 24), ("a770", "Arc A770 16GB", 16), ("a4000", "RTX A4000", 16),
]  # fmt: skip


@pytest.mark.full
def test_a_mac_is_chosen_by_its_chip(open_page):
    page = open_page()
    page.get_by_role("button", name="Mac").click()
    page.locator("[data-part=macs] .chip").first.click()
    page.wait_for_url("**gpu=m4-max-128gb")


@pytest.mark.full
def test_what_is_known_of_the_card_itself(open_page):
    about = open_page("?gpu=rtx-3060-12gb").locator("#window .about")
    expect(about).to_contain_text("11.6 GiB for a program · 1,008 GB/s · list price 329 USD at launch, 2022-10")
    expect(open_page("?gpu=mi300x").locator("#window .about")).to_contain_text("list price not known")


def test_the_card_is_guessed_in_the_page_and_may_be_refused(drawn_with):
    page = drawn_with("ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)")
    assert answer(page).startswith("On RTX 4090") and "told to nobody" in page.locator("#window .guess").inner_text()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Not yours?").click()
    expect(page.locator("#window .answer")).to_contain_text("For example")
    assert answer(page).startswith("For example") and not page.locator("#window .guess").is_visible()
    page.reload()
    page.wait_for_selector('html[data-almanac="ready"]')
    assert answer(page).startswith("For example")
    # A file's version is a checksum, in which any digits may stand: what is told is looked for in the rest.
    told = [re.sub(r"([?&]v=)[0-9a-f]+(?=&|$)", r"\1", url) for url in asked]
    assert told and not [url for url in told if "rtx" in url.lower() or "4090" in url]
    assert page.evaluate("localStorage.getItem('almanac:gpu')") in (None, "")


@pytest.mark.full
def test_a_card_that_was_chosen_is_not_guessed_over(drawn_with):
    page = drawn_with("NVIDIA GeForce RTX 4090/PCIe/SSE2", "?gpu=l40s")
    assert answer(page).startswith("On L40S") and not page.locator("#window .guess").is_visible()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 vs_5_0 ps_5_0, D3D11)", ["3060", "3060-8"]),
        ("ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Ti Direct3D11 vs_5_0 ps_5_0)", ["3060-ti"]),
        ("NVIDIA GeForce RTX 4090 Laptop GPU/PCIe/SSE2", ["4090-l"]),
        ("NVIDIA GeForce RTX 3060 Laptop GPU/PCIe/SSE2", []),
        ("NVIDIA GeForce RTX 4090 D/PCIe/SSE2", []),
        ("ANGLE (Apple, ANGLE Metal Renderer: Apple M2 Pro, Unspecified Version)", ["m2-pro"]),
        ("ANGLE (Apple, ANGLE Metal Renderer: Apple M2 Max, Unspecified Version)", []),
        ("Apple M2", ["m2"]),
        ("ANGLE (AMD, AMD Radeon RX 7900 XTX (0x0000744C) Direct3D11 vs_5_0)", ["7900"]),
        ("Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", ["a770"]),
        ("NVIDIA RTX A4000/PCIe/SSE2", ["a4000"]),
        ("NVIDIA GeForce GTX 980, or similar", []),
        ("ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)", []),
        ("Apple GPU", []),
        ("", []),
    ],
)
def test_a_renderer_names_the_cards_that_it_may_be(open_page, text, found):
    cards = [{"id": i, "name": n, "nominal": g} for i, n, g in LIST]
    assert open_page("about/").evaluate(NAMED, [text, cards]) == found


@pytest.mark.full
def test_a_desktop_and_what_it_leaves_free_are_remembered_for_that_card(open_page):
    page = open_page()
    page.locator("select[name=gpu]").select_option("rtx-3060-12gb")
    page.locator("select[name=system]").select_option("desktop")
    page.locator("input[name=free]").fill("9.5")
    expect(page.locator("[data-part=answer]")).to_contain_text("with 9.5 GiB free")
    page.goto(page.url.partition("?")[0])
    page.wait_for_selector('html[data-almanac="ready"]')
    expect(page.locator("[data-part=answer]")).to_contain_text("On RTX 3060 12GB with 9.5 GiB free")
    page.locator("select[name=gpu]").select_option("rtx-4090")  # what was typed says nothing of another card
    expect(page.locator("input[name=free]")).to_have_value("")
    page.goto(page.url.partition("?")[0] + "calculator/?gpu=rtx-3060-12gb")
    page.wait_for_selector('html[data-almanac="ready"]')
    expect(page.locator("#calc select[name=system]")).to_have_value("desktop")
    expect(page.locator("#calc input[name=free]")).to_have_value("9.5")
    # an address that says the system is that of who sent it
    page.goto(page.url.partition("calculator/")[0] + "?gpu=rtx-3060-12gb&system=linux")
    page.wait_for_selector('html[data-almanac="ready"]')
    expect(page.locator("[data-part=answer]")).not_to_contain_text("free")
