"""What the method pages show of the formulas: the SQL file of a component, its opening note, the constants that it names."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

# The files of a component, by their names less the number that orders them.
FILES = {
    "weights": ("weights",),
    "kv-cache": ("kv_cache",),
    "state": ("state",),
    "activations": ("activations_training", "activations_inference"),
    "gradients": ("optimizer",),
    "optimizer": ("optimizer",),
    "adapters": ("adapters",),
    "overhead": ("overhead",),
    "capacity": ("capacity", "compatibility"),
    "sharding": ("sharding", "moments_sharding", "plans"),
    "error-bands": ("overhead", "compatibility"),
}
# Constants are read as `k.name`; pages that share a file take only their own.
ONLY = {"error-bands": "error_band", "overhead": "", "sharding": "-"}
WITHOUT = {"overhead": "error_band"}


def files(component: str, folder: Path) -> list[dict]:
    """Name, opening note and text of the component's SQL files."""
    names = FILES.get(component, (component,))
    found = [f for f in sorted(folder.rglob("*.sql")) if re.sub(r"^\d+_", "", f.stem) in names]
    return [{"name": f.name, **opening(f.read_text(encoding="utf-8"))} for f in found]


def opening(text: str) -> dict:
    """A file's first comment, as blocks of prose and of formula (indented), and the text itself."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        line = line.removeprefix("--").removeprefix(" ")
        kind = "formula" if line.startswith("  ") else "prose"
        if not line.strip():
            blocks.append(("gap", []))
        elif kind == "formula" and blocks and blocks[-1][0] == "prose":
            blocks[-1][1].append(line.strip())  # an indented line right below prose carries it on
        elif blocks and blocks[-1][0] == kind and (kind == "formula" or not re.match(r"[A-Z][\w ]*:", line)):
            blocks[-1][1].append(line)
        else:
            blocks.append((kind, [line]))
    join = {"formula": "\n", "prose": " "}
    return {"text": text, "note": [(kind, textwrap.dedent(join[kind].join(lines))) for kind, lines in blocks if lines]}


def constants(component: str, folder: Path, rows: list[dict]) -> list[dict]:
    """The constants that the component's files read."""
    text = "\n".join(file["text"] for file in files(component, folder))
    named = set(re.findall(r"\bk\.(\w+)", text))
    only, without = ONLY.get(component, ""), WITHOUT.get(component)
    chosen = [c for c in rows if c["constant_id"] in named and c["constant_id"].startswith(only)]
    return [c for c in chosen if not without or not c["constant_id"].startswith(without)]
