"""What a card runs with a part of it in the computer's memory, as a list: each as layers_that_fit has it, and none where that is not known."""

from __future__ import annotations

import shlex

import duckdb
import pytest

from pipeline.base.readonly import reading
from pipeline.press import build
from tests import few

CARD = ("what", "--gpu", "rtx-3060-12gb")
WAYS = """
    FROM (SELECT DISTINCT model_id, dtype_id, error_band FROM cpu_split) AS said,
        LATERAL (FROM layers_that_fit($card, said.model_id, dtype_id := said.dtype_id, context_tokens := 8192)) AS way
    SELECT way.*, said.model_id AS model, said.dtype_id AS dtype, said.error_band AS own_band
"""
WAY = "FROM layers_that_fit($card, $model, dtype_id := $dtype, context_tokens := $context)"


@pytest.fixture
def book(alone, monkeypatch):
    """The small almanac that has published figures: how many layers go where is a table."""
    monkeypatch.setenv("VRAM_ALMANAC", str(few.layered()))
    with reading(few.layered() / build.DATABASE) as connection:
        yield connection


def rows(book, query, **given):
    found = book.execute(query, given)
    return [dict(zip((column[0] for column in found.description), row, strict=True)) for row in found.fetchall()]


def same(book, card, one):
    """Whether a way is that of layers_that_fit: as many layers or experts, as many bytes."""
    asked = {"card": card, "model": one["model"], "dtype": one["dtype_id"], "context": one["context_tokens"]}
    (way,) = rows(book, WAY, **asked)
    place = "cpu_expert_" if one["cpu_expert_layers"] else ""
    layers = one["cpu_expert_layers"] or one["gpu_layers"]
    told = [way["cpu_expert_layers" if place else "gpu_layers"], way[f"{place}gpu_bytes"], way[f"{place}host_bytes"]]
    return told == [layers, one["gpu_bytes"], one["host_bytes"]]


@pytest.mark.full
def test_what_runs_with_ram_is_listed_beneath_what_fits_whole(book, ask, ask_json):
    told = ask_json(*CARD, "--ram", "64GB")
    whole, beside = {one["model"] for one in told["models"]}, told["beside"]["models"]
    assert few.TEXT in whole and not whole & {one["model"] for one in beside}
    first, dense = beside  # mixtures come first: their experts in RAM cost least
    assert first["model"] == few.EXPERTS and first["flags"] == f"-ngl 99 --n-cpu-moe {first['cpu_expert_layers']}"
    assert dense["model"] == few.LARGE and dense["flags"] == f"-ngl {dense['gpu_layers']}"
    assert dense["dtype_id"] == "gguf-q8_0"  # the best that both hold
    assert same(book, "rtx-3060-12gb", first) and same(book, "rtx-3060-12gb", dense)
    assert told["beside"]["mixtures"] == 1 and told["beside"]["fitting"] == 2
    out = " ".join(ask("what", "3060", "12gb", "64gb", "ram")[1].split())
    assert "With 64.0 GiB of RAM 2 others run in llama.cpp" in out and first["flags"] in out
    assert "beside" not in ask_json(*CARD) and "of RAM" not in ask(*CARD)[1]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options",
    [
        ("--ram", "64GB", "--users", "2", "--kv", "q8_0"),
        ("--context", "4096", "--users", "4", "--kv", "q8_0", "--format", "Q4_K_M"),
        ("--for", "qlora"),
    ],
)
def test_more_of_one_asks_for_it_as_the_list_was_asked(book, ask, ask_json, options):
    """The line that is pasted next tells of the model what its row told."""
    told = ask_json(*CARD, *options)
    again = ask(*CARD, *options)[1].split("More of one: vram-almanac ")[1].split("\n")[0]
    found = ask_json(*shlex.split(again))
    if "--ram" in options:
        first = told["beside"]["models"][0]
        assert (found["model"], found["beside"]["host_bytes"]) == (first["model"], first["host_bytes"])
    else:
        first = told["models"][0]
        sizes = {row["total_bytes"] for row in found.get("formats", [found["best"]])}
        assert found["model"] == first["model"] and first["total_bytes"] in sizes


def test_too_little_ram_takes_a_smaller_format_or_nothing(book, ask_json):
    """What the computer needs for itself is left out of it, and the error margin is kept."""
    most = ask_json(*CARD, "--ram", "64GB")["beside"]["models"][1]
    takes = next(  # to a tenth of a GiB
        ram for ram in range(10, 640)
        if most["host_bytes"] * 1.01 + 4 * 2**30 <= ram / 10 * 2**30
    )  # fmt: skip
    less = {one["model"]: one for one in ask_json(*CARD, "--ram", f"{takes / 10 - 1}GB")["beside"]["models"]}
    assert less[few.LARGE]["dtype_id"] != most["dtype_id"] and less[few.LARGE]["host_bytes"] < most["host_bytes"]
    assert ask_json(*CARD, "--ram", "4GB")["beside"]["models"] == []


def test_at_another_context_mixtures_are_told_and_dense_models_are_not(book, ask, ask_json):
    told = ask_json(*CARD, "--ram", "64GB", "--context", 32768)
    (one,) = told["beside"]["models"]
    assert one["model"] == few.EXPERTS and one["context_tokens"] == 32768 and same(book, "rtx-3060-12gb", one)
    said = " ".join(ask(*CARD, "--ram", "64GB", "--context", 32768)[1].split())
    assert "Dense models are not listed so; fits asks for one." in said


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("--gpu", "2xrtx-3060-12gb"), "how several cards share a model with the CPU is not worked out"),
        (("--gpu", "apple-m4-16gb"), "its memory is the computer's, and there is no other to share a model with"),
        (("--gpu", "rtx-3060-12gb", "--for", "lora"), "sharing with the CPU is worked out for llama.cpp"),
    ],
)
def test_where_ram_is_not_counted_the_reason_is_told(book, ask_json, asked, reason):
    told = ask_json("what", *asked, "--ram", "64GB")["beside"]
    assert told["models"] == [] and told["unknown_reason"] == reason


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("card", "gib"), [("rtx-3060-12gb", 64), ("rtx-3060-12gb", 20), ("rtx-4060", 32), ("rtx-4090", 32)]
)
def test_the_macro_lists_just_what_one_model_says(book, card, gib):
    """what_fits_beside has every published scenario that layers_that_fit shares and that so much memory takes, and no other."""
    named = rows(book, f"FROM what_fits_beside('{card}', {gib} * 1024 ** 3, context_tokens := 8192)")
    ways = rows(book, WAYS, card=card)  # in one question: planning it takes longest
    assert len(ways) > 15
    taken = {}
    for way in ways:
        place = "" if way["cpu_expert_layers"] is None else "cpu_expert_"
        is_shared = bool(way["gpu_layers"]) and way["gpu_layers"] <= way["layer_count"]
        if is_shared and way[f"{place}host_bytes"] * (1 + way["own_band"]) <= (gib - 4) * 2**30:
            layers = way["cpu_expert_layers"] or way["gpu_layers"]
            taken[way["model"], way["dtype"]] = (layers, way[f"{place}gpu_bytes"], way[f"{place}host_bytes"])
    assert {
        (one["model_id"], one["dtype_id"]): (
            one["cpu_expert_layers"] or one["gpu_layers"],
            one["gpu_bytes"],
            one["host_bytes"],
        )
        for one in named
    } == taken
    dense = [one["cpu_expert_layers"] is None for one in named]
    assert taken and dense == sorted(dense)


def test_of_a_part_of_a_card_no_more_is_taken(book):
    (half,) = rows(
        book,
        "FROM what_fits_beside('rtx-4090', 64 * 1024 ** 3, dtype_id := 'gguf-mxfp4', free_bytes := 8 * 1024 ** 3)",
    )
    assert half["model_id"] == few.EXPERTS and half["gpu_bytes"] <= 8 * 2**30
    assert not rows(book, "FROM what_fits_beside('m4-max-128gb', 64 * 1024 ** 3)")


def test_a_context_that_is_not_published_is_an_error_and_no_empty_list(book):
    with pytest.raises(duckdb.Error, match="context_tokens := 10000 is not published"):
        rows(book, "FROM what_fits_beside('rtx-4090', 64 * 1024 ** 3, context_tokens := 10000)")
