-- What a card really gives to one process.
--
--   capacity_bytes = CUDA total − what the card's context takes beyond the one that overhead_bytes already counts
--   CUDA total     = as read, or reported − (cuda_gap_base_mib + cuda_gap_ratio × reported) on NVIDIA cards
--   reported       = as read, or nominal × 1024 × the ratio of its class
--
-- Units: bytes; memory_mib_* in MiB. A data sheet's GB is GiB of DRAM. capacity_basis is `measured` where a total was
-- read, `imputed` where the rule of the class gave it.
-- Sources: gpu.csv per row; the ratios and the gap in constant.csv.
-- Not covered: a display or other processes on the card, MIG slices, Windows (one process gets about wddm_share of the
-- card).

CREATE OR REPLACE MACRO reported_ratio(card, constants) AS CASE
    WHEN card.vendor = 'apple' THEN CASE
        WHEN card.memory_gib_nominal < 28 THEN constants.reported_ratio_apple_16_gib
        WHEN card.memory_gib_nominal < 48 THEN constants.reported_ratio_apple_32_gib
        WHEN card.memory_gib_nominal < 96 THEN constants.reported_ratio_apple_64_gib
        ELSE constants.reported_ratio_apple_128_gib
    END
    WHEN card.vendor = 'nvidia' THEN CASE card.architecture
            WHEN 'ada' THEN constants.reported_ratio_ada
            WHEN 'hopper' THEN constants.reported_ratio_hopper
            WHEN 'blackwell-rtx' THEN constants.reported_ratio_blackwell_rtx
            WHEN 'blackwell' THEN constants.reported_ratio_blackwell
            WHEN 'blackwell-ultra' THEN constants.reported_ratio_blackwell
            WHEN 'rubin' THEN constants.reported_ratio_blackwell
            ELSE constants.reported_ratio_default
        END
        -- datacenter cards with GDDR ship with ECC on, which takes a sixteenth
        * iif(card.segment = 'datacenter' AND card.memory_type IN ('GDDR5', 'GDDR6'), constants.reported_ratio_gddr_ecc,
            1)
    ELSE constants.reported_ratio_amd
END;

CREATE OR REPLACE TABLE gpu AS
WITH read AS (
    SELECT card.*,
        coalesce(card.memory_mib_reported, floor(card.memory_gib_nominal * 1024 * reported_ratio(card, constants)))
            AS reported,
        iif(card.architecture IN ('hopper', 'blackwell', 'blackwell-rtx', 'blackwell-ultra', 'rubin'),
            constants.cuda_context_new_mib, constants.cuda_context_mib) * 1048576 - constants.process_context_bytes
                AS context_beyond,
        constants
    FROM gpu_fact AS card, constants
)
SELECT
    * EXCLUDE (reported, context_beyond, constants),
    floor(1048576 * coalesce(
        memory_mib_cuda,
        iif(vendor = 'nvidia', reported - constants.cuda_gap_base_mib - constants.cuda_gap_ratio * reported, reported)
    ) - iif(vendor = 'nvidia', greatest(context_beyond, 0), 0))::BIGINT AS capacity_bytes,
    iif(memory_mib_cuda IS NULL AND memory_mib_reported IS NULL, 'imputed', 'measured') AS capacity_basis
FROM read;
