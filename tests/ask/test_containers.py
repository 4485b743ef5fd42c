"""Repositories whose files not every program loads: what is told of them is what those files run in, or says whose figures it is."""

import csv

import duckdb
import pytest

from pipeline import ROOT
from pipeline.ask.containers import in_its_files
from pipeline.ask.problems import Unknown
from pipeline.ask.question import Model, Use
from pipeline.ask.repositories import by_file, known_beside, known_parts
from pipeline.book.commands import TEXT_ALONE, fill, kind, lines
from pipeline.render.pages import containers
from tests.few import COPIES, PACKED, SEEING, TEXT

GGUF, CTRANSLATE2 = COPIES
CARD = ("--gpu", "rtx-4090")


@pytest.fixture
def held(folder):
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:

        def ask(name):
            found = connection.execute("FROM container_of($1)", [name])
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
            assert len(rows) <= 1
            return rows[0] if rows else None

        yield ask


def test_every_container_has_a_source_and_a_rank_of_its_own():
    facts = ROOT / "tables" / "facts"
    rows, sources, engines = (
        list(csv.DictReader((facts / name).read_text(encoding="utf-8").splitlines()))
        for name in ("container.csv", "source.csv", "engine.csv")
    )
    known, run = {row["source_id"] for row in sources}, {row["engine_id"] for row in engines}
    assert len({row["container_rank"] for row in rows}) == len(rows)
    for row in rows:
        assert set(row["source"].split(";")) <= known and row["engine_id"] in run | {""}


@pytest.mark.parametrize(
    ("name", "container"),
    [
        (PACKED, "gguf"),
        (CTRANSLATE2, "ctranslate2"),
        ("someone/Qwen3-8B-GGUF", "gguf"),
        ("Qwen3-8B-Q4_K_M.gguf", "gguf"),
        ("Systran/faster-distil-whisper-small.en", "ctranslate2"),
        ("onnx-community/Qwen3-0.6B-ONNX", "onnx"),
        ("mlx-community/Qwen3-8B-4bit", "mlx"),
        (TEXT, None),
        ("qwen3:8b", None),
        ("OpenVINO/Qwen3-8B-int4-cw-ov", "openvino"),
        ("someone/Qwen3-8B-int8-ov", "openvino"),
        ("lmms-lab/llava-onevision-qwen2-7b-ov", None),  # One Vision, not OpenVINO
        ("someone/conyx-8b", None),
    ],
)
def test_a_container_is_told_by_the_library_or_by_a_word_of_the_name(held, name, container):
    assert (held(name) or {"container_id": None})["container_id"] == container


@pytest.mark.full
def test_files_of_gguf_are_told_in_llama_cpp_alone_and_another_program_by_the_original(ask_json):
    told = ask_json("fits", PACKED, *CARD)
    assert told["formats"] and {row["engine_id"] for row in told["formats"]} == {"llama.cpp"}
    assert f"Of other programs the original is told, {TEXT}." in told["taken"] and "mmproj" not in told["taken"]
    # a repository that the almanac has not, as well
    other = ask_json("fits", "someone/Qwen3-8B-GGUF", *CARD)
    assert [row["total_bytes"] for row in other["formats"]] == [row["total_bytes"] for row in told["formats"]]
    assert any("-hf someone/Qwen3-8B-GGUF:" in line["command"] for line in other["commands"])
    # who names a format or trains has asked for another thing
    assert {row["dtype_id"] for row in ask_json("fits", PACKED, *CARD, "--format", "bf16")["formats"]} == {"bf16"}
    trained = ask_json("fits", PACKED, *CARD, "--phase", "qlora")
    assert trained["model"] == TEXT and "what is trained is the original" in trained["taken"]


@pytest.mark.full
def test_what_a_model_sees_with_is_a_second_file_of_gguf_and_counted(ask_json, held, folder):
    told, whole = (ask_json("fits", name, *CARD, "--format", "Q4_K_M")["formats"][0] for name in (GGUF, SEEING))
    assert told["total_bytes"] == whole["total_bytes"]
    size = held(GGUF)["second_file_bytes"]
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        total = "SELECT weights_bytes FROM footprint_of($1, dtype_id := 'gguf-q4_k_m')"
        (own,), (original,) = (connection.execute(total, [name]).fetchall()[0] for name in (GGUF, SEEING))
    # the formula holds the towers in 16 bits, and pads what is not a whole row
    assert original - own == pytest.approx(size, rel=1e-5) and size > 600_000_000
    taken = ask_json("fits", GGUF, *CARD)["taken"]
    assert f"{size / 2**30:.1f} GiB of these figures" in taken and "--no-mmproj" in taken


def test_a_copy_for_a_program_without_formulas_is_told_as_the_original_that_it_was_made_of(ask_json):
    told = ask_json("fits", CTRANSLATE2, *CARD)
    assert told["model"] == "openai/whisper-tiny"
    assert "for CTranslate2, of which no formula says what it takes" in told["taken"]


class _Almanac:
    """Answers `container_of` alone: of a repository of MLX in one bit."""

    def value(self, _query, _values):
        return False

    def rows(self, query, _values):
        assert query.startswith("FROM container_of")
        row = {"model_id": "a/b-mlx-1bit", "container_id": "mlx", "program_name": "MLX", "engine_id": "mlx-lm"}
        return [row | {"original_id": "a/b", "second_file_bytes": None, "is_whole": True, "is_sensing": False}]


def test_files_in_a_format_that_no_formula_describes_are_not_told_in_another():
    model = Model("a/b-mlx-1bit", "a/b-mlx-1bit", {"pipeline_tag": None}, None, "", "mlx-1bit", is_itself=True)
    with pytest.raises(
        Unknown, match=r"mlx-1bit, which its name speaks of, is no format of this almanac\..* fits a/b$"
    ):
        in_its_files(_Almanac(), "a/b-mlx-1bit", model, Use())


def test_four_bits_with_layers_in_sixteen_are_not_told_as_what_the_original_takes(ask):
    status, out, err = ask("fits", "unsloth/Qwen3-8B-unsloth-bnb-4bit", *CARD)
    assert status == 3 and not out and "layers that Unsloth chose to keep in 16" in " ".join(err.split())
    assert f"vram-almanac fits {TEXT}" in " ".join(err.split())
    assert ask("fits", "unsloth/Qwen3-8B-unsloth-bnb-4bit", *CARD, "--phase", "qlora")[0] in (0, 1)


class _Base:
    def value(self, _query, _values):
        return False

    def rows(self, _query, values):
        return [{"model_id": "a/base", "anatomy_grade": "exact"}] if values.get("base") == "a/base" else []


def test_what_is_an_adapter_or_a_draft_is_told_beside_the_model_that_it_was_made_for():
    assert known_beside(_Base(), "b/unknown, a/base").endswith("vram-almanac fits a/base")
    assert known_beside(_Base(), "b/unknown") == known_beside(_Base(), None) == ""


class _Files:
    def rows(self, _query, _values):
        row = {"file_part": "whole", "of_model_id": None, "file_bytes": None}
        denoiser = {
            "file_name": "split/a.safetensors",
            "file_part": "denoiser",
            "of_model_id": "a/b",
            "file_bytes": 14_300_000_000,
        }
        return [row | denoiser, *(row | {"file_name": f"{n}.pt"} for n in range(7))]


def test_a_repository_of_several_models_is_told_file_by_file():
    told = by_file(_Files(), "a/files")
    assert "a.safetensors (14.3 GB, denoiser of a/b), 2.pt (size not known)" in told and told.endswith("and 2 more")


class _Many:
    def rows(self, _query, _values):
        sizes = {"denoiser": [66, 34, 21, 20], "text_encoder": [51, 27, 16], "vae": [5, 1]}
        rows = [
            {"file_name": f"{part}-{size}", "file_part": part, "of_model_id": None, "file_bytes": size * 10**9}
            for part, of in sizes.items()
            for size in of
        ]
        return sorted(rows, key=lambda row: -row["file_bytes"])


def test_of_many_files_the_smallest_of_each_part_are_told_the_largest_first():
    told = by_file(_Many(), "a/files")
    named = ["text_encoder-27", "denoiser-21", "denoiser-20", "text_encoder-16", "vae-5", "vae-1"]
    assert [told.index(f"{name} (") for name in named] == sorted(told.index(f"{name} (") for name in named)
    assert told.endswith("and 3 more")


class _Parts:
    def rows(self, _query, _values):
        row = {"dtype_id": "bf16"}
        return [
            row | {"pipeline_part": "text_encoder", "weights_bytes": 3 * 2**30},
            row | {"pipeline_part": "vae", "weights_bytes": 2**29},
        ]


def test_of_a_pipeline_that_is_not_known_as_a_whole_the_known_parts_are_told():
    assert (
        known_parts(_Parts(), "a/b")
        == ". Known of its parts, in bf16: text encoder 3.0 GiB, autoencoder 0.5 GiB of weights"
    )
    assert known_parts(_Base(), "a/b") == ""


class _Added:
    def rows(self, _query, _values):
        row = {"file_bytes": 3_536_027_816, "of_model_id": "a/b"}
        control = {"file_name": "c/union.safetensors", "file_part": "controlnet"}
        return [row | control, row | {"file_name": "ae.safetensors", "file_part": "vae", "of_model_id": None}]


def test_what_a_controlnet_takes_comes_on_top_of_the_model_that_it_is_for():
    told = by_file(_Added(), "a/files")
    assert "union.safetensors (3.54 GB, ControlNet for a/b), ae.safetensors (3.54 GB, autoencoder)" in told
    assert told.endswith("What a ControlNet takes comes on top of the model beside: vram-almanac fits a/b")


def test_a_repository_of_mlx_community_holds_what_its_name_says_and_is_not_converted_again():
    assert kind("mlx-community/Llama-3.1-8B-Instruct-4bit", None) == "mlx-4bit"
    assert kind("lmstudio-community/Qwen3-8B-MLX-8bit", None) == "mlx-8bit"
    assert kind("someone/Qwen3-8B-4bit", None) == ""


def test_a_page_says_what_the_files_are_for_and_how_large_the_second_one_is(folder):
    held = containers.read(folder)
    assert set(held) == {PACKED, *COPIES}
    text = [{"tensor_class": "attention"}]
    of_text = containers.told(held[GGUF], text, {SEEING: "Qwen/Qwen3.5-4B"}, True)
    assert of_text["path"] and of_text["second_file_bytes"] == held[GGUF]["second_file_bytes"]
    # where the figures of the page have its towers, nothing comes on top
    assert containers.told(held[GGUF], [*text, {"tensor_class": "vision-tower"}], {}, True)["second_file_bytes"] is None
    assert containers.told(held[PACKED], text, {}, True)["second_file_bytes"] is None
    # what is pasted loads what the figures have
    assert of_text["is_text_alone"] and not containers.told(held[PACKED], text, {}, True)["is_text_alone"]
    (line,) = (line for line in lines() if line["engine"] == "llama.cpp" and line["held"])
    asked = {"context": "8192"}
    alone = fill(line["command"], "gguf-q4_k_m", {"gguf": GGUF}, asked | TEXT_ALONE)
    assert alone.startswith(f"llama-server -hf {GGUF}:Q4_K_M --no-mmproj -c 8192")
    assert "mmproj" not in fill(line["command"], "gguf-q4_k_m", {"gguf": GGUF}, asked)
    assert containers.told(None, text, {}, True) is None
