"""A rendered site behind a loopback server, and a real browser that reports what no page may do."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import sync_playwright

from tests.conftest import NO_BROWSER
from tests.render.tiny_tables import built, rendered

# the shell is the same engine without windows: a page costs a third
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser(own: str = "") -> str:
    """Its path; `own` is where Playwright puts its own build. Where there is none the tests fail: only who has tried to install one in vain may leave them out, and CI never."""
    chosen = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    chosen = chosen or (own if Path(own).is_file() else None)
    if not chosen and os.environ.get("ALMANAC_BROWSER") == "none" and os.environ.get("CI", "") in ("", "0", "false"):
        pytest.skip(NO_BROWSER)
    if not chosen:
        pytest.fail(
            f"No browser: none of {', '.join(NAMES)} is on PATH and CHROMIUM is not set. "
            "Install one (`make test` does, or: apt-get install chromium) or name it: CHROMIUM=/path/to/chrome.",
            pytrace=False,
        )
    return chosen


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that closes a connection is no error."""


@pytest.fixture(scope="session")
def tiny():
    """The tables that the site is rendered from: their folder, and those that limits ask."""
    folder = built()
    return {"folder": folder} | {
        name: pl.read_parquet(folder / f"{name}.parquet").to_dicts() for name in ("gpu", "constant")
    }


@pytest.fixture(scope="session")
def site_url():
    server = _Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(rendered().parent)))
    url = f"http://127.0.0.1:{server.server_port}/{rendered().name}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(playwright.chromium.executable_path),
            args=["--no-sandbox", "--renderer-process-limit=1"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def visits(browser):
    """By site and by options (a phone, no scripts, dark) a visit that is never left, in which pages are opened: a process that stands and scripts that
    are compiled are two fifths of what a page costs. Who opens a page forgets what the one before left with the visitor."""
    visits = {}

    def visit(site_url, options):
        key = site_url, *sorted(options.items())
        if key not in visits:
            context = browser.new_context(**options)
            stays = context.new_page()
            stays.goto(site_url + "robots.txt")  # of the site's origin, and nothing runs in it
            visits[key] = context, stays
        return visits[key]

    yield visit
    for context, _stays in visits.values():
        context.close()


@pytest.fixture
def open_page(site_url, visits):
    """Opens a page of the site. At the end: no console error, no failed request, nothing asked of another origin."""
    opened, faults = [], []

    def open_(path="", width=1280, height=900, unfold=True, **options):
        """`unfold` opens what a page folds, as somebody would who looks for it."""
        context, stays = visits(site_url, options)
        stays.evaluate("localStorage.clear()")  # each page is opened by somebody who was never here
        page = context.new_page()
        opened.append((context, stays))
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(30_000)
        # what is fetched ahead for scripts is of no use to a page without them, which a browser remarks after some seconds
        is_plain = not options.get("java_script_enabled", True)
        page.on(
            "console",
            lambda m: (
                faults.append(f"{m.type}: {m.text}")
                if m.type in ("error", "warning") and not (is_plain and "was preloaded" in m.text)
                else None
            ),
        )
        page.on("pageerror", lambda error: faults.append(f"exception: {error}"))
        page.on("request", lambda r: faults.append(f"off origin: {r.url}") if not _own(r.url, site_url) else None)
        page.on("response", lambda r: faults.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        page.goto(site_url + path)
        if options.get("java_script_enabled", True):
            page.wait_for_selector('html[data-almanac="ready"]')
            if unfold:
                page.evaluate("for (const fold of document.querySelectorAll('details.fold')) fold.open = true")
        return page

    yield open_
    for context, stays in opened:
        for page in context.pages:
            if page is not stays:
                page.close()
    assert not faults


def _own(url: str, site_url: str) -> bool:
    return url.startswith((site_url, "data:", f"blob:{site_url}"))
