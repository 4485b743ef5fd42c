"""What a person sees of a step: its name, how far it is, and no time left that is a guess."""

from __future__ import annotations

import io
import pickle
import re
import time

import pytest

from pipeline.base import progress
from pipeline.render import crew


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_has_plain_lines_and_none_is_blank(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.05)
    log = io.StringIO()
    for _ in progress.bar(range(4), desc="footprints", to=log):
        time.sleep(0.1)
    lines = log.getvalue().split("\n")
    assert lines.pop() == "" and all(line.startswith("footprints  ") for line in lines)
    assert len(lines) >= 4 and "\r" not in log.getvalue()
    assert re.fullmatch(r"footprints +4 of 4, \d+ s", lines[-1])


def test_a_step_of_one_piece_moves_while_it_lasts(monkeypatch):
    monkeypatch.setattr(progress, "_DRAWN_EVERY", 0.02)
    screen = Terminal()
    with progress.step(lambda rows, **how: progress.bar(rows, **how, to=screen), "checks"):
        time.sleep(0.3)
        drawn = screen.getvalue().count("\r")
    assert drawn > 5
    text = screen.getvalue()
    assert text.count("\n") == 1 and text.endswith("\n") and "checks" in text and "of 1" not in text


def test_a_step_that_fails_ends_its_line_and_is_not_told_as_done():
    log, screen = io.StringIO(), Terminal()
    for to in (log, screen):
        with (
            pytest.raises(RuntimeError),
            progress.step(lambda rows, to=to, **how: progress.bar(rows, **how, to=to), "prose"),
        ):
            raise RuntimeError("no space left")
    assert log.getvalue() == "" and screen.getvalue().endswith("\n")


@pytest.mark.parametrize(
    ("count", "total", "elapsed", "said"),
    [
        (0, 3335, 41, ""),  # nothing is known of the rate
        (1, 3335, 41.14, ""),  # 38 hours, by the first row
        (100, 3335, 60, ""),
        (167, 3335, 60, "about 18 min 58 s left"),
        (3000, 3335, 60, "about 7 s left"),
        (5, 16, 9, ""),  # too soon
        (8, 16, 90, "about 1 min 30 s left"),
        (16, 16, 90, ""),
        (5, None, 90, ""),
    ],
)
def test_time_left_is_told_where_it_is_no_guess(monkeypatch, count, total, elapsed, said):
    shown = progress._Shown("pages", total, io.StringIO())
    shown.end(is_whole=False)
    shown.count = count
    monkeypatch.setattr(progress.time, "monotonic", lambda: shown.started + elapsed)
    assert shown._left() == said


@pytest.mark.parametrize(("count", "said"), [(0.4, "0 s"), (59.4, "59 s"), (125, "2 min 5 s"), (3780, "1 h 3 min")])
def test_seconds_are_told_for_people(count, said):
    assert progress.seconds(count) == said


def test_pages_are_counted_as_they_get_ready_and_after_what_is_written_beside_them(monkeypatch):
    """The slowest portion is the first: the others must not wait for it, nor the bar for the cards."""
    from concurrent.futures import ThreadPoolExecutor

    order = []

    def write(told):
        _, _, numbers, *_ = pickle.loads(told)
        time.sleep(0.4 if numbers.start == 0 else 0)

    monkeypatch.setattr(crew, "_write", write)
    monkeypatch.setattr(crew, "PORTION", 2)

    class Pages:
        class book:
            models = range(6)

        def part(self, numbers):
            return numbers, b"", {}

    one = crew.Crew(Pages(), 0)
    one.pool = ThreadPoolExecutor(3)
    with one:
        ready = one.write(None, None, lambda: order.append("cards"))
        assert order == ["cards"]  # before the first page is asked for
        places = list(ready)
    assert sorted(places) == [0, 1, 2, 3, 4, 5] and places[-2:] == [0, 1]


def test_what_else_there_is_to_tell_stands_beside_the_count_and_its_own_time_left_goes_first(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.05)
    log = io.StringIO()
    for _ in progress.bar(range(2), desc="models", to=log, note=lambda: "12 requests, about 9 min left at the limit"):
        time.sleep(0.15)
    first, *_, last = log.getvalue().splitlines()
    assert re.fullmatch(r"models +0 of 2, 12 requests, about 9 min left at the limit, 0 s", first)
    assert last.startswith("models ") and "2 of 2, 12 requests" in last
