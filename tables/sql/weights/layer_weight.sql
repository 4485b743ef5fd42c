-- What every layer of a text model weighs in a format: of these is said what stays on the GPU and what goes to the CPU.
--
--   layer_weights_in(pairs)   for each model_id and dtype_id of a relation the bytes of every block, of them the routed
--                             experts', and its largest matrix
--   layer_weights(model_id)   the same for one
--
-- Units: bytes. Sources: weight_format.csv, and gguf_mix.csv with gguf_type.csv, tensor by tensor as in
--   tensor_bytes.sql; experts follow dense first blocks, all else is spread over the blocks.
-- Not covered: towers, embeddings and the head, which are no layers.

CREATE OR REPLACE MACRO layer_weights_in(relation) AS TABLE
WITH held AS (
    SELECT shape.model_id, asked.dtype_id AS asked_dtype_id,
        iif(asked.dtype_id = 'stored', model.stored_format, asked.dtype_id) AS dtype_id, shape.layer_count AS blocks,
        coalesce((SELECT max(head_count // greatest(kv_head_count, 1)) FROM attention_layer AS layer
            WHERE layer.model_id = shape.model_id AND layer.component = 'text' AND layer.head_count > 0), 1)
                AS kv_group,
        coalesce((SELECT max(expert_count) FROM feed_forward_layer AS block WHERE block.model_id = shape.model_id), 0)
            AS experts, shape.is_head_tied, model.model_type,
        iif(asked.dtype_id IS DISTINCT FROM model.stored_format, asked.dtype_id, NULL) AS made_in,
        asked.model_id IN (SELECT keeps_experts.model_id FROM keeps_experts) AS is_kept
    FROM query_table(relation) AS asked
    JOIN shape ON shape.model_id = asked.model_id JOIN model ON model.model_id = shape.model_id
),
body AS MATERIALIZED (
    -- (experts that were published in MXFP4 stay in it whatever the mix of the rest)
    SELECT tensor.*, iif(held.is_kept AND tensor.operator = 'expert' AND starts_with(held.dtype_id, 'gguf-'),
            'gguf-mxfp4', held.dtype_id) AS dtype_id, held.asked_dtype_id, held.model_type, held.made_in, held.blocks,
        held.kv_group, held.experts,
        row_number() OVER () AS tensor_number,
        tensor.element_count // tensor.layer_count AS elements,
        gguf_category(tensor.tensor_class, tensor.role, tensor.operator, held.is_head_tied) AS category
    FROM held JOIN tensor ON tensor.model_id = held.model_id AND tensor.component = 'text' AND tensor.layer_count > 1
),
one AS MATERIALIZED (
    SELECT body.*, place,
        -- experts follow dense first blocks, whose feed-forward stands before them; all else is spread over the blocks
        least(blocks - 1, CASE
            WHEN tensor_class IN ('expert', 'shared-expert', 'router') THEN place + blocks - layer_count
            WHEN tensor_class = 'feed-forward' THEN place
            ELSE place * blocks // layer_count
        END) AS block
    FROM body, unnest(range(body.layer_count)) AS layer(place)
),
-- (which rule takes a matrix is asked once of matrices alike: of all models there are a few hundred kinds)
kind AS MATERIALIZED (
    SELECT DISTINCT body.dtype_id, body.category, body.layer_count, body.kv_group, body.experts,
        body.operator = 'expert' AS is_expert
    FROM body WHERE NOT gguf_is_unpacked(body.category)
),
placed AS (
    SELECT kind.*, unnest(range(kind.layer_count)) AS place FROM kind
),
ruled AS MATERIALIZED (
    SELECT kind.*, rule.gguf_type
    FROM placed AS kind
    JOIN gguf_mix AS rule
        ON rule.dtype_id = kind.dtype_id AND (rule.role = kind.category OR rule.role = 'other')
        AND gguf_rule_claims(rule.layer_rule, place, kind.layer_count, kind.kv_group, kind.experts, kind.is_expert)
    QUALIFY row_number() OVER (
        PARTITION BY kind.dtype_id, kind.category, kind.layer_count, kind.kv_group, kind.experts, kind.is_expert, place
        ORDER BY gguf_rule_rank(rule.layer_rule) DESC, rule.role = kind.category DESC
    ) = 1
),
packed AS (
    SELECT one.model_id, one.asked_dtype_id, one.block, one.tensor_class,
        gguf_packed_bytes(one.elements, one.in_features, wide, fallback) AS bytes
    FROM one
    JOIN ruled ON ruled.dtype_id = one.dtype_id AND ruled.category = one.category
        AND ruled.layer_count = one.layer_count AND ruled.kv_group = one.kv_group AND ruled.experts = one.experts
        AND ruled.is_expert = (one.operator = 'expert') AND ruled.place = one.place
    JOIN gguf_type AS wide ON wide.gguf_type = ruled.gguf_type
    LEFT JOIN gguf_type AS fallback ON fallback.gguf_type = wide.fallback_gguf_type
),
plain AS (
    SELECT one.model_id, one.asked_dtype_id, one.block, one.tensor_class,
        ceil(one.elements * coalesce(maker.element_bits, rule.element_bits) / 8)::BIGINT
            + (one.per_layer_count * iif(one.in_features IS NULL, 0, one.out_features)
                * coalesce(maker.row_bits, rule.row_bits) / 8)::BIGINT AS bytes
    FROM one
    JOIN weight_format AS rule
        ON rule.dtype_id = one.dtype_id AND rule.model_types IS NULL
        AND coalesce(rule.operator = one.operator, true)
        AND coalesce(rule.tensor_class = one.tensor_class, true)
        AND coalesce(rule.role = one.role, true)
    LEFT JOIN maker_format AS maker
        ON maker.dtype_id = one.made_in AND maker.model_type = one.model_type AND maker.has_experts = (one.experts > 0)
        AND maker.operator = one.operator AND maker.tensor_class = one.tensor_class AND maker.role = one.role
    QUALIFY row_number() OVER (
        PARTITION BY one.tensor_number, one.place
        ORDER BY format_rank(rule.operator, rule.tensor_class, rule.role) DESC
    ) = 1
),
piece AS (
    FROM packed
    UNION ALL
    SELECT one.model_id, one.asked_dtype_id, one.block, one.tensor_class,
        gguf_unpacked_bytes(one.elements, one.category)
    FROM one WHERE gguf_is_unpacked(one.category) AND starts_with(one.dtype_id, 'gguf-')
    UNION ALL
    FROM plain
)
SELECT piece.model_id, piece.asked_dtype_id AS dtype_id, piece.block, sum(piece.bytes)::BIGINT AS layer_bytes,
    coalesce(sum(piece.bytes) FILTER (piece.tensor_class = 'expert'), 0)::BIGINT AS expert_bytes,
    max(piece.bytes)::BIGINT AS matrix_bytes
FROM piece GROUP BY ALL ORDER BY ALL;

-- layer_weights('Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m'): of one model.
CREATE OR REPLACE MACRO layer_weights(model_id, dtype_id := 'gguf-q4_k_m') AS TABLE
WITH layers_asked AS (SELECT known_model(model_id) AS model_id, lower(dtype_id) AS dtype_id)
SELECT held.block, held.layer_bytes, held.expert_bytes, held.matrix_bytes
FROM layer_weights_in('layers_asked') AS held ORDER BY held.block;
