"""The header's search over every name of the bundled snapshot: what people type, and the page they mean."""

import csv
import json
from array import array
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pipeline.book.facts import read_facts
from pipeline.render import paths, shell
from pipeline.render.data import lineage
from pipeline.render.data.book import Book
from pipeline.render.environment import short_names
from pipeline.render.pages import search
from tests.once import bundled_snapshot
from tests.render.tiny_models import HOSTILE

pytestmark = pytest.mark.browser
QUERIES = Path(__file__).with_name("queries.csv")


@pytest.fixture(scope="module", params=["listed", pytest.param("read", marks=pytest.mark.full)])
def real_index(request, tmp_path_factory):
    """search/index.json as a build of the bundled snapshot writes it, of its lists alone or of what was read of every config."""
    folder = tmp_path_factory.mktemp("real")
    rows = listed() if request.param == "listed" else request.getfixturevalue("bundled")["model"].to_dicts()
    models = sorted(rows, key=lambda m: (-(m["downloads_30d"] or 0), m["model_id"]))
    gpus = read_facts()["gpu"].to_dicts()
    for gpu, short in zip(gpus, short_names([g["name"] for g in gpus]), strict=True):
        gpu |= {"short": short, "capacity_bytes": 0}
    shell.mkdocs(folder, "https://almanac.example/")
    book = Book(folder, {"model": models, "gpu": gpus}, [], [], {}, array("f"), [])
    search.write_index(folder, book, paths.assign(models))
    return json.loads((folder / "search" / "index.json").read_text())


def listed() -> list[dict]:
    """Of every model of the snapshot what the search reads."""
    snapshot = bundled_snapshot()
    known = snapshot.popularity
    return [
        {
            "model_id": record.model_id,
            "created_at": record.created_at,
            "downloads_30d": known[record.model_id].downloads_30d if record.model_id in known else None,
            "family": (record.config or {}).get("model_type"),  # nearly: that of a part is one of its own
            "base_model_id": record.base_model_id,
            "pipeline_tag": record.pipeline_tag,
            # (what a page counts; the search reads none of it)
            "parameter_count": None,
            "stored_parameter_count": record.stored_parameter_count,
        }
        for record in snapshot.records
    ]


def asked() -> list[dict[str, str]]:
    with QUERIES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ANSWER = """async ([index, typed]) => {
    const { Finder } = await import("/deep/assets/almanac/find.js");
    const finder = new Finder(index);
    return typed.map((text) => finder.search(text).map((entry) => entry.path));
}"""


def test_what_people_type_opens_what_they_mean(open_page, real_index):
    rows = asked()
    assert len(rows) >= 80 and sum(row["place"] == "1" for row in rows) > 0.8 * len(rows)
    found = open_page("about/").evaluate(ANSWER, [real_index, [row["typed"] for row in rows]])
    wrong = [
        f"{row['typed']!r}: {row['opens']} not in the first {row['place']}, which are {places[:3]}"
        for row, places in zip(rows, found, strict=True)
        if row["opens"] not in places[: int(row["place"])]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("every", [50, pytest.param(7, marks=pytest.mark.full)])
def test_every_model_is_first_for_its_own_id_in_any_letters(open_page, real_index, every):
    ids = [i for i in real_index["models"][::every] if "\\u" not in i]
    found = open_page("about/").evaluate(ANSWER, [real_index, [i.upper() for i in ids]])
    plain = lambda path: path.lower().partition("~~")[0].strip("/")  # noqa: E731  (two ids may differ by their capitals alone)
    wanted = [plain(f"models/{real_index['paths'].get(str(real_index['models'].index(i)), i)}") for i in ids]
    wrong = [
        (i, places[:2]) for i, path, places in zip(ids, wanted, found, strict=True) if plain([*places, ""][0]) != path
    ]
    assert not wrong, wrong[:5]


@pytest.mark.full
def test_a_search_takes_less_than_a_blink(open_page, real_index):
    """Each letter of a query over all names; a generous limit, since other jobs share the machine."""
    took = open_page("about/").evaluate(
        """async ([index, typed]) => {
            const { Finder } = await import("/deep/assets/almanac/find.js");
            const finder = new Finder(index);
            finder.search("warm");
            return typed.map((text) => { const start = performance.now(); finder.search(text); return performance.now() - start; });
        }""",
        [real_index, ["llama 3.3 70b instruct"[:n] for n in range(1, 23)]],
    )
    assert sorted(took)[len(took) // 2] < 100


def test_the_index_of_all_names_is_small(real_index):
    assert len(json.dumps(real_index, ensure_ascii=False, separators=(",", ":"))) < 250_000


def test_every_page_that_a_word_stands_for_is_there(real_index):
    pages = {path for path, _title, _text in real_index["pages"]} | {
        f"gpus/{slug}/" for slug, *_ in real_index["cards"]
    }
    missing = {
        way for ways in real_index["words"].values() for way in ways if "/" in way and way not in pages
    }  # fmt: skip
    assert not missing
    assert all(said == said.lower().strip() for said in real_index["words"])


def model(model_id, downloads=0, family="qwen3", base=None):
    return {"model_id": model_id, "downloads_30d": downloads, "family": family, "base_model_id": base}


def test_copies_stand_after_what_they_are_made_of():
    models = [
        model("quick/Qwen3-8B-AWQ", 900),
        model("Qwen/Qwen3-8B", 800),
        model("Qwen/Qwen3-8B-FP8", 700),
        model("quick/Qwen3-8B", 600),
        model("quick/Qwen3-14B-AWQ", 500),
        model("Qwen/Qwen3-14B", 400),
        model("other/My-Qwen3-8B-story", 300),
        model("third/Named-Otherwise", 200, base="Qwen/Qwen3-8B"),
        model("third/Base-Is-Not-Listed", 100, base="nobody/knows"),
    ]
    told = dict(zip([m["model_id"] for m in models], lineage.Names(models).levels(), strict=True))
    assert told["Qwen/Qwen3-8B"] == told["Qwen/Qwen3-14B"] == told["third/Base-Is-Not-Listed"] == lineage.OWN
    assert told["Qwen/Qwen3-8B-FP8"] == lineage.PACKED
    copies = set(told) - {"Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "third/Base-Is-Not-Listed", "Qwen/Qwen3-8B-FP8"}
    assert {told[name] for name in copies} == {lineage.DERIVED}


def box(page):
    page.locator(".md-search__input").click()
    return page.locator(".md-search__input")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("typed", "opened"),
    [
        ("alpha7b", "models/acme/Alpha-7B-Instruct/"),
        ("rtx4090", "gpus/rtx-4090/"),
        ("2x4090", "gpus/rtx-4090/"),
        ("macbook", "gpus/m4-max-128gb/"),
        ("csv", "downloads/"),
        ("quantization", "method/weights/"),
        ("apha instrut", "models/acme/Alpha-7B-Instruct/"),
    ],
)
def test_enter_opens_the_first_however_fast_it_is_pressed(open_page, site_url, typed, opened):
    page = open_page("about/")
    box(page).press_sequentially(typed)
    page.keyboard.press("Enter")
    page.wait_for_url(site_url + opened)


@pytest.mark.full
def test_what_is_pasted_is_searched_too(open_page, site_url):
    page = open_page("about/")
    box(page).fill("camel coder")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site_url}models/acme/CamelCoder.2-405B/")


@pytest.mark.full
def test_enter_with_nothing_found_stays(open_page, site_url):
    page = open_page("about/")
    box(page).fill("zzzzqqqq")
    page.keyboard.press("Enter")
    expect(page.locator(".md-search-result__meta")).to_have_text("No matching documents")
    assert page.url == f"{site_url}about/"


@pytest.mark.full
def test_a_hostile_name_is_found_as_text(open_page):
    page = open_page("about/")
    box(page).press_sequentially("evil org")
    link = page.locator(".md-search-result__link").first
    expect(link).to_contain_text("<script>alert(")  # the answer to the last key: those before it named other models
    expect(link).to_contain_text(HOSTILE.partition("/")[0])


FILTERED = [("alpha 7b", ["acme/Alpha-7B-Instruct"]), ("alpha7b", ["acme/Alpha-7B-Instruct"]), ("camelcoder2", ["acme/CamelCoder.2-405B"]), ("alpha 70b", []),
            ("camel coder.2", ["acme/CamelCoder.2-405B"]), ("30b a3b", ["acme/Beta-MoE-30B-A3B"])]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("typed", "names"), FILTERED)
def test_the_matrix_and_the_list_of_models_read_a_name_alike(open_page, typed, names):
    front = open_page("matrix/")
    front.get_by_label("Part of a model’s name").fill(typed)
    shown = front.locator("#matrix tbody:not([aria-hidden]) tr:not([hidden]) th a")
    expect(shown).to_have_text(names)
    listed = open_page("models/")
    listed.locator("#find-model").fill(typed)
    expect(listed.locator("#found")).to_have_text(f"{len(names)} of 6" if names else "No model has these words.")
    expect(listed.locator("#model-list a")).to_have_text(names)
    listed.locator("#find-model").fill("")
    expect(listed.locator("#model-list a")).to_have_count(6)


@pytest.mark.full
def test_a_size_is_not_the_beginning_of_another_word(open_page):
    found = open_page("about/").evaluate(
        """async () => {
            const { filter, fold } = await import("/deep/assets/almanac/find.js");
            const names = ["a/Qwen3-8B", "b/Qwen3-8bit", "c/Qwen3-1.8B", "d/Qwen3-4B", "e/LLaMA-8B-W4A16", "f/Mixtral-8x7B"].map(fold);
            const all = (text) => names.map((_, i) => i).filter(filter(names, text));
            return [all("8b"), all("qwen 8b"), all("8bi"), all("7b"), all("8x7b"), all("1.8b"), all("llama"), all("w4a16")];
        }"""
    )
    assert found == [[0, 4], [0], [1], [], [5], [2], [4], [4]]


@pytest.mark.full
def test_the_whole_name_of_a_model_finds_it_and_what_holds_it_in_one_run(open_page):
    found = open_page("about/").evaluate(
        """async () => {
            const { filter, fold } = await import("/deep/assets/almanac/find.js");
            const names = ["a/Qwen3-VL-32B", "a/Qwen3-32B", "b/Qwen3-32B-AWQ", "a/QwQ-32B", "c/Story", "d/Bedtime-Story"].map(fold);
            return ["qwen3-32b", "Qwen 3 32B", "a/qwen3-32b", "qwen 32b", "story"].map((text) => {
                const is = filter(names, text);
                return [names.map((_, i) => i).filter(is), names.map((_, i) => i).filter((i) => is.isWhole?.(i))];
            });
        }"""
    )
    assert found == [[[1, 2], [1]], [[1, 2], [1]], [[1], [1]], [[0, 1, 2], []], [[4, 5], []]]


def test_a_card_behind_a_models_name_is_offered_with_it(open_page):
    """On the first screen, whose field is for names of models; the header's search opens the model's page with that card (queries.csv)."""
    page = open_page()
    page.locator("#window input[name=find]").press_sequentially("alpha 7b on a 4090")
    page.get_by_role("button", name="alpha 7b on RTX 4090").click()
    page.wait_for_url("**gpu=rtx-4090&find=alpha+7b")
    expect(page.locator("#window .answer")).to_contain_text("On RTX 4090: 1 model")
    assert page.evaluate("document.activeElement.name") == "find"
