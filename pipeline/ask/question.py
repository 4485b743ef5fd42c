"""What is asked: a model, a card or an amount of memory, and how the model is used. Names are looked up, near ones told."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.base.bounds import visible

from .almanac import Almanac
from .problems import Unknown, Wrong

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_AMOUNT = re.compile(r"(?i)\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b)\s*")
_BEFORE = re.compile(r"(\d{1,4})\s*[x×*]\s*(.+)")
_BEHIND = re.compile(r"(.+?)\s*(?:[×*]|\s[x])\s*(\d{1,4})")
INFERENCE = "inference"


@dataclass(frozen=True)
class Card:
    """What a model is held against: a card of the almanac, a part of one, or an amount of memory that stands for one."""

    gpu_id: str | None
    name: str  # as it is told
    vendor: str | None = None
    capacity_bytes: int | None = None  # what one process may have of it, others left out
    free_bytes: int | None = (
        None  # less than that, where something else holds a part; all there is to know of an unknown card
    )
    count: int = 1
    is_count_said: bool = False
    notes: tuple[str, ...] = ()  # what a person should know of it

    @property
    def usable_bytes(self) -> int:
        known = [size for size in (self.capacity_bytes, self.free_bytes) if size is not None]
        return min(known)


@dataclass(frozen=True)
class Use:
    """How a model is used. What is None is the almanac's default."""

    phase_id: str = INFERENCE
    context_tokens: int | None = None
    sequences: int = 1
    dtype_id: str | None = None
    kv_dtype_id: str | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    adapter: str | None = None

    @property
    def is_training(self) -> bool:
        return self.phase_id != INFERENCE

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing that few ask for: the formulas are shorter then."""
        return self.lora_rank is None and self.lora_targets is None and self.adapter is None


@dataclass(frozen=True)
class Model:
    """A row of the table `model`, by the name that it is told under."""

    model_id: str
    shown: str
    row: dict[str, Any] = field(repr=False)


def amount(text: str) -> int:
    """Bytes of `10GiB` or `10GB`. Raises ValueError."""
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise ValueError(
            f"{text[:40]!r} is no amount of memory: 10GiB (1,024³ bytes each), or 10GB (a thousand million bytes each)"
        )
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    if not 0 < size <= 2**50:
        raise ValueError(f"{text[:40]!r} is no amount of memory that a card has")
    return size


def counted(text: str) -> tuple[str, int | None]:
    """The name and the number of `2x rtx-3090`, `2×rtx-3090` or `rtx-3090 ×2`."""
    text = text.strip()
    if found := _BEFORE.fullmatch(text):
        return found[2].strip(), int(found[1])
    if found := _BEHIND.fullmatch(text):
        return found[1].strip(), int(found[2])
    return text, None


def model_of(almanac: Almanac, asked: str) -> Model:
    """The model of that name. Raises Wrong with the nearest names, Unknown where nothing is known of it but its name."""
    rows = almanac.rows("FROM model WHERE model_id = known_model($asked)", {"asked": asked})
    if not rows:
        near = almanac.value("SELECT nearest_models($asked)", {"asked": asked})
        raise Wrong(
            f"{visible(asked)} is not in this almanac. Near it: {near}. One that it does not hold is answered from its config.json: "
            "vram-almanac fits path/to/config.json"
        )
    (row,) = rows
    if row["anatomy_grade"] == "unknown" and not _is_pipeline(almanac, row["model_id"]):
        raise Unknown(f"Not known: {visible(row['anatomy_note'] or 'nothing but its name')}")
    return Model(row["model_id"], visible(row["model_id"]), row)


def _is_pipeline(almanac: Almanac, model_id: str) -> bool:
    return almanac.value("SELECT count(*) > 0 FROM component WHERE model_id = $id", {"id": model_id})


def card_of(almanac: Almanac, asked: str) -> Card:
    """The card of that id or name, and how many. Raises Wrong with the nearest ids."""
    name, count = counted(asked)
    if count == 0:
        raise Wrong("0 cards hold nothing: --gpu 2xrtx-3090 means two of them")
    rows = almanac.rows(
        "FROM gpu WHERE gpu_id IN (lower($name), asked_id($name)) OR asked_id(gpu.name) = asked_id($name) LIMIT 1",
        {"name": name},
    )
    if not rows:
        near = almanac.value("SELECT nearest_gpus($name)", {"name": name})
        raise Wrong(
            f"{visible(name)} is no card of this almanac. Near it: {near}. Any other card is asked by its memory: --free 10GiB"
        )
    return _card(rows[0], count)


def _card(row: dict[str, Any], count: int | None = None) -> Card:
    return Card(
        row["gpu_id"], visible(row["name"]), row["vendor"], row["capacity_bytes"], None, count or 1, count is not None
    )


def free_card(card: Card | None, free_bytes: int, said: str) -> Card:
    """An amount of memory, of a card or instead of one."""
    how = "" if "ib" in said.lower() else f" ({said.strip()} are {free_bytes / 2**30:.1f} GiB)"
    if card is None:
        note = "No card was named: whether one runs a format is not asked."
        return Card(None, f"{free_bytes / 2**30:.1f} GiB{how}", None, None, free_bytes, 1, False, (note,))
    if free_bytes > (card.capacity_bytes or 0):
        note = f"{card.name} gives one process {(card.capacity_bytes or 0) / 2**30:.1f} GiB; more is not free of it."
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
        return Card(None, name, None, None, size, notes=(note,) if size else ())
    (row,) = almanac.rows("FROM gpu WHERE gpu_id = $id", {"id": gpu_id})
    card = _card(row)
    if is_empty or one.free_bytes is None or one.free_bytes >= card.usable_bytes:
        return card
    taken = f"{one.free_bytes / 2**30:.1f} of its {card.usable_bytes / 2**30:.1f} GiB are free now, and that is what is asked (--empty: all of it)."
    return replace(card, free_bytes=one.free_bytes, notes=(taken,))


def dtype_of(almanac: Almanac, asked: str) -> str:
    """`Q4_K_M`, `gguf-q4_k_m` or `bf16` as the almanac spells it. Raises Wrong with the nearest."""
    rows = almanac.rows(
        "SELECT dtype_id FROM dtype WHERE dtype_id IN (lower($asked), 'gguf-' || lower($asked)) ORDER BY len(dtype_id) LIMIT 1",
        {"asked": asked.strip()},
    )
    if not rows:
        near = almanac.value(
            "SELECT nearest_ids('dtype', $asked)",
            {"asked": f"gguf-{asked}" if re.match(r"(?i)i?q\d", asked) else asked},
        )
        raise Wrong(f"{visible(asked)} is no format of this almanac. Near it: {near}")
    return rows[0]["dtype_id"]


def kv_dtype_of(almanac: Almanac, asked: str) -> str:
    known = [row["kv_dtype_id"] for row in almanac.rows("SELECT kv_dtype_id FROM kv_dtype")]
    if asked.strip().lower() not in known:
        raise Wrong(f"{visible(asked)} is no format of a cache: {', '.join(known)}")
    return asked.strip().lower()


def check_use(model: Model, use: Use) -> None:
    """Raises Wrong for a context that the model does not read."""
    most = model.row["max_context_tokens"]
    if use.context_tokens is not None and most is not None and use.context_tokens > most:
        raise Wrong(
            f"{model.shown} reads {most:,} tokens at most; --context {use.context_tokens} is beyond that (--context {most} is all of it)"
        )
