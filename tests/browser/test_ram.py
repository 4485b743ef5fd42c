"""The computer's own memory in the calculator: the terminal's sentence, to the letter, and where its field stands."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from pipeline.ask import command
from pipeline.base.readonly import reading
from pipeline.press import build
from tests import few
from tests.browser.reckoned import reckoned

SCRIPTS = ("almanac", "reckon", "sql_words", "ram")
TOLD = """
const [asked, { bytes, segment, name }, gib, layers] = more;
own.layer_weight = [layers];
const row = r.ask(own, asked), one = ram.way(own, asked, row, bytes, { segment }, gib * 2 ** 30);
return one?.isHeld ? ram.held(one, asked.model_id, `one ${name}`, row) : one && ram.notHeld(one);
"""
LAYERS = """
SELECT $dtype AS dtype_id, list(layer_bytes ORDER BY block) AS layer_bytes, list(expert_bytes ORDER BY block) AS expert_bytes,
    max(matrix_bytes) AS matrix_bytes
FROM layer_weights($model, dtype_id := $dtype)
"""  # as a build keeps them, which the small almanac does not
ALPHA = "calculator/?model=acme/Alpha-7B-Instruct"
SMALL = f"{ALPHA}&gpu=rtx-3060-12gb&dtype_id=gguf-q8_0"
CASES = [
    (few.LARGE, "gguf-q4_k_m", "rtx-3060-12gb", 32, {}),
    (few.LARGE, "gguf-q8_0", "rtx-3060-12gb", 16, {}),
    (few.EXPERTS, "gguf-mxfp4", "rtx-4060", 32, {}),
    (few.EXPERTS, "gguf-mxfp4", "rtx-4060", 32, {"sequences": 3, "kv_dtype_id": "q8_0"}),
    (few.EXPERTS, "gguf-mxfp4", "rtx-4060", 8, {}),
    ("Qwen/Qwen3-14B", "gguf-q8_0", "rtx-3060-12gb", 64, {"program": "koboldcpp"}),
    ("Qwen/Qwen3-14B", "gguf-q8_0", "rtx-3060-12gb", 64, {"program": "ollama"}),
]
WORDS = {"sequences": "--users", "kv_dtype_id": "--kv", "program": "--program"}


@pytest.mark.full
def test_the_calculator_says_what_the_terminal_says(browser, capsys):
    """Experts or layers of three models in RAM, in the words of programs, and that it is too little."""
    folder = few.written()
    with (
        reading(folder / build.DATABASE) as book,
        reckoned(book, browser, {model for model, *_ in CASES}, SCRIPTS) as ask,
    ):
        for model, dtype, gpu, gib, more in CASES:
            card = book.execute("SELECT capacity_bytes, segment, name FROM gpu WHERE gpu_id = ?", [gpu]).fetchall()[0]
            asked = {"model_id": model, "phase_id": "inference", "dtype_id": dtype, "context_tokens": 8192} | more
            found = book.execute(LAYERS, {"model": model, "dtype": dtype})
            layers = dict(zip([column[0] for column in found.description], found.fetchall()[0], strict=True))
            site = ask(TOLD, model, asked, dict(zip(("bytes", "segment", "name"), card, strict=True)), gib, layers)
            words = [word for name, value in more.items() for word in (WORDS[name], str(value))]
            given = ["--gpu", gpu, "--format", dtype, "--context", "8192", "--ram", f"{gib}GB", *words]
            command.main(["fits", model, *given, "--data", str(folder)])
            terminal = " ".join(capsys.readouterr().out.split())
            assert site and site in terminal, (site, terminal[:500])
            assert terminal.startswith("Yes, with ") == site.startswith("Yes, with ")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "is_asked"),
    [
        (SMALL, True),
        (f"{ALPHA}&gpu=rtx-3060-12gb&dtype_id=bf16", True),  # how it still does is in a format of llama.cpp
        (f"{ALPHA}&gpu=a100-sxm-80gb&dtype_id=bf16", False),  # it fits
        (f"{ALPHA}&gpu=rtx-3060-12gb&dtype_id=bf16&engine_id=vllm", False),
        (f"{SMALL}&gpu_count=2", False),
        (f"{SMALL}&with=rtx-4090", False),
        (f"{SMALL}&ask=context", False),
        (f"{ALPHA}&dtype_id=gguf-q8_0", False),  # no card
        (f"{ALPHA}&gpu=m4-max-128gb&dtype_id=gguf-q8_0", False),  # whose memory is the computer's
        (f"{ALPHA}&gpu=rtx-3060-12gb&phase_id=lora&dtype_id=bf16", False),
    ],
)
def test_it_is_asked_where_llama_cpp_may_share_a_model(open_page, asked, is_asked):
    expect(open_page(asked).get_by_label("RAM of the computer, GB")).to_be_visible(visible=is_asked)


def test_it_is_kept_in_the_address_and_in_the_browser(open_page, site_url):
    page = open_page(SMALL)
    page.get_by_label("My card").select_option("rtx-4090")
    field = page.get_by_label("RAM of the computer, GB")
    field.fill("64")
    page.wait_for_url("**&ram=64&**")
    page.goto(f"{site_url}{ALPHA}&gpu=rtx-4090&dtype_id=gguf-q8_0")
    expect(field).to_have_value("64")
    page.goto(f"{site_url}{SMALL}")  # another's card, and so perhaps another's computer
    expect(field).to_have_value("")
    page.goto(f"{site_url}{SMALL}&ram=-3")
    expect(page.locator("#calc .answer")).to_have_text("No answer. “-3” is no amount of memory, in GB.")
    field.fill("32")
    expect(page.locator("#calc .answer")).to_contain_text("GiB")
