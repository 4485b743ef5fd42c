"""GPT-2 and the decoders of its time: layer norms, no gates, biases, positions learned or added to the scores.

Their feed-forward is four times the hidden size where the config states no other width. Sizes in elements.
Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.reading import Heads, dropout, layer_count
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
    positions = fields.size("n_positions", "max_position_embeddings", "n_ctx")
    decoder.embed(positions=positions)
    decoder.attention(
        decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True, bias=True, operator="linear-subclass"
    )
    decoder.mlp(decoder.layers, width(fields, decoder, "n_inner"), gated=False, bias=True, operator="linear-subclass")
    decoder.ends()
    store_masks(decoder, positions)
    return decoder.build(hidden_dropout=dropout(fields, "resid_pdrop"), attention_dropout=dropout(fields, "attn_pdrop"))


@family("gpt_bigcode")
def gpt_bigcode(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed(positions=fields.size("n_positions", "max_position_embeddings", "n_ctx"))
    heads = Heads.ungrouped(fields, decoder.hidden)
    if fields.flag("multi_query"):
        heads = Heads(heads.count, 1, heads.dim, heads.dim)
    decoder.attention(decoder.layers, heads, fused=True, bias=True)
    decoder.mlp(decoder.layers, width(fields, decoder, "n_inner"), gated=False, bias=True)
    decoder.ends()
    return decoder.build(hidden_dropout=dropout(fields, "resid_pdrop"), attention_dropout=dropout(fields, "attn_pdrop"))


@family("gpt_neo")
def gpt_neo(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    positions = fields.size("max_position_embeddings")
    decoder.embed(positions=positions)
    # local layers read a window and cache the whole context all the same
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), out_bias=True)
    local = _neo_kinds(fields, decoder.layers).count("local")
    decoder.mlp(decoder.layers, width(fields, decoder, "intermediate_size"), gated=False, bias=True)
    decoder.ends()
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
    store_masks(decoder, fields.size("n_positions", "max_position_embeddings"))
    return decoder.build(is_block_parallel=True, has_flash_attention=False)


@family("gpt_neox")
def gpt_neox(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    heads = Heads.ungrouped(fields, decoder.hidden)
    decoder.attention(decoder.layers, heads, fused=True, bias=fields.flag("attention_bias"))
    decoder.mlp(decoder.layers, fields.count("intermediate_size"), gated=False, bias=True)
    decoder.ends()
    rotary = int(heads.dim * min(1, fields.number("rotary_pct", default=0.25))) // 2
    store_masks(decoder, fields.size("max_position_embeddings"))
    decoder.store("rotary frequencies", decoder.layers * rotary)
    return decoder.build(is_block_parallel=fields.flag("use_parallel_residual"))


@family("opt")
def opt(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    hidden, layers = decoder.hidden, decoder.layers
    narrow = fields.count("word_embed_proj_dim", default=hidden)
    decoder.embed(width=narrow)
    positions = fields.size("max_position_embeddings") + 2  # two unused rows before the first position
    decoder.add("embedding", "position_embedding", "embedding", 1, positions, hidden)
    if narrow != hidden:
        decoder.linear("other", "embedding_projection", 1, hidden, narrow)
        decoder.linear("other", "embedding_projection", 1, narrow, hidden)
    bias = fields.flag("enable_bias")
    decoder.attention(layers, Heads.ungrouped(fields, hidden), bias=bias)
    decoder.mlp(layers, fields.count("ffn_dim"), gated=False, bias=bias)
    if fields.flag("layer_norm_elementwise_affine"):
        decoder.norm(layers, each=2)
        if fields.flag("do_layer_norm_before") and not fields.flag("_remove_final_layer_norm"):
            decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"), width=narrow)
    return decoder.build(hidden_dropout=dropout(fields, "dropout"))


@family("bloom")
def bloom(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed()
    decoder.norm(1)
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True, bias=True)
    decoder.mlp(decoder.layers, 4 * decoder.hidden, gated=False, bias=True)
    decoder.ends()
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
    is_new, is_parallel = fields.flag("new_decoder_architecture"), fields.flag("parallel_attn")
    kv_count = fields.count("num_kv_heads", "n_head_kv", default=count) if is_new else count
    if not is_new and fields.flag("multi_query"):
        kv_count = 1
    bias = fields.flag("bias")
    heads = Heads(count, kv_count, dim, dim)
    decoder.attention(layers, heads, fused=True, bias=bias, operator="linear-subclass")
    decoder.mlp(layers, width(fields, decoder, "ffn_hidden_size"), gated=False, bias=bias, operator="linear-subclass")
    norms = fields.count("num_ln_in_parallel_attn", default=2 if is_new else 1)
    decoder.norm(layers, each=2 if not is_parallel or norms == 2 else 1)
    decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build(is_block_parallel=is_parallel)


@family("mpt")
def mpt(fields: Fields) -> Anatomy:
    decoder = Decoder(fields, norm_kind="layer", norm_bias=False)
    decoder.embed()
    decoder.attention(decoder.layers, Heads.ungrouped(fields, decoder.hidden), fused=True)
    decoder.mlp(decoder.layers, 4 * decoder.hidden, gated=False)
    decoder.ends()
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


@family("biogpt")
def biogpt(fields: Fields) -> Anatomy:
    """Two rows of positions before the first are unused."""
    decoder = Decoder(fields, norm_kind="layer")
    decoder.embed(positions=fields.size("max_position_embeddings") + 2)
    biased(decoder, fields, fields.count("intermediate_size"))
    return decoder.build(
        hidden_dropout=dropout(fields, "hidden_dropout_prob"),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob"),
    )


@family("xglm")
def xglm(fields: Fields) -> Anatomy:
    """Positions are computed, not learned. Its own names for heads and layers."""
    decoder = Decoder(fields, norm_kind="layer", layers=layer_count(fields, "num_layers", "num_hidden_layers"))
    decoder.embed()
    heads = fields.count("attention_heads", "num_attention_heads")
    named = Fields({"num_attention_heads": heads}, fields.where)
    biased(decoder, fields, fields.count("ffn_dim"), Heads.ungrouped(named, decoder.hidden))
    return decoder.build(
        hidden_dropout=dropout(fields, "dropout"), attention_dropout=dropout(fields, "attention_dropout")
    )


@family("openai-gpt")
def openai_gpt(fields: Fields) -> Anatomy:
    """GPT-2's layers with the norms after the blocks and none at the end. Its class caches nothing."""
    decoder = Decoder(fields, norm_kind="layer")
    layers, hidden = decoder.layers, decoder.hidden
    positions = fields.size("n_positions", "max_position_embeddings")
    decoder.embed(positions=positions)
    store_masks(decoder, positions)
    heads = Heads.ungrouped(fields, hidden)
    decoder.attention(layers, heads, fused=True, bias=True, operator="linear-subclass", cached=0)
    decoder.mlp(layers, 4 * hidden, gated=False, bias=True, operator="linear-subclass")
    decoder.norm(layers, each=2)
    decoder.head(tied=fields.flag("tie_word_embeddings"))
    return decoder.build(hidden_dropout=dropout(fields, "resid_pdrop"), attention_dropout=dropout(fields, "attn_pdrop"))


@family("gpt_neox_japanese")
def gpt_neox_japanese(fields: Fields) -> Anatomy:
    """No biases but that of the last layer's output projection."""
    decoder = Decoder(fields, norm_kind="layer")
    layers, hidden = decoder.layers, decoder.hidden
    decoder.embed()
    decoder.attention(layers, Heads.ungrouped(fields, hidden), fused=True)
    decoder.vector("bias", 1, hidden)
    decoder.mlp(layers, fields.size("intermediate_multiple_size") * hidden, gated=False)
    decoder.ends()
    return decoder.build(attention_dropout=dropout(fields, "attention_dropout"), has_flash_attention=False)


def biased(decoder: Decoder, fields: Fields, width: int, heads: Heads | None = None) -> None:
    """Layers in which everything has a bias, and a norm at the end."""
    decoder.attention(decoder.layers, heads or Heads.ungrouped(fields, decoder.hidden), bias=True)
    decoder.mlp(decoder.layers, width, gated=False, bias=True)
    decoder.ends()
