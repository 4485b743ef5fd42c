"""What holds for every test: nobody outside this machine is asked, and of a family of cases some are run by `make test`, all by `make check-full`."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems


@pytest.mark.parametrize("host", ["huggingface.co", b"example.org", "10.0.0.1"])
def test_nobody_outside_is_asked(host):
    with pytest.raises(socket.gaierror, match="tests ask loopback alone"):
        socket.create_connection((host, 443), timeout=1)


class Case(SimpleNamespace):
    """An item as the hook sees it."""

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, name):
        self.marks[name] = True


def cases(count, family, marks=None):
    some = pytest.mark.some(count).mark
    return [Case(nodeid=f"{family}[{i}]", marks={"some": some} | (marks or {})) for i in range(7)]


def test_of_many_cases_so_many_are_kept_evenly_spaced():
    three, all_, none = cases(3, "a.py::three"), cases(9, "a.py::all"), cases(2, "a.py::none", {"full": True})
    plain = Case(nodeid="a.py::plain", marks={})
    pytest_collection_modifyitems([*three, *all_, *none, plain])
    assert [i for i, case in enumerate(three) if "full" not in case.marks] == [0, 2, 4]
    assert not any("full" in case.marks for case in [*all_, plain])
    assert all("full" in case.marks for case in none)
