-- How many tokens a picture becomes: its processor resizes or cuts it, and each patch or tile that comes out is so many
-- tokens.
--
--   area          sides rounded to whole tokens; where they are too many (or too few), both shrunk (grown) by the same
--       factor
--   aligned       the same, rounded up; where they are too many, the largest picture that is not
--   padded        shrunk where patches or a side are too many, never enlarged, padded to whole tokens
--   longest-edge  shrunk where a side is too long, padded to whole tokens; longest-patch: to whole patches, of which
--       half a token is left out
--   budget        enlarged or shrunk to as many tokens as there may be
--   ratio         tiles in the arrangement whose ratio of sides is nearest, and the whole picture where they are
--       several
--   canvas        tiles of the smallest canvas that the picture fits into without being shrunk, or of the one that
--       shrinks it least, and the whole
--   pinpoints     tiles of the canvas that keeps most of the picture, without its padding, and the whole
--   sides         the longer side enlarged to side_tiles tiles, and the whole
--   fixed         as many for every picture
--
--   tokens = rows × (columns + row_extra) + image_extra                                             (patches)
--          = tiles × (tokens of a tile + tile_extra) + rows × row_extra + tokens of the whole + image_extra   (tiles)
--
-- Units: pixels, tokens. Sources: image_processor.csv for the processor, tower for patch, tile and merge, which the
--   config decides. What a checkpoint's own preprocessor_config changes is not known: the class's settings, or those
--   that its publisher documents, stand for it.
-- Held to the real processors by tests/oracle/image_tokens.csv.
-- Not covered: what a chat template writes around a picture; pan and scan; several pictures in one prompt of
-- LLaVA-OneVision.

-- side of a token of the prompt (of a tile), in pixels
CREATE OR REPLACE MACRO token_side(tower) AS round(sqrt(tower.pixels_each * greatest(tower.merged_tokens, 1)));

-- half goes to the even number, as in Python
CREATE OR REPLACE MACRO round_to_even(number) AS
    iif(number - floor(number) = 0.5, 2 * floor((number + 1) / 2), round(number));

-- one side in tokens, of a picture of w × h pixels whose token is u pixels wide
CREATE OR REPLACE MACRO area_side(processor, side, width, height, unit) AS CASE
    WHEN round_to_even(height / unit) * round_to_even(width / unit) > processor.max_image_tokens
        THEN greatest(1, floor(side / sqrt(width * height / (processor.max_image_tokens * unit * unit)) / unit))
    WHEN round_to_even(height / unit) * round_to_even(width / unit) < processor.min_image_tokens
        THEN ceil(side * sqrt(processor.min_image_tokens * unit * unit / (width * height)) / unit)
    ELSE round_to_even(side / unit)
END;

CREATE OR REPLACE MACRO aligned_side(processor, side, width, height, unit) AS
    iif(ceil(height / unit) * ceil(width / unit) < processor.min_image_tokens,
        ceil(ceil(side * sqrt(processor.min_image_tokens * unit * unit / (width * height))) / unit), ceil(side / unit));

CREATE OR REPLACE MACRO aligned_columns(reached, width, height, unit) AS
    ceil(greatest(1, floor(width * reached / height)) / unit);

CREATE OR REPLACE MACRO aligned_rows(processor, width, height, unit) AS CASE
    WHEN aligned_side(processor, height, width, height, unit) * aligned_side(processor, width, width, height,
        unit) <= processor.max_image_tokens THEN aligned_side(processor, height, width, height, unit)
    ELSE list_max(list_filter(range(1, ceil(height / unit)::BIGINT + 1), lambda rows: rows
        * aligned_columns((rows - 1) * unit + 1, width, height, unit) <= processor.max_image_tokens))
END;

CREATE OR REPLACE MACRO padded_scale(processor, width, height, patch, merged) AS least(1,
    sqrt(processor.max_image_tokens * merged / (greatest(1, floor(height / patch))
        * greatest(1, floor(width / patch)))), processor.max_side_patches * patch / height, processor.max_side_patches
    * patch / width);

CREATE OR REPLACE MACRO within_edge(side, width, height, edge) AS
    iif(greatest(height / edge, width / edge) > 1, floor(side / greatest(height / edge, width / edge)), side);

CREATE OR REPLACE MACRO budget_side(most, side, other, unit) AS CASE
    WHEN floor(sqrt(most * unit * unit / (side * other)) * side / unit) = 0 THEN 1
    WHEN floor(sqrt(most * unit * unit / (side * other)) * other / unit) = 0 THEN least(floor(side / other), most)
    ELSE floor(sqrt(most * unit * unit / (side * other)) * side / unit)
END;

-- the arrangement that a processor chooses, by its rank
CREATE OR REPLACE MACRO ratio_distance(grid, width, height) AS abs(width / height - grid.wide / grid.high);

CREATE OR REPLACE MACRO ratio_rank(ties, width, height, unit) AS
    greatest(list_min(list_transform(ties, lambda grid: grid.rank)),
        list_max(list_transform(list_filter(ties, lambda grid: width * height > 0.5 * unit * unit * grid.wide
            * grid.high), lambda grid: grid.rank)));

-- what a canvas keeps of the picture, in pixels
CREATE OR REPLACE MACRO kept_pixels(grid, width, height, unit) AS least(
    floor(width * least(grid.wide * unit / width, grid.high * unit / height))
        * floor(height * least(grid.wide * unit / width, grid.high * unit / height)), width * height);

-- most pixels kept, then fewest wasted, then the first (each factor is above what the next can be)
CREATE OR REPLACE MACRO pinpoint_score(grid, width, height, unit) AS (kept_pixels(grid, width, height, unit) * 10000000
    + 10000000 - (grid.high * grid.wide * unit * unit - kept_pixels(grid, width, height, unit))) * 64 + 63 - grid.rank;

CREATE OR REPLACE MACRO canvas_scale(grid, width, height, unit) AS
    least(grid.wide * unit / width, grid.high * unit / height);

CREATE OR REPLACE MACRO canvas_best(grids, width, height, unit) AS coalesce(
    list_min(list_filter(list_transform(grids, lambda grid: canvas_scale(grid, width, height, unit)),
        lambda scale: scale >= 1)),
    list_max(list_transform(grids, lambda grid: canvas_scale(grid, width, height, unit))));

CREATE OR REPLACE MACRO grid_rank(processor, width, height, unit) AS CASE processor.rule
    WHEN 'ratio' THEN ratio_rank(list_filter(processor.grids, lambda grid:
        ratio_distance(grid, width, height)
            = list_min(list_transform(processor.grids, lambda other: ratio_distance(other, width, height)))), width,
        height, unit)
    WHEN 'pinpoints' THEN 63
        - list_max(list_transform(processor.grids, lambda grid: pinpoint_score(grid, width, height, unit))) % 64
    WHEN 'canvas' THEN list_min(list_transform(list_filter(processor.grids, lambda grid:
        canvas_scale(grid, width, height, unit) = canvas_best(processor.grids, width, height, unit)),
            lambda grid: grid.rank))
END;

-- tiles of one side where the longer side has side_tiles of them; a shorter side of odd pixels is one longer
CREATE OR REPLACE MACRO longer_side_tiles(processor, side, other, unit) AS iif(side >= other, processor.side_tiles,
    ceil((floor(processor.side_tiles * unit / (other / side))
        + floor(processor.side_tiles * unit / (other / side)) % 2) / unit));

-- Rows and columns of a picture: of tokens, or of tiles. `chosen` is the rank of the arrangement.
CREATE OR REPLACE MACRO image_rows(tower, processor, width, height, unit, chosen) AS CASE processor.rule
    WHEN 'area' THEN area_side(processor, height, width, height, unit)
    WHEN 'aligned' THEN aligned_rows(processor, width, height, unit)
    WHEN 'padded'
        THEN ceil(
            greatest(1, floor(height * padded_scale(processor, width, height, unit / sqrt(tower.merged_tokens),
                tower.merged_tokens))) / unit)
    WHEN 'longest-edge' THEN ceil(within_edge(height, width, height, tower.max_side_pixels) / unit)
    WHEN 'longest-patch'
        THEN floor(ceil(within_edge(height, width, height, tower.max_side_pixels) / sqrt(tower.pixels_each))
            / sqrt(tower.merged_tokens))
    WHEN 'budget' THEN budget_side(tower.text_tokens_each, height, width, unit)
    WHEN 'sides' THEN longer_side_tiles(processor, height, width, unit)
    WHEN 'fixed' THEN 1
    ELSE list_max(list_transform(list_filter(processor.grids, lambda grid: grid.rank = chosen), lambda grid: grid.high))
END;

CREATE OR REPLACE MACRO image_columns(tower, processor, width, height, unit, chosen, rows) AS CASE processor.rule
    WHEN 'area' THEN area_side(processor, width, width, height, unit)
    WHEN 'aligned' THEN iif(aligned_side(processor, height, width, height, unit) * aligned_side(processor, width, width,
        height, unit) <= processor.max_image_tokens, aligned_side(processor, width, width, height, unit),
        least(floor(processor.max_image_tokens / rows), aligned_columns(least(height, rows * unit), width, height,
            unit)))
    WHEN 'padded'
        THEN ceil(
            greatest(1, floor(width * padded_scale(processor, width, height, unit / sqrt(tower.merged_tokens),
                tower.merged_tokens))) / unit)
    WHEN 'longest-edge' THEN ceil(within_edge(width, width, height, tower.max_side_pixels) / unit)
    WHEN 'longest-patch'
        THEN floor(ceil(within_edge(width, width, height, tower.max_side_pixels) / sqrt(tower.pixels_each))
            / sqrt(tower.merged_tokens))
    WHEN 'budget' THEN budget_side(tower.text_tokens_each, width, height, unit)
    WHEN 'sides' THEN longer_side_tiles(processor, width, height, unit)
    WHEN 'fixed' THEN 1
    ELSE list_max(list_transform(list_filter(processor.grids, lambda grid: grid.rank = chosen), lambda grid: grid.wide))
END;

-- Of a canvas: patches of one side without the padding. `side` and `other` are the picture's, `patches` and `across`
-- the canvas's.
CREATE OR REPLACE MACRO unpadded(side, other, patches, across) AS iif(other / side > across / patches,
    patches - 2 * floor((patches - floor(side * (across / other) + 0.00000005)) / 2), patches);

CREATE OR REPLACE MACRO shrunk(patches, all_patches, most) AS
    iif(coalesce(sqrt(all_patches / most) > 1.1, false), floor(patches / sqrt(all_patches / most)), patches);

-- tokens behind a canvas's tiles: n patches a side of each
CREATE OR REPLACE MACRO canvas_tokens(processor, high, wide, patches) AS
    shrunk(high, high * wide, processor.max_tiles * patches * patches)
        * (shrunk(wide, high * wide, processor.max_tiles * patches * patches) + processor.row_extra_tokens);

-- tokens of the prompt for one picture
CREATE OR REPLACE MACRO image_tokens(tower, processor, width, height, rows, columns) AS
    processor.image_extra_tokens + CASE
        WHEN processor.rule = 'pinpoints' THEN tower.text_tokens_each + canvas_tokens(processor,
            unpadded(height, width, round(sqrt(tower.text_tokens_each)) * rows, round(sqrt(tower.text_tokens_each))
                * columns),
            unpadded(width, height, round(sqrt(tower.text_tokens_each)) * columns, round(sqrt(tower.text_tokens_each))
                * rows), round(sqrt(tower.text_tokens_each)))
        WHEN processor.rule IN ('ratio', 'canvas', 'sides') THEN tower.text_tokens_each
            + iif(rows * columns > 1, rows * columns * (tower.text_tokens_each + processor.tile_extra_tokens) + rows
                * processor.row_extra_tokens, 0)
        WHEN processor.rule = 'fixed' THEN tower.text_tokens_each
        ELSE rows * (columns + processor.row_extra_tokens)
    END;

-- tiles that the tower sees of it
CREATE OR REPLACE MACRO image_tiles(tower, rows, columns) AS CASE
    WHEN tower.processor.rule IS NULL THEN tower.max_tiles
    WHEN tower.processor.rule = 'pinpoints' OR rows * columns > 1 THEN rows * columns + 1
    ELSE 1
END;
