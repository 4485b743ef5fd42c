"""Which models are somebody's own work and which are copies: what a search shows first of models with one name.

The Hub names a base for few models, so names tell the rest: a name that is another's once the words for formats are taken out, or
that holds another's whole name, is made of it. Of two organisations with one name, the copy is that of the one that copies more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.render.data.relatives import stem

OWN, FOLLOWING, PACKED, DERIVED = range(4)
_SHORTEST = 5  # letters of a name that another's may hold and mean it


@dataclass(frozen=True)
class _Name:
    maker: str
    stem: str  # without the words for formats, its words joined by "-"
    family: str | None
    is_packed: bool  # in a format that its name tells
    has_base: bool  # of another organisation, and listed

    @property
    def joined(self) -> str:
        return re.sub(r"[^a-z0-9]+", "", self.stem)

    @property
    def first(self) -> str:
        """The word it begins with: "qwen" of "qwen3-8b"."""
        return re.match(r"[a-z]*", self.stem)[0]


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-").removesuffix("-hf")


def _maker(model_id: str) -> str:
    return model_id.rpartition("/")[0]


class Names:
    def __init__(self, models: Sequence[dict]) -> None:
        # a base may live with another organisation by now: stable-diffusion-v1-5 of runwayml
        listed = defaultdict(set)
        for model in models:
            listed[_bare(model["model_id"].rpartition("/")[2])].add(_maker(model["model_id"]))
        self.names = [_name(m, listed) for m in models]
        self.of_stem = defaultdict(list)
        for i, name in enumerate(self.names):
            self.of_stem[name.joined].append(i)
        self.habit = self._habits()
        # whose a name is, of all who show it
        self.owner = {
            text: min(places, key=lambda i: (self.names[i].has_base, self.habit[self.names[i].maker], i))
            for text, places in self.of_stem.items()
        }
        self.works = defaultdict(list)  # names that a longer one can hold and mean
        for i, name in enumerate(self.names):
            is_own = self.owner[name.joined] == i and not name.has_base and not name.is_packed
            if is_own and len(name.stem) >= _SHORTEST and re.search(r"\d", name.stem):
                self.works[name.stem].append(i)
        self.leaders = self._leaders(models)

    def _habits(self) -> dict[str, float]:
        """How much of what an organisation shows is made of somebody else's."""
        copies, all_ = Counter(), Counter(n.maker for n in self.names)
        for i, name in enumerate(self.names):
            same = self.of_stem[name.joined]
            is_shared = len({self.names[k].maker for k in same}) > 1
            plain = next((k for k in same if not self.names[k].is_packed), same[0])
            copies[name.maker] += name.has_base or (is_shared and (name.is_packed or plain != i))
        return {maker: copies[maker] / n for maker, n in all_.items()}

    def _leaders(self, models: Sequence[dict]) -> dict[tuple[str, str | None], str]:
        """Who is downloaded most under a first word, in a family and in all."""
        tally = defaultdict(Counter)
        for i, (name, model) in enumerate(zip(self.names, models, strict=True)):
            if name.first and self.owner[name.joined] == i and not name.has_base:
                for key in {(name.first, name.family), (name.first, None)}:
                    tally[key][name.maker] += model["downloads_30d"] or 0
        return {key: max(makers, key=lambda m: (makers[m], m)) for key, makers in tally.items()}

    def levels(self) -> list[int]:
        """For each model, in the order given (the most downloaded first): somebody's own work (0), the same under a name that another
        organisation leads (1), one packed in another format by whoever made it (2), or a copy, quantisation or fine-tune of somebody
        else's (3)."""
        return [self._level(i) for i in range(len(self.names))]

    def _level(self, i: int) -> int:
        name = self.names[i]
        if name.has_base or self.names[self.owner[name.joined]].maker != name.maker or self.held_by(i) is not None:
            return DERIVED
        if name.is_packed:
            return PACKED
        leader = self.leaders.get((name.first, name.family), name.maker)
        return OWN if leader == name.maker else FOLLOWING

    def held_by(self, i: int) -> int | None:
        """The model of the family by somebody else, who copies less or is asked for more, whose whole name this one's holds."""
        name = self.names[i]
        words = name.stem.split("-")
        for start in range(len(words)):
            for end in range(start + 2, len(words) + 1):
                if end - start == len(words):
                    continue
                for k in self.works.get("-".join(words[start:end]), ()):
                    other = self.names[k]
                    is_kin = other.maker != name.maker and other.family in (None, name.family)
                    if is_kin and (k < i or self.habit[other.maker] < self.habit[name.maker]):
                        return k
        return None


def _name(model: dict, listed: Mapping[str, set[str]]) -> _Name:
    model_id = model["model_id"]
    bases = [base.strip() for base in (model["base_model_id"] or "").split(",")]
    text = _bare(stem(model_id))
    return _Name(
        _maker(model_id),
        text,
        model["family"],
        text != _bare(model_id.rpartition("/")[2]),
        # a base that is not listed has nothing to stand before
        any(
            _maker(base) != _maker(model_id) and listed.get(_bare(base.rpartition("/")[2]), set()) - {_maker(model_id)}
            for base in bases
        ),
    )
