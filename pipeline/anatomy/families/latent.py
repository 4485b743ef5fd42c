"""Families with latent attention: DeepSeek-V2 and V3 and what followed them, with and without an indexer.

Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.families.plain import MLP_BIAS, Plain
from pipeline.anatomy.families.sparse import CHOSEN, ROUTED, WIDTH
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy

BARE = Plain()

DEEPSEEK_V3 = Sparse(
    BARE, latent=Latent(), experts=(*ROUTED, 256), chosen=(*CHOSEN, 8), width=(*WIDTH, 2048),
    layers=after_dense("first_k_dense_replace", 3), shared_count=("n_shared_experts", 1), correction="buffer",
    mtp=("num_nextn_predict_layers", 1),
)  # fmt: skip
DEEPSEEK_V32 = replace(DEEPSEEK_V3, latent=Latent(indexer_heads=64))


def indexer_kinds(fields: Fields, layers: int) -> list[bool]:
    """GLM-5: which layers choose for themselves; the others use the last choice before them."""
    kinds = fields.items("indexer_types", length=layers)
    if kinds is not None:
        return [kind == "full" for kind in kinds]
    pattern = fields.raw("index_topk_pattern")
    if pattern is not None:
        if not isinstance(pattern, str | list) or len(pattern) != layers:
            raise UnknownAnatomy(f"{fields.where}.index_topk_pattern does not describe {layers} layers")
        return [kind in ("F", "full") for kind in pattern]
    period = fields.count("index_topk_freq", default=1, least=0) or 1
    offset = fields.count("index_skip_topk_offset", default=2, least=0)
    return [max(i - offset + 1, 0) % period == 0 for i in range(layers)]


def attend_indexed(decoder: Decoder, fields: Fields, windows: Sequence[int | None]) -> None:
    latent = Latent(q_rank=2048, nope=192, value=256, indexer_heads=32).read(fields, decoder.hidden)
    layers = len(windows)
    own = sum(indexer_kinds(fields, layers)) if layers > 1 else layers  # one: a layer that predicts
    latent_attention(decoder, fields, own, latent)
    latent_attention(decoder, fields, layers - own, latent, with_indexer=False)


SPARSE: dict[str, Sparse] = {
    "axk1": replace(
        DEEPSEEK_V3, experts=(*ROUTED, 192), layers=after_dense("first_k_dense_replace", 1), sparse_norms=1, mtp=None,
        unused_norms=True,
    ),
    "deepseek_v2": replace(
        DEEPSEEK_V3, frame=Plain(mlp_bias=MLP_BIAS), experts=(*ROUTED, 64), chosen=(*CHOSEN, None),
        width=(*WIDTH, 1407), layers=after_dense("first_k_dense_replace", 0), shared_count=("n_shared_experts", 2),
        correction=None, mtp=None,
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "deepseek_v32": DEEPSEEK_V32,
    "glm4_moe_lite": replace(
        DEEPSEEK_V3, latent=Latent(q_rank=768, nope=192, value=256), experts=(*ROUTED, 64), chosen=(*CHOSEN, 4),
        width=(*WIDTH, 1536), layers=after_dense("first_k_dense_replace", 1),
    ),
    "glm_moe_dsa": replace(DEEPSEEK_V3, attend=attend_indexed),
    "mistral4": replace(
        DEEPSEEK_V3, latent=Latent(q_rank=1024, kv_rank=256, nope=64), experts=(*ROUTED, 128), chosen=(*CHOSEN, 4),
        layers=after_dense("first_k_dense_replace", 0), correction=None, mtp=None,
    ),
}  # fmt: skip


def _register(model_type: str, sparse: Sparse) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_sparse(fields, sparse)


for _model_type, _sparse in SPARSE.items():
    _register(_model_type, _sparse)


@family("youtu")
def youtu(fields: Fields) -> Anatomy:
    return _dense(fields, Latent())


@family("minicpm3")
def minicpm3(fields: Fields) -> Anatomy:
    return _dense(fields, Latent(q_rank=768, kv_rank=256, nope=64, rope=32, value=None))


def _dense(fields: Fields, latent: Latent) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    latent_attention(decoder, fields, decoder.layers, latent.read(fields, decoder.hidden))
    decoder.mlp(decoder.layers, fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    return decoder.finish(tied=True)
