"""The whole site over a tiny almanac: every page, every link, hostile names, unknown numbers, twice the same bytes."""

import base64
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from pipeline.press import publish
from pipeline.render import addresses, crew, render, words
from pipeline.render.addresses import REMOTE
from pipeline.render.data import shapes
from pipeline.render.data.tables import read
from pipeline.render.pages.models import ModelPages
from pipeline.render.shell import Shell, mkdocs, repository
from tests.render.tiny_models import GPUS, HOSTILE, MEASURED, MODELS, REASON, UNKNOWN
from tests.render.tiny_tables import SITE, built, rendered


class Page(HTMLParser):
    """What the tests ask of a page: its links, scripts, attributes, title and canonical address."""

    def __init__(self, text):
        super().__init__()
        self.links, self.resources, self.scripts, self.attributes, self.ids = [], [], [], [], set()
        self.canonical, self.policy, self.text, self._script = None, None, [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.attributes += [(tag, name, value) for name, value in attrs.items()]
        self.ids.add(attrs.get("id"))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag == "link" and attrs.get("rel") == "canonical":
            self.canonical = attrs["href"]
        elif tag == "link" or attrs.get("src"):
            self.resources.append(attrs.get("href") or attrs.get("src"))
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        self._script = tag == "script" and "src" not in attrs
        self._script = self._script and "type" not in attrs  # data blocks run nothing
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def tables():
    return built()


@pytest.fixture(scope="module")
def site():
    return rendered()


@pytest.fixture(scope="module")
def pages(site):
    return {file.relative_to(site).as_posix(): Page(file.read_text()) for file in sorted(site.rglob("*.html"))}


def page_of(site, model):
    return (site / "models" / words.slug(model) / "index.html").read_text()


def test_every_model_and_card_has_a_page(site):
    for model in MODELS:
        assert page_of(site, model)
    for gpu in GPUS:
        assert (site / "gpus" / gpu / "index.html").is_file()
    assert not list(site.rglob("_model")) and not list(site.rglob("_gpu"))


def test_no_marker_is_left(site):
    for file in [*site.rglob("*.html"), *site.rglob("*.json"), *site.rglob("*.xml")]:
        text = file.read_text()
        assert "ALMANAC-" not in text and "<!--almanac" not in text, file


def page_ids(pages, site, file):
    return pages[file.relative_to(site).as_posix()].ids


def test_every_internal_link_resolves(site, pages):
    broken = defaultdict(set)
    for name, page in pages.items():
        here = urljoin(SITE, name.removesuffix("index.html"))
        for link in page.links + page.resources:
            address = urlsplit(urljoin(here, link))
            if address.netloc != urlsplit(SITE).netloc or address.scheme not in ("http", "https"):
                continue
            target = site / unquote(address.path).removeprefix(urlsplit(SITE).path)
            file = target / "index.html" if target.is_dir() else target
            if not file.is_file() or (
                file.suffix == ".html" and unquote(address.fragment or "") not in {"", *page_ids(pages, site, file)}
            ):
                broken[link].add(name)
    assert not broken


def test_hostile_names_are_text(site, pages):
    for name, page in pages.items():
        assert "alert('x')" not in "".join(page.scripts), name
    text = "".join(pages[f"models/{words.slug(HOSTILE)}/index.html"].text)
    assert "<script>alert('x')</script>\"&-8B - VRAM Almanac" in text
    for file in site.rglob("*.html"):
        assert "\u202e" not in file.read_text(), file


def test_unknown_is_a_word_with_its_reason(site):
    page = page_of(site, UNKNOWN)
    assert "Unknown: No config is published" in page
    assert "data-matrix" not in page and " GiB" not in page
    assert f"unknown: {REASON}" in html.unescape(page_of(site, "acme/Alpha-7B-Instruct"))


def test_answer_is_computed(site):
    page = re.sub(r"</?span>", "", page_of(site, "acme/Alpha-7B-Instruct"))
    assert "Runs on one 12 GB card in 4-bit at 8k tokens; bf16 needs one 24 GB card" in page


def test_exact_bytes_and_sql_are_on_the_page(site):
    page = page_of(site, "acme/Alpha-7B-Instruct")
    told = json.loads((site / "api/v1/models/acme/Alpha-7B-Instruct.json").read_text())
    (bf16,) = (
        f
        for f in told["footprints"]
        if f["dtype_id"] == "bf16" and f["phase_id"] == "inference" and f["engine_id"] == "transformers"
    )
    assert bf16["weights_bytes"] == 14_000_000_000
    need = bf16["total_bytes"][bf16["context_tokens"].index(8192)]
    assert "<b>bf16</b>" in page and f'<span class="n">{words.gib(need)}</span>' in page
    assert "FROM footprint_of(&#39;acme/Alpha-7B-Instruct&#39;" in page


def test_canonical_and_sitemap_agree(site, pages):
    listed = set(re.findall(r"<loc>(.*?)</loc>", (site / "sitemap.xml").read_text()))
    canonical = {n: p.canonical for n, p in pages.items() if n.endswith("index.html")}
    for name, address in canonical.items():
        assert address == SITE + name.removesuffix("index.html"), name
    assert listed == {a.replace("&", "&amp;") for a in canonical.values()}


def test_search_knows_every_model_and_card(site):
    index = json.loads((site / "search" / "index.json").read_text())
    shown = {i: index["paths"].get(str(n), i) for n, i in enumerate(index["models"])}
    assert shown == {words.shown(m): words.slug(m) for m in MODELS}
    assert len(index["levels"]) == len(MODELS) and set(index["levels"]) <= set("0123")
    assert {card[0] for card in index["cards"]} == set(GPUS)
    assert {path for path, *_rest in index["organisations"]} == {"acme"}  # the others list a single model
    for path, title, text in index["pages"]:
        assert (site / path.partition("#")[0] / "index.html").is_file() and title and "<p" not in text


def test_the_list_of_models_leads_to_every_model_without_a_script(site, pages):
    listed = {urljoin("models/", link) for link in pages["models/index.html"].links}
    reached = {link for link in listed if f"{link}index.html" in pages} | {
        urljoin(link, further)
        for link in listed
        if f"{link}index.html" in pages
        for further in pages[f"{link}index.html"].links
    }
    assert {f"models/{words.slug(m)}/" for m in MODELS} <= {unquote(link) for link in reached} | reached


def test_policy_allows_exactly_the_inline_scripts(pages):
    for name, page in pages.items():
        assert page.policy, name
        allowed = set(re.findall(r"'sha256-[^']*'", page.policy))
        used = {f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in page.scripts}
        assert allowed == used, name
        assert "unsafe" not in page.policy and "http" not in page.policy
        assert not [a for a in page.attributes if a[1] == "style" or a[1].startswith("on")], name


def test_nothing_is_fetched_from_elsewhere(pages):
    for name, page in pages.items():
        assert not [r for r in page.resources if urlsplit(r).netloc and not r.startswith(SITE)], name


def test_every_page_says_how_old_the_facts_are(pages):
    for name, page in pages.items():
        assert "Facts of" in " ".join(page.text), name


CHART = re.compile(r'<svg class="plot".*?</svg>', re.S)
NUMBER = re.compile(r"[\d,]+")


def number(text: str) -> int:
    return int(NUMBER.search(text)[0].replace(",", ""))


def test_a_chart_draws_as_many_marks_as_its_title_tells(site):
    """Every chart of the site, by what its title says that it shows; a new kind of chart wants a line here."""
    seen = defaultdict(int)
    for file in site.rglob("*.html"):
        for drawing in CHART.findall(file.read_text()):
            svg = ElementTree.fromstring(drawing)
            title = svg.findtext("title")
            if title.startswith("Error of "):
                kind = "measurements"
                marks = [
                    e
                    for e in svg.iter("path")
                    if e.get("class", "").startswith("point") and e.find("title") is not None
                ]
                assert len(marks) == number(title), (file, title)
                assert all(mark.get("d").startswith("M") for mark in marks)
            elif "error over" in title:
                kind = "rules"
                counts = [e.text for e in svg.iter("text") if e.get("class") == "soft"]
                assert sum(map(number, counts)) == number(title.partition("error over")[2]), (file, title)
                bars = [e for e in svg.iter("rect") if float(e.get("height")) > 0]
                assert len(bars) == len(counts)
            else:
                raise AssertionError(title)
            seen[kind] += 1
    assert seen == {"measurements": 2, "rules": seen["rules"]} and min(seen.values()) > 0


def test_the_plot_of_a_shape_draws_the_lines_that_it_tells(site):
    told = [json.loads(file.read_text(encoding="utf-8")) for file in (site / "api/v1/models").rglob("*.json")]
    names = {each["shape"] for each in told if "shape" in each}
    files = {path.name: path.read_bytes() for path in (site / "data/shapes").iterdir()}
    assert set(files) == {shapes.file_of(name) for name in names}, "each shape lies in the file that its name says"
    held = [shapes.unpacked(files[shapes.file_of(name)])[name] for name in sorted(names)]
    drawn = [text for content in held if (text := shapes.read(content)[0]["plot"])]
    assert drawn
    for text in drawn:
        svg = ElementTree.fromstring(text)
        told, lines = svg.findtext("desc"), list(svg.iter("polyline"))
        assert len(lines) == len(told.partition(":")[0].split(", ")), told
        assert all(len(line.get("points").split()) > 1 for line in lines)
        left_out = re.search(r"(\d+) of (\d+) formats are drawn", told)
        assert left_out and int(left_out[1]) == len(lines) < int(left_out[2])
        assert left_out[0] in [e.text for e in svg.iter("text")]  # told to those who see it as well


def test_a_rule_says_how_many_models_it_was_not_tried_on(site):
    page = (site / "method" / "rules-of-thumb" / "index.html").read_text()
    pairs = re.findall(r"over ([\d,]+) models in [\w-]+ \(([\d,]+) are left out", page)
    assert pairs and all(int(tried) + int(left) == len(MODELS) for tried, left in pairs)


def test_the_page_of_plans_tells_cards_and_hours_and_the_mistake(site):
    page = html.unescape((site / "plans" / "index.html").read_text())
    assert re.findall(r'<h3 id="users-\d+">(.*?)<', page) == ["One user", "3 users at once"]
    alone, three = page.split('<h3 id="users-3">')
    found = re.findall(r'<td class="n" title=".*?">(.*?)</td>', three)
    cells = [re.sub(r"<.*?>", "", cell.partition("<br>")[0]) for cell in found]
    assert cells[:3] == ["2 not 6", "1 barely not 6", "–"] and "not 6" not in alone
    assert "<small>55 tok/s</small>" in found[0] and "tok/s" not in found[2]
    assert cells[-3:] == ["1 × minutes", "likely 4 × 18 h", "no: 1,024 × 99 h"]


def test_the_accuracy_page_tells_of_reported_runs_and_what_was_said_wrongly_first(site):
    page = (site / "accuracy" / "index.html").read_text()
    table = page[page.index('id="reported-table"') :].partition("</table>")[0]
    assert "3 runs with a known end" in page and "1 fit by our word and did not run" in page
    assert [table.index(name) for name in ("b-2", "c-3", "a-1")] == sorted(
        table.index(name) for name in ("b-2", "c-3", "a-1")
    )
    assert "vllm 0.30" in table and "18.6" in table and 'href="https://example.org/runs/1"' in table
    assert "<b>by hand" not in table and "<i>nobody" not in table


def test_a_measurement_that_cannot_be_drawn_is_told(site):
    page = html.unescape((site / "accuracy" / "index.html").read_text())
    assert "2 of 4 are left out: 1 are measured as nothing, 0 bytes, 1 are measured in params and not in bytes." in page
    assert page.count("are left out:") == 1  # all others are drawn
    assert '<td class="n">7B params</td><td class="n">2.15B params</td>' in page  # a count is no size in GiB
    for _id, _phase, _engine, _measured, told, source in MEASURED:
        assert told is None or source in page


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"REPO_URL": "https://code.example/almanac/"}, "https://code.example/almanac"),
        ({"GITHUB_REPOSITORY": "some/one", "GITHUB_SERVER_URL": "https://hub.example"}, "https://hub.example/some/one"),
        ({"GITHUB_REPOSITORY": "some/one", "REPO_URL": "https://code.example/x"}, "https://code.example/x"),
        ({}, None),
    ],
)
def test_every_page_links_to_the_repository_where_its_address_is_known(environment, address, monkeypatch, tmp_path):
    for name in ("REPO_URL", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    mkdocs(tmp_path / "prose", SITE)
    files = list((tmp_path / "prose").rglob("*.html"))  # the shells of all other pages are among them
    assert len(files) > 20
    for file in files:
        foot = file.read_text().partition('<div class="md-copyright">')[2]
        assert (f'<a href="{address}" rel="noopener">' in foot) == (address is not None), file
        assert ("Source, data and issues" in foot) == (address is not None), file


def test_an_address_of_a_repository_is_one(monkeypatch):
    monkeypatch.setenv("REPO_URL", "javascript:alert(1)")
    with pytest.raises(ValueError, match="REPO_URL"):
        repository()


def test_tables_are_beside_the_site(site, tables):
    assert {f.name for f in tables.iterdir()} | {REMOTE} == {f.name for f in (site / "tables").iterdir()}


@pytest.mark.full
def test_the_same_tables_give_the_same_site_whoever_writes_it(site, tables, tmp_path):
    """By other processes, and with other hashes of text than the random ones of this run, by which sets are ordered."""
    again = f"""if True:
        from pathlib import Path
        from pipeline.render import crew, render
        crew.PORTION = 1
        render(Path({str(tables)!r}), Path({str(tmp_path / "again")!r}), site_url={SITE!r}, processes=2)
    """
    subprocess.run([sys.executable, "-c", again], env=os.environ | {"PYTHONHASHSEED": "1"}, check=True)
    publish.write_far(tables, tmp_path / "again", addresses.known(SITE))
    compare_folders(site, tmp_path / "again")


def compare_folders(one, other):
    first, second = (
        {f.relative_to(folder): hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.rglob("*") if f.is_file()}
        for folder in (one, other)
    )
    assert first == second


@pytest.mark.full
def test_a_page_that_cannot_be_written_stops_the_build(tables, tmp_path):
    (tmp_path / "models").write_text("in the way")
    with crew.Crew(ModelPages(read(tables), SITE), 1) as one, pytest.raises(OSError):
        list(one.write(Shell.of("ALMANAC-TITLE"), tmp_path, lambda: None))


NO_GUARD = """
import sys
from pathlib import Path
from pipeline.render import crew
from pipeline.render.data.tables import read
from pipeline.render.pages.models import ModelPages
book = read(Path(sys.argv[1]))
book.tables["source"] = [*book["source"]] * 10_000  # more than a pipe holds
print("begins", flush=True)
with crew.Crew(ModelPages(book), 2) as one:
    list(one.write(None, Path("nowhere"), lambda: None))
"""


@pytest.mark.full
def test_a_process_that_ends_before_it_begins_stops_the_build_and_holds_up_nobody(tables, tmp_path):
    """As one does that the system kills: here each runs this very program first, and that is refused."""
    program = tmp_path / "program.py"
    program.write_text(NO_GUARD)
    environment = os.environ | {"PYTHONPATH": str(publish.ROOT)}
    run = subprocess.run(
        [sys.executable, str(program), str(tables)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode and run.stdout.startswith("begins")
    assert run.stderr.strip().endswith(crew.ENDED)


def test_a_full_folder_is_refused(tables, tmp_path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(FileExistsError):
        render(tables, tmp_path)
    assert (tmp_path / "kept").read_text() == "mine"
