-- Pictures in a training step: a frozen tower, without adapters or with some, runs before the text, and what autograd
-- keeps of it.
--
--   the forward pass >= weights + adapters + optimizer + standing gradients + the tower's own pass (tower_bytes_of)
--   every moment  + pixels in fp32, as processors give them (4 bytes, a copy in the model's precision during the pass)
--     + the embedded prompt, where checkpointing makes it require gradients: a leaf of its own beside the merged one
--     + of a tower whose first layer is hooked (enable_input_require_grads) what autograd keeps of it:
--         tokens × hidden size × bytes × (its layers (× autocast_input_tensors under autocast) + hooked_tensors)
--         or its layers × layer_tensors + hooked_tensors, where none of them is recomputed
--     + of a tower with adapters the same, hooked or not, with adapted_tensors
--   the end      + step_tensors or, with adapters, adapted_step_tensors: its last layer is differentiated
--
-- The columns are those of tower_training.csv. Nothing of a tower without adapters requires gradients without
-- checkpointing, where its class names no first layer, and where a program runs it without autograd.
-- Units: bytes per GPU. Source: transformers-image-steps (tests/oracle/image_training.csv).
-- Not covered: gradients of the tower's own weights, its adapters without checkpointing, fp32 weights, several GPUs,
-- video, sound. What of these is asked has a reason (image_training_reason).

CREATE OR REPLACE MACRO trains_on_images(scenario) AS
    coalesce(scenario.images > 0 AND scenario.phase_id <> 'inference', false);

-- Whether all linear layers of the tower carry adapters, too: peft's all-linear, by itself or in a program.
CREATE OR REPLACE MACRO adapts_tower(scenario) AS trains_on_images(scenario)
    AND coalesce(scenario.lora_targets, 'all-linear') = 'all-linear'
    AND coalesce(scenario.program_base.tower_training = 'adapted', scenario.program IS NULL);

-- Whether autograd keeps the tower: it has adapters, or its first layer is hooked, and no program runs it without.
CREATE OR REPLACE MACRO keeps_tower_graph(model, scenario) AS scenario.checkpointing <> 'none'
    AND (adapts_tower(scenario) OR coalesce(model.tower_training.is_input_hooked, false))
    AND coalesce(scenario.program_base.tower_training <> 'frozen', true);

CREATE OR REPLACE MACRO tower_elements(model, scenario, tensors) AS
    scenario.sequences * scenario.tower_tokens * model.tower.hidden_size * tensors;

-- (a packed base that is prepared makes what is not packed of the tower fp32, and with it all that flows)
CREATE OR REPLACE MACRO tower_element_bytes(scenario) AS
    iif(scenario.phase_id = 'qlora' AND scenario.prepares_base, 4, scenario.compute_bytes);

CREATE OR REPLACE MACRO pixel_bytes(model, scenario) AS iif(trains_on_images(scenario),
    4 * scenario.sequences * scenario.tower_tokens * model.tower.input_elements, 0);

-- (of a layer whose residual stream autocast makes fp32, twice as much as in 16 bits)
CREATE OR REPLACE MACRO tower_input_tensors(model, scenario) AS iif(
    scenario.precision = 'amp' AND tower_element_bytes(scenario) = scenario.compute_bytes,
    model.tower_training.autocast_input_tensors, 1);

-- Of each layer its input, or all of it, where a program recomputes no layer in which nothing is trained; and a mask
-- over all images at once, where the tower has one.
CREATE OR REPLACE MACRO tower_tensors_kept(model, scenario) AS
    iif(adapts_tower(scenario), model.tower_training.adapted_tensors, model.tower_training.hooked_tensors)
    + model.tower_training.layer_count * iif(coalesce(scenario.program_base.tower_training = 'kept', false),
        model.tower_training.layer_tensors, tower_input_tensors(model, scenario));
CREATE OR REPLACE MACRO tower_graph_bytes(model, scenario) AS iif(keeps_tower_graph(model, scenario),
    tower_element_bytes(scenario) * (tower_elements(model, scenario, tower_tensors_kept(model, scenario))
        + model.tower.square_elements * scenario.tower_tokens * scenario.tower_tokens
            * scenario.sequences * scenario.sequences), 0);

-- what stands while the text runs, forward and back (where tokens of an image see each other, a mask of the text too)
CREATE OR REPLACE MACRO images_held(model, scenario) AS iif(trains_on_images(scenario),
    pixel_bytes(model, scenario) + tower_graph_bytes(model, scenario)
        + iif(scenario.checkpointing = 'none', 0, step_tokens(scenario) * (model.hidden_size * scenario.compute_bytes
            + model.tower_training.text_mask_bytes * scenario.context_tokens)), 0);

-- The text is through, and the tower's last layer is recomputed and differentiated beside what the others keep.
CREATE OR REPLACE MACRO images_at_end(model, scenario) AS iif(trains_on_images(scenario),
    images_held(model, scenario) + iif(keeps_tower_graph(model, scenario), tower_element_bytes(scenario)
        * tower_elements(model, scenario, iif(adapts_tower(scenario), model.tower_training.adapted_step_tensors,
            model.tower_training.step_tensors)), 0), 0);

-- Outputs of the tower that its caller still holds while the text runs.
CREATE OR REPLACE MACRO text_beside_tower_bytes(model, scenario) AS iif(trains_on_images(scenario),
    scenario.compute_bytes * scenario.sequences * scenario.tower_tokens * model.tower.output_elements, 0);

CREATE OR REPLACE MACRO tower_moment(model, scenario, stage) AS iif(trains_on_images(scenario),
    held_throughout(stage) + standing_gradients(model, scenario, stage)
        + tower_bytes_of(model.tower, model, scenario) * tower_element_bytes(scenario) / scenario.compute_bytes
        + scenario.dequantised, 0);

-- Who trains what of a model that sees, as far as that decides what is kept.
CREATE OR REPLACE MACRO trained_tower_reason(model, scenario) AS CASE
    WHEN scenario.program IS NOT NULL AND scenario.program_base.tower_training IS NULL
        THEN 'what ' || scenario.program || ' trains of what a model sees with was not read; it is known of '
            || 'llama-factory, ms-swift, trl, axolotl and transformers, and without a program'
    WHEN takes_names(scenario) AND scenario.lora_targets IN ('attention', 'query-value')
            AND NOT leaves_tower(model, scenario)
        THEN scenario.program || ' gives adapters to all layers of these names, which what this model sees with has '
            || 'too: what they keep there was not counted. program := ms-swift or llama-factory leaves them to the '
            || 'text'
    WHEN scenario.program IS NOT NULL AND NOT leaves_tower(model, scenario) AND NOT adapts_tower(scenario)
        THEN iif(takes_names(scenario), scenario.program || ' gives adapters to layers of what a model sees with that '
                || 'were not counted: lora_targets := attention',
            scenario.program || ' was not read for models of this type: what it trains of what they see with is not '
                || 'known')
    WHEN scenario.program IS NULL AND NOT adapts_tower(scenario)
            AND scenario.lora_targets NOT IN ('attention', 'query-value')
        THEN 'training on images is counted with adapters of all linear layers, or of attention: '
            || 'lora_targets := attention leaves them to the text'
    WHEN adapts_tower(scenario) AND (scenario.checkpointing = 'none'
            OR model.tower_training.adapted_tensors IS NULL)
        THEN 'adapters of what a model sees with are counted with every layer recomputed: checkpointing := full; or '
            || 'lora_targets := attention, which leaves them to the text'
    WHEN scenario.program_base.tower_training = 'unread'
        THEN 'this version of ' || scenario.program || ' takes releases of Transformers before 4.54, whose towers '
            || 'attend to all images of a step at once, and which were not counted: ask for a later one'
    WHEN scenario.program_base.tower_training = 'kept' AND scenario.checkpointing <> 'none'
            AND model.tower_training.is_input_hooked AND model.tower_training.layer_tensors IS NULL
        THEN 'with Transformers 5 ' || scenario.program || ' keeps all that what the model sees with works out, '
            || 'without recomputing it: that was not counted for this model'
END;

CREATE OR REPLACE MACRO image_training_reason(model, scenario, run) AS CASE
    WHEN NOT trains_on_images(scenario) THEN NULL
    WHEN scenario.engine_id <> 'transformers'
        THEN 'what ' || run.name || ' holds of images while it trains has not been counted' || iif(
            scenario.engine_id = 'unsloth', ': it gives adapters to what a model sees with too, and leaves its '
                || 'checkpoints in the host''s memory', '') || '; in Transformers it has'
    WHEN scenario.phase_id NOT IN ('lora', 'qlora') THEN 'training on images is counted for LoRA and QLoRA: '
        || 'phase_id := lora'
    WHEN model.tower_training IS NULL
        THEN 'what a training step on images holds has not been counted for models of this type'
    WHEN trained_tower_reason(model, scenario) IS NOT NULL THEN trained_tower_reason(model, scenario)
    WHEN scenario.dtype_id NOT IN ('bf16', 'fp16', 'nf4', 'nf4-double')
        THEN 'training on images is counted over a base in 16 bits, or in NF4: dtype_id := bf16'
    WHEN model.tower_training.text_mask_bytes > 0 AND scenario.checkpointing = 'none'
        THEN 'what a training on images holds of this model is counted with every layer recomputed: '
            || 'checkpointing := full'
    WHEN scenario.checkpointing = 'selective' OR scenario.attention <> 'flash' OR scenario.adapter <> 'lora'
            OR scenario.trains_embeddings OR scenario.loss NOT IN ('full', 'logged-copy', 'logged', 'logged-blocks',
                'recomputed', 'recomputed-fp32', 'tiled')
        THEN 'training on images is counted with plain LoRA, the loss of the model itself or of TRL, flash '
            || 'attention, and checkpointing of all layers or none'
    WHEN scenario.gpu_count > 1 OR scenario.sharding <> 'none' OR scenario.offload <> 'none'
        THEN 'training on images is counted on one GPU, with nothing shared or offloaded'
END;
