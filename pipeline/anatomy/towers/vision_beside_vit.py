"""Vision towers near ViT's plan that need code of their own: BEiT, video, RADIO, AIMv2, and hierarchical Swin and ConvNeXt."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, layer_count, over, pair, ratio, sizes
from pipeline.anatomy.towers.vision import BASE, GIANT, tower
from pipeline.base.bounds import MOST_REPEATS

SWIN = {"image_size": 224, "patch_size": 4, "num_channels": 3, "embed_dim": 96, "window_size": 7}
MOST_STAGES = 100


def finish(part: Part, hidden: int, layers: int) -> list[Part]:
    part.hidden, part.layers = hidden, layers
    return [part]


@tower("beit", "data2vec-vision")
def beit(fields: Fields) -> list[Part]:
    """Keys without bias, learned scales, and one norm at the end: the pooler's where tokens are averaged."""
    fields = over(fields, BASE)
    hidden, layers, heads = (
        fields.count("hidden_size"),
        layer_count(fields, "num_hidden_layers"),
        fields.count("num_attention_heads"),
    )
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "image_size")
    grid = (image[0] // high, image[1] // wide)
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels"), high, wide)
    part.parameter(hidden, "class_embedding", count=1 + fields.flag("use_mask_token"))
    if fields.flag("use_absolute_position_embeddings"):
        part.parameter((grid[0] * grid[1] + 1) * hidden, "position_embedding")
    part.mixer(layers, hidden, heads, key_bias=False)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, layers=layers, count=2)
    part.vector(hidden if fields.number("layer_scale_init_value", default=0.1) else 0, layers=layers, count=2)
    table = ((2 * grid[0] - 1) * (2 * grid[1] - 1) + 3) * heads
    part.parameter(table if fields.flag("use_relative_position_bias") else 0, "position_embedding", layers=layers)
    part.parameter(table if fields.flag("use_shared_relative_position_bias") else 0, "position_embedding")
    bare = fields.raw("architectures") == ["Data2VecVisionModel"] and fields.flag("use_mean_pooling", default=True)
    part.norm(0 if bare else hidden)
    return finish(part, hidden, layers)


@tower("videomae")
def videomae(fields: Fields) -> list[Part]:
    """Tubes of frames; positions are computed, and the classifier's norm stands for the encoder's where it averages."""
    fields = over(fields, BASE)
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    high, wide = pair(fields, "patch_size")
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels"), fields.count("tubelet_size", default=2), high, wide)
    bias = fields.flag("qv_bias", default=True)
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, key_bias=False, output_bias=True)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, layers=layers, count=2)
    part.norm(0 if fields.flag("use_mean_pooling", default=True) else hidden)
    return finish(part, hidden, layers)


@tower("vivit")
def vivit(fields: Fields) -> list[Part]:
    fields = over(fields, BASE)
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    frames, high, wide = [*sizes(fields, "tubelet_size", (2, 16, 16), least=1), 1, 1, 1][:3]
    image = pair(fields, "image_size")
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels"), frames, high, wide)
    rows = (image[0] // high) * (image[1] // wide) * (fields.count("num_frames", default=32) // frames) + 1
    part.parameter(hidden, "class_embedding")
    part.parameter(rows * hidden, "position_embedding")
    bias = fields.flag("qkv_bias", default=True)
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, output_bias=True)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, count=2 * layers + 1)
    return finish(part, hidden, layers)


@tower("pixio", "radio", "vitdet")
def ratio_vit(fields: Fields) -> list[Part]:
    """ViTs whose width is a ratio; they differ in tokens, positions and norms."""
    kind = fields.text("model_type")
    large = {"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16}
    fields = over(
        fields, BASE if kind == "vitdet" else {**BASE, **large, "image_size": 256 if kind == "pixio" else 224}
    )
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    width = int(hidden * ratio(fields, "mlp_ratio", 4))
    if fields.flag("use_swiglu_ffn"):
        raise UnknownAnatomy(f"{fields.where}: its gated feed-forward is not described yet")
    (high, wide), channels = pair(fields, "patch_size"), fields.count("num_channels")
    image = pair(fields, "max_img_size", 2048) if kind == "radio" else pair(fields, "image_size")
    patches = (image[0] // high) * (image[1] // wide)
    part = Part("vision", "vision-tower")
    tokens = 0
    if kind == "radio":
        part.linear("patch_embedding", channels * high * wide, hidden, bias=False)
        part.parameter(
            (fields.count("num_cls_tokens", default=3) + fields.count("num_registers", default=7)) * hidden,
            "class_embedding",
        )
        part.vector(hidden, layers=layers, count=2)
    else:
        part.conv(hidden, channels, high, wide)
        tokens = fields.count("n_cls_tokens", default=8) if kind == "pixio" else 1
        part.parameter(tokens * hidden if kind == "pixio" else 0, "class_embedding")
    part.parameter((patches + tokens) * hidden, "position_embedding")
    bias = fields.flag("qkv_bias", default=True)
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, output_bias=True, fused=kind == "vitdet")
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    part.norm(hidden if kind == "pixio" else 0)
    return finish(part, hidden, layers)


@tower("aimv2_vision_model")
def aimv2(fields: Fields) -> list[Part]:
    defaults = {
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "patch_size": 14,
    }
    fields = over(fields, {**BASE, **defaults})
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "image_size")
    part, native = Part("vision", "vision-tower"), fields.flag("is_native")
    part.conv(hidden, fields.count("num_channels"), high, wide)
    part.norm(hidden, bias=False)
    part.embedding("position_embedding", 0 if native else (image[0] // high) * (image[1] // wide), hidden)
    bias = fields.flag("qkv_bias")
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias)
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=fields.flag("mlp_bias"))
    part.norm(hidden, count=2 * layers + 1, bias=False)
    if fields.flag("use_head", default=True):
        part.parameter(hidden, "probe")
        part.linear("attention", hidden, hidden, bias=bias, count=2)
        part.linear("attention_o", hidden, hidden)
    return finish(part, hidden, layers)


@tower("swin", "swinv2", "donut-swin", "maskformer-swin")
def swin(fields: Fields) -> list[Part]:
    """Stages of doubling width with attention over windows; Swin v2 computes its position bias from a small network."""
    fields, second = over(fields, SWIN), fields.text("model_type") == "swinv2"
    depths, heads = sizes(fields, "depths", (2, 2, 6, 2)), sizes(fields, "num_heads", (3, 6, 12, 24), least=1)
    stages(fields, depths, heads)
    part, width = Part("vision", "vision-tower"), fields.count("embed_dim")
    (high, wide), times = pair(fields, "patch_size"), ratio(fields, "mlp_ratio", 4.0)
    window = fields.count("window_size")
    part.conv(width, fields.count("num_channels"), high, wide)
    part.norm(width)
    if fields.flag("use_absolute_embeddings"):
        image = pair(fields, "image_size")
        rows = (image[0] // high) * (image[1] // wide) + (fields.text("model_type") != "swin")
        part.parameter(rows * width, "position_embedding")
    for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
        bias = fields.flag("qkv_bias", default=True)
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
    return finish(part, width, sum(depths))


@tower("convnext", "convnextv2", "dinov3_convnext")
def convnext(fields: Fields) -> list[Part]:
    """Depthwise convolutions and two matrices a layer, in stages; v2 normalises responses where v1 scales them."""
    second = fields.text("model_type") == "convnextv2"
    widths, depths = sizes(fields, "hidden_sizes", (96, 192, 384, 768), least=1), sizes(fields, "depths", (3, 3, 9, 3))
    stages(fields, depths, widths)
    part = Part("vision", "vision-tower")
    patch = fields.count("patch_size", default=4)
    part.conv(widths[0], fields.count("num_channels", default=3), patch, patch)
    part.norm(widths[0])
    scales = not second and fields.number("layer_scale_init_value", default=1e-6) > 0
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
    return finish(part, widths[-1], sum(depths))


@tower("resnet")
def resnet(fields: Fields) -> list[Part]:
    """Convolutions and batch norms; a stage's first layer has a shortcut where width or resolution changes."""
    widths, depths = (
        sizes(fields, "hidden_sizes", (256, 512, 1024, 2048), least=1),
        sizes(fields, "depths", (3, 4, 6, 3)),
    )
    stages(fields, depths, widths)
    kind = fields.text("layer_type", default="bottleneck")
    if kind not in ("basic", "bottleneck"):
        raise ContradictoryConfig(f"{fields.where}.layer_type is neither basic nor bottleneck")
    part = Part("vision", "vision-tower")
    before = fields.count("embedding_size", default=64)

    def conv(outputs: int, inputs: int, kernel: int, layers: int = 1) -> None:
        part.conv(outputs, inputs, kernel, kernel, bias=False, layers=layers)
        part.norm(outputs, layers=layers)

    conv(before, fields.count("num_channels", default=3), 7)
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
    return finish(part, widths[-1], sum(depths))


def stages(fields: Fields, *lists: list[int]) -> None:
    count = len(lists[0])
    if {len(values) for values in lists} != {count} or not 0 < count <= MOST_STAGES or sum(lists[0]) > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where}: its lists of stages do not agree")


@tower("hunyuan_vl_vision")
def hunyuan_vision(fields: Fields) -> list[Part]:
    """A ViT whose table of positions is of the largest image; convolutions merge its patches, marks begin and end an image."""
    fields = over(fields, {**GIANT, "patch_size": 16, "max_image_size": 2048, "text_hidden_size": 3072})
    hidden, layers, text = (
        fields.count("hidden_size"),
        layer_count(fields, "num_hidden_layers"),
        fields.count("text_hidden_size"),
    )
    patch, merge = fields.count("patch_size"), fields.count("spatial_merge_size", default=2)
    part, merger = Part("vision", "vision-tower"), Part("projector", "projector")
    part.conv(hidden, fields.count("num_channels", default=3), patch, patch)
    part.embedding("position_embedding", (fields.count("max_image_size") // patch) ** 2 + 1, hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    merger.norm(hidden, bias=False)
    merger.conv(2 * hidden, hidden, merge, merge)
    merger.conv(4 * hidden, 2 * hidden, 1, 1)
    merger.linear("projector", 4 * hidden, text)
    merger.vector(4 * hidden, "image_newline")
    merger.vector(text, "image_mark", count=3)
    merger.norm(text, bias=False)
    part.hidden, part.layers = hidden, layers
    return [part, merger]
