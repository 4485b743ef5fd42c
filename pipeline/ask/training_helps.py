"""What makes a training fit that does not: more recomputed, fewer sequences at once, an optimizer in 8 bits, adapters, a base in 4 bits, a trainer that
takes less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .almanac import Almanac, Row
from .problems import Problem
from .programs import program_of
from .question import Card, Model, Use
from .scenarios import answered, scenario_of, told_of

_EASIER = {
    "checkpointing": "every layer recomputed (--checkpointing full)",
    "sequences": "one sequence at a time (--batch 1)",
    "optimizer_id": "states in 8 bits (--optimizer adamw-8bit)",
}
_PHASES = {"lora": "LoRA, adapters instead", "qlora": "QLoRA, adapters over a base in 4 bits"}
_SMALL_OPTIMIZER = "adamw-8bit"
# what is trained otherwise, the nearest first, each with the format of its base (None: that which is asked)
_LESS = {"full-finetune": (("lora", None), ("qlora", "nf4")), "lora": (("qlora", "nf4"),)}
_LEAST = "unsloth"  # the trainer that takes least of one card, by itself


def easier_of(almanac: Almanac, model: Model, card: Card, use: Use, row: Row) -> list[dict[str, Any]]:
    """The first change of how it is trained with which it fits, and the first of what is trained; each with its numbers. `row` is the answer that
    does not fit."""
    found = []
    steps = list(_steps(use, row))
    asked = [replace(use, dtype_id=row["dtype_id"], **step) for step in steps]
    scenarios = [scenario_of(model, one, row["dtype_id"], None, row["gpu_count"]) for one in asked]
    if scenarios:
        rows = answered(almanac, scenarios, card, asked[-1])
        for step, one in zip(steps, asked, strict=True):
            fitting = [each for each in rows if each["verdict"] in ("fits", "multi-gpu") and _is_of(each, one)]
            if fitting:
                found.append({"help": "easier", "changes": step, **told_of(fitting[0])})
                break
    return found + _otherwise(almanac, model, card, use, row)


def _otherwise(almanac: Almanac, model: Model, card: Card, use: Use, row: Row) -> list[dict[str, Any]]:
    """What is trained instead, and by the trainer that takes least, with what each needs; of what does not fit all together the least alone."""
    ways = [
        (replace(use, phase_id=phase, dtype_id=dtype or row["dtype_id"]), None)
        for phase, dtype in _LESS.get(use.phase_id, ())
    ]
    if row["gpu_count"] == 1 and use.program is None and not (use.sharding or use.offload or use.optimizer_id):
        phases = [use.phase_id] * (use.phase_id == "qlora") + [
            one.phase_id for one, _ in ways if one.phase_id == "qlora"
        ]
        ways += [(of_least, _LEAST) for phase in phases for of_least in _by_least(almanac, use, phase)]
    found = []
    for other, program in ways:
        rows = answered(almanac, [scenario_of(model, other, other.dtype_id, None, row["gpu_count"])], card, other)
        if told := next((each for each in rows if each["verdict"]), None):
            found.append({"help": "phase", "phase_id": other.phase_id, "program": program, **told_of(told)})
    if any(each["verdict"] != "no" for each in found):
        return found
    return sorted(found, key=lambda each: each["total_bytes"])[:1]


def _by_least(almanac: Almanac, use: Use, phase: str) -> list[Use]:
    """The use by that trainer, as it does it by itself; none where nobody counted that."""
    try:
        program = program_of(almanac, _LEAST, phase)
    except Problem:
        return []
    # (as a trainer that is named has it: what nobody said is its own)
    return [
        replace(
            use, phase_id=phase, program=program.program_id, program_version=program.version, engine_id=program.engine_id,
            dtype_id=None, is_in_own_format=bool(program.dtype_id),
        )
    ]  # fmt: skip


def _steps(use: Use, row: Row) -> Iterator[dict[str, Any]]:
    """What can be changed, each with those before it: what costs time, then what costs more of it, then what changes the states."""
    changes: dict[str, Any] = {}
    if row["checkpointing"] != "full":
        yield (changes := changes | {"checkpointing": "full"})
    if row["sequences"] > 1:
        yield (changes := changes | {"sequences": 1})
    if use.phase_id not in ("lora", "qlora") and row["optimizer_id"] == "adamw":
        yield changes | {"optimizer_id": _SMALL_OPTIMIZER}


def _is_of(row: Row, use: Use) -> bool:
    return (
        (use.sequences is None or row["sequences"] == use.sequences)
        and (use.checkpointing is None or row["checkpointing"] == use.checkpointing)
        and (use.optimizer_id is None or row["optimizer_id"] == use.optimizer_id)
    )


def helped(told: dict[str, Any], name: str) -> str:
    """A training that fits where the one that was asked does not, in a sentence."""
    each = " on each" if told["gpu_count"] > 1 else ""
    needs = f"{told['total_bytes'] / 2**30:,.1f} GiB{each}"
    longest = f", up to {told['max_context_tokens']:,} tokens" if told["max_context_tokens"] else ""
    if told["help"] == "phase":
        asked = f"--phase {told['phase_id']}" + (f" --program {told['program']}" if told.get("program") else "")
        how = "QLoRA by Unsloth" if told.get("program") else _PHASES[told["phase_id"]]
        size, whole = (f"{told[name] / 2**30:,.1f}" for name in ("total_bytes", "capacity_bytes"))
        does = {"fits": f"fits, {needs}{longest}", "tight": f"barely fits, {needs}"}
        return f"{how} ({asked}): {name} {does.get(told['verdict']) or f'needs {size} of {whole} GiB{each}, too much'}."
    how = " and ".join(_EASIER[change] for change in told["changes"])
    return f"{how[0].upper()}{how[1:]}: {name} fits, {needs}{longest}."
