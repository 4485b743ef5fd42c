"""Parts of diffusion pipelines: counts that their checkpoints are known to have."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy
from pipeline.anatomy.components import autoencoder, video_autoencoder
from pipeline.anatomy.fields import Fields

WIDTHS = [128, 256, 512, 512]
PLAIN = {"_class_name": "AutoencoderKL", "block_out_channels": WIDTHS, "layers_per_block": 2, "latent_channels": 4}
VIDEO = {
    "_class_name": "AutoencoderKLWan", "base_dim": 96, "z_dim": 16, "dim_mult": [1, 2, 4, 4], "num_res_blocks": 2,
    "temperal_downsample": [False, True, True],
}  # fmt: skip
DEEP = {**PLAIN, "latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False}


@pytest.mark.parametrize(("config", "count"), [(PLAIN, 83_653_863), (DEEP, 83_819_683)])
def test_autoencoders_have_as_many_parameters_as_their_checkpoints(config, count):
    assert autoencoder(Fields(config)).element_count == count


def test_autoencoders_of_video_have_as_many_parameters_as_the_class():
    assert video_autoencoder(Fields(VIDEO)).element_count == 126_892_531


@pytest.mark.parametrize("change", [{"temperal_downsample": [True]}, {"attn_scales": [1.0]}, {"is_residual": True}])
def test_other_steps_are_a_reason(change):
    with pytest.raises(UnknownAnatomy, match="not described"):
        video_autoencoder(Fields(VIDEO | change))


def test_another_autoencoder_is_a_reason():
    with pytest.raises(UnknownAnatomy, match="AutoencoderDC"):
        autoencoder(Fields({"_class_name": "AutoencoderDC"}))


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
