-- repository_of('TheBloke/Llama-2-7B-GPTQ'): which model and which format a name speaks of that is not a model's own.
--
--   a repository of a quantisation (…-AWQ, …-bnb-4bit, mlx-community/…-4bit, …-GGUF:Q4_K_M), a file of GGUF, a tag of
--   Ollama (deepseek-r1:32b, llama3.1:8b-instruct-q4_K_M, mistral), or a model's name without its organisation; one
--   row, and no model where nothing is found. A model is found by the letters and digits of its name, also with
--   -Instruct, -it, -Chat, -hf or -diffusers behind it, without -diffusers, with its organisation and a _ before it, or
--   by some of its words (words_of_name.sql); of several the one that is known, no copy of another, most downloaded.
--   A tag of Ollama goes before; a name without a tag is one where no known model has that name, or where Ollama is
--   named with it (ollama run deepseek-r1). That of a family (flux, sdxl, sd 1.5, mistral 7b) is the model that people
--   mean by it, where nothing else has that name. beyond_bytes: what the file holds beyond the format that is told, at
--   most (Ollama lists two digits of a size); null where the format is the file's own.
--   ollama_tag: as `ollama run` takes it, where the name is one of its library.
--   more_bytes: of a repository that is not in the almanac, in a format that makers pack otherwise than is counted,
--   what its weights may take beyond the weights of model_id in dtype_id (0 where all known ways agree): what the band
--   of any total in that format has in it (weight.packing_spread_bytes), or more, where the maker is known for that;
--   more_reason says of what. Null where the repository is here, or its type says how it is packed (GGUF, Ollama,
--   bitsandbytes, MLX).
--
-- gpus_called('A100 40G'): the cards that go by a name: an id or a whole name, else without the words of makers and
--   machines, and with its memory where that is said; none, one, or several that differ in what was not said. "Mac
--   Studio" is every chip that one was built with, "16 GB Mac" every chip of Apple with that memory, "24 GB" every
--   NVIDIA card of it that one buys (else those of workstations, else of data centres).
--
-- Units: GiB. Source: the tables repository_name, packing_way, ollama_tag, family_name, model, gpu. Not covered: names
-- that are neither a model's nor made by these patterns.

CREATE OR REPLACE MACRO plain_name(name) AS
    regexp_replace(lower(regexp_replace(name, '^.*/', '')), '[^a-z0-9]', '', 'g');

-- Half a digit of a size as Ollama lists it: whole gigabytes or megabytes from ten on, tenths below.
CREATE OR REPLACE MACRO listed_error_bytes(file_bytes) AS
    CASE WHEN file_bytes >= 1e10 THEN 5e8 WHEN file_bytes >= 1e9 THEN 5e7 WHEN file_bytes >= 1e7 THEN 5e5 ELSE 5e4 END;

-- The format that a file is counted in where no format is its own: experts in MXFP4 and the rest in 16 bits, a mix
-- whose embedding is left in 16, or a mix of Ollama's, of which only the size is known.
CREATE OR REPLACE MACRO counted_format(said) AS
    CASE said
        WHEN 'gguf-mxfp4-f16' THEN 'gguf-mxfp4'
        WHEN 'gguf-q4_0-f16-embedding' THEN 'gguf-q4_0'
        WHEN 'own-mix' THEN 'gguf-q4_k_m'
        ELSE said
    END;

-- What it holds beyond that format, at most (mxfp4 is what is published with the rest in 16 bits, and bf16 what an
-- embedding is in them).
CREATE OR REPLACE MACRO beyond_format_bytes(counted_model, said, counted_dtype, file_bytes) AS (
    SELECT CASE
        WHEN said = 'gguf-mxfp4-f16' THEN any_value(published.weights_bytes) - any_value(held.weights_bytes)
        WHEN said = 'gguf-q4_0-f16-embedding'
            THEN any_value(whole.embedding_bytes) - any_value(held.embedding_bytes)
        WHEN said = 'own-mix' OR any_value(held.weights_bytes) < file_bytes - listed_error_bytes(file_bytes)
            THEN greatest(0, file_bytes + listed_error_bytes(file_bytes) - any_value(held.weights_bytes))
    END::BIGINT
    FROM weight AS held
    LEFT JOIN weight AS published ON published.model_id = held.model_id AND published.dtype_id = 'mxfp4'
    LEFT JOIN weight AS whole ON whole.model_id = held.model_id AND whole.dtype_id = 'bf16'
    WHERE held.model_id = counted_model AND held.dtype_id = counted_dtype
);

-- under its own name, and where that begins with its organisation (meta-llama/Meta-Llama-3-70B) without its
-- first word
CREATE OR REPLACE TABLE plain_model AS
WITH named AS (
    SELECT plain_name(model_id) AS name, true AS is_own, model_id, anatomy_grade, downloads_30d FROM model
    UNION ALL
    SELECT plain_name(regexp_replace(lower(split_part(model_id, '/', 2)), '^[^-]*-', '')), false, model_id,
        anatomy_grade, downloads_30d
    FROM model
    WHERE starts_with(lower(split_part(model_id, '/', 2)), lower(split_part(model_id, '/', 1)) || '-')
        AND contains(split_part(model_id, '/', 1), '-')
)
SELECT name, arg_max(model_id,
        ((anatomy_grade <> 'unknown')::BIGINT + is_own::BIGINT + coalesce(is_lead, false)::BIGINT / 2) * 1e12
            + coalesce(downloads_30d, 0)) AS model_id,
    bool_or(anatomy_grade <> 'unknown') AS is_known
FROM named LEFT JOIN (SELECT model_id, lead_model_id = model_id AS is_lead FROM work) AS lead USING (model_id)
GROUP BY name;

-- Whether a name's first words are these letters and digits.
CREATE OR REPLACE MACRO begins_in_words(name, said) AS list_contains(list_transform(
    range(1, len(string_split(name, '-'))),
    lambda many: plain_name(array_to_string(string_split(name, '-')[:many], '-'))), said);

-- The words of a name that say how large a model is.
CREATE OR REPLACE MACRO sizes_said(name) AS
    list_filter(name_words(regexp_replace(name, '^.*/', '')), lambda word: regexp_full_match(word, '[0-9.]+[bm]'));

CREATE OR REPLACE MACRO repository_of(asked) AS TABLE
WITH named AS (
    -- (also with the command before it, and with blanks for hyphens, but of a tag: no word behind it is of its name)
    SELECT regexp_matches(trim(asked::VARCHAR), '(?i)^(ollama (run|pull|show) |(https?://)?(www\.)?ollama\.com/)')
            AS is_ollamas,
        regexp_replace(regexp_replace(regexp_replace(trim(asked::VARCHAR),
            '(?i)^(ollama (run|pull|show)|(vllm|sglang) serve|llama-(server|cli) -(hf|m)|hf download'
                || '|lms (get|load)) +', ''),
            '^(https?://)?(hf\.co|huggingface\.co|(www\.)?ollama\.com/library)/', ''), '\+$', '-plus') AS bare,
        iif(regexp_matches(bare, ':\S*\s'), NULL, regexp_replace(bare, '\s+', '-', 'g')) AS name
),
said AS (
    SELECT is_ollamas, lower(split_part(name, ':', 1)) AS ollama_name, lower(split_part(name, ':', 2)) AS tag,
        split_part(tag, '-', 1) AS ollama_size
    FROM named
),
tagged AS (
    SELECT known.base_name, known.file_bytes, tag = '' AND NOT is_ollamas AS is_bare,
        tag IN ('', 'latest', said.ollama_size) AS is_plain,
        CASE
            WHEN NOT is_plain THEN NULL
            WHEN known.dtype_id = 'mxfp4' THEN 'gguf-mxfp4-f16'
            ELSE coalesce(known.dtype_id, 'own-mix')
        END AS dtype
    FROM said JOIN ollama_tag AS known ON known.ollama_name = said.ollama_name
        AND iif(tag IN ('', 'latest'), known.is_latest, lower(known.ollama_size) = said.ollama_size)
),
matched AS (
    SELECT pattern.name_rank, pattern.note,
        regexp_replace(whole, '(?i)' || pattern.name_pattern, pattern.base_name) AS base,
        lower(regexp_replace(whole, '(?i)' || pattern.name_pattern, coalesce(pattern.name_dtype, ''))) AS dtype,
        whole
    FROM repository_name AS pattern CROSS JOIN (SELECT iif(contains(pattern.name_pattern, '/'), name,
        regexp_replace(name, '^.*/', '')) AS whole FROM named) AS one
    WHERE regexp_matches(whole, '(?i)' || pattern.name_pattern)
    UNION ALL
    SELECT NULL, NULL, name, NULL, name FROM named
),
first_match AS (FROM matched ORDER BY name_rank NULLS LAST LIMIT 1),
base AS (
    SELECT iif(is_bare, 3, 0) AS place, base_name AS name, dtype, file_bytes FROM tagged
    UNION ALL SELECT 1, base, NULL, NULL FROM first_match
    UNION ALL SELECT 2, regexp_replace(regexp_replace(base, '^.*/', ''), '^[^_]*_', ''), NULL, NULL FROM first_match
    -- (flux, sdxl: what a family is called)
    UNION ALL SELECT 4, family.base_name, NULL, NULL
    FROM first_match JOIN family_name AS family ON family.said_name = plain_name(first_match.base)
    -- (the first words, with a number, of one model's name and of no other's: mistral small 3.2)
    UNION ALL SELECT 5, any_value(work.model_id), NULL, NULL
    FROM first_match JOIN work ON starts_with(plain_name(work.plain_name), plain_name(first_match.base))
    WHERE regexp_matches(plain_name(first_match.base), '[a-z]{3}.*[0-9]')
    HAVING count(DISTINCT plain_name(work.plain_name)) = 1
        AND bool_or(begins_in_words(work.plain_name, plain_name(first_match.base)))
    -- (how it is tuned, said of a model that has no other: qwen3 8b instruct, which is no Qwen3-VL-8B-Instruct)
    UNION ALL SELECT 6, regexp_replace(base, '(?i)[-_ ](instruct|it|chat)$', ''), NULL, NULL FROM first_match
    WHERE NOT contains(base, '/')
    -- (some words of a name that is told by them: qwen3 coder 30b; an id is none, nor a name that somebody has)
    UNION ALL SELECT 7, model_by_words(base), NULL, NULL FROM first_match
    WHERE NOT contains(base, '/') AND plain_name(base) NOT IN (SELECT known.name FROM plain_model AS known)
    -- (a pipeline with its library behind it, where its own repository is another's)
    UNION ALL SELECT 8, regexp_replace(base, '(?i)[-_]diffusers$', ''), NULL, NULL FROM first_match
),
found AS (
    SELECT plain.model_id, base.dtype, base.file_bytes
    FROM base CROSS JOIN (VALUES (0, ''), (1, 'instruct'), (2, 'it'), (3, 'chat'), (4, 'hf'),
        (5, 'diffusers')) AS ending(place, word)
    JOIN plain_model AS plain ON plain.name = plain_name(base.name) || ending.word
    -- (a size that is said is one of its name: gemma 31b is no gemma-3-1b, of the same letters and digits)
    WHERE base.place IN (0, 3, 4, 7) OR list_has_all(name_words(split_part(plain.model_id, '/', 2)),
        (SELECT sizes_said(first_match.base) FROM first_match))
    ORDER BY NOT plain.is_known, base.place, ending.place LIMIT 1
),
answered AS (
    SELECT found.model_id, coalesce(found.dtype, first_match.dtype, '') AS said, first_match.note, found.file_bytes,
        (SELECT concat_ws(':', ollama_name, nullif(tag, '')) FROM said) AS ollama_tag,
        (SELECT dtype.dtype_id FROM dtype WHERE dtype.dtype_id = CASE said WHEN 'gguf-f16' THEN 'fp16'
            WHEN 'gguf-fp16' THEN 'fp16' WHEN 'gguf-bf16' THEN 'bf16' WHEN 'gguf-f32' THEN 'fp32'
            ELSE counted_format(said) END) AS dtype_id
    FROM first_match LEFT JOIN found ON true
),
-- (in the format that the model itself is published in, others are copies)
unread AS (
    -- (one row whatever is found)
    SELECT any_value(coalesce(otherwise.more_bytes, 0)) AS more_bytes, any_value(otherwise.parts) AS parts
    FROM answered CROSS JOIN named
    JOIN model AS counted ON counted.model_id = answered.model_id
        AND counted.stored_format IS DISTINCT FROM answered.dtype_id
    -- (of all models it would take most of the time)
    LEFT JOIN packed_otherwise(asked::VARCHAR, (SELECT list(found.model_id) FROM found)) AS otherwise
        ON otherwise.model_id = answered.model_id AND otherwise.dtype_id = answered.dtype_id
    WHERE answered.dtype_id IN (SELECT unnest(string_split(dtype_ids, ' ')) FROM packing_way)
        AND lower(named.name) NOT IN (SELECT lower(model_id) FROM model WHERE anatomy_grade <> 'unknown')
        AND (contains(named.name, '/')
            OR plain_name(named.name) NOT IN (SELECT plain.name FROM plain_model AS plain WHERE is_known))
)
SELECT asked::VARCHAR AS asked, answered.model_id, answered.dtype_id,
    iif(said = 'own-mix', 'the mix of Ollama''s file of ' || formatReadableDecimalSize(file_bytes), nullif(said, ''))
        AS dtype_named,
    answered.note, beyond_format_bytes(answered.model_id, said, answered.dtype_id, file_bytes) AS beyond_bytes,
    iif(file_bytes IS NOT NULL AND regexp_full_match(answered.ollama_tag, '[a-z0-9._:-]+'), answered.ollama_tag, NULL)
        AS ollama_tag,
    unread.more_bytes,
    'not in the almanac, and what it packs is not known: makers also have ' || unread.parts AS more_reason
FROM answered CROSS JOIN unread;

-- A card's name as people write it, without makers, series, sizes and the machine that it is built into.
CREATE OR REPLACE MACRO is_a_mac(name) AS regexp_matches(lower(name), '\b(apple|macs?|macbooks?|imac)\b');
-- (a kind of Mac: its chips are lines of gpu_name)
CREATE OR REPLACE MACRO names_a_mac(name) AS
    regexp_matches(lower(name), '\b(mac (studio|mini)|macbook (pro|air))\b');
-- (3090s are several, a 4070 TiS is a Ti SUPER, a 6000 Pro a Pro 6000, and a laptop is one wherever that is said)
CREATE OR REPLACE MACRO plain_series(name) AS regexp_replace(regexp_replace(regexp_replace(regexp_replace(
    regexp_replace(lower(name), '\b(mobile|notebook|laptop gpu)\b', 'laptop', 'g'),
    '^(.*)\blaptop\b(.*)$', '\1 \2 laptop'), '\b(\d\d90)s\b', '\1'), '\b(\d0\d0) ?tis\b', '\1 ti super'),
    '\b([2456][05]00) pro\b', 'pro \1');
CREATE OR REPLACE MACRO plain_card(name) AS regexp_replace(regexp_replace(regexp_replace(regexp_replace(
    plain_series(name),
    '\b(apple|silicon|imac|macbooks?( pro| air)?|macs?( mini| studio| pro)?|an?|my|one|single|gpus?|cards?|of|with'
        || '|v?ram|memory|kaggle|colab|dgx|hgx|jetson|ryzen|blackwell)\b', ' ', 'g'),
    '(nvidia|geforce|tesla|quadro|amd|radeon|instinct|intel|graphics|\barc( pro)?\b|rtx|gtx|rx|tpu|\d+ ?gi?b?\b'
        || '|[^a-z0-9 ])', ' ', 'g'), 'sxm\d', 'sxm'), ' |agx +(thor)', '\1', 'g');

CREATE OR REPLACE MACRO gpus_called(asked) AS TABLE
WITH said AS (
    SELECT plain_card(asked) AS name, try_cast(regexp_extract(lower(asked), '(\d+) ?gi?b?\b', 1) AS BIGINT) AS size_gib,
        EXISTS (SELECT 1 FROM gpu AS whole WHERE asked_id(asked) IN (whole.gpu_id, asked_id(whole.name))) AS is_whole
),
sized AS (
    SELECT arg_min(gpu.segment, list_position(['consumer', 'workstation', 'datacenter'], gpu.segment)) AS segment
    FROM gpu JOIN said ON gpu.memory_gib_nominal = said.size_gib WHERE gpu.vendor = 'nvidia'
)
SELECT gpu.gpu_id, gpu.name, gpu.capacity_bytes
FROM gpu CROSS JOIN said CROSS JOIN sized
WHERE CASE
    WHEN said.is_whole THEN asked_id(asked) IN (gpu.gpu_id, asked_id(gpu.name))
    WHEN said.size_gib <> gpu.memory_gib_nominal THEN false
    WHEN said.name <> '' THEN said.name IN (plain_card(replace(gpu.gpu_id, '-', ' ')), plain_card(gpu.name),
        plain_card(regexp_replace(replace(gpu.gpu_id, '-', ' '), '(pcie|sxm\d?|nvl|oam)', '')))
        OR gpu.gpu_id IN (SELECT known.gpu_id FROM gpu_name AS known WHERE plain_card(known.driver_name) = said.name)
    WHEN names_a_mac(asked) THEN gpu.gpu_id IN (SELECT known.gpu_id FROM gpu_name AS known
        WHERE names_a_mac(known.driver_name) AND contains(lower(asked), lower(known.driver_name)))
    WHEN said.size_gib IS NULL THEN false
    WHEN is_a_mac(asked) THEN gpu.vendor = 'apple'
    ELSE gpu.vendor = 'nvidia' AND gpu.segment = sized.segment
END
ORDER BY gpu.gpu_id;
