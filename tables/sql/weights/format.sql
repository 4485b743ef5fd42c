-- The bits of each kind of tensor in each format that packs element by element.
--
-- Units: bits of an element and of a row, scales and zero points included. Source: weight_format.csv; the most specific
-- row wins.
-- Not covered: formats of blocks (gguf.sql).

-- The bits of each kind of tensor in each format that packs element by element.
CREATE OR REPLACE TEMP TABLE element_format AS
WITH kinds AS (SELECT DISTINCT operator, tensor_class, role FROM tensor)
SELECT
    rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role, rule.element_bits, rule.row_bits, rule.group_elements
FROM kinds
JOIN weight_format AS rule
    ON coalesce(rule.operator = kinds.operator, true)
    AND coalesce(rule.tensor_class = kinds.tensor_class, true)
    AND coalesce(rule.role = kinds.role, true)
QUALIFY row_number() OVER (
    PARTITION BY rule.dtype_id, kinds.operator, kinds.tensor_class, kinds.role
    ORDER BY (rule.role IS NOT NULL)::INT * 4 + (rule.tensor_class IS NOT NULL)::INT * 2
        + (rule.operator IS NOT NULL)::INT DESC
) = 1;
