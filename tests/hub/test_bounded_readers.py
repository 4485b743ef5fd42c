"""What readers of strangers' bytes take grows no faster than the bytes: lines of Python that run, and memory, are counted, and no clock is asked."""

from __future__ import annotations

import json
import struct
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from test_gguf_format import ARRAY, STRING, UINT32, array, header, pair, tensor, text

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, read_config
from pipeline.ask import receipt_lines as receipt
from pipeline.ask.problems import Wrong
from pipeline.base.bounds import MOST_REPEATS
from pipeline.hub import gguf, safetensors, snapshot
from pipeline.hub.careful import Malformed, parse, problem_of
from pipeline.press.anatomise import anatomise

FEW = 100
TIMES = 4  # as many of what a stranger repeats
# for what begins with a fixed share of work it is less, for a sort or a table that grows a little more
SLACK = 1.3
MEMORY = 200_000  # bytes of caches that are made once


def work(run: Callable[[], object]) -> tuple[int, int]:
    """Lines that run, and bytes at most."""
    lines = 0

    def trace(_frame, event, _argument):
        nonlocal lines
        lines += event == "line"
        return trace

    tracemalloc.start()
    before, outer = tracemalloc.get_traced_memory()[0], sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(Malformed, Wrong, ContradictoryConfig, UnknownAnatomy):
            run()
    finally:
        sys.settrace(outer)
        most = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    return lines, most


def of_gguf(body: bytes) -> Callable[[], object]:
    return lambda: gguf.read_header(lambda start, stop: (body[start:stop], len(body)))


def of_safetensors(told: dict) -> Callable[[], object]:
    body = json.dumps(told).encode()
    whole = len(body).to_bytes(8, "little") + body

    def read() -> object:
        found, size = safetensors.read_header(lambda start, stop: (whole[start:stop], len(whole) + 4 * len(told)))
        return safetensors.elements_by_dtype(safetensors.read_tensors([("a.safetensors", found, size)]))

    return read


def of_json(body: str) -> Callable[[], object]:
    return lambda: problem_of(parse(body.encode()))


def of_log(body: str, folder: Path) -> Callable[[], object]:
    path = folder / "any.log"

    def read() -> object:
        path.write_text(body)
        return receipt.read(path)

    return read


def of_snapshot(files: dict[str, str], folder: Path) -> Callable[[], object]:
    def read() -> object:
        (folder / "model").mkdir(exist_ok=True)
        about = '{"snapshot_date": "2026-01-02", "origin": "test"}'
        for name, content in {"snapshot.json": about, "rejected.csv": "", "popularity.csv": "", **files}.items():
            (folder / name).write_text(content)
        return anatomise(snapshot.newest_snapshot(folder))

    return read


def record(number: int, **more: object) -> str:
    return json.dumps({"model_id": f"org/model-{number}", "sources": ["a"], **more}) + "\n"


LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "vocab_size": 100, "max_position_embeddings": 128,
}  # fmt: skip
SAID = {"BF16": 1}
ONE = {"dtype": "U8", "shape": [1]}
CASES: dict[str, Callable[[int, Path], Callable[[], object]]] = {
    "JSON: numbers": lambda n, _: of_json(f"[{','.join('1' * n)}]"),
    "JSON: fields": lambda n, _: of_json(json.dumps({f"f{i}": i for i in range(n)})),
    "JSON: depth": lambda n, _: of_json("[" * n + "]" * n),
    "JSON: one long word": lambda n, _: of_json(json.dumps("\ud83d\ude00" * n)),
    "JSON: one long number": lambda n, _: of_json("1" * n),
    "config: kinds of layers": lambda n, _: lambda: read_config({**LLAMA, "layer_types": ["full_attention"] * n}),
    "config: layers of as many kinds": lambda n, _: lambda: read_config(
        {**LLAMA, "num_hidden_layers": n, "layer_types": ["full_attention"] * n}
    ),
    "config: unknown fields": lambda n, _: lambda: read_config({**LLAMA, **{f"f{i}": {"a": i} for i in range(n)}}),
    "config: architectures": lambda n, _: lambda: read_config({**LLAMA, "architectures": ["LlamaForCausalLM"] * n}),
    "safetensors: tensors": lambda n, _: of_safetensors(
        {f"t{i}": {**ONE, "data_offsets": [i, i + 1]} for i in range(n)}
    ),
    "safetensors: tensors of nothing": lambda n, _: of_safetensors(
        {f"t{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(n)}
    ),
    "safetensors: metadata": lambda n, _: of_safetensors(
        {"__metadata__": {f"m{i}": "x" for i in range(n)}, "t": {**ONE, "data_offsets": [0, 1]}}
    ),
    "GGUF: pairs": lambda n, _: of_gguf(
        header([pair(f"llama.p{i}", UINT32, struct.pack("<I", i)) for i in range(n)], [tensor("t", [4])])
    ),
    "GGUF: one key again": lambda n, _: of_gguf(header([pair("llama.p", STRING, text("x"))] * n, [tensor("t", [4])])),
    "GGUF: tensors": lambda n, _: of_gguf(header([], [tensor(f"t{i}", [4], offset=32 * i) for i in range(n)])),
    "GGUF: texts of a tokenizer": lambda n, _: of_gguf(
        header([pair("tokenizer.t", ARRAY, array(STRING, n, text("") * n))], [tensor("t", [4])])
    ),
    "GGUF: lists of empty lists": lambda n, _: of_gguf(
        header([pair("llama.l", ARRAY, array(ARRAY, n, array(UINT32, 0, b"") * n))], [tensor("t", [4])])
    ),
    "GGUF: long lists": lambda n, _: of_gguf(
        header([pair(f"llama.l{i}", ARRAY, array(UINT32, 50, bytes(200))) for i in range(n)], [tensor("t", [4])])
    ),
    "log: lines of cards": lambda n, folder: of_log(
        "\n".join(f"load_tensors: CUDA{i} model buffer size = 1 MiB" for i in range(n)), folder
    ),
    "log: one long line": lambda n, folder: of_log("took KV model= buffer size " * n, folder),
    "log: lines of nothing": lambda n, folder: of_log("took\n" * n, folder),
    "snapshot: records": lambda n, folder: of_snapshot({"model/0.jsonl": "".join(map(record, range(n)))}, folder),
    "snapshot: one record again": lambda n, folder: of_snapshot({"model/0.jsonl": record(1) * n}, folder),
    "snapshot: lines of nothing": lambda n, folder: of_snapshot({"model/0.jsonl": "{\n" * n}, folder),
    "snapshot: one base of all": lambda n, folder: of_snapshot(
        {"model/0.jsonl": "".join(record(i, base_model_id="org/model-0", config=LLAMA, config_kind="verbatim",
                                         config_source="x", config_sources=["a"]) for i in range(n // 4))}, folder
    ),
    "snapshot: records that contradict themselves": lambda n, folder: of_snapshot(
        {"model/0.jsonl": "".join(record(i, config={**LLAMA, "hidden_size": -1}, config_kind="verbatim", config_source="x",
                                         config_sources=["a"]) for i in range(n))}, folder
    ),
    "snapshot: one that is rejected again": lambda n, folder: of_snapshot(
        {"rejected.csv": "model_id,revision,reason,sources\n" + "org/m,,why,a\n" * n}, folder
    ),
    "snapshot: popularity": lambda n, folder: of_snapshot(
        {"popularity.csv": "model_id,downloads_30d,likes,facts_as_of\n" + "org/m,1,1,2026\n" * n}, folder
    ),
}  # fmt: skip


@pytest.mark.some(4)
@pytest.mark.parametrize("case", CASES)
def test_a_reader_takes_no_more_than_in_proportion_to_what_it_reads(case, tmp_path):
    few, many = CASES[case](FEW, tmp_path), CASES[case](TIMES * FEW, tmp_path)
    work(few)  # what is read once for all, such as tables, is read now
    lines, memory = work(few)
    more_lines, more_memory = work(many)
    assert more_lines <= SLACK * TIMES * lines
    assert more_memory <= SLACK * TIMES * memory + MEMORY


def test_a_count_is_bounded_before_it_is_used(tmp_path):
    """A few bytes that say a billion cost what a few bytes cost."""
    small = work(of_gguf(header([], [], counts=(1, 1))))
    for told in ((2**62, 1), (1, 2**62)):
        lines, memory = work(of_gguf(header([], [], counts=told)))
        assert lines <= small[0] + 10 and memory <= small[1] + MEMORY
    body = header([pair("llama.l", ARRAY, array(STRING, 2**62, b""))], [tensor("t", [4])])
    assert work(of_gguf(body))[0] < 1000
    usual = work(lambda: read_config(LLAMA))
    for field in ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size"):
        lines, memory = work(lambda field=field: read_config({**LLAMA, field: 10**9}))
        assert lines <= usual[0] + 5 * MOST_REPEATS and memory <= usual[1] + 100 * MOST_REPEATS, field


def test_what_is_said_of_a_model_that_is_listed_again_and_again_ends(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "snapshot.json").write_text('{"snapshot_date": "2026-01-02"}')
    (tmp_path / "model" / "0.jsonl").write_text(record(1) * 5_000)
    (found,) = snapshot.newest_snapshot(tmp_path).rejected
    assert "listed again at model/0.jsonl:2;" in found.reason
    assert len(found.reason) < snapshot.MOST_REASONS + 200


def test_a_file_is_not_read_on_beyond_the_most_tensors(monkeypatch):
    """A checkpoint of many files is refused at the first that is too much: the others are not asked for."""
    monkeypatch.setattr(safetensors, "MOST_TENSORS", 5)
    asked = []

    def files():
        for number in range(100):
            asked.append(number)
            told = {f"{number}-{i}": {**ONE, "data_offsets": [i, i + 1]} for i in range(3)}
            yield f"{number}.safetensors", told, None

    with pytest.raises(Malformed, match="6 tensors"):
        safetensors.read_tensors(files())
    assert asked == [0, 1]
