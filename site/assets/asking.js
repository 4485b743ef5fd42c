// Fields that several pages ask by: a model by its name, a whole number from 1.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
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
  input.addEventListener("change", async () => {
    const typed = input.value.trim(), id = await meant(models, typed);
    if (input.value.trim() !== typed) return; // something else was typed meanwhile
    input.value = id;
    chosen(id);
  });
  return a.h("label", { class: "search" }, a.h("span", {}, "Model"), input, list);
}

// The model that a name as people write it means, by the rule of the search (find.js): the one of just that name, else the most downloaded that has its
// words; what was typed, where none has.
let finding;
async function meant(models, typed) {
  const lower = typed.toLowerCase(), own = models.id.find((id) => id.toLowerCase() === lower);
  if (own || !typed) return own ?? typed;
  finding ??= Promise.all([import(`./find.js${search}`), a.load("data/words.json")]);
  const [find, spoken] = await finding, names = (models.folded ??= models.id.map(find.fold));
  const has = find.filter(names, typed, spoken), found = models.id.filter((_, i) => has(i)), bare = find.fold(typed).bare;
  return found.find((id) => find.fold(id.slice(id.lastIndexOf("/") + 1)).bare === bare) ?? found[0] ?? typed;
}

export function numberField(key, name, value, chosen) {
  const box = a.h("input", { type: "number", name: key, min: "1", step: "1", inputmode: "numeric", value: String(value) });
  box.addEventListener("input", () => { if (+box.value >= 1 && Number.isInteger(+box.value)) chosen(+box.value); });
  return a.h("label", {}, a.h("span", {}, name), box);
}
