"""The commands of the pipeline (`python -m pipeline --help`): argument parsing and calls, nothing else.

What a command needs is imported when it is given: a wrong argument is answered at once, and Ctrl-C is heard from the first moment on.
"""

from __future__ import annotations

import sys

from pipeline import ROOT

try:
    import argparse
    import os
    from pathlib import Path
    from typing import TYPE_CHECKING

    from pipeline.ask import arguments
    from pipeline.base import failures
    from pipeline.base.arguments import Parser
except KeyboardInterrupt:
    sys.exit(130)

if TYPE_CHECKING:
    from pipeline.hub.settings import Settings


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns its exit status: 0 done, 1 failed with a sentence on standard error, 128 and the signal's number if stopped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not have every character that we print
            stream.reconfigure(errors="backslashreplace")
    asked = _parser().parse_args(arguments)
    try:
        with failures.stoppable():
            return _run(asked) or 0
    except (Exception, KeyboardInterrupt) as error:
        return failures.told(error)


def _parser() -> Parser:
    parser = Parser(prog="python -m pipeline", description="VRAM Almanac: tables and site.")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("publish", help="build the tables and the site from the newest snapshot")
    make.add_argument(
        "--output",
        type=Path,
        default=ROOT / "build",
        help="folder to publish to, empty or a release of ours (default: build)",
    )
    make.add_argument(
        "--no-crawl",
        action="store_true",
        help="publish from the last snapshot, without asking the Hub (or ALMANAC_CRAWL=0)",
    )
    make.add_argument(
        "--models", type=_count, metavar="N", help="most downloaded models that a crawl lists (default: 5000)"
    )
    make.add_argument(
        "--accept",
        default="",
        metavar="REASON",
        help="publish what a gate refuses, with a reason that its release notes keep",
    )
    make.add_argument(
        "--anew", action="store_true", help="work everything out again, also what earlier builds of the same facts did"
    )
    share = commands.add_parser(
        "spread", help="have footprints worked out by a Dask cluster; the next publish finds them"
    )
    share.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a cluster that runs (tcp://host:8786); without it workers of this machine",
    )
    share.add_argument("--workers", type=_count, default=2, metavar="N", help="workers of this machine (default: 2)")
    hub = commands.add_parser("crawl", help="refresh the snapshot from the Hub; goes on where the last one stopped")
    hub.add_argument("--models", type=_count, metavar="N", help="most downloaded models to list (default: 5000)")
    hub.add_argument("--budget", type=int, metavar="N", help="requests to make at most; what is then read is written")
    hub.add_argument(
        "--headers",
        type=int,
        metavar="N",
        help="requests for tensor headers at most (default: 10000; 0: none but for totals that the Hub does not list)",
    )
    hub.add_argument(
        "--dry-run",
        action="store_true",
        help="some fifty requests: say whether the Hub still behaves as we assume, and what would be asked; write nothing",
    )
    hub.add_argument("--accept", action="store_true", help="take a crawl however many known models it loses")
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
    host.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    tell = commands.add_parser(
        "anatomy", help="describe the model of a config.json: parameters by class, what it caches"
    )
    tell.add_argument("config", type=Path)
    arguments.add(commands)
    commands.add_parser("release", help="keep a digest of what is built; the next builds tell what changed since")
    commands.add_parser("gates", help="say whether what is built may take the place of the last release")
    last = commands.add_parser(
        "last-release", help="keep the digest of what is published, to compare the next build with"
    )
    last.add_argument(
        "--from", dest="where", required=True, metavar="ADDRESS", help="address of a published site, or a folder"
    )
    differ = commands.add_parser(
        "diff", help="say how two releases differ: models, cards, numbers, verdicts, each with its cause"
    )
    differ.add_argument("old", help="folder of tables, site or digest, or the address of a published site")
    differ.add_argument("new", help="the same of the newer one")
    differ.add_argument("--table", type=Path, metavar="FOLDER", help="write it as tables too, into a new folder")
    told = commands.add_parser("notes", help="print what the build says otherwise than the last release")
    told.add_argument("--file", type=Path, metavar="FILE", help="write it there")
    laid = commands.add_parser("assets", help="put what a GitHub release is made of into a folder: tables, notes, tag")
    laid.add_argument("folder", type=Path)
    promised = commands.add_parser("promise", help="write what the schema promises to tables/schema/promise.json")
    promised.add_argument(
        "--released", action="store_true", help="it is released: from now on a break needs a new version"
    )
    plain = commands.add_parser("to-folder", help="bring a folder that a web server serves up to date")
    plain.add_argument("folder", type=Path)
    for name, what in (
        ("to-hub-dataset", "the tables to a data set of the Hub"),
        ("to-space", "the site to a static Space of the Hub"),
    ):
        target = commands.add_parser(name, help=f"send {what}; the token is read as huggingface_hub reads it")
        target.add_argument("repo", metavar="OWNER/NAME")
    commands.add_parser("check", help="check the published files and tables: prints what is damaged, and the bad rows")
    host_size = commands.add_parser(
        "hosting", help="say whether hosts take the built site and its tables: bytes, files, largest file"
    )
    host_size.add_argument("--host", help="one of site/hosts.csv (default: all)")
    host_size.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    commands.add_parser("accuracy", help="compare the formulas with the published measurements and print our error")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of models from 1 to 1,000,000")
    return int(text)


def _run(asked: argparse.Namespace) -> int | None:
    """Does what was asked. Returns the exit status where it may be another than 0."""
    from pipeline.base.failures import say

    if asked.command == "crawl":
        from pipeline.cli import console

        settings = _settings(asked)
        return console.look(settings) if settings.is_dry_run else console.crawl(settings)
    if asked.command == "publish":
        from pipeline.cli import console
        from pipeline.hub.settings import Settings
        from pipeline.hub.snapshot import newest_snapshot
        from pipeline.press import output

        output.refuse(asked.output)
        if asked.no_crawl or os.environ.get("ALMANAC_CRAWL") == "0":
            console.publish(newest_snapshot(), asked.output, asked.accept, asked.anew)
        else:
            console.publish_as_it_comes(
                Settings(**({"model_count": asked.models} if asked.models else {})),
                asked.output,
                asked.accept,
                asked.anew,
            )
    elif asked.command == "spread":
        from pipeline.cli import console

        return console.spread(asked.scheduler, asked.workers)
    elif asked.command == "source":
        from pipeline.press import sources

        say("\n".join(sources.source_of(asked.fact)))
    elif asked.command == "anatomy":
        from pipeline.cli.describe import told

        say(told(asked.config))
    elif asked.command in ("fits", "what", "plan"):
        from pipeline.ask import command

        return command.run(asked)
    elif asked.command in ("release", "gates", "last-release", "diff", "notes", "assets", "promise", "to-folder"):
        return _releases(asked)
    elif asked.command in ("to-hub-dataset", "to-space"):
        from pipeline.cli import hub_targets

        hub_targets.send(asked.command, asked.repo)
    elif asked.command == "check":
        from pipeline.cli import console
        from pipeline.press import build

        return console.check(ROOT / "build" / "tables" / build.DATABASE)
    elif asked.command == "hosting":
        from pipeline.cli import console

        return console.hosting_of(asked.site, asked.host)
    elif asked.command == "accuracy":
        from pipeline.cli import console
        from pipeline.hub.snapshot import newest_snapshot

        console.compare(newest_snapshot())
    else:
        from pipeline.cli import serve

        serve.serve(asked.site, asked.port)
    return None


def _releases(asked: argparse.Namespace) -> int | None:
    """What is done with a build that is there."""
    from pipeline.cli import releases

    if asked.command == "release":
        releases.keep()
    elif asked.command == "gates":
        return releases.judge()
    elif asked.command == "last-release":
        releases.fetch_last(asked.where)
    elif asked.command == "diff":
        releases.compare(asked.old, asked.new, asked.table)
    elif asked.command == "notes":
        releases.tell(asked.file)
    elif asked.command == "assets":
        releases.lay_out(asked.folder)
    elif asked.command == "promise":
        return releases.promise_now(asked.released)
    else:
        releases.to_folder(asked.folder)
    return None


def _settings(asked: argparse.Namespace) -> Settings:
    """What the command line says; the rest by default."""
    from pipeline.hub.settings import WINDOW_SECONDS, Settings

    given = {
        "model_count": asked.models,
        "budget": asked.budget,
        "header_requests": asked.headers,
        "threads": asked.threads,
        "folder": asked.output,
        "work": asked.work,
        "is_dry_run": asked.dry_run,
        "is_again": asked.again,
        "is_accepted": asked.accept,
    }
    if asked.rate:
        given["rates"] = dict.fromkeys(("api", "file"), asked.rate * WINDOW_SECONDS)
    return Settings(**{name: value for name, value in given.items() if value is not None})


if __name__ == "__main__":
    sys.exit(main())
