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
