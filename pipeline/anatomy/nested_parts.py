"""Parts of a model that its config describes and no reader took: a tower that nobody counted makes the whole unknown.

Every nested config that looks like that of a model notes whether it was read at all. What is nested for other reasons (quantisation, rope,
generation) has no sizes of layers in it and is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown

# A name that only configs of parts have, and sizes that only they state.
_NAMES = re.compile(
    r"(^|_)(text|llm|language|vision|visual|image|video|audio|speech|sound|vocoder|encoder|decoder|thinker|talker|tower|backbone|qformer|"
    r"adapter|chronos|eagle|draft)(_model|_tower|_encoder)?_(config|cfg)$|^(visual|vision|audio|speech)$"
)
_SIZES = {
    "hidden_size", "num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_attention_heads", "num_heads", "n_heads", "n_head", "depth",
    "embed_dim", "d_model", "n_embd", "width", "layers", "heads", "hidden_dim", "intermediate_size", "encoder_layers", "decoder_layers", "dim",
    "patch_size",
}  # fmt: skip
_TWO = 2  # sizes: one alone may be a knob of something else
# A tower that is named by its repository and not described.
_TOWERS = re.compile(r"^(mm_)?(vision|image|video|audio|speech)_(tower|encoder|backbone)(_name|_path|_name_or_path)?$")
_TOWER_CLASSES = {"vision-tower", "audio-tower"}
# Other models of the same pipeline, which are counted one by one (pipeline/anatomy/components.py); how weights are held.
_NOT_PARTS = re.compile(
    r"^(text_encoder_configs|_vae_config|part_configs|.*quantization.*|compression_config|generation_config|task_specific_params)$"
)
_DEEPEST = 8


class Part(dict):
    """A nested config that notes whether anything was read of it, or the whole copied."""

    is_read = False

    def get(self, name, default=None):
        self.is_read = True
        return super().get(name, default)

    def __getitem__(self, name):
        self.is_read = True
        return super().__getitem__(name)

    def __contains__(self, name):
        self.is_read = True
        return super().__contains__(name)

    def __iter__(self):
        self.is_read = True
        return super().__iter__()

    def keys(self):
        self.is_read = True
        return super().keys()

    def items(self):
        self.is_read = True
        return super().items()

    def values(self):
        self.is_read = True
        return super().values()


def with_parts(config: Any) -> Any:
    """The config whose nested configs of parts note that they are read; the same object where it has none."""
    if not isinstance(config, Mapping) or not any(isinstance(v, dict) for v in config.values()):
        return config
    noted = {name: _noted(name, value, _DEEPEST) for name, value in config.items()}
    return noted if any(noted[name] is not value for name, value in config.items()) else config


def _noted(name: Any, value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth < 1 or _NOT_PARTS.match(str(name)):
        return value
    inner = {key: _noted(key, v, depth - 1) for key, v in value.items()}
    if value and (_NAMES.search(str(name)) or len(_SIZES & value.keys()) >= _TWO):
        return Part(inner)
    return inner if any(inner[key] is not v for key, v in value.items()) else value


def check_parts(config: Mapping[str, Any], anatomy: Anatomy) -> None:
    """Raises UnknownAnatomy where a part of the model was not read, or a tower is named that the anatomy has not."""
    kind = shown(anatomy.model_type)
    unread = next(_unread(config, "", _DEEPEST), None)
    if unread:
        raise UnknownAnatomy(f"config has {unread}, a part that is not described for model_type '{kind}'")
    if _TOWER_CLASSES & {t.tensor_class for t in anatomy.tensors}:
        return
    for name, value in config.items():
        if isinstance(value, str) and value and isinstance(name, str) and _TOWERS.match(name):
            raise UnknownAnatomy(f"config names a tower ({shown(name)}) that is not described for model_type '{kind}'")


def leave_parts(config: Mapping[str, Any]) -> None:
    """For a class that builds none of them: the language model alone of a config that has towers."""
    for value in dict.values(config):
        if isinstance(value, Part):
            value.is_read = True
        if isinstance(value, dict):
            leave_parts(value)


def _unread(config: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    """Where a part stands that nothing was read of; what is nested in one that was read is looked at too."""
    for name, value in dict.items(config):
        if not isinstance(value, dict) or depth < 1:
            continue
        if isinstance(value, Part) and not value.is_read:
            yield f"{place}{shown(name)}"
        else:
            yield from _unread(value, f"{place}{shown(name)}.", depth - 1)
