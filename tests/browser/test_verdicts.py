"""The browser's copies of the verdict, held to those that the pages and the formulas are made with."""

from __future__ import annotations

import random

import pytest

from pipeline.render import words

COUNTS = [1, 2, 4, 8]
UNKNOWN = float("inf")
# `judge` of almanac.js over many rows at once; no script of the page is changed
JUDGE = """async ([rows, counts]) => {
  const { judge } = await import(document.querySelector('link[rel="stylesheet"][href*="almanac"]').href.replace(/[^/]*$/, "almanac.js"));
  return rows.map(([totals, capacity]) => { const said = judge(totals.map((v) => v ?? Infinity), 0, counts, capacity); return [said.verdict, said.gpus ?? null]; });
}"""


def rows(number: int, seed: int) -> list[tuple[list[float | None], int]]:
    """Totals by count with the band of each, and a card: most lie within a few thousandths of the border."""
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        capacity = draw.randrange(1, 2**27)
        bands = [draw.randrange(0, 5000) for _ in COUNTS]
        totals: list[float | None] = []
        for band in bands:
            border = capacity * 10_000 / (10_000 + band)
            near = draw.choice([border, capacity, border / 2, 2 * capacity])
            totals.append(None if draw.random() < 0.15 else float(max(round(near) + draw.randrange(-2, 3), 0)))
        found.append(([*totals, *bands], capacity))
    return found


@pytest.mark.browser
def test_the_browser_judges_as_the_pages_do(open_page):
    asked = rows(4000, seed=87)
    said = open_page().evaluate(JUDGE, [asked, COUNTS])
    wanted = []
    for totals, capacity in asked:
        verdict, gpus, _ = words.judge([UNKNOWN if t is None else t for t in totals], COUNTS, capacity)
        wanted.append([verdict or "unknown", gpus])
    assert {verdict for verdict, _ in wanted} == {"fits", "multi-gpu", "tight", "no", "unknown"}
    wrong = [(row, a, b) for row, a, b in zip(asked, said, wanted, strict=True) if a != b]
    assert not wrong[:3]
