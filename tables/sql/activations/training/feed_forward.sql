-- What one feed-forward block keeps for the backward pass, dense or of routed experts, and what its own gradients take.
--
--   kept = bytes × tensors of the block's width × (width + routed copies × the experts' width) + what routing keeps
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: that dense layers before the first with experts keep nothing where experts alone are adapted (counted as
--   if they did: 2.2 % too much in DeepSeek V2 Lite).

-- Tensors of the width of a plain block between its projections, in units of the compute precision: a kernel keeps its
-- input and the result feeds the next projection; formulas in Python keep their steps (activation.csv).
CREATE OR REPLACE MACRO activation_tensors(block, scenario, is_cast) AS CASE
    -- (an engine with model code of its own runs kernels of PyTorch)
    WHEN scenario.joins_projections THEN least(block.kept_tensors, 2)
    WHEN is_cast THEN block.kept_tensors_amp
    WHEN scenario.is_adapter THEN block.kept_tensors_adapter
    ELSE block.kept_tensors
END;

-- What is worked with while an activation is differentiated, in the same units: two gradients, or what a formula in
-- Python makes of its steps.
CREATE OR REPLACE MACRO gradient_tensors(block, scenario) AS CASE
    WHEN scenario.joins_projections THEN 2
    -- (a prepared base hands the function fp32: its gradient is not cast; reasoned, not counted, and above what a card
    -- held of such a step)
    WHEN is_quantised_base(scenario) THEN greatest(2, block.gradient_tensors_amp - 1)
    WHEN scenario.precision = 'amp' THEN block.gradient_tensors_amp
    ELSE block.gradient_tensors
END;

-- Routed experts whose inputs their adapters keep: each expert's own, or those that a GPU's experts share.
CREATE OR REPLACE MACRO keeps_expert_inputs(scenario) AS scenario.has_adapted_experts OR scenario.has_shared_adapters;

-- Gated blocks keep two more: the other projection and the product. Frozen weights need no copy of their input.
CREATE OR REPLACE MACRO block_tensors(block, model, scenario, is_cast) AS
    activation_tensors(block, scenario, is_cast) + iif(block.is_gated, 2, 0) + model.feed_forward_extra
    -- (a fused kernel works the activation out again from its input)
    - iif(scenario.has_fused_kernels AND block.is_gated, 1, 0)
    - iif(scenario.is_adapter AND (block.is_gated OR block.activation <> 'relu')
        AND NOT (block.expert_count > 0 AND keeps_expert_inputs(scenario)), 1, 0);

-- copies of a token that experts run: those of the router, or all
CREATE OR REPLACE MACRO routed_copies(block, model) AS
    iif(model.runs_all_experts, block.expert_count, block.experts_per_token);

-- Bytes of an element inside experts that run in groups: autocast knows none of their products, so over weights in
-- fp32 all of it is in fp32, as QLoRA's preparation leaves those that are not packed (the router's products and a
-- shared expert's are known).
CREATE OR REPLACE MACRO has_fp32_experts(model, scenario) AS
    (is_autocast(scenario) OR is_prepared(scenario)) AND NOT model.runs_all_experts;
CREATE OR REPLACE MACRO expert_compute_bytes(model, scenario) AS
    iif(has_fp32_experts(model, scenario), 4, scenario.compute_bytes);

-- Copies of the hidden state that a router which is trained keeps (in fp32, or autocast's), and those that autocast
-- makes for each product of a shared expert; of one with a gate its output too.
CREATE OR REPLACE MACRO kept_beside_experts(block, model, scenario) AS model.hidden_size * iif(scenario.is_adapter, 0,
    iif(is_autocast(scenario), 2 + iif(block.width > 0, 4 + iif(model.has_shared_expert_gate, 2, 0), 0),
        model.router_input_bytes)
    + iif(model.has_shared_expert_gate, scenario.compute_bytes, 0));

-- elements of weights that autocast copies: those of products that it knows (experts in groups are none)
CREATE OR REPLACE MACRO cast_elements(model) AS
    model.linear_elements + iif(model.runs_all_experts, model.expert_elements, 0);
-- of a base that is not trained: all where it is in fp32; of a packed one what bitsandbytes leaves, which peft casts to
-- fp32
CREATE OR REPLACE MACRO cast_base_elements(model, scenario) AS CASE
    WHEN is_cast_base(scenario) THEN cast_elements(model)
    WHEN is_quantised_base(scenario) AND scenario.precision = 'amp' THEN model.own_linear_elements
    ELSE 0
END;

-- One layer. Each routed copy of a token keeps the block's tensors, its input and its output, and some forty bytes of
-- indices. First what a tensor of the block's width takes, in the dense part of a block and in its experts.
CREATE OR REPLACE MACRO dense_tensor_bytes(block, model, scenario) AS
    iif(is_quantised_base(scenario), 4, scenario.compute_bytes)
        * block_tensors(block, model, scenario, scenario.precision = 'amp')
    -- dropout's mask, and its result where the activation keeps its own
    + iif(model.has_block_dropout, 1 + iif(block.activation = 'relu' AND NOT scenario.is_adapter,
        scenario.compute_bytes, 0), 0);
CREATE OR REPLACE MACRO expert_tensor_bytes(block, model, scenario) AS iif(has_fp32_experts(model, scenario),
    4 * block_tensors(block, model, scenario, false), dense_tensor_bytes(block, model, scenario));
CREATE OR REPLACE MACRO kept_by_feed_forward(block, model, scenario) AS
    dense_tensor_bytes(block, model, scenario) * block.width
    + expert_tensor_bytes(block, model, scenario) * routed_copies(block, model) * block.expert_width
    + iif(block.expert_count > 0,
        (expert_compute_bytes(model, scenario)
            * iif(scenario.is_adapter AND NOT keeps_expert_inputs(scenario), 1, 2)
            -- (all experts' copies are weighed before they are cast for the product)
            + iif(model.runs_all_experts, scenario.residual_bytes - scenario.compute_bytes, 0))
                * routed_copies(block, model) * model.hidden_size
        + iif(scenario.has_shared_adapters, 2 * adapter_compute_bytes(scenario) * scenario.lora_rank
            * routed_copies(block, model), 0)
        + 40 * routed_copies(block, model) + 4 * block.expert_count
        + kept_beside_experts(block, model, scenario), 0);

-- Per token, backward inside the feed-forward block: the gradients of two tensors of its width, and of routed inputs
-- and outputs; and of the input copy of an adapter in fp32.
CREATE OR REPLACE MACRO feed_forward_gradients(block, model, scenario) AS
    CASE
        -- the gated product's gradient with those of both its factors (its own copy is gone where it was kept), or with
        -- that of the output
        WHEN block.expert_count > 0 AND model.runs_all_experts THEN scenario.compute_bytes * block.expert_count
            * greatest(iif(scenario.is_adapter, 3, 2) * block.expert_width, block.expert_width + model.hidden_size)
        ELSE scenario.compute_bytes * gradient_tensors(block, scenario) * block.width
            + 2 * expert_compute_bytes(model, scenario) * block.experts_per_token
                * (block.expert_width + iif(block.expert_count > 0, model.hidden_size, 0)) END
    + iif(scenario.is_adapter AND adapts_all_linear(scenario) AND NOT scenario.has_adapted_experts
        AND adapter_compute_bytes(scenario) > scenario.compute_bytes,
        adapter_compute_bytes(scenario) * block.width, 0);

-- The same of experts that run in groups, beside all that the block keeps: `start`, the gradient of their sum, spread
-- over the copies and put in their order; `down`, while the way down is differentiated, or the gated product; `end`,
-- while gate and up are, when only their input and its gradient are left of the block, and all gradients of weights are
-- there. `plain`: of what is no group.
CREATE OR REPLACE MACRO has_groups(block, model) AS block.expert_count > 0 AND NOT model.runs_all_experts;
CREATE OR REPLACE MACRO block_moments(block, model, scenario, gradients) AS {
    'plain': (gradients - iif(has_groups(block, model), 2 * expert_compute_bytes(model, scenario)
        * block.experts_per_token * (block.expert_width + model.hidden_size), 0))::DOUBLE,
    'start': iif(has_groups(block, model), 3.0 * greatest(expert_compute_bytes(model, scenario), model.routing_bytes)
        * block.experts_per_token * model.hidden_size
        -- (what the block read and gives are there, which frozen weights do not keep)
        + iif(scenario.is_adapter, 2 * scenario.compute_bytes * model.hidden_size, 0), NULL),
    'down': iif(has_groups(block, model), expert_compute_bytes(model, scenario) * block.experts_per_token * greatest(
        block.expert_width, iif(block.is_gated, 3, 2) * block.expert_width - model.hidden_size
            - iif(scenario.is_adapter AND NOT keeps_expert_inputs(scenario), 0, block.expert_width))::DOUBLE, NULL),
    'end': iif(has_groups(block, model), block.experts_per_token * block.expert_width
        * (iif(block.is_gated, 2, 1) * expert_compute_bytes(model, scenario)
            - expert_tensor_bytes(block, model, scenario))::DOUBLE, NULL)};

-- What the first block with experts does not keep where they alone are adapted: a shared expert, and outputs for the
-- gradients of the router's weights.
CREATE OR REPLACE MACRO beside_experts(block, model, scenario) AS iif(block.expert_count > 0,
    scenario.compute_bytes * ((block_tensors(block, model, scenario, scenario.precision = 'amp') - 1) * block.width
        + routed_copies(block, model) * model.hidden_size), 1e30);
