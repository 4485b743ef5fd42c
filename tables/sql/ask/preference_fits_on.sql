-- Training on preferences against one card, with what generates its answers beside it: preference_of's training, and of
-- GRPO what table generator says of Transformers, of vLLM on the same cards (colocate), of a server on others.
--
--   share          = ceil(what the card's driver gives in all × generator_share), on top of what the card held before
--   generator      = share + what its row names beyond it (graphs; NCCL from two GPUs)
--   awake          total = training + generator: the step's peak while the engine keeps its share
--   asleep         total = the larger of training + what a sleeping engine keeps (graphs, libraries), and of
--                    weights + optimizer + adapters + overhead + generator: between steps there are neither gradients
--                    nor activations
--   needed         what the engine starts with, within its share: weights in 16 bits, the profiling run of so many
--                    requests and batched_tokens, a cache of one sequence of generator_context_tokens (a state for each
--                    request), libraries and graphs; where that is more it does not start
--
-- preference_fits_on('h100-sxm', 'grpo', 'Qwen/Qwen3-8B', phase_id := 'lora', generator := 'vllm-colocate') takes what
-- is not said from the row as TRL does: a share of 0.3, awake, all tokens that the model reads.
-- Between generator_share_least and generator_share_most the engine starts and the card holds both.
--
-- The total is an upper bound of a step: what the profiling run set aside of the share lies free while the step runs.
-- Units: bytes per GPU. Source: generator, each row with its own; footprints; the card's total is capacity.sql's.
-- Not covered: bases in 4 or 8 bits and checkpoints that are published packed, work spaces that kernels of attention
-- keep while vLLM sleeps (FlashInfer), Unsloth's own engine (fast_inference), which shares its weights.

CREATE OR REPLACE MACRO summed_constants(ids) AS (
    SELECT coalesce(sum(once.value * iif(once.unit = 'MiB', 1048576, 1)), 0) FROM constant AS once
    WHERE list_contains(string_split(ids, ' '), once.constant_id)
);

-- what vLLM's libraries keep for cards that share a model
CREATE OR REPLACE MACRO joined_bytes(gpu_count, constants) AS CASE
    WHEN gpu_count = 1 THEN 0
    WHEN gpu_count = 2 THEN constants.nccl_two_gpus_bytes
    ELSE constants.nccl_many_gpus_bytes
END;

CREATE OR REPLACE MACRO argument_of_generator_reason(said, training) AS CASE
    WHEN said.share IS NULL AND said.share_asked IS NOT NULL OR said.share <= 0 OR said.share > 1
        THEN 'generator_share is a share of the card, above 0 and up to 1'
    WHEN said.sleeps IS NULL AND said.sleeps_asked IS NOT NULL THEN 'generator_sleeps is true or false'
    WHEN said.parallel IS NULL AND said.parallel_asked IS NOT NULL OR said.parallel < 1
        OR training.gpu_count % coalesce(said.parallel, 1) <> 0
        THEN 'generator_tensor_parallel is a whole number that divides gpu_count'
END;

CREATE OR REPLACE MACRO generator_reason(said, rule, known, objective, training, packed, tokens, engine_reason)
AS CASE
    WHEN training.unknown_reason IS NOT NULL THEN coalesce(rule.unknown_reason, training.unknown_reason)
    WHEN NOT list_contains(string_split(known.generator_ids, ', '), said.generator_asked)
        THEN 'no such generator: ' || said.generator_asked || ' (' || known.generator_ids || ')'
    WHEN said.generator_asked <> 'transformers' AND NOT objective.generates
        THEN objective.name || ' generates nothing while it trains: without generator'
    WHEN rule.generator_id IS NULL AND said.generator_asked <> 'transformers'
        THEN 'what ' || training.program || ' lets vLLM hold is not described; known: program := trl'
    WHEN rule.unknown_reason IS NOT NULL THEN rule.unknown_reason
    WHEN said.generator_asked <> 'transformers'
        AND NOT is_within(coalesce(said.version_asked, objective.program_version), rule)
        THEN 'what ' || training.program || ' ' || coalesce(said.version_asked, objective.program_version)
            || ' tells vLLM is not described; known: program_version := '
            || version_range(rule.program_version, rule.max_version)
    WHEN NOT coalesce(rule.takes_share, false)
        AND coalesce(said.share_asked, said.sleeps_asked, said.parallel_asked, said.tokens_asked) IS NOT NULL
        THEN 'a share, a context, sleep and tensor parallel are those of vLLM on the same cards: generator := '
            || 'vllm-colocate'
    WHEN said.generator_asked <> 'transformers' AND (training.phase_id = 'qlora' OR packed)
        THEN 'how trained weights get into a vLLM that holds them packed is not described: phase_id := lora or '
            || 'full-finetune of a checkpoint in 16 or 32 bits'
    WHEN coalesce(said.sleeps, false) AND training.expandable_segments AND NOT rule.sleeps_with_expandable_segments
        THEN 'not every vLLM of these releases sleeps with expandable segments: expandable_segments := false'
    WHEN rule.takes_share AND tokens IS NULL
        THEN 'how far vLLM reads with this model is not known: generator_context_tokens := n'
    WHEN coalesce(said.sleeps, false) AND said.parallel > 1
        THEN 'what a sleeping vLLM keeps that several cards share is not settled: generator_sleeps := false'
    ELSE coalesce(argument_of_generator_reason(said, training), 'vLLM beside the training: ' || engine_reason)
END;

-- TRL tells vLLM how many requests it runs and how many tokens it reads at a time: a profiling run of these in place of
-- vLLM's own. (Of models that see its own is taken, whose encoder it runs.)
CREATE OR REPLACE MACRO told_scenario(parallel) AS {'reads_prompt': 'profile', 'engine_id': 'vllm', 'sequences': 1,
    'rank_sequences': 1, 'context_tokens': 1, 'compute_bytes': 2, 'tensor_parallel': parallel,
    'data_parallel': 1, 'expert_tensor_parallel': parallel, 'program_version': NULL::VARCHAR,
    'batched_tokens': NULL::BIGINT, 'max_num_seqs': NULL::BIGINT};
CREATE OR REPLACE MACRO told_constants(rule, requests, constants) AS {
    'vllm_default_sequences': requests, 'vllm_batched_tokens': rule.batched_tokens,
    'vllm_sampler_bytes_per_logit': constants.vllm_sampler_bytes_per_logit,
    'vllm_sorter_bytes_per_logit': constants.vllm_sorter_bytes_per_logit,
    'vllm_sorts_below_release': constants.vllm_sorts_below_release,
    'vllm_first_sampler_bytes_per_logit': constants.vllm_first_sampler_bytes_per_logit,
    'vllm_one_runner_below_release': constants.vllm_one_runner_below_release,
    'vllm_chunk_tokens': constants.vllm_chunk_tokens, 'vllm_chunked_above_tokens': constants.vllm_chunked_above_tokens
};

-- Why it does not fit, and what helps.
CREATE OR REPLACE MACRO in_gib(bytes) AS printf('%.1f GiB', bytes / 1073741824);
CREATE OR REPLACE MACRO start_words(starts, needed, share, tokens, least_share, most_share) AS
    iif(starts = 'no', 'vLLM does not start: it needs ', 'vLLM may not start: it needs about ') || in_gib(needed)
        || ' for one sequence of ' || tokens || ' tokens, and its share is ' || in_gib(share) || '; '
        || iif(coalesce(least_share > most_share, true), '', 'generator_share := ' || printf('%.2f', least_share)
            || ' or ')
        || 'a smaller generator_context_tokens';
CREATE OR REPLACE MACRO room_words(tokens, sleeps, least_share, most_share) AS iif(most_share >= least_share,
    'beside the training the card has room for generator_share := ' || printf('%.2f', most_share) || ' at most',
    'beside the training the card has no room for a vLLM that is sure to start with ' || tokens || ' tokens: fewer '
        || 'sequences' || iif(sleeps, ' or ', ', ') || 'a smaller generator_context_tokens'
        || iif(sleeps, '', ' or generator_sleeps := true'));
CREATE OR REPLACE MACRO verdict_words(takes_share, starts, held, needed, share, tokens, sleeps, least_share, most_share)
AS CASE
    WHEN NOT coalesce(takes_share, false) THEN NULL
    WHEN starts <> 'fits' THEN start_words(starts, needed, share, tokens, least_share, most_share)
    WHEN held <> 'fits' THEN room_words(tokens, sleeps, least_share, most_share)
END;

-- What the settings are called in TRL.
CREATE OR REPLACE MACRO trl_setting(rule, share, tokens, sleeps, parallel) AS iif(rule.takes_share, concat_ws(', ',
    rule.setting, 'vllm_gpu_memory_utilization=' || share, 'vllm_max_model_length=' || tokens,
    iif(sleeps, 'vllm_enable_sleep_mode=True', NULL),
    iif(parallel > 1, 'vllm_tensor_parallel_size=' || parallel, NULL)), rule.setting);

-- what vLLM takes its share of
CREATE OR REPLACE TABLE card_whole AS
SELECT gpu.gpu_id, gpu.whole_bytes AS whole_card_bytes FROM gpu;

CREATE OR REPLACE VIEW generators_known AS
SELECT string_agg(DISTINCT rule.generator_id, ', ' ORDER BY rule.generator_id) AS generator_ids FROM generator AS rule;

CREATE OR REPLACE MACRO preference_fits_on(gpu_id, objective_id, {parameters}, generator := NULL,
    generator_share := NULL, generator_context_tokens := NULL, generator_sleeps := NULL,
    generator_tensor_parallel := NULL) AS TABLE
WITH generator_said AS (
    SELECT gpu_id::VARCHAR AS card_asked, coalesce(lower(generator::VARCHAR), 'transformers') AS generator_asked,
        generator_share::VARCHAR AS share_asked, try_cast(generator_share::VARCHAR AS DOUBLE) AS share,
        generator_context_tokens::VARCHAR AS tokens_asked, generator_sleeps::VARCHAR AS sleeps_asked,
        asked_flag(generator_sleeps) AS sleeps, generator_tensor_parallel::VARCHAR AS parallel_asked,
        asked_number(generator_tensor_parallel) AS parallel, program_version::VARCHAR AS version_asked
),
-- (without the blocks of a cache that Transformers leaves, where vLLM has it)
trained AS MATERIALIZED (
    SELECT preference.* REPLACE (preference.total_bytes - coalesce(iif(said.generator_asked = 'transformers', 0,
        generation_unused_bytes(rule, model, preference)), 0)::BIGINT AS total_bytes)
    FROM (SELECT told AS preference FROM preference_of(objective_id, {passed}) AS told)
    CROSS JOIN generator_said AS said
    LEFT JOIN shape_row AS own ON own.model_id = preference.model_id
    LEFT JOIN (SELECT each.objective_id, bool_or(each.generates) AS generates,
            max(each.generation_unused_share) AS generation_unused_share,
            max(each.generation_bytes_per_token) AS generation_bytes_per_token FROM objective AS each GROUP BY ALL)
        AS rule ON rule.objective_id = preference.objective_id
),
-- (the row that preference_of took)
learned AS (
    SELECT arg_max(each, objective_rank({'program': training.program, 'program_version': said.version_asked,
        'sharding': training.sharding, 'engine_id': training.engine_id, 'gpu_count': training.gpu_count}, each))
        AS objective
    FROM generator_said AS said CROSS JOIN trained AS training
    LEFT JOIN objective AS each ON each.objective_id = training.objective_id
),
generation AS MATERIALIZED (
    SELECT said, training, rule, objective, shape.max_context_tokens, weight_format.is_trainable,
        coalesce(said.share, rule.card_share) AS share, coalesce(said.sleeps, false) AS sleeps,
        coalesce(said.parallel, 1) AS parallel,
        coalesce(said.tokens_asked, shape.max_context_tokens::VARCHAR) AS tokens,
        training.sequences * coalesce(training.gradient_accumulation, 1) * coalesce(said.parallel, 1) AS requests,
        iif(shape.largest_image_tokens IS NULL, NULL, greatest(1, coalesce(training.images, 1))) AS images
    FROM (SELECT generator_said AS said FROM generator_said)
    CROSS JOIN (SELECT trained AS training FROM trained)
    CROSS JOIN learned
    LEFT JOIN generator AS rule
        ON objective.generates AND rule.generator_id = said.generator_asked
        AND rule.program_id = lower(training.program)
    LEFT JOIN shape ON shape.model_id = training.model_id
    LEFT JOIN dtype AS weight_format ON weight_format.dtype_id = shape.stored_format
),
generator_wish AS (
    SELECT training.model_id, 'bf16' AS dtype_id, 'inference' AS phase_id, rule.engine_id, tokens AS context_tokens,
        1 AS sequences, images, parallel AS gpu_count, iif(parallel > 1, parallel, NULL) AS tensor_parallel,
        rule.engine_id AS program
    FROM generation WHERE rule.takes_share AND coalesce(rule.unknown_reason, training.unknown_reason) IS NULL
),
generator_asked AS (FROM no_scenario UNION ALL BY NAME FROM generator_wish),
-- (a name that no table has: DuckDB 1.2 takes it for the table inside of what is asked here)
engine_beside AS (
    SELECT footprint.unknown_reason, footprint.error_band, footprint.context_tokens,
        footprint.total_bytes - constants.process_context_bytes + footprint.state_bytes * (generation.requests - 1)
            - iif(generation.images IS NULL, footprint.activations_bytes - ceil(profile_bytes_alone(model,
                told_scenario(generation.parallel),
                told_constants(generation.rule, generation.requests, constants))), 0) AS needed_bytes
    FROM generation CROSS JOIN constants_row
    JOIN (SELECT told AS footprint FROM footprints_in('generator_asked', 'inference') AS told) ON true
    LEFT JOIN shape_row AS own ON own.model_id = footprint.model_id
),
beside AS (
    SELECT said, training, rule, objective, card, constants, share, sleeps, parallel, whole_card_bytes,
        iif(rule.takes_share, coalesce(engine.context_tokens, try_cast(generation.tokens AS BIGINT)), NULL) AS tokens,
        engine.needed_bytes,
        coalesce(engine.error_band, 0) AS engine_band,
        coalesce(ceil(whole_card_bytes * share), 0) AS share_bytes,
        summed_constants(rule.beyond_constants) + joined_bytes(parallel, constants) AS beyond_bytes,
        summed_constants(rule.asleep_constants) + joined_bytes(parallel, constants) AS asleep_bytes,
        training.total_bytes - training.activations_bytes - training.gradients_bytes AS standing_bytes,
        generator_reason(said, rule, known, objective, training,
            NOT coalesce(is_trainable, true), generation.tokens, engine.unknown_reason) AS reason,
        iif(rule.takes_share, card_reason(generating), NULL) AS generator_not_there,
        card_reason(running) AS not_there
    FROM generation CROSS JOIN (SELECT known AS known FROM generators_known AS known) CROSS JOIN constants_row
    LEFT JOIN engine_beside AS engine ON true
    LEFT JOIN card_row ON card_row.gpu_id = lower(said.card_asked)
    LEFT JOIN card_whole ON card_whole.gpu_id = card_row.gpu_id
    LEFT JOIN model ON model.model_id = training.model_id
    LEFT JOIN runs_on_kind AS running ON running.engine_id = training.engine_id
        AND running.running_id = running_format(model, training.dtype_id, training.engine_id)
        AND running.phase_id = training.phase_id
        AND running.attention = training.attention AND running.card_kind = card.card_kind
    LEFT JOIN runs_on_kind AS generating ON generating.engine_id = rule.engine_id AND generating.running_id = 'bf16'
        AND generating.phase_id = 'inference' AND generating.attention = 'flash'
        AND generating.card_kind = card.card_kind
),
-- of either phase: training, what of the engine stands beside it
phases AS (
    SELECT *, (share_bytes + beyond_bytes)::BIGINT AS awake_bytes,
        iif(sleeps, asleep_bytes, awake_bytes)::BIGINT AS beside_step_bytes,
        iif(sleeps, standing_bytes + awake_bytes > training.total_bytes + asleep_bytes, false) AS is_generation,
        greatest(needed(training.total_bytes, training.error_band) + needed(beside_step_bytes, engine_band),
            iif(sleeps, needed(standing_bytes, training.error_band) + needed(awake_bytes, engine_band), 0)) AS need,
        iif(is_generation, standing_bytes + awake_bytes, training.total_bytes + beside_step_bytes) AS total,
        ceil(100 * needed(needed_bytes, engine_band) / whole_card_bytes) / 100 AS least_share,
        iif(sleeps AND needed(training.total_bytes, training.error_band) + needed(asleep_bytes, engine_band)
                > card.capacity_bytes, 0,
            greatest(0, floor(100 * ((card.capacity_bytes - needed(iif(sleeps, standing_bytes, training.total_bytes),
                training.error_band)) / (1 + engine_band) - beyond_bytes) / whole_card_bytes) / 100)) AS most_share
    FROM beside
),
worded AS (
    SELECT *, coalesce(reason, not_there, generator_not_there) IS NULL AS is_known,
        card_verdict(total, need / total - 1, card.capacity_bytes, 1) AS held,
        -- (whether graphs are within the share is another thing from release to release)
        coalesce(word_for(needed_bytes - summed_constants(rule.beyond_constants), needed(needed_bytes, engine_band),
            share_bytes, 1), 'fits') AS starts
    FROM phases
)
SELECT
    coalesce(card.gpu_id, said.card_asked) AS gpu_id, training.objective_id, training.model_id, training.dtype_id,
    training.phase_id, training.context_tokens, training.sequences, training.gpu_count,
    iif(objective.generates, said.generator_asked, NULL) AS generator_id,
    iif(rule.takes_share, share, NULL)::DOUBLE AS generator_share,
    tokens::BIGINT AS generator_context_tokens, iif(rule.takes_share, sleeps, NULL) AS generator_sleeps,
    iif(reason IS NULL, training.total_bytes, NULL)::BIGINT AS training_bytes,
    iif(reason IS NULL AND (card IS NOT NULL OR NOT coalesce(rule.takes_share, false)), awake_bytes, NULL)::BIGINT
        AS generator_bytes,
    iif(reason IS NULL AND sleeps, asleep_bytes, NULL)::BIGINT AS generator_asleep_bytes,
    iif(reason IS NULL, needed_bytes, NULL)::BIGINT AS generator_needed_bytes,
    iif(reason IS NULL AND card IS NOT NULL, total, NULL)::BIGINT AS total_bytes,
    iif(reason IS NULL AND card IS NOT NULL, need / total - 1, NULL)::DOUBLE AS error_band,
    iif(reason IS NULL AND card IS NOT NULL, iif(is_generation, 'generation', 'training'), NULL) AS peak_phase,
    card.capacity_bytes, iif(reason IS NULL, card.capacity_bytes - total, NULL)::BIGINT AS headroom_bytes,
    CASE
        WHEN NOT is_known OR card IS NULL THEN NULL
        WHEN 'no' IN (held, starts) THEN 'no'
        WHEN 'tight' IN (held, starts) THEN 'tight'
        ELSE 'fits'
    END AS verdict,
    iif(is_known, verdict_words(rule.takes_share, starts, held, needed_bytes, share_bytes, tokens, sleeps,
        least_share, most_share), NULL) AS verdict_reason,
    iif(is_known AND least_share <= 1, least_share, NULL)::DOUBLE AS generator_share_least,
    iif(is_known AND rule.takes_share, most_share, NULL)::DOUBLE AS generator_share_most,
    iif(is_known, trl_setting(rule, share, tokens, sleeps, parallel), NULL) AS engine_setting,
    iif(reason IS NULL, concat_ws(', ', left(training.holds_for,
        length(training.holds_for) - length(generation_words(objective))), rule.holds_for,
        iif(rule.engine_id = 'transformers', 'generating with Transformers', NULL)), NULL) AS holds_for,
    no_verdict_reason(card.gpu_id, said.card_asked, iif(reason IS NULL, total, NULL), reason, training.model_id,
        coalesce(not_there, iif(generator_not_there IS NULL, NULL, 'vLLM beside the training: '
            || generator_not_there))) AS unknown_reason
FROM worded;
