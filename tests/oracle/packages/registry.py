"""Which function builds which model: each file of this folder holds a kind of models, their configs and what builds them."""

from __future__ import annotations

from collections.abc import Callable

# by type: the name of the class, its package (with a revision where it has no version), and what builds it of a config
BUILDERS: dict[str, tuple[str, str, Callable]] = {}


def builds(model_type: str, class_name: str, package: str):
    def add(function):
        BUILDERS[model_type] = class_name, package, function
        return function

    return add


def module_of(torch, **parts):
    whole = torch.nn.Module()
    for name, part in parts.items():
        whole.add_module(name, part)
    return whole


def buffers_of(model) -> int:
    """But for how many batches were seen, and for what is made anew."""
    held = dict(model.named_buffers())
    return sum(
        held[name].numel() for name in model.state_dict() if name in held and not name.endswith("num_batches_tracked")
    )
