-- Unlike cards together, asked by their ids: what each of them holds of a model in llama.cpp (capacity/together.sql).
--
--   fits = each card takes what it holds with the margin of error_band
--
-- fits_together(['rtx-3090', 'rtx-3060-12gb'], 'Qwen/Qwen3-32B', context_tokens := 8192) has a row for each card, in
--   the order that llama.cpp has them in (that of the list). The model fits where each row does.
--
-- Units: bytes of each card. Source: capacity/together.sql, capacity/verdict.sql. Not covered: what those do not.

CREATE OR REPLACE MACRO together_reason(footprint, has_layers_apart, card_count, maker_count, unknown_gpu) AS CASE
    WHEN unknown_gpu IS NOT NULL THEN unknown_gpu_reason(unknown_gpu)
    WHEN footprint.unknown_reason IS NOT NULL
        THEN coalesce(together_refusal('llama.cpp', true, card_count, maker_count),
            with_nearest(footprint.unknown_reason, footprint.model_id))
    ELSE together_refusal(footprint.engine_id, has_layers_apart, card_count, maker_count)
END;

CREATE OR REPLACE MACRO fits_together(
    gpu_ids, model_id, dtype_id := 'gguf-q4_k_m', context_tokens := NULL, sequences := 1, kv_dtype_id := NULL
) AS TABLE
WITH named AS (SELECT gpu_ids::VARCHAR[] AS ids),
listed AS (
    SELECT place AS card_place, lower(named.ids[place]) AS asked_id
    FROM named, unnest(range(1, len(named.ids) + 1)) AS places(place)
),
card AS MATERIALIZED (
    SELECT listed.card_place, listed.asked_id, gpu.gpu_id, gpu.vendor, gpu.capacity_bytes,
        gpu.capacity_bytes // 1048576 AS share
    FROM listed LEFT JOIN gpu ON gpu.gpu_id = listed.asked_id
),
cards AS MATERIALIZED (
    SELECT list(card.share ORDER BY card.card_place) AS shares, count(*) AS card_count,
        count(DISTINCT card.vendor) AS maker_count, min(card.asked_id) FILTER (card.gpu_id IS NULL) AS unknown_gpu
    FROM card
),
scenario_asked AS (
    SELECT
        known_model(model_id) AS model_id, dtype_id AS dtype_id, 'inference' AS phase_id, NULL::VARCHAR AS engine_id,
        context_tokens AS context_tokens, sequences AS sequences, kv_dtype_id AS kv_dtype_id,
        NULL::VARCHAR AS optimizer_id, NULL::VARCHAR AS checkpointing, NULL::VARCHAR AS attention,
        greatest((SELECT cards.card_count FROM cards), 1) AS gpu_count
),
asked AS (SELECT known_model(model_id) AS model_id, dtype_id AS dtype_id),
held AS MATERIALIZED (
    SELECT list(layer.layer_bytes ORDER BY layer.block) AS layer_bytes
    FROM layer_weights((SELECT asked.model_id FROM asked), dtype_id := (SELECT asked.dtype_id FROM asked)) AS layer
),
whole AS MATERIALIZED (
    SELECT footprint.*, layer_caches(shape, footprint) AS caches,
        has_layers_apart(weight, held) AS has_layers_apart
    FROM footprints_in('scenario_asked', 'inference', is_plain := true) AS footprint
    CROSS JOIN cards
    LEFT JOIN shape ON shape.model_id = footprint.model_id
    LEFT JOIN weight ON weight.model_id = footprint.model_id AND weight.dtype_id = footprint.dtype_id
    CROSS JOIN held
),
placed AS MATERIALIZED (
    SELECT card.*, whole.caches, shape.layer_count, slots_of_card(card.card_place, shape.layer_count + 1, cards.shares)
            AS slots,
        together_reason(whole, whole.has_layers_apart, cards.card_count, cards.maker_count, cards.unknown_gpu) AS reason
    FROM card CROSS JOIN cards CROSS JOIN whole LEFT JOIN shape ON shape.model_id = whole.model_id
),
sized AS (
    SELECT placed.*, whole.model_id, whole.dtype_id, whole.engine_id, whole.context_tokens, whole.sequences,
        whole.error_band, kv.setting AS kv_setting,
        held_together(shape, weight, held, whole, placed.caches, placed.slots, cards.card_count) AS gpu_bytes
    FROM placed CROSS JOIN whole CROSS JOIN held CROSS JOIN cards
    LEFT JOIN shape ON shape.model_id = whole.model_id
    LEFT JOIN weight ON weight.model_id = whole.model_id AND weight.dtype_id = whole.dtype_id
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = whole.kv_dtype_id
)
SELECT
    coalesce(sized.gpu_id, sized.asked_id) AS gpu_id, sized.card_place, sized.model_id, sized.dtype_id,
    sized.engine_id, sized.context_tokens, sized.sequences,
    CASE WHEN sized.reason IS NULL THEN len(sized.slots) END AS gpu_layers,
    CASE WHEN sized.reason IS NULL THEN sized.gpu_bytes END AS gpu_bytes, sized.capacity_bytes, sized.error_band,
    CASE WHEN sized.reason IS NULL
        THEN card_verdict(sized.gpu_bytes, sized.error_band, sized.capacity_bytes, 1) END AS verdict,
    CASE WHEN sized.reason IS NULL
        THEN concat_ws(' ', '--tensor-split ' || array_to_string(cards.shares, ','), sized.kv_setting)
    END AS engine_setting,
    sized.reason AS unknown_reason
FROM sized CROSS JOIN cards
ORDER BY sized.card_place;
