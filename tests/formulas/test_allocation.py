"""What the allocator rounds weights up to: the closed form against PyTorch's own rules, tensor by tensor.

The rules are those of c10/cuda/CUDACachingAllocator.cpp: sizes in steps of 512 bytes; up to 1 MiB from blocks of 2 MiB, below 10 MiB from
blocks of 20 MiB, else from blocks of their own in steps of 2 MiB; the smallest free block that is large enough is taken, and split where
more than 1 MiB would be left (512 bytes in small blocks).
"""

from __future__ import annotations

import bisect

import pytest

MIB = 2**20
GROUP = 128


class Allocator:
    """Counts as the library does: a block that is not split is allocated whole."""

    def __init__(self):
        self.free = {True: [], False: []}
        self.allocated = self.asked = 0

    def take(self, size):
        size = -(-size // 512) * 512
        self.asked += size
        is_small = size <= MIB
        free = self.free[is_small]
        at = bisect.bisect_left(free, size)
        if at < len(free):
            block = free.pop(at)
        elif is_small:
            block = 2 * MIB
        else:
            block = 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        rest = block - size
        if rest >= 512 if is_small else rest > MIB:
            bisect.insort(free, rest)
            block = size
        self.allocated += block


def _allocated_beyond_their_size(book, model_id, bits):
    """Loads a model in the order of its layers, matrices packed to `bits` with scales and zero points, or in 16 bits."""
    rows = book.execute(
        "SELECT tensor_class, operator, layer_count, per_layer_count, element_count FROM tensor WHERE model_id = ?",
        [model_id],
    ).fetchall()
    allocator = Allocator()
    for layer in range(max(row[2] for row in rows)):
        for tensor_class, operator, layers, each, elements in rows:
            for _ in range(each if layer < layers else 0):
                size = elements // (layers * each)
                if bits < 16 and operator == "linear" and tensor_class != "head":
                    groups = size // GROUP
                    for part in (size * bits // 8, groups * bits // 8, 2 * groups):
                        allocator.take(part)
                else:
                    allocator.take(2 * size)
    return allocator.allocated - allocator.asked, allocator.asked


MODELS = [f"Qwen/Qwen2.5-{size}-Instruct" for size in ("0.5B", "1.5B", "3B", "7B", "14B", "32B")] + [
    "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-8B",
]  # fmt: skip


@pytest.mark.parametrize("model_id", MODELS)
@pytest.mark.parametrize(
    ("bits", "column"), [(4, "rounding_packed_4_bit"), (8, "rounding_packed_8_bit"), (16, "rounding_16_bit")]
)
def test_rounding_is_what_the_allocator_counts(book, model_id, bits, column):
    counted, asked = _allocated_beyond_their_size(book, model_id, bits)
    said = book.execute(f"SELECT {column} FROM shape WHERE model_id = ?", [model_id]).fetchall()[0][0]
    assert abs(said - counted) < 0.003 * asked + 16 * MIB


MERGED = {role: group for group, roles in {"qkv": "attention_q attention_k attention_v", "gate_up": "ffn_gate ffn_up"}.items() for role in roles.split()}  # fmt: skip


@pytest.mark.parametrize(
    "model_id", ["Qwen/Qwen2.5-14B-Instruct", "Qwen/Qwen2.5-32B-Instruct", "meta-llama/Llama-3.1-8B"]
)
@pytest.mark.parametrize(
    ("cards", "column"), [(1, "rounding_merged_16_bit"), (2, "rounding_merged_half"), (4, "rounding_merged_quarter")]
)
def test_shards_of_a_server_are_rounded_on_every_card(book, model_id, cards, column):
    """Queries, keys and values are one matrix there, gate and up another; the first loads before the next."""
    rows = book.execute(
        "SELECT role, layer_count, per_layer_count, element_count FROM tensor WHERE model_id = ? AND operator <> 'vector'",
        [model_id],
    ).fetchall()
    allocator = Allocator()
    for layer in range(max(row[1] for row in rows)):
        matrices = {}
        for at, (role, layers, each, elements) in enumerate(rows):
            if layer < layers:
                name = MERGED.get(role, at)
                matrices[name] = matrices.get(name, 0) + 2 * elements // (layers * each) // cards
        for size in matrices.values():
            allocator.take(size)
    said = book.execute(f"SELECT {column} FROM shape WHERE model_id = ?", [model_id]).fetchall()[0][0]
    assert abs(said - (allocator.allocated - allocator.asked)) < 0.003 * allocator.asked + 8 * MIB
