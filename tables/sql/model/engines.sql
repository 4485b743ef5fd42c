-- What engines make of a model's architecture: those that cannot load it, those of which nobody knows what they hold of
-- it, those whose class of it has no fused attention or fuses what the library's does not, those whose kernel rotates
-- what the library's class rotates in fp32, and those whose cache uses its windows (llama.cpp and MLX LM load Mistral
-- and others as plain Llamas: they cache, and attend to, the whole context). And those that leave out a part of its
-- checkpoint as they load it. Part of `shape`.
--
-- Units: none. Source: engine_gap.csv, engine_window.csv, engine_part.csv and fused_attention.csv, each line with its
-- own. Not covered: architectures that nobody looked for.

CREATE OR REPLACE MACRO cannot_load(model, engine_id) AS coalesce(list_contains(model.engine_gaps, engine_id), false);
CREATE OR REPLACE MACRO is_unread(model, engine_id) AS coalesce(list_contains(model.unread_engines, engine_id), false);
CREATE OR REPLACE MACRO has_unfused_class(model, engine_id) AS
    coalesce(list_contains(model.unfused_engines, engine_id), false);
-- a fused kernel for what the library's class computes score by score: the sinks scale what it gives
CREATE OR REPLACE MACRO has_fused_sinks(model, engine_id) AS
    coalesce(list_contains(model.fused_engines, engine_id), false);
-- a kernel that rotates a tower's queries and keys in 16 bits, which the library's class does in fp32
CREATE OR REPLACE MACRO rotates_in_kernel(model, scenario, constants) AS
    coalesce(list_contains(model.rotating_engines, scenario.engine_id), false)
        AND coalesce(version_place(scenario.program_version, 2) >= constants.vllm_rotates_from_release, true);
CREATE OR REPLACE MACRO has_windows(model, engine_id) AS
    coalesce(list_contains(model.windowed_engines, engine_id), false);
-- MLX LM reads text: its classes drop what sees and hears before anything of it is read
CREATE OR REPLACE MACRO leaves_towers(model, engine_id) AS
    coalesce(list_contains(model.towerless_engines, engine_id), false);
CREATE OR REPLACE MACRO is_of_towers(component) AS component IN ('vision', 'audio', 'projector');
-- llama.cpp and servers write: they leave out the half that speaks, whose layers then cache nothing
CREATE OR REPLACE MACRO leaves_speech(model, engine_id) AS
    coalesce(list_contains(model.speechless_engines, engine_id), false);
-- A server ties a head as the config says, and never loads one that a packer wrote beside it all the same. What such a
-- repository holds alone does not tell whether its config ties: those of which somebody's log does are listed.
CREATE OR REPLACE MACRO leaves_head(model, engine_id) AS
    coalesce(list_contains(model.headless_engines, engine_id), false);
CREATE OR REPLACE MACRO is_of_speech(component) AS component IN ('encoder', 'decoder', 'vocoder');
-- why, in the table's own words
CREATE OR REPLACE MACRO gap_words(model, engine_id, kind) AS
    coalesce(': ' || replace(list_filter(model.gap_reasons, lambda one: starts_with(one, engine_id || kind))[1],
        engine_id || kind, ''), '');

-- How many heads of queries read the same head of keys: of latent attention all, whatever the config calls its heads of
-- keys.
CREATE OR REPLACE MACRO heads_per_key(layer) AS
    iif(layer.mechanism = 'mla', layer.head_count, layer.head_count // layer.kv_head_count);

-- Models some of whose heads an engine has no fused kernel for. Latent attention reads one head of keys, that of the
-- latent and what is rotated; where no tensor tells how wide it is, nothing is said.
CREATE OR REPLACE TEMP TABLE kernel_lacking AS
WITH latent AS (
    SELECT model_id, max(out_features) AS latent_elements FROM tensor WHERE role = 'mla_kv_a' GROUP BY model_id
),
attending AS (
    SELECT model_id, mechanism = 'mla' AS is_latent, value_head_dim,
        iif(mechanism = 'mla', latent_elements, head_dim) AS head_dim,
        heads_per_key(layer) AS group_heads
    FROM attention_layer AS layer LEFT JOIN latent USING (model_id)
    WHERE component IN ('text', 'encoder', 'decoder') AND head_count > 0 AND kv_head_count > 0
)
SELECT DISTINCT asked.model_id, engine.engine_id
FROM attending AS asked CROSS JOIN (SELECT DISTINCT engine_id FROM fused_attention) AS engine
    LEFT JOIN fused_attention AS kernel ON kernel.engine_id = engine.engine_id AND kernel.head_dim = asked.head_dim
        AND (asked.is_latent OR kernel.value_head_dim = asked.value_head_dim)
        AND asked.group_heads >= kernel.least_group AND asked.group_heads % kernel.group_multiple = 0
WHERE kernel.engine_id IS NULL AND asked.head_dim IS NOT NULL;

CREATE OR REPLACE TEMP TABLE engine_shape AS
WITH gap AS (
    SELECT
        model_id, list(engine_id ORDER BY engine_id) FILTER (gap = 'load') AS engine_gaps,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'memory') AS unread_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'unfused') AS unfused_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'fused') AS fused_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'rotated') AS rotating_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'in-place') AS in_place_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'in-half') AS in_half_engines,
        list(engine_id ORDER BY engine_id) FILTER (gap = 'block') AS block_engines,
        list(engine_id || ' ' || gap || ' ' || how ORDER BY engine_id, gap, how)
            FILTER (gap IN ('load', 'memory')) AS gap_reasons
    FROM (
        SELECT model_id, engine_id, gap, how
        FROM model JOIN engine_gap ON list_contains(string_split(model_types, ' '), model_type)
            OR list_contains(string_split(model_ids, ' '), model_id)
        UNION ALL
        SELECT model_id, engine_id, 'unfused' AS gap, 'no kernel for its heads' AS how FROM kernel_lacking
        UNION ALL
        SELECT model_id, engine_id, 'memory' AS gap, 'the class that was read is of text alone' AS how
        FROM model JOIN cache_pool ON list_contains(string_split(model_types, ' '), model_type)
        WHERE model_id IN (SELECT model_id FROM tensor WHERE tensor_class = 'vision-tower')
    )
    GROUP BY model_id
),
windowed AS (
    SELECT model_id, list(engine_id ORDER BY engine_id) AS windowed_engines
    FROM model JOIN engine_window ON list_contains(string_split(model_types, ' '), model_type)
    GROUP BY model_id
),
without AS (
    SELECT model_id, list(engine_id ORDER BY engine_id) FILTER (left_out = 'towers') AS towerless_engines,
        list(engine_id ORDER BY engine_id) FILTER (left_out = 'speech') AS speechless_engines,
        list(engine_id ORDER BY engine_id) FILTER (left_out = 'tied-head') AS headless_engines
    FROM model JOIN engine_part ON list_contains(string_split(model_types, ' '), model_type)
        OR list_contains(string_split(model_ids, ' '), model_id)
    GROUP BY model_id
)
SELECT model_id, engine_gaps, unread_engines, unfused_engines, fused_engines, rotating_engines,
    in_place_engines, in_half_engines, block_engines, gap_reasons,
    windowed_engines, towerless_engines, speechless_engines, headless_engines
FROM gap FULL JOIN windowed USING (model_id) FULL JOIN without USING (model_id);
