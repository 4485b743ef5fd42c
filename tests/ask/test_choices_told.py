"""What a total is made of, what a training chose where nobody did, and reasons and mixes in words of a normal person."""

from __future__ import annotations

import pytest

from pipeline.ask.training_words import chosen
from pipeline.book.facts import read_facts
from tests.few import PACKED, SMALL, TEXT

PARTS = ("weights", "adapters", "kv_cache", "kv_padding", "state", "activations", "gradients", "optimizer", "overhead")


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", [(), ("--phase", "lora"), ("--users", "4", "--program", "vllm")])
def test_a_total_is_told_with_what_it_is_made_of(ask_json, macro, asked):
    told = ask_json("fits", TEXT, "--gpu", "h100-sxm", *asked)
    for row in [told["best"], *(row for row in told["formats"] if row["total_bytes"])]:
        assert row["total_bytes"] == sum(row[f"{part}_bytes"] for part in PARTS)
    best = told["best"]
    assert best["weights_bytes"] and best["activations_bytes"] and best["overhead_bytes"]
    assert all(best[f"{part}_bytes"] for part in (PARTS[6:8] if asked[:1] == ("--phase",) else PARTS[2:3]))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("lora", "AdamW (fp32 states), fp32 masters of what is trained, rank 16 on all linear layers, 4 sequences"),
        ("full-finetune", "AdamW (fp32 states), fp32 masters of what is trained, 4 sequences"),
    ],
)
def test_a_training_says_what_nobody_chose(ask_json, ask, phase, words):
    """Without recomputing it takes several times as much: who starts it so has to know what was counted."""
    asked = ("fits", SMALL, "--gpu", "h100-sxm", "--phase", phase, "--batch", "4")
    told, out = ask_json(*asked), " ".join(ask(*asked)[1].split())
    assert told["best"]["checkpointing"] == "full" and told["best"]["optimizer_id"] == "adamw"
    assert f"No trainer was named, so these choices are ours: {words}" in out
    (first, *_rest) = out.split("No trainer was named")
    assert "every layer recomputed (gradient checkpointing)" in first  # in the sentence itself


@pytest.mark.full
def test_a_trainer_that_recomputes_nothing_is_told_so(ask_json, ask):
    asked = ("fits", SMALL, "--gpu", "h100-sxm", "--phase", "lora", "--program", "transformers")
    assert ask_json(*asked)["best"]["checkpointing"] == "none"
    out = " ".join(ask(*asked)[1].split())
    assert "no layer recomputed (no gradient checkpointing)" in out and "choices are ours" not in out
    assert "checkpointing" not in ask_json("fits", SMALL, "--gpu", "h100-sxm")["best"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("asked", "words", "is_cut"),
    [
        (
            ("BAAI/bge-m3", "--gpu", "rtx-4090", "--format", "Q4_K_M", "--program", "mlx"),
            "none of its modules",
            "(table",
        ),
        ((TEXT, "--gpu", "v100-sxm2-32gb", "--format", "fp16"), "is not settled.", "attention :="),
    ],
)
def test_a_reason_is_in_the_words_of_its_table_and_not_of_sql(ask, asked, words, is_cut):
    out = " ".join(ask("fits", *asked)[1].split())
    assert words in out and is_cut not in out


@pytest.mark.full
def test_a_mix_that_nobody_described_is_told_in_the_next_one_above_it(ask_json, ask):
    """The best of all that fit is another file: who loads UD-Q4_K_XL was told Q8_0, and Yes."""
    for name, above in (("UD-Q4_K_XL", "gguf-q5_k_m"), ("UD-Q5_K_XL", "gguf-q6_k"), ("UD-IQ2_M", "gguf-q3_k_m")):
        told = ask_json("fits", f"{PACKED}:{name}", "--gpu", "rtx-4090")
        assert {row["dtype_id"] for row in told["formats"]} == {above} and told["status"] == 3
    ended, out, _ = ask("fits", f"{PACKED}:UD-Q4_K_XL", "--gpu", "rtx-4090")
    assert ended == 3 and " ".join(out.split()).startswith(
        "Not known in UD-Q4_K_XL. In Q5_K_M, the next mix above it: Yes"
    )
    ended, _out, problem = ask("fits", f"{PACKED}:UD-Q8_K_XL", "--gpu", "rtx-4090")
    assert ended == 3 and "no mix above it" in " ".join(problem.split())
    ended, _out, problem = ask("fits", TEXT, "--gpu", "rtx-4090", "--format", "UD-Q4_K_XL")
    assert ended == 2 and "The next mix above it, by its name: --format gguf-q5_k_m" in " ".join(problem.split())


def test_states_are_not_said_to_be_in_32_bits_where_they_are_as_wide_as_the_weights():
    row = dict.fromkeys(("lora_rank", "lora_targets")) | {"checkpointing": "full", "optimizer_id": "adamw"}
    answer = {"use": {"sequences": 1, "program": "ms-swift"}, "optimizer": "AdamW (fp32 states)"}
    mixed, pure = (chosen(answer | {"best": row | {"precision": precision}}) for precision in ("mixed", "pure"))
    assert "fp32 states" in mixed and "fp32 states" not in pure and "as wide as the weights" in pure


@pytest.mark.full
def test_states_of_a_paged_optimizer_alone_make_no_plain_no(ask_json, ask):
    """The driver moves them where the card runs out: what is left on the card is what decides."""
    asked = ("fits", SMALL, "--phase", "full-finetune", "--context", "512", "--optimizer")
    row = ask_json(*asked, "paged_adamw", "--gpu", "h100-sxm")["best"]
    free = f"{row['total_bytes'] - row['optimizer_bytes'] // 2}B"
    status, out, _err = ask(*asked, "paged_adamw", "--gpu", "h100-sxm", "--free", free)
    assert status == 1 and out.startswith("Not without paging: ") and "stay on the card." in " ".join(out.split())
    status, out, _err = ask(*asked, "adamw", "--gpu", "h100-sxm", "--free", free)
    assert status == 1 and out.startswith("No: ")
    less = f"{(row['total_bytes'] - row['optimizer_bytes']) // 2}B"
    assert ask(*asked, "paged_adamw", "--gpu", "h100-sxm", "--free", less)[1].startswith("No: ")


def test_only_states_that_follow_the_weights_are_said_to_be_as_wide():
    row = dict.fromkeys(("lora_rank", "lora_targets")) | {
        "checkpointing": "full",
        "optimizer_id": "",
        "precision": "pure",
    }
    names = {
        r["name"]: r["follows_parameter_dtype"]
        for r in read_facts()["optimizer"].iter_rows(named=True)
        if "fp32" in r["name"]
    }
    for name, follows in names.items():
        told = chosen({"use": {"sequences": 1, "program": "torchtune"}, "optimizer": name, "best": row})
        assert ("as wide as the weights" in told) == follows, name
