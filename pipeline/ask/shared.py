"""How several cards share a training, in the words of those who start one: a sharding, and what waits in the computer's memory."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pipeline.base.bounds import in_words

from .problems import Wrong

# as people say it to --sharding, and as trainers are told it (ms-swift --deepspeed zero2_offload)
KNOWN = ("ddp", "fsdp2", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload", "tp")
OFFLOADS = ("none", "optimizer", "all")
_ZERO = re.compile(r"(?:deepspeed[-_ ]?)?zero[-_ ]?([123])([-_ ]?offload)?")
_FSDP = re.compile(r"fsdp2?([-_ ]?offload)?")
# what is DeepSpeed's where nobody names a program, or one whose own engine is Trainer's
_TRAINERS = (None, "transformers")
_WORDS = {
    ("deepspeed", "zero1"): "the optimizer in parts, one on each card, and all weights and gradients on each (DeepSpeed ZeRO-1)",
    ("deepspeed", "zero2"): "gradients and optimizer in parts, one on each card, and all weights on each (DeepSpeed ZeRO-2)",
    ("deepspeed", "zero3"): "weights, gradients and optimizer in parts, one on each card (DeepSpeed ZeRO-3): a start without that holds all of them on each",
    (None, "zero3"): "weights, gradients and optimizer in parts, one on each card (FSDP2, much as DeepSpeed ZeRO-3): a start without that holds all of them on each",
    (None, "zero2"): "gradients and optimizer in parts, one on each card, and all weights on each (DeepSpeed ZeRO-2)",
    (None, "zero1"): "the optimizer in parts, one on each card, and all weights and gradients on each (ZeRO-1, or Megatron's distributed optimizer)",
    (None, "ddp"): "weights, gradients and optimizer whole on each card (DDP)",
    (None, "tp"): "every layer divided among the cards (tensor parallelism)",
}  # fmt: skip
_ALONE = "DeepSpeed on one card (ZeRO-{stage}): fp32 masters beside the weights and buckets, as on several, and nobody to share them with"
_ON_HOST = {"optimizer": "gradients and optimizer", "all": "weights, gradients and optimizer"}


@dataclass(frozen=True)
class Way:
    """A sharding as it was asked for; `offload` is None where it says nothing of that."""

    sharding: str
    is_zero: bool  # which is DeepSpeed's, but for Megatron
    offload: str | None = None


def way_of(text: str) -> Way:
    """`zero2`, `ZeRO-3`, `zero3_offload`, `fsdp`, `ddp`. Raises Wrong with those that there are."""
    said = text.strip().lower()
    if found := _ZERO.fullmatch(said):
        offload = "all" if found[1] == "3" else "optimizer"
        return Way(f"zero{found[1]}", True, offload if found[2] else None)
    if found := _FSDP.fullmatch(said):
        return Way("zero3", False, "all" if found[1] else None)
    if said in ("ddp", "tp"):
        return Way(said, False)
    raise Wrong(f"--sharding {in_words(text)}: it is one of {', '.join(KNOWN)}")


def used(sharding: str | None, offload: str | None, program: Any, *, is_training: bool) -> dict[str, Any]:
    """What a use has of both. Raises Wrong where they do not go together, or are not of a training."""
    if sharding is None and offload is None:
        return {}
    if not is_training:
        said = "--sharding" if sharding else "--offload"
        raise Wrong(f"{said} is of a training: --phase lora, qlora, full-finetune or pretrain")
    engine = program.engine_id if program else None
    if sharding is None:
        if engine in _TRAINERS and offload != "none":
            raise Wrong(
                "--offload says what waits in the computer's memory beside --sharding: --sharding zero2 --offload optimizer, or zero3 or "
                "fsdp2 with --offload all"
            )
        return {"offload": offload}
    way = way_of(sharding)
    if way.offload and offload and offload != way.offload:
        raise Wrong(f"--sharding {in_words(sharding)} says --offload {way.offload}, not {offload}")
    offload = offload or way.offload
    if way.sharding in ("zero1", "zero2") and offload == "all":
        raise Wrong(
            f"{way.sharding} keeps all weights on every card: --offload optimizer, or --sharding zero3 --offload all"
        )
    if way.sharding in ("ddp", "tp") and offload not in (None, "none"):
        raise Wrong(f"{way.sharding} moves nothing to the computer's memory: --sharding zero2 --offload optimizer")
    if way.sharding == "zero3" and not way.is_zero and offload == "optimizer":
        raise Wrong("FSDP2 moves weights, gradients and optimizer together, or nothing: --offload all")
    is_deepspeed = way.is_zero and engine not in ("deepspeed", "megatron")
    return {
        "sharding": way.sharding,
        "sharding_engine_id": "deepspeed" if is_deepspeed else None,
        "offload": offload,
        "shares_alone": way.is_zero,
    }


def check_cards(use: Any, count: int) -> None:
    """Raises Wrong for one card where the way is of several."""
    if use.sharding is not None and count == 1 and not use.shares_alone:
        name = "fsdp2" if use.sharding == "zero3" else use.sharding
        raise Wrong(
            f"--sharding {name} is of several cards: --gpu 4xh100-sxm (on one DeepSpeed's zero2 and zero3 have their own cost)"
        )


STAGED = "Its heads do not divide by {count}: counted in {stages} stages of {cards} each."


def in_stages(told: list[dict[str, Any]], count: int, use: Any) -> list[tuple[int, int]]:
    """How so many cards may serve a model whose heads do not divide by them: tensor and pipeline parallel, the fewest stages first. None where
    that is not why nobody knows, or not of servers alone."""
    reasons = {row["unknown_reason"] or "" for row in told}
    is_heads = bool(reasons) and all(
        "do not divide by tensor_parallel" in r or "and tensor_parallel" in r for r in reasons
    )
    if use.is_training or not is_heads or not {row["engine_id"] for row in told} <= {"vllm", "sglang"}:
        return []
    return [(tensor, count // tensor) for tensor in range(count - 1, 0, -1) if count % tensor == 0]


def degrees(degree: dict[str, int | None], count: int, *, is_count_said: bool) -> int:
    """How many cards such degrees of inference (tensor, pipeline, data) are of. Raises Wrong where they do not make up those that are said."""
    asked = {name: n for name, n in degree.items() if n is not None}
    together = math.prod(asked.values())
    if not is_count_said and count == 1:
        return together
    tensor = asked.get("tensor")
    if tensor and len(asked) == 1 and count % tensor == 0 and count != tensor:
        others = count // tensor
        raise Wrong(
            f"--tensor-parallel {tensor} divides {tensor} of {count} cards: --pipeline-parallel {others} too, or --gpu {tensor}xCARD, "
            f"or --data-parallel {others}"
        )
    if count % together or (tensor and len(asked) > 1 and together != count):
        said = " × ".join(f"--{name}-parallel {n}" for name, n in asked.items())
        are = f"{said} are {together} cards" if len(asked) > 1 else f"{said} does not divide {count} cards"
        raise Wrong(f"{are}: --gpu {together}xCARD, or other degrees")
    return count


def said(row: dict[str, Any]) -> str | None:
    """How a row of training was counted, which nobody who starts a program sees; None where one card trains alone."""
    engine, sharding, count = row["engine_id"], row["sharding"], row.get("gpu_count") or 1
    own = "deepspeed" if engine == "deepspeed" else None
    text = _WORDS.get((own, sharding)) or _WORDS.get((None, sharding)) if count > 1 else None
    if own and count == 1:
        text = _ALONE.format(stage=sharding[-1] if sharding.startswith("zero") else "1 to 3")
    waits = _ON_HOST.get(row.get("offload") or "")
    if waits:
        size = row.get("host_bytes")
        many = "" if size is None else f", {size / 2**30:,.1f} GiB of it" + (" for each card" if count > 1 else "")
        text = f"{text or 'one card'}; {waits} wait in the computer's memory{many}"
    return f"Counted with {text}." if text else None
