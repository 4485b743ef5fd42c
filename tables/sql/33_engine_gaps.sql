-- Engines that cannot load a model's architecture, as a column of `shape`.
--
-- Units: none. Source: engine_gap.csv, each line with its own. Not covered: architectures that nobody looked for.

CREATE OR REPLACE MACRO cannot_load(m, engine_id) AS coalesce(list_contains(m.engine_gaps, engine_id), false);

ALTER TABLE shape ADD COLUMN engine_gaps VARCHAR[];
UPDATE shape SET engine_gaps = gap.engine_ids
FROM (
    SELECT model_id, list(engine_id ORDER BY engine_id) AS engine_ids
    FROM model JOIN engine_gap AS gap ON list_contains(string_split(gap.model_types, ' '), model.model_type)
    GROUP BY model_id
) AS gap
WHERE gap.model_id = shape.model_id;
