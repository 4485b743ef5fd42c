-- What one feed-forward block keeps for the backward pass, dense or of routed experts, and what its own gradients take.
--
--   kept = bytes × tensors of the block's width × (width + routed copies × the experts' width) + what routing keeps
--
-- Units: bytes per GPU, or per token of one layer. Source: transformers-step-oracle, read as kept.sql says.
-- Not covered: that dense layers before the first with experts keep nothing where experts alone are adapted (counted as if they did: 2.2 % too
--   much in DeepSeek V2 Lite).

-- Tensors of the width of a plain block between its projections, in units of the compute precision: a kernel keeps its input and the
-- result feeds the next projection; formulas in Python keep their steps (under autocast three of them in fp32).
CREATE OR REPLACE MACRO activation_tensors(activation, x) AS CASE
    WHEN activation = 'relu' THEN 1
    WHEN activation IN ('gelu_new', 'gelu_fast', 'gelu_python_tanh', 'gelu_new_gated') THEN iif(x.precision = 'amp', 8, 5)
    WHEN activation = 'quick_gelu' THEN 3
    WHEN activation = 'relu2' AND x.precision = 'amp' THEN 4
    WHEN activation = 'xielu' THEN CASE WHEN x.precision = 'amp' THEN 8.5 WHEN x.is_adapter THEN 4.5 ELSE 6 END
    ELSE 2
END;

-- Gated blocks keep two more: the other projection and the product. Frozen weights need no copy of their input.
CREATE OR REPLACE MACRO block_tensors(b, m, x) AS
    activation_tensors(b.activation, x) + iif(b.is_gated, 2, 0) + m.feed_forward_extra
    -- (a fused kernel works the activation out again from its input)
    - iif(x.has_fused_kernels AND b.is_gated, 1, 0)
    - iif(x.is_adapter AND (b.is_gated OR b.activation <> 'relu') AND NOT (b.experts > 0 AND x.has_adapted_experts), 1, 0);

-- copies of a token that experts run: those of the router, or all
CREATE OR REPLACE MACRO routed_copies(b, m) AS iif(m.runs_all_experts, b.experts, b.routed);

-- elements of weights that autocast copies: those of products that it knows (experts in groups are none)
CREATE OR REPLACE MACRO cast_elements(m) AS m.linear_elements + iif(m.runs_all_experts, m.expert_elements, 0);

-- One layer. Each routed copy of a token keeps the block's tensors, its input and its output, and some forty bytes of indices.
CREATE OR REPLACE MACRO kept_by_feed_forward(b, m, x) AS
    (iif(is_prepared(x), 4, x.compute_bytes) * block_tensors(b, m, x)
        -- dropout's mask, and its result where the activation keeps its own
        + iif(m.has_block_dropout, 1 + iif(b.activation = 'relu' AND NOT x.is_adapter, x.compute_bytes, 0), 0)) * (b.width + routed_copies(b, m) * b.expert_width)
    + iif(b.experts > 0, (x.compute_bytes * iif(x.is_adapter AND NOT x.has_adapted_experts, 1, 2)
            -- (all experts' copies are weighed before they are cast for the product)
            + iif(m.runs_all_experts, x.residual_bytes - x.compute_bytes, 0)) * routed_copies(b, m) * m.hidden_size
        + 40 * routed_copies(b, m) + 4 * b.experts + m.router_input_bytes * m.hidden_size, 0);

-- Per token, backward inside the feed-forward block: the gradients of two tensors of its width, and of routed inputs and outputs; and of
-- the input copy of an adapter in fp32.
CREATE OR REPLACE MACRO feed_forward_gradients(b, m, x) AS
    x.compute_bytes * CASE
        -- the gated product's gradient with those of both its factors (its own copy is gone where it was kept), or with that of the output
        WHEN b.experts > 0 AND m.runs_all_experts THEN b.experts * greatest(iif(x.is_adapter, 3, 2) * b.expert_width, b.expert_width + m.hidden_size)
        ELSE 2 * (b.width + b.routed * (b.expert_width + iif(b.experts > 0, m.hidden_size, 0))) END
    + iif(x.is_adapter AND x.lora_targets = 'all-linear' AND NOT x.has_adapted_experts AND adapter_compute_bytes(x) > x.compute_bytes,
        adapter_compute_bytes(x) * b.width, 0);

-- What the first block with experts does not keep where they alone are adapted: a shared expert, and outputs for the gradients of the
-- router's weights.
CREATE OR REPLACE MACRO beside_experts(b, m, x) AS iif(b.experts > 0,
    x.compute_bytes * ((block_tensors(b, m, x) - 1) * b.width + routed_copies(b, m) * m.hidden_size), 1e30);
