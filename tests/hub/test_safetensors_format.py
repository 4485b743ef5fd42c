"""The header of a safetensors file, field by field, as the README of github.com/huggingface/safetensors has it: every width, every bound, to the number."""

from __future__ import annotations

import json

import pytest

from pipeline.base.bounds import LARGEST_TOTAL
from pipeline.hub import safetensors
from pipeline.hub.careful import Malformed

# bits of an element: enum Dtype of safetensors/src/tensor.rs
BITS = {
    4: ["F4", "F4_E2M1"],
    6: ["F6_E2M3", "F6_E3M2"],
    8: ["BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"],
    16: ["U16", "I16", "F16", "BF16"],
    32: ["U32", "I32", "F32"],
    64: ["U64", "I64", "F64", "C64"],
}
MOST_HEADER = 25_000_000  # of huggingface_hub, which reads no longer one


def tensor(shape: object = (4,), dtype: object = "F32", start: object = 0, stop: object = 16) -> dict:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": [start, stop]}


def read(header: object, size: int | None = None, file: str = "a.safetensors"):
    return safetensors.read_tensors([(file, header, size)])


def refused(why: str, header: object, size: int | None = None, file: str = "a.safetensors") -> None:
    with pytest.raises(Malformed, match=why):
        read(header, size, file)


@pytest.mark.parametrize(("bits", "dtype"), [(bits, dtype) for bits, names in BITS.items() for dtype in names])
def test_every_type_takes_its_bits_and_no_other_number_of_bytes(bits, dtype):
    right = -(-9 * bits // 8)
    assert read({"a": tensor((3, 3), dtype, 0, right)}) == [("a", dtype, [3, 3])]
    for wrong in (right - 1, right + 1):
        refused(f"does not take {wrong} bytes", {"a": tensor((3, 3), dtype, 0, wrong)})


LONG = "n" * 81


@pytest.mark.parametrize(
    ("why", "header"),
    [
        ("is no object", []),
        ("tensor 'a' is no object", {"a": 1}),
        ("tensor 'n{80}' is no object", {LONG: 1}),
        ("of dtype 'Q{20}'", {"a": tensor(dtype="Q" * 21)}),
        ("of dtype 'None'", {"a": tensor(dtype=None)}),
        ('of dtype "..F32', {"a": tensor(dtype=["F32"])}),
        ("has no shape", {"a": tensor(shape="44")}),
        ("has no shape", {"a": tensor(shape=(1,) * 17, stop=4)}),
        ("has no shape", {"a": tensor(shape=(True, 4))}),
        ("has no shape", {"a": tensor(shape=(-1, 4))}),
        ("has no shape", {"a": tensor(shape=(4.0,))}),
        ("has no shape", {"a": tensor(shape=(0, 2**63 + 1), stop=0)}),
        ("has no offsets", {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0]}}),
        ("has no offsets", {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16, 32]}}),
        ("has no offsets", {"a": {"dtype": "F32", "shape": [4], "data_offsets": {"0": 0, "1": 16}}}),
        ("has no offsets", {"a": tensor(start=-1, stop=15)}),
        ("has no offsets", {"a": tensor(start="0")}),
        ("does not take -16 bytes", {"a": tensor(start=16, stop=0)}),
        ("does not take", {"a": tensor((LARGEST_TOTAL + 1,), "U8", 0, LARGEST_TOTAL + 1)}),
        ("0 tensors", {"__metadata__": {"format": "pt"}}),
        ("overlap", {"a": tensor(), "b": tensor(start=15, stop=31)}),
    ],
)
def test_what_does_not_agree_is_a_reason(why, header):
    refused(why, header)


def test_what_is_at_a_bound_is_read():
    assert read({"a": tensor((1,) * 16, stop=4)}) == [("a", "F32", [1] * 16)]
    assert read({"a": tensor((), stop=4), "b": tensor((0, 2**63), start=4, stop=4)})[1] == ("b", "F32", [0, 2**63])
    assert read({"a": tensor((LARGEST_TOTAL,), "U8", 0, LARGEST_TOTAL)})[0][2] == [LARGEST_TOTAL]


def test_tensors_lie_beside_one_another_and_inside_the_file():
    header = {"__metadata__": {}, "b": tensor(start=16, stop=32), "a": tensor()}
    assert [name for name, *_ in read(header, 32)] == ["b", "a"] == [name for name, *_ in read(header)]
    refused("'a.safetensors' should hold 32 bytes of tensors, but has 31", header, 31)
    refused("'n{80}' should hold", header, 31, LONG)
    refused("tensors of 'n{80}' overlap", {"a": tensor(), "b": tensor(start=1, stop=17)}, None, LONG)
    refused("header of 'n{80}'", [], None, LONG)


def test_a_name_is_in_one_file():
    two = [("a" * 81, {LONG: tensor()}, None), ("b" * 81, {LONG: tensor()}, None)]
    with pytest.raises(Malformed, match=r"tensor 'n{80}' is in 'a{80}' and in 'b{80}'"):
        safetensors.read_tensors(two)
    apart = [("a", {"x": tensor()}, None), ("b", {"y": tensor()}, None)]
    assert len(safetensors.read_tensors(apart)) == 2


def test_more_tensors_than_any_model_has(monkeypatch):
    assert safetensors.MOST_TENSORS == 2_000_000
    monkeypatch.setattr(safetensors, "MOST_TENSORS", 1)
    assert len(read({"a": tensor()})) == 1
    refused("2 tensors", {"a": tensor(), "b": tensor(start=16, stop=32)})


def test_elements_are_counted_by_type_up_to_a_bound():
    assert safetensors.elements_by_dtype([("b", "U8", [2, 3]), ("a", "F32", [LARGEST_TOTAL - 6])]) == {
        "F32": LARGEST_TOTAL - 6,
        "U8": 6,
    }
    for wrong in ([], [("a", "U8", [0])], [("a", "U8", [LARGEST_TOTAL]), ("b", "F16", [1])]):
        with pytest.raises(Malformed, match="elements"):
            safetensors.elements_by_dtype(wrong)


def body(header: bytes, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header


def fetched(content: bytes, size: int | None, asked: list | None = None):
    def part(start: int, stop: int) -> tuple[bytes, int | None]:
        if asked is not None:
            asked.append((start, stop))
        return content[start:stop], size

    return safetensors.read_header(part)


def test_a_header_is_as_long_as_it_says():
    header, asked = json.dumps({"a": tensor()}).encode(), []
    whole = body(header)
    assert fetched(whole + bytes(16), len(whole) + 16, asked) == ({"a": tensor()}, 16) and asked == [(0, 100_000)]
    assert fetched(whole, None) == ({"a": tensor()}, None)
    assert fetched(body(b"{}"), 10) == ({}, 0)
    for wrong, size, why in (
        (bytes(7), None, "too short"),
        (body(b"{}", 1), None, "header of 1 bytes"),
        (body(b"{}"), 9, "header of 2 bytes"),
        (body(b"{}", MOST_HEADER + 1), None, "header of 25,000,001 bytes"),
        (body(b"{}", MOST_HEADER), None, "ends early"),
        (body(b"{}", 3), None, "ends early"),
    ):
        with pytest.raises(Malformed, match=why):
            fetched(wrong, size)


def test_a_long_header_is_asked_for_once_more():
    header = json.dumps({"__metadata__": {"a": "x" * 200_000}}).encode()
    for known in (len(header) + 8, None):
        asked: list = []
        fetched(body(header), known, asked)
        assert asked == [(0, 100_000), (100_000, len(header) + 8)]


def test_a_header_that_ends_about_where_the_first_range_does_is_read_whole():
    frame = len(json.dumps({"__metadata__": {"a": ""}}))
    for whole in (99_999, 100_000, 100_001, 100_008, 100_016):
        asked: list = []
        header = {"__metadata__": {"a": "x" * (whole - 8 - frame)}}
        assert fetched(body(json.dumps(header).encode()), None, asked) == (header, None)
        assert asked == [(0, 100_000), (100_000, whole)][: 1 if whole <= 100_000 else 2]


def test_a_file_that_ends_in_the_padding_of_its_header_is_no_whole_file():
    """Writers fill headers with spaces up to a multiple of eight bytes: what is left of one is JSON all the same."""
    for missing in (1, 7, 8, 15, 16):
        with pytest.raises(Malformed, match="ends early"):
            fetched(body(b"{}" + b" " * 30)[:-missing], None)


def test_a_header_is_nested_no_deeper_than_any():
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b"1" + b"}" * depth

    fetched(body(nested(7)), None)
    with pytest.raises(Malformed, match="nested"):
        fetched(body(nested(8)), None)


def test_a_header_of_more_values_than_any_is_not_parsed():
    for count, why in ((5 * 10**6, "more than 5,000,000 values"), (5 * 10**6 - 1, "not JSON")):
        with pytest.raises(Malformed, match=why):
            fetched(body(b"[" + b"," * count), None)
