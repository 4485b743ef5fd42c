-- the total is the sum of the components, and unknown exactly where there is a reason
SELECT model_id, dtype_id, phase_id, engine_id, context_tokens, sequences, gpu_count, total_bytes, unknown_reason
FROM footprint
WHERE total_bytes IS DISTINCT FROM weights_bytes + kv_cache_bytes + kv_padding_bytes + state_bytes + activations_bytes
        + gradients_bytes + optimizer_bytes + adapters_bytes + overhead_bytes
    OR (total_bytes IS NULL) <> (unknown_reason IS NOT NULL)
