"""Names as people write them: repositories of a quantisation, files, tags of Ollama, cards without their maker's words."""

import duckdb
import pytest

from pipeline.ask.card_names import counted, unlike
from tests.few import EXPERTS, PIPELINE, SEEING, TEXT

NAMES = {
    "Qwen/Qwen3-8B-AWQ": "awq-int4",
    "qwen/qwen3-8b": None,
    "JunHowie/Qwen3-8B-GPTQ-Int4": "gptq-int4",
    "someone/Qwen3-8B-GPTQ-Int8": "gptq-int8",
    "mlx-community/Qwen3-8B-4bit": "mlx-4bit",
    "lmstudio-community/Qwen3-8B-MLX-8bit": "mlx-8bit",
    "unsloth/Qwen3-8B-bnb-4bit": "nf4",
    "unsloth/Qwen3-8B-unsloth-bnb-4bit": None,  # keeps more in 16 bits than nf4 says
    "bartowski/Qwen_Qwen3-8B-GGUF": None,  # the organisation stands in the name too
    "RedHatAI/Qwen3-8B-quantized.w4a16": "gptq-int4",
    "someone/Qwen3-8B-INT4": "gptq-int4",
    "someone/Qwen3-8B-int4-AutoRound": "gptq-int4",
    "nytopop/Qwen3-8B.w8a8": "w8a8-int8",
    "Qwen_Qwen3-8B-Q6_K.gguf": "gguf-q6_k",
    "Qwen3-8B-Q4_K_M.gguf": "gguf-q4_k_m",
    "qwen3-8b.q8_0.gguf": "gguf-q8_0",
    "Qwen3-8B-BF16-00001-of-00002.gguf": "bf16",
    "hf.co/unsloth/Qwen3-8B-GGUF:Q5_K_M": "gguf-q5_k_m",
    "hugging-quants/Qwen3-8B-Q8_0-GGUF": "gguf-q8_0",  # a repository of one mix
    "qwen3 8b iq4_xs": "gguf-iq4_xs",
    "qwen3-8b-IQ2_XXS": None,
    "qwen3:8b": "gguf-q4_k_m",
    "qwen3:8b-q8_0": "gguf-q8_0",
    "qwen3": "gguf-q4_k_m",  # what Ollama takes where no tag is said
    "qwen3:latest": "gguf-q4_k_m",
    "https://ollama.com/library/qwen3:8b": "gguf-q4_k_m",
    "Qwen3-8B": None,
    "ollama run qwen3:8b": "gguf-q4_k_m",
    "vllm serve Qwen/Qwen3-8B-AWQ": "awq-int4",
    "qwen3 8b": None,
    "qwen3 8b awq": "awq-int4",
    "qwen3 8b q4": "gguf-q4_k_m",
    "Qwen3-8B-q8": "gguf-q8_0",
    "qwen3 8b q5_k_m": "gguf-q5_k_m",
    "Qwen3-8B-UD-Q4_K_XL.gguf": None,  # of as many bits in each layer as Unsloth chose
    "unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL": None,
    "mradermacher/Qwen3-8B-i1-GGUF:IQ3_M": "gguf-iq3_m",
    "turboderp/Qwen3-8B-exl3": None,
    "turboderp/Qwen3-8B-exl3 4.0bpw": "exl3-4bpw",
    "turboderp/Qwen3-8B-exl3:5.0bpw": "exl3-5bpw",
    "someone/Qwen3-8B_exl3_3.50bpw": "exl3-3.5bpw",
    "someone/Qwen3-8B-6bpw-h6-exl3": "exl3-6bpw",
    "someone/Qwen3-8B-exl3-8.0bpw-h8": "exl3-8bpw",
    "someone/Qwen3-8B-exl3-4.0bpw-hb8": None,  # a head of more bits than is counted
    "someone/Qwen3-8B-4.0bpw-h6-exl2": None,
    "nvidia/Qwen3-8B-FP4": None,
    "amd/Qwen3-8B-FP8-KV": "fp8",
    "RedHatAI/Qwen3-8B-quantized.w8a16": "gptq-int8",
    "mlx-community/Qwen3-8B-qat-4bit": "mlx-4bit",
    "qwen3 8b 4bit": "gguf-q4_k_m",  # and no repository of MLX
    "Qwen3-8B-8-bit": "gguf-q8_0",
    "someone/Qwen3-8B-4bit": None,
    "qwen3:8b-mlx": None,  # not the file of four bits: Ollama holds it in a format of MLX
}


@pytest.fixture
def macro(folder):
    with duckdb.connect(str(folder / "almanac.duckdb"), read_only=True) as connection:
        yield lambda query, *values: connection.execute(query, values).fetchall()


@pytest.mark.some(10)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_quantisation_is_its_model_and_its_format(macro, name):
    assert macro("SELECT model_id, dtype_id FROM repository_of($1)", name) == [(TEXT, NAMES[name])]


@pytest.mark.full
def test_gpt_oss_of_ollama_is_counted_with_all_beside_its_experts_in_16_bits(macro, ask_json):
    """gpt-oss:20b is a file of 13.8 GB, and llama.cpp's own of 12.1: told as the latter, it fitted where it did not."""
    (said,) = macro("SELECT model_id, dtype_id, beyond_bytes FROM repository_of('gpt-oss:20b')")
    (published,) = macro("SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'mxfp4'", EXPERTS)
    (held,) = macro("SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'gguf-mxfp4'", EXPERTS)
    assert said == (EXPERTS, "gguf-mxfp4", published[0] - held[0]) and 13.7e9 < published[0] < 13.8e9
    tagged, plain = (
        ask_json("fits", name, "--gpu", "rtx-4060-ti-16gb", "--context", "98304", "--program", "ollama", *more)
        for name, more in (("gpt-oss:20b", ()), (EXPERTS, ("--format", "gguf-mxfp4")))
    )
    assert tagged["best"]["total_bytes"] - plain["best"]["total_bytes"] == said[2]
    assert (tagged["verdict"], plain["verdict"]) == ("no", "fits")
    assert "holds up to 1.6 GiB more than gguf-mxfp4" in tagged["taken"]


def test_googles_own_file_of_four_bits_is_told_with_its_embedding_in_16(macro):
    """That of 27B is 17.2 GB, and llama.cpp's own mix 15.6: told as the latter, it would fit where it does not."""
    for name in (
        "google/gemma-3-27b-it-qat-q4_0-gguf",
        "gemma-3-27b-it-q4_0.gguf",  # as Google writes it; makers of mixes write Q4_0
        "gemma 3 27b qat",
        "hf.co/google/gemma-3-4b-it-qat-q4_0-gguf:Q4_0",
    ):
        said = macro("SELECT dtype_id, dtype_named FROM repository_of($1)", name)
        assert said == [("gguf-q4_0", "gguf-q4_0-f16-embedding")], name
    query = "SELECT embedding_bytes FROM weight WHERE model_id = $1 AND dtype_id = $2"
    (whole,), (packed,) = (macro(query, TEXT, dtype)[0] for dtype in ("bf16", "gguf-q4_0"))
    beyond = macro("SELECT internal.beyond_format_bytes($1, 'gguf-q4_0-f16-embedding', 'gguf-q4_0', NULL)", TEXT)
    assert beyond == [(whole - packed,)] and 0 < packed < whole
    # what others made of it is a mix as any other; what was published in 16 bits, those; of later ones nobody says what is left in 16
    for name, dtype in (
        ("stduhpf/google-gemma-3-27b-it-qat-q4_0-gguf-small", "gguf-q4_0"),
        ("google/gemma-3-27b-it-qat-q4_0-unquantized", "bf16"),
        ("google/gemma-4-31B-it-qat-q4_0-gguf", None),
        ("gemma-3-27b-it-Q4_0.gguf", "gguf-q4_0"),
        ("unsloth/gemma-3-27b-it-qat-GGUF", None),
        ("unsloth/gemma-3-27b-it-qat-GGUF:Q8_0", "gguf-q8_0"),
    ):
        assert macro("SELECT dtype_id, coalesce(dtype_named, '') LIKE '%embedding' FROM repository_of($1)", name) == [
            (dtype, False)
        ], name


@pytest.mark.full
def test_a_file_of_ollama_larger_than_its_format_is_told_with_what_it_holds_more(macro, ask_json):
    """qwen3:8b is listed with 5.2 GB, which is 5.25 at most; Q4_K_M of llama.cpp holds 5.02."""
    (said,) = macro("SELECT dtype_id, beyond_bytes FROM repository_of('qwen3:8b')")
    (held,) = macro("SELECT weights_bytes FROM weight WHERE model_id = $1 AND dtype_id = 'gguf-q4_k_m'", TEXT)
    assert said == ("gguf-q4_k_m", 5_250_000_000 - held[0])
    assert macro("SELECT beyond_bytes FROM repository_of('Qwen3-8B-Q4_K_M.gguf')") == [(None,)]
    told = ask_json("fits", "qwen3:8b", "--gpu", "rtx-4090")
    assert (
        told["best"]["total_bytes"] - said[1]
        == ask_json("fits", TEXT, "--gpu", "rtx-4090", "--format", "q4_k_m")["best"]["total_bytes"]
    )
    # what is pasted takes that file, and not the one of another maker
    assert [line["command"].rpartition(" ")[2] for line in told["commands"]] == ["qwen3:8b"]


@pytest.mark.full
def test_a_tag_of_ollama_is_shared_with_the_cpu_as_ollama_does_it(ask, ask_json):
    """What its file holds beyond the format is kept free, as if all of it lay on the card."""
    asked = ("--gpu", "rtx-3060-12gb", "--context", "8192", "--program", "ollama")
    (tag,) = [one for one in ask_json("fits", "gpt-oss:20b", *asked)["helps"] if one["help"] == "layers"]
    plain = ask_json("fits", EXPERTS, *asked, "--format", tag["dtype_id"])
    (shared,) = [one for one in plain["helps"] if one["help"] == "layers"]
    assert 0 < tag["gpu_layers"] < shared["gpu_layers"]
    said = " ".join(ask("fits", "gpt-oss:20b", *asked)[1].split())
    # (llama-server moves experts first, where it is told no number of layers)
    assert (
        f"as Ollama does by itself: all layers on the card in MXFP4 with the experts of about {tag['cpu_expert_layers']} on the CPU"
        in said
    )
    assert "-ngl" not in said


def test_a_tag_of_ollama_that_drafts_is_not_told_as_one_that_does_not(ask):
    """Its file has layers that predict, and its parameters say how many tokens: no stranger's repository of a like name is meant."""
    for program in ((), ("--program", "ollama")):
        status, out, err = ask("fits", "qwen3:8b-mtp-q4_K_M", "--gpu", "rtx-3090", *program)
        assert status == 3 and not out
        assert "vram-almanac fits qwen3:8b-q4_K_M --draft mtp" in " ".join(err.split())


def test_where_files_are_not_counted_a_larger_one_has_a_reason(ask):
    for more in (("--gpu", "rtx-3090 + rtx-3060-12gb"), ("--gpu", "rtx-4090", "--draft", TEXT)):
        status, out, err = ask("fits", "gpt-oss:20b", *more)
        assert status == 3 and not out and "1.6 GiB more than gguf-mxfp4" in " ".join(err.split())


@pytest.mark.parametrize(
    ("said", "dtype"),
    [
        ("gpt-oss-20b-Q4_K_M.gguf", "gguf-mxfp4"), ("bartowski/openai_gpt-oss-20b-GGUF:Q6_K", "gguf-mxfp4"),
        ("gpt-oss-20b-F16.gguf", "gguf-mxfp4"), ("unsloth/gpt-oss-20b-GGUF:F16", "gguf-mxfp4"),
        ("gpt-oss-20b-UD-Q4_K_XL.gguf", "gguf-mxfp4"), ("gpt-oss-20b-F32.gguf", None),
        ("mlx-community/gpt-oss-20b-MXFP4-Q4", None),
    ],
)  # fmt: skip
def test_experts_of_gpt_oss_stay_in_mxfp4_whatever_a_file_is_called(macro, said, dtype):
    """The file called F16 is 14 GB and not 42: told by its name it would be refused where it runs."""
    assert macro("SELECT model_id, dtype_id FROM repository_of($1)", said) == [(EXPERTS, dtype)]


@pytest.mark.full
def test_with_ollama_a_name_alone_is_its_tag(macro, ask_json):
    assert macro("SELECT model_id, dtype_id FROM repository_of('ollama run bge-m3')") == [("BAAI/bge-m3", "fp16")]
    assert ask_json("fits", "bge-m3", "--gpu", "rtx-4090", "--program", "ollama")["formats"][0]["dtype_id"] == "fp16"


def test_a_model_of_that_name_goes_before_ollamas(macro):
    assert macro("SELECT model_id, dtype_id FROM repository_of('bge-m3')") == [("BAAI/bge-m3", None)]
    assert macro("SELECT model_id, dtype_id FROM repository_of('bge-m3:latest')") == [("BAAI/bge-m3", "fp16")]


def test_the_name_of_a_family_is_the_model_that_people_mean(macro):
    for said, dtype in (("sdxl", None), ("SDXL 1.0", None), ("stable diffusion xl", None), ("sdxl q8_0", "gguf-q8_0")):
        assert macro("SELECT model_id, dtype_id FROM repository_of($1)", said) == [(PIPELINE, dtype)]
    # a family of which this almanac has no model
    assert macro("SELECT model_id FROM repository_of('flux')") == [(None,)]


def test_a_name_that_nothing_is_known_of_stays_unknown(macro):
    assert macro("SELECT model_id, dtype_id FROM repository_of('nobody/nothing-AWQ')") == [(None, "awq-int4")]


def test_a_plan_of_an_unlisted_repository_that_may_hold_more_is_not_known(ask):
    assert ask("plan", "cyankiwi/Qwen3-8B-AWQ", "--gpu", "rtx-4090")[0] == 3


def test_a_checkpoint_of_bitsandbytes_asked_of_vllm_has_no_command_of_other_files(ask_json):
    told = ask_json("fits", "someone/Qwen3-8B-bnb-4bit", "--gpu", "rtx-4090", "--program", "vllm", "--context", "2048")
    assert (told["not_in"], told["status"], told["commands"]) == ("nf4", 3, [])
    assert "from 0.28 on by its plugin" in told["not_in_reason"]


@pytest.mark.parametrize(
    "more, dtype",
    [((), "gguf-q4_k_m"), (("--program", "vllm"), "awq-int4"), (("--phase", "qlora"), "nf4")],
)
def test_bits_alone_are_a_format_of_the_program_that_is_asked(ask_json, more, dtype):
    told = ask_json("fits", "qwen3 8b 4bit", "--gpu", "rtx-4090", *more)
    assert told["model"] == TEXT and {row["dtype_id"] for row in told["formats"]} == {dtype}
    assert told["taken"].startswith(f"qwen3 8b 4bit is taken as {TEXT} in {dtype}.")


@pytest.mark.full
def test_the_command_takes_such_a_name_and_says_so(ask_json, ask):
    told = ask_json("fits", "someone/Qwen3-8B-GPTQ-Int4", "--gpu", "rtx-4090")
    assert {row["dtype_id"] for row in told["formats"]} == {"gptq-int4"} and told["model"] == TEXT
    assert told["taken"].startswith(
        f"someone/Qwen3-8B-GPTQ-Int4 is taken as {TEXT} in gptq-int4. A repository of that name is not in this almanac: "
    )
    assert told["taken"] in " ".join(ask("fits", "someone/Qwen3-8B-GPTQ-Int4", "--gpu", "rtx-4090")[1].split())
    said = ask_json("fits", "qwen3:8b", "--gpu", "rtx-4090", "--format", "Q8_0")
    assert {row["dtype_id"] for row in said["formats"]} == {"gguf-q8_0"}


def test_a_chip_in_a_size_that_only_its_larger_kinds_have_is_one_of_them(ask_json):
    told = ask_json("fits", "can my macbook pro m3 36gb run qwen3 8b q4")
    assert told["card"]["gpu_id"] in ("m3-pro-36gb", "m3-max-36gb") and told["verdict"] == "fits"
    assert "m3-max-36gb" in str(told) and "m3-pro-36gb" in str(told)


@pytest.mark.some(10)
@pytest.mark.parametrize(
    ("called", "cards"),
    [
        ("RTX 4090 mobile", ["rtx-4090-laptop"]),
        ("8 GB Mac", ["m1-8gb", "m2-8gb", "m3-8gb"]),
        ("MacBook Pro 36GB", ["m3-max-36gb", "m3-pro-36gb", "m4-max-36gb", "m5-max-36gb"]),
        ("Mac", []),
        ("3090", ["rtx-3090"]),
        ("NVIDIA GeForce RTX 3090", ["rtx-3090"]),
        ("4060 ti 16g", ["rtx-4060-ti-16gb"]),
        ("A100 40G", ["a100-pcie-40gb", "a100-sxm-40gb"]),
        ("a100-80gb", ["a100-pcie-80gb", "a100-sxm-80gb"]),
        ("V100 32GB", ["v100-pcie-32gb", "v100-sxm2-32gb"]),
        ("A6000", ["rtx-a6000"]),
        ("nothing", []),
        (
            "24GB",
            ["rtx-3090", "rtx-3090-ti", "rtx-4090", "rtx-4090-d", "rtx-5090-d-v2", "rtx-5090-laptop", "titan-rtx"],
        ),
        ("a card with 32 GB of VRAM", ["rtx-5090", "rtx-5090-d"]),
        ("laptop 3070", ["rtx-3070-laptop"]),
        ("my 3060", ["rtx-3060-12gb", "rtx-3060-8gb"]),
        ("3090s", ["rtx-3090"]),
        ("4070TiS", ["rtx-4070-ti-super"]),
        ("RTX 6000 Pro", ["rtx-pro-6000"]),
        ("H100 SXM5", ["h100-sxm"]),
        ("NVIDIA A100-SXM4-80GB", ["a100-sxm-80gb"]),
        ("A800 80G", ["a800-pcie-80gb", "a800-sxm-80gb"]),
        ("b580", ["arc-b580"]),
        ("Jetson Thor", ["jetson-agx-thor"]),
        ("AGX Orin", ["jetson-agx-orin-32gb", "jetson-agx-orin-64gb"]),
        ("48 GB", ["quadro-rtx-8000", "rtx-5880-ada", "rtx-6000-ada", "rtx-a6000", "rtx-pro-5000-48gb"]),
        ("23GB", []),
        ("GPU", []),
        ("MacBook Pro M3 16GB", ["m3-16gb"]),
        ("Mac Studio M2 Ultra 192GB", ["m2-ultra-192gb"]),
        ("m3 pro macbook pro 36 GB", ["m3-pro-36gb"]),
        ("DGX Spark", ["gb10"]),
        ("Mac Studio 512GB", ["m3-ultra-512gb"]),
        ("mac mini 48gb", ["m4-pro-48gb"]),
        ("Framework Desktop 128GB", ["ryzen-ai-max-395"]),
        ("Strix Halo 96GB", ["ryzen-ai-max-395-96gb"]),
        ("kaggle t4", ["t4"]),
    ],
)
def test_a_card_is_known_by_what_people_call_it(macro, called, cards):
    assert [row[0] for row in macro("SELECT gpu_id FROM gpus_called($1)", called)] == cards


@pytest.mark.parametrize(
    ("said", "name", "count"),
    [
        ("7900 xtx", "7900 xtx", None), ("9070 XT", "9070 XT", None), ("7800xt", "7800xt", None),
        ("2x 7900 xtx", "7900 xtx", 2), ("7900 xtx x2", "7900 xtx", 2), ("2xt4", "t4", 2), ("t4 X2", "t4", 2),
        ("dual 3090", "3090", 2), ("a pair of RTX 3090s", "RTX 3090s", 2), ("four H100", "H100", 4),
        ("3090x2", "3090", 2), ("2x3090", "3090", 2), ("8X H100", "H100", 8), ("titan x", "titan x", None),
    ],
)  # fmt: skip
def test_the_x_of_a_name_is_not_counted_by(said, name, count):
    assert counted(said) == (name, count)


def test_a_plus_in_a_name_adds_no_card():
    assert unlike("Ryzen AI Max+ 395") == ["Ryzen AI Max+ 395"]
    assert unlike("RTX 3090 + RTX 3060 12GB") == ["RTX 3090", "RTX 3060 12GB"] and unlike("3090+3060") == [
        "3090",
        "3060",
    ]


@pytest.mark.full
def test_a_size_needs_no_unit_and_one_that_was_never_sold_is_asked_by_its_memory(ask_json, ask):
    assert ask_json("fits", TEXT, "--gpu", "A100 80")["card"]["gpu_id"].endswith("80gb")
    assert ask_json("fits", TEXT, "--gpu", "4050")["card"]["gpu_id"] == "rtx-4050-laptop"
    status, _, said = ask("fits", TEXT, "--gpu", "2080 ti 22gb")
    assert status == 2 and "has 11 GB in this almanac, not 22" in " ".join(said.split())
    free = said.split("--free ")[1].split("GiB")[0]
    # of 22 GB a process has no larger part than of 11
    assert 20.5 < float(free) <= 21.2
    # a card of nothing is no card
    status, _, said = ask("fits", TEXT, "--gpu", "3090 0GB")
    assert status == 2 and "is no card of this almanac" in " ".join(said.split())


@pytest.mark.full
def test_a_name_in_several_words_needs_no_quotes(ask_json):
    told = ask_json("fits", "ollama", "run", "qwen3:8b", "--gpu", "7900 xtx")
    assert (told["model"], told["card"]["gpu_id"], told["card"]["count"]) == (TEXT, "rx-7900-xtx", 1)


def test_of_several_cards_of_a_name_the_one_that_gives_least_is_asked(ask_json):
    told = ask_json("fits", TEXT, "--gpu", "A100 40G")
    assert told["card"]["gpu_id"].endswith("40gb") and "a100-sxm-40gb" in told["card"]["notes"][0]


@pytest.mark.parametrize(
    ("said", "model"),
    [("qwen 3.5", SEEING), ("qwen3.5 4", None), ("gpt-oss 2", None), ("qwen 3.", None), ("whisper", None)],
)
def test_the_beginning_of_one_name_is_taken_for_it_and_of_several_for_none(macro, said, model):
    """mistral small 3.2: nobody types 24B-Instruct-2506 behind it. Without its number it may be any of a family."""
    assert macro("SELECT model_id FROM repository_of($1)", said) == [(model,)]


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("gpt-oss 20", EXPERTS), ("gpt oss 20b", EXPERTS), ("oss 20b q4", EXPERTS), ("diffusion xl base", PIPELINE),
        ("gpt oss 120b", None), ("oss", None), ("nobody/gpt-oss-20", None),
    ],
)  # fmt: skip
def test_a_model_is_found_by_words_of_its_name(macro, said, model):
    """qwen3 coder 30b: nobody types A3B-Instruct behind it. An id is none of words: what it names is another's."""
    assert macro("SELECT model_id FROM repository_of($1)", said) == [(model,)]


def test_a_pipeline_is_found_with_and_without_its_library_behind_it(macro):
    name = PIPELINE.rpartition("/")[2]
    for said in (name, f"{name}-Diffusers", f"{name}_diffusers"):
        assert macro("SELECT model_id FROM repository_of($1)", said) == [(PIPELINE,)]


def test_a_name_with_a_letter_wrong_is_read_as_the_only_model_that_it_may_be_and_said_to_be(ask):
    for said, meant in (("quen3 8b", TEXT), ("qwn3 8b on a", TEXT), ("bge m3 4090", "BAAI/bge-m3")):
        status, out, _ = ask("fits", *said.split(), *(["rtx-4090"] if "4090" not in said else []))
        assert status == 0 and f"{meant} can run" in " ".join(out.split())
        assert ("one letter away" in " ".join(out.split())) == (meant == TEXT)


def test_of_words_that_may_be_none_or_many_the_nearest_are_offered(ask):
    for said, meant in (("gpt os 20b", EXPERTS), ("quen3 9b", "Qwen/Qwen3-")):
        status, _, err = ask("fits", said, "--gpu", "rtx-4090")
        assert status == 2 and meant in " ".join(err.split()).partition("Near it:")[2]


def test_words_of_several_models_are_asked_of_one_and_the_others_named(ask, ask_json):
    told = ask_json("fits", "bge", "--gpu", "rtx-4090")
    assert told["model"] == "BAAI/bge-m3"


def test_a_number_before_users_is_none_of_the_name(ask):
    _, out, _ = ask("fits", "gpt-oss 20 users", "--gpu", "h100-sxm")
    assert EXPERTS in out and "for 20 users at once" in " ".join(out.split())


def test_a_tag_of_ollama_is_pasted_as_it_is_named(ask_json):
    """Who names a tag has Ollama, whose file holds what the model sees with: nothing is converted, and nothing left out."""
    told = ask_json("fits", "ollama run qwen3.5:4b", "--gpu", "rtx-4090", "--images", "1")
    first = told["commands"][0]
    assert first["engine"] == "Ollama" and first["command"].endswith("ollama run qwen3.5:4b")


def test_what_is_pasted_is_a_tag_and_nothing_else(macro):
    """A name goes into a line for a shell."""
    assert macro("SELECT ollama_tag FROM repository_of('https://ollama.com/library/qwen3:8b')") == [("qwen3:8b",)]
    for said in ("Qwen3-8B-Q4_K_M.gguf", "Qwen/Qwen3-8B", "qwen3:8b-$(id)", "qwen3:8b-`id`", "qwen3:8b-;id"):
        assert macro("SELECT ollama_tag FROM repository_of($1)", said) == [(None,)]


def test_bits_per_weight_are_formats_of_exllama_and_what_stands_behind_them_is_heard(ask_json):
    """A card behind them was taken for a part of the name."""
    told = ask_json("fits", "qwen3 8b exl3 5.0bpw 3090")
    assert told["heard"] == "qwen3 8b exl3 5.0bpw 3090 is asked as qwen3 8b exl3 5.0bpw --gpu 3090."
    told = ask_json("fits", "qwen3 8b 5.0bpw exllamav3 0.0.3 4090")
    assert (told["best"]["dtype_id"], told["best"]["holds_for"]) == ("exl3-5bpw", "ExLlamaV3 0.0.1 to 0.0.4")


def test_bits_of_exllama_in_a_sentence_are_heard(ask_json):
    told = ask_json("fits", "turboderp/Qwen3-8B-exl3", "4.0bpw", "on", "a", "3090")
    assert (told["best"]["dtype_id"], told["best"]["engine_id"], told["verdict"]) == ("exl3-4bpw", "exllamav3", "fits")
