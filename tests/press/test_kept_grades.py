"""What was read of a model is taken from the last build as long as nothing that it was read from changed, and else read anew."""

from __future__ import annotations

import datetime
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.book.packs import Packs
from pipeline.confirm.asked import beside
from pipeline.confirm.completing import DIMS_ONLY
from pipeline.confirm.lenders import Lenders
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press import anatomise as reader
from pipeline.press import kept_grades
from tests.once import bundled_snapshot

LENDER = "Qwen/Qwen3-0.6B"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """A model of its own config, others that ask it for theirs, and some of every kind."""
    whole = bundled_snapshot().records
    own = next(record for record in whole if record.model_id == LENDER)
    without = {"config": None, "config_kind": None, "config_source": None}
    copies = [
        replace(own, model_id="a/copy", base_model_id=LENDER, **without),
        replace(own, model_id="a/of-that-size", base_model_id=None, **without),
    ]
    open_ones = [record for record in whole if record.config_kind in (DIMS_ONLY, "sibling")][::300]
    # (dims of which nobody says the type)
    open_ones += [record for record in whole if record.config_kind == DIMS_ONLY and "model_type" not in record.config]
    records = {r.model_id: r for r in (own, *copies, *open_ones, *whole[::300])}
    return Snapshot(Path(), datetime.date(2026, 1, 1), "some", tuple(records[name] for name in sorted(records)), {})


def read(snapshot: Snapshot, packs: Packs | None) -> tuple[dict[str, list], list[str]]:
    """The rows of all tables, and whose grade was worked out."""
    asked: list[str] = []

    def noted(work):
        def worked(*about):
            asked.extend(one.model_id for one in about if isinstance(one, Record))
            return work(*about)

        return worked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_read", noted(reader._read))
        patch.setattr(kept_grades, "settled", noted(kept_grades.settled))
        frames = reader.anatomise(snapshot, packs=packs)
    return {name: frame.rows() for name, frame in frames.items()}, asked


@pytest.mark.full
def test_a_change_of_one_model_is_read_anew_and_so_are_those_that_ask_it(snapshot, tmp_path):
    packs = lambda: Packs(tmp_path / "packs")  # noqa: E731
    first, asked = read(snapshot, packs())
    assert set(asked) == {record.model_id for record in snapshot.records}
    assert first == read(snapshot, None)[0]
    again, asked = read(snapshot, packs())
    assert again == first
    assert {"a/copy", "a/of-that-size"}.isdisjoint(asked)

    place = next(i for i, record in enumerate(snapshot.records) if record.model_id == LENDER)
    own = snapshot.records[place]
    config = {**own.config, "num_hidden_layers": own.config["num_hidden_layers"] - 1}
    changed = replace(own, config=config, stored_parameter_count=None)
    other = replace(snapshot, records=(*snapshot.records[:place], changed, *snapshot.records[place + 1 :]))
    found, asked = read(other, packs())
    assert found == read(other, None)[0] != first
    assert {LENDER, "a/copy", "a/of-that-size"} <= set(asked)


@pytest.mark.full
def test_every_model_of_the_snapshot_is_read_alike_with_packs_and_without(bundled, tmp_path):
    """A build has packs, and most tests have none."""
    frames = reader.anatomise(bundled_snapshot(), packs=Packs(tmp_path / "packs"))
    assert frames["rejected"].height == bundled["rejected"].height == 0
    assert all(frames[name].equals(frame) for name, frame in bundled.items())


def test_other_code_reads_all_anew(snapshot, tmp_path, monkeypatch):
    few = replace(snapshot, records=snapshot.records[:3])
    read(few, Packs(tmp_path))
    assert {record.model_id for record in few.records} - set(read(few, Packs(tmp_path))[1]) != set()
    monkeypatch.setattr(kept_grades, "made_of", lambda: "other code")
    assert {record.model_id for record in few.records} <= set(read(few, Packs(tmp_path))[1])


def test_a_record_may_ask_no_lender_that_its_key_does_not_name():
    some = beside(Lenders([]), Record("a/b", base_model_id="a/base"))
    assert some.by_id.get("a/base") is None
    with pytest.raises(LookupError, match="none of what this record may ask"):
        some.by_id.get("a/other")


class Foreign:
    def __reduce__(self):
        return print, ("run by whoever reads it",)


@pytest.mark.parametrize(
    "value", [pickle.dumps(Foreign()), pickle.dumps(Path()), pickle.dumps([5]), b"", b"\x80\x05.", b"nonsense"]
)
def test_nothing_but_what_is_ours_is_taken_from_a_pack(value, capsys):
    assert kept_grades.loaded(value) is None
    assert capsys.readouterr().out == ""
