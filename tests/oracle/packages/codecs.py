"""What makes sound of codes or of spectrograms: codecs and vocoders."""

from __future__ import annotations

from packages.registry import buffers_of, builds

BIGVGAN = ("bigvgan_v2_22khz_80band_256x", "bigvgan_v2_44khz_128band_512x")

# of github.com/perennialtech/BigVGAN@fc6eba9f (configs), a copy of NVIDIA's code: what both have alike
_BIGVGAN = {
    "resblock": "1", "upsample_initial_channel": 1536, "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "use_tanh_at_final": False, "use_bias_at_final": False,
    "activation": "snakebeta", "snake_logscale": True,
}  # fmt: skip

CONFIGS: dict[str, dict] = {
    # of github.com/Blaizzy/mlx-audio (mlx_audio/codec/tests/test_snac.py): its 24 kHz model
    "snac": {
        "sampling_rate": 24000, "encoder_dim": 48, "encoder_rates": [2, 4, 8, 8], "decoder_dim": 1024, "decoder_rates": [8, 8, 4, 2],
        "attn_window_size": None, "codebook_size": 4096, "codebook_dim": 8, "vq_strides": [4, 2, 1], "noise": True, "depthwise": True,
    },
    BIGVGAN[0]: _BIGVGAN | {
        "upsample_rates": [4, 4, 2, 2, 2, 2], "upsample_kernel_sizes": [8, 8, 4, 4, 4, 4], "num_mels": 80, "hop_size": 256, "sampling_rate": 22050,
    },
    BIGVGAN[1]: _BIGVGAN | {
        "upsample_rates": [8, 4, 2, 2, 2, 2], "upsample_kernel_sizes": [16, 8, 4, 4, 4, 4], "num_mels": 128, "hop_size": 512, "sampling_rate": 44100,
    },
    # of config.yaml of charactr/vocos-mel-24khz at e7e2fcf
    "vocos": {
        "feature_extractor": {
            "class_path": "vocos.feature_extractors.MelSpectrogramFeatures",
            "init_args": {"sample_rate": 24000, "n_fft": 1024, "hop_length": 256, "n_mels": 100, "padding": "center"},
        },
        "backbone": {
            "class_path": "vocos.models.VocosBackbone",
            "init_args": {"input_channels": 100, "dim": 512, "intermediate_dim": 1536, "num_layers": 8},
        },
        "head": {"class_path": "vocos.heads.ISTFTHead", "init_args": {"dim": 512, "n_fft": 1024, "hop_length": 256, "padding": "center"}},
    },
    # as public ports write the published decoder's fields out, which agree (the repository's own file was not read); its 2.52 GB less the
    # model's 1.83 leave 0.69 for 172 M in fp32
    "qwen3_tts_tokenizer_12hz": {
        "decoder_config": {
            "codebook_dim": 512, "codebook_size": 2048, "decoder_dim": 1536, "head_dim": 64, "hidden_size": 512, "intermediate_size": 1024,
            "latent_dim": 1024, "num_attention_heads": 16, "num_hidden_layers": 8, "num_key_value_heads": 16, "num_quantizers": 16,
            "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2],
        },
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = dict.fromkeys(CONFIGS, "audio")


@builds("snac", "SNAC", "snac")
def snac(config: dict):
    from snac import SNAC

    return SNAC(**config)


@builds(BIGVGAN[0], "BigVGAN", "bigvgan")
@builds(BIGVGAN[1], "BigVGAN", "bigvgan")
def bigvgan(config: dict):
    """As it is run: the lengths of its weights, which were trained apart, multiplied into them."""
    from bigvgan.bigvgan import BigVGAN
    from bigvgan.env import AttrDict

    model = BigVGAN(AttrDict(config))
    model.remove_weight_norm()
    return model


@builds("vocos", "Vocos", "vocos")
def vocos(config: dict):
    from vocos.feature_extractors import MelSpectrogramFeatures
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone
    from vocos.pretrained import Vocos

    kinds = {"feature_extractor": MelSpectrogramFeatures, "backbone": VocosBackbone, "head": ISTFTHead}
    return Vocos(**{part: kind(**config[part]["init_args"]) for part, kind in kinds.items()})


@builds("qwen3_tts_tokenizer_12hz", "Qwen3TTSTokenizerV2Model", "qwen-tts")
def qwen_codec(config: dict):
    """With its codebooks, which are buffers. Needs the Transformers that the package names (4.57.3)."""
    import torch
    from qwen_tts.core.tokenizer_12hz import configuration_qwen3_tts_tokenizer_v2 as configs
    from qwen_tts.core.tokenizer_12hz import modeling_qwen3_tts_tokenizer_v2 as models

    settings = configs.Qwen3TTSTokenizerV2Config(**config)
    for name in ("codebook_dim", "hidden_size", "head_dim"):  # not all of them are taken by the class
        setattr(settings.decoder_config, name, config["decoder_config"][name])
    with torch.device("meta"):
        model = models.Qwen3TTSTokenizerV2Model(settings)
        for module in list(model.modules()):
            for name, buffer in list(module.named_buffers(recurse=False)):
                if buffer.dim() == 2:  # a codebook: rows and what each holds
                    delattr(module, name)
                    module.register_parameter(name, torch.nn.Parameter(torch.empty_like(buffer), requires_grad=False))
    return model


# by type what a checkpoint holds besides, with a cause
STORED = {
    "vocos": ("its filters and its window, which are buffers", buffers_of),
}
