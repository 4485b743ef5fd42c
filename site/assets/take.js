// Take it with you: the address of what is shown, and a table as it is shown, as a file.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
export function button(text, act) {
  const made = a.h("button", { type: "button", class: "chip" }, text);
  made.addEventListener("click", act);
  return made;
}
export function copyLink() {
  const made = button("Copy link", async () => {
    try { await navigator.clipboard.writeText(location.href); made.textContent = "Copied"; } catch { made.textContent = location.href; }
    setTimeout(() => { made.textContent = "Copy link"; }, 3000);
  });
  return made;
}
const quoted = (v) => (/[",\n\r]/.test(String(v ?? "")) ? `"${String(v).replaceAll('"', '""')}"` : String(v ?? ""));
export function save(name, rows) {
  const text = rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const link = a.h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${name}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// ---- every table of a page, as it is shown
// What a cell says: what is drawn only, hidden or there to be pressed is no figure.
function said(cell) {
  const words = [];
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest("[hidden], .pin, svg, script") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walk.nextNode()) words.push(walk.currentNode.data);
  return words.join(" ").replace(/\s+/g, " ").trim();
}
// The rows of a table part, each cell in its own column; what spans several is said in the first of those of a body, in all of a head.
function grid(rows, isHead) {
  const lines = rows.map(() => []);
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      if (cell.hidden || cell.matches(".spacer")) continue;
      while (lines[y][x] !== undefined) x++;
      const text = cell.matches(".barcell") && !isHead ? "" : said(cell);
      for (let dy = 0; dy < cell.rowSpan && y + dy < rows.length; dy++)
        for (let dx = 0; dx < cell.colSpan; dx++) lines[y + dy][x + dx] = isHead ? (dy ? "" : text) : dx || dy ? "" : text;
      x += cell.colSpan;
    }
  });
  return lines;
}
export function shownRows(table) {
  if (table.takeRows) return table.takeRows(); // a table that draws only what is in sight says the rest itself
  const shown = (rows) => [...rows].filter((row) => !row.hidden && !row.parentNode.hidden && !row.parentNode.matches("[aria-hidden]"));
  const heads = grid(shown(table.tHead?.rows ?? []), true);
  const wide = Math.max(0, ...heads.map((line) => line.length));
  const head = [...Array(wide).keys()].map((x) => [...new Set(heads.map((line) => line[x]).filter(Boolean))].join(" "));
  const body = [...table.tBodies].flatMap((part) => grid(shown(part.rows), false));
  const bars = [...(table.tHead?.rows[0]?.cells ?? [])].length && heads.length === 1 ? head.map((_, x) => table.tHead.rows[0].cells[x]?.matches(".barcell")) : [];
  return [...(wide ? [head] : []), ...body].map((line) => Array.from({ length: Math.max(wide, line.length) }, (_, x) => line[x] ?? "").filter((_, x) => !bars[x]));
}
const nameOf = (table) => table.closest("[aria-label]")?.getAttribute("aria-label") ?? table.caption?.textContent ?? document.title;
const fileName = (table) => [location.pathname.split("/").filter(Boolean).at(-1) ?? "", nameOf(table)].join(" ").toLowerCase().replace(/[^\p{L}\p{N}.]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 80);
// The address of what is shown, at the section that the table stands in.
function addressOf(table) {
  const section = table.closest("section[aria-labelledby]")?.getAttribute("aria-labelledby");
  const heading = section ?? [...document.querySelectorAll(".md-content :is(h2, h3)[id]")].filter((each) => each.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1)?.id;
  const address = new URL(location.href);
  address.hash = heading ?? "";
  return address.href;
}
const OWN = "#window, #which, #calc, .printed"; // pages that have buttons of their own
export function everywhere() {
  for (const each of document.querySelectorAll(".md-content table:is(.mx, .bd)")) {
    const box = each.closest(".scroll") ?? each; // a table may be made anew: its box stays
    if (each.closest(OWN) || box.takes) continue;
    box.takes = true;
    const table = () => (box === each ? each : box.querySelector("table"));
    const csv = button("CSV", () => save(fileName(table()), shownRows(table())));
    const link = button("Copy link", async () => {
      const address = addressOf(table());
      try { await navigator.clipboard.writeText(address); link.textContent = "Copied"; } catch { link.textContent = address; }
      setTimeout(() => { link.textContent = "Copy link"; }, 3000);
    });
    csv.setAttribute("aria-label", `CSV: ${nameOf(each)}`);
    link.setAttribute("aria-label", `Copy link: ${nameOf(each)}`);
    box.after(a.h("p", { class: "take" }, csv, link));
  }
}
