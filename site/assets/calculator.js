// The calculator: any scenario of `footprint_of`, answered by the formulas as they are translated from the SQL.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const [{ footprints }, shared, world, models, support] = await Promise.all([
  import(`../../data/formulas.js${search}`), a.load("data/calculator.json"), a.world(), a.models(), a.load("data/support.json"),
]);
world.support = support; // of every engine and attention, not only of what is published
const { GROUPS, FIELDS, applies, hint, label, problem, value } = await import(`./scenario_fields.js${search}`);
const root = document.getElementById("calc");
const form = root.querySelector("form");
const shown = document.getElementById("calculated");
const GIB = 2 ** 30;

// ---- the scenario: in the address, so that it can be sent. What nobody chose is empty here; its field shows what is taken instead
const ORDER = Object.keys(FIELDS).filter((key) => !shared.arguments || shared.arguments.includes(key));
const asked = new URLSearchParams(location.search);
const told = models.task.values.indexOf("text-generation"); // what most people come for
const first = [(i) => models.task.of[i] === told, () => true].map((wanted) => models.id.find((_, i) => models.reason.of[i] === null && wanted(i))).find(Boolean);
const state = { model: asked.get("model") ?? first ?? models.id[0], gpu: asked.get("gpu") ?? a.memory.get("gpu") ?? "" };
const listed = a.listed(state.gpu, world.gpus.map((g) => g.id));
const noCard = listed === null && asked.get("gpu");
state.gpu = listed ?? "";
// the front page's address says dtype, context, phase
for (const key of ORDER) state[key] = asked.get(key) ?? asked.get(key.replace(/_(id|tokens)$/, "")) ?? FIELDS[key].start ?? "";
// a format as the front page names it, "bf16 (vLLM)", is a format and its engine; by its id alone it is the one that the card runs
const published = world.scenarios.filter((s) => s.phase === state.phase_id);
const meant = published.find((s) => s.dtype === state.dtype_id && s.dtype !== s.dtypeId) ??
  ((asked.has("dtype") || asked.has("dtype_id")) && a.ofFormat(world, published, state.dtype_id, world.gpus.find((g) => g.id === state.gpu)));
if (meant) {
  state.dtype_id = meant.dtypeId;
  if (!state.engine_id && meant.engine !== world.dtypes.find(([id]) => id === meant.dtypeId)?.[2]) state.engine_id = meant.engine;
}

// What is taken where nothing was chosen, equal to what a model's page opens with (scenario_set.csv); the rest the formulas fill in.
const opening = (phase) => shared.opening?.[phase] ?? {};
const faulty = (key) => problem(key, state[key], options[key]);
const sound = () => (faulty("phase_id") ? { ...state, phase_id: FIELDS.phase_id.start } : state); // what decides which fields there are
function assumed(key) {
  const wanted = opening(sound().phase_id)[key] ?? FIELDS[key].start;
  const limit = models.context[models.id.indexOf(state.model)];
  if (key !== "context_tokens" || !limit || limit >= wanted) return wanted;
  const published = world.scenarios.filter((s) => s.phase === sound().phase_id && s.context <= limit).map((s) => s.context);
  return published.length ? Math.max(...published) : limit;
}
// What a field shows that the formulas leave to the model.
function ofModel(key, own) {
  const tower = own?.shape?.[0]?.tower;
  if (key === "images" || key === "audio_seconds") return 0;
  if (key === "max_context_tokens") return models.context[models.id.indexOf(state.model)];
  if (key === "image_width" || key === "image_height") return tower?.default_pixels > 0 ? Math.round(Math.sqrt(tower.default_pixels)) : shared.constants?.[0]?.default_image_side_pixels;
  return null;
}

const boxes = {}, options = {}, beside = {};
function field(key) {
  const { choices, step = "1" } = FIELDS[key];
  beside[key] = a.h("small", { class: "told-beside", role: "status", hidden: true });
  options[key] = choices?.(shared, world);
  if (choices) {
    const box = a.select(key, label(key, state), options[key], state[key], (text) => change(key, text));
    box.append(beside[key]);
    return box;
  }
  const input = a.h("input", { type: "number", name: key, min: "0", step, inputmode: "numeric" });
  input.addEventListener("input", () => change(key, input.validity.badInput ? "what was typed" : input.value));
  input.addEventListener("blur", () => calculate());
  return a.h("label", {}, a.h("span", {}, label(key, state)), input, beside[key]);
}
// Each field shows the value that is taken, and beside it what is wrong with what was asked for.
function show(row, own) {
  for (const key of ORDER) {
    const control = boxes[key].querySelector("select, input");
    const taken = state[key] !== "" ? state[key] : String(row?.[key] ?? assumed(key) ?? ofModel(key, own) ?? "");
    const isTyping = control === document.activeElement && control.type === "number";
    const emptied = isTyping && control.value === "" && state[key] === "";
    const wrong = faulty(key) || hint(key, state[key]) || (emptied && taken !== "" ? `Empty: ${(+taken).toLocaleString("en")} is taken.` : "");
    if (!isTyping && control.value !== taken) control.value = taken;
    boxes[key].classList.toggle("assumed", state[key] === "");
    beside[key].textContent = a.shown(wrong);
    beside[key].hidden = !wrong;
    control.setAttribute("aria-invalid", String(Boolean(faulty(key))));
  }
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
if (noCard) card.append(a.h("small", { class: "told-beside", role: "status" }, `“${a.shown(noCard)}” is not a card here.`));
card.addEventListener("change", () => card.querySelector(".told-beside")?.remove());
const groups = GROUPS.map(([name, fields]) => {
  const keys = Object.keys(fields).filter((key) => ORDER.includes(key));
  const set = a.h("fieldset", { class: "controls" }, a.h("legend", {}, name), ...keys.map((key) => (boxes[key] = field(key))));
  return { set, keys };
});
form.append(a.h("div", { class: "controls" }, modelField(), card), ...groups.map(({ set }) => set));
form.addEventListener("submit", (event) => event.preventDefault());
function change(key, value) {
  if (state[key] === value) return;
  if (key === "phase_id" && state.dtype_id === opening(state.phase_id).dtype_id) state.dtype_id = ""; // what the other phase begins with
  state[key] = value;
  calculate();
}

// ---- the answer
const anatomies = new Map();
async function anatomy(number) {
  const path = models.paths[number] ?? models.id[number];
  if (!anatomies.has(path)) anatomies.set(path, a.told(path).then(async (told) => a.rowsOf(told, (await a.shape(told.shape)).rows)));
  return anatomies.get(path);
}
function scenario() {
  const out = { model_id: state.model };
  for (const key of ORDER) {
    const text = state[key] !== "" && !faulty(key) ? state[key] : assumed(key);
    if (text != null && applies(key, sound())) out[key] = value(key, String(text));
  }
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
  const isPipeline = models.pipelines?.includes(number);
  for (const key of ORDER) {
    boxes[key].hidden = !applies(key, sound());
    boxes[key].firstChild.textContent = label(key, sound());
  }
  for (const { set, keys } of groups) set.hidden = isPipeline || (number >= 0 && !own) || keys.every((key) => boxes[key].hidden);
  form.hidden = false;
  const query = new URLSearchParams({ model: state.model });
  for (const key of ["gpu", ...ORDER]) if (state[key] !== "" && state[key] !== FIELDS[key]?.start && !boxes[key]?.hidden) query.set(key, state[key]);
  history.replaceState(null, "", `?${query}`);
  const wanted = scenario();
  const row = own && footprints({ ...shared, ...own }, wanted);
  show(row, own);
  if (number < 0) return say(null, `There is no model of the name ${a.shown(state.model)} here.`, -1, null, nearest(state.model));
  if (isPipeline) return sayPipeline(number, mine);
  if (!own) return say(null, `Unknown: ${a.shown(models.reason.values[models.reason.of[number]] ?? "nothing is published")}.`, number);
  const wrong = ORDER.filter((key) => !boxes[key].hidden && faulty(key));
  if (wrong.length) return say(null, `No answer. ${wrong.map((key) => `${label(key, sound())}: ${a.shown(faulty(key))}`).join(" ")}`, number);
  say(row, "", number, wanted);
}
// A pipeline of several models is asked by the size of a picture: its page and pipeline_of have the answer.
async function sayPipeline(number, mine) {
  const { answer } = await a.told(models.paths[number] ?? models.id[number]);
  if (mine !== turn) return;
  say(null, `${a.shown(state.model)} is a pipeline of several models that makes pictures or films: it is not asked by tokens. ${answer || "What the whole of it takes is not known; its page says what is known of its parts."}`, number);
  shown.querySelector("pre code").textContent = `FROM pipeline_of(${text(state.model)}, dtype_id := 'bf16', width := 1024, height := 1024);`;
  for (const part of asSql) part.hidden = false;
}
// The listed models that share most words with a name, the most downloaded first.
function nearest(name, most = 5) {
  const words = name.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean);
  const shared = models.id.map((id) => { const lower = id.toLowerCase(); return words.filter((word) => lower.includes(word)).join("").length; });
  const places = shared.map((_, i) => i).filter((i) => shared[i]).sort((x, y) => shared[y] - shared[x] || x - y);
  return places.slice(0, most).map((i) => models.id[i]);
}
const asSql = shown.querySelectorAll("#as-sql, #as-sql ~ *");
// A reason of the formulas in a reader's words, as pipeline/render/pages/plain.py has it.
const rules = (shared.words ?? []).map(([pattern, text]) => [new RegExp(pattern, "g"), text]);
const grouped = new RegExp("(?<![\\d.])\\d{5,}(?![\\d.]*\\d)", "g");
const plain = (reason) => rules.reduce((said, [pattern, text]) => said.replace(pattern, text), reason).replace(grouped, (n) => BigInt(n).toLocaleString("en"));
const gib = (bytes) => a.gib(bytes / 1024);
function say(row, said, number, wanted, near = []) {
  shown.hidden = false;
  const known = row?.total_bytes != null;
  const answer = shown.querySelector(".answer"), fine = shown.querySelector(".fine");
  answer.classList.toggle("unknown", !known);
  shown.querySelector(".scroll").hidden = !known;
  const rest = Object.fromEntries(ORDER.filter((key) => state[key] !== "" && state[key] !== FIELDS[key].start).map((key) => [key, state[key]]));
  fine.replaceChildren(...near.flatMap((id, i) => [i ? ", " : "Nearest: ", a.h("a", { href: `?${new URLSearchParams({ model: id, ...(state.gpu && { gpu: state.gpu }), ...rest })}` }, a.shown(id))]));
  const page = number >= 0 ? a.h("a", { href: a.address(`models/${models.paths[number] ?? models.id[number]}/${state.gpu ? `?${new URLSearchParams({ gpu: state.gpu })}` : ""}`) }, a.shown(state.model)) : "";
  if (page && !row) fine.append("Its page: ", page, ".");
  if (row) {
    const settled = ORDER.filter((key) => !["phase_id", "dtype_id", "gpu_count"].includes(key) && row[key] != null && applies(key, { ...state, ...row }))
      .map((key) => `${label(key, row).replace(/,.*/, "").toLowerCase()} ${typeof row[key] === "boolean" ? (row[key] ? "yes" : "no") : row[key].toLocaleString("en")}`);
    fine.append(page, `: ${settled.join(", ")}.`);
    const limit = models.context[number];
    if (row.total_bytes != null && limit && row.context_tokens > limit) fine.append(` The model’s own context ends at ${a.tokens(limit)} tokens: beyond it the number holds, the model may not.`);
  }
  for (const part of asSql) part.hidden = !wanted;
  if (wanted) shown.querySelector("pre code").textContent = sql(wanted);
  if (!known) {
    answer.textContent = said || `Unknown: ${row.unknown_reason ? plain(row.unknown_reason) : "the numbers are larger than can be worked out"}.`;
    return;
  }
  const each = row.gpu_count > 1 ? ` on each of ${row.gpu_count} GPUs` : "";
  answer.textContent = `${gib(row.total_bytes)} GiB${each}, ±\u00a0${Math.round(row.error_band * 100)}\u00a0%${verdict(row)}.`;
  const scale = row.total_bytes;
  shown.querySelector("tbody").replaceChildren(...shared.components.filter(([id]) => row[`${id}_bytes`]).map(([id, name, page]) => {
    const bytes = row[`${id}_bytes`];
    return a.h("tr", {}, a.h("th", { scope: "row" }, a.h("a", { href: a.address(`method/${page}/`) }, name)), a.h("td", { class: "n" }, gib(bytes)),
      a.h("td", { class: "n x" }, bytes.toLocaleString("en")), a.h("td", { class: "barcell" }, bar(id, bytes / scale)));
  }), a.h("tr", { class: "sum" }, a.h("th", { scope: "row" }, row.peak_moment ? `Total, at the peak (${row.peak_moment})` : "Total"), a.h("td", { class: "n" }, gib(scale)),
    a.h("td", { class: "n x" }, scale.toLocaleString("en")), a.h("td")));
}
const FITS = { fits: "fits", "multi-gpu": "fits", tight: "is tight", no: "does not fit" };
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
  const fits = FITS[a.cardVerdict(row.total_bytes, row.error_band, gives, row.gpu_count)];
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
const text = (value) => (typeof value !== "string" ? value : `'${value.replaceAll("'", "''")}'`);
function sql({ model_id, ...rest }) {
  return `FROM footprint_of(${[text(model_id), ...Object.entries(rest).map(([key, value]) => `${key} := ${text(value)}`)].join(", ")});`;
}
await calculate();
