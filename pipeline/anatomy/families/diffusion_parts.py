"""Parts of diffusion pipelines that are published by themselves: an autoencoder, and the ControlNet that is loaded beside a U-Net.

They say what they weigh; what decoding or a step beside another model takes is counted with the pipeline that they belong to. Every field that
shapes a tensor is read, and one that nobody described makes a config unknown.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from pipeline.anatomy.components import autoencoder
from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import embed
from pipeline.anatomy.families.diffusion_unet import DOWN, Unet, kinds
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part

# What shapes no tensor of either.
_IDLE = frozenset(
    [
        "_class_name",
        "_diffusers_version",
        "_name_or_path",
        "act_fn",
        "norm_num_groups",
        "norm_eps",
        "sample_size",
        "scaling_factor",
        "shift_factor",
        "latents_mean",
        "latents_std",
        "force_upcast",
        "dtype",
        "torch_dtype",
        "downsample_padding",
        "dropout",
        "flip_sin_to_cos",
        "freq_shift",
        "upcast_attention",
        "resnet_time_scale_shift",
        "mid_block_scale_factor",
        "controlnet_conditioning_channel_order",
        "global_pool_conditions",
        "model_type",
        "architectures",
    ]
)
_OF_AUTOENCODER = frozenset(
    [
        "in_channels",
        "out_channels",
        "down_block_types",
        "up_block_types",
        "block_out_channels",
        "layers_per_block",
        "latent_channels",
        "use_quant_conv",
        "use_post_quant_conv",
        "mid_block_add_attention",
    ]
)
_OF_CONTROLNET = frozenset(
    [
        "in_channels",
        "conditioning_channels",
        "down_block_types",
        "mid_block_type",
        "block_out_channels",
        "layers_per_block",
        "cross_attention_dim",
        "transformer_layers_per_block",
        "attention_head_dim",
        "num_attention_heads",
        "use_linear_projection",
        "addition_embed_type",
        "addition_time_embed_dim",
        "projection_class_embeddings_input_dim",
        "conditioning_embedding_out_channels",
    ]
)


@family("AutoencoderKL")
def read_autoencoder(fields: Fields) -> Anatomy:
    _described(fields, _OF_AUTOENCODER)
    widths = sizes(fields, "block_out_channels", least=1)
    for name, block in (("down_block_types", "DownEncoderBlock2D"), ("up_block_types", "UpDecoderBlock2D")):
        kinds(fields, name, [block] * len(widths), (block,))
    if fields.count("out_channels", default=3) != fields.count("in_channels", default=3):
        raise UnknownAnatomy(f"{fields.where}.out_channels is not that of the pictures that it takes")
    return _weighed(fields, autoencoder(fields))


@family("ControlNetModel")
def read_controlnet(fields: Fields) -> Anatomy:
    """A U-Net's way down and its middle, each of whose results passes a convolution into the U-Net; what it follows becomes latents first."""
    _described(fields, _OF_CONTROLNET)
    widths = sizes(fields, "block_out_channels", (320, 640, 1280, 1280), least=1)
    if not 0 < len(widths) <= 20:
        raise ContradictoryConfig(f"{fields.where}.block_out_channels has {len(widths)} entries")
    down = kinds(fields, "down_block_types", [DOWN[1]] * (len(widths) - 1) + [DOWN[0]], DOWN)
    if fields.text("mid_block_type", default="UNetMidBlock2DCrossAttn") != "UNetMidBlock2DCrossAttn":
        raise UnknownAnatomy(f"{fields.where}.mid_block_type is not described yet")
    net = Unet(fields, widths)
    part, first = net.part, widths[0]
    part.conv(first, fields.count("in_channels", default=4), 3, 3)
    embed(part, first, 4 * first)
    if fields.text("addition_embed_type") == "text_time":
        embed(part, fields.count("projection_class_embeddings_input_dim"), 4 * first)
    elif fields.text("addition_embed_type") is not None:
        raise UnknownAnatomy(f"{fields.where}.addition_embed_type is not described yet")
    _condition(fields, part, first)
    part.conv(first, first, 1, 1)
    before = first
    for i, (width, kind) in enumerate(zip(widths, down, strict=True)):
        for layer in range(net.per_block):
            net.residual(width if layer else before, width)
            net.transformer(width, net.depths[i] if kind == DOWN[1] else 0)
            part.conv(width, width, 1, 1)
        if i < len(widths) - 1:
            part.conv(width, width, 3, 3)
            part.conv(width, width, 1, 1)
        before = width
    net.residual(before, before)
    net.transformer(before, net.depths[-1])
    net.residual(before, before)
    part.conv(before, before, 1, 1)
    part.tensors = [replace(tensor, component="controlnet", tensor_class="other") for tensor in part.tensors]
    return _weighed(fields, part)


def _condition(fields: Fields, part: Part, width: int) -> None:
    """The picture that is followed, halved at every step but the first."""
    steps = sizes(fields, "conditioning_embedding_out_channels", (16, 32, 96, 256), least=1)
    if not 0 < len(steps) <= 20:
        raise ContradictoryConfig(f"{fields.where}.conditioning_embedding_out_channels has {len(steps)} entries")
    part.conv(steps[0], fields.count("conditioning_channels", default=3), 3, 3)
    for narrow, wide in pairwise(steps):
        part.conv(narrow, narrow, 3, 3)
        part.conv(wide, narrow, 3, 3)
    part.conv(width, steps[-1], 3, 3)


def _described(fields: Fields, known: frozenset[str]) -> None:
    for name, value in fields.config.items():
        if name not in known and name not in _IDLE and value not in (None, False, "default"):
            raise UnknownAnatomy(f"{fields.where}.{shown(name)} is set, which is not described yet")


def _weighed(fields: Fields, part: Part) -> Anatomy:
    """What its tensors are, and nothing of layers that cache."""
    return Anatomy(
        model_type=fields.text("_class_name") or "",
        architecture=fields.text("_class_name"),
        hidden_size=None,
        layer_count=None,
        vocab_size=None,
        is_head_tied=None,
        norm_kind=None,
        tensors=tuple(part.tensors),
        is_block_parallel=None,
        has_flash_attention=None,
        hidden_dropout=None,
        attention_dropout=None,
    )
