"""Badges for READMEs: pictures named by what they say, so that a few serve all models, and the same as endpoints of shields.io.

A picture under such a name says the same for ever. A badge that follows the releases reads the model's own file (`badges` in
data/api.py); the page of programs says how.
"""

from __future__ import annotations

from markupsafe import Markup

from pipeline.render import words

# Width of text at 11 px in the sans serif of most systems; `textLength` holds a reader's own font to it.
EM = 6.4
GREEN, GREY = "#0f4423", "#625c52"
MEMORY = "GPU memory"
# What a card does with a model, by its verdict; the number of cards stands for {n}.
SAID = {
    "fits": "fits",
    "shorter": "fits short contexts",
    "multi-gpu": "needs {n} cards",
    "tight": "barely fits",
    "no": "does not fit",
    "unknown": "not known to run",
}


def memory(where: str | None, known: bool) -> tuple[str, str]:
    """`GPU memory | 8 GB in 4-bit`: the badge's name and drawing."""
    right = where or ("not on one card" if known else "unknown")
    return f"memory/{_slug(right)}", drawn(MEMORY, right, bool(where))


def of_card(name: str, gpu_id: str, best) -> dict[str, str]:
    """`RTX 4090 | fits`: what one card does with a model, by the badge's name."""
    said = _said(best)
    return {f"{words.slug(gpu_id).partition('/')[2]}/{_slug(said)}": drawn(name, said, best.verdict == "fits")}


def endpoints(counts: list[int]) -> dict[str, dict]:
    """What each verdict is as an endpoint of shields.io, by name; the label, which names model and card, is the reader's to give."""
    found = {}
    for verdict, said in SAID.items():
        for n in counts if verdict == "multi-gpu" else (1,):
            text = said.format(n=n)
            colour = (GREEN if verdict == "fits" else GREY).removeprefix("#")
            found[_slug(text)] = {"schemaVersion": 1, "label": "this card", "message": text, "color": colour}
    return found


def told(best, stored: str | None) -> str:
    """The verdict of a card in a few words, with the format and how far it goes."""
    if best.verdict in ("fits", "shorter"):
        return f"{_said(best)}: {words.format_name(best.dtype_id, stored)}, {words.rounded_tokens(best.max_context_tokens)} tokens"
    return _said(best)


def _said(best) -> str:
    return SAID[best.verdict].format(n=best.gpu_count)


def _slug(text: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def drawn(left: str, right: str, is_good: bool) -> str:
    """A picture that needs no other file."""
    widths = [round(len(t) * EM) + 14 for t in (left, right)]
    total = sum(widths)
    colour = GREEN if is_good else GREY
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="20" role="img" aria-label="{label}"><title>{label}</title>'
        '<rect width="{total}" height="20" rx="3" fill="#3b3832"/><path fill="{colour}" d="M{w0} 0h{cut}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{w0}z"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        '<text x="{x0}" y="14" textLength="{t0}">{left}</text><text x="{x1}" y="14" textLength="{t1}">{right}</text></g></svg>\n'
    ).format(
        total=total,
        label=f"{left}: {right}",
        colour=colour,
        w0=widths[0],
        cut=widths[1] - 3,
        x0=widths[0] / 2,
        x1=widths[0] + widths[1] / 2,
        t0=widths[0] - 12,
        t1=widths[1] - 12,
        left=left,
        right=right,
    )
