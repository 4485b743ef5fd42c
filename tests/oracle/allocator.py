"""What PyTorch's caching allocator takes from the driver for a sequence of allocations: its rules, without a card.

Blocks are rounded to 512 bytes; up to 1 MiB they share segments of 2 MiB, below 10 MiB segments of 20 MiB, from there each has a
segment of its own in multiples of 2 MiB. The smallest free block that is large enough is taken,
of equals the one that lies lowest; what it leaves is split off where it is of use. Expandable segments: one for blocks up to 1 MiB and one for all others, which grow at their end by 2 and 20 MiB, so that what
is free beside each other always joins. Source: c10/cuda/CUDACachingAllocator.cpp, default settings otherwise, one stream.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import live_storage
import torch

MIB = 1 << 20
_ABOVE = 1 << 47
aten = torch.ops.aten
PRODUCTS = frozenset({aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default})
# What a handle of cuBLAS keeps on Hopper (before: 8,519,680; aten/src/ATen/cuda/CublasHandlePool.cpp)
WORKSPACE_BYTES = 33_554_432


@dataclass(eq=False)
class Block:
    bytes: int
    is_small: bool
    address: int
    is_free: bool = True
    before: Block | None = None
    behind: Block | None = None


class Allocator:
    """`reserved`: bytes taken from the driver so far; nothing is ever given back."""

    def __init__(self, is_expandable: bool = False) -> None:
        self.reserved = 0
        self._is_expandable = is_expandable
        self._last: dict[bool, Block] = {}  # of each expandable segment
        self._free: dict[bool, list[tuple[int, int, Block]]] = {True: [], False: []}

    def take(self, wanted: int) -> Block:
        wanted = max(512, (wanted + 511) // 512 * 512)
        is_small = wanted <= MIB
        free = self._free[is_small]
        at = bisect.bisect_left(free, (wanted, 0))
        block = free.pop(at)[2] if at < len(free) else self._segment(wanted, is_small)
        block.is_free = False
        rest = block.bytes - wanted
        if rest >= 512 if is_small or self._is_expandable else rest > MIB:
            block.bytes = wanted
            left = Block(rest, is_small, block.address + wanted, before=block, behind=block.behind)
            if left.behind:
                left.behind.before = left
            block.behind = left
            if self._last.get(is_small) is block:
                self._last[is_small] = left
            self._add(left)
        return block

    def give(self, block: Block) -> None:
        block.is_free = True
        for other in (block.before, block.behind):
            if other is None or not other.is_free:
                continue
            self._free[block.is_small].remove((other.bytes, other.address, other))
            first, second = (other, block) if other is block.before else (block, other)
            first.bytes += second.bytes
            first.behind = second.behind
            if first.behind:
                first.behind.before = first
            if self._last.get(block.is_small) is second:
                self._last[block.is_small] = first
            block = first
        self._add(block)

    def _segment(self, wanted: int, is_small: bool) -> Block:
        if self._is_expandable:
            return self._grown(wanted, is_small)
        size = 2 * MIB if is_small else 20 * MIB if wanted < 10 * MIB else -(-wanted // (2 * MIB)) * 2 * MIB
        self.reserved += size
        # the driver hands out addresses from above: held to a card, which no other order was (tests/oracle/card.csv)
        return Block(size, is_small, _ABOVE - self.reserved)

    def _grown(self, wanted: int, is_small: bool) -> Block:
        last, step = self._last.get(is_small), 2 * MIB if is_small else 20 * MIB
        if last is not None and last.is_free:
            self._free[is_small].remove((last.bytes, last.address, last))
        else:
            block = Block(0, is_small, last.address + last.bytes if last is not None else 0, before=last)
            if last is not None:
                last.behind = block
            self._last[is_small] = last = block
        more = -(-(wanted - last.bytes) // step) * step
        last.bytes += more
        self.reserved += more
        return last

    def _add(self, block: Block) -> None:
        bisect.insort(self._free[block.is_small], (block.bytes, block.address, block))


class Tracker(live_storage.Tracker):
    """Counts as its parent does, and hands every storage and scratch to an allocator."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator, self.expandable = self._allocators = Allocator(), Allocator(is_expandable=True)
        self._multiplied: set[bool] = set()

    def track(self, tensor: torch.Tensor) -> None:
        known = len(self._alive)
        super().track(tensor)
        if len(self._alive) > known:
            record = self._alive[tensor.untyped_storage()._cdata]
            record.append(self._take(record[0]))

    def _freed(self, key: int, record: list) -> None:
        super()._freed(key, record)
        self._give(record)

    def _reused(self, func, args, kwargs) -> list | None:
        # (the parent counts the storage as gone after the operator, as if it had been written over)
        record = super()._reused(func, args, kwargs)
        if record is not None:
            self._give(record)
        return record

    def _give(self, record: list) -> None:
        if len(record) > 2 and record[2] is not None:
            self._release(record[2])
            record[2] = None

    def _take(self, wanted: int) -> list[Block]:
        return [allocator.take(wanted) for allocator in self._allocators]

    def _release(self, blocks: list[Block]) -> None:
        for allocator, block in zip(self._allocators, blocks, strict=True):
            allocator.give(block)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # The forward pass's thread and autograd's have a handle each, whose work space is taken at its first product, out of a block that lies
        # free then, and stays: a card showed what that costs (the next step's logits find their block cut).
        if func in PRODUCTS and self.sums_in_place not in self._multiplied:
            self._multiplied.add(self.sums_in_place)
            self._take(WORKSPACE_BYTES)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if scratch := live_storage.scratch_bytes(func, args):
            self._release(self._take(scratch))
        return result
