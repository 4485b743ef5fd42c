"""Vision-encoder-decoders: a picture's encoder and a decoder that writes what stands in it, each with a config of its own (TrOCR).

The class composes any two models of the library. Described is what `ENCODERS` names, with TrOCR's decoder; others have a reason.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision import pooled
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout, nested
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part

ENCODERS = ("vit", "deit")  # both end in a dense layer over the class token, which the decoder does not read
OFFSET = 2  # rows of the table before the first position


@family("vision-encoder-decoder")
def read_lines(fields: Fields) -> Anatomy:
    source, target = nested(fields, "encoder"), nested(fields, "decoder")
    kinds = source.text("model_type", default="vit"), target.text("model_type", default="bert")
    if kinds[0] not in ENCODERS or kinds[1] != "trocr":
        told = " with a decoder ".join(f"'{shown(kind)}'" for kind in kinds)
        raise UnknownAnatomy(f"an encoder {told} is not described yet")
    (tower,) = vision_tower(source, kinds[0])
    tower.linear("pooler", tower.hidden, pooled(source, tower.hidden))
    hidden, layers = target.count("d_model", "hidden_size"), target.repeats("decoder_layers", "num_hidden_layers")
    heads, vocabulary = target.count("decoder_attention_heads", "num_attention_heads"), target.count("vocab_size")
    across = target.count("cross_attention_hidden_size", default=None)
    if across is not None and across != tower.hidden:
        raise ContradictoryConfig(
            f"{target.where} reads {across} elements of each patch, and the encoder writes others"
        )
    joint, decoder, rows = Part("projector", "projector"), Part("decoder"), target.count("max_position_embeddings")
    joint.linear("projector", tower.hidden, 0 if across or tower.hidden == hidden else hidden)
    decoder.embedding("embedding", vocabulary, hidden)
    learned = target.flag("use_learned_position_embeddings", default=True)
    decoder.embedding("position_embedding", rows + OFFSET if learned else 0, hidden)
    decoder.norm(hidden if target.flag("layernorm_embedding", default=True) else 0)
    decoder.block(layers, hidden, target.count("decoder_ffn_dim"), heads, mechanism="full", kind="decoder")
    decoder.mixer(layers, hidden, heads, mechanism="cross", kind="cross", kv_inputs=across)
    decoder.norm(hidden, layers=layers)
    named = target.text("activation_function", default="gelu")
    decoder.feed_forward = [replace(row, activation=named) for row in decoder.feed_forward]
    tied = target.flag("tie_word_embeddings", default=True)
    decoder.linear("head", hidden, 0 if tied else vocabulary, bias=False)
    return assemble(
        fields,
        [tower, joint, decoder],
        hidden=hidden,
        layers=tower.layers + layers,
        vocab_size=vocabulary,
        is_head_tied=tied,
        has_flash_attention=False,  # the decoder writes its scores out
        max_context_tokens=rows,
        hidden_dropout=dropout(target, "dropout", default=0.1),
        attention_dropout=dropout(target, "attention_dropout", default=0.0),
        stored_extra={"head stored again": vocabulary * hidden if tied else 0},
    )
