"""Counts what a step of TRL's DPO, ORPO, KTO, GRPO or reward models holds at its peak: the truth that preference_of is held to.

    pip download --no-deps trl==1.0.0 && unzip trl-1.0.0-py3-none-any.whl -d trl/1.0.0
    python tests/oracle/count_preference.py trl    # rows of preference.csv that have no peak yet, each with the release of its trl_version

The loss is TRL's own text (_compute_loss of DPO, GRPO and, since 1.5, KTO, get_batch_loss_metrics of ORPO and of KTO before, compute_loss of reward
models, and what they call), taken out of its files: the package itself asks for data sets and more. Kernels of TRL are run as trl_kernels.py has them. A reward model is the class of Transformers with a head of one number, which peft trains
beside the adapters (task_type SEQ_CLS). Of KTO's rows one half is desired and one is not; of GRPO's all but the
first token are of a completion, and there is no divergence (beta 0). Models are those of count_training.py, on fake CUDA tensors. Accelerate wraps the forward pass so that its outputs are fp32
(convert_outputs_to_fp32), which is done here too; every token counts as one of a completion, so that a mask takes all rows. The peak is
that of the second step in bytes of live storage.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import csv
import json
import sys
import types
from pathlib import Path

import count_training
import fake_cuda
import trl_kernels
from train_steps import last_peak
from trl_kernels import as_it_is

ROWS = Path(__file__).with_name("preference.csv")
STEPS = 2


def functions(path: Path, names: set[str], space: dict) -> None:
    """Functions of a file into a space of names, without decorators and types."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    found = [node for node in found if node.name in names]
    for node in found:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    exec(compile(ast.Module(found, type_ignores=[]), str(path), "exec"), space)


def of_logits(trl: Path) -> dict:
    """What a release works out log-probabilities and entropy with, where the model's forward pass answers with logits."""
    import torch

    if (trl / "kernels").is_dir():
        return trl_kernels.one_pass(trl)
    space = {"torch": torch, "F": torch.nn.functional}
    functions(trl / "trainer" / "utils.py", {"selective_log_softmax", "entropy_from_logits"}, space)
    return space


def has_tiled_head(trl: Path) -> bool:
    return (trl / "kernels" / "chunked_logprob.py").exists()


def with_reference(has_adapters: bool) -> dict:
    """What a trainer asks its reference by: adapters are switched off for it."""

    @contextlib.contextmanager
    def switched_off(model, adapter_name=None):
        with model.disable_adapter():
            yield

    return {
        "is_peft_model": lambda _model: has_adapters,
        "use_adapter": switched_off,
        "disable_gradient_checkpointing": as_it_is,
    }


def dpo(trl: Path, trainer, has_adapters: bool, _rows: int):
    import torch

    space = {"torch": torch, "F": torch.nn.functional} | with_reference(has_adapters) | of_logits(trl)
    functions(trl / "trainer" / "dpo_trainer.py", {"_compute_loss"}, space)

    def loss(model, ids, mask):
        return space["_compute_loss"](
            trainer, model, {"input_ids": ids, "attention_mask": mask, "completion_mask": mask}, False
        )

    return loss


def methods(trl: Path, path: str, names: set[str], trainer) -> dict:
    """Methods of a trainer's file, bound to what stands for the trainer."""
    import torch

    space = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "is_torch_xla_available": lambda: False}
    space |= of_logits(trl)
    functions(trl / path, names, space)
    for name in names - {"log1mexp"}:
        # (get_batch_logps is static)
        setattr(trainer, name, space[name] if name == "get_batch_logps" else types.MethodType(space[name], trainer))
    return space


def orpo(trl: Path, trainer, _has_adapters: bool, rows: int):
    names = {"concatenated_forward", "get_batch_logps", "odds_ratio_loss", "get_batch_loss_metrics", "log1mexp"}
    methods(trl, "experimental/orpo/orpo_trainer.py", names, trainer)

    def loss(model, ids, mask):
        trainer.concatenated_inputs = lambda *_batch, **_named: {
            "concatenated_input_ids": ids, "concatenated_attention_mask": mask, "concatenated_labels": ids
        }  # fmt: skip
        return trainer.get_batch_loss_metrics(model, {"chosen_labels": ids[: rows // 2]})[0]

    return loss


def kto(trl: Path, trainer, has_adapters: bool, rows: int):
    import torch

    # which rows are desired depends on values
    torch.nonzero = lambda _mask, as_tuple=False: torch.arange(rows // 2, device="cuda").unsqueeze(-1)
    if not (trl / "experimental" / "kto" / "kto_trainer.py").exists():
        return stable_kto(trl, trainer, has_adapters, rows)
    names = {"forward", "kto_loss", "_compute_kl_logps", "get_batch_logps", "get_batch_loss_metrics"}
    methods(trl, "experimental/kto/kto_trainer.py", names, trainer)
    if has_adapters:
        trainer.null_ref_context = trainer.model.disable_adapter

    def loss(model, ids, mask):
        batch = {f"{kind}completion_{part}": mask if part == "attention_mask" else ids for kind in ("", "KL_")
            for part in ("input_ids", "attention_mask", "labels")}  # fmt: skip
        return trainer.get_batch_loss_metrics(model, batch | {"label": [True, False] * (rows // 2)})[0]

    return loss


def stable_kto(trl: Path, trainer, has_adapters: bool, rows: int):
    """KTO since it is no experiment (1.8)."""
    import torch

    space = methods(trl, "trainer/kto_trainer.py", {"_compute_loss", "_compute_kl_logps"}, trainer)
    space |= with_reference(has_adapters) | of_logits(trl)

    def loss(model, ids, mask):
        batch = {f"{kind}{part}": ids if part == "input_ids" else mask for kind in ("", "KL_")
            for part in ("input_ids", "attention_mask", "completion_mask")}  # fmt: skip
        label = torch.ones(rows, device="cuda", dtype=torch.bool)
        return trainer._compute_loss(model, batch | {"label": label}, False)

    return loss


def grpo(trl: Path, trainer, _has_adapters: bool, rows: int):
    import inspect

    import torch

    names = {"_get_per_token_logps_and_entropies", "_compute_loss"}
    if "_full_logits_logps" in (trl / "trainer" / "grpo_trainer.py").read_text():
        names |= {"_full_logits_logps"}
    space = methods(trl, "trainer/grpo_trainer.py", names, trainer)
    space["nanmin"] = space["nanmax"] = lambda tensor: tensor.amax()
    trainer.model_kwarg_keys = inspect.signature(trainer.model.forward).parameters.keys()
    # defaults of its config
    trainer.temperature, trainer.top_entropy_quantile, trainer.off_policy_mask_threshold = 1.0, 1.0, None
    trainer.importance_sampling_level, trainer.loss_type, trainer.beta, trainer.use_vllm = "token", "dapo", 0.0, False
    trainer.epsilon_low, trainer.epsilon_high, trainer.args.delta = 0.2, 0.2, None
    trainer.accelerator.num_processes = trainer.args.steps_per_generation = (
        trainer.current_gradient_accumulation_steps
    ) = 1
    trainer._entropy_bonus_enabled, trainer.accelerator.reduce = False, lambda sums, reduction: sums

    def loss(model, ids, mask):
        inputs = {f"{part}_{kind}": of[:, begin:end] for kind, of in (("ids", ids), ("mask", mask))
            for part, begin, end in (("prompt", 0, 1), ("completion", 1, None))}  # fmt: skip
        inputs |= {"advantages": torch.zeros(rows, device="cuda"), "num_items_in_batch": torch.ones((), device="cuda")}
        return trainer._compute_loss(model, inputs)

    return loss


def reward(trl: Path, trainer, _has_adapters: bool, _rows: int):
    import torch

    space = {"torch": torch, "nn": torch.nn, "Any": object}
    functions(trl / "trainer" / "reward_trainer.py", {"compute_loss"}, space)
    trainer.args.center_rewards_coefficient = None

    def loss(model, ids, mask):
        return space["compute_loss"](trainer, model, {"input_ids": ids, "attention_mask": mask})

    return loss


def sft(trl: Path, trainer, _has_adapters: bool, _rows: int):
    """A training on text through the same head in tiles, which trainings on preferences are held against: since 1.15."""
    import accelerate
    import torch
    import transformers
    from packaging.version import Version

    space = {"torch": torch, "Version": Version, "accelerate": accelerate, "transformers": transformers}
    functions(trl / "trainer" / "sft_trainer.py", {"compute_loss"}, space)
    trainer.accelerator.parallelism_config = trainer.compute_loss_func = trainer.label_smoother = None
    trainer.args.loss_type, trainer.args.average_tokens_across_devices = "nll", False

    def loss(model, ids, mask):
        return space["compute_loss"](trainer, model, {"input_ids": ids, "attention_mask": mask, "labels": ids})

    return loss


def with_one_number(model_row: dict[str, str]) -> dict[str, str]:
    """The same model with a head of one number, as RewardTrainer loads it."""
    config = json.loads(model_row["config_json"]) | {"num_labels": 1, "pad_token_id": 0}
    return model_row | {"auto_class": "AutoModelForSequenceClassification", "config_json": json.dumps(config)}


# what the head in tiles is asked for; a reference is asked for nothing else
TILED = {
    "dpo": ("entropy", "mean_logits", "is_top1"),
    "kto": ("entropy", "mean_logits"),
    "grpo": ("entropy",),
    "sft": ("entropy", "is_top1"),
}
OBJECTIVES = {
    "dpo": (dpo, 2),
    "orpo": (orpo, 2),
    "kto": (kto, 1),
    "grpo": (grpo, 1),
    "reward": (reward, 2),
    "sft": (sft, 1),
}


def prepares_base(trl: Path, objective_id: str) -> bool:
    """Whether a release's trainer prepares a packed base in fp32, and leaves adapters in it; the others put adapters in 16 bits."""
    files = [trl / "trainer" / f"{objective_id}_trainer.py", *trl.glob(f"experimental/{objective_id}/*_trainer.py")]
    return any("prepare_model_for_kbit_training" in file.read_text() for file in files if file.exists())


def wrapped(model) -> None:
    """As accelerate wraps it under bf16: autocast around the forward pass alone, and outputs in fp32."""
    import torch

    call = model.forward

    def forward(*given, **named):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs = call(*given, **named)
        if not hasattr(outputs, "log_probs"):  # (of the head in tiles these are fp32 already)
            outputs["logits"] = outputs["logits"].float()
        return outputs

    model.forward = forward
    model.config.use_cache = False


def behave_as_a_whole_batch() -> None:
    """Fake tensors have no values: what is read of one is 0, a comparison is true, and a mask takes all that there is."""
    import torch

    get, put = torch.Tensor.__getitem__, torch.Tensor.__setitem__

    def is_mask(key):
        return isinstance(key, torch.Tensor) and key.dtype == torch.bool

    def taken(self, key):
        if not is_mask(key):
            return get(self, key)
        if self.dim() == key.dim():
            return self.reshape(-1).clone()
        return get(self, (torch.zeros(key.numel(), dtype=torch.long, device="cuda"),) * key.dim())

    torch.Tensor.item = lambda self: 0.0
    torch.Tensor.__bool__ = lambda self: True
    torch.Tensor.__getitem__ = taken
    torch.Tensor.__setitem__ = lambda self, key, value: self.mul_(1) if is_mask(key) else put(self, key, value)


def count(model_row: dict[str, str], row: dict[str, str], trl: Path) -> int:
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    row = row | {name: row.get(name) or value for name, value in count_training.DEFAULTS.items()}
    objective, rows_each = OBJECTIVES[row["objective_id"]]
    row |= {
        "sequences": str(rows_each * int(row["pairs"])),
        "precision": "amp",
        "optimizer_id": "adamw",
        "attention": "flash",
    }
    if row["objective_id"] == "reward":
        model_row, row["task_type"] = with_one_number(model_row), "SEQ_CLS"
    if row["phase_id"] == "qlora" and not prepares_base(trl, row["objective_id"]):
        row["prepares_base"] = "false"
    fake_cuda.install()
    live_storage.install_attention()
    model, reference = count_training.build(model_row, row), None
    if not row["lora_rank"] and row["objective_id"] in ("dpo", "kto"):
        reference = count_training.build(model_row, row | {"checkpointing": "none"}).eval()
    trainer = types.SimpleNamespace(
        model=model, ref_model=reference, ld_alpha=None, precompute_ref_logps=False, f_divergence_type="reverse_kl", loss_types=["sigmoid"],
        loss_weights=[1.0], beta=0.1, label_smoothing=0.0, use_weighting=False, _total_train_tokens=0, is_encoder_decoder=False, _tp_size=1,
        aux_loss_enabled=False, padding_value=0, calculate_KL=True, loss_type="kto", desirable_weight=1.0, undesirable_weight=1.0,
        use_liger_kernel=False,
        args=types.SimpleNamespace(gradient_checkpointing_kwargs=None, use_liger_kernel=False), _metrics={"train": collections.defaultdict(list)},
        accelerator=types.SimpleNamespace(gather=lambda x: x, gather_for_metrics=lambda x: x, unwrap_model=lambda m: m, device="cuda",
            autocast=as_it_is),
    )  # fmt: skip
    if has_tiled_head(trl) and row["objective_id"] in TILED:
        whole = model.get_base_model() if row["lora_rank"] else model
        trl_kernels.add_tiled_head(trl, functions, whole, ("log_probs", *TILED[row["objective_id"]]))
        if reference is not None:
            trl_kernels.add_tiled_head(trl, functions, reference, ("log_probs",))
    loss, models = (
        objective(trl, trainer, bool(row["lora_rank"]), int(row["sequences"])),
        [each for each in (model, reference) if each is not None],
    )
    tracker = live_storage.Tracker()
    with FakeTensorMode(allow_non_fake_inputs=True):
        for each in models:
            count_training.to_fake(each)
        count_training.behave_as_with_values()
        behave_as_a_whole_batch()
        with tracker:
            for each in models:
                for tensor in (*each.parameters(), *each.buffers()):
                    tracker.track(tensor)
                wrapped(each)
            ids = torch.randint(0, 100, (int(row["sequences"]), int(row["context_tokens"])), device="cuda")
            mask = torch.ones_like(ids)
            optimizer = count_training.optimizer_of(model, "adamw")
            return last_peak(STEPS, tracker, optimizer, lambda: loss(model, ids, mask))


def main() -> None:
    (trl,) = map(Path, sys.argv[1:])
    with count_training.MODELS.open(encoding="utf-8", newline="") as file:
        models = {row["model"]: row for row in csv.DictReader(file)}
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if not row["peak_bytes"]:
            row["peak_bytes"] = str(count(models[row["model"]], row, trl / row["trl_version"] / "trl"))
            print(*row.values(), sep=",", flush=True)
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
