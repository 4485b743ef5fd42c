"""Pairs of encoders that meet in one space: CLIP, SigLIP and their kin, for images, sounds and text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.listed import read_listed
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.reading import architecture_of, has_head, label_count, nested, over
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part


@dataclass(frozen=True)
class Plan:
    tower: str = "clip_vision_model"
    style: str = "clip"  # how the text encoder is built
    scalars: int = 1  # learned temperatures and biases
    projects: bool = True


CHECKER = "StableDiffusionSafetyChecker"
CONCEPTS, SPECIAL_CARE = 17, 3  # what that compares a picture with

PLANS = {
    "clip": Plan(),
    "metaclip_2": Plan(),
    "clipseg": Plan(),
    "owlvit": Plan(),
    "owlv2": Plan(),
    "siglip": Plan("siglip_vision_model", style="siglip", scalars=2, projects=False),
    "siglip2": Plan("siglip2_vision_model", style="siglip", scalars=2, projects=False),
    "chinese_clip": Plan(style="bert"),
    "altclip": Plan(style="bert"),
    "aimv2": Plan("aimv2_vision_model", style="aimv2"),
}


def text_encoder(fields: Fields, style: str) -> Part:
    part, hidden = Part("text"), fields.count("hidden_size")
    layers, heads = fields.repeats("num_hidden_layers"), fields.count("num_attention_heads")
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
    if has_head(name) and name != CHECKER and not name.endswith("ForImageClassification"):
        return _listed(fields)
    if (
        fields.raw("text_config", "text_config_dict") is None
        and fields.raw("vision_config", "vision_config_dict") is None
    ):
        raise UnknownAnatomy(f"{fields.where} has no text_config")
    vision_fields = nested(fields, "vision_config", "vision_config_dict", required=False).filled()
    text_fields = nested(fields, "text_config", "text_config_dict", required=False).filled()
    if name == CHECKER:
        return _checker(fields, vision_fields)
    if name.endswith("ForImageClassification"):
        return _classifier(fields, vision_fields, plan)
    vision = vision_tower(vision_fields.read_as(plan.tower), plan.tower)
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


def _listed(fields: Fields) -> Anatomy:
    """A class whose tensors the library lists; what old files wrote of its parts beside them goes before those, and is not in its terms."""
    for name in ("text_config_dict", "vision_config_dict"):
        if fields.raw(name) is not None:
            raise UnknownAnatomy(
                f"{fields.where}.{name} is not described for class '{shown(architecture_of(fields) or '')}'"
            )
    return read_listed(fields)


def _classifier(fields: Fields, vision: Fields, plan: Plan) -> Anatomy:
    """Only the vision tower, and labels."""
    leave_parts(fields.config)
    parts = [*vision_tower(vision.read_as(plan.tower), plan.tower), Part("vision")]
    parts[-1].linear("head", parts[0].hidden, label_count(fields))
    return assemble(fields, parts, hidden=parts[0].hidden, layers=parts[0].layers)


def _checker(fields: Fields, vision: Fields) -> Anatomy:
    """The vision tower, a projection, and what it compares pictures with: embeddings, and how near to each is too near (diffusers,
    pipelines/stable_diffusion/safety_checker.py)."""
    leave_parts(fields.config)
    parts, joint = (
        vision_tower(vision.read_as("clip_vision_model"), "clip_vision_model"),
        Part("projector", "projector"),
    )
    projection = fields.count("projection_dim")
    joint.linear("projector", parts[0].hidden, projection, bias=False)
    for compared in (CONCEPTS, SPECIAL_CARE):
        joint.parameter(compared * projection)
        joint.vector(compared, "scale")
    return assemble(fields, [*parts, joint], hidden=parts[0].hidden, layers=parts[0].layers)


@family("clip_text_model", "siglip_text_model", "siglip2_text_model")
def read_text_encoder(fields: Fields) -> Anatomy:
    """The text half alone, as diffusion pipelines use it."""
    style = fields.text("model_type").split("_")[0].rstrip("2")
    fields.count("hidden_size")
    fields = fields.filled()
    part = text_encoder(fields, style)
    if (architecture_of(fields) or "").endswith("WithProjection"):
        part.linear("projector", part.hidden, fields.count("projection_dim"), bias=False)
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
        raise UnknownAnatomy(f"class '{shown(architecture_of(fields))}' is not described yet")
    defaults = {  # RoBERTa's: the library's list has no class of CLAP's text
        "vocab_size": 50265,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
    }
    text_fields, audio = over(nested(fields, "text_config"), defaults), nested(fields, "audio_config")
    text = text_encoder(text_fields, "bert")
    text.linear("pooler", text.hidden, text.hidden)
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
    if audio.flag("enable_fusion"):
        fuse(tower, audio)
    joint, projection = Part("projector", "projector"), fields.size("projection_dim")
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


def fuse(tower: Part, audio: Fields) -> None:
    """Clips longer than the window: its parts through a convolution of their own, weighed against the whole by two small networks."""
    if audio.text("fusion_type") == "channel_map":
        raise UnknownAnatomy(f"{audio.where}: fusion by channels is not described yet")
    width, channels = (
        audio.count("patch_embeds_hidden_size", default=96),
        audio.count("patch_embed_input_channels", default=1),
    )
    patch = audio.count("patch_size", default=4)
    narrow = width // audio.count("aff_block_r", default=4)
    tower.conv(width, channels, patch, 3 * patch)
    tower.conv(narrow, width, 1, 1, layers=2)
    tower.conv(width, narrow, 1, 1, layers=2)
    tower.norm(narrow, layers=2)
    tower.norm(width, layers=2)


def as_audio(part: Part) -> Part:
    """A vision tower that looks at spectrograms."""
    part.tensors = [replace(t, component="audio", tensor_class="audio-tower") for t in part.tensors]
    part.attention_layers = [replace(a, component="audio", kind="audio") for a in part.attention_layers]
    part.feed_forward = [replace(f, component="audio", kind="audio") for f in part.feed_forward]
    return part
