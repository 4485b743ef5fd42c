// Scenarios by the formulas themselves, and asked backwards: how long, how many, on how few. Nothing is worked out here: the footprint, the
// verdict and the bounds of speed are translated from the SQL (data/formulas.js), and only where the answer changes is searched for.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const [{ footprints, macros }, rules, shared, facts] = await Promise.all([
  import(`../../data/formulas.js${search}`), import(`../../data/rules.js${search}`), a.load("data/calculator.json"), a.load("data/cards.json"),
]);
export { facts, macros, shared };

// What the formulas read of a model: its file for programs says what it is, that of its shape has the rows.
const loaded = new Map();
export function ofModel(path) {
  if (!loaded.has(path)) loaded.set(path, a.told(path).then(async (told) => a.rowsOf(told, (await a.shape(told.shape)).rows)));
  return loaded.get(path);
}
// What is known of the parts of pipelines, by model.
let parts;
export const pipelines = () => (parts ??= a.load("data/pipelines.json"));
export const ask = (own, { objective_id, ...wanted }) => (objective_id ? preferred(own, objective_id, wanted) : footprints({ ...shared, ...own }, wanted));

// A training on preferences, as preference_of has it: the step of its scenario, and what the reference and the loss hold beside it. `sequences`
// counts pairs.
function preferred(own, objective_id, wanted) {
  // (of its rows, one for some releases each, that which the formulas rank highest)
  const objectives = shared.objective ?? [], its = objectives.filter((each) => each.objective_id === objective_id);
  const rank = (each) => macros.objective_rank(wanted, each), rule = its.reduce((best, each) => (best && rank(best) >= rank(each) ? best : each), undefined);
  const asked = macros.asked_of_objective(wanted, rule), number = Number(asked.sequences); // (SQL may be asked for anything, and answers in text)
  const row = footprints({ ...shared, ...own }, { ...wanted, ...asked, sequences: asked.sequences == null || Number.isNaN(number) ? asked.sequences : number });
  if (row == null) return row;
  const oldest = [...its].sort((x, y) => macros.version_number(x.max_version) - macros.version_number(y.max_version));
  const known = { ids: [...new Set(objectives.map((each) => each.objective_id))].sort().join(", "), versions: oldest.map(macros.counted_range).filter((range) => range != null).join(", ") || null };
  const unknown_reason = macros.preference_reason(rule, objective_id, known, wanted, own.shape?.[0], row), of = { objective_id, generates: rule?.generates, unit: rule?.rows_each > 1 ? "pair" : "answer", program_version: rule ? macros.version_told(wanted, rule, row) : row.program_version, shown: { program_version: rule?.max_version }, // (its releases are named by the last)
     sequences: Math.floor(row.sequences / (rule?.rows_each ?? 1)) };
  if (unknown_reason != null) return { ...row, ...of, ...Object.fromEntries(Object.keys(row).filter((key) => key.endsWith("_bytes")).map((key) => [key, null])), error_band: null, holds_for: null, unknown_reason };
  const { reference_bytes, logits_bytes, unused_bytes } = macros.objective_bytes(rule, own.shape?.[0], row);
  return {
    ...row, ...of, reference_bytes, weights_bytes: row.weights_bytes + reference_bytes, activations_bytes: row.activations_bytes + logits_bytes,
    overhead_bytes: row.overhead_bytes + unused_bytes, total_bytes: row.total_bytes + reference_bytes + logits_bytes + unused_bytes, holds_for: macros.objective_holds_for(rule, own.shape?.[0]),
  };
}

// A card's row of the table gpu, as far as speed and price go.
const rows = new Map(facts.rows.map((row) => [row[0], Object.fromEntries(facts.columns.map((name, i) => [name, row[i]]))]));
export const card = (id) => rows.get(id);

// What a card gives one program under a system.
export const { SYSTEMS, rate } = a;
export const under = (system, gpu) => a.under(shared.constants?.[0] ?? {}, system, gpu);
export const holds = (row, bytes) => row?.total_bytes != null && rules.takes(row.total_bytes, row.error_band, bytes) === true;
// The verdict of a footprint against so many bytes: fits, multi-gpu, tight, no; null where the total is not known.
export const hangsOnCopy = (row, bytes) => rules.hangs_on_copy(row.total_bytes, row.error_band, row.more_bytes ?? 0, bytes);
export const verdict = (row, bytes) => rules.card_verdict(row?.total_bytes, row?.error_band, bytes, row?.gpu_count);

// Whether a card is known to run it, or why not: the engine, and the format of the cache, which some engines read of this model on older cards too.
export function refusal(world, row, held, gpu, own = {}) {
  const no = a.refusal(world, { engine: row.engine_id, dtypeId: row.dtype_id, phase: row.phase_id, attention: row.attention }, held, gpu);
  if (no) return no;
  const cache = shared.without_cache?.[row.kv_dtype_id]?.[gpu.id];
  // (from which version on, the formulas in SQL compare: of one that is named it stays unknown here)
  const isRead = !row.program_version && own.kv_older?.some((older) => older.kv_dtype_id === row.kv_dtype_id && older.engine_id === row.engine_id) && shared.older_cache?.[row.kv_dtype_id]?.includes(gpu.id);
  return cache && !isRead ? { verdict: "unknown", text: "unknown", certain: false, why: cache } : null;
}

// ---- backwards
// The last of `steps` that fits, as limits_on finds it: the first place that does not fit ends the search, wherever it lies on a coarse
// grid (a total may fall again, where an engine begins to read in chunks), and between two places of the grid it is halved.
const GRID = 256;
export function last(steps, fits) {
  const wide = Math.ceil(steps / GRID);
  let low = 0, high = steps;
  for (let place = Math.min(wide, steps); ; place = Math.min(place + wide, steps)) {
    if (!fits(place)) { high = place - 1; break; }
    low = place;
    if (place === steps) return steps;
  }
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
const LOOKED = 1048576; // as limits_on looks no further

// The longest context whose need so many bytes hold, and what ends it: the card, the model, or nobody looked further.
export function longest(own, wanted, bytes, isHeld = (asked) => holds(ask(own, asked), bytes)) {
  const step = Math.max(1, wanted.context_parallel ?? 1), model = own.shape?.[0]?.max_context_tokens;
  const most = Math.max(1, wanted.max_context_tokens ?? model ?? LOOKED), steps = Math.max(1, Math.floor(most / step));
  const found = last(steps, (n) => isHeld({ ...wanted, context_tokens: n * step }));
  return { at: found * step, bound: found < steps ? "card" : wanted.max_context_tokens || model ? "model" : "search" };
}
// The most sequences at a context: users, or in training the micro-batch of a GPU.
export function most(own, wanted, bytes, isHeld = (asked) => holds(ask(own, asked), bytes)) {
  const fits = (n) => isHeld({ ...wanted, sequences: n });
  let high = 1;
  while (high < LOOKED && fits(high)) high *= 2; // what is far too many is not asked for one by one
  const found = last(high, fits);
  const engine = rules.most_requests(ask(own, { ...wanted, sequences: 1 })?.engine_id ?? null, shared.constants[0]);
  if (engine != null && found >= engine && (wanted.phase_id ?? "inference") === "inference") return { at: engine, bound: "engine" };
  return { at: found, bound: found >= LOOKED ? "search" : "card" };
}
// The fewest cards that hold it, of the numbers that people put together; null where none of them does.
export const COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 128, 192, 256, 384, 512, 768, 1024];
export const SHARED = { zero3: "ZeRO-3 (FSDP)", zero2: "ZeRO-2", zero1: "ZeRO-1", ddp: "DDP", pp: "layers", tp: "tensors", "tp+pp": "tensors and layers" };
export function fewest(own, wanted, bytes, moreThan = 0, on = (gpu_count) => ({ ...wanted, gpu_count })) {
  for (const gpu_count of COUNTS.filter((n) => n > moreThan)) {
    const row = ask(own, on(gpu_count));
    if (holds(row, bytes)) return row;
  }
  return null;
}

// What is known of a program that runs models, of the release that is named or the newest.
export function programRow(program, version) {
  const at = version ? macros.version_number(version) : null;
  return (shared.program_row ?? []).find((each) => each.program_id === program && each.phase_id === "inference" && (at == null ? each.is_newest : each.from_number <= at && at < each.below_number));
}
// The context that a program takes by itself on cards that give so many bytes together, where it depends on them (Ollama's): as own_context_of
// has it. Null of a program that takes the same everywhere.
export function ownContext(program, version, bytes) {
  const row = programRow(program, version), steps = row?.context_steps ?? [], taken = steps.length > 1 && bytes != null ? macros.context_of_cards(steps, bytes) : null;
  return taken == null ? null : { name: row.name, taken, steps };
}

// The same of several formats ({ dtypeId, engine }, the best first): of as few cards the better format. Nothing of it depends on the card but `bytes`.
export function fewestOf(own, formats, wanted, bytes, most) {
  let found = null;
  for (const { dtypeId, engine } of formats) {
    const row = fewest(own, { ...wanted, dtype_id: dtypeId, engine_id: engine }, bytes, 1);
    if (row && row.gpu_count <= most && (!found || row.gpu_count < found.count)) found = { count: row.gpu_count, dtypeId, engine };
  }
  return found;
}

// ---- layers beside the CPU
// Of a footprint in llama.cpp that a card does not hold: the most layers that go to it, and of a mixture of experts the fewest blocks whose
// experts stay on the CPU, each with what the host's memory holds then. Null where layers are not told apart, or where the card's memory is
// the computer's: there is no other.
export function split(own, row, bytes, gpu) {
  if (gpu && a.isComputer(gpu)) return null;
  const model = own.shape?.[0], of = (rows) => rows?.find((each) => each.dtype_id === row?.dtype_id), whole = of(own.weight), held = of(own.layer_weight);
  const weight = row?.text_only && whole ? { ...whole, weights_bytes: whole.weights_bytes - (whole.tower_bytes ?? 0) } : whole; // as layers_that_fit has it
  if (row?.total_bytes == null || row.engine_id !== "llama.cpp" || row.gpu_count > 1 || !model || !weight || !held || !macros.has_layers_apart(weight, held)) return null;
  const ways = macros.cpu_splits(model, weight, row, held, macros.layer_caches(model, row));
  const layers = macros.most_layers(ways, row.error_band, bytes), hasExperts = ways.some((way) => way.cpu_expert_layers > 0);
  return { layers, experts: hasExperts ? macros.fewest_experts(ways, model.layer_count, row.error_band, bytes) : null, of: model.layer_count + 1 };
}
// The flags that llama.cpp is given for it: experts on the CPU, where they may be, keep more of the model on the card.
export const flagsOf = ({ layers, experts }) => (experts ? (experts.cpu_expert_layers ? `-ngl 99 --n-cpu-moe ${experts.cpu_expert_layers}` : "-ngl 99") : layers ? `-ngl ${layers.gpu_layers}` : null);
// The same in words, with the flags in an element of code.
export function splitSaid(found, format) {
  const { layers, experts } = found ?? {}, said = (bytes) => `${a.gib(bytes / 1024)}\u00a0GiB of the computer’s memory`, code = (text) => a.h("code", {}, text);
  if (!layers || layers.gpu_layers >= found.of) return null;
  const some = layers.gpu_layers ? ["with ", a.h("b", {}, `${layers.gpu_layers} of ${found.of} layers on the card`), " (", code(`-ngl ${layers.gpu_layers}`), `) and ${said(layers.host_bytes)} for the rest`] : [`with all of its layers on the CPU, in ${said(layers.host_bytes)}`];
  const most = experts?.cpu_expert_layers ? [", or ", a.h("b", {}, `all layers on it but the experts of ${experts.cpu_expert_layers}`), " (", code(flagsOf({ experts })), `) and ${said(experts.host_bytes)}`] : [];
  return [`Shared with the CPU, in ${format}: `, ...some, ...most, ". It is slower."];
}

// ---- unlike cards
// What each of several cards holds of a model that llama.cpp shares among them by its layers, as fits_together has it; or why nobody says.
// Cards are { vendor, bytes }, in the order that llama.cpp has them in.
export function together(own, wanted, cards) {
  const row = ask(own, { ...wanted, gpu_count: cards.length }), model = own.shape?.[0], of = (rows) => rows?.find((each) => each.dtype_id === row?.dtype_id);
  if (row?.total_bytes == null) return { row, why: row?.unknown_reason ?? "nothing is known" };
  const weight = of(own.weight), held = of(own.layer_weight), isApart = Boolean(weight && held && macros.has_layers_apart(weight, held));
  const why = macros.together_refusal(row.engine_id, isApart, cards.length, new Set(cards.map((card) => card.vendor)).size);
  if (why) return { row, why };
  const shares = cards.map((card) => Math.floor(card.bytes / 2 ** 20)), caches = macros.layer_caches(model, row);
  const each = cards.map((card, i) => {
    const slots = macros.slots_of_card(i + 1, model.layer_count + 1, shares), bytes = macros.held_together(model, weight, held, row, caches, slots, cards.length);
    return { layers: slots.length, bytes, verdict: rules.card_verdict(bytes, row.error_band, card.bytes, 1) };
  });
  return { row, each, of: model.layer_count + 1, isHeld: each.every(({ verdict }) => verdict === "fits"), setting: `--tensor-split ${shares.join(",")}` };
}

// ---- speed
// At most so many tokens a second of a footprint on so many of a card: written, and read of a prompt. Null where nothing bounds it, with the reason.
export function speed(own, row, id) {
  const on = card(id), model = own.shape?.[0], weight = own.weight?.find((w) => w.dtype_id === row.dtype_id), dtype = shared.dtype.find((d) => d.dtype_id === row.dtype_id);
  if (!on || !model || !weight || !dtype) return { decode: null, prefill: null, why: null };
  const fields = (of, names) => Object.fromEntries(names.map((name) => [name, of[name] ?? null])); // files leave nulls out
  const shape = fields(model, ["is_encoder", "writes_otherwise", "is_sparsely_read", "token_elements"]), read = fields(weight, ["read_bytes"]);
  return {
    decode: macros.decode_most(shape, read, row, on), prefill: macros.prefill_most(shape, fields(dtype, ["product_bits"]), row, on), why: macros.decode_reason(shape, read, row, on),
  };
}
