// A card's page: "this is my card", remembered for the other pages.
const { memory, h } = await import(`./almanac.js${new URL(import.meta.url).search}`);
const article = document.querySelector("article.gpu");
const id = article.dataset.gpu;
const button = h("button", { type: "button", class: "mine-button" });
const draw = () => {
  const mine = memory.get("gpu") === id;
  button.textContent = mine ? "This is my card ✓" : "Make this my card";
  button.setAttribute("aria-pressed", String(mine));
};
button.addEventListener("click", () => {
  memory.set("gpu", memory.get("gpu") === id ? "" : id);
  draw();
});
draw();
article.querySelector(".answer").after(button);
