"""A total that holds a head beside the embedding has two readings: who decides between them, and what stays open."""

from dataclasses import replace

import pytest

from pipeline.anatomy import read_config
from pipeline.confirm.grade import grade
from pipeline.confirm.ties import OPEN, kin_of, with_tie
from pipeline.hub.record import Record
from tests.anatomy import small_model

DIMS = {k: v for k, v in small_model.LLAMA.items() if k != "tie_word_embeddings"}
HEAD = DIMS["vocab_size"] * DIMS["hidden_size"]
TIED_COUNT = read_config({**DIMS, "tie_word_embeddings": True}).parameter_count


def model(name, kind="verbatim", *, tied, layers=4, total_has_head=True, **changes):
    """A model whose published total holds a head beside the embedding, unless it says otherwise."""
    config = {**DIMS, "num_hidden_layers": layers, "tie_word_embeddings": tied, **changes}
    count = read_config({**config, "tie_word_embeddings": True}).parameter_count
    inferred = ("tie_word_embeddings",) if kind == "reconstructed" else ()
    return Record(
        name,
        config=config,
        config_kind=kind,
        config_inferred_fields=inferred,
        config_source="shape of org/base [somewhere]" if kind == "sibling" else None,
        stored_parameter_count=count + HEAD * total_has_head,
        parameters_kind="exact_safetensors",
    )


def settled(record, *kin):
    """What becomes of a record beside these models, whose own configs are known."""
    graded = [(r, grade(r, read_config(r.config))) for r in (*kin, record)]
    return with_tie(*graded[-1], kin_of(graded))


def guess(name="maker/rebuilt", **changes):
    return model(name, "reconstructed", tied=False, **changes)


def test_a_class_that_does_not_tie_decides_where_no_model_of_the_type_is_known_to():
    found = settled(guess())
    assert (found.grade, found.anatomy.is_head_tied) == ("matched", False)
    assert found.note.endswith("Its head is its own, as its class defaults to")
    smaller = model("other/small", tied=True, layers=2, total_has_head=False)
    assert settled(guess(), smaller).grade == "matched", "small models tie, which says nothing of a larger one"


def test_the_makers_of_a_model_decide_by_their_next_larger_one():
    larger = model("maker/larger", tied=True, layers=6, total_has_head=False)
    found = settled(guess(), larger)
    assert (found.grade, found.anatomy.parameter_count, found.anatomy.is_head_tied) == ("matched", TIED_COUNT, True)
    assert f"tied head stored again (+{HEAD:,})" in found.stored_note
    assert "as that of maker/larger" in found.note and "holds it twice" in found.note
    own = model("maker/own", tied=False, layers=5)
    assert settled(guess(), larger, own).grade == "derived", (
        "the next larger has a head of its own, a still larger one is tied"
    )
    smaller = model("maker/smaller", tied=False, layers=3)
    assert settled(guess(), larger, smaller).grade == "derived", "they give a smaller one a head of its own"
    assert settled(guess(), smaller).anatomy.is_head_tied is False


def test_what_stays_open_is_counted_at_the_larger_and_graded_so():
    found = settled(guess(), model("other/larger", tied=True, layers=6, total_has_head=False))
    assert (found.grade, found.anatomy.parameter_count) == ("derived", TIED_COUNT + HEAD)
    assert found.note.endswith(OPEN)


@pytest.mark.parametrize("kind", ["reconstructed", "sibling"])
def test_a_model_of_the_same_dims_decides_by_its_own_config(kind):
    record = model("maker/copy", kind, tied=False)
    tied = model("maker/same", tied=True)
    assert settled(record, tied).anatomy.parameter_count == TIED_COUNT
    elsewhere = replace(tied, model_id="other/same")
    assert settled(record, elsewhere).grade == "derived", "whoever trains it on may have untied it"
    assert settled(record, replace(tied, model_id="other/Copy")).anatomy.is_head_tied, "a copy keeps the name"
    own = model("other/own", tied=False)
    assert (settled(record, own).grade, settled(record, own).anatomy.is_head_tied) == ("matched", False)


@pytest.mark.parametrize(
    "changes", [{"model_id": "maker/copy-AWQ"}, {"quantization_hint": "gptq"}, {"parameters_kind": "exact_gguf"}]
)
def test_a_quantised_copy_of_a_tied_model_may_hold_a_head_of_its_own(changes):
    found = settled(replace(model("maker/copy", "sibling", tied=True), **changes), model("maker/same", tied=True))
    assert (found.grade, found.anatomy.parameter_count) == ("derived", TIED_COUNT + HEAD)


def test_a_guess_that_the_head_is_tied_is_no_better():
    record = model("maker/copy", "sibling", tied=True)
    untied = settled(record, model("other/own", tied=False))
    assert (untied.grade, untied.anatomy.is_head_tied) == ("matched", False)
    rebuilt = model("maker/copy", "reconstructed", tied=True)
    still = settled(rebuilt, model("other/larger", tied=True, layers=6, total_has_head=False))
    assert (still.grade, still.anatomy.parameter_count) == ("derived", TIED_COUNT + HEAD)


def test_a_total_without_a_second_table_leaves_nothing_to_decide():
    record = model("maker/rebuilt", "reconstructed", tied=True, total_has_head=False)
    assert settled(record, model("maker/own", tied=False)).anatomy.parameter_count == TIED_COUNT


def test_its_own_config_is_not_asked_again():
    record = model("maker/own", tied=False)
    assert settled(record, model("maker/larger", tied=True, layers=6, total_has_head=False)).grade == "exact"


@pytest.fixture(scope="module")
def everything(anatomies):
    return {row["model_id"]: row for row in anatomies["model"].to_dicts()}


@pytest.mark.parametrize(
    ("model_id", "count", "is_tied"),
    [
        ("Qwen/Qwen1.5-0.5B", 463_987_712, True),
        ("Qwen/Qwen1.5-0.5B-Chat", 463_987_712, True),
        ("Qwen/Qwen1.5-1.8B", 1_836_828_672, False),
        ("Qwen/Qwen1.5-4B-Chat", 3_950_369_280, False),
        ("Qwen/Qwen1.5-7B", 7_721_324_544, False),
        ("Qwen/Qwen2.5-1.5B-Instruct-AWQ", 1_777_088_000, False),
        ("google/gemma-4-31B", 31_273_086_512, True),
        ("openbmb/MiniCPM4-8B", 8_185_253_888, False),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1_777_088_000, False),
    ],
)
def test_models_of_the_snapshot_whose_tie_is_known(everything, model_id, count, is_tied):
    row = everything[model_id]
    assert (row["parameter_count"], row["is_head_tied"]) == (count, is_tied)
    assert row["anatomy_grade"] != "unknown"


def test_no_rebuilt_model_of_the_snapshot_rests_on_a_guess_without_a_word(everything):
    """Where a source does not say whether the head is tied and the total has both readings, the note or the shape's owner does."""
    for row in everything.values():
        if OPEN in (row["anatomy_note"] or ""):
            assert row["anatomy_grade"] == "derived" and row["is_head_tied"] is False
    guessed = [r for r in everything.values() if "In no source: tie_word_embeddings" in (r["anatomy_note"] or "")]
    decided = [r for r in guessed if " head is " in r["anatomy_note"]]
    assert len(guessed) > 10 and len(decided) > len(guessed) // 3


def test_a_model_of_theirs_that_is_as_large_is_the_next_larger_and_no_smaller_one_of_a_head_of_its_own_stands_beside_it():
    """A layer has as many parameters as 5,122 rows of the vocabulary."""

    def as_large(layers, *, tied):
        changes = {"layers": layers, "vocab_size": DIMS["vocab_size"] - 5122 * (layers - 4)}
        record = model(f"maker/of-{layers}-layers", tied=tied, total_has_head=False, **changes)
        assert read_config({**record.config, "tie_word_embeddings": True}).parameter_count == TIED_COUNT
        return replace(record, stored_parameter_count=read_config(record.config).parameter_count)

    found = settled(guess(), as_large(5, tied=True))
    assert found.anatomy.is_head_tied and "as that of maker/of-5-layers" in found.note
    assert settled(guess(), as_large(5, tied=True), as_large(3, tied=False)).grade == "derived"
