"""What a list of dims leaves open, tried in turn: each completion is a whole config, and a published total has to choose.

Sources of dims give a width without saying of what, leave out a head's dimension where it is usual, the order of a hybrid's
layers, and that a model is a draft which shares its embedding with the model that it drafts for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.anatomy.class_defaults import class_defaults
from pipeline.confirm.gaps import fillings_of
from pipeline.hub.record import Record

DIMS_ONLY = "partial"
TEXTS = ("text_config", "llm_config", "language_config")
_WIDTHS = ("intermediate_size", "moe_intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size")
_TEXT_TYPES = ("qwen2", "qwen3", "llama", "mistral", "gpt_oss", "qwen3_moe")
_MOST_LAYERS = 200
_TARGETS = range(1, 9)  # layers of its target that a draft reads
KIN = {"diffusion_gemma": "gemma4"}  # types whose language model and towers are another's
_OCR = ("deepseek_ocr2", "deepseek_vl_v2", "deepseekocr_2")
_RANKS = (None, 256)  # of a draft's table of what follows what
Config = dict[str, Any]


def text_place(config: Mapping[str, Any]) -> str | None:
    """The name of the part that holds the language model's dims, where they are nested."""
    return next((name for name in TEXTS if isinstance(config.get(name), Mapping)), None)


def typed(config: Mapping[str, Any]) -> Config:
    """Dims beside the name of a class, which begins with that of its type: GPTBigCodeForCausalLM is of gpt_bigcode."""
    names = config.get("architectures")
    if "model_type" in config or not isinstance(names, list) or not names or not isinstance(names[0], str):
        return dict(config)
    prefix = re.match(r"\w+?(?=LMHeadModel|For[A-Z]|Model$)", names[0])
    known = {model_type.replace("_", "").replace("-", ""): model_type for model_type in class_defaults()}
    kind = known.get(prefix[0].lower()) if prefix else None
    return {**config, "model_type": kind} if kind else dict(config)


def states_width(config: Mapping[str, Any], width: int | None) -> bool:
    """Whether a source tells how wide the feed-forward is."""
    return bool(width) or any(config.get(name) for name in _WIDTHS)


def widths_of(config: Mapping[str, Any]) -> set[int]:
    """Widths of feed-forwards and experts that a config states."""
    place = text_place(config)
    text = config[place] if place else config
    return {text[name] for name in _WIDTHS if type(text.get(name)) is int}


def completions(record: Record, *, of_one_family: bool = False) -> Iterator[tuple[Config, bool]]:
    """The stated dims as they are (True), and with what sources of dims leave out. Nothing that they state is changed.

    With `of_one_family` only what another model of the family may be put under: no drafts, no code of its own.
    """
    for own in _with_widths(dict(record.config), record.ffn_width_reported):
        yield own, True
        for positions in _learned_positions(own, record.context_length_reported):
            yield positions, True
        for hybrid in _hybrids(own):
            yield hybrid, False
        if of_one_family:
            continue
        for draft in _drafts(own):
            yield draft, False
        nested = own if own.get("model_type") not in _OCR else _as_text_of(_OCR[0], own)
        for filling in fillings_of(nested.get("model_type"), DIMS_ONLY):
            if found := filling.changed(nested):
                yield found[1], True


def _with_widths(own: Config, width: int | None) -> Iterator[Config]:
    model_type, narrow = own.get("model_type"), _usual_head(own)
    default = class_defaults().get(model_type, {}) if isinstance(model_type, str) else {}
    place = text_place(default)
    names = [name for name in _WIDTHS if name in (default[place] if place else default)] or _WIDTHS[:1]
    for config in (own, own | {"head_dim": narrow}) if narrow else (own,):
        yield config
        for name in names if width else ():
            if name not in own:
                yield config | {name: width}
        scaled = {} if width else _in_proportion(own, default[place] if place else default)
        if scaled:
            yield config | scaled


def _in_proportion(own: Config, default: Mapping[str, Any]) -> Config:
    """Widths that are multiples of the hidden size in the class's default, as multiples of the stated one."""
    hidden, usual = own.get("hidden_size"), default.get("hidden_size")
    if type(hidden) is not int or type(usual) is not int or usual < 1:
        return {}
    widths = {name: default.get(name) for name in (*_WIDTHS, "word_embed_proj_dim") if name not in own}
    return {n: hidden * (w // usual) for n, w in widths.items() if type(w) is int and w > 0 and w % usual == 0}


def _learned_positions(own: Config, length: int | None) -> Iterator[Config]:
    """As many rows as the context that a source states, where the class has a table of them."""
    default = class_defaults().get(own.get("model_type"), {}) if isinstance(own.get("model_type"), str) else {}
    for name in ("n_positions", "max_position_embeddings") if length and "rope_parameters" not in default else ():
        if name in default and name not in own:
            yield own | {name: length}


def _usual_head(own: Config) -> int | None:
    hidden, heads = own.get("hidden_size"), own.get("num_attention_heads")
    if "head_dim" in own or type(hidden) is not int or type(heads) is not int or heads < 1 or hidden % heads:
        return None
    return hidden // heads


def _hybrids(own: Config) -> Iterator[Config]:
    """LFM2: how many layers attend shows in the count, and whether a width is meant as it stands; in which order, nowhere."""
    layers = own.get("num_hidden_layers")
    if own.get("model_type") in ("lfm2", "lfm2_moe") and type(layers) is int and layers < _MOST_LAYERS:
        for attending in range(1, layers):
            mixed = own | {"layer_types": ["conv"] * (layers - attending) + ["full_attention"] * attending}
            yield mixed
            if own["model_type"] == "lfm2" and "block_auto_adjust_ff_dim" not in own:
                yield mixed | {"block_auto_adjust_ff_dim": False}


def _drafts(own: Config) -> Iterator[Config]:
    if own.get("model_type") in ("qwen3", "llama") and own.get("num_hidden_layers") in range(1, 13):
        for targets in _TARGETS:
            for rank in _RANKS:
                draft = {"target_layer_ids": list(range(targets)), "markov_rank": rank}
                yield own | {"architectures": ["DFlashDraftModel"], "dflash_config": draft}


def _as_text_of(model_type: str, own: Config) -> Config:
    """The dims as those of the language model of a whole."""
    text = {name: value for name, value in own.items() if name not in ("model_type", "architectures")}
    return {"model_type": model_type, "text_config": text}


def over(config: Mapping[str, Any], own: Mapping[str, Any]) -> Config:
    """The config with these dims. Its lists of layers go where it has another number of them; towers that end in the old
    width of the text end in the new one."""
    place = text_place(config)
    text = config[place] if place else config
    own = {k: v for k, v in own.items() if not (place and k in ("model_type", "architectures"))}
    before = text.get("num_hidden_layers")
    if before != own.get("num_hidden_layers"):
        text = {k: v for k, v in text.items() if not (isinstance(v, list) and len(v) == before)}
    if not place:
        return {**text, **own}
    tower, hidden = config.get("vision_config"), text.get("hidden_size")
    if isinstance(tower, Mapping) and "hidden_size" in own:
        ends = [name for name in ("hidden_size", "out_hidden_size") if name in tower and tower[name] == hidden]
        if "embed_dim" in tower and "hidden_size" in tower and not ends:  # its own width has that name
            ends = ["hidden_size"]
        last = [*ends[-1:], *(name for name in ("text_hidden_size",) if name in tower)]
        config = {**config, "vision_config": {**tower, **dict.fromkeys(last, own["hidden_size"])}}
    return {**config, place: {**text, **own}}


def other_parts(config: Config, own: Mapping[str, Any]) -> Iterator[Config]:
    """The same composition with another language model or with biases in its tower: a class's default is one of many."""
    yield config
    place, tower = text_place(config), config.get("vision_config")
    if place is None or not isinstance(tower, Mapping):
        return
    towers = (
        [tower] if "attention_bias" not in tower else [tower, {**tower, "attention_bias": not tower["attention_bias"]}]
    )
    dims = {k: v for k, v in own.items() if k not in ("model_type", "architectures")}
    for vision in towers:
        yield {**config, "vision_config": vision}
        for named in _TEXT_TYPES:
            for tied in (False, True):
                yield {
                    **config,
                    "vision_config": vision,
                    "tie_word_embeddings": tied,
                    place: {**dims, "model_type": named},
                }
