"""Decoders with routed experts in some of their layers: one description for each family, one reader for all.

A family says where its config states the number of experts, how many a token passes and their width, which layers have
them, and what else is in such a layer. Attention and norms are those of `plain` families or latent attention.
Shapes: router [experts, h], an expert's up and gate fused [2·width, h], down [h, width].
Source: the config and modeling files of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.decoder import Decoder
from pipeline.anatomy.parts.frame import Plain, attend, flag, norm_kind
from pipeline.anatomy.parts.latent import Latent, latent_attention
from pipeline.anatomy.reading import dropout, layer_types
from pipeline.anatomy.rows import Anatomy

Named = tuple[str | int, ...]  # names of a field in turn, and what holds where no class has it
Layers = Callable[[Fields, int], list[bool]]
Attend = Callable[[Decoder, Fields, Sequence[int | None]], None]


def named(fields: Fields, names: Named, least: int = 1) -> int:
    """What the config says, or its class; the feed-forward's own width shapes the whole, and has to be said."""
    if names[0] == "intermediate_size":
        return fields.count(*names, least=least)
    *spelled, otherwise = names if isinstance(names[-1], int) else (*names, None)
    return fields.size(*spelled, least=least, otherwise=otherwise)


def every_layer(fields: Fields, layers: int) -> list[bool]:
    return [True] * layers


def after_dense(name: str, otherwise: int | None = None) -> Layers:
    """Experts after the first dense layers; `mlp_layer_types` overrules where it is listed."""

    def sparse(fields: Fields, layers: int) -> list[bool]:
        types = layer_types(fields, layers, "mlp_layer_types", known=("dense", "sparse"))
        if types is not None:
            return [kind == "sparse" for kind in types]
        first = fields.size(name, least=0, otherwise=otherwise)
        step = fields.count("moe_layer_freq", default=1) if isinstance(fields.raw("moe_layer_freq"), int) else 1
        return [i >= first and i % step == 0 for i in range(layers)]

    return sparse


def stepped(*dense: int) -> Layers:
    """Qwen: every `decoder_sparse_step`-th layer but those in `mlp_only_layers`."""

    def sparse(fields: Fields, layers: int) -> list[bool]:
        step = fields.size("decoder_sparse_step")
        listed = fields.items("mlp_only_layers")
        only = set(dense) if listed is None else {i for i in listed if isinstance(i, int)}
        return [i not in only and (i + 1) % step == 0 for i in range(layers)]

    return sparse


@dataclass(frozen=True)
class Sparse:
    frame: Plain
    experts: Named
    chosen: Named
    width: Named = ("moe_intermediate_size",)
    dense_width: Named = ("intermediate_size",)
    is_latent: bool = False
    is_indexed: bool = False
    attend: Attend | None = None
    layers: Layers = every_layer
    shared_count: Named | None = None  # that many experts' width
    shared_width: Named | None = None
    shared_gate: bool = False
    shared_fused: bool = False
    router: str = "parameter"
    router_bias: bool = False
    correction: str | None = None  # "buffer" or "parameter"
    expert_bias: bool = False
    sparse_norms: int = 0  # more norms in layers with experts
    unused_norms: bool = False  # checkpoints hold the norm of sparse layers in dense ones too, where nothing reads it
    predicts: bool = False  # released files hold layers that predict further tokens
    predicts_dense: bool = False  # with a feed-forward in place of experts
    predicting_norms: int = 3  # of such a layer beyond those of a layer

    def mix(self, decoder: Decoder, fields: Fields, windows: Sequence[int | None]) -> None:
        if self.attend is not None:
            self.attend(decoder, fields, windows)
        elif self.is_latent:
            latent = Latent.read(fields, decoder.hidden, indexed=self.is_indexed)
            latent_attention(decoder, fields, len(windows), latent)
        else:
            attend(decoder, fields, self.frame, list(windows))

    def sparse_layers(self, decoder: Decoder, fields: Fields, layers: int) -> None:
        if layers == 0:
            return
        width = named(fields, self.width)
        shared = 0
        if self.shared_count is not None:
            shared = width * named(fields, self.shared_count, least=0)
        elif self.shared_width is not None:
            shared = named(fields, self.shared_width, least=0)
        experts = named(fields, self.experts)
        decoder.moe(
            layers,
            experts,
            named(fields, self.chosen),
            width,
            shared_width=shared,
            shared_gate=self.shared_gate and shared > 0,
            shared_fused=self.shared_fused,
            shared_bias=flag(fields, self.frame.mlp_bias),
            router=self.router,
            router_bias=self.router_bias,
            expert_bias=self.expert_bias,
            correction=self.correction == "buffer",
        )
        if self.correction == "parameter":
            decoder.vector("router_correction", layers, experts, tensor_class="router")
        decoder.norm(layers if self.sparse_norms else 0, each=self.sparse_norms)


def read_sparse(fields: Fields, sparse: Sparse) -> Anatomy:
    frame = sparse.frame
    decoder = Decoder(fields, norm_kind=norm_kind(fields, frame), norm_bias=frame.norm_bias)
    layers = decoder.layers
    decoder.embed()
    sparse.mix(decoder, fields, frame.windows(fields, layers))
    routed = sum(sparse.layers(fields, layers))
    if routed < layers:
        bias = flag(fields, frame.mlp_bias)
        decoder.mlp(layers - routed, named(fields, sparse.dense_width), fused=frame.fused_mlp, bias=bias)
        decoder.store("norms that are not used", (layers - routed) * decoder.hidden if sparse.unused_norms else 0)
    sparse.sparse_layers(decoder, fields, routed)
    parallel = flag(fields, frame.parallel)
    if frame.norms:
        decoder.norm(layers, each=1 if parallel else frame.norms)
        decoder.norm(1)
    decoder.head(tied=fields.flag("tie_word_embeddings", default=frame.ties), bias=flag(fields, frame.head_bias))
    if sparse.predicts:
        store_prediction_layers(decoder, fields, sparse)
    return decoder.build(
        is_block_parallel=parallel,
        has_flash_attention=frame.flash,
        attention_dropout=dropout(fields, "attention_dropout"),
    )


def store_prediction_layers(decoder: Decoder, fields: Fields, sparse: Sparse) -> None:
    """Each a layer of the model, a projection of two streams and three norms."""
    count = fields.repeats("num_nextn_predict_layers", default=1)  # files of a config that is silent hold one
    if count == 0:
        return
    one = decoder.ahead()
    sparse.mix(one, fields, [None])
    if sparse.predicts_dense:
        one.mlp(1, named(fields, sparse.dense_width))
    else:
        sparse.sparse_layers(one, fields, 1)
    one.norm(1, each=sparse.frame.norms + sparse.predicting_norms)
    decoder.predict(one, count, repeats_ends=True)
