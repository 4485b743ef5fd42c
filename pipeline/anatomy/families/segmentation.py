"""SAM 3 for video: a ViT and a text encoder, a detector that finds what the text names, a tracker that follows it.

Source: transformers 5.23.0, models/sam3_video, sam3 and sam3_tracker_video. The detector is DETR's plan at width d, the
tracker SAM 2's. Attention of all parts is bidirectional: nothing is cached from token to token.
"""

from __future__ import annotations

from itertools import pairwise

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.reading import nested, over, pair
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, divided

TEXT = {
    "vocab_size": 49408, "hidden_size": 1024, "intermediate_size": 4096, "projection_dim": 512,
    "num_hidden_layers": 24, "num_attention_heads": 16, "max_position_embeddings": 32,
}  # fmt: skip
SCALES = [4.0, 2.0, 1.0, 0.5]  # of the features that leave the tower's neck
DETR = {"hidden_size": 256, "num_attention_heads": 8, "intermediate_size": 2048}


@family("sam3_video")
def sam3_video(fields: Fields) -> Anatomy:
    tracker = nested(fields, "tracker_config")
    leave_parts(tracker.config)  # it follows what the detector's tower sees
    inner = nested(fields, "detector_config")
    parts, width, facts = detector(inner, over(nested(inner, "text_config"), TEXT))
    follower = Part("tracker", "other")
    neck(follower, width, parts[0].hidden)
    facts |= {"architecture": "Sam3VideoModel", "stored_extra": {"position frequencies": 2 * width}}
    return assemble(fields, [*parts, track(tracker, follower, width)], **facts)


@family("sam3")
def sam3(fields: Fields) -> Anatomy:
    """The detector alone: what words or boxes mean in one picture."""
    parts, _, facts = detector(fields, nested(fields, "text_config").filled())
    return assemble(fields, parts, architecture="Sam3Model", **facts)


def detector(fields: Fields, text: Fields) -> tuple[list[Part], int, dict]:
    """Its parts, its width, and what they say of the whole."""
    vision = nested(fields, "vision_config")
    tower = backbone(nested(vision, "backbone_config").filled())
    width = vision.size("fpn_hidden_size")
    if vision.raw("scale_factors") not in (None, SCALES):
        raise UnknownAnatomy(f"{vision.where}.scale_factors are not {SCALES}, which are described")
    for name in ("geometry_encoder_config", "detr_encoder_config", "detr_decoder_config", "mask_decoder_config"):
        if nested(fields, name, required=False).count("hidden_size", default=256) != width:
            raise UnknownAnatomy(f"{fields.where}.{name} has another width than the vision tower's neck")
    neck(tower, width)
    facts = {"hidden": tower.hidden, "layers": tower.layers + text.repeats("num_hidden_layers")}
    facts |= {"vocab_size": text.count("vocab_size")}
    return [tower, text_encoder(text), detect(fields, text, width)], width, facts


def backbone(fields: Fields) -> Part:
    part, hidden, layers = (
        Part("vision", "vision-tower"),
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
    )
    (high, wide), image = pair(fields, "patch_size"), pair(fields, "pretrain_image_size")
    part.parameter((image[0] // high) * (image[1] // wide) * hidden, "position_embedding")
    part.conv(hidden, fields.count("num_channels"), high, wide, bias=False)
    part.norm(hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.hidden, part.layers = hidden, layers
    return part


def neck(part: Part, width: int, hidden: int | None = None) -> None:
    """Four scales of the features: 4 ×, 2 ×, as they are and halved, each brought to the width."""
    hidden = hidden or part.hidden
    half, quarter = divided(hidden, 2, "vision width"), divided(hidden, 4, "vision width")
    part.conv(half, hidden, 2, 2, count=2)
    part.conv(quarter, half, 2, 2)
    for inputs in (quarter, half, hidden, hidden):
        part.conv(width, inputs, 1, 1)
    part.conv(width, width, 3, 3, count=4)


def text_encoder(fields: Fields) -> Part:
    part, hidden = Part("text"), fields.count("hidden_size")
    part.embedding("embedding", fields.count("vocab_size"), hidden)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), hidden)
    layers = fields.repeats("num_hidden_layers")
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.norm(hidden)
    part.linear("projector", hidden, fields.count("projection_dim"), bias=False)
    return part


def mlp(part: Part, *widths: int, count: int = 1) -> None:
    for inputs, outputs in pairwise(widths):
        part.linear("head", inputs, outputs, count=count)


def stack(part: Part, fields: Fields, width: int, *, layers: int, crosses: int) -> None:
    """Layers of DETR: attention among themselves, `crosses` times to something else, a feed-forward, a norm for each."""
    fields = fields.filled()
    count, heads = fields.repeats("num_layers", default=layers), fields.count("num_attention_heads")
    for _ in range(1 + crosses):
        part.mixer(count, width, heads)
    part.mlp(count, width, fields.count("intermediate_size"))
    part.norm(width, layers=count, count=2 + crosses)


def detect(fields: Fields, text: Fields, width: int) -> Part:
    part = Part("detector", "other")
    geometry = nested(fields, "geometry_encoder_config", required=False)
    decoder = nested(fields, "detr_decoder_config", required=False)
    masks = nested(fields, "mask_decoder_config", required=False)
    part.linear("projector", text.count("hidden_size"), width)
    side = geometry.count("roi_size", default=7)
    part.embedding("label_embedding", 3, width)
    part.linear("projector", 4, width)
    part.conv(width, width, side, side)
    part.linear("projector", width + 2, width)
    part.linear("projector", width, width)
    part.norm(width, count=3)
    stack(part, geometry, width, layers=3, crosses=1)
    stack(part, nested(fields, "detr_encoder_config", required=False), width, layers=6, crosses=1)
    stack(part, decoder, width, layers=6, crosses=2)
    queries, heads = decoder.count("num_queries", default=200), decoder.count("num_attention_heads", default=8)
    part.embedding("query_embedding", queries, width)
    part.embedding("query_embedding", queries, 4)
    part.embedding("query_embedding", 1, width)
    mlp(part, width, width, width, 4)
    mlp(part, width, width, width, 1)
    mlp(part, 2 * width, width, width)
    mlp(part, 2, width, heads, count=2)
    part.norm(width, count=2)
    stages = masks.repeats("num_upsampling_stages", default=3)
    part.conv(width, width, 3, 3, count=stages)
    part.norm(width, count=stages)
    mlp(part, width, width, width, width)
    part.conv(width, width, 1, 1)
    part.conv(1, width, 1, 1)
    part.mixer(1, width, masks.count("num_attention_heads", default=8))
    part.norm(width)
    mlp(part, width, 2048, width)  # scores: of the text against the queries
    part.norm(width)
    part.linear("head", width, width, count=2)
    return part


def track(fields: Fields, part: Part, width: int) -> Part:
    """What prompts and memories become, masks from them, and a memory of each frame in a quarter of the width."""
    memory = fields.size("memory_encoder_output_channels")
    part.embedding("memory_embedding", 3, width)
    part.embedding("memory_embedding", fields.size("num_maskmem") + 1, memory)
    prompts = nested(fields, "prompt_encoder_config", required=False)
    channels = prompts.count("mask_input_channels", default=16)
    small = divided(channels, 4, "mask_input_channels")
    part.conv(small, 1, 2, 2)
    part.conv(channels, small, 2, 2)
    part.conv(width, channels, 1, 1)
    part.norm(small)
    part.norm(channels)
    part.embedding("prompt_embedding", prompts.count("num_point_embeddings", default=4) + 2, width)
    mask_decoder(nested(fields, "mask_decoder_config", required=False), part, width)
    layers = fields.times("memory_attention_num_layers")
    heads = fields.size("memory_attention_num_attention_heads")
    part.mixer(layers, width, heads)
    part.mixer(layers, width, heads, kv_inputs=memory)
    part.mlp(layers, width, fields.size("memory_attention_feed_forward_hidden_size"))
    part.norm(width, layers=layers, count=3)
    part.norm(width)
    inputs = 1
    for outputs in (4, 16, 64, 256):
        part.conv(outputs, inputs, 3, 3)
        part.norm(outputs)
        inputs = outputs
    part.conv(width, inputs, 1, 1)
    part.conv(width, width, 1, 1)
    fusers = fields.times("memory_fuser_num_layers")
    part.vector(width, layers=fusers)
    part.conv(width, 1, 7, 7, layers=fusers)
    part.norm(width, layers=fusers)
    part.linear("ffn_up", width, 4 * width, layers=fusers)
    part.linear("ffn_down", 4 * width, width, layers=fusers)
    part.conv(memory, width, 1, 1)
    part.conv(1, 1, 4, 4)
    mlp(part, width, width, width, width)
    part.linear("projector", width, memory)
    return part


def mask_decoder(fields: Fields, part: Part, width: int) -> None:
    """Attention both ways between tokens and image, of half the width; a small network for each mask."""
    masks, layers = (
        fields.count("num_multimask_outputs", default=3) + 1,
        fields.repeats("num_hidden_layers", default=2),
    )
    heads, rate = fields.count("num_attention_heads", default=8), fields.count("attention_downsample_rate", default=2)
    narrow = {"head_dim": divided(divided(width, rate, "tracker width"), heads, "tracker width"), "outputs": width}
    part.embedding("mask_embedding", masks + 2, width)
    part.mixer(layers, width, heads)
    part.mixer(2 * layers + 1, width, heads, **narrow)
    part.mlp(layers, width, fields.count("mlp_dim", default=2048))
    part.norm(width, layers=layers, count=4)
    part.norm(width)
    quarter, eighth = divided(width, 4, "tracker width"), divided(width, 8, "tracker width")
    part.conv(quarter, width, 2, 2)
    part.conv(eighth, quarter, 2, 2)
    part.norm(quarter)
    inner = fields.count("iou_head_hidden_dim", default=256)
    mlp(part, width, width, width, eighth, count=masks)
    mlp(part, width, inner, inner, masks)
    mlp(part, width, width, width, 1)
    part.conv(eighth, width, 1, 1)
    part.conv(quarter, width, 1, 1)
