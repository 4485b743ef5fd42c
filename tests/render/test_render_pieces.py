"""The pieces that pages are made of: paths, relatives, plots, badges, redirects, and what the rules and errors say."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.book.commands import counted
from pipeline.book.schema import NOW_NAMED
from pipeline.render import paths, words
from pipeline.render.data import badges, relatives, shapes
from pipeline.render.data import tables as tables_module
from pipeline.render.data.support import Refusal
from pipeline.render.data.window import Window
from pipeline.render.draw import plot, preview
from pipeline.render.pages import answer, errors, model_file, pipelines, redirects
from pipeline.render.pages.bars import bars
from pipeline.render.pages.front import Front
from pipeline.render.pages.gpus import COLUMNS, FAR, GpuPages
from pipeline.render.pages.models import ModelPages
from pipeline.render.pages.rules import Rules
from tests.render.tiny_tables import built


def row(model_id, **facts):
    return {
        "model_id": model_id,
        "created_at": None,
        "base_model_id": None,
        "family": None,
        "stored_format": None,
    } | facts


@given(st.lists(st.text(alphabet="aAbB/.", min_size=1), unique=True))
def test_paths_differ_where_case_does_not_count(ids):
    assigned = paths.assign([row(i) for i in ids])
    assert len({p.lower() for p in assigned.values()}) == len(ids)


def test_the_older_of_two_namesakes_keeps_the_plain_path():
    older, newer = row("Lab/Model-FP8", created_at="2025-01-01"), row("lab/Model-fp8", created_at="2026-01-01")
    assert paths.assign([newer, older])["Lab/Model-FP8"] == "Lab/Model-FP8"
    assert paths.assign([newer, older])["lab/Model-fp8"].startswith("Lab/Model-fp8~~")
    assert paths.assign([newer]) == {"lab/Model-fp8": "lab/Model-fp8"}


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Qwen/Qwen3-8B-AWQ", "qwen3-8b"),
        ("unsloth/Qwen3-8B-bnb-4bit", "qwen3-8b"),
        ("lab/Qwen3-8B-quantized.w4a16", "qwen3-8b"),
        ("lab/Llama-3.1-8B-Instruct-GPTQ-INT4", "llama-3.1-8b-instruct"),
        ("lab/Qwen3-14B", "qwen3-14b"),
    ],
)
def test_a_stem_is_a_name_without_its_format(name, stem):
    assert relatives.stem(name) == stem


def test_relatives_are_told_once_and_in_their_families():
    models = [
        row("a/Base-7B", family="f"),
        row("b/Base-7B-AWQ", family="f", base_model_id="a/Base-7B"),
        row("c/Tuned-7B", family="f", base_model_id="a/Base-7B"),
        row("d/Base-7B", family="other"),
    ]
    found = relatives.Relatives(models)
    assert found.of(0) == [("The same model, packed or hosted otherwise", [1], 0), ("Derived from it", [2], 0)]
    assert [places for _heading, places, _more in found.of(2)] == [[0], [1]]
    assert relatives.packed(models[1]) == "awq"


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8))
def test_labels_keep_their_distance(places):
    moved = sorted(plot.spread(places, 14, 0, 400))
    assert all(b - a > 13.9 for a, b in itertools.pairwise(moved))


def test_plots_are_drawings_with_a_title_whatever_the_name():
    lines = [("bf16", [512, 8192], [14.0, 15.0]), ("int4", [512, 8192], [4.0, 4.5])]
    drawing = plot.context_lines(lines, [("8 GB card", 7.6)], "<script>&", 8192, words.tokens)
    root = ElementTree.fromstring(drawing)
    assert "<script>&" in root.findtext("title") and root.findtext("desc")
    assert ElementTree.fromstring(plot.histogram("h", "t", "d", [("a", 1), ("<", 0)])) is not None
    assert plot.context_lines([], [], "x", None, words.tokens) == ""


@pytest.mark.parametrize("where", ["8 GB in 4-bit", None])
def test_a_badge_is_a_drawing(where):
    assert "GPU memory" in ElementTree.fromstring(badges.memory(where, True)[1]).attrib["aria-label"]


@pytest.mark.parametrize(
    ("locator", "address"),
    [
        ("https://example.org/a", "https://example.org/a"),
        ("github.com/o/n @0123456 docs/a.md (a table)", "https://github.com/o/n/blob/0123456/docs/a.md"),
        ("github.com/o/n@0123456", "https://github.com/o/n/tree/0123456"),
        ("arXiv:2404.10933", "https://arxiv.org/abs/2404.10933"),
        ("javascript:alert(1)", None),
        ("a book", None),
    ],
)
def test_a_source_becomes_an_address(locator, address):
    assert errors.address_of(locator) == address


def test_renamed_models_lead_on(tmp_path):
    file = tmp_path / "redirects.csv"
    file.write_text("old_id,new_id\nold/Name,new/Name\n")
    listed = {"new/Name": "new/Name"}
    moved = redirects.renamed([], listed, file)
    assert redirects.write(tmp_path, "https://almanac.example/", listed, moved) == ["old/Name"]
    assert "https://almanac.example/models/new/Name/" in (tmp_path / "models/old/Name/index.html").read_text()
    with pytest.raises(ValueError, match="no model"):
        redirects.renamed([], {}, file)


def test_what_a_crawl_found_renamed_leads_on_by_itself(tmp_path):
    file = tmp_path / "redirects.csv"
    file.write_text("old_id,new_id\n")
    names = {"a/First": "b/Second", "b/Second": "c/Third", "x/Loop": "y/Loop", "y/Loop": "x/Loop"}
    rejected = [{"model_id": old, "reason": f"{NOW_NAMED}{new}"} for old, new in names.items()]
    rejected.append(row("d/Else", reason="disabled"))
    assert redirects.renamed(rejected, {"c/Third": "c/Third"}, file) == {"a/First": "c/Third", "b/Second": "c/Third"}


def test_a_model_that_is_gone_keeps_its_address(tmp_path):
    taken = tmp_path / "models" / "a" / "Kept"
    taken.mkdir(parents=True)
    (taken / "index.html").write_text("kept")
    gone = ["a/Kept", "a/Listed", "b/<Gone>"]
    assert redirects.write_gone(tmp_path, "https://almanac.example/", {"a/Listed": "a/Listed"}, gone) == ["b/<Gone>"]
    page = (tmp_path / "models" / words.slug("b/<Gone>") / "index.html").read_text()
    assert "&lt;Gone&gt;" in page and "<Gone>" not in page and "Listed no more" in page
    assert (taken / "index.html").read_text() == "kept"


@pytest.fixture(scope="module")
def pages():
    return ModelPages(tables_module.read(built()), "https://almanac.example/")


def test_rules_are_told_as_their_tables_have_them(pages):
    rows = Rules(pages.book, pages).rows()
    assert rows
    for row in rows:
        assert row["left_out"] + row["rule"]["model_count"] == len(pages.book.models)
        assert row["median"].endswith("%") and "<svg" in row["plot"]


def test_json_of_a_model_says_what_its_page_says(pages):
    number = next(i for i, m in enumerate(pages.book.models) if m["model_id"] == "acme/Alpha-7B-Instruct")
    files = model_file.files(pages, number)
    content = json.loads(files["api/v1/models/acme/Alpha-7B-Instruct.json"])
    assert content["model"]["parameter_count"] == 7_000_000_000 and content["answer"].startswith("Runs on one 12 GB")
    best = {gpu: card for card in content["verdicts"]["cards"] for gpu in card["gpu_ids"]}
    assert best["rtx-3060-12gb"]["dtype_id"] == "gguf-q8_0" and best["rtx-4090"]["dtype_id"] == "bf16"
    assert best["rtx-4090"]["verdict"] == "fits" and best["rtx-4090"]["max_context_tokens"] == 32768
    told, totals = shapes.read(files[f"data/shapes/{content['shape']}.bin"])  # as written, before they are gathered
    assert told["rows"]["shape"] and "model_id" not in told["rows"]["shape"][0]
    assert totals.tobytes() == pages.book.model_bytes(number)


def test_measurements_keep_their_source(pages):
    pages.book.tables["measured"] = [
        {
            "measured_id": "a",
            "metric": "peak",
            "value_bytes": 2**30,
            "value": 1.0,
            "unit": "GiB",
            "strict_set": "A",
            "source": "arXiv:2404.10933",
        }
    ]
    pages.book.tables["prediction"] = [
        dict.fromkeys(("context_tokens", "sequences", "gpu_count", "sharding", "reason"))
        | {"measured_id": "a", "model_id": "<x>", "phase_id": "lora", "engine_id": "vllm", "dtype_id": "bf16"}
        | {"predicted_bytes": 2**31, "error": 1.0}
    ]
    (found,) = errors.compared(pages.book, {})
    assert found["address"] == "https://arxiv.org/abs/2404.10933" and errors.reasons(pages.book) == []
    ((phase, drawing, left_out),) = errors.scatters([found])
    assert left_out == "" and phase == "lora" and ElementTree.fromstring(drawing) is not None
    assert '<a href="https://arxiv.org/abs/2404.10933" tabindex="-1"' in drawing
    (link,) = ElementTree.fromstring(drawing).iter("a")
    (mark,) = link
    assert mark.tag == "path" and mark.findtext("title") == "<x>, peak: +100.0 %" and not (link.text or "").strip()


PREVIEWS = preview.Previews()


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=90), st.lists(st.text(max_size=200), max_size=6))
def test_any_text_gives_a_preview_of_the_right_size(name, sentences):
    picture = PREVIEWS.draw(name, "7B parameters", sentences)
    assert picture == PREVIEWS.draw(name, "7B parameters", sentences)
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and picture[16:24] == (1200).to_bytes(4, "big") + (630).to_bytes(
        4, "big"
    )
    start = picture.index(b"IDAT") + 4
    rows = zlib.decompress(picture[start : start + int.from_bytes(picture[start - 8 : start - 4], "big")])
    assert len(rows) == 630 * 1201 and max(rows) <= 16 and not any(rows[::1201])


def test_a_preview_shows_different_names_differently():
    draw = PREVIEWS.draw
    assert draw("a/One", "", []) != draw("a/Two", "", [])


def test_training_limits_stand_by_card(pages):
    number = next(i for i, m in enumerate(pages.book.models) if m["model_id"] == "acme/Alpha-7B-Instruct")
    rows = pages.by_card.values(number, pages.inference[8192], 8192)["rows"]
    small, large = (str(row).split("</td>")[-2] for row in (rows[0], rows[-1]))
    assert "–" in small  # 14 GB of weights are more than the smallest card has
    assert "all 32k" in large


def test_a_limit_that_was_not_looked_beyond_is_marked():
    assert "≥ 32k" in words.limit_cell(32768, None, 131072, 32768)
    assert "all 32k" in words.limit_cell(32768, None, 32768, 32768)
    assert "≥ 32k?" in words.limit_cell(32768, None, None, 32768)  # and what nobody says that the model reads
    assert "made to read" in words.limit_cell(8192, None, None) and "title" not in words.limit_cell(8192, None, 32768)


def test_names_between_backticks_are_code_and_nothing_else_is_markup():
    assert words.marked("in `prediction`, <b>") == "in <code>prediction</code>, &lt;b&gt;"
    assert words.marked("a ` alone") == "a ` alone"


def test_vllm_is_told_the_tokens_of_a_step_and_of_windows_half_of_them():
    """A cache of windows holds those of two steps at once, as tables/sql/ask/engine_setting.sql has it."""
    assert counted(256, 8192, has_windows=False) == {"counted": " --max-num-seqs 256 --max-num-batched-tokens 8192"}
    assert counted(256, 8192, has_windows=True) == {"counted": " --max-num-seqs 256 --max-num-batched-tokens 4096"}


@pytest.mark.parametrize(("stored", "chosen"), [("mxfp4", "gguf-mxfp4"), ("fp8", "stored"), ("bf16", "gguf-q4_k_m")])
def test_a_model_published_in_few_bits_is_answered_in_them(stored, chosen):
    book = SimpleNamespace(
        models=[{"stored_format": stored}],
        rows=lambda *_, **__: [SimpleNamespace(dtype_id="stored")],
        default=lambda *_, **__: {},
        is_known=lambda *_: True,
    )
    assert answer.asked(book, 0, 8192)[0][1][0] == chosen


def test_a_pipeline_is_answered_by_the_formulas_of_its_release(tmp_path):
    with duckdb.connect(str(tmp_path / "almanac.duckdb")) as connection:
        connection.execute("create table component as select 'a/Picture' as model_id")
    assert pipelines.read(tmp_path, ["a/Picture"]) == {}  # a release without such formulas
    arguments = "model_id, dtype_id := 'bf16', width := 1, height := 1"
    with duckdb.connect(str(tmp_path / "almanac.duckdb")) as connection:
        connection.execute(
            f"create macro pipeline_of({arguments}) as table select 'resident' as placement, "
            "case when model_id = 'a/Picture' then width * height * 8192::bigint end as total_bytes, 'not read' as unknown_reason"
        )
        connection.execute(f"create macro pipeline_stages({arguments}) as table select 'vae' as pipeline_part")
    found = pipelines.read(tmp_path, ["a/Picture", "b/Other"])
    assert (
        pipelines.sentence(found["a/Picture"]) == "In bf16, at 1024 × 1024 pixels: 8.0 GiB with all parts on the card."
    )
    cards = [(8, 7 * 1024**2), (12, 9 * 1024**2)]
    assert "8.0 GiB with all parts on the card (one 12 GB card)." in pipelines.sentence(found["a/Picture"], cards)
    assert pipelines.for_badge(found["a/Picture"], cards) == ("12 GB in bf16", True)
    assert pipelines.for_badge(found["a/Picture"], cards[:1]) == (None, True)
    assert pipelines.for_badge(found["b/Other"], cards) == (None, False) == pipelines.for_badge(None, cards)
    ((name, cells),) = pipelines.verdicts(pipelines.told(found["a/Picture"]), [{"capacity_bytes": 9 * 1024**3}], [None])
    assert name == "all parts on the card" and "v-fits" in cells
    assert pipelines.sentence(found["b/Other"]) == "" and pipelines.told(found["b/Other"])["reason"] == "not read"
    assert pipelines.sentence(None) == ""


def test_a_pipeline_s_page_tells_fewer_bits_first_and_what_only_loading_takes():
    """FLUX.1's page told bf16 alone, in which few people run it."""
    gib = 2**30
    of = lambda total, peak=False: {"total_bytes": total * gib, "error_band": 0, "is_loading": peak}  # noqa: E731
    row = lambda denoiser, text, *ones: {"denoiser": denoiser, "text": text, "resident": of(30), "model": of(*ones)}  # noqa: E731
    packed = [
        row("fp8", None, 15), row("gguf-q8_0", None, 13), row("gguf-q4_k_s", None, 9), row("nf4", None, 9),
        row("fp8", "fp8", 12), row("nf4", "nf4", 8, True),
    ]  # fmt: skip
    whole = [{"placement": "model", "total_bytes": 23 * gib, "error_band": 0, "unknown_reason": None}]
    pipeline = {"placements": whole, "parts": [], "packed": packed}
    parts = [{"pipeline_part": name, "weights_bytes": size * gib} for name, size in (("denoiser", 22), ("vae", 9))]
    assert pipelines.sentence(pipeline | {"parts": parts}) == (
        "In bf16, at 1024 × 1024 pixels: 23.0 GiB with one part on the card at a time. "
        "Parts that are not on the card wait in the computer's memory: all of them are 31.0 GiB."
    )
    assert pipelines.sentence(pipeline | {"parts": [*parts, {"pipeline_part": "unet"}]}).endswith("at a time.")
    shown = pipelines.told(pipeline, [(12, 10 * 1024**2)])
    assert shown["packed_said"] == (
        "One part on the card at a time, denoiser in fp8 15.0 GiB; Q8_0 13.0 GiB; Q4_K_S or nf4 9.0 GiB (one 12 GB card); "
        "nf4 with the text encoders 8.0 GiB while it is loaded (one 12 GB card)."
    )
    assert pipelines.told(pipeline | {"packed": packed[:0]})["packed_said"] == ""


def _columns(html: str) -> list[str]:
    head = html[html.index('id="fits-table"') :]
    return re.findall(r'<th scope="col" class="g">(.*?)<small>', head[: head.index("</thead>")])


def test_a_card_s_page_has_the_columns_that_it_runs_and_answers_in_one_of_them(pages, monkeypatch):
    card = next(g for g in pages.book.gpus if g["gpu_id"] == "rtx-3060-12gb")
    told = GpuPages(pages.book, pages, Window(pages.book, pages.paths))
    html = told.render(card)
    assert _columns(html) == [
        "bf16",
        "fp8",
        "Q8_0",
        "awq-int4",
        "Q4_K_M",
        "LoRA bf16",
        "QLoRA nf4",
        "Full fine-tune bf16",
        "Longest context",
        "Tokens/s",
    ]
    answer = re.sub(
        r"<[^>]+>|\s+",
        " ",
        html[html.index('<p class="answer">') : html.index("</p>", html.index('<p class="answer">'))],
    )
    assert re.search(
        r"Runs 2 of 4 models in Q4_K_M at 8k tokens for one user \(copies and quantisations counted too\), of the popular ones up to  ?Alpha-7B-Instruct",
        answer,
    ), answer
    largest, said = told._largest(card), str(Front(pages.book, pages).values()["said"])
    assert f"<b>{largest['entry']['leaf_name']}</b> in {largest['format']} (" in said, (
        said
    )  # as the first screen has it
    assert "list price <b>$329</b>" in html and html.index('id="fits"') < html.index('id="gives"')
    no = Refusal(True, "no kernels")
    runs = pages.support.refusal
    monkeypatch.setattr(
        pages.support,
        "refusal",
        lambda s, dtype, gpu: no if not (dtype or "").startswith("gguf-") else runs(s, dtype, gpu),
    )
    assert _columns(GpuPages(pages.book, pages, Window(pages.book, pages.paths)).render(card)) == [
        "Q8_0",
        "Q4_K_M",
        "Longest context",
        "Tokens/s",
    ]
    monkeypatch.setattr(pages.support, "refusal", lambda *_asked: no)
    nothing = GpuPages(pages.book, pages, Window(pages.book, pages.paths)).render(card)
    assert 'id="fits-table"' not in nothing and "Nobody says that one of these formats runs on it" in nothing
    assert "won’t run" not in nothing.partition('id="refused"')[0]


def test_a_card_whose_owner_may_let_it_give_more_says_so_where_it_says_what_it_gives(pages):
    card = next(g for g in pages.book.gpus if g["gpu_id"] == "rtx-3060-12gb")
    told = GpuPages(pages.book, pages, Window(pages.book, pages.paths))
    assert "by a setting" not in told.render(card)
    more = told.render(card | {"raisable_bytes": 120 * 2**30, "raised_by": "ttm.pages_limit"})
    first = more.partition('id="systems"')[0]
    assert 'are usable as it comes, <a href="#gives">up to 120 by a setting</a>.' in first


def test_what_runs_on_apple_s_chips_alone_stands_first():
    assert next(engine for _phase, dtype, engine in COLUMNS if dtype == "bf16") == "mlx-lm"
    assert [dtype for _phase, dtype, _engine in COLUMNS[1:4]] == ["mlx-8bit", "mlx-6bit", "mlx-4bit"]
    assert FAR[0] == "mlx-4bit"


def test_smaller_siblings_are_of_the_same_maker_and_come_largest_first(pages):
    names = {m["model_id"]: i for i, m in enumerate(pages.book.models)}
    found = pages.siblings.smaller(names["acme/CamelCoder.2-405B"])
    assert [(path, size) for path, _name, size in found] == [
        ("acme/Beta-MoE-30B-A3B", "30B"),
        ("acme/Alpha-7B-Instruct", "7B"),
    ]
    assert pages.siblings.smaller(names["acme/Alpha-7B-Instruct"]) == []


def test_the_lines_above_the_bars_are_named_where_there_is_room(pages):
    sizes = [("8 GB card", 7.6), ("12 GB card", 11.6), ("24 GB card", 23.4), ("141 GB card", 139.0)]
    points = {
        ("inference", "bf16", "transformers"): [[8192], [30 * 2**30], [0.05], {"weights_bytes": 30 * 2**30}, None]
    }
    (asked,) = [s for s in pages.inference[8192] if (s.dtype_id, s.engine_id) == ("bf16", "transformers")]
    (bar,) = bars(points, [asked], {}, None, (), sizes)
    assert [size for size, _x in bar["sizes"]] == ["8", "12", "24"] and bar["lines"].count("M") == 3
    wide = {
        ("inference", "bf16", "transformers"): [[8192], [600 * 2**30], [0.05], {"weights_bytes": 600 * 2**30}, None]
    }
    (bar,) = bars(wide, [asked], {}, None, (), sizes)
    assert [size for size, _x in bar["sizes"]] == ["8", "141"] and bar["lines"].count("M") == 4
