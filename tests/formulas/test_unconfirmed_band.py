"""A shape that nothing confirms has the band of constant.csv beside its engine's, and is otherwise counted as any other."""

from __future__ import annotations

import pytest

UNCONFIRMED, CONFIRMED = "google/electra-large-discriminator", "Qwen/Qwen3-8B"


def test_an_unconfirmed_shape_has_the_wider_band_in_every_phase(book, footprints):
    rows = [{"model_id": model, "dtype_id": "bf16", "phase_id": phase, "context_tokens": 512}
            for model in (UNCONFIRMED, CONFIRMED) for phase in ("inference", "full-finetune")]  # fmt: skip
    inference, training, plain, tuned = (row["error_band"] for row in footprints(rows))
    constant = dict(book.execute("SELECT constant_id, value FROM constant").fetchall())
    band = constant["error_band_unconfirmed"]
    assert training == pytest.approx(constant["error_band_training"] + band)
    assert tuned == pytest.approx(constant["error_band_standing"])
    assert inference > band > plain


def test_what_is_not_confirmed_is_said_in_the_table(any_book):
    said = "SELECT is_shape_confirmed, anatomy_grade, anatomy_note FROM model WHERE model_id = ?"
    assert any_book.execute(said, [CONFIRMED]).fetchall()[0][0] is True
    is_confirmed, grade, note = any_book.execute(said, [UNCONFIRMED]).fetchall()[0]
    assert (is_confirmed, grade) == (False, "derived") and "not confirmed" in note
    # nobody else's shape goes without a total, headers or the word
    query = """SELECT count(*) FROM model WHERE anatomy_grade = 'derived' AND is_shape_confirmed
        AND config_kind NOT IN ('verbatim', 'quoted') AND stored_parameter_count IS NULL"""
    assert any_book.execute(query).fetchall() == [(0,)]
