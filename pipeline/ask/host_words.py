"""In words, how a model runs with a part of it in the computer's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .host import told_as

Gib = Callable[[int | None], str]


def _format(dtype: str) -> str:
    return dtype.removeprefix("gguf-").upper()


def _part(way: dict[str, Any]) -> str:
    """What lies in the computer's memory."""
    if way["cpu_expert_layers"] is not None:
        return f"the experts of {way['cpu_expert_layers']} of {way['layer_count']} layers"
    whole = way["layer_count"] + 1
    return f"{whole - way['gpu_layers']} of {whole} layers"


def beside(answer: dict[str, Any], where: str, at: str, gib: Gib) -> str:
    way = answer["beside"]
    of_one = f" one of {answer['card']['count']} cards" if way["cards"] > 1 else " the card"
    more = " With all of the cards less of it stays there; how much less is not worked out." if way["cards"] > 1 else ""
    return (
        f"Yes, with {_part(way)} in RAM: {answer['model']} can run on {where} in {_format(way['dtype_id'])} (llama.cpp) {at}: "
        f"{gib(way['gpu_bytes'])} GiB on{of_one}, {gib(way['host_bytes'])} of {gib(way['ram_bytes'])} GiB of RAM "
        f"({told_as(way, answer['use']['program'])}). Slower than what the card holds whole.{more}"
    )


def not_beside(answer: dict[str, Any], gib: Gib) -> str:
    """That the memory which was named does not take the rest either; empty where none was."""
    if answer["use"].get("ram_bytes") is None or answer["use"]["phase_id"] != "inference":
        return ""
    way = answer.get("beside")
    if way is None:
        return ""
    return (
        f" Nor does it with {gib(way['ram_bytes'])} GiB of RAM: {_format(way['dtype_id'])} would leave {gib(way['host_bytes'])} GiB there, and "
        f"{gib(way['system_bytes'])} GiB are the system's."
    )


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
