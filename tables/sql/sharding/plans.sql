-- How many GPUs a training takes, and how they share it: the sensible combinations searched.
--
--   plans_for('h100-sxm', 'meta-llama/Llama-3.1-405B', phase_id := 'pretrain', ...)
--     one row per way to share, on the fewest GPUs that it fits; the cheapest first. plan_rank 1 is the one to take:
--         fewest GPUs, then fewest
--     stages and divided layers, then nothing computed twice, then most room. Where nothing fits, the row that comes
--         closest, with verdict `no`.
--
-- Searched: 1, 2, 4 ... 1024 GPUs; DDP, ZeRO-1, ZeRO-2 and ZeRO-3 (FSDP), and tensor parallelism alone within one node
-- (engine transformers; not over weights that bitsandbytes packs); or, where layers are divided or staged besides, the
-- distributed optimizer (engine megatron): tensor_parallel up to the GPUs of one node; pipeline_parallel up to 16;
-- context_parallel for long sequences; expert_parallel 8 for models with experts. Without activation checkpointing and
-- with it (checkpointing := 'none', 'full' or 'selective' asks for one). With engine_id, only that engine's ways; with
-- sharding that alone; with program those of its engine, and what is said by nobody (NULL) is its own default. With
-- sequences := NULL also larger micro-batches of the ways that send weights for each of them: they send less a token.
-- offload is tried as asked. Pipelines are filled: as many micro-batches in flight as stages.
-- Units: bytes per GPU; sequences is the micro-batch of a data-parallel copy. verdict as in compatibility: `fits` with
-- the error band, `tight` without. Source: footprints, gpu, runs_on. Not covered: speed, stages of uneven size, cards
-- of several kinds.

-- the ways; divides: nothing, layers alone, or layers, stages, contexts and experts as they come. Without a word for
-- the sharding it is the engine's own. sends_each: what is sent grows with the number of micro-batches (network_gb_s)
CREATE OR REPLACE TABLE plan_way AS
FROM (VALUES ('transformers', 'zero3', 'nothing', true), ('transformers', 'zero2', 'nothing', false),
    ('transformers', 'zero1', 'nothing', false), ('transformers', 'ddp', 'nothing', false),
    ('transformers', 'tp', 'layers', false), ('megatron', NULL, 'any', false))
    AS ways(engine, sharding, divides, sends_each);

CREATE OR REPLACE MACRO way_gpu_counts() AS [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

CREATE OR REPLACE MACRO way_degrees() AS
    {'tensor': [1, 2, 4, 8], 'pipeline': [1, 2, 4, 8, 16], 'context': [1, 4, 8], 'expert': [1, 8]};

CREATE OR REPLACE MACRO way_sequences() AS [1, 2, 4, 8, 16];

-- more sequences than one where that saves sending: one card sends nothing, and of packed weights nobody has counted it
CREATE OR REPLACE MACRO is_way_sequences(way, gpus, number, phase_id) AS
    number = 1 OR way.sends_each AND gpus > 1 AND phase_id <> 'qlora';

-- degree: tensor, pipeline, context, expert; asked: context_tokens, engine_id, phase_id, sharding, program_engine (of a
-- program no layers are divided but by Megatron)
CREATE OR REPLACE MACRO is_way(way, gpus, degree, asked, has_experts) AS
    coalesce(way.sharding = asked.sharding, asked.sharding IS NULL)
    AND (asked.program_engine IS NULL
        OR way.divides <> 'layers' AND (way.engine = 'megatron') = (asked.program_engine = 'megatron'))
    AND degree.tensor * degree.pipeline * degree.context <= gpus
    AND (degree.context = 1 OR coalesce(asked.context_tokens, 0) >= 16384 * degree.context)
    AND (degree.expert = 1 OR has_experts AND gpus >= degree.tensor * degree.pipeline * degree.expert)
    AND CASE way.divides
        WHEN 'nothing' THEN degree.tensor * degree.pipeline * degree.context * degree.expert = 1
            AND (gpus > 1 OR way.sharding = coalesce(asked.sharding, 'zero3'))
        WHEN 'layers' THEN degree.tensor > 1 AND degree.tensor = gpus AND degree.pipeline * degree.context
            * degree.expert = 1 AND asked.phase_id <> 'qlora'
        ELSE degree.tensor * degree.pipeline * degree.context * degree.expert > 1
            AND (asked.engine_id IS NULL OR degree.tensor < gpus)
            AND (degree.tensor = 1 OR asked.phase_id <> 'qlora')
    END;

CREATE OR REPLACE MACRO plans_for(
    gpu_id, model_id, phase_id := 'full-finetune', dtype_id := NULL, context_tokens := NULL, sequences := 1,
    optimizer_id := NULL,
    checkpointing := NULL, lora_rank := NULL, lora_targets := NULL, precision := NULL, attention := NULL,
    engine_id := NULL, offload := NULL,
    loss := NULL, gradient_accumulation := NULL, adapter := NULL, lora_dropout := NULL, sharding := NULL,
    program := NULL, program_version := NULL
) AS TABLE
WITH plan_card AS (SELECT gpu_id::VARCHAR AS named_id, known_model(model_id) AS known_id,
    iif(program IS NULL, NULL, coalesce((SELECT max(own.engine_id) FROM program_name AS known
        JOIN program_row AS own ON own.program_id = known.program_id AND own.phase_id = known.phase_id
        WHERE known.program_name = lower(program::VARCHAR) AND known.phase_id = lower(phase_id::VARCHAR)), ''))
        AS program_engine),
plan_asked AS (
    SELECT
        model_id AS model_id, dtype_id AS dtype_id, phase_id AS phase_id,
        coalesce(engine_id, iif(program IS NULL, way.engine, NULL)) AS engine_id, context_tokens AS context_tokens,
        coalesce(sequences::VARCHAR, iif(program IS NULL, micro.number::VARCHAR, NULL)) AS sequences,
        NULL AS kv_dtype_id, optimizer_id AS optimizer_id,
        precision AS precision,
        saved.checkpointing, lora_rank AS lora_rank, lora_targets AS lora_targets, attention AS attention, way.sharding,
        gpus.number::BIGINT AS gpu_count, tensor.number::BIGINT AS tensor_parallel, pipeline.number::BIGINT
            AS pipeline_parallel,
        context.number::BIGINT AS context_parallel, expert.number::BIGINT AS expert_parallel,
        NULL AS micro_batches_in_flight,
        NULL AS sequence_parallel, offload AS offload, adapter AS adapter, loss AS loss, gradient_accumulation
            AS gradient_accumulation,
        NULL AS ema, NULL AS optimizer_rank, NULL AS max_context_tokens, NULL AS images, NULL AS image_width,
        NULL AS image_height, NULL AS audio_seconds, lora_dropout AS lora_dropout,
        NULL AS reduce_bucket_elements, NULL AS expandable_segments, NULL AS trains_embeddings, program AS program,
        program_version AS program_version, NULL AS data_parallel, NULL AS decode_context_parallel,
        NULL AS batched_tokens, NULL AS max_num_seqs, NULL AS text_only,
        NULL AS enforce_eager, NULL AS max_loras, NULL AS max_lora_rank
    FROM plan_way AS way
    JOIN (SELECT unnest(way_gpu_counts()) AS number) AS gpus ON true
    JOIN (SELECT unnest(way_degrees().tensor) AS number) AS tensor ON true
    JOIN (SELECT unnest(way_degrees().pipeline) AS number) AS pipeline ON true
    JOIN (SELECT unnest(way_degrees().context) AS number) AS context ON true
    JOIN (SELECT unnest(way_degrees().expert) AS number) AS expert
        ON is_way(way, gpus.number, {'tensor': tensor.number, 'pipeline': pipeline.number, 'context': context.number,
            'expert': expert.number}, {'context_tokens': context_tokens, 'engine_id': engine_id, 'phase_id': phase_id,
            'sharding': lower(sharding::VARCHAR), 'program_engine': (SELECT program_engine FROM plan_card)},
            EXISTS (SELECT 1 FROM shape AS model WHERE model.model_id = (SELECT known_id FROM plan_card)
                AND model.expert_count_max > 0))
    JOIN (SELECT unnest(iif(sequences IS NULL AND program IS NULL, way_sequences(), [1])) AS number) AS micro
        ON sequences IS NOT NULL OR is_way_sequences(way, gpus.number, micro.number, phase_id)
    JOIN (SELECT unnest(iif(checkpointing IS NULL AND program IS NULL, ['none', 'full'], [checkpointing]))
        AS checkpointing) AS saved
        ON true
),
judged AS (
    SELECT
        footprint.*, card.capacity_bytes, coalesce(card.gpu_id, plan_card.named_id) AS asked_id,
        iif(card_reason(running) IS NULL, card_verdict(footprint.total_bytes, footprint.error_band, card.capacity_bytes,
            footprint.gpu_count), NULL) AS verdict,
        no_verdict_reason(card.gpu_id, plan_card.named_id, footprint.total_bytes, footprint.unknown_reason,
            footprint.model_id, card_reason(running)) AS reason
    FROM plan_card
    JOIN footprints_in('plan_asked', phase_id, is_usual := true) AS footprint ON true
    LEFT JOIN gpu AS card ON card.gpu_id = lower(plan_card.named_id)
    LEFT JOIN model ON model.model_id = footprint.model_id
    LEFT JOIN runs_on_kind AS running
        ON running.engine_id = footprint.engine_id
            AND running.running_id = running_format(model, footprint.dtype_id, footprint.engine_id)
            AND running.phase_id = footprint.phase_id
        AND running.attention = footprint.attention AND running.card_kind = card_kind(card)
),
-- of each way the fewest GPUs that it fits on, or the closest try
way_best AS (
    SELECT *
    FROM judged
    QUALIFY row_number() OVER (
        PARTITION BY judged.engine_id, judged.checkpointing, judged.sharding, tensor_parallel, pipeline_parallel,
            context_parallel, expert_parallel, judged.sequences
        ORDER BY coalesce(list_position(['fits', 'multi-gpu', 'tight', 'no'], verdict), 5),
            iif(verdict = 'no', total_bytes, gpu_count), gpu_count
    ) = 1
),
ranked AS (
    SELECT
        *, row_number() OVER (
            ORDER BY CASE WHEN verdict IN ('fits', 'multi-gpu') THEN 1 WHEN verdict = 'tight' THEN 2
                WHEN verdict = 'no' THEN 3 ELSE 4 END,
                iif(verdict = 'no', total_bytes, gpu_count), tensor_parallel * pipeline_parallel * context_parallel
                    * expert_parallel,
                iif(verdict = 'no', 0, list_position(['none', 'selective', 'full'], ranked_way.checkpointing)),
                total_bytes, gpu_count,
                ranked_way.engine_id, ranked_way.sharding
        ) AS plan_rank
    FROM way_best AS ranked_way
)
SELECT
    plan_rank, asked_id AS gpu_id, ranked.model_id, ranked.phase_id, gpu_count, verdict, ranked.sharding,
    tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, ranked.checkpointing,
    ranked.engine_id, ranked.offload, ranked.context_tokens, ranked.sequences, total_bytes, capacity_bytes,
    capacity_bytes - total_bytes AS headroom_bytes, host_bytes, error_band,
    ranked.holds_for, reason AS unknown_reason
FROM ranked
WHERE plan_rank = 1 OR verdict IN ('fits', 'multi-gpu', 'tight')
ORDER BY plan_rank;
