"""T5Gemma 2: Gemma 3's layers on both sides, an encoder that sees, and a decoder whose layers attend to the text and to the encoder at once.

The decoder projects both with the same matrices: a layer has one attention's weights and two caches.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.windows import last_of_period, looking_both_ways
from pipeline.anatomy.reading import architecture_of, dropout, has_head, label_count, nested
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig
from pipeline.anatomy.towers import projectors as p
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part

PERIOD = 6  # layers: the last of them reads the whole context


def side(name: str, fields: Fields) -> Part:
    """The layers of one side and the norm after them."""
    fields, part, is_decoder = fields.filled(), Part(name), name == "decoder"
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads = fields.count("num_attention_heads")
    fields.divide(hidden, heads, "hidden size")
    shape = {
        "kv_heads": fields.count("num_key_value_heads"),
        "head_dim": fields.count("head_dim"),
        "bias": fields.flag("attention_bias"),
        "qk_norm": True,
    }
    windows = last_of_period(PERIOD)(fields, layers)
    for window in sorted(set(windows), key=bool):
        count = windows.count(window)
        near, far = ("sliding", "full") if is_decoder else ("bidirectional", "bidirectional")
        kind, mechanism = (f"{name}-sliding", near) if window else (name, far)
        tokens = looking_both_ways(window, not is_decoder)
        part.mixer(count, hidden, heads, mechanism=mechanism, kind=kind, window=tokens, **shape)
    part.norm(shape["head_dim"], layers=layers, count=2, bias=False)
    if is_decoder and layers:
        narrow = shape["kv_heads"] * shape["head_dim"]
        sizes = (heads, shape["kv_heads"], shape["head_dim"], shape["head_dim"], 2 * narrow)
        part.attention_layers.append(AttentionLayer("cross", "cross", layers, name, *sizes, has_qk_norm=True))
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.feed_forward = [replace(f, activation=fields.text("hidden_activation")) for f in part.feed_forward]
    part.norm(hidden, layers=layers, count=4, bias=False)
    part.norm(hidden, bias=False)
    return part.finished(hidden, layers)[0]


@family("t5gemma2")
def read_t5gemma2(fields: Fields) -> Anatomy:
    source, target = nested(fields, "encoder"), nested(fields, "decoder")
    text, vision = nested(source, "text_config"), nested(source, "vision_config", required=False)
    encoder, decoder = side("encoder", text), side("decoder", target)
    hidden, vocabulary = decoder.hidden, target.filled().count("vocab_size")
    if (encoder.hidden, text.filled().count("vocab_size")) != (hidden, vocabulary):
        raise ContradictoryConfig(f"{fields.where}: encoder and decoder differ in width or vocabulary")
    tower = vision_tower(vision, "siglip_vision_model")
    name = architecture_of(fields) or "T5Gemma2ForConditionalGeneration"
    tied = fields.flag("tie_word_embeddings")
    for part in (encoder, decoder) if not tied else (encoder,):
        part.embedding("embedding", vocabulary, hidden)
        part.vector(hidden, "image_end")  # stands for the mark that ends a picture
    writes = name.endswith("ForConditionalGeneration")
    if writes and not tied:
        decoder.linear("head", hidden, vocabulary, bias=False)
    elif has_head(name) and not writes:
        decoder.linear("head", hidden, label_count(fields))
    return assemble(
        fields,
        [*tower, p.gemma3(fields, vision, tower, hidden), encoder, decoder],
        hidden=hidden,
        layers=encoder.layers + decoder.layers,
        architecture=name,
        vocab_size=vocabulary,
        is_head_tied=writes and tied,
        norm_kind="rms",
        max_context_tokens=target.count("max_position_embeddings", default=None),
        hidden_dropout=dropout(fields, "dropout_rate"),
        attention_dropout=dropout(fields, "attention_dropout"),
        stored_extra={
            "tied head stored again": vocabulary * hidden if writes and tied else 0,
            "embedding of the decoder stored again": (vocabulary + 1) * hidden if tied else 0,
        },
    )
