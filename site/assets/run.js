// What to paste, for the reader's card: of each engine the best format that holds the context, the longest context in it, and the flags
// that make it fit. As pages/commands.py says it before a card is known.
const search = new URL(import.meta.url).search;
const [a, limits] = await Promise.all([import(`./almanac.js${search}`), import(`./limits.js${search}`)]);

const ENGINES = { ollama: "llama.cpp", sglang: "vllm" }; // whose numbers are told of them

export class Run {
  constructor(page, section) {
    Object.assign(this, { page, section });
    this.held = JSON.parse(section.dataset.held);
    const article = section.closest("article");
    this.running = article ? a.heldOn(article) : "";
    this.stored = article?.dataset.held; // its points stand under `stored` where nothing else is in that format
    this.held.stored = this.held[this.stored];
    this.gaps = JSON.parse(section.dataset.gaps ?? "{}");
    this.items = [...section.querySelectorAll("[data-line]")].map((item) => ({ item, formats: item.dataset.formats.split(" "), line: +item.dataset.line, asItWas: [item.querySelector("code").textContent, item.querySelector("small").textContent] }));
  }

  async draw() {
    if (this.page.state.gpu) this.lines ??= await a.load("data/commands.json");
    const gpu = this.page.card();
    const context = this.page.start.inference?.context ?? 8192;
    for (const each of this.items) {
      const code = each.item.querySelector("code"), note = each.item.querySelector("small");
      each.item.hidden = false;
      if (!gpu || !this.page.points || !this.lines) {
        [code.textContent, note.textContent] = each.asItWas;
        code.closest("pre").hidden = false;
        continue;
      }
      const found = await this.shared(this.choose(each, gpu, context), each, gpu);
      if (found.refusal) {
        each.item.hidden = true; // it does not run on this card
        continue;
      }
      code.closest("pre").hidden = Boolean(found.never);
      const gaps = { held: this.held, model: each.item.dataset.model ?? this.page.model, own: this.gaps }, [command, said] = this.lines[each.line];
      code.textContent = fill(command, found, gaps);
      note.textContent = [found.told, fill(said, found, gaps)].filter(Boolean).join(" ");
    }
  }

  // What does not fit is shared with the CPU where the engine can: the flags say how much of it.
  async shared(found, { item }, gpu) {
    if (!found.short || item.dataset.engine !== "llama.cpp" || a.isComputer(gpu)) return found;
    const r = await import(`./reckon.js${search}`), own = a.rowsOf(this.page.file, this.page.rows), dtype = found.short;
    const row = r.ask(own, { model_id: this.page.model, phase_id: "inference", dtype_id: dtype, context_tokens: this.page.start.inference?.context ?? 8192, sequences: 1 });
    const split = r.split(own, row, gpu.bytes), flags = split && r.flagsOf(split);
    if (!flags) return found;
    const bytes = (split.experts ?? split.layers).host_bytes, many = r.fewest(own, { model_id: this.page.model, phase_id: "inference", dtype_id: dtype, context_tokens: row.context_tokens, sequences: 1 }, gpu.bytes)?.gpu_count;
    return { ...found, dtype, context: row.context_tokens, cards: 1, flags, never: false, told: `Does not fit on one ${gpu.short}${many > 1 ? ` (${many} of them hold it)` : ""}: shared with the CPU, which needs ${a.gib(bytes / 1024)} GiB of the computer’s memory and is slower.` };
  }

  choose({ item, formats }, gpu, context) {
    const { world, points } = this.page;
    const engine = ENGINES[item.dataset.engine] ?? item.dataset.engine;
    const at = (dtype) => points.find((row) => row.phase === "inference" && row.dtypeId === dtype && row.engine === engine);
    const rows = formats.map((dtype) => at(dtype) ?? (dtype === this.stored && at("stored"))).filter(Boolean);
    const runs = rows.filter((row) => !a.refusal(world, row, this.running, gpu));
    if (!runs.length) return { refusal: true };
    const reaches = runs.map((row) => [row, limits.reach(world.limits, row, gpu.bytes)[0]]);
    const [row, longest] = reaches.find(([, n]) => n >= context) ?? reaches.reduce((x, y) => (y[1] > x[1] ? y : x));
    if (longest > 0) {
      const short = longest < context ? `No format holds ${a.tokens(context)} tokens on one ${gpu.short}; this holds ${longest.toLocaleString("en")}.` : `${name(row.dtypeId)} on one ${gpu.short}: up to ${longest.toLocaleString("en")} tokens fit.`;
      return { dtype: row.dtypeId, context: longest, cards: 1, told: short, share: share(world, row, longest, gpu) };
    }
    // the fewest cards, in the best format that they hold; else those that hold one without our error
    const ways = reaches.flatMap(([each]) => {
      const scenario = world.scenarios.find((s) => s.phase === "inference" && s.dtypeId === each.dtypeId && s.engine === engine && s.context === context && s.sequences === 1);
      const { verdict, gpus, percent } = scenario ? a.several(this.page.totals, scenario.index * world.width, world.counts, gpu.capacity) : {};
      if (!gpus || (gpus > 1 && a.isComputer(gpu))) return [];
      const told = verdict === "tight" ? `Barely on ${gpus === 1 ? "one" : gpus} ${gpu.short}, in ${name(each.dtypeId)}: ${percent} % full, and our error is more than the rest.` : `Not on one ${gpu.short}: on ${gpus}, in ${name(each.dtypeId)}, each ${percent} % full.`;
      return [{ dtype: each.dtypeId, context, cards: gpus, isTight: verdict === "tight", told, share: allowed(world, gpu, gpus, ((percent + 1) / 100) * gpu.capacity) }];
    });
    const small = ["gguf-q4_k_m", "gguf-mxfp4"].find((dtype) => runs.some((row) => row.dtypeId === dtype)); // what is shared with the CPU
    if (ways.length) return { ...ways.reduce((x, y) => (y.isTight - x.isTight || y.cards - x.cards) < 0 ? y : x), short: small };
    const [last] = reaches.at(-1), least = last.along.totals[0];
    return { dtype: last.dtypeId, context: last.along.at[0], cards: 1, share: world.server_share, short: small, never: true, told: `Does not fit on ${gpu.short}${a.isComputer(gpu) ? "" : ", nor on as many as were worked out"}: ${name(last.dtypeId)} needs ${a.gib(least / 1024)} GiB of ${a.gib(gpu.capacity)}.` };
  }
}

const published = document.querySelector("article.model")?.dataset.held;
const name = (dtype) => (dtype === "stored" && published ? published : dtype.startsWith("gguf-") ? dtype.slice(5).toUpperCase() : dtype);
// The share of the card that a server has to be given: what is needed with its margin, and not less than what it takes by itself.
function share(world, { along: { at, totals, band } }, context, gpu) {
  const high = Math.max(0, at.findIndex((place) => place >= context));
  const need = a.needed(totals[high], Array.isArray(band) ? band[high] : band);
  return allowed(world, gpu, 1, Math.min(need, gpu.bytes) / 1024);
}
// (of the whole card, and no more than is free when it starts; in KiB)
function allowed(world, gpu, cards, held) {
  const share = a.shareOf(world, gpu, cards);
  return Math.min(Math.max(world.server_share, Math.ceil((100 * held) / share.whole) / 100), a.shareMost(gpu.capacity, share));
}
function fill(template, { dtype, context, cards, flags, share: part }, { held, model, own }) {
  const given = {
    model, repository: held[dtype] ?? held.gguf ?? "", quant: name(dtype), tag: dtype === "gguf-mxfp4" ? "" : `:${name(dtype)}`, bits: /mlx-(\d)bit/.exec(dtype)?.[1] ?? "", context: String(context), share: part.toFixed(2),
    tensor_parallel_size: cards > 1 ? ` --tensor-parallel-size ${cards}` : "", tp: cards > 1 ? ` --tp ${cards}` : "", devices: cards > 1 ? "'auto'" : "0",
    sight: "", beside: "", images: "", counted: "", kept: "", users: "1", prompts: "1", all_tokens: String(context), cache: "", slots: "", ...own,
  };
  const command = template.replace(/\{(\w+)\}/g, (_, key) => given[key]);
  return flags ? command.replace("-ngl 99", flags) : command;
}
