"""The site of a few real models, built by the book's own formulas: once for all files here."""

import dataclasses
import functools
import threading

import pytest

from pipeline.base.caches import cache_folder
from pipeline.book.packs import Packs
from pipeline.press import blank, build
from pipeline.render import render
from tests.browser.conftest import _Quiet, _Server
from tests.browser.real.models import MODELS
from tests.once import bundled_snapshot, once


def built(folder):
    whole = bundled_snapshot()
    some = dataclasses.replace(
        whole,
        records=tuple(record for record in whole.records if record.model_id in MODELS),
        rejected=(),
    )
    (folder / "tables").mkdir()
    # (formulas are not read and written anew: other tests hold that a build makes the same of what it keeps)
    packs = Packs(folder / "packs")
    packs.put_files([blank.pack_key()], {blank.KEPT: blank.kept(cache_folder()).read_bytes()})
    build.build_tables(folder / "tables", some, packs=packs)
    render(folder / "tables", folder / "site", site_url="https://almanac.example/")


@pytest.fixture(scope="session")
def folder():
    return once("real-site", built)


@pytest.fixture(scope="session")
def site_url(folder):
    server = _Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder / "site")))
    url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()
