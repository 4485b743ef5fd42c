"""Llama 3.2 Vision: some layers attend to the image instead of the text."""

from __future__ import annotations

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import is_text_only
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part


@family("mllama")
def read_mllama(fields: Fields) -> Anatomy:
    """Some layers attend to the image instead of the text: gated, with normed queries and keys, cached per image."""
    inner = nested(fields, "text_config").filled()
    hidden, layers = inner.count("hidden_size"), inner.repeats("num_hidden_layers")
    across = set(sizes(inner, "cross_attention_layers"))
    if any(i >= layers for i in across):
        raise ContradictoryConfig(f"{inner.where}.cross_attention_layers names layers beyond {layers}")
    crossing, heads, vocabulary = len(across), inner.count("num_attention_heads"), inner.count("vocab_size")
    shape = {"kv_heads": inner.count("num_key_value_heads"), "bias": False}
    text, joint = Part("text"), Part("projector", "projector")
    text.embedding("embedding", vocabulary + 8, hidden)  # eight more rows for the image tokens
    text.mixer(layers - crossing, hidden, heads, kind="full", mechanism="full", **shape)
    text.mixer(crossing, hidden, heads, kind="cross", mechanism="cross", qk_norm=True, **shape)
    text.norm(hidden // heads, layers=crossing, count=2, bias=False)
    text.vector(1, "gate", layers=crossing, count=2)
    text.mlp(layers, hidden, inner.count("intermediate_size"), gated=True, bias=False)
    text.norm(hidden, layers=layers, count=2, bias=False)
    text.norm(hidden, bias=False)
    text.linear("head", hidden, vocabulary, bias=False)  # never tied: the embedding has more rows
    parts = [text]
    if not is_text_only(fields):
        vision = nested(fields, "vision_config")
        joint.linear("projector", vision.size("vision_output_dim"), hidden)
        parts = [*vision_tower(vision, "mllama_vision_model"), joint, text]
    return assemble(
        fields,
        parts,
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary,
        norm_kind="rms",
        max_context_tokens=inner.count("max_position_embeddings", default=None),
    )
