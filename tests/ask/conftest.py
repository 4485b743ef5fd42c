"""A small almanac as a file, made of a few records of the bundled snapshot, and the command as people type it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.ask import command
from pipeline.base.caches import cache_folder
from pipeline.base.readonly import at_hand
from pipeline.press import blank, build, manifest
from pipeline.press.anatomise import anatomise
from pipeline.press.work import work_of
from tests.once import bundled_snapshot, once

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


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """build/tables as far as the command reads it: no footprints, which it does without."""
    written = once("tables-of-a-few", _write)
    # a command opens it once; here hundreds of questions do
    with at_hand(written / build.DATABASE):
        yield written


def _write(folder: Path) -> None:
    snapshot = bundled_snapshot()
    unknown = next(
        r for r in snapshot.records if r.config is None and r.stored_parameter_count is None and r.model_id not in FEW
    )
    few = (*tuple(r for r in snapshot.records if r.model_id in FEW), unknown)
    frames = anatomise(replace(snapshot, records=few, rejected=()))
    frames["work"] = work_of(frames["model"])
    assert set(FEW) <= set(frames["model"]["model_id"])
    with blank.copied(cache_folder()) as connection:
        blank.fill(connection, frames)
        build.write_file(connection, folder / build.DATABASE)
    manifest.write(folder, snapshot, {"model": len(few)}, "f" * 64)


@pytest.fixture
def alone(tmp_path, monkeypatch, folder):
    """A machine without cards, with an empty cache and a home of its own, whose almanac is the small one."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    kept = blank.kept(cache_folder())  # as on a machine that has read a config before
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_folder().mkdir(parents=True)
    (cache_folder() / kept.name).hardlink_to(kept)
    monkeypatch.setenv("VRAM_ALMANAC", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    return bin_folder


@pytest.fixture
def ask(alone, capsys):
    """Runs the command. Returns its status, what it printed, and what it said of problems."""

    def run(*arguments: object):
        try:
            status = command.main([str(a) for a in arguments])
        except SystemExit as ended:  # argparse
            status = ended.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def ask_json(ask):
    def run(*arguments: object):
        status, out, _err = ask(*arguments, "--json")
        told = json.loads(out)
        assert told["status"] == status
        return told

    return run


@pytest.fixture
def tool(alone):
    """Puts a tool of a maker on the machine: a script that prints a text and ends with a status."""

    def put(name: str, text: str, status: int = 0, unless: str = "") -> None:
        path = alone / name
        other = (
            f"""case "$*" in *{unless}*) echo 'Field "{unless}" is not a valid field to query.'; exit 2;; esac\n"""
            if unless
            else ""
        )
        path.write_text(f"#!/bin/sh\n{other}cat <<'TEXT'\n{text}\nTEXT\nexit {status}\n", encoding="utf-8")
        path.chmod(0o755)

    return put
