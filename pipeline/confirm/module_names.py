"""What checkpoints call the modules of a language model: the other way round than tensor_names.py, for lists that name modules.

A list of a quantisation config leaves modules out, or takes them in, by names as they stand in the checkpoint. `names_of` gives the
names that a matrix of ours may have there, in one layer. Names are those of Transformers (5.23.0) and of remote code in their style.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.anatomy.rows import Tensor

# What stands before the number of a layer. The first is what a list is read with that names no place.
PLACES = (
    "model.layers", "language_model.model.layers", "model.language_model.layers", "model.language_model.model.layers",
    "language_model.layers", "model.text_model.layers", "thinker.model.layers", "llm.model.layers", "model.llm.layers", "model.decoder.layers",
    "transformer.layers", "transformer.h", "transformer.blocks", "transformer.encoder.layers", "backbone.layers", "gpt_neox.layers", "layers",
)  # fmt: skip
_ATTENTION = ("self_attn", "attn", "attention", "self_attention", "mixer")
_DENSE = ("mlp", "feed_forward", "ffn", "mixer")
_EXPERTS = (
    "mlp.experts",
    "block_sparse_moe.experts",
    "feed_forward.experts",
    "ffn.experts",
    "moe.experts",
    "mixer.experts",
    "experts",
)
_SHARED = tuple(
    f"{block}.{name}"
    for block in ("mlp", "block_sparse_moe", "feed_forward", "ffn", "moe", "mixer")
    for name in ("shared_experts", "shared_expert", "shared_mlp")
)
_DELTA = ("linear_attn", "self_attn")
_INDEXERS = ("self_attn.indexer", "attn.indexer", "self_attn")
_GATE, _UP, _DOWN = ("gate_proj", "w1", "wi_0"), ("up_proj", "w3", "c_fc", "fc1", "dense_h_to_4h"), (
    "down_proj", "w2", "c_proj", "fc2", "dense_4h_to_h")  # fmt: skip
_BOTH = ("gate_up_proj", *_GATE, *_UP)

# The names that the module of a role may have within its layer: blocks, and what the blocks call it.
_ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "attention_q": (_ATTENTION, ("q_proj", "wq", "query")),
    "attention_k": (_ATTENTION, ("k_proj", "wk", "key")),
    "attention_v": (_ATTENTION, ("v_proj", "wv", "value")),
    "attention_o": (_ATTENTION, ("o_proj", "out_proj", "wo", "dense", "c_proj")),
    "attention_qkv": (_ATTENTION, ("qkv_proj", "c_attn", "query_key_value", "wqkv", "W_pack", "q_proj", "k_proj", "v_proj")),
    "attention_kv": (_ATTENTION, ("wkv", "kv_proj")),
    "attention_o_a": (_ATTENTION, ("wo_a", "o_a_proj")),
    "attention_gate": (_ATTENTION, ("g_proj", "gate_proj")),
    "mla_q_a": (_ATTENTION, ("q_a_proj", "wq_a")),
    "mla_q_b": (_ATTENTION, ("q_b_proj", "wq_b", "q_proj")),
    "mla_kv_a": (_ATTENTION, ("kv_a_proj_with_mqa", "wkv_a", "wkv")),
    "mla_kv_b": (_ATTENTION, ("kv_b_proj", "wkv_b")),
    "indexer_q": (_INDEXERS, ("wq_b", "q_b_proj", "index_q_proj")),
    "indexer_k": (_INDEXERS, ("wk", "k_proj", "index_k_proj")),
    "indexer_qk": (_INDEXERS, ("index_q_proj", "index_k_proj")),
    "indexer_weights": (_INDEXERS, ("weights_proj", "indexers_proj")),
    "ffn_gate": (_DENSE, _GATE),
    "ffn_up": (_DENSE, _UP),
    "ffn_down": (_DENSE, _DOWN),
    "ffn_gate_up": (_DENSE, _BOTH),
    "expert_gate": (_EXPERTS, _GATE),
    "expert_up": (_EXPERTS, _UP),
    "expert_down": (_EXPERTS, _DOWN),
    "expert_gate_up": (_EXPERTS, _BOTH),
    "shared_gate": (_SHARED, _GATE),
    "shared_up": (_SHARED, _UP),
    "shared_down": (_SHARED, _DOWN),
    "shared_gate_up": (_SHARED, _BOTH),
    "shared_expert_gate": (("mlp",), ("shared_expert_gate",)),
    "router": (("mlp", "block_sparse_moe", "feed_forward", "ffn", "moe", "mixer", "router"), ("gate", "router", "proj")),
    "delta_q": (_DELTA, ("q_proj",)),
    "delta_k": (_DELTA, ("k_proj",)),
    "delta_v": (_DELTA, ("v_proj",)),
    "delta_qkv": (_DELTA, ("in_proj_qkv",)),
    "delta_qkvz": (_DELTA, ("in_proj_qkvz",)),
    "delta_z": (_DELTA, ("in_proj_z", "g_proj")),
    "delta_ba": (_DELTA, ("in_proj_ba",)),
    "delta_a": (_DELTA, ("in_proj_a", "a_proj")),
    "delta_b": (_DELTA, ("in_proj_b", "b_proj")),
    "delta_out": (_DELTA, ("out_proj", "o_proj")),
    "mamba_in": (("mixer", "mamba"), ("in_proj",)),
    "mamba_out": (("mixer", "mamba"), ("out_proj",)),
    "mamba_x": (("mixer", "mamba"), ("x_proj",)),
    "mamba_dt": (("mixer", "mamba"), ("dt_proj",)),
    "convolution_in": (("conv", "short_conv"), ("in_proj",)),
    "convolution_out": (("conv", "short_conv"), ("out_proj",)),
    "latent_up": (("mixer", "mlp", "block_sparse_moe"), ("fc2_latent_proj", "latent_up_proj")),
    "latent_down": (("mixer", "mlp", "block_sparse_moe"), ("fc1_latent_proj", "latent_down_proj")),
}  # fmt: skip
_HEADS = (
    "lm_head",
    "language_model.lm_head",
    "model.lm_head",
    "thinker.lm_head",
    "head",
    "output",
    "transformer.output_layer",
    "embed_out",
)


def is_named(tensor: Tensor) -> bool:
    return tensor.role in _ROLES or tensor.role == "head"


def leaves_of(tensor: Tensor) -> tuple[str, ...]:
    """Names of the module within a layer; of an expert those of the first, and of all in one."""
    blocks, own = _ROLES[tensor.role]
    names = [f"{block}.{name}" for block in blocks for name in own]
    if tensor.operator == "expert":
        names = [f"{block}.{part}" for block in blocks for name in own for part in (f"0.{name}", name)]
        names += [f"{block}" for block in blocks]
    return tuple(names)


def places_of(patterns: Iterable[str]) -> tuple[str, ...]:
    """Where the layers of a list are, by the names in it; a list that names no place is read with the usual ones."""
    patterns = [p for p in patterns if not p.startswith(("re:", "*"))]
    found = [place for place in PLACES if any(p.startswith(f"{place}.") for p in patterns)]
    return tuple(found) or PLACES[:2]


def names_of(tensor: Tensor, layer: int, places: Iterable[str]) -> tuple[str, ...]:
    """The names that a matrix may have in this layer; of a head, which lies in none, those of heads."""
    if tensor.role == "head":
        return _HEADS
    return tuple(f"{place}.{layer}.{leaf}" for place in places for leaf in leaves_of(tensor))
