-- Denoisers and text encoders of pipelines in formats that pack their matrices: what they weigh, and
-- what lies beside while one is multiplied.
--
--   weights_bytes = Σ over tensors ceil(elements × element_bits ÷ 8) + rows × row_bits ÷ 8
--   working_bytes   the largest matrix of a block as it is unpacked (working_bits of an element)
--   first_bytes     the same of what runs once, before the blocks do
--   token_bytes     what a product of 8 bits holds for each token: in_bytes × columns + out_bytes × rows
--
-- Units: bytes, one GPU. Sources: denoiser_part.csv says which tensors of a class a packer leaves alone, as diffusers
--   and the converter of GGUF files do; denoiser_format.csv how the others are held. Most specific row first. A matrix
--   whose rows do not divide into groups stays in 16 bits. Some layers of a tensor may be held apart (the first block
--   and the last of Qwen-Image): as apart_held says, and where a format has no such row as the others are.
-- Not covered: blocks whose rows do not divide into groups (K formats of Stable Diffusion 3.5 large: converters write
--   another format in their place); classes without a row in denoiser_part; parts other than the denoiser; what is kept
--   in 32 bits (below 0.5 %). Text encoders in GGUF files: Transformers unpacks these as it loads.

-- few: layers that refine the text; blocks: the many others; pairs: two matrices of a kind in each block, of picture
-- and text
CREATE OR REPLACE MACRO is_of_layers(layers, layer_count, per_layer_count, most_layers) AS CASE layers
    WHEN 'any' THEN true WHEN 'once' THEN layer_count = 1
    WHEN 'few' THEN layer_count > 1 AND 4 * layer_count <= most_layers
    WHEN 'blocks' THEN layer_count > 1 AND 4 * layer_count > most_layers
    ELSE layer_count > 1 AND per_layer_count = 2 END;

CREATE OR REPLACE TABLE denoiser_weight AS
WITH of_part AS (
    SELECT tensor.model_id, 'denoiser' AS pipeline_part, denoiser.class_name, tensor.role, tensor.operator,
        tensor.layer_count, tensor.per_layer_count, tensor.out_features, tensor.in_features, tensor.element_count
    -- (a token of a denoiser is more than one pixel; a second one is of the same class)
    FROM (SELECT model_id, max(class_name) AS class_name FROM component WHERE token_pixels > 1 GROUP BY model_id)
        AS denoiser JOIN tensor USING (model_id)
    WHERE tensor.tensor_class = 'denoiser'
    UNION ALL
    SELECT held.model_id, held.pipeline_part, component.class_name, held.role, held.operator, held.layer_count,
        held.per_layer_count, held.out_features, held.in_features, held.element_count
    FROM component_tensor AS held JOIN component USING (model_id, pipeline_part)
),
named AS (
    SELECT of_part.*, row_number() OVER (ORDER BY model_id, pipeline_part, role, operator, layer_count,
            per_layer_count, out_features, in_features, element_count) AS tensor_number,
        max(layer_count) OVER (PARTITION BY model_id, pipeline_part) AS most_layers,
        iif(operator = 'linear', out_features * in_features,
            element_count // (layer_count * per_layer_count)) AS matrix_elements
    FROM of_part
),
held AS (
    SELECT named.*, part.packer, part.held, part.holds_for,
        least(coalesce(part.apart_layer_count, 0), named.layer_count) AS apart_layer_count, part.apart_held
    FROM named JOIN denoiser_part AS part ON part.class_name IN ('any', named.class_name)
        AND coalesce(part.operator = named.operator, true) AND coalesce(part.role = named.role, true)
        AND is_of_layers(part.layers, named.layer_count, named.per_layer_count, named.most_layers)
    QUALIFY row_number() OVER (PARTITION BY tensor_number, part.packer
        ORDER BY part.class_name = 'any', part.role IS NULL, part.layers = 'any', part.operator IS NULL) = 1
),
piece AS (
    SELECT held.* REPLACE (NULL AS apart_held), layer_count - apart_layer_count AS piece_layer_count FROM held
    UNION ALL
    SELECT held.*, apart_layer_count FROM held
),
packed AS (
    SELECT piece.* REPLACE (element_count // layer_count * piece_layer_count AS element_count), format.dtype_id,
        format.element_bits, format.row_bits, format.working_bits, format.in_bytes, format.out_bytes,
        coalesce(piece.in_features % format.group_elements = 0, true) AS is_packed,
        layer_count = 1 AND (ends_with(role, '_embedding') OR role IN ('modulation', 'patch_output')) AS is_first
    FROM piece JOIN denoiser_format AS format ON format.packer = piece.packer
        AND format.held IN ('rest', piece.held, coalesce(piece.apart_held, piece.held))
    WHERE piece_layer_count > 0
    QUALIFY row_number() OVER (PARTITION BY tensor_number, piece.apart_held, format.dtype_id
        ORDER BY format.held IS DISTINCT FROM piece.apart_held, format.held <> piece.held) = 1
)
SELECT model_id, pipeline_part, dtype_id,
    sum(iif(is_packed, ceil(element_count * element_bits / 8)
        + iif(in_features IS NULL, 0, piece_layer_count * per_layer_count * out_features) * row_bits / 8,
        2 * element_count))::BIGINT AS weights_bytes,
    coalesce(max(matrix_elements * working_bits / 8) FILTER (is_packed AND NOT is_first), 0)::BIGINT AS working_bytes,
    coalesce(max(matrix_elements * working_bits / 8) FILTER (is_packed AND is_first), 0)::BIGINT AS first_bytes,
    coalesce(max(in_bytes * in_features + out_bytes * out_features) FILTER (NOT is_first AND role <> 'modulation'),
        0)::BIGINT AS token_bytes,
    -- (releases that hold a part of it otherwise are not told)
    max(holds_for) AS holds_for
FROM packed
GROUP BY model_id, pipeline_part, dtype_id
HAVING NOT bool_or(layer_count > 1 AND NOT is_packed);
