"""Lists what models of other packages than Transformers hold, as their own code builds them from a published config.

    pip install kokoro coqui-tts pyannote.audio chatterbox-tts speechbrain snac bigvgan     # and the sources of UniDepth, TRELLIS and BiRefNet on the path
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
} | dict.fromkeys(
    ("pyannote_segmentation", "wespeaker", "pyannote_diarization", "ecapa_tdnn", "snac", *BIGVGAN), "audio"
)
# of github.com/perennialtech/BigVGAN@fc6eba9f (configs), a copy of NVIDIA's code: what both have alike
_BIGVGAN = {
    "resblock": "1", "upsample_initial_channel": 1536, "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]], "use_tanh_at_final": False, "use_bias_at_final": False,
    "activation": "snakebeta", "snake_logscale": True,
}  # fmt: skip
BUILDERS: dict[str, tuple[str, str, Callable]] = {}
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
def segmentation(config: dict):
    import torch
    from pyannote.audio.models.blocks.sincnet import SincNet

    lstm, linear, width = config["lstm"], config["linear"], config["linear"]["hidden_size"]
    out = lstm["hidden_size"] * 2
    return _module(
        torch,
        sincnet=SincNet(sample_rate=config["sample_rate"], stride=config["sincnet"]["stride"]),
        lstm=torch.nn.LSTM(60, lstm["hidden_size"], lstm["num_layers"], bidirectional=True),
        linear=torch.nn.ModuleList(torch.nn.Linear(width if i else out, width) for i in range(linear["num_layers"])),
        classifier=torch.nn.Linear(width, config["num_classes"]),
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


# by type what a checkpoint holds besides: buffers, but for how many batches were seen
STORED = {"birefnet": "running statistics and places within a window"}


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
        held = sum(b.numel() for n, b in model.named_buffers() if not n.endswith("num_batches_tracked"))
        stored = {"stored": {STORED[model_type]: str(held)}} if model_type in STORED else {}
        write({
            "model_type": model_type, "class_name": class_name, "fields": fields, "pinned": sorted(fields), "lengths": lengths(config), "aliases": {},
            "told": sorted(fields), "least": {}, "tensors": tensors, **stored, "library_version": version,
        })  # fmt: skip
        total = sum({id(p): p.numel() for p in model.parameters()}.values())
        by = {"linear": 0, "linear-subclass": 0}
        for _, _, operator, number, *sides in tensors:
            if operator in by:
                by[operator] += number * sides[0] * sides[1]
        versions = f"torch {torch.__version__.split('+')[0]}, {version}"
        shown = json.dumps(config, separators=(",", ":"), sort_keys=True)
        rows.append([model_type, class_name, shown, total, *by.values(), total - sum(by.values()), versions])
        print(model_type, class_name, total, len(tensors), "rows")
    with COUNTS.open(newline="") as file:
        head, *known = csv.reader(file)
    named = {tuple(row[:2]) for row in rows}
    with COUNTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        kept = [row for row in known if tuple(row[:2]) not in named]
        writer.writerows([head, *sorted([*kept, *rows], key=lambda row: row[:2])])


if __name__ == "__main__":
    main()
