"""A copy of the almanac that lies at an address: fetched once, asked after once a day, whole or not used.

The manifest is asked for with its ETag; it is sealed, and holds the checksum of the database. What broke off is gone on with by a range.
Where the address does not answer, the copy does, and says how old it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from pipeline.base.bounds import visible
from pipeline.base.caches import cache_folder
from pipeline.base.sealed import unsealed

from .almanac import DATABASE, MANIFEST, check_version
from .problems import NoData

DAY_SECONDS = 24 * 3600  # between two questions whether there is a newer one
PATIENCE_SECONDS = 5  # for the manifest: somebody waits for an answer that the copy has
LONG_PATIENCE_SECONDS = 30  # for the next part of the database
TRIES = 4  # of a database that breaks off
LARGEST_MANIFEST_BYTES = 16 * 1024**2
LARGEST_BYTES = 4 * 1024**3
VERSION = "{data_version}"  # in an address of tables
_PART_BYTES = 1024**2
_STATE = "state.json"
_LAST = "last.json"


@dataclass(frozen=True)
class Copy:
    path: Path
    address: str
    note: str = ""


class _NoAnswer(Exception):
    """An address that does not answer, or not with what was asked for."""


def last_copy() -> Copy | None:
    """The copy that was last asked, where there is one."""
    address = _read(cache_folder() / _LAST).get("address")
    return copy_of(address) if isinstance(address, str) else None


def copy_of(address: str, *, is_fresh: bool = False, now: float | None = None) -> Copy:
    """The copy of an address, fetched or brought up to date first where that is due. Raises NoData."""
    address = address.removesuffix(f"/{DATABASE}")
    now = time.time() if now is None else now
    folder = cache_folder() / hashlib.sha256(address.encode()).hexdigest()[:16]
    state = _read(folder / _STATE)
    path = folder / str(state.get("copy", "")) / DATABASE
    is_whole = bool(state.get("copy")) and path.is_file() and path.stat().st_size == state.get("size_bytes")
    if is_whole and not is_fresh and 0 <= now - float(state.get("asked_at", 0)) < DAY_SECONDS:
        return Copy(path, address)
    try:
        path = _brought_up_to_date(address, folder, state if is_whole else {}, now)
    except _NoAnswer as reason:
        if not is_whole:
            raise NoData(f"{visible(address)} does not give an almanac: {reason}") from None
        days = max(0, int((now - float(state.get("asked_at", 0))) // DAY_SECONDS))
        age = f"{days} days ago" if days > 1 else "a day ago" if days else "today"
        return Copy(
            path, address, f"{visible(address)} does not answer ({reason}): this is the copy last compared {age}"
        )
    except OSError as error:
        raise NoData(f"The copy of {visible(address)} cannot be kept in {folder}: {error.strerror or error}") from None
    return Copy(path, address)


def _brought_up_to_date(address: str, folder: Path, state: dict[str, Any], now: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    answer = _manifest(address, state.get("etag"))
    if answer is None:  # the same as before
        name, etag, size = state["copy"], state.get("etag"), state["size_bytes"]
    else:
        text, etag = answer
        source, manifest = address, _read_manifest(text)
        if tables := _tables_of(manifest, address):
            source, (text, _etag) = tables, _manifest(tables, None)
            manifest = _read_manifest(text)
        try:
            check_version(manifest.get("schema_version"), "it")
        except NoData as reason:
            raise _NoAnswer(str(reason)) from None
        told = manifest.get("files", {}).get(DATABASE) or {}
        name, size = str(told.get("sha256", "")), told.get("size_bytes")
        if len(name) != 64 or not name.isalnum() or not isinstance(size, int) or not 0 < size <= LARGEST_BYTES:
            raise _NoAnswer(f"its manifest names no {DATABASE}")
        if state.get("copy") != name:
            _fetch(f"{source}/{DATABASE}", folder, name, size)
        _write(folder / name / MANIFEST, text)
    _write(
        folder / _STATE, _json({"copy": name, "size_bytes": size, "etag": etag, "asked_at": now, "address": address})
    )
    _write(folder.parent / _LAST, _json({"address": address}))
    for old in folder.iterdir():
        if old.is_dir() and old.name != name:
            shutil.rmtree(old, ignore_errors=True)  # another program may read it yet
    return folder / name / DATABASE


def _read_manifest(text: bytes) -> dict[str, Any]:
    manifest = unsealed(text)
    if not manifest:
        raise _NoAnswer("its manifest is damaged, or none of ours")
    return manifest


def _tables_of(manifest: dict[str, Any], address: str) -> str | None:
    """Where the tables of a site lie, as its manifest says; None where the address is that of tables."""
    tables_url, tables = manifest.get("tables_url"), manifest.get("tables")
    if not isinstance(tables_url, str) or not isinstance(tables, dict):
        return None
    if not tables_url:
        return f"{address}/tables"
    place = tables_url.replace(VERSION, str(tables.get("data_version"))).rstrip("/")
    if not place.startswith(("http://", "https://")):
        raise _NoAnswer("its manifest names no address of tables")
    return place


def _manifest(address: str, etag: str | None) -> tuple[bytes, str | None] | None:
    """The manifest and its ETag; None where it is as it was."""
    headers = {"If-None-Match": etag} if etag else {}
    try:
        with _asked(f"{address}/{MANIFEST}", headers, PATIENCE_SECONDS) as answer:
            text = answer.read(LARGEST_MANIFEST_BYTES)
            return text, answer.headers.get("ETag")
    except HTTPError as error:
        if error.code == 304 and etag:
            return None
        raise _NoAnswer(f"{MANIFEST}: {error.code} {visible(str(error.reason))}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        raise _NoAnswer(_said(error)) from None


def _fetch(url: str, folder: Path, checksum: str, size: int) -> None:
    """The database, into a folder of its own name; what broke off is gone on with, also in another run."""
    part = folder / f"{checksum}.part"
    reason = "it breaks off"
    for _try in range(TRIES):
        have = part.stat().st_size if part.exists() else 0
        if have >= size:
            break
        try:
            _more(url, part, have, size)
        except HTTPError as error:
            if error.code == 416:  # what is here is no beginning of what is there
                part.unlink(missing_ok=True)
                continue
            raise _NoAnswer(f"{DATABASE}: {error.code} {visible(str(error.reason))}") from None
        except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
            reason = _said(error)
    if not part.exists() or part.stat().st_size < size:
        raise _NoAnswer(f"{DATABASE}: {reason}; the next run goes on with it")
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != checksum or part.stat().st_size != size:
        part.unlink()
        raise _NoAnswer(f"{DATABASE} is not what its manifest says (another checksum); nothing of it is kept")
    (folder / checksum).mkdir(exist_ok=True)
    part.replace(folder / checksum / DATABASE)


def _more(url: str, part: Path, have: int, size: int) -> None:
    headers = {"Range": f"bytes={have}-"} if have else {}
    with _asked(url, headers, LONG_PATIENCE_SECONDS) as answer:
        starts = str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
        goes_on = answer.status == 206 and starts
        if not (have and goes_on):
            part.unlink(missing_ok=True)
            have = 0
        with part.open("ab") as file:
            written = have
            while written < size and (piece := answer.read(min(_PART_BYTES, size - written))):
                file.write(piece)
                written += len(piece)
                _tell(written, size)


def _asked(url: str, headers: dict[str, str], patience: float) -> HTTPResponse:
    request = Request(url, headers={"User-Agent": "vram-almanac", "Accept-Encoding": "identity", **headers})
    return urlopen(request, timeout=patience)


def _tell(written: int, size: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if written >= size else ""
        print(
            f"\rFetching the almanac: {written / 1e6:,.0f} of {size / 1e6:,.0f} MB",
            end=end,
            file=sys.stderr,
            flush=True,
        )


def _said(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return visible(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _write(path: Path, content: bytes) -> None:
    """At once: who reads it finds the old or the new."""
    scratch = path.with_name(f"{path.name}.new")
    scratch.write_bytes(content)
    scratch.replace(path)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=1).encode()
