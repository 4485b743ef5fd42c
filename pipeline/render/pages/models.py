"""One page per model, and one per organisation."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from pipeline.base import durations
from pipeline.book.commands import GGUF_OF, NO_IMAGES, TEXT_ALONE, counted, is_packed, told_of_packed
from pipeline.book.packs import Packs
from pipeline.render import paths, words
from pipeline.render.data import api, badges, openings, relatives, shapes, slices
from pipeline.render.data.book import UNKNOWN_KIB, Book, Scenario
from pipeline.render.data.calculator import Calculator, Own, has_shape
from pipeline.render.data.kept import Answers, Kept, hashed
from pipeline.render.data.relatives import Relatives, packed
from pipeline.render.data.siblings import Siblings
from pipeline.render.data.support import Support
from pipeline.render.environment import environment
from pipeline.render.pages import commands, containers, passes, pipelines, reach, sounds
from pipeline.render.pages.answer import WHOLE, recipe
from pipeline.render.pages.bars import bars as bars_of
from pipeline.render.pages.bycard import OFFERED, TRAINED, Best, ByCard
from pipeline.render.pages.commands import Commands
from pipeline.render.pages.headlines import Headlines
from pipeline.render.pages.reach import Reach


class ModelPages:
    """Holds what all model pages share, so that a page costs only its own rows."""

    def __init__(self, book: Book, site_url: str = "", packs: Packs | None = None) -> None:
        self.book, self.site_url, self.packs = book, site_url, packs
        self._shaped: tuple[int, shapes.Shape | None] = (-1, None)
        env = environment(book)
        self.page, self.organisation = env.get_template("model.html"), env.get_template("organisation.html")
        self.dtypes = {d["dtype_id"]: d["name"] for d in book["dtype"]}
        self.bits = {d["dtype_id"]: d["bits_per_weight"] for d in book["dtype"]}
        self._told: dict[int, set[str] | None] = {}
        self.capacities = [g["capacity_bytes"] // 1024 for g in book.common]
        self.phases = {p["phase_id"]: p["name"] for p in book["phase"]}
        self.engines = {e["engine_id"]: e for e in book["engine"]}
        self.trained = [p for p in self.phases if p != "inference"]
        self.wanted = tuple(book.openings[p]["context_tokens"] for p in ("inference", "lora"))
        self.paths = paths.assign(book.models)
        self.sizes = Counter(path.partition("/")[0] for path in self.paths.values())
        self.contexts = book.axis({"inference"}, "context_tokens")
        self.lengths = book.axis(set(self.trained), "context_tokens")
        self.training = {c: self._training_rows(c) for c in self.lengths}
        self.inference = {
            c: book.rows(["inference"], **book.default("inference", context_tokens=c)) for c in self.contexts
        }
        self.support, self.relatives = Support(book), Relatives(book.models)
        self.headlines = Headlines(book, self)
        self.reach = Reach(book, lambda: self.held)
        self.by_card = ByCard(book, self.support, lambda: self.held, self._engines, self._converted)
        self.commands = Commands(book.models, self.relatives, commands.weights(book.folder))

    @cached_property
    def calculator(self) -> Calculator:
        return Calculator(self.book.folder, self.kept)

    @cached_property
    def kept(self) -> Kept:
        """What was worked out before, by what it is made of: of tables without formulas nobody can tell."""
        book = self.book
        found = book.contents
        scenarios = [list(s.__dict__.values()) for s in book.scenarios]
        shared = [book.openings, book.counts, book.counts_of, scenarios, reach.capacities(book)]
        return Kept(found, shared, self.packs if found else None)

    @cached_property
    def leaders(self) -> list[int]:
        """For each model the place of the one that it is a copy, quantisation or fine-tune of, or its own."""
        return self.book.works.leaders(lambda i: self.book.models[i]["anatomy_grade"] != "unknown")

    @cached_property
    def siblings(self) -> Siblings:
        return Siblings(self.book.models, self.leaders, self.paths)

    @cached_property
    def held(self) -> dict[str, dict]:
        """What the pages of models show beside the book's array: by name and model, as plain values."""
        book = self.book
        return {
            "tensors": _grouped(book["tensor_class"]),
            "layers": _grouped(book["attention_layer"]),
            "pipelines": self._pipelines(),
            "sounds": sounds.read(book.folder, book.plainly, self.answers),
            "formulas": self.calculator.own,
            "files": _grouped(book["repository_file"]),
            "containers": containers.read(book.folder),
            "passes": passes.read(book.folder),
            "seeing": commands.seeing(book.folder),
            "kept": commands.kept_in(book.folder),
            "packings": commands.packings(book.folder),
            "packing_spreads": commands.packing_spreads(book.folder),
        } | reach.Read(book, self.kept, self.contexts, self.lengths, self.trained, OFFERED, TRAINED).held()

    def ask(self, models: Iterable[str]) -> None:
        """Has what is read of these read at once."""
        for rows in self.held.values():
            if isinstance(rows, reach.Told | Own):
                rows.ask(models)

    @cached_property
    def answers(self) -> Answers:
        return Answers(self.kept, self.book.folder / "almanac.duckdb")

    def _pipelines(self) -> dict[str, dict]:
        names = sorted({c["model_id"] for c in self.book["component"]})
        macros = ("pipeline_of", "pipeline_stages", "pipeline_training_of")
        make = lambda some: pipelines.read(self.book.folder, some, self.book.plainly)  # noqa: E731
        return self.answers.of("pipelines", names, macros, make)

    def made_of(self, number: int) -> tuple[str, list]:
        """The model, and all that its page and files are made of beside the content of its numbers: its own rows, and what of other models
        stands there. A page that asks another model anything else fails tests/render/test_kept_pages.py."""
        model = self.book.models[number]
        name = model["model_id"]
        told = (
            "tensors",
            "layers",
            "pipelines",
            "sounds",
            "containers",
            "passes",
            "seeing",
            "kept",
            "packings",
            "packing_spreads",
        )
        held = [self.calculator.said.get(name), *(self.held[what].get(name) for what in told)]
        return name, [self.site_url, self.reasons, api.plain(model), self.beside(number), held]

    @cached_property
    def reasons(self) -> str:
        """A hash of all reasons, whose places are their numbers."""
        return hashed(list(self.book.reasons))

    def beside(self, number: int) -> dict[str, object]:
        """What of other models stands on a page."""
        model = self.book.models[number]
        name = model["model_id"]
        return {
            "path": self.paths[name],
            "base_path": self.paths.get(model["base_model_id"]),
            "files": self._files(name),
            "is_organised": self.sizes[self.paths[name].partition("/")[0]] >= paths.LISTED,
            "is_led": self.leaders[number] != number,
            "made_of": self._made_of(number),
            "smaller": self.siblings.smaller(number),
            "relatives": self._relatives(number),
            "repositories": self.commands.repositories(number),
        }

    def part(self, numbers: range) -> tuple[range, list[int], dict[str, dict]]:
        """What the pages of consecutive models need, for another process to `take`; their totals by their rows of the book's array."""
        ids = [self.book.models[n]["model_id"] for n in numbers]
        self.ask(ids)
        all_held = self.held | {"bests": self.bests}
        held = {name: {i: rows[i] for i in ids if i in rows} for name, rows in all_held.items()}
        return numbers, [self.book.row(number) for number in numbers], held

    def take(self, numbers: range, totals: bytes, held: dict[str, dict]) -> None:
        """From now on these are the models whose pages can be written."""
        self.book.first, self.book.array, self._shaped = numbers.start, array("f", totals), (-1, None)
        self.held, self.bests = held, held["bests"]

    def _files(self, model_id: str) -> list[dict]:
        """The single files of a repository, each with the page of the model that it is a copy of."""
        return [f | {"of_path": self.paths.get(f["of_model_id"] or "")} for f in self.held["files"].get(model_id, ())]

    def _packed(self, what: str, model_id: str, shown: Iterable[Scenario]) -> list[tuple]:
        """Of the formats that are shown those that makers of repositories pack otherwise than whole, and how (`packings`), or of which a copy may
        hold more than most (`packing_spreads`)."""
        formats = {s.dtype_id for s in shown}
        return [(dtype_id, said) for dtype_id, said in self.held[what].get(model_id, ()) if dtype_id in formats]

    def _training_rows(self, context: int) -> list[Scenario]:
        rows = []
        for phase in self.trained:
            rows += self.book.rows([phase], **self.book.default(phase, context_tokens=context))
        return rows

    def render(self, number: int) -> str:
        book, model = self.book, self.book.models[number]
        context, length = self.opening(model)
        inference, training = self.shown(number)
        shown = inference + training
        known = any(book.is_known(number, s) for s in shown)
        organisation, _, name = model["model_id"].rpartition("/")
        bars = self._bars(number, inference) if known else []
        caption = f"{words.tokens(context)} tokens, one user" if context else ""
        asked = _recipe(book, training)
        tensors = self.held["tensors"].get(model["model_id"], ())
        container = containers.told(self.held["containers"].get(model["model_id"]), tensors, self.paths, known)
        gaps = self._gaps(model["model_id"], container)
        return self.page.render(
            model=model,
            root="../../../",
            path=self.paths[model["model_id"]],
            organisation=organisation or "(no organisation)",
            name=name,
            answer=self.headlines.answer(number) if known else ("", ""),
            made_of=self._made_of(number),
            container=container,
            passed=self.held["passes"].get(model["model_id"]) if known else None,
            gaps=htmlsafe_json_dumps(gaps) if gaps else "",
            cards=known
            and self.by_card.values(number, inference, context or self.wanted[0], bool(self.own_format(number))),
            smaller=known and (smaller := self.siblings.smaller(number)) and htmlsafe_json_dumps(smaller),
            bars=bars,
            used_run={part for bar in bars for part in bar["used"]},
            repositories=htmlsafe_json_dumps(self.commands.repositories(number)),
            commands=self.commands.of(
                number, context or self.wanted[0], gaps, self._kept(number)["unread"], container, self.told(number)
            )
            if known and inference
            else [],
            reason=self.headlines.reason(number),
            weights_alone=model["anatomy_grade"] != "unknown" and (model["parameter_count"] or 0) * 2,
            short_context=bool(model["max_context_tokens"] and model["max_context_tokens"] < self.wanted[0]),
            context=context or self.wanted[0],
            length=length or self.wanted[1],
            packings=self._packed("packings", model["model_id"], inference),
            packing_spreads=self._packed("packing_spreads", model["model_id"], inference),
            inference=known and self._group(number, inference, f"Inference, {caption}.", f"inference at {caption}"),
            training=known and training and self._group(number, training, f"Training, {asked}.", f"at {asked}"),
            engines=[self.engines[e] for e in sorted({s.engine_id for s in shown}) if e in self.engines]
            if known
            else [],
            base_path=self.paths.get(model["base_model_id"]),
            has_parts=bool(self.held["tensors"].get(model["model_id"]) or self.held["layers"].get(model["model_id"])),
            whole=self.headlines.of_pipeline(number),
            sound=self.held["sounds"].get(model["model_id"]),
            heard=self.headlines.of_sound(number),
            length_of=durations.in_words,
            files=self._files(model["model_id"]),
            pipeline=(pipeline := pipelines.told(self.held["pipelines"].get(model["model_id"]), self.headlines.cards)),
            whole_sizes=[pipelines.totals(p) for p in pipeline["known"]] if pipeline else [],
            placed=pipelines.verdicts(pipeline, book.common, self.support.in_pytorch(pipelines.DTYPE))
            if pipeline
            else [],
            reach=known and any(key[0] == "inference" for key in self.points(number)),
            far=known and training and any(key[0] != "inference" for key in self.points(number)),
            far_most=self.reach.training_end(number),
            recipe=recipe(book, training[0]) if training else "",
            relatives=self._relatives(number),
            page_url=f"{self.site_url}models/{self.paths[model['model_id']]}/" if self.site_url else "",
            shape=(shape := self.shape(number)) and shape.name,
            has_totals=self._has_totals(number),
            badge=f"{api.ROOT}/badges/{badges.memory(*self.badge(number))[0]}.svg",
            told=self.is_told(number),
            told_formats=self.told(number) and {s.dtype_id for s in inference},
            is_organised=self.sizes[self.paths[model["model_id"]].partition("/")[0]] >= paths.LISTED,
            gpus=book.common,
            ld=Markup(self.headlines.described(number)),
            site_url=self.site_url,
        )

    def _engines(self, number: int) -> dict[str, str]:
        """By format the engine that a model's answer speaks of."""
        least = self.headlines.answers.least(number, self.shown(number)[0])
        return {dtype: scenario.engine_id for dtype, (scenario, _where) in least.items()}

    def _converted(self, number: int) -> set[str]:
        """The formats beside its own that are told of a model which is published packed, and is no quantisation of another's."""
        return set() if self.own_format(number) else self.told(number) or set()

    def _bars(self, number: int, inference: list[Scenario]) -> list[dict]:
        """A bar for each format, of the engine that the answer speaks of."""
        chosen = [scenario for scenario, _where in self.headlines.answers.least(number, inference).values()]
        engines = {s: self.engines[s.engine_id]["name"] for s in chosen if not self.book.is_own_engine(s)}
        stored = self.book.models[number]["stored_format"]
        return bars_of(self.points(number), chosen, engines, stored, self.own_format(number), self.reach.levels)

    def points(self, number: int) -> dict[tuple, list]:
        return self.held["points"].get(self.book.models[number]["model_id"], {})

    def order(self, number: int) -> list[tuple[str, str, str]]:
        """What a page shows, by phase, format and engine."""
        return [(s.phase_id, s.dtype_id, s.engine_id) for shown in self.shown(number) for s in shown]

    @cached_property
    def short(self) -> dict[str, str]:
        return {g["gpu_id"]: g["short"] for g in self.book.gpus}

    def verdicts(self, number: int, gpus: list[dict]) -> list[tuple[str, Best]]:
        """By card what it does with a model."""
        found = self.bests.get(self.book.models[number]["model_id"])
        return [(g["gpu_id"], found[self.card_places[g["gpu_id"]]]) for g in gpus] if found else []

    @cached_property
    def card_places(self) -> dict[str, int]:
        return {g["gpu_id"]: place for place, g in enumerate(self.book.gpus)}

    @cached_property
    def bests(self) -> dict[str, list[Best]]:
        """By model what each card does with it, in the order of the cards; none of models without limits."""
        place = {m["model_id"]: number for number, m in enumerate(self.book.models)}
        own = {
            name: [
                self.book.models[number]["stored_format"],
                self.book.models[number]["max_context_tokens"],
                sorted(self._converted(number)),
                sorted(self.told(number) or ()),
            ]
            for name, number in place.items()
        }

        def make(names: list[str]) -> dict[str, list[Best] | None]:
            self.ask(names)
            return {name: self._cards_of(place[name]) for name in names}

        told: dict[int, list[Best]] = {}  # models of one content have one list
        found = {name: rows for name, rows in self.kept.by_content("bests", list(own), make, own).items() if rows}
        for rows in found.values():
            if id(rows) not in told:
                told[id(rows)] = [Best(*row) for row in rows]
        return {name: told[id(rows)] for name, rows in found.items()}

    def _cards_of(self, number: int) -> list[Best] | None:
        """None where no limit is known."""
        if not self.by_card.formats(number):
            return None
        context = self.opening(self.book.models[number])[0] or self.wanted[0]
        return self.by_card.all_best(number, self.book.gpus, self.shown(number)[0], context)

    def badge(self, number: int) -> tuple[str | None, bool]:
        """What the badge of memory says."""
        model = self.book.models[number]
        pipeline = self.held["pipelines"].get(model["model_id"])
        if pipeline:
            return pipelines.for_badge(pipeline, self.headlines.cards)
        context, _length = self.opening(model)
        known = any(self.book.is_known(number, s) for s in self.inference.get(context, []))
        return self.headlines.answers.badge(number, context) if known else None, known

    def _gaps(self, model_id: str, container: dict | None) -> dict[str, str]:
        """What commands are told so that the figures beside them hold: what they count of requests, and of what a model sees with no image; where
        they leave its tower out it is left out, too."""
        is_counted = self.held["seeing"].get(model_id)
        leaves_tower = (container and container["is_text_alone"]) or is_counted is False
        kept = self.held["kept"].get(model_id, {}).get("kept")
        has_windows = any(layer["window_tokens"] for layer in self.held["layers"].get(model_id, ()))
        told = (
            self.counted[has_windows] | ({} if is_counted is None else NO_IMAGES) | (TEXT_ALONE if leaves_tower else {})
        )
        return told | ({"kept": kept} if kept else {})

    def _kept(self, number: int) -> dict:
        return self.held["kept"].get(self.book.models[number]["model_id"], {"unread": ()})

    @cached_property
    def counted(self) -> list[dict[str, str]]:
        """Of models without windows, and of those with them."""
        counts = slices.counts(self.book)
        return [counted(*counts, has_windows) if counts else {} for has_windows in (False, True)]

    def is_told(self, number: int) -> bool:
        """Whether there is a number to tell of a model: a total, a pipeline's parts, or a shape that the calculator can ask."""
        name = self.book.models[number]["model_id"]
        return self._has_shape(name) or name in self.held["pipelines"] or self._has_totals(number)

    def _has_shape(self, name: str) -> bool:
        rows = self.held["formulas"]
        return name in rows.shaped if isinstance(rows, Own) else has_shape(rows.get(name))

    def _has_totals(self, number: int) -> bool:
        return any(self.book.is_known(number, s) for shown in self.shown(number) for s in shown)

    def shape(self, number: int) -> shapes.Shape | None:
        """What models with the same numbers share; None where there is nothing to share."""
        if self._shaped[0] != number:  # a page and its files ask in turn
            tables = self.held["formulas"].get(self.book.models[number]["model_id"])
            has_totals = self._has_totals(number)
            found = None
            if has_totals or has_shape(tables):
                points = reach.as_json(self.points(number), self.order(number))
                drawn, totals = (self.reach.plot(number), self.book.model_bytes(number)) if has_totals else ("", b"")
                found = shapes.of(tables, points, drawn, totals)
            self._shaped = number, found
        return self._shaped[1]

    def shown(self, number: int) -> tuple[list[Scenario], list[Scenario]]:
        """What a page opens with: inference and training."""
        context, length = self.opening(self.book.models[number])
        inference, told = self.inference.get(context, []), self.told(number)
        return [s for s in inference if told is None or s.dtype_id in told], self.training.get(length, [])

    def told(self, number: int) -> set[str] | None:
        """The formats of inference that are told of a model that is published packed; None where all are."""
        if number not in self._told:
            stored = self.book.models[number]["stored_format"]
            self._told[number] = None
            if stored not in GGUF_OF and is_packed(stored, self.bits):
                self._told[number] = told_of_packed(stored, self.bits, self.commands.repositories(number))
        return self._told[number]

    def opening(self, model: dict) -> tuple[int | None, int | None]:
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
        """What each scenario needs, and what of them is unknown: the script adds the verdict of each card."""
        names = self.phases if scenarios and scenarios[0].phase_id != "inference" else {}
        rows, left_out = [], defaultdict(list)
        for s in scenarios:
            label = names.get(s.phase_id, s.dtype_id)
            if self.book.is_known(number, s):
                gib = _kib_text(self.book.totals(number, self.book.index[s])[0])
                rows.append({"label": label, "dtype": s.dtype_id, "engine": s.engine_id, "gib": gib})
            else:
                left_out[self.book.reason(number, s)].append(f"{label} ({s.engine_id})")
        return {
            "caption": f"{caption} GiB on one card.",
            "caption_short": short,
            "rows": rows,
            "left_out": [(", ".join(names), why) for why, names in left_out.items()],
            "is_known": bool(rows),
        }

    def row(self, number: int, scenario: Scenario, name: str) -> dict:
        """A scenario by the common cards."""
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

    def own_format(self, number: int) -> tuple[str, ...]:
        """The formats of a repository that holds a quantisation of another's model; nothing for all others."""
        stored, leader = self.book.models[number]["stored_format"], self.book.models[self.leaders[number]]
        # (what is held as the original is, is a copy of it or its sibling)
        is_packed = stored is not None and stored not in WHOLE and stored != leader["stored_format"]
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
        is_few_bits = stored is not None and stored not in WHOLE
        is_held_so = leader != number and is_few_bits and stored == self.book.models[leader]["stored_format"]
        is_packed = (is_few_bits and not is_held_so) or (stored is None and bool(held))
        is_sibling = not is_same and is_held_so and not model["base_model_id"]  # (DeepSeek-V3, and V3-0324 after it)
        format_ = f" ({held})" if held else ""
        if is_packed:
            said = f"Quantisation{format_} of"
        elif is_same:
            said = "Copy of"
        else:
            said = "Sibling of" if is_sibling else "Made from"
        return {"said": said, "name": base, "path": self.paths.get(base), "only": bool(self.own_format(number))}

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


def _kib_text(kib: float) -> str:
    return "unknown" if kib == UNKNOWN_KIB else words.gib(kib * 1024)


def _grouped(rows: list[dict]) -> dict[str, list[dict]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["model_id"]].append(row)
    return groups


def _recipe(book: Book, training: list[Scenario]) -> str:
    if not training:
        return ""
    s = training[0]
    return f"{words.tokens(s.context_tokens)} tokens, micro-batch {s.sequences}, {recipe(book, s)}"
