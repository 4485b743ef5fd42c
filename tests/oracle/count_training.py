"""Counts what real training steps hold at their peak: the truth that the training formulas are held to.

    pip install -e '.[oracle]'
    python tests/oracle/count_training.py                 # all rows of training_peaks.csv that have no peak yet
    python tests/oracle/count_training.py --again phi3    # the rows of one model anew
    python tests/oracle/count_training.py --rows training_recipes.csv   # the rows of another table
    pip install --no-deps lomo-optim==0.1.1               # for rows of lomo in training_in_backward.csv

Models of training_models.csv run two steps on fake CUDA tensors (real shapes, no data, no GPU): real forward, backward and
optimizer code of transformers and peft. A row's peak is that of the second step in bytes of live storage; the process's context,
workspaces of libraries and unused blocks of the allocator are not part of it.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gc
import json
import logging
import sys
import warnings
from pathlib import Path

import fake_cuda
from train_steps import last_peak

# columns of a recipe that a table may leave out, and what they then are
DEFAULTS = {
    "adapter": "lora",
    "loss": "full",
    "gradient_accumulation": "1",
    "lora_dropout": "0",
    "engine_id": "transformers",
}
MODELS = Path(__file__).with_name("training_models.csv")
PEAKS = Path(__file__).with_name("training_peaks.csv")
STEPS = 2
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
ATTENTION = (
    "q_proj", "k_proj", "v_proj", "o_proj", "query_key_value", "c_attn", "qkv_proj", "query", "key", "value", "out_proj",
    "q", "k", "v", "o",
)  # fmt: skip
TARGETS = {
    "attention": ATTENTION,
    "query-value": ("q_proj", "v_proj", "query_key_value", "c_attn", "qkv_proj", "query", "value", "q", "v"),
}

# "all-linear" names what peft cannot adapt: outputs of mixers, at which it raises an error, and a router whose result is a tuple
LEFT_OUT = dict.fromkeys(("falcon_h1", "mamba", "mamba2", "falcon_mamba", "nemotron_h"), "out_proj") | {
    "llama4_text": "router"
}


def count(model_row: dict[str, str], row: dict[str, str]) -> tuple[int, int]:
    """The peak in bytes, and the parameters of the adapters."""
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    row = row | {name: row.get(name) or value for name, value in DEFAULTS.items()}
    fake_cuda.install()
    live_storage.install_attention()
    model = build(model_row, row)
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad) if row["lora_rank"] else 0
    tracker = live_storage.Tracker()
    tokens = (int(row["sequences"]), int(row["context_tokens"]))
    with FakeTensorMode(allow_non_fake_inputs=True):
        to_fake(model)
        behave_as_with_values(has_padding=row["attention"] == "masked")
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(tensor)
            ids = torch.randint(0, 100, tokens, device="cuda")
            peak = train(model, ids, row, tracker)
    del model, ids
    gc.collect()
    return peak, adapters


def build(model_row: dict[str, str], row: dict[str, str]):
    import torch
    import transformers

    config = json.loads(model_row["config_json"])
    settings = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    named = {"dtype": getattr(torch, DTYPES.get(row["dtype_id"], "bfloat16"))}
    if hasattr(settings, "num_attention_heads"):
        named["attn_implementation"] = "eager" if row["attention"] == "eager" else "sdpa"
    if model_row["experts_implementation"]:
        named["experts_implementation"] = model_row["experts_implementation"]
    with torch.device("meta"):
        model = getattr(transformers, model_row["auto_class"]).from_config(settings, **named)
        if row["phase_id"] == "qlora":
            quantise(
                model, is_prepared=row["precision"] != "pure" and row["engine_id"] != "unsloth" and is_prepared(row)
            )
        if row["lora_rank"]:
            model = with_adapters(model, row)
        if row["dtype_id"].endswith("-experts"):
            pack_experts(model)
    model.train()
    if row["checkpointing"] != "none":
        import training_recipes

        arguments = training_recipes.checkpoint_arguments(row["checkpointing"])
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=arguments)
        if row["lora_rank"]:
            model.enable_input_require_grads()
        if row["engine_id"] == "unsloth":
            training_recipes.offload_checkpoints(model)
    return model


def is_prepared(row: dict[str, str]) -> bool:
    """Whether peft's prepare_model_for_kbit_training goes over a packed base, and its adapters are in fp32."""
    return row.get("prepares_base") != "false"


def quantise(model, is_prepared: bool = True) -> None:
    """Linear layers but the head hold 4.5 bits a weight and unpack it to multiply; the rest is fp32 where peft prepares the base."""
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, packed, shape):
            ctx.save_for_backward(packed)
            ctx.shape = shape
            return value @ torch.empty(shape, dtype=value.dtype, device=value.device).t()

        @staticmethod
        def backward(ctx, gradient):
            return gradient @ torch.empty(ctx.shape, dtype=gradient.dtype, device=gradient.device), None, None

    class Packed(torch.nn.Linear):
        def forward(self, value):
            shape = (self.out_features, self.in_features)
            return Product.apply(value.to(torch.bfloat16), self.weight, shape).to(value.dtype)

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear and name not in ("lm_head", "embed_out", "score"):
                packed = Packed(child.in_features, child.out_features, bias=child.bias is not None)
                weight = torch.empty(child.weight.numel() * 9 // 16, dtype=torch.uint8)
                packed.weight = torch.nn.Parameter(weight, requires_grad=False)
                setattr(module, name, packed)
    for parameter in model.parameters():
        parameter.requires_grad = False
        if is_prepared and parameter.dtype != torch.uint8:
            parameter.data = parameter.data.to(torch.float32)


def pack_experts(model) -> None:
    """Fused experts hold 4.5 bits a weight and are unpacked whole where they are read, as bitsandbytes' replace_parameter_4bit does."""
    import torch
    from torch.nn.utils import parametrize

    class Unpacked(torch.nn.Module):
        def __init__(self, value) -> None:
            super().__init__()
            self.shape, self.dtype = value.shape, value.dtype

        @torch.no_grad()
        def forward(self, packed):
            return torch.empty(self.shape, dtype=self.dtype, device=packed.device)

    def keep(_module, *_inputs) -> None:
        parametrize._cache_enabled += 1

    def forget(_module, *_inputs) -> None:
        parametrize._cache_enabled = max(0, parametrize._cache_enabled - 1)
        if not parametrize._cache_enabled:
            parametrize._cache = {}

    for module in list(model.modules()):
        for name, value in list(module.named_parameters(recurse=False)):
            if value.dim() != 3 or value.shape[1] == 1 or value.requires_grad:
                continue
            packed = torch.empty(value.numel() * 9 // 16, dtype=torch.uint8, device=value.device)
            setattr(module, name, torch.nn.Parameter(packed, requires_grad=False))
            parametrize.register_parametrization(module, name, Unpacked(value), unsafe=True)
            module.register_forward_pre_hook(keep)
            module.register_forward_hook(forget, always_call=True)
    read_adapted_experts_anew()


@functools.cache
def read_adapted_experts_anew() -> None:
    """peft's adapters of packed experts, with the remedy of Axolotl's moe_quant.py: what was unpacked without them is forgotten."""
    import contextlib

    from peft.tuners.lora import layer
    from torch.nn.utils import parametrize

    # peft 0.21.2 leaves the kind of adapter that it made on a packed parameter, and fails at the next read
    layer._LoraParameterProxy = (layer._LoraParameterProxy, layer._LoraFactorsProxy)
    activate = layer.ParamWrapper._activate_lora

    @contextlib.contextmanager
    def anew(self, active_adapters):
        key = (id(self.get_base_layer()), self.parameter_name)
        parametrize._cache.pop(key, None)
        with activate(self, active_adapters):
            parametrize._cache.pop(key, None)
            try:
                yield
            finally:
                parametrize._cache.pop(key, None)

    layer.ParamWrapper._activate_lora = anew


def with_adapters(model, row: dict[str, str]):
    import peft
    import training_recipes

    if row["lora_targets"] not in ("all-linear", "experts", "attention-experts", *TARGETS):
        raise ValueError(f"no targets {row['lora_targets']} here")
    targets: str | list[str] = "all-linear"
    if (named := row["lora_targets"].removesuffix("-experts")) in TARGETS:
        last = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
        targets = [name for name in TARGETS[named] if name in last]
    left_out = [LEFT_OUT[model.config.model_type]] if model.config.model_type in LEFT_OUT else None
    dropout = float(row["lora_dropout"])
    settings = training_recipes.adapter_config(row["adapter"], int(row["lora_rank"]), targets, left_out, dropout)
    if row.get("task_type"):  # a head of a few numbers is trained too
        settings.task_type = row["task_type"]
    if row["lora_targets"] == "experts":
        settings.target_modules = []
    if row["lora_targets"].endswith("experts"):
        settings.target_parameters = experts_of(model)
    if row.get("trains_embeddings"):
        settings.modules_to_save = ["embed_tokens", "lm_head"]
    adapted = peft.get_peft_model(model, settings)
    if (
        row["engine_id"] == "unsloth"
    ):  # under autocast neither its kernels nor peft's adapters of packed layers cast what they read
        for module in adapted.modules():
            if hasattr(module, "lora_A"):
                module.cast_input_dtype_enabled = False
    if row["precision"] == "pure" or not is_prepared(
        row
    ):  # autocast_adapter_dtype=False, which passes over the meta device
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(model.dtype)
    return adapted


def experts_of(model) -> list[str]:
    """Names of fused experts' matrices, as peft's `target_parameters` takes them: stacks of one matrix for each expert.

    (The kernels of convolutions, of one channel each, have three axes too.)
    """
    stacks = {
        ".".join(name.rsplit(".", 2)[1:])
        for name, value in model.named_parameters()
        if value.dim() == 3 and value.shape[1] > 1
    }
    if not stacks:
        raise ValueError("no fused experts here")
    return sorted(stacks)


def to_fake(model) -> None:
    """Every parameter and buffer on the meta device becomes a fake CUDA tensor; shared ones stay shared."""
    import torch

    made: dict[int, tuple] = {}
    for module in model.modules():
        for name, value in [*module._parameters.items(), *module._buffers.items()]:
            if value is None:
                continue
            if id(value) not in made:
                fake = torch.empty(value.shape, dtype=value.dtype, device="cuda")
                if isinstance(value, torch.nn.Parameter):
                    fake = torch.nn.Parameter(fake, requires_grad=value.requires_grad)
                made[id(value)] = (value, fake)
            kind = module._parameters if name in module._parameters else module._buffers
            kind[name] = made[id(value)][1]


def behave_as_with_values(has_padding: bool = False) -> None:
    """Fake tensors have no values: transformers must neither take them for tracing nor look for padding and packing in them."""
    import torch
    import torch.optim.adam as adam  # the package deletes its own attribute of this name
    import transformers.masking_utils as masks
    import transformers.utils.import_utils as imports

    imports.is_fake_tensor = lambda _tensor: False
    masks.find_packed_sequence_indices = lambda position_ids: None
    if hasattr(masks, "fast_all"):
        masks.fast_all = lambda _tensor: not has_padding
    adam._get_value = lambda value: 1.0 if isinstance(value, torch.Tensor) else value


def optimizer_of(model, name: str):
    import torch
    import training_recipes
    import transformers

    trained = [p for p in model.parameters() if p.requires_grad]
    match name:
        case "adamw" | "adamw-foreach" | "adamw-forloop":
            return torch.optim.AdamW(trained, fused=name == "adamw", foreach=name == "adamw-foreach")
        case "adamw-in-backward" | "lomo":
            return training_recipes.in_backward(model, name)
        case "sgd" | "sgd-momentum":
            return torch.optim.SGD(trained, lr=1e-4, momentum=0.9 if name == "sgd-momentum" else 0, foreach=True)
        case "adafactor":
            return transformers.Adafactor(
                trained, lr=1e-4, scale_parameter=False, relative_step=False, warmup_init=False
            )
    raise ValueError(f"no optimizer {name} here")


def inputs_of(model, ids) -> dict:
    """What a step reads: labels are as long as the input; a model that hears reads its whole window."""
    import torch

    config = model.config
    named = {"input_ids": ids, "labels": ids}
    if config.is_encoder_decoder:
        named["decoder_input_ids"] = ids
    if hasattr(config, "num_mel_bins"):
        shape = (len(ids), config.num_mel_bins, 2 * config.max_source_positions)
        dtype = next(model.parameters()).dtype
        del named["input_ids"]
        named["input_features"] = torch.empty(shape, dtype=dtype, device="cuda")
    return named


def train(model, ids, row: dict[str, str], tracker) -> int:
    import torch
    import training_recipes

    optimizer = optimizer_of(model, row["optimizer_id"])
    named = inputs_of(model, ids)
    if row["attention"] == "masked":
        named["attention_mask"] = torch.ones_like(ids)
        named["attention_mask"][0, :7] = 0  # one sequence is shorter than the others
    # as Trainer sets it (TrainingArguments.use_cache)
    model.config.use_cache = False

    def loss():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=row["precision"] == "amp"):
            return training_recipes.loss_of(model, dict(named), row["loss"], row["engine_id"])

    return last_peak(STEPS, tracker, optimizer, loss, int(row["gradient_accumulation"]))


def main() -> None:
    import peft
    import torch
    import transformers

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", default=None, help="model whose rows are counted anew")
    parser.add_argument("--rows", default=PEAKS.name, help="table beside this file (default: training_peaks.csv)")
    asked = parser.parse_args()
    peaks = PEAKS.with_name(asked.rows)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with MODELS.open(newline="") as file:
        models = {r["model"]: r for r in csv.DictReader(file)}
    with peaks.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["peak_bytes"] and row["model"] != asked.again:
            continue
        try:
            row["peak_bytes"], adapters = map(str, count(models[row["model"]], row))
        except Exception as error:
            print(f"{row['model']}: {type(error).__name__}: {str(error)[:160]}", file=sys.stderr)
            continue
        row["adapter_parameters"] = adapters if row["lora_rank"] else ""
        row["versions"] = f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}"
        print(row["model"], row["peak_bytes"])
    with peaks.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
