"""The calculator asked backwards, as people do it: how long, how many, on how few, on which; on a desk and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.reckoned import reckoned

pytestmark = pytest.mark.browser
ALPHA = "calculator/?model=acme/Alpha-7B-Instruct"
GIVES = int(11.6 * 1024**3)  # of an RTX 3060 12GB
WEIGHTS, TOKEN = int(7e9 * 4.85 / 8), 32 * 2048 * 2  # of Q4_K_M, and of a token's cache


@pytest.fixture(params=[pytest.param(1440, marks=pytest.mark.full), 390])
def page(open_page, request):
    return open_page(f"{ALPHA}&dtype_id=gguf-q4_k_m", width=request.param, height=900 if request.param > 400 else 844)


def answer(page):
    return page.locator("#calc .answer")


def test_the_longest_context_on_a_card(page, site_url, open_page):
    page.get_by_label("My card").select_option("rtx-3060-12gb")
    page.get_by_label("I want to know").select_option("context")
    # 11.6 GiB less 4 %, without the weights: more than the model reads
    expect(answer(page)).to_contain_text("Up to 32,768 tokens for one user on RTX 3060 12GB")
    expect(answer(page)).to_contain_text("all that the model reads")
    assert not page.get_by_label("Context, tokens").is_visible()  # it is the answer, not a question
    page.get_by_label("Users at once").fill("8")
    longest = int((GIVES / 1.04 - WEIGHTS) // (8 * TOKEN))
    while (WEIGHTS + 8 * TOKEN * longest) * 1.04 > GIVES:
        longest -= 1
    expect(answer(page)).to_contain_text(f"Up to {longest:,} tokens for each of 8 users")
    expect(answer(page)).to_contain_text("one more does not fit")
    assert "limits_on('rtx-3060-12gb'" in page.locator("#calculated code").inner_text()
    page.wait_for_url("**ask=context**")
    again = open_page(page.url.removeprefix(site_url))
    expect(answer(again)).to_contain_text(f"Up to {longest:,} tokens")


def test_memory_that_is_free_is_typed(page):
    page.get_by_label("My card").select_option("rtx-3060-12gb")
    page.get_by_label("I want to know").select_option("users")
    page.get_by_label("Free memory, GiB").fill("6.5")
    users = int((6.5 * 2**30 / 1.04 - WEIGHTS) // (8192 * TOKEN))
    expect(answer(page)).to_contain_text(f"Up to {users} users at 8,192 tokens each on RTX 3060 12GB, 6.5 GiB free")
    page.wait_for_url("**free=6.5**")
    page.get_by_label("Free memory, GiB").fill("-3")
    expect(page.locator("#calc .told-beside", has_text="“-3” is no amount of memory")).to_be_visible()
    page.get_by_label("Free memory, GiB").fill("0.5")
    expect(answer(page)).to_contain_text("Not even one user fits on RTX 3060 12GB, 0.50 GiB free")


@pytest.mark.full
def test_what_does_not_fit_says_how_it_does_and_each_way_leads_there(open_page):
    """Ways with their numbers: another format, a shorter context, more cards; each is the address of a scenario that fits."""
    page = open_page("calculator/?model=acme/Beta-MoE-30B-A3B&dtype_id=gguf-q6_k&gpu=rtx-4090&context_tokens=32768")
    expect(answer(page)).to_contain_text("does not fit on RTX 4090")
    ways = page.locator('#calc [data-part="ways"] li')
    expect(ways.filter(has_text="2 × RTX 4090")).to_contain_text("GiB on each")
    told, links = ways.all_inner_texts(), [link.get_attribute("href") for link in ways.locator("a").all()]
    assert any(re.match(r"In Q\d_K", text) for text in told) and len(links) >= 2
    for link in links:
        page.goto(page.url.partition("?")[0] + link)
        expect(answer(page)).to_contain_text(re.compile("fits on (2 × )?RTX 4090"))
        assert not page.locator('#calc [data-part="ways"]').is_visible()


def test_what_one_card_does_not_hold_even_packed_is_offered_on_a_few_in_a_format_that_is_named(open_page):
    page = open_page("calculator/?model=acme/CamelCoder.2-405B&gpu=l40s&dtype_id=bf16")
    expect(answer(page)).to_contain_text("GiB, ± 4 %, in bf16: does not fit on L40S")
    ways = page.locator('#calc [data-part="ways"] li')
    expect(ways.first).to_have_text(re.compile(r"^5 × L40S in Q3_K_M \(llama\.cpp, Ollama\): [\d.]+\sGiB on each\.$"))
    expect(ways.filter(has_text="L40S in bf16, shared by")).to_contain_text("GiB on each")
    ways.first.get_by_role("link").click()
    expect(answer(page)).to_contain_text("fits on 5 × L40S")


def test_what_is_tight_is_not_said_not_to_fit_when_it_is_asked_how_far_it_goes(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090&dtype_id=bf16&free=13.3&ask=context")
    expect(answer(page)).to_contain_text("Even one token is tight on RTX 4090, 13.3 GiB free: that takes 13.0 GiB")


def test_a_decimal_comma_is_understood_and_thousands_are_not_guessed(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&gpu=rtx-4090&dtype_id=bf16&free=10,5")
    field = page.get_by_label("Free memory, GiB")
    expect(field).to_have_value("10.5")
    expect(answer(page)).to_contain_text("10.5 GiB free")
    field.fill("17,25")
    expect(answer(page)).to_contain_text("17.3 GiB free")
    page.wait_for_url("**free=17.25**")
    field.fill("17,250")
    expect(answer(page)).to_have_text("No answer. “17,250” is no amount of memory, in GiB.")


def test_the_fewest_cards(page):
    page.get_by_label("My card").select_option("rtx-3060-12gb")
    page.get_by_label("I want to know").select_option("cards")
    expect(answer(page)).to_contain_text("One RTX 3060 12GB is enough")
    page.locator("select[name=dtype_id]").select_option("bf16")
    expect(answer(page)).to_contain_text("2 × RTX 3060 12GB")
    page.locator("select[name=dtype_id]").select_option("fp32")
    expect(answer(page)).to_contain_text("3 × RTX 3060 12GB")


def test_which_cards_do_it(page):
    page.get_by_label("I want to know").select_option("card")
    box = page.locator('[data-part="cards"]')
    expect(box).to_contain_text("6 of 6 cards hold it. The smallest: RTX 3060 12GB")
    page.locator("select[name=dtype_id]").select_option("bf16")
    expect(box).to_contain_text("The smallest: RTX 4090")
    assert "which-card/?model=acme" in box.get_by_role("link").last.get_attribute("href")


def test_without_a_card_it_says_what_is_missing(page):
    page.get_by_label("I want to know").select_option("context")
    expect(answer(page)).to_contain_text("Choose a card, or type how much memory is free")
    page.get_by_label("Free memory, GiB").fill("8")
    expect(answer(page)).to_contain_text("tokens for one user")


@pytest.mark.full
def test_two_scenarios_side_by_side(page, site_url, open_page):
    page.get_by_role("button", name="Set this beside another").click()
    page.locator("select[name=dtype_id]").select_option("bf16")
    beside = page.locator('[data-part="beside"]')
    expect(beside).to_contain_text("in Q4_K_M, 8,192 tokens, 1 at once: 5.0 GiB")
    head = page.locator("#calculated thead th").all_inner_texts()
    assert head[1:4] == ["GiB", "Beside, GiB", "Difference"]
    weights = page.locator("#calculated tbody tr").first.locator("td").all_inner_texts()
    assert weights[:3] == ["13.0", "4.0", "+9.1"]
    again = open_page(page.url.removeprefix(site_url))
    expect(again.locator('[data-part="beside"]')).to_contain_text("5.0 GiB")
    again.get_by_role("link", name="Swap").click()
    expect(again.locator("#calculated tbody tr").first.locator("td").nth(2)).to_have_text("−9.1")
    again.get_by_role("button", name="Take it away").click()
    expect(again.locator('[data-part="beside"]')).to_be_hidden()


def test_the_answer_stays_in_sight(page):
    """Scrolled as a hand does it: with the wheel, down to the last field and beyond."""
    for _ in range(4):
        page.mouse.move(150, 400)
        page.mouse.wheel(0, 200)
        page.wait_for_timeout(60)
        box = answer(page).bounding_box()
        size = page.viewport_size
        field = page.locator("#calc form").bounding_box()
        if field["y"] + field["height"] > size["height"] / 2:  # some of the fields are on the screen
            assert box["y"] >= 0 and box["y"] + box["height"] <= size["height"] + 1


def test_speed_is_told_as_a_bound(page):
    page.get_by_label("My card").select_option("rtx-3060-12gb")
    said = page.locator('[data-part="speed"]').inner_text()
    bound = 1008e9 / (WEIGHTS + 8192 * TOKEN)
    assert said.startswith(f"At most {bound:.0f} tokens/s with the cache full") and "A bound, no measurement" in said
    page.locator("select[name=phase_id]").select_option("full-finetune")
    expect(page.locator('[data-part="speed"]')).to_be_hidden()


def test_training_says_what_it_needs_and_what_it_may_grow_to(page):
    page.locator("select[name=phase_id]").select_option("full-finetune")
    expect(answer(page)).to_have_text(re.compile(r"^[\d.]+ GiB; up to [\d.]+ where lengths vary and blocks lie unused"))


@pytest.mark.full
def test_an_address_with_wrong_values_says_which(open_page):
    page = open_page(f"{ALPHA}&ask=everything&colour=red&dtype_id=bf16")
    told = page.locator("#calc form > .told").inner_text()
    assert "ask=everything" in told and "colour=red" in told and "What the fields show is used instead" in told
    assert page.get_by_label("I want to know").input_value() == "memory"


ASKED = (
    ("rtx-4090", {"model_id": "Qwen/Qwen3-8B", "dtype_id": "gguf-q8_0"}),
    ("rtx-3060-12gb", {"model_id": "Qwen/Qwen3-8B", "dtype_id": "gguf-q4_k_m", "kv_dtype_id": "q8_0"}),
    ("rtx-4090", {"model_id": "google/gemma-3-12b-it", "dtype_id": "gguf-q4_k_m", "context_tokens": 4096}),
    ("h100-sxm", {"model_id": "Qwen/Qwen3-30B-A3B", "dtype_id": "fp8", "sequences": 3}),
    ("rtx-4090", {"model_id": "Qwen/Qwen3-8B", "phase_id": "qlora", "dtype_id": "nf4", "checkpointing": "full"}),
    ("rtx-3060-12gb", {"model_id": "Qwen/Qwen3-8B", "dtype_id": "bf16"}),
)


@pytest.mark.some(1)
@pytest.mark.parametrize(("gpu", "wanted"), ASKED)
def test_backwards_says_what_limits_on_says(book, browser, gpu, wanted):
    """The search over the translated formulas, against the macro of the published file: to the token and to the sequence."""
    (capacity,) = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = $1", [gpu]).fetchall()[0]
    with reckoned(book, browser, [wanted["model_id"]]) as ask:
        found = ask(
            """const [wanted, bytes] = more, context = r.longest(own, wanted, bytes), users = r.most(own, wanted, bytes);
            return [context.at, context.bound, users.at, users.bound];""",
            wanted["model_id"],
            wanted,
            capacity,
        )
    rest = {k: v for k, v in wanted.items() if k != "model_id"}
    named = ", ".join(f"{name} := ${name}" for name in rest)
    query = f"SELECT max_context_tokens, max_context_bound, max_sequences, max_sequences_bound FROM limits_on($gpu, $model_id, {named})"
    assert tuple(found) == book.execute(query, {"gpu": gpu} | wanted).fetchall()[0]


def test_windows_and_a_desktop_change_the_verdict(page, site_url, open_page):
    page.get_by_label("My card").select_option("rtx-3060-12gb")
    page.get_by_label("Users at once").fill("6")
    expect(answer(page)).to_contain_text("fits on RTX 3060 12GB, which gives 11.6 GiB")
    page.locator("select[name=system]").select_option("windows")  # 81 % of 12 GiB
    expect(answer(page)).to_contain_text("does not fit on RTX 3060 12GB, which gives about 9.7 GiB under Windows")
    page.wait_for_url("**system=windows**")
    page.locator("select[name=system]").select_option("desktop")
    expect(answer(page)).to_contain_text("What a desktop leaves of RTX 3060 12GB is not known here")
    page.get_by_label("Free memory, GiB").fill("11")
    expect(answer(page)).to_contain_text("fits on RTX 3060 12GB, 11.0 GiB free")
    page.get_by_label("Free memory, GiB").fill("")
    page.get_by_label("My card").select_option("h100-sxm")  # nobody draws on it
    expect(answer(page)).to_contain_text("which gives 78.9 GiB")


def test_a_config_is_answered_by_what_is_listed_or_by_the_command(page):
    page.get_by_label("My card").select_option("rtx-4090")
    page.get_by_text("A model of your own").click()
    box = page.get_by_label("config.json", exact=True)
    box.fill('{"model_type": "qwen3", "_name_or_path": "acme/Beta-MoE-30B-A3B"}')
    said = page.locator("#calc form details")
    expect(said).to_contain_text("vram-almanac fits config.json --gpu rtx-4090")
    expect(said.get_by_role("link", name="acme/Beta-MoE-30B-A3B")).to_be_visible()
    box.fill("{model_type}")
    expect(said).to_contain_text("This is no JSON")
    box.fill('{"hidden_size": 3}')
    expect(said).to_contain_text("A config.json says a model_type")
