"""The activation function between the projections of a feed-forward block.

It decides how many tensors a block holds at its peak: SiLU and the C++ GELU are one kernel, `gelu_new` is five. Names are those
of `hidden_act` in configs. Where a config is silent the default of its config class in transformers holds; where that has none,
SiLU for gated blocks and GELU for plain ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy

_NAMES = ("hidden_activation", "hidden_act", "mlp_hidden_act", "activation_function", "activation", "feed_forward_proj")
_WITHOUT_A_FIELD = {
    "bloom": "gelu_tanh",
    "recurrentgemma": "gelu_pytorch_tanh",
    "neobert": "gelu",
    "apertus1p5": "xielu",
}
_SPELLINGS = {"gated-gelu": "gelu_new_gated"}  # what T5's classes make of it
_OF_LANGUAGE_MODEL = ("text", "encoder", "decoder")


@cache
def _of_class(model_type: str) -> str | None:
    default = class_defaults().get(model_type, {})
    levels = (default.get("text_config", {}), default)
    stated = next((v for level in levels for name in _NAMES if isinstance(v := level.get(name), str)), None)
    return stated or _WITHOUT_A_FIELD.get(model_type)


def with_activations(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The same anatomy, with the activation of every block of the language model named."""
    text = next((inner for name in ("text_config", "llm_config") if isinstance(inner := fields.raw(name), dict)), {})
    levels = (text, fields.config)
    stated = next((v for level in levels for name in _NAMES if isinstance(v := level.get(name), str)), None)
    default = next((name for level in levels if (name := _of_class(str(level.get("model_type"))))), None)
    named = _SPELLINGS.get(stated or default, stated or default)
    return replace(
        anatomy,
        feed_forward=tuple(
            replace(f, activation=f.activation or named or ("silu" if f.is_gated else "gelu"))
            if f.component in _OF_LANGUAGE_MODEL
            else f
            for f in anatomy.feed_forward
        ),
    )
