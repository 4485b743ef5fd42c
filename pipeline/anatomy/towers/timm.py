"""What timm's library says of its architectures: a config of timm names an entry of the registry, and no sizes.

`row_of` finds the line of tables/library/timm.jsonl that a config means (made by tests/oracle/list_timm.py). Whatever else a config says that
would shape a tensor has to be what that line was listed with; else the model is unknown with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline import ROOT
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tower, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part

FILE = ROOT / "tables" / "library" / "timm.jsonl"
CELL_PIXELS = 32 * 32  # of a token, where an architecture has no patches
IDLE = (
    "drop_rate",
    "drop_path_rate",
    "pretrained",
    "features_only",
    "exportable",
    "scriptable",
)  # of what model_args may say

OPERATORS = {
    "conv": "conv",
    "norm": "vector",
    "bias": "vector",
    "scale": "vector",
    "parameter": "parameter",
    "embedding": "embedding",
}


@cache
def listed() -> Mapping[str, list[dict[str, Any]]]:
    """The rows by architecture, one for each size of picture that shapes its tensors."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["architecture"], []).append(row)
    return rows


def row_of(fields: Fields) -> dict[str, Any]:
    name = fields.text("architecture")
    if name is None:
        raise UnknownAnatomy(f"{fields.where} names no architecture of timm")
    name = name.partition(".")[0]  # older files write the tag of the weights behind it
    rows = listed().get(name)
    if rows is None:
        raise UnknownAnatomy(f"timm's architecture '{shown(name)}' is not described yet")
    told = fields.inner("pretrained_cfg") or fields
    arguments = fields.inner("model_args") or Fields({})
    size = _size(told, arguments)
    fitting = [row for row in rows if size is None or size == row["input_size"]]
    if not fitting and not rows[0]["is_fixed"] and size and size[0] == rows[0]["input_size"][0]:
        fitting = rows[:1]
    if len(fitting) != 1:
        raise UnknownAnatomy(
            f"timm's architecture '{shown(name)}' is not described for pictures of {size or 'this size'}"
        )
    (row,) = fitting
    for said, value in arguments.config.items():
        held = {
            "num_classes": value,
            "img_size": value,
            "in_chans": row["input_size"][0],
            "global_pool": row["global_pool"],
        }
        if value is not None and said not in IDLE and held.get(said) != value:
            raise UnknownAnatomy(f"model_args.{shown(said)} of timm's '{shown(name)}' is not described yet")
    pool = fields.text("global_pool")
    if "map" in (pool, row["global_pool"]) and pool not in (None, row["global_pool"]):
        raise UnknownAnatomy(f"global_pool '{shown(pool)}' of timm's '{shown(name)}' is not described yet")
    return row


def timm_tower(row: Mapping[str, Any], besides: list[list]) -> Part:
    """The tensors of a row: those of the architecture, and those that it has with a classifier or without."""
    tower = Part("vision", "vision-tower")
    for role, number, outputs, *inputs in row["tensors"] + besides:
        tower.add(role, OPERATORS.get(role, "linear"), outputs, *inputs, count=number)
    return tower


def classes(fields: Fields, row: Mapping[str, Any]) -> int:
    """Outputs of the classifier; 0: there is none."""
    arguments, told = fields.inner("model_args") or Fields({}), fields.inner("pretrained_cfg") or Fields({})
    for place in (arguments, fields, told):
        if place.raw("num_classes") is not None:
            return place.count("num_classes", least=0)
    raise UnknownAnatomy(f"{fields.where} does not say how many classes its head has")


def _size(told: Fields, arguments: Fields) -> list[int] | None:
    """Channels, height and width of the pictures that the weights were made for; None where the config does not say."""
    size = sizes(told, "input_size", (), least=1)
    if size and len(size) != 3:
        raise ContradictoryConfig(f"{told.where}.input_size has {len(size)} entries for channels and two sides")
    side = arguments.raw("img_size")
    if side is None:
        return size or None
    high, wide = (
        (sizes(arguments, "img_size", least=1) * 2)[:2]
        if isinstance(side, list)
        else (arguments.count("img_size"),) * 2
    )
    return [size[0] if size else 3, high, wide]


def pictures(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """One picture passes: what is alive at most was counted, so that nothing is left to work out from widths."""
    row = row_of(fields)
    channels, high, wide = row["input_size"]
    if row["is_fixed"]:
        tokens = row["tokens"]
        entering, most = -(-channels * high * wide // tokens), -(-row["peak_elements"] // tokens)
        facts = {"tokens_each": tokens}
    else:
        entering, most = channels * CELL_PIXELS, -(-row["peak_elements"] * CELL_PIXELS // (high * wide))
        facts = {"grid": "dynamic", "pixels_each": CELL_PIXELS, "default_pixels": high * wide}
    facts |= {"input_elements": entering, "stem_elements": max(most - entering, 0)}
    tower = {
        "reader": "none",
        "grid": "fixed",
        "hidden_size": row["hidden_size"],
        "width": 0,
        "is_gated": False,
        "activation": "gelu",
    }
    return [Tower("vision", **(tower | {"hidden_tensors": 0, "rotary_tensors": 0} | facts))]
