"""What holds for every test: nobody outside this machine is asked, and of a family of cases some are run by `make test`, all by `make check-full`."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import LONGEST, pytest_collection_modifyitems


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


def test_the_longest_files_begin_first_and_the_others_keep_their_order():
    items = [Case(nodeid=f"tests/{file}::one", marks={}) for file in ("a.py", LONGEST[1], "b.py", LONGEST[0])]
    pytest_collection_modifyitems(items)
    assert [item.nodeid.partition("::")[0] for item in items] == [
        f"tests/{file}" for file in (LONGEST[0], LONGEST[1], "a.py", "b.py")
    ]


def test_files_that_are_said_to_be_long_are_there():
    assert all((Path(__file__).parent / file).is_file() for file in LONGEST)


def test_no_question_to_the_book_is_left_unfinished():
    """`fetchone` leaves a result open on a connection that all tests of a process share, and the next `sql` of another file fails."""
    files = (path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__))
    assert not [path.name for path in files if ".fetchone()" in path.read_text(encoding="utf-8")]
