"""The shape of a relative, for a model whose own config is not known or lists dims only.

Who may lend, the closest first:

    base      the model that its card names as the one it was made of
    equal     models whose published total, or count, is the same number of elements
    alike     models of the same model_type, with the dims that a source states for this one put over theirs
    cousin    models of the same type, depth and widths as the sibling whose shape the total does not confirm
    stranger  an architecture that nobody described, read as one whose fields it has

A shape that is lent proves nothing: whether one is confirmed is judged in borrowing.py.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.anatomy import read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.families import reader_for
from pipeline.anatomy.rows import Anatomy
from pipeline.confirm.candidates import HEADLESS, variants
from pipeline.confirm.completing import DIMS_ONLY, KIN, completions, other_parts, over, text_place, widths_of
from pipeline.confirm.explain import explain
from pipeline.confirm.grade import OWN_CONFIG, Graded
from pipeline.confirm.own_class import in_its_class
from pipeline.confirm.strangers import is_stranger, readings
from pipeline.hub.record import Record

LEAST_EQUAL = 5_000_000  # elements: below, two shapes may have one total by chance


# What is the lender's alone: how its checkpoint is held, how far its positions were stretched, that it became an encoder.
_OF_THE_LENDER = (
    "use_bidirectional_attention",
    "dtype",
    "torch_dtype",
    "quantization_config",
    "compression_config",
    "expert_dtype",
    "rope_scaling",
)


Confirmed = tuple[Record, Graded]


class Lenders:
    """The models whose anatomy is known, by what a relative may be found by."""

    def __init__(self, graded: Iterable[Confirmed]):
        self.by_id: dict[str, Record] = {}
        self.by_size: dict[int, dict[Any, Record]] = defaultdict(dict)
        self.by_part: dict[tuple[int, bool], dict[Any, Record]] = defaultdict(dict)  # without a head, or without towers
        self.by_type: dict[str, dict[Any, Record]] = defaultdict(dict)
        self.by_dims: dict[tuple, list[tuple[Record, Anatomy]]] = defaultdict(list)
        self.known: dict[str, Record] = {}
        self.routing: set[str] = set()  # types of which a known model has experts
        for record, found in sorted(graded, key=_trust):
            if record.config is None or record.config_kind == DIMS_ONLY:
                continue
            self.by_id[record.model_id.lower()] = record
            if found.anatomy and (found.grade != "derived" or record.config_kind in OWN_CONFIG):
                self._keep(record, found.anatomy)
            if found.anatomy is None or found.grade == "derived":
                continue
            shape = shape_of(found.anatomy)
            for size in {record.stored_parameter_count, found.anatomy.parameter_count} - {None}:
                self.by_size[size].setdefault(shape, record)
            for what, held in variants(found.anatomy):
                if what:
                    self.by_part[held.parameter_count, "head" in what].setdefault(shape, record)
            self.by_type[found.anatomy.model_type].setdefault(shape, record)
        for model_type, config in class_defaults().items():  # many are of the model that the class was written for
            self.by_type[model_type][f"transformers/{model_type}"] = _default(model_type, config)

    def _keep(self, record: Record, anatomy: Anatomy) -> None:
        self.known[record.model_id.lower()] = record
        if any(t.operator == "expert" for t in anatomy.tensors):
            self.routing.add(anatomy.model_type)
        if (dims := dims_of(record.config)) is not None:
            self.by_dims[dims].append((record, anatomy))

    def of_dims(self, record: Record) -> list[tuple[Record, Anatomy]]:
        """The other known models of the type that have all the dims which sources publish."""
        dims = dims_of(record.config)
        return [known for known in self.by_dims.get(dims, ()) if known[0].model_id != record.model_id] if dims else []

    def with_listed(self, record: Record) -> list[Record]:
        """The other known models of the type with all that a list of dims states, the width of the feed-forward among it."""
        model_type = record.config.get("model_type")
        known = self.by_type.get(model_type, {}).values() if model_type else ()
        alike = [
            one for one in known if one.model_id != record.model_id and "/" in one.model_id and _agrees(record, one)
        ]
        width = record.ffn_width_reported
        return [
            one
            for one in alike
            if one.config_kind != "library_defaults" and (not width or width in widths_of(one.config))
        ]

    def base_of(self, record: Record) -> Record | None:
        """The known model that its card names as the one it was made of, where that has what is stated for the record."""
        lender = self.known.get((record.base_model_id or "").lower())
        return lender if lender and _agrees(record, lender) else None

    def may_have_experts(self, anatomy: Anatomy) -> bool:
        """Whether known models of the type have experts, of which no published dim tells the number."""
        return anatomy.model_type in self.routing

    def lent(self, record: Record, lender: Record) -> Record:
        """The record with the config of another."""
        return _lent(record, lender, lender.config)

    def ways(self, record: Record, *, is_lent_on: bool = False) -> Iterator[tuple[Iterator[Record], bool, bool]]:
        """The shapes that may be lent to a record, the closest way first; whether packed formats may explain its total then, and
        whether the lender is the model that it was made of. What was lent itself is lent on to what was made of it, and to GGUF files."""
        yield self._base(record), True, True
        if not is_lent_on or record.parameters_kind == "exact_gguf":
            yield self._equal(record), False, False
        if is_lent_on:
            return
        yield self._alike(record), False, False
        yield self._cousins(record), True, False
        yield _strangers(record), False, False

    def _base(self, record: Record) -> Iterator[Record]:
        lender = self.by_id.get((record.base_model_id or "").lower())
        if lender and _agrees(record, lender):
            yield _lent(record, lender, lender.config)

    def _equal(self, record: Record) -> Iterator[Record]:
        total = record.stored_parameter_count
        if total < LEAST_EQUAL:
            return
        lenders = dict(self.by_size.get(total, {}))
        if record.pipeline_tag in HEADLESS:
            lenders |= self.by_part.get((total, True), {})
        if record.parameters_kind == "exact_gguf":  # llama.cpp keeps towers in files of their own
            lenders |= self.by_part.get((total, False), {})
        for lender in lenders.values():
            if _agrees(record, lender):
                yield _lent(record, lender, lender.config)

    def _alike(self, record: Record) -> Iterator[Record]:
        """Dims that a source states, by themselves and over the config of every model of the same type."""
        if record.config_kind != DIMS_ONLY:
            return
        model_type = record.config.get("model_type")
        if not isinstance(model_type, str):
            return
        lenders = [*self.by_type.get(model_type, {}).values()]
        for kin in self.by_type.get(KIN.get(model_type), {}).values():
            shape = {
                name: value for name, value in kin.config.items() if name != "architectures"
            }  # its class is not theirs
            lenders.append(replace(kin, config={**shape, "model_type": model_type}))
        tried = set()
        for own, is_plain in completions(record):
            bare = _rebuilt(record, own)
            if (is_plain or _counts(bare)) and not _has_windows(bare):
                yield bare
        for own, _ in completions(record, of_one_family=True):
            for lender in lenders:
                for lent in _under_own_dims(record, own, lender):
                    text = _structure(lent.config)
                    if text not in tried and _counts(lent) and (not _has_windows(lent) or _agrees(record, lender)):
                        yield lent
                    tried.add(text)

    def _cousins(self, record: Record) -> Iterator[Record]:
        """Models of the same type, depth and widths, for one whose total the sibling that was chosen for it does not explain."""
        if record.config_kind != "sibling":
            return
        for lender in self.by_type.get(record.config.get("model_type"), {}).values():
            if _skeleton(lender.config) == _skeleton(record.config) and lender.config_kind != "library_defaults":
                yield _lent(record, lender, lender.config)


def dims_of(config: Mapping[str, Any]) -> tuple | None:
    """What sources of dims publish of a language model; None where a config does not say it all."""
    place = text_place(config)
    text = config[place] if place else config
    sizes = tuple(text.get(name) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"))
    if not all(type(size) is int for size in sizes):
        return None
    shared = text.get("num_key_value_heads")
    return (config.get("model_type"), *sizes, shared if type(shared) is int else None)


def _skeleton(config: Mapping[str, Any]) -> tuple:
    place = text_place(config)
    text = config[place] if place else config
    return tuple(
        str(text.get(name)) for name in ("hidden_size", "num_hidden_layers", "vocab_size", "moe_intermediate_size")
    )


def _default(model_type: str, config: Mapping[str, Any]) -> Record:
    source = f"transformers-5.23.0: defaults of class {model_type}"
    return Record(
        f"transformers/{model_type}",
        config=config,
        config_kind="library_defaults",
        config_source=source,
        config_sources=("transformers-5.23.0",),
    )


def _rebuilt(record: Record, own: Mapping[str, Any]) -> Record:
    inferred = (*record.config_inferred_fields, *sorted(own.keys() - record.config.keys()))
    return replace(record, config=own, config_kind="reconstructed", config_inferred_fields=inferred)


def _strangers(record: Record) -> Iterator[Record]:
    """Its own fields, read as those of every known architecture that explains them all.

    Where they do not say whether the head is tied, a total that holds a head beside the embedding means one of its own.
    """
    if not is_stranger(record.config):
        return
    ties = (
        ({},)
        if "tie_word_embeddings" in record.config
        else ({"tie_word_embeddings": False}, {"tie_word_embeddings": True})
    )
    for tied in ties:
        found = False
        for own, _ in completions(record):
            for model_type, config in readings({**own, **tied}):
                as_theirs = replace(
                    _rebuilt(record, config), config_source=f"its own fields, read as those of {model_type}"
                )
                if _counts(as_theirs) and (record.config_kind in OWN_CONFIG or not _has_windows(as_theirs)):
                    found = True
                    yield as_theirs
        if found:
            return


def _under_own_dims(record: Record, own: Mapping[str, Any], lender: Record) -> Iterator[Record]:
    config = over(lender.config, own)
    is_default = lender.config_kind == "library_defaults"
    for composed in other_parts(config, own) if is_default else (config,):
        yield _lent(record, lender, composed, " under its own dims")


def _structure(config: Mapping[str, Any]) -> str:
    """A config as text, without what shapes no tensor where positions are rotary."""
    place = text_place(config)
    text = dict(config[place] if place else config)
    if any(name.startswith("rope") for name in text):
        text = {k: v for k, v in text.items() if not k.startswith(("rope", "max_pos")) and k != "tokenizer_class"}
    return json.dumps({**config, place: text} if place else text, sort_keys=True)


def _counts(record: Record) -> bool:
    """Whether the total is the count, or the count and parts that the config states: a quick look before the whole grade."""
    try:
        return any(explain(record, held) for _, held in variants(read_config(record.config)))
    except Exception:
        return False


def _lent(record: Record, lender: Record, config: Mapping[str, Any], words: str = "") -> Record:
    source = f"shape of {lender.model_id}{words} [{lender.config_source or 'its own config'}]"
    return in_its_class(
        replace(
            record,
            config=_without(config, _OF_THE_LENDER),
            config_kind="sibling",
            config_source=source,
            config_sources=(*record.config_sources, *lender.config_sources),
        )
    )


def _without(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {k: _without(v, names) if isinstance(v, Mapping) else v for k, v in config.items() if k not in names}


def _agrees(record: Record, lender: Record) -> bool:
    """Whether what a source states for the record is so in the lender's config: its dims, and its type if that is described."""
    own = record.config if record.config_kind == DIMS_ONLY else {}
    place = text_place(lender.config)
    theirs = lender.config[place] if place else lender.config
    named = own.get("model_type")
    if (
        isinstance(named, str)
        and is_one_shape(named)
        and named not in (lender.config.get("model_type"), theirs.get("model_type"))
    ):
        return False
    return all(theirs.get(k, v) == v for k, v in own.items() if k not in ("model_type", "architectures"))


def is_one_shape(model_type: str) -> bool:
    """Whether the type tells the architecture: DeepSeek's OCR models carry the type of its VL models, with other towers."""
    return reader_for(model_type) is not None and model_type != "deepseek_vl_v2"


def _has_windows(record: Record) -> bool:
    """Windows leave no trace in a count: they are only taken from a model of the same dims."""
    try:
        return any(a.window_tokens and a.elements_per_token for a in read_config(record.config).attention)
    except Exception:
        return True


def _trust(confirmed: Confirmed) -> tuple:
    """The lenders that are known best come first."""
    record, found = confirmed
    return (
        found.grade != "exact",
        record.config_kind not in OWN_CONFIG,
        record.config_kind == "assumed",
        record.model_id,
    )


def shape_of(anatomy: Anatomy) -> Any:
    return frozenset(anatomy.tensors), frozenset(anatomy.attention)
