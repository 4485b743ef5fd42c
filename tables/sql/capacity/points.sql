-- The points that the limits of `compatibility` are read off: every total that is known on one card, by context and by
-- number of sequences.
--
-- Units: bytes with their error band, tokens, sequences. Source: footprint, ladder. Not covered: several cards.

CREATE OR REPLACE VIEW limit_points AS
SELECT
    model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, kv_dtype_id, optimizer_id, precision,
    checkpointing,
    needed(total_bytes, error_band) AS need
FROM (FROM footprint WHERE gpu_count = 1 UNION ALL BY NAME FROM ladder)
WHERE total_bytes IS NOT NULL;

CREATE OR REPLACE VIEW context_points AS
SELECT * EXCLUDE (context_tokens, need), list({'at': context_tokens, 'need': need} ORDER BY context_tokens) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;

CREATE OR REPLACE VIEW sequence_points AS
SELECT * EXCLUDE (sequences, need), list({'at': sequences, 'need': need} ORDER BY sequences) AS points
FROM (SELECT DISTINCT * FROM limit_points) GROUP BY ALL;
