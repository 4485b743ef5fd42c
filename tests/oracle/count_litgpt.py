"""Counts what steps of LitGPT (LoRA, QLoRA, full fine-tuning, prompts that are read) hold at their peak: the truth for its engines' formulas.

    pip install --no-deps litgpt==0.5.13 lightning lightning-utilities torchmetrics jsonargparse docstring_parser
    python tests/oracle/count_litgpt.py              # rows of litgpt_peaks.csv that have no peak yet

As count_training.py, with LitGPT's own model, adapters and loss, under bf16-true on one GPU: the loop of finetune/lora.py, which holds the
logits and the loss of a step until the next has made its own, and Lightning's wrapper, which hands the logits over in fp32. Full
fine-tuning is the loop of finetune/full.py, whose loss takes chunks of logits that are all there.

A base in 4 bits is packed as Lightning's BitsandbytesPrecision does it: every linear layer, the head too, from fp16, so that a matrix is
unpacked in fp16 and cast. The product is MatMul4Bit of bitsandbytes 0.45 (engine litgpt) or of 0.42 (litgpt-0.4), which holds on to
its input as an attribute of its context. Since 0.5 a StableEmbedding takes the embedding's place after the optimizer was made. The states
of bitsandbytes' PagedAdamW are counted, though PyTorch does not count them. `reserved_bytes` is what an emulated allocator
(allocator.py) took from the driver for the same steps; prompts of litgpt 0.4.4 have none.

Inference is generate/base.py: a cache and a mask of all positions, and a prompt that fills them. Rows of litgpt-0.4 were counted with
litgpt 0.4.4 (pip install --no-deps --target FOLDER litgpt==0.4.4; PYTHONPATH=FOLDER), whose prompts have no input_pos_maxp1.
"""

from __future__ import annotations

import gc
from importlib.metadata import version
from pathlib import Path

import count_training
import fake_cuda
import rows

PEAKS = Path(__file__).with_name("litgpt_peaks.csv")
TARGETS = {
    "query-value": ("query", "value"),
    "attention": ("query", "key", "value", "projection"),
    "all-linear": ("query", "key", "value", "projection", "mlp"),
    "all-linear-head": ("query", "key", "value", "projection", "mlp", "head"),
}
# finetune/lora.py: model(input_ids, lm_head_chunk_size=128)
CHUNK_TOKENS = 128
# bits of a weight with its scales: an fp32 for 64 elements; 8 bits for 64, and an fp32 for 256 of those
PACKED_BITS = {"nf4": 4 + 32 / 64, "nf4-double": 4 + 8 / 64 + 32 / 64 / 256}


def build(row: rows.Row):
    import torch

    if row["phase_id"] in ("full-finetune", "inference"):
        from litgpt.model import GPT, Config

        torch.set_default_dtype(torch.bfloat16)
        with torch.device("meta"):
            model = GPT(Config.from_name(row["model"].split("/")[1]))
        torch.set_default_dtype(torch.float32)
        return model.train()
    if row["adapter"]:
        return build_prompted(row)
    from litgpt.lora import GPT, Config, mark_only_lora_as_trainable

    adapted = {f"lora_{name}": True for name in TARGETS[row["lora_targets"]]}
    config = Config.from_name(
        row["model"].split("/")[1],
        lora_r=int(row["lora_rank"]),
        lora_alpha=16,
        lora_dropout=float(row["lora_dropout"]),
        **adapted,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = GPT(config)
    torch.set_default_dtype(torch.float32)
    mark_only_lora_as_trainable(model)
    return model.train()


def build_prompted(row: rows.Row):
    """LLaMA-Adapter in either form; rank and targets are LoRA's, and do not matter."""
    import importlib

    import torch

    name = {"llama-adapter": "adapter", "llama-adapter-v2": "adapter_v2"}[row["adapter"]]
    library = importlib.import_module(f"litgpt.{name}")
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = library.GPT(library.Config.from_name(row["model"].split("/")[1]))
    torch.set_default_dtype(torch.float32)
    getattr(library, f"mark_only_{name}_as_trainable")(model)
    return model.train()


def quantise(model, packed_bits: float, keeps_inputs: bool) -> None:
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, packed, bias, shape):
            weight = torch.empty(shape, dtype=torch.float16, device=value.device).to(value.dtype)
            ctx.shape, ctx.tensors = shape, (None, None)
            if any(ctx.needs_input_grad[:2]):
                ctx.tensors = (value if keeps_inputs else None, packed)
            return torch.nn.functional.linear(value, weight, bias)

        @staticmethod
        def backward(ctx, gradient):
            if not ctx.needs_input_grad[0]:
                return None, None, None, None
            weight = torch.empty(ctx.shape, dtype=torch.float16, device=gradient.device).to(gradient.dtype)
            return torch.matmul(gradient, weight), None, None, None

    class Packed(torch.nn.Linear):
        def forward(self, value):
            return Product.apply(value, self.weight, self.bias, (self.out_features, self.in_features))

    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear:
                with torch.device("meta"):
                    packed = Packed(child.in_features, child.out_features, bias=False)
                    values = torch.empty(int(child.weight.numel() * packed_bits / 8), dtype=torch.uint8)
                packed.weight, packed.bias = torch.nn.Parameter(values, requires_grad=False), child.bias
                setattr(module, name, packed)


def norm_embedding(model) -> None:
    """bitsandbytes' StableEmbedding, in the dtype of the embedding; its parameters are trained by none."""
    import torch

    class StableEmbedding(torch.nn.Embedding):
        def forward(self, ids):
            value = torch.nn.functional.embedding(ids, self.weight).to(torch.bfloat16)
            return self.norm(value).to(self.weight.dtype)

    old = model.transformer.wte
    new = StableEmbedding(old.num_embeddings, old.embedding_dim, dtype=old.weight.dtype, device="cuda")
    new.norm = torch.nn.LayerNorm(old.embedding_dim, dtype=old.weight.dtype, device="cuda")
    model.transformer.wte = new


class PagedAdamW:
    """Two fp32 moments of each parameter, and a step in one kernel."""

    def __init__(self, trained) -> None:
        import torch

        self.trained = trained
        self.states = [torch.empty(2 * p.numel(), dtype=torch.float32, device="cuda") for p in trained]

    def step(self) -> None:
        pass

    def zero_grad(self, set_to_none: bool) -> None:
        for parameter in self.trained:
            parameter.grad = None


def wrapped(model):
    """The model as Fabric calls it on one device."""
    import torch
    from lightning.fabric.plugins.precision.half import HalfPrecision
    from lightning.fabric.strategies import SingleDeviceStrategy
    from lightning.fabric.wrappers import _FabricModule

    module = _FabricModule(model, SingleDeviceStrategy(torch.device("cpu"), precision=HalfPrecision("bf16-true")))
    module._register_backward_hook = lambda tensor: tensor  # (warns of a backward pass that is not Fabric's)
    return module


def train(model, optimizer, tokens: tuple[int, int], accumulated: int, tracker, is_full: bool) -> int:
    import torch
    from litgpt.utils import chunked_cross_entropy

    ids, targets = (torch.empty(tokens, dtype=torch.long, device="cuda") for _ in range(2))
    peak = 0
    for _ in range(count_training.STEPS):
        gc.collect()
        tracker.reset_peak()
        for _ in range(accumulated):
            for block in model.modules():
                # keys and values of a prompt are kept until eval() is called, as if its weights stayed what they are
                if hasattr(block, "adapter_kv_cache"):
                    block.adapter_kv_cache = None
            if is_full:
                logits = model(ids)
                loss = chunked_cross_entropy(logits[..., :-1, :], targets[..., 1:])
            else:
                logits = model(ids, lm_head_chunk_size=CHUNK_TOKENS)
                logits[-1] = logits[-1][..., :-1, :]
                loss = chunked_cross_entropy(logits, targets[..., 1:])
            gc.collect()
            tracker.sums_in_place = True
            (loss / accumulated).backward()
            tracker.sums_in_place = False
            gc.collect()
        optimizer.step()
        gc.collect()
        peak = tracker.peak
        optimizer.zero_grad(set_to_none=True)
    return peak


def read_prompt(model, tokens: tuple[int, int], tracker) -> int:
    import torch

    sequences, length = tokens
    model.set_kv_cache(batch_size=sequences, device="cuda", dtype=torch.bfloat16)
    for tensor in model.buffers():
        tracker.track(tensor)
    ids = torch.empty(tokens, dtype=torch.long, device="cuda")
    gc.collect()
    tracker.reset_peak()
    shortened = {} if version("litgpt").startswith("0.4.") else {"input_pos_maxp1": length}
    logits = wrapped(model)(ids, torch.arange(0, length, device="cuda"), **shortened)
    assert logits.dtype == torch.float32
    return tracker.peak


def count(row: rows.Row) -> rows.Row:
    import allocator
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    fake_cuda.install()
    live_storage.install_attention()
    model, tracker = build(row), allocator.Tracker()
    is_packed, is_read = row["phase_id"] == "qlora", row["phase_id"] == "inference"
    if row["dtype_id"] in PACKED_BITS:
        quantise(model, PACKED_BITS[row["dtype_id"]], keeps_inputs=row["engine_id"] == "litgpt-0.4")
    is_full = row["phase_id"] == "full-finetune"
    adapters = 0 if is_full or is_read else sum(p.numel() for p in model.parameters() if p.requires_grad)
    tokens = (int(row["sequences"]), int(row["context_tokens"]))
    with FakeTensorMode(allow_non_fake_inputs=True), torch.set_grad_enabled(not is_read):
        count_training.to_fake(model)
        count_training.behave_as_with_values()
        # fit() shortens the tables of rotations to the longest sequence, outside of the model's precision
        model._max_seq_length = tokens[1]
        for name in ("cos", "sin"):
            table = getattr(model, name)
            setattr(model, name, torch.empty(tokens[1], *table.shape[1:], device="cuda"))
        trained = [p for p in model.parameters() if p.requires_grad]
        if is_packed and row["engine_id"] == "litgpt":
            norm_embedding(model)
        with tracker:
            for tensor in (*model.parameters(), *model.buffers()):
                tracker.track(tensor)
            if is_read:
                peak = read_prompt(model.eval(), tokens, tracker)
            else:
                optimizer = (
                    PagedAdamW(trained) if is_packed else count_training.optimizer_of(model, row["optimizer_id"])
                )
                peak = train(wrapped(model), optimizer, tokens, int(row["gradient_accumulation"]), tracker, is_full)
    versions = f"torch {torch.__version__}, litgpt {version('litgpt')}, lightning {version('lightning')}"
    return {
        "peak_bytes": str(peak),
        "adapter_parameters": str(adapters),
        "versions": versions,
        "reserved_bytes": str(tracker.allocator.reserved),
    }


if __name__ == "__main__":
    rows.count_rows(PEAKS, __doc__, lambda row: row["model"], count)
