"""What configs of decoders say, read the same way in every family: heads, layers, windows, what is on top.

Units: heads and layers are counts, dimensions are elements, windows are tokens. Names and class defaults follow the
config classes of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import head_of
from pipeline.anatomy.rows import ContradictoryConfig, UnknownAnatomy


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


def architecture(fields: Fields) -> str | None:
    names = fields.items("architectures")
    if not names:
        return None
    if not isinstance(names[0], str):
        raise ContradictoryConfig(f"{fields.where}.architectures does not hold names")
    return names[0]


def head_kind(fields: Fields) -> str:
    name = architecture(fields) or ""
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


def label_count(fields: Fields) -> int:
    labels = fields.raw("id2label")
    if isinstance(labels, dict) and labels:
        return len(labels)
    return fields.count("num_labels", default=2)


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
            raise UnknownAnatomy(f"{fields.where} has a layer of kind {str(kind)[:40]!r}")
    return types


def is_causal(fields: Fields) -> bool:
    """False where a decoder was turned into an encoder, which then caches nothing.

    A class with a head over the vocabulary that sees all of its prompt at once still writes on, and caches (PaliGemma).
    """
    if fields.raw("use_bidirectional_attention") in (True, "all") and (
        architecture(fields) is None or head_kind(fields) != "vocabulary"
    ):
        return False
    return fields.flag("is_causal", default=True)
