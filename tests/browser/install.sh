#!/bin/sh
# Finds the browser of the tests, or installs one: from the system's packages where that is allowed, else Playwright's own build.
# Of the system's packages the shell without windows comes first: a page costs a third there. With ALMANAC_BROWSER=light it is installed beside
# another browser too, and jemalloc, with which questions are planned sooner.
# Exit status: 0 there is one, 3 there is none and none could be installed, so that all other tests can still run; under CI=true 1.
set -eu
bin=$1
from_packages() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || return 1
    apt-get update -qq >/dev/null 2>&1 || return 1
    for package in "$@"; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}
if [ "${ALMANAC_BROWSER:-}" = light ] && [ -z "${CHROMIUM:-}" ] && ! command -v chromium-headless-shell >/dev/null 2>&1
then from_packages chromium-headless-shell || true; fi
if [ "${ALMANAC_BROWSER:-}" = light ] && ! ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1; then from_packages libjemalloc2 || true; fi
for name in "${CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if "$bin/python" - <<'PYTHON'
import sys
from pathlib import Path
from playwright.sync_api import sync_playwright
with sync_playwright() as play:
    sys.exit(not Path(play.chromium.executable_path).exists())
PYTHON
then exit 0; fi
echo "No Chromium found; installing one for the browser tests ..." >&2
if from_packages chromium-headless-shell chromium; then exit 0; fi
if "$bin/python" -m playwright install chromium >/dev/null 2>&1; then exit 0; fi
case "${CI:-}" in
    "" | 0 | false) ;;
    *)
        echo "error: no browser, and none could be installed. A run of CI is not green without its browser tests." >&2
        exit 1
        ;;
esac
echo "warning: no browser, and none could be installed: its tests are left out. Install Chromium, or set CHROMIUM to its path." >&2
exit 3
