"""What the counting tools count without a card, run on one: the same models, inputs and steps, with real kernels and PyTorch's own allocator.

Each function takes a row of one of their tables and gives what PyTorch and the driver say of it (`Measured`). Weights are random; no
checkpoint is read. Used by measure_card.py, a process for each row.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable

import count_training
import rows

Measured = dict[str, int]
STEPS = 3  # after the second of equal steps nothing more is reserved


class Card:
    """Stands where a tracker of live storage stands."""

    sums_in_place = False

    def __init__(self) -> None:
        self.standing = 0

    def reset_peak(self) -> None:
        import torch

        torch.cuda.synchronize()
        self.standing = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()

    @property
    def peak(self) -> int:
        import torch

        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()


def process_bytes() -> int | None:
    """What the driver counts for this process."""
    import pynvml

    pynvml.nvmlInit()
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
    return next((p.usedGpuMemory for p in running if p.pid == os.getpid()), None)


def said(peak: int, standing: int) -> Measured:
    import torch

    reserved = torch.cuda.memory_reserved()
    used = process_bytes()
    held = torch.cuda.memory_allocated()
    torch._C._cuda_clearCublasWorkspaces()
    return {
        "peak_bytes": peak,
        "standing_bytes": standing,
        "reserved_bytes": reserved,
        "process_bytes": used if used is not None else "",
        "workspace_bytes": held - torch.cuda.memory_allocated(),
    }


def fill(tensor) -> None:
    if tensor.is_floating_point():
        tensor.normal_(0, 0.02)
    elif tensor.dtype.is_complex:
        tensor.fill_(1)
    else:
        tensor.zero_()


def to_card(model) -> None:
    """Every parameter and buffer on the meta device becomes a random one on the card; shared ones stay shared, packed ones are packed."""
    import torch

    packed = _packed_kinds()
    made: dict[int, tuple] = {}
    for module in model.modules():
        for name, value in [*module._parameters.items(), *module._buffers.items()]:
            if value is None or value.device.type == "cuda":
                continue
            if id(value) not in made:
                made[id(value)] = (value, _on_card(module, value, packed))
            kind = module._parameters if name in module._parameters else module._buffers
            kind[name] = made[id(value)][1]
    gc.collect()
    torch.cuda.empty_cache()


def _packed_kinds() -> tuple:
    try:
        from bitsandbytes.nn import Int8Params, Params4bit
    except ImportError:
        return ()
    return Params4bit, Int8Params


def _on_card(module, value, packed: tuple):
    import torch

    if packed and isinstance(value, packed):
        plain = torch.empty(value.shape, dtype=torch.bfloat16, device="cuda").normal_(0, 0.02)
        if isinstance(value, packed[0]):
            named = {"quant_type": value.quant_type, "compress_statistics": value.compress_statistics}
            return packed[0](plain, requires_grad=False, module=module, **named).to("cuda")
        # (it packs what comes from the host)
        return packed[1](plain.to("cpu", torch.float16), requires_grad=False, has_fp16_weights=False).to("cuda")
    real = torch.empty(value.shape, dtype=value.dtype, device="cuda")
    fill(real)
    return (
        torch.nn.Parameter(real, requires_grad=value.requires_grad) if isinstance(value, torch.nn.Parameter) else real
    )


def quantise(model, is_prepared: bool = True, dtype_id: str = "nf4") -> None:
    """Linear layers but the head become bitsandbytes' own; what peft's prepare_model_for_kbit_training does besides is done here."""
    import bitsandbytes as bnb
    import torch

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is not torch.nn.Linear or name in ("lm_head", "embed_out", "score"):
                continue
            sizes = {"input_features": child.in_features, "output_features": child.out_features}
            sizes |= {"bias": child.bias is not None, "device": "meta"}
            if dtype_id == "int8":
                other = bnb.nn.Linear8bitLt(**sizes, has_fp16_weights=False)
            else:
                double = dtype_id == "nf4-double"
                named = {"compute_dtype": torch.bfloat16, "compress_statistics": double, "quant_type": "nf4"}
                other = bnb.nn.Linear4bit(**sizes, **named)
            if other.bias is not None:
                other.bias.data = other.bias.data.to(child.weight.dtype)
            other.requires_grad_(False)
            setattr(module, name, other)
    model.is_loaded_in_4bit, model.is_loaded_in_8bit = dtype_id != "int8", dtype_id == "int8"
    packed = _packed_kinds()
    for parameter in model.parameters():
        parameter.requires_grad = False
        if is_prepared and not isinstance(parameter, packed):
            parameter.data = parameter.data.to(torch.float32)


def training(row: rows.Row, models: dict[str, rows.Row]) -> Measured:
    """A row of training_peaks.csv and the tables like it."""
    import torch

    row = row | {name: row.get(name) or value for name, value in count_training.DEFAULTS.items()}
    count_training.STEPS, count_training.quantise = STEPS, quantise
    model = count_training.build(models[row["model"]], row)
    to_card(model)
    shape = int(row["sequences"]), int(row["context_tokens"])
    ids = torch.randint(0, 100, shape, device="cuda")
    card = Card()
    return said(count_training.train(model, ids, row, card), card.standing)


def prefill(row: rows.Row, models: dict[str, rows.Row]) -> Measured:
    """A row of prefill_activations.csv and the tables like it."""
    import count_prefill

    model = count_training.build(models[row["model"]], {**count_prefill.PLAIN, **row}).eval()
    to_card(model)
    return prompt(model, int(row["sequences"]), int(row["context_tokens"]))


def prompt(model, sequences: int, context_tokens: int) -> Measured:
    import torch

    ids, card, peak = torch.randint(0, 100, (sequences, context_tokens), device="cuda"), Card(), 0
    with torch.no_grad():
        for _ in range(2):
            card.reset_peak()
            output = model(input_ids=ids, use_cache=True, logits_to_keep=1)
            peak = card.peak
            del output
            gc.collect()
    return said(peak, card.standing)


def inference(row: rows.Row, known: dict[str, dict]) -> Measured:
    """A row of inference.csv."""
    import count_inference
    import torch

    _empty_on_card()
    with torch.device("cuda"), torch.no_grad():
        model = _filled(count_inference.build(known[row["model_id"]], row))
        given, card, peak = count_inference.inputs(model, row), Card(), 0
        for _ in range(2):
            card.reset_peak()
            if model.config.is_encoder_decoder:
                count_inference.generate(model, given, int(row["context_tokens"]))
            else:
                output = model(**given)
                del output
            peak = card.peak
            gc.collect()
    return said(peak, card.standing)


def pipelines(row: rows.Row, known: dict[str, dict]) -> Measured:
    """A row of pipelines.csv: the peak is told with the weights, which the row leaves out (`standing_bytes`)."""
    import count_pipelines
    import torch

    _empty_on_card()
    with torch.device("cuda"), torch.no_grad():
        model, given = count_pipelines.prepared(row, known.get(row["model_id"], {}))
        _filled(model)
        named, tensors = given()
        card, peak = Card(), 0
        for _ in range(2):
            card.reset_peak()
            count_pipelines.run(model, row, named, tensors)
            peak = card.peak
            gc.collect()
    return said(peak, sum(t.untyped_storage().nbytes() for t in (*model.parameters(), *model.buffers())))


def denoiser_training(row: rows.Row, known: dict[str, dict]) -> Measured:
    """A row of denoiser_training.csv."""
    import count_denoiser_training as counted
    import torch

    count_training.quantise, counted.STEPS = quantise, STEPS
    model = counted.build(row, known[row["model_id"]])
    to_card(model)
    base = sum(p.untyped_storage().nbytes() for p in model.parameters() if not p.requires_grad)
    compute = torch.float16 if row["dtype_id"] == "fp16" else torch.bfloat16
    return said(counted.train(model, row, compute, Card()), base)


def whole(row: rows.Row, known: dict[str, dict]) -> Measured:
    """A row of card_scenarios.csv: a model of the snapshot in a scenario of the site."""
    import json

    config = {
        k: v for k, v in known[row["model_id"]].items() if k not in ("quantization_config", "torch_dtype", "dtype")
    }
    if row["phase_id"] == "inference":
        return _generates(row, config)
    models = {
        row["model_id"]: {
            "config_json": json.dumps(config),
            "auto_class": "AutoModelForCausalLM",
            "experts_implementation": "",
        }
    }
    return training(row | {"model": row["model_id"], "attention": attention_of(config)}, models)


def attention_of(config: dict) -> str:
    """What the library takes where nothing is said."""
    import transformers

    settings = transformers.AutoConfig.for_model(config["model_type"])
    kind = transformers.AutoModelForCausalLM._model_mapping[type(settings)]
    return "flash" if getattr(kind, "_supports_sdpa", False) else "eager"


def _generates(row: rows.Row, config: dict) -> Measured:
    """A prompt is read, and tokens follow until the context is full."""
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    dtype = {"fp32": torch.float32, "fp16": torch.float16}.get(row["dtype_id"], torch.bfloat16)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(settings, dtype=dtype)
        if row["dtype_id"] in ("nf4", "nf4-double", "int8"):
            quantise(model, is_prepared=False, dtype_id=row["dtype_id"])
    model.eval()
    to_card(model)
    new, context = 16, int(row["context_tokens"])
    ids = torch.randint(0, 100, (int(row["sequences"]), context - new), device="cuda")
    card = Card()
    card.reset_peak()
    named = {"min_new_tokens": new, "max_new_tokens": new, "do_sample": False, "pad_token_id": 0}
    model.generate(ids, attention_mask=torch.ones_like(ids), **named)
    return said(card.peak, card.standing)


def _empty_on_card() -> None:
    """Models that the counting tools leave empty on the host are made empty on the card."""
    import torch

    plain: Callable = torch.nn.Module.to_empty
    torch.nn.Module.to_empty = lambda self, *, device, recurse=True: plain(self, device="cuda", recurse=recurse)


def _filled(model):
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            fill(tensor.data)
    return model


def unsloth(row: rows.Row, known: dict[str, dict]) -> Measured:
    """A row of card_unsloth.csv."""
    import card_unsloth

    return card_unsloth.step(row, known)


def trl(row: rows.Row, models: dict[str, rows.Row]) -> Measured:
    """A row of preference.csv or card_trl.csv."""
    import card_trl

    return card_trl.step(row, models)


WAYS: dict[str, Callable[[rows.Row, dict], Measured]] = {
    "training": training,
    "prefill": prefill,
    "inference": inference,
    "pipelines": pipelines,
    "denoiser_training": denoiser_training,
    "whole": whole,
    "unsloth": unsloth,
    "trl": trl,
}
