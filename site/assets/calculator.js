// The calculator: any scenario of `footprint_of`, answered by the formulas as they are translated from the SQL.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const [{ footprints }, shared, world, models, support] = await Promise.all([
  import(`../../data/formulas.js${search}`), a.load("data/calculator.json"), a.world(), a.models(), a.load("data/support.json"),
]);
world.support = support; // of every engine and attention, not only of what is published
const { GROUPS, FIELDS, applies, label, value } = await import(`./scenario_fields.js${search}`);
const root = document.getElementById("calc");
const form = root.querySelector("form");
const shown = document.getElementById("calculated");
const PARTS = [
  ["weights", "Weights", "weights"], ["kv_cache", "KV cache", "kv-cache"], ["kv_padding", "KV padding", "kv-cache"], ["state", "State", "state"],
  ["activations", "Activations", "activations"], ["gradients", "Gradients", "gradients"], ["optimizer", "Optimizer", "optimizer"],
  ["adapters", "Adapters", "adapters"], ["overhead", "Overhead", "overhead"],
];
const GIB = 2 ** 30;

// ---- the scenario: in the address, so that it can be sent; an empty field is the default
const ORDER = Object.keys(FIELDS).filter((key) => !shared.arguments || shared.arguments.includes(key));
const asked = new URLSearchParams(location.search);
const told = models.task.values.indexOf("text-generation"); // what most people come for
const opening = [(i) => models.task.of[i] === told, () => true].map((wanted) => models.id.find((_, i) => models.reason.of[i] === null && wanted(i))).find(Boolean);
const state = { model: asked.get("model") ?? opening ?? models.id[0], gpu: asked.get("gpu") ?? a.memory.get("gpu") ?? "" };
if (!world.gpus.some((g) => g.id === state.gpu)) state.gpu = "";
// A format as the front page names it, "bf16 (vLLM)", tells its engine; by its id alone it is meant with the one that the card runs.
const format = asked.get("dtype_id") ?? asked.get("dtype");
if (format && !asked.get("engine_id") && !asked.get("engine")) {
  const ofPhase = world.scenarios.filter((s) => s.phase === (asked.get("phase_id") ?? asked.get("phase") ?? FIELDS.phase_id.start));
  const meant = ofPhase.find((s) => s.dtype === format && s.dtypeId !== format) ?? a.ofFormat(world, ofPhase, format, world.gpus.find((g) => g.id === state.gpu));
  const own = world.dtypes.find(([id]) => id === meant?.dtypeId)?.[2];
  if (meant && (meant.engine !== own || meant.dtypeId !== format)) asked.set("engine_id", meant.engine);
  if (meant) asked.set("dtype_id", meant.dtypeId);
}
// the front page's address says dtype, context, phase
for (const key of ORDER) state[key] = asked.get(key) ?? asked.get(key.replace(/_(id|tokens)$/, "")) ?? FIELDS[key].start ?? "";
if (state.phase_id === "qlora" && !asked.has("dtype_id") && !asked.has("dtype")) state.dtype_id = "nf4"; // as usual_dtype

const boxes = {};
function field(key) {
  const { choices, start, step = "1" } = FIELDS[key];
  if (choices) {
    const first = start ? [] : [["", "default"]];
    return a.select(key, label(key, state), [...first, ...choices(shared, world)], state[key], (text) => change(key, text));
  }
  const input = a.h("input", { type: "number", name: key, min: "0", step, placeholder: "default", inputmode: "numeric" });
  input.value = state[key];
  input.addEventListener("input", () => change(key, input.value));
  return a.h("label", {}, a.h("span", {}, label(key, state)), input);
}
function modelField() {
  const list = a.h("datalist", { id: "model-names" });
  const input = a.h("input", { type: "search", name: "model", list: "model-names", autocomplete: "off", spellcheck: "false" });
  input.value = state.model;
  const lower = models.id.map((id) => id.toLowerCase());
  input.addEventListener("input", () => {
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const near = [];
    for (let i = 0; i < lower.length && near.length < 20; i++) if (terms.every((t) => lower[i].includes(t))) near.push(models.id[i]);
    list.replaceChildren(...near.map((id) => a.h("option", { value: id })));
    if (models.id.includes(input.value)) change("model", input.value);
  });
  input.addEventListener("change", () => change("model", input.value.trim()));
  return a.h("label", { class: "search" }, a.h("span", {}, "Model"), input, list);
}
const card = a.select("gpu", "My card", a.gpuOptions(world), state.gpu, (value) => { a.memory.set("gpu", value); change("gpu", value); });
const groups = GROUPS.map(([name, fields]) => {
  const keys = Object.keys(fields).filter((key) => ORDER.includes(key));
  const set = a.h("fieldset", { class: "controls" }, a.h("legend", {}, name), ...keys.map((key) => (boxes[key] = field(key))));
  return { set, keys };
});
form.append(a.h("div", { class: "controls" }, modelField(), card), ...groups.map(({ set }) => set));
form.addEventListener("submit", (event) => event.preventDefault());
function change(key, value) {
  if (state[key] === value) return;
  state[key] = value;
  if (key === "phase_id" && value === "qlora" && state.dtype_id === "bf16") state.dtype_id = boxes.dtype_id.querySelector("select").value = "nf4";
  calculate();
}

// ---- the answer
const anatomies = new Map();
async function anatomy(number) {
  const path = models.paths[number] ?? models.id[number];
  if (!anatomies.has(path)) anatomies.set(path, a.load(`models/${path}/formula.json`));
  return anatomies.get(path);
}
function scenario() {
  const out = { model_id: state.model };
  for (const key of ORDER) if (state[key] !== "" && applies(key, state)) out[key] = value(key, state[key]);
  return out;
}
let turn = 0;
async function calculate() {
  const mine = ++turn;
  const number = models.id.indexOf(state.model);
  const known = number >= 0 && models.reason.of[number] === null;
  const own = known ? await anatomy(number) : null;
  if (mine !== turn) return;
  state.reads = own ? own.shape?.[0]?.tower != null : true;
  const wanted = scenario();
  for (const key of ORDER) {
    boxes[key].hidden = !applies(key, state);
    boxes[key].firstChild.textContent = label(key, state);
  }
  for (const { set, keys } of groups) set.hidden = keys.every((key) => boxes[key].hidden);
  form.hidden = false;
  const query = new URLSearchParams({ model: state.model });
  for (const key of ["gpu", ...ORDER]) if (state[key] !== "" && state[key] !== FIELDS[key]?.start && !boxes[key]?.hidden) query.set(key, state[key]);
  history.replaceState(null, "", `?${query}`);
  if (number < 0) return say(null, `There is no model of the name ${a.shown(state.model)} here.`, -1, wanted, nearest(state.model));
  if (!own) return say(null, `Unknown: ${a.shown(models.reason.values[models.reason.of[number]] ?? "nothing is published")}.`);
  say(footprints({ ...shared, ...own }, wanted), "", number, wanted);
}
// The listed models that share most words with a name, the most downloaded first.
function nearest(name, most = 5) {
  const words = name.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean);
  const shared = models.id.map((id) => { const lower = id.toLowerCase(); return words.filter((word) => lower.includes(word)).join("").length; });
  const places = shared.map((_, i) => i).filter((i) => shared[i]).sort((x, y) => shared[y] - shared[x] || x - y);
  return places.slice(0, most).map((i) => models.id[i]);
}
const gib = (bytes) => a.gib(bytes / 1024);
function say(row, text, number, wanted, near = []) {
  shown.hidden = false;
  const known = row?.total_bytes != null;
  const answer = shown.querySelector(".answer"), fine = shown.querySelector(".fine");
  answer.classList.toggle("unknown", !known);
  shown.querySelector(".scroll").hidden = !known;
  const { model_id: _, ...rest } = wanted ?? {};
  fine.replaceChildren(...near.flatMap((id, i) => [i ? ", " : "Nearest: ", a.h("a", { href: `?${new URLSearchParams({ model: id, ...(state.gpu && { gpu: state.gpu }), ...rest })}` }, a.shown(id))]));
  if (row) {
    const settled = ORDER.filter((key) => !FIELDS[key].start && key !== "gpu_count" && row[key] != null && applies(key, { ...state, ...row }))
      .map((key) => `${label(key, row).replace(/,.*/, "").toLowerCase()} ${typeof row[key] === "boolean" ? (row[key] ? "yes" : "no") : row[key].toLocaleString("en")}`);
    fine.append(a.h("a", { href: a.address(`models/${models.paths[number] ?? models.id[number]}/`) }, a.shown(state.model)), `: ${settled.join(", ")}.`);
    const limit = models.context[number];
    if (row.total_bytes != null && limit && row.context_tokens > limit) fine.append(` The model’s own context ends at ${a.tokens(limit)} tokens: beyond it the number holds, the model may not.`);
  }
  shown.querySelector("pre code").textContent = sql(wanted ?? scenario());
  if (!known) {
    answer.textContent = text || `Unknown: ${row.unknown_reason}.`;
    return;
  }
  const each = row.gpu_count > 1 ? ` on each of ${row.gpu_count} GPUs` : "";
  answer.textContent = `${gib(row.total_bytes)} GiB${each}, ±\u00a0${Math.round(row.error_band * 100)}\u00a0%${verdict(row)}.`;
  const scale = row.total_bytes;
  shown.querySelector("tbody").replaceChildren(...PARTS.filter(([id]) => row[`${id}_bytes`]).map(([id, name, page]) => {
    const bytes = row[`${id}_bytes`];
    return a.h("tr", {}, a.h("th", { scope: "row" }, a.h("a", { href: a.address(`method/${page}/`) }, name)), a.h("td", { class: "n" }, gib(bytes)),
      a.h("td", { class: "n x" }, bytes.toLocaleString("en")), a.h("td", { class: "barcell" }, bar(id, bytes / scale)));
  }), a.h("tr", { class: "sum" }, a.h("th", { scope: "row" }, row.peak_moment ? `Total, at the peak (${row.peak_moment})` : "Total"), a.h("td", { class: "n" }, gib(scale)),
    a.h("td", { class: "n x" }, scale.toLocaleString("en")), a.h("td")));
}
// the same comparison as the macro fits_on
function verdict(row) {
  const gpu = world.gpus.find((g) => g.id === state.gpu);
  if (!gpu) return "";
  const asked = { engine: row.engine_id, dtypeId: row.dtype_id, phase: row.phase_id, attention: row.attention };
  const held = models.format.values[models.format.of[models.id.indexOf(state.model)]];
  const refusal = a.refusal(world, asked, held, gpu);
  if (refusal) return `; ${gpu.short}: ${refusal.text === "unknown" ? "not known to run there" : "it does not run there"} (${refusal.why})`;
  const cache = shared.without_cache?.[row.kv_dtype_id]?.[gpu.id];
  if (cache) return `; ${gpu.short}: not known to run there (${cache})`;
  const gives = gpu.capacity * 1024;
  const fits = row.total_bytes > gives ? "does not fit" : row.total_bytes * (1 + row.error_band) > gives ? "is tight" : "fits";
  return `: ${fits} on ${row.gpu_count > 1 ? `${row.gpu_count} × ` : ""}${gpu.short}, which gives ${a.gib(gpu.capacity)} GiB${a.shareNeeded(world, row.engine_id, row.total_bytes, gives)}`;
}
function bar(id, share) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, value);
  const rect = document.createElementNS(svg.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ class: `c-${id}`, width: (1000 * share).toFixed(1), height: 10 })) rect.setAttribute(name, value);
  svg.append(rect);
  return svg;
}
function sql({ model_id, ...rest }) {
  const text = (value) => (typeof value !== "string" ? value : `'${String(value).replaceAll("'", "''")}'`);
  return `FROM footprint_of(${[text(model_id), ...Object.entries(rest).map(([key, value]) => `${key} := ${text(value)}`)].join(", ")});`;
}
await calculate();
