"""Models of timm, which Transformers runs inside its class TimmWrapper: their tensors are listed by the library, not worked out."""

from __future__ import annotations

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part
from pipeline.anatomy.towers.timm import OPERATORS, classes, row_of, timm_tower


@family("timm_wrapper")
def read_timm(fields: Fields) -> Anatomy:
    row = row_of(fields)
    count = 0 if architecture_of(fields) == "TimmWrapperModel" else classes(fields, row)
    tower, head = timm_tower(row, row["classified" if count else "bare"]), Part("vision")
    for role, number, each, besides, *inputs in row["head"] if count else ():
        head.add(role, OPERATORS.get(role, "linear"), each * count + besides, *inputs, count=number)
    return assemble(
        fields.but({"model_type": "timm_wrapper"}),
        [tower, head],
        hidden=row["hidden_size"],
        layers=row["layer_count"],
        architecture=row["architecture"],
        stored_extra={"running statistics of batch norms": row["buffer_count"]},
    )
