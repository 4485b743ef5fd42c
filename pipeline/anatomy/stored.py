"""What a checkpoint stores for an anatomy: how many elements the Hub publishes for it, how many bytes it holds.

The Hub's total is a sum over tensor headers. Weights of 16 and 32 bits count once per element. Packed weights count as
stored or unpacked, and their scales count or not, depending on the format and on when the Hub read the repository. So one
model has many right totals, and each follows from the shapes of its matrices:

    total = parameters + stored extras + Σ over quantised matrices of extra(out_features, in_features)

`explain_total` finds the simplest combination that gives the published total to the element (bitsandbytes alone stores a
text of varying length beside each matrix, so there the remainder must lie within the lengths that occur).

Sources: the safetensors accounting of huggingface.js (packages/hub, parse-safetensors-metadata.ts) for what is counted;
AutoGPTQ, AutoAWQ, bitsandbytes, compressed-tensors, Model Optimizer, MXFP4 in vLLM and MLX for what is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pipeline.anatomy.rows import Anatomy, Tensor

Shape = Callable[[int, int], int]  # (out_features, in_features) of one matrix → elements or bytes


@dataclass(frozen=True)
class Storage:
    """One way to hold a quantised matrix. `extra`: elements of the Hub's total beyond one per weight."""

    name: str
    dtype_id: str | None  # our format of the same bits, where the total tells it
    extra: Shape
    matrix_bytes: Shape | None = None  # None where a scale may be of two widths
    also: tuple[str, ...] = ()  # formats that this may be too, if the config says so
    spread: int = 0  # further elements per matrix that may be there, for a text of varying length
    has_own_bias: bool = False  # a bias is added where the model has none


@dataclass(frozen=True)
class Explanation:
    """Why a published total is right. `parts`: elements beyond the parameters, by cause; their sum is the difference."""

    parts: tuple[tuple[str, int], ...]
    storage: Storage | None = None
    groups: frozenset[str] = frozenset()  # classes of matrices that the storage holds
    is_whole: bool = False  # those are all that quantisers of this format usually take
    is_ambiguous: bool = False  # another storage gives the same total
    stored_bytes: int | None = None


def _per(size: int, by: int) -> int:
    return -(-size // by)


def _grouped(bits: int, group: int, has_zero_points: bool, is_unpacked: bool, words: int) -> tuple[Shape, Shape]:
    """Integers packed into 32-bit words with a 16-bit scale per group, and `words` further elements per matrix."""

    def extra(out: int, into: int) -> int:
        groups = out * _per(into, group)
        weights = 0 if is_unpacked else out * into * bits // 32 - out * into
        zeros = (groups if is_unpacked else groups * bits // 32) if has_zero_points else 0
        return weights + groups + zeros + words

    def size(out: int, into: int) -> int:
        groups = out * _per(into, group)
        return out * into * bits // 8 + 2 * groups + (groups * bits // 8 if has_zero_points else 0) + 8 * words

    return extra, size


def _storages() -> Iterator[Storage]:
    yield Storage("one scale per block of 128 × 128", "fp8", lambda o, i: _per(o, 128) * _per(i, 128))
    yield Storage("one scale per output row, 8 bits", None, lambda o, i: o, also=("fp8", "int8"))
    yield Storage("one scale per matrix", "fp8", lambda o, i: 1)
    yield Storage("a weight and an input scale per matrix", "fp8", lambda o, i: 2)
    yield Storage("a bias of zeros beside each packed matrix", "gptq-int4", lambda o, i: o, has_own_bias=True)
    half, block = (lambda o, i: -o * i // 2), (lambda o, i: o * i // 2 + o * _per(i, 16))
    for name, scales, more in (
        ("4-bit floats counted in pairs", 0, 0),
        ("4-bit floats counted in pairs, a scale per 16", 1, 0),
        ("4-bit floats counted in pairs, a scale per 16 and one per matrix", 1, 1),
        ("4-bit floats counted in pairs, a scale per 16 and two per matrix", 1, 2),
        ("4-bit floats counted in pairs, two scales per matrix", 0, 2),
    ):
        yield Storage(
            name,
            "nvfp4",
            lambda o, i, s=scales, m=more: half(o, i) + s * o * _per(i, 16) + m,
            lambda o, i: block(o, i) + 8,
        )
    for more, name in ((0, "4-bit floats, a scale per 16"), (2, "4-bit floats, a scale per 16 and two per matrix")):
        yield Storage(name, "nvfp4", lambda o, i, m=more: o * _per(i, 16) + m, lambda o, i: block(o, i) + 8)
    for name, extra in (
        ("4-bit floats and a scale per 32", lambda o, i: o * _per(i, 32)),
        ("4-bit floats counted in pairs, a scale per 32", lambda o, i: half(o, i) + o * _per(i, 32)),
    ):
        yield Storage(name, "mxfp4", extra, lambda o, i: o * i // 2 + o * _per(i, 32))
    for group in (128, 64, 32):
        for zeros in (False, True):
            for unpacked in (True, False):
                for words in (2, 0):
                    extra, size = _grouped(4, group, zeros, unpacked, words)
                    counted = "4-bit integers" if unpacked else "4-bit integers counted as 32-bit words"
                    name = f"{counted}, a scale{' and a zero point' if zeros else ''} per {group}"
                    name += " and the shape of each matrix" if words else ""
                    dtype_id = ("awq-int4" if zeros else "gptq-int4") if group == 128 else None
                    also = ("awq-int4", "gptq-int4") if group == 128 else ()
                    yield Storage(name, dtype_id, extra, size, also)
    # bitsandbytes: U8 counts double, so does the scale per 64 in double quantisation; 16 + 256 values of the code tables;
    # the state is a JSON text of 150 to 190 bytes, counted double
    yield Storage(
        "4-bit NormalFloat with its scales, tables and a text per matrix",
        "nf4",
        lambda o, i: 2 * _per(o * i, 64) + _per(_per(o * i, 64), 256) + 272 + 2 * 150,
        lambda o, i: o * i // 2 + _per(o * i, 64) + 4 * _per(_per(o * i, 64), 256) + 4 * 272 + 170,
        spread=2 * 40,
    )


STORAGES = tuple(_storages())
TOWERS = ("vision-tower", "audio-tower", "projector")
_CORE = ("attention", "attention-output", "indexer", "recurrent", "feed-forward", "expert", "shared-expert")
_SMALL_ROWS = 256  # gates and decays of linear attention are left in 16 bits


@dataclass(frozen=True)
class _Matrices:
    """`count` matrices of one shape; `per_layer` of them in one layer."""

    count: int
    per_layer: int
    out: int
    into: int
    has_bias: bool


def matrices(anatomy: Anatomy) -> dict[str, list[_Matrices]]:
    """The matrices that a quantiser may touch, by group: fused gates apart again, as checkpoints hold them."""
    biased = {(t.component, t.out_features) for t in anatomy.tensors if t.role == "bias"}
    groups: dict[str, list[_Matrices]] = defaultdict(list)
    for tensor in anatomy.tensors:
        if tensor.operator not in ("linear", "linear-subclass", "expert") or tensor.in_features is None:
            continue
        per_layer, out = tensor.per_layer_count, tensor.out_features
        if tensor.role == "expert_gate_up":
            per_layer, out = per_layer * 2, out // 2
        is_input = tensor.role.startswith(("attention_q", "attention_k", "attention_v"))
        has_bias = is_input and (tensor.component, tensor.out_features) in biased
        groups[_group(tensor)].append(
            _Matrices(per_layer * tensor.layer_count, per_layer, out, tensor.in_features, has_bias)
        )
    return groups


def _group(tensor: Tensor) -> str:
    if tensor.role.startswith("indexer"):
        return "small" if tensor.out_features < 128 else "indexer"
    if tensor.role == "attention_o" and tensor.tensor_class == "attention":
        return "attention-output"
    if tensor.role == "shared_expert_gate" or (
        tensor.tensor_class == "recurrent" and tensor.out_features < _SMALL_ROWS
    ):
        return "small"
    return tensor.tensor_class


def _subsets(groups: Sequence[str]) -> list[frozenset[str]]:
    """The sets of groups that quantisers choose, the usual one first."""
    core = frozenset(g for g in _CORE if g in groups)
    feed_forward = core & {"feed-forward", "expert", "shared-expert"}
    bases = [core, core - {"indexer"}, core - {"recurrent"}, feed_forward, feed_forward - {"feed-forward"}]
    bases += [core & {"expert"}, core & {"feed-forward"}, feed_forward | (core & {"attention-output"})]
    bases += [core & {"attention", "attention-output"}, core - {"shared-expert"}, core | ({"small"} & set(groups))]
    bases += [core - {"attention", "attention-output", "indexer"}]
    towers = frozenset(g for g in TOWERS if g in groups)
    more = [frozenset(), frozenset({"head"} & set(groups)), towers, towers | ({"head"} & set(groups))]
    return list(dict.fromkeys(base | plus for plus in more for base in bases if base))


def explain_total(
    anatomy: Anatomy, total: int, declared: str | None = None, *, is_repack: bool = True
) -> Explanation | None:
    """The simplest account of a published total, or None.

    `declared` is the dtype_id that the config names, if any. Quantised matrices are only considered in a repack.
    """
    difference = total - anatomy.parameter_count
    extras = _extras(anatomy)
    for parts in extras:
        if sum(size for _, size in parts) == difference:
            return Explanation(parts)
    bare = -sum(t.element_count for t in anatomy.tensors if t.role in ("decay", "sink", "sinks", "attention_sink"))
    if bare and difference == bare:
        return Explanation((("parameters outside modules, which MLX leaves out", bare),))
    if not is_repack:
        return None
    found: list[Explanation] = []
    groups = matrices(anatomy)
    subsets = _subsets([name for name, rows in groups.items() if rows])
    for storage in STORAGES:
        explanation = _explain_by(storage, anatomy, groups, subsets, extras, difference)
        if explanation:
            found.append(explanation)
    if not found:
        return None
    found.sort(key=lambda e: (not _is_of(e.storage, declared), len(e.parts), subsets.index(e.groups)))
    best = found[0]
    rivals = [e for e in found if e.groups == best.groups and len(e.parts) == len(best.parts)]
    if declared:
        rivals = [e for e in rivals if _is_of(e.storage, declared)] or rivals
    names = " or ".join(dict.fromkeys(e.storage.name for e in rivals))
    return replace(
        best,
        parts=(*best.parts[:-1], (names, best.parts[-1][1])),
        groups=best.groups - {"attention-output"} if "attention" in best.groups else best.groups,
        is_ambiguous=len({e.storage.dtype_id for e in rivals}) > 1,
        stored_bytes=best.stored_bytes if len({e.stored_bytes for e in rivals}) == 1 else None,
    )


def _is_of(storage: Storage | None, dtype_id: str | None) -> bool:
    return storage is not None and dtype_id is not None and dtype_id in (storage.dtype_id, *storage.also)


def _extras(anatomy: Anatomy) -> list[tuple[tuple[str, int], ...]]:
    """Every combination of what a checkpoint may hold besides, the smallest first."""
    named = [(cause, size) for cause, size in anatomy.stored_extra.items() if size]
    caching = sum(a.layer_count for a in anatomy.attention if a.elements_per_token)
    if anatomy.vocab_size and not anatomy.is_head_tied:
        named.append(("embedding stored again", anatomy.vocab_size * anatomy.hidden_size))
    if caching:
        named.append(("scales of an fp8 cache", 2 * caching))
    return [parts for length in range(len(named) + 1) for parts in combinations(named, length)]


def _explain_by(
    storage: Storage,
    anatomy: Anatomy,
    groups: dict[str, list[_Matrices]],
    subsets: list[frozenset[str]],
    extras: list[tuple[tuple[str, int], ...]],
    difference: int,
) -> Explanation | None:
    rows = {name: [m for m in found if not (storage.has_own_bias and m.has_bias)] for name, found in groups.items()}
    whole = {name: sum(m.count * storage.extra(m.out, m.into) for m in found) for name, found in rows.items()}
    # a multi-token prediction layer is one more layer of full attention and of the last kind of feed-forward
    layer = {name: sum(m.per_layer * storage.extra(m.out, m.into) for m in rows[name]) for name in rows}
    for subset in subsets:
        if 0 < storage.extra(256, 256) <= 256 and subset not in _usual(rows):
            continue  # so few elements, of an odd part of the model, could as well be anything else
        count = sum(m.count for name in subset for m in rows[name])
        body = sum(whole[name] for name in subset)
        predicted = subset - {"recurrent", "head", *TOWERS} - ({"feed-forward"} if "expert" in groups else set())
        for parts in extras:
            rest = difference - body - sum(size for _, size in parts)
            has_prediction = any(cause.startswith("multi-token") for cause, _ in parts)
            for more in (0, sum(layer[name] for name in predicted)) if has_prediction else (0,):
                if 0 <= rest - more <= storage.spread * count:
                    is_whole = _is_whole(storage, subset, rows)
                    size = _bytes(storage, anatomy, rows, subset, parts) if is_whole else None
                    scales = (storage.name, body + rest)
                    return Explanation((*parts, scales), storage, subset, is_whole, stored_bytes=size)
    return None


def _is_whole(storage: Storage, subset: frozenset[str], rows: Mapping[str, list[_Matrices]]) -> bool:
    """Whether the rest is certainly in 16 bits: recipes that mix formats leave out some of the usual groups."""
    usual = {"expert"} if storage.dtype_id == "mxfp4" else {g for g in _CORE if rows.get(g)} - {"indexer"}
    return subset - {"head", "small", *TOWERS, "indexer"} == usual


def _usual(rows: Mapping[str, list[_Matrices]]) -> list[frozenset[str]]:
    """What quantisers take: all, all but linear attention, or only the feed-forward of a mixture of experts."""
    core = frozenset(g for g in _CORE if rows.get(g))
    sets = [core, core - {"indexer"}, core - {"recurrent"}]
    return [*sets, core & {"feed-forward", "expert", "shared-expert"}] if "expert" in core else sets


def _bytes(
    storage: Storage,
    anatomy: Anatomy,
    rows: dict[str, list[_Matrices]],
    subset: frozenset[str],
    parts: tuple[tuple[str, int], ...],
) -> int | None:
    """Bytes of the checkpoint where every width is certain: packed matrices, and 16 bits for the rest."""
    if storage.matrix_bytes is None or any(cause.startswith("multi-token") for cause, _ in parts):
        return None
    chosen = [m for name in subset for m in rows[name]]
    packed = sum(m.count * m.out * m.into for m in chosen)
    size = sum(m.count * storage.matrix_bytes(m.out, m.into) for m in chosen)
    return size + 2 * (anatomy.parameter_count - packed + sum(count for _, count in parts))
