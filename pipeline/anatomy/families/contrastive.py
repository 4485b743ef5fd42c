"""Pairs of encoders that meet in one space: CLIP, SigLIP and their kin, for images, sounds and text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pipeline.anatomy.towers.vision_beside_vit  # noqa: F401 (registers its towers)
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import (
    Part,
    architecture_of,
    assemble,
    has_head,
    label_count,
    layer_count,
    nested,
    over,
)
from pipeline.anatomy.towers.vision import vision_tower

CLIP_TEXT = {
    "vocab_size": 49408,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
}
SIGLIP_TEXT = {
    **CLIP_TEXT,
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_attention_heads": 12,
}
SIGLIP_TEXT["max_position_embeddings"] = 64
BERT_TEXT = {**SIGLIP_TEXT, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2}
ALT_TEXT = {
    "vocab_size": 250002,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}


@dataclass(frozen=True)
class Plan:
    tower: str = "clip_vision_model"
    text: dict[str, Any] = field(default_factory=lambda: CLIP_TEXT)
    vision: dict[str, Any] = field(default_factory=dict)
    style: str = "clip"  # how the text encoder is built
    scalars: int = 1  # learned temperatures and biases
    projects: bool = True


PLANS = {
    "clip": Plan(),
    "metaclip_2": Plan(),
    "clipseg": Plan(),
    "owlvit": Plan(text={**CLIP_TEXT, "max_position_embeddings": 16}, vision={"image_size": 768}),
    "owlv2": Plan(text={**CLIP_TEXT, "max_position_embeddings": 16}, vision={"image_size": 768, "patch_size": 16}),
    "siglip": Plan("siglip_vision_model", SIGLIP_TEXT, style="siglip", scalars=2, projects=False),
    "siglip2": Plan("siglip2_vision_model", SIGLIP_TEXT, style="siglip", scalars=2, projects=False),
    "chinese_clip": Plan(text=BERT_TEXT, style="bert"),
    "altclip": Plan(text=ALT_TEXT, style="bert"),
    "aimv2": Plan(
        "aimv2_vision_model",
        {**CLIP_TEXT, "hidden_size": 768, "num_attention_heads": 6},
        style="aimv2",
    ),
}


def text_encoder(fields: Fields, style: str) -> Part:
    part, hidden = Part("text"), fields.count("hidden_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    width = fields.count("intermediate_size")
    part.embedding("embedding", fields.count("vocab_size"), hidden)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), hidden)
    if style == "bert":
        part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), hidden)
    if style == "aimv2":
        part.mixer(layers, hidden, heads, bias=fields.flag("qkv_bias"))
        part.mlp(layers, hidden, width, gated=True, bias=fields.flag("mlp_bias"))
        part.norm(hidden, layers=layers, count=2, bias=False)
        part.norm(hidden, bias=False)
    else:
        part.block(layers, hidden, width, heads)
        part.norm(hidden)  # of the embeddings in BERT's plan, of the outputs in CLIP's
    if style == "siglip":
        part.linear("pooler", hidden, fields.count("projection_size", default=hidden))
    part.hidden, part.layers = hidden, layers
    return part


@family(*PLANS)
def read_pair(fields: Fields) -> Anatomy:
    kind, name = fields.text("model_type"), architecture_of(fields) or ""
    plan = PLANS[kind]
    if (
        fields.raw("text_config", "text_config_dict") is None
        and fields.raw("vision_config", "vision_config_dict") is None
    ):
        raise UnknownAnatomy(f"{fields.where} has no text_config")
    vision_fields = over(nested(fields, "vision_config", "vision_config_dict", required=False), plan.vision)
    text_fields = over(nested(fields, "text_config", "text_config_dict", required=False), plan.text)
    if name.endswith("ForImageClassification"):
        return _classifier(fields, vision_fields, plan)
    if has_head(name):
        raise UnknownAnatomy(f"class '{name[:60]}' is not described yet")
    vision = vision_tower(Fields({**vision_fields.config, "model_type": plan.tower}, vision_fields.where), plan.tower)
    text, joint = text_encoder(text_fields, plan.style), Part("projector", "projector")
    projection = fields.count("projection_dim", default=768 if kind == "altclip" else 512)
    source = text.hidden
    if kind == "altclip":  # the text encoder itself narrows before the shared space
        source = text_fields.count("project_dim", default=768)
        text.linear("pooler", text.hidden, source)
        text.norm(text.hidden)
    if plan.projects:
        joint.linear("projector", vision[0].hidden, projection, bias=False)
        joint.linear("projector", source, projection, bias=False)
    joint.vector(1, "logit_scale", count=plan.scalars)
    return assemble(
        fields,
        [text, *vision, joint],
        hidden=text.hidden,
        layers=text.layers,
        vocab_size=text_fields.count("vocab_size"),
        max_context_tokens=text_fields.count("max_position_embeddings"),
        stored_extra={"position ids": text_fields.count("max_position_embeddings")},
    )


def _classifier(fields: Fields, vision: Fields, plan: Plan) -> Anatomy:
    """Only the vision tower, and labels."""
    inner = {**vision.config, "model_type": plan.tower}
    parts = [*vision_tower(Fields(inner, vision.where), plan.tower), Part("vision")]
    parts[-1].linear("head", parts[0].hidden, label_count(fields))
    return assemble(fields, parts, hidden=parts[0].hidden, layers=parts[0].layers)


@family("clip_text_model", "siglip_text_model", "siglip2_text_model")
def read_text_encoder(fields: Fields) -> Anatomy:
    """The text half alone, as diffusion pipelines use it."""
    style = fields.text("model_type").split("_")[0].rstrip("2")
    fields.count("hidden_size")
    fields = over(fields, CLIP_TEXT if style == "clip" else SIGLIP_TEXT)
    part = text_encoder(fields, style)
    if (architecture_of(fields) or "").endswith("WithProjection"):
        part.linear("projector", part.hidden, fields.count("projection_dim", default=512), bias=False)
    return assemble(
        fields,
        [part],
        hidden=part.hidden,
        layers=part.layers,
        vocab_size=fields.count("vocab_size"),
        max_context_tokens=fields.count("max_position_embeddings"),
        stored_extra={"position ids": fields.count("max_position_embeddings")},
    )


@family("clap")
def read_clap(fields: Fields) -> Anatomy:
    """RoBERTa and a Swin over spectrograms, each with two matrices into the shared space."""
    if architecture_of(fields) not in (None, "ClapModel"):
        raise UnknownAnatomy(f"class '{architecture_of(fields)[:60]}' is not described yet")
    defaults = {**BERT_TEXT, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
    text_fields, audio = over(nested(fields, "text_config"), defaults), nested(fields, "audio_config")
    text = text_encoder(text_fields, "bert")
    text.linear("pooler", text.hidden, text.hidden)
    if audio.flag("enable_fusion"):
        raise UnknownAnatomy(f"{audio.where}: fusion is not described yet")
    swin = {
        "model_type": "swin",
        "embed_dim": audio.count("patch_embeds_hidden_size", default=96),
        "num_channels": audio.count("patch_embed_input_channels", default=1),
        "depths": audio.items("depths"),
        "num_heads": audio.items("num_attention_heads") or [4, 8, 16, 32],
        "window_size": audio.count("window_size", default=8),
        "patch_size": audio.count("patch_size", default=4),
        "mlp_ratio": audio.raw("mlp_ratio"),
        "qkv_bias": audio.raw("qkv_bias"),
    }
    said = {name: value for name, value in swin.items() if value is not None}
    tower = vision_tower(Fields(said, audio.where), "swin")[0]
    tower.norm(audio.count("num_mel_bins", default=64))
    joint, projection = Part("projector", "projector"), fields.count("projection_dim", default=512)
    for width in (text.hidden, tower.hidden):
        joint.linear("projector_up", width, projection)
        joint.linear("projector_down", projection, projection)
    joint.vector(1, "logit_scale", count=2)
    return assemble(
        fields,
        [text, as_audio(tower), joint],
        hidden=text.hidden,
        layers=text.layers,
        vocab_size=text_fields.count("vocab_size"),
        max_context_tokens=text_fields.count("max_position_embeddings"),
    )


def as_audio(part: Part) -> Part:
    """A vision tower that looks at spectrograms."""
    part.tensors = [replace(t, component="audio", tensor_class="audio-tower") for t in part.tensors]
    part.attention = [replace(a, component="audio", kind="audio") for a in part.attention]
    part.feed_forward = [replace(f, component="audio", kind="audio") for f in part.feed_forward]
    return part
