"""What a server or llama.cpp is told where a model does not fit as it comes: fewer requests, no graphs, text alone. All of them are one question: each
would be planned for as long as all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .almanac import Almanac, Row
from .question import Card, Model, Use
from .scenarios import SERVED_WITH, Format, answered, best_of, beyond_of, scenario_of
from .settings import CARDS, counted_of, read_by_itself

FEW_REQUESTS = 16  # that vLLM may run at once where it does not fit as it comes, or the users where these are more


@dataclass(frozen=True)
class _Way:
    """What is told, of which formats."""

    help: str
    use: Use
    formats: Sequence[Format]

    @property
    def told(self) -> dict[str, Any]:
        return {name: value for name in SERVED_WITH if (value := getattr(self.use, name))}


def served_otherwise(
    almanac: Almanac,
    model: Model,
    card: Card,
    use: Use,
    main: Sequence[Format],
    count: int,
    verdict: str | None,
    *,
    sees: bool,
) -> list[dict[str, Any]]:
    """What is told so that it fits, with its numbers: llama.cpp, of a model that sees; and of a server the first that is enough. That with few requests it
    barely fits is said where it does not at all."""
    ways = [way for way in _ways(almanac, card, use, main, sees) if way.formats]
    rows = _rows_of(almanac, model, card, use, ways, count)
    found, is_enough = [], False
    for way, answers in zip(ways, rows, strict=True):
        how, best = best_of(answers)
        helps = how == "fits" or (way.help == "requests" and how == "tight" and verdict == "no")
        if helps and best and not is_enough:
            few = {"max_num_seqs": way.use.max_num_seqs, "batched_tokens": way.use.batched_tokens}
            said = few if way.use.max_num_seqs != use.max_num_seqs else {}
            found.append({"help": way.help, **said, **best})
        is_enough |= how == "fits" and way.help != "text"
    return found


def _ways(almanac: Almanac, card: Card, use: Use, main: Sequence[Format], sees: bool) -> list[_Way]:
    """The least change first."""
    if use.is_training:
        return []
    of_llama = [(d, e) for d, e in main if e == "llama.cpp"]
    of_vllm = [(d, e) for d, e in main if (use.engine_id or e) == "vllm"]
    of_server = [(d, e) for d, e in main if (use.engine_id or e or "").partition("-")[0] in CARDS]
    ways = []
    if sees and not (use.images or use.text_only) and use.program in (None, "llama.cpp"):
        ways.append(_Way("text", replace(use, text_only=True), of_llama))
    few = _with_few(almanac, card, use) if of_vllm else None
    if few:
        ways.append(_Way("requests", few, of_vllm))
    if not use.enforce_eager:
        ways.append(_Way("eager", replace(use, enforce_eager=True), of_server))
        if few and of_server == of_vllm:
            ways.append(_Way("eager", replace(few, enforce_eager=True), of_server))
    return ways


def _with_few(almanac: Almanac, card: Card, use: Use) -> Use | None:
    """The use with few requests told to vLLM, in steps of as many tokens as it reads on the card by itself: it sets no logits of 256 aside, and
    captures fewer graphs. None where that is said already or would not be fewer."""
    few, counted = max(use.sequences or 1, FEW_REQUESTS), counted_of(almanac, "vllm")
    if use.is_training or use.max_num_seqs or not counted or few >= counted["sequences"]:
        return None
    own = read_by_itself(almanac, card)
    step = use.batched_tokens or (own if own and few <= own < counted["batched_tokens"] else None)
    return replace(use, max_num_seqs=few, batched_tokens=step)


def _rows_of(almanac: Almanac, model: Model, card: Card, use: Use, ways: Sequence[_Way], count: int) -> list[list[Row]]:
    """The answers of each way."""
    found: list[list[Row]] = [[] for _ in ways]
    scenarios = [scenario_of(model, way.use, d, e, count) for way in ways for d, e in way.formats]
    if not scenarios:
        return found
    most = max(ways, key=lambda way: len(way.told)).use
    for row in answered(almanac, scenarios, card, most, **beyond_of(model, use)):
        of = [k for k, way in enumerate(ways) if all(row.get(name) == value for name, value in way.told.items())]
        if of:  # (what one way is told may be told by another one too, beside more)
            found[max(of, key=lambda k: len(ways[k].told))].append(row)
    return found
