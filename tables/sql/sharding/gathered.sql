-- What a framework holds for a moment of a sharded step beside the shards: gathered weights, gradients before they are
-- reduced, buckets.
--
--   fsdp2      unit      gathered weights of the layer that runs, and the next one's buffer, in the precision of the
--                        computation; its gradients, and the layer's before it in the precision of the reduction
--              root      embedding and head with the root for the whole step (is_root_whole), or units of their own
--              pipelines keep a stage gathered and its gradients unsharded while micro-batches are in flight
--   ddp        buckets: a second copy of the gradients from the first step on, also while the optimizer steps
--              (tests/oracle/ddp_buckets.csv; with gradient_as_bucket_view, off by default, the gradients lie in the
--                  buckets and there is no second copy)
--   deepspeed  bucket_count buckets of bucket_elements (reduce_bucket_size), whole whatever is trained; ZeRO-3 keeps up
--              to live_elements gathered; the step converts gradients to fp32
--   megatron   gradients exist all the time in one fp32 buffer
--
-- Units: bytes per GPU; a stage is one of a pipeline. Source: sharding_rule.csv per framework. FSDP2's moments are held
--   to its real code on fake tensors (tests/oracle/sharded_peaks.csv).
-- Not covered: user-set prefetching, HSDP's all-reduce buffers, uneven shards' padding.

-- elements of the largest layer on one GPU, before they are sharded; as communicated, filled up
CREATE OR REPLACE MACRO layer_part(expert_parallel, model, scenario) AS
    (model.largest_layer_elements - model.expert_elements / greatest(model.moe_layer_count, 1)
        + model.expert_elements / greatest(model.moe_layer_count, 1) / expert_parallel) / scenario.tensor_parallel;

CREATE OR REPLACE MACRO unit_elements(model, scenario) AS
    layer_part(scenario.expert_ranks / scenario.expert_padding, model, scenario);

-- bytes of a gradient's element as autograd makes it and as it is reduced; adapters' are too small to count
CREATE OR REPLACE MACRO made_bytes_each(scenario) AS iif(scenario.is_adapter, 0, scenario.compute_bytes);
CREATE OR REPLACE MACRO reduce_bytes_each(scenario) AS
    iif(scenario.is_adapter, 0, coalesce(scenario.reduce_bytes, scenario.compute_bytes));

-- bytes of an element of embedding and head, which no base of QLoRA packs unless its engine does
CREATE OR REPLACE MACRO ends_bytes_each(scenario) AS
    iif(scenario.phase_id = 'qlora' AND NOT packs_head(scenario), scenario.compute_bytes, scenario.gather_bytes_each);

-- Until the loss: what the root keeps gathered, and the buffer of the last unit.
CREATE OR REPLACE MACRO gathered_at_loss(model, scenario, stage) AS CASE scenario.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN scenario.pipeline_parallel > 1 THEN stage.resident * model.parameter_count
            * (scenario.gather_bytes_each + scenario.reduce_bytes_each)
        WHEN scenario.is_root_whole THEN (stage.head + stage.embedding) * ends_bytes_each(scenario)
            + scenario.unit_elements * scenario.gather_bytes_each
        ELSE stage.head * ends_bytes_each(scenario) END
    WHEN 'ddp' THEN stage.gradients
    WHEN 'deepspeed' THEN scenario.live_gathered * scenario.gather_bytes_each + scenario.bucket_bytes
    ELSE 0
END;

-- A head that TRL multiplies in tiles is gathered for that, beside what ZeRO-3 has left gathered of the layers.
CREATE OR REPLACE MACRO gathered_for_tiles(model, scenario, stage) AS iif(scenario.scheme = 'deepspeed'
    AND is_tiled(scenario) AND scenario.live_gathered > 0,
    least(stage.head, model.parameter_count - scenario.live_gathered) * scenario.gather_bytes_each, 0);

-- At the end of the forward pass the buffer that the head was gathered with is still there.
CREATE OR REPLACE MACRO gathered_at_forward(model, scenario, stage) AS gathered_at_loss(model, scenario, stage)
    + iif(scenario.scheme = 'fsdp2' AND scenario.pipeline_parallel = 1 AND NOT scenario.is_root_whole
        AND NOT model.is_head_tied, stage.head * ends_bytes_each(scenario), 0);

-- Per element of the layer that is differentiated: its gradients before they are reduced.
CREATE OR REPLACE MACRO made_in_layer(model, scenario) AS
    iif(scenario.scheme = 'fsdp2', scenario.made_bytes_each * layer_part(scenario.expert_ranks, model, scenario)
        / model.largest_layer_elements, 0);

-- The weights that are gathered for the next layer while one is differentiated: no layer comes after the first. The
-- second one has them, with the activations of one layer more and the gradients of one layer less.
CREATE OR REPLACE MACRO gathered_next(model, scenario) AS
    iif(scenario.scheme = 'fsdp2' AND scenario.pipeline_parallel = 1 AND model.layer_count > 1, scenario.unit_elements
        * scenario.gather_bytes_each, 0);

CREATE OR REPLACE MACRO gathered_second(model, scenario, sums) AS
    iif(scenario.scheme = 'fsdp2' AND scenario.pipeline_parallel = 1 AND model.layer_count > 1,
        greatest(0, gathered_next(model, scenario) + step_tokens(scenario) * kept_by_one_layer(model, scenario, sums)
            - gradient_bytes(model.largest_layer_elements, scenario)), 0);

-- elements of the head whose gradients are made first of all (embeddings per layer belong to no head: theirs come last)
CREATE OR REPLACE MACRO made_head(model, stage) AS iif(model.is_head_tied, stage.tied, stage.head);

-- While a layer is differentiated: its weights, and the gradients of the unit before it on their way.
CREATE OR REPLACE MACRO gathered_at_backward(model, scenario, stage) AS CASE scenario.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN scenario.pipeline_parallel > 1 THEN stage.resident * model.parameter_count
            * (scenario.gather_bytes_each + scenario.reduce_bytes_each)
        ELSE scenario.unit_elements * scenario.gather_bytes_each + iif(scenario.is_root_whole,
            (stage.head + stage.embedding) * ends_bytes_each(scenario) + made_head(model, stage)
                * scenario.made_bytes_each + scenario.unit_elements * scenario.reduce_bytes_each,
            -- (a tied one is a unit with the embedding, and whole until that has its gradient: no shard of it is there)
            iif(model.is_head_tied, stage.head * ends_bytes_each(scenario) + made_head(model, stage)
                * scenario.made_bytes_each + scenario.unit_elements * scenario.reduce_bytes_each
                - iif(scenario.offload = 'none', gradient_bytes(stage.head, scenario), 0),
                greatest(made_head(model, stage), scenario.unit_elements) * scenario.reduce_bytes_each)) END
    ELSE gathered_at_loss(model, scenario, stage)
END;

-- When the embedding is reached.
CREATE OR REPLACE MACRO gathered_at_end(model, scenario, stage) AS CASE scenario.scheme
    WHEN 'fsdp2' THEN CASE
        WHEN scenario.pipeline_parallel > 1 THEN stage.resident * model.parameter_count
            * (scenario.gather_bytes_each + scenario.reduce_bytes_each)
            + scenario.unit_elements * scenario.reduce_bytes_each
        -- both gradients of a tied embedding and their sum, the weights still there; embeddings per layer have one
        WHEN model.is_head_tied THEN stage.head * (ends_bytes_each(scenario) + scenario.made_bytes_each)
            + stage.tied * 2 * scenario.made_bytes_each
            -- (reduced in 16 bits, the shard in fp32 is made when these are gone)
            - iif(scenario.precision = 'mixed' AND NOT scenario.is_adapter AND scenario.offload = 'none'
                AND gradient_bytes_each(scenario) > scenario.reduce_bytes_each,
                stage.head * gradient_bytes_each(scenario) / scenario.gradient_shards, 0)
            + scenario.unit_elements * scenario.reduce_bytes_each
        WHEN scenario.is_root_whole THEN (stage.head + stage.embedding) * scenario.made_bytes_each + greatest(
            (stage.head + stage.embedding) * ends_bytes_each(scenario) + scenario.unit_elements
                * scenario.reduce_bytes_each,
            (stage.head + stage.embedding) * scenario.reduce_bytes_each)
        ELSE stage.embedding
            * (scenario.made_bytes_each + greatest(ends_bytes_each(scenario), scenario.reduce_bytes_each))
            + scenario.unit_elements * scenario.reduce_bytes_each END
    ELSE gathered_at_loss(model, scenario, stage)
END;

-- (of adapters too: they are set aside whole before the first gradient comes)
CREATE OR REPLACE MACRO bucket_bytes(model, scenario) AS
    coalesce(scenario.bucket_elements, model.hidden_size::DOUBLE * model.hidden_size) * scenario.compute_bytes
        * scenario.bucket_count;

-- elements that ZeRO-3 leaves gathered; what the host keeps is gathered too (of a packed base it counts elements as
-- they are stored, of 16 bits)
CREATE OR REPLACE MACRO live_gathered(weight, model, scenario) AS iif(
    scenario.sharding = 'zero3' OR scenario.offload = 'all',
    least(model.parameter_count, greatest(scenario.unit_elements, scenario.live_elements * iif(
        scenario.phase_id = 'qlora', scenario.compute_bytes / gather_bytes_each(weight, model, scenario), 1))), 0);

-- fp32 copies of the gradients that the optimizer's step makes of its share, on one card of all (step_gradient_bytes:
-- and a flat one before)
CREATE OR REPLACE MACRO converted_gradients(scenario, stage) AS
    coalesce(scenario.step_gradient_bytes * scenario.trained_elements, iif(scenario.scheme = 'deepspeed'
        AND scenario.offload = 'none' AND scenario.compute_bytes = 2,
        4 * least(iif(scenario.sharding = 'zero3', scenario.live_elements, scenario.trained_elements),
            scenario.trained_elements * held_of_trained(scenario, stage, scenario.optimizer_shards)), 0));
