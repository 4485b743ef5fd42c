-- What a training step holds at its peak beside weights, gradients, optimizer and adapters.
--
--   activations_bytes = max over the moments of the step − (weights + gradients + optimizer + adapters)
--
-- The moments: `loss` (everything the forward kept, and the fp32 gradients of the logits), `forward` (autocast's copies of the
-- weights, with checkpointing), `backward` (with checkpointing: one layer recomputed beside the gradients of all others),
-- `end` (all gradients, and the tied embedding's second one), `optimizer` (copies that the step makes).
--
-- Units: bytes per GPU. T = sequences × context tokens. Kept per token: each norm keeps its input and its output, attention
--   keeps query, key, value, output and the softmax statistics, a gated block four tensors of its width, a plain one two.
-- Source: closed forms fitted on the real training steps of transformers 5.23.0 and peft 0.21.2 under fake tensors
--   (source transformers-step-oracle): Llama-shaped models within 0.2 %.
-- Not covered: recurrent layers, towers of multimodal models (a step of text is counted), diffusion models, padding masks,
--   selective checkpointing (counted as none), fused or chunked cross-entropy.

-- tokens of one step on one GPU
CREATE OR REPLACE MACRO step_tokens(x) AS x.sequences * x.context_tokens;

-- GPUs that divide the inside of a layer, and the share of the layers' activations that the worst pipeline stage holds: the
-- first stage keeps as many micro-batches in flight as there are stages (1F1B)
CREATE OR REPLACE MACRO tensor_parallel(x) AS if(x.sharding = 'tp', x.gpu_count, 1);
CREATE OR REPLACE MACRO stage_share(m, x) AS if(x.sharding = 'pp',
    ceil(m.layer_count / x.gpu_count) * x.gpu_count / greatest(m.layer_count, 1), 1.0);

-- columns of the logits; 0 where the model has no output head
CREATE OR REPLACE MACRO logit_width(m, x) AS if(m.head_elements > 0 OR m.is_head_tied, m.vocab_size, 0) / tensor_parallel(x);

-- Norms: RMS norms keep an fp32 copy of the input, the normalised and the scaled tensor; layer norms input and output.
CREATE OR REPLACE MACRO kept_by_norms(width, m, x) AS width * CASE
    WHEN x.is_adapter AND m.norm_kind = 'rms' THEN 4
    WHEN x.is_adapter THEN x.compute_bytes
    WHEN m.norm_kind = 'rms' AND x.compute_bytes = 4 AND x.precision <> 'amp' THEN 12
    WHEN m.norm_kind = 'rms' THEN 8
    WHEN x.precision = 'amp' THEN 8
    ELSE 2 * x.compute_bytes
END;

CREATE OR REPLACE MACRO kept_by_attention(q, k, v, o, heads, qk_norm, qk_norm_heads, m, x) AS
    if(x.attention = 'eager' OR NOT m.has_flash_attention,
        -- scores in fp32 and their copy in the compute precision; grouped heads are repeated
        x.compute_bytes * (q + o + if(m.has_grouped_heads, 2 * q, k + v)) + (4 + x.compute_bytes) * heads * x.context_tokens,
        x.compute_bytes * (q + k + v + o) + 4 * heads)
    + if(x.is_adapter, 4, 4 + x.compute_bytes) * qk_norm + 4 * qk_norm_heads;

CREATE OR REPLACE MACRO kept_by_feed_forward(gated, plain, routed, shared, experts_per_token, moe_layers, m, x) AS
    x.compute_bytes * (
        if(x.is_adapter, 3, 4) * (gated + shared) + if(x.is_adapter, 1, 2) * plain
        -- each routed copy of a token: the block's own tensors, and its input and output
        + if(m.is_gated, 4, 2) * routed + 2 * experts_per_token * m.hidden_size)
    + 1300 * moe_layers;

-- inputs of the adapted layers in the adapter's precision, and the rank-wide products
CREATE OR REPLACE MACRO kept_by_adapters(m, x) AS if(NOT x.is_adapter, 0,
    if(x.precision IN ('amp', 'pure'), x.compute_bytes, 4) * if(x.lora_targets = 'attention',
        m.lora_attention_input_sum + x.lora_rank * m.lora_attention_module_count,
        m.lora_linear_input_sum + x.lora_rank * m.lora_linear_module_count));

-- bytes per token that the layers keep for the backward pass
CREATE OR REPLACE MACRO kept_by_layers(m, x) AS CASE
    WHEN x.checkpointing = 'full' THEN
        m.layer_count * m.hidden_size * if(x.precision = 'amp' AND NOT x.is_adapter, 4, x.compute_bytes)
    ELSE
        kept_by_norms(m.norm_width_sum, m, x) + 8 * m.layer_count
        + (kept_by_attention(m.query_sum, m.key_sum, m.value_sum, m.context_sum, m.head_sum, m.qk_norm_sum,
                m.qk_norm_head_sum, m, x)
            + kept_by_feed_forward(m.gated_sum, m.plain_sum, m.routed_sum, m.shared_sum, m.experts_per_token_sum,
                m.moe_layer_count, m, x)) / tensor_parallel(x)
        -- under autocast every linear layer keeps its own 16-bit copy of the hidden state
        + if(x.precision = 'amp' AND NOT x.is_adapter, 2 * m.hidden_input_sum, 0)
        + if(m.hidden_dropout > 0, m.norm_width_sum, 0)
        + kept_by_adapters(m, x)
        -- the first norm's input needs no gradient where the base is frozen
        - if(x.is_adapter, kept_by_norms(m.hidden_size, m, x), 0)
END;

-- bytes per token that the final norm and the loss keep
CREATE OR REPLACE MACRO kept_by_head(m, x) AS
    kept_by_norms(m.hidden_size, m, x) + if(x.precision = 'amp' AND NOT x.is_adapter, 2 * m.hidden_size, 0) + 4 * logit_width(m, x);

CREATE OR REPLACE MACRO rope_bytes(m, x) AS
    x.context_tokens * 2 * m.head_dim_max * if(x.precision = 'amp', 4, x.compute_bytes);

-- Logits and layers divide under tensor parallelism; norms do not.
CREATE OR REPLACE MACRO kept_bytes(m, x) AS step_tokens(x) * (kept_by_layers(m, x) * stage_share(m, x) + kept_by_head(m, x)) + rope_bytes(m, x)
    + if(x.precision = 'amp' AND NOT x.is_adapter,
        2 * if(x.checkpointing = 'full', m.vocab_size * m.hidden_size, m.linear_elements + m.vocab_size * m.hidden_size), 0);

CREATE OR REPLACE MACRO loss_moment(m, x, w, g, o) AS
    w + o + kept_bytes(m, x) + 8 * logit_width(m, x) * step_tokens(x);

CREATE OR REPLACE MACRO forward_moment(m, x, w, g, o) AS
    w + o + kept_bytes(m, x) + 6 * logit_width(m, x) * step_tokens(x)
    + if(x.precision = 'amp' AND NOT x.is_adapter AND x.checkpointing = 'full', 2 * m.linear_elements, 0);

-- The first layer is recomputed and differentiated while the gradients of all later layers exist.
CREATE OR REPLACE MACRO backward_moment(m, x, w, g, o) AS if(x.checkpointing <> 'full', 0,
    w + o + if(x.is_adapter, g, greatest(0, g - (m.embedding_elements + m.largest_layer_elements
            - m.hidden_size * greatest(m.gated_max, m.plain_max)) * x.trained_bytes_each / shards(x, 'gradients')))
    + step_tokens(x) * (
        if(x.precision = 'amp', 34, 10 * x.compute_bytes) * m.hidden_size
        + x.compute_bytes * (6 * (m.gated_max + m.shared_max) + 4 * m.plain_max + 6 * m.routed_max
            + 4 * m.experts_per_token_max * m.hidden_size + 2 * (m.query_max + m.key_max))
        + 4 * m.head_max + 8 + if(m.has_qk_norm, 6 * (m.query_max + m.key_max), 0)
        + if(x.attention = 'eager' OR NOT m.has_flash_attention, 10 * m.head_max * x.context_tokens, 0)
        + if(x.is_adapter, kept_by_adapters(m, x) / greatest(m.layer_count, 1), 0))
    + if(x.precision = 'amp' AND NOT x.is_adapter, 2 * m.largest_layer_elements, 0));

CREATE OR REPLACE MACRO end_moment(m, x, w, g, o) AS
    w + o + g + step_tokens(x) * m.hidden_size * if(x.precision = 'amp', 4, x.compute_bytes)
    + if(m.is_head_tied AND NOT x.is_adapter,
        m.embedding_elements * x.trained_bytes_each * if(x.precision = 'amp', 1, 2), 0);

CREATE OR REPLACE MACRO optimizer_moment(m, x, w, g, o, opt) AS
    w + o + g + opt.step_copies * g
    + opt.step_largest_fp32_copies * 4 * if(x.is_adapter, 0, m.largest_parameter_elements / shards(x, 'optimizer'));
