"""Models made to break the crawl: each is one row of `rejected` with its reason, and the others are read."""

from __future__ import annotations

import json
import re
import tracemalloc

import pytest

from pipeline.hub.listing import Unusable, read_row
from tests.fake_hub.models import config, gguf, plain, raw_safetensors, row, safetensors

GOOD = [f"org/good-{i:02}" for i in range(6)]


HEADER = {"a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}


def tensor(**changed):
    return raw_safetensors(json.dumps({"a": {**HEADER["a"], **changed}}).encode(), 8)


def safe(body):
    return row("org/bad", files=("model.safetensors",)), {"model.safetensors": body}


def conf(body):
    return plain("org/bad"), {"config.json": body}


HOSTILE = {
    "a config larger than records keep": (*conf(b'{"a": "' + b"x" * (2**18 - 8) + b'"}'), "config of 262,145 bytes"),
    "HTML instead of JSON": (*conf(b"<!DOCTYPE html><p>Sorry"), "config.json: HTML instead of JSON"),
    "truncated JSON": (*conf(config()[:-9]), "config.json: not JSON"),
    "not UTF-8": (*conf(b'{"a": "\xff"}'), "config.json: not UTF-8"),
    "a list": (*conf(b"[1]"), "config.json is no object"),
    "a key twice": (*conf(b'{"a": 1, "a": 2}'), "'a' is given twice"),
    "50 MB": (*conf(b'{"a": "' + b"x" * 50_000_000 + b'"}'), "an answer of 50,000,009 bytes"),
    "deep": (*conf(b'{"a":' * 100 + b"1" + b"}" * 100), "nested deeper than 40"),
    "bomb": (*conf(b"[" * 400_000), "nested too deep"),
    "wide": (*conf(b"[" + b"1," * 600_000 + b"1]"), "more than 500,000 values"),
    "a long number": (*conf(b'{"a": ' + b"9" * 5000 + b"}"), "not JSON"),
    "half a character": (*conf(b'{"a": "\\ud800"}'), "half a character"),
    "a large config": (*conf(json.dumps({"a": ["x" * 1000] * 300}).encode()), "config of 30"),
    "2^63": (*safe(raw_safetensors(b"{}", 8, 2**63)), "a safetensors header of 9,223,372,036,854,775,808 bytes"),
    "longer than its file": (*safe(raw_safetensors(b"{}", 8, 20_000_000)), "a safetensors header of 20,000,000"),
    "too short": (*safe(b"abc"), "too short"),
    "header no JSON": (*safe(raw_safetensors(b"nonsense")), "not JSON"),
    "header a list": (*safe(raw_safetensors(b"[]")), "is no object"),
    "no tensors": (*safe(raw_safetensors(b'{"__metadata__": {}}')), "0 tensors"),
    "lies about its shape": (*safe(tensor(shape=[4000])), "does not take 8 bytes"),
    "lies about its dtype": (*safe(tensor(dtype="F32")), "does not take 8 bytes"),
    "an odd dtype": (*safe(tensor(dtype="../x")), "is of dtype '../x'"),
    "negative shape": (*safe(tensor(shape=[-4])), "has no shape"),
    "infinite shape": (*safe(tensor(shape=[2**62, 2**62])), "does not take"),
    "shape of truths": (*safe(tensor(shape=[True])), "has no shape"),
    "beyond the file": (*safe(tensor(shape=[400], data_offsets=[0, 800])), "should hold 800 bytes"),
    "overlap": (
        *safe(raw_safetensors(json.dumps({"a": HEADER["a"], "b": HEADER["a"]}).encode(), 8)),
        "overlap",
    ),
    "a tensor twice": (
        *safe(
            raw_safetensors(
                b'{"a":' + json.dumps(HEADER["a"]).encode() + b',"a":' + json.dumps(HEADER["a"]).encode() + b"}", 8
            )
        ),
        "'a' is given twice",
    ),
    "a tensor in two shards": (
        row("org/bad", files=("model.safetensors.index.json", "model-1.safetensors", "model-2.safetensors")),
        {f"model-{i}.safetensors": safetensors({"a": ("BF16", [4], 8)}) for i in (1, 2)},
        "tensor 'a' is in 'model-1.safetensors' and in 'model-2.safetensors'",
    ),
    "a GGUF of nothing": (row("org/bad", files=("a.gguf",)), {"a.gguf": b"GGML" + b"\0" * 999}, "not a GGUF file"),
    "a GGUF that ends": (row("org/bad", files=("a.gguf",)), {"a.gguf": gguf({"a": ([4], 0)})[:90]}, "does not end"),
    "a GGUF of 2^60 pairs": (
        row("org/bad", files=("a.gguf",)),
        {"a.gguf": b"GGUF\x03\0\0\0" + b"\0" * 8 + (2**60).to_bytes(8, "little")},
        "1,152,921,504,606,846,976 pairs",
    ),
    "403": (plain("org/bad"), 403, "status 403: Access to this resource is disabled."),
    "451": (plain("org/bad"), 451, "status 451: Access to this resource is disabled."),
    "disabled": (plain("org/bad", disabled=True), {}, "disabled by the Hub"),
    "no sha": (plain("org/bad", sha=None), {}, "its revision is None"),
    "sha a path": (plain("org/bad", sha="../../etc/passwd"), {}, "its revision is '../../etc/passwd'"),
    "a negative total": (
        plain("org/bad", safetensors={"total": -1, "parameters": {}}),
        {},
        "stored_parameter_count is -1",
    ),
    "a total of 10^18": (plain("org/bad", safetensors={"total": 10**18}), {}, "outside 1 to"),
    "a total of text": (plain("org/bad", gguf={"total": "7B"}, safetensors=None), {}, "not a whole number"),
    "a licence that turns": (plain("org/bad", tags=["license:\u202emit"]), {}, "control character"),
    "a tag of 5 kB": (plain("org/bad", library_name="x" * 5000), {}, "longer than"),
    "a list for a library": (plain("org/bad", library_name=["x"]), {}, "not text"),
}


@pytest.fixture(params=HOSTILE, ids=lambda name: name.replace(" ", "-"))
def hostile(request):
    return HOSTILE[request.param]


@pytest.mark.some(4)
def test_a_bad_model_is_one_row_of_rejected_and_the_others_are_read(case, hostile):
    bad, given, reason = hostile
    case.add(*GOOD)
    case.hub.models.insert(3, bad)
    if isinstance(given, int):
        case.hub.refused["org/bad"] = (given, "", "Access to this resource is disabled.")
    else:
        case.hub.files |= {("org/bad", name): body for name, body in given.items()}
    tracemalloc.start()
    try:
        done = case.crawl(trending_share=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (done.written, done.rejected) == (6, 1)
    assert set(case.reasons()) == {"org/bad"}
    assert reason in case.reasons()["org/bad"]
    assert set(case.records()) == set(GOOD)
    assert peak < 100e6
    before = case.stable()
    asked = case.requests("resolve|metadata")
    case.crawl(trending_share=0)
    assert (case.requests("resolve|metadata"), case.stable()) == (0, before)
    assert asked <= 6 + 3


@pytest.mark.parametrize("told", [[7], "7", {"BF16": "7"}, {"I32": [7]}, {"BF16": -1}, {"I32": 10**400}])
def test_totals_by_dtype_that_are_no_counts_are_a_reason_of_their_row(told):
    found = read_row(plain("org/bad", safetensors={"total": 7, "parameters": told}))
    assert isinstance(found, Unusable) and "parameters_by_dtype" in found.reason


def test_a_total_is_of_packed_elements_where_more_than_a_hundredth_of_it_is():
    def kind(**counts):
        row = read_row(plain("org/a", safetensors={"total": sum(counts.values()), "parameters": counts}))
        return row.facts["parameters_kind"]

    assert kind(BF16=99, I32=1) == "exact_safetensors"
    assert kind(BF16=98, I32=1) == kind(I32=1) == "exact_packed_elements"


def test_a_known_model_that_turns_bad_keeps_what_was_known_of_it(case):
    case.add(*GOOD)
    case.crawl()
    before = case.records()
    case.hub.models[0] = plain(GOOD[0], version=2)
    case.hub.files[GOOD[0], "config.json"] = b"<html>"
    case.crawl()
    assert case.records() == before
    assert case.reasons() == {GOOD[0]: "config.json: HTML instead of JSON"}
    # and comes back with its next commit
    case.hub.models[0] = plain(GOOD[0], version=3)
    case.hub.files[GOOD[0], "config.json"] = config()
    case.crawl()
    assert case.reasons() == {}


NAMES = [
    "../../etc/passwd",
    "a/../b",
    "a/b/c",
    'a/"b"',
    "a/<script>alert(1)</script>",
    "a/\u202eb",
    "a/b\n",
    "a/\ud800",
    "",
    None,
    7,
    ["x"],
]


def test_rows_and_names_that_break_paths_or_html_are_rejected_and_never_asked_for(case):
    case.add(*GOOD)
    case.hub.models += [plain("org/x") | {"id": name} for name in NAMES]
    case.hub.models += ["a row of text"]
    done = case.crawl(trending_share=0)
    assert (done.written, done.rejected) == (6, len(NAMES) + 1)
    assert all(key.startswith("listing:") for key in case.reasons())
    assert case.requests("resolve") == 6
    text = (case.folder / "crawl" / "rejected.csv").read_text(encoding="utf-8")
    assert text.isprintable() or all(c.isprintable() or c == "\n" for c in text)
    written = {path.relative_to(case.top).as_posix() for path in case.top.rglob("*") if path.is_file()}
    assert all(re.fullmatch(r"(hub/crawl|work)/[a-z0-9/._-]+|[a-z]+\.csv", name) for name in written), written


def test_files_with_hostile_names_are_never_asked_for(case):
    case.hub.models.append(
        row(
            "org/x",
            files=("../config.json", "a/../../model.safetensors", "x\n.gguf", "<b>/config.json", "a b\u202e.gguf"),
        )
    )
    case.crawl()
    assert case.requests("resolve") == 0
