"""How a component's layers run, from its family's rows: what the rules of `images` and `inputs` begin with."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.rows import Anatomy, AttentionLayer, FeedForwardLayer, Tower, UnknownAnatomy


@dataclass(frozen=True)
class Shape:
    """A component's layers, as its family's reader described them."""

    hidden: int
    width: int
    is_gated: bool
    heads: int
    head_dim: int


def shape_of(anatomy: Anatomy, component: str) -> Shape:
    """Of the component's most common layer."""
    attention = [a for a in anatomy.attention if a.component == component and a.head_count]
    blocks = [f for f in anatomy.feed_forward if f.component == component and f.width]
    if not attention or not blocks:
        raise UnknownAnatomy(f"no {component} layers")
    mixer: AttentionLayer = max(attention, key=lambda a: a.layer_count)
    block: FeedForwardLayer = max(blocks, key=lambda f: (f.layer_count, f.width))
    hidden = max(
        (
            t.in_features or 0
            for t in anatomy.tensors
            if t.component == component and t.role in ("ffn_up", "ffn_gate_up")
        ),
        default=0,
    )
    return Shape(hidden, block.width, block.is_gated, mixer.head_count, mixer.head_dim)


def plain(anatomy: Anatomy, component: str, activation: str, **facts) -> Tower:
    """A tower of ViT's plan: in a layer its input, the residual, the norm's output, and the embeddings before the first layer."""
    shape = shape_of(anatomy, component)
    facts = {"reader": "language-model", "grid": "fixed", "hidden_tensors": 4, "rotary_tensors": 0} | facts
    return Tower(
        component,
        hidden_size=shape.hidden,
        width=shape.width,
        is_gated=shape.is_gated,
        activation=activation,
        **facts,
    )
