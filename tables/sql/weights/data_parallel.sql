-- What one GPU holds of the weights where data-parallel ranks serve their own sequences and share the routed experts.
--
--   weights_bytes = what every rank holds whole + attention, embedding and the rest ÷ tensor_parallel
--     + routed experts × most experts of a GPU ÷ experts ÷ GPUs that divide one
--     + head, dense layers, shared experts ÷ tensor_parallel or all GPUs, as the engine has them
--     + of latent attention what a server has besides (held.sql)
--
-- Units: bytes per GPU, of the one that holds most. tensor_parallel is that of one data-parallel rank. Source:
--   data_parallel_rule, each engine with its version; expert parallelism alone (data_parallel 1) follows the same.
-- Not covered: what speaks where it is left out (its matrices count, what is whole of it does not), redundant experts
--   (none by default), buffers of DeepEP and the like (off by default), experts whose width a kernel rounds up in other
--   formats than MXFP4.

-- whether a scenario of inference is shared so
CREATE OR REPLACE MACRO is_spread(scenario) AS
    scenario.phase_id = 'inference' AND (coalesce(scenario.data_asked, 1) > 1 OR scenario.expert_parallel > 1);

-- routed experts of the GPU that has most, as a share of all
CREATE OR REPLACE MACRO expert_share_held(model, scenario) AS
    ceil(greatest(model.expert_count_max, 1) / scenario.expert_parallel) / greatest(model.expert_count_max, 1)
        / scenario.expert_tensor_parallel;

CREATE OR REPLACE MACRO shared_expert_shards(scenario) AS CASE
    WHEN scenario.sharing.is_shared_over_all THEN scenario.gpu_count
    WHEN scenario.expert_parallel > 1 AND scenario.data_parallel > 1 THEN 1
    ELSE scenario.tensor_parallel
END;

CREATE OR REPLACE MACRO spread_weights(weight, model, scenario) AS ceil(
    kept_replicated_bytes(weight, model, scenario) + weight.expert_bytes * expert_share_held(model, scenario)
    + weight.shared_expert_bytes / shared_expert_shards(scenario)
    + weight.feed_forward_bytes / iif(scenario.sharing.is_dense_over_all, scenario.gpu_count, scenario.tensor_parallel)
    + weight.head_bytes / iif(scenario.sharing.is_head_over_all, scenario.gpu_count, scenario.tensor_parallel)
    + (weight.weights_bytes - weight.replicated_bytes - weight.expert_bytes - weight.shared_expert_bytes
        - weight.feed_forward_bytes - weight.head_bytes) / scenario.tensor_parallel
    + whole_latent_bytes(weight, model, scenario)
    + latent_copy_bytes(weight, model, scenario))::BIGINT;
