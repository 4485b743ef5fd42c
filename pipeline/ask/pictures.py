"""`fits` of diffusion pipelines, by the pictures or videos that they make: rows of `pipeline_fits_on` and `pipeline_training_fits_on`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.base.bounds import in_words
from pipeline.book import commands as pasted

from .almanac import Almanac, Row
from .helps import has_stages
from .naming import format_name
from .problems import Unknown, Wrong
from .programs import named_program, program_of
from .question import INFERENCE, Card, Model, Use
from .repositories import by_file, known_parts
from .scenarios import VERDICTS, card_told, use_told

# what is made where nobody says it, as site/made.csv has it
PICTURE = {"width": 1024, "height": 1024, "frames": 1}
VIDEO = {"width": 832, "height": 480, "frames": 81}
PROGRAM = "diffusers"  # whose placements are told: without a program, and with it


def is_made_by(almanac: Almanac, model: Model) -> bool:
    """Whether a model is a pipeline of several parts that makes pictures or videos, and is asked by these."""
    return model.row["pipeline_tag"] not in pasted.TALKING and has_stages(almanac, model)


def check_program(almanac: Almanac, asked: str) -> None:
    """Nothing where diffusers itself is named, which is what is told. Raises Unknown or Wrong for any other program."""
    name, version = named_program(asked)
    own, said = (
        almanac.rows("FROM program_called($name, version := $version)", {"name": name, "version": each})[0]
        for each in (None, version)
    )
    # (its scripts train what it runs; whether another program runs or trains models of text says nothing of pipelines)
    if own["program_id"] == PROGRAM:
        is_told = said["unknown_reason"] == own["unknown_reason"]
    else:
        is_told = own["name"] is not None and not (own["is_known"] and own["unknown_reason"])
    if not is_told:
        program_of(
            almanac, asked, INFERENCE
        )  # which says why: there is no such program or version, or it is not answered for
    if own["program_id"] != PROGRAM:
        raise Unknown(
            f"Not known: what {in_words(name)} holds of a pipeline of several parts. What {PROGRAM} does is told without --program"
        )


def check_use(model: Model, use: Use) -> None:
    """Raises Wrong for what is no part of the question: it would be passed over, and the answer be of something else."""
    if use.context_tokens is not None or use.kv_dtype_id is not None:
        raise Wrong(
            f"{model.shown} makes pictures or videos and holds no context: it is asked by --images, --image-size and --frames"
        )


def check_seen(said: str, asked: Any, *, is_training: bool) -> None:
    """Raises Wrong where a prompt with images is not asked about, with what can be."""
    if is_training and (asked.phase not in ("lora", "qlora") or getattr(asked, "objective", None)):
        raise Wrong(
            f"How much images take in a training is known of LoRA and QLoRA. Leave out {said}: the training is answered with text "
            "alone, and images take more. Or --phase lora, or --phase qlora; or leave out --phase: what running the model with images takes is known"
        )
    if getattr(asked, "draft", None):
        raise Wrong(f"A model with a draft is answered with text alone: leave out {said}, or --draft")
    if "+" in (asked.gpu or ""):
        raise Wrong(
            f"Unlike cards together are answered with text alone: leave out {said}, or name cards of one kind (--gpu 2xrtx-3090)"
        )


def made_of(almanac: Almanac, model: Model, use: Use) -> dict[str, int]:
    """What is made at once: how many, and how large. Raises Wrong for frames of a pipeline that makes single pictures."""
    is_video = _makes_videos(almanac, model)
    if use.frames is not None and use.frames > 1 and not is_video:
        raise Wrong(f"--frames is of what makes videos: {model.shown} makes pictures")
    usual = VIDEO if is_video else PICTURE
    return {
        "width": use.image_width or usual["width"],
        "height": use.image_height or usual["height"],
        "frames": use.frames or usual["frames"],
        "images": (use.images or 1) * (use.sequences or 1),
    }


def fits(almanac: Almanac, model: Model, card: Card, use: Use) -> dict[str, Any]:
    """A diffusion pipeline: all parts on the card, one part at a time (its denoiser packed, too), one module at a time."""
    made = made_of(almanac, model, use)
    note = None
    if card.gpu_id is None:
        reason = "a pipeline of several parts is held against cards of the almanac alone (--gpu)"
        rows: list[Row] = []
    elif card.free_bytes is not None:
        reason, rows = "a pipeline of several parts is held against whole cards alone (--gpu, or --empty)", []
    elif use.is_training:
        asked = {"gpu": card.gpu_id, "model": model.model_id} | made
        rows, note = _in_what_runs(lambda base: _trained(almanac, asked | {"base": base}, use), use.dtype_id)
        reason = next((row["unknown_reason"] for row in rows if row["unknown_reason"]), LORA_ALONE)
    else:
        asked = {"gpu": card.gpu_id, "model": model.model_id} | made
        rows, note = _in_what_runs(lambda base: _placed(almanac, asked | {"base": base}, use.dtype_id), use.dtype_id)
        reason = next((row["unknown_reason"] for row in rows if row["unknown_reason"]), None)
        if reason and use.dtype_id in (None, *WHOLE):
            reason += known_parts(almanac, model.model_id) + by_file(almanac, model.model_id)
        elif reason:
            reason += _known_formats(almanac, asked | {"base": WHOLE[0]})
    verdict = next((v for v in VERDICTS if any(row["verdict"] == v for row in rows)), None)
    # (of what does not fit the least is told)
    best = _first(sorted(rows, key=_bytes) if verdict == "no" else rows, verdict)
    waiting = None if use.is_training or best is None else _waiting(almanac, model, best)
    return {
        "model": model.shown,
        "card": card_told(card, 1),
        "use": use_told(use, []),
        "verdict": verdict,
        "best": best,
        "waiting_bytes": waiting,
        "placements": rows,
        "made": _made(made, use) if rows else None,
        **({"taken": note} if note else {}),
        "formats": [],
        "helps": [],
        "commands": [],
        "reason": None if verdict else reason,
    }


BASE = ", dtype_id := $base"  # what all is in that is not packed
SIZES = ("width", "height", "frames", "images")
SIZE = BASE + "".join(f", {name} := ${name}" for name in SIZES)
WHOLE = ("bf16", "fp16", "fp32")  # formats of a whole pipeline; any other is one of its denoiser
OLDER = "fp16"  # of cards that do not run bf16
PACKED = ("fp8", "gguf-q8_0", "gguf-q4_k_s", "nf4")  # those that are told unasked, the most bits first
TEXT_PACKED = ("fp8", "nf4")  # of these, what text encoders can be held in, too


def _in_what_runs(rows_in: Callable[[str], list[Row]], dtype: str | None) -> tuple[list[Row], str | None]:
    """The rows in bf16, and of a card that does not run that in fp16, as those load a pipeline who have one: with what is to be said of it."""
    if dtype in WHOLE:
        return rows_in(dtype), None
    rows = rows_in(WHOLE[0])
    barred = next(
        (row["unknown_reason"] for row in rows if row["total_bytes"] is not None and row["verdict"] is None), None
    )
    if barred is None or any(row["verdict"] for row in rows):
        return rows, None
    older = rows_in(OLDER)
    # (where that is not known either, the reason is its own)
    if not any(row["verdict"] or row["unknown_reason"] != barred for row in older):
        return rows, None
    told = [row | {"dtype_id": OLDER} for row in older]
    return told, f"Counted in {OLDER} (torch_dtype=torch.float16): {barred.partition(':')[0]}."


# the formats of denoiser and text encoders, and whether what was made is decoded in tiles
Packed = tuple[str | None, str | None, bool]
PLAIN: Packed = (None, None, False)


def _told(almanac: Almanac, asked: Row, packed: Sequence[Packed]) -> dict[Packed, list[Row]]:
    """What the almanac says of each, the placement that holds most first: asked at once, since a question takes longer to plan than to answer."""
    columns = {
        "model_id": [asked["model"]] * len(packed),
        "dtype_id": [asked["base"]] * len(packed),
        **{name: [asked[name]] * len(packed) for name in SIZES},
        "denoiser_dtype_id": [denoiser for denoiser, _, _ in packed],
        "text_dtype_id": [text for _, text, _ in packed],
        "is_tiled": [is_tiled for _, _, is_tiled in packed],
    }
    rows = almanac.ask_pipelines(columns, asked["gpu"])
    told: dict[Packed, list[Row]] = {one: [] for one in packed}
    for row in rows:
        told[packed[row.pop("asked_row") - 1]].append(row)
    return told


def _placed(almanac: Almanac, asked: Row, dtype: str | None) -> list[Row]:
    """The ways to place the parts, the quickest first."""
    if dtype in WHOLE:
        return [row | {"dtype_id": dtype} for row in _told(almanac, asked, [PLAIN])[PLAIN]]
    if dtype is not None:
        one: Packed = (dtype, None, False)
        return [row | {"denoiser_dtype_id": dtype} for row in _told(almanac, asked, [one])[one]]
    in_tiles: list[Packed] = [(each, None, True) for each in (None, *PACKED)]
    alone: list[Packed] = [(each, None, False) for each in PACKED]
    both: list[Packed] = [(each, each, False) for each in TEXT_PACKED]
    told = _told(almanac, asked, [PLAIN, *in_tiles, *alone, *both])
    rows = told[PLAIN]
    if any(row["verdict"] == "fits" for row in rows if row["placement"] == "resident"):
        return rows
    rows += _in_tiles({denoiser: told[denoiser, None, True] for denoiser, _, _ in in_tiles}, rows)
    packed = [
        row | {"denoiser_dtype_id": one[0]}
        for one in alone
        for row in told[one]
        if row["placement"] == "model" and row["total_bytes"] is not None
    ]
    packed += _all_packed({one[0]: told[one] for one in both}, packed)
    at = next((i + 1 for i, row in enumerate(rows) if row["placement"] == "model"), len(rows))
    return [*rows[:at], *packed, *rows[at:]]


def _in_tiles(told: Mapping[str | None, list[Row]], before: list[Row]) -> list[Row]:
    """One part at a time, what was made decoded piece by piece: where nothing else does it, and decoding is what takes most."""
    if any(row["verdict"] == "fits" for row in before) or not any(row["total_bytes"] for row in before):
        return []
    least = min(row["total_bytes"] for row in before if row["total_bytes"])
    found: list[Row] = []
    for one, rows in told.items():
        names = {"denoiser_dtype_id": one} if one else {}
        placements = ("model",) if one else ("model", "sequential")
        for row in rows:
            if row["placement"] in placements and row["total_bytes"] is not None and row["total_bytes"] < least:
                found.append(row | names | {"is_tiled": True})
    return sorted(found, key=_bytes, reverse=True)


def _known_formats(almanac: Almanac, asked: Row) -> str:
    """Those of the denoiser that are told instead of one that is not known."""
    told = _told(almanac, asked, [(one, None, False) for one in PACKED])
    known = [
        format_name(denoiser)
        for (denoiser, _, _), rows in told.items()
        if denoiser and any(row["total_bytes"] is not None for row in rows)
    ]
    return f". Known of its denoiser: {', '.join(known)} (--format)" if known else ""


def _all_packed(told: Mapping[str | None, list[Row]], before: list[Row]) -> list[Row]:
    """Denoiser and text encoders in 8 bits and in 4, where that takes less: a large text encoder may be what needs most."""
    found: list[Row] = []
    for one, rows in told.items():
        names = {"denoiser_dtype_id": one, "text_dtype_id": one}
        least = min((row["total_bytes"] for row in (*before, *found)), default=0)
        for row in rows:
            if row["placement"] == "model" and row["total_bytes"] is not None and row["total_bytes"] < least:
                found.append(row | names)
    return found


def _first(rows: list[Row], verdict: str | None) -> Row | None:
    return next((row for row in rows if row["verdict"] == verdict), None) if verdict else None


def _waiting(almanac: Almanac, model: Model, row: Row) -> int | None:
    """What all parts weigh, which lie in the computer's memory where they are not on the card: None where all of them are on it, and where a part is
    not known."""
    if row["placement"] == "resident":
        return None
    return almanac.value(
        "SELECT CASE WHEN count(weights_bytes) = count(*) THEN sum(weights_bytes)::BIGINT END FROM pipeline_stages($model, "
        "dtype_id := $dtype, denoiser_dtype_id := $denoiser, text_dtype_id := $text)",
        {
            "model": model.model_id,
            "dtype": row.get("dtype_id") or WHOLE[0],
            "denoiser": row.get("denoiser_dtype_id"),
            "text": row.get("text_dtype_id"),
        },
    )


def _bytes(row: Row) -> int:
    return row["total_bytes"] or 0


LORA_ALONE = "of pipelines the training of LoRA adapters alone is counted (--phase lora or qlora)"


def _trained(almanac: Almanac, asked: Row, use: Use) -> list[Row]:
    """LoRA of the denoiser over a base in 16 bits and in 4, the text and the latents made before or not."""
    if use.phase_id not in ("lora", "qlora"):
        return []
    base = {"lora": ("bf16", "nf4"), "qlora": ("nf4",)}[use.phase_id] if use.dtype_id is None else (use.dtype_id,)
    asked = asked | {"rank": use.lora_rank}
    rows = []
    for dtype in base:
        is_packed = dtype not in WHOLE
        packed = ", denoiser_dtype_id := $dtype" if is_packed else ""
        told = almanac.rows(
            f"FROM pipeline_training_fits_on($gpu, $model, lora_rank := $rank, checkpointing := 'full'{SIZE}{packed})",
            asked | ({"dtype": dtype} if is_packed else {}),
        )
        named = {"denoiser_dtype_id": dtype} if is_packed else {"dtype_id": asked["base"]}
        rows += [row | named for row in told if row["total_bytes"] is not None or len(base) == 1 or not rows]
    return rows


def _made(made: dict[str, int], use: Use) -> str:
    """What the rows are told of."""
    many, frames = made["images"], made["frames"]
    what = "picture" if frames == 1 else f"video of {frames:,} frames"
    each = f"{what} of {made['width']:,} × {made['height']:,} pixels"
    told = f"a {each}" if many == 1 else f"{many:,} {each.replace('picture', 'pictures').replace('video', 'videos')}"
    if use.is_training:
        return f"{told}{' at once' if many > 1 else ''}, all layers recomputed"
    return told


def _makes_videos(almanac: Almanac, model: Model) -> bool:
    """Whether its autoencoder makes videos; of all others one picture is asked."""
    query = """
        SELECT count(*) > 0 FROM component JOIN pipeline_stage USING (class_name)
        WHERE model_id = $id AND stage = 'decode' AND frames_at_once <> 1
    """
    return almanac.value(query, {"id": model.model_id})
