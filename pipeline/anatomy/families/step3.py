"""Step-3.7: sliding layers with more heads than full ones, gated by head, experts after a few dense layers, a vision tower.

Source: transformers 5.23.0, models/step3p7. The prediction layers, which the class does not load, are sliding layers with a
dense feed-forward and a head of their own: so they add up to the published total.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder, distinct
from pipeline.anatomy.parts.experts import Sparse, after_dense
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.parts.windows import window_of, windows_by_type
from pipeline.anatomy.reading import Heads, dropout, ratio
from pipeline.anatomy.rows import Anatomy
from pipeline.anatomy.towers.part import Part

SPARSE = Sparse(
    Plain(), experts=("moe_num_experts", "num_experts", "n_routed_experts", 288),
    chosen=("moe_top_k", "num_experts_per_tok", 8), width=("moe_intermediate_size", 1280),
    layers=after_dense("first_k_dense_replace", 3), shared_width=("share_expert_dim", "share_expert_dims", 1280),
    correction="buffer",
)  # fmt: skip


@family("step3p7")
def step3p7(fields: Fields) -> Anatomy:
    inner = fields.inner("text_config") or fields
    own = {"architectures": None, "tie_word_embeddings": fields.flag("tie_word_embeddings")}
    text = language_model(inner.but(own))
    vision = fields.inner("vision_config") or Fields({}, f"{fields.where}.vision_config")
    part, joint = tower(vision), Part("projector", "projector")
    bias = fields.flag("projector_bias")
    joint.linear("projector", part.hidden, text.hidden_size, bias=bias)
    return add_parts(fields, text, [part, joint])


def language_model(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    types = fields.items("layer_types")
    if types is not None:  # older files list the prediction layers' too
        fields = fields.but({"layer_types": types[:layers]})
    windows = windows_by_type(fields, layers, window_of(fields, 512))
    attend(decoder, fields, windows)
    routed = sum(SPARSE.layers(fields, layers))
    decoder.dense_mlp(layers - routed, "intermediate_size")
    SPARSE.sparse_layers(decoder, fields, routed)
    decoder.ends()
    if count := fields.repeats("num_nextn_predict_layers", default=0, least=0):
        one = decoder.ahead()
        attend(one, fields, [window_of(fields, 512)])
        one.mlp(1, fields.count("intermediate_size"))
        one.norm(1, each=5)
        one.linear("head", "head", 1, decoder.vocab, hidden)
        decoder.predict(one, count, listed=False)
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"))


def attend(decoder: Decoder, fields: Fields, windows: Sequence[int | None]) -> None:
    other = fields.inner("attention_other_setting") or Fields({}, fields.where)
    count = fields.count("num_attention_heads")
    sliding = fields.count("num_sliding_attention_heads", default=other.count("num_attention_heads", default=count))
    for window in distinct(windows):
        here = {"num_attention_heads": sliding if window else count}
        groups = fields.count("num_key_value_heads", "num_attention_groups", default=8)
        here |= {"num_key_value_heads": groups, "head_dim": fields.count("head_dim", default=128)}
        heads, number = Heads.read(Fields(here, fields.where), decoder.hidden), windows.count(window)
        decoder.attention(number, heads, window=window, qk_norm="head", bias=fields.flag("attention_bias"))
        decoder.linear("attention", "attention_gate", number, heads.count, decoder.hidden)


def tower(fields: Fields) -> Part:
    """Layers scaled by learned vectors, then two convolutions that halve each side and double the width."""
    part, hidden = Part("vision", "vision-tower"), fields.count("width", "hidden_size", default=1536)
    layers = fields.repeats("layers", "num_hidden_layers", default=47)
    patch, image = fields.count("patch_size", default=14), fields.count("image_size", default=728)
    part.conv(hidden, fields.count("num_channels", default=3), patch, patch, bias=False)
    part.embedding("position_embedding", (image // patch) ** 2, hidden)
    part.norm(hidden)
    width = int(hidden * ratio(fields, "mlp_ratio", 8960 / 1536))
    part.block(layers, hidden, width, fields.count("heads", "num_attention_heads", default=16))
    part.vector(hidden, layers=layers, count=2)
    part.conv(2 * hidden, hidden, 3, 3)
    part.conv(4 * hidden, 2 * hidden, 3, 3)
    part.hidden, part.layers = 4 * hidden, layers
    return part
