"""Smaller models of one maker, offered where a model does not fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from pipeline.render import words

SMALLER, OFFERED = 0.85, 4  # a sibling has at most such a share of the parameters; so many are offered
OLDER = 9  # months that a sibling of a model's own time may be older


class Siblings:
    """Works of one maker, family and task. `leaders` are for each model the place of the one that it is a copy of, or its own."""

    def __init__(self, models: Sequence[dict], leaders: Sequence[int], paths: Mapping[str, str]) -> None:
        self.models, self.leaders, self.paths = models, leaders, paths

    @cached_property
    def _works(self) -> dict[tuple, list[int]]:
        """By maker, family and task the works that stand for themselves, the largest first; a packing that its name says (X-FP8 beside X)
        is none, however its parameters are counted."""
        found: dict[tuple, list[int]] = defaultdict(list)
        for i, leader in enumerate(self.leaders):
            model = self.models[i]
            if leader == i and model["parameter_count"] and model["anatomy_grade"] != "unknown":
                found[self._kin(model)].append(i)
        for kin, of in found.items():
            names = {self.models[i]["model_id"] for i in of}
            whole = [i for i in of if self.models[i]["model_id"].rpartition("-")[0] not in names]
            found[kin] = sorted(whole, key=lambda i: -self.models[i]["parameter_count"])
        return found

    def smaller(self, number: int) -> list[list[str]]:
        """What is offered where a model does not fit: smaller ones of the same maker, family and task, the largest first; of about one size the
        most downloaded; where some are of its own time, these alone. Address, name and size of each."""
        leader = self.models[self.leaders[number]]
        limit, chosen = (leader["parameter_count"] or 0) * SMALLER, []
        siblings = [i for i in self._works.get(self._kin(leader), ()) if self._size(i) <= limit]
        near_in_time = [i for i in siblings if self._months_older(i, leader) <= OLDER]
        for i in near_in_time or siblings:
            count = self.models[i]["parameter_count"]
            near = chosen and count > SMALLER * self.models[chosen[-1]]["parameter_count"]
            if near and i < chosen[-1]:
                chosen[-1] = i
            elif not near:
                chosen.append(i)
        return [
            [self.paths[m["model_id"]], m["model_id"].rpartition("/")[2], words.count(m["parameter_count"])]
            for m in (self.models[i] for i in chosen[:OFFERED])
        ]

    @staticmethod
    def _kin(model: dict) -> tuple:
        return model["model_id"].partition("/")[0], model["family"], model["pipeline_tag"]

    def _size(self, number: int) -> int:
        return self.models[number]["parameter_count"]

    def _months_older(self, number: int, than: dict) -> float:
        """By how many months a model was made before another; endless where nobody says when."""
        dates = than["created_at"], self.models[number]["created_at"]
        if not all(dates):
            return float("inf")
        newer, older = (12 * int(date[:4]) + int(date[5:7]) for date in dates)
        return newer - older
