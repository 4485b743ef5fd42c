"""What a site says of its own address and of files that lie elsewhere; and that nothing is in it twice or for nobody."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from urllib.parse import unquote, urljoin, urlsplit

import duckdb
import pytest

from pipeline.__main__ import main
from pipeline.book.schema import PUBLISHED
from pipeline.press import hosting, publish
from pipeline.render import addresses, kept_pages, render, words
from pipeline.render.data import shapes
from pipeline.render.data.tables import read
from pipeline.render.pages import redirects
from pipeline.render.pages.models import ModelPages
from pipeline.render.shell import Shell
from tests.render.test_render import Page
from tests.render.tiny_models import GPUS, MODELS, UNKNOWN
from tests.render.tiny_tables import built

LARGE = "https://files.example/releases/tables/"
LIMIT = 20_000  # bytes of a file, so that some tables of a tiny almanac are too large


@pytest.fixture(scope="module")
def tables():
    return built()


def rendered(tables, folder, **environment):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SITE_URL", "REPO_URL", "TABLES_URL", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(addresses, "largest_file", lambda: LIMIT)
        summary = render(tables, folder)
        publish.write_far(tables, folder, addresses.known())
    assert summary["models"] == len(MODELS) and summary["gpus"] == len(GPUS)
    return folder


@pytest.fixture(scope="module")
def nowhere(tables, tmp_path_factory):
    """A site of which nobody has said where it will live."""
    return rendered(tables, tmp_path_factory.mktemp("nowhere") / "site")


@pytest.fixture(scope="module")
def hosted(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hosted") / "site"
    return rendered(tables, folder, SITE_URL="https://almanac.example/deep", TABLES_URL=LARGE)


def large(tables):
    return {file.name for file in tables.iterdir() if file.stat().st_size > LIMIT}


def pages(site):
    return {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}


def dead(site, root):
    """Links of our own that lead nowhere, and those into the root that a page host would not find."""
    broken = set()
    for file, page in pages(site).items():
        here = urljoin(root, file.relative_to(site).as_posix().removesuffix("index.html"))
        for link in page.links + page.resources:
            address = urlsplit(urljoin(here, link))
            if address.netloc == urlsplit(root).netloc:
                target = site / unquote(address.path).removeprefix(urlsplit(root).path)
                if not (target / "index.html" if target.is_dir() else target).is_file():
                    broken.add(link)
    return broken


@pytest.mark.full
def test_a_site_without_an_address_names_none(nowhere):
    assert not (nowhere / "sitemap.xml").exists() and not (nowhere / "sitemap.xml.gz").exists()
    for file in nowhere.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert 'rel="canonical"' not in text and "og:url" not in text and "og:image" not in text, file
        assert "127.0.0.1" not in text and "localhost" not in text, file
    page = (nowhere / "models" / "acme" / "Alpha-7B-Instruct" / "index.html").read_text(encoding="utf-8")
    assert '<meta property="og:title" content="acme/Alpha-7B-Instruct">' in page
    assert "[![GPU memory]" not in page and 'src="../../../api/v1/badges/memory/12-gb-in-4-bit.svg"' in page


def test_a_site_with_an_address_names_it_everywhere(hosted):
    root = "https://almanac.example/deep/"
    listed = set(re.findall(r"<loc>(.*?)</loc>", (hosted / "sitemap.xml").read_text(encoding="utf-8")))
    for file in hosted.rglob("index.html"):
        own = root + file.relative_to(hosted).as_posix().removesuffix("index.html")
        text = file.read_text(encoding="utf-8")
        assert f'<link rel="canonical" href="{own.replace("&", "&amp;")}">' in text, file
        assert f'<meta property="og:url" content="{own.replace("&", "&amp;")}">' in text, file
        assert own.replace("&", "&amp;") in listed
    assert len(listed) == sum(1 for _ in hosted.rglob("index.html"))


@pytest.mark.parametrize(
    "text", ["almanac.example", "ftp://almanac.example/", "https://", "https://a b/", 'https://a"/', "https://a/?x"]
)
def test_what_is_no_address_is_said_before_anything_is_written(text, monkeypatch, tables, tmp_path):
    monkeypatch.setenv("SITE_URL", text)
    with pytest.raises(ValueError, match=r"SITE_URL is .*, which is no address"):
        render(tables, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_links_to_renamed_models_need_no_address(tmp_path):
    redirects.write(tmp_path, "", {"b/New": "b/New"}, {"a/Old": "b/New"})
    page = (tmp_path / "models" / "a" / "Old" / "index.html").read_text(encoding="utf-8")
    assert 'url=../../../models/b/New/"' in page and "canonical" not in page
    redirects.write(tmp_path, "https://x.example/", {"b/New": "b/New"}, {"a/Older": "b/New"})
    page = (tmp_path / "models" / "a" / "Older" / "index.html").read_text(encoding="utf-8")
    assert '<link rel="canonical" href="https://x.example/models/b/New/">' in page


def test_tables_too_large_for_a_page_host_lie_beside_the_site_and_the_data_page_leads_there(hosted, tables):
    beside = large(tables)
    assert {"almanac.duckdb", "footprint.parquet"} <= beside
    in_site = {f.name for f in (hosted / "tables").iterdir()} - {addresses.REMOTE}
    assert in_site == {f.name for f in tables.iterdir()} - beside
    page = Page((hosted / "downloads" / "index.html").read_text(encoding="utf-8"))
    assert {link.removeprefix(LARGE) for link in page.links if link.startswith(LARGE)} >= beside
    for name in {f.name for f in tables.iterdir() if f.suffix == ".parquet"} - beside:
        assert f"../tables/{name}" in page.links
    assert dead(hosted, "https://almanac.example/deep/") == set()


def test_without_an_address_for_them_no_link_is_dead_and_the_page_says_where_they_are(nowhere, tables):
    assert dead(nowhere, "http://site.example/") == set()
    page = (nowhere / "downloads" / "index.html").read_text(encoding="utf-8")
    assert "build/tables" in page and "almanac.duckdb" in page
    assert not any(link.endswith("almanac.duckdb") for link in Page(page).links)


def test_who_joins_tables_over_a_network_is_led_to_where_each_of_them_lies(hosted, nowhere, tables):
    with duckdb.connect(str(hosted / "tables" / addresses.REMOTE), read_only=True) as connection:
        names = [
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        led = {name: connection.execute("SELECT file_of(?)", [name]).fetchall()[0][0] for name in names}
        assert "http" not in str(connection.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall())
    beside = large(tables)
    here = "https://almanac.example/deep/tables/"
    files = [file.name for file in tables.glob("*.parquet") if file.stem in PUBLISHED]
    assert led == {name.partition(".")[0]: f"{LARGE if name in beside else here}{name}" for name in files}
    assert {"footprint.parquet", "gpu.parquet"} <= {*files} and "footprint.parquet" in beside
    page = (hosted / "downloads" / "index.html").read_text(encoding="utf-8")
    assert f"{here}{addresses.REMOTE}" in page and f"../tables/{addresses.REMOTE}" in Page(page).links
    assert "It leaves out" not in page
    # without an address there is nothing to lead to
    assert not (nowhere / "tables" / addresses.REMOTE).exists()
    assert "SITE_URL" in (nowhere / "downloads" / "index.html").read_text(encoding="utf-8")


def test_machines_are_told_addresses_that_are_whole(hosted, nowhere):
    def offered(site):
        text = (site / "downloads" / "index.html").read_text(encoding="utf-8")
        found = json.loads(re.search(r'<script type="application/ld\+json">(.*?)</script>', text, re.S)[1])
        return [entry["contentUrl"] for entry in found["distribution"]]

    assert f"{LARGE}almanac.duckdb" in offered(hosted)
    assert "https://almanac.example/deep/tables/gpu.parquet" in offered(hosted)
    assert all(url.startswith("https://") for url in offered(hosted))
    assert offered(nowhere) == []


@pytest.mark.parametrize(
    ("environment", "where"),
    [
        ({}, ""),
        ({"GITHUB_REPOSITORY": "a/b"}, "https://github.com/a/b/releases/download/data-2026-01-02-abc/"),
        (
            {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/b"},
            "https://git.example/a/b/releases/download/data-2026-01-02-abc/",
        ),
        ({"REPO_URL": "https://github.com/a/b"}, "https://github.com/a/b/releases/download/data-2026-01-02-abc/"),
        ({"REPO_URL": "https://gitlab.example/a/b"}, ""),  # how its releases are addressed is not known
        ({"REPO_URL": "https://github.com/a/b", "TABLES_URL": LARGE[:-1]}, LARGE),
    ],
)
def test_large_tables_are_where_one_says_or_with_the_release_of_a_repository_on_github(monkeypatch, environment, where):
    for name in ("REPO_URL", "TABLES_URL", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert addresses.known().of_release("2026-01-02-abc").large_tables == where


def test_a_page_leads_to_the_tables_that_it_is_made_from_and_to_no_others(monkeypatch):
    monkeypatch.setenv("TABLES_URL", "https://host.example/{data_version}/tables")
    where = addresses.known()
    assert where.of_release("2026-01-02-abc").large_tables == "https://host.example/2026-01-02-abc/tables/"
    assert where.of_release("").large_tables == ""  # of tables that name no version nobody knows where they are


def test_a_model_of_which_nothing_is_known_has_a_page_and_nothing_beside_it(nowhere):
    folder = nowhere / "models" / words.slug(UNKNOWN)
    assert [file.name for file in folder.iterdir()] == ["index.html"]
    page = (folder / "index.html").read_text(encoding="utf-8")
    for word in ("badges/", "api/v1/models/", "data-shape"):
        assert word not in page
    assert not (nowhere / "api" / "v1" / "models" / f"{words.slug(UNKNOWN)}.json").exists()
    for model in MODELS:
        assert [file.name for file in (nowhere / "models" / words.slug(model)).iterdir()] == ["index.html"]
        assert (nowhere / "api" / "v1" / "models" / f"{words.slug(model)}.json").exists() == (model != UNKNOWN)


def test_shapes_are_named_by_what_they_hold_and_lie_there_once(nowhere):
    files = [shapes.unpacked(file.read_bytes()) for file in (nowhere / "data" / "shapes").iterdir()]
    held = {name: zlib.decompress(content) for some in files for name, content in some.items()}
    assert len(held) == sum(map(len, files))
    assert all(hashlib.sha256(content).hexdigest().startswith(name) for name, content in held.items())
    asked = {m for file in nowhere.rglob("*.html") for m in re.findall(r'data-shape="(\w+)"', file.read_text("utf-8"))}
    assert asked == held.keys()


@pytest.mark.full
def test_models_with_the_same_numbers_share_a_file(tables, tmp_path):
    """As a model and its fine-tunes have them."""
    pages = ModelPages(read(tables))
    book = pages.book
    step = len(book.scenarios) * book.width
    book.array[2 * step : 3 * step] = book.array[step : 2 * step]
    one, other = (book.models[number]["model_id"] for number in (1, 2))
    for name in ("formulas", "points", "lines"):
        pages.held[name][other] = pages.held[name][one]
    for number in (1, 2):
        kept_pages.write(pages, Shell.of("ALMANAC-TITLE"), tmp_path, number, kept_pages.page_of(pages, number))
    assert pages.shape(1).name == pages.shape(2).name != pages.shape(0).name
    assert [file.stem for file in (tmp_path / "data" / "shapes").iterdir()] == [pages.shape(1).name]


@pytest.fixture
def small(tmp_path):
    site = tmp_path / "site"
    (site / "data").mkdir(parents=True)
    (site / "index.html").write_bytes(b"x" * 10)
    (site / "data" / "a.bin").write_bytes(b"x" * 100)
    return site


def limits(monkeypatch, **most):
    rows = [
        {"host": "A Host", "of": "site", "what": what, "most": str(number), "source": "https://host.example/limits"}
        for what, number in most.items()
    ]
    monkeypatch.setattr(hosting, "limits", lambda: rows)


def test_a_site_that_every_host_takes_passes(small, monkeypatch, capsys):
    limits(monkeypatch, site_bytes=110, file_count=2, file_bytes=100)
    assert main(["hosting", "--site", str(small)]) == 0
    assert "110 bytes in 2 files, the largest 100 bytes (data/a.bin)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("most", "said"),
    [
        ({"site_bytes": 109}, "A Host takes 109 bytes in all, the site has 110: https://host.example/limits"),
        ({"file_count": 1}, "A Host takes 1 files, the site has 2: https://host.example/limits"),
        (
            {"file_bytes": 99},
            "A Host takes 99 bytes in one file, the site has 100 (data/a.bin): https://host.example/limits",
        ),
    ],
)
def test_a_site_that_is_too_large_is_refused_with_the_limit_and_its_source(small, monkeypatch, capsys, most, said):
    limits(monkeypatch, **most)
    assert main(["hosting", "--site", str(small)]) == 1
    assert f"error: {said}\n" == capsys.readouterr().err


def test_a_host_can_be_asked_alone_and_a_release_is_held_to_its_own_limits(small, monkeypatch, capsys, tmp_path):
    def row(host, of, what, most):
        return {"host": host, "of": of, "what": what, "most": str(most), "source": "https://x.example"}

    rows = [
        row("Pages", "site", "site_bytes", 109),
        row("Flat", "site", "folder_entries", 1),
        row("Releases", "tables", "file_count", 1),
    ]
    monkeypatch.setattr(hosting, "limits", lambda: rows)
    assert main(["hosting", "--site", str(small), "--host", "Pages"]) == 1
    assert "Flat" not in capsys.readouterr().err
    assert main(["hosting", "--site", str(small), "--host", "Flat"]) == 1
    assert "1 entries in one folder, the site has 2" in capsys.readouterr().err
    assert main(["hosting", "--site", str(small), "--host", "Page"]) == 1
    assert "no host Page: Flat, Pages, Releases" in capsys.readouterr().err
    (tmp_path / "tables").mkdir()
    for name in ("gpu.csv", "manifest.json"):
        (tmp_path / "tables" / name).write_bytes(b"x")
    assert main(["hosting", "--site", str(small), "--host", "Releases"]) == 1
    assert "Releases takes 1 files, the tables have 2" in capsys.readouterr().err


def test_the_limits_are_those_of_the_hosts_and_each_has_a_source():
    rows = addresses.limits()
    assert {(row["what"], int(row["most"])) for row in rows if row["of"] == "site"} == {
        ("site_bytes", 10**9),
        ("file_count", 20_000),
        ("file_bytes", 25 * 2**20),
        ("file_count", 100_000),
        ("folder_entries", 10_000),
    }
    assert {row["of"] for row in rows} == {"site", "tables", "commit"}
    assert all(row["source"].startswith("https://") and row["host"] for row in rows)
    assert addresses.largest_file() == 25 * 2**20


def test_a_page_that_grew_is_refused(small, monkeypatch, capsys):
    limits(monkeypatch)
    page = small / "models" / "a" / "b" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_bytes(b"x" * 45_001)
    assert main(["hosting", "--site", str(small)]) == 1
    told = capsys.readouterr()
    assert "model pages may have 45,000 bytes each, models/a/b/index.html has 45,001" in told.err
    assert re.search(r"model pages +1 files +45,001 bytes", told.out)
    page.write_bytes(b"x" * 45_000)
    assert main(["hosting", "--site", str(small)]) == 0


def test_every_file_of_a_site_is_of_one_kind(nowhere):
    kinds = {kind.name: kind for kind in hosting.by_kind(nowhere)}
    assert sum(kind.file_count for kind in kinds.values()) == sum(1 for f in nowhere.rglob("*") if f.is_file())
    assert kinds["model pages"].file_count == len(MODELS) and kinds["shapes of models"].file_count == len(MODELS) - 1


def test_a_folder_without_a_site_is_no_small_site(tmp_path, capsys):
    assert main(["hosting", "--site", str(tmp_path)]) == 1
    assert "make publish" in capsys.readouterr().err
