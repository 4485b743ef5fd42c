"""Copies that were packed by others than most: what they may hold beyond it is in the margin, and words say so."""

import duckdb
import pytest

from tests.few import EXPERTS, TEXT


@pytest.fixture
def macro(folder):
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        yield lambda query, *values: connection.execute(query, values).fetchall()


def test_what_an_unlisted_repository_may_hold_beyond_its_base_is_told(macro):
    """Where all known ways agree it is nothing; a maker that is known to pack in groups of 32 has more, and what its type tells has no such column."""
    asked = "SELECT more_bytes, more_reason FROM repository_of($1)"
    assert macro(asked, "someone/Qwen3-8B-AWQ") == [(0, None)]
    ((more, reason),) = macro(asked, "cyankiwi/Qwen3-8B-AWQ")
    assert more > 0 and "groups of 32" in reason
    ((more, reason),) = macro(asked, "someone/gpt-oss-20b-AWQ")
    assert more > 0 and "all but the routed experts in 16 bits" in reason
    for name in ("Qwen3-8B-Q4_K_M.gguf", "qwen3:8b", "unsloth/Qwen3-8B-bnb-4bit", TEXT):
        assert macro(asked, name) == [(None, None)]


@pytest.mark.full
def test_a_verdict_that_the_rest_decides_is_no_yes(macro):
    """With a quarter more of the weights: on the card that holds all of them it fits, on what holds the weights alone it may or may not."""
    macro(
        f"CREATE OR REPLACE TEMP TABLE unread AS SELECT '{TEXT}' AS model_id, 'fp8' AS dtype_id, 'vllm' AS engine_id, 2048 AS context_tokens"
    )
    told = "SELECT total_bytes, round(total_bytes * (1 + error_band))::BIGINT, weights_bytes, more_bytes FROM fits_in('unread', 'rtx-4090'"
    ((total, least, weights, none),) = macro(f"{told})")
    ((same, most, _weights, more),) = macro(f"{told}, more_share := 0.25)")
    assert same == total and none == 0
    assert more == pytest.approx(weights / 4, abs=1) and most - least == pytest.approx(more, abs=2)
    verdict = "SELECT verdict FROM fits_in('unread', NULL, free_bytes := $1, more_share := 0.25)"
    assert macro(verdict, most + 2) == [("fits",)]
    assert macro(verdict, most - 2) == macro(verdict, least + 2) == [("tight",)]
    assert macro(verdict, total - 1) == [("no",)]


def test_the_command_says_what_an_unlisted_repository_may_hold_and_counts_it(ask_json):
    """cyankiwi packs in groups of 32, which others of dense models do not: margin and words have them."""
    one, other = (
        ask_json("fits", f"{who}/Qwen3-8B-AWQ", "--gpu", "rtx-4090", "--program", "vllm", "--context", "2048")
        for who in ("someone", "cyankiwi")
    )
    assert "nearly all are" in one["taken"] and "groups of 32, up to" in other["taken"]
    assert other["best"]["weights_bytes"] == one["best"]["weights_bytes"] and other["verdict"] == "fits"
    more = other["best"]["error_band"] - one["best"]["error_band"]
    assert more * one["best"]["total_bytes"] == pytest.approx(other["best"]["more_bytes"], rel=1e-6)


def test_a_format_that_hangs_on_the_copy_is_told_alike_by_its_name_and_by_a_copys(ask, ask_json):
    """A table said “fits” of what was not known, asked by the name of a copy: what makers also leave in 16 bits is in the margin of both."""
    use = ("--program", "vllm", "--context", 4096)
    of_format, of_copy = (EXPERTS, "--format", "awq-int4", *use), ("someone/gpt-oss-20b-AWQ", *use)
    (whole,) = ask_json("fits", *of_format, "--free", "60GiB")["formats"]
    most, more = whole["total_bytes"] * (1 + whole["error_band"]), whole["more_bytes"]
    assert more > 2**30
    for free, verdict, word in (
        (most * 1.001, "fits", "Yes: "),
        (most - more / 2, "tight", "It depends on the copy: "),
    ):
        for asked in (of_format, of_copy):
            said = ("fits", *asked, "--free", f"{free / 2**30:.3f}GiB")
            told = ask_json(*said)
            assert (told["verdict"], told["best"]["total_bytes"]) == (verdict, whole["total_bytes"])
            out = " ".join(ask(*said)[1].split())
            assert (
                out.startswith(word)
                and ("awq-int4 vLLM" in out)
                and ("depends “Depends”" in out) == (verdict == "tight")
            )
    # less than what most copies take with the margin is barely, and no longer the copy's fault
    barely = ask("fits", *of_format, "--free", f"{whole['total_bytes'] * 1.005 / 2**30:.3f}GiB")[1]
    assert barely.startswith("Barely: ")
