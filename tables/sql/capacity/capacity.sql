-- What a card really gives to one process.
--
--   capacity_bytes = CUDA total − what the card's context takes beyond the one that overhead_bytes already counts
--   CUDA total     = as read, or reported − (cuda_gap_base_mib + cuda_gap_ratio × reported) on NVIDIA cards
--   reported       = as read, or nominal × 1024 × the ratio of its class
--
-- Units: bytes; memory_mib_* in MiB. A data sheet's GB is GiB of DRAM. capacity_basis is `measured` where a total was read,
-- `imputed` where the rule of the class gave it.
-- Sources: gpu.csv per row; the ratios and the gap in constant.csv.
-- Not covered: a display or other processes on the card, MIG slices, Windows (one process gets about wddm_share of the card).

CREATE OR REPLACE MACRO reported_ratio(g, k) AS CASE
    WHEN g.vendor = 'apple' THEN CASE
        WHEN g.memory_gib_nominal < 28 THEN k.reported_ratio_apple_16_gib
        WHEN g.memory_gib_nominal < 48 THEN k.reported_ratio_apple_32_gib
        WHEN g.memory_gib_nominal < 96 THEN k.reported_ratio_apple_64_gib
        ELSE k.reported_ratio_apple_128_gib
    END
    WHEN g.vendor = 'nvidia' THEN CASE g.architecture
            WHEN 'ada' THEN k.reported_ratio_ada
            WHEN 'hopper' THEN k.reported_ratio_hopper
            WHEN 'blackwell-rtx' THEN k.reported_ratio_blackwell_rtx
            WHEN 'blackwell' THEN k.reported_ratio_blackwell
            WHEN 'blackwell-ultra' THEN k.reported_ratio_blackwell
            WHEN 'rubin' THEN k.reported_ratio_blackwell
            ELSE k.reported_ratio_default
        END
        -- datacenter cards with GDDR ship with ECC on, which takes a sixteenth
        * iif(g.segment = 'datacenter' AND g.memory_type IN ('GDDR5', 'GDDR6'), k.reported_ratio_gddr_ecc, 1)
    ELSE k.reported_ratio_amd
END;

CREATE OR REPLACE TABLE gpu AS
WITH read AS (
    SELECT g.*,
        coalesce(g.memory_mib_reported, floor(g.memory_gib_nominal * 1024 * reported_ratio(g, k))) AS reported,
        iif(g.architecture IN ('hopper', 'blackwell', 'blackwell-rtx', 'blackwell-ultra', 'rubin'),
            k.cuda_context_new_mib, k.cuda_context_mib) * 1048576 - k.process_context_bytes AS context_beyond,
        k
    FROM gpu_fact AS g, constants AS k
)
SELECT
    * EXCLUDE (reported, context_beyond, k),
    floor(1048576 * coalesce(
        memory_mib_cuda,
        iif(vendor = 'nvidia', reported - k.cuda_gap_base_mib - k.cuda_gap_ratio * reported, reported)
    ) - iif(vendor = 'nvidia', greatest(context_beyond, 0), 0))::BIGINT AS capacity_bytes,
    iif(memory_mib_cuda IS NULL AND memory_mib_reported IS NULL, 'imputed', 'measured') AS capacity_basis
FROM read;
