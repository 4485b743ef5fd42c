"""DeBERTa's second and third version: positions that are relative, in tables and projections of their own."""

from __future__ import annotations

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.towers.part import Part


def disentangled(part: Part, fields: Fields, hidden: int, layers: int) -> None:
    """DeBERTa's relative positions: one table, a norm over it, projections of its own where keys are not shared."""
    kinds = fields.raw("pos_att_type", default=[])
    kinds = kinds.split("|") if isinstance(kinds, str) else fields.items("pos_att_type") or []
    if fields.flag("relative_attention"):
        reach = _positive(fields, "position_buckets") or _positive(fields, "max_relative_positions")
        part.embedding("position_embedding", 2 * (reach or fields.count("max_position_embeddings")), hidden)
        if not fields.flag("share_att_key"):
            part.linear("attention_position", hidden, hidden, layers=layers, count=("c2p" in kinds) + ("p2c" in kinds))
    if "layer_norm" in (fields.text("norm_rel_ebd") or "").lower():
        part.norm(hidden)
    kernel = _positive(fields, "conv_kernel_size")
    if kernel:
        part.conv(hidden, fields.divide(hidden, fields.count("conv_groups", default=1), "hidden_size"), kernel)
        part.norm(hidden)


def _positive(fields: Fields, name: str) -> int | None:
    """A count for which the family writes -1 or 0 where there is none."""
    value = fields.raw(name)
    return None if isinstance(value, int) and -1 <= value <= 0 else fields.count(name, default=None)
