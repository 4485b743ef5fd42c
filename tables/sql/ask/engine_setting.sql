-- What an engine has to be told for a scenario that fits, where its defaults leave too little.
--
-- Units: bytes per GPU. Source: constant.csv (vllm_default_share, sglang_reserve_* and their like), vllm-state-blocks,
-- sglang-state-slots, vllm-share-free, llama-cpp-slots, mlx-lm-server; kv_dtype.
-- Not covered: settings of other engines.

-- What stands outside a server's share on each card before it starts: the process's context, and communication.
CREATE OR REPLACE MACRO apart_bytes(gpu_count, constants) AS constants.process_context_bytes
    + iif(gpu_count > 1, constants.vllm_non_torch_parallel_bytes, 0)
    + iif(gpu_count >= 4, constants.vllm_non_torch_parallel_spread_bytes, 0);

-- The share that a server takes where nobody says: of the version that was asked for, else of the engine. It is of the
-- whole card.
CREATE OR REPLACE MACRO default_share(footprint, constants) AS
    {'vllm_default_share': coalesce(footprint.card_share, constants.vllm_default_share)};
CREATE OR REPLACE MACRO share_of_card(footprint, whole, constants) AS {
    'vllm_default_share': default_share(footprint, constants).vllm_default_share, 'whole': whole,
    'apart': apart_bytes(footprint.gpu_count, constants)
};

-- A server that takes a share of the card needs to be allowed what the scenario needs, and of its band as much as
-- leaves half of the rest free (for what it holds beside its share); where its default is less it refuses to start. So
-- it does where the share is more than what is free by then.
CREATE OR REPLACE MACRO share_held(total, need, capacity) AS greatest(total, least(need, (total + capacity) / 2));
CREATE OR REPLACE MACRO share_most(capacity, share) AS floor(100 * (capacity - share.apart) / share.whole) / 100;
CREATE OR REPLACE MACRO share_told(held, most, share) AS
    iif(held > share.vllm_default_share * share.whole OR share.vllm_default_share > most,
        least(greatest(ceil(100 * held / share.whole) / 100, share.vllm_default_share), most), NULL);
CREATE OR REPLACE MACRO share_needed(engine_id, total, need, capacity, share) AS
    iif(starts_with(engine_id, 'vllm') AND total <= capacity,
        '--gpu-memory-utilization '
            || printf('%.2f', share_told(share_held(total, need, capacity), share_most(capacity, share), share)), NULL);

-- A server's most requests are those of one data-parallel rank.
CREATE OR REPLACE MACRO sequences_of_rank(footprint) AS
    ceil(footprint.sequences / iif(footprint.phase_id = 'inference', footprint.data_parallel, 1));

-- How the cards are shared, where by data-parallel ranks or experts (data_parallel_rule).
CREATE OR REPLACE MACRO filled_in(setting, footprint) AS replace(replace(replace(replace(setting,
    '{data_parallel}', footprint.data_parallel::VARCHAR), '{tensor_parallel}', footprint.tensor_parallel::VARCHAR),
    '{expert_parallel}', footprint.expert_parallel::VARCHAR), '{gpu_count}', footprint.gpu_count::VARCHAR);
CREATE OR REPLACE MACRO context_filled_in(setting, footprint) AS
    replace(setting, '{decode_context_parallel}', footprint.decode_context_parallel::VARCHAR);
CREATE OR REPLACE MACRO spread_setting(footprint) AS iif(footprint.phase_id = 'inference', nullif(concat_ws(' ',
    iif(footprint.data_parallel > 1, filled_in(footprint.data_setting, footprint), NULL),
    iif(footprint.expert_parallel > 1, filled_in(footprint.expert_setting, footprint), NULL),
    iif(footprint.decode_context_parallel > 1, context_filled_in(footprint.context_setting, footprint), NULL)), ''),
    NULL);

-- vLLM runs 1024 requests by itself on large cards, but on A100, and sets their logits aside.
CREATE OR REPLACE MACRO vllm_requests(gpu_name, gpu_gib, constants) AS
    iif(gpu_gib >= constants.vllm_large_card_gib AND gpu_name NOT LIKE '%A100%', constants.vllm_large_card_sequences,
        constants.vllm_default_sequences);

-- Where the logits of so many do not fit, those of the default of small cards are counted. (At most these come to what
-- is counted: beside the sampler a mixture of experts holds its work space, and a wide forward may hold more than it.)
CREATE OR REPLACE MACRO requests_by_logits(footprint, vocab_size, usual, capacity, constants) AS iif(
    sequences_of_rank(footprint) <= constants.vllm_default_sequences AND footprint.total_bytes
        + logit_bytes_vllm(footprint, constants) * (usual - constants.vllm_default_sequences) * vocab_size
            > constants.vllm_default_share * capacity, constants.vllm_default_sequences, usual);

-- It does not start where its cache has fewer blocks than that and a block is to hold a recurrent state (max_num_seqs
-- exceeds available Mamba cache blocks). How many layers share a block depends on how it groups them: as many blocks as
-- whole states find room beside weights and activations are there in any case. (It is its graphs that take a state for
-- each request: run eagerly it starts.)
CREATE OR REPLACE MACRO cache_room(footprint, capacity, constants) AS constants.vllm_default_share * capacity
    - needed(footprint.total_bytes - footprint.kv_cache_bytes - footprint.kv_padding_bytes - footprint.state_bytes,
        footprint.error_band);
CREATE OR REPLACE MACRO requests_by_states(footprint, usual, capacity, constants) AS iif(
    coalesce(footprint.state_bytes, 0) = 0 OR coalesce(footprint.enforce_eager, false), usual,
    greatest(sequences_of_rank(footprint),
        floor(sequences_of_rank(footprint) * cache_room(footprint, capacity, constants) / footprint.state_bytes)));

CREATE OR REPLACE MACRO requests_told(usual, by_logits, by_states) AS iif(least(by_logits, by_states) < usual,
    '--max-num-seqs ' || least(by_logits, by_states)::BIGINT, NULL);

-- Where somebody says how many they are, the figures are of that and it is told so, or fewer where no more states fit.
CREATE OR REPLACE MACRO requests_needed(footprint, usual, capacity, constants) AS CASE
    WHEN footprint.engine_id <> 'vllm' OR footprint.total_bytes > capacity THEN NULL
    WHEN footprint.max_num_seqs IS NOT NULL THEN requests_told(footprint.max_num_seqs + 1, footprint.max_num_seqs,
        requests_by_states(footprint, footprint.max_num_seqs, capacity, constants))
    ELSE requests_told(usual, requests_by_logits(footprint, footprint.vocab_size, usual, capacity, constants),
        requests_by_states(footprint, usual, capacity, constants))
END;

-- vLLM reads 2048 tokens at a time on small cards, 8192 on large ones but on A100, 16384 on the largest.
CREATE OR REPLACE MACRO vllm_read_tokens(gpu_name, gpu_gib, constants) AS CASE
    WHEN gpu_gib >= constants.vllm_largest_card_gib THEN constants.vllm_largest_card_batched_tokens
    WHEN gpu_gib >= constants.vllm_large_card_gib AND gpu_name NOT LIKE '%A100%' THEN constants.vllm_batched_tokens
    ELSE constants.vllm_small_card_batched_tokens
END;

-- Footprints count 8192 tokens read at a time, and 8192 in the cache of a window besides: a cache of windows holds
-- those of two steps at once, of one more than there are stages. Activations and cache bound what that takes more.
CREATE OR REPLACE MACRO read_beyond_bytes(footprint, read_tokens, constants) AS iif(
    footprint.engine_id = 'vllm',
    greatest(0, read_tokens / constants.vllm_batched_tokens - 1) * footprint.activations_bytes
        + iif(footprint.has_windows AND footprint.context_tokens > constants.vllm_batched_tokens,
            footprint.kv_cache_bytes + footprint.kv_padding_bytes, 0)
            * greatest(0, read_tokens * (footprint.pipeline_parallel + 1) / constants.vllm_batched_tokens - 1), 0);

-- Where somebody says how many they are, the figures are of that and the server is told so.
CREATE OR REPLACE MACRO tokens_needed(footprint, beyond, capacity, constants) AS '--max-num-batched-tokens ' || CASE
    WHEN footprint.batched_tokens IS NOT NULL THEN footprint.batched_tokens
    WHEN beyond > 0 AND footprint.total_bytes + beyond > constants.vllm_default_share * capacity
        THEN (constants.vllm_batched_tokens // iif(footprint.has_windows, footprint.pipeline_parallel + 1, 1))::BIGINT
END;

-- SGLang leaves a part of the card free by its size, and up to a quarter more for models that see: where weights and
-- cache need more it has to be told.
CREATE OR REPLACE MACRO sglang_reserve_mib(gpu_gib, constants) AS CASE
    WHEN gpu_gib < constants.sglang_small_card_gib THEN constants.sglang_reserve_small_mib
    WHEN gpu_gib < constants.sglang_middle_card_gib THEN constants.sglang_reserve_middle_mib
    WHEN gpu_gib < constants.sglang_large_card_gib THEN constants.sglang_reserve_large_mib
    ELSE constants.sglang_reserve_largest_mib
END;
CREATE OR REPLACE MACRO sglang_reserve_bytes(reserve_mib, gpu_count, constants) AS
    1048576 * (constants.sglang_reserve_gpu_mib * gpu_count + reserve_mib);

-- What servers do by the card, beside what is asked of a card: by gpu_id, in one column.
-- (programs_elsewhere: rows of programs that say nothing of it.)
CREATE OR REPLACE TABLE card_row AS
WITH elsewhere AS (
    SELECT gpu.gpu_id, list({'program_id': row.program_id, 'from_number': row.from_number,
        'below_number': row.below_number, 'reason': 'what ' || row.holds_for || ' holds is known'
            || row.capability_words || ' alone'} ORDER BY row.from_number) AS programs
    FROM gpu JOIN program_row AS row
        ON NOT coalesce(try_cast(gpu.compute_capability AS DOUBLE) >= row.least_capability, false)
    WHERE row.least_capability IS NOT NULL AND row.phase_id = 'inference'
    GROUP BY gpu.gpu_id
)
SELECT gpu.gpu_id, {
    'gpu_id': gpu.gpu_id, 'card_kind': card_kind(gpu), 'vendor': gpu.vendor,
    'compute_capability': gpu.compute_capability,
    'capacity_bytes': gpu.capacity_bytes, 'whole_bytes': gpu.whole_bytes, 'raisable_bytes': gpu.raisable_bytes,
    'vllm_requests': vllm_requests(gpu.name, gpu.memory_gib_nominal, constants),
    'vllm_read_tokens': vllm_read_tokens(gpu.name, gpu.memory_gib_nominal, constants),
    'sglang_reserve_mib': sglang_reserve_mib(gpu.memory_gib_nominal, constants),
    'programs_elsewhere': elsewhere.programs
} AS card
FROM gpu CROSS JOIN constants_row LEFT JOIN elsewhere ON elsewhere.gpu_id = gpu.gpu_id;

-- The same of a card of which other programs hold a part.
CREATE OR REPLACE MACRO card_with(card, capacity_bytes) AS {
    'capacity_bytes': capacity_bytes, 'whole_bytes': card.whole_bytes, 'vllm_requests': card.vllm_requests,
    'vllm_read_tokens': card.vllm_read_tokens, 'sglang_reserve_mib': card.sglang_reserve_mib
};

-- What it gives weights, caches and states together by itself, beside its context and the communication buffers.
CREATE OR REPLACE MACRO static_bytes(footprint, capacity, reserve_mib, communication, constants) AS
    (capacity - sglang_reserve_bytes(reserve_mib, footprint.gpu_count, constants))
        * iif(coalesce(footprint.sees, false), constants.sglang_vision_share, 1)
    - constants.process_context_bytes - communication;

-- The share is of what is free before it loads: without the process's context and the communication buffers. (Of its
-- band it has as much as leaves half of the rest free: what the weights take more is not there for the cache.)
CREATE OR REPLACE MACRO static_share_held(footprint, held, capacity) AS
    share_held(held, needed(held, footprint.error_band), capacity - footprint.total_bytes + held);
CREATE OR REPLACE MACRO static_share_needed(footprint, held, capacity, reserve_mib, communication, constants) AS iif(
    footprint.engine_id = 'sglang' AND footprint.total_bytes <= capacity
        -- (of data-parallel attention it leaves more by itself: there it is told)
        AND iif(footprint.data_parallel > 1, capacity, held)
            > static_bytes(footprint, capacity, reserve_mib, communication, constants),
    '--mem-fraction-static ' || printf('%.3f', ceil(1000 * static_share_held(footprint, held, capacity)
        / (capacity - constants.process_context_bytes - communication)) / 1000), NULL);

-- Of what the weights leave it gives states 0.9 ÷ 1.9 and the cache the rest, whatever either needs: where one of them
-- then has too little it is told how many states there are.
CREATE OR REPLACE MACRO divided_bytes(footprint, constants) AS (1 + constants.sglang_state_ratio)
    * greatest(footprint.kv_cache_bytes + footprint.kv_padding_bytes,
        footprint.state_bytes / constants.sglang_state_ratio);
CREATE OR REPLACE MACRO states_needed(footprint, capacity, reserve_mib, communication, constants) AS iif(
    footprint.engine_id = 'sglang' AND footprint.total_bytes <= capacity AND coalesce(footprint.state_bytes, 0) > 0
        AND footprint.weights_bytes + divided_bytes(footprint, constants)
            > static_bytes(footprint, capacity, reserve_mib, communication, constants),
    '--max-mamba-cache-size '
        || ((state_slots('sglang', sequences_of_rank(footprint)) - state_slots('sglang', 0))
            * iif(footprint.phase_id = 'inference', footprint.data_parallel, 1))::BIGINT, NULL);

-- vLLM sets memory aside for the largest image or video that a model can read, unless it is told that there are none
-- (vllm-project/vllm PR 11210). What llama.cpp sets aside for a tower is left out of its figures where it has not been
-- counted, so that the tower must be, too.
CREATE OR REPLACE MACRO inputs_needed(footprint) AS CASE
    WHEN starts_with(footprint.engine_id, 'vllm') AND coalesce(footprint.sees, false)
        THEN '--limit-mm-per-prompt ''{"image": ' || coalesce(footprint.images, 0) || ', "video": 0}'''
    WHEN footprint.text_only THEN '--no-mmproj'
    WHEN footprint.engine_id = 'llama.cpp' AND footprint.phase_id = 'inference' AND NOT footprint.has_counted_tower
        AND coalesce(footprint.program, 'llama.cpp') = 'llama.cpp' THEN '--no-mmproj'
END;

-- llama-server opens four slots by itself, which share one cache of whole contexts: but each has a window and recurrent
-- states of its own. (LM Studio opens as many and calls them predictions; Ollama says how many by itself, KoboldCpp and
-- llama-cpp-python open one.)
CREATE OR REPLACE MACRO slots_needed(footprint) AS iif(footprint.engine_id = 'llama.cpp'
    AND footprint.phase_id = 'inference' AND (footprint.has_windows OR coalesce(footprint.state_bytes, 0) > 0),
    CASE coalesce(footprint.program, 'llama.cpp')
        WHEN 'llama.cpp' THEN '--parallel '
        WHEN 'lm-studio' THEN 'Max Concurrent Predictions '
    END || footprint.sequences, NULL);

-- mlx_lm.server reads 8 prompts and writes 32 answers together by itself, and reads one on that a client without a
-- stream gave up: of prompts as long as the context each has a cache and scores of its own.
CREATE OR REPLACE MACRO prompts_needed(footprint, constants) AS iif(
    footprint.engine_id = 'mlx-lm' AND footprint.phase_id = 'inference',
    '--prompt-concurrency ' || least(footprint.sequences, constants.mlx_prefill_sequences)::BIGINT
        || ' --decode-concurrency ' || footprint.sequences, NULL);

-- A cache in fewer bits than a server's default: untold it takes the default, which is more. Programs that run an
-- engine within have words of their own for it.
CREATE OR REPLACE MACRO said_by_program(settings, program) AS nullif(replace(
    list_filter(string_split(settings, '; '), lambda one: starts_with(one, program || ': '))[1], program || ': ', ''),
    '');
CREATE OR REPLACE MACRO cache_setting(kv, program) AS
    coalesce(said_by_program(kv.program_settings, program), kv.setting);

-- No graphs and no compiling, where that is what was counted: they are slower, and no default.
CREATE OR REPLACE MACRO eager_needed(footprint) AS CASE
    WHEN NOT coalesce(footprint.enforce_eager, false) THEN NULL
    WHEN footprint.engine_id = 'sglang' THEN '--disable-cuda-graph'
    ELSE '--enforce-eager'
END;

-- Slots for adapters, of the size that was counted.
CREATE OR REPLACE MACRO adapters_needed(footprint) AS iif(footprint.max_loras IS NULL, NULL,
    '--enable-lora --max-loras ' || footprint.max_loras || ' --max-lora-rank ' || footprint.max_lora_rank);

-- All of these: footprint with has_windows, sees, has_counted_tower and vocab_size of its model beside, data_setting,
-- expert_setting and context_setting of its engine (data_parallel_rule), kv_setting of its cache (cache_setting), card
-- as card_row has it.
CREATE OR REPLACE MACRO engine_setting(footprint, card, constants) AS iif(footprint.total_bytes IS NULL, NULL,
    nullif(concat_ws(' ', spread_setting(footprint),
        share_needed(footprint.engine_id, footprint.total_bytes,
            needed(footprint.total_bytes, footprint.error_band), card.capacity_bytes,
            share_of_card(footprint, card.whole_bytes, constants)),
        requests_needed(footprint, card.vllm_requests, card.capacity_bytes, constants),
        tokens_needed(footprint, read_beyond_bytes(footprint, card.vllm_read_tokens, constants), card.capacity_bytes,
            constants),
        static_share_needed(footprint, footprint.weights_bytes + footprint.kv_cache_bytes
            + footprint.kv_padding_bytes + footprint.state_bytes, card.capacity_bytes, card.sglang_reserve_mib,
            communication_bytes(footprint, constants), constants),
        states_needed(footprint, card.capacity_bytes, card.sglang_reserve_mib,
            communication_bytes(footprint, constants), constants),
        eager_needed(footprint), adapters_needed(footprint), footprint.kv_setting, slots_needed(footprint),
        prompts_needed(footprint, constants), inputs_needed(footprint)), ''));
