"""Which layers attend to a window only, and to how many tokens: one rule for each way of saying it.

A rule takes a config and its number of layers and gives every layer's window in tokens, or None for the whole context.
Patterns and defaults follow the config classes of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import layer_types
from pipeline.anatomy.rows import UnknownAnatomy

Windows = Callable[[Fields, int], list[int | None]]
SLIDING, FULL = "sliding_attention", "full_attention"
QWEN = 4096  # tokens: what its classes take once `use_sliding_window` is said; their default is not to use any


def window_of(fields: Fields, otherwise: int | None = None) -> int | None:
    """The sliding window in tokens; None where the config says null or 0. Where it says nothing the class's, or `otherwise`."""
    if "sliding_window" not in fields.config:
        return fields.by_class("sliding_window") or otherwise
    return stated_window(fields)


def stated_window(fields: Fields) -> int | None:
    """None also where the config says nothing: of classes that assume a window which files that have one state."""
    return fields.count("sliding_window", default=None, least=0) or None


def windows_by_type(
    fields: Fields, layers: int, window: int | None, otherwise: Sequence[str] | None = None
) -> list[int | None]:
    """Every layer's window from `layer_types`, or from the pattern that the class gives a config without them."""
    known = (FULL, SLIDING)
    types = layer_types(fields, layers, known=known) or otherwise or [FULL] * layers
    if window is None and SLIDING in types:
        raise UnknownAnatomy(f"{fields.where} has sliding layers and no sliding_window")
    return [window if kind == SLIDING else None for kind in types]


def looking_both_ways(window: int | None, is_bidirectional: bool) -> int | None:
    """Tokens on either side: a class of Gemma 3 and 4 that looks both ways halves its window, and one more."""
    return window // 2 + 1 if window and is_bidirectional else window


def either_way(windows: Windows) -> Windows:
    """The same layers, with `use_bidirectional_attention` as Gemma 3 takes it."""

    def halved(fields: Fields, layers: int) -> list[int | None]:
        is_bidirectional = fields.flag("use_bidirectional_attention")
        return [looking_both_ways(window, is_bidirectional) for window in windows(fields, layers)]

    return halved


def whole_context(fields: Fields, layers: int) -> list[int | None]:
    return [None] * layers


def one_window(fields: Fields, layers: int) -> list[int | None]:
    """The same window everywhere. A config without the field states no window: then every token counts."""
    return [stated_window(fields)] * layers


def window_if_used(fields: Fields, layers: int) -> list[int | None]:
    """Qwen3-MoE: the same window everywhere, with `use_sliding_window` only."""
    return [window_of(fields, QWEN) if fields.flag("use_sliding_window") else None] * layers


def upper_layers(fields: Fields, layers: int) -> list[int | None]:
    """Qwen: with `use_sliding_window`, the layers from `max_window_layers` on; `layer_types` overrules."""
    return _upper(fields, layers, window_of(fields, QWEN) if fields.flag("use_sliding_window") else None)


def upper_layers_always(fields: Fields, layers: int) -> list[int | None]:
    """dots.llm1: the layers from `max_window_layers` on, without a switch."""
    return _upper(fields, layers, window_of(fields))


def _upper(fields: Fields, layers: int, window: int | None) -> list[int | None]:
    first = fields.size("max_window_layers", least=0, otherwise=28)
    types = [SLIDING if window and i >= first else FULL for i in range(layers)]
    return windows_by_type(fields, layers, window, types)


def last_of_period(period: int, name: str = "sliding_window_pattern") -> Windows:
    """Sliding layers with a full one at the end of each period; without a window all are full.

    The field `name` may state another period, or spell it as in LLLG.
    """

    def windows(fields: Fields, layers: int) -> list[int | None]:
        size = window_of(fields)
        types = None
        if size and fields.raw("layer_types") is None:
            types = _pattern(fields, layers, period, name)
        return windows_by_type(fields, layers, size, types)

    return windows


def last_of_period_after_dense(fields: Fields, layers: int) -> list[int | None]:
    """Cohere2-MoE: the first dense layers have a period of their own, and the layers after them begin theirs anew."""
    size, types = window_of(fields), None
    if fields.raw("layer_types") is None:
        dense = min(fields.size("first_k_dense_replace", least=0, otherwise=0), layers)
        types = every(dense, fields.size("prefix_dense_sliding_window_pattern"))
        types += every(layers - dense, fields.size("sliding_window_pattern"))
    return windows_by_type(fields, layers, size, types)


def first_of_period(period: int) -> Windows:
    """A full layer at the start of each period, then sliding ones."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        types = [SLIDING if i % period else FULL for i in range(layers)]
        return windows_by_type(fields, layers, window_of(fields), types)

    return windows


def last_of_period_backwards(period: int) -> Windows:
    """The last layer is full, and every `period`-th counted back from it."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        types = [SLIDING if (layers - 1 - i) % period else FULL for i in range(layers)]
        return windows_by_type(fields, layers, window_of(fields), types)

    return windows


def listed_or_all(fields: Fields, layers: int) -> list[int | None]:
    """What `layer_types` lists; without it every layer slides where there is a window."""
    size = window_of(fields)
    return windows_by_type(fields, layers, size, [SLIDING if size else FULL] * layers)


def listed(fields: Fields, layers: int) -> list[int | None]:
    """What `layer_types` lists; without it every layer reads the whole context."""
    return windows_by_type(fields, layers, window_of(fields))


def flint_windows(fields: Fields, layers: int) -> list[int | None]:
    """Full in the first two layers, every fourth and the last."""
    types = [FULL if i < 2 or i % 4 == 1 or i == layers - 1 else SLIDING for i in range(layers)]
    return windows_by_type(fields, layers, window_of(fields), types)


def layers_without_rope(fields: Fields, layers: int) -> list[int | None]:
    """SmolLM3: with `use_sliding_window` the layers without rotary positions slide."""
    window = stated_window(fields) if fields.flag("use_sliding_window") else None
    interval = fields.size("no_rope_layer_interval")
    ropes = fields.items("no_rope_layers", length=layers) or [int((i + 1) % interval != 0) for i in range(layers)]
    types = [SLIDING if window and not rope else FULL for rope in ropes]
    return windows_by_type(fields, layers, window or stated_window(fields), types)


def _pattern(fields: Fields, layers: int, period: int, name: str) -> list[str]:
    spelled = fields.raw(name)
    if isinstance(spelled, str) and spelled and set(spelled) <= {"L", "G"}:
        return [SLIDING if spelled[i % len(spelled)] == "L" else FULL for i in range(layers)]
    period = fields.count(name, f"_{name}", default=period)
    return every(layers, period)


def every(layers: int, period: int, sliding: str = SLIDING, full: str = FULL) -> list[str]:
    """Sliding layers with a full one at the end of each period."""
    return [full if (i + 1) % period == 0 else sliding for i in range(layers)]
