"""Headers of safetensors and GGUF files, and JSON: whatever comes is a census, a value, or a reason."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.hub import gguf, safetensors
from pipeline.hub.careful import Malformed, parse
from tests.fake_hub import models

TENSORS = {"a": ("BF16", [3, 4], 24), "b": ("F32", [], 4), "c": ("F4", [5], 3), "d": ("I64", [0, 7], 0)}
GGUF = models.gguf({"token_embd.weight": ([256, 40], 14), "norm": ([256], 0), "new": ([32, 2], 999)}, tokens=500)


def parts(body):
    return lambda start, stop: (body[start:stop], len(body))


def census(*headers):
    return safetensors.elements_by_dtype(safetensors.read_tensors(headers))


def test_a_safetensors_file_is_counted_by_dtype():
    assert census(("f", *safetensors.read_header(parts(models.safetensors(TENSORS))))) == {
        "BF16": 12,
        "F32": 1,
        "F4": 5,
        "I64": 0,
    }


@pytest.mark.parametrize("count", [1, 1500, 4000])
def test_a_header_of_any_length_takes_two_requests_at_most(count):
    body = models.safetensors({f"layer.{i}": ("U8", [1], 1) for i in range(count)})
    asked = []

    def part(start, stop):
        asked.append((start, stop))
        return body[start:stop], len(body)

    assert census(("f", *safetensors.read_header(part))) == {"U8": count}
    assert len(asked) <= 2 and asked[0] == (0, safetensors.FIRST_BYTES)


def test_a_gguf_file_is_counted_by_type_and_new_types_have_their_number():
    assert gguf.elements_by_type(gguf.read_tensors(parts(GGUF))) == {"F32": 256, "Q6_K": 10240, "type 999": 64}


def test_a_gguf_header_is_read_in_growing_parts_without_its_data():
    body = models.gguf({"a": ([7], 0)}, tokens=150_000) + b"\0" * 10_000_000
    asked = []

    def part(start, stop):
        asked.append((start, stop))
        return body[start:stop], len(body)

    assert gguf.elements_by_type(gguf.read_tensors(part)) == {"F32": 7}
    assert asked == [(0, 2**20), (2**20, 6 * 2**20)]


@given(st.binary(max_size=300), st.integers(0, len(GGUF)), st.booleans())
def test_a_broken_gguf_file_is_a_reason(noise, at, whole):
    body = noise if whole else GGUF[:at] + noise + GGUF[at + len(noise) :]
    try:
        counts = gguf.elements_by_type(gguf.read_tensors(parts(body)))
    except Malformed:
        return
    assert all(count >= 0 for count in counts.values())


@given(st.binary(max_size=200), st.integers(0, 400), st.booleans())
def test_a_broken_safetensors_file_is_a_reason(noise, at, whole):
    good = models.safetensors(TENSORS)
    body = noise if whole else good[:at] + noise + good[at + len(noise) :]
    with contextlib.suppress(Malformed):
        census(("f", *safetensors.read_header(parts(body))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["dtype", "shape", "data_offsets"]), inner)
    ),
    max_leaves=10,
)


@given(JSON)
def test_a_header_of_any_json_is_a_reason_or_a_census(value):
    try:
        counts = census(("f", value, 100), ("g", {"a": value}, None))
    except Malformed:
        return
    assert sum(counts.values()) > 0


@pytest.mark.full
@given(JSON)
def test_json_is_read_as_it_was_written(value):
    text = json.dumps(value)
    try:
        read = parse(text.encode())
    except Malformed as problem:
        assert "nested" in str(problem) or "not JSON" in str(problem)
        return
    assert json.dumps(read) == text.replace("-Infinity", '"-Infinity"') or "Infinity" in text or "NaN" in text


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_json_or_a_reason(content):
    with contextlib.suppress(Malformed):
        parse(content)


def test_infinite_numbers_become_text_as_the_bundled_snapshot_has_them():
    assert parse(b'{"a": Infinity, "b": -Infinity, "c": NaN}') == {"a": "Infinity", "b": "-Infinity", "c": "NaN"}


def test_a_gguf_file_full_of_lists_takes_little_memory():
    """A file has a few lists with an entry for each layer. 8 MB of them once took nine times as much memory to hold."""
    text = lambda name: len(name).to_bytes(8, "little") + name  # noqa: E731
    values = bytes(range(250)) * 40
    listed = b"".join(text(b"x.%d" % place) + struct.pack("<IIQ", 9, 0, len(values)) + values for place in range(400))
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 400) + listed
    tensors, metadata = gguf.read_header(lambda start, stop: (content[start:stop], len(content)))
    assert tensors == []
    assert 0 < sum(len(value) for value in metadata.values()) <= gguf._MOST_KEPT
    assert metadata["x.0"] == list(values)
