"""DeepSeek-OCR-2: SAM's tower over pixels, layers of Qwen2 over what it returns and over learned queries, an early DeepSeek-MoE.

Source: transformers 5.23.0, models/deepseek_ocr2. The layers over queries see a whole image at once and cache nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pipeline.anatomy.towers.vision_of_language_models  # noqa: F401 (registers its towers)
from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import LLAMA
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, architecture_of, layer_count, nested, over, sizes
from pipeline.anatomy.towers.vision import vision_tower

TEXT = Sparse(
    replace(LLAMA, head_dim=None), experts=("n_routed_experts", 64), chosen=("num_experts_per_tok", None),
    width=("moe_intermediate_size", 1407), layers=after_dense("first_k_dense_replace", 0),
    shared_count=("n_shared_experts", 2),
)  # fmt: skip
SIZES = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
TEXT_SIZES = {**SIZES, "vocab_size": 102400, "intermediate_size": 11008}
ENCODER = {**SIZES, "intermediate_size": 22016}
QUERIES = (144, 256)  # one table for images of 768 pixels, one for those of 1,024


@family("deepseek_ocr2")
def deepseek_ocr2(fields: Fields) -> Anatomy:
    vision, inner = nested(fields, "vision_config"), over(nested(fields, "text_config"), TEXT_SIZES)
    if inner.raw("mlp_layer_types", "first_k_dense_replace") is None:
        raise UnknownAnatomy(f"{inner.where} has no mlp_layer_types")
    name = architecture_of(fields) or ""
    own = {"tie_word_embeddings": fields.flag("tie_word_embeddings"), "head_dim": None}
    own["architectures"] = [name] if name.endswith("Model") else None
    text = read_sparse(Fields({**inner.config, **own}, inner.where), TEXT)
    pixels = nested(vision, "sam_config", required=False)
    first = vision_tower(Fields({**pixels.config, "model_type": "sam_vision_model"}, pixels.where))[0]
    for outputs in sizes(pixels, "downsample_channels", (512, 896), least=1)[:2]:
        first.conv(outputs, first.hidden, 3, 3, bias=False)
        first.hidden = outputs
    second, joint = encoder(over(nested(vision, "encoder_config"), ENCODER)), Part("projector", "projector")
    joint.linear("projector", second.hidden, text.hidden_size)
    joint.vector(text.hidden_size, "image_mark")
    return add_parts(fields, text, [first, second, joint])


def encoder(fields: Fields) -> Part:
    part, hidden = Part("vision", "vision-tower"), fields.count("hidden_size")
    layers, heads = layer_count(fields, "num_hidden_layers"), fields.count("num_attention_heads")
    for rows in QUERIES:
        part.embedding("queries", rows, hidden)
    part.mixer(
        layers,
        hidden,
        heads,
        kv_heads=fields.count("num_key_value_heads", default=32),
        head_dim=fields.count("head_dim", default=None),
        output_bias=False,
    )
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(hidden, bias=False)
    part.hidden, part.layers = hidden, layers
    return part
