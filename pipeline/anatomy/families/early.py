"""GPT-2 and the decoders of its time: layer norms, no gates, biases, positions learned or added to the scores.

Their feed-forward is four times the hidden size where the config states no other width. Sizes in elements.
Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.reading import Heads, dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy


def width(fields: Fields, decoder: Decoder, *names: str) -> int:
    return fields.count(*names, default=4 * decoder.hidden)


def store_masks(decoder: Decoder, positions: int, layers: int | None = None) -> None:
    """Causal masks of positions² values that older versions kept in every layer, and with them in the checkpoint."""
    decoder.store("attention-mask buffers", (decoder.layers if layers is None else layers) * positions**2)


@family("gpt2", "gpt-sw3")
def gpt2(fields: Fields) -> Anatomy:
    if fields.flag("add_cross_attention"):
        raise UnknownAnatomy("a GPT-2 with cross-attention is half of another model")
    decoder = Decoder(fields, norm_kind="layer")
    positions = fields.count("n_positions", "max_position_embeddings", "n_ctx", default=1024)
    decoder.embed(positions=positions)
    decoder.attention(
        decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True, bias=True, operator="linear-subclass"
    )
    decoder.mlp(decoder.layers, width(fields, decoder, "n_inner"), gated=False, bias=True, operator="linear-subclass")
    decoder.ends(tied=True)
    store_masks(decoder, positions)
    return decoder.build(
        hidden_dropout=dropout(fields, "resid_pdrop", default=0.1),
        attention_dropout=dropout(fields, "attn_pdrop", default=0.1),
    )


@family("gpt_bigcode")
def gpt_bigcode(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed(positions=fields.count("n_positions", "max_position_embeddings", "n_ctx", default=1024))
    heads = Heads.ungrouped(fields, decoder.hidden)
    if fields.flag("multi_query", default=True):
        heads = Heads(heads.count, 1, heads.dim, heads.dim)
    decoder.attention(decoder.layers, heads, fused=True, bias=True)
    decoder.mlp(decoder.layers, width(fields, decoder, "n_inner"), gated=False, bias=True)
    decoder.ends(tied=True)
    return decoder.build(
        hidden_dropout=dropout(fields, "resid_pdrop", default=0.1),
        attention_dropout=dropout(fields, "attn_pdrop", default=0.1),
    )


@family("gpt_neo")
def gpt_neo(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    positions = fields.count("max_position_embeddings", default=2048)
    decoder.embed(positions=positions)
    # local layers read a window and cache the whole context all the same
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), out_bias=True)
    local = _neo_kinds(fields, decoder.layers).count("local")
    decoder.mlp(decoder.layers, width(fields, decoder, "intermediate_size"), gated=False, bias=True)
    decoder.ends(tied=True)
    store_masks(decoder, positions, local)
    return decoder.build(has_flash_attention=False)


def _neo_kinds(fields: Fields, layers: int) -> list[str]:
    """`attention_types` [[[global, local], 12]]: each list of kinds so many times."""
    groups = fields.items("attention_types") or [[["global", "local"], 12]]
    kinds: list[str] = []
    for group in groups:
        if not (isinstance(group, list) and len(group) == 2 and isinstance(group[0], list)):
            raise ContradictoryConfig(f"{fields.where}.attention_types is not a list of [kinds, times]")
        times = Fields({"times": group[1]}, f"{fields.where}.attention_types").repeats("times", least=1)
        if len(kinds) + times * len(group[0]) > layers:
            break
        kinds += group[0] * times
    if len(kinds) != layers:
        raise ContradictoryConfig(f"{fields.where}.attention_types does not describe {layers} layers")
    return kinds


@family("gptj", "codegen")
def gptj(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    is_codegen = fields.text("model_type") == "codegen"
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=is_codegen)
    decoder.mlp(decoder.layers, width(fields, decoder, "n_inner"), gated=False, bias=True)
    decoder.norm(decoder.layers)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"), bias=True)
    store_masks(decoder, fields.count("n_positions", "max_position_embeddings", default=2048))
    return decoder.build(is_block_parallel=True, has_flash_attention=False)


@family("gpt_neox")
def gpt_neox(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    heads = Heads.ungrouped(fields, decoder.hidden)
    decoder.attention(decoder.layers, heads, fused=True, bias=fields.flag("attention_bias", default=True))
    decoder.mlp(decoder.layers, fields.count("intermediate_size"), gated=False, bias=True)
    decoder.ends()
    rotary = int(heads.dim * min(1, fields.number("rotary_pct", default=0.25))) // 2
    store_masks(decoder, fields.count("max_position_embeddings", default=2048))
    decoder.store("rotary frequencies", decoder.layers * rotary)
    return decoder.build(is_block_parallel=fields.flag("use_parallel_residual", default=True))


@family("opt")
def opt(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    hidden, layers = decoder.hidden, decoder.layers
    narrow = fields.count("word_embed_proj_dim", default=hidden)
    decoder.embed(width=narrow)
    positions = fields.count("max_position_embeddings", default=2048) + 2  # two unused rows before the first position
    decoder.add("embedding", "position_embedding", "embedding", 1, positions, hidden)
    if narrow != hidden:
        decoder.linear("other", "embedding_projection", 1, hidden, narrow)
        decoder.linear("other", "embedding_projection", 1, narrow, hidden)
    bias = fields.flag("enable_bias", default=True)
    decoder.attention(layers, Heads.ungrouped(fields, hidden), bias=bias)
    decoder.mlp(layers, fields.count("ffn_dim"), gated=False, bias=bias)
    if fields.flag("layer_norm_elementwise_affine", default=True):
        decoder.norm(layers, each=2)
        if fields.flag("do_layer_norm_before", default=True) and not fields.flag("_remove_final_layer_norm"):
            decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=True), width=narrow)
    return decoder.build(hidden_dropout=dropout(fields, "dropout", default=0.1))


@family("bloom")
def bloom(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    decoder.norm(1)
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True, bias=True)
    decoder.mlp(decoder.layers, 4 * decoder.hidden, gated=False, bias=True)
    decoder.ends(tied=True)
    return decoder.build(has_flash_attention=False)


@family("falcon")
def falcon(fields: Fields) -> Anatomy:
    """The projections are a subclass of nn.Linear. Transformers repeats the shared key-value heads of the new
    architecture before caching them; what attention needs is the heads that there are."""
    decoder = Decoder(fields, norm_kind="layer")
    hidden, layers = decoder.hidden, decoder.layers
    decoder.embed()
    count = fields.count("num_attention_heads", "n_head")
    dim = fields.divide(hidden, count, "hidden size")
    is_new, is_parallel = fields.flag("new_decoder_architecture"), fields.flag("parallel_attn", default=True)
    kv_count = fields.count("num_kv_heads", "n_head_kv", default=count) if is_new else count
    if not is_new and fields.flag("multi_query", default=True):
        kv_count = 1
    bias = fields.flag("bias")
    heads = Heads(count, kv_count, dim, dim)
    decoder.attention(layers, heads, fused=True, bias=bias, operator="linear-subclass")
    decoder.mlp(layers, width(fields, decoder, "ffn_hidden_size"), gated=False, bias=bias, operator="linear-subclass")
    norms = fields.count("num_ln_in_parallel_attn", default=2 if is_new else 1)
    decoder.norm(layers, each=2 if not is_parallel or norms == 2 else 1)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=True))
    return decoder.build(is_block_parallel=is_parallel)


@family("mpt")
def mpt(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer", norm_bias=False)
    decoder.embed()
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True)
    decoder.mlp(decoder.layers, 4 * decoder.hidden, gated=False)
    decoder.ends(tied=True)
    return decoder.build(has_flash_attention=False)


@family("phi")
def phi(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    qk_norm = "head" if fields.flag("qk_layernorm") else None
    decoder.attention(decoder.layers, Heads.read(fields, decoder.hidden), bias=True, qk_norm=qk_norm)
    decoder.mlp(decoder.layers, fields.count("intermediate_size"), gated=False, bias=True)
    decoder.norm(decoder.layers)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"), bias=True)
    return decoder.build(is_block_parallel=True)
