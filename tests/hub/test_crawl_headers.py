"""Headers in a crawl: what they cost, when they are asked for, and what becomes of those that lie. The real client, a fake Hub."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.bounds import MOST_TENSOR_ROWS
from pipeline.hub import headers
from pipeline.hub.record import read_record
from pipeline.hub.summary import MOST_ROWS, layer_numbers, problem_of, summarise
from tests.fake_hub.models import LLAMA_COUNT, config, gguf, plain, raw_safetensors, row, safetensors
from tests.fake_hub.patience import HASTY

ASKED = {"header_requests": 1000, "trending_share": 0}
INDEX = "model.safetensors.index.json"
SHARDS = tuple(f"model-0000{i}-of-00002.safetensors" for i in (1, 2))


def llama(layers: int = 2, dtype: str = "BF16") -> dict[str, tuple[str, list[int], int]]:
    """The tensors of the fake Hub's config, by name."""
    shapes = {"model.embed_tokens.weight": [1000, 64], "lm_head.weight": [1000, 64], "model.norm.weight": [64]}
    for i in range(layers):
        at = f"model.layers.{i}"
        shapes |= {f"{at}.self_attn.{p}_proj.weight": [64 if p in "qo" else 32, 64] for p in "qkvo"}
        shapes |= {f"{at}.mlp.{p}_proj.weight": [172, 64] for p in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.weight": [64, 172]}
        shapes |= {f"{at}.{p}_layernorm.weight": [64] for p in ("input", "post_attention")}
    width = {"BF16": 2, "F32": 4}[dtype]
    return {
        name: (dtype, shape, width * shape[0] * (shape[1] if len(shape) > 1 else 1)) for name, shape in shapes.items()
    }


def sharded(case, model_id: str, **more) -> None:
    tensors = list(llama().items())
    case.hub.models.append(plain(model_id, files=("config.json", INDEX, *SHARDS), **more))
    case.hub.files[model_id, "config.json"] = config()
    for name, part in zip(SHARDS, (tensors[:10], tensors[10:]), strict=True):
        case.hub.files[model_id, name] = safetensors(dict(part))


def together(case, model_id: str) -> dict[str, Any]:
    """The headers of all shards of a model, by file."""
    return {
        name: json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
        for (owner, name), body in case.hub.files.items()
        if owner == model_id and name in SHARDS
    }


def single(case, model_id: str, body: bytes | None = None, **more) -> None:
    case.hub.models.append(plain(model_id, **more))
    case.hub.files[model_id, "config.json"] = config()
    case.hub.files[model_id, "model.safetensors"] = safetensors(llama()) if body is None else body


def test_a_summary_is_a_row_for_each_kind_of_tensor_and_the_record_reads_it_again(case):
    single(case, "org/a")
    case.crawl(**ASKED)
    record = case.records()["org/a"]
    header = record["header"]
    assert (header["format"], header["file"], header["file_count"]) == ("safetensors", "model.safetensors", 1)
    assert ["model.layers.*.mlp.up_proj.weight", "BF16", [172, 64], 2, "0-1"] in header["tensors"]
    assert len(header["tensors"]) == 3 + 9
    assert read_record(record)[1] is None
    assert "header_problem" not in record and "is_header_due" not in record
    # and it is no secret that its total is that of the listing
    assert record["stored_parameter_count"] == LLAMA_COUNT


def test_a_single_file_costs_one_request_and_shards_one_together_or_one_each(case):
    single(case, "org/single")
    sharded(case, "org/one-request")
    sharded(case, "org/by-shard")
    case.hub.sharded["org/one-request"] = json.dumps(
        {"headers": together(case, "org/one-request"), "index": {}}
    ).encode()
    case.crawl(**ASKED)
    counts = {name: case.hub.asked(f"org/{name}") for name in ("single", "one-request", "by-shard")}
    # each has one more for its config
    assert counts == {"single": 2, "one-request": 2, "by-shard": 4}
    tables = [case.records()[f"org/{name}"]["header"]["tensors"] for name in counts]
    assert tables[0] == tables[1] == tables[2]
    case.requests()
    case.crawl(**ASKED)
    assert case.requests("resolve|metadata") == 0


def test_an_unchanged_commit_is_never_asked_again_and_a_new_one_is(case):
    single(case, "org/a")
    case.crawl(**ASKED)
    before = case.stable()
    case.requests()
    case.crawl(**ASKED)
    assert (case.requests("resolve"), case.stable()) == (0, before)
    case.hub.models = [plain("org/a", version=2)]
    case.hub.files["org/a", "model.safetensors"] = safetensors(llama(dtype="F32"))
    case.crawl(**ASKED)
    assert case.requests("resolve") == 2
    assert {tensor[1] for tensor in case.records()["org/a"]["header"]["tensors"]} == {"F32"}


def test_without_headers_nothing_is_asked_and_the_next_crawl_with_them_asks_once(case):
    single(case, "org/a")
    case.crawl(header_requests=0, trending_share=0)
    assert case.hub.asked("resolve.*safetensors") == 0
    assert case.records()["org/a"]["is_header_due"] is True
    case.crawl(**ASKED)
    assert case.hub.asked("resolve.*safetensors") == 1
    assert "header" in case.records()["org/a"] and "is_header_due" not in case.records()["org/a"]
    case.requests()
    case.crawl(**ASKED)
    assert case.requests("resolve") == 0


def test_a_crawl_keeps_to_its_requests_for_headers_and_the_next_ones_do_the_rest(case):
    for i in range(7):
        single(case, f"org/m{i}")
    seen = []
    for _ in range(4):
        case.requests()
        done = case.crawl(header_requests=3, trending_share=0)
        assert not done.is_partial
        seen.append(case.requests("resolve.*safetensors"))
    assert seen == [3, 3, 1, 0]
    assert all("header" in record for record in case.records().values())


def test_totals_that_the_hub_does_not_list_are_asked_for_in_any_case(case):
    case.hub.models.append(row("org/a", files=("model.safetensors",)))
    case.hub.files["org/a", "model.safetensors"] = safetensors(llama())
    case.crawl(header_requests=0, trending_share=0)
    record = case.records()["org/a"]
    assert record["stored_parameter_count"] == LLAMA_COUNT
    assert len(record["header"]["tensors"]) == 12


def test_a_gguf_files_tensors_are_kept_with_outputs_first(case):
    case.hub.models.append(row("org/a", files=("a-Q8_0.gguf", "a-Q4_K_M.gguf")))
    body = gguf(
        {
            "token_embd.weight": ([256, 40], 14),
            "blk.0.attn_q.weight": ([256, 128], 12),
            "blk.1.attn_q.weight": ([256, 128], 12),
        }
    )
    case.hub.files["org/a", "a-Q4_K_M.gguf"] = body
    case.crawl(**ASKED)
    header = case.records()["org/a"]["header"]
    assert (header["format"], header["file"]) == ("gguf", "a-Q4_K_M.gguf")
    assert header["tensors"] == [
        ["blk.*.attn_q.weight", "Q4_K", [128, 256], 2, "0-1"],
        ["token_embd.weight", "Q6_K", [40, 256], 1, ""],
    ]


GOOD = {"a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}


def lie(**changed) -> bytes:
    return raw_safetensors(json.dumps({"a": {**GOOD["a"], **changed}}).encode(), 8)


LIES = {
    "truncated": (safetensors(llama())[:700], "a safetensors header of 2,313 bytes"),
    "a length beyond the file": (raw_safetensors(b"{}", 8, 2**40), "a safetensors header of 1,099,511,627,776 bytes"),
    "shape and offsets": (lie(shape=[400]), "does not take 8 bytes"),
    "a negative size": (lie(shape=[-4]), "has no shape"),
    "beyond the file": (lie(shape=[400], data_offsets=[0, 800]), "should hold 800 bytes"),
    "overlap": (raw_safetensors(json.dumps({**GOOD, "b": GOOD["a"]}).encode(), 8), "overlap"),
    "huge": (lie(shape=[2**40, 2**40], data_offsets=[0, 2**63]), "does not take"),
    "not UTF-8": (raw_safetensors(b'{"\xff": {}}'), "not UTF-8"),
    "a name that turns": (raw_safetensors(json.dumps({"a\u202eb": GOOD["a"]}).encode(), 8), "no usable name"),
    "a long name": (raw_safetensors(json.dumps({"a" * 999: GOOD["a"]}).encode(), 8), "no usable name"),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_set_aside_with_its_reason_and_the_model_stays(case, lie):
    body, reason = LIES[lie]
    single(case, "org/bad", body)
    single(case, "org/good")
    done = case.crawl(**ASKED)
    assert (done.written, done.rejected) == (2, 0)
    record = case.records()["org/bad"]
    assert reason in record["header_problem"]
    assert record["config"] and "header" not in record
    assert "header" in case.records()["org/good"]
    case.requests()
    case.crawl(**ASKED)
    assert case.requests("resolve") == 0


def test_an_index_has_as_many_shards_as_its_names_say_one_or_the_most(case, monkeypatch):
    monkeypatch.setattr(headers, "MOST_SHARDS", 2)
    for count in range(4):
        names = [f"model-0000{i + 1}-of-0000{count}.safetensors" for i in range(count)]
        case.hub.models.append(plain(f"org/{count}", files=("config.json", INDEX, *names)))
        case.hub.files[f"org/{count}", "config.json"] = config()
        for i, name in enumerate(names):
            case.hub.files[f"org/{count}", name] = safetensors(dict(list(llama().items())[i::count]))
    case.crawl(**ASKED)
    records = case.records()
    assert [records[f"org/{count}"].get("header", {}).get("file_count") for count in range(4)] == [None, 1, 2, None]
    assert [records[f"org/{count}"]["header_problem"] for count in (0, 3)] == [f"{INDEX}: {n} shards" for n in (0, 3)]


def test_a_missing_shard_is_a_reason_and_half_a_set_of_them_too(case):
    sharded(case, "org/missing")
    del case.hub.files["org/missing", SHARDS[1]]
    sharded(case, "org/half")
    case.hub.models[-1]["siblings"].pop()
    case.crawl(**ASKED)
    records = case.records()
    assert records["org/missing"]["header_problem"].endswith(f"{SHARDS[1]}: status 404 (EntryNotFound)")
    assert records["org/half"]["header_problem"] == f"{INDEX}: 1 shards of 2"


@pytest.mark.full
def test_a_stall_is_tried_again_and_then_left_to_the_next_crawl_and_costs_the_headers_alone(case):
    single(case, "org/slow")
    single(case, "org/good")
    stalls = []

    def stall(handler) -> bool:
        if "/org/slow/resolve" in handler.path and handler.path.endswith(".safetensors") and len(stalls) < 3:
            stalls.append(handler.path)
            time.sleep(1.0)
            handler.reset()
            return True
        return False

    case.hub.faults.append(stall)
    case.crawl(**ASKED, patience=HASTY)
    assert len(stalls) == 3
    assert set(case.records()) == {"org/good", "org/slow"} and case.reasons() == {}
    slow = case.records()["org/slow"]
    assert slow["config"] and slow["stored_parameter_count"] and slow["is_header_due"] and "header" not in slow
    case.crawl(**ASKED)
    assert "header" in case.records()["org/slow"]


def test_the_librarys_own_files_go_before_others_of_the_same_weights(case):
    files = ("config.json", "consolidated.safetensors", "model.fp16.safetensors", "model.safetensors")
    case.hub.models.append(plain("org/a", files=files))
    case.hub.files["org/a", "config.json"] = config()
    for name in files[1:]:
        case.hub.files["org/a", name] = safetensors(llama())
    case.crawl(**ASKED)
    assert case.records()["org/a"]["header"]["file"] == "model.safetensors"


def test_a_closed_model_has_no_headers_and_that_is_no_fault(case):
    single(case, "org/gated", gated="manual")
    case.hub.refused["org/gated"] = (403, "GatedRepo")
    case.crawl(**ASKED)
    assert not case.records()["org/gated"].keys() & {"header", "header_problem"}
    assert case.reasons() == {}


def test_a_million_experts_are_few_rows():
    names = (f"model.layers.{i}.mlp.experts.{j}.up_proj.weight" for i in range(61) for j in range(256))
    header = summarise("safetensors", "f", 1, ((name, "F8_E4M3", [2048, 7168]) for name in names))
    assert header["tensors"] == [
        ["model.layers.*.mlp.experts.*.up_proj.weight", "F8_E4M3", [2048, 7168], 61 * 256, "0-60"]
    ]


@given(
    st.dictionaries(
        st.from_regex(r"[a-c](\.[0-9]{1,2}){0,2}\.w", fullmatch=True), st.lists(st.integers(0, 9), max_size=3)
    )
)
def test_a_summary_keeps_every_tensor_and_its_elements(shapes):
    rows = summarise("gguf", "f", 1, ((name, "F32", shape) for name, shape in shapes.items()))["tensors"]
    assert sum(count for *_, count, _ in rows) == len(shapes)
    assert sum(math.prod(shape) * count for _, _, shape, count, _ in rows) == sum(map(math.prod, shapes.values()))


def test_a_summary_is_bounded_and_its_order_is_that_of_its_rows():
    tensors = [(f"t{i}", "F32", [i]) for i in range(50)]
    assert summarise("gguf", "f", 1, tensors) == summarise("gguf", "f", 1, tensors[::-1])
    with pytest.raises(Exception, match=f"more than {MOST_ROWS:,} kinds"):
        summarise("gguf", "f", 1, ((f"t{i}x", "F32", [1]) for i in range(MOST_ROWS + 1)))


@pytest.mark.parametrize("ranges", ["", "0", "0-2,5", "7,9-12"])
def test_layers_are_read_as_they_were_written(ranges):
    numbers = layer_numbers(ranges)
    names = [(f"layers.{i}.w", "F32", [1]) for i in numbers] or [("w", "F32", [1])]
    assert summarise("gguf", "f", 1, names)["tensors"][0][4] == ranges


def test_a_summary_has_no_more_layers_than_models_have_rows():
    def of(*ranges):
        rows = [[f"a{i}", "F32", [1], 1, said] for i, said in enumerate(ranges)]
        return problem_of({"format": "gguf", "file": "f", "file_count": 1, "tensors": rows})

    half = MOST_TENSOR_ROWS // 2
    assert of(f"1-{half},{half + 2}-{MOST_TENSOR_ROWS}", f"{MOST_TENSOR_ROWS}") is None
    assert "more than" in of(f"1-{half},{half + 2}-{MOST_TENSOR_ROWS}", f"{half}-{half + 1}")
    assert "more than" in of(f"1-{MOST_TENSOR_ROWS + 1}")


@pytest.mark.parametrize("shape", [[], [0, 7], [1] * 16])
def test_a_summary_has_tensors_of_any_shape_that_files_have(shape):
    header = summarise("safetensors", "f", 1, [("a", "F32", shape), ("b", "F32", [1])])
    assert problem_of(header) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"format": "zip"},
        {"tensors": [["a", "F32", [1] * 17, 1, ""]]},
        {"file": ""},
        {"file_count": 0},
        {"file_count": 10_001},
        {"tensors": []},
        {"tensors": [["a", "F32", [1], 1]]},
        {"tensors": [["a", "F32", [-1], 1, ""]]},
        {"tensors": [["a", "F32", [1], True, ""]]},
        {"tensors": [["a\u202e", "F32", [1], 1, ""]]},
        {"tensors": [["a", "F32", [1], 1, "5-2"]]},
        {"tensors": [["a", "F32", [10**9, 10**9], 1, ""]]},
        {"more": 1},
    ],
)
def test_a_record_with_a_bad_summary_is_rejected(changed):
    header = {"format": "gguf", "file": "f", "file_count": 1, "tensors": [["a", "F32", [1], 1, ""]]}
    assert problem_of(header) is None
    record = {"model_id": "org/a", "header": {**header, **changed}}
    assert "header is" in read_record(record)[1]
