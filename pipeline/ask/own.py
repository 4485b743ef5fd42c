"""A model that the almanac does not hold: from its config.json, or the adapter of one that it does, from its adapter_config.json.

Reading a config takes the rooms of the press that know architectures, and what they need (`pip install '.[config]'` in a checkout).
An adapter needs none of that: its rank and its matrices are words of the macros, where they have such words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from pipeline.base.bounds import visible
from pipeline.base.failures import OwnModelError
from pipeline.cli import kept

from .almanac import Almanac
from .problems import NoData, Unknown, Wrong
from .question import Card, Model, Use
from .values import MODULES

MODEL_ID = "own/model"
ADAPTER = "adapter_config.json"
_LARGEST_BYTES = 4 * 1024**2
# what changes how much an adapter holds, and has no word there
_UNSAID = (
    "modules_to_save",
    "rank_pattern",
    "layers_to_transform",
    "trainable_token_indices",
    "target_parameters",
    "exclude_modules",
)


@dataclass(frozen=True)
class Adapter:
    base: str
    lora_rank: int
    lora_targets: str
    kind: str  # lora or dora

    @property
    def rank(self) -> int:
        return self.lora_rank

    def used(self, use: Use) -> Use:
        if use.phase_id not in ("inference", "lora", "qlora"):
            raise Wrong(
                f"An adapter is not asked for in --phase {use.phase_id}: it belongs to lora, qlora and inference"
            )
        return use if use.phase_id == "inference" else self._said(use)

    def _said(self, use: Use) -> Use:
        return replace(use, lora_rank=self.lora_rank, lora_targets=self.lora_targets, adapter=self.kind)


def path_of(asked: str) -> Path | None:
    """The file that MODEL names; None where it is a model's name."""
    try:
        path = Path(asked).expanduser()
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, RuntimeError):  # longer than any name of a file, or at the home of nobody
        return None
    if (is_folder and asked.count("/") != 1) or asked in (".", ".."):
        found = [path / name for name in (ADAPTER, "config.json") if (path / name).is_file()]
        if not found:
            raise Wrong(f"{visible(asked)} is a folder without a config.json")
        return found[0]
    return path if path.suffix == ".json" or is_file else None


def adapter_of(path: Path) -> Adapter | None:
    """The adapter that a file describes; None where it is a config. Raises Wrong and Unknown."""
    told = _read(path)
    if "peft_type" not in told:
        return None
    if told["peft_type"] != "LORA":
        raise Unknown(f"Not known: {visible(str(told['peft_type']))} adapters, only LoRA and DoRA")
    base = told.get("base_model_name_or_path")
    rank = told.get("r")
    if (
        not isinstance(base, str)
        or not base
        or not isinstance(rank, int)
        or isinstance(rank, bool)
        or not 1 <= rank <= 65_536
    ):
        raise Wrong(f"{path.name} names no base model (base_model_name_or_path), or no rank (r) from 1 to 65,536")
    for name in _UNSAID:
        if told.get(name):
            raise Unknown(f"Not known: what an adapter with {name} takes")
    targets = told.get("target_modules")
    if targets == "all-linear":
        word = targets
    elif isinstance(targets, list) and all(isinstance(name, str) for name in targets):
        word = MODULES.get(frozenset(targets))
    else:
        word = None
    if word is None:
        raise Unknown(
            f"Not known: what an adapter of {visible(json.dumps(targets))[:120]} takes; of all linear layers, of attention (q, k, v, o) or of "
            "queries and values it is (--phase lora --rank R asks for all linear layers)"
        )
    return Adapter(base, rank, word, "dora" if told.get("use_dora") else "lora")


def with_adapter(almanac: Almanac, model: Model, card: Card, use: Use, adapter: Adapter) -> tuple[Card, dict[str, Any]]:
    """The card with the adapter on it, where it is served beside the weights: 16 bits of what the formulas count of it."""
    said = {"lora_rank": adapter.lora_rank, "lora_targets": adapter.lora_targets}
    if use.phase_id != "inference":
        return card, said
    scenario = {"model_id": model.model_id, "dtype_id": "bf16", "precision": "pure", "adapter": adapter.kind, **said}
    (row,) = almanac.ask([scenario], None, 2**50, phase_id="lora", is_plain=False, is_usual=True, with_limits=False)
    if row["adapters_bytes"] is None:
        raise Unknown(f"Not known: what its adapter takes ({row['unknown_reason']})")
    held = row["adapters_bytes"]
    return replace(card, free_bytes=card.usable_bytes - held), {**said, "adapter_bytes": held}


@contextmanager
def opened(path: Path, keep: Path | None = None) -> Iterator[Almanac]:
    """The almanac of the one model of a config.json. Raises Wrong, Unknown, NoData."""
    try:
        connection = _book_of(path, keep)
    except ImportError as missing:
        raise NoData(
            f"Reading a config.json needs more than this command alone ({missing}): pip install '.[config]' in the checkout that it was installed from"
        ) from None
    except OwnModelError as reason:
        raise Wrong(str(reason)) from None
    except OSError as error:
        raise Wrong(f"{error.strerror or error}: {path}") from None
    with connection:
        try:
            yield Almanac(connection, str(path), {})
        except NoData:  # what is kept of it does not answer: the next question makes it anew
            kept.forget(path)
            raise


def _book_of(path: Path, keep: Path | None) -> duckdb.DuckDBPyConnection:
    if keep is None:
        return kept.book_of(path)
    from pipeline.cli import own

    return own.book_of(path, keep)


def shown_as(model: Model, asked: str) -> Model:
    """The model of a config under the name of its file."""
    return replace(model, shown=visible(asked))


def about(model: Model) -> dict[str, Any]:
    """What its config says of it."""
    names = ("parameter_count", "active_parameter_count", "layer_count", "max_context_tokens", "anatomy_note")
    return {name: model.row[name] for name in names}


def _read(path: Path) -> Mapping[str, Any]:
    """The JSON object of a small file; an empty one where it is something else, which the readers of a config then say."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return {}
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise Wrong(f"{error.strerror or error}: {path}") from None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
