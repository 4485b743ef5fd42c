"""Janus: a Llama that sees through a SigLIP-like tower and draws with codes of a picture, which a VQ-GAN makes and reads.

Source: transformers 5.23.0, models/janus.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part

GROUPS = 32  # of every norm in the VQ-GAN


@family("janus")
def read_janus(fields: Fields) -> Anatomy:
    text = language_model(fields, Plan("", "llama", ties=True))
    vision = nested(fields, "vision_config").filled()
    tower = vision_tower(vision.but({"model_type": "janus_vision_model"}))
    aligner, width = Part("projector", "projector"), vision.count("projection_dim")
    align(aligner, tower[0].hidden, width, vision.repeats("depth"))
    codes = nested(fields, "vq_config").filled()
    return add_parts(fields, text, [*tower, aligner, *picture(codes)])


def align(part: Part, inputs: int, width: int, depth: int) -> None:
    part.linear("projector_up", inputs, width)
    part.linear("projector", width, width, count=max(depth - 1, 0))


def picture(fields: Fields) -> list[Part]:
    """The VQ-GAN, and what takes its codes into the text's width and back."""
    rows, code, width = fields.count("num_embeddings"), fields.count("embed_dim"), fields.count("projection_dim")
    latent, base = fields.count("latent_channels"), fields.count("base_channels")
    scales, blocks = sizes(fields, "channel_multiplier", least=1), fields.repeats("num_res_blocks")
    if not scales or base % GROUPS:
        raise ContradictoryConfig(f"{fields.where}: its channels cannot be normed in {GROUPS} groups")
    vae, widths = Part("vae"), [base * scale for scale in scales]
    vae.conv(base, fields.count("in_channels"), 3, 3)
    before = base
    for i, channels in enumerate(widths):
        before = level(vae, before, channels, blocks, attends=i == len(widths) - 1, resizes=i < len(widths) - 1)
    middle(vae, before)
    vae.norm(before)
    vae.conv(latent * (2 if fields.flag("double_latent") else 1), before, 3, 3)
    vae.embedding("code_embedding", rows, code)
    vae.conv(code, latent, 1)
    vae.conv(latent, code, 1)
    vae.conv(before, latent, 3, 3)
    middle(vae, before)
    for i, channels in reversed(list(enumerate(widths))):
        before = level(vae, before, channels, blocks + 1, attends=i == len(widths) - 1, resizes=i > 0)
    vae.norm(before)
    vae.conv(fields.count("out_channels"), before, 3, 3)
    drawn = Part("decoder")
    drawn.embedding("code_embedding", rows, code)
    drawn.linear("projector_up", code, width)
    drawn.linear("projector", width, width, count=max(fields.repeats("num_hidden_layers") - 1, 0))
    drawn.linear("code_head_transform", fields.count("image_token_embed_dim"), width)
    drawn.linear("code_head", width, rows)
    return [vae, drawn]


def level(part: Part, inputs: int, channels: int, blocks: int, *, attends: bool, resizes: bool) -> int:
    for i in range(blocks):
        residual(part, channels if i else inputs, channels)
        if attends:
            attention(part, channels)
    last = channels if blocks else inputs
    if resizes:
        part.conv(last, last, 3, 3)
    return last


def middle(part: Part, channels: int) -> None:
    residual(part, channels, channels)
    attention(part, channels)
    residual(part, channels, channels)


def residual(part: Part, inputs: int, outputs: int) -> None:
    part.norm(inputs)
    part.conv(outputs, inputs, 3, 3)
    part.norm(outputs)
    part.conv(outputs, outputs, 3, 3)
    if inputs != outputs:
        part.conv(outputs, inputs, 1)


def attention(part: Part, channels: int) -> None:
    part.norm(channels)
    part.conv(channels, channels, 1, count=4)
