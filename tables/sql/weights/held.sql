-- The weights that one GPU holds of a scenario.
--
-- Units: bytes per GPU. Source: `weight` (what tensor parallelism replicates, what lies in the layers), divided as the
-- engines do: norms, routers and towers stay whole on every rank; of latent attention data_parallel_rule, each engine
-- with its version.
-- Not covered: padding of the vocabulary, shards that an engine pads.

-- Which part of the weights one GPU holds in inference: tensor parallelism replicates norms, routers and towers; a
-- pipeline's worst stage has the most layers and the larger end (llama.cpp's last GPU has the head, tied or not, and at
-- least a layer less than its first, which has the tower: llama_model_base::load_tensors); of both, that stage's layers
-- are divided, and the towers are on every GPU.
CREATE OR REPLACE MACRO beside_layers_bytes(weight) AS
    weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes - weight.head_bytes;

-- Tables of which single rows are read, and that an engine leaves in the computer's memory (inputs_on_host).
CREATE OR REPLACE MACRO left_on_host_bytes(weight, scenario) AS
    iif(coalesce(scenario.inputs_on_host, false), coalesce(weight.input_bytes, 0), 0);

-- Latent attention in servers: what makes the latents is whole on every rank; what expands them is there once more in
-- 16 bits, always or where the weights are packed, since the engine multiplies it into queries and values.
CREATE OR REPLACE MACRO whole_latent_bytes(weight, model, scenario) AS
    (model.latent_input_elements * (weight.weights_bytes / model.parameter_count) + 2 * model.compressor_elements)
        * (1 - 1 / scenario.tensor_parallel);
CREATE OR REPLACE MACRO latent_copy_bytes(weight, model, scenario) AS
    iif(scenario.sharing.copies_latent OR 2 * weight.unquantised_bytes < weight.weights_bytes,
        2 * model.latent_output_elements / scenario.tensor_parallel, 0);
CREATE OR REPLACE MACRO server_latent_bytes(weight, model, scenario) AS
    iif(scenario.sharing IS NULL OR model.latent_input_elements = 0, 0,
        ceil((whole_latent_bytes(weight, model, scenario) + latent_copy_bytes(weight, model, scenario))
            * scenario.stage_share))::BIGINT;

-- What an engine never reads of the checkpoint (engine_part), none of it in the layers of what writes.
CREATE OR REPLACE MACRO has_no_towers(model, scenario) AS
    leaves_towers(model, scenario.engine_id) OR coalesce(scenario.text_only, false);
CREATE OR REPLACE MACRO left_out_bytes(weight, model, scenario) AS
    iif(has_no_towers(model, scenario), weight.tower_bytes, 0)
        + iif(leaves_speech(model, scenario.engine_id), weight.speech_bytes, 0)
        + iif(leaves_head(model, scenario.engine_id), weight.head_bytes, 0);
-- What is left of what every rank holds whole, and of what is neither layers nor embedding nor head.
CREATE OR REPLACE MACRO kept_replicated_bytes(weight, model, scenario) AS weight.replicated_bytes
    - iif(leaves_speech(model, scenario.engine_id), weight.speech_replicated_bytes, 0);
CREATE OR REPLACE MACRO kept_beside_bytes(weight, model, scenario) AS beside_layers_bytes(weight)
    - iif(has_no_towers(model, scenario), weight.tower_bytes, 0)
    - iif(leaves_speech(model, scenario.engine_id), weight.speech_bytes - weight.speech_end_bytes, 0);
CREATE OR REPLACE MACRO replicated_in_layers(weight, model, scenario) AS
    least(greatest(kept_replicated_bytes(weight, model, scenario) - kept_beside_bytes(weight, model, scenario), 0),
        weight.layer_bytes);

CREATE OR REPLACE MACRO sharded_weights(weight, model, scenario) AS CASE
    WHEN scenario.tensor_parallel * scenario.pipeline_parallel = 1
        THEN weight.weights_bytes - left_on_host_bytes(weight, scenario) - left_out_bytes(weight, model, scenario)
    WHEN scenario.pipeline_parallel = 1 THEN kept_replicated_bytes(weight, model, scenario)
        + ceil((weight.weights_bytes - left_out_bytes(weight, model, scenario)
            - kept_replicated_bytes(weight, model, scenario)) / scenario.tensor_parallel)
    WHEN scenario.reads_prompt = 'compute-buffer' THEN greatest(
        ceil(weight.layer_bytes * scenario.stage_share) + kept_beside_bytes(weight, model, scenario),
        ceil(weight.layer_bytes * (scenario.stage_share - 1 / model.layer_count))
            + greatest(weight.embedding_bytes - left_on_host_bytes(weight, scenario), weight.head_bytes))
    WHEN scenario.tensor_parallel = 1
        THEN ceil(weight.layer_bytes * scenario.stage_share)
            + greatest(weight.embedding_bytes - left_on_host_bytes(weight, scenario), weight.head_bytes,
            kept_beside_bytes(weight, model, scenario))
    ELSE ceil((replicated_in_layers(weight, model, scenario)
        + (weight.layer_bytes - replicated_in_layers(weight, model, scenario)) / scenario.tensor_parallel)
            * scenario.stage_share)
        + ceil(greatest(weight.embedding_bytes, weight.head_bytes) / scenario.tensor_parallel)
            + kept_beside_bytes(weight, model, scenario)
END::BIGINT;

-- Weights of a training step: the dtype's own where they are frozen or 16-bit, fp32 where autocast trains them; QLoRA's
-- preparation holds in fp32 what stays unquantised (embeddings, head, norms).
CREATE OR REPLACE MACRO loaded_weights(weight, scenario) AS
    weight.weights_bytes - iif(is_scored(scenario), weight.head_bytes, 0);
CREATE OR REPLACE MACRO trained_weights(weight, scenario) AS CASE
    -- (a head is unquantised)
    WHEN is_quantised_base(scenario) THEN loaded_weights(weight, scenario) + weight.unquantised_bytes
        - iif(is_scored(scenario), weight.head_bytes, 0)
    WHEN scenario.is_adapter THEN iif(scenario.has_wide_shards, 2, 1) * loaded_weights(weight, scenario)
    WHEN scenario.precision = 'amp' AND scenario.dtype_id <> 'fp32' THEN 2 * loaded_weights(weight, scenario)
    ELSE loaded_weights(weight, scenario)
END;

-- What bitsandbytes packs of a base, and what of that every GPU holds whole though the base is sharded or in the host's
-- memory: the scales, which are an attribute of the weight and no parameter, and all of it where it is stored as
-- integers, which Accelerate keeps out of FSDP2.
CREATE OR REPLACE MACRO is_packed_base_moved(scenario) AS scenario.phase_id = 'qlora'
    AND coalesce(scenario.keeps_quantisation_states, false)
    AND (scenario.sharding = 'zero3' OR scenario.offload = 'all');
CREATE OR REPLACE MACRO is_packed_base_whole(scenario) AS
    coalesce(scenario.packed_base = 'whole' AND scenario.scheme = 'fsdp2', false);
CREATE OR REPLACE MACRO packed_whole_bytes(weight, dtype, scenario) AS iif(is_packed_base_moved(scenario),
    (weight.weights_bytes - weight.unquantised_bytes) * iif(is_packed_base_whole(scenario), 1,
        coalesce(1 - floor(dtype.bits_per_weight) / dtype.bits_per_weight, 0)), 0);

-- While it is loaded every GPU holds it whole, prepared: Transformers puts it on the card that is current. Loaded to
-- the host, the last unit that is wrapped is the largest: embedding and head come to the GPU, are laid flat and cut.
CREATE OR REPLACE MACRO loaded_whole_bytes(weight, dtype, model, scenario) AS CASE
    WHEN NOT (is_packed_base_moved(scenario) AND coalesce(scenario.loads_packed_whole, false)) THEN NULL
    WHEN coalesce(scenario.packed_base, '') <> 'from-host' THEN trained_weights(weight, scenario)
    ELSE packed_whole_bytes(weight, dtype, scenario) + (2 + 1 / scenario.shard_count) * scenario.compute_bytes
        * (model.input_elements + model.output_elements)
END;

-- bytes of an element that a sharded layer is gathered in
CREATE OR REPLACE MACRO gather_bytes_each(weight, model, scenario) AS CASE
    WHEN scenario.phase_id = 'qlora' THEN weight.weights_bytes / model.parameter_count
    WHEN scenario.precision = 'amp' AND NOT scenario.is_adapter THEN 4
    ELSE scenario.compute_bytes
END;

-- A head of its own where an engine does not tie it to the embedding; what is saved where it packs that too.
CREATE OR REPLACE MACRO untied_head_bytes(model, scenario) AS
    iif(scenario.unties_head AND model.is_head_tied, scenario.compute_bytes * model.embedding_elements, 0);
CREATE OR REPLACE MACRO packs_head(scenario) AS scenario.packs_head AND (scenario.phase_id = 'qlora'
    OR scenario.phase_id = 'inference' AND scenario.dtype_id IN ('nf4', 'nf4-double'));
-- (and all linear layers where Transformers leaves them, being of a class of their own, and such an engine does not)
CREATE OR REPLACE MACRO has_own_linear(model) AS model.largest_linear_elements = 0;
CREATE OR REPLACE MACRO packed_head_saving(model, dtype, scenario) AS iif(packs_head(scenario),
    floor((scenario.compute_bytes - dtype.bits_per_weight / 8) * (head_matrix_elements(model, scenario)
        + iif(has_own_linear(model), model.linear_elements, 0))), 0);
