"""The commands of the pipeline (`python -m pipeline --help`): argument parsing and calls, nothing else."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipeline import build, console, publish, serve, sources
from pipeline.anatomy.describe import describe_file
from pipeline.facts import FactError
from pipeline.hub.snapshot import SnapshotError, newest_snapshot


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeline", description="VRAM Almanac: tables and site.")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("publish", help="build the tables and the site from the newest snapshot")
    make.add_argument(
        "--output", type=Path, default=publish.ROOT / "build", help="folder to publish to (default: build)"
    )
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
    commands.add_parser("check", help="check the published tables: prints the bad rows, if there are any")
    commands.add_parser("accuracy", help="compare the formulas with the published measurements and print our error")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "publish":
            console.publish(newest_snapshot(), asked.output)
        elif asked.command == "source":
            print("\n".join(sources.source_of(asked.fact)))
        elif asked.command == "anatomy":
            print(describe_file(asked.config))
        elif asked.command == "check":
            return console.check(publish.ROOT / "build" / "tables" / build.DATABASE)
        elif asked.command == "accuracy":
            console.compare(newest_snapshot())
        else:
            serve.serve(asked.site, asked.port)
    except (FactError, SnapshotError, publish.PublishError, LookupError, OSError) as error:
        print(f"error: {error.args[0] if isinstance(error, LookupError) and error.args else error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: what was published is untouched", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
