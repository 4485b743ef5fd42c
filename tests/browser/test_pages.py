"""Model and card pages, the search, phone width, and reading without JavaScript, in a real browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.render.tiny_models import UNKNOWN

pytestmark = pytest.mark.browser
MODEL = "models/acme/Alpha-7B-Instruct/"
PAGES = [
    "",
    "matrix/",
    MODEL,
    f"models/{UNKNOWN}/",
    "models/acme/",
    "models/",
    "gpus/",
    "gpus/rtx-4090/",
    "downloads/",
    "method/kv-cache/",
    "accuracy/",
    "about/",
    "compare/",
    "calculator/?model=acme/Alpha-7B-Instruct",
    "which-card/?model=acme/Alpha-7B-Instruct",
    "method/rules-of-thumb/",
    "plans/",
    "changes/",
]


@pytest.mark.full
@pytest.mark.parametrize("typed", ["alpha", "7b", "instr", "Alpha-7B", "embed", "lph", "acme struct"])
def test_search_finds_a_model_by_any_part_of_its_name(open_page, typed):
    page = open_page("about/")
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially(typed)
    wanted = "tiny-lab/embed-small" if typed == "embed" else "acme/Alpha-7B-Instruct"
    page.locator(".md-search-result__link", has_text=wanted).first.click()
    page.wait_for_selector("article.model h1")
    assert page.locator("h1").inner_text() == wanted.partition("/")[2]


def test_a_filter_without_a_hit_says_so(open_page):
    page = open_page("gpus/")
    page.locator("input[data-filter]").fill("no such card")
    expect(page.locator("[data-count]")).to_have_text("Nothing here has these words.")
    page = open_page("models/")
    page.locator("#find-model").fill("no such model")
    expect(page.locator("#most-downloaded")).to_have_text("Nothing found")


def test_tables_beside_the_site_are_links_where_this_machine_serves_them(open_page, site_url):
    """As the data page has them that says where the build keeps them."""
    link = re.compile(r'<a href="../tables/gpu\.parquet">gpu\.parquet</a>')

    def unlinked(route):
        html = link.sub("<code>gpu.parquet</code>", route.fetch().text())
        box = '<div class="scroll" tabindex="0" role="region" aria-label="Files">'
        route.fulfill(body=html.replace(box, f"<p data-beside></p>{box}"), content_type="text/html")

    page = open_page("about/")
    page.route("**/downloads/", unlinked)
    page.goto(f"{site_url}downloads/")
    expect(page.get_by_role("link", name="gpu.parquet")).to_have_attribute("href", "../tables/gpu.parquet")


@pytest.mark.full
def test_search_finds_part_of_a_camel_case_name(open_page):
    page = open_page("about/")
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("coder")
    page.locator(".md-search-result__link", has_text="acme/CamelCoder.2-405B").first.wait_for()


def test_a_model_page_answers_another_scenario(open_page):
    page = open_page(MODEL)
    table = page.locator("[data-matrix=inference]")
    before = table.locator("tbody td.n").all_text_contents()
    page.locator("[data-controls=inference] select[name=context]").select_option("2048")
    assert "2k tokens" in table.locator("caption").inner_text()
    after = table.locator("tbody td.n").all_text_contents()
    assert len(after) == len(before) and after != before
    page.locator("[data-controls=inference] select[name=gpu]").select_option("h100-sxm")
    assert "mine" in table.locator("thead th.g").first.inner_text()
    assert "mxfp4 (vllm), unknown: MXFP4 needs a block size" in page.locator("[data-left=inference]").inner_text()
    assert "mxfp4" not in table.inner_text()


def test_the_first_table_is_what_the_scripts_would_draw(open_page):
    page = open_page(MODEL)
    table = page.locator("[data-matrix=inference]")
    before = table.locator("tbody").inner_text()
    choice = page.locator("[data-controls=inference] select[name=context]")
    opening = choice.input_value()
    choice.select_option("2048")
    choice.select_option(opening)
    assert table.locator("tbody").inner_text() == before


@pytest.mark.full
def test_a_card_can_be_mine(open_page, site_url):
    page = open_page("gpus/h100-sxm/")
    page.get_by_role("button", name="Make this my card").click()
    page.goto(f"{site_url}matrix/")
    page.wait_for_selector('html[data-almanac="ready"]')
    assert page.locator("select[name=gpu]").input_value() == "h100-sxm"


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("gpus/rtx-4090/", "#fits-table tbody tr"),
        ("gpus/", "#gpu-table tbody tr"),
        ("models/acme/", "#org-table tbody tr"),
    ],
)
def test_plain_tables_filter(open_page, path, rows):
    page = open_page(path)
    total = page.locator(rows).count()
    page.get_by_label("Filter", exact=True).fill("alpha" if path != "gpus/" else "l40")
    assert page.locator(f"{rows}:visible").count() == 1 < total
    assert page.locator("[data-count]").inner_text() == f"1 of {total}"


def test_a_card_lists_everything_that_fits(open_page):
    page = open_page("gpus/rtx-3060-12gb/")
    rows = page.locator("[data-everything] tbody tr")
    names = [text.strip() for text in rows.locator("th").all_inner_texts()]
    assert names[:2] == ["tiny-lab/embed-small", "acme/Alpha-7B-Instruct"]  # the most downloaded first
    assert "acme/CamelCoder.2-405B" not in names
    alpha = rows.filter(has_text="Alpha").locator("td").all_inner_texts()
    assert alpha == ["Q8_0", "16k"]
    page.get_by_label("Find").fill("alp")
    assert rows.count() == 1 and "1 of" in page.locator("[data-everything] [role=status]").inner_text()
    rows.locator("a").click()
    page.wait_for_selector("[data-cards] tr.mine")
    assert page.locator("[data-cards] tr.mine td").all_inner_texts()[:2] == ["Q8_0", "16k"]


LARGEST = "downloads/"  # its tables and columns take axe a minute
COLOURS = {"runOnly": ["color-contrast"]}  # all that differs in the dark
SCROLLS = {"runOnly": ["scrollable-region-focusable"]}  # and on a phone


def violations(page, what=None):
    return [
        (v["id"], [n["html"][:200] for n in v["nodes"]][:4])
        for v in Axe().run(page, options=what).response["violations"]
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("path", "width"),
    [
        (path, 1280)
        for path in [*PAGES, "programs/", "peers/", "coverage/", "runs/", "techniques/", "terminal/"]
        if path != LARGEST
    ]
    + [("?gpu=rtx-3060-12gb", 390), ("which-card/?model=acme/Alpha-7B-Instruct", 390)]
    + [pytest.param(LARGEST, 1280, marks=pytest.mark.full)],
)
def test_axe_finds_nothing_and_a_phone_need_not_scroll_sideways(open_page, path, width):
    page = open_page(path, width=width, color_scheme="light")
    for scheme, body, what in (("light", "default", None), ("dark", "slate", COLOURS)):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f"body[data-md-color-scheme={body}]")
        assert not violations(page, what), scheme
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390 and not violations(page, SCROLLS)


@pytest.mark.some(1)
@pytest.mark.parametrize("path", PAGES)
def test_reading_needs_no_script(open_page, path):
    page = open_page(path, java_script_enabled=False)
    assert page.locator("h1").inner_text()
    if path == MODEL:
        text = page.locator("article").last.text_content()
        assert (
            "Runs on one 12 GB card" in text
            and "llama-server -hf" not in text
            and "convert_hf_to_gguf.py" in text
            and "footprint_of" in text
        )
        # what needs scripts is not there, and what stands there answers: cards, formats to the byte, training
        assert page.locator("[data-cards] tbody tr").count() == 6 and page.locator(".bars details").count() > 10
        assert re.search(r"bf16\s*15\.5", page.locator(".bars").inner_text())
        page.locator("summary", has_text="Training by all cards").click()
        assert re.search(r"LoRA\s*bf16\s*1\d\.\d", page.locator("[data-matrix=training]").inner_text())
        assert [
            each.evaluate("e => e.outerHTML.slice(0, 120)")
            for each in page.locator(".drawn").all()
            if each.is_visible()
        ] == []
        assert not page.locator("form[data-controls]").first.is_visible()
    if path == "gpus/rtx-4090/":
        assert page.locator("#fits-table td.v").count() > 10
    if path == "matrix/":
        assert page.locator("#matrix td.v").count() > 10


@pytest.mark.full
def test_a_missing_page_can_search(open_page, browser, site_url):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site_url}404.html")
    assert page.locator(".md-search__input").count() == 1
    assert "404" in page.locator("h1").inner_text()
    context.close()


@pytest.mark.full
def test_a_card_says_what_it_does_not_run(open_page):
    page = open_page("gpus/m4-max-128gb/", java_script_enabled=False)
    text = page.locator("section[aria-labelledby=refused]").inner_text()
    assert "bf16 (vllm)" in text and "does not run" in text and "vLLM has no kernels for it" in text
    assert open_page("gpus/rtx-4090/").locator("section[aria-labelledby=refused]").count() == 0


@pytest.mark.full
def test_on_paper_there_are_answers_and_no_controls(open_page):
    page = open_page(MODEL)
    page.emulate_media(media="print")
    assert page.locator("p.answer").is_visible() and page.locator("[data-matrix] td.v").first.is_visible()
    for hidden in (".md-header", ".md-tabs", "form[data-controls]"):
        assert not page.locator(hidden).first.is_visible()
    assert page.locator(".scroll").first.evaluate("box => getComputedStyle(box).overflow") == "visible"


ALIVE = (
    *("", "?gpu=rtx-4090&context=2048", "matrix/", "calculator/", MODEL, f"{MODEL}?gpu=rtx-4090", "gpus/rtx-4090/"),
    *("which-card/?model=acme/Alpha-7B-Instruct", "techniques/", "compare/", "404.html"),
)


def shifts_of(page, address):
    """What moved while a page was opened; nothing where that is a line of notes below the fold."""
    page.goto(address)
    page.wait_for_selector('html[data-almanac="ready"]')
    shifts = page.evaluate(
        """() => new Promise((done) => {
            const found = [];
            new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) found.push([e.value, e.sources[0]?.node?.outerHTML?.slice(0, 80)]); })
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => done(found), 200);
        })"""
    )
    return shifts if sum(value for value, _what in shifts) > 0.001 else []


@pytest.mark.parametrize(
    ("width", "every"), [(390, 3), *(pytest.param(width, 1, marks=pytest.mark.full) for width in (390, 1440))]
)
def test_nothing_jumps_while_a_page_comes_alive(open_page, site_url, width, every):
    """Whatever scripts fill has its room before; what is not asked for is not shown first."""
    page = open_page("about/", width=width)
    # what a page does, it does each time: a machine that has much else to do may paint one half of it first
    jumped = {
        path: shifts
        for path in ALIVE[::every]
        if shifts_of(page, site_url + path) and (shifts := shifts_of(page, site_url + path))
    }
    assert not jumped


@pytest.mark.full
def test_the_search_index_waits_for_the_first_letter(open_page):
    page = open_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator(".md-search__input").click()
    assert not any("search/index.json" in url for url in asked)
    page.locator(".md-search__input").press_sequentially("alpha")
    page.locator(".md-search-result__link", has_text="acme/Alpha-7B-Instruct").first.wait_for()
    assert sum("search/index.json" in url for url in asked) == 1
