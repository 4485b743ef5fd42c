-- footprint_of('Qwen/Qwen3-8B', ...): one scenario, as the table footprint has it; every argument but the model may be
-- left out.
--
-- Words in braces, here and in fits_on and limits_on, are what the build writes out of the one list of arguments,
-- pipeline/book/scenario.py: the parameters with their defaults, the arguments as columns, and whether nothing is said
-- but what most questions say.
--
-- Units: bytes per GPU. Source: footprint/footprints.sql. Not covered: what that does not cover.

CREATE OR REPLACE MACRO footprint_of({parameters}) AS TABLE
WITH scenario_asked AS (SELECT {arguments})
SELECT footprint.* REPLACE (with_nearest_once(footprint.unknown_reason, footprint.model_id) AS unknown_reason)
    FROM footprints_in('scenario_asked', phase_id, is_plain := {is_plain}, is_usual := {is_usual}) AS footprint;
