-- How long a training of so much data takes, and the fewest cards that hold it and finish in the time that there is.
--
--   plan_training_for('h100-sxm', 'meta-llama/Llama-3.1-8B', phase_id := 'lora', data_bytes := 1000000000, days := 1)
--     one row per number of cards: the quickest way of plans_for that fits them. plan_rank 1 is the one to take: the
--         fewest cards that finish. finishes: 'yes' with the slow end of the band, 'likely' at its middle, 'no'
--   operations of a token = 2 × multiplied × (3, or 2 where weights are frozen, + 1 recomputed)
--       + 2 × attended × (3 + 1 recomputed)
--     multiplied: elements that a token passes, without the lookup of the embeddings; of experts those it is sent to
--     attended: Σ heads × (key + value width) × context, or window: the whole square, as those who publish shares count
--   hours = tokens × operations ÷ (cards × rate × hardware_share) ÷ 3600
--
-- hardware_share is what published runs reached of the card's rate (training_run, each worked out by these operations):
-- the middle half of those that train alike (weights, or adapters) on cards of its generation at its scale (one card,
-- one server, more); where fewer than four are known, at any scale, then on any cards. Whole trainings on many cards
-- took longer than that (whole_run_factor).
-- tokens = bytes ÷ bytes of a token. A batch is no larger than global_batch_tokens: 128 sequences in a fine-tune, 4M
-- tokens in pre-training; a pipeline has at least as many micro-batches as stages. More cards of a way than its fewest
-- take no more memory each: total_bytes is that of the fewest.
-- network_gb_s_least: what each card has to send so that it waits for nothing: 6 bytes × parameters in each micro-batch
-- with ZeRO-3 (4 where weights are frozen), 4 in each step otherwise. disk_bytes: text, token ids of 4 bytes, and two
-- checkpoints of 14 bytes × parameters (16-bit weights, fp32 copy and two moments); of adapters the base alone.
-- server_memory_bytes: the 16-bit weights once while they are loaded, and what offload needs.
-- Units: tokens, bytes, hours, kWh; GB/s is 10^9, TFLOPS 10^12. Source: plans_for, training_run,
-- eleuther-transformer-math for 6 × parameters × tokens, zero-paper for what is sent. Not covered: data
-- loading, evaluation, padding (sequences are packed), towers of images and sound,
-- kernels of 8 bits, tensors sent between cards that divide layers, cards whose link gives less than
-- network_gb_s_least: they wait, and take longer in proportion.

CREATE OR REPLACE MACRO training_operations(multiplied, attended, phase_id, checkpointing) AS
    2::DOUBLE * multiplied * (iif(phase_id IN ('lora', 'qlora'), 2, 3) + iif(checkpointing = 'full', 1, 0))
        + 2::DOUBLE * attended * (3 + iif(checkpointing IN ('full', 'selective'), 1, 0));

CREATE OR REPLACE MACRO cards_scale(gpu_count, constants) AS CASE
    WHEN gpu_count = 1 THEN 'one'
    WHEN gpu_count <= constants.server_gpu_count THEN 'server'
    ELSE 'many'
END;

CREATE OR REPLACE TABLE training_run AS
SELECT run.*, coalesce(run.tflops_gpu * 1e12, run.tokens_per_second_gpu * training_operations(run.multiplied_count,
    2 * run.attention_width * run.context_tokens, run.phase_id, run.checkpointing))
        / (product_tflops(gpu, 16) * 1e12) AS hardware_share
FROM training_run_fact AS run JOIN gpu ON gpu.gpu_id = run.gpu_id;

-- elements that each token of a training is multiplied with: the loss reads the head of every token
CREATE OR REPLACE MACRO multiplied_elements(model) AS
    iif(model.is_encoder, NULL, model.token_elements + model.vocab_size * model.hidden_size);

CREATE OR REPLACE MACRO training_reason(asked, card, multiplied) AS CASE
    WHEN asked.phase_id = 'inference' THEN 'a training is pretrain, full-finetune, lora or qlora'
    WHEN asked.data_bytes IS NULL AND asked.data_tokens IS NULL
        THEN 'no data: data_bytes or data_tokens says how much there is'
    WHEN coalesce(asked.data_tokens, asked.data_bytes) <= 0 THEN 'there has to be data: it starts at 1'
    WHEN coalesce(asked.days, 0) <= 0 THEN 'the time has to be more than 0 days'
    WHEN coalesce(asked.epochs, 0) <= 0 THEN 'epochs has to be more than 0'
    WHEN lower(asked.dtype_id) = 'fp32' THEN 'no rate of 32-bit products is kept'
    WHEN card.gpu_id IS NOT NULL AND product_tflops(card, 16) IS NULL
        THEN 'no rate of 16-bit products is known for this card'
    WHEN multiplied IS NULL THEN 'how many of its parameters a token passes is not known'
END;

-- questions: a relation with the columns of training_said below; ways: what plans_for answers to each
CREATE OR REPLACE MACRO training_plans_in(questions, ways) AS TABLE
WITH training_asked AS MATERIALIZED (
    SELECT said.*, row_number() OVER () AS question, card, known.parameter_count,
        multiplied_elements(model) AS multiplied,
        coalesce(said.bytes_per_token, iif(known.vocab_size >= constants.large_vocabulary_size,
            constants.bytes_per_token_large, constants.bytes_per_token_small)) AS token_bytes,
        training_reason(said, card, iif(model.model_id IS NULL, 0, multiplied_elements(model))) AS wrong
    FROM query_table(questions) AS said
    LEFT JOIN gpu AS card ON card.gpu_id = lower(said.gpu_id)
    LEFT JOIN shape AS model ON model.model_id = said.model_id
    LEFT JOIN model AS known ON known.model_id = said.model_id
    CROSS JOIN constants
),
training_way AS (
    SELECT asked.question, way.* FROM training_asked AS asked JOIN query_table(ways) AS way
        ON way.model_id = asked.model_id AND lower(way.gpu_id) = lower(asked.gpu_id) AND way.phase_id = asked.phase_id
),
-- which published runs say what share is reached at each scale: the nearest kind of which at least four are known
training_near AS (
    SELECT asked.question, asked_scale, run.hardware_share AS share,
        (known.architecture = asked.card.architecture AND known.segment = asked.card.segment) IS TRUE AS is_generation,
        cards_scale(run.gpu_count, constants) = asked_scale AS is_scale
    FROM training_run AS run JOIN gpu AS known ON known.gpu_id = run.gpu_id
    CROSS JOIN training_asked AS asked CROSS JOIN constants
    CROSS JOIN unnest(['one', 'server', 'many']) AS scales(asked_scale)
    WHERE (run.phase_id IN ('lora', 'qlora')) = (asked.phase_id IN ('lora', 'qlora'))
),
training_share AS (
    SELECT near.question, near.asked_scale AS scale, any_value(basis) AS basis, count(*) AS run_count,
        quantile_cont(share, 0.5) AS likely, quantile_cont(share, 0.25) AS low, quantile_cont(share, 0.75) AS high
    FROM training_near AS near
    JOIN (
        SELECT question, asked_scale, CASE
            WHEN count(*) FILTER (is_generation AND is_scale) >= 4 THEN 'on cards of its generation, at this scale'
            WHEN count(*) FILTER (is_generation) >= 4 THEN 'on cards of its generation'
            WHEN count(*) FILTER (is_scale) >= 4 THEN 'on other cards, at this scale'
            ELSE 'on other cards'
        END AS basis
        FROM training_near GROUP BY question, asked_scale
    ) AS chosen ON chosen.asked_scale = near.asked_scale AND chosen.question = near.question
    WHERE (is_generation OR contains(basis, 'other')) AND (is_scale OR NOT contains(basis, 'scale'))
    GROUP BY near.question, near.asked_scale
),
training_tried AS (
    SELECT way.*, asked.* EXCLUDE (question, gpu_id, model_id, phase_id, dtype_id), cards::BIGINT AS cards,
        cards // (way.tensor_parallel * way.pipeline_parallel * way.context_parallel) AS data_parallel,
        way.sequences * way.context_tokens AS micro_tokens,
        coalesce(asked.data_tokens, ceil(asked.data_bytes / asked.token_bytes)) * asked.epochs AS tokens,
        coalesce(asked.global_batch_tokens, iif(way.phase_id = 'pretrain', constants.pretrain_batch_tokens,
            constants.fine_tune_batch_sequences * way.context_tokens)) AS batch_most,
        training_operations(asked.multiplied, (SELECT sum(layer.layer_count * layer.head_count * (layer.head_dim
            + layer.value_head_dim) * least(way.context_tokens, coalesce(layer.window_tokens, way.context_tokens)))
            FROM attention_layer AS layer WHERE layer.model_id = way.model_id AND layer.component = 'text'
                AND layer.elements_per_token > 0), way.phase_id, way.checkpointing) AS operations,
        share, cards_scale(cards, constants) AS scale
    FROM training_way AS way
    JOIN training_asked AS asked ON asked.question = way.question CROSS JOIN constants
    JOIN unnest([1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192,
        16384]) AS count(cards) ON cards = way.gpu_count OR cards > way.gpu_count AND cards % way.gpu_count = 0
            AND (starts_with(way.sharding, 'zero') OR way.sharding = 'ddp' OR way.engine_id = 'megatron')
    JOIN training_share AS share ON share.scale = cards_scale(cards, constants) AND share.question = way.question
    WHERE asked.wrong IS NULL AND way.verdict IS NOT NULL
),
-- a step: so many micro-batches of each copy that the batch is reached, and a pipeline is filled
training_step AS (
    SELECT tried.*,
        greatest(round(least(batch_most, tokens) / (data_parallel * micro_tokens)), 1)::BIGINT AS micro_batches,
        -- what the fewest cards of a way need is taken as it is
        cards = gpu_count OR (data_parallel * micro_tokens * tried.pipeline_parallel <= least(batch_most, tokens))
            AS is_sensible
    FROM training_tried AS tried
),
-- on many cards whole trainings took longer than their shares say, by what was published of some
training_timed AS (
    SELECT step.*, data_parallel * micro_tokens * micro_batches AS batch_tokens,
        ceil(tokens / batch_tokens)::BIGINT AS steps,
        steps * batch_tokens * operations / (cards * product_tflops(card, 16) * 1e12 * 3600) AS ideal_hours,
        ideal_hours / share.likely * iif(scale = 'many', constants.whole_run_factor, 1) AS hours,
        ideal_hours / share.low * iif(scale = 'many', constants.whole_run_factor_most, 1) AS hours_most
    FROM training_step AS step CROSS JOIN constants WHERE is_sensible
),
training_judged AS (
    SELECT timed.*, CASE
        WHEN verdict = 'no' THEN 'no'
        WHEN hours_most <= timed.days * 24 THEN 'yes'
        WHEN hours <= timed.days * 24 THEN 'likely'
        ELSE 'no'
    END AS finishes
    FROM training_timed AS timed
),
-- of each number of cards the quickest way
training_best AS (
    SELECT judged.*, coalesce(list_position(['fits', 'multi-gpu', 'tight'], verdict), 4) AS verdict_rank
    FROM training_judged AS judged
    QUALIFY row_number() OVER (PARTITION BY judged.question, cards ORDER BY verdict_rank, hours, plan_rank) = 1
),
training_ranked AS (
    SELECT best.*, row_number() OVER (PARTITION BY best.question ORDER BY greatest(verdict_rank, 2),
        finishes = 'yes' DESC, finishes = 'likely' DESC, iif(finishes = 'no', hours, cards)) AS training_rank,
        best.parameter_count * iif(best.phase_id IN ('lora', 'qlora'), 2, 2 * constants.checkpoint_bytes_per_parameter)
            AS kept_bytes
    FROM training_best AS best CROSS JOIN constants
)
SELECT training_rank AS plan_rank, best.gpu_id, best.model_id, best.phase_id,
    best.data_bytes::BIGINT AS data_bytes, tokens::BIGINT AS data_tokens, best.days, cards AS gpu_count, verdict,
    finishes, hours,
    ideal_hours / share.high * iif(scale = 'many', constants.whole_run_factor_least, 1) AS hours_least, hours_most,
    share.likely AS hardware_share, share.run_count || ' published runs ' || share.basis AS share_basis,
    sharding, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, data_parallel, best.engine_id,
    best.checkpointing, best.context_tokens, best.sequences, micro_batches AS gradient_accumulation,
    batch_tokens::BIGINT AS global_batch_tokens, steps AS step_count, operations AS operations_per_token,
    total_bytes, capacity_bytes, cards * hours AS gpu_hours, cards * hours * card.tdp_w / 1000 AS energy_kwh_most,
    cards * hours * best.price_per_gpu_hour AS cost,
    (2 * parameter_count + coalesce(host_bytes, 0) * least(cards, constants.server_gpu_count))::BIGINT
        AS server_memory_bytes,
    (coalesce(best.data_bytes, tokens / best.epochs * token_bytes) + 4 * tokens / best.epochs + kept_bytes)::BIGINT
        AS disk_bytes,
    CASE
        WHEN cards = 1 OR tensor_parallel * pipeline_parallel > 1 OR best.phase_id = 'qlora' THEN NULL
        WHEN sharding = 'zero3' THEN parameter_count * (2 + iif(best.phase_id = 'lora', 2, 4)) * micro_batches
        WHEN best.phase_id <> 'lora' THEN parameter_count * 4
    END / (hours * 3600 / steps) / 1e9 AS network_gb_s_least,
    CASE
        WHEN verdict = 'no' THEN 'so many cards do not hold it'
        WHEN finishes = 'no' THEN 'it does not finish in time on so many cards'
    END AS unknown_reason
FROM training_ranked AS best CROSS JOIN constants
UNION ALL BY NAME
SELECT 1 AS plan_rank, coalesce(asked.card.gpu_id, asked.gpu_id) AS gpu_id, asked.model_id, asked.phase_id,
    asked.data_bytes::BIGINT AS data_bytes, asked.days, coalesce(asked.wrong, way.unknown_reason,
        'no way to share it is known') AS unknown_reason
FROM training_asked AS asked
LEFT JOIN (SELECT question, any_value(unknown_reason) AS unknown_reason FROM training_way GROUP BY question) AS way
    ON way.question = asked.question
WHERE asked.question NOT IN (SELECT question FROM training_ranked);

CREATE OR REPLACE MACRO plan_training_for(
    gpu_id, model_id, phase_id := 'lora', data_bytes := NULL, data_tokens := NULL, days := 1, epochs := 1,
    dtype_id := NULL, context_tokens := NULL, sequences := 1, optimizer_id := NULL, checkpointing := NULL,
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
