// Stands in the place of the theme's search worker, under its name, and answers the page as that does: it is set up, says that it is
// ready, and gives results for a query. How names are found is in assets/almanac/find.js.
// The index of thousands of names is fetched when somebody first types: most readers never do.
const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3];
let finder, last = "";
const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
function load() {
  finder ??= (async () => {
    const [{ Finder }, answer] = await Promise.all([import("../../almanac/find.js?v=VERSION"), fetch("../../../search/index.json")]);
    return new Finder(await answer.json());
  })().catch(() => { finder = undefined; }); // the next letter tries again
  return finder;
}
// The first words of a page, or those around what was sought.
function teaser({ note, text }, query) {
  if (!text) return note;
  const at = Math.max(0, ...query.toLowerCase().split(/\s+/).filter(Boolean).map((word) => text.toLowerCase().indexOf(word)));
  const from = at < 90 ? 0 : text.lastIndexOf(" ", at - 40) + 1;
  return `${from ? "… " : ""}${text.slice(from, from + 160)}${text.length > from + 160 ? " …" : ""}`;
}
async function ask(query) {
  last = query;
  const known = query.trim() && (await load());
  if (query !== last) return; // something else was typed meanwhile
  const found = known ? known.search(query) : [];
  const items = found.map((entry, i) => [{
    location: entry.path,
    // the page waits for the answer to what is typed before it opens the first
    title: `<span data-asked="${escaped(query)}">${escaped(entry.title)}</span>`,
    text: escaped(teaser(entry, query)),
    score: found.length - i,
    terms: {},
  }]);
  postMessage({ type: RESULT, data: { items } });
}
addEventListener("message", ({ data: { type, data } }) => {
  if (type === SETUP) postMessage({ type: READY });
  else if (type === QUERY) ask(data);
});
