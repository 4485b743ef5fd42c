-- LLaMA-Adapter: prompts that layers attend to beside the text, and in its second form a scale and a bias of every
-- linear layer; LitGPT's `finetune_adapter` and `finetune_adapter_v2`.
--
--   adapter elements = prompted layers × (prompt tokens × hidden + heads)
--     + llama-adapter-v2: 2 × Σ out_features of linear layers, the head's too, + the norms
--   kept             = bytes × (context of the prompted layers, that of the prompt's own attention)
--     + llama-adapter-v2: bytes × Σ out_features (what a scale multiplies), the head's too
--
-- Prompts begin at a layer of their own: what lies before it keeps nothing, since no gradient reaches it. What attends
-- to a prompt is a kernel that takes a mask, padded to whole columns.
--
-- Units: elements; bytes per token. Source: litgpt/adapter.py and adapter_v2.py (litgpt-adapters), whose steps are in
--   tests/oracle/litgpt_peaks.csv; constant.csv (llama_adapter_*).
-- Not covered: other engines than LitGPT's, checkpointing.

CREATE OR REPLACE MACRO is_prompted(scenario) AS
    coalesce(scenario.adapter IN ('llama-adapter', 'llama-adapter-v2'), false);
CREATE OR REPLACE MACRO trains_scales(scenario) AS coalesce(scenario.adapter = 'llama-adapter-v2', false);

-- (norms are trained beside scales)
CREATE OR REPLACE MACRO has_frozen_norms(scenario) AS scenario.is_adapter AND NOT trains_scales(scenario);

CREATE OR REPLACE MACRO prompted_share(model) AS model.prompted_layer_count / greatest(model.layer_count, 1);

CREATE OR REPLACE MACRO prompt_elements(model, scenario) AS
    model.prompted_layer_count * (model.prompt_tokens * model.hidden_size + model.head_max)
    + iif(trains_scales(scenario), 2 * (model.linear_output_sum + logit_columns(model, scenario))
        + iif(model.norm_kind = 'layer', 2, 1) * (model.norm_width_sum + model.hidden_size), 0);

CREATE OR REPLACE MACRO kept_by_prompts(model, scenario) AS
    scenario.compute_bytes * model.context_sum * prompted_share(model)
    + model.prompted_layer_count * (4 * model.head_max + scenario.compute_bytes * model.prompt_mask_columns)
    + iif(trains_scales(scenario), scenario.compute_bytes * model.linear_output_sum, 0);

-- What is not kept: of the first layer with a prompt its norm, its own attention but for the queries, which the
-- prompt's reads too, and the feed-forward block that stands beside it. With scales the first norm's input alone, and
-- where the embedding has a norm of its own, whose gradient every layer takes part in (packed.sql), that of the first
-- layer. (Prompts have no dropout.)
CREATE OR REPLACE MACRO kept_by_prompted_layers(model, scenario, sums) AS CASE
    WHEN trains_scales(scenario) THEN sums.layers - iif(model.norm_form = 'layer', 0, 4 * model.hidden_size)
    WHEN norms_embedding(scenario) THEN sums.layers - scenario.norm_bytes * model.hidden_size
    ELSE (sums.layers - kept_by_prompts(model, scenario)) * prompted_share(model) + kept_by_prompts(model, scenario)
        - scenario.norm_bytes * model.hidden_size - iif(model.is_block_parallel, sums.block, 0)
        - scenario.compute_bytes * iif(model.has_grouped_heads, 3 * model.query_max,
            2 * model.query_max + 3 * model.key_max) - 4 * model.head_max
END;

-- What packed layers that hold on to their inputs have of them: of the prompted layers, or of all and the head.
CREATE OR REPLACE MACRO packed_inputs_prompted(model, scenario) AS scenario.compute_bytes * iif(trains_scales(scenario),
    model.norm_output_sum + model.context_sum + block_width_sum(model) + model.hidden_size,
    (model.norm_output_sum + model.context_sum + block_width_sum(model)) * prompted_share(model)
        - iif(model.is_block_parallel, model.hidden_size + block_width_sum(model) / greatest(model.layer_count, 1), 0));
