"""MiniCPM-o 4.5: MiniCPM-V 4.5, an encoder of Whisper that hears, and a Llama that writes codes of speech.

Code of its own, held to the published total. What makes sound of the codes lies in files beside it and is another program's.
Version 2.6 speaks by another network and is not described.
Source: modeling_minicpmo.py as it travels with the checkpoint; vLLM-Omni, model_executor/models/minicpmo.
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
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers.audio import whisper_encoder
from pipeline.anatomy.towers.part import Part

VERSION = "4.5"
# of the table that Llama's class makes where nobody names a vocabulary; codes have tables of their own
LLAMA_ROWS = 32_000
INITS = ("init_vision", "init_audio", "init_tts")
WORDS = {"backbone_model": "llama", "projector_type": "mlp"}


@family("minicpmo")
def minicpmo(fields: Fields) -> Anatomy:
    if str(fields.raw("version")) != VERSION or fields.flag("attention_bias", default=True):
        raise UnknownAnatomy(f"{fields.where}: only version {VERSION} of this architecture is described")
    for name in INITS:
        if not fields.flag(name, default=True):
            raise UnknownAnatomy(f"{fields.where}.{name} is false, which is not described yet")
    leave_parts(fields.config)
    names = {"architectures": ["MiniCPMV"], "model_type": "minicpmv", "audio_config": None, "tts_config": None}
    seen = minicpmv(fields.but(names))
    heard, audio = Part("audio", "audio-tower"), nested(fields, "audio_config")
    whisper_encoder(heard, audio)
    projector = mlp(max(audio.count("encoder_ffn_dim") // 4, 1), seen.hidden_size)
    return add_parts(fields, seen, [heard, projector, *speech(nested(fields, "tts_config"))])


def mlp(inputs: int, outputs: int) -> Part:
    part = Part("projector", "projector")
    part.linear("projector_up", inputs, outputs)
    part.linear("projector_down", outputs, outputs)
    return part


def speech(fields: Fields) -> list[Part]:
    for name, word in WORDS.items():
        said = fields.text(name, default=word)
        if said != word:
            raise UnknownAnatomy(f"{fields.where}.{name} is {said[:40]!r}")
    own = {"vocab_size": LLAMA_ROWS, "tie_word_embeddings": False, "architectures": ["LlamaModel"], "head_dim": None}
    flags = {"attention_bias": False, "mlp_bias": False}
    text = read_plain(fields.but(own | flags), PLAIN["llama"])
    codes, width = fields.count("num_audio_tokens"), text.hidden_size
    words, books = Part(SPOKEN), fields.repeats("num_vq")
    words.embedding("embedding", fields.count("num_text_tokens"), width)
    words.embedding("audio_embedding", codes, width, count=books)
    words.linear("head", width, codes, bias=False, count=books)
    words.vector(codes, "scale", count=books)  # weight_norm keeps lengths apart from directions
    inputs = fields.count("llm_dim")
    return [spoken(replace(text, model_type="llama")), words, mlp(inputs, width), mlp(inputs, width)]
