// What the first screen works out, without a page: of every work the longest context in each format on so many of a card, which of them
// serve a wish, in which order, and what of the others misses by how much. The files are those of pipeline/render/data/window.py.
const search = new URL(import.meta.url).search;
const [a, limits] = await Promise.all([import(`./almanac.js${search}`), import(`./limits.js${search}`)]);

// The steps of cache and rest as points, with so many bytes of weights more; made once for each line.
function points(axes, line, more, made) {
  const key = made.get(line) ?? made.set(line, new Map()).get(line);
  if (!key.has(more)) {
    const [axis, weights, cache, rest, band, padding = []] = line, at = axes[axis];
    let held = 0, other = 0, aside = 0;
    const caches = [], totals = [], reads = [];
    for (let i = 0; i < cache.length; i++) {
      held += cache[i];
      other += rest[i];
      aside += padding[i] ?? 0;
      caches.push(held);
      reads.push(held - aside); // what is set aside beyond it no token reads
      totals.push(weights + more + held + other);
    }
    key.set(more, { at, totals, band, weights: weights + more, caches, reads });
  }
  return key.get(more);
}

export class Window {
  constructor(world, data) {
    Object.assign(this, { world, data, several: null, made: new Map() });
    this.newest = data.made.reduce((x, y) => (x > y ? x : y), "");
    this.years = data.made.map((made) => Math.floor(monthsBetween(made, this.newest) / 12));
    this.found = new Map();
  }

  get counts() { return [1, ...(this.several?.counts ?? [])]; }

  // For each column the points of a work on so many cards; null where nothing is published.
  lines(work, count) {
    const { data, several } = this, shape = data.shape[work];
    const lines = count === 1 ? data.shapes[shape] : several?.shapes[shape][several.counts.indexOf(count)];
    let first = null;
    return (lines ?? []).map((line) => {
      if (line === null) return null;
      if (Array.isArray(line)) { first ??= line; return points(data.axes, line, 0, this.made); }
      return points(data.axes, first, line, this.made);
    });
  }

  // By column on so many of a card: the longest context, 0 where none fits; undefined where nothing is published; a refusal where it does not run.
  cells(work, gpu, count) {
    const key = `${gpu.bytes} ${gpu.kind} ${count}`;
    if (!this.found.has(key)) this.found.set(key, new Map());
    const of = this.found.get(key), shape = this.data.shape[work];
    if (!of.has(shape)) {
      const refusals = this.data.columns.map(([phase, dtypeId, engine]) => a.refusal(this.world, { phase, dtypeId, engine }, "", gpu));
      of.set(shape, this.lines(work, count).map((line, c) => {
        if (!line) return undefined;
        if (refusals[c]) return { refusal: refusals[c] };
        return { line, longest: limits.between(line, gpu.bytes, this.data.multiple ?? this.world.limits.multiple[this.data.columns[c][2]]) };
      }));
    }
    return of.get(shape);
  }

  // The columns that decide about a work, the best first: those of the wish, or the one that it is published in.
  deciding(wish, cells) {
    const { main } = this.data, known = (cells.deciding ??= new Map()); // cells are those of a shape: many works ask the same
    if (!known.has(wish.name)) {
      const own = cells.findIndex((cell, c) => c >= main && cell);
      known.set(wish.name, own >= 0 ? [own] : wish.asked.filter((c) => cells[c]));
    }
    return known.get(wish.name);
  }

  // The works that a wish means, by their tasks and names.
  meant(wish) {
    const { data } = this, pattern = (text) => (text ? new RegExp(text, "i") : null);
    const [named, not] = [pattern(wish.named), pattern(wish.not)];
    wish.works ??= data.id.map((_, work) => work).filter((work) => wish.tasks.includes(data.task[work]) && (!named || named.test(data.id[work])) && !not?.test(data.id[work]));
    return wish.works;
  }

  // What a wish comes to: rows that fit in the order asked for, and those that do not.
  answer({ wish, gpu, count, context, sort, isNamed }) {
    const { data } = this;
    const rows = [], misses = [];
    for (const work of this.meant(wish)) {
      if (isNamed && !isNamed(work)) continue;
      const cells = this.cells(work, gpu, count);
      if (!cells.length) continue; // not published on so many cards
      const deciding = this.deciding(wish, cells);
      const best = deciding.find((c) => cells[c].longest >= context);
      (best === undefined ? misses : rows).push({ work, cells, deciding, best });
    }
    const order = ORDERS[sort].by(this);
    const isWhole = isNamed?.isWhole ?? (() => false); // the model of just the name that was typed comes first
    rows.sort((x, y) => isWhole(y.work) - isWhole(x.work) || order(x, y));
    const isKnown = ({ work }) => !data.why?.[work] || Boolean(data.least[work]?.some(Boolean)); // what can be said of it comes first
    misses.sort((x, y) => isKnown(y) - isKnown(x) || isWhole(y.work) - isWhole(x.work) || order(x, y));
    return { rows, misses };
  }

  // How many tokens a second so many of a card write at most, by the rule of tables/sql/speed; null where nothing bounds it.
  speed(work, c, count, line, context, { memory_bandwidth_gb_s }) {
    const { data, several } = this, shape = data.shape[work], reads = several?.reads[shape], first = Array.isArray(reads) && reads.findIndex((n) => n !== null);
    if (!Array.isArray(reads) || reads[c] === null) return null;
    const shared = count === 1 ? "" : several.shared[c];
    if (shared == null) return null;
    const read = (c === first ? 0 : reads[first]) + reads[c];
    const footprint = {
      phase_id: data.columns[c][0], engine_id: null, sequences: 1, tensor_parallel: shared === "tp" ? count : 1, pipeline_parallel: shared === "pp" ? count : 1,
      kv_cache_bytes: needAt(line, context).read, state_bytes: 0, // the cache that is read holds both
    };
    const model = { is_encoder: false, writes_otherwise: null, is_sparsely_read: several.sparse.includes(shape) };
    return a.decodeMost(model, { read_bytes: read }, footprint, { memory_bandwidth_gb_s: memory_bandwidth_gb_s ?? null });
  }

  // The fewest cards that hold a work, and its best format there; null where no published number does.
  fewest(wish, work, gpu, context) {
    for (const count of this.counts.slice(1)) {
      const cells = this.cells(work, gpu, count);
      const best = this.deciding(wish, cells).find((c) => cells[c]?.longest >= context);
      if (best !== undefined) return { count, best };
    }
    return null;
  }
}

// Which comes first, by the places of works: these are by downloads of the whole work.
export const ORDERS = {
  current: { label: "New and popular", by: ({ years }) => (x, y) => years[x.work] - years[y.work] || x.work - y.work },
  downloads: { label: "Most downloaded", by: () => (x, y) => x.work - y.work },
  newest: { label: "Newest", by: ({ data: { made } }) => (x, y) => (made[x.work] < made[y.work] ? 1 : made[x.work] > made[y.work] ? -1 : x.work - y.work) },
  size: { label: "Largest", by: ({ data: { size } }) => (x, y) => (size[y.work] ?? 0) - (size[x.work] ?? 0) || x.work - y.work },
};

function monthsBetween(made, newest) {
  if (!made) return Infinity; // nobody knows when: after all others
  const months = (text) => 12 * +text.slice(0, 4) + +text.slice(5, 7);
  return months(newest) - months(made);
}

// What a line needs at a context: read off between two points, as limits are; beyond the last point nobody looked.
export function needAt({ at, totals, band, caches, reads, weights }, context) {
  const last = at.length - 1;
  let i = at.findIndex((place) => place >= context);
  if (i < 0) i = last;
  const low = Math.max(0, i - 1), high = Math.max(i, Math.min(1, last));
  const part = high === low ? 0 : Math.min(1, Math.max(0, (context - at[low]) / (at[high] - at[low])));
  const on = (values) => values[low] + part * (values[high] - values[low]);
  const [total, cache] = [on(totals), on(caches)];
  const ends = on(totals.map((each, place) => a.needed(each, Array.isArray(band) ? band[place] : band))); // the end of the band, as limits have it
  return { total, band: ends / total - 1, weights, cache, read: on(reads), rest: total - weights - cache, at: Math.min(context, at[last]) };
}
