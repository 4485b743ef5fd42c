"""Reasons are texts of the formulas: what the terminal prints of them is in its own words."""

import csv
import io
import re

import pytest

from pipeline import ROOT
from pipeline.ask.arguments import parser
from pipeline.ask.page import Page
from pipeline.ask.sql_words import OPTIONS, plain

_TEXT = re.compile(r"'((?:[^']|'')*)'")


def _reasons():
    """Every text of the formulas that speaks of an argument, with a value where it is put in."""
    for path in sorted((ROOT / "tables" / "sql").rglob("*.sql")):
        code = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        for text in (found.replace("''", "'") for found in _TEXT.findall(code)):
            if " := " in text and "\n" not in text:
                yield "sequences" * text.startswith(" := ") + text + "8" * text.endswith(":= ")


def test_no_reason_that_is_printed_points_to_a_macro():
    """Nor does one of a program."""
    with (ROOT / "tables" / "facts" / "program.csv").open(encoding="utf-8", newline="") as file:
        reasons = {*_reasons(), *(row["unknown_reason"] for row in csv.DictReader(file))}
    assert any("pipeline_of(" in text for text in reasons)
    assert not [text for text in map(plain, reasons) if re.search(r"[a-z]_of\(|_stages\(", text)]


def test_no_reason_that_is_printed_has_words_of_sql():
    reasons = set(_reasons())
    assert len(reasons) > 60
    page = Page(io.StringIO())
    for text in reasons:
        page.say(text)
    assert ":=" not in page.text()


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("how DPO is shared among GPUs is known of sharding := ddp, zero1", "how DPO is shared among GPUs is known of --sharding ddp, zero1"),
        ("known: program := trl, program_version := 1.8 to 1.13", "known: --program trl, version 1.8 to 1.13"),
        ("known: program_version := 0.11", "known: version 0.11"),
        ("not described; pipeline_of(model_id) is what diffusers holds", "not described; what diffusers holds is told where no program is named"),
        ("loss := tiled is counted on one GPU or under sharding := ddp", "loss tiled is counted on one GPU or under --sharding ddp"),
        ("a picture is one sequence here: sequences := n", "a picture is one sequence here: --users N"),
        ("dtype_id := 'mlx-4bit' and its kin say what MLX LM holds", "--format mlx-4bit and its kin say what MLX LM holds"),
        ("not every vLLM of these sleeps: expandable_segments := false", "not every vLLM of these sleeps: expandable segments off"),
        ("64 attention heads do not divide by tensor_parallel 6", "64 attention heads do not divide by 6 cards: --program vllm --tensor-parallel 2 --pipeline-parallel 3"),
        ("pipeline_parallel: more stages than the 36 layers", "more stages than the 36 layers"),
        ("8 KV heads and tensor_parallel 3 do not divide", "8 KV heads and 3 cards do not divide"),
        ("64 attention heads do not divide by tensor_parallel 7", "64 attention heads do not divide by 7 cards: --program vllm --tensor-parallel 1 --pipeline-parallel 7"),
        ("some of its matrices are packed otherwise (table engine_gap)", "some of its matrices are packed otherwise"),
    ],
)  # fmt: skip
def test_arguments_are_said_as_options_or_plainly(reason, told):
    assert plain(reason) == told and plain(told) == told


def test_every_option_is_one_that_fits_takes():
    helped = io.StringIO()
    fits = next(a for a in parser("x")._actions if a.choices).choices["fits"]
    fits.print_help(helped)
    assert not [option for option in OPTIONS.values() if f"{option} " not in helped.getvalue()]
