"""Counts what a training step with pictures holds at its peak, of models whose tower is frozen, without adapters or with some.

    pip install -e '.[oracle]'
    python tests/oracle/count_image_training.py                    # all rows of image_training.csv that have no peak yet
    python tests/oracle/count_image_training.py --again qwen3_vl   # rows of models whose id or type holds this, anew

Configs are those of the snapshot. Steps run as count_training.py runs them, on fake CUDA tensors; towers ask what their inputs hold (how many
patches a picture has, where its tokens stand), so that tensors of whole numbers have their values beside them here. Column `tower`:

    hooked   gradient checkpointing makes the input of the tower's layers require gradients too, as `enable_input_require_grads` of
             Transformers does of every part that names its first layer: autograd keeps the tower
    frozen   nothing of the tower requires gradients: no checkpointing, a class that names no first layer, or a program that runs a frozen
             tower without autograd (ms-swift's patch_frozen_module)
    adapted  hooked, and all linear layers of the tower and of what joins it to the text carry adapters too, as peft's all-linear has it
    whole    hooked, and no layer of the tower is recomputed, as LLaMA-Factory leaves layers out in which nothing is trained

Column `loss`: full, or one of TRL's (TRL=folder of an unpacked wheel: `tiled` 1.15 or later, `recomputed` 1.13). Column `changes`: values of a
config that are others than the snapshot's. Column `use`: fit (fit_tower_training.py) or held-back.

Pixels arrive in fp32, as processors give them, and stand through the step.
"""

from __future__ import annotations

import functools
import gc
from pathlib import Path

import count_inference
import count_training
import fake_cuda
import live_storage
import torch
from rows import changed, configs, count_rows
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map
from train_steps import last_peak

ROWS = Path(__file__).with_name("image_training.csv")
VALUES = 1 << 24  # elements whose values are worth keeping
TOWERS = ("visual", "vision_tower", "vision_model", "multi_modal_projector", "embed_vision", "connector")
aten = torch.ops.aten
DYNAMIC = (aten.nonzero.default, aten.repeat_interleave.Tensor, aten._unique2.default, aten.unique_consecutive.default)


class Knowing(live_storage.Tracker):
    """A tracker under which fake tensors of whole numbers have their values, and convolutions what cuDNN works in."""

    at = ""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is aten._local_scalar_dense.default and (value := _value(args[0])) is not None:
            with _disable_current_modes():
                return value.item()
        known, unknown = self._values(func, args, kwargs)
        before = self.peak
        if known is not None and func in DYNAMIC:
            result = tree_map(lambda v: torch.empty(v.shape, dtype=v.dtype, device="cuda"), known)
        else:
            if func is aten.index.Tensor:  # a choice by a mask is one by places
                args = (args[0], _places(args[1]), *args[2:])
            result = super().__torch_dispatch__(func, types, args, kwargs)
        if not unknown:
            for made, value in zip(tree_leaves(result), tree_leaves(known), strict=True):
                if isinstance(made, FakeTensor) and isinstance(value, torch.Tensor):
                    made.known = value
        if "convolution" in func._schema.name and "backward" not in func._schema.name and result.device.type == "cuda":
            working = sum(live_storage._round(t.nbytes, 512) for t in live_storage.worked_in(args[0], result))
            self.peak = max(self.peak, self.total + working)
        if self.peak > before:
            self.at = f"{func} {[tuple(t.shape) for t in tree_leaves(result) if isinstance(t, torch.Tensor)]}"
        return result

    @staticmethod
    def _values(func, args, kwargs):
        """What the operator gives of whole numbers, and whether that is not known."""
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(_value(leaf) is None for leaf in leaves):
            return None, True
        if not leaves and not _makes_whole_numbers(func, kwargs):
            return None, True

        def real(leaf):
            if isinstance(leaf, torch.Tensor):
                return _value(leaf)
            return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

        with _disable_current_modes():
            given = func(*tree_map(real, args), **tree_map(real, kwargs))
        return given, False


def _makes_whole_numbers(func, kwargs) -> bool:
    dtype = kwargs.get("dtype")
    if dtype is None:
        return "arange" in func._schema.name or "full" in func._schema.name
    return not (dtype.is_floating_point or dtype.is_complex) and "rand" not in func._schema.name


def _value(tensor) -> torch.Tensor | None:
    if not isinstance(tensor, FakeTensor):
        return tensor if tensor.numel() <= VALUES and tensor.device.type == "cpu" else None
    value = getattr(tensor, "known", None)
    return value if value is not None and value.shape == tensor.shape else None


def _places(indices):
    """Masks whose values are known, as the places where they are true."""
    made = []
    for index in indices:
        value = None if index is None else _value(index)
        if value is None or value.dtype != torch.bool:
            made.append(index)
            continue
        with _disable_current_modes():
            places = value.nonzero(as_tuple=True)
        made.extend(_known(place) for place in places)
    return made


def _known(value: torch.Tensor):
    made = torch.empty(value.shape, dtype=value.dtype, device="cuda")
    made.known = value
    return made


def count(config: dict, row: dict[str, str]) -> tuple[int, int, str]:
    """Bytes of the peak, parameters of the adapters, and what made the peak."""
    fake_cuda.install()
    live_storage.install_attention()
    model, given = build(config, row)
    if row["loss"] != "full":
        add_head_of_trl(model.get_base_model(), row)
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad) if row["lora_rank"] else 0
    tracker = Knowing()
    with FakeTensorMode(allow_non_fake_inputs=True):
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        read_lists_of_tensors()
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(tensor)
            held = {name: _input(value) for name, value in given.items()}
            for value in held.values():
                tracker.track(value)
            peak = train(model, held, row, tracker)
    gc.collect()
    return peak, adapters, tracker.at


def add_head_of_trl(model, row: dict[str, str]) -> None:
    """The head in tiles, or the loss by parts, of a wheel of TRL that is unpacked in the folder TRL."""
    import count_sharded

    plain = {name: getattr(torch.Tensor, name) for name in ("item", "__bool__", "__getitem__", "__setitem__")}
    if row["loss"] == "tiled":
        count_sharded.add_tiled_head(model)
    else:
        count_sharded.add_recomputed_head(model, int(row["sequences"]) * (int(row["context_tokens"]) - 1))
    for name, before in plain.items():
        setattr(torch.Tensor, name, _where_known(before, getattr(torch.Tensor, name)))


def _where_known(plain, guessed):
    """What has its values is read as it is: the loss guesses them, and a tower does not run on guesses."""

    def called(self, *given):
        asked = given[0] if given and isinstance(given[0], torch.Tensor) else self
        is_known = not isinstance(asked, FakeTensor) or _value(asked) is not None
        return (plain if is_known else guessed)(self, *given)

    return called


@functools.cache
def read_lists_of_tensors() -> None:
    """torch.tensor reads the numbers of a list past all modes."""
    plain = torch.tensor

    def tensor(data, *args, **named):
        if isinstance(data, list) and data and isinstance(data[0], torch.Tensor):
            data = [value.item() for value in data]
        return plain(data, *args, **named)

    torch.tensor = tensor


def _input(value: torch.Tensor):
    if value.is_floating_point():
        return torch.empty(value.shape, dtype=torch.float32, device="cuda")
    with _disable_current_modes():
        value = value.clone()
    return _known(value)


def build(config: dict, row: dict[str, str]):
    """The model on the meta device, with its adapters, and what it reads."""
    import peft
    import training_recipes

    with torch.device("meta"):
        model = bare_model(config, row)
    given = {
        name: value
        for name, value in count_inference.inputs(model, row | {"attention": "", "audio_seconds": ""}).items()
        if isinstance(value, torch.Tensor) and name != "logits_to_keep"
    }
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    if row["phase_id"] == "qlora":
        with torch.device("meta"):
            count_training.quantise(model, is_prepared=row["prepares_base"] != "false")
    if row["lora_rank"]:
        settings = training_recipes.adapter_config("lora", int(row["lora_rank"]), targets(model, row), None, 0.0)
        with torch.device("meta"):
            model = peft.get_peft_model(model, settings)
        if row["precision"] == "pure":
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.data = parameter.data.to(torch.bfloat16)
    model.train()
    if row["checkpointing"] != "none":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs=training_recipes.checkpoint_arguments(row["checkpointing"])
        )
        if row["lora_rank"]:
            model.enable_input_require_grads()
        if row["tower"] == "frozen":
            for name, module in model.named_modules():
                if name.rsplit(".", 1)[-1] in TOWERS[:3] and hasattr(module, "forward"):
                    module.forward = torch.no_grad()(module.forward)
        if row["tower"] == "whole":
            for name, module in model.named_modules():
                if set(name.split(".")) & set(TOWERS) and hasattr(module, "gradient_checkpointing"):
                    module.gradient_checkpointing = False
    return model, given


def bare_model(config: dict, row: dict[str, str]):
    import transformers

    fields = {k: v for k, v in config.items() if k not in ("model_type", "dtype", "torch_dtype", "quantization_config")}
    if row["model_id"] in count_inference.TEXT:
        tied = {"tie_word_embeddings": config["model_type"] != "internvl"}
        text = configs()[count_inference.TEXT[row["model_id"]]] | {"vocab_size": config["vocab_size"]} | tied
        tower = {"vision_config": fields["vision_config"]} if "vision_config" in fields else {}
        fields = {"text_config": text, **tower, **tied}
    settings = transformers.AutoConfig.for_model(config["model_type"], **fields)
    kind = getattr(transformers, row["class"])
    dtype = getattr(torch, count_training.DTYPES.get(row["dtype_id"], "bfloat16"))
    model = kind._from_config(settings, dtype=dtype)
    model.tie_weights()
    return model


def targets(model, row: dict[str, str]) -> list[str]:
    """Linear layers by their whole names, all but the head, or attention's: of the text alone, or of the tower too."""
    wanted = count_training.TARGETS.get(row["lora_targets"])
    left_out = {"lm_head"} if row["tower"] == "adapted" else {*TOWERS, "lm_head"}
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and not set(name.split(".")) & left_out
        and (wanted is None or name.rsplit(".", 1)[-1] in wanted)
    ]


def train(model, given: dict, row: dict[str, str], tracker) -> int:
    optimizer = count_training.optimizer_of(model, row["optimizer_id"])
    model.config.use_cache = False
    given["labels"] = given["input_ids"]

    def loss():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=row["precision"] == "amp"):
            return model(**given, **({"fused_lm_head": True} if row["loss"] == "tiled" else {})).loss

    return last_peak(count_training.STEPS, tracker, optimizer, loss)


def main() -> None:
    import peft
    import transformers

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        peak, adapters, at = count(changed(known[row["model_id"]], row["changes"]), row)
        print(
            row["model_id"],
            row["tower"],
            row["checkpointing"],
            row["images"],
            row["image_pixels"],
            peak,
            at,
            flush=True,
        )
        versions = f"torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__}"
        return {"peak_bytes": str(peak), "adapter_parameters": str(adapters or ""), "versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {known[row['model_id']].get('model_type')}", counted)


if __name__ == "__main__":
    main()
