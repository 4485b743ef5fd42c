-- Bytes of every tensor in every dtype.
--
--   ceil(elements × element_bits ÷ 8) + rows × row_bits ÷ 8 + columns × column_bits ÷ 8
--
-- A format may fill the sides of a matrix up to a multiple (pad_multiple): elements, rows and columns are those then.
--
-- Units: bytes, whole model. Sources: weight_format.csv and gguf_type.csv, by way of format.sql and gguf.sql.
-- Not covered: padding of the vocabulary.

-- a side of a matrix as a format holds it, and how much more elements that makes
CREATE OR REPLACE MACRO filled(features, format) AS
    coalesce(ceil(features / format.pad_multiple) * format.pad_multiple, features);
CREATE OR REPLACE MACRO filled_share(tensor, format) AS iif(format.pad_multiple IS NULL OR tensor.in_features IS NULL
        OR tensor.in_features * tensor.out_features = 0, 1, filled(tensor.in_features, format)
    * filled(tensor.out_features, format) / (tensor.in_features * tensor.out_features));

CREATE OR REPLACE TEMP TABLE tensor_bytes AS
WITH kind AS (
    SELECT model_id, model_type, stored_format, model_id IN (SELECT model_id FROM tensor WHERE operator = 'expert')
        AS has_experts
    FROM model
)
SELECT tensor.*, usual.dtype_id,
    -- a matrix whose rows do not fill groups of one scale each is not packed
    ceil(tensor.element_count * filled_share(tensor, format)
        * iif(coalesce(tensor.in_features % format.group_elements > 0, false), 16, format.element_bits) / 8)::BIGINT
        + (tensor.layer_count * tensor.per_layer_count * iif(tensor.in_features IS NULL, 0,
            filled(tensor.out_features, format) * format.row_bits
                + filled(tensor.in_features, format) * coalesce(format.column_bits, 0)) / 8)::BIGINT AS bytes
FROM tensor JOIN kind USING (model_id) JOIN element_format AS usual USING (operator, tensor_class, role)
LEFT JOIN maker_format AS maker
    ON maker.dtype_id = usual.dtype_id AND maker.model_type = kind.model_type AND maker.has_experts = kind.has_experts
    AND maker.operator = tensor.operator AND maker.tensor_class = tensor.tensor_class AND maker.role = tensor.role
    AND maker.dtype_id IS DISTINCT FROM kind.stored_format,
LATERAL (SELECT
    coalesce(maker.element_bits, usual.element_bits) AS element_bits, coalesce(maker.row_bits, usual.row_bits)
        AS row_bits, usual.column_bits, usual.pad_multiple,
    iif(maker.rank IS NULL, usual.group_elements, maker.group_elements) AS group_elements) AS format
UNION ALL
SELECT tensor.* EXCLUDE (category, is_expert, is_kept, kv_group, experts), share.dtype_id,
    sum(gguf_packed_bytes(tensor.element_count // tensor.layer_count * share.layers, tensor.in_features, wide,
        fallback))::BIGINT
FROM gguf_tensor AS tensor
JOIN gguf_share AS share USING (category, layer_count, kv_group, experts, is_expert)
JOIN gguf_type AS wide ON wide.gguf_type = share.gguf_type
LEFT JOIN gguf_type AS fallback ON fallback.gguf_type = wide.fallback_gguf_type
WHERE NOT tensor.is_kept
GROUP BY ALL
UNION ALL
SELECT tensor.* EXCLUDE (category, is_expert, is_kept, kv_group, experts), mix.dtype_id,
    gguf_packed_bytes(tensor.element_count, tensor.in_features, wide, wide)
FROM gguf_tensor AS tensor, (SELECT DISTINCT dtype_id FROM gguf_mix) AS mix, gguf_type AS wide
WHERE tensor.is_kept AND wide.gguf_type = 'MXFP4'
UNION ALL
SELECT tensor.* EXCLUDE (category, is_expert, is_kept, kv_group, experts), mix.dtype_id,
    gguf_unpacked_bytes(tensor.element_count, tensor.category)
FROM gguf_tensor AS tensor, (SELECT DISTINCT dtype_id FROM gguf_mix) AS mix
WHERE gguf_is_unpacked(tensor.category);
