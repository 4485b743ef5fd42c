"""What a crawl writes, what it asks for, and that it asks for nothing twice: the real client against a Hub on loopback."""

from __future__ import annotations

import json

import pytest

from pipeline.hub.traffic import Unavailable
from tests.fake_hub.day import TODAY
from tests.fake_hub.models import LLAMA, LLAMA_COUNT, config, gguf, plain, row, safetensors, sha_of


@pytest.mark.full
def test_a_first_crawl_costs_a_page_of_the_list_per_hundred_and_one_request_a_model(case):
    case.add(*(f"org{i % 9}/model-{i}" for i in range(250)))
    done = case.crawl()
    assert (done.listed, done.read, done.written, done.rejected, done.is_partial) == (250, 250, 250, 0, False)
    # three pages by downloads, three by trend
    assert done.requests == {"api": 6, "file": 250}
    snapshot = case.snapshot()
    assert (snapshot.origin, snapshot.date.isoformat(), len(snapshot.records)) == ("crawl", TODAY, 250)
    record = next(r for r in snapshot.records if r.model_id == "org3/model-3")
    assert record.config == {key: LLAMA[key] for key in sorted(LLAMA)}
    assert (record.config_kind, record.config_source) == ("verbatim", "huggingface-hub:config.json")
    assert record.revision == sha_of("org3/model-3 1")
    assert (record.stored_parameter_count, record.parameters_kind) == (LLAMA_COUNT, "exact_safetensors")
    assert record.parameters_by_dtype == {"BF16": LLAMA_COUNT}
    assert (record.license, record.is_gated, record.source_ids) == ("apache-2.0", False, ("huggingface-hub",))
    assert snapshot.popularity["org3/model-3"].facts_as_of == TODAY


def test_a_crawl_of_an_unchanged_hub_costs_the_list_alone_and_changes_not_one_byte(case):
    case.add(*(f"org{i % 9}/model-{i}" for i in range(150)))
    case.hub.models.append(row("../evil"))
    case.hub.models.append(row("org/broken"))
    case.hub.files["org/broken", "config.json"] = b"<html>no</html>"
    case.crawl()
    before = case.stable()
    case.requests()
    for model in case.hub.models:
        model["downloads"] += 7
    done = case.crawl()
    assert case.stable() == before
    assert case.requests("resolve") == 0
    assert (done.unchanged, done.read, done.rejected, set(done.requests)) == (151, 0, 2, {"api"})
    assert case.snapshot().popularity["org3/model-3"].downloads_30d == plain("org3/model-3")["downloads"] + 7


def test_a_new_commit_costs_one_model_and_changes_one_line(case):
    case.add("org/a", "org/b", "org/c")
    case.crawl()
    before = case.stable()["o.jsonl"].splitlines()
    case.requests()
    case.hub.models[1] = plain("org/b", version=2)
    case.hub.files["org/b", "config.json"] = config(hidden_size=128)
    done = case.crawl()
    after = case.stable()["o.jsonl"].splitlines()
    assert (done.read, case.requests("resolve")) == (1, 1)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    assert case.records()["org/b"]["config"]["hidden_size"] == 128


@pytest.mark.full
def test_thousands_are_listed_in_pages_and_only_as_many_as_asked_for(case):
    case.hub.page = 1000
    case.hub.models = [plain(f"org{i % 40}/m{i}", files=()) for i in range(6000)]
    done = case.crawl(model_count=5000, trending_share=0)
    assert (done.listed, done.requests) == (5000, {"api": 5})
    assert len(case.snapshot().records) == 5000
    assert {path.name for path in (case.folder / "crawl" / "model").iterdir()} == {"o.jsonl"}


def test_what_the_hub_does_not_give_keeps_its_source(case):
    shape = {
        "config": {"model_type": "llama"},
        "config_kind": "sibling",
        "config_source": "shape of a/b",
        "config_sources": ["s1"],
    }
    totals = {"stored_parameter_count": 7, "parameters_kind": "exact_safetensors", "parameters_sources": ["s2"]}
    known = {
        "model_id": "org/gated",
        "sources": ["s0"],
        "quantization_hint": "AWQ-4bit",
        "license": "mit",
        **shape,
        **totals,
    }
    elsewhere = {**known, "model_id": "elsewhere/known"}
    case.bundle(known, elsewhere, popularity=f"elsewhere/known,5,6,{TODAY}\n")
    case.hub.models.append(plain("org/gated", gated="manual", tags=[]))
    case.hub.refused["org/gated"] = (401, "GatedRepo")
    case.crawl()
    records = case.records()
    assert records["elsewhere/known"] == elsewhere
    gated = records["org/gated"]
    # the listing's totals, the sibling's config, a licence that only the other source gives
    assert (gated["stored_parameter_count"], gated["parameters_sources"]) == (LLAMA_COUNT, ["huggingface-hub"])
    assert {key: gated[key] for key in shape} == shape
    assert (gated["license"], gated["quantization_hint"], gated["is_gated"]) == ("mit", "AWQ-4bit", True)
    assert gated["sources"] == ["huggingface-hub", "s0"]
    assert case.snapshot().popularity["elsewhere/known"].downloads_30d == 5
    before = case.stable()
    case.crawl()
    assert case.stable() == before
    assert case.snapshot().rejected == ()


def test_gated_and_private_models_keep_the_totals_of_the_listing_and_are_marked(case):
    case.hub.models += [plain("org/gated", gated="auto"), plain("org/private", private=True)]
    case.hub.refused = {"org/gated": (403, "GatedRepo"), "org/private": (401, "")}
    done = case.crawl()
    records = case.records()
    assert (records["org/gated"]["is_gated"], records["org/private"]["is_private"]) == (True, True)
    assert all(r["stored_parameter_count"] == LLAMA_COUNT and "config" not in r for r in records.values())
    assert done.rejected == 0
    case.requests()
    case.crawl()
    assert case.requests("resolve") == 0


@pytest.mark.some(2)
@pytest.mark.parametrize(("status", "code"), [(404, "RepoNotFound"), (410, ""), (401, "RepoNotFound"), (401, "")])
def test_a_removed_model_is_kept_with_the_date_and_not_asked_for_again(case, status, code):
    case.add("org/stays", "org/goes")
    case.crawl()
    kept = case.records()["org/goes"]
    old = (
        (case.folder / "crawl" / "popularity.csv")
        .read_text()
        .replace(f"org/goes,{plain('org/goes')['downloads']},", "org/goes,1,")
    )
    (case.folder / "crawl" / "popularity.csv").write_text(old.replace(TODAY, "2020-01-01"))
    del case.hub.models[1]
    case.hub.refused["org/goes"] = (status, code)
    done = case.crawl()
    assert done.removed == 1
    assert case.records()["org/goes"] == {**kept, "removed_at": TODAY}
    assert case.snapshot().rejected == ()
    case.requests()
    case.crawl()
    assert case.requests("goes") == 0
    assert case.records()["org/goes"]["removed_at"] == TODAY
    # and back again
    case.hub.refused.clear()
    case.add("org/goes")
    case.crawl()
    assert "removed_at" not in case.records()["org/goes"]


def test_a_model_that_vanishes_between_list_and_config_is_removed_or_rejected(case):
    case.add("org/known", "org/new")
    case.hub.models.pop()
    case.crawl()
    case.hub.models = [plain("org/known", version=2), plain("org/new")]
    case.hub.refused = dict.fromkeys(("org/known", "org/new"), (404, "RepoNotFound"))
    case.crawl()
    assert case.records()["org/known"]["removed_at"] == TODAY
    assert "org/new" not in case.records()
    assert "status 404 (RepoNotFound)" in case.reasons()["org/new"]


def test_include_exclude_and_base_models(case):
    case.list(
        "include",
        "model_id,kind,reason,named_in",
        "wanted/one,test,for a test,nowhere",
        "wanted/none,test,for a test,nowhere",
    )
    case.list("exclude", "pattern,reason", "tiny/*,random weights")
    case.add("org/a", "org/b", "tiny/x", tags=["base_model:quantized:base/model", "base_model:base/model"])
    case.add("base/model", "wanted/one", pipeline_tag="translation")
    done = case.crawl()
    assert set(case.records()) == {"org/a", "org/b", "base/model", "wanted/one"}
    assert case.records()["org/a"]["base_model_id"] == "base/model"
    assert case.reasons() == {
        "wanted/none": "the Hub has no such model, or none for us (/api/models/wanted/none: status 401: Invalid username or password.)"
    }
    assert done.rejected == 1
    before = case.stable()
    case.requests()
    case.crawl()
    assert case.requests("base/model|wanted") == 0
    assert case.stable() == before


def test_what_matters_is_asked_for_until_a_crawl_has_read_it_though_others_know_of_it(case):
    rows = [{"model_id": f"old/{name}", "sources": ["s"]} for name in ("listed", "other")]
    case.bundle(*rows, popularity=f"old/listed,1,1,{TODAY}\nold/other,1,1,{TODAY}\n")
    case.list(
        "include",
        "model_id,kind,reason,named_in",
        "old/listed,speech,for a test,nowhere",
        "gone/one,speech,for a test,nowhere",
    )
    case.add("org/x")
    case.add("old/listed", "old/other", pipeline_tag="translation")
    case.hub.refused["gone/one"] = (404, "RepoNotFound")
    case.crawl()
    assert (case.requests("models/old/listed"), "revision" in case.records()["old/listed"]) == (1, True)
    assert "the Hub has no such model" in case.reasons()["gone/one"]
    case.crawl()
    assert case.requests("models/(old|gone)") == 0


def test_known_models_that_no_list_has_are_asked_for_when_they_were_not_seen_for_long(case):
    rows = [{"model_id": f"old/{name}", "sources": ["s"]} for name in "abc"]
    case.bundle(*rows, popularity=f"old/a,1,1,{TODAY}\nold/b,1,1,2020-01-05\nold/c,1,1,2019-01\n")
    case.add("org/x")
    case.add("old/a", "old/b", "old/c", pipeline_tag="translation")
    case.crawl(recheck_count=1)
    assert (case.requests("models/old/c"), case.snapshot().popularity["old/c"].facts_as_of) == (1, TODAY)
    case.crawl()
    assert {r for r in case.records() if "revision" in case.records()[r]} == {"old/b", "old/c", "org/x"}


def test_a_dry_run_reads_the_lists_and_says_what_it_would_ask(case):
    case.add("org/a", "org/b")
    done = case.crawl(is_dry_run=True)
    assert case.requests("resolve") == 0
    assert not (case.folder / "crawl").exists()
    said = "\n".join(case.said)
    assert "would read 2 models in about 2 requests" in said and "org/a@" in said
    assert done.written == 0


def test_a_budget_is_kept_and_what_it_bought_is_published_as_partial(case):
    case.add(*(f"org/m{i:02}" for i in range(20)))
    done = case.crawl(budget=12, trending_share=0, threads=1)
    assert (case.requests(), sum(done.requests.values())) == (12, 12)
    assert (done.read, done.pending, done.is_partial, done.written) == (11, 9, True, 11)
    assert case.snapshot().origin == "partial crawl"
    done = case.crawl(trending_share=0)
    # the list of the interrupted crawl is used again, and nothing that was read
    assert (case.requests(), done.requests) == (9, {"file": 9})
    assert (done.written, done.is_partial, case.snapshot().origin) == (20, False, "crawl")


def test_a_diffusion_pipeline_has_its_denoisers_config_with_those_of_its_parts(case):
    index = {
        "_class_name": "FluxPipeline",
        "transformer": ["diffusers", "FluxTransformer2DModel"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "vae": ["diffusers", "AutoencoderKL"],
        "vocoder": ["ltx2", "LTX2Vocoder"],
        "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
        "../../etc": ["diffusers", "x"],
    }
    files = {
        "model_index.json": index,
        "transformer/config.json": {"_class_name": "FluxTransformer2DModel", "num_layers": 19},
        "text_encoder/config.json": {"model_type": "clip_text_model", "hidden_size": 8, "id2label": {"0": "a"}},
        "vocoder/config.json": {"_class_name": "LTX2Vocoder"},
        "vae/config.json": {"_class_name": "AutoencoderKL"},
    }
    weights = safetensors({"a": ("F16", [3], 6)})
    name = "transformer/diffusion_pytorch_model.safetensors"
    case.hub.models.append(row("org/pipe", files=(*files, name)))
    case.hub.files = {("org/pipe", path): json.dumps(value).encode() for path, value in files.items()}
    case.hub.files["org/pipe", name] = weights
    case.crawl()
    record = case.records()["org/pipe"]
    assert record["config"]["num_layers"] == 19
    assert record["config"]["text_encoder_configs"]["text_encoder"] == {
        "hidden_size": 8,
        "model_type": "clip_text_model",
        "num_labels": 1,
    }
    assert record["config"]["_vae_config"] == {"_class_name": "AutoencoderKL"}
    assert record["config"]["part_configs"] == {"vocoder": {"_class_name": "LTX2Vocoder"}}
    assert record["parameters_by_dtype"] == {"F16": 3}
    assert case.requests("etc") == 0


def test_sharded_headers_cost_one_request_and_single_and_gguf_files_their_header(case):
    shards = {f"model-0000{i}-of-00002.safetensors": safetensors({f"t{i}": ("BF16", [8, i], 16 * i)}) for i in (1, 2)}
    index = "model.safetensors.index.json"
    case.hub.models = [
        row("org/one-request", files=(index, *shards)),
        row("org/by-shard", files=(index, *shards)),
        row("org/single", files=("model.safetensors",)),
        row("org/gguf", files=("a-Q8_0.gguf", "a-Q4_K_M.gguf")),
    ]
    headers = {name: json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")]) for name, body in shards.items()}
    case.hub.sharded["org/one-request"] = json.dumps({"headers": headers, "index": {}}).encode()
    case.hub.files = {("org/by-shard", name): body for name, body in shards.items()}
    long = {f"layer.{i}.weight": ("F32", [2], 8) for i in range(3000)}
    case.hub.files["org/single", "model.safetensors"] = safetensors(long)
    case.hub.files["org/gguf", "a-Q4_K_M.gguf"] = gguf({"a": ([256, 2], 12), "b": ([5], 0)}, tokens=90_000)
    case.crawl(trending_share=0)
    records = case.records()
    assert (
        records["org/one-request"]["parameters_by_dtype"]
        == records["org/by-shard"]["parameters_by_dtype"]
        == {"BF16": 24}
    )
    assert records["org/single"]["stored_parameter_count"] == 6000
    assert records["org/gguf"]["elements_by_gguf_type"] == {"F32": 5, "Q4_K": 512}
    assert (records["org/gguf"]["gguf_file"], records["org/gguf"]["parameters_kind"]) == ("a-Q4_K_M.gguf", "exact_gguf")
    counts = {name: case.hub.asked(f"org/{name}") for name in ("one-request", "by-shard", "single", "gguf")}
    assert counts == {"one-request": 1, "by-shard": 3, "single": 2, "gguf": 2}
    sent = [given for _, path, given in case.hub.log if "resolve" in path]
    assert all(given and given.startswith("bytes=") for given in sent)


def test_a_hub_that_gives_no_list_is_an_error_and_leaves_everything(case):
    case.add("org/a")
    case.crawl()
    before = case.stable()
    case.hub.faults.append(lambda handler: handler.reply(503) is None)
    with pytest.raises(Unavailable, match="503, at each of 3 tries"):
        case.crawl(threads=2)
    assert case.stable() == before
