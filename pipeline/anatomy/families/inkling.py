"""Inkling: attention with learned relative positions and short convolutions, shared experts that the router weighs too.

Source: transformers 5.23.0, models/inkling. Every layer caches keys and values, of a window in most, and beside them the last
inputs of four convolutions, which the class keeps in fp32. Pixels are folded into depth by a few matrices; sound is embedded.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.reading import Heads, dropout, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, architecture_of, nested

GLOBAL, LOCAL = "hybrid", "hybrid_sliding"
LARGEST_PATCH = 4096  # pixels of a side, or frames
MOST_STEPS = 64  # of a tower


@family("inkling_mm_model")
def inkling(fields: Fields) -> Anatomy:
    inner, predicted = nested(fields, "text_config"), nested(fields, "mtp_config", required=False)
    name = architecture_of(fields) or ""
    inner = Fields({**inner.config, "architectures": [name] if name.endswith("Model") else None}, inner.where)
    text = language_model(inner, predicted)
    if name.endswith("ForCausalLM"):
        return add_parts(fields, text, [])
    vision = nested(fields, "vision_config", required=False)
    audio = nested(fields, "audio_config", required=False)
    return add_parts(fields, text, [pixels(vision, text.hidden_size), sound(audio, text.hidden_size)])


@family("inkling_text")
def inkling_text(fields: Fields) -> Anatomy:
    return language_model(fields, Fields({}, fields.where))


def language_model(fields: Fields, predicted: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    decoder.norm(1)  # of the embeddings
    types = layer_types(fields, layers, known=(GLOBAL, LOCAL)) or by_ids(fields, layers, "local_layer_ids")
    mix(decoder, fields, types)
    kinds = layer_types(fields, layers, "mlp_layer_types", known=("dense", "sparse"))
    first = fields.count("dense_mlp_idx", default=0, least=0)
    dense = kinds.count("dense") if kinds is not None else min(first, layers)
    # where a config has a width for dense layers, its other one is the experts'
    width = fields.count("dense_intermediate_size", default=None) or fields.count("intermediate_size", default=24576)
    feed_forward(decoder, dense, width)
    if dense < layers:
        experts(decoder, fields, layers - dense)
    decoder.norm(layers, each=2)
    decoder.norm(1)
    decoder.head(tied=False)
    store_prediction_layers(decoder, fields, predicted, width)
    return decoder.build(has_flash_attention=False, attention_dropout=dropout(fields, "attention_dropout"))


def by_ids(fields: Fields, layers: int, name: str) -> list[str]:
    """Which layers see a window only: those named, else all but every sixth."""
    listed = fields.items(name)
    if listed is not None and not all(type(i) is int and i >= 0 for i in listed):
        raise ContradictoryConfig(f"{fields.where}.{name} does not name layers of {layers}")
    local = {i for i in range(layers) if (i + 1) % 6} if listed is None else set(listed)
    return [LOCAL if i in local else GLOBAL for i in range(layers)]


def mix(decoder: Decoder, fields: Fields, types: list[str]) -> None:
    hidden, window = decoder.hidden, fields.count("sliding_window_size", "sliding_window", default=512)
    kernel = fields.count("sconv_kernel_size", "conv_kernel_size", default=4)
    depth = fields.count("d_rel", default=16)
    for kind, prefix, kv_default, reach in (
        (GLOBAL, "", 8, fields.count("rel_extent", default=1024)),
        (LOCAL, "swa_", 16, window),
    ):
        layers = types.count(kind)
        count = fields.count(f"{prefix}num_attention_heads", default=64)
        kv_count = fields.count(f"{prefix}num_key_value_heads", default=kv_default)
        if layers and (kv_count > count or count % kv_count):
            raise ContradictoryConfig(f"{fields.where}: {count} heads cannot share {kv_count} key-value heads")
        dim = fields.count(f"{prefix}head_dim", default=128)
        channels = 2 * kv_count * dim + 2 * hidden
        local = kind == LOCAL
        decoder.attention(
            layers,
            Heads(count, kv_count, dim, dim),
            window=window if local else None,
            qk_norm="head",
            state=channels * kernel,
        )
        decoder.linear("attention", "relative_states", layers, count * depth, hidden)
        decoder.parameter("attention", "relative_positions", layers, depth * reach)
        decoder.add("recurrent", "convolution", "conv", layers, channels * kernel)


def feed_forward(decoder: Decoder, layers: int, width: int) -> None:
    if layers:
        decoder.mlp(layers, width)
        decoder.vector("feed_forward_scale", layers, 1, tensor_class="feed-forward")


def experts(decoder: Decoder, fields: Fields, layers: int) -> None:
    named = "moe_intermediate_size" if fields.raw("dense_intermediate_size") is None else "intermediate_size"
    width = fields.count(named, default=3072)
    shared = fields.count("n_shared_experts", default=2, least=0)
    count = fields.count("n_routed_experts", "num_local_experts", default=256)
    chosen = fields.count("num_experts_per_tok", default=6)
    decoder.moe(layers, count, chosen, width, correction=True)
    decoder.feed_forward[-1] = replace(decoder.feed_forward[-1], shared_width=shared * width)
    decoder.parameter("router", "router", layers, shared * decoder.hidden)
    decoder.vector("router_scale", layers, 1, tensor_class="router")
    for role, out, into in (
        ("shared_gate", width, decoder.hidden),
        ("shared_up", width, decoder.hidden),
        ("shared_down", decoder.hidden, width),
    ):
        decoder.add("shared-expert", role, "expert", layers, out, into, shared)


def store_prediction_layers(decoder: Decoder, fields: Fields, predicted: Fields, width: int) -> None:
    """Each a dense layer, a matrix [h, 2h] of two streams and a norm of either."""
    count = predicted.repeats("num_nextn_predict_layers", default=fields.repeats("num_mtp_layers", default=0))
    if count == 0:
        return
    if count > decoder.layers:
        raise ContradictoryConfig(f"{fields.where} predicts with {count} layers, more than it has")
    named = predicted if predicted.raw("local_layer_ids") is not None else None
    types = by_ids(named, count, "local_layer_ids") if named else [GLOBAL] * count
    ahead = Decoder(fields, layers=count)
    mix(ahead, fields, types)
    feed_forward(ahead, count, width)
    ahead.norm(count, each=4)
    ahead.linear("other", "mtp_projection", count, decoder.hidden, 2 * decoder.hidden)
    decoder.predicting = ahead.tensors
    decoder.store("multi-token prediction layers", sum(t.element_count for t in ahead.tensors))


# ---- towers


def pixels(fields: Fields, text: int) -> Part:
    """Matrices from one scale of patches to the next, a norm after each but the last, and one at the end."""
    part, steps = Part("vision", "vision-tower"), fields.repeats("num_hidden_layers", "n_layers", default=24, least=1)
    scales = plan(fields, steps)
    for place, (small, large) in enumerate(pairwise(scales), 1):
        folded = math.prod(b // a for a, b in zip(small[:3], large[:3], strict=True))
        out = text if place == steps else large[3]
        part.linear("patch_fold", small[3] * folded, out, bias=False)
        if place < steps:
            part.norm(out, bias=False)
    part.norm(text, bias=False)
    part.hidden = text
    return part


def plan(fields: Fields, steps: int) -> list[tuple[int, int, int, int]]:
    """Scales (frames, height, width, channels) whose sizes grow most evenly, from a pixel to a patch."""
    side, frames = fields.count("patch_size", default=40), fields.count("temporal_patch_size", default=2)
    channels = fields.count("num_channels", default=3)
    if max(side, frames) > LARGEST_PATCH or steps > MOST_STEPS:
        raise UnknownAnatomy(f"{fields.where} describes patches larger than any tower folds")
    scales = [(1, 1, 1, channels)]
    for edge in growing(side):
        scales.append((1, edge, edge, -(-(edge**2 * channels) // 64) * 64))
    for depth in growing(frames):
        scales.append((depth, side, side, side**2 * channels * depth * 64))
    least, most = 0.0, math.log(side**2 * frames * channels)
    ideal = [least + (most - least) * i / steps for i in range(steps + 1)]
    sizes = [math.log(t * h * w) for t, h, w, _ in scales]

    def miss(i: int, j: int) -> float:
        return abs(ideal[i] - sizes[j])

    if steps >= len(scales):
        chosen = [min(range(len(scales)), key=lambda j, i=i: miss(i, j)) for i in range(steps + 1)]
    else:
        ways = combinations(range(len(scales)), steps + 1)
        chosen = list(min(ways, key=lambda way: sum(miss(i, j) for i, j in enumerate(way))))
    return [scales[0], *(scales[j] for j in chosen[1:-1]), scales[-1]]


def growing(number: int) -> list[int]:
    """Products of the prime factors, the largest first: 40 → 5, 10, 20, 40."""
    factors, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return [math.prod(factors[::-1][: i + 1]) for i in range(len(factors))]


def sound(fields: Fields, text: int) -> Part:
    part = Part("audio", "audio-tower")
    rows = fields.count("n_mel_bins", "num_codebooks", default=80) * fields.count(
        "mel_vocab_size", "codebook_size", default=256
    )
    part.embedding("audio_embedding", rows, text)
    part.norm(text, bias=False)
    part.hidden = text
    return part
