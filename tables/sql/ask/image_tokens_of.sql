-- The tokens of one picture, asked by its size: what a processor makes of it before the tower sees it.
--
--   prompt_tokens  places in the prompt, separators of the processor included; what a chat template writes around them
--                  comes on top. 0 where the text reads the picture by cross-attention
--   tower_tokens   patches that the tower runs, those that it merges, pads or leaves out included
--   tiles          pictures of the tower's own size that it was cut into, the small one of the whole included; null
--       where it is not cut
--
-- Units: pixels, tokens. Source: activations/images/image_tokens.sql, tower, image_processor; held to the real
-- processors by tests/oracle/image_tokens.csv. Null with unknown_reason where the model reads no images, or its
-- processor is not known (code that travels with a checkpoint).
-- Not covered: several pictures of different sizes, pan and scan.

-- A relation of model_id, image_width and image_height (null: default), a row for each.
CREATE OR REPLACE MACRO pictures(relation) AS TABLE
WITH asked_for AS (FROM query_table(relation)),
asked AS (
    SELECT coalesce(named.model_id, asked.model_id::VARCHAR) AS model_id,
        iif(abs(try_cast(asked.image_width AS DOUBLE)) <= constants.most_image_side, asked_number(asked.image_width),
            NULL) AS image_width,
        iif(abs(try_cast(asked.image_height AS DOUBLE)) <= constants.most_image_side, asked_number(asked.image_height),
            NULL) AS image_height,
        coalesce(number_reason('image_width', asked.image_width, constants.most_image_side),
            number_reason('image_height', asked.image_height, constants.most_image_side))
            AS argument_reason
    FROM asked_for AS asked LEFT JOIN model_name AS named ON named.name = lower(asked.model_id::VARCHAR) CROSS
        JOIN constants_row
),
sized AS (
    SELECT
        asked.model_id, model.tower AS tower, model.model_id IS NOT NULL AS is_known, constants, 1 AS images,
        NULL AS audio_seconds, NULL AS context_tokens,
        asked.argument_reason, asked.argument_reason IS NOT NULL
            OR coalesce(least(asked.image_width, asked.image_height) < 1, false) AS is_nothing,
        picture_side(model.tower, iif(asked.image_width < 1, NULL, asked.image_width), constants) AS picture_width,
        picture_side(model.tower, iif(asked.image_height < 1, NULL, asked.image_height), constants) AS picture_height,
        token_side(model.tower) AS token_pixels
    FROM asked
    LEFT JOIN shape_row ON shape_row.model_id = asked.model_id
    CROSS JOIN constants_row
),
arranged AS (SELECT *, grid_rank(tower.processor, picture_width, picture_height, token_pixels) AS grid_rank FROM sized),
in_rows AS (SELECT *, image_rows(tower, tower.processor, picture_width, picture_height, token_pixels, grid_rank)
    AS picture_rows FROM arranged),
in_columns AS (
    SELECT *, image_columns(tower, tower.processor, picture_width, picture_height, token_pixels, grid_rank,
        picture_rows) AS picture_columns FROM in_rows
),
counted AS (
    SELECT
        scenario.*, prompt_image_tokens(scenario.tower, scenario) AS prompt_tokens,
        tower_tokens(scenario.tower, scenario, scenario.constants) AS tower_tokens,
        iif(scenario.tower.grid = 'tiles', image_tiles(scenario.tower, scenario.picture_rows, scenario.picture_columns),
            NULL) AS tiles
    FROM (SELECT in_columns AS scenario FROM in_columns)
)
SELECT
    model_id, iif(is_nothing, NULL, picture_width)::BIGINT AS image_width,
    iif(is_nothing, NULL, picture_height)::BIGINT AS image_height,
    CASE WHEN tower.component = 'vision' AND NOT is_nothing THEN prompt_tokens::BIGINT END AS prompt_tokens,
    CASE WHEN tower.component = 'vision' AND NOT is_nothing AND prompt_tokens IS NOT NULL THEN tower_tokens::BIGINT END
        AS tower_tokens,
    CASE WHEN prompt_tokens IS NOT NULL AND NOT is_nothing THEN tiles::BIGINT END AS tiles,
    CASE
        WHEN argument_reason IS NOT NULL THEN argument_reason
        WHEN is_nothing THEN 'image_width and image_height start at 1'
        WHEN NOT is_known THEN 'no such model in this snapshot'
        WHEN coalesce(tower.component <> 'vision', true) OR prompt_tokens IS NULL
            THEN 'how many tokens an image takes is not known for this architecture'
    END AS unknown_reason
FROM counted;

CREATE OR REPLACE MACRO image_tokens_of(model_id, image_width := NULL, image_height := NULL) AS TABLE
WITH picture_asked AS (SELECT model_id AS model_id, image_width AS image_width, image_height AS image_height)
SELECT picture.* REPLACE (with_nearest(picture.unknown_reason, picture.model_id) AS unknown_reason)
    FROM pictures('picture_asked') AS picture;
