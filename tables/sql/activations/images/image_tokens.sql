-- How many tokens a picture becomes: its processor resizes or cuts it, and each patch or tile that comes out is so many tokens.
--
--   area          sides rounded to whole tokens; where they are too many (or too few), both shrunk (grown) by the same factor
--   aligned       the same, rounded up; where they are too many, the largest picture that is not
--   padded        shrunk where patches or a side are too many, never enlarged, padded to whole tokens
--   longest-edge  shrunk where a side is too long, padded to whole tokens; longest-patch: to whole patches, of which half a token is left out
--   budget        enlarged or shrunk to as many tokens as there may be
--   ratio         tiles in the arrangement whose ratio of sides is nearest, and the whole picture where they are several
--   canvas        tiles of the smallest canvas that the picture fits into without being shrunk, or of the one that shrinks it least, and the whole
--   pinpoints     tiles of the canvas that keeps most of the picture, without its padding, and the whole
--   sides         the longer side enlarged to side_tiles tiles, and the whole
--   fixed         as many for every picture
--
--   tokens = rows × (columns + row_extra) + image_extra                                             (patches)
--          = tiles × (tokens of a tile + tile_extra) + rows × row_extra + tokens of the whole + image_extra   (tiles)
--
-- Units: pixels, tokens. Sources: image_processor.csv for the processor, tower for patch, tile and merge, which the config decides. What a
--   checkpoint's own preprocessor_config changes is not known: the class's settings, or those that its publisher documents, stand for it.
-- Held to the real processors by tests/oracle/image_tokens.csv.
-- Not covered: what a chat template writes around a picture; pan and scan; several pictures in one prompt of LLaVA-OneVision.

-- side of a token of the prompt (of a tile), in pixels
CREATE OR REPLACE MACRO token_side(t) AS round(sqrt(t.pixels * greatest(t.merged, 1)));

-- half goes to the even number, as in Python
CREATE OR REPLACE MACRO round_to_even(a) AS iif(a - floor(a) = 0.5, 2 * floor((a + 1) / 2), round(a));

-- one side in tokens, of a picture of w × h pixels whose token is u pixels wide
CREATE OR REPLACE MACRO area_side(p, side, w, h, u) AS CASE
    WHEN round_to_even(h / u) * round_to_even(w / u) > p.most THEN greatest(1, floor(side / sqrt(w * h / (p.most * u * u)) / u))
    WHEN round_to_even(h / u) * round_to_even(w / u) < p.least THEN ceil(side * sqrt(p.least * u * u / (w * h)) / u)
    ELSE round_to_even(side / u)
END;

CREATE OR REPLACE MACRO aligned_side(p, side, w, h, u) AS
    iif(ceil(h / u) * ceil(w / u) < p.least, ceil(ceil(side * sqrt(p.least * u * u / (w * h))) / u), ceil(side / u));

CREATE OR REPLACE MACRO aligned_columns(height, w, h, u) AS ceil(greatest(1, floor(w * height / h)) / u);

CREATE OR REPLACE MACRO aligned_rows(p, w, h, u) AS CASE
    WHEN aligned_side(p, h, w, h, u) * aligned_side(p, w, w, h, u) <= p.most THEN aligned_side(p, h, w, h, u)
    ELSE list_max(list_filter(range(1, ceil(h / u)::BIGINT + 1), lambda r: r * aligned_columns((r - 1) * u + 1, w, h, u) <= p.most))
END;

CREATE OR REPLACE MACRO padded_scale(p, w, h, patch, merged) AS least(1,
    sqrt(p.most * merged / (greatest(1, floor(h / patch)) * greatest(1, floor(w / patch)))), p.side_patches * patch / h, p.side_patches * patch / w);

CREATE OR REPLACE MACRO within_edge(side, w, h, edge) AS iif(greatest(h / edge, w / edge) > 1, floor(side / greatest(h / edge, w / edge)), side);

CREATE OR REPLACE MACRO budget_side(most, side, other, u) AS CASE
    WHEN floor(sqrt(most * u * u / (side * other)) * side / u) = 0 THEN 1
    WHEN floor(sqrt(most * u * u / (side * other)) * other / u) = 0 THEN least(floor(side / other), most)
    ELSE floor(sqrt(most * u * u / (side * other)) * side / u)
END;

-- the arrangement that a processor chooses, by its rank
CREATE OR REPLACE MACRO ratio_distance(g, w, h) AS abs(w / h - g.wide / g.high);

CREATE OR REPLACE MACRO ratio_rank(ties, w, h, u) AS greatest(list_min(list_transform(ties, lambda g: g.rank)),
    list_max(list_transform(list_filter(ties, lambda g: w * h > 0.5 * u * u * g.wide * g.high), lambda g: g.rank)));

-- what a canvas keeps of the picture, in pixels
CREATE OR REPLACE MACRO kept_pixels(g, w, h, u) AS least(
    floor(w * least(g.wide * u / w, g.high * u / h)) * floor(h * least(g.wide * u / w, g.high * u / h)), w * h);

-- most pixels kept, then fewest wasted, then the first (each factor is above what the next can be)
CREATE OR REPLACE MACRO pinpoint_score(g, w, h, u) AS (kept_pixels(g, w, h, u) * 10000000
    + 10000000 - (g.high * g.wide * u * u - kept_pixels(g, w, h, u))) * 64 + 63 - g.rank;

CREATE OR REPLACE MACRO canvas_scale(g, w, h, u) AS least(g.wide * u / w, g.high * u / h);

CREATE OR REPLACE MACRO canvas_best(grids, w, h, u) AS coalesce(
    list_min(list_filter(list_transform(grids, lambda g: canvas_scale(g, w, h, u)), lambda s: s >= 1)),
    list_max(list_transform(grids, lambda g: canvas_scale(g, w, h, u))));

CREATE OR REPLACE MACRO grid_rank(p, w, h, u) AS CASE p.rule
    WHEN 'ratio' THEN ratio_rank(list_filter(p.grids, lambda g:
        ratio_distance(g, w, h) = list_min(list_transform(p.grids, lambda other: ratio_distance(other, w, h)))), w, h, u)
    WHEN 'pinpoints' THEN 63 - list_max(list_transform(p.grids, lambda g: pinpoint_score(g, w, h, u))) % 64
    WHEN 'canvas' THEN list_min(list_transform(list_filter(p.grids, lambda g:
        canvas_scale(g, w, h, u) = canvas_best(p.grids, w, h, u)), lambda g: g.rank))
END;

-- tiles of one side where the longer side has side_tiles of them; a shorter side of odd pixels is one longer
CREATE OR REPLACE MACRO longer_side_tiles(p, side, other, u) AS iif(side >= other, p.side_tiles,
    ceil((floor(p.side_tiles * u / (other / side)) + floor(p.side_tiles * u / (other / side)) % 2) / u));

-- Rows and columns of a picture: of tokens, or of tiles. `chosen` is the rank of the arrangement.
CREATE OR REPLACE MACRO image_rows(t, p, w, h, u, chosen) AS CASE p.rule
    WHEN 'area' THEN area_side(p, h, w, h, u)
    WHEN 'aligned' THEN aligned_rows(p, w, h, u)
    WHEN 'padded' THEN ceil(greatest(1, floor(h * padded_scale(p, w, h, u / sqrt(t.merged), t.merged))) / u)
    WHEN 'longest-edge' THEN ceil(within_edge(h, w, h, t.side_pixels) / u)
    WHEN 'longest-patch' THEN floor(ceil(within_edge(h, w, h, t.side_pixels) / sqrt(t.pixels)) / sqrt(t.merged))
    WHEN 'budget' THEN budget_side(t.text_tokens, h, w, u)
    WHEN 'sides' THEN longer_side_tiles(p, h, w, u)
    WHEN 'fixed' THEN 1
    ELSE list_max(list_transform(list_filter(p.grids, lambda g: g.rank = chosen), lambda g: g.high))
END;

CREATE OR REPLACE MACRO image_columns(t, p, w, h, u, chosen, rows) AS CASE p.rule
    WHEN 'area' THEN area_side(p, w, w, h, u)
    WHEN 'aligned' THEN iif(aligned_side(p, h, w, h, u) * aligned_side(p, w, w, h, u) <= p.most, aligned_side(p, w, w, h, u),
        least(floor(p.most / rows), aligned_columns(least(h, rows * u), w, h, u)))
    WHEN 'padded' THEN ceil(greatest(1, floor(w * padded_scale(p, w, h, u / sqrt(t.merged), t.merged))) / u)
    WHEN 'longest-edge' THEN ceil(within_edge(w, w, h, t.side_pixels) / u)
    WHEN 'longest-patch' THEN floor(ceil(within_edge(w, w, h, t.side_pixels) / sqrt(t.pixels)) / sqrt(t.merged))
    WHEN 'budget' THEN budget_side(t.text_tokens, w, h, u)
    WHEN 'sides' THEN longer_side_tiles(p, w, h, u)
    WHEN 'fixed' THEN 1
    ELSE list_max(list_transform(list_filter(p.grids, lambda g: g.rank = chosen), lambda g: g.wide))
END;

-- Of a canvas: patches of one side without the padding. `side` and `other` are the picture's, `patches` and `across` the canvas's.
CREATE OR REPLACE MACRO unpadded(side, other, patches, across) AS iif(other / side > across / patches,
    patches - 2 * floor((patches - floor(side * (across / other) + 0.00000005)) / 2), patches);

CREATE OR REPLACE MACRO shrunk(patches, all_patches, most) AS
    iif(coalesce(sqrt(all_patches / most) > 1.1, false), floor(patches / sqrt(all_patches / most)), patches);

-- tokens behind a canvas's tiles: n patches a side of each
CREATE OR REPLACE MACRO canvas_tokens(p, high, wide, n) AS shrunk(high, high * wide, p.max_tiles * n * n)
    * (shrunk(wide, high * wide, p.max_tiles * n * n) + p.row_extra);

-- tokens of the prompt for one picture
CREATE OR REPLACE MACRO image_tokens(t, p, w, h, rows, columns) AS p.image_extra + CASE
    WHEN p.rule = 'pinpoints' THEN t.text_tokens + canvas_tokens(p,
        unpadded(h, w, round(sqrt(t.text_tokens)) * rows, round(sqrt(t.text_tokens)) * columns),
        unpadded(w, h, round(sqrt(t.text_tokens)) * columns, round(sqrt(t.text_tokens)) * rows), round(sqrt(t.text_tokens)))
    WHEN p.rule IN ('ratio', 'canvas', 'sides') THEN t.text_tokens
        + iif(rows * columns > 1, rows * columns * (t.text_tokens + p.tile_extra) + rows * p.row_extra, 0)
    WHEN p.rule = 'fixed' THEN t.text_tokens
    ELSE rows * (columns + p.row_extra)
END;

-- tiles that the tower sees of it
CREATE OR REPLACE MACRO image_tiles(t, rows, columns) AS CASE
    WHEN t.processor.rule IS NULL THEN t.tiles
    WHEN t.processor.rule = 'pinpoints' OR rows * columns > 1 THEN rows * columns + 1
    ELSE 1
END;
