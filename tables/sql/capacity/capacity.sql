-- What a card really gives to one process.
--
--   capacity_bytes = CUDA total − what the card's context takes beyond the one that overhead_bytes already counts
--   CUDA total     = as read, or reported − (cuda_gap_base_mib + cuda_gap_ratio × reported) on NVIDIA cards
--   reported       = as read, or nominal × 1024 × the ratio of its class
--   of memory that is shared with a system, no more than what it was seen to leave free (memory_mib_free)
--
-- Units: bytes; memory_mib_* in MiB. A data sheet's GB is GiB of DRAM. capacity_basis is `measured` where a total was
-- read, `imputed` where the rule of the class gave it.
-- Sources: gpu.csv per row; gpu_class.csv says which constants hold for cards of a kind.
-- Not covered: a display or other processes on the card, MIG slices; Windows is system.sql's.

-- Of the lines of gpu_class that speak of a card the one that says most.
CREATE OR REPLACE MACRO class_rank(class) AS
    iif(class.architecture IS NULL, 0, 1000000) + coalesce(class.least_gib, 0);
CREATE OR REPLACE MACRO is_of_class(card, class) AS class.vendor = card.vendor
    AND coalesce(class.architecture = card.architecture, true)
    AND coalesce(card.memory_gib_nominal >= class.least_gib, true);

CREATE OR REPLACE MACRO reported_ratio(card, constants) AS (
    SELECT arg_max(ratio.value, class_rank(class))
    FROM gpu_class AS class JOIN constant AS ratio ON ratio.constant_id = class.ratio_constant
    WHERE is_of_class(card, class)
)
    -- datacenter cards with GDDR ship with ECC on, which takes a sixteenth
    * iif(card.segment = 'datacenter' AND card.memory_type IN ('GDDR5', 'GDDR6'), constants.reported_ratio_gddr_ecc, 1);

CREATE OR REPLACE MACRO context_mib(card) AS (
    SELECT arg_max(context.value, class_rank(class))
    FROM gpu_class AS class JOIN constant AS context ON context.constant_id = class.context_constant
    WHERE is_of_class(card, class)
);

-- what the context of a card takes beyond the one that every process is counted with
CREATE OR REPLACE MACRO context_beyond_bytes(card, constants) AS
    context_mib(card) * 1048576 - constants.process_context_bytes;

-- What a person can let it give, where that is more than it gives as it comes: memory that is shared with the system.
CREATE OR REPLACE MACRO raised_of(card) AS (
    SELECT arg_max({'ratio': ratio.value, 'by': class.raised_by}, class_rank(class))
    FROM gpu_class AS class JOIN constant AS ratio ON ratio.constant_id = class.raised_constant
    WHERE is_of_class(card, class)
);

-- What of it is asked: all that it gives, or the amount that is named, of a card that can give more that too.
CREATE OR REPLACE MACRO asked_bytes(card, free_bytes) AS
    iif(free_bytes > card.capacity_bytes AND free_bytes <= card.raisable_bytes, free_bytes,
        least(card.capacity_bytes, free_bytes));

CREATE OR REPLACE TABLE gpu AS
WITH read AS (
    SELECT card.*,
        coalesce(card.memory_mib_reported, floor(card.memory_gib_nominal * 1024 * reported_ratio(card, constants)))
            AS reported,
        context_beyond_bytes(card, constants) AS context_beyond, raised_of(card) AS raised, constants
    FROM gpu_fact AS card, constants
)
SELECT
    * EXCLUDE (reported, context_beyond, raised, constants),
    floor(1048576 * coalesce(memory_mib_cuda,
        iif(vendor = 'nvidia', reported - constants.cuda_gap_base_mib - constants.cuda_gap_ratio * reported, reported)
    ))::BIGINT AS whole_bytes,
    floor(least(whole_bytes, 1048576 * memory_mib_free)
        - iif(vendor = 'nvidia', greatest(context_beyond, 0), 0))::BIGINT AS capacity_bytes,
    iif(floor(memory_gib_nominal * 1024 * 1048576 * raised.ratio) > capacity_bytes,
        floor(memory_gib_nominal * 1024 * 1048576 * raised.ratio), NULL)::BIGINT AS raisable_bytes,
    iif(raisable_bytes IS NULL, NULL, raised.by) AS raised_by,
    iif(memory_mib_cuda IS NULL AND memory_mib_reported IS NULL, 'imputed', 'measured') AS capacity_basis
FROM read;
