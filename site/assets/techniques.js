// Techniques of training on one model and card, in bytes and in seconds, and what a draft gives a model that serves; the choice is in the address.
const search = new URL(import.meta.url).search;
const [a, r, plan, ask] = await Promise.all(["almanac", "reckon", "plan", "asking"].map((name) => import(`./${name}.js${search}`)));
const [world, models] = await Promise.all([a.world(), a.models()]);
const root = document.getElementById("techniques"), part = (name) => root.querySelector(`[data-part="${name}"]`);
const form = part("ask"), said = part("answer"), note = part("note"), table = root.querySelector("table");

const first = ask.firstModel(models);
const asked = new URLSearchParams(location.search), KEYS = ["model", "gpu", "context", "sequences", "draft", "dtype", "users"];
const refused = a.foreign(asked, KEYS), cards = world.gpus.map((g) => g.id);
const state = { model: a.listed(asked.get("model") ?? first, models.id) ?? asked.get("model"), gpu: a.listed(asked.get("gpu") ?? a.memory.get("gpu") ?? "", cards) ?? (cards.includes("rtx-4090") ? "rtx-4090" : cards[0]), context: 2048, sequences: 1, draft: asked.get("draft") ?? "", dtype: asked.get("dtype") ?? "", users: 1 };
if (asked.has("gpu") && a.listed(asked.get("gpu"), cards) === null) refused.push(`gpu=${asked.get("gpu")}`);
for (const key of ["context", "sequences", "users"]) {
  const n = asked.has(key) ? a.number(asked.get(key)) : null;
  if (n != null && Number.isInteger(n) && n >= 1 && n <= 1e6) state[key] = n;
  else if (asked.has(key)) refused.push(`${key}=${asked.get(key)}`);
}
note.textContent = a.refused(refused);
note.hidden = !refused.length;

const numbered = (key, name) => ask.numberField(key, name, state[key], (value) => change(key, value));
form.append(ask.modelField(models, state.model, (value) => change("model", value)), a.select("gpu", "Card", a.gpuOptions(world).slice(1), state.gpu, (value) => change("gpu", value)), numbered("context", "Context, tokens"), numbered("sequences", "Sequences at once"));
form.addEventListener("submit", (event) => event.preventDefault());
function change(key, value) { if (state[key] !== value) { state[key] = value; note.hidden = true; draw(); } }

const gib = (bytes) => a.gib(bytes / 1024);
const signed = (bytes) => (bytes === 0 ? "–" : `${bytes > 0 ? "−" : "+"}${gib(Math.abs(bytes))}`);
const thousand = (seconds) => (seconds == null ? "–" : (seconds * 1000).toLocaleString("en", { maximumSignificantDigits: 3 }));
let turn = 0;
async function draw() {
  await Promise.all([drawTable(), drawDraft()]);
}
async function drawTable() {
  const mine = ++turn, number = models.id.indexOf(state.model), known = number >= 0 && models.reason.of[number] === null && !models.pipelines?.includes(number);
  const own = known ? await r.ofModel(models.paths[number] ?? state.model) : null;
  if (mine !== turn) return;
  history.replaceState(null, "", `?${new URLSearchParams(Object.entries(state).filter(([, value]) => value !== ""))}`);
  form.hidden = false;
  part("found").hidden = true;
  if (!own) return void said.replaceChildren(number < 0 ? `There is no model of the name ${a.shown(state.model)} here.` : known ? "" : `Unknown: ${a.shown(models.reason.values[models.reason.of[number]] ?? "it is made of several models")}.`);
  const gpu = world.gpus.find((g) => g.id === state.gpu), rows = plan.techniques(own, state.model, state.gpu, { context_tokens: state.context, sequences: state.sequences });
  const [plain, ...others] = rows;
  if (plain?.row?.total_bytes == null) return void said.replaceChildren(`Unknown: ${plain?.row?.unknown_reason ?? "nothing is known of training it"}.`);
  const holds = ({ row }) => row?.total_bytes != null && row.gpu_count === 1 && r.holds(row, gpu.bytes), fit = others.filter(holds);
  said.replaceChildren(a.h("a", { href: a.address(`models/${models.paths[number] ?? state.model}/`) }, a.shown(state.model.split("/").at(-1))), ` on ${gpu.short}: full fine-tuning takes ${gib(plain.row.total_bytes)} GiB. `,
    holds(plain) ? "That fits one card as it is; what takes less, or more, stands below." : fit.length ? `${fit.length === 1 ? "One technique makes" : `${fit.length} techniques make`} it fit one card by ${fit.length === 1 ? "itself" : "themselves"}: ${fit.map(({ technique }) => technique.name).join(", ")}.` : `No single one makes it fit one card: the calculator puts several together.`);
  const base = plain.likely ?? plain.least;
  table.tBodies[0].replaceChildren(...rows.map(({ technique, row, least, likely }) => {
    const ok = row?.total_bytes != null, held = ok && r.holds(row, gpu.bytes), ratio = base && likely != null ? likely * row.gpu_count / base : null;
    return a.h("tr", {}, a.h("th", { scope: "row", title: technique.why }, technique.name), a.h("td", { class: `n ${ok ? (held ? "v-fits" : "v-no") : ""}` }, ok ? gib(row.total_bytes) : "–"), a.h("td", { class: "n" }, ok ? signed(plain.row.total_bytes - row.total_bytes) : "–"),
      a.h("td", { class: "n" }, thousand(least == null ? null : least * 1000)), a.h("td", { class: "n" }, thousand(likely == null ? null : likely * 1000)), a.h("td", { class: "n" }, ratio == null ? "–" : `${Math.round(100 * ratio)} %`), a.h("td", {}, ok ? technique.why : row?.unknown_reason ?? "not known"));
  }));
  part("found").hidden = false;
  part("sql").textContent = `FROM techniques_for('${state.gpu}', '${state.model.replaceAll("'", "''")}', context_tokens := ${state.context}, sequences := ${state.sequences});`;
}
// ---- a draft: the smallest model of the same kind and maker where none is chosen
const drafts = document.getElementById("drafts"), within = (name) => drafts.querySelector(`[data-part="${name}"]`);
const FORMATS = ["bf16", "fp8", "awq-int4", "gguf-q8_0", "gguf-q4_k_m", "mlx-4bit"].filter((id) => r.shared.dtype.some((d) => d.dtype_id === id));
const usual = (gpu) => (gpu.vendor === "apple" ? "mlx-4bit" : gpu.segment === "datacenter" ? "bf16" : "gguf-q4_k_m");
function draftOf(number) {
  const maker = models.id[number].split("/")[0], same = models.id.flatMap((id, i) => (i !== number && id.startsWith(`${maker}/`) && models.family.of[i] === models.family.of[number] && models.task.of[i] === models.task.of[number] && models.reason.of[i] === null && models.size[i] != null ? [i] : []));
  same.sort((x, y) => models.size[x] - models.size[y] || (models.id[x] < models.id[y] ? -1 : 1));
  return same.length && models.size[same[0]] < models.size[number] ? models.id[same[0]] : "";
}
let draftTurn = 0;
async function drawDraft() {
  const mine = ++draftTurn, number = models.id.indexOf(state.model), gpu = world.gpus.find((g) => g.id === state.gpu);
  drafts.hidden = number < 0 || !gpu;
  if (drafts.hidden) return;
  const name = state.draft || draftOf(number), small = models.id.indexOf(name), dtype_id = FORMATS.includes(state.dtype) ? state.dtype : usual(r.card(gpu.id));
  draftField.placeholder = name;
  formatField.querySelector("select").value = dtype_id;
  const said = (...parts) => within("answer").replaceChildren(...parts), details = within("sql").closest("details");
  details.hidden = true;
  if (!name || small < 0) return said(name ? `There is no model of the name ${a.shown(name)} here.` : "No smaller model of the same kind is known: name one.");
  const [own, draftOwn] = await Promise.all([number, small].map((i) => (models.reason.of[i] === null ? r.ofModel(models.paths[i] ?? models.id[i]) : null)));
  if (mine !== draftTurn) return;
  if (!own || !draftOwn) return said("Unknown: nothing is published of one of them.");
  const on = r.card(gpu.id), engine_id = r.macros.serving_engine(dtype_id, on.vendor, r.shared.dtype.find((d) => d.dtype_id === dtype_id)?.engine_id ?? null);
  const told = plan.drafted(own, draftOwn, { model_id: state.model, draft_id: name, dtype_id, engine_id, context_tokens: state.context, sequences: state.users }, gpu.id);
  const held = told.row?.total_bytes != null && told.bytes != null ? `${a.shown(name.split("/").at(-1))} takes ${gib(told.bytes)} GiB for weights and cache beside the ${gib(told.row.total_bytes)} of ${a.shown(state.model.split("/").at(-1))}: at least ${gib(told.bytes + told.row.total_bytes)} of ${gib(gpu.bytes)} on ${gpu.short}.` : "";
  const rate = (n) => r.rate(n), fits = held && told.bytes + told.row.total_bytes <= gpu.bytes;
  said(held + (held && !fits ? " That does not fit." : ""), told.why ? ` What it gives is not known: ${told.why}.` : ` By what is read and multiplied ${rate(told.low)} to ${rate(told.high)} tokens a second${state.users > 1 ? ` for all ${state.users} users` : ""}, where ${rate(told.alone)} are likely without it: ${(told.low / told.alone).toFixed(1)} to ${(told.high / told.alone).toFixed(1)} times. The one published run with both speeds stayed below what we say of it.`);
  details.hidden = false;
  const asked = `'${state.gpu}', '${state.model.replaceAll("'", "''")}', '${name.replaceAll("'", "''")}', dtype_id := '${dtype_id}', context_tokens := ${state.context}, sequences := ${state.users}`;
  within("sql").textContent = `-- how quickly; and what both hold, with what the program sets aside\nFROM drafted_on(${asked});\nFROM speculative_fits_on(${asked}, draft_dtype_id := '${dtype_id}', engine_id := '${engine_id}');`;
}
const draftField = a.h("input", { type: "search", name: "draft", list: "model-names", autocomplete: "off", spellcheck: "false", value: state.draft });
draftField.addEventListener("change", () => change("draft", draftField.value.trim()));
const formatField = a.select("dtype", "Format", FORMATS.map((id) => [id, a.formatName(id)]), state.dtype, (value) => change("dtype", value));
within("ask").append(a.h("label", { class: "search" }, a.h("span", {}, "Draft"), draftField), formatField, numbered("users", "Users at once"));
within("ask").addEventListener("submit", (event) => event.preventDefault());
await draw();
performance.mark("interactive");
