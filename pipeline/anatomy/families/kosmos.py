"""Kosmos-2.5: an encoder over patches of a page, learned queries that look at them, a decoder with a norm in its feed-forward.

Source: transformers 5.23.0, models/kosmos2_5. The positions of the decoder are computed.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part, architecture_of, assemble, layer_count, nested, over

TEXT = {"vocab_size": 108481, "embed_dim": 1536, "layers": 24, "ffn_dim": 6144, "attention_heads": 16}
VISION = {
    "hidden_size": 1536,
    "patch_embed_hidden_size": 768,
    "intermediate_size": 3968,
    "head_dim": 64,
    "num_hidden_layers": 18,
    "num_attention_heads": 24,
    "max_num_patches": 4096,
}


@family("kosmos-2.5")
def kosmos_2_5(fields: Fields) -> Anatomy:
    inner = over(nested(fields, "text_config"), TEXT)
    vision = tower(over(nested(fields, "vision_config"), VISION))
    hidden, layers = inner.count("embed_dim", "hidden_size"), layer_count(inner, "layers", "num_hidden_layers")
    heads, width, vocabulary = inner.count("attention_heads"), inner.count("ffn_dim"), inner.count("vocab_size")
    projector, text = Part("projector", "projector"), Part("text")
    projector.linear("projector", vision.hidden, hidden)
    projector.parameter(fields.count("latent_query_num", default=2048) * hidden, "queries")
    projector.mixer(1, hidden, heads)
    text.embedding("embedding", vocabulary, hidden)
    text.embedding("segment_embedding", 2, hidden)
    text.block(layers, hidden, width, heads, kind="full", mechanism="full")
    text.norm(width, layers=layers)
    text.norm(hidden)
    tied = inner.flag("tie_word_embeddings", default=True)
    has_head = not (architecture_of(fields) or "").endswith("Model")
    text.linear("head", hidden, 0 if tied or not has_head else vocabulary, bias=False)
    return assemble(
        fields,
        [vision, projector, text],
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary,
        is_head_tied=tied and has_head,
        max_context_tokens=inner.count("max_position_embeddings", default=4096),
        hidden_dropout=dropout(inner, "dropout", default=0.1),
        attention_dropout=dropout(inner, "attention_dropout", default=0.0),
        stored_extra={"tied head stored again": vocabulary * hidden} if tied else {},
    )


def tower(fields: Fields) -> Part:
    part, hidden = Part("vision", "vision-tower"), fields.count("hidden_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    part.linear("patch_embedding", fields.count("patch_embed_hidden_size"), hidden)
    part.embedding("position_embedding", fields.count("max_num_patches"), hidden, count=2)
    part.mixer(layers, hidden, heads, head_dim=fields.count("head_dim"), bias=False)
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(hidden, bias=False)
    part.hidden, part.layers = hidden, layers
    return part
