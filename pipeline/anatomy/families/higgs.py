"""Higgs Audio v2: a Llama whose layers hold a second feed-forward and two more norms for audio tokens.

Source: transformers 5.23.0, models/higgs_audio_v2. What is built to generate has a head over the codebooks of sound and none
over text; checkpoints hold the latter too.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.reading import Heads, dropout, head_kind
from pipeline.anatomy.rows import Anatomy


@family("higgs_audio_v2")
def higgs_audio_v2(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    codes = fields.count("num_codebooks", default=8) * fields.count("codebook_size", default=1024)
    decoder.add("embedding", "audio_embedding", "embedding", 1, codes, hidden)
    heads = Heads.read(fields, hidden, kv_default=8, dim_default=128)
    decoder.attention(layers, heads, bias=fields.flag("attention_bias"))
    width, bias = fields.count("intermediate_size"), fields.flag("mlp_bias")
    decoder.mlp(layers, width, bias=bias)
    decoder.mlp(layers, width, bias=bias)
    decoder.norm(layers, each=4)
    decoder.norm(1)
    if head_kind(fields) == "vocabulary":
        decoder.linear("head", "audio_head", 1, codes, hidden)
        decoder.store("head over text, which training uses", decoder.vocab * hidden)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))
