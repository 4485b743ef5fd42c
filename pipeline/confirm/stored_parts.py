"""The checkpoint as it is published, part by part: each matrix of the census with the format that it is held in.

Two witnesses: the quantisation config names what it takes and what it leaves out (left_out.py), and the published total counts scales
and packed elements of what was quantised (stored.py). The config decides; where the total shows a format's matrices to the element, it
says which of those that the config allows are held in it, and one that the config claims and the total does not show stays in 16 bits.
Without a config the total decides alone, where it leaves no choice: 8-bit floats beside 4-bit ones may leave no trace in it, so there
the size of the repository has to agree, or all of it in 16 bits be little more than in 8 (a mixture whose experts are in 4).

What neither settles is counted at the larger: layers of which a list cannot tell whether they are the ones that hold a matrix, routers,
heads and towers that nobody names. What a config leaves out under a name that fits nothing in the model leaves the whole undecided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.anatomy.rows import Anatomy, Tensor
from pipeline.confirm.formats import is_quantised, parts_of
from pipeline.confirm.left_out import Recipe, Undecided, recipe, with_experts
from pipeline.confirm.module_names import is_named, names_of, places_of
from pipeline.confirm.stored import TOWERS, Explanation, group_of

_MIXED_WITH = ("nvfp4", "mxfp4")  # formats beside which recipes hold the rest in 8-bit floats
FAR = 1.12  # between what is counted at the larger and at the smaller: more than a band of error takes in
_NEAR = 0.01  # of a size: a repository holds a tokenizer and such besides
_TOKENIZER = 50e6
PLAIN = "bf16"  # what is not quantised: two bytes
MATRICES = ("linear", "linear-subclass", "expert")
WIDTHS = {
    "nvfp4": 4.5,
    "mxfp4": 4.25,
    "nf4": 4.5,
    "awq-int4": 4.15625,
    "gptq-int4": 4.15625,
    "gptq-int8": 8.2,
    "int8": 8,
    "w8a8-int8": 8,
    "fp8": 8,
    "gptq-int4-g64": 4.3125,
    "gptq-int4-g32": 4.625,
    "gptq-int4-g32-sym": 4.5,
}
# Names of a list that touch no matrix of ours which a format would take: ends, norms, biases, towers, prediction layers, tables.
_NO_MATRIX = re.compile(
    r"norm|embed|lm_head|\bhead\b|bias|\bgate\b|router|vis|image|audio|speech|tower|project|merg|adapter|resampler|mtp|nextn|eh_proj|shared_head|"
    r"conv|rotary|sink|A_log|dt_|decay|score|classif|pooler|connector|talker|codebook|code2wav|code_pred|sampler|wte|wpe|ln_|\b[a-z]norm\b|attn_qkv_scale|"
    r"cross_attn_gate|layer_scale|time_|proj_out|draft"
)
_TABLES = ("model.language_model.layers.0.ple.ple_embedding.ngram_embedding",)  # of n-grams, which is no matrix of ours
_IN_SIXTEEN = (*TOWERS, "head", "router", "other")  # what recipes that hold attention in 8 bits leave as it is
_MIXED = "recurrent"  # the class of layers that are not attention
_KINDS = {
    "full_attention": "attention",
    "linear_attention": _MIXED,
    "conv": _MIXED,
    "mamba": _MIXED,
    "attention": "attention",
}


@dataclass(frozen=True)
class Part:
    """`tensor` in `layer_count` of its layers, in this format."""

    tensor: Tensor
    dtype_id: str
    layer_count: int

    @property
    def element_count(self) -> int:
        return self.tensor.element_count // self.tensor.layer_count * self.layer_count


def parts(
    anatomy: Anatomy, config: Mapping[str, Any], explanation: Explanation | None, storage_bytes: int | None = None
) -> tuple[Part, ...] | None:
    """The parts of a checkpoint that is quantised, or None where nothing says that it is. Raises Undecided.

    `storage_bytes`: size of the repository, if known.
    """
    named = recipe(config) or by_size(anatomy, config, explanation, storage_bytes)
    if named is None and not _shows_all(explanation):
        return None
    if named:
        _check_names(named, anatomy)
        if named.default is None and not named.rules:
            return None
    found: list[Part] = []
    for tensor in anatomy.tensors:
        held = _held(tensor, anatomy, config, named, explanation)
        found += [Part(tensor, dtype_id or PLAIN, layers) for dtype_id, layers in held.items() if layers]
    if all(part.dtype_id == PLAIN for part in found):
        return None
    if (
        named is None
        and explanation.storage.dtype_id in _MIXED_WITH
        and not _has_size(found, explanation, storage_bytes)
    ):
        sized = _in_eights(found, but=_IN_SIXTEEN)
        if _is_just(sized, anatomy, storage_bytes):
            return tuple(sized)
        reason = "its total shows what is held in 4 bits, and not whether the rest is held in 8 bits or in 16"
        larger = tuple(found) if bytes_of(found) <= FAR * bytes_of(_in_eights(found)) else ()
        raise Undecided(reason, explanation.storage.dtype_id, larger)
    return tuple(found)


def _in_eights(found: Iterable[Part], but: Iterable[str] = ()) -> list[Part]:
    """The parts, with all in 8 bits that a recipe could hold so, but for these classes."""
    return [
        replace(part, dtype_id="fp8")
        if part.dtype_id == PLAIN and part.tensor.operator in MATRICES and part.tensor.tensor_class not in but
        else part
        for part in found
    ]


def _is_just(found: Iterable[Part], anatomy: Anatomy, storage_bytes: int | None) -> bool:
    """Whether the repository is as large as the parts, alone or with its prediction layers in 16 bits, a tokenizer beside them: what is in
    8 bits is a part of the whole, so this is closer than `_has_size`."""
    ahead = sum(size for cause, size in anatomy.stored_extra.items() if cause.startswith("multi-token"))
    size = bytes_of(found)
    return storage_bytes is not None and any(
        0 <= storage_bytes - size - beside <= _TOKENIZER for beside in {0, 2 * ahead}
    )


def bytes_of(found: Iterable[Part]) -> float:
    """What the parts take, to a thousandth."""
    return sum(part.element_count * WIDTHS.get(part.dtype_id, 16) / 8 for part in found)


def by_size(
    anatomy: Anatomy, config: Mapping[str, Any], explanation: Explanation | None, storage_bytes: int | None
) -> Recipe | None:
    """The recipe of a checkpoint whose experts a config speaks of and whose quantiser it does not quote, where the repository has just the
    size that the recipe gives; what the published total counts besides the model is held as the rest is."""
    is_spoken_of = config.get("expert_dtype") == "fp4" and not is_quantised(config)
    if not is_spoken_of or storage_bytes is None or not anatomy.parameter_count:
        return None
    named = with_experts("mxfp4")
    held = [(t, d or PLAIN, n) for t in anatomy.tensors for d, n in _held(t, anatomy, config, named, None).items() if n]
    size = sum(t.element_count // t.layer_count * n * WIDTHS.get(dtype_id, 16) / 8 for t, dtype_id, n in held)
    besides = sum(count for _, count in explanation.parts) if explanation else 0
    size *= 1 + besides / anatomy.parameter_count
    return named if abs(storage_bytes - size) < _NEAR * size else None


def _has_size(found: Iterable[Part], explanation: Explanation, storage_bytes: int | None) -> bool:
    """Whether the parts, and what the checkpoint holds besides in 16 bits, are as many bytes as the repository has."""
    size = bytes_of(found)
    size += sum(2 * count for cause, count in explanation.parts if cause != explanation.parts[-1][0])
    return storage_bytes is not None and abs(storage_bytes - size) < _NEAR * size


def main_format(found: Iterable[Part]) -> str:
    """The format that most quantised elements are in."""
    counts: Counter[str] = Counter()
    for part in found:
        if part.dtype_id != PLAIN:
            counts[part.dtype_id] += part.element_count
    return counts.most_common(1)[0][0]


def _shows_all(explanation: Explanation | None) -> bool:
    """Whether the total alone tells which matrices are quantised, and in what; not where they are just what the format usually takes."""
    storage = explanation.storage if explanation else None
    is_told = storage is not None and storage.dtype_id is not None and not explanation.is_ambiguous
    return is_told and not explanation.is_whole


def _held(
    tensor: Tensor, anatomy: Anatomy, config: Mapping[str, Any], named: Recipe | None, explanation: Explanation | None
) -> Mapping[str | None, int]:
    """In how many of its layers a tensor is held in which format; None is 16 bits."""
    whole = {None: tensor.layer_count}
    if tensor.role == "ngram_embedding" and named is not None:
        dtype_id, is_ruled = named.format_of(_TABLES)
        return {dtype_id if is_ruled else None: tensor.layer_count}
    if tensor.operator not in MATRICES or tensor.tensor_class in TOWERS:
        return whole
    shown = _shown(tensor, explanation)
    if named is None:
        return {explanation.storage.dtype_id: shown, None: tensor.layer_count - shown}
    least, most = _named(tensor, anatomy, config, named)
    storage = explanation.storage if explanation else None
    formats = (storage.dtype_id, *storage.also) if storage else ()
    if not any(dtype_id in formats for dtype_id in most):
        return least
    allowed = next(dtype_id for dtype_id in most if dtype_id in formats)
    layers = min(shown, most[allowed])
    others = {d: n for d, n in least.items() if d not in (None, allowed)}
    return {**others, allowed: layers, None: tensor.layer_count - layers - sum(others.values())}


def _shown(tensor: Tensor, explanation: Explanation | None) -> int:
    """In how many of its layers the total shows it quantised."""
    storage = explanation.storage if explanation else None
    if storage is None:
        return 0
    group = group_of(tensor)
    is_in = bool({group, group.removesuffix("-output")} & explanation.groups)
    return max(tensor.layer_count - storage.spared_layers, 0) if is_in else 0


def _named(
    tensor: Tensor, anatomy: Anatomy, config: Mapping[str, Any], named: Recipe
) -> tuple[dict[str | None, int], dict[str | None, int]]:
    """Layers by format as a config names them: with as little quantised as it allows, and with as much."""
    count = tensor.layer_count
    if not is_named(tensor):
        if named.rules and named.default and tensor.component == "text" and tensor.tensor_class != "other":
            return {None: count}, {None: count, named.default: count}
        is_taken = named.default and tensor.component in ("text", "encoder", "decoder", "denoiser") and not named.rules
        taken = {named.default if is_taken and tensor.tensor_class not in ("other", "head", "router") else None: count}
        return taken, taken
    places = places_of(named.patterns)
    is_end = tensor.tensor_class in ("head", "router") or tensor.role == "shared_expert_gate"
    layers = _layers_of(tensor, anatomy, config)
    formats: Counter[str | None] = Counter()
    possible: Counter[str | None] = Counter()  # it has one of the names: what it would be under each
    for layer in layers if tensor.role != "head" else range(1):
        names = names_of(tensor, layer, places)
        dtype_id, is_ruled = named.format_of(names)
        formats[None if is_end and not is_ruled else dtype_id] += 1
        is_open = is_ruled and dtype_id is None and not is_end
        possible.update({named.format_of([name])[0] for name in names} if is_open else {dtype_id})
    if tensor.role == "head":
        formats = possible = Counter({dtype_id: count for dtype_id in formats})
    by_width = sorted(formats, key=lambda dtype_id: -WIDTHS.get(dtype_id, 16))
    least, rest = {}, count
    for dtype_id in by_width:
        least[dtype_id] = min(formats[dtype_id], rest)
        rest -= least[dtype_id]
    if rest:  # more layers than the model has: all as the widest
        least[by_width[0]] += rest
    return least, {dtype_id: min(layers, count) for dtype_id, layers in possible.items()}


def _layers_of(tensor: Tensor, anatomy: Anatomy, config: Mapping[str, Any]) -> Iterable[int]:
    """Where a tensor's layers are, if the config says so, else all layers of the model."""
    total, count = anatomy.layer_count or 0, tensor.layer_count
    if count >= total:
        return range(max(total, 1))
    is_dense = tensor.tensor_class == "feed-forward"
    for part in parts_of(config):
        first = part.get("first_k_dense_replace")
        if (
            type(first) is int
            and 0 < first < total
            and tensor.tensor_class in ("feed-forward", "expert", "shared-expert", "router")
        ):
            chosen = range(first) if is_dense else range(first, total)
            if len(chosen) == count:
                return chosen
        kinds = part.get("layer_types")
        if isinstance(kinds, list) and len(kinds) == total:
            own = [
                i for i, kind in enumerate(kinds) if isinstance(kind, str) and _KINDS.get(kind) == tensor.tensor_class
            ]
            if len(own) == count:
                return own
    return range(total)


def _check_names(named: Recipe, anatomy: Anatomy) -> None:
    """Raises Undecided where a rule names something that the model is not known to have."""
    matrices = [t for t in anatomy.tensors if t.operator in MATRICES and is_named(t)]
    places = places_of(named.patterns)
    names = {name for t in matrices for layer in (0, 1, 2) for name in names_of(t, layer, places)}
    seen: set[str] = set()
    for rule in named.rules:
        for pattern in rule.patterns:
            kind = re.sub(r"\d+", "#", pattern)
            if kind in seen:
                continue  # a list names one layer after the other: the first shows what all are
            number = re.search(r"\.(\d+)(?=[.*]|$)", pattern)
            layer = int(number[1][:5]) if number else None
            here = {name for t in matrices for name in names_of(t, layer, places)} if layer and layer > 2 else names
            if not _NO_MATRIX.search(pattern) and not any(map(rule.matcher(pattern), here)):
                reason = f"its quantisation names modules that are not described: {pattern[:60]}"
                raise Undecided(reason, named.default or rule.dtype_id)
            seen.add(kind)
