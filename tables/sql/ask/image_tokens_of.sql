-- The tokens of one picture, asked by its size: what a processor makes of it before the tower sees it.
--
--   prompt_tokens  places in the prompt, separators of the processor included; what a chat template writes around them comes on top.
--                  0 where the text reads the picture by cross-attention
--   tower_tokens   patches that the tower runs, those that it merges, pads or leaves out included
--   tiles          pictures of the tower's own size that it was cut into, the small one of the whole included; null where it is not cut
--
-- Units: pixels, tokens. Source: activations/images/image_tokens.sql, tower, image_processor; held to the real processors by tests/oracle/image_tokens.csv.
-- Null with unknown_reason where the model reads no images, or its processor is not known (code that travels with a checkpoint).

-- A relation of model_id, image_width and image_height (null: default), a row for each.
CREATE OR REPLACE MACRO pictures(relation) AS TABLE
WITH asked_for AS (FROM query_table(relation)),
asked AS (
    SELECT coalesce(named.model_id, a.model_id::VARCHAR) AS model_id,
        iif(abs(try_cast(a.image_width AS DOUBLE)) <= k.most_image_side, asked_number(a.image_width), NULL) AS image_width,
        iif(abs(try_cast(a.image_height AS DOUBLE)) <= k.most_image_side, asked_number(a.image_height), NULL) AS image_height,
        coalesce(number_reason('image_width', a.image_width, k.most_image_side), number_reason('image_height', a.image_height, k.most_image_side))
            AS argument_reason
    FROM asked_for AS a LEFT JOIN model_name AS named ON named.name = lower(a.model_id::VARCHAR) CROSS JOIN constants_row
),
sized AS (
    SELECT
        asked.model_id, m.tower AS t, m.model_id IS NOT NULL AS is_known, k, 1 AS images, NULL AS audio_seconds, NULL AS context_tokens,
        asked.argument_reason, asked.argument_reason IS NOT NULL OR coalesce(least(asked.image_width, asked.image_height) < 1, false) AS is_nothing,
        picture_side(m.tower, iif(asked.image_width < 1, NULL, asked.image_width), k) AS picture_width,
        picture_side(m.tower, iif(asked.image_height < 1, NULL, asked.image_height), k) AS picture_height, token_side(m.tower) AS token_pixels
    FROM asked
    LEFT JOIN shape_row ON shape_row.model_id = asked.model_id
    CROSS JOIN constants_row
),
arranged AS (SELECT *, grid_rank(t.processor, picture_width, picture_height, token_pixels) AS grid_rank FROM sized),
in_rows AS (SELECT *, image_rows(t, t.processor, picture_width, picture_height, token_pixels, grid_rank) AS picture_rows FROM arranged),
in_columns AS (
    SELECT *, image_columns(t, t.processor, picture_width, picture_height, token_pixels, grid_rank, picture_rows) AS picture_columns FROM in_rows
),
counted AS (
    SELECT
        x.*, prompt_image_tokens(x.t, x) AS prompt_tokens, tower_tokens(x.t, x, x.k) AS tower_tokens,
        iif(x.t.grid = 'tiles', image_tiles(x.t, x.picture_rows, x.picture_columns), NULL) AS tiles
    FROM (SELECT in_columns AS x FROM in_columns)
)
SELECT
    model_id, iif(is_nothing, NULL, picture_width)::BIGINT AS image_width, iif(is_nothing, NULL, picture_height)::BIGINT AS image_height,
    CASE WHEN t.component = 'vision' AND NOT is_nothing THEN prompt_tokens::BIGINT END AS prompt_tokens,
    CASE WHEN t.component = 'vision' AND NOT is_nothing AND prompt_tokens IS NOT NULL THEN tower_tokens::BIGINT END AS tower_tokens,
    CASE WHEN prompt_tokens IS NOT NULL AND NOT is_nothing THEN tiles::BIGINT END AS tiles,
    CASE
        WHEN argument_reason IS NOT NULL THEN argument_reason
        WHEN is_nothing THEN 'image_width and image_height start at 1'
        WHEN NOT is_known THEN 'no such model in this snapshot'
        WHEN coalesce(t.component <> 'vision', true) OR prompt_tokens IS NULL THEN 'how many tokens an image takes is not known for this architecture'
    END AS unknown_reason
FROM counted;

CREATE OR REPLACE MACRO image_tokens_of(model_id, image_width := NULL, image_height := NULL) AS TABLE
WITH picture_asked AS (SELECT model_id AS model_id, image_width AS image_width, image_height AS image_height)
SELECT p.* REPLACE (with_nearest(p.unknown_reason, p.model_id) AS unknown_reason) FROM pictures('picture_asked') AS p;
