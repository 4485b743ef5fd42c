// What every page shares: the data's shape, the verdict, numbers as text, and the card that the reader owns.
export const version = new URL(import.meta.url).search;
const UNKNOWN = Infinity;
// the rules of tables/sql/capacity, translated in the build
const rules = await import(`../../data/rules.js${version}`);
export const { needed, takes, card_verdict: cardVerdict, decode_most: decodeMost, share_most: shareMost, is_computer: isComputer } = rules;
// So many of a card in words: of what is a whole computer several are as many computers.
export const many = (n, g, name = g?.short) => (n > 1 ? `${n.toLocaleString("en")} × ${name}${g && isComputer(g) ? ` (${n.toLocaleString("en")} computers)` : ""}` : name);

export const address = (path) => new URL(`../../${path}`, import.meta.url).href;

export async function load(path, kind = "json") {
  const response = await fetch(address(path) + version);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return kind === "json" ? response.json() : kind === "bytes" ? response.arrayBuffer() : unpacked(response.body);
}
const unpacked = (stream) => new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
const SHAPE_FILES = 512; // as pipeline/render/data/shapes.py has it

// What models of one shape share (pipeline/render/data/shapes.py): the `rows` that the formulas ask, by table, the
// `points` that limits are read off, and every total of the book.
export async function shape(name) {
  const file = await load(`data/shapes/${parseInt(name.slice(0, 3), 16) % SHAPE_FILES}.bin`, "bytes"), view = new DataView(file), held = new TextDecoder("latin1");
  const place = [...Array(view.getUint32(0, true)).keys()].map((i) => 4 + 24 * i).find((at) => held.decode(new Uint8Array(file, at, 16)) === name);
  if (place === undefined) throw new Error(`no shape ${name}`);
  const packed = new Blob([new Uint8Array(file, view.getUint32(place + 16, true), view.getUint32(place + 20, true))]);
  const whole = await unpacked(packed.stream());
  const size = new DataView(whole).getUint32(0, true);
  return { ...JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, size))), totals: new Float32Array(whole, 4 + size) };
}
// A model's file for programs, which its page reads too.
export const told = (path) => load(`api/v1/models/${path}.json`);
// The rows of a shape under a model's name, as the formulas ask for them.
export function rowsOf({ model: { model_id, anatomy_note } }, rows) {
  const named = Object.entries(rows).map(([table, list]) => [table, list.map((row) => ({ model_id, ...row }))]);
  return { ...Object.fromEntries(named), model: [{ model_id, anatomy_note }], model_name: [{ name: model_id.toLowerCase(), model_id }] };
}

// `totals` holds, from `at`, KiB per GPU for each count, then the error band of each in ten-thousandths.
export const judge = (totals, at, counts, capacity) => judged(totals, at, counts, capacity, rules.chosen);
// The same where one card is not enough to whoever asks: the fewest that give the error too, else "tight" or "no".
export const several = (totals, at, counts, capacity) => judged(totals, at, counts, capacity, rules.several);
function judged(totals, at, counts, capacity, rule) {
  const n = counts.length, rows = [];
  for (let i = 0; i < n; i++) {
    const total = totals[at + i], gpu_count = counts[i];
    if (total !== UNKNOWN) rows.push({ gpu_count, total, need: needed(total, totals[at + n + i] / 10000) });
  }
  if (!rows.length) return { verdict: "unknown" };
  const row = rule(rows, capacity), verdict = rules.verdict_of(rows, row, capacity);
  return row ? { verdict, gpus: row.gpu_count, percent: Math.ceil((100 * row.total) / capacity), kib: row.total } : { verdict };
}

// Why a model has no total: the scenario's own reason, the model's context, or what is known of the model at all.
export function reasonText(world, totals, at, context, limit, otherwise) {
  const code = totals[at + world.counts.length];
  if (code > 0 && code < UNKNOWN) return world.reasons[code - 1];
  if (otherwise) return otherwise;
  return limit && limit < context ? `its own context ends at ${tokens(limit)} tokens` : "no footprint was published";
}

// The context that a slice answers for where a model reads less than the scenario's (pipeline/render/data/slices.py); null where it does not.
export function shorterContext(world, s, own) {
  if (!own || own >= s.context) return null;
  return Math.max(...world.scenarios.filter((each) => each.phase === s.phase && each.context <= own).map((each) => each.context));
}

// The verdict of a scenario on a card: that of memory, unless the engine does not run the format there, or nobody says that it does.
// `held` is the format of the checkpoint, for a scenario that takes it as published.
export function judgeOn(world, s, held, g, totals, at) {
  const verdict = judge(totals, at, world.counts, g.capacity);
  const no = refusal(world, s, held, g);
  return no && (no.certain || verdict.verdict !== "unknown") ? no : verdict; // what never runs needs no total
}

// What the weights of a model are held in, and behind it the type of one that runs on fewer cards in some engines.
export const heldOf = (models, number) => (models.format.values[models.format.of[number]] ?? "") + (models.limited?.[number] ? `/${models.limited[number]}` : "");
export const heldOn = (article) => (article.dataset.held ?? "") + (article.dataset.limited ? `/${article.dataset.limited}` : "");

export function refusal(world, s, held, g) {
  const { runs, refusals } = world.support, [format, type] = (held ?? "").split("/");
  const key = (running) => runs[`${s.engine} ${running} ${s.phase} ${s.attention ?? "flash"}`], dtype = s.dtypeId === "stored" ? format : s.dtypeId;
  s.rows ??= new Map(); // by the format held: the same few are asked for at every cell
  if (!s.rows.has(held)) s.rows.set(held, (type && key(`${dtype}/${type}`)) || key(dtype));
  const row = s.rows.get(held);
  const code = row && row.charCodeAt(g.kind) - 48;
  if (code === 0) return null;
  const [certain, why] = row ? refusals[code - 1] : [false, rules.card_reason({})];
  return { verdict: "unknown", text: certain ? "won’t run" : "unknown", certain, why };
}

// The figure in a cell: how full each card gets, or how much of it stays free.
export const FIGURES = [["full", "% full"], ["free", "GiB free"]];
export function verdictText({ verdict, gpus, percent, kib, text }, figure, capacity) {
  if (text) return text;
  if (verdict === "no" || verdict === "unknown") return verdict;
  const word = gpus === 1 ? verdict : verdict === "tight" ? `${gpus} × tight` : `${gpus} ×`;
  return figure === "free" ? `${word} ${gib(capacity - kib)} free` : `${word} ${percent}\u00a0%`;
}

// The same in a sentence, for whoever points at a cell.
export function verdictTold(world, s, held, gpu, totals, at, hasWindows) {
  const { verdict, gpus, kib, why } = judgeOn(world, s, held, gpu, totals, at);
  if (why) return `${gpu.name}: ${why}`;
  if (verdict === "unknown") return "";
  const gives = `${gpu.name} gives ${gib(gpu.capacity)} GiB`;
  if (verdict === "no") {
    const least = Math.min(...totals.subarray(at, at + world.counts.length));
    return `${gives}; at least ${gib(least)} GiB are needed on each, on as many cards as were worked out`;
  }
  const band = totals[at + world.counts.length + world.counts.indexOf(gpus)] / 100;
  return `${gives}; ${gib(kib)} GiB are needed${gpus > 1 ? ` on each of ${gpus}` : ""}, ± ${+band.toFixed(1)} %; ${gib(gpu.capacity - kib)} GiB stay free${settingNeeded(world, s.engine, kib, rules.needed(kib, band / 100), gpu.capacity, s.sequences, shareOf(world, gpu, gpus), null, hasWindows ? 2 : 1)}`;
}

// What a server's share is of: the whole card, and what has to be free outside of it, in `unit` bytes (those of the totals).
export const shareOf = (world, gpu, gpus, unit = 1024, usual = null) => ({
  vllm_default_share: usual ?? world.server_share, whole: ((gpu.whole ?? gpu.capacity) * 1024) / unit,
  apart: ((world.server_apart?.[gpus >= 4 ? 2 : gpus > 1 ? 1 : 0] ?? 0) * 1024) / unit,
});

// What a program has to be told: a cache that is not its usual one (`cache`, as the engine names it); of vLLM the share of a card, where what it
// takes by default is too little, and no more requests and tokens in a step than its figures count (large cards have defaults of their own): a cache of
// windows holds those of two `steps` at once, of one more than there are stages (engine_setting.sql).
export function settingNeeded(world, engine, total, need, capacity, sequences, share, cache, steps = 1) {
  const told = [cache, rules.share_needed(engine, total, need, capacity, share)];
  if (engine === "vllm" && world.server_counts && total <= capacity) {
    const [requests, tokens] = [world.server_counts[0], Math.floor(world.server_counts[1] / steps)].map((count) => Math.max(count, sequences ?? 1));
    told.push(`--max-num-seqs ${requests} --max-num-batched-tokens ${tokens}`);
  }
  return told.some(Boolean) ? `; start it with ${told.filter(Boolean).join(" ")}` : "";
}

// one for each number of digits: to make one takes longer than to use it a hundred times
const forms = [0, 1, 2, 3].map((n) => new Intl.NumberFormat("en", { minimumFractionDigits: n, maximumFractionDigits: n }));
// What is no number is told in a word, whatever it was to be a figure of.
const isNone = (n) => n === undefined || Number.isNaN(n);
export function gib(kib) {
  if (kib === UNKNOWN || isNone(kib)) return "unknown";
  const value = kib / 2 ** 20;
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : value >= 0.095 ? 2 : 3;
  return forms[digits].format(value);
}

export function short(number) {
  if (!number) return "";
  for (const [limit, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]])
    if (+number.toPrecision(3) >= limit) {
      const value = number / limit;
      return (value >= 100 ? value.toFixed(0) : String(+value.toPrecision(3))) + unit;
    }
  return String(number);
}

// What a card gives one program under a system (tables/sql/capacity/system.sql); null where nobody can say, so that what is free has to be typed.
export const SYSTEMS = [
  ["linux", "Linux, no desktop"], ["windows", "Windows"], ["desktop", "Linux with a desktop"],
];
// Those that all cards have a number under: what a desktop leaves nobody can say of so many; where one card is asked about it is typed.
export const COUNTED_SYSTEMS = SYSTEMS.filter(([id]) => id !== "desktop");
export const under = (constants, system, { segment, nominal, bytes }) => rules.system_bytes({ segment, memory_gib_nominal: nominal, capacity_bytes: bytes }, system, constants);
// A field for a number that may have a point.
export const decimalInput = (given) => h("input", { type: "text", inputmode: "decimal", autocomplete: "off", ...given });
// “10,5” as typed is 10.5; three figures behind a comma may be thousands.
export const decimal = (text) => text.trim().replace(/^(\d*),(\d{1,2}|\d{4,})$/, "$1.$2");
// A length as people type it: 32k are 32,768 tokens, 1M 1,048,576; 32,768 is one number. (A field for numbers alone would pass the k over: 32 tokens.)
export function length(text) {
  const typed = text.trim().replace(/(\d)[,_ \u00a0](?=\d{3}(?!\d))/g, "$1"), found = /^(\d{1,9}(?:\.\d{1,3})?) ?([km])$/i.exec(typed);
  return found ? String(Math.floor(+found[1] * 1024 ** (found[2].toLowerCase() === "k" ? 1 : 2))) : typed;
}
export const lengthInput = (given) => h("input", { type: "text", inputmode: "numeric", autocomplete: "off", ...given });
// Free memory as people type it, in GiB; null where it is no amount.
export const freeBytes = (text) => (text !== "" && +text > 0 && +text < 1e6 ? Math.floor(+text * 2 ** 30) : null);

// How a training is done, in words.
export const recipe = (world, optimizer, checkpointing) => `${world.optimizers[optimizer] ?? optimizer}, ${world.kept[checkpointing] ?? checkpointing}`;

// Tokens a second, as many figures as mean something.
export const rate = (n) => (isNone(n) ? "unknown" : n >= 100 ? Math.round(n).toLocaleString("en") : n >= 10 ? n.toFixed(0) : n.toPrecision(2));

// A format as people say it: Q4_K_M; words.py has the same.
export const formatName = (dtypeId) => (dtypeId.startsWith("gguf-") ? dtypeId.slice(5).toUpperCase() : dtypeId);

// A context rounded down to what people say: never more than there is.
export const roundedTokens = (n) => (n < 4096 ? tokens(n) : n < 2 ** 20 ? `${Math.floor(n / 1024)}k` : `${+(n / 2 ** 20).toPrecision(3)}M`);

// How far it goes: "all" where that is all that the model reads, "≥" where nobody looked further (`last`), "?" where its config does not say how far it reads.
export const reached = (n, whole, last, text = roundedTokens(n)) => (whole && n >= whole ? `all ${text}` : `${last && n >= last ? "≥ " : ""}${text}${whole ? "" : "?"}`);
export const UNREAD = "Its config here does not say how many tokens it was made to read: longer ones fit, and may make no sense";

export const tokens = (n) => (isNone(n) ? "unknown" : n >= 1024 && n % 1024 === 0 ? `${n / 1024}k` : n.toLocaleString("en"));

// Names from outside are only ever set as text; control and direction characters are shown, not obeyed.
export const shown = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export function select(name, label, options, value, change) {
  const box = h("select", { name }, ...options.map((o) => {
    if (o.group) return h("optgroup", { label: o.group }, ...o.options.map(option));
    return option(o);
  }));
  if (value != null) box.value = value;
  box.addEventListener("change", () => change(box.value));
  return h("label", {}, h("span", {}, label), box);
}
const option = ([value, text]) => h("option", { value: String(value) }, text);

// ---- the way back: what was chosen is a step of it, what is typed is none. It keeps the state, of which addresses leave out what is remembered.
export const step = (state, address, isChosen) => {
  const isNew = address !== location.search;
  if (isNew || history.state === null) history[isNew && isChosen ? "pushState" : "replaceState"](state, "", `${location.pathname}${address}${location.hash}`);
};
// `draw` shows a state that was left; a step to a place in the page has none.
export const onStep = (draw, otherwise) => addEventListener("popstate", ({ state }) => {
  if (state === null) return otherwise?.();
  for (const key of ["gpu", "system", "ram", "cards", "figure"]) if (key in state && memory.get(key) !== null) memory.set(key, state[key]);
  draw(state);
});

// ---- what an address asks for
// Keys that are not ours: the theme's search, and what other sites add to a link.
const FOREIGN = /^(?:q|h|fbclid|gclid|utm_.*)$/;
// A value as a list has it, whatever the case of its letters; null where it is none of them.
export const listed = (value, values) => values.find((v) => String(v) === value) ?? values.find((v) => String(v).toLowerCase() === value.toLowerCase()) ?? null;
// A number as people write it: 8192, 8k; null where it is none.
export function number(text) {
  const [, digits, thousands] = /^\s*(\d+(?:\.\d+)?)\s*(k?)\s*$/i.exec(text) ?? [];
  return digits === undefined ? null : +digits * (thousands ? 1024 : 1);
}
export const foreign = (asked, known) => [...new Set(asked.keys())].filter((key) => !known.includes(key) && !FOREIGN.test(key)).map((key) => `${key}=${asked.get(key)}`);
export const refused = (list) => (list.length ? `The address asks for what is not here: ${list.map(shown).join(", ")}. What the fields show is used instead.` : "");

// The scenario of a format that is meant where only its name is given, as SQL and the JSON do: that of its own engine, unless the
// chosen card does not run that and runs the format with another.
export function ofFormat(world, scenarios, dtypeId, gpu) {
  const own = world.dtypes.find(([id]) => id === dtypeId)?.[2];
  const left = scenarios.filter((s) => s.dtypeId === dtypeId).sort((x, y) => (y.engine === own) - (x.engine === own));
  const runs = (s) => !gpu || !refusal(world, s, "", gpu);
  return left.find(runs) ?? left[0];
}

export const memory = {
  get(key) {
    try { return localStorage.getItem(`almanac:${key}`); } catch { return null; }
  },
  set(key, value) {
    try { localStorage.setItem(`almanac:${key}`, value); } catch { /* private windows may refuse */ }
  },
  // the system that was last chosen, where it is one of these: a card gives less under Windows on every page
  system(systems = COUNTED_SYSTEMS) {
    const [[usual]] = systems, known = systems.map(([id]) => id), last = memory.get("system");
    return known.includes(last) ? last : usual;
  },
  // the system that an address need not name: the usual one, unless another is remembered
  unsaidSystem(systems = COUNTED_SYSTEMS) {
    const [[usual]] = systems;
    return memory.system(systems) === usual ? usual : "";
  },
  // what was last typed as free memory of a card, which says nothing of another
  free(gpu) {
    const [of, free = ""] = (memory.get("free") ?? "").split(" ");
    return gpu && of === gpu && freeBytes(free) !== null ? free : "";
  },
  setFree(gpu, free) { memory.set("free", free && gpu ? `${gpu} ${free}` : ""); },
};

// Cards: which of them a table shows. `mine` comes first wherever it is known.
const SETS = [
  ["common", "common"], ["mine", "only mine"], ["consumer", "consumer"], ["workstation", "workstation"],
  ["datacenter", "data centre"], ["unified", "unified memory"], ["all", "all"],
];
const SIZES = [["0-11", "under 12 GB"], ["12-15", "12 GB"], ["16-23", "16 to 20 GB"], ["24-31", "24 GB"], ["32-63", "32 to 48 GB"], ["64-127", "64 to 96 GB"], ["128-9999", "128 GB and more"]];
const VENDORS = { nvidia: "NVIDIA", amd: "AMD", apple: "Apple", intel: "Intel", google: "Google" };
export function sets(world) {
  const vendors = [...new Set(world.gpus.map((g) => g.vendor))].map((v) => [`vendor:${v}`, VENDORS[v] ?? v]);
  return [...SETS, { group: "by vendor", options: vendors }, { group: "by memory", options: SIZES.map(([id, name]) => [`memory:${id}`, name]) }];
}
function inSet(set) {
  const [kind, value] = set.split(":");
  if (kind === "vendor") return (g) => g.vendor === value;
  if (kind !== "memory") return (g) => g.segment === set;
  const [least, most] = value.split("-").map(Number);
  return (g) => g.nominal >= least && g.nominal < most + 1;
}

export function cards(world, set, mine, pins = []) {
  let list;
  if (set === "all") list = world.gpus;
  else if (set === "mine") list = world.gpus.filter((g) => g.id === mine);
  else if (set === "common") list = world.common.map((id) => world.gpus.find((g) => g.id === id));
  else list = world.gpus.filter(inSet(set));
  list = [...list].sort((a, b) => a.capacity - b.capacity);
  // the reader's own card first, then what was pinned, in the order of pinning
  const first = [...new Set([mine, ...pins])].map((id) => world.gpus.find((g) => g.id === id)).filter(Boolean);
  return [...first, ...list.filter((g) => !first.includes(g))];
}

export function gpuOptions(world) {
  const groups = Map.groupBy ? Map.groupBy(world.gpus, (g) => g.segment) : group(world.gpus);
  return [["", "choose your card"], ...[...groups].map(([segment, list]) => ({
    group: segment,
    options: list.map((g) => [g.id, `${g.short} · ${g.nominal} GB`]),
  }))];
}
function group(list) {
  const groups = new Map();
  for (const g of list) groups.set(g.segment, [...(groups.get(g.segment) ?? []), g]);
  return groups;
}

export function gpuHead(g, mine, base) {
  return h("th", { scope: "col", class: g.id === mine ? "g mine" : "g" },
    h("a", { href: `${base}gpus/${g.slug}/`, title: `${g.name}: gives ${gib(g.capacity)} of ${g.nominal} GiB` }, g.short),
    h("small", {}, g.id === mine ? `mine · ${gib(g.capacity)}` : gib(g.capacity)));
}

export async function world() {
  const w = await load("data/scenarios.json");
  w.gpus = w.gpus.map(([id, slug, name, short, segment, vendor, nominal, capacity, kind, bytes, whole]) =>
    ({ id, slug, name, short, segment, vendor, nominal, capacity, kind, bytes, whole })); // capacity in KiB, and to the byte; the whole card in KiB
  w.scenarios = w.scenarios.map(([phase, dtypeId, engine, context, sequences, optimizer, checkpointing, dtype = dtypeId], index) =>
    ({ phase, dtypeId, dtype, engine, context, sequences, optimizer, checkpointing, index }));
  // contexts that only a few models have are offered on their pages
  for (const s of w.scenarios) s.common = w.contexts[s.phase === "inference" ? "inference" : "training"].includes(s.context);
  w.width = 2 * w.counts.length;
  // a slice holds a format of a phase on an engine: where in it the scenarios stand, one after the other
  const lengths = new Map();
  for (const s of w.scenarios.filter((each) => each.common)) {
    s.slice = `${s.phase}_${s.dtypeId}_${s.engine}`;
    s.place = lengths.get(s.slice) ?? 0;
    lengths.set(s.slice, s.place + 1);
  }
  return w;
}

// The models, as columns. What is left out in the file is filled in here.
export async function models() {
  const m = await load("data/models.json");
  m.size = m.size.map((millions) => millions && millions * 1e6);
  m.gated = new Set(m.gated);
  m.moe = new Set(m.moe);
  m.windowed = new Set(m.windowed);
  return m;
}
