"""In words, what a program is told so that an answer holds, and what of it is the program's own default."""

from __future__ import annotations

from typing import Any

from .page import Page
from .question import INFERENCE
from .settings import CARDS, CONTEXT, UNKNOWN_SHARE, unsaid


def with_flags(sentence: str, answer: dict[str, Any], shown: list[dict[str, str]], names: dict[str, str]) -> str:
    """The sentence that answers, and that it holds with flags where no command beside it has them."""
    best = answer["best"]
    is_below = answer["verdict"] in ("fits", "tight") and any(
        best["engine_id"] == one["engine_id"] and best["dtype_id"] in one["dtype_ids"]
        for one in unsaid(answer, shown, names)
    )
    return f"{sentence} It has to be started with the flags below." if is_below else sentence


def holds_for(answer: dict[str, Any]) -> str:
    """Which versions of a program that was named these figures are of, and what else they take; empty where none was named."""
    held = [row["holds_for"] for row in answer["formats"] if row["holds_for"]]
    if not (answer["use"].get("program") and held):  # of a version that lacks the model's class nothing does
        return ""
    but = "" if answer.get("has_own_context", True) else ", but for the context: it has none that a source tells"
    if but and answer["use"]["phase_id"] != INFERENCE and answer["best"]:
        but += f", so that {answer['best']['context_tokens']:,} tokens are counted, and longer rows take more"
    if answer.get("settings"):
        said = f"Holds for {held[0]}, started with the flags below; what else was not said is its own default{but}."
    else:
        said = f"Holds for {held[0]}; what was not said is its own default{but}."
    if kept := answer.get("kept_free_bytes"):
        said += f" In what it needs are {kept / 2**30:.1f} GiB of each card that it keeps free: for them layers go to the CPU."
    counted = answer.get("counted")
    if not counted or answer["verdict"] is None:
        return said
    requests = f"{counted['sequences']:,} requests at once and " if _few(answer, counted) else ""
    if own := counted.get("own_batched_tokens"):
        less = (
            "and it holds less"
            if answer["verdict"] == "fits"
            else "and what it holds then is less: that flag here asks for it"
        )
        return (
            f"{said} Counted are {requests}{counted['batched_tokens']:,} tokens in a step. By itself it reads {own:,} on this card "
            f"(--max-num-batched-tokens {own}), {less}."
        )
    if answer["use"].get("batched_tokens"):
        return f"{said} Counted are {requests}{counted['batched_tokens']:,} tokens in a step, as it was said."
    return (
        f"{said} Counted are {requests}{counted['batched_tokens']:,} tokens in a step, whatever its defaults are on the card; where those "
        "do not fit, the flags say so."
    )


def _few(answer: dict[str, Any], counted: dict[str, int]) -> bool:
    return (answer["use"].get("sequences") or 1) <= counted["sequences"]


def say_unsaid(answer: dict[str, Any], shown: list[dict[str, str]], page: Page, names: dict[str, str]) -> None:
    """The flags that no command beside the answer has, of each engine and its formats."""
    for one in unsaid(answer, shown, names):
        page.gap()
        formats = ", ".join(_format(name) for name in one["dtype_ids"])
        are = "is" if len(one["dtype_ids"]) == 1 else "are"
        # (a program that runs an engine within has words of its own)
        within = "" if answer["use"].get("program") else f" in {names.get(one['engine_id'], one['engine_id'])}"
        page.say(f"{formats}{within} {are} started with:")
        page.verbatim(one["setting"])
        if UNKNOWN_SHARE in one["setting"].split():
            page.say(f"{UNKNOWN_SHARE} is what it needs of the whole card, which nobody named.", "dim", "  ")


def setting_of_drafted(row: dict[str, Any]) -> str:
    """What an engine is told of a draft, of the context and of the cards: a server that is not told takes all that its model reads, on one card."""
    flag, cards = CONTEXT.get(row["engine_id"]), CARDS.get(row["engine_id"])
    words = [f"{flag} {row['context_tokens']}"] if flag else []
    words += [f"{cards} {row['gpu_count']}"] if cards and row["gpu_count"] > 1 else []
    return " ".join([*words, (row["engine_setting"] or "").replace(" HEAD ", f" {row['draft_model_id']} ")])


def _format(dtype: str) -> str:
    return dtype.removeprefix("gguf-").upper() if dtype.startswith("gguf-") else dtype
