"""Where peers are run: an environment for each, and a Hub that has what they are asked about."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from pipeline.hub.snapshot import newest_snapshot
from tests.fake_hub.models import row
from tests.fake_hub.server import FakeHub
from tests.peers.hub import Weights

HERE = Path(__file__).resolve().parent
# what is larger has an index beside it, as Transformers wrote it when most of these were published
SHARD_BYTES = 5_000_000_000


def installed(peers: list[dict[str, str]], folder: Path) -> dict[str, Path]:
    """The folder of commands of each peer."""
    places = {}
    for peer in peers:
        place = folder / peer["peer"]
        places[peer["peer"]] = place / "bin"
        made = place / ".made"
        wanted = f"{peer['package']} {peer['also']}".split()
        if made.exists() and made.read_text(encoding="utf-8").split() == wanted:
            continue
        print(f"installing {' '.join(wanted)}", file=sys.stderr, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        if shutil.which("uv"):
            subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, place], check=True)
            install = ["uv", "pip", "install", "--quiet", "--python", place / "bin" / "python"]
        else:
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            install = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *wanted], check=True)
        made.write_text(" ".join(wanted), encoding="utf-8")
    return places


def hub_of(asked: Collection[str], python: Path, folder: Path) -> FakeHub:
    """Configs of the snapshot, and the headers that Transformers makes of them."""
    records = {record.model_id: record for record in newest_snapshot().records}
    rows, files = [], {}
    places = {model_id: folder / "headers" / model_id.replace("/", "--") for model_id in sorted(asked)}
    new = []
    for model_id, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        config, told = place / "config.json", json.dumps(dict(records[model_id].config))
        if not (place / "header.json").exists() or config.read_text(encoding="utf-8") != told:
            config.write_text(told, encoding="utf-8")
            new.append(place)
    if new:
        subprocess.run([python, HERE / "headers.py", *new], check=True)
    for model_id, place in places.items():
        config = json.loads((place / "whole.json").read_text(encoding="utf-8"))
        header, end = {}, 0
        for name, shape in json.loads((place / "header.json").read_text(encoding="utf-8")).items():
            size = 2
            for dimension in shape:
                size *= dimension
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
            end += size
        own = {"config.json": json.dumps(config).encode(), "model.safetensors": Weights(header)}
        if end > SHARD_BYTES:
            shard = "model-00001-of-00001.safetensors"
            index = {"metadata": {"total_size": end}, "weight_map": dict.fromkeys(header, shard)}
            own |= {shard: own.pop("model.safetensors"), "model.safetensors.index.json": json.dumps(index).encode()}
        files |= {(model_id, name): content for name, content in own.items()}
        # as the Hub reads it from the files
        told = {"config": {name: config.get(name) for name in ("architectures", "model_type")}}
        told["safetensors"] = {"parameters": {"BF16": end // 2}, "total": end // 2}
        rows.append(row(model_id, files=tuple(own), **told))
    return FakeHub(rows, files)
