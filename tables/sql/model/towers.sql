-- The tower of a model, which runs before its text, with the processor that cuts pictures for it: part of `shape`.
--
-- Units: elements per token, tokens, pixels. Source: tower, image_processor.csv. Not covered: models with several towers of one kind.

-- Arrangements of tiles that a processor chooses from, in the order that it tries them.
CREATE OR REPLACE TEMP TABLE tile_grid AS
WITH count AS (SELECT unnest(range(1, 64)) AS n),
named AS (SELECT processor_id, string_split(grids, ' ') AS pairs FROM image_processor WHERE grids IS NOT NULL),
grid AS (
    SELECT
        processor_id, string_split(pairs[n], 'x')[1]::BIGINT AS high, string_split(pairs[n], 'x')[2]::BIGINT AS wide,
        n AS rank
    FROM named JOIN count ON n <= len(pairs)
    UNION ALL BY NAME
    SELECT
        processor_id, rows.n AS high, columns.n AS wide,
        row_number() OVER (PARTITION BY processor_id ORDER BY rows.n * columns.n, columns.n) AS rank
    FROM image_processor
    JOIN count AS rows ON rows.n <= max_tiles
    JOIN count AS columns ON rows.n * columns.n <= max_tiles
    WHERE rule IN ('ratio', 'canvas')
)
SELECT processor_id, list({'high': high, 'wide': wide, 'rank': rank} ORDER BY rank) AS grids FROM grid GROUP BY processor_id;

CREATE OR REPLACE TEMP TABLE tower_struct AS
SELECT t.model_id, {
    'component': t.component, 'reader': t.reader, 'grid': t.grid, 'hidden': t.hidden_size, 'width': t.width, 'is_gated': t.is_gated,
    'activation': t.activation, 'hidden_tensors': t.hidden_tensors, 'rotary_tensors': t.rotary_tensors, 'inputs': t.input_elements,
    'tables': t.table_elements, 'kept': t.kept_elements, 'outputs': t.output_elements, 'stem': t.stem_elements, 'square': t.square_elements,
    'class_tokens': t.class_tokens, 'tokens': t.tokens_each, 'pixels': t.pixels_each, 'default_pixels': t.default_pixels,
    'tiles': t.max_tiles, 'text_tokens': t.text_tokens_each, 'merged': t.merged_tokens, 'side_pixels': t.max_side_pixels,
    'processor': iif(p.processor_id IS NULL, NULL, {
        'rule': p.rule, 'least': p.min_image_tokens, 'most': p.max_image_tokens, 'side_patches': p.max_side_patches, 'side_tiles': p.side_tiles,
        'max_tiles': p.max_tiles, 'grids': g.grids, 'image_extra': p.image_extra_tokens, 'tile_extra': p.tile_extra_tokens,
        'row_extra': p.row_extra_tokens})
} AS tower
FROM tower AS t LEFT JOIN image_processor AS p USING (processor_id) LEFT JOIN tile_grid AS g USING (processor_id);

-- The largest picture that a processor passes on: its tiles, and its tokens. They are the model's own, so they are worked out once.
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
        WHEN tower.processor.rule IN ('area', 'aligned', 'padded') THEN tower.processor.most
        WHEN tower.processor.rule IN ('longest-edge', 'longest-patch') THEN ceil(tower.side_pixels / token_side(tower))
            * (ceil(tower.side_pixels / token_side(tower)) + tower.processor.row_extra)
        WHEN tower.processor.rule IN ('budget', 'fixed') THEN tower.text_tokens
        WHEN tower.processor.rule = 'pinpoints'
            THEN least(largest_tiles, coalesce(tower.processor.max_tiles + 1, largest_tiles)) * tower.text_tokens
        ELSE largest_tiles * tower.text_tokens
    END::BIGINT AS largest_image_tokens
FROM tiled;
