-- Where the last layers read what earlier ones cache (Gemma 3n, Gemma 4 E2B and E4B), layers that cache nothing stand
-- on the last GPUs: which share of a kind's caches the GPU with most of them holds.
--
--   kind_share(layer, model, scenario)   of a kind of layers; stage_share where no layer borrows
--
-- Units: layers. Source: llama-cpp-graph deals layers out. Not covered: periods whose full-context layer comes first.

-- Layers of a kind that cache before a stage of the pipeline begins, where the last layers cache nothing: those that
-- read the whole context are the last of each period, as in all architectures whose layers borrow.
CREATE OR REPLACE MACRO borrowed_layers(mixers) AS
    coalesce(list_sum(list_transform(mixers, lambda mixer: iif(mixer.mechanism = 'shared', mixer.layer_count, 0))), 0);
CREATE OR REPLACE MACRO caching_layers(model) AS model.layer_count - borrowed_layers(model.mixers);
CREATE OR REPLACE MACRO caching_before(stage, model, scenario) AS least(caching_layers(model),
    ceil((model.layer_count + iif(scenario.reads_prompt = 'compute-buffer', 1, 0)) * stage
        / scenario.pipeline_parallel));
CREATE OR REPLACE MACRO kind_before(layer, before, model) AS iif(layer.window_tokens IS NULL,
    floor(before * layer.layer_count / caching_layers(model)),
    before - floor(before * (caching_layers(model) - layer.layer_count) / caching_layers(model)));

-- share of the layers of a kind on the GPU that has most of them
CREATE OR REPLACE MACRO kind_share(layer, model, scenario) AS
    iif(scenario.pipeline_parallel = 1 OR borrowed_layers(model.mixers) = 0, scenario.stage_share,
        list_max(list_transform(range(0, scenario.pipeline_parallel::BIGINT), lambda stage:
            kind_before(layer, caching_before(stage + 1, model, scenario), model)
                - kind_before(layer, caching_before(stage, model, scenario), model))) / layer.layer_count);
