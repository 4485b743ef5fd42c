"""The commands of the pipeline (`python -m pipeline --help`): argument parsing and calls, nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pipeline import build, changes, console, output, own, publish, serve, sources
from pipeline.anatomy.describe import describe_file
from pipeline.facts import FactError
from pipeline.hub.journal import JournalError
from pipeline.hub.settings import WINDOW_SECONDS, Settings, SettingsError
from pipeline.hub.snapshot import SnapshotError, newest_snapshot
from pipeline.hub.traffic import HubError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeline", description="VRAM Almanac: tables and site.")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("publish", help="build the tables and the site from the newest snapshot")
    make.add_argument(
        "--output",
        type=Path,
        default=publish.ROOT / "build",
        help="folder to publish to, empty or a release of ours (default: build)",
    )
    make.add_argument(
        "--no-crawl",
        action="store_true",
        help="publish from the last snapshot, without asking the Hub (or ALMANAC_CRAWL=0)",
    )
    hub = commands.add_parser("crawl", help="refresh the snapshot from the Hub; goes on where the last one stopped")
    hub.add_argument("--models", type=int, metavar="N", help="most downloaded models to list (default: 5000)")
    hub.add_argument("--budget", type=int, metavar="N", help="requests to make at most; what is then read is written")
    hub.add_argument(
        "--headers",
        type=int,
        metavar="N",
        help="requests for tensor headers at most (default: 10000; 0: none but for totals that the Hub does not list)",
    )
    hub.add_argument("--dry-run", action="store_true", help="read the lists, say what would be asked, write nothing")
    hub.add_argument("--again", action="store_true", help="read models too whose commit has not changed")
    hub.add_argument(
        "--rate", type=float, metavar="N", help="requests per second, instead of the Hub's published limits"
    )
    hub.add_argument("--threads", type=int, metavar="N", help="models to read at a time (default: 8)")
    hub.add_argument("--output", type=Path, metavar="FOLDER", help="folder of the snapshot (default: tables/hub)")
    hub.add_argument("--work", type=Path, metavar="FOLDER", help="folder of an unfinished crawl (default: .cache/hub)")
    show = commands.add_parser(
        "source", help="show where a fact is from, for example gpu/rtx-4090 or constant/cuda_gap_ratio"
    )
    show.add_argument("fact")
    host = commands.add_parser("serve", help="serve the built site on this machine")
    host.add_argument("--port", type=int, default=8000)
    host.add_argument("--site", type=Path, default=publish.ROOT / "build" / "site")
    tell = commands.add_parser(
        "anatomy", help="describe the model of a config.json: parameters by class, what it caches"
    )
    tell.add_argument("config", type=Path)
    fits = commands.add_parser(
        "fits", help="say what of a model that the almanac does not hold fits a card, from its config.json"
    )
    fits.add_argument("config", type=Path)
    fits.add_argument("--gpu", default="rtx-4090", metavar="ID", help="card, as in the table gpu (default: rtx-4090)")
    fits.add_argument("--context", type=int, default=8192, metavar="TOKENS", help="of one sequence (default: 8192)")
    fits.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help=f"keep the DuckDB file, to ask FROM footprint_of('{own.MODEL_ID}', ...)",
    )
    commands.add_parser("release", help="keep a digest of what is built; the next builds tell what changed since")
    commands.add_parser("check", help="check the published files and tables: prints what is damaged, and the bad rows")
    host_size = commands.add_parser(
        "hosting", help="say whether page hosts take the built site: bytes, files, largest file"
    )
    host_size.add_argument("--site", type=Path, default=publish.ROOT / "build" / "site")
    commands.add_parser("accuracy", help="compare the formulas with the published measurements and print our error")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "crawl":
            return console.crawl(_settings(asked))
        if asked.command == "publish":
            output.refuse(asked.output)
            if not asked.no_crawl and os.environ.get("ALMANAC_CRAWL") != "0":
                console.refresh(Settings())
            console.publish(newest_snapshot(), asked.output)
        elif asked.command == "source":
            print("\n".join(sources.source_of(asked.fact)))
        elif asked.command == "anatomy":
            print(describe_file(asked.config))
        elif asked.command == "fits":
            with own.book_of(asked.config, asked.keep) as book:
                print(own.told(book, asked.gpu, asked.context))
        elif asked.command == "release":
            changes.keep(publish.ROOT / "build" / "tables", publish.ROOT / publish.RELEASE)
        elif asked.command == "check":
            return console.check(publish.ROOT / "build" / "tables" / build.DATABASE)
        elif asked.command == "hosting":
            return console.hosting_of(asked.site)
        elif asked.command == "accuracy":
            console.compare(newest_snapshot())
        else:
            serve.serve(asked.site, asked.port)
    except (
        FactError,
        SnapshotError,
        publish.PublishError,
        HubError,
        JournalError,
        SettingsError,
        own.OwnModelError,
        LookupError,
        OSError,
    ) as error:
        print(f"error: {error.args[0] if isinstance(error, LookupError) and error.args else error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: what was published is untouched", file=sys.stderr)
        return 130
    return 0


def _settings(asked: argparse.Namespace) -> Settings:
    """What the command line says; the rest by default."""
    given = {
        "model_count": asked.models,
        "budget": asked.budget,
        "header_requests": asked.headers,
        "threads": asked.threads,
        "folder": asked.output,
        "work": asked.work,
        "is_dry_run": asked.dry_run,
        "is_again": asked.again,
    }
    if asked.rate:
        given["rates"] = dict.fromkeys(("api", "file"), asked.rate * WINDOW_SECONDS)
    return Settings(**{name: value for name, value in given.items() if value is not None})


if __name__ == "__main__":
    sys.exit(main())
