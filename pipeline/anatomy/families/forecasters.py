"""Forecasters of time series, held to the counts of their own code: Chronos-Bolt and Chronos-2, which call themselves T5, and Kronos.

Of Chronos a token is a patch of the series; numbers go in and quantiles come out through blocks of two layers with a residual one beside
them. The plain Chronos (T5ForConditionalGeneration over bins) is a T5 as it is. Of Kronos a token is a candle of a chart in two codes, which its
tokenizer, a model of its own, makes of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout, nested
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part

CLASSES = ("ChronosBoltModelForForecasting", "Chronos2Model")
# rows for minutes, hours, days of the week and of the month, months, counted from 0 or from 1
CALENDAR = 60 + 24 + 7 + 32 + 13
OF_CODES = 4  # heads of the layer that asks the coarse code for the fine one
ROTATIONS = "frequencies of rotations"
MOST_BITS = 24  # of a code, whose rows are two to this power


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
    # What a forecast takes is counted whole (tables/facts/forward_pass.csv): Chronos-2 attends among the series of a batch,
    # whose masks grow with the square of it, and the engines that run a T5 run neither.
    return replace(anatomy, layer_count=None, attention=())


@family("kronos")
def read_kronos(fields: Fields) -> Anatomy:
    """The forecaster, or the tokenizer of the same project: their configs name neither a type nor a class."""
    hidden, width, heads = fields.count("d_model"), fields.count("ff_dim"), fields.count("n_heads")
    coarse, fine = fields.count("s1_bits"), fields.count("s2_bits")
    if max(coarse, fine) > MOST_BITS:
        raise ContradictoryConfig(f"{fields.where} has a code of more than {MOST_BITS} bits")
    facts = {"hidden": hidden, "norm_kind": "rms", "has_flash_attention": False}
    if fields.raw("n_enc_layers") is not None:
        part = Part("encoder")
        # (the first layer of each half is left out by its own code)
        layers = [fields.repeats(name, least=1) - 1 for name in ("n_enc_layers", "n_dec_layers")]
        inputs, codes = fields.count("d_in"), coarse + fine
        sides = ((inputs, hidden), (hidden, inputs), (hidden, codes), (coarse, hidden), (codes, hidden))
        for into, out in sides:
            part.linear("patch_embedding", into, out)
        _candles(part, sum(layers), hidden, width, heads)
        extra = {
            ROTATIONS: sum(layers) * (hidden // heads // 2),
            "place values of a code": codes + fields.count("group_size"),
        }
        facts |= {"layers": sum(layers), "vocab_size": None, "stored_extra": extra}
        return _uncounted(fields, part, "KronosTokenizer", **facts)
    part, layers = Part("decoder"), fields.repeats("n_layers")
    for bits in (coarse, fine):
        part.embedding("embedding", 2**bits, hidden)
        part.linear("head", hidden, 2**bits)
    part.linear("embedding_projection", 2 * hidden, hidden)
    part.embedding("position_embedding", CALENDAR, hidden)
    _candles(part, layers, hidden, width, heads)
    part.norm(hidden, bias=False)
    part.mixer(1, hidden, OF_CODES, kind="codes")
    part.norm(hidden, bias=False)
    facts |= {"stored_extra": {ROTATIONS: layers * (hidden // heads // 2) + hidden // OF_CODES // 2}}
    return _uncounted(fields, part, "Kronos", layers=layers, vocab_size=2**coarse, **facts)


def _candles(part: Part, layers: int, hidden: int, width: int, heads: int) -> None:
    part.mixer(layers, hidden, heads, mechanism="full")
    part.mlp(layers, hidden, width, gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)


def _uncounted(fields: Fields, part: Part, architecture: str, **facts: Any) -> Anatomy:
    """Nothing is cached from one step to the next, and no engine of ours runs it: a forward pass is counted whole (forward_pass.csv)."""
    return replace(assemble(fields, [part], architecture=architecture, **facts), layer_count=None, attention=())
