-- The tower of a model, which runs before its text, with the processor that cuts pictures for it: part of `shape`.
--
-- Units: elements per token, tokens, pixels. Source: tower, image_processor.csv, tower_graph.csv, tower_training.csv.
-- Not covered: models with several towers of one kind.

-- Arrangements of tiles that a processor chooses from, in the order that it tries them.
CREATE OR REPLACE TEMP TABLE tile_grid AS
WITH count AS (SELECT unnest(range(1, 64)) AS number),
named AS (SELECT processor_id, string_split(grids, ' ') AS pairs FROM image_processor WHERE grids IS NOT NULL),
grid AS (
    SELECT
        processor_id, string_split(pairs[number], 'x')[1]::BIGINT AS high, string_split(pairs[number], 'x')[2]::BIGINT
            AS wide,
        number AS rank
    FROM named JOIN count ON number <= len(pairs)
    UNION ALL BY NAME
    SELECT
        processor_id, rows.number AS high, columns.number AS wide,
        row_number() OVER (PARTITION BY processor_id ORDER BY rows.number * columns.number, columns.number) AS rank
    FROM image_processor
    JOIN count AS rows ON rows.number <= max_tiles
    JOIN count AS columns ON rows.number * columns.number <= max_tiles
    WHERE rule IN ('ratio', 'canvas')
)
SELECT processor_id, list({'high': high, 'wide': wide, 'rank': rank} ORDER BY rank) AS grids
    FROM grid GROUP BY processor_id;

CREATE OR REPLACE TEMP TABLE tower_struct AS
SELECT tower.model_id, {
    'component': tower.component, 'reader': tower.reader, 'grid': tower.grid, 'hidden_size': tower.hidden_size,
    'width': tower.width, 'is_gated': tower.is_gated,
    'alive_tensors': coalesce(form.alive_tensors, 2), 'hidden_tensors': tower.hidden_tensors,
    'rotary_tensors': tower.rotary_tensors,
    'input_elements': tower.input_elements,
    'table_elements': tower.table_elements, 'kept_elements': tower.kept_elements,
    'output_elements': tower.output_elements, 'stem_elements': tower.stem_elements,
    'square_elements': tower.square_elements,
    'class_tokens': tower.class_tokens, 'tokens_each': tower.tokens_each, 'pixels_each': tower.pixels_each,
    'default_pixels': tower.default_pixels,
    'max_tiles': tower.max_tiles, 'text_tokens_each': tower.text_tokens_each, 'samples_each': tower.samples_each,
    'merged_tokens': tower.merged_tokens,
    'max_side_pixels': tower.max_side_pixels,
    'processor': iif(processor.processor_id IS NULL, NULL, {
        'rule': processor.rule, 'min_image_tokens': processor.min_image_tokens,
        'max_image_tokens': processor.max_image_tokens, 'max_side_patches': processor.max_side_patches,
        'side_tiles': processor.side_tiles,
        'max_tiles': processor.max_tiles, 'grids': tile_grid.grids, 'image_extra_tokens': processor.image_extra_tokens,
        'tile_extra_tokens': processor.tile_extra_tokens,
        'row_extra_tokens': processor.row_extra_tokens}),
    'graph': iif(graph.token_elements IS NULL, NULL, {
        'token_side_pixels': graph.token_side_pixels, 'merged_tokens': graph.merged_tokens,
        'warm_tokens': graph.warm_tokens, 'largest_tokens': graph.largest_tokens, 'pass_tokens': graph.pass_tokens,
        'token_elements': graph.token_elements, 'pair_bytes': graph.pair_bytes,
        'unfused_elements': graph.unfused_elements, 'unfused_pair_bytes': graph.unfused_pair_bytes,
        'sound_bytes': graph.sound_bytes})
} AS tower
FROM tower
JOIN model USING (model_id)
LEFT JOIN activation AS form ON form.function_name = tower.activation
LEFT JOIN image_processor AS processor USING (processor_id) LEFT JOIN tile_grid USING (processor_id)
LEFT JOIN tower_graph AS graph ON list_contains(string_split(graph.model_types, ' '), model.model_type)
    AND graph.processor_id = tower.processor_id AND graph.hidden_size = tower.hidden_size
    AND graph.width = tower.width AND coalesce(graph.text_hidden_size = model.hidden_size, true);

-- The largest picture that a processor passes on: its tiles, and its tokens. They are the model's own, so they are
-- worked out once.
CREATE OR REPLACE TEMP TABLE tower_shape AS
WITH tiled AS (
    SELECT *, CASE
        WHEN tower.processor.rule IN ('ratio', 'canvas') THEN tower.processor.max_tiles + 1
        WHEN tower.processor.rule = 'sides' THEN tower.processor.side_tiles * tower.processor.side_tiles + 1
        WHEN tower.processor.rule = 'pinpoints'
            THEN list_max(list_transform(tower.processor.grids, lambda grid: grid.high * grid.wide)) + 1
    END AS largest_tiles
    FROM tower_struct
)
SELECT
    model_id, tower, largest_tiles::BIGINT AS largest_image_tiles,
    CASE
        WHEN tower.processor.rule IN ('area', 'aligned', 'padded') THEN tower.processor.max_image_tokens
        WHEN tower.processor.rule IN ('longest-edge', 'longest-patch')
            THEN ceil(tower.max_side_pixels / token_side(tower))
            * (ceil(tower.max_side_pixels / token_side(tower)) + tower.processor.row_extra_tokens)
        WHEN tower.processor.rule IN ('budget', 'fixed') THEN tower.text_tokens_each
        WHEN tower.processor.rule = 'pinpoints'
            THEN least(largest_tiles, coalesce(tower.processor.max_tiles + 1, largest_tiles)) * tower.text_tokens_each
        ELSE largest_tiles * tower.text_tokens_each
    END::BIGINT AS largest_image_tokens
FROM tiled;

-- Of those whose training on pictures was counted: whether autograd reaches the tower's layers, and what it then keeps.
CREATE OR REPLACE TEMP TABLE tower_training_shape AS
WITH layers AS (
    SELECT model_id, sum(layer_count)::BIGINT AS layer_count FROM attention_layer WHERE component = 'vision'
    GROUP BY model_id
)
SELECT model.model_id, {
    'is_input_hooked': told.is_input_hooked, 'layer_count': coalesce(layers.layer_count, 0),
    'hooked_tensors': told.hooked_tensors, 'layer_tensors': told.layer_tensors,
    'step_tensors': told.step_tensors, 'adapted_tensors': told.adapted_tensors,
    'adapted_step_tensors': told.adapted_step_tensors, 'has_own_names': told.has_own_names,
    'autocast_input_tensors': told.autocast_input_tensors,
    'text_mask_bytes': told.text_mask_bytes,
    'frozen_by': told.frozen_by
} AS tower_training
FROM model JOIN tower_training AS told ON list_contains(string_split(told.model_types, ' '), model.model_type)
LEFT JOIN layers USING (model_id);

-- Models that see, and whether anybody counted what llama.cpp sets aside for their tower.
CREATE OR REPLACE TABLE seeing_model AS
WITH seeing AS (
    SELECT model_id FROM attention_layer WHERE component = 'vision'
    UNION
    SELECT model_id FROM tower WHERE component = 'vision'
)
SELECT seeing.model_id, coalesce(tower.component = 'vision' AND tower.graph IS NOT NULL, false) AS has_counted_tower
FROM seeing
LEFT JOIN tower_struct USING (model_id);
