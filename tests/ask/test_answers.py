"""What fits, what does not and what then helps: as the macros say it, and no number of the command's own."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest

from pipeline.ask import listing
from pipeline.ask.page import Page
from tests.few import EXPERTS, LARGE, PACKED, SEEING, SMALL, TEXT


@pytest.mark.some(1)
@pytest.mark.parametrize(("gpu", "context"), [("rtx-3060-12gb", 8192), ("rtx-4090", 32768), ("m4-16gb", 4096)])
def test_every_format_is_told_as_the_macros_tell_it(ask_json, macro, gpu, context):
    told = ask_json("fits", TEXT, "--gpu", gpu, "--context", context)
    assert len(told["formats"]) > 8
    some = told["formats"][:3] + told["formats"][-2:]
    given = {"g": gpu, "m": TEXT, "c": context} | {
        name: [row[name] for row in some] for name in ("dtype_id", "engine_id")
    }
    said = "(SELECT unnest($dtype_id) AS dtype, unnest($engine_id) AS engine) AS said"
    each = "$g, $m, dtype_id := said.dtype, engine_id := said.engine, context_tokens := $c"
    fits, limits = (
        {
            (one["dtype_id"], one["engine_id"]): one
            for one in macro(f"SELECT told.* FROM {said}, LATERAL (FROM {name}({each})) AS told", **given)
        }
        for name in ("fits_on", "limits_on")
    )
    for row in some:
        one, limit = (those[row["dtype_id"], row["engine_id"]] for those in (fits, limits))
        assert {
            name: row[name] for name in ("total_bytes", "capacity_bytes", "headroom_bytes", "verdict", "engine_setting")
        } == {
            name: one[name] for name in ("total_bytes", "capacity_bytes", "headroom_bytes", "verdict", "engine_setting")
        }
        if limit["max_context_tokens"] is None:
            assert row["max_context_tokens"] is None and row["unknown_reason"]
            continue
        assert 0.98 * limit["max_context_tokens"] - 256 <= row["max_context_tokens"] <= limit["max_context_tokens"]


@pytest.mark.full
def test_the_longest_context_and_the_verdict_never_contradict_each_other(ask_json):
    for context in (1000, 18_000, 18_433, 30_000):
        for row in ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb", "--context", context)["formats"]:
            if row["verdict"] is not None:
                assert (row["verdict"] == "fits") == (row["max_context_tokens"] >= context), row


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("phase", "dtype"), [("lora", "bf16"), ("qlora", "nf4"), ("full-finetune", "bf16"), ("pretrain", "bf16")]
)
def test_training_is_told_as_the_macros_tell_it(ask_json, macro, phase, dtype):
    told = ask_json("fits", SMALL, "--gpu", "rtx-4090", "--phase", phase, "--context", 1024, "--batch", 2)
    row = next(r for r in told["formats"] if r["dtype_id"] == dtype)
    (one,) = macro(
        "FROM fits_on('rtx-4090', $m, phase_id := $p, dtype_id := $d, context_tokens := 1024, sequences := 2, checkpointing := 'full')",
        m=SMALL, p=phase, d=dtype,
    )  # fmt: skip
    assert (row["total_bytes"], row["verdict"]) == (one["total_bytes"], one["verdict"])


def test_the_status_says_whether_it_fits(ask):
    assert ask("fits", TEXT, "--gpu", "rtx-4090")[0] == 0
    assert ask("fits", TEXT, "--gpu", "rtx-3060-12gb", "--format", "bf16")[0] == 1
    # without its margin is not a yes
    status, out, _ = ask("fits", TEXT, "--gpu", "rtx-4090", "--phase", "lora")
    assert status == 1 and out.startswith("Barely:") and "leaves less than its error margin of" in " ".join(out.split())


def test_the_answer_is_the_first_sentence_and_the_command_the_last(ask):
    _, out, _ = ask("fits", TEXT, "--gpu", "rtx-3060-12gb")
    assert out.startswith("Yes: Qwen/Qwen3-8B can run on one GeForce RTX 3060 12GB, best in Q8_0 (llama.cpp): ")
    assert f"  llama-server -hf {PACKED}:Q8_0 -c 8192 -ngl 99 -fa on --parallel 1\n" in out
    assert "\x1b" not in out


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("program", "asked", "words"),
    [
        ("vllm", ("--kv", "fp8"), ("vllm serve Qwen/Qwen3-8B ", " --kv-cache-dtype fp8_e4m3")),
        ("llama.cpp", ("--kv", "q8_0", "--users", 3), (" -c 24576 ", " -ctk q8_0 -ctv q8_0 --parallel 3")),
        ("vllm", ("--users", 3), ("vllm serve Qwen/Qwen3-8B --max-model-len 8192 ",)),
        ("ollama", ("--kv", "q8_0", "--users", 2), (
            "OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_NUM_PARALLEL=2 ollama serve",
        )),
        ("llama.cpp", ("--kv", "q4_0"), (" -c 8192 ", " -fa on -ctk q4_0 -ctv q4_0 --parallel 1")),
    ],
)  # fmt: skip
def test_what_is_pasted_takes_no_more_than_was_told(ask, program, asked, words):
    """A cache in fewer bits is told to whoever is started: by itself it would take one in 16. Where it was left out, a Yes ran out of memory."""
    status, out, _ = ask("fits", TEXT, "--gpu", "rtx-4090", "--program", program, "--context", 8192, *asked)
    assert status == 0
    for word in words:
        assert word in out, out
    assert ("cache" in "".join(words).lower() or "-ctk" in out) == ("--kv" in asked)


def test_no_command_leaves_out_the_format_of_the_cache(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "rtx-4090", "--context", 8192, "--kv", "fp8")
    assert len(told["commands"]) >= 2  # vLLM, and SGLang, which has words of its own for it
    assert all(" --kv-cache-dtype fp8_e4m3" in each["command"] for each in told["commands"])
    # vLLM reads it from 8.0 on; that SGLang does below 8.6 no source says
    older = ask_json("fits", TEXT, "--gpu", "a100-sxm-80gb", "--context", 8192, "--kv", "fp8")
    assert [each["engine"] for each in older["commands"]] == ["vLLM"]
    assert (
        ask_json("fits", TEXT, "--gpu", "rtx-3090", "--context", 8192, "--kv", "fp8", "--program", "sglang")["verdict"]
        == "fits"
    )


def test_a_command_of_sglang_is_told_what_sglang_holds(ask_json):
    """Beside vLLM's it has its own share, and is left out where another server was named."""
    asked = ("fits", TEXT, "--gpu", "rtx-4090", "--format", "bf16", "--context", 8192)
    (beside,) = (line for line in ask_json(*asked)["commands"] if line["engine"] == "SGLang")
    named = ask_json(*asked, "--program", "sglang")
    assert [line["command"] for line in named["commands"]] == [beside["command"]]
    assert set(named["best"]["engine_setting"].split()) <= set(beside["command"].split())
    assert "SGLang" not in {line["engine"] for line in ask_json(*asked, "--program", "vllm")["commands"]}


def test_what_was_said_of_requests_stands_in_every_setting(ask_json):
    told = ask_json("fits", SEEING, "--gpu", "rtx-4090", "--program", "vllm", "--context", 8192, "--max-num-seqs", 1)
    assert all(
        "--max-num-seqs 1" in row["engine_setting"] for row in (told["best"], *told["formats"]) if row["verdict"]
    )
    assert {one["setting"].split()[one["setting"].split().index("--max-num-seqs") + 1] for one in told["settings"]} == {
        "1"
    }


def test_the_margin_of_what_fits_is_said(ask, ask_json):
    asked = ("fits", TEXT, "--gpu", "rtx-4090", "--format", "bf16", "--program", "vllm", "--context", 8192)
    band = ask_json(*asked)["best"]["error_band"]
    assert f"room for its error margin ({100 * band:.0f} %)" in " ".join(ask(*asked)[1].split())


def test_what_does_not_fit_says_what_helps(ask_json, ask, macro):
    told = ask_json("fits", LARGE, "--gpu", "rtx-3060-12gb")
    helps = {help_["help"]: help_ for help_ in told["helps"]}
    assert told["verdict"] == "no" and {"cards", "layers", "smaller"} <= helps.keys()
    (shared,) = macro("FROM layers_that_fit('rtx-3060-12gb', $m)", m=LARGE)
    assert (
        helps["layers"]["gpu_layers"] == shared["gpu_layers"] and helps["layers"]["host_bytes"] == shared["host_bytes"]
    )
    assert helps["smaller"]["model"] == "Qwen/Qwen3-14B"
    (many,) = macro(
        "FROM fits_on('rtx-3060-12gb', $m, dtype_id := $d, gpu_count := $n)",
        m=LARGE, d=helps["cards"]["dtype_id"], n=helps["cards"]["gpu_count"],
    )  # fmt: skip
    assert many["verdict"] == "fits" and many["total_bytes"] == helps["cards"]["total_bytes"]
    _, out, _ = ask("fits", LARGE, "--gpu", "rtx-3060-12gb")
    assert out.startswith("No: ") and f"-ngl {shared['gpu_layers']}" in out and "llama-server" not in out


@pytest.mark.full
def test_a_shorter_context_and_a_small_cache_are_told_where_they_help(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb", "--format", "Q8_0", "--context", 30_000)
    helps = {help_["help"]: help_ for help_ in told["helps"]}
    assert helps["context"]["max_context_tokens"] < 30_000 <= helps["cache"]["max_context_tokens"]
    again = ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb", "--format", "Q8_0", "--context", 30_000, "--kv", "q8_0")
    assert again["verdict"] == "fits" and "-ctk q8_0 -ctv q8_0" in again["commands"][0]["command"]


def test_an_amount_of_memory_stands_for_a_card(ask_json, ask):
    ten, less = (ask_json("fits", TEXT, "--free", size) for size in ("10GiB", "10GB"))
    assert ten["card"]["usable_bytes"] == 10 * 2**30 and less["card"]["usable_bytes"] == 10**10
    assert all(row["capacity_bytes"] == 10**10 for row in less["formats"])
    reach = [
        next(r["max_context_tokens"] for r in told["formats"] if r["dtype_id"] == "gguf-q6_k") for told in (ten, less)
    ]
    assert reach[0] > reach[1] > 0
    _, out, _ = ask("fits", TEXT, "--free", "10GB")
    assert "10GB are 9.3 GiB" in out and "is not asked" in out


def test_what_is_free_of_a_card_is_never_more_than_it_gives(ask_json):
    whole = ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb")
    more = ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb", "--free", "14GiB")
    assert more["formats"] == whole["formats"] and "more is not free" in more["card"]["notes"][0]


@pytest.mark.full
def test_a_server_is_not_pasted_where_its_share_is_not_free(ask_json):
    whole = ask_json("fits", SMALL, "--gpu", "rtx-4090")
    part = ask_json("fits", SMALL, "--gpu", "rtx-4090", "--free", "12GiB")
    assert "vLLM" in {line["engine"] for line in whole["commands"]}
    assert part["verdict"] == "fits" and "vLLM" not in {line["engine"] for line in part["commands"]}


@pytest.mark.full
def test_many_users_take_more(ask_json):
    few, many = (
        ask_json("fits", TEXT, "--gpu", "rtx-4090", "--users", n, "--format", "Q8_0")["formats"][0] for n in (1, 8)
    )
    assert many["total_bytes"] > few["total_bytes"] and many["max_context_tokens"] < few["max_context_tokens"]


def test_what_is_published_in_few_bits_is_not_packed_again(ask_json):
    assert {row["dtype_id"] for row in ask_json("fits", EXPERTS, "--gpu", "rtx-4090")["formats"]} == {
        "gguf-mxfp4",
        "mxfp4",
    }


@pytest.mark.full
def test_what_lists_one_of_each_work_for_the_wish(ask_json, ask):
    told = ask_json("what", "--gpu", "rtx-3060-12gb")
    names = [row["model"] for row in told["models"]]
    assert TEXT in names and PACKED not in names and "BAAI/bge-m3" not in names and LARGE not in names
    assert all(row["verdict"] == "fits" and row["max_context_tokens"] >= 8192 for row in told["models"])
    assert [row["model"] for row in ask_json("what", "--gpu", "rtx-3060-12gb", "--for", "embed")["models"]] == [
        "BAAI/bge-m3"
    ]
    status, out, _ = ask("what", "--free", "300MiB")
    assert status == 1 and out.startswith("Nothing: ")


@pytest.mark.some(1)
@pytest.mark.parametrize("wish", ["chat", "embed", "lora"])
def test_the_line_behind_a_list_tells_of_its_first_model_what_its_row_told(ask_json, ask, wish):
    """(fits tells an embedder in other formats by itself)"""
    asked = ("what", "--gpu", "rtx-3060-12gb", "--for", wish)
    first = ask_json(*asked)["models"][0]
    found = ask_json(*shlex.split(ask(*asked)[1].split("More of one: vram-almanac ")[1].split("\n")[0]))
    told = {(row["dtype_id"], row["total_bytes"]) for row in found.get("formats") or [found["best"]]}
    assert found["model"] == first["model"] and (first["dtype_id"], first["total_bytes"]) in told


def test_what_tells_newer_ones_first_and_of_one_year_the_most_downloaded():
    assert [listing._years(made, "2026-05") for made in ("2026-05", "2025-06", "2025-04", "2024-04", None)] == [
        0,
        0,
        1,
        2,
        10**6,
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize("model", [EXPERTS, TEXT])
def test_formats_that_leave_experts_in_16_bits_say_so(ask_json, ask, macro, model):
    """Mixtral in nf4 takes 90 GiB and not the 26 that older versions took: a No without a word of it was not believed."""
    told = ask_json("fits", model, "--gpu", "rtx-4090", "--all")
    asked = "SELECT dtype_id, expert_bytes FROM weight WHERE model_id = $model AND expert_bytes > 0"
    held = {row["dtype_id"]: row["expert_bytes"] for row in macro(asked, model=model)}
    whole = [name for name in ("int8", "nf4") if held and held.get(name) == held["bf16"]]
    assert told.get("whole_experts", {"dtype_ids": []})["dtype_ids"] == whole
    assert (
        "its experts stay in 16 bits" in " ".join(ask("fits", model, "--gpu", "rtx-4090", "--all")[1].split())
    ) == bool(whole)


def test_lines_are_as_narrow_as_the_terminal_but_for_what_is_pasted(ask, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    _, out, _ = ask("fits", TEXT, "--gpu", "rtx-3060-12gb")
    wide = [line for line in out.splitlines() if len(line) > 50]
    assert wide and all(re.match(r"  (llama-server|OLLAMA|vllm|python|--max-model-len) ?", line) for line in wide), wide
    assert "runs in" not in out


def test_colours_are_for_terminals(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Page(Terminal()).coloured("yes", "fits") == "\x1b[32myes\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Page(Terminal()).coloured("yes", "fits") == "yes"


def test_no_number_is_worked_out_here():
    """Memory is what the macros say: the command's own text multiplies no bytes by tokens, layers or parameters."""
    from pathlib import Path

    text = "\n".join(path.read_text(encoding="utf-8") for path in Path(listing.__file__).parent.glob("*.py"))
    assert not re.search(r"_bytes\"?\]? *\*|\* *\w+_bytes|hidden_size|kv_heads|element_bits", text)


@pytest.mark.full
def test_qlora_is_told_in_nf4_first(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "rtx-4090", "--phase", "qlora")
    assert told["best"]["dtype_id"] == told["formats"][0]["dtype_id"] == "nf4"


def test_a_card_that_does_not_run_bf16_is_told_of_fp16(ask_json):
    """Below compute capability 8.0 bf16 has no fused attention in PyTorch: fp16 has. Elsewhere both are the same."""
    old, new = (ask_json("fits", TEXT, "--gpu", f"2x{card}")["formats"] for card in ("quadro-rtx-8000", "rtx-4090"))
    sixteen = lambda rows: {row["dtype_id"]: row["verdict"] for row in rows if row["engine_id"] == "transformers"}  # noqa: E731
    assert sixteen(old)["fp16"] == "fits" and "bf16" not in sixteen(old)
    assert sixteen(new)["bf16"] == "fits" and "fp16" not in sixteen(new)


@pytest.mark.full
def test_a_length_may_be_said_in_thousands(ask_json, ask):
    for said, meant in (("4k", 4096), ("16K", 16_384), ("4,096", 4096)):
        told = ask_json("fits", TEXT, "--gpu", "rtx-4090", "--context", said)
        assert {row["context_tokens"] for row in told["formats"]} == {meant}
    assert ask("fits", TEXT, "--context", "4kk")[0] == 2


def test_of_a_format_the_engine_that_takes_less_and_reaches_as_far_is_the_best(ask_json):
    """Told first, and in its own column: the one that takes more stands behind."""
    told = ask_json("fits", TEXT, "--gpu", "rtx-4090", "--context", "32768")["formats"]
    of_bf16 = [row for row in told if row["dtype_id"] == "bf16"]
    assert len(of_bf16) > 1
    for first, later in itertools.pairwise(of_bf16):
        is_worse = (
            later["total_bytes"] < first["total_bytes"] and later["max_context_tokens"] >= first["max_context_tokens"]
        )
        assert not is_worse
    assert of_bf16[0]["engine_id"] == "vllm"  # (22.2 GiB up to 28,848 tokens, 25.0 up to 23,304 in Transformers)
