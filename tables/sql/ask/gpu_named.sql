-- gpu_named('NVIDIA GeForce RTX 3060', 12884901888): the card that a driver speaks of, by its name and its memory.
--
--   a name of the table gpu_name, or that of the card itself but for the maker's word before it and hyphens for blanks;
--   of several sizes under one name the one whose data sheet is nearest, within gpu_name_tolerance; null where none is.
--   Without a memory (GB10 reports none) a name that one card alone has
--
-- Units: bytes as the driver reports them, ECC taken off. Source: the tables gpu_name and gpu. Not covered: slices of a
-- card (MIG), whose memory is not the card's.

CREATE OR REPLACE MACRO gpu_named(printed_name, memory_bytes) AS (
    SELECT iif(memory_bytes IS NULL, iif(count(*) = 1, min(gpu.gpu_id), NULL),
        arg_min(gpu.gpu_id, abs(memory_bytes / (gpu.memory_gib_nominal * 1073741824) - 1)))
    FROM gpu CROSS JOIN constants
    WHERE coalesce(abs(memory_bytes / (gpu.memory_gib_nominal * 1073741824) - 1) <= constants.gpu_name_tolerance, true)
        AND (
            gpu.gpu_id IN (SELECT known.gpu_id FROM gpu_name AS known
                WHERE lower(known.driver_name) = lower(printed_name))
            OR asked_id(gpu.name) = asked_id(regexp_replace(printed_name, '^(NVIDIA|AMD) ', ''))
        )
);
