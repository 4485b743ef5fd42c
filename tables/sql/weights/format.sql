-- The bits of each kind of tensor in each format that packs element by element.
--
-- Units: bits of an element and of a row, scales and zero points included. Source: weight_format.csv; the most specific
-- row wins.
-- Not covered: formats of blocks (gguf.sql).

-- How closely a line of weight_format.csv says which tensors it is of.
CREATE OR REPLACE MACRO format_rank(operator, tensor_class, role) AS
    (role IS NOT NULL)::INT * 4 + (tensor_class IS NOT NULL)::INT * 2 + (operator IS NOT NULL)::INT;

-- The bits of each kind of tensor in each format that packs element by element.
CREATE OR REPLACE TEMP TABLE element_format AS
WITH kinds AS (SELECT DISTINCT operator, tensor_class, role FROM tensor)
SELECT
    rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role, rule.element_bits, rule.row_bits,
    rule.column_bits, rule.pad_multiple, rule.group_elements,
    format_rank(rule.operator, rule.tensor_class, rule.role) AS rank
FROM kinds
JOIN weight_format AS rule
    ON rule.model_types IS NULL
    AND coalesce(rule.operator = kinds.operator, true)
    AND coalesce(rule.tensor_class = kinds.tensor_class, true)
    AND coalesce(rule.role = kinds.role, true)
QUALIFY row_number() OVER (
    PARTITION BY rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role ORDER BY rank DESC
) = 1;

-- The same of architectures that makers of packed repositories pack otherwise. It is asked of a model in a format that
-- it is not published in: what a repository holds, its own config, headers and total say.
CREATE OR REPLACE TABLE maker_format AS
WITH kinds AS (
    SELECT DISTINCT model.model_type, model.model_id IN (SELECT model_id FROM tensor WHERE operator = 'expert')
        AS has_experts, operator, tensor_class, role
    FROM tensor JOIN model USING (model_id)
)
SELECT
    rule.dtype_id, kinds.*, rule.element_bits, rule.row_bits, rule.group_elements,
    format_rank(rule.operator, rule.tensor_class, rule.role) AS rank
FROM kinds
JOIN weight_format AS rule
    ON list_contains(string_split(rule.model_types, ' '), kinds.model_type)
    AND coalesce(rule.has_experts = kinds.has_experts, true)
    AND coalesce(rule.operator = kinds.operator, true)
    AND coalesce(rule.tensor_class = kinds.tensor_class, true)
    AND coalesce(rule.role = kinds.role, true)
JOIN element_format AS usual
    ON usual.dtype_id = rule.dtype_id AND usual.operator = kinds.operator AND usual.tensor_class = kinds.tensor_class
    AND usual.role = kinds.role AND usual.rank <= format_rank(rule.operator, rule.tensor_class, rule.role)
QUALIFY row_number() OVER (
    PARTITION BY rule.dtype_id, kinds.model_type, kinds.has_experts, kinds.operator, kinds.tensor_class, kinds.role
    ORDER BY rank DESC
) = 1;

-- Of which models that is so, in which formats, and how: what people are told beside the figures.
CREATE OR REPLACE TABLE model_packing AS
SELECT model.model_id, rule.dtype_id, string_agg(DISTINCT rule.note, '; ' ORDER BY rule.note) AS note
FROM model
JOIN (SELECT DISTINCT model_id, bool_or(operator = 'expert') OVER (PARTITION BY model_id) AS has_experts FROM tensor)
    AS held USING (model_id)
JOIN weight_format AS rule
    ON list_contains(string_split(rule.model_types, ' '), model.model_type)
    AND coalesce(rule.has_experts = held.has_experts, true) AND rule.dtype_id IS DISTINCT FROM model.stored_format
GROUP BY ALL;
