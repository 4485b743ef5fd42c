-- program_called('ollama'), program_called('vllm', version := '0.27'): the program of that name, and what it runs with.
--
--   one row: the engine and the format that it takes by itself for the phase, for which versions that holds, or the
--   reason; is_known says whether there is such a program that does this phase at all
--
-- Units: none. Source: the table program. Not covered: what a program takes besides (footprint_of fills it in).

CREATE OR REPLACE MACRO program_called(asked, version := NULL, phase_id := 'inference') AS TABLE
WITH program_asked AS (
    FROM no_scenario UNION ALL BY NAME
    SELECT asked::VARCHAR AS program, version::VARCHAR AS program_version, lower(phase_id::VARCHAR) AS phase_id
)
SELECT said.program AS program_id, known.name, said.engine_id, said.dtype_id, said.program_holds_for AS holds_for,
    known.name IS NOT NULL AND known.phase_reason IS NULL AS is_known,
    with_nearest_program(said.program_reason) AS unknown_reason
FROM with_program('program_asked') AS said
LEFT JOIN program_name AS known ON known.program_name = said.program AND known.phase_id = said.phase_id;
