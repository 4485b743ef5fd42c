"""A crawl of the fake Hub into a folder of its own, with the real client and quick patience."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.base.progress import quiet
from pipeline.hub.crawl import Crawled, crawl
from pipeline.hub.settings import Settings
from pipeline.hub.snapshot import Snapshot, newest_snapshot
from tests.fake_hub.day import stand_still
from tests.fake_hub.models import config, plain
from tests.fake_hub.patience import QUICK
from tests.fake_hub.server import FakeHub

FREE = {"api": 1e9, "file": 1e9}


class Case:
    """`hub` serves while the test runs; `crawl()` is one run of the command on it."""

    def __init__(self, folder: Path, hub: FakeHub):
        self.hub, self.top = hub, folder
        self.folder, self.work = folder / "hub", folder / "work"
        self.folder.mkdir()
        self.list("crawl", "pipeline_tag,share", "text-generation,1")
        self.list("include", "model_id,kind,reason,named_in")
        self.list("exclude", "pattern,reason")
        self.list("limit", "token,api_requests,file_requests,window_seconds", "none,500,3000,300", "free,1000,5000,300")

    def list(self, name: str, *lines: str) -> None:
        (self.top / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def settings(self, **more: Any) -> Settings:
        plain_settings = Settings(
            folder=self.folder,
            work=self.work,
            lists=self.top,
            endpoint=self.hub.url,
            rates=FREE,
            patience=QUICK,
            threads=4,
            header_requests=0,  # tests of headers say otherwise
        )
        return replace(plain_settings, **more)

    def crawl(self, **more: Any) -> Crawled:
        return crawl(self.settings(**more), quiet, self.said.append)

    @property
    def said(self) -> list[str]:
        return self.__dict__.setdefault("_said", [])

    def add(self, *model_ids: str, **more: Any) -> None:
        """Plain models with a config."""
        for model_id in model_ids:
            self.hub.models.append(plain(model_id, **more))
            self.hub.files[model_id, "config.json"] = config()

    def requests(self, pattern: str = "") -> int:
        """Requests since the last call."""
        count = self.hub.asked(pattern)
        self.hub.log.clear()
        return count

    def snapshot(self) -> Snapshot:
        return newest_snapshot(self.folder)

    def records(self) -> dict[str, dict[str, Any]]:
        shards = sorted(self.folder.glob("crawl/model/*.jsonl"))
        lines = [line for path in shards for line in path.read_text(encoding="utf-8").splitlines()]
        return {record["model_id"]: record for record in map(json.loads, lines)}

    def reasons(self) -> dict[str, str]:
        return {rejected.model_id: rejected.reason for rejected in self.snapshot().rejected}

    def stable(self) -> dict[str, bytes]:
        """The bytes of everything but popularity and the date."""
        paths = [*self.folder.glob("crawl/model/*"), self.folder / "crawl" / "rejected.csv"]
        return {path.name: path.read_bytes() for path in paths}

    def bundle(self, *records: dict[str, Any], date: str = "2020-01-02", popularity: str = "") -> None:
        """A bundled snapshot to start from."""
        (self.folder / "model").mkdir(exist_ok=True)
        about = {"format": 1, "snapshot_date": date, "origin": "bundled", "record_count": len(records)}
        (self.folder / "snapshot.json").write_text(json.dumps(about))
        (self.folder / "popularity.csv").write_text("model_id,downloads_30d,likes,facts_as_of\n" + popularity)
        for record in records:
            with (self.folder / "model" / f"{record['model_id'][0].lower()}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, sort_keys=True) + "\n")


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    stand_still(monkeypatch)
    with FakeHub([], {}).serving() as hub:
        yield Case(tmp_path, hub)
