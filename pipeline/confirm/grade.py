"""How far an anatomy is confirmed, and why, in words for people.

    exact     the model's own config, and the count agrees with the published total
    matched   the shape of a sibling, a reconstruction or a library's table, and the count equals the published total
    derived   the model's own config, and no exact total to compare with (or one that is off by less than 0.1 %); or a shape that
              is likely its own and that nothing could confirm (unconfirmed.py), with a wider error band
    unknown   everything else: no footprint is given

A total agrees when it is the count, or the count and parts that are computed from the same shapes (`stored.explain_total`).
Here a shape that is not the model's own never counts unless a total confirms it: siblings were chosen by their dims, and dims
alone leave the feed-forward and the embeddings open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.confirm.by_name import by_name
from pipeline.confirm.candidates import FILLED, LEAVES_TOWERS, TIED_AGAIN, candidates, with_own_head
from pipeline.confirm.explain import explain
from pipeline.confirm.filling import NAMED_FORMAT, SENSING, may_be_quantised, wholes
from pipeline.confirm.formats import bytes_by_counts, declared_format, format_by_counts, is_quantised, plain_format
from pipeline.confirm.header import Census
from pipeline.confirm.left_out import Undecided
from pipeline.confirm.packed_like import as_published, is_packed
from pipeline.confirm.recipes import explain_mlx, explain_recipe
from pipeline.confirm.repository_kind import words_on
from pipeline.confirm.stored import Explanation
from pipeline.confirm.stored_parts import Part, by_size, main_format, parts
from pipeline.hub.record import Record

OWN_CONFIG = ("verbatim", "quoted")
IS_COUNT, BESIDES = "and the published total is its count", " with what the checkpoint holds besides"
BUILDS_TOWERS = "The total is that of the language model; its class builds the towers, and so they are counted"
COUNTED_AS_OWN = "The total holds a head beside the embedding: counted as its own"
# Whose checkpoint may be a quantised repack of the shape. A reconstruction is of the checkpoint itself: what its total has
# beyond the count may as well be biases that nobody listed, so there the Hub must call it quantised.
REPACKS = (*OWN_CONFIG, "sibling")
NEVER = {"partial": "Only some dims are known, not what its layers hold"}
IN_SIXTEEN = "Whether the rest is held in 8 bits or in 16 shows nowhere: counted in 16"
LARGEST_RATIO = 100  # between a published total and a count; packing at one bit into 32-bit words is 32
NEGLIGIBLE = 0.001  # of the count: a difference that a config of the model's own survives
# How names of repositories speak of a format.
_FORMAT_WORDS = {
    "nvfp4": r"nv-?fp4",
    "mxfp4": r"mx-?fp4",
    "fp8": r"fp8|w8a8-fp",
    "awq-int4": r"awq",
    "gptq-int4": r"gptq|w4a16",
    "nf4": r"nf4|bnb",
    "int8": r"int8|w8a8(?!-fp)",
}
_BASIS = {
    "verbatim": "Its own config",
    "quoted": "Its own config, quoted by a third party",
    "reconstructed": "Rebuilt from published dims",
    "assumed": "Dims without a source",
    "library_defaults": "The defaults of the library's class",
    "library_table": "A library's table",
}


@dataclass(frozen=True)
class Graded:
    """`anatomy` is what the checkpoint holds: without towers or a head that its total shows to be missing."""

    grade: str
    note: str
    stored_note: str | None = None
    stored_format: str | None = None
    stored_bytes: int | None = None
    anatomy: Anatomy | None = None
    census: Census | None = None  # what the tensor headers hold, where they are at hand
    parts: tuple[Part, ...] | None = None  # what is held in which format, where config or total say so
    stored_unknown_reason: str | None = None  # why nothing can be said of a checkpoint that is quantised
    is_confirmed: bool = True  # False where the shape is another's and nothing could be compared (unconfirmed.py)


def grade(
    record: Record, anatomy: Anatomy | UnknownAnatomy, *, may_be_packed: bool = True, is_tie_known: bool = False
) -> Graded:
    """The grade by what the total speaks of, and then all that is loaded."""
    record = as_published(record)
    found = _of_total(record, anatomy, may_be_packed=may_be_packed, is_tie_known=is_tie_known)
    held = found.anatomy
    if held is None or not held.apart:
        return found
    whole = replace(held, tensors=(*held.tensors, *held.apart), apart=())
    note = f"{found.note}. {held.apart_note}"
    return replace(found, anatomy=whole, note=note, stored_note=found.stored_note or held.apart_note)


def _of_total(record: Record, anatomy: Anatomy | UnknownAnatomy, *, may_be_packed: bool, is_tie_known: bool) -> Graded:
    """The grade of a record whose config gave this anatomy, or the reason why it gave none.

    Without `may_be_packed` the total has to come out with no arithmetic of packed formats. A tied head that a sibling's total holds
    again is counted as its own unless `is_tie_known` (ties.py decides about those). Raises ContradictoryConfig
    where the published total is a hundred times the count, or the reverse.
    """
    if record.config is None:
        words = words_on(record.model_id, record.library)
        return Graded("unknown", f"No config is known: {words}" if words else "No config is known")
    if record.config_kind in NEVER:
        return Graded("unknown", NEVER[record.config_kind])
    if isinstance(anatomy, UnknownAnatomy):
        return _completed(record) or Graded("unknown", _sentence(str(anatomy)))
    total, count = record.stored_parameter_count, anatomy.parameter_count
    if count < 1:
        return Graded("unknown", "Its config gives a model without parameters")
    if total and not 1 / LARGEST_RATIO <= total / count <= LARGEST_RATIO:
        raise ContradictoryConfig(f"the published total is {total:,}, but its config gives {count:,} parameters")
    declared = declared_format(record.config, record.quantization_hint)
    if total is None:
        return _without_total(record, anatomy, declared)
    is_repack = record.config_kind in REPACKS or record.quantization_hint is not None or is_packed(record.model_id)
    is_repack = is_repack and may_be_packed and record.parameters_kind != "exact_gguf"
    for what, held, is_own in candidates(record, anatomy):
        explanation = explain(record, held, declared, is_repack=is_repack)
        if explanation is None and is_repack:
            explanation = explain_recipe(held, total, record.config)
        if explanation is None and is_repack and is_own and record.parameters_kind == "exact_packed_elements":
            explanation = explain_mlx(held, total)
        if explanation and (is_own or not (explanation.storage and explanation.storage.spread)):
            if not is_tie_known and record.config_kind == "sibling" and TIED_AGAIN in dict(explanation.parts):
                # whether the head is tied leaves no trace in the dims of a sibling: what could be its own is loaded as its own
                separate = with_own_head(held)
                explanation = explain(record, separate, declared, is_repack=is_repack) or explanation
                held = separate if TIED_AGAIN not in dict(explanation.parts) else held
                what = ". ".join(filter(None, (what, COUNTED_AS_OWN)))
            if what == LEAVES_TOWERS and _builds_towers(record):
                held, what = anatomy, BUILDS_TOWERS
            found = _confirmed(record, held, what, explanation, declared)
            return found if is_own else replace(found, grade="matched")  # filled in, it is no longer its own config
    return _contradicted(record, anatomy, declared)


def _builds_towers(record: Record) -> bool:
    """Whether the task of a checkpoint of tensors for a server speaks of a class that sees or hears, which holds its towers whether or not a
    total shows them. Files of GGUF have theirs apart, and what is packed for MLX leaves them out."""
    is_apart = record.parameters_kind == "exact_gguf" or re.search(
        r"(?i)gguf|mlx|optiq", f"{record.model_id} {record.library}"
    )
    return record.pipeline_tag in SENSING and may_be_quantised(record) and not is_apart


def _completed(record: Record) -> Graded | None:
    """A config that quotes only some of a model's parts, with the others filled in where the total is then its count."""
    for what, held in wholes(record) if record.stored_parameter_count else ():
        if explanation := explain(record, held, declared_format(record.config, None)):
            found = _confirmed(record, held, f"{FILLED}: {what}", explanation, None)
            return replace(found, grade="matched")
    return None


def _confirmed(record: Record, held: Anatomy, what: str, explanation: Explanation, declared: str | None) -> Graded:
    own = record.config_kind in OWN_CONFIG
    agrees = IS_COUNT + (BESIDES if explanation.parts else "")
    note = [f"{basis(record)}, {agrees}"]
    if what:
        note.append(what)
    note += scope(held)
    if not own:
        theirs = ": they are the sibling's" if record.config_kind == "sibling" else ""
        note.append(f"Windows and context leave no trace in a count{theirs}")
    if (
        record.config_kind == "sibling" and "image_aspect_ratio" in record.config
    ):  # LLaVA 1.5 and 1.6 differ in nothing else
        note.append("Nor does it leave a trace whether images are cut into tiles")
        held = replace(held, towers=())
    if record.config_inferred_fields:
        note.append(f"In no source: {', '.join(record.config_inferred_fields)}")
    graded = Graded(
        "exact" if own else "matched",
        ". ".join(note),
        _stored_note(held, explanation, what),
        _stored_format(record, explanation, declared),
        bytes_by_counts(record.parameters_by_dtype, record.stored_parameter_count)
        or (None if what == BUILDS_TOWERS else _stored_bytes(record, explanation)),
        held,
    )
    return with_parts(graded, record, explanation)


def _is_named(record: Record, dtype_id: str) -> bool:
    """Whether name or tag of a repository speak of this format, and of no other: several give the same total."""
    words = f"{record.model_id} {record.quantization_hint or ''}"
    return {kind for kind, pattern in _FORMAT_WORDS.items() if re.search(pattern, words, re.IGNORECASE)} == {dtype_id}


def with_parts(graded: Graded, record: Record, explanation: Explanation | None) -> Graded:
    """With what of the checkpoint is held in which format, where it is quantised."""
    found = _with_told_parts(graded, record, explanation)
    if found.parts or found.stored_unknown_reason or found.census:
        return found
    try:
        named = by_name(record, graded.anatomy, explanation)
    except Undecided as reason:
        stored = found.stored_format or reason.dtype_id
        return replace(found, stored_format=stored, stored_unknown_reason=str(reason))
    if named is None:
        return found
    note = ". ".join(filter(None, (found.stored_note, named.note)))
    return replace(
        found, parts=named.parts, stored_format=found.stored_format or named.dtype_id, stored_note=note or None
    )


def _with_told_parts(graded: Graded, record: Record, explanation: Explanation | None) -> Graded:
    try:
        found = parts(graded.anatomy, record.config, explanation, record.storage_bytes)
    except Undecided as reason:
        if not is_quantised(record.config) and not _is_named(record, reason.dtype_id):
            return graded
        if reason.larger:
            note = ". ".join(filter(None, (graded.stored_note, IN_SIXTEEN)))
            stored = graded.stored_format or main_format(reason.larger)
            return replace(graded, parts=reason.larger, stored_format=stored, stored_note=note)
        stored = reason.dtype_id or graded.stored_format
        return replace(graded, stored_format=stored, stored_unknown_reason=str(reason))
    is_told = is_quantised(record.config) or by_size(graded.anatomy, record.config, explanation, record.storage_bytes)
    if found is None or not (is_told or _is_named(record, main_format(found))):
        return graded
    return replace(graded, parts=found, stored_format=graded.stored_format or main_format(found))


def scope(anatomy: Anatomy) -> tuple[str, ...]:
    """Of a diffusion pipeline totals count the denoiser alone, and so do we."""
    if {t.tensor_class for t in anatomy.tensors} == {"denoiser"}:
        return ("The denoiser alone: text encoders and the autoencoder come on top",)
    return ()


def _without_total(record: Record, anatomy: Anatomy, declared: str | None) -> Graded:
    if record.config_kind not in OWN_CONFIG:
        return Graded("unknown", f"{basis(record)}, and no exact total is published that could confirm it")
    return derived(record, anatomy, f"{basis(record)}; no exact total is published to compare with", declared)


def derived(record: Record, anatomy: Anatomy, why: str, declared: str | None = None) -> Graded:
    """A shape that there is no total to compare with."""
    declared = declared or declared_format(record.config, record.quantization_hint)
    note = ". ".join((why, *scope(anatomy)))
    if record.config_kind == "sibling" and "image_aspect_ratio" in record.config:  # how it cuts images is its own
        anatomy = replace(anatomy, towers=())
    found = Graded("derived", note, None, _stored_format(record, None, declared), None, anatomy)
    return with_parts(found, record, None)


def _contradicted(record: Record, anatomy: Anatomy, declared: str | None) -> Graded:
    total, count = record.stored_parameter_count, anatomy.parameter_count
    known, rest = _nearest(anatomy, total)
    share = f"{rest / count:+.3%}" if abs(rest) >= count / 1e5 else "less than 0.001 %"
    off = f"The published total is {total:,}, which leaves {rest:+,} elements ({share}) unexplained"
    if record.config_kind in OWN_CONFIG and abs(rest) < NEGLIGIBLE * count:
        explanation = Explanation((*known, ("not explained", rest)))
        graded = Graded(
            "derived",
            f"{basis(record)}. {off}",
            _stored_note(anatomy, explanation),
            _stored_format(record, None, declared),
            bytes_by_counts(record.parameters_by_dtype, total),
            anatomy,
        )
        return with_parts(graded, record, None)
    packed = record.parameters_kind == "exact_packed_elements"
    why = ". The total counts packed elements, in a mix that is not reproduced" if packed else ""
    return Graded("unknown", f"{basis(record)}. {off}{why}")


def _nearest(anatomy: Anatomy, total: int) -> tuple[tuple[tuple[str, int], ...], int]:
    """The known extras that come nearest to a total, and what they leave."""
    parts, rest = (), total - anatomy.parameter_count
    for cause, size in sorted(anatomy.stored_extra.items(), key=lambda part: -part[1]):
        if size > anatomy.parameter_count / 10_000 and abs(rest - size) < abs(rest) / 2:
            parts, rest = (*parts, (cause, size)), rest - size
    return parts, rest


def basis(record: Record) -> str:
    """Whose config it is, in words."""
    source = record.config_source or ""
    if record.config_kind == "sibling":
        name = source.removeprefix("shape of ").split(" [")[0] if source.startswith("shape of ") else "a sibling"
        return f"The shape of {name}"
    return _BASIS.get(record.config_kind or "", "A config of unknown origin")


def _stored_note(held: Anatomy, explanation: Explanation, what: str = "") -> str:
    if what == BUILDS_TOWERS:
        shown = "".join(f" and {cause} ({size:+,})" for cause, size in explanation.parts)
        return f"The published total counts the parameters of the language model{shown}"
    if not explanation.parts:
        return "The published total is the number of parameters"
    shown = ", ".join(f"{cause} ({size:+,})" for cause, size in explanation.parts)
    note = f"The published total counts {held.parameter_count:,} parameters and {shown}"
    if explanation.storage:
        note += f"; quantised: {', '.join(sorted(explanation.groups))}"
    return note


def _stored_format(record: Record, explanation: Explanation | None, declared: str | None) -> str | None:
    """The dtype_id that a checkpoint is stored in, where config, dtypes or total tell it."""
    storage = explanation.storage if explanation else None
    if storage is None:
        if declared or is_quantised(record.config):
            return declared
        by_counts = format_by_counts(record.parameters_by_dtype)
        is_silent = explanation is None and record.config_kind != "verbatim"
        if by_counts or is_silent or NAMED_FORMAT.search(record.model_id):
            return by_counts
        return plain_format(record.config)
    if declared in (storage.dtype_id, *storage.also):
        found = declared
    else:
        found = None if explanation.is_ambiguous or declared else storage.dtype_id
    # a checkpoint that quantises less than the format usually does would be published too small
    return found if explanation.is_whole else None


def _stored_bytes(record: Record, explanation: Explanation) -> int | None:
    if explanation.storage:
        return explanation.stored_bytes
    width = {"bf16": 2, "fp16": 2, "fp32": 4}.get(_stored_format(record, explanation, None) or "")
    return width * record.stored_parameter_count if width and record.parameters_kind == "exact_safetensors" else None


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
