-- How far a card goes: the longest context and the most sequences, read off totals that are known. This is the only
-- place where that is done.
--
--   points: rows of `at` (tokens, or sequences) and `need` (a total with its error band), the smallest first
--   largest_between(points, capacity, multiple)   the largest that the card gives, in whole multiples; 0 where it gives
--                                                 none; where the last point fits, that point
--   largest_beyond(points, capacity, most)        the same; where all points fit on along the last line, up to `most`,
--                                                 but not where that line is steeper than the one before it
--   most_requests, line_end                       the most sequences that an engine runs by itself, and how far its
--                                                 line is followed
--   context_multiple                              the tokens that it allocates at a time
--
-- A total is taken as a line between neighbouring points (the ladder has a point at every bend of a model's caches),
-- and where it bends upwards the line lies above it: a limit is never too high.
-- Units: tokens, sequences; `need` and capacity in bytes. Source: engine_memory.csv, by whose rows the words in braces
-- are written out, and the constants that it names.
-- As verdict.sql: read by SQL, and translated for the pages and for the browser (pipeline/render/data/rules.py).
-- Not covered: what lies between points that are published (limits_on looks at every step).

CREATE OR REPLACE MACRO points_that_fit(points, capacity) AS
    len(list_filter(points, lambda point: point.need <= capacity));

-- between two points, or beyond the last one; whole multiples of what an engine allocates at a time
CREATE OR REPLACE MACRO on_the_line(low, high, capacity, multiple) AS greatest(low.at, (floor(
    (low.at + (capacity - low.need) / greatest(high.need - low.need, 1) * (high.at - low.at)) / multiple)
        * multiple)::BIGINT);

CREATE OR REPLACE MACRO largest_of(points, fitting_count, capacity, multiple) AS CASE
    WHEN fitting_count = 0 THEN 0
    WHEN fitting_count = len(points) THEN points[-1].at
    ELSE on_the_line(points[fitting_count], points[fitting_count + 1], capacity, multiple)
END;
CREATE OR REPLACE MACRO largest_between(points, capacity, multiple) AS
    largest_of(points, points_that_fit(points, capacity), capacity, multiple);

-- the last line is steeper than the one before it: nobody knows how steep the next would be
CREATE OR REPLACE MACRO bends_upwards(points) AS len(points) > 2
    AND (points[-1].need - points[-2].need) * (points[-2].at - points[-3].at)
        > 1.0001 * (points[-2].need - points[-3].need) * (points[-1].at - points[-2].at);

CREATE OR REPLACE MACRO largest_beyond(points, capacity, most) AS CASE
    WHEN points_that_fit(points, capacity) < len(points) OR len(points) < 2 THEN largest_between(points, capacity, 1)
    WHEN bends_upwards(points) THEN points[-1].at
    ELSE least(on_the_line(points[-2], points[-1], capacity, 1), most)
END;

-- servers queue what comes beyond their default; nobody else has a limit
CREATE OR REPLACE MACRO most_requests(engine_id, constants) AS
    (CASE {most_sequences_constant of engine_id} END)::BIGINT;
CREATE OR REPLACE MACRO is_serving_engine(engine_id) AS
    engine_id IN ({engines with most_sequences_constant});

-- Where the line through the last points of a limit ends: an engine's own cap, and for llama.cpp the last point itself,
-- since its masks make the compute buffer steeper beyond it.
CREATE OR REPLACE MACRO line_end(engine_id, constants) AS
    (CASE {looked_sequences_constant of engine_id} ELSE most_requests(engine_id, constants) END)::BIGINT;

CREATE OR REPLACE MACRO context_multiple(engine_id, constants) AS CASE
    {cell_constant of engine_id}
    ELSE 1
END;
