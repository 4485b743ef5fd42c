"""Architectures whose code travels with their checkpoints: counts held to published totals, hostile values to reasons.

The configs are those of the released models with few layers and experts left out where a total needs the whole; the whole
is held by the bundled snapshot, where their totals must come out to the element.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_multimodal_hostile import changed, check, paths, values

from pipeline.anatomy import UnknownAnatomy, read_config
from pipeline.confirm.grade import grade
from tests.once import bundled_snapshot

TYPES = (
    "kimi_k3",
    "deepseek_v4",
    "deepseek_v41",
    "qwen4_exp",
    "glm5_next",
    "nemotron_h",
    "nemotron-nas",
    "mimo",
    "deepseek_vl_v2",
    "dots_ocr",
    "inkling_mm_model",
    "internvl_chat",
    "llada2_moe",
    "minicpmo",
    "minicpmv",
    "molmo",
    "moondream1",
    "openelm",
    "openvla",
)


def _records():
    found = {}
    for record in bundled_snapshot().records:
        kind = (record.config or {}).get("model_type")
        is_full = record.config_kind in ("verbatim", "quoted", "library_defaults", "library_table", "reconstructed")
        if (
            kind in TYPES
            and is_full
            and len(str(record.config)) > len(str(found[kind].config if kind in found else ""))
        ):
            found[kind] = record
    return found


def remote_classes():
    """Counts of small configs, each by the class as its authors publish it (remote_classes.csv names repository and commit)."""
    with (Path(__file__).parents[1] / "oracle" / "remote_classes.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


RECORDS = _records()


@pytest.mark.some(2)
@pytest.mark.parametrize("model_type", TYPES)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_configs(model_type, data):
    config = RECORDS[model_type].config
    places = paths({k: v for k, v in config.items() if k != "model_type"})
    for _ in range(data.draw(st.integers(1, 3))):
        config = changed(config, data.draw(st.sampled_from(places)), data.draw(values))
    check(config)


@pytest.mark.some(2)
@pytest.mark.parametrize("model_type", TYPES)
def test_every_field_missing_or_wrong(model_type):
    config = RECORDS[model_type].config
    for path in paths(config):
        if path != ("model_type",):
            for value in (
                None,
                True,
                -1,
                0,
                10**30,
                2.5,
                float("nan"),
                "four",
                [],
                [1],
                [[]],
                {},
                {"a": {"b": {"c": 1}}},
            ):
                check(changed(config, path, value))


@pytest.mark.parametrize(
    ("model_id", "count", "words"),
    [
        ("moonshotai/Kimi-K3", 2_779_931_754_752, "router bias buffers (+82,432)"),
        ("deepseek-ai/DeepSeek-V4-Flash", 284_332_230_231, "multi-token prediction layers (+6,610,048,891)"),
        ("deepseek-ai/DeepSeek-V4-Pro-DSpark", 1_572_997_179_491, "draft stages (+77,498,408,103)"),
        ("deepseek-ai/DeepSeek-V4-Flash-Base", 284_332_230_231, "one scale per block of 128 × 128 (+17,669,120)"),
        ("deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", 284_798_623_319, "router biases for images (+12,544)"),
        ("deepseek-ai/DeepSeek-V4.1-Flash", 748_979_953_264, "draft stages (+14,225,362,530)"),
        ("Qwen/Qwen3.8-Flash-Next", 177_392_830_576, "n-gram hash tables (+35)"),
        ("zai-org/GLM-5.3-Flash", 313_890_426_878, "multi-token prediction layers (+7,432,592,416)"),
        ("stepfun-ai/Step-3.7-Flash-FP8", 198_937_133_056, "one scale per block of 128 × 128 (+11,612,160)"),
        (
            "meta-llama/Llama-3.1-405B-Instruct-FP8",
            405_853_388_800,
            "all layers but the first and the last (+15,237,120)",
        ),
        (
            "bosonai/higgs-audio-v2-generation-3B-base",
            5_377_281_024,
            "head over text, which training uses (+394,002,432)",
        ),
        ("inclusionAI/Ling-3.0-flash", 124_414_191_072, "multi-token prediction layers (+3,072,194,048)"),
        ("poolside/Laguna-XS.2", 33_442_617_088, "The published total is the number of parameters"),
        ("Qwen/Qwen3-Omni-30B-A3B-Instruct", 35_259_818_545, "The published total is the number of parameters"),
        ("deepseek-ai/deepseek-vl2-tiny", 3_370_501_440, "The published total is the number of parameters"),
        ("allenai/Molmo-7B-D-0924", 8_021_025_280, "The published total is the number of parameters"),
        ("vikhyatk/moondream2", 1_927_237_104, "The published total is the number of parameters"),
        ("openbmb/MiniCPM-V-2_6", 8_099_175_152, "The published total is the number of parameters"),
        ("openbmb/MiniCPM-V-4", 4_059_533_040, "The published total is the number of parameters"),
        ("openbmb/MiniCPM-o-4_5", 9_371_787_666, "The published total is the number of parameters"),
        ("openbmb/MiniCPM-o-2_6", 8_674_997_028, "The published total is the number of parameters"),
        ("LGAI-EXAONE/EXAONE-4.5-33B", 33_813_987_328, "multi-token prediction layers (+536,110,336)"),
        ("allenai/Molmo2-8B", 8_661_703_120, "The published total is the number of parameters"),
        ("microsoft/kosmos-2.5", 1_374_646_272, "The published total is the number of parameters"),
        ("rednote-hilab/dots.ocr", 3_039_179_264, "The published total is the number of parameters"),
        ("thinkingmachines/Inkling", 947_117_161_538, "multi-token prediction layers (+5,260,445,704)"),
        ("thinkingmachines/Inkling-Small", 263_724_516_394, "multi-token prediction layers (+2,231,912,456)"),
        ("inclusionAI/LLaDA2.0-mini", 16_255_638_528, "router bias buffers (+4,864)"),
        ("zai-org/GLM-OCR", 1_107_405_824, "embedding and head of prediction layers (+182,452,224)"),
        ("jinaai/jina-embeddings-v3", 559_364_096, "adapters of tasks (+12,946,300)"),
        ("OpenGVLab/InternVL3-1B", 938_193_024, "The published total is the number of parameters"),
        ("OpenGVLab/InternVL3-8B", 7_944_373_760, "The published total is the number of parameters"),
        ("OpenGVLab/InternVL2-26B", 25_514_186_112, "The published total is the number of parameters"),
        ("microsoft/Phi-tiny-MoE-instruct", 3_755_220_288, "The published total is the number of parameters"),
        ("cyankiwi/gemma-4-26B-A4B-it-AWQ-8bit", 25_805_933_872, "quantised: attention, expert"),
        ("facebook/sam3", 859_921_848, "position frequencies (+512)"),
        ("unsloth/gemma-4-12b-it-NVFP4", 11_959_730_176, "4-bit floats counted in pairs, a scale per 16 and two"),
        ("unsloth/Qwen3.6-35B-A3B-NVFP4-Fast", 35_107_181_936, "(8 bits: attention, head, recurrent) (+791,040)"),
    ],
)
def test_published_totals_come_out_to_the_element(model_id, count, words):
    record = next(r for r in bundled_snapshot().records if r.model_id == model_id)
    try:
        anatomy = read_config(record.config)
    except UnknownAnatomy as reason:  # its config quotes some of its parts only
        anatomy = reason
    found = grade(record, anatomy)
    assert found.grade in ("exact", "matched")
    assert found.anatomy.parameter_count == count
    assert words in found.stored_note


@pytest.mark.parametrize("row", remote_classes(), ids=lambda row: f"{row['model_type']} {row['changed'] or 'as it is'}")
def test_changed_configs_are_read_as_the_class_that_travels_with_the_checkpoint(row):
    config = json.loads(row["config"]) | {"model_type": row["model_type"], "architectures": [row["class_name"]]}
    assert read_config(config).parameter_count == int(row["parameter_count"])


def test_a_language_model_of_another_kind_is_not_read_as_llama():
    """OpenVLA's own code makes Phi of one of its names (LLM_BACKBONE_TO_HF_METACLASS)."""
    row = next(row for row in remote_classes() if row["model_type"] == "openvla")
    config = json.loads(row["config"]) | {"model_type": "openvla", "architectures": [row["class_name"]]}
    same = read_config(config | {"llm_backbone_id": "vicuna-v15-7b"})
    assert same.parameter_count == int(row["parameter_count"])
    for other in ("phi-2-3b", "some-other"):
        with pytest.raises(UnknownAnatomy, match="llm_backbone_id"):
            read_config(config | {"llm_backbone_id": other})
