"""Every table that the almanac reads from its book or publishes: its columns, its key, what may be null.

A table names its columns; `name?` marks one that may be null (unknown, or not applicable). Type, unit and meaning of each name
are declared once, in tables/schema/column.csv. Types: string, integer (signed 64 bit), number (double), boolean, date.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.anatomy.rows import GRIDS, MECHANISMS, OPERATORS, READERS, RECURRENCES, TENSOR_CLASSES
from pipeline.book.columns import COLUMNS, Column, SchemaError
from pipeline.book.components import COMPONENTS

__all__ = ["COLUMNS", "DUCKDB_TYPES", "FACTS", "MACROS", "PUBLISHED", "SNAPSHOT", "Column", "SchemaError", "Table"]

DUCKDB_TYPES = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE"}

# begins the reason of a `rejected` row whose model the Hub has under another name; its new id follows
NOW_NAMED = "now named "

ENUMS = {
    "anatomy_grade": ("exact", "matched", "derived", "unknown"),
    "phase_id": ("inference", "pretrain", "full-finetune", "lora", "qlora"),
    "verdict": ("fits", "tight", "multi-gpu", "no"),
    "capacity_basis": ("measured", "imputed"),
    "confidence": ("high", "medium", "low"),
    "tensor_class": TENSOR_CLASSES,
    "operator": OPERATORS,
    "mechanism": MECHANISMS,
    "recurrence": RECURRENCES,
    "reader": READERS,
    "grid": GRIDS,
    "norm_kind": ("rms", "layer"),
    "purpose": ("lookup", "ladder", "opening"),
    "window_use": ("never", "always", "listed"),
    "reads_prompt": ("whole", "profile", "profile-of-prompts", "chunk", "compute-buffer", "pieces"),
    "logits_of": ("last", "all"),
    "rotations_in": ("model", "layers"),
    "file_part": ("whole", "denoiser", "text_encoder", "vae", "adapter", "detector"),
    "gap": ("load", "memory", "packing", "speed"),
    "vendor": ("nvidia", "amd", "intel", "apple", "google"),
    "segment": ("consumer", "workstation", "datacenter", "unified", "embedded", "tpu"),
    "tflops_basis": ("read", "ratio", "recalled", "none"),
    "parameters_kind": ("exact_safetensors", "exact_gguf", "exact_packed_elements", "rounded", "estimate"),
    "config_kind": (
        "verbatim",
        "quoted",
        "sibling",
        "reconstructed",
        "library_defaults",
        "library_table",
        "partial",
        "assumed",
    ),
}


@dataclass(frozen=True)
class Table:
    """A table by name: what a row is, its key, its columns in order, which of them may be null."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    nullable: frozenset[str]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _table(name: str, meaning: str, key: str, columns: str) -> Table:
    names = columns.split()
    bare = [n.removesuffix("?") for n in names]
    return Table(
        name,
        meaning,
        tuple(key.split()),
        tuple(COLUMNS.of(n, name) for n in bare),
        frozenset(b for b, n in zip(bare, names, strict=True) if n.endswith("?")),
    )


def _tables(*tables: Table) -> dict[str, Table]:
    return {table.name: table for table in tables}


# tables/facts/*.csv: kept by hand, every row with its source.
FACTS = _tables(
    _table("source", "Where facts come from.", "source_id", "source_id title publisher? licence? locator? retrieved?"),
    _table(
        "gpu_class",
        "What cards of a kind report of their memory where nobody read it, and what a process's context takes there. A line that names "
        "an architecture goes before one of the whole vendor, a larger memory before a smaller.",
        "vendor architecture least_gib",
        "vendor architecture? least_gib? ratio_constant context_constant? source",
    ),
    _table(
        "gpu",
        "Accelerators, and the memory that a program really gets.",
        "gpu_id",
        "gpu_id name vendor segment architecture compute_capability? memory_gib_nominal memory_mib_reported? "
        "memory_mib_cuda? memory_type? memory_bandwidth_gb_s? bf16_tflops_dense? fp16_tflops_dense? "
        "fp8_tflops_dense? int8_tops_dense? fp4_tflops_dense? tflops_basis? nvlink_gb_s? tdp_w? release_date? "
        "msrp_usd? source memory_reported_source? note?",
    ),
    _table(
        "gpu_name",
        "Names that drivers print of a card, for programs that ask the machine. A name may stand for cards of several sizes.",
        "gpu_id driver_name",
        "gpu_id driver_name source",
    ),
    _table(
        "dtype",
        "Formats that weights are held in, and the engine that runs each by default.",
        "dtype_id",
        "dtype_id name engine_id bits_per_weight? product_bits? is_trainable has_packed_experts note? source",
    ),
    _table(
        "weight_format",
        "How a dtype holds a tensor: bits per element and per row by the tensor's operator and class. The most specific "
        "row wins; a null pattern matches everything.",
        "dtype_id engine_id operator tensor_class role",
        "dtype_id engine_id? operator? tensor_class? role? element_bits row_bits group_elements? note? source",
    ),
    _table(
        "gguf_type",
        "Block formats of GGUF: bytes of a block and the elements it holds.",
        "gguf_type",
        "gguf_type block_elements block_bytes fallback_gguf_type? source",
    ),
    _table(
        "gguf_mix",
        "Which block format each llama.cpp quantisation mix gives a tensor role; `layer_rule` says in which layers.",
        "dtype_id role layer_rule",
        "dtype_id role layer_rule gguf_type source",
    ),
    _table("phase", "What is done with a model.", "phase_id", "phase_id name meaning source"),
    _table(
        "optimizer",
        "Optimizers: the bytes of state per trained parameter.",
        "optimizer_id",
        "optimizer_id name state_bytes_per_parameter? state_form state_count follows_parameter_dtype keeps_projection "
        "step_copies step_largest_fp32_copies note? source",
    ),
    _table(
        "activation",
        "Activation functions that are no single kernel, by what they hold. One that is not listed needs its input and its output.",
        "function_name",
        "function_name alive_tensors kept_tensors kept_tensors_adapter kept_tensors_amp note? source",
    ),
    _table(
        "packed_kernel",
        "What a kernel of Transformers that takes packed weights apart holds beside the residual stream, by the tokens that it reads. "
        "What is not listed holds nothing more.",
        "dtype_id from_tokens",
        "dtype_id from_tokens below_tokens? block_tensors unpacked_bytes_each note? source",
    ),
    _table(
        "implementation",
        "How an architecture's code in Transformers differs from what its anatomy implies, as far as training memory feels it. "
        "Null means that it does not.",
        "model_type",
        "model_type norm_form? rotary_form? softmax_form? loss_form? attention_form? has_score_cap? has_logit_cap? "
        "router_input_bytes? feed_forward_extra? residual_extra? eager_hidden_16? eager_hidden_32? value_norm_bytes? has_mask_buffer? has_layer_masks? has_block_dropout? are_experts_adapted? "
        "are_mixer_outputs_adapted? runs_all_experts? has_own_code? note? source",
    ),
    _table(
        "pipeline_stage",
        "What a stage of a diffusion pipeline holds at its peak, by the class that runs it: tensors of its widths for each token.",
        "class_name plan",
        "class_name plan stage token_frames token_side? side_multiple? hidden_16 hidden_32 width_tensors block_hidden text_hidden table_heads "
        "attention_hidden attention_scores block_scores mask_scores sequences_each text_tokens first_frames frames_at_once kept_16 kept_32 "
        "result_tensors tile_width tile_height tiled_result_tensors blended_tensors least_bytes note? source",
    ),
    _table(
        "image_processor",
        "How pictures are resized or cut before a model sees them, and the tokens that are added: by processor, with what a checkpoint's "
        "config does not say. The rules are in tables/sql/activations/images/image_tokens.sql.",
        "processor_id",
        "processor_id rule min_image_tokens? max_image_tokens? max_side_patches? side_tiles? max_tiles? grids? image_extra_tokens "
        "tile_extra_tokens row_extra_tokens source locator? confidence note?",
    ),
    _table(
        "recurrence",
        "What a recurrent layer's PyTorch code in Transformers holds, in bytes for each element of a width: what the forward pass "
        "keeps for the backward pass, and the most that backward or prefill hold beside it. A moment in several rows that differ "
        "in `part` is the largest of them.",
        "recurrence regime moment part per",
        "recurrence regime moment part per per_hidden per_convolution per_key per_value per_head per_chunk per_state source",
    ),
    _table(
        "engine",
        "Programs that run models; what a training loop holds beyond Trainer's. One with an unknown_reason is named, but not answered for.",
        "engine_id",
        "engine_id name engine_version? parallelism keeps_logits keeps_gradients repeats_keys chunks_logits prepares_base keeps_alternate_products offloads_checkpoints expandable_segments fused_loss? norm_form? gradient_bytes? process_context_bytes? "
        "training_error_band_constant? unknown_reason? note? source",
    ),
    _table(
        "program",
        "Programs that people run, by version and phase: the engine whose formulas hold for each, and what it does where nobody says otherwise. "
        "One with an unknown_reason is named, but not answered for.",
        "program_id phase_ids min_version",
        "program_id min_version? max_version? name other_names? phase_ids engine_id? dtype_id? context_tokens? reads_whole_context "
        "sequences? kv_dtype_id? optimizer_id? checkpointing? precision? loss? attention? lora_rank? lora_targets? lora_dropout? "
        "gradient_accumulation? sharding? card_share? is_one_machine unknown_reason? note? source",
    ),
    _table(
        "repository_name",
        "How repositories, files and tags of a quantisation are named: a pattern of the name, and of which model and format it speaks. The "
        "lowest rank that matches wins; \\1 and \\2 are what its brackets hold.",
        "name_rank",
        "name_rank name_pattern base_name name_dtype? note? source",
    ),
    _table(
        "ollama_tag",
        "Names of Ollama's library: the model and the format that each tag is, and how large its file is. Without a format it is a mix that none "
        "of ours comes near.",
        "ollama_name ollama_size",
        "ollama_name ollama_size is_latest base_name dtype_id? file_bytes note? source",
    ),
    _table(
        "repository_file",
        "Repositories that hold several models, or parts of one, as single files: a row for each file of which its size or the model "
        "that it is a copy of is known.",
        "model_id file_name",
        "model_id file_name file_part of_model_id? dtype_id? file_bytes? note? source locator",
    ),
    _table(
        "support",
        "Which engines run which formats on which cards: lists are separated by spaces and may hold patterns (gguf-*); what is "
        "empty is not asked for, the lowest rank wins.",
        "support_rank",
        "support_rank engine_ids dtype_ids? phase_ids? attention? vendors? targets? least_capability? below_capability? runs? how? "
        "source locator?",
    ),
    _table(
        "engine_memory",
        "What an engine sets aside for a cache: in which steps, and how much of a layer with a sliding window; how it reads a prompt, and what "
        "else of its ways decides its memory.",
        "engine_id window_use",
        "engine_id window_use cell_constant? most_sequences_constant? looked_sequences_constant? beyond_constant? window_overlap_tokens? extra_window_cells? reads_prompt? logits_of? "
        "rotations_in? copies_tied_head? error_band_constant? image_reason? several_gpus_reason? encoder_reason? note? source",
    ),
    _table(
        "engine_window",
        "Architectures whose sliding windows the engine's cache makes use of; of all others that engine holds the whole context.",
        "engine_id model_types",
        "engine_id model_types source",
    ),
    _table(
        "engine_gap",
        "Architectures that an engine cannot load, or of which the book does not know what it holds; what is not listed was not "
        "looked for.",
        "engine_id gap how",
        "engine_id gap how model_types source",
    ),
    _table(
        "sharding_rule",
        "What each training framework holds beside its shards, by the way it shares the work. A combination without a row is none of "
        "the framework's.",
        "engine_id sharding",
        "engine_id sharding scheme has_master_weights keeps_gradients is_root_whole is_divided_by_expert has_fused_kernels is_sequence_parallel "
        "reduce_bytes? bucket_elements? bucket_count? live_elements? can_offload_optimizer can_offload_all note? source",
    ),
    _table(
        "objective",
        "What training on preferences holds beside the step of its rows: the reference, and its logits. One without numbers has a reason.",
        "objective_id",
        "objective_id name rows_each bytes_per_logit? holds_for? unknown_reason? note? source",
    ),
    _table(
        "draft_rule",
        "What each engine holds for a model that drafts tokens for another one, beside its weights and its cache. An engine without a row: "
        "not known.",
        "engine_id holds_for",
        "engine_id dtype_id? kv_dtype_id? holds_buffers_apart takes_any_cache most_sequences? vocab_difference_most? standing_widths "
        "sampler_bytes_per_logit? overhead_constants? setting holds_for note source",
    ),
    _table(
        "kv_dtype",
        "Formats that a KV cache is held in: bits per element, block overhead included. Empty least_capability: on every card.",
        "kv_dtype_id",
        "kv_dtype_id name element_bits engine_ids? least_capability? targets? source",
    ),
    _table(
        "constant",
        "Every constant of the formulas, with its unit and source.",
        "constant_id",
        "constant_id value unit applies_to source locator? confidence note?",
    ),
    _table(
        "scenario_set",
        "The default lookup: the scenarios that are published for every model. Lists are separated by spaces.",
        "scenario_set_id",
        "scenario_set_id purpose phase_ids dtype_ids engine_ids? contexts sequence_counts optimizer_ids? checkpointings? gpu_counts "
        "sharding? least_parameter_count? note?",
    ),
    _table(
        "reading",
        "How the words of `measured` are read as a scenario: where `column_name` matches `pattern` (and `when_column` matches "
        "`when_pattern`), the scenario's field `reads` is `as_value`. The lowest rank wins; a field `reason` says why a row is "
        "not compared, `compared_with` which part of the footprint it is compared with.",
        "rank",
        "rank when_column? when_pattern? column_name pattern? reads as_value note?",
    ),
    _table(
        "checkpoint_gap",
        "What single checkpoints hold where the source of their config is silent or repeats a class's default. A filling is tried where its "
        "model_types and config_kinds agree (empty: any), and counts only where the published total then comes out to the element.",
        "filling field",
        "filling model_types? config_kinds? field stated? value_json source",
    ),
    _table(
        "plan_set",
        "The plans that are published: models, cards, users and contexts that many ask about. Lists are separated by spaces; a model that the "
        "snapshot does not have is left out.",
        "plan_set_id",
        "plan_set_id phase_ids model_ids dtype_ids? gpu_ids user_counts? contexts? data_sizes? note?",
    ),
    _table(
        "technique",
        "Techniques of training that are compared: each a scenario that differs from the first in one thing.",
        "technique_id",
        "technique_id technique_rank name phase_id dtype_id optimizer_id precision checkpointing attention engine_id sharding? gpu_count "
        "tensor_parallel pipeline_parallel offload loss gradient_accumulation why source",
    ),
    _table(
        "training_run",
        "Published speeds of trainings: what the share of a card's rate that a training reaches is taken from.",
        "run_id",
        "run_id model_name gpu_id gpu_count phase_id context_tokens checkpointing multiplied_count? logit_element_count? attention_width? "
        "tokens_per_second_gpu? tflops_gpu? source locator",
    ),
    _table(
        "serving_run",
        "Published speeds of serving: what likely speeds are taken from.",
        "serving_run_id",
        "serving_run_id model_name model_id gpu_id gpu_count tensor_parallel program dtype_id users context_tokens has_experts layer_count "
        "read_bytes cache_token_bytes is_cache_divided multiplied_count decode_tokens_per_second? prefill_tokens_per_second? source locator",
    ),
    _table(
        "serving_speed",
        "How near programs come to the bounds of speed: three shares for each kind of program, fitted to the runs of serving_run, and how far "
        "runs lie from them that were not fitted.",
        "serving_speed_id",
        "serving_speed_id engine_ids programs vendor segment? has_experts users_most? sends_parts bandwidth_share layer_microseconds product_bits? product_share? product_share_least? "
        "product_share_most? quicker_ratio slower_ratio note?",
    ),
    _table(
        "rule_of_thumb",
        "Rules of thumb: what each multiplies, and which part of which footprint it speaks of. Published with their errors.",
        "rule_id",
        "rule_id rule_rank name says against phase_id dtype_id context_tokens sequences checkpointing? basis multiplier "
        "compared_with example_parameter_count? example_bytes? why source",
    ),
    _table(
        "correction",
        "Known errors upstream. The build fails when the source no longer says `expected_old`.",
        "model_id field",
        "model_id field expected_old corrected reason source",
    ),
)

# tables/hub: what the Hub said, read through pipeline.hub.snapshot.
SNAPSHOT = _tables(
    _table(
        "hub_model",
        "Stable facts of one model revision.",
        "model_id",
        "model_id revision? pipeline_tag? library? license? is_gated? created_at? last_modified? base_model_id? "
        "stored_parameter_count? approximate_parameter_count? parameters_kind? parameters_by_dtype_json? "
        "parameters_source? config_json? config_kind? config_source? config_note? config_inferred_fields? "
        "ffn_width_reported? context_length_reported? storage_bytes? quantization_hint? sources",
    ),
    _table("popularity", "What changes weekly.", "model_id", "model_id downloads_30d? likes? facts_as_of"),
)

PUBLISHED = _tables(
    FACTS["source"],
    _table(
        "model",
        "One row per model of the snapshot, whether its anatomy is known or not.",
        "model_id",
        "model_id revision? pipeline_tag? library? license? is_gated? downloads_30d? likes? family? model_type? "
        "architecture? parameter_count? stored_parameter_count? active_parameter_count? max_context_tokens? "
        "trained_context_tokens? anatomy_grade anatomy_note? holds? is_shape_confirmed? stored_parameter_note? stored_format? "
        "stored_bytes? stored_unknown_reason? hidden_size? layer_count? vocab_size? is_head_tied? norm_kind? is_block_parallel? "
        "has_flash_attention? hidden_dropout? attention_dropout? base_model_id? created_at? facts_as_of config_kind? "
        "config_source? sources",
    ),
    _table(
        "tensor",
        "The census: tensors of one role and shape in one model.",
        "model_id component tensor_class role operator layer_count in_features out_features",
        "model_id component tensor_class role operator layer_count per_layer_count out_features in_features? "
        "element_count",
    ),
    _table(
        "stored_tensor",
        "What the checkpoint's files hold, read from their tensor headers, by class and format; models without headers have none.",
        "model_id component tensor_class storage is_in_layers not_loaded_reason",
        "model_id component tensor_class storage is_in_layers not_loaded_reason? element_count stored_element_count "
        "stored_bytes",
    ),
    _table(
        "stored_part",
        "The format that each part of a quantised checkpoint is held in, as its quantisation config or its published total says; what is "
        "not quantised is bf16. Models whose files say it themselves (stored_tensor) and models in one format throughout may have none.",
        "model_id component tensor_class role operator dtype_id layer_count is_in_layers in_features out_features",
        "model_id component tensor_class role operator dtype_id layer_count per_layer_count is_in_layers out_features in_features? "
        "element_count",
    ),
    _table(
        "tensor_class",
        "The census by class.",
        "model_id tensor_class",
        "model_id tensor_class element_count layer_count is_quantisable",
    ),
    _table(
        "attention_layer",
        "Groups of layers that mix tokens alike, and what ONE layer of each caches.",
        "model_id kind",
        "model_id kind mechanism component layer_count head_count kv_head_count head_dim value_head_dim "
        "elements_per_token window_tokens? state_elements conv_state_elements state_dtype_id? has_qk_norm "
        "has_output_gate recurrence? recurrent_head_count recurrent_key_dim recurrent_value_dim convolution_width chunk_tokens",
    ),
    _table(
        "feed_forward_layer",
        "Groups of layers whose feed-forward blocks are alike.",
        "model_id kind",
        "model_id kind component layer_count width is_gated expert_count experts_per_token expert_width shared_width "
        "activation?",
    ),
    _table(
        "tower",
        "Stages that run before the text does: towers of images and sound, encoders. Elements are per token of the tower, in the "
        "precision that it computes in.",
        "model_id component",
        "model_id component reader grid hidden_size width is_gated activation hidden_tensors rotary_tensors input_elements "
        "table_elements kept_elements output_elements stem_elements square_elements class_tokens tokens_each pixels_each "
        "default_pixels max_tiles text_tokens_each merged_tokens max_side_pixels processor_id?",
    ),
    _table(
        "component",
        "The models of a diffusion pipeline, and the widths that their activations follow from. What the whole holds, and each part while it "
        "runs, is what pipeline_of and pipeline_stages say.",
        "model_id pipeline_part",
        "model_id pipeline_part class_name? parameter_count? unknown_reason? leaf_element_count? hidden_size? width? head_count? "
        "text_width? latent_elements? token_pixels? plan?",
    ),
    _table(
        "gpu",
        "Accelerators, and the memory that a program really gets.",
        "gpu_id",
        "gpu_id name vendor segment architecture compute_capability? memory_gib_nominal memory_mib_reported? "
        "memory_mib_cuda? capacity_bytes capacity_basis memory_type? memory_bandwidth_gb_s? bf16_tflops_dense? "
        "fp16_tflops_dense? fp8_tflops_dense? int8_tops_dense? fp4_tflops_dense? tflops_basis? nvlink_gb_s? tdp_w? "
        "release_date? msrp_usd? source memory_reported_source? note?",
    ),
    *(
        FACTS[name]
        for name in (
            "gpu_class",
            "dtype",
            "weight_format",
            "gguf_type",
            "gguf_mix",
            "phase",
            "optimizer",
            "activation",
            "packed_kernel",
            "implementation",
            "pipeline_stage",
            "image_processor",
            "recurrence",
            "engine",
            "program",
            "repository_name",
            "ollama_tag",
            "repository_file",
            "support",
            "engine_memory",
            "engine_window",
            "engine_gap",
            "sharding_rule",
            "draft_rule",
            "objective",
            "kv_dtype",
            "constant",
            "scenario_set",
            "plan_set",
            "serving_speed",
            "technique",
            "reading",
            "checkpoint_gap",
            "correction",
        )
    ),
    _table(
        "runs_on",
        "Whether an engine runs a format on a card: `support` spelled out. Pairs that no line speaks of are not listed.",
        "engine_id dtype_id phase_id attention gpu_id",
        "engine_id dtype_id phase_id attention gpu_id runs? how? source",
    ),
    _table(
        "weight",
        "Resident weights of a model in a dtype, by what may be sharded.",
        "model_id dtype_id",
        "model_id dtype_id weights_bytes? replicated_bytes? embedding_bytes? head_bytes? layer_bytes? "
        "unquantised_bytes? read_bytes? unknown_reason?",
    ),
    _table(
        "footprint",
        "What a scenario needs on each GPU; total_bytes is the sum of the components.",
        "model_id dtype_id phase_id engine_id context_tokens sequences kv_dtype_id optimizer_id precision "
        "checkpointing sharding gpu_count",
        "model_id dtype_id phase_id engine_id context_tokens sequences images? image_width? image_height? audio_seconds? kv_dtype_id? optimizer_id? "
        "precision? checkpointing? lora_rank? lora_targets? attention sharding gpu_count "
        f"{' '.join(f'{part.column}?' for part in COMPONENTS)} total_bytes? error_band? peak_moment? unknown_reason?",
    ),
    _table(
        "compatibility",
        "The verdict for a scenario on a GPU: footprint against capacity. A view in almanac.duckdb; its Parquet file leaves "
        "out the two limits, which the view derives.",
        "model_id dtype_id phase_id engine_id context_tokens sequences kv_dtype_id optimizer_id precision checkpointing gpu_id",
        "model_id dtype_id phase_id engine_id context_tokens sequences kv_dtype_id? optimizer_id? precision? "
        "checkpointing? gpu_id total_bytes? gpu_count_needed? sharding? verdict? max_context_tokens? max_sequences? "
        "unknown_reason?",
    ),
    _table(
        "cpu_split",
        "What a card and the CPU hold of a model in llama.cpp, for every number of layers on the card at 8,192 tokens. A card takes a row "
        "where gpu_bytes with the error band is within its capacity.",
        "model_id dtype_id gpu_layers cpu_expert_layers",
        "model_id dtype_id engine_id context_tokens sequences gpu_layers cpu_expert_layers gpu_bytes host_bytes error_band",
    ),
    _table(
        "measured",
        "Memory that others measured and published: what we are judged by.",
        "measured_id",
        "measured_id source model_id phase weights_dtype? optimizer? micro_batch? seq_len? grad_accum? act_ckpt? "
        "lora? parallelism? framework? gpu? metric value unit value_bytes? is_trap confidence scope? trainable_params? "
        "kv_dtype? strict_set? group_id?",
    ),
    _table(
        "prediction",
        "Every measurement with what the formulas say for the same scenario, or the reason why it is not compared.",
        "measured_id",
        "measured_id phase_id? engine_id? model_id dtype_id? context_tokens? generated_tokens? sequences? sharding? gpu_count? "
        "compared_with? predicted_bytes? error? total_bytes? error_band? reason?",
    ),
    _table(
        "accuracy",
        "Our error against the measurements, by metric, phase and engine. strict_set A: every input is known, B: one is "
        "uncertain, other: context only. Rows without a prediction are counted, with the reasons in `prediction`.",
        "metric phase_id engine_id strict_set",
        "metric phase_id engine_id strict_set measured_count row_count median_error? p95_error? worst_under? worst_over? "
        "verdict_count? wrong_fits_count? needless_refusal_count?",
    ),
    _table(
        "work",
        "Which models are one work: a base model with its copies, quantisations and fine-tunes, which need the same memory in the same "
        "format. Models of one family and one plain name are the same weights, packed or hosted otherwise.",
        "model_id",
        "model_id lead_model_id plain_name",
    ),
    _table(
        "plan_serving",
        "How many cards so many users at once take, for models that many ask about: the best way to share on each number of cards. plan_for "
        "answers for any other.",
        "model_id dtype_id engine_id gpu_id users context_tokens gpu_count",
        "model_id dtype_id engine_id gpu_id users context_tokens plan_rank gpu_count verdict? copy_count copy_gpu_count copy_users "
        "tensor_parallel pipeline_parallel weights_bytes? caches_bytes? total_bytes? capacity_bytes headroom_bytes? "
        "weights_times_users_bytes? gpu_count_by_weights_times_users? decode_tokens_per_second_most? user_tokens_per_second_most? "
        "user_tokens_per_second_likely? user_tokens_per_second_low? user_tokens_per_second_high? prefill_tokens_per_second_most? "
        "first_token_seconds_least? first_token_seconds_likely? server_cpu_count? server_memory_bytes? disk_bytes? power_kw_most? "
        "unknown_reason?",
    ),
    _table(
        "plan_training",
        "How long a training takes on each number of cards, for models that many ask about and data of 1 kB to 100 GB: the quickest way that "
        "fits. plan_training_for answers for any other.",
        "model_id phase_id gpu_id data_bytes plan_rank",
        "model_id phase_id gpu_id data_bytes plan_rank data_tokens? days gpu_count? verdict? finishes? hours? hours_least? hours_most? "
        "hardware_share? share_basis? sharding? tensor_parallel? pipeline_parallel? context_parallel? expert_parallel? data_parallel? "
        "engine_id? checkpointing? context_tokens? sequences? gradient_accumulation? global_batch_tokens? step_count? "
        "operations_per_token? total_bytes? capacity_bytes? gpu_hours? power_kw_most? energy_kwh_most? server_cpu_count? "
        "server_memory_bytes? server_memory_usual_bytes? disk_bytes? network_gb_s_least? link_gb_s_least? unknown_reason?",
    ),
    _table(
        "training_run",
        "Published speeds of trainings, and the share of their cards' rates that they reached.",
        "run_id",
        "run_id model_name gpu_id gpu_count phase_id context_tokens checkpointing multiplied_count? logit_element_count? attention_width? "
        "tokens_per_second_gpu? tflops_gpu? hardware_share hardware_share_likely? hardware_share_low? hardware_share_high? source locator",
    ),
    _table(
        "serving_run",
        "Published speeds of serving beside the bound and what we say is likely: predicted against reported.",
        "serving_run_id",
        "serving_run_id model_name model_id gpu_id gpu_count tensor_parallel program dtype_id users context_tokens has_experts layer_count "
        "read_bytes cache_token_bytes is_cache_divided multiplied_count decode_tokens_per_second? decode_tokens_per_second_most? decode_share? "
        "decode_tokens_per_second_likely? prefill_tokens_per_second? prefill_tokens_per_second_most? prefill_share? source locator",
    ),
    _table(
        "rule_of_thumb",
        "Rules of thumb as people say them, each with its error over all models that have the scenario it speaks of. A view in almanac.duckdb.",
        "rule_id",
        "rule_id rule_rank name says against phase_id dtype_id context_tokens sequences checkpointing? basis multiplier "
        "compared_with example_parameter_count? example_bytes? why model_count median_error? near_share? under_share? worst_under? lowest_model_id? worst_over? "
        "highest_model_id? source",
    ),
    _table(
        "rule_error",
        "What each rule of thumb gives for each model, and what we say.",
        "rule_id model_id",
        "rule_id model_id rule_bytes our_bytes error",
    ),
    _table(
        "rejected",
        "Records that contradict themselves, with the reason.",
        "model_id",
        "model_id reason sources",
    ),
)

# What people ask of almanac.duckdb by name, besides its tables; all other macros are how these are made.
MACROS = (
    "footprint_of",
    "footprints",
    "footprints_in",
    "fits_on",
    "fits_in",
    "gpu_named",
    "gpus_called",
    "repository_of",
    "program_called",
    "known_model",
    "nearest_models",
    "nearest_gpus",
    "nearest_ids",
    "what_fits",
    "limits_on",
    "on_several_gpus",
    "plans_for",
    "plan_for",
    "plan_training_for",
    "techniques_for",
    "drafted_on",
    "layers_that_fit",
    "fits_together",
    "speculative_of",
    "speculative_fits_on",
    "preference_of",
    "speed_on",
    "image_tokens_of",
    "pipeline_of",
    "pipeline_stages",
    "pipeline_fits_on",
)
