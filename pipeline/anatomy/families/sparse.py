"""Families whose layers hold routed experts, as rows of `pipeline.anatomy.parts.experts.Sparse`.

Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import ATTENTION_BIAS, BIASED, MLP_BIAS, Plain
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse, stepped
from pipeline.anatomy.parts.windows import (
    first_of_period,
    flint_windows,
    last_of_period,
    listed,
    one_window,
    upper_layers,
    upper_layers_always,
    window_if_used,
)
from pipeline.anatomy.rows import Anatomy

WIDTH = ("moe_intermediate_size",)
LOCAL = ("num_local_experts", "num_experts")
ROUTED = ("n_routed_experts", "num_experts")
CHOSEN = ("num_experts_per_tok",)
QK = replace(BIASED, qk_norm="head")


def shared_by_start(fields: Fields, layers: int) -> list[bool]:
    """ERNIE: every n-th layer from a first to a last one."""
    step = fields.count("moe_layer_interval", default=1)
    first = fields.count("moe_layer_start_index", default=1, least=0)
    last = fields.count("moe_layer_end_index", default=-1, least=-1)
    last = layers - 1 if last == -1 else last
    return [(i + 1) % step == 0 and first <= i <= last for i in range(layers)]


QWEN_MOE = Sparse(
    replace(QK, kv_heads=4, windows=window_if_used),
    experts=("num_experts", "num_local_experts", 128), chosen=(*CHOSEN, 8), width=(*WIDTH, 768), layers=stepped(),
)  # fmt: skip
GRANITE_MOE = Sparse(BIASED, experts=(*LOCAL, 8), chosen=(*CHOSEN, 2), width=("intermediate_size", None))
GLM_MOE = Sparse(
    Plain(kv_heads=8, qkv_bias=ATTENTION_BIAS, qk_norm="head", qk_norm_flag=("use_qk_norm", False)),
    experts=(*ROUTED, 128), chosen=(*CHOSEN, 8), width=(*WIDTH, 1408), layers=after_dense("first_k_dense_replace", 1),
    shared_count=("n_shared_experts", 1), correction="buffer", mtp=("num_nextn_predict_layers", 1),
)  # fmt: skip
EXAONE = Plain(kv_heads=32, qk_norm="head", windows=last_of_period(4, 4096))

SPARSE: dict[str, Sparse] = {
    "afmoe": Sparse(
        replace(QK, head_dim=128, norms=4, output_gate="element", windows=last_of_period(4, 1024, "global_attn_every_n_layers")),
        experts=("num_experts", 64), chosen=(*CHOSEN, 6), width=(*WIDTH, 1408),
        layers=after_dense("num_dense_layers", 1), shared_count=("num_shared_experts", 2), router="linear",
        correction="parameter",
    ),
    "dots1": Sparse(
        replace(QK, windows=upper_layers_always), experts=(*ROUTED, None), chosen=(*CHOSEN, None),
        width=(*WIDTH, 1408), layers=after_dense("first_k_dense_replace", 0), shared_count=("n_shared_experts", 0),
        correction="buffer",
    ),
    "ernie4_5_moe": Sparse(
        Plain(
            tied=True, kv_heads=4, qkv_bias=("use_bias", False), out_bias=("use_bias", False),
            mlp_bias=("use_bias", False), head_bias=("use_bias", False),
        ),
        experts=("moe_num_experts", 64), chosen=("moe_k", 6), width=(*WIDTH, 1536), layers=shared_by_start,
        shared_count=("moe_num_shared_experts", 2), correction="parameter",
        mtp=("num_nextn_predict_layers", 1), mtp_dense=True, mtp_norms=2,
    ),
    "exaone_moe": Sparse(
        EXAONE, experts=("num_experts", 64), chosen=(*CHOSEN, 8), width=(*WIDTH, 1024),
        layers=after_dense("first_k_dense_replace", 1), shared_count=("num_shared_experts", 1), correction="buffer",
    ),
    "flex_olmo": Sparse(
        replace(BIASED, qk_norm="full"), experts=("num_experts", 7), chosen=(*CHOSEN, 5), width=("intermediate_size", None)
    ),
    "flint": Sparse(
        replace(QK, kv_heads=4, head_dim=128, sinks=True, windows=flint_windows, flash=False),
        experts=("num_experts", 256), chosen=(*CHOSEN, 6), width=(*WIDTH, 512), layers=stepped(0, 1),
        shared_width=("shared_expert_intermediate_size", 1024),
    ),
    "glm4_moe": GLM_MOE,
    "glm4v_moe_text": replace(GLM_MOE, frame=Plain(kv_heads=8, qkv_bias=("attention_bias", True)), mtp=None),
    "gpt_oss": Sparse(
        Plain(
            kv_heads=8, head_dim=64, qkv_bias=("attention_bias", True), out_bias=("attention_bias", True), sinks=True,
            windows=last_of_period(2, 128), flash=False,
        ),
        experts=(*LOCAL, 128), chosen=(*CHOSEN, 4), width=("intermediate_size", None), router_bias=True,
        expert_bias=True,
    ),
    "granitemoe": GRANITE_MOE,
    "granitemoe_swa": replace(
        GRANITE_MOE, frame=replace(BIASED, sinks=True, windows=first_of_period(4, 128), flash=False),
        shared_width=("shared_intermediate_size", 0), shared_fused=True,
    ),
    "granitemoeshared": replace(GRANITE_MOE, shared_width=("shared_intermediate_size", 0), shared_fused=True),
    "hunyuan_v1_moe": Sparse(
        QK, experts=("num_experts", 1), chosen=("moe_topk", 1), width=("intermediate_size", None),
        shared_width=("intermediate_size", None), router="linear",
    ),
    "hy_v3": Sparse(
        replace(QK, kv_heads=8, head_dim=128, mlp_bias=MLP_BIAS), experts=("num_experts", 192), chosen=(*CHOSEN, 8),
        width=(*WIDTH, 1536), layers=after_dense("first_k_dense_replace", 1), shared_count=("num_shared_experts", 1),
        correction="buffer", mtp=("num_nextn_predict_layers", 1),
    ),
    "kolibri1": Sparse(
        Plain(kv_heads=4, head_dim=128, qk_norm="head", norms=4, windows=last_of_period(5, 513)),
        experts=(*LOCAL, 384), chosen=(*CHOSEN, 6), width=(*WIDTH, 512),
        shared_width=("shared_expert_intermediate_size", 512), correction="buffer",
    ),
    # LLaDA 2: its code travels with its checkpoints; held to their published total. It writes blocks of tokens at a time.
    "llada2_moe": Sparse(
        replace(QK, kv_heads=None), experts=("num_experts", None), chosen=(*CHOSEN, None), width=(*WIDTH, None),
        layers=after_dense("first_k_dense_replace", 0), shared_count=("num_shared_experts", 0), correction="buffer",
    ),
    "mellum": Sparse(
        replace(QK, kv_heads=4, head_dim=128, windows=listed(1024)), experts=(*LOCAL, 64), chosen=(*CHOSEN, 8),
        width=(*WIDTH, 896), layers=after_dense("first_k_dense_replace", 0),
    ),
    "minimax_m2": Sparse(
        Plain(kv_heads=8, head_dim=128, qk_norm="full"), experts=(*LOCAL, 256), chosen=(*CHOSEN, 8),
        width=("intermediate_size", None), correction="buffer",
    ),
    "mixtral": Sparse(
        Plain(kv_heads=8, windows=one_window), experts=(*LOCAL, 8), chosen=(*CHOSEN, 2),
        width=("intermediate_size", None),
    ),
    "olmoe": Sparse(
        replace(BIASED, qk_norm="full"), experts=("num_experts", "num_local_experts", 64), chosen=(*CHOSEN, 8),
        width=("intermediate_size", None),
    ),
    "phimoe": Sparse(
        Plain(
            kv_heads=8, qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, head_bias=("lm_head_bias", False),
            norm_kind="layer", windows=one_window,
        ),
        experts=("num_local_experts", 16), chosen=(*CHOSEN, 2), width=("intermediate_size", None),
        router="linear-subclass",
    ),
    "qwen2_moe": Sparse(
        Plain(kv_heads=16, qkv_bias=("qkv_bias", True), windows=upper_layers),
        experts=("num_experts", 60), chosen=(*CHOSEN, 4), width=(*WIDTH, 1408), layers=stepped(),
        shared_width=("shared_expert_intermediate_size", 5632), shared_gate=True,
    ),
    "qwen3_moe": QWEN_MOE,
    "qwen3_omni_moe_text": replace(QWEN_MOE, frame=replace(QK, kv_heads=4)),
    "qwen3_vl_moe_text": replace(
        QWEN_MOE, frame=replace(QK, tied=True, kv_heads=16), experts=("num_experts", "num_local_experts", 60),
        chosen=(*CHOSEN, 4), width=(*WIDTH, 1408),
    ),
    "solar_open": Sparse(
        replace(BIASED, out_bias=False, kv_heads=8, head_dim=128), experts=(*ROUTED, 128), chosen=(*CHOSEN, 8),
        width=(*WIDTH, 1280), shared_count=("n_shared_experts", 1), correction="buffer",
    ),
}  # fmt: skip


def _register(model_type: str, sparse: Sparse) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_sparse(fields, sparse)


for _model_type, _sparse in SPARSE.items():
    _register(_model_type, _sparse)
