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

-- bytes of a gradient that one GPU holds whole or in its share
CREATE OR REPLACE MACRO gradient_bytes(elements, x) AS iif(x.is_adapter, 0, elements * x.trained_bytes_each / shards(x, 'gradients'));

-- The gradients of the logits in the loss's precision; or, after the loss, the logits' own gradient beside that of the head.
CREATE OR REPLACE MACRO loss_moment(m, x, w, o, kept) AS w + o + kept + greatest(
    gradients_per_logit(m, x) * logit_width(m, x) * step_tokens(x),
    (x.compute_bytes - loss_bytes(m, x)) * logit_width(m, x) * step_tokens(x)
        + iif(logit_width(m, x) > 0, gradient_bytes(m.vocab_size * m.hidden_size, x), 0));

CREATE OR REPLACE MACRO forward_moment(m, x, w, o, kept) AS
    -- the logits, and their fp32 copy where the loss takes one
    w + o + kept + iif(m.loss_form = 'compute', x.compute_bytes, 6) * logit_width(m, x) * step_tokens(x)
    + iif(x.is_autocast AND x.checkpointing = 'full', 2 * m.linear_elements, 0);

-- s: kept_sums. Per token, one layer is worked on: all that it keeps (or keeps again when it is recomputed), and either the gradients inside
-- the feed-forward block, or those inside attention when the block's tensors are gone; beside the gradients of two hidden states.
CREATE OR REPLACE MACRO layer_work(m, x, s) AS s.layer + 2 * x.residual_bytes * m.hidden_size;

-- Gradients that exist when the first layer is reached: of everything but that layer and the embedding (a tied one has the head's). Its
-- feed-forward block, first the way down, comes before its attention.
CREATE OR REPLACE MACRO gradients_before(elements, m, x, g) AS iif(x.is_adapter, g, greatest(0, g - gradient_bytes(
    elements + iif(m.is_head_tied, 0, m.embedding_elements), x)));

-- The last layer while only the gradients of the head exist, or the first while those of all later layers do.
CREATE OR REPLACE MACRO backward_moment(m, x, w, g, o, s, work) AS w + o + greatest(
    step_tokens(x) * (work + stage_share(m, x) * (kept_by_layers(m, x, s)
            - iif(x.checkpointing = 'full', m.hidden_size * x.residual_bytes, s.layers / greatest(m.layer_count, 1))))
        + greatest(
            step_tokens(x) * (s.block + s.block_gradients) + least(g, gradient_bytes(m.vocab_size * m.hidden_size, x)),
            step_tokens(x) * s.score_gradients + least(g, gradient_bytes(m.vocab_size * m.hidden_size + m.largest_layer_elements
                - 2 * m.hidden_size * (m.query_max + m.key_max), x))),
    step_tokens(x) * (work + s.block + s.block_gradients) + gradients_before(m.largest_layer_elements - s.down, m, x, g),
    step_tokens(x) * (work + s.score_gradients)
        + gradients_before(m.hidden_size * (m.query_max + 2 * m.key_max), m, x, g)
) + iif(x.is_autocast, 2 * m.largest_layer_elements, 0) + rope_bytes(m, x)
    + iif(x.has_adapted_experts, x.compute_bytes * m.expert_elements / greatest(m.moe_layer_count, 1), 0);

CREATE OR REPLACE MACRO end_moment(m, x, w, g, o) AS
    w + o + g + step_tokens(x) * m.hidden_size * x.residual_bytes
    + iif(m.is_head_tied AND NOT x.is_adapter,
        m.embedding_elements * x.trained_bytes_each * iif(x.precision = 'amp', 1, 2), 0);

CREATE OR REPLACE MACRO optimizer_moment(m, x, w, g, o, opt) AS
    w + o + g + opt.step_copies * g
    + opt.step_largest_fp32_copies * 4 * iif(x.is_adapter, 0, m.largest_parameter_elements / shards(x, 'optimizer'));
