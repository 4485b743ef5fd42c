-- Rules of thumb, as people say them, beside what we say of the same scenario.
--
--   rule_error: one row per model and rule: rule_bytes, what the rule gives; our_bytes; error = rule ÷ ours − 1
--   rule_of_thumb: one row per rule, with its error over all models that have both
--
-- A rule is a row of tables/facts/rule_of_thumb.csv: `basis` is what it multiplies, `multiplier` with what, and
-- `compared_with` which part of the footprint it speaks of, in the scenario of its row on one GPU.
--   parameters                  every parameter that is loaded, ties once
--   base-parameters             the same without an output head of its own (the class AutoModel has none)
--   largest-layer               the largest of the embeddings and of one decoder layer
--   parameters-and-activations  parameters; our activations of the scenario come on top
--   full-activations            our activations of a full fine-tune in the same scenario
--   weights-of-each             our resident weights
--   layers-and-width            layers × hidden size × tokens
-- Units: bytes. Source: rule_of_thumb.csv, row by row; accelerate-estimate for what its estimator counts.
-- Not covered: models without a footprint in the rule's scenario; layers of several kinds, whose largest is taken to be
-- that of the largest mixer with the largest feed-forward block.

CREATE OR REPLACE MACRO rule_bytes(rule, counted, judged, beside) AS floor(CASE rule.basis
    WHEN 'parameters' THEN counted.parameter_count * rule.multiplier
    WHEN 'base-parameters' THEN counted.base_parameter_count * rule.multiplier
    WHEN 'largest-layer' THEN counted.largest_layer_count * rule.multiplier
    WHEN 'parameters-and-activations' THEN counted.parameter_count * rule.multiplier
        + judged.activations_bytes
    WHEN 'full-activations' THEN beside.activations_bytes * rule.multiplier
    WHEN 'weights-of-each' THEN judged.weights_bytes * rule.multiplier
    WHEN 'layers-and-width' THEN rule.multiplier * counted.layer_count * counted.hidden_size * judged.context_tokens
END)::BIGINT;

-- the part of a footprint that a rule speaks of; what is nothing has no error
CREATE OR REPLACE MACRO ruled_bytes(rule, judged) AS nullif(CASE rule.compared_with
    WHEN 'total' THEN judged.total_bytes
    WHEN 'weights' THEN judged.weights_bytes
    WHEN 'states' THEN judged.weights_bytes + judged.gradients_bytes + judged.optimizer_bytes
    WHEN 'activations' THEN judged.activations_bytes
    WHEN 'cache' THEN judged.kv_cache_bytes
END, 0);

-- what of a model the rules multiply
CREATE OR REPLACE VIEW rule_basis AS
WITH part AS (
    SELECT model_id, layer_count AS layers, component,
        CASE WHEN tensor_class IN ('expert', 'shared-expert', 'router') THEN 'experts'
            WHEN tensor_class IN ('feed-forward', 'norm') THEN tensor_class ELSE 'mixer' END AS kind,
        sum(element_count // layer_count) AS elements
    FROM tensor WHERE layer_count > 1 GROUP BY ALL
),
-- mixers of several kinds have each their own number of layers
layer AS (
    SELECT model_id, component, coalesce(max(elements) FILTER (kind = 'mixer'), 0)
        + coalesce(greatest(max(elements) FILTER (kind = 'feed-forward'), max(elements) FILTER (kind = 'experts')), 0)
        + coalesce(max(elements) FILTER (kind = 'norm'), 0) AS elements
    FROM part GROUP BY ALL
),
largest AS (SELECT model_id, max(elements) AS elements FROM layer GROUP BY model_id),
single AS (
    SELECT model_id, sum(element_count) FILTER (tensor_class = 'head') AS head_elements,
        max(element_count) FILTER (tensor_class = 'embedding') AS embedding_elements
    FROM tensor GROUP BY model_id
)
SELECT model.model_id, model.parameter_count, model.layer_count, model.hidden_size,
    model.parameter_count - coalesce(single.head_elements, 0) AS base_parameter_count,
    greatest(largest.elements, single.embedding_elements) AS largest_layer_count
FROM model
LEFT JOIN single ON single.model_id = model.model_id
LEFT JOIN largest ON largest.model_id = model.model_id;

CREATE OR REPLACE VIEW rule_error AS
WITH scenario AS (
    SELECT footprint.* FROM footprint JOIN dtype ON dtype.dtype_id = footprint.dtype_id
    WHERE footprint.gpu_count = 1 AND coalesce(footprint.optimizer_id, 'adamw') = 'adamw'
        AND footprint.engine_id = iif(footprint.phase_id = 'inference', dtype.engine_id, 'transformers')
)
SELECT rule.rule_id, judged.model_id, rule_bytes(rule, counted, judged, beside) AS rule_bytes,
    ruled_bytes(rule, judged) AS our_bytes,
    rule_bytes(rule, counted, judged, beside) / ruled_bytes(rule, judged) - 1 AS error
FROM rule_fact AS rule
JOIN scenario AS judged ON judged.phase_id = rule.phase_id AND judged.dtype_id = rule.dtype_id
    AND judged.context_tokens = rule.context_tokens AND judged.sequences = rule.sequences
    AND coalesce(judged.checkpointing, 'none') = coalesce(rule.checkpointing, 'none')
JOIN rule_basis AS counted ON counted.model_id = judged.model_id
LEFT JOIN scenario AS beside ON rule.basis = 'full-activations' AND beside.phase_id = 'full-finetune'
    AND beside.model_id = judged.model_id AND beside.dtype_id = judged.dtype_id
    AND beside.context_tokens = judged.context_tokens AND beside.sequences = judged.sequences
    AND beside.checkpointing = judged.checkpointing
WHERE rule_bytes(rule, counted, judged, beside) IS NOT NULL AND ruled_bytes(rule, judged) IS NOT NULL;

-- near: at most 10 % off; under: it promises over 10 % too little
CREATE OR REPLACE VIEW rule_of_thumb AS
WITH over_models AS (
    SELECT rule_id, count(*) AS model_count, median(error) AS median_error, min(error) AS worst_under,
        max(error) AS worst_over, count(*) FILTER (abs(error) <= near) / count(*) AS near_share,
        count(*) FILTER (error < -near) / count(*) AS under_share,
        first(model_id ORDER BY error, model_id) AS lowest_model_id,
        first(model_id ORDER BY error DESC, model_id) AS highest_model_id
    FROM rule_error CROSS JOIN (SELECT rule_near_error AS near FROM constants) GROUP BY rule_id
)
SELECT rule.*, coalesce(model_count, 0) AS model_count, median_error, worst_under, worst_over, near_share, under_share,
    lowest_model_id, highest_model_id
FROM rule_fact AS rule LEFT JOIN over_models ON over_models.rule_id = rule.rule_id;
