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


def window_of(fields: Fields, *names: str, default: int | None = None) -> int | None:
    """The sliding window in tokens; None where the config says null or 0. `default` only where the field is missing."""
    names = names or ("sliding_window",)
    if not any(name in fields.config for name in names):
        return default
    return fields.count(*names, default=None, least=0) or None


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
    return [window_of(fields)] * layers


def window_if_used(fields: Fields, layers: int) -> list[int | None]:
    """Qwen3-MoE: the same window everywhere, with `use_sliding_window` only."""
    return [window_of(fields, default=4096) if fields.flag("use_sliding_window") else None] * layers


def upper_layers(fields: Fields, layers: int) -> list[int | None]:
    """Qwen: with `use_sliding_window`, the layers from `max_window_layers` on; `layer_types` overrules."""
    return _upper(fields, layers, window_of(fields, default=4096) if fields.flag("use_sliding_window") else None, 28)


def upper_layers_always(fields: Fields, layers: int) -> list[int | None]:
    """dots.llm1: the layers from `max_window_layers` on, without a switch."""
    return _upper(fields, layers, window_of(fields, default=4096), 62)


def _upper(fields: Fields, layers: int, window: int | None, default: int) -> list[int | None]:
    first = fields.count("max_window_layers", default=default, least=0)
    types = [SLIDING if window and i >= first else FULL for i in range(layers)]
    return windows_by_type(fields, layers, window, types)


def last_of_period(period: int, window: int, name: str = "sliding_window_pattern") -> Windows:
    """Sliding layers with a full one at the end of each period; without a window all are full.

    The field `name` may state another period, or spell it as in LLLG.
    """

    def windows(fields: Fields, layers: int) -> list[int | None]:
        size = window_of(fields, default=window)
        types = None
        if size and fields.raw("layer_types") is None:
            types = _pattern(fields, layers, period, name)
        return windows_by_type(fields, layers, size, types)

    return windows


def first_of_period(period: int, window: int) -> Windows:
    """A full layer at the start of each period, then sliding ones."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        types = [SLIDING if i % period else FULL for i in range(layers)]
        return windows_by_type(fields, layers, window_of(fields, default=window), types)

    return windows


def last_of_period_backwards(period: int, window: int) -> Windows:
    """The last layer is full, and every `period`-th counted back from it."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        types = [SLIDING if (layers - 1 - i) % period else FULL for i in range(layers)]
        return windows_by_type(fields, layers, window_of(fields, default=window), types)

    return windows


def listed_or_all(window: int | None) -> Windows:
    """What `layer_types` lists; without it every layer slides where there is a window."""

    def windows(fields: Fields, layers: int) -> list[int | None]:
        size = window_of(fields, default=window)
        return windows_by_type(fields, layers, size, [SLIDING if size else FULL] * layers)

    return windows


def listed(window: int | None) -> Windows:
    """What `layer_types` lists; without it every layer reads the whole context."""
    return lambda fields, layers: windows_by_type(fields, layers, window_of(fields, default=window))


def flint_windows(fields: Fields, layers: int) -> list[int | None]:
    """Full in the first two layers, every fourth and the last."""
    types = [FULL if i < 2 or i % 4 == 1 or i == layers - 1 else SLIDING for i in range(layers)]
    return windows_by_type(fields, layers, window_of(fields, default=513), types)


def layers_without_rope(fields: Fields, layers: int) -> list[int | None]:
    """SmolLM3: with `use_sliding_window` the layers without rotary positions slide."""
    window = window_of(fields) if fields.flag("use_sliding_window") else None
    interval = fields.count("no_rope_layer_interval", default=4)
    ropes = fields.items("no_rope_layers", length=layers) or [int((i + 1) % interval != 0) for i in range(layers)]
    types = [SLIDING if window and not rope else FULL for rope in ropes]
    return windows_by_type(fields, layers, window or window_of(fields), types)


def _pattern(fields: Fields, layers: int, period: int, name: str) -> list[str]:
    spelled = fields.raw(name)
    if isinstance(spelled, str) and spelled and set(spelled) <= {"L", "G"}:
        return [SLIDING if spelled[i % len(spelled)] == "L" else FULL for i in range(layers)]
    period = fields.count(name, f"_{name}", default=period)
    return every(layers, period)


def every(layers: int, period: int, sliding: str = SLIDING, full: str = FULL) -> list[str]:
    """Sliding layers with a full one at the end of each period."""
    return [full if (i + 1) % period == 0 else sliding for i in range(layers)]
