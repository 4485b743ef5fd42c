"""The header of a GGUF file, field by field, as docs/gguf.md of github.com/ggml-org/ggml has it: every type of value, every bound, to the number."""

from __future__ import annotations

import csv
import struct
from pathlib import Path

import pytest

from pipeline.base.bounds import LARGEST_TOTAL, MOST_REPEATS
from pipeline.hub import gguf
from pipeline.hub.careful import Malformed
from pipeline.hub.gguf_types import TYPES

# gguf_metadata_value_type: the number of a type, how many bytes it takes, how struct writes it, and a value of it
SCALARS = [
    (0, 1, "B", 200), (1, 1, "b", -100), (2, 2, "H", 60_000), (3, 2, "h", -30_000), (4, 4, "I", 4_000_000_000),
    (5, 4, "i", -2_000_000_000), (6, 4, "f", 0.5), (7, 1, "?", True), (10, 8, "Q", 2**63), (11, 8, "q", -(2**62)), (12, 8, "d", 0.1),
]  # fmt: skip
STRING, ARRAY, UINT8, UINT32, F32 = 8, 9, 0, 4, 0


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(name: str | bytes, kind: int, body: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + body


def array(of: int, count: int, body: bytes) -> bytes:
    return struct.pack("<IQ", of, count) + body


def tensor(name: str | bytes, shape: list[int], kind: int = F32, offset: int = 0) -> bytes:
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))  # the innermost first
    return text(name) + dims + struct.pack("<IQ", kind, offset)


def header(
    pairs: list[bytes] = (), tensors: list[bytes] = (), version: int = 3, counts: tuple[int, int] | None = None
) -> bytes:
    told = counts or (len(tensors), len(pairs))
    return b"GGUF" + struct.pack("<IQQ", version, *told) + b"".join([*pairs, *tensors])


def read(body: bytes, size: int | None = None):
    return gguf.read_header(lambda start, stop: (body[start:stop], size))


def refused(body: bytes, why: str, size: int | None = None) -> None:
    with pytest.raises(Malformed, match=why):
        read(body, size)


LAST = pair("llama.last", UINT32, struct.pack("<I", 77))  # what is read wrong before it moves it


@pytest.mark.parametrize(("kind", "size", "form", "value"), SCALARS)
def test_a_value_of_each_type_is_read_and_passed_over(kind, size, form, value):
    body = struct.pack(f"<{form}", value)
    assert len(body) == size
    several = array(kind, 3, 3 * body)
    pairs = [
        *(pair("llama.one", kind, body), pair("llama.several", ARRAY, several)),
        *(pair("tokenizer.one", kind, body), pair("general.several", ARRAY, several), LAST),
    ]
    tensors, metadata = read(header(pairs, [tensor("a", [2, 3])]))
    assert metadata == {"llama.one": value, "llama.several": [value] * 3, "llama.last": 77}
    assert tensors == [("a", "F32", [2, 3])]


def test_texts_and_lists_of_texts_are_read_or_passed_over():
    words = array(STRING, 2, text("a") + text("longer"))
    nested = array(ARRAY, 2, array(STRING, 1, text("x")) + array(UINT8, 2, b"ab"))
    pairs = [
        *(pair("general.architecture", STRING, text("llama")), pair("general.name", STRING, text("left out"))),
        *(pair("llama.short", STRING, text("é" * 100)), pair("llama.long", STRING, text("e" * 201))),
        *(pair("llama.words", ARRAY, words), pair("llama.nested", ARRAY, nested), LAST),
        *(pair("l" * 200, UINT8, b"\1"), pair("l" * 201, UINT8, b"\1")),
    ]
    told = {"general.architecture": "llama", "llama.short": "é" * 100, "llama.last": 77, "l" * 200: 1}
    assert read(header(pairs))[1] == told


def lists(depth: int) -> bytes:
    return array(UINT8, 1, b"x") if depth == 1 else array(ARRAY, 1, lists(depth - 1))


def test_lists_in_lists_end_at_a_depth():
    assert read(header([pair("llama.deep", ARRAY, lists(4)), LAST]))[1] == {"llama.last": 77}
    refused(header([pair("llama.deep", ARRAY, lists(5)), LAST]), "value of type 9")
    refused(header([pair("llama.odd", 13, b""), LAST]), "value of type 13")


def test_long_lists_are_kept_up_to_a_bound_each_and_all_together():
    full = array(UINT8, MOST_REPEATS, b"\1" * MOST_REPEATS)
    over = array(UINT8, MOST_REPEATS + 1, b"\1" * (MOST_REPEATS + 1))
    pairs = [pair(f"llama.{i}", ARRAY, full) for i in range(21)]
    kept = read(header([pair("llama.over", ARRAY, over), *pairs, LAST]))[1]
    assert sorted(kept) == sorted([*(f"llama.{i}" for i in range(20)), "llama.last"])
    assert kept["llama.19"] == [1] * MOST_REPEATS
    rest = array(UINT8, MOST_REPEATS - 1, b"\1" * (MOST_REPEATS - 1))
    one = array(UINT8, 1, b"\1")
    kept = read(
        header(
            [*pairs[:19], pair("llama.rest", ARRAY, rest), pair("llama.one", ARRAY, one), pair("llama.two", ARRAY, one)]
        )
    )[1]
    assert "llama.one" in kept and "llama.two" not in kept


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (header(version=1), "version 1"),
        (header(version=4), "version 4"),
        (b"GGUX" + header()[4:], "not a GGUF file"),
        (header(counts=(200_001, 0)), "200,001 tensors"),
        (header(counts=(200_000, 0)), "does not end in 24 bytes"),
        (header(counts=(0, 20_001)), "20,001 pairs"),
        (header(counts=(0, 20_000)), "does not end in 24 bytes"),
        (header([pair("llama.a", STRING, struct.pack("<Q", 64 * 2**20 + 1))]), "a field of 67,108,865 bytes"),
        (header([pair("llama.a", STRING, struct.pack("<Q", 64 * 2**20))]), "does not end"),
        (header([pair("llama.a", ARRAY, struct.pack("<IQ", STRING, 8 * 2**20 + 1))]), "an array of 8,388,609"),
        (header([pair("llama.a", ARRAY, struct.pack("<IQ", STRING, 8 * 2**20))]), "does not end"),
        (header(tensors=[tensor("a", [1] * 9)]), "9 dimensions"),
        (header(tensors=[tensor("a", [1], kind=1001)]), "type 1001"),
        (header(tensors=[tensor("a", [LARGEST_TOTAL + 1])]), "elements"),
        (header(tensors=[tensor("a", [LARGEST_TOTAL + 1, 0])]), "0 elements"),
        (header(tensors=[tensor("a", [2, LARGEST_TOTAL])]), "elements"),
        (header(tensors=[tensor("a", [1]), tensor("a", [1], offset=32)]), "listed twice"),
        (header(tensors=[tensor(b"\xff" * 61, [1])]), r"'(\\xff){60}' has a name that is not UTF-8"),
        (header(tensors=[tensor("a" * 61, [1]), tensor("a" * 61, [1])]), "'a{60}' is listed twice"),
        (header(tensors=[tensor("a" * 61, [1]), tensor("b" * 61, [1])]), "'b{60}' overlaps"),
        (header(tensors=[tensor("a" * 61, [1], kind=1001)]), "'a{60}' of 1 elements"),
        (header(tensors=[tensor("a" * 61, [255], kind=14)]), "'a{60}': rows of 255"),
        (header(tensors=[tensor("a", [255], kind=14)]), "'a'"),
    ],
)
def test_what_is_beyond_a_bound_is_a_reason_and_what_is_at_it_is_not(body, why):
    refused(body, why)


def test_a_tensor_has_up_to_eight_dimensions_and_types_that_nobody_knows():
    shape = [1, 2, 1, 1, 1, 1, 1, 3]
    body = header(tensors=[tensor("a", shape), tensor("b", [LARGEST_TOTAL], kind=1000, offset=64)], version=2)
    assert read(body)[0] == [("a", "F32", shape), ("b", "type 1000", [LARGEST_TOTAL])]


@pytest.mark.parametrize("alignment", [None, 64, 1, 2**20])
def test_the_data_begin_aligned_and_end_with_the_file(alignment):
    pairs = [] if alignment is None else [pair("general.alignment", UINT32, struct.pack("<I", alignment))]
    body = header(pairs, [tensor("b", [8], offset=32), tensor("a", [8])])
    step = alignment or 32
    whole = -(-len(body) // step) * step + 64
    assert len(read(body, whole)[0]) == 2
    refused(body, "of 64 bytes in 63", whole - 1)
    refused(body, "of 64 bytes in 0", 10)


def test_a_file_that_ends_with_its_header_has_no_byte_of_data():
    body = header(tensors=[tensor("a", [1], kind=24)])
    refused(body, "of 1 bytes in 0", -(-len(body) // 32) * 32)


def test_an_alignment_of_nothing_or_too_much_and_one_in_words():
    for wrong in (0, 2**20 + 1):
        refused(header([pair("general.alignment", UINT32, struct.pack("<I", wrong))]), "aligned to")
    body = header([pair("general.alignment", STRING, text("64")), LAST], [tensor("a", [8])])
    whole = -(-len(body) // 32) * 32 + 32
    assert read(body, whole)[1] == {"llama.last": 77}
    refused(body, "of 32 bytes in 31", whole - 1)


def test_tensors_lie_beside_one_another_and_not_over():
    assert len(read(header(tensors=[tensor("a", [8]), tensor("b", [8], offset=32)]))[0]) == 2
    refused(header(tensors=[tensor("a", [8]), tensor("b", [8], offset=31)]), "'b' overlaps")


def test_a_file_is_asked_for_in_growing_parts_until_its_header_ends():
    body, asked = header([LAST], [tensor("a", [8])]), []

    def part(start: int, stop: int) -> tuple[bytes, int]:
        asked.append((start, stop))
        return body[start:stop], len(body) + 100

    assert gguf.read_header(part)[1] == {"llama.last": 77} and asked == [(0, 2**20)]
    long = header([pair("tokenizer.all", ARRAY, array(UINT8, 3 * 2**20, bytes(3 * 2**20))), LAST])
    asked.clear()
    assert gguf.read_header(lambda start, stop: asked.append((start, stop)) or (long[start:stop], None))[1] == {
        "llama.last": 77
    }
    assert asked == [(0, 2**20), (2**20, 6 * 2**20)]
    asked.clear()
    with pytest.raises(Malformed, match="does not end in 1,048,576 bytes"):  # all that there is was read
        gguf.read_header(lambda start, stop: asked.append((start, stop)) or (long[start:stop], 2**20))
    assert len(asked) == 1


def test_a_header_that_never_ends_is_asked_for_in_four_parts():
    begins, asked = header([pair("tokenizer.all", STRING, struct.pack("<Q", 64 * 2**20))]), []

    def part(start: int, stop: int) -> tuple[bytes, None]:
        asked.append((start, stop))
        return (begins + bytes(stop))[start:stop], None

    with pytest.raises(Malformed, match="does not end in 67,108,864 bytes"):
        gguf.read_header(part)
    ends = [size * 2**20 for size in (1, 6, 24, 64)]
    assert asked == list(zip([0, *ends], ends, strict=False))


def test_tensors_are_read_without_what_the_file_says_of_its_architecture():
    body = header([LAST], [tensor("a", [2, 3]), tensor("b", [4], offset=32)])
    assert gguf.read_tensors(lambda start, stop: (body[start:stop], None)) == [("a", "F32", [2, 3]), ("b", "F32", [4])]


def test_elements_are_counted_by_type_up_to_a_bound():
    assert gguf.elements_by_type([("b", "Q6_K", [2, 3]), ("a", "F32", [LARGEST_TOTAL - 6])]) == {
        "F32": LARGEST_TOTAL - 6,
        "Q6_K": 6,
    }
    with pytest.raises(Malformed, match="elements"):
        gguf.elements_by_type([("a", "F32", [LARGEST_TOTAL]), ("b", "F32", [1])])


def test_types_have_the_numbers_and_blocks_of_the_gguf_package():
    with (Path(__file__).parents[1] / "oracle" / "ggml_types.csv").open(encoding="utf-8", newline="") as file:
        rows = {int(row["number"]): row for row in csv.DictReader(file)}
    said = {n: (row["gguf_type"], int(row["block_elements"]), int(row["block_bytes"])) for n, row in rows.items()}
    # block_q8_1 of ggml-common.h begins with two halves, for which the package counts four bytes each; no file holds it
    assert said.pop(9) == ("Q8_1", 32, 40)
    assert {number: row for number, row in TYPES.items() if number != 9} == said
    assert TYPES[9] == ("Q8_1", 32, 2 * 2 + 32)
