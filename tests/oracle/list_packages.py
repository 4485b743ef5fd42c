"""Lists what models of other packages than Transformers hold, as their own code builds them from a published config.

    pip install kokoro coqui-tts pyannote.audio chatterbox-tts speechbrain snac bigvgan vocos omnivoice voxcpm uni2ts granite-tsfm sktime open_clip_torch
    # and the sources of UniDepth, TRELLIS, TRELLIS.2, BiRefNet, Depth Anything 3, VibeVoice and IC-Light (briarmbg.py) on the path
    python tests/oracle/list_packages.py            # all of them, or those that are named

Writes lines of tables/library/module.jsonl and modules.csv (see list_modules.py). Such a class has one published shape: every field that is
passed to it is `told` and `pinned`, so that a config that leaves one out or says another value is unknown. Parts that only train are left out.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path

import stand_ins
from list_modules import COUNTS, lengths, merged, places, tensors_of, write

BIGVGAN = ("bigvgan_v2_22khz_80band_256x", "bigvgan_v2_44khz_128band_512x")
# What the tensors belong to whose name tells no part.
MAIN = {
    "kokoro": "decoder",
    "xtts": "decoder",
    "unidepth": "vision",
    "chatterbox": "decoder",
    "birefnet": "vision",
    "trellis": "decoder",
    "esm": "encoder",
    "qwen3_tts_tokenizer_12hz": "audio",
    "omnivoice": "text",
    "voxcpm2": "text",
    "biomedclip": "text",
    "time_moe": "decoder",
    "sundial": "decoder",
    "moirai": "encoder",
    "moirai2": "decoder",
    "tinytimemixer": "encoder",
    "open_clip_convnext_base_w": "text",
    "trellis2": "decoder",
    **dict.fromkeys(
        ("vibepod", "vibepod:7b", "vibevoice", "vibevoice:7b", "vibevoice:asr", "vibevoice_streaming"), "text"
    ),
    **dict.fromkeys(("da3metric-large", "da3-giant", "rmbg"), "vision"),
} | dict.fromkeys(
    (
        "pyannote_segmentation",
        "pyannote_segmentation_2",
        "pyannote_activity",
        "pyannote_embedding",
        "wespeaker",
        "pyannote_diarization",
        "pyannote_diarization_2",
        "ecapa_tdnn",
        "snac",
        "vocos",
        *BIGVGAN,
    ),
    "audio",
)
# of github.com/perennialtech/BigVGAN@fc6eba9f (configs), a copy of NVIDIA's code: what both have alike
_BIGVGAN = {
    "resblock": "1", "upsample_initial_channel": 1536, "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "use_tanh_at_final": False, "use_bias_at_final": False,
    "activation": "snakebeta", "snake_logscale": True,
}  # fmt: skip
BUILDERS: dict[str, tuple[str, str, Callable]] = {}


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
    # of github.com/k2-fsa/sherpa-onnx scripts/pyannote/segmentation/notes.md, without the task; seven classes of up to three speakers
    "pyannote_segmentation": {
        "sample_rate": 16000, "num_channels": 1, "sincnet": {"stride": 10},
        "lstm": {"hidden_size": 128, "num_layers": 4, "bidirectional": True, "monolithic": True},
        "linear": {"hidden_size": 128, "num_layers": 2}, "num_classes": 7,
    },
    # of config.yaml of pyannote/segmentation, as a copy of the repository has it (anilbs/segmentation): three speakers in five seconds
    "pyannote_segmentation_2": {
        "sample_rate": 16000, "num_channels": 1, "sincnet": {"stride": 10},
        "lstm": {"hidden_size": 128, "num_layers": 4, "bidirectional": True, "monolithic": True},
        "linear": {"hidden_size": 128, "num_layers": 2}, "max_num_speakers": 3,
    },
    "pyannote_activity": {"name": "pyannote.audio.pipelines.VoiceActivityDetection", "segmentation": "pyannote/segmentation"},
    "pyannote_diarization_2": {"segmentation": "pyannote/segmentation", "embedding": "speechbrain/spkrec-ecapa-voxceleb"},
    # of pyannote.audio/models/embedding/wespeaker (WeSpeakerResNet34): what the class itself takes
    "wespeaker": {"num_mel_bins": 80, "embed_dim": 256, "two_emb_layer": False},
    "pyannote_diarization": {
        "segmentation": "pyannote/segmentation-3.0", "embedding": "pyannote/wespeaker-voxceleb-resnet34-LM",
    },
    # of github.com/speechbrain/speechbrain@0d7092cf recipes/VoxCeleb/SpeakerRec/hparams/verification_ecapa.yaml, which loads the checkpoint
    "ecapa_tdnn": {
        "n_mels": 80, "channels": [1024, 1024, 1024, 1024, 3072], "kernel_sizes": [5, 3, 3, 3, 1], "dilations": [1, 2, 3, 4, 1],
        "groups": [1, 1, 1, 1, 1], "attention_channels": 128, "lin_neurons": 192,
    },
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
    # as public ports write the published decoder's fields out, which agree (the repository's own file was not read); its 2.52 GB less the
    # model's 1.83 leave 0.69 for 172 M in fp32
    "qwen3_tts_tokenizer_12hz": {
        "decoder_config": {
            "codebook_dim": 512, "codebook_size": 2048, "decoder_dim": 1536, "head_dim": 64, "hidden_size": 512, "intermediate_size": 1024,
            "latent_dim": 1024, "num_attention_heads": 16, "num_hidden_layers": 8, "num_key_value_heads": 16, "num_quantizers": 16,
            "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2],
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
    # ESM-2 of 3B (github.com/facebookresearch/esm, esm/pretrained.py: esmfold_v1) under what Transformers' own class takes of the folding trunk
    "esm": {
        "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 40, "intermediate_size": 10240, "vocab_size": 33,
        "max_position_embeddings": 1026, "position_embedding_type": "rotary", "emb_layer_norm_before": False, "is_folding_model": True,
        "esmfold_config": {
            "bypass_lm": False, "embed_aa": True, "esm_ablate_pairwise": False, "esm_ablate_sequence": False, "lddt_head_hid_dim":
            128, "use_esm_attn_map": False,
            "trunk": {
                "num_blocks": 48, "pairwise_head_width": 32, "pairwise_state_dim": 128, "position_bins": 32,
                "sequence_head_width": 32, "sequence_state_dim": 1024,
                "structure_module": {
                    "ipa_dim": 16, "num_angles": 7, "num_blocks": 8, "num_heads_ipa": 12, "num_qk_points": 4,
                    "num_resnet_blocks": 2, "num_transition_layers": 1, "num_v_points": 8, "pairwise_dim": 128,
                    "resnet_dim": 128, "sequence_dim": 384,
                },
            },
        },
    },
    # its own config.json says nothing of its sizes: github.com/ZhengPeng7/BiRefNet@25cb9309 config.py does (bb)
    "birefnet": {"bb": "swin_v1_l"},
    # pipeline.json of TRELLIS-image-large as public programs quote it: each name is that of a config in github.com/microsoft/TRELLIS@6b0d6475
    "trellis": {
        "name": "TrellisImageTo3DPipeline",
        "args": {
            "models": {
                "sparse_structure_decoder": "ckpts/ss_dec_conv3d_16l8_fp16",
                "sparse_structure_flow_model": "ckpts/ss_flow_img_dit_L_16l8_fp16",
                "slat_decoder_gs": "ckpts/slat_dec_gs_swin8_B_64l8gs32_fp16",
                "slat_decoder_rf": "ckpts/slat_dec_rf_swin8_B_64l8r16_fp16",
                "slat_decoder_mesh": "ckpts/slat_dec_mesh_swin8_B_64l8m256c_fp16",
                "slat_flow_model": "ckpts/slat_flow_img_dit_L_64l8p2_fp16",
            },
        },
    },
    # what the class of pyannote.audio takes by itself, as pyannote/embedding says that it is of
    "pyannote_embedding": {"sample_rate": 16000, "num_channels": 1, "sincnet": {"stride": 10}, "dimension": 512},
    # of its config.json, and its code says no other sizes
    "rmbg": {"in_ch": 3, "out_ch": 1},
    # open_clip/model_configs/convnext_base_w.json
    "open_clip_convnext_base_w": {
        "embed_dim": 640,
        "vision_cfg": {"timm_model_name": "convnext_base", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "timm_drop": 0.0, "timm_drop_path": 0.1, "image_size": 256},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 640, "heads": 10, "layers": 12},
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
    # the names of its checkpoints as public programs list them, each of a config in github.com/microsoft/TRELLIS.2@5565d24
    "trellis2": {
        "name": "Trellis2ImageTo3DPipeline",
        "args": {
            "models": {
                "sparse_structure_decoder": "microsoft/TRELLIS-image-large/ckpts/ss_dec_conv3d_16l8_fp16",
                "sparse_structure_flow_model": "ckpts/ss_flow_img_dit_1_3B_64_bf16",
                "shape_slat_decoder": "ckpts/shape_dec_next_dc_f16c32_fp16",
                "shape_slat_flow_model_512": "ckpts/slat_flow_img2shape_dit_1_3B_512_bf16",
                "shape_slat_flow_model_1024": "ckpts/slat_flow_img2shape_dit_1_3B_1024_bf16",
                "tex_slat_decoder": "ckpts/tex_dec_next_dc_f16c32_fp16",
                "tex_slat_flow_model_512": "ckpts/slat_flow_imgshape2tex_dit_1_3B_512_bf16",
                "tex_slat_flow_model_1024": "ckpts/slat_flow_imgshape2tex_dit_1_3B_1024_bf16",
            },
        },
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
    # the names of configs in github.com/ByteDance-Seed/Depth-Anything-3@2c21ea84 src/depth_anything_3/configs
    "da3metric-large": {"model_name": "da3metric-large"},
    "da3-giant": {"model_name": "da3-giant"},
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
    # of open_clip_config.json of the repository at a9709a5, and bert of the size of base, with BERT's own number of words, which it names
    "biomedclip": {
        "embed_dim": 512,
        "vision_cfg": {"timm_model_name": "vit_base_patch16_224", "timm_model_pretrained": False, "timm_pool": "", "timm_proj": "linear", "image_size": 224},
        "text_cfg": {
            "hf_model_name": "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract", "hf_proj_type": "mlp",
            "hf_pooler_type": "cls_last_hidden_state_pooler", "context_length": 256,
        },
    },
    # of config.json of Maple728/TimeMoE-200M at 3d1e09d
    "time_moe": {
        "hidden_size": 768, "horizon_lengths": [1, 8, 32, 64], "input_size": 1, "intermediate_size": 3072, "max_position_embeddings": 4096,
        "num_attention_heads": 12, "num_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 12, "num_key_value_heads": 12,
        "tie_word_embeddings": False, "use_dense": False,
    },
    # what the class of thuml/sundial-base-128m takes by itself
    "sundial": {
        "input_token_len": 16, "hidden_size": 768, "intermediate_size": 3072, "output_token_lens": [720], "num_hidden_layers": 12,
        "num_attention_heads": 12, "max_position_embeddings": 10000, "flow_loss_depth": 3, "num_sampling_steps": 50,
    },
    # of config.json of Salesforce/moirai-1.1-R-large at b2b123f9
    "moirai": {
        "d_model": 1024, "num_layers": 24, "patch_sizes": [8, 16, 32, 64, 128], "max_seq_len": 512, "scaling": True,
        "distr_output": {
            "_target_": "uni2ts.distribution.mixture.MixtureOutput",
            "components": [
                {"_target_": "uni2ts.distribution.student_t.StudentTOutput"},
                {"_target_": "uni2ts.distribution.normal.NormalFixedScaleOutput", "scale": 0.001},
                {"_target_": "uni2ts.distribution.negative_binomial.NegativeBinomialOutput"},
                {"_target_": "uni2ts.distribution.log_normal.LogNormalOutput"},
            ],
        },
    },
    # of config.json of Salesforce/moirai-2.0-R-small, as programs that check its hash write it out
    "moirai2": {
        "d_model": 384, "d_ff": 1024, "num_layers": 6, "patch_size": 16, "max_seq_len": 512, "num_predict_token": 4, "scaling": True,
        "quantile_levels": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    },
    # of 512 steps and 96 to come: the sizes that give the 805,280 parameters which a run of granite-timeseries-ttm-r2 printed
    "tinytimemixer": {
        "context_length": 512, "prediction_length": 96, "patch_length": 64, "patch_stride": 64, "d_model": 192, "num_layers": 2,
        "adaptive_patching_levels": 3, "decoder_d_model": 128, "decoder_num_layers": 2, "expansion_factor": 2, "use_decoder": True,
        "gated_attn": True, "self_attn": False, "use_positional_encoding": False, "mode": "common_channel", "decoder_mode": "common_channel",
        "resolution_prefix_tuning": False, "decoder_adaptive_patching_levels": 0,
    },
    # of github.com/lpiccinelli-eth/UniDepth@8d8cfe4c configs/config_v2_vitl14.json
    "unidepth": {
        "model": {
            "name": "UniDepthV2", "num_heads": 8, "expansion": 4, "layer_scale": 1.0,
            "pixel_decoder": {"name": "Decoder", "hidden_dim": 512, "depths": [2, 2, 2], "out_dim": 64, "kernel_size": 3},
            "pixel_encoder": {"name": "dinov2_vitl14", "num_register_tokens": 0, "use_norm": True, "output_idx": [6, 12, 18, 24]},
        },
    },
}  # fmt: skip


def builds(model_type: str, class_name: str, package: str):
    def add(function):
        BUILDERS[model_type] = class_name, package, function
        return function

    return add


@builds("kokoro", "KModel", "kokoro")
def kokoro(config: dict):
    import torch
    from kokoro.istftnet import Decoder
    from kokoro.modules import CustomAlbert, ProsodyPredictor, TextEncoder
    from transformers import AlbertConfig

    width, style, depth = config["hidden_dim"], config["style_dim"], config["n_layer"]
    bert = CustomAlbert(AlbertConfig(vocab_size=config["n_token"], **config["plbert"]))
    return _module(
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


@builds("pyannote_segmentation", "PyanNet", "pyannote.audio")
@builds("pyannote_segmentation_2", "PyanNet", "pyannote.audio")
def segmentation(config: dict):
    """Each voice of up to three by itself (2.x), or which voices of up to three speak, two at most at once (3.x)."""
    import torch
    from pyannote.audio.models.blocks.sincnet import SincNet

    lstm, linear, width = config["lstm"], config["linear"], config["linear"]["hidden_size"]
    out = lstm["hidden_size"] * 2
    return _module(
        torch,
        sincnet=SincNet(sample_rate=config["sample_rate"], stride=config["sincnet"]["stride"]),
        lstm=torch.nn.LSTM(60, lstm["hidden_size"], lstm["num_layers"], bidirectional=True),
        linear=torch.nn.ModuleList(torch.nn.Linear(width if i else out, width) for i in range(linear["num_layers"])),
        classifier=torch.nn.Linear(width, config.get("num_classes") or config["max_num_speakers"]),
    )


@builds("wespeaker", "WeSpeakerResNet34", "pyannote.audio")
def wespeaker(config: dict):
    from pyannote.audio.models.embedding.wespeaker.resnet import ResNet34

    return ResNet34(config["num_mel_bins"], config["embed_dim"], two_emb_layer=config["two_emb_layer"])


@builds("pyannote_diarization", "SpeakerDiarization", "pyannote.audio")
def diarization(config: dict):
    import torch

    return _module(
        torch,
        segmentation=segmentation(CONFIGS["pyannote_segmentation"]),
        embedding=wespeaker(CONFIGS["wespeaker"]),
    )


@builds("pyannote_activity", "VoiceActivityDetection", "pyannote.audio")
def activity(config: dict):
    return segmentation(CONFIGS["pyannote_segmentation_2"])


@builds("pyannote_diarization_2", "SpeakerDiarization", "pyannote.audio")
def diarization_2(config: dict):
    import torch

    return _module(
        torch,
        segmentation=segmentation(CONFIGS["pyannote_segmentation_2"]),
        embedding=ecapa_tdnn(CONFIGS["ecapa_tdnn"]),
    )


@builds("pyannote_embedding", "XVectorSincNet", "pyannote.audio")
def xvector(config: dict):
    from pyannote.audio.models.embedding.xvector import XVectorSincNet

    return XVectorSincNet(**config)


@builds("rmbg", "BriaRMBG", "ic-light bcf3f29")
def rmbg(config: dict):
    import torch
    from briarmbg import BriaRMBG

    with torch.device("meta"):
        return BriaRMBG(config)


@builds("open_clip_convnext_base_w", "CLIP", "open-clip 3.3.0")
def convnext(config: dict):
    import torch
    from open_clip.model import CLIP

    with torch.device("meta"):
        return CLIP(**config)


TRELLIS2 = {  # by model that the pipeline loads, file and part
    "sparse_structure_flow_model": ("gen/ss_flow_img_dit_1_3B_64_bf16", "denoiser"),
    "shape_slat_flow_model_512": ("gen/slat_flow_img2shape_dit_1_3B_512_bf16", "denoiser"),
    "shape_slat_flow_model_1024": ("gen/slat_flow_img2shape_dit_1_3B_512_bf16_ft1024", "denoiser"),
    "shape_slat_decoder": ("scvae/shape_vae_next_dc_f16c32_fp16_ft_512", "decoder"),
    "tex_slat_flow_model_512": ("gen/slat_flow_imgshape2tex_dit_1_3B_512_bf16", "denoiser"),
    "tex_slat_flow_model_1024": ("gen/slat_flow_imgshape2tex_dit_1_3B_512_bf16_ft1024", "denoiser"),
    "tex_slat_decoder": ("scvae/tex_vae_next_dc_f16c32_fp16_ft_512", "decoder"),
}


@builds("trellis2", "Trellis2ImageTo3DPipeline", "trellis.2 5565d24")
def trellis2(config: dict):
    """Its seven models, the decoder of TRELLIS that it begins with, and DINOv3 of the large size, by which they see. What takes backgrounds
    away is a model of its own (RMBG 2.0) and is not counted."""
    import torch
    import transformers

    with torch.device("meta"):
        settings = transformers.DINOv3ViTConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        )
        parts = {"vision_dinov3": transformers.DINOv3ViTModel(settings)}
    stand_ins.for_trellis()
    stand_ins.for_trellis2()
    from trellis2 import models

    root = Path(models.__file__).parents[2] / "configs"
    for name, (file, part) in TRELLIS2.items():
        told = json.loads((root / f"{file}.json").read_text(encoding="utf-8"))["models"][part]
        with torch.device("meta"):
            parts[name] = getattr(models, told["name"])(**told["args"])
    with torch.device("meta"):
        parts["sparse_structure_decoder"] = models.SparseStructureDecoder(
            out_channels=1, latent_channels=8, num_res_blocks=2, num_res_blocks_middle=2, channels=[512, 128, 32]
        )
    return _module(torch, **parts)


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


@builds("vocos", "Vocos", "vocos")
def vocos(config: dict):
    from vocos.feature_extractors import MelSpectrogramFeatures
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone
    from vocos.pretrained import Vocos

    kinds = {"feature_extractor": MelSpectrogramFeatures, "backbone": VocosBackbone, "head": ISTFTHead}
    return Vocos(**{part: kind(**config[part]["init_args"]) for part, kind in kinds.items()})


@builds("da3metric-large", "DepthAnything3", "depth-anything-3 2c21ea84")
@builds("da3-giant", "DepthAnything3", "depth-anything-3 2c21ea84")
def depth_anything_3(config: dict):
    import torch
    from depth_anything_3 import cfg

    said = Path(cfg.__file__).parent / "configs" / f"{config['model_name']}.yaml"
    with torch.device("meta"):
        return cfg.create_object(cfg.load_config(str(said)))


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


@builds("biomedclip", "CustomTextCLIP", "open-clip 3.3.0")
def biomedclip(config: dict):
    import torch
    import transformers
    from open_clip import hf_model
    from open_clip.model import CustomTextCLIP

    hf_model.AutoConfig = type("Told", (), {"from_pretrained": lambda _name: transformers.BertConfig(vocab_size=30522)})
    text = {**config["text_cfg"], "hf_model_pretrained": False}
    with torch.device("meta"):
        return CustomTextCLIP(config["embed_dim"], config["vision_cfg"], text)


@builds("time_moe", "TimeMoeForPrediction", "sktime")
def time_moe(config: dict):
    import torch
    from sktime.libs.timemoe import timemoe, timemoe_config

    with torch.device("meta"):
        return timemoe.TimeMoeForPrediction(timemoe_config.TimeMoeConfig(**config))


@builds("sundial", "SundialForPrediction", "sktime")
def sundial(config: dict):
    import torch
    from sktime.libs.sundial import configuration_sundial, modeling_sundial

    with torch.device("meta"):
        return modeling_sundial.SundialForPrediction(configuration_sundial.SundialConfig(**config))


@builds("moirai", "MoiraiModule", "uni2ts")
def moirai(config: dict):
    import torch
    from uni2ts.model.moirai.module import MoiraiModule, decode_distr_output

    outputs = decode_distr_output(config["distr_output"])
    with torch.device("meta"):
        return MoiraiModule(**{**config, "distr_output": outputs}, attn_dropout_p=0.0, dropout_p=0.0)


@builds("moirai2", "Moirai2Module", "uni2ts")
def moirai2(config: dict):
    import torch
    from uni2ts.model.moirai2.module import Moirai2Module

    with torch.device("meta"):
        return Moirai2Module(**config, attn_dropout_p=0.0, dropout_p=0.0)


@builds("tinytimemixer", "TinyTimeMixerForPrediction", "granite-tsfm")
def tinytimemixer(config: dict):
    import torch
    from tsfm_public.models.tinytimemixer import configuration_tinytimemixer, modeling_tinytimemixer

    with torch.device("meta"):
        return modeling_tinytimemixer.TinyTimeMixerForPrediction(
            configuration_tinytimemixer.TinyTimeMixerConfig(**config)
        )


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


@builds("ecapa_tdnn", "ECAPA_TDNN", "speechbrain")
def ecapa_tdnn(config: dict):
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    return ECAPA_TDNN(input_size=config["n_mels"], **{k: v for k, v in config.items() if k != "n_mels"})


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
    return _module(torch, t3=writer, s3gen=S3Gen(), ve=VoiceEncoder())


@builds("unidepth", "UniDepthV2", "unidepth 8d8cfe4c")
def unidepth(config: dict):
    from unidepth.models.unidepthv2.unidepthv2 import UniDepthV2

    config = json.loads(json.dumps(config))
    config["model"]["pixel_encoder"] |= {
        "lr": 1e-6, "wd": 0.1, "frozen_stages": 0, "freeze_norm": True, "pretrained": None, "stacking_fn": "last",
    }  # fmt: skip
    config["model"]["pixel_decoder"] |= {"dropout": 0.0}
    return UniDepthV2(config | {"training": {"losses": {}}, "data": {"augmentations": {"shape_constraints": {}}}})


TRELLIS = {  # file and part of the config in the sources of TRELLIS, and the part of the model
    "sparse_structure_decoder": ("vae/ss_vae_conv3d_16l8_fp16", "decoder"),
    "sparse_structure_flow_model": ("generation/ss_flow_img_dit_L_16l8_fp16", "denoiser"),
    "slat_decoder_gs": ("vae/slat_vae_enc_dec_gs_swin8_B_64l8_fp16", "decoder"),
    "slat_decoder_rf": ("vae/slat_vae_dec_rf_swin8_B_64l8_fp16", "decoder"),
    "slat_decoder_mesh": ("vae/slat_vae_dec_mesh_swin8_B_64l8_fp16", "decoder"),
    "slat_flow_model": ("generation/slat_flow_img_dit_L_64l8p2_fp16", "denoiser"),
}


@builds("trellis", "TrellisImageTo3DPipeline", "trellis 6b0d6475")
def trellis(config: dict):
    """Its six models and DINOv2 of the large size with registers, by which they see (trellis_image_to_3d.py). Their sparse convolutions
    stand for those of spconv: outputs, three sides of a kernel, inputs."""
    import torch
    import transformers

    seen = transformers.Dinov2WithRegistersConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, image_size=518, patch_size=14
    )
    with torch.device("meta"):
        parts = {"vision_dinov2": transformers.Dinov2WithRegistersModel(seen)}
    stand_ins.for_trellis()
    from trellis import models

    root = Path(models.__file__).parents[2] / "configs"
    for name, (file, part) in TRELLIS.items():
        told = json.loads((root / f"{file}.json").read_text(encoding="utf-8"))["models"][part]
        parts[name] = getattr(models, told["name"])(**told["args"])
    return _module(torch, **parts)


@builds("birefnet", "BiRefNet", "birefnet 25cb9309")
def birefnet(config: dict):
    import torch

    stand_ins.for_birefnet()
    from models.birefnet import BiRefNet

    with torch.device("meta"):
        model = BiRefNet(bb_pretrained=False)
    assert model.config.bb == config["bb"]
    return model


def _buffers(model) -> int:
    """But for how many batches were seen, and for what is made anew."""
    held = dict(model.named_buffers())
    return sum(
        held[name].numel() for name in model.state_dict() if name in held and not name.endswith("num_batches_tracked")
    )


# by type what a checkpoint holds besides, with a cause
STORED = {
    "birefnet": ("running statistics and places within a window", _buffers),
    "pyannote_embedding": ("running statistics and filters, which are buffers", _buffers),
    "rmbg": ("running statistics", _buffers),
    "vibevoice_streaming": (
        "the encoder of its sound, which this checkpoint leaves out",
        lambda model: -sum(p.numel() for p in model.model.acoustic_tokenizer.encoder.parameters()),
    ),
    "omnivoice": ("where each codebook begins", lambda model: model.codebook_layer_offsets.numel()),
    "vocos": ("its filters and its window, which are buffers", _buffers),
    "voxcpm2": (
        "its codec, which lies in a file of its own",
        lambda model: -sum(p.numel() for p in model.audio_vae.parameters()),
    ),
}


@builds("esm", "EsmForProteinFolding", "transformers")
def folding(config: dict):
    import torch
    from transformers import EsmConfig, EsmForProteinFolding

    with torch.device("meta"):
        return EsmForProteinFolding(
            EsmConfig(**config, mask_token_id=32, pad_token_id=1, token_dropout=True, vocab_list=None)
        )


def _module(torch, **parts):
    whole = torch.nn.Module()
    for name, part in parts.items():
        whole.add_module(name, part)
    return whole


def main() -> None:
    import torch

    rows = []
    for model_type in sys.argv[1:] or BUILDERS:
        class_name, package, build = BUILDERS[model_type]
        config = CONFIGS[model_type]
        model = build(config)
        tensors = merged(tensors_of(model, MAIN[model_type]).items())
        fields = dict(places(config))
        version = package if " " in package else f"{package} {importlib.metadata.version(package)}"
        stored = {}
        if model_type in STORED:
            cause, held = STORED[model_type]
            stored = {"stored": {cause: str(held(model))}}
        write({
            "model_type": model_type.partition(":")[0], "class_name": class_name, "fields": fields, "pinned": sorted(fields), "lengths": lengths(config), "aliases": {},
            "told": sorted(fields), "least": {}, "tensors": tensors, **stored, "library_version": version,
        })  # fmt: skip
        total = sum({id(p): p.numel() for p in model.parameters()}.values())
        by = {"linear": 0, "linear-subclass": 0}
        for _, _, operator, number, *sides in tensors:
            if operator in by:
                by[operator] += number * sides[0] * sides[1]
        versions = f"torch {torch.__version__.split('+')[0]}, {version}"
        shown = json.dumps(config, separators=(",", ":"), sort_keys=True)
        rows.append(
            [model_type.partition(":")[0], class_name, shown, total, *by.values(), total - sum(by.values()), versions]
        )
        print(model_type, class_name, total, len(tensors), "rows")
    with COUNTS.open(newline="") as file:
        head, *known = csv.reader(file)
    named = {tuple(row[:3]) for row in rows}
    with COUNTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        kept = [row for row in known if tuple(row[:3]) not in named]
        writer.writerows([head, *sorted([*kept, *rows], key=lambda row: row[:2])])


if __name__ == "__main__":
    main()
