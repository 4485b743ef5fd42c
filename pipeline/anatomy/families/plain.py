"""Decoders that are Llama with variations: norms, attention, gated feed-forward, one after the other, in every layer.

A family is a row of `PLAIN`: what its config class sets where a config is silent, and which parts differ.
Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.windows import (
    Windows,
    either_way,
    first_of_period,
    last_of_period,
    last_of_period_backwards,
    layers_without_rope,
    listed_or_all,
    one_window,
    upper_layers,
    whole_context,
)
from pipeline.anatomy.reading import Heads, dropout, is_causal
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy

Flag = bool | tuple  # fixed, or the config's field (and its synonyms) and its default


@dataclass(frozen=True)
class Plain:
    tied: bool = False
    kv_heads: int | None = None  # the class default; None: one for each head
    head_dim: int | None = None  # the class default; None: hidden size by heads
    qkv_bias: Flag = False
    out_bias: Flag = False
    mlp_bias: Flag = False
    head_bias: Flag = False
    gated: bool = True
    fused_qkv: bool = False
    fused_mlp: bool = False
    norm_kind: str = "rms"
    norm_bias: bool | None = None
    norms: int = 2  # of the hidden size, in each layer; 0: norms without weights
    post_norms: Flag = False  # two more, after attention and after feed-forward
    sub_norms: bool = False  # before the two output projections
    qk_norm: str | None = None
    qk_norm_bias: bool | None = None
    qk_norm_flag: Flag = True
    parallel: Flag = False  # attention and feed-forward side by side, after one norm
    windows: Windows = whole_context
    sinks: bool = False  # a learned logit for each head
    output_gate: str | None = None  # a projection that gates each "element" or each "head" of what attention returns
    scalars: int = 0  # single learned values in each layer
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    flash: bool = True
    stores_rotary: bool = False
    bare_qk_norms: bool = False  # of queries and keys, without a weight; GGUF files hold ones for them
    is_remote: bool = False  # its code travels with checkpoints and may be another's
    predicts: bool = False  # checkpoints may hold layers that predict further tokens, which nothing loads


def flag(fields: Fields, value: Flag) -> bool:
    return value if isinstance(value, bool) else fields.flag(*value[:-1], default=value[-1])


def attend(decoder: Decoder, fields: Fields, plain: Plain, windows: list[int | None]) -> Heads:
    """The attention of as many layers as there are windows."""
    heads = Heads.read(fields, decoder.hidden, kv_default=plain.kv_heads, dim_default=plain.head_dim)
    decoder.attentions(
        windows,
        heads,
        bias=flag(fields, plain.qkv_bias),
        out_bias=flag(fields, plain.out_bias),
        fused=plain.fused_qkv,
        qk_norm=plain.qk_norm if flag(fields, plain.qk_norm_flag) else None,
        qk_norm_bias=plain.qk_norm_bias,
        causal=is_causal(fields),
    )
    if plain.sinks:
        decoder.vector("attention_sink", len(windows), heads.count, tensor_class="attention")
    if plain.output_gate:
        rows = heads.count * (heads.dim if plain.output_gate == "element" else 1)
        decoder.linear("attention", "attention_gate", len(windows), rows, decoder.hidden)
    return heads


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
    decoder.head(tied=fields.flag("tie_word_embeddings", default=plain.tied))
    if plain.bare_qk_norms:
        decoder.store("weights of ones for norms of queries and keys", 2 * layers * heads.dim)
    if plain.stores_rotary:  # versions of 2023 kept them in every layer
        decoder.store("rotary frequencies", layers * (heads.dim // 2))
    if plain.predicts:
        store_prediction_layers(decoder, fields, plain)
    return decoder.build(
        is_block_parallel=parallel,
        has_flash_attention=plain.flash,
        attention_dropout=dropout(fields, "attention_dropout", default=plain.attention_dropout),
        hidden_dropout=dropout(fields, "hidden_dropout", "residual_dropout", default=plain.hidden_dropout),
    )


def store_prediction_layers(decoder: Decoder, fields: Fields, plain: Plain) -> None:
    """Each a layer of the model, a matrix [h, 2h] of two streams and three norms, and the embedding and the head again."""
    count = fields.repeats("num_nextn_predict_layers", default=0, least=0)
    if count == 0:
        return
    if count > decoder.layers:
        raise ContradictoryConfig(f"{fields.where} predicts with {count} layers, more than it has")
    ahead = Decoder(fields, norm_kind=plain.norm_kind, norm_bias=plain.norm_bias, layers=count)
    attend(ahead, fields, plain, [None] * count)
    ahead.mlp(count, fields.count("intermediate_size"), gated=plain.gated, fused=plain.fused_mlp)
    ahead.norm(count, each=plain.norms + 3)
    ahead.linear("other", "mtp_projection", count, decoder.hidden, 2 * decoder.hidden)
    decoder.predicting = ahead.tensors
    decoder.store("multi-token prediction layers", sum(t.element_count for t in ahead.tensors))
    decoder.store("embedding and head of prediction layers", count * 2 * decoder.vocab * decoder.hidden)


ATTENTION_BIAS = ("attention_bias", False)
MLP_BIAS = ("mlp_bias", False)
LLAMA = Plain(qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, mlp_bias=MLP_BIAS)
BIASED = Plain(qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS)  # attention only
GEMMA = replace(BIASED, tied=True, kv_heads=4, head_dim=256, norms=4)
GLM = Plain(qkv_bias=("attention_bias", True), kv_heads=2, head_dim=128, fused_mlp=True)
COHERE = replace(BIASED, tied=True, norm_kind="layer", norm_bias=False, parallel=True)

PLAIN: dict[str, Plain] = {
    "apertus": replace(BIASED, gated=False, qk_norm="head", scalars=2),
    "arcee": replace(LLAMA, gated=False),
    "bitnet": replace(BIASED, kv_heads=5, sub_norms=True),
    "cohere": replace(COHERE, qk_norm="full", qk_norm_flag=("use_qk_norm", False)),
    "cohere2": replace(COHERE, windows=last_of_period(4, 4096)),
    "cwm": replace(LLAMA, qkv_bias=False, out_bias=False, kv_heads=8, head_dim=128, windows=first_of_period(4, 8192)),
    "ernie4_5": Plain(
        tied=True, kv_heads=2, head_dim=128, qkv_bias=("use_bias", False), out_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
    ),
    "exaone4": Plain(kv_heads=32, qk_norm="head", windows=last_of_period(4, 4096)),
    "gemma": replace(GEMMA, kv_heads=16, norms=2),
    "gemma2": replace(GEMMA, windows=last_of_period(2, 4096), flash=False),
    "gemma3_text": replace(GEMMA, qk_norm="head", windows=either_way(last_of_period(6, 4096))),
    "glm": GLM,
    "glm4": replace(GLM, norms=4),
    "granite": LLAMA,
    "granite_swa": replace(LLAMA, tied=True, kv_heads=4, sinks=True, windows=first_of_period(4, 128), flash=False),
    "helium": replace(LLAMA, out_bias=False, kv_heads=20, head_dim=128),
    "hunyuan_v1_dense": replace(BIASED, qk_norm="head"),
    "hyperclovax": replace(LLAMA, post_norms=("use_post_norm", True)),
    "internlm3": Plain(
        kv_heads=2, head_dim=128, qkv_bias=("attention_bias", "qkv_bias", False),
        out_bias=("attention_bias", "qkv_bias", False), mlp_bias=("mlp_bias", "bias", False),
    ),
    "iquestcoder": replace(LLAMA, kv_heads=8, head_dim=128),
    "jais2": Plain(
        qkv_bias=("attention_bias", True), out_bias=("attention_bias", True), mlp_bias=("mlp_bias", True),
        gated=False, norm_kind="layer",
    ),
    "llama": replace(LLAMA, stores_rotary=True),
    "ministral": Plain(kv_heads=8, windows=listed_or_all(4096)),
    "ministral3": Plain(kv_heads=8, head_dim=128, windows=one_window),
    "mistral": Plain(kv_heads=8, windows=one_window, stores_rotary=True),
    "nanochat": replace(BIASED, gated=False, norms=0),
    "nemotron": replace(LLAMA, gated=False, norm_kind="layer"),
    "olmo": replace(BIASED, norm_kind="layer", norms=0),
    "olmo2": replace(BIASED, qk_norm="full"),
    "olmo3": replace(BIASED, qk_norm="full", windows=last_of_period(4, 4096)),
    "persimmon": Plain(
        qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, fused_qkv=True, norm_kind="layer",
        qk_norm="head", qk_norm_flag=("qk_layernorm", True),
    ),
    "phi3": Plain(fused_qkv=True, fused_mlp=True, windows=one_window),
    "qwen2": Plain(qkv_bias=True, kv_heads=32, windows=upper_layers),
    "qwen3": replace(BIASED, kv_heads=32, head_dim=128, qk_norm="head", windows=upper_layers),
    "seed_oss": Plain(
        qkv_bias=("attention_bias", True), out_bias=("attention_out_bias", False), mlp_bias=MLP_BIAS,
        kv_heads=8, head_dim=128, attention_dropout=0.1, hidden_dropout=0.1,
    ),
    "smollm3": replace(LLAMA, tied=True, kv_heads=4, windows=layers_without_rope),
    "stablelm": Plain(
        kv_heads=32, qkv_bias=("use_qkv_bias", False), norm_kind="layer", qk_norm="full", qk_norm_bias=False,
        qk_norm_flag=("qk_layernorm", False), parallel=("use_parallel_residual", False),
    ),
    "starcoder2": Plain(
        tied=True, kv_heads=2, qkv_bias=("use_bias", True), out_bias=("use_bias", True),
        mlp_bias=("use_bias", True), gated=False, norm_kind="layer", windows=one_window,
    ),
    "vaultgemma": replace(GEMMA, norms=2, windows=last_of_period(2, 4096), flash=False),
    # Text models of models that see.
    "hunyuan_vl_text": replace(BIASED, tied=True, qk_norm="head"),
    "paddleocr_vl_text": Plain(
        tied=True, kv_heads=2, head_dim=128, qkv_bias=("use_bias", False), out_bias=("use_bias", False),
        mlp_bias=("use_bias", False),
    ),
    "qwen2_5_omni_text": Plain(tied=True, qkv_bias=True, kv_heads=4, windows=upper_layers),
    "glm4v_text": Plain(kv_heads=2, qkv_bias=True, fused_mlp=True, norms=4),
    "glm_ocr_text": Plain(kv_heads=8, fused_mlp=True, norms=4, predicts=True),
    "muse_glimmer_text": replace(
        BIASED, kv_heads=2, head_dim=128, norms=4, output_gate="element", bare_qk_norms=True,
        windows=last_of_period_backwards(4, 2048),
    ),
    "qwen2_vl_text": Plain(qkv_bias=True, kv_heads=8, windows=upper_layers),
    "qwen2_5_vl_text": Plain(qkv_bias=True, kv_heads=8, windows=upper_layers),
    "qwen3_vl_text": replace(BIASED, kv_heads=32, head_dim=128, qk_norm="head"),
    # Remote code; held to the totals that their authors publish.
    "exaone": Plain(is_remote=True, tied=True),
    "internlm": Plain(
        is_remote=True, stores_rotary=True, qkv_bias=("bias", True), out_bias=("bias", True)
    ),
    "internlm2": Plain(is_remote=True, fused_qkv=True, qkv_bias=("bias", False), out_bias=("bias", False)),
    "baichuan": Plain(is_remote=True, fused_qkv=True, stores_rotary=True),
    "minicpm": Plain(is_remote=True, tied=True),
    "orion": Plain(is_remote=True, norm_kind="layer"),
    "xverse": Plain(is_remote=True),
}  # fmt: skip


def _register(model_type: str, plain: Plain) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_plain(fields, plain)


for _model_type, _plain in PLAIN.items():
    _register(_model_type, _plain)
