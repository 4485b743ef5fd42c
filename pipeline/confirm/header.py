"""The census of a checkpoint from its tensor headers: what each tensor is, how many parameters it stands for, its bytes.

The summary of the headers (pipeline/hub/summary.py) is rows of name pattern, dtype, shape and count. `read_header` makes
matrices of packed tensors (packed.py), says by their names what they are (tensor_names.py), and sets apart what nothing loads:
prediction layers, buffers, mask tables. What a config alone can tell (a tied head, windows, what a layer caches) is not here.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.anatomy.rows import Tensor
from pipeline.confirm.packed import Form, Matrix, Row, unpack
from pipeline.confirm.tensor_names import Named, named
from pipeline.hub.summary import DENOISERS, layer_numbers

PREDICTING = "multi-token prediction layers"
ROUTER_BIASES = "router bias buffers"
INTEGERS = "tables of integers"
_PREDICTS = re.compile(
    r"^(.*?layers?\.\*|blk\.\*)\.(eh_proj|enorm|hnorm|embed_tokens|shared_head\.\w+|nextn\.\w+)(\.weight)?$"
)
_RECURS = re.compile(r"^(.*\.(?:self_attn|attention|attn|linear_attn|mixer))\..*(A_log|dt_bias|slope|conv1d)")
_INTEGERS = ("I64", "U64", "I32", "U32", "I16", "U16", "I8", "U8", "BOOL")


@dataclass(frozen=True)
class Held:
    """Tensors of a checkpoint. `shape` is of one, and None where they only help others (scales); `layer_count` layers hold them."""

    what: Named
    storage: str
    shape: tuple[int, ...] | None
    count: int
    layer_count: int
    is_in_layers: bool
    stored_element_count: int
    stored_bytes: int

    @property
    def element_count(self) -> int:
        return math.prod(self.shape) * self.count if self.shape is not None else 0


@dataclass(frozen=True)
class Census:
    held: tuple[Held, ...]

    @property
    def parameter_count(self) -> int:
        return sum(h.element_count for h in self.held if h.what.beside is None)

    @property
    def stored_element_count(self) -> int:
        return sum(h.stored_element_count for h in self.held)

    @property
    def stored_bytes(self) -> int:
        return sum(h.stored_bytes for h in self.held)

    def by_class(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for h in self.held:
            if h.what.beside is None and h.element_count:
                counts[h.what.tensor_class] += h.element_count
        return dict(counts)

    def beside(self) -> dict[str, int]:
        """Elements that nothing loads, by cause."""
        counts: Counter[str] = Counter()
        for h in self.held:
            if h.what.beside is not None:
                counts[h.what.beside] += h.element_count
        return dict(counts)

    def set_apart(self, cause: str, role: str) -> Census:
        """The same with the loaded tensors of a role set apart for this cause."""
        return self._changed(cause, lambda what: what.beside is None and what.role == role)

    def taken_in(self, cause: str) -> Census:
        """The same with what is set apart for this cause loaded."""
        return self._changed(None, lambda what: what.beside == cause)

    def _changed(self, cause: str | None, chosen: Callable[[Named], bool]) -> Census:
        return Census(tuple(replace(h, what=replace(h.what, beside=cause)) if chosen(h.what) else h for h in self.held))

    def elements_of(self, role: str) -> int:
        """Elements of a role that are loaded."""
        return sum(h.element_count for h in self.held if h.what.beside is None and h.what.role == role)

    def tensors(self) -> tuple[Tensor, ...]:
        """Rows of the census as a config's reader gives them."""
        return tuple(_tensor(h) for h in self.held if h.what.beside is None and h.element_count)


def read_header(header: Mapping[str, Any], form: Form = (None, None)) -> Census:
    """The census of a summary. Raises NotDescribed where its tensors are packed in a way that is not known."""
    rows = [
        Row(p, dtype, tuple(shape), count, layer_numbers(layers))
        for p, dtype, shape, count, layers in header["tensors"]
    ]
    part = _part(header["file"], [row.pattern for row in rows])
    predicting, recurring = _layers(rows, _PREDICTS), _layers(rows, _RECURS)
    found: list[Held] = []
    for is_predicting, chosen in _divided(rows, predicting):
        for is_recurrent, these in _divided(chosen, recurring):
            for matrix in unpack(these, form):
                found.append(_held(matrix, part, is_predicting, is_recurrent))
    return Census(tuple(found))


def _layers(rows: Iterable[Row], marks: re.Pattern[str]) -> dict[str, frozenset[int]]:
    """The layers in which a tensor with these marks lies, by what stands before them."""
    found: dict[str, frozenset[int]] = defaultdict(frozenset)
    for row in rows:
        match = marks.search(row.pattern)
        if match and row.layers:
            found[match[1] + "."] |= row.layers
    return found


def _divided(rows: list[Row], apart: Mapping[str, frozenset[int]]) -> Iterable[tuple[bool, list[Row]]]:
    """The rows outside these layers, and those inside."""
    outside, inside = [], []
    for row in rows:
        layers = next((apart[prefix] for prefix in apart if row.pattern.startswith(prefix)), frozenset())
        part = row.within(layers) if layers else None
        if part is not None:
            inside.append(part)
        rest = row if part is None else row.within(row.layers - layers)
        if rest is not None:
            outside.append(rest)
    return (False, outside), (True, inside)


def _part(file: str, patterns: list[str]) -> str | None:
    """The part that the whole file is, where its names do not say: a pipeline's denoiser, a tower that stands alone."""
    if file.split("/")[0] in DENOISERS and "/" in file:
        return "denoiser"
    if any(
        re.search(r"embed_tokens|word_embeddings|token_embd|wte|embed_in|tok_embeddings|token_embedding|\bshared\b", p)
        for p in patterns
    ):
        return None
    if any(re.search(r"feature_extractor\.conv_layers|feature_projection\.", p) for p in patterns):
        return "audio"
    if any(re.search(r"patch_embed|patch_conv|cls_token|class_embedding|stages\.\*", p) for p in patterns):
        return "vision"
    return None


def _held(matrix: Matrix, part: str | None, is_predicting: bool, is_recurrent: bool) -> Held:
    row = matrix.row
    # bitsandbytes keeps the values of a matrix as one row of bytes
    dimensions = 2 if matrix.storage == "nf4" else len(row.shape if matrix.shape is None else matrix.shape)
    what = named(matrix.name, dimensions, part)
    if is_recurrent and what.tensor_class in ("attention", "other"):
        what = replace(what, tensor_class="recurrent", role=what.role.replace("attention_", "delta_"))
    if is_predicting:
        what = replace(what, component="mtp", tensor_class="mtp", beside=PREDICTING)
    if what.beside is None and matrix.shape is not None and matrix.storage in _INTEGERS:
        what = replace(what, beside=INTEGERS)
    layers = len(row.layers)
    return Held(
        what,
        matrix.storage,
        matrix.shape,
        row.count,
        layers if layers and row.count % layers == 0 else row.count,
        bool(row.layers),
        row.element_count,
        row.bytes,
    )


def _tensor(held: Held) -> Tensor:
    what, shape, each = held.what, held.shape or (1,), held.count // held.layer_count
    place = (what.component, what.tensor_class, what.role)
    if what.operator == "expert" and len(shape) == 3:
        return Tensor(*place, "expert", held.layer_count, each * shape[0], shape[1], shape[2])
    if what.operator in ("linear", "expert", "embedding") and len(shape) == 2:
        return Tensor(*place, what.operator, held.layer_count, each, shape[0], shape[1])
    operator = {"embedding": "parameter"}.get(what.operator, what.operator)
    if operator == "linear" and len(shape) > 2:
        operator = "conv"
    return Tensor(*place, operator, held.layer_count, each, math.prod(shape))
