"""Where the site will live, and where files lie that are too large for a page host: what the environment says, in one place.

`SITE_URL`     the site's own address. Without it a page names no address of its own: no canonical link, no `og:url`, no site map.
`REPO_URL`     where the code lives; in a GitHub workflow its own repository.
`TABLES_URL`   the address below which tables lie that are larger than a page host takes. {data_version} in it stands for the release of
               the tables that the site is made from, so that a page never leads to tables of another run. Without it they are the
               files of the release data-{data_version} of a repository on GitHub; of any other they have no address, and the site says
               where the build keeps them.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from pipeline import ROOT
from pipeline.render.shell import repository

HOSTS = ROOT / "site" / "hosts.csv"
VERSION = "{data_version}"
REMOTE = "remote.duckdb"  # of a site whose address is known: its tables as views, for who joins them over a network
RELEASE = f"data-{VERSION}"  # the tag of the release that .github/workflows/publish.yml puts the tables into


@dataclass(frozen=True)
class Addresses:
    """An empty address is not known. `site` and `large_tables` end with a slash, `repository` does not."""

    site: str = ""
    repository: str = ""
    large_tables: str = ""

    def of_release(self, data_version: str) -> Addresses:
        """The addresses of one release. Of tables that name none there is no address that holds its version."""
        large = self.large_tables.replace(VERSION, quote(data_version))
        return replace(self, large_tables=large if data_version or VERSION not in self.large_tables else "")

    def of_table(self, file: Path) -> str | None:
        """The address of a table's file as the site's pages link to it, from the root of the site; None where it has none."""
        if is_beside_site(file):
            return self.large_tables + quote(file.name) if self.large_tables else None
        return f"tables/{quote(file.name)}"

    def whole_of_table(self, file: Path) -> str | None:
        """The same as anybody may ask it; None where it has none, or where nobody knows that of the site."""
        address = self.of_table(file)
        return address if address is None or is_beside_site(file) else f"{self.site}{address}" if self.site else None


def known(site_url: str | None = None) -> Addresses:
    """What is given, else what the environment says. Raises ValueError for what is no address."""
    site = _address("SITE_URL", site_url or os.environ.get("SITE_URL") or "")
    code, large = repository(), os.environ.get("TABLES_URL") or ""
    if not large and urlsplit(code).netloc in ("github.com", urlsplit(os.environ.get("GITHUB_SERVER_URL", "")).netloc):
        large = f"{code}/releases/download/{RELEASE}" if code else ""
    return Addresses(site, code, _address("TABLES_URL", large))


def is_beside_site(file: Path) -> bool:
    """Whether a file is too large to lie in the site."""
    return file.stat().st_size > largest_file()


def limits(file: Path = HOSTS) -> list[dict[str, str]]:
    """What page hosts take: rows of site/hosts.csv, each with its source."""
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def largest_file() -> int:
    """Bytes of the largest file that every host takes."""
    return min(int(row["most"]) for row in limits() if (row["of"], row["what"]) == ("site", "file_bytes"))


def _address(name: str, text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole or parts.query or parts.fragment or any(c.isspace() or c in '"<>' for c in text):
        raise ValueError(f"{name} is {text!r}, which is no address such as https://example.org/almanac/")
    return text.rstrip("/") + "/"
