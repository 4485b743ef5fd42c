"""The command `vram-almanac`: what fits which card, asked of the published file, in a terminal.

It has no formula of its own: every number is an answer of a macro of `almanac.duckdb`. Installed, it is the package `vram_almanac`, and the
rooms of the press that read a config.json lie inside it, in `house/`, as they lie in a checkout (pyproject.toml).
"""

import sys
from pathlib import Path

_HOUSE = Path(__file__).parent / "house"
if _HOUSE.is_dir() and str(_HOUSE) not in sys.path:
    sys.path.insert(0, str(_HOUSE))
