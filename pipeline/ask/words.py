"""Answers in words: the sentence first, then a small table, then what helps, then the command to paste.

Sizes are GiB, here only.
"""

from __future__ import annotations

from typing import Any

from . import contexts, host_words, shared, training_words
from .help_words import help_of
from .input_words import at_of, counted_with, without_reach
from .naming import (
    ENGINES,
    PHASES,
    VERDICTS,
    cards,
    engine_name,
    format_name,
    gib_of,
    placed,
    reach_of,
)
from .page import Page
from .setting_words import holds_for, say_unsaid, setting_of_drafted, with_flags

COMMANDS = 3  # that are shown; all of them with --all


def fits(answer: dict[str, Any], page: Page, most_commands: int = COMMANDS) -> None:
    card, use, verdict, best = answer["card"], answer["use"], answer["verdict"], answer["best"]
    shown = answer["commands"][:most_commands]
    sentence = _sentence(answer)
    if not card.get("is_any"):  # (it is started on none)
        sentence = with_flags(sentence, answer, shown, ENGINES)
    sentence = _of_its_name(answer) + sentence
    if answer.get("told_in"):
        page.say(
            f"Not known in {format_name(answer['not_in'])}. In {format_name(answer['told_in'])}, the next mix above it: {sentence}",
            "bold",
        )
    elif answer.get("not_in"):  # (what is told are other files than those that were named)
        page.say(f"Not known in {format_name(answer['not_in'])}: {answer['not_in_reason']}.", "bold")
        told = sentence.split(": ", 1)[1] if answer["verdict"] else sentence  # (a Yes would be of what was asked)
        page.say(f"Of the original there are other files, in formats that it runs. In these {told}")
    else:
        page.say(sentence, "bold")
    if answer.get("weights_bytes"):
        page.say(f"Its weights alone take {gib_of(answer['weights_bytes'])} GiB in bf16.")
    for note in card["notes"]:
        page.say(note)
    if about := answer.get("about"):
        context = (
            f"reads {about['max_context_tokens']:,} tokens"
            if about["max_context_tokens"]
            else "does not say how much it reads"
        )
        layers = (
            f" in {about['layer_count']:,} layers" if about["layer_count"] else ""
        )  # unknown where only weights are
        page.say(
            f"By its config it has {about['parameter_count']:,} parameters{layers} and {context}. {about['anatomy_note']}."
        )
    if answer.get("taken"):
        page.say(answer["taken"])
    if said := holds_for(answer):
        page.say(said)
    if best and use["phase_id"] != "inference" and "sharding" in best:
        for how in filter(None, (_unpacked(answer), training_words.chosen(answer), shared.said(best))):
            page.say(how)
    if answer.get("adapter"):
        page.say(_adapter(answer["adapter"]))
    if answer["formats"]:
        known = [row for row in answer["formats"] if row["verdict"] is not None]
        unknown = [row for row in answer["formats"] if row["verdict"] is None]
        if known:
            page.gap()
            rows = [
                (
                    format_name(row["dtype_id"]),
                    engine_name(row),
                    gib_of(row["total_bytes"]),
                    reach_of(row),
                    _smallest(row)
                    if card.get("is_any")
                    else "depends"
                    if row.get("hangs_on_copy")
                    else VERDICTS[row["verdict"]],
                )
                for row in known
            ]
            what = "needs, each" if any(row["gpu_count"] > 1 for row in known) else "needs"
            heads, *rows = without_reach(
                answer,
                [("format", "runs in", what, "longest context", "smallest card" if card.get("is_any") else ""), *rows],
            )
            page.table(heads, rows, [row["verdict"] for row in known], drop=1)
        by_reason: dict[tuple[str, str], list[str]] = {}
        for row in unknown if verdict is not None else ():
            by_reason.setdefault((engine_name(row), row["unknown_reason"]), []).append(format_name(row["dtype_id"]))
        for (engine, reason), names in by_reason.items():
            page.say(f"{', '.join(names)} in {engine}: {reason}", "dim", "  ")
        if said := counted_with(answer):
            page.say(said, "dim")
        for packed in answer.get("packed", ()):
            page.say(_packed(packed), "dim")
        if otherwise := answer.get("held_otherwise"):
            page.say(_otherwise(otherwise))
        if whole := answer.get("whole_experts"):
            page.say(
                f"In {' and '.join(whole['dtype_ids'])} its experts stay in 16 bits: Transformers {whole['engine_version']} holds them in one "
                "tensor, which bitsandbytes does not pack.",
                "dim",
            )
        if said := _hanging(known, is_training=use["phase_id"] != "inference"):
            page.say(said, "dim")
        reached = [row for row in known if row["max_context_tokens"] and not row["model_context_tokens"]]
        if reached and use["phase_id"] == "inference":
            page.say(
                "How many tokens it was made to read its config here does not say: longer ones fit, and may make no sense.",
                "dim",
            )
    if answer.get("placements"):
        page.gap()
        rows = [(placed(r), gib_of(r["total_bytes"]), VERDICTS[r["verdict"]]) for r in answer["placements"]]
        page.table(("", "needs", " "), rows, [r["verdict"] for r in answer["placements"]], drop=9)
        # (an older almanac does not say it)
        if held := next((r["holds_for"] for r in answer["placements"] if r.get("holds_for")), None):
            page.say(f"With text encoders packed it holds for {held}; releases before take more.")
    if answer["helps"]:
        page.gap()
        is_hopeless = all(help_["verdict"] == "no" for help_ in answer["helps"] if "verdict" in help_)
        page.say("What takes less:" if is_hopeless and answer["helps"][0]["help"] == "phase" else "What helps:")
        for help_ in answer["helps"]:
            page.say(f"- {help_of(help_, card, use)}", indent="  ")
    say_unsaid(answer, shown, page, ENGINES)
    for line in shown:
        page.gap()
        page.say(f"{line['engine']}, {format_name(line['dtype_id'])}:")
        page.verbatim(line["command"])
        if line["note"]:
            page.say(line["note"], "dim", "  ")
    if best and verdict == "tight" and best.get("hangs_on_copy"):
        page.gap()
        page.say("What a copy holds its files say: their sizes together are what its weights take.", "dim")
    elif best and verdict == "tight" and answer.get("kept_free_bytes"):
        page.gap()
        page.say("“Barely”: what it needs fits, the margin does not: layers may go to the CPU.", "dim")
    elif best and verdict == "tight":
        page.gap()
        page.say(
            "“Barely”: what it needs fits, the margin for what nobody can know beforehand does not: it may run out of memory.",
            "dim",
        )


def _smallest(row: dict[str, Any]) -> str:
    return "several" if row.get("smallest_gib") is None else f"{row['smallest_gib']:g} GB"


def _sentence(answer: dict[str, Any]) -> str:
    card, use, verdict, best = answer["card"], answer["use"], answer["verdict"], answer["best"]
    where = cards(card)
    if answer.get("placements") is not None and verdict:
        told = placed(best)
        told += f", for {answer['made']}" if answer.get("made") else ""
        how = {"fits": "Yes", "tight": "Barely", "no": "No"}[verdict]
        does = ("does not run", "runs")
        if use["phase_id"] != "inference":
            does = tuple(f"{can} {PHASES[use['phase_id']]}" for can in ("cannot", "can"))
        size = f"{gib_of(best['total_bytes'])} of {gib_of(card['usable_bytes'])} GiB"
        return f"{how}: {answer['model']} {does[verdict != 'no']} on {where}, with {told}: {size}.{_waiting(answer)}"
    if answer.get("way") and verdict is not None:
        return host_words.as_told(answer, where, at_of(answer), gib_of)
    if verdict is None:
        return f"Not known: {answer['reason'] or 'no figure of this model'}."
    if answer.get("beside") and verdict == "fits":
        return host_words.beside(answer, where, at_of(answer), gib_of)
    size = f"{gib_of(best['total_bytes'])} of {gib_of(best['capacity_bytes'])} GiB"
    at = at_of(answer)
    if card.get("is_any"):
        return f"What {answer['model']} needs to {PHASES[use['phase_id']]} {at}, in GiB, and the smallest NVIDIA card that gives it:"
    name = format_name(best["dtype_id"])
    how = PHASES[use["phase_id"]]
    if verdict == "fits":
        reach = reach_of(best)
        up = (
            ""
            if reach in ("–", "?") or at.startswith("for ")
            else ", the whole of what it reads"
            if reach.endswith("(all)") and best["max_context_tokens"] == best["context_tokens"]
            else f", up to {best['max_context_tokens']:,} fit"
        )
        each = " on each" if best["gpu_count"] > 1 else ""
        return (
            f"Yes: {answer['model']} can {how} on {where}, best in {name} ({engine_name(best)}): {size}{each} {at}{up}."
        )
    if verdict == "tight" and best.get("hangs_on_copy"):
        is_training = use["phase_id"] != "inference"
        least = "keeping as little in 16 bits as any" if is_training else "packed as most are"
        who = "It may keep more of it" if is_training else "Some makers leave more of it in 16 bits"
        return (
            f"It depends on the copy: {answer['model']} can {how} on {where} in {name} ({engine_name(best)}) from one {least}: {size} {at}. "
            f"{who}, up to {gib_of(best['more_bytes'])} GiB: then it may not fit."
        )
    if verdict == "tight":
        return (
            f"Barely: {answer['model']} may {how} on {where} in {name} ({engine_name(best)}): {size} {at}, which leaves less than its "
            f"error margin of {100 * best['error_band']:.0f} %."
        )
    least = min((row for row in answer["formats"] if row["total_bytes"]), key=lambda row: row["total_bytes"])
    if states := training_words.paged(answer, least):
        return (
            f"Not without paging: {answer['model']} may {how} on {where} {at} in {format_name(least['dtype_id'])}, but {gib_of(states)} of the "
            f"{gib_of(least['total_bytes'])} GiB that it needs are states of a paged optimizer, which the driver moves to the computer's memory as "
            f"the card runs out (slow): {gib_of(least['total_bytes'] - states)} of {gib_of(least['capacity_bytes'])} GiB stay on the card."
        )
    return (
        f"No: {answer['model']} cannot {how} on {where} {at}: the smallest of its formats here, {format_name(least['dtype_id'])}, "
        f"needs {gib_of(least['total_bytes'])} of {gib_of(least['capacity_bytes'])} GiB.{host_words.not_beside(answer, gib_of)}"
    )


def _hanging(rows: list[dict[str, Any]], *, is_training: bool) -> str:
    """What `depends` means in a table."""
    more = [row["more_bytes"] for row in rows if row.get("hangs_on_copy")]
    if not more:
        return ""
    least, most = gib_of(min(more)), gib_of(max(more))
    size = f"{most if least == most else f'{least} to {most}'} GiB more, and then it may not."
    if is_training:
        return f"“Depends”: how much the copy that is loaded keeps in 16 bits is not known. From one that keeps little it fits; it may be up to {size}"
    return f"“Depends”: packed as most copies are it fits; some makers leave more of such a model in 16 bits, here up to {size}"


def _waiting(answer: dict[str, Any]) -> str:
    """Where the parts of a pipeline are that are not on the card; nothing where all of them are, or where it does not run so."""
    size, ram = answer.get("waiting_bytes"), answer["use"].get("ram_bytes")
    if size is None or answer["verdict"] == "no":
        return ""
    less = ""
    if ram is not None and size > ram:
        less = f" That is more than the {gib_of(ram)} GiB that it has: it may end there, or read them from the disk each time."
    return f" All its parts, {gib_of(size)} GiB of weights, wait in the computer's memory, which is slower.{less}"


def _of_its_name(answer: dict[str, Any]) -> str:
    """Of a name that several cards have, which of them run it, before what is said of the one with least memory; nothing where that is the same."""
    larger = next((each for each in answer["helps"] if each["help"] == "larger"), None)
    if larger is None:
        return ""
    name = f"{format_name(larger['dtype_id'])} ({engine_name(larger)})"
    up = f", up to {larger['max_context_tokens']:,}" if larger["max_context_tokens"] else ""
    first = {"tight": "barely", "no": "no", None: "not known"}[answer["verdict"]]
    return f"{answer['card']['name']}: {first}; {larger['name']}: yes, in {name}{up}. "


def together(answer: dict[str, Any], page: Page) -> None:
    """What each of several unlike cards holds, and the command that shares it so."""
    rows = answer["together"]
    on = " + ".join(row["name"] for row in rows)
    if answer["verdict"] is None:
        page.say(f"Unknown: {answer['reason']}.", "bold")
        return
    said = {"fits": "Yes", "tight": "Barely", "no": "No"}[answer["verdict"]]
    band = max(row["error_band"] for row in rows) if said == "Barely" else 0
    less = f", which leaves less than its error margin of {100 * band:.0f} %" if band else ""
    does = "runs" if answer["verdict"] != "no" else "does not run"
    page.say(
        f"{said}: {answer['model']} {does} on {on} in {format_name(rows[0]['dtype_id'])} with llama.cpp at {rows[0]['context_tokens']:,} "
        f"tokens{contexts.said(answer['own_context'], rows[0]['context_tokens'])}{less}.",
        "bold",
    )
    layers = sum(row["gpu_layers"] for row in rows)
    for row in rows:
        page.say(
            f"- {row['name']}: {row['gpu_layers']} of {layers} layers, {gib_of(row['gpu_bytes'])} of {gib_of(row['capacity_bytes'])} GiB: {VERDICTS[row['verdict']]}"
        )
    if kept := answer.get("kept_free_bytes"):
        page.say(
            f"In that are {kept / 2**30:.1f} GiB of each card that Ollama keeps free: for them layers go to the CPU, unless LLAMA_ARG_FIT_TARGET=0 is in the "
            "environment of ollama serve."
        )
    for each in answer["commands"]:
        page.gap()
        page.verbatim(each["command"])


def drafted(answer: dict[str, Any], page: Page) -> None:
    """What a model and its draft hold together on a card, and what the engine is told for it."""
    if answer["verdict"] is None:
        page.say(f"Unknown: {answer['reason']}.", "bold")
        return
    row = answer["drafted"]
    said = {"fits": "Yes", "tight": "Barely", "no": "No"}[answer["verdict"]]
    less = f", which leaves less than its error margin of {100 * row['error_band']:.0f} %" if said == "Barely" else ""
    each, cards = (" on each", f"{row['gpu_count']} × ") if row["gpu_count"] > 1 else ("", "")
    of_draft = "" if row["draft_model_id"] == "mtp" else f" in {format_name(row['draft_dtype_id'])}"
    page.say(
        f"{said}: {answer['model']} in {format_name(row['dtype_id'])} with {answer['draft']}{of_draft} drafting "
        f"for it needs {gib_of(row['total_bytes'])} of {gib_of(row['capacity_bytes'])} GiB{each} on {cards}{answer['card']} ({engine_name(row)}) "
        f"at {row['context_tokens']:,} tokens{contexts.said(answer['own_context'], row['context_tokens'])}{less}.",
        "bold",
    )
    page.say(
        f"- of the draft: weights {gib_of(row['draft_weights_bytes'])}, cache {gib_of(row['draft_cache_bytes'])}, its buffers "
        f"{gib_of(row['draft_buffers_bytes'])} GiB; holds for {row['holds_for']}"
    )
    if answer["verdict"] != "no":
        page.gap()
        page.verbatim(setting_of_drafted(row))


def _packed(packed: dict[str, Any]) -> str:
    """That a format is counted as repositories of such a model hold it."""
    return f"{packed['dtype_id']} is counted as repositories of such models hold it: {packed['note']}."


def _otherwise(told: dict[str, Any]) -> str:
    """That repositories of a format hold other weights than those that are counted."""
    name = format_name(told["dtype_id"])
    rows = told["repositories"]
    held = ", ".join(
        f"{row['model']} ({gib_of(row['weights_bytes']) + ' GiB' if row['weights_bytes'] else 'how much is not known'})"
        for row in rows
    )
    return (
        f"Counted in {name} are weights of {gib_of(told['weights_bytes'])} GiB. No repository that is listed holds just these; others hold "
        f"other parts in few bits: {held}. Ask of the one that you load: vram-almanac fits {rows[0]['model']}"
    )


def _unpacked(answer: dict[str, Any]) -> str:
    """Of a checkpoint in few bits, that what is trained is another form of it."""
    if not (stored := answer.get("unpacked_from")):
        return ""
    return (
        f"Its weights are published in {format_name(stored)}: counted is the model unpacked to {format_name(answer['best']['dtype_id'])} as it is loaded "
        "(dequantize=True in its quantization_config)."
    )


def _adapter(told: dict[str, Any]) -> str:
    return (
        f"With its adapter kept beside the weights ({told['adapter_bytes'] / 2**20:,.0f} MiB in 16 bits); merged into them it takes nothing."
        if told.get("adapter_bytes") is not None
        else f"The adapter has rank {told['lora_rank']} on {told['lora_targets']}."
    )


def _margin(answer: dict[str, Any]) -> str:
    """` (5 %)`: the error margin of what fits, of several formats the least and the most."""
    rows = [row for row in answer.get("formats") or () if row["verdict"] == "fits" and row.get("error_band")]
    bands = sorted({round(100 * row["error_band"]) for row in rows})
    if not bands:
        return ""
    return f" ({bands[0]} %)" if len(bands) == 1 else f" ({bands[0]} to {bands[-1]} %, by format)"


def footer(version: str | None, place: str, note: str, page: Page, answer: dict[str, Any]) -> None:
    """Which figures these are, and how old."""
    page.gap()
    if note:
        page.say(note)
    page.say(f"Figures of {version or place}; what fits has room for its error margin{_margin(answer)}.", "dim")
