"""The scripts that reckon, over the formulas of a book and the tables of some models, in a real browser: nothing is rendered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.book import beside
from pipeline.render.data import calculator, cards, rules
from pipeline.render.data.mirror import Mirror

ASSETS = Path(__file__).parents[2] / "site" / "assets"
ORIGIN = "http://reckoned.test/"


@contextmanager
def reckoned(book, browser, models: Iterable[str], scripts=("almanac", "reckon", "sql_words")) -> Iterator:
    """A function of the code that is run, of `r` (reckon.js), the model's rows `own` and `more`: asked with a model and what more it takes."""
    mirror = Mirror(book)
    formulas = mirror.module(calculator.SCALARS)  # which tables it asks is known afterwards
    columns = ", ".join(cards.COLUMNS)
    rows = [[cards._short(value) for value in row] for row in book.execute(f"SELECT {columns} FROM gpu").fetchall()]
    shared = calculator.shared_tables(book, mirror.tables | {"constants", *calculator.ASKED_BESIDE})
    shared |= {"beside": beside.WORDS}
    own = calculator.model_tables(book, mirror.tables, models)
    files = {
        "data/formulas.js": formulas,
        "data/rules.js": rules.javascript(),
        "data/calculator.json": json.dumps(shared),
        "data/cards.json": json.dumps({"columns": cards.COLUMNS, "rows": rows, "share": None}),
    } | {f"assets/almanac/{name}.js": (ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in scripts}
    page = browser.new_page()
    page.route(
        f"{ORIGIN}**",
        lambda route: route.fulfill(
            body=files.get(route.request.url.removeprefix(ORIGIN), ""),
            content_type="text/javascript" if route.request.url.endswith("js") else "text/html",
        ),
    )
    page.goto(ORIGIN)
    loaded = ", ".join(f'{name} = await import("/assets/almanac/{name}.js")' for name in scripts)
    yield lambda code, model, *more: page.evaluate(
        f"async ([own, ...more]) => {{ const {loaded}, r = reckon; {code} }}", [own[model], *more]
    )
    page.close()
