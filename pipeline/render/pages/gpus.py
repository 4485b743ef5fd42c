"""One page per card: what it really gives, and what fits."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from markupsafe import Markup

from pipeline.book.commands import GGUF_OF
from pipeline.book.wishes import wishes
from pipeline.render import words
from pipeline.render.data import cards
from pipeline.render.data.book import BAND_UNIT, UNKNOWN_KIB, Book, Scenario
from pipeline.render.data.cpu_split import Split, Splits
from pipeline.render.data.rules import in_python
from pipeline.render.data.speeds import Speeds
from pipeline.render.data.window import Window
from pipeline.render.environment import environment
from pipeline.render.pages import reach
from pipeline.render.pages.models import ModelPages

LISTED = 30  # models by format; all that fit are in the card's file for programs, which the page reads
TASKS = 10
# Columns of "what fits", in order, where the tables have them and the card runs them: phase, format, and the engine where it is not the
# format's own. What runs on Apple's chips alone stands first, so that their pages begin with it.
COLUMNS = (
    ("inference", "bf16", "mlx-lm"),
    ("inference", "mlx-8bit", None),
    ("inference", "mlx-6bit", None),
    ("inference", "mlx-4bit", None),
    ("inference", "bf16", None),
    ("inference", "fp8", None),
    ("inference", "gguf-q8_0", None),
    ("inference", "awq-int4", None),
    ("inference", "gguf-q4_k_m", None),
    ("lora", "bf16", None),
    ("qlora", "nf4", None),
    ("full-finetune", "bf16", None),
)
FAR = (
    "mlx-4bit",
    "gguf-q4_k_m",
)  # the formats that answer and longest context are told in: the first that the card runs
WHOLE = "bf16"  # said beside it: what most models are published in


class GpuPages:
    def __init__(self, book: Book, pages: ModelPages, window: Window) -> None:
        self.book, self.pages = book, pages
        self.wish = window.wishes[0]
        self.popular = window.popular(self.wish)  # as the first screen has them
        self.page = environment(book).get_template("gpu.html")
        self.columns = [s for asked in COLUMNS if (s := self._scenario(*asked))]
        inference = book.rows(["inference"], **book.default("inference"))
        self.inference = sorted(inference, key=lambda s: s.engine_id != "mlx-lm")  # as the columns: Apple's own first
        self.listed = self._listed()
        self.entries = {i: pages.entry(book.models[i]) for i in range(len(book.models))}
        self.counts = book.published_counts(["inference"])
        self.sizes = [m["parameter_count"] or 0 for m in book.models]
        self.ranked = {s: self._ranked(s) for s in self.inference}
        self.by_task = self._by_task()
        self._stored: dict[tuple, Ranked] = {}
        self._runs_stored: dict[tuple[Scenario, str], frozenset[str | None]] = {}
        self._told: dict[tuple[Scenario, int], bool] = {}
        self.columns_totals = [(s, book.index[s]) for s in self.columns]
        self.fars = [s for dtype in FAR if (s := self._scenario("inference", dtype))]
        self.longest = {far: self._longest(far) for far in self.fars}
        listed = [book.models[i]["model_id"] for i in self.listed]
        self.splits = {far: Splits(book.folder, listed, far.dtype_id) for far in self.fars}
        self.speeds = {far: Speeds(book, listed, far) for far in self.fars}

    def _listed(self) -> list[int]:
        """The works that people chat with, the most downloaded first; what else is known comes after them, where there is room."""
        models, wish = self.book.models, wishes()[0]
        stands = self.book.works.leaders(self._known)
        known = [i for i in range(len(models)) if stands[i] == i and self._known(i)]
        return sorted(known, key=lambda i: not wish.means(models[i]))[:LISTED]

    def _scenario(self, phase: str, dtype: str, engine: str | None = None) -> Scenario | None:
        rows = self.book.rows([phase], dtype_id=dtype, **self.book.default(phase))
        return next((s for s in rows if engine in (None, s.engine_id)), None)

    def _runs(self, scenario: Scenario, gpu: dict) -> bool:
        return self.pages.support.refusal(scenario, scenario.dtype_id, gpu["gpu_id"]) is None

    def _shown(self, gpu: dict) -> list[tuple[Scenario, int]]:
        """The columns that a card runs, each with its place: what it does not run is told once, with the reason."""
        return [(s, place) for s, place in self.columns_totals if self._runs(s, gpu)]

    def _far(self, gpu: dict) -> Scenario | None:
        return next((far for far in self.fars if self._runs(far, gpu)), None)

    def _longest(self, far: Scenario) -> dict[str, dict[str, int]]:
        """Of the listed models the longest context of one sequence by card, in one format: the limits of `compatibility`."""
        # (FAR is among what model pages are `offered`: their limits are these)
        told, key = self.pages.held["longest"], (far.dtype_id, far.engine_id)
        places = {capacity: place for place, capacity in enumerate(reach.capacities(self.book))}
        cards = {g["gpu_id"]: places[g["capacity_bytes"]] for g in self.book.gpus}
        names = [self.book.models[i]["model_id"] for i in self.listed]
        self.pages.ask(names)
        known = {name: told[name][key] for name in names if key in told.get(name, {})}
        return {name: {gpu: longest[place] for gpu, place in cards.items()} for name, longest in known.items()}

    def _reach(self, model: int, gpu: dict, far: Scenario) -> Markup:
        """How far the card goes with a model, as a cell."""
        row = self.book.models[model]
        found = self.longest[far].get(row["model_id"], {}).get(gpu["gpu_id"])
        has_host = found == 0 and not in_python().is_computer(gpu)  # memory beside its own
        if has_host and (split := self.splits[far].best(row["model_id"], gpu["capacity_bytes"])):
            return _shared(split)
        return words.limit_cell(found, None, row["max_context_tokens"])

    def _speed(self, model: int, gpu: dict, far: Scenario) -> Markup:
        """What bounds its speed where the card holds it, as a cell."""
        name = self.book.models[model]["model_id"]
        is_held = (self.longest[far].get(name, {}).get(gpu["gpu_id"]) or 0) >= far.context_tokens
        most = self.speeds[far].most(name, gpu) if is_held else None
        return Markup('<td class="n">{}</td>').format("–" if most is None else f"≤ {words.rate(most)}")

    def _answer(self, gpu: dict) -> list[dict]:
        """What the card runs: in 4 bits, then as most models are published; how many, of how many, and the largest popular one by
        the rule of the first screen, or of all where none of these fits."""
        told = []
        whole = [s for s, _place in self._shown(gpu) if s.phase_id == "inference" and s.dtype_id == WHOLE]
        for scenario in [s for s in (self._far(gpu), *whole[:1]) if s]:
            ranked = self.ranked[scenario][0]
            fit, largest, _popular = ranked.at(gpu["capacity_bytes"] // 1024)
            held = {i for _need, i in ranked.rows[:fit]}
            known = next((i for i in self.popular if i in held), None)
            told.append(
                {
                    "format": self._name(scenario),
                    "fit": fit,
                    "known": len(ranked.rows),
                    "is_popular": known is not None,
                    "largest": None if largest is None else self.entries[largest if known is None else known],
                }
            )
        return told

    def _largest(self, gpu: dict) -> dict | None:
        """The largest popular model in any format of the first screen, and the best one that holds it: what that screen says of the card."""
        columns = [s for column in self.wish.columns if (s := self._scenario(*column)) and self._runs(s, gpu)]
        for i in self.popular:
            native = GGUF_OF.get(self.book.models[i]["stored_format"])
            own = native and self._scenario("inference", native)
            for scenario in [own] if own and own.engine_id == "llama.cpp" else columns:
                row = self.book.totals(i, self.book.index[scenario])
                if _least(row, 1, self.book.counts) <= gpu["capacity_bytes"] // 1024 and self._runs(scenario, gpu):
                    return {"entry": self.entries[i], "format": self._name(scenario)}
        return None

    def _known(self, model: int) -> bool:
        return any(self.book.is_known(model, s) for s in self.columns)

    def _ranked(self, scenario: Scenario) -> list[Ranked]:
        """For each GPU count the models by what they need: how many fit and which is the largest are then one bisection."""
        book, place = self.book, self.book.index[scenario]
        needed: dict[int, list[float]] = {}  # by row of the array, which models share
        for i in range(len(book.models)):
            if (row := book.row(i)) not in needed:
                totals = book.totals(i, place)
                is_known = min(totals[: len(book.counts)]) != UNKNOWN_KIB
                numbers = range(1, len(self.counts) + 1) if is_known else ()
                needed[row] = [_least(totals, n, book.counts) for n in numbers]
        rows = [(needed[book.row(i)], i) for i in range(len(book.models))]
        return [Ranked([(need[n], i) for need, i in rows if need], self.sizes) for n in range(len(self.counts))]

    def _by_task(self) -> list[tuple[str, list[tuple[Scenario, Ranked]]]]:
        """The tasks with most known models, each ranked on one card in a few formats."""
        models, rows = self.book.models, []
        shown = [s for s in self.columns if s.phase_id == "inference"]
        for scenario in shown:
            whole = self.ranked[scenario][0]
            parts: dict[str, list] = {}
            for need, i in whole.rows:
                parts.setdefault(models[i]["pipeline_tag"] or "no task given", []).append((need, i))
            rows.append((scenario, parts))
        number = Counter(task for _s, parts in rows for task, part in parts.items() for _row in part)
        tasks = [task for task, _n in number.most_common(TASKS)]
        return [(task, [(s, Ranked(parts.get(task, []), self.sizes)) for s, parts in rows]) for task in tasks]

    def _fit(self, gpu: dict, scenario: Scenario, place: int) -> tuple[int | None, int | None]:
        """How many models fit on so many cards, and the largest; None where that is not known of any."""
        ranked = self._that_run(gpu, scenario, place)
        if not ranked.rows or not self._is_told(scenario, place):
            return None, None
        fit, largest, _popular = ranked.at(gpu["capacity_bytes"] // 1024)
        return fit, largest

    def _is_told(self, scenario: Scenario, place: int) -> bool:
        """Whether the scenario is published on so many cards."""
        if (scenario, place) not in self._told:
            self._told[scenario, place] = min(self.book.column(self.book.index[scenario], place)) != UNKNOWN_KIB
        return self._told[scenario, place]

    def _that_run(self, gpu: dict, scenario: Scenario, place: int) -> Ranked:
        """The ranking on so many cards of the models that this card runs in this format."""
        support = self.pages.support
        if scenario.dtype_id != "stored":
            runs = support.refusal(scenario, scenario.dtype_id, gpu["gpu_id"]) is None
            return self.ranked[scenario][place] if runs else NONE
        runs = self._formats_run(scenario, gpu["gpu_id"])
        key = (scenario, place, runs)
        if key not in self._stored:
            rows = self.ranked[scenario][place].rows
            self._stored[key] = Ranked([row for row in rows if support.formats[row[1]] in runs], self.sizes)
        return self._stored[key]

    def _formats_run(self, scenario: Scenario, gpu_id: str) -> frozenset[str | None]:
        """The formats that models are published in and this card runs."""
        if (scenario, gpu_id) not in self._runs_stored:
            support = self.pages.support
            found = frozenset(f for f in set(support.formats) if support.refusal(scenario, f, gpu_id) is None)
            self._runs_stored[scenario, gpu_id] = found
        return self._runs_stored[scenario, gpu_id]

    def render(self, gpu: dict) -> str:
        first = self.inference[0] if self.inference else None
        at = f"at {words.tokens(first.context_tokens)} tokens, one user" if first else ""
        shown, far = self._shown(gpu), self._far(gpu)
        training = next((s for s, _place in shown if s.phase_id != "inference"), None)
        then = f"; training at {words.tokens(training.context_tokens)} tokens, micro-batch 1" if training else ""
        return self.page.render(
            gpu=gpu,
            root="../../",
            steps=_steps(gpu),
            answer=self._answer(gpu),
            largest=self._largest(gpu),
            windows=self.under_windows(gpu),
            windows_answer=self._answer(self.under_windows(gpu) or gpu),
            has_desktop=cards.under(self.book, "desktop", gpu) is None,
            rows=[self._row(i, gpu, shown, far) for i in self.listed],
            columns=[self._head(s) for s, _place in shown],
            far=far and self._head(far),
            far_at=far and words.tokens(far.context_tokens),
            caption=f"Inference {at}{then}",
            caption_tasks=at,
            asked=f"at {words.tokens(first.context_tokens)} tokens for one user" if first else "",
            known=max((len(ranked[0].rows) for ranked in self.ranked.values()), default=0),
            counts=self.counts,
            programs=cards.programs_of(self.book, "llama.cpp"),
            refused=self._refused(gpu),
            formats=[self._format(s, gpu) for s in self.inference if not self._word(s, gpu)],
            tasks=self._tasks(gpu),
            task_formats=[self.book.formats[s] for s, _place in shown if s.phase_id == "inference"],
        )

    def _tasks(self, gpu: dict) -> list[dict]:
        rows, capacity = [], gpu["capacity_bytes"] // 1024
        for task, formats in self.by_task:
            cells = []
            for scenario, ranked in formats:
                if not self._runs(scenario, gpu):
                    continue
                fit, largest, popular = ranked.at(capacity)
                cells.append(
                    {
                        "fit": fit,
                        "largest": None if largest is None else self.entries[largest],
                        "popular": None if popular is None else self.entries[popular],
                    }
                )
            rows.append({"task": task, "cells": cells})
        return rows

    def under_windows(self, gpu: dict) -> dict | None:
        """The card as Windows leaves it; None where it leaves all. How much that is is a rough share of what the card is sold with."""
        left = cards.under(self.book, "windows", gpu)
        is_less = left is not None and left < gpu["capacity_bytes"]
        return gpu | {"capacity_bytes": int(left), "capacity_basis": "imputed"} if is_less else None

    def figures(self, gpu: dict) -> list[tuple[str, str, str]]:
        """A card in rows of (group, what, text), the same rows for every card: what `compare` lays side by side."""
        nominal, gives = gpu["memory_gib_nominal"], gpu["capacity_bytes"] / words.GIB
        number = lambda name: f"{gpu[name]:,.0f}" if gpu[name] else "–"  # noqa: E731
        rows = [
            ("The card", "Sold as, GB", f"{nominal:g}"),
            ("The card", "Usable, GiB", f"{gives:,.1f}"),
            ("The card", "Of what it is sold as", f"{100 * gives / nominal:.1f} %" if nominal else "–"),
            ("The card", "Basis", gpu["capacity_basis"]),
            ("The card", "Segment", gpu["segment"]),
            ("The card", "Architecture", words.shown(gpu["architecture"] or "–")),
            ("The card", "Bandwidth, GB/s", number("memory_bandwidth_gb_s")),
            ("The card", "bf16, dense TFLOPS", number("bf16_tflops_dense")),
            ("The card", "fp8, dense TFLOPS", number("fp8_tflops_dense")),
            ("The card", "NVLink, GB/s", number("nvlink_gb_s")),
            ("The card", "Power, W", number("tdp_w")),
            ("The card", "Released", words.shown(gpu["release_date"] or "–")),
        ]
        for scenario in self.inference:
            name = self.book.formats[scenario]
            name = "as published" if name == "stored" else words.format_name(name)
            for place, n in enumerate(self.counts):
                fit, largest = self._fit(gpu, scenario, place)
                size = "" if largest is None or not self.sizes[largest] else f", to {words.count(self.sizes[largest])}"
                no = self._word(scenario, gpu)
                group = f"Models that fit on {n}" if n > 1 else "Models that fit on one"
                rows.append((group, name, no or ("–" if fit is None else f"{fit:,}{size}")))
        order = {group: i for i, group in enumerate(dict.fromkeys(row[0] for row in rows))}
        return sorted(rows, key=lambda row: order[row[0]])

    def _head(self, scenario: Scenario) -> dict:
        phase = "" if scenario.phase_id == "inference" else f"{self.pages.phases.get(scenario.phase_id)} "
        return {"label": phase + self._name(scenario), "engine": self._engine(scenario)}

    def _name(self, scenario: Scenario) -> str:
        """A format as people say it: MLX has no shorter names than those of the book."""
        said = scenario.engine_id == "mlx-lm" and self.pages.dtypes.get(scenario.dtype_id)
        return said or words.format_name(scenario.dtype_id)

    def _engine(self, scenario: Scenario) -> str:
        return self.pages.engines.get(scenario.engine_id, {}).get("name", scenario.engine_id)

    def _word(self, scenario: Scenario, gpu: dict) -> str:
        """What stands in place of a number where the card does not run the format; nothing where it does."""
        no = self.pages.support.refusal(scenario, scenario.dtype_id, gpu["gpu_id"])
        return (
            "" if no is None or scenario.dtype_id == "stored" else "won’t run" if no.is_certain else "not known to run"
        )

    def _row(self, model: int, gpu: dict, shown: list[tuple[Scenario, int]], far: Scenario | None) -> dict:
        book, support, capacity = self.book, self.pages.support, gpu["capacity_bytes"] // 1024
        cells = []
        for scenario, place in shown:
            reason = "" if book.is_known(model, scenario) else book.reason(model, scenario)
            refusal = support.refusal(scenario, support.format(scenario, model), gpu["gpu_id"])
            cell = words.verdict_cell(book.totals(model, place), book.counts, capacity, reason, refusal)
            # the head of the column says why
            cells.append(words.refused_cell(refusal.is_certain, "") if refusal and "v-unknown" in cell else cell)
        if far:
            cells += [self._reach(model, gpu, far), self._speed(model, gpu, far)]
        return self.entries[model] | {"cells": Markup("".join(cells))}

    def _refused(self, gpu: dict) -> list[tuple[str, str, list[str]]]:
        """Formats that do not run on the card, or of which nobody says that they do: certainty, reason, and which formats."""
        found: dict[tuple[bool, str], list[str]] = {}
        for s in self.inference + [s for s in self.columns if s.phase_id != "inference"]:
            no = self.pages.support.refusal(s, s.dtype_id, gpu["gpu_id"]) if s.dtype_id != "stored" else None
            if no:
                phase = "" if s.phase_id == "inference" else f"{self.pages.phases.get(s.phase_id, s.phase_id)} in "
                found.setdefault((no.is_certain, no.why), []).append(f"{phase}{s.dtype_id} ({s.engine_id})")
        order = sorted(found.items(), key=lambda item: not item[0][0])
        return [("does not run" if certain else "not known to run", why, names) for (certain, why), names in order]

    def _format(self, scenario: Scenario, gpu: dict) -> dict:
        found = [self._fit(gpu, scenario, place) for place in range(len(self.counts))]
        return {
            "label": self.book.formats[scenario],
            "cells": [
                {"fit": fit, "largest": None if largest is None else self.entries[largest]} for fit, largest in found
            ],
        }


class Ranked:
    """Models by what they need, with the largest and the most downloaded of every beginning of that list."""

    def __init__(self, rows: list[tuple[float, int]], sizes: Sequence[int]) -> None:
        self.rows = sorted(rows)

        def larger(one: int, other: int) -> int:
            """Of as large ones the more downloaded."""
            return other if (sizes[other], -other) > (sizes[one], -one) else one

        places = [i for _need, i in self.rows]
        self.largest = list(accumulate(places, larger))
        self.popular = list(accumulate(places, min))  # models are by downloads

    def at(self, capacity: int) -> tuple[int, int | None, int | None]:
        """How many fit, the largest of them, and the most downloaded."""
        fit = bisect_right(self.rows, (capacity, float("inf")))
        return (fit, self.largest[fit - 1], self.popular[fit - 1]) if fit else (0, None, None)


NONE = Ranked([], ())


def _least(row, n: int, counts: list[int]) -> float:
    """The least capacity (KiB) that one of the first `n` counts fits into with its band."""
    bands = row[len(counts) : len(counts) + n]
    known = ((kib, band) for kib, band in zip(row, bands, strict=False) if kib != UNKNOWN_KIB)
    return min((kib * (BAND_UNIT + band) / BAND_UNIT for kib, band in known), default=UNKNOWN_KIB)


def _shared(split: Split) -> Markup:
    """What of a model goes to the card, and the computer's memory that the rest takes, as a cell."""
    told = (
        f"all but {split.cpu_expert_layers} layers’ experts"
        if split.cpu_expert_layers
        else f"{split.gpu_layers} of {split.layer_count} layers"
    )
    return Markup('<td class="v-multi-gpu" title="llama.cpp {}">{}<br><small>+ {} GiB of RAM</small></td>').format(
        split.flags, told, words.gib(split.host_bytes)
    )


def _lost(gib: float) -> str:
    return f"−{gib:,.2f}" if gib >= 0.005 else f"+{-gib:,.2f}" if gib <= -0.005 else "0"


def _steps(gpu: dict) -> list[dict]:
    """From what it is sold as to what a program gets, each with its reason."""
    nominal = gpu["memory_gib_nominal"]
    unified = gpu["segment"] == "unified"
    reported = gpu["memory_mib_reported"] and gpu["memory_mib_reported"] / 1024
    cuda = gpu["memory_mib_cuda"] and gpu["memory_mib_cuda"] / 1024
    why_reported = (
        "What the operating system lets the GPU use of the shared memory"
        if unified
        else "What the driver reports: firmware and error correction keep the rest"
    )
    steps = [
        ("Sold as", nominal, "The data sheet's GB, which is GiB of memory chips"),
        ("Reported", reported, why_reported),
        ("Runtime total", cuda, "What the runtime calls its total, after the driver's own reserve"),
        (
            "One program",
            gpu["capacity_bytes"] / words.GIB,
            "What is left after the process's own context: the capacity",
        ),
    ]
    lost, before = {}, None
    for name, value, _why in steps:
        lost[name] = "" if value is None or before is None else _lost(before - value)
        before = before if value is None else value
    return [
        {
            "lost": lost[name],
            "name": name,
            "text": "not read" if value is None else f"{value:,.2f}",
            "share": value and value / max(nominal, 1e-9),
            "why": why,
        }
        for name, value, why in steps
    ]
