"""Whether the head is the embedding, where no source of a config says so.

A total that holds a head beside the embedding has two readings: a head of its own, or a tied one that was stored again. Both give the
same number of elements, so neither the count nor the total can tell. What can, the strongest first:

    the same dims    a model whose own config is known: its head is its own, or it is tied and of the same organisation or name
    its makers       the next larger model of theirs is tied and none that is smaller has a head of its own, or a smaller one has its own
                     and none that is larger is tied
    the class        defaults to a head of its own, and no model of the type that is at least as large is known to be tied;
                     or defaults to a tied head, as all that are known have it, one of them at least as large

Heads are tied in small models, where the table is much of the whole: so a smaller model that ties says nothing of a larger one.
What stays open is counted with a head of its own, the larger reading, and graded `derived` with a note. So is a quantised copy of a tied
model whose total holds two heads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.anatomy import read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.candidates import TIE, TIED_AGAIN, may_be_tied, own_head
from pipeline.confirm.completing import text_place
from pipeline.confirm.filling import may_be_quantised
from pipeline.confirm.grade import BESIDES, COUNTED_AS_OWN, IS_COUNT, OWN_CONFIG, Graded, grade
from pipeline.hub.record import Record

OPEN = "Whether its head is tied is open: a tied head that is stored again gives the same total. Counted with a head of its own, which is more"
Confirmed = tuple[Record, Graded]


@dataclass(frozen=True)
class _Kin:
    """A model whose own config says whether its head is tied. `size`: parameters with the table counted once."""

    model_id: str
    maker: str
    name: str
    dims: tuple
    size: int
    is_tied: bool


Kin = Mapping[str | None, Sequence[_Kin]]


def with_tie(record: Record, found: Graded, kin: Kin) -> Graded:
    """The grade of a record beside its kin (kin_of all): a guess that the head is its own is decided, or graded as what it is."""
    return _settled(record, found, kin) if _is_guess(record, found) else found


def kin_of(graded: Iterable[Confirmed]) -> Kin:
    """The models whose own config says whether their head is tied, by type."""
    kin: dict[str | None, list[_Kin]] = defaultdict(list)
    for record, found in graded:
        if record.config_kind in OWN_CONFIG and found.anatomy and found.anatomy.is_head_tied is not None:
            kin[found.anatomy.model_type].append(_as_kin(record, found.anatomy))
    return kin


def _as_kin(record: Record, anatomy: Anatomy) -> _Kin:
    dims = (anatomy.hidden_size, anatomy.layer_count, anatomy.vocab_size)
    size = anatomy.parameter_count - own_head(anatomy)
    maker, _, name = record.model_id.lower().partition("/")
    return _Kin(record.model_id, maker, name, dims, size, bool(anatomy.is_head_tied))


def _is_guess(record: Record, found: Graded) -> bool:
    if found.anatomy is None or found.census is not None or not may_be_tied(record):
        return False
    has_two = TIED_AGAIN in (found.stored_note or "") if found.anatomy.is_head_tied else bool(own_head(found.anatomy))
    return has_two and found.anatomy.is_head_tied is not None


def _settled(record: Record, found: Graded, kin: Kin) -> Graded:
    model_type = record.config.get("model_type") or found.anatomy.model_type  # of the shape, which may be lent
    verdict, why = _verdict(_as_kin(record, found.anatomy), _default(model_type), kin.get(model_type, ()))
    is_remade = may_be_quantised(record) or record.parameters_kind == "exact_gguf"
    if verdict and (is_remade or model_type != found.anatomy.model_type):
        # quantisers write a tied head as one of its own, which is then loaded beside the embedding (measured: AWQ and GPTQ of Qwen2 and
        # Qwen2.5); an architecture of its own under a shape that is lent may have untied what it was made from
        verdict, why = None, ""
    if verdict:
        why = f"{why}, and the total holds it twice"
    is_tied = bool(found.anatomy.is_head_tied)
    if verdict is is_tied:
        return replace(found, note=_noted(found, why)) if why else found
    other = _read_again(record, found, is_tied=not is_tied)
    if other is None:
        return found  # its class knows no other reading, or would not have this total with it
    if verdict is None:
        own = other if is_tied else found
        return replace(own, grade="derived", note=_noted(found, OPEN, own))
    return replace(other, note=_noted(found, why, other))


def _verdict(own: _Kin, default: bool | None, kin: Sequence[_Kin]) -> tuple[bool | None, str]:
    """Whether the head is tied, or None where that is open; and why, unless it is the shape's own."""
    alike = [k for k in kin if k.dims == own.dims]
    for chosen in ([k for k in alike if k.maker == own.maker or k.name == own.name], alike):
        ties = {k.is_tied for k in chosen}
        if ties == {False}:
            return False, ""
        if ties == {True} and chosen is not alike:
            return True, f"Its head is tied, as that of {chosen[0].model_id}"
        if len(ties) == 2:
            return None, ""
    makers = [k for k in kin if k.maker == own.maker]
    larger = sorted((k for k in makers if k.size >= own.size), key=lambda k: k.size)
    smaller_own = [k for k in makers if not k.is_tied and k.size <= own.size]
    if larger and larger[0].is_tied and not smaller_own:
        return True, f"Its head is tied, as that of {larger[0].model_id}, the next larger of its makers"
    if smaller_own and not any(k.is_tied for k in larger):
        return False, f"Its head is its own, as that of {max(smaller_own, key=lambda k: k.size).model_id}"
    opposed = any(k.is_tied and k.size >= own.size for k in kin)
    if default is False and not opposed:
        return False, "Its head is its own, as its class defaults to"
    if default is True and opposed and all(k.is_tied for k in kin):
        return True, "Its head is tied, as its class defaults to and all known models of the type have it"
    return None, ""


def _default(model_type: str | None) -> bool | None:
    config = class_defaults().get(model_type or "", {})
    place = text_place(config)
    for part in (config, config[place] if place else {}):
        if isinstance(part.get(TIE), bool):
            return part[TIE]
    return None


def _read_again(record: Record, found: Graded, *, is_tied: bool) -> Graded | None:
    """The other reading: a tied head that the checkpoint holds again, or one of its own, where it gives the published total too."""
    place = text_place(record.config)
    config: dict[str, Any] = {**record.config, TIE: is_tied}
    if place:
        config[place] = {**config[place], TIE: is_tied}
    try:
        other = grade(replace(record, config=config), read_config(config), is_tie_known=True)
    except Exception:
        return None  # whatever goes wrong with a config that nobody wrote says nothing
    if other.grade not in ("exact", "matched"):
        return None
    own, held = found.anatomy, other.anatomy
    if (TIED_AGAIN in (other.stored_note or "")) is not is_tied or bool(own_head(held)) is is_tied:
        return None
    kept = {"model_type": own.model_type, "towers": own.towers, "max_context_tokens": own.max_context_tokens}
    kept |= {"trained_context_tokens": own.trained_context_tokens}
    return replace(other, grade=found.grade, anatomy=replace(held, **kept))


def _noted(found: Graded, sentence: str, reading: Graded | None = None) -> str:
    """The note of a grade and this sentence; of another reading, whether its total holds something besides."""
    note = found.note.replace(f". {COUNTED_AS_OWN}", "")
    if reading and (BESIDES in reading.note) is not (BESIDES in note):
        note = note.replace(BESIDES, "") if BESIDES in note else note.replace(IS_COUNT, IS_COUNT + BESIDES, 1)
    return f"{note}. {sentence}" if sentence else note
