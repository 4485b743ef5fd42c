// Unlike cards in the calculator: which others there are beside my card, and what each of them holds.
const search = new URL(import.meta.url).search;
const [a, r] = await Promise.all([import(`./almanac.js${search}`), import(`./reckon.js${search}`)]);
const gib = (bytes) => a.gib(bytes / 1024);
const MOST = 8; // cards in one machine

// The ids in an address that are cards, and those that are none.
export function read(text, world) {
  const ids = text.split(",").filter(Boolean), known = ids.filter((id) => world.gpus.some((g) => g.id === id));
  return { others: known.slice(0, MOST - 1).join(","), wrong: [...ids.filter((id) => !known.includes(id)), ...known.slice(MOST - 1)] };
}

// A select for each other card, and one more to add it with.
export function fields(world, others, change) {
  const ids = others.split(",").filter(Boolean), name = (i) => (i ? "and another" : "Together with another card");
  const box = (id, i) => a.select(`with-${i}`, name(i), [["", "none"], ...a.gpuOptions(world).slice(1)], id, (value) => change([...ids.slice(0, i), value, ...ids.slice(i + 1)].filter(Boolean).join(",")));
  return [...ids, ...(ids.length < MOST - 1 ? [""] : [])].map(box);
}

// A scenario on these cards: cards are { g, bytes }, mine first.
export function work(own, wanted, cards, ask) {
  const asked = cards.map(({ g, bytes }) => ({ vendor: g.vendor, bytes }));
  const at = (scenario) => r.together(own, scenario, asked), isHeld = (scenario) => at(scenario).isHeld === true;
  const first = at(wanted);
  if (first.why || !["context", "users"].includes(ask)) return { ...first, found: null };
  const found = ask === "context" ? r.longest(own, wanted, null, isHeld) : r.most(own, wanted, null, isHeld);
  return { ...at({ ...wanted, [ask === "context" ? "context_tokens" : "sequences"]: Math.max(found.at, 1) }), found };
}

export const named = (cards) => cards.map(({ g }) => g.short).join(" + ");
// The answer in words, and the setting that makes llama.cpp share so.
export function said({ row, each, of, isHeld, setting, found, why }, cards, plain) {
  if (why) return [`Unknown on ${named(cards)} together: ${plain(why)}.`];
  const parts = each.map(({ layers, bytes }, i) => `${layers} of ${of} layers on ${cards[i].g.short}, ${gib(bytes)} of ${gib(cards[i].bytes)} GiB`).join("; ");
  const size = found ? `up to ${found.at.toLocaleString("en")} ${row.sequences > 1 ? "users" : "tokens"}` : null;
  const lead = found && !found.at ? `Does not fit on ${named(cards)} together` : size ? `On ${named(cards)} together ${size}` : `${isHeld ? "Fits" : each.some(({ verdict }) => verdict === "no") ? "Does not fit" : "Is tight"} on ${named(cards)} together`;
  return [`${lead}: ${parts}, ±\u00a0${Math.round(100 * row.error_band)}\u00a0%. `, a.h("code", {}, setting)];
}
// A row of the table for each card.
export function draw(table, { each, of, why }, cards) {
  const th = (text, kind) => a.h("th", { scope: "col", class: kind ?? false }, text);
  table.closest(".scroll").hidden = Boolean(why);
  if (why) return;
  table.caption.textContent = "Bytes on each card";
  table.tHead.replaceChildren(a.h("tr", {}, th("Card"), th(`Layers of ${of}`, "n"), th("Needs, GiB", "n"), th("Gives, GiB", "n"), th("")));
  table.tBodies[0].replaceChildren(...each.map(({ layers, bytes, verdict }, i) => a.h("tr", {},
    a.h("th", { scope: "row" }, a.h("a", { href: a.address(`gpus/${cards[i].g.slug}/`) }, cards[i].g.short)),
    a.h("td", { class: "n" }, String(layers)), a.h("td", { class: "n" }, gib(bytes)), a.h("td", { class: "n" }, gib(cards[i].bytes)), a.h("td", { class: `v-${verdict}` }, verdict))));
}
