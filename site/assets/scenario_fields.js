// The calculator's fields: every argument of `footprint_of`, in groups, with its unit or its choices and where it applies. A field is
// shown only where the formulas of the release take its argument (`beside`: they are asked beside them). To add one is to add a line here.
const trains = (s) => s.phase_id !== "inference";
const serves = (s) => !trains(s);
const works = (s) => trains(s) && Boolean(s.data_mb || s.data_millions);
const adapts = (s) => ["lora", "qlora"].includes(s.phase_id);
const makes = (s) => s.pipeline_task !== "lora"; // of pipelines
const shares = (s) => +s.gpu_count > 1;
// a model of text alone is asked about neither images nor sound, one that only hears about no tokens
const sees = (s) => s.sees !== false;
const hears = (s) => s.hears !== false;
const writes = (s) => !s.isOnlyHearing;
const words = (text) => () => text.split(" ").map((word) => [word, word]);
const named = (table, id) => (shared) => shared[table].map((row) => [row[id], row.name ?? row[id]]);
// programs as people call them, and what is known of each by version
const by = (list) => [...new Map(list)].sort((a, b) => a[1].localeCompare(b[1], "en"));
const programs = (shared) => [["", "none in particular"], ...by((shared.program_row ?? []).map((row) => [row.program_id, row.name]))];
// Of the program that is asked, for what is asked of it (a training on preferences is counted in releases of its own); and one between, as a link has it: whether it is known the formulas say.
const versions = (shared, _world, s) => {
  const rows = s.objective_id && trains(s) ? (shared.objective ?? []).filter((row) => row.objective_id === s.objective_id) : (shared.program_row ?? []).filter((row) => row.phase_id === (s.phase_id || "inference"));
  const known = [...new Map(rows.filter((row) => (row.program_id === s.program || (s.objective_id && !s.program)) && row.max_version && row.holds_for).map((row) => [row.max_version, row.holds_for]))].sort((a, b) => b[1].localeCompare(a[1], "en", { numeric: true }));
  const between = /^[\w.+-]{1,20}$/.test(s.program_version ?? "") && !known.some(([version]) => version === s.program_version) ? [[s.program_version, s.program_version]] : [];
  return [["", "the newest that is known"], ...known, ...between];
};
// formats that a denoiser is packed in, the fewest bits first; of them bitsandbytes' for text encoders
const packed = (shared, isMeant) => [["", "not packed"]].concat((shared.denoiser_format ?? []).filter((row) => row.held === "rest" && isMeant(row)).sort((a, b) => a.element_bits - b.element_bits || (a.dtype_id < b.dtype_id ? -1 : 1)).map((row) => [row.dtype_id, row.dtype_id]).filter(([id], at, all) => at === 0 || all[at - 1][0] !== id));
// what a training learns from: text, or what people prefer, which is asked of another macro
const objectives = (shared) => [["", "text"], ...new Map((shared.objective ?? []).map((row) => [row.objective_id, row.objective_id === "reward" ? "preferences, as a reward model" : `${row.generates ? "rewards" : "preferences"}, ${row.name}`]))];
const YES = () => [["true", "yes"], ["false", "no"]];

// argument: label, choices (a number where there are none), where it applies; `isSaid`: its choices say of what they are; `isOfAsked`: they
// depend on what else is asked
export const GROUPS = [
  ["Scenario", {
    phase_id: { label: "What for", choices: (_shared, world) => world.phases, start: "inference" },
    dtype_id: { label: "Format", choices: (shared) => shared.dtype.map((d) => [d.dtype_id, d.dtype_id]) },
    context_tokens: { label: "Context, tokens", when: writes },
    sequences: { label: "Users at once", of: (s) => (!trains(s) ? "Users at once" : s.objective_id ? "Micro-batch, pairs or answers" : "Micro-batch, sequences") },
    program: { label: "Program", choices: programs },
    program_version: { label: "Its version", choices: versions, isOfAsked: true, when: (s) => Boolean(s.program) },
    engine_id: { label: "Engine", choices: named("engine", "engine_id") },
    attention: { label: "Attention", choices: words("flash eager masked") },
    kv_dtype_id: { label: "Cache format", choices: (shared) => shared.kv_dtype.map((k) => [k.kv_dtype_id, k.kv_dtype_id]), when: serves },
    image_width: { label: "Image width, pixels", when: sees },
    image_height: { label: "Image height, pixels", when: sees },
    images: { label: "Images in a sequence", least: 0, when: sees },
    audio_seconds: { label: "Audio, seconds", step: "any", least: 0, when: (s) => serves(s) && hears(s), usual: 30 },
    max_context_tokens: { label: "Positions stretched to, tokens", when: writes },
  }],
  ["Training", {
    objective_id: { label: "Learns from", choices: objectives, when: trains, beside: true },
    optimizer_id: { label: "Optimizer", choices: named("optimizer", "optimizer_id"), when: trains },
    optimizer_rank: { label: "Optimizer’s rank", when: trains },
    precision: { label: "Precision", choices: words("mixed amp pure"), when: trains },
    checkpointing: { label: "Checkpointing", choices: (_shared, world) => Object.entries(world.kept), when: trains, isSaid: true },
    gradient_accumulation: { label: "Micro-batches in a step", when: trains },
    loss: { label: "Loss", choices: () => [["full", "full"], ["chunked", "chunked"], ["fused", "fused"], ["fused-by-free", "fused, by what is free (Unsloth 2026.7 to 2026.9)"], ["fused-at-once", "fused, all at once (Unsloth to 2026.6)"], ["cut", "cut cross-entropy (Unsloth 2025.7)"], ["logged-copy", "full, and logged (TRL to 1.2)"], ["logged", "full, and logged (TRL 1.3 to 1.5)"], ["logged-blocks", "full, and logged (TRL 1.6)"], ["one-pass", "in one pass"], ["recomputed", "by parts, recomputed"], ["recomputed-fp32", "by parts in fp32, recomputed"], ["tiled", "in tiles"], ["tiled-reference", "in tiles, and a reference"], ["score", "one score, for rewards"]], when: trains },
    expandable_segments: { label: "Expandable segments", choices: YES, when: trains },
    ema: { label: "Average of the weights", choices: YES, when: trains },
    adapter: { label: "Adapter", choices: words("lora rslora dora llama-adapter llama-adapter-v2"), when: adapts },
    lora_dropout: { label: "LoRA dropout", step: "any", least: 0, when: adapts },
    trains_embeddings: { label: "Embedding and head trained too", choices: YES, when: adapts },
    lora_rank: { label: "LoRA rank", when: adapts },
    lora_targets: { label: "LoRA targets", choices: words("attention query-value all-linear all-linear-head linear-layers experts attention-experts"), when: adapts },
  }],
  ["How long", {
    data_mb: { label: "Text to train on, MB", step: "any", least: 0, when: (s) => trains(s) && !s.data_millions, work: true },
    data_millions: { label: "Or tokens to train on, millions", step: "any", least: 0, when: (s) => trains(s) && !s.data_mb, work: true },
    days: { label: "Days there are", step: "any", least: 0, when: works, start: "1", work: true },
    price: { label: "An hour of a card costs", step: "any", least: 0, when: works, work: true },
  }],
  ["Picture or film", {
    pipeline_task: { label: "What for", choices: () => [["pictures", "to make pictures or films"], ["lora", "to train LoRA adapters"]], start: "pictures", pipeline: true },
    pipeline_dtype: { label: "Numbers in", choices: words("bf16 fp16 fp32"), start: "bf16", pipeline: true },
    width: { label: "Width, pixels", pipeline: true },
    height: { label: "Height, pixels", pipeline: true },
    frames: { label: "Frames", pipeline: true },
    pictures: { label: "Pictures at once", start: "1", pipeline: true },
    is_tiled: { label: "Decoded in tiles", choices: YES, start: "false", when: makes, pipeline: true },
    adapter_rank: { label: "LoRA rank", start: "16", when: (s) => !makes(s), pipeline: true },
    is_recomputed: { label: "All layers recomputed", choices: YES, start: "true", when: (s) => !makes(s), pipeline: true },
    denoiser_dtype_id: { label: "Denoiser packed in", choices: (shared) => packed(shared, () => true), pipeline: true },
    text_dtype_id: { label: "Text encoders packed in", choices: (shared) => packed(shared, (row) => row.packer === "bitsandbytes" || row.packer === "layerwise"), when: makes, pipeline: true },
  }],
  ["Several GPUs", {
    gpu_count: { label: "GPUs" },
    sharding: { label: "Sharding", choices: words("none ddp zero1 zero2 zero3 tp pp"), when: shares },
    tensor_parallel: { label: "Tensor parallel, GPUs", when: shares },
    pipeline_parallel: { label: "Pipeline stages", when: shares },
    context_parallel: { label: "Context parallel, GPUs", when: shares },
    expert_parallel: { label: "Expert parallel, GPUs", when: shares },
    data_parallel: { label: "Data-parallel ranks", when: (s) => serves(s) && shares(s) },
    decode_context_parallel: { label: "Decode context parallel, GPUs", when: (s) => serves(s) && shares(s) },
    batched_tokens: { label: "Tokens read in a step", when: (s) => (s.engine_id || s.program) === "vllm" },
    max_num_seqs: { label: "Requests run at once", when: (s) => (s.engine_id || s.program) === "vllm" },
    enforce_eager: { label: "No CUDA graphs (eager)", choices: YES, when: (s) => ["vllm", "sglang"].includes(s.engine_id || s.program) },
    max_loras: { label: "Adapters served at once", when: (s) => (s.engine_id || s.program) === "vllm" },
    max_lora_rank: { label: "Largest rank of an adapter", choices: words("1 8 16 32 64 128 256 320 512"), when: (s) => +s.max_loras > 0 },
    text_only: { label: "What it sees with left out", choices: YES, when: (s) => (s.engine_id || s.program) === "llama.cpp" },
    micro_batches_in_flight: { label: "Micro-batches in flight", when: (s) => trains(s) && +s.pipeline_parallel > 1 },
    sequence_parallel: { label: "Sequence parallel", choices: YES, when: (s) => +s.tensor_parallel > 1 },
    reduce_bucket_elements: { label: "DeepSpeed’s reduce bucket, elements", when: (s) => trains(s) && (["deepspeed", "autogptq-0.5"].includes(s.engine_id) || s.program === "deepspeed") },
    offload: { label: "Offload to the host", choices: words("none optimizer all"), when: trains },
  }],
];
export const FIELDS = Object.assign({}, ...GROUPS.map(([, fields]) => fields));

export const label = (key, scenario) => FIELDS[key].of?.(scenario) ?? FIELDS[key].label;
export const applies = (key, scenario) => Boolean(FIELDS[key].pipeline) === Boolean(scenario.isPipeline) && (FIELDS[key].when?.(scenario) ?? true);

// What is wrong with what was typed or came with the address, in a sentence; nothing where the formulas can be asked.
const MOST = 1e9;
export function problem(key, text, options) {
  const { choices, step } = FIELDS[key];
  if (text === "") return "";
  if (choices) return options.some(([id]) => id === text) ? "" : `“${text}” is not one of these.`;
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim())) return `“${text}” is not a number.`;
  if (Math.abs(+text) > MOST) return `At most ${MOST.toLocaleString("en")} can be worked out.`;
  if (!step && !Number.isInteger(+text)) return `${text} is not a whole number.`;
  return +text < 0 ? "This cannot be negative." : "";
}
// What is not wrong, but has no answer.
export const hint = (key, text) => (text !== "" && +text < (FIELDS[key].least ?? 1) && !FIELDS[key].choices ? `This starts at ${FIELDS[key].least ?? 1}.` : "");

// What is typed or chosen, as the formulas take it.
export function value(key, text) {
  const { choices, step } = FIELDS[key];
  if (choices === YES) return text === "true";
  if (choices) return text;
  return step ? +text : Math.trunc(+text);
}
