"""First use, filter and sort times of a built site in a real browser: `python -m tests.browser.bench_site build/site`.

Not a part of the suite: times depend on the machine. Prints one line for each measure, medians over all repeats, and beside the
time that passed what the page's main thread computed, which other jobs on the machine change little.
"""

from __future__ import annotations

import functools
import statistics
import sys
import threading

from playwright.sync_api import sync_playwright

from tests.browser.conftest import _Quiet, _Server, find_browser

REPEATS = 5
TYPED = (
    "q",
    "qw",
    "qwe",
    "qwen",
    "qwen3",
    "qwen3-8",
    "",
    "l",
    "llama",
    "llama 70b",
    "",
    "gemma",
    "mistral",
    "deepseek",
    "",
)
FILTER = """(typed) => {
    const input = document.querySelector('input[name=find]'), times = [];
    for (const text of typed) {
        const start = performance.now();
        input.value = text;
        input.dispatchEvent(new Event('input'));
        document.querySelector('#matrix').offsetHeight;
        times.push(performance.now() - start);
    }
    return times;
}"""
SORTS = 6
SORT = """async () => {
    const times = [];
    for (const n of [0, 1, 2, 3, 0, 1]) {
        const start = performance.now();
        document.querySelectorAll('#matrix thead button')[n].click();
        await new Promise((done) => setTimeout(done));
        document.querySelector('#matrix').offsetHeight;
        times.push(performance.now() - start);
    }
    return times;
}"""


class _Spent:
    """What the main thread of a page has computed since it was last asked, in ms of its own clock."""

    def __init__(self, session) -> None:
        self.session, self.before = session, 0.0
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def since(self) -> float:
        metrics = {m["name"]: m["value"] for m in self.session.send("Performance.getMetrics")["metrics"]}
        now = 1000 * metrics["TaskDuration"]
        spent, self.before = now - self.before, now
        return spent


def main(folder: str) -> None:
    server = _Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for cards in ("common", "all"):
            first, filtered, sorted_ = [], [], []
            computed = {"first use": [], "filter": [], "sort": []}
            for _ in range(REPEATS):
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                page = context.new_page()
                spent = _Spent(context.new_cdp_session(page))
                page.goto(f"{url}?cards={cards}")
                page.wait_for_selector('html[data-almanac="ready"]')
                first.append(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
                computed["first use"].append(spent.since())
                filtered += page.evaluate(FILTER, TYPED)
                computed["filter"].append(spent.since() / len(TYPED))
                sorted_ += page.evaluate(SORT)
                computed["sort"].append(spent.since() / SORTS)
                sent = page.evaluate(
                    "performance.getEntriesByType('resource').reduce((s, r) => s + r.encodedBodySize, 0)"
                )
                context.close()
            for name, times in (("first use", first), ("filter", filtered), ("sort", sorted_)):
                print(
                    f"{cards:7} {name:10} median {statistics.median(times):6.0f} ms   most {max(times):6.0f} ms   "
                    f"computed {statistics.median(computed[name]):5.0f} ms"
                )
            print(f"{cards:7} bytes      {sent / 1e3:.0f} kB, uncompressed, without the page itself")
        browser.close()
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main(sys.argv[1])
