"""A release on the Hub: the tables as a data set, the site as a static Space, by huggingface_hub's own client.

What people find changes at once. A release that fits one commit is one, on top of the commit that was found: if somebody else commits
meanwhile, the Hub refuses it. A larger one is put together in a pull request, which is merged when the last of its commits is there.
(The library's `upload_folder` commits to the branch itself, batch by batch, so that people would see parts of two releases.)
What is on the Hub already is not sent again, files that are none of ours stay, and in the end the Hub is asked what it has.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.utils.sha import git_hash

from pipeline.base.failures import Failure
from pipeline.base.progress import Progress, quiet
from pipeline.hub.record import is_model_id
from pipeline.press import manifest
from pipeline.release.build import Files
from pipeline.render.addresses import limits

_CARD = "README.md"
_THEIRS = {".gitattributes"}  # made by the Hub
_TITLE = "Release "  # of commits and pull requests of ours


@dataclass(frozen=True)
class Sent:
    """`commit` is what the branch is at now; nothing was sent where `file_count` and `deleted_count` are 0."""

    commit: str
    file_count: int = 0
    byte_count: int = 0
    deleted_count: int = 0
    commit_count: int = 0


class Target:
    """A repository of the Hub. `kind` is dataset or space."""

    def __init__(
        self, repo: str, kind: str, endpoint: str | None = None, token: str | None = None, progress: Progress = quiet
    ):
        if not is_model_id(repo):
            raise Failure(f"{repo[:80]!r} is not owner/name")
        self.repo, self.kind, self.progress = repo, kind, progress
        self.api = HfApi(endpoint=endpoint, token=token, library_name="vram-almanac")
        self._of = {"repo_id": repo, "repo_type": kind}

    def send(self, files: Files, card: str, data_version: str, note: str = "") -> Sent:
        """Makes the repository hold these files and this card, and of ours no others. Raises Failure; what was there stays whole."""
        with self._told():
            self._make()
            self._close_stale()
            head = self._head()
            held = self._held(head)
            wanted = {**files, _CARD: _content(card.encode())}
            adds = [(name, told) for name, told in sorted(wanted.items()) if not _is_same(held.get(name), told)]
            gone = sorted((self._ours(head, held) - wanted.keys()) & held.keys())
            if not adds and not gone:
                self._tag(data_version, head)  # a run before this one may have been stopped short of it
                return Sent(head)
            sent, count = self._commit(head, adds, gone, card, f"{_TITLE}{data_version}", note)
            self._check(sent, wanted, gone)
            self._tag(data_version, sent)
            return Sent(sent, len(adds), sum(told[2] for _name, told in adds), len(gone), count)

    def _make(self) -> None:
        """The repository, where there is none."""
        try:
            self.api.repo_info(**self._of)
        except RepositoryNotFoundError:
            self.api.create_repo(**self._of, exist_ok=True, **({"space_sdk": "static"} if self.kind == "space" else {}))

    def _commit(self, head: str, adds: list, gone: list[str], card: str, title: str, note: str) -> tuple[str, int]:
        """Commits at once, or by a pull request that is merged when it is whole. Returns the new commit, and how many it took."""
        deletions = [CommitOperationDelete(path_in_repo=name, is_folder=False) for name in gone]
        batches = list(_batches(adds))
        operation = lambda name, told: CommitOperationAdd(name, card.encode() if name == _CARD else str(told[0]))  # noqa: E731
        made = lambda batch: [operation(name, told) for name, told in batch]  # noqa: E731
        if len(batches) <= 1:
            operations = [*deletions, *(op for batch in batches for op in made(batch))]
            return self._create(operations, title, note, parent_commit=head), 1
        number, parent, revision = 0, head, None
        try:
            for step, batch in enumerate(self.progress(batches, desc="commits", total=len(batches))):
                message = f"{title}, part {step + 1} of {len(batches)}"
                if revision is None:
                    info = self._create_info(
                        [*deletions, *made(batch)], message, note, parent_commit=parent, create_pr=True
                    )
                    number, revision = info.pr_num, info.pr_revision
                else:
                    info = self._create_info(made(batch), message, "", parent_commit=parent, revision=revision)
                parent = info.oid
            if self._head() != head:
                raise Failure(_moved(self.repo))
            self.api.merge_pull_request(self.repo, number, repo_type=self.kind, comment=f"{title} is whole")
        except BaseException:
            if number:
                self._close(number)
            raise
        return self._head(), len(batches)

    def _create(self, operations: Sequence, title: str, note: str, **how: str) -> str:
        return self._create_info(operations, title, note, **how).oid

    def _create_info(self, operations: Sequence, title: str, note: str, **how):
        with warnings.catch_warnings():
            # a site has its small tables beside it, in a Space too
            warnings.filterwarnings("ignore", message="It seems that you are about to commit a data file")
            return self.api.create_commit(
                **self._of, operations=operations, commit_message=title, commit_description=note, **how
            )

    def _tag(self, data_version: str, revision: str) -> None:
        """The tables of a release keep an address of their own."""
        if self.kind == "dataset":
            self.api.create_tag(**self._of, tag=data_version, revision=revision, exist_ok=True)

    def _head(self) -> str:
        return self.api.repo_info(**self._of, revision="main").sha

    def _held(self, revision: str) -> dict[str, RepoFile]:
        entries = self.api.list_repo_tree(**self._of, revision=revision, recursive=True)
        return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}

    def _ours(self, revision: str, held: dict[str, RepoFile]) -> set[str]:
        """The files that the last release put there, by its own manifest: no others are ever deleted."""
        if manifest.FILE not in held:
            return set()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                self.api.hf_hub_download(**self._of, filename=manifest.FILE, revision=revision, local_dir=scratch)
            except EntryNotFoundError:
                return set()
            return {manifest.FILE, *manifest.read(Path(scratch)).get("files", ())} - _THEIRS

    def _check(self, revision: str, wanted: Files, gone: list[str]) -> None:
        """What the Hub has now is what was sent: it may have taken half of it."""
        held = self._held(revision)
        wrong = [name for name, told in wanted.items() if not _is_same(held.get(name), told)] + [
            name for name in gone if name in held
        ]
        if wrong:
            raise Failure(
                f"{self.repo} does not hold what was sent: {', '.join(sorted(wrong)[:3])}; the next run sends it again"
            )

    def _close_stale(self) -> None:
        """Pull requests that a run before this one left behind."""
        for found in self.api.get_repo_discussions(
            **self._of, discussion_type="pull_request", discussion_status="open"
        ):
            if found.title.startswith(_TITLE):
                self._close(found.num)

    def _close(self, number: int) -> None:
        try:
            self.api.change_discussion_status(
                self.repo, number, "closed", repo_type=self.kind, comment="left behind by a run that was stopped"
            )
        except (HfHubHTTPError, OSError, httpx2.HTTPError):
            return  # the next run closes it

    @contextmanager
    def _told(self) -> Iterator[None]:
        """The Hub's refusals in a sentence."""
        try:
            yield
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            said = (error.server_message or str(error)).strip().splitlines()
            why = said[0] if said else "without a word"
            if status == 412:
                raise Failure(f"{_moved(self.repo)} ({why})") from None
            if status in (401, 403):
                raise Failure(
                    f"the Hub does not let this token write to {self.repo} ({status}: {why}): HF_TOKEN has to hold one that may"
                ) from None
            raise Failure(f"the Hub refuses {self.repo} ({status}: {why}); what was there stays") from None
        except (ValueError, RuntimeError, OSError, httpx2.HTTPError) as error:
            why = f"{error} ({error.__cause__})" if error.__cause__ else f"{error}"
            raise Failure(f"{self.repo} was not brought up to date, and what was there stays: {why}") from error


def _moved(repo: str) -> str:
    return f"somebody else committed to {repo} meanwhile, and nothing was changed; run it again"


def _content(content: bytes) -> tuple[bytes, str, int]:
    return content, hashlib.sha256(content).hexdigest(), len(content)


def _is_same(there: RepoFile | None, told: tuple) -> bool:
    """Whether the Hub has this very content; large files it knows by their SHA-256, small ones as git does."""
    source, digest, size = told
    if there is None or there.size != size:
        return False
    if there.lfs:
        return there.lfs.sha256 == digest
    return there.blob_id == git_hash(source if isinstance(source, bytes) else source.read_bytes())


def _batches(adds: list) -> Iterator[list]:
    """What goes into one commit: as much as the library puts there. The card and the manifest come last, when all else is there."""
    most = {row["what"]: int(row["most"]) for row in limits() if row["of"] == "commit"}
    last = {_CARD, manifest.FILE}
    batch, size = [], 0
    for entry in sorted(adds, key=lambda entry: (entry[0] in last, entry[0])):
        if batch and (len(batch) >= most["file_count"] or size + entry[1][2] > most["site_bytes"]):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        # a larger one is stored apart, and the commit only names it
        size += entry[1][2] if entry[1][2] <= most["file_bytes"] else 0
    if batch:
        yield batch
