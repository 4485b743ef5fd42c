"""What any config must end as: an anatomy in which everything can be counted, or one of the reader's two reasons, and soon."""

from __future__ import annotations

import time

from pipeline.anatomy import Anatomy, ContradictoryConfig, UnknownAnatomy, read_config

_MOST_SECONDS = 2
_MOST_TOKENS = 10**8
_SIZES = {
    "tensors": ("layer_count", "per_layer_count", "out_features", "element_count"),
    "attention": (
        "layer_count", "elements_per_token", "state_elements", "conv_state_elements", "head_count", "kv_head_count", "head_dim",
        "value_head_dim",
    ),
    "feed_forward": ("layer_count", "width", "expert_count", "expert_width", "shared_width"),
}  # fmt: skip


def check(config) -> None:
    started = time.thread_time()  # (a machine that is busy takes longer by the clock)
    try:
        anatomy = read_config(config)
    except (UnknownAnatomy, ContradictoryConfig) as reason:
        assert str(reason)
        assert len(str(reason)) < 400
        return
    assert time.thread_time() - started < _MOST_SECONDS
    assert isinstance(anatomy, Anatomy)
    sizes = [
        anatomy.parameter_count,
        anatomy.active_parameter_count,
        anatomy.layer_count,
        *anatomy.stored_extra.values(),
    ]
    # (a model of towers alone has no width of its own)
    sizes += [anatomy.hidden_size] if anatomy.hidden_size is not None else []
    for rows, names in _SIZES.items():
        sizes += [getattr(row, name) for row in getattr(anatomy, rows) for name in names]
    for size in sizes:
        assert type(size) is int
        assert 0 <= size < 2**63
    for context in (anatomy.max_context_tokens, anatomy.trained_context_tokens):
        assert context is None or (type(context) is int and 0 < context <= _MOST_TOKENS)
    assert 0 <= anatomy.attention_dropout <= 1
    assert 0 <= anatomy.hidden_dropout <= 1
    for kinds in (anatomy.attention, anatomy.feed_forward):
        assert len({row.kind for row in kinds}) == len(kinds)
