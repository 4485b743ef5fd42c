-- Unlike cards together: what each of them holds of a model that llama.cpp shares by layers.
--
--   slots = layers + 1 (the output is the last); slot i lies on the first card whose share of the memory, with those of
--       the cards before it, is more than i ÷ slots
--   share of a card = what it gives one program, in MiB: the same numbers stand after --tensor-split, so that llama.cpp
--       shares by them and not by what is free as it starts
--   card = its layers + their caches + the output, where it lies there + compute buffer + what lies outside
--   The input embeddings stay on the CPU; a tied head is copied.
--
-- fits_together(['rtx-3090', 'rtx-3060-12gb'], 'Qwen/Qwen3-32B', context_tokens := 8192) has a row for each card, in
--   the order that llama.cpp has them in (that of the list). The model fits where each row does.
--
-- Units: bytes of each card. Sources: llama-cpp-offload (load_tensors: splits, std::upper_bound, get_layer_buft_list).
--   Buffers and what lies outside are those of as many like cards (footprints of gpu_count cards).
-- Caches of different kinds of layers: a card is taken to hold the largest ones. Not covered: splits by rows or
--   tensors, cards of different makers, layers on the CPU beside them, other engines: those share in equal parts.

-- The card, from 1 on, that holds a slot.
CREATE OR REPLACE MACRO card_of_slot(slot, slot_count, shares) AS 1 + len(list_filter(range(1, len(shares) + 1),
    lambda place: list_sum(list_slice(shares, 1, place)) * slot_count <= slot * list_sum(shares)));

CREATE OR REPLACE MACRO slots_of_card(card, slot_count, shares) AS
    list_filter(range(slot_count), lambda slot: card_of_slot(slot, slot_count, shares) = card);

-- Weights and caches of those slots.
CREATE OR REPLACE MACRO output_bytes(model, weight) AS
    iif(model.is_head_tied, weight.embedding_bytes, weight.head_bytes)
    + weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes - weight.head_bytes;
CREATE OR REPLACE MACRO slot_weights(model, weight, held, slots) AS coalesce(list_sum(list_transform(slots,
    lambda slot: iif(slot = model.layer_count, output_bytes(model, weight), held.layer_bytes[slot + 1]))), 0);
CREATE OR REPLACE MACRO slot_caches(model, footprint, caches, slots) AS
    coalesce(list_sum(list_slice(caches, 1, len(list_filter(slots, lambda slot: slot < model.layer_count)))), 0)
        * cache_held(footprint) / greatest(list_sum(caches), 1);

CREATE OR REPLACE MACRO together_reason(footprint, has_layers_apart, card_count, maker_count, unknown_gpu) AS CASE
    WHEN unknown_gpu IS NOT NULL THEN unknown_gpu_reason(unknown_gpu)
    WHEN coalesce(card_count, 0) < 2 THEN 'cards together are two or more: fits_on says what one holds'
    WHEN maker_count > 1
        THEN 'cards of different makers run together in builds of llama.cpp for several of them, which nobody read'
    WHEN footprint.unknown_reason IS NOT NULL THEN with_nearest(footprint.unknown_reason, footprint.model_id)
    WHEN footprint.engine_id <> 'llama.cpp' THEN 'only llama.cpp shares a model among unlike cards by what they give'
    WHEN NOT coalesce(has_layers_apart, false) THEN 'the layers of this model are not told apart yet'
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
-- what all cards hold together: the footprint of so many like ones is told for each of them
whole AS MATERIALIZED (
    SELECT footprint.* REPLACE (
            footprint.kv_cache_bytes * cards.card_count AS kv_cache_bytes,
            footprint.kv_padding_bytes * cards.card_count AS kv_padding_bytes,
            footprint.state_bytes * cards.card_count AS state_bytes),
        layer_caches(shape, footprint) AS caches, has_layers_apart(weight, held) AS has_layers_apart
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
        whole.error_band,
        (slot_weights(shape, weight, held, placed.slots) + ceil(slot_caches(shape, whole, placed.caches, placed.slots))
            + whole.activations_bytes + whole.overhead_bytes)::BIGINT AS gpu_bytes
    FROM placed CROSS JOIN whole CROSS JOIN held
    LEFT JOIN shape ON shape.model_id = whole.model_id
    LEFT JOIN weight ON weight.model_id = whole.model_id AND weight.dtype_id = whole.dtype_id
)
SELECT
    coalesce(sized.gpu_id, sized.asked_id) AS gpu_id, sized.card_place, sized.model_id, sized.dtype_id,
    sized.engine_id, sized.context_tokens, sized.sequences,
    CASE WHEN sized.reason IS NULL THEN len(sized.slots) END AS gpu_layers,
    CASE WHEN sized.reason IS NULL THEN sized.gpu_bytes END AS gpu_bytes, sized.capacity_bytes, sized.error_band,
    CASE WHEN sized.reason IS NULL
        THEN card_verdict(sized.gpu_bytes, sized.error_band, sized.capacity_bytes, 1) END AS verdict,
    CASE WHEN sized.reason IS NULL THEN '--tensor-split ' || array_to_string(cards.shares, ',') END AS engine_setting,
    sized.reason AS unknown_reason
FROM sized CROSS JOIN cards
ORDER BY sized.card_place;
