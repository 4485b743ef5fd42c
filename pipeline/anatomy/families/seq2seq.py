"""Encoder-decoders of text: T5's plan (relative positions, RMS norms, no biases) and BART's (learned or fixed positions).

The decoder caches two things: keys and values of the generated tokens (`full`), and, once per request, those of the
encoder's output (`cross`, whose elements_per_token count encoder tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.forecasters import CLASSES as FORECASTERS
from pipeline.anatomy.families.forecasters import read_forecaster
from pipeline.anatomy.fields import WIDTH_AND_DEPTH, Fields
from pipeline.anatomy.reading import architecture_of, dropout, label_count, nested
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part


@family("t5", "mt5", "umt5", "longt5")
def read_t5(fields: Fields) -> Anatomy:
    """transformers 5 ties the head of this family whatever the config says; checkpoints may hold a separate one."""
    model_type = fields.text("model_type")
    if architecture_of(fields) in FORECASTERS:
        return read_forecaster(fields, architecture_of(fields))
    if chronos := fields.inner("chronos_config"):  # how the bins of a time series are made: no tensor
        chronos.count("context_length")
    hidden, layers = fields.count("d_model"), fields.repeats("num_layers")
    decoder_layers = fields.repeats("num_decoder_layers", default=layers)
    heads, head_dim = fields.count("num_heads"), fields.size("d_kv")
    width, vocabulary = fields.count("d_ff"), fields.size("vocab_size")
    kind = fields.text("feed_forward_proj", default="gated-gelu" if model_type in ("mt5", "umt5") else "relu")
    gated = fields.flag("is_gated_act", default=kind.startswith("gated"))  # said by itself it goes before the name
    buckets = fields.size("relative_attention_num_buckets")
    encoder, decoder = Part("encoder"), Part("decoder")
    encoder.embedding("embedding", vocabulary, hidden)
    default = {"t5": "T5", "mt5": "MT5", "umt5": "UMT5", "longt5": "LongT5"}[model_type] + "ForConditionalGeneration"
    architecture = architecture_of(fields) or default
    stacks = [(encoder, layers)]
    if "EncoderModel" not in architecture and "ForTokenClassification" not in architecture:
        stacks.append((decoder, decoder_layers))
    for part, count in stacks:
        mechanism = "full" if part is decoder else "bidirectional"
        part.mixer(count, hidden, heads, head_dim=head_dim, bias=False, mechanism=mechanism, kind=part.component)
        part.embedding("position_embedding", buckets, heads, layers=count if model_type == "umt5" else min(count, 1))
        if part is decoder:
            part.mixer(count, hidden, heads, head_dim=head_dim, bias=False, mechanism="cross", kind="cross")
        part.mlp(count, hidden, width, gated=gated, bias=False)
        part.norm(hidden, layers=count, count=3 if part is decoder else 2, bias=False)
        part.norm(hidden, bias=False)
    if fields.text("encoder_attention_type") == "transient-global":
        encoder.embedding("position_embedding", buckets, heads)
        encoder.norm(hidden, layers=layers, bias=False)
    if architecture.endswith(("ForSequenceClassification", "ForTokenClassification")):
        if "Sequence" in architecture:
            encoder.linear("pooler", hidden, hidden)
        encoder.linear("head", hidden, label_count(fields))
    elif architecture.endswith("ForQuestionAnswering"):
        decoder.linear("head", hidden, label_count(fields))
    rate = dropout(fields, "dropout_rate")
    return assemble(
        fields,
        [encoder, decoder],
        hidden=hidden,
        layers=sum(count for _, count in stacks),
        architecture=architecture,
        vocab_size=vocabulary,
        is_head_tied="ForConditionalGeneration" in architecture,
        norm_kind="rms",
        max_context_tokens=fields.count("n_positions", "max_position_embeddings", default=None),
        has_flash_attention=False,  # a learned bias is added to the scores
        hidden_dropout=rate,
        attention_dropout=rate,
        stored_extra={
            "separate head in the checkpoint": vocabulary * hidden,
            "unused cross-attention bias": buckets * heads,
            "embedding stored for encoder and decoder": 2 * vocabulary * hidden,
        },
    )


@dataclass(frozen=True)
class Plan:
    """Where a family departs from BART."""

    prefix: str
    has_positions: bool = True  # a table of them; else they are computed
    offset: int = 0  # rows of the table before the first position
    embedding_norm: bool = True
    final_norm: bool = False
    ties_causal_head: bool = True


PLANS = {
    "bart": Plan("Bart", offset=2),
    "mbart": Plan("MBart", offset=2, final_norm=True),
    "plbart": Plan("PLBart", offset=2),
    "mvp": Plan("Mvp", offset=2),
    "led": Plan("LED"),
    "blenderbot": Plan("Blenderbot", embedding_norm=False, final_norm=True),
    "blenderbot-small": Plan("BlenderbotSmall"),
    "bigbird_pegasus": Plan("BigBirdPegasus", ties_causal_head=False),
    "marian": Plan("Marian", embedding_norm=False),
    "pegasus": Plan("Pegasus", embedding_norm=False, final_norm=True),
    "m2m_100": Plan("M2M100", has_positions=False, embedding_norm=False, final_norm=True),
}


@family(*PLANS)
def read_bart(fields: Fields) -> Anatomy:
    model_type = fields.text("model_type")
    plan = PLANS[model_type]
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, vocabulary = fields.count("d_model"), fields.count("vocab_size")
    depth = {part: fields.repeats(f"{part}_layers") for part in ("encoder", "decoder")}
    default = plan.prefix + ("MTModel" if model_type == "marian" else "ForConditionalGeneration")
    architecture = architecture_of(fields) or default
    parts = {"encoder": Part("encoder"), "decoder": Part("decoder")}
    if architecture.endswith("ForCausalLM"):
        del parts["encoder"]
    positions = fields.size("max_position_embeddings", otherwise=1024)
    shared = next(iter(parts.values()))
    shared.embedding("embedding", vocabulary, hidden)
    decoder_vocabulary = fields.count("decoder_vocab_size", default=vocabulary)
    if model_type == "marian" and not fields.flag("share_encoder_decoder_embeddings") and len(parts) == 2:
        parts["decoder"].embedding("embedding", decoder_vocabulary, hidden)
    for name, part in parts.items():
        layers, heads = depth[name], fields.count(f"{name}_attention_heads")
        width = fields.count(f"{name}_ffn_dim")
        if plan.has_positions:
            rows = fields.count(f"max_{name}_position_embeddings") if model_type == "led" else positions + plan.offset
            part.embedding("position_embedding", rows, hidden)
        bias = fields.flag("use_bias") if model_type == "bigbird_pegasus" else True
        mechanism = "full" if name == "decoder" else "bidirectional"
        part.block(layers, hidden, width, heads, mechanism=mechanism, kind=name, bias=bias)
        if name == "decoder":
            part.mixer(layers, hidden, heads, mechanism="cross", kind="cross", bias=bias)
            part.norm(hidden, layers=layers)
        elif model_type == "led":
            part.linear("attention_global", hidden, hidden, layers=layers, count=3)
        part.norm(hidden, count=plan.embedding_norm + plan.final_norm)
    if architecture.endswith("ForSequenceClassification"):
        parts["decoder"].linear("pooler", hidden, hidden)
        parts["decoder"].linear("head", hidden, label_count(fields, 3 if model_type == "bart" else 2))
    elif architecture.endswith("ForQuestionAnswering"):
        parts["decoder"].linear("head", hidden, 2)
    has_head = not architecture.endswith(("ForSequenceClassification", "ForQuestionAnswering")) and not (
        architecture.endswith("Model") and not architecture.endswith("MTModel")
    )
    tied = fields.flag("tie_word_embeddings")
    tied = tied and (plan.ties_causal_head or not architecture.endswith("ForCausalLM"))
    if len(parts) == 2 and not fields.flag("tie_word_embeddings"):  # the shared table and one for each side
        for part in parts.values():
            part.embedding("embedding", vocabulary, hidden)
    if has_head and not tied:
        parts["decoder"].linear("head", hidden, decoder_vocabulary, bias=False)
    return assemble(
        fields,
        list(parts.values()),
        hidden=hidden,
        layers=sum(depth[name] for name in parts),
        architecture=architecture,
        vocab_size=vocabulary,
        is_head_tied=has_head and tied,
        max_context_tokens=fields.count("max_decoder_position_embeddings", default=positions),
        hidden_dropout=dropout(fields, "dropout"),
        attention_dropout=dropout(fields, "attention_dropout"),
        stored_extra={
            "final logits bias": vocabulary,
            "version marks of encoder and decoder": 2,  # fairseq's, which the class ignores on loading
            "embedding stored again": vocabulary * hidden,
            "embedding stored for encoder and decoder": 2 * vocabulary * hidden,
        },
    )


@family("t5gemma")
def read_t5gemma(fields: Fields) -> Anatomy:
    """Gemma-2 layers on both sides; the decoder's gain a cross-attention with two norms of its own."""
    parts, layers_in_all = [], 0
    for name in ("encoder", "decoder"):
        inner = nested(fields, name).filled()
        part = Part(name)
        hidden, layers = inner.count("hidden_size"), inner.repeats("num_hidden_layers")
        heads, bias = inner.count("num_attention_heads"), inner.flag("attention_bias")
        shape = {"kv_heads": inner.count("num_key_value_heads"), "head_dim": inner.count("head_dim"), "bias": bias}
        part.embedding("embedding", inner.count("vocab_size"), hidden)
        kinds = inner.items("layer_types", length=layers)
        windows = sum(k == "sliding_attention" for k in kinds) if kinds else (layers + 1) // 2
        window = inner.count("sliding_window", default=4096)
        is_decoder = name == "decoder"
        near, far = ("sliding", "full") if is_decoder else ("bidirectional", "bidirectional")
        part.mixer(windows, hidden, heads, mechanism=near, kind=f"{name}-sliding", window=window, **shape)
        part.mixer(layers - windows, hidden, heads, mechanism=far, kind=name, **shape)
        part.mlp(layers, hidden, inner.count("intermediate_size"), gated=True, bias=False)
        part.norm(hidden, layers=layers, count=6 if is_decoder else 4, bias=False)
        part.norm(hidden, bias=False)
        if is_decoder:
            source = nested(fields, "encoder").filled().count("hidden_size")
            part.mixer(layers, hidden, heads, mechanism="cross", kind="cross", kv_inputs=source, **shape)
        parts.append(part)
        layers_in_all += layers
    tied = fields.flag("tie_word_embeddings")
    if not tied:
        parts[1].linear("head", hidden, inner.count("vocab_size"), bias=False)
    return assemble(
        fields,
        parts,
        hidden=hidden,
        layers=layers_in_all,
        architecture=architecture_of(fields) or "T5GemmaForConditionalGeneration",
        vocab_size=inner.count("vocab_size"),
        is_head_tied=tied,
        norm_kind="rms",
        max_context_tokens=inner.count("max_position_embeddings", default=8192),
    )
