-- Speculative decoding on one card: a small model writes ahead, and the large one reads what was written at once.
--
--   drafted_on('rtx-4090', 'Qwen/Qwen3-8B', 'Qwen/Qwen3-0.6B', dtype_id := 'fp8')
--     draft_bytes = weights and caches of the draft; all that both hold, and whether a card takes it: speculative_of
--     round = a step of the model with (draft_tokens + 1) tokens of each user + draft_tokens steps of the draft
--     drafted_tokens_per_second = users × tokens kept of a round ÷ round, with draft_step_tokens_least and _most kept
--         where nobody says (step_tokens); likely without a draft as in speed_on
--
-- The weights are read once for all tokens of a round, of experts those that so many tokens are likely sent to; each is
-- multiplied. So a draft gains where a step waits for the memory: one user, and models without experts, most of all.
-- Units: bytes, seconds, tokens a second. Source: step_seconds of likely.sql; speculative-decoding-paper for the round;
-- what is kept: inferencex-acceptance.
-- Not covered: several cards; trained heads and prediction layers, whose weights are their own; drafts that stop early;
-- activations of the draft, which follow those of the model. Null, with a reason, where no likely speed is.

-- rate: of products; speed, draft_speed: rows of engine_speed
CREATE OR REPLACE MACRO draft_round_seconds(model, weight, footprint, draft, draft_weight, draft_footprint,
    draft_tokens, card, rate, speed, draft_speed) AS
    step_seconds(likely_read_bytes(model, weight, footprint.sequences * (draft_tokens + 1)),
        cache_read_bytes(model, footprint), footprint.sequences::DOUBLE * (draft_tokens + 1) * model.token_elements,
        model.layer_count, card, rate, speed)
    + draft_tokens * step_seconds(likely_read_bytes(draft, draft_weight, draft_footprint.sequences),
        cache_read_bytes(draft, draft_footprint), draft_footprint.sequences::DOUBLE * draft.token_elements,
        draft.layer_count, card, rate, draft_speed);

-- of a pair that the engine takes (draft_reason of speculative_of.sql)
CREATE OR REPLACE MACRO drafting_reason(model, weight, footprint, draft, draft_weight, draft_footprint, draft_tokens,
    card, rate, speed, draft_speed) AS CASE
    WHEN draft.token_elements >= model.token_elements THEN 'a draft has to be smaller than the model'
    WHEN coalesce(draft_tokens, 0) < 1 THEN 'draft_tokens starts at 1'
    WHEN footprint.sequences * (draft_tokens + 1) > speed.users_most
        THEN 'how quickly this program reads several tokens at once on such a card nobody has published'
    ELSE coalesce(decode_reason(model, weight, footprint, card), decode_reason(draft, draft_weight, draft_footprint,
        card), likely_reason(speed, {'sequences': footprint.sequences * (draft_tokens + 1)}, rate),
        likely_reason(draft_speed, draft_footprint, rate))
END;

CREATE OR REPLACE MACRO drafted_on(
    gpu_id, model_id, draft_id, dtype_id := 'bf16', context_tokens := NULL, sequences := 1, engine_id := NULL,
    draft_tokens := NULL, step_tokens := NULL
) AS TABLE
WITH draft_said AS (
    SELECT known_model(model_id) AS large_id, known_model(draft_id) AS small_id, lower(dtype_id::VARCHAR) AS dtype_id,
        coalesce(lower(engine_id::VARCHAR), serving_engine(lower(dtype_id::VARCHAR), card.vendor, dtype.engine_id))
            AS engine_id,
        coalesce(context_tokens::VARCHAR, default_context_tokens(named, 'inference')::VARCHAR) AS context_tokens,
        sequences AS sequences,
        coalesce(try_cast(draft_tokens AS BIGINT), constants.draft_tokens::BIGINT) AS draft_tokens,
        coalesce(try_cast(step_tokens AS DOUBLE), constants.draft_step_tokens_least) AS kept_least,
        coalesce(try_cast(step_tokens AS DOUBLE), constants.draft_step_tokens_most) AS kept_most, card,
        gpu_id::VARCHAR AS named_id
    FROM constants_row LEFT JOIN gpu AS card ON card.gpu_id = lower(gpu_id::VARCHAR)
    LEFT JOIN dtype ON dtype.dtype_id = lower(dtype_id::VARCHAR)
    LEFT JOIN shape AS named ON named.model_id = known_model(model_id)
),
draft_scenario AS (
    SELECT DISTINCT unnest([said.large_id, said.small_id]) AS model_id, said.dtype_id, 'inference' AS phase_id,
        said.engine_id, said.context_tokens, said.sequences, NULL::VARCHAR AS kv_dtype_id,
        NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, NULL::VARCHAR AS attention, 1 AS gpu_count
    FROM draft_said AS said
),
draft_placed AS MATERIALIZED (FROM footprints_in('draft_scenario', 'inference', is_plain := true)),
draft_told AS (
    SELECT said.*, large, small, model, draft, weight, draft_weight, dtype, speed, draft_speed, rule,
        share_tflops(card, dtype.product_bits, speed) AS rate
    FROM draft_said AS said
    JOIN draft_placed AS large ON large.model_id = said.large_id
    JOIN draft_placed AS small ON small.model_id = said.small_id
    LEFT JOIN dtype ON dtype.dtype_id = said.dtype_id
    LEFT JOIN draft_rule AS rule ON rule.engine_id = large.engine_id
    LEFT JOIN shape AS model ON model.model_id = said.large_id
    LEFT JOIN shape AS draft ON draft.model_id = said.small_id
    LEFT JOIN weight ON weight.model_id = said.large_id AND weight.dtype_id = said.dtype_id
    LEFT JOIN weight AS draft_weight ON draft_weight.model_id = said.small_id AND draft_weight.dtype_id = said.dtype_id
    LEFT JOIN engine_speed AS speed
        ON is_speed_of(speed, large.engine_id, card, coalesce(model.expert_count_max > 0, false))
    LEFT JOIN engine_speed AS draft_speed
        ON is_speed_of(draft_speed, small.engine_id, card, coalesce(draft.expert_count_max > 0, false))
),
draft_judged AS (
    SELECT told.*, small.weights_bytes + small.kv_cache_bytes + small.kv_padding_bytes + small.state_bytes
            AS draft_bytes,
        coalesce(
            no_verdict_reason(card.gpu_id, named_id, large.total_bytes, large.unknown_reason, large.model_id, NULL),
            draft_reason(rule, large, small, model, draft, draft_weight.embedding_bytes, known.engine_ids),
            drafting_reason(model, weight, large, draft, draft_weight, small, told.draft_tokens, card, rate, speed,
                draft_speed)
        ) AS reason,
        draft_round_seconds(model, weight, large, draft, draft_weight, small, told.draft_tokens, card, rate, speed,
            draft_speed) AS round_seconds
    FROM draft_told AS told CROSS JOIN draft_engines AS known
)
SELECT coalesce(card.gpu_id, named_id) AS gpu_id, large_id AS model_id, small_id AS draft_id, told.dtype_id,
    large.engine_id, large.context_tokens, large.sequences, told.draft_tokens, draft_bytes,
    decode_likely(model, weight, dtype, large, card, speed) AS decode_tokens_per_second_likely,
    iif(reason IS NULL, large.sequences * kept_least / round_seconds, NULL) AS drafted_tokens_per_second_low,
    iif(reason IS NULL, large.sequences * kept_most / round_seconds, NULL) AS drafted_tokens_per_second_high,
    reason AS unknown_reason
FROM draft_judged AS told;
