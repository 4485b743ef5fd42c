"""A small almanac as a file, made of a few records of the bundled snapshot, once for all workers: as a build writes it, without the figures
that it precomputes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.book.packs import Packs
from pipeline.press import blank, build, layers, lookup, manifest
from pipeline.press.anatomise import anatomise
from pipeline.press.work import work_of
from tests.once import blank_folder, bundled_snapshot, once

TEXT, SMALL, LARGE, EXPERTS = "Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B", "openai/gpt-oss-20b"
PACKED, PIPELINE = "unsloth/Qwen3-8B-GGUF", "stabilityai/stable-diffusion-xl-base-1.0"
SEEING, COPIES = "Qwen/Qwen3.5-4B", ("unsloth/Qwen3.5-4B-GGUF", "Systran/faster-whisper-tiny")
SPEAKS, HEARS, LISTENS = "hexgrad/Kokoro-82M", "facebook/wav2vec2-base-960h", "Qwen/Qwen3-ASR-0.6B"
WEIGHED = "microsoft/TRELLIS-image-large"  # its tensors are known, and no more
FORECASTS, DETECTS = "amazon/chronos-2", "docling-project/docling-layout-heron"  # their forward pass was counted whole
FEW = (
    TEXT, SMALL, LARGE, EXPERTS, PACKED, PIPELINE, "Qwen/Qwen3-14B", "BAAI/bge-m3", SEEING, "openai/whisper-tiny", *COPIES,
    SPEAKS, HEARS, LISTENS, FORECASTS, DETECTS, WEIGHED,
)  # fmt: skip


def written() -> Path:
    """Its folder, as build/tables."""
    return once("tables-of-a-few", _write)


def layered() -> Path:
    """The folder of another that has the published figures of some of its models, and how they are shared with the CPU."""
    return once("tables-of-some-layers", lambda folder: _write(folder, [EXPERTS, LARGE, TEXT]))


def written_out() -> Path:
    """Where the texts of macros are kept as a file has them."""
    return once("texts-of-macros", lambda _folder: None)


def _write(folder: Path, figured: list[str] | None = None) -> None:
    snapshot = bundled_snapshot()
    unknown = next(
        r for r in snapshot.records if r.config is None and r.stored_parameter_count is None and r.model_id not in FEW
    )
    few = (*tuple(r for r in snapshot.records if r.model_id in FEW), unknown)
    frames = anatomise(replace(snapshot, records=few, rejected=()))
    frames["work"] = work_of(frames["model"])
    assert set(FEW) <= set(frames["model"]["model_id"])
    with blank.copied(blank_folder()) as connection:
        blank.fill(connection, frames)
        if figured:
            lookup.fill_footprints(connection, models=figured)
            asked = "SELECT DISTINCT model_id, dtype_id FROM footprint WHERE engine_id = 'llama.cpp'"
            connection.execute(f"INSERT INTO {layers.LAYERS} BY NAME WITH layered AS ({asked}) {layers.WEIGHED}")
        # (its macros are those of the other, whose texts are kept)
        build.write_file(connection, folder / build.DATABASE, Packs(written_out()))
    manifest.write(folder, snapshot, {"model": len(few)}, "f" * 64)
