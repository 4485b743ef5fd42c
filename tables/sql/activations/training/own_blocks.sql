-- What a layer holds while it is differentiated where an engine runs it, with its adapters, in functions of its own
-- (Unsloth's of Llama, Mistral and Qwen3; engine_gap `block`): in 16 bits throughout, whatever the adapters are in.
--
--   layer = bytes × T × (6 hidden + (3 + n) query + (2 + n) key) + bytes × padded rows × (2 query + 2 key)
--           + T × statistics + the greatest of
--               bytes × T × 6 feed-forward
--               bytes × T × (6 query + 2 key)                                (inside attention, a bound)
--               bytes × T × 3 feed-forward + 2 unpacked matrices             (without the compiler)
--   n = 1 where queries and keys have norms of their own, else 0
--
-- The tensors: of the hidden state what the first layer reads (a leaf, held to the end), what the layer gives and its
-- gradient, what both norms give, and the sum between them; queries, keys and values as attention reads them, what it
-- gives and that without padding, and queries and keys before their norms; gate, way up and the product's gradient
-- beside the product and the gradients of gate and way up, which PyTorch's compiler writes into tensors of their own
-- (run without it they take the places of three, and the unpacked matrix of a packed base stays and is there twice).
-- Inside attention, when the block's are gone: gradients of all of these, padded and not, and its kernel's sum in fp32.
-- That is more than was counted, by 5 to 29 % of a layer: some of what it sums is gone by then, and how much differs
-- from shape to shape, since the compiler keeps a tensor that nothing reads for a later one of its size. Of 506 models
-- of these classes one, of 80M parameters, has a block that is so narrow.
--   Moments: the last layer, whose input never went to the host, before there are gradients, and the first, beside
-- those of all adapters.
--
-- Units: bytes per GPU, T tokens. Source: unsloth-own-blocks, the code that PyTorch 2.11.0's compiler writes for such a
--   layer, its tensors counted as it makes and frees them (tests/oracle/count_unsloth_blocks.py prints them for any
--   shape), and the padding by which cuDNN attends on Hopper; held to tests/oracle/unsloth_blocks.csv and card.csv.
-- Not covered: adapters of other than all linear layers, or with dropout or DoRA; windows, biases, routed experts,
--   several GPUs: they are counted as Transformers'.

CREATE OR REPLACE MACRO has_own_blocks(model, engine_id) AS
    coalesce(list_contains(model.block_engines, engine_id), false);
CREATE OR REPLACE MACRO runs_own_blocks(model, scenario) AS coalesce(has_own_blocks(model, scenario.engine_id)
    AND scenario.is_adapter AND scenario.adapter = 'lora' AND NOT scenario.has_adapter_dropout
    AND NOT coalesce(scenario.trains_embeddings, false) AND adapts_all_linear(scenario)
    AND scenario.compute_bytes = 2 AND scenario.checkpointing = 'full' AND scenario.loss = 'fused'
    AND scenario.attention = 'flash' AND scenario.gpu_count = 1 AND model.expert_elements = 0
    AND model.layer_bias_sum = 0 AND len(model.mixers) = 1 AND len(model.blocks) = 1
    AND model.mixers[1].window_tokens IS NULL AND model.blocks[1].is_gated, false);

-- Rotations in 16 bits of the positions that Unsloth makes at once, or of all that a micro-batch has.
CREATE OR REPLACE MACRO own_rotation_rows(model, scenario) AS
    greatest(least(4 * scenario.unsloth_rotation_step, model.max_context_tokens),
        scenario.unsloth_rotation_step * ceil(scenario.context_tokens / scenario.unsloth_rotation_step));
CREATE OR REPLACE MACRO own_rotation_bytes(model, scenario, row_count) AS
    2 * scenario.compute_bytes * model.head_dim_max * row_count;

-- Per token: statistics of attention and norms in fp32, products of an adapter's rank, and what the rows are told by.
CREATE OR REPLACE MACRO own_statistics(layer, scenario) AS
    4 * (layer.head_count + 2 + iif(layer.has_qk_norm, layer.head_count + layer.kv_head_count, 0))
    + 2 * scenario.compute_bytes * scenario.lora_rank + 3 * 8;

CREATE OR REPLACE MACRO own_block_kept(layer, model, scenario) AS
    step_tokens(scenario) * (scenario.compute_bytes * (6 * model.hidden_size
        + (3 + layer.has_qk_norm::INT) * layer.query_width + (2 + layer.has_qk_norm::INT) * layer.key_width)
        + own_statistics(layer, scenario))
    + scenario.sequences * scenario.unsloth_padded_rows
        * (2 * scenario.compute_bytes * (layer.query_width + layer.key_width) + 4 * layer.head_count);

-- Without the compiler packed rows tell their positions, and all rotations that the model has are made.
CREATE OR REPLACE MACRO own_block_work(layer, block, model, scenario) AS greatest(
    step_tokens(scenario) * scenario.compute_bytes
        * greatest(6 * block.width, 6 * layer.query_width + 2 * layer.key_width),
    step_tokens(scenario) * scenario.compute_bytes * 3 * block.width + 2 * scenario.dequantised
        + own_rotation_bytes(model, scenario, greatest(coalesce(model.max_context_tokens, 0)
            - own_rotation_rows(model, scenario), 0)));

-- From step to step: rotations, buffers that inputs come and go by, and the place of one unpacked matrix.
CREATE OR REPLACE MACRO own_standing_bytes(model, scenario) AS iif(scenario.has_own_blocks,
    own_rotation_bytes(model, scenario, own_rotation_rows(model, scenario)) + scenario.dequantised
    + step_tokens(scenario) * iif(inputs_in_host(model, scenario, scenario.sums) > 0,
        (scenario.unsloth_inputs_on_card - 1) * scenario.compute_bytes * model.hidden_size, 0), 0);

-- Gradients that stand are there in the last layer too, and a layer's own beside them.
CREATE OR REPLACE MACRO own_gradients(model, scenario, stage) AS
    iif(scenario.has_standing_gradients, stage.gradients * (1 + 1 / model.layer_count)
        + step_tokens(scenario) * scenario.compute_bytes * model.hidden_size,
        greatest(stage.gradients, step_tokens(scenario) * scenario.compute_bytes * model.hidden_size));

CREATE OR REPLACE MACRO own_block_moment(model, scenario, stage) AS
    held_throughout(stage) + own_rotation_bytes(model, scenario, own_rotation_rows(model, scenario))
    + step_tokens(scenario) * (inputs_on_card(model, scenario, scenario.sums)
        - scenario.compute_bytes * model.hidden_size)
    + own_gradients(model, scenario, stage)
    + own_block_kept(model.mixers[1], model, scenario)
    + own_block_work(model.mixers[1], model.blocks[1], model, scenario);

-- The loss: what the first and the last layer read, what the last norm reads and gives and its gradient; of a chunk its
-- logits, the rows that it reads and their gradient in fp32 and in 16 bits.
CREATE OR REPLACE MACRO own_loss_moment(model, scenario, stage) AS
    held_throughout(stage) + own_rotation_bytes(model, scenario, own_rotation_rows(model, scenario))
    + scenario.dequantised + standing_gradients(model, scenario, stage)
    + step_tokens(scenario) * (inputs_on_card(model, scenario, scenario.sums)
        + 4 * scenario.compute_bytes * model.hidden_size + 8 * 8)
    + fused_chunk_tokens(model, scenario) * (4 + 2 * scenario.compute_bytes) * model.hidden_size
    + loss_work(model, scenario, 0);
