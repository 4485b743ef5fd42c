"""What the book says to crawl."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from pipeline.hub.select import queries
from pipeline.hub.settings import Settings, SettingsError
from tests.once import bundled_snapshot

TABLES = Path(__file__).parents[2] / "tables"
# families that people download, by kind: each has a model in the list for the first crawl
FAMILIES = {
    "language model": "gemma-3n llada Dream SDAR t5gemma-2 North-Mini command-a LongCat-Flash rwkv",
    "sees or hears": "Qwen2.5-Omni EXAONE-4.5 Phi-4-multimodal granite-speech MiniCPM-V MiniCPM-o Molmo Janus Ovis2 aya-vision "
    "Voxtral-Mini-3B Voxtral-Mini-4B-Realtime audio-flamingo",
    "speech to text": "whisper parakeet canary Qwen3-ASR wav2vec2 speecht5 VibeVoice-ASR",
    "speech from text": "Kokoro XTTS Qwen3-TTS orpheus maya1 snac bark csm Dia speecht5 VibeVoice chatterbox F5-TTS",
    "sound": "ast-finetuned musicgen encodec",
    "time series": "chronos-2 chronos-t5 chronos-bolt timesfm",
    "vision": "trocr donut detr segformer mask2former dpt depth-anything sam-vit sam2 sam3 timm/vit timm/resnet timm/convnext "
    "timm/efficientnet timm/mobilenet dinov2",
    "encoder": "electra layoutlmv3 mobilebert",
    "proteins and other": "esm2",
    "picture": "FLUX.1 FLUX.2 stable-diffusion-v1-5 stable-diffusion-2 stable-diffusion-xl stable-diffusion-3 "
    "stable-diffusion-3.5 Z-Image Qwen-Image Chroma",
    "video": "HunyuanVideo Wan2.1 Wan2.2 LTX",
    "copy": "faster-whisper onnx -ov coreml GGUF litert",
    "single files": "Comfy-Org gguf",
    "draft": "eagle3 DFlash DSpark",
    "part of a pipeline": "vae controlnet",
    "adapter": "lora",
}


def test_the_almanac_lists_what_it_covers():
    settings = Settings()
    asked = queries(settings)
    assert sum(settings.shares().values()) == pytest.approx(1)
    assert sum(most for _, order, most in asked if order == "downloads") >= settings.model_count
    assert len(settings.included()) == len(set(settings.included())) > 100
    assert settings.excluded().reason("hf-internal-testing/tiny-random-LlamaForCausalLM")
    assert settings.excluded().reason("Qwen/Qwen3-8B") is None
    assert settings.limits(False) == {"api": 500, "file": 3000}
    assert settings.limits(True) == {"api": 1000, "file": 5000}


@pytest.mark.parametrize(
    "line", ["org/a,kind,,x", "org/a,,why,x", "org/a,kind,why,", "../a,kind,why,x", "<b>,kind,why,x"]
)
def test_a_list_that_is_not_whole_names_its_file(tmp_path, line):
    (tmp_path / "include.csv").write_text(f"model_id,kind,reason,named_in\n{line}\n")
    with pytest.raises(SettingsError, match=r"include\.csv"):
        Settings(lists=tmp_path).included()


def test_every_family_is_in_the_list_and_every_model_of_it_is_named_by_somebody():
    with (TABLES / "hub" / "include.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    of_kind = {kind: " ".join(r["model_id"] for r in rows if r["kind"] == kind) for kind in FAMILIES}
    absent = [
        (kind, family)
        for kind, families in FAMILIES.items()
        for family in families.split()
        if family.lower() not in of_kind[kind].lower()
    ]
    assert absent == []
    known = {record.model_id for record in bundled_snapshot().records}
    with (TABLES / "measured.csv").open(encoding="utf-8", newline="") as file:
        measured = {row["model_id"] for row in csv.DictReader(file)}
    for row in rows:
        where = row["named_in"]
        if where == "this snapshot":
            assert row["model_id"] in known, row
        elif where == "measured.csv":
            assert row["model_id"] in measured, row
        else:
            assert re.match(r"(github\.com|huggingface\.co)/\S+|(transformers|timm) \d+\.\d+\.\d+ \S+\.py$", where), row
