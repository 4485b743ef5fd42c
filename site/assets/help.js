// It does not fit: now what? For the reader's card, by the formulas themselves: a cache of 8 bits, more cards, any number of them.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const MULTIPLE = 256; // tokens that llama.cpp allocates at a time
const GGUF = ["gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-q4_k_m", "gguf-q3_k_m"];
const CARDS = [...Array(15).keys()].map((n) => n + 2).concat(24, 32, 40, 48, 56, 64), MANY = [2, 4, 8, 16, 24, 32, 48, 64, 96, 128];

export class Help {
  constructor(page, box, article) {
    Object.assign(this, { page, box, article, asItWas: [...box.childNodes] });
    this.model = decodeURIComponent(article.dataset.id);
  }

  async draw() {
    const gpu = this.page.card(), asked = gpu && `${gpu.id} ${gpu.bytes}`;
    if (!this.box.closest("details").open || this.drawn === asked) return;
    this.drawn = asked;
    // (nothing is shared with a memory that there is not)
    for (const about of this.box.parentElement.querySelectorAll(":scope > :is(p, .highlight)")) about.hidden = Boolean(gpu && a.isComputer(gpu));
    if (!gpu) return this.box.replaceChildren(...this.asItWas);
    this.reckoning ??= Promise.all([import(`./reckon.js${search}`), import(`./ways.js${search}`), a.load("data/support.json")]);
    const [r, { frugal }, support] = await this.reckoning, own = a.rowsOf(this.page.file, this.page.rows);
    const ask = (wanted) => r.ask(own, { model_id: this.model, phase_id: "inference", sequences: 1, ...wanted });
    const split = (row) => r.splitSaid(r.split(own, row, gpu.bytes, gpu), a.formatName(row.dtype_id));
    // support is of every program, not only of what is published
    const runs = (row) => row && !r.refusal({ ...this.page.world, support }, row, a.heldOn(this.article), gpu);
    const least = (wanted) => frugal(wanted, Infinity, (asked) => { const row = ask(asked); return r.holds(row, gpu.bytes) && runs(row) ? row : null; });
    this.box.replaceChildren(...this.ways(gpu, ask, r.shared.opening ?? {}, split, least, runs).map((way) => a.h("li", {}, ...way)));
  }

  ways(gpu, ask, opening, split, frugal, runs) {
    const holds = (row) => row?.total_bytes != null && a.takes(row.total_bytes, row.error_band, gpu.bytes);
    const context = +this.article.dataset.context, most = +this.article.dataset.limit || context;
    const formats = this.article.dataset.held === "mxfp4" ? ["gguf-mxfp4"] : GGUF;
    const longest = (wanted) => {
      let low = 0, high = Math.ceil(most / MULTIPLE);
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (holds(ask({ ...wanted, context_tokens: Math.min(middle * MULTIPLE, most) }))) low = middle;
        else high = middle - 1;
      }
      return Math.min(low * MULTIPLE, most);
    };
    const ways = [], say = (n) => n.toLocaleString("en");
    for (const dtype_id of formats) {
      const small = longest({ dtype_id, kv_dtype_id: "q8_0" });
      if (!small || (small < context && dtype_id !== formats.at(-1))) continue;
      const plain = longest({ dtype_id });
      if (small > plain) ways.push([a.h("b", {}, "A cache of 8 bits"), ` (-fa on -ctk q8_0 -ctv q8_0): ${a.formatName(dtype_id)} holds ${say(small)} tokens, ${plain ? `with one of 16 bits ${say(plain)}` : "with one of 16 bits none"}.`]);
      break;
    }
    const held = formats.find((dtype_id) => holds(ask({ dtype_id, context_tokens: context })));
    if (held && held !== formats[0]) ways.push([a.h("b", {}, `In ${a.formatName(held)}`), ` it fits at ${a.tokens(context)} tokens; in ${a.formatName(formats[0])} it does not.`]);
    const [far, tokens] = held ? [] : formats.map((dtype_id) => [dtype_id, longest({ dtype_id })]).reduce((x, y) => (y[1] > x[1] ? y : x));
    if (tokens) ways.push([a.h("b", {}, "A shorter context"), `: ${a.formatName(far)} holds ${say(tokens)} tokens.`]);
    for (const dtype_id of [...formats].reverse().filter((d) => ["gguf-q4_k_m", "gguf-mxfp4"].includes(d))) {
      if (holds(ask({ dtype_id, context_tokens: context }))) continue;
      const n = a.isComputer(gpu) ? null : CARDS.find((gpu_count) => holds(ask({ dtype_id, context_tokens: context, gpu_count })));
      const over = ask({ dtype_id, context_tokens: context });
      if (over?.total_bytes != null) ways.push([a.h("b", {}, n ? `${n} × ${gpu.short}` : a.isComputer(gpu) ? "More memory" : "More cards"), a.isComputer(gpu) ? `: ${a.formatName(dtype_id)} at ${a.tokens(context)} tokens` : n ? ` hold ${a.formatName(dtype_id)} at ${a.tokens(context)} tokens` : `: not even ${CARDS.at(-1)} hold ${a.formatName(dtype_id)}`, `; one lacks ${a.gib((over.total_bytes - gpu.bytes) / 1024)} GiB.`]);
      const shared = over?.total_bytes != null && split(over);
      if (shared) ways.push(shared);
    }
    for (const [phase_id, dtype_id, what] of [["qlora", "nf4", "QLoRA"], ["lora", "bf16", "LoRA"], ["full-finetune", "bf16", "Full fine-tuning"]]) {
      if (!this.article.querySelector("[data-matrix=training]")) break;
      const wanted = { ...opening[phase_id], phase_id, dtype_id, context_tokens: +this.article.dataset.length };
      if (holds(ask(wanted))) continue;
      const { context_tokens } = wanted, least = frugal({ phase_id, dtype_id, context_tokens });
      if (least) {
        ways.push([a.h("b", {}, `${what} with ${least.name}`), ` fits one ${gpu.short}, one sequence at a time of ${a.tokens(context_tokens)} tokens: ${a.gib(least.row.total_bytes / 1024)} GiB.`]);
        continue;
      }
      if (a.isComputer(gpu) || !runs(ask(wanted))) continue; // however many there are
      const n = MANY.find((gpu_count) => holds(ask({ ...wanted, gpu_count, sharding: "zero3" })));
      if (ask(wanted)?.total_bytes != null) ways.push([a.h("b", {}, what), ` of ${a.tokens(wanted.context_tokens)} tokens, ${a.recipe(this.page.world, wanted.optimizer_id, wanted.checkpointing)}: ${n ? `${n} × ${gpu.short}` : `not even ${MANY.at(-1)} × ${gpu.short}`}, shared by ZeRO-3.`]);
    }
    if (!ways.length) ways.push([`It fits on one ${gpu.short}.`]);
    return ways;
  }
}
