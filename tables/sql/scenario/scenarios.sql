-- Scenarios: what was asked, with every default filled in and the GPUs divided among the ways of sharing.
--
-- scenarios(relation) answers a relation of the columns of `scenario_asked` (null means default) with one row each: a
-- default is the dtype's or the phase's, and never more context than the model reads. What cannot be is not refused
-- here but named: input_reason, sharding_reason (reasons.sql, sharding/reason.sql). Units: tokens, counts, bytes of one
-- element.
-- Source of the defaults: the tables dtype, engine, sharding_rule, and program (programs.sql). Not covered: what a
-- program decides by itself from what is free.

-- whether an engine holds the cache of such a model in the format
CREATE OR REPLACE MACRO takes_kv_dtype(kv, model, scenario) AS
    coalesce(list_contains(string_split(kv.engine_ids, ' '), scenario.engine_id), true)
    AND coalesce(list_contains(string_split(kv.model_types, ' '), model.model_type), true)
    AND (NOT has_pool(model, scenario.engine_id) OR coalesce(scenario.kv_dtype_id = model.pool.kv_dtype_id, false));

-- The cache is in 16 bits where nobody says, but for architectures that an engine keeps in one format alone.
CREATE OR REPLACE MACRO usual_kv_dtype(asked, model, engine_id) AS coalesce(asked.kv_dtype_id,
    iif(has_pool(model, engine_id), model.pool.kv_dtype_id, NULL), iif(asked.dtype_id = 'fp32', 'fp32', 'bf16'));

-- QLoRA's base is quantised; all else starts in 16 bits.
CREATE OR REPLACE MACRO usual_dtype(dtype_id, phase_id) AS coalesce(dtype_id, iif(phase_id = 'qlora', 'nf4', 'bf16'));

-- The precision of a training step where nobody says.
CREATE OR REPLACE MACRO usual_precision(phase_id, dtype_id) AS
    CASE WHEN phase_id = 'qlora' THEN 'amp' WHEN dtype_id = 'fp32' THEN 'pure' ELSE 'mixed' END;

-- How several GPUs share where nobody says: as the degrees that are asked for imply, else the engine's own way.
CREATE OR REPLACE MACRO usual_sharding(gpu_count, tensor_parallel, pipeline_parallel, is_inference, parallelism) AS CASE
    WHEN gpu_count = tensor_parallel * coalesce(pipeline_parallel, 1) AND tensor_parallel > 1 THEN 'tp'
    WHEN gpu_count = pipeline_parallel THEN 'pp'
    WHEN NOT is_inference THEN iif(starts_with(parallelism, 'zero'), parallelism, 'zero3')
    ELSE coalesce(parallelism, 'tp')
END;

CREATE OR REPLACE MACRO degree_asked(value) AS greatest(coalesce(value, 1), 1)::BIGINT;

-- DeepSpeed on one card has nobody to share with, and keeps its fp32 masters and buckets all the same.
CREATE OR REPLACE MACRO is_deepspeed(engine_id, sharding) AS
    coalesce(CASE coalesce(engine_id, 'transformers')
        WHEN 'deepspeed' THEN sharding IN ('zero1', 'zero2', 'zero3')
        WHEN 'transformers' THEN sharding IN ('zero1', 'zero2')
    END, false);

-- What was asked for, also in the words that rows of several ways are published as.
CREATE OR REPLACE MACRO sharding_asked(asked) AS CASE
    WHEN asked.gpu_count = 1 AND NOT (is_deepspeed(asked.engine_id, asked.sharding) AND NOT asked.is_inference)
        THEN 'none'
    WHEN asked.sharding = 'tp+pp' THEN 'tp'
    WHEN asked.sharding IN ('dp', 'dp+ep', 'dp+tp', 'dp+tp+ep', 'tp+ep') AND asked.is_inference
        AND greatest(coalesce(asked.data_parallel, 1), coalesce(asked.expert_parallel, 1)) > 1 THEN 'tp'
    ELSE asked.sharding
END;

-- The numbers of a scenario as they were asked.
CREATE OR REPLACE MACRO asked_numbers(asked) AS {
    'context_tokens': asked_number(asked.context_tokens), 'max_context_tokens': asked_number(asked.max_context_tokens),
    'sequences': asked_number(asked.sequences), 'images': asked_number(asked.images),
    'image_width': asked_number(asked.image_width),
    'image_height': asked_number(asked.image_height), 'lora_rank': asked_number(asked.lora_rank),
    'gradient_accumulation': asked_number(asked.gradient_accumulation),
    'optimizer_rank': asked_number(asked.optimizer_rank),
    'reduce_bucket_elements': asked_number(asked.reduce_bucket_elements),
    'gpu_count': asked_number(asked.gpu_count), 'tensor_parallel': asked_number(asked.tensor_parallel),
    'pipeline_parallel': asked_number(asked.pipeline_parallel),
    'context_parallel': asked_number(asked.context_parallel),
    'expert_parallel': asked_number(asked.expert_parallel), 'data_parallel': asked_number(asked.data_parallel),
    'decode_context_parallel': asked_number(asked.decode_context_parallel),
    'batched_tokens': asked_number(asked.batched_tokens),
    'max_num_seqs': asked_number(asked.max_num_seqs), 'max_loras': asked_number(asked.max_loras),
    'max_lora_rank': asked_number(asked.max_lora_rank),
    'micro_batches_in_flight': asked_number(asked.micro_batches_in_flight)
};

-- Whole servers among which inference is spread as a pipeline, tensor parallel within each, where nobody asks for other
-- degrees.
CREATE OR REPLACE MACRO servers_asked(scenario, constants) AS
    iif(scenario.phase_id = 'inference' AND scenario.sharding = 'tp' AND is_server(scenario)
        AND scenario.tensor_asked IS NULL AND NOT is_spread(scenario)
        AND scenario.gpu_count % constants.server_gpu_count = 0, scenario.gpu_count // constants.server_gpu_count, 1);

-- How several GPUs get a packed base, and what bitsandbytes stores it in, which is the user's to say where no program
-- does: FSDP2 shards floating types alone.
CREATE OR REPLACE MACRO packed_base_words(scenario) AS
    iif(scenario.phase_id = 'qlora' AND scenario.sharding = 'zero3' AND scenario.engine_id = 'transformers', CASE
        WHEN scenario.packed_base = 'whole'
            THEN ', every GPU holding the packed base whole (bnb_4bit_quant_storage is uint8)'
        WHEN scenario.packed_base = 'from-host' THEN ', with cpu_ram_efficient_loading'
        ELSE ', every GPU loading the packed base whole'
            || iif(scenario.program IS NULL, ', bnb_4bit_quant_storage set to bfloat16', '')
    END, '');

-- An embedding model whose class can write is counted as one that does: trained on pairs of texts it makes no logits.
CREATE OR REPLACE MACRO embedder_words(model, scenario) AS
    iif(scenario.phase_id <> 'inference' AND coalesce(scenario.loss, 'full') <> 'score' AND coalesce(model.is_embedder
        AND model.logit_columns > 0, false),
        ', trained to write (trained to embed it makes no logits and takes less)', '');

-- The versions that the answer holds for. (An engine of which no version is told is its name alone.)
CREATE OR REPLACE MACRO answers_for(model, scenario, run) AS coalesce(
    iif(scenario.decode_context_parallel > 1, run.sharing.context_holds_for, NULL),
    iif(serves_adapters(scenario), model.served_adapter.holds_for, NULL),
    iif(scenario.program IS NULL, run.name || coalesce(' ' || run.engine_version, ''), scenario.program_holds_for)
        || iif(scenario.phase_id = 'inference' AND run.reads_prompt = 'whole' AND caches_unread(model),
            ', use_cache not set to false', '')
        || iif(scenario.phase_id <> 'inference' AND run.graph IS NOT NULL
            AND scenario.program_base.last_layers IS NULL,
            ', of all layers (--num-layers -1)', '')
        || packed_base_words(scenario) || repository_words(model, scenario) || embedder_words(model, scenario)
        || iif(trains_on_images(scenario), iif(adapts_tower(scenario), ', with adapters of what it sees with too',
            ', what it sees with frozen') || ', with Transformers 4.54 or later', '')
        || iif(is_expert_folded(scenario), ', expert_tensor_parallel_size 1', '')
        || iif(scenario.data_parallel > 1 AND scenario.expert_parallel > 1,
            coalesce(run.sharing.spread_experts_words, ''), ''));

CREATE OR REPLACE MACRO in_training(asked, value) AS iif(asked.is_inference, NULL, value);

-- Tokens that are in flight beside a window: of the steps that a server counts as being there at once, or, where it is
-- told how many tokens a step reads, those of one step more than there are stages (of one step in earlier releases).
CREATE OR REPLACE MACRO tokens_beyond_window_of(scenario, run, constants) AS run.tokens_beyond_window
    + coalesce(scenario.batched_tokens * iif(
        version_place(scenario.program_version, 2) < constants.vllm_in_flight_from_release, 1,
        scenario.pipeline_parallel + 1) - constants.vllm_batched_tokens, 0);

-- Gradients that stand from one step to the next, or while others are worked out.
CREATE OR REPLACE MACRO has_standing_gradients(scenario, run, rule) AS run.keeps_gradients
    OR coalesce(rule.keeps_gradients, false) OR scenario.gradient_accumulation > 1 OR scenario.pipeline_parallel > 1;

-- Bytes of an element that is computed with, and of a trained parameter.
CREATE OR REPLACE MACRO computed_bytes_each(scenario) AS
    iif(scenario.dtype_id = 'fp32' AND coalesce(scenario.precision, 'pure') <> 'amp'
        OR is_quantised_base(scenario) AND scenario.precision = 'mixed', 4, 2);
CREATE OR REPLACE MACRO asked_trained_bytes_each(scenario) AS CASE
    WHEN scenario.phase_id IN ('lora', 'qlora')
        THEN iif(scenario.precision = 'pure', iif(scenario.dtype_id = 'fp32', 4, 2),
            iif(scenario.phase_id = 'qlora', coalesce(scenario.packed_adapter_bytes, 4), 4))
    WHEN scenario.precision = 'amp' OR scenario.dtype_id = 'fp32' THEN 4
    ELSE 2
END;

-- A base that adapters find in fp32: QLoRA's program prepares it so, or its engine, a LoRA's is what was asked for.
-- (Autocast runs fused layer norms in fp32, and packed layers answer in what they are given: such a model flows in fp32
-- though nothing of it was prepared.)
CREATE OR REPLACE MACRO has_wide_base(asked, engine, model) AS CASE
    WHEN asked.phase_id = 'lora' THEN coalesce(asked.dtype_id = 'fp32', false)
    WHEN model.norm_form LIKE 'layer%' AND coalesce(engine.prepares_base, true) THEN true
    ELSE coalesce(asked.program_base.prepares_base, engine.prepares_base, true)
END;

-- (least and greatest pass over nulls)
CREATE OR REPLACE MACRO default_context_tokens(model, phase_id) AS
    least(iif(coalesce(phase_id, 'inference') = 'inference', 8192, 2048), model.max_context_tokens);

CREATE OR REPLACE MACRO scenarios(relation) AS TABLE
WITH asked_for AS (FROM with_program(relation)),
-- as typed values: words in lower case, numbers where they are whole; what is not has its reason and is counted as its
-- default
checked AS (SELECT asked, argument_reason(asked, constants) AS argument_reason
    FROM (SELECT asked_for AS asked FROM asked_for) CROSS JOIN constants_row),
typed AS (
    SELECT
        asked.model_id::VARCHAR AS model_asked, lower(asked.dtype_id::VARCHAR) AS dtype_id,
        lower(asked.phase_id::VARCHAR) AS phase_id,
        lower(asked.engine_id::VARCHAR) AS engine_id, lower(asked.kv_dtype_id::VARCHAR) AS kv_dtype_id,
        lower(asked.optimizer_id::VARCHAR) AS optimizer_id,
        lower(asked.precision::VARCHAR) AS precision, lower(asked.checkpointing::VARCHAR) AS checkpointing,
        lower(asked.lora_targets::VARCHAR) AS lora_targets, lower(asked.adapter::VARCHAR) AS adapter,
        lower(asked.attention::VARCHAR) AS attention,
        lower(asked.loss::VARCHAR) AS loss, lower(asked.sharding::VARCHAR) AS sharding, lower(asked.offload::VARCHAR)
            AS offload,
        asked_flag(asked.ema) AS ema, asked_flag(asked.sequence_parallel) AS sequence_parallel,
        asked_flag(asked.expandable_segments) AS segments_asked, asked_flag(asked.trains_embeddings) AS saves_asked,
        asked_flag(asked.text_only) AS text_only, asked_flag(asked.enforce_eager) AS enforce_eager, asked.program,
        asked.program_version::VARCHAR AS program_version,
        asked.program_numbers, asked.program_reason, asked.program_holds_for, asked.program_share, asked.program_base,
        iif(argument_reason IS NULL, asked_numbers(asked), NULL) AS numbers,
        iif(argument_reason IS NULL, NULL, asked_numbers(asked)) AS refused,
        iif(argument_reason IS NULL, try_cast(asked.audio_seconds AS DOUBLE), NULL) AS audio_seconds,
        iif(argument_reason IS NULL, try_cast(asked.lora_dropout AS DOUBLE), NULL) AS lora_dropout,
        argument_reason
    FROM checked
),
asked AS (
    SELECT
        typed.* EXCLUDE (model_asked, numbers, program_numbers, lora_dropout),
        coalesce(typed.lora_dropout, program_numbers.lora_dropout) AS lora_dropout,
        coalesce(typed.phase_id, 'inference') = 'inference' AS is_inference,
        coalesce(typed.phase_id IN ('lora', 'qlora'), false) AS is_adapter, coalesce(named.model_id, typed.model_asked)
            AS model_id,
        coalesce(numbers.context_tokens, program_numbers.context_tokens) AS context_tokens, numbers.max_context_tokens,
        coalesce(numbers.sequences, program_numbers.sequences) AS sequences, numbers.images, numbers.image_width,
        numbers.image_height,
        coalesce(numbers.lora_rank, program_numbers.lora_rank) AS lora_rank,
        coalesce(numbers.gradient_accumulation, program_numbers.gradient_accumulation) AS gradient_accumulation,
        numbers.optimizer_rank, numbers.reduce_bucket_elements, numbers.tensor_parallel, numbers.pipeline_parallel,
        numbers.context_parallel, numbers.expert_parallel, numbers.data_parallel,
        numbers.decode_context_parallel, numbers.batched_tokens, numbers.max_num_seqs, numbers.max_loras,
        numbers.max_lora_rank, numbers.micro_batches_in_flight,
        coalesce(numbers.gpu_count, greatest(coalesce(numbers.tensor_parallel, 1), 1)
            * greatest(coalesce(numbers.pipeline_parallel, 1), 1)
            * greatest(coalesce(numbers.context_parallel, 1), 1)
            * greatest(coalesce(numbers.data_parallel, 1), 1))::BIGINT AS gpu_count
    FROM typed LEFT JOIN model_name AS named ON named.name = lower(typed.model_asked)
),
scenario AS (
    SELECT
        asked.model_id, usual_dtype(asked.dtype_id, asked.phase_id) AS dtype_id,
        coalesce(asked.phase_id, 'inference') AS phase_id, asked.refused, coalesce(asked.engine_id,
            iif(asked.is_inference, dtype.engine_id, 'transformers')) AS engine_id, asked.argument_reason,
        coalesce(asked.context_tokens, default_context_tokens(model, asked.phase_id))::BIGINT AS context_tokens,
        asked.max_context_tokens::BIGINT AS max_context_tokens, coalesce(asked.sequences, 1)::BIGINT AS sequences,
        iif(asked.is_inference, images_of(model, asked.images), asked.images)::BIGINT AS images,
        asked.image_width::BIGINT AS image_width, asked.image_height::BIGINT AS image_height, asked.audio_seconds,
        iif(asked.is_inference, usual_kv_dtype(asked, model, engine.engine_id), NULL) AS kv_dtype_id,
        in_training(asked, coalesce(asked.checkpointing, 'none')) AS checkpointing,
        iif(asked.is_inference, NULL, coalesce(asked.optimizer_id, 'adamw')) AS optimizer_id, iif(asked.is_inference,
            NULL, coalesce(asked.precision, iif(dtype.has_packed_experts AND coalesce(engine.prepares_base, true),
            'pure', usual_precision(asked.phase_id, asked.dtype_id)))) AS precision,
        has_wide_base(asked, engine, model) AS prepares_base, asked.program_base.adapter_bytes AS packed_adapter_bytes,
        asked.program_base.balance_bytes AS balance_bytes_per_expert, asked.program_base.packed_base AS packed_base,
        in_training(asked, coalesce(asked.segments_asked, engine.expandable_segments, false)) AS expandable_segments,
        iif(asked.is_adapter, coalesce(asked.lora_rank, 16), NULL)::BIGINT AS lora_rank,
        iif(asked.is_adapter, coalesce(asked.lora_targets, iif(dtype.has_packed_experts, 'attention-experts',
            'all-linear')), NULL) AS lora_targets, coalesce(dtype.has_packed_experts, false) AS has_packed_experts,
        iif(asked.is_adapter, coalesce(asked.lora_dropout, 0), NULL)::DOUBLE AS lora_dropout, iif(asked.is_adapter,
            coalesce(asked.saves_asked, false), NULL) AS trains_embeddings, asked.adapter AS adapter_asked,
        iif(asked.is_adapter, coalesce(asked.adapter, 'lora'), NULL) AS adapter,
        iif(asked.is_inference, NULL, coalesce(asked.gradient_accumulation, 1))::BIGINT AS gradient_accumulation,
        in_training(asked, coalesce(asked.optimizer_rank, 128))::BIGINT AS optimizer_rank, asked.reduce_bucket_elements,
        in_training(asked, coalesce(asked.ema, false)) AS ema, in_training(asked, coalesce(asked.loss, 'full')) AS loss,
        coalesce(sharding_asked(asked), usual_sharding(asked.gpu_count, asked.tensor_parallel, asked.pipeline_parallel,
            asked.is_inference, engine.parallelism)) AS sharding, asked.tensor_parallel AS tensor_asked,
        asked.pipeline_parallel AS pipeline_asked, asked.program_base,
        -- formulas divide by gpu_count and degrees; what was asked is answered for below
        greatest(asked.gpu_count, 1)::BIGINT AS gpu_count, asked.gpu_count AS gpu_count_asked,
        degree_asked(asked.context_parallel) AS context_parallel, asked.data_parallel AS data_asked,
        degree_asked(asked.expert_parallel) AS expert_parallel, asked.batched_tokens, asked.max_num_seqs,
        degree_asked(asked.decode_context_parallel) AS decode_context_parallel, asked.text_only, asked.enforce_eager,
        slots_asked(asked) AS max_loras, slot_rank_asked(asked) AS max_lora_rank,
        asked.micro_batches_in_flight AS flights_asked, asked.sequence_parallel AS residual_asked, least(
            asked.tensor_parallel, asked.pipeline_parallel, asked.context_parallel, asked.expert_parallel,
            asked.data_parallel, asked.decode_context_parallel, asked.micro_batches_in_flight) AS least_degree,
        coalesce(asked.attention, 'flash') AS attention, coalesce(asked.offload, 'none') AS offload, asked.program,
        asked.program_version, asked.program_reason, asked.program_holds_for, asked.program_share AS card_share
    FROM asked
    LEFT JOIN dtype ON dtype.dtype_id = usual_dtype(asked.dtype_id, asked.phase_id)
    LEFT JOIN engine ON engine.engine_id = coalesce(asked.engine_id, dtype.engine_id)
    LEFT JOIN shape_row ON shape_row.model_id = asked.model_id
),
-- (weights that are cast beside fp32 masters leave autocast nothing to do: amp is mixed there, in 16 bits; so is a
-- frozen base in fp32, of which DeepSpeed leaves no more, and FSDP2 the shards)
casting AS (
    SELECT scenario.* REPLACE (iif(is_cast, 'mixed', scenario.precision) AS precision,
        iif((is_cast OR is_base_cast) AND scenario.dtype_id = 'fp32', 'bf16', scenario.dtype_id) AS dtype_id,
        scenario.prepares_base AND NOT is_base_cast AS prepares_base),
        is_base_cast AND has_master_weights AS has_wide_shards
    FROM (
        SELECT scenario AS scenario, coalesce(rule.casts_weights AND scenario.precision = 'amp'
            AND scenario.phase_id IN ('pretrain', 'full-finetune'), false) AS is_cast,
            coalesce(rule.casts_weights AND scenario.precision = 'amp' AND scenario.phase_id = 'lora'
                AND scenario.dtype_id = 'fp32', false) AS is_base_cast,
            coalesce(rule.has_master_weights, false) AS has_master_weights
        FROM scenario
        LEFT JOIN sharding_rule AS rule ON rule.engine_id = scenario.engine_id AND rule.sharding = scenario.sharding
    )
),
placed AS (
    SELECT scenario.*, servers_asked(scenario, constants) AS servers FROM (SELECT casting AS scenario FROM casting)
        CROSS JOIN constants_row
),
degree AS (
    SELECT
        * EXCLUDE (servers),
        greatest(coalesce(tensor_asked, iif(sharding = 'tp',
            gpu_count // (greatest(coalesce(pipeline_asked, servers), 1) * context_parallel
                * greatest(coalesce(data_asked, 1), 1)), 1)), 1)::BIGINT
                AS tensor_parallel,
        greatest(coalesce(pipeline_asked, iif(sharding = 'pp',
            gpu_count // (greatest(coalesce(tensor_asked, 1), 1) * context_parallel
                * greatest(coalesce(data_asked, 1), 1)), servers)), 1)::BIGINT
                AS pipeline_parallel
    FROM placed
),
split AS (
    SELECT
        scenario.*,
        greatest(scenario.gpu_count // (scenario.tensor_parallel * scenario.pipeline_parallel
            * scenario.context_parallel), 1) AS data_parallel,
        greatest(scenario.gpu_count // (scenario.tensor_parallel * scenario.pipeline_parallel), 1) AS shard_count,
        -- what a data-parallel rank of inference serves, and the GPUs that divide the inside of one routed expert
        iif(scenario.phase_id = 'inference', ceil(scenario.sequences / greatest(coalesce(scenario.data_asked, 1), 1)),
            scenario.sequences)::BIGINT AS rank_sequences,
        iif(is_spread(scenario), greatest(scenario.gpu_count // scenario.expert_parallel, 1),
            scenario.tensor_parallel) AS expert_tensor_parallel,
        greatest(coalesce(scenario.flights_asked, scenario.pipeline_parallel), 1)::BIGINT AS micro_batches_in_flight
    FROM (SELECT degree AS scenario FROM degree)
),
-- the picture, in steps, so that none is worked out twice
pictured AS (
    SELECT
        scenario.*, iif(scenario.images > 0, model.tower, NULL) AS tower,
        iif(scenario.images > 0, picture_side(model.tower, iif(scenario.image_width < 1, NULL, scenario.image_width),
            constants), NULL) AS picture_width,
        iif(scenario.images > 0, picture_side(model.tower, iif(scenario.image_height < 1, NULL, scenario.image_height),
            constants), NULL) AS picture_height,
        iif(scenario.images > 0, token_side(model.tower), NULL) AS token_pixels
    FROM (SELECT split AS scenario FROM split)
    LEFT JOIN shape_row ON shape_row.model_id = scenario.model_id
    CROSS JOIN constants_row
),
arranged AS (SELECT *, grid_rank(tower.processor, picture_width, picture_height, token_pixels) AS grid_rank
    FROM pictured),
in_rows AS (SELECT *, image_rows(tower, tower.processor, picture_width, picture_height, token_pixels, grid_rank)
    AS picture_rows FROM arranged),
in_columns AS (
    SELECT * EXCLUDE (tower), image_columns(tower, tower.processor, picture_width, picture_height, token_pixels,
        grid_rank, picture_rows) AS picture_columns
    FROM in_rows
),
counted AS (
    SELECT scenario.*, tower_tokens(model.tower, scenario, constants) AS tower_tokens,
        prompt_image_tokens(model.tower, scenario) AS prompt_image_tokens,
        prompt_sound_tokens(model.tower, scenario, constants) AS prompt_sound_tokens
    FROM (SELECT in_columns AS scenario FROM in_columns)
    LEFT JOIN shape_row ON shape_row.model_id = scenario.model_id
    CROSS JOIN constants_row
),
resolved AS (
    SELECT
        scenario.* EXCLUDE (prompt_image_tokens, prompt_sound_tokens), kv.block_elements AS kv_block_elements,
        rule.scheme, rule.has_master_weights, rule.is_root_whole, rule.reduce_bytes, rule.bucket_count,
        coalesce(scenario.reduce_bucket_elements, rule.bucket_elements) AS bucket_elements, rule.live_elements,
        rule.step_gradient_bytes, rule.can_offload_optimizer, rule.can_offload_all, rule.keeps_quantisation_states,
        rule.loads_packed_whole, expert_padding(rule, model, scenario) AS expert_padding, expert_ranks(scenario)
            AS expert_ranks, coalesce(rule.has_fused_kernels, false) AS has_fused_kernels,
        coalesce(scenario.residual_asked, rule.is_sequence_parallel, false) AS is_sequence_parallel,
        scenario.phase_id IN ('lora', 'qlora') AS is_adapter, computed_bytes_each(scenario) AS compute_bytes,
        coalesce(scenario.lora_dropout > 0, false) AND NOT is_prompted(scenario) AS has_adapter_dropout,
        coalesce(stepping.steps_in_backward, false) AS steps_in_backward, run.fused_loss, run.offloads_checkpoints,
        iif(scenario.phase_id = 'inference', kv.element_bits, 0) AS kv_element_bits, run.most_gpu_count,
        takes_kv_dtype(kv, model, scenario) AS takes_kv_dtype, run.process_context_bytes AS engine_context_bytes,
        coalesce(run.keeps_logits, false) AS keeps_logits, coalesce(run.repeats_keys, false) AS repeats_keys,
        asked_trained_bytes_each(scenario) AS trained_bytes_each, coalesce(run.chunks_logits, false) AS chunks_logits,
        run.keeps_alternate_products, run.joins_projections, run.unties_head, run.loss_chunk_tokens, run.window_use,
        run.packs_head, run.casts_unpacked, run.keeps_unpacked, run.keeps_packed_inputs, run.norms_embedding,
        tokens_beyond_window_of(scenario, run, constants) AS tokens_beyond_window, run.trained_model_types, run.graph,
        run.norm_form AS engine_norm_form, run.cell_tokens, run.sharing, run.logits_of, run.inputs_on_host,
        run.reads_prompt, run.rotations_in, run.copies_tied_head, run.extra_window_cells, run.several_gpus_reason,
        run.encoder_reason, run.inference_error_band, run.training_error_band, run.unknown_reason AS engine_reason,
        run.gradient_bytes AS engine_gradient_bytes, kernel.unpacked_bytes_each AS kernel_unpacked_bytes,
        kernel.block_tensors AS kernel_block_tensors, shares_adapters(model, scenario, run) AS has_shared_adapters,
        has_standing_gradients(scenario, run, rule) AS has_standing_gradients, run.ways, run.unpacks_by_matrix,
        iif(stepping.steps_in_backward, 4 * stepping.step_largest_fp32_copies, 0) AS stepping_bytes_each,
        has_adapted_experts(model, scenario, run) AS has_adapted_experts, constants.unsloth_input_bytes_least,
        answers_for(model, scenario, run) AS holds_for, constants.unsloth_chunk_rows_least, constants.trl_tile_columns,
        constants.unsloth_chunk_bytes_most, constants.unsloth_chunk_rows_most, constants.unsloth_inputs_on_card,
        constants.unsloth_chunk_logits, constants.unsloth_whole_tokens, constants.flex_mask_bytes_each,
        constants.trl_chunk_tokens, constants.trl_block_tokens, constants.trl_tile_tokens, constants.loss_chunks,
        iif(model.tower.reader = 'cross-attention', scenario.tower_tokens, scenario.context_tokens) AS cross_tokens,
        input_reason(model, scenario, engine_image_tokens(model.tower, scenario, run),
            scenario.prompt_sound_tokens, run) AS input_reason
    FROM (SELECT counted AS scenario FROM counted)
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = scenario.kv_dtype_id
    LEFT JOIN engine_row AS run ON run.engine_id = scenario.engine_id
    LEFT JOIN optimizer AS stepping ON stepping.optimizer_id = scenario.optimizer_id
    LEFT JOIN packed_kernel AS kernel ON kernel.dtype_id = scenario.dtype_id AND scenario.phase_id = 'inference'
        AND step_tokens(scenario) >= kernel.from_tokens AND coalesce(step_tokens(scenario) < kernel.below_tokens, true)
    LEFT JOIN shape_row ON shape_row.model_id = scenario.model_id
    LEFT JOIN sharding_rule AS rule ON rule.engine_id = scenario.engine_id AND rule.sharding = scenario.sharding
        AND scenario.phase_id <> 'inference'
    CROSS JOIN constants_row
)
SELECT
    scenario.*, weight_shards(scenario) AS weight_shards, gradient_shards(scenario) AS gradient_shards,
    optimizer_shards(scenario) AS optimizer_shards,
    are_masters_weights(scenario) AS are_masters_weights, gradient_bytes_each(scenario) AS gradient_bytes_each,
    made_bytes_each(scenario) AS made_bytes_each,
    reduce_bytes_each(scenario) AS reduce_bytes_each, unit_elements(model, scenario) AS unit_elements,
    trained_elements(model, scenario) AS trained_elements,
    -- (llama.cpp counts the head as a layer, so that the first GPU has one more than the last, which has the head)
    coalesce(least(ceil((model.layer_count + iif(scenario.reads_prompt = 'compute-buffer', 1, 0))
        / scenario.pipeline_parallel), model.layer_count) / greatest(model.layer_count, 1), 1) AS stage_share,
    has_fused_sinks(model, scenario.engine_id) AS has_fused_sinks, runs_own_blocks(model, scenario) AS has_own_blocks,
    constants.unsloth_rotation_step, constants.unsloth_padded_rows,
    sharding_reason(model, scenario) AS sharding_reason
FROM (SELECT resolved AS scenario FROM resolved) LEFT JOIN shape_row ON shape_row.model_id = scenario.model_id
CROSS JOIN constants_row;
