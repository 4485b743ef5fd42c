"""What the formulas' files promise: a header that says what, in which units, from where and what not, a form that is read with ease, and
a language all readers know."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.press.formulas import SQL, sql_files
from tests.cases import in_case

FILES = sql_files()
QUESTIONS = Path(__file__).parents[1] / "golden" / "asked"
LONGEST_LINE, LONGEST_PIECE = 120, 45
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_MACRO = re.compile(
    r"CREATE OR REPLACE MACRO (?P<name>\w+)\((?P<parameters>[^)]*)\) AS(?P<table> TABLE)?(?P<body>.*?);\n", re.DOTALL
)

# Numbers that a formula may say by itself: how many tensors or copies there are, bytes and bits of an element.
SMALL = {0, 1, 2, 3, 4, 8, 16}
UNITS, DEFAULTS, GRID = "binary units", "what an argument is where nobody says", "places of a search"
COPIES, LAYOUT = "copies and bytes an element that the oracles count", "places in a code of several parts"
# All others are lines of tables/facts/constant.csv with their source, but for these, by file and with the reason.
SAID = {
    "activations/images/image_tokens.sql": (
        {0.5, 1.1, 5e-8, 63, 64, 10_000_000},
        f"rounding of the processors; {LAYOUT}",
    ),
    "activations/inference/exllamav3.sql": (
        {6, 10, 14, 1_048_576},
        f"{COPIES}, in bytes of 16 and 32 bits; bytes of a mebibyte",
    ),
    "activations/inference/exllamav3_first.sql": (
        {6, 10, 1_048_576},
        f"{COPIES}, in bytes of 16 and 32 bits; bytes of a mebibyte",
    ),
    "activations/inference/llama_cpp.sql": ({6}, COPIES),
    "activations/inference/mlx.sql": ({64, 80, 128}, "widths of heads that MLX has fused kernels for"),
    "activations/inference/transformers.sql": ({5, 6, 10, 12}, COPIES),
    "activations/training/attention.sql": ({5, 12, 14, 256}, f"{COPIES}; the widest head of PyTorch's fused attention"),
    "activations/training/feed_forward.sql": ({40, 1e30}, f"{COPIES}; no bound"),
    "activations/training/kept.sql": ({6}, COPIES),
    "activations/training/loss.sql": ({6}, COPIES),
    "activations/training/moments.sql": ({5, 6}, COPIES),
    "activations/training/norms.sql": ({12}, COPIES),
    "activations/training/own_blocks.sql": ({6}, COPIES),
    "capacity/limits.sql": ({1.0001}, "steeper by more than numbers are rounded"),
    "ask/engine_setting.sql": ({100, 1000, 1048576}, f"shares are told in hundredths and thousandths; {UNITS}"),
    "ask/fits_in.sql": ({53, 256, 1048576}, f"{GRID}: four an octave from 256 tokens on"),
    "ask/fits_together.sql": ({1048576}, UNITS),
    "ask/gpu_named.sql": ({1073741824}, UNITS),
    "ask/on_several_gpus.sql": ({24, 32, 64, 256, 1024, 8192, 32768, 131072, 1048576}, f"{DEFAULTS}; {GRID}"),
    "ask/preference_fits_on.sql": ({100, 1048576, 1073741824}, f"shares are told in hundredths; {UNITS}"),
    "ask/repository_of.sql": (
        {5, 6, 7, 5e4, 5e5, 5e7, 5e8, 1e7, 1e9, 1e10, 1e12},
        "half a digit of a listed size; known models before the most downloaded; places",
    ),
    "ask/speculative_of.sql": ({1048576}, UNITS),
    "ask/speech_of.sql": ({30, 512}, DEFAULTS),
    "ask/what_fits.sql": ({8192}, DEFAULTS),
    "ask/what_fits_beside.sql": ({8192}, DEFAULTS),
    "capacity/cpu_split.sql": (
        {1.001, 8192},
        f"layers that are not told apart miss more than a thousandth; {DEFAULTS}",
    ),
    "capacity/system.sql": ({1024, 1048576}, UNITS),
    "capacity/capacity.sql": ({1024, 1048576, 1000000}, f"{UNITS}; a rank"),
    "model/allocation.sql": ({64}, "two bytes of scales for each group of 128"),
    "model/towers.sql": ({64}, GRID),
    "overhead/overhead.sql": ({1048576}, UNITS),
    "pipelines/pipeline_fits_on.sql": ({1024}, DEFAULTS),
    "pipelines/pipeline_training.sql": ({1024}, DEFAULTS),
    "pipelines/pipelines.sql": ({1024}, DEFAULTS),
    "scenario/versions.sql": ({1000000.0}, "places of a version"),
    "scenario/scenarios.sql": ({128, 2048, 8192}, DEFAULTS),
    "ask/own_context_of.sql": ({1024}, UNITS),
    "plans/machine.sql": ({24, 1024, 1e9}, f"bytes a token of the sums of divided layers; {UNITS}; GB"),
    "plans/serving.sql": ({12, 32, 64, 1000, 8192}, f"{DEFAULTS}; {GRID}; kW"),
    "plans/techniques.sql": ({2048, 1e9, 1e12}, f"{DEFAULTS}; GB and 10^12 operations a second"),
    "plans/training.sql": (
        {
            0.25,
            0.5,
            0.75,
            5,
            6,
            7,
            24,
            32,
            48,
            64,
            96,
            128,
            192,
            256,
            384,
            512,
            768,
            1000,
            1024,
            2048,
            3600,
            4096,
            8192,
            16384,
            1e12,
        },
        f"{GRID}: cards that are tried; quartiles; hours, kW and 10^12 operations",
    ),
    "sharding/plans.sql": ({5, 32, 64, 128, 256, 512, 1024, 16384}, f"{GRID}; a rank"),
    "speed/likely.sql": ({1e6, 1e9, 1e12}, "microseconds; GB and 10^12 operations a second"),
    "speed/speed.sql": ({8192, 1e9, 1e12}, f"{DEFAULTS}; GB and 10^12 operations a second"),
    "weights/gguf.sql": ({7, 80}, "llama.cpp's own rules for layers"),
}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")


def test_each_file_opens_with_its_formula_units_source_and_limits():
    for path in FILES:
        with in_case(path.name):
            text = path.read_text(encoding="utf-8")
            header = text[: text.index("\nCREATE")]
            assert header.startswith("-- ")
            if path.stem != "words":
                for word in ("Unit", "Source", "Not covered"):
                    assert word in header, f"{path.name} does not say its {word.lower()}"


def test_no_word_that_older_readers_take_for_syntax():
    """`if(...)` is a function since DuckDB 2 and syntax before: macros that hold it cannot be read by DuckDB 1.x."""
    for path in FILES:
        with in_case(path.name):
            code = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
            assert not re.search(r"(?<![a-z_])if\(", code)


def test_no_line_is_wider_than_a_screen():
    for path in [*FILES, *sorted(QUESTIONS.glob("*.sql"))]:
        with in_case(path.name):
            lines = path.read_text(encoding="utf-8").split("\n")
            assert not [f"{path.name}:{n}" for n, line in enumerate(lines, 1) if len(line) > LONGEST_LINE]


def test_no_letter_stands_for_a_thing():
    """A parameter, an alias, a column or a variable of a lambda has a whole word for its name."""
    for path in FILES:
        with in_case(path.name):
            code = _NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
            assert not re.findall(r"\b[A-Za-z]\b", code)


def test_no_macro_and_no_step_of_one_is_longer_than_a_reader_holds():
    """A macro that answers with a table is a row of steps, each of which is read by itself."""
    for path in FILES:
        with in_case(path.name):
            long = []
            for found in _MACRO.finditer(path.read_text(encoding="utf-8")):
                pieces = (
                    re.split(r"\n(?= *\),?$)", found["body"], flags=re.MULTILINE) if found["table"] else [found["body"]]
                )
                long += [found["name"] for piece in pieces if piece.strip("\n").count("\n") >= LONGEST_PIECE]
            assert not long


def test_no_number_stands_in_a_formula_that_is_a_fact():
    """A number of an engine, a card or a fit is a row with its source."""
    for path in FILES:
        with in_case(path.name):
            found = {float(n) for n in _NUMBER.findall(_NO_CODE.sub(" ", path.read_text(encoding="utf-8")))} - SMALL
            allowed, why = SAID.get(path.relative_to(SQL).as_posix(), (set(), "none"))
            assert found - allowed == set(), "a line of constant.csv, with its source"
            assert allowed - found == set(), f"no longer there: {why}"
