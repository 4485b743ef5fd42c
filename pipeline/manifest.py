"""What was published: `manifest.json` (versions, rows, checksums) and `datapackage.json` (every column's meaning)."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pipeline.compatibility import DERIVED
from pipeline.hub.snapshot import Snapshot
from pipeline.schema import ENUMS, PUBLISHED, Column, Table

FILE = "manifest.json"
SCHEMA_VERSION = "1.0.0"
_FRICTIONLESS = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "date": "date"}


def write(tables: Path, snapshot: Snapshot, row_counts: Mapping[str, int], fingerprint: str) -> None:
    """Writes both files beside the tables. `fingerprint` is that of all inputs and tells two data versions apart."""
    package = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "vram-almanac",
        "title": "VRAM Almanac",
        "version": SCHEMA_VERSION,
        "licenses": [{"name": "CC-BY-4.0", "path": "https://creativecommons.org/licenses/by/4.0/"}],
        "resources": [_resource(PUBLISHED[name]) for name in row_counts],
    }
    (tables / "datapackage.json").write_text(_json(package), encoding="utf-8")
    files = sorted(p for p in tables.iterdir() if p.is_file() and p.name != FILE)
    manifest = {
        **versions(snapshot, fingerprint),
        "snapshot_origin": snapshot.origin,
        "code_revision": _revision(),
        "row_counts": dict(row_counts),
        "files": {p.name: {"size_bytes": p.stat().st_size, "sha256": _sha256(p)} for p in files},
    }
    (tables / FILE).write_text(_json(manifest), encoding="utf-8")


def versions(snapshot: Snapshot, fingerprint: str) -> dict[str, str]:
    """What tells this release from others."""
    return {
        "data_version": f"{snapshot.date.isoformat()}-{fingerprint[:12]}",
        "schema_version": SCHEMA_VERSION,
        "snapshot_date": snapshot.date.isoformat(),
    }


def _resource(table: Table) -> dict:
    return {
        "name": table.name.replace("_", "-"),
        "path": f"{table.name}.parquet",
        "format": "parquet",
        "description": table.meaning,
        "schema": {
            # the two limits of a verdict are in the view alone
            "fields": [
                _field(column, column.name in table.nullable)
                for column in table.columns
                if table.name != "compatibility" or column.name not in DERIVED
            ],
            "primaryKey": list(table.key),
        },
    }


def _field(column: Column, is_nullable: bool) -> dict:
    constraints: dict = {} if is_nullable else {"required": True}
    if column.least is not None:
        constraints["minimum"] = column.least
    if column.name in ENUMS:
        constraints["enum"] = list(ENUMS[column.name])
    return {
        "name": column.name,
        "type": _FRICTIONLESS[column.type],
        "description": column.meaning,
        **({"unit": column.unit} if column.unit else {}),
        **({"constraints": constraints} if constraints else {}),
    }


def _revision() -> str | None:
    """The commit that the code is from; unknown outside a checkout, and marked where files differ from it."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return (
            subprocess.run(
                command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=10
            ).stdout.strip()
            or None
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(value: dict) -> str:
    return json.dumps(value, indent=1, sort_keys=False, ensure_ascii=False) + "\n"
