// Read before anything is drawn: who asks for something, or has chosen a card before, is not shown first what nobody asked for.
{
  let card = "";
  try { card = localStorage.getItem("almanac:gpu") ?? ""; } catch { /* private windows may refuse */ }
  if (card || location.search) document.documentElement.dataset.asks = "";
}
