"""Who speaks and when: segmentation, diarization and what tells voices apart."""

from __future__ import annotations

from packages.registry import buffers_of, builds, module_of

CONFIGS: dict[str, dict] = {
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
    # what the class of pyannote.audio takes by itself, as pyannote/embedding says that it is of
    "pyannote_embedding": {"sample_rate": 16000, "num_channels": 1, "sincnet": {"stride": 10}, "dimension": 512},
    # of github.com/speechbrain/speechbrain@0d7092cf recipes/VoxCeleb/SpeakerRec/hparams/verification_ecapa.yaml, which loads the checkpoint
    "ecapa_tdnn": {
        "n_mels": 80, "channels": [1024, 1024, 1024, 1024, 3072], "kernel_sizes": [5, 3, 3, 3, 1], "dilations": [1, 2, 3, 4, 1],
        "groups": [1, 1, 1, 1, 1], "attention_channels": 128, "lin_neurons": 192,
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = dict.fromkeys(CONFIGS, "audio")


@builds("pyannote_segmentation", "PyanNet", "pyannote.audio")
@builds("pyannote_segmentation_2", "PyanNet", "pyannote.audio")
def segmentation(config: dict):
    """Each voice of up to three by itself (2.x), or which voices of up to three speak, two at most at once (3.x)."""
    import torch
    from pyannote.audio.models.blocks.sincnet import SincNet

    lstm, linear, width = config["lstm"], config["linear"], config["linear"]["hidden_size"]
    out = lstm["hidden_size"] * 2
    return module_of(
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


@builds("ecapa_tdnn", "ECAPA_TDNN", "speechbrain")
def ecapa_tdnn(config: dict):
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    return ECAPA_TDNN(input_size=config["n_mels"], **{k: v for k, v in config.items() if k != "n_mels"})


@builds("pyannote_diarization", "SpeakerDiarization", "pyannote.audio")
def diarization(config: dict):
    import torch

    return module_of(
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

    return module_of(
        torch,
        segmentation=segmentation(CONFIGS["pyannote_segmentation_2"]),
        embedding=ecapa_tdnn(CONFIGS["ecapa_tdnn"]),
    )


@builds("pyannote_embedding", "XVectorSincNet", "pyannote.audio")
def xvector(config: dict):
    from pyannote.audio.models.embedding.xvector import XVectorSincNet

    return XVectorSincNet(**config)


# by type what a checkpoint holds besides, with a cause
STORED = {
    "pyannote_embedding": ("running statistics and filters, which are buffers", buffers_of),
}
