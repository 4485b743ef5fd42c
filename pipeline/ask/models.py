"""The model that a name means, and what is to know of the repository that was asked for. Near names are told."""

from __future__ import annotations

import re
from typing import Any

from pipeline.base.bounds import visible
from pipeline.book.commands import SAME_WEIGHTS

from .almanac import Almanac, Row
from .near import meant_by, tuned_of
from .near import unknown as unknown_name
from .problems import Unknown, Wrong
from .question import SHOWN_BYTES, Model
from .repositories import by_file, is_packed_copy, is_pipeline, known_as_draft, known_beside

_OF_OLLAMA = re.compile(r"(?i):|\bollama\b")  # a tag: qwen3:8b, ollama run qwen3
_BITS = re.compile(r"(?i)[\s-][2-8][\s-]?bits?\s*$")
PARAMETERS_SHARE = 0.05  # from the number of parameters, within which a total counts them, whatever their bits


def in_words_of(name: str, asked: Any) -> str:
    """A name as the program that is asked for has it: of Ollama a name alone is a tag of its library."""
    is_ollamas = re.match(r"(?i)\s*ollama\b", getattr(asked, "program", None) or "")
    return f"ollama run {name}" if is_ollamas and re.fullmatch(r"[\w.:-]+(?<!\.gguf)", name) else name


def model_of(almanac: Almanac, asked: str, *, is_run: bool = False) -> Model:
    """The model of that name; where it is to be run, the one that is tuned to answer. Raises Wrong with the nearest names, Unknown where nothing is
    known of it but its name."""
    rows = almanac.rows("FROM model WHERE model_id = known_model($asked)", {"asked": asked})
    named = almanac.repository(asked)
    if named.get("ollama_tag") and not _OF_OLLAMA.search(asked):
        # (words that are a name of Ollama's library too say nothing of its file)
        of_file = ("dtype_id", "dtype_named", "note", "beyond_bytes", "ollama_tag")
        named = named | {name: None for name in of_file if name in named}
    is_known = bool(rows) and rows[0]["anatomy_grade"] != "unknown"
    otherwise = _held_otherwise(almanac, rows[0], named) if rows and not is_known else ""
    if not is_known and named["model_id"] is not None:
        base = almanac.rows("FROM model WHERE model_id = $id AND anatomy_grade <> 'unknown'", {"id": named["model_id"]})
        rows = base or rows or almanac.rows("FROM model WHERE model_id = $id", {"id": named["model_id"]})
    meant = None if rows else meant_by(almanac, asked)
    if meant:
        rows = almanac.rows("FROM model WHERE model_id = $id", {"id": meant[0]})
    if not rows:
        raise Wrong(
            f"{unknown_name(almanac, asked)}. One that it does not hold is answered from its config.json: "
            "vram-almanac fits path/to/config.json"
        )
    (row,) = rows
    tuned = tuned_of(almanac, asked, row) if is_run and not named.get("ollama_tag") else None
    row = tuned or row
    if row["anatomy_grade"] == "unknown" and not is_pipeline(almanac, row["model_id"]):
        taken = (
            ""
            if row["model_id"].lower() == asked.strip().lower()
            else f"{visible(row['model_id'])} is held, and unknown: "
        )
        among = f". {meant[1]}" if meant and meant[1] else ""
        raise Unknown(
            f"Not known: {taken}{_why(row)}"
            f"{known_as_draft(almanac, row['model_id']) or known_beside(almanac, row['base_model_id'])}"
            f"{by_file(almanac, row['model_id'])}{among}"
        )
    by = "name"
    is_itself = row["model_id"].lower() == asked.strip().lower()
    if is_itself and named["dtype_id"] is None and _BITS.search(asked):  # (its files say more than its name)
        named = named | {"dtype_named": None, "note": None}
    if not named["dtype_named"] and is_packed_copy(almanac, row):
        by, named = "files", named | {"dtype_id": row["stored_format"], "dtype_named": row["stored_format"]}
    beyond = named.get("beyond_bytes")  # (a file from before there was such a column)
    notes = [(meant and meant[1]) or _taken(asked, row["model_id"], named, by)]
    if tuned:
        notes.append(f"That is the one that is tuned to answer; what it was made from: {visible(tuned['base_id'])}.")
    return Model(
        row["model_id"], visible(row["model_id"]), row, named["dtype_id"], " ".join(notes),
        named["dtype_named"], named["note"] or "", is_itself=is_itself,
        beyond_bytes=beyond or 0, is_own_mix=beyond is not None, tag=named.get("ollama_tag") or "",
        held_otherwise=otherwise, says_bits_alone=bool(_BITS.search(asked)) and _is_mix(named["dtype_id"]),
        **({} if is_itself else _unread(almanac, row, named)),
    )  # fmt: skip


def _is_mix(dtype_id: str | None) -> bool:
    return (dtype_id or "").startswith("gguf-")


def _why(row: Row) -> str:
    """Why nothing is counted of a model, in words of whoever asks: what its total leaves open stands behind."""
    note = visible(row["anatomy_note"] or "nothing but its name")
    if "unexplained" not in note:
        return note
    return f"what its files hold, since their published total is that of no format that is described here ({note})"


def _held_otherwise(almanac: Almanac, own: Row, named: Row) -> str:
    """That a repository taken as another in a packed format publishes more than that: each element that it lists takes a byte or more, but for
    a total that counts the parameters themselves; what layers that only predict may have is not loaded."""
    query = """
        SELECT model.model_id, $total - coalesce(model.predicting_parameter_count, 0) AS least_bytes, held.weights_bytes
        FROM weight AS held JOIN model ON model.model_id = held.model_id JOIN dtype ON dtype.dtype_id = held.dtype_id
        WHERE held.model_id = $base AND held.dtype_id = $dtype AND dtype.engine_id = 'vllm' AND dtype.bits_per_weight < 16
            AND $total < $parameters * model.parameter_count AND least_bytes > $more * held.weights_bytes
    """
    total, base, dtype = own["stored_parameter_count"], named["model_id"], named["dtype_id"]
    if None in (total, base, dtype):
        return ""
    shares = {"parameters": 1 - PARAMETERS_SHARE, "more": 1 + SAME_WEIGHTS}
    rows = almanac.rows(query, {"total": total, "base": base, "dtype": dtype} | shares)
    return "".join(
        f"its published total of {total:,} elements, a byte or more each, is above the {row['weights_bytes'] / 2**30:.1f} GiB that "
        f"{visible(base)} takes in {dtype}: it leaves parts in more bits, and which is not known. Packed whole it is: "
        f"vram-almanac fits {visible(base)} --format {dtype}"
        for row in rows
    )


def _unread(almanac: Almanac, base: Row, named: Row) -> dict[str, Any]:
    """Of a repository that is not in the almanac: what it may hold beyond its base as most pack that, and that nobody here has read it."""
    more = named.get("more_bytes")  # (a file from before there was such a column)
    if more is None:
        return {}
    note = "A repository of that name is not in this almanac"
    if not more:
        return {"more_bytes": 0, "more_note": f"{note}: counted with all its linear layers packed, as nearly all are."}
    query = "SELECT * FROM weight WHERE model_id = $id AND dtype_id = $dtype AND weights_bytes > 0"
    rows = almanac.rows(query, {"id": base["model_id"], "dtype": named["dtype_id"]})
    if not rows:
        return {}
    weights = rows[0]["weights_bytes"]
    known = rows[0].get("packing_spread_bytes") or 0  # (a file from before there was such a column)
    reason = (named["more_reason"] or "").rpartition("makers also have ")[2]
    note += (
        f", and what it packs is not known. As most pack this model in {named['dtype_id']} its weights are {weights / 2**30:.1f} GiB; makers also "
        f"have {visible(reason)}, up to {more / 2**30:.1f} GiB more, for which “fits” leaves room."
    )
    if predicting := base.get("predicting_parameter_count"):
        note += f" Not in them are layers that only predict (up to {2 * predicting / 2**30:.1f} GiB), which a server may hold with no draft asked."
    return {"more_bytes": more, "more_share": max(0, more - known) / weights, "more_note": note}


def _taken(asked: str, model_id: str, named: dict[str, Any], by: str = "name") -> str:
    """What a name was taken for, where it is not the model's own."""
    parts = [] if model_id.lower() == asked.strip().lower() else [f"{visible(asked)} is taken as {visible(model_id)}"]
    if named["dtype_id"]:
        beyond, shown = named.get("beyond_bytes"), named["dtype_named"] or ""
        is_own = beyond is not None and shown.startswith("the mix of")
        parts.append(f"{parts.pop() if parts else f'By its {by} it is'} in {shown if is_own else named['dtype_id']}")
        if is_own and (beyond or 0) < SHOWN_BYTES:
            parts.append(f"its file is no larger than {named['dtype_id']}, in which it is counted")
        elif is_own or (beyond or 0) >= SHOWN_BYTES:
            parts.append(
                f"its file holds up to {(beyond or 0) / 2**30:.1f} GiB more than {named['dtype_id']}, which these figures have on top: an upper bound"
            )
    elif named["dtype_named"]:
        parts.append(f"{visible(named['dtype_named'])}, which its name speaks of, is no format of this almanac")
    return "; ".join(parts) + "." if parts else ""
