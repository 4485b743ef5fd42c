"""One page per model, and one per organisation."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from markupsafe import Markup

from pipeline.book.commands import GGUF_OF
from pipeline.book.components import COMPONENTS
from pipeline.render import paths, words
from pipeline.render.data import modelfiles, openings, relatives, works
from pipeline.render.data.book import PARTS, UNKNOWN_KIB, Book, Scenario
from pipeline.render.data.calculator import Calculator, of_model
from pipeline.render.data.relatives import Relatives, packed
from pipeline.render.data.support import Support
from pipeline.render.data.tables import components
from pipeline.render.draw import plot
from pipeline.render.draw.preview import Previews
from pipeline.render.environment import environment
from pipeline.render.pages import pipelines, reach
from pipeline.render.pages.answer import SINGLE_GIB, WHOLE, answer, ladder, smallest_for_badge
from pipeline.render.pages.bycard import ByCard
from pipeline.render.pages.commands import Commands
from pipeline.render.pages.reach import Reach


class ModelPages:
    """Holds what all model pages share, so that a page costs only its own rows."""

    def __init__(self, book: Book, site_url: str = "") -> None:
        self.book, self.site_url = book, site_url
        self._answered: tuple[int, tuple[str, str]] = (-1, ("", ""))
        env = environment(book)
        self.page, self.organisation = env.get_template("model.html"), env.get_template("organisation.html")
        self.dtypes = {d["dtype_id"]: d["name"] for d in book["dtype"]}
        self.capacities = [g["capacity_bytes"] // 1024 for g in book.common]
        self.phases = {p["phase_id"]: p["name"] for p in book["phase"]}
        self.engines = {e["engine_id"]: e for e in book["engine"]}
        self.trained = [p for p in self.phases if p != "inference"]
        self.wanted = tuple(book.openings[p]["context_tokens"] for p in ("inference", "lora"))
        self.paths = paths.assign(book.models)
        self.contexts = book.axis({"inference"}, "context_tokens")
        self.sequences = book.axis({"inference"}, "sequences")
        self.lengths = book.axis(set(self.trained), "context_tokens")
        self.training = {c: self._training_rows(c) for c in self.lengths}
        self.inference = {
            c: book.rows(["inference"], **book.default("inference", context_tokens=c)) for c in self.contexts
        }
        self.shown = [s for rows in (*self.inference.values(), *self.training.values()) for s in rows]
        self.places = {scenario: i for i, scenario in enumerate(self.shown)}
        self.support, self.relatives = Support(book), Relatives(book.models)
        self.previews = Previews()
        self.reach = Reach(book, self.support, self.contexts, self.lengths, lambda: self.held)
        self.by_card = ByCard(book, self.support, lambda: self.held)
        self.commands = Commands(book.models, self.relatives)

    @cached_property
    def calculator(self) -> Calculator:
        return Calculator(self.book.folder)

    @cached_property
    def leaders(self) -> list[int]:
        """For each model the place of the one that it is a copy, quantisation or fine-tune of, or its own."""
        return works.leaders(self.book.models, lambda i: self.book.models[i]["anatomy_grade"] != "unknown")

    @cached_property
    def held(self) -> dict[str, dict]:
        """What the pages of models show beside the book's array: by name and model, as plain values."""
        book = self.book
        return {
            "parts": components(book.folder, self.shown) if self.shown else {},
            "tensors": _grouped(book["tensor_class"]),
            "layers": _grouped(book["attention_layer"]),
            "pipelines": pipelines.read(book.folder, sorted({c["model_id"] for c in book["component"]}), book.plainly),
            "formulas": self.calculator.own,
        } | reach.read(book, self.contexts, self.lengths, self.trained)

    def part(self, numbers: range) -> tuple[range, bytes, dict[str, dict]]:
        """What the pages of consecutive models need, for another process to `take`."""
        ids = [self.book.models[n]["model_id"] for n in numbers]
        held = {name: {i: rows[i] for i in ids if i in rows} for name, rows in self.held.items()}
        return numbers, self.book.part(numbers).tobytes(), held

    def take(self, numbers: range, totals: bytes, held: dict[str, dict]) -> None:
        """From now on these are the models whose pages can be written."""
        self.book.first, self.book.array = numbers.start, array("f", totals)
        self.held = held

    @cached_property
    def heads(self) -> Markup:
        """The common cards as heads of a table, equal on every page."""
        pieces = self.page.environment.get_template("_macros.html").module
        return Markup(pieces.gpu_heads(self.book.common, "../../../"))

    def _training_rows(self, context: int) -> list[Scenario]:
        rows = []
        for phase in self.trained:
            rows += self.book.rows([phase], **self.book.default(phase, context_tokens=context))
        return rows

    def render(self, number: int) -> str:
        book, model = self.book, self.book.models[number]
        context, length = self._opening(model)
        inference, training = self._shown(number)
        shown = inference + training
        known = any(book.is_known(number, s) for s in shown)
        organisation, _, name = model["model_id"].rpartition("/")
        breakdown = self._breakdown(number, shown) if known else []
        tensors = sorted(self.held["tensors"].get(model["model_id"], ()), key=lambda t: -t["element_count"])
        used = {part for row in breakdown for part, size in row["parts"] if size}
        for row in breakdown:
            row["cells"] = Markup("".join([words.exact_cell(size) for part, size in row["parts"] if part in used]))
        caption = f"{words.tokens(context)} tokens, one sequence" if context else ""
        context_values, contexts = self._contexts(number) if known else ([], [])
        recipe = _recipe(training)
        return self.page.render(
            model=model,
            root="../../../",
            path=self.paths[model["model_id"]],
            organisation=organisation or "(no organisation)",
            name=name,
            answer=self._answer(number) if known else ("", ""),
            made_of=self._made_of(number),
            cards=known
            and self.by_card.values(number, inference, context or self.wanted[0], bool(self._own_format(number))),
            bars=self._bars(number, breakdown),
            levels=self.reach.levels,
            used_run={part for row in breakdown if row["is_run"] for part, size in row["parts"] if size},
            repositories=json.dumps(self.commands.repositories(number)),
            commands=self.commands.of(number, context or self.wanted[0]) if known and inference else [],
            reason=self._reason(number),
            short_context=bool(model["max_context_tokens"] and model["max_context_tokens"] < self.wanted[0]),
            context=context or self.wanted[0],
            length=length or self.wanted[1],
            gpus=book.common,
            heads=self.heads,
            inference=known and self._group(number, inference, f"Inference, {caption}.", f"inference at {caption}"),
            training=known and training and self._group(number, training, f"Training, {recipe}.", f"at {recipe}"),
            breakdown=[row for row in breakdown if not row["is_run"]],
            used=used,
            context_values=context_values,
            contexts=contexts,
            sequences=self.sequences,
            engines=[self.engines[e] for e in sorted({s.engine_id for s in shown}) if e in self.engines]
            if known
            else [],
            base_path=self.paths.get(model["base_model_id"]),
            tensors=tensors,
            tensor_sum=sum(t["element_count"] for t in tensors) or 1,
            layers=self.held["layers"].get(model["model_id"], []),
            whole=self._of_pipeline(number),
            pipeline=(pipeline := pipelines.told(self.held["pipelines"].get(model["model_id"]))),
            whole_sizes=[pipelines.totals(p) for p in pipeline["known"]] if pipeline else [],
            placed=pipelines.verdicts(pipeline, book.common, self.support.in_pytorch(pipelines.DTYPE))
            if pipeline
            else [],
            reach=known and self.reach.rows(number, inference),
            far=known and training and self.reach.training_rows(number, training, self.phases),
            recipe=recipe.partition(", micro-batch")[2].partition(", ")[2],
            points=reach.name_of(points) if known and (points := self._points(number)) else "",
            plot=self.reach.plot(number) if known else "",
            relatives=self._relatives(number),
            page_url=f"{self.site_url}models/{self.paths[model['model_id']]}/" if self.site_url else "",
            totals=(self.totals(number) or ("",))[0],
            told=self.is_told(number),
        )

    def shared(self, number: int) -> dict[str, str]:
        """Files of the site by their path that pages of models alike share: the points that limits of any card are read off."""
        text = self._points(number)
        return {f"data/limits/{reach.name_of(text)}.json": text} if text else {}

    def _points(self, number: int) -> str | None:
        model = self.book.models[number]
        context, length = self._opening(model)
        scenarios = self.inference.get(context, []) + self.training.get(length, [])
        return reach.as_file(self.held["points"].get(model["model_id"], {}), scenarios)

    def description(self, number: int) -> str:
        """For search engines and previews: the answer itself, where there is one."""
        name = self.book.models[number]["model_id"]
        said = self._answer(number)[0] or self._of_pipeline(number)
        return f"{name}: {said[:1].lower()}{said[1:]}" if said else f"GPU memory of {name}: not known, and why."

    def files(self, number: int) -> dict[str, str | bytes]:
        """What lies beside the page, by name: nothing where nothing is known, which the page alone has to say."""
        if not self.is_told(number):
            return {}
        model = self.book.models[number]
        context, _length = self._opening(model)
        known = any(self.book.is_known(number, s) for s in self.inference.get(context, []))
        tables = {
            "tensor_class": self.held["tensors"].get(model["model_id"], []),
            "attention_layer": self.held["layers"].get(model["model_id"], []),
        }
        limits = self.reach.as_rows(number, self.inference.get(context, []))
        pipeline = self.held["pipelines"].get(model["model_id"])
        if pipeline:
            where, fits = pipelines.for_badge(pipeline, self._cards)
        else:
            where, fits = smallest_for_badge(self.book, number, context) if known else None, known
        formula = of_model(self.held["formulas"].get(model["model_id"]))
        return ({"formula.json": formula} if formula else {}) | {
            "model.json": modelfiles.as_json(model, self.paths[model["model_id"]], self._said(number), tables, limits),
            "badge.svg": modelfiles.badge(where, fits),
            "preview.png": self._preview(number),
        }

    def is_told(self, number: int) -> bool:
        """Whether there is a number to tell of a model: a total, a pipeline's parts, or a shape that the calculator can ask."""
        name = self.book.models[number]["model_id"]
        has_shape = of_model(self.held["formulas"].get(name)) is not None
        return has_shape or name in self.held["pipelines"] or self._has_totals(number)

    def _has_totals(self, number: int) -> bool:
        return any(self.book.is_known(number, s) for shown in self._shown(number) for s in shown)

    def totals(self, number: int) -> tuple[str, bytes] | None:
        """Every scenario of a model for the controls of its page, and a name by content: models with the same totals share a file."""
        if not self._has_totals(number):
            return None  # a page without a number has no controls
        content = self.book.model_bytes(number)
        return hashlib.sha256(content).hexdigest()[:16], content

    def _shown(self, number: int) -> tuple[list[Scenario], list[Scenario]]:
        """What a page opens with: inference and training."""
        context, length = self._opening(self.book.models[number])
        return self.inference.get(context, []), self.training.get(length, [])

    def _preview(self, number: int) -> bytes:
        """The page in a picture, for links to it on other sites."""
        model = self.book.models[number]
        said = (self._answer(number)[0] or self._of_pipeline(number)).rstrip(".")
        count = model["parameter_count"] or model["stored_parameter_count"]
        facts = [f"{words.count(count)} parameters"] if count else []
        if model["max_context_tokens"]:
            facts.append(f"context {words.tokens(model['max_context_tokens'])}")
        told = said.split("; ") if said else [f"GPU memory not known: {self._reason(number)}"]
        return self.previews.draw(model["model_id"], ", ".join(facts), told)

    def _reason(self, number: int) -> str:
        """Why nothing is known of a model."""
        shown = self.inference.get(self._opening(self.book.models[number])[0], [])
        note = self.book.models[number]["anatomy_note"] or "nothing is published"
        return (self.book.reason(number, shown[0]) if shown else note).rstrip(".")

    def _of_pipeline(self, number: int) -> str:
        return pipelines.sentence(self.held["pipelines"].get(self.book.models[number]["model_id"]), self._cards)

    @property
    def _cards(self) -> list[tuple[int, int]]:
        return [card for card in ladder(self.book) if card[0] <= SINGLE_GIB]

    def _answer(self, number: int) -> tuple[str, str]:
        if self._answered[0] != number:  # a page, its description and its files ask in turn
            said, told = answer(self.book, number, *self._opening(self.book.models[number]))
            if self._own_format(number):  # its base's page says the rest
                said, told = (f"{text.rstrip('.').partition('; ')[0]}." if text else "" for text in (said, told))
            self._answered = number, (said, told)
        return self._answered[1]

    def _said(self, number: int) -> tuple[str, str]:
        """The answer, that of a pipeline too, and the scenarios that it speaks of."""
        said = self._answer(number)
        return said if said[0] else (self._of_pipeline(number), "")

    def _opening(self, model: dict) -> tuple[int | None, int | None]:
        limit = model["max_context_tokens"]
        context, length = self.wanted
        return openings.longest(self.contexts, context, limit), openings.longest(self.lengths, length, limit)

    def _relatives(self, number: int) -> list[tuple[str, list[dict], int]]:
        models = self.book.models
        return [
            (heading, [self.entry(models[i]) | {"packed": packed(models[i])} for i in places], more)
            for heading, places, more in self.relatives.of(number)
        ]

    def _group(self, number: int, scenarios: list[Scenario], caption: str, short: str) -> dict:
        """One matrix: its rows, and whether any of them is known."""
        names = self.phases if scenarios and scenarios[0].phase_id != "inference" else {}
        rows = [self._row(number, s, names.get(s.phase_id, s.dtype_id)) for s in scenarios]
        return {
            "caption": f"{caption} GiB on one card; then how full each card gets.",
            "caption_short": short,
            "rows": [row for row in rows if row["cells"]],
            "left_out": _left_out(rows),
            "is_known": any(row["cells"] for row in rows),
        }

    def _row(self, number: int, scenario: Scenario, name: str) -> dict:
        book = self.book
        totals = book.totals(number, book.index[scenario])
        row = {
            "label": name,
            "dtype": scenario.dtype_id,
            "title": self.dtypes.get(scenario.dtype_id, ""),
            "engine": scenario.engine_id,
            "reason": "",
            "gib": "",
            "cells": [],
        }
        if not book.is_known(number, scenario):
            return row | {"reason": book.reason(number, scenario)}
        refusals = self.support.of_common(scenario, number)
        cells = [
            words.verdict_cell(totals, book.counts, kib, "", refusal)
            for kib, refusal in zip(self.capacities, refusals, strict=True)
        ]
        return row | {"gib": _kib_text(totals[0]), "cells": Markup("".join(cells))}

    def _breakdown(self, number: int, shown: list[Scenario]) -> list[dict]:
        by_place = {row["s"]: row for row in self.held["parts"].get(self.book.models[number]["model_id"], ())}
        found = [(s, by_place.get(self.places[s])) for s in shown]
        rows = []
        for group in (True, False):  # each group on a scale of its own: training dwarfs inference
            part = [(s, r) for s, r in found if (s.phase_id == "inference") is group]
            scale = max((r["total_bytes"] for _s, r in part if r and r["total_bytes"]), default=None)
            if scale is None:
                continue  # the matrix above says why
            for scenario, row in part:
                name = self.book.formats[scenario]
                total = row and row["total_bytes"]
                rows.append(
                    {
                        "label": name if group else f"{self.phases.get(scenario.phase_id, scenario.phase_id)}, {name}",
                        "is_run": group,
                        "dtype": scenario.dtype_id,
                        "engine": scenario.engine_id,
                        "total": total,
                        "scale": scale,
                        "band": f"{100 * row['error_band']:.0f} %" if row and row["error_band"] is not None else "–",
                        "parts": [(c.removesuffix("_bytes"), row and row[c]) for c in PARTS],
                        "bar": plot.bar([(c.removesuffix("_bytes"), row[c]) for c in PARTS], scale) if total else "",
                        "reason": "" if total is not None else self.book.reason(number, scenario),
                    }
                )
        return rows

    def _bars(self, number: int, breakdown: list[dict]) -> list[dict]:
        """Formats against what cards give: a bar for each, its parts, and what other engines need. Of a repository that holds one format
        alone it is that one."""
        stored = self.book.models[number]["stored_format"]
        # whole numbers of 32 bits would dwarf all that people run, and what is published whole stands there by its own name
        unwanted = {"fp32"} | ({"stored"} if stored in WHOLE else set())
        rows = [row for row in breakdown if row["is_run"] and row["total"] is not None and row["dtype"] not in unwanted]
        own = self._own_format(number)
        if own := next((d for d in own if any(row["dtype"] == d for row in rows)), None):
            rows = [row for row in rows if row["dtype"] == own]
        scale = max((row["total"] for row in rows), default=1)
        lines = [round(1000 * gib * words.GIB / scale) for _label, gib in self.reach.levels]
        path = "".join(f"M{x} 0v10" for x in lines if x < 1000)
        names = {c: name for c, name, _page in COMPONENTS}
        bars: dict[str, dict] = {}
        for row in rows:
            parts = [f"{names[c]} {words.gib(size)}" for c, size in row["parts"] if size]
            told = f"{' · '.join(parts)} GiB; {words.exact(row['total'])} bytes, ± {row['band']}"
            engine = self.engines.get(row["engine"], {}).get("name", row["engine"])
            bar = bars.setdefault(
                row["dtype"],
                {"label": words.format_name(row["dtype"], stored), "total": row["total"], "lines": path, "engines": []}
                | {"bar": plot.bar(row["parts"], scale)},
            )
            bar["engines"].append((engine, told))
        return list(bars.values())

    def _own_format(self, number: int) -> tuple[str, ...]:
        """The formats of a repository that holds a quantisation of another's model; nothing for all others."""
        stored = self.book.models[number]["stored_format"]
        is_packed = stored is not None and stored not in WHOLE and self.leaders[number] != number
        return (GGUF_OF.get(stored, "stored"), "stored", stored) if is_packed else ()

    def _made_of(self, number: int) -> dict | None:
        """What a model is a copy, quantisation or fine-tune of."""
        model, leader = self.book.models[number], self.leaders[number]
        base = self.book.models[leader]["model_id"] if leader != number else model["base_model_id"]
        if not base or base == model["model_id"]:
            return None
        stored = model["stored_format"]
        is_same = self.relatives.stems[number] == relatives.stem(base)
        held = packed(model)
        is_packed = (stored is not None and stored not in WHOLE) or (stored is None and bool(held))
        format_ = f" ({held})" if held else ""
        said = f"Quantisation{format_} of" if is_packed else "Copy of" if is_same else "Made from"
        return {"said": said, "name": base, "path": self.paths.get(base), "only": bool(self._own_format(number))}

    def _contexts(self, number: int) -> tuple[list[int], list[tuple[str, Markup]]]:
        """The contexts that this model has an answer for; and GiB on one card by format, for each and every number of sequences, as cells."""
        book, cells = self.book, defaultdict(dict)
        for scenario in book.rows(["inference"]):
            kib = book.totals(number, book.index[scenario])[0]
            cells[self.book.formats[scenario]][scenario.sequences, scenario.context_tokens] = kib
        limit = book.models[number]["max_context_tokens"] or max(self.contexts, default=0)
        answered = {c for row in cells.values() for (_, c), kib in row.items() if kib != UNKNOWN_KIB}
        contexts = [c for c in self.contexts if c in answered]
        columns = [(s, c) for s in self.sequences for c in contexts]
        return contexts, [
            (name, words.cells(_kib_text(row.get(column, UNKNOWN_KIB), column[1] > limit) for column in columns))
            for name, row in cells.items()
            if any(kib != UNKNOWN_KIB for kib in row.values())
        ]

    def organisations(self) -> Iterator[tuple[str, str, str]]:
        """Folder, name and page of every organisation."""
        groups = defaultdict(list)
        for model in self.book.models:
            groups[self.paths[model["model_id"]].partition("/")[0]].append(model)
        for folder in sorted(groups):
            rows = [self.entry(model) for model in groups[folder]]
            name = groups[folder][0]["model_id"].rpartition("/")[0] or "(no organisation)"
            yield folder, name, self.organisation.render(organisation=name, rows=rows)

    def entry(self, model: dict) -> dict:
        """A model as a line of a list."""
        path = self.paths[model["model_id"]]
        size = model["parameter_count"] or model["stored_parameter_count"]
        return {
            "name": model["model_id"],
            "leaf_name": model["model_id"].rpartition("/")[2],
            "path": path,
            "leaf": path.partition("/")[2],
            "size": words.count(size) if size else "",
            "downloads": "" if model["downloads_30d"] is None else f"{model['downloads_30d']:,}",
            "task": model["pipeline_tag"] or "",
            "grade": model["anatomy_grade"],
        }


def _left_out(rows: list[dict]) -> list[tuple[str, str]]:
    """What has no number, by the reason: formats in words, and why."""
    found = defaultdict(list)
    for row in rows:
        if not row["cells"]:
            found[row["reason"]].append(f"{row['label']} ({row['engine']})")
    return [(", ".join(names), why) for why, names in found.items()]


def _kib_text(kib: float, is_beyond: bool = False) -> str:
    return "–" if kib == UNKNOWN_KIB and is_beyond else "unknown" if kib == UNKNOWN_KIB else words.gib(kib * 1024)


def _grouped(rows: list[dict]) -> dict[str, list[dict]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["model_id"]].append(row)
    return groups


def _recipe(training: list[Scenario]) -> str:
    if not training:
        return ""
    s = training[0]
    kept = {"full": "full activation checkpointing", "none": "no activation checkpointing"}.get(s.checkpointing, "")
    return f"{words.tokens(s.context_tokens)} tokens, micro-batch {s.sequences}, {s.optimizer_id}, {kept}"
