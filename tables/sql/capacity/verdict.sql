-- One footprint against one card: the comparison that every verdict and every limit is made of, and what an engine
-- allows at most.
--
--   takes(total, band, capacity)   whether a card gives a total with its error band
--   card_verdict(…)                fits, multi-gpu, tight or no; null where total or capacity are not known
--   no_verdict_reason(…)           why there is none: no such card, no total, or a format that does not run there
--   most_requests, context_multiple   the most sequences that an engine runs by itself, and the tokens that it
--       allocates at a time
--
-- Units: bytes per GPU, sequences, tokens. Source: constant.csv (vllm_default_sequences and the cells). The same
-- comparison stands in pipeline/press/compatibility.py and pipeline/render (words, limits) and in site/assets
-- (almanac.js, limits.js, calculator.js); tests hold them equal.
-- Not covered: mixed cards.

CREATE OR REPLACE MACRO takes(total, band, capacity) AS total * (1 + band) <= capacity;

CREATE OR REPLACE MACRO card_verdict(total, band, capacity, gpu_count) AS CASE
    WHEN total IS NULL OR capacity IS NULL THEN NULL
    WHEN total > capacity THEN 'no'
    WHEN NOT coalesce(takes(total, band, capacity), false) THEN 'tight'
    WHEN gpu_count > 1 THEN 'multi-gpu'
    ELSE 'fits'
END;

CREATE OR REPLACE MACRO fitting(totals, capacity) AS
    list_filter(totals, lambda row: takes(row.total, row.band, capacity))[1];

CREATE OR REPLACE MACRO barely_fitting(totals, capacity) AS
    list_filter(totals, lambda row: row.total <= capacity)[1];

CREATE OR REPLACE MACRO verdict(totals, capacity) AS CASE
    WHEN totals IS NULL THEN NULL
    WHEN fitting(totals, capacity).gpu_count = 1 THEN 'fits'
    WHEN barely_fitting(totals, capacity).gpu_count = 1 THEN 'tight'
    WHEN fitting(totals, capacity) IS NOT NULL THEN 'multi-gpu'
    WHEN barely_fitting(totals, capacity) IS NOT NULL THEN 'tight'
    ELSE 'no'
END;

-- card: the id of the card's row, null where there is none; asked: what was asked for; not_there: why it does not run
-- on that card
CREATE OR REPLACE MACRO no_verdict_reason(card, asked, total, footprint_reason, model_asked, not_there) AS CASE
    WHEN asked IS NULL THEN 'no GPU was named'
    WHEN card IS NULL THEN unknown_gpu_reason(asked)
    WHEN total IS NULL THEN with_nearest(footprint_reason, model_asked)
    ELSE not_there
END;

-- servers queue what comes beyond their default; nobody else has a limit
CREATE OR REPLACE MACRO is_serving_engine(engine_id) AS starts_with(engine_id, 'vllm') OR engine_id = 'sglang';
CREATE OR REPLACE MACRO most_requests(engine_id, constants) AS
    iif(is_serving_engine(engine_id), constants.vllm_default_sequences, NULL)::BIGINT;

-- Where the line through the last points of a limit ends: an engine's own cap, and for llama.cpp the last point itself,
-- since its masks make the compute buffer steeper beyond it.
CREATE OR REPLACE MACRO line_end(engine_id, constants) AS
    iif(engine_id = 'llama.cpp', constants.llama_cpp_looked_sequences, most_requests(engine_id, constants))::BIGINT;

CREATE OR REPLACE MACRO context_multiple(engine_id, constants) AS CASE
    WHEN is_serving_engine(engine_id) THEN constants.vllm_block_tokens
    WHEN engine_id = 'llama.cpp' THEN constants.llama_cpp_cell_multiple
    WHEN engine_id = 'mlx-lm' THEN constants.mlx_cell_multiple
    ELSE 1
END;
