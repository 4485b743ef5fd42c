-- What engines make of a model's architecture, as columns of `shape`: those that cannot load it, those of which nobody knows what they
-- hold of it, and those whose cache uses its windows.
--
-- Units: none. Source: engine_gap.csv and engine_window.csv, each line with its own. Not covered: architectures that nobody looked for.

CREATE OR REPLACE MACRO cannot_load(m, engine_id) AS coalesce(list_contains(m.engine_gaps, engine_id), false);
CREATE OR REPLACE MACRO is_unread(m, engine_id) AS coalesce(list_contains(m.unread_engines, engine_id), false);
CREATE OR REPLACE MACRO has_windows(m, engine_id) AS coalesce(list_contains(m.windowed_engines, engine_id), false);

ALTER TABLE shape ADD COLUMN engine_gaps VARCHAR[];
ALTER TABLE shape ADD COLUMN unread_engines VARCHAR[];
UPDATE shape SET engine_gaps = gap.cannot_load, unread_engines = gap.unread
FROM (
    SELECT
        model_id, list(engine_id ORDER BY engine_id) FILTER (gap = 'load') AS cannot_load,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'memory') AS unread
    FROM model JOIN engine_gap AS gap ON list_contains(string_split(gap.model_types, ' '), model.model_type)
    GROUP BY model_id
) AS gap
WHERE gap.model_id = shape.model_id;

-- llama.cpp and MLX LM load Mistral and others as plain Llamas: they cache, and attend to, the whole context.
ALTER TABLE shape ADD COLUMN windowed_engines VARCHAR[];
UPDATE shape SET windowed_engines = w.engine_ids
FROM (
    SELECT model_id, list(engine_id ORDER BY engine_id) AS engine_ids
    FROM model JOIN engine_window AS w ON list_contains(string_split(w.model_types, ' '), model.model_type)
    GROUP BY model_id
) AS w
WHERE w.model_id = shape.model_id;
