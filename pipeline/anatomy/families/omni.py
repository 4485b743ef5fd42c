"""Qwen3-Omni as a whole: the thinker, which sees, hears and writes; the talker, which says it in codes; what makes sound of them.

The talker reads every token of the conversation again and keeps keys and values of its own; its code predictor runs over the
codes of one frame at a time. Source: transformers 5.23.0, models/qwen3_omni_moe.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.codecs import halved, ratios
from pipeline.anatomy.families.plain import BIASED, read_plain
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.parts.experts import Sparse, read_sparse
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy, Tensor
from pipeline.anatomy.towers import audio_tower, vision_tower
from pipeline.anatomy.towers.part import Part

SPOKEN = "decoder"  # the component of what generates sound: it caches as the language model does
VOCODER = "vocoder"  # what makes sound of its codes: apart from what hears, since an engine may leave the whole half out that speaks
QK = replace(BIASED, qk_norm="head")
TALKER = Sparse(
    QK, experts=("num_local_experts", "num_experts", 128), chosen=("num_experts_per_tok", 8),
    width=("moe_intermediate_size", 384), shared_width=("shared_expert_intermediate_size",),
    shared_gate=True,
)  # fmt: skip


@family("qwen3_omni_moe")
def qwen3_omni_moe(fields: Fields) -> Anatomy:
    head = {"model_type": "qwen3_omni_moe_thinker", "architectures": None}
    inner = nested(fields, "thinker_config")
    thinker = read_thinker(inner.but(head))
    if not fields.flag("enable_audio_output"):
        leave_parts(fields.config)  # what speaks is not built
        return add_parts(fields, thinker, [])
    config = nested(fields, "talker_config", required=False)
    parts = [*talker(config, thinker), predictor(nested(config, "code_predictor_config", required=False))]
    return add_parts(fields, thinker, [*parts, wave(nested(fields, "code2wav_config", required=False))])


def spoken(anatomy: Anatomy, *, copies: int = 1, window: int | None = None) -> Part:
    """A language model over codes of sound as a part; `copies` of its embedding and of its head, one for each codebook."""
    part = Part(SPOKEN)

    def named(tensor: Tensor) -> Tensor:
        if tensor.role not in ("embedding", "head"):
            return replace(tensor, component=SPOKEN)
        return replace(tensor, component=SPOKEN, role=f"audio_{tensor.role}", per_layer_count=copies)

    part.tensors = [named(tensor) for tensor in anatomy.tensors]
    shape = {"mechanism": "sliding", "kind": "sliding", "window_tokens": window} if window else {}
    part.attention_layers = [replace(layer, component=SPOKEN, **shape) for layer in anatomy.attention]
    part.feed_forward = [replace(layer, component=SPOKEN) for layer in anatomy.feed_forward]
    return part


def talker(config: Fields, thinker: Anatomy) -> list[Part]:
    inner = nested(config, "text_config", required=False).filled()
    text = read_sparse(inner.but({"architectures": None, "tie_word_embeddings": False}), TALKER)
    projector, width = Part(SPOKEN, "projector"), inner.count("intermediate_size")
    heard = config.size("thinker_hidden_size")
    projector.linear("projector_up", heard, width, count=2)  # of words, and of what the thinker made of the rest
    projector.linear("projector_down", width, text.hidden_size, count=2)
    return [spoken(text), projector]


def predictor(inner: Fields) -> Part:
    """All codes of a frame but the first, one after the other: each has its own embedding and its own head."""
    inner = inner.filled()
    text = read_plain(inner.but({"architectures": None, "tie_word_embeddings": False}), QK)
    codes = inner.count("num_code_groups", default=32)
    return spoken(text, copies=codes - 1, window=codes)


def wave(fields: Fields) -> Part:
    """A small transformer over frames, then convolutions that raise the rate, each with half the channels of the last."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    part = Part(VOCODER, "audio-tower")
    part.embedding("audio_embedding", fields.count("codebook_size") * fields.count("num_quantizers"), hidden)
    part.mixer(
        layers,
        hidden,
        fields.count("num_attention_heads"),
        kv_heads=fields.count("num_key_value_heads"),
        head_dim=fields.count("head_dim", default=None),
        bias=fields.flag("attention_bias"),
        mechanism="sliding",
        window=fields.count("sliding_window"),
    )
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.vector(hidden, "scale", layers=layers, count=2)
    part.norm(hidden, bias=False)
    for factor in ratios(fields, "upsampling_ratios"):
        part.conv(hidden, hidden, factor)
        part.conv(hidden, 1, 7)
        part.norm(hidden)
        part.linear("ffn_up", hidden, 4 * hidden)
        part.linear("ffn_down", 4 * hidden, hidden)
        part.vector(hidden, "scale")
    width, rates = fields.count("decoder_dim"), ratios(fields, "upsample_rates")
    halved(fields, width, len(rates))
    part.conv(width, hidden, 7)
    for rate in rates:
        part.vector(width, "scale", count=2)
        part.conv(width // 2, width, 2 * rate)
        width //= 2
        part.vector(width, "scale", count=12)
        part.conv(width, width, 7, count=3)
        part.conv(width, width, 1, count=3)
    part.vector(width, "scale", count=2)
    part.conv(1, width, 7)
    return part


@family("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
def read_thinker(fields: Fields) -> Anatomy:
    """The half of an Omni model that sees, hears and writes; the talker is another model."""
    older = fields.text("model_type") == "qwen2_5_omni_thinker"
    stem = "qwen2_5_omni" if older else "qwen3_omni_moe"
    text = language_model(fields, Plan("", f"{stem}_text"))
    parts = []
    for name, read, kind in (
        ("vision_config", vision_tower, f"{stem}_vision_encoder"),
        ("audio_config", audio_tower, f"{stem}_audio_encoder"),
    ):
        inner = nested(fields, name)
        parts += read(inner.but({"model_type": kind}), kind)
    return add_parts(fields, text, parts)
