// What does not fit: how it still runs, or is trained, each way with its number and the address that asks for it. By the formulas themselves.
const search = new URL(import.meta.url).search;
const [a, r] = await Promise.all([import(`./almanac.js${search}`), import(`./reckon.js${search}`)]);
const LLAMA_CPP = ["gguf-mxfp4", "gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-q4_k_m", "gguf-q3_k_m"]; // the best quality first
const SEVERAL = 16; // cards that people put together for one model
const SMALL_CACHE = { "llama.cpp": "q8_0", vllm: "fp8", sglang: "fp8" };
const gib = (bytes) => `${a.gib(bytes / 1024)}\u00a0GiB`;
const each = (row) => `${gib(row.total_bytes)}${row.gpu_count > 1 ? " on each" : ""}`;

// What a program packs or loads where nobody chose a format is its own: the format that pages open with is no choice (Unsloth loads another repository).
export const itsFormat = ({ phase_id, dtype_id }) => (dtype_id === r.shared.opening?.[phase_id]?.dtype_id ? "" : dtype_id);
// Of the programs that train so, the one that takes least, where it is less than so many bytes.
export function frugal({ dtype_id, ...open }, below, held) {
  const chosen = itsFormat({ ...open, dtype_id }), wanted = chosen ? { ...open, dtype_id } : open;
  const programs = new Map((r.shared.program_row ?? []).filter((each) => each.phase_id === wanted.phase_id && each.engine_id).map((each) => [each.program_id, each.name]));
  return [...programs].map(([program, name]) => ({ program, name, row: held({ ...wanted, program }) })).filter((each) => each.row && each.row.total_bytes < below)
    .sort((x, y) => x.row.total_bytes - y.row.total_bytes)[0];
}

// What is seen or heard takes memory in every other way too.
const SEEN = ["images", "image_width", "image_height", "audio_seconds"];
const seenOf = (asked) => Object.fromEntries(SEEN.filter((name) => asked[name] != null).map((name) => [name, asked[name]]));

// `asked` is what the row answers; `stored` the format that the model is published in; `runs` says whether a row runs on the card; `to` makes the address of the same question with other values;
// `ram` (ram.js) tells of the computer's memory where it was said.
export function ways({ own, row, asked, bytes, stored, runs, to, card, gpu, inFormat = (id) => `in ${a.formatName(id)}`, ram, ramBytes }) {
  const found = [], held = (wanted) => { const other = r.ask(own, wanted); return r.holds(other, bytes) && runs(other) ? other : null; };
  const way = (values, text, ...more) => found.push([a.h("a", { href: `?${to(values)}` }, text), ...more]);
  const PACKED = LLAMA_CPP.filter((id) => id !== "gguf-mxfp4" || stored === "mxfp4"); // nobody packs another model so
  const plain = { model_id: asked.model_id, phase_id: row.phase_id, context_tokens: row.context_tokens, sequences: row.sequences, ...(row.objective_id && { objective_id: row.objective_id }), ...seenOf(asked) };
  if (row.phase_id === "inference") {
    const kv_dtype_id = row.kv_dtype_id !== SMALL_CACHE[row.engine_id] && SMALL_CACHE[row.engine_id], small = kv_dtype_id && held({ ...asked, kv_dtype_id });
    if (small) way({ kv_dtype_id }, "A cache of 8 bits", ` ${inFormat(row.dtype_id)}: ${each(small)}.`);
    const packed = row.gpu_count === 1 ? PACKED.map((dtype_id) => held({ ...plain, dtype_id })).find((other) => other && other.total_bytes < row.total_bytes) : null;
    if (packed) way({ dtype_id: packed.dtype_id, engine_id: "", attention: "", kv_dtype_id: "" }, `In ${a.formatName(packed.dtype_id)}`, ` (llama.cpp, Ollama): ${each(packed)}.`);
    // of the few cards that people put together the least that hold it packed, in the best format there
    const runPacked = packed || row.engine_id === "llama.cpp" || (gpu && a.isComputer(gpu)) ? [] : PACKED.filter((dtype_id) => { const other = r.ask(own, { ...plain, dtype_id }); return other?.total_bytes != null && runs(other); });
    const few = r.fewestOf(own, runPacked.map((dtypeId) => ({ dtypeId })), plain, bytes, SEVERAL);
    if (few) way({ dtype_id: few.dtypeId, engine_id: "", attention: "", kv_dtype_id: "", sharding: "", gpu_count: few.count }, `${few.count} × ${card} in ${a.formatName(few.dtypeId)}`, ` (llama.cpp, Ollama): ${each(r.ask(own, { ...plain, dtype_id: few.dtypeId, gpu_count: few.count }))}.`);
    if (!packed && row.gpu_count === 1 && row.engine_id !== "llama.cpp") { // there the answer itself says it
      const least = PACKED.slice(0, -1).reverse().map((dtype_id) => r.ask(own, { ...plain, dtype_id })).find((other) => other?.total_bytes != null && runs(other));
      const beside = least && row.dtype_id !== least.dtype_id ? r.splitSaid(r.split(own, least, bytes, gpu), a.formatName(least.dtype_id)) : null;
      const values = { dtype_id: least?.dtype_id, engine_id: "", attention: "", kv_dtype_id: "" }, one = beside && ram ? ram.way(own, { ...plain, dtype_id: least.dtype_id }, least, bytes, gpu, ramBytes) : null;
      if (one?.isHeld) way(values, `In ${a.formatName(least.dtype_id)} with ${ram.part(one)} in RAM`, `: ${ram.sized(one)}. It is slower.`);
      else if (beside) way(values, beside[0].replace(/: $/, ""), ": ", ...beside.slice(1));
    }
  } else {
    if (row.checkpointing && row.checkpointing !== "full") { const less = held({ ...asked, checkpointing: "full" }); if (less) way({ checkpointing: "full" }, "With all activations recomputed", `: ${each(less)}; it is slower.`); }
    for (const [phase_id, dtype_id, name] of [[row.phase_id, row.dtype_id, ""], ["lora", "bf16", "LoRA"], ["qlora", "nf4", "QLoRA"]]) {
      if (name && (phase_id === row.phase_id || row.phase_id === "qlora")) continue;
      const kept = { phase_id, dtype_id, checkpointing: "", optimizer_id: "", engine_id: "", ...(name && { program_version: "" }) };
      const other = name && held({ ...(row.objective_id ? {} : r.shared.opening?.[phase_id]), ...plain, phase_id, dtype_id }), least = other ? null : frugal({ ...plain, phase_id, dtype_id }, row.total_bytes, held);
      if (other) way(kept, name, `: ${each(other)}.`);
      // (of the program that is asked already another release)
      const said = least && (asked.program === least.program || row.program === least.program ? least.row.holds_for ?? least.name : least.name);
      if (least) way({ ...kept, context_tokens: row.context_tokens, sequences: row.sequences, dtype_id: itsFormat(kept), program: least.program, program_version: "" }, `${name}${name ? " with" : "With"} ${said}`, `: ${each(least.row)}.`);
      if (other || least) break;
    }
  }
  const far = r.longest(own, asked, bytes).at;
  if (far && far < row.context_tokens) way({ context_tokens: far }, `${far.toLocaleString("en")} tokens`, ` ${inFormat(row.dtype_id)} are the most that fit.`);
  const users = row.sequences > 1 ? r.most(own, asked, bytes).at : 0;
  if (users && users < row.sequences) way({ sequences: users }, `${users.toLocaleString("en")} ${row.unit ?? (row.phase_id === "inference" ? "user" : "sequence")}${users === 1 ? "" : "s"} at once`, `${row.phase_id === "inference" ? ` ${inFormat(row.dtype_id)}` : ""} ${users === 1 ? "is what fits" : "are the most that fit"}.`);
  const many = gpu && a.isComputer(gpu) ? null : r.fewest(own, asked, bytes, row.gpu_count);
  // (with the context that is counted here: some programs take more of it by themselves on more cards)
  if (many && runs(many)) way({ gpu_count: many.gpu_count, ...(asked.program && row.context_tokens && { context_tokens: row.context_tokens }) }, `${many.gpu_count.toLocaleString("en")} × ${card}${row.phase_id === "inference" ? ` ${inFormat(row.dtype_id)}` : ""}`, `, shared by ${r.SHARED[many.sharding] ?? many.sharding ?? "all of them"}: ${each(many)}.`);
  return found;
}
