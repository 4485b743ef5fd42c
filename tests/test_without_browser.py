"""Where no browser is and none can be had, all other tests run, and the last line says what is missing; on CI that is a failure."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeline.press.publish import ROOT

INSTALL = ROOT / "tests" / "browser" / "install.sh"
FALSE = "#!/bin/sh\nexit 1\n"


@pytest.fixture
def bare(tmp_path):
    """The environment of a machine without a browser, where neither apt-get nor Playwright can install one."""
    for name in ("python", "apt-get"):
        (tmp_path / name).write_text(FALSE, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for name in ("id", "sh"):
        (tmp_path / name).symlink_to(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}")
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "CHROMIUM", "ALMANAC_BROWSER")}
    return kept | {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "none")}


def installed(bare, **more) -> subprocess.CompletedProcess:
    command = ["/bin/sh", str(INSTALL), bare["PATH"]]
    return subprocess.run(command, env=bare | more, capture_output=True, text=True, encoding="utf-8", check=False)


def test_who_cannot_install_a_browser_is_told_so_and_goes_on(bare):
    done = installed(bare)
    assert done.returncode == 3
    assert "its tests are left out. Install Chromium, or set CHROMIUM to its path" in done.stderr


@pytest.mark.parametrize("ci", ["true", "1"])
def test_ci_never_goes_on_without_a_browser(bare, ci):
    done = installed(bare, CI=ci)
    assert done.returncode == 1 and "error: no browser" in done.stderr


def test_a_browser_that_is_there_is_taken(bare, tmp_path):
    (tmp_path / "chromium").write_text(FALSE, encoding="utf-8")
    (tmp_path / "chromium").chmod(0o755)
    assert installed(bare).returncode == 0
    assert installed({**bare, "PATH": "/nowhere"}, CHROMIUM=str(tmp_path / "chromium")).returncode == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        (
            {"ALMANAC_BROWSER": "none"},
            0,
            ["1 passed, 1 skipped", "1 browser tests were left out", "apt-get install chromium"],
        ),
        ({"ALMANAC_BROWSER": "none", "CI": "true"}, 1, ["1 passed, 1 error", "No browser"]),
        ({}, 1, ["1 passed, 1 error", "No browser"]),
    ],
)
def test_a_run_without_a_browser_is_green_only_where_none_could_be_installed(bare, more, status, words):
    tests = [next(_browser_tests()), "tests/test_without_browser.py::test_a_browser_that_is_there_is_taken"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "full or not full", *tests],
        cwd=ROOT,
        env=bare | more,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == status, done.stdout[-2000:]
    assert all(word in done.stdout for word in words), done.stdout[-2000:]
    if not status:  # what is missing is the last that one reads
        assert "browser tests were left out" in done.stdout.strip().splitlines()[-1]


def _browser_tests():
    """One test that opens the site."""
    file = "tests/browser/test_pages.py"
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("def test_") and "(open_page)" in line:
            yield f"{file}::{line.removeprefix('def ').partition('(')[0]}"
