// Techniques of training on one model and card, in bytes and in seconds; the choice is in the address.
const search = new URL(import.meta.url).search;
const [a, r, plan, ask] = await Promise.all(["almanac", "reckon", "plan", "asking"].map((name) => import(`./${name}.js${search}`)));
const [world, models] = await Promise.all([a.world(), a.models()]);
const root = document.getElementById("techniques"), part = (name) => root.querySelector(`[data-part="${name}"]`);
const form = part("ask"), said = part("answer"), note = part("note"), table = root.querySelector("table");

const first = models.id.find((id, i) => models.reason.of[i] === null && models.task.values[models.task.of[i]] === "text-generation") ?? models.id[0];
const asked = new URLSearchParams(location.search), KEYS = ["model", "gpu", "context", "sequences"];
const refused = a.foreign(asked, KEYS), cards = world.gpus.map((g) => g.id);
const state = { model: asked.get("model") ?? first, gpu: a.listed(asked.get("gpu") ?? a.memory.get("gpu") ?? "", cards) ?? (cards.includes("rtx-4090") ? "rtx-4090" : cards[0]), context: 2048, sequences: 1 };
if (asked.has("gpu") && a.listed(asked.get("gpu"), cards) === null) refused.push(`gpu=${asked.get("gpu")}`);
for (const key of ["context", "sequences"]) {
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
  const mine = ++turn, number = models.id.indexOf(state.model), known = number >= 0 && models.reason.of[number] === null && !models.pipelines?.includes(number);
  const own = known ? await r.ofModel(models.paths[number] ?? state.model) : null;
  if (mine !== turn) return;
  history.replaceState(null, "", `?${new URLSearchParams(state)}`);
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
await draw();
performance.mark("interactive");
