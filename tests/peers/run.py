"""What other tools answer to the same questions, beside us (`make peers`): their error, and the CPU seconds of one question.

    python -m tests.peers.run FOLDER      FOLDER keeps the environments of the peers (default: .build-peers)

Each peer of peers.csv is installed in an environment of its own, in the version that stands there, and run as a person runs it: one command for
one model, which reads config and tensor headers from a Hub on loopback (hub.py). Both are what Transformers makes of the known config
(headers.py), in 16 bits. What is asked:

    weights   bytes of weights in 16 bits on one card, as vLLM and others printed them (tables/measured.csv, grade A, one GPU: the first of each
              model)
    cache     bytes of the KV cache of one sequence in 16 bits (tests/golden/figures.csv)

Who says nothing has no answer; a column that is empty in peers.csv is not asked. Writes results.csv, and the table of site/docs/peers.md from it.
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import ROOT
from pipeline.hub.snapshot import newest_snapshot
from pipeline.press import manifest
from tests.peers.hub import serving
from tests.peers.places import hub_of, installed

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results.csv", ROOT / "site" / "docs" / "peers.md"
COLUMNS = (
    "quantity",
    "model_id",
    "context_tokens",
    "expected_bytes",
    "source",
    "peer",
    "version",
    "bytes",
    "error",
    "cpu_seconds",
)
OURS = "VRAM Almanac"
HEADERS = "Accelerate"  # the peer whose environment has Transformers
SIZE = re.compile(r"([\d.]+) ?([KMGT])B")
_TEXT_UNITS = {letter: 1024 ** (n + 1) for n, letter in enumerate("KMGT")}
SECONDS = 180  # for one answer
WEIGHTS_TOKENS = 2048  # a context that every model allows: some tools refuse a longer one


@dataclass(frozen=True)
class Question:
    """What is asked, and what is known of it."""

    quantity: str
    model_id: str
    tokens: int
    expected: int
    source: str


def questions() -> list[Question]:
    """All that have an answer which others published, and a config that names its class."""
    known = {record.model_id for record in newest_snapshot().records if (record.config or {}).get("architectures")}
    found = []
    for line in _rows(ROOT / "tables" / "measured.csv"):
        is_asked = (
            line["metric"] == "weights_bytes"
            and line["weights_dtype"] in ("bf16", "fp16")
            and line["parallelism"] == "1 GPU"
            and line["is_trap"] == "false"
            and (line["strict_set"], line["confidence"]) == ("A", "high")
        )
        if is_asked and line["model_id"] in known:
            one = Question("weights", line["model_id"], WEIGHTS_TOKENS, int(line["value_bytes"]), line["measured_id"])
            if all(one.model_id != other.model_id for other in found):
                found.append(one)
    for line in _rows(HERE.parent / "golden" / "figures.csv"):
        if line["quantity"] == "kv_cache_bytes" and line["dtype_id"] == "bf16" and line["model_id"] in known:
            tokens = int(line["context_tokens"])
            found.append(Question("cache", line["model_id"], tokens, int(line["expected"]), line["source"]))
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ask(command: list[str], environment: Mapping[str, str], folder: Path) -> tuple[str, float]:
    """What it prints, and the CPU seconds that it took."""
    before = _spent()
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        said = done.stdout
    except subprocess.TimeoutExpired:
        said = ""
    return said, _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read(said: str, where: str, unit: str) -> int | None:
    """Bytes of an answer: a place in JSON, or a size in text. None where it says none."""
    if not where:
        return None
    if unit == "text":
        found = re.search(where, said)
        size = found and SIZE.fullmatch(found[1])
        return round(float(size[1]) * _TEXT_UNITS[size[2]]) if size else None
    start = said.find("{")
    try:
        value: Any = json.JSONDecoder().raw_decode(said[max(start, 0) :])[0]
        for step in re.findall(r"[^.\[\]$]+", where):
            value = value[int(step)] if isinstance(value, list) else value[step]
        return round(value * int(unit))
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def answered(asked: list[Question], peers: list[dict[str, str]], folder: Path, database: Path) -> list[dict[str, Any]]:
    """All answers. They are kept in the folder as they come: a run that was stopped goes on there."""
    kept = folder / "answers.csv"
    found = _rows(kept) if kept.exists() else []
    known = {tuple(one[name] for name in COLUMNS[:7]) for one in found}
    with kept.open("a", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not known:
            out.writeheader()
        for one in answers(asked, peers, folder, database, known):
            print(*(one[name] for name in COLUMNS if name != "source"), sep="\t", flush=True)
            out.writerow(one)
            file.flush()
            found.append(one)
    return found


def answers(
    asked: list[Question], peers: list[dict[str, str]], folder: Path, database: Path, had: Collection[tuple]
) -> Iterator[dict[str, Any]]:
    places = installed(peers, folder)
    hub = hub_of({question.model_id for question in asked}, places[HEADERS] / "python", folder)
    ours = {
        "peer": OURS,
        "package": f"tables=={manifest.read(database.parent).get('data_version', '')}",
        "command": f"python -m tests.peers.ours {database} {{model}} {{tokens}}",
        "weights": "$.weights",
        "cache": "$.cache",
        "unit": "1",
    }
    with tempfile.TemporaryDirectory() as scratch, serving(hub, Path(scratch)) as leading:
        plain = {"PATH": os.environ["PATH"], "HOME": scratch, "NO_COLOR": "1", "COLUMNS": "200", "PYTHONUTF8": "1"}
        for peer in (*peers, ours):
            known: dict[tuple[str, ...], tuple[str, float]] = {}
            for question in asked:
                about = {
                    "quantity": question.quantity,
                    "model_id": question.model_id,
                    "context_tokens": str(question.tokens) if question.quantity == "cache" else "",
                    "expected_bytes": str(question.expected),
                    "source": question.source,
                    "peer": peer["peer"],
                    "version": peer["package"].partition("==")[2],
                }
                if not peer[question.quantity] or tuple(about.values()) in had:
                    continue
                words = peer["command"].format(model=question.model_id, tokens=question.tokens).split()
                if peer is ours:
                    command, where = [sys.executable, *words[1:]], ROOT
                else:
                    command, where = [str(places[peer["peer"]] / words[0]), *words[1:]], Path(scratch)
                if not known:
                    ask(command, plain | leading, where)  # files and bytecode are read once before any is timed
                if tuple(command) not in known:
                    known[tuple(command)] = ask(command, plain | leading, where)
                said, seconds = known[tuple(command)]
                found = read(said, peer[question.quantity], peer["unit"])
                yield about | {
                    "bytes": "" if found is None else found,
                    "error": "" if found is None else f"{found / question.expected - 1:.4f}",
                    "cpu_seconds": f"{seconds:.2f}",
                }


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """A line for each peer: how many questions it answers, how far off it is, and how many models it answers in a second of CPU."""
    found = []
    for name in dict.fromkeys(one["peer"] for one in rows):
        own = [one for one in rows if one["peer"] == name]
        line = {"peer": name, "version": own[0]["version"]}
        for quantity in ("weights", "cache"):
            errors = [abs(float(one["error"])) for one in own if one["quantity"] == quantity and one["error"]]
            asked = sum(one["quantity"] == quantity for one in own)
            line[quantity] = f"{len(errors)} of {asked}" if asked else "not asked"
            line[f"{quantity}_median"] = _percent(statistics.median(errors)) if errors else ""
            line[f"{quantity}_worst"] = _percent(max(errors)) if errors else ""
        seconds = statistics.median(float(one["cpu_seconds"]) for one in own)
        line["models_a_second"] = f"{1 / max(seconds, 0.01):.1f}"
        found.append(line)
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:,.0f} %"


def _said(one: dict[str, str], quantity: str) -> str:
    errors = one[f"{quantity}_median"] and f": {one[f'{quantity}_median']}, at most {one[f'{quantity}_worst']}"
    return one[quantity] + errors


def page(lines: list[str], told: list[dict[str, str]], where: str) -> str:
    """The page with the table in the place of the one before."""
    names = ("Tool", "Version", "Weights", "KV cache", "Models a CPU second")
    table = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    for one in told:
        said = [_said(one, quantity) for quantity in ("weights", "cache")]
        table.append(f"| {' | '.join([one['peer'], one['version'], *said, one['models_a_second']])} |")
    start, end = (
        next(i for i, line in enumerate(lines) if line.startswith(f"<!-- {word}")) for word in ("made", "end")
    )
    return "\n".join([*lines[: start + 1], "", where, "", *table, "", *lines[end:]]) + "\n"


def main(folder: str = ".build-peers", database: str = str(ROOT / "build" / "tables" / "almanac.duckdb")) -> int:
    if not Path(database).exists():
        print(f"error: {database} is not there; `make publish` builds it", file=sys.stderr)
        return 1
    peers, asked = _rows(HERE / "peers.csv"), questions()
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    found = answered(asked, peers, place, Path(database).resolve())
    today = datetime.date.today().isoformat()
    where = f"Asked on {today}, {os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}."
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {where}\n")
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(found)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8").splitlines(), summary(found), where), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
