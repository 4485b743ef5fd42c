// Loaded by every page: the age of the facts, filters of plain tables, and the page's own script where it has one.
const version = new URL(import.meta.url).search;

if (document.getElementById("ask")) await import(`./matrix.js${version}`);
if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));

for (const time of document.querySelectorAll("time[data-age]")) {
  const days = Math.floor((Date.now() - Date.parse(time.dateTime)) / 864e5);
  if (days >= 0) time.after(` (${days < 1 ? "today" : days === 1 ? "yesterday" : `${days} days ago`})`);
}

for (const input of document.querySelectorAll("input[data-filter]")) {
  const root = document.getElementById(input.dataset.filter);
  const status = document.querySelector(`[data-count="${input.dataset.filter}"]`);
  const rows = [...root.querySelectorAll("tbody tr, [data-row]")];
  const groups = [...root.querySelectorAll("[data-group]")];
  const texts = rows.map((row) => `${row.closest("[data-group]")?.firstElementChild.textContent ?? ""} ${row.textContent}`.toLowerCase());
  const apply = () => {
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    rows.forEach((row, i) => {
      row.hidden = !terms.every((term) => texts[i].includes(term));
      n += !row.hidden;
    });
    for (const g of groups) g.hidden = !g.querySelector("[data-row]:not([hidden])");
    status.textContent = terms.length ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  };
  input.addEventListener("input", apply);
  if (input.value) apply(); // the browser keeps what was typed when one comes back
}

if (document.querySelector("[data-controls]")) await import(`./model.js${version}`);
if (document.getElementById("calc")) await import(`./calculator.js${version}`);
if (document.getElementById("compare")) await import(`./compare.js${version}`);
if (document.getElementById("missing")) await import(`./missing.js${version}`);
if (document.querySelector("article.gpu")) await import(`./gpu.js${version}`);
document.documentElement.dataset.almanac = "ready";
