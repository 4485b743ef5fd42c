"""dots.ocr: Qwen2 behind a tower of RMS norms and gated layers, four patches joined into a token.

Its code travels with its checkpoints (vLLM has a copy, model_executor/models/dots_ocr.py); held to their published total.
"""

from __future__ import annotations

from pipeline.anatomy.families import family, reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part, add_parts, architecture_of, layer_count, nested, pair

HEAD = "tie_word_embeddings"


@family("dots_ocr")
def dots_ocr(fields: Fields) -> Anatomy:
    inner = fields.inner("text_config")
    if inner is None:  # released files have the language model's fields beside the tower's config
        inner = Fields({k: v for k, v in fields.config.items() if k != "vision_config"}, fields.where)
    name = architecture_of(fields) or ""
    own = {"model_type": "qwen2", "architectures": [name] if name.endswith("Model") else None}
    text = reader_for("qwen2")(Fields({HEAD: fields.flag(HEAD), **inner.config, **own}, inner.where))
    return add_parts(fields, text, tower(nested(fields, "vision_config"), text.hidden_size))


def tower(fields: Fields, text: int) -> list[Part]:
    part, joint = Part("vision", "vision-tower"), Part("projector", "projector")
    hidden, layers = fields.count("embed_dim", default=1536), layer_count(fields, "num_hidden_layers", default=42)
    (high, wide), bias = pair(fields, "patch_size", 14), fields.flag("use_bias")
    part.conv(hidden, fields.count("num_channels", default=3), high, wide)
    part.norm(hidden, bias=False)
    part.mixer(layers, hidden, fields.count("num_attention_heads", default=12), bias=bias, fused=True)
    part.mlp(layers, hidden, fields.count("intermediate_size", default=4224), gated=True, bias=bias)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(hidden if fields.flag("post_norm", default=True) else 0, bias=False)
    part.hidden, part.layers = hidden, layers
    joined = hidden * fields.count("spatial_merge_size", default=2) ** 2
    joint.norm(hidden)
    joint.linear("projector_up", joined, joined)
    joint.linear("projector_down", joined, text)
    return [part, joint]
