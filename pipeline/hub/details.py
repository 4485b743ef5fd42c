"""One model at one commit: its configs, and what its tensor headers say (headers.py).

Everything is a fact of a record, or a reason to reject the model. Nothing is executed and no name of the repository is used
that is not checked; of weights only headers are read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pipeline.base.parts import BESIDE
from pipeline.hub.answers import Refused
from pipeline.hub.careful import Malformed
from pipeline.hub.client import Hub
from pipeline.hub.headers import Allowance, is_closed, read_headers
from pipeline.hub.listing import SOURCE, Listed
from pipeline.hub.record import is_model_id
from pipeline.hub.summary import DENOISERS

LARGEST_CONFIG = 256 * 2**10  # bytes of JSON text that a record may keep
LONGEST_LIST = 64  # names of modules that a quantisation leaves alone; layers of a longer list are merged
MOST_COMPONENTS = 12
# What a config holds besides the structure of its model, and what no reader wants.
_NOT_STRUCTURE = ("label2id", "task_specific_params", "_name_or_path", "transformers_version", "_commit_hash")
_QUANTIZERS = ("quantize_config.json", "quant_config.json", "hf_quant_config.json")


def read_model(hub: Hub, listed: Listed, allowance: Allowance) -> dict[str, Any]:
    """Facts beyond the listing's. Raises Malformed where the model is to be rejected, Refused where it is gone."""
    facts, found = _config_facts(hub, listed), read_headers(hub, listed, allowance)
    problem = found.get("header_problem")
    if problem and not facts and "stored_parameter_count" not in listed.facts:
        raise Malformed(problem)  # there is nothing else to know it by
    return found | facts  # a config of the repository's own goes before what a GGUF file says


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
        return hub.json(listed.model_id, listed.sha, name)
    except Refused as refusal:
        if refusal.code == "EntryNotFound":
            return None
        if is_closed(refusal, listed):
            return None
        raise


def _pipeline_config(hub: Hub, listed: Listed) -> dict[str, Any] | None:
    """The denoiser's config; beside its fields the index's entries and the other components' configs."""
    index = _json(hub, listed, "model_index.json")
    if index is None:
        return None
    parts = [name for name, value in index.items() if isinstance(value, list) and f"{name}/config.json" in listed.files]
    denoiser = next((name for name in DENOISERS if name in parts), None)
    if denoiser is None:
        return None
    config = _json(hub, listed, f"{denoiser}/config.json")
    if config is None:
        return None
    encoders, beside = {}, {}
    for name in sorted(set(parts) - {denoiser})[:MOST_COMPONENTS]:
        if name == "vae":
            config.setdefault("_vae_config", _pruned(_json(hub, listed, "vae/config.json")))
        elif name.startswith("text_encoder"):
            encoders[name] = _pruned(_json(hub, listed, f"{name}/config.json"))
        elif name in BESIDE:
            beside[name] = _pruned(_json(hub, listed, f"{name}/config.json"))
    for name, value in index.items():
        if isinstance(value, list) and name not in (denoiser, "vae"):
            config.setdefault(name, value)
    found = {"text_encoder_configs": encoders, "part_configs": beside}
    return {**config, **{name: configs for name, configs in found.items() if configs}}


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
