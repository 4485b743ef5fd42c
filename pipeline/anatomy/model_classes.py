"""The classes that readers answer for: a name in `architectures` that is not among them is unknown, whatever its model_type.

One model_type has many classes: a head over the vocabulary, over labels, none; and people write new ones under the type of an old one (a
forecaster that calls itself t5, a draft that calls itself llama). tables/library/model_class.csv says which of them a reader was held to, and
by what. It is made by tests/oracle/list_model_classes.py.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.anatomy.rows import UnknownAnatomy

FILE = Path(__file__).resolve().parents[2] / "tables" / "library" / "model_class.csv"
DRAFT = "dflash"  # the type of a draft, whose config carries that of the model that it drafts for


class UnknownClass(UnknownAnatomy):
    """A class that nobody described, of a model_type that somebody did."""


@cache
def described() -> Mapping[str, Mapping[str, str]]:
    """By model_type: the head of each class, where its name does not tell it, else an empty text."""
    found: dict[str, dict[str, str]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model_type"], {})[row["class_name"]] = row["head"]
    return found


def head_of(model_type: str | None, class_name: str | None) -> str:
    """The head that a class has whose name does not tell; empty for every other."""
    return described().get(model_type or "", {}).get(class_name or "", "")


def check_class(config: Mapping[str, Any], model_type: str) -> None:
    """Raises UnknownClass where the config names a class that is not described. Old files name none: then the reader decides."""
    for name in _named(config):
        if name != model_type and name not in described().get(model_type, {}):
            raise UnknownClass(f"class '{name[:60]}' of model_type '{model_type[:60]}' is not described yet")


def namesake(model_type: str, class_name: str) -> str | None:
    """The described class of another type with the same head: LlamaForCausalLM for any ...ForCausalLM."""
    head = re.search(r"(LMHeadModel|For[A-Z]\w*|(?<!LMHead)Model)$", class_name)
    heads = (
        ("ForCausalLM", "LMHeadModel") if head and head[0] in ("ForCausalLM", "LMHeadModel") else (head and head[0],)
    )
    return next((name for name in described().get(model_type, {}) if head and name.endswith(heads)), None)


def _named(config: Mapping[str, Any]) -> Iterable[str]:
    names = config.get("architectures")
    names = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str) and name]
