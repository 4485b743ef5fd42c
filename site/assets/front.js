// The first screen: what a card runs, for a wish, and how long a context each format leaves. Everything that is chosen is in the address.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const box = document.getElementById("window");
const { Window, ORDERS, needAt } = await import(`./window.js${search}`);
const part = (name) => box.querySelector(`[data-part="${name}"]`);
const [form, said, table, more, note, chips, guess, tools, query] = ["ask", "answer", "table", "more", "note", "chips", "guess", "tools", "sql"].map(part);

const wishes = JSON.parse(box.dataset.wishes); // name, label, file, context
const EXAMPLE = box.dataset.card;
const CONTEXTS = [512, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144];
const MATRIX = ["phase", "dtype", "engine", "cards", "task", "licence", "family", "size", "only", "figure", "pins", "sequences", "optimizer", "checkpointing"];
const KEYS = ["count", "gpu", "want", "context", "sort", "find"];
const ROWS = 25, MISSES = 6;

// ---- the address; what was the front page's of old is the matrix's
const asked = new URLSearchParams(location.search);
for (const key of [...asked.keys()]) {
  const short = key.replace(/^gpu_count$/, "count").replace(/_(?:id|tokens)$/, "");
  if (short !== key && [...KEYS, ...MATRIX].includes(short) && !asked.has(short)) { asked.set(short, asked.get(key)); asked.delete(key); }
}
const isOld = MATRIX.some((key) => asked.has(key)) || /^(?:name|need)\b|\b(?:up|down)$/.test(asked.get("sort") ?? "");
if (isOld) location.replace(`${a.address("matrix/")}${location.search}`);

const files = new Map();
const file = (name) => files.get(name) ?? files.set(name, a.load(`data/window/${name}.json`)).get(name);
const windows = new Map();
file(wishes[0][2]); // it is on its way already
const [world] = await Promise.all([a.world(), file(wishes.find((w) => w[0] === asked.get("want"))?.[2] ?? wishes[0][2])]);
const cardOf = (id) => world.gpus.find((g) => g.id === id);

const start = { count: 1, gpu: "", want: wishes[0][0], context: null, sort: "current", find: "" };
const state = { ...start, gpu: cardOf(a.memory.get("gpu")) ? a.memory.get("gpu") : "" };
let refused = a.foreign(asked, [...KEYS, ...MATRIX]);
const contextOf = (want) => wishes.find((w) => w[0] === want)[3];
function read() {
  const one = (key, options) => {
    const value = asked.get(key);
    if (value === null || value === "") return;
    const found = typeof options[0] === "number" ? options.find((n) => n === a.number(value)) : a.listed(value, options);
    if (found == null) refused.push(`${key}=${value}`);
    else state[key] = found;
  };
  one("gpu", world.gpus.map((g) => g.id));
  one("want", wishes.map((w) => w[0]));
  one("count", world.counts.filter((n) => n <= 16));
  one("context", CONTEXTS);
  one("sort", Object.keys(ORDERS));
  state.find = asked.get("find") ?? "";
  state.context ??= contextOf(state.want);
}

// ---- the sentence
const options = {
  count: () => (current?.several?.counts ? [1, ...current.several.counts] : [...new Set([1, 2, 4, 8, state.count])]).map((n) => [n, n]),
  gpu: () => a.gpuOptions(world),
  want: () => wishes.map(([name, label]) => [name, label]),
  context: () => CONTEXTS.map((n) => [n, `at least ${a.tokens(n)} tokens`]),
};
function controls() {
  for (const [key, list] of Object.entries(options)) {
    const select = form.elements[key];
    const option = ([value, text]) => a.h("option", { value: String(value) }, text);
    if (select.disabled || key === "count") // the others offer the same for good
      select.replaceChildren(...list().map((o) => (o.group ? a.h("optgroup", { label: o.group }, ...o.options.map((each) => option([each[0], cardOf(each[0]).short]))) : option(o))));
    select.value = String(state[key]);
    select.disabled = false;
  }
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", ({ target }) => {
  if (target.name === "find") return;
  change(target.name, typeof start[target.name] === "number" || target.name === "context" ? +target.value : target.value);
});
function change(key, value) {
  if (key === "want" && state.context === contextOf(state.want)) state.context = contextOf(value);
  state[key] = value;
  if (key === "gpu") { a.memory.set("gpu", value); guess.hidden = true; }
  refused = [];
  shown = ROWS;
  return draw();
}

// ---- before a card is known: sizes, and Macs
for (const chip of chips.querySelectorAll("[data-gpu]"))
  chip.addEventListener("click", (event) => { event.preventDefault(); change("gpu", chip.dataset.gpu).then(() => form.elements.gpu.focus()); });
const macs = part("macs");
part("mac")?.addEventListener("click", (event) => {
  event.preventDefault();
  macs.hidden = !macs.hidden;
  event.currentTarget.setAttribute("aria-expanded", String(!macs.hidden));
});
async function guessCard() {
  const { renderer, named } = await import(`./guess.js${search}`);
  const cards = named(renderer(), world.gpus);
  if (!cards.length || state.gpu) return;
  const button = (g, text) => {
    const chip = a.h("button", { type: "button", class: "chip" }, text);
    chip.addEventListener("click", () => change("gpu", g.id));
    return chip;
  };
  if (cards.length === 1) {
    const [card] = cards;
    state.gpu = card.id; // not remembered: nobody said so
    await draw();
    const not = a.h("button", { type: "button", class: "chip" }, "Not yours?");
    not.addEventListener("click", () => change("gpu", ""));
    guess.replaceChildren(`Your browser draws with ${card.short}: taken from that, and told to nobody. `, not);
  } else guess.replaceChildren(`Your browser draws with ${a.shown(cards[0].short.replace(/\s*\b\d+ ?GB\b/, ""))}, which has `, ...cards.flatMap((g, i) => [i ? " or " : "", button(g, `${g.nominal} GB`)]), "?");
  guess.hidden = false;
}

// ---- the table
let current, result, shown = ROWS, missesShown = MISSES, isNamed = null;
const wishNow = () => current.data.wishes.find((w) => w.name === state.want);
const gpuNow = () => cardOf(state.gpu) ?? cardOf(EXAMPLE);
const formatOf = (c) => { const [phase, dtype] = current.data.columns[c]; return phase === "inference" ? short(dtype) : world.phases.find(([id]) => id === phase)?.[1] ?? phase; };
const short = (dtype) => (dtype.startsWith("gguf-") ? dtype.slice(5).toUpperCase() : dtype);
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const hardware = (n = state.count) => `${n > 1 ? `${n} × ` : ""}${gpuNow().short}`;
const link = (work, inner, place = "") => a.h("a", { href: `${a.address(`models/${current.data.paths[work] ?? current.data.id[work]}/`)}${carried()}${place}` }, inner);
const leaf = (work) => a.shown(current.data.id[work].split("/").at(-1));
const each = () => (state.count > 1 ? " on each" : "");
function carried() {
  const given = { ...(state.gpu && { gpu: state.gpu }), ...(wishNow().asked.length === 1 && { phase: current.data.columns[wishNow().asked[0]][0] }), ...(state.context !== contextOf(state.want) && { context: state.context }) };
  return Object.keys(given).length ? `?${new URLSearchParams(given)}` : "";
}
// How long a context a cell says: rounded down, "all" where it is all that the model reads, "≥" where nobody looked further.
function reach(cell, work) {
  const whole = current.data.context[work], { longest, line } = cell;
  const text = a.roundedTokens(longest);
  return whole && longest >= whole ? `all ${text}` : longest >= line.at.at(-1) ? `≥ ${text}` : text;
}
const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
function bar(line, gpu) {
  const need = needAt(line, state.context), picture = svg("svg", { class: "bar need", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const [kind, bytes] of [["weights", need.weights], [current.data.columns[0][0] === "inference" ? "kv_cache" : "optimizer", need.cache], ["activations", need.rest]]) {
    const wide = (1000 * bytes) / gpu.bytes;
    picture.append(svg("rect", { class: `c-${kind}`, x: x.toFixed(1), width: wide.toFixed(1), height: 10 }));
    x += wide;
  }
  return picture;
}
function cellOf(cell, c, row, gpu) {
  const td = (kind, text, title) => a.h("td", { class: `cell ${kind}`, role: "cell", "data-format": formatOf(c), title: title ?? false }, text);
  if (!cell) return td("none", "", "nothing is published");
  if (cell.refusal) return td("none", cell.refusal.certain ? "won’t run" : "unknown", cell.refusal.why);
  const { longest, line } = cell;
  const need = needAt(line, state.context);
  const told = `${formatOf(c)}: ${a.gib(need.total / 1024)} GiB${each()} at ${a.tokens(need.at)} tokens, ± ${Math.round(100 * (Array.isArray(line.band) ? Math.max(...line.band) : line.band))} %; ${hardware()} gives ${a.gib(gpu.bytes / 1024)}`;
  if (!longest) return line.totals[0] <= gpu.bytes ? td("tight", "tight", `${told}. It fits by less than our error`) : td("none", "–", told);
  return td(c === row.best ? "best" : longest >= state.context ? "fits" : "less", reach(cell, row.work), told);
}
function rowOf(row) {
  const { data } = current, { work, cells, best } = row, gpu = gpuNow(), { main } = data;
  const line = cells[best].line, need = needAt(line, state.context);
  const facts = [a.short(data.size[work] && data.size[work] * 1e6), data.made[work], data.more[work] ? `${data.more[work]} more` : ""].filter(Boolean);
  const own = best >= main
    ? [a.h("td", { class: "cell best wide", role: "cell", colSpan: main, title: "It is published in this format: others are packed from it and need more" }, `as published, ${formatOf(best)}: ${reach(cells[best], work)}`)]
    : cells.slice(0, main).map((cell, c) => cellOf(cell, c, row, gpu));
  return a.h("tr", { role: "row" },
    a.h("th", { scope: "row", role: "rowheader" }, link(work, leaf(work)), a.h("small", { title: data.more[work] ? "copies, quantisations and fine-tunes that need the same" : false }, facts.join(" · "))),
    a.h("td", { class: "barcell", role: "cell" }, bar(line, gpu)),
    a.h("td", { class: "rec", role: "cell" }, a.h("b", {}, formatOf(best)), ` ${a.gib(need.total / 1024)} of ${a.gib(gpu.bytes / 1024)}\u00a0GiB${each()}`),
    ...own);
}
function missOf({ work, cells, deciding }) {
  const { data } = current, gpu = gpuNow(), last = deciding.at(-1);
  const facts = [a.short(data.size[work] && data.size[work] * 1e6), data.made[work]].filter(Boolean).join(" · ");
  const words = [];
  const refusal = deciding.map((c) => cells[c].refusal).find(Boolean);
  const whole = data.context[work];
  if (whole && whole < state.context) words.push(a.h("i", {}, `reads ${a.tokens(whole)} tokens at most`), ".");
  else if (refusal) words.push(a.h("i", {}, refusal.certain ? "does not run here" : "not known to run here"), `: ${refusal.why}.`);
  else if (last === undefined) words.push(a.h("i", {}, "unknown in this format"), ".");
  else if (cells[last].longest >= cells[last].line.at.at(-1)) {
    const far = deciding.find((c) => cells[c].longest >= cells[c].line.at.at(-1));
    words.push(a.h("i", {}, `worked out up to ${a.tokens(cells[far].line.at.at(-1))} tokens`), `, which fit in ${formatOf(far)}${each()}. Longer: `, a.h("a", { href: `${a.address("calculator/")}?model=${encodeURIComponent(data.id[work])}${state.gpu && `&gpu=${state.gpu}`}&gpu_count=${state.count}&context_tokens=${state.context}&dtype_id=${data.columns[far][1]}` }, "calculate it ›"));
  } else {
    const { line, longest } = cells[last], need = needAt(line, state.context), gib = need.total / 1024;
    const over = need.total - gpu.bytes;
    words.push(a.h("i", {}, over > 0 ? `does not fit: ${a.gib(gib)} of ${a.gib(gpu.bytes / 1024)} GiB` : `tight: ${a.gib(gib)} of ${a.gib(gpu.bytes / 1024)} GiB, within our error`), ` in ${formatOf(last)}${over > 0 ? `, ${a.gib(over / 1024)} too much` : ""}${each()}.`);
    const ways = [];
    if (longest > 0) ways.push(a.h("b", {}, `Runs with ${a.roundedTokens(longest)} tokens`));
    const joined = state.count === 1 && current.several && current.fewest(wishNow(), work, gpu, state.context);
    if (joined) ways.push(a.h("b", {}, `${ways.length ? "or on" : "Fits on"} ${joined.count} × ${gpu.short}`), ` in ${formatOf(joined.best)}`);
    if (current.data.columns[last][2] === "llama.cpp") ways.push(link(work, `${ways.length ? "or with" : "With"} a part of it on the CPU ›`, "#now-what"));
    words.push(...ways.flatMap((way) => [" ", way]));
  }
  return a.h("tr", { role: "row", class: "miss" }, a.h("th", { scope: "row", role: "rowheader" }, link(work, leaf(work)), a.h("small", {}, facts)), a.h("td", { role: "cell", class: "why", colSpan: data.main + 2 }, ...words));
}

function head() {
  const { data } = current, wish = wishNow(), isRun = data.columns[0][0] === "inference";
  const th = (kind, ...inner) => a.h("th", { scope: "col", role: "columnheader", class: kind }, ...inner);
  return a.h("tr", { role: "row" }, th("", "Model", a.h("small", {}, "copies and quantisations folded in")),
    th("barcell", `Memory at ${a.tokens(state.context)} tokens`, a.h("small", {}, a.h("i", { class: "t-weights" }, "weights"), " ", a.h("i", { class: isRun ? "t-cache" : "t-optimizer" }, isRun ? "cache" : "training state"), " ", a.h("i", { class: "t-rest" }, "rest"))),
    th("rec", wish.asked.length > 1 ? "Best quality that fits" : "What it needs"),
    ...data.columns.slice(0, data.main).map((_, c) => th("n", formatOf(c), a.h("small", {}, isRun ? "longest context" : "longest sequence"))));
}
// Popular is one of the most downloaded works of the file. Of sizes that hardly differ the newer comes first.
const POPULAR = 60;
const step = (row) => Math.round(Math.log(current.data.size[row.work] || 1e-3) / Math.log(1.1));
const LARGE = (x, y) => step(y) - step(x) || current.years[x.work] - current.years[y.work] || x.work - y.work;
function sentence() {
  const { rows } = result, { data } = current;
  const many = count(rows.length, "model");
  const start = `${state.gpu ? "On" : "For example on"} ${hardware()}: `;
  if (!rows.length) return [`${start}none of ${count(result.misses.length, "model")}${state.find ? " of that name" : ""} at ${a.tokens(state.context)} tokens. What is missing, and what helps, stands below.`];
  const bold = (row) => [a.h("b", {}, leaf(row.work)), ` in ${formatOf(row.best)} (${reach(row.cells[row.best], row.work)})`];
  const popular = rows.filter((row) => row.work < POPULAR).sort(LARGE);
  const all = popular.length ? popular : [...rows].sort(LARGE);
  const large = [all[0], all.find((row) => data.size[row.work] < 0.95 * data.size[all[0].work])].filter(Boolean);
  const isOne = wishNow().asked.length === 1;
  const roomy = isOne ? null : all.find((row) => row.best === 0 && !large.includes(row));
  return [`${start}${many}. The largest popular ${large.length > 1 ? "ones" : "one"}: `, ...large.flatMap((row, i) => [i ? " and " : "", ...bold(row)]), ". ", ...(roomy ? ["In the best quality: ", ...bold(roomy), "."] : []),
    ...(data.columns[0][0] === "inference" ? [] : [" In brackets the longest sequence."])];
}
const fileNow = () => wishes.find((w) => w[0] === state.want)[2];
async function draw() {
  const name = fileNow();
  if (!windows.has(name)) windows.set(name, new Window(world, await file(name)));
  current = windows.get(name);
  if (state.count > 1) await several();
  controls();
  const wish = wishNow(), gpu = gpuNow();
  result = current.answer({ wish, gpu, count: state.count, context: state.context, sort: state.sort, isNamed: isNamed?.(current) });
  said.replaceChildren(...sentence());
  table.tHead.replaceChildren(head());
  table.tBodies[0].replaceChildren(...result.rows.slice(0, shown).map(rowOf));
  drawMisses();
  const left = result.rows.length - shown, missing = result.misses.length - missesShown;
  more.replaceChildren(
    ...(left > 0 ? [button(`Show ${Math.min(left, 200)} more of ${count(left, "other")} that fit`, () => { shown += 200; draw(); })] : []),
    ...(missing > 0 ? [button(`${count(missing, "other")} that do not fit`, () => { missesShown += 200; draw(); })] : []));
  chips.hidden = state.gpu !== "";
  note.textContent = refused.length ? `The address asks for what is not here: ${refused.map(a.shown).join(", ")}. Taken instead: what the sentence says.` : "";
  query.textContent = sql();
  tell();
}
function drawMisses() {
  table.tBodies[1].replaceChildren(...result.misses.slice(0, missesShown).map(missOf));
}
function button(text, act) {
  const made = a.h("button", { type: "button", class: "chip" }, text);
  made.addEventListener("click", act);
  return made;
}
async function several() {
  const name = fileNow(), of = windows.get(name);
  of.several ??= await file(`${name}-several`);
}

// ---- what stands beside the table: order, name, link, CSV
const sort = a.h("select", { name: "sort", "aria-label": "Order" }, ...Object.entries(ORDERS).map(([key, { label }]) => a.h("option", { value: key }, label)));
const find = a.h("input", { type: "search", name: "find", placeholder: "Part of a model’s name", "aria-label": "Part of a model’s name", autocomplete: "off", spellcheck: "false" });
sort.addEventListener("change", () => { state.sort = sort.value; draw(); });
find.addEventListener("input", async () => { state.find = find.value; await naming(); draw(); });
let names;
async function naming() {
  if (!state.find.trim()) { isNamed = null; return; }
  names ??= await Promise.all([import(`./find.js${search}`), a.load("data/words.json")]);
  const [finding, spoken] = names, text = state.find;
  isNamed = (window) => finding.filter((window.folded ??= window.data.id.map(finding.fold)), text, spoken);
}
const copy = button("Copy link", async () => {
  try { await navigator.clipboard.writeText(location.href); copy.textContent = "Copied"; } catch { copy.textContent = location.href; }
  setTimeout(() => { copy.textContent = "Copy link"; }, 3000);
});
const csv = button("CSV", () => {
  const { data } = current, { main } = data, quoted = (v) => (/[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v ?? ""));
  const lines = [["model_id", "parameters", "created", "best_format", "needs_bytes", "at_context_tokens", ...data.columns.map(([p, d]) => `max_context_tokens ${p === "inference" ? d : p}`)]];
  for (const { work, cells, best } of result.rows) lines.push([data.id[work], data.size[work] ? data.size[work] * 1e6 : "", data.made[work], data.columns[best][1], Math.round(needAt(cells[best].line, state.context).total), state.context, ...cells.map((c) => c?.longest ?? "")]);
  const link = a.h("a", { href: URL.createObjectURL(new Blob([lines.map((l) => l.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" })), download: `fits-${state.count}x-${gpuNow().id}-${state.want}-${state.context}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
tools.replaceChildren(find, sort, copy, csv);

function sql() {
  const { data } = current, gpu = gpuNow().id;
  const columns = data.columns.slice(0, data.main), [phase, , engine] = columns[wishNow().asked[0]];
  const formats = [...new Set(wishNow().asked.map((c) => data.columns[c][1]))].map((d) => `'${d}'`).join(", ");
  if (state.count > 1) return `SELECT model_id, dtype_id, max(context_tokens) AS context_tokens -- of the published ones\nFROM footprint, gpu\nWHERE gpu_id = '${gpu}' AND gpu_count = ${state.count} AND phase_id = '${phase}' AND engine_id = '${engine}'\n  AND dtype_id IN (${formats}) AND sequences = 1 AND total_bytes * (1 + error_band) <= capacity_bytes\nGROUP BY ALL\nORDER BY ALL;`;
  return `SELECT model_id, dtype_id, max_context_tokens\nFROM compatibility\nWHERE gpu_id = '${gpu}' AND phase_id = '${phase}' AND engine_id = '${engine}'\n  AND dtype_id IN (${formats}) AND context_tokens = 512 AND sequences = 1${phase === "inference" ? "" : " AND optimizer_id = 'adamw' AND checkpointing = 'full'"}\n  AND max_context_tokens >= ${state.context}\nORDER BY ALL;`;
}
function tell() {
  const address = new URLSearchParams();
  const usual = { ...start, context: contextOf(state.want) };
  for (const key of KEYS) if (state[key] !== usual[key]) address.set(key, state[key]);
  const text = address.size ? `?${address}` : "";
  if (!isOld && text !== location.search) history.replaceState(null, "", `${location.pathname}${text}${location.hash}`);
}
addEventListener("popstate", () => location.reload());

if (!isOld) {
  read();
  sort.value = state.sort;
  find.value = state.find;
  await naming();
  await draw();
  performance.mark("interactive");
  if (!state.gpu) await guessCard();
  // what helps where a card is too small stands in another file, which nobody waits for
  (window.requestIdleCallback ?? setTimeout)(async () => { await several(); drawMisses(); controls(); box.dataset.whole = ""; });
}
