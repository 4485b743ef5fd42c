"""Answers in words: the sentence first, then a small table, then what helps, then the command to paste.

Sizes are GiB, here only.
"""

from __future__ import annotations

from typing import Any

from pipeline.base.bounds import visible

from . import contexts, host_words, shared, training_helps, training_words
from .input_words import at_of, counted_with, without_reach
from .page import Page
from .setting_words import holds_for, say_unsaid, setting_of_drafted, with_flags

COMMANDS = 3  # that are shown; all of them with --all
_GIB = 2**30
VERDICTS = {"fits": "fits", "tight": "barely", "no": "no", None: "unknown"}
PHASES = {
    "inference": "run", "lora": "be fine-tuned by LoRA", "qlora": "be fine-tuned by QLoRA",
    "full-finetune": "be fine-tuned in full", "pretrain": "be trained from the start",
}  # fmt: skip
ENGINES = {
    "llama.cpp": "llama.cpp",
    "vllm": "vLLM",
    "transformers": "Transformers",
    "mlx-lm": "MLX",
    "mlx-vlm": "MLX-VLM",
    "sglang": "SGLang",
    "deepspeed": "DeepSpeed",
    "exllamav3": "ExLlamaV3",
}
_PLACEMENTS = {
    "resident": "all parts on the card",
    "model": "one part at a time",
    "group": "one module and the next one",
    "sequential": "one module at a time",
    "cached": "the denoiser alone, latents and text made before",
}


def placed(row: dict[str, Any]) -> str:
    """How a pipeline's parts are placed, and what its denoiser and its text encoders are packed in."""
    packed = row.get("denoiser_dtype_id")
    told = _PLACEMENTS.get(row["placement"], row["placement"])
    told += ", decoded in tiles" if row.get("is_tiled") else ""
    parts = "denoiser and text encoders" if row.get("text_dtype_id") else "denoiser"
    whole = row["dtype_id"] if row.get("dtype_id") not in (None, "bf16") else None  # (which is what is told unasked)
    if packed:
        return f"{told}, {parts} in {format_name(packed)}" + (f" and the rest in {whole}" if whole else "")
    return f"{told}, in {whole}" if whole else told


def fits(answer: dict[str, Any], page: Page, most_commands: int = COMMANDS) -> None:
    card, use, verdict, best = answer["card"], answer["use"], answer["verdict"], answer["best"]
    shown = answer["commands"][:most_commands]
    sentence = _of_its_name(answer) + with_flags(_sentence(answer), answer, shown, ENGINES)
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
                    VERDICTS[row["verdict"]],
                )
                for row in known
            ]
            what = "needs, each" if any(row["gpu_count"] > 1 for row in known) else "needs"
            heads, *rows = without_reach(answer, [("format", "runs in", what, "longest context", ""), *rows])
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
            page.say(f"- {_help(help_, card, use)}", indent="  ")
    say_unsaid(answer, shown, page, ENGINES)
    for line in shown:
        page.gap()
        page.say(f"{line['engine']}, {format_name(line['dtype_id'])}:")
        page.verbatim(line["command"])
        if line["note"]:
            page.say(line["note"], "dim", "  ")
    if best and verdict == "tight" and answer.get("kept_free_bytes"):
        page.gap()
        page.say("“Barely”: what it needs fits, the margin does not: layers may go to the CPU.", "dim")
    elif best and verdict == "tight":
        page.gap()
        page.say(
            "“Barely”: what it needs fits, the margin for what nobody can know beforehand does not: it may run out of memory.",
            "dim",
        )


def receipt(answer: dict[str, Any], page: Page) -> None:
    version = f" {answer['version']}" if answer["version"] else ""
    users = f", {answer['sequences']} at once" if answer["sequences"] > 1 else ""
    silent = (
        ""
        if answer["is_context_said"]
        else " (ours: the log does not say how many, nor do the rows; --context says it)"
    )
    page.say(
        f"{answer['model']} in {format_name(answer['dtype_id'])}, {answer['context_tokens']:,} tokens{silent}{users}: what {answer['program']}{version} "
        f"says that it held, and what we say ({answer['holds_for']}).",
        "bold",
    )
    page.gap()
    rows = [
        (row["component"], _gib_exact(row["log_bytes"]), _gib_exact(row["ours_bytes"]), f"{row['difference']:+.1%}")
        for row in answer["components"]
    ]
    if rows:
        page.table(("", "log, GiB", "ours, GiB", "difference"), rows, [None for _ in rows], drop=9)
    else:
        page.say("Nothing in it is a component of ours.")
    page.gap()
    page.say(
        "For tables/measured.csv (add an id, where the log can be read, and the card; CONTRIBUTING.md says how):", "dim"
    )
    for line in answer["csv"].splitlines():
        page.verbatim(line)


def _gib_exact(size: int) -> str:
    return f"{size / _GIB:,.3f}"


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
        return f"{how}: {answer['model']} {does[verdict != 'no']} on {where}, with {told}: {gib_of(best['total_bytes'])} of {gib_of(card['usable_bytes'])} GiB."
    if answer.get("way") and verdict is not None:
        return host_words.as_told(answer, where, at_of(answer), gib_of)
    if verdict is None:
        return f"Not known: {answer['reason'] or 'no figure of this model'}."
    if answer.get("beside") and verdict == "fits":
        return host_words.beside(answer, where, at_of(answer), gib_of)
    size = f"{gib_of(best['total_bytes'])} of {gib_of(best['capacity_bytes'])} GiB"
    at = at_of(answer)
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


def _of_its_name(answer: dict[str, Any]) -> str:
    """Of a name that several cards have, which of them run it, before what is said of the one with least memory; nothing where that is the same."""
    larger = next((each for each in answer["helps"] if each["help"] == "larger"), None)
    if larger is None:
        return ""
    name = f"{format_name(larger['dtype_id'])} ({engine_name(larger)})"
    up = f", up to {larger['max_context_tokens']:,}" if larger["max_context_tokens"] else ""
    first = {"tight": "barely", "no": "no"}[answer["verdict"]]
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


def _help(told: dict[str, Any], card: dict[str, Any], use: dict[str, Any]) -> str:
    kind = told["help"]
    if kind == "layers":
        is_ollama = use["program"] == "ollama"
        if is_ollama and told.get("cpu_expert_layers") is not None:
            return (
                f"Share it with the CPU, as Ollama does by itself: all layers on the card in {format_name(told['dtype_id'])} with the experts of about "
                f"{told['cpu_expert_layers']} on the CPU, {gib_of(told['cpu_expert_host_bytes'])} GiB in main memory; slower (num_gpu moves whole layers)."
            )
        how = f"Ollama does so by itself; num_gpu {told['gpu_layers']}" if is_ollama else f"-ngl {told['gpu_layers']}"
        text = f"Share it with the CPU: {told['gpu_layers']} of {told['layer_count'] + 1} layers on the card ({how}) in {format_name(told['dtype_id'])}, {gib_of(told['host_bytes'])} GiB in main memory; slower."
        if told.get("cpu_expert_layers") is not None:
            text += f" Or all layers with the experts of {told['cpu_expert_layers']} on the CPU (-ngl 99 --n-cpu-moe {told['cpu_expert_layers']}), {gib_of(told['cpu_expert_host_bytes'])} GiB there."
        return text
    name = f"{format_name(told['dtype_id'])} ({engine_name(told)})"
    if kind in ("easier", "phase"):
        return training_helps.helped(told, name)
    if kind == "kept-free":
        return (
            f"The whole card: of {gib_of(told['kept_free_bytes'])} GiB that Ollama keeps free nothing is kept with LLAMA_ARG_FIT_TARGET=0 (in the environment "
            f"of ollama serve), and {name} fits."
        )
    if kind == "context":
        return f"A shorter context: {name} holds {told['max_context_tokens']:,} tokens."
    if kind == "cache":
        return f"A cache in 8 bits (--kv q8_0): {name} fits, up to {told['max_context_tokens']:,} tokens."
    if kind == "requests":
        reach = (
            f"fits, up to {told['max_context_tokens']:,} tokens"
            if told["verdict"] == "fits"
            else f"barely fits, in {gib_of(told['total_bytes'])} GiB"
        )
        return f"Fewer requests at once ({_fewer(told)}): {name} {reach}."
    if kind == "eager":
        flag = "--disable-cuda-graph" if told["engine_id"] == "sglang" else "--enforce-eager"
        flag = " ".join(filter(None, (flag, _fewer(told))))
        return f"Without CUDA graphs ({flag}), slower: {name} fits, {gib_of(told['total_bytes'])} GiB, up to {told['max_context_tokens']:,} tokens."
    if kind == "larger":
        many = f", {gib_of(told['total_bytes'])} GiB on each of {told['gpu_count']}" if told["gpu_count"] > 1 else ""
        return f"If yours is {told['name']}: it fits in {name}{many}, up to {told['max_context_tokens']:,} tokens (--gpu {told['gpu_id']})."
    if kind == "text":
        return f"Without what it sees with (--no-mmproj): {name} fits, {gib_of(told['total_bytes'])} GiB, up to {told['max_context_tokens']:,} tokens."
    if kind == "raised":
        most = told["raised_bytes"] // 2**30
        return (
            f"More of its memory: raised to at most {most} GiB ({told['raised_by']}), {name} fits with {gib_of(told['total_bytes'])} GiB, "
            f"up to {told['max_context_tokens']:,} tokens (--gpu {card['gpu_id']} --free {most}GiB)."
        )
    if kind == "cards":
        return f"{told['gpu_count']} such cards: it fits in {name}, {gib_of(told['total_bytes'])} GiB on each."
    return f"Smaller: {visible(told['model'])} fits in {name}, up to {told['max_context_tokens']:,} tokens."


def _fewer(told: dict[str, Any]) -> str:
    """How vLLM is told to run fewer requests at once, or nothing."""
    if not told.get("max_num_seqs"):
        return ""
    step = f" --max-num-batched-tokens {told['batched_tokens']}" if told["batched_tokens"] else ""
    return f"--max-num-seqs {told['max_num_seqs']}{step}"


def _adapter(told: dict[str, Any]) -> str:
    return (
        f"With its adapter kept beside the weights ({told['adapter_bytes'] / 2**20:,.0f} MiB in 16 bits); merged into them it takes nothing."
        if told.get("adapter_bytes") is not None
        else f"The adapter has rank {told['lora_rank']} on {told['lora_targets']}."
    )


def what(answer: dict[str, Any], page: Page, again: str) -> None:
    """The models of a card; `again` is how the first of them is asked for."""
    card, models = answer["card"], answer["models"]
    many = f" for {answer['sequences']:,} users at once" if answer["sequences"] > 1 else ""
    at = f"at {answer['context_tokens']:,} tokens{many}"
    if answer["reason"]:
        page.say(f"Not known: {answer['reason']}.", "bold")
    elif not models:
        page.say(f"Nothing: none of {answer['of']:,} models to {answer['label']} fits {cards(card)} {at}.", "bold")
    else:
        page.say(
            f"{answer['fitting']:,} of {answer['of']:,} models to {answer['label']} fit {cards(card)} {at}; the newest and most downloaded:",
            "bold",
        )
    for note in card["notes"]:
        page.say(note)
    if models:
        page.gap()
        rows = [
            (
                m["model"],
                _count(m["parameter_count"]),
                m["created_at"] or "",
                format_name(m["dtype_id"]),
                gib_of(m["total_bytes"]),
                reach_of(m),
            )
            for m in models
        ]
        page.table(
            ("model", "size", "made", "format ", "needs", "longest context"),
            rows,
            [m["verdict"] for m in models],
            drop=2,
        )
    if "beside" in answer:
        host_words.all_beside(answer["beside"], page, gib_of, _count)
    if again:
        page.gap()
        page.verbatim(f"More of one: vram-almanac fits {again}")


def cards(card: dict[str, Any]) -> str:
    if card["gpu_id"] is None:
        return card["name"]
    return f"{card['count']} × {card['name']}" if card["count"] > 1 else f"one {card['name']}"


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


def format_name(dtype: str) -> str:
    return dtype.removeprefix("gguf-").upper() if dtype.startswith("gguf-") else dtype


def engine_name(row: dict[str, Any]) -> str:
    return ENGINES.get(row["engine_id"], row["engine_id"])


def gib_of(size: int | None) -> str:
    return "?" if size is None else f"{size / _GIB:,.1f}"


def reach_of(row: dict[str, Any]) -> str:
    found, whole = row["max_context_tokens"], row["model_context_tokens"]
    if found is None:
        return "?"
    if not found:
        return "–"
    return f"{found:,} (all)" if whole and found >= whole else f"{found:,}"


def _count(number: int | None) -> str:
    if not number:
        return "?"
    for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


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
