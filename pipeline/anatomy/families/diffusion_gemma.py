"""DiffusionGemma: Gemma 4 with experts, as an encoder of what is written and as a decoder that fills a canvas of tokens.

The two share all their weights, which are counted once; the decoder adds a small gated block for its own last guess. Keys and
values of the prompt and of finished canvases are cached as Gemma 4's are. Source: transformers 5.23.0, models/diffusion_gemma.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.multimodal_woven import read_gemma4
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, nested

# What its layers are, whatever the config says: values are keys in full layers, experts stand beside every dense block.
LAYERS = {
    "attention_k_eq_v": True,
    "enable_moe_block": True,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
    "model_type": "gemma4_text",
}


@family("diffusion_gemma")
def diffusion_gemma(fields: Fields) -> Anatomy:
    if not fields.flag("tie_word_embeddings", default=True):
        raise UnknownAnatomy(f"{fields.where} does not tie encoder and decoder, which is not described")
    inner = nested(fields, "text_config")
    config = {**fields.config, "model_type": "gemma4", "audio_config": None, "architectures": None}
    config["vision_config"] = fields.raw("vision_config", default={})  # built even where the config does not name it
    both = read_gemma4(Fields({**config, "text_config": {**inner.config, **LAYERS}}, fields.where))
    guess, width = Part("text"), inner.count("intermediate_size", default=9216)
    guess.mlp(1, both.hidden_size, width, gated=True, bias=False, kind="last-guess")
    guess.norm(both.hidden_size, bias=False)
    biases = sum(t.element_count for t in both.tensors if t.component == "text" and t.role == "bias")
    guess.vector(biases, "bias")  # the only weights that encoder and decoder do not share
    return add_parts(fields, both, [guess])
