-- Rows as values: formulas take a model, a scenario and the constants whole (model, scenario, constants).
--
-- A row that is handed over by its table's name is taken apart and put together again, column by column, at every use:
-- binding one formula took seven times as long. So rows are packed once, as structs, and what a formula reads of them
-- is looked up by name.
-- Units: those of the tables packed. Source: shape, constants. Not covered: other tables, whose
-- rows are few columns.

CREATE OR REPLACE VIEW shape_row AS SELECT model_id, model FROM shape AS model;
CREATE OR REPLACE VIEW constants_row AS SELECT constants FROM constants;

-- The little of a model that completes a question: a few columns, where the whole row is 150, which every step would
-- carry along.
CREATE OR REPLACE VIEW brief_row AS
SELECT model_id, {
    'max_context_tokens': max_context_tokens, 'expert_elements': expert_elements, 'stored_format': stored_format,
    'is_format_open': is_format_open, 'caches': caches, 'are_experts_adapted': are_experts_adapted,
    'names_experts': names_experts, 'has_tower': tower IS NOT NULL OR has_uncounted_tower, 'model_type': model_type
} AS model
FROM shape;
