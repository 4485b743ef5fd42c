"""Names that break paths: every model has a page that any file system and any static host holds, and every link finds it."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote, urljoin

import pytest
from test_render import SITE, Page

from pipeline.hub.record import is_model_id
from pipeline.render import paths, render, words
from pipeline.render.pages import redirects
from tests.render import tiny_models, tiny_tables

ODD = (
    "evil/index.html",
    "index.html/Odd",
    "Index.HTML/odd",
    "con/nul",
    "AUX/COM1.txt",
    "trailing/dot.",
    "assets/assets",
    "_o/_m",
    "acme/ALPHA-7b-instruct",
    "ACME/Alpha-7B-INSTRUCT",
)
DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name in ODD:
            patch.setitem(tiny_models.MODELS, name, (7.0, "text-generation", 5, "exact"))
        tables = tiny_tables.build(tmp_path_factory.mktemp("tables"))
        folder = tmp_path_factory.mktemp("site") / "site"
        render(tables, folder, site_url=SITE)
    return folder


def test_the_hub_could_have_these_names():
    assert all(map(is_model_id, ODD))


@pytest.mark.full
def test_every_odd_name_has_a_page_and_everything_leads_to_it(site):
    models = json.loads((site / "data" / "models.json").read_text(encoding="utf-8"))
    folders = {name: models["paths"].get(str(i), name) for i, name in enumerate(models["id"])}
    search = json.loads((site / "search/index.json").read_text(encoding="utf-8"))
    found = {name: search["paths"].get(str(i), name) for i, name in enumerate(search["models"])}
    listed = Page((site / "models" / "index.html").read_text(encoding="utf-8")).links
    addresses = (site / "sitemap.xml").read_text(encoding="utf-8")
    for name in ODD:
        page = site / "models" / folders[name] / "index.html"
        assert Page(page.read_text(encoding="utf-8")).canonical == f"{SITE}models/{folders[name]}/"
        assert found[name] == folders[name]
        assert f"{folders[name]}/" in listed
        assert f"<loc>{SITE}models/{folders[name]}/</loc>" in addresses


@pytest.mark.full
def test_every_link_to_a_model_leads_to_a_page(site):
    for file in (site / "models").rglob("index.html"):
        here = f"{SITE}{file.parent.relative_to(site).as_posix()}/"
        for link in Page(file.read_text(encoding="utf-8")).links:
            target = urljoin(here, link).partition("#")[0].partition("?")[0]
            if target.startswith(f"{SITE}models/") and target.endswith("/"):
                assert (site / unquote(target.removeprefix(SITE)) / "index.html").is_file(), (file, link)


@pytest.mark.full
def test_no_two_files_of_the_site_differ_in_case_alone_and_windows_can_hold_them_all(site):
    seen = {}
    for file in site.rglob("*"):
        name = file.relative_to(site).as_posix()
        assert seen.setdefault(name.lower(), name) == name
        for part in file.relative_to(site).parts:
            assert not DEVICE.match(part) and not part.endswith((".", " ")) and not re.search('[<>:"|?*]', part)
        if file.is_dir():
            assert not re.search(r"(?i)\.html?$", file.name)


@pytest.mark.parametrize(
    ("identifier", "path"),
    [
        ("evil/index.html", "evil/index~2Ehtml"),
        ("Index.HTM/x", "Index~2EHTM/x"),
        ("con/nul.tar.gz", "~63on/~6Eul.tar.gz"),
        ("console/com10", "console/com10"),
        ("a/b..", "a/b.~2E"),
        ("a/.git", "a/~2Egit"),
        ("a\ud800/b", "a~ED~A0~80/b"),
    ],
)
def test_only_what_is_mistaken_for_something_else_is_escaped(identifier, path):
    assert words.slug(identifier) == path


def test_a_page_at_an_old_address_is_never_written_over_a_models_own_where_case_does_not_count(tmp_path):
    listed = {"New/Name": "New/Name", "con/x": "~63on/x"}
    moved = {"new/name": "New/Name", "old/index.html": "con/x", "OLD/Index.html": "con/x"}
    assert "new/name" not in redirects.write(tmp_path, SITE, listed, moved)
    page = (tmp_path / "models/OLD/Index~2Ehtml/index.html").read_text(encoding="utf-8")
    assert f"{SITE}models/~63on/x/" in page
    assert redirects.write_gone(tmp_path, SITE, listed, ["NEW/name", "gone/nul"]) == ["gone/nul"]
    assert (tmp_path / "models/gone/~6Eul/index.html").is_file()


def test_a_folder_of_two_spellings_is_one():
    rows = [{"model_id": name, "created_at": None} for name in (*ODD, "Acme/Beta")]
    folders = {path.split("/")[0] for path in paths.assign(rows).values()}
    assert len({folder.lower() for folder in folders}) == len(folders)
