"""The calculator, the comparison of cards and the page for a missing address, in a real browser."""

import re

import duckdb
import pytest
from playwright.sync_api import expect

from tests.render.tiny_models import HOSTILE
from tests.render.tiny_tables import SITE

pytestmark = pytest.mark.browser


def test_the_calculator_answers_and_its_address_holds_the_scenario(open_page, site_url):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&dtype_id=bf16&gpu=rtx-4090&context_tokens=1000")
    answer = page.locator("#calc .answer")
    # 14 GB of weights and 32 × 2048 × 1000 elements of two bytes
    assert "14,131,072,000" in page.locator("#calculated tr.sum").inner_text()
    assert "fits on RTX 4090" in answer.inner_text()
    page.get_by_label("Context, tokens").fill("160000")
    assert "does not fit on RTX 4090" in answer.inner_text()
    assert "own context ends at 32k" in page.locator("#calculated .fine").inner_text()
    assert "context_tokens := 160000" in page.locator("#calculated code").inner_text()
    page.wait_for_url("**context_tokens=160000**")
    page.get_by_label("Context, tokens").fill("0")
    assert answer.inner_text() == "Unknown: a context starts at 1."
    again = open_page(page.url.removeprefix(site_url))
    assert again.get_by_label("Context, tokens").input_value() == "0"


def test_a_name_that_was_typed_is_no_model_with_its_words_somewhere(open_page):
    """Enter behind gpt-4o took a model that mends grammar, with seven words more in its name."""
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct")
    tells = "([typed, id]) => import(document.querySelector('link[href*=asking]').href).then((m) => m.tells(typed, id))"
    for typed, model, is_meant in (
        ("gpt-4o", "lab/Llammas-base-p1-GPT-4o-human-error-mix-paragraph-GEC", False),
        ("claude opus", "lab/Qwen3.6-35B-A3B-Claude-4.7-Opus-abliterated-uncensored", False),
        ("llama scout", "lab/Llama-4-Scout-17B-16E-Instruct", True),
        ("coder 405b", "acme/CamelCoder.2-405B", True),
        ("alpha", "acme/Alpha-7B-Instruct", True),
    ):
        assert page.evaluate(tells, [typed, model]) is is_meant, typed


def test_a_length_is_typed_as_people_say_it(open_page):
    """A field for numbers alone passed the k of “16k” over, and answered for 16 tokens."""
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&dtype_id=bf16")
    field = page.get_by_label("Context, tokens")
    for typed, tokens in (("16k", 16384), ("8,192", 8192), ("0.5K", 512)):
        field.press("Control+a")
        field.press_sequentially(typed)
        page.wait_for_url(f"**context_tokens={tokens}**")
        assert f"context_tokens := {tokens}" in page.locator("#calculated code").text_content()
    field.blur()
    assert field.input_value() == "512"


@pytest.mark.full
def test_what_the_calculator_waits_for_is_fetched_at_once(open_page):
    """A slow phone waits for each file that only another one names; what is left is the model's own. The theme's script comes after the answer."""
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct")
    named, fetched, theme = page.evaluate("""() => {
        const until = performance.getEntriesByName("interactive")[0].startTime, sent = performance.getEntriesByType("resource");
        const before = sent.filter((each) => each.startTime < until).map((each) => each.name);
        return [[...document.querySelectorAll("link[href], script[src]")].map((each) => each.href || each.src), before, before.filter((name) => name.includes("/bundle."))];
    }""")
    late = [name.split("?")[0] for name in fetched if name not in named]
    assert not theme and all("/api/v1/models/" in name or "/data/shapes/" in name for name in late), late


def test_the_calculator_shows_the_fields_of_a_phase(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct")
    assert not page.locator("input[name=lora_rank]").is_visible()
    page.locator("select[name=phase_id]").select_option("lora")
    assert page.locator("input[name=lora_rank]").is_visible() and not page.get_by_label("Cache format").is_visible()


@pytest.mark.full
def test_questions_about_several_gpus_come_with_the_second(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct")
    assert not page.get_by_label("Sharding").is_visible() and not page.get_by_label("Pipeline stages").is_visible()
    page.locator("#calc").get_by_label("GPUs", exact=True).fill("4")
    assert page.get_by_label("Sharding").is_visible() and page.get_by_label("Pipeline stages").is_visible()
    page.get_by_label("Pipeline stages").fill("2")
    assert "pipeline_parallel := 2" in page.locator("#calculated code").inner_text()
    page.locator("#calc").get_by_label("GPUs", exact=True).fill(
        "1"
    )  # what does not apply is neither asked nor in the address
    assert "pipeline_parallel" not in page.locator("#calculated code").inner_text()
    page.wait_for_url(lambda address: "pipeline_parallel" not in address)


@pytest.mark.full
def test_the_calculator_names_what_is_near(open_page):
    page = open_page("calculator/?model=alpha-7b&context_tokens=1000")
    assert "no model of the name alpha-7b" in page.locator(".answer").inner_text()
    page.get_by_role("link", name="acme/Alpha-7B-Instruct").click()
    expect(page.locator(".answer")).to_contain_text("GiB")
    assert "context_tokens=1000" in page.url


@pytest.mark.full
def test_the_calculator_reads_addresses_of_the_matrix(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&dtype=nf4&context=2000&gpu=rtx-9999")
    assert page.locator("select[name=dtype_id]").input_value() == "nf4"
    assert page.get_by_label("My card").input_value() == ""
    assert "context_tokens := 2000" in page.locator("#calculated pre code").inner_text()


@pytest.mark.full
def test_the_calculator_opens_on_a_model_that_generates(open_page):
    page = open_page("calculator/")
    assert page.get_by_label("Model", exact=True).input_value() == "acme/Alpha-7B-Instruct"


def test_the_calculator_says_what_is_unknown(open_page):
    page = open_page("calculator/?model=acme/No-Config")
    assert page.locator("#calc .answer").inner_text().startswith("Unknown: No config is published")
    page.locator("#calc").get_by_label("Model").fill("nobody/nothing")
    page.locator("#calc").get_by_label("Model").press("Tab")
    assert "no model of the name" in page.locator("#calc .answer").inner_text()
    page.locator("#calc").get_by_label("Model").fill(HOSTILE)
    page.locator("#calc").get_by_label("Model").press("Tab")
    expect(page.locator("#calc .answer")).to_contain_text("GiB")


def test_several_of_a_chip_with_one_memory_are_computers_and_are_not_offered(open_page):
    asked = "calculator/?model=acme/Alpha-7B-Instruct&dtype_id=gguf-q8_0&context_tokens={}&gpu={}"
    page = open_page(asked.format(160_000, "rtx-4090"))
    assert "× RTX 4090" in page.locator('[data-part="ways"]').inner_text()
    page = open_page(asked.format(2_000_000, "m4-max-128gb"))
    assert "does not fit on M4 Max 128GB" in page.locator("#calc .answer").inner_text()
    ways = page.locator('[data-part="ways"]')
    assert "tokens in Q8_0 are the most that fit" in ways.inner_text() and "×" not in ways.inner_text()
    page.get_by_label("I want to know").select_option("cards")
    expect(page.locator("#calc .answer")).to_contain_text("3 × M4 Max 128GB (3 computers)")


def test_the_calculator_opens_in_a_format_that_the_card_runs(open_page, visits, site_url):
    """As before Ampere, where bf16 does not run in PyTorch; who chose it is told so."""

    def refuse(route):
        response = route.fetch()
        support, key = response.json(), "transformers bf16 inference flash"
        support["runs"][key] = "1" * len(support["runs"][key])  # the first of its reasons, on every card
        route.fulfill(response=response, json=support)

    context, _stays = visits(site_url, {})
    context.route("**/data/support.json*", refuse)
    try:
        page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090")
    finally:
        context.unroute("**/data/support.json*")
    answer, dtype = page.locator("#calc .answer"), page.locator("select[name=dtype_id]")
    assert dtype.input_value() == "fp16" and "fits on RTX 4090" in answer.inner_text()
    dtype.select_option("bf16")
    expect(answer).to_contain_text("RTX 4090: ")
    assert "fits on" not in answer.inner_text()
    page.locator("#calc").get_by_label("Model", exact=True).fill("")
    page.locator("#calc").get_by_label("Model", exact=True).press("Tab")
    expect(answer).to_have_text("No answer. Type the name of a model.")


@pytest.mark.full
def test_cards_are_compared_and_shared(open_page, site_url):
    page = open_page("compare/?gpus=rtx-4090,l40s")
    heads = page.locator("table.compare thead th").all_inner_texts()
    assert heads[1:] == ["GeForce RTX 4090", "L40S"]
    page.get_by_label("Card 3").select_option("mi300x")
    page.locator("table.compare thead th").nth(3).wait_for()
    page.get_by_label("Card 1").select_option("")
    page.wait_for_url("**gpus=l40s,mi300x")
    again = open_page(page.url.removeprefix(site_url))
    assert again.locator("table.compare thead th").all_inner_texts()[1:] == ["L40S", "Instinct MI300X"]


def test_cards_are_compared_on_a_phone_in_formats_that_one_of_them_runs(open_page):
    page = open_page("compare/?gpus=rtx-4090,l40s", width=390, height=844)
    rows = page.locator("table.compare tbody tr:not(.group)")
    names = rows.locator("th").all_inner_texts()
    assert "Q4_K_M" in names and not any(name.startswith("gguf-") or name == "stored" for name in names)
    assert not any("mlx" in name for name in names)
    seen = page.locator("table.compare thead th").nth(2).bounding_box()
    assert seen["x"] + seen["width"] <= 390


@pytest.mark.full
def test_windows_changes_what_is_compared(open_page, site_url):
    """81 % of what a card is sold with, by the rule of the first screen; a card of servers gives the same."""
    page = open_page("compare/?gpus=rtx-3060-12gb,l40s")
    cells = lambda: page.locator("table.compare tbody tr:not(.group)").evaluate_all(  # noqa: E731
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    linux = cells()
    assert ["Usable, GiB", "11.6", "44.2"] in linux
    page.locator("#compare select[name=system]").select_option("windows")
    page.wait_for_url("**&system=windows")
    windows = cells()
    assert ["Usable, GiB", "9.7", "44.2"] in windows and ["Basis", "imputed", linux[3][2]] in windows
    assert [row[2] for row in linux] == [row[2] for row in windows]
    counts = [(one[1], other[1]) for one, other in zip(linux[12:], windows[12:], strict=True)]
    assert any(one != other for one, other in counts)
    page = open_page(page.url.removeprefix(site_url))
    assert page.locator("#compare select[name=system]").input_value() == "windows" and cells() == windows
    wrong = open_page("compare/?gpus=l40s&system=desktop")
    assert "system=desktop" in wrong.locator("#compare [role=status]").first.inner_text()


@pytest.mark.full
def test_a_card_says_for_which_system_it_speaks_and_what_another_changes(open_page, tiny):
    page = open_page("gpus/rtx-3060-12gb/", java_script_enabled=False)
    said = page.locator("#systems").inner_text()
    left = int(0.81 * 12 * 2**30)
    asked = "phase_id = 'inference' and dtype_id = 'gguf-q4_k_m' and context_tokens = 8192 and sequences = 1 and gpu_count = 1"
    ((fit,),) = duckdb.sql(
        f"select count(*) from '{tiny['folder']}/footprint.parquet' where {asked} and total_bytes * (1 + error_band) <= {left}"
    ).fetchall()
    assert f"Under Windows one program gets about 9.7 GiB of it: {fit} of " in said
    page.get_by_role("link", name="What it runs under Windows").click()
    assert page.url.endswith("?gpu=rtx-3060-12gb&system=windows")
    said = open_page("gpus/l40s/", java_script_enabled=False).locator("#systems").inner_text()
    assert "Windows" not in said and "the calculator takes what is free" in said


@pytest.mark.full
def test_the_compared_columns_are_those_of_the_plain_page(open_page):
    plain = open_page("compare/", java_script_enabled=False).locator("table.compare")
    ids = plain.locator("xpath=ancestor::*[@data-opening]").get_attribute("data-opening")
    drawn = open_page(f"compare/?gpus={ids}").locator("table.compare")
    assert drawn.inner_text().split() == plain.inner_text().split()


@pytest.mark.full
def test_a_missing_address_finds_what_is_near(open_page):
    page = open_page("404.html")
    page.get_by_label("Part of a name").fill("alpha instruct")
    page.locator("#missing li a", has_text="acme/Alpha-7B-Instruct").click()
    page.wait_for_selector("article.model")


def test_the_badge_is_a_picture_that_says_it(open_page):
    page = open_page("models/acme/Alpha-7B-Instruct/")
    assert page.locator("p.badge img").evaluate("image => image.complete && image.naturalWidth > 50")
    badge = page.request.get(page.locator("p.badge img").evaluate("image => image.src")).text()
    assert "GPU memory: 12 GB in 4-bit" in badge


def test_a_preview_picture_is_one(open_page, site_url):
    page = open_page("models/acme/Alpha-7B-Instruct/")
    address = page.locator('meta[property="og:image"]').get_attribute("content")
    assert re.search(r"/assets/previews/[0-9a-f]{16}\.png$", address)
    size = page.evaluate(
        "async (a) => { const i = new Image(); i.src = a; await i.decode(); return [i.naturalWidth, i.naturalHeight]; }",
        address.replace(SITE, site_url),
    )
    assert size == [1200, 630]


def test_the_page_of_changes_says_that_there_was_no_release(open_page):
    assert "first release" in open_page("changes/").locator("article").inner_text()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("context_tokens=abc", "“abc” is not a number."),
        ("context_tokens=-5", "This cannot be negative."),
        ("context_tokens=1e999", "At most 1,000,000,000 can be worked out."),
        ("context_tokens=99999999999999999999", "At most 1,000,000,000 can be worked out."),
        ("sequences=1.5", "1.5 is not a whole number."),
        ("gpu_count=0x10", "“0x10” is not a number."),
        ("phase_id=dream", "“dream” is not one of these."),
        ("dtype_id=int3", "“int3” is not one of these."),
        ("checkpointing=some&phase_id=lora", "“some” is not one of these."),
        ("lora_rank=NaN&phase_id=lora", "“NaN” is not a number."),
    ],
)
def test_what_cannot_be_calculated_is_told_beside_its_field(open_page, asked, told):
    page = open_page(f"calculator/?model=acme/Alpha-7B-Instruct&{asked}")
    key = asked.partition("=")[0]
    beside = page.locator("#calc label", has=page.locator(f"[name={key}]")).locator(".told-beside")
    assert beside.inner_text() == told and beside.is_visible()
    answer = page.locator("#calc .answer").inner_text()
    assert told in answer and answer.count("NaN") == told.count("NaN") and "GiB" not in answer
    assert not page.locator("#calculated pre").is_visible()  # no SQL of another question


def test_a_field_that_is_emptied_says_what_is_taken(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&context_tokens=1000")
    context = page.get_by_label("Context, tokens")
    context.fill("")
    assert "Empty: 8,192 is taken." in page.locator("#calc form").inner_text()
    context.press("Tab")
    assert context.input_value() == "8192" and "Empty" not in page.locator("#calc form").inner_text()
    page.wait_for_url(lambda address: "context_tokens" not in address)


def test_a_card_that_is_not_here_is_told(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-9999")
    assert "“rtx-9999” is not a card here." in page.locator("#calc form").inner_text()
    page.get_by_label("My card").select_option("rtx-4090")
    assert "rtx-9999" not in page.locator("#calc form").inner_text()
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=RTX-4090")
    assert page.get_by_label("My card").input_value() == "rtx-4090"


def test_what_is_no_amount_of_memory_has_no_answer_and_more_than_the_card_gives_is_not_free_of_it(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090&dtype_id=gguf-q4_k_m")
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("fits on RTX 4090")
    for typed in ("0", "-1"):
        page.locator("#calc input[name=free]").fill(typed)
        expect(answer).to_have_text(f"No answer. “{typed}” is no amount of memory, in GiB.")
    page.locator("#calc input[name=free]").fill("9999")
    expect(answer).to_contain_text("23.4 GiB free")  # what it gives in this book


def test_a_config_that_is_pasted_takes_the_other_models_answer_away(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090")
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("GiB")
    page.get_by_text("A model of your own").click()
    page.locator("textarea[name=config]").fill('{"model_type": "llama"}')
    expect(answer).to_contain_text("No answer. The config.json")
    page.locator("textarea[name=config]").fill("")
    expect(answer).not_to_contain_text("No answer")


@pytest.mark.parametrize("path", ["calculator/", "which-card/", "techniques/"])
def test_the_answer_to_another_model_is_dimmed_while_a_name_is_typed(open_page, path):
    page = open_page(path)
    field, told = page.locator("input[name=model]"), page.locator(".answer").first
    expect(told).to_have_css("opacity", "1")
    begun = field.input_value()
    field.fill("beta")
    expect(told).to_have_css("opacity", "0.35")
    field.fill(begun)
    expect(told).to_have_css("opacity", "1")
    field.fill("beta")
    field.press("Enter")
    page.wait_for_url("**Beta-MoE**")
    expect(told).to_have_css("opacity", "1")


@pytest.mark.parametrize("path", ["calculator/", "which-card/", "techniques/"])
def test_a_model_is_asked_by_its_name_as_people_write_it(open_page, path):
    page = open_page(path)
    field = page.locator("input[name=model]")
    field.fill("alpha 7b instruct")
    expect(page.locator("#model-names option").first).to_have_attribute("value", "acme/Alpha-7B-Instruct")
    field.press("Enter")
    expect(field).to_have_value("acme/Alpha-7B-Instruct")
    page.wait_for_url("**model=acme%2FAlpha-7B-Instruct**")


@pytest.mark.parametrize("path", ["calculator/", "which-card/", "techniques/"])
def test_a_model_in_an_address_is_known_whatever_its_letters_are(open_page, path):
    page = open_page(f"{path}?model=ACME/alpha-7b-INSTRUCT")
    expect(page.locator("input[name=model]")).to_have_value("acme/Alpha-7B-Instruct")


def test_a_sheet_says_what_the_calculator_was_asked(open_page):
    """The fields are left out on paper."""
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&dtype=gguf-q4_k_m&gpu_count=2")
    fine = page.locator("#calculated > .fine")
    assert "Q4_K_M" not in fine.inner_text()
    page.emulate_media(media="print")
    try:
        assert "inference, in Q4_K_M, on each of 2 GPUs" in fine.inner_text()
    finally:
        page.emulate_media(media="screen")


def test_how_far_a_model_goes_that_does_not_say_how_far_it_reads_is_said_with_the_answer(open_page, site_url):
    def silent(route):
        held = route.fetch().json()
        route.fulfill(json=held | {"context": [None] * len(held["context"])})

    page = open_page("about/")
    page.route("**/data/models.json*", silent)
    page.goto(f"{site_url}calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090&dtype_id=gguf-q4_k_m&ask=context")
    expect(page.locator("#calc .answer")).to_contain_text("longer ones fit, and may make no sense.")
    page.goto(f"{site_url}calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090&dtype_id=gguf-q4_k_m")
    expect(page.locator("#calculated .fine")).to_contain_text("longer ones fit, and may make no sense.")
