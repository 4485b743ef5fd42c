"""What an unfinished crawl has done, outside git: so that a crawl that is stopped, killed or out of budget goes on where it was.

    <work>/lock            held while a crawl runs
    <work>/listing/*.jsonl the rows of each finished list (and of models asked for one by one, as they come)
    <work>/done.jsonl      one line per finished model and commit: its facts, or why it is rejected; and by which rules that was settled
    <work>/answers/        small files by commit: those that are the Hub's for sure, and could be read
    <work>/apart/          a snapshot that would have lost too many known models

A line that was cut off by a kill is skipped. When a snapshot has been written the lists and `done.jsonl` are dropped: the snapshot
has it all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.hub.store import RULES

LIST_SECONDS = 24 * 3600  # a list of an interrupted crawl is used again for so long


class JournalError(RuntimeError):
    """Another crawl is running."""


class Journal:
    def __init__(self, work: Path):
        self.work = work
        self._done = work / "done.jsonl"
        self._places: dict[str, tuple[str, int]] = {}  # model_id → commit, offset of its line
        self._lock = threading.Lock()
        self._file: Any = None

    @contextmanager
    def opened(self) -> Iterator[Journal]:
        """Alone, with what was done before. Raises JournalError where another crawl holds it."""
        (self.work / "listing").mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.work / "raw", ignore_errors=True)  # answers of earlier crawls, which nobody had looked into
        with (self.work / "lock").open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(f"another crawl is running in {self.work}") from None
            self._read()
            try:
                yield self
            finally:
                self._file.close()

    def _read(self) -> None:
        self._file = self._done.open("a+b")
        self._file.seek(0)
        at = 0
        for line in self._file:
            found = _json(line) if line.endswith(b"\n") else None
            is_ours = found is not None and found.get("rules") == RULES
            if is_ours and isinstance(found.get("model_id"), str) and isinstance(found.get("sha"), str):
                self._places[found["model_id"]] = (found["sha"], at)
            at += len(line)
        if at and not line.endswith(b"\n"):
            self._file.write(b"\n")
        self._file.seek(0, os.SEEK_END)

    def has(self, model_id: str, sha: str) -> bool:
        return self._places.get(model_id, ("", 0))[0] == sha

    def add(self, model_id: str, sha: str, outcome: Mapping[str, Any]) -> None:
        """`outcome` has `facts` or `reason`. Written at once: a kill loses the models under way, no others."""
        line = (
            json.dumps({"rules": RULES, "model_id": model_id, "sha": sha, **outcome}, separators=(",", ":")).encode(
                "ascii"
            )
            + b"\n"
        )
        with self._lock:
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(line)
            self._file.flush()
            self._places[model_id] = (sha, place)

    def get(self, model_id: str, sha: str) -> dict[str, Any] | None:
        """What `add` was given for this model at this commit."""
        with self._lock:
            found, place = self._places.get(model_id, ("", 0))
            if found != sha:
                return None
            self._file.seek(place)
            line = _json(self._file.readline())
        return line and {key: value for key, value in line.items() if key != "rules"}

    def list_rows(self, query: str) -> list[dict[str, Any]] | None:
        """The rows of a list that an interrupted crawl finished, if that is not long ago."""
        path = self._list_path(query)
        try:
            if time.time() - path.stat().st_mtime > LIST_SECONDS:
                return None
            rows = [_json(line) for line in path.read_bytes().splitlines()]
        except FileNotFoundError:
            return None
        return [row for row in rows if row is not None]

    def keep_list(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        path = self._list_path(query)
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            file.writelines(_line(row) for row in rows)
        os.replace(beside, path)

    def extend_list(self, query: str, row: Mapping[str, Any]) -> None:
        """One more row of a list that grows row by row."""
        with self._lock, self._list_path(query).open("ab") as file:
            file.write(_line(row))

    def _list_path(self, query: str) -> Path:
        return self.work / "listing" / f"{hashlib.sha256(query.encode()).hexdigest()[:16]}.jsonl"

    def clear(self, *, lists_only: bool = False) -> None:
        """Forgets the lists; and all that was done, since a snapshot has it now."""
        shutil.rmtree(self.work / "listing", ignore_errors=True)
        (self.work / "listing").mkdir(parents=True, exist_ok=True)
        if not lists_only:
            with self._lock:
                self._file.truncate(0)
                self._places.clear()


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"


def _json(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
