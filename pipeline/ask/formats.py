"""The format of weights that is asked about: by its name, by that of a repository, by the program that runs it."""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.base.bounds import in_words, visible
from pipeline.book.commands import UNPACKED

from .almanac import Almanac
from .problems import Unknown, Wrong
from .question import INFERENCE, SHOWN_BYTES, Model, Use

# what people mean by so many bits alone in programs that do not run the mix of llama.cpp which they are told in
_SAME_BITS = {
    "gguf-q2_k": ("mlx-2bit",),
    "gguf-q3_k_m": ("mlx-3bit",),
    "gguf-q4_k_m": ("awq-int4", "mlx-4bit", "nf4"),
    "gguf-q5_k_m": ("mlx-5bit",),
    "gguf-q6_k": ("mlx-6bit",),
    "gguf-q8_0": ("fp8", "mlx-8bit", "int8"),
}
MIX = re.compile(r"(?i)(?:UD-)?I?Q[1-8]_\w+")  # of llama.cpp, by its name
OF_ENGINE = "^(gguf|mlx|exl3)-"  # what formats are called by for their engine, which people leave out


def dtype_of(almanac: Almanac, asked: str, engine_id: str | None = None) -> str:
    """`Q4_K_M`, `gguf-q4_k_m`, `5.0bpw` or `bf16` as the almanac spells it; of a name that formats of several engines have that of `engine_id`, where it
    is one of them (mxfp4). Raises Wrong with the nearest."""
    # (bits per weight are how people speak of ExLlama's formats)
    said = re.sub(r"(?i)(?:\.00?)?\s?bpw$", "bpw", re.sub(r"(?i)^exl3[-_ ]|[-_ ]exl3$", "", asked.strip()))
    rows = almanac.rows(
        # (MLX has names that say bits alone, which are its own)
        "SELECT dtype_id FROM dtype WHERE lower($asked) = dtype_id OR lower($asked) = regexp_replace(dtype_id, $maker, '') "
        "AND (dtype_id NOT LIKE 'mlx-%' OR engine_id IS NOT DISTINCT FROM $engine) "
        "ORDER BY engine_id IS NOT DISTINCT FROM $engine DESC, len(dtype_id) LIMIT 1",
        {"asked": said, "maker": OF_ENGINE, "engine": engine_id},
    )
    if not rows and re.fullmatch(r"(?i)q[2-8]|awq|gptq", said):  # (as the name of a repository says it)
        rows = [named for named in [almanac.repository(f"it-{said}")] if named["dtype_id"]]
    if not rows:
        near = almanac.value(
            "SELECT nearest_ids('dtype', $asked)",
            {"asked": f"gguf-{asked}" if re.match(r"(?i)i?q\d", asked) else asked},
        )
        above = mix_above(almanac, asked)
        more = f". The next mix above it, by its name: --format {above}" if above else ""
        raise Wrong(f"{in_words(asked)} is no format of this almanac. Near it: {near}{more}")
    return rows[0]["dtype_id"]


def mix_above(almanac: Almanac, named: str) -> str | None:
    """The smallest of the mixes that are told whose bits are more than those that a mix of GGUF has in its name: Q5_K_M of UD-Q4_K_XL."""
    found = re.fullmatch(r"(?i)\s*(?:gguf-)?(?:ud-)?i?q([1-8])_\w+", named)
    if not found:
        return None
    return almanac.value(
        "SELECT arg_min(dtype_id, bits_per_weight) FROM (SELECT unnest(string_split(dtype_ids, ' ')) AS dtype_id FROM scenario_set "
        "WHERE purpose = 'lookup') JOIN dtype USING (dtype_id) "
        "WHERE try_cast(regexp_extract(dtype_id, '^gguf-q([0-9])', 1) AS BIGINT) > $bits",
        {"bits": int(found[1])},
    )


def is_told_in_others(almanac: Almanac, named: str) -> bool:
    """Whether a format by that name is told in others of its kind: a mix in the next one above it, ExLlama's by how many bits there are."""
    query = "SELECT count(*) > 0 FROM dtype WHERE starts_with(dtype_id, lower($named) || '-')"
    return bool(MIX.fullmatch(named) or almanac.value(query, {"named": named}))


def kv_dtype_of(almanac: Almanac, asked: str) -> str:
    known = [row["kv_dtype_id"] for row in almanac.rows("SELECT kv_dtype_id FROM kv_dtype")]
    if asked.strip().lower() not in known:
        raise Wrong(f"{in_words(asked)} is no format of a cache: {', '.join(known)}")
    return asked.strip().lower()


def in_its_format(almanac: Almanac, model: Model, use: Use) -> tuple[Model, Use]:
    """The format that a model's name speaks of, where no other is asked for: of a training only what QLoRA trains over. A program that is named
    and runs that format on no card is asked for the formats that it runs, and the model's note says so."""
    if model.says_bits_alone and use.dtype_id is None:
        model = _in_bits_of_program(almanac, model, use)
    if model.dtype_id is None and model.dtype_named and use.dtype_id is None and not use.is_training:
        return _in_mix_above(almanac, model, use)
    if model.held_otherwise and not use.is_training and use.dtype_id in (None, model.dtype_id):
        raise Unknown(f"Not known: {model.held_otherwise}")
    if model.dtype_id is None or use.dtype_id is not None:
        return model, use
    if use.is_training and use.phase_id != "qlora":
        _check_base(almanac, model, use)
        return model, use
    if use.is_training and model.dtype_id not in ("nf4", "int8"):
        _check_base(almanac, model, use)
        return model, use
    if use.engine_id is not None and not use.is_training and not _runs(almanac, use.engine_id, model.dtype_id):
        name = almanac.value("SELECT any_value(name) FROM program WHERE program_id = $id", {"id": use.program})
        known = _why_not_run(almanac, use.engine_id, model.dtype_id)
        said = known or f"whether {name} runs {model.dtype_id}, and what it holds then, is not described here"
        return replace(model, left_reason=said), use
    return model, replace(use, dtype_id=model.dtype_id)


def _in_bits_of_program(almanac: Almanac, model: Model, use: Use) -> Model:
    """Of a name that says bits alone: the format of as many that the program runs, or that a training is over."""
    same = _SAME_BITS.get(str(model.dtype_id), ())
    if use.is_training:
        meant = next((one for one in same if one in ("nf4", "int8")), None) if use.phase_id == "qlora" else None
    elif use.engine_id is None or _runs(almanac, use.engine_id, str(model.dtype_id)):
        return model
    else:
        meant = next((one for one in same if _runs(almanac, str(use.engine_id), one)), None)
    if meant is None:
        return model
    return replace(model, dtype_id=meant, dtype_named=meant, note=model.note.replace(str(model.dtype_id), meant))


def _check_base(almanac: Almanac, model: Model, use: Use) -> None:
    """Raises Unknown for a training over what AWQ, GPTQ and the like packed: nobody counted that, and the original's figures are another question's."""
    (held,) = almanac.rows("SELECT engine_id, bits_per_weight FROM dtype WHERE dtype_id = $id", {"id": model.dtype_id})
    # (fp8 and MXFP4 are unpacked as they are loaded; files for other programs are told of as such)
    is_served = held["engine_id"] == "vllm" and (held["bits_per_weight"] or 16) < 16
    if not is_served or model.dtype_id in UNPACKED or use.is_in_own_format:
        return
    query = "SELECT lead_model_id FROM work WHERE model_id = $id"
    original = almanac.value(query, {"id": model.model_id}) or model.model_id
    is_original = original == model.model_id and model.row["stored_format"] == model.dtype_id
    asked = "" if is_original else f". Of the original: vram-almanac fits {visible(original)} --phase {use.phase_id}"
    raise Unknown(f"Not known: what a training over a base in {model.dtype_id} takes is not counted here{asked}")


def _in_mix_above(almanac: Almanac, model: Model, use: Use) -> tuple[Model, Use]:
    """A mix of GGUF that nobody described, in the next one above it. Raises Unknown where none is."""
    named = visible(model.dtype_named or "").removeprefix("gguf-").upper()
    if use.engine_id not in (None, "llama.cpp") or not MIX.fullmatch(named):
        return model, use
    above = mix_above(almanac, named)
    if above is None:
        raise Unknown(
            f"Not known: {named}, which its name speaks of, is no format of this almanac, and no mix above it is. In those that are it is: "
            f"vram-almanac fits {model.shown} --format Q8_0"
        )
    why = f"{visible(model.format_note)}." if model.format_note and named.startswith("UD-") else ""
    said = f"{why} Told is the next mix above it, by its name; how large its own file is, its repository says.".strip()
    note = " ".join(filter(None, (model.note, said)))
    return replace(model, note=note, dtype_named=named, is_above=True), replace(use, dtype_id=above)


def is_left(model: Model, use: Use) -> bool:
    """Whether a model is told in other formats than the one that its name speaks of (see `in_its_format`)."""
    return model.dtype_id is not None and use.dtype_id is None and use.engine_id is not None and not use.is_training


def is_unread(model: Model, use: Use) -> bool:
    """Whether what is asked about is a repository that is not in the almanac, in a format that makers may pack in several ways."""
    return model.more_bytes is not None and not use.is_training and use.dtype_id == model.dtype_id


def _runs(almanac: Almanac, engine_id: str, dtype_id: str) -> bool:
    """Whether an engine is known to run a format on any card."""
    query = "SELECT bool_or(runs) FROM runs_on WHERE engine_id = $engine AND dtype_id = $dtype AND phase_id = $phase"
    return bool(almanac.value(query, {"engine": engine_id, "dtype": dtype_id, "phase": INFERENCE}))


def _why_not_run(almanac: Almanac, engine_id: str, dtype_id: str) -> str | None:
    """What sources say of an engine with a format that it is known to run on no card."""
    query = (
        "SELECT mode(how ORDER BY gpu_id) FROM runs_on "
        "WHERE engine_id = $engine AND dtype_id = $dtype AND phase_id = $phase AND runs IS NULL"
    )
    return almanac.value(query, {"engine": engine_id, "dtype": dtype_id, "phase": INFERENCE})


def check_draft(draft: Model) -> None:
    """Raises Unknown for a draft whose files may hold more than any error band of its format has in it, which is not counted of a draft."""
    held = max((draft.more_bytes or 0) if draft.more_share else 0, draft.beyond_bytes)
    if held > SHOWN_BYTES:
        raise Unknown(
            f"Not known: the draft's files may hold up to {held / 2**30:.1f} GiB more than {draft.shown} in {draft.dtype_id}, which is not counted "
            f"here. In that format it is: --draft {draft.shown}"
        )


def check_file(model: Model, use: Use) -> None:
    """Raises Unknown for a file that holds more than its format, or may beyond its error band, where that is counted of one model on like cards alone."""
    if model.more_bytes and model.more_share and is_unread(model, use):
        raise Unknown(
            f"Not known: a repository of that name is not in this almanac, and may hold up to {model.more_bytes / 2**30:.1f} GiB more than "
            f"{model.shown} packed as most are, which is not counted here. Packed so it is: vram-almanac with {model.shown} --format {use.dtype_id}"
        )
    if model.beyond_bytes and not use.is_training and use.dtype_id == model.dtype_id:
        raise Unknown(
            f"Not known: the file of that name holds up to {model.beyond_bytes / 2**30:.1f} GiB more than {use.dtype_id}, which is not counted "
            f"here. In that format it is: vram-almanac with {model.shown} --format {use.dtype_id}"
        )
