"""InternVL in the field names of its own code, which travels with its checkpoints: read as transformers' InternVL.

Held to the published totals of InternVL3 1B, 2B and 8B, and, with its largest tower, whose norms are of another kind, of InternVL2 26B.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family, reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy

_RENAMED = {"attention_bias": "qkv_bias", "use_qk_norm": "qk_normalization"}


@family("internvl_chat")
def internvl_chat(fields: Fields) -> Anatomy:
    text, vision = nested(fields, "llm_config"), nested(fields, "vision_config")
    if fields.number("downsample_ratio", default=0.5) != 0.5:
        raise UnknownAnatomy(f"{fields.where}.downsample_ratio is not described")
    renamed = {ours: vision.raw(theirs) for ours, theirs in _RENAMED.items() if vision.raw(theirs) is not None}
    tower = {k: v for k, v in vision.config.items() if k not in ("model_type", *_RENAMED.values())}
    tied = {"tie_word_embeddings": text.flag("tie_word_embeddings", default=fields.flag("tie_word_embeddings"))}
    parts = {"text_config": text.config | tied, "vision_config": {"attention_bias": True, **tower, **renamed}}
    rest = {k: v for k, v in fields.config.items() if k not in ("llm_config", "architectures")}
    found = reader_for("internvl")(Fields({**rest, **parts, **tied, "model_type": "internvl"}, fields.where))
    return replace(found, model_type="internvl_chat", architecture=architecture_of(fields))
