-- What an engine has to be told for a scenario that fits, where its defaults leave too little.
--
-- Units: bytes per GPU. Source: constant.csv (vllm_default_share, sglang_reserve_* and their like). Not covered: settings of other engines.

-- A server that takes a share of the card needs to be allowed what the scenario needs; where its default is less it refuses to start.
CREATE OR REPLACE MACRO share_needed(engine_id, total, capacity, k) AS iif(
    starts_with(engine_id, 'vllm') AND total <= capacity AND total > k.vllm_default_share * capacity,
    '--gpu-memory-utilization ' || printf('%.2f', least(ceil(100 * total / capacity) / 100, 0.99)), NULL);

-- vLLM runs 1024 requests by itself on large cards, but on A100, and sets their logits aside.
CREATE OR REPLACE MACRO requests_needed(engine_id, sequences, total, activations, vocab_size, gpu_name, gpu_gib, capacity, k) AS iif(
    engine_id = 'vllm' AND sequences <= k.vllm_default_sequences AND gpu_gib >= k.vllm_large_card_gib AND gpu_name NOT LIKE '%A100%'
        AND total + greatest(0, k.vllm_sampler_bytes_per_logit * k.vllm_large_card_sequences * vocab_size - activations)
            > k.vllm_default_share * capacity,
    '--max-num-seqs ' || k.vllm_default_sequences::BIGINT, NULL);

-- SGLang leaves a part of the card free by its size, and up to a quarter more for models that see: where weights and cache need more it
-- has to be told.
CREATE OR REPLACE MACRO sglang_reserve_bytes(gpu_gib, gpu_count, k) AS 1048576 * (k.sglang_reserve_gpu_mib * gpu_count + CASE
    WHEN gpu_gib < k.sglang_small_card_gib THEN k.sglang_reserve_small_mib
    WHEN gpu_gib < k.sglang_middle_card_gib THEN k.sglang_reserve_middle_mib
    WHEN gpu_gib < k.sglang_large_card_gib THEN k.sglang_reserve_large_mib
    ELSE k.sglang_reserve_largest_mib
END);

-- The share is of what is free before it loads: without the process's context and the communication buffers.
CREATE OR REPLACE MACRO static_share_needed(engine_id, held, total, capacity, gpu_gib, gpu_count, sees, communication, k) AS iif(
    engine_id = 'sglang' AND total <= capacity
        AND held + k.process_context_bytes + communication
            > (capacity - sglang_reserve_bytes(gpu_gib, gpu_count, k)) * iif(coalesce(sees, false), k.sglang_vision_share, 1),
    '--mem-fraction-static ' || printf('%.3f', ceil(1000 * held / (capacity - k.process_context_bytes - communication)) / 1000), NULL);

-- vLLM sets memory aside for the largest image or video that a model can read, unless it is told that there are none (vllm-project/vllm PR 11210).
CREATE OR REPLACE MACRO inputs_needed(engine_id, images, sees) AS iif(starts_with(engine_id, 'vllm') AND coalesce(sees, false),
    '--limit-mm-per-prompt ''{"image": ' || coalesce(images, 0) || ', "video": 0}''', NULL);
