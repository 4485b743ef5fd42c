"""What is asked: a model, a card or an amount of memory, and how the model is used."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

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
_AMOUNT = re.compile(r"(?i)\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b?|b)\s*")
INFERENCE = "inference"


ANY = "20TiB"  # more than the largest takes in the largest format (Kimi-K3: weights of 10.1 TiB in fp32)


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
    whole_bytes: int | None = None  # all of it, of which servers take their share
    count: int = 1
    is_count_said: bool = False
    notes: tuple[str, ...] = ()  # what a person should know of it
    raisable_bytes: int | None = None  # what a person can let it give, where that is more
    raised_by: str | None = None  # how
    larger: tuple[str, ...] = ()  # others of its name, each with more memory than the one before

    @property
    def is_any(self) -> bool:
        """Whether no card was meant: what is asked is how much something needs."""
        return self.gpu_id is None and self.free_bytes == amount(ANY)

    @property
    def usable_bytes(self) -> int:
        known = [size for size in (self.capacity_bytes, self.free_bytes) if size is not None]
        return min(known)


@dataclass(frozen=True)
class Use:
    """How a model is used. What is None is the almanac's default."""

    phase_id: str = INFERENCE
    context_tokens: int | None = None
    sequences: int | None = 1
    dtype_id: str | None = None
    kv_dtype_id: str | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    lora_dropout: float | None = None
    adapter: str | None = None
    program: str | None = None  # whose defaults are taken
    program_version: str | None = None
    engine_id: str | None = None  # that of the program
    sharding: str | None = None  # of a training
    sharding_engine_id: str | None = None  # the engine that it is of, where that is not the program's own
    offload: str | None = None  # what waits in the computer's memory
    shares_alone: bool = False  # whether one card has that sharding too
    tensor_parallel: int | None = None  # cards that divide a layer
    pipeline_parallel: int | None = None  # stages of layers
    data_parallel: int | None = None  # groups of cards with requests of their own
    expert_parallel: bool | None = None  # whether routed experts lie over all cards
    checkpointing: str | None = None  # of a training
    optimizer_id: str | None = None
    loss: str | None = None
    share: float | None = None  # of the card, that vLLM may take
    max_num_seqs: int | None = None  # requests that it runs at once
    batched_tokens: int | None = None  # that it reads in a step
    text_only: bool | None = None  # what it sees with is left out
    attention: str | None = None
    ram_bytes: int | None = None  # the computer's own memory
    gpu_layers: int | None = None  # that llama.cpp is told to put on the card
    expert_layers: int | None = None  # whose experts it is told to keep off it
    enforce_eager: bool | None = None  # a server captures no graphs
    max_loras: int | None = None  # slots that it sets aside for adapters
    max_lora_rank: int | None = None
    is_in_own_format: bool = False  # whether that trains in a format of its own, which nobody asked to be another
    images: int | None = None  # in each prompt
    image_width: int | None = None
    image_height: int | None = None
    frames: int | None = None  # of a video that is made
    own_context: dict[str, Any] | None = None  # whose the context is, where nobody said it (contexts.py)

    @property
    def is_training(self) -> bool:
        return self.phase_id != INFERENCE

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing that few ask for: the formulas are shorter then."""
        said = (
            self.lora_rank,
            self.lora_targets,
            self.lora_dropout,
            self.adapter,
            self.program,
            self.sharding,
            self.offload,
        )
        said += (
            self.tensor_parallel,
            self.pipeline_parallel,
            self.expert_parallel,
            self.batched_tokens,
            self.max_num_seqs,
            self.text_only,
            self.enforce_eager,
            self.loss,
        )
        return self.is_usual and all(one is None for one in said)

    @property
    def is_usual(self) -> bool:
        """Whether it says nothing of pictures, data parallelism and adapters that are served, which fewer ask for still."""
        return self.images is None and self.data_parallel is None and self.max_loras is None

    @property
    def is_divided(self) -> bool:
        """Whether it says how cards share a server."""
        return bool(self.tensor_parallel or self.pipeline_parallel or self.data_parallel or self.expert_parallel)


@dataclass(frozen=True)
class Program:
    """A program that people run, as it is for one phase and version: the engine and the format that it takes by itself."""

    program_id: str
    version: str | None
    engine_id: str
    dtype_id: str | None


@dataclass(frozen=True)
class Work:
    """What a training has before it: text in bytes or in tokens, the days that there are, and what an hour of a card costs."""

    data_bytes: int | None
    data_tokens: int | None
    days: float
    price: float | None = None


@dataclass(frozen=True)
class Model:
    """A row of the table `model`, by the name that it is told under."""

    model_id: str
    shown: str
    row: dict[str, Any] = field(repr=False)
    dtype_id: str | None = None  # the format that its name speaks of
    note: str = ""  # what its name was taken for
    dtype_named: str | None = None  # what its name says of a format, whether that is one of the almanac or not
    format_note: str = ""  # and what is to know of that
    is_itself: bool = False  # whether the repository that was asked for is in the almanac, and answered as itself
    repository: str = ""  # that was asked for, whose files not every program loads
    files_engine: str | None = None  # the engine that loads them
    made_from: str | None = (
        ""  # what a repository that is answered as itself was made from: "" where it is no such, None where nobody knows
    )
    beyond_bytes: int = 0  # what its file holds beyond the format that it is counted in, at most
    is_own_mix: bool = False  # whether that file is none of our formats
    tag: str = ""  # of Ollama's library
    is_above: bool = (
        False  # whether it is told in the next mix above the one that its name speaks of, which nobody described
    )
    is_text_alone: bool = (
        False  # whether the figures leave out what it sees or hears with, which its repository may hold
    )
    held_otherwise: str = ""  # what its published total says against the format that its name speaks of
    # of a repository that is not in the almanac, in a format that makers pack in several ways; None where that is not so
    more_bytes: int | None = None  # what it may hold beyond the format, at most
    more_share: float = 0.0  # what of that no error band of the format has in it, as a share of the weights
    more_note: str = ""  # what is to know of that
    left_reason: str = (
        ""  # of a format that the program that is asked runs on no card that is known: what is known of that
    )
    says_bits_alone: bool = False  # whether its name says how many bits, and nothing of a format


SHOWN_BYTES = 2**30 // 20  # less is 0.0 GiB


def amount(text: str) -> int:
    """Bytes of `10GiB` or `10GB`. Raises ValueError."""
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise ValueError(
            f"{text[:40]!r} is no amount of memory: 10GiB (1,024³ bytes each), or 10GB (a thousand million bytes each)"
        )
    unit = found[2].lower()
    size = int(float(found[1]) * _UNITS[unit if unit.endswith("b") else f"{unit}b"])  # (20g: the fewer bytes)
    if not 0 < size <= 2**50:
        raise ValueError(f"{text[:40]!r} is no amount of memory")
    return size
