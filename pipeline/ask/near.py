"""What is said of a name that the almanac does not hold: the model that it may be, where few have all of its words, else which model of its family
it has, of the same size or of others, of which none is an answer for it."""

from __future__ import annotations

import re

from pipeline.base.bounds import in_words, visible
from pipeline.book.commands import TALKING

from .almanac import Almanac, Row

_SIZE = re.compile(r"(?i)(?<![a-z0-9.])(\d+(?:\.\d+)?[bm])(?![a-z0-9])")

_MOST = 20  # models that have the words of a name: more are those of a whole family (llama)
_SHOWN = 3  # of them that are told
# Models that have all words of a name, and those with a letter wrong in one of three and more: the one first that is known, of those whose name begins
# so, and the most downloaded of them. Numbers are never other numbers.
_HELD = """
WITH said AS (SELECT DISTINCT unnest({place}.name_words($asked)) AS word),
held AS (
    SELECT named.model_id, any_value(named.downloads) AS downloads, any_value(named.size) AS size,
        count(DISTINCT said.word) FILTER (said.word = named.word) AS exact_count,
        any_value(starts_with(named.plain_work, {place}.plain_name($asked))) AS begins,
        any_value(named.telling_count) - count(*) FILTER (named.tells) AS unsaid_count, any_value(named.is_lead) AS is_known
    FROM said JOIN {place}.name_word AS named ON said.word = named.word
        OR len(said.word) > 2 AND len(named.word) > 3 AND regexp_full_match(said.word || named.word, '[a-z]+')
            AND damerau_levenshtein(said.word, named.word) = 1
    JOIN work ON work.model_id = named.model_id AND work.lead_model_id = named.model_id
    GROUP BY named.model_id HAVING count(DISTINCT said.word) = (SELECT count(*) FROM said)
)
SELECT *, exact_count = (SELECT count(*) FROM said) AS is_exact FROM held
WHERE exact_count = (SELECT max(exact_count) FROM held) AND {told}
ORDER BY begins DESC, is_known DESC, downloads DESC, model_id
"""


def meant_by(almanac: Almanac, asked: str) -> tuple[str, str] | None:
    """The model that a name is taken for which is none's, and what is to say of that: of few that have all of its words the most downloaded one, of
    one with a letter wrong the only one of that size. None where nobody can say."""
    if not re.search(r"(?i)[a-z]{3}", asked) or re.search(r"[/:\\]|\.gguf$", asked, re.ASCII | re.IGNORECASE):
        return None
    place = almanac.schema_of("name_word")
    if place is None:
        return None
    # (a file from before there was such a rule takes any)
    has_rule = almanac.value("SELECT count(*) FROM duckdb_functions() WHERE function_name = 'is_told'")
    told = f"{place}.is_told(begins, $asked, unsaid_count, exact_count)" if has_rule else "true"
    rows = almanac.rows(_HELD.format(place=place, told=told), {"asked": asked})
    return _of_words(asked, rows) if rows and rows[0]["is_exact"] else _misspelt(asked, rows)


def _of_words(asked: str, rows: list[Row]) -> tuple[str, str] | None:
    if len(rows) > _MOST:
        return None
    meant, *others = (row["model_id"] for row in rows)
    if not others:
        return meant, ""
    shown = ", ".join(map(visible, others[:_SHOWN])) + (" …" if len(others) > _SHOWN else "")
    return (
        meant,
        f"{in_words(asked)} may be {shown} as well: asked of {visible(meant)}, the first of them by name and downloads.",
    )


def _misspelt(asked: str, rows: list[Row]) -> tuple[str, str] | None:
    whole = [row for row in rows if row["unsaid_count"] == 0]
    whole = [row for row in whole if row["is_known"]] or whole
    sizes = {row["size"] for row in whole}
    if len(sizes) != 1:
        return None
    meant = whole[0]["model_id"]
    return meant, f"No model is called {in_words(asked)}: read as {visible(meant)}, which is one letter away."


def unknown(almanac: Almanac, asked: str) -> str:
    """That there is no model of that name, and what is near it."""
    near = almanac.value("SELECT nearest_models($asked)", {"asked": asked})
    said = f"{in_words(asked)} is not in this almanac."
    family, size = _parts(asked)
    kin = [name for name in near.split(", ") if family and _parts(name)[0] == family]
    same = [name for name in kin if _parts(name)[1] == size]
    if same:
        shown = ", ".join(map(visible, same))
        return (
            f"{said} Of its family and size is {shown}; whether what was asked has the same shape, nobody here has read. That one is asked by: "
            f"vram-almanac fits {visible(same[0])}"
        )
    if kin:
        return f"{said} Of its family are other sizes: {', '.join(map(visible, kin))}"
    return f"{said} Near it: {near}"


def _parts(name: str) -> tuple[str, str]:
    """The letters and digits of a name before its size, and the size; no size where it says none."""
    said = name.rpartition("/")[2].replace(" ", "-").replace("_", "-")
    found = _SIZE.search(said)
    return (re.sub(r"[^a-z0-9.]", "", said[: found.start()].lower()), found[1].lower()) if found else ("", "")


# what tells one that is tuned to answer from what it was made from
_TUNED = r"(?i)[-_.](instruct|it|chat)\b"


def is_tuned(model_id: str) -> bool:
    return bool(re.search(_TUNED, model_id.rpartition("/")[2]))


def tuned_of(almanac: Almanac, asked: str, row: Row) -> Row | None:
    """The model of the same maker and shape that is tuned to answer, with `base_id`, where some words were taken for what it was made from: who wants
    to talk to it means that one. An id, or a name as the Hub has it, is itself."""
    name = row["model_id"].rpartition("/")[2]
    if (
        row["pipeline_tag"] not in TALKING
        or "/" in asked
        or name in asked
        or re.search(r"(?i)\b(base|pt|pretrained)\b", asked)
    ):
        return None
    query = """
        FROM model WHERE split_part(model_id, '/', 1) = $maker AND pipeline_tag = $task AND anatomy_grade <> 'unknown'
            AND regexp_matches(model_id, $tuned) AND replace(regexp_replace(lower(split_part(model_id, '/', 2)), $tuned, ''), '-pt', '') = $name
            AND parameter_count = $parameters AND coalesce(layer_count, -1) = coalesce($layers, -1)
        ORDER BY downloads_30d DESC NULLS LAST, model_id LIMIT 1
    """
    given = {
        "maker": row["model_id"].partition("/")[0], "task": row["pipeline_tag"], "tuned": _TUNED, "name": name.lower().removesuffix("-pt"),
        "parameters": row["parameter_count"], "layers": row["layer_count"],
    }  # fmt: skip
    found = [] if is_tuned(name) else almanac.rows(query, given)
    return found[0] | {"base_id": row["model_id"]} if found else None
