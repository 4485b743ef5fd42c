"""What is asked of the almanac for a question, and which of its rows are told."""

from __future__ import annotations

import re
from typing import Any

from pipeline.book import commands as pasted
from pipeline.book.passes import TOLD

from .almanac import Almanac, Row
from .formats import OF_ENGINE, is_unread
from .question import INFERENCE, Card, Model, Use
from .works import held_of

# Formats in which more cards, an 8-bit cache and smaller models are tried: the usual one of each engine.
USUAL = ("gguf-q4_k_m", "gguf-mxfp4", "mxfp4", "awq-int4", "bf16")
SMALL_CACHE = "q8_0"
CHECKPOINTING = "full"  # of a training, as the pages open it
_WORTH_RAISING = 1.25  # of what a card gives as it comes
_ROUND = ("fp32",)  # twice as large as bf16
_SIXTEEN = ("bf16", "fp16")
_WHOLE = ("fp32", *_SIXTEEN)
VERDICTS = ("fits", "tight", "no")
COMPONENTS = tuple(
    f"{name}_bytes"
    for name in (
        "weights", "adapters", "kv_cache", "kv_padding", "state", "activations", "gradients", "optimizer", "overhead",
    )
)  # fmt: skip
# what a server or llama.cpp is told beside the format
SERVED_WITH = ("max_num_seqs", "batched_tokens", "enforce_eager", "text_only")
# of a training, by whoever made them
CHOICES = ("checkpointing", "optimizer_id", "precision", "loss", "attention", "lora_rank", "lora_targets")


def answered(almanac: Almanac, scenarios: list[Row], card: Card, use: Use, **how: Any) -> list[Row]:
    names = dict.fromkeys(name for scenario in scenarios for name in scenario)
    full = [{name: scenario.get(name) for name in names} for scenario in scenarios]
    if not use.is_plain:
        how |= {"is_plain": False, "is_usual": use.is_usual}
    rows = almanac.ask(full, card.gpu_id, card.free_bytes, phase_id=use.phase_id, **how)
    return rows if use.dtype_id else _once(rows)


def beyond_of(model: Model, use: Use) -> dict[str, int | float]:
    """What files hold beyond the format that they are counted in, or may, where they are what is asked about."""
    if model.more_share and is_unread(model, use):
        return {"more_share": model.more_share}
    is_its_file = model.beyond_bytes and not use.is_training and use.dtype_id == model.dtype_id
    return {"beyond_bytes": model.beyond_bytes} if is_its_file else {}


def _once(rows: list[Row]) -> list[Row]:
    """Without fp16 where bf16 says the same: it is told of cards alone that do not run bf16, and then bf16 is not, if it runs."""
    alike = ("model_id", "engine_id", "gpu_count", "kv_dtype_id", "sequences", *SERVED_WITH)
    key = lambda row: tuple(row.get(name) for name in alike)  # noqa: E731
    answered = {dtype: {key(row) for row in rows if row["dtype_id"] == dtype and row["verdict"]} for dtype in _SIXTEEN}
    bf16, fp16 = (answered[dtype] for dtype in _SIXTEEN)
    dropped = {"fp16": lambda at: at in bf16 or at not in fp16, "bf16": lambda at: at in fp16 and at not in bf16}
    return [row for row in rows if not (row["dtype_id"] in dropped and dropped[row["dtype_id"]](key(row)))]


def scenario_of(model: Model, use: Use, dtype: str | None, engine: str | None, count: int) -> Row:
    most = model.row.get("max_context_tokens")
    context = use.context_tokens if use.context_tokens is None or most is None else min(use.context_tokens, most)
    row = {
        "model_id": model.model_id,
        "dtype_id": dtype,
        "engine_id": use.sharding_engine_id or engine,
        "context_tokens": context,
        "sequences": use.sequences,
        "gpu_count": count,
        "kv_dtype_id": use.kv_dtype_id,
        "checkpointing": CHECKPOINTING if use.is_training and use.program is None else None,
    }
    given = {
        "lora_rank": use.lora_rank,
        "lora_targets": use.lora_targets,
        "lora_dropout": use.lora_dropout,
        "adapter": use.adapter,
        "program": use.program,
        "program_version": use.program_version,
        "sharding": use.sharding,
        "offload": use.offload,
        "tensor_parallel": use.tensor_parallel,
        "pipeline_parallel": use.pipeline_parallel,
        "data_parallel": use.data_parallel,
        "expert_parallel": count if use.expert_parallel else None,
        "batched_tokens": use.batched_tokens,
        "max_num_seqs": use.max_num_seqs,
        "text_only": use.text_only,
        "attention": use.attention,
        "enforce_eager": use.enforce_eager,
        "max_loras": use.max_loras,
        "max_lora_rank": use.max_lora_rank,
        "checkpointing": use.checkpointing,
        "optimizer_id": use.optimizer_id,
        "loss": use.loss,
        "images": use.images,
        "image_width": use.image_width,
        "image_height": use.image_height,
    }
    return row | {name: value for name, value in given.items() if value is not None}


_FORMATS_OF = {"mlx-vlm": "mlx-lm"}  # engines that are the usual one of no format, and whose formats they run

Format = tuple[str | None, str | None]


def formats_of(almanac: Almanac, model: Model, card: Card, use: Use, *, every: bool) -> list[Format]:
    """The formats, each with its engine (None in training: its own), that are told of: those that are published for the phase, or the one
    asked for; None for that of the program."""
    sets = almanac.rows(
        "SELECT dtype_ids, engine_ids FROM scenario_set WHERE purpose = 'lookup' AND list_contains(string_split(phase_ids, ' '), $phase)",
        {"phase": use.phase_id},
    )
    own: dict[str, str | None] = {}
    bits: dict[str, float | None] = {}  # (of inference: a training unpacks, or says why not)
    if not use.is_training:  # a training's engine is not that of its format
        formats = almanac.rows("SELECT dtype_id, engine_id, bits_per_weight FROM dtype")
        own = {row["dtype_id"]: row["engine_id"] for row in formats}
        bits = {row["dtype_id"]: row["bits_per_weight"] for row in formats}
    known = {
        (dtype, engine or own.get(dtype)): None
        for row in sets
        for dtype in row["dtype_ids"].split()
        for engine in (row["engine_ids"] or "").split() or [None]
    }
    if (use.program or use.engine_id) is not None and not use.is_training:
        # the engine of an old version has the formats of its successor
        names = (use.engine_id, str(use.engine_id).partition("-0.")[0], str(use.engine_id).partition("-4.")[0])
        names += (_FORMATS_OF.get(str(use.engine_id)),)
        served = {(dtype, use.engine_id): None for dtype, engine in known if engine == "vllm"}
        # (SGLang is the engine of no format: it serves those that vLLM does, or says why not)
        known = {(dtype, use.engine_id): None for dtype, engine in known if engine in names} or served
        own = dict.fromkeys(own, use.engine_id)
    if use.dtype_id is not None:
        # (mxfp4 is llama.cpp's and vLLM's)
        called = [one for one in known if use.dtype_id in (one[0], re.sub(OF_ENGINE, "", one[0]))]
        asked = [one for one in called if every or _is_here(one, card)]
        return asked or [(use.dtype_id, own.get(use.dtype_id))]
    if use.is_in_own_format and use.dtype_id is None:
        return [(None, None)]
    if every:
        return list(known)
    if model.files_engine is not None and use.program is None:
        # (on cards that do not run them the reason is told)
        known = {one: None for one in known if one[1] == model.files_engine}
        if not any(_is_here(one, card) for one in known):
            return [one for one in known if one[0] not in _WHOLE]
    stored = model.row["stored_format"]
    native = {stored, pasted.GGUF_OF.get(stored or "")} & {dtype for dtype, _engine in known} - set(_WHOLE)
    if stored in pasted.GGUF_OF and not unpacks(stored, use):
        # what is published in these few bits is not packed again, but for MLX, which has no other way
        told = [one for one in known if one[0] in native] or [one for one in known if one[0].startswith("mlx-")]
        return told or [(str(stored), use.engine_id)]
    if model.files_engine is None and pasted.is_packed(stored, bits):
        told = pasted.told_of_packed(str(stored), bits, held_of(almanac, model))
        # (a program that converts does not load them as they are)
        is_loaded = any(not str(one[0]).startswith(pasted.CONVERTED) for one in known)
        published = {(stored, own.get(str(stored))): None} if is_loaded else {}
        known = published | {one: None for one in known if one[0] in told}
    left = {"stored", *_ROUND, *pasted.GGUF_OF, *pasted.GGUF_OF.values()}
    # (of a program that has none of them here each is told with its reason)
    return [one for one in known if one[0] not in left and _is_here(one, card)] or list(known)


def unpacks(stored: str | None, use: Use) -> bool:
    """Whether a training's base is the checkpoint unpacked: one in few bits is trained itself in no phase but QLoRA."""
    return use.is_training and use.phase_id != "qlora" and stored in pasted.UNPACKED


def sees(almanac: Almanac, model_id: str) -> bool | None:
    """Of a model that sees, whether anybody counted what llama.cpp sets aside for its tower; None of what does not see."""
    place = almanac.schema_of("seeing_model")
    if place is None:
        return None
    rows = almanac.rows(f"SELECT has_counted_tower FROM {place}.seeing_model WHERE model_id = $id", {"id": model_id})
    return rows[0]["has_counted_tower"] if rows else None


def packings_of(almanac: Almanac, model_id: str, told: list[Row]) -> list[Row]:
    """How makers of repositories pack the model in the formats that are told, where that is not all of it in the format."""
    place = almanac.schema_of("model_packing")
    if place is None:
        return []
    rows = almanac.rows(f"SELECT dtype_id, note FROM {place}.model_packing WHERE model_id = $id", {"id": model_id})
    shown = {row["dtype_id"] for row in told}
    return sorted((row for row in rows if row["dtype_id"] in shown), key=lambda row: row["dtype_id"])


def counted_pass(almanac: Almanac, model: Model) -> Row | None:
    """What is to know of a model whose forward pass was counted whole."""
    if almanac.schema_of("forward_pass") is None:
        return None
    return next(iter(almanac.rows(f"FROM ({TOLD}) WHERE model_id = $id", {"id": model.model_id})), None)


def _is_here(one: tuple[str, str | None], card: Card) -> bool:
    """What is for Apple's chips is told of them alone."""
    return card.vendor == "apple" or not (one[0].startswith("mlx-") or one[1] in ("mlx-lm", "mlx-vlm"))


def packed_in(model: Model, use: Use) -> str | None:
    """The format of few bits that a model is published in and asked about as it is."""
    stored = model.row["stored_format"]
    return None if use.is_training or stored in _WHOLE else stored


def in_order(rows: list[Row], main: list[Format], published: str | None = None) -> list[Row]:
    """The largest weights first, which is the best quality, but for the format that a model is published in, of which all others are made;
    what is not known last. Of engines that run one format the one goes after another that takes less and reaches as far."""
    place = {dtype: k for k, (dtype, _engine) in enumerate(main)}
    ordered = sorted(
        rows,
        key=lambda r: (
            r["verdict"] is None,
            r["dtype_id"] != published,
            -(r["weights_bytes"] or 0),
            place.get(r["dtype_id"], 99),
            r["engine_id"] or "",
        ),
    )
    first: dict[tuple[Any, ...], int] = {}
    for at, row in enumerate(ordered):
        first.setdefault(_same_format(row), at)
    return sorted(ordered, key=lambda row: (first[_same_format(row)], sum(_is_better(other, row) for other in ordered)))


def _same_format(row: Row) -> tuple[Any, ...]:
    return row["verdict"] is None, row["dtype_id"]


def _is_better(other: Row, row: Row) -> bool:
    """Whether another engine takes less for the same format, reaches as far and leaves no less room for its error."""
    if (
        other["verdict"] is None
        or other["engine_id"] == row["engine_id"]
        or _same_format(other) != _same_format(row)
        or None in (other["total_bytes"], row["total_bytes"])
    ):
        return False
    reach, own = other["max_context_tokens"] or 0, row["max_context_tokens"] or 0
    rank = [VERDICTS.index(verdict_of(one) or "no") for one in (other, row)]
    return bool(other["total_bytes"] < row["total_bytes"] and reach >= own and rank[0] <= rank[1])


def best_of(rows: list[Row]) -> tuple[str | None, Row | None]:
    """The verdict of all formats together, and the first that has it."""
    for verdict in VERDICTS:
        for row in rows:
            if verdict_of(row) == verdict:
                return verdict, told_of(row)
    return None, None


def verdict_of(row: Row) -> str | None:
    return "fits" if row["verdict"] == "multi-gpu" else row["verdict"]


def told_of(row: Row) -> Row:
    names = (
        "dtype_id", "engine_id", "kv_dtype_id", "context_tokens", "sequences", "gpu_count", "sharding", "total_bytes", "error_band",
        "capacity_bytes", "headroom_bytes", "max_context_tokens", "model_context_tokens", "engine_setting", "holds_for", "unknown_reason",
    )  # fmt: skip
    # (an older almanac does not say what waits in the computer's memory, nor all that a total is made of)
    waits = {"offload": row["offload"], "host_bytes": row["host_bytes"]} if row.get("host_bytes") else {}
    parts = {name: row[name] for name in COMPONENTS if name in row}
    is_training = row.get("phase_id", INFERENCE) != INFERENCE
    choices = {name: row[name] for name in CHOICES if is_training and name in row}
    more = {name: row[name] for name in ("more_bytes", "hangs_on_copy")} if row.get("more_bytes") else {}
    more |= {"smallest_gib": row["smallest_gib"]} if "smallest_gib" in row else {}
    return {"verdict": verdict_of(row), **{name: row[name] for name in names}, **choices, **parts, **waits, **more}


def card_told(card: Card, count: int) -> dict[str, Any]:
    return {
        "gpu_id": card.gpu_id,
        "name": card.name,
        "count": count,
        "available": card.count,
        "capacity_bytes": card.capacity_bytes,
        "free_bytes": card.free_bytes,
        "usable_bytes": card.usable_bytes,
        "is_any": card.is_any,
        "notes": [*card.notes, *_as_it_comes(card)],
    }


def _as_it_comes(card: Card) -> list[str]:
    """Of a card whose memory a person can raise: that this is what it gives until then, and how that is asked."""
    given, most = (card.capacity_bytes or 0) / 2**30, (card.raisable_bytes or 0) / 2**30
    if card.free_bytes is not None or most < _WORTH_RAISING * given:
        return []
    return [
        f"{card.name} gives one process {given:.1f} GiB as it comes. Where it was raised ({card.raised_by}) it gives up to {most:.1f}: "
        f"--gpu {card.gpu_id} --free {int(most)}GiB"
    ]


def use_told(use: Use, rows: list[Row]) -> dict[str, Any]:
    told = dict(vars(use))
    if rows:
        told["context_tokens"] = rows[0]["context_tokens"]
        told["sequences"] = rows[0]["sequences"]
    return told
