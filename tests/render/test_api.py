"""What programs read: every file against the schema that is published beside it, and against the tables it is made from."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import quote

import jsonschema
import polars as pl
import pytest

from pipeline.render import words
from pipeline.render.addresses import Addresses
from pipeline.render.data import api
from pipeline.render.pages import finding, search
from tests.press.range_server import serving
from tests.render.tiny_models import GPUS, MODELS, REASON, UNKNOWN
from tests.render.tiny_tables import SITE, built, rendered

MODEL = "acme/Alpha-7B-Instruct"
ATOM = {"a": "http://www.w3.org/2005/Atom"}
PAGE = (Path(__file__).parents[2] / "site" / "docs" / "programs.md").read_text(encoding="utf-8")
# the examples of that page in their order, and what runs each
EXAMPLES = {"sh": ["bash", "-c"], "python": [sys.executable, "-c"], "js": ["node", "--input-type=module", "-e"]}
NEEDED = {"sh": ("curl", "jq"), "python": (), "js": ("node",)}


@pytest.fixture(scope="module")
def tables():
    return built()


@pytest.fixture(scope="module")
def site():
    return rendered()


def read(site, name):
    return json.loads((site / "api" / "v1" / name).read_text(encoding="utf-8"))


def along(value, place):
    """A number at a place of the axis: what is the same at all of them is one."""
    return value[place] if isinstance(value, list) else value


def kinds(site):
    """Every file for programs, by its kind."""
    root = site / "api" / "v1"
    return {
        "index": [root / "index.json"],
        "model": sorted((root / "models").rglob("*.json")),
        "gpu": sorted((root / "gpus").rglob("*.json")),
        "plan": sorted((root / "plans").rglob("*.json")),
        "badge": sorted((root / "badges").rglob("*.json")),
    }


def test_every_file_keeps_to_the_schema_that_is_beside_it(site):
    for kind, files in kinds(site).items():
        schema = read(site, f"schema/{kind}.schema.json")
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        assert files, kind
        for file in files:
            assert not [e.message for e in validator.iter_errors(json.loads(file.read_text("utf-8")))], file
    told = {file for files in kinds(site).values() for file in files}
    assert {f for f in (site / "api").rglob("*.json") if f.parent.name != "schema"} == told


def test_plans_are_the_rows_of_their_tables(site, tables):
    (path,) = read(site, "index.json")["plans"]
    told = read(site, f"plans/{path}.json")
    for name, key in (("plan_serving", "serving"), ("plan_training", "training")):
        rows = pl.read_parquet(tables / f"{name}.parquet").filter(model_id=told["model_id"]).drop("model_id").to_dicts()
        first = [row for row in rows if (row["plan_rank"] or 0) <= 3]
        assert first and [set(row) for row in told[key]] == [
            {k for k, v in row.items() if v is not None} for row in first
        ]
        for row, one in zip(told[key], first, strict=True):  # bytes are whole, speeds and hours are rounded
            assert all(
                v == pytest.approx(one[k], rel=5e-4) if isinstance(v, float) else v == one[k] for k, v in row.items()
            )
    # what is not known is not there, and a number that is none is refused
    unknown = next(row for row in told["serving"] if "unknown_reason" in row)
    assert "verdict" not in unknown
    validator = jsonschema.Draft202012Validator(read(site, "schema/plan.schema.json"))
    told["serving"][0]["gpu_count"] = "many"
    assert not validator.is_valid(told)


def objects(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)


def test_the_schemas_are_strict(site):
    """A name that nobody declared is refused at every depth, and so is a number that is none."""
    for kind in kinds(site):
        found = list(objects(read(site, f"schema/{kind}.schema.json")))
        assert found and all("additionalProperties" in each for each in found), kind
    validator = jsonschema.Draft202012Validator(read(site, "schema/model.schema.json"))
    whole = read(site, f"models/{MODEL}.json")
    for break_ in (
        lambda told: told.update(more=1),
        lambda told: told["footprints"][0].update(more=1),
        lambda told: told["footprints"][0]["total_bytes"].append(None),
        lambda told: told["footprints"][0].update(weights_bytes=-1),
        lambda told: told["verdicts"]["cards"][0].update(verdict="perhaps"),
        lambda told: told["model"].pop("model_id"),
    ):
        told = json.loads(json.dumps(whole))
        break_(told)
        assert not validator.is_valid(told)


def test_components_are_those_of_the_tables_to_the_byte(site, tables):
    known = pl.read_parquet(tables / "footprint.parquet").filter(model_id=MODEL, gpu_count=1, sequences=1)
    told = read(site, f"models/{MODEL}.json")
    checked = 0
    for f in told["footprints"]:
        same = {name: f[name] for name in ("phase_id", "dtype_id", "engine_id")}
        for name in ("optimizer_id", "checkpointing"):
            same |= {name: f[name]} if name in f else {}
        for at, context in enumerate(f["context_tokens"]):
            (row,) = known.filter(context_tokens=context, **same).to_dicts()
            parts = {c: f.get(c, 0) for c in api.PARTS}
            parts = {c: v[at] if isinstance(v, list) else v for c, v in parts.items()}
            assert parts == {c: row[c] for c in api.PARTS}, (same, context)
            assert f["total_bytes"][at] == row["total_bytes"] == sum(parts.values())
            assert along(f["error_band"], at) == row["error_band"]
            checked += 1
    assert checked >= 40
    refused = {(u["dtype_id"], u["unknown_reason"]) for u in told["unknown"]}
    assert ("mxfp4", REASON) in refused


def test_what_is_unknown_has_its_reason_in_the_index_and_no_file(site):
    told = {m["model_id"]: m for m in read(site, "index.json")["models"]}
    assert told.keys() == set(MODELS)
    for model, row in told.items():
        assert ("unknown_reason" in row) == (model == UNKNOWN)
        assert (site / "api/v1/models" / f"{row['path']}.json").exists() == (model != UNKNOWN)
    assert told[UNKNOWN]["unknown_reason"].startswith("No config is published")


def test_model_and_card_say_the_same(site):
    for gpu in read(site, "index.json")["gpus"]:
        runs = read(site, f"gpus/{gpu['path']}.json")["runs"]
        of_card = {
            model: (run["verdict"], run["dtype_id"], run["engine_id"], tokens)
            for run in runs
            for model, tokens in run["max_context_tokens"].items()
        }
        of_models = {}
        for model in set(MODELS) - {UNKNOWN}:
            told = read(site, f"models/{words.slug(model)}.json")
            (card,) = (c for c in told["verdicts"]["cards"] if gpu["gpu_id"] in c["gpu_ids"])
            if card["verdict"] in ("fits", "shorter"):
                of_models[model] = tuple(card[k] for k in ("verdict", "dtype_id", "engine_id", "max_context_tokens"))
        assert of_card == of_models


def test_what_fits_does_so_with_its_error(site):
    """By the rule that the page for programs tells: total × (1 + band) within what the card gives."""
    told, capacities = read(site, f"models/{MODEL}.json"), {g: read(site, f"gpus/{g}.json")["gpu"] for g in GPUS}
    at, seen = told["verdicts"]["context_tokens"], set()
    for card in told["verdicts"]["cards"]:
        if card["verdict"] != "fits":
            continue
        key = (card["dtype_id"], card["engine_id"], "inference")
        (f,) = (f for f in told["footprints"] if (f["dtype_id"], f["engine_id"], f["phase_id"]) == key)
        place = f["context_tokens"].index(at)
        for gpu in card["gpu_ids"]:
            assert f["total_bytes"][place] * (1 + along(f["error_band"], place)) <= capacities[gpu]["capacity_bytes"]
            seen.add(gpu)
    assert {"rtx-3060-12gb", "rtx-4090"} <= seen


def test_badges_name_card_and_verdict(site):
    told = read(site, f"models/{MODEL}.json")
    assert told["badges"]["rtx-3060-12gb"] == "fits: Q8_0, 16k tokens"
    picture = ElementTree.fromstring((site / "api/v1/badges/rtx-3060-12gb/fits.svg").read_text("utf-8"))
    assert picture.attrib["aria-label"] == "RTX 3060 12GB: fits"
    assert read(site, "badges/fits.json") | {"color": ""} == {
        "schemaVersion": 1, "label": "this card", "message": "fits", "color": "",
    }  # fmt: skip
    assert (site / "api/v1/badges/needs-4-cards.json").exists()


MOVED = {
    "models": [
        {"model_id": "a/<b>", "verdicts": 2, "examples": [["s", "l40s", "fits", "no"]], "why": ["formula"]},
        {"model_id": "c/d", "verdicts": 0, "examples": [], "why": ["formula"]},
    ],
    "added": ["e/f", "gone/since"],
}  # fmt: skip


def test_the_feed_tells_new_models_and_flipped_verdicts():
    manifest = {"data_version": "2026-01-02-abc", "snapshot_date": "2026-01-02"}
    paths = {"a/<b>": "a/~3Cb~3E", "c/d": "c/d", "e/f": "e/f"}
    tree = ElementTree.fromstring(finding.feed(MOVED, paths, SITE, manifest).encode())
    entries = tree.findall("a:entry", ATOM)
    assert [e.findtext("a:title", None, ATOM) for e in entries] == ["a/<b>: 2 verdicts changed", "e/f is new"]
    assert entries[0].findtext("a:summary", None, ATOM) == "s on l40s: fits → no. Why: formula."
    assert entries[0].find("a:link", ATOM).get("href") == f"{SITE}models/a/~3Cb~3E/"
    assert len({e.findtext("a:id", None, ATOM) for e in entries}) == 2
    assert {e.findtext("a:updated", None, ATOM) for e in entries} == {"2026-01-02T00:00:00Z"}


def test_the_root_has_what_machines_look_for(site):
    assert f"Sitemap: {SITE}sitemap.xml" in (site / "robots.txt").read_text("utf-8")
    assert ElementTree.parse(site / "feed.xml").getroot().tag.endswith("feed")
    assert 'href="../feed.xml"' in (site / "changes" / "index.html").read_text("utf-8")
    assert "/api/*\n  Access-Control-Allow-Origin: *" in (site / "_headers").read_text("utf-8")


def test_pages_have_the_date_of_their_facts(tmp_path):
    for page in ("models/a/b", "models/c/d", "about"):
        (tmp_path / page).mkdir(parents=True)
        (tmp_path / page / "index.html").write_text("x")
    search.write_sitemap(tmp_path, SITE, {"models/a/b": "2026-10", "models/c/d": "some day", "": "2026-11-20"})
    text = (tmp_path / "sitemap.xml").read_text("utf-8")
    assert f"<loc>{SITE}models/a/b/</loc><lastmod>2026-10</lastmod>" in text
    assert (
        f"<loc>{SITE}models/c/d/</loc></url>" in text
        and f"<loc>{SITE}about/</loc><lastmod>2026-11-20</lastmod>" in text
    )


def test_tables_are_told_as_croissant(tmp_path):
    """The form is MLCommons' 1.0: every record set reads columns of a file that is listed with its checksum."""
    (tmp_path / "gpu.parquet").write_bytes(b"x")
    fields = [
        {"name": "gpu_id", "type": "string", "description": "Id"},
        {"name": "n", "type": "integer", "description": "N"},
    ]
    package = {
        "licenses": [{"path": "https://example.org/licence"}],
        "resources": [
            {"name": "gpu", "path": "gpu.parquet", "format": "parquet", "description": "Cards", "schema": {"fields": fields}}
        ],
    }  # fmt: skip
    manifest = {
        "files": {"gpu.parquet": {"size_bytes": 1, "sha256": "ab"}},
        "schema_version": "1.0.0", "snapshot_date": "2026-01-02", "data_version": "v",
    }  # fmt: skip
    told = finding.croissant(package, Addresses(SITE), manifest, tmp_path)
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    (file,), (records,) = told["distribution"], told["recordSet"]
    assert file["contentUrl"] == f"{SITE}tables/gpu.parquet" and file["sha256"] == "ab"
    assert [f["source"]["fileObject"]["@id"] for f in records["field"]] == [file["@id"]] * 2
    assert [f["dataType"] for f in records["field"]] == ["sc:Text", "sc:Integer"]


@pytest.mark.parametrize("language", EXAMPLES)
def test_the_examples_of_the_page_answer(site, language):
    if gone := [name for name in NEEDED[language] if shutil.which(name) is None]:
        reason = f"there is no {gone[0]} on this machine"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    code = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)[0]
    with serving(site) as host:
        code = code.replace("https://example.org", host.address).replace("Qwen/Qwen3-8B", MODEL)
        done = subprocess.run([*EXAMPLES[language], code], capture_output=True, text=True, check=False, timeout=60)
        assert host.asked and done.returncode == 0, done.stderr
    told, card = read(site, f"models/{MODEL}.json"), read(site, "gpus/rtx-4090.json")
    held = next(c for c in told["verdicts"]["cards"] if "rtx-4090" in c["gpu_ids"])
    row = next(r for r in told["footprints"] if (r["phase_id"], r["dtype_id"]) == ("inference", "gguf-q4_k_m"))
    fits = {m for run in card["runs"] if run["verdict"] == "fits" for m in run["max_context_tokens"]}
    wanted = {
        "sh": str(along(row["kv_cache_bytes"], row["context_tokens"].index(8192))),
        "python": f"{held['verdict']} {held.get('dtype_id')} {held.get('max_context_tokens')}",
        "js": f"{card['gpu']['capacity_bytes']} {len(fits)}",
    }
    assert done.stdout.split() == wanted[language].split() and fits


def test_the_example_of_plans_answers(site):
    if gone := [name for name in NEEDED["sh"] if shutil.which(name) is None]:
        reason = f"there is no {gone[0]} on this machine"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)
    (path,) = read(site, "index.json")["plans"]
    row = next(row for row in read(site, f"plans/{path}.json")["serving"] if row.get("plan_rank") == 1)
    code = re.findall(r"```sh\n(.*?)```", PAGE, re.S)[1]
    named = {"deepseek-ai/DeepSeek-R1": path, "h200-sxm": row["gpu_id"], "stored": row["dtype_id"]}
    named |= {"users == 3": f"users == {row['users']}", "== 8192": f"== {row['context_tokens']}"}
    for name, meant in named.items():
        assert name in code
        code = code.replace(name, meant)
    with serving(site) as host:
        code = code.replace("https://example.org", host.address)
        done = subprocess.run([*EXAMPLES["sh"], code], capture_output=True, text=True, check=False, timeout=60)
    speeds = ("user_tokens_per_second_likely", "user_tokens_per_second_most")
    assert json.loads(done.stdout) == {name: row.get(name) for name in ("gpu_count", *speeds)}, done.stderr


def test_the_badges_of_the_page_are_there_and_its_examples_name_the_site(site):
    named = re.findall(r"https://img\.shields\.io/\S+", PAGE)
    assert len(named) == 2 and "query=%24.badges%5B%27rtx-4090%27%5D" in named[0]
    assert read(site, f"models/{MODEL}.json")["badges"]["rtx-4090"] and read(site, "badges/fits.json")["message"]
    shown = (site / "programs" / "index.html").read_text(encoding="utf-8")
    assert "example.org" not in shown and f"{SITE}api/v1/gpus/rtx-4090.json" in shown and quote(SITE, safe="") in shown
