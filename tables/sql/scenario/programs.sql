-- Programs: what a question that names one leaves unsaid is the program's own default.
--
--   with_program(relation)   the questions of a relation with the defaults of their programs filled in, the reason why
--                            a program has no answer, and for which of its versions the answer holds
--
-- What a row holds for ends with all releases of its max_version (0.8 holds for 0.8.5). A version below, above or
-- between what was read has no answer, and no program has that of another. A model whose class a program has from a
-- later version on, or up to an earlier one, has no answer of the others. A question without a program is not touched.
--
-- Of a row that holds on some cards alone (least_capability) holds_for says on which, and who asks of another card has
-- no verdict (program_card_reason, capacity/support.sql).
--
-- Of a program that takes its context by the memory of the cards (program_context) nobody says here which they are: it
-- gets what the smallest take, and holds_for says from where on it would take more (own_context_of says how much, and
-- the calculator, which knows the card, asks context_of_cards of the same steps).
--
-- Units: none. Source: the tables program, program_class and program_context. Not covered: what a program is told in
-- files of its own; classes of which no line says anything.

-- each once, to be searched by name
CREATE OR REPLACE TABLE program_known AS SELECT DISTINCT program_id FROM program;

-- what a program takes beyond its row's context, in words, by the first of the versions for which that holds
CREATE OR REPLACE TEMP TABLE program_context_words AS
SELECT program_id, version_number(min_version) AS from_number, version_after(max_version) AS below_number,
    ' at ' || min(context_tokens) || ' tokens, its own default on GPUs of less than ' || list_sort(list(least_gib))[2]
        || ' GiB together (' || string_agg(context_tokens || ' from ' || least_gib || ' GiB on', ', '
            ORDER BY least_gib) FILTER (least_gib > 0) || ')' AS context_words
FROM (SELECT * REPLACE (least_gib::BIGINT AS least_gib) FROM program_context)
GROUP BY ALL HAVING count(*) > 1;

-- By phase. Of a program that is not asked for a version the newest row that has an answer, else its newest.
CREATE OR REPLACE TABLE program_row AS
SELECT one.* EXCLUDE (phase_ids, other_names),
    (SELECT any_value(words.context_words) FROM program_context_words AS words
        WHERE words.program_id = one.program_id AND one.phase_id = 'inference'
            AND version_number(one.min_version) >= words.from_number
            AND version_after(one.max_version) <= words.below_number) AS context_words,
    (SELECT list({'least_gib': step.least_gib, 'context_tokens': step.context_tokens} ORDER BY step.least_gib)
        FROM program_context AS step
        WHERE step.program_id = one.program_id AND one.phase_id = 'inference'
            AND version_number(one.min_version) >= version_number(step.min_version)
            AND version_after(one.max_version) <= version_after(step.max_version)) AS context_steps,
    version_number(min_version) AS from_number,
    version_after(max_version) AS below_number,
    coalesce(version_number(max_version) = coalesce(
        max(version_number(max_version)) FILTER (unknown_reason IS NULL) OVER (PARTITION BY program_id, phase_id),
        max(version_number(max_version)) OVER (PARTITION BY program_id, phase_id)), true) AS is_newest,
    name || coalesce(' ' || version_range(min_version, max_version), '') AS holds_for,
    (SELECT any_value(kernel.model_types) FROM loss_kernel AS kernel
        WHERE kernel.loss = one.loss AND kernel.loss <> 'fused') AS loss_model_types,
    coalesce(' on GPUs of compute capability ' || least_capability || ' and later', '') AS capability_words
FROM (SELECT *, unnest(string_split(phase_ids, ' ')) AS phase_id FROM program) AS one;

-- What there is to say of a program and a phase, by every name that people use of it.
CREATE OR REPLACE TABLE program_name AS
WITH known AS (
    SELECT program_id, phase_id, string_agg(version_range(min_version, max_version), ', '
        ORDER BY from_number) AS versions
    FROM program_row GROUP BY program_id, phase_id
),
able AS (
    SELECT phase_id, string_agg(DISTINCT program_id, ', ' ORDER BY program_id) FILTER (unknown_reason IS NULL) AS ids,
        string_agg(DISTINCT program_id, ', ' ORDER BY program_id)
            FILTER (unknown_reason IS NULL AND NOT is_one_machine) AS spread_ids,
        string_agg(DISTINCT program_id, ', ' ORDER BY program_id)
            FILTER (unknown_reason IS NULL AND optional_engine_ids = 'deepspeed') AS deepspeed_ids
    FROM program_row GROUP BY phase_id
),
named AS (
    SELECT program_id, any_value(name) AS name, list_distinct(flatten(list(list_concat([program_id, lower(name)],
        coalesce(string_split(lower(other_names), '; '), []))))) AS names
    FROM program GROUP BY program_id
)
SELECT
    unnest(named.names) AS program_name, named.program_id, named.name, phase.phase_id, own.versions,
    able.spread_ids, able.deepspeed_ids,
    iif(own.program_id IS NULL, named.name || ' has no ' || phase.phase_id || ' (it has ' || (SELECT
        string_agg(each.phase_id, ', ' ORDER BY each.phase_id) FROM known AS each
        WHERE each.program_id = named.program_id) || '); '
        || phase.phase_id || ' is done by program := ' || able.ids, NULL) AS phase_reason
FROM named CROSS JOIN phase
LEFT JOIN able ON able.phase_id = phase.phase_id
LEFT JOIN known AS own ON own.program_id = named.program_id AND own.phase_id = phase.phase_id;

-- From which version to which a program has the class of a model: a model that is not here was not looked for. A span
-- without either end is of no version.
CREATE OR REPLACE TABLE program_model AS
WITH named AS (SELECT * EXCLUDE (class_names), unnest(string_split(class_names, ' ')) AS class_name FROM program_class)
SELECT
    model.model_id, named.program_id, min(named.class_name) AS class_name,
    list({
        'from_number': coalesce(version_number(named.min_version), 0),
        'below_number': version_after(coalesce(named.max_version, iif(named.min_version IS NULL, '0.0.0', '1000000'))),
        'min_version': named.min_version, 'max_version': named.max_version
    } ORDER BY version_number(named.min_version) NULLS FIRST) AS spans,
    string_agg(coalesce('from ' || named.min_version || coalesce(' to ' || named.max_version, ' on'),
        'up to ' || named.max_version), ', ' ORDER BY version_number(named.min_version) NULLS FIRST) AS spans_said
FROM model JOIN named ON named.class_name IN (model.architecture, model.model_type)
GROUP BY model.model_id, named.program_id;

-- the span that has the version asked for, or some of what the program's row holds for
CREATE OR REPLACE MACRO class_span(asked, usual, classes) AS list_filter(classes.spans, lambda span:
    iif(asked.program_version IS NULL, span.from_number < usual.below_number AND span.below_number > usual.from_number,
        version_number(asked.program_version::VARCHAR) >= span.from_number
            AND version_number(asked.program_version::VARCHAR) < span.below_number))[1];

-- a version as the program says it: builds of llama.cpp are b9900, with or without which people type them
CREATE OR REPLACE MACRO version_said(version, known) AS
    iif(starts_with(known.versions, 'b') AND version_number(version) IS NOT NULL,
        'b' || replace(lower(version), 'b', ''), version);

CREATE OR REPLACE MACRO class_reason(asked, known, usual, classes) AS
    iif(usual.program_id IS NOT NULL AND classes.spans IS NOT NULL AND class_span(asked, usual, classes) IS NULL,
        known.name || ' ' || coalesce(version_said(asked.program_version::VARCHAR, known),
            version_range(usual.min_version, usual.max_version)) || ' is not known for this model: its class '
        || classes.class_name || ' is known ' || coalesce(classes.spans_said, 'in no release that was read'), NULL);

-- what a program's row holds for, of a model whose class not all of these versions have
CREATE OR REPLACE MACRO class_holds_for(asked, usual, classes) AS CASE
    WHEN classes.spans IS NULL THEN usual.holds_for
    WHEN class_span(asked, usual, classes) IS NOT NULL THEN usual.name || ' ' || version_range(
        iif(class_span(asked, usual, classes).from_number > usual.from_number,
            class_span(asked, usual, classes).min_version, usual.min_version),
        iif(class_span(asked, usual, classes).below_number < usual.below_number,
            class_span(asked, usual, classes).max_version, usual.max_version))
END;

CREATE OR REPLACE MACRO version_reason(asked, known, usual) AS CASE
    WHEN asked.program_version IS NULL THEN NULL
    WHEN version_number(asked.program_version::VARCHAR) IS NULL
        THEN 'program_version := ' || asked.program_version::VARCHAR || ' is no version (0.8, 2025.9.1)'
    WHEN usual.program_id IS NULL
        THEN known.name || ' ' || version_said(asked.program_version::VARCHAR, known)
            || coalesce(' is not known (known: ' || known.versions
            || ')', ' is not known: for which versions its row holds, no source told')
END;

-- what of a layer is recomputed, and whether weights lie in parts and are gathered, as asked
CREATE OR REPLACE MACRO recomputed_of(asked, usual) AS
    coalesce(lower(asked.checkpointing::VARCHAR), usual.checkpointing);
CREATE OR REPLACE MACRO is_gathered(asked, usual) AS coalesce(lower(asked.sharding::VARCHAR), iif(
    asked_number(asked.gpu_count) > 1, coalesce(usual.sharding, usual_sharding(asked_number(asked.gpu_count),
        asked_number(asked.tensor_parallel), asked_number(asked.pipeline_parallel), false, NULL)), 'none')) = 'zero3';

-- What a program's row is not described with, of what was asked, in words; null where it is described.
CREATE OR REPLACE MACRO undescribed_words(word, asked, usual, model) AS CASE
    WHEN word = 'kept-layers' AND recomputed_of(asked, usual) <> 'full' THEN 'layers that are not recomputed'
    WHEN word = 'gathered' AND is_gathered(asked, usual) THEN 'weights in parts on several GPUs (FSDP2, ZeRO-3)'
    WHEN word = 'experts' AND model.expert_elements > 0 THEN 'routed experts beside a packed base'
    WHEN word IN ('recurrent', 'mla') AND list_bool_or(list_transform(model.caches, lambda layer:
        layer.mechanism = word)) THEN iif(word = 'mla', 'latent attention', 'recurrent layers')
    WHEN word = 'towers' AND model.has_tower THEN 'models that see or hear'
    WHEN word = 'spread' AND greatest(asked_number(asked.data_parallel), asked_number(asked.expert_parallel),
        asked_number(asked.decode_context_parallel)) > 1
        THEN 'data_parallel, expert_parallel and decode_context_parallel'
    WHEN word = 'packed-cache' AND lower(asked.kv_dtype_id::VARCHAR) NOT IN ('bf16', 'fp16')
        THEN 'a cache in kv_dtype_id := ' || lower(asked.kv_dtype_id::VARCHAR)
    WHEN word = 'staged-windows' AND asked_number(asked.pipeline_parallel) > 1 AND list_bool_or(list_transform(
        model.caches, lambda layer: layer.window_tokens IS NOT NULL)) THEN 'pipeline_parallel of layers with windows'
END;
-- what is described instead
CREATE OR REPLACE MACRO undescribed_help(word) AS CASE word
    WHEN 'kept-layers' THEN '; with every layer recomputed it is: checkpointing := full'
    WHEN 'gathered' THEN '; with all weights on each GPU it is: sharding := zero2'
    WHEN 'experts' THEN '; over a base in 16 bits it is: phase_id := lora'
    ELSE ': ask for a later version'
END;
CREATE OR REPLACE MACRO undescribed_reason(asked, known, usual, model) AS
    list_filter(list_transform(string_split(usual.not_described, ' '), lambda word: 'what ' || usual.holds_for
        || ' holds is not described for ' || undescribed_words(word, asked, usual, model)
        || undescribed_help(word)), lambda reason: reason IS NOT NULL)[1];

-- A loss that was read of some classes alone, whose own forward pass the program has: it takes no other. (A question
-- that names no model asks of the program alone.)
CREATE OR REPLACE MACRO loss_reason(asked, usual, model) AS CASE
    WHEN usual.loss_model_types IS NULL THEN NULL
    WHEN asked.model_id IS NOT NULL
        AND NOT coalesce(list_contains(string_split(usual.loss_model_types, ' '), model.model_type), false)
        THEN 'what ' || usual.holds_for || ' holds is described for models of type '
            || replace(usual.loss_model_types, ' ', ', ') || ' alone: ask for a later version'
    WHEN lower(asked.loss::VARCHAR) <> usual.loss
        THEN usual.holds_for || ' is described with its own loss alone: loss := ' || usual.loss
END;

-- the cards of more than one machine
CREATE OR REPLACE MACRO machine_reason(asked, known, usual, constants) AS
    iif(usual.is_one_machine AND asked_number(asked.gpu_count) > constants.server_gpu_count,
        known.name || ' is known on the cards of one machine alone, and gpu_count := ' || asked_number(asked.gpu_count)
            || ' is more than ' || constants.server_gpu_count::BIGINT || '; on several machines: program := '
            || known.spread_ids, NULL);

-- another engine than the program's own, and none of those that it runs where it is told so
CREATE OR REPLACE MACRO engine_reason(asked, known, usual) AS CASE
    WHEN lower(asked.engine_id::VARCHAR) = usual.engine_id OR asked.engine_id IS NULL
        OR coalesce(list_contains(string_split(usual.optional_engine_ids, ' '), lower(asked.engine_id::VARCHAR)), false)
        THEN NULL
    WHEN lower(asked.engine_id::VARCHAR) = 'deepspeed' AND usual.engine_id IS NOT NULL
        THEN 'no source in the book says how ' || known.name || ' trains with DeepSpeed; it is known of '
            || known.deepspeed_ids
    ELSE known.name || ' runs engine_id := ' || usual.engine_id || ', not ' || asked.engine_id::VARCHAR
END;

CREATE OR REPLACE MACRO program_reason(asked, known, usual, classes, model, constants) AS CASE
    WHEN asked.program IS NULL
        THEN iif(asked.program_version IS NULL, NULL, 'program_version is of a program: program := vllm')
    WHEN known.program_id IS NULL THEN 'no such program: ' || asked.program::VARCHAR
    ELSE coalesce(known.phase_reason, version_reason(asked, known, usual), class_reason(asked, known, usual, classes),
        machine_reason(asked, known, usual, constants), usual.unknown_reason,
        undescribed_reason(asked, known, usual, model), loss_reason(asked, usual, model),
        engine_reason(asked, known, usual))
END;

-- Whether several cards hold parts of what is trained each, as they do where nobody says otherwise. Who asks for that
-- on one card, or for DeepSpeed, has the precision of it all the same.
CREATE OR REPLACE MACRO is_shared_out(asked, usual) AS coalesce(lower(asked.engine_id::VARCHAR) = 'deepspeed', false)
    OR coalesce(starts_with(lower(asked.sharding::VARCHAR), 'zero'), false)
    OR asked_number(asked.gpu_count) > 1
    AND starts_with(coalesce(lower(asked.sharding::VARCHAR), usual.sharding, usual_sharding(
        asked_number(asked.gpu_count), asked_number(asked.tensor_parallel), asked_number(asked.pipeline_parallel),
        false, NULL)), 'zero');

-- of a context that nobody said, and that is not all that the model reads
CREATE OR REPLACE MACRO context_words(asked, usual, model) AS
    iif(asked.context_tokens IS NULL AND coalesce(model.max_context_tokens > usual.context_tokens, true),
        coalesce(usual.context_words, ''), '');

-- of layers that are recomputed by a setting that is not the program's own, and without which it is not described
CREATE OR REPLACE MACRO recomputed_words(usual) AS
    iif(coalesce(list_contains(string_split(usual.not_described, ' '), 'kept-layers'), false),
        ' with gradient_checkpointing: true', '');

-- What a program trains in. DeepSpeed keeps fp32 masters whatever the weights are loaded in.
CREATE OR REPLACE MACRO program_precision(asked, usual) AS coalesce(
    iif(is_shared_out(asked, usual), usual.sharded_precision, NULL),
    iif(usual.precision = 'pure' AND (coalesce(lower(asked.engine_id::VARCHAR) = 'deepspeed', false)
        OR is_deepspeed(usual.engine_id, lower(asked.sharding::VARCHAR))), 'mixed', usual.precision));

-- The format of a checkpoint that a program loads as it is stored, where that is 32 bits. Of one of which nobody knows
-- it, 16 bits are counted, and the answer says so.
CREATE OR REPLACE MACRO loads_as_stored(asked, usual) AS coalesce(usual.is_dtype_stored, false)
    AND asked.dtype_id IS NULL AND usual.phase_id <> 'qlora';
CREATE OR REPLACE MACRO loaded_format(asked, usual, model) AS
    iif(loads_as_stored(asked, usual) AND model.stored_format = 'fp32', 'fp32', NULL);
-- (A server loads one in 32 bits in 16, and one in fewer takes less.)
CREATE OR REPLACE MACRO served_format(asked, usual, model) AS iif(asked.dtype_id IS NULL AND usual.dtype_id = 'stored'
    AND coalesce(model.is_format_open, false), 'bf16', NULL);
CREATE OR REPLACE MACRO format_words(asked, usual, model) AS
    iif(loads_as_stored(asked, usual) AND model.stored_format IS NULL
        OR served_format(asked, usual, model) IS NOT NULL, ', of a checkpoint in 16 bits', '');

-- What a program adapts of a model with routed experts. One that names all linear layers names projections of shared
-- experts and dense layers too, which peft takes for the routed experts where it knows the class: as all-linear then
-- (but for the router, so a little less).
CREATE OR REPLACE MACRO experts_targets(usual, model) AS CASE
    WHEN model.expert_elements = 0 OR usual.experts_lora_targets IS NULL THEN NULL
    WHEN usual.experts_lora_targets <> 'linear-names' THEN usual.experts_lora_targets
    WHEN model.are_experts_adapted AND model.names_experts THEN 'all-linear'
    ELSE 'linear-layers'
END;

-- of experts that are one tensor, as Transformers has them since 5
CREATE OR REPLACE MACRO experts_words(usual, model) AS iif(model.expert_elements > 0, CASE usual.experts_lora_targets
    WHEN 'linear-names' THEN ', Transformers 5, peft 0.19 or later' WHEN 'linear-layers' THEN ', Transformers 5'
    ELSE '' END, '');

CREATE OR REPLACE MACRO with_program(relation) AS TABLE
SELECT
    asked.* REPLACE (
        coalesce(asked.engine_id::VARCHAR, usual.engine_id) AS engine_id,
        coalesce(asked.dtype_id::VARCHAR, iif(model.expert_elements > 0, usual.experts_dtype_id, NULL),
            loaded_format(asked, usual, model), served_format(asked, usual, model), usual.dtype_id) AS dtype_id,
        coalesce(asked.kv_dtype_id::VARCHAR, usual.kv_dtype_id) AS kv_dtype_id,
        coalesce(asked.optimizer_id::VARCHAR, usual.optimizer_id) AS optimizer_id,
        coalesce(asked.checkpointing::VARCHAR, usual.checkpointing) AS checkpointing,
        coalesce(asked.precision::VARCHAR, program_precision(asked, usual)) AS precision,
        coalesce(asked.loss::VARCHAR, usual.loss) AS loss,
        coalesce(asked.attention::VARCHAR, usual.attention) AS attention,
        coalesce(asked.lora_targets::VARCHAR, experts_targets(usual, model), usual.lora_targets) AS lora_targets,
        coalesce(asked.sharding::VARCHAR, iif(asked_number(asked.gpu_count) > 1, usual.sharding, NULL)) AS sharding,
        coalesce(known.program_id, lower(asked.program::VARCHAR)) AS program
    ),
    -- numbers stand apart: what was asked may be none, and has its reason
    {
        'context_tokens': CASE
            WHEN usual.reads_whole_context THEN model.max_context_tokens
            WHEN usual.context_tokens IS NOT NULL THEN least(usual.context_tokens, model.max_context_tokens)
        END,
        'sequences': usual.sequences, 'lora_rank': usual.lora_rank,
        'gradient_accumulation': usual.gradient_accumulation, 'lora_dropout': usual.lora_dropout
    } AS program_numbers,
    program_reason(asked, known, usual, classes, model, constants) AS program_reason,
    class_holds_for(asked, usual, classes) || usual.capability_words || format_words(asked, usual, model)
        || context_words(asked, usual, model) || recomputed_words(usual)
        || coalesce(experts_words(usual, model), '') || balance_words(model, usual.balance_bytes_per_expert)
        || coalesce(', of the last ' || usual.last_layers || ' layers (--num-layers)', '')
        || iif(asked.program_version IS NULL AND usual.server_slot_count IS NOT NULL,
            ', with logits of all tokens (a build that is named may hold fewer)', '') AS program_holds_for,
    usual.card_share AS program_share,
    {'prepares_base': usual.prepares_base, 'adapter_bytes': usual.packed_adapter_bytes,
        'packed_base': usual.packed_base, 'balance_bytes': usual.balance_bytes_per_expert,
        'kept_free_mib': usual.kept_free_mib,
        'prompt_chunk_tokens': usual.prompt_chunk_tokens, 'loader_free_mib': usual.loader_free_mib,
        'keeps_tower_free': usual.keeps_tower_free, 'tower_training': usual.tower_training,
        -- (who names no build may run an older one, that holds more: 34 of 42 reports in outcome.csv name none)
        'server_slot_count': iif(asked.program_version IS NULL, NULL, usual.server_slot_count),
        'last_layers': usual.last_layers} AS program_base
FROM query_table(relation) AS asked
LEFT JOIN program_name AS known ON known.program_name = lower(asked.program::VARCHAR)
    AND known.phase_id = coalesce(lower(asked.phase_id::VARCHAR), 'inference')
LEFT JOIN program_row AS usual ON usual.program_id = known.program_id AND usual.phase_id = known.phase_id
    AND iif(asked.program_version IS NULL, usual.is_newest,
        version_number(asked.program_version::VARCHAR) >= usual.from_number
            AND version_number(asked.program_version::VARCHAR) < usual.below_number)
LEFT JOIN model_name AS named ON named.name = lower(asked.model_id::VARCHAR)
LEFT JOIN brief_row ON brief_row.model_id = coalesce(named.model_id, asked.model_id::VARCHAR)
LEFT JOIN program_model AS classes ON classes.model_id = coalesce(named.model_id, asked.model_id::VARCHAR)
    AND classes.program_id = known.program_id
CROSS JOIN constants_row;

-- The same where it is known that no question names a program: nothing is looked up then.
CREATE OR REPLACE MACRO with_program_in(relation, is_plain) AS TABLE FROM query(CASE WHEN is_plain
    THEN 'SELECT *, {''context_tokens'': NULL::BIGINT, ''sequences'': NULL::BIGINT} AS program_numbers, '
        || 'NULL::VARCHAR AS program_reason, NULL::VARCHAR AS program_holds_for, NULL::DOUBLE AS program_share, '
        || '{''prepares_base'': NULL::BOOLEAN, ''adapter_bytes'': NULL::BIGINT, '
        || '''packed_base'': NULL::VARCHAR, ''balance_bytes'': NULL::BIGINT, '
        || '''kept_free_mib'': NULL::BIGINT, ''keeps_tower_free'': NULL::BOOLEAN, '
        || '''tower_training'': NULL::VARCHAR, '
        || '''server_slot_count'': NULL::BIGINT, ''last_layers'': NULL::BIGINT} AS program_base FROM ' || relation
    ELSE 'FROM with_program(''' || relation || ''')' END);
