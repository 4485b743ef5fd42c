-- Unlike cards together: what each of them holds of a model that llama.cpp shares by layers.
--
--   slots = layers + 1 (the output is the last); slot i lies on the first card whose share of the memory, with those of
--       the cards before it, is more than i ÷ slots
--   share of a card = what it gives one program, in MiB: the same numbers stand after --tensor-split, so that llama.cpp
--       shares by them and not by what is free as it starts
--   card = its layers + their caches + the output, where it lies there + compute buffer + what lies outside
--   The input embeddings stay on the CPU; a tied head is copied.
--
-- Units: bytes of each card. Sources: llama-cpp-offload (load_tensors: splits, std::upper_bound, get_layer_buft_list).
--   Buffers and what lies outside are those of as many like cards (footprints of gpu_count cards).
-- Caches of different kinds of layers are those of the layers that lie on a card (layer_caches); where their order was
--   not read, each card is taken to hold the largest ones. Not covered: splits by rows or tensors, cards of different
--   makers, layers on the CPU beside them, other engines: those share in equal parts.

-- The card, from 1 on, that holds a slot.
CREATE OR REPLACE MACRO card_of_slot(slot, slot_count, shares) AS 1 + len(list_filter(range(1, len(shares) + 1),
    lambda place: list_sum(list_slice(shares, 1, place)) * slot_count <= slot * list_sum(shares)));

CREATE OR REPLACE MACRO slots_of_card(card, slot_count, shares) AS
    list_filter(range(slot_count), lambda slot: card_of_slot(slot, slot_count, shares) = card);

-- Weights and caches of those slots.
CREATE OR REPLACE MACRO output_bytes(model, weight) AS
    iif(model.is_head_tied, weight.embedding_bytes - weight.input_bytes, weight.head_bytes)
    + weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes - weight.head_bytes;
CREATE OR REPLACE MACRO slot_weights(model, weight, held, slots) AS coalesce(list_sum(list_transform(slots,
    lambda slot: iif(slot = model.layer_count, output_bytes(model, weight), held.layer_bytes[slot + 1]))), 0);
-- footprint: of as many like cards, told for each of them, so that all hold as much as its share of the layers
-- goes into the whole; less where the first ones hold most
CREATE OR REPLACE MACRO cards_of_cache(model, footprint, card_count) AS iif(borrowed_layers(model.mixers) = 0,
    model.layer_count / least(ceil((model.layer_count + 1) / card_count), model.layer_count),
    list_sum(list_transform(model.caches, lambda layer: layer.layer_count * read_elements(layer, footprint)))
        / list_sum(list_transform(model.caches, lambda layer: layer.layer_count * read_elements(layer, footprint)
            * kind_share(layer, model, {'pipeline_parallel': card_count, 'reads_prompt': 'compute-buffer',
                'stage_share': 1.0}))));
CREATE OR REPLACE MACRO slot_caches(model, footprint, caches, slots, card_count) AS least(cache_held(footprint),
    coalesce(iif(is_placed(model),
        list_sum(list_transform(slots, lambda slot: iif(slot < model.layer_count, caches[slot + 1], 0))),
        list_sum(list_slice(caches, model.layer_count
            - len(list_filter(slots, lambda slot: slot < model.layer_count)) + 1, model.layer_count))), 0))
        * cards_of_cache(model, footprint, card_count);
-- What a card holds of the slots that are its own.
CREATE OR REPLACE MACRO held_together(model, weight, held, footprint, caches, slots, card_count) AS
    (slot_weights(model, weight, held, slots) + ceil(slot_caches(model, footprint, caches, slots, card_count))
        + footprint.activations_bytes + footprint.overhead_bytes)::BIGINT;

-- Why nobody says what so many cards hold of a footprint: null where it is said.
CREATE OR REPLACE MACRO together_refusal(engine_id, has_layers_apart, card_count, maker_count) AS CASE
    WHEN coalesce(card_count, 0) < 2 THEN 'cards together are two or more: fits_on says what one holds'
    WHEN maker_count > 1
        THEN 'cards of different makers run together in builds of llama.cpp for several of them, which nobody read'
    WHEN engine_id <> 'llama.cpp' THEN 'only llama.cpp shares a model among unlike cards by what they give'
    WHEN NOT coalesce(has_layers_apart, false) THEN 'the layers of this model are not told apart yet'
END;
