"""Parts of diffusion pipelines: counts that their checkpoints are known to have."""

from __future__ import annotations

import pytest

from pipeline.anatomy import UnknownAnatomy
from pipeline.anatomy.autoencoders import listed, shape_of
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


def test_the_parts_of_a_pipeline_are_counted_or_say_why(any_book):
    rows = any_book.execute("SELECT pipeline_part, parameter_count, unknown_reason FROM component").fetchall()
    assert len({part for part, _, _ in rows}) >= 4
    assert all((count is None) != (reason is None) for _, count, reason in rows)
    found = dict(
        any_book.execute(
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


def test_an_autoencoder_of_video_is_counted_as_published_and_else_a_reason():
    """Those that the library lists: a field that may shape a tensor has to be as it was counted, others may be anything."""
    for name, row in listed().items():
        said = row["defaults"] | row["shapes"][0]["said"] | {"_class_name": name} | row.get("only", {})
        assert shape_of(Fields(said))["parameter_count"] == row["shapes"][0]["parameter_count"]
        assert shape_of(Fields({"_class_name": name} | row["shapes"][0]["said"])) == shape_of(Fields(said))
        assert shape_of(Fields(said | dict.fromkeys(row["idle"], 7))) == shape_of(Fields(said))
        for field, value in row["defaults"].items():
            if field in row.get("only", {}):  # without which the class is described, and not listed
                assert shape_of(Fields(said | {field: value})) is None
                continue
            with pytest.raises(UnknownAnatomy, match=f"as published, and not with this {field}"):
                shape_of(Fields(said | {field: [*value, 1] if isinstance(value, list) else 77}))
    assert shape_of(Fields({"_class_name": "AutoencoderKL"})) is None


def test_a_second_denoiser_and_encoders_without_an_index_are_known_by_their_configs(book):
    query = "SELECT class_name, parameter_count, width FROM component WHERE model_id = $1 AND pipeline_part = $2"
    wan = "Wan-AI/Wan2.2-T2V-A14B-Diffusers"
    first, second = (book.execute(query, [wan, part]).fetchall() for part in ("denoiser", "transformer_2"))
    assert first == second == [("WanTransformer3DModel", 14_288_491_584, 13_824)]
    flux = book.execute(query, ["black-forest-labs/FLUX.1-schnell", "text_encoder_2"]).fetchall()
    assert flux == [("T5EncoderModel", 4_762_310_656, 10_240)]
