"""Families whose layers hold routed experts, as rows of `pipeline.anatomy.parts.experts.Sparse`.

Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import BIASED, COHERE
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse, stepped
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.parts.windows import (
    first_of_period,
    flint_windows,
    last_of_period,
    last_of_period_after_dense,
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
    step = fields.size("moe_layer_interval")
    first = fields.size("moe_layer_start_index", least=0)
    last = fields.count("moe_layer_end_index", default=-1, least=-1)
    last = layers - 1 if last == -1 else last
    return [(i + 1) % step == 0 and first <= i <= last for i in range(layers)]


QWEN_MOE = Sparse(
    replace(QK, windows=window_if_used),
    experts=("num_experts", "num_local_experts"), chosen=CHOSEN, width=WIDTH, layers=stepped(),
)  # fmt: skip
GRANITE_MOE = Sparse(BIASED, experts=LOCAL, chosen=CHOSEN, width=("intermediate_size",))
GLM_MOE = Sparse(
    Plain(qkv_bias="attention_bias", qk_norm="head", qk_norm_flag="use_qk_norm"),
    experts=ROUTED, chosen=CHOSEN, width=WIDTH, layers=after_dense("first_k_dense_replace"),
    shared_count=("n_shared_experts",), correction="buffer", predicts=True,
)  # fmt: skip
EXAONE = Plain(qk_norm="head", windows=last_of_period(4))

SPARSE: dict[str, Sparse] = {
    "afmoe": Sparse(
        replace(QK, norms=4, output_gate="element", windows=last_of_period(4, "global_attn_every_n_layers")),
        experts=("num_experts",), chosen=CHOSEN, width=WIDTH,
        layers=after_dense("num_dense_layers"), shared_count=("num_shared_experts",), router="linear",
        correction="parameter",
    ),
    "cohere2_moe": Sparse(
        replace(COHERE, rms_field="rms_norm_eps", windows=last_of_period_after_dense),
        experts=("num_experts",), chosen=CHOSEN, width=("intermediate_size",),
        dense_width=("prefix_dense_intermediate_size", "intermediate_size"),
        layers=after_dense("first_k_dense_replace", 0), shared_count=("num_shared_experts",),
    ),
    "dots1": Sparse(
        replace(QK, windows=upper_layers_always), experts=ROUTED, chosen=CHOSEN,
        width=WIDTH, layers=after_dense("first_k_dense_replace"), shared_count=("n_shared_experts",),
        correction="buffer",
    ),
    "ernie4_5_moe": Sparse(
        Plain(
            qkv_bias="use_bias", out_bias="use_bias",
            mlp_bias="use_bias", head_bias="use_bias",
        ),
        experts=("moe_num_experts",), chosen=("moe_k",), width=WIDTH, layers=shared_by_start,
        shared_count=("moe_num_shared_experts",), correction="parameter",
        predicts=True, predicts_dense=True, predicting_norms=2,
    ),
    "exaone_moe": Sparse(
        EXAONE, experts=("num_experts",), chosen=CHOSEN, width=WIDTH,
        layers=after_dense("first_k_dense_replace"), shared_count=("num_shared_experts",), correction="buffer",
    ),
    "flex_olmo": Sparse(
        replace(BIASED, qk_norm="full"), experts=("num_experts",), chosen=CHOSEN, width=("intermediate_size",)
    ),
    "flint": Sparse(
        replace(QK, sinks=True, windows=flint_windows, flash=False),
        experts=("num_experts",), chosen=CHOSEN, width=WIDTH, layers=stepped(0, 1),
        shared_width=("shared_expert_intermediate_size",),
    ),
    "glm4_moe": GLM_MOE,
    "glm4v_moe_text": replace(GLM_MOE, frame=Plain(qkv_bias="attention_bias"), predicts=False),
    "gpt_oss": Sparse(
        Plain(
            qkv_bias="attention_bias", out_bias="attention_bias", sinks=True,
            windows=last_of_period(2), flash=False,
        ),
        experts=LOCAL, chosen=CHOSEN, width=("intermediate_size",), router_bias=True,
        expert_bias=True,
    ),
    "granitemoe": GRANITE_MOE,
    "granitemoe_swa": replace(
        GRANITE_MOE, frame=replace(BIASED, sinks=True, windows=first_of_period(4), flash=False),
        shared_width=("shared_intermediate_size",), shared_fused=True,
    ),
    "granitemoeshared": replace(GRANITE_MOE, shared_width=("shared_intermediate_size",), shared_fused=True),
    "hunyuan_v1_moe": Sparse(
        QK, experts=("num_experts",), chosen=("moe_topk",), width=("intermediate_size",),
        shared_width=("intermediate_size",), router="linear",
    ),
    "hy_v3": Sparse(
        replace(QK, mlp_bias="mlp_bias"), experts=("num_experts",), chosen=CHOSEN,
        width=WIDTH, layers=after_dense("first_k_dense_replace", 1), shared_count=("num_shared_experts",),
        correction="buffer", predicts=True,
    ),
    "kolibri1": Sparse(
        Plain(qk_norm="head", norms=4, windows=last_of_period(5)),
        experts=LOCAL, chosen=CHOSEN, width=WIDTH,
        shared_width=("shared_expert_intermediate_size",), correction="buffer",
    ),
    # LLaDA 2: its code travels with its checkpoints; held to their published total. It writes blocks of tokens at a time.
    "llada2_moe": Sparse(
        replace(QK, ), experts=("num_experts",), chosen=CHOSEN, width=WIDTH,
        layers=after_dense("first_k_dense_replace", 0), shared_count=("num_shared_experts", 0), correction="buffer",
    ),
    "mellum": Sparse(
        replace(QK, windows=listed), experts=LOCAL, chosen=CHOSEN,
        width=WIDTH, layers=after_dense("first_k_dense_replace", 0),
    ),
    "minimax_m2": Sparse(
        Plain(qk_norm="full"), experts=LOCAL, chosen=CHOSEN,
        width=("intermediate_size",), correction="buffer",
    ),
    "mixtral": Sparse(
        Plain(windows=one_window), experts=LOCAL, chosen=CHOSEN,
        width=("intermediate_size",),
    ),
    "olmoe": Sparse(
        replace(BIASED, qk_norm="full"), experts=("num_experts", "num_local_experts"), chosen=CHOSEN,
        width=("intermediate_size",),
    ),
    "phimoe": Sparse(
        Plain(
            qkv_bias="attention_bias", out_bias="attention_bias", head_bias="lm_head_bias",
            norm_kind="layer", windows=one_window,
        ),
        experts=("num_local_experts",), chosen=CHOSEN, width=("intermediate_size",),
        router="linear-subclass",
    ),
    "qwen2_moe": Sparse(
        Plain(qkv_bias="qkv_bias", windows=upper_layers),
        experts=("num_experts",), chosen=CHOSEN, width=WIDTH, layers=stepped(),
        shared_width=("shared_expert_intermediate_size",), shared_gate=True,
    ),
    "qwen3_moe": QWEN_MOE,
    "qwen3_omni_moe_text": replace(QWEN_MOE, frame=replace(QK, )),
    "qwen3_vl_moe_text": replace(
        QWEN_MOE, frame=replace(QK, ), experts=("num_experts", "num_local_experts"),
        chosen=CHOSEN, width=WIDTH,
    ),
    "solar_open": Sparse(
        replace(BIASED, out_bias=False, ), experts=ROUTED, chosen=CHOSEN,
        width=WIDTH, shared_count=("n_shared_experts",), correction="buffer",
    ),
}  # fmt: skip


def _register(model_type: str, sparse: Sparse) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_sparse(fields, sparse)


for _model_type, _sparse in SPARSE.items():
    _register(_model_type, _sparse)
