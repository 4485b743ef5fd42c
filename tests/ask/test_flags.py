"""A figure holds with what its program is told: no "fits" stands without it, be it in a command or by itself."""

import re

import pytest

from pipeline.ask.helps import commands_of
from pipeline.ask.question import Model
from tests.few import SEEING, SMALL, TEXT

ASKED = [
    (SEEING, "--gpu", "rtx-4090", "--format", "fp8", "--context", 8192),
    (SEEING, "--gpu", "rtx-3090", "--program", "vllm", "--kv", "fp8", "--context", "32k"),
    (TEXT, "--gpu", "rtx-4090", "--program", "vllm", "--format", "bf16", "--context", 32768),
    (TEXT, "--gpu", "rtx-4060-8gb", "--kv", "q8_0"),
]


@pytest.mark.some(2)
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: " ".join(map(str, asked)))
def test_what_a_program_has_to_be_told_stands_in_the_answer(ask, ask_json, asked):
    told, (_, said, _) = ask_json("fits", *asked), ask("fits", *asked)
    pasted = [line.split() for line in said.splitlines() if line.startswith("  ") and "--" in line]
    best = told["best"]
    assert told["verdict"] in ("fits", "tight") and best["engine_setting"]
    for row in told["formats"]:
        if row["verdict"] == told["verdict"] == "fits" or row == best:
            # (the format of a cache is told by one command in words of its own)
            assert any(set((row["engine_setting"] or "").split()) <= set(words) for words in pasted), row
    if not told["commands"]:
        assert "It has to be started with the flags below." in " ".join(said.split())


def test_a_server_that_is_shown_no_command_is_told_of_the_context(ask):
    _, said, _ = ask("fits", TEXT, "--gpu", "rtx-4090", "--format", "fp8", "--context", 4096, "--users", 16)
    assert "fp8 in vLLM is started with:\n  --max-model-len 4096" in said


@pytest.mark.full
def test_defaults_that_are_not_counted_are_not_said_to_be(ask):
    """vLLM runs 1,024 requests and reads 8,192 tokens at a time on large cards, 256 and 2,048 on others."""
    asked = ("fits", TEXT, "--format", "bf16", "--program", "vllm", "--context", 8192, "--gpu")
    for card, more in (
        ("h100-sxm", ", whatever its defaults are"),
        ("rtx-5090", ". By itself it reads 2,048 on this card"),
    ):
        said = " ".join(ask(*asked, card)[1].split())
        assert f"Counted are 256 requests at once and 8,192 tokens in a step{more}" in said
    seeing = ask("fits", SEEING, "--gpu", "rtx-4090", "--format", "bf16", "--program", "vllm", "--context", 8192)[1]
    assert "started with the flags below; what else was not said is its own default." in " ".join(seeing.split())


@pytest.mark.full
def test_the_share_of_a_card_that_others_hold_a_part_of_is_of_the_whole_card(ask, ask_json, macro):
    """vLLM takes 90 % of the card by itself, and does not start where so much is not free."""
    asked = ("fits", TEXT, "--gpu", "rtx-4090", "--free", "20GiB", "--format", "bf16", "--context", 2048)
    best = ask_json(*asked, "--program", "vllm")["best"]
    (card,) = macro("FROM gpu WHERE gpu_id = 'rtx-4090'")
    said = ask(*asked, "--program", "vllm")[1]
    (told,) = (line for line in said.splitlines() if line.startswith("  --"))
    assert told.split()[:3] == ["--max-model-len", "2048", "--gpu-memory-utilization"]
    share = float(told.split()[3])
    assert best["total_bytes"] <= share * card["whole_bytes"] <= 20 * 2**30


def test_of_memory_that_a_system_shares_the_share_is_of_all_of_it(ask_json, macro):
    """GB10: 121.7 GiB, of which 101.2 were seen free. vLLM's own 0.92 of it is more than that, and so is what 0.9 is."""
    (card,) = macro("FROM gpu WHERE gpu_id = 'gb10'")
    asked = ("fits", TEXT, "--gpu", "gb10", "--format", "bf16", "--context", 2048)
    whole = ask_json(*asked)
    (command,) = (line["command"].split() for line in whole["commands"] if line["engine"] == "vLLM")
    share = float(command[command.index("--gpu-memory-utilization") + 1])
    assert (
        whole["formats"][0]["total_bytes"]
        < share * card["whole_bytes"]
        < card["capacity_bytes"]
        < 0.9 * card["whole_bytes"]
    )
    part = ask_json(*asked, "--program", "vllm", "--free", "40GiB")
    words = part["settings"][0]["setting"].split()
    share = float(words[words.index("--gpu-memory-utilization") + 1])
    assert part["best"]["total_bytes"] <= share * card["whole_bytes"] <= 40 * 2**30


def test_what_is_not_known_of_the_card_is_left_to_the_reader(ask):
    said = ask("fits", SMALL, "--free", "6GiB", "--format", "bf16", "--context", 2048)[1]
    assert (
        "--max-model-len 2048 --gpu-memory-utilization SHARE" in said
        and "of the whole card, which nobody named" in said
    )


def test_a_server_on_several_cards_is_told_how_many(ask):
    said = ask("fits", TEXT, "--gpu", "2xrtx-3090", "--format", "awq-int4", "--users", 8)[1]
    assert "awq-int4 in vLLM is started with:\n  --max-model-len 8192 --tensor-parallel-size 2" in said


class _Nothing:
    def rows(self, *_given):
        return []

    def value(self, *_given):
        return False


@pytest.mark.parametrize(
    ("name", "stored_format", "named", "has_command"),
    [
        ("some/Model-31B", None, None, True),
        ("some/Model-31B", "fp32", None, False),
        ("some/Model-31B-GGUF", None, None, False),
        ("some/Model-31B-Int8", None, "int8", False),
    ],
)
def test_files_that_nobody_read_are_started_in_16_bits_with_a_word(name, stored_format, named, has_command):
    """Of half of all models no source says what their files are in; a name that speaks of no format is the maker's own repository."""
    row = {
        "dtype_id": "bf16", "engine_id": "vllm", "verdict": "fits", "share_is_free": True, "sequences": 1, "context_tokens": 4096,
        "engine_setting": "--gpu-memory-utilization 0.94 --max-num-seqs 256", "kv_dtype_id": "bf16",
    }  # fmt: skip
    model = Model(
        name, name, {"stored_format": stored_format, "pipeline_tag": "text-generation", "library": None}, dtype_named=named
    )  # fmt: skip
    found = commands_of(_Nothing(), model, [row], 1)
    assert bool(found) is has_command
    for one in found:
        assert one["command"].startswith(f"vllm serve {name} ") and one["command"].endswith(" --max-num-seqs 256")
        assert "No source here says what its files are in" in one["note"]


@pytest.mark.full
@pytest.mark.parametrize("name", ["RedHatAI/Qwen3-8B-speculator.eagle3", "redhatai/qwen3-8b-SPECULATOR.eagle3"])
def test_a_head_that_drafts_is_asked_by_its_name(ask, ask_json, macro, name):
    told = ask_json("fits", TEXT, "--gpu", "rtx-5090", "--draft", name)
    query = "SELECT total_bytes FROM speculative_of($m, $d, engine_id := 'vllm', dtype_id := 'bf16')"
    (row,) = macro(query, m=TEXT, d="RedHatAI/Qwen3-8B-speculator.eagle3")
    assert (told["verdict"], told["drafted"]["engine_id"]) == ("fits", "vllm")
    assert told["drafted"]["total_bytes"] == row["total_bytes"]
    said = ask("fits", TEXT, "--gpu", "rtx-5090", "--draft", name, "--program", "sglang")[1]
    assert "  --context-length 8192 --speculative-algorithm EAGLE3 " in said and "HEAD" not in said


@pytest.mark.full
def test_a_server_that_drafts_on_several_cards_is_told_how_many_and_its_requests(ask):
    """A request of a model with recurrent layers holds a state for each drafted token, too."""
    said = ask("fits", SEEING, "--gpu", "2xrtx-3060-12gb", "--draft", "mtp", "--program", "vllm", "--context", 8192)[1]
    alone = ask("fits", SEEING, "--gpu", "2xrtx-3060-12gb", "--program", "vllm", "--format", "bf16", "--context", 8192)[
        1
    ]
    assert "--tensor-parallel-size 2" in said and "--limit-mm-per-prompt" in said
    drafted, plain = (int(text.partition("--max-num-seqs ")[2].split()[0]) for text in (said, alone))
    assert 1 <= drafted < plain


@pytest.mark.full
def test_a_head_is_asked_of_what_runs_it_and_of_its_own_model(ask):
    head = "RedHatAI/Qwen3-8B-speculator.eagle3"
    status, said, _ = ask("fits", TEXT, "--gpu", "rtx-5090", "--draft", head, "--program", "llama.cpp")
    assert status == 3 and "it is of sglang, vllm" in " ".join(said.split())
    status, said, _ = ask("fits", SMALL, "--gpu", "rtx-5090", "--draft", head)
    assert status == 3 and f"{head} is a head for {TEXT}" in " ".join(said.split())


@pytest.mark.full
def test_barely_says_by_how_much(ask, ask_json, macro):
    query = """SELECT said.tokens FROM unnest(range(6000, 12001, 1000)) AS said(tokens), LATERAL (FROM speculative_fits_on('rtx-4090', $m, $d,
        dtype_id := 'bf16', draft_dtype_id := NULL, engine_id := 'vllm', context_tokens := said.tokens)) WHERE verdict = 'tight' ORDER BY 1"""
    (tight, *_) = macro(query, m=TEXT, d=SMALL)  # or nothing is asked here
    asked = ("fits", TEXT, "--gpu", "rtx-4090", "--draft", SMALL, "--format", "bf16", "--program", "vllm", "--context")
    assert ask_json(*asked, tight["tokens"])["verdict"] == "tight"
    said = " ".join(ask(*asked, tight["tokens"])[1].split())
    assert re.search(r"which leaves less than its error margin of [1-9]\d? %", said)
