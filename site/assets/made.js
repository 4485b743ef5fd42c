// The sizes that wishes of the first screen are measured in, and how they are told. `key` is the address's.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const say = (n) => n.toLocaleString("en");
const square = (n) => `${say(n)} × ${say(n)} pixels`;
const sides = ([width, height]) => `${width} × ${height} pixels`;
const time = (n) => (n < 60 ? `${n} s` : n < 3600 ? `${Math.floor(n / 60)} min` : n === 3600 ? "1 hour" : `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} min`);
export const CONTEXTS = [512, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144];

// option: of the sentence; at: what a memory is needed for; told: of a cell; most: what a column's cells hold; makes: what still runs; does: what models do; who: with which program
export const UNITS = {
  tokens: { key: "context", option: (n) => `at least ${a.tokens(n)} tokens`, at: (n) => `at ${a.tokens(n)} tokens`, told: a.roundedTokens, most: "longest context", makes: (n) => `Runs with ${a.roundedTokens(n)} tokens` },
  pixels: { key: "pixels", option: (n) => `${n} × ${n} pixels`, at: (n) => `for ${square(n)}`, told: (n) => `${say(n)} px`, most: "largest picture", makes: (n) => `Makes pictures of ${square(n)}`, does: (n) => ["makes", "make", `a picture of ${n} × ${n} pixels`] },
  frames: { key: "frames", option: (n, side) => `${n} frames of ${sides(side)}`, at: (n, side) => `for ${n} frames of ${sides(side)}`, told: (n) => `${say(n)} frames`, most: "longest video", makes: (n, side) => `Makes videos of ${n} frames of ${sides(side)}`, does: (n, side) => ["makes", "make", `a video of ${n} frames of ${sides(side)}`] },
  seconds: { key: "seconds", option: (n) => `${time(n)} of speech`, at: (n) => `for ${time(n)} of speech`, told: time, most: "longest at once", who: "with Transformers or its own package", makes: (n) => `Takes ${time(n)} at once`, does: (n) => ["takes", "take", `${time(n)} of speech`] },
};

// A wish as the page has it: name, label, file, usual size, and where that is no number of tokens its unit, its sizes and the sides of a frame.
export const wish = ([name, label, file, usual, unit = "tokens", sizes = CONTEXTS, side = null]) => ({ name, label, file, usual, sizes, side, unit: UNITS[unit], isMade: unit !== "tokens" });

// What is known of a work of which not all is: what each column needs at least.
export function leastSaid(least, gpu, formatOf) {
  const known = (least ?? []).map((bytes, c) => bytes && [bytes, formatOf(c)]).filter(Boolean);
  if (!known.length) return [];
  const gib = (bytes) => a.gib(bytes / 1024);
  const [low, where] = known.reduce((x, y) => (y[0] < x[0] ? y : x)), given = a.gib(gpu.bytes / 1024);
  if (low > gpu.bytes) return [a.h("b", {}, "Does not fit"), `: at least ${gib(low)} of ${given} GiB, ${where}.`];
  // the first two say enough: what one module needs at least is next to nothing
  return [`At least ${known.slice(0, 2).map(([bytes, way], i) => `${gib(bytes)}${i ? "" : ` of ${given} GiB`} ${way}`).join(", ")}.`];
}

// The query that says the same, of what is not asked by tokens.
export function query({ name, unit, side }, size, gpu, columns, first) {
  if (name === "speak") return `-- one of them: a language model that writes the codes of a codec, and the codec\nFROM speech_fits_on('${gpu}', '${first}', seconds := ${size}, dtype_id := '${columns[0][1]}');`;
  if (unit.key === "seconds") return `-- one of them; of a model that reads 30 seconds at a time without audio_seconds, of one whose class was run whole speech_of(model, seconds := n)\nFROM footprint_of('${first}', dtype_id := '${columns[0][1]}', engine_id := '${columns[0][2]}', audio_seconds := ${size});`;
  const asked = side ? `width := ${side[0]}, height := ${side[1]}, frames := ${size}` : `width := ${size}, height := ${size}`;
  return `SELECT model_id, placement, verdict, pipeline.total_bytes\nFROM (SELECT DISTINCT model_id FROM component) AS known, pipeline_fits_on('${gpu}', known.model_id, ${asked}) AS pipeline;`;
}
