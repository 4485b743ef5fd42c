"""The program that a question names, and what it is known to do."""

from __future__ import annotations

import re

from pipeline.base.bounds import visible

from .almanac import Almanac
from .problems import Unknown, Wrong
from .question import INFERENCE, Program

_PROGRAM = re.compile(r"(.+?)(?:\s*==\s*|\s*@\s*|\s+)[vbVB]?(\d[\w.]*)")


def named_program(asked: str) -> tuple[str, str | None]:
    """The name of a program and its version, where one is said."""
    found = _PROGRAM.fullmatch(asked.strip())
    return (found[1], found[2]) if found else (asked.strip(), None)


def program_of(almanac: Almanac, asked: str, phase_id: str, has_objective: bool = False) -> Program:
    """`ollama`, `vllm 0.27` or `vllm==0.27`. Raises Wrong for a program that is not known, or that does not do this; Unknown with the
    reason where nobody knows what it holds; with an objective its own rows say which releases are known."""
    name, version = named_program(asked)
    (row,) = almanac.rows(
        "FROM program_called($name, version := $version, phase_id := $phase)",
        {"name": name, "version": version, "phase": phase_id},
    )
    if row["unknown_reason"] and not (row["is_known"] and has_objective):
        others = phases_of(almanac, name, version) if row["is_known"] and phase_id != INFERENCE else []
        more = f". Known of it: {', '.join(f'--phase {phase}' for phase in others)}" if others else ""
        raise (Unknown if row["is_known"] else Wrong)(
            f"{'Not known: ' if row['is_known'] else ''}{visible(row['unknown_reason'])}{more}"
        )
    return Program(row["program_id"], version, row["engine_id"], row["dtype_id"])


def phases_of(almanac: Almanac, name: str, version: str | None) -> list[str]:
    """The trainings that are known of a program, of a version of it where one is said."""
    query = (
        "SELECT phase.phase_id FROM (SELECT unnest(['lora', 'qlora', 'full-finetune']) AS phase_id) AS phase, "
        "LATERAL (FROM program_called($name, version := $version, phase_id := phase.phase_id)) AS known "
        "WHERE known.unknown_reason IS NULL ORDER BY phase.phase_id"
    )
    return [row["phase_id"] for row in almanac.rows(query, {"name": name, "version": version})]
