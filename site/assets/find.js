// Finding by name: one rule for the header's search, the front page's filter and the list of models.
// A name is read as its letters and digits in a row, with the places where a word of it may begin: "Qwen3-8B", "qwen3 8b" and "Qwen 3 8B"
// are then one name, and "8b" is a word of it, but not of "8bit" or "1.8B". What separates two digits is kept: "3.3" is one number,
// "3-8B" are two.
const digit = (c) => c >= "0" && c <= "9";
const word = (c) => digit(c) || c.toLowerCase() !== c.toUpperCase() || /\p{L}|\p{N}/u.test(c);
const upper = (c) => c !== c.toLowerCase();

export function fold(name) {
  let bare = "", run = "", before = "", gap = true, leaf = 0; // where the name behind its owner begins
  const edges = []; // 1 where a word begins or ends
  for (let i = 0; i < name.length; i++) {
    const c = name[i], next = name[i + 1] ?? "";
    if (!word(c)) {
      if (c === "/") leaf = bare.length;
      if ((c === "." || c === "_") && !gap && digit(before) && digit(next)) {
        bare += ".";
        edges.push(0);
        before = ".";
      } else gap = true;
      continue;
    }
    const last = bare.at(-1) ?? "";
    if (gap && digit(last) && digit(c)) {
      bare += "-";
      edges.push(1);
    }
    const starts = gap || (digit(c) && !digit(before) && before !== "." && (run.length > 1 || run === "v")) ||
      (upper(c) && before && !digit(before) && (!upper(before) || (run.length > 1 && next && word(next) && !digit(next) && !upper(next)))) ||
      (!digit(c) && digit(before) && /^\p{L}{4}/u.test(name.slice(i)));
    run = digit(c) ? "" : gap || starts ? c.toLowerCase() : run + c.toLowerCase();
    for (const part of c.toLowerCase()) {
      bare += part;
      edges.push(starts ? 1 : 0);
    }
    [before, gap] = [c, false];
  }
  edges.push(1);
  return { bare, edges, leaf };
}
// Whether a name is all of what was typed, with its owner or without.
export const isWhole = ({ bare, leaf }, typed) => bare === typed || bare.slice(leaf) === typed;

// How a word is found in a name: whole, as the beginning of a word, inside of one, or not.
export const [WHOLE, COUNT, START, INSIDE, MISSED] = [0, 0.4, 1, 2, 9]; // COUNT: the number of a size, "8" of "8b"
const SIZE = /^\d[\d.]*\p{L}+$/u; // "8b" begins "8bit" and means something else
const inside = (sought) => sought.length > 2 && /\p{L}/u.test(sought);
export function quality({ bare, edges }, sought) {
  let best = MISSED;
  for (let at = bare.indexOf(sought); at >= 0; at = bare.indexOf(sought, at + 1)) {
    if (edges[at]) {
      const end = at + sought.length;
      if (edges[end]) return WHOLE;
      best = Math.min(best, edges[end + 1] && /\d\p{L}/u.test(bare.slice(end - 1, end + 1)) ? COUNT : START);
    } else if (best === MISSED && inside(sought)) best = INSIDE;
  }
  return best;
}

// "1.5" also finds "v1-5", and "3-3" finds "3.3"; but sizes are exact: "3.8b" is not "3-8b".
const spellings = (bare) => {
  const out = [bare];
  if (/\d\.\d+(?![\d.]*\p{L})/u.test(bare)) out.push(bare.replaceAll(".", "-"));
  if (/\d-\d+(?![\d-]*\p{L})/u.test(bare)) out.push(bare.replaceAll("-", "."));
  if (/^(?:\p{L}{3,}|\p{L}*\d{3,})s$/u.test(bare)) out.push(bare.slice(0, -1)); // one of many: models, 3090s
  return out;
};
const apart = (bare) => bare.replace(/(\p{L}{3,})(?=\d)/gu, "$1 ").replace(/(\d)(?=\p{L}{3,})/gu, "$1 ").split(" ");

// The words of a query, each as a list of ways to say it; a way is a list of words that must all be found.
// `said` is what people say otherwise (site/search_words.csv): alternatives by what is said; what need not be found has none.
export function words(text, said = {}) {
  const joined = text.toLowerCase().replace(/(\d)[\s-]+(?=(?:gb|gib|bits?|b|bn|billion|m|k)(?![\p{L}\p{N}]))/gu, "$1").replace(/(\d)(?:bn|billion)(?![\p{L}\p{N}])/gu, "$1b")
    .replace(/(\d)gib(?![\p{L}\p{N}])/gu, "$1gb").replaceAll("×", "x").replace(/(\d)_(?=\d)/g, "$1.").replace(/(?<![\p{L}\p{N}.])\d{1,2}\s*x\s+(?=\S)/gu, ""); // 2 x 4090
  const pieces = [];
  for (const chunk of joined.split(/[^\p{L}\p{N}._-]+/u)) {
    let glue = false;
    for (const [, piece, mark] of chunk.matchAll(/((?:[\p{L}\p{N}]|(?<=\d)\.(?=\d))+)([^\p{L}\p{N}]*)/gu)) {
      // q4_k_m, q8_0: a letter alone belongs to what stands before it
      if (glue && pieces.length && (/^\p{L}$/u.test(piece) || (glue === "_" && piece.length === 1))) pieces.push(`${pieces.pop()}_${piece}`);
      else pieces.push(piece);
      glue = /^[-_]$/.test(mark) ? mark : false;
    }
  }
  const found = [];
  for (let i = 0; i < pieces.length;) {
    let many = Math.min(3, pieces.length - i);
    while (many > 1 && !Object.hasOwn(said, key(pieces.slice(i, i + many)))) many--;
    const own = pieces.slice(i, i + many);
    i += many;
    const bare = own.map((piece) => fold(piece).bare).filter(Boolean);
    if (!bare.length) continue;
    const ways = bare.length > 1 ? [bare] : spellings(bare[0]).map((spelling) => [spelling]);
    const [first] = bare;
    if (bare.length === 1) {
      const split = apart(first);
      if (split.length > 1) ways.push(split); // llama70b
      const [, cards] = /^\d{1,2}x(.{3,})$/.exec(first) ?? []; // 2x3090
      if (cards) ways.push([cards]);
    }
    const other = Object.hasOwn(said, key(own)) ? said[key(own)] : null;
    const opens = [];
    for (const way of other ?? []) {
      if (way.includes("/")) opens.push(way);
      else ways.push(way.split(" ").map((piece) => fold(piece).bare));
    }
    found.push({ ways, opens, isAlike: ways.length > 1 && Boolean(other?.length), idle: other?.length === 0 || /^(?:x\d{1,2}|\d{1,2}x)$/.test(first) });
  }
  const needed = found.filter((part) => !part.idle);
  return needed.length ? needed : found;
}
const key = (pieces) => pieces.join(" ");

// The best of the ways to say a word.
export function found(name, part) {
  let best = MISSED;
  for (const way of part.ways) {
    let worst = WHOLE;
    for (const sought of way) {
      worst = Math.max(worst, quality(name, sought));
      if (worst >= best) break;
    }
    if (worst < best) best = worst;
    if (!best) break;
  }
  return best;
}

// Which of many names a query finds, as a test by place: every word must be there. Where any name has a size whole, its beginning
// is not enough; a word found inside of others counts only where no name has it better. Where what is typed is the whole name of one, names
// that hold its words in one run are found, and no others. `isWhole` of the test says which those of just that name are.
export function filter(names, text, said) {
  const parts = words(text, said), typed = fold(text).bare;
  if (parts.length > 1 || /\d/.test(typed)) { // one word is a part of many names
    const whole = names.map((name) => isWhole(name, typed));
    if (whole.includes(true)) return Object.assign((i) => whole[i] || quality(names[i], typed) === WHOLE, { isWhole: (i) => whole[i] });
  }
  const kept = parts.map((part) => limit(part, names.map((name) => found(name, part))));
  return (i) => kept.every((qualities) => qualities[i] !== MISSED);
}
export function limit(part, qualities) {
  const best = qualities.reduce((x, y) => Math.min(x, y), MISSED);
  const most = best === WHOLE && part.ways.every((way) => way.length === 1 && SIZE.test(way[0])) ? WHOLE : best < INSIDE ? START : INSIDE;
  return qualities.map((q) => (q > most ? MISSED : q));
}

// ---- a card behind a model's name: "qwen3 8b 4090"
// The card that words name, one of them with a number: the common one first. A card has a folded name, a level and an order.
export function cardOf(parts, cards) {
  if (!parts.some(({ ways: [[first]] }) => /\d/.test(first) && !/^v\d$/.test(first))) return null;
  const named = cards.filter((card) => parts.every((part) => found(card.name, part) === WHOLE));
  return named.sort((one, other) => one.level - other.level || one.order - other.order)[0] ?? null;
}

// A query as the name of a model and a card behind it, the most words that name one; null where none does.
export function withCard(text, cards, said) {
  const parts = words(text, said);
  for (let at = 1; at < parts.length; at++) {
    const card = cardOf(parts.slice(at), cards);
    if (card) return { card, name: parts.slice(0, at).map((part) => part.ways[0].join(" ")).join(" ") };
  }
  return null;
}

// ---- the header's search: models, organisations, cards and pages in one list
const MISTYPED = 3;
const [IN_TEXT, TOLD] = [4, 0.6]; // found in a page's text alone, which is more than half of not found
// The shorter name first; of one name the larger memory, which is what people mean who name none.
export const byName = (plain, memory, order) => fold(plain).bare.length * 1e6 + (1000 - memory) * 1000 + order;
const CARD = "GPU graphics video card memory VRAM"; // what every card is, and may be called
const MOST = 60;
export class Finder {
  // `index` is search/index.json
  constructor(index) {
    this.said = index.words;
    const { models, levels, paths, organisations, cards, pages } = index;
    this.cards = cards.map(([path, name, plain, about, architecture, common], order) => ({
      id: path, path: `gpus/${path}/`, title: name, note: about, kind: 0, name: fold(`${name} ${plain} ${about} ${architecture} ${CARD}`), plain: fold(plain).bare, level: common ? 0 : 1, order: byName(plain, parseFloat(about) || 0, order),
    }));
    this.entries = [
      ...this.cards,
      ...pages.map(([path, title, text], order) => ({
        path, title, note: "", text, kind: 0, name: fold(title), plain: fold(title).bare, body: fold(text), level: path.includes("#") ? 1 : 0, order,
      })),
      ...models.map((id, order) => ({
        path: `models/${paths[order] ?? id}/`, title: id, note: "", kind: 1, name: fold(id), plain: fold(id.slice(id.lastIndexOf("/") + 1)).bare, level: +levels[order], order,
      })),
      ...organisations.map(([path, name, note], order) => ({
        path: `models/${path}/`, title: name, note, kind: 1, name: fold(name), plain: "", level: 0, order: order + 2, organisation: true,
      })),
    ];
  }

  // Every entry's quality for one word.
  grade(part) {
    const qualities = limit(part, this.entries.map((entry) => {
      if (part.opens.includes(entry.path)) return WHOLE;
      return found(entry.name, part);
    }));
    this.entries.forEach((entry, i) => {
      if (entry.body && qualities[i] > START && found(entry.body, part) <= (part.ways[0][0].length > 3 ? START : WHOLE)) qualities[i] = IN_TEXT;
    });
    return qualities;
  }

  // A word that nothing has: the words that differ from it by one letter.
  mistyped(part) {
    const [[sought]] = part.ways;
    if (part.ways.length > 2 || !/^\p{L}{5,}/u.test(sought)) return part;
    this.known ??= new Set(this.entries.filter((entry) => !entry.body).flatMap((entry) => entry.title.toLowerCase().match(/\p{L}{4,}/gu) ?? []));
    const [letters, rest] = [sought.match(/^\p{L}+/u)[0], sought.replace(/^\p{L}+/u, "")];
    const near = [...this.known].filter((other) => oneApart(letters, other)).map((other) => (rest ? [other, rest] : [other]));
    return near.length ? { ways: near, opens: [] } : part;
  }

  search(text) {
    const found = this.searched(text), first = [...this.compared(text), ...this.byOthers(text)];
    return [...first, ...found.filter(({ path }) => !first.some((entry) => entry.path === path))];
  }

  // Two cards against each other: the page that lays them side by side.
  compared(text) {
    const cards = text.split(/\s+(?:vs\.?|versus)\s+/i).map((name) => cardOf(words(name, this.said), this.cards));
    if (cards.length < 2 || cards.includes(null) || new Set(cards).size < cards.length) return [];
    const names = cards.map((card) => card.title);
    return [{ path: `compare/?gpus=${cards.map((card) => card.id).join(",")}`, title: `Compare ${names.join(" and ")}`, note: "side by side" }];
  }

  // The id of a packed copy that is not listed: the model of that name by whoever made it, or packed by others.
  byOthers(text) {
    const [, name] = /^\s*[^\s/]+\/([^\s/]+)\s*$/.exec(text) ?? [], typed = fold(text).bare;
    if (!name || this.entries.some((entry) => entry.kind && entry.name.bare === typed)) return [];
    for (const leaf of [name.replace(/[-_.]GGUF$/i, ""), name]) {
      const [found] = this.searched(leaf);
      if (found?.kind && found.plain === fold(leaf).bare) return [found];
    }
    return [];
  }

  searched(text) {
    const parts = words(text, this.said);
    if (!parts.length) return [];
    // what of the query an entry has, as one name
    const typed = fold(text).bare, said = new Map();
    const told = (mask) => said.get(mask) ?? said.set(mask, fold(parts.flatMap((part, k) => (mask[k] === "1" ? part.ways[0] : [])).join(" ")).bare).get(mask);
    const graded = parts.map((part) => {
      const qualities = this.grade(part);
      if (qualities.some((q) => q !== MISSED)) return qualities;
      return this.grade(this.mistyped(part)).map((q) => (q === MISSED ? q : MISTYPED));
    });
    const hits = [];
    this.entries.forEach((entry, i) => {
      let missing = 0, sum = 0, mask = "";
      for (const qualities of graded) {
        const isNamed = qualities[i] < IN_TEXT;
        if (isNamed) sum += qualities[i];
        else missing += qualities[i] === IN_TEXT ? TOLD : 1;
        mask += isNamed ? "1" : "0";
      }
      if (missing >= parts.length) return;
      const opened = parts.every((part) => part.opens.includes(entry.path));
      // the whole of an id is that model; the whole of a name is the first of its kind
      const whole = told(mask);
      const is = (name) => name !== "" && (name === typed || name === whole);
      const exact = is(entry.name.bare) || opened ? 0 : is(entry.plain) ? 1 : 2;
      const begins = parts.length > 1 && parts.every((part) => !part.isAlike) && entry.plain.startsWith(whole) ? 0 : 1;
      const own = entry.organisation && entry.name.bare !== whole ? 1 : 0; // a part of an organisation's name says less
      hits.push({ entry, mask, missing, sum: sum + own, exact, begins, kind: missing ? 1 - entry.kind : entry.kind });
    });
    // of cards and pages the one of just that name, of models the work before its copies
    const rank = ({ entry, exact, begins, sum }) => (entry.kind ? [exact ? 1 : 0, entry.level, exact, sum, begins, entry.order] : [exact, sum, entry.level, entry.order]);
    for (const hit of hits) hit.rank = [hit.missing, Math.floor(hit.sum), hit.kind, ...rank(hit)];
    hits.sort((x, y) => { for (let i = 0; i < x.rank.length; i++) if (x.rank[i] !== y.rank[i]) return x.rank[i] - y.rank[i]; return 0; });
    // who is named as a model is asked for by the model
    if (hits[0]?.entry.organisation && hits[1] && !hits[1].missing && !hits[1].entry.organisation && parts.every((part) => found(fold(hits[1].entry.plain), part) < INSIDE)) hits.unshift(...hits.splice(1, 1));
    if (!hits.length) return [];
    const [best] = hits, cards = new Map();
    const behind = (mask) => cards.get(mask) ?? cards.set(mask, cardOf(parts.filter((_, k) => mask[k] === "0"), this.cards)).get(mask);
    return hits.filter((hit) => hit.missing < Math.max(1, best.missing + 0.1) && hit.sum <= best.sum + 1).slice(0, MOST).map(({ entry, mask, missing }) => {
      const card = missing && entry.kind && !entry.organisation ? behind(mask) : null; // a model's page, with the card that the rest names
      return card ? { ...entry, path: `${entry.path}?gpu=${card.id}`, note: `on ${card.title}` } : entry;
    });
  }
}

// One letter more, less, other, or two changed about.
export function oneApart(one, other) {
  if (one === other || Math.abs(one.length - other.length) > 1) return false;
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  let end = 0;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  const [left, right] = [one.slice(start, one.length - end), other.slice(start, other.length - end)];
  return (left.length <= 1 && right.length <= 1) || (left.length === 2 && right.length === 2 && left === right[1] + right[0]);
}
