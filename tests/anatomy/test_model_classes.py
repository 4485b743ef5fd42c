"""A class that nobody described is unknown, and so is a part of a model that no reader took: never another model's numbers.

The configs here are those that people publish under the model_type of an architecture that is described: a forecaster that calls itself t5, a
draft that calls itself llama, a checker of images that calls itself clip, a chat model whose tower its config names by the way.
"""

from __future__ import annotations

import csv
import datetime
import json
from pathlib import Path

import pytest

from pipeline.anatomy import ContradictoryConfig, UnknownAnatomy, families, read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.components import components
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.model_classes import DRAFT, FILE, UnknownClass, described
from pipeline.base.failures import Failure
from pipeline.book.facts import read_facts
from pipeline.cli.describe import told
from pipeline.cli.own import OwnModelError, book_of
from pipeline.hub.record import Record
from pipeline.hub.snapshot import Snapshot
from pipeline.press.anatomise import anatomise
from tests.anatomy.small_model import LLAMA
from tests.cases import in_case
from tests.conftest import answering
from tests.once import bundled_snapshot

families.reader_for("llama")
READERS = sorted(families._READERS)
INVENTED = (
    "InventedForCausalLM",
    "InventedModel",
    "LlamaForCausalLMEagle3",
    "HF_ColBERT",
    "ForecasterOfMyOwnModel",
    "SafetyCheckerOfMyOwn",
)
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 2, "model_type": "t5"}
BERT = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
}
TOWER = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "patch_size": 14,
    "image_size": 28,
}
CLIP = {
    "model_type": "clip",
    "text_config": {**BERT, "projection_dim": 64},
    "vision_config": TOWER,
    "projection_dim": 64,
}
STRANGE = {
    "a forecaster": {
        **T5,
        "architectures": ["ForecasterOfMyOwnModel"],
        "chronos_config": {"input_patch_size": 16, "context_length": 8192},
    },
    "a draft": {
        **LLAMA,
        "num_hidden_layers": 1,
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": 32000,
    },
    "a checker": {**CLIP, "architectures": ["SafetyCheckerOfMyOwn"]},
    "late interaction": {**BERT, "model_type": "bert", "architectures": ["HF_ColBERT"]},
    "a reward": {**LLAMA, "architectures": ["LlamaForRewardModel"]},
    "a second name": {**LLAMA, "architectures": ["LlamaForCausalLM", "InventedForCausalLM"]},
    "a block draft": {**LLAMA, "architectures": ["InventedModel"], "dflash_config": {"target_layer_ids": [1, 2]}},
}


def rows() -> list[dict[str, str]]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def published(config: dict, **facts) -> dict:
    """The row of table `model` that a record with this config makes."""
    record = Record("org/x", config=config, config_kind="verbatim", **facts)
    frames = anatomise(Snapshot(Path(), datetime.date(2026, 1, 1), "own", (record,), {}))
    return {**frames["model"].to_dicts()[0], "tensors": len(frames["tensor"])} if len(frames["model"]) else {}


def test_no_reader_answers_for_a_class_that_was_invented():
    for model_type in READERS:
        with in_case(model_type):
            default = class_defaults().get(model_type, {})
            for name in INVENTED:
                key = "_class_name" if model_type[0].isupper() else "model_type"
                with pytest.raises(UnknownClass, match="is not described"):
                    read_config({**default, key: model_type, "architectures": [name]})


@pytest.mark.parametrize("what", sorted(STRANGE))
def test_models_that_call_themselves_by_a_described_type_are_unknown_everywhere(what, tmp_path):
    config, path = STRANGE[what], tmp_path / "config.json"
    path.write_text(json.dumps(config))
    bare = {k: v for k, v in config.items() if k != "architectures"}
    try:
        total = read_config({k: v for k, v in bare.items() if k != "chronos_config"}).parameter_count
    except UnknownAnatomy:
        total = 10**6
    for facts in ({}, {"stored_parameter_count": total + 99_000, "parameters_kind": "exact_safetensors"}):
        row = published(config, **facts)
        assert (row["anatomy_grade"], row["parameter_count"], row["tensors"]) == ("unknown", None, 0)
        assert "is not described" in row["anatomy_note"]
    with pytest.raises(Failure, match="is not described"):
        told(path)
    with pytest.raises(OwnModelError, match="is not described"):
        book_of(path)


def test_a_class_of_the_library_under_another_type_is_the_one_that_its_auto_classes_load():
    """They go by model_type, whatever the name says; a head that the type has not is unknown."""
    mistral = {**LLAMA, "model_type": "mistral"}
    found = read_config({**mistral, "architectures": ["LlamaForCausalLM"]})
    assert found.architecture == "LlamaForCausalLM"
    assert found.tensors == read_config({**mistral, "architectures": ["MistralForCausalLM"]}).tensors
    bare = read_config({**mistral, "architectures": ["LlamaModel"]})
    assert bare.tensors == read_config({**mistral, "architectures": ["MistralModel"]}).tensors
    for config, name in ((T5, "LlamaForCausalLM"), (LLAMA, "GPT2DoubleHeadsModel"), (LLAMA, "T5EncoderModel")):
        with pytest.raises(UnknownClass):
            read_config({**config, "architectures": [name]})


def test_a_text_encoder_of_a_pipeline_is_held_to_its_class_too():
    denoiser = {
        "_class_name": "FluxTransformer2DModel",
        "num_layers": 1,
        "num_single_layers": 1,
        "text_encoder": ["x", "y"],
    }
    denoiser |= {
        "in_channels": 64,
        "joint_attention_dim": 64,
        "pooled_projection_dim": 64,
        "num_attention_heads": 4,
        "attention_head_dim": 16,
    }
    anatomy = read_config(denoiser)
    for name, is_known in (("T5EncoderModel", True), ("InventedEncoderModel", False)):
        parts = components(
            Fields({**denoiser, "text_encoder_configs": {"text_encoder": {**T5, "architectures": [name]}}}), anatomy
        )
        encoder = next(part for part in parts if part.pipeline_part == "text_encoder")
        assert (encoder.parameter_count is not None) == is_known
        assert is_known or "is not described" in encoder.unknown_reason


def test_old_files_that_name_no_class_are_read_as_before():
    known = read_config({**LLAMA, "architectures": ["LlamaForCausalLM"]}).parameter_count
    for names in (None, [], ""):
        assert read_config({**LLAMA, "architectures": names} if names != "" else dict(LLAMA)).parameter_count == known


def test_every_class_of_the_list_is_one_that_its_reader_knows():
    """The library counted them all; here none may be refused as a class, whatever else its default lacks."""
    for model_type in sorted(described().keys() & class_defaults().keys()):
        with in_case(model_type):
            for name in described()[model_type]:
                try:
                    read_config({**class_defaults()[model_type], "architectures": [name]})
                except UnknownAnatomy as reason:
                    assert "class '" not in str(reason), name
                except ContradictoryConfig:
                    pass


def test_the_list_says_what_holds_each_class():
    listed, sources = rows(), set(read_facts()["source"]["source_id"])
    keys = [(row["model_type"], row["class_name"]) for row in listed]
    assert keys == sorted(set(keys)) and len(keys) > 850
    for row in listed:
        assert row["held_by"] in ("counted", "total", "code"), row
        assert row["source"] and set(row["source"].split(";")) <= sources, row
        assert row["model_type"] == DRAFT or families.reader_for(row["model_type"]), row
    assert sum(row["held_by"] == "counted" for row in listed) > 0.9 * len(listed)


def test_reward_heads_hold_what_their_code_builds():
    hidden = LLAMA["hidden_size"]
    for model_type, bare, name, head in (
        ("internlm2", "InternLM2ForCausalLM", "InternLM2ForRewardModel", hidden),
        ("qwen2", "Qwen2Model", "Qwen2ForRewardModel", hidden * hidden + hidden + hidden + 1),
        ("qwen2", "Qwen2Model", "Qwen2ForProcessRewardModel", hidden * hidden + hidden + 2 * hidden + 2),
    ):
        config = {**LLAMA, "model_type": model_type, "tie_word_embeddings": False, "num_labels": 7}
        whole = read_config({**config, "architectures": [bare]})
        body = whole.parameter_count - sum(t.element_count for t in whole.tensors if t.tensor_class == "head")
        assert read_config({**config, "architectures": [name]}).parameter_count == body + head


def test_every_class_of_the_snapshot_is_described():
    """What people download is not lost to a list: a class that the snapshot names is on it, or is one that nobody described."""
    missing = set()
    for record in bundled_snapshot().records:
        try:
            read_config(record.config or {})
        except UnknownClass as reason:
            missing.add(str(reason).split("'")[1])
        except (UnknownAnatomy, ContradictoryConfig):
            continue
    assert missing <= UNDESCRIBED


# Classes that records of the snapshot name under a model_type that is not theirs.
UNDESCRIBED = {"Mistral3ForConditionalGeneration", "Wav2Vec2ForSpeechClassification"}

QWEN = {
    "model_type": "qwen",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "vocab_size": 1000,
}
GLM = {
    "model_type": "chatglm",
    "hidden_size": 64,
    "num_layers": 2,
    "num_attention_heads": 4,
    "ffn_hidden_size": 128,
    "padded_vocab_size": 1000,
}
GLM |= {"kv_channels": 16, "multi_query_attention": True, "multi_query_group_num": 2, "seq_length": 1024}
NESTED = {
    "visual": (
        QWEN,
        {"visual": {"heads": 16, "image_size": 448, "layers": 48, "width": 1664, "output_dim": 4096, "patch_size": 14}},
    ),
    "vision_config": (
        GLM,
        {"vision_config": {"hidden_size": 1792, "num_hidden_layers": 63, "num_heads": 16, "patch_size": 14}},
    ),
    "audio_config": (LLAMA, {"audio_config": {"encoder_layers": 32, "d_model": 1280}}),
    "talker_config": (LLAMA, {"talker_config": {"text_config": {"hidden_size": 64}}}),
    "some_part": (LLAMA, {"some_part": {"hidden_size": 64, "num_hidden_layers": 2}}),
    "mm_vision_tower": (LLAMA, {"mm_vision_tower": "openai/clip-vit-large-patch14-336"}),
    "speech_encoder": (LLAMA, {"speech_encoder": "whisper"}),
}


@pytest.mark.parametrize("name", sorted(NESTED))
def test_a_part_that_no_reader_takes_makes_the_model_unknown(name):
    config, part = NESTED[name]
    assert read_config(config).parameter_count > 0
    with pytest.raises(UnknownAnatomy, match=f"{name}.* that is not described"):
        read_config({**config, **part})
    assert published({**config, **part})["anatomy_grade"] == "unknown"


def test_what_is_nested_for_other_reasons_changes_nothing():
    known = read_config(LLAMA)
    for idle in (
        {
            "quantization_config": {
                "bits": 4,
                "group_size": 128,
                "config_groups": {"group_0": {"weights": {"num_bits": 4}}},
            }
        },
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"generation_config": {"max_length": 20}, "task_specific_params": {"summarization": {"num_beams": 4}}},
        {"vision_config": {}, "audio_config": None, "mm_vision_tower": None},
    ):
        assert read_config({**LLAMA, **idle}).tensors == known.tensors


def test_a_class_of_the_language_model_alone_leaves_its_towers_out():
    default = class_defaults()["qwen3_5"]
    whole = read_config({**default, "architectures": ["Qwen3_5ForConditionalGeneration"]})
    alone = read_config({**default, "architectures": ["Qwen3_5ForCausalLM"]})
    assert {t.component for t in alone.tensors} < {t.component for t in whole.tensors}


def test_who_trains_without_a_class_of_the_library_is_said_to_bring_its_own_code(any_book):
    """Steps are counted on the library's classes: of others the band is wider."""
    rows = csv.DictReader(FILE.read_text(encoding="utf-8").splitlines())
    counted = {row["model_type"] for row in rows if row["held_by"] == "counted"}
    asked = "SELECT model.model_type, any_value(model_id ORDER BY model_id) FROM model JOIN shape USING (model_id) GROUP BY model.model_type"
    one = {kind: model for kind, model in any_book.execute(asked).fetchall() if kind not in counted}
    told = answering(any_book)([{"model_id": model, "phase_id": "full-finetune"} for model in one.values()])
    training = {kind for kind, row in zip(one, told, strict=True) if row["total_bytes"] is not None}
    own = {row[0] for row in any_book.execute("SELECT model_type FROM implementation WHERE has_own_code").fetchall()}
    assert len(training) > 25 and training - own == set()
    assert own & counted == set()
