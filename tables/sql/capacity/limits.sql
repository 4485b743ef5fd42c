-- The limits on one card, from the points of the lookup and the ladder.
--
--   max_context_tokens  longest context at this number of sequences; where the last point fits, that point
--   max_sequences       most sequences at this context; vLLM runs no more than its default, training is known up to 64
--
-- A total is linear between neighbouring points (the ladder has a point at every bend of a model's caches), and where
-- it bends upwards the line lies above it: a limit is never too high.
-- Units: tokens, sequences; `need` is bytes with their error band. Source: footprint, ladder; the same rule is in
-- pipeline/render/data/limits.py and site/assets/limits.js, and tests hold them equal.
-- Not covered: points beyond those that are published (limits_on looks at every step).

-- The limits on one card, from the points of the lookup and the ladder. A total is linear between neighbouring points
-- (the ladder has a point at every bend of a model's caches), and where it bends upwards the line lies above it: a
-- limit is never too high.
--   max_context_tokens  longest context at this number of sequences; where the last point fits, that point
--   max_sequences       most sequences at this context; vLLM runs no more than its default, training is known up to 64
CREATE OR REPLACE VIEW limit_points AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision,
    checkpointing,
    total_bytes * (1 + error_band) AS need
FROM (FROM footprint WHERE gpu_count = 1 UNION ALL BY NAME FROM ladder)
WHERE total_bytes IS NOT NULL;

CREATE OR REPLACE VIEW context_points AS
SELECT * EXCLUDE (context_tokens, need), list({'at': context_tokens, 'need': need} ORDER BY context_tokens) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;

CREATE OR REPLACE VIEW sequence_points AS
SELECT * EXCLUDE (sequences, need), list({'at': sequences, 'need': need} ORDER BY sequences) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;

CREATE OR REPLACE MACRO points_that_fit(points, capacity) AS
    len(list_filter(points, lambda point: point.need <= capacity));

-- between two points, or beyond the last one; whole multiples of what an engine allocates at a time
CREATE OR REPLACE MACRO on_the_line(low, high, capacity, multiple) AS greatest(low.at, (floor(
    (low.at + (capacity - low.need) / greatest(high.need - low.need, 1) * (high.at - low.at)) / multiple)
        * multiple)::BIGINT);

CREATE OR REPLACE MACRO largest_between(points, capacity, multiple) AS CASE
    WHEN points_that_fit(points, capacity) = 0 THEN 0
    WHEN points_that_fit(points, capacity) = len(points) THEN points[-1].at
    ELSE on_the_line(points[points_that_fit(points, capacity)], points[points_that_fit(points, capacity) + 1], capacity,
        multiple)
END;

CREATE OR REPLACE MACRO largest_beyond(points, capacity, most) AS CASE
    WHEN points_that_fit(points, capacity) < len(points) OR len(points) < 2 THEN largest_between(points, capacity, 1)
    ELSE least(on_the_line(points[-2], points[-1], capacity, 1), most)
END;
