"""What was worked out before, by what it is made of: rows of formulas that need not be asked again while their key is the same.

A key is a hash of all that its rows are made of: of the models' rows that formulas read, and of formulas, facts and code themselves. A pack
is a folder with the rows of some keys:

    <name>/<table>.parquet    rows, each with its `key`; or of one key a piece of a published file, as it lies there
    <name>/pack.json          keys, and the checksum of every file; sealed, so that it is as it was written or is not used

A pack comes into being under another name and is renamed when it is whole. One that is damaged is removed and its rows are worked out anew.
What is used least recently goes first where all packs together are too large. Nothing here is needed: a folder that cannot be written to,
or is lost, costs time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import ROOT
from pipeline.base.sealed import sealed, unsealed
from pipeline.book.facts import TABLES

FILE = "pack.json"
_MAKING, _LEFT_SECONDS = ".making-", 24 * 3600
_GROUP_BYTES = 250_000  # of values that are unpacked together
MOST_BYTES = 500_000_000  # of all packs: those of one build of 3,400 models take a sixth
# what formulas are made of, and what translates those of them that polars runs
_MADE_OF = (
    TABLES / "facts",
    TABLES / "schema",
    TABLES / "sql",
    ROOT / "pipeline" / "book",
    ROOT / "pipeline" / "press",
    *(
        ROOT / "pipeline" / "render" / "data" / f"{name}.py"
        for name in ("rules", "mirror", "mirror_words", "column_words")
    ),
)


def fingerprint() -> str:
    """Of formulas, facts and what runs them."""
    # (the package of the command has no pages, and none of their rules)
    return digest_of((*_MADE_OF, TABLES / "measured.csv"), (".csv", ".sql", ".py"), duckdb.__version__)


def digest_of(tops: Iterable[Path], suffixes: Collection[str], text: str = "") -> str:
    """Of all files of these kinds in some folders, and of some files themselves."""
    digest = hashlib.sha256(text.encode())
    files = (path for top in tops if top.exists() for path in (top.rglob("*") if top.is_dir() else [top]))
    for path in sorted(path for path in files if path.suffix in suffixes):
        digest.update(f"{path.relative_to(TABLES.parent)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Packs:
    """The packs of a folder, which need not exist."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self.used: set[Path] = set()
        self._told: dict[Path, dict] = {}  # a pack is named by what its manifest says: read once

    def __reduce__(self) -> tuple:
        """Another process is told where they lie, and reads them itself."""
        return Packs, (self.folder, self.most_bytes)

    def taken(self, keys: Collection[str]) -> Iterator[tuple[list[str], dict[str, pa.Table]]]:
        """The rows that are known of these keys, a pack at a time: the keys that are to be taken from it, and its tables, which may hold
        others too. What is damaged is removed."""
        for has, content in self._taken(keys):
            yield has, {name.removesuffix(".parquet"): _table(found) for name, found in content.items()}

    def _taken(self, keys: Collection[str]) -> Iterator[tuple[list[str], dict[str, bytes]]]:
        wanted = set(keys)
        for pack in self._all():
            told = self._manifest(pack)
            has = wanted.intersection(told.get("keys", ()))
            if told and not has:
                continue
            content = _content(pack, told, told["files"]) if told else None
            if content is None:
                self._remove(pack)
                continue
            wanted -= has
            self.use(pack)
            yield sorted(has), content

    def places(self, keys: Collection[str]) -> dict[str, Path]:
        """The packs that say that they hold these keys, by key; nothing of them is read yet."""
        wanted = set(keys)
        return {key: pack for pack in self._all() for key in wanted.intersection(self._manifest(pack).get("keys", ()))}

    def content(self, pack: Path, name: str) -> bytes | None:
        """A file of a pack as it was written; None where it is not, and then the pack is removed."""
        content = _content(pack, self._manifest(pack), [name])
        if content is None:
            self._remove(pack)
            return None
        self.use(pack)
        return content[name]

    def put(self, keys: Sequence[str], tables: Mapping[str, pa.Table]) -> bool:
        """Keeps the rows of some keys; a key without rows is known to have none. False where the folder takes none."""
        files = {}
        for name, rows in tables.items():
            pq.write_table(rows, file := io.BytesIO(), compression="zstd")
            files[f"{name}.parquet"] = file.getvalue()
        return self.put_files(keys, files)

    def put_files(self, keys: Sequence[str], content: Mapping[str, bytes]) -> bool:
        """The same of files that are written already."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=_MAKING) as making:
                made = Path(making, "pack")
                made.mkdir()
                for name, written in content.items():
                    (made / name).write_bytes(written)
                files = {name: hashlib.sha256(content[name]).hexdigest() for name in sorted(content)}
                text = json.dumps(sealed({"keys": sorted(keys), "files": files}))
                (made / FILE).write_text(text + "\n", encoding="utf-8")
                pack = self.folder / hashlib.sha256(text.encode()).hexdigest()[:32]
                if not pack.exists():
                    made.rename(pack)
                self._told.pop(pack, None)
                self.use(pack)
        except OSError:
            return False
        return True

    def values(self, keys: Collection[str], what: str) -> dict[str, bytes]:
        """What `keep` has of these keys, as it was given there."""
        found: dict[str, bytes] = {}
        for has, content in self._taken(keys):
            held = _rows_of(content[f"{what}.parquet"], has)
            found |= zip(held["key"].to_pylist(), held[what].to_pylist(), strict=True)
        return found

    def keep(self, values: Mapping[str, bytes], what: str) -> bool:
        """Keeps a value for each of some keys, all in one pack."""
        names = sorted(values)
        held = pa.table(
            {"key": pa.array(names, pa.string()), what: pa.array([values[name] for name in names], pa.large_binary())}
        )
        if not names:
            return True
        pq.write_table(held, file := io.BytesIO(), compression="zstd", row_group_size=_few(held))
        return self.put_files(names, {f"{what}.parquet": file.getvalue()})

    def tidy(self) -> None:
        """Removes the packs that were used least recently until the others are small enough. What this run used stays."""
        total = 0
        for pack in sorted(self._all(), key=lambda pack: (pack in self.used, _used_at(pack)), reverse=True):
            total += _size(pack)
            if total > self.most_bytes and pack not in self.used:
                self._remove(pack)
        for making in self.folder.glob(f"{_MAKING}*"):
            if time.time() - _used_at(making) > _LEFT_SECONDS:  # begun, and never ended
                shutil.rmtree(making, ignore_errors=True)

    def _remove(self, pack: Path) -> None:
        shutil.rmtree(pack, ignore_errors=True)
        self._told.pop(pack, None)

    def _manifest(self, pack: Path) -> dict:
        if pack not in self._told:
            self._told[pack] = _manifest(pack)
        return self._told[pack]

    def _all(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted(p for p in self.folder.iterdir() if p.is_dir() and not p.name.startswith("."))

    def use(self, pack: Path) -> None:
        """It is not removed by this run."""
        self.used.add(pack)
        with suppress(OSError):  # of another user: then it is only older than it is
            os.utime(pack)


def _used_at(pack: Path) -> float:
    try:
        return pack.stat().st_mtime
    except OSError:
        return 0.0


def _size(pack: Path) -> int:
    try:
        return sum(file.stat().st_size for file in pack.iterdir())
    except OSError:  # another build removed it
        return 0


def _manifest(pack: Path) -> dict:
    try:
        return unsealed((pack / FILE).read_bytes())
    except OSError:
        return {}


def _content(pack: Path, told: Mapping[str, Any], names: Collection[str]) -> dict[str, bytes] | None:
    """Files of a pack; None where one is not what it was written as."""
    found = {}
    for name in names:
        try:
            found[name] = (pack / name).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(found[name]).hexdigest() != told.get("files", {}).get(name):
            return None
    return found


def _table(content: bytes) -> pa.Table:
    # (thousands of rows have one key)
    return pq.read_table(pa.BufferReader(content), read_dictionary=["key"])


def _few(held: pa.Table) -> int:
    """Rows of a group: whoever asks for some values unpacks little else."""
    return max(1, _GROUP_BYTES * held.num_rows // max(held.nbytes, 1))


def _rows_of(content: bytes, keys: Collection[str]) -> pa.Table:
    """The rows of these keys, of which no more than their groups are unpacked."""
    file, wanted = pq.ParquetFile(pa.BufferReader(content)), pa.array(sorted(keys), pa.string())
    found = []
    for group in range(file.num_row_groups):
        held = pc.is_in(file.read_row_group(group, ["key"])["key"], wanted)
        if pc.any(held).as_py():
            found.append(file.read_row_group(group).filter(held))
    return pa.concat_tables(found) if found else file.schema_arrow.empty_table()
