"""Decoders that are Llama with variations: norms, attention, gated feed-forward, one after the other, in every layer.

A family is a row of `PLAIN`: which parts differ. Sizes that a config leaves out are those of its class in the library.
Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.frame import Plain, attend, flag
from pipeline.anatomy.parts.windows import (
    either_way,
    first_of_period,
    last_of_period,
    last_of_period_backwards,
    layers_without_rope,
    listed_or_all,
    one_window,
    upper_layers,
)
from pipeline.anatomy.reading import dropout
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy


def read_plain(fields: Fields, plain: Plain) -> Anatomy:
    if plain.is_remote and (fields.raw("num_experts") or fields.raw("num_local_experts")):
        raise UnknownAnatomy(f"{fields.where} has experts, which are not described for this architecture")
    decoder = Decoder(fields, norm_kind=plain.norm_kind, norm_bias=plain.norm_bias)
    layers = decoder.layers
    decoder.embed()
    heads = attend(decoder, fields, plain, plain.windows(fields, layers))
    width = fields.count("intermediate_size")
    decoder.mlp(layers, width, gated=plain.gated, fused=plain.fused_mlp, bias=flag(fields, plain.mlp_bias))
    if plain.scalars:
        decoder.vector("activation_scalar", layers, 1, plain.scalars, tensor_class="feed-forward")
    parallel = flag(fields, plain.parallel)
    if plain.norms:
        decoder.norm(layers, each=1 if parallel else plain.norms)
        decoder.norm(layers if flag(fields, plain.post_norms) else 0, each=2)
        decoder.norm(1)
    if plain.sub_norms:
        decoder.norm(layers)
        decoder.norm(layers, width)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=plain.ties))
    if plain.bare_qk_norms:
        decoder.store("weights of ones for norms of queries and keys", 2 * layers * heads.dim)
    if plain.stores_rotary:  # versions of 2023 kept them in every layer
        decoder.store("rotary frequencies", layers * (heads.dim // 2))
    if plain.predicts:
        store_prediction_layers(decoder, fields, plain)
    return decoder.build(
        is_block_parallel=parallel,
        has_flash_attention=plain.flash,
        attention_dropout=dropout(fields, "attention_dropout"),
        hidden_dropout=dropout(fields, "hidden_dropout", "residual_dropout"),
    )


def store_prediction_layers(decoder: Decoder, fields: Fields, plain: Plain) -> None:
    """Each a layer of the model and three norms; most hold the embedding and the head again."""
    count = fields.repeats("num_nextn_predict_layers", default=0, least=0)
    if count == 0:
        return
    if count > decoder.layers:
        raise ContradictoryConfig(f"{fields.where} predicts with {count} layers, more than it has")
    ahead = decoder.ahead(count)
    attend(ahead, fields, plain, [None] * count)
    ahead.mlp(count, fields.count("intermediate_size"), gated=plain.gated, fused=plain.fused_mlp)
    ahead.norm(count, each=plain.norms + 3)
    decoder.predict(ahead, steps=count, repeats_ends=not plain.predicts_bare)


LLAMA = Plain(qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias")


BIASED = Plain(qkv_bias="attention_bias", out_bias="attention_bias")  # attention only


GEMMA = replace(BIASED, norms=4)


GLM = Plain(qkv_bias="attention_bias", fused_mlp=True)


COHERE = replace(BIASED, norm_kind="layer", norm_bias=False, parallel=True)


PLAIN: dict[str, Plain] = {
    "apertus": replace(BIASED, gated=False, qk_norm="head", scalars=2),
    "arcee": replace(LLAMA, gated=False),
    "bitnet": replace(BIASED, sub_norms=True),
    "cohere": replace(COHERE, qk_norm="full", qk_norm_flag="use_qk_norm"),
    "cohere2": replace(COHERE, windows=last_of_period(4)),
    "cwm": replace(LLAMA, qkv_bias=False, out_bias=False, windows=first_of_period(4)),
    "ernie4_5": Plain(
        qkv_bias="use_bias", out_bias="use_bias",
        mlp_bias="use_bias",
    ),
    "exaone4": Plain(qk_norm="head", windows=last_of_period(4), predicts=True, predicts_bare=True),
    "gemma": replace(GEMMA, norms=2),
    "gemma2": replace(GEMMA, windows=last_of_period(2), flash=False),
    "gemma3_text": replace(GEMMA, qk_norm="head", windows=either_way(last_of_period(6))),
    "glm": GLM,
    "glm4": replace(GLM, norms=4),
    "granite": LLAMA,
    "granite_swa": replace(LLAMA, sinks=True, windows=first_of_period(4), flash=False),
    "helium": replace(LLAMA, out_bias=False),
    "hunyuan_v1_dense": replace(BIASED, qk_norm="head"),
    "hyperclovax": replace(LLAMA, post_norms="use_post_norm"),
    "internlm3": Plain(
        qkv_bias=("attention_bias", "qkv_bias"),
        out_bias=("attention_bias", "qkv_bias"), mlp_bias=("mlp_bias", "bias"),
    ),
    "iquestcoder": LLAMA,
    "jais2": Plain(
        qkv_bias="attention_bias", out_bias="attention_bias", mlp_bias="mlp_bias",
        gated=False, norm_kind="layer",
    ),
    "llama": replace(LLAMA, stores_rotary=True),
    "ministral": Plain(windows=listed_or_all),
    "ministral3": Plain(windows=one_window),
    "mistral": Plain(windows=one_window, stores_rotary=True),
    "nanochat": replace(BIASED, gated=False, norms=0),
    "nemotron": replace(LLAMA, gated=False, norm_kind="layer"),
    "olmo": replace(BIASED, norm_kind="layer", norms=0),
    "olmo2": replace(BIASED, qk_norm="full"),
    "olmo3": replace(BIASED, qk_norm="full", windows=last_of_period(4)),
    "persimmon": Plain(
        qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, fused_qkv=True, norm_kind="layer",
        qk_norm="head", qk_norm_flag="qk_layernorm",
    ),
    "phi3": Plain(fused_qkv=True, fused_mlp=True, windows=one_window),
    "qwen2": Plain(qkv_bias=True, windows=upper_layers),
    "qwen3": replace(BIASED, qk_norm="head", windows=upper_layers),
    "seed_oss": Plain(
        qkv_bias="attention_bias", out_bias="attention_out_bias", mlp_bias="mlp_bias",
    ),
    "smollm3": replace(LLAMA, windows=layers_without_rope),
    "stablelm": Plain(
        qkv_bias="use_qkv_bias", norm_kind="layer", qk_norm="full", qk_norm_bias=False,
        qk_norm_flag="qk_layernorm", parallel="use_parallel_residual",
    ),
    "starcoder2": Plain(
        qkv_bias="use_bias", out_bias="use_bias",
        mlp_bias="use_bias", gated=False, norm_kind="layer", windows=one_window,
    ),
    "vaultgemma": replace(GEMMA, norms=2, windows=last_of_period(2), flash=False),
    # Text models of models that see.
    "hunyuan_vl_text": replace(BIASED, qk_norm="head"),
    "paddleocr_vl_text": Plain(
        qkv_bias="use_bias", out_bias="use_bias",
        mlp_bias="use_bias",
    ),
    "qwen2_5_omni_text": Plain(qkv_bias=True, windows=upper_layers),
    "glm4v_text": Plain(qkv_bias=True, fused_mlp=True, norms=4),
    "glm_ocr_text": Plain(fused_mlp=True, norms=4, predicts=True),
    "muse_glimmer_text": replace(
        BIASED, norms=4, output_gate="element", bare_qk_norms=True,
        windows=last_of_period_backwards(4),
    ),
    "qwen2_vl_text": Plain(qkv_bias=True, windows=upper_layers),
    "qwen2_5_vl_text": Plain(qkv_bias=True, windows=upper_layers),
    "qwen3_vl_text": replace(BIASED, qk_norm="head"),
    # Remote code; held to the totals that their authors publish.
    "exaone": Plain(is_remote=True, ties=True),
    "internlm": Plain(
        is_remote=True, stores_rotary=True, qkv_bias=("bias", True), out_bias=("bias", True)
    ),
    "internlm2": Plain(is_remote=True, fused_qkv=True, qkv_bias="bias", out_bias="bias"),
    "baichuan": Plain(is_remote=True, fused_qkv=True, stores_rotary=True),
    "minicpm": Plain(is_remote=True, ties=True),
    "orion": Plain(is_remote=True, norm_kind="layer"),
    "xverse": Plain(is_remote=True),
}  # fmt: skip


def _register(model_type: str, plain: Plain) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_plain(fields, plain)


for _model_type, _plain in PLAIN.items():
    _register(_model_type, _plain)
