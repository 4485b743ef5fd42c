// The computer's own memory: what lies there of a model that a card does not hold, as the terminal tells it and in its words (pipeline/book/beside.py).
const search = new URL(import.meta.url).search;
const [a, r] = await Promise.all([import(`./almanac.js${search}`), import(`./reckon.js${search}`)]);
const words = r.shared.beside, [{ host_system_bytes: system }] = r.shared.constants;
const form = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const gib = (bytes) => form.format(bytes / 2 ** 30);
const fill = (template, given) => template.replace(/\{(\w+)\}/g, (_, key) => given[key]);

// `wanted` is what `row` answers; null where nothing of it or all of it is on the card, or the program moves nothing.
export function way(own, wanted, row, bytes, gpu, ram) {
  const { program, program_version, model_id, dtype_id, kv_dtype_id, attention, text_only, images, audio_seconds } = wanted;
  if (!words || images || audio_seconds || row.phase_id !== "inference" || (program && !words.programs.includes(program))) return null;
  // (what a program keeps free of the card is taken off it, not counted as the model's)
  const kept = 2 ** 20 * (r.programRow(program, program_version)?.kept_free_mib ?? 0);
  const asked = { model_id, phase_id: "inference", dtype_id: dtype_id ?? row.dtype_id, context_tokens: row.context_tokens, sequences: wanted.sequences ?? 1, kv_dtype_id, attention, text_only };
  const found = r.split(own, r.ask(own, Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null))), bytes - kept, gpu);
  const told = found?.[r.macros.way_beside(found.layers?.gpu_layers ?? null, found.experts?.cpu_expert_layers ?? null, found.of - 1)];
  return !told ? null : { ...told, dtype_id: row.dtype_id, whole: found.of, program, ram, isHeld: r.macros.ram_takes(told.host_bytes, row.error_band, ram, system) };
}

const kind = (one) => (one.cpu_expert_layers ? "experts" : "layers");
const places = (one) => ({ experts: one.cpu_expert_layers, layers: one.gpu_layers, whole: one.whole, blocks: one.whole - 1, rest: one.whole - one.gpu_layers });
const sizes = (one) => ({ on_card: gib(one.gpu_bytes), in_ram: gib(one.host_bytes), ram: gib(one.ram), system: gib(system), format: a.formatName(one.dtype_id) });
export const part = (one) => fill(words.parts[kind(one)], places(one));
export const sized = (one) => `${gib(one.gpu_bytes)} GiB on the card, ${gib(one.host_bytes)} of ${gib(one.ram)} GiB of RAM`;
// `where` is one card by its whole name.
export function held(one, model, where, { context_tokens: tokens, sequences }) {
  const n = (value) => value.toLocaleString("en"), at = `${tokens ? `at ${n(tokens)} tokens` : ""}${sequences > 1 ? ` for ${n(sequences)} users at once` : ""}`;
  return fill(words.held, { ...sizes(one), part: part(one), model, where, at, which: "the card", told: fill((words.told[one.program] ?? words.flags)[kind(one)], places(one)) });
}
export const notHeld = (one) => fill(words.not_held, sizes(one));
