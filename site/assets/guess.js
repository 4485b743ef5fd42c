// Which card a browser says that it draws with: read from WebGL in the page, and told to nobody.
export function renderer() {
  try {
    const gl = document.createElement("canvas").getContext("webgl");
    const names = gl?.getExtension("WEBGL_debug_renderer_info");
    return (gl && String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER))) || "";
  } catch { return ""; }
}

const plain = (text) => text.toLowerCase().replace(/\((?:r|tm)\)/g, " ").replace(/[^a-z0-9]+/g, " ").trim();
const MEMORY = /\b\d+\s?gb?\b/g;
// words that a maker puts before a name, or a driver behind it
const bare = (text) => plain(text).replace(MEMORY, " ").replace(/\b(?:nvidia|amd|intel|apple|geforce|radeon|quadro|instinct|graphics|gpu)\b/g, " ").replace(/\s+/g, " ").trim();

// The cards of a list that a renderer's text names: several where a name comes with several sizes of memory, none where it tells nothing.
export function named(text, cards) {
  if (!text || /or similar|swiftshader|llvmpipe|software|basic render/i.test(text)) return []; // a class of cards, or none
  // "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002504) Direct3D11 …, D3D11)", "Apple M2 Pro", "… Metal Renderer: Apple M2 Pro, …"
  const said = ` ${bare(text.replace(/\(0x[0-9a-f]+\)/gi, " "))} `;
  const isLaptop = /\b(?:laptop|max q|mobile)\b/.test(said);
  let longest = 0, found = [];
  for (const card of cards) {
    const name = bare(card.name);
    if (!name || !said.includes(` ${name} `) || /\blaptop\b/.test(name) !== isLaptop) continue;
    if (name.length > longest) [longest, found] = [name.length, []];
    if (name.length === longest) found.push(card);
  }
  const memory = /\b(\d+)\s?gb\b/i.exec(text);
  const exact = memory ? found.filter((card) => card.nominal === +memory[1]) : [];
  const all = exact.length ? exact : found;
  const after = said.slice(said.indexOf(bare(all[0]?.name ?? "")) + longest).trim().split(" ")[0];
  return /^(?:ti|super|xt|xtx|pro|max|ultra|d|s|ada)$/.test(after) ? [] : all; // a card that is not listed, named after one that is
}
