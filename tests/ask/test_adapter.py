"""An adapter_config.json: what peft says of an adapter, in the macros' words where they have them, else a reason."""

from __future__ import annotations

import json

import pytest

from tests.few import SMALL, TEXT

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@pytest.fixture
def adapter(tmp_path):
    def write(**changes):
        told = {
            "peft_type": "LORA",
            "base_model_name_or_path": SMALL,
            "r": 32,
            "lora_alpha": 64,
            "target_modules": LINEAR,
        }
        path = tmp_path / "adapter_config.json"
        path.write_text(json.dumps(told | changes), encoding="utf-8")
        return path

    return write


@pytest.mark.full
@pytest.mark.parametrize(
    ("targets", "word"),
    [
        (LINEAR, "all-linear"),
        ("all-linear", "all-linear"),
        (LINEAR[:4], "attention"),
        (["v_proj", "q_proj"], "query-value"),
    ],
)
def test_its_rank_and_its_matrices_are_asked_for(adapter, ask_json, folder, targets, word):
    import duckdb

    told = ask_json("fits", adapter(target_modules=targets), "--gpu", "rtx-4090", "--phase", "lora")
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        query = f"SELECT total_bytes FROM footprint_of('{SMALL}', phase_id := 'lora', lora_rank := 32, lora_targets := '{word}', checkpointing := 'full')"
        assert [(told["formats"][0]["total_bytes"],)] == connection.execute(query).fetchall()
    assert told["model"] == SMALL and told["adapter"]["lora_targets"] == word


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("said", "word"), [("attention", "attention"), ("q_proj,v_proj", "query-value"), ("all", "all-linear")]
)
def test_what_a_lora_adapts_is_an_option(ask_json, folder, said, word):
    import duckdb

    told = ask_json(
        "fits", SMALL, "--gpu", "rtx-4090", "--phase", "lora", "--lora-targets", said, "--lora-dropout", "0.1"
    )
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        query = f"SELECT total_bytes FROM footprint_of('{SMALL}', phase_id := 'lora', lora_targets := '{word}', lora_dropout := 0.1, checkpointing := 'full')"
        assert [(told["formats"][0]["total_bytes"],)] == connection.execute(query).fetchall()


@pytest.mark.full
def test_the_loss_by_ligers_kernels_is_an_option(ask_json, ask, folder):
    import duckdb

    told = ask_json("fits", SMALL, "--gpu", "rtx-4090", "--phase", "lora", "--liger", "--context", "8192")
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        query = f"SELECT total_bytes FROM footprint_of('{SMALL}', phase_id := 'lora', loss := 'fused', context_tokens := 8192, checkpointing := 'full')"
        assert [(told["formats"][0]["total_bytes"],)] == connection.execute(query).fetchall()
    said = " ".join(ask("fits", SMALL, "liger", "lora", "rtx-4090", "8k")[1].split())
    assert "the loss by Liger's kernels" in said


@pytest.mark.full
def test_served_beside_the_weights_it_takes_of_the_card(adapter, ask_json, ask):
    plain = ask_json("fits", SMALL, "--gpu", "rtx-4090")
    told = ask_json("fits", adapter(), "--gpu", "rtx-4090")
    held = told["adapter"]["adapter_bytes"]
    # 16 bits of rank × (in + out) of seven matrices in 28 layers: widths 1024, 2048, 1024, 3072
    per_layer = (1024 + 2048) + 2 * (1024 + 1024) + (2048 + 1024) + 3 * (1024 + 3072)
    assert held == 2 * 32 * 28 * per_layer
    assert plain["formats"][0]["capacity_bytes"] - told["formats"][0]["capacity_bytes"] == held
    assert "With its adapter kept beside the weights (38 MiB in 16 bits)" in " ".join(
        ask("fits", adapter(), "--gpu", "rtx-4090")[1].split()
    )


def test_a_folder_with_an_adapter_is_its_adapter(adapter, ask_json):
    assert ask_json("fits", f"{adapter().parent}/", "--gpu", "rtx-4090")["model"] == SMALL


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"peft_type": "IA3"}, 3, "only LoRA and DoRA"),
        ({"target_modules": ["gate_proj"]}, 3, "Not known: what an adapter of"),
        ({"target_modules": "model.*proj"}, 3, "Not known: what an adapter of"),
        ({"target_modules": None}, 3, "Not known: what an adapter of"),
        ({"modules_to_save": ["lm_head"]}, 3, "modules_to_save"),
        ({"rank_pattern": {"q_proj": 8}}, 3, "rank_pattern"),
        ({"r": 0}, 2, "no rank"),
        ({"r": "32"}, 2, "no rank"),
        ({"base_model_name_or_path": None}, 2, "names no base model"),
        ({"base_model_name_or_path": "/home/somebody/llama"}, 2, "is not in this almanac"),
        ({"base_model_name_or_path": "Qwen/Qwen3-8"}, 2, f"Near it: {TEXT}"),
    ],
)
def test_what_has_no_word_there_is_refused(adapter, ask, changes, status, said):
    ended, out, err = ask("fits", adapter(**changes), "--gpu", "rtx-4090", "--phase", "lora")
    assert (ended, out) == (status, "") and said in " ".join(err.split())


def test_an_adapter_is_of_no_other_training(adapter, ask):
    status, _, err = ask("fits", adapter(), "--gpu", "rtx-4090", "--phase", "full-finetune")
    assert status == 2 and "belongs to lora, qlora and inference" in err
    assert ask("fits", adapter(), "--gpu", "rtx-4090", "--phase", "lora", "--rank", "8")[0] == 2


def test_a_file_that_is_not_there(ask, tmp_path):
    status, _, err = ask("fits", tmp_path / "config.json", "--gpu", "rtx-4090")
    assert status == 2 and "config.json" in err
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert "folder without a config.json" in " ".join(ask("fits", tmp_path / "a" / "b", "--gpu", "rtx-4090")[2].split())


@pytest.mark.full
def test_a_config_whose_layers_nobody_knows_is_told_by_its_weights_and_a_picture_by_what_it_takes(ask, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "table-transformer", "architectures": ["TableTransformerModel"]}))
    status, out, _ = ask("fits", path, "--gpu", "rtx-4090")
    assert status == 3 and "only its tensors are known" in " ".join(out.split()) and "layers and" not in out
    path.write_text(json.dumps({"architecture": "resnet18", "num_classes": 1000, "input_size": [3, 224, 224]}))
    status, out, _ = ask("fits", path, "--gpu", "rtx-4090")
    assert status == 0 and "11,689,512 parameters in 8 layers" in " ".join(out.split())
