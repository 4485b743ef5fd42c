"""First use, filter and sort times of a built site in a real browser: `python -m tests.browser.bench_site build/site`.

Not a part of the suite: times depend on the machine. Prints one line for each measure, medians over all repeats, and beside the
time that passed what the page's main thread computed, which other jobs on the machine change little. Of the first screen: what a phone on
a slow network fetches, packed as hosts pack it, until the answer stands and until it can be asked, and how long a letter takes among 10,000 works.
"""

from __future__ import annotations

import functools
import gzip
import io
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


# A phone's network as it is usually meant, and as Chromium's tools have it under that name: the same bytes, with nearly four times the latency
NETWORKS = {
    "Fast 3G": {"downloadThroughput": 1.6e6 / 8, "uploadThroughput": 768e3 / 8, "latency": 150},
    "Chromium's Fast 3G": {
        "downloadThroughput": 1.6 * 1024 * 1024 / 8 * 0.9,
        "uploadThroughput": 750 * 1024 / 8 * 0.9,
        "latency": 150 * 3.75,
    },
}
SENT = """() => {
    const [page] = performance.getEntriesByType("navigation"), paint = performance.getEntriesByName("first-contentful-paint")[0];
    const ready = performance.getEntriesByName("interactive")[0].startTime;
    const sent = performance.getEntriesByType("resource").filter((r) => r.responseEnd <= ready);
    const first = performance.getEntriesByType("resource").filter((r) => r.responseEnd <= paint.startTime);
    return { text: paint.startTime, first: page.encodedBodySize + first.reduce((s, r) => s + r.encodedBodySize, 0), ready, requests: 1 + sent.length, bytes: page.encodedBodySize + sent.reduce((s, r) => s + r.encodedBodySize, 0) };
}"""
WORKS = 10_000
TYPE = """async (typed) => {
    const input = document.querySelector('#window input[name=find]'), times = [];
    for (const text of typed) {
        const start = performance.now();
        input.value = text;
        input.dispatchEvent(new Event('input'));
        await new Promise((done) => setTimeout(done)); // what it waits for is at hand
        document.querySelector('#window').offsetHeight;
        times.push(performance.now() - start);
    }
    return times;
}"""


class _Packed(_Quiet):
    """Sends what is text packed, as hosts of pages do."""

    def send_head(self):
        file = super().translate_path(self.path)
        path = f"{file}/index.html" if file.endswith("/") or "." not in file.rsplit("/", 1)[-1] else file
        if not path.endswith((".html", ".js", ".css", ".json", ".svg")):
            return super().send_head()
        with open(path, "rb") as text:
            body = gzip.compress(text.read())
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


def many_works(route) -> None:
    """As many works as there are models to come: the same over again under other names."""
    data = route.fetch().json()
    times = -(-WORKS // len(data["id"]))
    names = data["id"]
    data["id"] = [f"{name}-{k}" if k else name for k in range(times) for name in names]
    data["paths"] = {str(k * len(names) + int(i)): path for k in range(times) for i, path in data["paths"].items()}
    columns = ("shape", "size", "made", "more", "context", "task")
    route.fulfill(json=data | {name: data[name] * times for name in columns})


def first_screen(browser, folder: str) -> None:
    """What a phone on a slow network waits for, and what a letter takes among many works."""
    server = _Server(("127.0.0.1", 0), functools.partial(_Packed, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    for network, conditions in NETWORKS.items():
        found = []
        for _ in range(REPEATS):
            context = browser.new_context(viewport={"width": 390, "height": 844})
            page = context.new_page()
            context.new_cdp_session(page).send("Network.emulateNetworkConditions", {"offline": False} | conditions)
            page.goto(url, wait_until="commit")
            page.wait_for_selector('html[data-almanac="ready"]', timeout=60_000)
            found.append(page.evaluate(SENT))
            context.close()
        # `text` is the answer for a common card, which needs no script; `ready` the answer for one's own
        for name, unit in (("text", "ms"), ("first", "bytes"), ("ready", "ms"), ("bytes", "bytes"), ("requests", "")):
            median = statistics.median(each[name] for each in found)
            print(f"front   {name:10} median {median:9,.0f} {unit}   {network}, packed")
    typed = []
    page = browser.new_page()
    page.route("**/data/window/chat.json*", many_works)
    page.goto(f"{url}?gpu=rtx-4090")
    page.wait_for_selector('html[data-almanac="ready"]')
    page.evaluate(TYPE, ["q"])  # what finds is fetched by the first letter
    page.wait_for_timeout(1000)
    spent = _Spent(page.context.new_cdp_session(page))
    spent.since()
    for _ in range(REPEATS):
        typed += page.evaluate(TYPE, TYPED)
    print(
        f"front   letter     median {statistics.median(typed):6.0f} ms   most {max(typed):6.0f} ms   "
        f"computed {spent.since() / len(typed):5.0f} ms   {WORKS:,} works"
    )
    page.close()
    server.shutdown()
    server.server_close()


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
        first_screen(browser, folder)
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
