"""From headers on the Hub to published tables: one crawl of a fake Hub, the tables of it, and what is asked of them."""

from __future__ import annotations

import json

import pytest

from pipeline.anatomy import read_config
from pipeline.press import blank
from pipeline.press.anatomise import anatomise
from tests.confirm.headers import FORMATS, of_layers, repacked, written
from tests.fake_hub.models import gguf, plain, raw_safetensors, row, safetensors
from tests.once import blank_folder

LONG = {"max_position_embeddings": 8192}
LLAMA, MIXTRAL = written()["LlamaForCausalLM"], written()["MixtralForCausalLM"]
_WIDTHS = {"BF16": 2, "F16": 2, "I32": 4}


def file_of(header) -> bytes:
    """A safetensors file that has this summary."""
    tensors = {}
    for pattern, dtype, shape, count, layers in header["tensors"]:
        first, _, last = layers.partition("-")
        numbers = range(int(first), int(last or first) + 1) if layers else [0]
        each = count // len(numbers)
        for layer in numbers:
            for inner in range(each):
                name = pattern.replace("*", str(layer), 1).replace("*", str(inner), 1)
                size = _WIDTHS[dtype]
                for length in shape:
                    size *= length
                tensors[name] = (dtype, shape, size)
    return safetensors(tensors)


def add(case, model_id, config, body, file="model.safetensors", **more):
    files = (*(["config.json"] if config else []), file)
    make = row if config is None else plain
    case.hub.models.append(make(model_id, files=files, **more))
    if config:
        case.hub.files[model_id, "config.json"] = json.dumps({**config, **LONG}).encode()
    case.hub.files[model_id, file] = body


@pytest.fixture
def tables(case):
    total = {"safetensors": {"parameters": {"BF16": LLAMA["parameter_count"]}, "total": LLAMA["parameter_count"]}}
    add(case, "org/plain", LLAMA["config"], file_of(LLAMA["header"]), **total)
    add(
        case,
        "org/packed",
        LLAMA["config"],
        file_of(repacked(LLAMA["header"], FORMATS["gptq-int4"][0], of_layers)),
        **total,
    )
    add(case, "org/wider", {**LLAMA["config"], "vocab_size": 490}, file_of(LLAMA["header"]), safetensors=None)
    add(case, "org/other", {**LLAMA["config"], "num_key_value_heads": 4}, file_of(LLAMA["header"]), safetensors=None)
    add(case, "org/alone", None, file_of(MIXTRAL["header"]))
    add(case, "org/lying", LLAMA["config"], raw_safetensors(b"[]"), **total)
    tensors = {"token_embd.weight": ([256, 512], 14), "output_norm.weight": ([256], 0)}
    tensors |= {f"blk.{i}.attn_q.weight": ([256, 256], 12) for i in range(3)}
    add(case, "org/gguf", None, gguf(tensors), "a-Q4_K_M.gguf")
    case.crawl(header_requests=100, trending_share=0)
    # the tables as a build fills them, without the figures that it precomputes: none is asked here, nor the file that they are written to
    with blank.copied(blank_folder()) as connection:
        blank.fill(connection, anatomise(case.snapshot()))
        yield connection


@pytest.mark.full
def test_headers_reach_every_table(tables):
    def ask(query: str) -> dict:
        return {found[0]: found[1:] for found in tables.execute(query).fetchall()}

    grades = ask("SELECT model_id, anatomy_grade, parameter_count, stored_bytes, stored_format FROM model")
    count = LLAMA["parameter_count"]
    shapes = [(r[2], r[3]) for r in LLAMA["header"]["tensors"] if of_layers(r[0])]
    packed = sum((FORMATS["gptq-int4"][1](*shape) - 2 * shape[0] * shape[1]) * n for shape, n in shapes)
    assert grades == {
        "org/plain": ("exact", count, 2 * count, "bf16"),
        "org/packed": ("exact", count, 2 * count + packed, "gptq-int4"),
        "org/wider": ("derived", count, 2 * count, "bf16"),  # more rows than the config says
        "org/other": ("derived", count, 2 * count, "bf16"),  # not the config's attention
        "org/alone": ("derived", MIXTRAL["parameter_count"], 2 * MIXTRAL["parameter_count"], "bf16"),
        "org/lying": ("exact", count, 2 * count, "bf16"),  # by its config and the listing's total
        "org/gguf": ("derived", 256 * 512 + 256 + 3 * 256**2, 512 * 210 + 4 * 256 + 3 * 256 * 144, "gguf-q4_k_m"),
    }
    # the checkpoint as published, to the byte
    stored = ask("SELECT model_id, weights_bytes FROM weight WHERE dtype_id = 'stored'")
    assert {model: size for model, (size,) in stored.items()} == {model: row[2] for model, row in grades.items()}
    # weights in any format, and no cache where no config fits
    counted = ask("SELECT model_id, weights_bytes FROM weight WHERE dtype_id = 'bf16'")
    assert all(size == 2 * grades[model][1] for model, (size,) in counted.items())
    for model in ("org/alone", "org/other", "org/gguf"):
        for dtype in ("bf16", "stored"):
            answer = tables.execute(
                f"SELECT total_bytes, unknown_reason FROM footprint_of('{model}', dtype_id := '{dtype}')"
            )
            assert answer.fetchall() == [
                (None, "only its tensors are known: they give its weights, not what its layers cache or compute")
            ]
    for model in ("org/plain", "org/packed", "org/wider"):
        answer = tables.execute(
            f"SELECT weights_bytes, kv_cache_bytes FROM footprint_of('{model}', dtype_id := 'stored', context_tokens := 64)"
        )
        assert answer.fetchall() == [(grades[model][2], 3 * 2 * 32 * 64 * 2)]
    census = ask("SELECT tensor_class, element_count FROM tensor_class WHERE model_id = 'org/alone'")
    own: dict[str, int] = {}
    for tensor in read_config(MIXTRAL["config"]).tensors:
        own[tensor.tensor_class] = own.get(tensor.tensor_class, 0) + tensor.element_count
    assert {name: found for name, (found,) in census.items()} == own
    assert ask("SELECT model_id, active_parameter_count FROM model WHERE model_id = 'org/alone'") == {
        "org/alone": (None,)
    }
    notes = ask("SELECT model_id, anatomy_note, stored_parameter_note FROM model")
    assert "embedding 32,000 instead of 31,360" in notes["org/wider"][0]
    assert "scales, zero points and tables of packed formats" in notes["org/packed"][1]
    assert "not used: model.safetensors: the header" in notes["org/lying"][0] or "is no object" in notes["org/lying"][0]
    ((reason,),) = ask("SELECT model_id, reason FROM rejected").values()
    assert "its tensor headers are set aside" in reason
    kinds = tables.execute(
        "SELECT DISTINCT storage FROM stored_tensor WHERE model_id = 'org/packed' ORDER BY 1"
    ).fetchall()
    assert kinds == [("BF16",), ("gptq-int4",)]
