"""What models of sound need by seconds of it, in the formats of Transformers: those that hear as the footprint of so many seconds
(`footprints_in`), those that write the codes of a codec, or whose class was run whole, as `speech_of` says.

Who reads a window of a fixed length (Whisper) needs the same for all: it reads the next one after it.
"""

from __future__ import annotations

from pipeline.book.sounds import CLASSES, CONTEXT_TOKENS, TEXT_TOKENS, WAS_RUN, WRITES
from pipeline.render.data.kept import Answers

Rows = dict[str, dict]  # by format: KEYS
KEYS = ("weights_bytes", "total_bytes", "error_band", "unknown_reason", "kv_cache_bytes")


def is_asked(connection) -> bool:
    """Whether the file has such formulas."""
    asked = (
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name IN ('footprints_in', 'speech_of')"
    )
    return len(connection.execute(asked).fetchall()) == 2


def spoken_of(connection) -> list[str]:
    """Models that `speech_of` answers for: of hundreds a few, and asking it of all takes long."""
    query = f"SELECT model_id FROM model WHERE {WRITES} OR {WAS_RUN} ORDER BY model_id"
    return [name for (name,) in connection.execute(query).fetchall()]


def writers(connection) -> set[str]:
    """Those of them that write the codes of a codec: they speak, whatever the Hub lists them under."""
    return {name for (name,) in connection.execute(f"SELECT model_id FROM model WHERE {WRITES}").fetchall()}


def classes(connection) -> dict[str, tuple[str, str | None, str]]:
    """By model whose class was run whole, what runs it, what is to know of that, and what comes of it."""
    return {model: tuple(said) for model, *said in connection.execute(CLASSES).fetchall()}


def heard(connection, names: list[str], seconds: tuple[int, ...], formats: tuple[str, ...], engine: str) -> dict:
    """By model and seconds the rows of its formats; under None those of the model without any sound."""
    arguments = connection.execute(
        "SELECT parameters FROM duckdb_functions() WHERE function_name = 'footprint_of' LIMIT 1"
    ).fetchone()[0]
    # who hears as part of the prompt has the sound's tokens in its context, and some of text
    given = {
        "model_id": "model_id", "dtype_id": "dtype_id", "engine_id": f"'{engine}'", "phase_id": "'inference'",
        "audio_seconds": "seconds", "context_tokens": f"iif(seconds IS NULL, least({TEXT_TOKENS}, max_context_tokens), {CONTEXT_TOKENS})",
    }  # fmt: skip
    asked = ", ".join(f'{given.get(name, "NULL")} AS "{name}"' for name in arguments)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE sound_asked AS SELECT {asked} FROM (SELECT model_id, max_context_tokens, "
        "samples_each, text_tokens_each FROM model LEFT JOIN (SELECT * FROM tower WHERE component = 'audio') USING (model_id) "
        "WHERE list_contains($1, model_id)), (SELECT unnest($2::VARCHAR[]) AS dtype_id), (SELECT unnest($3::DOUBLE[]) AS seconds)",
        [names, list(formats), [None, *seconds]],
    )
    result = connection.execute(
        f"SELECT model_id, audio_seconds, dtype_id, {', '.join(KEYS)} FROM footprints_in('sound_asked', 'inference', is_plain := false)"
    )
    told: dict[str, dict[int | None, Rows]] = {}
    for model, length, dtype, *values in result.fetchall():
        of = told.setdefault(model, {}).setdefault(None if length is None else int(length), {})
        of[dtype] = dict(zip(KEYS, values, strict=True))
    return told


def kept_heard(
    answers: Answers, connection, names: list[str], seconds: tuple[int, ...], formats: tuple[str, ...], engine: str
) -> dict:
    """What `heard` says, asked of models alone that it was not asked of before."""
    make = lambda some: heard(connection, some, seconds, formats, engine)  # noqa: E731
    return _lengths(answers.of("heard", names, ("footprints_in", "tower", "model"), make, [seconds, formats, engine]))


def kept_spoken(
    answers: Answers, connection, names: list[str], seconds: tuple[int, ...], formats: tuple[str, ...]
) -> dict:
    """The same of `spoken`."""
    make = lambda some: spoken(connection, some, seconds, formats)  # noqa: E731
    return _lengths(answers.of("spoken", names, ("speech_of", "model"), make, [seconds, formats]))


def _lengths(found: dict[str, dict[str, Rows]]) -> dict[str, dict[int | None, Rows]]:
    """By numbers what JSON has by texts."""
    return {
        name: {None if length == "null" else int(length): rows for length, rows in of.items()}
        for name, of in found.items()
    }


def windowed(connection) -> set[str]:
    """Models that hear a window of a fixed length, one after the other."""
    query = "SELECT model_id FROM tower WHERE component = 'encoder' AND grid = 'fixed'"
    return {model for (model,) in connection.execute(query).fetchall()}


def hearing(connection) -> set[str]:
    """Models that hear: a window of a fixed length, or as many seconds as are asked for."""
    query = "SELECT DISTINCT model_id FROM tower WHERE component = 'audio'"
    return windowed(connection) | {model for (model,) in connection.execute(query).fetchall()}


def spoken(connection, names: list[str], seconds: tuple[int, ...], formats: tuple[str, ...]) -> dict:
    """By model and seconds the rows of its formats, of those that `spoken_of` names."""
    query = f"""
        SELECT asked.model_id, asked.seconds, asked.dtype_id, {", ".join(f"told.{key}" for key in KEYS)}
        FROM (SELECT unnest($1::VARCHAR[]) AS model_id) AS writer, (SELECT unnest($2::INTEGER[]) AS seconds) AS size,
            (SELECT unnest($3::VARCHAR[]) AS dtype_id) AS format,
            LATERAL (SELECT writer.model_id, size.seconds, format.dtype_id) AS asked,
            speech_of(asked.model_id, seconds := asked.seconds, dtype_id := asked.dtype_id) AS told
    """
    found: dict[str, dict[int, Rows]] = {}
    for model, length, dtype, *values in connection.execute(query, [names, list(seconds), list(formats)]).fetchall():
        found.setdefault(model, {}).setdefault(length, {})[dtype] = dict(zip(KEYS, values, strict=True))
    return found
