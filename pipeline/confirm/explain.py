"""The one judge: whether a published total of elements is that of an anatomy, and why.

Candidates are put before it from four sides (a config of its own, tensor headers, a relative's shape, a stranger's fields); what is
read from the record, whether its files are GGUF and whether anything speaks of a quantised checkpoint, is read here once.
"""

from __future__ import annotations

from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.filling import may_be_quantised
from pipeline.confirm.stored import Explanation, explain_total
from pipeline.hub.record import Record


def explain(
    record: Record,
    held: Anatomy,
    declared: str | None = None,
    *,
    total: int | None = None,
    is_repack: bool = False,
    is_gguf: bool | None = None,
) -> Explanation | None:
    """Why the published total of the record, or this one, is right for what is `held`; None where it is not.

    `is_gguf`: a file whose tensors count by element, whatever their type; as the kind of the total says unless it is given.
    """
    return explain_total(
        held,
        record.stored_parameter_count if total is None else total,
        declared,
        is_repack=is_repack,
        is_gguf=record.parameters_kind == "exact_gguf" if is_gguf is None else is_gguf,
        is_quantised=may_be_quantised(record),
    )
