"""RWKV 4: a linear recurrence in place of attention, and a gated channel mix; what a sequence keeps does not grow.

Of every sequence a layer keeps the last inputs of its two halves, and three sums in fp32.
Source: transformers 5.23.0, models/rwkv.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.mixers import recurrent
from pipeline.anatomy.rows import Anatomy

SUMS, LAST_INPUTS = 3, 2


@family("rwkv")
def read_rwkv(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    layers, hidden = decoder.layers, decoder.hidden
    inner = fields.count("attention_hidden_size", default=hidden)
    width = fields.count("intermediate_size", default=4 * hidden)
    decoder.embed()
    decoder.norm(1)  # before the first layer
    decoder.parameter("recurrent", "decay", layers, inner)
    decoder.parameter("recurrent", "bonus", layers, inner)
    decoder.parameter("recurrent", "token_shift", layers, hidden, each=3)
    for role in ("rwkv_key", "rwkv_value", "rwkv_receptance"):
        decoder.linear("recurrent", role, layers, inner, hidden)
    decoder.linear("recurrent", "rwkv_output", layers, hidden, inner)
    recurrent(decoder, layers, state=SUMS * hidden, conv=LAST_INPUTS * hidden)
    decoder.parameter("feed-forward", "token_shift", layers, hidden, each=2)
    decoder.linear("feed-forward", "ffn_receptance", layers, hidden, hidden)
    decoder.mlp(layers, width, gated=False)
    decoder.ends()
    return decoder.build(has_flash_attention=False)
