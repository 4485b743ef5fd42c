-- Classes whose forward pass was counted whole, where the anatomy does not say what layers cache and compute: part of
-- `shape`. (A model of such a class whose config does not say what it reads is told to read what was counted.)
--
-- Units: bytes, tokens. Source: forward_pass. Not covered: a class or size that was not counted.

CREATE OR REPLACE TEMP TABLE pass_shape AS
SELECT model.model_id, list({
    'element_bytes': pass.element_bytes, 'added_tokens': pass.added_tokens, 'constant_bytes': pass.constant_bytes,
    'bytes_per_position': pass.bytes_per_position, 'sequence_bytes': pass.sequence_bytes,
    'bytes_per_token': pass.bytes_per_token, 'bytes_per_square': pass.bytes_per_square,
    'bytes_per_group': pass.bytes_per_group
} ORDER BY pass.element_bytes, pass.stage_rank) AS passes
FROM model JOIN forward_pass AS pass
    ON pass.pass_type = model.model_type AND pass.parameter_count = model.parameter_count
GROUP BY model.model_id;
