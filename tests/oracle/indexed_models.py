"""Models whose attention is picked by an index, as keys of a GGUF file: of these llama.cpp makes the tensors itself.

What its own converters write of a config (conversion/qwen4exp.py, deepseek.py, glm.py, minimax.py), as far as its graph reads it.
"""

from __future__ import annotations

SIGMOID, SQRT_SOFTPLUS = 2, 4


def keys_of(config: dict) -> tuple[str, dict] | None:
    """llama.cpp's name of the architecture and the keys of the file; None of a model without an index."""
    text = config.get("text_config") or config
    if not (kind := KINDS.get(text.get("model_type") or config["model_type"]) or KINDS.get(config["model_type"])):
        return None
    arch, more = kind
    experts = next(text[n] for n in ("num_experts", "n_routed_experts", "num_local_experts") if n in text)
    # (a gated delta rule has no dense feed-forward: the key is read all the same)
    width = text.get("dense_intermediate_size") or text.get("intermediate_size") or text["moe_intermediate_size"]
    return arch, {
        "block_count": text["num_hidden_layers"], "context_length": text["max_position_embeddings"],
        "embedding_length": text["hidden_size"], "feed_forward_length": width, "vocab_size": text["vocab_size"],
        "attention.head_count": text["num_attention_heads"], "attention.head_count_kv": text["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": 1e-6, "expert_count": experts, "expert_used_count": text["num_experts_per_tok"],
        "expert_feed_forward_length": text.get("moe_intermediate_size") or text["intermediate_size"],
        **more(text),
    }  # fmt: skip


def qwen4_exp(text: dict) -> dict:
    heads, ratio = (text["ngram_size"] - 1) * text["heads_per_ngram"], text["indexer_compress_ratio"]
    # (the table itself stays with the CPU: its rows are as few as there may be)
    return {
        "expert_shared_feed_forward_length": text["shared_expert_intermediate_size"],
        "attention.key_length": text["head_dim"], "attention.value_length": text["head_dim"],
        "rope.dimension_count": int(text["head_dim"] * text["partial_rotary_factor"]),
        "rope.dimension_sections": [*text["rope_parameters"]["mrope_section"], 0],
        "full_attention_interval": text["full_attention_interval"],
        "ssm.conv_kernel": text["linear_conv_kernel_dim"], "ssm.state_size": text["linear_key_head_dim"],
        "ssm.group_count": text["linear_num_key_heads"], "ssm.time_step_rank": text["linear_num_value_heads"],
        "ssm.inner_size": text["linear_value_head_dim"] * text["linear_num_value_heads"],
        "hyper_connection.count": text["hc_count"], "hyper_connection.low_rank": text["hc_lowrank"],
        "attention.indexer.head_count": text["indexer_n_heads"], "attention.indexer.key_length": text["indexer_head_dim"],
        "attention.indexer.top_k": text["indexer_budget"],
        "attention.compress_ratios": [ratio if kind == "full_attention" else 0 for kind in text["layer_types"]],
        "ple.layers": [i - 1 for i in text["ple_layer_ids"]], "ple.ngram_size": text["ngram_size"],
        "ple.heads_per_ngram": text["heads_per_ngram"], "ple.conv_kernel": text["ple_conv_kernel_size"],
        "ple.eos_token_id": 0, "embedding_length_per_layer_input": text["ple_embed_dim"] // heads,
        "ple.layer_multipliers": (1,) * text["ngram_size"], "ple.head_offsets": tuple(range(heads)),
        "ple.head_vocab_sizes": (1,) * heads,
    }  # fmt: skip


def latent(text: dict) -> dict:
    rotated, held = text["qk_rope_head_dim"], text["kv_lora_rank"]
    return {
        "attention.head_count_kv": 1, "attention.q_lora_rank": text["q_lora_rank"], "attention.kv_lora_rank": held,
        "attention.key_length": held + rotated, "attention.value_length": held,
        "attention.key_length_mla": text["qk_nope_head_dim"] + rotated, "attention.value_length_mla": text["v_head_dim"],
        "rope.dimension_count": rotated, "leading_dense_block_count": text.get("first_k_dense_replace", 3),
        "expert_shared_count": text["n_shared_experts"], "expert_gating_func": SIGMOID,
        "attention.indexer.head_count": text["index_n_heads"], "attention.indexer.key_length": text["index_head_dim"],
        "attention.indexer.top_k": text["index_topk"],
    }  # fmt: skip


def glm5_next(text: dict) -> dict:
    cached = [int(kind != "linear_attention") for kind in text["layer_types"]]
    return latent(text) | {
        "attention.head_count_kv": cached, "attention.layer_norm_epsilon": 1e-6, "ssm.conv_kernel": text["linear_conv_kernel_dim"],
        "kda.head_dim": text["linear_head_dim"], "attention.indexer.kpool": text["index_kpool"],
        "attention.indexer.kpool_select_tail": text["index_kpool_always_select_tail"],
        "hyper_connection.count": text["hc_mult"], "hyper_connection.sinkhorn_iterations": text["hc_sinkhorn_iters"],
        "hyper_connection.epsilon": 1e-6,
    }  # fmt: skip


def deepseek_v4(text: dict) -> dict:
    return {
        "attention.key_length": text["head_dim"], "attention.value_length": text["head_dim"],
        "attention.q_lora_rank": text["q_lora_rank"], "attention.sliding_window": text["sliding_window"],
        "rope.dimension_count": text["qk_rope_head_dim"], "expert_shared_count": text["n_shared_experts"],
        "expert_weights_scale": 1.0, "expert_weights_norm": True, "swiglu_clamp_exp": text["swiglu_limit"],
        "expert_gating_func": SQRT_SOFTPLUS, "hash_layer_count": 0,
        "attention.indexer.head_count": text["index_n_heads"], "attention.indexer.key_length": text["index_head_dim"],
        "attention.indexer.top_k": text["index_topk"], "attention.output_group_count": text["o_groups"],
        "attention.output_lora_rank": text["o_lora_rank"], "attention.compress_ratios": text["compress_ratios"],
        "attention.compress_rope_freq_base": float(text["compress_rope_theta"]), "hyper_connection.count": text["hc_mult"],
        "hyper_connection.sinkhorn_iterations": text["hc_sinkhorn_iters"], "hyper_connection.epsilon": 1e-6,
    }  # fmt: skip


def minimax_m3(text: dict) -> dict:
    sparse = text["sparse_attention_config"]
    return {
        "attention.key_length": text["head_dim"], "attention.value_length": text["head_dim"],
        "rope.dimension_count": text["rotary_dim"], "leading_dense_block_count": text["moe_layer_freq"].index(1),
        "expert_shared_count": text["n_shared_experts"], "expert_gating_func": SIGMOID,
        "attention.indexer.head_count": sparse["sparse_num_index_heads"],
        "attention.indexer.key_length": sparse["sparse_index_dim"], "attention.indexer.top_k": sparse["sparse_topk_blocks"],
        "attention.indexer.block_size": sparse["sparse_block_size"],
        "attention.indexer.local_blocks": sparse["sparse_local_block"],
    }  # fmt: skip


# model_type → llama.cpp's name, and what its converter writes beside the sizes that all have
KINDS = {
    "qwen4_exp": ("qwen4exp", qwen4_exp),
    "deepseek_v32": ("deepseek32", latent),
    "glm_moe_dsa": ("glm-dsa", latent),
    "glm5_next": ("glm5-next", glm5_next),
    "deepseek_v4": ("deepseek4", deepseek_v4),
    "minimax_m3_vl": ("minimax-m3", minimax_m3),
}
