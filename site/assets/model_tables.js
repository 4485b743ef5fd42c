// The tables of a model's page that have a column for each card: verdicts by scenario, how far a card goes, and pipelines as a whole.
const search = new URL(import.meta.url).search;
const [a, limits] = await Promise.all([import(`./almanac.js${search}`), import(`./limits.js${search}`)]);
const article = document.querySelector("article.model");
const base = a.address("");

// `page` says which cards are shown (`cards`), whose is the reader's and what was chosen (`state`), and holds the `world`.
class CardTable {
  constructor(page, table, fixed) {
    Object.assign(this, { page, table, fixed, copies: [] });
  }

  draw() {
    this.fill(this.table, this.page.cards());
  }

  fill(table, list) {
    const head = table.tHead.rows[0];
    while (head.cells.length > this.fixed) head.lastChild.remove();
    head.append(...list.map((g) => a.gpuHead(g, this.page.state.gpu, base)));
    table.tBodies[0].replaceChildren(...this.rows(list));
    if (this.caption) table.caption.textContent = this.caption();
  }

  // On paper so many cards stand beside each other: the others follow in tables of their own.
  split(most) {
    const cards = this.page.cards();
    if (cards.length <= most || this.copies.length) return;
    this.fill(this.table, cards.slice(0, most));
    let last = this.table.parentNode;
    for (let i = most; i < cards.length; i += most) {
      const copy = this.table.cloneNode(true);
      for (const name of ["data-matrix", "data-reach", "data-pipeline"]) copy.removeAttribute(name);
      this.fill(copy, cards.slice(i, i + most));
      const box = a.h("div", { class: "scroll printed" }, copy);
      last.after(box);
      this.copies.push(last = box);
    }
  }

  join() {
    if (!this.copies.length) return;
    for (const copy of this.copies.splice(0)) copy.remove();
    this.draw();
  }

  unknown(list, why) {
    return a.h("td", { class: "v-unknown", colSpan: list.length + this.fixed - 1 }, a.h("span", { class: "why" }, why));
  }
}

// Verdicts of inference or training, for one context and number of sequences.
export class Matrix extends CardTable {
  constructor(page, kind, scenarios) {
    super(page, article.querySelector(`[data-matrix="${kind}"]`), 2);
    Object.assign(this, { kind, scenarios });
  }

  rows(list) {
    const chosen = this.page.state[this.kind];
    const matches = (s, key) => s[key] == null || s[key] === chosen[key];
    const asked = this.scenarios.filter((s) => ["context", "sequences", "optimizer", "checkpointing"].every((key) => matches(s, key)));
    const known = asked.filter((s) => this.page.isKnown(s));
    const runs = known.filter((s) => list.some((g) => !a.refusal(this.page.world, s, a.heldOn(article), g)));
    this.leaveOut(asked.filter((s) => !known.includes(s)), known.filter((s) => !runs.includes(s)), list);
    return (runs.length ? runs : known).map((s) => this.row(s, list));
  }

  // What has no row, and why: by the reason, as the page says it before scripts.
  leaveOut(unknown, refused, list) {
    const { world, totals } = this.page, found = new Map();
    const add = (s, why) => found.set(why, [...(found.get(why) ?? []), `${this.kind === "training" ? world.phases.find(([id]) => id === s.phase)?.[1] : s.dtypeId} (${s.engine})`]);
    for (const s of unknown) add(s, `unknown: ${a.reasonText(world, totals, s.index * world.width, s.context, +article.dataset.limit)}`);
    for (const s of refused) add(s, a.refusal(world, s, a.heldOn(article), list[0])?.why ?? "runs on none of these");
    let note = article.querySelector(`[data-left="${this.kind}"]`);
    if (!note) {
      const box = this.table.parentNode, next = box.nextElementSibling;
      note = a.h("p", { class: "fine", "data-left": this.kind });
      (next?.matches(".take") ? next : box).after(note); // what is taken from a table stands at its foot
    }
    note.textContent = found.size ? `Left out: ${[...found].map(([why, names]) => `${names.join(", ")}, ${why}`).join("; ")}.` : "";
  }

  row(s, list) {
    const { world, totals, state } = this.page;
    const at = s.index * world.width;
    const name = (kind, id) => world[kind].find((p) => p[0] === id)?.[1] ?? id;
    const known = this.page.isKnown(s);
    const link = (text) => (known ? a.h("a", { href: calculation(s, state.gpu), title: "Calculate this, or change anything of it" }, text) : text);
    const head = this.kind === "training"
      ? a.h("th", { scope: "row" }, link(name("phases", s.phase)), a.h("small", {}, s.dtypeId))
      : a.h("th", { scope: "row", title: name("dtypes", s.dtypeId) }, link(s.dtypeId), a.h("small", {}, s.engine));
    const row = a.h("tr", { class: this.page.isAsked(s) && "asked" }, head);
    row.scenario = s;
    if (!known) {
      row.append(this.unknown(list, `unknown: ${a.reasonText(world, totals, at, s.context, +article.dataset.limit)}`));
      return row;
    }
    row.append(a.h("td", { class: "n" }, a.gib(totals[at])), ...list.map((g) => {
      const verdict = a.judgeOn(world, s, a.heldOn(article), g, totals, at);
      return a.h("td", { class: `v v-${verdict.verdict}`, title: a.verdictTold(world, s, a.heldOn(article), g, totals, at, this.page.file.attention_layer?.some((layer) => layer.window_tokens)) }, a.verdictText(verdict, state.figure, g.capacity));
    }));
    return row;
  }

  caption() {
    const chosen = this.page.state[this.kind];
    const what = this.kind === "training"
      ? `Training, ${a.tokens(chosen.context)} tokens, micro-batch ${chosen.sequences}, ${a.recipe(this.page.world, chosen.optimizer, chosen.checkpointing)}.`
      : `Inference, ${a.tokens(chosen.context)} tokens, ${chosen.sequences === 1 ? "one user" : `${chosen.sequences} users`}.`;
    return `${what} GiB on one card; then ${this.page.state.figure === "free" ? "the GiB that stay free on each" : "how full each card gets"}. Of several cards ${either(this.page.world.counts.slice(1))} are told, not what lies between.`;
  }
}

// 2, 4 or 8
const either = (numbers) => [numbers.slice(0, -1).join(", "), ...numbers.slice(-1)].filter((text) => text !== "").join(" or ");

// The calculator with a scenario of the tables, on one card.
function calculation(s, gpu) {
  const asked = { gpu, phase_id: s.phase, dtype_id: s.dtypeId, engine_id: s.engine, context_tokens: s.context, sequences: s.sequences, optimizer_id: s.optimizer, checkpointing: s.checkpointing };
  const given = Object.entries(asked).filter(([, value]) => value != null && value !== "");
  return `${article.dataset.calculator}&${new URLSearchParams(given)}`;
}

// The longest context and the most sequences of each format, for any card.
export class Reach extends CardTable {
  constructor(page, kind) {
    super(page, article.querySelector(`[data-reach="${kind}"]`), 1);
    this.kind = kind;
  }

  rows(list) {
    const { world } = this.page;
    const mine = this.page.points.filter((row) => (row.phase === "inference") === (this.kind === "inference"));
    const far = new Map(); // how far anybody looked, by phase
    for (const row of mine) far.set(row.phase, Math.max(far.get(row.phase) ?? 0, ...row.along.at));
    const rows = mine.map((row) => [row, list.map((g) => {
      const refusal = a.refusal(world, row, a.heldOn(article), g);
      return refusal ? { refusal } : { limits: limits.reach(world.limits, row, g.bytes) };
    })]).filter(([, cells]) => cells.some((cell) => cell.limits?.[0]));
    if (!rows.length) return [a.h("tr", {}, a.h("td", { class: "v-unknown", colSpan: list.length + 1 }, a.h("span", { class: "why" }, "Not on one of these cards, error band included")))];
    const name = (phase) => world.phases.find(([id]) => id === phase)?.[1] ?? phase;
    return rows.map(([row, cells]) => a.h("tr", {},
      a.h("th", { scope: "row" }, ...(this.kind === "training" ? [name(row.phase), a.h("small", {}, row.dtypeId)] : [row.dtypeId, a.h("small", {}, row.engine)])),
      ...cells.map((cell) => limitCell(cell, wholeOf(this.kind !== "training"), this.kind === "training" ? far.get(row.phase) : 0))));
  }
}

// How far the model reads, where it runs; what a training reads is never said to be beyond it.
const wholeOf = (isRun) => +article.dataset.limit || (isRun ? 0 : Infinity);

// As limit_cell in pipeline/render/words.py.
function limitCell({ refusal, limits: found }, whole, ceiling) {
  if (refusal) return a.h("td", { class: "v-unknown", title: refusal.why }, "–");
  const [context, sequences] = found;
  if (!context) return a.h("td", {}, "–");
  return a.h("td", { title: !whole && a.UNREAD }, a.reached(context, whole, ceiling), ...(sequences ? [a.h("small", {}, `${sequences > 9999 ? a.short(sequences) : sequences} ×`)] : []));
}

// What each card does with the model: the best format that holds the context, how far it goes, how many at once, and what can be trained.
// As pages/bycard.py.
export class ByCard extends CardTable {
  constructor(page, table) {
    super(page, table, 6);
    this.formats = table.dataset.cards.split(" ").map((text) => text.split("/"));
    this.context = +article.dataset.context;
  }

  fill(table, list) {
    table.tBodies[0].replaceChildren(...list.map((g) => this.row(g)));
  }

  split() {} // it is no wider for more cards

  find(phase, dtypeId, engine) {
    return this.page.points.find((row) => row.phase === phase && row.dtypeId === dtypeId && (!engine || row.engine === engine));
  }

  // The formats that a card runs, the best first.
  runs(g) {
    return this.formats.map(([dtypeId, engine]) => this.find("inference", dtypeId, engine)).filter((row) => row && !a.refusal(this.page.world, row, a.heldOn(article), g));
  }

  row(g) {
    const { world, state } = this.page, whole = wholeOf(true);
    const mine = g.id === state.gpu;
    const td = (kind, text, extra = {}) => a.h("td", { class: kind, ...extra }, text);
    const runs = this.runs(g), best = bestOf(world, runs, g.bytes, this.context);
    const cells = [];
    if (best) {
      const [row, longest, users] = best;
      const own = world.dtypes.find(([id]) => id === row.dtypeId)?.[2]; // named where it is another than the format's own, which runs here too
      const engine = row.engine === own || !runs.some((each) => each.dtypeId === row.dtypeId && each.engine === own) ? [] : [" ", a.h("small", {}, world.engines.find(([each]) => each === row.engine)?.[1] ?? row.engine)];
      const isShort = longest < this.context, kind = isShort ? "v-short" : "v-fits";
      cells.push(a.h("td", { class: kind }, formatName(row.dtypeId), ...engine, ...(isShort ? [" ", a.h("small", {}, "falls short")] : [])), td(kind, a.reached(longest, whole), { title: !whole && a.UNREAD }), td(kind, users ? (users > 9999 ? a.short(users) : String(users)) : "–"));
    } else cells.push(this.several(runs, g, td));
    for (const [phase, dtypeId] of "trained" in this.table.dataset ? [["qlora", "nf4"], ["lora", "bf16"]] : []) {
      const row = this.find(phase, dtypeId);
      const known = row && !a.refusal(world, row, a.heldOn(article), g);
      const looked = Math.max(0, ...this.page.points.filter((each) => each.phase === phase).flatMap((each) => each.along.at));
      cells.push(known ? limitCell({ limits: [limits.reach(world.limits, row, g.bytes)[0], null] }, wholeOf(false), looked) : td("v-unknown", "–"));
    }
    return a.h("tr", { class: mine && "mine" }, a.h("th", { scope: "row", "data-gpu": g.id }, g.short, ...(mine ? [a.h("small", {}, "mine")] : [])), ...cells);
  }

  several(runs, g, td) {
    const { world, totals } = this.page;
    if (!runs.length) return td("v-unknown", "not known to run here", { colSpan: 3 });
    const ways = runs.flatMap((row) => {
      const s = world.scenarios.find((each) => each.phase === "inference" && each.dtypeId === row.dtypeId && each.engine === row.engine && each.context === this.context && each.sequences === 1);
      const verdict = s && a.several(totals, s.index * world.width, world.counts, g.capacity);
      return verdict?.gpus ? [[verdict.gpus, row.dtypeId, verdict.verdict]] : [];
    });
    const held = ways.filter(([, , verdict]) => verdict === "multi-gpu"), least = (found) => found.reduce((x, y) => (y[0] < x[0] ? y : x));
    if (!held.length && ways.length) {
      const [gpus, dtypeId] = least(ways);
      return td("v-tight", `barely, on ${severalSaid(g, gpus, dtypeId)}`, { colSpan: 3 });
    }
    if (held.length) {
      const [gpus, dtypeId] = least(held);
      return td("v-multi-gpu", severalSaid(g, gpus, dtypeId, held.find(([, id]) => id === "stored")?.[0]), { colSpan: 3 });
    }
    return td("v-no", noneSaid(g, this.table.dataset.most), { colSpan: 3 });
  }
}
export const noneSaid = (g, most) => `no, not on ${most} ${a.isComputer(g) ? "computers" : "cards"}`;
// The fewest cards and their format; how many hold it as it is `published`, where fewer hold what that is converted to.
export const severalSaid = (g, count, dtypeId, published) =>
  `${count} ${a.isComputer(g) ? "computer" : "card"}${count === 1 ? "" : "s"}, ${dtypeId === "stored" ? "as published" : `in ${formatName(dtypeId)}${published ? `; ${published} as published` : ""}`}`;
// The best format that holds a context, or the one that goes farthest, with how far and how many at once; null where none fits.
export function bestOf(world, runs, bytes, context) {
  const far = runs.map((row) => [row, ...limits.reach(world.limits, row, bytes)]);
  const most = far.reduce((x, y) => (x && x[1] >= y[1] ? x : y), null);
  return far.find(([, longest]) => longest >= context) ?? (most?.[1] ? most : null);
}
// As format_name in pipeline/render/words.py.
export const formatName = (dtypeId) => (dtypeId === "stored" && article.dataset.held ? `as published, ${article.dataset.held}` : a.formatName(dtypeId));

// A pipeline as a whole, by where its parts are: totals are those of the page.
export class Pipeline extends CardTable {
  constructor(page, table) {
    super(page, table, 1);
    this.placed = [...table.tBodies[0].rows].map((row) => [row.cells[0].textContent, Float64Array.of(+row.dataset.kib, +row.dataset.band)]);
    this.scenario = { engine: "transformers", dtypeId: table.dataset.dtype, phase: "inference" }; // what runs in PyTorch, whatever runs in it
  }

  rows(list) {
    const world = { ...this.page.world, counts: [1], width: 2 };
    const { figure } = this.page.state;
    return this.placed.map(([name, totals]) => a.h("tr", {}, a.h("th", { scope: "row" }, name), ...list.map((g) => {
      const verdict = a.judgeOn(world, this.scenario, "", g, totals, 0);
      return a.h("td", { class: `v v-${verdict.verdict}`, title: a.verdictTold(world, this.scenario, "", g, totals, 0) }, a.verdictText(verdict, figure, g.capacity));
    })));
  }
}

// Of a format in the bars: its parts, on each engine that runs it.
export function parts({ world, file }, details) {
  const context = +article.dataset.context;
  const engine = (id) => world.engines.find(([each]) => each === id)?.[1] ?? id;
  for (const f of file.footprints.filter((each) => each.phase_id === "inference" && each.dtype_id === details.dataset.format)) {
    const at = f.context_tokens.indexOf(context);
    if (at < 0) continue;
    const of = world.components.map(([id, name]) => [name, size(f, at, `${id}_bytes`)]).filter(([, bytes]) => bytes);
    const said = of.map(([name, bytes]) => `${name} ${a.gib(bytes / 1024)}`).join(" · ");
    details.append(a.h("p", {}, a.h("b", {}, engine(f.engine_id)), ` ${said} GiB; ${f.total_bytes[at].toLocaleString("en")} bytes, ± ${Math.round(100 * size(f, at, "error_band"))} %`));
  }
}
const size = (f, at, part) => (Array.isArray(f[part]) ? f[part][at] : f[part]) ?? 0;

// What training is made of: the components at the length that the page opens with, each row to the byte.
export function breakdown(page, table) {
  const { world, file: told } = page, length = +article.dataset.length;
  const names = new Map(world.components.map(([id, name, href]) => [`${id}_bytes`, { id, name, href }]));
  const found = told.footprints.filter((f) => f.phase_id !== "inference").map((f) => ({ f, at: f.context_tokens.indexOf(length) })).filter(({ at }) => at >= 0);
  const used = [...names.keys()].filter((part) => found.some(({ f, at }) => size(f, at, part)));
  article.querySelector("[data-legend]").replaceChildren(...used.map((part) => a.h("span", {}, a.h("i", { class: `c-${names.get(part).id}` }), a.h("a", { href: `${base}method/${names.get(part).href}/` }, names.get(part).name))));
  const scale = Math.max(...found.map(({ f, at }) => f.total_bytes[at]));
  const exact = (n) => a.h("td", { class: "n x" }, n.toLocaleString("en"));
  const label = ({ phase_id, dtype_id, engine_id }) => {
    const s = world.scenarios.find((each) => each.phase === phase_id && each.dtypeId === dtype_id && each.engine === engine_id);
    return `${world.phases.find(([id]) => id === phase_id)?.[1] ?? phase_id}, ${s?.dtype ?? dtype_id}`;
  };
  const row = ({ f, at }) => a.h("tr", {}, a.h("th", { scope: "row" }, label(f)),
    a.h("td", { class: "n" }, a.gib(f.total_bytes[at] / 1024)), a.h("td", {}, `${Math.round(100 * size(f, at, "error_band"))} %`),
    a.h("td", { class: "barcell" }, bar(used.map((part) => [part, size(f, at, part)]), scale)), ...used.map((part) => exact(size(f, at, part))), exact(f.total_bytes[at]));
  const unknown = told.unknown.filter((f) => f.phase_id !== "inference").map((f) => a.h("tr", {}, a.h("th", { scope: "row" }, label(f)),
    a.h("td", { class: "v-unknown", colSpan: used.length + 4 }, `unknown: ${a.shown(f.unknown_reason)}`)));
  const head = (text, kind = "n") => a.h("th", { scope: "col", class: kind }, text);
  table.replaceChildren(
    a.h("thead", {}, a.h("tr", {}, head("Format", ""), head("GiB"), head("±", ""), a.h("th", { scope: "col", class: "barcell" }, a.h("span", { class: "sr" }, "Share of components")), ...used.map((part) => head(names.get(part).name)), head("total, bytes"))),
    a.h("tbody", {}, ...found.map(row), ...unknown));
}
// As bar in pipeline/render/draw/plot.py.
function bar(parts, scale) {
  const make = (tag, attributes) => Object.entries(attributes).reduce((e, [key, value]) => { e.setAttribute(key, value); return e; }, document.createElementNS("http://www.w3.org/2000/svg", tag));
  const svg = make("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  let sum = 0;
  for (const [part, bytes] of parts) {
    const x = Math.round((1000 * sum) / scale), end = Math.round((1000 * (sum + bytes)) / scale);
    if (bytes) svg.append(make("path", { class: `c-${part.replace(/_bytes$/, "")}`, d: `M${x} 0H${end}V10H${x}z` }));
    sum += bytes;
  }
  return svg;
}

// GiB on one card by format, for every number of sequences and every context that the model has an answer for.
export function contexts(page, table) {
  const { world, totals } = page, limit = +article.dataset.limit;
  const found = world.scenarios.filter((s) => s.phase === "inference" && totals[s.index * world.width] !== Infinity);
  const values = (key, list) => [...new Set(list.map((s) => s[key]))].sort((x, y) => x - y);
  const many = values("sequences", world.scenarios.filter((s) => s.phase === "inference")), lengths = values("context", found);
  const rows = [...new Set(found.map((s) => s.dtype))];
  const cell = (dtype, sequences, context) => {
    const s = found.find((each) => each.dtype === dtype && each.sequences === sequences && each.context === context);
    return a.h("td", { class: "n" }, s ? a.gib(totals[s.index * world.width]) : limit && context > limit ? "–" : "unknown");
  };
  const beyond = (context) => (limit && context > limit ? [a.h("span", { title: "beyond the model's own context" }, "†")] : []);
  const each = (make) => many.flatMap((n) => lengths.map((context) => make(n, context)));
  table.append(
    a.h("thead", {},
      a.h("tr", {}, a.h("th", { scope: "col", rowSpan: 2 }, "Format"), ...many.map((n) => a.h("th", { scope: "colgroup", colSpan: lengths.length }, `${n} ${n === 1 ? "sequence" : "sequences"} of`))),
      a.h("tr", {}, ...each((_n, context) => a.h("th", { scope: "col", class: "n" }, a.tokens(context), ...beyond(context))))),
    a.h("tbody", {}, ...rows.map((dtype) => a.h("tr", {}, a.h("th", { scope: "row" }, dtype), ...each((n, context) => cell(dtype, n, context))))));
}

// Where the parameters are, and what a layer keeps of each token.
export function anatomy({ tensor_class: classes, attention_layer: layers }, box) {
  const n = (value) => a.h("td", { class: "n" }, value ? value.toLocaleString("en") : "–");
  const table = (name, heads, rows) => a.h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": name }, a.h("table", { class: "bd" }, a.h("caption", {}, name),
    a.h("thead", {}, a.h("tr", {}, ...heads.map((text, i) => a.h("th", { scope: "col", class: i > 0 && "n" }, text)))), a.h("tbody", {}, ...rows)));
  const sum = classes.reduce((all, row) => all + row.element_count, 0) || 1;
  const parts = [...classes].sort((x, y) => y.element_count - x.element_count).map((row) => a.h("tr", {}, a.h("th", { scope: "row" }, row.tensor_class), n(row.element_count), a.h("td", { class: "n" }, `${((100 * row.element_count) / sum).toFixed(1)} %`)));
  const kept = layers.map((row) => a.h("tr", {}, a.h("th", { scope: "row" }, a.shown(row.kind), " ", a.h("small", {}, row.mechanism)), n(row.layer_count), n(row.elements_per_token), n(row.window_tokens), n(row.state_elements)));
  box.replaceChildren(...(parts.length ? [table("Parameters by class", ["Class", "Elements", "Share"], parts)] : []),
    ...(kept.length ? [table("What one layer caches", ["Layers", "Count", "Elements per token", "Window", "State"], kept)] : []));
}
