"""Buffers that lie on the card and are no parameters: the Hub's totals count them, the library's parameters do not."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy, read_config
from tests.once import bundled_snapshot

ENCODEC, MIMI = "facebook/encodec_24khz", "kyutai/mimi"
WHOLE = (ENCODEC, "facebook/encodec_32khz", "stabilityai/stable-diffusion-3.5-large")


@pytest.fixture(scope="module")
def records():
    return {record.model_id: record for record in bundled_snapshot().records if record.model_id in (*WHOLE, MIMI)}


@pytest.mark.parametrize("model_id", WHOLE)
def test_parameters_and_buffers_are_the_published_total(records, model_id):
    anatomy = read_config(records[model_id].config)
    assert anatomy.parameter_count < anatomy.loaded_element_count == records[model_id].stored_parameter_count


def test_what_a_class_makes_of_its_buffers_is_loaded_too(records):
    """Mimi divides one buffer by another, and keeps the quotient: 32 codebooks of 2,048 rows of 256."""
    loaded = read_config(records[MIMI].config).loaded_element_count
    assert loaded - records[MIMI].stored_parameter_count == 32 * 2048 * 256


@pytest.mark.parametrize("bands", [[0], [True], [-3], [1e9], ["x"]])
def test_a_codec_that_does_not_say_its_bands_is_unknown(records, bands):
    with pytest.raises(UnknownAnatomy):
        read_config({**records[ENCODEC].config, "target_bandwidths": bands})
