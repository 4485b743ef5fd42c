"""Vision towers in stages, each wider and coarser than the one before: Swin, ConvNeXt, ResNet."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import pair, ratio, sizes
from pipeline.anatomy.rows import ContradictoryConfig
from pipeline.anatomy.towers import seeing
from pipeline.anatomy.towers.part import Part
from pipeline.base.bounds import MOST_REPEATS

MOST_STAGES = 100


@seeing("swin", "swinv2", "donut-swin", "maskformer-swin")
def swin(fields: Fields) -> list[Part]:
    """Stages of doubling width with attention over windows; Swin v2 computes its position bias from a small network."""
    fields, second = fields.filled(), fields.text("model_type") == "swinv2"
    depths, heads = sizes(fields, "depths"), sizes(fields, "num_heads", least=1)
    stages(fields, depths, heads)
    part, width = Part("vision", "vision-tower"), fields.count("embed_dim")
    (high, wide), times = pair(fields, "patch_size"), ratio(fields, "mlp_ratio")
    window = fields.count("window_size")
    part.conv(width, fields.count("num_channels"), high, wide)
    part.norm(width)
    if fields.flag("use_absolute_embeddings"):
        image = pair(fields, "image_size")
        rows = (image[0] // high) * (image[1] // wide) + (fields.text("model_type") != "swin")
        part.parameter(rows * width, "position_embedding")
    for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
        bias = fields.flag("qkv_bias")
        part.mixer(
            depth, width, count, bias=bias, key_bias=bias and not second, output_bias=True, window=window * window
        )
        part.mlp(depth, width, int(width * times))
        part.norm(width, layers=depth, count=2)
        if second:
            part.parameter(count, layers=depth)
            part.linear("position_bias", 2, 512, layers=depth)
            part.linear("position_bias", 512, count, bias=False, layers=depth)
        else:
            part.parameter((2 * window - 1) ** 2 * count, "position_embedding", layers=depth)
        if stage < len(depths) - 1:
            part.linear("downsample", 4 * width, 2 * width, bias=False)
            part.norm(2 * width if second else 4 * width)
            width *= 2
    part.norm(0 if fields.text("model_type") == "donut-swin" else width)
    return part.finished(width, sum(depths))


@seeing("convnext", "convnextv2", "dinov3_convnext")
def convnext(fields: Fields) -> list[Part]:
    """Depthwise convolutions and two matrices a layer, in stages; v2 normalises responses where v1 scales them."""
    second = fields.text("model_type") == "convnextv2"
    widths, depths = sizes(fields, "hidden_sizes", least=1), sizes(fields, "depths")
    stages(fields, depths, widths)
    part = Part("vision", "vision-tower")
    patch = fields.count("patch_size", default=4)
    part.conv(widths[0], fields.size("num_channels"), patch, patch)
    part.norm(widths[0])
    scales = not second and fields.number("layer_scale_init_value") > 0
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            part.norm(widths[stage - 1])
            part.conv(width, widths[stage - 1], 2, 2)
        part.conv(width, 1, 7, 7, layers=depth)
        part.norm(width, layers=depth)
        part.mlp(depth, width, 4 * width)
        part.vector(width if scales else 0, layers=depth)
        part.vector(4 * width if second else 0, layers=depth, count=2)
    part.norm(widths[-1])
    return part.finished(widths[-1], sum(depths))


@seeing("resnet")
def resnet(fields: Fields) -> list[Part]:
    """Convolutions and batch norms; a stage's first layer has a shortcut where width or resolution changes."""
    widths, depths = (
        sizes(fields, "hidden_sizes", least=1),
        sizes(fields, "depths"),
    )
    stages(fields, depths, widths)
    kind = fields.text("layer_type")
    if kind not in ("basic", "bottleneck"):
        raise ContradictoryConfig(f"{fields.where}.layer_type is neither basic nor bottleneck")
    part = Part("vision", "vision-tower")
    before = fields.size("embedding_size")

    def conv(outputs: int, inputs: int, kernel: int, layers: int = 1) -> None:
        part.conv(outputs, inputs, kernel, kernel, bias=False, layers=layers)
        part.norm(outputs, layers=layers)

    conv(before, fields.size("num_channels"), 7)
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        halves = stage > 0 or fields.flag("downsample_in_first_stage")
        for inputs, layers, shortcut in ((before, min(depth, 1), before != width or halves), (width, depth - 1, False)):
            if layers < 1:
                continue
            if shortcut:
                conv(width, inputs, 1)
            if kind == "basic":
                conv(width, inputs, 3, layers)
                conv(width, width, 3, layers)
            else:
                conv(width // 4, inputs, 1, layers)
                conv(width // 4, width // 4, 3, layers)
                conv(width, width // 4, 1, layers)
        before = width
    return part.finished(widths[-1], sum(depths))


def stages(fields: Fields, *lists: list[int]) -> None:
    count = len(lists[0])
    if {len(values) for values in lists} != {count} or not 0 < count <= MOST_STAGES or sum(lists[0]) > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where}: its lists of stages do not agree")
