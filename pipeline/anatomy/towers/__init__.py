"""Towers of pictures and of sound, one module for each plan. Every module here is imported and registers its readers.

A tower is read by the `model_type` of its own config, as it stands alone or inside another model.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part

Reader = Callable[[Fields], list[Part]]
_VISION: dict[str, Reader] = {}
_AUDIO: dict[str, Reader] = {}


def _registered(towers: dict[str, Reader], model_types: tuple[str, ...]) -> Callable[[Reader], Reader]:
    def register(read: Reader) -> Reader:
        towers.update(dict.fromkeys(model_types, read))
        return read

    return register


def seeing(*model_types: str) -> Callable[[Reader], Reader]:
    """Registers a reader of vision towers of these types."""
    return _registered(_VISION, model_types)


def hearing(*model_types: str) -> Callable[[Reader], Reader]:
    """Registers a reader of audio towers of these types."""
    return _registered(_AUDIO, model_types)


@cache
def _load_all() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def _read(towers: dict[str, Reader], sense: str, fields: Fields, default: str | None) -> list[Part]:
    _load_all()
    stated = fields.text("model_type") or default
    kind = stated if stated in towers else default
    if kind not in towers:
        raise UnknownAnatomy(f"{sense} tower '{shown(stated)}' is not described yet")
    return towers[kind](fields.but({"model_type": kind}))


def types_that_see() -> tuple[str, ...]:
    _load_all()
    return tuple(_VISION)


def types_that_hear() -> tuple[str, ...]:
    _load_all()
    return tuple(_AUDIO)


def vision_tower(fields: Fields, default: str | None = None) -> list[Part]:
    """The tower this config describes; `default` is the kind that a parent builds where its config does not say."""
    return _read(_VISION, "vision", fields, default)


def audio_tower(fields: Fields, default: str | None = None) -> list[Part]:
    """The tower this config describes; `default` is the kind that a parent builds where its config does not say."""
    return _read(_AUDIO, "audio", fields, default)
