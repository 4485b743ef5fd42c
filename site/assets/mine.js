// What a model's page says of the reader's own card below the table of cards: how fast it can be, and where it does not fit how many of the
// card hold it and which smaller sibling does; the way to the page that lists all cards that hold it.
const search = new URL(import.meta.url).search;
const [a, tables, limits, rules] = await Promise.all([import(`./almanac.js${search}`), import(`./model_tables.js${search}`), import(`./limits.js${search}`), import(`../../data/rules.js${search}`)]);
const article = document.querySelector("article.model");
const CARDS = 64; // more of them nobody puts together for one answer

export class Mine {
  constructor(page, box, byCard) {
    Object.assign(this, { page, box, byCard, turn: 0, smaller: JSON.parse(box.dataset.smaller ?? "[]") });
  }

  clear() {
    this.turn++;
    this.box.replaceChildren();
  }

  async draw() {
    const turn = ++this.turn, { page } = this, g = page.card(), notes = [];
    const show = (...parts) => notes.push(a.h("li", {}, ...parts));
    if (page.state.system === "windows") show(`Under Windows a program gets about ${Math.round(100 * page.world.wddm_share)} % of what a card is sold with; cards of servers and Macs are told as they are.`);
    if (g) {
      const runs = this.byCard.runs(g), best = tables.bestOf(page.world, runs, g.bytes, this.byCard.context);
      if (best) {
        const said = await this.speed(g, best);
        if (said) show(said);
      }
      if (runs.length && !(best?.[1] >= this.byCard.context)) {
        const [cards, sibling, shared] = await Promise.all([a.isComputer(g) ? null : this.cards(g, runs), this.sibling(g), this.shared(g, runs)]);
        if (cards) {
          const format = cards.dtypeId === "stored" ? tables.formatName("stored") : `in ${tables.formatName(cards.dtypeId)}`;
          const whole = cards.published ? `; ${cards.published} as published` : "";
          show(a.h("b", {}, `${cards.count} × ${g.short}`), ` hold it ${format} at ${a.tokens(this.byCard.context)} tokens, and up to ${cards.longest.toLocaleString("en")}${whole}.`);
          const cell = this.byCard.table.querySelector("tr.mine td:is(.v-no, .v-multi-gpu)");
          if (cell && turn === this.turn) { cell.textContent = `${cards.count} cards, ${format}: ${a.roundedTokens(cards.longest)}${whole}`; cell.className = "v-multi-gpu"; }
        }
        if (turn === this.turn) await this.others(g, turn);
        if (shared) show(...shared);
        if (sibling) show("A smaller sibling fits: ", a.h("a", { href: a.address(`models/${sibling.path}/${location.search}`) }, a.shown(sibling.name)), ` (${sibling.size}) in ${sibling.format}${sibling.longest ? `, up to ${sibling.longest.toLocaleString("en")} tokens` : ""}.`);
        else if (this.smaller.length) show(`No smaller sibling fits either, down to ${this.smaller.at(-1)[1]} (${this.smaller.at(-1)[2]}).`);
      }
    }
    show(a.h("a", { href: this.which() }, "Which card for this?"));
    if (turn !== this.turn) return;
    this.box.replaceChildren(...notes);
    await this.train(g, turn);
  }

  // In the table of training, once it is open: how many of the card a training takes that no published number of them holds.
  async train(g, turn) {
    const table = article.querySelector('[data-matrix="training"]'), fold = table?.closest("details");
    if (!g || !table || a.isComputer(g)) return;
    if (!fold.open) return void fold.addEventListener("toggle", () => { if (turn === this.turn) this.train(g, turn); }, { once: true });
    const rows = [...table.tBodies[0].rows].filter((row) => row.scenario && row.cells[2]?.matches(".v-no")); // one's own card is the first
    if (!rows.length) return;
    this.reckoning ??= import(`./reckon.js${search}`);
    const r = await this.reckoning, own = a.rowsOf(this.page.file, this.page.rows);
    for (const row of rows) {
      const { phase, dtypeId, engine, context, sequences, optimizer, checkpointing } = row.scenario;
      const found = r.fewest(own, { model_id: this.page.model, phase_id: phase, dtype_id: dtypeId, engine_id: engine, context_tokens: context, sequences, optimizer_id: optimizer, checkpointing, sharding: "zero3" }, g.bytes);
      if (turn !== this.turn) return;
      if (!found || found.gpu_count > CARDS) continue;
      const cell = row.cells[2];
      cell.textContent = `${found.gpu_count} × ${Math.ceil((100 * found.total_bytes) / g.bytes)}\u00a0%`;
      cell.className = "v v-multi-gpu";
      cell.title = `${found.gpu_count} × ${g.name}, shared by ZeRO-3: ${a.gib(found.total_bytes / 1024)} GiB on each`;
    }
  }

  // The page that lists the cards that hold it, asked the same.
  which() {
    const { state, start, model } = this.page, g = this.page.card(), best = g && tables.bestOf(this.page.world, this.byCard.runs(g), g.bytes, this.byCard.context);
    const asked = { model, dtype: best?.[0].dtypeId ?? state.dtype, context: start.inference?.context, system: state.system === a.memory.unsaidSystem() ? "" : state.system };
    return `${a.address("which-card/")}?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`;
  }

  // At most so many tokens a second, by the rule of speed_on: translated from the SQL.
  async speed(g, [row, longest]) {
    this.facts ??= a.load("data/cards.json");
    const facts = await this.facts, { file, rows } = this.page;
    const of = facts.rows.find(([id]) => id === g.id), card = of && Object.fromEntries(facts.columns.map((name, i) => [name, of[i]]));
    const told = file.footprints.find((f) => f.phase_id === "inference" && f.dtype_id === row.dtypeId && f.engine_id === row.engine);
    const shape = rows.shape?.[0], weight = rows.weight?.find((each) => each.dtype_id === row.dtypeId);
    if (!card || !told || !shape || !weight) return "";
    const at = told.context_tokens.findLastIndex((n) => n <= Math.max(longest, told.context_tokens[0]) && n <= Math.max(this.byCard.context, told.context_tokens[0]));
    const value = (name) => (Array.isArray(told[name]) ? told[name][at] : told[name]) ?? 0;
    const footprint = { phase_id: "inference", engine_id: row.engine, sequences: 1, tensor_parallel: 1, pipeline_parallel: 1, kv_cache_bytes: value("kv_cache_bytes"), state_bytes: value("state_bytes") };
    const fields = (from, names) => Object.fromEntries(names.map((name) => [name, from[name] ?? null])); // files leave nulls out
    const most = rules.decode_most(fields(shape, ["is_encoder", "writes_otherwise", "is_sparsely_read"]), fields(weight, ["read_bytes"]), footprint, card);
    if (most == null) return "";
    const usual = facts.share ? `; ${Math.round(100 * facts.share.low)} to ${Math.round(100 * facts.share.high)} % of that is usual` : "";
    return `${tables.formatName(row.dtypeId)} writes at most ${a.rate(most)} tokens a second with ${a.tokens(told.context_tokens[at])} in the cache: a bound from the ${Math.round(card.memory_bandwidth_gb_s).toLocaleString("en")} GB/s of the card, not a measurement${usual}.`;
  }

  // The fewest of the card that hold it, beyond those that are published; by the formulas themselves.
  async cards(g, runs) {
    this.reckoning ??= import(`./reckon.js${search}`);
    const r = await this.reckoning, own = a.rowsOf(this.page.file, this.page.rows);
    const found = this.fewest(r, own, runs, g);
    if (!found) return null;
    const wanted = { model_id: this.page.model, phase_id: "inference", dtype_id: found.dtypeId, engine_id: found.engine, sequences: 1, gpu_count: found.count };
    return { ...found, longest: r.longest(own, wanted, g.bytes).at };
  }

  // The same in few cards; and in how many as it is published, where fewer hold what that is converted to.
  fewest(r, own, runs, g) {
    const asked = { model_id: this.page.model, phase_id: "inference", context_tokens: this.byCard.context, sequences: 1 };
    const found = r.fewestOf(own, runs, asked, g.bytes, CARDS), stored = runs.filter((row) => row.dtypeId === "stored");
    if (found && found.dtypeId !== "stored" && stored.length) found.published = r.fewestOf(own, stored, asked, g.bytes, CARDS)?.count;
    return found;
  }

  // The other cards of the table that do not hold it alone, as one's own: the fewest of them, not of the numbers that are published.
  async others(mine, turn) {
    const r = await this.reckoning, own = a.rowsOf(this.page.file, this.page.rows), { byCard } = this, known = new Map();
    for (const row of byCard.table.querySelectorAll("tr:not(.mine)")) {
      const cell = row.querySelector("td:is(.v-no, .v-tight, .v-multi-gpu)[colspan]"), g = cell && this.page.cards().find((each) => each.id === row.cells[0].dataset.gpu);
      if (!g || g.id === mine.id) continue;
      const runs = byCard.runs(g), key = `${g.bytes} ${runs.map((each) => each.dtypeId + each.engine)}`;
      if (!known.has(key)) {
        await new Promise((next) => { setTimeout(next); }); // the page stays at hand meanwhile
        if (turn !== this.turn) return;
        known.set(key, this.fewest(r, own, runs, g));
      }
      const found = known.get(key);
      if (!found && cell.matches(".v-no")) cell.textContent = tables.noneSaid(g, CARDS);
      if (!found) continue;
      cell.textContent = tables.severalSaid(g, found.count, found.dtypeId, found.published);
      cell.className = "v-multi-gpu";
    }
    byCard.table.querySelector("[data-counts]")?.replaceChildren();
  }

  // How much of it lies beside the CPU where llama.cpp shares it.
  async shared(g, runs) {
    const dtypeId = ["gguf-q4_k_m", "gguf-mxfp4"].find((id) => runs.some((row) => row.dtypeId === id && row.engine === "llama.cpp"));
    if (!dtypeId) return null;
    this.reckoning ??= import(`./reckon.js${search}`);
    const r = await this.reckoning, own = a.rowsOf(this.page.file, this.page.rows);
    const row = r.ask(own, { model_id: this.page.model, phase_id: "inference", dtype_id: dtypeId, context_tokens: this.byCard.context, sequences: 1 });
    return r.splitSaid(r.split(own, row, g.bytes, g), tables.formatName(dtypeId));
  }

  // The largest of the smaller siblings that fits one of the card.
  async sibling(g) {
    for (const [path, name, size] of this.smaller) {
      const told = await a.told(path).catch(() => null);
      if (!told?.shape) continue;
      const points = limits.rows((await a.shape(told.shape)).points);
      const runs = this.byCard.formats.map(([dtypeId, engine]) => points.find((row) => row.phase === "inference" && row.dtypeId === dtypeId && row.engine === engine)).filter((row) => row && !a.refusal(this.page.world, row, told.model.stored_format ?? "", g));
      const best = tables.bestOf(this.page.world, runs, g.bytes, Math.min(this.byCard.context, told.model.max_context_tokens ?? Infinity));
      // how far a model reads that does not say it nobody promises
      if (best) return { path, name, size, format: tables.formatName(best[0].dtypeId), longest: told.model.max_context_tokens ? best[1] : 0 };
    }
    return null;
  }
}
