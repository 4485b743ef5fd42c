-- What the kernels of vLLM add to the weights that they take.
--
-- Units: bytes per GPU. Source: constant.csv (vllm_mxfp4_*, mxfp4_repack_ratio). Not covered: kernels of other engines,
-- formats other than MXFP4.

-- What the kernels of vLLM add to routed experts in MXFP4: every expert's hidden size, and its width on one GPU, are
-- rounded up to what the kernel of the card takes; values, scales and all. Counted are Marlin's multiples, which all
-- cards run that have no kernel of their own; those of data center Blackwell and of AMD's cards go into the band.
-- `stored` stays what the checkpoint holds: there it is overhead.
CREATE OR REPLACE MACRO rounded_up(size, multiple) AS multiple * ceil(size / multiple);

CREATE OR REPLACE MACRO holds_rounded_experts(model, scenario) AS
    scenario.engine_id = 'vllm' AND scenario.phase_id = 'inference'
        AND coalesce(iif(scenario.dtype_id = 'stored', model.stored_format, scenario.dtype_id) = 'mxfp4', false);

CREATE OR REPLACE MACRO expert_rounding_bytes(model, scenario, constants, width_multiple) AS
    iif(holds_rounded_experts(model, scenario),
        constants.mxfp4_element_bits / 8 * scenario.stage_share
            * coalesce(list_sum(list_transform(model.blocks, lambda block: block.layer_count
                * ceil(block.expert_count / scenario.expert_parallel) * iif(block.is_gated, 3, 2) * (
            rounded_up(model.hidden_size, constants.vllm_mxfp4_hidden_multiple)
                * rounded_up(block.expert_width / scenario.expert_tensor_parallel, width_multiple)
            - model.hidden_size * block.expert_width / scenario.expert_tensor_parallel))), 0), 0);

CREATE OR REPLACE MACRO kernel_weights_bytes(model, scenario, constants) AS iif(scenario.dtype_id = 'stored', 0,
    ceil(expert_rounding_bytes(model, scenario, constants, constants.vllm_mxfp4_width_multiple)))::BIGINT;

CREATE OR REPLACE MACRO kernel_overhead_bytes(model, scenario, constants) AS
    iif(scenario.dtype_id = 'stored', expert_rounding_bytes(model, scenario, constants,
        constants.vllm_mxfp4_width_multiple), 0);

-- While a checkpoint loads, Triton's kernels on Hopper lay the gate and up matrices of all experts of a layer out anew
-- in one go, beside all weights. What of these temporaries stays with the allocator vLLM does not count: 0.14.1 ran out
-- of an H100 with 64.4 GiB of gpt-oss-120b loaded, short prompts and one request (vllm-project/vllm issue 33155).
-- Nobody knows how much stays, so that the band takes them whole. (Of DeepSeek-V4 no version takes Triton's kernels:
-- vllm-deepseek-v4.)
CREATE OR REPLACE MACRO repacked_bytes(model, scenario, constants) AS
    iif(holds_rounded_experts(model, scenario) AND NOT has_pool(model, scenario.engine_id),
        constants.mxfp4_repack_ratio * constants.mxfp4_element_bits / 8
            * coalesce(list_max(list_transform(model.blocks, lambda block: ceil(block.expert_count
                / scenario.expert_parallel) * iif(block.is_gated, 2, 1) * model.hidden_size * block.expert_width
                / scenario.expert_tensor_parallel)), 0), 0);

CREATE OR REPLACE MACRO kernel_spread_bytes(model, scenario, constants) AS
    expert_rounding_bytes(model, scenario, constants, constants.vllm_mxfp4_width_multiple_most)
        - expert_rounding_bytes(model, scenario, constants, constants.vllm_mxfp4_width_multiple)
        + repacked_bytes(model, scenario, constants);
