"""How often a shape that nothing confirms would have been right, where the published total is known: the source of the constant
error_band_unconfirmed, and of the rules in pipeline/confirm/unconfirmed.py.

Each known model of the snapshot that has a total is asked for as if it had none, by each way that is open to it. The other models vouch for
it, never itself. What comes out is compared with what its total confirms:

    python tests/oracle/count_unconfirmed.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pipeline.anatomy import ContradictoryConfig
from pipeline.confirm.borrowing import Lenders, settled
from pipeline.confirm.grade import Graded
from pipeline.confirm.ties import kin_of, with_tie
from pipeline.confirm.unconfirmed import unconfirmed
from pipeline.hub.record import Record
from pipeline.hub.snapshot import newest_snapshot
from pipeline.press.anatomise import _read

NEAR = 0.01
LISTED = (
    "hidden_size",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "d_model",
    "d_ff",
    "num_heads",
    "num_layers",
)
WIDTHS = ("intermediate_size", "d_ff", "ffn_dim", "n_inner", "moe_intermediate_size")
NOTHING = Graded("unknown", "")


def listed(record: Record) -> dict[str, Any] | None:
    """Of its config what sources of dims list: the record's fields."""
    config, widths = record.config, [record.config[name] for name in WIDTHS if record.config.get(name)]
    if not widths or not isinstance(config.get("model_type"), str):
        return None
    dims = {name: config[name] for name in ("model_type", *LISTED) if config.get(name) is not None}
    return {
        "config": dims, "config_kind": "partial", "ffn_width_reported": widths[0],
        "context_length_reported": config.get("max_position_embeddings"), "library": None,
    }  # fmt: skip


def ways(record: Record) -> Iterator[tuple[str, Record]]:
    """The record without its total, as each way would find it."""
    bare = {"stored_parameter_count": None, "parameters_kind": None, "parameters_by_dtype": None, "header": None}
    if record.config_kind in ("library_table", "library_defaults"):
        yield "table", replace(record, **bare)
    if record.config is not None and record.config_kind != "partial":
        yield "dims", replace(record, **bare, config_kind="sibling", config_source="shape of another")
        if dims := listed(record):
            yield "listed", replace(record, **bare, **dims)
    if record.base_model_id:
        yield "base", replace(record, **bare, config=None, config_kind=None)


def main() -> None:
    readable = []
    for record in newest_snapshot().records:
        try:
            readable.append((record, _read(record)))
        except ContradictoryConfig:
            continue
    lenders, own = Lenders(readable), []
    for record, found in readable:
        with suppress(ContradictoryConfig):
            own.append((record, *settled(lenders, record, found)))
    kin = kin_of((shape, found) for _, shape, found in own)
    counts, worst = defaultdict(Counter), defaultdict(list)
    for record, shape, found in own:
        found = with_tie(shape, found, kin)
        if record.stored_parameter_count is None or found.grade not in ("exact", "matched"):
            continue
        truth = found.anatomy.parameter_count
        for way, bare in ways(record):
            if way == "dims" and not lenders.of_dims(bare):
                continue  # what vouched for it is its own config alone
            if way == "dims":  # its own config is what is asked for: another's is all that there is
                bare = replace(bare, config=lenders.of_dims(bare)[0][0].config)
            answer = unconfirmed(lenders, bare, NOTHING)
            if answer is None:
                counts[way]["withheld"] += 1
                continue
            off = answer[1].anatomy.parameter_count / truth - 1
            size = "exact" if off == 0 else "near" if abs(off) < NEAR else "too large" if off > 0 else "too small"
            counts[way][size] += 1
            worst[way].append((off, record.model_id, answer[1].note[:60]))
    for way, found in counts.items():
        print(way, dict(found.most_common()))
        for off, model_id, note in [*sorted(worst[way])[:8], *sorted(worst[way])[-4:]]:
            print(f"    {off:+.4f} {model_id}: {note}")


if __name__ == "__main__":
    main()
