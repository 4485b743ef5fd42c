"""Qwen2.5-Omni whole: what thinks, a Qwen2 that speaks in codes, and what makes sound of them (a DiT over mel frames, BigVGAN).

Source: transformers 5.23.0, models/qwen2_5_omni.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.omni import SPOKEN, VOCODER, read_thinker, spoken
from pipeline.anatomy.families.plain import PLAIN, read_plain
from pipeline.anatomy.families.qwen_tts import speaker
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.reading import nested, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig
from pipeline.anatomy.towers.part import Part

FREQUENCIES = 256  # that a moment of the way from noise to sound is written as
VOICE = (
    "enc_channels", "enc_kernel_sizes", "enc_res2net_scale", "enc_se_channels", "enc_attention_channels", "enc_dim", "mel_dim",
)  # fmt: skip
DILATED = 3  # convolutions of a residual block, each with one behind it


@family("qwen2_5_omni")
def qwen2_5_omni(fields: Fields) -> Anatomy:
    head = {"model_type": "qwen2_5_omni_thinker", "architectures": None}
    thinker = read_thinker(nested(fields, "thinker_config").but(head))
    if not fields.flag("enable_audio_output"):
        leave_parts(fields.config)  # what speaks is not built
        return add_parts(fields, thinker, [])
    parts = talker(nested(fields, "talker_config", required=False).filled())
    sound = nested(fields, "token2wav_config", required=False)
    frames = nested(sound, "dit_config", required=False).filled()
    parts += [*denoiser(frames), waves(nested(sound, "bigvgan_config", required=False).filled())]
    stored = thinker.stored_extra | {"rotary frequencies": frames.count("head_dim") // 2}
    return add_parts(fields, thinker, parts, stored_extra=stored)


def talker(fields: Fields) -> list[Part]:
    """It reads what the thinker made and its own codes, both in the thinker's width."""
    text = read_plain(fields.but({"architectures": None, "tie_word_embeddings": False}), PLAIN["qwen2"])
    heard, projector = fields.count("embedding_size"), Part(SPOKEN, "projector")
    projector.linear("projector", heard, text.hidden_size)
    rows = tuple(replace(t, in_features=heard) if t.role == "embedding" else t for t in text.tensors)
    return [spoken(replace(text, tensors=rows)), projector]


def denoiser(fields: Fields) -> list[Part]:
    hidden, layers, heads = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("num_attention_heads"),
    )
    bins, width = fields.count("mel_dim"), fields.count("emb_dim")
    part = Part(VOCODER, "audio-tower")
    part.linear("time_embedding", FREQUENCIES, hidden)
    part.linear("time_embedding", hidden, hidden)
    part.embedding("audio_embedding", fields.count("num_embeds") + 1, width)
    part.linear("patch_embedding", bins + fields.count("enc_dim") + fields.count("enc_emb_dim") + width, hidden)
    part.linear("modulation", hidden, 6 * hidden, layers=layers)
    part.mixer(layers, hidden, heads, head_dim=fields.count("head_dim"))
    part.mlp(layers, hidden, fields.count("ff_mult") * hidden)
    part.linear("modulation", hidden, 2 * hidden)
    part.linear("head_transform", hidden, bins)
    voice = {name: fields.raw(name, default=fields.by_class(name)) for name in VOICE}
    return [part, speaker(Fields(voice, fields.where))]


def waves(fields: Fields) -> Part:
    """Convolutions that raise the rate, each with half the channels of the last, and blocks of dilated ones after each."""
    width, kernels = fields.count("upsample_initial_channel"), sizes(fields, "resblock_kernel_sizes", least=1)
    dilations = fields.raw("resblock_dilation_sizes", default=fields.by_class("resblock_dilation_sizes"))
    if not isinstance(dilations, list) or not all(isinstance(d, list) and len(d) == DILATED for d in dilations):
        raise ContradictoryConfig(f"{fields.where}.resblock_dilation_sizes is no list of {DILATED} each")
    rates = list(
        zip(sizes(fields, "upsample_rates", least=1), sizes(fields, "upsample_kernel_sizes", least=1), strict=False)
    )
    if width >> len(rates) < 1:
        raise ContradictoryConfig(f"{fields.where}: {width} channels cannot be halved {len(rates)} times")
    part = Part(VOCODER, "audio-tower")
    part.conv(width, fields.count("mel_dim"), 7)
    for _, kernel in rates:
        part.conv(width // 2, width, kernel)
        width //= 2
        for inner, _ in zip(kernels, dilations, strict=False):
            part.conv(width, width, inner, count=2 * DILATED)
            part.vector(width, "scale", count=4 * DILATED)
    part.vector(width, "scale", count=2)
    part.conv(1, width, 7, bias=False)
    return part
