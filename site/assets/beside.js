// The first screen with the computer's own memory beside a card: mixtures that the card does not hold whole, and does with the experts of some layers in RAM.
// The file is that of pipeline/render/data/beside.py; what the card holds of a whole is that of the list itself.
const search = new URL(import.meta.url).search;
const [a, limits, { ram_takes }, { needAt }] = await Promise.all([import(`./almanac.js${search}`), import(`./limits.js${search}`), import(`../../data/rules.js${search}`), import(`./window.js${search}`)]);
const fill = (template, given) => template.replace(/\{(\w+)\}/g, (_, key) => given[key]);
const gib = (bytes) => a.gib(bytes / 1024);

export class Beside {
  // `page` has the words of the first screen for a work.
  constructor(window, data, page) {
    Object.assign(this, { window, data, page, steps: new Map() });
    this.splitOf = new Map(data.work.map((work, i) => [work, data.split[i]]));
  }

  // Of a work in a column: what RAM holds of the whole, what the card holds more once some is moved, and by so many layers what was moved.
  of(work, column) {
    const split = this.splitOf.get(work), key = `${split} ${column}`;
    if (split === undefined || !this.data.splits[split][column]) return null;
    if (!this.steps.has(key)) {
      const [held, brought, ...runs] = this.data.splits[split][column], moved = [0];
      for (let i = 0; i < runs.length; i += 2) for (let k = 0; k < runs[i + 1]; k++) moved.push(moved.at(-1) + runs[i]);
      this.steps.set(key, { held, brought, moved });
    }
    return this.steps.get(key);
  }

  // The best format in which the card and so much RAM hold a work at a context, with the fewest experts in RAM; null where none is known to.
  way({ work, cells, deciding }, gpu, context, ram) {
    const { data, world } = this.window, most = data.context[work];
    if (most && most < context) return null;
    for (const column of deciding) {
      const split = this.of(work, column), { line, refusal } = cells[column];
      if (!split || refusal || !line) continue;
      const { held, brought, moved } = split, blocks = moved.length - 1;
      const on = (k) => ({ ...line, weights: line.weights - moved[k], totals: line.totals.map((total) => total - moved[k] + brought) });
      const reach = (k) => limits.between(on(k), gpu.bytes, world.limits.multiple[data.columns[column][2]]);
      let [low, high] = [1, blocks];
      if (!(reach(high) >= context)) continue;
      while (low < high) { // the more are moved, the less is left on the card
        const middle = (low + high) >> 1;
        if (reach(middle) >= context) high = middle;
        else low = middle + 1;
      }
      const host = held + moved[low];
      if (ram_takes(host, bandAt(line, context), ram, this.data.system)) return { column, line: on(low), longest: reach(low), experts: low, blocks, host, ram };
    }
    return null;
  }

  // Of works that do not fit, those that do so, in their order.
  rows(misses, gpu, context, ram) {
    return misses.map((miss) => ({ ...miss, way: this.way(miss, gpu, context, ram) })).filter(({ way }) => way);
  }

  // The largest popular of them, and one that is smaller.
  sentence(rows, ram, popular, larger) {
    if (!rows.length) return [` With ${ram} GB of RAM no further mixture of experts.`];
    const { leaf, formatOf } = this.page, { size } = this.window.data, large = [...popular].sort(larger), first = large[0] ?? [...rows].sort(larger)[0];
    const next = [...large, ...[...rows].sort((x, y) => x.work - y.work)].find(({ work }) => size[work] < 0.95 * size[first.work]);
    const named = [first, next].filter(Boolean).flatMap(({ work, way }, i) => [i ? " and " : "", a.h("b", {}, leaf(work)), ` in ${formatOf(way.column)}`]);
    return [` With ${ram} GB of RAM also: `, ...named, ".", ...(rows.length > 2 ? [" ", a.h("a", { href: "#with-ram" }, `All ${rows.length.toLocaleString("en")} ›`)] : [])];
  }

  // Between what fits and what does not.
  draw(table, rows, now) {
    const body = table.querySelector("tbody.beside") ?? a.h("tbody", { class: "beside", id: "with-ram", role: "rowgroup" });
    body.replaceChildren(this.head(now), ...rows.map((row) => this.row(row, now)));
    if (!body.isConnected) table.querySelector("tbody.misses").before(body);
  }
  head({ of, ram, columns }) {
    const { count, calculatorAsked } = this.page;
    return a.h("tr", { role: "row" }, a.h("th", { scope: "rowgroup", role: "rowheader", colSpan: columns + 3, class: "group" }, `With ${ram} GB of RAM: ${count(of, "mixture of experts", "mixtures of experts")}`,
      a.h("small", {}, "Their experts lie in RAM in part, which is slower than what the card holds whole. Models without experts can run so too, more slowly still, and are not listed: ", a.h("a", { href: calculatorAsked() }, "calculate one ›"))));
  }
  row({ work, way }, { gpu, context, columns }) {
    const { nameOf, bar, formatOf, reach, calculation } = this.page, { column, line, experts, blocks, host, ram } = way;
    const part = fill(this.data.part, { experts, blocks }), flags = fill(this.data.flags, { experts });
    return a.h("tr", { role: "row" }, nameOf(work), a.h("td", { class: "barcell", role: "cell" }, bar(line, gpu)),
      a.h("td", { class: "rec", role: "cell" }, a.h("b", {}, formatOf(column)), ` ${gib(needAt(line, context).total)} of ${gib(gpu.bytes)}\u00a0GiB`),
      a.h("td", { class: "why", role: "cell", colSpan: columns }, "and ", a.h("b", {}, `${gib(host)} of ${gib(ram)} GiB of RAM`), ` with ${part} (`, a.h("code", {}, flags), `). Longest context: ${reach(way, work)}. `, calculation(work, column)));
  }
}

// The error band at a context: between two of them the larger.
function bandAt({ at, band }, context) {
  if (!Array.isArray(band)) return band;
  const high = at.findIndex((place) => place >= context);
  return at[high] === context ? band[high] : Math.max(...band.slice(Math.max(0, high - 1), high + 1));
}
