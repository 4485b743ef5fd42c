"""`fits` of models that hear or speak, by seconds of sound: rows of `speech_fits_on`, or of a footprint that has so many seconds in it."""

from __future__ import annotations

from typing import Any

from pipeline.book.sounds import CLASSES, CONTEXT_TOKENS, WAS_RUN, WRITES

from .almanac import Almanac, Row
from .problems import Unknown, Wrong
from .question import INFERENCE, Card, Model, Use
from .scenarios import VERDICTS, card_told, use_told

USUAL = 30  # seconds that are asked where nobody says how many
LENGTHS = (30, 300, 3600)  # that are told beside those asked for
FORMATS = ("bf16", "fp16", "int8", "nf4")  # the best first
ROUND = "fp32"  # told where nothing smaller is known
ENGINE = "transformers"
WHOLE, CODEC, FRAMES, PROMPT, WINDOW = "whole", "codec", "frames", "prompt", "window"
_TRANSCRIBES = "automatic-speech-recognition"
_HEARS = "EXISTS (FROM tower WHERE tower.model_id = model.model_id AND component IN ({}) AND grid = '{}')"
_KIND = f"""
    SELECT CASE
        WHEN {WAS_RUN} THEN '{WHOLE}'
        WHEN {WRITES} THEN '{CODEC}'
        WHEN {_HEARS.format("'audio'", "tiles")} THEN '{PROMPT}'
        WHEN {_HEARS.format("'audio'", "context")} THEN '{FRAMES}'
        WHEN {_HEARS.format("'audio', 'encoder'", "fixed")} AND model.pipeline_tag = '{_TRANSCRIBES}' THEN '{WINDOW}'
    END FROM model WHERE model_id = $id
"""
IN_WINDOWS = "It hears sound in windows of one length, one after the other: longer sound takes no more."
_WRITTEN = "The tokens are those that it writes of one of them."


def seconds_of(almanac: Almanac, model: Model, use: Use, said: int | None) -> int | None:
    """How many seconds are asked about; None where the question is one of tokens. Raises Wrong."""
    if said is not None and (use.is_training or use.kv_dtype_id is not None):
        raise Wrong("--seconds is of inference in Transformers: without --phase and --kv")
    is_its_program = use.program in (None, ENGINE)
    if said is not None and not is_its_program:
        raise Wrong(f"--seconds is of inference in Transformers: without --program, or with --program {ENGINE}")
    if said is not None and use.context_tokens is not None:
        raise Wrong("--seconds or --context: sound is asked by one of them")
    is_plain = not use.is_training and is_its_program and use.kv_dtype_id is None and use.context_tokens is None
    if not is_plain or (use.sequences or 1) > 1:
        if said is not None:
            raise Wrong("--seconds is asked of one user")
        return None
    kind = almanac.value(_KIND, {"id": model.model_id})
    if use.program is not None and kind is not None:
        if (other := _other_program(almanac, model, use, kind)) and said is not None:
            raise Unknown(other)
        if other or said is None:
            return None  # (by tokens it is answered as any other)
    if said is None:
        return USUAL if kind in (WHOLE, FRAMES) else None
    if kind is None:
        raise Wrong(f"{model.shown} is not asked by seconds: nothing says that it hears or speaks")
    return None if kind == WINDOW else said


def in_windows(almanac: Almanac, model: Model, use: Use) -> str | None:
    """Of a model that transcribes sound of any length by windows: that it does, and what its tokens are."""
    if use.is_training or model.row.get("pipeline_tag") != _TRANSCRIBES:
        return None
    is_so = almanac.value(_KIND, {"id": model.model_id}) == WINDOW
    return f"{IN_WINDOWS} {_WRITTEN}" if is_so else None


def _other_program(almanac: Almanac, model: Model, use: Use, kind: str) -> str | None:
    """Why Transformers as it was named is not what seconds of sound were counted in; None where it is."""
    runs_in = almanac.rows(f"FROM ({CLASSES}) WHERE model_id = $id", {"id": model.model_id}) if kind == WHOLE else []
    if runs_in and runs_in[0]["program"].lower() != ENGINE:
        return f"Not known: what {model.shown} holds in Transformers. It was counted in {runs_in[0]['program']}: without --program"
    if use.engine_id != ENGINE:
        return f"Not known: seconds of sound in Transformers {use.program_version}. In the newest they are: --program {ENGINE}"
    return None


def fits(almanac: Almanac, model: Model, card: Card, use: Use, seconds: int) -> dict[str, Any]:
    """What so many seconds take in each format, and how many of LENGTHS the best of them holds."""
    kind = almanac.value(_KIND, {"id": model.model_id})
    lengths = sorted({seconds, *LENGTHS})
    formats = (use.dtype_id,) if use.dtype_id else (*FORMATS, ROUND)
    ask = _spoken if kind in (WHOLE, CODEC) else _heard
    found = ask(almanac, model, card, formats, lengths, seconds)
    mine = [row for row in found if row["seconds"] == seconds]
    told = _plain([row for row in mine if row["total_bytes"] is not None]) if use.dtype_id is None else mine
    runs_in = almanac.rows(f"FROM ({CLASSES}) WHERE model_id = $id", {"id": model.model_id}) if kind == WHOLE else []
    for row in told:
        row["runs_in"] = runs_in[0]["program"] if runs_in else "Transformers"
        of = [each for each in found if each["dtype_id"] == row["dtype_id"]]
        row["bytes_by_seconds"] = {each["seconds"]: each["total_bytes"] for each in of}
    verdict = next((v for v in VERDICTS if any(row["verdict"] == v for row in told)), None)
    with_it = [row for row in told if row["verdict"] == verdict]
    best = min(with_it, key=lambda row: row["total_bytes"]) if verdict == "no" else with_it[0] if verdict else None
    # why not at this length comes before why not in this format
    known = {row["dtype_id"] for row in found if row["total_bytes"] is not None}
    reasons = [
        row["unknown_reason"]
        for row in sorted(told or mine, key=lambda row: row["dtype_id"] not in known)
        if row["unknown_reason"]
    ]
    return {
        "model": model.shown,
        "card": card_told(card, 1),
        "use": use_told(use, []) | {"seconds": seconds},
        "verdict": verdict,
        "best": best,
        "sounds": told,
        "note": runs_in[0]["note"] if runs_in else None,
        "taken": "Told for one of the cards: what hears or speaks is not shared among several."
        if card.count > 1
        else None,
        "formats": [],
        "helps": [],
        "commands": [],
        "reason": None if verdict else next(iter(reasons), None),
    }


def _plain(rows: list[Row]) -> list[Row]:
    """Without fp16 where bf16 says the same and runs, without bf16 where it does not, and without 32 bits where fewer are known."""
    by_dtype = {row["dtype_id"]: row for row in rows}
    if by_dtype.keys() & {"bf16", "fp16"}:
        by_dtype.pop(ROUND, None)
    if {"bf16", "fp16"} <= by_dtype.keys():
        del by_dtype["fp16" if by_dtype["bf16"]["verdict"] else "bf16"]
    return list(by_dtype.values())


def _spoken(
    almanac: Almanac, model: Model, card: Card, formats: tuple[str, ...], lengths: list[int], seconds: int
) -> list[Row]:
    """All totals at once; verdicts one by one, of those that have one: DuckDB loses its way where the card is joined to all of them."""
    totals = almanac.rows(
        """
        SELECT told.dtype_id, told.engine_id, asked.seconds, told.total_bytes, told.error_band, told.unknown_reason
        FROM (SELECT unnest($seconds::INTEGER[]) AS seconds) AS size, (SELECT unnest($formats::VARCHAR[]) AS dtype_id) AS format,
            LATERAL (SELECT $model AS model_id, size.seconds, format.dtype_id) AS asked,
            speech_of(asked.model_id, seconds := asked.seconds, dtype_id := asked.dtype_id) AS told
        """,
        {"model": model.model_id, "seconds": lengths, "formats": list(formats)},
    )
    order = {dtype: place for place, dtype in enumerate(formats)}
    totals.sort(key=lambda row: (order[row["dtype_id"]], row["seconds"]))
    for row in totals:
        row |= {"verdict": None, "capacity_bytes": None, "headroom_bytes": None}
        if row["seconds"] == seconds and row["total_bytes"] is not None:
            row |= _verdict(almanac, model, card, row)
    return totals


def _verdict(almanac: Almanac, model: Model, card: Card, row: Row) -> Row:
    (found,) = almanac.rows(
        """
        SELECT verdict, capacity_bytes, headroom_bytes, unknown_reason
        FROM speech_fits_on($card, $model, seconds := $seconds, dtype_id := $dtype, free_bytes := $free)
        """,
        {"card": card.gpu_id, "model": model.model_id, "seconds": row["seconds"], "dtype": row["dtype_id"], "free": card.free_bytes},
    )  # fmt: skip
    return found


def _heard(
    almanac: Almanac, model: Model, card: Card, formats: tuple[str, ...], lengths: list[int], seconds: int
) -> list[Row]:
    """Of who hears as part of the prompt the sound's tokens are in the context, beside some of text."""
    contexts = almanac.rows(
        f"""
        SELECT seconds, ({CONTEXT_TOKENS})::BIGINT AS tokens
        FROM tower, (SELECT unnest($seconds::INTEGER[]) AS seconds) WHERE model_id = $id AND component = 'audio'
        """,
        {"id": model.model_id, "seconds": lengths},
    )
    tokens = {row["seconds"]: row["tokens"] for row in contexts}
    told = "dtype_id, engine_id, total_bytes, error_band, capacity_bytes, headroom_bytes, verdict, unknown_reason"
    found: list[Row] = []
    for n in lengths:
        scenario = {
            "model_id": model.model_id, "engine_id": ENGINE, "audio_seconds": n, "sequences": 1, "gpu_count": 1,
            "context_tokens": tokens.get(n),
        }  # fmt: skip
        how = {"phase_id": INFERENCE, "is_plain": False, "with_limits": False}
        rows = almanac.ask(
            [scenario | {"dtype_id": dtype} for dtype in formats], card.gpu_id, card.free_bytes, told, **how
        )
        found += [row | {"seconds": n} for row in rows]
    order = {dtype: place for place, dtype in enumerate(formats)}
    return sorted(found, key=lambda row: (order[row["dtype_id"]], row["seconds"]))
