-- How long a training of so much data takes, and the fewest cards that hold it and finish in the time that there is.
--
--   plan_training_for('h100-sxm', 'meta-llama/Llama-3.1-8B', phase_id := 'lora', data_bytes := 1000000000, days := 1)
--     one row per number of cards: of the ways of plans_for that fit them the least operations × wait_ratio
--         × idle_ratio, then what divides least, then what sends least. plan_rank 1 is the one to take: the fewest
--         cards that finish. finishes: 'yes' with the slow end of the band, 'likely' at its middle, 'no'. Without a
--         word for sequences the micro-batch is searched too, as far as the batch goes
--   operations of a token = 2 × (multiplied × (3, or 2 where weights are frozen) + recomputed)
--       + 2 × attended × (3 + 1 recomputed)
--     multiplied: elements that a token passes, without the lookup of the embeddings; of experts those it is sent to
--     recomputed: with full checkpointing the same without the head, which makes logits once
--     attended: Σ heads × (key + value width) × context, or window: the whole square, as those who publish shares count
--   hours = tokens × operations ÷ (cards × rate × hardware_share) ÷ 3600
--
-- hardware_share is what published runs reached of the card's rate (training_run, each worked out by these operations;
-- training_share has the bands): the middle half (of fewer than eight all) of those that train alike (weights, or
-- adapters) on the nearest cards of which four are known at its scale (one card, one server, more): of its generation,
-- else of its segment, else any; and where no four are known at its scale, at any. Whole trainings on many cards took
-- longer (whole_run_factor).
-- tokens = bytes ÷ bytes of a token. A batch is no larger than global_batch_tokens: 128 sequences in a fine-tune, 4M
-- tokens in pre-training; a pipeline has at least as many micro-batches as stages. More cards of a way than its fewest
-- take no more memory each: total_bytes is that of the fewest. The machine around them: machine.sql. Waiting decides
-- between ways alone: hours and finishes are of cards that do not wait.
-- Units: tokens, bytes, hours, kWh; GB/s is 10^9, TFLOPS 10^12. Source: plans_for, training_run,
-- megatron-pipeline-paper for idle_ratio, eleuther-transformer-math for 6 × parameters × tokens, zero-paper for what is
-- sent. Not covered: data loading, evaluation, padding (sequences are packed), towers of images and sound,
-- kernels of 8 bits, cards whose links give less than network_gb_s_least and link_gb_s_least: they wait, and take
-- longer in proportion.

CREATE OR REPLACE MACRO training_operations(multiplied, recomputed, attended, phase_id, checkpointing) AS
    2::DOUBLE * (multiplied * iif(phase_id IN ('lora', 'qlora'), 2, 3) + iif(checkpointing = 'full', recomputed, 0))
        + 2::DOUBLE * attended * (3 + iif(checkpointing IN ('full', 'selective'), 1, 0));

-- Σ heads × (key + value width) × the tokens that each attends to, over layers that attend to the text before them
CREATE OR REPLACE MACRO attended_elements(model, context_tokens) AS coalesce(list_sum(list_transform(list_filter(
    model.mixers, lambda mixer: mixer.mechanism NOT IN ('bidirectional', 'cross')), lambda mixer: mixer.layer_count
    * (mixer.query_width + mixer.context_width) * least(context_tokens, coalesce(mixer.window_tokens,
    context_tokens)))), 0);

CREATE OR REPLACE MACRO cards_scale(gpu_count, constants) AS CASE
    WHEN gpu_count = 1 THEN 'one'
    WHEN gpu_count <= constants.server_gpu_count THEN 'server'
    ELSE 'many'
END;

CREATE OR REPLACE TABLE training_rate AS
SELECT run.*, coalesce(run.tflops_gpu * 1e12, run.tokens_per_second_gpu * training_operations(run.multiplied_count,
    run.multiplied_count - run.logit_element_count, 2 * run.attention_width * run.context_tokens, run.phase_id,
    run.checkpointing))
        / (product_tflops(gpu, 16) * 1e12) AS hardware_share
FROM training_run_fact AS run JOIN gpu ON gpu.gpu_id = run.gpu_id;

-- what share is reached: the nearest kind of published runs of which at least four are known
CREATE OR REPLACE TABLE training_share AS
WITH kind AS (
    SELECT DISTINCT gpu.architecture, gpu.segment, is_adapter, scale
    FROM gpu, unnest([true, false]) AS trained(is_adapter), unnest(['one', 'server', 'many']) AS scales(scale)
),
near AS (
    SELECT kind.*, run.hardware_share AS share, cards_scale(run.gpu_count, constants) = kind.scale AS is_scale,
        known.architecture = kind.architecture AND known.segment = kind.segment AS is_generation,
        known.segment = kind.segment AS is_segment
    FROM kind CROSS JOIN constants_row
    JOIN training_rate AS run ON (run.phase_id IN ('lora', 'qlora')) = kind.is_adapter
    JOIN gpu AS known ON known.gpu_id = run.gpu_id
),
-- the first of these that has four
rung AS (
    SELECT near.*, rank, words FROM near, (VALUES
        (1, true, true, true, 'on cards of its generation, at this scale'),
        (2, false, true, true, 'on cards of its kind, at this scale'),
        (3, false, false, true, 'on other cards, at this scale'), (4, true, true, false, 'on cards of its generation'),
        (5, false, true, false, 'on cards of its kind'), (6, false, false, false, 'on other cards'))
        AS rungs(rank, by_generation, by_segment, by_scale, words)
    WHERE (is_generation OR NOT by_generation) AND (is_segment OR NOT by_segment) AND (is_scale OR NOT by_scale)
),
known AS (
    SELECT architecture, segment, is_adapter, scale, rank, words AS basis, count(*) AS run_count,
        quantile_cont(share, [0, 0.25, 0.5, 0.75, 1]) AS quarters
    FROM rung GROUP BY ALL HAVING count(*) >= 4
)
SELECT * EXCLUDE (rank, quarters), quarters[3] AS likely, quarters[iif(run_count < 8, 1, 2)] AS low,
    quarters[iif(run_count < 8, 5, 4)] AS high
FROM known
QUALIFY row_number() OVER (PARTITION BY architecture, segment, is_adapter, scale ORDER BY rank) = 1;

-- predicted against reported: each run beside the share that is taken for trainings like it, it among them
CREATE OR REPLACE TABLE training_run AS
SELECT rate.*, share.likely AS hardware_share_likely, share.low AS hardware_share_low, share.high AS hardware_share_high
FROM training_rate AS rate CROSS JOIN constants_row
JOIN gpu ON gpu.gpu_id = rate.gpu_id
LEFT JOIN training_share AS share ON share.architecture = gpu.architecture AND share.segment = gpu.segment
    AND share.is_adapter = (rate.phase_id IN ('lora', 'qlora'))
    AND share.scale = cards_scale(rate.gpu_count, constants);

-- elements that each token of a training is multiplied with: the loss reads the head of every token
CREATE OR REPLACE MACRO multiplied_elements(model) AS
    iif(model.is_encoder, NULL, model.token_elements + model.vocab_size * model.hidden_size);

CREATE OR REPLACE MACRO training_reason(asked, card, multiplied, constants) AS CASE
    WHEN asked.phase_id = 'inference' THEN 'a training is pretrain, full-finetune, lora or qlora'
    WHEN asked.data_bytes IS NULL AND asked.data_tokens IS NULL
        THEN 'no data: data_bytes or data_tokens says how much there is'
    WHEN coalesce(asked.data_tokens, asked.data_bytes) <= 0 THEN 'there has to be data: it starts at 1'
    WHEN coalesce(asked.days, 0) <= 0 THEN 'the time has to be more than 0 days'
    WHEN coalesce(asked.epochs, 0) <= 0 THEN 'epochs has to be more than 0'
    WHEN coalesce(asked.data_tokens, asked.data_bytes) * asked.epochs > constants.most_training_data
        THEN 'there is more data than is worked out: at most 10^15 bytes or tokens, all epochs together'
    WHEN asked.bytes_per_token < constants.least_bytes_per_token
        THEN 'bytes_per_token has to be more than 0: it starts at 0.01'
    WHEN asked.global_batch_tokens < 1 THEN 'global_batch_tokens starts at 1'
    WHEN asked.price_per_gpu_hour < 0 THEN 'a price cannot be negative'
    WHEN lower(asked.dtype_id) = 'fp32' THEN 'no rate of 32-bit products is kept'
    WHEN card.gpu_id IS NOT NULL AND product_tflops(card, 16) IS NULL
        THEN 'no rate of 16-bit products is known for this card'
    WHEN multiplied IS NULL THEN 'how many of its parameters a token passes is not known'
END;

-- what a training of so much data is made of: of each a rule, which the calculator asks too
CREATE OR REPLACE MACRO token_bytes_of(vocab_size, constants) AS iif(vocab_size >= constants.large_vocabulary_size,
    constants.bytes_per_token_large, constants.bytes_per_token_small);
CREATE OR REPLACE MACRO batch_most_of(phase_id, context_tokens, constants) AS iif(phase_id = 'pretrain',
    constants.pretrain_batch_tokens, constants.fine_tune_batch_sequences * context_tokens);
-- so many micro-batches of each copy that the batch is reached
CREATE OR REPLACE MACRO micro_batches_of(batch_most, tokens, data_parallel, micro_tokens) AS
    greatest(round(least(batch_most, tokens) / (data_parallel * micro_tokens)), 1)::BIGINT;
-- at the full rate of the cards; share says what of it is reached, whole trainings on many cards took longer
CREATE OR REPLACE MACRO ideal_hours_of(tokens, operations, gpu_count, card) AS
    tokens * operations / (gpu_count * product_tflops(card, 16) * 1e12 * 3600);
CREATE OR REPLACE MACRO hours_of(ideal_hours, share, scale, whole_run_factor) AS
    ideal_hours / share * iif(scale = 'many', whole_run_factor, 1);

-- stages wait until the first micro-batch has come to them, and while the last one leaves
CREATE OR REPLACE MACRO idle_ratio(pipeline_parallel, micro_batches) AS 1 + (pipeline_parallel - 1) / micro_batches;

-- what decides between ways on so many cards: operations, of a step at least, times what is waited
CREATE OR REPLACE MACRO effort_of(tokens, batch_tokens, operations, wait, idle) AS
    greatest(tokens, batch_tokens)::DOUBLE * operations * wait * idle;

-- numbers of cards that are tried: more than the fewest of a way where copies share the data
CREATE OR REPLACE MACRO training_gpu_counts() AS [1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
    512, 768, 1024, 2048, 4096, 8192, 16384];
CREATE OR REPLACE MACRO is_grown_way(cards, way) AS cards = way.gpu_count OR cards > way.gpu_count
    AND cards % way.gpu_count = 0
    AND (starts_with(way.sharding, 'zero') OR way.sharding = 'ddp' OR way.engine_id = 'megatron');
-- each copy has its micro-batches, and a pipeline as many as stages; what the fewest cards of a way need is as it is,
-- with the smallest micro-batch that is tried
CREATE OR REPLACE MACRO is_batch_enough(cards, way, data_parallel, micro_tokens, batch_most, tokens, fewest_sequences)
    AS cards = way.gpu_count AND way.sequences = fewest_sequences
        OR data_parallel * micro_tokens * way.pipeline_parallel <= least(batch_most, tokens);
CREATE OR REPLACE MACRO finishes_in(verdict, hours, hours_most, days) AS CASE
    WHEN verdict = 'no' THEN 'no'
    WHEN hours_most <= days * 24 THEN 'yes'
    WHEN hours <= days * 24 THEN 'likely'
    ELSE 'no'
END;

-- questions: a relation with the columns of training_said below; ways: what plans_for answers to each
CREATE OR REPLACE MACRO training_plans_in(questions, ways) AS TABLE
WITH training_asked AS MATERIALIZED (
    SELECT said.*, row_number() OVER () AS question, card, known.parameter_count,
        multiplied_elements(model) AS multiplied, model.token_elements AS recomputed, model.layer_count,
        model.hidden_size, {'mixers': model.mixers} AS model,
        coalesce(said.bytes_per_token, token_bytes_of(known.vocab_size, constants)) AS token_bytes,
        training_reason(said, card, iif(model.model_id IS NULL, 0, multiplied_elements(model)), constants) AS wrong
    FROM query_table(questions) AS said
    LEFT JOIN gpu AS card ON card.gpu_id = lower(said.gpu_id)
    LEFT JOIN shape AS model ON model.model_id = said.model_id
    LEFT JOIN model AS known ON known.model_id = said.model_id
    CROSS JOIN constants_row
),
training_way AS (
    SELECT asked.question, way.*, min(way.sequences) OVER (PARTITION BY asked.question) AS fewest_sequences
    FROM training_asked AS asked JOIN query_table(ways) AS way
        ON way.model_id = asked.model_id AND lower(way.gpu_id) = lower(asked.gpu_id) AND way.phase_id = asked.phase_id
),
training_tried AS (
    SELECT way.*, asked.* EXCLUDE (question, gpu_id, model_id, phase_id, dtype_id, model), cards::BIGINT AS cards,
        cards // (way.tensor_parallel * way.pipeline_parallel * way.context_parallel) AS data_parallel,
        way.sequences * way.context_tokens AS micro_tokens,
        coalesce(asked.data_tokens, ceil(asked.data_bytes / asked.token_bytes)) * asked.epochs AS tokens,
        coalesce(asked.global_batch_tokens, batch_most_of(way.phase_id, way.context_tokens, constants)) AS batch_most,
        training_operations(asked.multiplied, asked.recomputed, attended_elements(asked.model, way.context_tokens),
            way.phase_id, way.checkpointing) AS operations,
        share, cards_scale(cards, constants) AS scale
    FROM training_way AS way
    JOIN training_asked AS asked ON asked.question = way.question CROSS JOIN constants_row
    JOIN unnest(training_gpu_counts()) AS count(cards) ON is_grown_way(cards, way)
    JOIN training_share AS share ON share.scale = cards_scale(cards, constants)
        AND share.architecture = asked.card.architecture AND share.segment = asked.card.segment
        AND share.is_adapter = (way.phase_id IN ('lora', 'qlora'))
    WHERE asked.wrong IS NULL AND way.verdict IS NOT NULL
),
-- a step: so many micro-batches of each copy that the batch is reached, and a pipeline is filled
training_step AS (
    SELECT tried.*, micro_batches_of(batch_most, tokens, data_parallel, micro_tokens) AS micro_batches,
        is_batch_enough(cards, tried, data_parallel, micro_tokens, batch_most, tokens, fewest_sequences)
            AS is_sensible
    FROM training_tried AS tried
),
-- on many cards whole trainings took longer than their shares say, by what was published of some
training_timed AS (
    SELECT step.*, data_parallel * micro_tokens * micro_batches AS batch_tokens,
        ceil(tokens / batch_tokens)::BIGINT AS steps,
        ideal_hours_of(steps * batch_tokens, operations, cards, card) AS ideal_hours,
        hours_of(ideal_hours, share.likely, scale, constants.whole_run_factor) AS hours,
        hours_of(ideal_hours, share.low, scale, constants.whole_run_factor_most) AS hours_most
    FROM training_step AS step CROSS JOIN constants_row WHERE is_sensible
),
training_judged AS (
    SELECT timed.*, finishes_in(verdict, hours, hours_most, timed.days) AS finishes,
        {'sharding': sharding, 'data_parallel': data_parallel, 'tensor_parallel': tensor_parallel, 'pipeline_parallel':
            pipeline_parallel, 'phase_id': phase_id, 'micro_batches': micro_batches, 'micro_tokens': micro_tokens,
            'checkpointing': checkpointing, 'step_seconds': hours * 3600 / steps} AS step,
        network_gb_s(step, parameter_count) AS network, link_gb_s(step, timed.layer_count, timed.hidden_size) AS link,
        effort_of(tokens, batch_tokens, operations, wait_ratio(network, link, card, scale, constants),
            idle_ratio(pipeline_parallel, micro_batches)) AS effort
    FROM training_timed AS timed CROSS JOIN constants_row
),
-- of each number of cards the way to take
training_best AS (
    SELECT judged.*, coalesce(list_position(['fits', 'multi-gpu', 'tight'], verdict), 4) AS verdict_rank
    FROM training_judged AS judged
    QUALIFY row_number() OVER (PARTITION BY judged.question, cards ORDER BY verdict_rank, effort,
        tensor_parallel * pipeline_parallel * context_parallel * expert_parallel, coalesce(network, 0), plan_rank) = 1
),
training_ranked AS (
    SELECT best.*, row_number() OVER (PARTITION BY best.question ORDER BY greatest(verdict_rank, 2),
        finishes = 'yes' DESC, finishes = 'likely' DESC, iif(finishes = 'no', hours, cards)) AS training_rank
    FROM training_best AS best
)
SELECT training_rank AS plan_rank, best.gpu_id, best.model_id, best.phase_id,
    best.data_bytes::BIGINT AS data_bytes, tokens::BIGINT AS data_tokens, best.days, cards AS gpu_count, verdict,
    finishes, hours,
    hours_of(ideal_hours, share.high, scale, constants.whole_run_factor_least) AS hours_least, hours_most,
    share.likely AS hardware_share, share.run_count || ' published runs ' || share.basis AS share_basis,
    sharding, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, data_parallel, best.engine_id,
    best.checkpointing, best.context_tokens, best.sequences, micro_batches AS gradient_accumulation,
    batch_tokens::BIGINT AS global_batch_tokens, steps AS step_count, operations AS operations_per_token,
    total_bytes, capacity_bytes, cards * hours AS gpu_hours, cards * card.tdp_w / 1000 AS power_kw_most,
    cards * hours * card.tdp_w / 1000 AS energy_kwh_most, cards * hours * best.price_per_gpu_hour AS cost,
    training_cpu_count(cards, constants) AS server_cpu_count,
    training_memory_bytes(parameter_count, host_bytes, cards, constants) AS server_memory_bytes,
    usual_memory_bytes(card, cards, constants) AS server_memory_usual_bytes,
    training_disk_bytes(best.phase_id, parameter_count, coalesce(best.data_bytes, tokens / best.epochs * token_bytes),
        tokens / best.epochs, constants) AS disk_bytes,
    network AS network_gb_s_least, link AS link_gb_s_least,
    CASE
        WHEN verdict = 'no' THEN 'so many cards do not hold it'
        WHEN finishes = 'no' THEN 'it does not finish in time on so many cards'
    END AS unknown_reason
FROM training_ranked AS best CROSS JOIN constants_row
UNION ALL BY NAME
SELECT 1 AS plan_rank, coalesce(asked.card.gpu_id, asked.gpu_id) AS gpu_id, asked.model_id, asked.phase_id,
    try_cast(asked.data_bytes AS BIGINT) AS data_bytes, asked.days, coalesce(asked.wrong, way.unknown_reason,
        'no way to share it is known') AS unknown_reason
FROM training_asked AS asked
LEFT JOIN (SELECT question, any_value(unknown_reason) AS unknown_reason FROM training_way GROUP BY question) AS way
    ON way.question = asked.question
WHERE asked.question NOT IN (SELECT question FROM training_ranked);

CREATE OR REPLACE MACRO plan_training_for(
    gpu_id, model_id, phase_id := 'lora', data_bytes := NULL, data_tokens := NULL, days := 1, epochs := 1,
    dtype_id := NULL, context_tokens := NULL, sequences := NULL, optimizer_id := NULL, checkpointing := NULL,
    lora_rank := NULL, lora_targets := NULL, precision := NULL, engine_id := NULL, global_batch_tokens := NULL,
    bytes_per_token := NULL, price_per_gpu_hour := NULL
) AS TABLE
WITH training_said AS (
    SELECT known_model(model_id) AS model_id, gpu_id::VARCHAR AS gpu_id, lower(phase_id::VARCHAR) AS phase_id,
        dtype_id::VARCHAR AS dtype_id, try_cast(data_bytes AS DOUBLE) AS data_bytes, try_cast(data_tokens AS DOUBLE)
            AS data_tokens, try_cast(days AS DOUBLE) AS days, try_cast(epochs AS DOUBLE) AS epochs,
        try_cast(bytes_per_token AS DOUBLE) AS bytes_per_token, try_cast(global_batch_tokens AS DOUBLE)
            AS global_batch_tokens, try_cast(price_per_gpu_hour AS DOUBLE) AS price_per_gpu_hour
),
training_ways AS MATERIALIZED (
    FROM plans_for(gpu_id, model_id, phase_id := phase_id, dtype_id := dtype_id, context_tokens := context_tokens,
        sequences := sequences, optimizer_id := optimizer_id, checkpointing := checkpointing, lora_rank := lora_rank,
        lora_targets := lora_targets, precision := precision, engine_id := engine_id)
)
FROM training_plans_in('training_said', 'training_ways') ORDER BY plan_rank;
