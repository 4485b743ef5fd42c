"""The context that a program takes where nobody says one: its own default, by version and by the memory of the cards."""

import pytest

from tests.formulas.program_models import MIXTURE, MODEL


@pytest.mark.full
def test_a_context_that_depends_on_the_card_is_said_to(footprint_of, book):
    """A macro that has no card tells the least that Ollama takes, and that a larger card takes more."""
    asked = footprint_of(MODEL, program="ollama")["holds_for"]
    assert "at 4096 tokens, its own default on GPUs of less than 23 GiB together" in asked
    assert "32768 from 23 GiB on, 262144 from 47 GiB on" in asked
    assert footprint_of(MODEL, program="ollama", context_tokens=4096)["holds_for"] == "Ollama 0.31.2 to 0.33"
    (on_card,) = book.execute(f"SELECT holds_for FROM fits_on('rtx-4090', '{MODEL}', program := 'ollama')").fetchall()[
        0
    ]
    assert on_card == asked


@pytest.mark.parametrize(
    ("version", "gib", "tokens"),
    [
        (None, 11.6, 4096), (None, 22.99, 4096), (None, 23, 32768), ("0.30", 46.99, 32768), ("0.33.1", 47, 262144),
        ("0.15.5", 80, 262144), ("0.15.4", 80, 4096), ("0.12", 24, 4096),
    ],
)  # fmt: skip
def test_own_context_of_a_program_by_version_and_memory(book, version, gib, tokens):
    query = "SELECT context_tokens FROM own_context_of('Ollama', version := $1, gpu_bytes := $2) WHERE is_taken"
    assert book.execute(query, [version, int(gib * 2**30)]).fetchall() == [(tokens,)]


def test_no_other_version_and_no_other_program_has_that_context(book):
    for program, version in (("ollama", "0.40"), ("ollama", "0.11"), ("vllm", None), ("nobody", None)):
        assert not book.execute("FROM own_context_of($1, version := $2, gpu_bytes := 1)", [program, version]).fetchall()


def test_the_least_context_by_card_is_that_of_the_program(book):
    rows = """SELECT step.context_tokens, program.context_tokens FROM program_context AS step JOIN program USING (program_id)
        WHERE least_gib = 0 AND version_number(program.min_version) >= version_number(step.min_version)
            AND version_number(program.max_version) < version_after(step.max_version)"""
    found = book.execute(rows).fetchall()
    assert found and all(least == said for least, said in found)


@pytest.mark.full
def test_a_server_that_takes_all_that_the_model_reads_is_answered_so(footprint_of):
    assert footprint_of(MODEL, program="vllm")["context_tokens"] == 40960
    assert footprint_of(MODEL, program="vllm", context_tokens=2048)["context_tokens"] == 2048


def test_a_default_is_never_more_than_the_model_reads(footprint_of, book):
    (short,) = book.execute(
        "SELECT model_id FROM shape WHERE max_context_tokens < 4096 AND layer_count IS NOT NULL ORDER BY 1 LIMIT 1"
    ).fetchall()
    (most,) = book.execute("SELECT max_context_tokens FROM shape WHERE model_id = $1", short).fetchall()
    assert footprint_of(short[0], program="ollama")["context_tokens"] == most[0]


@pytest.mark.some(1)
@pytest.mark.parametrize("phase", ["lora", "full-finetune"])
def test_a_trainer_whose_rows_are_as_long_as_the_data_is_not_told_at_all_that_the_model_reads(footprint_of, phase):
    """ms-swift leaves out rows from max_length on, which is the model's own context: Qwen3-30B-A3B "needed" 3,930 GiB."""
    assert (
        footprint_of(
            MIXTURE, program="ms-swift", phase_id=phase, lora_targets="attention" if phase == "lora" else None
        )["context_tokens"]
        == 2048
    )


@pytest.mark.full
def test_what_a_large_card_reads_at_a_time_is_said_where_it_would_not_start(book):
    """vLLM keeps in the cache of a window what two steps read, which is 16384 tokens on an H100 and 32768 on a B200, where footprints count
    8192 (0.28.0, SlidingWindowSpec.max_admission_blocks_per_request)."""

    def setting(gpu, model, tokens, requests=1):
        asked = f"'{gpu}', '{model}', program := 'vllm', context_tokens := {tokens}, sequences := {requests}"
        return book.execute(f"SELECT engine_setting FROM fits_on({asked})").fetchall()[0][0] or ""

    windowed, whole = "google/gemma-3-27b-it", "Qwen/Qwen3-32B"
    flag = "--max-num-batched-tokens"
    assert f"{flag} 4096" in setting("h100-sxm", windowed, 120000) and flag not in setting("h100-sxm", windowed, 8000)
    assert flag not in setting("h100-sxm", whole, 12000)
    assert f"{flag} 8192" in setting("b200", whole, 40000, 10)
