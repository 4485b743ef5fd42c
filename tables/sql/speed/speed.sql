-- How fast a card can be at most: bounds, not predictions.
--
--   decode_most  = sequences × bandwidth ÷ (read_bytes ÷ cards that divide layers + cache)   tokens a second of all
--   prefill_most = cards × rate ÷ (2 × token_elements)   tokens a second of one prompt
--
-- To write a token, every weight that it passes and the whole cache is read once from the card's memory: no card is
-- faster than that. With several sequences the weights are read once for all of them, of routed experts no fewer than
-- one token's. Tensor parallel reads on all cards at once, layers that are split run one after another, whoever waits.
-- A prompt is multiplied with every weight that its tokens pass, two operations for each; the rate is that of the
-- narrowest numbers that the format's kernels multiply (dtype.product_bits).
--
-- decode_share_low, decode_share_high: how much of the bound llama.cpp was seen to reach with one user on one card, the
-- middle half of the runs of gpu-benchmarks-llama in serving_run; none of all runs is above its bound.
-- Units: tokens per second; bytes; GB/s is 10^9, TFLOPS 10^12 a second. Source: gpu.csv (data sheets),
-- llm-bandwidth-bound for the rule, gpu-benchmarks-llama for the share.
-- Not covered: speculative decoding and prediction layers, which write several tokens for one reading; what stays in
-- the card's own cache, as models of some hundred megabytes may; products that are summed in 16 bits, up to twice as
-- fast on GeForce; layers on the CPU; attention's own operations, which only lower the bound.

-- (of a pool of states those of the sequences)
CREATE OR REPLACE MACRO cache_read_bytes(model, footprint) AS
    iif(model.is_sparsely_read, 0, footprint.kv_cache_bytes
        + footprint.state_bytes * footprint.sequences / state_slots(footprint.engine_id, footprint.sequences));

-- a stage reads its weights for each part of the requests, and its caches once: stages wait for one another where there
-- are fewer requests than stages
CREATE OR REPLACE MACRO stages_waiting(footprint) AS
    footprint.pipeline_parallel / least(footprint.pipeline_parallel, footprint.sequences);

-- model: its row of shape; weight: its row in the format; footprint: of inference; card: a row of gpu
CREATE OR REPLACE MACRO decode_reason(model, weight, footprint, card) AS CASE
    WHEN footprint.phase_id <> 'inference' THEN 'training writes no tokens'
    WHEN coalesce(model.is_encoder, true) OR weight.read_bytes = 0 THEN 'it writes no tokens: it reads them all at once'
    WHEN model.writes_otherwise IS NOT NULL THEN model.writes_otherwise
    WHEN weight.read_bytes IS NULL THEN 'how many of its experts a token passes is not known'
    WHEN card.memory_bandwidth_gb_s IS NULL THEN 'the bandwidth of the card is not known'
END;

CREATE OR REPLACE MACRO decode_most(model, weight, footprint, card) AS
    iif(decode_reason(model, weight, footprint, card) IS NULL, footprint.sequences * card.memory_bandwidth_gb_s * 1e9
        / (weight.read_bytes / footprint.tensor_parallel + cache_read_bytes(model, footprint)
            * stages_waiting(footprint)), NULL);

-- the fastest products that a card has for a format; null where no rate of them is known
CREATE OR REPLACE MACRO product_tflops(card, product_bits) AS CASE
    WHEN product_bits = 16 THEN greatest(card.bf16_tflops_dense, card.fp16_tflops_dense)
    WHEN coalesce(card.fp8_tflops_dense, card.int8_tops_dense) IS NULL THEN NULL
    WHEN product_bits = 8 THEN greatest(card.bf16_tflops_dense, card.fp16_tflops_dense, card.fp8_tflops_dense,
        card.int8_tops_dense)
    WHEN product_bits = 4 THEN greatest(card.bf16_tflops_dense, card.fp16_tflops_dense, card.fp8_tflops_dense,
        card.int8_tops_dense, card.fp4_tflops_dense)
END;

CREATE OR REPLACE MACRO prefill_most(model, dtype, footprint, card) AS
    iif(footprint.phase_id = 'inference', footprint.gpu_count * product_tflops(card, dtype.product_bits) * 1e12
        / (2.0 * model.token_elements), NULL);

-- speed_on('rtx-4090', 'Qwen/Qwen3-8B', dtype_id := 'gguf-q4_k_m', context_tokens := 8192): the bounds with so many
-- tokens in the cache of each sequence.
CREATE OR REPLACE MACRO speed_on(
    gpu_id, model_id, dtype_id := 'bf16', context_tokens := 8192, sequences := 1, kv_dtype_id := NULL,
    engine_id := NULL, gpu_count := 1
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
told AS (
    SELECT footprint.*, card_asked.gpu_id AS named_id, gpu AS card, model, weight, dtype,
        no_verdict_reason(gpu.gpu_id, card_asked.gpu_id, footprint.total_bytes, footprint.unknown_reason,
            footprint.model_id, NULL) AS reason
    FROM card_asked
    CROSS JOIN footprint_of(model_id, dtype_id := dtype_id, context_tokens := context_tokens, sequences := sequences,
        kv_dtype_id := kv_dtype_id, engine_id := engine_id, gpu_count := gpu_count) AS footprint
    LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN shape AS model ON model.model_id = footprint.model_id
    LEFT JOIN weight ON weight.model_id = footprint.model_id AND weight.dtype_id = footprint.dtype_id
    LEFT JOIN dtype ON dtype.dtype_id = footprint.dtype_id
),
timed AS (
    SELECT told.*, speed, iif(reason IS NULL, decode_likely(model, weight, dtype, told, card, speed), NULL) AS likely
    FROM (SELECT told, card, model, weight, dtype, reason FROM told)
    LEFT JOIN engine_speed AS speed
        ON is_speed_of(speed, told.engine_id, card, coalesce(model.expert_count_max > 0, false))
)
SELECT coalesce(card.gpu_id, told.named_id) AS gpu_id, told.model_id, told.dtype_id, told.engine_id,
    told.context_tokens, told.sequences, told.gpu_count, weight.read_bytes,
    cache_read_bytes(model, told) AS cache_bytes,
    iif(reason IS NULL, decode_most(model, weight, told, card), NULL) AS decode_tokens_per_second_most,
    iif(reason IS NULL, prefill_most(model, dtype, told, card), NULL) AS prefill_tokens_per_second_most,
    likely AS decode_tokens_per_second_likely, likely / speed.slower_ratio AS decode_tokens_per_second_low,
    iif(likely IS NULL, NULL, least(likely / speed.quicker_ratio, decode_most(model, weight, told, card)))
        AS decode_tokens_per_second_high,
    iif(reason IS NULL, prefill_likely(model, dtype, told, card, speed), NULL) AS prefill_tokens_per_second_likely,
    coalesce(reason, decode_reason(model, weight, told, card), likely_reason(speed, told, share_tflops(card,
        dtype.product_bits, speed))) AS unknown_reason
-- (a row in one column: see fits_on)
FROM (SELECT timed AS told, card, model, weight, dtype, speed, reason, likely FROM timed);
