-- Whether an engine runs a format on a card at all: memory is not everything.
--
--   runs_on_kind: for each engine, format, phase, kind of attention and kind of card the first line of support.csv that
--       names them all
--   runs_on: the same of each card
--   card_reason(…): why a scenario has no verdict on a card; null where it runs
--   images_reason(…): the same of one with images, which take more on some cards than is counted
--   program_card_reason(…): the same of the versions of a program that was asked for
--   kv_reason(…): the same of the format of its KV cache (kv_dtype.csv, kv_reader.csv); published scenarios hold theirs
--       in 16 bits
--
-- A line names engines and formats by patterns (gguf-*), models by their type, cards by vendor, by architecture or
-- compute capability, or by a range of compute capabilities; what it leaves empty it does not ask for. `runs` is empty
-- where sources do not settle it. No line: not known. Models of a type that some line of an engine is of alone
-- (model.limited_engines) have rows of their own, of all lines: running_id names the type.
-- Units: compute capability as NVIDIA numbers it. Source: support.csv, each line with its own. Not covered: versions of
-- drivers, operating systems, kernels that run but slowly.

CREATE OR REPLACE MACRO names_one(words, word) AS
    words IS NULL OR list_bool_or(list_transform(string_split(words, ' '), lambda pattern: word GLOB pattern));

-- all that a line can ask of a card, in one word: cards of one kind run the same. card: a row of gpu
CREATE OR REPLACE MACRO card_kind(card) AS
    concat_ws('/', card.vendor, card.architecture, coalesce(card.compute_capability, ''));

-- a format, and the type of a model that runs on fewer cards in it
CREATE OR REPLACE MACRO running_word(dtype_id, model_type) AS dtype_id || coalesce('/' || model_type, '');

-- (by kind, of which there are a fifth as many as cards: every question reads it)
CREATE OR REPLACE TABLE runs_on_kind AS
WITH kind AS (SELECT DISTINCT card_kind(gpu) AS card_kind, vendor, architecture, compute_capability FROM gpu),
asked AS (
    SELECT engine.engine_id, dtype.dtype_id, phase.phase_id, way.attention
    FROM engine, dtype, phase, (VALUES ('flash'), ('eager'), ('masked')) AS way(attention)
    WHERE dtype.dtype_id <> 'stored'
        AND (phase.phase_id = 'inference' OR starts_with(engine.engine_id, 'transformers')
            OR engine.engine_id IN (SELECT engine_id FROM sharding_rule))
),
-- models that some line is of alone, by engine
limited AS (
    SELECT DISTINCT engine.engine_id, unnest(string_split(line.model_types, ' ')) AS model_type
    FROM support AS line JOIN engine ON names_one(line.engine_ids, engine.engine_id)
    WHERE line.model_types IS NOT NULL
),
asked_of AS (
    SELECT asked.*, NULL::VARCHAR AS model_type FROM asked
    UNION ALL SELECT asked.*, limited.model_type FROM asked JOIN limited USING (engine_id)
),
named AS (
    SELECT asked.*, line.* EXCLUDE (engine_ids, dtype_ids, phase_ids, attention, model_types)
    FROM asked_of AS asked JOIN support AS line
        ON names_one(line.engine_ids, asked.engine_id) AND names_one(line.dtype_ids, asked.dtype_id)
        AND (line.model_types IS NULL
            OR coalesce(list_contains(string_split(line.model_types, ' '), asked.model_type), false))
        AND names_one(line.phase_ids, asked.phase_id)
            AND coalesce(line.attention = iif(asked.attention = 'masked', 'flash', asked.attention), true)
)
SELECT named.engine_id, running_word(named.dtype_id, named.model_type) AS running_id, named.dtype_id, named.model_type,
    named.phase_id, named.attention, kind.card_kind, named.runs, named.how,
    named.images_reason, named.source
FROM named JOIN kind
    ON names_one(named.vendors, kind.vendor)
    AND (named.targets IS NULL OR coalesce(names_one(named.targets, kind.compute_capability), false)
        OR names_one(named.targets, kind.architecture))
    AND (named.least_capability IS NULL
        OR coalesce(try_cast(kind.compute_capability AS DOUBLE) >= named.least_capability, false))
    AND (named.below_capability IS NULL
        OR coalesce(try_cast(kind.compute_capability AS DOUBLE) < named.below_capability, false))
QUALIFY row_number() OVER (
    PARTITION BY named.engine_id, running_id, named.phase_id, named.attention, kind.card_kind
        ORDER BY named.support_rank
) = 1;

CREATE OR REPLACE VIEW runs_on AS
SELECT running.engine_id, running.running_id, running.dtype_id, running.model_type, running.phase_id, running.attention,
    gpu.gpu_id, running.runs, running.how, running.images_reason, running.source
FROM runs_on_kind AS running JOIN gpu ON card_kind(gpu) = running.card_kind;

-- running: the scenario's row of runs_on_kind, if there is one
CREATE OR REPLACE MACRO card_reason(running) AS CASE
    WHEN running.runs THEN NULL
    ELSE coalesce(running.how, 'no source in the book says that this engine runs this format on this card')
END;

-- the same of what a prompt's images take there
CREATE OR REPLACE MACRO images_reason(running, images) AS iif(images > 0, running.images_reason, NULL);

-- Why a program's versions say nothing of a card: their row of the table program holds from a compute capability on.
-- named: program and program_version of the scenario; card: in card_row, with the rows that say nothing of it. (The
-- newest row of a program holds on all cards, so that a question without a version has no such reason.)
CREATE OR REPLACE MACRO program_card_reason(named, card) AS list_filter(card.programs_elsewhere, lambda row:
    row.program_id = named.program AND version_number(named.program_version) >= row.from_number
        AND version_number(named.program_version) < row.below_number)[1].reason;

-- The models whose cache an engine reads on older cards (kv_reader.csv): all their layers are of the usual attention,
-- with heads of the widths that its kernel has.
CREATE OR REPLACE TABLE kv_older AS
SELECT reader.kv_dtype_id, reader.engine_id, model.model_id, reader.least_capability, reader.min_version
FROM kv_reader AS reader JOIN model ON NOT list_contains(string_split(reader.except_model_types, ' '), model.model_type)
JOIN attention_layer AS layer ON layer.model_id = model.model_id AND layer.component = 'text'
GROUP BY ALL
HAVING bool_and(layer.mechanism = 'recurrent' OR layer.mechanism IN ('full', 'sliding')
        AND layer.value_head_dim = layer.head_dim
        AND list_contains(string_split(reader.head_dims, ' '), layer.head_dim::VARCHAR))
    AND bool_or(layer.mechanism <> 'recurrent');

-- Why a card holds no KV cache in a format: 8-bit floats are read from compute capability 8.9 on, and on the cards that
-- a source names. held: the format's row of kv_dtype, joined by who asks, and older the least capability of the
-- model's row of kv_older. (A subquery over the card's columns cannot be bound by DuckDB before 2.0.)
CREATE OR REPLACE MACRO kv_reason(held, older, vendor, compute_capability) AS CASE
    WHEN held.least_capability IS NULL THEN NULL
    WHEN coalesce(iif(vendor = 'nvidia',
        try_cast(compute_capability AS DOUBLE) >= least(held.least_capability, coalesce(older, held.least_capability)),
        names_one(held.targets, compute_capability)), false)
        THEN NULL
    ELSE 'no source in the book says that a cache in ' || held.kv_dtype_id || ' is read on this card'
        || iif(vendor = 'nvidia', ': compute capability ' || least(held.least_capability,
            coalesce(older, held.least_capability)) || ' and later are known', '')
END;

-- the format that a scenario holds its weights in: that of the checkpoint where it is taken as published; with the
-- model's type where lines of support are of that type alone (model.limited_engines)
CREATE OR REPLACE MACRO running_format(model, dtype_id, engine_id) AS running_word(
    iif(dtype_id = 'stored', model.stored_format, dtype_id),
    iif(list_contains(string_split(model.limited_engines, ' '), engine_id), model.model_type, NULL));
