"""A training step of Unsloth itself on a card: rows of card_unsloth.csv. Used by measure_card.py.

A checkpoint of random weights in the snapshot's config is written once for each model, with a tokenizer of made-up words, and loaded by Unsloth's own
loader; adapters are its own (`get_peft_model`, checkpoints "unsloth"), and so is the loss. The step is Trainer's: autocast in bf16.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import card_steps
import rows

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def checkpoint(model_id: str, config: dict) -> str:
    """Folder of a checkpoint in 16 bits that holds random weights."""
    import torch
    import transformers

    folder = Path(tempfile.gettempdir()) / "card-checkpoints" / model_id.replace("/", "--")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "config.json").exists():
            fields = {k: v for k, v in config.items() if k not in ("quantization_config", "torch_dtype", "dtype")}
            settings = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
            with torch.device("meta"):
                model = transformers.AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16)
            card_steps.to_card(model)
            model.to("cpu").save_pretrained(folder, max_shard_size="4GB")
            del model
            torch.cuda.empty_cache()
            tokenizer(folder, settings.vocab_size)
    return str(folder)


def tokenizer(folder: Path, vocab_size: int) -> None:
    import tokenizers
    import transformers

    words = {f"word{number}": number for number in range(vocab_size - 3)}
    words |= {name: vocab_size - 3 + at for at, name in enumerate(("<s>", "</s>", "<pad>"))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<pad>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **named).save_pretrained(folder)


def step(row: rows.Row, known: dict[str, dict]) -> card_steps.Measured:
    os.environ |= {"UNSLOTH_DISABLE_STATISTICS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    # kernels that it compiles are its own, whatever ran before
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
    os.chdir(tempfile.mkdtemp())
    import torch
    import unsloth

    folder = checkpoint(row["model_id"], known[row["model_id"]])
    tokens, is_packed = int(row["context_tokens"]), row["dtype_id"] == "nf4-double"
    model, _ = unsloth.FastLanguageModel.from_pretrained(
        folder, max_seq_length=tokens, dtype=torch.bfloat16, load_in_4bit=is_packed, local_files_only=True
    )
    model = unsloth.FastLanguageModel.get_peft_model(
        model, r=int(row["lora_rank"]), target_modules=LINEAR, lora_alpha=16, lora_dropout=0, bias="none",
        use_gradient_checkpointing="unsloth", random_state=1, max_seq_length=tokens,
    )  # fmt: skip
    model.train()
    loaded = torch.cuda.memory_reserved()
    trained = [p for p in model.parameters() if p.requires_grad]
    if row["optimizer_id"] == "adamw-8bit":
        import bitsandbytes

        optimizer = bitsandbytes.optim.AdamW8bit(trained)
    else:
        optimizer = torch.optim.AdamW(trained, fused=True)
    ids = torch.randint(0, 100, (int(row["sequences"]), tokens), device="cuda")
    card, peak = card_steps.Card(), 0
    for _ in range(card_steps.STEPS):
        card.reset_peak()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids.clone(), attention_mask=torch.ones_like(ids)).loss
        loss.backward()
        del loss
        optimizer.step()
        peak = card.peak
        optimizer.zero_grad(set_to_none=True)
    return card_steps.said(peak, card.standing) | {"loaded_bytes": loaded}
