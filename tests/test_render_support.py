"""What the browser is told of cards that do not run a scenario is what the table says."""

from __future__ import annotations

import pytest

from pipeline.render import tables
from pipeline.render.support import Support
from tests.tiny_tables import REFUSED, build


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return tables.read(build(tmp_path_factory.mktemp("tables")))


def test_every_card_is_told_as_the_table_has_it(book):
    kinds, coded = Support(book).coded()
    assert len(set(kinds.values())) == 3, "Apple's card, AMD's card, and the rest"
    for row in book["runs_on"]:
        key = " ".join((row["engine_id"], row["dtype_id"], row["phase_id"], row["attention"]))
        code = ord(coded["runs"][key][kinds[row["gpu_id"]]]) - ord("0")
        if row["runs"]:
            assert code == 0
        else:
            assert coded["refusals"][code - 1] == [row["runs"] is False, row["how"]]
    assert len(coded["refusals"]) == len(REFUSED)


def test_a_checkpoint_as_published_runs_where_its_own_format_does(book):
    support = Support(book)
    scenario = next(s for s in book.scenarios if s.dtype_id == "stored")
    known = next(i for i, m in enumerate(book.models) if m["stored_format"])
    unknown = next(i for i, m in enumerate(book.models) if not m["stored_format"])
    assert support.format(scenario, known) == "bf16"
    assert support.refusal(scenario, support.format(scenario, known), "rtx-4090") is None
    assert support.refusal(scenario, support.format(scenario, unknown), "rtx-4090") is not None
