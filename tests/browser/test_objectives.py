"""Training on preferences in the calculator's scripts says what `preference_of` says: each number, each reason, and backwards."""

from __future__ import annotations

import pytest

from tests.browser.reckoned import reckoned

pytestmark = pytest.mark.browser
SAID = ("sequences", "context_tokens", "dtype_id", "precision", "loss", "lora_dropout", "program", "program_version")
PARTS = ("weights", "activations", "gradients", "optimizer", "adapters", "overhead", "reference", "total")
OUT = ("objective_id", *SAID, *(f"{part}_bytes" for part in PARTS), "error_band", "holds_for", "unknown_reason")
SMALL, LARGE, CAPPED = "Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "google/gemma-2-2b"  # the last one's logits have a cap
MIXTURE = "Qwen/Qwen3-30B-A3B"
ASKED = (
    ("dpo", LARGE, {"phase_id": "lora"}),
    ("dpo", SMALL, {"phase_id": "full-finetune", "sequences": 3, "context_tokens": 777}),
    ("dpo", CAPPED, {"phase_id": "qlora", "sequences": 2, "dtype_id": "nf4"}),
    ("orpo", LARGE, {"phase_id": "lora", "lora_rank": 64, "lora_targets": "all-linear"}),
    ("kto", SMALL, {"phase_id": "lora", "sequences": 5, "checkpointing": "none"}),
    ("reward", SMALL, {"phase_id": "full-finetune"}),
    ("grpo", LARGE, {"phase_id": "lora", "program": "trl", "program_version": "1.5"}),
    ("grpo", LARGE, {"phase_id": "lora", "program_version": "1.20"}),
    ("grpo", LARGE, {"phase_id": "lora", "program_version": "1.16"}),
    ("grpo", LARGE, {"phase_id": "lora", "program_version": "1.14"}),
    ("dpo", LARGE, {"phase_id": "lora", "program_version": "1.16"}),
    ("dpo", SMALL, {"phase_id": "full-finetune", "program_version": "1.16.0", "checkpointing": "none"}),
    ("dpo", SMALL, {"phase_id": "full-finetune", "program_version": "1.14", "checkpointing": "none"}),
    ("dpo", SMALL, {"phase_id": "qlora", "program_version": "1.8"}),
    ("dpo", SMALL, {"phase_id": "lora", "program": "trl", "program_version": "1.5"}),
    ("kto", SMALL, {"phase_id": "lora", "program_version": "1.6"}),
    ("orpo", SMALL, {"phase_id": "lora", "program_version": "1.13"}),
    ("dpo", MIXTURE, {"phase_id": "lora"}),
    ("dpo", MIXTURE, {"phase_id": "lora", "program_version": "1.7"}),
    ("grpo", SMALL, {"phase_id": "lora", "gpu_count": 2, "sharding": "ddp"}),
    ("dpo", SMALL, {"phase_id": "lora", "gpu_count": 2}),
    ("dpo", SMALL, {"phase_id": "lora", "program": "unsloth"}),
    ("dpo", SMALL, {"phase_id": "lora", "program": "trl"}),
    ("dpo", SMALL, {"phase_id": "lora", "program": "trl", "program_version": "0.24"}),
    ("dpo", SMALL, {"phase_id": "lora", "loss": "chunked"}),
    ("dpo", SMALL, {"phase_id": "lora", "precision": "pure"}),
    ("dpo", SMALL, {"phase_id": "inference"}),
    ("ppo", SMALL, {"phase_id": "lora"}),
    ("dpo", SMALL, {"phase_id": "lora", "optimizer_id": "nobody"}),
)


@pytest.fixture(scope="module")
def asked(book, browser):
    with reckoned(book, browser, {model for _objective, model, _said in ASKED}) as ask:
        yield ask


def of_sql(book, objective, model, said):
    named = "".join(f", {name} := ${name}" for name in said)
    result = book.execute(f"FROM preference_of($objective, $model{named})", {"objective": objective, "model": model} | said)  # fmt: skip
    (row,) = result.fetchall()
    return dict(zip([column[0] for column in result.description], row, strict=True))


@pytest.mark.some(1)
@pytest.mark.parametrize(("objective", "model", "said"), ASKED)
def test_a_training_on_preferences_is_the_same_in_the_browser(book, asked, objective, model, said):
    expected = of_sql(book, objective, model, said)
    wanted = {"objective_id": objective, "model_id": model} | said
    found = asked("return r.ask(own, more[0]);", model, wanted)
    assert {name: found.get(name) for name in OUT} == {
        name: pytest.approx(expected[name]) if name == "error_band" and expected[name] else expected[name]
        for name in OUT
    }


@pytest.mark.full
def test_backwards_pairs_are_counted_and_none_is_promised_that_does_not_fit(book, asked):
    (capacity,) = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = 'h100-sxm'").fetchall()[0]
    wanted = {"objective_id": "dpo", "model_id": LARGE, "phase_id": "lora"}
    found = asked("return r.most(own, ...more);", LARGE, wanted, capacity)
    need = lambda pairs: of_sql(book, "dpo", LARGE, {"phase_id": "lora", "sequences": pairs})  # noqa: E731
    fits = lambda row: row["total_bytes"] * (1 + row["error_band"]) <= capacity  # noqa: E731
    assert found["bound"] == "card" and fits(need(found["at"])) and not fits(need(found["at"] + 1))
