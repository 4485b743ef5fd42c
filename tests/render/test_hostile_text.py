"""Text from outside stays text: no template, page or script makes an element or an attribute of it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import jinja2
import jinja2.nodes
import pytest

from pipeline import ROOT
from pipeline.book.schema import ENUMS, PUBLISHED
from pipeline.render.addresses import Addresses
from pipeline.render.data import badges, shapes
from pipeline.render.data.tables import read
from pipeline.render.environment import TEMPLATES, environment
from pipeline.render.pages import finding, news, organisations, redirects
from pipeline.render.pages import prose as prose_pages
from pipeline.render.pages.model_file import files
from pipeline.render.pages.models import ModelPages
from pipeline.render.pages.prose import Prose
from tests.render.tiny_tables import SITE, built

# leaves quotation marks of either kind, a tag, a comment, a script, a style and a title; what comes of it bears a name of its own
EVIL = "x\"'></title></script></style>--><evil-tag evil=1><svg/onload=evil()>\u202e&quot;{{evil}}"
# the mark, and that of the hostile name of tiny_tables, as they are told
MARK = re.compile(r"evil|alert\(")
# what code compares with words of its own, or makes paths of; ids of the Hub are names, and those of tiny_tables hold a hostile one
_READ = re.compile(r"(_id|_ids|_rank|_format|_at|_date|revision|sharding|kind|mechanism|component|verdict|finishes)$")
# templates that are given numbers and words of ours alone
OF_OURS = {"calculator.html", "dictionary.html", "early.html", "promise.html", "sql.html", "techniques.html", "drafts.html", "files.html", "remote.html", "which.html"}  # fmt: skip
SCRIPTS = sorted((ROOT / "site").rglob("*.js"))
# ways of a browser to make elements, code or addresses of text (https://html.spec.whatwg.org/multipage/dynamic-markup-insertion.html)
MAKES_ELEMENTS = re.compile(
    # (one is of ours: model.js draws plots, which are among what `given` holds)
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|DOMParser|createContextualFragment|srcdoc"
    r"|\beval\(|new Function|setTimeout\(\s*[\"'`]|setAttribute\(\s*[\"'`]on|javascript:"
)


class Elements(HTMLParser):
    """The tags of a text and the names of their attributes; and the addresses that it leads to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action", "formaction")]
        if tag == "script" and dict(attrs).get("type") not in ("application/json", "application/ld+json"):
            self.scripts.append("")

    def handle_data(self, data):
        if self.cdata_elem == "script" and self.scripts:
            self.scripts[-1] += data


def is_text(html: str) -> bool:
    found = Elements(html)
    led = [address for address in found.addresses if re.match(r"\s*(javascript|data|vbscript):", address, re.I)]
    is_run = any(MARK.search(script) for script in found.scripts)
    return "evil-tag" not in found.tags and found.attributes.isdisjoint({"evil", "onload"}) and not led and not is_run


@pytest.mark.parametrize(
    "html",
    [f"<p>{EVIL}</p>", f'<a title="{EVIL}">x</a>', f"<script>{EVIL}</script>", '<a href="javascript:evil()">x</a>'],
)
def test_the_mark_is_seen_where_nothing_is_escaped(html):
    assert not is_text(html)


class Spied(jinja2.Template):
    """Tells what it gave."""

    given: ClassVar[dict[str, list[str]]] = {}

    def render(self, *args, **named):
        text = super().render(*args, **named)
        self.given.setdefault(self.name, []).append(text)
        return text


def hostile(name: str, row: dict) -> dict:
    """A row of a table with the mark in every word that is not read by code."""
    free = {
        column.name
        for column in PUBLISHED[name].columns
        if column.type == "string" and column.name not in ENUMS and not _READ.search(column.name)
    } | {"short"}
    return {key: f"{value}{EVIL}" if key in free and isinstance(value, str) else value for key, value in row.items()}


@pytest.fixture(scope="module")
def given() -> dict[str, list[str]]:
    """What every template gives of tables whose words are hostile, by its name; and what is not a template under the name of its module."""
    with pytest.MonkeyPatch.context() as patch:
        Spied.given = found = {}
        patch.setattr(jinja2.Environment, "template_class", Spied)
        told = {
            **{key: [EVIL] for key in ("added", "removed", "newly_known", "withdrawn", "removed_gpus")},
            "since": {"data_version": EVIL, "snapshot_date": EVIL, "schema_version": EVIL},
            "compared": 1, "accepted": {"reason": EVIL, "gates": [EVIL]}, "added_gpus": [], "causes": {EVIL: {"among": [EVIL], "models": 1, "numbers": 1, "moved": 1, "verdicts": 1}},
            "underneath": {"constants": [[EVIL, 1, 2]], "facts": [EVIL]}, "numbers": {"moved": 1, "changed": 1},
            "models": [{"model_id": EVIL, "changed": 1, "of": 2, "most": 0.5, "where": [EVIL, 1, 2], "known": 1, "unknown": 0, "verdicts": 1,
                        "examples": [[EVIL, EVIL, "fits", "no"]], "why": [EVIL], "cause": EVIL, "among": [EVIL]}],
        }  # fmt: skip
        patch.setattr(news, "read", lambda _folder: told)
        row = dict.fromkeys(
            ("task", "models", "told", "known", "downloads", "shown", "share", "weighed", "of_one_model", "with_files"),
            1,
        )
        unknown = [{"name": EVIL, "path": "x/y", "downloads": "1", "why": EVIL}]
        kind = row | {"kind": EVIL, "told_by_file": 1}
        covered = {"whole": row, "tasks": [row | {"task": EVIL}], "kinds": [kind], "query": EVIL, "unknown": unknown}
        patch.setattr(prose_pages, "coverage", lambda *_: covered)
        book = read(built())
        for name, rows in book.tables.items():
            book.tables[name] = [hostile(name, row) for row in rows]
        book.reasons = [f"{reason}{EVIL}" for reason in book.reasons]
        pages = ModelPages(book, SITE)
        prose = Prose(book, pages, where=Addresses(SITE))
        for number in range(len(book.models)):
            pages.render(number)
            for path, content in files(pages, number).items():
                if path.endswith(".bin"):
                    found.setdefault("plots", []).append(shapes.read(content)[0]["plot"])
                elif isinstance(content, str) and not path.endswith(".json"):
                    found.setdefault(Path(path).suffix, []).append(content)
        found["organisation.html"] = [body for _folder, _name, body in organisations.pages_of(pages)]
        for gpu in book.gpus:
            prose.cards.render(gpu)
        arguments = {"slot_sql": ["weights"], "slot_constants": ["weights"]}
        for slot in (name for name in dir(prose) if name.startswith("slot_")):
            for argument in arguments.get(slot, [None]):
                found.setdefault(slot, []).append(getattr(prose, slot)(argument))
        found["redirects"] = [
            redirects.PAGE.format(name=EVIL, address=EVIL, canonical=redirects.CANONICAL.format(EVIL))
        ]
        found["redirects"].append(redirects.GONE.format(name=EVIL, canonical="", site=EVIL))
        found["badges"] = [badges.drawn(EVIL, EVIL, True)]
        found["finding"] = [finding.feed(told, {EVIL: EVIL}, SITE, {"data_version": EVIL})]
    return found


def test_no_template_and_no_slot_makes_an_element_of_text(given):
    assert {name for name, texts in given.items() if not all(map(is_text, texts))} == set()


def test_every_template_is_given_hostile_text_or_none_at_all(given):
    """What holds no mark shows no words of tables."""
    templates = {path.name for path in TEMPLATES.glob("*.html") if not path.name.startswith("_")}
    assert templates <= given.keys()
    marked = {name for name in templates if any(MARK.search(text) for text in given[name])}
    assert templates - marked == OF_OURS
    others = {"redirects", "badges", "finding", ".svg"}
    assert {name for name in others if not any(MARK.search(text) for text in given[name])} == set()
    assert given["plots"]


def test_templates_escape_always():
    env = environment(read(built()))
    assert env.autoescape is True
    for path in TEMPLATES.glob("*.html"):
        tree = env.parse(path.read_text(encoding="utf-8"))
        assert not list(tree.find_all((jinja2.nodes.EvalContextModifier, jinja2.nodes.MarkSafe))), path.name
        assert {f.name for f in tree.find_all(jinja2.nodes.Filter)}.isdisjoint({"safe", "xmlattr", "urlize"}), path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_elements_or_code_of_text(path):
    found = [line.strip()[:80] for line in path.read_text(encoding="utf-8").splitlines() if MAKES_ELEMENTS.search(line)]
    assert found == [line for line in found if 'parseFromString(plot, "text/html")' in line and path.name == "model.js"]


def test_what_a_script_reads_in_a_page_ends_no_script(given):
    """Data in a page stand in a script of a type that nothing runs: no text there may end it."""
    for texts in given.values():
        for text in texts:
            for data in re.findall(r'<script type="application/(?:ld\+)?json"[^>]*>(.*?)</script>', text, re.S):
                json.loads(data)
