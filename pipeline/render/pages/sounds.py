"""What a page says of a model that hears or speaks: GiB by seconds of sound, in the formats that they are known in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.base.readonly import reading
from pipeline.render.data import sounds
from pipeline.render.data.kept import Answers
from pipeline.render.data.made import ENGINE, wishes

TOLD = 30  # seconds that a page speaks of first
FORMATS = ("fp16", "int8", "nf4", "fp32")  # the last one where the first is not known


def read(folder: Path, plainly: Callable[[str], str], answers: Answers) -> dict[str, dict]:
    """By model its `rows` (seconds, and bytes by format), the formats, why no `longer` sound is known, the `program` and a `note`."""
    lengths = tuple(sorted({size for wish in wishes() if wish.kind == "sound" for size in wish.sizes}))
    with reading(folder / "almanac.duckdb") as connection:
        if not lengths or not sounds.is_asked(connection):
            return {}
        speaks = sounds.spoken_of(connection)
        hears = sorted(sounds.hearing(connection) - set(speaks))
        found = sounds.kept_spoken(answers, connection, speaks, lengths, FORMATS) if speaks else {}
        windows, classes = sounds.windowed(connection), sounds.classes(connection)
        heard = sounds.kept_heard(answers, connection, hears, lengths, FORMATS, ENGINE) if hears else {}
        for name, by_seconds in heard.items():
            plain = by_seconds.pop(None)
            found[name] = {n: plain if name in windows else rows for n, rows in by_seconds.items()}
    told = ((name, _told(rows, name in windows, plainly)) for name, rows in sorted(found.items()))
    unsaid = ("Transformers", None)
    return {
        name: one | dict(zip(("program", "note"), classes.get(name, unsaid)[:2], strict=True))
        for name, one in told
        if one
    }


def _told(by_seconds: dict[int, dict], is_windowed: bool, plainly: Callable[[str], str]) -> dict | None:
    known = [f for f in FORMATS if any(rows[f]["total_bytes"] is not None for rows in by_seconds.values())]
    known = [f for f in known if f != FORMATS[-1] or known[0] == f]
    if not known:
        return None
    if is_windowed:
        by_seconds = {TOLD: by_seconds[TOLD]}
    told = sorted(by_seconds.items())
    rows = [
        {"seconds": n, "bytes": [of[f]["total_bytes"] for f in known], "bands": [of[f]["error_band"] for f in known]}
        for n, of in told
        if any(of[f]["total_bytes"] is not None for f in known)
    ]
    longer = next((of[known[0]]["unknown_reason"] for n, of in told if n > rows[-1]["seconds"]), None)
    return {
        "formats": known,
        "rows": rows,
        "is_windowed": is_windowed,
        "longer": longer and plainly(longer),
    }


def sentence(sound: dict | None, cards: list[tuple[int, int]]) -> str:
    """What `TOLD` seconds run on, of a model that nothing else is said of; empty where nothing is known."""
    row = next((row for row in (sound or {"rows": ()})["rows"] if row["seconds"] == TOLD), None)
    for name, held, band in zip(sound["formats"], row["bytes"], row["bands"], strict=True) if row else ():
        card = held and next((n for n, kib in cards if held * (1 + band) <= kib * 1024), None)
        if card:
            return f"{TOLD} seconds of sound: one {card} GB card in {name}."
    return ""
