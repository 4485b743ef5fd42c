"""What speaks: models that write sound, or codes of it, from text."""

from __future__ import annotations

import json

import stand_ins
from packages.registry import builds, module_of


def _vibevoice(width: int, inner: int, depth: int, heads: int, groups: int, words: int, is_tied: bool = False) -> dict:
    """Of github.com/microsoft/VibeVoice@e73d1e1 vibevoice/configs; `depth` and what follows are of its Qwen2."""
    tokenizer = {
        "causal": True, "channels": 1, "conv_bias": True, "conv_norm": "none", "disable_last_norm": True, "encoder_depths": "3-3-3-3-3-3-8",
        "encoder_n_filters": 32, "encoder_ratios": [8, 5, 5, 4, 2, 2], "layernorm": "RMSNorm", "layernorm_elementwise_affine": True,
        "mixer_layer": "depthwise_conv",
    }  # fmt: skip
    decoder = {"decoder_depths": None, "decoder_n_filters": 32, "decoder_ratios": [8, 5, 5, 4, 2, 2]}
    return {
        "acoustic_vae_dim": 64, "semantic_vae_dim": 128, "acoustic_tokenizer_config": {**tokenizer, **decoder, "vae_dim": 64},
        "semantic_tokenizer_config": {**tokenizer, "vae_dim": 128},
        "decoder_config": {
            "hidden_size": width, "intermediate_size": inner, "num_hidden_layers": depth, "num_attention_heads": heads,
            "num_key_value_heads": groups, "vocab_size": words, "tie_word_embeddings": is_tied,
        },
        "diffusion_head_config": {"head_ffn_ratio": 3.0, "head_layers": 4, "hidden_size": width, "latent_size": 64, "speech_vae_dim": 64},
    }  # fmt: skip


_VIBEVOICE = {"1.5b": _vibevoice(1536, 8960, 28, 12, 2, 151936, True), "7b": _vibevoice(3584, 18944, 28, 28, 4, 152064)}

CONFIGS: dict[str, dict] = {
    # of github.com/Blaizzy/mlx-audio (tests) and geneing/hexgrad-kokoro@be04266b checkpoints/config.json
    "kokoro": {
        "dim_in": 64, "hidden_dim": 512, "max_conv_dim": 512, "max_dur": 50, "multispeaker": True, "n_layer": 3, "n_mels": 80, "n_token": 178,
        "style_dim": 128, "text_encoder_kernel_size": 5,
        "istftnet": {
            "upsample_kernel_sizes": [20, 12], "upsample_rates": [10, 6], "gen_istft_hop_size": 5, "gen_istft_n_fft": 20,
            "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "resblock_kernel_sizes": [3, 7, 11], "upsample_initial_channel": 512,
        },
        "plbert": {
            "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512, "num_hidden_layers": 12,
        },
    },
    # of github.com/amalshafernando/XTTSv2-Finetuning-for-New-Languages@c0ab5336 XTTS-v2/config.json
    "xtts": {
        "model_args": {
            "gpt_max_audio_tokens": 605, "gpt_max_text_tokens": 402, "gpt_max_prompt_tokens": 70, "gpt_layers": 30,
            "gpt_n_model_channels": 1024, "gpt_n_heads": 16, "gpt_number_text_tokens": 6681, "gpt_num_audio_tokens": 1026,
            "gpt_code_stride_len": 1024, "gpt_use_perceiver_resampler": True, "input_sample_rate": 22050, "output_sample_rate": 24000,
            "output_hop_length": 256, "decoder_input_dim": 1024, "d_vector_dim": 512, "cond_d_vector_in_each_upsampling_layer": True,
        },
    },
    # of chatterbox/models/t3/modules/t3_config.py and chatterbox/tts.py, as mlx-audio's copy of the config says it too
    "chatterbox": {
        "s3_sr": 16000, "s3gen_sr": 24000,
        "t3_config": {
            "emotion_adv": True, "encoder_type": "voice_encoder", "input_pos_emb": "learned", "llama_config_name": "Llama_520M",
            "max_speech_tokens": 4096, "max_text_tokens": 2048, "speaker_embed_size": 256, "speech_cond_prompt_len": 150,
            "speech_tokens_dict_size": 8194, "start_speech_token": 6561, "start_text_token": 255, "stop_speech_token": 6562,
            "stop_text_token": 0, "text_tokens_dict_size": 704, "use_perceiver_resampler": True,
        },
    },
    # (what follows a colon tells configs of one type apart)
    "vibepod": _VIBEVOICE["1.5b"],
    "vibepod:7b": _VIBEVOICE["7b"],
    "vibevoice": _VIBEVOICE["1.5b"],
    "vibevoice:7b": _VIBEVOICE["7b"],
    "vibevoice:asr": {name: said for name, said in _VIBEVOICE["7b"].items() if name != "diffusion_head_config"},
    # Qwen2.5 0.5B, of whose layers the last twenty write sound
    "vibevoice_streaming": {
        **{name: said for name, said in _vibevoice(896, 4864, 24, 14, 2, 151936).items() if not name.startswith("semantic")},
        "tts_backbone_num_hidden_layers": 20,
    },
    # of github.com/zardusai-cyber/omnivoice-tts@0daa81a3 OmniVoice/config.json
    "omnivoice": {
        "audio_vocab_size": 1025, "audio_mask_id": 1024, "num_audio_codebook": 8,
        "llm_config": {
            "attention_bias": False, "head_dim": 128, "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
            "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "tie_word_embeddings": True, "vocab_size": 151676,
        },
    },
    # of config.json of openbmb/VoxCPM2, as public ports write it out; its codec lies in a file of its own
    "voxcpm2": {
        "lm_config": {
            "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 32768, "num_attention_heads": 16,
            "num_hidden_layers": 28, "num_key_value_heads": 2, "kv_channels": 128, "vocab_size": 73448,
        },
        "patch_size": 4, "feat_dim": 64, "scalar_quantization_latent_dim": 512, "scalar_quantization_scale": 9,
        "residual_lm_num_layers": 8, "residual_lm_no_rope": True,
        "encoder_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12, "kv_channels": 128},
        "dit_config": {"hidden_dim": 1024, "ffn_dim": 4096, "num_heads": 16, "num_layers": 12, "kv_channels": 128},
        "audio_vae_config": {
            "encoder_dim": 128, "encoder_rates": [2, 5, 8, 8], "latent_dim": 64, "decoder_dim": 2048, "decoder_rates": [8, 6, 5, 2, 2, 2],
            "sr_bin_boundaries": [20000, 30000, 40000], "sample_rate": 16000, "out_sample_rate": 48000,
        },
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = {
    "kokoro": "decoder",
    "xtts": "decoder",
    "chatterbox": "decoder",
    "vibepod": "text",
    "vibepod:7b": "text",
    "vibevoice": "text",
    "vibevoice:7b": "text",
    "vibevoice:asr": "text",
    "vibevoice_streaming": "text",
    "omnivoice": "text",
    "voxcpm2": "text",
}


@builds("kokoro", "KModel", "kokoro")
def kokoro(config: dict):
    import torch
    from kokoro.istftnet import Decoder
    from kokoro.modules import CustomAlbert, ProsodyPredictor, TextEncoder
    from transformers import AlbertConfig

    width, style, depth = config["hidden_dim"], config["style_dim"], config["n_layer"]
    bert = CustomAlbert(AlbertConfig(vocab_size=config["n_token"], **config["plbert"]))
    return module_of(
        torch,
        text_encoder_bert=bert,
        bert_encoder=torch.nn.Linear(bert.config.hidden_size, width),
        predictor=ProsodyPredictor(style_dim=style, d_hid=width, nlayers=depth, max_dur=config["max_dur"], dropout=0.2),
        text_encoder=TextEncoder(
            channels=width, kernel_size=config["text_encoder_kernel_size"], depth=depth, n_symbols=config["n_token"]
        ),
        decoder=Decoder(
            dim_in=width, style_dim=style, dim_out=config["n_mels"], disable_complex=False, **config["istftnet"]
        ),
    )


@builds("xtts", "Xtts", "coqui-tts")
def xtts(config: dict):
    from TTS.tts.configs.xtts_config import XttsConfig
    from TTS.tts.models.xtts import Xtts

    settings = XttsConfig()
    settings.from_dict({"model": "xtts", **config})
    model = Xtts.init_from_config(settings)
    model.init_models()
    return model


@builds("chatterbox", "ChatterboxTTS", "chatterbox-tts")
def chatterbox(config: dict):
    """All that it puts on the card: what writes tokens, what makes sound of them, what hears a voice."""
    import torch
    from chatterbox.models.s3gen import S3Gen
    from chatterbox.models.t3 import T3
    from chatterbox.models.t3.modules.t3_config import T3Config
    from chatterbox.models.voice_encoder import VoiceEncoder

    settings = T3Config()
    if any(getattr(settings, name) != value for name, value in config["t3_config"].items()):
        raise ValueError("the package's own settings are others")
    with torch.device("meta"):
        writer = T3(settings)
    return module_of(torch, t3=writer, s3gen=S3Gen(), ve=VoiceEncoder())


VIBEVOICE = "vibevoice e73d1e1"


@builds("vibepod", "VibeVoiceForConditionalGeneration", VIBEVOICE)
@builds("vibepod:7b", "VibeVoiceForConditionalGeneration", VIBEVOICE)
@builds("vibevoice", "VibeVoiceForConditionalGeneration", VIBEVOICE)
@builds("vibevoice:7b", "VibeVoiceForConditionalGeneration", VIBEVOICE)
@builds("vibevoice:asr", "VibeVoiceASRForConditionalGeneration", VIBEVOICE)
@builds("vibevoice_streaming", "VibeVoiceStreamingForConditionalGenerationInference", VIBEVOICE)
def vibevoice(config: dict):
    import torch

    stand_ins.for_vibevoice()
    from vibevoice.modular import (
        configuration_vibevoice,
        configuration_vibevoice_streaming,
        modeling_vibevoice,
        modeling_vibevoice_asr,
        modeling_vibevoice_streaming_inference,
    )

    stand_ins.for_vibevoice_schedule()
    config = json.loads(json.dumps(config))
    config["decoder_config"] |= {"model_type": "qwen2", "max_position_embeddings": 32768}
    if "tts_backbone_num_hidden_layers" in config:
        settings = configuration_vibevoice_streaming.VibeVoiceStreamingConfig(**config)
        kind = modeling_vibevoice_streaming_inference.VibeVoiceStreamingForConditionalGenerationInference
    elif "diffusion_head_config" in config:
        settings = configuration_vibevoice.VibeVoiceConfig(**config)
        kind = modeling_vibevoice.VibeVoiceForConditionalGeneration
    else:
        settings = configuration_vibevoice.VibeVoiceASRConfig(**config)
        kind = modeling_vibevoice_asr.VibeVoiceASRForConditionalGeneration
    with torch.device("meta"):
        model = kind(settings)
    if config["decoder_config"]["tie_word_embeddings"]:
        model.lm_head.weight = model.model.language_model.embed_tokens.weight
    return model


@builds("omnivoice", "OmniVoice", "omnivoice")
def omnivoice(config: dict):
    """What writes the codes; its codec (Higgs Audio v2) lies in a folder of its own."""
    import torch
    from omnivoice.models.omnivoice import OmniVoice, OmniVoiceConfig

    with torch.device("meta"):
        return OmniVoice(OmniVoiceConfig(**{**config, "llm_config": {"model_type": "qwen3", **config["llm_config"]}}))


@builds("voxcpm2", "VoxCPM2Model", "voxcpm")
def voxcpm2(config: dict):
    from voxcpm.model import voxcpm2 as models

    config = json.loads(json.dumps(config))
    rope = {
        "type": "longrope",
        "long_factor": [1.0] * 64,
        "short_factor": [1.0] * 64,
        "original_max_position_embeddings": 32768,
    }
    config["lm_config"] |= {
        "bos_token_id": 1, "eos_token_id": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000, "rope_scaling": rope, "use_mup": False,
        "scale_emb": 12, "dim_model_base": 256, "scale_depth": 1.4,
    }  # fmt: skip
    config["dit_config"]["cfm_config"] = {
        "sigma_min": 1e-6,
        "solver": "euler",
        "t_scheduler": "log-norm",
        "inference_cfg_rate": 2.0,
    }
    models.mask_multichar_chinese_tokens = lambda tokenizer: tokenizer
    settings = models.VoxCPMConfig(**config, device="cpu")
    return models.VoxCPM2Model(settings, None, models.AudioVAEV2(config=settings.audio_vae_config))


# by type what a checkpoint holds besides, with a cause
STORED = {
    "vibevoice_streaming": (
        "the encoder of its sound, which this checkpoint leaves out",
        lambda model: -sum(p.numel() for p in model.model.acoustic_tokenizer.encoder.parameters()),
    ),
    "omnivoice": ("where each codebook begins", lambda model: model.codebook_layer_offsets.numel()),
    "voxcpm2": (
        "its codec, which lies in a file of its own",
        lambda model: -sum(p.numel() for p in model.audio_vae.parameters()),
    ),
}
