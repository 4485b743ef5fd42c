"""Measures on a real card what the counting tools count without one: rows of their tables, with PyTorch's own allocator and the driver.

    python tests/oracle/measure_card.py --out card.csv --seconds 600         # a draw of rows of every table, as many as the time allows
    python tests/oracle/measure_card.py --out card.csv --only reserved       # rows of one table, or of several (a,b)
    TRL_RELEASES=trl python tests/oracle/measure_card.py --out card.csv --only card_trl,preference    # TRL itself (card_trl.py)

Needs a CUDA build of PyTorch, transformers, peft, diffusers, bitsandbytes and nvidia-ml-py. Each row runs in a process of its own, forked before
CUDA starts, several side by side as far as the card's memory reaches: what a process holds does not depend on its neighbours. A row of the
result names the table and the row that was run (`row_json`, its columns but the counts), and says
`peak_bytes` (allocated at most in the last of equal steps), `standing_bytes` (allocated between them), `reserved_bytes` (by the allocator
when all is done), `process_bytes` (by the driver, for the process), `workspace_bytes` (cuBLAS's, part of the allocated). A row that failed
has its error. `expected_bytes` of card_scenarios.csv and card_unsloth.csv is the room that is kept free for a row, and no figure.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import importlib.util
import json
import logging
import multiprocessing
import os
import random
import time
import traceback
import warnings
from pathlib import Path

import card_steps
import count_training
import rows

HERE = Path(__file__).parent
# table: how its rows run, and the most that are drawn of it
TABLES = {
    "card_unsloth": ("unsloth", 400),
    "card_trl": ("trl", 400),
    "preference": ("trl", 400),
    "card_scenarios": ("whole", 400),
    "reserved": ("training", 100),
    "pipelines": ("pipelines", 120),
    "training_peaks": ("training", 220),
    "denoiser_training": ("denoiser_training", 40),
    "inference": ("inference", 140),
    "training_recipes": ("training", 60),
    "prefill_activations": ("prefill", 60),
    "training_windowed": ("training", 25),
    "prefill_recurrent": ("prefill", 20),
    "prefill_windowed": ("prefill", 12),
}
# programs that only run where they are asked for
OTHERS = ("card_unsloth", "card_trl", "preference")
COUNTED = ("peak_bytes", "standing_bytes", "reserved_bytes", "expandable_bytes", "weights_and_buffers_bytes", "weights_bytes", "adapter_parameters", "versions")  # fmt: skip
COLUMNS = ["table", "row_json", "peak_bytes", "standing_bytes", "reserved_bytes", "process_bytes", "workspace_bytes", "loaded_bytes", "error", "versions", "gpu"]  # fmt: skip
# imported once for all rows, where they are installed
AT_FIRST = ("diffusers", "datasets", "accelerate", "bitsandbytes", "transformers.trainer")
MIB = 1 << 20
ROW_SECONDS = 90
COMPILES_SECONDS = 240  # of a program that compiles its kernels first
SEED = 1


def drawn(only: str | None) -> list[tuple[str, rows.Row]]:
    """Rows of all tables in turn, so that a run that ends early has some of each."""
    chance = random.Random(SEED)
    queues = []
    for table, (_, most) in TABLES.items():
        if table not in only.split(",") if only else table in OTHERS:
            continue
        with (HERE / f"{table}.csv").open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if _is_run(row)]
        kept = chance.sample(kept, min(most, len(kept)))
        queues += [((at + 0.5) / len(kept) * (0.5 if _is_slow(row) else 1), table, row) for at, row in enumerate(kept)]
    return [(table, row) for _, table, row in sorted(queues, key=lambda entry: entry[0])]


def _is_slow(row: rows.Row) -> bool:
    """What begins early, since it takes minutes."""
    return row.get("objective_id") == "grpo"


def _is_run(row: rows.Row) -> bool:
    """Emulations of another program's code say nothing about it on a card."""
    return row.get("engine_id", "") in ("", "transformers") and row.get("loss", "") != "fused" and not row.get("denoiser_dtype_id", "").startswith(("fp8", "gguf", "int8"))  # fmt: skip


def expected_bytes(table: str, row: rows.Row) -> int:
    """What a row may take of the card: room for it is kept free while it runs."""
    return int(1.2 * (int(row.get("expected_bytes") or 0) or int(row.get("reserved_bytes") or row["peak_bytes"] or 0) + int(row.get("weights_bytes") or 0))) + (14_000 if table == "pipelines" else 1_500) * MIB  # fmt: skip


def measured(table: str, row: rows.Row, known: dict, models: dict, answer) -> None:
    import torch

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    way = TABLES[table][0]
    try:
        answer.send(card_steps.WAYS[way](row, models if way in ("training", "prefill", "trl") else known))
    except Exception as error:
        traceback.print_exc(limit=-6)
        answer.send({"error": f"{type(error).__name__}: {str(error)[:200]}"})


def versions(*names: str) -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names if importlib.util.find_spec(name))


def card_at_hand() -> tuple[str, tuple[int, int], int]:
    """Name, compute capability and free bytes of the first card, without starting CUDA."""
    import pynvml

    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    free = pynvml.nvmlDeviceGetMemoryInfo(card).free
    return pynvml.nvmlDeviceGetName(card), tuple(pynvml.nvmlDeviceGetCudaComputeCapability(card)), free


def load(capability: tuple[int, int]) -> None:
    """What every row needs is imported once. CUDA must not start before a row's own process does; bitsandbytes asks it for the capability."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import torch

    asked_of_cuda = torch.cuda.get_device_capability
    torch.cuda.get_device_capability = lambda *_args, **_named: capability
    import peft  # noqa: F401

    for name in AT_FIRST:
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    import transformers.models.auto.modeling_auto  # noqa: F401

    torch.cuda.get_device_capability = asked_of_cuda


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600, help="no row is begun after as many")
    parser.add_argument("--only", default=None, help="rows of this table alone")
    parser.add_argument("--most", type=int, default=None, help="rows at most")
    parser.add_argument("--skip", type=int, default=0, help="rows of the draw that are left out")
    parser.add_argument("--beside", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes side by side")
    parser.add_argument(
        "--gib",
        type=float,
        default=None,
        help="memory of the card that may be used (default: nine tenths of what is free)",
    )
    asked = parser.parse_args()
    start = time.monotonic()
    gpu, capability, free = card_at_hand()
    if asked.only != "card_unsloth":
        load(capability)
    import torch

    context = multiprocessing.get_context(
        "spawn" if asked.only == "card_unsloth" or torch.cuda.is_initialized() else "fork"
    )
    known = rows.configs()
    with count_training.MODELS.open(newline="") as file:
        models = {row["model"]: row for row in csv.DictReader(file)}
    waiting = drawn(asked.only)[asked.skip :][: asked.most]
    others = {"card_unsloth": ["unsloth"], None: ["diffusers"]}.get(asked.only, ["accelerate", "diffusers"])
    said = versions("torch", "transformers", "peft", "bitsandbytes", *others)
    running: list[list] = []
    budget = int(asked.gib * 1024 * MIB) if asked.gib else free * 9 // 10
    with asked.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        while waiting or running:
            room = budget - sum(entry[4] for entry in running)
            late = time.monotonic() - start > asked.seconds
            if late:
                waiting = []
            at = next((i for i, (table, row) in enumerate(waiting[:40]) if expected_bytes(table, row) <= room or not running), None)  # fmt: skip
            if at is not None and len(running) < asked.beside:
                table, row = waiting.pop(at)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=measured, args=(table, row, known, models, theirs))
                process.start()
                theirs.close()
                running.append([process, ours, table, row, expected_bytes(table, row), time.monotonic()])
                continue
            time.sleep(0.01)
            for entry in list(running):
                process, ours, table, row, _, began = entry
                most = COMPILES_SECONDS if table == "card_unsloth" or _is_slow(row) else ROW_SECONDS
                is_over = time.monotonic() - began > most or (late and time.monotonic() - start > asked.seconds + 20)
                if not (ours.poll() or not process.is_alive() or is_over):
                    continue
                try:
                    found = ours.recv() if ours.poll() else {"error": "no answer"}
                except EOFError:
                    found = {"error": f"ended with {process.exitcode}"}
                process.join(0.5 if not is_over else 0)
                if process.is_alive():
                    process.kill()
                    process.join()
                running.remove(entry)
                named = {name: value for name, value in row.items() if value and name not in COUNTED}
                writer.writerow({"table": table, "row_json": json.dumps(named), **found, "versions": said, "gpu": gpu})
                file.flush()


if __name__ == "__main__":
    main()
