"""A training by TRL's own trainers on a card: rows of card_trl.csv and of preference.csv. Used by measure_card.py.

    pip download --no-deps trl==1.0.0 && unzip trl-1.0.0-py3-none-any.whl -d trl/1.0.0      # for each release, into one folder
    TRL_RELEASES=trl python tests/oracle/measure_card.py --out card.csv --only card_trl

Nothing of a trainer is taken out or put in: it gets a model of random weights, a few made-up rows of one length and its own config, whose defaults
stay but for the batch, the length and the checkpoints. What it read at each step is looked at, so that a row is of the length that it says.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import card_steps
import count_training
import rows

WORDS = 1000
STEPS = {"grpo": 2}  # 4 of all others: writing the answers takes most of the time
# rows that a pair or an answer is
ROWS_EACH = {"dpo": 2, "orpo": 2, "reward": 2, "kto": 1, "grpo": 1, "sft": 1}


def step(row: rows.Row, models: dict[str, rows.Row]) -> card_steps.Measured:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    os.environ |= {"TRL_EXPERIMENTAL_SILENCE": "1", "HF_HOME": tempfile.mkdtemp(), "WANDB_DISABLED": "true"}
    release = Path(os.environ["TRL_RELEASES"]).resolve() / row["trl_version"]
    sys.path.insert(0, str(release))
    os.chdir(tempfile.mkdtemp())
    import trl

    assert Path(trl.__file__).is_relative_to(release), trl.__file__
    objective = row["objective_id"]
    trainer_class, config_class = classes(objective)
    model, named = base(row, models[row["model"]]), {}
    if row["lora_rank"]:
        named["peft_config"] = adapters(row, model)
    elif objective in ("dpo", "kto"):
        named["ref_model"] = base(row, models[row["model"]])
    if objective == "grpo":
        named["reward_funcs"] = lambda completions, **_others: [float(at % 2) for at in range(len(completions))]
    seen = Seen()
    trainer = trainer_class(
        model=model, args=arguments(row, config_class), train_dataset=data(row), processing_class=tokenizer(), callbacks=[seen.callback()],
        **named,
    )  # fmt: skip
    seen.watch(trainer)
    trainer.train()
    seen.hold(row)
    return card_steps.said(seen.peak, seen.standing)


def classes(objective: str) -> tuple[type, type]:
    import importlib

    import trl

    name = {"dpo": "DPO", "orpo": "ORPO", "kto": "KTO", "reward": "Reward", "grpo": "GRPO", "sft": "SFT"}[objective]
    for package in (trl, f"trl.experimental.{objective}"):
        try:
            module = importlib.import_module(package) if isinstance(package, str) else package
            return getattr(module, f"{name}Trainer"), getattr(module, f"{name}Config")
        except (AttributeError, ImportError):
            continue
    raise ValueError(f"no trainer of {objective} in TRL {trl.__version__}")


def base(row: rows.Row, model_row: rows.Row):
    """The model as from_pretrained gives it: in the row's type, or packed by bitsandbytes with the rest in 16 bits."""
    import torch
    import transformers

    config = json.loads(model_row["config_json"])
    kind = model_row["auto_class"]
    if row["objective_id"] == "reward":
        kind = "AutoModelForSequenceClassification"
        config |= {"num_labels": 1}
    settings = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    settings.pad_token_id = WORDS - 1
    dtype = getattr(torch, count_training.DTYPES.get(row["dtype_id"], "bfloat16"))
    with torch.device("meta"):
        model = getattr(transformers, kind).from_config(settings, dtype=dtype)
        if row["phase_id"] == "qlora":
            card_steps.quantise(model, is_prepared=False, dtype_id=row["dtype_id"])
            as_loaded_in_four_bits(model)
    card_steps.to_card(model)
    for parameter in model.parameters():
        if row["phase_id"] != "qlora":
            parameter.requires_grad = True
    return model


def as_loaded_in_four_bits(model) -> None:
    """What from_pretrained leaves on a model that it packs, and trainers ask for."""
    import torch
    import transformers
    from transformers.quantizers.auto import AutoHfQuantizer

    said = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    model.hf_quantizer = AutoHfQuantizer.from_config(said, pre_quantized=False)
    model.config.quantization_config = said
    model.is_quantized, model.quantization_method = True, said.quant_method


def adapters(row: rows.Row, model):
    import peft

    targets: str | list[str] = "all-linear"
    if row["lora_targets"] != "all-linear":
        last = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
        targets = [name for name in count_training.TARGETS[row["lora_targets"]] if name in last]
    kind = "SEQ_CLS" if row["objective_id"] == "reward" else "CAUSAL_LM"
    dropout = float(row.get("lora_dropout") or 0)
    return peft.LoraConfig(r=int(row["lora_rank"]), target_modules=targets, task_type=kind, lora_dropout=dropout)


def arguments(row: rows.Row, config_class: type):
    import dataclasses

    batch = int(row["pairs"])
    named = {
        "output_dir": tempfile.mkdtemp(), "per_device_train_batch_size": batch, "gradient_checkpointing": row["checkpointing"] == "full",
        "bf16": True, "max_steps": STEPS.get(row["objective_id"], 4), "report_to": [], "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True,
        "dataloader_num_workers": 0,
    }  # fmt: skip
    if row["objective_id"] == "grpo":
        new = int(row["context_tokens"]) - 1
        named |= {"num_generations": batch, "max_completion_length": new, "generation_kwargs": {"min_new_tokens": new}}
    else:
        named["max_length"] = int(row["context_tokens"])
    known = {field.name for field in dataclasses.fields(config_class)}
    return config_class(**{name: value for name, value in named.items() if name in known})


def data(row: rows.Row):
    """Rows of exactly one length: one word asks, all others answer, and the end of text is the last token where the trainer adds it."""
    import datasets

    length = int(row["context_tokens"])

    def words(first: int, count: int) -> str:
        return " ".join(f"w{(first + 7 * at) % (WORDS - 10)}" for at in range(count))

    def one(number: int) -> dict:
        answer, other = (" " + words(number + shift, length - 2) + " </s>" for shift in (3, 5))
        match row["objective_id"]:
            case "dpo" | "orpo":
                return {"prompt": "w1", "chosen": answer, "rejected": other}
            case "reward":
                return {"chosen": "w1" + answer, "rejected": "w1" + other}
            case "kto":
                return {"prompt": "w1", "completion": answer, "label": number % 2 == 0}
            case "grpo":
                return {"prompt": "w1"}
            case _:
                return {"text": "w1" + answer}

    return datasets.Dataset.from_list([one(number) for number in range(8 * int(row["pairs"]))])


def tokenizer():
    import tokenizers
    import transformers

    words = {f"w{number}": number for number in range(WORDS - 3)}
    words |= {name: WORDS - 3 + at for at, name in enumerate(("<unk>", "</s>", "<pad>"))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    plain.add_special_tokens(["<unk>", "</s>", "<pad>"])
    # none for the start of a text, which some trainers would put before it
    named = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **named)


class Seen:
    """What a trainer held in its last step, and how long the rows were that its models read."""

    def __init__(self) -> None:
        self.card, self.peak, self.standing = card_steps.Card(), 0, 0
        self.shapes: set[tuple[int, ...]] = set()

    def callback(self):
        import transformers

        seen = self

        class Callback(transformers.TrainerCallback):
            def on_step_begin(self, *_given, **_named):
                seen.card.reset_peak()

            def on_step_end(self, *_given, **_named):
                seen.peak, seen.standing = seen.card.peak, seen.card.standing

        return Callback()

    def watch(self, trainer) -> None:
        plain = trainer.training_step

        def training_step(model, inputs, *others):
            if isinstance(inputs, dict):
                self.shapes |= {(name, *inputs[name].shape) for name in inputs if name.endswith("input_ids")}
            return plain(model, inputs, *others)

        trainer.training_step = training_step

    def hold(self, row: rows.Row) -> None:
        if row["objective_id"] == "grpo":
            return
        tokens, pairs = int(row["context_tokens"]), int(row["pairs"])
        right = {(pairs * ROWS_EACH[row["objective_id"]], tokens), (pairs, tokens)}
        read = {tuple(shape) for name, *shape in self.shapes if "prompt" not in name and "answer" not in name}
        assert read and read <= right, f"read {sorted(self.shapes)}, not {sorted(right)}"
