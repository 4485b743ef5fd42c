"""Qwen3-TTS: a decoder that reads words and writes one code of sound a step, a small one that writes the frame's other codes, what hears
the voice to be copied, and the codec that makes sound of codes. Source: the package qwen-tts 0.1.1, core/models.

The codec lies in a folder of its own, which published totals leave out; it is always loaded, and has one published shape (module.jsonl).
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.listed import listed_parts
from pipeline.anatomy.families.omni import QK, spoken
from pipeline.anatomy.families.plain import read_plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tensor, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part, divided

APART = "What makes sound of its codes lies in files of its own: no total counts it, and we do"
CODECS = ("qwen3_tts_tokenizer_12hz",)
CHANNELS, KERNELS = (512, 512, 512, 512, 1536), (5, 3, 3, 3, 1)  # of the class
HEARS = "base"  # the type that copies a voice


@family("qwen3_tts")
def qwen3_tts(fields: Fields) -> Anatomy:
    config = nested(fields, "talker_config")
    own = {"architectures": None, "tie_word_embeddings": False, "model_type": "qwen3_tts"}
    talker = read_plain(config.but(own), QK)
    part, hidden, text = Part("text"), talker.hidden_size, config.count("text_hidden_size", default=2048)
    part.embedding("embedding", config.count("text_vocab_size"), text)
    part.linear("projector_up", text, text)
    part.linear("projector_down", text, hidden)
    kind = fields.text("tts_model_type")
    if kind is None:
        raise UnknownAnatomy(f"{fields.where} has no tts_model_type")
    voice = nested(fields, "speaker_encoder_config", required=False)
    codec = fields.text("tokenizer_type")
    if codec not in CODECS:
        raise UnknownAnatomy(f"{fields.where}: the codec {shown(codec)!r} is not described yet")
    parts = [part, frame(nested(config, "code_predictor_config"), hidden)]
    heard = [speaker(voice)]  # read for all, and built for one type
    parts += heard if kind == HEARS else []
    whole = add_parts(fields, replace(talker, architecture=None), parts)
    return replace(whole, model_type="qwen3_tts", apart=beside(codec), apart_note=APART)


def beside(codec: str) -> tuple[Tensor, ...]:
    """All of the codec as one tower, which totals of the model's own file leave out."""
    tower = {"component": "audio", "tensor_class": "audio-tower"}
    return tuple(replace(t, **tower) for part in listed_parts(codec) for t in part.tensors)


def frame(fields: Fields, hidden: int) -> Part:
    """All codes of a frame but the first: an embedding as wide as the talker and a head for each."""
    own = {"architectures": None, "tie_word_embeddings": False, "model_type": "qwen3_tts"}
    text, codes = read_plain(fields.but(own), QK), fields.repeats("num_code_groups", least=2)
    part = spoken(text, copies=codes - 1, window=codes)
    wide = {"in_features": hidden}
    part.tensors = [replace(t, **wide) if t.role == "audio_embedding" else t for t in part.tensors]
    if text.hidden_size != hidden:
        part.linear("projector_up", hidden, text.hidden_size)
    return part


def speaker(fields: Fields) -> Part:
    """An ECAPA-TDNN over a mel spectrogram: convolutions in time, three of them in steps of some channels, statistics of attention."""
    part = Part("encoder", "other")
    channels, kernels = (
        sizes(fields, "enc_channels", CHANNELS, least=1),
        sizes(fields, "enc_kernel_sizes", KERNELS, least=1),
    )
    if len(channels) != len(kernels) or len(channels) < 2:
        raise ContradictoryConfig(f"{fields.where} has {len(channels)} widths for {len(kernels)} kernels")
    scale, squeezed = fields.count("enc_res2net_scale", default=8), fields.count("enc_se_channels", default=128)
    asked, last = fields.count("enc_attention_channels", default=128), channels[-1]
    part.conv(channels[0], fields.count("mel_dim", default=128), kernels[0])
    for before, width, kernel in zip(channels, channels[1:-1], kernels[1:], strict=False):
        part.conv(width, before, 1)
        narrow = divided(width, scale, "width of a voice's convolution")
        part.conv(narrow, narrow, kernel, count=scale - 1)
        part.conv(width, width, 1)
        part.conv(squeezed, width, 1)
        part.conv(width, squeezed, 1)
    part.conv(last, last, kernels[-1])
    part.conv(asked, 3 * last, 1)
    part.conv(last, asked, 1)
    part.conv(fields.count("enc_dim", default=1024), 2 * last, 1)
    return part
