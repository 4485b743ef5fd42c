"""The small files beside a model's page: its facts as JSON, and a badge for its README."""

from __future__ import annotations

import datetime
import json

from markupsafe import Markup

# Width of text at 11 px in the sans serif of most systems; `textLength` holds a reader's own font to it.
EM = 6.4


def as_json(model: dict, path: str, answer: tuple[str, str], tables: dict[str, list[dict]], limits: list[dict]) -> str:
    """What the page says, for machines. Nulls are left out of rows: absent is unknown or not applicable."""
    facts = {name: _plain(value) for name, value in model.items() if value is not None}
    rows = {
        name: [{k: _plain(v) for k, v in row.items() if v is not None and k != "model_id"} for row in part]
        for name, part in tables.items()
    }
    content = {
        "model": facts,
        "path": path,
        "answer": answer[0],
        "answer_scenarios": answer[1],
        "limits": limits,
        **rows,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def _plain(value):
    return value.isoformat() if isinstance(value, datetime.date) else value


def badge(where: str | None, known: bool) -> str:
    """`GPU memory | 8 GB in 4-bit`, as a picture that needs no other file."""
    left, right = "GPU memory", where or ("not on one card" if known else "unknown")
    widths = [round(len(t) * EM) + 14 for t in (left, right)]
    total = sum(widths)
    colour = "#0f4423" if where else "#625c52"
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
