"""Pages, calculator and SQL say the same of real models: tables of a few of them, built by the book's own formulas, in a real browser."""

import dataclasses
import functools
import random
import re
import threading
from contextlib import contextmanager

import duckdb
import pytest
from playwright.sync_api import expect

from pipeline.base.caches import cache_folder
from pipeline.book.packs import Packs
from pipeline.press import blank, build
from pipeline.render import render, words
from pipeline.render.data import made, tables
from tests.browser.conftest import _Quiet, _Server
from tests.browser.test_model_page import BEYOND, PAPER
from tests.once import bundled_snapshot

pytestmark = pytest.mark.browser
# one that generates and reads far, mixture of experts with windows, an encoder of 512 tokens, two pipelines, one of video, and what
# hears and speaks: in pieces of 30 seconds, at once, and by weights alone
MODELS = (
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-20b",
    "sentence-transformers/all-MiniLM-L6-v2",
    "Photoroom/prxpixel-t2i",
    "stabilityai/stable-diffusion-xl-base-1.0",
    "Wan-AI/Wan2.2-T2V-A14B-Diffusers",
    "openai/whisper-tiny",
    "facebook/wav2vec2-base-960h",
    "hexgrad/Kokoro-82M",
)
KNOWN = MODELS[:3]
CARD = "rtx-3090"  # which is not among the common ones
ROWS = """() => [...document.querySelectorAll("[data-matrix] tbody tr")].filter((row) => row.querySelector("th a")).map((row) => ({
    href: row.querySelector("th a").href, gib: row.querySelector("td.n").textContent, own: row.querySelector("td.v").textContent,
}))"""
VERDICTS = {"fits on": "fits", "is tight on": "tight", "does not fit on": "no", "it does not run there": "won’t run"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    whole = bundled_snapshot()
    some = dataclasses.replace(
        whole,
        records=tuple(record for record in whole.records if record.model_id in MODELS),
        rejected=(),
    )
    folder = tmp_path_factory.mktemp("real")
    (folder / "tables").mkdir()
    # (formulas are not read and written anew: other tests hold that a build makes the same of what it keeps)
    packs = Packs(folder / "packs")
    packs.put_files([blank.pack_key()], {blank.KEPT: blank.kept(cache_folder()).read_bytes()})
    build.build_tables(folder / "tables", some, packs=packs)
    return folder


@pytest.fixture(scope="module")
def site_url(folder):
    server = _Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder / "site")))
    url = f"http://127.0.0.1:{server.server_port}/"
    render(folder / "tables", folder / "site", site_url=url)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def released(folder):
    with duckdb.connect(str(folder / "tables" / "almanac.duckdb"), read_only=True) as connection:
        yield connection


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
            verdict = lambda n: connection.execute(query, [MODELS[4], n, placement]).fetchone()[0]  # noqa: B023, E731
            # what is read off between two sides is never too large, and no less than the sides that were asked
            above = min((n for n in made.wishes()[0].sizes if n > side), default=None)
            assert verdict(side) == "fits" and (above is None or verdict(above) != "fits")
        needs = connection.execute(
            f"SELECT total_bytes FROM pipeline_of($1, {asked} WHERE placement = 'model'", [MODELS[4], 1024]
        ).fetchone()[0]
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
        needs = connection.execute(query, [MODELS[5]]).fetchone()[0]
    told = row.locator("td.rec").inner_text()
    assert "one module, in tiles" in told and f"{needs / 2**30:.1f} of" in told
    page.locator("#window select[name=want]").select_option("listen")
    page.wait_for_url(lambda url: url.endswith("gpu=rtx-3060-12gb&want=listen"))
    row = page.locator("#window tbody:not(.misses) tr", has_text="wav2vec2")
    with released(folder) as connection:
        verdict = lambda n: connection.execute(  # noqa: E731
            "SELECT verdict FROM fits_on('rtx-3060-12gb', $1, dtype_id := 'fp16', engine_id := 'transformers', audio_seconds := $2)",
            [MODELS[7], n],
        ).fetchone()[0]
        minutes = int(re.match(r"(\d+) min", row.locator("td.cell").first.inner_text())[1])
        # rounded down to a minute, and read off between two that were worked out
        assert verdict(60 * minutes) == "fits" and verdict(60 * (minutes + 2)) != "fits"
        needs = connection.execute(
            "SELECT total_bytes FROM footprint_of($1, dtype_id := 'fp16', engine_id := 'transformers')", [MODELS[6]]
        ).fetchone()[0]
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
        needs, verdict = connection.execute(query, [MODELS[8]]).fetchone()
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


@pytest.mark.some(1)
@pytest.mark.parametrize("model", KNOWN)
def test_the_limits_of_a_page_are_those_of_the_view_for_every_card(open_page, folder, model):
    page = open_page(f"models/{model}/")
    article = page.locator("article.model")
    context, length = (int(article.get_attribute(f"data-{name}")) for name in ("context", "length"))
    found = page.evaluate(
        """async (name) => {
            const of = (file) => document.querySelector('script[src*="almanac/page.js"]').src.replace("page.js", file);
            const [a, limits] = [await import(of("almanac.js")), await import(of("limits.js"))];
            const world = await a.world();
            const rows = limits.rows((await a.shape(name)).points);
            return rows.flatMap((row) => world.gpus.map((g) => [row.phase, row.dtypeId, row.engine, g.id, ...limits.reach(world.limits, row, g.bytes)]));
        }""",
        article.get_attribute("data-shape"),
    )
    mine = {tuple(row[:4]): tuple(row[4:]) for row in found}
    with released(folder) as connection:
        rows = connection.execute(
            """
            select phase_id, dtype_id, engine_id, gpu_id, max_context_tokens, max_sequences from compatibility
            where model_id = $1 and verdict is not null and sequences = 1 and case when phase_id = 'inference' then context_tokens = $2
                else context_tokens = $3 and optimizer_id = 'adamw' and checkpointing = 'full' end
            """,
            [model, context, length],
        ).fetchall()
    assert len(rows) > 1500 and {row[0] for row in rows} > {"inference", "lora"}
    wrong = [(row, mine.get(row[:4])) for row in rows if mine.get(row[:4]) != row[4:]]
    assert not wrong, f"{len(wrong)} of {len(rows)}, such as {wrong[:3]}"


def test_the_page_shows_these_limits_for_a_card_that_is_not_common(open_page, folder):
    page = open_page(f"models/Qwen/Qwen3-8B/?gpu={CARD}")
    cells = page.locator("[data-reach=inference] tbody tr", has_text="gguf-q8_0").locator("td")
    with released(folder) as connection:
        context, users = connection.execute(
            "select max_context_tokens, max_sequences from compatibility where model_id = 'Qwen/Qwen3-8B' and gpu_id = $1 "
            "and dtype_id = 'gguf-q8_0' and engine_id = 'llama.cpp' and context_tokens = 8192 and sequences = 1",
            [CARD],
        ).fetchall()[0]
    assert context == 40960 and cells.first.inner_text().split() == ["all", "40k", str(users), "×"]
    row = page.locator("[data-reach=inference] tbody tr", has_text="mlx-4bit").locator("td").first
    assert row.inner_text() == "–" and "MLX" in row.get_attribute("title")  # it does not run there, and says why
    text = open_page(f"gpus/{CARD}/").locator("#fits-table tbody tr", has_text="Qwen3-8B").inner_text()
    assert text.split("\t")[-2].startswith("all 40k")
    asked = f"FROM speed_on('{CARD}', 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m', context_tokens := 8192)"
    with released(folder) as connection:
        most = connection.execute(f"SELECT decode_tokens_per_second_most {asked}").fetchall()[0][0]
    assert text.split("\t")[-1] == f"≤ {words.rate(most)}"


@pytest.mark.some(1)
@pytest.mark.parametrize("model", KNOWN)
def test_a_row_of_a_page_and_the_calculator_that_it_links_to_agree(open_page, model):
    page = open_page(f"models/{model}/?gpu=rtx-4090")
    rows = page.evaluate(ROWS)
    assert len(rows) > 15
    first = [row for row in rows if "phase_id=inference" not in row["href"]][:3]
    for row in [*random.Random(model).sample(rows, 4), *first]:
        page.goto(row["href"])
        page.wait_for_selector('html[data-almanac="ready"]')
        said = page.locator("#calc .answer").inner_text()
        assert said.startswith(f"{row['gib']} GiB"), (row, said)
        verdict = next((word for text, word in VERDICTS.items() if text in said), "unknown")
        assert row["own"].startswith(verdict) or (verdict == "no" and "×" in row["own"]), (row, said)


def test_what_nobody_chose_is_the_same_on_the_page_and_in_the_calculator(open_page):
    page = open_page("models/Qwen/Qwen3-8B/?gpu=rtx-4090")
    row = page.locator("[data-matrix=training] tbody tr", has_text="LoRA").locator("nth=1")
    need = row.locator("td.n").inner_text()
    page = open_page("calculator/?model=Qwen/Qwen3-8B&phase_id=lora")
    assert float(need) > 15 and page.locator("#calc .answer").inner_text().startswith(f"{need} GiB")
    shown = {
        key: page.locator(f"[name={key}]").input_value() for key in ("checkpointing", "context_tokens", "lora_rank")
    }
    assert shown == {"checkpointing": "full", "context_tokens": "2048", "lora_rank": "16"}
    assert "default" not in page.locator("#calc form").inner_text()
    empty = page.locator("#calc :is(select, input):visible").evaluate_all(
        "all => all.filter((e) => e.value === '' && !['gpu', 'free', 'program', 'objective_id', 'data_mb', 'data_millions'].includes(e.name)).map((e) => e.name)"
    )
    assert not empty
    short = open_page("calculator/?model=sentence-transformers/all-MiniLM-L6-v2")
    assert short.locator("[name=context_tokens]").input_value() == "512"


def test_what_hears_is_asked_by_seconds(open_page, folder, site_url):
    """Sound read at once takes more the longer it is; who reads windows takes the same, and the page says so."""
    with released(folder) as connection:
        asked = lambda model, n: connection.execute(  # noqa: E731
            "SELECT total_bytes FROM footprint_of($1, audio_seconds := $2)", [model, n]
        ).fetchone()[0]
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
            total = connection.execute(query, [MODELS[8], seconds]).fetchone()[0]
            assert float(row.locator("td").inner_text()) == pytest.approx(total / 2**30, rel=0.05)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(page.url.replace("hexgrad/Kokoro-82M", "openai/whisper-tiny"))
    expect(page.locator("section", has=page.locator("#sound")).locator("tbody th")).to_have_text("any length")
    page.goto(page.url.partition("models/")[0] + "calculator/?model=hexgrad/Kokoro-82M")
    page.get_by_role("link", name="by seconds of sound").click()
    page.wait_for_url("**/models/hexgrad/Kokoro-82M/#sound")


def test_a_training_on_preferences_is_asked_of_its_own_macro(open_page, folder):
    page = open_page(f"calculator/?model={KNOWN[0]}&gpu=h100-sxm&phase_id=lora&program=trl&program_version=1.5")
    answer = page.locator("#calc .answer")
    page.get_by_label("Learns from").select_option("dpo")
    expect(answer).to_contain_text("Holds for TRL 1.0.0")
    query = page.locator("#calculated code").inner_text()
    assert query.startswith(f"FROM preference_of('dpo', '{KNOWN[0]}'")
    with released(folder) as connection:
        result = connection.execute(query)
        row = dict(zip([column[0] for column in result.description], result.fetchone(), strict=True))
    assert (
        answer.inner_text().startswith(f"{words.gib(row['total_bytes'])} GiB") and "does not fit" in answer.inner_text()
    )
    assert page.get_by_label("Micro-batch, pairs or answers").input_value() == str(row["sequences"]) == "8"
    newest = open_page(
        f"calculator/?model={KNOWN[0]}&phase_id=lora&objective_id=dpo"
    )  # which releases are taken unasked
    assert newest.locator("select[name=program_version] option:checked").inner_text() == "TRL 1.15 to 1.16"
    ways = page.locator('#calc [data-part="ways"] li a')
    expect(ways.filter(has_text=re.compile(r"^\d pairs at once$"))).to_have_count(1)
    for link in [link.get_attribute("href") for link in ways.all()]:
        assert "objective_id=dpo" in link
        page.goto(page.url.partition("?")[0] + link)
        expect(answer).to_contain_text("fits on H100 SXM5 80GB")
        assert "Holds for TRL 1." in answer.inner_text()
    page.locator("select[name=phase_id]").select_option("inference")
    expect(page.get_by_label("Learns from")).not_to_be_visible()


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
        f"calculator/?model={MODELS[5]}&gpu=rtx-4090&is_tiled=true&denoiser_dtype_id=nf4&text_dtype_id=nf4"
    )
    assert page.locator("input[name=frames]").input_value() == "81"
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("Fits on RTX 4090")
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


def test_a_page_draws_its_tables_as_they_come(open_page, folder):
    path = "models/Qwen/Qwen3-8B/"
    plain, drawn = open_page(path, java_script_enabled=False), open_page(path)
    # without scripts a row says what a way of training needs; with them also how full each card gets
    rows = "rows => rows.map(r => [r.querySelector('th').textContent.trim().replace(/\\s+/g, ' '), r.querySelector('td').textContent.trim()])"
    said = [page.locator("[data-matrix=training] tbody tr:has(td)").evaluate_all(rows) for page in (plain, drawn)]
    assert len(said[0]) > 2 and [row for row in said[0] if row not in said[1]] == []
    assert drawn.locator("[data-matrix=inference] td").count() > 100
    engines = [s.engine_id for s in tables.read(folder / "tables").scenarios if s.dtype_id == "bf16"]
    assert engines[0] == "transformers"  # a format's own engine is told first


def test_sentences_for_people_hold_no_words_of_sql(open_page):
    page = open_page("calculator/?model=Qwen/Qwen3-8B&context_tokens=131072")
    answer = page.locator("#calc .answer").inner_text()
    assert answer.startswith("Unknown: a context of 131,072 tokens is beyond the 40,960 that this model reads")
    page = open_page("calculator/?model=Qwen/Qwen3-8B&gpu_count=8&tensor_parallel=3&engine_id=vllm")
    answer = page.locator("#calc .answer").inner_text()
    assert answer.startswith("Unknown: 8 GPUs are no multiple") and "_" not in answer


def test_the_browser_words_a_reason_as_the_pages_do(open_page, folder):
    book = tables.read(folder / "tables")
    with released(folder) as connection:
        reasons = [r[0] for r in connection.execute("select distinct unknown_reason from footprint").fetchall() if r[0]]
    said = open_page().evaluate(
        """async (reasons) => {
            const { words } = await (await fetch("data/calculator.json")).json();
            const rules = words.map(([pattern, text]) => [new RegExp(pattern, "g"), text]);
            return reasons.map((reason) => rules.reduce((told, [pattern, text]) => told.replace(pattern, text), reason));
        }""",
        reasons,
    )
    assert len(reasons) > 5 and said == [book.plainly(reason) for reason in reasons]


@pytest.mark.some(1)
@pytest.mark.parametrize("paper", PAPER)
def test_more_cards_than_a_sheet_is_wide_are_printed_below_each_other(open_page, paper):
    page = open_page(f"models/Qwen/Qwen3-8B/?cards=consumer&gpu={CARD}")
    wanted = set(page.locator("[data-matrix=inference] thead th.g a").all_inner_texts())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER[paper], "height": 1000})
    page.wait_for_selector(".printed", state="attached")
    section = "section[aria-labelledby=inference]"
    assert len(wanted) > 40 and set(page.locator(f"{section} thead th.g a").all_inner_texts()) == wanted
    assert not page.evaluate(BEYOND, PAPER[paper])
    page.emulate_media(media="screen")
    page.wait_for_selector(".printed", state="detached")


@pytest.mark.full
def test_what_helps_where_it_does_not_fit_is_what_sql_says(open_page, folder):
    """By the formulas in the page: a cache of 8 bits, and the cards that full fine-tuning takes."""
    page = open_page("models/Qwen/Qwen3-8B/?gpu=rtx-3060-12gb#now-what")
    way = page.locator("[data-help] li", has_text="A cache of 8 bits")
    way.wait_for()
    said = re.search(r": (\w+) holds ([\d,]+) tokens, with one of 16 bits ([\d,]+)", way.inner_text())
    tuned = page.locator("[data-help] li", has_text="Full fine-tuning").inner_text()
    with released(folder) as connection:

        def longest(cache):
            asked = f"from limits_on('rtx-3060-12gb', 'Qwen/Qwen3-8B', dtype_id := 'gguf-{said[1].lower()}', kv_dtype_id := {cache})"
            return connection.execute(f"select max_context_tokens {asked}").fetchone()[0]

        assert [int(n.replace(",", "")) for n in said.groups()[1:]] == [longest("'q8_0'"), longest("null")]
        cards = int(re.search(r"(\d+) × RTX 3060", tuned)[1])
        for count, holds in ((cards, True), (cards // 2, False)):
            needs, capacity = connection.execute(
                "select total_bytes * (1 + error_band), capacity_bytes from footprint_of('Qwen/Qwen3-8B', dtype_id := 'bf16', "
                f"phase_id := 'full-finetune', context_tokens := 2048, sequences := 1, optimizer_id := 'adamw', checkpointing := 'full', "
                f"gpu_count := {count}, sharding := 'zero3'), gpu where gpu_id = 'rtx-3060-12gb'"
            ).fetchone()
            assert (needs <= capacity) is holds


SPLIT = "SELECT * FROM layers_that_fit($gpu, $model, dtype_id := $dtype, context_tokens := 8192)"
MOST = """
    SELECT max(gpu_layers) FILTER (cpu_expert_layers = 0), min(cpu_expert_layers) FILTER (gpu_layers = most)
    FROM (SELECT *, max(gpu_layers) OVER () AS most FROM cpu_split WHERE model_id = $model AND dtype_id = $dtype), gpu
    WHERE gpu_id = $gpu AND gpu_bytes * (1 + error_band) <= capacity_bytes
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("model", "dtype", "gpu"),
    [("openai/gpt-oss-20b", "gguf-mxfp4", "rtx-4060"), ("openai/gpt-oss-20b", "gguf-mxfp4", "rtx-3050-laptop-4gb")],
)
def test_what_does_not_fit_says_how_much_of_it_goes_to_the_card(open_page, folder, model, dtype, gpu):
    asked = {"model": model, "dtype": dtype, "gpu": gpu}
    with released(folder) as connection:
        split = connection.sql(SPLIT, params=asked).pl().row(0, named=True)
        # the table that people join says the same as the macro
        assert connection.execute(MOST, asked).fetchone() == (split["gpu_layers"], split["cpu_expert_layers"])
    flags = f"-ngl {split['gpu_layers']}"
    host = words.gib(split["host_bytes"])
    page = open_page(f"models/{model}/?gpu={gpu}")
    note = page.locator("[data-mine] li", has_text="Shared with the CPU")
    expect(note).to_contain_text(flags)
    expect(note).to_contain_text(f"{split['gpu_layers']} of {split['layer_count'] + 1} layers on the card")
    expect(note).to_contain_text(host)
    if split["cpu_expert_layers"]:
        expect(note).to_contain_text(f"-ngl 99 --n-cpu-moe {split['cpu_expert_layers']}")
        flags, host = f"-ngl 99 --n-cpu-moe {split['cpu_expert_layers']}", words.gib(split["cpu_expert_host_bytes"])
    command = page.locator('.run[data-engine="llama.cpp"]')
    expect(command.locator("code")).to_contain_text(f" {flags} ")
    expect(command.locator("small")).to_contain_text(f"needs {host} GiB of the computer’s memory")
    calculator = open_page(f"calculator/?model={model}&dtype_id={dtype}&context_tokens=8192&gpu={gpu}")
    expect(calculator.locator('.answer [data-part="split"]')).to_contain_text(f"-ngl {split['gpu_layers']}")
    front = open_page(f"?gpu={gpu}&find={model.partition('/')[2]}")
    expect(front.locator("#window tbody.misses tr", has_text=model.partition("/")[2])).to_contain_text(
        f"-ngl {split['gpu_layers']}"
    )


@pytest.mark.full
def test_a_card_says_of_what_does_not_fit_how_many_layers_do(open_page, folder):
    cell = open_page("gpus/gtx-1050-ti/").locator("#fits-table tbody tr", has_text="Qwen3-8B").locator("td").nth(-2)
    with released(folder) as connection:
        asked = {"model": "Qwen/Qwen3-8B", "dtype": "gguf-q4_k_m", "gpu": "gtx-1050-ti"}
        split = connection.sql(SPLIT, params=asked).pl().row(0, named=True)
    assert cell.inner_text().split("\n") == [
        f"{split['gpu_layers']} of {split['layer_count'] + 1} layers",
        f"+ {words.gib(split['host_bytes'])} GiB of RAM",
    ]


@pytest.mark.parametrize("path", ["", "gpus/rtx-4090/"])
def test_programs_that_run_llama_cpp_are_named_beside_it(open_page, path):
    assert "LM Studio and Ollama" in open_page(path).locator("p.fine", has_text="llama.cpp").first.text_content()


def test_pages_that_thousands_are_of_hold_no_frame_of_their_own(folder, open_page, browser):
    text = (folder / "site/models/Qwen/Qwen3-8B/index.html").read_text(encoding="utf-8")
    assert "md-search" not in text and text.count("assets/almanac/frame-model-") == 1
    page = open_page("models/Qwen/Qwen3-8B/")
    expect(page.locator("header .md-logo").first).to_be_visible()
    expect(page.locator(".md-tabs__link", has_text="Calculator")).to_be_visible()
    assert page.locator('[data-md-component="header-topic"] .md-ellipsis').inner_text() in ("", "Qwen/Qwen3-8B")
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    expect(plain.locator(".plain-nav a")).to_have_text(
        ["VRAM Almanac", "Models", "GPUs", "Calculator", "How we know", "Data"]
    )
    context.close()


@pytest.mark.full
@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.full), 390])
def test_unlike_cards_in_the_calculator_hold_what_the_macro_says(open_page, folder, site_url, width):
    page = open_page("calculator/?model=Qwen/Qwen3-8B&gpu=gtx-1660-ti&context_tokens=4096", width=width)
    assert page.locator("#calc select[name=with-0]").is_visible()
    page.locator("#calc select[name=with-0]").select_option("rtx-3060-12gb")
    answer = page.locator("#calc .answer")
    expect(answer).to_contain_text("Fits on GTX 1660 Ti + RTX 3060 12GB together")
    page.locator("#calc select[name=with-1]").select_option("gtx-1050-ti")
    expect(answer).to_contain_text("GTX 1050 Ti together")
    assert "with=rtx-3060-12gb%2Cgtx-1050-ti" in page.url
    asked = "['gtx-1660-ti', 'rtx-3060-12gb', 'gtx-1050-ti'], 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m'"
    with released(folder) as connection:
        ask = lambda more: connection.sql(f"FROM fits_together({asked}, {more})").pl().to_dicts()  # noqa: E731
        rows = ask("context_tokens := 4096")
        cells = [row.locator("td").all_inner_texts() for row in page.locator("#calculated tbody tr").all()]
        assert cells == [
            [str(r["gpu_layers"]), words.gib(r["gpu_bytes"]), words.gib(r["capacity_bytes"]), r["verdict"]]
            for r in rows
        ]
        assert answer.locator("code").inner_text() == rows[0]["engine_setting"]
        assert page.locator("#calculated pre code").inner_text().startswith(f"FROM fits_together({asked}")
        page.get_by_label("I want to know").select_option("context")
        expect(answer).to_contain_text("together up to")
        longest = int(re.search(r"up to ([\d,]+) tokens", answer.inner_text())[1].replace(",", ""))
        ends = [{row["verdict"] for row in ask(f"context_tokens := {n}")} for n in (longest, longest + 1)]
        assert ends[0] == {"fits"} and (longest == 40960 or ends[1] != {"fits"})
    page.goto(f"{page.url}&dtype_id=bf16")  # another engine has a reason
    expect(answer).to_contain_text("only llama.cpp shares a model among unlike cards")
    page.goto(f"{site_url}calculator/?model=Qwen/Qwen3-8B&gpu=gtx-1660-ti&with=no-such-card")
    expect(page.locator("#calc form > .told")).to_contain_text("with=no-such-card")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.full
def test_a_training_that_does_not_fit_is_told_the_program_that_makes_it_fit(open_page, folder):
    """QLoRA of Qwen3-8B is beyond 12 GB in Transformers and within them in the program that takes least, page and calculator alike."""
    with released(folder) as connection:
        asked = "phase_id := 'qlora', dtype_id := 'nf4', context_tokens := 2048"
        least = connection.execute(
            f"SELECT total_bytes FROM footprint_of($1, {asked}, program := 'unsloth')", [MODELS[0]]
        )
        gib = words.gib(least.fetchone()[0])
    page = open_page(f"models/{MODELS[0]}/?gpu=rtx-3060-12gb#now-what")
    expect(page.locator("[data-help] li", has_text="QLoRA with Unsloth")).to_contain_text(f"2k tokens: {gib} GiB")
    page = open_page(f"calculator/?model={MODELS[0]}&phase_id=qlora&gpu=rtx-3060-12gb")
    way = page.locator('#calc [data-part="ways"] li', has_text="With Unsloth")
    expect(way).to_contain_text(f"{gib}\u00a0GiB")
    way.locator("a").click()
    expect(page.locator("#calc .answer")).to_contain_text("fits on RTX 3060 12GB")
    # nobody trains nf4 on a Mac, on however many
    help_ = open_page(f"models/{MODELS[0]}/?gpu=m4-16gb#now-what").locator("[data-help]")
    expect(help_.locator("li").first).to_be_visible()
    assert "LoRA" not in help_.inner_text()
