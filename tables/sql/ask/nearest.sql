-- What somebody may have meant by an id that the book does not hold: the three ids that are most like it.
--
--   those that contain what was asked come first (a blank reads as a hyphen, case does not count), then the most
--   alike by Jaro and Winkler's similarity; of cards the shorter id, of models the more downloaded one
--
-- with_nearest(reason, model_id) says them beside a reason that is "no such ...".
--
-- Units: none. Source: the tables gpu, model, dtype, phase, optimizer, engine, kv_dtype, program.
-- Not covered: ids of sources, measurements and constants.

CREATE OR REPLACE MACRO asked_id(asked) AS replace(lower(trim(asked)), ' ', '-');

CREATE OR REPLACE MACRO nearest_gpus(asked) AS (
    SELECT string_agg(gpu_id, ', ') FROM (
        SELECT gpu_id FROM gpu
        ORDER BY contains(gpu_id, asked_id(asked)) DESC, iif(contains(gpu_id, asked_id(asked)), len(gpu_id), 0),
            jaro_winkler_similarity(gpu_id, asked_id(asked)) DESC, gpu_id
        LIMIT 3
    )
);

CREATE OR REPLACE MACRO nearest_models(asked) AS (
    SELECT string_agg(model_id, ', ') FROM (
        SELECT model_id FROM model
        ORDER BY contains(lower(model_id), asked_id(asked)) DESC,
            iif(contains(lower(model_id), asked_id(asked)), 1, jaro_winkler_similarity(lower(model_id),
                asked_id(asked))) DESC,
            downloads_30d DESC NULLS LAST, model_id
        LIMIT 3
    )
);

CREATE OR REPLACE MACRO unknown_gpu_reason(asked) AS
    'no such GPU: ' || asked || ' (nearest: ' || nearest_gpus(asked) || ')';

-- the id itself, null where none was asked, or an error
CREATE OR REPLACE MACRO known_dtype(asked) AS
    iif(asked IS NULL OR lower(asked) IN (SELECT dtype_id FROM dtype), lower(asked),
        error('no such dtype: ' || asked || ' (' || (SELECT string_agg(dtype_id, ', ') FROM dtype) || ')')::VARCHAR);

CREATE OR REPLACE MACRO known_engine(asked) AS
    iif(asked IS NULL OR lower(asked) IN (SELECT engine_id FROM engine), lower(asked),
        error('no such engine: ' || asked || ' (' || (SELECT string_agg(engine_id, ', ') FROM engine) || ')')::VARCHAR);

CREATE OR REPLACE MACRO known_phase(asked) AS iif(lower(asked) IN (SELECT phase_id FROM phase), lower(asked),
    error('no such phase: ' || coalesce(asked, 'NULL') || ' (' || (SELECT string_agg(phase_id, ', ') FROM phase)
        || ')')::VARCHAR);

CREATE OR REPLACE MACRO known_gpu(asked) AS
    coalesce((SELECT known.gpu_id FROM gpu AS known WHERE known.gpu_id = lower(asked)),
        error(coalesce(unknown_gpu_reason(asked), 'no GPU was named'))::VARCHAR);

CREATE OR REPLACE VIEW book_id AS
SELECT 'dtype' AS kind, dtype_id AS id FROM dtype
UNION ALL SELECT 'phase', phase_id FROM phase
UNION ALL SELECT 'optimizer', optimizer_id FROM optimizer
UNION ALL SELECT 'engine', engine_id FROM engine
UNION ALL SELECT 'KV dtype', kv_dtype_id FROM kv_dtype
UNION ALL SELECT 'program', program_id FROM program_known;

CREATE OR REPLACE MACRO nearest_ids(asked_kind, asked) AS (
    SELECT string_agg(id, ', ') FROM (
        SELECT id FROM book_id WHERE kind = asked_kind
        ORDER BY contains(id, asked_id(asked)) DESC, iif(contains(id, asked_id(asked)), len(id), 0),
            jaro_winkler_similarity(id, asked_id(asked)) DESC, id
        LIMIT 3
    )
);

CREATE OR REPLACE MACRO with_nearest(reason, model_asked) AS reason || CASE
    WHEN reason = 'no such model in this snapshot' THEN ' (nearest: ' || nearest_models(model_asked) || ')'
    WHEN regexp_matches(reason, '^no such [A-Za-z ]+: .') THEN ' (nearest: '
        || nearest_ids(regexp_extract(reason, '^no such ([A-Za-z ]+): (.*)', 1),
            regexp_extract(reason, '^no such ([A-Za-z ]+): (.*)', 2)) || ')'
    ELSE ''
END;
