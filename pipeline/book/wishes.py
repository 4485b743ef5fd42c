"""What people want to do with a model (site/wishes.csv): which formats are told of it, and which models are meant."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import ROOT

WISHES = ROOT / "site" / "wishes.csv"


@dataclass(frozen=True)
class Wish:
    """What somebody wants to do: the formats that are told of it, which of them decide whether a model `serves`, and which models are meant."""

    name: str
    label: str
    file: str
    columns: tuple[tuple[str, str, str], ...]  # phase, format, engine; the best first
    asked: tuple[int, ...]  # places of the columns that decide
    tasks: tuple[str, ...]
    named: str  # a pattern that the name holds; empty: any
    not_named: str  # one that it does not: what reads letters off pictures, guards or drafts for others has a task of those that chat
    context_tokens: int

    def means(self, model: Mapping[str, Any]) -> bool:
        """Whether a model is one of those that are meant, by its task and its name."""
        name = model["model_id"]
        is_named = not self.named or re.search(self.named, name, re.IGNORECASE)
        is_other = self.not_named and re.search(self.not_named, name, re.IGNORECASE)
        return model["pipeline_tag"] in self.tasks and bool(is_named) and not is_other


def wishes(file: Path = WISHES) -> list[Wish]:
    """The rows of site/wishes.csv."""
    found = []
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            columns = tuple(tuple(c.split("/")) for c in row["columns"].split())
            asked = [tuple(c.split("/")) for c in row["asked"].split()] or columns
            places = tuple(columns.index(c) for c in asked)
            tasks, tokens = tuple(row["tasks"].split()), int(row["context_tokens"])
            names = row["named"], row["not_named"]
            found.append(Wish(row["wish"], row["label"], row["file"], columns, places, tasks, *names, tokens))
    return found
