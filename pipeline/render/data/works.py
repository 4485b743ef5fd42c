"""Which models are one work: a base model with its copies, quantisations and fine-tunes, which need the same memory in the same format.

A list of what a card runs would be the same few models hundreds of times. So each work is one row, under the name of whoever made it.
A model is folded into another only where it has as many parameters: a draft head or a pruned copy is a work of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from pipeline.render.data.lineage import Names

WHOLE = (
    None,
    "bf16",
    "fp16",
    "fp32",
)  # what is published so goes before a packing whose name says as much (-BF16, -NVFP4)
ALIKE = 0.02  # parameters may differ by so much: heads that are tied or not, a few tokens more
# of one maker, one size and one name but for these: the same weights trained further
_STAGES = re.compile(r"-(?:base|instruct|inst|it|chat|pt|hf)(?=-|$)")


class Works:
    """Which of some models are one work. They come by downloads, the most first."""

    def __init__(self, models: Sequence[dict]) -> None:
        self.models = models
        names = Names(models)
        self.levels = names.levels()
        joined = _Joined(len(models))
        place = {m["model_id"]: i for i, m in enumerate(models)}
        unlisted: dict[str, int] = {}
        stages: dict[tuple, int] = {}
        for i, model in enumerate(models):
            name = names.names[i]
            base = (model["base_model_id"] or "").partition(",")[0].strip()
            if base and base not in place:
                place_of_base = unlisted.setdefault(base, i)
                near = [place_of_base]
            else:
                near = [place.get(base), names.owner[name.joined], names.held_by(i)]
            near.append(stages.setdefault((name.maker, _STAGES.sub("", name.stem)), i))
            for other in near:
                if other is not None and other != i and _is_alike(model, models[other]):
                    joined.join(i, other)
        members = defaultdict(list)
        for i in range(len(models)):
            members[joined.root(i)].append(i)
        self.members = list(members.values())

    def leaders(self, is_known: Callable[[int], bool]) -> list[int]:
        """For each model the place of the one that stands for its work: of whoever made it, one whose memory is known, the most downloaded.
        `is_known` says whether there is a number to show of a place."""
        found = [0] * len(self.models)
        for same in self.members:
            leader = min(same, key=lambda i: (not is_known(i), *self._own_first(i), i))
            for i in same:
                found[i] = leader
        return found

    def _own_first(self, i: int) -> tuple[int, bool]:
        return self.levels[i], self.models[i].get("stored_format") not in WHOLE


def _is_alike(one: dict, other: dict) -> bool:
    """Of one kind and as large, as far as that is known."""
    sizes = [m["parameter_count"] or m["stored_parameter_count"] for m in (one, other)]
    kinds = {_kind(m["pipeline_tag"]) for m in (one, other)} - {None}
    families = {m["family"] for m in (one, other)} - {None}
    are_told = all(sizes) or (one["family"] is not None and one["family"] == other["family"])
    is_as_large = not all(sizes) or abs(sizes[0] / sizes[1] - 1) <= ALIKE
    return are_told and is_as_large and len(kinds) < 2 and len(families) < 2


def _kind(task: str | None) -> str | None:
    """What generates text is of one kind, whether it sees pictures or not: its copies are listed as either."""
    return "text" if task in ("text-generation", "image-text-to-text", "any-to-any", "text2text-generation") else task


class _Joined:
    """Sets that are joined, each known by one of its members."""

    def __init__(self, number: int) -> None:
        self.above = list(range(number))

    def root(self, i: int) -> int:
        while self.above[i] != i:
            self.above[i] = self.above[self.above[i]]
            i = self.above[i]
        return i

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.root(one), self.root(other)))
        self.above[high] = low
