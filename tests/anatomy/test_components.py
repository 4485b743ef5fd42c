"""Parts of diffusion pipelines: counts that their checkpoints are known to have."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy
from pipeline.anatomy.components import autoencoder
from pipeline.anatomy.fields import Fields

WIDTHS = [128, 256, 512, 512]
PLAIN = {"_class_name": "AutoencoderKL", "block_out_channels": WIDTHS, "layers_per_block": 2, "latent_channels": 4}
DEEP = {**PLAIN, "latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False}


@pytest.mark.parametrize(("config", "count"), [(PLAIN, 83_653_863), (DEEP, 83_819_683)])
def test_autoencoders_have_as_many_parameters_as_their_checkpoints(config, count):
    assert autoencoder(Fields(config)).element_count == count


def test_another_autoencoder_is_a_reason():
    with pytest.raises(UnknownAnatomy, match="AutoencoderKLWan"):
        autoencoder(Fields({"_class_name": "AutoencoderKLWan"}))


def test_the_parts_of_a_pipeline_are_counted_or_say_why(book):
    rows = book.execute("SELECT pipeline_part, parameter_count, unknown_reason FROM component").fetchall()
    assert len({part for part, _, _ in rows}) >= 4
    assert all((count is None) != (reason is None) for _, count, reason in rows)
    found = dict(
        book.execute(
            "SELECT pipeline_part, parameter_count FROM component WHERE model_id = 'stabilityai/stable-diffusion-xl-base-1.0'"
        ).fetchall()
    )
    # the pipeline's published checkpoints
    assert found == {
        "denoiser": 2_567_463_684,
        "text_encoder": 123_060_480,
        "text_encoder_2": 694_659_840,
        "vae": 83_653_863,
    }
