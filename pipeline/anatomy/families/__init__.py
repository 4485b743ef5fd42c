"""The families of architectures, one module each. Every module here is imported and registers its readers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy

Reader = Callable[[Fields], Anatomy]
_READERS: dict[str, Reader] = {}


def family(*model_types: str) -> Callable[[Reader], Reader]:
    """Registers a reader for these values of `model_type`."""

    def register(reader: Reader) -> Reader:
        for model_type in model_types:
            if model_type in _READERS:
                raise ValueError(f"model_type '{model_type}' is described twice")
            _READERS[model_type] = reader
        return reader

    return register


@cache
def _load_all() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def reader_for(model_type: str) -> Reader | None:
    _load_all()
    return _READERS.get(model_type)
