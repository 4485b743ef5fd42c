"""The commands that release a build: what they say, what they refuse, and that no build is replaced while it is released."""

from __future__ import annotations

import pytest

from pipeline.__main__ import main
from pipeline.cli import releases
from pipeline.press import publish
from tests.fake_hub.commits import CommitHub
from tests.release.conftest import contents


@pytest.fixture
def ours(built, monkeypatch):
    monkeypatch.setattr(releases, "BUILD", built)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN_PATH", str(built / "none"))
    return built


def test_a_folder_is_brought_up_to_date_and_then_is_already(ours, tmp_path, capsys):
    assert main(["to-folder", str(tmp_path / "www")]) == 0
    assert "is 2026-01-02-aaaaaaaaaaaa: " in capsys.readouterr().out
    assert main(["to-folder", str(tmp_path / "www")]) == 0
    assert "is 2026-01-02-aaaaaaaaaaaa already" in capsys.readouterr().out


def test_what_a_github_release_is_made_of(ours, tmp_path, capsys):
    assert main(["assets", str(tmp_path / "release")]) == 0
    assert contents(tmp_path / "release" / "assets") == contents(ours / "tables")
    assert (tmp_path / "release" / "tag").read_text() == "data-2026-01-02-aaaaaaaaaaaa\n"
    assert main(["assets", str(tmp_path / "release")]) == 1
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["to-folder", "assets", "to-hub-dataset", "to-space"])
def test_no_build_is_replaced_while_it_is_released(ours, tmp_path, monkeypatch, capsys, command):
    monkeypatch.setattr("pipeline.cli.hub_targets.get_token_to_send", lambda _: "hf_x")
    with publish.alone(ours):
        assert (
            main([command, "acme/almanac" if "-" in command and "folder" not in command else str(tmp_path / "out")])
            == 1
        )
    assert "or a release of it, is running" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["to-hub-dataset", "to-space"])
def test_without_a_token_nothing_is_asked(ours, monkeypatch, capsys, command):
    monkeypatch.setattr("pipeline.cli.hub_targets.get_token_to_send", lambda _: None)
    assert main([command, "acme/almanac"]) == 1
    assert "no token: put one that may write into HF_TOKEN" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "kind"), [("to-hub-dataset", "dataset"), ("to-space", "space")])
def test_the_hub_is_brought_up_to_date_and_then_is_already(ours, monkeypatch, capsys, command, kind):
    monkeypatch.setenv("HF_TOKEN", "hf_write")
    with CommitHub().serving() as fake:
        # what HF_ENDPOINT sets before the library is read
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", fake.url)
        template = f"{fake.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        assert main([command, "acme/almanac"]) == 0
        said = capsys.readouterr().out
        assert "acme/almanac is 2026-01-02-aaaaaaaaaaaa: " in said and "in one commit" in said
        assert main([command, "acme/almanac"]) == 0
        assert "acme/almanac is 2026-01-02-aaaaaaaaaaaa already" in capsys.readouterr().out
        assert "README.md" in fake.repo(kind=kind).files
