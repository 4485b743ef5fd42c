// The first screen: what a card runs, for a wish, and how long a context each format leaves. Everything that is chosen is in the address.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const box = document.getElementById("window");
const [{ Window, ORDERS, needAt }, { UNITS, CONTEXTS, wish: wishOf, leastSaid, query: queryOf }] = await Promise.all([import(`./window.js${search}`), import(`./made.js${search}`)]);
const part = (name) => box.querySelector(`[data-part="${name}"]`);
const [form, said, about, table, more, note, chips, guess, tools, query] = ["ask", "answer", "about", "table", "more", "note", "chips", "guess", "tools", "sql"].map(part);

const wishes = JSON.parse(box.dataset.wishes).map(wishOf);
const EXAMPLE = box.dataset.card;
const SIZES = Object.values(UNITS).map(({ key }) => key); // the keys that sizes have in the address
const MATRIX = ["phase", "dtype", "engine", "cards", "task", "licence", "family", "size", "only", "figure", "pins", "sequences", "optimizer", "checkpointing"];
const KEYS = ["count", "gpu", "want", ...SIZES, "system", "free", "ram", "sort", "find"];
const ROWS = 25, MISSES = 6, SIGHT = 9; // rows of the first screen

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
file(wishes[0].file); // it is on its way already
const [world] = await Promise.all([a.world(), file((wishes.find((w) => w.name === asked.get("want")) ?? wishes[0]).file)]);
const cardOf = (id) => world.gpus.find((g) => g.id === id);

// A card's row of the table gpu, as far as speed and price go, once it is here.
let sheets;
const sheet = (id) => Object.fromEntries((sheets?.rows.find(([card]) => card === id) ?? []).map((value, i) => [sheets.columns[i], value]));

const start = { count: 1, gpu: "", want: wishes[0].name, ...Object.fromEntries(SIZES.map((key) => [key, null])), system: a.SYSTEMS[0][0], free: "", ram: "", sort: "current", find: "" };
const state = { ...start, gpu: cardOf(a.memory.get("gpu")) ? a.memory.get("gpu") : "", system: a.memory.system() };
let refused = a.foreign(asked, [...KEYS, ...MATRIX]);
const wished = (want = state.want) => wishes.find((w) => w.name === want);
const isMade = () => wished().isMade; // measured in something else than tokens
const isPlaced = () => current.data.columns[0].length > 3; // a pipeline, by how its parts are placed
const keyOf = (want) => wished(want).unit.key; // the key that holds its size
const wanted = () => state[keyOf()];
const plainly = (ram) => (a.freeBytes(ram) === null ? "" : String(+ram)); // 64.0 is the choice 64
function read() {
  const one = (key, options) => {
    const value = asked.get(key);
    if (value === null || value === "") return;
    const found = typeof options[0] === "number" ? options.find((n) => n === a.number(value)) : a.listed(value, options);
    if (found == null) refused.push(`${key}=${value}`);
    else state[key] = found;
  };
  one("gpu", world.gpus.map((g) => g.id));
  one("want", wishes.map((w) => w.name));
  one("count", world.counts.filter((n) => n <= 16));
  for (const key of SIZES) one(key, sizesOf(key));
  one("system", a.SYSTEMS.map(([id]) => id));
  if (!asked.has("system")) ownSystem();
  one("sort", Object.keys(ORDERS));
  const free = a.decimal(asked.get("free") ?? "");
  if (free && a.freeBytes(free) === null) refused.push(`free=${free}`);
  else state.free = free || (asked.has("system") ? "" : a.memory.free(state.gpu));
  const ram = a.decimal(asked.get("ram") ?? "");
  if (ram && a.freeBytes(ram) === null) refused.push(`ram=${ram}`);
  else state.ram = plainly(ram || (state.gpu && state.gpu === a.memory.get("gpu") ? a.memory.get("ram") ?? "" : "")); // another's card is perhaps in another's computer
  state.find = asked.get("find") ?? "";
  for (const key of SIZES) state[key] ??= usual(key);
}
// A desktop is remembered too, where there is a card that it is on.
const ownSystem = () => { if (state.gpu) state.system = a.memory.system(a.SYSTEMS); };
const usual = (key) => (keyOf() === key ? wished() : wishes.find((w) => w.unit.key === key))?.usual ?? null;
const sizesOf = (key) => wishes.find((w) => w.unit.key === key)?.sizes ?? CONTEXTS;

// ---- the sentence
const options = {
  count: () => (current?.several?.counts ? [1, ...current.several.counts] : [...new Set([1, 2, 4, 8, state.count])]).map((n) => [n, n]),
  gpu: () => a.gpuOptions(world),
  want: () => wishes.map(({ name, label }) => [name, label]),
  context: () => wished().sizes.map((n) => [n, wished().unit.option(n, wished().side)]),
  system: () => a.SYSTEMS,
  ram: () => [["", "+ RAM"], ...[...new Set([...RAM_SIZES, +state.ram])].filter(Boolean).sort((x, y) => x - y).map((n) => [n, `+ ${n.toLocaleString("en")} GB of RAM`])],
};
const RAM_SIZES = [16, 24, 32, 48, 64, 96, 128, 192, 256, 512]; // GB, as it is sold
function controls() {
  for (const [key, list] of Object.entries(options)) {
    const select = form.elements[key];
    const option = ([value, text]) => a.h("option", { value: String(value) }, text);
    if (select.disabled || key === "count" || key === "ram" || (key === "context" && select.dataset.of !== keyOf())) // the others offer the same for good
      select.replaceChildren(...list().map((o) => (o.group ? a.h("optgroup", { label: o.group }, ...o.options.map((each) => option([each[0], cardOf(each[0]).short]))) : option(o))));
    if (key === "context") select.dataset.of = keyOf();
    select.value = String(key === "context" ? wanted() : state[key]);
    select.disabled = false;
  }
  // a Mac has one system, which takes the same whatever else runs
  form.elements.system.parentElement.hidden = cardOf(gpuNow().id)?.vendor === "apple";
  part("ram").hidden = !takesRam(current);
  // what a desktop leaves has to be typed; what was typed is taken whatever the system
  free.hidden = state.system !== "desktop" && state.free === "";
  if (freeInput !== document.activeElement) freeInput.value = state.free;
  freeInput.setAttribute("aria-invalid", String(isNoAmount()));
}
const free = part("free"), freeInput = form.elements.free;
const isNoAmount = () => state.free !== "" && a.freeBytes(state.free) === null;
freeInput.addEventListener("input", () => change("free", a.decimal(freeInput.value)));
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", ({ target }) => {
  if (target.name === "free") return; // heard while it is typed
  change(target.name === "context" ? keyOf() : target.name, typeof start[target.name] === "number" || target.name === "context" ? +target.value : target.value);
});
function change(key, value) {
  if (key === "want" && keyOf(value) === keyOf() && wanted() === wished().usual) state[keyOf(value)] = wished(value).usual;
  state[key] = value;
  if (key === "gpu") {
    state.free = a.memory.free(value); // what was typed is of the other card
    if (!asked.has("system")) ownSystem();
    a.memory.set("gpu", value);
    guess.hidden = true;
  }
  if (key === "free" && (value === "" || a.freeBytes(value) !== null)) a.memory.setFree(state.gpu, value);
  if (key === "system") a.memory.set("system", value);
  if (key === "ram") a.memory.set("ram", value);
  refused = [];
  shown = ROWS;
  isChosen = key !== "free";
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
    guess.hidden = false;
    await draw();
    const not = a.h("button", { type: "button", class: "chip" }, "Not yours?");
    not.addEventListener("click", () => change("gpu", ""));
    guess.replaceChildren(`Your browser draws with ${card.short}: taken from that, and told to nobody. `, not);
  } else guess.replaceChildren(`Your browser draws with ${a.shown(cards[0].short.replace(/\s*\b\d+ ?GB\b/, ""))}, which has `, ...cards.flatMap((g, i) => [i ? " or " : "", button(g, `${g.nominal} GB`)]), "?");
  guess.hidden = false;
}

// ---- the table
let drawn = 0;
let current, result, shown = ROWS, missesShown = MISSES, besideShown = MISSES, isNamed = null;
const wishNow = () => current.data.wishes.find((w) => w.name === state.want);
// The card with what it gives as it is used; null where nobody knows, as with a desktop on it.
let used = {};
function gpuNow() {
  const { gpu: id, system, free } = state;
  if (used.id !== id || used.system !== system || used.free !== free) { // every cell asks
    const gpu = cardOf(id) ?? cardOf(EXAMPLE);
    used = { id, system, free, gpu: { ...gpu, bytes: isNoAmount() ? null : Math.min(a.freeBytes(free) ?? a.under(world, system, gpu) ?? NaN, gpu.bytes) || null } };
  }
  return used.gpu;
}
const isLess = () => state.free !== "" || gpuNow().bytes !== cardOf(gpuNow().id).bytes; // than what pages and tables say of the card
const formatOf = (c) => { const [phase, dtype] = current.data.columns[c]; return isPlaced() ? current.data.words[c] : phase === "inference" ? a.formatName(dtype) : world.phases.find(([id]) => id === phase)?.[1] ?? phase; };
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const hardware = (n = state.count) => a.many(n, gpuNow());
const link = (work, inner, place = "") => current.data.pages && !current.data.pages[work] ? inner : a.h("a", { href: `${a.address(`models/${current.data.paths[work] ?? current.data.id[work]}/`)}${carried()}${place}` }, inner);
const leaf = (work) => a.shown(current.data.id[work].split("/").at(-1));
const each = () => (state.count > 1 ? " on each" : "");
function carried() {
  const [phase] = wishNow().asked.length === 1 ? current.data.columns[wishNow().asked[0]] : [];
  const given = { ...(state.gpu && { gpu: state.gpu }), ...(phase && { phase }), ...(!isMade() && wanted() !== wished().usual && { context: wanted() }), ...saidSystem() };
  return Object.keys(given).length ? `?${new URLSearchParams(given)}` : "";
}
// What the address of another page says of the system: what a desktop leaves the others do not take.
const saidSystem = () => (state.system !== "desktop" && state.system !== a.memory.unsaidSystem() ? { system: state.system } : {});
const saidRam = () => (state.ram && takesRam(current) ? { ram: state.ram } : {});
// How long a context a cell says, rounded down.
const reach = ({ longest, line }, work) => a.reached(longest, current.data.context[work] || (isRun() ? 0 : Infinity), line.at.at(-1), wished().unit.told(longest));
const isUnread = (work) => isRun() && !current.data.context[work];
const svg = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
function bar(line, gpu) {
  const need = needAt(line, wanted()), picture = svg("svg", { class: "bar need", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
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
  const need = needAt(line, wanted());
  const told = `${formatOf(c)}: ${a.gib(need.total / 1024)} GiB${each()} ${size(need.at)}, ± ${Math.round(100 * need.band)} %; ${hardware()} gives ${a.gib(gpu.bytes / 1024)}`;
  if (!longest) return line.totals[0] <= gpu.bytes ? td("tight", "tight", `${told}. It fits by less than our error`) : td("none", "–", told);
  return td(c === row.best ? "best" : longest >= wanted() ? "fits" : "less", reach(cell, row.work), isUnread(row.work) ? `${told}. ${a.UNREAD}` : told);
}
const factsOf = (work, { size, made, more } = current.data) => [a.short(size[work] && size[work] * 1e6), made[work], more[work] ? `${more[work]} more` : ""].filter(Boolean);
const nameOf = (work, facts, ...links) => a.h("th", { scope: "row", role: "rowheader" }, link(work, leaf(work)), a.h("small", { title: current.data.more[work] ? "copies, quantisations and fine-tunes that need the same" : false }, facts.join(" · "), ...links));
function rowOf(row) {
  const { data } = current, { work, cells, best } = row, gpu = gpuNow(), { main } = data;
  const line = cells[best].line, need = needAt(line, wanted());
  const facts = factsOf(work);
  const own = best >= main
    ? [a.h("td", { class: "cell best wide", role: "cell", colSpan: main, title: "It is published in this format: others are packed from it and need more" }, `as published, ${formatOf(best)}: ${reach(cells[best], work)}`)]
    : cells.slice(0, main).map((cell, c) => cellOf(cell, c, row, gpu));
  return a.h("tr", { role: "row" },
    nameOf(work, facts, ...(isRun() ? [" · ", whichCard(work, best)] : isTrained() ? [" · ", calculation(work, best, { ask: "card" }, "which card?")] : [])),
    a.h("td", { class: "barcell", role: "cell" }, bar(line, gpu)),
    a.h("td", { class: "rec", role: "cell" }, a.h("b", {}, formatOf(best)), ` ${a.gib(need.total / 1024)} of ${a.gib(gpu.bytes / 1024)}\u00a0GiB${each()}`),
    ...own, ...speedOf(row, line));
}
const isTrained = () => current.data.columns[0][0] !== "inference";
const isRun = () => current.data.columns[0][0] === "inference" && !isMade();
const isLlama = () => current.data.columns.slice(0, current.data.main).every(([, , engine]) => engine === "llama.cpp");
const hasSpeed = () => current.data.hasSpeed === true;
function speedOf({ work, best }, line) {
  if (!hasSpeed()) return [];
  if (!current.several || !sheets) return [a.h("td", { class: "n speed", role: "cell" }, "…")]; // it comes after the answer
  const why = current.several.reads[current.data.shape[work]], most = current.speed(work, best, state.count, line, wanted(), sheet(gpuNow().id));
  return [a.h("td", { class: "n speed", role: "cell", title: most == null ? (typeof why === "string" && why) || "not known" : `a bound: in ${formatOf(best)} with ${a.tokens(needAt(line, wanted()).at)} tokens in the cache` }, most == null ? "–" : `≤ ${a.rate(most)}`)];
}
// The page that has every card for a model, asked as it is here.
function whichCard(work, c, words = "which card?") {
  const query = new URLSearchParams({ model: current.data.id[work], dtype: current.data.columns[c][1], context: wanted(), ...saidSystem() });
  return a.h("a", { href: `${a.address("which-card/")}?${query}`, "aria-label": `Which card for ${leaf(work)}?` }, words);
}
// One card, in a computer that may have more of them and has memory beside it.
const hasMore = () => state.count === 1 && !a.isComputer(gpuNow());
function missOf({ work, cells, deciding }) {
  const { data } = current, gpu = gpuNow(), last = deciding.at(-1);
  const facts = [a.short(data.size[work] && data.size[work] * 1e6), data.made[work]].filter(Boolean).join(" · ");
  const words = [];
  const refusal = deciding.map((c) => cells[c].refusal).find(Boolean);
  const whole = data.context[work];
  const why = data.why?.[work];
  if (why) words.push(a.h("i", {}, "unknown as a whole"), ". ", ...leastSaid(data.least[work], gpu, (c) => `${isPlaced() ? "with" : "in"} ${formatOf(c)}`), a.h("small", {}, ` Why: ${why}.`));
  else if (whole && whole < wanted()) words.push(a.h("i", {}, `reads ${a.tokens(whole)} tokens at most`), ".");
  else if (refusal) words.push(a.h("i", {}, refusal.certain ? "does not run here" : "not known to run here"), `: ${refusal.why}.`);
  else if (last === undefined) words.push(a.h("i", {}, "unknown in this format"), ".");
  else if (!isMade() && cells[last].longest >= cells[last].line.at.at(-1)) {
    const far = deciding.find((c) => cells[c].longest >= cells[c].line.at.at(-1));
    words.push(a.h("i", {}, `worked out up to ${a.tokens(cells[far].line.at.at(-1))} tokens`), `, which fit in ${formatOf(far)}${each()}. Longer: `, a.h("a", { href: `${a.address("calculator/")}?model=${encodeURIComponent(data.id[work])}${state.gpu && `&gpu=${state.gpu}`}&gpu_count=${state.count}&context_tokens=${wanted()}&dtype_id=${data.columns[far][1]}${state.system === a.memory.unsaidSystem() ? "" : `&system=${state.system}`}${state.free && `&free=${state.free}`}` }, "calculate it ›"));
  } else {
    const { line, longest } = cells[last], need = needAt(line, wanted()), gib = need.total / 1024;
    const over = need.total - gpu.bytes;
    words.push(a.h("i", {}, over > 0 ? `does not fit: ${a.gib(gib)} of ${a.gib(gpu.bytes / 1024)} GiB` : `tight: ${a.gib(gib)} of ${a.gib(gpu.bytes / 1024)} GiB, within our error`), ` ${isPlaced() ? "with" : "in"} ${formatOf(last)}${over > 0 ? `, ${a.gib(over / 1024)} too much` : ""}${each()}.`);
    const ways = [];
    const joined = hasMore() && current.several && current.fewest(wishNow(), work, gpu, wanted());
    if (longest > 0) ways.push(a.h("span", {}, a.h("b", {}, wished().unit.makes(longest, wished().side)), joined ? "" : "."));
    if (joined) ways.push(onSeveral(work, deciding, joined, ways.length ? "or on" : "Fits on"));
    if (isTrained()) ways.push(byTrainer(work, last, !joined && hasMore() && current.several));
    if (current.data.columns[last][2] === "llama.cpp" && hasMore()) ways.push(besideCpu(work, deciding));
    words.push(...ways.flatMap((way) => [" ", way]));
    if (isRun()) words.push(" ", whichCard(work, last, "Which card holds it? ›"));
    else if (isTrained()) words.push(" ", calculation(work, last, { ask: "card" }, "Which card holds it? ›"));
  }
  return a.h("tr", { role: "row", class: "miss" }, a.h("th", { scope: "row", role: "rowheader" }, link(work, leaf(work)), a.h("small", {}, facts)), a.h("td", { role: "cell", class: "why", colSpan: data.main + 2 + hasSpeed() }, ...words));
}

// Mixtures that the card holds with the experts of some layers in the computer's memory, where somebody says how much of it there is.
const isOfLlama = (window) => window.data.columns.every(([phase, , engine]) => phase === "inference" && engine === "llama.cpp");
const takesRam = (window) => hasMore() && isOfLlama(window);
const countsRam = (window) => Boolean(window.beside) && ramBytes() !== null && takesRam(window);
let byRam = []; // of what is drawn
async function withRam(window) {
  if (window.beside || ramBytes() === null || !takesRam(window)) return;
  const [{ Beside }, data] = await Promise.all([import(`./beside.js${search}`), file(`${window.name}-ram`)]);
  window.beside = new Beside(window, data, { count, leaf, formatOf, bar, reach, calculation, calculatorAsked, nameOf: (work) => nameOf(work, factsOf(work)) });
}
const drawBeside = () => (!byRam.length ? table.querySelector("tbody.beside")?.remove() : current.beside.draw(table, byRam.slice(0, besideShown), { of: byRam.length, ram: state.ram, gpu: gpuNow(), context: wanted(), columns: current.data.main + hasSpeed() }));
const besideSaid = () => {
  if (countsRam(current)) return current.beside.sentence(byRam, state.ram, byRam.filter(({ work }) => work < POPULAR), LARGE);
  const isLeftOut = ramBytes() !== null && state.count > 1 && isOfLlama(current); // what somebody named is not passed over in silence
  return isLeftOut ? [` RAM is counted beside one card: the ${state.ram} GB are left out here.`] : [];
};

// How many of the card hold it: of the published numbers, and where fewer between them do, that many, worked out where the row is in sight.
function onSeveral(work, deciding, { count: published, best }, word) {
  const place = a.h("span", {}), { data } = current, gpu = gpuNow(), context_tokens = wanted();
  const say = (n, format) => place.replaceChildren(a.h("b", {}, `${word} ${n} × ${gpu.short}`), ` in ${format}.`);
  say(published, formatOf(best));
  if (isRun() && published > 2) seen(place, async () => {
    const r = await import(`./reckon.js${search}`), own = await r.ofModel(data.paths[work] ?? data.id[work]);
    const formats = deciding.filter((c) => !current.cells(work, gpu, 1)[c]?.refusal).map((c) => ({ dtypeId: data.columns[c][1], engine: data.columns[c][2] }));
    const found = r.fewestOf(own, formats, { model_id: data.id[work], phase_id: "inference", context_tokens, sequences: 1 }, gpu.bytes, published - 1);
    if (found && data === current.data) say(found.count, a.formatName(found.dtypeId));
  });
  return place;
}

// How much of it goes to the card and what the computer's memory holds of the rest: worked out where the row is in sight. How much memory that is, is asked beside
// the card, and by the calculator.
const ramBytes = () => a.freeBytes(state.ram);
const split = new Map();
function besideCpu(work, deciding) {
  const place = a.h("span", {}, link(work, "Or with a part of it on the CPU ›", "#now-what")), { data } = current, gpu = gpuNow(), context_tokens = wanted();
  const columns = deciding.map((c) => data.columns[c]), [, dtype_id] = columns.find(([, id]) => id === "gguf-q4_k_m") ?? columns.at(-1), ram = ramBytes(), key = `${work} ${dtype_id} ${gpu.bytes} ${context_tokens} ${ram}`;
  const say = (said) => said && data === current.data && isSettled() && place.replaceChildren(...said, " ", link(work, "How ›", "#now-what"));
  if (split.has(key)) { say(split.get(key)); return place; }
  seen(place, async () => {
    const r = await import(`./reckon.js${search}`), own = await r.ofModel(data.paths[work] ?? data.id[work]);
    const wish = { model_id: data.id[work], phase_id: "inference", dtype_id, context_tokens, sequences: 1 }, row = r.ask(own, wish);
    const words = ram == null ? null : await import(`./ram.js${search}`), way = words?.way(own, wish, row, gpu.bytes, gpu, ram);
    const said = way?.isHeld ? [a.h("b", {}, `Runs with ${words.part(way)} in RAM`), `, in ${a.formatName(dtype_id)}: ${words.sized(way)}. It is slower.`] : r.splitSaid(r.split(own, row, gpu.bytes), a.formatName(dtype_id));
    split.set(key, said?.map((part) => part.cloneNode?.(true) ?? part));
    say(split.get(key));
  });
  return place;
}
function seen(element, act) {
  const watch = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) { watch.disconnect(); act(); } });
  watch.observe(element);
}

// A training that our own choices leave too large: the trainer whose choices make it fit one of the card, and, where no published number of cards holds it
// (`isOpen`), how many do. By the formulas, fetched for the rows that are in sight.
function byTrainer(work, c, isOpen) {
  const place = a.h("span", {}), { data, several } = current, gpu = gpuNow(), [phase_id, dtype_id, engine_id] = data.columns[c], context_tokens = wanted();
  seen(place, async () => {
    const [r, { frugal, itsFormat }, support] = await Promise.all([import(`./reckon.js${search}`), import(`./ways.js${search}`), a.load("data/support.json")]);
    const own = await r.ofModel(data.paths[work] ?? data.id[work]), plain = { model_id: data.id[work], phase_id, dtype_id, context_tokens, sequences: 1 };
    const least = frugal(plain, Infinity, (asked) => { const row = r.ask(own, asked); return r.holds(row, gpu.bytes) && !r.refusal({ ...world, support }, row, "", gpu, own) ? row : null; });
    if (least) place.append(a.h("b", {}, `${state.count > 1 ? "On one, with" : "With"} ${least.name}`), ` it fits, one sequence at a time: ${a.gib(least.row.total_bytes / 1024)} GiB. `, calculation(work, c, { program: least.program, dtype_id: itsFormat(plain), sequences: 1 }));
    const row = isOpen && r.fewest(own, { ...r.shared.opening?.[phase_id], ...plain, engine_id }, gpu.bytes, several.counts.at(-1));
    if (row) place.append(least ? " Or " : "", a.h("b", {}, `${least ? "" : "Fits "}on ${row.gpu_count.toLocaleString("en")} × ${gpu.short}`), `, shared by ${r.SHARED[row.sharding] ?? row.sharding ?? "all of them"}.`);
    else if (isOpen && !least) place.append(`With none of the trainers that are counted here it fits one of this card, and not even ${r.COUNTS.at(-1).toLocaleString("en")} hold it, shared by ZeRO-3: what each of them needs by itself is too much.`);
  });
  return place;
}
// The calculator, asked the same of a column.
function calculation(work, c, asked = {}, words = "Calculate it ›") {
  const [phase, dtype] = current.data.columns[c];
  const given = { model: current.data.id[work], ...(state.gpu && { gpu: state.gpu }), ...(state.free && { free: state.free }), ...saidRam(), ...saidSystem(), phase_id: phase, dtype_id: dtype, context_tokens: wanted(), ...asked };
  return a.h("a", { href: `${a.address("calculator/")}?${new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ""))}` }, words);
}
// The calculator, asked what stands here: the card, the wish, and of what somebody searched for the first model.
function calculatorAsked(given = {}) {
  const { rows, misses } = result, first = state.find ? (rows[0] ?? byRam[0] ?? misses[0]) : undefined, [phase] = current.data.columns[wishNow().asked[0]];
  const of = { ...(state.gpu && { gpu: state.gpu }), ...given, ...(first && { model: current.data.id[first.work] }), ...(phase !== "inference" && { phase_id: phase }), ...(!isMade() && { context_tokens: wanted() }), ...(first?.best !== undefined && !isPlaced() && { dtype_id: current.data.columns[first.best][1] }), ...saidRam(), ...saidSystem() };
  return `${a.address("calculator/")}?${new URLSearchParams(of)}`;
}
// What is counted of a training where nobody named who trains.
const choices = () => (isTrained() ? [` No trainer is named, so these choices are ours: ${a.recipe(world, world.opening.training.optimizer, world.opening.training.checkpointing)}, one sequence at a time. `, a.h("a", { href: calculatorAsked() }, "Choose a trainer ›")] : []);

function head() {
  const { data } = current, wish = wishNow(), isRun = data.columns[0][0] === "inference";
  const th = (kind, ...inner) => a.h("th", { scope: "col", role: "columnheader", class: kind }, ...inner);
  return a.h("tr", { role: "row" }, th("", "Model", a.h("small", {}, isPlaced() ? "in 16 bits (bf16), with diffusers" : isMade() ? wished().unit.who : "copies and quantisations folded in")),
    th("barcell", `Memory ${size(wanted())}`, a.h("small", {}, a.h("i", { class: "t-weights" }, "weights"), " ", isPlaced() ? "" : a.h("i", { class: isRun ? "t-cache" : "t-optimizer" }, isRun ? "cache" : "training state"), " ", a.h("i", { class: "t-rest" }, "rest"))),
    th("rec", isPlaced() ? "How it runs, the fastest way" : wish.asked.length > 1 ? "Best quality that fits" : "What it needs", ...(isLlama() ? [a.h("small", {}, `of llama.cpp’s formats, ${formatOf(0)} the largest`)] : [])),
    ...data.columns.slice(0, data.main).map((_, c) => th("n", formatOf(c), a.h("small", {}, isRun ? wished().unit.most : "longest sequence"))),
    ...(hasSpeed() ? [th("n speed", "Tokens/s", a.h("small", {}, "at most"))] : []));
}
// Popular is one of the most downloaded works of the file. Of sizes that hardly differ the newer comes first.
const POPULAR = 60;
const step = (row) => (current.steps ??= current.data.size.map((size) => Math.round(Math.log(size || 1e-3) / Math.log(1.1))))[row.work];
const LARGE = (x, y) => step(y) - step(x) || current.years[x.work] - current.years[y.work] || x.work - y.work;
const UNREAD = " “?”: how many tokens it was made to read is not said in its config.";
function sentence() {
  const { rows } = result, { data } = current;
  const many = count(rows.length, "model");
  if (isNoAmount()) return [`No answer. “${a.shown(state.free)}” is no amount of memory, in GiB.`];
  if (gpuNow().bytes == null) return [`What a desktop leaves of ${hardware()} is not known here: type the memory that is free${each()}, as nvidia-smi, rocm-smi or the task manager tell it. With nothing else on the card it is ${a.gib(cardOf(gpuNow().id).bytes / 1024)} GiB.`];
  const start = `${state.gpu ? "On" : "For example on"} ${hardware()}${given()}: `;
  if (!rows.length) {
    if (!result.misses.length && !byRam.length && state.find) return [`No model of the name “${a.shown(state.find)}” is listed for that. `, ...cardNamed(), a.h("a", { href: `${a.address("models/")}?${new URLSearchParams({ find: state.find })}` }, "Look among all models ›")];
    const known = result.misses.length + byRam.length - unknowns(), named = state.find ? " of that name" : "";
    if (!known && unknowns()) return [`${start}${size(wanted())} nobody here knows all that any of ${count(unknowns(), "model")}${named} needs. What is known of them stands below.`];
    return [`${start}none of ${count(known, "model")}${named} ${size(wanted())}. What is missing, and what helps, stands below.`, ...besideSaid(), ...unknown(), ...choices()];
  }
  if (isPlaced()) return placed(start, rows);
  const bold = (row) => [a.h("b", {}, leaf(row.work)), ` in ${formatOf(row.best)} (${reach(row.cells[row.best], row.work)})`];
  const unread = (...told) => (told.some((row) => row && isUnread(row.work)) ? [UNREAD] : []);
  if (state.find && rows.length === 1) return [`${start}${many} of that name: `, ...bold(rows[0]), ".", ...unread(rows[0]), ...(data.columns[0][0] === "inference" ? [] : [" In brackets the longest sequence."]), ...besideSaid(), ...unknown(), ...choices()];
  const popular = rows.filter((row) => row.work < POPULAR).sort(LARGE);
  const all = popular.length ? popular : [...rows].sort(LARGE);
  const large = [all[0], all.find((row) => data.size[row.work] < 0.95 * data.size[all[0].work])].filter(Boolean);
  const isOne = wishNow().asked.length === 1;
  const roomy = isOne || large.some((row) => row.best === 0) ? null : all.find((row) => row.best === 0);
  return [`${start}${many}${state.find ? " of that name" : ""}. The largest popular ${large.length > 1 ? "ones" : "one"}: `, ...large.flatMap((row, i) => [i ? " and " : "", ...bold(row)]), ". ", ...(roomy ? ["In the best quality: ", ...bold(roomy), "."] : []), ...besideSaid(), ...unread(...large, roomy),
    ...(data.columns[0][0] === "inference" ? [] : [" In brackets the longest sequence."]), ...unknown(), ...choices()];
}
const size = (n) => wished().unit.at(n, wished().side);
// Of how many nobody knows the whole need.
const unknowns = () => result.misses.filter((row) => current.data.why?.[row.work]).length;
function unknown() {
  const many = unknowns();
  return many ? [` Of ${many} others nobody here knows all that they need: what is known of them stands below.`] : [];
}
// The most downloaded with all parts on the card, and what needs them one after another, which is slower.
function placed(start, rows) {
  const names = (of) => of.slice(0, 3).flatMap((row, i) => [i ? ", " : "", a.h("b", {}, leaf(row.work))]);
  const whole = rows.filter((row) => row.best === 0), parts = rows.filter((row) => row.best > 0), [one, many, made] = wished().unit.does(wanted(), wished().side);
  return [`${start}${count(rows.length, "model")} ${rows.length === 1 ? one : many} ${made}.`,
    ...(whole.length ? [" With all parts on the card: ", ...names(whole), "."] : []), ...(parts.length ? [" Slower, with a part of it on the card at a time: ", ...names(parts), "."] : []), ...unknown()];
}
// What there is where it is not what the card gives under Linux.
const given = () => (!isLess() ? "" : state.free !== "" ? ` with ${a.gib(gpuNow().bytes / 1024)} GiB free${each()}${a.freeBytes(state.free) > gpuNow().bytes ? ", all that it gives" : ""}` : ` under Windows, which leaves about ${a.gib(gpuNow().bytes / 1024)} GiB${each()}`);
// What is known of the card itself.
function aboutCard() {
  const gpu = gpuNow(), { memory_bandwidth_gb_s: speed, msrp_usd: price, release_date: since } = sheet(gpu.id);
  return [
    ...(gpu.bytes == null ? [] : [`${a.gib(gpu.bytes / 1024)} GiB for a program`]), ...(speed ? [`${speed.toLocaleString("en")} GB/s`] : []),
    price ? `list price ${price.toLocaleString("en")} USD${since ? ` at launch, ${since.slice(0, 7)}` : ""}` : since ? `since ${since.slice(0, 7)}, list price not known` : "list price not known",
  ].join(" · ");
}
const fileNow = () => wished().file;
// What is drawn is what is asked: between a choice and its file it is not, and what arrives then leaves the table to the drawing that waits.
const isSettled = () => windows.get(fileNow()) === current;
async function draw() {
  const turn = ++drawn, name = fileNow();
  if (!windows.has(name)) {
    const data = await file(name);
    if (!windows.has(name)) windows.set(name, Object.assign(new Window(world, data), { name }));
  }
  if (turn !== drawn) return; // something else was chosen meanwhile
  const window = windows.get(name);
  if (state.count > 1 || sheets) await several(window);
  await withRam(window);
  if (turn !== drawn) return;
  current = window;
  if (state.count > 1 && !current.several.counts.length) { refused.push(`count=${state.count}`); state.count = 1; } // pictures are worked out for one card
  controls();
  const wish = wishNow(), gpu = gpuNow();
  result = gpu.bytes == null ? { rows: [], misses: [] } : current.answer({ wish, gpu, count: state.count, context: wanted(), sort: state.sort, isNamed: isNamed?.(current) });
  byRam = countsRam(current) ? current.beside.rows(result.misses, gpu, wanted(), ramBytes()) : [];
  if (byRam.length) {
    const found = new Set(byRam.map(({ work }) => work));
    result.misses = result.misses.filter(({ work }) => !found.has(work));
  }
  said.replaceChildren(...sentence());
  table.classList.toggle("three", current.data.main === 3);
  table.classList.toggle("placed", isPlaced());
  if (sheets) sayCard();
  table.parentElement.hidden = gpu.bytes == null;
  table.tHead.replaceChildren(head());
  // while somebody types, what is in sight comes first, and the rest when no letter has come meanwhile
  const rows = result.rows.slice(0, shown), inSight = isTyped ? SIGHT : rows.length;
  table.tBodies[0].replaceChildren(...rows.slice(0, inSight).map(rowOf));
  if (isTyped && rows.length >= SIGHT) {
    table.querySelector("tbody.misses").replaceChildren();
    setTimeout(() => {
      if (turn !== drawn) return;
      table.tBodies[0].append(...rows.slice(inSight).map(rowOf));
      drawMisses();
    }, 60);
  } else drawMisses();
  const left = result.rows.length - shown, missing = result.misses.length - missesShown;
  more.replaceChildren(
    ...(left > 0 ? [button(`Show ${Math.min(left, 200)} more of ${count(left, "other")} that fit`, () => { shown += 200; draw(); })] : []),
    ...(byRam.length > besideShown ? [button(`${count(byRam.length - besideShown, "other")} with RAM`, () => { besideShown += 200; draw(); })] : []),
    ...(missing > 0 ? [button(count(missing, "other") + (unknowns() ? " that do not fit or are not known" : " that do not fit"), () => { missesShown += 200; draw(); })] : []));
  chips.hidden = state.gpu !== "" && guess.hidden;
  chips.classList.toggle("kept", state.gpu !== ""); // their room stays: what is guessed stands there
  note.textContent = refused.length ? `The address asks for what is not here: ${refused.map(a.shown).join(", ")}. Taken instead: what the sentence says.${refused.some((said) => said.startsWith("count=")) ? ` Of cards alike ${options.count().map(([n]) => n).join(", ")} are told here; other numbers are the calculator’s.` : ""}` : "";
  query.textContent = sql();
  tell();
}
import(`./arrows.js${search}`).then(({ arrows }) => arrows(table, (row, down) => {
  const rows = [...table.querySelectorAll("tbody tr")];
  return rows[rows.indexOf(row) + down];
}));
// What is known after the answer: what bounds the speed, and the card's data sheet.
function sayCard() {
  const gpu = gpuNow();
  about.replaceChildren(a.h("a", { href: a.address(`gpus/${gpu.slug}/`) }, gpu.short), `: ${aboutCard()}. `, a.h("a", { href: calculatorAsked({ gpu: gpu.id }) }, "With another kind of card ›"));
}
function drawSpeeds() {
  result.rows.slice(0, shown).forEach((row, i) => table.tBodies[0].rows[i]?.querySelector("td.speed")?.replaceWith(...speedOf(row, row.cells[row.best].line)));
}
function drawMisses() {
  drawBeside();
  table.querySelector("tbody.misses").replaceChildren(...result.misses.slice(0, missesShown).map(missOf));
}
function button(text, act) {
  const made = a.h("button", { type: "button", class: "chip" }, text);
  made.addEventListener("click", act);
  return made;
}
async function several(window) {
  sheets ??= await a.load("data/cards.json");
  window.several ??= wishes.some((w) => w.file === window.name && w.isMade) ? { counts: [], shapes: [], shared: [] } : await file(`${window.name}-several`);
}

// ---- what stands beside the table: order, name, link, CSV
const sort = a.h("select", { name: "sort", "aria-label": "Order" }, ...Object.entries(ORDERS).map(([key, { label }]) => a.h("option", { value: key }, label)));
const find = a.h("input", { type: "search", name: "find", placeholder: "Part of a model’s name", "aria-label": "Part of a model’s name", autocomplete: "off", spellcheck: "false" });
sort.addEventListener("change", () => { state.sort = sort.value; isChosen = true; draw(); });
find.addEventListener("input", async () => { state.find = find.value; await naming(); isTyped = true; await draw(); });
let names;
async function naming() {
  if (!state.find.trim()) { isNamed = null; return; }
  names ??= await Promise.all([import(`./find.js${search}`), a.load("data/words.json")]);
  const [finding, spoken] = names, text = state.find;
  isNamed = (window) => finding.filter((window.folded ??= window.data.id.map(finding.fold)), text, spoken);
}
// Who types a card behind the name means that card.
function cardNamed() {
  const [finding, spoken] = names ?? [];
  const cards = finding && world.gpus.map((g) => ({ ...g, name: finding.fold(`${g.name} ${g.nominal} GB`), level: world.common.includes(g.id) ? 0 : 1, order: finding.byName(g.short, g.nominal, 0) }));
  const said = finding?.withCard(state.find, cards, spoken);
  if (!said) return [];
  const chip = button(`${said.name} on ${said.card.short}`, async () => {
    state.find = find.value = said.name;
    await naming();
    await change("gpu", said.card.id);
    find.focus();
  });
  chip.classList.add("chip");
  return [chip, " "];
}
const copy = button("Copy link", async () => {
  write();
  try { await navigator.clipboard.writeText(location.href); copy.textContent = "Copied"; } catch { copy.textContent = location.href; }
  setTimeout(() => { copy.textContent = "Copy link"; }, 3000);
});
const csv = button("CSV", () => {
  const { data } = current, { main } = data, quoted = (v) => (/[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v ?? ""));
  const lines = [["model_id", "parameters", "created", "best_format", "needs_bytes", isMade() ? `at_${keyOf()}` : "at_context_tokens", ...(hasSpeed() ? ["tokens_per_second_most"] : []), ...data.columns.map(([p, d, , placement]) => (isMade() ? `max_${keyOf()} ${placement ?? d}` : `max_context_tokens ${p === "inference" ? d : p}`))]];
  for (const { work, cells, best } of result.rows) lines.push([data.id[work], data.size[work] ? data.size[work] * 1e6 : "", data.made[work], data.columns[best][3] ?? data.columns[best][1], Math.round(needAt(cells[best].line, wanted()).total), wanted(), ...(hasSpeed() ? [current.speed(work, best, state.count, cells[best].line, wanted(), sheet(gpuNow().id))?.toFixed(1) ?? ""] : []), ...cells.map((c) => c?.longest ?? "")]);
  const link = a.h("a", { href: URL.createObjectURL(new Blob([lines.map((l) => l.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" })), download: `fits-${state.count}x-${gpuNow().id}-${state.want}-${wanted()}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
tools.replaceChildren(find, sort, copy, csv);

function sql() {
  const beside = countsRam(current) && gpuNow().bytes != null ? `\n\n-- and with a part of it in ${state.ram} GB of RAM\nFROM what_fits_beside('${gpuNow().id}', ${ramBytes()}, context_tokens := ${wanted()}${isLess() ? `, free_bytes := ${gpuNow().bytes}` : ""});` : "";
  return `${sqlOfWhole()}${beside}`;
}
function sqlOfWhole() {
  const folded = "-- each copy and quantisation by itself, and models of other tasks: the list folds what needs the same\n";
  const { data } = current, gpu = gpuNow().id;
  const columns = data.columns.slice(0, data.main), [phase, , engine] = columns[wishNow().asked[0]];
  const formats = [...new Set(wishNow().asked.map((c) => data.columns[c][1]))].map((d) => `'${d}'`).join(", ");
  if (isMade()) return queryOf(wished(), wanted(), gpu, [data.columns[result.rows[0]?.best ?? 0], ...columns], data.id[result.rows[0]?.work ?? 0]);
  if (state.count > 1 || isLess()) return `${folded}SELECT model_id, dtype_id, max(context_tokens) AS context_tokens -- of the published ones\nFROM footprint, gpu\nWHERE gpu_id = '${gpu}' AND gpu_count = ${state.count} AND phase_id = '${phase}' AND engine_id = '${engine}'\n  AND dtype_id IN (${formats}) AND sequences = 1 AND total_bytes * (1 + error_band) <= ${isLess() ? gpuNow().bytes ?? "NULL" : "capacity_bytes"}\nGROUP BY ALL\nORDER BY ALL;`;
  return `${folded}SELECT model_id, dtype_id, max_context_tokens\nFROM compatibility\nWHERE gpu_id = '${gpu}' AND phase_id = '${phase}' AND engine_id = '${engine}'\n  AND dtype_id IN (${formats}) AND context_tokens = 512 AND sequences = 1${phase === "inference" ? "" : " AND optimizer_id = 'adamw' AND checkpointing = 'full'"}\n  AND max_context_tokens >= ${wanted()}\nORDER BY ALL;`;
}
// A browser takes longer to change an address than to answer, so that letters wait for the last of them.
let later, isTyped = false, isChosen = false;
function tell() {
  clearTimeout(later);
  if (isTyped) later = setTimeout(write, 200);
  else write();
  isTyped = false;
}
function write() {
  const address = new URLSearchParams();
  const common = { ...start, system: a.memory.unsaidSystem(a.SYSTEMS), ...Object.fromEntries(SIZES.map((key) => [key, usual(key)])) };
  for (const key of KEYS) if (state[key] !== common[key] && (key === keyOf() || !SIZES.includes(key))) address.set(key, state[key]);
  if (!isOld) a.step(state, address.size ? `?${address}` : "", isChosen);
  isChosen = false;
  told = location.search;
}
let told = location.search;
a.onStep(async (left) => {
  Object.assign(state, left);
  [sort.value, find.value] = [state.sort, state.find];
  await naming();
  await draw();
}, () => { if (location.search !== told) location.reload(); });

if (!isOld) {
  read();
  sort.value = state.sort;
  find.value = state.find;
  await naming();
  await draw();
  performance.mark("interactive");
  if (!state.gpu && a.memory.get("gpu") === null) await guessCard(); // "" says that a card was named and taken back
  // what helps where a card is too small stands in another file, which nobody waits for
  (window.requestIdleCallback ?? setTimeout)(async () => {
    await several(current);
    if (isSettled()) { sayCard(); drawSpeeds(); drawMisses(); controls(); }
    box.dataset.whole = "";
  });
}
