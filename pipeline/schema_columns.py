"""The columns: name, type, unit, meaning, and the least value or the set of values where there is one.

Kept apart from the tables so that each quantity is declared exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One quantity. `least` bounds numbers from below."""

    name: str
    type: str  # string | integer | number | boolean | date
    meaning: str
    unit: str | None = None
    least: float | None = None


_UNITS = {"bytes": "byte", "tokens": "token", "count": "element", "elements": "element", "gib": "GiB", "mib": "MiB"}
_DECLARED = """
model_id | string | Repository on the Hugging Face Hub, organisation/name
revision | string | Commit of the repository that the facts are from
pipeline_tag | string | Task that the Hub lists the model under
library | string | Library that the Hub lists the model under
license | string | Licence identifier as the Hub lists it
is_gated | boolean | Whether the Hub asks for consent before download
downloads_30d | integer>=0 | Downloads in the 30 days before facts_as_of
likes | integer>=0 | Likes at facts_as_of
family | string | Group of architectures, for browsing: the model_type without its suffixes
model_type | string | Architecture as the config names it
architecture | string | Class that the config names
parameter_count | integer>=1 | Parameters that are loaded, ties counted once
stored_parameter_count | integer>=1 | Total that the Hub publishes for the repository
active_parameter_count | integer>=1 | Parameters that one token passes
max_context_tokens | integer>=0 | Longest context. In `model`: what the config allows. In `compatibility`: what fits beside everything else, on a line between published points and never above what does; limits_on says it to the token
trained_context_tokens | integer>=1 | Context before rope scaling, where the config tells it apart
anatomy_grade | string | exact, matched, derived or unknown: how far the anatomy is confirmed
anatomy_note | string | Why the grade is what it is
stored_parameter_note | string | How stored_parameter_count and parameter_count relate
stored_format | string | dtype_id that the checkpoint is published in, where known
stored_bytes | integer>=0 | Bytes of the checkpoint's tensors as published, where known
storage | string | How the files hold it: a dtype of safetensors, a type of GGUF, or the format that packs it with its scales
is_in_layers | boolean | Whether it lies in the repeated layers
not_loaded_reason | string | Why no engine loads it: prediction layers, buffers, a head that is stored again
stored_element_count | integer>=0 | Elements of the files' tensors as they are declared there, scales and packed words included
hidden_size | integer>=1 | Width of the residual stream
layer_count | integer>=0 | Layers; in `tensor`, layers that hold the tensor
vocab_size | integer>=1 | Rows of the token embedding
is_head_tied | boolean | Whether the output head shares the embedding
norm_kind | string | rms or layer
is_block_parallel | boolean | Whether attention and feed-forward read the same norm
has_flash_attention | boolean | Whether the reference implementation has a fused attention path
hidden_dropout | number>=0 | Default dropout probability of hidden states in training
attention_dropout | number>=0 | Default dropout probability of attention weights in training
base_model_id | string | Model that this one derives from, as the Hub says
created_at | string | When the repository was made
last_modified | string | When the repository was last changed
facts_as_of | string | Date of the facts (year-month or year-month-day)
config_kind | string | How the config is known: verbatim, quoted, sibling, reconstructed, library_defaults, library_table, partial, assumed
config_source | string | Where the config was read, or how it was inferred
config_json | string | The structural part of config.json
sources | string | Where the record's facts come from, separated by ' ; '
source | string | source_id of the row's source, or the citation itself where the table cites per row
reason | string | Why, for people
parameters_kind | string | exact_safetensors, exact_gguf, exact_packed_elements, rounded or estimate: what the published total is worth
approximate_parameter_count | integer>=1 | A total that is only rounded or estimated
config_note | string | What else to know about the config
config_inferred_fields | string | Config fields that no source gives for this checkpoint, separated by blanks
ffn_width_reported | integer>=1 | Width of the feed-forward block or of one expert, where a source gives one without saying which
parameters_source | string | Where the total was read
parameters_by_dtype_json | string | Elements by stored dtype
context_length_reported | integer>=1 | Context length that a third party reports
storage_bytes | integer>=1 | Size of the whole repository
quantization_hint | string | Format that the repository's name or tags suggest
component | string | Part of the model: text, vision, audio, projector, denoiser ...
tensor_class | string | Class of the census
role | string | Stable fine name of a tensor: attention_q, ffn_down, expert_gate_up ...
operator | string | How an engine sees the tensor: linear, linear-subclass, expert, embedding, conv, vector, parameter
per_layer_count | integer>=1 | Tensors of this role and shape in one layer (experts, for example)
out_features | integer>=1 | Output features; the element count for vectors and bare parameters
in_features | integer>=1 | Input features, where the tensor is a matrix
element_count | integer>=0 | Elements
is_quantisable | boolean | Whether weight-only formats usually quantise the class
kind | string | Name of the group of layers in its model
mechanism | string | full, sliding, chunked, mla, cross, shared, bidirectional or recurrent
head_count | integer>=0 | Query heads
kv_head_count | integer>=0 | Key and value heads
head_dim | integer>=0 | Width of one query or key head
value_head_dim | integer>=0 | Width of one value head
elements_per_token | integer>=0 | Elements that one layer caches per token
window_tokens | integer>=1 | Tokens that the layer can look back
state_elements | integer>=0 | Elements of one layer's recurrent state per sequence
conv_state_elements | integer>=0 | Elements of one layer's convolution state per sequence
state_dtype_id | string | Precision of the recurrent state
has_qk_norm | boolean | Whether queries and keys are normalised
runs_all_experts | boolean | Whether every token runs through every expert; null means those of the router only
are_mixer_outputs_adapted | boolean | Whether peft adapts the output projections of recurrent layers; false where it refuses
has_output_gate | boolean | Whether attention's output is multiplied by a gate that its queries' projection makes
recurrence | string | How a recurrent layer computes: mamba2, gated-delta, short-convolution ...; null where its code was not read
recurrent_head_count | integer>=0 | Heads of a recurrent layer's state
recurrent_key_dim | integer>=0 | Width of a state's keys, Mamba's state size
recurrent_value_dim | integer>=0 | Width of a state's values in one head
convolution_width | integer>=0 | Channels of a recurrent layer's convolution
chunk_tokens | integer>=0 | Tokens that a recurrent layer works on at once
regime | string | What runs: prefill, training of all weights (full) or of adapters (lora, qlora), and in which precision
moment | string | kept (for the backward pass), backward or prefill (the most beside what is kept or cached)
part | integer>=1 | Number of a moment's part, the largest of which counts
per | string | What a row counts for: token, padded (a token of whole chunks) or sequence
per_hidden | number | Bytes for each element of the hidden size
per_convolution | number | Bytes for each channel of the convolution
per_key | number | Bytes for each element of the keys of all heads
per_value | number | Bytes for each element of the values of all heads
per_head | number | Bytes for each head
per_chunk | number | Bytes for each head and token of a chunk
per_state | number | Bytes for each element of a state: once for every chunk, or for every sequence
width | integer>=0 | Intermediate size of a dense feed-forward block
is_gated | boolean | Whether the block has a gate projection
expert_count | integer>=0 | Routed experts
experts_per_token | integer>=0 | Routed experts that a token passes
expert_width | integer>=0 | Intermediate size of one routed expert
shared_width | integer>=0 | Intermediate size of the shared experts together
activation | string | Activation function of the block, as configs name it: silu, gelu, gelu_new, relu2 ...
pipeline_part | string | Part of the pipeline, as its index names it: text_encoder, vae, transformer_2; the denoiser is denoiser
class_name | string | Class that the pipeline builds for it
leaf_element_count | integer>=1 | Elements of its largest module without parts, which sequential offload moves at once
text_width | integer>=0 | Width of the text's states that a denoiser reads
latent_elements | integer>=0 | Elements of the latent behind one token
token_pixels | integer>=1 | Pixels of the picture behind one token
plan | string | What tells apart the layouts that one class can have, any where nothing does: the first block of a U-Net
stage | string | encode, denoise or decode
token_frames | integer>=1 | Frames of a video behind one token, beside the first frame
hidden_16 | number>=0 | Tensors of the hidden size for each token at the peak, 16-bit precision
hidden_32 | number>=0 | Tensors of the hidden size for each token at the peak, fp32
width_tensors | number>=0 | Tensors of the feed-forward width for each token at the peak
text_hidden | number>=0 | Tensors of the denoiser's hidden size for each token of the text
table_heads | number>=0 | Elements for each token that all pictures share, in heads' sizes: tables of rotations
attention_hidden | number>=0 | Tensors of the hidden size for each token in the widest moment of attention, where that can be the peak
attention_scores | number>=0 | Elements for each head and pair of tokens in that moment
block_scores | number>=0 | Elements for each head and pair of tokens while the feed-forward block runs
sequences_each | integer>=1 | Sequences that one picture takes in a step: two where guidance runs both at once
text_tokens | integer>=0 | Tokens of text that the pipeline reads
reader | string | Who reads the tower's tokens: language-model (they are part of the prompt), cross-attention, or none
grid | string | How many tokens an input has: fixed, tiles, dynamic (as many as patches), or context (as many as asked for)
hidden_tensors | integer>=0 | Tensors of the tower's hidden size alive beside those of its feed-forward block
rotary_tensors | integer>=0 | Tensors of the hidden size, counted in 16 bits, alive while queries and keys are rotated in fp32; 0 where they are not
input_elements | integer>=0 | Pixels or features that a token is made of
table_elements | integer>=0 | Positions, rotations and masks
kept_elements | integer>=0 | Outputs of layers on the way that are kept to the end
output_elements | integer>=0 | What of the tower stays alive while the text runs
stem_elements | integer>=0 | Elements alive in the convolutions before the first layer
square_elements | integer>=0 | Elements per pair of tokens: a mask, scores or a bias
class_tokens | integer>=0 | Tokens of an image beside its patches
tokens_each | integer>=0 | Tokens of one image, tile or window of sound, where that is fixed
pixels_each | integer>=0 | Pixels of a patch (dynamic) or of a tile (tiles)
default_pixels | integer>=0 | Pixels of an image where nobody says; 0 stands for a square of default_image_side_pixels
max_tiles | integer>=0 | Most tiles of an image
text_tokens_each | integer>=0 | Tokens of the prompt for one image or tile
merged_tokens | integer>=0 | Tokens of the tower that make one of the prompt, where the grid is dynamic
max_side_pixels | integer>=0 | Longest side that the tower has positions for; 0 where it does not limit the picture
processor_id | string | How pictures are cut before the tower sees them (image_processor); null where it is not known, or nobody reads its tokens
rule | string | How a picture becomes rows and columns of tokens or tiles (64_image_tokens.sql says what each does)
min_image_tokens | integer>=0 | Fewest tokens that a picture becomes
max_image_tokens | integer>=1 | Most tokens that a picture becomes
max_side_patches | integer>=1 | Most patches along a side of a picture
side_tiles | integer>=1 | Tiles along the longer side of a picture
grids | string | Arrangements that a picture may be cut into, rows x columns of tiles, in the order in which they are tried
image_extra_tokens | integer>=0 | Tokens that the processor adds for each picture
tile_extra_tokens | integer>=0 | Tokens that it adds for each tile of several
row_extra_tokens | integer>=0 | Tokens that it adds for each row
images | integer>=0 | Images of each sequence; their tokens are part of context_tokens
image_width | integer>=1 | Pixels of one image from left to right, before its processor resizes or cuts it; null: 1024
image_height | integer>=1 | Pixels of one image from top to bottom, likewise
audio_seconds | number>=0 | Seconds of sound of each sequence
gpu_id | string | Stable id of a card
name | string | Name for people
vendor | string | nvidia, amd, intel, apple ...
segment | string | consumer, workstation, datacenter ...
compute_capability | string | CUDA compute capability, or the gfx target of an AMD card
memory_gib_nominal | number>=0 | Memory on the data sheet
memory_mib_reported | integer>=1 | memory.total of nvidia-smi or rocm-smi; Metal's working-set limit on Apple
memory_mib_cuda | integer>=1 | Total of cudaMemGetInfo
memory_type | string | GDDR6, HBM3 ...
memory_bandwidth_gb_s | number>=0 | Memory bandwidth in 10^9 bytes per second
bf16_tflops_dense | number>=0 | Dense bf16 rate
fp16_tflops_dense | number>=0 | Dense fp16 rate
fp8_tflops_dense | number>=0 | Dense fp8 rate
int8_tops_dense | number>=0 | Dense int8 rate
fp4_tflops_dense | number>=0 | Dense fp4 rate
tflops_basis | string | read, ratio, recalled or none: how the rates were had
nvlink_gb_s | number>=0 | Bandwidth between cards, both directions together
tdp_w | number>=0 | Board power
release_date | string | Day of release
msrp_usd | number>=0 | Price at release
memory_reported_source | string | Where memory_mib_reported was read
capacity_bytes | integer>=0 | Bytes that one process can fill with tensors: CUDA total less the process's context
capacity_basis | string | measured (a read total) or imputed (by the rule of its class)
note | string | What else to know
source_id | string | Short stable id of a source
title | string | What the source is
publisher | string | Who published it
licence | string | Licence of the source
locator | string | Where exactly: address, path and commit, page, table
retrieved | string | When it was read
dtype_id | string | Format of the weights
engine_id | string | Program that runs the model
support_rank | integer>=0 | Order in which the lines are tried
vendors | string | Vendors of the cards
targets | string | Architectures, compute capabilities or gfx targets of the cards
least_capability | number>=0 | Least CUDA compute capability
below_capability | number>=0 | CUDA compute capability from which the line no longer holds
runs | boolean | Whether it runs; null where sources do not settle it
how | string | How it runs, or why it does not
gap | string | load: the engine does not load it; memory: what it holds is not known; packing: how its own formats hold it is not known
model_types | string | model_type as configs name it, separated by spaces
engine_version | string | Version that the constants were read from
keeps_logits | boolean | Whether the training loop keeps the model's outputs until the step is over
keeps_gradients | boolean | Whether the gradients' buffers live through the forward pass too
repeats_keys | boolean | Whether keys and values are written out for every query head before attention
chunks_logits | boolean | Whether a chunked loss takes logits apart that are all there, and not the hidden states
gradient_bytes | integer>=1 | Bytes of a gradient's element, where it is not that of the trained weight
process_context_bytes | integer>=0 | Context of a process on the card, where it is not that of constant.csv
parallelism | string | How an engine uses several GPUs by default: tp or pp in inference, zero1 or zero3 where it only trains; or as a measurement gives it
bits_per_weight | number>=0 | Bits of one quantised weight, scales included
norm_form | string | How norms are computed: rms, rms-copy (its input stays beside the fp32 copy), rms-fp32 (scaled in fp32), layer, layer-fp32 (written out), layer-plain (no weights)
rotary_form | string | Position embedding of queries and keys: rotated, concatenated (part of a head, or joined again), fp32 (rotated in 32 bits) or none
softmax_form | string | Precision of the softmax of eager attention: fp32 or compute; clamped (in that of the scores, which stay beside it), sinks (in that of the scores, with a column more), named (fp32, and the scores stay beside it)
loss_form | string | Precision that the loss takes the logits in: fp32, compute, or cast (compute, but fp32 under autocast)
attention_form | string | grouped, broadcast where one key serves all queries without the kernel being told, or biased where scores get a learned bias
has_score_cap | boolean | Whether attention scores pass a tanh
has_logit_cap | boolean | Whether logits pass a tanh
router_input_bytes | integer>=0 | Bytes per hidden element of a copy that the router makes of its input
feed_forward_extra | integer>=0 | Tensors of a feed-forward block's width that are kept beyond those of its activation
value_norm_bytes | integer>=0 | Bytes per element that a norm of the values without weights keeps
has_mask_buffer | boolean | Whether the model holds a mask of its longest context, a byte for each pair of tokens
has_block_dropout | boolean | Whether feed-forward blocks drop out before their last projection
are_experts_adapted | boolean | Whether peft's all-linear adapts the routed experts
is_trainable | boolean | Whether gradients can flow into weights of this format
element_bits | number>=0 | Bits per element, scales and zero points included
row_bits | number>=0 | Further bits per output row
group_elements | integer>=1 | Elements of a row that share a scale; a matrix whose rows do not divide into groups stays in 16 bits
gguf_type | string | Block format
block_elements | integer>=1 | Elements in a block
block_bytes | integer>=1 | Bytes of a block
fallback_gguf_type | string | Format used where a row does not divide into blocks
layer_rule | string | Layers the row speaks of: all, more-bits, first-two ...
phase_id | string | inference, pretrain, full-finetune, lora or qlora
meaning | string | What it is
optimizer_id | string | Optimizer
state_bytes_per_parameter | number>=0 | Bytes of optimizer state per trained parameter
state_count | integer>=0 | States per parameter
state_form | string | What its states are for: elementwise, factored (rows and columns), blockwise, matrices or projected (of low rank; AdamW for the rest)
follows_parameter_dtype | boolean | Whether the states take the dtype of the parameter that they belong to
follows_parameter_dtype | boolean | Whether the states have the dtype of the trained weights where precision is pure
step_largest_fp32_copies | number>=0 | fp32 copies of the largest parameter that exist only during the step
keeps_projection | boolean | Whether a low-rank optimizer holds the matrix that projects gradients
step_copies | number>=0 | Copies of all parameters that exist only during the step
step_largest_fp32_copies | number>=0 | Copies in fp32 of the largest parameter that exist only during the step
kv_dtype_id | string | Format of the KV cache
constant_id | string | Name of a constant
value | number | Value in the unit given
unit | string | Unit of the value
applies_to | string | What the constant is for
confidence | string | high, medium or low
scenario_set_id | string | Name of a set of published scenarios
purpose | string | lookup: published; ladder: points between which the longest context is found
phase_ids | string | Phases of the set
dtype_ids | string | Weight formats of the set
engine_ids | string | Engines that it is for, separated by spaces; empty means each that there is, or each dtype's own
contexts | string | Contexts of the set, in tokens
sequence_counts | string | Concurrent sequences, or micro-batches, of the set
optimizer_ids | string | Optimizers of the set
checkpointings | string | Activation checkpointing of the set
gpu_counts | string | GPU counts of the set
least_parameter_count | integer>=1 | Models of fewer parameters are not asked; null: all are
precision | string | mixed, amp or pure: where the fp32 copy of the weights lives in training
sharding | string | none, ddp, zero1, zero2, zero3, tp, pp or tp+pp (tensor parallel in each server, a pipeline over servers)
scheme | string | Whose rules are followed: plain, ddp, deepspeed, fsdp2 or megatron
has_master_weights | boolean | Whether the sharded weights are the fp32 masters, gathered in 16 bits
is_root_whole | boolean | Whether embedding and head are gathered together for the whole step
is_divided_by_expert | boolean | Whether a tensor of experts is sharded by experts, filled up where they are fewer than GPUs
has_fused_kernels | boolean | Whether norms and gated activations are kernels that keep their input alone
is_sequence_parallel | boolean | Whether tensor parallelism divides the residual stream too, where nobody says otherwise
reduce_bytes | integer>=0 | Bytes of an element that gradients are reduced in; null means those of the computation
bucket_elements | integer>=0 | Elements of a bucket; null means the hidden size squared
live_elements | integer>=0 | Elements that stay gathered at most
can_offload_optimizer | boolean | Whether gradients and optimizer alone can move to the host
can_offload_all | boolean | Whether the weights can move to the host too
tensor_parallel | integer>=1 | GPUs that divide the inside of a layer
pipeline_parallel | integer>=1 | Stages of a pipeline; the worst of them is given
context_parallel | integer>=1 | GPUs that divide a sequence
expert_parallel | integer>=1 | GPUs that divide the routed experts, out of those that share the data
micro_batches_in_flight | integer>=1 | Micro-batches that the first stage of a pipeline keeps: as many as stages, unless said otherwise
sequence_parallel | boolean | Whether tensor parallelism divides the residual stream too
offload | string | What a training step keeps in the host's memory: none, optimizer (with the gradients) or all (the weights too)
host_bytes | integer>=0 | Memory of the host that one GPU's share needs; 0 where nothing is moved there
lora_rank | integer>=1 | Rank of the adapters
lora_targets | string | Linear layers that get an adapter: attention, query-value, all-linear or experts
field | string | Field that is corrected
expected_old | string | What the source says
corrected | string | What is true
weights_bytes | integer>=0 | Resident weights in their running format
replicated_bytes | integer>=0 | Part of the weights that every tensor-parallel rank holds whole
embedding_bytes | integer>=0 | Embeddings
head_bytes | integer>=0 | Output head, where it is not tied
layer_bytes | integer>=0 | Weights inside the repeated layers
unquantised_bytes | integer>=0 | Part of the weights that stays in 16 bits or more
unknown_reason | string | Why a number is null
context_tokens | integer>=1 | Tokens of each sequence
sequences | integer>=1 | Concurrent requests in inference, micro-batch per GPU in training
checkpointing | string | Activation checkpointing: none, full or selective
attention | string | flash, eager, or masked (fused, with the mask of a padded batch)
gpu_count | integer>=1 | GPUs that share the work
kv_cache_bytes | integer>=0 | Keys and values that attention can ever read
kv_padding_bytes | integer>=0 | What the engine sets aside for the cache beyond that
state_bytes | integer>=0 | Recurrent and convolutional states
activations_bytes | integer>=0 | Everything else that the framework holds at the step's peak
gradients_bytes | integer>=0 | Gradient buffers
optimizer_bytes | integer>=0 | Optimizer states and fp32 master weights
adapters_bytes | integer>=0 | Weights of the adapters
overhead_bytes | integer>=0 | What lies outside the framework's live tensors
total_bytes | integer>=0 | Sum of the components, per GPU
error_band | number>=0 | Relative error to expect of total_bytes
peak_moment | string | Moment of the step at which the peak stands
gpu_count_needed | integer>=1 | Fewest GPUs of this kind that the scenario fits on, of those of the scenario's set in scenario_set; the macro on_several_gpus goes to 64
verdict | string | fits, tight, multi-gpu or no; null where the footprint is unknown or the engine does not run the format on the card
max_sequences | integer>=0 | Most sequences of this context that fit, on a line between published points and never above what does; limits_on says it to the sequence
measured_id | string | Id of a measurement
phase | string | Phase as the source names it
weights_dtype | string | Weight format as the source names it
optimizer | string | Optimizer as the source names it
micro_batch | string | Micro-batch or concurrent sequences as the source gives them
seq_len | string | Sequence length as the source gives it
grad_accum | string | Gradient accumulation steps
act_ckpt | string | Activation checkpointing as the source gives it
lora | string | Adapter settings as the source gives them
framework | string | Program and version that was measured
gpu | string | Card as the source names it
metric | string | What was measured
value_bytes | integer>=0 | The measurement in bytes, where it is a size
is_trap | boolean | Whether the figure is a published total that is not what sits on the GPU
scope | string | Per GPU, summed, or a component
trainable_params | string | Trained parameters as the source gives them
kv_dtype | string | Format of the KV cache as the source names it
strict_set | string | A: every input known; B: one uncertain; empty: context only
group_id | string | Rows of one run or one table
compared_with | string | Component of the footprint, or a sum of some, that a measurement is compared with
rank | integer>=0 | Order in which rules are tried
when_column | string | Column of `measured` that must match too
when_pattern | string | Regular expression that it must match whole
column_name | string | Column of `measured` that the rule reads; group_kv_tokens is the count of kv_tokens in the same group
pattern | string | Regular expression that the column must match whole; empty matches what is missing
reads | string | Field of the scenario that the rule sets, or compared_with, generated_tokens or reason
as_value | string | Value of the field; \\1 is the first group of the pattern
generated_tokens | integer>=0 | Tokens that were generated after the prompt
predicted_bytes | integer>=0 | What the formulas say, in the unit of the measurement
error | number | predicted ÷ measured − 1
measured_count | integer>=0 | Measurements of this kind, compared or not
verdict_count | integer>=0 | Verdicts on one card that a measurement can judge: each measured peak on each card of the book
wrong_fits_count | integer>=0 | Verdicts of fits where the measured peak and a process's context are more than the card gives
needless_refusal_count | integer>=0 | Verdicts of tight or no where they are less
row_count | integer>=0 | Measurements compared
median_error | number | Median of |predicted ÷ measured − 1|
p95_error | number | 95th percentile of |predicted ÷ measured − 1|
worst_under | number | Most negative predicted ÷ measured − 1
worst_over | number | Most positive predicted ÷ measured − 1
"""


def _column(line: str) -> Column:
    name, kind, meaning = (part.strip() for part in line.split("|", 2))
    kind, _, least = kind.partition(">=")
    unit = next((u for suffix, u in _UNITS.items() if name.endswith(f"_{suffix}") or f"_{suffix}_" in name), None)
    return Column(name, kind, meaning, unit, float(least) if least else None)


COLUMNS = {column.name: column for column in map(_column, _DECLARED.strip().splitlines())}
COLUMNS["architecture"] = Column("architecture", "string", "Class that a config names, or the generation of a card")
