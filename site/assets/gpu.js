// A card's page: the reader can make it their own, and find every model that it runs, read from the card's file for programs.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const article = document.querySelector("article.gpu");
const { gpu: id, path } = article.dataset;
const button = article.querySelector(".mine-button");
const draw = () => {
  const mine = a.memory.get("gpu") === id;
  button.textContent = mine ? "This is my card ✓" : "Make this my card";
  button.setAttribute("aria-pressed", String(mine));
};
button.addEventListener("click", () => {
  a.memory.set("gpu", a.memory.get("gpu") === id ? "" : id);
  draw();
});
draw();

// Who is under Windows reads first that what stands here is not.
const systems = article.querySelector("#systems");
if (a.memory.system() === "windows" && systems.querySelector('a[href*="system=windows"]')) {
  systems.className = "status told";
  article.querySelector("p.answer").before(systems);
}

// Every model that fits, found by any part of its name: the first of them stand there, and how many there are.
const SHOWN = 40;
const box = article.querySelector("[data-everything]");
const status = a.h("span", { role: "status" }), input = a.h("input", { type: "search", name: "everything", placeholder: "part of a name", autocomplete: "off" });
const body = a.h("tbody");
const head = (text, kind) => a.h("th", { scope: "col", class: kind }, text);
const title = a.h("caption");
box.append(
  a.h("p", { class: "controls" }, a.h("label", {}, "Find ", input), " ", status),
  a.h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Every model that fits on this card" },
    a.h("table", { class: "bd" }, title, a.h("thead", {}, a.h("tr", {}, head("Model"), head("Best format that fits"), head("Longest context", "n"))), body)));
let rows;
async function read() {
  const [{ runs, context_tokens: context }, index] = await Promise.all([a.load(`api/v1/gpus/${path}.json`), a.models()]);
  const place = new Map(index.id.map((name, i) => [name, i])); // the most downloaded first
  title.textContent = `On one card, our error included: the best format that holds ${a.tokens(context)} tokens, or what goes farthest`;
  return runs.flatMap(({ dtype_id, max_context_tokens: longest }) => Object.entries(longest).map(([name, n]) => [place.get(name), name, dtype_id, n]))
    .sort(([x], [y]) => x - y).map(([i, name, dtype, n]) => ({ name, lower: name.toLowerCase(), path: index.paths[i] ?? name, dtype, n, whole: index.context[i] }));
}
async function find() {
  rows ??= read();
  const all = await rows, terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(({ lower }) => terms.every((term) => lower.includes(term)));
  body.replaceChildren(...found.slice(0, SHOWN).map((row) => a.h("tr", {},
    a.h("th", { scope: "row" }, a.h("a", { href: a.address(`models/${row.path}/?gpu=${encodeURIComponent(id)}`) }, a.shown(row.name))),
    a.h("td", {}, a.formatName(row.dtype)), a.h("td", { class: "n", title: !row.whole && a.UNREAD }, a.reached(row.n, row.whole)))));
  const n = (number) => number.toLocaleString("en");
  status.textContent = `${terms.length ? `${n(found.length)} of ` : ""}${n(all.length)} models${found.length > SHOWN ? `; the ${SHOWN} most downloaded of them are shown` : ""}`;
}
input.addEventListener("input", find);
await find();
