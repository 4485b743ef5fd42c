"""Repositories whose files not every program loads: copies for llama.cpp, MLX, CTranslate2, ONNX Runtime and the like.

What their model is asked for is narrowed to the program that loads the files, where a formula says what that holds; else the original is
told, and that it is. What llama.cpp sees with is a second file, which is counted: llama-server -hf loads it beside the first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pipeline.base.bounds import visible

from .almanac import Almanac
from .helps import has_stages
from .naming import ENGINES, gib_of
from .problems import Unknown
from .programs import program_of
from .question import Model, Use
from .repositories import known_beside
from .scenarios import sees

_DRAFTING = "ollama-mtp"  # what the names of its tags are taken for
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(?<!\.gguf)", re.ASCII)


def in_its_files(almanac: Almanac, asked: str, model: Model, use: Use) -> Model:
    """The model as the files of the repository that was asked for are loaded. Raises Unknown for a format that no formula describes."""
    held = next(iter(almanac.rows("FROM container_of($asked)", {"asked": asked})), None)
    if (model.dtype_named or "").startswith(_DRAFTING) and use.dtype_id is None and not use.is_training:
        raise Unknown(_drafting(asked))
    if _is_of_no_format(asked, model, use):
        original = (held["original_id"] if held else None) or (None if model.is_itself else model.model_id)
        of = f". What it was made from is known: vram-almanac fits {visible(original)}" if original else ""
        of = of or known_beside(almanac, model.row.get("base_model_id"))
        note = f" ({visible(model.format_note)})" if model.format_note else ""
        raise Unknown(
            f"Not known: {visible(model.dtype_named or '')}, which its name speaks of, is no format of this almanac{note}{of}"
        )
    if held is None or has_stages(almanac, model):  # (the denoiser of a pipeline is told in GGUF by itself)
        return model
    is_itself = held["model_id"] == model.model_id
    original = held["original_id"] if is_itself else model.model_id
    program = visible(held["program_name"])
    engine = None if use.is_training else held["engine_id"]
    is_replaced = is_itself and original and (engine is None or (held["second_file_bytes"] and held["is_whole"]))
    if is_replaced:
        (row,) = almanac.rows("FROM model WHERE model_id = $id", {"id": original})
        shown = model.shown if engine else visible(original)
        model = replace(model, model_id=original, row=row, shown=shown)
    notes = [model.note] if model.note else []
    if use.is_training:
        notes.append(f"Its files are for {program}: what is trained is the original{_named(original, model)}.")
    elif engine is None:
        notes.append(_foreign(asked, original, program))
    else:
        told = ENGINES.get(engine, engine)
        if model.dtype_id is None and use.dtype_id is None:
            notes.append(
                f"Its files are for {told}{_mixes(held)}. Of other programs the original is told{_named(original, model)}."
            )
        is_counted = bool(is_replaced or not is_itself)
        second = _second(held, is_counted=is_counted)
        notes += second
        model = replace(model, is_text_alone=bool(second) and not is_counted)
    own = asked if _REPOSITORY.fullmatch(asked) else ""
    # (what is packed already is not packed again: its commands are told of what it was made from)
    made_from = original if is_itself and not is_replaced else ""
    return replace(model, note=" ".join(notes), repository=own, files_engine=engine, made_from=made_from)


def in_its_program(almanac: Almanac, model: Model, use: Use) -> Use:
    """A tag of Ollama's library whose file holds what the model sees with, and nobody counted that, is asked in Ollama, which loads it:
    llama.cpp, which can leave it out, is not what was named."""
    if not model.tag or use.program or use.is_training or sees(almanac, model.model_id) is not False:
        return use
    program = program_of(almanac, "ollama", use.phase_id)
    return replace(use, program=program.program_id, engine_id=program.engine_id)


def _is_of_no_format(asked: str, model: Model, use: Use) -> bool:
    """Whether a repository says that its files are in a format which no formula describes, and nobody asked for another."""
    is_silent = not (model.dtype_id or use.dtype_id or use.program or use.is_training)
    return bool(is_silent and model.dtype_named and _REPOSITORY.fullmatch(asked))


def _drafting(asked: str) -> str:
    """That a tag of Ollama drafts with layers of its own, and how it is asked with and without."""
    tag = visible(re.sub(r"(?i)-mtp(?=-|$)", "", asked))
    return (
        f"Not known: {visible(asked)} drafts with its own prediction layers, as many tokens at a time as its parameters say, and how many is in no source "
        f"here. Without them: vram-almanac fits {tag}; with as many as llama.cpp drafts by itself: vram-almanac fits {tag} --draft mtp"
    )


def _named(original: str | None, model: Model) -> str:
    return f", {visible(original)}" if original and original != model.shown else ""


def _foreign(asked: str, original: str | None, program: str) -> str:
    if original:
        return (
            f"{visible(asked)} holds it for {program}, of which no formula says what it takes: these are figures of "
            f"{visible(original)} in programs that load that."
        )
    return (
        f"Its files are for {program}, of which no formula says what it takes: these are figures of the same model in "
        "programs that load its original."
    )


def _mixes(held: dict[str, Any]) -> str:
    return " (which of these mixes it has, their names say)" if held["container_id"] == "gguf" else ""


def _second(held: dict[str, Any], *, is_counted: bool) -> list[str]:
    """What is said of the second file of GGUF, of a model that sees or hears."""
    if held["container_id"] != "gguf":
        return []
    size, told = held["second_file_bytes"], "where the repository has one, llama-server -hf loads it beside the first"
    if size and is_counted:
        return [
            f"A second file (mmproj) is what it sees or hears with: {told}, and {gib_of(size)} GiB of these figures are its (--no-mmproj leaves it out)."
        ]
    if size:
        return [
            f"A second file (mmproj) is what it sees or hears with: {told}, {gib_of(size)} GiB on top of these figures (--no-mmproj leaves it out)."
        ]
    if held["is_sensing"]:
        return [
            f"A second file (mmproj) is what it sees or hears with: {told}. How large it is, is not known; it comes on top of these figures (--no-mmproj leaves it out)."
        ]
    return []
