// Loaded by every page: the age of the facts, filters of plain tables, and the page's own script where it has one.
const version = new URL(import.meta.url).search;

// The header's search answers a moment after the last letter, and the theme opens what stands there when Enter is pressed: wait for
// the answer to what is typed. What is pasted or filled in is a question too; the theme hears keys alone.
const box = document.querySelector(".md-search__input");
const answers = document.querySelector(".md-search-result__list");
if (box && answers) {
  const first = () => {
    const [link] = answers.querySelectorAll("a[href]");
    return link?.querySelector("[data-asked]")?.dataset.asked === box.value ? link : null;
  };
  let waiting = false;
  new MutationObserver(() => { if (waiting && first()) { waiting = false; first().click(); } }).observe(answers, { childList: true, subtree: true });
  box.addEventListener("input", () => { waiting = false; box.dispatchEvent(new Event("keyup")); });
  document.addEventListener("keydown", (event) => {
    if (event.target !== box || event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    if (first()) first().click();
    else waiting = box.value.trim() !== "";
  }, true);
}

if (document.getElementById("ask")) await import(`./matrix.js${version}`);
if (document.getElementById("window")) await import(`./front.js${version}`);
if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));

for (const time of document.querySelectorAll("time[data-age]")) {
  const days = Math.floor((Date.now() - Date.parse(time.dateTime)) / 864e5);
  if (days >= 0) time.after(` (${days < 1 ? "today" : days === 1 ? "yesterday" : `${days} days ago`})`);
}

// Tables too large for a page host have an address where this machine serves them (make serve), and nowhere else.
if (document.querySelector("[data-beside]") && location.hostname === "127.0.0.1")
  for (const name of document.querySelectorAll("[data-beside] + .scroll tbody th > code")) {
    const link = document.createElement("a");
    link.href = `../tables/${encodeURIComponent(name.textContent)}`;
    name.replaceWith(link);
    link.append(name.textContent);
  }

for (const input of document.querySelectorAll("input[data-filter]")) {
  const root = document.getElementById(input.dataset.filter);
  const status = document.querySelector(`[data-count="${input.dataset.filter}"]`);
  const rows = [...root.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const apply = () => {
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    rows.forEach((row, i) => {
      row.hidden = !terms.every((term) => texts[i].includes(term));
      n += !row.hidden;
    });
    status.textContent = terms.length ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
    if (terms.length && !n) status.textContent = "Nothing here has these words.";
  };
  input.addEventListener("input", apply);
  if (input.value) apply(); // the browser keeps what was typed when one comes back
}

if (document.querySelector("[data-controls]")) await import(`./model.js${version}`);
if (document.getElementById("find-model")) await import(`./models.js${version}`);
if (document.getElementById("calc")) await import(`./calculator.js${version}`);
if (document.getElementById("techniques")) await import(`./techniques.js${version}`);
if (document.getElementById("which")) await import(`./which.js${version}`);
if (document.getElementById("compare")) await import(`./compare.js${version}`);
if (document.getElementById("missing")) await import(`./missing.js${version}`);
if (document.querySelector("article.gpu")) await import(`./gpu.js${version}`);
if (document.querySelector(".md-content table:is(.mx, .bd)")) (await import(`./take.js${version}`)).everywhere();
document.documentElement.dataset.almanac = "ready";

// The theme's own script, where the page was to answer first; what was typed into its search meanwhile is asked then.
const later = document.querySelector("[data-later]");
if (later) {
  const script = document.createElement("script");
  script.src = later.dataset.later;
  script.addEventListener("load", () => { if (box?.value) box.dispatchEvent(new Event("keyup")); });
  later.replaceWith(script);
}
