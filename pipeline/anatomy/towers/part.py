"""Building blocks of everything that is not a plain text decoder: encoders, vision and audio towers, projectors.

A `Part` collects the tensors, attention groups and feed-forward groups of one component. In a tower every tensor has
the tower's class; in a text part (`tensor_class=None`) the class follows from the role. Counts are elements.
Shapes were read from the modelling code of transformers 5.23 and diffusers 0.42; the tests hold them to its counts.
"""

from __future__ import annotations

from math import prod

from pipeline.anatomy.builder import Builder
from pipeline.anatomy.rows import AttentionLayer, ContradictoryConfig, FeedForwardLayer

_CLASS_OF_ROLE = {
    "attention": "attention",
    "ffn": "feed-forward",
    "norm": "norm",
    "bias": "norm",
    "head": "head",
    "embedding": "embedding",
    "router": "router",
}


class Part(Builder):
    """One component under construction. Sizes are (inputs, outputs) of a matrix, [outputs, inputs] in memory."""

    def __init__(self, component: str, tensor_class: str | None = None):
        super().__init__(component)
        self.tensor_class = tensor_class

    def add(
        self, role: str, operator: str, outputs: int, inputs: int | None = None, *, layers: int = 1, count: int = 1
    ):
        kind = self.tensor_class or _CLASS_OF_ROLE.get(role.split("_")[-1]) or _CLASS_OF_ROLE.get(role.split("_")[0])
        self.place(kind or "other", role, operator, outputs, inputs, layers=layers, count=count)

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
            self.attention_layers.append(row)

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

    def finished(self, hidden: int, layers: int) -> list[Part]:
        """As a tower of one part, with the width that leaves it and its layers."""
        self.hidden, self.layers = hidden, layers
        return [self]

    def block(self, layers: int, hidden: int, width: int, heads: int, **mixer):
        """The common encoder layer: attention, up and down with biases, two LayerNorms."""
        self.mixer(layers, hidden, heads, **mixer)
        self.mlp(layers, hidden, width)
        self.norm(hidden, layers=layers, count=2)


def divided(whole: int, by: int, what: str) -> int:
    if by < 1 or whole % by:
        raise ContradictoryConfig(f"{what} {whole} does not divide by {by}")
    return whole // by
