"""The digest of a release, wherever it is: a folder of tables, a site, a kept digest, or the address of a published one."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path

from pipeline.base.failures import Failure
from pipeline.press import digest
from pipeline.press.digest import BASIS, NUMBERS, Digest

_LONGEST = 64 * 2**20  # bytes of a file of a digest
_PATIENCE = 60  # seconds without an answer
_BELOW = ("", "tables", "site/tables", "build/tables", "release")  # where a digest lies, seen from what people name


class NothingPublished(Failure):
    """The address answers, and there is no release there."""


def digest_of(where: str) -> Digest:
    """The digest in a folder, or at an address (https://example.org/almanac/). Raises Failure, and NothingPublished where a host
    says that it has none."""
    try:
        return _published(where) if "://" in where else _in(Path(where))
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"the digest in {where} cannot be read: {error}") from None


def _in(folder: Path) -> Digest:
    for name in _BELOW:
        if found := digest.read(folder / name):
            return found
    raise Failure(f"{folder} holds no digest ({NUMBERS}, {BASIS}): name a folder of tables, a site or tables/release")


def _published(address: str) -> Digest:
    if not address.startswith(("https://", "http://")):
        raise Failure(f"{address} is no address that can be asked: it begins with https://")
    for name in ("", "tables/"):
        start = f"{address.rstrip('/')}/{name}"
        basis = _asked(start + BASIS)
        if basis is not None:
            numbers = _asked(start + NUMBERS)
            if numbers is None:
                raise Failure(
                    f"{start}{NUMBERS} is not there, and {BASIS} is: a release that is being replaced; try again"
                )
            return digest.parse(numbers, basis)
    raise NothingPublished(f"{address} has no release of the almanac: neither {BASIS} nor tables/{BASIS} is there")


def _asked(address: str) -> str | None:
    """The text of a file; None where the host says that there is none. Anything else that it says is no answer."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers={"user-agent": "vram-almanac"}), timeout=_PATIENCE
        ) as answer:
            body = answer.read(_LONGEST + 1)
            told = answer.headers.get("content-length")
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            return None
        raise Failure(f"{address} answers {error.code}: what is published there is not known") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failure(f"{address} does not answer ({error}): what is published there is not known") from None
    if len(body) > _LONGEST or (told and told.isdigit() and int(told) != len(body)):
        raise Failure(f"{address} gave {len(body):,} bytes, which is not the whole file")
    return body.decode("utf-8")


def keep_last(where: str, folder: Path) -> str:
    """Takes the digest of what is published as the last release. Returns what to tell; where nothing is published, what is kept stays.

    Raises Failure where it cannot be known what is published: a gate that compares with nothing lets everything through.
    """
    try:
        found = digest_of(where)
    except NothingPublished as problem:
        held = digest.read(folder)
        kept = (
            f"the release {held.basis['data_version']} is kept to compare with"
            if held
            else "this will be the first release"
        )
        return f"{problem}; {kept}"
    digest.keep(found, folder)
    return f"The last release is {found.basis['data_version']}, from {where}."
