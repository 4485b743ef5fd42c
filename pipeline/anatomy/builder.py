"""The one builder of anatomies: it collects the rows of a component, and makes rows that are alike one.

Two vocabularies speak to it: `Decoder` (parts/decoder.py), whose parts are layers of one language model, and `Part` (towers/part.py), for
encoders, towers and projectors. What they collect is held to the same limits, and kinds of layers are numbered the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pipeline.anatomy.fields import Fields, no_more_rows
from pipeline.anatomy.reading import architecture_of
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig, FeedForwardLayer, Tensor
from pipeline.base.bounds import LARGEST_SIZE, LARGEST_TOTAL, MOST_REPEATS

MOST_CACHED = 10**12  # elements of one layer, per token or per sequence


class Builder:
    """The rows of one component under construction."""

    def __init__(self, component: str):
        self.component = component
        self.hidden = 0  # the width that leaves the component, for what reads from it
        self.layers = 0
        self.tensors: list[Tensor] = []
        self.attention_layers: list[AttentionLayer] = []
        self.feed_forward: list[FeedForwardLayer] = []

    @property
    def element_count(self) -> int:
        return sum(t.element_count for t in self.tensors)

    def place(
        self,
        tensor_class: str,
        role: str,
        operator: str,
        outputs: int,
        inputs: int | None = None,
        *,
        layers: int = 1,
        count: int = 1,
    ) -> None:
        """One kind of tensor; nothing where a size or a count is 0."""
        if min(outputs, layers, count, inputs or 0) < 0:
            raise ContradictoryConfig(f"the {self.component}'s sizes do not fit: {role} would be negative")
        if outputs and layers and count and inputs != 0:
            no_more_rows(self.tensors, f"the {self.component}")
            self.tensors.append(Tensor(self.component, tensor_class, role, operator, layers, count, outputs, inputs))


def assemble(fields: Fields, parts: Sequence[Builder], *, hidden: int, layers: int, **facts: Any) -> Anatomy:
    """The anatomy of a model made of these parts. Kinds of layers that occur twice get a number."""
    facts = {
        "vocab_size": None,
        "is_head_tied": False,
        "norm_kind": "layer",
        "architecture": architecture_of(fields),
        **facts,
    }
    anatomy = Anatomy(
        model_type=fields.text("model_type", "_class_name") or "",
        hidden_size=hidden,
        layer_count=layers,
        tensors=tuple(t for part in parts for t in part.tensors),
        attention=numbered([a for part in parts for a in part.attention_layers]),
        feed_forward=numbered([f for part in parts for f in part.feed_forward]),
        **facts,
    )
    return within_reason(fields, anatomy)


def add_parts(fields: Fields, text: Anatomy, parts: Sequence[Builder], **facts: Any) -> Anatomy:
    """A language model's anatomy with towers and projectors before it; layers and context stay the language model's."""
    anatomy = replace(
        text,
        model_type=fields.text("model_type") or "",
        architecture=architecture_of(fields),
        tensors=tuple(t for part in parts for t in part.tensors) + text.tensors,
        attention=numbered([*text.attention, *(a for part in parts for a in part.attention_layers)]),
        feed_forward=numbered([*text.feed_forward, *(f for part in parts for f in part.feed_forward)]),
        **facts,
    )
    return within_reason(fields, anatomy)


def within_reason(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The anatomy, unless a typo makes it larger than anything."""
    if anatomy.parameter_count > LARGEST_TOTAL:
        raise ContradictoryConfig(f"{fields.where} describes more than 10^15 parameters")
    if max(anatomy.stored_extra.values(), default=0) > LARGEST_TOTAL * 1000:
        raise ContradictoryConfig(f"{fields.where} describes stored tensors larger than any")
    if anatomy.hidden_size > LARGEST_SIZE or anatomy.layer_count > 4 * MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where} describes a model larger than any")
    for layer in anatomy.attention:
        if max(layer.elements_per_token, layer.state_elements, layer.conv_state_elements) > MOST_CACHED:
            raise ContradictoryConfig(f"{fields.where} describes a cache of more than 10^12 elements a layer")
    return anatomy


def merge_tensors(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors alike in all but the layers they occur in, as one row."""
    layers: dict[tuple, int] = {}
    for t in tensors:
        alike = (t.component, t.tensor_class, t.role, t.operator, t.per_layer_count, t.out_features, t.in_features)
        layers[alike] = layers.get(alike, 0) + t.layer_count
    return tuple(Tensor(*place, count, each, out, into) for (*place, each, out, into), count in layers.items())


def merge_kinds(groups: Iterable) -> tuple:
    """Groups of layers alike in all but their number, as one; kinds that repeat are numbered."""
    alike: dict[tuple, list] = {}
    for group in groups:
        key = type(group), *(value for name, value in vars(group).items() if name not in ("layer_count", "blocks"))
        alike.setdefault(key, []).append(group)
    return numbered(_joined(same) for same in alike.values())


def _joined(same: list) -> Any:
    """Of groups that are alike all layers, which are known where those of each are."""
    first, counted = same[0], {"layer_count": sum(group.layer_count for group in same)}
    if len(same) > 1 and hasattr(first, "blocks"):
        listed = [group.blocks for group in same]
        counted["blocks"] = None if None in listed else numbers(b for blocks in listed for b in blocks.split())
    return replace(first, **counted)


def numbers(blocks: Iterable[int | str]) -> str:
    """Layers as a row of AttentionLayer names them."""
    return " ".join(map(str, sorted(map(int, blocks))))


def numbered(rows: Iterable) -> tuple:
    """The rows with their kinds made unique: full, full-2, full-3."""
    seen: dict[str, int] = {}
    out = []
    for row in rows:
        seen[row.kind] = number = seen.get(row.kind, 0) + 1
        out.append(row if number == 1 else replace(row, kind=f"{row.kind}-{number}"))
    return tuple(out)
