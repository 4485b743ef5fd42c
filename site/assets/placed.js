// Pictures and videos in a table of one scenario: what the first screen has of pipelines (data/window), for the size that their pages speak of.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const UNKNOWN = Infinity;
// diffusers runs on the PyTorch that Transformers does
const RUNS = { engine: "transformers", dtypeId: "bf16", phase: "inference" };

// By model the ways to place its parts, the quickest first: their word, the format of the denoiser, and totals as a.judge takes them.
export async function placed(world, models) {
  const found = new Map();
  if (!models.pipelines?.length) return found;
  for (const name of ["pictures", "video"]) {
    const data = await a.load(`data/window/${name}.json`), usual = data.wishes[0].context;
    data.id.forEach((id, work) => {
      const ways = data.columns.map(([, , , way], c) => wayOf(world, data, data.shapes[data.shape[work]][c], usual, way, data.words[c])).filter(Boolean);
      const number = models.id.indexOf(id);
      if (number >= 0 && ways.length) found.set(number, ways);
    });
  }
  return found;
}
function wayOf(world, data, line, usual, way, word) {
  const at = line ? data.axes[line[0]].indexOf(usual) : -1;
  if (at < 0) return null;
  const [, weights, held, rest, bands] = line, until = (steps) => steps.slice(0, at + 1).reduce((sum, step) => sum + step, 0);
  const n = world.counts.length, totals = new Float32Array(world.width).fill(UNKNOWN);
  totals[0] = (weights + until(held) + until(rest)) / 1024;
  totals[n] = Math.ceil(bands[at] * 10000);
  return { word, format: way.split("+")[1] ?? "bf16", totals };
}

// The ways that a scenario of the table speaks of; none where it asks for a format that says nothing of pipelines.
export function waysIn(ways, scenario) {
  if (!ways || scenario.phase !== "inference" || (scenario.dtypeId === "bf16" && scenario.engine !== RUNS.engine)) return null;
  const own = ways.filter((way) => way.format === scenario.dtypeId);
  return own.length ? own : null;
}

// The verdict on a card: of the first way that fits, else of the first that is tight, else of the last.
export function judgeWays(world, ways, card) {
  const told = ways.map((way) => ({ ...a.judgeOn(world, RUNS, "", card, way.totals, 0), way }));
  return told.find(({ verdict }) => verdict === "fits") ?? told.find(({ verdict }) => verdict === "tight") ?? told.at(-1);
}

export function waysTold(world, ways, card) {
  const { way, kib, why, verdict } = judgeWays(world, ways, card);
  if (why) return `${card.name}: ${why}`;
  const total = way.totals[0], band = way.totals[world.counts.length] / 100;
  return `${card.name} gives ${a.gib(card.capacity)} GiB; ${way.word}: ${a.gib(kib ?? total)} GiB are needed, ± ${+band.toFixed(1)} %${verdict === "no" ? "" : `; ${a.gib(card.capacity - total)} GiB stay free`}`;
}
