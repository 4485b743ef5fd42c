-- model_by_words('qwen3 coder 30b'): the model that is meant by some words of its name, where these tell one.
--
--   words of a name: what stands between its marks; a number behind three letters and more is a word of its own, and
--   4.0 is 4. All words that were said have to be in the name, 120 for 120b too, in any order. A name that begins so
--   goes before (Llama-4-Scout before Llama-Guard-4), then one that names no format, then the one with the fewest words
--   beside them (Qwen3-30B-A3B before Qwen3-VL-30B-A3B), then one in 16 bits, then the most downloaded. Several of its
--   maker that differ in size are none: it was not said which. Neither is one word without a number, nor a name that
--   begins otherwise and has two words more that were not said than that were, where no size is said (gpt-4o is no
--   model that was made with it).
--
-- models_near(asked): models by how many of the words are in their names (one letter may be wrong in a word of four and
-- more), the most downloaded first; none where no word of three letters is.
--
-- Units: none. Source: the tables model, work, component. Not covered: names that say other words than the model's
-- (kimi for moonshot), which are rows of family_name.

CREATE OR REPLACE MACRO split_name(name) AS regexp_replace(regexp_replace(regexp_replace(lower(name),
    '([0-9])_([0-9])', '\1.\2', 'g'), '([a-z]{3,})([0-9])', '\1 \2', 'g'), '([0-9])\.0\b', '\1', 'g');
CREATE OR REPLACE MACRO name_words(name) AS list_distinct(regexp_extract_all(split_name(name),
    '[a-z]*[0-9]+(?:\.[0-9]+)+[a-z]*|[a-z0-9]+'));

-- Words that a person leaves out: how it is tuned, the parameters of its experts that work, a format, who made it.
CREATE OR REPLACE MACRO is_left_out(model_id, word) AS regexp_full_match(word,
        'instruct|it|chat|hf|bf16|fp16|diffusers|a[0-9.]+b')
    OR list_contains(name_words(split_part(model_id, '/', 1)), word);

-- (120 is said for 120b)
CREATE OR REPLACE MACRO is_size(said, word) AS word = said || 'b' AND regexp_full_match(said, '[0-9]{2,}');

CREATE OR REPLACE TABLE name_word AS
SELECT model.model_id, word, work.lead_model_id = model.model_id AND (model.anatomy_grade <> 'unknown'
        OR model.model_id IN (SELECT piped.model_id FROM component AS piped)) AS is_lead,
    NOT is_left_out(model.model_id, word) AS tells, coalesce(model.downloads_30d, 0) AS downloads,
    concat_ws(' ', model.parameter_count, model.layer_count) AS size,
    coalesce(model.stored_format IN (SELECT packed.dtype_id FROM dtype AS packed WHERE packed.bits_per_weight < 16),
        false) AS is_packed, plain_name(model.model_id) <> plain_name(work.plain_name) AS names_format,
    plain_name(work.plain_name) AS plain_work,
    count(*) FILTER (tells) OVER (PARTITION BY model.model_id) AS telling_count
FROM model JOIN work ON work.model_id = model.model_id
CROSS JOIN LATERAL (SELECT unnest(name_words(work.plain_name)) AS word) AS words
ORDER BY model.model_id, word;

-- Whether words tell a model that has them.
CREATE OR REPLACE MACRO is_told(begins, asked, unsaid_count, found_count) AS
    begins OR regexp_matches(asked, '(?i)(^|[^a-z0-9.])[0-9.]+[bm]\b') OR unsaid_count <= found_count + 1;

CREATE OR REPLACE MACRO model_by_words(asked) AS (
    WITH said AS (SELECT unnest(name_words(asked)) AS word),
    held AS (
        SELECT named.model_id, any_value(named.downloads) AS downloads, any_value(named.size) AS size,
            any_value(named.is_packed) AS is_packed, count(DISTINCT said.word) AS found_count,
            bool_and(starts_with(named.plain_work, plain_name(asked)))::TINYINT * 2
                + bool_and(NOT named.names_format)::TINYINT AS place,
            any_value(named.telling_count) - count(*) FILTER (named.tells) AS unsaid_count
        FROM said JOIN name_word AS named ON named.word = said.word OR is_size(said.word, named.word)
        WHERE named.is_lead GROUP BY named.model_id
    ),
    whole AS (
        FROM held WHERE found_count = (SELECT count(*) FROM said)
            AND (found_count > 1 OR regexp_matches(asked, '[0-9]')) AND regexp_matches(asked, '(?i)[a-z]{3}')
            AND is_told(place >= 2, asked, unsaid_count, found_count)
    ),
    kept AS (FROM whole WHERE place = (SELECT max(place) FROM whole)),
    nearest AS (FROM kept WHERE unsaid_count = (SELECT min(unsaid_count) FROM kept)),
    meant AS (SELECT model_id FROM nearest ORDER BY is_packed, downloads DESC, model_id LIMIT 1)
    SELECT any_value(meant.model_id)
    FROM meant JOIN nearest ON split_part(nearest.model_id, '/', 1) = split_part(meant.model_id, '/', 1)
    HAVING count(DISTINCT nearest.size) = 1
);

CREATE OR REPLACE MACRO is_alike(said, word) AS said = word
    OR len(said) > 3 AND len(word) > 3 AND damerau_levenshtein(said, word) = 1;

CREATE OR REPLACE MACRO models_near(asked) AS (
    WITH said AS (SELECT unnest(name_words(asked)) AS word),
    near AS (
        SELECT named.model_id, any_value(named.downloads) AS downloads, any_value(named.is_lead) AS is_lead,
            count(DISTINCT said.word) AS found_count, count(*) FILTER (named.word = said.word) AS exact_count,
            any_value(named.telling_count) - count(*) FILTER (named.tells) AS unsaid_count,
            bool_or(regexp_matches(said.word, '[a-z]{3}')) AS is_named
        FROM said JOIN name_word AS named ON is_alike(said.word, named.word) OR named.word = said.word || 'b'
        GROUP BY named.model_id
    )
    SELECT list(model_id ORDER BY found_count DESC, exact_count DESC, is_lead DESC,
        iif(found_count > 1, unsaid_count, 0), downloads DESC, model_id)
    FROM near WHERE is_named
);
