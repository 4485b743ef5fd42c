"""Kimi-K3: Kimi's delta attention, gated latent attention, experts in a narrower latent, residuals over blocks of layers.

Shapes [out, in], h the hidden size, l the experts' latent: h → l before the experts and l → h after them and a norm;
shared experts work on h. In front of each mixer and feed-forward a norm [h] and a query [1, h] weigh the residuals of the
blocks before. Source: torchtitan's models/kimi_k3 and the vLLM and MLX ports, which agree with the published total; the
released files hold one decay for each element of a head and not one for each head.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.delta import kimi_attending
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.parts.mixers import kimi_delta
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, layer_count, nested


@family("kimi_k3")
def kimi_k3(fields: Fields) -> Anatomy:
    inner = nested(fields, "text_config")
    tied = {"tie_word_embeddings": fields.flag("tie_word_embeddings")}
    text = language_model(Fields({**inner.config, **tied, "architectures": None}, inner.where))
    vision = nested(fields, "vision_config")
    return add_parts(fields, text, [tower(vision), projector(vision, text.hidden_size)])


def language_model(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    attending = kimi_attending(fields, layers)
    latent = Latent().read(fields, hidden)
    latent_attention(decoder, fields, attending, latent)
    if fields.flag("mla_use_output_gate"):
        heads = fields.count("num_attention_heads")
        decoder.linear("attention", "attention_gate", attending, heads * latent.value, hidden)
    linear = nested(fields, "linear_attn_config")
    dim = linear.count("head_dim", default=128)
    kimi_delta(
        decoder,
        layers - attending,
        heads=linear.count("num_heads"),
        dim=dim,
        kernel=linear.count("short_conv_kernel_size", default=4),
        full_rank=("gate",) if linear.flag("use_full_rank_gate") else (),
        decays=dim,
    )
    dense = fields.count("first_k_dense_replace", default=0, least=0)
    if dense > layers:
        raise ContradictoryConfig(f"{fields.where}: {dense} dense layers of {layers}")
    if dense:
        decoder.mlp(dense, fields.count("intermediate_size"))
    latent_experts(decoder, fields, layers - dense)
    if fields.raw("attn_res_block_size") is not None:
        for role in ("attention_residual", "ffn_residual"):
            decoder.linear("other", role, layers, 1, hidden)
        decoder.linear("other", "output_residual", 1, 1, hidden)
        decoder.norm(2 * layers + 1)
    return decoder.finish()


def latent_experts(decoder: Decoder, fields: Fields, layers: int) -> None:
    if layers == 0:
        return
    width, inner = fields.count("moe_intermediate_size"), fields.count("routed_expert_hidden_size", default=None)
    decoder.moe(
        layers,
        fields.count("num_experts"),
        fields.count("num_experts_per_token", "num_experts_per_tok", default=16),
        width,
        shared_width=width * fields.count("num_shared_experts", default=0, least=0),
        expert_inner=inner,
        correction=True,
    )
    if inner is not None:
        decoder.linear("feed-forward", "latent_down", layers, inner, decoder.hidden)
        decoder.norm(layers if fields.flag("latent_moe_use_norm") else 0, inner)
        decoder.linear("feed-forward", "latent_up", layers, decoder.hidden, inner)


def tower(fields: Fields) -> Part:
    """MoonViT whose queries, keys and values are together `qkv_hidden_size` wide each; positions in time are fixed."""
    part = Part("vision", "vision-tower")
    kinds = {"mlp_type": "mlp2", "norm_type": "rmsnorm", "pos_emb_type": "divided_fixed"}
    for name, known in kinds.items():
        if fields.text(name, default=known) != known:
            raise UnknownAnatomy(f"{fields.where}.{name} is not '{known}'")
    hidden, layers = fields.count("vt_hidden_size"), layer_count(fields, "vt_num_hidden_layers")
    heads, patch = fields.count("vt_num_attention_heads"), fields.count("patch_size", default=14)
    wide, bias = fields.count("qkv_hidden_size", default=hidden), fields.flag("linear_bias")
    part.conv(hidden, 3, patch, patch, bias=fields.flag("patch_embed_proj_bias"))
    rows = fields.count("init_pos_emb_height") * fields.count("init_pos_emb_width")
    part.parameter(rows * hidden, "position_embedding")
    dim = fields.divide(wide, heads, "qkv_hidden_size")
    part.mixer(layers, hidden, heads, head_dim=dim, bias=fields.flag("attn_bias"), fused=True)
    part.mlp(layers, hidden, fields.count("vt_intermediate_size"), bias=bias)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(hidden, bias=False)
    part.hidden, part.layers = hidden, layers
    return part


def projector(fields: Fields, text: int) -> Part:
    if fields.text("mm_projector_type", default="patchmergerv2") != "patchmergerv2":
        raise UnknownAnatomy(f"{fields.where}.mm_projector_type is not 'patchmergerv2'")
    part, joined = Part("projector", "projector"), fields.count("mm_hidden_size", "vt_hidden_size")
    for side in fields.items("merge_kernel_size", length=2) or [2, 2]:
        joined *= Fields({"merge_kernel_size": side}, fields.where).count("merge_kernel_size")
    part.linear("projector_up", joined, joined, bias=False)
    part.linear("projector_down", joined, text, bias=False)
    part.norm(text, bias=False)
    return part
