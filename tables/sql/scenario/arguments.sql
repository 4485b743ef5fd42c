-- What was asked, checked before anything is counted: numbers that are no whole numbers or beyond all sense, and
-- arguments that the phase does not take. Each has a reason that names it; no number is rounded, none overflows a
-- formula, and one such row never takes its relation down.
--
--   known_model(asked)      the id of the model that goes by this name
--   argument_reason(…)      the first thing that is wrong with a scenario as it was asked; null where it can be
--       counted
--   asked_number(value)     the number where it is a whole one, else null;  asked_flag(value) likewise true or false
--
-- Units: tokens, pixels, seconds, counts. Source: the constants most_… (constant.csv), far beyond what anybody runs:
-- they keep products of counts within 64 bits. Not covered: lower bounds, which are named where
-- the scenario is (reasons.sql, sharding/reason.sql).

-- Ids are found without regard to case. Those of the facts are lower case (a test holds that), so that lower(asked) is
-- enough; a model is looked up by name, and two that differ in nothing but case have none: each answers to its own
-- spelling only.
CREATE OR REPLACE TABLE model_name AS
SELECT lower(model_id) AS name, any_value(model_id) AS model_id FROM model GROUP BY lower(model_id) HAVING count(*) = 1;

CREATE OR REPLACE MACRO known_model(asked) AS
    coalesce((SELECT named.model_id FROM model_name AS named WHERE named.name = lower(asked)), asked);

CREATE OR REPLACE MACRO asked_number(value) AS
    iif(try_cast(value AS DOUBLE) = floor(try_cast(value AS DOUBLE)), try_cast(value AS BIGINT), NULL);

CREATE OR REPLACE MACRO asked_flag(value) AS
    CASE lower(value::VARCHAR) WHEN 'true' THEN true WHEN 'false' THEN false WHEN '1' THEN true WHEN '0' THEN false END;

CREATE OR REPLACE MACRO number_reason(name, value, most) AS CASE
    WHEN value IS NULL THEN NULL
    WHEN coalesce(try_cast(value AS DOUBLE) <> floor(try_cast(value AS DOUBLE)), true) THEN name || ' := '
        || value::VARCHAR || ' is no whole number'
    WHEN try_cast(value AS DOUBLE) > most THEN name || ' := ' || value::VARCHAR || ' is beyond '
        || most::BIGINT::VARCHAR || ', the most that is worked out'
    WHEN try_cast(value AS DOUBLE) < -most THEN name || ' := ' || value::VARCHAR || ' is no count'
END;

CREATE OR REPLACE MACRO flag_reason(name, value) AS
    iif(value IS NOT NULL AND asked_flag(value) IS NULL, name || ' := ' || value::VARCHAR
        || ' is neither true nor false', NULL);

CREATE OR REPLACE MACRO misplaced_reason(name, value, phases) AS
    iif(value IS NOT NULL, name || ' belongs to the phases ' || phases, NULL);

CREATE OR REPLACE MACRO slots_number_reason(asked, constants) AS coalesce(
    number_reason('max_loras', asked.max_loras, constants.most_sequences),
    number_reason('max_lora_rank', asked.max_lora_rank, constants.most_rank));

CREATE OR REPLACE MACRO numbers_reason(asked, constants) AS coalesce(
    number_reason('context_tokens', asked.context_tokens, constants.most_context_tokens),
    number_reason('max_context_tokens', asked.max_context_tokens, constants.most_context_tokens),
    number_reason('sequences', asked.sequences, constants.most_sequences),
    number_reason('images', asked.images, constants.most_images),
    number_reason('image_width', asked.image_width, constants.most_image_side),
    number_reason('image_height', asked.image_height, constants.most_image_side),
    number_reason('gpu_count', asked.gpu_count, constants.most_gpu_count),
    number_reason('tensor_parallel', asked.tensor_parallel, constants.most_gpu_count),
    number_reason('pipeline_parallel', asked.pipeline_parallel, constants.most_gpu_count),
    number_reason('context_parallel', asked.context_parallel, constants.most_gpu_count),
    number_reason('expert_parallel', asked.expert_parallel, constants.most_gpu_count),
    number_reason('data_parallel', asked.data_parallel, constants.most_gpu_count),
    number_reason('decode_context_parallel', asked.decode_context_parallel, constants.most_gpu_count),
    number_reason('batched_tokens', asked.batched_tokens, constants.most_context_tokens),
    number_reason('max_num_seqs', asked.max_num_seqs, constants.most_sequences),
    number_reason('tensor_parallel × pipeline_parallel × context_parallel',
        greatest(coalesce(try_cast(asked.tensor_parallel AS DOUBLE), 1), 1)
            * greatest(coalesce(try_cast(asked.pipeline_parallel AS DOUBLE), 1), 1)
            * greatest(coalesce(try_cast(asked.context_parallel AS DOUBLE), 1), 1),
        constants.most_gpu_count),
    number_reason('data_parallel × tensor_parallel × pipeline_parallel',
        greatest(coalesce(try_cast(asked.data_parallel AS DOUBLE), 1), 1)
            * greatest(coalesce(try_cast(asked.tensor_parallel AS DOUBLE), 1), 1)
            * greatest(coalesce(try_cast(asked.pipeline_parallel AS DOUBLE), 1), 1),
        constants.most_gpu_count),
    number_reason('micro_batches_in_flight', asked.micro_batches_in_flight, constants.most_sequences),
    number_reason('gradient_accumulation', asked.gradient_accumulation, constants.most_sequences),
    number_reason('lora_rank', asked.lora_rank, constants.most_rank),
    number_reason('optimizer_rank', asked.optimizer_rank, constants.most_rank),
    number_reason('reduce_bucket_elements', asked.reduce_bucket_elements, constants.most_bucket_elements),
    iif(asked.audio_seconds IS NOT NULL
        AND coalesce(NOT try_cast(asked.audio_seconds AS DOUBLE) <= constants.most_audio_seconds, true),
        'audio_seconds := ' || asked.audio_seconds::VARCHAR || ' is no number up to '
            || constants.most_audio_seconds::BIGINT::VARCHAR, NULL),
    iif(asked.lora_dropout IS NOT NULL AND coalesce(NOT (try_cast(asked.lora_dropout AS DOUBLE) >= 0
        AND try_cast(asked.lora_dropout AS DOUBLE) < 1), true),
        'lora_dropout := ' || asked.lora_dropout::VARCHAR || ' is no share from 0 to below 1', NULL),
    flag_reason('ema', asked.ema),
    flag_reason('sequence_parallel', asked.sequence_parallel),
    flag_reason('expandable_segments', asked.expandable_segments),
    flag_reason('trains_embeddings', asked.trains_embeddings),
    flag_reason('text_only', asked.text_only),
    flag_reason('enforce_eager', asked.enforce_eager), slots_number_reason(asked, constants)
);

-- (a phase that is not known has its own reason)
CREATE OR REPLACE MACRO phase_reason(asked) AS coalesce(
    CASE
        WHEN coalesce(lower(asked.phase_id::VARCHAR), 'inference') = 'inference' THEN coalesce(
            misplaced_reason('optimizer_id', asked.optimizer_id, 'of training'),
            misplaced_reason('checkpointing', asked.checkpointing, 'of training'),
            misplaced_reason('precision', asked.precision, 'of training'),
            misplaced_reason('loss', asked.loss, 'of training'),
            misplaced_reason('gradient_accumulation', asked.gradient_accumulation, 'of training'),
            misplaced_reason('ema', iif(asked_flag(asked.ema), true, NULL), 'of training'),
            misplaced_reason('optimizer_rank', asked.optimizer_rank, 'of training'),
            misplaced_reason('reduce_bucket_elements', asked.reduce_bucket_elements, 'of training'),
            misplaced_reason('expandable_segments', iif(asked_flag(asked.expandable_segments), true, NULL),
                'of training'),
            misplaced_reason('lora_rank', asked.lora_rank, 'lora and qlora'),
            misplaced_reason('lora_targets', asked.lora_targets, 'lora and qlora'),
            misplaced_reason('lora_dropout', asked.lora_dropout, 'lora and qlora'),
            misplaced_reason('trains_embeddings', iif(asked_flag(asked.trains_embeddings), true, NULL),
                'lora and qlora'))
        WHEN lower(asked.phase_id::VARCHAR) IN ('pretrain', 'full-finetune') THEN coalesce(
            misplaced_reason('lora_rank', asked.lora_rank, 'lora and qlora'),
            misplaced_reason('lora_targets', asked.lora_targets, 'lora and qlora'),
            misplaced_reason('lora_dropout', asked.lora_dropout, 'lora and qlora'),
            misplaced_reason('trains_embeddings', iif(asked_flag(asked.trains_embeddings), true, NULL),
                'lora and qlora'))
    END,
    iif(lower(asked.phase_id::VARCHAR) IN (SELECT phase_id FROM phase WHERE phase_id <> 'inference'),
        coalesce(misplaced_reason('kv_dtype_id', asked.kv_dtype_id, 'of inference'),
            misplaced_reason('audio_seconds', asked.audio_seconds, 'of inference'),
            misplaced_reason('decode_context_parallel', asked.decode_context_parallel, 'of inference'),
            misplaced_reason('batched_tokens', asked.batched_tokens, 'of inference'),
            misplaced_reason('max_num_seqs', asked.max_num_seqs, 'of inference'),
            misplaced_reason('max_loras', asked.max_loras, 'of inference; an adapter that is trained has lora_rank'),
            misplaced_reason('max_lora_rank', asked.max_lora_rank,
                'of inference; an adapter that is trained has lora_rank'),
            misplaced_reason('text_only', iif(asked_flag(asked.text_only), true, NULL), 'of inference'),
            misplaced_reason('enforce_eager', iif(asked_flag(asked.enforce_eager), true, NULL), 'of inference'),
            misplaced_reason('data_parallel', asked.data_parallel,
                'of inference; of a training it is what gpu_count leaves')), NULL)
);

CREATE OR REPLACE MACRO argument_reason(asked, constants) AS
    coalesce(numbers_reason(asked, constants), phase_reason(asked));
