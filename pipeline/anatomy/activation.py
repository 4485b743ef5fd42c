"""The activation function between the projections of a feed-forward block.

It decides how many tensors a block holds at its peak: SiLU and the C++ GELU are one kernel, `gelu_new` is five. Names are those
of `hidden_act` in configs. Where a config is silent the default of its config class in transformers 5.23.0 holds: SiLU for gated
blocks, GELU for plain ones, or the exceptions below.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy

_NAMES = ("hidden_activation", "hidden_act", "mlp_hidden_act", "activation_function", "activation", "feed_forward_proj")
_CLASS_DEFAULTS = {
    "gelu_new": ("gpt2", "gptj", "gpt_neo", "codegen", "phi", "albert", "xglm"),
    "gelu_pytorch_tanh": (
        "gpt_bigcode", "starcoder2", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text",
        "gemma4_unified", "gemma4_unified_text", "paligemma", "t5gemma", "recurrentgemma", "recurrent_gemma", "siglip",
    ),
    "gelu_tanh": ("bloom",),
    "relu": ("opt", "t5", "reformer", "mobilebert"),
    "gelu_new_gated": ("mt5",),
    "relu2": ("nemotron", "nemotron_h", "persimmon", "fuyu", "bitnet", "arcee"),
    "quick_gelu": ("clip",),
    "xielu": ("apertus", "apertus1p5"),
    "gelu": ("modernbert", "neobert"),
}  # fmt: skip
_OF_CLASS = {model_type: name for name, types in _CLASS_DEFAULTS.items() for model_type in types}
_OF_LANGUAGE_MODEL = ("text", "encoder", "decoder")


def with_activations(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The same anatomy, with the activation of every block of the language model named."""
    text = next((inner for name in ("text_config", "llm_config") if isinstance(inner := fields.raw(name), dict)), {})
    levels = (text, fields.config)
    stated = next((v for level in levels for name in _NAMES if isinstance(v := level.get(name), str)), None)
    default = next((_OF_CLASS[t] for level in levels if (t := str(level.get("model_type"))) in _OF_CLASS), None)
    return replace(
        anatomy,
        feed_forward=tuple(
            replace(f, activation=f.activation or stated or default or ("silu" if f.is_gated else "gelu"))
            if f.component in _OF_LANGUAGE_MODEL
            else f
            for f in anatomy.feed_forward
        ),
    )
