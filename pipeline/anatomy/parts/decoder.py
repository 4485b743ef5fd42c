"""The parts that decoders are assembled from: attention, feed-forward, experts, norms, embeddings and heads.

A `Decoder` collects the rows of one model. Every method takes the number of layers that the part occurs in and adds
its tensors (shapes [out_features, in_features], counts in elements) and what those layers cache per token (elements).
Which parts a family has, and under which names its config states their sizes, is said in `families/`.
Source of all shapes: the modules that transformers 5.23.0 builds, compared tensor by tensor in tests/anatomy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.anatomy.builder import Builder, merge_kinds, merge_tensors, numbers, within_reason
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.context import context_tokens
from pipeline.anatomy.reading import Heads, architecture_of, dropout, head_kind, label_count, layer_count
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig, FeedForwardLayer, Tensor

DEEP_VALUES = {"deep value": 1, "deep value of steps": 2}  # outputs of reward heads with a layer of their own
PREDICTION = "multi-token prediction layers"


def distinct(windows: Sequence[int | None]) -> list[int | None]:
    """Each once: the whole context, then the narrowest first."""
    return [*{None}.intersection(windows), *sorted(set(windows) - {None})]


class Decoder(Builder):
    """Collects the rows of one model that generates text."""

    def __init__(self, fields: Fields, *, norm_kind: str = "rms", norm_bias: bool | None = None, layers=None):
        super().__init__("text")
        self.fields = fields
        self.hidden = fields.count("hidden_size", "n_embd", "d_model", "n_embed")
        self.layers = layer_count(fields) if layers is None else layers
        self.norm_kind = norm_kind
        self.norm_bias = (norm_kind == "layer") if norm_bias is None else norm_bias
        self.vocab: int | None = None
        self.is_head_tied = False
        self.stored_extra: dict[str, int] = {}
        self.predicting: list[Tensor] = []
        self.predicting_layers, self.predicting_elements = 0, 0

    # single tensors

    def add(self, tensor_class, role, operator, layers, out, inner=None, each=1):
        self.place(tensor_class, role, operator, out, inner, layers=layers, count=each)

    def linear(self, tensor_class, role, layers, out, inner, *, bias=False, each=1, operator="linear"):
        self.add(tensor_class, role, operator, layers, out, inner, each)
        if bias:
            self.vector("bias", layers, out, each)

    def vector(self, role, layers, size, each=1, tensor_class="norm"):
        self.add(tensor_class, role, "vector", layers, size, None, each)

    def parameter(self, tensor_class, role, layers, size, each=1):
        """A bare parameter that is neither a Linear nor a vector: a router's matrix, a decay, a mixing matrix."""
        self.add(tensor_class, role, "parameter", layers, size, None, each)

    def norm(self, layers, size=None, each=1, *, bias=None):
        size = size or self.hidden
        self.vector("norm", layers, size, each)
        if self.norm_bias if bias is None else bias:
            self.vector("bias", layers, size, each)

    # token mixers

    def mixer(self, **layer):
        """An attention_layer row. `kind` may repeat: `build` merges equal groups and numbers different ones."""
        if layer["layer_count"] > 0:
            self.attention_layers.append(AttentionLayer(component=self.component, **layer))

    def attention(
        self,
        layers: int,
        heads: Heads,
        *,
        window: int | None = None,
        mechanism: str | None = None,
        bias: bool = False,
        out_bias: bool | None = None,
        fused: bool = False,
        has_value: bool = True,
        qk_norm: str | None = None,
        qk_norm_bias: bool | None = None,
        causal: bool = True,
        gate: bool = False,
        operator: str = "linear",
        cached: int | None = None,
        inner: int | None = None,
        state: int = 0,
        blocks: str | None = None,
    ):
        """Multi-head or grouped attention. q [heads·dim, h], k and v [kv_heads·dim, h], o [h, heads·value_dim].

        `qk_norm`: one norm over each head ("head") or over the whole projection ("full"). `gate` doubles the queries
        by an output gate. `has_value=False`: values are the keys (no projection, and the cache still holds both).
        `state`: elements in fp32 that a layer keeps of each sequence beside its keys and values.
        """
        inner = inner or self.hidden
        query, key, value = heads.count * heads.dim, heads.kv_count * heads.dim, heads.kv_count * heads.value_dim
        if fused:
            self.linear("attention", "attention_qkv", layers, query + key + value, inner, bias=bias, operator=operator)
        else:
            self.linear(
                "attention", "attention_q", layers, query * (2 if gate else 1), inner, bias=bias, operator=operator
            )
            self.linear("attention", "attention_k", layers, key, inner, bias=bias, operator=operator)
            if has_value:
                self.linear("attention", "attention_v", layers, value, inner, bias=bias, operator=operator)
        out_bias = bias if out_bias is None else out_bias
        self.linear(
            "attention", "attention_o", layers, self.hidden, heads.count * heads.value_dim,
            bias=out_bias, operator=operator,
        )  # fmt: skip
        if qk_norm == "head":
            self.norm(layers, heads.dim, 2, bias=qk_norm_bias)
        elif qk_norm == "full":
            self.norm(layers, query, bias=qk_norm_bias)
            self.norm(layers, key, bias=qk_norm_bias)
        if not causal:
            mechanism = "bidirectional"
        mechanism = mechanism or ("sliding" if window else "full")
        self.mixer(
            kind=mechanism,
            mechanism=mechanism,
            layer_count=layers,
            head_count=heads.count,
            kv_head_count=heads.kv_count,
            head_dim=heads.dim,
            value_head_dim=heads.value_dim,
            elements_per_token=key + value if cached is None else cached,
            window_tokens=window,
            has_qk_norm=qk_norm is not None,
            has_output_gate=gate,
            state_elements=state,
            state_dtype_id="fp32" if state else None,
            blocks=blocks,
        )

    def attentions(self, windows: Sequence[int | None], heads: Heads, **options):
        """The same attention in every layer, each with its own window (None: the whole context)."""
        kinds = distinct(windows)
        for window in kinds:
            blocks = [i for i, w in enumerate(windows) if w == window]
            placed = numbers(blocks) if len(kinds) > 1 else None
            self.attention(len(blocks), heads, window=window, blocks=placed, **options)

    def order(self, kinds: Sequence[str | None]):
        """What kind of token mixer each layer has, where those were added by their number."""
        for i, row in enumerate(self.attention_layers):
            blocks = [place for place, kind in enumerate(kinds) if kind == row.kind]
            if len(blocks) == row.layer_count:
                self.attention_layers[i] = replace(row, blocks=numbers(blocks))

    # feed-forward

    def mlp(self, layers, width, *, gated=True, fused=False, bias=False, operator="linear", down_operator=None):
        if gated and fused:
            self.linear("feed-forward", "ffn_gate_up", layers, 2 * width, self.hidden, bias=bias, operator=operator)
        else:
            if gated:
                self.linear("feed-forward", "ffn_gate", layers, width, self.hidden, bias=bias, operator=operator)
            self.linear("feed-forward", "ffn_up", layers, width, self.hidden, bias=bias, operator=operator)
        self.linear(
            "feed-forward", "ffn_down", layers, self.hidden, width, bias=bias, operator=down_operator or operator
        )
        self.feed_forward_row("dense", layers, width=width, is_gated=gated)

    def dense_mlp(self, layers: int, *names: str, **options):
        """Of the width that the config says under these names, which it need not where no layer has one."""
        if layers:
            self.mlp(layers, self.fields.count(*names), **options)

    def feed_forward_row(self, kind, layers, **row):
        if layers > 0:
            self.feed_forward.append(FeedForwardLayer(kind, layers, self.component, **row))

    def moe(
        self,
        layers: int,
        experts: int,
        chosen: int,
        width: int,
        *,
        shared_width: int = 0,
        shared_gate: bool = False,
        router: str = "parameter",
        router_bias: bool = False,
        correction: bool = False,
        gated: bool = True,
        expert_bias: bool = False,
        expert_inner: int | None = None,
        shared_fused: bool = False,
        shared_bias: bool = False,
        idle: int = 0,
    ):
        """Routed experts as transformers 5 fuses them, [experts, 2·width, h] and [experts, h, width], and shared ones.

        `router` is the operator of the gate's matrix [experts, h]; `correction` counts the router's correction bias
        as a stored buffer, one value for each expert. `idle`: experts that may be chosen too and hand on what they get.
        """
        routes = experts + idle
        if chosen > routes:
            raise ContradictoryConfig(f"{self.fields.where}: {chosen} experts per token of {routes}")
        inner = expert_inner or self.hidden
        if router == "parameter":
            self.parameter("router", "router", layers, routes * self.hidden)
        else:
            self.linear("router", "router", layers, routes, self.hidden, operator=router)
        if router_bias:
            self.vector("bias", layers, routes)
        role, rows = ("expert_gate_up", 2 * width) if gated else ("expert_up", width)
        self.add("expert", role, "expert", layers, rows, inner, experts)
        self.add("expert", "expert_down", "expert", layers, inner, width, experts)
        if expert_bias:
            self.vector("bias", layers, rows, experts)
            self.vector("bias", layers, inner, experts)
        if shared_width:
            rows = ["shared_gate", "shared_up"] if gated else ["shared_up"]
            if gated and shared_fused:
                self.linear("shared-expert", "shared_gate_up", layers, 2 * shared_width, self.hidden, bias=shared_bias)
                rows = []
            for part in rows:
                self.linear("shared-expert", part, layers, shared_width, self.hidden, bias=shared_bias)
            self.linear("shared-expert", "shared_down", layers, self.hidden, shared_width, bias=shared_bias)
        if shared_gate:
            self.linear("shared-expert", "shared_expert_gate", layers, 1, self.hidden)
        if correction:
            self.store("router bias buffers", layers * routes)
        self.feed_forward_row(
            "moe",
            layers,
            is_gated=gated,
            expert_count=experts,
            experts_per_token=min(chosen, experts),
            expert_width=width,
            shared_width=shared_width,
        )

    # ends

    def embed(self, *, width=None, positions=0):
        self.vocab = self.fields.count("vocab_size")
        self.add("embedding", "embedding", "embedding", 1, self.vocab, width or self.hidden)
        if positions:
            self.add("embedding", "position_embedding", "embedding", 1, positions, width or self.hidden)

    def head(self, *, tied: bool, bias: bool = False, width: int | None = None):
        """What the architecture puts on top: the vocabulary, labels, a span, or nothing (names ending in `Model`)."""
        width = width or self.hidden
        kind = head_kind(self.fields)
        if kind == "vocabulary":
            self.is_head_tied = tied
            if tied:
                self.store("tied head stored again", self.vocab * width)
            else:
                self.linear("head", "head", 1, self.vocab, width)
            if bias:
                self.vector("bias", 1, self.vocab)
        elif kind == "span":
            self.linear("head", "head", 1, 2, width, bias=True)
        elif kind == "labels":
            self.linear("head", "head", 1, label_count(self.fields), width)
        elif kind == "token labels":
            self.linear("head", "head", 1, label_count(self.fields), width, bias=True)
        elif kind == "value":  # of the whole text, whatever the config says of labels
            self.linear("head", "head", 1, 1, width)
        elif kind in DEEP_VALUES:
            self.linear("head", "head_transform", 1, width, width, bias=True)
            self.linear("head", "head", 1, DEEP_VALUES[kind], width, bias=True)

    def ends(self, *, tied: bool | None = None):
        """Two norms in each layer and one at the end, and the head; `tied` where neither config nor class says it."""
        self.norm(self.layers, each=2)
        self.norm(1)
        self.head(tied=self.fields.flag("tie_word_embeddings", default=tied))

    def finish(self, *, tied: bool | None = None, **facts) -> Anatomy:
        """The usual ends, and the anatomy."""
        self.ends(tied=tied)
        return self.build(attention_dropout=dropout(self.fields, "attention_dropout"), **facts)

    def store(self, cause: str, elements: int):
        if elements:
            self.stored_extra[cause] = self.stored_extra.get(cause, 0) + elements

    def ahead(self, layers: int = 1) -> Decoder:
        """An empty decoder like this one, for the layers that predict further tokens."""
        return Decoder(self.fields, norm_kind=self.norm_kind, norm_bias=self.norm_bias, layers=layers)

    def predict(
        self,
        ahead: Decoder,
        times: int = 1,
        *,
        steps: int = 1,
        listed: bool = True,
        repeats_ends: bool = False,
        projects: bool = True,
        cause: str = PREDICTION,
    ):
        """What checkpoints hold to predict further tokens, and nothing loads: `times` what `ahead` collected, the buffers of its
        routers, and for each of its `steps` a projection of two streams [h, 2h]. `listed`: its tensors are known one by one.
        `repeats_ends`: each holds the embedding and the head again (DeepSeek-V3, GLM-4.5)."""
        if projects:
            ahead.linear("other", "mtp_projection", steps, self.hidden, 2 * self.hidden)
        elements = ahead.element_count + ahead.stored_extra.get("router bias buffers", 0)
        self.store(cause, times * elements)
        if cause == PREDICTION:
            self.predicting_layers += times * ahead.layers
            self.predicting_elements += times * elements
        if listed:
            self.predicting = [replace(t, layer_count=times * t.layer_count) for t in ahead.tensors if times]
        if repeats_ends:
            self.store("embedding and head of prediction layers", times * steps * 2 * self.vocab * self.hidden)

    def build(self, **facts) -> Anatomy:
        allowed, trained = context_tokens(self.fields)
        facts.setdefault("max_context_tokens", allowed)
        facts.setdefault("trained_context_tokens", trained)
        facts.setdefault("hidden_dropout", dropout(self.fields, "hidden_dropout", "resid_pdrop", "resid_dropout"))
        facts.setdefault("attention_dropout", dropout(self.fields, "attention_dropout", "attn_pdrop"))
        anatomy = Anatomy(
            model_type=self.fields.text("model_type") or "unknown",
            architecture=architecture_of(self.fields),
            hidden_size=self.hidden,
            layer_count=self.layers,
            vocab_size=self.vocab,
            is_head_tied=self.is_head_tied,
            norm_kind=self.norm_kind,
            tensors=merge_tensors(self.tensors),
            attention=merge_kinds(self.attention_layers),
            feed_forward=merge_kinds(self.feed_forward),
            stored_extra=self.stored_extra,
            predicting=tuple(self.predicting),
            predicting_layer_count=self.predicting_layers,
            predicting_parameter_count=self.predicting_elements,
            **facts,
        )
        return within_reason(self.fields, anatomy)
