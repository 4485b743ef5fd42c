"""The grade of a model whose tensor headers are at hand: the headers decide the elements, the config what a layer caches.

    exact     the model's own config, and its headers hold what it describes, to the element
    matched   another's shape or a reconstruction, and the headers hold exactly that
    derived   the headers hold something else, or no config says what the layers are: the census is that of the headers.
              Where its attention is that of the config, the cache is the config's; else nothing is said of a cache

What a checkpoint holds beside its parameters (a tied head again, prediction layers, buffers, scales) is said in
`stored_parameter_note`. Headers that hold weights in a form that is not described leave the grade as it is without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.confirm.filling import may_be_quantised
from pipeline.confirm.formats import declared_format, packed_form
from pipeline.confirm.grade import (
    LARGEST_RATIO,
    NEGLIGIBLE,
    NEVER,
    OWN_CONFIG,
    TIED_AGAIN,
    Graded,
    basis,
    candidates,
    grade,
    scope,
    with_own_head,
)
from pipeline.confirm.header import ROUTER_BIASES, Census, read_header
from pipeline.confirm.packed import NotDescribed
from pipeline.confirm.stored import explain_total
from pipeline.hub.record import Record

_DTYPE_IDS = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "fp8": "fp8", "int8": "int8", "nf4": "nf4"}
_DTYPE_IDS |= {name: name for name in ("mxfp4", "nvfp4", "gptq-int4", "awq-int4")}
_DECLARED = ("int4", "int8")  # integers in words, of which several formats are made
_GGUF_MIXES = {"Q8_0": "q8_0", "Q6_K": "q6_k", "Q5_K": "q5_k_m", "Q4_K": "q4_k_m", "Q3_K": "q3_k_m", "Q2_K": "q2_k"}
_GGUF_MIXES |= {"MXFP4": "mxfp4"}
_MOST = 0.9  # of the matrices: so many are in one format where the checkpoint is said to be of it
_OF_LAYERS = (
    "attention",
    "recurrent",
    "feed-forward",
    "expert",
    "shared-expert",
)  # classes that a layer's cache and work follow


@dataclass(frozen=True)
class _Agreement:
    held: Anatomy
    census: Census
    what: str
    is_own: bool
    unnamed: tuple[tuple[str, int], ...]  # what the config says is beside, and no name does


def grade_with_header(record: Record, anatomy: Anatomy | UnknownAnatomy, *, may_be_packed: bool = True) -> Graded:
    """The grade of a record by config and headers together. Raises ContradictoryConfig as `grade` does."""
    by_total = partial(grade, record, anatomy, may_be_packed=may_be_packed)
    if record.header is None:
        return _noted(by_total(), record.header_problem)
    try:
        census = read_header(record.header, packed_form(record.config or {}))
    except NotDescribed as reason:
        return _noted(by_total(), str(reason))
    if census.parameter_count < 1:
        return _noted(by_total(), "they hold no parameters")
    if isinstance(anatomy, Anatomy) and record.config_kind not in NEVER:
        _check_ratio(census, anatomy)
        agreement = next(_agreements(record, anatomy, census), None)
        if agreement:
            return _confirmed(record, agreement)
        return _differing(record, anatomy, census)
    why = "no config is known" if record.config is None else NEVER.get(record.config_kind or "", str(anatomy))
    return _by_headers_alone(record, census, _begun(why))


def _begun(sentence: str) -> str:
    """A sentence as it goes on after a comma."""
    return sentence[:1].lower() + sentence[1:]


def _noted(graded: Graded, problem: str | None) -> Graded:
    return replace(graded, note=f"{graded.note}. Its tensor headers are not used: {problem}") if problem else graded


def _check_ratio(census: Census, anatomy: Anatomy) -> None:
    ratio = census.parameter_count / max(anatomy.parameter_count, 1)
    if not 1 / LARGEST_RATIO <= ratio <= LARGEST_RATIO:
        raise ContradictoryConfig(
            f"its tensor headers hold {census.parameter_count:,} parameters, but its config gives {anatomy.parameter_count:,}"
        )


def _agreements(record: Record, anatomy: Anatomy, census: Census) -> Iterator[_Agreement]:
    """What the config may describe, the likeliest first, where that is what the headers hold, to the element."""
    has_head = census.elements_of("head") > 0
    for what, held, is_own in candidates(record, anatomy):
        if has_head and held.is_head_tied and record.config_kind == "sibling" and TIED_AGAIN in held.stored_extra:
            # whether the head is tied leaves no trace in the dims of a sibling: what the checkpoint holds is loaded
            held = with_own_head(held)
        theirs = _tied(census, held)
        difference = theirs.parameter_count - held.parameter_count
        if difference and -difference == theirs.beside().get(ROUTER_BIASES):
            theirs, difference = theirs.taken_in(ROUTER_BIASES), 0  # parameters in this architecture
        is_gguf = record.header["format"] == "gguf"
        is_quantised = may_be_quantised(record)
        total = held.parameter_count + difference
        explanation = explain_total(held, total, is_repack=False, is_gguf=is_gguf, is_quantised=is_quantised)
        is_seen = record.config_kind in OWN_CONFIG or _has_layers(theirs, held)
        if explanation is not None and is_seen:
            yield _Agreement(held, theirs, what, is_own, explanation.parts)


def _has_layers(census: Census, held: Anatomy) -> bool:
    """Whether the layers are alike class by class, or not to be told by their names: a shape that is lent may have the same total."""
    theirs, ours = census.by_class(), _by_class(held)
    is_understood = not any(h.what.role == "other" and h.what.beside is None for h in census.held)
    return not is_understood or all(theirs.get(name, 0) == ours.get(name, 0) for name in _OF_LAYERS)


def _tied(census: Census, held: Anatomy) -> Census:
    """The census without a head that is the embedding once more."""
    again = held.stored_extra.get(TIED_AGAIN)
    is_again = held.is_head_tied and again is not None and census.elements_of("head") == census.elements_of("embedding")
    return census.set_apart(TIED_AGAIN, "head") if is_again else census


def _confirmed(record: Record, found: _Agreement) -> Graded:
    is_own = record.config_kind in OWN_CONFIG
    note = [f"{basis(record)}, and its tensor headers hold just that"]
    if found.what:
        note.append(found.what)
    note += scope(found.held)
    if not is_own:
        theirs = ": they are the sibling's" if record.config_kind == "sibling" else ""
        note.append(f"Windows and context leave no trace in headers{theirs}")
    grade_name = "exact" if is_own and found.is_own else "matched"
    return _graded(record, grade_name, note, found.census, found.held, found.unnamed)


def _differing(record: Record, anatomy: Anatomy, census: Census) -> Graded:
    """The headers hold something else than the config describes."""
    in_files = (census.stored_element_count, sum(h.element_count for h in census.held))
    by_total = grade(record, anatomy)
    if by_total.grade in ("exact", "matched") and record.stored_parameter_count in in_files:
        # the total of these very files is explained to the element, so what is not understood are names
        return _noted(by_total, "their names are not what the published total confirms")
    census = _tied(census, anatomy)
    theirs, ours = census.by_class(), _by_class(anatomy)
    names = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name, 0) != ours.get(name, 0))
    shown = ", ".join(f"{name} {theirs.get(name, 0):,} instead of {ours.get(name, 0):,}" for name in names[:4])
    rest = f" and {len(names) - 4} more classes" if len(names) > 4 else ""
    off = f"Its tensor headers hold {census.parameter_count:,} parameters, where {_begun(basis(record))} gives "
    off += f"{anatomy.parameter_count:,}: {shown}{rest}"
    is_close = abs(census.parameter_count - anatomy.parameter_count) < NEGLIGIBLE * anatomy.parameter_count
    is_alike = all(theirs.get(name, 0) == ours.get(name, 0) for name in _OF_LAYERS)
    if record.config_kind not in OWN_CONFIG or not (is_close or is_alike):
        return _by_headers_alone(record, census, f"the config does not describe this checkpoint: {_begun(off)}")
    note = [f"{off}. The headers decide; the layers agree, so what they cache is the config's word"]
    held = replace(anatomy, tensors=census.tensors(), vocab_size=_vocabulary(census, anatomy), stored_extra={})
    return _graded(record, "derived", note, census, held)


def _vocabulary(census: Census, anatomy: Anatomy) -> int | None:
    """Rows of the embedding: logits are as wide as the weights."""
    rows = {h.shape[0] for h in census.held if h.what.role == "embedding" and h.shape is not None and len(h.shape) == 2}
    return max(rows, default=anatomy.vocab_size) if anatomy.vocab_size else None


def _by_headers_alone(record: Record, census: Census, why: str) -> Graded:
    """Weights, and nothing of what a layer caches or how wide it is."""
    named = record.config.get("model_type") if record.config else None
    anatomy = Anatomy(
        model_type=named if isinstance(named, str) else None,
        architecture=None,
        hidden_size=None,
        layer_count=None,
        vocab_size=None,
        is_head_tied=None,
        norm_kind=None,
        tensors=census.tensors(),
        is_block_parallel=None,
        has_flash_attention=None,
        hidden_dropout=None,
        attention_dropout=None,
    )
    note = [f"Its tensor headers alone: parameters and weights are known, caches and activations are not, since {why}"]
    return _graded(record, "derived", note, census, anatomy)


def _graded(
    record: Record,
    name: str,
    note: list[str],
    census: Census,
    held: Anatomy,
    unnamed: tuple[tuple[str, int], ...] = (),
) -> Graded:
    return Graded(
        name,
        ". ".join(note),
        _stored_note(record, census, unnamed),
        _stored_format(record, census),
        census.stored_bytes,
        held,
        census,
    )


def _stored_note(record: Record, census: Census, unnamed: tuple[tuple[str, int], ...]) -> str:
    """How what the files hold, and the Hub's total, come from the parameters."""
    scales = sum(h.stored_element_count for h in census.held if h.shape is None)
    words = census.stored_element_count - scales - sum(h.element_count for h in census.held)
    parts = [*census.beside().items(), *unnamed]
    if scales:
        parts.append(("scales, zero points and tables of packed formats", scales))
    if words:
        parts.append(("elements that packing saves", words))
    shown = "".join(f", {cause} ({size:+,})" for cause, size in sorted(parts) if size)
    count = census.parameter_count - sum(size for _, size in unnamed)
    note = f"The files hold {census.stored_element_count:,} elements: {count:,} parameters{shown}"
    total = record.stored_parameter_count
    if total is None or total == census.stored_element_count:
        return note
    return f"{note}. The published total of {total:,} counts them in its own way"


def _stored_format(record: Record, census: Census) -> str | None:
    """The dtype_id that nearly all matrices are in."""
    matrices = [h for h in census.held if h.what.beside is None and h.what.operator in ("linear", "expert") and h.shape]
    matrices = [h for h in matrices if h.what.component == "text" and h.what.tensor_class != "head"] or matrices
    experts = [h for h in matrices if h.what.operator == "expert"]
    by_storage: dict[str, int] = {}
    for h in matrices:
        by_storage[h.storage] = by_storage.get(h.storage, 0) + h.element_count
    storage, count = max(by_storage.items(), key=lambda found: found[1], default=("", 0))
    if storage in _GGUF_MIXES:
        mix = _GGUF_MIXES[storage]
        file = (record.gguf_file or record.header["file"]).lower().replace("-", "_")
        return f"gguf-{mix}" if re.search(rf"(^|[._]){mix}(\.|_\d|$)", file) else None
    if storage == "mxfp4" and experts and all(h.storage == "mxfp4" for h in experts):
        return "mxfp4"
    if count <= _MOST * sum(by_storage.values()):
        return None
    return _DTYPE_IDS.get(storage) or (declared_format(record.config or {}) if storage in _DECLARED else None)


def _by_class(anatomy: Anatomy) -> Mapping[str, Any]:
    counts: dict[str, int] = {}
    for tensor in anatomy.tensors:
        counts[tensor.tensor_class] = counts.get(tensor.tensor_class, 0) + tensor.element_count
    return counts
