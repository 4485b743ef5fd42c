"""Gemma 4 with what it sees and hears: towers with one matrix each, or small embedders instead of towers."""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, is_text_only, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers import audio_tower, vision_tower
from pipeline.anatomy.towers.part import Part


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
