"""What a repository is, beside its model: a pipeline, a quantisation of another's work, an adapter, files of several models."""

from __future__ import annotations

from typing import Any

from pipeline.base.bounds import visible
from pipeline.book.commands import GGUF_OF

from .almanac import Almanac

FILES = 6  # that are told of a repository of single files
PARTS = {"whole": "", "vae": "autoencoder", "controlnet": "ControlNet"}  # in words
ADDED = {"adapter": "an adapter", "controlnet": "a ControlNet"}  # what is loaded beside a whole model


def is_pipeline(almanac: Almanac, model_id: str) -> bool:
    return almanac.value("SELECT count(*) > 0 FROM component WHERE model_id = $id", {"id": model_id})


def is_packed_copy(almanac: Almanac, row: dict[str, Any]) -> bool:
    """Whether the files are a quantisation of somebody else's work: who asks for it wants no other format."""
    query = """
        SELECT count(*) > 0 FROM work JOIN dtype ON dtype.dtype_id = $stored AND dtype.bits_per_weight < 16
        WHERE work.model_id = $id AND work.lead_model_id <> $id
    """
    stored = row["stored_format"]
    # (what llama.cpp holds in the same values is told beside it)
    return stored not in (None, *GGUF_OF) and almanac.value(query, {"id": row["model_id"], "stored": stored})


def known_beside(almanac: Almanac, bases: str | None) -> str:
    """The model that an adapter, a draft or another copy was made for, where that is known: it can be asked."""
    for base in (bases or "").split(","):
        known = almanac.rows("FROM model WHERE model_id = known_model($base)", {"base": base.strip()})
        if known and (known[0]["anatomy_grade"] != "unknown" or is_pipeline(almanac, known[0]["model_id"])):
            return f". What it was made for or from is known: vram-almanac fits {visible(known[0]['model_id'])}"
    return ""


def known_as_draft(almanac: Almanac, model_id: str) -> str:
    """Of a head that drafts for one model: how it is asked."""
    if almanac.schema_of("draft_head") is None:
        return ""
    rows = almanac.rows("SELECT of_model_id FROM draft_head WHERE model_id = $id", {"id": model_id})
    if not rows:
        return ""
    of = visible(rows[0]["of_model_id"])
    return f". It is a head that drafts for {of}: vram-almanac fits {of} --draft {visible(model_id)}"


def known_parts(almanac: Almanac, model_id: str) -> str:
    """What is known of a pipeline that is not known as a whole: what its parts weigh, the largest first."""
    rows = almanac.rows(
        "FROM pipeline_stages($id) WHERE weights_bytes > 0 ORDER BY weights_bytes DESC, pipeline_part", {"id": model_id}
    )
    if not rows:
        return ""
    named = [(PARTS.get(row["pipeline_part"], row["pipeline_part"].replace("_", " ")), row) for row in rows]
    told = [f"{visible(part)} {row['weights_bytes'] / 2**30:.1f} GiB" for part, row in named]
    return f". Known of its parts, in {rows[0]['dtype_id']}: {', '.join(told)} of weights"


def by_file(almanac: Almanac, model_id: str) -> str:
    """The single files of a repository that holds no one model: what each takes, the largest first; of many the smallest of each part."""
    rows = almanac.rows(
        "FROM repository_file WHERE model_id = $id ORDER BY file_bytes DESC NULLS LAST, file_name", {"id": model_id}
    )
    if not rows:
        return ""
    told = [f"{visible(row['file_name'].rpartition('/')[2])} ({_held(row)})" for row in _shown(rows)]
    more = f" and {len(rows) - FILES} more" if len(rows) > FILES else ""
    return f". By file, each loaded by itself: {', '.join(told)}{more}{_beside(rows)}"


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are told of rows from the largest on: the smallest of each part, then the next ones; what is added last."""
    parts = [row["file_part"] for row in rows]
    after = [parts[at + 1 :].count(part) for at, part in enumerate(parts)]  # how many of its part are smaller
    return [
        rows[at] for at in sorted(sorted(range(len(rows)), key=lambda at: (parts[at] in ADDED, after[at], at))[:FILES])
    ]


def _held(row: dict[str, Any]) -> str:
    """What a file takes, and what of which model it is."""
    size = _size(row["file_bytes"]) if row["file_bytes"] else "size not known"
    part = PARTS.get(row["file_part"], row["file_part"].replace("_", " "))
    if row["of_model_id"]:
        of = "for" if row["file_part"] in ADDED else "of"
        part = f"{part} {of} {row['of_model_id']}" if part else row["of_model_id"]
    return f"{size}, {visible(part)}" if part else size


def _beside(rows: list[dict[str, Any]]) -> str:
    """Of what is added to a model: that its size comes on top of what that takes."""
    added = {row["of_model_id"]: row["file_part"] for row in rows if row["file_part"] in ADDED and row["of_model_id"]}
    if not added:
        return ""
    kinds = " and ".join(sorted({ADDED[kind] for kind in added.values()}))
    bases = ", ".join(f"vram-almanac fits {visible(base)}" for base in sorted(added))
    return (
        f". What {kinds} take{'s' if len(set(added.values())) == 1 else ''} comes on top of the model beside: {bases}"
    )


def _size(file_bytes: int) -> str:
    """As the Hub lists files: 14.3 GB, 955 MB."""
    return f"{file_bytes / 1e9:.3g} GB" if file_bytes >= 1e9 else f"{file_bytes / 1e6:.3g} MB"
