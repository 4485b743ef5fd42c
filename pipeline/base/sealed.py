"""A manifest that holds its own checksum: it is as it was written, or it is not used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same with its own checksum, as the last of its values."""
    rest = {name: value for name, value in manifest.items() if name != "checksum"}
    return {**rest, "checksum": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def unsealed(text: str | bytes) -> dict[str, Any]:
    """The manifest that a text is; empty where it is none, or none that is as it was written."""
    try:
        found = json.loads(text)
        return found if isinstance(found, dict) and found == sealed(found) else {}
    except (ValueError, RecursionError):
        return {}
