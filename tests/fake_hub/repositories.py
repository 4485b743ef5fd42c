"""Repositories of the stand-in that takes commits: branches of files small and large, and what it refuses."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from huggingface_hub.utils.sha import git_hash

REGULAR_BYTES = 10 * 2**20
LFS = re.compile(r"\.(parquet|bin)$")
Tree = dict[str, tuple[str, bytes | tuple[str, int]]]  # path → ("regular", content) or ("lfs", (sha256, size))


class Refusal(Exception):
    """A status with the Hub's words, and its code where it has one."""

    def __init__(self, status: int, said: str, code: str = "", errors: list[str] | None = None):
        super().__init__(said)
        self.status, self.said, self.code, self.errors = status, said, code, errors


@dataclass
class Commit:
    oid: str
    tree: Tree
    message: str


@dataclass
class Repo:
    kind: str
    name: str
    sdk: str | None = None
    refs: dict[str, list[Commit]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)

    def commit(self, revision: str) -> Commit:
        for ref, commits in self.refs.items():
            if revision == ref:
                return commits[-1]
        for commits in self.refs.values():
            for commit in commits:
                if revision in (
                    commit.oid,
                    next((t for t, oid in self.tags.items() if oid == commit.oid and t == revision), ""),
                ):
                    return commit
        raise Refusal(404, f"Revision {revision} not found", "RevisionNotFound")

    def add(self, ref: str, tree: Tree, message: str) -> Commit:
        seed = f"{self.name}{ref}{message}{sum(map(len, self.refs.values()))}{sorted(tree)}"
        made = Commit(hashlib.sha1(seed.encode()).hexdigest(), tree, message)
        self.refs[ref].append(made)
        return made

    @property
    def files(self) -> dict[str, bytes | str]:
        """What the branch holds: content, or of a large file its SHA-256."""
        tree = self.refs["main"][-1].tree
        return {path: value if mode == "regular" else value[0] for path, (mode, value) in tree.items()}


def entry(path: str, mode: str, value: Any) -> dict[str, Any]:
    if mode == "regular":
        return {"type": "file", "path": path, "size": len(value), "oid": git_hash(value)}
    digest, size = value
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n".encode()
    return {
        "type": "file", "path": path, "size": size, "oid": git_hash(pointer),
        "lfs": {"oid": digest, "size": size, "pointerSize": len(pointer)},
    }  # fmt: skip


def is_large(path: str, size: int, sample: bytes) -> bool:
    return bool(LFS.search(path)) or size > REGULAR_BYTES or is_binary(sample)


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:512]
