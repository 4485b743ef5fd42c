-- What somebody may have meant by an id that the book does not hold: the three ids that are most like it.
--
--   those that contain what was asked come first (a blank reads as a hyphen, case does not count), then the most
--   alike by Jaro and Winkler's similarity; of cards the shorter id, of models the more downloaded one. nearest_models
--   names those first that have the most of its words (words_of_name.sql)
--
-- with_nearest(reason, model_id) says them beside a reason that is "no such ...".
--
-- Units: none. Source: the tables gpu, model, dtype, phase, optimizer, engine, kv_dtype, program.
-- Not covered: ids of sources, measurements and constants.

CREATE OR REPLACE MACRO asked_id(asked) AS replace(lower(trim(asked)), ' ', '-');

-- All ids by kind, those first that are meant where several contain what was asked. (Looked up by kind, so that rows
-- whose reason names no id carry no list along.)
CREATE OR REPLACE TABLE known_ids AS
WITH id_of AS (
    SELECT 'model' AS kind, model_id AS id, -coalesce(downloads_30d, -1) AS place FROM model
    UNION ALL SELECT 'GPU', gpu_id, len(gpu_id) FROM gpu
    UNION ALL SELECT 'dtype', dtype_id, len(dtype_id) FROM dtype
    UNION ALL SELECT 'phase', phase_id, len(phase_id) FROM phase
    UNION ALL SELECT 'optimizer', optimizer_id, len(optimizer_id) FROM optimizer
    UNION ALL SELECT 'engine', engine_id, len(engine_id) FROM engine
    UNION ALL SELECT 'KV dtype', kv_dtype_id, len(kv_dtype_id) FROM kv_dtype
    UNION ALL SELECT 'program', program_id, len(program_id) FROM program_known
)
SELECT kind, list(id ORDER BY place, id) AS ids FROM id_of GROUP BY kind ORDER BY kind;

CREATE OR REPLACE MACRO likeness(id, asked, place) AS {
    'is_other': NOT contains(lower(id), asked),
    'unlike': iif(contains(lower(id), asked), 0, -jaro_winkler_similarity(lower(id), asked)), 'place': place, 'id': id
};
CREATE OR REPLACE MACRO nearest_of(ids, asked) AS array_to_string(list_transform(
    list_sort(list_transform(ids, lambda id, place: likeness(id, asked, place)))[1:3], lambda one: one.id), ', ');

-- (the lambdas stand outside of the subquery: DuckDB 1 binds none in it)
CREATE OR REPLACE MACRO nearest_ids(asked_kind, asked) AS nearest_of(
    (SELECT known.ids FROM known_ids AS known WHERE known.kind = asked_kind), asked_id(asked));
CREATE OR REPLACE MACRO nearest_models(asked) AS coalesce(array_to_string(models_near(asked)[1:3], ', '),
    nearest_ids('model', asked));
CREATE OR REPLACE MACRO nearest_gpus(asked) AS nearest_ids('GPU', asked);

CREATE OR REPLACE MACRO no_such_kind(reason) AS iif(reason = 'no such model in this snapshot', 'model',
    regexp_extract(reason, '^no such ([A-Za-z ]+): .', 1));
CREATE OR REPLACE MACRO no_such_id(reason, model_asked) AS iif(reason = 'no such model in this snapshot', model_asked,
    regexp_extract(reason, '^no such [A-Za-z ]+: (.*)', 1));
CREATE OR REPLACE MACRO with_nearest(reason, model_asked) AS reason
    || coalesce(' (nearest: ' || nearest_ids(no_such_kind(reason), no_such_id(reason, model_asked)) || ')', '');

-- The same for a question of one row, whose plan is shorter so: all ids are carried along with it, which a relation of
-- many rows has no memory for.
CREATE OR REPLACE MACRO with_nearest_once(reason, model_asked) AS reason || coalesce(' (nearest: ' || nearest_of(
    list_filter((SELECT list(known ORDER BY known.kind) FROM known_ids AS known),
        lambda one: one.kind = no_such_kind(reason))[1].ids,
    asked_id(no_such_id(reason, model_asked))) || ')', '');
-- The same of a reason that names no other kind: what is looked up hangs on no row, which takes half as long to plan.
CREATE OR REPLACE MACRO with_nearest_program(reason) AS iif(
    starts_with(reason, 'no such program: '), reason || ' (nearest: '
        || nearest_ids('program', regexp_extract(reason, '^no such program: (.*)', 1)) || ')', reason);

CREATE OR REPLACE MACRO no_gpu_reason(asked) AS 'no such GPU: ' || asked;
CREATE OR REPLACE MACRO unknown_gpu_reason(asked) AS with_nearest(no_gpu_reason(asked), NULL);

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
