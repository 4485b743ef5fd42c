"""Vision towers near ViT's plan that need code of their own: BEiT, towers of video, RADIO, AIMv2."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import pair, ratio, sizes
from pipeline.anatomy.rows import UnknownAnatomy
from pipeline.anatomy.towers import seeing
from pipeline.anatomy.towers.part import Part


@seeing("beit", "data2vec-vision")
def beit(fields: Fields) -> list[Part]:
    """Keys without bias, learned scales, and one norm at the end: the pooler's where tokens are averaged."""
    fields = fields.filled()
    hidden, layers, heads = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
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
    part.vector(hidden if fields.number("layer_scale_init_value") else 0, layers=layers, count=2)
    table = ((2 * grid[0] - 1) * (2 * grid[1] - 1) + 3) * heads
    part.parameter(table if fields.flag("use_relative_position_bias") else 0, "position_embedding", layers=layers)
    part.parameter(table if fields.flag("use_shared_relative_position_bias") else 0, "position_embedding")
    bare = fields.raw("architectures") == ["Data2VecVisionModel"] and fields.flag("use_mean_pooling")
    part.norm(0 if bare else hidden)
    return part.finished(hidden, layers)


@seeing("videomae")
def videomae(fields: Fields) -> list[Part]:
    """Tubes of frames; positions are computed, and the classifier's norm stands for the encoder's where it averages."""
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    high, wide = pair(fields, "patch_size")
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels"), fields.size("tubelet_size"), high, wide)
    bias = fields.flag("qv_bias")
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, key_bias=False, output_bias=True)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, layers=layers, count=2)
    part.norm(0 if fields.flag("use_mean_pooling") else hidden)
    return part.finished(hidden, layers)


@seeing("vivit")
def vivit(fields: Fields) -> list[Part]:
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    frames, high, wide = [*sizes(fields, "tubelet_size", least=1), 1, 1, 1][:3]
    image = pair(fields, "image_size")
    part = Part("vision", "vision-tower")
    part.conv(hidden, fields.count("num_channels"), frames, high, wide)
    rows = (image[0] // high) * (image[1] // wide) * (fields.size("num_frames") // frames) + 1
    part.parameter(hidden, "class_embedding")
    part.parameter(rows * hidden, "position_embedding")
    bias = fields.flag("qkv_bias")
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, output_bias=True)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, count=2 * layers + 1)
    return part.finished(hidden, layers)


@seeing("pixio", "radio", "vitdet")
def ratio_vit(fields: Fields) -> list[Part]:
    """ViTs whose width is a ratio; they differ in tokens, positions and norms."""
    kind = fields.text("model_type")
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    width = int(hidden * ratio(fields, "mlp_ratio"))
    if fields.flag("use_swiglu_ffn"):
        raise UnknownAnatomy(f"{fields.where}: its gated feed-forward is not described yet")
    (high, wide), channels = pair(fields, "patch_size"), fields.count("num_channels")
    image = pair(fields, "max_img_size") if kind == "radio" else pair(fields, "image_size")
    patches = (image[0] // high) * (image[1] // wide)
    part = Part("vision", "vision-tower")
    tokens = 0
    if kind == "radio":
        part.linear("patch_embedding", channels * high * wide, hidden, bias=False)
        part.parameter((fields.size("num_cls_tokens") + fields.size("num_registers")) * hidden, "class_embedding")
        part.vector(hidden, layers=layers, count=2)
    else:
        part.conv(hidden, channels, high, wide)
        tokens = fields.size("n_cls_tokens") if kind == "pixio" else 1
        part.parameter(tokens * hidden if kind == "pixio" else 0, "class_embedding")
    part.parameter((patches + tokens) * hidden, "position_embedding")
    bias = fields.flag("qkv_bias")
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias, output_bias=True, fused=kind == "vitdet")
    part.mlp(layers, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    part.norm(hidden if kind == "pixio" else 0)
    return part.finished(hidden, layers)


@seeing("aimv2_vision_model", "ovis2_vision")
def aimv2(fields: Fields) -> list[Part]:
    fields = fields.filled()
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "image_size")
    part, native = Part("vision", "vision-tower"), fields.flag("is_native")
    part.conv(hidden, fields.count("num_channels"), high, wide)
    part.norm(hidden, bias=False)
    part.embedding("position_embedding", 0 if native else (image[0] // high) * (image[1] // wide), hidden)
    bias = fields.flag("qkv_bias")
    part.mixer(layers, hidden, fields.count("num_attention_heads"), bias=bias)
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=fields.flag("mlp_bias"))
    part.norm(hidden, count=2 * layers + 1, bias=False)
    if fields.flag("use_head"):
        part.parameter(hidden, "probe")
        part.linear("attention", hidden, hidden, bias=bias, count=2)
        part.linear("attention_o", hidden, hidden)
    return part.finished(hidden, layers)
