// Material's search finds the beginnings of words. Names are often asked for by their middle ("seek", "llama" of TinyLlama):
// each plain word of a query gets a leading wildcard on its way to the theme's own worker, and what that finds in a title
// is not reported as missing.
addEventListener("message", (event) => {
  const { type, data, widened } = event.data;
  if (type !== 2 || widened || !/^[\p{L}\p{N}\s._/-]+$/u.test(data)) return;
  event.stopImmediatePropagation();
  const query = data.replace(/(^|\s)(?=[^\s._/-]{3})/g, "$1*");
  dispatchEvent(new MessageEvent("message", { data: { type, data: query, widened: true } }));
});
const send = self.postMessage.bind(self);
self.postMessage = (message) => {
  for (const item of (message.type === 3 ? message.data.items : []).flat())
    for (const term of Object.keys(item.terms ?? {}))
      item.terms[term] ||= item.title.toLowerCase().includes(term.toLowerCase());
  send(message);
};
importScripts("WORKER");
