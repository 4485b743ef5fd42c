"""What is said of a name that the almanac does not hold: which model of its family it has, of the same size or of others. None is an answer for it."""

from __future__ import annotations

import re

from pipeline.base.bounds import in_words, visible

from .almanac import Almanac

_SIZE = re.compile(r"(?i)(?<![a-z0-9.])(\d+(?:\.\d+)?[bm])(?![a-z0-9])")


def unknown(almanac: Almanac, asked: str) -> str:
    """That there is no model of that name, and what is near it."""
    near = almanac.value("SELECT nearest_models($asked)", {"asked": asked})
    said = f"{in_words(asked)} is not in this almanac."
    family, size = _parts(asked)
    kin = [name for name in near.split(", ") if family and _parts(name)[0] == family]
    same = [name for name in kin if _parts(name)[1] == size]
    if same:
        shown = ", ".join(map(visible, same))
        return (
            f"{said} Of its family and size is {shown}; whether what was asked has the same shape, nobody here has read. That one is asked by: "
            f"vram-almanac fits {visible(same[0])}"
        )
    if kin:
        return f"{said} Of its family are other sizes: {', '.join(map(visible, kin))}"
    return f"{said} Near it: {near}"


def _parts(name: str) -> tuple[str, str]:
    """The letters and digits of a name before its size, and the size; no size where it says none."""
    said = name.rpartition("/")[2].replace(" ", "-").replace("_", "-")
    found = _SIZE.search(said)
    return (re.sub(r"[^a-z0-9.]", "", said[: found.start()].lower()), found[1].lower()) if found else ("", "")
