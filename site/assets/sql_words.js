// The words of SQL that the formulas are written in, with SQL's nulls: null spreads through arithmetic and comparisons,
// and `and`, `or`, `not` know three values. Numbers are doubles; whole numbers are exact up to 2^53 bytes.
// What is no number is unknown, as null is: it neither spreads into a total nor is printed.
const told = (value) => (Number.isNaN(value) ? null : value);
const both = (f) => (a, b) => (a == null || b == null ? null : told(f(a, b)));
const one = (f) => (a) => (a == null ? null : told(f(a)));

export const add = both((a, b) => a + b);
export const sub = both((a, b) => a - b);
export const mul = both((a, b) => a * b);
export const div = both((a, b) => a / b);
export const idiv = both((a, b) => (b === 0 ? null : Math.trunc(a / b)));
export const mod = both((a, b) => (b === 0 ? null : a % b));
export const eq = both((a, b) => a === b);
export const ne = both((a, b) => a !== b);
export const lt = both((a, b) => a < b);
export const le = both((a, b) => a <= b);
export const gt = both((a, b) => a > b);
export const ge = both((a, b) => a >= b);
export const same = (a, b) => (a ?? null) === (b ?? null);
export const differ = (a, b) => !same(a, b);
export const concat = both((a, b) => String(a) + String(b));
export const ceil = one(Math.ceil);
export const floor = one(Math.floor);
export const abs = one(Math.abs);
export const sqrt = one(Math.sqrt);
export const log2 = one(Math.log2);
export const pow = both(Math.pow);
export const round = one((a) => Math.sign(a) * Math.round(Math.abs(a)));
export const lower = one((a) => a.toLowerCase());
export const text = one(String);
export const printf = both((form, value) => form.replace(/%\.(\d)f/, (_, digits) => value.toFixed(+digits)));
export const replace = (a, old, next) => (a == null ? null : a.replaceAll(old, next));
export const starts_with = both((a, b) => a.startsWith(b));
export const string_split = both((a, b) => a.split(b));
export const like = both((text, pattern) =>
  new RegExp(`^${pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/%/g, ".*").replace(/_/g, ".")}$`, "s").test(text));

// a cast to a whole number: halves go to the even neighbour, as DuckDB casts a double
export const whole = one((a) => {
  const low = Math.floor(a);
  if (a - low !== 0.5) return Math.round(a);
  return low % 2 === 0 ? low : low + 1;
});
// the same, but nothing where 64 bits cannot hold it, or a text is no number
export const try_whole = one((a) => (Math.abs(a) < 2 ** 63 && a !== "" ? whole(Number(a)) : null));

export function and(...values) {
  if (values.includes(false)) return false;
  return values.some((v) => v == null) ? null : true;
}
export function or(...values) {
  if (values.includes(true)) return true;
  return values.some((v) => v == null) ? null : false;
}
export const not = one((a) => !a);
export const iif = (condition, a, b) => (condition === true ? a : b);
export const coalesce = (...values) => values.find((v) => v != null) ?? null;
export const nullif = (a, b) => (eq(a, b) === true ? null : a ?? null);
export function among(value, ...options) {
  if (value == null) return null;
  return options.includes(value) ? true : options.some((o) => o == null) ? null : false;
}
const known = (values) => values.filter((v) => v != null);
// (names are compared too: the first by the alphabet, or the last)
const most = (values) => (typeof values[0] === "string" ? values.reduce((x, y) => (y > x ? y : x)) : Math.max(...values));
const fewest = (values) => (typeof values[0] === "string" ? values.reduce((x, y) => (y < x ? y : x)) : Math.min(...values));
export const greatest = (...values) => (known(values).length ? told(most(known(values))) : null);
export const least = (...values) => (known(values).length ? told(fewest(known(values))) : null);

export const list = (...values) => values;
export const len = one((a) => a.length);
export const at = both((a, i) => (i < 0 ? a[a.length + i] : a[i - 1]) ?? null);
export const list_transform = (a, f) => (a == null ? null : a.map((v) => f(v)));
export const list_filter = (a, f) => (a == null ? null : a.filter((v) => f(v) === true));
export const list_sum = one((a) => (known(a).length ? known(a).reduce((x, y) => x + y) : null));
export const list_max = one((a) => (known(a).length ? most(known(a)) : null));
export const list_min = one((a) => (known(a).length ? fewest(known(a)) : null));
export const list_bool_or = one((a) => (known(a).length ? known(a).includes(true) : null));
export const list_bool_and = one((a) => (known(a).length ? !known(a).includes(false) : null));
export const list_append = (a, v) => [...(a ?? []), v ?? null];
export const list_concat = (...lists) => lists.flatMap((l) => l ?? []);
export const list_slice = (a, first, last) => (a == null || first == null || last == null ? null : a.slice(Math.max(first, 1) - 1, Math.max(last, 0)));
export const list_reverse_sort = one((a) => [...a].sort((x, y) => y - x));
export const list_contains = both((a, v) => a.includes(v));
export const list_distinct = one((a) => [...new Set(known(a))]);
export const flatten = one((a) => known(a).flat());
export const range = (...bounds) => {
  const [start, end] = bounds.length > 1 ? bounds : [0, bounds[0]];
  return start == null || end == null ? null : Array.from({ length: Math.max(0, end - start) }, (_, i) => start + i);
};
export const struct_insert = (a, added) => ({ ...a, ...added });

export const get = (row, name) => row?.[name] ?? null;
// a column by its name alone: that of the first row which has it
export function pick(name, ...rows) {
  for (const row of rows) if (row && Object.hasOwn(row, name)) return row[name] ?? null;
  return null;
}
export const first = (table, test) => table.find(test) ?? {};
export const rows = (table, test, value) => table.filter(test).map(value);
export function spread(out, leftOut, ...sources) {
  for (const source of sources) for (const name of Object.keys(source)) if (!leftOut.includes(name) && !Object.hasOwn(out, name)) out[name] = source[name];
}
