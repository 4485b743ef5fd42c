"""The day of the tests of the Hub: the one on which they began, for what they test too, so that a run may last over midnight."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import pytest

TODAY = datetime.date.today().isoformat()
_ASKS = ("hub.crawl", "hub.select", "hub.snapshot", "cli.console")


class _Standing(datetime.date):
    @classmethod
    def today(cls) -> datetime.date:
        return datetime.date.fromisoformat(TODAY)


def stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules that ask which day it is are told this one."""
    told = SimpleNamespace(**{**vars(datetime), "date": _Standing})
    for module in _ASKS:
        monkeypatch.setattr(f"pipeline.{module}.datetime", told)
