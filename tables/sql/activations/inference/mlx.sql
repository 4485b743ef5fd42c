-- MLX LM: what it holds at once of a chunk of 2048 tokens, scores and copies of the cache included.
--
-- Units: bytes. Sources: mlx-lm-0.32.2 and mlx-metal (chunks, caches, which heads have a fused kernel, how long tensors live).
-- Not covered: prompt caches kept for later requests.

-- MLX encodes ahead of the GPU and holds every tensor until its command buffer is done: what the matrices of some layers make of a chunk
-- of the prompt, twice (the product, and what is made of it), the residual stream, and the logits of each last token. On top come the
-- scores of one layer where no fused kernel runs, a mask where there are several prompts, and, while it grows, two copies of a layer's cache.
CREATE OR REPLACE MACRO chunk_tokens_mlx(x, k) AS least(x.context_tokens, k.mlx_prefill_tokens);
CREATE OR REPLACE MACRO chunk_prompts_mlx(x, k) AS least(x.sequences, k.mlx_prefill_sequences);

-- Copies of the scores: none in a fused kernel, one where there is none for these heads, four where they pass a tanh; the rotary part
-- of a latent's keys gets two of its own.
CREATE OR REPLACE MACRO score_copies_mlx(mixer, m) AS CASE
    WHEN m.has_score_cap THEN 4
    WHEN mixer.mechanism = 'mla' THEN iif(mixer.context / mixer.heads IN (64, 80, 128), 2, 3)
    WHEN mixer.query = mixer.context AND mixer.query / mixer.heads IN (64, 80, 128) THEN 0
    ELSE 1
END;

CREATE OR REPLACE MACRO scores_bytes_mlx(m, x, k) AS coalesce(list_max(list_transform(m.mixers, lambda mixer:
    x.compute_bytes * least(x.context_tokens, coalesce(iif(has_windows(m, 'mlx-lm'), mixer.win, NULL) + k.mlx_prefill_tokens, x.context_tokens))
        * (score_copies_mlx(mixer, m) * mixer.heads * chunk_tokens_mlx(x, k)
            -- keys and values of a latent, expanded
            + iif(mixer.mechanism = 'mla', 2 * (mixer.query + mixer.context), 0)))), 0);

CREATE OR REPLACE MACRO chunk_bytes_mlx(m, x, k) AS chunk_prompts_mlx(x, k) * (
    greatest(
        chunk_tokens_mlx(x, k) * x.compute_bytes
            * (k.mlx_layers_in_flight * (2 * m.layer_output_elements + 2 * m.hidden_size) + 3 * m.per_layer_input_sum),
        2 * (x.compute_bytes + 4) * m.vocab_size)
    + scores_bytes_mlx(m, x, k)
    + iif(x.sequences > 1, 2.0 * chunk_tokens_mlx(x, k) * x.context_tokens, 0)
) + x.sequences * x.kv_element_bits / 4.0 * x.context_tokens * coalesce(list_max(list_transform(m.caches, lambda c: c.elements)), 0);
