// A model's page: any published scenario and any card in every table, and what was chosen in the address, so that it can be sent.
const search = new URL(import.meta.url).search;
const [a, tables, limits] = await Promise.all([import(`./almanac.js${search}`), import(`./model_tables.js${search}`), import(`./limits.js${search}`)]);
const { Run } = document.querySelector("[data-run]") ? await import(`./run.js${search}`) : {};
const article = document.querySelector("article.model");
const forms = [...document.querySelectorAll("[data-controls]")];
const PAPER = 13; // cards beside each other on a printed page

// ---- the address: the front page's keys. Context, sequences, optimizer and checkpointing are those of the phase that it names; what is
// chosen for the other table stands under the same key with its name before it (`training.context`).
const KINDS = { inference: ["context", "sequences"], training: ["context", "sequences", "optimizer", "checkpointing"] };
const KEYS = ["gpu", "system", "phase", "dtype", "engine", "cards", "figure", ...Object.entries(KINDS).flatMap(([kind, keys]) => [...keys, ...keys.map((key) => `${kind}.${key}`)])];
const kindOf = (phase) => (phase === "inference" ? "inference" : "training");

class Page {
  // `told` is the model's file for programs; all else is what its shape's file holds
  constructor(world, told, { totals, rows, points, plot }) {
    Object.assign(this, { world, file: told, totals, rows, points: points ? limits.rows(points) : [], model: decodeURIComponent(article.dataset.id), tables: [], boxes: [], scenarios: {}, start: {} });
    const formats = article.dataset.told?.split(" "); // of what is published packed: those that there are
    for (const kind of Object.keys(KINDS)) {
      if (!article.querySelector(`[data-matrix="${kind}"]`)) continue;
      const ofKind = world.scenarios.filter((s) => kindOf(s.phase) === kind && (kind === "training" || (formats?.includes(s.dtypeId) ?? true)));
      const contexts = new Set(ofKind.filter((s) => this.isKnown(s)).map((s) => s.context)); // the model's own
      this.scenarios[kind] = ofKind.filter((s) => contexts.has(s.context));
      this.start[kind] = { ...world.opening[kind], context: +(kind === "training" ? article.dataset.length : article.dataset.context) };
      this.tables.push(new tables.Matrix(this, kind, this.scenarios[kind]));
    }
    for (const table of article.querySelectorAll("[data-reach]")) this.tables.push(new tables.Reach(this, table.dataset.reach));
    const byCard = article.querySelector("[data-cards]"), run = article.querySelector("[data-run]");
    if (byCard) this.tables.push(this.byCard = new tables.ByCard(this, byCard));
    const mine = article.querySelector("[data-mine]");
    if (mine && byCard) this.notes = async () => {
      const { Mine } = this.state.gpu || this.state.system !== "linux" ? await import(`./mine.js${search}`) : {};
      if (Mine) (this.mine ??= new Mine(this, mine, this.byCard)).draw();
      else this.mine?.clear();
    };
    if (run) this.run = new Run(this, run);
    const help = article.querySelector("[data-help]");
    if (help) {
      const fold = help.closest("details");
      this.helpOut = async () => {
        if (!fold.open) return;
        const { Help } = await import(`./help.js${search}`);
        await (this.help ??= new Help(this, help, article)).draw();
      };
      fold.addEventListener("toggle", this.helpOut);
    }
    for (const table of article.querySelectorAll("[data-pipeline]")) this.tables.push(new tables.Pipeline(this, table));
    const breakdown = article.querySelector("[data-breakdown]"), contexts = article.querySelector("[data-contexts]");
    if (breakdown) tables.breakdown(this, breakdown);
    if (contexts) tables.contexts(this, contexts);
    const figure = article.querySelector("[data-plot]");
    if (figure && plot) {
      figure.prepend(new DOMParser().parseFromString(plot, "text/html").querySelector("svg"));
      figure.hidden = false;
    }
    for (const details of article.querySelectorAll("[data-format]")) tables.parts(this, details);
    const anatomy = article.querySelector("[data-anatomy]");
    if (anatomy && told) tables.anatomy(told, anatomy);
  }

  isKnown(s) {
    const { world, totals } = this;
    return totals.subarray(s.index * world.width, s.index * world.width + world.counts.length).some((kib) => kib !== Infinity);
  }

  // The rows that the address asks for by phase or format.
  isAsked(s) {
    const { phase, dtype, engine, isPhaseAsked } = this.state;
    return (isPhaseAsked || Boolean(dtype || engine)) && s.phase === phase && (!dtype || dtype === s.dtype || dtype === s.dtypeId) && (!engine || engine === s.engine);
  }

  cards() {
    return a.cards(this.world, this.state.cards, this.state.gpu).map((g) => this.given(g));
  }

  // A card as the chosen system leaves it.
  given(g) {
    const bytes = a.under(this.world, this.state.system, g);
    return bytes == null || bytes === g.bytes ? g : { ...g, bytes, capacity: Math.floor(bytes / 1024) };
  }

  // The reader's own.
  card() {
    const found = this.world.gpus.find((g) => g.id === this.state.gpu);
    return found && this.given(found);
  }

  values(kind, key) {
    return [...new Set(this.scenarios[kind].map((s) => s[key]))].filter((v) => v != null).sort((x, y) => (x > y ? 1 : -1));
  }

  read() {
    const asked = new URLSearchParams(location.search);
    // the tables, the calculator and the JSON name some columns longer
    for (const key of [...asked.keys()]) {
      const short = key.replace(/_(?:id|tokens)$/, "");
      if (short !== key && KEYS.includes(short) && !asked.has(short)) { asked.set(short, asked.get(key)); asked.delete(key); }
    }
    const refused = a.foreign(asked, KEYS);
    const one = (key, options, otherwise) => {
      const value = asked.get(key);
      if (!value) return otherwise;
      const found = a.listed(value, options);
      if (found === null) refused.push(`${key}=${value}`);
      return found ?? otherwise;
    };
    const sets = a.sets(this.world).flatMap((o) => (o.group ? o.options : [o])).map(([id]) => id);
    const remembered = (key, options, otherwise) => (options.includes(a.memory.get(key)) ? a.memory.get(key) : otherwise);
    const cards = ["", ...this.world.gpus.map((g) => g.id)], figures = a.FIGURES.map(([id]) => id);
    const phases = this.world.phases.map(([id]) => id).filter((id) => this.scenarios[kindOf(id)]);
    const state = {
      gpu: one("gpu", cards, remembered("gpu", cards, "")),
      cards: one("cards", sets, remembered("cards", sets, "common")),
      system: one("system", a.COUNTED_SYSTEMS.map(([id]) => id), a.memory.system()),
      figure: one("figure", figures, remembered("figure", figures, "full")),
      phase: one("phase", phases, "inference"),
    };
    state.isPhaseAsked = Boolean(asked.get("phase")) && !refused.some((said) => said.startsWith("phase="));
    const formats = (this.scenarios[kindOf(state.phase)] ?? []).filter((s) => s.phase === state.phase).flatMap((s) => [s.dtype, s.dtypeId]);
    state.dtype = one("dtype", formats, "");
    state.engine = one("engine", [...new Set(this.world.scenarios.map((s) => s.engine))], "");
    for (const [kind, keys] of Object.entries(KINDS)) {
      if (!this.scenarios[kind]) continue;
      state[kind] = { ...this.start[kind] };
      for (const key of keys) {
        const name = [`${kind}.${key}`, ...(kindOf(state.phase) === kind ? [key] : [])].find((each) => asked.has(each));
        if (!name || !asked.get(name)) continue;
        const values = this.values(kind, key), wanted = asked.get(name);
        const isNumber = typeof values[0] === "number", number = a.number(wanted);
        const found = isNumber ? values.find((value) => value === number) : a.listed(wanted, values);
        if (found == null) refused.push(`${name}=${wanted}`);
        const near = (v) => Math.abs(Math.log(v / number)); // a context that is not published: the nearest that is
        state[kind][key] = found ?? (isNumber && number > 0 ? [...values].sort((x, y) => near(x) - near(y))[0] : state[kind][key]);
      }
    }
    this.state = state;
    this.say(refused);
  }

  // What the address asks for and does not get, said until something is chosen.
  say(refused) {
    this.told?.remove();
    if (!refused.length) return;
    const first = forms.find((form) => article.contains(form));
    this.told = a.h("p", { class: "status told", role: "status" }, a.refused(refused));
    first.before(this.told);
  }

  tell(isChosen) {
    const { state } = this;
    const query = new URLSearchParams();
    const put = (key, value, otherwise) => { if (value !== otherwise) query.set(key, value); };
    put("gpu", state.gpu, "");
    put("system", state.system, a.memory.unsaidSystem());
    put("phase", state.isPhaseAsked ? state.phase : "inference", "inference");
    put("dtype", state.dtype, "");
    put("engine", state.engine, "");
    for (const [kind, keys] of Object.entries(KINDS))
      if (state[kind]) for (const key of keys) put(kindOf(state.phase) === kind ? key : `${kind}.${key}`, state[kind][key], this.start[kind][key]);
    put("cards", state.cards, "common");
    put("figure", state.figure, "full");
    a.step(state, query.size ? `?${query}` : "", isChosen);
  }

  // ---- controls: every form that asks for the card says the same one
  controls() {
    for (const form of forms) {
      const kind = form.dataset.controls;
      const pick = (key, label, text = String) => {
        const values = this.values(kind, key);
        return values.length < 2 ? [] : [this.box(kind, key, label, values.map((v) => [v, text(v)]))];
      };
      form.append(
        ...(this.scenarios[kind] ? [
          ...pick("context", "Context", (v) => `${a.tokens(v)} tokens`),
          ...pick("sequences", kind === "training" ? "Micro-batch" : "Sequences"),
          ...(kind === "training" ? [...pick("optimizer", "Optimizer", (v) => this.world.optimizers[v] ?? v), ...pick("checkpointing", "Checkpointing", (v) => this.world.kept[v] ?? v)] : []),
        ] : []),
        this.box(null, "gpu", "My card", a.gpuOptions(this.world)),
        ...(this.world.wddm_share ? [this.box(null, "system", "System", a.COUNTED_SYSTEMS)] : []),
        ...(kind === "reach" || kind === "mine" ? [] : [this.box(null, "figure", "Figure", a.FIGURES)]),
        this.box(null, "cards", "Cards", a.sets(this.world)),
      );
      form.addEventListener("submit", (event) => event.preventDefault());
      form.hidden = false;
    }
  }

  box(kind, key, label, options) {
    const of = () => (kind ? this.state[kind] : this.state);
    const found = a.select(key, label, options, of()[key], (value) => {
      of()[key] = typeof of()[key] === "number" ? +value : value;
      if (!kind) a.memory.set(key, value);
      this.say([]);
      this.tell(true);
      this.draw();
    });
    const select = found.querySelector("select");
    this.boxes.push(() => { select.value = String(of()[key]); });
    return found;
  }

  // What the address asks of the tables is open.
  unfold() {
    const { state } = this;
    const asked = (kind) => state[kind] && KINDS[kind].some((key) => state[kind][key] !== this.start[kind][key]);
    const wanted = new Set(Object.keys(KINDS).filter(asked));
    if (state.dtype || state.engine || state.isPhaseAsked) wanted.add(kindOf(state.phase));
    if (state.cards !== "common") wanted.add("inference");
    for (const kind of wanted) article.querySelector(`[data-matrix="${kind}"]`)?.closest("details").setAttribute("open", "");
    const aim = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (aim) { aim.closest("details.fold, details.more")?.setAttribute("open", ""); aim.scrollIntoView(); }
  }

  draw() {
    for (const show of this.boxes) show();
    const { state } = this;
    for (const select of article.querySelectorAll("select[name=system]")) // a Mac has one system
      select.previousElementSibling.textContent = this.card()?.vendor === "apple" ? "Other cards under" : "System";
    for (const table of this.tables) table.draw();
    if (state.inference)
      for (const code of document.querySelectorAll("[data-sql]"))
        code.textContent = code.textContent.replace(/context_tokens( :?= )\d+/g, `context_tokens$1${state.inference.context}`).replace(/sequences( :?= )\d+/g, `sequences$1${state.inference.sequences}`);
    this.run?.draw();
    this.notes?.();
    this.helpOut?.(); // an address may have opened it before this script was there
    for (const code of document.querySelectorAll("[data-layers]")) code.textContent = code.textContent.replace(/'[^']*'/, `'${state.gpu || "rtx-3060-12gb"}'`);
  }
}

const { model: path, shape } = article.dataset;
const page = new Page(...await Promise.all([a.world(), shape && a.told(path), shape ? a.shape(shape) : {}]));
page.read();
page.controls();
page.tell();
page.unfold();
page.draw();
a.onStep((state) => { page.state = state; page.draw(); }, () => { page.read(); page.draw(); });
// some browsers tell only of the one, some only of the other
const paper = (isPrinted) => { for (const table of page.tables) isPrinted ? table.split(PAPER) : table.join(); };
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
matchMedia("print").addEventListener("change", (event) => paper(event.matches));
// what the reader has not opened is not printed: the theme opens everything for paper
for (const fold of article.querySelectorAll("details")) {
  fold.classList.toggle("unread", !fold.open);
  fold.addEventListener("toggle", () => { if (!matchMedia("print").matches) fold.classList.toggle("unread", !fold.open); });
}
