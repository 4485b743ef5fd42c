// A model's page: any published scenario and any card, from the model's own totals.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
const article = document.querySelector("article.model");
const base = a.address("");
let world, totals;

async function data() {
  if (!world) [world, totals] = await Promise.all([a.world(), a.load(`data/totals/${article.dataset.totals}.bin`, "binary")]);
}

const isKnown = (s) => totals.subarray(s.index * world.width, s.index * world.width + world.counts.length).some((kib) => kib !== Infinity);

class Matrix {
  constructor(form) {
    this.form = form;
    this.training = form.dataset.controls === "training";
    this.table = article.querySelector(`[data-matrix="${form.dataset.controls}"]`);
    const ofKind = world.scenarios.filter((s) => (s.phase !== "inference") === this.training);
    const contexts = new Set(ofKind.filter((s) => isKnown(s)).map((s) => s.context)); // the model's own
    this.scenarios = ofKind.filter((s) => contexts.has(s.context));
    const start = this.training ? { ...world.opening.training, context: +article.dataset.length } : { ...world.opening.inference, context: +article.dataset.context };
    this.state = { ...start, set: a.memory.get("cards") ?? "common", mine: a.memory.get("gpu") ?? "", figure: a.memory.get("figure") ?? "full" };
    this.controls();
    if (this.state.mine || this.state.set !== "common" || this.state.figure !== "full") this.draw();
  }

  values(key) {
    return [...new Set(this.scenarios.map((s) => s[key]))].filter((v) => v != null).sort((x, y) => (x > y ? 1 : -1));
  }

  controls() {
    const pick = (key, label, text = String) => {
      const values = this.values(key);
      if (values.length < 2) return [];
      return [a.select(key, label, values.map((v) => [v, text(v)]), this.state[key], (v) => this.set(key, typeof values[0] === "number" ? +v : v))];
    };
    this.form.append(
      ...pick("context", "Context", (v) => `${a.tokens(v)} tokens`),
      ...pick("sequences", this.training ? "Micro-batch" : "Sequences"),
      ...pick("optimizer", "Optimizer"),
      ...pick("checkpointing", "Checkpointing"),
      a.select("gpu", "My card", a.gpuOptions(world), this.state.mine, (v) => { a.memory.set("gpu", v); this.set("mine", v); }),
      a.select("figure", "Figure", a.FIGURES, this.state.figure, (v) => { a.memory.set("figure", v); this.set("figure", v); }),
      a.select("cards", "Cards", a.sets(world), this.state.set, (v) => { a.memory.set("cards", v); this.set("set", v); }),
    );
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.hidden = false;
  }

  set(key, value) {
    this.state[key] = value;
    this.draw();
  }

  draw() {
    const { state } = this;
    const list = a.cards(world, state.set, state.mine);
    const head = this.table.tHead.rows[0];
    while (head.cells.length > 2) head.lastChild.remove();
    head.append(...list.map((g) => a.gpuHead(g, state.mine, base)));
    const rows = this.scenarios.filter((s) => s.context === state.context && s.sequences === state.sequences &&
      (s.optimizer ?? state.optimizer) === state.optimizer && (s.checkpointing ?? state.checkpointing) === state.checkpointing);
    this.table.tBodies[0].replaceChildren(...rows.map((s) => this.row(s, list)));
    const what = this.training
      ? `Training, ${a.tokens(state.context)} tokens, micro-batch ${state.sequences}, ${state.optimizer}, activation checkpointing: ${state.checkpointing}.`
      : `Inference, ${a.tokens(state.context)} tokens, ${state.sequences} ${state.sequences === 1 ? "sequence" : "sequences"}.`;
    if (!this.training) for (const code of document.querySelectorAll("[data-sql]"))
      code.textContent = code.textContent.replace(/context_tokens( :?= )\d+/g, `context_tokens$1${state.context}`).replace(/sequences( :?= )\d+/g, `sequences$1${state.sequences}`);
    this.table.caption.textContent = `${what} GiB on one card; then ${this.state.figure === "free" ? "the GiB that stay free on each" : "how full each card gets"}.`;
  }

  row(s, list) {
    const at = s.index * world.width;
    const name = (kind, id) => world[kind].find((p) => p[0] === id)?.[1] ?? id;
    const row = a.h("tr", {}, this.training
      ? a.h("th", { scope: "row" }, name("phases", s.phase), a.h("small", {}, s.dtypeId))
      : a.h("th", { scope: "row", title: name("dtypes", s.dtypeId) }, s.dtypeId, a.h("small", {}, s.engine)));
    if (!isKnown(s)) {
      row.append(a.h("td", { class: "v-unknown", colSpan: list.length + 1 }, `unknown: ${a.reasonText(world, totals, at, s.context, +article.dataset.limit)}`));
      return row;
    }
    row.append(a.h("td", { class: "n" }, a.gib(totals[at])), ...list.map((g) => {
      const verdict = a.judgeOn(world, s, article.dataset.held, g, totals, at);
      return a.h("td", { class: `v v-${verdict.verdict}`, title: a.verdictTold(world, s, article.dataset.held, g, totals, at) }, a.verdictText(verdict, this.state.figure, g.capacity));
    }));
    return row;
  }

}

await data();
for (const form of document.querySelectorAll("[data-controls]")) new Matrix(form);
