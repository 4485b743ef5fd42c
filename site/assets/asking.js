// Fields that several pages ask by: a model by its name, a whole number from 1.
const search = new URL(import.meta.url).search;
const a = await import(`./almanac.js${search}`);
const NEAR = 20; // names that are offered

// `chosen` is called with a name that is a model's as it is typed, and with what was typed when the field is left (then it is a choice). What stands below is the answer
// to `settled` alone: while another name is typed, and until its answer is there, it is dimmed.
export function modelField(models, value, chosen) {
  const list = a.h("datalist", { id: "model-names" });
  const input = a.h("input", { type: "search", name: "model", list: "model-names", autocomplete: "off", spellcheck: "false", value });
  let settled = value;
  const mark = () => document.documentElement.classList.toggle("asking", input.value.trim() !== settled);
  const choose = async (id, isChoice) => { await chosen(id, isChoice); settled = id; mark(); };
  input.addEventListener("input", mark);
  input.addEventListener("input", async () => {
    if (models.id.includes(input.value)) choose(input.value);
    const typed = input.value.trim(), near = await meant(models, typed);
    if (input.value.trim() === typed) list.replaceChildren(...near.slice(0, NEAR).map((id) => a.h("option", { value: id })));
  });
  input.addEventListener("change", async () => {
    const typed = input.value.trim(), id = (await meant(models, typed)).find((each) => tells(typed, each)) ?? typed;
    if (input.value.trim() !== typed) return; // something else was typed meanwhile
    input.value = id;
    choose(id, true);
  });
  const label = a.h("label", { class: "search" }, a.h("span", {}, "Model"), input, list);
  label.show = (id) => { input.value = settled = id; mark(); };
  return label;
}

let finding;
const theFinder = () => (finding ??= Promise.all([import(`./find.js${search}`), a.load("search/index.json")]).then(([find, index]) => [find, new find.Finder(index)]));
// What is offered for a name that no model has, as the search ranks it: a letter may be wrong.
export async function near(models, typed, most = 5) {
  const [, finder] = await theFinder(), known = new Set(models.id);
  return finder.search(typed).map(({ title }) => title).filter((id) => known.has(id)).slice(0, most);
}
// The models that a name as people write it means, as the search ranks them (find.js), of those that have all of its words; first the one of just that id.
async function meant(models, typed) {
  if (!typed) return [];
  const [find, finder] = await theFinder(), has = find.filter(models.folded ??= models.id.map(find.fold), typed, finder.said);
  const place = (models.places ??= new Map(models.id.map((id, i) => [id, i]))), lower = typed.toLowerCase();
  const ranked = finder.search(typed).map(({ title }) => title).filter((id) => place.has(id) && has(place.get(id)));
  return [...new Set([...models.id.filter((id) => id.toLowerCase() === lower), ...ranked])];
}

// Whether a name that was typed tells a model that has its words, as is_told of the SQL has it: one that begins so, a size that is said, or few words beside them. Of
// each word it has the beginning of one, or its letters in a row (gemma3): a search finds the 4 of gpt-4 in MXFP4 too, and chatgpt where gpt stands.
const words = (text) => text.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean), parts = (name) => words(name.split("/").pop()), LEFT_OUT = /^(instruct|it|chat|hf|bf16|fp16|diffusers|a[0-9.]+b)$/;
export function tells(typed, id) {
  const said = parts(typed), name = parts(id).filter((word) => !LEFT_OUT.test(word) || said.includes(word)), flat = (list) => list.join("").replaceAll(".", "");
  const all = words(id), isSaid = (word) => all.some((each) => each.startsWith(word)) || (/[a-z]/.test(word) && flat(all).includes(flat([word])));
  if (!words(typed).every(isSaid)) return false;
  return typed.toLowerCase() === id.toLowerCase() || flat(parts(id)).startsWith(flat(said)) || /(^|[^a-z0-9.])[0-9.]+[bm]\b/i.test(typed) || name.length - said.length <= said.length + 1;
}

export function numberField(key, name, value, chosen) {
  const isLength = key.startsWith("context"), asked = { name: key, value: String(value) };
  const box = isLength ? a.lengthInput(asked) : a.h("input", { type: "number", min: "1", step: "1", inputmode: "numeric", ...asked });
  box.addEventListener("input", () => {
    const number = isLength ? a.length(box.value) : box.value, is = +number >= 1 && Number.isInteger(+number);
    box.setAttribute("aria-invalid", String(!is));
    if (is) chosen(+number);
  });
  return a.h("label", {}, a.h("span", {}, name), box);
}

// The model that a page begins with: the most downloaded that writes and is as large as those that people ask about, and no mixture; else any that is known.
const COMMON_SIZE = 7e9; // parameters
export function firstModel(models) {
  const mixtures = new Set(models.moe), writes = (i) => models.task.values[models.task.of[i]] === "text-generation";
  const wanted = [(i) => writes(i) && models.size[i] >= COMMON_SIZE && !mixtures.has(i), writes, () => true];
  return wanted.map((is) => models.id.find((_, i) => models.reason.of[i] === null && is(i))).find(Boolean) ?? models.id[0];
}
