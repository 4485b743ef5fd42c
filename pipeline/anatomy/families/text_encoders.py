"""Text encoders of plans of their own: ModernBERT, XLNet, CANINE, XLM."""

from __future__ import annotations

from typing import Any

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import WIDTH_AND_DEPTH, Fields
from pipeline.anatomy.reading import architecture_of, dropout, label_count
from pipeline.anatomy.rows import Anatomy, AttentionLayer
from pipeline.anatomy.towers.part import Part


def finished(fields: Fields, part: Part, hidden: int, layers: int, default_class: str, **facts: Any) -> Anatomy:
    return assemble(
        fields,
        [part],
        **{
            "hidden": hidden,
            "layers": layers,
            "architecture": architecture_of(fields) or default_class,
            "vocab_size": fields.known("vocab_size"),
            "max_context_tokens": fields.known("max_position_embeddings"),
            **facts,
        },
    )


def labelled(part: Part, fields: Fields, architecture: str, hidden: int) -> None:
    """A plain classification head: on every token, on spans, or on the pooled sequence."""
    if architecture.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("head", hidden, label_count(fields))
    elif architecture.endswith("ForMultipleChoice"):
        part.linear("head", hidden, 1)


@family("modernbert")
def read_modernbert(fields: Fields) -> Anatomy:
    """Fused gated feed-forward, no biases, attention over a window in two layers of three; the first layer has no norm."""
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, heads = fields.repeats("num_hidden_layers"), fields.count("num_attention_heads")
    vocabulary = fields.count("vocab_size")
    norm_bias, bias = fields.flag("norm_bias"), fields.flag("attention_bias")
    architecture = architecture_of(fields) or "ModernBertForMaskedLM"
    kinds = fields.items("layer_types", length=layers)
    every = fields.count("global_attn_every_n_layers", default=3)
    wide = sum(k == "full_attention" for k in kinds) if kinds else -(-layers // every)
    part = Part("text")
    part.embedding("embedding", vocabulary, hidden)
    part.mixer(wide, hidden, heads, bias=bias, fused=True)
    part.mixer(layers - wide, hidden, heads, bias=bias, fused=True, window=fields.size("local_attention"))
    part.mlp(layers, hidden, width, gated=True, fused=True, bias=fields.flag("mlp_bias"))
    # Two norms a layer but for the first attention's, one after the embedding and one after the last layer.
    part.norm(hidden, layers=layers, bias=norm_bias)
    part.norm(hidden, layers=max(layers - 1, 0), bias=norm_bias)
    part.norm(hidden, count=2, bias=norm_bias)
    predicts = architecture.endswith("ForMaskedLM")
    if "For" in architecture:
        part.linear("head_transform", hidden, hidden, bias=fields.flag("classifier_bias"))
        part.norm(hidden, bias=norm_bias)
    tied = fields.flag("tie_word_embeddings")
    if predicts:
        part.linear("head", hidden, 0 if tied else vocabulary, bias=False)
        part.vector(vocabulary if fields.flag("decoder_bias") else 0, "bias")
    labelled(part, fields, architecture, hidden)
    return finished(fields, part, hidden, layers, architecture, is_head_tied=predicts and tied)


@family("xlnet")
def read_xlnet(fields: Fields) -> Anatomy:
    """Relative attention whose projections are bare parameters [hidden, heads, head_dim]; segments have no table."""
    hidden, width = fields.count("d_model"), fields.size("d_inner")
    layers, heads = fields.repeats("n_layer"), fields.count("n_head")
    head_dim = fields.divide(hidden, heads, "d_model")
    vocabulary = fields.count("vocab_size")
    architecture = architecture_of(fields) or "XLNetLMHeadModel"
    part = Part("text")
    part.embedding("embedding", vocabulary, hidden)
    part.vector(hidden, "mask_embedding")
    for role, count in (
        ("attention_q", 1),
        ("attention_k", 1),
        ("attention_v", 1),
        ("attention_o", 1),
        ("attention_position", 1),
    ):
        part.add(role, "parameter", hidden, hidden, layers=layers, count=count)
    part.add("attention_bias", "parameter", heads * head_dim, layers=layers, count=5)
    part.attention_layers.append(
        AttentionLayer("text", "bidirectional", layers, "text", heads, heads, head_dim, head_dim)
    )
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    predicts, tied = architecture.endswith("LMHeadModel"), fields.flag("tie_word_embeddings")
    if predicts:
        part.vector(vocabulary, "bias")
        part.linear("head", hidden, 0 if tied else vocabulary, bias=False)
    if architecture.endswith(("ForSequenceClassification", "ForMultipleChoice")):
        part.linear("pooler", hidden, hidden)
    if architecture.endswith("ForQuestionAnswering"):  # the end and the answer's kind are judged given the start
        part.linear("pooler", 2 * hidden, hidden, count=2)
        part.norm(hidden)
        part.linear("head", hidden, 1, count=2)
        part.linear("head", hidden, 1, bias=False)
    else:
        labelled(part, fields, architecture, hidden)
    return finished(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        hidden_dropout=dropout(fields, "dropout"),
    )


@family("canine")
def read_canine(fields: Fields) -> Anatomy:
    """Characters hashed into small tables, one layer over characters, the encoder over molecules, one layer back."""
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, heads = fields.repeats("num_hidden_layers"), fields.count("num_attention_heads")
    hashes = fields.size("num_hash_functions")
    architecture = architecture_of(fields) or "CanineModel"
    part = Part("text")
    buckets = fields.size("num_hash_buckets")
    part.embedding("embedding", buckets, fields.divide(hidden, hashes, "hidden_size"), count=hashes)
    part.embedding("position_embedding", fields.size("num_hash_buckets"), hidden)
    part.embedding("segment_embedding", fields.count("type_vocab_size"), hidden)
    part.norm(hidden, count=3)
    part.block(layers + 2, hidden, width, heads)
    part.conv(hidden, hidden, fields.size("downsampling_rate"))
    part.conv(hidden, 2 * hidden, fields.size("upsampling_kernel_size"))
    part.linear("pooler", hidden, hidden)
    labelled(part, fields, architecture, hidden)
    return finished(
        fields,
        part,
        hidden,
        layers,
        architecture,
        vocab_size=fields.count(
            "vocab_size", default=30522
        ),  # BERT's, although characters are hashed and there is none
        stored_extra={"position ids": fields.count("max_position_embeddings")},
    )


@family("xlm", "flaubert")
def read_xlm(fields: Fields) -> Anatomy:
    fields = fields.filled((*WIDTH_AND_DEPTH, "n_heads"))
    vocabulary = fields.count("vocab_size", "n_words")
    hidden, layers = fields.count("emb_dim"), fields.repeats("n_layers")
    architecture = architecture_of(fields) or ("XLMModel" if fields.text("model_type") == "xlm" else "FlaubertModel")
    part = Part("text")
    part.embedding("embedding", vocabulary, hidden)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), hidden)
    languages = fields.size("n_langs")
    if languages > 1 and fields.flag("use_lang_emb", default=True):
        part.embedding("segment_embedding", languages, hidden)
    part.block(layers, hidden, 4 * hidden, fields.count("n_heads"))
    part.norm(hidden)
    predicts = architecture.endswith("LMHeadModel")
    tied = fields.flag("tie_word_embeddings")
    if predicts:
        part.vector(vocabulary, "bias")
        part.linear("head", hidden, 0 if tied else vocabulary, bias=False)
    labelled(part, fields, architecture, hidden)
    return finished(fields, part, hidden, layers, architecture, vocab_size=vocabulary, is_head_tied=predicts and tied)
