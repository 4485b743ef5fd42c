"""The first screen as people use it: a card and a wish, the answer in sight, and a way on from every no; in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.first_screen import GPU, MISS, ROW, answer, cells, names

pytestmark = pytest.mark.browser


def test_before_anything_is_touched_there_is_an_answer_and_a_choice_of_sizes(open_page):
    page = open_page()
    assert "For example on RTX 3060 12GB: 1 model" in answer(page)
    assert names(page) == ["Alpha-7B-Instruct"]
    assert page.locator("[data-part=chips] > .chip").all_inner_texts() == ["12 GB", "24 GB", "48 GB", "80 GB", "Mac"]
    page.get_by_role("link", name="24 GB").click()
    page.wait_for_url("**gpu=rtx-4090")
    assert answer(page).startswith("On RTX 4090: 2 models") and not page.locator("#window .chips").first.is_visible()
    assert page.locator(GPU).input_value() == "rtx-4090" and page.evaluate("document.activeElement.name") == "gpu"


def test_cells_hold_the_longest_context_of_each_format_and_the_best_is_marked(open_page):
    page = open_page("?gpu=rtx-3060-12gb")
    assert cells(page, "Alpha") == ["16k", "23k", "26k", "29k", "all 32k"]
    row = page.locator(ROW, has_text="Alpha")
    assert (
        row.locator("td.cell.best").inner_text() == "16k" and "Q8_0 9.3 of 11.6" in row.locator("td.rec").inner_text()
    )
    page.locator("#window select[name=context]").select_option("32768")
    expect(row.locator("td.cell.best")).to_have_text("all 32k", use_inner_text=True)  # (drawn after the choice)
    assert row.locator("td.cell.less").all_inner_texts() == ["16k", "23k", "26k", "29k"]
    assert page.url.endswith("?gpu=rtx-3060-12gb&context=32768")


def test_a_context_beyond_which_nobody_says_that_a_model_reads_is_marked(open_page, site_url):
    def silent(route):
        held = route.fetch().json()
        route.fulfill(json=held | {"context": [None] * len(held["context"])} if "context" in held else held)

    page = open_page()
    page.route("**/data/window/*.json*", silent)
    page.goto(f"{site_url}?gpu=rtx-3060-12gb")
    expect(page.locator(ROW, has_text="Alpha").locator("td.cell.best")).to_have_text("16k?")
    assert "made to read" in page.locator(ROW, has_text="Alpha").locator("td.cell.best").get_attribute("title")


LONGEST = """async () => {
    const of = (file) => document.querySelector('script[src*="almanac/page.js"]').src.replace("page.js", file);
    const [a, { Window }] = [await import(of("almanac.js")), await import(of("window.js"))];
    const world = await a.world(), found = [];
    for (const name of ["chat", "embed", "train"]) {
        const window = new Window(world, await a.load(`data/window/${name}.json`));
        window.data.id.forEach((id, work) => { for (const g of world.gpus) window.cells(work, g, 1).forEach((cell, c) => {
            if (cell && !cell.refusal) found.push([id, ...window.data.columns[c], g.id, cell.longest]);
        }); });
    }
    return found;
}"""


@pytest.mark.full
def test_the_longest_contexts_are_those_of_the_pages_for_every_card(open_page, tiny):
    """`limits.py` is held to the published view by tests/render/test_render_verdicts.py."""
    from pipeline.render.data import limits

    cards = {g["gpu_id"]: g["capacity_bytes"] for g in tiny["gpu"]}
    wanted = {}
    for phase in ("inference", "lora", "qlora", "full-finetune"):
        points = limits.points(tiny["folder"], [phase])
        if phase != "inference":
            points = points.filter(optimizer_id="adamw", checkpointing="full")
        for row in limits.longest(points.filter(sequences=1), cards, tiny["constant"]).to_dicts():
            for card in cards:
                wanted[row["model_id"], phase, row["dtype_id"], row["engine_id"], card] = row[card]
    found = {tuple(row[:-1]): row[-1] for row in open_page().evaluate(LONGEST)}
    assert len(found) > 150 and {key[1] for key in found} == {"inference", "lora", "qlora", "full-finetune"}
    assert found == {key: wanted[key] for key in found}


GIB, GB_S = 2**30, 1008e9  # every card of the tiny tables has this bandwidth


def test_a_row_says_how_fast_it_is_at_most_by_the_rule_of_speed_on(open_page):
    page = open_page("?gpu=rtx-4090")
    read, cache = (
        7e9 * 8.5 / 8,
        8192 * 131_072,
    )  # of one token: the weights, and what is cached, which is not what is set aside
    row = page.locator(ROW, has_text="Alpha")
    expect(row.locator("td.speed")).to_have_text(f"≤ {GB_S / (read + cache):.0f}")
    # of a mixture only the experts that a token passes, a tenth here
    fast = GB_S / (3e9 * 5.7 / 8 + cache)
    expect(page.locator(ROW, has_text="Beta").locator("td.speed")).to_have_text(f"≤ {fast:.0f}")
    page.locator("#window select[name=want]").select_option("lora")
    expect(page.locator("#window td.speed")).to_have_count(0)


@pytest.mark.full
def test_windows_and_a_desktop_change_every_verdict_as_in_the_calculator(open_page, site_url):
    page = open_page("?gpu=rtx-3060-12gb")
    page.get_by_label("System", exact=True).select_option("windows")  # 81 % of 12 GiB
    page.wait_for_url("**system=windows**")
    assert "under Windows, which leaves about 9.7 GiB" in answer(page)
    assert cells(page, "Alpha")[0] != "16k" and "of 9.7" in page.locator(ROW).first.locator("td.rec").inner_text()
    assert f"<= {int(0.81 * 12 * GIB)}" in page.locator("#as-sql code").text_content()
    again = open_page(page.url.removeprefix(site_url))
    assert answer(again) == answer(page) and cells(again, "Alpha") == cells(page, "Alpha")
    page.get_by_label("System", exact=True).select_option("desktop")
    expect(page.locator("#window .answer")).to_contain_text("What a desktop leaves of RTX 3060 12GB is not known here")
    assert not page.locator("#window table").is_visible()
    page.get_by_label("Free memory, GiB").fill("11.6")
    expect(page.locator("#window .answer")).to_contain_text("with 11.6 GiB free")
    assert cells(page, "Alpha")[0] == "16k" and page.url.endswith("system=desktop&free=11.6")
    # nobody draws on a card of servers
    assert "Windows" not in answer(open_page("?gpu=l40s&system=windows"))


@pytest.mark.full
def test_a_row_leads_to_the_cards_that_hold_it(open_page):
    page = open_page("?gpu=rtx-3060-12gb&system=windows&context=2048")
    # the system that was chosen goes along, to a model's page as well
    assert "system=windows" in page.get_by_role("link", name="Alpha-7B-Instruct", exact=True).first.get_attribute(
        "href"
    )
    page.get_by_role("link", name="Which card for Alpha-7B-Instruct?").click()
    page.wait_for_selector("#which tbody tr")
    for part in ("model=acme%2FAlpha-7B-Instruct", "dtype=gguf-q8_0", "context=2048", "system=windows"):
        assert part in page.url
    assert not page.locator('#which [data-part="note"]').is_visible()


def test_what_misses_says_by_how_much_and_how_it_still_runs(open_page):
    page = open_page("?gpu=rtx-3060-12gb")
    page.wait_for_selector("#window[data-whole]")
    beta = page.locator(MISS, has_text="Beta")
    assert re.search(
        r"does not fit: 16\.0 of 11\.6 GiB in Q3_K_M, 4\.4 too much", beta.inner_text().replace("\u00a0", " ")
    )
    assert "Fits on 2 × RTX 3060 12GB" in beta.inner_text()
    page.locator("#window select[name=count]").select_option("2")
    page.wait_for_url("**count=2**")
    assert "Beta-MoE-30B-A3B" in names(page) and answer(page).startswith("On 2 × RTX 3060 12GB")
    page.locator("#window select[name=context]").select_option("65536")
    expect(page.locator(MISS, has_text="Alpha")).to_contain_text("reads 32k tokens at most")


@pytest.mark.full
def test_a_shorter_context_that_fits_is_told(open_page, site_url):
    def smaller(route):
        world = route.fetch().json()
        for card in world["gpus"]:
            if card[0] == "rtx-4090":
                card[7], card[9] = 18 * 2**20, 18 * 2**30
        route.fulfill(json=world)

    page = open_page("about/")
    page.route("**/data/scenarios.json*", smaller)
    page.goto(f"{site_url}?gpu=rtx-4090&context=32768")
    page.wait_for_selector("#window[data-whole]")
    assert re.search(
        r"Runs with 1\dk tokens or on 2 ×|Runs with 1\dk tokens", page.locator(MISS, has_text="Beta").inner_text()
    )


def test_what_nobody_looked_at_is_no_no(open_page):
    """On several cards the contexts of the tiny tables end at 8k."""
    page = open_page("?gpu=rtx-4090&count=2&context=32768")
    told = page.locator(MISS, has_text="Alpha")
    assert "worked out up to 8k tokens, which fit in Q8_0 on each" in told.inner_text()
    assert "does not fit" not in told.inner_text() and "context_tokens=32768" in told.locator("a").last.get_attribute(
        "href"
    )


def test_free_memory_that_is_no_amount_has_no_answer_and_more_than_the_card_gives_is_told(open_page):
    page = open_page("?gpu=rtx-4090&free=9999")
    expect(page.locator("#window .answer")).to_contain_text("GiB free, all that it gives: ")
    field = page.locator("#window input[name=free]")
    for typed in ("0", "-3"):
        field.fill(typed)
        expect(page.locator("#window .answer")).to_have_text(f"No answer. “{typed}” is no amount of memory, in GiB.")
        assert field.get_attribute("aria-invalid") == "true" and not page.locator(ROW).first.is_visible()
    field.fill("8")
    expect(page.locator("#window .answer")).to_contain_text("with 8.0 GiB free: ")


def test_a_name_has_room_where_many_columns_stand_beside_it(open_page):
    """Of a table that is wider than the window names stay in sight."""
    page = open_page("?gpu=rtx-4090&want=video", width=760)
    name = page.locator("#window .list tbody th").first
    box = name.bounding_box()
    assert box["width"] >= 120
    assert page.locator("#window div.fits").evaluate("box => { box.scrollLeft = 100; return box.scrollLeft; }")
    assert name.bounding_box()["x"] == box["x"]


def test_the_sql_says_that_the_list_folds_copies(open_page):
    page = open_page("?gpu=rtx-4090")
    assert "the list folds what needs the same" in page.locator("#window [data-part=sql]").text_content()


@pytest.mark.full
def test_a_training_says_how_many_cards_hold_it_where_none_that_is_published_does(open_page):
    page = open_page("?gpu=h100-sxm&want=full")
    miss = page.locator(MISS, has_text="CamelCoder")
    # more than the 16 of the tables: 810 GB of weights on 24, as the tiny tables' formula shares them
    expect(miss).to_contain_text("Fits on 24 × H100 SXM, shared by")
    assert "no " not in miss.locator("b").first.inner_text()


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [1440, 390])
def test_the_answer_is_in_sight_without_scrolling(open_page, width):
    page = open_page("?gpu=rtx-4090", width=width, height=900 if width > 400 else 844)
    for part in ("#window .answer", f"{ROW} >> nth=0", f"{ROW} >> nth=0 >> td.best"):
        box = page.locator(part).first.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"], part
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.full
@pytest.mark.parametrize("width", [1440, 390])
def test_the_legend_is_one_line_and_the_rest_is_folded(open_page, width):
    page = open_page("?gpu=rtx-4090", width=width)
    legend = page.locator("#window .legend")
    line = legend.evaluate(
        "e => [e.getBoundingClientRect().height, parseFloat(getComputedStyle(e).lineHeight), e.scrollWidth - e.clientWidth]"
    )
    assert line[0] < 1.5 * line[1] and line[2] <= 0
    for kind in ("best", "fits", "less", "tight"):  # each looks as it does in the table
        assert legend.locator(f".cell.{kind}").count() == 1
    assert not page.locator("#cells p").is_visible()
    page.locator("#cells summary").click()
    expect(page.locator("#cells p")).to_contain_text("the margin of our error")


def test_without_scripts_the_list_is_of_a_common_card_and_what_scripts_draw_is_the_same(open_page):
    plain = open_page(java_script_enabled=False)
    row = "[r.querySelector('th').textContent, ...[...r.querySelectorAll('td')].map((c) => c.textContent)]"
    rows = f"[...document.querySelectorAll('{ROW}')].map((r) => {row})"
    static = [
        [
            plain.locator(ROW).nth(i).locator("th").text_content(),
            *plain.locator(ROW).nth(i).locator("td").all_text_contents(),
        ]
        for i in range(plain.locator(ROW).count())
    ]
    assert static and "For example on RTX 3060 12GB" in plain.locator("#window .answer").inner_text()
    page = open_page()
    page.wait_for_selector("#window[data-whole]")  # speeds come after the answer
    assert page.evaluate(rows) == static
    for chip in plain.locator("#window .chips > a[data-gpu]").all():
        assert chip.get_attribute("href").startswith("gpus/")


@pytest.mark.full
def test_what_is_shown_can_be_taken_along(open_page):
    page = open_page("?gpu=rtx-4090")
    with page.expect_download() as waited:
        page.get_by_role("button", name="CSV").click()
    lines = Path(waited.value.path()).read_text(encoding="utf-8").splitlines()
    assert waited.value.suggested_filename == "fits-1x-rtx-4090-chat-8192.csv"
    assert len(lines) == 1 + len(names(page)) and lines[1].startswith("acme/Alpha-7B-Instruct,7000000000,")


@pytest.mark.full
def test_the_query_beside_the_list_is_folded_and_says_the_same(open_page):
    page = open_page("?gpu=rtx-4090&context=16384")
    assert not page.locator("#as-sql code").is_visible()
    page.get_by_text("As SQL").click()
    text = page.locator("#as-sql code").inner_text()
    assert "gpu_id = 'rtx-4090'" in text and "max_context_tokens >= 16384" in text and "'gguf-q4_k_m'" in text


@pytest.mark.full
def test_a_click_on_a_model_carries_the_card_and_what_is_wanted(open_page):
    page = open_page("?gpu=rtx-4090&want=lora")
    page.locator(f"{ROW} th a").first.click()
    page.wait_for_selector("article.model")
    assert "gpu=rtx-4090" in page.url and "phase=lora" in page.url


@pytest.mark.full
def test_five_ways_lead_on(open_page):
    page = open_page()
    assert page.locator(".md-tabs__link").all_inner_texts() == ["Models", "GPUs", "Calculator", "How we know", "Data"]


@pytest.mark.full
def test_ten_thousand_works_are_answered_for_each_card(open_page, site_url):
    """As many works as there are models to come; how long it takes is for the benchmark to say."""

    def many(route):
        data, times = route.fetch().json(), 2500
        columns = ("shape", "size", "made", "more", "context", "task")
        names = data["id"]
        data["id"] = [f"{name}-{k}" for k in range(times) for name in names]
        data["paths"] = {str(k * len(names) + int(i)): path for k in range(times) for i, path in data["paths"].items()}
        route.fulfill(json=data | {name: data[name] * times for name in columns})

    page = open_page("about/")
    page.route("**/data/window/chat.json*", many)
    page.goto(f"{site_url}?gpu=rtx-4090")
    page.wait_for_selector('html[data-almanac="ready"]')
    for card in ("l40s", "rtx-3060-12gb", "h100-sxm"):
        page.select_option("#window select[name=gpu]", card)
        page.wait_for_url(f"**gpu={card}*")
        assert page.locator(ROW).count() == 25
