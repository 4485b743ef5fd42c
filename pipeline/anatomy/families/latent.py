"""Families with latent attention: DeepSeek-V2 and V3 and what followed them, with and without an indexer.

Source: the config and modeling files of transformers 5.23.0, one folder for each model_type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.families.sparse import CHOSEN, ROUTED, WIDTH
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.experts import Sparse, after_dense, read_sparse
from pipeline.anatomy.parts.frame import Plain
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.reading import layer_count
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy

BARE = Plain()

DEEPSEEK_V3 = Sparse(
    BARE, is_latent=True, experts=ROUTED, chosen=CHOSEN, width=WIDTH,
    layers=after_dense("first_k_dense_replace", 3), shared_count=("n_shared_experts",), correction="buffer",
    predicts=True,
)  # fmt: skip
DEEPSEEK_V32 = replace(DEEPSEEK_V3, is_indexed=True)


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
    latent = Latent.read(fields, decoder.hidden, indexed=True)
    layers = len(windows)
    own = sum(indexer_kinds(fields, layers)) if layers > 1 else layers  # one: a layer that predicts
    latent_attention(decoder, fields, own, latent)
    latent_attention(decoder, fields, layers - own, latent, with_indexer=False)


SPARSE: dict[str, Sparse] = {
    "axk1": replace(
        DEEPSEEK_V3, experts=ROUTED, layers=after_dense("first_k_dense_replace", 1), sparse_norms=1, predicts=False,
        unused_norms=True,
    ),
    "deepseek_v2": replace(
        DEEPSEEK_V3, frame=Plain(mlp_bias="mlp_bias"), experts=ROUTED, chosen=CHOSEN,
        width=WIDTH, layers=after_dense("first_k_dense_replace"), shared_count=("n_shared_experts",),
        correction=None, predicts=False,
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "kimi_k2": DEEPSEEK_V3,
    "deepseek_v32": DEEPSEEK_V32,
    "glm4_moe_lite": replace(
        DEEPSEEK_V3, experts=ROUTED, chosen=CHOSEN,
        width=WIDTH, layers=after_dense("first_k_dense_replace", 1),
    ),
    "glm_moe_dsa": replace(DEEPSEEK_V3, attend=attend_indexed),
    "mistral4": replace(
        DEEPSEEK_V3, experts=ROUTED, chosen=CHOSEN,
        layers=after_dense("first_k_dense_replace"), correction=None, predicts=False,
    ),
}  # fmt: skip


def _register(model_type: str, sparse: Sparse) -> None:
    @family(model_type)
    def read(fields: Fields) -> Anatomy:
        return read_sparse(fields, sparse)


for _model_type, _sparse in SPARSE.items():
    _register(_model_type, _sparse)


@family("youtu", "minicpm3")
def read_dense(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    decoder.embed()
    latent_attention(decoder, fields, decoder.layers, Latent.read(fields, decoder.hidden))
    decoder.mlp(decoder.layers, fields.count("intermediate_size"), bias=fields.flag("mlp_bias"))
    return decoder.finish()


@family("longcat_flash")
def read_longcat(fields: Fields) -> Anatomy:
    """Blocks of two layers, each of which attends and has a feed-forward; beside them experts, some of which hand on what they get.

    The class of the library sets rows of up and gate aside for those too, which no checkpoint holds and nothing reads: not counted.
    """
    blocks = layer_count(fields, "num_layers")
    decoder = Decoder(fields, layers=2 * blocks)
    if fields.raw("num_hidden_layers") not in (None, decoder.layers):
        raise UnknownAnatomy(f"{fields.where}: num_hidden_layers is not twice num_layers")
    latent = Latent.read(fields, decoder.hidden)
    if fields.raw("qk_head_dim") not in (None, latent.nope + latent.rope):
        raise UnknownAnatomy(f"{fields.where}: qk_head_dim is not what its two parts come to")
    decoder.embed()
    latent_attention(decoder, fields, decoder.layers, latent)
    width = fields.count("ffn_hidden_size", "intermediate_size")
    decoder.mlp(blocks, width)
    decoder.moe(  # beside the feed-forward of every second layer
        blocks,
        fields.size("n_routed_experts", "num_local_experts"),
        fields.size("moe_topk", "num_experts_per_tok"),
        fields.size("expert_ffn_hidden_size", "moe_intermediate_size"),
        shared_width=width,
        router="linear",
        router_bias=fields.flag("router_bias"),
        correction=True,
        idle=fields.size("zero_expert_num", least=0),
    )
    ahead = decoder.ahead()  # released files hold a dense layer that predicts, and the embedding for it again
    latent_attention(ahead, fields, 1, latent)
    ahead.mlp(1, width)
    ahead.norm(1, each=5)
    decoder.predict(ahead)
    decoder.store("embedding of prediction layers", fields.count("vocab_size") * decoder.hidden)
    return decoder.finish()
