"""What a crawl costs, against a Hub on loopback: `python -m tests.hub.bench_crawl [models] [--memory N]`. Not part of the suite.

Prints requests per model for a first crawl and for one of an unchanged Hub, models per second next to the bare client's
(`list_models`, then `hf_hub_download` of each config), and the peak memory of a listing of N models. The server runs in a
process of its own; both share the machine, so trust the ratios.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fake_hub.models import config, plain, safetensors
from tests.fake_hub.server import FakeHub


def _serve(count: int, pipe) -> None:
    names = [f"{chr(97 + i % 26)}org{i % 300}/model-{i}" for i in range(count)]
    body = config()
    header = safetensors({f"model.layers.{i}.mlp.up_proj.weight": ("BF16", [8, 8], 128) for i in range(32)})
    files = {"config.json": body, "model.safetensors": header}
    held = {(name, file): content for name in names for file, content in files.items()}
    with FakeHub([plain(name) for name in names], held, page=1000).serving() as hub:
        rows = {row["id"]: row for row in hub.models}
        hub.row = rows.get
        pipe.send(hub.url)
        pipe.recv()


def _crawl(url: str, top: Path, count: int) -> tuple[float, int]:
    from pipeline.base.progress import quiet
    from pipeline.hub.crawl import crawl
    from pipeline.hub.settings import Settings

    for name, lines in {
        "crawl": "pipeline_tag,share\ntext-generation,1\n",
        "include": "model_id,kind,reason,named_in\n",
        "exclude": "pattern,reason\n",
    }.items():
        (top / f"{name}.csv").write_text(lines)
    (top / "hub").mkdir(exist_ok=True)
    settings = Settings(
        folder=top / "hub",
        work=top / "work",
        lists=top,
        endpoint=url,
        model_count=count,
        trending_share=0,
        rates={"api": 1e12, "file": 1e12},
    )
    started = time.monotonic()
    done = crawl(settings, quiet)
    assert done.written == count and not done.rejected
    return time.monotonic() - started, sum(done.requests.values())


def _bare(url: str, count: int) -> float:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    started = time.monotonic()
    rows = list(
        HfApi(endpoint=url).list_models(pipeline_tag="text-generation", expand=["sha", "safetensors"], limit=count)
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda row: hf_hub_download(row.id, "config.json", revision=row.sha, endpoint=url), rows))
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=int, nargs="?", default=2000)
    parser.add_argument("--memory", type=int, metavar="N", help="only the peak memory of a crawl of N models, twice")
    asked = parser.parse_args()
    count = asked.memory or asked.models
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(count, theirs), daemon=True)
    server.start()
    url = ours.recv()
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        first, requests = _crawl(url, top, count)
        again, requests_again = _crawl(url, top, count)
        print(
            f"first crawl       {first:8.1f} s  {count / first:8.0f} models/s  {requests / count:.3f} requests a model"
        )
        print(
            f"unchanged Hub     {again:8.1f} s  {count / again:8.0f} models/s  {requests_again / count:.4f} requests a model"
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"peak memory       {peak:8.0f} MiB at {count:,} models")
        if not asked.memory:
            bare = _bare(url, count)
            print(f"bare client       {bare:8.1f} s  {count / bare:8.0f} models/s  (crawl / bare {bare / first:.2f})")
    ours.send("stop")
    server.join(10)


if __name__ == "__main__":
    if "HF_HOME" not in os.environ:
        # the library reads it at import, and nothing of a benchmark belongs into anybody's cache
        with tempfile.TemporaryDirectory() as home:
            quiet = {"HF_HOME": home, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
            status = os.spawnve(
                os.P_WAIT, sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **quiet}
            )
        sys.exit(status)
    main()
