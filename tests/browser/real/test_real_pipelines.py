"""What makes pictures and videos, speaks and hears: pages, calculator and SQL say the same of real models, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from pipeline.render import words
from pipeline.render.data import made
from tests.browser.real.models import CARD, MODELS, released

pytestmark = [pytest.mark.browser, pytest.mark.full]
FRONT_CELLS = "#window tbody:not(.misses) tr td.cell"


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.full), 390])
def test_who_wants_pictures_is_told_what_the_formulas_of_pipelines_say(open_page, folder, width):
    page = open_page("?gpu=rtx-3060-12gb", width=width)
    page.locator("#window select[name=want]").select_option("pictures")
    page.wait_for_url("**want=pictures*")
    expect(page.locator("#window .answer")).to_contain_text("1 model makes a picture of 1024 × 1024 pixels")
    expect(page.locator("#window .answer")).to_contain_text("stable-diffusion-xl-base-1.0")
    row = page.locator("#window tbody:not(.misses) tr")
    assert row.count() == 1 and "one part at a time" in row.locator("td.rec").inner_text()
    asked = "width := $2, height := $2)"
    with released(folder) as connection:
        for column, cell in zip(made.wishes()[0].columns, page.locator(FRONT_CELLS).all(), strict=True):
            placement, *formats = column.split(made.PACKED)
            side = int(re.sub(r"\D", "", cell.inner_text()))
            more = "".join(
                f"{name} := '{packed}', "
                for name, packed in zip(("denoiser_dtype_id", "text_dtype_id"), formats, strict=False)
            )
            query = f"SELECT verdict FROM pipeline_fits_on('rtx-3060-12gb', $1, {more}{asked} WHERE placement = $3"
            verdict = lambda n: connection.execute(query, [MODELS[4], n, placement]).fetchall()[0][0]  # noqa: B023, E731
            # what is read off between two sides is never too large, and no less than the sides that were asked
            above = min((n for n in made.wishes()[0].sizes if n > side), default=None)
            assert verdict(side) == "fits" and (above is None or verdict(above) != "fits")
        needs = connection.execute(
            f"SELECT total_bytes FROM pipeline_of($1, {asked} WHERE placement = 'model'", [MODELS[4], 1024]
        ).fetchall()[0][0]
    assert f"{needs / 2**30:.1f} of" in row.locator("td.rec").inner_text()
    parts = page.locator("#window tbody.misses tr", has_text="prxpixel-t2i").inner_text()
    # its transformer and its text encoder alone are 16 GiB, a block of them fits
    assert "unknown as a whole. At least 16.2 of 11.6 GiB with all at once" in parts
    assert "what its denoiser (PRXTransformer2DModel) holds while it runs is not known yet" in parts
    page.locator("#window select[name=context]").select_option("2048")
    page.wait_for_url("**pixels=2048*")
    miss = page.locator("#window tbody.misses tr", has_text="stable-diffusion-xl").inner_text()
    assert "with one module at a time" in miss and "Makes pictures of" in miss
    page.locator("#window select[name=want]").select_option("chat")
    page.wait_for_url(lambda url: "want" not in url)
    assert "at least 8k tokens" in page.locator("#window select[name=context] option:checked").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [1440, 390])
def test_who_wants_videos_or_speech_is_told_what_is_known_of_them(open_page, folder, width):
    page = open_page("?gpu=rtx-3060-12gb&want=video&frames=33", width=width)
    expect(page.locator("#window .answer")).to_contain_text("1 model makes a video of 33 frames of 832 × 480 pixels")
    row, misses = page.locator("#window tbody:not(.misses) tr"), page.locator("#window tbody.misses tr")
    asked = "width := 832, height := 480, frames := 33, is_tiled := true"
    with released(folder) as connection:
        query = f"SELECT total_bytes FROM pipeline_of($1, {asked}) WHERE placement = 'sequential'"
        needs = connection.execute(query, [MODELS[5]]).fetchall()[0][0]
    told = row.locator("td.rec").inner_text()
    assert "one module, in tiles" in told and f"{needs / 2**30:.1f} of" in told
    page.locator("#window select[name=want]").select_option("listen")
    page.wait_for_url(lambda url: url.endswith("gpu=rtx-3060-12gb&want=listen"))
    row = page.locator("#window tbody:not(.misses) tr", has_text="wav2vec2")
    with released(folder) as connection:
        verdict = lambda n: connection.execute(  # noqa: E731
            "SELECT verdict FROM fits_on('rtx-3060-12gb', $1, dtype_id := 'fp16', engine_id := 'transformers', audio_seconds := $2)",
            [MODELS[7], n],
        ).fetchall()[0][0]
        minutes = int(re.match(r"(\d+) min", row.locator("td.cell").first.inner_text())[1])
        # rounded down to a minute, and read off between two that were worked out
        assert verdict(60 * minutes) == "fits" and verdict(60 * (minutes + 2)) != "fits"
        needs = connection.execute(
            "SELECT total_bytes FROM footprint_of($1, dtype_id := 'fp16', engine_id := 'transformers')", [MODELS[6]]
        ).fetchall()[0][0]
    whisper = page.locator("#window tbody:not(.misses) tr", has_text="whisper-tiny")
    assert f"{needs / 2**30:.2f} of" in whisper.locator("td.rec").inner_text()
    assert whisper.locator("td.cell").first.inner_text() == "≥ 1 hour"
    page.locator("#window select[name=context]").select_option("3600")
    page.wait_for_url("**seconds=3600")
    assert "Takes " in misses.filter(has_text="wav2vec2").inner_text()
    page.locator("#window select[name=want]").select_option("speak")
    # which was run whole, in fp32 alone; a text is cut into pieces, however long it is
    kokoro = page.locator("#window tbody:not(.misses) tr", has_text="Kokoro-82M")
    expect(kokoro.locator("td.cell").filter(has_text="hour")).to_have_text("≥ 1 hour")
    with released(folder) as connection:
        query = (
            "SELECT total_bytes, verdict FROM speech_fits_on('rtx-3060-12gb', $1, seconds := 3600, dtype_id := 'fp32')"
        )
        needs, verdict = connection.execute(query, [MODELS[8]]).fetchall()[0]
    assert verdict == "fits" and f"{needs / 2**30:.1f} of" in kokoro.locator("td.rec").inner_text()
    assert "seconds=3600" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("held", ["window/pictures.json", "cards.json", "window/chat-several.json"])
def test_whoever_changes_the_wish_while_a_file_is_on_its_way_is_answered_for_the_last_one(open_page, site_url, held):
    """What arrives late for a wish that nobody has any more is not drawn, and nothing breaks."""
    page, waiting = open_page("about/"), []
    page.route(f"**/data/{held}*", lambda route: waiting.append(route))
    page.goto(f"{site_url}?gpu=rtx-3060-12gb")
    answer, want = page.locator("#window .answer"), page.locator("#window select[name=want]")
    expect(answer).to_contain_text("Qwen3-8B")
    for wish in ("pictures", "chat", "pictures", "chat", "pictures"):
        want.select_option(wish)
        page.wait_for_timeout(50)
    assert waiting
    for late in waiting:
        late.continue_()
    expect(answer).to_contain_text("picture of 1024 × 1024 pixels")
    expect(page.locator("#window")).to_have_attribute("data-whole", "")
    want.select_option("chat")
    expect(answer).to_contain_text("Qwen3-8B")
    assert "stable-diffusion" not in page.locator("#window table").inner_text()


def test_pictures_are_told_for_one_card(open_page):
    page = open_page("?gpu=rtx-3060-12gb&want=pictures&count=2&pixels=1000&frames=80&seconds=x")
    told = page.locator("#window .told").inner_text()
    assert (
        all(part in told for part in ("count=2", "pixels=1000", "frames=80", "seconds=x")) and "Taken instead" in told
    )
    assert page.locator("#window select[name=count]").input_value() == "1"


def test_what_hears_is_asked_by_seconds(open_page, folder, site_url):
    """Sound read at once takes more the longer it is; who reads windows takes the same, and the page says so."""
    with released(folder) as connection:
        asked = lambda model, n: connection.execute(  # noqa: E731
            "SELECT total_bytes FROM footprint_of($1, audio_seconds := $2)", [model, n]
        ).fetchall()[0][0]
        once, longer, window = asked(MODELS[7], 30), asked(MODELS[7], 300), asked(MODELS[6], None)
        assert longer > once and asked(MODELS[6], 300) is None
    gib = lambda need: f"{need / 2**30:.2g} GiB"  # noqa: E731
    for model, first, then in ((MODELS[7], once, longer), (MODELS[6], window, window)):
        page = open_page(f"calculator/?model={model}")
        seconds, answer = page.get_by_label("Audio, seconds"), page.locator("#calc .answer")
        expect(answer).to_contain_text(gib(first))
        assert seconds.input_value() == "30"
        seconds.fill("300")
        page.wait_for_url("**audio_seconds=300**")
        expect(answer).to_contain_text(gib(then))
        again = open_page(page.url.removeprefix(site_url))
        assert again.get_by_label("Audio, seconds").input_value() == "300"
        expect(again.locator("#calc .answer")).to_contain_text(gib(then))
        windows = again.locator("#calculated .fine", has_text="a window of sound at a time")
        assert windows.count() == (model == MODELS[6])
    assert not open_page(f"calculator/?model={MODELS[0]}").get_by_label("Audio, seconds").is_visible()


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.full), 390])
def test_pages_of_what_hears_or_speaks_tell_seconds(open_page, folder, width):
    page = open_page("models/hexgrad/Kokoro-82M/", width=width)
    expect(page.locator(".answer")).to_contain_text("30 seconds of sound: one 8 GB card in fp32")
    table = page.locator("section", has=page.locator("#sound")).locator("tbody tr")
    with released(folder) as connection:
        for row, seconds in zip(table.all(), (30, 60, 300, 900, 1800, 3600), strict=True):
            query = "SELECT total_bytes FROM speech_of($1, seconds := $2, dtype_id := 'fp32')"
            total = connection.execute(query, [MODELS[8], seconds]).fetchall()[0][0]
            assert float(row.locator("td").inner_text()) == pytest.approx(total / 2**30, rel=0.05)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(page.url.replace("hexgrad/Kokoro-82M", "openai/whisper-tiny"))
    expect(page.locator("section", has=page.locator("#sound")).locator("tbody th")).to_have_text("any length")
    page.goto(page.url.partition("models/")[0] + "calculator/?model=hexgrad/Kokoro-82M")
    page.get_by_role("link", name="by seconds of sound").click()
    page.wait_for_url("**/models/hexgrad/Kokoro-82M/#sound")


def test_pipelines_are_asked_for_by_the_size_of_a_picture(open_page, folder):
    page = open_page(f"calculator/?model={MODELS[4]}&gpu=rtx-4090")
    answer = page.locator("#calc .answer")
    assert (
        not page.get_by_label("Context, tokens").is_visible() and not page.get_by_label("I want to know").is_visible()
    )
    assert "Fits on RTX 4090" in answer.inner_text() and "One picture of 1,024 × 1,024 pixels" in answer.inner_text()
    page.get_by_label("Width, pixels", exact=True).fill("512")
    page.get_by_label("Height, pixels", exact=True).fill("768")
    page.get_by_label("Pictures at once").fill("3")
    page.locator("select[name=pipeline_dtype]").select_option("fp16")
    page.wait_for_url("**pipeline_dtype=fp16**width=512**height=768**pictures=3**")
    query = page.locator("#calculated code").inner_text()
    assert "width := 512, height := 768, frames := 1, images := 3" in query
    with released(folder) as connection:
        wanted = [row[4] for row in connection.execute(query).fetchall()]
    cells = page.locator("#calculated tbody tr td:nth-child(2)").all_inner_texts()
    assert cells == [words.gib(total) for total in wanted] and len(cells) == 4
    page.get_by_label("Width, pixels", exact=True).fill("513")
    assert answer.inner_text().startswith("Unknown at 513 × 768 pixels: width and height are multiples of 8")
    page = open_page(f"calculator/?model={MODELS[3]}")
    answer = page.locator("#calc .answer").inner_text()
    assert answer.startswith("Unknown at 1,024 × 1,024 pixels: ") and "tokens" not in answer
    # every way to place the parts has its verdict beside it
    page = open_page(f"calculator/?model={MODELS[4]}&gpu=rtx-3060-12gb&width=1024&height=1024")
    expect(page.locator("#calculated thead")).to_contain_text("Verdict")
    with released(folder) as connection:
        query = "SELECT verdict FROM pipeline_fits_on('rtx-3060-12gb', $1)"
        wanted = [verdict for (verdict,) in connection.execute(query, [MODELS[4]]).fetchall()]
    assert page.locator("#calculated tbody tr td:nth-child(3)").all_inner_texts() == wanted and len(set(wanted)) > 1
    # one of video opens with what its page speaks of
    page = open_page(
        f"calculator/?model={MODELS[5]}&gpu=rtx-5090&is_tiled=true&denoiser_dtype_id=nf4&text_dtype_id=nf4"
    )
    assert page.locator("input[name=frames]").input_value() == "81"
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("Fits on RTX 5090")
    query = page.locator("#calculated code").inner_text()
    assert "frames := 81" in query and "is_tiled := true, denoiser_dtype_id := 'nf4', text_dtype_id := 'nf4'" in query
    with released(folder) as connection:
        wanted = [row[4] for row in connection.execute(query).fetchall()]
    cells = page.locator("#calculated tbody tr td:nth-child(2)").all_inner_texts()
    assert cells == [words.gib(total) for total in wanted] and len(cells) == 4
    for path in (f"models/{MODELS[3]}/", f"models/{MODELS[4]}/", f"models/{MODELS[5]}/", ""):
        assert "ends at 0 tokens" not in open_page(path).locator("body").inner_text()


def test_lora_of_a_pipeline_is_asked_as_its_macro_answers(open_page, folder):
    page = open_page(f"calculator/?model={MODELS[4]}&gpu=rtx-3060-12gb")
    assert not page.get_by_label("All layers recomputed").is_visible()
    page.locator("select[name=pipeline_task]").select_option("lora")
    page.locator("input[name=adapter_rank]").fill("64")
    page.wait_for_url("**adapter_rank=64**")
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("LoRA of rank 64")
    assert not page.get_by_label("Decoded in tiles").is_visible()
    for recomputed in ("true", "false"):
        page.locator("select[name=is_recomputed]").select_option(recomputed)
        expect(page.locator("#calculated code")).to_contain_text("full" if recomputed == "true" else "none")
        query = page.locator("#calculated code").inner_text()
        with released(folder) as connection:
            told = connection.execute(query.replace("FROM", "SELECT total_bytes, weights_bytes FROM")).fetchall()
            judged = query.replace("pipeline_training_of(", "pipeline_training_fits_on('rtx-3060-12gb', ")
            verdicts = [row[0] for row in connection.execute(judged.replace("FROM", "SELECT verdict FROM")).fetchall()]
        for column, wanted in ((2, [words.gib(total) for total, _ in told]), (3, verdicts)):
            assert page.locator(f"#calculated tbody tr td:nth-child({column})").all_inner_texts() == wanted
    page.locator("select[name=denoiser_dtype_id]").select_option("nf4")
    expect(answer).to_contain_text("over a base in nf4 that keeps all activations is not known yet")
    # of a video by its frames, where the other parts stay away
    page = open_page(f"calculator/?model={MODELS[5]}&pipeline_task=lora")
    expect(page.locator("#calc .answer")).to_contain_text("1 video of 81 frames of 832 × 480 pixels at a time")
    query = page.locator("#calculated code").inner_text()
    with released(folder) as connection:
        told = connection.execute(query.replace("FROM", "SELECT total_bytes FROM")).fetchall()
    wanted = [words.gib(total) for (total,) in told if total is not None]
    assert page.locator("#calculated tbody tr td:nth-child(2)").all_inner_texts() == wanted and len(wanted) == 1
    # the page of the model says it of rank 16
    with released(folder) as connection:
        query = "SELECT total_bytes FROM pipeline_training_of($1, checkpointing := 'full') ORDER BY 1"
        wanted = [words.gib(total) for (total,) in connection.execute(query, [MODELS[4]]).fetchall()]
    rows = open_page(f"models/{MODELS[4]}/").locator("[aria-label='Training LoRA adapters'] tbody tr")
    assert rows.locator("td:nth-child(3)").all_inner_texts() == wanted and len(wanted) == 2


def test_the_matrix_has_the_verdict_of_the_first_way_that_fits(open_page, folder):
    page = open_page(f"matrix/?gpu={CARD}&cards=mine&dtype=bf16&engine=transformers")
    row = page.locator("#matrix tbody tr", has_text="stable-diffusion-xl")
    with released(folder) as connection:
        query = f"SELECT verdict, total_bytes, capacity_bytes FROM pipeline_fits_on('{CARD}', $1)"
        told = connection.execute(query, [MODELS[4]]).fetchall()
    verdict, total, capacity = next(way for way in told if way[0] == "fits")
    expect(row.locator("td.mine")).to_have_text(f"{verdict} {-(-100 * total // capacity)}\u00a0%")
    assert "one picture" not in row.inner_text() and "1,024" in page.locator("#note").inner_text()
    # one of which no part has its formula yet says so
    assert "unknown" in page.locator("#matrix tbody tr", has_text="prxpixel-t2i").inner_text()
    # a format that says nothing of pipelines
    page = open_page(f"matrix/?gpu={CARD}&cards=mine&dtype=gguf-q4_k_m")
    assert "unknown" in page.locator("#matrix tbody tr", has_text="stable-diffusion-xl").inner_text()
    expect(page.locator("#note")).to_contain_text("makers of pictures and videos are to")


def test_a_pipeline_takes_the_card_that_is_chosen(open_page):
    page = open_page(f"models/{MODELS[4]}/?gpu={CARD}&cards=mine")
    table = page.locator("table[data-pipeline]")
    assert table.locator("thead th").count() == 2 and "mine" in table.locator("th.mine").inner_text()
    assert "fits" in table.locator("tbody td").first.inner_text()
    page.locator("[data-controls=pipeline] [name=cards]").select_option("common")
    assert table.locator("thead th").count() == 15  # thirteen and one's own
    plain = open_page(f"models/{MODELS[4]}/", java_script_enabled=False).locator("table[data-pipeline] tbody")
    drawn = open_page(f"models/{MODELS[4]}/").locator("table[data-pipeline] tbody")
    assert drawn.inner_text() == plain.inner_text()
