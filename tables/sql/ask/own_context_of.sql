-- own_context_of('ollama', gpu_bytes := n): the context that a program takes where nobody says one, on cards that give
-- n bytes together.
--
--   one row for each step that it knows, the smallest first: from which memory on it takes so many tokens, and which it
--   takes here; none of a program whose context does not depend on the cards (program_called, footprint_of)
--
--   context_of_cards(steps, gpu_bytes)   the one that it takes, of steps as lists (context_steps of program_row)
--
-- A program adds up all cards of the machine that it sees, whichever of them it uses.
-- Units: GiB, bytes, tokens. Source: the table program_context. Not covered: what a model reads, which bounds it;
-- memory that a person keeps back (OLLAMA_GPU_OVERHEAD).

-- (more memory is never given a shorter context)
CREATE OR REPLACE MACRO context_of_cards(steps, gpu_bytes) AS list_max(list_transform(steps, lambda step:
    iif(step.least_gib * 1024 * 1024 * 1024 <= gpu_bytes, step.context_tokens, NULL)));

CREATE OR REPLACE MACRO own_context_of(asked, version := NULL, gpu_bytes := NULL) AS TABLE
WITH own_asked AS (SELECT lower(asked::VARCHAR) AS program_name, version::VARCHAR AS program_version),
own_step AS (
    SELECT step.*
    FROM own_asked
    JOIN program_name AS known ON known.program_name = own_asked.program_name AND known.phase_id = 'inference'
    JOIN program_context AS step ON step.program_id = known.program_id
    -- (one that is not said is the newest)
    WHERE coalesce(version_number(step.min_version) <= version_number(own_asked.program_version), true)
    QUALIFY version_number(step.min_version) = max(version_number(step.min_version)) OVER ()
        AND coalesce(version_number(own_asked.program_version) < version_after(step.max_version), true)
)
SELECT program_id, least_gib, context_tokens, coalesce(context_tokens = context_of_cards(steps, gpu_bytes::BIGINT),
    false) AS is_taken
FROM (SELECT *, list({'least_gib': least_gib, 'context_tokens': context_tokens}) OVER () AS steps FROM own_step)
ORDER BY least_gib;
