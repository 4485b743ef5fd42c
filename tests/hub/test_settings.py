"""What the book says to crawl."""

from __future__ import annotations

import pytest

from pipeline.hub.select import queries
from pipeline.hub.settings import Settings, SettingsError


def test_the_almanac_lists_what_it_covers():
    settings = Settings()
    asked = queries(settings)
    assert sum(settings.shares().values()) == pytest.approx(1)
    assert sum(most for _, order, most in asked if order == "downloads") >= settings.model_count
    assert len(settings.included()) == len(set(settings.included())) > 100
    assert settings.excluded().reason("hf-internal-testing/tiny-random-LlamaForCausalLM")
    assert settings.excluded().reason("Qwen/Qwen3-8B") is None
    assert settings.limits(False) == {"api": 500, "file": 3000}
    assert settings.limits(True) == {"api": 1000, "file": 5000}


@pytest.mark.parametrize("line", ["org/a,kind,", "org/a,,why", "../a,kind,why", "<b>,kind,why"])
def test_a_list_that_is_not_whole_names_its_file(tmp_path, line):
    (tmp_path / "include.csv").write_text(f"model_id,kind,reason\n{line}\n")
    with pytest.raises(SettingsError, match=r"include\.csv"):
        Settings(lists=tmp_path).included()
