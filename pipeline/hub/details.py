"""One model at one commit: its configs and, where the Hub gives no totals, what its tensor headers say.

Everything is a fact of a record, or a reason to reject the model. Nothing is executed and no name of the repository is used
that is not checked; of weights only headers are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pipeline.hub import gguf, safetensors
from pipeline.hub.careful import Malformed, parse
from pipeline.hub.client import Hub, Refused
from pipeline.hub.listing import SOURCE, Listed, kind_of
from pipeline.hub.record import is_model_id

LARGEST_CONFIG = 256 * 2**10  # bytes of JSON text that a record may keep
LONGEST_LIST = 64  # names of modules that a quantisation leaves alone; layers of a longer list are merged
MOST_SHARDS = 256
MOST_COMPONENTS = 12
# What a config holds besides the structure of its model, and what no reader wants.
_NOT_STRUCTURE = ("label2id", "task_specific_params", "_name_or_path", "transformers_version", "_commit_hash")
_QUANTIZERS = ("quantize_config.json", "quant_config.json", "hf_quant_config.json")
_SPLIT = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf")
_DENOISERS = ("transformer", "unet", "prior")


def read_model(hub: Hub, listed: Listed) -> dict[str, Any]:
    """Facts beyond the listing's. Raises Malformed where the model is to be rejected, Refused where it is gone."""
    facts = _config_facts(hub, listed)
    if "stored_parameter_count" not in listed.facts:
        facts |= _totals(hub, listed)
    elif listed.facts.get("parameters_kind") == "exact_gguf":
        facts |= _gguf_types(hub, listed)
    return facts


def _config_facts(hub: Hub, listed: Listed) -> dict[str, Any]:
    notes: list[str] = []
    if "model_index.json" in listed.files:
        config, where = _pipeline_config(hub, listed), "its components"
        notes.append("the denoiser's config, with the pipeline's index and the configs of its other parts")
    elif "config.json" in listed.files:
        config, where = _json(hub, listed, "config.json"), "config.json"
    elif "adapter_config.json" in listed.files:
        adapter = _json(hub, listed, "adapter_config.json") or {}
        base = adapter.get("base_model_name_or_path")
        return {"base_model_id": base} if is_model_id(base) and "base_model_id" not in listed.facts else {}
    else:
        return {}
    if config is None:
        return {}
    quantizer = next((name for name in _QUANTIZERS if name in listed.files), None)
    if quantizer and "quantization_config" not in config:
        found = _json(hub, listed, quantizer)
        inner = found.get("quantization") if found else None  # as Model Optimizer nests it
        if found:
            config["quantization_config"] = inner if isinstance(inner, dict) else found
            notes.append(f"quantization_config from {quantizer}")
    if _prune(config):
        notes.append("a long list of modules is shortened: * stands for numbers")
    size = len(json.dumps(config, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > LARGEST_CONFIG:
        raise Malformed(f"config of {size:,} bytes")
    facts = {"config": config, "config_kind": "verbatim", "config_source": f"{SOURCE}:{where}"}
    return {**facts, "config_note": "; ".join(notes)} if notes else facts


def _json(hub: Hub, listed: Listed, name: str) -> dict[str, Any] | None:
    """A JSON object of the model, or None where the file is missing or closed to us."""
    try:
        value = parse(hub.file(listed.model_id, listed.sha, name))
    except Refused as refusal:
        if refusal.status == 404 and not refusal.is_gone:
            return None
        if refusal.status in (401, 403) and listed.is_closed:
            return None
        raise
    except Malformed as problem:
        raise Malformed(f"{name}: {problem}") from None
    if not isinstance(value, dict):
        raise Malformed(f"{name} is no object")
    return value


def _pipeline_config(hub: Hub, listed: Listed) -> dict[str, Any] | None:
    """The denoiser's config; beside its fields the index's entries and the other components' configs."""
    index = _json(hub, listed, "model_index.json")
    if index is None:
        return None
    parts = [name for name, value in index.items() if isinstance(value, list) and f"{name}/config.json" in listed.files]
    denoiser = next((name for name in _DENOISERS if name in parts), None)
    if denoiser is None:
        return None
    config = _json(hub, listed, f"{denoiser}/config.json")
    if config is None:
        return None
    encoders = {}
    for name in sorted(set(parts) - {denoiser})[:MOST_COMPONENTS]:
        if name == "vae":
            config.setdefault("_vae_config", _pruned(_json(hub, listed, "vae/config.json")))
        elif name.startswith("text_encoder"):
            encoders[name] = _pruned(_json(hub, listed, f"{name}/config.json"))
    for name, value in index.items():
        if isinstance(value, list) and name not in (denoiser, "vae"):
            config.setdefault(name, value)
    return {**config, "text_encoder_configs": encoders} if encoders else config


def _pruned(config: dict[str, Any] | None) -> dict[str, Any] | None:
    if config is not None:
        _prune(config)
    return config


def _prune(config: dict[str, Any]) -> bool:
    """Leaves out what is no structure, in place. Says whether a list was shortened."""
    for name in _NOT_STRUCTURE:
        config.pop(name, None)
    labels = config.pop("id2label", None)
    if isinstance(labels, dict | list) and "num_labels" not in config:
        config["num_labels"] = len(labels)
    shortened = False
    for part in (config, *(v for v in config.values() if isinstance(v, dict))):
        quantization = part.get("quantization_config")
        for key, value in quantization.items() if isinstance(quantization, dict) else ():
            if isinstance(value, list) and len(value) > LONGEST_LIST and all(isinstance(v, str) for v in value):
                quantization[key] = sorted({re.sub(r"\d+", "*", name) for name in value})
                shortened = True
    return shortened


def _totals(hub: Hub, listed: Listed) -> dict[str, Any]:
    """Totals from headers, for models whose own the Hub does not list."""
    names = [name for name in listed.files if name.endswith(".safetensors")]
    index = next((n for n in listed.files if n.endswith(".safetensors.index.json") and _is_main(n)), None)
    if index:
        counts = _allowed(listed, partial(_sharded, hub, listed, index))
    else:
        single = next(
            (n for n in ("model.safetensors", *names) if n in names and _is_main(n) and "-of-" not in n), None
        )
        counts = _allowed(listed, lambda: safetensors.census([_header(hub, listed, single)])) if single else None
    if counts is None:
        return _gguf_types(hub, listed) if not names else {}
    return {
        "parameters_by_dtype": counts,
        "stored_parameter_count": sum(counts.values()),
        "parameters_kind": kind_of(counts),
    }


def _is_main(name: str) -> bool:
    """Whether a file of weights is the model itself, or the denoiser of its pipeline."""
    folder, _, _ = name.rpartition("/")
    return folder in ("", *_DENOISERS) and "adapter" not in name


def _allowed(listed: Listed, ask: Callable[[], dict[str, int]]) -> dict[str, int] | None:
    try:
        return ask()
    except Refused as refusal:
        if refusal.is_gone or (refusal.status in (401, 403) and not listed.is_closed):
            raise
        return None


def _sharded(hub: Hub, listed: Listed, index: str) -> dict[str, int]:
    """All shards by one request where that answers for our commit, else each shard's header by its own."""
    try:
        found, commit = hub.sharded_headers(listed.model_id, index)
    except Refused as refusal:
        if refusal.status not in (400, 404, 405, 501):
            raise
    else:
        headers = found.get("headers") if isinstance(found, Mapping) else None
        if isinstance(headers, Mapping) and commit in (None, listed.sha):
            return safetensors.census((str(file), header, None) for file, header in headers.items())
    stem = index.removesuffix(".safetensors.index.json")
    shards = [name for name in listed.files if name.startswith(stem) and name.endswith(".safetensors")]
    if not 0 < len(shards) <= MOST_SHARDS:
        raise Malformed(f"{index}: {len(shards)} shards")
    return safetensors.census(_header(hub, listed, name) for name in shards)


def _header(hub: Hub, listed: Listed, name: str) -> tuple[str, Any, int | None]:
    try:
        return name, *safetensors.read_header(partial(hub.part, listed.model_id, listed.sha, name))
    except Malformed as problem:
        raise Malformed(f"{name}: {problem}") from None


def _gguf_types(hub: Hub, listed: Listed) -> dict[str, Any]:
    """Elements by ggml type of one file: the 4-bit mix that people run most, else the first by name."""
    names = [n for n in listed.files if n.endswith(".gguf") and "mmproj" not in n.lower()]
    whole = [name for name in names if not _SPLIT.fullmatch(name)]
    first = next((n for n in whole if "q4_k_m" in n.lower()), whole[0] if whole else None)
    files = [first] if first else _split_files(names)
    if not files:
        return {}

    def ask() -> dict[str, int]:
        counts: Counter[str] = Counter()
        for name in files:
            try:
                counts.update(gguf.read_types(partial(hub.part, listed.model_id, listed.sha, name)))
            except Malformed as problem:
                raise Malformed(f"{name}: {problem}") from None
        return dict(sorted(counts.items()))

    counts = _allowed(listed, ask)
    if not counts or not sum(counts.values()):
        return {}
    found: dict[str, Any] = {"gguf_file": files[0], "elements_by_gguf_type": counts}
    if "stored_parameter_count" not in listed.facts:
        found |= {"stored_parameter_count": sum(counts.values()), "parameters_kind": "exact_gguf"}
    return found


def _split_files(names: list[str]) -> list[str]:
    """The files of the first model that is split whole."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        match = _SPLIT.fullmatch(name)
        if match:
            groups.setdefault((match[1], match[2]), []).append(name)
    for (_, count), found in sorted(groups.items()):
        if len(found) == int(count) <= 16:
            return sorted(found)
    return []
