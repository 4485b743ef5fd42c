"""Where this machine keeps what can be made again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """Where copies are kept, as each system has it."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "vram-almanac"
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local) / "vram-almanac"
    home = Path.home()
    library = home / "Library" / "Caches"
    return (
        (library if library.is_dir() else home / ".cache") / "vram-almanac"
        if home.is_dir()
        else Path(tempfile.gettempdir())
    )
