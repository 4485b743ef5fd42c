"""Rules of thumb: each gives what people who say it get, to the byte, and is held against the footprint that it speaks of."""

from __future__ import annotations

import pytest

from pipeline.book.facts import read_facts
from pipeline.press.lookup import fill_footprints

BERT, TEXT, MANY = "google-bert/bert-base-cased", "Qwen/Qwen3-8B", "openai/gpt-oss-20b"
RULES = {row["rule_id"]: row for row in read_facts()["rule_of_thumb"].to_dicts()}
MIB = 2**20


@pytest.fixture(scope="module")
def small(book):
    """The book with the published footprints of three models."""
    cursor = book.cursor()
    cursor.execute("DELETE FROM footprint")
    fill_footprints(cursor, models=[BERT, TEXT, MANY])
    yield cursor
    cursor.execute("DELETE FROM footprint")
    cursor.close()


@pytest.fixture(scope="module")
def given(small):
    rows = small.execute("SELECT rule_id, model_id, rule_bytes, our_bytes, error FROM rule_error").fetchall()
    return {(rule, model): (said, ours, error) for rule, model, said, ours, error in rows}


@pytest.mark.full
def test_a_rule_of_parameters_gives_what_people_get_of_it(small):
    """168 and 42 GB for 70 billion as Substratus prints, 24 GB for 1.5 billion as the ZeRO paper, 116.2 GB for 7 billion as people ask."""
    query = """
        SELECT rule_id, rule_bytes(rule, counted, judged, judged), example_bytes FROM rule_fact AS rule CROSS JOIN (SELECT 0 AS activations_bytes,
            0 AS weights_bytes, 0 AS context_tokens) AS judged, LATERAL (SELECT rule.example_parameter_count AS parameter_count,
            0 AS base_parameter_count, 0 AS largest_layer_count, 0 AS layer_count, 0 AS hidden_size) AS counted
        WHERE example_bytes IS NOT NULL
    """
    told = {rule: (said, wanted) for rule, said, wanted in small.execute(query).fetchall()}
    assert all(said == pytest.approx(wanted, abs=1) for said, wanted in told.values())
    assert told.keys() == {rule for rule, row in RULES.items() if row["basis"] == "parameters"}
    named = {"weights-times-1.2": 168, "weights-times-1.2-4-bit": 42, "16-bytes-states": 24, "18-bytes-run": 126, "30-percent-activations": 116.2, "nf4-bits": 3.5}  # fmt: skip
    assert {rule: told[rule][1] / 1e9 for rule in named} == named


def test_the_estimator_of_accelerate_printed_these_for_models_of_seven_and_34_billion(book):
    """What its Space posted to zephyr-7b-alpha and WizardCoder-Python-34B in 2023, in fp32: largest layer, total, × 4. Releases of that time held tables of
    rotations, cosine and sine of every position and of a whole head, in each layer."""
    posted = {
        # the model here with the same shape, bytes of one layer's table of rotations, layers
        "mistralai/Mistral-7B-v0.1": (2 * 32768 * 128 * 4, 32, 864.03, 27.49, 109.96),
        "codellama/CodeLlama-34b-hf": (2 * 16384 * 128 * 4, 48, None, 125.48, 501.92),
    }
    found = 0
    for model, (rotations, layers, largest, total, adam) in posted.items():
        rows = book.execute(
            "SELECT base_parameter_count, largest_layer_count FROM rule_basis WHERE model_id = $1", [model]
        ).fetchall()
        for base, layer in rows:
            found += 1
            whole = base * 4 + layers * rotations
            assert whole / 2**30 == pytest.approx(total, abs=0.02) and 4 * whole / 2**30 == pytest.approx(
                adam, abs=0.06
            )
            assert largest is None or (layer * 4 + rotations) / MIB == pytest.approx(largest, abs=0.02)
    assert found


def test_the_estimator_of_accelerate_is_reproduced(small, given):
    """What its documentation prints for bert-base-cased in fp32: largest layer 84.95 MB, total 413.18 MB, Adam 1.61 GB. It counts two
    buffers of 512 positions besides."""
    query = "SELECT base_parameter_count, largest_layer_count FROM rule_basis WHERE model_id = $1"
    count, largest = small.execute(query, [BERT]).fetchall()[0]
    assert round(4 * largest / MIB, 2) == 84.95
    assert round((4 * count + 2 * 512 * 8) / MIB, 2) == 413.18
    assert round(RULES["accelerate-adam"]["multiplier"] * count / 2**30, 2) == 1.61
    # a model with an output head of its own: the estimator's class has none
    query = "SELECT sum(element_count) FROM tensor WHERE model_id = $1 AND tensor_class <> 'head'"
    assert given["accelerate-total", TEXT][0] == 2 * small.execute(query, [TEXT]).fetchall()[0][0]


@pytest.mark.full
def test_a_rule_is_held_against_the_part_that_it_speaks_of(small, given, footprint_of):
    asked = footprint_of(TEXT, dtype_id="bf16", context_tokens=8192)
    assert given["weights-times-1.2", TEXT][1] == asked["total_bytes"]
    assert given["bf16-bits", TEXT][1] == asked["weights_bytes"] == given["bf16-bits", TEXT][0]
    assert given["cache-of-all-heads", TEXT][:2] == (4 * 36 * 4096 * 8192, asked["kv_cache_bytes"])
    trained = footprint_of(TEXT, phase_id="full-finetune", context_tokens=2048, checkpointing="full")
    assert given["16-bytes-run", TEXT][1] == trained["total_bytes"]
    assert given["16-bytes-states", TEXT][2] == 0
    users = footprint_of(TEXT, dtype_id="bf16", context_tokens=8192, sequences=8)
    assert given["weights-times-users", TEXT][:2] == (8 * users["weights_bytes"], users["total_bytes"])
    heavy = {"context_tokens": 2048, "sequences": 8, "checkpointing": "none"}
    lora = footprint_of(TEXT, phase_id="lora", **heavy)
    full = footprint_of(TEXT, phase_id="full-finetune", **heavy)
    assert given["lora-activations-10", TEXT][:2] == (full["activations_bytes"] // 10, lora["activations_bytes"])
    raw = footprint_of(TEXT, phase_id="pretrain", dtype_id="fp32", **heavy)
    count = small.execute("SELECT parameter_count FROM model WHERE model_id = $1", [TEXT]).fetchall()[0][0]
    assert given["fp32-pretraining", TEXT][:2] == (16 * count + raw["activations_bytes"], raw["total_bytes"])


def test_the_largest_layer_of_experts_is_one_layer_with_all_of_them(small):
    """gpt-oss-20b: 24 layers alike; its embeddings are smaller."""
    layer, count = small.execute(
        "SELECT largest_layer_count, parameter_count FROM rule_basis WHERE model_id = $1", [MANY]
    ).fetchall()[0]
    assert 0.9 * count / 24 < layer < count / 24


def test_every_rule_is_told_with_its_error_over_all_models(small, given):
    columns = "rule_id, model_count, median_error, near_share, under_share, worst_under, lowest_model_id, worst_over"
    told = small.execute(f"SELECT {columns} FROM rule_of_thumb ORDER BY rule_rank").fetchall()
    assert [row[0] for row in told] == list(RULES)
    for rule_id, count, median, near, under, lowest, model, highest in told:
        errors = sorted(error for (rule, _model), (_said, _ours, error) in given.items() if rule == rule_id)
        assert count == len(errors) >= 2, rule_id
        assert (lowest, highest) == (errors[0], errors[-1]) and given[rule_id, model][2] == lowest
        assert median == pytest.approx((errors[(count - 1) // 2] + errors[count // 2]) / 2)
        assert near == pytest.approx(sum(abs(error) <= 0.1 for error in errors) / count)
        assert under == pytest.approx(sum(error < -0.1 for error in errors) / count)
