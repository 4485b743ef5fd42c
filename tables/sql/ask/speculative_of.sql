-- Speculative decoding: a model and a smaller one that drafts tokens for it, on the same GPUs.
--
--   weights, caches  those of both
--   activations      of the model, or where they run in turn of the draft beside the model's hidden states, if larger
--   buffers          of a draft that has a buffer of its own for its forward pass: that
--                    + standing_widths × tokens of a pass × 2 × the draft's width
--                    + sampler_bytes_per_logit × requests × vocabulary + overhead_constants (its graphs)
--   heads            a head that reads layers of its model (EAGLE-3, table draft_head) has one layer of the model's
--                    attention, whose queries, keys and values read the embedding beside the hidden state, a
--                    feed-forward block, a projection of three hidden states to one, the model's embedding, a head
--                    over draft_vocab_size tokens and what they are called in the model; its cache is one layer's,
--                    and head_widths × tokens of a pass × 2 × the model's width stand beside the model's pass
--   mtp              a model's own layers that predict further tokens (DeepSeek-V3, GLM-4.5, MiMo, Qwen3-Next and 3.5),
--                    asked for as draft 'mtp': their parameters but for the embedding and the head, which are the
--                    model's, in its fp8 where the checkpoint has them so, else in 16 bits; a cache as one layer's for
--                    each; a state for each drafted token, and what stands beside the pass (table prediction_rule)
--
-- speculative_of('Qwen/Qwen3-32B', 'Qwen/Qwen3-0.6B', ...) says what both hold; speculative_fits_on('rtx-4090', ...)
-- whether a card takes it. What the question leaves out of the draft is what the engine takes (table draft_rule): its
-- format, and that of its cache. It has as many tokens of context and as many requests as the model.
--
-- Units: bytes per GPU. Source: draft_rule, each engine with its version; the two footprints.
-- A name that is not there has its reason, without the nearest ones (fits_on tells them).
-- Not covered: other heads (EAGLE 1 and 2, DFlash), models that draft for themselves by n-grams, layers of a draft on
-- the host, prediction layers that a repository left out. An embedding that is the model's own is shared, and counted
-- all the same but for 'mtp'.

-- what the engine reads at a time
CREATE OR REPLACE MACRO drafted_tokens(rule, constants) AS
    iif(rule.standing_widths > 0, constants.vllm_batched_tokens, 0);

-- caches that keep the whole context of every layer, and all of one kind
CREATE OR REPLACE MACRO has_whole_caches(model, footprint) AS footprint.state_bytes = 0
    AND len(list_filter(model.caches, lambda layer: coalesce(layer.window_tokens < footprint.context_tokens, false)))
        = 0;

CREATE OR REPLACE MACRO cache_kinds(model, draft) AS len(list_distinct(list_transform(list_concat(model.caches,
    draft.caches), lambda layer: layer.mechanism = 'mla')));

-- layers that keep keys and values
CREATE OR REPLACE MACRO cached_layers(model) AS greatest(1, coalesce(list_sum(list_transform(model.caches,
    lambda layer: iif(layer.elements_per_token > 0, layer.layer_count, 0))), 0));

-- Of all that predicts a GPU has as large a part as of the model, but for the projection, which is whole on each.
CREATE OR REPLACE MACRO prediction_weights_bytes(model, rule, target, weight) AS ceil(
    4 * model.hidden_size * model.hidden_size * model.predicting_layer_count
    + (model.predicting_parameter_count
        - 2 * model.hidden_size * model.hidden_size * model.predicting_layer_count)
        * (target.weights_bytes / weight.weights_bytes)
        * iif(rule.is_fp8 AND model.stored_format = 'fp8' AND target.dtype_id IN ('fp8', 'stored'),
            weight.weights_bytes / model.parameter_count,
            greatest(rule.packed_bits / 8, weight.weights_bytes / model.parameter_count)));

-- One layer's keys and values for each, in 16 bits where the draft has a context of its own. Of states one for each
-- drafted token; in blocks they have as many more steps of a convolution, and the layers of attention are one more.
CREATE OR REPLACE MACRO own_cache_bytes(model, target, constants) AS 2 * target.sequences
    * whole_cells(target.context_tokens, constants) * model.predicting_layer_count
    * coalesce(list_max(list_transform(model.caches, lambda layer: layer.elements_per_token)), 0);
CREATE OR REPLACE MACRO block_states_bytes(model, rule, target) AS
    (target.state_bytes * (1 + rule.draft_tokens) + target.sequences * rule.draft_tokens * (1 + rule.draft_tokens)
        * 2 * coalesce(list_sum(list_transform(model.caches,
            lambda layer: layer.layer_count * layer.conv_state_elements)), 0))
        * (1 + model.predicting_layer_count / cached_layers(model)) - target.state_bytes;
CREATE OR REPLACE MACRO prediction_cache_bytes(model, rule, drafting, target, constants) AS ceil(
    iif(drafting.holds_buffers_apart,
        own_cache_bytes(model, target, constants) + target.state_bytes * rule.draft_tokens,
        (target.kv_cache_bytes + target.kv_padding_bytes) / cached_layers(model) * model.predicting_layer_count
            + block_states_bytes(model, rule, target)));

-- The buffer of a context that holds this layer alone and gives logits of one token of each request.
CREATE OR REPLACE MACRO own_buffer_bytes(model, target, constants) AS
    constants.llama_cpp_micro_batch_tokens * (2 * target.sequences * whole_cells(target.context_tokens, constants)
        + 4 * greatest(block_elements_llama_cpp(model), 2 * model.query_max + 2 * model.hidden_size))
    + 4 * target.sequences * model.vocab_size;

CREATE OR REPLACE MACRO prediction_reason(rule, drafting, target, model, known) AS CASE
    WHEN target.unknown_reason IS NOT NULL THEN target.unknown_reason
    WHEN model.predicting_layer_count = 0 THEN target.model_id || ' has no layers that predict further tokens (MTP)'
    WHEN rule.engine_id IS NULL OR drafting.engine_id IS NULL THEN 'what ' || target.engine_id
        || ' holds for layers that predict further tokens of a ' || model.model_type || ' is not described; known: '
        || known
    WHEN NOT rule.has_states AND NOT has_whole_caches(model, target) THEN 'what ' || rule.engine_id
        || ' does with layers that predict where others keep a window or a state is not described'
END;

CREATE OR REPLACE VIEW prediction_engines AS
SELECT string_agg(rule.engine_id || ' (' || rule.model_types || ')', ', ' ORDER BY rule.engine_id, rule.model_types)
    AS engine_types
FROM prediction_rule AS rule;

-- The projection of three hidden states and the norms are whole on every GPU.
CREATE OR REPLACE MACRO head_weights_bytes(model, head, gpu_count) AS ceil(2 * model.hidden_size * (
    (model.vocab_size + head.draft_vocab_size + 3 * model.query_max + 4 * model.key_max + 3 * head.intermediate_size)
        / gpu_count + 3 * model.hidden_size + head.norm_count) + 8 * head.draft_vocab_size);

CREATE OR REPLACE MACRO head_reason(rule, head, target, model, draft_dtype_id, known) AS CASE
    WHEN head.of_model_id <> target.model_id THEN head.model_id || ' is a head for ' || head.of_model_id
    WHEN rule.head_widths IS NULL THEN 'what ' || target.engine_id || ' holds for a head that reads layers of its '
        || 'model is not described; it is of ' || known
    WHEN draft_dtype_id <> 'bf16' THEN 'a head that reads layers of its model is counted in bf16'
    WHEN NOT has_whole_caches(model, target) OR len(model.caches) > 1 THEN 'what ' || rule.engine_id
        || ' does with a head where layers keep a window or a state is not described'
END;

CREATE OR REPLACE MACRO draft_reason(rule, target, draft, model, draft_model, embedding_bytes, known) AS CASE
    WHEN target.unknown_reason IS NOT NULL THEN target.unknown_reason
    WHEN rule.engine_id IS NULL THEN 'what ' || target.engine_id || ' holds for a draft is not known; it is of '
        || known
    WHEN embedding_bytes = 0 THEN draft.model_id || ' is a head that reads layers of another model: what engines keep '
        || 'for it beside its weights is not described'
    WHEN draft.unknown_reason IS NOT NULL THEN 'the draft: ' || draft.unknown_reason
    WHEN target.sequences > rule.most_sequences THEN rule.engine_id || ' drafts for ' || rule.most_sequences
        || ' sequence at a time, not for ' || target.sequences
    WHEN abs(model.vocab_size - draft_model.vocab_size) > rule.vocab_difference_most
        THEN rule.engine_id || ' refuses a draft of ' || draft_model.vocab_size || ' tokens for a model of '
            || model.vocab_size || iif(rule.vocab_difference_most > 0, ' (they may differ by '
            || rule.vocab_difference_most || ')', '')
    WHEN NOT rule.takes_any_cache AND NOT (has_whole_caches(model, target) AND has_whole_caches(draft_model, draft))
        THEN 'what ' || rule.engine_id || ' does with a draft where layers keep a window or a state is not described'
    WHEN NOT rule.takes_any_cache AND cache_kinds(model, draft_model) > 1 THEN 'how ' || rule.engine_id
        || ' shares blocks between a latent cache and one of keys and values is not described'
END;

CREATE OR REPLACE MACRO pair_reason(rule, head, target, draft, model, draft_model, embedding_bytes, known) AS
    iif(target.unknown_reason IS NULL AND rule.engine_id IS NOT NULL AND head.model_id IS NOT NULL,
        head_reason(rule, head, target, model, draft.dtype_id, known.head_engines),
        draft_reason(rule, target, draft, model, draft_model, embedding_bytes, known.engine_ids));

CREATE OR REPLACE VIEW draft_engines AS
SELECT string_agg(rule.engine_id, ', ' ORDER BY rule.engine_id) AS engine_ids,
    string_agg(rule.engine_id, ', ' ORDER BY rule.engine_id) FILTER (rule.head_widths IS NOT NULL) AS head_engines
FROM draft_rule AS rule;

CREATE OR REPLACE MACRO speculative_of(
    model_id, draft_model_id, dtype_id := NULL, draft_dtype_id := NULL, engine_id := NULL, context_tokens := NULL,
    sequences := 1, kv_dtype_id := NULL, draft_kv_dtype_id := NULL, gpu_count := 1
) AS TABLE
WITH named AS (
    SELECT known_model(model_id::VARCHAR) AS model_id, known_model(draft_model_id::VARCHAR) AS draft_model_id,
        usual_dtype(lower(dtype_id::VARCHAR), 'inference') AS dtype_id, lower(draft_dtype_id::VARCHAR)
            AS draft_dtype_id, coalesce(lower(trim(draft_model_id::VARCHAR)) = 'mtp', false) AS predicts,
        lower(engine_id::VARCHAR) AS engine_id, context_tokens AS context_tokens, sequences AS sequences,
        lower(kv_dtype_id::VARCHAR) AS kv_dtype_id, lower(draft_kv_dtype_id::VARCHAR) AS draft_kv_dtype_id,
        gpu_count AS gpu_count
),
meant AS (
    SELECT named.model_id, named.draft_model_id, named.dtype_id, named.draft_dtype_id, named.sequences,
        named.kv_dtype_id, named.draft_kv_dtype_id, named.gpu_count, named.predicts,
        coalesce(named.engine_id, dtype.engine_id) AS engine_id,
        coalesce(named.context_tokens::VARCHAR, default_context_tokens(shape, 'inference')::VARCHAR)
            AS context_tokens
    FROM named
    LEFT JOIN dtype ON dtype.dtype_id = named.dtype_id
    LEFT JOIN shape ON shape.model_id = named.model_id
),
pair_wish AS (
    SELECT meant.model_id, meant.dtype_id, 'inference' AS phase_id, meant.engine_id, meant.context_tokens,
        meant.sequences, meant.kv_dtype_id, meant.gpu_count, NULL::BIGINT AS max_context_tokens
    FROM meant
    UNION ALL
    -- a draft is read as far as its model, whatever it was trained for
    SELECT iif(meant.predicts, meant.model_id, meant.draft_model_id),
        iif(meant.predicts, meant.dtype_id, coalesce(meant.draft_dtype_id, rule.dtype_id, meant.dtype_id)), 'inference',
        meant.engine_id, meant.context_tokens, meant.sequences,
        iif(meant.predicts, meant.kv_dtype_id, coalesce(meant.draft_kv_dtype_id, rule.kv_dtype_id, meant.kv_dtype_id)),
        meant.gpu_count,
        greatest(coalesce(try_cast(meant.context_tokens AS BIGINT), 1), 1)
    FROM meant LEFT JOIN draft_rule AS rule ON rule.engine_id = meant.engine_id
),
pair_asked AS (FROM no_scenario UNION ALL BY NAME FROM pair_wish),
pair AS MATERIALIZED (FROM footprints_in('pair_asked', 'inference')),
-- (numbers that are none leave neither with a length: one row has the reason)
target AS (
    FROM pair WHERE pair.max_context_tokens IS NULL
    ORDER BY pair.model_id IS DISTINCT FROM (SELECT named.model_id FROM named) LIMIT 1
),
draft AS (FROM pair WHERE pair.max_context_tokens IS NOT NULL),
drafter_overhead AS (
    SELECT rule.engine_id, sum(once.value * iif(once.unit = 'MiB', 1048576, 1)) AS overhead_bytes
    FROM draft_rule AS rule
    JOIN constant AS once ON list_contains(string_split(rule.overhead_constants, ' '), once.constant_id)
    GROUP BY rule.engine_id
),
paired AS (
    SELECT target, draft, rule, predicting, meant.predicts, head.model_id IS NOT NULL AS is_head,
        model.hidden_size AS model_width,
        coalesce(drafter.hidden_size, model.hidden_size) AS draft_width, model.vocab_size,
        iif(meant.predicts, prediction_reason(predicting, rule, target, model, types.engine_types),
            pair_reason(rule, head, target, draft, model, drafter, weight.embedding_bytes, known)) AS unknown_reason,
        CASE
            WHEN meant.predicts THEN prediction_weights_bytes(model, predicting, target, weight)
            WHEN head.model_id IS NULL THEN draft.weights_bytes
            ELSE head_weights_bytes(model, head, target.gpu_count)
        END AS draft_weights_bytes,
        target.kv_cache_bytes + target.kv_padding_bytes + target.state_bytes AS cache_bytes,
        target.state_bytes + iif(meant.predicts AND NOT rule.holds_buffers_apart,
            block_states_bytes(model, predicting, target), 0) AS state_bytes,
        CASE
            WHEN meant.predicts THEN prediction_cache_bytes(model, predicting, rule, target, constants)
            WHEN head.model_id IS NULL THEN draft.kv_cache_bytes + draft.kv_padding_bytes + draft.state_bytes
            ELSE ceil((target.kv_cache_bytes + target.kv_padding_bytes) / model.attention_layer_count)
        END AS draft_cache_bytes,
        iif(meant.predicts AND rule.holds_buffers_apart, own_buffer_bytes(model, target, constants),
            coalesce(own.overhead_bytes, 0)) AS overhead_bytes, pass.value AS pass_tokens,
        head_pass.value AS head_tokens, constants
    FROM target CROSS JOIN draft_engines AS known CROSS JOIN constants_row CROSS JOIN meant
    CROSS JOIN prediction_engines AS types
    LEFT JOIN draft ON true
    LEFT JOIN draft_rule AS rule ON rule.engine_id = target.engine_id
    LEFT JOIN drafter_overhead AS own ON own.engine_id = target.engine_id
    LEFT JOIN shape_row AS own_row ON own_row.model_id = target.model_id
    LEFT JOIN (SELECT each.model_id AS drafter_id, each.model AS drafter FROM shape_row AS each)
        ON drafter_id = draft.model_id
    LEFT JOIN draft_head AS head ON head.model_id = draft.model_id AND NOT meant.predicts
    LEFT JOIN prediction_rule AS predicting ON predicting.engine_id = target.engine_id
        AND list_contains(string_split(predicting.model_types, ' '), model.model_type)
    LEFT JOIN constant AS pass ON pass.constant_id = predicting.tokens_constant
    LEFT JOIN constant AS head_pass ON head_pass.constant_id = rule.head_tokens_constant
    LEFT JOIN weight ON weight.model_id = draft.model_id AND weight.dtype_id = draft.dtype_id
),
held AS (
    SELECT *,
        iif(rule.holds_buffers_apart OR predicts, target.activations_bytes, greatest(target.activations_bytes
                + iif(is_head, 2 * rule.head_widths * model_width * head_tokens, 0),
            draft.activations_bytes + 2 * model_width * drafted_tokens(rule, constants)))::BIGINT
            AS activations_bytes,
        ceil(iif(rule.holds_buffers_apart AND NOT predicts, draft.activations_bytes, 0)
            + iif(predicts, predicting.standing_widths * pass_tokens,
                rule.standing_widths * drafted_tokens(rule, constants)) * 2 * draft_width
            + coalesce(rule.sampler_bytes_per_logit, 0) * greatest(target.sequences, constants.vllm_default_sequences)
                * vocab_size + paired.overhead_bytes)::BIGINT AS draft_buffers_bytes,
        greatest(target.overhead_bytes, iif(rule.holds_buffers_apart, 0, draft.overhead_bytes)) AS process_bytes
    FROM paired
)
SELECT
    target.model_id, iif(predicts, 'mtp', draft.model_id) AS draft_model_id, target.dtype_id,
    draft.dtype_id AS draft_dtype_id,
    target.engine_id, target.context_tokens, target.sequences, target.kv_dtype_id,
    draft.kv_dtype_id AS draft_kv_dtype_id, target.gpu_count,
    iif(unknown_reason IS NULL, target.weights_bytes, NULL)::BIGINT AS weights_bytes,
    iif(unknown_reason IS NULL, draft_weights_bytes, NULL)::BIGINT AS draft_weights_bytes,
    iif(unknown_reason IS NULL, cache_bytes, NULL)::BIGINT AS cache_bytes,
    iif(unknown_reason IS NULL, draft_cache_bytes, NULL)::BIGINT AS draft_cache_bytes,
    iif(unknown_reason IS NULL, state_bytes, NULL)::BIGINT AS state_bytes,
    iif(unknown_reason IS NULL, activations_bytes, NULL)::BIGINT AS activations_bytes,
    iif(unknown_reason IS NULL, draft_buffers_bytes, NULL)::BIGINT AS draft_buffers_bytes,
    iif(unknown_reason IS NULL, process_bytes, NULL)::BIGINT AS overhead_bytes,
    iif(unknown_reason IS NULL, target.weights_bytes + draft_weights_bytes + cache_bytes + draft_cache_bytes
        + activations_bytes + draft_buffers_bytes + process_bytes, NULL)::BIGINT AS total_bytes,
    iif(unknown_reason IS NULL, greatest(target.error_band, draft.error_band), NULL)::DOUBLE AS error_band,
    CASE
        WHEN unknown_reason IS NOT NULL THEN NULL
        WHEN predicts THEN predicting.setting
        ELSE replace(iif(is_head, rule.head_setting, rule.setting), '{draft}', draft.model_id)
    END::VARCHAR AS engine_setting,
    CASE
        WHEN unknown_reason IS NOT NULL THEN NULL
        WHEN predicts THEN predicting.holds_for
        ELSE iif(is_head, rule.head_holds_for, rule.holds_for)
    END::VARCHAR AS holds_for,
    unknown_reason
FROM held;

-- what a server is told by, of both together
CREATE OR REPLACE MACRO pair_footprint(pair, vocab_size, sees, has_counted_tower) AS {
    'engine_id': pair.engine_id, 'phase_id': 'inference', 'program': NULL::VARCHAR, 'program_version': NULL::VARCHAR,
    'sequences': pair.sequences, 'data_parallel': 1, 'total_bytes': pair.total_bytes, 'error_band': pair.error_band,
    'kv_cache_bytes': pair.cache_bytes + pair.draft_cache_bytes - pair.state_bytes, 'kv_padding_bytes': 0,
    'state_bytes': pair.state_bytes, 'vocab_size': vocab_size, 'images': 0, 'sees': sees,
    'has_counted_tower': has_counted_tower, 'max_num_seqs': NULL::BIGINT, 'text_only': false,
    'enforce_eager': false, 'max_loras': NULL::BIGINT, 'max_lora_rank': NULL::BIGINT
};

CREATE OR REPLACE MACRO speculative_fits_on(
    gpu_id, model_id, draft_model_id, dtype_id := NULL, draft_dtype_id := NULL, engine_id := NULL,
    context_tokens := NULL, sequences := 1, kv_dtype_id := NULL, draft_kv_dtype_id := NULL, gpu_count := 1
) AS TABLE
WITH card_asked AS (SELECT gpu_id::VARCHAR AS gpu_id),
judged AS (
    SELECT pair.*, gpu.gpu_id AS card_id, card_asked.gpu_id AS card_asked, gpu.capacity_bytes,
        gpu.whole_bytes,
        coalesce(card_reason(running), card_reason(drafting),
            kv_reason(kv, older.least_capability, gpu.vendor, gpu.compute_capability))
            AS not_there,
        kv.setting AS kv_setting, constants, pair_footprint(pair, model.vocab_size,
            seeing.model_id IS NOT NULL, seeing.has_counted_tower)
            AS footprint, card_row.card
    FROM card_asked
    CROSS JOIN speculative_of(model_id, draft_model_id, dtype_id := dtype_id, draft_dtype_id := draft_dtype_id,
        engine_id := engine_id, context_tokens := context_tokens, sequences := sequences, kv_dtype_id := kv_dtype_id,
        draft_kv_dtype_id := draft_kv_dtype_id, gpu_count := gpu_count) AS pair
    LEFT JOIN gpu ON gpu.gpu_id = lower(card_asked.gpu_id)
    LEFT JOIN card_row ON card_row.gpu_id = gpu.gpu_id
    LEFT JOIN model ON model.model_id = pair.model_id
    LEFT JOIN seeing_model AS seeing ON seeing.model_id = pair.model_id
    LEFT JOIN model AS drafter
        ON drafter.model_id = iif(pair.draft_model_id = 'mtp', pair.model_id, pair.draft_model_id)
    LEFT JOIN kv_dtype AS kv ON kv.kv_dtype_id = pair.kv_dtype_id
    LEFT JOIN kv_older AS older ON older.kv_dtype_id = pair.kv_dtype_id AND older.engine_id = pair.engine_id
        AND older.model_id = pair.model_id
    LEFT JOIN runs_on_kind AS running ON running.engine_id = pair.engine_id AND running.phase_id = 'inference'
        AND running.running_id = running_format(model, pair.dtype_id, pair.engine_id) AND running.attention = 'flash'
        AND running.card_kind = card.card_kind
    LEFT JOIN runs_on_kind AS drafting ON drafting.engine_id = pair.engine_id AND drafting.phase_id = 'inference'
        AND drafting.running_id = running_format(drafter, pair.draft_dtype_id, pair.engine_id)
        AND drafting.attention = 'flash'
        AND drafting.card_kind = card.card_kind
    CROSS JOIN constants_row
)
SELECT
    coalesce(card_id, card_asked) AS gpu_id, judged.model_id, judged.draft_model_id, judged.dtype_id,
    judged.draft_dtype_id, judged.engine_id, judged.context_tokens, judged.sequences, judged.gpu_count,
    judged.total_bytes, capacity_bytes, capacity_bytes - judged.total_bytes AS headroom_bytes,
    CASE WHEN not_there IS NULL
        THEN card_verdict(judged.total_bytes, judged.error_band, capacity_bytes, judged.gpu_count) END AS verdict,
    iif(judged.total_bytes IS NULL, NULL, nullif(concat_ws(' ', judged.engine_setting, judged.kv_setting,
        share_needed(judged.engine_id, judged.total_bytes, needed(judged.total_bytes, judged.error_band),
            capacity_bytes, {'vllm_default_share': constants.vllm_default_share, 'whole': whole_bytes,
                'apart': apart_bytes(judged.gpu_count, constants)}),
        requests_needed(footprint, card.vllm_requests, capacity_bytes, constants), inputs_needed(footprint)), ''))
        AS engine_setting,
    judged.holds_for,
    CASE
        WHEN card_asked IS NULL THEN 'no GPU was named'
        WHEN card_id IS NULL THEN 'no such GPU: ' || card_asked
        ELSE coalesce(judged.unknown_reason, not_there)
    END AS unknown_reason
FROM judged;
