"""Whether a relative's shape is that of a model whose own config is not known or lists dims only.

The record is graded as a sibling is, so that only a published total that comes out to the element confirms a shape that is lent
(lenders.py says who may lend), and for all but a base without the arithmetic of packed formats. All that confirm it have to agree on what
they hold and cache; where two shapes give one total, the model stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.anatomy import read_config
from pipeline.confirm.completing import DIMS_ONLY, typed
from pipeline.confirm.grade import OWN_CONFIG, Graded
from pipeline.confirm.header_grade import grade_with_header
from pipeline.confirm.lenders import Confirmed, Lenders, is_one_shape, shape_of
from pipeline.confirm.strangers import is_stranger
from pipeline.confirm.unconfirmed import unconfirmed
from pipeline.hub.record import Record

__all__ = ["TWO_SHAPES", "Lenders", "borrow", "is_open", "lent_on", "settled"]

TWO_SHAPES = "Models of different shapes have this published total"


def borrow(lenders: Lenders, record: Record, *, is_lent_on: bool = False) -> Confirmed | None:
    """The record with a shape that its published total confirms, and its grade; None where no relative has one."""
    if record.stored_parameter_count is None:
        return None
    if record.config_kind == DIMS_ONLY:
        record = replace(record, config=typed(record.config))
    for shapes, may_be_packed, is_base in lenders.ways(record, is_lent_on=is_lent_on):
        confirmed = [found for lent in shapes if (found := _confirmed(lent, may_be_packed))]
        if len({shape_of(found.anatomy) for _, found in confirmed}) > 1:
            return record, Graded("unknown", TWO_SHAPES)
        if confirmed:
            return _own_facts(record, confirmed[0], is_base)
    return None


def settled(lenders: Lenders, record: Record, found: Graded) -> Confirmed:
    """The record and its grade, with a relative's shape where it has none of its own and its total confirms one, or has none to compare."""
    if not is_open(record, found):
        return record, found
    may_borrow = found.grade == "unknown" and (record.config_kind not in OWN_CONFIG or is_stranger(record.config))
    may_borrow = may_borrow or record.config is None or record.config_kind == DIMS_ONLY
    borrowed = borrow(lenders, record) if may_borrow else None
    if borrowed and borrowed[1].anatomy is None and found.anatomy:
        borrowed = None  # its tensor headers give more
    return borrowed or unconfirmed(lenders, record, found) or (record, found)


def is_open(record: Record, found: Graded) -> bool:
    """Whether others are asked about it at all."""
    return found.anatomy is None or found.grade == "unknown" or record.config is None or record.config_kind == DIMS_ONLY


def lent_on(own: Sequence[Confirmed]) -> list[Confirmed]:
    """All records and grades, where those that are still unknown may have the shape of one that was lent its own."""
    lenders = Lenders(own)
    return [_again(lenders, record, found) if found.anatomy is None else (record, found) for record, found in own]


def _again(lenders: Lenders, record: Record, found: Graded) -> Confirmed:
    may_borrow = record.config is None or record.config_kind == DIMS_ONLY
    borrowed = borrow(lenders, record, is_lent_on=True) if may_borrow and found.note != TWO_SHAPES else None
    return borrowed if borrowed and borrowed[1].anatomy else (record, found)


def _confirmed(record: Record, may_be_packed: bool) -> Confirmed | None:
    """The record and its grade where total or headers confirm its config; whatever goes wrong with a lent shape confirms nothing."""
    try:
        found = grade_with_header(record, read_config(record.config), may_be_packed=may_be_packed)
    except Exception:
        return None
    return (record, found) if found.anatomy and found.grade != "derived" else None


def _own_facts(own: Record, confirmed: Confirmed, is_base: bool) -> Confirmed:
    """With what a source states of the record itself: its model_type, and how long a context it takes.

    Neither leaves a trace in a count. The context is the lender's only where that is the model which it was made of.
    """
    record, found = confirmed
    anatomy, named = found.anatomy, (own.config or {}).get("model_type")
    if isinstance(named, str) and named != anatomy.model_type and not is_one_shape(named):
        note = f"{found.note}. Its own architecture '{named[:60]}' is not described: what it caches is that of {anatomy.model_type}"
        names = (own.config or {}).get("architectures")
        called = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else anatomy.architecture
        found, anatomy = replace(found, note=note), replace(anatomy, model_type=named, architecture=called)
    stated = own.context_length_reported
    if not is_base or stated:
        anatomy = replace(anatomy, max_context_tokens=stated, trained_context_tokens=None)
    return record, replace(found, anatomy=anatomy)
