"""JetMoE: experts in attention too, each with queries and outputs of its own over keys and values that all share.

Source: transformers 5.23.0, models/jetmoe.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.rows import Anatomy


@family("jetmoe")
def jetmoe(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    shared, dim = fields.count("num_key_value_heads", default=16), fields.count("kv_channels", "head_dim", default=128)
    experts, chosen = fields.count("num_local_experts", default=8), fields.count("num_experts_per_tok", default=2)
    decoder.linear("attention", "attention_kv", layers, 2 * shared * dim, hidden)
    decoder.linear("router", "router", layers, experts, hidden)
    decoder.add("expert", "expert_query", "expert", layers, shared * dim, hidden, experts)
    decoder.add("expert", "expert_output", "expert", layers, hidden, shared * dim, experts)
    decoder.vector("bias", layers, hidden, 2)
    decoder.mixer(
        kind="full",
        mechanism="full",
        layer_count=layers,
        head_count=shared * chosen,  # whatever the config says
        kv_head_count=shared,
        head_dim=dim,
        value_head_dim=dim,
        elements_per_token=2 * shared * dim,
    )
    decoder.moe(layers, experts, chosen, fields.count("intermediate_size", default=5632), router="linear")
    return decoder.finish(tied=True)
