-- rows and columns of pictures by every rule, of made-up processors: each limit is met, passed and missed
WITH picture AS (
    SELECT width, height FROM (VALUES (1920, 1080), (64, 900), (20, 30), (448, 448), (56, 28), (1000, 999), (2999, 40),
        (672, 336), (70, 42), (13, 4001), (337, 671), (5000, 5000), (28, 28), (154, 98)) AS sides(width, height)
),
kind AS (
    SELECT {
        'rule': rule, 'min_image_tokens': least_tokens, 'max_image_tokens': most_tokens, 'max_side_patches': 40,
        'side_tiles': 4, 'max_tiles': 9, 'grids': grids, 'image_extra_tokens': 2, 'tile_extra_tokens': 3,
        'row_extra_tokens': 1
    } AS processor,
    {'pixels_each': pixels, 'merged_tokens': merged, 'text_tokens_each': tokens, 'max_side_pixels': 448,
        'max_tiles': 7, 'processor': {'rule': rule}} AS tower,
        round(sqrt(pixels * merged)) AS unit
    FROM (VALUES ('area', 4, 100, 196, 4, 64), ('area', 1, 16384, 256, 4, 64), ('aligned', 4, 100, 196, 4, 64),
        ('aligned', 16, 90, 196, 4, 64), ('padded', 1, 90, 196, 4, 64), ('padded', 1, 4096, 196, 4, 64),
        ('longest-edge', 1, 100, 196, 4, 64), ('longest-patch', 1, 100, 196, 4, 64), ('budget', 1, 100, 196, 9, 280),
        ('budget', 1, 100, 196, 1, 5), ('sides', 1, 100, 112896, 1, 81), ('fixed', 1, 100, 196, 1, 64),
        ('ratio', 1, 100, 200704, 1, 256), ('canvas', 1, 100, 112896, 1, 144), ('pinpoints', 1, 100, 112896, 1, 576),
        ('pinpoints', 1, 100, 147456, 1, 729))
        AS rules(rule, least_tokens, most_tokens, pixels, merged, tokens)
    CROSS JOIN (SELECT [{'high': 1, 'wide': 1, 'rank': 0}, {'high': 1, 'wide': 2, 'rank': 1},
        {'high': 2, 'wide': 1, 'rank': 2}, {'high': 1, 'wide': 3, 'rank': 3}, {'high': 3, 'wide': 1, 'rank': 4},
        {'high': 2, 'wide': 2, 'rank': 5}, {'high': 2, 'wide': 3, 'rank': 6}, {'high': 3, 'wide': 3, 'rank': 7}]
            AS grids)
),
chosen AS (
    SELECT *, grid_rank(processor, width, height, unit) AS rank FROM kind CROSS JOIN picture
),
in_rows AS (SELECT *, image_rows(tower, processor, width, height, unit, rank) AS picture_rows FROM chosen),
in_columns AS (
    SELECT *, image_columns(tower, processor, width, height, unit, rank, picture_rows) AS picture_columns FROM in_rows
)
SELECT processor.rule AS rule, tower.pixels_each AS pixels, processor.max_image_tokens AS most, width, height,
    rank::DOUBLE AS rank, picture_rows::DOUBLE AS picture_rows, picture_columns::DOUBLE AS picture_columns,
    image_tokens(tower, processor, width, height, picture_rows, picture_columns)::DOUBLE AS tokens,
    image_tiles(tower, picture_rows, picture_columns)::DOUBLE AS tiles
FROM in_columns ORDER BY ALL;
-- which arrangement keeps how much of a picture
SELECT 'kept' AS rule, grid.high AS pixels, grid.wide AS most, width, height, grid.rank::DOUBLE AS rank,
    kept_pixels(grid, width, height, 336)::DOUBLE AS picture_rows,
    pinpoint_score(grid, width, height, 336)::DOUBLE AS picture_columns,
    canvas_scale(grid, width, height, 336)::DOUBLE AS tokens,
    ratio_distance(grid, width, height)::DOUBLE AS tiles
FROM (SELECT unnest([{'high': 1, 'wide': 2, 'rank': 1}, {'high': 3, 'wide': 3, 'rank': 7}]) AS grid)
CROSS JOIN (VALUES (1920, 1080), (20, 30), (337, 671), (1009, 2017), (641, 427)) AS sides(width, height) ORDER BY ALL
