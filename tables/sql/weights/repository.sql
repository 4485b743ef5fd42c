-- What is kept in 16 bits of a packed base beyond what the format says: Unsloth loads a repository of its own
-- in place of many a model, whose layers it chose, and packs no towers where it packs by itself.
--
--   kept = (elements that the format packs - elements that the repository packs) x (2 - bits / 8)
--
-- Units: bytes of the whole model. Source: program_repository.csv, program_kept_layer.csv. What a repository packs is
--   told by its published total, which counts what is packed and its scales, else by what a run had reserved after
--   loading, at most. Where neither tells, counted is the smallest share that any repository with such a total keeps,
--   and the error band takes in what the largest is more (kept_spread_bytes).
-- Not covered: which layers these are, so that the largest matrix is counted as packed; older repositories that pack
--   towers too (less than is counted); a base that the user's own config packs.

CREATE OR REPLACE TEMP TABLE repository_shape AS
WITH loaded AS (
    SELECT
        model.model_id, list({'program_id': program_id, 'loads': loads,
            'packed_elements': packed_elements, 'reserved_bytes': reserved_bytes} ORDER BY program_id) AS repositories
    FROM model
    JOIN (SELECT program_repository.*, unnest(string_split(model_ids, ' ')) AS name FROM program_repository) AS known
        ON known.name = lower(model.model_id)
    GROUP BY model.model_id
),
towers AS (
    SELECT model_id, coalesce(sum(element_count) FILTER (operator = 'linear' AND is_of_towers(component)), 0)::BIGINT
        AS tower_linear_elements
    FROM tensor
    GROUP BY model_id
),
kept AS (
    SELECT model_id, list({'program_id': program_id, 'elements': elements} ORDER BY program_id) AS kept_layers
    FROM (
        SELECT tensor.model_id, kept.program_id, sum(tensor.element_count)::BIGINT AS elements
        FROM tensor JOIN model USING (model_id)
        JOIN program_kept_layer AS kept
            ON kept.component = tensor.component AND coalesce(kept.role = tensor.role, true)
            AND coalesce(list_contains(string_split(kept.model_types, ' '), model.model_type), true)
        WHERE tensor.operator = 'linear' AND tensor.tensor_class <> 'head'
        GROUP BY tensor.model_id, kept.program_id
    )
    GROUP BY model_id
)
SELECT model_id, repositories, kept_layers, tower_linear_elements
FROM loaded FULL JOIN kept USING (model_id) FULL JOIN towers USING (model_id);

-- The repository that a program loads in place of the model that it is told: its name, what is packed of it, and what a
-- run had reserved. (The engine of a program that is not named packs the model's own weights.)
CREATE OR REPLACE MACRO loads_repository(scenario) AS
    scenario.phase_id = 'qlora' AND scenario.dtype_id IN ('nf4-double', 'nf4-double-experts');
CREATE OR REPLACE MACRO loaded_repository(model, scenario) AS iif(loads_repository(scenario), list_max(list_transform(
    model.repositories, lambda one: iif(one.program_id = scenario.program, one.loads, NULL))), NULL);
CREATE OR REPLACE MACRO repository_elements(model, scenario) AS iif(loads_repository(scenario), list_max(list_transform(
    model.repositories, lambda one: iif(one.program_id = scenario.program, one.packed_elements, NULL))), NULL);
CREATE OR REPLACE MACRO repository_reserved(model, scenario) AS iif(loads_repository(scenario), list_max(list_transform(
    model.repositories, lambda one: iif(one.program_id = scenario.program, one.reserved_bytes, NULL))), NULL);
CREATE OR REPLACE MACRO kept_by_program(model, scenario) AS iif(scenario.phase_id = 'qlora',
    coalesce(list_max(list_transform(model.kept_layers, lambda one: iif(one.program_id = scenario.program,
        one.elements, 0))), 0), 0);

CREATE OR REPLACE MACRO packed_by_format(weight, dtype) AS
    (weight.weights_bytes - weight.unquantised_bytes) * 8 / dtype.bits_per_weight;
CREATE OR REPLACE MACRO kept_share_least(model, constants) AS iif(model.tower_linear_elements > 0,
    constants.unsloth_kept_least_share_seeing, constants.unsloth_kept_least_share_text);
CREATE OR REPLACE MACRO kept_share_most(model, constants) AS
    iif(model.tower_linear_elements > 0, constants.unsloth_kept_share_seeing, constants.unsloth_kept_share_text);
CREATE OR REPLACE MACRO is_share_unknown(model, scenario) AS loaded_repository(model, scenario) IS NOT NULL
    AND coalesce(repository_elements(model, scenario), repository_reserved(model, scenario)) IS NULL;

CREATE OR REPLACE MACRO unpacked_elements(weight, dtype, model, scenario, constants) AS CASE
    WHEN loaded_repository(model, scenario) IS NULL THEN kept_by_program(model, scenario)
    WHEN repository_elements(model, scenario) IS NOT NULL
        THEN packed_by_format(weight, dtype) - repository_elements(model, scenario)
    ELSE iif(is_share_unknown(model, scenario), kept_share_least(model, constants), kept_share_most(model, constants))
        * packed_by_format(weight, dtype)
END;
CREATE OR REPLACE MACRO kept_layer_bytes(weight, dtype, model, scenario, constants) AS
    iif(dtype.bits_per_weight < 16, greatest(least(
        (2 - dtype.bits_per_weight / 8) * unpacked_elements(weight, dtype, model, scenario, constants),
        iif(repository_elements(model, scenario) IS NULL, repository_reserved(model, scenario) - weight.weights_bytes,
            NULL)), 0), 0)::BIGINT;

CREATE OR REPLACE MACRO kept_spread_bytes(weight, dtype, model, scenario, constants) AS
    iif(dtype.bits_per_weight < 16 AND is_share_unknown(model, scenario), (2 - dtype.bits_per_weight / 8)
        * (kept_share_most(model, constants) - kept_share_least(model, constants))
        * packed_by_format(weight, dtype), 0);

-- What an answer says of it.
CREATE OR REPLACE MACRO repository_words(model, scenario) AS coalesce(
    ', loading ' || loaded_repository(model, scenario) || CASE
        WHEN is_share_unknown(model, scenario) THEN ' (how much it keeps in 16 bits is not known)'
        WHEN repository_elements(model, scenario) IS NULL THEN ' (with the most that it may keep in 16 bits)'
        ELSE '' END, '');
