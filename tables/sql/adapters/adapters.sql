-- Adapters of LoRA and QLoRA: two thin matrices for every adapted linear layer.
--
--   adapter elements = rank × Σ over adapted layers (in_features + out_features)
--     + dora: Σ over adapted layers out_features (the magnitudes)
--
-- Units: elements; adapters_bytes in bytes. Source: the LoRA paper (A is rank × in, B is out × rank) over the real
--   shapes in `tensor`; `attention` adapts attention's projections, `query-value` those of queries and values (peft's
--   default for many models; where they are one matrix with the keys, that matrix), `all-linear` every linear layer but
--   head and routers, and in models with routed experts these too: fused experts have adapters of their own in peft
--   0.21.2, with twice the rank where gate and up are one matrix, and so has the router; shared experts and dense
--   layers then stay as they are (over a packed base too, whose routed experts nobody packs). `linear-layers` adapts
--   what is a linear layer of its own, shared experts and dense layers too, and no fused expert: what programs do that
--   tell peft (before 0.19) the names of such layers. `experts` adapts the routed experts alone, as peft's
--   `target_parameters` takes them: both fused matrices with the rank that was asked for; `attention-experts` both
--   they and attention's projections. `all-linear-head` adapts the head too, in engines of which that was counted.
-- Adapters are fp32 unless precision is pure (peft's autocast_adapter_dtype), or a program puts those over a packed
-- base into 16 bits (packed_adapter_bytes of its row).
-- trains_embeddings: copies of embedding and head are trained beside them (modules_to_save), in the precision that the
--   base has.
-- Not covered: adapters of embeddings and biases.

CREATE OR REPLACE MACRO adapts_head(scenario) AS coalesce(scenario.lora_targets = 'all-linear-head', false);
CREATE OR REPLACE MACRO adapts_all_linear(scenario) AS
    coalesce(scenario.lora_targets IN ('all-linear', 'linear-layers'), false) OR adapts_head(scenario);

CREATE OR REPLACE MACRO adapts_routed(scenario) AS
    coalesce(scenario.lora_targets IN ('experts', 'attention-experts'), false);

CREATE OR REPLACE MACRO has_adapted_experts(model, scenario, run) AS model.expert_elements > 0
    AND NOT coalesce(run.shares_expert_adapters, false)
    AND (NOT scenario.has_packed_experts AND adapts_all_linear(scenario) AND scenario.lora_targets <> 'linear-layers'
            AND model.are_experts_adapted
        OR adapts_routed(scenario) AND (scenario.phase_id = 'lora' OR scenario.has_packed_experts));

-- Megatron-Bridge: the layers that hold a GPU's routed experts have one adapter each, in whatever model.
CREATE OR REPLACE MACRO shares_adapters(model, scenario, run) AS coalesce(run.shares_expert_adapters
    AND scenario.phase_id IN ('lora', 'qlora') AND model.expert_count_max > 0
    AND (adapts_all_linear(scenario) AND scenario.lora_targets <> 'linear-layers' OR adapts_routed(scenario)), false);
CREATE OR REPLACE MACRO shared_adapter_elements(model, scenario) AS
    iif(scenario.has_shared_adapters, model.lora_routed_elements / model.expert_count_max, 0);

-- of the adapted linear layers that are not routed experts: elements per rank, inputs, and how many layers
CREATE OR REPLACE MACRO of_targets(scenario, attention, query_value, linear) AS CASE
    WHEN scenario.lora_targets = 'experts' THEN 0
    WHEN scenario.lora_targets = 'query-value' THEN query_value
    WHEN scenario.lora_targets IN ('attention', 'attention-experts') OR scenario.has_adapted_experts THEN attention
    ELSE linear
END;

-- An engine with a matrix of its own for queries, keys and values gives each of them an adapter, and gate and up one
-- each, also where the model's class has one matrix: so many more in a layer.
CREATE OR REPLACE MACRO split_adapters(model, scenario) AS iif(scenario.joins_projections, model.layer_count * (
    iif(model.has_fused_qkv, iif(scenario.lora_targets = 'query-value', 1, 2), 0)
    + iif(model.has_fused_gate AND adapts_all_linear(scenario), 1, 0)), 0);
CREATE OR REPLACE MACRO has_joined_query(model, scenario) AS model.has_fused_qkv AND NOT scenario.joins_projections;

-- Adapters leave what a model sees with as it is where a program freezes it (of the classes that it lists), and where
-- a program takes names, and no layer of the tower has one of these.
CREATE OR REPLACE MACRO takes_names(scenario) AS
    coalesce(scenario.program_base.tower_training IN ('named', 'adapted'), false);
CREATE OR REPLACE MACRO leaves_tower(model, scenario) AS coalesce(scenario.program_base.tower_training IS NOT NULL
    AND iif(takes_names(scenario),
        model.tower_training.has_own_names AND scenario.lora_targets IN ('attention', 'query-value'),
        list_contains(string_split(model.tower_training.frozen_by, ' '), scenario.program)), false);
CREATE OR REPLACE MACRO left_elements(model, scenario) AS iif(leaves_tower(model, scenario),
    of_targets(scenario, 0, 0, model.lora_linear_elements - model.lora_text_elements), 0);

CREATE OR REPLACE MACRO adapted_elements(model, scenario) AS
    of_targets(scenario, model.lora_attention_elements, model.lora_query_value_elements, model.lora_linear_elements)
    + split_adapters(model, scenario) * model.hidden_size
    - iif(scenario.joins_projections AND model.has_fused_qkv AND scenario.lora_targets = 'query-value',
        model.layer_count * model.key_max, 0);

CREATE OR REPLACE MACRO adapted_inputs(model, scenario) AS
    of_targets(scenario, model.lora_attention_input_sum, model.lora_query_value_input_sum, model.lora_linear_input_sum)
    + split_adapters(model, scenario) * model.hidden_size;

CREATE OR REPLACE MACRO adapted_modules(model, scenario) AS
    of_targets(scenario, model.lora_attention_module_count, model.lora_query_value_module_count,
        model.lora_linear_module_count) + split_adapters(model, scenario);

-- Layers that are trained: all, or the last ones of a program that trains no more by itself.
CREATE OR REPLACE MACRO trained_layers(model, scenario) AS
    least(coalesce(scenario.program_base.last_layers, model.layer_count), model.layer_count);
CREATE OR REPLACE MACRO of_trained_layers(elements, model, scenario) AS iif(
    scenario.program_base.last_layers IS NULL, elements,
    elements * trained_layers(model, scenario) / greatest(model.layer_count, 1));

CREATE OR REPLACE MACRO adapter_elements(model, scenario) AS of_trained_layers(CASE
    WHEN scenario.phase_id NOT IN ('lora', 'qlora') THEN 0
    WHEN is_prompted(scenario) THEN prompt_elements(model, scenario)
    ELSE scenario.lora_rank * (adapted_elements(model, scenario) - left_elements(model, scenario) + CASE
        WHEN NOT scenario.has_adapted_experts THEN 0
        WHEN adapts_routed(scenario) THEN model.lora_routed_elements
        ELSE model.lora_expert_elements
    END + shared_adapter_elements(model, scenario)
        + iif(adapts_head(scenario), model.hidden_size + logit_columns(model, scenario), 0))
    + iif(scenario.adapter = 'dora', adapted_elements(model, scenario) - adapted_inputs(model, scenario), 0)
END, model, scenario)::BIGINT;

CREATE OR REPLACE MACRO adapter_bytes_each(scenario) AS
    iif(scenario.precision = 'pure', scenario.compute_bytes, coalesce(scenario.packed_adapter_bytes, 4));

-- Copies of embedding and head that are trained besides: in fp32 where the base of the engine is.
CREATE OR REPLACE MACRO saved_elements(model, scenario) AS
    iif(coalesce(scenario.trains_embeddings, false), model.input_elements + model.output_elements, 0);

CREATE OR REPLACE MACRO saved_bytes_each(scenario) AS iif(scenario.prepares_base, 4, 2);

CREATE OR REPLACE MACRO saved_bytes(model, scenario) AS saved_elements(model, scenario) * saved_bytes_each(scenario);

CREATE OR REPLACE MACRO saved_head_bytes(model, scenario) AS
    iif(coalesce(scenario.trains_embeddings, false), model.output_elements * saved_bytes_each(scenario), 0);
