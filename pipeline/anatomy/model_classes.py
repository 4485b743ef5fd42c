"""The classes that readers answer for: a name in `architectures` that is not among them is unknown, whatever its model_type.

One model_type has many classes: a head over the vocabulary, over labels, none; and people write new ones under the type of an old one (a
forecaster that calls itself t5, a draft that calls itself llama). tables/library/model_class.csv says which of them a reader was held to, and
by what. It is made by tests/oracle/list_model_classes.py.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline import ROOT
from pipeline.anatomy.rows import UnknownAnatomy, shown

FILE = ROOT / "tables" / "library" / "model_class.csv"
_HEAD = re.compile(r"(LMHeadModel|For[A-Z]\w*|(?<!LMHead)Model)$")
DRAFT = "dflash"  # the type of a draft, whose config carries that of the model that it drafts for


class UnknownClass(UnknownAnatomy):
    """A class that nobody described, of a model_type that somebody did."""


@cache
def described() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """The lines of the list by model_type and class."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["model_type"], {})[row["class_name"]] = row
    return found


def head_of(model_type: str | None, class_name: str | None) -> str:
    """The head that a class has whose name does not tell; empty for every other."""
    row = described().get(model_type or "", {}).get(class_name or "")
    return row["head"] if row else ""


def with_described_classes(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """The config, its classes by their names under this type. Raises UnknownClass where one is not described; old files name none.

    A class of the library under another type's name (a Mistral that calls itself LlamaForCausalLM) is what the library loads for it:
    its auto classes go by model_type, and build the class of that type with the same head.
    """
    names = config.get("architectures")
    listed = [names] if isinstance(names, str) and names else names if isinstance(names, list) else []
    theirs = [_described(name, model_type) if isinstance(name, str) and name else name for name in listed]
    return config if theirs == listed else {**config, "architectures": theirs}


def _described(name: str, model_type: str) -> str:
    known = described().get(model_type, {})
    if name == model_type or name in known:
        return name
    head = _heads_of_the_library().get(name)
    same = [ours for ours in known if head and _head(ours, model_type) == head]
    if len(same) != 1:
        raise UnknownClass(f"class '{shown(name)}' of model_type '{shown(model_type)}' is not described yet")
    return same[0]


@cache
def _heads_of_the_library() -> Mapping[str, str]:
    """ForCausalLM of LlamaForCausalLM: what is left of a counted class without what all classes of its type begin with.

    A class that several types have is of the one that shares most of its name.
    """
    heads: dict[str, str] = {}
    for model_type, rows in described().items():
        for name, row in rows.items():
            head = _head(name, model_type) if row["held_by"] == "counted" and len(rows) > 1 else ""
            if head and len(head) < len(heads.get(name, name)):
                heads[name] = head
    return heads


def _head(name: str, model_type: str) -> str:
    names = described()[model_type]
    if len(names) > 1:
        first, last = min(names), max(names)  # what these two begin with, all between them do
        shared = first[: next(i for i in range(len(first) + 1) if first[: i + 1] != last[: i + 1])]
        return name.removeprefix(shared.removesuffix("For"))
    return head_in(name)


def head_in(name: str) -> str:
    """ForCausalLM of SidewaysForCausalLM; empty where a name tells of none."""
    head = _HEAD.search(name)
    return head.group() if head else ""
