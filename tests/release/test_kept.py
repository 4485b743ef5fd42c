"""The last release, wherever it is: in a folder, or published at an address, which may not answer; and how two differ, in words."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pipeline.__main__ import main
from pipeline.base.failures import Failure
from pipeline.cli import releases
from pipeline.press import digest
from pipeline.release import diff, kept, notes
from tests.press.test_changes import BASIS, BEFORE, GIB
from tests.press.test_gates import MEASURES, PROMISE

NOW = replace(
    BEFORE,
    numbers={"a/One": {"inference bf16 vllm": (18 * GIB, 0.05)}},
    basis=BASIS | {"constants": {"gap": 0.2}, "data_version": "2026-01-09-def"},
)


@contextmanager
def published(folder, fault=None):
    """A host that serves a folder, or answers otherwise where `fault` says so."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(folder))

        def log_message(self, *_):
            pass

        def do_GET(self):
            if not (fault and fault(self)):
                super().do_GET()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(5)


@pytest.fixture
def site(tmp_path):
    digest.write(BEFORE, tmp_path / "site" / "tables")
    return tmp_path / "site"


def test_a_release_is_found_by_what_people_call_it(site):
    assert (
        kept.digest_of(str(site)) == kept.digest_of(str(site / "tables")) == kept.digest_of(str(site.parent)) == BEFORE
    )
    with published(site) as address:
        assert (
            kept.digest_of(address)
            == kept.digest_of(f"{address}tables/")
            == kept.digest_of(address.rstrip("/"))
            == BEFORE
        )
    with pytest.raises(Failure, match="holds no digest"):
        kept.digest_of(str(site.parent / "none"))


def test_the_last_release_is_taken_from_where_it_is_published(site, tmp_path):
    with published(site) as address:
        assert "The last release is 2026-01-02-abc" in kept.keep_last(address, tmp_path / "release")
    assert digest.last(tmp_path / "release") == BEFORE


def test_where_nothing_is_published_what_is_kept_stays(tmp_path):
    (tmp_path / "empty").mkdir()
    with published(tmp_path / "empty") as address:
        assert "this will be the first release" in kept.keep_last(address, tmp_path / "release")
        digest.keep(BEFORE, tmp_path / "release")
        assert "2026-01-02-abc is kept to compare with" in kept.keep_last(address, tmp_path / "release")
    assert digest.last(tmp_path / "release") == BEFORE


def _short(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "99999")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True
    return True


def _says(status, body=b""):
    def fault(handler):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    return fault


@pytest.mark.parametrize(
    "fault",
    [_says(500), _says(403), _says(200, b"<html>"), _says(200, b"[]"), _says(200, b"\xff\xfe"), _short],
    ids=["500", "403", "page", "list", "bytes", "cut off"],
)
def test_a_host_that_does_not_say_what_is_published_is_no_first_release(site, tmp_path, fault):
    """A gate that compares with nothing lets everything through."""
    digest.keep(BEFORE, tmp_path / "release")
    with published(site, fault) as address, pytest.raises(Failure):
        kept.keep_last(address, tmp_path / "release")
    with pytest.raises(Failure, match="does not answer"):
        kept.keep_last(address, tmp_path / "release")  # nobody is there any more
    assert digest.last(tmp_path / "release") == BEFORE


def test_half_a_digest_is_told(site, tmp_path):
    (site / "tables" / "digest.csv").unlink()
    with published(site) as address, pytest.raises(Failure, match="a release that is being replaced"):
        kept.keep_last(address, tmp_path / "release")


@pytest.mark.parametrize("address", ["ftp://x.example/", "file:///etc/passwd"])
def test_what_is_no_address_of_a_site_is_not_asked(address):
    with pytest.raises(Failure, match="no address that can be asked"):
        kept.digest_of(address)


def test_two_releases_in_words_and_as_tables(site, tmp_path, capsys):
    digest.write(NOW, tmp_path / "new")
    assert main(["diff", str(site), str(tmp_path / "new"), "--table", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "From 2026-01-02-abc to 2026-01-09-def: 2 models in both." in told
    assert "1 numbers changed, 1 of them by more than 1 %; 1 verdicts on one card changed." in told
    assert "- constant: 1 model, 1 number (1 by more than 1 %), 1 verdict: constant: gap 0.1 → 0.2" in told
    assert "- fits → no: 1" in told and "a/One: inference bf16 vllm 9.00 → 18.00 GiB (+100.0 %), constant" in told
    assert (tmp_path / "out" / "changes.csv").read_text().splitlines()[
        1
    ] == f"a/One,inference bf16 vllm,{9 * GIB},{18 * GIB},1.0,constant"
    assert (tmp_path / "out" / "changed_verdicts.csv").read_text().splitlines()[
        1
    ] == "a/One,inference bf16 vllm,small,fits,no,constant"
    assert json.loads((tmp_path / "out" / "changes.json").read_text())["verdicts"] == {"fits → no": 1}
    assert (
        main(["diff", str(site), str(tmp_path / "new"), "--table", str(tmp_path / "out")]) == 1
    )  # nobody's files are written over


def test_models_and_cards_that_come_and_go_are_told():
    after = replace(NOW, models={"b/Two": BEFORE.models["b/Two"], "c/New\x1b[31m": BEFORE.models["b/Two"]}, numbers={})
    text = diff.text(
        diff.changes.compare(BEFORE, replace(after, basis=after.basis | {"capacities": {"small": 1, "new": 2}}))
    )
    assert "- gone: 1 (a/One)" in text and "- new: new" in text and "- gone: large" in text
    assert "\x1b" not in text


def test_a_first_release_has_a_note_too():
    assert list(notes.lines({"since": None})) == ["This is the first release: there is none before it to compare with."]


@pytest.fixture
def gated(tmp_path, monkeypatch):
    """A build in a folder of its own, and a last release that had more."""
    now = replace(NOW, basis=NOW.basis | {"measures": MEASURES, "promise": PROMISE})
    more = {**MEASURES, "rows": MEASURES["rows"] | {"gpu": 200.0}}
    digest.write(now, tmp_path / "build" / "tables")
    (tmp_path / "build" / "tables" / "changes.json").write_text('{"since": null}')
    digest.keep(replace(now, basis=now.basis | {"measures": more}), tmp_path / "release")
    monkeypatch.setattr(releases, "BUILD", tmp_path / "build")
    monkeypatch.setattr(releases, "ROOT", tmp_path)
    monkeypatch.setattr(releases, "RELEASE", "release")
    return tmp_path


@pytest.mark.parametrize("command", ["gates", "release"])
def test_a_build_that_a_gate_refuses_is_not_kept_as_released(gated, capsys, command):
    before = digest.last(gated / "release")
    assert main([command]) == 1
    said = capsys.readouterr().err
    assert "fell from 200 to 156" in said and "--accept" in said
    assert digest.last(gated / "release") == before


def test_what_was_accepted_with_a_reason_is(gated, capsys):
    (gated / "build" / "tables" / "changes.json").write_text(
        '{"since": null, "accepted": {"reason": "sold out", "gates": ["x"]}}'
    )
    assert main(["release"]) == 0
    assert "refused by 1 gates, accepted: sold out" in capsys.readouterr().out
    assert digest.last(gated / "release").basis["measures"] == MEASURES
    assert main(["notes"]) == 0 and "The reason: sold out" in capsys.readouterr().out
