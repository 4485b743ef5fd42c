-- What a training step holds at its peak beside weights, gradients, optimizer and adapters.
--
--   activations_bytes = max over the moments of the step − (weights + gradients + optimizer + adapters)
--
-- The moments: `loss` (everything the forward kept, and the fp32 gradients of the logits), `forward` (autocast's copies of the
-- weights, with checkpointing), `backward` (the last or the first layer is differentiated: inside its feed-forward block or inside its
-- attention, beside the gradients of the layers behind it), `end` (all gradients, and the tied embedding's second one), `optimizer`
-- (copies that the step makes).
--
-- Units: bytes per GPU. w, g, o: weights with adapters, gradients, optimizer. Source: as 60_activations_training.sql.
-- Not covered: what is not covered there; moments inside layers between the first and the last.

CREATE OR REPLACE MACRO loss_moment(m, x, w, g, o) AS
    w + o + kept_bytes(m, x) + 2 * loss_bytes(m, x) * logit_width(m, x) * step_tokens(x);

CREATE OR REPLACE MACRO forward_moment(m, x, w, g, o) AS
    w + o + kept_bytes(m, x) + (2 + loss_bytes(m, x)) * logit_width(m, x) * step_tokens(x)
    + iif(is_autocast(x) AND x.checkpointing = 'full', 2 * m.linear_elements, 0);

-- Per token, one layer: all that it keeps, or keeps again when it is recomputed.
CREATE OR REPLACE MACRO widest_attention(m, x) AS
    coalesce(list_max(list_transform(m.mixers, lambda c: kept_by_attention(c, m, x))), 0) / tensor_parallel(x);
CREATE OR REPLACE MACRO widest_feed_forward(m, x) AS
    coalesce(list_max(list_transform(m.blocks, lambda b: kept_by_feed_forward(b, m, x))), 0) / tensor_parallel(x);
CREATE OR REPLACE MACRO widest_layer(m, x) AS
    (hidden_kept_sum(m, x) + kept_by_adapters(m, x)) / greatest(m.layer_count, 1) + widest_attention(m, x) + widest_feed_forward(m, x);

-- Per token, backward inside the feed-forward block: the gradients of two tensors of its width, of its input and its output.
CREATE OR REPLACE MACRO feed_forward_gradients(m, x) AS
    2 * residual_bytes(x) * m.hidden_size
    + 2 * x.compute_bytes * coalesce(list_max(list_transform(m.blocks, lambda b:
        b.width + b.routed * (b.expert_width + m.hidden_size))), 0) / tensor_parallel(x);

-- Per token, backward inside attention where scores are tensors: the softmax, its gradient and the gradient of the scores, all in the
-- softmax's precision, in place of what was kept of them; the feed-forward block's tensors are gone.
CREATE OR REPLACE MACRO score_gradients(m, x) AS coalesce(list_max(list_transform(m.mixers, lambda c: CASE attention_kernel(c, m, x)
    WHEN 'eager' THEN (iif(m.softmax_form = 'compute' AND x.precision <> 'amp', 3 * x.compute_bytes, 12)
        + iif(m.has_score_cap, x.compute_bytes, 0) - kept_per_score(m, x)) * c.heads * x.context_tokens + 2 * x.compute_bytes * c.context
    WHEN 'math' THEN 8 * c.heads * x.context_tokens + 8 * c.context
    WHEN 'broadcast' THEN 8 * c.heads * x.context_tokens + 8 * c.context
    ELSE 0 END)), 0) / tensor_parallel(x);

CREATE OR REPLACE MACRO layer_work(m, x) AS widest_layer(m, x) + greatest(
    feed_forward_gradients(m, x),
    score_gradients(m, x) - widest_feed_forward(m, x) + 2 * residual_bytes(x) * m.hidden_size);

-- The last layer while the gradients of the head exist, or the first while those of all later layers do.
CREATE OR REPLACE MACRO backward_moment(m, x, w, g, o) AS w + o + greatest(
    step_tokens(x) * (layer_work(m, x) + stage_share(m, x) * (kept_by_layers(m, x)
            - iif(x.checkpointing = 'full', m.hidden_size * residual_bytes(x), layers_work(m, x) / greatest(m.layer_count, 1))))
        + iif(x.is_adapter, 0, least(g, m.vocab_size * m.hidden_size * x.trained_bytes_each / shards(x, 'gradients'))),
    step_tokens(x) * layer_work(m, x)
        + iif(x.is_adapter, g, greatest(0, g - (m.embedding_elements + m.largest_layer_elements
            - m.hidden_size * greatest(m.gated_max, m.plain_max)) * x.trained_bytes_each / shards(x, 'gradients')))
) + iif(is_autocast(x), 2 * m.largest_layer_elements, 0) + rope_bytes(m, x)
    + iif(has_adapted_experts(m, x), x.compute_bytes * m.expert_elements / greatest(m.moe_layer_count, 1), 0);

CREATE OR REPLACE MACRO end_moment(m, x, w, g, o) AS
    w + o + g + step_tokens(x) * m.hidden_size * residual_bytes(x)
    + iif(m.is_head_tied AND NOT x.is_adapter,
        m.embedding_elements * x.trained_bytes_each * iif(x.precision = 'amp', 1, 2), 0);

CREATE OR REPLACE MACRO optimizer_moment(m, x, w, g, o, opt) AS
    w + o + g + opt.step_copies * g
    + opt.step_largest_fp32_copies * 4 * iif(x.is_adapter, 0, m.largest_parameter_elements / shards(x, 'optimizer'));
