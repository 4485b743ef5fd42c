"""What the tools that count training steps have in common: the steps, and what is live at the peak of the last."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


def last_peak(steps: int, tracker, optimizer, loss: Callable[[], Any], accumulated: int = 1) -> int:
    """Bytes at the peak of the last of some steps: the first makes the optimizer's states, which stand in all others. `loss` runs a forward pass;
    nothing but what it gives may hold on to that pass."""
    peak = 0
    for _ in range(steps):
        gc.collect()
        tracker.reset_peak()
        for _ in range(accumulated):
            kept = loss()
            gc.collect()
            tracker.sums_in_place = True
            kept.backward()
            tracker.sums_in_place = False
            del kept
            gc.collect()
        optimizer.step()
        gc.collect()
        peak = tracker.peak
        optimizer.zero_grad(set_to_none=True)
    return peak
