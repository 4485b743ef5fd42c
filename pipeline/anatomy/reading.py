"""What configs say, read the same way in every family: heads, layers, sizes of stages, what is on top.

Units: heads and layers are counts, dimensions are elements, windows are tokens. Names and class defaults follow the
config classes of transformers 5.23.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import head_of
from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy, shown
from pipeline.base.bounds import MOST_REPEATS


@dataclass(frozen=True)
class Heads:
    """The shape of one layer's attention: heads and the elements of each."""

    count: int
    kv_count: int
    dim: int
    value_dim: int

    @classmethod
    def read(cls, fields: Fields, hidden: int) -> Heads:
        """From the usual names. Where neither config nor class says so, each head has keys and values of its own, and the heads share
        the hidden size. A null that is written down is no silence: it says just that.
        """
        count = fields.count("num_attention_heads", "n_head", "n_heads", "num_heads")
        by_class = None if fields.is_null("num_key_value_heads") else fields.by_class("num_key_value_heads")
        kv_count = fields.count("num_key_value_heads", default=by_class or count)
        if kv_count > count or count % kv_count:
            raise ContradictoryConfig(f"{fields.where}: {count} heads cannot share {kv_count} key-value heads")
        dim = fields.count("head_dim", default=None if fields.is_null("head_dim") else fields.by_class("head_dim"))
        dim = dim or fields.divide(hidden, count, "hidden size")
        return cls(count, kv_count, dim, dim)

    @classmethod
    def ungrouped(cls, fields: Fields, hidden: int) -> Heads:
        """Of families that know neither `num_key_value_heads` nor `head_dim`."""
        count = fields.count("num_attention_heads", "n_head", "n_heads", "num_heads")
        dim = fields.divide(hidden, count, "hidden size")
        return cls(count, count, dim, dim)


def layer_count(fields: Fields, *names: str) -> int:
    return fields.repeats(*(names or ("num_hidden_layers", "n_layer", "n_layers", "num_layers")), least=1)


def head_kind(fields: Fields) -> str:
    name = architecture_of(fields) or ""
    if special := head_of(fields.text("model_type"), name):
        return special
    if name.endswith("ForSequenceClassification"):
        return "labels"
    if name.endswith("ForTokenClassification"):
        return "token labels"
    if name.endswith("ForQuestionAnswering"):
        return "span"
    if name.endswith("Model") and not name.endswith("LMHeadModel"):
        return "none"
    return "vocabulary"


def dropout(fields: Fields, *names: str, default: float | None = None) -> float:
    """A probability of dropping; where the config is silent `default`, or what the class takes."""
    value = fields.number(*names, default=default) or 0.0
    if value > 1:
        raise ContradictoryConfig(f"{fields.where}.{names[0]} is {value}, not a probability")
    return float(value)


def layer_types(fields: Fields, layers: int, *names: str, known: Sequence[str]) -> list[str] | None:
    """The kind of every layer where the config lists them, or None. A kind that is not known is no guess: it raises."""
    types = fields.items(*(names or ("layer_types",)), length=layers)
    if types is None:
        return None
    for kind in types:
        if not isinstance(kind, str) or kind not in known:
            raise UnknownAnatomy(f"{fields.where} has a layer of kind {shown(kind)!r}")
    return types


def is_causal(fields: Fields) -> bool:
    """False where a decoder was turned into an encoder, which reads nothing of a cache.

    A class with a head over the vocabulary that sees all of its prompt at once still writes on, and caches (PaliGemma).
    """
    if fields.raw("use_bidirectional_attention") in (True, "all") and (
        architecture_of(fields) is None or head_kind(fields) != "vocabulary"
    ):
        return False
    return fields.flag("is_causal", default=True)


def sizes(fields: Fields, name: str, default: tuple[int, ...] | None = None, *, least: int = 0) -> list[int]:
    """A list of sizes, one per stage; where the config is silent `default`, or what the class takes."""
    values = fields.items(name)
    if values is None:
        default = fields.by_class(name) if default is None else default
        if default is None:
            raise UnknownAnatomy(f"{fields.where} has no {name}")
        return list(default)
    if len(values) > 1000:
        raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries")
    return [Fields({name: v}, fields.where).count(name, least=least) for v in values]


def ratio(fields: Fields, name: str, default: float | None = None) -> float:
    """How many times one width is another: no model has ten thousand."""
    value = fields.number(name, default=default)
    if value is None:
        raise UnknownAnatomy(f"{fields.where} has no {name}")
    if value > MOST_REPEATS:
        raise ContradictoryConfig(f"{fields.where}.{name} is too large for a ratio of widths")
    return value


def pair(fields: Fields, name: str, default: int | None = None) -> tuple[int, int]:
    """A square or rectangular size: one number or two."""
    if isinstance(fields.raw(name, default=fields.by_class(name) if default is None else default), list):
        values = sizes(fields, name, least=1)
        if len(values) != 2:
            raise ContradictoryConfig(f"{fields.where}.{name} has {len(values)} entries for two sides")
        return values[0], values[1]
    value = fields.size(name) if default is None else fields.count(name, default=default)
    return value, value


def over(fields: Fields, defaults: Mapping[str, Any]) -> Fields:
    """These fields, and a class's structural defaults where one is missing. A null without such a default stays, for what the class makes of it."""
    said = {k: v for k, v in fields.config.items() if v is not None or defaults.get(k) is None}
    return fields.but({**defaults, **said})


def nested(fields: Fields, *names: str, required: bool = True) -> Fields:
    """A nested config. transformers writes only what differs from the class's defaults, so fields may be missing in it."""
    inner = fields.inner(*names)
    if inner is None:
        if required:
            raise UnknownAnatomy(f"{fields.where} has no {names[0]}")
        return fields.silent(names[0])
    return inner


def architecture_of(fields: Fields) -> str | None:
    """The class the config names first, or None."""
    names = fields.raw("architectures")
    if isinstance(names, str) and names:
        return names
    names = fields.items("architectures")
    if not names:
        return None
    if not isinstance(names[0], str):
        raise ContradictoryConfig(f"{fields.where}.architectures names no class")
    return names[0]


def has_head(architecture: str) -> bool:
    """Whether a class is for a task: ViTForImageClassification is, MaskFormerModel is not."""
    return re.search("For[A-Z]", architecture) is not None


def label_count(fields: Fields, default: int = 2) -> int:
    """Outputs of a classification head."""
    labels = fields.raw("id2label")
    if isinstance(labels, Mapping) and labels:
        return len(labels)
    return fields.count("num_labels", default=default)
