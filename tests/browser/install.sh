#!/bin/sh
# Finds the browser of the tests, or installs one: from the system's packages where that is allowed, else Playwright's own build.
set -eu
bin=$1
for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if "$bin/python" - <<'END'
import sys
from pathlib import Path
from playwright.sync_api import sync_playwright
with sync_playwright() as play:
    sys.exit(not Path(play.chromium.executable_path).exists())
END
then exit 0; fi
echo "No Chromium found; installing one for the browser tests ..." >&2
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    if apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1
    then exit 0; fi
fi
"$bin/python" -m playwright install chromium || {
    echo "error: no browser. Install Chromium, or set CHROMIUM to its path, and run again." >&2
    exit 1
}
