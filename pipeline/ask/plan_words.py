"""Plans in words: what every number of cards holds, how quick it is, and how long a training takes on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import contexts, shared
from .naming import PHASES, engine_name, format_name, gib_of, reach_of
from .page import Page
from .settings import CARDS


def plan(answer: dict[str, Any], page: Page) -> None:
    use = answer["use"]
    for each in answer["cards"] if "work" in answer else ():
        page.gap()
        _timed(answer, each, page)
    how = PHASES[use["phase_id"]] + (f" ({answer['objective']})" if "objective" in answer else "")
    for each in () if "work" in answer else answer["cards"]:
        card, plans = each["card"], each["plans"]
        page.gap()
        if each["verdict"] is None:
            page.say(f"Not known for {card['name']}: {each['reason'] or 'no figure'}.", "bold")
            continue
        if each["verdict"] == "no":
            page.say(
                f"No: {answer['model']} cannot {how} on {each['most']} × {card['name']}, the most that is worked out.",
                "bold",
            )
            continue
        first = plans[0]
        barely = " barely, without a margin" if each["verdict"] == "tight" else ""
        page.say(
            f"{first['gpu_count']} × {card['name']}{barely}: {answer['model']} can {how} "
            f"at {first['context_tokens']:,} tokens{contexts.said(first.get('own_context'), first['context_tokens'])}, "
            f"{gib_of(first['total_bytes'])} of {gib_of(first['capacity_bytes'])} GiB on each.",
            "bold",
        )
        if (use.get("program") or "objective" in answer) and first.get("holds_for"):
            page.say(f"Holds for {first['holds_for']}; what was not said is its own default.")
        if "objective" in answer:
            page.say(
                f"In {format_name(first['format'])}, {first['sequences']:,} {answer['rows']} at once on each card."
            )
        if "dtype_id" not in first and (sharing := shared.said(first)):
            page.say(sharing)
        if "dtype_id" in first and "tensor_parallel" in first:
            page.say(f"Started with {_degrees_told(first)}.")
        page.gap()
        if "dtype_id" in first:
            heads = ("format", "runs in", "cards", "needs, each", "longest context")
            rows = [
                (format_name(p["dtype_id"]), engine_name(p), str(p["gpu_count"]), gib_of(p["total_bytes"]), reach_of(p))
                for p in plans
            ]
        else:
            heads = ("shared", "runs in", "cards", "needs, each", "checkpointing")
            rows = [
                (_shared(p), engine_name(p), str(p["gpu_count"]), gib_of(p["total_bytes"]), p["checkpointing"] or "")
                for p in plans
            ]
        page.table(heads, rows, [_kind(p) for p in plans], drop=1)
        _serving(answer, each, page)
    for note in dict.fromkeys(note for each in answer["cards"] for note in each["card"]["notes"]):
        page.say(note)


def _serving(answer: dict[str, Any], each: dict[str, Any], page: Page) -> None:
    """How cards share many users, and what weights × users would be."""
    rows = each["serving"]
    if not rows:
        return
    first = rows[0]
    count = first["gpu_count_by_weights_times_users"]
    page.gap()
    page.say(
        f"The {first['users']:,} users in {format_name(first['dtype_id'])}: weights once in each copy, a cache for each user. Weights × users "
        f"would be {gib_of(first['weights_times_users_bytes'])} GiB, {count:,} card{'s' * (count != 1)}: the usual mistake."
    )
    heads = ("cards", "copies", "users of a copy", "needs, each", "tokens/s for each user", "at most")
    page.table(
        heads,
        [
            (str(r["gpu_count"]), f"{r['copy_count']} on {r['copy_gpu_count']}", str(r["copy_users"]), gib_of(r["total_bytes"]), _likely(r),
             "?" if r["user_tokens_per_second_most"] is None else f"{r['user_tokens_per_second_most']:,.0f}")
            for r in rows
        ],
        [_kind(r) for r in rows],
        drop=2,
    )  # fmt: skip
    page.say(
        f"Around {first['gpu_count']:,} of them: "
        + (f"{first['server_cpu_count']} CPU cores in a server, " if first["server_cpu_count"] else "")
        + f"{gib_of(first['server_memory_bytes'])} GiB of main "
        f"memory to load, {gib_of(first['disk_bytes'])} GiB of disk"
        + (f", at most {first['power_kw_most']:.2g} kW." if first["power_kw_most"] else "."),
        "dim",
    )


def _likely(row: dict[str, Any]) -> str:
    """What is likely for each user, with its band; a question mark where no published run says."""
    ends = [row[f"user_tokens_per_second_{end}"] for end in ("likely", "low", "high")]
    return "?" if ends[0] is None else "{:,.0f} ({:,.0f}–{:,.0f})".format(*ends)


def _timed(answer: dict[str, Any], each: dict[str, Any], page: Page) -> None:
    """A training with its time: the sentence, then hours by number of cards."""
    card, plans, work = each["card"], each["plans"], answer["work"]
    how, days = PHASES[answer["use"]["phase_id"]], f"{work['days']:g} day{'s' * (work['days'] != 1)}"
    text = f"{answer['model']} can {how} on {_data(work)}"
    if each["verdict"] is None:
        page.say(f"Not known for {card['name']}: {each['reason'] or 'no figure'}.", "bold")
        return
    if not plans:
        page.say(
            f"No: {answer['model']} cannot {how} on {each['most']} × {card['name']}, the most that is worked out.",
            "bold",
        )
        return
    first = plans[0]
    time = f"{_hours(first['hours'])}, {_hours(first['hours_least'])} to {_hours(first['hours_most'])}"
    if each["verdict"] == "no":
        page.say(f"Not in {days}: on {first['gpu_count']:,} × {card['name']} it takes {time}.", "bold")
    else:
        barely = "" if each["verdict"] == "fits" else "likely "
        page.say(f"{first['gpu_count']:,} × {card['name']}: {text}, {barely}within {days}: {time}.", "bold")
    page.gap()
    heads = ("shared", "runs in", "cards", "hours", "at most", "needs, each", *(("cost",) if work["price"] else ()))
    rows = [
        (_shared(p), engine_name(p), f"{p['gpu_count']:,}", _hours(p["hours"], ""), _hours(p["hours_most"], ""), gib_of(p["total_bytes"]),
         *((f"{p['cost']:,.0f}",) if work["price"] else ()))
        for p in plans
    ]  # fmt: skip
    page.table(
        heads,
        rows,
        ["fits" if p["finishes"] == "yes" else "tight" if p["finishes"] == "likely" else "no" for p in plans],
        drop=1,
    )
    page.gap()
    each = f" of {first['sequences']:,} sequences" if first["sequences"] > 1 else ""
    page.say(
        f"{first['data_tokens']:,} tokens at {100 * first['hardware_share']:.0f} % of the card's rate, as {first['share_basis']} reached; a step of "
        f"{first['global_batch_tokens']:,} tokens, {first['gradient_accumulation']:,} micro-batches{each} on each copy. A server needs "
        f"{first['server_cpu_count']} CPU cores and {gib_of(first['server_memory_bytes'])} GiB of main memory, the data and checkpoints "
        f"{gib_of(first['disk_bytes'])} GiB of disk."
        + (f" At most {first['energy_kwh_most']:,.2g} kWh." if first["energy_kwh_most"] else ""),
        "dim",
    )
    if first["link_gb_s_least"]:
        page.say(
            f"Cards that divide layers have to send {_rate(first['link_gb_s_least'])} GB/s to one another; where their link gives less, it takes longer.",
            "dim",
        )
    if first["network_gb_s_least"]:
        page.say(
            f"Each card has to send {_rate(first['network_gb_s_least'])} GB/s to the others; where their link gives less, it takes longer.",
            "dim",
        )


def _hours(hours: float, unit: str = " hours") -> str:
    return f"{hours:,.0f}{unit}" if hours >= 10 else f"{hours:.2g}{unit}"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _data(work: Mapping[str, Any]) -> str:
    if work["data_tokens"] is not None:
        return f"{work['data_tokens']:,} tokens"
    return f"{_text(work['data_bytes'])} of text"


def _text(size: int) -> str:
    for unit, word in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (1000, "kB")):
        if size >= unit:
            return f"{size / unit:g} {word}"
    return f"{size} bytes"


def _degrees_told(row: dict[str, Any]) -> str:
    """What a server is told of how its cards share; of data parallelism and experts the almanac says it."""
    tensor, stages, told = row["tensor_parallel"], row["pipeline_parallel"], row["engine_setting"] or ""
    if row.get("data_parallel", 1) > 1:
        return told
    ways = f"{CARDS[row['engine_id']]} {tensor}" if "data_parallel" in row else ""
    return f"{ways} {told}".strip() if ways else f"--tensor-parallel-size {tensor} --pipeline-parallel-size {stages}"


def _kind(row: dict[str, Any]) -> str | None:
    return "fits" if row["verdict"] == "multi-gpu" else row["verdict"]


def _shared(row: dict[str, Any]) -> str:
    ways = [row["sharding"]] if row["sharding"] not in (None, "none") else []
    for name, short in (
        ("tensor_parallel", "tensor"),
        ("pipeline_parallel", "pipeline"),
        ("context_parallel", "context"),
    ):
        if (row[name] or 1) > 1:
            ways.append(f"{short} {row[name]}")
    return ", ".join(ways) or "one card"
