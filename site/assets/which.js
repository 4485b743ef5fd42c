// Which card for this: a model, its format, context and users against every card, alone or a few together; by price, speed, room and power.
const search = new URL(import.meta.url).search;
const [a, r, take, ask] = await Promise.all(["almanac", "reckon", "take", "asking"].map((name) => import(`./${name}.js${search}`)));
const [world, models, support] = await Promise.all([a.world(), a.models(), a.load("data/support.json")]);
world.support = support;
const root = document.getElementById("which");
const part = (name) => root.querySelector(`[data-part="${name}"]`);
const [form, said, tools, note, plot, query] = ["ask", "answer", "tools", "note", "plot", "sql"].map(part);
const table = root.querySelector("table");

const UP_TO = [1, 2, 4, 8], COUNTS = [1, 2, 3, 4, 6, 8], KINDS = ["all", "consumer", "workstation", "datacenter", "unified"];
const least = (key) => (x, y) => (x[key] ?? Infinity) - (y[key] ?? Infinity), greatest = (key) => (x, y) => (y[key] ?? -Infinity) - (x[key] ?? -Infinity);
const ORDERS = { price: ["cheapest first", least("price")], speed: ["fastest first", greatest("speed")], room: ["most room first", greatest("free")], power: ["least power first", least("watts")], newest: ["newest first", (x, y) => (y.date ?? "").localeCompare(x.date ?? "")] };
const CACHES = [["", "16 bits"], ["q8_0", "8 bits (llama.cpp)"], ["fp8", "8 bits (vLLM, SGLang)"]];
const first = ask.firstModel(models);
const FORMATS = ["gguf-q4_k_m", "gguf-mxfp4", "awq-int4", "bf16"]; // the first that the model has

// ---- the address
const asked = new URLSearchParams(location.search);
const KEYS = ["model", "dtype", "context", "users", "cache", "up_to", "kind", "system", "used", "sort"];
const refused = a.foreign(asked, KEYS);
const state = { model: a.listed(asked.get("model") ?? first, models.id) ?? asked.get("model"), dtype: asked.get("dtype") ?? "", context: 8192, users: 1, cache: "", up_to: 2, kind: "all", system: a.memory.system(), used: "", sort: "price" };
const whole = (key, most) => {
  const text = asked.get(key), n = text === null ? null : a.number(text);
  if (text === null) return;
  if (n != null && Number.isInteger(n) && n >= 1 && n <= most) state[key] = n;
  else refused.push(`${key}=${text}`);
};
const one = (key, list) => {
  const text = asked.get(key);
  if (text === null) return;
  const found = a.listed(text, list);
  if (found === null) refused.push(`${key}=${text}`);
  else state[key] = found;
};
whole("context", 1e8);
whole("users", 1e6);
one("cache", CACHES.map(([id]) => id));
one("up_to", UP_TO.map(String));
one("kind", KINDS);
one("system", r.SYSTEMS.map(([id]) => id));
const used = a.decimal(asked.get("used") ?? "");
if (used && a.freeBytes(used) === null) refused.push(`used=${used}`);
else state.used = used;
one("sort", Object.keys(ORDERS));
state.up_to = +state.up_to;
if (asked.has("dtype") && !r.shared.dtype.some((d) => d.dtype_id === state.dtype)) { refused.push(`dtype=${state.dtype}`); state.dtype = ""; }

// ---- the fields
const numbered = (key, name) => ask.numberField(key, name, state[key], (value) => change(key, value));
const chosen = (key, name, options) => a.select(key, name, options, state[key], (value) => change(key, key === "up_to" ? +value : value));
const format = a.select("dtype", "Format", [["", ""]], "", (value) => change("dtype", value));
form.append(
  ask.modelField(models, state.model, (value) => change("model", value)), format, numbered("context", "Context, tokens"), numbered("users", "Users at once"), chosen("cache", "Cache in", CACHES),
  chosen("up_to", "Cards together", UP_TO.map((n) => [n, n === 1 ? "one" : `up to ${n}`])), chosen("kind", "Cards", KINDS.map((k) => [k, k === "datacenter" ? "data centre" : k === "unified" ? "unified memory" : k])), chosen("system", "System", r.SYSTEMS), takenBox(), chosen("sort", "Order", Object.entries(ORDERS).map(([id, [name]]) => [id, name])));
form.addEventListener("submit", (event) => event.preventDefault());
// What a desktop takes nobody can say for others: it is typed, and taken off every card.
function takenBox() {
  const box = a.decimalInput({ name: "used", value: state.used });
  box.addEventListener("input", () => { const used = a.decimal(box.value); if (used === "" || a.freeBytes(used) !== null) change("used", used); });
  return a.h("label", { "data-part": "taken", hidden: true }, a.h("span", {}, "The desktop takes, GiB"), box);
}
const given = (g) => (state.system !== "desktop" ? r.under(state.system, g) : state.used === "" ? null : Math.max(0, r.under("linux", g) - a.freeBytes(state.used)));
function change(key, value) {
  if (state[key] === value) return;
  if (key === "system") a.memory.set("system", value);
  if (key === "system" && value !== "desktop") state.used = form.elements.used.value = "";
  if (key === "model") state.dtype = "";
  state[key] = value;
  note.hidden = true;
  draw();
}

// ---- the answer
let current = [];
const gib = (bytes) => a.gib(bytes / 1024);
const dollars = (n) => `${n.toLocaleString("en")} USD`;
const name = (dtype) => (dtype.startsWith("gguf-") ? `${dtype.slice(5).toUpperCase()} (GGUF)` : dtype);
// Of every card the fewest that hold it, with what is known of them.
function rowsOf(own, wanted, held) {
  const byCount = COUNTS.filter((n) => n <= state.up_to).map((gpu_count) => r.ask(own, { ...wanted, gpu_count })).filter((row) => row?.total_bytes != null);
  return world.gpus.filter((g) => state.kind === "all" || g.segment === state.kind).flatMap((g) => {
    const bytes = given(g), row = byCount.find((each) => r.holds(each, bytes) && !r.refusal(world, each, held, g));
    if (!row) return [];
    const facts = r.card(g.id), n = row.gpu_count, { decode } = r.speed(own, row, g.id);
    return [{ g, n, row, free: n * (bytes - row.total_bytes), speed: decode, price: facts?.msrp_usd == null ? null : n * facts.msrp_usd, watts: facts?.tdp_w == null ? null : n * facts.tdp_w, date: facts?.release_date ?? null }];
  });
}
const cardName = ({ g, n }) => `${n > 1 ? `${n} × ` : ""}${g.short}`;
let turn = 0;
async function draw() {
  const mine = ++turn, number = models.id.indexOf(state.model);
  const own = number >= 0 && models.reason.of[number] === null && !models.pipelines?.includes(number) ? await r.ofModel(models.paths[number] ?? state.model) : null;
  if (mine !== turn) return;
  const known = own ? r.shared.dtype.filter((d) => own.weight?.some((w) => w.dtype_id === d.dtype_id && w.weights_bytes != null)).map((d) => d.dtype_id) : [];
  if (own && !known.includes(state.dtype)) {
    if (state.dtype) told([`dtype=${state.dtype}`]);
    const native = `gguf-${models.format.values[models.format.of[number]]}`; // what is published in these few bits is not packed again
    state.dtype = [native, ...FORMATS].find((d) => known.includes(d)) ?? known[0] ?? "";
  }
  const box = format.querySelector("select");
  box.replaceChildren(...known.map((id) => a.h("option", { value: id }, name(id))));
  box.value = state.dtype;
  remember();
  const say = (...text) => { said.replaceChildren(...text); };
  part("found").hidden = true;
  tools.hidden = true;
  query.textContent = "";
  if (!own) return say(number < 0 ? `There is no model of the name ${a.shown(state.model)} here.` : models.pipelines?.includes(number) ? "This makes pictures or films: its page says which cards hold it." : `Unknown: ${a.shown(models.reason.values[models.reason.of[number]] ?? "nothing is published")}.`);
  const wanted = { model_id: state.model, phase_id: "inference", dtype_id: state.dtype, context_tokens: state.context, sequences: state.users, ...(state.cache && { kv_dtype_id: state.cache }) };
  part("taken").hidden = state.system !== "desktop";
  if (state.system === "desktop" && state.used === "") return say("What a desktop takes of a card is not known here: type it, as nvidia-smi or the task manager tells it.");
  const alone = r.ask(own, { ...wanted, gpu_count: 1 }), held = a.heldOf(models, number);
  if (alone?.total_bytes == null) return say(`Unknown: ${plain(alone?.unknown_reason ?? "nothing is known")}.`);
  current = rowsOf(own, wanted, held).sort(ORDERS[state.sort][1]);
  const page = a.h("a", { href: a.address(`models/${models.paths[number] ?? models.id[number]}/`) }, a.shown(state.model.split("/").at(-1)));
  const needs = `in ${name(state.dtype)} with ${a.tokens(state.context)} tokens${state.users > 1 ? ` for each of ${state.users.toLocaleString("en")} users` : ""} takes ${gib(alone.total_bytes)} GiB. `;
  const priced = current.filter((x) => x.price != null).sort(ORDERS.price[1]), single = current.filter((x) => x.n === 1);
  const quick = [...single].sort(ORDERS.speed[1]).find((x) => x.speed != null && x.price != null);
  const sold = ({ price, free, speed }) => ` (${dollars(price)}, ${gib(free)} GiB free${speed == null ? "" : `, at most ${r.rate(speed)} tokens/s`})`;
  const cheap = [priced[0], ...(priced[0]?.n > 1 ? [priced.find((x) => x.n === 1)] : [])].filter(Boolean);
  if (!current.length) say(page, ` ${needs}`, a.h("b", {}, `No card of these holds it${state.up_to > 1 ? `, nor ${state.up_to} of one kind` : " alone"}.`), " More cards together, a narrower format or a shorter context may.");
  else say(page, ` ${needs}${single.length ? `${single.length} of ${world.gpus.length} cards hold it alone. ` : "No card holds it alone. "}`,
    ...(cheap.length ? ["Cheapest at list price: ", ...cheap.flatMap((x, i) => [i ? ", alone " : "", a.h("b", {}, cardName(x)), sold(x)]), ". "] : []),
    ...(quick && quick !== cheap.at(-1) ? ["Fastest that has a list price: ", a.h("b", {}, cardName(quick)), sold(quick), "."] : []));
  query.textContent = `SELECT gpu.gpu_id, msrp_usd, verdict, headroom_bytes, tdp_w\nFROM gpu, fits_on(gpu.gpu_id, '${state.model.replaceAll("'", "''")}', dtype_id := '${state.dtype}', context_tokens := ${state.context}, sequences := ${state.users}${state.cache ? `, kv_dtype_id := '${state.cache}'` : ""})\nWHERE verdict = 'fits' ORDER BY msrp_usd;`;
  if (!current.length) return;
  part("found").hidden = tools.hidden = false;
  drawTable();
  drawPlot();
}
const rules = (r.shared.words ?? []).map(([pattern, text]) => [new RegExp(pattern, "g"), text]);
const plain = (reason) => rules.reduce((text, [pattern, to]) => text.replace(pattern, to), reason);
const td = (kind, text, title) => a.h("td", { class: kind, title: title ?? false }, text);
const shown = (value, text) => (value == null ? td("n x", "–", "not known") : td("n", text(value)));
function drawTable() {
  table.tBodies[0].replaceChildren(...current.map((x) => a.h("tr", {},
    a.h("th", { scope: "row" }, a.h("a", { href: a.address(`gpus/${x.g.slug}/`) }, cardName(x))),
    shown(x.price, (n) => n.toLocaleString("en")), td("n", gib(x.free)), shown(x.speed, (n) => `≤ ${r.rate(n)}`), shown(x.watts, (n) => n.toLocaleString("en")), td("n", x.date?.slice(0, 4) ?? "–"))));
}
// Price against room, both by powers; what no other beats in both is named.
const WIDE = 640, HIGH = 300, LEFT = 52, RIGHT = 16, TOP = 14, LOW = 40;
const svg = (kind, attributes, ...inner) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inner);
  return element;
};
function drawPlot() {
  const points = current.filter((x) => x.price != null && x.free > 0).sort((x, y) => x.price - y.price || y.free - x.free);
  plot.hidden = points.length < 3;
  if (plot.hidden) return;
  const axis = (values, low, high) => {
    const [from, to] = [Math.log(Math.min(...values) / 1.15), Math.log(Math.max(...values) * 1.15)];
    return (value) => low + ((Math.log(value) - from) / (to - from)) * (high - low);
  };
  const x = axis(points.map((p) => p.price), LEFT, WIDE - RIGHT), y = axis(points.map((p) => p.free), HIGH - LOW, TOP);
  const ticks = (values, steps) => steps.filter((v) => v >= Math.min(...values) / 1.15 && v <= Math.max(...values) * 1.15);
  const marks = [];
  for (const v of ticks(points.map((p) => p.price), [100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000]))
    marks.push(svg("text", { x: x(v), y: HIGH - LOW + 16, "text-anchor": "middle" }, v.toLocaleString("en")));
  for (const v of ticks(points.map((p) => p.free / 2 ** 30), [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500]))
    marks.push(svg("path", { class: "card", d: `M${LEFT} ${y(v * 2 ** 30).toFixed(1)}H${WIDE - RIGHT}` }), svg("text", { x: LEFT - 6, y: y(v * 2 ** 30) + 4, "text-anchor": "end" }, String(v)));
  let most = -Infinity, last = -Infinity;
  const names = [];
  for (const p of points) {
    const best = p.free > most;
    if (best) most = p.free;
    marks.push(svg("circle", { class: `point ${best ? "p1" : "p0"}`, cx: x(p.price).toFixed(1), cy: y(p.free).toFixed(1), r: best ? 4.5 : 3.5 }, svg("title", {}, `${cardName(p)}: ${dollars(p.price)}, ${gib(p.free)} GiB free`)));
    if (best && y(p.free) < HIGH - LOW && Math.abs(y(p.free) - last) > 12) {
      const isRight = x(p.price) > WIDE - 150;
      names.push(svg("text", { class: "soft", x: x(p.price) + (isRight ? -8 : 8), y: y(p.free) + 4, "text-anchor": isRight ? "end" : "start" }, cardName(p)));
      last = y(p.free);
    }
  }
  marks.push(svg("path", { class: "axis", d: `M${LEFT} ${TOP}V${HIGH - LOW}H${WIDE - RIGHT}` }), svg("text", { class: "soft", x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 6, "text-anchor": "middle" }, "list price, USD"), svg("text", { class: "soft", x: LEFT + 4, y: TOP + 2 }, "GiB free"), ...names);
  plot.querySelector("svg").replaceWith(svg("svg", { class: "plot", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `List price against free memory of ${points.length} choices; the table below has the numbers` }, ...marks));
}
function told(list) {
  note.textContent = a.refused(list);
  note.hidden = !list.length;
}
function remember() {
  const address = new URLSearchParams({ model: state.model });
  const usual = { context: 8192, users: 1, cache: "", up_to: 2, kind: "all", system: a.memory.unsaidSystem(), used: "", sort: "price" };
  if (state.dtype) address.set("dtype", state.dtype);
  for (const [key, value] of Object.entries(usual)) if (state[key] !== value) address.set(key, state[key]);
  history.replaceState(null, "", `?${address}`);
}
tools.append(take.copyLink(), take.button("CSV", () => take.save(`which-card-${state.model.split("/").at(-1)}-${state.dtype}-${state.context}`, [
  ["gpu_id", "cards", "list_price_usd", "free_bytes", "total_bytes_each", "tokens_per_second_most", "watts", "release_date"],
  ...current.map((x) => [x.g.id, x.n, x.price, Math.round(x.free), x.row.total_bytes, x.speed == null ? null : x.speed.toFixed(1), x.watts, x.date])])));
told(refused);
form.hidden = false;
await draw();
performance.mark("interactive");
