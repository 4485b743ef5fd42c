// Up to four cards side by side; which ones is in the address.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
const root = document.getElementById("compare");
const table = root.querySelector("table");
const form = root.querySelector("form");
const [world, { labels, file }] = await Promise.all([a.world(), a.load("data/compare.json")]);
const MOST = 4;
const find = (id) => world.gpus.find((g) => g.id === id);
function known(id) { return find(id) !== undefined; }
const figures = new Map(); // by file, of the cards that were asked for
async function fetchFigures() {
  for (const n of chosen.map((id) => file[id])) if (!figures.has(n)) figures.set(n, a.load(`data/figures/${n}.json`));
  return Promise.all(chosen.map(async (id) => {
    const own = (await figures.get(file[id]))[id];
    return own[system] ?? own.linux; // what Windows leaves whole is told once
  }));
}
const address = new URLSearchParams(location.search);
const named = (address.get("gpus") ?? "").split(",").filter(Boolean);
const asked = [...new Set(named.map((id) => a.listed(id, world.gpus.map((g) => g.id))).filter(Boolean))];
const refused = a.foreign(address, ["gpus", "system"]);
let system = a.listed(address.get("system") ?? "", a.COUNTED_SYSTEMS.map(([id]) => id)) ?? a.memory.system();
if (address.get("system") && address.get("system").toLowerCase() !== system) refused.push(`system=${address.get("system")}`);
if (asked.length < new Set(named).size || asked.length > MOST) refused.push(`gpus=${address.get("gpus")}`);
const note = a.h("p", { class: "status", role: "status" }, a.refused(refused));
if (refused.length) form.before(note);
form.addEventListener("change", () => note.remove());
let chosen = asked.length ? asked.slice(0, MOST) : root.dataset.opening.split(",");
// one card in the address is one to compare with: the reader's own comes beside it
if (chosen.length === 1 && known(a.memory.get("gpu")) && a.memory.get("gpu") !== chosen[0]) chosen.push(a.memory.get("gpu"));

function controls() {
  const boxes = [...Array(Math.min(MOST, chosen.length + 1)).keys()].map((i) =>
    a.select(`card${i}`, `Card ${i + 1}`, [["", i < chosen.length ? "remove" : "add a card"], ...a.gpuOptions(world).slice(1)], chosen[i] ?? "", (id) => {
      chosen[i] = id;
      chosen = [...new Set(chosen.filter(Boolean))];
      controls();
      draw();
      form.querySelector(`[name=card${Math.min(i, chosen.length)}]`)?.focus();
    }));
  const under = a.select("system", "System", a.COUNTED_SYSTEMS, system, (id) => { a.memory.set("system", id); system = id; draw(); });
  form.replaceChildren(...boxes, ...(world.wddm_share ? [under] : []));
  form.hidden = false;
}
let turn = 0;
async function draw() {
  const mine = ++turn;
  const cards = chosen.map(find);
  const texts = await fetchFigures();
  if (mine !== turn) return;
  const head = a.h("tr", {}, a.h("th", { scope: "col" }, a.h("span", { class: "sr" }, "Figure")),
    ...cards.map((g) => a.h("th", { scope: "col", class: "n" }, a.h("a", { href: a.address(`gpus/${g.slug}/`) }, g.name))));
  table.tHead.replaceChildren(head);
  while (table.tBodies.length) table.tBodies[0].remove();
  let group, body;
  labels.forEach(([name, what], i) => {
    if (name !== group) {
      body = a.h("tbody", {}, a.h("tr", { class: "group" }, a.h("th", { scope: "rowgroup", colSpan: cards.length + 1 }, name)));
      table.append(body);
      group = name;
    }
    if (group !== labels[0][0] && !texts.some((text) => /^\d/.test(text[i]))) return; // a format that none of them is known to run
    body.append(a.h("tr", {}, a.h("th", { scope: "row" }, what), ...texts.map((text) => a.h("td", { class: "n" }, text[i]))));
  });
  history.replaceState(null, "", `?gpus=${chosen.map(encodeURIComponent).join(",")}${system === a.memory.unsaidSystem() ? "" : `&system=${system}`}`);
}
form.addEventListener("submit", (event) => event.preventDefault());
controls();
if (asked.length || system !== "linux") await draw();
