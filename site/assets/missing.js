// A missing page: the models and cards whose names are nearest to the address that was asked for.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
const place = document.getElementById("missing");
const [world, models] = await Promise.all([a.world(), a.models()]);
const known = [
  ...models.id.map((id, i) => ({ name: a.shown(id), path: `models/${models.paths[i] ?? id}/` })),
  ...world.gpus.map((g) => ({ name: g.name, path: `gpus/${g.slug}/` })),
];
const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
const input = a.h("input", { type: "search", name: "wanted", "aria-label": "Part of a name", autocomplete: "off", spellcheck: "false" });
const list = a.h("ul");
const status = a.h("p", { role: "status" });
function draw() {
  const terms = [...new Set(words(input.value))];
  const scored = terms.length ? known.map((k) => {
    const lower = k.name.toLowerCase();
    return { k, score: terms.reduce((sum, t) => sum + (lower.includes(t) ? t.length : 0), 0) };
  }) : [];
  const best = scored.filter((s) => s.score).sort((x, y) => y.score - x.score || x.k.name.length - y.k.name.length).slice(0, 10);
  list.replaceChildren(...best.map(({ k }) => a.h("li", {}, a.h("a", { href: a.address(k.path) }, k.name))));
  status.textContent = best.length ? "Perhaps one of these:" : terms.length ? "Nothing with such a name." : "";
}
const path = decodeURIComponent(location.pathname).replace(/\/(index|404)\.html$|^.*\/(models|gpus)\//g, " ");
input.value = words(path).join(" ");
input.addEventListener("input", draw);
place.append(a.h("p", { class: "controls" }, a.h("label", {}, a.h("span", {}, "Part of a name"), input)), status, list);
draw();
