-- What a training step holds at its peak beside weights, gradients, optimizer and adapters.
--
--   activations_bytes = max over the moments of the step − (weights + gradients + optimizer + adapters)
--
-- The moments: `loss` (everything the forward kept, and the fp32 gradients of the logits), `forward` (autocast's copies of the
-- weights, with checkpointing), `backward` (the last or the first layer is differentiated: inside its feed-forward block or inside its
-- attention, beside the gradients of the layers behind it), `end` (all gradients, and the tied embedding's second one), `optimizer`
-- (copies that the step makes).
--
-- Units: bytes per GPU. w, g, o: weights with adapters, gradients, optimizer. Source: as kept.sql.
-- Not covered: what is not covered there; moments inside layers between the first and the last.

-- bytes of a gradient that one GPU holds whole or in its share
CREATE OR REPLACE MACRO gradient_bytes(elements, x) AS
    iif(x.is_adapter, 0, elements * x.gradient_bytes_each / x.tensor_parallel / x.gradient_shards);

-- Gradients that exist before the step's own: those of earlier micro-batches, and those that an engine never frees.
CREATE OR REPLACE MACRO standing(g, x) AS iif(x.has_standing_gradients, g, 0);

-- t: a pipeline stage, of which the last has the loss.
CREATE OR REPLACE MACRO loss_moment(m, x, w, g, o, kept, t) AS w + o + kept + standing(g, x)
    + t.is_last * loss_work(m, x, gradient_bytes(m.vocab_size * m.hidden_size, x));

CREATE OR REPLACE MACRO forward_moment(m, x, w, g, o, kept, t) AS
    -- the logits, and their fp32 copy where the loss takes one
    w + o + kept + standing(g, x)
    + t.is_last * iif(x.loss = 'full', iif(m.loss_form IN ('compute', 'cast'), x.compute_bytes, 6) * logit_width(m, x) * step_tokens(x), 0)
    + iif(x.is_autocast AND x.checkpointing <> 'none', 2 * cast_elements(m) / x.tensor_parallel, 0);

-- s: kept_sums. Per token, one layer is worked on: all that it keeps (or keeps again when it is recomputed), and either the gradients inside
-- the feed-forward block, or those inside attention when the block's tensors are gone; beside the gradients of two hidden states.
CREATE OR REPLACE MACRO layer_work(m, x, s) AS s.layer + 2 * x.residual_bytes * m.hidden_size
    -- what a context-parallel GPU gathers of the others' keys and values, and a tensor-parallel one of the others' residual stream
    + iif(x.context_parallel > 1, x.compute_bytes * 2 * m.key_max * x.context_parallel / x.tensor_parallel, 0)
    + iif(residual_parallel(x) > 1, x.compute_bytes * m.hidden_size, 0);

-- Gradients that exist when the first layer is reached: of everything but that layer and the embedding (a tied one has the head's). Its
-- feed-forward block, first the way down, comes before its attention. Where gradients stand, one matrix's own comes on top.
CREATE OR REPLACE MACRO gradients_before(elements, m, x, g, s) AS CASE
    WHEN x.is_adapter THEN g
    WHEN x.has_standing_gradients THEN g + gradient_bytes(s.down, x)
    ELSE greatest(0, g - gradient_bytes(elements + iif(m.is_head_tied, 0, m.embedding_elements), x))
END;

CREATE OR REPLACE MACRO gradients_first(elements, m, x, g, s) AS
    iif(x.has_standing_gradients, g + gradient_bytes(s.down, x), least(g, gradient_bytes(elements, x)));

-- (A layer that is recomputed stands beside its input, but where the norm keeps that input itself.)
-- The last layer while only the gradients of the head exist, or the first while those of all later layers do. `made`: bytes that an
-- element of the layer's own gradient takes before it is reduced, where it is: then none of it is in the shards yet.
CREATE OR REPLACE MACRO backward_moment(m, x, w, g, o, s, work, t, made) AS w + o + greatest(
    step_tokens(x) * (work + t.share * t.flights * kept_by_layers(m, x, s) - kept_by_one_layer(m, x, s))
        + greatest(
            step_tokens(x) * (s.block_work + s.block_gradients) + made * s.down + gathered_next(m, x) + gradients_first(m.vocab_size * m.hidden_size, m, x, g, s),
            step_tokens(x) * (s.score_gradients - s.freed + iif(x.checkpointing = 'full' AND x.residual_bytes = 2 AND m.norm_form <> 'layer', 2 * m.hidden_size, 0)) + made * m.largest_layer_elements + gathered_next(m, x) + gradients_first(m.vocab_size * m.hidden_size
                + iif(made > 0, 0, m.largest_layer_elements - 2 * m.hidden_size * (m.query_max + m.key_max)), m, x, g, s)),
    step_tokens(x) * (work + s.block_work + s.block_gradients + iif(x.checkpointing = 'none', 0, s.mask)) + made * s.down
        + gradients_before(m.largest_layer_elements - iif(made > 0, 0, s.down), m, x, g, s) + gathered_second(m, x, s),
    step_tokens(x) * (work + s.mixer_work - s.freed + iif(x.checkpointing = 'none', 0, s.mask)) + made * m.largest_layer_elements
        + gradients_before(iif(made > 0, m.largest_layer_elements, m.hidden_size * (m.query_max + 2 * m.key_max)), m, x, g, s) + gathered_second(m, x, s)
) + iif(x.is_autocast, 2 * m.largest_layer_elements, 0) + rope_bytes(m, x) + t.is_last * held_logits(m, x) + dora_work(m, x)
    + merged_experts_work(m, x, s);

CREATE OR REPLACE MACRO end_moment(m, x, w, g, o) AS
    w + o + g + step_tokens(x) * m.hidden_size * x.residual_bytes + held_logits(m, x)
    + CASE
        -- (of sharded gradients sharding/gathered.sql counts it)
        WHEN x.is_adapter OR x.gradient_shards > 1 OR x.pipeline_parallel > 1 THEN 0
        WHEN m.is_head_tied THEN m.embedding_elements * x.trained_bytes_each / x.tensor_parallel
            * (iif(x.precision = 'amp' OR x.loss = 'fused', 1, 2) + iif(x.has_standing_gradients, 1, 0))
        WHEN x.has_standing_gradients THEN m.embedding_elements * x.trained_bytes_each / x.tensor_parallel
        ELSE 0
    END;

CREATE OR REPLACE MACRO optimizer_moment(m, x, w, g, o, opt) AS
    w + o + g + opt.step_copies * g + held_logits(m, x)
    + opt.step_largest_fp32_copies * 4 * iif(x.is_adapter, 0, m.largest_parameter_elements / x.tensor_parallel / x.optimizer_shards);

-- The moments of a step on one stage, with what several GPUs add to each.
CREATE OR REPLACE MACRO moments(m, x, opt, t) AS {
    'loss': loss_moment(m, x, t.weights + t.adapters, t.gradients, t.optimizer, t.kept, t) + gathered_at_loss(m, x, t) + m.mask_buffer_bytes,
    'forward': forward_moment(m, x, t.weights + t.adapters, t.gradients, t.optimizer, t.kept, t) + gathered_at_forward(m, x, t) + m.mask_buffer_bytes,
    'backward': backward_moment(m, x, t.weights + t.adapters, t.gradients, t.optimizer, x.s, x.work, t, x.made_in_layer)
        + gathered_at_backward(m, x, t) + x.dequantised + m.mask_buffer_bytes,
    'end': end_moment(m, x, t.weights + t.adapters, t.gradients, t.optimizer) + gathered_at_end(m, x, t) + m.mask_buffer_bytes,
    'optimizer': optimizer_moment(m, x, t.weights + t.adapters, t.gradients, t.optimizer, opt) + converted_gradients(x, t)
        + iif(x.scheme = 'ddp', t.gradients, 0) + m.mask_buffer_bytes
};

CREATE OR REPLACE MACRO largest_moment(a) AS greatest(a.loss, a.forward, a.backward, a."end", a.optimizer);
