"""What the first screen reads: works instead of copies, and totals to the byte in a file of a few kilobytes."""

import dataclasses
import json
import re
import types

import polars as pl
import pytest

from pipeline.book.packs import Packs
from pipeline.render.data import made, window, works
from pipeline.render.data import tables as tables_module
from pipeline.render.data.kept import Kept
from pipeline.render.pages.models import ModelPages
from tests.render.tiny_tables import built


@pytest.fixture(scope="module")
def tables():
    return built()


@pytest.fixture(scope="module")
def found(tables):
    book = tables_module.read(tables)
    return window.Window(book, ModelPages(book).paths)


def model(model_id, downloads=0, size=8_000, base=None, task="text-generation", family="qwen3"):
    facts = {"downloads_30d": downloads, "parameter_count": size, "stored_parameter_count": size, "pipeline_tag": task}
    return {"model_id": model_id, "family": family, "base_model_id": base} | facts


def folded(models, unknown=()):
    leaders = works.Works(models).leaders(lambda i: models[i]["model_id"] not in unknown)
    return {m["model_id"]: models[i]["model_id"] for m, i in zip(models, leaders, strict=True)}


def test_copies_quantisations_and_fine_tunes_stand_with_whom_they_are_made_of():
    models = [
        model("quick/Qwen3-8B-AWQ", 900),
        model("Qwen/Qwen3-8B", 800),
        model("Qwen/Qwen3-8B-Base", 700),
        model("other/My-Qwen3-8B-story", 300),
        model("third/Named-Otherwise", 200, base="Qwen/Qwen3-8B"),
    ]
    assert set(folded(models).values()) == {"Qwen/Qwen3-8B"}


def test_what_is_smaller_or_does_something_else_is_a_work_of_its_own():
    models = [
        model("Qwen/Qwen3-8B", 800),
        model("lab/Qwen3-8B-eagle", 700, size=400, base="Qwen/Qwen3-8B"),
        model("lab/Qwen3-8B-embed", 600, base="Qwen/Qwen3-8B", task="feature-extraction"),
        model("lab/Film", 500, size=None, base="Qwen/Qwen3-8B", task=None, family=None),
        model("Qwen/Qwen3-14B", 400, size=14_000),
    ]
    assert folded(models) == {m["model_id"]: m["model_id"] for m in models}


def test_of_a_base_that_is_not_listed_its_makers_own_stands_for_all():
    models = [
        model("quick/gemma-9-it-AWQ", 900, base="google/gemma-9"),
        model("google/gemma-9-it", 800, base="google/gemma-9"),
    ]
    assert set(folded(models).values()) == {"google/gemma-9-it"}


def test_a_work_is_shown_by_a_model_whose_memory_is_known():
    models = [model("Qwen/Qwen3-8B", 800), model("quick/Qwen3-8B-AWQ", 100)]
    assert set(folded(models, unknown={"Qwen/Qwen3-8B"}).values()) == {"quick/Qwen3-8B-AWQ"}


def test_totals_are_the_published_ones_to_the_byte(found, tables):
    published = {
        tuple(row[:5]): row[5]
        for name in ("footprint", "ladder")
        for row in _published(tables, name)
    }  # fmt: skip
    seen = 0
    for name, text in found.files().items():
        data = json.loads(text)
        if name.endswith("-several.json"):
            continue
        several = json.loads(found.files()[name.replace(".json", "-several.json")])
        for k, model_id in enumerate(data["id"]):
            shapes = {1: data["shapes"][data["shape"][k]]}
            shapes |= dict(zip(several["counts"], several["shapes"][data["shape"][k]], strict=True))
            for count, shape in shapes.items():
                first = None
                for column, line in zip(data["columns"], shape, strict=True):
                    if line is None:
                        continue
                    first = first or line
                    whole, more = (line, 0) if isinstance(line, list) else (first, line)
                    for tokens, total in zip(data["axes"][whole[0]], window.totals(whole, more), strict=True):
                        assert published[model_id, *column[:2], count, tokens] == total
                        seen += 1
    assert seen > 250


def _published(tables, name):
    import duckdb

    with duckdb.connect(str(tables / "almanac.duckdb"), read_only=True) as connection:
        return connection.execute(
            f"select model_id, phase_id, dtype_id, gpu_count, context_tokens, total_bytes from {name} where sequences = 1 "
            "and total_bytes is not null and (phase_id = 'inference' and (dtype_id != 'bf16' or engine_id = 'transformers') "
            "or optimizer_id = 'adamw' and checkpointing = 'full')"
        ).fetchall()


def test_what_a_token_reads_is_told_by_shape_and_why_where_nobody_knows(found):
    files = found.files()
    chat, several = (json.loads(files[name]) for name in ("chat.json", "chat-several.json"))
    reads = several["reads"][chat["shape"][chat["id"].index("acme/Alpha-7B-Instruct")]]
    told = [round(7e9 * bits / 8) for bits in (8.5, 6.6, 5.7, 4.85, 3.9)]
    assert [reads[0], *(reads[0] + n for n in reads[1:5])] == told and not several["sparse"]
    assert several["shared"][0] == "tp"  # as the tiny tables have it
    assert [json.loads(files[f"{name}.json"])["hasSpeed"] for name in ("chat", "embed", "train")] == [
        True,
        False,
        False,
    ]


def test_formats_that_differ_by_their_weights_are_one_number(found):
    shapes = json.loads(found.files()["chat.json"])["shapes"]
    assert shapes and all(isinstance(shape[0], list) for shape in shapes)
    assert all(isinstance(line, int) for shape in shapes for line in shape[1:])


def test_a_line_of_which_more_than_the_weights_differs_is_kept_whole():
    axes = []

    def line(weights, cache, total, padding=(0, 0)):
        return window._Line([512, 2048], [weights, weights], cache, total, [0.03, 0.03], list(padding))

    first = line(100, [5, 20], [110, 130])
    lines = [first, line(50, [5, 21], [60, 81])]
    assert window._shape(lines, axes) == [[0, 100, [5, 15], [5, 5], 0.03], [0, 50, [5, 16], [5, 5], 0.03]]
    # what is set aside beyond the cache that tokens read is told where there is any
    lines = [first, line(50, [5, 20], [60, 80], [2, 1])]
    whole = [0, 50, [5, 15], [5, 5], 0.03, [2, -1]]
    assert window._shape(lines, axes) == [[0, 100, [5, 15], [5, 5], 0.03], whole]
    assert axes == [[512, 2048]] and window.cache_read(whole) == [3, 19]


def test_what_is_published_in_few_bits_has_that_format_alone():
    line = [0, 100, [5], [5], 0.03]
    assert window._only([line, -30, -60], [2]) == [None, None, [0, 40, [5], [5], 0.03]]
    assert window._only([line, -30, -60], [0, 1]) == [line, -30, None]
    assert window._only(None, [0]) is None


def test_wishes_name_formats_that_are_published(found):
    scenarios = {(s.phase_id, s.dtype_id, s.engine_id) for s in found.book.scenarios}
    assert len({wish.name for wish in found.wishes}) == len(found.wishes) > 5
    for wish in found.wishes:
        assert set(wish.columns) <= scenarios and wish.asked and re.compile(wish.named) and re.compile(wish.not_named)
        assert {w.columns for w in found.by_file[wish.file]} == {wish.columns}  # a file has one set of columns


def test_a_wish_means_models_by_task_and_name(found):
    by_name = {wish.name: wish for wish in found.wishes}
    chat, code, embed = (by_name[name] for name in ("chat", "code", "embed"))
    assert (
        chat.means(model("a/Qwen3-8B")) and not code.means(model("a/Qwen3-8B")) and code.means(model("a/Qwen3-Coder"))
    )
    assert not chat.means(model("a/Deep-OCR")) and not embed.means(model("a/Qwen3-8B"))
    assert embed.means(model("a/e5", task="feature-extraction"))


def test_a_file_holds_what_its_wishes_ask_of_one_sequence(found, tables):
    frame, who = found.frame("chat"), ["model_id", "phase_id", "dtype_id", "engine_id", "context_tokens"]
    assert set(frame["phase_id"]) == {"inference"}
    one = pl.read_parquet(tables / "footprint.parquet").filter(gpu_count=1, sequences=1)
    both = frame.join(one, on=who, suffix="_published").filter(pl.col("total_bytes_published").is_not_null())
    assert both.height > 10 and both["total_bytes"].equals(both["total_bytes_published"], check_names=False)


@pytest.fixture(scope="module")
def files(found):
    return found.files()


def test_lines_that_are_kept_are_those_that_are_read(tables, files, tmp_path, monkeypatch):
    book = tables_module.read(tables)
    contents = {model["model_id"]: f"content of {model['model_id']}" for model in book.models}
    paths = ModelPages(book).paths
    read = window.Window(book, paths, Kept(contents, None, Packs(tmp_path)))
    monkeypatch.setattr(window.Window, "_points", None)  # nobody reads them again
    kept = window.Window(book, paths, Kept(contents, None, Packs(tmp_path)))
    assert read.files() == kept.files() == files and any(read.lines.values())


def test_a_picture_is_a_line_by_its_side_and_unknown_has_its_reason():
    wish = dataclasses.replace(made.wishes()[0], sizes=(512, 1024, 2048), usual=1024)
    row = {"weights_bytes": 100, "total_bytes": 150, "error_band": 0.10001}
    none = {key: {"total_bytes": None, "unknown_reason": "x"} for key in wish.columns}
    sides = {512: none | {"resident": row}, 1024: none | {"resident": row | {"total_bytes": 300}}, 2048: none}
    axes = []
    lines, why = made.lines_of(sides, wish, axes, str.upper)
    assert axes == [[512, 1024]] and lines[0] == [0, 100, [0, 0], [50, 150], [0.1001, 0.1001]]
    assert lines[1:] == [None] * (len(wish.columns) - 1) and why == ""  # one way is known
    assert made.lines_of({1024: none}, wish, axes, str.upper) == ([None] * len(wish.columns), "X")


def test_a_repacking_of_a_listed_pipeline_is_no_row_of_its_own():
    """Comfy-Org/vae-text-encorder-for-flux-klein-4b stood among the models that make pictures."""
    models = [{"model_id": n} for n in ("Tongyi-MAI/Z-Image-Turbo", "Comfy-Org/z_image_turbo", "a/Copy", "a/Own")]
    files = object.__new__(made.MadeFiles)
    files.place = {m["model_id"]: i for i, m in enumerate(models)}
    files.book, files.leader = types.SimpleNamespace(models=models), {0: 0, 1: 1, 2: 3, 3: 3}
    files.repacked = made.repacked()
    assert [files.original(m["model_id"]) for m in models] == [*[models[0]["model_id"]] * 2, *["a/Own"] * 2]


def test_a_training_over_awq_or_gptq_is_no_row():
    """The list answered Qwen2.5-3B-Instruct-AWQ as the model that it is packed of; the terminal says that nobody counted that. What is
    published in few bits by its maker, and what is unpacked as it is loaded, stays."""
    formats = {"A/Base-3B-AWQ": "awq-int4", "B/Own-1T": "gptq-int4", "C/Other-4B-FP8": "fp8", "D/Plain-7B": "bf16"}
    rows = [{"dtype_id": d, "engine_id": "vllm", "bits_per_weight": 4} for d in ("awq-int4", "gptq-int4", "fp8")]
    models = [model(name, family=name) | {"stored_format": held} for name, held in formats.items()]

    class Book(dict):
        pass

    asked = object.__new__(window.Window)
    asked.book = Book(dtype=rows)
    asked.book.models, asked.book.works = models, works.Works(models)
    assert [models[i]["model_id"] for i in asked._packed_copies] == ["A/Base-3B-AWQ"]


def test_what_is_made_has_a_size_of_its_own_and_columns_that_are_known(found):
    wishes = made.wishes()
    assert [wish.unit for wish in wishes] == ["pixels", "frames", "seconds", "seconds"]
    formats = {s.dtype_id for s in found.book.scenarios if s.engine_id == made.ENGINE and s.phase_id == "inference"}
    for wish in wishes:
        assert wish.usual in wish.sizes and list(wish.sizes) == sorted(wish.sizes)
        ways = {column.partition(made.PACKED)[0] for column in wish.columns}
        assert ways <= (set(made.PLACEMENTS) if wish.kind == "pipeline" else formats)
        # a size that is asked for in one wish is one of the other that has the same unit: the address holds it for both
        assert all(other.sizes == wish.sizes for other in wishes if other.unit == wish.unit)
    assert not {w.name for w in wishes} & {w.name for w in found.wishes}
