"""Configs of architectures that nobody described, whose fields are those of a known shape.

Each candidate reads the config as its own. It counts only where it asked for every field that may shape a model: whatever it
did not look at (a number of experts, a rank, a list of layers) makes the config a stranger's. What a candidate finds is
no more than a guess; a published total has to confirm it, as it has to confirm a shape that is lent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.anatomy import read_config
from pipeline.anatomy.families import reader_for
from pipeline.anatomy.model_classes import described, head_in

# One of each plan, with its projections apart: that some are fused leaves no trace in a count.
CANDIDATES = (
    "llama", "qwen2", "qwen3", "olmo2", "stablelm", "gpt_neox", "starcoder2", "gpt2",
    "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "bert", "roberta", "modernbert",
)  # fmt: skip
# Fields that shape no tensor and no cache.
_IDLE = re.compile(
    r"token|eps|dropout|initializer|_std|init_|rope|rotary|theta|max_pos|positions$|use_cache|version|dtype|layerdrop|label|"
    r"softcap|logit|seed|loss|scal(e|ing)|multiplier|temperature|pretraining_tp|gradient|_name|auto_map|task|chunk_size_feed|"
    r"norm_topk|routed_scaling|output_|return_|problem_type|architectures|model_type|quantization|tokenizer|max_length|act_fn"
)

_OVER_THE_VOCABULARY = ("ForCausalLM", "LMHeadModel")  # the same head under the names of then and of now


class _Noted(dict):
    """A config that notes which of its fields were asked for."""

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(config)
        self.asked: set[str] = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name):
        self.asked.add(name)
        return super().__contains__(name)


def is_stranger(config: Mapping[str, Any] | None) -> bool:
    """Whether the config names an architecture that no reader describes."""
    named = config.get("model_type") if config else None
    return isinstance(named, str) and reader_for(named) is None


def readings(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The known architectures that explain every field of the config, and the config as theirs."""
    for model_type in CANDIDATES:
        theirs = _under_their_names(config, model_type)
        if theirs is None:
            continue
        noted = _Noted(theirs)
        try:
            read_config(noted)
        except Exception:
            continue
        if not any(_shapes(name, value) for name, value in config.items() if name not in noted.asked):
            yield model_type, dict(noted)


def _under_their_names(config: Mapping[str, Any], model_type: str) -> dict[str, Any] | None:
    """The config with the name of the known type, and of its class that has the same head; None where it has none."""
    names = config.get("architectures") or []
    if not isinstance(names, list) or len(names) > 1 or not all(isinstance(name, str) for name in names):
        return None
    classes = [_namesake(model_type, name) for name in names]
    own = {"architectures": classes} if classes else {}
    return {**config, "model_type": model_type, **own} if all(classes) else None


def _namesake(model_type: str, class_name: str) -> str | None:
    """The described class of another type with the same head: LlamaForCausalLM for any ...ForCausalLM."""
    head = head_in(class_name)
    heads = _OVER_THE_VOCABULARY if head in _OVER_THE_VOCABULARY else (head,)
    found = [name for name in described()[model_type] if head and name.endswith(heads)]
    return min(found, key=len, default=None)


def _shapes(name: str, value: Any) -> bool:
    """Whether a field may shape a model: not where it is off, empty or plain text, or of what shapes nothing."""
    return bool(value) and not isinstance(value, str) and not _IDLE.search(name)
