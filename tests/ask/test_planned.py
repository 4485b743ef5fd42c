"""What the tests of the command are answered by statements that are planned once is what the command asks."""

from __future__ import annotations

import pytest

from pipeline.ask.almanac import Almanac, opened
from tests.few import PACKED, SMALL, TEXT
from tests.planned import Planned, PlannedFits

NAMES = ("model_id", "dtype_id", "engine_id", "context_tokens", "sequences", "gpu_count", "program", "program_version")
SERVED = [
    dict(zip(NAMES, (TEXT, dtype, engine, 8192, None, 1, program, None), strict=True))
    for dtype, engine, program in (
        ("gguf-q8_0", "llama.cpp", "ollama"),
        ("bf16", "vllm", "vllm"),
        ("nothing", None, None),
    )
]
TRAINED = [dict(zip(NAMES, (SMALL, dtype, None, 1024, 2, 1, None, None), strict=True)) for dtype in ("bf16", None)]
ASKED = [
    (SERVED, "rtx-4090", 20 * 2**30, {"phase_id": "inference", "is_plain": False, "beyond_bytes": 10**9}),
    ([{"model_id": TEXT, "dtype_id": "gguf-q8_0"}], None, 10 * 2**30, {"phase_id": "inference"}),
    (TRAINED, "none-such", None, {"phase_id": "full-finetune", "with_limits": False}),
]


@pytest.mark.full
@pytest.mark.parametrize(("scenarios", "card", "free_bytes", "how"), ASKED, ids=range(len(ASKED)))
def test_it_is_what_the_command_is_answered(folder, scenarios, card, free_bytes, how):
    assert all(map(Planned.takes, scenarios))
    with opened(str(folder)) as almanac:
        expected = Almanac.ask.__wrapped__(almanac, scenarios, card, free_bytes, **how)
    fits = PlannedFits(folder / "almanac.duckdb")
    for _again in range(2):
        answered = fits.ask(scenarios, card, free_bytes, **how)
        assert sorted(answered, key=str) == sorted(expected, key=str) and len(answered) == len(scenarios)
    other = fits.ask([{"model_id": PACKED}], card, free_bytes, **how)
    assert {row["model_id"] for row in other} == {PACKED}
