"""Building blocks of everything that is not a plain text decoder: encoders, vision and audio towers, projectors.

A `Part` collects the tensors, attention groups and feed-forward groups of one component. In a tower every tensor has
the tower's class; in a text part (`tensor_class=None`) the class follows from the role. Counts are elements.
Shapes were read from the modelling code of transformers 5.23 and diffusers 0.42; the tests hold them to its counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from pipeline.anatomy.fields import Fields, no_more_rows
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig, FeedForwardLayer, Tensor, UnknownAnatomy
from pipeline.base.bounds import LARGEST_SIZE, LARGEST_TOTAL, MOST_REPEATS

_CLASS_OF_ROLE = {
    "attention": "attention",
    "ffn": "feed-forward",
    "norm": "norm",
    "bias": "norm",
    "head": "head",
    "embedding": "embedding",
    "router": "router",
}


class Part:
    """One component under construction. Sizes are (inputs, outputs) of a matrix, [outputs, inputs] in memory."""

    def __init__(self, component: str, tensor_class: str | None = None):
        self.component = component
        self.tensor_class = tensor_class
        self.hidden = 0  # the width that leaves the part, for what projects from it
        self.layers = 0
        self.tensors: list[Tensor] = []
        self.attention: list[AttentionLayer] = []
        self.feed_forward: list[FeedForwardLayer] = []

    @property
    def element_count(self) -> int:
        return sum(t.element_count for t in self.tensors)

    def add(
        self, role: str, operator: str, outputs: int, inputs: int | None = None, *, layers: int = 1, count: int = 1
    ):
        """One kind of tensor; nothing where a size or a count is 0."""
        if min(outputs, layers, count, inputs or 0) < 0:
            raise ContradictoryConfig(f"the {self.component}'s sizes do not fit: {role} would be negative")
        if outputs and layers and count and inputs != 0:
            kind = (
                self.tensor_class or _CLASS_OF_ROLE.get(role.split("_")[-1]) or _CLASS_OF_ROLE.get(role.split("_")[0])
            )
            no_more_rows(self.tensors, f"the {self.component}")
            self.tensors.append(Tensor(self.component, kind or "other", role, operator, layers, count, outputs, inputs))

    def linear(
        self, role: str, inputs: int, outputs: int, *, bias: bool = True, layers: int = 1, count: int = 1, **more
    ):
        self.add(role, more.get("operator", "linear"), outputs, inputs, layers=layers, count=count)
        if bias:
            self.add("bias", "vector", outputs, layers=layers, count=count)

    def norm(self, width: int, *, layers: int = 1, count: int = 1, bias: bool = True):
        """A LayerNorm (weight and bias), or an RMSNorm with `bias=False`."""
        self.add("norm", "vector", width, layers=layers, count=count * (2 if bias else 1))

    def embedding(self, role: str, rows: int, width: int, *, layers: int = 1, count: int = 1):
        self.add(role, "embedding", rows, width, layers=layers, count=count)

    def conv(self, outputs: int, inputs: int, *kernel: int, bias: bool = True, layers: int = 1, count: int = 1):
        """A convolution; `inputs` are the channels of one group."""
        self.add("conv", "conv", outputs * inputs * prod(kernel), layers=layers, count=count)
        if bias:
            self.add("bias", "vector", outputs, layers=layers, count=count)

    def vector(self, size: int, role: str = "scale", *, layers: int = 1, count: int = 1):
        self.add(role, "vector", size, layers=layers, count=count)

    def parameter(self, size: int, role: str = "parameter", *, layers: int = 1, count: int = 1):
        self.add(role, "parameter", size, layers=layers, count=count)

    def mixer(
        self,
        layers: int,
        hidden: int,
        heads: int,
        *,
        kind: str | None = None,
        mechanism: str = "bidirectional",
        kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        key_bias: bool | None = None,
        output_bias: bool | None = None,
        fused: bool = False,
        kv_inputs: int | None = None,
        outputs: int | None = None,
        qk_norm: bool = False,
        window: int | None = None,
    ):
        """Attention of `layers` layers: projections of q, k, v (or one fused) and o, and the row of what they cache."""
        if head_dim is None:
            head_dim = divided(hidden, heads, f"{self.component} width")
        kv_heads = heads if kv_heads is None else kv_heads
        wide, narrow = heads * head_dim, kv_heads * head_dim
        if fused:
            self.linear("attention_qkv", hidden, wide + 2 * narrow, bias=bias, layers=layers)
        else:
            self.linear("attention_q", hidden, wide, bias=bias, layers=layers)
            self.linear(
                "attention_k", kv_inputs or hidden, narrow, bias=bias if key_bias is None else key_bias, layers=layers
            )
            self.linear("attention_v", kv_inputs or hidden, narrow, bias=bias, layers=layers)
        self.linear(
            "attention_o", wide, outputs or hidden, bias=bias if output_bias is None else output_bias, layers=layers
        )
        if layers:
            cached = 2 * narrow if mechanism in ("full", "sliding", "cross") else 0
            shape = (heads, kv_heads, head_dim, head_dim, cached, window)
            row = AttentionLayer(kind or self.component, mechanism, layers, self.component, *shape, has_qk_norm=qk_norm)
            self.attention.append(row)

    def mlp(
        self,
        layers: int,
        hidden: int,
        width: int,
        *,
        gated: bool = False,
        fused: bool = False,
        bias: bool = True,
        kind=None,
    ):
        """Feed-forward: up and down, with `gated` also a gate (`fused`: gate and up in one matrix)."""
        if gated and fused:
            self.linear("ffn_gate_up", hidden, 2 * width, bias=bias, layers=layers)
        else:
            if gated:
                self.linear("ffn_gate", hidden, width, bias=bias, layers=layers)
            self.linear("ffn_up", hidden, width, bias=bias, layers=layers)
        self.linear("ffn_down", width, hidden, bias=bias, layers=layers)
        if layers:
            self.feed_forward.append(FeedForwardLayer(kind or self.component, layers, self.component, width, gated))

    def block(self, layers: int, hidden: int, width: int, heads: int, **mixer):
        """The common encoder layer: attention, up and down with biases, two LayerNorms."""
        self.mixer(layers, hidden, heads, **mixer)
        self.mlp(layers, hidden, width)
        self.norm(hidden, layers=layers, count=2)


Towers = dict[str, Callable[[Fields], list[Part]]]  # readers by the model_type of the tower's own config


def registered(towers: Towers) -> Callable:
    """A decorator that enters a function, which reads a tower's config into its parts, under these types."""

    def tower(*model_types: str) -> Callable:
        def register(read: Callable[[Fields], list[Part]]) -> Callable[[Fields], list[Part]]:
            towers.update(dict.fromkeys(model_types, read))
            return read

        return register

    return tower


def divided(whole: int, by: int, what: str) -> int:
    if by < 1 or whole % by:
        raise ContradictoryConfig(f"{what} {whole} does not divide by {by}")
    return whole // by


def layer_count(fields: Fields, *names: str, **default: Any) -> int:
    """A number of layers: as `Fields.count`, and no more than any model could have."""
    return fields.repeats(*names, **default)


def sizes(fields: Fields, name: str, default: tuple[int, ...] | None = None, *, least: int = 0) -> list[int]:
    """A list of sizes, one per stage."""
    values = fields.items(name)
    if values is None:
        if default is None:
            raise UnknownAnatomy(f"{fields.where} has no {name}")
        return list(default)
    if len(values) > 1000:
        raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries")
    return [Fields({name: v}, fields.where).count(name, least=least) for v in values]


def ratio(fields: Fields, name: str, default: float) -> float:
    """How many times one width is another: no model has ten thousand."""
    value = fields.number(name, default=default)
    if value > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where}.{name} is too large for a ratio of widths")
    return value


def pair(fields: Fields, name: str, default: int | None = None) -> tuple[int, int]:
    """A square or rectangular size: one number or two."""
    if isinstance(fields.raw(name), list):
        values = sizes(fields, name, least=1)
        if len(values) != 2:
            raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries for two sides")
        return values[0], values[1]
    value = fields.count(name) if default is None else fields.count(name, default=default)
    return value, value


def over(fields: Fields, defaults: Mapping[str, Any]) -> Fields:
    """These fields, and a class's structural defaults where one is missing. A null without such a default stays, for what the class makes of it."""
    said = {k: v for k, v in fields.config.items() if v is not None or defaults.get(k) is None}
    return Fields({**defaults, **said}, fields.where)


def nested(fields: Fields, *names: str, required: bool = True) -> Fields:
    """A nested config. transformers writes only what differs from the class's defaults, so fields may be missing in it."""
    inner = fields.inner(*names)
    if inner is None:
        if required:
            raise UnknownAnatomy(f"{fields.where} has no {names[0]}")
        return Fields({}, f"{fields.where}.{names[0]}")
    return inner


def architecture_of(fields: Fields) -> str | None:
    """The class the config names first, or None."""
    names = fields.raw("architectures")
    if isinstance(names, str) and names:
        return names
    names = fields.items("architectures")
    if not names:
        return None
    if not isinstance(names[0], str):
        raise ContradictoryConfig(f"{fields.where}.architectures names no class")
    return names[0]


def has_head(architecture: str) -> bool:
    """Whether a class is for a task: ViTForImageClassification is, MaskFormerModel is not."""
    return re.search("For[A-Z]", architecture) is not None


def label_count(fields: Fields, default: int = 2) -> int:
    """Outputs of a classification head."""
    labels = fields.raw("id2label")
    if isinstance(labels, Mapping) and labels:
        return len(labels)
    return fields.count("num_labels", default=default)


def assemble(fields: Fields, parts: list[Part], *, hidden: int, layers: int, **facts: Any) -> Anatomy:
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
        attention=numbered([a for part in parts for a in part.attention]),
        feed_forward=numbered([f for part in parts for f in part.feed_forward]),
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
    return anatomy


def add_parts(fields: Fields, text: Anatomy, parts: list[Part], **facts: Any) -> Anatomy:
    """A language model's anatomy with towers and projectors before it; layers and context stay the language model's."""
    anatomy = replace(
        text,
        model_type=fields.text("model_type") or "",
        architecture=architecture_of(fields),
        tensors=tuple(t for part in parts for t in part.tensors) + text.tensors,
        attention=numbered([*text.attention, *(a for part in parts for a in part.attention)]),
        feed_forward=numbered([*text.feed_forward, *(f for part in parts for f in part.feed_forward)]),
        **facts,
    )
    return within_reason(fields, anatomy)


def numbered(rows: list) -> tuple:
    """The rows with their kinds made unique: vision, vision-2, vision-3."""
    seen: dict[str, int] = {}
    out = []
    for row in rows:
        seen[row.kind] = seen.get(row.kind, 0) + 1
        out.append(row if seen[row.kind] == 1 else replace(row, kind=f"{row.kind}-{seen[row.kind]}"))
    return tuple(out)
