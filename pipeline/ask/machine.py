"""The cards of this machine, as the maker's own tool tells them.

nvidia-smi, rocm-smi or, on a Mac, sysctl. What each prints is its own: nvidia-smi's columns are those that `nvidia-smi --help-query-gpu` lists,
rocm-smi's keys those of its JSON. A tool that is not there is no error; one that fails says why.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from dataclasses import dataclass

from .problems import NoCard

PATIENCE_SECONDS = 10
MIB = 1024**2
# less is the part of a processor that draws the screen
_LEAST_BYTES = 2 * 1024**3
_COLUMNS = ("name", "memory.total", "memory.free", "mig.mode.current")


@dataclass(frozen=True)
class Found:
    """A card as its driver tells it. `free_bytes` and `total_bytes` are null where it does not say."""

    name: str
    total_bytes: int | None
    free_bytes: int | None
    is_sliced: bool = False


class _Failed(Exception):
    """A tool that is there and does not answer, with what it says."""


def cards() -> list[Found]:
    """The cards of this machine. Raises Wrong with what to do where there is none, or none can be told."""
    said = []
    for name, read in (("nvidia-smi", _nvidia), ("rocm-smi", _amd), ("sysctl", _apple)):
        if (name == "sysctl" and platform.system() != "Darwin") or shutil.which(name) is None:
            continue
        try:
            if found := read():
                return found
            said.append(f"{name} lists no card")
        except _Failed as reason:
            said.append(f"{name}: {reason}")
    why = "; ".join(said) or "neither nvidia-smi nor rocm-smi is here"
    raise NoCard(
        f"No card of this machine was found ({why}). Name one: --gpu rtx-4090, or an amount of memory: --free 10GiB"
    )


def _nvidia() -> list[Found]:
    try:
        text = _run("nvidia-smi", f"--query-gpu={','.join(_COLUMNS)}", "--format=csv,noheader,nounits")
    except _Failed as reason:
        if "not a valid field" not in str(reason):
            raise
        text = _run(
            "nvidia-smi", f"--query-gpu={','.join(_COLUMNS[:3])}", "--format=csv,noheader,nounits"
        )  # drivers before MIG
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 3:
            found.append(Found(fields[0], _mib(fields[1]), _mib(fields[2]), fields[3:4] == ["Enabled"]))
        elif line.strip() and "no devices" not in line.lower():
            raise _Failed(line.strip())
    return found


def _amd() -> list[Found]:
    try:
        told = json.loads(_run("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"))
    except ValueError:
        raise _Failed("what it prints is no JSON") from None
    found = []
    for name, card in sorted(told.items()) if isinstance(told, dict) else ():
        if not name.startswith("card") or not isinstance(card, dict):
            continue
        total, used = (_number(card.get(f"VRAM Total {what}Memory (B)")) for what in ("", "Used "))
        if total is None or total >= _LEAST_BYTES:
            free = None if total is None or used is None else total - used
            found.append(Found(str(card.get("Card Series") or card.get("Card series") or name), total, free))
    return found


def _apple() -> list[Found]:
    """The chip with the size of its memory, by which the almanac names it. What a program may have of it is the almanac's to say."""
    brand, size = (_run("sysctl", "-n", key).strip() for key in ("machdep.cpu.brand_string", "hw.memsize"))
    total = _number(size)
    if not brand.startswith("Apple") or total is None:
        return []
    return [Found(f"{brand} {total / 1024**3:.0f}GB", total, None)]


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise _Failed(f"no answer in {PATIENCE_SECONDS} seconds") from None
    except OSError as error:
        raise _Failed(error.strerror or str(error)) from None
    if done.returncode:
        # nvidia-smi says it on standard output
        said = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        raise _Failed(said[0] if said else f"it ended with status {done.returncode}")
    return done.stdout


def _mib(text: str) -> int | None:
    number = _number(text)
    return None if number is None else number * MIB


def _number(text: object) -> int | None:
    """A whole number; nothing for `[N/A]` and its like."""
    text = str(text).strip()
    return int(text) if text.isascii() and text.isdigit() else None
