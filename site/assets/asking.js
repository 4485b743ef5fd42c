// Fields that several pages ask by: a model by its name, a whole number from 1.
const a = await import(`./almanac.js${new URL(import.meta.url).search}`);
const NEAR = 20; // names that are offered

// `chosen` is called with a name that is a model's as it is typed, and with what was typed when the field is left.
export function modelField(models, value, chosen) {
  const list = a.h("datalist", { id: "model-names" }), lower = models.id.map((id) => id.toLowerCase());
  const input = a.h("input", { type: "search", name: "model", list: "model-names", autocomplete: "off", spellcheck: "false", value });
  input.addEventListener("input", () => {
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean), near = [];
    for (let i = 0; i < lower.length && near.length < NEAR; i++) if (terms.every((t) => lower[i].includes(t))) near.push(models.id[i]);
    list.replaceChildren(...near.map((id) => a.h("option", { value: id })));
    if (models.id.includes(input.value)) chosen(input.value);
  });
  input.addEventListener("change", () => chosen(input.value.trim()));
  return a.h("label", { class: "search" }, a.h("span", {}, "Model"), input, list);
}

export function numberField(key, name, value, chosen) {
  const box = a.h("input", { type: "number", name: key, min: "1", step: "1", inputmode: "numeric", value: String(value) });
  box.addEventListener("input", () => { if (+box.value >= 1 && Number.isInteger(+box.value)) chosen(+box.value); });
  return a.h("label", {}, a.h("span", {}, name), box);
}
