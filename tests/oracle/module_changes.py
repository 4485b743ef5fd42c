"""One class of Transformers with its fields changed: which move a tensor, which are idle, and which make another model."""

from __future__ import annotations

import random

from module_shapes import VIRTUAL, numbered, places, put, shapes


def others(value):
    """Values that a field may have instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [3 * value, 2 * value, 5 * value, value + 1, value + 2, value // 2] if value > 0 else [1, 2]
    if isinstance(value, float):
        return [2 * value, value / 2] if value else [1.0]
    return [True, 16] if value is None else []


class Seen:
    """One class: what was built, and what it said."""

    def __init__(self, model_type: str, class_name: str, config: dict):
        self.names, self.config = (model_type, class_name), config
        self.base = shapes(*self.names, config)
        self.values = dict(places(config)) | {VIRTUAL: 2}
        self.pinned: set[str] = set()
        self.moves: dict[str, list] = {}
        self.samples: list[tuple[dict, dict]] = [({}, self.base)]

    def build(self, changes: dict) -> dict:
        config = self.config
        for place, value in changes.items():
            config = config | {VIRTUAL: value} if place == VIRTUAL else put(config, place, value)
        return shapes(*self.names, config)

    def look(self) -> None:
        """Every field by itself."""
        for place, value in self.values.items():
            if isinstance(value, str | list | dict):
                self.pinned.add(place)
                continue
            fine, has_moved, has_other = [], False, False
            for other in others(value):
                try:
                    built = self.build({place: other})
                except Exception:
                    continue
                if built.keys() != self.base.keys() and numbered(built) == numbered(self.base):
                    continue  # two stages became alike: nothing to learn from
                has_other |= built.keys() != self.base.keys()
                has_moved |= built != self.base
                fine.append((other, built))
                if len(fine) == (3 if has_moved else 2 if isinstance(value, int) else 1):
                    break
            if has_other or not fine or (has_moved and (isinstance(value, bool | None) or len(fine) < 2)):
                self.pinned.add(place)
            elif has_moved:
                self.moves[place] = [other for other, _ in fine]
                self.samples += [({place: other}, built) for other, built in fine]

    def mix(self, how_many: int, rng: random.Random) -> list[tuple[dict, dict]]:
        """Several fields at once."""
        found, tries = [], 0
        free = sorted(self.moves.keys() - self.pinned)
        while free and len(found) < how_many and tries < 3 * how_many:
            tries += 1
            chosen = [place for place in free if rng.random() < min(0.5, 4 / len(free))] or [rng.choice(free)]
            changes = {place: rng.choice(self.moves[place]) for place in chosen}
            try:
                built = self.build(changes)
            except Exception:
                continue
            if built.keys() != self.base.keys() and numbered(built) == numbered(self.base):
                continue
            if built.keys() != self.base.keys():
                self.pinned.add(min(chosen, key=importance))
                return self.mix(how_many, rng)
            found.append((changes, built))
        return found

    def at(self, changes: dict) -> dict:
        return {place: self.values[place] for place in self.moves} | changes


def importance(place: str) -> tuple[int, str]:
    """Which fields a config is most likely to change: they are pinned last. Among equals the name decides, so that two runs list the same."""
    order = (
        "hidden_size",
        "d_model",
        "layers",
        "vocab",
        "intermediate",
        "ffn",
        "embed_dim",
        "heads",
        "image_size",
        "num_labels",
    )
    known = next((len(order) - i for i, part in enumerate(order) if part in place), 0)
    return known - 20 * ("[" in place), place
