"""Vision-language models: a vision tower, a projector, a language model whose own family reads its config.

A family is a row of `PLANS`: which tower and language model its class builds where a nested config does not say, how the
head is tied, and what projects. The layers, the cache and the context are the language model's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.anatomy.builder import add_parts
from pipeline.anatomy.families import family, reader_for
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.nested_parts import leave_parts
from pipeline.anatomy.reading import architecture_of, nested, over
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers import projectors as p
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part

# Language models of which nested configs may leave any size to the class: transformers writes only what differs from it. Files of the
# others say them all.
MAY_BE_SILENT = frozenset(
    [
        "llama",
        "mistral",
        "qwen2",
        "qwen3",
        "gemma",
        "gemma2",
        "gemma3_text",
        "gemma3n_text",
        "gemma4_text",
        "gemma4_unified_text",
        "qwen2_vl_text",
        "qwen2_5_vl_text",
        "qwen3_5_text",
        "qwen3_omni_moe_text",
        "hunyuan_vl_text",
        "voxtral_realtime_text",
    ]
)
# What checkpoints that leave it out have, where the class takes something else: more rows, heads that share the hidden size.
UNLIKE_THEIR_CLASS = {"qwen2_vl_text": {"vocab_size": 151936}, "voxtral_realtime_text": {"head_dim": 128}}
# Language models that are another family's under a name of their own.
TEXT_ALIASES = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "glm4v_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "paddleocr_vl_text": "ernie4_5",
    "exaone4_5_text": "exaone4",
    "kimi_k2": "deepseek_v3",
    "gemma4_unified_text": "gemma4_text",
    "voxtral_realtime_text": "mistral",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen3_asr_text": "qwen3",
}


@dataclass(frozen=True)
class Plan:
    tower: str  # the vision tower's kind where its config does not say
    text: str  # the language model's
    project: Callable[[Fields, Fields, list[Part], int], Part] = p.none  # config, vision config, tower, text width
    ties: bool = False  # the class default of tie_word_embeddings
    text_ties: bool = False  # a language model that ties makes the whole tie (files of transformers 4)
    text_alone: bool = False  # only the language model's own flag counts
    text_names: tuple[str, ...] = ("text_config",)
    newline: bool = False  # one learned vector that ends a row of patches
    towers: int = 1  # the same again, for video
    own_head: bool = False  # a head that is not tied has the sizes that stand beside the nested configs


# Towers whose class the parent chooses by the nested model_type; every other parent builds its own class whatever it says.
OPEN = ("clip_vision_model", "llava_clip", "siglip_vision_model", "siglip2_vision_model", "pixtral")
PLANS = {
    "qwen2_vl": Plan("qwen2_vl_vision", "qwen2_vl_text", text_ties=True),
    "qwen2_5_vl": Plan("qwen2_5_vl_vision", "qwen2_5_vl_text", text_ties=True),
    "qwen3_vl": Plan("qwen3_vl_vision", "qwen3_vl_text"),
    "qwen3_vl_moe": Plan("qwen3_vl_moe_vision", "qwen3_vl_moe_text"),
    "qwen3_5": Plan("qwen3_5_vision", "qwen3_5_text"),
    "qwen3_5_moe": Plan("qwen3_5_moe_vision", "qwen3_5_moe_text"),
    "glm4v": Plan("glm4v_vision", "glm4v_text", text_ties=True),
    "glm4v_moe": Plan("glm4v_moe_vision", "glm4v_moe_text", text_ties=True),
    "gemma3": Plan("siglip_vision_model", "gemma3_text", p.gemma3, ties=True),
    "paligemma": Plan("siglip_vision_model", "gemma", p.paligemma, ties=True),
    "mistral3": Plan("pixtral", "mistral", p.mistral3, ties=True),
    "llava": Plan("llava_clip", "llama", p.llava, text_ties=True),
    "llava_next": Plan("llava_clip", "llama", p.llava, newline=True),
    "llava_next_video": Plan("llava_clip", "llama", p.llava, text_ties=True, newline=True),
    "llava_onevision": Plan("siglip_vision_model", "qwen2", p.llava, text_ties=True, newline=True),
    "vipllava": Plan("llava_clip", "llama", p.vipllava),
    "video_llava": Plan("clip_vision_model", "llama", p.llava, towers=2),
    "idefics2": Plan("idefics2_vision", "mistral", p.idefics2),
    "idefics3": Plan("idefics3_vision", "llama", p.idefics3),
    "smolvlm": Plan("smolvlm_vision", "llama", p.idefics3),
    "kimi_k25": Plan("kimi_k25_vision", "deepseek_v3", p.kimi, ties=True),
    "llama4": Plan("llama4_vision_model", "llama4_text", p.llama4, text_alone=True),
    "internvl": Plan("internvl_vision", "qwen2", p.internvl, ties=True),
    "qianfan_ocr": Plan("qianfan_ocr_vision", "qwen3", p.internvl),
    "minicpmv4_6": Plan("minicpmv4_6_vision", "qwen3_5_text", p.minicpm),
    "muse_glimmer": Plan("muse_glimmer_vision", "muse_glimmer_text", p.muse_glimmer),
    "paddleocr_vl": Plan("paddleocr_vl_vision", "paddleocr_vl_text", p.paddleocr, ties=True, text_ties=True),
    "lfm2_vl": Plan("siglip2_vision_model", "lfm2", p.lfm2, ties=True),
    "aya_vision": Plan("siglip_vision_model", "cohere2", p.aya, ties=True),
    "cohere2_vision": Plan("siglip_vision_model", "cohere2", p.cohere2, ties=True),
    "got_ocr2": Plan("got_ocr2_vision", "qwen2", p.got_ocr, ties=True),
    "glm_ocr": Plan("glm_ocr_vision", "glm_ocr_text", text_ties=True),
    "glm5_next": Plan("glm5_next_vision", "glm5_next_text"),
    "exaone4_5": Plan("exaone4_5_vision", "exaone4"),
    "qwen4_exp": Plan("qwen4_exp_vision", "qwen4_exp_text"),
    "minimax_m3_vl": Plan("minimax_m3_vl_vision", "minimax_m3_vl_text", p.minimax, text_ties=True),
    "lighton_ocr": Plan("pixtral", "qwen3", p.mistral3, ties=True),
    "video_llama_3": Plan("video_llama_3_vision", "qwen2", p.llava, text_ties=True),
    "deepseek_vl": Plan("siglip_vision_model", "llama", p.llava, ties=True),
    "hunyuan_vl": Plan("hunyuan_vl_vision", "hunyuan_vl_text", ties=True, text_ties=True),
    "ovis2": Plan("ovis2_vision", "qwen2", p.ovis2, ties=True, own_head=True),
    "fuyu": Plan("fuyu_patches", "persimmon"),
    "phi3_v": Plan("phi3_clip", "phi3", p.phi3),
}


@family(*PLANS)
def read_vision_language(fields: Fields) -> Anatomy:
    plan = PLANS[fields.text("model_type")]
    text = language_model(fields, plan)
    if plan.own_head:
        sizes = {"out_features": fields.size("vocab_size"), "in_features": fields.size("hidden_size")}
        text = replace(text, tensors=tuple(replace(t, **sizes) if t.role == "head" else t for t in text.tensors))
    if is_text_only(fields):
        leave_parts(fields.config)
        return add_parts(fields, text, [])
    vision = vision_config(fields)
    if plan.tower not in OPEN:
        vision = vision.but({"model_type": plan.tower})
    tower = vision_tower(vision, plan.tower)
    parts = [*tower * plan.towers, plan.project(fields, vision, tower, text.hidden_size)]
    if plan.newline:
        parts[-1].vector(text.hidden_size, "image_newline")
    elif plan.tower == "llava_clip":  # LLaVA 1.6 under the model_type of 1.5
        text = replace(text, stored_extra=text.stored_extra | {"a vector that ends rows of patches": text.hidden_size})
    return add_parts(fields, text, parts)


def is_text_only(fields: Fields) -> bool:
    """A class such as Qwen3_5ForCausalLM builds the language model alone; LlavaLlamaForCausalLM has its tower."""
    name = architecture_of(fields) or ""
    return name.endswith("ForCausalLM") and not name.startswith(("Llava", "Fuyu", "Phi3V", "Step3p7Flash"))


def vision_config(fields: Fields) -> Fields:
    """The tower's config; LLaVA's own files name the tower only, whose width must then be that of the class default."""
    kind = fields.text("model_type")
    is_original_llava = kind == "llava" and fields.raw("vision_config") is None and fields.raw("mm_hidden_size") == 1024
    if is_original_llava and fields.text("mm_projector_type") == "mlp2x_gelu":
        return Fields({}, fields.where)
    if kind == "phi3_v":  # its code fixes the tower; the config repeats its width and tokens only
        processor = nested(fields, "img_processor")
        if processor.raw("image_dim_out") != 1024 or processor.raw("num_img_tokens") != 144:
            raise UnknownAnatomy(f"{processor.where} does not describe CLIP-L for images of 336 pixels")
        return Fields({}, fields.where)
    if kind == "fuyu":
        return fields
    return nested(fields, "vision_config")


def language_model(fields: Fields, plan: Any) -> Anatomy:
    """The nested language model, or the one that older files wrote beside `vision_config`, with the whole's head."""
    inner = fields.inner(*plan.text_names)
    if inner is None:
        flat = {k: v for k, v in fields.config.items() if k not in ("vision_config", "audio_config", "model_type")}
        inner = Fields(flat, fields.where)
        if inner.raw("hidden_size") is None or inner.raw("num_hidden_layers") is None:
            raise UnknownAnatomy(f"{fields.where} has no {plan.text_names[0]}")
    kind = inner.text("model_type", default=plan.text)
    if reader_for(kind) is None and kind not in TEXT_ALIASES:
        kind = plan.text if kind == fields.text("model_type") else kind
    named = kind
    kind = kind if reader_for(kind) else TEXT_ALIASES.get(kind, kind)
    reader = reader_for(kind)
    if reader is None:
        raise UnknownAnatomy(f"language model '{shown(kind)}' is not described yet")
    if not inner.is_null("head_dim"):  # else the class divides
        inner = over(inner, UNLIKE_THEIR_CLASS.get(named, {}))
    inner = inner.read_as(kind) if kind != named else inner.but({"model_type": kind})
    inner = inner.filled() if named in MAY_BE_SILENT else inner
    if named in ("glm4v_moe_text", "qwen3_omni_moe_text") and inner.raw("head_dim") is None:  # rounds down
        width = inner.count("hidden_size") // inner.count("num_attention_heads")
        inner = over(inner, {"head_dim": max(width, 1)})
    alone = plan.text_alone or is_text_only(fields)  # a class of the language model alone reads its config alone
    tied, text_tied = fields.flag("tie_word_embeddings", default=plan.ties), inner.flag("tie_word_embeddings")
    tied = (tied and not alone) or (text_tied and (plan.text_ties or alone))
    name = architecture_of(fields) or "ForConditionalGeneration"
    head = {"tie_word_embeddings": tied, "architectures": ["Model" if name.endswith("Model") else "ForCausalLM"]}
    return reader(inner.but(head))
