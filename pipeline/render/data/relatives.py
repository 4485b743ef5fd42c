"""A model's relatives in the snapshot: what it derives from, what derives from it, and the same weights in other formats.

The Hub names a base for few models. So quantisations are found by their names as well: two names that are equal once the words
for formats are taken out, in one family, are the same model packed differently.
"""

from __future__ import annotations

import re
from collections import defaultdict

LISTED = 12
# Words of a name that speak of the format and not of the model.
_FORMAT = re.compile(
    r"""(?ix)
    (?:^|[-_.]) (?: awq | gptq | gguf | ggml | exl[23] | mlx | bnb | onnx | openvino | fp8 | fp4 | fp16 | bf16 | nf4 | mxfp4 | nvfp4
      | int[48] | w\d+a\d+ | [248]bit | [248]-bit | q\d(?:_k)?(?:_[msl])? | g\d+ | gs\d+ | dynamic | block | quantized | autoround
      | unsloth | imatrix | i1 | hf | fp8-kv | per-tensor | channel | asym | sym | marlin ) (?=$|[-_.])
    """
)
_NAMED = re.compile(
    r"(?i)(?<![a-z0-9])(awq|gptq|gguf|exl[23]|mlx|bnb|onnx|fp8|nvfp4|mxfp4|nf4|int[48]|w\d+a\d+|[48]-?bit)(?![a-z0-9])"
)


def stem(name: str) -> str:
    """A model's own name without its organisation and without the words for formats."""
    leaf, before = name.rpartition("/")[2], ""
    while leaf != before:
        before, leaf = leaf, _FORMAT.sub("", leaf)
    return leaf.lower().strip("-_.")


def packed(model: dict) -> str:
    """What a model's weights are stored as, by its files or by its name; empty where nothing tells."""
    named = sorted({m.lower() for m in _NAMED.findall(model["model_id"].rpartition("/")[2])})
    return model["stored_format"] or ", ".join(named)


class Relatives:
    def __init__(self, models: list[dict]) -> None:
        self.models = models
        self.of_base, self.of_stem = defaultdict(list), defaultdict(list)
        self.place = {m["model_id"]: i for i, m in enumerate(models)}
        self.stems = [stem(m["model_id"]) for m in models]
        for i, model in enumerate(models):
            if model["base_model_id"]:
                self.of_base[model["base_model_id"]].append(i)
            if self.stems[i]:
                self.of_stem[self.stems[i]].append(i)

    def of(self, number: int) -> list[tuple[str, list[int], int]]:
        """Groups of (heading, places of models by downloads, how many more there are)."""
        model, seen = self.models[number], {number}
        base = self.place.get(model["base_model_id"])
        groups = []
        for heading, found in (
            ("Derives from", [] if base is None else [base]),
            ("The same model, packed or hosted otherwise", [i for i in self._same(number)]),
            ("Derived from it", self.of_base.get(model["model_id"], [])),
            ("Of the same base", self.of_base.get(model["base_model_id"], []) if model["base_model_id"] else []),
        ):
            fresh = [i for i in found if i not in seen]
            seen.update(fresh)
            if fresh:
                groups.append((heading, fresh[:LISTED], max(0, len(fresh) - LISTED)))
        return groups

    def alike(self, number: int) -> list[int]:
        """The same model packed or hosted otherwise, itself among them."""
        return self._same(number)

    def _same(self, number: int) -> list[int]:
        model = self.models[number]
        family = model["family"]
        return [
            i
            for i in self.of_stem.get(self.stems[number], ())
            if family is None or self.models[i]["family"] in (None, family)
        ]
