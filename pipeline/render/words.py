"""Numbers, names and verdicts in words: the one place where a byte count becomes text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from pipeline.render.data.book import BAND_UNIT, UNKNOWN_KIB
from pipeline.render.data.rules import in_python

GIB = 1024**3
# What checkpointing does, as people say it; the pages' scripts have it from data/scenarios.json.
KEPT = {
    "none": "all activations kept",
    "selective": "some activations recomputed",
    "full": "all activations recomputed",
}
# What of a name in a path is escaped besides: a dot or a line at its beginning (hidden, or left out by some hosts), a dot at its end
# (lost on Windows), the dot of a name that is a page's (`index.html` is a file of ours), the first letter of a Windows device.
_MISTAKEN = re.compile(
    r"^[._]|\.$|\.(?=html?$)|^[acnlp](?=(?:(?<=c)on|(?<=p)rn|(?<=a)ux|(?<=n)ul|(?<=c)om[0-9]|(?<=l)pt[0-9])(?:\.|$))",
    re.IGNORECASE,
)


def gib(number: float | None, digits: int | None = None) -> str:
    """Bytes as GiB, three figures or so. Unknown stays a word."""
    if number is None:
        return "unknown"
    value = number / GIB
    if digits is None:
        digits = 0 if value >= 100 else 1 if value >= 1 else 2 if value >= 0.095 else 3
    return f"{value:,.{digits}f}"


def rate(number: float) -> str:
    """Tokens a second, as many figures as mean something: as almanac.js has it."""
    return f"{number:,.0f}" if number >= 10 else f"{number:#.2g}".rstrip(".")


def count(number: int | float | None) -> str:
    """A count for people: 7.2B, 640M, 12k."""
    if number is None:
        return "unknown"
    for limit, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if float(f"{number:.3g}") >= limit:  # 999.9M is 1B
            value = number / limit
            return f"{value:.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"
    return f"{number:g}"


def millions(size: int | None) -> float | int | None:
    """In millions, as the browser is told: four figures, which is more than it shows, or as many as keep what it shows (109.48 as 109.5 would be shown as 110)."""
    exact = size and size / 1e6
    near = (float(f"{exact:.{figures}g}") for figures in range(4, 8)) if exact else ()
    value = next((v for v in near if count(v * 1e6) == count(size)), exact)
    return int(value) if value and value >= 1000 and value == int(value) else value


def percent(share: float | None, is_signed: bool = False) -> str:
    """A share to a tenth of a per cent; nought has no sign, and unknown is a dash."""
    if share is None:
        return "–"
    value = round(100 * share, 1) or 0.0
    return f"{value:{'+' if is_signed and value else ''}.1f} %".replace("-", "−")


def tokens(number: int) -> str:
    """A context length as people say it: 8k, 128k."""
    return f"{number // 1024}k" if number >= 1024 and number % 1024 == 0 else f"{number:,}"


def shown(text: str) -> str:
    """Text from outside with its control and direction characters made visible, so that it cannot rearrange the page."""
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in text)


def slug(identifier: str) -> str:
    """A path for an id: what the Hub allows stays as it is, every other byte becomes ~XX, and nothing climbs out.

    So does one character of a name that some host or system takes for something else (`_MISTAKEN`). Two ids never have one path.
    """

    def segment(part: str) -> str:
        safe = re.sub(rb"[^A-Za-z0-9._-]", lambda m: b"~%02X" % m[0][0], part.encode("utf-8", "surrogatepass")).decode()
        return _MISTAKEN.sub(lambda m: f"~{ord(m[0]):02X}", safe) or "~"

    organisation, slash, name = identifier.rpartition("/")
    # one of no name is not the same as none
    folder = "~2F" if slash and not organisation else "~2F".join(map(segment, organisation.split("/")))
    return f"{folder}/{segment(name)}"


def sql_text(text: str) -> str:
    """A SQL string literal; control and direction characters by their number, so that the text cannot be rearranged."""
    parts = re.split(r"(.)", text, flags=re.S) if shown(text) != text else [text]
    quoted = [f"chr({ord(p)})" if shown(p) != p else "'" + p.replace("'", "''") + "'" for p in parts if p]
    return " || ".join(quoted) or "''"


def either(things: Sequence) -> str:
    """2, 4 or 8."""
    *first, last = [str(thing) for thing in things] or [""]
    return f"{', '.join(first)} or {last}" if first else last


def judge(totals, counts: list[int], capacity_kib: int) -> tuple[str | None, int | None, int | None]:
    """Verdict, fewest GPUs, and KiB on each of them, by tables/sql/capacity/verdict.sql. `totals` is a row of the book's array: one per
    count, then the band of each."""
    return _judged(tuple(totals), tuple(counts), capacity_kib, "chosen")


def several(totals, counts: list[int], capacity_kib: int) -> tuple[str | None, int | None, int | None]:
    """The same where one card is not enough to whoever asks: `multi-gpu` of the fewest that give the error too, else `tight` or `no`."""
    return _judged(tuple(totals), tuple(counts), capacity_kib, "several")


@lru_cache(maxsize=65536)  # models of the same shape have the same totals
def _judged(totals: tuple, counts: tuple, capacity_kib: int, rule: str) -> tuple[str | None, int | None, int | None]:
    rules = in_python()
    rows = [
        {
            "gpu_count": gpus,
            "total": kib,
            "need": rules.needed(kib, band / BAND_UNIT),
        }
        for gpus, kib, band in zip(counts, totals, totals[len(counts) :], strict=False)
        if kib != UNKNOWN_KIB
    ]
    chosen = getattr(rules, rule)(rows, capacity_kib)
    verdict = rules.verdict_of(rows or None, chosen, capacity_kib)
    return (verdict, None, None) if chosen is None else (verdict, chosen["gpu_count"], chosen["total"])


@lru_cache(maxsize=4096)
def cell(verdict: str, gpus: int | None, percent: int | None) -> Markup:
    """A verdict as a table cell: the word, the number of cards, and how full each gets."""
    if verdict == "no":
        return Markup('<td class="v v-no">no</td>')
    word = verdict if gpus == 1 else f"{gpus} × tight" if verdict == "tight" else f"{gpus} ×"
    return Markup(f'<td class="v v-{verdict}">{escape(word)} <small>{percent}&nbsp;%</small></td>')


def marked(text: str) -> Markup:
    """Names of columns, which tables/schema writes between backticks, as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one has no partner
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


# as almanac.js has it
UNREAD = Markup(
    ' title="Its config here does not say how many tokens it was made to read: longer ones fit, and may make no sense"'
)


def reached(context: int, whole: float | None, last: int | None, text: str) -> str:
    """How far it goes: `all` where that is all that the model reads, `≥` where nobody looked further (`last`), `?` where its config does not say how far it reads."""
    if whole and context >= whole:
        return f"all {text}"
    return f"{'≥ ' if last and context >= last else ''}{text}{'' if whole else '?'}"


@lru_cache(maxsize=65536)
def limit_cell(context: int | None, sequences: int | None, whole: float | None, ceiling: int | None = None) -> Markup:
    """How far a card goes: the longest context of one sequence, and how many sequences of a usual length.

    `ceiling` is the longest context that was looked at: who reaches it may go further.
    """
    if context is None:
        return Markup('<td class="v-unknown">–</td>')
    if not context:
        return Markup("<td>–</td>")
    text = reached(context, whole, ceiling, rounded_tokens(context))
    users = "" if not sequences else f"<small>{count(sequences) if sequences > 9999 else sequences} ×</small>"
    return Markup(f"<td{'' if whole else UNREAD}>{text}{users}</td>")


def format_name(dtype: str, stored: str | None = None) -> str:
    """A format as people say it: Q4_K_M, and what "as published" is."""
    if dtype == "stored" and stored:
        return f"as published, {stored}"
    return dtype[5:].upper() if dtype.startswith("gguf-") else dtype


def rounded_tokens(number: int) -> str:
    """A context length rounded down to what people say: 37k, never more than there is."""
    return tokens(number) if number < 4096 else f"{number // 1024}k" if number < 1024**2 else f"{number / 1024**2:.3g}M"


@lru_cache(maxsize=256)
def refused_cell(is_certain: bool, why: str) -> Markup:
    """A card that does not run the scenario, or of which nobody says that it does."""
    word = "won’t run" if is_certain else "unknown"
    title = Markup(' title="{}"').format(shown(why)) if why else ""
    return Markup('<td class="v v-unknown"{}>{}</td>').format(title, word)


def verdict_cell(totals, counts: list[int], capacity_kib: int, reason: str = "", refusal=None) -> Markup:
    verdict, gpus, kib = judge(totals, counts, capacity_kib)
    if refusal is not None and (verdict is not None or refusal.is_certain):  # what never runs needs no total
        return refused_cell(*refusal)
    if verdict is None:
        return Markup('<td class="v v-unknown" title="unknown: {}">unknown</td>').format(shown(reason))
    return cell(verdict, gpus, None if gpus is None else math.ceil(100 * kib / capacity_kib))


def cells(numbers: Iterable[str]) -> Markup:
    """Cells of numbers as this module words them, in one piece: a page has hundreds, and a template escapes one after the other."""
    return Markup("".join([f'<td class="n">{text}</td>' for text in numbers]))


def exact(number: int) -> str:
    """Every digit of a byte count."""
    return f"{number:,}"


@lru_cache(maxsize=4096)
def exact_cell(number: int | None) -> Markup:
    return Markup('<td class="n x">unknown</td>' if number is None else f'<td class="n x">{number:,}</td>')
