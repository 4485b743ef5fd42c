// How far a card goes: the longest context and the most sequences, read off the points of a model (data/limits/). The same rule and the
// same order of operations as the view `compatibility` and pipeline/render/data/limits.py: between two points memory is taken as a line, which
// lies above it where it bends, so a limit is never too high; the error band is in every need; whole multiples of what an engine allocates.
const need = ({ totals, band }, i) => totals[i] * (1 + (Array.isArray(band) ? band[i] : band));

function onTheLine(points, low, high, capacity, multiple) {
  const { at } = points, below = need(points, low);
  const place = at[low] + ((capacity - below) / Math.max(need(points, high) - below, 1)) * (at[high] - at[low]);
  return Math.max(at[low], Math.floor(place / multiple) * multiple);
}

// The longest between the points; where all of them fit, the last: nobody looked further.
export function between(points, capacity, multiple = 1) {
  const n = points.totals.length;
  const fit = points.totals.filter((_, i) => need(points, i) <= capacity).length;
  return fit === 0 ? 0 : fit === n ? points.at[n - 1] : onTheLine(points, fit - 1, fit, capacity, multiple);
}

// The most; beyond the last point the line goes on, up to what the engine runs at all.
export function beyond(points, capacity, most = Infinity) {
  const n = points.totals.length;
  if (n < 2 || points.totals.some((_, i) => need(points, i) > capacity)) return between(points, capacity);
  return Math.min(onTheLine(points, n - 2, n - 1, capacity, 1), most);
}

// A file of points as rows: phase, format, engine, and the points along the context and along the sequences. An axis goes as far as anybody
// looked; totals end where no card of the book holds them any more.
export function rows({ axes, rows: lines }) {
  const points = (line) => line && { at: axes[line[0]], totals: line[1], band: line[2] };
  return lines.map(([phase, dtypeId, engine, along, beside]) => ({ phase, dtypeId, engine, along: points(along), beside: points(beside) }));
}

// Of a row on a card that gives so many bytes: [longest context, most sequences].
export function reach({ multiple, most }, row, bytes) {
  const context = between(row.along, bytes, multiple[row.engine]);
  if (!row.beside) return [context, null];
  return [context, row.phase === "inference" ? beyond(row.beside, bytes, most[row.engine]) : between(row.beside, bytes)];
}
