-- What one forward pass of a class holds that was run whole: of models whose anatomy gives their weights alone.
--
--   activations_bytes = the largest of the class's stages, for S sequences (series, pictures, texts) of T tokens:
--       constant_bytes + T × bytes_per_position + S × (sequence_bytes + T × bytes_per_token + T² × bytes_per_square)
--       + S² × T × bytes_per_group
--   T                 = context_tokens + added_tokens (the horizon that a forecaster writes beside what it reads)
--
-- Units: bytes, one GPU. Source: forward_pass, fitted to peaks of the class itself on tensors that hold nothing, so
--   that none that was counted is larger (forward-pass-oracle; tests/oracle/forward_passes.csv). Their work space of
--   convolutions is that of pipelines, and so is the error band.
-- Not covered: formats that pack weights, several GPUs, training, inputs larger than those that were counted.

CREATE OR REPLACE MACRO counted_pass_bytes(model, scenario) AS list_max(list_transform(
    list_filter(model.passes, lambda pass: pass.element_bytes = scenario.compute_bytes),
    lambda pass: pass.constant_bytes + (scenario.context_tokens + pass.added_tokens) * pass.bytes_per_position
        + scenario.sequences * (pass.sequence_bytes
        + (scenario.context_tokens + pass.added_tokens) * (pass.bytes_per_token
            + (scenario.context_tokens + pass.added_tokens) * pass.bytes_per_square))
        + scenario.sequences * scenario.sequences * (scenario.context_tokens + pass.added_tokens)
            * pass.bytes_per_group));

CREATE OR REPLACE MACRO has_counted_pass(model) AS model.passes IS NOT NULL;

CREATE OR REPLACE MACRO pass_reason(model, dtype, scenario) AS CASE
    WHEN NOT has_counted_pass(model) THEN NULL
    WHEN scenario.phase_id <> 'inference'
        THEN 'its forward pass was counted (table forward_pass), and not what training holds'
    WHEN scenario.engine_id <> 'transformers'
        THEN 'its forward pass was counted as its own code runs it, in PyTorch: engine_id := transformers'
    WHEN NOT dtype.is_trainable OR list_max(list_transform(model.passes,
        lambda pass: (pass.element_bytes = scenario.compute_bytes)::INTEGER)) = 0
        THEN 'its forward pass was counted in ' || iif(len(list_distinct(list_transform(model.passes,
            lambda pass: pass.element_bytes))) > 1, '16 or 32', (8 * model.passes[1].element_bytes)::VARCHAR)
            || ' bits; what other formats hold is not known'
    WHEN scenario.gpu_count_asked > 1 THEN 'its forward pass was counted on one GPU'
    WHEN scenario.images > 0 OR scenario.audio_seconds > 0
        THEN 'a picture or a sound is one sequence here: sequences := n, without images and audio_seconds'
    WHEN scenario.context_tokens > model.max_context_tokens THEN 'its forward pass was counted with up to '
        || model.max_context_tokens || ' tokens'
END;
