"""`--program`: what the question leaves unsaid is what the program does by itself."""

import duckdb
import pytest

from pipeline.ask.sql_words import plain
from tests.few import EXPERTS, SEEING, SMALL, TEXT

CARD = ("--gpu", "rtx-4090")


def test_a_program_answers_with_its_engine_its_context_and_its_versions(ask_json, ask):
    told = ask_json("fits", TEXT, "--gpu", "rtx-3060-12gb", "--program", "ollama")
    assert {row["engine_id"] for row in told["formats"]} == {"llama.cpp"}
    assert told["use"]["context_tokens"] == 4096 and told["use"]["sequences"] == 1
    assert told["formats"][0]["holds_for"] == "Ollama 0.31.2 to 0.33"
    assert "Holds for Ollama 0.31.2 to 0.33" in ask("fits", TEXT, *CARD, "--program", "Ollama")[1]


@pytest.mark.full
def test_what_ollama_keeps_free_of_a_card_is_needed(ask_json, ask):
    """llama-server moves layers to the CPU for 1024 MiB that are to stay free, where it is told no number of layers (common/fit.cpp), so that all
    stay on the card only beside that."""
    asked = ("fits", TEXT, "--gpu", "rtx-3060-12gb", "--context", "8192", "--format", "Q4_K_M")
    plain = ask_json(*asked)["formats"][0]
    for version in ("0.30", "0.31.1", "0.31.2", "0.33"):
        own = ask_json(*asked, "--program", f"ollama {version}")["formats"][0]
        assert own["total_bytes"] - plain["total_bytes"] == 1024 * 2**20
    # on a card that holds it but for that, it is told how to be given all of it
    free = ("--free", f"{(plain['total_bytes'] * 1.05) / 2**30:.2f}GiB")
    short = (*asked[:2], *asked[4:], *free)
    assert ask_json(*short)["verdict"] == "fits"
    told = ask_json(*short, "--program", "ollama")
    assert told["verdict"] != "fits" and "kept-free" in [one["help"] for one in told["helps"]]
    commands = {line["engine"]: line["command"] for line in ask_json(*short)["commands"]}
    assert commands["Ollama"].startswith("LLAMA_ARG_FIT_TARGET=0 ")
    own = {line["engine"]: line["command"] for line in ask_json(*asked, "--program", "ollama")["commands"]}
    assert "LLAMA_ARG_FIT_TARGET" not in own["Ollama"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("koboldcpp", "--quantkv 1 --flashattention"),
        ("lm-studio", "K and V Cache Quantization Type q8_0, Flash Attention on"),
    ],
)
def test_each_program_has_its_own_words_for_a_cache_in_fewer_bits(ask_json, program, words):
    told = ask_json("fits", TEXT, *CARD, "--program", program, "--format", "Q4_K_M", "--kv", "q8_0")
    assert [one["setting"] for one in told["settings"]] == [words]
    commands = {line["engine"]: line["command"] for line in told["commands"]}
    assert "-ctk q8_0 -ctv q8_0" in commands["llama.cpp"] and "OLLAMA_KV_CACHE_TYPE=q8_0" in commands["Ollama"]


def test_a_version_that_holds_windows_whole_is_not_told_as_one_that_does_not(ask):
    status, _, error = ask("fits", TEXT, *CARD, "--program", "koboldcpp 1.113")
    assert status == 3 and "--useswa" in error


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("card", "tokens", "words"),
    [
        (("--gpu", "rtx-3060-12gb"), 4096, "at 4,096 tokens (Ollama's own default below 23 GiB of GPU memory)"),
        # 24 GB on their sheet, and less than 23 GiB as a program is told it
        (("--gpu", "a10"), 4096, "below 23 GiB"),
        (("--gpu", "rtx-4090"), 32768, "(Ollama's own default from 23 GiB of GPU memory to below 47)"),
        # what other programs hold is no less of the card
        (("--gpu", "rtx-4090", "--free", "12GiB"), 32768, "own default from 23 GiB"),
        (("--gpu", "2xrtx-3060-12gb"), 32768, "own default from 23 GiB"),
        (("--gpu", "RTX 3060 12GB + RTX 4070"), 32768, "own default from 23 GiB"),
        (("--gpu", "rtx-a6000"), 40960, "(all that it reads: Ollama's own default here is 262,144)"),
        (("--free", "4x12GiB"), 40960, "Ollama's own default here is 262,144"),
    ],
)
def test_ollama_takes_its_context_by_the_memory_of_all_cards(ask_json, ask, card, tokens, words):
    """Who types `ollama run` on 24 GiB gets 32,768 tokens, and not the 4,096 of a small card (server/routes.go since 0.15.5)."""
    told = ask_json("fits", TEXT, *card, "--program", "ollama", "--format", "Q4_K_M")
    assert {row["context_tokens"] for row in told.get("formats", told.get("together"))} == {tokens}
    assert words in " ".join(ask("fits", TEXT, *card, "--program", "ollama 0.30", "--format", "Q4_K_M")[1].split())


@pytest.mark.full
def test_a_context_that_is_said_is_nobodys_default(ask_json, ask):
    asked = ("fits", TEXT, *CARD, "--program", "ollama", "--context", "4096")
    assert ask_json(*asked)["best"]["context_tokens"] == 4096 and "own default from" not in ask(*asked)[1]
    # (nor has any other program one that depends on the card)
    assert ask_json("fits", TEXT, *CARD, "--program", "vllm")["use"]["own_context"] is None


@pytest.mark.full
def test_a_plan_and_a_draft_take_ollamas_context_too(ask_json, ask):
    plans = ask_json("plan", TEXT, "--gpu", "rtx-3060-12gb", "--program", "ollama", "--limit", "20")["cards"][0][
        "plans"
    ]
    # (with a second card the machine has 23 GiB together, and Ollama takes more)
    assert {(row["gpu_count"], row["context_tokens"]) for row in plans} <= {(1, 4096), (2, 32768), (4, 40960)}
    one = ("plan", TEXT, "--gpu", "rtx-4090", "--program", "ollama")
    assert "at 32,768 tokens (Ollama's own default" in " ".join(ask(*one)[1].split())
    drafted = ask_json("fits", TEXT, *CARD, "--draft", SMALL, "--program", "ollama")
    assert drafted["drafted"]["context_tokens"] == 32768


@pytest.mark.full
@pytest.mark.parametrize("asked", ["vllm 0.19", "vllm==0.19.1", "vLLM v0.19", "vllm@0.19"])
def test_a_version_is_said_as_people_write_it(ask_json, asked):
    told = ask_json("fits", TEXT, *CARD, "--program", asked, "--context", "4096", "--format", "bf16")
    assert [row["holds_for"] for row in told["formats"]] == ["vLLM 0.11 to 0.19"]


@pytest.mark.parametrize(("version", "told"), [("2025.7", "Unsloth 2025.7 on"), ("2026.6", "Unsloth 2025.9 to 2026.6")])
def test_a_release_whose_loss_was_read_of_some_classes_is_asked_of_them(ask_json, version, told):
    """What it was read of is said of a model, and not of the program before one is known: each question was told "not known"."""
    asked = ask_json("fits", TEXT, "--gpu", "rtx-4090", "--phase", "qlora", "--program", f"unsloth {version}")
    assert asked["best"]["verdict"] == "fits" and asked["best"]["holds_for"].startswith(told)
    other = ask_json("fits", SEEING, "--gpu", "rtx-4090", "--phase", "qlora", "--program", f"unsloth {version}")
    assert other["status"] == 3 and "alone: ask for a later version" in str(other)


@pytest.mark.full
def test_a_training_takes_the_programs_recipe(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "llama-factory")
    assert told["use"]["sequences"] == 8 and told["use"]["context_tokens"] == 2048
    assert (
        ask_json("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "llama-factory", "--users", "2")[
            "use"
        ]["sequences"]
        == 2
    )


@pytest.mark.full
@pytest.mark.parametrize(("program", "dtype"), [("llama-factory", "fp32"), ("trl", "fp32"), ("ms-swift", "bf16")])
def test_a_training_is_in_the_programs_own_format(ask_json, folder, program, dtype):
    """LLaMA-Factory casts what it trains to fp32: told in bf16, half of what it takes "fitted"."""
    told = ask_json("fits", SMALL, "--gpu", "h100-sxm", "--phase", "full-finetune", "--program", program)
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        query = f"SELECT dtype_id, total_bytes FROM footprint_of('{SMALL}', phase_id := 'full-finetune', program := '{program}')"
        assert connection.execute(query).fetchall() == [(dtype, told["best"]["total_bytes"])]
    asked = ("--phase", "full-finetune", "--program", program, "--format", "bf16")
    assert ask_json("fits", SMALL, "--gpu", "h100-sxm", *asked)["best"]["dtype_id"] == "bf16"


@pytest.mark.full
def test_parts_on_several_cards_are_in_fp32_where_bf16_is_on(ask_json, program="ms-swift"):
    """Accelerate's FSDP2 and DeepSpeed keep fp32 of what is trained: 16 bytes of a parameter, and not 8 as on one card."""
    one, eight = (
        ask_json("fits", TEXT, "--gpu", card, "--phase", "full-finetune", "--program", program, "--context", "2048")[
            "best"
        ]
        for card in ("h200", "8xh100-sxm")
    )
    assert eight["total_bytes"] > 2 * 8.19e9 and one["total_bytes"] < 12 * 8.19e9


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "words"), [((), "fp32 masters of what is trained"), (("--program", "axolotl"), "AdamW")]
)
def test_a_checkpoint_in_mxfp4_is_trained_unpacked_and_that_is_said(ask, ask_json, options, words):
    """LoRA of gpt-oss was not known: only its stored format was asked, which nothing trains in."""
    phase = "full-finetune" if options else "lora"
    asked = ("fits", "openai/gpt-oss-20b", "--gpu", "h200", "--phase", phase, *options)
    told = ask_json(*asked)
    assert told["unpacked_from"] == "mxfp4" and told["best"]["dtype_id"] == "bf16"
    out = " ".join(ask(*asked)[1].split())
    assert (
        "Its weights are published in mxfp4: counted is the model unpacked to bf16 as it is loaded" in out
        and words in out
    )
    assert "unpacked_from" not in ask_json("fits", TEXT, "--gpu", "h200", "--phase", "lora")


def test_a_reason_names_the_options_of_a_lora():
    """The terminal has them by names of its own."""
    reason = "With a dropout of 0 it trains (lora_dropout := 0), and with adapters on attention alone (lora_targets := attention)"
    assert (
        plain(reason)
        == "With a dropout of 0 it trains (--lora-dropout 0), and with adapters on attention alone (--lora-targets attention)"
    )


@pytest.mark.full
def test_a_trainer_without_a_context_of_its_own_says_what_was_counted(ask):
    out = " ".join(ask("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "ms-swift")[1].split())
    assert "at 2,048 tokens" in out
    assert (
        "but for the context: it has none that a source tells, so that 2,048 tokens are counted, and longer rows take more"
        in out
    )
    own = " ".join(ask("fits", TEXT, "--gpu", "h100-sxm", "--phase", "lora", "--program", "llama-factory")[1].split())
    assert "but for the context" not in own


@pytest.mark.full
def test_how_several_cards_share_a_training_is_said(ask):
    asked = ("fits", TEXT, "--phase", "full-finetune", "--program", "ms-swift", "--context", "2048", "--gpu")
    assert "in parts, one on each card (FSDP2, much as DeepSpeed ZeRO-3)" in " ".join(
        ask(*asked, "8xh100-sxm")[1].split()
    )
    assert "ZeRO" not in ask(*asked, "b200")[1]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        (("--program", "olama"), 2, "nearest: ollama"),
        (("--program", "ollama", "--phase", "qlora"), 2, "qlora is done by --program "),
        (("--program", "unsloth", "--phase", "full-finetune"), 3, "kernels of its own"),
        (
            ("--program", "vllm 0.5"),
            3,
            "known: 0.6.4 to 0.7, 0.8, 0.9 to 0.9.1, 0.9.2 to 0.10.1, 0.10.2, 0.11 to 0.19, 0.20 to 0.33",
        ),
    ],
)
def test_what_a_program_cannot_do_is_told_with_what_can(ask, asked, status, words):
    ended, _out, error = ask("fits", TEXT, *CARD, *asked)
    assert ended == status and words in " ".join(error.split())


@pytest.mark.full
def test_a_version_that_lacks_the_models_class_says_from_which_it_is_there(ask):
    ended, out, error = ask("fits", TEXT, *CARD, "--program", "vllm 0.7.3")
    said = " ".join((out + error).split())
    assert ended == 3 and "0.7.3" in said and "from 0.8.4 on" in said and "None" not in said


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "program", "words"),
    [(TEXT, "mlx", "MLX runs on CUDA too"), (EXPERTS, "transformers", "no source in the book says")],
)
def test_a_program_that_has_no_format_here_says_why(ask, model, program, words):
    """A model published in MXFP4 is not told to need its 16 bits in Transformers, which loads what is published."""
    status, said, _ = ask("fits", model, *CARD, "--program", program)
    assert status == 3 and words in said


@pytest.mark.full
def test_a_build_of_llama_cpp_is_told_from_where_on_its_masks_are_small(ask_json, ask):
    told = ask_json("fits", TEXT, *CARD, "--program", "llama.cpp b9500")
    assert told["verdict"] == "fits" and told["formats"][0]["holds_for"] == "llama.cpp b9410 to b9700"
    status, said, error = ask("fits", TEXT, *CARD, "--program", "llama.cpp b4500")
    assert status == 3 and "builds before b9410 made the mask" in " ".join((said + error).split())


@pytest.mark.full
def test_a_context_that_is_not_the_programs_own_is_not_said_to_be(ask):
    own, none = (ask("fits", TEXT, *CARD, "--program", program)[1] for program in ("llama-cpp-python", "koboldcpp"))
    assert "what was not said is its own default." in own and "at 512 tokens" in " ".join(own.split())
    assert "but for the context: it has none that a source tells." in " ".join(none.split())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "program", ["vllm", "sglang", "llama.cpp", "ollama", "lm-studio", "koboldcpp", "transformers", "mlx-lm"]
)
def test_every_program_of_inference_is_answered_without_a_format(ask_json, program):
    card = "m4-max-64gb" if program == "mlx-lm" else "rtx-4090"
    told = ask_json("fits", SMALL, "--gpu", card, "--program", program)
    assert told["verdict"] == "fits" and len(told["formats"]) > 2


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "program", "said"),
    [
        (
            "qwen3:8b",
            "vllm",
            "vLLM reads files of GGUF of some architectures, and what it holds then is not described here",
        ),
        ("Qwen/Qwen3-8B-AWQ", "llama.cpp", "whether llama.cpp runs awq-int4"),
    ],
)
def test_a_name_in_a_format_of_another_program_is_asked_in_the_formats_of_the_one_that_is_named(
    ask_json, name, program, said
):
    told = ask_json("fits", name, *CARD, "--program", program)
    assert told["verdict"] == "fits" and told["not_in_reason"].startswith(said)
    # a Yes is of other files than the one that was named
    assert told["not_in"] == ("gguf-q4_k_m" if name == "qwen3:8b" else "awq-int4") and told["status"] == 3
    assert told["formats"] and "gguf-q4_k_m" not in {row["dtype_id"] for row in told["formats"] if program == "vllm"}


@pytest.mark.full
def test_a_name_in_a_format_that_the_program_runs_is_asked_in_it(ask_json):
    told = ask_json("fits", "qwen3:8b", *CARD, "--program", "ollama")
    assert [row["dtype_id"] for row in told["formats"]] == ["gguf-q4_k_m"] and "No source" not in told["taken"]


@pytest.mark.full
def test_a_format_that_was_asked_for_stays(ask_json):
    told = ask_json("fits", "qwen3:8b", *CARD, "--program", "vllm", "--format", "gguf-q4_k_m")
    assert told["verdict"] is None and [row["dtype_id"] for row in told["formats"]] == ["gguf-q4_k_m"]
