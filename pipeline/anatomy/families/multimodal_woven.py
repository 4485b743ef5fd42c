"""Multimodal models whose parts meet in ways of their own: Gemma 4, Llama 3.2 Vision, audio language models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pipeline.anatomy.towers.vision_of_language_models  # noqa: F401 (registers its towers)
from pipeline.anatomy.families import family
from pipeline.anatomy.families.multimodal import Plan, is_text_only, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers.audio import audio_tower
from pipeline.anatomy.towers.part import Part, add_parts, assemble, layer_count, nested, over, sizes
from pipeline.anatomy.towers.vision import vision_tower


@family("gemma4")
def read_gemma4(fields: Fields) -> Anatomy:
    """Towers are there only where their config is; each has one matrix into the language model."""
    text = language_model(fields, Plan("gemma4_vision", "gemma4_text", ties=True))
    if is_text_only(fields):
        return add_parts(fields, text, [])
    parts, extra = [], dict(text.stored_extra)
    for name, read, default in (
        ("vision_config", vision_tower, "gemma4_vision"),
        ("audio_config", audio_tower, "gemma4_audio"),
    ):
        inner = fields.inner(name)
        if inner is None:
            continue
        tower = read(inner, default)
        projector = Part("projector", "projector")
        projector.linear("projector", tower[0].hidden, text.hidden_size, bias=False)
        parts += [*tower, projector]
        if inner.flag("standardize"):
            extra["shift and scale of image features"] = 2 * tower[0].hidden
        if inner.flag("use_clipped_linears", default=name == "audio_config"):  # four bounds of each matrix in a layer
            bounds = 4 * tower[0].layers * (7 if name == "vision_config" else 10)
            extra["bounds of clipped matrices"] = extra.get("bounds of clipped matrices", 0) + bounds
    return add_parts(fields, text, parts, stored_extra=extra)


@family("gemma4_unified")
def read_gemma4_unified(fields: Fields) -> Anatomy:
    """No towers: patches and sound frames enter the language model through small embedders."""
    text = language_model(fields, Plan("", "gemma4_unified_text", ties=True))
    if is_text_only(fields):
        return add_parts(fields, text, [])
    vision, audio = fields.inner("vision_config"), fields.inner("audio_config")
    images, sounds = Part("vision", "vision-tower"), Part("projector", "projector")
    if vision is not None:
        pooled = vision.count("patch_size", default=16) * vision.count("pooling_kernel_size", default=3)
        width, patch = vision.count("mm_embed_dim", default=3840), 3 * pooled**2
        images.parameter(vision.count("mm_posemb_size", default=1120) * 2 * width, "position_embedding")
        images.norm(patch)
        images.linear("patch_embedding", patch, width)
        images.norm(width, count=2)
        sounds.linear("projector", vision.count("output_proj_dims", default=width), text.hidden_size, bias=False)
    if audio is not None:
        sounds.linear("projector", audio.count("audio_embed_dim", default=640), text.hidden_size, bias=False)
    return add_parts(fields, text, [images, sounds])


MLLAMA = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}


@family("mllama")
def read_mllama(fields: Fields) -> Anatomy:
    """Some layers attend to the image instead of the text: gated, with normed queries and keys, cached per image."""
    inner = over(nested(fields, "text_config"), MLLAMA)
    hidden, layers = inner.count("hidden_size"), layer_count(inner, "num_hidden_layers")
    across = set(sizes(inner, "cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38)))
    if any(i >= layers for i in across):
        raise ContradictoryConfig(f"{inner.where}.cross_attention_layers names layers beyond {layers}")
    crossing, heads, vocabulary = len(across), inner.count("num_attention_heads"), inner.count("vocab_size")
    shape = {"kv_heads": inner.count("num_key_value_heads"), "bias": False}
    text, joint = Part("text"), Part("projector", "projector")
    text.embedding("embedding", vocabulary + 8, hidden)  # eight more rows for the image tokens
    text.mixer(layers - crossing, hidden, heads, kind="full", mechanism="full", **shape)
    text.mixer(crossing, hidden, heads, kind="cross", mechanism="cross", qk_norm=True, **shape)
    text.norm(hidden // heads, layers=crossing, count=2, bias=False)
    text.vector(1, "gate", layers=crossing, count=2)
    text.mlp(layers, hidden, inner.count("intermediate_size"), gated=True, bias=False)
    text.norm(hidden, layers=layers, count=2, bias=False)
    text.norm(hidden, bias=False)
    text.linear("head", hidden, vocabulary, bias=False)  # never tied: the embedding has more rows
    parts = [text]
    if not is_text_only(fields):
        vision = nested(fields, "vision_config")
        joint.linear("projector", vision.count("vision_output_dim", default=7680), hidden)
        parts = [*vision_tower(vision, "mllama_vision_model"), joint, text]
    return assemble(
        fields,
        parts,
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary,
        norm_kind="rms",
        max_context_tokens=inner.count("max_position_embeddings", default=None),
    )


@dataclass(frozen=True)
class Listener:
    """An audio language model: its tower, its language model, and a projector of one or two matrices."""

    tower: str
    text: str
    stacks: int = 1  # frames of the tower that are joined
    matrices: int = 1
    bias: bool = True
    norm: bool = False
    ties: bool = False
    never_ties: bool = False  # whatever the config says


LISTENERS = {
    "qwen2_audio": Listener("qwen2_audio_encoder", "qwen2", never_ties=True),
    "audioflamingo3": Listener("audioflamingo3_encoder", "qwen2", matrices=2, never_ties=True),
    "musicflamingo": Listener("audioflamingo3_encoder", "qwen2", matrices=2, never_ties=True),
    "voxtral": Listener("voxtral_encoder", "llama", stacks=4, matrices=2, bias=False, never_ties=True),
    "voxtral_realtime": Listener(
        "voxtral_realtime_encoder", "voxtral_realtime_text", stacks=4, matrices=2, bias=False, ties=True
    ),
    "moss_transcribe_diarize": Listener(
        "moss_transcribe_diarize_audio", "qwen3", stacks=4, matrices=2, norm=True, ties=True
    ),
}


@family(*LISTENERS)
def read_listener(fields: Fields) -> Anatomy:
    plan = LISTENERS[fields.text("model_type")]
    own = Fields({**fields.config, "tie_word_embeddings": False}, fields.where) if plan.never_ties else fields
    text = language_model(own, replace(Plan("", plan.text), ties=plan.ties))
    tower = audio_tower(nested(fields, "audio_config"), plan.tower)
    projector, width = Part("projector", "projector"), text.hidden_size
    bias = fields.flag("projector_bias", default=plan.bias)
    projector.linear("projector_up", tower[0].hidden * plan.stacks, width, bias=bias)
    if plan.matrices == 2:
        projector.linear("projector_down", width, width, bias=bias)
    projector.norm(width if plan.norm else 0)
    parts = [*tower, projector]
    if plan.text == "voxtral_realtime_text":  # a small network per layer turns the delay into a norm's scale
        adaptive, narrow = Part("text"), 32
        adaptive.linear("adaptive_norm", width, narrow, bias=False, layers=text.layer_count)
        adaptive.linear("adaptive_norm", narrow, width, bias=False, layers=text.layer_count)
        parts.append(adaptive)
    return add_parts(fields, text, parts)


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
        parts += read(Fields({**inner.config, "model_type": kind}, inner.where), kind)
    return add_parts(fields, text, parts)
