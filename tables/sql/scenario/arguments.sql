-- What was asked, checked before anything is counted: numbers that are no whole numbers or beyond all sense, and arguments that the phase
-- does not take. Each has a reason that names it; no number is rounded, none overflows a formula, and one such row never takes its
-- relation down.
--
--   known_model(asked)      the id of the model that goes by this name
--   argument_reason(a, k)   the first thing that is wrong with the scenario a, as it was asked; null where it can be counted
--   asked_number(value)     the number where it is a whole one, else null;  asked_flag(value) likewise true or false
--
-- Units: tokens, pixels, seconds, counts. Source: the constants most_… (constant.csv), far beyond what anybody runs: they keep products of
-- counts within 64 bits. Lower bounds are named where the scenario is (reasons.sql, sharding/reason.sql).

-- Ids are found without regard to case. Those of the facts are lower case (a test holds that), so that lower(asked) is enough; a model is
-- looked up by name, and two that differ in nothing but case have none: each answers to its own spelling only.
CREATE OR REPLACE TABLE model_name AS
SELECT lower(model_id) AS name, any_value(model_id) AS model_id FROM model GROUP BY lower(model_id) HAVING count(*) = 1;

CREATE OR REPLACE MACRO known_model(asked) AS coalesce((SELECT named.model_id FROM model_name AS named WHERE named.name = lower(asked)), asked);

CREATE OR REPLACE MACRO asked_number(value) AS
    iif(try_cast(value AS DOUBLE) = floor(try_cast(value AS DOUBLE)), try_cast(value AS BIGINT), NULL);

CREATE OR REPLACE MACRO asked_flag(value) AS
    CASE lower(value::VARCHAR) WHEN 'true' THEN true WHEN 'false' THEN false WHEN '1' THEN true WHEN '0' THEN false END;

CREATE OR REPLACE MACRO number_reason(name, value, most) AS CASE
    WHEN value IS NULL THEN NULL
    WHEN coalesce(try_cast(value AS DOUBLE) <> floor(try_cast(value AS DOUBLE)), true) THEN name || ' := ' || value::VARCHAR || ' is no whole number'
    WHEN try_cast(value AS DOUBLE) > most THEN name || ' := ' || value::VARCHAR || ' is beyond ' || most::BIGINT::VARCHAR || ', the most that is worked out'
    WHEN try_cast(value AS DOUBLE) < -most THEN name || ' := ' || value::VARCHAR || ' is no count'
END;

CREATE OR REPLACE MACRO flag_reason(name, value) AS
    iif(value IS NOT NULL AND asked_flag(value) IS NULL, name || ' := ' || value::VARCHAR || ' is neither true nor false', NULL);

CREATE OR REPLACE MACRO misplaced_reason(name, value, phases) AS
    iif(value IS NOT NULL, name || ' belongs to the phases ' || phases, NULL);

-- (a phase that is not known has its own reason)
CREATE OR REPLACE MACRO argument_reason(a, k) AS coalesce(
    number_reason('context_tokens', a.context_tokens, k.most_context_tokens),
    number_reason('max_context_tokens', a.max_context_tokens, k.most_context_tokens),
    number_reason('sequences', a.sequences, k.most_sequences),
    number_reason('images', a.images, k.most_images),
    number_reason('image_width', a.image_width, k.most_image_side),
    number_reason('image_height', a.image_height, k.most_image_side),
    number_reason('gpu_count', a.gpu_count, k.most_gpu_count),
    number_reason('tensor_parallel', a.tensor_parallel, k.most_gpu_count),
    number_reason('pipeline_parallel', a.pipeline_parallel, k.most_gpu_count),
    number_reason('context_parallel', a.context_parallel, k.most_gpu_count),
    number_reason('expert_parallel', a.expert_parallel, k.most_gpu_count),
    number_reason('tensor_parallel × pipeline_parallel × context_parallel', greatest(coalesce(try_cast(a.tensor_parallel AS DOUBLE), 1), 1)
        * greatest(coalesce(try_cast(a.pipeline_parallel AS DOUBLE), 1), 1) * greatest(coalesce(try_cast(a.context_parallel AS DOUBLE), 1), 1),
        k.most_gpu_count),
    number_reason('micro_batches_in_flight', a.micro_batches_in_flight, k.most_sequences),
    number_reason('gradient_accumulation', a.gradient_accumulation, k.most_sequences),
    number_reason('lora_rank', a.lora_rank, k.most_rank),
    number_reason('optimizer_rank', a.optimizer_rank, k.most_rank),
    iif(a.audio_seconds IS NOT NULL AND coalesce(NOT try_cast(a.audio_seconds AS DOUBLE) <= k.most_audio_seconds, true),
        'audio_seconds := ' || a.audio_seconds::VARCHAR || ' is no number up to ' || k.most_audio_seconds::BIGINT::VARCHAR, NULL),
    flag_reason('ema', a.ema),
    flag_reason('sequence_parallel', a.sequence_parallel),
    CASE
        WHEN coalesce(lower(a.phase_id::VARCHAR), 'inference') = 'inference' THEN coalesce(
            misplaced_reason('optimizer_id', a.optimizer_id, 'of training'), misplaced_reason('checkpointing', a.checkpointing, 'of training'),
            misplaced_reason('precision', a.precision, 'of training'), misplaced_reason('loss', a.loss, 'of training'),
            misplaced_reason('gradient_accumulation', a.gradient_accumulation, 'of training'), misplaced_reason('ema', iif(asked_flag(a.ema), true, NULL), 'of training'),
            misplaced_reason('optimizer_rank', a.optimizer_rank, 'of training'),
            misplaced_reason('lora_rank', a.lora_rank, 'lora and qlora'), misplaced_reason('lora_targets', a.lora_targets, 'lora and qlora'))
        WHEN lower(a.phase_id::VARCHAR) IN ('pretrain', 'full-finetune') THEN coalesce(
            misplaced_reason('lora_rank', a.lora_rank, 'lora and qlora'), misplaced_reason('lora_targets', a.lora_targets, 'lora and qlora'))
    END,
    iif(lower(a.phase_id::VARCHAR) IN (SELECT phase_id FROM phase WHERE phase_id <> 'inference'),
        coalesce(misplaced_reason('kv_dtype_id', a.kv_dtype_id, 'of inference'), misplaced_reason('audio_seconds', a.audio_seconds, 'of inference')), NULL)
);
