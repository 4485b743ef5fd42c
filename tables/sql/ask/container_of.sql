-- container_of('Systran/faster-whisper-large-v3'): what the files of a repository are, where they are not those that
-- every program loads; at most one row.
--
--   container_id, program_name   what they are, and the program that loads them
--   engine_id                    our engine of that program; null where no formula says what it holds: of a fork of
--                                llama.cpp too, which GGUF of a class is for that llama.cpp has no converter for
--   original_id                  the model that it was made of, where that is known here; of a repository that the
--                                almanac has not repository_of tells it
--   second_file_bytes            of GGUF: what the towers of the original take, which llama.cpp keeps in a
--                                second file (mmproj: matrices in 16 bits) and llama-server -hf loads beside the first
--   is_whole                     whether it is its original to the element: without its towers, or with them
--   is_sensing                   whether the Hub lists it as one that sees or hears
--
-- The container is told by the library that the Hub names, or by a word of the repository's name; so it is told of a
-- repository that is not in the almanac too, whose original is what repository_of says. Units: bytes. Source: the table
-- container; docs/multimodal.md of llama.cpp. Not covered: which mixes a repository of GGUF holds, and whether it holds
-- a second file at all.

CREATE OR REPLACE MACRO second_file_bytes(asked_id) AS (
    SELECT sum(gguf_unpacked_bytes(part.element_count, gguf_category(part.tensor_class, part.role, part.operator,
        false)))::BIGINT FROM tensor AS part
    WHERE part.model_id = asked_id AND part.tensor_class IN ('vision-tower', 'audio-tower', 'projector')
        AND NOT is_of_speech(part.component));

CREATE OR REPLACE TABLE model_container AS
WITH tower AS (
    SELECT model_id, sum(element_count)::BIGINT AS element_count,
        sum(gguf_unpacked_bytes(element_count, gguf_category(tensor_class, role, operator, false)))::BIGINT AS bytes
    FROM tensor WHERE tensor_class IN ('vision-tower', 'audio-tower', 'projector') AND NOT is_of_speech(component)
    GROUP BY model_id
),
named AS (
    SELECT model.model_id, arg_min(container, container.container_rank) AS container
    FROM model JOIN container ON list_contains(string_split(container.libraries, ' '), model.library)
        OR regexp_matches(model.model_id, '(?i)' || container.name_pattern)
    GROUP BY model.model_id
),
-- the Hub names a base for few: of the others a name tells it, as it does of what is not in the almanac
spoken AS (
    SELECT named.model_id, arg_min(plain.model_id, pattern.name_rank) AS spoken_id
    FROM named JOIN repository_name AS pattern ON regexp_matches(
        iif(contains(pattern.name_pattern, '/'), named.model_id, split_part(named.model_id, '/', 2)),
        '(?i)' || pattern.name_pattern)
    JOIN plain_model AS plain ON plain.name = plain_name(regexp_replace(
        iif(contains(pattern.name_pattern, '/'), named.model_id, split_part(named.model_id, '/', 2)),
        '(?i)' || pattern.name_pattern, pattern.base_name)) AND plain.model_id <> named.model_id
    GROUP BY named.model_id
),
based AS (
    SELECT named.model_id, named.container, own.parameter_count, own.anatomy_grade, own.pipeline_tag,
        original.model_id AS original_id, original.parameter_count AS original_count,
        -- GGUF of a class that llama.cpp has no converter for is of a program made from it
        named.container.container_id = 'gguf' AND EXISTS (FROM engine_gap AS gap
            WHERE gap.engine_id = named.container.engine_id AND gap.gap = 'load'
                AND list_contains(string_split(gap.model_types, ' '), own.model_type)) AS is_forked
    FROM named JOIN model AS own ON own.model_id = named.model_id
    LEFT JOIN spoken ON spoken.model_id = named.model_id
    LEFT JOIN model AS original ON original.model_id = coalesce(known_model(own.base_model_id), spoken.spoken_id)
        AND original.anatomy_grade <> 'unknown'
)
SELECT based.model_id, based.container.container_id AS container_id,
    iif(based.is_forked, 'a fork of ', '') || based.container.program_name AS program_name,
    iif(based.is_forked, NULL, based.container.engine_id) AS engine_id, based.original_id,
    iif(based.container.container_id = 'gguf' AND NOT based.is_forked, coalesce(tower.bytes, own_tower.bytes), NULL)
        AS second_file_bytes,
    based.original_id IS NOT NULL AND (based.anatomy_grade = 'unknown' OR based.original_count - based.parameter_count
        IN (0, coalesce(tower.element_count, 0))) AS is_whole,
    coalesce(based.pipeline_tag IN ('image-text-to-text', 'any-to-any', 'audio-text-to-text'), false)
        AND NOT based.is_forked AS is_sensing
FROM based
LEFT JOIN tower ON tower.model_id = based.original_id
LEFT JOIN tower AS own_tower ON own_tower.model_id = based.model_id;

CREATE OR REPLACE MACRO container_of(asked) AS TABLE
FROM model_container WHERE model_id = known_model(asked::VARCHAR)
UNION ALL
(SELECT NULL, container.container_id, container.program_name, container.engine_id, NULL,
    iif(container.container_id = 'gguf', (SELECT second_file_bytes(said.model_id) FROM repository_of(asked) AS said),
        NULL), false, false
FROM container
WHERE known_model(asked::VARCHAR) NOT IN (SELECT model.model_id FROM model)
    AND regexp_matches(asked::VARCHAR, '(?i)' || container.name_pattern)
ORDER BY container.container_rank LIMIT 1);
