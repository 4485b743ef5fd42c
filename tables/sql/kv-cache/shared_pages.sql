-- One pool of pages for layers of all kinds, as vLLM has it: what its groups and pages hold beyond tokens and states.
--
--   padded_layers     = layers of a kind as a multiple of the pool's groups ÷ layers
--   page_tokens       = cell × ⌈bytes of the largest recurrent state ÷ (cell × bytes of a token in a layer)⌉
--   shared_page_bytes = sequences × (pages of states × padded recurrent layers × page − states
--       + layers with tokens × (page − cell))
--
-- Units: bytes per GPU, layers, tokens. Source: vllm-shared-pages, engine_memory (shared_state_pages). A request has
--   whole pages: counted is the most that its last one leaves empty, so that the bytes grow evenly with the context.
-- Qwen3.8-27B, 8,192 tokens: 11 pages of tokens and 3 groups of 2 pages of states, 49 MiB each, 0.8135 GiB; 0.84 here.
-- Not covered: states of every page, which 0.26 and 0.27 keep of Mamba 2 by default; pages of 128 tokens of latents.

CREATE OR REPLACE MACRO shares_pages(scenario) AS scenario.ways.shared_state_pages > 0;

CREATE OR REPLACE MACRO padded_layers(layer, scenario) AS iif(shares_pages(scenario), layer.pool_share, 1);

-- one recurrent state of a layer, on one GPU
CREATE OR REPLACE MACRO layer_state_bytes(layer, scenario) AS (layer.state_elements * layer.state_bytes_each
    + layer.conv_state_elements * scenario.compute_bytes) / scenario.tensor_parallel;

-- one token of a layer, of those that cache tokens the one with most
CREATE OR REPLACE MACRO widest_token_bytes(model, scenario) AS coalesce(list_max(list_transform(model.caches,
    lambda layer: cached_bytes(layer, model, scenario) * head_share(layer, scenario))), 0);
CREATE OR REPLACE MACRO widest_state_bytes(model, scenario) AS
    coalesce(list_max(list_transform(model.caches, lambda layer: layer_state_bytes(layer, scenario))), 0);

-- 0 of a model without states, or without tokens beside them
CREATE OR REPLACE MACRO page_tokens(model, scenario) AS iif(widest_token_bytes(model, scenario) > 0,
    scenario.cell_tokens * ceil(widest_state_bytes(model, scenario)
        / (scenario.cell_tokens * widest_token_bytes(model, scenario))), 0);

CREATE OR REPLACE MACRO state_layers(model) AS coalesce(list_sum(list_transform(model.caches, lambda layer:
    iif(layer.state_elements + layer.conv_state_elements > 0, layer.layer_count * layer.pool_share, 0))), 0);
CREATE OR REPLACE MACRO token_layers(model) AS coalesce(list_sum(list_transform(model.caches, lambda layer:
    iif(layer.elements_per_token > 0, layer.layer_count * layer.pool_share, 0))), 0);

CREATE OR REPLACE MACRO shared_page_bytes(model, scenario) AS iif(NOT shares_pages(scenario)
        OR page_tokens(model, scenario) = 0 OR model.pool IS NOT NULL, 0,
    scenario.rank_sequences * scenario.stage_share * widest_token_bytes(model, scenario) * (
        scenario.ways.shared_state_pages * state_layers(model) * page_tokens(model, scenario)
        + token_layers(model) * greatest(page_tokens(model, scenario) - scenario.cell_tokens, 0))
    - state_bytes(model, scenario));
