"""What to paste so that a model runs: for each engine a command with the context and the flags that make it fit (site/commands.csv).

A row of the file is an engine's command: the `formats` that it runs, the best first, and in which of them a repository has to be `held`; a
row that needs none stands after the one that does. The page says it of four bits and the context that it opens with; for a card of the
reader's the browser chooses format and context (site/assets/run.js).
"""

from __future__ import annotations

import csv
import json
import re
from functools import lru_cache
from pathlib import Path

from pipeline import ROOT
from pipeline.render.data.relatives import Relatives
from pipeline.render.pages.answer import GGUF_OF

FILE = ROOT / "site" / "commands.csv"
FOUR_BIT = (
    "gguf-q4_k_m",
    "gguf-mxfp4",
    "mxfp4",
    "awq-int4",
    "gptq-int4",
    "mlx-4bit",
    "bf16",
    "fp8",
)  # what a page says before a card is known
_SAFE = re.compile(r"[\w./-]+", re.ASCII)  # an id that a shell takes as it is
_MLX = re.compile(r"(?i)mlx.*?(?<!\d)([468])-?bit")
SHARE = "0.90"  # of a card, which vLLM takes by default


@lru_cache(maxsize=1)
def lines(file: Path = FILE) -> tuple[dict[str, str], ...]:
    with file.open(encoding="utf-8", newline="") as rows:
        return tuple(csv.DictReader(rows))


def as_file() -> str:
    """`data/commands.json`: the commands and notes with their gaps, in the order of the file, for the browser."""
    return json.dumps([[row["command"], row["note"]] for row in lines()], ensure_ascii=False, separators=(",", ":"))


class Commands:
    def __init__(self, models: list[dict], relatives: Relatives) -> None:
        self.models, self.relatives = models, relatives

    def of(self, number: int, context: int) -> list[dict]:
        """The commands of a model, an engine each; none for a model that generates no text or whose id a shell would not take."""
        model = self.models[number]
        if model["pipeline_tag"] not in ("text-generation", "image-text-to-text", "any-to-any", "text2text-generation"):
            return []
        repositories = self.repositories(number)
        found: dict[str, dict] = {}
        for place, row in enumerate(lines()):
            held = {kind: name for kind in row["held"].split() if (name := repositories.get(kind))}
            if row["engine"] in found or (row["held"] and not held) or not _SAFE.fullmatch(model["model_id"]):
                continue
            native = GGUF_OF.get(model["stored_format"])
            formats = [f for f in row["formats"].split() if not row["held"] or f in held or "gguf" in held]
            if native and formats[0].startswith("gguf-"):
                formats = [native]  # what is published in these few bits is not packed again
            dtype = next((f for f in FOUR_BIT if f in formats), formats[0])
            asked = {"model": model["model_id"], "context": str(context), "share": SHARE}
            found[row["engine"]] = {
                "engine": row["engine"],
                "name": row["name"],
                "command": fill(row["command"], dtype, held, asked),
                "note": fill(row["note"], dtype, held, asked),
                "line": place,
                "formats": " ".join(formats),
            }
        return list(found.values())

    def repositories(self, number: int) -> dict[str, str]:
        """By format the repository that holds this very model in it: its own, else the most downloaded that is listed."""
        found: dict[str, str] = {}
        for i in [number, *sorted(k for k in self.relatives.alike(number) if k != number)]:
            model = self.models[i]
            name = model["model_id"]
            kind = _kind(model)
            if kind and _SAFE.fullmatch(name):
                found.setdefault(kind, name)
        return found


def _kind(model: dict) -> str:
    """The format of a repository, by its files or by its name; nothing where neither tells."""
    leaf = model["model_id"].rpartition("/")[2]
    if "gguf" in leaf.lower():
        return "gguf"
    if mlx := _MLX.search(leaf):
        return f"mlx-{mlx[1]}bit"
    return model["stored_format"] or ""


def fill(template: str, dtype: str, held: dict[str, str], asked: dict[str, str]) -> str:
    """A command with its gaps filled, for one card: as run.js fills them."""
    given = {
        "repository": held.get(dtype) or held.get("gguf", ""),
        "quant": dtype.removeprefix("gguf-").upper(),
        "tag": "" if dtype in GGUF_OF.values() else f":{dtype.removeprefix('gguf-').upper()}",
        "bits": "".join(re.findall(r"mlx-(\d)bit", dtype)),
        "tensor_parallel_size": "",
        "tp": "",
        "devices": "0",
    } | asked
    return re.sub(r"\{(\w+)\}", lambda m: given[m[1]], template)
