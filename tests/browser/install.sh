#!/bin/sh
# Finds the browser of the tests, or installs one: from the system's packages where that is allowed, else Playwright's own build.
# Exit status: 0 there is one, 3 there is none and none could be installed, so that all other tests can still run; under CI=true 1.
set -eu
bin=$1
for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
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
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    if apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1
    then exit 0; fi
fi
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
