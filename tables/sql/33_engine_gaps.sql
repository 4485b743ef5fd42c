-- What engines make of a model's architecture, as columns of `shape`: those that cannot load it, and whether llama.cpp uses its windows.
--
-- Units: none. Source: engine_gap.csv and engine_window.csv, each line with its own. Not covered: architectures that nobody looked for.

CREATE OR REPLACE MACRO cannot_load(m, engine_id) AS coalesce(list_contains(m.engine_gaps, engine_id), false);

ALTER TABLE shape ADD COLUMN engine_gaps VARCHAR[];
UPDATE shape SET engine_gaps = gap.engine_ids
FROM (
    SELECT model_id, list(engine_id ORDER BY engine_id) AS engine_ids
    FROM model JOIN engine_gap AS gap ON list_contains(string_split(gap.model_types, ' '), model.model_type)
    GROUP BY model_id
) AS gap
WHERE gap.model_id = shape.model_id;

-- llama.cpp loads Mistral and others as plain Llamas: it caches, and attends to, the whole context.
ALTER TABLE shape ADD COLUMN has_llama_cpp_windows BOOLEAN DEFAULT false;
UPDATE shape SET has_llama_cpp_windows = true
WHERE model_id IN (
    SELECT model_id FROM model JOIN engine_window AS w ON list_contains(string_split(w.model_types, ' '), model.model_type)
    WHERE w.engine_id = 'llama.cpp'
);
