"""Counts what training steps of torchtune hold at their peak: the truth that its engine's formulas are held to.

    pip install --no-deps torchtune==0.6.1 torchao==0.9.0    # and what they import; 0.4.0 for the rows of torchtune-0.4
    python tests/oracle/count_torchtune.py                   # rows of torchtune_peaks.csv for that version that have no peak yet, and of
                                                             # torchtune_sharded_peaks.csv: the first of several cards, as count_sharded.py

As count_training.py, with torchtune's own model builders, adapters and losses and the step of its single-device recipes: logits are
let go before the backward pass, everything is in the dtype of the weights. Sequences are not packed. Several cards share as the
distributed recipes do where no custom_sharded_layers are named (training/_distributed.py).
"""

from __future__ import annotations

import gc
from importlib.metadata import version
from pathlib import Path

import count_sharded
import count_training
import fake_cuda
import rows
from train_steps import last_peak

PEAKS = Path(__file__).with_name("torchtune_peaks.csv")
SHARDED = PEAKS.with_name("torchtune_sharded_peaks.csv")
ENGINES = {"0.4.0": "torchtune-0.4", "0.6.1": "torchtune"}
# module and builder in torchtune.models
BUILDERS = {
    "meta-llama/Llama-3.2-1B": ("llama3_2", "llama3_2_1b"),
    "meta-llama/Llama-3.1-8B": ("llama3_1", "llama3_1_8b"),
    "meta-llama/Llama-2-7b-hf": ("llama2", "llama2_7b"),
    "Qwen/Qwen2.5-0.5B": ("qwen2", "qwen2_0_5b"),
}
TARGETS = {
    "query-value": {"lora_attn_modules": ["q_proj", "v_proj"]},
    "attention": {"lora_attn_modules": ["q_proj", "k_proj", "v_proj", "output_proj"]},
    "all-linear": {
        "lora_attn_modules": ["q_proj", "k_proj", "v_proj", "output_proj"],
        "apply_lora_to_mlp": True,
    },
}


def build(row: rows.Row):
    import importlib

    import torch
    from torchtune.modules.peft import get_adapter_params, set_trainable_params
    from torchtune.training import set_activation_checkpointing

    module, name = BUILDERS[row["model"]]
    family = importlib.import_module(f"torchtune.models.{module}")
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        if row["lora_rank"]:
            settings = TARGETS[row["lora_targets"]] | {"lora_rank": int(row["lora_rank"]), "lora_alpha": 16}
            model = getattr(family, f"lora_{name}")(**settings)
            set_trainable_params(model, get_adapter_params(model))
        else:
            model = getattr(family, name)()
    torch.set_default_dtype(torch.float32)
    if row["checkpointing"] == "full":
        layer = type(model.layers[0])
        set_activation_checkpointing(model, auto_wrap_policy={layer})
    return model.train()


def loss_of(form: str):
    import torch
    from torchtune.modules.loss import CEWithChunkedOutputLoss

    return CEWithChunkedOutputLoss() if form == "chunked" else torch.nn.CrossEntropyLoss()


def step(model, tokens: tuple[int, int], loss_fn):
    import torch

    ids, labels = (torch.empty(tokens, dtype=torch.long, device="cuda") for _ in range(2))
    logits = model(ids)
    if not isinstance(logits, list):
        logits, labels = logits.reshape(-1, logits.size(-1)), labels.reshape(-1)
    return loss_fn(logits, labels)


def count(row: rows.Row) -> rows.Row:
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    if ENGINES[version("torchtune")] != row["engine_id"]:
        raise ValueError(f"torchtune {version('torchtune')} is not that of the row")
    gpus = int(row.get("gpu_count") or 1)
    mesh = None
    if gpus > 1:
        from torch.distributed.device_mesh import init_device_mesh

        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        count_sharded.install(gpus)
        mesh = init_device_mesh("cuda", (gpus,))
    else:
        fake_cuda.install()
    live_storage.install_attention()
    model, tracker = build(row), count_sharded.tracker_of_shards() if gpus > 1 else live_storage.Tracker()
    loss_fn = loss_of(row["loss"])
    if row["loss"] == "chunked":
        model.set_num_output_chunks(loss_fn.num_output_chunks)
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad) if row["lora_rank"] else ""
    with FakeTensorMode(allow_non_fake_inputs=True):
        for module in model.modules():  # tables that the meta device left out
            if "RotaryPosition" in type(module).__name__ or "RoPE" in type(module).__name__:
                module.is_cache_built = True
                halves = (2 * module.dim,) if "Qwen2" in type(module).__name__ else (module.dim // 2, 2)
                table = torch.empty(module.max_seq_len, *halves)
                module.register_buffer("cache", table, persistent=False)
        table_of_all = next(m.cache for m in model.modules() if getattr(m, "is_cache_built", False))
        count_training.to_fake(model)
        shared = table_of_all.to("cuda")
        for module in model.modules():
            if getattr(module, "is_cache_built", False):
                module._buffers["cache"] = shared
        count_training.behave_as_with_values()
        if mesh is not None:
            from torchtune.training import get_shard_conditions, shard_model

            shard_model(model, [get_shard_conditions], cpu_offload=False, dp_mesh=mesh)
            gc.collect()
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(getattr(tensor, "_local_tensor", tensor))
            tracker.total -= tracker._alive[shared.untyped_storage()._cdata][
                0
            ]  # as long as the longest context, not the step's
            tracker._alive[shared.untyped_storage()._cdata][0] = 0
            optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], fused=True)
            tokens = (int(row["sequences"]), int(row["context_tokens"]))
            peak = last_peak(count_training.STEPS, tracker, optimizer, lambda: step(model, tokens, loss_fn))
    versions = f"torch {torch.__version__}, torchtune {version('torchtune')}"
    return {"peak_bytes": str(peak), "adapter_parameters": str(adapters), "versions": versions}


if __name__ == "__main__":
    for table in (PEAKS, SHARDED):
        rows.count_rows(table, __doc__, lambda row: row["model"], count)
