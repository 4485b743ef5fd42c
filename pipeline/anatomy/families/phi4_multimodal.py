"""Phi-4-multimodal as Transformers has it: a Phi-3 that sees through a SigLIP and hears through a conformer.

The adapters of its checkpoint are loaded beside it, and are not part of the class. Source: transformers 5.23.0, models/phi4_multimodal.
"""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family, reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers import audio_tower, vision_tower
from pipeline.anatomy.towers.part import Part


@family("phi4_multimodal")
def phi4_multimodal(fields: Fields) -> Anatomy:
    text = reader_for("phi3")(fields)
    width = text.hidden_size
    seen, heard = (nested(fields, name, required=False).filled() for name in ("vision_config", "audio_config"))
    sees, hears = "phi4_multimodal_vision", "phi4_multimodal_audio"
    tower = vision_tower(seen.but({"model_type": sees}), sees)
    ears = audio_tower(heard.but({"model_type": hears}), hears)
    joint = Part("projector", "projector")
    joint.parameter(tower[0].hidden, "image_newline", count=2)
    joint.linear("projector_up", tower[0].hidden, width)
    joint.linear("projector_up", ears[0].hidden * heard.count("downsample_rate"), width, count=2)
    joint.linear("projector_down", width, width, count=3)
    stored = text.stored_extra | {"mean and scale of mel bins": 2 * heard.count("input_size")}
    return add_parts(fields, text, [*tower, *ears, joint], stored_extra=stored)
