-- The weights that one GPU holds of a scenario.
--
-- Units: bytes per GPU. Source: `weight` (what tensor parallelism replicates, what lies in the layers), divided as the engines do: norms,
-- routers and towers stay whole on every rank.
-- Not covered: padding of the vocabulary, shards that an engine pads.

-- Which part of the weights one GPU holds in inference: tensor parallelism replicates norms, routers and towers; a pipeline's worst stage has the
-- most layers and the larger end; of both, that stage's layers are divided, and the towers are on every GPU.
CREATE OR REPLACE MACRO beside_layers_bytes(w) AS w.weights_bytes - w.layer_bytes - w.embedding_bytes - w.head_bytes;
CREATE OR REPLACE MACRO replicated_in_layers(w) AS least(greatest(w.replicated_bytes - beside_layers_bytes(w), 0), w.layer_bytes);

CREATE OR REPLACE MACRO sharded_weights(w, x) AS CASE
    WHEN x.tensor_parallel * x.pipeline_parallel = 1 THEN w.weights_bytes
    WHEN x.pipeline_parallel = 1 THEN w.replicated_bytes + ceil((w.weights_bytes - w.replicated_bytes) / x.tensor_parallel)
    WHEN x.tensor_parallel = 1
        THEN ceil(w.layer_bytes * x.stage_share) + greatest(w.embedding_bytes, w.head_bytes, beside_layers_bytes(w))
    ELSE ceil((replicated_in_layers(w) + (w.layer_bytes - replicated_in_layers(w)) / x.tensor_parallel) * x.stage_share)
        + ceil(greatest(w.embedding_bytes, w.head_bytes) / x.tensor_parallel) + beside_layers_bytes(w)
END::BIGINT;

-- Weights of a training step: the dtype's own where they are frozen or 16-bit, fp32 where autocast trains them; QLoRA's preparation
-- holds in fp32 what stays unquantised (embeddings, head, norms).
CREATE OR REPLACE MACRO trained_weights(w, x) AS CASE
    WHEN x.phase_id = 'qlora' AND x.precision <> 'pure' THEN w.weights_bytes + w.unquantised_bytes
    WHEN x.is_adapter THEN w.weights_bytes
    WHEN x.precision = 'amp' AND x.dtype_id <> 'fp32' THEN 2 * w.weights_bytes
    ELSE w.weights_bytes
END;

-- bytes of an element that a sharded layer is gathered in
CREATE OR REPLACE MACRO gather_bytes_each(w, m, x) AS CASE
    WHEN x.phase_id = 'qlora' THEN w.weights_bytes / m.parameter_count
    WHEN x.precision = 'amp' AND NOT x.is_adapter THEN 4
    ELSE x.compute_bytes
END;
