"""What a tensor is by the name that a checkpoint gives it: one table of patterns, the first that is found decides.

Names are those of Transformers (5.23.0 and what it converts from, experts fused or not), of remote code in their style, and
of GGUF files (gguf-py's constants.py). A pattern is searched in the name without `.weight`; `*` stands for a number. In
towers, projectors and denoisers every tensor has the part's class, and the role is only said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# Parts of a model, by what stands in front of the tensor's own name. The first that is found decides.
_PARTS = (
    # of the vision tower, but trained with the language model as what joins them
    (r"(^|\.)(multi_modal_projector|mm_projector|aligner|modality_projection|connector|image_newline|embed_vision|embed_audio)(\.|$)", "projector"),
    (r"(^|\.)(multimodal_projector|vision_projector|audio_projector|language_projection|vision_language_adapter)(\.|$)", "projector"),
    (r"(^|\.)(vision_proj|text_hidden_fcs|perceiver_resampler|patch_merger|pre_mm_projector_norm)(\.|$)", "projector"),
    (r"(^|\.)(text_projection|visual_projection|vision_projection|audio_projection|text_proj|logit_scale\w*|logit_bias)(\.|$)", "projector"),
    (r"(^|\.)(merger|merger_list|deepstack_merger_list|resampler|qformer|q_former|query_tokens|vision_adapter|visual\.downsample|vision_embed_tokens|image_to_text_projection|vision_patch_proj|proj_mm)(\.|$)", "projector"),
    (r"(^|\.)(audio_tower|audio_encoder|audio_model|embed_speech|sound_encoder)(\.|$)", "audio"),
    (r"(^|\.)(vision_tower|vision_model|visual|vision_encoder|vision|image_encoder|image_tower|video_tower|vit)(\.|$)", "vision"),
    (r"^(mm|v)\.", "vision"),  # GGUF's own file of projectors
    (r"(^|\.)(mtp|nextn|mtp_layers)(\.|_|$)", "mtp"),
)  # fmt: skip

# What a checkpoint holds and no framework counts as a parameter, by cause.
_BESIDE = (
    (r"inv_freq$|rope_freqs$|rope_factors_(long|short)$|rotary_pos_emb|rope\.freqs$|(cos|sin)_cached$", "rotary tables"),
    (r"(^|\.)(attn|attention|self_attention)\.(masked_)?bias$|causal_mask$|attn_mask$|relative_position_index$", "attention-mask buffers"),
    (r"(position|token_type)_ids$", "position ids"),
    (r"(slope_rate|(query|key|diagonal)_decay)$", "fixed decays"),
    (r"layer_scalar$", "layer scalars"),
    (r"act_fn\.(beta|eps)$", "constants of activations"),
    (r"final_logits_bias$", "biases of zeros"),
    (r"num_batches_tracked$|running_(mean|var)$", "statistics of batch norms"),
    (r"(e_score_correction_bias|exp_probs_b\.bias|exp_probs_b|expert_bias|gate\.bias_e)$", "router bias buffers"),
    (r"\.(k|v|q|kv|prob)_scale$|(k|v)_proj\.output_scale$|kv_cache_scaling_factor$", "scales of an fp8 cache"),
)  # fmt: skip

# class, role, operator of text tensors
_TEXT = (
    # ends
    (r"(embed_tokens_per_layer|per_layer_token_embd)$", "embedding", "per_layer_embedding", "embedding"),
    (r"(position_embeddings?|embed_positions|wpe|position_embd|positions_embed|pos_emb|weights_pos)$", "embedding", "position_embedding", "embedding"),
    (r"(token_type_embeddings?|token_types|segment_embeddings?)$", "embedding", "segment_embedding", "embedding"),
    (r"(embed_tokens|wte|word_embeddings?|embed_in|tok_embeddings|token_embd|embeddings?|tokens_embed|shared|embed|embedding\.tok_embeddings)$", "embedding", "embedding", "embedding"),
    (r"embedding_hidden_mapping_in$|embeddings_project$|project_(in|out)$", "embedding", "embedding_projection", "linear"),
    (r"classifier\.dense$|classification_head\.dense$", "other", "pooler", "linear"),
    (r"(generator_)?predictions\.dense$", "head", "head_transform", "linear"),
    (r"(attn|attention|self)\.output$", "attention", "attention_o", "linear"),
    (r"(^|\.)(lm_head|output|embed_out|cls\.predictions\.decoder|proj_out|generator_lm_head|lm_head\.decoder)$", "head", "head", "linear"),
    (r"(^|\.)(classifier|score|qa_outputs|cls\.seq_relationship|v_head|cls\.output|classification_head\.\w+|classifier\.\w+)$", "head", "head", "linear"),
    (r"(predictions\.transform\.dense|lm_head\.dense|^head\.dense|vocab_transform|vocab_projector|cls)$", "head", "head_transform", "linear"),
    (r"pooler(\.dense)?$|^pre_classifier$", "other", "pooler", "linear"),
    # experts
    (r"(shared_expert_gate|ffn_gate_inp_shexp)$", "shared-expert", "shared_expert_gate", "linear"),
    (r"(shared_experts?|shared_mlp|moe_shared_expert)\.(gate_proj|gate|w1)$|ffn_gate_shexp$", "shared-expert", "shared_gate", "linear"),
    (r"(shared_experts?|shared_mlp|moe_shared_expert)\.(up_proj|up|w3)$|ffn_up_shexp$", "shared-expert", "shared_up", "linear"),
    (r"(shared_experts?|shared_mlp|moe_shared_expert)\.(down_proj|down|output_linear|w2)$|ffn_down_shexp$", "shared-expert", "shared_down", "linear"),
    (r"(shared_experts?|shared_mlp|moe_shared_expert)\.(gate_up_proj|input_linear)$", "shared-expert", "shared_gate_up", "linear"),
    (r"experts(\.\*)?\.(gate_up_proj|gate_and_up_proj|up_gate_proj)$|(moe|experts)\.(input_linear|gate_up_linear)$|ffn_gate_up_exps$", "expert", "expert_gate_up", "expert"),
    (r"(experts(\.\*)?\.(\w+\.)?|switch_mlp\.)(gate_proj|w1|linear_gate)$|ffn_gate(_exps|\.\*)$", "expert", "expert_gate", "expert"),
    (r"(experts(\.\*)?\.(\w+\.)?|switch_mlp\.)(up_proj|w3|linear_fc1|linear_v|v1)$|ffn_up(_exps|\.\*)$", "expert", "expert_up", "expert"),
    (r"(experts(\.\*)?\.(\w+\.)?|switch_mlp\.)(down_proj|w2|linear_fc2|output_linear|linear_1)$|moe\.output_linear$|ffn_down(_exps|\.\*)$", "expert", "expert_down", "expert"),
    (r"(e_score_correction_bias|router_correction|moe_statics\.\w+|expert_bias|exp_probs_b)$", "router", "router_correction", "vector"),
    (r"(mlp|moe|block_sparse_moe|feed_forward|ffn|mixer|block)\.(gate|router|router\.layer|gate\.wg|router\.(proj|gate|classifier))$|router\.(layer|weight|gate|proj|classifier|linear)$|(ffn_gate_inp|\.router)$|moe\.gate$", "router", "router", "parameter"),
    # recurrent mixers
    (r"(A_log|dt_bias|\.D|ssm_a|ssm_d|ssm_dt\.bias|\.A|recurrent_param|time_decay|time_first)$", "recurrent", "decay", "vector"),
    (r"(conv1d|conv_1d|ssm_conv1d|short_conv\.conv|shortconv\.conv|\.conv\.conv|[qkv]_conv1d|[qkv]_conv|ssm_conv1d_[qkv])(\.bias)?$", "recurrent", "convolution", "conv"),
    (r"(mamba|mixer|ssm|mamba_decoder|mamba_layer|\bmamba_block)\.in_proj$|ssm_in$", "recurrent", "mamba_in", "linear"),
    (r"(mamba|mixer|ssm)\.out_proj$|ssm_out$", "recurrent", "mamba_out", "linear"),
    (r"(mamba|mixer|ssm)\.x_proj$|ssm_x$", "recurrent", "mamba_x", "linear"),
    (r"(mamba|mixer|ssm)\.dt_proj$|ssm_dt$", "recurrent", "mamba_dt", "linear"),
    (r"linear_attn\.(q_proj)$", "recurrent", "delta_q", "linear"),
    (r"linear_attn\.(k_proj)$", "recurrent", "delta_k", "linear"),
    (r"linear_attn\.(v_proj)$", "recurrent", "delta_v", "linear"),
    (r"linear_attn\.(in_proj_qkvz)$", "recurrent", "delta_qkvz", "linear"),
    (r"linear_attn\.(in_proj_ba)$|ssm_beta_alpha$|ssm_ba$", "recurrent", "delta_ba", "linear"),
    (r"linear_attn\.(in_proj_qkv)$", "recurrent", "delta_qkv", "linear"),
    (r"linear_attn\.(in_proj_z|g_proj)$", "recurrent", "delta_z", "linear"),
    (r"linear_attn\.(in_proj_b|b_proj)$|ssm_beta$", "recurrent", "delta_b", "linear"),
    (r"linear_attn\.(in_proj_a|a_proj)$|ssm_alpha$", "recurrent", "delta_a", "linear"),
    (r"linear_attn\.(out_proj|o_proj)$", "recurrent", "delta_out", "linear"),
    (r"(shortconv|short_conv|\.conv)\.in_proj$", "recurrent", "convolution_in", "linear"),
    (r"(shortconv|short_conv|\.conv)\.out_proj$", "recurrent", "convolution_out", "linear"),
    (r"temporal_block\.linear_(x|y)$", "recurrent", "lru_x", "linear"),
    (r"temporal_block\.linear_out$", "recurrent", "lru_out", "linear"),
    (r"rg_lru\.(input|recurrent)_gate_weight$", "recurrent", "lru_gate", "parameter"),
    # attention
    (r"DenseReluDense\.wo$", "feed-forward", "ffn_down", "linear"),
    (r"(\.sinks?|attn_sinks|attention_sink(_bias)?|attn_sink|learnable_sink|s_aux)$", "attention", "attention_sink", "vector"),
    (r"indexer\.(wq_b|q_b_proj|q_proj)$|indexer\.attn_q_b$", "attention", "indexer_q", "linear"),
    (r"indexer\.(wk|k_proj)$|indexer\.attn_k$", "attention", "indexer_k", "linear"),
    (r"indexer\.(weights_proj|proj)$", "attention", "indexer_weights", "linear"),
    (r"(kv_a_proj_with_mqa|attn_kv_a_mqa|attn_kv_a|kv_a_proj|wkv_a)$", "attention", "mla_kv_a", "linear"),
    (r"(kv_b_proj|attn_kv_b|attn_k_b|attn_v_b|wkv_b)$", "attention", "mla_kv_b", "linear"),
    (r"(q_a_proj|attn_q_a|wq_a)$", "attention", "mla_q_a", "linear"),
    (r"(q_b_proj|attn_q_b|wq_b)$", "attention", "mla_q_b", "linear"),
    (r"(qkv_proj|c_attn|query_key_value|Wqkv|wqkv|qkv|attn_qkv|in_proj|W_pack|qkv_proj_fused|pack_proj)$", "attention", "attention_qkv", "linear"),
    (r"(q_proj|query|wq|attn_q|q_lin|\.q|query_proj|EncDecAttention\.q|q_attn|query_layer)$", "attention", "attention_q", "linear"),
    (r"(k_proj|key|wk|attn_k|k_lin|\.k|key_proj)$", "attention", "attention_k", "linear"),
    (r"(v_proj|value|wv|attn_v|v_lin|\.v|value_proj)$", "attention", "attention_v", "linear"),
    (r"((self_attn|attn|attention|attentions\.\*|self_attention|mixer|Attention|temporal_block|cross_attn|encoder_attn)\.(o_proj|out_proj|c_proj|dense|wo|out_lin|o|Wo|output\.dense|final_linear|att_proj|attention\.output\.dense|fc_out)|attn_output|attn_out|attention\.out_proj|attention\.output\.dense|\.(wo|o_proj))$", "attention", "attention_o", "linear"),
    (r"(g_proj|attn_gate|gate_proj_attn|self_attn\.gate_proj)$", "attention", "attention_gate", "linear"),
    (r"(query|key|value|[qkv]_proj)_global$", "attention", "attention_global", "linear"),
    (r"(relative_attention_bias|attn_rel_b|rel_embeddings)$", "embedding", "position_embedding", "embedding"),
    # per-layer embeddings and alternating updates of Gemma
    (r"per_layer_model_projection$|per_layer_model_proj$", "other", "per_layer_model_projection", "linear"),
    (r"per_layer_input_gate$|inp_gate$", "other", "per_layer_gate", "linear"),
    (r"per_layer_projection$|\*\.proj$", "other", "per_layer_projection", "linear"),
    (r"altup|laurel\.linear|laurel_[lr]$", "other", "altup", "linear"),
    # feed-forward
    (r"act_fn\.alpha_[pn]$", "feed-forward", "activation_scalar", "vector"),
    (r"(gate_up_proj|up_gate_proj|ffn_gate_up|dense_h_to_4h_gate)$", "feed-forward", "ffn_gate_up", "linear"),
    (r"(gate_proj|\.w1|ffn_gate|wi_0|ffn\.gate|mlp\.gate|linear_v|DenseReluDense\.wi_0)$", "feed-forward", "ffn_gate", "linear"),
    (r"(up_proj|c_fc|fc1|dense_h_to_4h|fc_in|\.w3|ffn_up|intermediate\.dense|wi|wi_1|lin1|mlp\.dense_in|ffn|linear_1|feed_forward\.up|mlp\.Wi|Wi|layer_1|intermediate_dense)$", "feed-forward", "ffn_up", "linear"),
    (r"(down_proj|mlp\.c_proj|fc2|dense_4h_to_h|fc_out|\.w2|ffn_down|output\.dense|\.wo|lin2|mlp\.dense_out|ffn_output|linear_2|mlp\.Wo|layer_2|output_dense)$", "feed-forward", "ffn_down", "linear"),
    (r"norm|ln_|layernorm|LayerNorm|(^|\.)ln\d?$|_ln$", "norm", "norm", "vector"),
)  # fmt: skip
_HEAD = re.compile(r"(classifier|lm_head|score|qa_outputs|ctc_proj)(\.|$)")
_CLASS_OF_PART = {
    "vision": "vision-tower",
    "audio": "audio-tower",
    "projector": "projector",
    "mtp": "mtp",
    "denoiser": "denoiser",
}


@dataclass(frozen=True)
class Named:
    """What a name says. `beside` is the cause where the tensor is no parameter that is loaded."""

    component: str
    tensor_class: str
    role: str
    operator: str
    beside: str | None = None


@lru_cache(maxsize=50_000)
def named(pattern: str, dimensions: int, part: str | None = None) -> Named:
    """What the tensors of a pattern are; `part` where the file holds one part of a pipeline alone."""
    name = pattern.removesuffix(".weight")
    tensor_class, role, operator = _text(name, dimensions)
    component = _first(_PARTS, name) or "text"
    if part == "denoiser" or (part is not None and component != "projector" and not _HEAD.match(name)):
        component = part
    own = _CLASS_OF_PART.get(component)
    beside = _first(_BESIDE, name)
    if component == "mtp":
        beside = "multi-token prediction layers"
    return Named(component, own or tensor_class, role, operator, beside)


def _text(name: str, dimensions: int) -> tuple[str, str, str]:
    is_bias = name.endswith("bias") and not name.endswith("relative_attention_bias")
    found = next((rule for rule in _TEXT if re.search(rule[0], name)), None)
    if is_bias and not (found and found[1] in ("router", "recurrent", "attention") and found[3] == "vector"):
        return "norm", "bias", "vector"
    if found is None:
        return (
            ("norm", "norm", "vector")
            if dimensions <= 1
            else ("other", "other", "linear" if dimensions == 2 else "conv")
        )
    if dimensions <= 1 and found[3] in ("linear", "embedding", "parameter"):
        return ("norm", "norm", "vector") if found[1] != "recurrent" else ("recurrent", found[2], "vector")
    return found[1:]


def _first(rules: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((what for pattern, what in rules if re.search(pattern, name)), None)
