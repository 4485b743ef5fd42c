"""MkDocs wipes what lies in its output folder, and aborts if the docs lie inside it: the sources must stay out of its way."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):
    """Reads `!ENV [NAME, default]` as its default."""


_Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node)[-1])
CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=_Loader)


def test_output_lies_under_build_and_sources_do_not():
    output, docs = ROOT / CONFIG["site_dir"], ROOT / CONFIG["docs_dir"]
    assert output.is_relative_to(ROOT / "build") and output != ROOT / "build"
    for kept in (docs, ROOT / CONFIG["theme"]["custom_dir"], ROOT / "tables", ROOT / "pipeline"):
        assert kept.exists()
        assert not kept.is_relative_to(output) and not output.is_relative_to(kept)


def test_output_is_neither_the_tables_nor_the_site():
    assert Path(CONFIG["site_dir"]).name not in ("tables", "site")


def test_no_file_comes_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert not CONFIG.get("extra_javascript") and not CONFIG.get("extra_css")


def test_every_page_of_the_navigation_exists():
    def pages(entry):
        if isinstance(entry, str):
            yield entry
        else:
            for item in entry.values() if isinstance(entry, dict) else entry:
                yield from pages(item)

    for page in pages(CONFIG["nav"]):
        assert (ROOT / CONFIG["docs_dir"] / page).is_file(), page
