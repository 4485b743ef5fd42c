// The calculator's answers about diffusion pipelines: what they hold while they run, and while LoRA adapters of their denoiser are trained.
const search = new URL(import.meta.url).search;
const [a, r, { FIELDS }] = await Promise.all([import(`./almanac.js${search}`), import(`./reckon.js${search}`), import(`./scenario_fields.js${search}`)]);
const { shared } = r, gib = (bytes) => a.gib(bytes / 1024);
// What the calculator knows of a question, handed over before it asks: its fields (ORDER, boxes, options), what is taken and wrong in them, the card, and how
// an answer is said.
let ORDER, boxes, options, world, assumed, faultOf, cardOf, bytesOf, named, gives, plain, say, answer, shown;
export function use(calculator) {
  ({ ORDER, boxes, options, world, assumed, faultOf, cardOf, bytesOf, named, gives, plain, say, answer, shown } = calculator);
}
// A pipeline of several models is asked by the size of a picture; each of its parts by the rule of its class, as pipeline_of has it.
const PLACED = [["resident", "All parts on the card"], ["model", "One part at a time"], ["group", "One module and the next one"], ["sequential", "One module at a time"]];
export function sayPipeline(out) {
  if (out.s.pipeline_task === "lora") return sayTraining(out);
  const { s, of } = out, wrong = ORDER.filter((key) => !boxes[key].hidden && faultOf(s, key)), { parts, isVideo } = of;
  const given = (key) => +(s[key] !== "" && !faultOf(s, key) ? s[key] : assumed(s, key, of)), dtype_id = faultOf(s, "pipeline_dtype") || !s.pipeline_dtype ? "bf16" : s.pipeline_dtype;
  const wanted = { dtype_id, width: given("width"), height: given("height"), frames: given("frames"), images: given("pictures"), is_tiled: s.is_tiled === "true", denoiser_dtype_id: s.denoiser_dtype_id && !faultOf(s, "denoiser_dtype_id") ? s.denoiser_dtype_id : null, text_dtype_id: s.text_dtype_id && !faultOf(s, "text_dtype_id") ? s.text_dtype_id : null };
  out.wanted = { model_id: s.model, ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value)) };
  const stages = parts.map((part) => r.macros.stage_of(part, wanted)), reasons = [...new Set(stages.map((stage) => stage.unknown_reason).filter(Boolean))].sort();
  if (wrong.length) return say({ ...out, wanted: null }, `No answer. ${wrong.map((key) => `${FIELDS[key].label}: ${a.shown(faultOf(s, key))}`).join(" ")}`);
  const size = `${wanted.width.toLocaleString("en")} × ${wanted.height.toLocaleString("en")} pixels`;
  if (!stages.length || reasons.length) return say(out, `Unknown${stages.length ? ` at ${size}` : ""}: ${reasons.map((why) => plain(why)).join("; ") || "what it is made of is not published"}.`);
  const gpu = cardOf(s), bytes = bytesOf(s), no = gpu && r.refusal(world, { engine_id: "transformers", dtype_id, phase_id: "inference", attention: "flash" }, "", gpu);
  const rows = PLACED.map(([id, name]) => ({ name, gpu_count: 1, ...r.macros.pipeline_whole(stages, id, shared.constants[0]) }));
  const best = bytes != null && !no && rows.find((row) => r.holds(row, bytes));
  const told = ({ total_bytes, error_band }) => `${gib(total_bytes)} GiB, ±\u00a0${Math.round(100 * error_band)}\u00a0%`;
  const lead = no ? `${gpu.short}: ${no.text === "unknown" ? "not known to run there" : "it does not run there"} (${no.why}).` : best ? `Fits on ${named(s)}, ${gives(s)}, ${best === rows[0] ? "with all parts on the card" : `but not at once: with ${best.name.toLowerCase()} on the card and the rest in the computer’s memory, which is slower`}: ${told(best)}${best.peak_part === "loading" ? ", which it takes while it is loaded" : ""}.${best === rows[0] ? "" : ` All parts on the card take ${gib(rows[0].total_bytes)} GiB.`}` : bytes == null ? `${told(rows[0])} with all parts on the card; ${gib(rows[1].total_bytes)} GiB with one at a time.` : `Does not fit on ${named(s)}, ${gives(s)}: even with one module at a time it takes ${told(rows.at(-1))}.`;
  say(out, `${lead} ${wanted.images > 1 ? `${wanted.images} pictures` : wanted.frames > 1 ? `${wanted.frames} frames` : isVideo ? "One frame" : "One picture"} of ${size}.${isVideo && wanted.frames === 1 ? " Say above how many frames the video has." : ""}`);
  drawPlaced(out.s, rows, gpu, bytes, no);
}
// LoRA adapters of its denoiser, as pipeline_training_of has it: the row of denoiser_training that was asked for, the other parts beside it or not.
const TRAINED = [["resident", "All parts on the card"], ["cached", "The denoiser alone, latents and text made before"]];
function sayTraining(out) {
  const { s, of } = out, wrong = ORDER.filter((key) => !boxes[key].hidden && faultOf(s, key));
  if (wrong.length) return say({ ...out, wanted: null }, `No answer. ${wrong.map((key) => `${FIELDS[key].label}: ${a.shown(faultOf(s, key))}`).join(" ")}`);
  const given = (key) => +(s[key] !== "" ? s[key] : assumed(s, key, of)), dtype_id = s.pipeline_dtype || "bf16";
  const wanted = { dtype_id, width: given("width"), height: given("height"), frames: given("frames"), images: given("pictures"), lora_rank: given("adapter_rank"), checkpointing: s.is_recomputed === "false" ? "none" : "full", denoiser_dtype_id: s.denoiser_dtype_id || null };
  Object.assign(out, { isTraining: true, wanted: { model_id: s.model, ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null)) } });
  const part = of.parts.find((each) => each.pipeline_part === "denoiser"), others = of.parts.filter((each) => each !== part);
  if (!part) return say(out, "Unknown: what it is made of is not published.");
  const { reason, rows, missing } = training(wanted, part, others), size = `${wanted.width.toLocaleString("en")} × ${wanted.height.toLocaleString("en")} pixels`;
  if (reason != null) return say(out, `Unknown at ${size}: ${plain(reason)}.`);
  const gpu = cardOf(s), bytes = bytesOf(s), no = gpu && r.refusal(world, { engine_id: "transformers", dtype_id, phase_id: "lora", attention: "flash" }, "", gpu);
  const best = bytes != null && !no && rows.find((row) => r.holds(row, bytes)), least = rows.at(-1);
  const told = ({ total_bytes, error_band }) => `${gib(total_bytes)} GiB, ±\u00a0${Math.round(100 * error_band)}\u00a0%`;
  const lead = no ? `${gpu.short}: ${no.text === "unknown" ? "not known to run there" : "it does not run there"} (${no.why}).` : best ? `Fits on ${named(s)}, ${gives(s)}, with ${best.name.toLowerCase()}: ${told(best)}.` : bytes == null ? `${told(least)} with ${least.name.toLowerCase()}.` : `Does not fit on ${named(s)}, ${gives(s)}: even with ${least.name.toLowerCase()} it takes ${told(least)}.${packedSaid(wanted, part, others, bytes, least)}`;
  say(out, `${lead} LoRA of rank ${wanted.lora_rank}, ${wanted.images} ${of.isVideo ? "video" : "picture"}${wanted.images > 1 ? "s" : ""} of ${of.isVideo ? `${wanted.frames} frames of ` : ""}${size} at a time, as ${of.isVideo ? "finetrainers does" : "diffusers’ example scripts do"} it.${missing.length ? ` All parts on the card: ${missing.map((why) => plain(why)).join("; ")}.` : ""}`);
  drawPlaced(s, rows, gpu, bytes, no);
}
// The first format of the denoiser in which it would fit.
function packedSaid(wanted, part, others, bytes, least) {
  if (wanted.denoiser_dtype_id) return "";
  for (const [denoiser_dtype_id, name] of options.denoiser_dtype_id.filter(([id]) => id)) {
    const row = training({ ...wanted, denoiser_dtype_id }, part, others).rows.find((each) => r.holds(each, bytes));
    if (row) return ` With the denoiser packed in ${name} it fits: ${gib(row.total_bytes)} GiB${row.name === least.name ? "" : ` with ${row.name.toLowerCase()}`}.`;
  }
  return "";
}
// What a step of it holds by where the parts are, or why that is not known.
function training(wanted, part, others) {
  const m = r.macros, { blocks = {}, rules = [] } = part.trained ?? {}, rule = rules.find((each) => m.is_asked_rule(each, wanted)) ?? {}, optimizer = shared.optimizer.find((row) => row.optimizer_id === "adamw-foreach");
  const asked = { ...wanted, rule, is_tiled: false, text_dtype_id: null, text_tokens: rule.text_tokens ?? part.text_tokens }, of_step = [part, rule, blocks, asked, optimizer, m.packed_as(part, wanted) ?? {}];
  const reason = m.trained_reason(...of_step), missing = others.map((each) => m.encoder_reason(each)).filter((why) => why != null);
  if (reason != null) return { reason, rows: [], missing };
  const step = m.trained_step(...of_step);
  const rows = TRAINED.slice(missing.length ? 1 : 0).map(([id, name]) => {
    const beside = id === "resident" ? others : [], weights = beside.reduce((sum, each) => sum + Number(m.encoder_weights(each, rule)), Number(step.weights_bytes));
    const whole = m.training_sum(weights, step, Math.max(0, ...beside.map((each) => Number(m.encoder_activations(each, asked)))), shared.constants[0]);
    return { name, gpu_count: 1, ...whole, total_bytes: m.training_total(whole) };
  });
  return { reason, rows, missing };
}
function drawPlaced(s, rows, gpu, bytes, no) {
  answer.classList.remove("unknown");
  shown.querySelector(".scroll").hidden = false;
  const table = shown.querySelector("table.bd"), head = (text, kind) => a.h("th", { scope: "col", class: kind ?? false }, text);
  const isJudged = gpu || bytes != null, word = (row) => (bytes == null || no ? "" : { fits: "fits", tight: "tight", no: "no" }[r.verdict(row, bytes)]);
  const number = (bytes) => a.h("td", { class: "n" }, gib(bytes));
  table.caption.textContent = "Bytes on one GPU, by how the parts are placed";
  table.tHead.replaceChildren(a.h("tr", {}, head("Placed"), head("Total, GiB", "n"), ...(isJudged ? [head("Verdict", "n")] : []), head("Weights, GiB", "n"), head("Activations, GiB", "n")));
  table.tBodies[0].replaceChildren(...rows.map((row) => a.h("tr", {}, a.h("th", { scope: "row" }, row.name), number(row.total_bytes), ...(isJudged ? [a.h("td", { class: `n v-${word(row)}` }, word(row))] : []), number(row.weights_bytes), number(row.activations_bytes))));
}
