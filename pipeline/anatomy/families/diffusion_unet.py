"""The U-Net of Stable Diffusion: residual blocks of convolutions, with transformers between them at some resolutions."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.diffusion import denoiser, embed, finish
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.base.bounds import MOST_REPEATS

DOWN, UP = ("DownBlock2D", "CrossAttnDownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
SPECIAL = ("dual_cross_attention", "only_cross_attention", "mid_block_only_cross_attention", "class_embeddings_concat")
UNSUPPORTED = (
    "class_embed_type",
    "encoder_hid_dim",
    "time_cond_proj_dim",
    "num_class_embeds",
    "conv_in_kernel",
    "reverse_transformer_layers_per_block",
)


@family("UNet2DConditionModel")
def read_unet(fields: Fields) -> Anatomy:
    widths = sizes(fields, "block_out_channels", (320, 640, 1280, 1280), least=1)
    if not 0 < len(widths) <= 20:
        raise ContradictoryConfig(f"{fields.where}.block_out_channels has {len(widths)} entries")
    down = kinds(fields, "down_block_types", [DOWN[1]] * (len(widths) - 1) + [DOWN[0]], DOWN)
    up = kinds(fields, "up_block_types", [UP[0]] + [UP[1]] * (len(widths) - 1), UP)
    for name in UNSUPPORTED:
        if fields.raw(name) not in (None, 3):
            raise UnknownAnatomy(f"{fields.where}.{name} is set, which is not described yet")
    for name in SPECIAL:
        if fields.raw(name) not in (None, False):
            raise UnknownAnatomy(f"{fields.where}.{name} is set, which is not described yet")
    unet = Unet(fields, widths)
    part, time = unet.part, 4 * widths[0]
    part.conv(widths[0], fields.count("in_channels", default=4), 3, 3)
    embed(part, widths[0], time)
    if fields.text("addition_embed_type") == "text_time":
        embed(part, fields.count("projection_class_embeddings_input_dim"), time)
    elif fields.text("addition_embed_type") is not None:
        raise UnknownAnatomy(f"{fields.where}.addition_embed_type is not described yet")
    before = widths[0]
    for i, (width, kind) in enumerate(zip(widths, down, strict=True)):
        for layer in range(unet.per_block):
            unet.residual(width if layer else before, width)
            unet.transformer(width, unet.depths[i] if kind == DOWN[1] else 0)
        if i < len(widths) - 1:
            part.conv(width, width, 3, 3)
        before = width
    unet.residual(before, before)
    unet.transformer(before, unet.depths[-1])
    unet.residual(before, before)
    for i, (width, kind) in enumerate(zip(reversed(widths), up, strict=True)):
        skip = widths[max(len(widths) - 2 - i, 0)]
        for layer in range(unet.per_block + 1):
            inputs = width if layer else before
            unet.residual(inputs + (skip if layer == unet.per_block else width), width)
            unet.transformer(width, unet.depths[-1 - i] if kind == UP[1] else 0)
        if i < len(widths) - 1:
            part.conv(width, width, 3, 3)
        before = width
    part.norm(widths[0])
    part.conv(fields.count("out_channels", default=4), widths[0], 3, 3)
    part.attention_layers = unet.rows()
    return finish(fields, part, widths[-1], sum(row.layer_count for row in part.attention_layers))


def kinds(fields: Fields, name: str, default: list[str], known: tuple[str, ...]) -> list[str]:
    values = fields.items(name) or default
    if len(values) != len(default):
        raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries for {len(default)} blocks")
    for value in values:
        if value not in known:
            raise UnknownAnatomy(f"{fields.where}.{name}: block '{shown(value)}' is not described yet")
    return values


class Unet:
    """The two bricks, and the settings they share."""

    def __init__(self, fields: Fields, widths: list[int]):
        self.part: Part = denoiser()
        self.time = 4 * widths[0]
        self.per_block = fields.repeats("layers_per_block", default=2)
        self.context = fields.count("cross_attention_dim", default=1280)
        self.is_linear = fields.flag("use_linear_projection")
        depths = fields.raw("transformer_layers_per_block", default=1)
        self.depths = (
            sizes(fields, "transformer_layers_per_block")
            if isinstance(depths, list)
            else [fields.repeats("transformer_layers_per_block", default=1)] * len(widths)
        )
        if len(self.depths) != len(widths) or max(*self.depths, self.per_block) > MOST_REPEATS:
            raise ContradictoryConfig(f"{fields.where}.transformer_layers_per_block does not fit its blocks")
        named = "num_attention_heads" if fields.raw("num_attention_heads") is not None else "attention_head_dim"
        is_list = isinstance(fields.raw(named), list)
        self.heads = sizes(fields, named, least=1) if is_list else [fields.count(named, default=8)] * len(widths)
        self.widths = widths
        self.layers: dict[int, int] = {}

    def residual(self, inputs: int, outputs: int) -> None:
        part = self.part
        part.norm(inputs)
        part.conv(outputs, inputs, 3, 3)
        part.linear("time_embedding", self.time, outputs)
        part.norm(outputs)
        part.conv(outputs, outputs, 3, 3)
        if inputs != outputs:
            part.conv(outputs, inputs, 1, 1)

    def transformer(self, width: int, depth: int) -> None:
        if not depth:
            return
        part = self.part
        part.norm(width)
        for _ in range(2):
            if self.is_linear:
                part.linear("projection", width, width)
            else:
                part.conv(width, width, 1, 1)
        for context in (width, self.context):
            part.linear("attention_q", width, width, bias=False, layers=depth)
            part.linear("attention_k", context, width, bias=False, layers=depth)
            part.linear("attention_v", context, width, bias=False, layers=depth)
            part.linear("attention_o", width, width, layers=depth)
        part.linear("ffn_gate_up", width, 8 * width, layers=depth)
        part.linear("ffn_down", 4 * width, width, layers=depth)
        part.norm(width, layers=depth, count=3)
        self.layers[width] = self.layers.get(width, 0) + depth

    def rows(self) -> list[AttentionLayer]:
        """Attention by width; SD's `attention_head_dim` is a number of heads, SDXL's too."""
        rows = []
        for width, depth in self.layers.items():
            place = self.widths.index(width)
            heads = self.heads[min(place, len(self.heads) - 1)] if self.heads else 8
            dim = max(width // max(heads, 1), 1)
            rows.append(AttentionLayer("denoiser", "bidirectional", depth, "denoiser", heads, heads, dim, dim))
        return rows
