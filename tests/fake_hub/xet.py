"""Where large files lie: objects by SHA-256, sent whole (LFS) or in the pieces of the Xet protocol.

Of Xet this reads what its specification says of a shard's file section: which xorbs a file is put together from, how long it is, and the
SHA-256 that it was sent under. Chunks are not unpacked and not hashed again (that takes LZ4 and BLAKE3), so that a wrong SHA-256 of
right chunks, which the real storage refuses, passes here.
"""

from __future__ import annotations

import hashlib
import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fake_hub.commits import Handler

_HASH = 32
_ENTRY = 48  # every row of a file section
_BOOKEND = b"\xff" * _HASH
_VERIFIED, _EXTENDED = 1 << 31, 1 << 30
_HEADER = 48  # magic, version, footer's size


class Storage:
    """`objects`: bytes of a file by its SHA-256. `xorbs`: those that were sent."""

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        self.xorbs: set[str] = set()
        self.received = 0  # bytes
        self.url = ""

    def put(self, handler: Handler, digest: str) -> None:
        """The storage of LFS: content under another name than its own is refused."""
        if hashlib.sha256(handler.body).hexdigest() != digest:
            return handler.reply(400, b"the checksum does not match")
        self.objects[digest] = len(handler.body)
        self.received += len(handler.body)
        return handler.reply(200)

    def answer(self, handler: Handler, path: str) -> None:
        if handler.headers.get("authorization") != "Bearer xet":
            return handler.reply(401, b"unauthorized")
        if handler.command == "POST" and (match := re.fullmatch(r"/v1/xorbs/default/([0-9a-f]{64})", path)):
            is_new = match[1] not in self.xorbs
            self.xorbs.add(match[1])
            self.received += len(handler.body)
            return handler.reply(200, {"was_inserted": is_new})
        if handler.command == "POST" and path in ("/v1/shards", "/shards"):
            return self._shard(handler)
        return handler.reply(404, b"not found")

    def _shard(self, handler: Handler) -> None:
        found = {}
        for digest, size, xorbs in files_of(handler.body):
            if missing := xorbs - self.xorbs:
                return handler.reply(400, f"xorb {min(missing)} was not uploaded".encode())
            found[digest] = size
        self.objects |= found
        return handler.reply(200, {"result": 1})


def files_of(shard: bytes) -> list[tuple[str, int, set[str]]]:
    """SHA-256, bytes and xorbs of each file that a shard describes."""
    found, at = [], _HEADER
    while shard[at : at + _HASH] != _BOOKEND:
        flags, count = struct.unpack_from("<II", shard, at + _HASH)
        at += _ENTRY
        size, xorbs = 0, set()
        for _number in range(count):
            xorb = shard[at : at + _HASH]
            (unpacked,) = struct.unpack_from("<I", shard, at + _HASH + 4)
            xorbs.add("".join(f"{part:016x}" for part in struct.unpack("<4Q", xorb)))
            size += unpacked
            at += _ENTRY
        at += _ENTRY * count * bool(flags & _VERIFIED)
        if not flags & _EXTENDED:
            raise ValueError("a file without a SHA-256")
        # eight bytes at a time, as every hash is written
        digest = "".join(f"{part:016x}" for part in struct.unpack("<4Q", shard[at : at + _HASH]))
        found.append((digest, size, xorbs))
        at += _ENTRY
    return found
