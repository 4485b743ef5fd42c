// The first screen with the computer's own memory beside a card: mixtures that the card does not hold whole, and does with the experts of some layers in RAM.
// The file is that of pipeline/render/data/beside.py; what the card holds of a whole is that of the list itself.
const search = new URL(import.meta.url).search;
const [a, limits, { ram_takes }, { needAt }] = await Promise.all([import(`./almanac.js${search}`), import(`./limits.js${search}`), import(`../../data/rules.js${search}`), import(`./window.js${search}`)]);
const fill = (template, given) => template.replace(/\{(\w+)\}/g, (_, key) => given[key]);
const gib = (bytes) => a.gib(bytes / 1024);

export class Beside {
  constructor(window, data) {
    Object.assign(this, { window, data, steps: new Map() });
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

  part({ experts, blocks }) { return fill(this.data.part, { experts, blocks }); }
  flags({ experts }) { return fill(this.data.flags, { experts }); }
}

// The error band at a context: between two of them the larger.
function bandAt({ at, band }, context) {
  if (!Array.isArray(band)) return band;
  const high = at.findIndex((place) => place >= context);
  return at[high] === context ? band[high] : Math.max(...band.slice(Math.max(0, high - 1), high + 1));
}

// What stands above the rows, and a row: `say` gives the words of the page for what it has of a work.
export function head(columns, many, ram, calculator) {
  return a.h("tr", { role: "row" }, a.h("th", { scope: "rowgroup", role: "rowheader", colSpan: columns, class: "group" }, `With ${ram} GB of RAM: ${many}`,
    a.h("small", {}, "Their experts lie in RAM in part, which is slower than what the card holds whole. Models without experts can run so too, more slowly still, and are not listed: ", a.h("a", { href: calculator }, "calculate one ›"))));
}
export function row(beside, { way }, say) {
  const need = needAt(way.line, say.context).total;
  return a.h("tr", { role: "row" }, say.name, a.h("td", { class: "barcell", role: "cell" }, say.bar(way.line)),
    a.h("td", { class: "rec", role: "cell" }, a.h("b", {}, say.format), ` ${gib(need)} of ${gib(say.gpu.bytes)}\u00a0GiB`),
    a.h("td", { class: "why", role: "cell", colSpan: say.columns }, "and ", a.h("b", {}, `${gib(way.host)} of ${gib(way.ram)} GiB of RAM`), ` with ${beside.part(way)} (`, a.h("code", {}, beside.flags(way)), `). Longest context: ${say.reach}. `, say.link));
}
