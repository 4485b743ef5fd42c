"""Text encoders that depart from BERT's plan in their layers: ALBERT, ModernBERT, XLNet, CANINE, XLM, FNet, Longformer."""

from __future__ import annotations

from typing import Any

from pipeline.anatomy.class_defaults import of_class
from pipeline.anatomy.families import family
from pipeline.anatomy.families.encoders import BERT
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout
from pipeline.anatomy.rows import Anatomy, AttentionLayer, FeedForwardLayer
from pipeline.anatomy.towers.part import Part, architecture_of, assemble, label_count, layer_count, over


def _finish(fields: Fields, part: Part, hidden: int, layers: int, default_class: str, **facts: Any) -> Anatomy:
    return assemble(
        fields,
        [part],
        **{
            "hidden": hidden,
            "layers": layers,
            "architecture": architecture_of(fields) or default_class,
            "vocab_size": fields.count("vocab_size", default=None),
            "max_context_tokens": fields.count("max_position_embeddings", default=None),
            **facts,
        },
    )


def _labels(part: Part, fields: Fields, architecture: str, hidden: int) -> None:
    """A plain classification head: on every token, on spans, or on the pooled sequence."""
    if architecture.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("head", hidden, label_count(fields))
    elif architecture.endswith("ForMultipleChoice"):
        part.linear("head", hidden, 1)


@family("albert")
def read_albert(fields: Fields) -> Anatomy:
    """Layers share their weights in groups: `num_hidden_layers` passes over `num_hidden_groups` sets."""
    fields = over(fields, of_class("albert", {**BERT, "embedding_size": 128}))
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers = layer_count(fields, "num_hidden_layers")
    small, heads = fields.count("embedding_size"), fields.count("num_attention_heads")
    architecture = architecture_of(fields) or "AlbertModel"
    part = Part("text")
    part.embedding("embedding", fields.count("vocab_size"), small)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), small)
    part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), small)
    part.norm(small)
    part.linear("embedding_projection", small, hidden)
    sets = layer_count(fields, "num_hidden_groups", default=1) * layer_count(fields, "inner_group_num", default=1)
    part.block(sets, hidden, width, heads)
    part.attention = [
        AttentionLayer("text", "bidirectional", layers, "text", heads, heads, hidden // heads, hidden // heads)
    ]
    part.feed_forward = [FeedForwardLayer("text", layers, "text", width, is_gated=False)]
    predicts = architecture.endswith(("ForMaskedLM", "ForPreTraining"))
    tied = fields.flag("tie_word_embeddings", default=True)
    if not architecture.endswith(("ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("pooler", hidden, hidden)
    if predicts:
        part.linear("head_transform", hidden, small)
        part.norm(small)
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", small, 0 if tied else fields.count("vocab_size"))
    if architecture.endswith("ForPreTraining"):
        part.linear("head", hidden, label_count(fields))
    _labels(part, fields, architecture, hidden)
    vocabulary = fields.count("vocab_size")
    extra = {"position ids": fields.count("max_position_embeddings"), "vocabulary bias stored again": vocabulary}
    if architecture_of(fields) is None:
        extra["masked-language-model head"] = hidden * small + 3 * small + vocabulary
    return _finish(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        hidden_dropout=dropout(fields, "hidden_dropout_prob", default=0.0),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob", default=0.0),
        stored_extra=extra,
    )


@family("modernbert")
def read_modernbert(fields: Fields) -> Anatomy:
    """Fused gated feed-forward, no biases, attention over a window in two layers of three; the first layer has no norm."""
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    vocabulary = fields.count("vocab_size")
    norm_bias, bias = fields.flag("norm_bias"), fields.flag("attention_bias")
    architecture = architecture_of(fields) or "ModernBertForMaskedLM"
    kinds = fields.items("layer_types", length=layers)
    every = fields.count("global_attn_every_n_layers", default=3)
    wide = sum(k == "full_attention" for k in kinds) if kinds else -(-layers // every)
    part = Part("text")
    part.embedding("embedding", vocabulary, hidden)
    part.mixer(wide, hidden, heads, bias=bias, fused=True)
    part.mixer(layers - wide, hidden, heads, bias=bias, fused=True, window=fields.count("local_attention", default=128))
    part.mlp(layers, hidden, width, gated=True, fused=True, bias=fields.flag("mlp_bias"))
    # Two norms a layer but for the first attention's, one after the embedding and one after the last layer.
    part.norm(hidden, layers=layers, bias=norm_bias)
    part.norm(hidden, layers=max(layers - 1, 0), bias=norm_bias)
    part.norm(hidden, count=2, bias=norm_bias)
    predicts = architecture.endswith("ForMaskedLM")
    if "For" in architecture:
        part.linear("head_transform", hidden, hidden, bias=fields.flag("classifier_bias"))
        part.norm(hidden, bias=norm_bias)
    tied = fields.flag("tie_word_embeddings", default=True)
    if predicts:
        part.linear("head", hidden, 0 if tied else vocabulary, bias=False)
        part.vector(vocabulary if fields.flag("decoder_bias", default=True) else 0, "bias")
    _labels(part, fields, architecture, hidden)
    return _finish(fields, part, hidden, layers, architecture, is_head_tied=predicts and tied)


@family("xlnet")
def read_xlnet(fields: Fields) -> Anatomy:
    """Relative attention whose projections are bare parameters [hidden, heads, head_dim]; segments have no table."""
    hidden, width = fields.count("d_model"), fields.count("d_inner", default=4096)
    layers, heads = layer_count(fields, "n_layer"), fields.count("n_head")
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
    part.attention.append(AttentionLayer("text", "bidirectional", layers, "text", heads, heads, head_dim, head_dim))
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    predicts, tied = architecture.endswith("LMHeadModel"), fields.flag("tie_word_embeddings", default=True)
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
        _labels(part, fields, architecture, hidden)
    return _finish(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        hidden_dropout=dropout(fields, "dropout", default=0.1),
    )


@family("canine")
def read_canine(fields: Fields) -> Anatomy:
    """Characters hashed into small tables, one layer over characters, the encoder over molecules, one layer back."""
    fields = over(fields, {**BERT, "type_vocab_size": 16, "max_position_embeddings": 16384})
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    hashes = fields.count("num_hash_functions", default=8)
    architecture = architecture_of(fields) or "CanineModel"
    part = Part("text")
    buckets = fields.count("num_hash_buckets", default=16384)
    part.embedding("embedding", buckets, fields.divide(hidden, hashes, "hidden_size"), count=hashes)
    part.embedding("position_embedding", fields.count("num_hash_buckets", default=16384), hidden)
    part.embedding("segment_embedding", fields.count("type_vocab_size"), hidden)
    part.norm(hidden, count=3)
    part.block(layers + 2, hidden, width, heads)
    part.conv(hidden, hidden, fields.count("downsampling_rate", default=4))
    part.conv(hidden, 2 * hidden, fields.count("upsampling_kernel_size", default=4))
    part.linear("pooler", hidden, hidden)
    _labels(part, fields, architecture, hidden)
    return _finish(
        fields,
        part,
        hidden,
        layers,
        architecture,
        stored_extra={"position ids": fields.count("max_position_embeddings")},
    )


@family("xlm", "flaubert")
def read_xlm(fields: Fields) -> Anatomy:
    defaults = {"vocab_size": fields.raw("n_words", default=30145), "max_position_embeddings": 512}
    fields = over(fields, defaults)
    hidden, layers = fields.count("emb_dim"), layer_count(fields, "n_layers")
    architecture = architecture_of(fields) or ("XLMModel" if fields.text("model_type") == "xlm" else "FlaubertModel")
    part = Part("text")
    part.embedding("embedding", fields.count("vocab_size"), hidden)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), hidden)
    languages = fields.count("n_langs", default=1)
    if languages > 1 and fields.flag("use_lang_emb", default=True):
        part.embedding("segment_embedding", languages, hidden)
    part.block(layers, hidden, 4 * hidden, fields.count("n_heads"))
    part.norm(hidden)
    predicts = architecture.endswith("LMHeadModel")
    tied = fields.flag("tie_word_embeddings", default=True)
    if predicts:
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", hidden, 0 if tied else fields.count("vocab_size"), bias=False)
    _labels(part, fields, architecture, hidden)
    return _finish(fields, part, hidden, layers, architecture, is_head_tied=predicts and tied)


@family("fnet", "yoso", "longformer")
def read_mixing(fields: Fields) -> Anatomy:
    """BERT with its mixer replaced: Fourier transforms, sampled attention, windows with a second set of projections."""
    model_type = fields.text("model_type")
    fields = over(fields, of_class(fields.text("model_type"), BERT))
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    positions = fields.count("max_position_embeddings")
    class_name = {"fnet": "FNetModel", "yoso": "YosoModel", "longformer": "LongformerModel"}[model_type]
    architecture = architecture_of(fields) or class_name
    part = Part("text")
    part.embedding("embedding", fields.count("vocab_size"), hidden)
    part.embedding("position_embedding", positions + (2 if model_type == "yoso" else 0), hidden)
    part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), hidden)
    part.norm(hidden)
    if model_type == "fnet":
        part.linear("embedding_projection", hidden, hidden)
        part.mlp(layers, hidden, width)
        part.norm(hidden, layers=layers, count=2)
    else:
        part.block(layers, hidden, width, heads)
    if model_type == "longformer":
        part.linear("attention_global", hidden, hidden, layers=layers, count=3)
    pooled = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining")
    if model_type == "fnet" or (model_type == "longformer" and architecture.endswith(pooled)):
        part.linear("pooler", hidden, hidden)
    predicts = architecture.endswith(("ForMaskedLM", "ForPreTraining"))
    tied = fields.flag("tie_word_embeddings", default=True)
    if predicts or (architecture.endswith("ForSequenceClassification") and model_type != "fnet"):
        part.linear("head_transform", hidden, hidden)
    if model_type == "yoso" and architecture.endswith("ForMultipleChoice"):
        part.linear("pooler", hidden, hidden)
    if predicts:
        part.norm(hidden)
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", hidden, 0 if tied else fields.count("vocab_size"))
    if architecture.endswith(("ForNextSentencePrediction", "ForPreTraining")):
        part.linear("head", hidden, 2)
    _labels(part, fields, architecture, hidden)
    return _finish(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        stored_extra={"position ids": positions},
    )
