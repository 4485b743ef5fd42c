"""MiniCPM-o 4.5 and 2.6: MiniCPM-V of that version, an encoder of Whisper that hears, and a Llama that writes codes of speech.

Code of its own, held to the published totals of both. What makes sound of the codes lies in files beside 4.5 and is another program's; 2.6 makes
spectra of them by a codec that it holds (ChatTTS's), of one size, and leaves the vocoder to another.
Source: modeling_minicpmo.py as it travels with the checkpoints; vLLM-Omni, model_executor/models/minicpmo.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.minicpmv import minicpmv
from pipeline.anatomy.families.omni import SPOKEN, spoken
from pipeline.anatomy.families.plain import PLAIN, read_plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers.audio import whisper_encoder
from pipeline.anatomy.towers.part import Part

VERSIONS = ("2.6", "4.5")
# of the table that Llama's class makes where nobody names a vocabulary; codes have tables of their own
LLAMA_ROWS = 32_000
INITS = ("init_vision", "init_audio", "init_tts")
WORDS = {"backbone_model": "llama", "projector_type": "mlp"}
# of ChatTTS's codec
TTS_MELS, TTS_INNER, TTS_CODES, TTS_WIDTH, TTS_NECK, TTS_BLOCKS, TTS_LEVELS = 100, 512, 1024, 256, 128, 12, 4


@family("minicpmo")
def minicpmo(fields: Fields) -> Anatomy:
    version = str(fields.raw("version"))
    if version not in VERSIONS or (version == "4.5" and fields.flag("attention_bias", default=True)):
        raise UnknownAnatomy(
            f"{fields.where}: only versions {' and '.join(VERSIONS)} of this architecture are described"
        )
    for name in INITS:
        if not fields.flag(name, default=True):
            raise UnknownAnatomy(f"{fields.where}.{name} is false, which is not described yet")
    leave_parts(fields.config)
    names = {"architectures": ["MiniCPMV"], "model_type": "minicpmv", "audio_config": None, "tts_config": None}
    seen = minicpmv(fields.but(names))
    heard, audio = Part("audio", "audio-tower"), nested(fields, "audio_config")
    whisper_encoder(heard, audio)
    projector = mlp(max(audio.count("encoder_ffn_dim") // 4, 1), seen.hidden_size)
    spoken_by = speech(nested(fields, "tts_config"), projectors=2 if version == "4.5" else 1)
    return add_parts(fields, seen, [heard, projector, *spoken_by, *([] if version == "4.5" else [codec()])])


def mlp(inputs: int, outputs: int) -> Part:
    part = Part("projector", "projector")
    part.linear("projector_up", inputs, outputs)
    part.linear("projector_down", outputs, outputs)
    return part


def codec() -> Part:
    """Codes of spectra and back, with the residual quantizer of vector_quantize_pytorch, two groups."""
    part = Part(SPOKEN)
    part.parameter(TTS_MELS)
    part.conv(TTS_INNER, TTS_MELS, 3)
    part.conv(TTS_INNER, TTS_INNER, 4)
    for outputs in (TTS_CODES, TTS_INNER):
        part.conv(TTS_NECK, TTS_INNER, 3)
        part.conv(TTS_WIDTH, TTS_NECK, 3)
        part.conv(TTS_WIDTH, 1, 7, layers=TTS_BLOCKS)
        part.norm(TTS_WIDTH, layers=TTS_BLOCKS)
        part.linear("ffn_up", TTS_WIDTH, 4 * TTS_WIDTH, layers=TTS_BLOCKS)
        part.linear("ffn_down", 4 * TTS_WIDTH, TTS_WIDTH, layers=TTS_BLOCKS)
        part.vector(TTS_WIDTH, layers=TTS_BLOCKS)
        part.conv(outputs, TTS_WIDTH, 1, bias=False)
    part.conv(TTS_MELS, TTS_INNER, 3, bias=False)
    part.linear("projector_down", TTS_CODES // 2, TTS_LEVELS, count=2)
    part.linear("projector_up", TTS_LEVELS, TTS_CODES // 2, count=2)
    return part


def speech(fields: Fields, projectors: int) -> list[Part]:
    for name, word in WORDS.items():
        said = fields.text(name, default=word)
        if said != word:
            raise UnknownAnatomy(f"{fields.where}.{name} is {shown(said)!r}")
    own = {"vocab_size": LLAMA_ROWS, "tie_word_embeddings": False, "architectures": ["LlamaModel"], "head_dim": None}
    flags = {"attention_bias": False, "mlp_bias": False}
    text = read_plain(fields.but(own | flags), PLAIN["llama"])
    codes, width = fields.count("num_audio_tokens"), text.hidden_size
    words, books = Part(SPOKEN), fields.repeats("num_vq")
    words.embedding("embedding", fields.count("num_text_tokens"), width)
    words.embedding("audio_embedding", codes, width, count=books)
    words.linear("head", width, codes, bias=False, count=books)
    words.vector(codes, "scale", count=books)  # weight_norm keeps lengths apart from directions
    mels = fields.count("num_mel_bins", default=TTS_MELS)
    if projectors == 1 and (not fields.flag("use_mlp", default=True) or mels != TTS_MELS):
        raise UnknownAnatomy(f"{fields.where} speaks in a way that is not described")
    inputs = fields.count("llm_dim")
    return [spoken(replace(text, model_type="llama")), words, *(mlp(inputs, width) for _ in range(projectors))]
