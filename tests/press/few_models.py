"""The real publish over few small models: `python -m tests.press.few_models OUTPUT ROOT PACKS NUMBER`. Each number is another snapshot: one of the
models is left out, and another has a layer less."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pipeline import ROOT
from pipeline.base.progress import quiet
from pipeline.book.packs import Packs
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from pipeline.press import publish

MODELS = ("BAAI/bge-m3", "Qwen/Qwen3-0.6B", "google/gemma-3-270m", "openai-community/gpt2")
LAYERS = ("num_hidden_layers", "n_layer")


def root_of(folder: Path) -> Path:
    """The repository's inputs, and one file that a test writes."""
    folder.mkdir()
    for name in ("tables", "pipeline", "site", "mkdocs.yml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def snapshot_of(number: int) -> Snapshot:
    whole = newest_snapshot()
    left_out, thinner = MODELS[number % 4], MODELS[(number + 1 + number // 4 % 3) % 4]
    records = []
    for record in whole.records:
        if record.model_id == thinner:
            (field,) = (name for name in LAYERS if name in record.config)
            config = {**record.config, field: record.config[field] - 1}
            record = replace(record, config=config, stored_parameter_count=None)
        if record.model_id in MODELS and record.model_id != left_out:
            records.append(record)
    return replace(whole, records=tuple(records))


def main(output: str, root: str, packs: str, number: str) -> None:
    (Path(root) / "requirements.lock").write_text(number, encoding="utf-8")
    print("begins", flush=True)
    publish.publish(snapshot_of(int(number)), quiet, Path(output), Path(root), packs=Packs(Path(packs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
