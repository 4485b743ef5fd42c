"""Programs that people run: a question that names one gets its defaults and its engine, for the versions that were read, or a reason."""

import pytest

from pipeline.book.facts import read_facts
from pipeline.book.schema import ENUMS
from tests.formulas.program_models import MODEL, OLDER


@pytest.mark.full
def test_what_a_question_leaves_unsaid_is_the_programs_default(footprint_of):
    asked = footprint_of(MODEL, program="ollama")
    said = footprint_of(MODEL, dtype_id="gguf-q4_k_m", engine_id="llama.cpp", context_tokens=4096)
    # (and what it leaves free of the card, for which it moves layers to the CPU)
    assert asked["total_bytes"] == said["total_bytes"] + 1024 * 2**20 and asked["holds_for"].startswith("Ollama 0.31.2")
    assert (asked["program"], asked["engine_id"], asked["context_tokens"]) == ("ollama", "llama.cpp", 4096)
    more = footprint_of(MODEL, program="Ollama", context_tokens=9000, dtype_id="gguf-q8_0")
    assert (more["context_tokens"], more["dtype_id"], more["engine_id"]) == (9000, "gguf-q8_0", "llama.cpp")


def test_who_names_no_version_gets_the_newest_that_has_an_answer_and_is_told_which(footprint_of):
    """vLLM 0.9.0 is known to differ, and not by how much: what is answered says that it is not of it. Of TRL each release is known."""
    trl = footprint_of(MODEL, program="trl", phase_id="lora")
    assert trl["holds_for"] == "TRL 1.15 to 1.16" and trl["lora_dropout"] == 0.05 and trl["total_bytes"]
    older = footprint_of(MODEL, program="trl", program_version="1.2", phase_id="lora")
    assert older["holds_for"] == "TRL 0.24 to 1.2" and trl["total_bytes"] < 0.8 * older["total_bytes"]
    between = footprint_of(MODEL, program="trl", program_version="1.10", phase_id="lora")
    assert (
        between["holds_for"] == "TRL 1.7 to 1.12" and trl["total_bytes"] < between["total_bytes"] < older["total_bytes"]
    )
    mixture = footprint_of("Qwen/Qwen3-30B-A3B", program="trl", phase_id="lora")
    assert mixture["total_bytes"] and mixture["holds_for"] == "TRL 1.15 to 1.16, Transformers 5.16 or later"
    assert footprint_of(MODEL, program="vllm")["holds_for"] == "vLLM 0.20 to 0.33"
    earlier = footprint_of(MODEL, program="vllm", program_version="0.9.1")
    assert earlier["total_bytes"] is None and "first engine" in earlier["unknown_reason"]


@pytest.mark.full
def test_a_program_whose_engine_depends_on_the_card_is_told_by_the_card(book, footprint_of):
    """vLLM 0.9.2 to 0.10.1 asks for compute capability 8.0 before it starts its second engine (_is_v1_supported_oracle); 0.10.2 does not."""
    said = "dtype_id := 'fp16', context_tokens := 4096, program := 'vLLM', program_version := $1"
    asked = f"SELECT verdict, total_bytes, unknown_reason FROM fits_on($2, '{OLDER}', {said})"
    later = footprint_of(OLDER, program="vllm", program_version="0.11", dtype_id="fp16", context_tokens=4096)
    (told,) = book.execute(asked, ["0.10.1.1", "a100-pcie-40gb"]).fetchall()
    assert told == ("fits", later["total_bytes"], None)
    for card in ("quadro-rtx-6000", "mi300x"):  # Turing, and what has no such number
        (told,) = book.execute(asked, ["0.9.2", card]).fetchall()
        assert told[0] is None and "on GPUs of compute capability 8.0 and later alone" in told[2]
    assert book.execute(asked, ["0.10.2", "quadro-rtx-6000"]).fetchall()[0][0] == "fits"
    reach = f"SELECT max_context_tokens, unknown_reason FROM limits_on('quadro-rtx-6000', '{OLDER}', {said})"
    assert book.execute(reach, ["0.10"]).fetchall()[0][0] is None and book.execute(reach, ["0.10.2"]).fetchall()[0][0]
    alone = footprint_of(OLDER, program="vllm", program_version="0.10", dtype_id="fp16", context_tokens=4096)
    assert alone["holds_for"].endswith("on GPUs of compute capability 8.0 and later")


@pytest.mark.parametrize(
    ("model", "said", "why"),
    [
        ("Qwen/Qwen3-8B", {"kv_dtype_id": "fp8"}, "a cache in kv_dtype_id := fp8"),
        ("Qwen/Qwen3-30B-A3B", {"gpu_count": 2, "data_parallel": 2, "expert_parallel": 2}, "data_parallel"),
        ("deepseek-ai/DeepSeek-V2-Lite", {}, "latent attention"),
        ("google/gemma-3-27b-it", {}, "models that see or hear"),
        ("ibm-granite/granite-4.0-h-tiny", {}, "recurrent layers"),
        ("openai/gpt-oss-120b", {"gpu_count": 2, "pipeline_parallel": 2}, "pipeline_parallel of layers with windows"),
    ],
)  # fmt: skip
def test_what_was_not_read_of_a_version_is_not_told_as_of_the_next(footprint_of, model, said, why):
    row = footprint_of(model, program="vllm", program_version="0.10.1", context_tokens=4096, **said)
    assert row["total_bytes"] is None and f"is not described for {why}" in row["unknown_reason"], row["unknown_reason"]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("version", "holds_for"),
    [
        ("0.7.3.post1", "vLLM 0.6.4 to 0.7"),
        ("0.6.4", "vLLM 0.6.4 to 0.7"),
        ("v0.19.1", "vLLM 0.11 to 0.19"),
        ("0.11", "vLLM 0.11 to 0.19"),
        ("0.33.2", "vLLM 0.20 to 0.33"),
        ("0.27", "vLLM 0.20 to 0.33"),
        ("0.28.9", "vLLM 0.20 to 0.33"),
    ],
)
def test_a_version_is_answered_by_what_holds_for_it(footprint_of, version, holds_for):
    assert footprint_of(OLDER, program="vllm", program_version=version)["holds_for"] == holds_for


@pytest.mark.full
def test_a_version_older_than_the_class_of_a_model_has_no_answer(footprints):
    """Nor has one that left it out, or a trainer whose Transformers is older; each says from which version on, or up to which, it is known."""
    cases = {
        (
            MODEL,
            "vllm",
            "0.7.3",
        ): "vLLM 0.7.3 is not known for this model: its class Qwen3ForCausalLM is known from 0.8.4 on",
        (
            MODEL,
            "transformers",
            "4.44",
        ): "Transformers 4.44 is not known for this model: its class qwen3 is known from 4.51 on",
        ("openai/gpt-oss-20b", "vllm", "0.7"): "GptOssForCausalLM is known from 0.10.1 on",
        ("openai/gpt-oss-20b", "transformers", "4.44.2"): "gpt_oss is known from 4.55 on",
        ("google/gemma-4-31B-it", "sglang", "0.5.10"): "is known from 0.5.11 on",
        ("google/gemma-4-31B-it", "vllm", "0.18.1"): "is known from 0.19 on",
        ("deepseek-ai/DeepSeek-V4-Flash", "llama.cpp", "b9900"): "deepseek_v4 is known from b10567 on",
        ("deepseek-ai/DeepSeek-V3.2", "llama.cpp", "b9500"): "deepseek_v32 is known from b10567 on",
        ("Qwen/Qwen3.8-Flash-Next", "llama.cpp", "b9988"): "llama.cpp b9988 is not known for this model",
        # (a build is said with its letter, which people leave out)
        (
            "Qwen/Qwen3.8-Flash-Next",
            "llama.cpp",
            "9900",
        ): "llama.cpp b9900 is not known for this model: its class qwen4_exp is known from b10660",
        ("zai-org/GLM-5.3-Flash", "llama.cpp", "b11000"): "is known from b11312 on",
        ("zai-org/GLM-5.3-Flash", "ollama", "0.32"): "is known in no release that was read",
        ("poolside/Laguna-XS-2.1", "llama.cpp", "b9976"): "laguna is known from b10454 on",
        ("poolside/Laguna-XS-2.1", "ollama", "0.32.3"): "laguna is known from 0.32.15 on",
        ("deepseek-ai/DeepSeek-V4-Flash", "ollama", "0.30"): "deepseek_v4 is known in no release that was read",
        ("baichuan-inc/Baichuan2-7B-Chat", "vllm", "0.31"): "BaichuanForCausalLM is known up to 0.24.0",
    }
    known = {
        (MODEL, "vllm", "0.11"): "vLLM 0.11 to 0.19",
        (MODEL, "vllm", None): "vLLM 0.20 to 0.33",
        ("google/gemma-4-31B-it", "vllm", "0.19.0"): "vLLM 0.19",
        ("baichuan-inc/Baichuan2-7B-Chat", "vllm", None): "vLLM 0.20 to 0.24.0",
        (
            "deepseek-ai/DeepSeek-V4-Flash",
            "llama.cpp",
            None,
        ): "llama.cpp b10567 to b11312, with logits of all tokens (a build that is named may hold fewer)",
        (MODEL, "llama.cpp", "b9900"): "llama.cpp b9701 to b11312",
        (MODEL, "llama.cpp", "b9700"): "llama.cpp b9410 to b9700",
    }
    formats = {"llama.cpp": "gguf-q4_k_m", "ollama": "gguf-q4_k_m"}
    names = ("model_id", "program", "program_version", "dtype_id")
    rows = footprints(
        [dict(zip(names, (*case, formats.get(case[1], "bf16")), strict=True)) for case in (*cases, *known)]
    )
    for case, row in zip((*cases, *known), rows, strict=True):
        if case in cases:
            assert row["total_bytes"] is None and row["holds_for"] is None and cases[case] in row["unknown_reason"]
        else:
            assert row["total_bytes"] and row["holds_for"] == known[case]


@pytest.mark.some(1)
@pytest.mark.parametrize("version", ["0.5", "0.6.3", "0.34", "1"])
def test_a_version_that_nobody_read_has_no_answer(footprint_of, version):
    row = footprint_of(MODEL, program="vllm", program_version=version)
    assert row["total_bytes"] is None and row["holds_for"] is None
    assert (
        row["unknown_reason"]
        == f"vLLM {version} is not known (known: 0.6.4 to 0.7, 0.8, 0.9 to 0.9.1, 0.9.2 to 0.10.1, 0.10.2, 0.11 to 0.19, 0.20 to 0.33)"
    )


@pytest.mark.full
def test_which_engine_a_version_starts_by_itself_decides(footprint_of, book):
    """vLLM 0.8.1 did not start a Qwen2.5-32B in 8 bits on two RTX 3090 (vllm-project/vllm issue 17238), which its first engine would have:
    by itself it runs the second, with the logits of 1024 requests."""
    row = footprint_of(OLDER, program="vllm", program_version="0.8.1")
    assert row["total_bytes"] is None and "second engine" in row["unknown_reason"]
    # issue 10517, a Llama-3.1-8B on one RTX 3090 with 0.6.4: 20,000 tokens start, 29,000 do not (the whole prompt is profiled), 35,000 do (a chunk is)
    settings = [
        book.execute(
            "SELECT engine_setting FROM fits_on('rtx-3090', 'meta-llama/Llama-3.1-8B-Instruct', program := 'vllm', "
            "program_version := '0.6.4', context_tokens := $1)",
            [tokens],
        ).fetchall()[0][0]
        for tokens in (20000, 29000, 35000)
    ]
    # (the share takes in the error band, so it is told a little above the 0.9 with which they started)
    assert settings == [f"--gpu-memory-utilization {share}" for share in ("0.92", "0.98", "0.91")]


REFUSED = {
    "a name that nobody has": ({"program": "olama"}, "no such program: olama (nearest: ollama"),
    "a server asked to train": ({"program": "ollama", "phase_id": "qlora"}, "qlora is done by program := "),
    "a trainer asked to serve": (
        {"program": "trl"},
        "TRL has no inference (it has full-finetune, lora, pretrain, qlora)",
    ),
    "more cards than a machine has": (
        {"program": "unsloth", "phase_id": "qlora", "gpu_count": 16},
        "on several machines: program := ",
    ),
    "what no formula describes": ({"program": "unsloth", "phase_id": "full-finetune"}, "kernels of its own"),
    "a version that is none": ({"program": "vllm", "program_version": "new"}, "is no version"),
    "a version of nothing": ({"program_version": "1.0"}, "program_version is of a program"),
    "another program's engine": (
        {"program": "ollama", "engine_id": "vllm"},
        "Ollama runs engine_id := llama.cpp, not vllm",
    ),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_program_cannot_do_has_a_reason(footprint_of, case):
    asked, reason = REFUSED[case]
    row = footprint_of(MODEL, **asked)
    assert row["total_bytes"] is None and reason in row["unknown_reason"]


def test_no_program_is_answered_with_the_numbers_of_an_engine_that_is_not_its_own(book):
    """Either a row names an engine or it says why nothing is known."""
    rows = book.execute("SELECT engine_id, unknown_reason FROM program").fetchall()
    assert all((engine is None) != (reason is None) for engine, reason in rows)


@pytest.mark.full
def test_the_share_of_the_card_is_that_of_the_version(book):
    need = "SELECT engine_setting FROM fits_on('rtx-4090', $model, program := 'vllm', program_version := $version, context_tokens := $tokens)"

    def share(version, tokens):
        asked = {"model": MODEL, "version": version, "tokens": tokens}
        return book.execute(need, asked).fetchall()[0][0]

    assert share("0.19", 20000) == "--gpu-memory-utilization 0.92"
    assert share("0.26", 20000) is None


@pytest.mark.full
def test_every_macro_that_takes_a_scenario_takes_a_program(book):
    limits = "SELECT engine_id, context_tokens FROM limits_on('rtx-4090', $1, program := 'ollama')"
    assert book.execute(limits, [MODEL]).fetchall() == [("llama.cpp", 4096)]
    book.execute(f"CREATE OR REPLACE TEMP TABLE of_program AS SELECT '{MODEL}' AS model_id, 'ollama' AS program")
    fits = "SELECT dtype_id, holds_for FROM fits_in('of_program', 'rtx-4090', is_plain := false)"
    assert book.execute(fits).fetchall() == [("gguf-q4_k_m", "Ollama 0.31.2 to 0.33")]


def test_versions_of_a_program_do_not_overlap(book):
    twice = """
        SELECT a.program_id, a.phase_id FROM program_row AS a JOIN program_row AS b
        ON a.program_id = b.program_id AND a.phase_id = b.phase_id AND a.from_number < b.from_number
            AND a.below_number > b.from_number
    """
    assert book.execute(twice).fetchall() == []
    newest = "SELECT program_id, phase_id FROM program_row WHERE is_newest GROUP BY ALL HAVING count(*) > 1"
    assert book.execute(newest).fetchall() == []
    assert (
        book.execute("SELECT program_name, phase_id FROM program_name GROUP BY ALL HAVING count(*) > 1").fetchall()
        == []
    )


def test_what_a_program_says_belongs_to_its_phases():
    for row in read_facts()["program"].to_dicts():
        phases = row["phase_ids"].split()
        assert set(phases) <= set(ENUMS["phase_id"])
        if "inference" in phases:
            assert not any(row[name] for name in ("optimizer_id", "checkpointing", "precision", "loss", "lora_rank"))
        if row["lora_rank"] or row["lora_targets"]:
            assert set(phases) <= {"lora", "qlora"}


def test_a_server_is_asked_in_16_bits_where_nobody_knows_what_a_checkpoint_holds(footprint_of):
    """As the terminal answers, and as vLLM loads one in 32 bits; of a repository of GGUF that is no answer."""
    unsaid = "Qwen/Qwen3-30B-A3B-Instruct-2507"
    for program in ("vllm", "sglang"):
        told = footprint_of(unsaid, program=program)
        assert told["holds_for"].endswith(", of a checkpoint in 16 bits") and told["dtype_id"] == "bf16"
        assert told["total_bytes"] == footprint_of(unsaid, program=program, dtype_id="bf16")["total_bytes"]
        assert "16 bits" not in footprint_of("Qwen/Qwen3-8B", program=program)["holds_for"]
    assert footprint_of("AtomicChat/Qwen3.8-27B-GGUF", program="vllm")["total_bytes"] is None
