"""What a whole publish takes, by stage: with nothing kept, after one model changed, and after nothing changed: `python -m tests.bench.publish 10` for
every tenth model. Each is a process of its own, and finds what the one before kept. The model that changes has one layer fewer.

Writes publish.csv: seconds, seconds of CPU (with those of other processes) and the most memory that the first process held (MiB); then the
share of a cold publish, and models a second of anatomy. One machine, one run: the columns can be compared with each other.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline import ROOT
from pipeline.book.packs import Packs
from pipeline.hub.snapshot import newest_snapshot
from pipeline.press import publish
from tests.bench.build import Stages, changed, of_every, write
from tests.press.few_models import root_of

TABLE = Path(__file__).with_suffix(".csv")
RUNS = ("cold", "changed", "unchanged")
Taken = dict[str, list[float]]  # by stage: seconds, seconds of CPU, MiB


def measure(scratch: Path, run: str, every: int) -> Taken:
    snapshot = of_every(newest_snapshot(), every)
    root = scratch / "root"
    if not root.exists():
        root_of(root)
    if run != "unchanged":  # another input is another build
        (root / "requirements.lock").write_text(run, encoding="utf-8")
    stages = Stages()
    snapshot = changed(snapshot) if run == "changed" else snapshot
    publish.publish(snapshot, stages, scratch / "build", root, packs=Packs(scratch / "packs"))
    stages.end("the rest")
    return {name: list(taken) for name, taken in stages.taken.items()}


def lines(found: dict[str, Taken], models: int) -> list[list[object]]:
    """A line for each stage, then the whole, its share of a cold publish, and how many models a second are read."""
    told = [
        [name, *(f"{n:.1f}" for run in RUNS for n in found[run].get(name, (0, 0, 0)))]
        for name in dict.fromkeys(name for run in RUNS for name in found[run])
    ]
    whole = {run: [sum(one[i] for one in found[run].values()) for i in (0, 1)] for run in RUNS}
    most = {run: max(one[2] for one in found[run].values()) for run in RUNS}
    told.append(["all", *(f"{n:.1f}" for run in RUNS for n in (*whole[run], most[run]))])
    shares = ([f"{whole[run][i] / whole['cold'][i]:.3f}" for i in (0, 1)] for run in RUNS)
    told.append(["share of cold", *(n for pair in shares for n in (*pair, ""))])
    rates = (
        [f"{models / found[run]['anatomy'][i]:.0f}" if "anatomy" in found[run] else "" for i in (0, 1)] for run in RUNS
    )
    return [*told, ["anatomy: models a second", *(n for pair in rates for n in (*pair, ""))]]


def table(found: dict[str, Taken], models: int) -> None:
    columns = [f"{run}_{what}" for run in RUNS for what in ("seconds", "cpu_seconds", "mib")]
    write(TABLE, ["stage", *columns], lines(found, models), models)


def main(every: str = "1") -> None:
    found: dict[str, Taken] = {}
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".build-bench-") as scratch:
        for run in RUNS:
            command = [sys.executable, "-m", "tests.bench.publish", scratch, run, every]
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            found[run] = json.loads(done.stdout.splitlines()[-1])
            print(run, round(sum(one[1] for one in found[run].values())), "s of CPU", file=sys.stderr, flush=True)
    table(found, len(of_every(newest_snapshot(), int(every)).records))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
    else:
        main(*sys.argv[1:])
