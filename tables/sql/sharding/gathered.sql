-- What a framework holds for a moment of a sharded step beside the shards: gathered weights, gradients before they are reduced, buckets.
--
--   fsdp2      unit      gathered weights of the layer that runs, and the next one's buffer, in the precision of the computation;
--                        its gradients, and the layer's before it in the precision of the reduction
--              root      embedding and head with the root for the whole step (is_root_whole), or units of their own
--              pipelines keep a stage gathered and its gradients unsharded while micro-batches are in flight
--   ddp        buckets: a second copy of the gradients from the first step on, also while the optimizer steps (tests/oracle/ddp_buckets.csv;
--              with gradient_as_bucket_view, off by default, the gradients lie in the buckets and there is no second copy)
--   deepspeed  buckets of bucket_elements; ZeRO-3 keeps up to live_elements gathered; the step converts gradients to fp32
--   megatron   gradients exist all the time in one fp32 buffer
--
-- Units: bytes per GPU; t is a stage. Source: sharding_rule.csv per framework. FSDP2's moments are held to its real code on fake tensors
--   (tests/oracle/sharded_peaks.csv).
-- Not covered: user-set prefetching, HSDP's all-reduce buffers, uneven shards' padding.

-- elements of the largest layer on one GPU, before they are sharded; as communicated, filled up
CREATE OR REPLACE MACRO layer_part(expert_parallel, m, x) AS (m.largest_layer_elements - m.expert_elements / greatest(m.moe_layer_count, 1)
    + m.expert_elements / greatest(m.moe_layer_count, 1) / expert_parallel) / x.tensor_parallel;

CREATE OR REPLACE MACRO unit_elements(m, x) AS layer_part(x.expert_parallel / x.expert_padding, m, x);

-- bytes of a gradient's element as autograd makes it and as it is reduced; adapters' are too small to count
CREATE OR REPLACE MACRO made_bytes_each(x) AS iif(x.is_adapter, 0, x.compute_bytes);
CREATE OR REPLACE MACRO reduce_bytes_each(x) AS iif(x.is_adapter, 0, coalesce(x.reduce_bytes, x.compute_bytes));

-- Until the loss: what the root keeps gathered, and the buffer of the last unit.
CREATE OR REPLACE MACRO gathered_at_loss(m, x, t) AS CASE x.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN x.pipeline_parallel > 1 THEN t.resident * m.parameter_count * (x.gather_bytes_each + x.reduce_bytes_each)
        WHEN x.is_root_whole THEN (t.head + t.embedding + x.unit_elements) * x.gather_bytes_each
        ELSE t.head * x.gather_bytes_each END
    WHEN 'ddp' THEN t.gradients
    WHEN 'deepspeed' THEN x.live_gathered * x.gather_bytes_each + x.bucket_bytes
    ELSE 0
END;

-- At the end of the forward pass the buffer that the head was gathered with is still there.
CREATE OR REPLACE MACRO gathered_at_forward(m, x, t) AS gathered_at_loss(m, x, t)
    + iif(x.scheme = 'fsdp2' AND x.pipeline_parallel = 1 AND NOT x.is_root_whole AND NOT m.is_head_tied, t.head * x.gather_bytes_each, 0);

-- Per element of the layer that is differentiated: its gradients before they are reduced.
CREATE OR REPLACE MACRO made_in_layer(m, x) AS
    iif(x.scheme = 'fsdp2', x.made_bytes_each * layer_part(x.expert_parallel, m, x) / m.largest_layer_elements, 0);

-- The weights that are gathered for the next layer while one is differentiated: no layer comes after the first. The second one has them,
-- with the activations of one layer more and the gradients of one layer less.
CREATE OR REPLACE MACRO gathered_next(m, x) AS
    iif(x.scheme = 'fsdp2' AND x.pipeline_parallel = 1 AND m.layer_count > 1, x.unit_elements * x.gather_bytes_each, 0);

CREATE OR REPLACE MACRO gathered_second(m, x, s) AS iif(x.scheme = 'fsdp2' AND x.pipeline_parallel = 1 AND m.layer_count > 1,
    greatest(0, gathered_next(m, x) + step_tokens(x) * kept_by_one_layer(m, x, s) - gradient_bytes(m.largest_layer_elements, x)), 0);

-- While a layer is differentiated: its weights, and the gradients of the unit before it on their way.
CREATE OR REPLACE MACRO gathered_at_backward(m, x, t) AS CASE x.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN x.pipeline_parallel > 1 THEN t.resident * m.parameter_count * (x.gather_bytes_each + x.reduce_bytes_each)
        ELSE x.unit_elements * x.gather_bytes_each + iif(x.is_root_whole,
            (t.head + t.embedding) * x.gather_bytes_each + t.head * x.made_bytes_each + x.unit_elements * x.reduce_bytes_each,
            greatest(t.head, x.unit_elements) * x.reduce_bytes_each) END
    ELSE gathered_at_loss(m, x, t)
END;

-- When the embedding is reached.
CREATE OR REPLACE MACRO gathered_at_end(m, x, t) AS CASE x.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN x.pipeline_parallel > 1 THEN t.resident * m.parameter_count * (x.gather_bytes_each + x.reduce_bytes_each)
            + x.unit_elements * x.reduce_bytes_each
        -- both gradients of a tied embedding and their sum, the weights still there
        WHEN m.is_head_tied THEN t.head * (x.gather_bytes_each + 3 * x.made_bytes_each) + x.unit_elements * x.reduce_bytes_each
        WHEN x.is_root_whole THEN (t.head + t.embedding) * x.made_bytes_each + greatest(
            (t.head + t.embedding) * x.gather_bytes_each + x.unit_elements * x.reduce_bytes_each,
            (t.head + t.embedding) * x.reduce_bytes_each)
        ELSE t.embedding * (x.made_bytes_each + greatest(x.gather_bytes_each, x.reduce_bytes_each)) + x.unit_elements * x.reduce_bytes_each END
    ELSE gathered_at_loss(m, x, t)
END;

CREATE OR REPLACE MACRO bucket_bytes(m, x) AS
    coalesce(x.bucket_elements, m.hidden_size::DOUBLE * m.hidden_size) * x.made_bytes_each * iif(x.sharding = 'zero3', 1, 2);

-- elements that ZeRO-3 leaves gathered; what the host keeps is gathered too
CREATE OR REPLACE MACRO live_gathered(m, x) AS iif(x.sharding = 'zero3' OR x.offload = 'all',
    least(m.parameter_count, greatest(x.unit_elements, x.live_elements)), 0);

-- fp32 copies of the gradients that the optimizer's step makes of its share
CREATE OR REPLACE MACRO converted_gradients(x, t) AS iif(x.scheme = 'deepspeed' AND x.offload = 'none' AND x.sharding <> 'none' AND x.compute_bytes = 2,
    4 * least(iif(x.sharding = 'zero3', x.live_elements, x.trained_elements), x.trained_elements * held_of_trained(x, t, x.optimizer_shards)), 0);
