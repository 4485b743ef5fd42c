"""What Transformers would write of a model, by name: type and shape of each tensor. Run in an environment that has it (accelerate's):
`python headers.py FOLDER…` writes beside each config.json the header, and the config with all that its class takes by default, as whole.json.
Nothing is allocated."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import transformers


def write(folder: Path) -> None:
    config = transformers.AutoConfig.from_pretrained(folder)
    name = (config.architectures or [""])[0]
    kind = getattr(transformers, name, None) or transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind(config) if kind is not transformers.AutoModelForCausalLM else kind.from_config(config)
    seen, found = set(), {}
    for name, tensor in model.state_dict(keep_vars=True).items():  # tied tensors are written once
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = list(tensor.shape)
    whole = config.to_dict() | {"architectures": [type(model).__name__], "dtype": "bfloat16", "torch_dtype": "bfloat16"}
    (folder / "whole.json").write_text(json.dumps(whole, default=str), encoding="utf-8")
    (folder / "header.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    for place in sys.argv[1:]:
        write(Path(place))
