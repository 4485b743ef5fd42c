"""The sentence a model page opens with: the smallest common card for each thing that people do with a model."""

from __future__ import annotations

from pipeline.book.commands import GGUF_OF
from pipeline.render.data.book import UNKNOWN_KIB, Book, Scenario
from pipeline.render.words import KEPT, judge, tokens

# What the sentence speaks of: a phase, the formats in the order of preference, how it is named.
ASKED = (
    ("inference", ("gguf-q4_k_m", "awq-int4", "nf4"), "in 4-bit"),
    ("inference", ("bf16", "fp16"), "in bf16"),
    ("lora", ("bf16", "fp16"), "LoRA"),
    ("full-finetune", ("bf16", "fp16"), "full fine-tuning"),
)
FOUR_BIT = ASKED[0][1] + ("gptq-int4", "mxfp4", "nvfp4")
WHOLE = ("fp32", "bf16", "fp16")
FULL = ("inference", ("fp32",), "in fp32")  # of what is known in no other format
# The largest card that is counted as one, in nominal GiB; what needs more is told in cards of this size.
SINGLE_GIB = 80
BARELY = ", barely"


def asked(book: Book, model: int, context: int | None) -> tuple:
    """ASKED for a model: what is published in fewer bits runs as it is, and is told first."""
    stored = book.models[model]["stored_format"]
    rows = book.rows(["inference"], **book.default("inference", context_tokens=context))
    if stored is None or stored in WHOLE or not _first(book, model, rows, ("stored",)):
        return ASKED
    return (
        ("inference", (GGUF_OF.get(stored, "stored"), "stored"), f"as published ({stored})"),
        *ASKED[stored in FOUR_BIT :],
    )


def ladder(book: Book) -> list[tuple[int, int]]:
    """Nominal GiB and the smallest capacity (KiB) among the common cards of that size, smallest first."""
    sizes: dict[int, int] = {}
    for gpu in book.common:
        if gpu["segment"] != "unified" and gpu["vendor"] == "nvidia":
            nominal = round(gpu["memory_gib_nominal"])
            sizes[nominal] = min(sizes.get(nominal, gpu["capacity_bytes"] // 1024), gpu["capacity_bytes"] // 1024)
    return sorted(sizes.items())


def smallest(totals, counts: list[int], cards: list[tuple[int, int]]) -> str | None:
    """The least hardware that a scenario runs on, in words; None where it does not run."""
    for nominal, capacity in cards:
        verdict, gpus, _kib = judge(totals, counts, capacity)
        if nominal <= SINGLE_GIB and verdict == "fits":
            return f"one {nominal} GB card"
    largest = max((c for c in cards if c[0] <= SINGLE_GIB), default=cards[-1])
    barely = None
    for nominal, capacity in [largest, *(c for c in cards if c[0] > SINGLE_GIB and c != largest)]:
        verdict, gpus, _kib = judge(totals, counts, capacity)
        if gpus == 1:
            return f"one {nominal} GB card" + (BARELY if verdict == "tight" else "")
        if verdict == "multi-gpu":
            return f"{gpus} × {nominal} GB"
        if verdict == "tight":
            barely = barely or f"{gpus} × {nominal} GB{BARELY}"
    return barely


def smallest_for_badge(book: Book, model: int, context: int | None) -> str | None:
    """`8 GB in 4-bit`: the smallest single card in the smallest usual format that the model is known in."""
    cards = [c for c in ladder(book) if c[0] <= SINGLE_GIB]
    for phase, dtypes, name in (a for a in asked(book, model, context) if a[0] == "inference"):
        scenario = _first(book, model, book.rows([phase], **book.default(phase, context_tokens=context)), dtypes)
        if scenario:
            totals = book.totals(model, book.index[scenario])
            where = next((n for n, capacity in cards if judge(totals, book.counts, capacity)[0] == "fits"), None)
            return where and f"{where} GB {name}"
    return None


def answer(book: Book, model: int, context: int | None, length: int | None, given: str = "") -> tuple[str, str]:
    """The answer, and what exactly it is the answer to; both empty where nothing is known. `given`: an input of one size that is no
    number of tokens."""
    cards = ladder(book)
    facts: list[tuple] = []
    for phase, dtypes, name in (*asked(book, model, context), FULL):
        if (phase, dtypes, name) == FULL and facts:
            break
        wanted = book.default(phase, context_tokens=context if phase == "inference" else length)
        known = _known(book, model, book.rows([phase], **wanted), dtypes)
        if known and cards:
            places = [smallest(book.totals(model, book.index[s]), book.counts, cards) for s in known]
            # where a format does not fit on its own engine's GPUs, another engine may share it among more
            scenario, where = min(zip(known, places, strict=True), key=lambda found: _doubt(found[1]))
            facts.append((phase, name, where, scenario))
    if not facts:
        return "", ""
    nominal = cards[-1][0]
    parts = []
    for phase, name, where, scenario in facts:
        most = f"{_most(book.totals(model, book.index[scenario]), book.counts)} × {nominal} GB"
        at = (
            (f" for {given}" if given else f" at {tokens(scenario.context_tokens)} tokens")
            if not parts and phase == "inference"
            else ""
        )
        if not parts and phase == "inference":
            parts.append(f"Runs on {where} {name}{at}" if where else f"Does not run on {most} {name}{at}")
        elif phase == "inference":
            parts.append(f"{name[3:]} needs {where}" if where else f"{name[3:]} does not fit on {most}")
        else:
            parts.append(f"{name} {'needs ' + where if where else f'needs more than {most}'}")
    return "; ".join(parts) + ".", "; ".join(
        _exactly(book, name, scenario) for _phase, name, _where, scenario in facts
    ) + "."


def _exactly(book: Book, name: str, s: Scenario) -> str:
    """The scenario that a part of the sentence speaks of."""
    what = f"{name.removeprefix('in ')}: {s.dtype_id} on {s.engine_id}, {tokens(s.context_tokens)} tokens"
    if s.phase_id == "inference":
        return f"{what}, {s.sequences} sequence"
    return f"{what}, micro-batch {s.sequences}, {recipe(book, s)}"


def recipe(book: Book, s: Scenario) -> str:
    """How a training is done, in words: its optimizer, and what becomes of the activations."""
    names = {o["optimizer_id"]: o["name"] for o in book["optimizer"]}
    return f"{names.get(s.optimizer_id, s.optimizer_id)}, {KEPT.get(s.checkpointing, s.checkpointing)}"


def _doubt(where: str | None) -> int:
    return 2 if where is None else int(where.endswith(BARELY))


def _most(totals, counts: list[int]) -> int:
    """The most GPUs that a total is known for."""
    return max(gpus for gpus, kib in zip(counts, totals, strict=False) if kib != UNKNOWN_KIB)


def _known(book: Book, model: int, rows: list[Scenario], dtypes: tuple[str, ...]) -> list[Scenario]:
    """The wanted formats whose total is known, most wanted first; a dtype's own engine comes before others."""
    return [s for d in dtypes for s in rows if s.dtype_id == d and book.is_known(model, s)]


def _first(book: Book, model: int, rows: list[Scenario], dtypes: tuple[str, ...]) -> Scenario | None:
    return next(iter(_known(book, model, rows, dtypes)), None)
