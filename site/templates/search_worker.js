// Stands before the theme's own search worker, under its name.
// 1. The index of thousands of names, and the theme's worker, are fetched when somebody first types: most readers never do. Until
//    then the page is told that all is ready.
// 2. Material's search finds the beginnings of words. Names are often asked for by their middle ("seek", "llama" of TinyLlama): each
//    plain word of a query gets a leading wildcard, and what that finds in a title is not reported as missing.
const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3];
const send = self.postMessage.bind(self);
let state = "asleep", setup, last;
const tell = (type, data) => dispatchEvent(new MessageEvent("message", { data: { type, data, told: true } }));
const ask = (query) => tell(QUERY, /^[\p{L}\p{N}\s._/-]+$/u.test(query) ? query.replace(/(^|\s)(?=[^\s._/-]{3})/g, "$1*") : query);
async function wake() {
  state = "waking";
  try {
    const index = await (await fetch("../../../search/index.json")).json();
    importScripts("WORKER");
    tell(SETUP, { ...setup, docs: index.docs });
  } catch {
    state = "asleep"; // the next letter tries again
  }
}
addEventListener("message", (event) => {
  const { type, data, told } = event.data;
  if (told) return;
  event.stopImmediatePropagation();
  if (type === SETUP) {
    setup = data;
    send({ type: READY });
  } else if (type === QUERY) {
    last = data;
    if (state === "awake") ask(data);
    else if (data && state === "asleep") wake();
  }
});
self.postMessage = (message) => {
  if (message.type === READY) {
    state = "awake";
    ask(last);
    return;
  }
  for (const item of (message.type === RESULT ? message.data.items : []).flat())
    for (const term of Object.keys(item.terms ?? {}))
      item.terms[term] ||= item.title.toLowerCase().includes(term.toLowerCase());
  send(message);
};
