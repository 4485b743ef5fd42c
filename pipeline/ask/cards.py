"""The card that is asked about, and what it gives: one of the almanac by any of its names, this machine's, or an amount of memory in place of one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pipeline.base.bounds import visible

from . import card_names
from .almanac import Almanac
from .problems import Wrong
from .question import Card

_SIZE_ALONE = re.compile(r"(?i)\s*(\d+)\s*gi?b?(?:\s*v?ram)?\s*")
# of a board whose memory is the computer's, and of which nobody read what its system leaves free
_ALL_OF_IT = (
    "Its memory is the computer's, and all of it is counted on: what the system and other programs hold (free -h tells what is left) has to be left "
    "out, with --free 6GiB for example."
)
_SHOWN = 6  # names that may be meant, in a sentence


def card_of(almanac: Almanac, asked: str) -> Card:
    """The card of that id or name, and how many. Raises Wrong with the nearest ids."""
    name, count = card_names.counted(asked)
    if count == 0:
        raise Wrong("0 cards hold nothing: --gpu 2xrtx-3090 means two of them")
    called = card_names.called(almanac, name)
    least = min(called, key=lambda row: row["capacity_bytes"])
    (row,) = almanac.rows("FROM gpu WHERE gpu_id = $id", {"id": least["gpu_id"]})
    if len(called) == 1:
        return _card(row, count)
    named = [row["gpu_id"] for row in called]
    others = ", ".join(named if len(named) <= _SHOWN else named[:_SHOWN]) + ("" if len(named) <= _SHOWN else " …")
    note = f"{visible(name)} may be {others}: asked of the one that gives least, {row['gpu_id']}."
    sizes = {
        each["capacity_bytes"]: each["gpu_id"] for each in called if each["capacity_bytes"] > least["capacity_bytes"]
    }
    # (who says how large a card is means none by its name; all that gpus_called knows by that are of one maker)
    sized = _SIZE_ALONE.fullmatch(name)
    of_size = f"{row['vendor'].upper()} card{'s' if (count or 1) > 1 else ''}"
    shown = f"{sized[1]} GB {of_size}" if sized else visible(row["name"])
    return replace(
        _card(row, count),
        name=shown,
        notes=(note, *_card(row).notes),
        larger=tuple(sizes[size] for size in sorted(sizes)),
    )


def of_larger(almanac: Almanac, card: Card) -> list[Card]:
    """The others that go by the name a card was asked by, the one with least memory first."""
    rows = almanac.rows("FROM gpu WHERE list_contains($ids, gpu_id)", {"ids": list(card.larger)})
    by_id = {row["gpu_id"]: row for row in rows}
    return [_card(by_id[gpu_id], card.count if card.is_count_said else None) for gpu_id in card.larger]


def _card(row: dict[str, Any], count: int | None = None) -> Card:
    # (a file from before there was such a column has none)
    return Card(
        row["gpu_id"], visible(row["name"]), row["vendor"], row["capacity_bytes"],
        whole_bytes=row.get("whole_bytes") or row["capacity_bytes"], count=count or 1, is_count_said=count is not None,
        raisable_bytes=row.get("raisable_bytes"), raised_by=row.get("raised_by"),
        notes=(_ALL_OF_IT,) if row.get("segment") == "embedded" and not row.get("memory_mib_free") else (),
    )  # fmt: skip


def free_card(card: Card | None, free_bytes: int, said: str, count: int | None = None) -> Card:
    """An amount of memory, of a card or instead of one, or of `count` of them."""
    how = "" if "ib" in said.lower() else f" ({said.strip()} are {free_bytes / 2**30:.1f} GiB)"
    if card is None:
        note = "No card was named: whether one runs a format is not asked."
        many = f"{count} × " if count and count > 1 else ""
        name = f"{many}{free_bytes / 2**30:.1f} GiB{how}"
        return Card(None, name, free_bytes=free_bytes, count=count or 1, is_count_said=count is not None, notes=(note,))
    if (card.capacity_bytes or 0) < free_bytes <= (card.raisable_bytes or 0):
        gives = (card.capacity_bytes or 0) / 2**30
        note = f"As it comes a process gets {gives:.1f} GiB of it: asked is what it gives where it was raised ({card.raised_by})."
        return replace(card, capacity_bytes=free_bytes, free_bytes=free_bytes, notes=(*card.notes, note))
    if free_bytes > (card.capacity_bytes or 0):
        many = f"{card.count}x" if card.count > 1 else ""
        note = (
            f"{card.name} gives one process {(card.capacity_bytes or 0) / 2**30:.1f} GiB; more is not free of it. One that was given more memory is "
            f"asked by that alone, without --gpu: --free {many}{said.strip()}"
        )
        if card.raisable_bytes:
            note = (
                f"{card.name} gives one process {(card.capacity_bytes or 0) / 2**30:.1f} GiB as it comes, and {card.raisable_bytes / 2**30:.1f} at most "
                f"({card.raised_by})."
            )
        return replace(card, notes=(note,))
    return replace(card, free_bytes=free_bytes)


def machine_card(almanac: Almanac, *, is_empty: bool) -> Card:
    """The card of this machine, what is free of it now, and how many like it there are. Raises Wrong."""
    from . import machine

    found = machine.cards()
    sliced = [card for card in found if card.is_sliced]
    if sliced:
        raise Wrong(
            f"{visible(sliced[0].name)} is cut into slices (MIG), and what a slice gives is not in the almanac. Ask by its memory, as "
            "nvidia-smi -L and nvidia-smi mig -lgi tell it: --free 9.5GiB"
        )
    cards = [_of_machine(almanac, one, is_empty=is_empty) for one in found]
    told = [card for card in cards if card.capacity_bytes is not None or card.free_bytes is not None]
    if not told:
        raise Wrong(
            f"{visible(found[0].name)} is not in the almanac and does not say how much memory it has. Name a card: --gpu, or an amount: --free"
        )
    best = max(told, key=lambda card: card.usable_bytes)
    alike = [card for card in told if (card.gpu_id, card.name) == (best.gpu_id, best.name)]
    notes = list(best.notes)
    if len(alike) < len(cards):
        others = ", ".join(sorted({card.name for card in cards if card not in alike}))
        notes.append(f"This machine has {others} too: what unlike cards hold together is not worked out.")
    free = [card.free_bytes for card in alike if card.free_bytes is not None]
    return replace(best, count=len(alike), free_bytes=min(free) if free else None, notes=tuple(notes))


def _of_machine(almanac: Almanac, one: Any, *, is_empty: bool) -> Card:
    asked = {"name": one.name, "size": one.total_bytes}
    gpu_id = almanac.value("SELECT gpu_named($name, $size)", asked)
    name = visible(one.name)
    if gpu_id is None:
        # of a card that nobody described its memory is all there is
        size = one.total_bytes if is_empty or one.free_bytes is None else min(one.free_bytes, one.total_bytes)
        note = f"{name} is not in the almanac: its memory is taken as its driver tells it, and whether it runs a format is not asked."
        return Card(None, name, free_bytes=size, notes=(note,) if size else ())
    (row,) = almanac.rows("FROM gpu WHERE gpu_id = $id", {"id": gpu_id})
    card = _card(row)
    if is_empty or one.free_bytes is None or one.free_bytes >= card.usable_bytes:
        return card
    taken = f"{one.free_bytes / 2**30:.1f} of its {card.usable_bytes / 2**30:.1f} GiB are free now, and that is what is asked (--empty: all of it)."
    return replace(card, free_bytes=one.free_bytes, notes=(taken,))
