-- The load-balancing loss that a program takes of a mixture of experts beside its own.
--
--   bytes = bytes_each × tokens × Σ layers with experts × experts
--
-- Units: bytes per GPU; bytes_each: of a token, a layer and an expert (balance_bytes_per_expert of program and
--   objective), the router's logits and their probabilities together, which stay until the loss is differentiated.
-- Source: steps of TRL's trainers on a card (source trl-h100; tests/formulas/test_trl_card.py), by Transformers 5.23,
--   whose load_balancing_loss_func goes layer by layer since 5.16.
-- Not covered: Transformers before 5.16, which puts the logits of all layers together and makes a tensor of every
--   choice.

CREATE OR REPLACE MACRO balance_bytes(model, tokens, bytes_each) AS coalesce(bytes_each * tokens * list_sum(
    list_transform(coalesce(model.blocks, []), lambda block: block.layer_count * block.expert_count)), 0);
CREATE OR REPLACE MACRO balance_words(model, bytes_each) AS
    iif(bytes_each IS NOT NULL AND model.expert_elements > 0, ', Transformers 5.16 or later', '');
