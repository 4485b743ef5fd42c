"""What a checkpoint stores for an anatomy: how many elements the Hub publishes for it, how many bytes it holds.

The Hub's total is a sum over tensor headers. Weights of 16 and 32 bits count once per element. Packed weights count as
stored or unpacked, and their scales count or not, depending on the format and on when the Hub read the repository. So one
model has many right totals, and each follows from the shapes of its matrices:

    total = parameters + stored extras + Σ over quantised matrices of extra(out_features, in_features)

`explain_total` finds the simplest combination that gives the published total to the element (bitsandbytes alone stores a
text of varying length beside each matrix, so there the remainder must lie within the lengths that occur).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from pipeline.anatomy.rows import Anatomy, Tensor
from pipeline.confirm.storages import STORAGES, Storage


@dataclass(frozen=True)
class Explanation:
    """Why a published total is right. `parts`: elements beyond the parameters, by cause; their sum is the difference."""

    parts: tuple[tuple[str, int], ...]
    storage: Storage | None = None
    groups: frozenset[str] = frozenset()  # classes of matrices that the storage holds
    is_whole: bool = False  # those are all that quantisers of this format usually take
    is_ambiguous: bool = False  # another storage gives the same total
    rivals: tuple[Storage, ...] = ()  # those that give it for the same matrices, `storage` among them
    eights: frozenset[str] = frozenset()  # classes of matrices beside them that it shows in 8-bit floats
    stored_bytes: int | None = None


TOWERS = ("vision-tower", "audio-tower", "projector")
_RECURRENT = frozenset({"recurrent", "recurrent-output"})
_ATTENTION = frozenset({"attention", "attention-output", "indexer"})
_CORE = (*sorted(_ATTENTION), *sorted(_RECURRENT), "feed-forward", "expert", "shared-expert")
_MOST_PARTS = 5  # that one explanation may have
_OUTSIDE_MODULES = ("decay", "sink", "sinks", "attention_sink", "router_scale", "router_correction")
_BY_CHANCE = 1_000_000  # elements: as many scales as the experts' rows are no coincidence
_SMALL_ROWS = 256  # gates and decays of linear attention are left in 16 bits


@dataclass(frozen=True)
class _Matrices:
    """`count` matrices of one shape; `per_layer` of them in one layer."""

    count: int
    per_layer: int
    out: int
    into: int
    has_bias: bool


def matrices(anatomy: Anatomy, *, is_fused: bool = False) -> dict[str, list[_Matrices]]:
    """The matrices that a quantiser may touch, by group: fused gates apart again, as most checkpoints hold them."""
    biased = {(t.component, t.out_features) for t in anatomy.tensors if t.role == "bias"}
    groups: dict[str, list[_Matrices]] = defaultdict(list)
    for tensor in anatomy.tensors:
        if tensor.operator not in ("linear", "linear-subclass", "expert") or tensor.in_features is None:
            continue
        per_layer, out = tensor.per_layer_count, tensor.out_features
        if tensor.role == "expert_gate_up" and not is_fused:
            per_layer, out = per_layer * 2, out // 2
        is_input = tensor.role.startswith(("attention_q", "attention_k", "attention_v"))
        has_bias = is_input and (tensor.component, tensor.out_features) in biased
        groups[group_of(tensor)].append(
            _Matrices(per_layer * tensor.layer_count, per_layer, out, tensor.in_features, has_bias)
        )
    return groups


def group_of(tensor: Tensor) -> str:
    """The group of matrices that quantisers take or leave together."""
    if tensor.role in ("compressor", "indexer_compressor"):
        return "compressor"  # of keys: left in 16 bits
    if tensor.role.startswith("indexer"):
        return "small" if tensor.out_features < 128 else "indexer"
    if tensor.role == "attention_o" and tensor.tensor_class == "attention":
        return "attention-output"
    if tensor.role == "shared_expert_gate" or (
        tensor.tensor_class == "recurrent" and tensor.out_features < _SMALL_ROWS
    ):
        return "small"
    if tensor.tensor_class == "recurrent" and tensor.role.endswith("_out"):
        return "recurrent-output"
    return tensor.tensor_class


def _named(groups: frozenset[str]) -> frozenset[str]:
    """Without the outputs, where they go with the rest of their layer."""
    return frozenset(g for g in groups if g.removesuffix("-output") == g or g.removesuffix("-output") not in groups)


def _subsets(groups: Sequence[str]) -> list[frozenset[str]]:
    """The sets of groups that quantisers choose, the usual one first."""
    core = frozenset(g for g in _CORE if g in groups)
    feed_forward = core & {"feed-forward", "expert", "shared-expert"}
    bases = [core, core - {"indexer"}, core - _RECURRENT, feed_forward, feed_forward - {"feed-forward"}]
    bases += [core & {"expert"}, core & {"feed-forward"}, feed_forward | (core & {"attention-output"})]
    bases += [core & {"attention", "attention-output"}, core - {"shared-expert"}, core | ({"small"} & set(groups))]
    bases += [core - _ATTENTION, core - {"recurrent"}, core - {"feed-forward"}]  # dense blocks beside experts
    towers = frozenset(g for g in TOWERS if g in groups)
    more = [frozenset(), frozenset({"head"} & set(groups)), towers, towers | ({"head"} & set(groups))]
    return list(dict.fromkeys(base | plus for plus in more for base in bases if base))


def explain_total(
    anatomy: Anatomy,
    total: int,
    declared: str | None = None,
    *,
    is_repack: bool = True,
    is_gguf: bool = False,
    is_quantised: bool = True,
) -> Explanation | None:
    """The simplest account of a published total, or None.

    `declared` is the dtype_id that the config names, if any. Quantised matrices are only considered in a repack. Quantisers alone
    write scales of the cache: where neither config nor name speaks of one (`is_quantised`), the total has to show quantised matrices.
    """
    difference = total - anatomy.parameter_count
    extras = extras_by_sum(anatomy, is_gguf, has_cache_scales=is_quantised)
    if difference in extras:
        return Explanation(extras[difference])
    bare = -sum(t.element_count for t in anatomy.tensors if t.role in _OUTSIDE_MODULES)
    if bare and difference == bare:
        return Explanation((("parameters outside modules, which MLX leaves out", bare),))
    if not is_repack:
        return None
    found: list[Explanation] = []
    extras = extras_by_sum(anatomy, is_gguf)
    groups = matrices(anatomy)
    subsets = _subsets([name for name, rows in groups.items() if rows])
    fused = matrices(anatomy, is_fused=True)
    for storage in STORAGES if fused != groups else (s for s in STORAGES if not s.is_fused):
        held = fused if storage.is_fused else groups
        explanation = _explain_by(storage, anatomy, held, subsets, extras, difference, _is_of(storage, declared))
        if explanation:
            found.append(explanation)
    if not found:
        return _explain_by_mix(groups, extras, difference)
    found.sort(key=lambda e: (not _is_of(e.storage, declared), len(e.parts), subsets.index(e.groups)))
    best = found[0]
    rivals = [e for e in found if e.groups == best.groups and len(e.parts) == len(best.parts)]
    if declared:
        rivals = [e for e in rivals if _is_of(e.storage, declared)] or rivals
    names = " or ".join(dict.fromkeys(e.storage.name for e in rivals))
    return replace(
        best,
        parts=(*best.parts[:-1], (names, best.parts[-1][1])),
        groups=_named(best.groups),
        is_ambiguous=len({e.storage.dtype_id for e in rivals}) > 1,
        rivals=tuple(e.storage for e in rivals),
        stored_bytes=best.stored_bytes if len({e.stored_bytes for e in rivals}) == 1 else None,
    )


def _is_of(storage: Storage | None, dtype_id: str | None) -> bool:
    return storage is not None and dtype_id is not None and dtype_id in (storage.dtype_id, *storage.also)


Parts = tuple[tuple[str, int], ...]


def extras_by_sum(anatomy: Anatomy, is_gguf: bool = False, *, has_cache_scales: bool = True) -> dict[int, Parts]:
    """What a checkpoint may hold besides, in every combination: the parts by their sum, the fewest where sums are equal."""
    has_cache_scales = has_cache_scales and not is_gguf  # llama.cpp has no such tensors
    named = [(cause, size) for cause, size in anatomy.stored_extra.items() if size]
    caching = sum(a.layer_count for a in anatomy.attention if a.elements_per_token)
    if anatomy.vocab_size and any(t.tensor_class == "head" for t in anatomy.tensors):
        named.append(("embedding stored again", anatomy.vocab_size * anatomy.hidden_size))
    if caching and has_cache_scales:
        named.append(("scales of an fp8 cache", 2 * caching))
    widest = max((a.head_dim for a in anatomy.attention if a.mechanism == "full"), default=0)
    if is_gguf and widest > 1:  # llama.cpp keeps one factor for each pair of rotated elements, for all layers
        named.append(("rotary factors of a GGUF file", widest // 2))
    found: dict[int, Parts] = {}
    for length in range(min(len(named), _MOST_PARTS) + 1):
        for parts in combinations(named, length):
            found.setdefault(sum(size for _, size in parts), parts)
    return found


def _within(extras: Mapping[int, Parts], least: int, spread: int) -> Parts | None:
    """Parts whose sum lies in least - spread ... least."""
    if not spread:
        return extras.get(least)
    return next((parts for size, parts in extras.items() if 0 <= least - size <= spread), None)


def _explain_by(
    storage: Storage,
    anatomy: Anatomy,
    groups: dict[str, list[_Matrices]],
    subsets: list[frozenset[str]],
    extras: Mapping[int, Parts],
    difference: int,
    is_declared: bool,
) -> Explanation | None:
    rows = {name: [m for m in found if not (storage.has_own_bias and m.has_bias)] for name, found in groups.items()}
    spared = storage.spared_layers
    whole = {
        name: sum(max(m.count - spared * m.per_layer, 0) * storage.extra(m.out, m.into) for m in found)
        for name, found in rows.items()
    }
    # a multi-token prediction layer is one more layer of full attention and of the last kind of feed-forward
    layer = {name: sum(m.per_layer * storage.extra(m.out, m.into) for m in rows[name]) for name in rows}
    projection = 0
    if anatomy.predicting:
        held = matrices(replace(anatomy, tensors=anatomy.predicting))
        layer = {name: sum(m.count * storage.extra(m.out, m.into) for m in held[name]) for name in (*rows, "other")}
        projection = layer["other"]
    predicting = {size: parts for size, parts in extras.items() if any(c.startswith("multi-token") for c, _ in parts)}
    usual, is_small = _usual(rows), 0 < storage.extra(256, 256) <= 256
    for subset in subsets:
        is_alone = subset == ({"feed-forward"} if spared else {"expert"})
        body = sum([whole[name] for name in subset])
        many = is_alone and body >= _BY_CHANCE
        is_usual = is_alone if spared else subset in usual or (is_declared and is_alone) or many
        if is_small and not is_usual:
            continue  # so few elements, of an odd part of the model, could as well be anything else
        spread = storage.spread and storage.spread * sum(m.count for name in subset for m in rows[name])
        parts = _within(extras, difference - body, spread)
        if parts is None and predicting:
            predicted = subset - {*_RECURRENT, "head", *TOWERS} - ({"feed-forward"} if "expert" in groups else set())
            ahead = difference - body - sum(layer[n] for n in predicted)
            found = (_within(predicting, ahead - more, spread) for more in (0, projection))
            parts = next((one for one in found if one is not None), None)
        if parts is not None:
            is_whole = _is_whole(storage, subset, rows)
            size = _bytes(storage, anatomy, rows, subset, parts) if is_whole else None
            scales = (storage.name, difference - sum(size for _, size in parts))
            return Explanation((*parts, scales), storage, subset, is_whole, stored_bytes=size)
    return None


def _explain_by_mix(
    groups: dict[str, list[_Matrices]], extras: Mapping[int, Parts], difference: int
) -> Explanation | None:
    """NVFP4 recipes that hold the feed-forward in 4 bits and what else they quantise in 8, some layers of the feed-forward among it.

    How many layers those are shows where scales of 8-bit floats do: one to a row is no coincidence, one to a matrix could be.
    """
    core = frozenset(g for g in _CORE if groups.get(g)) - {"indexer"}
    feed_forward = core & {"feed-forward", "expert", "shared-expert"}
    lows = [low for low in (feed_forward, feed_forward - {"shared-expert"}, core & {"expert"}) if low]
    fours = [s for s in STORAGES if s.dtype_id == "nvfp4"]
    eights = [s for s in STORAGES if not s.spared_layers and not s.is_fused and "fp8" in (s.dtype_id, *s.also)]
    layers = max((m.count // m.per_layer for g in feed_forward for m in groups[g]), default=0)
    for spared, low, four in product(range(max(layers // 2, 1)), dict.fromkeys(lows), fours):
        packed = sum(max(m.count - spared * m.per_layer, 0) * four.extra(m.out, m.into) for g in low for m in groups[g])
        for high in (core - low, (core - low) | ({"head"} & set(groups))):
            for eight in eights if high else ():
                if spared and not _shows_rows(eight):
                    continue
                scales = sum(m.count * eight.extra(m.out, m.into) for g in high for m in groups[g])
                scales += sum(spared * m.per_layer * eight.extra(m.out, m.into) for g in low for m in groups[g])
                parts = extras.get(difference - packed - scales)
                if parts is not None:
                    return _mixed(parts, replace(four, spared_layers=spared), low, eight, high, packed, scales)
    return None


def _shows_rows(eight: Storage) -> bool:
    return eight.extra(1024, 1024) >= 1024


def _mixed(
    parts: Parts, four: Storage, low: frozenset[str], eight: Storage, high: frozenset[str], packed: int, scales: int
) -> Explanation:
    spared = four.spared_layers
    others = f"{spared} layer{'s' if spared > 1 else ''} of the others"
    names = [*sorted(_named(high)), *([others] if spared else [])]
    shown = (f"{eight.name} (8 bits: {', '.join(names)})", scales), (four.name, packed)
    held = {"is_ambiguous": True, "rivals": (four,), "eights": _named(high)}
    return Explanation((*parts, *shown), four, _named(low), **held)


def _is_whole(storage: Storage, subset: frozenset[str], rows: Mapping[str, list[_Matrices]]) -> bool:
    """Whether the rest is certainly in 16 bits: recipes that mix formats leave out some of the usual groups."""
    if storage.spared_layers:
        return False
    usual = {"expert"} if storage.dtype_id == "mxfp4" else {g for g in _CORE if rows.get(g)} - {"indexer"}
    return subset - {"head", "small", *TOWERS, "indexer"} == usual


def _usual(rows: Mapping[str, list[_Matrices]]) -> list[frozenset[str]]:
    """What quantisers take: all, all but linear attention, or only the feed-forward of a mixture of experts."""
    core = frozenset(g for g in _CORE if rows.get(g))
    sets = [core, core - {"indexer"}, core - _RECURRENT]
    if core & _RECURRENT:
        sets.append(core - _ATTENTION)  # of hybrids, whose few layers of attention stay in 16 bits
    return [*sets, core & {"feed-forward", "expert", "shared-expert"}] if "expert" in core else sets


def _bytes(
    storage: Storage, anatomy: Anatomy, rows: dict[str, list[_Matrices]], subset: frozenset[str], parts: Parts
) -> int | None:
    """Bytes of the checkpoint where every width is certain: packed matrices, and 16 bits for the rest."""
    if storage.matrix_bytes is None or any(cause.startswith("multi-token") for cause, _ in parts):
        return None
    chosen = [m for name in subset for m in rows[name]]
    packed = sum(m.count * m.out * m.into for m in chosen)
    size = sum(m.count * storage.matrix_bytes(m.out, m.into) for m in chosen)
    return size + 2 * (anatomy.parameter_count - packed + sum(count for _, count in parts))
