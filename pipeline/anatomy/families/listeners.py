"""Audio language models: a tower that hears, a projector, a language model whose own family reads its config."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family
from pipeline.anatomy.families.blip import query_former
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import nested
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy
from pipeline.anatomy.towers import audio_tower
from pipeline.anatomy.towers.part import Part


@dataclass(frozen=True)
class Listener:
    """An audio language model: its tower, its language model, and a projector of one or two matrices."""

    tower: str
    text: str
    stacks: int = 1  # frames of the tower that are joined
    matrices: int = 1
    bias: bool = True
    norm: bool = False
    ties: bool = False
    never_ties: bool = False  # whatever the config says


LISTENERS = {
    "qwen2_audio": Listener("qwen2_audio_encoder", "qwen2", never_ties=True),
    "audioflamingo3": Listener("audioflamingo3_encoder", "qwen2", matrices=2, never_ties=True),
    "musicflamingo": Listener("audioflamingo3_encoder", "qwen2", matrices=2, never_ties=True),
    "voxtral": Listener("voxtral_encoder", "llama", stacks=4, matrices=2, bias=False, never_ties=True),
    "voxtral_realtime": Listener(
        "voxtral_realtime_encoder", "voxtral_realtime_text", stacks=4, matrices=2, bias=False, ties=True
    ),
    "moss_transcribe_diarize": Listener(
        "moss_transcribe_diarize_audio", "qwen3", stacks=4, matrices=2, norm=True, ties=True
    ),
}


@family(*LISTENERS)
def read_listener(fields: Fields) -> Anatomy:
    plan = LISTENERS[fields.text("model_type")]
    own = fields.but({"tie_word_embeddings": False}) if plan.never_ties else fields
    text = language_model(own, replace(Plan("", plan.text), ties=plan.ties))
    tower = audio_tower(nested(fields, "audio_config"), plan.tower)
    projector, width = Part("projector", "projector"), text.hidden_size
    bias = fields.flag("projector_bias", default=plan.bias)
    projector.linear("projector_up", tower[0].hidden * plan.stacks, width, bias=bias)
    if plan.matrices == 2:
        projector.linear("projector_down", width, width, bias=bias)
    projector.norm(width if plan.norm else 0)
    parts = [*tower, projector]
    if plan.text == "voxtral_realtime_text":  # a small network per layer turns the delay into a norm's scale
        adaptive, narrow = Part("text"), 32
        adaptive.linear("adaptive_norm", width, narrow, bias=False, layers=text.layer_count)
        adaptive.linear("adaptive_norm", narrow, width, bias=False, layers=text.layer_count)
        parts.append(adaptive)
    return add_parts(fields, text, parts)


@family("qwen3_asr")
def qwen3_asr(fields: Fields) -> Anatomy:
    """A Qwen3 that hears with the tower of Qwen3-Omni. The checkpoints of its own package keep both configs inside `thinker_config`."""
    inner = fields if fields.raw("thinker_config") is None else nested(fields, "thinker_config")
    if inner is not fields:
        shared = {"model_type": "qwen3_asr", "architectures": fields.raw("architectures")}
        inner = inner.but(shared)
    text = language_model(inner, Plan("", "qwen3", ties=True))
    return add_parts(fields, text, list(audio_tower(nested(inner, "audio_config"), "qwen3_asr_encoder")))


@family("granite_speech")
def granite_speech(fields: Fields) -> Anatomy:
    """A Granite that hears: a conformer, and learned queries that read it window by window."""
    if fields.flag("has_lora_adapter"):
        raise UnknownAnatomy(f"{fields.where} says that an adapter is loaded too, and not how large it is")
    text = language_model(fields, Plan("", "granite", ties=True))
    tower = audio_tower(nested(fields, "encoder_config"), "granite_speech_encoder")
    queries = fields.size("window_size") // fields.size("downsample_rate")
    former = query_former(nested(fields, "projector_config"), queries)
    former.linear("projector", former.hidden, text.hidden_size)
    return add_parts(fields, text, [*tower, former])
