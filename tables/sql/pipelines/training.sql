-- Training LoRA adapters of a diffusion pipeline's denoiser, as diffusers' example scripts do it, and of videos as
-- finetrainers does.
--
--   total = weights + adapters + gradients + optimizer states + activations + overhead
--   adapter elements = rank × Σ over adapted matrices (inputs + outputs)
--   activations = pictures × (tokens × hidden size × (Σ over blocks, what each keeps) + what lies there besides at the
--       end of the forward pass) + pictures × tokens × rank × adapted matrices × 2, no less than what the optimizer's
--       step takes;   tokens: those of the latents, and of the text where blocks read both
--   checkpointing full: a block keeps its input alone; the last one is worked out anew beside all inputs
--   base in 4 bits: the largest matrix of a block as it is unpacked lies beside the activations
--
--   cached     the denoiser alone on the card: latents and text were made before
--   resident   all parts stay on the card, and a step encodes its pictures and its text; the most of the three counts
--
-- Adapters are bf16 over a base in bf16 (of videos fp32), fp32 over one in fp16 or in 4 bits. lora_rank: 16 unless
-- somebody says otherwise (the scripts' own is 4). images: pictures or videos of a micro-batch. Units: bytes, one GPU.
--   Sources: denoiser_adapter.csv (targets of the scripts; of videos, finetrainers'), denoiser_training.csv: real steps
--   of diffusers' classes with peft under autocast, counted (tests/oracle/denoiser_training.csv), a base in 4 bits as
--   peft prepares it.
-- Not covered: text encoders that are trained; samples that a script makes while it trains; other targets, DoRA;
--   videos without checkpoints, and their encoding; fp32 without mixed precision; what adapters of a U-Net keep by
--   their rank (below 1 % at rank 64).

-- plan: whether queries and keys are normed, where the component has no plan of its own;
-- blocks of two streams and of one, by the role that each class has once in a block; in a U-Net a block is counted by
-- its tokens × width beside those of the first one
CREATE OR REPLACE TABLE denoiser_adapted AS
WITH denoiser AS (
    SELECT model_id, max(class_name) AS class_name, max(hidden_size) AS hidden_size
    FROM component WHERE token_pixels > 1 GROUP BY model_id
),
blocks AS (
    SELECT class_name, max(pair_role) AS pair_role, max(layer_role) AS layer_role, bool_or(is_joint) AS is_joint
    FROM denoiser_training GROUP BY class_name
),
named AS (
    SELECT tensor.*, denoiser.class_name, denoiser.hidden_size, blocks.pair_role, blocks.layer_role, blocks.is_joint,
        max(tensor.layer_count) OVER (PARTITION BY tensor.model_id) AS most_layers
    FROM denoiser JOIN blocks USING (class_name) JOIN tensor USING (model_id)
    WHERE tensor.tensor_class = 'denoiser'
),
adapted AS (
    SELECT named.*, adapter.role IS NOT NULL AS is_adapted,
        named.layer_count * coalesce(adapter.matrices_each, named.per_layer_count) AS matrices,
        iif(adapter.matrices_each IS NULL AND named.per_layer_count = 2, 2, 1) AS streams
    FROM named LEFT JOIN denoiser_adapter AS adapter ON adapter.class_name = named.class_name
        AND adapter.role = named.role AND named.operator = 'linear'
        AND is_of_layers(adapter.layers, named.layer_count, named.per_layer_count, named.most_layers)
)
SELECT model_id,
    coalesce(sum(matrices * (in_features + out_features)) FILTER (is_adapted), 0)::BIGINT AS adapter_elements,
    coalesce(sum(matrices / streams) FILTER (is_adapted AND is_joint), 0)::DOUBLE AS adapted_matrices,
    coalesce(max(layer_count) FILTER (role = pair_role AND per_layer_count = 2), 0)::BIGINT AS pair_layers,
    -- (where layers of the picture alone and of the text alone go before those of both, two make one)
    coalesce(sum(layer_count * per_layer_count / iif(is_joint, streams, 1) * hidden_size / out_features)
        FILTER (role = layer_role), 0)::DOUBLE AS single_layers,
    iif(coalesce(bool_or(role = 'norm' AND layer_count > 1), false), 'normed', 'plain') AS plan,
    -- (a second attention of the picture alone; keys of a picture that a video begins with, beside those of the text)
    coalesce(bool_or(role = pair_role AND layer_role IS NULL AND per_layer_count <> 2), false)
        OR coalesce(sum(layer_count * per_layer_count) FILTER (role = 'attention_k')
            > sum(layer_count * per_layer_count) FILTER (role = 'attention_q'), false) AS has_other_blocks
FROM adapted GROUP BY model_id;

-- what a step holds: part is the denoiser's pipeline_part, rule its row of denoiser_training, blocks that of
-- denoiser_adapted
CREATE OR REPLACE MACRO trained_tokens(part, rule, asked) AS
    stage_tokens(part, asked) + iif(rule.is_joint, asked.text_tokens, 0);
-- (adapters in fp32 over a base in fp16 read copies of their own)
CREATE OR REPLACE MACRO kept_elements(part, rule, blocks, asked, pairs, singles) AS
    trained_tokens(part, rule, asked) * part.hidden_size
        * (rule.pair_kept_bytes_each * pairs + rule.single_kept_bytes_each * singles
            + iif(asked.dtype_id = 'fp16' AND NOT rule.is_packed, rule.half_kept_bytes_each, 0) * (pairs + singles));
CREATE OR REPLACE MACRO working_elements(part, rule, asked, bytes_each) AS part.hidden_size
    * (stage_tokens(part, asked) * (bytes_each
            + iif(asked.dtype_id = 'fp16' AND NOT rule.is_packed, rule.half_last_bytes_each, 0))
        + asked.text_tokens * rule.text_bytes_each)
    + stage_tokens(part, asked) * rule.width_last_bytes_each * part.block_width;
CREATE OR REPLACE MACRO step_activations(part, rule, blocks, asked) AS asked.images * (greatest(
        iif(blocks.single_layers > 0,
            kept_elements(part, rule, blocks, asked, blocks.pair_layers, blocks.single_layers)
                + working_elements(part, rule, asked, rule.last_bytes_each), 0),
        iif(blocks.pair_layers > 0, kept_elements(part, rule, blocks, asked, blocks.pair_layers, 0)
            + working_elements(part, rule, asked, rule.pair_last_bytes_each), 0))
    + iif(rule.checkpointing = 'none',
        2 * asked.lora_rank * blocks.adapted_matrices * trained_tokens(part, rule, asked), 0));
-- gradients are whole when the first block's are made, beside what one block works in
CREATE OR REPLACE MACRO step_working(part, rule, blocks, asked) AS asked.images
    * working_elements(part, rule, asked, iif(blocks.pair_layers > 0, rule.pair_last_bytes_each, rule.last_bytes_each));

CREATE OR REPLACE MACRO adapter_bytes_of(asked, rule) AS
    iif(asked.dtype_id = 'fp16' OR asked.denoiser_dtype_id IS NOT NULL, 4, rule.adapter_bytes_each);
CREATE OR REPLACE MACRO adapter_state_bytes(asked, rule, optimizer) AS iif(optimizer.follows_parameter_dtype,
    optimizer.state_bytes_per_parameter * adapter_bytes_of(asked, rule) / 4, optimizer.state_bytes_per_parameter);

CREATE OR REPLACE MACRO trained_reason(part, rule, blocks, asked, optimizer, packed) AS CASE
    WHEN asked.argument_reason IS NOT NULL THEN asked.argument_reason
    WHEN asked.dtype_id NOT IN ('bf16', 'fp16') THEN 'LoRA of pipelines is counted over bases in bf16 and fp16'
    WHEN asked.checkpointing NOT IN ('none', 'full')
        THEN 'LoRA of pipelines is counted with checkpointing none and full'
    WHEN least(asked.width, asked.height, asked.frames, asked.images, asked.lora_rank, asked.text_tokens) < 1
        THEN 'width, height, frames, images, lora_rank and text_tokens start at 1'
    WHEN asked.width % part.side_multiple <> 0 OR asked.height % part.side_multiple <> 0
        THEN 'width and height are multiples of ' || part.side_multiple || ' in this pipeline'
    WHEN asked.frames > 1 AND part.token_frames = 1 THEN part.pipeline_part || ': makes single pictures'
    WHEN part.parameter_count IS NULL THEN part.pipeline_part || ': ' || part.unknown_reason
    WHEN optimizer.optimizer_id IS NULL OR optimizer.state_form NOT IN ('elementwise', 'blockwise')
        THEN 'LoRA of pipelines is counted with AdamW and other optimizers whose states are elementwise'
    WHEN blocks.model_id IS NULL THEN part.pipeline_part || ': what a training step of ' || part.class_name
        || ' holds is not counted yet (table denoiser_training)'
    WHEN rule.class_name IS NULL OR rule.half_kept_bytes_each IS NULL AND asked.dtype_id = 'fp16'
        THEN part.pipeline_part || ': a training step of ' || part.class_name || ' is not counted over a base in '
            || coalesce(asked.denoiser_dtype_id, asked.dtype_id) || ' with checkpointing ' || asked.checkpointing
    WHEN blocks.has_other_blocks
        THEN part.pipeline_part || ': its blocks have a further attention, which is not counted yet'
    WHEN rule.is_packed AND packed.weights_bytes IS NULL
        THEN part.pipeline_part || ': how ' || part.class_name || ' is held in ' || asked.denoiser_dtype_id
            || ' is not known (table denoiser_format)'
END;
