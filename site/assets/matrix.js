// All models × cards for one scenario. A virtual table over one binary slice for each format of a phase.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
const names = import(`./find.js${new URL(import.meta.url).search}`);
const { placed, waysIn, judgeWays, waysTold } = await import(`./placed.js${new URL(import.meta.url).search}`);
const UNKNOWN = Infinity;
const wrap = document.getElementById("matrix");
const form = document.getElementById("ask");
const count = document.getElementById("count");
const note = document.getElementById("note");
const nothing = document.getElementById("nothing");
const paper = document.getElementById("on-paper");
const query = document.querySelector("#as-sql code");
const base = a.address("");

// ---- state: what the address says, then what is remembered, then the opening scenario
// (Material takes `q` for its own search)
const KEYS = ["gpu", "phase", "dtype", "context", "sequences", "optimizer", "checkpointing", "find", "cards", "task", "licence", "family", "size", "only", "sort", "pins", "figure", "engine", "system"];
const asked = new URLSearchParams(location.search);
// the tables, the calculator and the JSON name some columns longer
for (const key of [...asked.keys()]) {
  const short = key.replace(/_(?:id|tokens)$/, "");
  if (short !== key && KEYS.includes(short) && !asked.has(short)) { asked.set(short, asked.get(key)); asked.delete(key); }
}
const slices = new Map();
const slice = (name) => slices.get(name) ?? slices.set(name, a.load(`data/slices/${name}.bin`, "packed")).get(name);
if (!location.search) slice(wrap.dataset.opening); // what most people come for is under way before anything else is known
const [world, models, spoken] = await Promise.all([a.world(), a.models(), a.load("data/words.json")]);
const defaults = {
  ...world.opening.inference, phase: "inference", gpu: "", find: "", cards: "common", task: "", licence: "", family: "", size: "", only: "", sort: "downloads", pins: "", figure: "full", system: a.SYSTEMS[0][0],
};
const state = { ...defaults, gpu: a.memory.get("gpu") ?? "", cards: a.memory.get("cards") ?? "common", pins: a.memory.get("pins") ?? "", figure: a.memory.get("figure") ?? "full", system: a.memory.system() };
const pins = () => state.pins.split(",").filter(Boolean);
const opening = () => world.opening[state.phase === "inference" ? "inference" : "training"];

const N = models.id.length;
const ROWS = models.row.reduce((most, row) => Math.max(most, row), 0) + 1; // models with the same numbers share one
const placeOf = (model) => models.row[model] * world.width;
const lower = models.id.map((id) => id.toLowerCase());
const pick = (column) => (i) => (models[column].of[i] === null ? "" : models[column].values[models[column].of[i]]);
const task = pick("task"), licence = pick("licence"), family = pick("family"), reason = pick("reason");
const held = (i) => a.heldOf(models, i);
const path = (i) => models.paths[i] ?? models.id[i];
const SIZES = [["", "any size"], ["0-1", "under 1B"], ["1-4", "1B to 4B"], ["4-10", "4B to 10B"], ["10-20", "10B to 20B"], ["20-40", "20B to 40B"], ["40-100", "40B to 100B"], ["100-1e9", "over 100B"]];
const ORDER = [["name", "Model", "up"], ["size", "Size", "down"], ["need", "Needs, GiB", "up"], ["downloads", "Downloads", "down"]];
const ONLY = [["", "all"], ["fits", "fits on one of mine"], ["several", "needs several of mine"], ["open", "not gated"], ["moe", "mixture of experts"]];

// ---- what the address asks for: what is not here is told, and what is remembered or usual stands in its place
const first = (pairs) => pairs.flatMap((o) => (o.group ? o.options : [o])).map(([id]) => id);
const CHOICES = {
  gpu: world.gpus.map((g) => g.id), phase: first(world.phases), cards: first(a.sets(world)), task: models.task.values, licence: models.licence.values, family: models.family.values,
  size: first(SIZES), only: first(ONLY), figure: first(a.FIGURES), system: first(a.COUNTED_SYSTEMS), sort: ORDER.flatMap(([key]) => ["", " up", " down"].map((way) => key + way)),
};
let refused = a.foreign(asked, KEYS);
const refuse = (key) => refused.push(`${key}=${asked.get(key)}`);
for (const key of KEYS) {
  const value = asked.get(key);
  if (value === null) continue;
  if (value === "") state[key] = defaults[key];
  else if (key === "pins") {
    const wanted = value.split(",").map((id) => a.listed(id, CHOICES.gpu) ?? id);
    state.pins = wanted.filter((id) => CHOICES.gpu.includes(id)).join(",");
    if (state.pins !== wanted.join(",")) refuse(key);
  } else if (CHOICES[key]) {
    const found = a.listed(value, CHOICES[key]);
    if (found === null) refuse(key);
    else state[key] = found;
  } else if (typeof defaults[key] === "number") state[key] = a.number(value) ?? defaults[key];
  else state[key] = value;
}
if (!CHOICES.gpu.includes(state.gpu)) state.gpu = ""; // a card that was remembered, and is listed no more
if (!CHOICES.cards.includes(state.cards)) state.cards = defaults.cards;
if (!first(a.FIGURES).includes(state.figure)) state.figure = defaults.figure;
if (!asked.get("context")) state.context = opening().context ?? state.context;

// What every card gives under the system that is chosen: each verdict is of that.
for (const g of world.gpus) g.alone = g.capacity;
function use() {
  for (const g of world.gpus) g.capacity = state.system === defaults.system ? g.alone : a.under(world, state.system, g) / 1024;
}
use();

// ---- the scenario: of what the chosen phase is published for, the nearest to what was asked
let scenario, totals;
const ofPhase = () => world.scenarios.filter((s) => s.phase === state.phase && s.common);
function settle() {
  let left = ofPhase();
  if (!left.length) { state.phase = "inference"; left = ofPhase(); }
  if (!left.some((s) => s.dtype === state.dtype)) state.dtype = a.ofFormat(world, left, state.dtype, world.gpus.find((g) => g.id === state.gpu))?.dtype ?? state.dtype;
  for (const key of ["dtype", "context", "sequences", "optimizer", "checkpointing"]) {
    const values = [...new Set(left.map((s) => s[key]))];
    const nearest = typeof values[0] === "number"
      ? [...values].sort((x, y) => Math.abs(Math.log(x / (state[key] || 1))) - Math.abs(Math.log(y / (state[key] || 1))))[0]
      : [opening()[key], "bf16", "nf4"].find((v) => values.includes(v)) ?? values[0];
    if (!values.includes(state[key])) state[key] = nearest;
    left = left.filter((s) => s[key] === state[key]);
  }
  scenario = left[0];
}

let made = null; // pipelines, which no scenario of tokens knows
const waysOf = (i) => (totals[placeOf(i)] === UNKNOWN ? waysIn(made?.get(i), scenario) : null);
const isUnknown = (i) => totals[placeOf(i)] === UNKNOWN && !waysOf(i);
const judged = (i, g) => { const ways = waysOf(i); return ways ? judgeWays(world, ways, g) : a.judgeOn(world, scenario, held(i), g, totals, placeOf(i)); };
async function fetchSlice() {
  const wanted = scenario;
  const loaded = await slice(wanted.slice);
  if (wanted.phase === "inference") made ??= await placed(world, models);
  const size = ROWS * world.width;
  if (wanted === scenario) totals = new Float32Array(loaded, 4 * wanted.place * size, size);
}

// The scenario that the address asks for, as far as there is one.
function ask() {
  const wanted = asked.get("dtype"), engine = asked.get("engine")?.toLowerCase();
  if (wanted) state.dtype = a.listed(wanted, ofPhase().flatMap((s) => [s.dtype, s.dtypeId])) ?? state.dtype;
  const own = ofPhase().filter((s) => s.engine === engine);
  const same = own.find((s) => [s.dtype, s.dtypeId].includes(state.dtype));
  if (own.length && (same || !wanted)) state.dtype = (same ?? own[0]).dtype;
  settle();
  for (const key of ["phase", "dtype", "engine", "context", "sequences", "optimizer", "checkpointing"]) {
    const value = asked.get(key);
    if (!value || refused.some((said) => said.startsWith(`${key}=`))) continue;
    const given = key === "engine" ? [scenario.engine] : key === "dtype" ? [scenario.dtype, scenario.dtypeId] : [state[key]];
    const met = typeof defaults[key] === "number" ? a.number(value) === state[key] : a.listed(value, given) !== null;
    if (!met || (key !== "engine" && scenario[key] == null)) refuse(key);
  }
}

// ---- controls
const choose = (key, label, options, change) => a.select(key, label, options, state[key], (value) => {
  state[key] = typeof defaults[key] === "number" ? +value : value;
  change();
});
// "bf16: bfloat16", but not "gguf-q4_k_m: GGUF Q4_K_M", which says it twice
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
const said = (format, name) => (!name || bare(format) === bare(name) ? format : `${format}: ${name}`);
function controls() {
  const dtypeName = Object.fromEntries(world.dtypes);
  const sub = ofPhase();
  const values = (key) => [...new Set(sub.map((s) => s[key]))].filter((v) => v !== null).sort((x, y) => (x > y ? 1 : -1));
  const training = state.phase !== "inference";
  const scenarioChanged = () => refresh({ slice: true, rebuild: true });
  const axis = (key, label, text = String) =>
    values(key).length > 1 ? [choose(key, label, values(key).map((v) => [v, text(v)]), scenarioChanged)] : [];
  const phases = a.h("fieldset", { class: "phases" }, a.h("legend", { class: "sr" }, "I want to"), ...world.phases.map(([id, name]) => {
    const radio = a.h("input", { type: "radio", name: "phase", value: id, checked: id === state.phase });
    radio.addEventListener("change", () => {
      const before = opening();
      state.phase = id;
      if (opening() !== before) state.context = opening().context; // 8k is a chat, but a long sample to train on
      refresh({ slice: true, rebuild: true });
    });
    return a.h("label", {}, radio, a.h("span", {}, name));
  }));
  const search = a.h("input", { type: "search", name: "find", placeholder: "Part of a model’s name", "aria-label": "Part of a model’s name", autocomplete: "off", spellcheck: "false" });
  search.value = state.find;
  search.addEventListener("input", () => { state.find = search.value; refresh({}); });
  const filtered = () => refresh({});
  const facet = (key, label, column) => {
    const n = new Map();
    for (const k of models[column].of) if (k !== null) n.set(k, (n.get(k) ?? 0) + 1);
    const options = [...n].sort((x, y) => y[1] - x[1]).map(([k, many]) => [models[column].values[k], `${a.shown(models[column].values[k])} (${many})`]);
    return choose(key, label, [["", "any"], ...options], filtered);
  };
  const more = a.h("details", { class: "more", open: ["task", "licence", "family", "size", "only"].some((k) => state[k]) || state.system !== defaults.system || form.querySelector("details.more")?.open },
    a.h("summary", {}, "More filters"),
    a.h("div", { class: "controls" }, choose("size", "Size", SIZES, filtered), facet("task", "Task", "task"), facet("family", "Family", "family"), facet("licence", "Licence", "licence"), choose("only", "Show", ONLY, filtered), choose("system", "System", a.COUNTED_SYSTEMS, () => { a.memory.set("system", state.system); use(); refresh({ rebuild: true }); }),
      choose("figure", "Figure in a cell", a.FIGURES, () => { a.memory.set("figure", state.figure); refresh({ rebuild: true }); })));
  const myCard = a.select("gpu", "My card", a.gpuOptions(world), state.gpu, (value) => {
    state.gpu = value;
    a.memory.set("gpu", value);
    refresh({ rebuild: true });
  });
  myCard.className = "my-card";
  const held = form.contains(document.activeElement) ? document.activeElement.name : null;
  form.replaceChildren(
    a.h("div", { class: "controls first" }, myCard, phases),
    a.h("div", { class: "controls last" }, a.h("label", { class: "search" }, search),
      choose("dtype", "Format", [...new Map(sub.map((s) => [s.dtype, s.dtypeId]))].map(([d, id]) => [d, said(d, dtypeName[id])]), scenarioChanged),
      ...axis("context", "Context", (v) => `${a.tokens(v)} tokens`),
      ...axis("sequences", training ? "Micro-batch" : "Users at once"),
      ...axis("optimizer", "Optimizer", (v) => world.optimizers[v] ?? v), ...axis("checkpointing", "Checkpointing", (v) => world.kept[v] ?? v),
      choose("cards", "Cards", a.sets(world), () => { a.memory.set("cards", state.cards); refresh({ rebuild: true }); }), more));
  form.hidden = false;
  if (held) (form.querySelector(`[name="${held}"]:checked`) ?? form.querySelector(`[name="${held}"]`))?.focus();
}
form.addEventListener("change", () => { refused = []; }, true); // before what is chosen takes effect
form.addEventListener("submit", (event) => event.preventDefault());

// ---- which models, in which order
let view = new Uint32Array(0), folded;
const finding = await names;
function filter() {
  const isNamed = state.find.trim() ? finding.filter((folded ??= models.id.map(finding.fold)), state.find, spoken) : () => true;
  const [least, most] = (state.size || "0-1e9").split("-").map((v) => v * 1e9);
  const own = world.gpus.find((g) => g.id === state.gpu);
  const tally = { one: 0, several: 0, unknown: 0, made: 0, otherwise: 0 };
  const out = [];
  for (let i = 0; i < N; i++) {
    if (!isNamed(i)) continue;
    if (state.size && !(models.size[i] >= least && models.size[i] < most)) continue;
    if ((state.task && task(i) !== state.task) || (state.family && family(i) !== state.family) || (state.licence && licence(i) !== state.licence)) continue;
    if (state.only === "open" && models.gated.has(i)) continue;
    if (state.only === "moe" && !models.moe.has(i)) continue;
    if (own) {
      const { gpus } = judged(i, own);
      if (state.only === "fits" && gpus !== 1) continue;
      if (state.only === "several" && !(gpus > 1)) continue;
      tally.one += gpus === 1;
      tally.several += gpus > 1;
    }
    tally.unknown += isUnknown(i);
    tally.made += Boolean(waysOf(i));
    tally.otherwise += Boolean(made?.has(i) && isUnknown(i));
    out.push(i);
  }
  view = Uint32Array.from(sort(out));
  const figure = (n) => n.toLocaleString("en");
  count.textContent = `${figure(out.length)} ${out.length === 1 ? "model" : "models"}` +
    (own ? `; ${figure(tally.one)} on one ${own.short}, ${figure(tally.several)} on several` : "");
  nothing.hidden = out.length > 0;
  const needsCard = !own && ["fits", "several"].includes(state.only);
  note.textContent = (needsCard ? `; choose your card to see what ${state.only === "fits" ? "fits on one" : "needs several"}: until then all are shown` : "") + (tally.unknown ? `; ${figure(tally.unknown)} unknown here, listed last` : "") + (tally.made ? "; pipelines for a picture of 1,024 × 1,024 pixels or 81 frames of 832 × 480, placed as fits" : "") + (tally.otherwise ? "; makers of pictures and videos are told in bf16 (Transformers), fp8 and nf4" : "") + (refused.length ? `. ${a.refused(refused)}` : "");
}
function sort(out) {
  const [key, direction] = state.sort.split(" ");
  const unknown = isUnknown;
  if (key === "downloads") {
    if (direction === "up") out.reverse();
    const known = [], last = []; // what is not known comes last, and is there
    for (const i of out) (unknown(i) ? last : known).push(i);
    return known.concat(last);
  }
  const sign = direction === "down" ? -1 : 1;
  const last = (v) => (v === null || v === UNKNOWN ? Infinity : v);
  if (key === "name") return out.sort((x, y) => sign * (lower[x] < lower[y] ? -1 : lower[x] > lower[y] ? 1 : 0));
  const value = key === "size" ? (i) => last(models.size[i]) : (i) => last(waysOf(i)?.[0].totals[0] ?? totals[placeOf(i)]);
  return out.sort((x, y) => {
    const u = value(x), v = value(y);
    if (u === v) return x - y;
    return u === Infinity ? 1 : v === Infinity ? -1 : sign * (u - v);
  });
}

// ---- the table: a window of rows that are reused while one scrolls
let list = [], table, body, above, below, pool = [], rowHeight = 28, headHeight = 0;
// Of many cards only those in sight have cells, between two spacers; the cells are reused while one scrolls sideways.
const CARD = 96, SPARE = 4;
let part = [], partFrom = 0, spacers = [], onPaper = false;
function partSize() {
  if (onPaper) return Math.min(list.length, PAPER_CARDS);
  const inSight = Math.ceil(Math.max(wrap.clientWidth, 300) / CARD) + 2 * SPARE;
  return list.length > inSight + 8 ? inSight : list.length;
}
function takePart() {
  const size = partSize();
  const from = onPaper || size === list.length ? 0 : Math.max(0, Math.min(Math.floor(wrap.scrollLeft / CARD) - SPARE, list.length - size));
  if (part.length === size && Math.abs(from - partFrom) < SPARE - 1 && part[0] === list[partFrom]) return false;
  [part, partFrom] = [list.slice(from, from + size), from];
  return true;
}
function headPart() {
  const head = table.tHead.rows[0];
  while (head.cells.length > ORDER.length) head.lastChild.remove();
  spacers = [partFrom, list.length - partFrom - part.length].map((n) => {
    const cell = a.h("td", { class: "spacer", "aria-hidden": "true", hidden: !n });
    cell.style.minWidth = cell.style.width = `${n * CARD}px`;
    return cell;
  });
  head.append(spacers[0], ...part.map((g, j) => {
    const cell = a.gpuHead(g, state.gpu, base);
    cell.setAttribute("aria-colindex", ORDER.length + partFrom + j + 1);
    const pinned = pins().includes(g.id);
    const pin = a.h("button", { type: "button", class: "pin", "aria-pressed": String(pinned), "aria-label": `Pin ${g.short}`, title: pinned ? "Pinned to the front" : "Pin to the front" }, pinned ? "●" : "○");
    pin.addEventListener("click", () => {
      state.pins = (pinned ? pins().filter((id) => id !== g.id) : [...pins(), g.id]).join(",");
      a.memory.set("pins", state.pins);
      wrap.scrollLeft = 0;
      refresh({ rebuild: true }).then(() => table.tHead.querySelector(`[aria-label="Pin ${CSS.escape(g.short)}"]`)?.focus());
    });
    if (g.id !== state.gpu) cell.append(pin); // the own card is first already
    return cell;
  }), spacers[1]);
}
function build() {
  list = a.cards(world, state.cards, state.gpu, pins());
  pool = [];
  table = a.h("table", { class: "mx virtual", "aria-colcount": String(list.length + 4) });
  table.append(a.h("caption", { class: "sr" }, "Models by card"));
  const head = table.createTHead().insertRow();
  for (const [key, text, first] of ORDER) {
    const [sorted, direction = first] = state.sort.split(" ");
    const button = a.h("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      const [current, now = first] = state.sort.split(" ");
      const next = current === key ? (now === "up" ? "down" : "up") : first;
      state.sort = key === "downloads" && next === "down" ? "downloads" : `${key} ${next}`;
      refresh({ rebuild: true }).then(() => table.tHead.querySelectorAll("button")[ORDER.findIndex((o) => o[0] === key)].focus());
    });
    head.append(a.h("th", { scope: "col", class: key === "name" ? "" : "n", "aria-sort": sorted === key ? (direction === "up" ? "ascending" : "descending") : false }, button));
  }
  head.setAttribute("aria-rowindex", "1");
  const spacer = () => a.h("tbody", { "aria-hidden": "true" }, a.h("tr", {}, a.h("td", { colSpan: list.length + 4 })));
  [above, body, below] = [spacer(), a.h("tbody"), spacer()];
  table.append(above, body, below);
  part = [];
  takePart();
  table.classList.toggle("many", part.length < list.length);
  headPart();
  wrap.replaceChildren(table);
  headHeight = table.tHead.offsetHeight;
  table.takeRows = takeRows;
}
function grow() {
  const link = a.h("a");
  const row = a.h("tr", {}, a.h("th", { scope: "row" }, link));
  const facts = [0, 1, 2].map(() => row.appendChild(a.h("td", { class: "n" }, "")));
  const gap = row.appendChild(a.h("td", { class: "spacer", "aria-hidden": "true" }));
  const cells = part.map((g) => row.appendChild(a.h("td", { class: g.id === state.gpu ? "v mine" : "v" }, "")));
  body.append(row);
  pool.push({ row, link, facts, gap, cells, keys: new Array(part.length).fill(null), model: -1, totals: null, merged: false });
}
function draw() {
  if (takePart()) {
    headPart();
    for (const p of pool) p.model = -1;
  }
  const n = onPaper ? Math.min(view.length, PAPER_ROWS) : view.length;
  const visible = onPaper ? n : Math.ceil(innerHeight / rowHeight) + 8;
  const from = onPaper ? 0 : Math.max(0, Math.min(Math.floor((wrap.scrollTop - headHeight) / rowHeight) - 4, n - visible));
  const to = Math.min(n, from + visible);
  while (pool.length < to - from) grow();
  pool.forEach((p, k) => {
    p.row.hidden = from + k >= to;
    if (!p.row.hidden) fill(p, view[from + k], from + k);
  });
  above.hidden = !from;
  below.hidden = to === n;
  above.rows[0].cells[0].style.height = `${from * rowHeight}px`;
  below.rows[0].cells[0].style.height = `${(n - to) * rowHeight}px`;
}
function fill(p, model, position) {
  p.row.setAttribute("aria-rowindex", position + 2);
  p.gap.hidden = !partFrom;
  if (p.model === model && p.totals === totals) return;
  Object.assign(p, { model, totals });
  const at = placeOf(model), ways = waysOf(model);
  const unknown = isUnknown(model);
  p.link.textContent = a.shown(models.id[model]);
  p.link.title = p.link.textContent;
  p.link.href = `${base}models/${path(model)}/${carried()}`;
  p.facts[0].textContent = a.short(models.size[model]);
  const shorter = unknown || ways ? null : a.shorterContext(world, scenario, models.context[model]);
  p.facts[1].replaceChildren(unknown ? "–" : a.gib(ways ? ways[0].totals[0] : totals[at]), ...(shorter ? [a.h("small", { title: `All that it reads: ${models.context[model].toLocaleString("en")} tokens` }, ` at ${a.tokens(shorter)}`)] : []));
  p.facts[2].textContent = a.short(models.downloads[model]);
  if (unknown !== p.merged && part.length) {
    p.merged = unknown;
    p.cells[0].colSpan = unknown ? part.length : 1;
    p.cells.forEach((c, j) => { c.hidden = unknown && j > 0; });
    p.keys.fill(null);
  }
  if (unknown) {
    if (part.length) {
      p.cells[0].className = "v-unknown";
      p.cells[0].textContent = `unknown: ${a.shown(a.reasonText(world, totals, at, scenario.context, models.context[model], reason(model)))}`;
      p.cells[0].title = p.cells[0].textContent;
      p.keys[0] = null;
    }
    return;
  }
  part.forEach((g, j) => {
    const verdict = judged(model, g);
    const text = a.verdictText(verdict, state.figure, g.capacity);
    p.cells[j].title = ""; // told anew when it is pointed at
    if (p.keys[j] === text) return;
    p.keys[j] = text;
    p.cells[j].firstChild.data = text;
    p.cells[j].className = `v v-${verdict.verdict}${g.id === state.gpu ? " mine" : ""}`;
  });
}
// All that is listed, not only what is in sight: every model that the filters leave, on every card of the set.
function takeRows() {
  return [[...ORDER.map(([, text]) => text), ...list.map((g) => g.short)], ...Array.from(view, (model) => {
    const at = placeOf(model), facts = [models.id[model], a.short(models.size[model])];
    if (isUnknown(model)) return [...facts, "unknown", a.short(models.downloads[model]), ...list.map(() => "")];
    return [...facts, a.gib(waysOf(model)?.[0].totals[0] ?? totals[at]), a.short(models.downloads[model]), ...list.map((g) => a.verdictText(judged(model, g), state.figure, g.capacity))];
  })];
}
wrap.addEventListener("pointerover", ({ target }) => {
  const cell = target.closest?.("td.v");
  const p = cell && !cell.title && pool.find((each) => each.row === cell.parentNode);
  if (!p) return;
  const ways = waysOf(p.model), on = part[p.cells.indexOf(cell)];
  cell.title = ways ? waysTold(world, ways, on) : a.verdictTold(world, scenario, held(p.model), on, totals, placeOf(p.model), models.windowed.has(p.model));
});
wrap.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
addEventListener("resize", () => requestAnimationFrame(draw));
import(`./arrows.js${new URL(import.meta.url).search}`).then(({ arrows }) => arrows(wrap, (row, down) => {
  const position = row.ariaRowIndex - 2 + down; // the head is the first
  if (position < 0 || position >= view.length) return null;
  const top = headHeight + position * rowHeight;
  wrap.scrollTop = Math.min(Math.max(wrap.scrollTop, top + 3 * rowHeight - wrap.clientHeight), top - headHeight - rowHeight);
  draw();
  return body.querySelector(`tr[aria-rowindex="${position + 2}"]:not([hidden])`);
}, true));
// On paper there is nothing to scroll: the first rows and cards, and how many there are.
const PAPER_ROWS = 40, PAPER_CARDS = 14;
function print(is) {
  if (onPaper === is) return;
  if (is) Object.assign(before, { top: wrap.scrollTop, left: wrap.scrollLeft });
  onPaper = is;
  const of = (most, all, what) => (all > most ? [`${most} of ${all.toLocaleString("en")} ${what}`] : []);
  const left = [...of(PAPER_ROWS, view.length, "models"), ...of(PAPER_CARDS, list.length, "cards")];
  paper.textContent = is && left.length ? `. On paper: the first ${left.join(" and ")}` : "";
  if (list.length > PAPER_CARDS) build();
  draw();
  if (!is) [wrap.scrollTop, wrap.scrollLeft] = [before.top, before.left];
}
const before = { top: 0, left: 0 };
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
matchMedia("print").addEventListener("change", ({ matches }) => print(matches));

// ---- one way to change anything
async function refresh({ slice, rebuild }) {
  if (slice) {
    settle();
    controls();
    await fetchSlice();
  }
  filter();
  table?.setAttribute("aria-rowcount", view.length + 1);
  if (rebuild) {
    const { scrollLeft } = wrap;
    build();
    wrap.scrollLeft = scrollLeft;
    table.setAttribute("aria-rowcount", view.length + 1);
  }
  if (!rebuild) wrap.scrollTop = 0;
  draw();
  if (rebuild && body.rows[0]) {
    rowHeight = body.rows[0].getBoundingClientRect().height || rowHeight;
    draw();
  }
  clearTimeout(telling);
  telling = setTimeout(tell, 60); // not at every key: the browser takes its time to change an address
}
// A model's page opens with the card and the scenario that were chosen here.
const unsaid = () => ({ ...defaults, system: a.memory.unsaidSystem() }); // what an address need not say
const CARRIED = ["gpu", "phase", "dtype", "context", "sequences", "optimizer", "checkpointing", "cards", "figure", "system"];
function carried() {
  const isOwn = (key) => state[key] !== unsaid()[key] || (key === "context" && state.phase !== "inference"); // training begins elsewhere
  const given = CARRIED.filter((key) => state[key] != null && state[key] !== "" && isOwn(key)).map((key) => [key, state[key]]);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
let telling;
function tell() {
  const address = new URLSearchParams();
  for (const key of KEYS) if (key !== "engine" && state[key] != null && state[key] !== "" && state[key] !== unsaid()[key]) address.set(key, state[key]);
  history.replaceState(null, "", address.size ? `?${address}` : location.pathname);
  query.textContent = sql();
}
function sql() {
  const text = (value) => (typeof value === "number" ? value : `'${String(value).replaceAll("'", "''")}'`);
  const asked = { dtype_id: scenario.dtypeId, phase_id: scenario.phase, engine_id: scenario.engine, context_tokens: scenario.context, sequences: scenario.sequences, optimizer_id: scenario.optimizer, checkpointing: scenario.checkpointing };
  const where = Object.entries(asked).filter(([, value]) => value != null).map(([name, value]) => `${name} = ${text(value)}`);
  if (state.gpu) where.unshift(`gpu_id = ${text(state.gpu)}`);
  const system = state.system === defaults.system ? "" : "-- as the cards give under Linux: the rule for others is on the page of capacities\n";
  return `${system}SELECT model_id, gpu_id, verdict, gpu_count_needed, total_bytes\nFROM compatibility\nWHERE ${where.join("\n  AND ")}\nORDER BY model_id, gpu_id;`;
}
ask();
await refresh({ slice: true, rebuild: true });
performance.mark("interactive");
