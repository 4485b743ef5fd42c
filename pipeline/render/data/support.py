"""Whether a card runs a scenario at all: the table `runs_on` as the pages need it, cards of which it says the same in one row.

A scenario of the lookup runs with fused attention; a checkpoint as published runs where its own format does.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.rules import in_python

DIGITS = ord("0")
ATTENTION = "flash"  # of every scenario of the lookup


class Refusal(NamedTuple):
    """Why a card gives no verdict; `is_certain` where a source says that it does not run, rather than nobody that it does."""

    is_certain: bool
    why: str


class Support:
    def __init__(self, book: Book) -> None:
        rules = in_python()
        self.untold = Refusal(False, rules.card_reason({}))
        self.cards = [g["gpu_id"] for g in book.gpus]
        self.formats = [m["stored_format"] for m in book.models]
        # models that run on fewer cards in some engines: these, and the type that their rows name
        self.limited = {
            i: (m["limited_engines"].split(), m["model_type"])
            for i, m in enumerate(book.models)
            if m.get("limited_engines")
        }
        self.common = [g["gpu_id"] for g in book.common]
        self._of_common: dict[tuple, list[Refusal | None]] = {}
        self._rows: dict[tuple, dict[str, Refusal | None]] = defaultdict(dict)
        told: dict[tuple, Refusal | None] = {}  # of thousands of rows a few say something of their own
        for row in book["runs_on"]:
            said = (row["runs"], row["how"])
            if said not in told:
                why = rules.card_reason(row)
                told[said] = None if why is None else Refusal(row["runs"] is False, book.plainly(why))
            asked = row["engine_id"], row["running_id"], row["phase_id"], row["attention"]
            self._rows[asked] |= dict.fromkeys(row["gpu_ids"], told[said])

    def format(self, scenario: Scenario, model: int) -> str | None:
        """The format that a model's weights run in, as rows of `runs_on` name it: with its type where it runs on fewer cards (running_format)."""
        dtype = self.formats[model] if scenario.dtype_id == "stored" else scenario.dtype_id
        engines, model_type = self.limited.get(model, ((), None))
        return f"{dtype}/{model_type}" if dtype and scenario.engine_id in engines else dtype

    def refusal(self, scenario: Scenario, dtype: str | None, gpu_id: str) -> Refusal | None:
        """None where the card runs the scenario with its weights in this format."""
        row = self._rows.get((scenario.engine_id, dtype, scenario.phase_id, ATTENTION), {})
        return row.get(gpu_id, self.untold)

    def of_common(self, scenario: Scenario, model: int) -> list[Refusal | None]:
        """The same for each of the common cards: equal for all models of a format, and asked on every page."""
        held = self.format(scenario, model)
        if (scenario, held) not in self._of_common:
            self._of_common[scenario, held] = [self.refusal(scenario, held, gpu) for gpu in self.common]
        return self._of_common[scenario, held]

    def in_pytorch(self, dtype: str) -> list[Refusal | None]:
        """For each of the common cards, of inference in PyTorch whatever runs in it: diffusers is no engine of the tables."""
        row = self._rows.get(("transformers", dtype, "inference", ATTENTION), {})
        return [row.get(gpu, self.untold) for gpu in self.common]

    @cached_property
    def coded(self) -> tuple[dict[str, int], dict]:
        """For the browser: the kind of each card, cards that run the same being of one kind; and by engine, format, phase and
        attention a letter for every kind (`0`: it runs, those after it: the first refusal, the second, …)."""
        keys = sorted(self._rows)
        rows = [self._rows[key] for key in keys]
        refusals: dict[Refusal | None, int] = {None: 0}
        kinds: dict[tuple, int] = {}
        of_card = {}
        for card in self.cards:
            found = [row.get(card, self.untold) for row in rows]
            for one in dict.fromkeys(found):
                refusals.setdefault(one, len(refusals))
            of_card[card] = kinds.setdefault(tuple(map(refusals.__getitem__, found)), len(kinds))
        del refusals[None]
        runs = {
            " ".join(key): "".join(chr(DIGITS + c) for c in codes) for key, *codes in zip(keys, *kinds, strict=True)
        }
        return of_card, {"runs": runs, "refusals": [list(one) for one in refusals]}
