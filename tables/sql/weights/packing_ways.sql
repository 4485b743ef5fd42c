-- What makers of packed repositories also leave in more bits than most do in a format (attention in 16 bits, all but
-- the routed experts, four bits in groups of 32): how much a copy may hold beyond weight.weights_bytes, at most.
--
--   packing_spread_bytes = Σ over matrices elements × (bits of the way that leaves most - counted bits) ÷ 8
--
-- Which of these ways a copy took its files alone say. So the total stands as most pack, and its error band takes the
-- difference in (packing_spread): what fits fits in every known way. The checkpoint's own format is what it is.
--
-- Units: bytes of the whole model. Source: packing_way.csv, weight_format.csv. Not covered: dense models without
--   recurrent layers, of which nearly all copies are packed alike, but by makers that are known to do otherwise
--   (name_pattern, asked by repository_of); layers that only predict.

-- The matrices of models (a list; all where it is null) by kind, and the bits that each is counted at in the formats
-- that are packed in several ways.
CREATE OR REPLACE MACRO counted_kinds(models) AS TABLE
WITH kinds AS (
    SELECT tensor.model_id, any_value(model.model_type) AS model_type, operator, tensor_class, role,
        sum(element_count) AS elements, bool_or(operator = 'expert') OVER whole AS has_experts,
        bool_or(tensor_class = 'recurrent') OVER whole AS is_recurrent
    FROM tensor JOIN model USING (model_id)
    WHERE operator IN ('linear', 'linear-subclass', 'expert') AND coalesce(list_contains(models, tensor.model_id), true)
    GROUP BY tensor.model_id, operator, tensor_class, role
    WINDOW whole AS (PARTITION BY tensor.model_id)
)
SELECT kind.*, rule.dtype_id, coalesce(any_value(rule.element_bits) FILTER (rule.model_type IS NOT NULL),
    arg_max(rule.element_bits, format_rank(rule.operator, rule.tensor_class, rule.role))
        FILTER (rule.model_type IS NULL)) AS counted_bits
FROM kinds AS kind
-- (makers' rules among the others: a join that keeps rows without a match is none that older DuckDBs plan here)
JOIN (
    SELECT dtype_id, operator, tensor_class, role, element_bits, NULL AS model_type, NULL AS has_experts
    FROM weight_format WHERE model_types IS NULL
    UNION ALL
    SELECT dtype_id, operator, tensor_class, role, element_bits, model_type, has_experts FROM maker_format
) AS rule ON coalesce(rule.operator = kind.operator, true) AND coalesce(rule.tensor_class = kind.tensor_class, true)
    AND coalesce(rule.role = kind.role, true) AND coalesce(rule.model_type = kind.model_type, true)
    AND coalesce(rule.has_experts = kind.has_experts, true)
WHERE rule.dtype_id IN (SELECT unnest(string_split(way.dtype_ids, ' ')) FROM packing_way AS way)
GROUP BY ALL;

-- By model and format what a copy of that name may hold beyond that, and of what; no row where all ways agree.
CREATE OR REPLACE MACRO packed_otherwise(name, models) AS TABLE
SELECT model_id, dtype_id, sum(elements * (bits - counted_bits) / 8)::BIGINT AS more_bytes,
    string_agg(DISTINCT part, ', ' ORDER BY part) AS parts
FROM (
    SELECT kind.model_id, kind.dtype_id, kind.elements, kind.counted_bits, max(way.element_bits) AS bits,
        arg_max(way.note, way.element_bits) AS part
    FROM counted_kinds(models) AS kind
    JOIN packing_way AS way ON list_contains(string_split(way.tensor_classes, ' '), kind.tensor_class)
        AND list_contains(string_split(way.dtype_ids, ' '), kind.dtype_id)
        AND coalesce(way.is_recurrent = kind.is_recurrent, true)
        AND coalesce(way.has_experts = kind.has_experts, true)
        AND coalesce(regexp_matches(name, '(?i)' || way.name_pattern), true)
    GROUP BY kind.model_id, kind.dtype_id, kind.operator, kind.tensor_class, kind.role, kind.elements,
        kind.counted_bits
    HAVING bits > kind.counted_bits
)
GROUP BY model_id, dtype_id;

-- The part of the weights on a GPU that this is, of what a server loads.
CREATE OR REPLACE MACRO packing_spread(weight, held_weights) AS
    coalesce(held_weights * (weight.packing_spread_bytes / weight.weights_bytes), 0);
