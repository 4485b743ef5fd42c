-- The checkpoint as published, to the byte where its headers are at hand.
--
-- Units: bytes. Sources: tensor headers (stored_tensor, less what no engine loads), else what a quantisation config or
-- a published total says of each part (stored_part). Not covered: checkpoints of which nothing says how they are
-- packed.

-- What a checkpoint holds where its headers say it (scales and tables come with the class of their matrix), else where
-- its config or its total says what is held in which format: bits by operator, whatever the class, since the part says
-- it. A table that is held in a format is held as a matrix.
CREATE OR REPLACE TEMP TABLE part_held AS
SELECT
    part.model_id, part.component, part.tensor_class, part.is_in_layers, part.element_count,
    ceil(part.element_count * rule.element_bits / 8)::BIGINT
        + (part.layer_count * part.per_layer_count
            * iif(part.in_features IS NULL, 0, part.out_features) * rule.row_bits / 8)::BIGINT AS bytes
FROM stored_part AS part
JOIN weight_format AS rule
    ON rule.dtype_id = part.dtype_id AND rule.tensor_class IS NULL AND rule.role IS NULL AND rule.model_types IS NULL
    AND coalesce(rule.operator = iif(part.operator = 'embedding', 'linear', part.operator), true)
QUALIFY row_number() OVER (
    PARTITION BY part.model_id, part.component, part.tensor_class, part.role, part.operator, part.dtype_id,
        part.is_in_layers,
        part.layer_count, part.in_features, part.out_features
    ORDER BY rule.operator IS NULL
) = 1;

CREATE OR REPLACE TEMP TABLE stored_sums AS
WITH held AS (
    SELECT model_id, component, tensor_class, is_in_layers, element_count, stored_bytes AS bytes
    FROM stored_tensor WHERE not_loaded_reason IS NULL
    UNION ALL BY NAME
    FROM part_held WHERE model_id NOT IN (SELECT model_id FROM stored_tensor WHERE not_loaded_reason IS NULL)
)
SELECT
    model_id, 'stored' AS dtype_id,
    sum(bytes)::BIGINT AS weights_bytes,
    coalesce(sum(bytes) FILTER (is_replicated(tensor_class)), 0)::BIGINT AS replicated_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'embedding'), 0)::BIGINT AS embedding_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'head'), 0)::BIGINT AS head_bytes, NULL::BIGINT AS input_bytes,
    coalesce(sum(bytes) FILTER (is_of_towers(component)), 0)::BIGINT AS tower_bytes,
    coalesce(sum(bytes) FILTER (is_of_speech(component)), 0)::BIGINT AS speech_bytes,
    coalesce(sum(bytes) FILTER (is_of_speech(component) AND is_replicated(tensor_class)), 0)::BIGINT
        AS speech_replicated_bytes,
    coalesce(sum(bytes) FILTER (is_of_speech(component) AND tensor_class IN ('embedding', 'head')), 0)::BIGINT
        AS speech_end_bytes,
    coalesce(sum(bytes) FILTER (is_in_layers AND component = 'text' OR tensor_class = 'denoiser'), 0)::BIGINT
        AS layer_bytes,
    coalesce(sum(bytes) FILTER (bytes >= 2 * element_count), 0)::BIGINT AS unquantised_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'expert'), 0)::BIGINT AS expert_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'shared-expert'), 0)::BIGINT AS shared_expert_bytes,
    coalesce(sum(bytes) FILTER (tensor_class = 'feed-forward'), 0)::BIGINT AS feed_forward_bytes,
    -- headers tell no roles: of embeddings tied to the output, their share by elements
    read_sum(bytes, iif(tensor_class = 'embedding' AND is_head_read_from_embeddings, token_embedding_share,
        read_share(tensor_class, component, false, expert_share))) AS read_bytes
FROM held JOIN reading_shape USING (model_id)
GROUP BY model_id;
