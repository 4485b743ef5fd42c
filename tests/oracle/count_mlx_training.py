"""Counts what training steps of MLX LM hold at their peak on Apple's GPUs: the truth for the formula of its trainer.

    python -m venv VENV; VENV/bin/pip install mlx==0.32.2 mlx-cpu==0.32.2 mlx-lm==0.32.2 tqdm
    git -C MLX checkout 846d1762 (github.com/ml-explore/mlx), FMT: a checkout of github.com/fmtlib/fmt
    VENV/bin/python tests/oracle/count_mlx_training.py --build MLX FMT     # MLX's library with a Metal that computes nothing
    VENV/bin/python tests/oracle/count_mlx_training.py                     # rows of mlx_training.csv that have no peak yet

The step is that of mlx_lm.tuner.trainer.train itself, compiled, over models of mlx_lm.models with the sizes of training_models.csv. MLX
plans it as it does on a Mac; hollow_metal.cpp takes the place of its Metal backend: every primitive allocates what it does there, nothing
is computed, so that no memory is touched and models of any size fit. How long tensors stay is Metal's rule for a GPU that is slower than
the program (10 command buffers wait; HOLLOW_BUFFERS is another number, 0 for a GPU that is done at once). That was held to a Mac: Qwen3 8B
in 4 bits, 8192 tokens, rank 8, --grad-checkpoint is 27,574,528,224 bytes here and was 25.68 GiB on an M1 Max (README of
github.com/IonDen/mlx-train-perf 0.3.0). The loss is that of 0.32.2, in several operations.

A row of `program` mlx-lm trains its own last 16 layers, any other all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import csv
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import rows

PEAKS = Path(__file__).with_name("mlx_training.csv")
MODELS = Path(__file__).with_name("training_models.csv")
BITS = {"mlx-4bit": 4, "mlx-8bit": 8}
KEYS = {
    "all-linear": None,
    "attention": [f"self_attn.{name}_proj" for name in "qkvo"],
    "query-value": ["self_attn.q_proj", "self_attn.v_proj"],
}
LAST_LAYERS, STEPS = 16, 2
# what is built of MLX: all of it but its backends, of which these take no GPU and no CPU
FOLDERS = ("", "backend/common", "backend/gpu", "backend/no_cpu", "distributed")
FILES = [
    "io/load.cpp",
    "io/no_safetensors.cpp",
    "io/no_gguf.cpp",
    "backend/cpu/eval.cpp",
    "backend/cpu/encoder.cpp",
    "backend/metal/no_metal.cpp",
    "backend/cuda/no_cuda.cpp",
    "backend/no_gpu/allocator.cpp",
    "distributed/mpi/no_mpi.cpp",
    "distributed/ring/no_ring.cpp",
    "distributed/nccl/no_nccl.cpp",
    "distributed/jaccl/no_jaccl.cpp",
]


def build(mlx: Path, fmt: Path) -> None:
    """libmlx.so of the environment, anew; the wheel's own lies beside it."""
    package = Path(sysconfig.get_path("purelib")) / "mlx"
    for header in ("fast.h", "fast_primitives.h"):  # (its loss came after the commit)
        shutil.copy(package / "include/mlx" / header, mlx / "mlx" / header)
    sources = [path for folder in FOLDERS for path in sorted((mlx / "mlx" / folder).glob("*.cpp"))]
    sources += [mlx / "mlx" / name for name in FILES] + [PEAKS.with_name("hollow_metal.cpp")]
    flags = f"-std=c++20 -O1 -fPIC -w -fvisibility=hidden -DFMT_HEADER_ONLY=1 -DMLX_EXPORT -I{mlx} -I{fmt}/include"
    objects = mlx / "hollow"
    objects.mkdir(exist_ok=True)

    def compiled(number: int) -> Path:
        made = objects / f"{number}.o"
        given = ["g++", *flags.split(), '-DMLX_VERSION="0.32.2"', "-c", str(sources[number]), "-o", str(made)]
        subprocess.run(given, check=True)
        return made

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(compiled, range(len(sources))))
    library = package / "lib" / "libmlx.so"
    library.rename(library.with_suffix(".so.wheel"))
    subprocess.run(["g++", "-shared", "-o", library, *made, "-Wl,-soname,libmlx.so", "-ldl", "-lpthread"], check=True)


def model_of(row: rows.Row):
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_flatten
    from mlx_lm.utils import _get_classes

    with MODELS.open(newline="") as file:
        settings = {each["model"]: each["config_json"] for each in csv.DictReader(file)}
    config = {"rms_norm_eps": 1e-6, "rope_theta": 10000.0} | json.loads(settings[row["model"]])
    made, arguments = _get_classes(config)
    model = made(arguments.from_dict(config))
    model.set_dtype(mx.bfloat16)
    if row["dtype_id"] in BITS:
        nn.quantize(model, 64, BITS[row["dtype_id"]])
    for _, weight in tree_flatten(model.parameters()):
        mx.eval(weight)
    mx.synchronize()
    return model


def trained(model, row: rows.Row) -> None:
    """As train_model of mlx_lm/lora.py."""
    from mlx_lm.tuner.utils import linear_to_lora_layers

    layers = LAST_LAYERS if row["program"] else -1
    model.freeze()
    if row["phase_id"] == "full-finetune":
        for layer in model.layers[-max(layers, 0) :]:
            layer.unfreeze()
        return
    keys = KEYS[row["lora_targets"]]
    asked = {"rank": int(row["lora_rank"]), "dropout": 0.0, "scale": 20.0} | ({"keys": keys} if keys else {})
    linear_to_lora_layers(model, layers, asked)


def peak_of(row: rows.Row) -> tuple[int, int, str]:
    """Bytes at the peak of a step, and elements that are trained; in a process of its own, of which the trainer changes classes."""
    from importlib.metadata import version

    import mlx.core as mx
    import mlx.optimizers
    import numpy as np
    from mlx.utils import tree_flatten
    from mlx_lm.tuner import trainer

    assert mx.default_device() == mx.gpu, "this is the wheel's library: --build"
    mx.set_cache_limit(0)
    model = model_of(row)
    trained(model, row)
    elements = sum(tensor.size for _, tensor in tree_flatten(model.trainable_parameters()))
    sequences, tokens = int(row["sequences"]), int(row["context_tokens"])
    accumulated = int(row["gradient_accumulation"])

    def batches(*_given, **_named):
        while True:
            yield mx.array(np.zeros((sequences, tokens + 1), np.int32)), mx.array([(0, tokens)] * sequences)

    settings = trainer.TrainingArgs(
        batch_size=sequences, iters=STEPS * accumulated, steps_per_report=10**6, steps_per_save=10**6,
        grad_checkpoint=row["checkpointing"] == "full", grad_accumulation_steps=accumulated,
    )  # fmt: skip
    mx.save_safetensors = lambda *_: None
    mx.reset_peak_memory()
    with contextlib.redirect_stdout(io.StringIO()):
        optimizer = mlx.optimizers.Adam(learning_rate=1e-5)
        trainer.train(model, optimizer, [0], None, settings, iterate_batches=batches)
    return mx.get_peak_memory(), elements, f"mlx {version('mlx')}, mlx-lm {version('mlx-lm')}"


def count(row: rows.Row) -> rows.Row:
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as pool:
        peak, elements, versions = pool.submit(peak_of, row).result()
    return {"peak_bytes": str(peak), "trained_parameters": str(elements), "versions": versions}


if __name__ == "__main__":
    if "--build" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--build", nargs=2, type=Path)
        build(*(folder.resolve() for folder in parser.parse_args().build))
    else:
        rows.count_rows(PEAKS, __doc__, lambda row: row["model"], count)
