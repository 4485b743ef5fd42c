"""What an address asks for: it is done, or it is told; never neither, and the fields always show what is used."""

import json
import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
TOLD = "The address asks for what is not here: "
WRONG = (
    "task=zz", "size=a-b", "gpu=rtx-9999", "dtype=zz", "phase=foo", "context=abc", "context=7000", "sequences=-1", "sort=zz",
    "sort=size+sideways", "cards=zz", "cards=vendor:zz", "cards=memory:1-2", "licence=zz", "family=zz", "only=zz", "figure=zz",
    "pins=zz", "pins=l40s,zz", "engine=zz", "optimizer=zz", "checkpointing=full", "vendor=amd", "set=mine", "zz=1",
    "constructor=1", "__proto__=1", "dtype=toString", "task=%3Cb%3E",
)  # fmt: skip


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", WRONG)
def test_a_wrong_value_is_told_and_changes_nothing(open_page, asked):
    page = open_page(f"matrix/?{asked}")
    said = page.locator("#note").inner_text()
    key, _, value = asked.partition("=")
    assert TOLD in said and f"{key}={value.replace('%3C', '<').replace('%3E', '>').replace('+', ' ')}." in said
    plain = open_page("matrix/")
    rows = "#matrix tbody:not([aria-hidden]) tr:not([hidden])"
    if asked not in ("pins=l40s,zz",):
        assert page.locator("#count").inner_text() == plain.locator("#count").inner_text()
        assert page.locator(rows).all_inner_texts() == plain.locator(rows).all_inner_texts()
    assert fields(page) == fields(plain)
    page.get_by_label("Part of a model’s name").fill("alpha")
    page.wait_for_url("**find=alpha**")
    assert asked.partition("=")[0] not in re.split("[?&=]", page.url) or asked == "pins=l40s,zz"


def fields(page) -> dict:
    return page.locator("#ask").evaluate("form => Object.fromEntries(new FormData(form))")


def test_several_wrong_values_are_one_sentence(open_page):
    said = open_page("matrix/?task=zz&size=a-b&context=7000&foo=bar").locator("#note").inner_text()
    assert all(wrong in said for wrong in ("task=zz", "size=a-b", "context=7000", "foo=bar"))
    assert said.count(TOLD) == 1 and said.endswith("What the fields show is used instead.")


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "field", "value"),
    [
        ("gpu=L40S", "gpu", "l40s"),
        ("context=2k", "context", "2048"),
        ("context_tokens=2048", "context", "2048"),
        ("gpu_id=l40s", "gpu", "l40s"),
        ("dtype_id=awq-int4&utm_source=letter", "dtype", "awq-int4"),
        ("phase_id=lora", "phase", "lora"),
        ("sort=need+up", "sort", None),
        ("dtype=bf16&engine=vllm", "dtype", "bf16 (vllm)"),
        ("engine=vllm&dtype=awq-int4", "dtype", "awq-int4"),
        ("size=1-4", "size", "1-4"),
        ("task=text-generation", "task", "text-generation"),
    ],
)
def test_what_is_right_is_done_without_a_word(open_page, asked, field, value):
    page = open_page(f"matrix/?{asked}")
    assert TOLD not in page.locator("#note").inner_text()
    assert value is None or fields(page)[field] == value


@pytest.mark.full
def test_an_engine_that_does_not_run_the_format_is_told(open_page):
    page = open_page("matrix/?dtype=awq-int4&engine=transformers")
    assert "engine=transformers" in page.locator("#note").inner_text()
    assert fields(page)["dtype"] == "awq-int4"


@pytest.fixture
def other_world(open_page, site_url):
    """The matrix, or another, where what the scenarios' file holds has been changed."""

    def open_(change, path):
        def changed(route):
            world = route.fetch().json()
            change(world)
            route.fulfill(json=world)

        page = open_page("about/")
        page.route("**/data/scenarios.json*", changed)
        page.goto(site_url + path)
        page.wait_for_selector('html[data-almanac="ready"]')
        return page

    return open_


def own_engine(dtype, engine):
    """A change by which a format's own engine is another, and its scenarios stand in another order."""

    def change(world):
        next(row for row in world["dtypes"] if row[0] == dtype)[2] = engine
        assert {s[2] for s in world["scenarios"] if s[1] == dtype and s[0] == "inference"} > {engine}

    return change


@pytest.mark.full
@pytest.mark.parametrize("own", ["vllm", "transformers"])
def test_a_format_by_its_id_is_that_of_its_own_engine(other_world, own):
    page = other_world(own_engine("bf16", own), "matrix/?dtype=bf16")
    assert fields(page)["dtype"] == f"bf16 ({own})"
    page = other_world(own_engine("bf16", own), "calculator/?model=acme/Alpha-7B-Instruct&dtype=bf16")
    assert fields_of_calculator(page) == ("bf16", "")


@pytest.mark.full
def test_a_format_by_its_id_is_what_the_card_runs(other_world):
    """vLLM has no kernels for Apple's GPUs here."""
    page = other_world(own_engine("bf16", "vllm"), "matrix/?dtype=bf16&gpu=m4-max-128gb")
    assert fields(page)["dtype"] == "bf16 (transformers)"
    assert "1 on one" not in page.locator("#count").inner_text() or "M4 Max" in page.locator("#count").inner_text()
    assert page.locator("#matrix td.v.mine.v-fits").count() > 0
    page = other_world(
        own_engine("bf16", "vllm"), "calculator/?model=acme/Alpha-7B-Instruct&dtype=bf16&gpu=m4-max-128gb"
    )
    assert fields_of_calculator(page) == ("bf16", "transformers")


@pytest.mark.full
def test_the_calculator_reads_a_format_as_the_matrix_names_it(open_page):
    page = open_page("calculator/?model=acme/Alpha-7B-Instruct&dtype=bf16+(vllm)")
    assert fields_of_calculator(page) == ("bf16", "vllm")


def fields_of_calculator(page) -> tuple[str, str]:
    """The format, and the engine where one was asked for: a field that nobody chose shows what is taken, and is not in the address."""
    engine = re.search(r"[?&]engine_id=([^&]*)", page.url)
    assert engine is None or engine[1] == page.locator("select[name=engine_id]").input_value()
    return page.locator("select[name=dtype_id]").input_value(), engine[1] if engine else ""


@pytest.mark.full
def test_formats_of_several_engines_are_told_with_their_own(site_url, open_page):
    world = json.loads(open_page("about/").request.get(f"{site_url}data/scenarios.json").text())
    assert all(len(row) == 3 and row[2] for row in world["dtypes"])


@pytest.mark.full
def test_the_comparison_tells_what_it_does_not_know(open_page):
    page = open_page("compare/?gpus=rtx-4090,nope,L40S&x=1")
    told = page.locator("#compare p[role=status]")
    assert "x=1" in told.inner_text() and "nope" in told.inner_text()
    assert page.locator("table.compare thead th").all_inner_texts()[1:] == ["GeForce RTX 4090", "L40S"]
    page.get_by_label("Card 3").select_option("mi300x")
    expect(told).to_have_count(0)
    assert open_page("compare/?gpus=rtx-4090,l40s").locator("#compare p[role=status]").count() == 0


@pytest.mark.full
def test_the_list_of_models_reads_its_address(open_page):
    page = open_page("models/?find=alpha&zz=1")
    expect(page.locator("#model-list a")).to_have_text(["acme/Alpha-7B-Instruct"])
    assert TOLD in page.locator("#refused").inner_text() and "zz=1" in page.locator("#refused").inner_text()
    page.locator("#find-model").fill("beta")
    page.wait_for_url("**find=beta")
    assert not page.locator("#refused").is_visible()


@pytest.mark.full
@pytest.mark.parametrize("only", ["fits", "several"])
def test_what_fits_mine_waits_for_a_card(open_page, only):
    page = open_page(f"matrix/?only={only}")
    assert "choose your card" in page.locator("#note").inner_text()
    page.locator("select[name=gpu]").select_option("rtx-4090")
    expect(page.locator("#note")).not_to_contain_text("choose your card")


@pytest.mark.parametrize(
    ("path", "card", "kind", "other"),
    [
        ("", "#window select[name=gpu]", "#window select[name=want]", "vision"),
        ("calculator/", "#calc select[name=gpu]", "#calc select[name=dtype_id]", "gguf-q4_k_m"),
        (
            "models/acme/Alpha-7B-Instruct/",
            "[data-controls=mine] select[name=gpu]",
            "[data-controls=mine] select[name=cards]",
            "all",
        ),
    ],
)
def test_back_takes_the_last_choice_away_and_what_is_typed_is_no_step(open_page, site_url, path, card, kind, other):
    page = open_page("models/")
    page.goto(site_url + path)
    page.wait_for_selector('html[data-almanac="ready"]')
    begun, first = page.url, page.locator(kind).input_value()
    page.locator(card).select_option("l40s")
    page.wait_for_url("**gpu=l40s**")
    if path == "calculator/":
        page.get_by_label("Context, tokens").type("1024")
    chosen = page.locator(kind).input_value()
    page.locator(kind).select_option(other)
    page.wait_for_url(f"**={other}**")
    page.go_back()
    expect(page.locator(kind)).to_have_value(chosen)
    expect(page.locator(card)).to_have_value("l40s")
    page.go_back()  # nor is the card remembered that was taken back
    expect(page.locator(card)).to_have_value("")
    expect(page.locator(kind)).to_have_value(first)
    assert page.url.partition("?")[0] == begun.partition("?")[0] and "gpu=" not in page.url
    page.go_forward()
    expect(page.locator(card)).to_have_value("l40s")
    page.go_back()
    expect(page.locator(card)).to_have_value("")
    page.go_back()
    page.wait_for_url(site_url + "models/")
