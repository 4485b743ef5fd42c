"""What of a prediction each measured quantity is compared with, as expressions of SQL."""

from __future__ import annotations

# Between two steps, and what cuBLAS takes of the allocator on the card that was measured: for each thread that multiplies, in
# training that of the forward pass and autograd's.
_RESIDENT = "f.weights_bytes + f.kv_cache_bytes + f.kv_padding_bytes + f.state_bytes + resting_bytes(m, {'rotations_in': run.rotations_in, 'dtype_id': f.dtype_id, 'context_tokens': f.context_tokens})::BIGINT"
_WORKSPACE = (
    "(iif(f.phase_id = 'inference', 1, 2) * CASE a.workspace WHEN 'hopper' THEN k.cublas_workspace_bytes "
    "WHEN 'older' THEN k.cublas_workspace_old_bytes ELSE 0 END)::BIGINT"
)
# Versions that hand the cache over as tuples keep the old one while a step makes the new one.
_OLD_CACHE = "iif(f.engine_id = 'transformers-4.44', f.kv_cache_bytes, 0)"
# AutoAWQ's fused attention holds rotations of every position of its cache in each layer: a complex number for two elements of a head.
_FUSED_ROTATIONS = (
    "8 * m.head_dim_max / 2 * f.context_tokens * list_sum(list_transform(m.caches, lambda layer: layer.layer_count))"
)
# (the driver holds paged states, and PyTorch's allocator knows nothing of them)
_PAGED = "iif(starts_with(f.optimizer_id, 'paged-'), f.optimizer_bytes, 0)"
_ALLOCATED = f"f.total_bytes - f.overhead_bytes - {_PAGED} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE}"
# What a process takes of a Hopper card beyond the context that every footprint counts: it is on the card's side (capacity).
BEYOND = "(k.cuda_context_hopper_mib * 1048576 - k.process_context_bytes)::BIGINT"
# Of so many GiB of a card and of it such a share, as a server's log names both: what weights, profiling run and the rest leave.
_CACHE_LEFT = "a.card_share * a.card_gib * 1073741824 - f.weights_bytes - rounding_bytes(m, f) - f.activations_bytes - non_torch_bytes(f, k)"
# Sums of components that measurements are compared with, over a footprint f, its weights w, the constants k and the measurement a.
COMPARED = {
    "allocated": _ALLOCATED,
    # of a first step, whose packed layers' inputs of the step before are not there yet
    "allocated_first": f"{_ALLOCATED} - (f.context_tokens * f.sequences * packed_inputs(m, {{'keeps_packed_inputs': run.keeps_packed_inputs, "
    "'phase_id': f.phase_id, 'compute_bytes': 2, 'adapter': f.adapter}))::BIGINT",
    # summed over two and three cards, each of which has the activations of a layer at some time
    "allocated_on_two": f"{_ALLOCATED} + f.activations_bytes",
    "allocated_on_three": f"{_ALLOCATED} + 2 * f.activations_bytes",
    "loaded": "f.weights_bytes + rounding_bytes(m, f)::BIGINT + rotation_table_bytes(m, f)",
    "with_adapters": "f.weights_bytes + f.adapters_bytes",
    # what the allocator holds of a model that was loaded, with its adapters
    "reserved_before_training": "f.weights_bytes + f.adapters_bytes + rounding_bytes(m, f)::BIGINT + packing_bytes(m, f)",
    "reserved": "f.total_bytes - k.process_context_bytes::BIGINT",
    "resident": f"{_RESIDENT} + {_WORKSPACE}",
    "resident_fused": f"{_RESIDENT} + {_FUSED_ROTATIONS} + {_WORKSPACE}",
    "generated": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE}",
    # as the driver sees it
    "generated_total": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE} + k.process_context_bytes::BIGINT",
    "generated_on_hopper": f"{_RESIDENT} + {_OLD_CACHE} + rounding_bytes(m, f)::BIGINT + {_WORKSPACE} + k.process_context_bytes::BIGINT + {BEYOND}",
    "profiled": "f.activations_bytes - rotation_table_bytes(m, f)",
    "cache": "f.kv_cache_bytes + f.kv_padding_bytes",
    # what a server leaves for its cache of the share of the card that its log names
    "cache_left": _CACHE_LEFT,
    "tokens_left": f"16 * floor(({_CACHE_LEFT}) / (f.kv_cache_bytes / (f.context_tokens * f.sequences)) / 16)",
    # of the layers without a window, which some engines print by themselves
    "cache_of_whole_context": "(f.sequences * f.context_tokens * 2 * list_sum(list_transform(m.caches, lambda layer: "
    "iif(layer.window_tokens IS NULL, layer.layer_count * layer.elements_per_token, 0))))::BIGINT",
    "device_weights": "f.weights_bytes",
    "weights_without_embedding": "f.weights_bytes - w.input_bytes",
    # of a process that has loaded a model and runs nothing yet
    "loaded_total": "f.weights_bytes + coalesce(run.process_context_bytes, k.process_context_bytes)::BIGINT",
    "non_torch": "non_torch_bytes(f, k)::BIGINT",
    "graphs": "graphs_bytes_vllm(m, f, k)::BIGINT",
    "states": "f.weights_bytes + f.gradients_bytes + f.optimizer_bytes",
    # of a stage of a pipeline that has neither embedding nor head: the first stage's without its embedding
    "states_of_middle": "((f.weights_bytes + f.gradients_bytes + f.optimizer_bytes) * (m.layer_elements / f.pipeline_parallel) "
    "/ (m.layer_elements / f.pipeline_parallel + m.input_elements))::BIGINT",
    "context": "k.process_context_bytes::BIGINT",
    "total_on_hopper": f"f.total_bytes + {BEYOND}",
    "parameter_count": "m.parameter_count",
    # of a file, of which an engine may leave a part in the computer's memory
    "weights_bytes": "f.weights_bytes + if(f.engine_id IN (SELECT engine_id FROM engine_memory WHERE inputs_on_host), "
    "coalesce(w.input_bytes, 0), 0)",
    **{name: f"f.{name}" for name in ("kv_cache_bytes", "activations_bytes", "total_bytes")},
}
# The same of a pipeline p: of the part that allocates most, which need not be the one whose unused blocks make it the largest; and
# of one whose denoiser stays while the other parts come and go.
COMPARED_PIPELINE = {
    "allocated": "p.allocated_bytes",
    "allocated_beside_denoiser": "p.beside_denoiser_bytes",
    "reserved": "p.total_bytes - k.process_context_bytes::BIGINT",
    "total_bytes": "p.total_bytes",
}
