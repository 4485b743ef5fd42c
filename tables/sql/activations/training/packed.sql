-- What a packed base adds to a step of QLoRA: the matrix that is unpacked to multiply, inputs that
-- packed layers hold on to, and the norm behind LitGPT's embedding.
--
--   unpacked = 2 × elements of the largest matrix; 4 × where it is unpacked in fp16 and cast (casts_unpacked);
--              2 × elements of all matrices of a layer, and 3 × of the way down while it is made, where PyTorch's own
--              product keeps them for its backward pass (keeps_unpacked, AutoGPTQ: source autogptq-0.5)
--   held     = 2 × T × Σ widths of what packed layers read whose gradient is asked for, until the next step's loss
--
-- Units: bytes per GPU, or per token. Source: MatMul4Bit of bitsandbytes 0.42, whose context keeps its input as a plain
--   attribute (keeps_packed_inputs), and from 0.44 on does not; Lightning's BitsandbytesPrecision, which packs every
--   linear layer, the head too, from fp16; StableEmbedding in litgpt/finetune/lora.py (norms_embedding): sources
--   bitsandbytes-0.42 and litgpt-0.5.13, steps of both in tests/oracle/litgpt_peaks.csv.
-- Not covered: 8 bits, tensor parallelism of such heads, AutoGPTQ without checkpointing.

-- (queries, keys and values that are one matrix are unpacked as one)
CREATE OR REPLACE MACRO unpacked_bytes_each(scenario) AS iif(scenario.casts_unpacked, 4.0, 2.0);
CREATE OR REPLACE MACRO unpacked_bytes(model, scenario) AS iif(scenario.keeps_unpacked,
    2.0 * model.linear_elements / greatest(model.layer_count, 1), unpacked_bytes_each(scenario)
    * greatest(model.largest_linear_elements, iif(scenario.joins_projections, model.hidden_size * greatest(
        model.query_max + 2 * model.key_max, iif(has_own_linear(model), block_width_sum(model) / model.layer_count, 0)),
            0)) / scenario.tensor_parallel);

-- While the last matrix of a layer is taken apart, five bytes an element stand where two are kept; what the
-- feed-forward block's gradients take later may be more.
CREATE OR REPLACE MACRO last_unpacking_bytes(model, scenario, sums) AS iif(scenario.keeps_unpacked
    AND scenario.phase_id = 'qlora',
    greatest(3.0 * sums.down - step_tokens(scenario) * sums.block_gradients, 0), 0);
CREATE OR REPLACE MACRO unpacked_head_bytes(model, scenario) AS iif(packs_head(scenario),
    unpacked_bytes_each(scenario) * head_matrix_elements(model, scenario), 0);

-- Per token: what packed layers read. Norms' outputs (the first layer's needs no gradient), results of attention, of
-- feed-forward blocks between their projections, and what the head reads.
CREATE OR REPLACE MACRO keeps_packed_inputs(scenario) AS scenario.keeps_packed_inputs AND scenario.phase_id = 'qlora';
CREATE OR REPLACE MACRO block_width_sum(model) AS
    coalesce(list_sum(list_transform(model.blocks, lambda block: block.layer_count * block.width)), 0);
CREATE OR REPLACE MACRO packed_inputs(model, scenario) AS CASE
    WHEN NOT keeps_packed_inputs(scenario) THEN 0
    WHEN is_prompted(scenario) THEN packed_inputs_prompted(model, scenario)
    ELSE scenario.compute_bytes * (model.norm_output_sum + model.context_sum + block_width_sum(model))
END;

-- Of these, what a step keeps beyond what autograd saves without them: an adapter without dropout reads its layer's own
-- input. (LitGPT's results of attention are laid out anew for the projection.)
CREATE OR REPLACE MACRO kept_packed_inputs(model, scenario) AS CASE
    WHEN NOT keeps_packed_inputs(scenario) THEN 0
    WHEN is_prompted(scenario) THEN packed_inputs_prompted(model, scenario)
    ELSE scenario.compute_bytes * (iif(adapts_head(scenario) AND NOT scenario.has_adapter_dropout, 0, model.hidden_size)
        + CASE
        WHEN scenario.has_adapter_dropout
            THEN model.norm_output_sum - model.hidden_size + model.context_sum + block_width_sum(model)
        WHEN adapts_all_linear(scenario) THEN 0
        ELSE model.norm_output_sum - model.layer_count * model.hidden_size + block_width_sum(model)
            + iif(scenario.lora_targets = 'query-value', model.context_sum, 0)
    END)
END;

-- The norm behind the embedding: its input and statistics, and the first layer's norm, whose input now needs a
-- gradient.
CREATE OR REPLACE MACRO norms_embedding(scenario) AS scenario.norms_embedding AND scenario.phase_id = 'qlora';
CREATE OR REPLACE MACRO kept_by_embedding_norm(model, scenario) AS iif(norms_embedding(scenario),
    (scenario.compute_bytes + scenario.norm_bytes) * model.hidden_size + 8, 0);

-- The embedding's own gradient, which no optimizer takes and nothing clears.
CREATE OR REPLACE MACRO embedding_gradient_bytes(model, scenario) AS iif(norms_embedding(scenario),
    scenario.compute_bytes * model.embedding_elements, 0);
