"""The cards of a data set and a Space: a head that the Hub reads, the dictionary for people, and the release that they are of."""

from __future__ import annotations

import yaml

from pipeline.book.schema import PUBLISHED
from pipeline.press import manifest
from pipeline.release import build, cards
from tests.fake_hub.cards import check_card


def head_of(card):
    return yaml.safe_load(card.split("---\n")[1])


def test_a_data_set_has_a_configuration_for_each_table_that_has_rows(built):
    card = cards.of_dataset(build.whole(built), "acme/almanac")
    head = head_of(card)
    assert head["configs"] == [
        {"config_name": "gpu", "data_files": "gpu.parquet"}
    ]  # model has no file here, correction no rows
    assert (head["license"], head["size_categories"]) == ("cc-by-4.0", "n<1K")
    check_card(card, "dataset")


def test_the_first_table_that_people_see_is_that_of_models(built):
    whole = build.whole(built)
    (built / "tables" / "model.parquet").write_text("PAR1\0model")
    head = head_of(cards.of_dataset(whole, "acme/almanac"))
    assert head["configs"][0] == {"config_name": "model", "data_files": "model.parquet", "default": True}


def test_the_body_is_the_dictionary_the_changes_and_how_to_ask(built):
    card = cards.of_dataset(build.whole(built), "acme/almanac")
    for column in PUBLISHED["gpu"].columns:
        assert f"| `{column.name}` | {column.type} |" in card
    assert "This is the first release" in card
    assert (
        "ATTACH 'https://huggingface.co/datasets/acme/almanac/resolve/2026-01-02-aaaaaaaaaaaa/almanac.duckdb'" in card
    )


def test_the_size_is_one_of_the_words_of_the_hub():
    assert [cards._size(rows) for rows in (0, 999, 1000, 10**6, 147_106_752, 10**13)] == [
        "n<1K", "n<1K", "1K<n<10K", "1M<n<10M", "100M<n<1B", "1B<n<10B",
    ]  # fmt: skip


def test_a_space_is_static_and_names_the_data_set_that_its_links_lead_to(built):
    card = cards.of_space(build.whole(built))
    head = head_of(card)
    assert (head["sdk"], head["app_file"]) == ("static", "index.html") and "datasets" not in head
    check_card(card, "space")
    about = {"tables_url": "https://huggingface.co/datasets/acme/almanac/resolve/v/"}
    site = built / "site"
    (site / "manifest.json").unlink()
    manifest.write_site(site, built / "tables", "s", about)
    assert head_of(cards.of_space(build.whole(built)))["datasets"] == ["acme/almanac"]
