"""What a footprint is made of: the parts of total_bytes, in the order in which they are told."""

from __future__ import annotations

from typing import NamedTuple


class Component(NamedTuple):
    """`id` is its column without `_bytes`; `page` the page of the method that says how it is worked out."""

    id: str
    name: str
    page: str

    @property
    def column(self) -> str:
        return f"{self.id}_bytes"


COMPONENTS = (
    Component("weights", "Weights", "weights"),
    Component("kv_cache", "KV cache", "kv-cache"),
    Component("kv_padding", "KV padding", "kv-cache"),
    Component("state", "State", "state"),
    Component("activations", "Activations", "activations"),
    Component("gradients", "Gradients", "gradients"),
    Component("optimizer", "Optimizer", "optimizer"),
    Component("adapters", "Adapters", "adapters"),
    Component("overhead", "Overhead", "overhead"),
)
