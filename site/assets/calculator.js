// The calculator: any scenario of `footprint_of`, answered by the formulas as they are translated from the SQL, also backwards: how long a
// context, how many users, on how few cards, on which card.
const search = new URL(import.meta.url).search;
const [a, r, together, plan, asking] = await Promise.all(["almanac", "reckon", "together", "plan", "asking"].map((name) => import(`./${name}.js${search}`)));
const { shared } = r;
const [world, models, support] = await Promise.all([a.world(), a.models(), a.load("data/support.json")]);
world.support = support; // of every engine and attention, not only of what is published
const { GROUPS, FIELDS, applies, hint, label, problem, value } = await import(`./scenario_fields.js${search}`);
const root = document.getElementById("calc");
const form = root.querySelector("form");
const answer = root.querySelector(".answer");
const shown = document.getElementById("calculated");
// What can be asked: the field that is the answer is none of the questions.
const ASKS = [["memory", "how much memory it takes"], ["context", "the longest context"], ["users", "the most users"], ["cards", "the fewest cards"], ["card", "which cards do it"]];
const ANSWERED = { context: "context_tokens", users: "sequences", cards: "gpu_count" };

// ---- the scenario: in the address, so that it can be sent. What nobody chose is empty here; its field shows what is taken instead
const ORDER = Object.keys(FIELDS).filter((key) => !shared.arguments || shared.arguments.includes(key) || FIELDS[key].pipeline || FIELDS[key].work || (FIELDS[key].beside && shared.objective));
const short = (key) => key.replace(/_(id|tokens)$/, "");
const first = asking.firstModel(models);
function read(asked) {
  const s = { raw: String(asked), model: a.listed(asked.get("model") ?? first, models.id) ?? asked.get("model"), gpu: asked.get("gpu") ?? "", free: a.decimal(asked.get("free") ?? ""), ram: a.decimal(asked.get("ram") ?? ""), beside: asked.get("beside") ?? "", with: "", wrongOthers: [] };
  s.gpu = a.listed(s.gpu, world.gpus.map((g) => g.id)) ?? "";
  if (s.gpu) ({ others: s.with, wrong: s.wrongOthers } = together.read(asked.get("with") ?? "", world));
  s.system = a.listed(asked.get("system") ?? "", r.SYSTEMS.map(([id]) => id)) ?? r.SYSTEMS[0][0];
  s.ask = a.listed(asked.get("ask") ?? "", ASKS.map(([id]) => id)) ?? ASKS[0][0];
  // the front page's address says dtype, context, phase
  for (const key of ORDER) s[key] = asked.get(key) ?? asked.get(short(key)) ?? FIELDS[key].start ?? "";
  for (const key of ORDER) if (FIELDS[key].step === "any") s[key] = a.decimal(s[key]);
  // a format as the front page names it, "bf16 (vLLM)", is a format and its engine; by its id alone it is the one that the card runs
  const published = world.scenarios.filter((each) => each.phase === s.phase_id);
  const meant = published.find((each) => each.dtype === s.dtype_id && each.dtype !== each.dtypeId) ??
    ((asked.has("dtype") || asked.has("dtype_id")) && a.ofFormat(world, published, s.dtype_id, world.gpus.find((g) => g.id === s.gpu)));
  if (meant) {
    s.dtype_id = meant.dtypeId;
    if (!s.engine_id && meant.engine !== world.dtypes.find(([id]) => id === meant.dtypeId)?.[2]) s.engine_id = meant.engine;
  }
  return s;
}
const asked = new URLSearchParams(location.search);
const noCard = asked.get("gpu") && a.listed(asked.get("gpu"), world.gpus.map((g) => g.id)) === null ? asked.get("gpu") : "";
if (!asked.has("gpu") && a.memory.get("gpu")) asked.set("gpu", a.memory.get("gpu"));
if (!asked.has("system")) {
  asked.set("system", a.memory.system(r.SYSTEMS));
  if (!asked.has("free")) asked.set("free", a.memory.free(asked.get("gpu") ?? ""));
}
// (whose computer it is, is known with the card alone)
if (!asked.has("ram") && asked.get("gpu") && asked.get("gpu") === a.memory.get("gpu") && a.memory.get("ram")) asked.set("ram", a.memory.get("ram"));
const state = read(asked);
// what the formulas read of the model is fetched while the fields are made
{
  const number = models.id.indexOf(state.model);
  if (number >= 0 && models.reason.of[number] === null && !models.pipelines?.includes(number)) r.ofModel(models.paths[number] ?? state.model).catch(() => {}); // who asks for it hears of that
}
const wrongKeys = a.foreign(asked, ["model", "gpu", "with", "free", "ram", "system", "ask", "beside", ...ORDER, ...ORDER.map(short)]);
wrongKeys.push(...state.wrongOthers.map((id) => `with=${id}`), ...(asked.get("with") && !state.gpu ? [`with=${asked.get("with")}`] : []));
for (const key of ["ask", "system"]) if (asked.has(key) && asked.get(key) !== state[key]) wrongKeys.push(`${key}=${asked.get(key)}`);

// ---- what a model can be asked about: pictures and sound only where the formulas know them
const looks = new Map();
// by the Hub’s names of tasks: automatic-speech-recognition, text-to-audio …
const isOfSound = (number) => /speech|audio/.test(models.task.values[models.task.of[number]] ?? "");
async function about(model) {
  const number = models.id.indexOf(model), isPipeline = number >= 0 && (models.pipelines?.includes(number) ?? false);
  const own = number >= 0 && models.reason.of[number] === null && !isPipeline ? await r.ofModel(models.paths[number] ?? model) : null;
  const parts = isPipeline ? (await r.pipelines())[model] ?? [] : [], isVideo = parts.some((part) => part.stage === "decode" && part.frames_at_once !== 1);
  if (!looks.has(model)) {
    // who hears a window of a fixed length reads the next one after it, so that longer sound takes no more (as pipeline/render/data/made.py has it)
    const tower = own?.shape?.[0]?.tower, hearsWindows = tower?.component === "encoder" && tower.grid === "fixed", answered = (wanted) => (own == null ? null : r.ask(own, { model_id: model, phase_id: "inference", ...wanted })), knows = (wanted) => tower != null && answered(wanted)?.total_bytes != null;
    // what only hears is as long as its sound
    looks.set(model, { sees: knows({ images: 1 }), hears: hearsWindows || knows({ audio_seconds: 1 }), hearsWindows, soundReason: isOfSound(number) && !hearsWindows ? answered({ audio_seconds: 1 })?.unknown_reason : null, isOnlyHearing: own != null && tower?.component === "audio" && !own.shape[0].caches });
  }
  return { model, number, own, isPipeline, parts, isVideo, made: shared.made?.[isVideo ? "video" : "picture"] ?? {}, isTold: number >= 0 && (own != null || isPipeline), ...looks.get(model) };
}

// What is taken where nothing was chosen, equal to what a model's page opens with (scenario_set.csv); the rest the formulas fill in.
const opening = (phase) => shared.opening?.[phase] ?? {};
const optionsOf = (s, key) => (FIELDS[key].isOfAsked ? FIELDS[key].choices(shared, world, s) : options[key]);
const faultOf = (s, key) => problem(key, s[key], optionsOf(s, key));
// what decides which fields there are
const sound = (s, of) => ({ ...s, ...(faultOf(s, "phase_id") ? { phase_id: FIELDS.phase_id.start } : {}), sees: of?.sees ?? true, hears: of?.hears ?? true, hearsWindows: of?.hearsWindows ?? false, isOnlyHearing: of?.isOnlyHearing ?? false, isPipeline: of?.isPipeline ?? false });
const TOGETHER = "gguf-q4_k_m"; // unlike cards are llama.cpp's
function assumed(s, key, of) {
  const { phase_id, isPipeline, isOnlyHearing, hearsWindows } = sound(s, of);
  if (isPipeline) return of.made[key] ?? FIELDS[key].start; // what its page speaks of
  // what nobody chose is the program's own, or that of who trains on preferences
  if (["program", "objective_id"].some((name) => s[name] && applies(name, sound(s, of)) && !faultOf(s, name))) return FIELDS[key].start ?? null;
  if (key === "dtype_id" && s.with) return TOGETHER;
  if (key === "audio_seconds" && (isOnlyHearing || hearsWindows)) return FIELDS[key].usual;
  const wanted = opening(phase_id)[key] ?? FIELDS[key].start;
  const limit = models.context[of?.number ?? -1];
  if (key !== "context_tokens" || !limit || limit >= wanted) return wanted;
  const published = world.scenarios.filter((each) => each.phase === phase_id && each.context <= limit).map((each) => each.context);
  return published.length ? Math.max(...published) : limit;
}
// What a field shows that the formulas leave to the model.
function ofModel(key, of) {
  const tower = of.own?.shape?.[0]?.tower;
  if (key === "images" || key === "audio_seconds") return 0;
  if (key === "max_context_tokens") return models.context[of.number];
  if (key === "image_width" || key === "image_height") return tower?.default_pixels > 0 ? Math.round(Math.sqrt(tower.default_pixels)) : shared.constants?.[0]?.default_image_side_pixels;
  return null;
}

// ---- the fields
const boxes = {}, options = {}, beside = {};
function field(key) {
  const { choices, step = "1" } = FIELDS[key];
  beside[key] = a.h("small", { class: "told-beside", role: "status", hidden: true });
  options[key] = choices?.(shared, world, state);
  if (choices) {
    const box = a.select(key, label(key, state), options[key], state[key], (text) => change(key, text));
    box.append(beside[key]);
    return box;
  }
  return numberField(key, label(key, state), step, beside[key]);
}
function numberField(key, name, step, told) {
  const isLength = key.endsWith("_tokens"), read = isLength ? a.length : a.decimal;
  const input = isLength ? a.lengthInput({ name: key }) : step === "1" ? a.h("input", { type: "number", name: key, min: "0", step, inputmode: "numeric" }) : a.decimalInput({ name: key });
  input.addEventListener("input", () => change(key, input.validity.badInput ? "what was typed" : read(input.value), false));
  input.addEventListener("blur", () => calculate());
  return a.h("label", {}, a.h("span", {}, name), input, told);
}
// Each field shows the value that is taken, and beside it what is wrong with what was asked for.
function show(row, of) {
  for (const key of ORDER) {
    const control = boxes[key].querySelector("select, input");
    const list = FIELDS[key].isOfAsked ? optionsOf(state, key) : [];
    if (list.length && String(list) !== String([...control.options].map((o) => [o.value, o.text]))) control.replaceChildren(...list.map(([value, text]) => a.h("option", { value }, text)));
    const taken = state[key] !== "" ? state[key] : String(row?.shown?.[key] ?? row?.[key] ?? assumed(state, key, of) ?? ofModel(key, of) ?? "");
    const isTyping = control === document.activeElement && control.localName === "input";
    const emptied = isTyping && control.value === "" && state[key] === "";
    const wrong = faultOf(state, key) || hint(key, state[key]) || (emptied && taken !== "" ? `Empty: ${(+taken).toLocaleString("en")} is taken.` : "");
    if (!isTyping && control.value !== taken) control.value = taken;
    boxes[key].classList.toggle("assumed", state[key] === "");
    beside[key].textContent = a.shown(wrong);
    beside[key].hidden = !wrong;
    control.setAttribute("aria-invalid", String(Boolean(faultOf(state, key))));
  }
  const input = freeField.querySelector("input"), most = cardOf(state)?.bytes ?? Infinity;
  const wrong = freeFault(state) || (a.freeBytes(state.free) > most ? `${cardOf(state).short} gives ${a.gib(most / 1024)} at most, which is taken.` : "");
  input.setAttribute("aria-invalid", String(Boolean(wrong)));
  system.hidden = cardOf(state)?.vendor === "apple"; // a Mac has one system
  if (input !== document.activeElement && input.value !== state.free) input.value = state.free;
  freeTold.textContent = a.shown(wrong);
  freeTold.hidden = !wrong;
  const typed = ramField.querySelector("input");
  typed.setAttribute("aria-invalid", String(Boolean(ramFault(state))));
  if (typed !== document.activeElement && typed.value !== state.ram) typed.value = state.ram;
  ramTold.textContent = a.shown(ramFault(state));
  ramTold.hidden = !ramFault(state);
  input.placeholder = cardOf(state) && bytesOf({ ...state, free: "" }) ? a.gib(bytesOf({ ...state, free: "" }) / 1024) : "";
}
const card = a.select("gpu", "My card", a.gpuOptions(world), state.gpu, (value) => {
  a.memory.set("gpu", value);
  if (!value) state.with = "";
  state.free = a.memory.free(value); // what was typed is of the other card
  change("gpu", value);
});
const others = a.h("div", { class: "controls", "data-part": "others" });
if (noCard) card.append(a.h("small", { class: "told-beside", role: "status" }, `“${a.shown(noCard)}” is not a card here.`));
card.addEventListener("change", () => card.querySelector(".told-beside")?.remove());
const freeTold = a.h("small", { class: "told-beside", role: "status", hidden: true });
const freeField = numberField("free", "Free memory, GiB", "any", freeTold);
const ramTold = a.h("small", { class: "told-beside", role: "status", hidden: true });
const ramField = numberField("ram", "RAM of the computer, GB", "any", ramTold);
const system = a.select("system", "System", r.SYSTEMS, state.system, (value) => { a.memory.set("system", value); change("system", value); });
const wanted = a.select("ask", "I want to know", ASKS, state.ask, (value) => change("ask", value));
const groups = GROUPS.map(([name, fields]) => {
  const keys = Object.keys(fields).filter((key) => ORDER.includes(key));
  const set = a.h("fieldset", { class: "controls" }, a.h("legend", {}, name), ...keys.map((key) => (boxes[key] = field(key))));
  return { set, keys };
});
const pin = a.h("button", { type: "button", class: "chip" }, "Set this beside another");
pin.addEventListener("click", () => { change("beside", String(addressOf(state, false))); });
const copy = a.h("button", { type: "button", class: "chip" }, "Copy link");
copy.addEventListener("click", async () => {
  try { await navigator.clipboard.writeText(location.href); copy.textContent = "Copied"; } catch { copy.textContent = location.href; }
  setTimeout(() => { copy.textContent = "Copy link"; }, 3000);
});
const told = a.h("p", { class: "status told", role: "status" }, a.refused(wrongKeys));
told.hidden = !wrongKeys.length;
const own = a.h("details", { class: "more" }, a.h("summary", {}, "A model of your own: its config.json, in a terminal"));
const pasted = a.h("textarea", { rows: 5, name: "config", "aria-label": "config.json", placeholder: "Paste the config.json here, or drop the file", spellcheck: "false" });
const ownSaid = a.h("div", { role: "status" });
own.append(pasted, ownSaid);
pasted.addEventListener("input", () => { sayOwn(pasted.value); calculate(); });
for (const kind of ["dragover", "drop"]) pasted.addEventListener(kind, async (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer?.files ?? [];
  if (kind === "drop" && file) { pasted.value = await file.text(); sayOwn(pasted.value); calculate(); }
});
// The readers of configs are a program of their own: what a page can say of one is whether the model is listed here, and the command that answers.
function sayOwn(text) {
  ownSaid.replaceChildren();
  if (!text.trim()) return;
  let config;
  try { config = JSON.parse(text); } catch (error) { return ownSaid.append(a.h("p", {}, `This is no JSON: ${a.shown(error.message)}.`)); }
  if (!config || typeof config !== "object" || Array.isArray(config) || typeof config.model_type !== "string") return ownSaid.append(a.h("p", {}, "A config.json says a model_type; this does not."));
  const name = typeof config._name_or_path === "string" && models.id.includes(config._name_or_path) ? config._name_or_path : null;
  ownSaid.append(a.h("p", {}, ...(name ? ["It names itself ", a.h("a", { href: `?${new URLSearchParams({ ...Object.fromEntries(addressOf(state)), model: name })}` }, a.shown(name)), ", which is listed here, unless it was changed since. "] : []),
    `The reader of ${a.shown(config.model_type)} is part of the program and not of this page, which sends nothing anywhere. Beside the file, `, a.h("a", { href: a.address("terminal/") }, "in a terminal"), ":"),
    a.h("pre", {}, a.h("code", {}, `vram-almanac fits config.json${state.gpu ? ` --gpu ${state.gpu}` : ""}${state.context_tokens && !faultOf(state, "context_tokens") ? ` --context ${state.context_tokens}` : ""}`)));
}
const modelBox = asking.modelField(models, state.model, (value, isChoice = false) => change("model", value, isChoice));
form.append(told, a.h("div", { class: "controls" }, modelBox, wanted), a.h("div", { class: "controls" }, card, system, freeField, ramField), others, ...groups.map(({ set }) => set), a.h("div", { class: "tools" }, pin, copy), own);
form.addEventListener("submit", (event) => event.preventDefault());
let isChosen = false;
function change(key, value, isChoice = true) {
  if (state[key] === value) return;
  isChosen = isChoice;
  if (key === "phase_id" && state.dtype_id === opening(state.phase_id).dtype_id) state.dtype_id = ""; // what the other phase begins with
  if (key === "program") state.program_version = ""; // which is the other one's
  state[key] = value;
  if (key === "free" && (value === "" || !freeFault(state))) a.memory.setFree(state.gpu, value);
  if (key === "ram" && (value === "" || !ramFault(state))) a.memory.set("ram", value);
  told.hidden = true;
  return calculate();
}

// ---- the memory that there is: typed, or what the card gives
const cardOf = (s) => world.gpus.find((g) => g.id === s.gpu);
const freeFault = (s) => (s.free !== "" && !(+s.free > 0 && +s.free < 1e6) ? `“${s.free}” is no amount of memory, in GiB.` : "");
const ramFault = (s) => (s.ram !== "" && a.freeBytes(s.ram) === null ? `“${s.ram}” is no amount of memory, in GB.` : "");
// Where the computer's memory is a part of the answer: one card, and a format that llama.cpp runs, which may leave a part of the model there.
const takesRam = (s, row, bytes) => isBeside(s, row, bytes) && row.engine_id === "llama.cpp";
const isBeside = (s, row, bytes) => s.ask === ASKS[0][0] && bytes != null && !s.with && row?.phase_id === "inference" && row.gpu_count === 1 && !(cardOf(s) && a.isComputer(cardOf(s)));
// It is asked for besides where the format that pages open with does not fit and no other program was chosen: how it still does is in one of those.
const USUAL_PACKED = "gguf-q4_k_m";
const asksRam = (s, row, bytes, own) => takesRam(s, row, bytes) || (isBeside(s, row, bytes) && !s.program && !s.engine_id && row.total_bytes != null && !r.holds(row, bytes) && r.ask(own, { model_id: s.model, phase_id: "inference", dtype_id: USUAL_PACKED })?.total_bytes != null);
// (more than a card gives is not free of it)
const bytesOf = (s) => (s.free !== "" && !freeFault(s) ? Math.min(Math.floor(+s.free * 2 ** 30), cardOf(s)?.bytes ?? Infinity) : cardOf(s) ? r.under(s.system, cardOf(s)) : null);
const named = (s, n = 1) => a.many(n, cardOf(s), cardOf(s)?.short ?? "the card");
const gives = (s, n = 1) => (s.free !== "" && !freeFault(s) ? `${a.gib(bytesOf(s) / 1024)} GiB free${n > 1 ? " on each" : ""}` : `${n > 1 ? "each of which gives" : "which gives"} ${s.system === "windows" && bytesOf(s) < cardOf(s).bytes ? "about " : ""}${a.gib(bytesOf(s) / 1024)} GiB${s.system === "windows" && bytesOf(s) < cardOf(s).bytes ? " under Windows" : ""}`);
// My card and those beside it; null where there are none, or nobody knows what one gives.
function cardsOf(s) {
  if (!s.with || bytesOf(s) == null || ["cards", "card"].includes(s.ask) || (s.phase_id || "inference") !== "inference") return null;
  const beside = s.with.split(",").map((id) => world.gpus.find((g) => g.id === id)).map((g) => ({ g, bytes: r.under(s.system === "desktop" ? "linux" : s.system, g) }));
  return [{ g: cardOf(s), bytes: bytesOf(s) }, ...beside];
}
// A card that nobody can say of what it gives: with a desktop on it.
const isOpen = (s) => cardOf(s) && bytesOf(s) == null;

// ---- the answer
function scenario(s, of) {
  const out = { model_id: s.model }, field = ANSWERED[s.ask];
  for (const key of ORDER) {
    if (FIELDS[key].pipeline || FIELDS[key].work || (key === "audio_seconds" && of.hearsWindows)) continue; // these are no arguments of a footprint
    const text = s[key] !== "" && !faultOf(s, key) ? s[key] : assumed(s, key, of);
    if (text != null && applies(key, sound(s, of)) && !(key === field && key === "gpu_count")) out[key] = value(key, String(text));
  }
  return out;
}
// Of a program that takes its context by the memory of the cards, what it takes on so many of mine: all that they give under Linux, as the terminal
// has it. Null where somebody chose a context, or nobody a card.
function ownContext(s, of, wanted, count, given = cardOf(s)?.bytes ?? bytesOf(s)) {
  if (!wanted.program || "context_tokens" in wanted || given == null || (wanted.phase_id ?? "inference") !== "inference") return null;
  const own = r.ownContext(wanted.program, wanted.program_version, given * count), most = own && of.own.shape?.[0]?.max_context_tokens;
  return own && { ...own, tokens: most ? Math.min(own.taken, most) : own.taken };
}
const withOwn = (wanted, own) => (own ? { ...wanted, context_tokens: own.tokens } : wanted);
function contextSaid({ name, taken, tokens, steps }) {
  const n = (value) => value.toLocaleString("en"), at = steps.findIndex((step) => step.context_tokens === taken), next = steps[at + 1]?.least_gib, from = steps[at].least_gib;
  const where = from && next ? `from ${from} GiB of GPU memory to below ${next}` : next ? `below ${next} GiB of GPU memory` : `from ${from} GiB of GPU memory on`;
  return tokens < taken ? ` ${n(tokens)} tokens are all that it reads: ${name}’s own default here is ${n(taken)}.` : ` ${n(tokens)} tokens are ${name}’s own default ${where}.`;
}
// Of 16 bits the format that the card is known to run, where nobody chose one and the usual one does not run there: fp16 before Ampere.
const WIDE = 16;
function inRunning(s, of, wanted, row) {
  const g = cardOf(s), held = a.heldOf(models, of.number), bits = (id) => shared.dtype.find((d) => d.dtype_id === id)?.bits_per_weight;
  if (!g || s.dtype_id || s.program || row?.total_bytes == null || bits(row.dtype_id) !== WIDE || !r.refusal(world, row, held, g, of.own)) return null;
  return shared.dtype.filter((d) => d.bits_per_weight === WIDE && d.dtype_id !== row.dtype_id).map((d) => ({ ...wanted, dtype_id: d.dtype_id }))
    .find((other) => { const it = r.ask(of.own, other); return it?.total_bytes != null && !r.refusal(world, it, held, g, of.own); }) ?? null;
}
// What is asked of a state, worked out: a row of the formulas, and the place that a search backwards has found.
async function work(s) {
  const of = await about(s.model), out = { s, of, row: null, found: null, wanted: null };
  if (!of.own) return out;
  const bytes = bytesOf(s), cards = cardsOf(s), plain = scenario(s, of), open = inRunning(s, of, plain, r.ask(of.own, plain)) ?? plain;
  const isAsked = s.ask !== "context";
  out.own = isAsked ? ownContext(s, of, open, cards ? 1 : open.gpu_count ?? 1, cards?.reduce((sum, { g, bytes }) => sum + (g.bytes ?? bytes), 0)) : null;
  const wanted = withOwn(open, out.own);
  Object.assign(out, { wanted, bytes, open });
  if (cards) {
    delete wanted.gpu_count;
    out.cards = cards;
    out.together = together.work(of.own, wanted, cards, s.ask);
    out.row = out.together.row;
    return out;
  }
  out.row = r.ask(of.own, wanted);
  out.takesRam = takesRam(s, out.row, bytes);
  out.asksRam = asksRam(s, out.row, bytes, of.own);
  const phase = out.row?.phase_id, ram = a.freeBytes(s.ram); // (GB as it is sold, which are GiB)
  if (out.takesRam && ram != null && out.row.total_bytes != null && !r.holds(out.row, bytes) && !(cardOf(s) && r.refusal(world, out.row, a.heldOf(models, of.number), cardOf(s), of.own))) {
    out.ram = await import(`./ram.js${search}`);
    out.way = out.ram.way(of.own, wanted, out.row, bytes, cardOf(s), ram);
  }
  if (bytes == null || out.row == null || !ANSWERED[s.ask]) return out;
  if (s.ask === "context") {
    out.found = r.longest(of.own, wanted, bytes);
    out.row = r.ask(of.own, { ...wanted, context_tokens: Math.max(out.found.at, wanted.context_parallel ?? 1) });
  } else if (s.ask === "users") {
    out.found = r.most(of.own, wanted, bytes);
    out.row = r.ask(of.own, { ...wanted, sequences: Math.max(out.found.at, 1) });
  } else if (asksTime(s) && phase !== "inference" && cardOf(s) && !wanted.objective_id) {
    // the ways that the tables search: what nobody chose is not held to
    const { checkpointing, sequences, ...rest } = wanted, chosen = { ...(s.checkpointing && { checkpointing }), ...(s.sequences && { sequences }) };
    const told = plan.planned(of.own, { ...rest, phase_id: phase, ...chosen }, cardOf(s).id, bytes, workOf(s), (row) => !r.refusal(world, row, a.heldOf(models, of.number), cardOf(s), of.own));
    out.found = { at: told.cards ?? 0, told };
    if (told.row) out.row = { ...told.row, gpu_count: told.cards };
  } else {
    const on = (gpu_count) => ({ ...withOwn(open, ownContext(s, of, open, gpu_count)), gpu_count }), row = r.fewest(of.own, wanted, bytes, 0, on);
    if (row) Object.assign(out, { own: ownContext(s, of, open, row.gpu_count), wanted: on(row.gpu_count) });
    out.found = { at: row?.gpu_count ?? 0, why: row ? null : r.ask(of.own, { ...wanted, gpu_count: 2 })?.unknown_reason };
    out.row = row ?? r.ask(of.own, { ...wanted, gpu_count: 1 });
  }
  out.phase = phase;
  return out;
}
const isTraining = (row) => row.phase_id !== "inference";
const gib = (bytes) => a.gib(bytes / 1024);
// What a total is: with the margin of our error, or in training with what it may grow to.
function amount(row) {
  const each = row.gpu_count > 1 ? ` on each of ${row.gpu_count} GPUs` : "";
  if (isTraining(row)) return `${gib(row.total_bytes)} GiB${each}; up to ${gib(row.total_bytes * (1 + row.error_band))} where lengths vary and blocks lie unused`;
  // (what a copy may hold beyond most is in the band, and no error of ours)
  const more = row.more_bytes ? ` (up to ${gib(row.more_bytes)} more in copies that leave more in 16 bits)` : "";
  return `${gib(row.total_bytes)} GiB${each}${more}, ±\u00a0${Math.round((row.error_band - (row.more_bytes ?? 0) / row.total_bytes) * 100)}\u00a0%`;
}
function sentence(out) {
  const { s, row } = out;
  return `${toldOf(out)}${(s.program || row.objective_id) && row.total_bytes != null && row.holds_for ? ` Holds for ${row.holds_for}.${out.own ? contextSaid(out.own) : ""}` : ""}`;
}
function toldOf(out) {
  const { s, of, row, found, bytes } = out, gpu = cardOf(s);
  if (row.total_bytes == null && !found) return `Unknown: ${row.unknown_reason ? plain(row.unknown_reason) : "the numbers are larger than can be worked out"}.`;
  const held = a.heldOf(models, of.number);
  const no = gpu && r.refusal(world, row, held, gpu, of.own);
  if (no) return `${row.total_bytes == null ? "" : `${amount(row)}; `}${gpu.short}: ${no.text === "unknown" ? "not known to run there" : "it does not run there"} (${no.why}).`;
  if (isOpen(s)) return `${amount(row)}. What a desktop leaves of ${gpu.short} is not known here: type the memory that is free, as nvidia-smi, rocm-smi or the task manager tell it.`;
  if (ANSWERED[s.ask] && bytes == null) return `Choose a card, or type how much memory is free: then this says ${ASKS.find(([id]) => id === s.ask)[1]}. As it stands: ${amount(row)}.`;
  if (s.ask === "context" || s.ask === "users") return backwards(out);
  if (s.ask === "cards") {
    if (found.told) return planSaid(out);
    if (!found.at) return row.total_bytes == null ? `Unknown: ${plain(row.unknown_reason ?? "nothing is known")}.` : `${found.why ? "One of them does not hold it" : `No number of them up to ${r.COUNTS.at(-1).toLocaleString("en")} holds it`}: one would have to hold ${amount(row)}, and there are ${gib(bytes)} GiB.${found.why ? ` Of several it is not known: ${plain(found.why)}.` : ""}`;
    return found.at === 1 ? `One ${named(s)} is enough: ${amount(row)} of ${gib(bytes)}.` : `${a.many(found.at, gpu, gpu?.short ?? `${gib(bytes)} GiB`)}, shared by ${SHARED[row.sharding] ?? row.sharding}: ${amount(row)}, of ${gib(bytes)}.`;
  }
  if (bytes == null) return `${amount(row)}.`;
  if (out.way?.isHeld) return out.ram.held(out.way, a.shown(s.model), cardOf(s) ? `one ${cardOf(s).name}` : "the card", row);
  const word = { fits: "fits", "multi-gpu": "fits", tight: "is tight", no: "does not fit" }[r.verdict(row, bytes)];
  const setting = gpu && s.free === "" ? a.settingNeeded(world, row.engine_id, row.total_bytes, row.total_bytes * (1 + row.error_band), bytes, row.sequences, a.shareOf(world, gpu, row.gpu_count, 1, row.card_share), cacheSetting(s, row), models.windowed.has(of.number) ? 1 + (row.pipeline_parallel || 1) : 1) : "";
  return `${amount(row)}${word === "does not fit" && !isTraining(row) ? `, ${inFormat(of, row.dtype_id)}` : ""}: ${word} on ${named(s, row.gpu_count)}, ${gives(s, row.gpu_count)}${setting}${word === "is tight" && !isTraining(row) ? `: ${r.hangsOnCopy(row, bytes) ? "it hangs on how the copy was packed" : "it fits by less than our error"}` : ""}.${out.way && word === "does not fit" ? ` ${out.ram.notHeld(out.way)}` : ""}`;
}
// How the program is told of a cache that the reader chose (another program than the engine has a word of its own).
const cacheSetting = (s, row) => s.kv_dtype_id && row.engine_id.startsWith(s.program ?? "") ? shared.kv_dtype?.find((kv) => kv.kv_dtype_id === row.kv_dtype_id)?.setting : null;
// What does not fit one card in llama.cpp: how much of it goes there, and what the computer's memory holds of the rest.
function besideSaid({ s, of, row, bytes, way }) {
  if (way?.isHeld || (way && r.verdict(row, bytes) === "no")) return null; // the answer itself says it
  if (bytes == null || row.total_bytes == null || row.gpu_count > 1 || r.holds(row, bytes)) return null;
  return r.splitSaid(r.split(of.own, row, bytes, cardOf(s)), a.formatName(row.dtype_id));
}
const { SHARED } = r;
// A model that writes, and whose config does not say how far it reads.
const isUnread = (of, row) => !isTraining(row) && !models.context[of.number] && Boolean(of.own?.shape?.[0]?.caches) && !of.isOnlyHearing;
const isTight = (row, bytes) => r.verdict(row, bytes) === "tight";
function backwards({ s, of, row, found, bytes }) {
  const isContext = s.ask === "context", training = isTraining(row);
  const one = isContext ? "token" : training ? (row.unit ?? "sequence") : "user", many = `${one}s`;
  if (!found.at) return row.total_bytes == null ? `Unknown: ${plain(row.unknown_reason ?? "nothing is known")}.` : isTight(row, bytes) ? `Even one ${one} is tight on ${named(s, row.gpu_count)}, ${gives(s, row.gpu_count)}: that takes ${amount(row)}, and fits by less than our error.` : `Not even one ${one} fits on ${named(s, row.gpu_count)}, ${gives(s, row.gpu_count)}: that takes ${amount(row)}.`;
  const n = found.at.toLocaleString("en");
  const for_ = isContext ? ` for ${row.sequences === 1 ? (training ? `a ${row.unit ?? "sequence"}` : "one user") : `each of ${row.sequences.toLocaleString("en")} ${training ? `${row.unit ?? "sequence"}s` : "users"}`}` : ` at ${row.context_tokens.toLocaleString("en")} tokens${training ? "" : " each"}`;
  const end = { card: `one more does not fit`, model: "all that the model reads", engine: `more wait in line: ${row.engine_id} runs no more at once by itself`, search: "nobody looked further" }[found.bound];
  return `Up to ${n} ${found.at === 1 ? one : many}${for_} on ${named(s, row.gpu_count)}, ${gives(s, row.gpu_count)}: ${end}. That takes ${amount(row)}.${isContext && isUnread(of, row) ? ` ${a.UNREAD}.` : ""}`;
}
// What a card can do at most, and how much of that is usual: nothing of what it does not hold, which is read from elsewhere.
function speedSaid({ s, of, row, bytes }) {
  const gpu = cardOf(s);
  if (!gpu || row.total_bytes == null || isTraining(row) || (bytes != null && r.verdict(row, bytes) === "no")) return "";
  const { decode, prefill, why } = r.speed(of.own, row, gpu.id);
  if (decode == null) return why ? `No bound of its speed: ${plain(why)}.` : "";
  const { share } = r.facts, users = row.sequences > 1 ? ` for all ${row.sequences.toLocaleString("en")} together` : "";
  const usual = share && row.engine_id === "llama.cpp" && row.sequences === 1 ? ` (llama.cpp usually reaches ${Math.round(100 * share.low)} to ${Math.round(100 * share.high)} % of it)` : "";
  return `At most ${r.rate(decode)} tokens/s${users} with the cache full${usual}${prefill ? `; a prompt is read with at most ${r.rate(prefill)} tokens/s` : ""}.${plan.likelySaid(of.own, row, gpu.id)}`;
}
// How long a training of so much text takes, where it is asked.
const asksTime = (s) => workOf(s).data_bytes != null || workOf(s).data_tokens != null;
function workOf(s) {
  const given = (key) => (s[key] !== "" && !faultOf(s, key) ? +s[key] : null), times = (key, by) => (given(key) == null ? null : given(key) * by);
  return { data_bytes: times("data_mb", 1e6), data_tokens: times("data_millions", 1e6), days: given("days") ?? 1, price: given("price") };
}
function timeSaid({ s, of, row }) {
  const gpu = cardOf(s);
  if (row.total_bytes == null || !isTraining(row) || !asksTime(s)) return "";
  if (row.objective_id) return "How long a training on preferences takes is not worked out here.";
  return gpu ? plan.trainingSaid(of.own, row, gpu.id, workOf(s)) : "Choose a card: then this says how long it takes.";
}
// The fewest cards that hold it and finish in time, and how they share it.
function planSaid({ s, row, found: { at, told }, bytes }) {
  if (!at) return `Unknown: ${plain(told.why)}.`;
  const days = workOf(s).days, time = `${days.toLocaleString("en")} ${days === 1 ? "day" : "days"}`, all = a.many(at, cardOf(s)) ?? "";
  const degrees = [["tensor_parallel", "tensors by"], ["pipeline_parallel", "stages by"], ["context_parallel", "context by"], ["expert_parallel", "experts by"]].flatMap(([key, words]) => (row[key] > 1 ? [`${words} ${row[key]}`] : []));
  const how = at === 1 ? "" : ` Shared by ${[SHARED[row.sharding] ?? row.sharding, ...degrees].join(", ")}, ${world.kept[row.checkpointing] ?? row.checkpointing}, ${told.micro_batches} micro-batches${row.sequences > 1 ? ` of ${row.sequences} sequences` : ""} on each copy: ${amount({ ...row, gpu_count: at })}, of ${gib(bytes)}.`;
  const lead = told.verdict === "no" ? `No number of them that is searched holds it; ${all} come closest.` : { yes: at === 1 ? `One ${named(s)} holds it and finishes in ${time}: ${amount(row)} of ${gib(bytes)}.` : `${all} are the fewest that hold it and finish in ${time}.`, likely: `${all} ${at === 1 ? "is" : "are"} the fewest that hold it and likely finish in ${time}.`, no: `Nothing that is searched finishes in ${time}: ${all} ${at === 1 ? "is" : "are"} the quickest.` }[told.finishes];
  return lead + how;
}

let turn = 0;
async function calculate() {
  const mine = ++turn;
  const out = await work(state);
  const other = state.beside ? await work(read(new URLSearchParams(state.beside))) : null;
  if (mine !== turn) return;
  const { of, row } = out, full = sound(state, of);
  for (const key of ORDER) {
    boxes[key].hidden = !applies(key, full) || ANSWERED[state.ask] === key;
    boxes[key].firstChild.textContent = label(key, full);
  }
  drawOthers(full);
  for (const { set, keys } of groups) set.hidden = (of.number >= 0 && !of.isTold) || keys.every((key) => boxes[key].hidden);
  wanted.hidden = of.isPipeline;
  ramField.hidden = !out.asksRam;
  form.hidden = false;
  a.step(state, `?${addressOf(state)}`, isChosen);
  isChosen = false;
  show(row, of);
  const none = freeFault(state) || (out.asksRam && ramFault(state)) || (pasted.value.trim() && "The config.json that was pasted is asked about in a terminal: the command stands below the questions.");
  if (none) return say({ ...out, row: null, wanted: null }, `No answer. ${none}`);
  if (of.number < 0) {
    const near = await asking.near(models, state.model);
    if (mine === turn) say(out, state.model.trim() ? `There is no model of the name ${a.shown(state.model)} here.` : "No answer. Type the name of a model.", near);
    return;
  }
  if (of.isPipeline) {
    const pictured = await import(`./pictured.js${search}`);
    if (mine !== turn) return;
    pictured.use({ ORDER, boxes, options, world, assumed, faultOf, cardOf, bytesOf, named, gives, plain, say, answer, shown });
    return pictured.sayPipeline(out);
  }
  if (!of.own) return say(out, `Unknown: ${a.shown(models.reason.values[models.reason.of[of.number]] ?? "nothing is published")}.`);
  const wrong = ORDER.filter((key) => !boxes[key].hidden && faultOf(state, key));
  if (wrong.length) return say({ ...out, row: null, wanted: null }, `No answer. ${wrong.map((key) => `${label(key, full)}: ${a.shown(faultOf(state, key))}`).join(" ")}`);
  say(out, "", [], other);
}
// Other cards can be named where there is one, for a model that runs.
function drawOthers({ phase_id, isPipeline }) {
  others.hidden = !state.gpu || isPipeline || (phase_id || "inference") !== "inference" || state.ask === "cards" || state.ask === "card";
  boxes.gpu_count.hidden ||= Boolean(state.with) && !others.hidden;
  if (others.dataset.of === state.with && others.childElementCount) return;
  others.dataset.of = state.with;
  others.replaceChildren(...together.fields(world, state.with, (ids) => change("with", ids)));
}
// The scenario as an address; what nobody chose is not in it.
function addressOf(s, withOther = true) {
  const query = new URLSearchParams({ model: s.model });
  for (const key of ["gpu", "with", "free"]) if (s[key] !== "") query.set(key, s[key]);
  if (s.ram !== "" && (s.phase_id || "inference") === "inference") query.set("ram", s.ram);
  if (s.system !== a.memory.unsaidSystem(r.SYSTEMS)) query.set("system", s.system);
  if (s.ask !== ASKS[0][0]) query.set("ask", s.ask);
  for (const key of ORDER) if (s[key] !== "" && s[key] !== FIELDS[key]?.start && !(s === state && boxes[key]?.hidden && ANSWERED[s.ask] !== key)) query.set(key, s[key]);
  if (withOther && s.beside) query.set("beside", s.beside);
  return query;
}
const asSql = shown.querySelector("#as-sql");
// A reason of the formulas in a reader's words, as pipeline/render/pages/plain.py has it.
const rules = (shared.words ?? []).map(([pattern, text]) => [new RegExp(pattern, "g"), text]);
const grouped = new RegExp("(?<![\\d.])\\d{5,}(?![\\d.]*\\d)", "g");
function plain(reason) { return rules.reduce((said, [pattern, text]) => said.replace(pattern, text), reason).replace(grouped, (n) => BigInt(n).toLocaleString("en")); }
const pageOf = ({ number }, s, part = "", words = a.shown(s.model)) => a.h("a", { href: a.address(`models/${models.paths[number] ?? models.id[number]}/${s.gpu ? `?${new URLSearchParams({ gpu: s.gpu })}` : ""}${part}`) }, words);
function say(out, said, near = [], other = null) {
  const { s, of, row } = out, { number } = of;
  shown.hidden = answer.hidden = false;
  const known = !said && row?.total_bytes != null;
  const fine = shown.querySelector(".fine");
  answer.classList.toggle("unknown", !known);
  shown.querySelector(".scroll").hidden = !known;
  pin.hidden = !known;
  const rest = Object.fromEntries(ORDER.filter((key) => s[key] !== "" && s[key] !== FIELDS[key].start).map((key) => [key, s[key]]));
  fine.replaceChildren(...near.flatMap((id, i) => [i ? ", " : "Nearest: ", a.h("a", { href: `?${new URLSearchParams({ model: id, ...(s.gpu && { gpu: s.gpu }), ...rest })}` }, a.shown(id))]));
  const page = number >= 0 ? pageOf(of, s) : "";
  if (page && !row) fine.append("Its page: ", page, ".");
  const bySeconds = page && models.sounds?.includes(number) ? [" What it needs ", pageOf(of, s, "#sound", "by seconds of sound"), "."] : null;
  if (row && !said) {
    const settled = ORDER.filter((key) => !["phase_id", "dtype_id", "gpu_count"].includes(key) && row[key] != null && applies(key, { ...sound(s, of), ...row }))
      .map((key) => (FIELDS[key].isSaid ? [] : [label(key, row).replace(/,.*/, "").toLowerCase()]).concat(optionsOf({ ...state, ...row }, key)?.find(([id]) => id === String(row.shown?.[key] ?? row[key]))?.[1] ?? row[key].toLocaleString("en")).join(" "));
    // on paper the fields are left out
    fine.append(page, a.h("span", { class: "on-paper" }, `: ${(boxes.phase_id.querySelector("select").selectedOptions[0]?.text ?? row.phase_id).toLowerCase()}, ${inFormat(of, row.dtype_id)}, ${row.gpu_count > 1 ? `on each of ${row.gpu_count} GPUs` : "on one GPU"}`), `: ${settled.join(", ")}.`);
    if (row.reference_bytes) fine.append(` The weights are there twice: ${gib(row.reference_bytes)} GiB are the reference that answers are compared with.`);
    if (row.phase_id === "inference" && of.hearsWindows) fine.append(" It hears a window of sound at a time (Whisper: 30 seconds), one after the other: read so, it takes no more however many seconds there are.");
    else if (row.phase_id === "inference" && of.soundReason && !bySeconds && row.total_bytes != null) fine.append(` Seconds of sound cannot be asked of it: ${plain(of.soundReason)}.`);
    const limit = models.context[number];
    if (row.total_bytes != null && limit && row.context_tokens > limit) fine.append(` The model’s own context ends at ${a.tokens(limit)} tokens: beyond it the number holds, the model may not.`);
    else if (row.total_bytes != null && s.ask !== "context" && isUnread(of, row)) fine.append(` ${a.UNREAD}.`);
  }
  if (bySeconds && (!row || row.phase_id === "inference") && !of.hearsWindows) fine.append(...bySeconds);
  const speed = known && !out.together && !out.way?.isHeld ? speedSaid(out) : "", about = shown.querySelector('[data-part="speed"]');
  about.hidden = !speed;
  about.replaceChildren(speed, ...(speed ? [" ", a.h("a", { href: a.address("method/speed/") }, "A bound, no measurement.")] : []));
  const time = known && !out.together ? timeSaid(out) : "", box = shown.querySelector('[data-part="time"]');
  box.hidden = !time;
  box.replaceChildren(time, ...(time ? [" ", a.h("a", { href: a.address("method/plans/") }, "How we know.")] : []));
  asSql.hidden = !out.wanted || Boolean(said && !row);
  if (out.wanted) shown.querySelector("pre code").textContent = sql(out);
  const apart = !said && out.together;
  if (apart) answer.replaceChildren(...together.said(apart, out.cards, plain));
  else answer.textContent = said || sentence(out);
  const split = known && !apart ? besideSaid(out) : null;
  if (split) answer.append(" ", a.h("span", { "data-part": "split" }, ...split));
  if (apart) together.draw(shown.querySelector("table.bd"), apart, out.cards);
  else drawParts(known ? out : null, other);
  drawBeside(known ? out : null, other);
  drawCards(known && s.ask === "card" ? out : null);
  drawWays(known && !apart ? out : null);
}
// The parts of the total, and beside them those of the other scenario.
function drawParts(out, other) {
  if (!out) return;
  const { row } = out, second = other?.row?.total_bytes != null ? other.row : null;
  const table = shown.querySelector("table.bd"), scale = Math.max(row.total_bytes, second?.total_bytes ?? 0);
  const way = out.way?.isHeld && !second ? out.way : null;
  table.caption.textContent = way ? "Bytes of all of it, on the card and in RAM" : "Bytes on each GPU";
  table.tHead.replaceChildren(a.h("tr", {}, a.h("th", { scope: "col" }, "Component"), a.h("th", { scope: "col", class: "n" }, "GiB"), ...(second ? [a.h("th", { scope: "col", class: "n" }, "Beside, GiB"), a.h("th", { scope: "col", class: "n" }, "Difference")] : [a.h("th", { scope: "col", class: "n" }, "Bytes")]),
    a.h("th", { scope: "col", class: "barcell" }, a.h("span", { class: "sr" }, "Share"))));
  const cells = (mine, theirs) => (second ? [a.h("td", { class: "n" }, gib(theirs)), a.h("td", { class: "n" }, signed(mine - theirs))] : [a.h("td", { class: "n x" }, mine.toLocaleString("en"))]);
  table.tBodies[0].replaceChildren(...shared.components.filter(([id]) => row[`${id}_bytes`] || second?.[`${id}_bytes`]).map(([id, name, page]) => {
    const bytes = row[`${id}_bytes`] ?? 0;
    return a.h("tr", {}, a.h("th", { scope: "row" }, a.h("a", { href: a.address(`method/${page}/`) }, name)), a.h("td", { class: "n" }, gib(bytes)), ...cells(bytes, second?.[`${id}_bytes`] ?? 0), a.h("td", { class: "barcell" }, bar(id, bytes / scale)));
  }), a.h("tr", { class: "sum" }, a.h("th", { scope: "row" }, row.peak_moment ? `Total, at the peak (${row.peak_moment})` : "Total"), a.h("td", { class: "n" }, gib(row.total_bytes)), ...cells(row.total_bytes, second?.total_bytes ?? 0), a.h("td")),
  ...(way ? [["On the card", way.gpu_bytes], [`In RAM, with ${out.ram.part(way)}`, way.host_bytes]].map(([name, bytes]) => a.h("tr", {}, a.h("th", { scope: "row" }, name), a.h("td", { class: "n" }, gib(bytes)), ...cells(bytes), a.h("td"))) : []));
}
const signed = (bytes) => (bytes === 0 ? "0" : `${bytes > 0 ? "+" : "−"}${gib(Math.abs(bytes))}`);
function drawBeside(out, other) {
  const box = shown.querySelector('[data-part="beside"]');
  box.hidden = !other;
  if (!other) return box.replaceChildren();
  const drop = a.h("button", { type: "button", class: "chip" }, "Take it away");
  drop.addEventListener("click", () => change("beside", ""));
  const { s, of, row } = other;
  const text = !of.own ? "not known here" : `${row.phase_id === "inference" ? "" : `${row.phase_id}, `}${inFormat(of, row.dtype_id)}, ${row.context_tokens.toLocaleString("en")} tokens, ${row.sequences} at once: ${sentence(other)}`;
  box.replaceChildren(a.h("b", {}, "Beside it: "), of.number >= 0 ? pageOf(of, s) : a.shown(s.model), ` ${text} `, a.h("a", { href: `?${s.raw}&${new URLSearchParams({ beside: addressOf(state, false) })}` }, "Swap"), " ", drop);
}
// What does not fit: each way in which it still does, with its number, and what to paste.
// A format in words; of one that is published in it by its own name.
const inFormat = ({ number }, id) => (id === "stored" ? `as published${models.format.values[models.format.of[number]] ? ` (${models.format.values[models.format.of[number]]})` : ""}` : `in ${a.formatName(id)}`);
let waysTurn = 0;
async function drawWays(out) {
  const box = shown.querySelector('[data-part="ways"]'), mine = ++waysTurn, { s, of, row, bytes, wanted: asked } = out ?? {};
  const isNo = out && bytes != null && !["cards", "card"].includes(s.ask) && !(out.found?.at > 0) && !r.holds(row, bytes);
  if (!isNo) { box.hidden = true; return; }
  const { ways } = await import(`./ways.js${search}`), ramBytes = a.freeBytes(s.ram), ram = ramBytes == null ? null : await import(`./ram.js${search}`), gpu = cardOf(s), held = a.heldOf(models, of.number);
  if (mine !== waysTurn) return;
  const to = (values) => { const address = addressOf(s); for (const [key, text] of Object.entries(values)) if (text === "") address.delete(key); else address.set(key, text); return address; };
  const found = ways({ own: of.own, row, asked, bytes, stored: held, to, gpu, card: gpu?.short ?? `${gib(bytes)} GiB`, inFormat: (id) => inFormat(of, id), ram, ramBytes, runs: (other) => !gpu || !r.refusal(world, other, held, gpu, of.own) });
  box.hidden = Boolean(out.way?.isHeld && !found.length);
  box.replaceChildren(a.h("p", {}, found.length ? (out.way?.isHeld ? "Without RAM:" : "How it still does:") : "No way that is worked out here makes it fit."), a.h("ul", {}, ...found.map((way) => a.h("li", {}, ...way))),
    a.h("p", {}, ...(isTraining(row) ? [a.h("a", { href: `${a.address("techniques/")}?${new URLSearchParams({ model: s.model, ...(s.gpu && { gpu: s.gpu }) })}` }, "What else saves memory in training ›")] : [pageOf(of, s), " says what to paste for it."])));
}
// Which cards hold it, the smallest first; the page of its own has prices and speeds.
function drawCards(out) {
  const box = shown.querySelector('[data-part="cards"]');
  box.hidden = !out;
  if (!out) return box.replaceChildren();
  const { s, of, row, open } = out, held = a.heldOf(models, of.number), rows = new Map();
  // (each with the context that the program takes there)
  const on = (g) => {
    const own = ownContext({ ...s, gpu: g.id }, of, open, row.gpu_count ?? 1);
    if (own && !rows.has(own.tokens)) rows.set(own.tokens, r.ask(of.own, withOwn(open, own)));
    return own ? rows.get(own.tokens) : row;
  };
  const runs = world.gpus.filter((g) => !r.refusal(world, row, held, g, of.own));
  const given = (g) => r.under(s.system, g) ?? 0;
  const fit = runs.filter((g) => r.holds(on(g), given(g))).sort((x, y) => x.bytes - y.bytes || (x.short < y.short ? -1 : 1));
  const each = row.gpu_count > 1 ? `${row.gpu_count} × ` : "";
  const lead = fit.length ? `${fit.length} of ${world.gpus.length} cards hold it${row.gpu_count > 1 ? `, ${row.gpu_count} of them together` : ""}. The smallest: ` : `None of ${world.gpus.length} cards holds it${row.gpu_count > 1 ? `, ${row.gpu_count} together` : " alone"}. `;
  const list = fit.slice(0, 8).flatMap((g, i) => [i ? ", " : "", a.h("a", { href: a.address(`gpus/${g.slug}/`) }, `${each}${g.short}`), ` (${gib(given(g) - on(g).total_bytes)} GiB free${on(g) === row ? "" : ` with ${on(g).context_tokens.toLocaleString("en")} tokens`})`]);
  const query = new URLSearchParams({ model: s.model, dtype: row.dtype_id, context: row.context_tokens, users: row.sequences, ...(row.kv_dtype_id && s.kv_dtype_id && { cache: row.kv_dtype_id }) });
  box.replaceChildren(lead, ...list, fit.length ? ". " : "", ...(isTraining(row) ? [] : [a.h("a", { href: a.address(`which-card/?${query}`) }, "All of them by price, speed and power ›")]));
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
// The same question for the published file: what limits_on answers to the token, and the footprint of what was found.
function sql({ s, of, bytes, way, cards, isTraining, wanted: { model_id, ...rest }, found, row }) {
  const list = (given) => Object.entries(given).map(([key, value]) => `${key} := ${text(value)}`);
  if (cards) {
    const { dtype_id, context_tokens, sequences, kv_dtype_id } = row;
    return `FROM fits_together([${cards.map(({ g }) => text(g.id)).join(", ")}], ${[text(model_id), ...list({ dtype_id, context_tokens, sequences, ...(s.kv_dtype_id && { kv_dtype_id }) })].join(", ")});`;
  }
  if (of.isPipeline) return `FROM ${isTraining ? "pipeline_training_of" : "pipeline_of"}(${[text(model_id), ...list(rest)].join(", ")});`;
  const isLimit = (s.ask === "context" || s.ask === "users") && found && s.gpu && s.free === "" && s.system === "linux";
  const key = ANSWERED[s.ask], at = key && found ? { [key]: row[key] } : {};
  const { objective_id, ...asked } = { ...rest, ...at };
  const beside = s.gpu && row?.generates ? `\nFROM preference_fits_on(${[text(s.gpu), text(objective_id), text(model_id), ...list(asked), "generator := 'vllm-colocate'"].join(", ")}); -- with vLLM on the same card` : "";
  if (way && s.gpu) {
    const { dtype_id, context_tokens, sequences } = row, { kv_dtype_id, attention, text_only } = rest, named = Object.entries({ kv_dtype_id, attention, text_only, free_bytes: s.free !== "" || s.system !== "linux" ? bytes : null }).filter(([, value]) => value != null);
    return `FROM footprint_of(${[text(model_id), ...list(asked)].join(", ")});\nFROM layers_that_fit(${[text(s.gpu), text(model_id), ...list({ dtype_id, context_tokens, sequences, ...Object.fromEntries(named) })].join(", ")});`;
  }
  const whole = objective_id ? `FROM preference_of(${[text(objective_id), text(model_id), ...list(asked)].join(", ")});${beside}` : `FROM footprint_of(${[text(model_id), ...list(asked)].join(", ")});`;
  return isLimit && !objective_id ? `SELECT max_${key === "sequences" ? key : "context_tokens"} FROM limits_on(${[text(s.gpu), text(model_id), ...list(rest)].join(", ")});\n${whole}` : whole;
}
a.onStep((left) => {
  Object.assign(state, left);
  modelBox.show(state.model);
  for (const [box, key] of [[card, "gpu"], [system, "system"], [wanted, "ask"]]) box.querySelector("select").value = state[key];
  told.hidden = true;
  calculate();
});
await calculate();
performance.mark("interactive");
