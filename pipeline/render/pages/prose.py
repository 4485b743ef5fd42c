"""What the prose pages leave open: slots such as `<!--almanac:dictionary-->`, filled from the tables."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import polars as pl
from markupsafe import Markup

from pipeline import ROOT
from pipeline.book import promise
from pipeline.book.schema import ENUMS, PUBLISHED
from pipeline.render import words
from pipeline.render.addresses import REMOTE, Addresses, is_beside_site, largest_file
from pipeline.render.data import cards as card_facts
from pipeline.render.data.book import Book, Scenario
from pipeline.render.data.slices import file_of
from pipeline.render.environment import environment
from pipeline.render.pages import errors, method, news
from pipeline.render.pages.compare import Compare
from pipeline.render.pages.coverage import coverage
from pipeline.render.pages.front import Front
from pipeline.render.pages.gpus import GpuPages
from pipeline.render.pages.models import ModelPages
from pipeline.render.pages.plans import Plans
from pipeline.render.pages.rules import Rules
from pipeline.render.pages.runs import Runs
from pipeline.render.paths import LISTED
from pipeline.render.shell import SLOT

SQL = ROOT / "tables" / "sql"
SOME_SITE = "https://example.org/"  # what stands in examples where a site does not know its address
MATRIX_ROWS = 40
LISTED_MODELS = 200  # on the page of all models; the others are found by name, or on the pages of their organisations
MATRIX_DTYPES = ("gguf-q4_k_m", "awq-int4", "nf4", "bf16")  # what the matrix opens with: the first that is there


class Prose:
    def __init__(
        self, book: Book, pages: ModelPages, version: str = "", sql: Path = SQL, where: Addresses | None = None
    ) -> None:
        self.book, self.pages, self.version, self.sql_folder = book, pages, version, sql
        self.where = where or Addresses(pages.site_url)
        self.env = environment(book)
        self.env.globals["table_link"] = self.table_link
        self.front = Front(book, pages)
        self.cards = GpuPages(book, pages, self.front.window)
        self.compare = Compare(self.cards)

    def fill(self, html: str) -> str:
        """Every slot of a page, by the method of its name; and examples ask this site, where it knows its address."""
        if site := self.pages.site_url:
            html = html.replace(SOME_SITE, site).replace(quote(SOME_SITE, safe=""), quote(site, safe=""))
        return SLOT.sub(lambda m: getattr(self, f"slot_{m[1].replace('-', '_')}")(m[2]), html)

    def _render(self, template: str, **values) -> str:
        return self.env.get_template(template).render(**values)

    def opening(self):
        """The scenario that the matrix opens with."""
        rows = {s.dtype_id: s for s in self.book.rows(["inference"], **self.book.default("inference"))}
        return next((rows[d] for d in MATRIX_DTYPES if d in rows), next(iter(rows.values()), None))

    def slot_early(self, _argument) -> str:
        return self._render("early.html", version=self.version, wish=self.front.window.wishes[0])

    def slot_front(self, _argument) -> str:
        return self._render("front.html", version=self.version, **self.front.values())

    def slot_matrix(self, _argument) -> str:
        book, scenario = self.book, self.opening()
        rows = []
        known = [i for i in range(len(book.models)) if scenario and book.is_known(i, scenario)]
        for number in (known or range(len(book.models)))[:MATRIX_ROWS]:
            row = self.pages.row(number, scenario, "") if scenario else {"cells": [], "reason": "nothing is published"}
            rows.append(row | self.pages.entry(book.models[number]))
        name = book.formats[scenario] if scenario else ""
        caption = f"inference, {name}, {words.tokens(scenario.context_tokens)} tokens, one user" if scenario else ""
        return self._render(
            "matrix.html",
            rows=rows,
            gpus=book.common,
            total=len(book.models),
            caption=caption,
            version=self.version,
            sql=_sql(scenario) if scenario else "",
            opening=file_of(scenario) if scenario else "",
        )

    def slot_models(self, _argument) -> str:
        """The models that most people look for, and every organisation: its page lists all that it has."""
        first = [self.pages.entry(m) for m in self.book.models[:LISTED_MODELS]]
        entries = sorted(self.pages.paths.items(), key=lambda item: (item[1].lower(), item[1]))
        groups, organisations = [], 0
        for folder, rows in groupby(entries, key=lambda item: item[1].partition("/")[0]):
            rows = list(rows)
            name = rows[0][0].rpartition("/")[0] or "(no organisation)"
            if len(rows) >= LISTED:
                groups.append({"path": folder, "name": name, "number": len(rows)})
            else:  # a page of a line or two would only lead on
                groups += [{"path": path, "name": model, "number": 1} for model, path in rows]
            organisations += 1
        known = sum(map(self.book.is_told, range(len(self.book.models))))
        return self._render(
            "models.html", groups=groups, organisations=organisations, first=first, total=len(entries), known=known
        )

    def slot_gpus(self, _argument) -> str:
        return self._render("gpus.html", gpus=self.book.gpus)

    def slot_calculator(self, _argument) -> str:
        return self._render("calculator.html", has_formulas=bool(self.pages.calculator.module), version=self.version)

    def slot_which(self, _argument) -> str:
        share = card_facts.share(self.book)
        return self._render("which.html", has_formulas=bool(self.pages.calculator.module), share=share)

    def slot_techniques(self, _argument) -> str:
        return self._render("techniques.html", has_formulas=bool(self.pages.calculator.module))

    def slot_drafts(self, _argument) -> str:
        return self._render("drafts.html", has_formulas=bool(self.pages.calculator.module))

    def slot_compare(self, _argument) -> str:
        return self.compare.body()

    def slot_accuracy(self, _argument) -> str:
        order = lambda r: (r["phase_id"], r["engine_id"], r["metric"], r.get("strict_set") or "")  # noqa: E731
        rows = sorted((r for r in self.book["accuracy"] if r["row_count"]), key=order)
        found = errors.compared(self.book, self.pages.paths)
        return self._render(
            "accuracy.html",
            rows=rows,
            strict=[r for r in rows if r.get("strict_set", "A") == "A"],
            loose=[r for r in rows if r.get("strict_set", "A") != "A"],
            has_sets=any("strict_set" in r for r in rows),
            compared=found,
            plots=errors.scatters(found),
            said=errors.in_words(found, self.pages.phases, {r["metric"] for r in rows if r.get("verdict_count")}),
            verdicts=errors.verdicts(rows),
            phases=self.pages.phases,
            reasons=errors.reasons(self.book),
            reported=(told := errors.reported(self.book, self.pages.paths, self.pages.phases)),
            judged=Counter(r["judgement"] for r in told),
        )

    def slot_coverage(self, _argument) -> str:
        return self._render("coverage.html", **coverage(self.book.folder, self.pages.paths))

    def slot_changes(self, _argument) -> str:
        return self._render("changes.html", **news.page(self.book, self.pages.paths))

    def slot_promise(self, _argument) -> str:
        return self._render(
            "promise.html",
            version=promise.SCHEMA_VERSION,
            macros=promise.macros(),
            tables=list(PUBLISHED.values()),
            values=ENUMS,
        )

    def slot_runs(self, _argument) -> str:
        runs = Runs(self.book, self.pages.paths)
        return self._render(
            "runs.html", served=runs.served(), trained=runs.trained(self.pages.phases), within=runs.within()
        )

    def slot_rules(self, _argument) -> str:
        return self._render("rules.html", rows=Rules(self.book, self.pages).rows())

    def slot_serving(self, _argument) -> str:
        return self._render("serving.html", tables=Plans(self.book, self.pages).serving())

    def slot_trainings(self, _argument) -> str:
        return self._render("trainings.html", tables=Plans(self.book, self.pages).trainings())

    def slot_engines(self, _argument) -> str:
        used = {}
        for scenario in self.book.scenarios:
            used.setdefault(scenario.engine_id, {})[scenario.dtype_id] = None
        engines = [e | {"dtypes": list(used.get(e["engine_id"], ()))} for e in self.book["engine"]]
        programs = sorted(self.book["program"], key=lambda row: row["name"].lower())
        return self._render("engines.html", engines=engines, programs=programs)

    def slot_files(self, _argument) -> str:
        files, folder = [], self.book.folder
        for file in sorted(folder.iterdir(), key=lambda f: (f.suffix != ".duckdb", f.name)):
            if not file.is_file() or (".csv" in file.name and file.name not in _LOOSE):
                continue  # a table's CSV stands beside its Parquet file
            table = PUBLISHED.get(file.stem)
            rows = pl.scan_parquet(file).select(pl.len()).collect().item() if file.suffix == ".parquet" else None
            meaning = (
                table.meaning
                if table and rows is not None
                else _LOOSE.get(file.name, _OTHER_FILES.get(file.suffix, ""))
            )
            beside = [f for f in (folder / f"{file.stem}.csv", folder / f"{file.stem}.csv.zst") if f.exists()]
            csv = (
                {"name": beside[0].name, "size": _size(beside[0].stat().st_size)}
                if beside and rows is not None
                else None
            )
            size = _size(file.stat().st_size)
            files.append({"name": file.name, "rows": rows, "size": size, "meaning": meaning, "csv": csv})
        large = [file.name for file in sorted(folder.iterdir()) if file.is_file() and is_beside_site(file)]
        told = self._render("files.html", files=files, large=large, where=self.where, most=_size(largest_file()))
        return told + self._dataset([f["name"] for f in files])

    def slot_remote(self, _argument) -> str:
        """Where the file of views is and what it lacks, or why there is none."""
        site, files = self.where.site, [self.book.folder / f"{name}.parquet" for name in PUBLISHED]
        lacks = [file.stem for file in files if file.exists() and self.where.whole_of_table(file) is None]
        address = f"{site}tables/{REMOTE}" if site else ""
        return self._render("remote.html", address=address, name=REMOTE, lacks=lacks)

    def table_link(self, name: str, text: str = "") -> Markup:
        """A table's file as a link from a page below the root; one that has no address is a name alone."""
        file = self.book.folder / name
        address = self.where.of_table(file) if file.exists() else None
        if address is None:
            return Markup("<code>{}</code>").format(text or name)
        root = "" if is_beside_site(file) else "../"
        return Markup('<a href="{}">{}</a>').format(root + address, text or name)

    def _dataset(self, names: list[str]) -> str:
        """The release for search engines of data, as schema.org's Dataset."""
        as_of = sorted(m["facts_as_of"] for m in self.book.models if m["facts_as_of"])
        site, folder = self.where.site, self.book.folder
        dataset = {
            "@context": "https://schema.org",
            "@type": "Dataset",
            "name": "VRAM Almanac",
            "description": f"GPU memory of {len(self.book.models):,} open models on {len(self.book.gpus)} cards: footprints by "
            "format, phase and scenario, capacities, measurements and the formulas in SQL.",
            **({"url": f"{site}downloads/"} if site else {}),
            "dateModified": as_of[-1] if as_of else None,
            "isAccessibleForFree": True,
            "measurementTechnique": "computed from model configurations and tensor headers",
            "distribution": [
                {
                    "@type": "DataDownload",
                    "name": n,
                    "contentUrl": address,
                    "encodingFormat": kind,
                }
                for n in names
                if (kind := _MEDIA.get(n.rpartition(".")[2])) and (address := self.where.whole_of_table(folder / n))
            ],
        }
        text = json.dumps(dataset, ensure_ascii=False).replace("<", "\\u003c")
        return f'<script type="application/ld+json">{text}</script>'

    def slot_dictionary(self, _argument) -> str:
        return self._render("dictionary.html", tables=list(PUBLISHED.values()))

    def slot_sql(self, component: str) -> str:
        return self._render("sql.html", files=method.files(component, self.sql_folder))

    def slot_constants(self, component: str) -> str:
        return self._render("constants.html", rows=method.constants(component, self.sql_folder, self.book["constant"]))


def _sql(scenario: Scenario) -> str:
    """The query behind the matrix, as matrix.js writes it."""
    values = {k: v for k, v in scenario.__dict__.items() if v is not None}
    where = "\n  AND ".join(f"{k} = {v if isinstance(v, int) else words.sql_text(v)}" for k, v in values.items())
    columns = "model_id, gpu_id, verdict, gpu_count_needed, total_bytes"
    return f"SELECT {columns}\nFROM compatibility\nWHERE {where}\nORDER BY model_id, gpu_id;"


_MEDIA = {"duckdb": "application/vnd.duckdb", "parquet": "application/vnd.apache.parquet", "json": "application/json"}
_LOOSE = {
    "changes.csv": "A number that changed since the last release",
    "changed_verdicts.csv": "A verdict on one card that changed since the last release",
    "digest.csv": "A model, with the numbers that the next release is compared with",
}
_OTHER_FILES = {
    ".duckdb": "All tables, the views and the formulas as macros",
    ".json": "Description of the release, for machines",
}


def _size(size: int) -> str:
    for limit, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= limit:
            return f"{size / limit:.3g} {unit}"
    return f"{size} B"
