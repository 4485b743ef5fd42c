-- MLX LM and MLX-VLM: what they hold at once of a chunk of 2048 tokens, scores and copies of the cache included.
--
-- Units: bytes. Sources: mlx-lm-0.32.2, mlx-vlm-0.7.10 and mlx-metal (chunks, caches, which heads have a fused kernel,
-- how long tensors live).
-- Not covered: prompt caches kept for later requests.

-- MLX encodes ahead of the GPU and holds every tensor until its command buffer is done: what the matrices of some
-- layers make of a chunk of the prompt, twice (the product, and what is made of it), the residual stream, and the
-- logits of each last token. On top come the scores of one layer where no fused kernel runs, a mask where there are
-- several prompts, and, while it grows, two copies of a layer's cache.
CREATE OR REPLACE MACRO chunk_tokens_mlx(scenario, constants) AS
    least(scenario.context_tokens, constants.mlx_prefill_tokens);
CREATE OR REPLACE MACRO chunk_prompts_mlx(scenario, constants) AS
    least(scenario.sequences, constants.mlx_prefill_sequences);

-- Copies of the scores: none in a fused kernel, one where there is none for these heads, four where they pass a tanh;
-- the rotary part of a latent's keys gets two of its own.
CREATE OR REPLACE MACRO score_copies_mlx(layer, model) AS CASE
    WHEN model.has_score_cap THEN 4
    WHEN layer.mechanism = 'mla' THEN iif(layer.context_width / layer.head_count IN (64, 80, 128), 2, 3)
    WHEN layer.query_width = layer.context_width AND layer.query_width / layer.head_count IN (64, 80, 128) THEN 0
    ELSE 1
END;

CREATE OR REPLACE MACRO scores_bytes_mlx(model, scenario, constants) AS
    coalesce(list_max(list_transform(model.mixers, lambda layer:
        scenario.compute_bytes * least(scenario.context_tokens,
            coalesce(iif(has_windows(model, 'mlx-lm'), layer.window_tokens, NULL)
                + constants.mlx_prefill_tokens, scenario.context_tokens))
            * (score_copies_mlx(layer, model) * layer.head_count * chunk_tokens_mlx(scenario, constants)
                -- keys and values of a latent, expanded
                + iif(layer.mechanism = 'mla', 2 * (layer.query_width + layer.context_width), 0)))), 0);

-- MLX-VLM makes the embeddings of a whole prompt, images among them, before it reads the first chunk.
CREATE OR REPLACE MACRO embeddings_bytes_mlx(model, scenario) AS iif(scenario.engine_id = 'mlx-vlm',
    scenario.context_tokens * scenario.compute_bytes * (model.hidden_size + coalesce(model.per_layer_input_sum, 0)), 0);

CREATE OR REPLACE MACRO chunk_bytes_mlx(model, scenario, constants) AS chunk_prompts_mlx(scenario, constants) * (
    greatest(
        chunk_tokens_mlx(scenario, constants) * scenario.compute_bytes
            * (constants.mlx_layers_in_flight * (2 * model.layer_output_elements + 2 * model.hidden_size) + 3
                * model.per_layer_input_sum),
        2 * (scenario.compute_bytes + 4) * model.vocab_size)
    + scores_bytes_mlx(model, scenario, constants)
    + iif(scenario.sequences > 1, 2.0 * chunk_tokens_mlx(scenario, constants) * scenario.context_tokens, 0)
    + embeddings_bytes_mlx(model, scenario)
) + scenario.sequences * scenario.kv_element_bits / 4.0 * scenario.context_tokens
    * coalesce(list_max(list_transform(model.caches, lambda layer: layer.elements_per_token)), 0);
