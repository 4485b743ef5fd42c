"""Vision models that stand alone: a tower, and on top of it nothing, a pooler, or a classifier, as the class says."""

from __future__ import annotations

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, has_head, label_count, nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers import types_that_see, vision_tower
from pipeline.anatomy.towers.part import Part

# Bare classes that end in a dense layer over the class token.
POOLED = ("ViTModel", "DeiTModel", "VivitModel")
# What a stand-alone config must at least say; nested ones may leave everything to the class.
SIZES = ("hidden_size", "embed_dim", "hidden_sizes", "depths")


@family(
    *(name for name in types_that_see() if name not in ("llava_clip", "phi3_clip", "idefics_vision", "fuyu_patches"))
)
def read_vision(fields: Fields) -> Anatomy:
    if fields.raw(*SIZES) is None:
        raise UnknownAnatomy(f"{fields.where} has no hidden_size")
    kind, architecture = fields.text("model_type"), architecture_of(fields)
    parts = vision_tower(fields)
    tower = parts[0]
    name = architecture or ""
    if name == "CLIPVisionModelWithProjection":
        parts.append(Part("projector", "projector"))
        parts[-1].linear("projector", tower.hidden, fields.count("projection_dim", default=512), bias=False)
    if name in POOLED:
        tower.linear("pooler", tower.hidden, pooled(fields, tower.hidden))
    if name.endswith("ForImageClassification"):
        width = tower.hidden * (2 if kind.startswith("dinov2") else 1)
        parts.append(Part("vision"))
        parts[-1].linear("head", width, label_count(fields))
    elif has_head(name):
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    return assemble(
        fields,
        parts,
        hidden=tower.hidden,
        layers=tower.layers,
        norm_kind="rms" if kind in ("pixtral", "gemma4_vision", "qwen2_5_vl_vision", "aimv2_vision_model") else "layer",
        stored_extra={
            "pooler": tower.hidden * (tower.hidden + 1),
            "classifier of ImageNet's 1000 classes": 1000 * (tower.hidden + 1),
        },
    )


def pooled(fields: Fields, hidden: int) -> int:
    """Outputs of the dense layer over the class token: as many as the layers are wide, where the config says no other or 0."""
    return fields.count("pooler_output_size", default=0, least=0) or hidden


@family("sam")
def read_sam(fields: Fields) -> Anatomy:
    """Segment Anything: the image encoder, a small encoder of prompts, a two-way decoder of masks."""
    vision = fields.inner("vision_config")
    if vision is None:
        raise UnknownAnatomy(f"{fields.where} has no vision_config")
    parts = vision_tower(vision, "sam_vision_model")
    prompts = nested(fields, "prompt_encoder_config", required=False).filled()
    masks = nested(fields, "mask_decoder_config", required=False).filled()
    prompt, mask = Part("prompt-encoder"), Part("decoder")
    width, channels = prompts.count("hidden_size"), prompts.count("mask_input_channels")
    # One table of random frequencies, shared with the image encoder.
    tables = 1 if fields.flag("tie_word_embeddings") else 2
    prompt.parameter(vision.count("num_pos_feats", default=width // 2) * 2, "position_embedding", count=tables)
    prompt.conv(channels // 4, 1, 2, 2)
    prompt.conv(channels, channels // 4, 2, 2)
    prompt.conv(width, channels, 1, 1)
    prompt.norm(channels // 4)
    prompt.norm(channels)
    prompt.embedding("embedding", 2 + prompts.count("num_point_embeddings", default=4), width)
    mask_decoder(mask, masks)
    tower = parts[0]
    return assemble(
        fields,
        [*parts, prompt, mask],
        hidden=vision.filled().count("hidden_size"),
        layers=tower.layers,
        stored_extra={"shared positions stored again": width},
    )


def mask_decoder(part: Part, fields: Fields) -> None:
    """Two-way attention between tokens and image, at half the width across; upscaling; a small network per mask."""
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    narrow = hidden // fields.count("attention_downsample_rate", default=2)
    tokens = fields.count("num_multimask_outputs") + 1
    heads = fields.count("num_attention_heads")
    part.embedding("embedding", 1 + tokens, hidden)
    part.mixer(layers, hidden, heads)
    across = 2 * layers + 1
    part.linear("attention_q", hidden, narrow, layers=across)
    part.linear("attention_k", hidden, narrow, layers=across)
    part.linear("attention_v", hidden, narrow, layers=across)
    part.linear("attention_o", narrow, hidden, layers=across)
    part.mlp(layers, hidden, fields.count("mlp_dim"))
    part.norm(hidden, count=4 * layers + 1)
    part.conv(hidden // 4, hidden, 2, 2)
    part.conv(hidden // 8, hidden // 4, 2, 2)
    part.norm(hidden // 4)
    part.linear("head_transform", hidden, hidden, count=2 * tokens)
    part.linear("head", hidden, hidden // 8, count=tokens)
    depth, inner = fields.repeats("iou_head_depth", default=3), fields.count("iou_head_hidden_dim", default=256)
    part.linear("head_transform", hidden, inner)
    part.linear("head_transform", inner, inner, count=max(depth - 2, 0))
    part.linear("head", inner, tokens)
