"""Which answers are the Hub's own word, and which may be anybody's in between: only the former settle anything for good.

A gateway, a firewall or a network that wants a sign-in answers in the Hub's place, and a body may come cut off. The Hub itself says of
which commit an answer is (X-Repo-Commit), gives a file's hash as its ETag (that of the git blob, or SHA-256 where it is kept in
storage: huggingface_hub, file_download.py), and puts a code or words of its own into the head of a refusal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
from huggingface_hub.utils.sha import git_hash

from pipeline.hub.careful import Malformed, parse
from pipeline.hub.errors import HubError
from pipeline.hub.traffic import Unavailable

LONGEST_MESSAGE = 1000  # characters of the Hub's own words; the longest known names all fields that it allows
ORIGIN = "origin"  # request extension: an Origin, which all answers on the way to a file fill


class Doubtful(Unavailable):
    """Something answered, but nothing shows that it was the Hub: it counts as not reached."""


@dataclass
class Origin:
    """What the Hub said of a file before it sent us where the file lies."""

    commit: str | None = None
    size: int | None = None  # bytes
    etag: str = ""

    def note(self, headers: httpx2.Headers) -> None:
        self.commit = headers.get("x-repo-commit", self.commit)
        self.etag = headers.get("x-linked-etag") or headers.get("etag") or self.etag
        size = headers.get("x-linked-size", "")
        self.size = int(size[:18]) if size.isascii() and size.isdigit() else self.size


class Refused(HubError):
    """The Hub answered, but not with what was asked: `status` and, where it gives them, its own error code and its words for it."""

    def __init__(self, status: int, code: str, what: str, message: str = "", has_token: bool = False):
        why = f" ({code[:60]})" if code else f": {message}" if message else ""
        super().__init__(f"{what}: status {status}{why}")
        self.status, self.code, self.message, self.has_token = status, code, message, has_token

    @property
    def is_gone(self) -> bool:
        """Whether there is no such repository, or none for us; a missing file is another matter.

        To a request without a token the Hub says of a repository that is gone or private 401, without a code; with a token that
        status is about the token. huggingface_hub takes it for the same (`hf_raise_for_status`).
        """
        if self.code == "RepoNotFound" or self.status == 410:
            return True
        return self.status == 401 and not self.code and not self.has_token and bool(self.message)


def refusal(response: httpx2.Response, what: str, has_token: bool) -> HubError:
    """The Hub's own refusal; or Doubtful, where what refuses has no words of the Hub's."""
    code, said = response.headers.get("x-error-code", ""), said_by(response)
    if code or said or response.status_code == 410 or (response.status_code == 400 and _said_in_body(response)):
        return Refused(response.status_code, code, what, said or _said_in_body(response), has_token)
    return Doubtful(f"{what}: status {response.status_code}, and not in the Hub's words")


def refused_fields(fields: Sequence[str], refused: Refused) -> set[str]:
    """Which fields of `expand` a 400 is about: those at the places it names, and those that are not among the ones it allows."""
    if refused.status != 400:
        return set()
    allowed = set(re.findall(r'"([\w-]+)"', refused.message))
    named = {fields[int(n)] for n in re.findall(r"expand\[(\d{1,3})\]", refused.message) if int(n) < len(fields)}
    if named and allowed & set(fields):
        named |= set(fields) - allowed
    return named


def said_by(response: httpx2.Response) -> str:
    """Why the Hub refuses, in the words that it puts into the head of its answer."""
    return _shown(response.headers.get("x-error-message", ""))


def _said_in_body(response: httpx2.Response) -> str:
    try:
        body = parse(response.content[:10_000])
    except Malformed:
        return ""
    said = body.get("error") if isinstance(body, dict) else ""
    return _shown(said) if isinstance(said, str) else ""


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:LONGEST_MESSAGE]


def is_proven(body: bytes, origin: Origin) -> bool | None:
    """Whether a body is what the Hub's ETag says: None where that is no hash that could tell. What a storage calls its copy does not count."""
    etag = origin.etag.removeprefix("W/").strip('"').lower()
    if re.fullmatch("[0-9a-f]{40}", etag):  # of the blob in git; a cache in between may give that of the bare body
        return etag in (git_hash(body), hashlib.sha1(body, usedforsecurity=False).hexdigest())
    if re.fullmatch("[0-9a-f]{64}", etag):
        return etag == hashlib.sha256(body).hexdigest()
    return None
