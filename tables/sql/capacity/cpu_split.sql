-- Layers on the GPU, the rest on the CPU: what each side holds, for every number of layers.
--
--   cpu_splits(model, weight, footprint, …)      a row for each way to share: on_gpu of 0 … n + 1, and in llama.cpp all
--                                                  of them with the experts of the first blocks on the CPU
--   most_layers, fewest_experts(ways, …)           the best of them that a card takes with its error band
--   way_beside, ram_takes(…)                       which of the two is told, and whether the computer's memory takes it
--   cpu_split                                      the ways of every model in llama.cpp's formats, for any card
--
--   llama.cpp, -ngl g of a model of n blocks: the output layer goes to the GPU first, then the last g − 1 blocks; g = n
--       + 1 is all of them.
--   The input embeddings stay on the CPU; a tied head is copied. A block's cache lies where the block does.
--       GPU = output (g ≥ 1) + blocks + their caches + compute buffer + what lies outside + one matrix, where a block
--             stays on the CPU: a long prompt copies the CPU's weights over, one at a time
--             (each begins a split of the graph, so that they take each other's place: with all experts of
--             Qwen3-30B-A3B on the CPU a buffer of 452 MiB, of which a matrix in 16 bits is 384)
--   --n-cpu-moe c: all on the GPU but the routed experts of the first c blocks
--   Transformers with device_map: embeddings and the first g layers stay on the GPU, the cache of all layers is there,
--       and room is left
--   for the largest part that is brought over to run: a layer, or the head
--
-- Units: bytes of one GPU and of the host. `held` are a model's layers as lists (layer_bytes, expert_bytes) from the
--   first on, and its largest matrix_bytes.
-- Sources: llama-cpp-offload (load_tensors: i_gpu_start, dev_input,
--   dev_output; common.h: the pattern of --n-cpu-moe; ggml-backend.cpp for weights that are copied), accelerate
--   (infer_auto_device_map: the reserve for the largest layer; hooks run every layer on the main device). accelerate
--   itself plans with nine tenths of the card and without the cache.
-- Which layers have which cache is as llama-cpp-layers-two-gpus lists them of Gemma 4 31B.
-- Caches of different kinds of layers lie where their layers do (`blocks` of attention_layer); where their order was
--   not read, the largest ones are taken to be on the GPU. Not covered: several GPUs, disk,
--   bitsandbytes (its layers run on the GPU only), -ot with patterns of one's own, what the host holds beside weights
--   and caches.

-- Where the layers of each kind lie: as their rows name them, or everywhere. Null where nobody read it.
CREATE OR REPLACE MACRO blocks_of(layer, model) AS
    coalesce(layer.blocks, iif(layer.layer_count >= model.layer_count, range(model.layer_count), NULL));
CREATE OR REPLACE MACRO caches_anything(layer) AS
    layer.elements_per_token + layer.state_elements + layer.conv_state_elements > 0;
CREATE OR REPLACE MACRO is_placed(model) AS coalesce(list_bool_and(list_transform(model.caches,
    lambda layer: blocks_of(layer, model) IS NOT NULL OR NOT caches_anything(layer))), true);

-- Bytes of one layer of a kind. What a cache holds beside the tokens that are read (whole cells, and a window's
-- micro-batch) is that of layers with a window, where there are any; the others have their part of it beside that,
-- which is never less than what they round up to. So the sum may be more than the whole, and is never less.
CREATE OR REPLACE MACRO read_elements(layer, footprint) AS layer.elements_per_token
    * least(footprint.context_tokens, coalesce(layer.window_tokens, footprint.context_tokens));
CREATE OR REPLACE MACRO state_size(layer) AS
    (layer.state_elements + layer.conv_state_elements) * layer.state_bytes_each;
CREATE OR REPLACE MACRO cache_sums(model, footprint) AS {
    'read': greatest(list_sum(list_transform(model.caches,
        lambda layer: layer.layer_count * read_elements(layer, footprint))), 1),
    'windows': coalesce(list_sum(list_transform(model.caches,
        lambda layer: iif(layer.window_tokens IS NULL, 0, layer.layer_count * layer.elements_per_token))), 0),
    'elements': greatest(list_sum(list_transform(model.caches,
        lambda layer: layer.layer_count * layer.elements_per_token)), 1),
    'states': greatest(list_sum(list_transform(model.caches, lambda layer: layer.layer_count * state_size(layer))), 1)
};
CREATE OR REPLACE MACRO one_layer_bytes(layer, sums, footprint) AS
    footprint.kv_cache_bytes * (read_elements(layer, footprint) / sums.read)
    + footprint.kv_padding_bytes * (layer.elements_per_token
        / iif(layer.window_tokens IS NULL OR sums.windows = 0, sums.elements, sums.windows))
    + footprint.state_bytes * (state_size(layer) / sums.states);

-- What each layer caches, in their order; where that is not known the largest last, and of kinds that lie side by side
-- one of each, so that any so many layers hold no more than the last.
-- (`list_transform([value], lambda name: …)[1]` names a value: DuckDB would work it out again for every block.)
CREATE OR REPLACE MACRO ordered_caches(layer_count, kinds) AS list_transform(range(layer_count),
    lambda block: coalesce(list_sum(list_transform(kinds,
        lambda kind: iif(list_contains(kind.blocks, block), kind.bytes, 0))), 0));
CREATE OR REPLACE MACRO each_cached(kinds) AS list_reverse_sort(flatten(list_transform(kinds,
    lambda kind: list_transform(range(kind.layer_count), lambda place: kind.bytes))));
CREATE OR REPLACE MACRO largest_last(layer_count, kinds) AS list_transform([each_cached(kinds)],
    lambda cached: list_transform(range(layer_count), lambda block: coalesce(
        iif(len(cached) <= layer_count, cached[layer_count - block], list_sum(list_transform(kinds,
            lambda kind: iif(block >= layer_count - kind.layer_count, kind.bytes, 0)))), 0)))[1];
CREATE OR REPLACE MACRO kind_caches(model, footprint) AS list_transform([cache_sums(model, footprint)],
    lambda sums: list_transform(model.caches, lambda layer: {'layer_count': layer.layer_count,
        'blocks': blocks_of(layer, model), 'bytes': one_layer_bytes(layer, sums, footprint)}))[1];
CREATE OR REPLACE MACRO layer_caches(model, footprint) AS list_transform([kind_caches(model, footprint)],
    lambda kinds: iif(is_placed(model), ordered_caches(model.layer_count, kinds),
        largest_last(model.layer_count, kinds)))[1];

CREATE OR REPLACE MACRO cache_held(footprint) AS
    footprint.kv_cache_bytes + footprint.kv_padding_bytes + footprint.state_bytes;

-- Weights that the GPU keeps.
CREATE OR REPLACE MACRO gpu_weights_of(model, weight, held, is_llama_cpp, way) AS CASE
    WHEN is_llama_cpp AND way.on_gpu = 0 THEN 0
    WHEN is_llama_cpp THEN iif(model.is_head_tied, weight.embedding_bytes - weight.input_bytes, weight.head_bytes)
        + weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes - weight.head_bytes
        + coalesce(list_sum(list_slice(held.layer_bytes, model.layer_count - way.on_gpu + 2, model.layer_count)), 0)
        - coalesce(list_sum(list_slice(held.expert_bytes, 1, way.experts_off)), 0)
    ELSE weight.embedding_bytes + coalesce(list_sum(list_slice(held.layer_bytes, 1, way.on_gpu - 1)), 0)
        + iif(way.on_gpu > model.layer_count,
            weight.weights_bytes - weight.layer_bytes - weight.embedding_bytes, 0)
END;

-- The cache that lies on the GPU: of its blocks, which are the last.
CREATE OR REPLACE MACRO gpu_cache_of(model, footprint, caches, is_llama_cpp, way) AS
    iif(is_llama_cpp AND way.on_gpu <= model.layer_count,
        least(cache_held(footprint), coalesce(list_sum(list_slice(caches,
            model.layer_count - greatest(way.on_gpu, 1) + 2, model.layer_count)), 0)),
        cache_held(footprint));

-- What has to be brought over to run there, one at a time (of a block whose experts stay, gate, up and down one after
-- another; gate and up are counted as one, which some files have them in).
CREATE OR REPLACE MACRO host_output_bytes(model, weight) AS
    iif(model.is_head_tied, weight.embedding_bytes - weight.input_bytes, weight.head_bytes);
CREATE OR REPLACE MACRO brought_over(model, weight, held, is_llama_cpp, way) AS CASE
    WHEN way.on_gpu > model.layer_count AND way.experts_off = 0 THEN 0
    -- (the output too, where it stays)
    WHEN is_llama_cpp AND way.on_gpu = 0 THEN greatest(held.matrix_bytes, host_output_bytes(model, weight))
    WHEN is_llama_cpp THEN held.matrix_bytes
    ELSE greatest(weight.head_bytes, list_max(held.layer_bytes))
END;

CREATE OR REPLACE MACRO shared_bytes(model, weight, footprint, is_llama_cpp, way, gpu_weights, gpu_cache, brought) AS {
    'on_gpu': way.on_gpu, 'cpu_expert_layers': way.experts_off,
    -- as -ngl counts them in llama.cpp, where the output is one more
    'gpu_layers': iif(is_llama_cpp, way.on_gpu, greatest(way.on_gpu - 1, 0)),
    'gpu_bytes':
        (gpu_weights + ceil(gpu_cache) + footprint.activations_bytes + footprint.overhead_bytes + brought)::BIGINT,
    'host_bytes': greatest(0, weight.weights_bytes
        + iif(is_llama_cpp AND model.is_head_tied AND way.on_gpu > 0, weight.embedding_bytes - weight.input_bytes,
            0)
        - gpu_weights + cache_held(footprint) - ceil(gpu_cache))::BIGINT
};

CREATE OR REPLACE MACRO cpu_split_steps(layer_count, has_experts) AS list_concat(
    list_transform(range(0, layer_count + 2), lambda step: {'on_gpu': step, 'experts_off': 0}),
    list_transform(range(1, iif(has_experts, layer_count + 1, 1)),
        lambda step: {'on_gpu': layer_count + 1, 'experts_off': step}));

-- (`caches` are layer_caches, worked out in a step before: DuckDB would do it again for every way)
CREATE OR REPLACE MACRO cpu_splits_of(model, weight, footprint, held, caches, is_llama_cpp) AS list_transform(
    cpu_split_steps(model.layer_count, is_llama_cpp AND list_max(held.expert_bytes) > 0),
    lambda way: shared_bytes(model, weight, footprint, is_llama_cpp, way,
        gpu_weights_of(model, weight, held, is_llama_cpp, way),
        gpu_cache_of(model, footprint, caches, is_llama_cpp, way),
        brought_over(model, weight, held, is_llama_cpp, way)));
CREATE OR REPLACE MACRO cpu_splits(model, weight, footprint, held, caches) AS
    cpu_splits_of(model, weight, footprint, held, caches, footprint.engine_id = 'llama.cpp');

-- The most layers that fit, and the fewest blocks whose experts stay on the CPU while all else is on the GPU.
CREATE OR REPLACE MACRO most_layers(ways, error_band, bytes) AS
    list_filter(ways, lambda way: way.cpu_expert_layers = 0 AND takes(way.gpu_bytes, error_band, bytes))[-1];
CREATE OR REPLACE MACRO fewest_experts(ways, layer_count, error_band, bytes) AS
    list_filter(ways, lambda way: way.on_gpu > layer_count AND takes(way.gpu_bytes, error_band, bytes))[1];

-- What is told of a computer whose memory is known: experts of a mixture rather than whole layers, which keeps more on
-- the GPU. Null where all of it is on the GPU, or nothing. That memory takes it with the same margin, beside what the
-- system needs (host_system_bytes).
CREATE OR REPLACE MACRO way_beside(gpu_layers, cpu_expert_layers, layer_count) AS CASE
    WHEN gpu_layers BETWEEN 1 AND layer_count THEN iif(cpu_expert_layers IS NULL, 'layers', 'experts')
END;
CREATE OR REPLACE MACRO ram_takes(host_bytes, error_band, ram_bytes, system_bytes) AS
    takes(host_bytes, error_band, ram_bytes - system_bytes);

-- As many layers on the GPU, and as many blocks whose experts stay, as somebody says; more than there are are all.
CREATE OR REPLACE MACRO told_layers(ways, layer_count, told) AS list_filter(ways,
    lambda way: way.cpu_expert_layers = 0 AND way.on_gpu <= least(told, layer_count + 1))[-1];
CREATE OR REPLACE MACRO told_experts(ways, layer_count, told) AS list_filter(ways,
    lambda way: way.on_gpu > layer_count AND way.cpu_expert_layers <= least(told, layer_count))[-1];

-- Whether the layers add up to what the table `weight` has of them: else they are not told apart.
CREATE OR REPLACE MACRO has_layers_apart(weight, held) AS
    coalesce(list_sum(held.layer_bytes), 0) * 1.001 >= greatest(weight.layer_bytes, 1);

-- Of every model at 8,192 tokens; `layer_weight` is worked out in the build, once for models that are alike.
CREATE OR REPLACE VIEW cpu_split AS
WITH sized AS MATERIALIZED (
    SELECT
        {'layer_count': shape.layer_count, 'is_head_tied': shape.is_head_tied} AS model,
        {'weights_bytes': weight.weights_bytes, 'layer_bytes': weight.layer_bytes,
            'embedding_bytes': weight.embedding_bytes, 'head_bytes': weight.head_bytes,
            'input_bytes': weight.input_bytes} AS weight,
        {'engine_id': footprint.engine_id, 'kv_cache_bytes': footprint.kv_cache_bytes,
            'kv_padding_bytes': footprint.kv_padding_bytes, 'state_bytes': footprint.state_bytes,
            'activations_bytes': footprint.activations_bytes, 'overhead_bytes': footprint.overhead_bytes} AS footprint,
        {'layer_bytes': held.layer_bytes, 'expert_bytes': held.expert_bytes, 'matrix_bytes': held.matrix_bytes} AS held,
        layer_caches(shape, footprint) AS caches,
        footprint.model_id, footprint.dtype_id, footprint.engine_id, footprint.context_tokens, footprint.sequences,
        footprint.error_band
    FROM footprint
    JOIN shape ON shape.model_id = footprint.model_id
    JOIN weight ON weight.model_id = footprint.model_id AND weight.dtype_id = footprint.dtype_id
    JOIN layer_weight AS held ON held.model_id = footprint.model_id AND held.dtype_id = footprint.dtype_id
    WHERE footprint.engine_id = 'llama.cpp' AND footprint.context_tokens = 8192 AND footprint.sequences = 1
        AND footprint.gpu_count = 1 AND footprint.total_bytes IS NOT NULL AND has_layers_apart(weight, held)
),
-- (unnested in the list of columns: DuckDB 1.2 does not read structs that a macro makes beside FROM)
spread AS (
    SELECT sized.* EXCLUDE (model, weight, footprint, held, caches),
        unnest(cpu_splits(sized.model, sized.weight, sized.footprint, sized.held, sized.caches)) AS way
    FROM sized
)
SELECT
    spread.model_id, spread.dtype_id, spread.engine_id, spread.context_tokens, spread.sequences,
    way.gpu_layers::BIGINT AS gpu_layers, way.cpu_expert_layers::BIGINT AS cpu_expert_layers, way.gpu_bytes,
    way.host_bytes, spread.error_band
FROM spread;
