"""Unlimited-OCR: an early DeepSeek-MoE behind two towers in a row, SAM's over pixels and CLIP's over what SAM returns.

Source: transformers 5.23.0, models/unlimited_ocr. The released file also holds the patch embedding that CLIP's encoder has
no use for here. The language model keeps every token of the prompt and a window of those it wrote.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import LLAMA
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, divided, layer_count, nested, over, pair, sizes
from pipeline.anatomy.towers.vision import LARGE_CLIP, vision_tower

REFERENCE = "reference_sliding_attention"
TEXT = Sparse(
    LLAMA, experts=("n_routed_experts", 64), chosen=("num_experts_per_tok", 6), width=("moe_intermediate_size", 896),
    layers=after_dense("first_k_dense_replace", 1), shared_count=("n_shared_experts", 2),
)  # fmt: skip


@family("unlimited_ocr")
def unlimited_ocr(fields: Fields) -> Anatomy:
    inner, vision = nested(fields, "text_config"), nested(fields, "vision_config")
    kinds = set(map(str, inner.items("layer_types") or [REFERENCE]))
    if kinds != {REFERENCE}:
        raise UnknownAnatomy(f"{inner.where} has layers of kinds other than '{REFERENCE}'")
    tied = {"tie_word_embeddings": fields.flag("tie_word_embeddings"), "architectures": None}
    text = read_sparse(Fields({**inner.config, **tied}, inner.where), TEXT)
    width = text.hidden_size
    pixels, features = (
        nested(vision, "sam_config"),
        over(nested(vision, "encoder_config"), LARGE_CLIP | {"image_size": 224}),
    )
    first = vision_tower(Fields({**pixels.config, "model_type": "sam_vision_model"}, pixels.where))[0]
    for outputs in sizes(pixels, "downsample_channels", (512, 1024), least=1):
        first.conv(outputs, first.hidden, 3, 3, bias=False)
        first.hidden = outputs
    second, hidden = Part("vision", "vision-tower"), features.count("hidden_size")
    (high, wide), image = pair(features, "patch_size"), pair(features, "image_size")
    second.parameter(hidden, "class_embedding")
    second.embedding("position_embedding", (image[0] // high) * (image[1] // wide) + 1, hidden)
    second.norm(hidden)
    layers, heads = layer_count(features, "num_hidden_layers"), features.count("num_attention_heads")
    divided(hidden, heads, "vision width")
    second.block(layers, hidden, features.count("intermediate_size"), heads)
    joint = Part("projector", "projector")
    joint.linear("projector", first.hidden + hidden, width)
    joint.vector(width, "image_newline", count=2)  # and one between views
    extra = text.stored_extra | {
        "a patch embedding that is not used": hidden * features.count("num_channels") * high * wide
    }
    return add_parts(fields, text, [first, second, joint], stored_extra=extra)
