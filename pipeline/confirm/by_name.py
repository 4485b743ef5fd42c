"""How a checkpoint holds its matrices where only the name of its repository says the format: neither a config nor tensor headers do.

Witnesses, the surest first:

    total   the published one shows which matrices are packed, and how many elements share a scale (stored.py); where several widths
            give it, the widest of those that the name speaks of
    size    of the repository, where it is that of one of the ways in which quantisers pack an architecture, with or without its
            prediction layers; of several ways that have it the largest
    packer  what repositories of that maker or tool are known to leave in 16 bits (tables/library/packer.csv)

Of an architecture that mixes attention with recurrent layers makers of repositories pack different parts, so where no witness speaks it is
counted at the larger (recurrent layers in 16 bits, in 4 bits of a mixture the routed experts alone, in NVFP4 the feed-forward alone), and
is unknown where that is much larger than all of it packed. Of the others nothing is said here: nearly all pack every matrix, which is what
a format means anyway.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pipeline import ROOT
from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.formats import is_quantised
from pipeline.confirm.left_out import Undecided
from pipeline.confirm.storages import Storage
from pipeline.confirm.stored import TOWERS, Explanation, group_of
from pipeline.confirm.stored_parts import FAR, MATRICES, PLAIN, WIDTHS, Part, bytes_of
from pipeline.hub.record import Record

FILE = ROOT / "tables" / "library" / "packer.csv"
_EIGHT = r"fp8|int8|8-?bit|w8a"
# What names say: words of one family alone. Those of MLX, ExLlama, OpenVINO and GGUF name formats of their own.
_FAMILIES = {
    "nvfp4": r"nv-?fp4",
    "int4": rf"^(?!.*(?:{_EIGHT})).*(?:awq|gptq|auto-?round|(?<!\d)4-?bit)|w4a16|int4",
    "fp8": r"(?<!mx)fp8|w8a8-fp",
    "w8a8-int8": r"w8a8(?!-fp)",
    "other": r"mx-?fp[468]|nf4|bnb|mlx|exl[23]|gguf|-ov$|(?<![a-z])fp4|q4_0|bpw|(?<!w8a8[-_])int8(?!.*w8a8)|optiq",
}
USUAL = {"nvfp4": "nvfp4", "int4": "awq-int4", "fp8": "fp8", "w8a8-int8": "w8a8-int8"}
_EIGHTS = ("fp8", "w8a8-int8")
_INT4 = ("awq-int4", "gptq-int4", "gptq-int4-g64", "gptq-int4-g32")
_RECURRENT = frozenset({"recurrent", "recurrent-output"})
_FEED_FORWARD = frozenset({"feed-forward", "expert", "shared-expert"})
_ATTENTION = frozenset({"attention", "attention-output", "indexer"})
_CORE = _RECURRENT | _FEED_FORWARD | _ATTENTION
_NEAR, _BESIDE_BYTES = 0.005, 40e6  # of a size, that lies above; a tokenizer and such
_BELOW = {"int4": 0.006}  # of a size, that lies below: zero points that integers may do without, 0.03 bits of 4.16
_SCALES = 0.002  # the same of other formats: scales that widths leave out
_AT_THE_LARGER = "Only its name says its format, and nothing how much it packs: counted at the larger"
_OPEN = "only its name says its format; of such models makers pack all, or leave recurrent layers or all but the feed-forward in 16 bits"


@dataclass(frozen=True)
class Named:
    dtype_id: str  # as people call the format
    parts: tuple[Part, ...]
    note: str | None = None  # where no witness spoke


def family(record: Record) -> str | None:
    """The family of formats that the name or the Hub's tag speaks of, and no other."""
    if record.parameters_kind == "exact_gguf" or (record.library or "").lower() in ("mlx", "gguf"):
        return None
    words = f"{record.model_id} {record.quantization_hint or ''}"
    said = {name for name, pattern in _FAMILIES.items() if re.search(pattern, words, re.IGNORECASE)}
    return said.pop() if len(said) == 1 and said != {"other"} else None


def by_name(record: Record, anatomy: Anatomy, explanation: Explanation | None) -> Named | None:
    """What it holds of the format that its name says, or None where the usual packing of that format stands. Raises Undecided."""
    said = family(record)
    if said is None or anatomy.parameter_count is None or is_quantised(record.config or {}):
        return None
    is_gptq = said == "int4" and not re.search("awq", f"{record.model_id} {record.quantization_hint}", re.IGNORECASE)
    dtype_id = "gptq-int4" if is_gptq else USUAL[said]
    storage = explanation.storage if explanation else None
    is_mixed = explanation is not None and bool(explanation.eights)
    if storage is not None and storage.spared_layers and not is_mixed:
        return None
    groups = frozenset(group_of(t) for t in anatomy.tensors if t.operator in MATRICES)
    row = _packer(record.model_id, said, groups)
    usual = (row and row["held"]) or USUAL[said]
    held = _widest(explanation.rivals or (storage,), said) if storage else None
    if held:
        spared = storage.spared_layers if is_mixed else 0
        return _named(dtype_id, _parts(anatomy, explanation.groups, held, explanation.eights, spared_layers=spared))
    if sized := _by_size(record, anatomy, said):
        return _named(dtype_id, sized)
    if storage:  # in another format of as many elements, which it is not called by
        return _named(dtype_id, _parts(anatomy, explanation.groups - {"head"}, usual))
    if row:
        packed, spared = frozenset(row["groups"].split()), int(row["spared_layers"])
        return _named(dtype_id, _parts(anatomy, packed, usual, spared_layers=spared))
    if not groups & _RECURRENT:
        return None
    larger = _parts(anatomy, _least(groups, said), usual)
    if bytes_of(larger) > FAR * bytes_of(_parts(anatomy, _CORE, usual)):
        raise Undecided(_OPEN, dtype_id)
    return _named(dtype_id, larger, _AT_THE_LARGER)


def _named(dtype_id: str, parts: tuple[Part, ...], note: str | None = None) -> Named | None:
    return Named(dtype_id, parts, note) if any(part.dtype_id != PLAIN for part in parts) else None


def _widest(rivals: tuple[Storage, ...], said: str) -> str | None:
    """The widest way of the family that gives the total, or None where none of them does."""
    ways = {storage.held or storage.dtype_id for storage in rivals}
    ways |= {USUAL[said] for storage in rivals if storage.dtype_id is None and said in _EIGHTS and not storage.held}
    ways = {way for way in ways if way == USUAL[said] or (said == "int4" and way in _INT4)}
    return max(ways, key=lambda way: (WIDTHS[way], way)) if ways else None


def _least(groups: frozenset[str], said: str) -> frozenset[str]:
    """What is packed at the least, of architectures with recurrent layers."""
    if said in ("nvfp4", "int4") and "expert" in groups:
        return frozenset({"expert"})
    return frozenset({"feed-forward"}) if said == "nvfp4" else (_CORE & groups) - _RECURRENT


def _by_size(record: Record, anatomy: Anatomy, said: str) -> tuple[Part, ...] | None:
    if record.storage_bytes is None:
        return None
    ahead = sum(size for cause, size in anatomy.stored_extra.items() if cause.startswith("multi-token"))
    widths = (2, 1, 0) if said in _EIGHTS else (2, 0)
    found = []
    for parts in _ways(anatomy, said):
        size = bytes_of(parts)
        for width in widths if ahead else (0,):
            over = record.storage_bytes - size - width * ahead
            if -_BELOW.get(said, _SCALES) * size <= over <= _NEAR * size + _BESIDE_BYTES:
                found.append((size, parts))
                break
    return max(found, key=lambda one: one[0])[1] if found else None


def _ways(anatomy: Anatomy, said: str) -> Iterator[tuple[Part, ...]]:
    """The ways in which quantisers pack an architecture."""
    groups = frozenset(group_of(t) for t in anatomy.tensors if t.operator in MATRICES)
    core = _CORE & groups
    sets = [core, core - _RECURRENT, core & _FEED_FORWARD, core & {"expert"}, core - _ATTENTION]
    for packed in dict.fromkeys(filter(None, sets)):
        for held in _INT4 if said == "int4" else (USUAL[said],):
            yield _parts(anatomy, packed, held)


def _parts(
    anatomy: Anatomy, groups: frozenset[str], held: str, eights: frozenset[str] = frozenset(), *, spared_layers: int = 0
) -> tuple[Part, ...]:
    """Its tensors with these groups of matrices in a format, but for the layers that are spared, and others in 8-bit floats, as spared layers
    are then too."""
    found = []
    for tensor in anatomy.tensors:
        group = group_of(tensor)
        names = {group, group.removesuffix("-output")}
        is_matrix = tensor.operator in MATRICES and (tensor.tensor_class not in TOWERS or group in groups)
        dtype_id = PLAIN if not is_matrix else held if names & groups else "fp8" if names & eights else PLAIN
        kept = min(spared_layers, tensor.layer_count) if dtype_id == held else 0
        layers = ((dtype_id, tensor.layer_count - kept), ("fp8" if eights else PLAIN, kept))
        found += [Part(tensor, kind, count) for kind, count in layers if count]
    return tuple(found)


def _packer(model_id: str, said: str, groups: frozenset[str]) -> dict[str, str] | None:
    flags = {"is_recurrent": bool(groups & _RECURRENT), "has_experts": "expert" in groups}
    return next(
        (
            row
            for row in _packers()
            if row["family"] == said
            and all(row[name] in ("", str(is_so).lower()) for name, is_so in flags.items())
            and re.search(row["name_pattern"], model_id, re.IGNORECASE)
        ),
        None,
    )


@cache
def _packers() -> list[dict[str, str]]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
