"""How many tokens a config allows, and how many the model was trained for before its rope was scaled.

Units: tokens. Names and meaning follow transformers 5.23.0, where `rope_parameters` (formerly `rope_scaling`) holds
`factor` and `original_max_position_embeddings`, and may hold one such group for each kind of layer.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import ContradictoryConfig
from pipeline.base.bounds import LARGEST_SIZE

_LENGTH = (
    "max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "max_sequence_length",
    "seq_length", "n_ctx", "context_length",
)  # fmt: skip


def context_tokens(fields: Fields) -> tuple[int | None, int | None]:
    """(allowed, trained). Only a stated original length is evidence of scaling: without it the length stands as it is.

    A length that already exceeds the original is the scaled one (Llama 3, Phi-3 longrope); one that equals it is
    multiplied by the factor (Qwen with YaRN switched on).
    """
    length = fields.count(*_LENGTH, default=None)
    scaling = _scaling(fields)
    original = fields.count("original_max_position_embeddings", default=None)
    factor = None
    if scaling is not None:
        original = scaling.count("original_max_position_embeddings", default=original)
        factor = scaling.number("factor")
    if length is None or original is None:
        return length, None
    if length <= original and factor is not None and factor > 1:
        length = int(min(original * factor, LARGEST_SIZE + 1))
        if length > LARGEST_SIZE:
            raise ContradictoryConfig(f"{fields.where} scales its context beyond {LARGEST_SIZE} tokens")
    return length, original if original != length else None


def _scaling(fields: Fields) -> Fields | None:
    scaling = fields.inner("rope_scaling", "rope_parameters")
    if scaling is None:
        return None
    groups = [name for name, value in scaling.config.items() if isinstance(value, Mapping)]
    if groups and all(isinstance(name, str) for name in groups):
        name = "full_attention" if "full_attention" in groups else groups[0]
        return scaling.inner(name)
    return scaling
