// The list of models: the most downloaded stand there; any other is found by name, as on the front page.
const version = new URL(import.meta.url).search;
const a = await import(`./almanac.js${version}`);
const input = document.getElementById("find-model");
const list = document.getElementById("model-list");
const status = document.getElementById("found");
const heading = document.getElementById("most-downloaded");
const [opening, title] = [[...list.children], heading.textContent];
const MOST = 200, SIGHT = 40; // what is in sight comes first, the rest when no letter has come meanwhile
let models, finding, said, names;

async function load() {
  models ??= a.models();
  finding ??= import(`./find.js${version}`);
  said ??= a.load("data/words.json");
  [models, finding, said] = await Promise.all([models, finding, said]);
  names ??= models.id.map(finding.fold);
}
let turn = 0, later;
async function draw() {
  const mine = ++turn;
  const text = input.value.trim();
  clearTimeout(later);
  later = setTimeout(() => { // a browser takes longer to change an address than to answer
    const address = text ? `?${new URLSearchParams({ find: text })}` : location.pathname;
    if (location.search !== (text ? address : "")) history.replaceState(null, "", address);
  }, 200);
  if (text) await load();
  if (mine !== turn) return;
  heading.textContent = text ? "Found" : title;
  if (!text) {
    list.replaceChildren(...opening);
    status.textContent = "";
    return;
  }
  const isNamed = finding.filter(names, text, said);
  const found = models.id.map((_, i) => i).filter(isNamed);
  if (!found.length) heading.textContent = "Nothing found";
  const figure = (n) => n.toLocaleString("en");
  status.textContent = !found.length ? "No model has these words." : `${figure(found.length)} of ${figure(models.id.length)}${found.length > MOST ? `; the ${MOST} most downloaded are shown` : ""}`;
  const rows = (from, to) => found.slice(from, to).map((i) => a.h("li", {},
    a.h("a", { href: a.address(`models/${models.paths[i] ?? models.id[i]}/`) }, a.shown(models.id[i])), ...(models.size[i] ? [" ", a.h("small", {}, a.short(models.size[i]))] : [])));
  list.replaceChildren(...rows(0, SIGHT));
  setTimeout(() => { if (mine === turn) list.append(...rows(SIGHT, MOST)); }, 60);
}
input.addEventListener("input", draw);
const asked = new URLSearchParams(location.search);
const refused = document.getElementById("refused");
refused.textContent = a.refused(a.foreign(asked, ["find"]));
refused.hidden = !refused.textContent;
input.addEventListener("input", () => { refused.hidden = true; }, { once: true });
if (asked.get("find")) input.value = asked.get("find");
if (input.value.trim()) await draw(); // from the address, or kept by the browser when one comes back
