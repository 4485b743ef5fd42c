"""Forecasters of time series that call themselves T5: Chronos-Bolt and Chronos-2 (package chronos-forecasting 2.3.2, held to its counts).

A token is a patch of the series; numbers go in and quantiles come out through blocks of two layers with a residual one beside them. The plain
Chronos (T5ForConditionalGeneration over bins) is a T5 as it is.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout, nested
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part

CLASSES = ("ChronosBoltModelForForecasting", "Chronos2Model")


def read_forecaster(fields: Fields, architecture: str) -> Anatomy:
    told = nested(fields, "chronos_config")
    hidden, width, layers = fields.count("d_model"), fields.count("d_ff"), fields.repeats("num_layers")
    kind = fields.text("feed_forward_proj", default="relu")
    gated = fields.flag("is_gated_act", default=kind.startswith("gated"))
    patch, special = told.count("input_patch_size"), 1 + told.flag("use_reg_token", default=False)
    quantiles = told.items("quantiles")
    if not quantiles:
        raise UnknownAnatomy(f"{told.where} has no quantiles")
    tokens = told.count("context_length") // told.count("input_patch_stride") + told.flag(
        "use_reg_token", default=False
    )
    facts = {"hidden": hidden, "architecture": architecture, "norm_kind": "rms", "has_flash_attention": False}
    heads = {"heads": fields.count("num_heads"), "head_dim": fields.size("d_kv"), "bias": False}
    encoder = Part("encoder")
    encoder.embedding("embedding", special, hidden)
    if architecture == "Chronos2Model":
        if gated:
            raise ContradictoryConfig(f"{fields.where}: {architecture} has no gated feed-forward")
        into, out = 3 * patch, len(quantiles) * told.count("output_patch_size")
        for what in ("time", "group"):
            encoder.mixer(layers, hidden, kind=what, **heads)
        encoder.mlp(layers, hidden, width, bias=False)
        encoder.norm(hidden, layers=layers, count=3, bias=False)
        encoder.norm(hidden, bias=False)
        parts, all_layers = [encoder], layers
    else:
        into, out = 2 * patch, len(quantiles) * told.count("prediction_length")
        decoder = Part("decoder")
        decoder_layers = fields.repeats("num_decoder_layers", default=layers)
        buckets = fields.size("relative_attention_num_buckets")
        for part, count in ((encoder, layers), (decoder, decoder_layers)):
            mechanism = "full" if part is decoder else "bidirectional"
            part.mixer(count, hidden, mechanism=mechanism, kind=part.component, **heads)
            part.embedding("position_embedding", buckets, heads["heads"], layers=min(count, 1))
            if part is decoder:
                part.mixer(count, hidden, mechanism="cross", kind="cross", **heads)
            part.mlp(count, hidden, width, gated=gated, bias=False)
            part.norm(hidden, layers=count, count=3 if part is decoder else 2, bias=False)
            part.norm(hidden, bias=False)
        parts, all_layers = [encoder, decoder], layers + decoder_layers
    for role, inputs, outputs in (("patch_embedding", into, hidden), ("head", hidden, out)):
        part = parts[0] if role == "patch_embedding" else parts[-1]
        part.linear(f"{role}_up" if role == "head" else role, inputs, width)
        part.linear(role, width, outputs)
        part.linear(f"{role}_residual" if role == "head" else role, inputs, outputs)
    rate = dropout(fields, "dropout_rate")
    anatomy = assemble(
        fields,
        parts,
        layers=all_layers,
        vocab_size=out,
        max_context_tokens=tokens,
        hidden_dropout=rate,
        attention_dropout=rate,
        stored_extra={"unused cross-attention bias": fields.size("relative_attention_num_buckets") * heads["heads"]},
        **facts,
    )
    # What a forecast takes was not counted: Chronos-2 attends among the series of a group, whose masks grow with the
    # square of the batch, and the engines that run a T5 run neither.
    return replace(anatomy, layer_count=None, attention=())
