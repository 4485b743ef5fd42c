"""Anatomy: from a `config.json` to the tensors, layers and shapes of the model that it describes.

`read_config(config)` is the way in. Each family of architectures is one module in `families/`, registered by
`model_type`; adding one is a file there and a test. No model is ever told by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.anatomy.activation import with_activations
from pipeline.anatomy.class_defaults import written_out
from pipeline.anatomy.families import reader_for
from pipeline.anatomy.families.drafts import dflash, draft_of
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import DRAFT, with_described_classes
from pipeline.anatomy.nested_parts import check_parts, with_parts
from pipeline.anatomy.reading import architecture_of
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers.inputs import with_towers
from pipeline.anatomy.untyped import type_told

__all__ = ["Anatomy", "ContradictoryConfig", "UnknownAnatomy", "read_config"]


def read_config(config: Mapping[str, Any]) -> Anatomy:
    """The anatomy that a config determines.

    Raises UnknownAnatomy with the reason where it does not determine one, and ContradictoryConfig where it cannot be
    the config of any model.
    """
    fields = Fields(with_parts(config))
    model_type = fields.text("model_type", "_class_name")  # parts of diffusion pipelines name their class instead
    if model_type is None and (model_type := type_told(config)):
        fields = Fields(fields.config | {"model_type": model_type}, fields.where)
    if model_type is None:
        raise UnknownAnatomy("config names no model_type")
    draft, reader = draft_of(fields), reader_for(model_type)
    if draft is None and reader is None:
        raise UnknownAnatomy(f"architecture '{shown(model_type)}' is not described yet")
    named = architecture_of(fields)
    fields = Fields(with_described_classes(fields.config, DRAFT if draft else model_type))
    anatomy = dflash(fields, draft) if draft else reader(fields)
    if architecture_of(fields) != named:
        anatomy = replace(anatomy, architecture=named)
    if model_type in written_out() and anatomy.has_flash_attention:
        anatomy = replace(anatomy, has_flash_attention=False)
    check_parts(fields.config, anatomy)
    anatomy = with_activations(fields, anatomy)
    return anatomy if draft else with_towers(fields, anatomy)
