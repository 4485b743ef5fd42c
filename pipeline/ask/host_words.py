"""In words, how a model runs with a part of it in the computer's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.book import beside as said

from .host import told_as
from .page import Page

Gib = Callable[[int | None], str]


def _format(dtype: str) -> str:
    return dtype.removeprefix("gguf-").upper()


def _part(way: dict[str, Any]) -> str:
    """What lies in the computer's memory."""
    part = "layers" if way["cpu_expert_layers"] is None else "experts"
    whole = way["layer_count"] + 1
    given = {"experts": way["cpu_expert_layers"], "blocks": way["layer_count"]}
    return said.PARTS[part].format(**given, rest=whole - way["gpu_layers"], whole=whole)


def beside(answer: dict[str, Any], where: str, at: str, gib: Gib) -> str:
    way = answer["beside"]
    which = f"one of {answer['card']['count']} cards" if way["cards"] > 1 else "the card"
    more = " With all of the cards less of it stays there; how much less is not worked out." if way["cards"] > 1 else ""
    sizes = {"on_card": gib(way["gpu_bytes"]), "in_ram": gib(way["host_bytes"]), "ram": gib(way["ram_bytes"])}
    given = {"part": _part(way), "model": answer["model"], "where": where, "format": _format(way["dtype_id"]), "at": at}
    return said.HELD.format(**given, **sizes, which=which, told=told_as(way, answer["use"]["program"])) + more


def not_beside(answer: dict[str, Any], gib: Gib) -> str:
    """That the memory which was named does not take the rest either; empty where none was."""
    if answer["use"].get("ram_bytes") is None or answer["use"]["phase_id"] != "inference":
        return ""
    way = answer.get("beside")
    if way is None:
        return ""
    sizes = {"ram": gib(way["ram_bytes"]), "in_ram": gib(way["host_bytes"]), "system": gib(way["system_bytes"])}
    return " " + said.NOT_HELD.format(**sizes, format=_format(way["dtype_id"]))


def all_beside(told: dict[str, Any], page: Page, gib: Gib, count: Gib) -> None:
    """What fits with a part of it in the computer's memory, as a list."""
    ram, models, fitting, mixtures = gib(told["ram_bytes"]), told["models"], told["fitting"], told["mixtures"]
    page.gap()
    if told["unknown_reason"]:
        page.say(f"RAM beside it is not counted: {told['unknown_reason']}.")
        return
    dense = "" if told["has_dense"] else " Dense models are not listed so; fits asks for one."
    if not models:
        page.say(f"With {ram} GiB of RAM no other does, in llama.cpp.{dense}")
        return
    page.say(f"With {ram} GiB of RAM {_others(fitting, mixtures)}{dense} The newest and most downloaded:", "bold")
    page.gap()
    rows = [
        (m["model"], count(m["parameter_count"]), _format(m["dtype_id"]), gib(m["gpu_bytes"]), gib(m["host_bytes"]), m["flags"])
        for m in models
    ]  # fmt: skip
    heads = ("model", "size", "format", "on card", "in RAM", "told")
    page.table(heads, rows, [None] * len(rows), drop=1)


def _others(fitting: int, mixtures: int) -> str:
    """How many others run so, and what of them lies in RAM."""
    many = f"{fitting:,} others run" if fitting > 1 else "one other runs"
    lies = "The experts of some layers lie there" if mixtures else "Some layers lie there"
    if 0 < mixtures < fitting:
        of = f"{mixtures:,} mixtures" if mixtures > 1 else "one mixture"
        lies = f"Of {of} the experts of some layers lie there, which costs least, of the rest whole layers"
    return f"{many} in llama.cpp, slower than what the card holds whole. {lies}."


def as_told(answer: dict[str, Any], where: str, at: str, gib: Gib) -> str:
    way = answer["way"]
    size = f"{gib(way['gpu_bytes'])} of {gib(way['capacity_bytes'])} GiB on the card"
    rest = f"{gib(way['host_bytes'])} GiB of RAM"
    told = told_as(way | {"gpu_layers": way["gpu_layers"] or way["layer_count"] + 1}, answer["use"]["program"])
    text = f"{_part(way)} in RAM ({told}): {answer['model']} in {_format(way['dtype_id'])} {at} takes {size} and {rest}"
    if answer["verdict"] == "fits":
        return f"Yes, with {text}."
    if answer["verdict"] == "tight":
        return f"Barely, with {text}, which leaves less than its error margin of {100 * way['error_band']:.0f} %."
    if not way["is_held"]:
        return f"No, not with {text}, of {gib(way['ram_bytes'])} GiB, of which {gib(way['system_bytes'])} are the system's."
    if way["fitting"] is None:
        return f"No, not with {text}."
    if way["cpu_expert_layers"] is None:
        return f"No, not with {text}. The most that fit are {way['fitting']} (-ngl {way['fitting']})."
    return f"No, not with {text}. From {way['fitting']} on it fits (--n-cpu-moe {way['fitting']})."
