"""What words of a question say, as an option and its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """What a word or several say: the option, its value, and the words of the command for it. `note` is of what no option asks."""

    option: str
    value: Any
    flag: str = ""
    note: str = ""
    is_loose: bool = False  # whether another word may say it more closely: fine-tune, of a QLoRA


def quoted(text: str) -> str:
    """A value as it is typed behind its option."""
    return f"'{text}'" if " " in text else text
