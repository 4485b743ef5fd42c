"""Lists what models of other packages than Transformers hold, as their own code builds them from a published config.

    pip install kokoro coqui-tts pyannote.audio chatterbox-tts speechbrain snac bigvgan vocos omnivoice voxcpm uni2ts granite-tsfm sktime open_clip_torch
    # and the sources of UniDepth, TRELLIS, TRELLIS.2, BiRefNet, Depth Anything 3, VibeVoice and IC-Light (briarmbg.py) on the path
    python tests/oracle/list_packages.py            # all of them, or those that are named

Writes lines of tables/library/module.jsonl and modules.csv (see list_modules.py). Such a class has one published shape: every field that is
passed to it is `told` and `pinned`, so that a config that leaves one out or says another value is unknown. Parts that only train are left out.
The models are in packages/, a file for each kind: its configs, what builds them, and what their checkpoints hold besides.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import sys

from list_modules import COUNTS, write
from module_shapes import lengths, merged, places, tensors_of
from packages import codecs, forecasters, image_to_3d, proteins, speakers, speech, vision
from packages.registry import BUILDERS

KINDS = (speech, codecs, speakers, vision, image_to_3d, forecasters, proteins)
CONFIGS = {name: said for kind in KINDS for name, said in kind.CONFIGS.items()}
MAIN = {name: part for kind in KINDS for name, part in kind.MAIN.items()}
STORED = {name: held for kind in KINDS for name, held in getattr(kind, "STORED", {}).items()}


def main() -> None:
    import torch

    rows = []
    for model_type in sys.argv[1:] or BUILDERS:
        class_name, package, build = BUILDERS[model_type]
        config = CONFIGS[model_type]
        model = build(config)
        tensors = merged(tensors_of(model, MAIN[model_type]).items())
        fields = dict(places(config))
        version = package if " " in package else f"{package} {importlib.metadata.version(package)}"
        stored = {}
        if model_type in STORED:
            cause, held = STORED[model_type]
            stored = {"stored": {cause: str(held(model))}}
        write({
            "model_type": model_type.partition(":")[0], "class_name": class_name, "fields": fields, "pinned": sorted(fields), "lengths": lengths(config), "aliases": {},
            "told": sorted(fields), "least": {}, "tensors": tensors, **stored, "library_version": version,
        })  # fmt: skip
        total = sum({id(p): p.numel() for p in model.parameters()}.values())
        by = {"linear": 0, "linear-subclass": 0}
        for _, _, operator, number, *sides in tensors:
            if operator in by:
                by[operator] += number * sides[0] * sides[1]
        versions = f"torch {torch.__version__.split('+')[0]}, {version}"
        shown = json.dumps(config, separators=(",", ":"), sort_keys=True)
        rows.append(
            [model_type.partition(":")[0], class_name, shown, total, *by.values(), total - sum(by.values()), versions]
        )
        print(model_type, class_name, total, len(tensors), "rows")
    with COUNTS.open(newline="") as file:
        head, *known = csv.reader(file)
    named = {tuple(row[:3]) for row in rows}
    with COUNTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        kept = [row for row in known if tuple(row[:3]) not in named]
        writer.writerows([head, *sorted([*kept, *rows], key=lambda row: row[:2])])


if __name__ == "__main__":
    main()
