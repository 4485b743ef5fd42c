"""A page that is kept is the page that would be rendered: what it is made of is all that it asks, and what is damaged is made anew."""

from __future__ import annotations

import pickle
from array import array
from collections import Counter
from concurrent.futures import Future

import pytest

from pipeline.book.packs import FILE, Packs
from pipeline.render import crew, kept_pages
from pipeline.render import paths as room
from pipeline.render.data import kept
from pipeline.render.data.calculator import has_shape
from pipeline.render.data.tables import read
from pipeline.render.kept_pages import KeptPages, page_of
from pipeline.render.pages.models import ModelPages
from pipeline.render.pages.reach import HELD
from pipeline.render.shell import Shell
from tests.render.tiny_tables import SITE, built

SHELL = Shell.of("ALMANAC-TITLE<!--almanac:body-->ALMANAC-DESCRIPTION")


class Only(list):
    """Models of which one may be asked about."""

    def __init__(self, rows: list[dict], number: int) -> None:
        super().__init__(rows)
        self.number = number

    def __getitem__(self, place):
        assert place == self.number, "another model is asked about"
        return super().__getitem__(place)

    def __iter__(self):
        pytest.fail("all models are asked about")


class Nobody:
    """May not be asked anything."""

    def __getattr__(self, name):
        pytest.fail(f"{name} of other models is asked")


@pytest.fixture(scope="module")
def pages() -> ModelPages:
    found = ModelPages(read(built()), SITE)
    assert found.held and found.by_card.places
    return found


@pytest.mark.some(3)
@pytest.mark.parametrize("number", range(6))
def test_a_page_asks_of_other_models_what_its_key_says_and_nothing_else(pages, monkeypatch, number):
    expected = page_of(pages, number)
    name = pages.book.models[number]["model_id"]
    told, base = pages.beside(number), pages.book.models[number]["base_model_id"]
    alone = ModelPages(pages.book, SITE)
    alone.__dict__ |= {"held": {what: {name: of[name]} if name in of else {} for what, of in pages.held.items()}}
    alone.__dict__ |= {"bests": {name: pages.bests[name]} if name in pages.bests else {}}
    alone.__dict__ |= {"calculator": pages.calculator, "leaders": {number: -1 if told["is_led"] else number}}
    alone.paths = {name: told["path"], base: told["base_path"]}
    alone.sizes = Counter({told["path"].partition("/")[0]: room.LISTED if told["is_organised"] else 0})
    alone.commands.repositories = lambda _number: told["repositories"]
    alone.relatives = alone.commands.relatives = Nobody()
    for what in ("files", "made_of", "relatives"):
        setattr(alone, f"_{what}", lambda *_, what=what: told[what])
    alone.siblings.smaller = lambda _number: told["smaller"]
    only = Only(pages.book.models, number)
    alone.commands.models = only
    monkeypatch.setitem(pages.book.tables, "model", only)
    monkeypatch.setattr(pages.book, "array", array("f", pages.book.model_bytes(number)))
    monkeypatch.setattr(pages.book, "rows_of", ())
    monkeypatch.setattr(pages.book, "first", number)
    assert page_of(alone, number) == expected


def contents_of(models) -> dict[str, str]:
    return {model["model_id"]: f"as {model['model_id']}" for model in models}


def written(tmp_path, name, packs, change=None) -> tuple[dict[str, bytes], list[int]]:
    """The files of all models' pages, and which of them were rendered."""
    book = read(built())
    if change:
        change(book)
    pages, rendered = ModelPages(book, SITE, packs), []
    if packs:
        found = kept.Kept(contents_of(book.models), "the tiny tables", packs)
        pages.__dict__["kept"] = found
    real = pages.render
    pages.render = lambda number: rendered.append(number) or real(number)
    site = tmp_path / name
    list(crew.Crew(pages, 0).write(SHELL, site, lambda: None, KeptPages(pages)))
    files = {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    return files, rendered


@pytest.mark.full
def test_what_is_kept_is_what_is_rendered_and_a_changed_model_changes_the_pages_that_name_it(tmp_path):
    packs = Packs(tmp_path / "packs")
    anew, everything = written(tmp_path, "anew", None)
    assert everything == [0, 1, 2, 3, 4, 5]
    assert written(tmp_path, "first", packs) == (anew, everything)
    assert written(tmp_path, "again", Packs(tmp_path / "packs")) == (anew, [])

    def renamed(book) -> None:
        book.models[1]["license"] = "of its own"

    after, rendered = written(tmp_path, "after", Packs(tmp_path / "packs"), renamed)
    assert rendered == [1]
    assert after == written(tmp_path, "after-anew", None, renamed)[0] != anew


@pytest.mark.full
def test_a_page_whose_pack_was_damaged_meanwhile_is_rendered_anew(tmp_path, monkeypatch):
    packs = Packs(tmp_path / "packs")
    anew, everything = written(tmp_path, "first", packs)
    real = kept_pages.KeptPages.taken

    def harmed(self):
        for pack in packs.folder.iterdir():
            path = pack / f"{kept_pages.PAGE}.parquet"
            if path.exists():
                content = bytearray(path.read_bytes())
                content[len(content) // 2] ^= 1
                path.write_bytes(content)
                assert (pack / FILE).exists()
        return real(self)

    monkeypatch.setattr(kept_pages.KeptPages, "taken", harmed)
    assert written(tmp_path, "again", Packs(tmp_path / "packs")) == (anew, everything)


@pytest.mark.full
def test_processes_write_pages_where_many_are_left_and_not_for_a_few(tmp_path, monkeypatch):
    packs, hired = Packs(tmp_path / "packs"), []
    monkeypatch.setattr(crew.Crew, "_begin", lambda self: hired.append(self.processes))
    for name in ("one", "two"):
        pages = ModelPages(read(built()), SITE, packs)
        pages.__dict__["kept"] = kept.Kept(contents_of(pages.book.models), "the tiny tables", packs)
        known = KeptPages(pages)
        known.there = known.there - {0}
        found = list(crew.Crew(pages, 2).write(SHELL, tmp_path / name, lambda: None, known))
        assert sorted(found) == list(range(len(pages.book.models)))
        assert hired == [2], "nothing is kept when the first begins"


def test_what_other_processes_are_handed_is_packed_before_anything_can_change_it(tmp_path, monkeypatch):
    """A pool packs what it is handed in a thread of its own, while this process goes on reading packs."""
    packs, handed = Packs(tmp_path / "packs"), []

    class Pool:
        def submit(self, function, *told):
            handed.append((function, told))
            return Future()

    monkeypatch.setattr(crew.Crew, "_begin", lambda self: setattr(self, "pool", Pool()))
    pages = ModelPages(read(built()), SITE, packs)
    pages.__dict__["kept"] = kept.Kept(contents_of(pages.book.models), "the tiny tables", packs)
    known = KeptPages(pages)
    packs.put_files(["a key"], {"file": b"content"})
    crew.Crew(pages, 2).write(SHELL, tmp_path, lambda: None, known)
    assert [(function, [type(part) for part in told]) for function, told in handed] == [(crew._write, [bytes])]
    other = pickle.loads(handed[0][1][0])[-2]
    assert (other.folder, other.used, other.places(["a key"])) == (packs.folder, set(), packs.places(["a key"]))


def test_what_is_read_of_a_model_alone_is_what_is_read_of_it_among_all(pages):
    names = [model["model_id"] for model in pages.book.models]
    among, alone = ModelPages(read(built()), SITE), ModelPages(read(built()), SITE)
    among.ask(names)
    rows = alone.held["formulas"]
    for name in names:
        for what in (*HELD, "formulas"):
            assert alone.held[what].get(name) == among.held[what].get(name), (name, what)
        assert (name in rows.shaped) == has_shape(rows.get(name))
    assert dict(among.held["points"]) == {n: told for n in names if (told := alone.held["points"].get(n)) is not None}
    assert "nobody/none" not in alone.held["points"] and rows.get("nobody/none") is None


def test_what_is_published_as_another_is_no_quantisation_of_it():
    """DeepSeek-V3, published in fp8, was a quantisation of DeepSeek-V3-0324, which came after it and is published so too."""
    pages = ModelPages(read(built()), SITE)
    first, other = pages.book.models[0], pages.book.models[1]
    pages.__dict__["leaders"] = [0, 0, *range(2, len(pages.book.models))]
    other["base_model_id"] = None
    first["stored_format"] = other["stored_format"] = "fp8"
    assert (pages._made_of(1)["said"], pages.own_format(1)) == ("Sibling of", ())
    first["stored_format"] = None
    assert (pages._made_of(1)["said"], pages.own_format(1)) == ("Quantisation (fp8) of", ("stored", "stored", "fp8"))
