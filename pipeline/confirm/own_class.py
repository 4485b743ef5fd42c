"""What a sibling lends is a shape, and not the class that it was trained as: a reward model has the dims of the chat model that it was made of, and no head
over the vocabulary. The class of a model whose config is lent is the one of its own task.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.anatomy.model_classes import described
from pipeline.hub.record import Record

# by task, what its class is called behind the name of its family
_CLASSES = {"text-generation": "ForCausalLM", "feature-extraction": "Model", "sentence-similarity": "Model"}
_OTHER = {
    "ForCausalLM": re.compile(r"(\w+?)(?:For(?:Sequence|Token)Classification|(?<!LMHead)Model)"),
    "Model": re.compile(r"(\w+?)For(?:Sequence|Token)Classification"),
}


def in_its_class(record: Record) -> Record:
    """A record whose config is a sibling's, in the class of its task where that is one that the family has."""
    config = record.config or {}
    suffix, names = _CLASSES.get(record.pipeline_tag or ""), config.get("architectures")
    if record.config_kind != "sibling" or suffix is None or not isinstance(names, list) or len(names) != 1:
        return record
    found = _OTHER[suffix].fullmatch(names[0]) if isinstance(names[0], str) else None
    own = found and found[1] + suffix
    if not own or own not in described().get(str(config.get("model_type")), {}):
        return record
    inferred = (*record.config_inferred_fields, "architectures")
    return replace(record, config={**config, "architectures": [own]}, config_inferred_fields=inferred)
