"""Parts of a training step that count_training.py can swap: what is recomputed, how the loss is taken, which adapter is trained."""

from __future__ import annotations

import functools
from typing import ClassVar

import torch
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

aten = torch.ops.aten
# What selective checkpointing keeps, as the example of PyTorch's documentation: results of matrix products and fused attention.
KEPT = frozenset(
    {
        aten.mm.default,
        aten.bmm.default,
        aten.addmm.default,
        aten.baddbmm.default,
        aten._grouped_mm.default,
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_efficient_attention.default,
    }
)
LOSS_CHUNKS = 8


def _policy(_context, operator, *_args, **_named):
    return CheckpointPolicy.MUST_SAVE if operator in KEPT else CheckpointPolicy.PREFER_RECOMPUTE


def checkpoint_arguments(checkpointing: str) -> dict:
    selective = {"context_fn": functools.partial(create_selective_checkpoint_contexts, _policy)}
    return {"use_reentrant": False} | (selective if checkpointing == "selective" else {})


class FusedLoss(torch.autograd.Function):
    """Projection and loss in one, chunk by chunk, with the gradients taken in the forward pass, as Liger's kernel allocates.

    Chunks are as many tokens as make the logits of one about as large as the hidden states of all.
    """

    @staticmethod
    def forward(ctx, hidden, weight, is_unsloth=False):
        tokens, width = hidden.shape
        parts = -(-weight.shape[0] // width)
        chunk = 1 << (-(-tokens // parts) - 1).bit_length()
        if is_unsloth:
            below = lambda number: 1 << (max(number, 1).bit_length() - 1)  # noqa: E731
            least = max(below(512 * 151936 // weight.shape[0]), 512)
            chunk = min(max(below(tokens * width // weight.shape[0]), least), 4096, tokens)
            buffer = torch.empty(chunk, weight.shape[0], dtype=torch.float32, device=hidden.device)
        hidden_gradient = torch.zeros_like(hidden)
        weight_gradient = torch.zeros_like(weight) if weight.requires_grad else None
        losses = torch.zeros(tokens, dtype=torch.float32, device=hidden.device)
        for start in range(0, tokens, chunk):
            part = hidden[start : start + chunk]
            # the kernel writes their gradient over them; Unsloth's are fp32 in one buffer, their gradient 16-bit over half of it
            logits = buffer.view(hidden.dtype)[: len(part), : weight.shape[0]] if is_unsloth else part @ weight.t()
            hidden_gradient[start : start + chunk] = logits @ weight
            if weight_gradient is not None:
                weight_gradient += torch.mm(logits.t(), part).float()
            del logits
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        return losses.sum()

    @staticmethod
    def backward(ctx, _gradient):
        return *ctx.saved_tensors, None


class Offloaded(torch.autograd.Function):
    """A layer whose input waits in the host's memory, as unsloth_zoo's UnslothCheckpointFunction has it: two buffers on the card

    take the inputs back in turn; small ones, and that of the last layer, are never moved.
    """

    buffers: ClassVar[list] = []

    @staticmethod
    def forward(ctx, function, hidden, is_last):
        with torch.no_grad():
            output = function(hidden)
        stays = is_last or hidden.numel() * hidden.element_size() <= 2 * 1024 * 1024
        if not stays and not Offloaded.buffers:
            Offloaded.buffers[:] = [torch.empty_like(hidden, requires_grad=False) for _ in range(2)]
        ctx.function, ctx.stays = function, stays
        ctx.save_for_backward(hidden if stays else hidden.to("cpu"))
        return output

    @staticmethod
    def backward(ctx, gradient):
        (saved,) = ctx.saved_tensors
        hidden = (saved if ctx.stays else Offloaded.buffers[0]).detach().requires_grad_()
        with torch.enable_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            output = ctx.function(hidden)
        torch.autograd.backward(output, gradient)
        return None, hidden.grad, None


def offload_checkpoints(model) -> None:
    """Every layer that is recomputed goes through Offloaded."""
    layers = [module for module in model.modules() if hasattr(module, "_gradient_checkpointing_func")]
    Offloaded.buffers.clear()
    for layer in layers:
        is_last = layer is layers[-1]
        layer._gradient_checkpointing_func = lambda function, hidden, *args, is_last=is_last: Offloaded.apply(
            functools.partial(_behind, function, args), hidden, is_last
        )


def _behind(function, args, hidden):
    return function(hidden, *args)


def loss_of(model, named: dict, form: str, engine: str = "transformers"):
    """The loss by the model's own code (full), or over its hidden states without whole logits."""
    labels = named.pop("labels")
    if form in ("full", "recomputed", "recomputed-fp32"):  # (of a model that has TRL's loss: count_sharded.py)
        return model(**named, labels=labels).loss
    if form == "tiled":  # the forward pass of a model that has TRL's head (trl_kernels.add_tiled_head)
        return model(**named, labels=labels, fused_lm_head=True).loss
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = inner.get_decoder()(**named)[0]
    head = inner.get_output_embeddings()
    if form == "fused":
        if (
            torch.is_autocast_enabled("cuda") and head.weight.requires_grad
        ):  # autocast casts for each product of a chunk
            return FusedLoss.apply(hidden.flatten(0, 1), head.weight, engine == "unsloth")
        weight = (
            head.weight.to(hidden.dtype) if not torch.is_autocast_enabled("cuda") else head.weight.to(torch.bfloat16)
        )
        return FusedLoss.apply(hidden.to(weight.dtype).flatten(0, 1), weight, engine == "unsloth")
    total = 0
    for part, goal in zip(hidden.chunk(LOSS_CHUNKS, 1), labels.chunk(LOSS_CHUNKS, 1), strict=True):
        total = total + torch.nn.functional.cross_entropy(
            head(part).float().flatten(0, 1), goal.flatten(), reduction="sum"
        )
    return total


class Stepped:
    """What stands for an optimizer whose steps were taken in the backward pass; `last`: what is left to do after it."""

    def __init__(self, last=None) -> None:
        self.last = last

    def step(self) -> None:
        if self.last:
            self.last()

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass


def in_backward(model, name: str) -> Stepped:
    """A step for each gradient as it comes: AdamW as torchtune 0.6.1 (training/memory.py, register_optim_in_bwd_hooks) has it,
    or LOMO's own class (lomo-optim 0.1.1)."""
    if name == "lomo":
        from lomo_optim import Lomo

        lomo = Lomo(model)
        return Stepped(lambda: lomo.grad_func(0))
    own = {p: torch.optim.AdamW([p], fused=True) for p in model.parameters() if p.requires_grad}

    def step(parameter) -> None:
        own[parameter].step()
        own[parameter].zero_grad()

    for parameter in own:
        parameter.register_post_accumulate_grad_hook(step)
    return Stepped()


def adapter_config(kind: str, rank: int, targets, left_out=None, dropout: float = 0.0):
    import peft

    if kind == "ia3":
        return peft.IA3Config(target_modules=targets, feedforward_modules=[], exclude_modules=left_out)
    return peft.LoraConfig(
        r=rank,
        lora_alpha=16,
        target_modules=targets,
        use_dora=kind == "dora",
        use_rslora=kind == "rslora",
        lora_dropout=dropout,
        exclude_modules=left_out,
    )
