-- One row per model with the sums over its layers that every further formula is written in.
--
-- The columns of each part, with their units, are in the files beside this one. What the code of an architecture does
-- otherwise than its anatomy implies is a line of implementation.csv; where it says nothing the anatomy decides.
-- Units: elements, and elements per token. Source: arithmetic over the model's tables; implementation.csv.
-- Not covered: models whose anatomy is not known, which have no row.

CREATE OR REPLACE TABLE shape AS
WITH code AS (
    SELECT
        model_id,
        coalesce(norm_form, norm_kind, 'rms') AS norm_form,
        coalesce(rotary_form, iif(has_learned_positions, 'none', 'rotated')) AS rotary_form,
        -- encoders of the first generation take softmax and loss in the precision of the model; so do encoder-decoders,
        -- whose loss autocast runs in fp32
        coalesce(softmax_form, iif(is_encoder OR cross_layer_count > 0, 'compute', 'fp32')) AS softmax_form,
        coalesce(loss_form, CASE WHEN is_encoder THEN 'compute' WHEN cross_layer_count > 0 THEN 'cast' ELSE 'fp32' END)
            AS loss_form,
        coalesce(attention_form, 'grouped') AS attention_form,
        coalesce(has_score_cap, false) AS has_score_cap,
        coalesce(has_logit_cap, false) AS has_logit_cap,
        coalesce(router_input_bytes, 0) AS router_input_bytes, coalesce(routing_bytes, 0) AS routing_bytes,
        coalesce(feed_forward_extra, 0) AS feed_forward_extra,
        coalesce(residual_extra, 0) AS residual_extra,
        coalesce(eager_hidden_16, 0) AS eager_hidden_16,
        coalesce(eager_hidden_32, 0) AS eager_hidden_32,
        coalesce(value_norm_bytes, 0) AS value_norm_bytes,
        coalesce(has_block_dropout, false) AS has_block_dropout,
        -- bytes of a mask that the class holds beside its weights
        CASE WHEN has_layer_masks THEN attention_layer_count * max_context_tokens::BIGINT * max_context_tokens
            WHEN has_mask_buffer THEN max_context_tokens::BIGINT * max_context_tokens ELSE 0 END AS mask_buffer_bytes,
        coalesce(are_experts_adapted, true) AS are_experts_adapted,
        coalesce(runs_all_experts, false) AS runs_all_experts,
        -- (a text model that ranks and that has the head of one that writes is asked by forward(), which works the
        -- logits of every token out: the code on the cards of Qwen3-Reranker)
        coalesce(has_prompt_logits, false) OR (coalesce(pipeline_tag = 'text-ranking', false)
                OR lower(model_id) LIKE '%rerank%')
            AND NOT coalesce(is_encoder, false) AND coalesce(vocab_size = greatest(head_outputs, iif(is_head_tied,
            vocab_size, 0)), false) AND model_id NOT IN (SELECT model_id FROM tower) AS has_prompt_logits,
        coalesce(has_window_mask, false) AND shortest_window IS NULL AS has_window_mask,
        coalesce(has_own_code, false) AS has_own_code,
        coalesce(pipeline_tag IN ('feature-extraction', 'sentence-similarity'), false) AS is_embedder,
        -- nobody knows the format of a checkpoint in the usual files
        stored_format IS NULL AND stored_unknown_reason IS NULL AND NOT coalesce((SELECT bool_or(regexp_matches(
            model.model_id, '(?i)' || container.name_pattern) OR list_contains(string_split(container.libraries, ' '),
            model.library)) FROM container), false) AS is_format_open
    FROM model JOIN census USING (model_id) LEFT JOIN mixer_shape USING (model_id) LEFT
        JOIN implementation USING (model_type)
)
SELECT
    model.model_id, model.parameter_count, model.hidden_size, model.layer_count, coalesce(model.vocab_size, 0)
        AS vocab_size,
    model.model_type,
    model.stored_format, model.is_head_tied, model.norm_kind, model.is_block_parallel, model.has_flash_attention,
    model.predicting_layer_count, model.predicting_parameter_count, model.max_context_tokens, model.hidden_dropout,
    model.attention_dropout,
    iif(model.is_head_tied, coalesce(model.vocab_size, 0), least(coalesce(model.vocab_size, 0), census.head_outputs))
        AS logit_columns,
    code.* EXCLUDE (model_id), mixer_shape.* EXCLUDE (model_id), block_list.blocks, block_shape.* EXCLUDE (model_id),
    coalesce(form.alive_tensors, 2) AS alive_tensors,
    recurrent_shape.recurrences,
    -- layers that are either a mixer or a block, as Nemotron-H's
    recurrences IS NOT NULL AND mixer_layer_count + coalesce(block_layer_count, 0) <= model.layer_count
        AND coalesce(block_layer_count, 0) > 0 AS is_alternating,
    census.* EXCLUDE (model_id), linear_shape.* EXCLUDE (model_id), adapter_shape.* EXCLUDE (model_id),
    norm_shape.* EXCLUDE (model_id), sharding_shape.* EXCLUDE (model_id), rounding_shape.* EXCLUDE (model_id),
    packed_rounding_shape.* EXCLUDE (model_id), engine_shape.* EXCLUDE (model_id), tower_shape.* EXCLUDE (model_id),
    repository_shape.* EXCLUDE (model_id), tower_training_shape.* EXCLUDE (model_id),
    coalesce(NOT seeing_model.has_counted_tower, false) AS has_uncounted_tower,
    pass_shape.passes, pool_shape.pool, index_shape.latent_index, engine_index_shape.engine_index,
    engine_graph_shape.engine_graph, served_adapter_shape.served_adapter,
    -- prompts of LLaMA-Adapter: which layers have one, and the columns of a mask over it
    greatest(model.layer_count - constants.llama_adapter_first_layer, 0)::BIGINT AS prompted_layer_count,
    constants.llama_adapter_tokens::BIGINT AS prompt_tokens,
    (constants.attention_mask_multiple * ceil(constants.llama_adapter_tokens / constants.attention_mask_multiple))
        ::BIGINT AS prompt_mask_columns,
    reading_shape.is_sparsely_read, reading_shape.token_elements, reading_shape.writes_otherwise,
    least(coalesce(largest_layer_elements, model.parameter_count), model.parameter_count)::BIGINT
        AS largest_layer_elements,
    coalesce(layer_output_elements, 0) AS layer_output_elements,
    coalesce(model.is_shape_confirmed, true) AS is_shape_confirmed,
    -- a denoiser with text encoders and an autoencoder around it
    model.model_id IN (SELECT component.model_id FROM component) AS is_pipeline
FROM model
CROSS JOIN constants
JOIN code USING (model_id)
JOIN census USING (model_id)
JOIN linear_shape USING (model_id)
JOIN adapter_shape USING (model_id)
JOIN norm_shape USING (model_id)
JOIN sharding_shape USING (model_id)
LEFT JOIN mixer_shape USING (model_id)
LEFT JOIN block_list USING (model_id)
LEFT JOIN block_shape USING (model_id)
LEFT JOIN activation AS form ON form.function_name = block_shape.activation
LEFT JOIN recurrent_shape USING (model_id)
LEFT JOIN rounding_shape USING (model_id)
LEFT JOIN packed_rounding_shape USING (model_id)
LEFT JOIN engine_shape USING (model_id)
LEFT JOIN repository_shape USING (model_id)
LEFT JOIN tower_shape USING (model_id)
LEFT JOIN tower_training_shape USING (model_id)
LEFT JOIN seeing_model USING (model_id)
LEFT JOIN pass_shape USING (model_id)
LEFT JOIN pool_shape USING (model_id)
LEFT JOIN served_adapter_shape USING (model_id)
LEFT JOIN index_shape USING (model_id)
LEFT JOIN engine_index_shape USING (model_id)
LEFT JOIN engine_graph_shape USING (model_id)
LEFT JOIN reading_shape USING (model_id)
LEFT JOIN largest_layer USING (model_id)
LEFT JOIN widest_layer USING (model_id)
WHERE model.anatomy_grade <> 'unknown' AND model.parameter_count IS NOT NULL;
