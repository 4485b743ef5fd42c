// How far a card goes: the longest context and the most sequences, read off the points of a model's shape, by the rules of
// tables/sql/capacity/limits.sql, which the build translates.
const { needed, largest_between, largest_beyond } = await import(`../../data/rules.js${new URL(import.meta.url).search}`);

// Points as the rules take them, each with what it needs, its error band included.
const known = new WeakMap();
function points(line) {
  const { at, totals, band } = line;
  if (!known.has(line)) known.set(line, totals.map((total, i) => ({ at: at[i], need: needed(total, Array.isArray(band) ? band[i] : band) })));
  return known.get(line);
}
// The longest between the points; where all of them fit, the last: nobody looked further.
export const between = (line, capacity, multiple = 1) => largest_between(points(line), capacity, multiple);
// The most; beyond the last point the line goes on, up to what the engine runs at all.
export const beyond = (line, capacity, most = null) => largest_beyond(points(line), capacity, most);

// The points of a shape as rows: phase, format, engine, and the points along the context and along the sequences.
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
