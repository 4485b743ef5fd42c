"""What a model reads besides text: how its towers run, and how many tokens an image or a second of sound becomes.

`with_towers` adds the `towers` of an anatomy from its rows and its config. Rules are by the architecture of the tower, never by a model's
name; an architecture without a rule has no row, and a scenario with images is then unknown. Shapes, defaults and what is alive at once were
read from the modelling and processing code of transformers 5.23 and are held to it by tests/oracle/inference.csv.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested, ratio, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tower, UnknownAnatomy
from pipeline.anatomy.towers.images import (
    activation,
    alone,
    gemma4,
    llava,
    packed,
    pairs,
    patches,
    pixtral,
    pooled,
    read_by_decoder,
    squares,
    vision,
)
from pipeline.anatomy.towers.shapes import plain, shape_of
from pipeline.anatomy.towers.tiles import cut, llama4, mllama, tiled
from pipeline.anatomy.towers.timm import pictures
from pipeline.base.bounds import LARGEST_SIZE, LARGEST_TOTAL

FRAME = 160  # samples of ten milliseconds
SAMPLES = 2 * FRAME  # of one of Whisper's positions
CLAP_SAMPLE = 1001 * 64  # frames of a clip of ten seconds, and their mel bins


def with_towers(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The same anatomy with its towers; without them where the config does not say enough for a rule."""
    rule = RULES.get(anatomy.model_type)
    try:
        towers = tuple(rule(fields, anatomy)) if rule else _encoder(fields, anatomy)
    except (UnknownAnatomy, ContradictoryConfig):
        return anatomy
    towers = tuple(t for t in towers if t is not None)
    for tower in towers:
        for name, value in vars(tower).items():
            if isinstance(value, int) and value > LARGEST_TOTAL:
                raise ContradictoryConfig(f"{fields.where}: {name} of the part '{tower.component}' is larger than any")
    only = next((t for t in towers if t.reader == "none"), None)
    if only and anatomy.max_context_tokens is None and only.component == "vision":
        tokens = only.tokens_each or only.default_pixels // max(only.pixels_each, 1)
        return replace(anatomy, towers=towers, max_context_tokens=tokens + only.class_tokens or None)
    return replace(anatomy, towers=towers)


# ---- images that every layer of the text attends to


def blip(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """BLIP writes about one image of one size; its text caches keys and values of all patches and the class token."""
    inner = vision(fields)
    patch, _, each = squares(inner)
    hidden = shape_of(anatomy, "vision").hidden
    facts = {"tokens_each": each, "class_tokens": 1, "output_elements": hidden}
    named = activation(inner)
    return [plain(anatomy, "vision", named, reader="cross-attention", input_elements=3 * patch * patch, **facts)]


# ---- sound


def whisper(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Thirty seconds at a time: two frames of features make one of the encoder's positions."""
    shape = shape_of(anatomy, "encoder")
    bins, each = fields.size("num_mel_bins"), fields.size("max_source_positions")
    named = fields.text("activation_function")
    facts = {"tokens_each": each, "output_elements": shape.hidden, "input_elements": 2 * bins}
    return [plain(anatomy, "encoder", named, reader="cross-attention", stem_elements=4 * shape.hidden, **facts)]


def windows(text_tokens: int) -> Callable[[Fields, Anatomy], list[Tower]]:
    """Whisper's encoder before a language model: windows of thirty seconds, each so many tokens of the prompt."""

    def rule(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = nested(fields, "audio_config").filled()
        shape, each = shape_of(anatomy, "audio"), inner.count("max_source_positions")
        facts = {"grid": "tiles", "tokens_each": each, "text_tokens_each": text_tokens, "samples_each": each * SAMPLES}
        facts |= {"input_elements": 2 * inner.count("num_mel_bins"), "stem_elements": 4 * shape.hidden}
        facts["output_elements"] = -(-text_tokens * anatomy.hidden_size // each)
        named = inner.text("activation_function", default=None) or inner.text("hidden_act") or "gelu"
        return [plain(anatomy, "audio", named, **facts)]

    return rule


def chunks(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Qwen3-ASR: convolutions over chunks of a second, whose first layer is the longest; every position is one of the prompt."""
    whole = fields if fields.raw("thinker_config") is None else nested(fields, "thinker_config")
    inner = nested(whole, "audio_config").filled()
    frames, bins = 2 * inner.size("n_window", otherwise=50), inner.count("num_mel_bins")
    tokens = frames
    for _ in range(3):
        tokens = -(-tokens // 2)
    first = inner.count("downsample_hidden_size") * -(-bins // 2) * -(-frames // 2)
    facts = {"grid": "tiles", "tokens_each": tokens, "text_tokens_each": tokens, "samples_each": frames * FRAME}
    facts |= {"input_elements": -(-bins * frames // tokens), "stem_elements": -(-2 * first // tokens)}
    named = inner.text("activation_function", default=None) or "gelu"
    return [plain(anatomy, "audio", named, output_elements=anatomy.hidden_size, **facts)]


def waveform(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """wav2vec 2.0 and HuBERT: convolutions over samples, the longest first; a token is 20 milliseconds. While the second one runs, what it
    reads and what it writes lie there twice (cuDNN)."""
    channels, strides = sizes(fields, "conv_dim", least=1), sizes(fields, "conv_stride", least=1)
    samples = prod(strides)
    if samples > LARGEST_SIZE:
        raise ContradictoryConfig(f"{fields.where}.conv_stride makes one token of {samples} samples")
    first = channels[0] * samples // strides[0]
    copies = 3 if fields.text("feat_extract_norm") == "layer" else 2
    second = channels[1] * samples // (strides[0] * strides[1]) if len(channels) > 1 else 0
    stem = max(copies * first, 2 * (first + second))
    facts = {"grid": "context", "stem_elements": stem, "input_elements": samples}
    return [plain(anatomy, "audio", fields.text("hidden_act"), reader="none", **facts)]


def spectrogram(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """CLAP: the spectrogram of one clip as a picture, whose first stage has the most patches; fused, its parts beside the whole."""
    inner = nested(fields, "audio_config")
    side, patch = inner.size("spec_size", otherwise=256), inner.size("patch_size", otherwise=4)
    hidden = inner.size("patch_embeds_hidden_size", otherwise=96)
    tokens = (side // patch) ** 2
    if not tokens:
        raise ContradictoryConfig(f"{inner.where}.spec_size is {side}, less than one patch of {patch}")
    width, frames = int(hidden * ratio(inner, "mlp_ratio", 4)), 4 if inner.flag("enable_fusion") else 1
    facts = {"hidden_tensors": 11, "rotary_tensors": 0, "input_elements": -(-frames * CLAP_SAMPLE // tokens)}
    named = inner.text("hidden_act", default="gelu")
    return [Tower("audio", "none", "fixed", hidden, width, False, named, tokens_each=tokens, **facts)]


# ---- encoders of text


def _encoder(fields: Fields, anatomy: Anatomy) -> tuple[Tower, ...]:
    """The encoder of an encoder-decoder; a model that only encodes text has no stage before its text."""
    components = {a.component for a in anatomy.attention}
    if not {"encoder", "decoder"} <= components or not any(a.mechanism == "cross" for a in anatomy.attention):
        return ()
    shape = shape_of(anatomy, "encoder")
    named = next(f.activation for f in anatomy.feed_forward if f.component == "encoder") or "gelu"
    is_t5 = anatomy.norm_kind == "rms" and not anatomy.has_flash_attention
    facts = {
        "grid": "context",
        "output_elements": shape.hidden,
        "input_elements": 4,  # ids of eight bytes
        "hidden_tensors": 4,
        "square_elements": shape.heads if is_t5 else 0,  # the bias of relative positions
    }
    return (plain(anatomy, "encoder", named, reader="cross-attention", **facts),)


RULES: dict[str, Callable[[Fields, Anatomy], list[Tower]]] = {
    "vit": alone(),
    "deit": alone(tokens_before=2),
    **dict.fromkeys(("dinov2", "dinov2_with_registers", "dinov3_vit"), alone(stretches=True)),
    "clip": pairs(class_tokens=1),
    "siglip": pairs(class_tokens=0),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), packed("qwen2-vl")),
    **dict.fromkeys(("glm4v", "glm4v_moe"), packed("glm4v")),
    "glm5_next": packed("glm5-next", 2),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe"), packed("qwen3-vl", deepstack=True, position_copies=2)),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen4_exp"), packed("qwen3-vl", position_copies=2)),
    "kimi_k25": packed("kimi-k25"),
    "minimax_m3_vl": packed("minimax-m3", projected=3),
    "gemma3": pooled("gemma3", 256, factor=True),
    "paligemma": pooled("paligemma"),
    **dict.fromkeys(("llava", "video_llava"), llava),
    "mistral3": pixtral(),
    "lighton_ocr": pixtral("lighton-ocr"),
    **dict.fromkeys(("internvl", "internvl_chat"), cut("internvl")),
    "llava_next": cut("llava-next"),
    "llava_onevision": cut("llava-onevision"),
    "idefics3": tiled(4),
    "smolvlm": tiled(4),
    "gemma4": gemma4,
    "gemma4_unified": patches,
    "llama4": llama4,
    "mllama": mllama,
    "blip": blip,
    "vision-encoder-decoder": read_by_decoder,
    "whisper": whisper,
    "voxtral": windows(375),
    "qwen2_audio": windows(750),
    "qwen3_asr": chunks,
    **dict.fromkeys(("wav2vec2", "hubert"), waveform),
    "clap": spectrogram,
    "timm_wrapper": pictures,
}
