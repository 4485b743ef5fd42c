"""Counts what a LoRA training step of a denoiser holds at its peak: the truth for tables/sql/pipelines/training.sql.

    pip install -e '.[oracle]' peft
    python tests/oracle/count_denoiser_training.py            # all rows of denoiser_training.csv that have no peak yet
    python tests/oracle/count_denoiser_training.py --again Flux    # rows whose class or model holds this, anew

The class of diffusers with peft's adapters takes two steps on fake CUDA tensors (fake_cuda.py), as diffusers' example scripts take them: the
base in 16 bits or packed by bitsandbytes' 4 bits and prepared by peft, the forward pass under autocast, adapters in bf16 or, under fp16
and over a packed base, in fp32, AdamW. Latents and text are given, as they are where both were made before. Configs are the snapshot's, with the
fields of `config_json` changed. `peak_bytes` is live storage beside the base's weights: adapters, their gradients and moments, activations.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from count_pipelines import ALIASES, DTYPES, in_words_of_diffusers
from denoiser_inputs import denoiser_inputs
from rows import configs, count_rows
from train_steps import last_peak

ROWS = Path(__file__).with_name("denoiser_training.csv")
STEPS = 2
ATTENTION = ["to_k", "to_q", "to_v", "to_out.0"]
BOTH = [f"attn.{name}" for name in (*ATTENTION, "add_k_proj", "add_q_proj", "add_v_proj", "to_add_out")]
FEED_FORWARD = [f"{stream}.net.{name}" for stream in ("ff", "ff_context") for name in ("0.proj", "2")]
# target_modules of the scripts (examples/dreambooth/train_dreambooth_lora_{flux,sd3,qwen_image,flux2,z_image,sdxl}.py)
TARGETS = {
    "FluxTransformer2DModel": BOTH + FEED_FORWARD,
    "SD3Transformer2DModel": BOTH,
    "Flux2Transformer2DModel": [*ATTENTION, "to_qkv_mlp_proj"],
    # of videos, finetrainers' (examples/training/sft/{wan,ltx_video,hunyuan_video} at f476c371): its patterns leave out what refines the text
    "HunyuanVideoTransformer3DModel": r"(transformer_blocks|single_transformer_blocks).*"
    r"(to_q|to_k|to_v|to_out.0|add_q_proj|add_k_proj|add_v_proj|to_add_out)",
    "LTXVideoTransformer3DModel": r"(transformer_blocks|single_transformer_blocks).*(to_q|to_k|to_v|to_out.0)",
    "WanTransformer3DModel": r"blocks.*(to_q|to_k|to_v|to_out.0)",
}
# finetrainers casts adapters to fp32 whatever the base is in, and accelerate's autocast runs the step in bf16
IN_FP32 = ("HunyuanVideoTransformer3DModel", "LTXVideoTransformer3DModel", "WanTransformer3DModel")


def tracker_of():
    """Counts what cuDNN works in besides, as hollow.Convolving does: in 16 bits what a convolution reads and writes lies there twice."""
    import live_storage
    import torch

    class Convolving(live_storage.Tracker):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = super().__torch_dispatch__(func, types, args, kwargs)
            if "convolution" in func._schema.name:
                made = result if isinstance(result, tuple) else (result,)
                read = args[:2] if "backward" in func._schema.name else args[:1]
                tensors = [t for t in (*read, *made[:1]) if isinstance(t, torch.Tensor) and t.element_size() == 2]
                self.peak = max(self.peak, self.total + sum(t.nbytes for t in tensors))
            return result

    return Convolving()


def build(row: dict[str, str], config: dict):
    """The base on the meta device, its adapters among it."""
    import diffusers
    import peft
    import torch

    kind = getattr(diffusers, ALIASES.get(row["class"], row["class"]))
    config = in_words_of_diffusers(config) | json.loads(row["config_json"] or "{}")
    known = kind._get_init_keys(kind)
    with torch.device("meta"):
        model = kind(**{k: v for k, v in config.items() if k in known and v is not None})
    model = model.to(getattr(torch, DTYPES.get(row["dtype_id"], "float16")))
    model.requires_grad_(False)
    if row["denoiser_dtype_id"] == "nf4":
        import count_training

        count_training.quantise(model)
    if row["checkpointing"] == "full":
        model.enable_gradient_checkpointing()
    targets = TARGETS.get(row["class"], ATTENTION)
    if row["class"] == "Flux2Transformer2DModel":
        layers = len(model.single_transformer_blocks)
        targets = [*targets, *(f"single_transformer_blocks.{i}.attn.to_out" for i in range(layers))]
    rank = int(row["lora_rank"])
    with torch.device("meta"):
        model.add_adapter(
            peft.LoraConfig(r=rank, lora_alpha=rank, init_lora_weights="gaussian", target_modules=targets)
        )
    is_packed = bool(row["denoiser_dtype_id"])
    is_fp32 = is_packed or row["dtype_id"] == "fp16" or row["class"] in IN_FP32
    adapters = torch.float32 if is_fp32 else torch.bfloat16
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(adapters)
    for module in model.modules():
        if is_packed and hasattr(module, "lora_A"):  # peft's layers of bitsandbytes leave the cast to autocast
            module.cast_input_dtype_enabled = False
    return model.train()


def optimizer_of(model, name: str):
    import torch

    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(trained, foreach=name == "adamw-foreach", fused=name == "adamw")


def count(row: dict[str, str], config: dict) -> tuple[int, int, int]:
    """The base's bytes, the adapters' parameters, and the peak beside the base."""
    import count_training
    import fake_cuda
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake_cuda.install()
    live_storage.install_attention()
    compute = torch.float16 if row["dtype_id"] == "fp16" else torch.bfloat16
    model = build(row, config)
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    tracker = tracker_of()
    with FakeTensorMode(allow_non_fake_inputs=True):
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        with tracker:
            for parameter in model.parameters():
                if not parameter.requires_grad:
                    tracker.track(parameter)
            for buffer in model.buffers():
                tracker.track(buffer)
            weights = tracker.total
            for parameter in model.parameters():
                tracker.track(parameter)
            peak = train(model, row, compute, tracker)
    return weights, adapters, peak - weights


def train(model, row: dict[str, str], compute, tracker) -> int:
    """The peak of the last step."""
    import torch

    # (a packed model's first parameter is bytes)
    asked = SimpleNamespace(config=model.config, parameters=lambda: iter([torch.empty(0, dtype=compute)]))
    with torch.device("cuda"):
        given = denoiser_inputs(asked, row | {"sequences": row["images"]})
        if row["class"] == "LTXVideoTransformer3DModel":  # finetrainers gives each token a time of its own
            given["timestep"] = torch.ones(given["hidden_states"].shape[:2])
    optimizer = optimizer_of(model, row["optimizer_id"])

    def loss():
        with torch.autocast("cuda", dtype=compute):
            output = model(**given, return_dict=False)[0]
            output = torch.stack(output) if isinstance(output, list) else output
        output = output.float()
        return ((output - torch.ones_like(output)) ** 2).mean()

    return last_peak(STEPS, tracker, optimizer, loss)


def main() -> None:
    import diffusers
    import peft
    import torch

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        weights, adapters, peak = count(row, known[row["model_id"]])
        print(*list(row.values())[:12], adapters, peak, flush=True)
        versions = (
            f"torch {torch.__version__.split('+')[0]}, diffusers {diffusers.__version__}, peft {peft.__version__}"
        )
        found = {"weights_bytes": weights, "adapter_parameters": adapters, "peak_bytes": peak}
        return {name: str(value) for name, value in found.items()} | {"versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {row['class']}", counted)


if __name__ == "__main__":
    main()
