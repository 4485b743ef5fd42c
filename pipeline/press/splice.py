"""One Parquet file of the groups of rows of several, without decoding them: their bytes are copied, and a footer says where they lie now.

A footer is a struct of Thrift's compact protocol, which tells its types itself: it is read as it stands, places in it are moved, all else is
written as it was. Of the fields only those that hold places are named here, by their numbers in
https://github.com/apache/parquet-format/blob/010f49b89eab98b498986709be5fedaaf2ea916f/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PAR1"
# types of the compact protocol; a boolean is its type
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
# of the file
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
# of a group of rows
_CHUNKS, _GROUP_ROWS, _GROUP_AT, _ORDINAL = 1, 3, 5, 7
# of a column chunk, and of what describes it
_CHUNK_AT, _DESCRIBED, _OFFSET_INDEX_AT, _COLUMN_INDEX_AT = 2, 3, 4, 6
_PATH, _DATA_AT, _INDEX_AT, _DICTIONARY_AT, _STATISTICS, _BLOOM_AT = 3, 9, 10, 11, 12, 14
_NULLS, _MOST, _LEAST = 3, 5, 6
# of an element of the schema
_NAME = 4

Struct = dict[int, tuple[int, Any]]


class SpliceError(ValueError):
    """What was to be put together is no Parquet file, or one of other columns."""


class Spliced:
    """A Parquet file that grows by the groups of rows of others. The first is its pattern: schema and metadata are taken from there."""

    def __init__(self, path: Path, pattern: bytes) -> None:
        self.footer = _footer(pattern)
        self.groups: list[Struct] = []
        self.rows = 0
        self.file: BinaryIO = path.open("wb")
        self.file.write(MAGIC)

    def __enter__(self) -> Spliced:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._end()
        self.file.close()

    def append(self, content: bytes, ranges: Mapping[str, tuple[str, str]]) -> None:
        """The groups of rows of a file. `ranges` are the least and the largest value of columns of text without nulls, which readers skip by:
        where a file has more than one group, those of all of it."""
        footer = _footer(content)
        if _columns(footer) != _columns(self.footer):
            raise SpliceError("its columns are others")
        moved = self.file.tell() - len(MAGIC)
        self.file.write(content[len(MAGIC) : -len(MAGIC) - 4 - _footer_size(content)])
        for group in footer[_GROUPS][1][1]:
            self._moved(group, moved, ranges)
            group[_ORDINAL] = (_I16, len(self.groups))
            if len(self.groups) > 0x7FFF:  # as far as ordinals count; they may be left out
                del group[_ORDINAL]
            self.groups.append(group)
            self.rows += group[_GROUP_ROWS][1]

    def _moved(self, group: Struct, by: int, ranges: Mapping[str, tuple[str, str]]) -> None:
        _move(group, (_GROUP_AT,), by)
        for chunk in group[_CHUNKS][1][1]:
            _move(chunk, (_CHUNK_AT, _OFFSET_INDEX_AT, _COLUMN_INDEX_AT), by)
            described = chunk[_DESCRIBED][1]
            _move(described, (_DATA_AT, _INDEX_AT, _DICTIONARY_AT, _BLOOM_AT), by)
            found = ranges.get(b".".join(described[_PATH][1][1]).decode())
            if found:
                least, most = (value.encode() for value in found)
                told = {_NULLS: (_I64, 0), _MOST: (_BINARY, most), _LEAST: (_BINARY, least)}
                described[_STATISTICS] = (_STRUCT, told)

    def _end(self) -> None:
        self.footer[_ROWS] = (_I64, self.rows)
        self.footer[_GROUPS] = (_LIST, (_STRUCT, self.groups))
        written = bytearray()
        _write(written, _STRUCT, self.footer)
        self.file.write(written + struct.pack("<I", len(written)) + MAGIC)


def _move(fields: Struct, places: tuple[int, ...], by: int) -> None:
    """A place of 0 says nothing."""
    for place in places:
        if place in fields and fields[place][1]:
            kind, at = fields[place]
            fields[place] = kind, at + by


def _columns(footer: Struct) -> list[Struct]:
    """The schema without the name of its root, which each library writes as it likes."""
    return [{n: field for n, field in one.items() if i or n != _NAME} for i, one in enumerate(footer[_SCHEMA][1][1])]


def _footer_size(content: bytes) -> int:
    if len(content) < 12 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise SpliceError("no Parquet file")
    (size,) = struct.unpack("<I", content[-8:-4])
    if size > len(content) - 12:
        raise SpliceError("a Parquet file that is cut")
    return size


def _footer(content: bytes) -> Struct:
    size = _footer_size(content)
    try:
        return _read(iter(content[len(content) - 8 - size : -8]), _STRUCT)
    except StopIteration:
        raise SpliceError("a footer that is cut") from None


def _number(read: Iterator[int]) -> int:
    found = shift = 0
    while True:
        byte = next(read)
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
        shift += 7


def _signed(read: Iterator[int]) -> int:
    found = _number(read)
    return (found >> 1) ^ -(found & 1)


def _bytes(read: Iterator[int], count: int) -> bytes:
    found = bytes(islice(read, count))
    if len(found) < count:
        raise StopIteration
    return found


def _read(read: Iterator[int], kind: int) -> Any:
    if kind in (_I16, _I32, _I64):
        return _signed(read)
    if kind in (_TRUE, _FALSE, _BYTE):  # of a list: a byte each
        return next(read)
    if kind == _DOUBLE:
        return _bytes(read, 8)
    if kind == _BINARY:
        return _bytes(read, _number(read))
    if kind in (_LIST, _SET):
        head = next(read)
        count = head >> 4 if head < 0xF0 else _number(read)
        return head & 0x0F, [_read(read, head & 0x0F) for _ in range(count)]
    if kind != _STRUCT:
        raise SpliceError(f"a footer with a type that none has: {kind}")
    fields: Struct = {}
    number = 0
    while head := next(read):
        number = number + (head >> 4) if head >> 4 else _signed(read)
        kind = head & 0x0F
        fields[number] = kind, (None if kind in (_TRUE, _FALSE) else _read(read, kind))
    return fields


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _put_signed(out: bytearray, number: int) -> None:
    _put(out, (number << 1) ^ (number >> 63))


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _put_signed(out, value)
    elif kind in (_TRUE, _FALSE, _BYTE):
        out.append(value)
    elif kind == _DOUBLE:
        out += value
    elif kind == _BINARY:
        _put(out, len(value))
        out += value
    elif kind in (_LIST, _SET):
        of, items = value
        out.append(min(len(items), 15) << 4 | of)
        if len(items) > 14:
            _put(out, len(items))
        for item in items:
            _write(out, of, item)
    else:
        last = 0
        for number, (of, item) in sorted(value.items()):
            if 0 < number - last < 16:
                out.append((number - last) << 4 | of)
            else:
                out.append(of)
                _put_signed(out, number)
            last = number
            if item is not None:
                _write(out, of, item)
        out.append(0)
