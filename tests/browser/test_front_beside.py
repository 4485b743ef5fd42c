"""RAM on the first screen: mixtures of experts that a card holds with a part of them there, as the macro has it."""

from __future__ import annotations

import shutil

import duckdb
import pytest
from playwright.sync_api import expect

from pipeline.book.facts import TABLES
from tests.render.tiny_models import MIXTURE

pytestmark = pytest.mark.browser
RAM = "#window select[name=ram]"
ROWS = "#with-ram tr:has(td)"
GIBS = (12, 16, 24, 32, 48)
WAYS = """async (gibs) => {
    const of = (file) => document.querySelector('script[src*="almanac/page.js"]').src.replace("page.js", file);
    const [a, { Window }, { Beside }] = [await import(of("almanac.js")), await import(of("window.js")), await import(of("beside.js"))];
    const world = await a.world(), window = new Window(world, await a.load("data/window/chat.json"));
    const beside = new Beside(window, await a.load("data/window/chat-ram.json")), found = [];
    for (const gpu of world.gpus.filter((g) => !a.isComputer(g))) for (const gib of gibs) {
        const { misses } = window.answer({ wish: window.data.wishes[0], gpu, count: 1, context: 8192, sort: "current" });
        for (const { work, way } of beside.rows(misses, gpu, 8192, gib * 2 ** 30))
            found.push([gpu.id, gib, window.data.id[work], window.data.columns[way.column][1], way.experts, way.host, way.line.totals[way.line.at.indexOf(8192)]]);
    }
    return found;
}"""
# of each card and so much RAM the best format, where none of the formats fits whole
ASKED = """
CREATE TEMP TABLE said AS
SELECT gpu.gpu_id, total.model_id, total.dtype_id, total.total_bytes, total.error_band, gpu.capacity_bytes AS bytes,
    takes(total.total_bytes, total.error_band, gpu.capacity_bytes) AS is_whole
FROM footprint AS total JOIN gpu ON gpu.segment <> 'unified'
WHERE total.phase_id = 'inference' AND total.dtype_id IN ('gguf-q8_0', 'gguf-q6_k', 'gguf-q5_k_m', 'gguf-q4_k_m', 'gguf-q3_k_m')
    AND total.context_tokens = 8192 AND total.sequences = 1 AND total.gpu_count = 1 AND total.total_bytes IS NOT NULL;
"""
BEST = """
SELECT gpu_id, {gib} AS gib, model_id, max_by(dtype_id, total_bytes), max_by(cpu_expert_layers, total_bytes), max_by(host_bytes, total_bytes),
    max_by(gpu_bytes, total_bytes)
FROM ways_beside('said', {gib} * 1024 ** 3) AS way
WHERE NOT EXISTS (FROM said WHERE said.gpu_id = way.gpu_id AND said.model_id = way.model_id AND said.is_whole)
GROUP BY gpu_id, model_id
"""


def test_what_is_listed_is_what_the_macro_says_of_every_card(open_page, tiny, tmp_path):
    file = shutil.copy(tiny["folder"] / "almanac.duckdb", tmp_path)
    text = (TABLES / "sql" / "ask" / "what_fits_beside.sql").read_text(encoding="utf-8")
    with duckdb.connect(str(file)) as book:
        (macro,) = (s for s in book.extract_statements(text) if "MACRO ways_beside(" in s.query)
        book.execute(macro.query)
        book.execute(ASKED)
        wanted = [row for gib in GIBS for row in book.execute(BEST.format(gib=gib)).fetchall()]
    found = open_page().evaluate(WAYS, list(GIBS))
    assert sorted(map(tuple, found)) == sorted(wanted)
    assert len({row[0] for row in wanted}) < len({row[:2] for row in wanted}) and len({row[3] for row in wanted}) > 1


def test_ram_is_chosen_and_mixtures_stand_below_what_fits(open_page, site_url):
    asked = []
    page = open_page()
    page.locator("#window select[name=gpu]").select_option("rtx-3060-12gb")
    page.on("request", lambda request: asked.append(request.url))
    expect(page.locator(RAM)).to_have_value("")
    assert page.locator("#with-ram").count() == 0
    page.locator(RAM).select_option("64")
    row = page.locator(ROWS)
    expect(row).to_have_count(1)
    assert any("chat-ram.json" in url for url in asked)
    name = MIXTURE.split("/")[1]
    expect(row).to_contain_text(name)
    expect(row).to_contain_text("of 64.0 GiB of RAM with the experts of")
    expect(row.locator("td.rec")).to_contain_text("Q8_0")
    expect(page.locator("#window .answer")).to_contain_text(f"With 64 GB of RAM also: {name} in Q8_0.")
    expect(page.locator("#window .misses")).not_to_contain_text(name)
    assert page.url.endswith("?gpu=rtx-3060-12gb&ram=64")
    link = row.get_by_role("link", name="Calculate it")
    assert "&ram=64&" in link.get_attribute("href") and "dtype_id=gguf-q8_0" in link.get_attribute("href")
    page.locator("#window select[name=want]").select_option("embed")
    expect(page.locator("#with-ram")).to_have_count(0)
    page.locator("#window select[name=want]").select_option("chat")
    page.get_by_label("Part of a model’s name").fill("beta")  # of which nothing fits whole
    expect(page.locator("#window .answer")).to_contain_text(f"With 64 GB of RAM also: {name}")
    page.goto(site_url)  # it is remembered, as the card is
    expect(page.locator(RAM)).to_have_value("64")
    page.locator("#window select[name=count]").select_option(
        "2"
    )  # of several cards it is not counted, and that is said
    expect(page.locator(RAM)).to_be_hidden()
    expect(page.locator("#window .answer")).to_contain_text(
        "RAM is counted beside one card: the 64 GB are left out here."
    )
    expect(page.locator("#with-ram")).to_have_count(0)


def test_ram_is_not_asked_of_what_llama_cpp_does_not_share(open_page):
    for asked in ("?gpu=m4-max-128gb&ram=64", "?gpu=rtx-3060-12gb&want=lora&ram=64"):
        page = open_page(asked)
        expect(page.locator(RAM)).to_be_hidden()
        assert page.locator("#with-ram").count() == 0
    assert "ram=none" in open_page("?gpu=rtx-3060-12gb&ram=none").locator("#window .told").inner_text()


def test_ram_that_is_written_otherwise_is_the_same_choice(open_page):
    page = open_page("?gpu=rtx-3060-12gb&ram=64.0")
    expect(page.locator(RAM)).to_have_value("64")
    expect(page.locator("#window .answer")).to_contain_text("With 64 GB of RAM also:")
