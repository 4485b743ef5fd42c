-- How fast a card likely is: the bounds of speed.sql, less what published runs lost of them.
--
--   step = (read_bytes ÷ cards that divide layers + cache) ÷ (bandwidth × bandwidth_share)
--       + 2 × multiplied × users ÷ (cards × rate × product_share) + layers × layer_microseconds
--   decode_likely = users ÷ step   tokens a second of all users
--   prefill_likely = cards that divide layers × rate × product_share ÷ (2 × token_elements)   of one prompt
--
-- Stages of a pipeline run one after another: they make room, and no token quicker. Each reads its weights for every
-- part of the requests that is on its way, so that a step takes what all layers take.
--
-- The three shares are of a kind of program on cards of one maker (serving_speed): fitted to the runs of serving_run by
-- least squares of the logarithm of step ÷ reported. A step ends between quicker_ratio and slower_ratio times what
-- they say: so far lie nine tenths less one tenth of the runs of a program (or a model, a card, a source) whose own
-- runs were left out of the fit. Small models on fast cards stay far below the bound because each layer takes its
-- time, whatever it reads.
-- Of experts so many are read as users are likely sent to, each at random: experts × (1 − (1 − share)^users).
-- Units: bytes, seconds, tokens a second. Source: serving_run, row by row; the tests fit the shares anew.
-- Not covered (null, with a reason): programs and makers of which no run is read; several users where none is
-- (users_most), or where no rate of products is known, which one user hardly needs. Prompts that are read while others
-- write; speculative decoding.

CREATE OR REPLACE MACRO experts_read_share(share, users) AS 1 - pow(1 - share, users);

-- bytes of weights of a step: of experts those of one token, and those that more users are sent to besides
CREATE OR REPLACE MACRO likely_read_bytes(model, weight, users) AS weight.read_bytes + iif(model.expert_count_max > 0
    AND users > 1, model.expert_elements * (experts_read_share(model.experts_per_token_max / model.expert_count_max,
    users) - model.experts_per_token_max / model.expert_count_max) * weight.read_bytes
    / (model.token_elements + model.vocab_size * model.hidden_size), 0);

-- the rate that a share is of: that of the format, or of the numbers that the row names; of what is published in a
-- format that is not told apart 16 bits
CREATE OR REPLACE MACRO share_tflops(card, product_bits, speed) AS
    product_tflops(card, coalesce(speed.product_bits, product_bits, 16));

-- read_bytes, cache_bytes: of what is read one after another; multiplied: on one card
CREATE OR REPLACE MACRO step_seconds(read_bytes, cache_bytes, multiplied, layer_count, card, rate, speed) AS
    (read_bytes + cache_bytes) / (card.memory_bandwidth_gb_s * 1e9 * speed.bandwidth_share)
    + iif(multiplied = 0 OR speed.product_share IS NULL, 0, 2.0 * multiplied / (rate * 1e12 * speed.product_share))
    + layer_count * speed.layer_microseconds / 1e6;

-- the row of serving_speed for an engine on a card
CREATE OR REPLACE MACRO is_speed_of(speed, engine_id, card, has_experts) AS speed.engine_id = engine_id
    AND speed.vendor = card.vendor AND coalesce(speed.segment, card.segment) = card.segment
    AND speed.has_experts = has_experts;

-- speed: the row of serving_speed for a program on a card, null where there is none. rate: of the products, null where
-- none is known
CREATE OR REPLACE MACRO likely_reason(speed, footprint, rate) AS CASE
    WHEN speed.serving_speed_id IS NULL
        THEN 'no published run of this program on such cards is read for such a model'
    WHEN footprint.sequences > coalesce(speed.users_most, footprint.sequences)
        THEN 'no published run of this program with several users is read'
    WHEN footprint.sequences > 1 AND rate IS NULL
        THEN 'no rate of products is known for this card, which several users need'
END;

-- what one user multiplies is next to nothing beside what he reads
CREATE OR REPLACE MACRO multiplied_at_once(users, token_elements, rate) AS
    iif(users = 1 AND rate IS NULL, 0, users::DOUBLE * token_elements);

-- a server sends requests through its stages in as many parts as there are stages (sends_parts), each of which reads
-- the experts of its own; llama.cpp all at once
CREATE OR REPLACE MACRO parts_of(footprint, speed) AS
    iif(speed.sends_parts, least(footprint.pipeline_parallel, footprint.sequences), 1);

CREATE OR REPLACE MACRO decode_likely(model, weight, dtype, footprint, card, speed) AS
    iif(decode_reason(model, weight, footprint, card) IS NULL
        AND likely_reason(speed, footprint, share_tflops(card, dtype.product_bits, speed)) IS NULL,
        footprint.sequences / step_seconds(likely_read_bytes(model, weight, footprint.sequences
                / parts_of(footprint, speed)) / footprint.tensor_parallel,
            cache_read_bytes(model, footprint) * footprint.pipeline_parallel / parts_of(footprint, speed),
            multiplied_at_once(footprint.sequences, model.token_elements, share_tflops(card, dtype.product_bits, speed))
                / footprint.tensor_parallel / parts_of(footprint, speed),
            model.layer_count, card, share_tflops(card, dtype.product_bits, speed), speed), NULL);

-- where no published prompt was read (product_share_least), there is none
CREATE OR REPLACE MACRO prefill_likely(model, dtype, footprint, card, speed) AS
    iif(speed.product_share_least IS NULL OR footprint.phase_id <> 'inference', NULL, footprint.tensor_parallel
        * share_tflops(card, dtype.product_bits, speed) * 1e12 * speed.product_share / (2.0 * model.token_elements));

-- the row for an engine and a card: each engine of the table by itself
CREATE OR REPLACE TABLE engine_speed AS
SELECT unnest(string_split(engine_ids, ' ')) AS engine_id, serving_speed.* EXCLUDE (engine_ids) FROM serving_speed;

-- predicted against reported
CREATE OR REPLACE TABLE serving_run AS
WITH step AS (
    SELECT run.*, gpu AS card, dtype.product_bits, speed, share_tflops(gpu, dtype.product_bits, speed) AS rate,
        run.users * run.context_tokens * run.cache_token_bytes / iif(run.is_cache_divided, run.tensor_parallel, 1)
            AS cache_bytes
    FROM serving_run_fact AS run
    JOIN gpu ON gpu.gpu_id = run.gpu_id
    JOIN dtype ON dtype.dtype_id = run.dtype_id
    LEFT JOIN serving_speed AS speed ON list_contains(string_split(speed.programs, ' '), run.program)
        AND speed.vendor = gpu.vendor AND coalesce(speed.segment, gpu.segment) = gpu.segment
        AND speed.has_experts = run.has_experts
),
bound AS (
    SELECT step.*, iif(decode_tokens_per_second IS NULL, NULL, users * card.memory_bandwidth_gb_s * 1e9
            / (read_bytes / tensor_parallel + cache_bytes)) AS decode_most,
        iif(decode_tokens_per_second IS NULL OR users > coalesce(speed.users_most, users), NULL,
            users / step_seconds(read_bytes / tensor_parallel, cache_bytes,
                multiplied_at_once(users, multiplied_count, rate) / tensor_parallel, layer_count, card, rate, speed))
            AS likely,
        iif(prefill_tokens_per_second IS NULL, NULL, gpu_count * product_tflops(card, product_bits) * 1e12
            / (2.0 * multiplied_count)) AS prefill_most
    FROM step
)
SELECT serving_run_id, model_name, model_id, gpu_id, gpu_count, tensor_parallel, program, dtype_id, users,
    context_tokens, has_experts, layer_count, read_bytes, cache_token_bytes, is_cache_divided, multiplied_count,
    decode_tokens_per_second,
    decode_most AS decode_tokens_per_second_most, decode_tokens_per_second / decode_most AS decode_share,
    likely AS decode_tokens_per_second_likely, prefill_tokens_per_second,
    prefill_most AS prefill_tokens_per_second_most, prefill_tokens_per_second / prefill_most AS prefill_share, source,
    locator
FROM bound;
