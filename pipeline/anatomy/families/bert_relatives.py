"""BERT with other layers: ALBERT, DeBERTa's first version, ConvBERT, dense passage retrieval, FNet, YOSO, Longformer."""

from __future__ import annotations

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.text_encoders import finished, labelled
from pipeline.anatomy.fields import WIDTH_AND_DEPTH, Fields
from pipeline.anatomy.reading import architecture_of, dropout, label_count
from pipeline.anatomy.rows import Anatomy, AttentionLayer, FeedForwardLayer, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part, divided


@family("albert")
def read_albert(fields: Fields) -> Anatomy:
    """Layers share their weights in groups: `num_hidden_layers` passes over `num_hidden_groups` sets."""
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers = fields.repeats("num_hidden_layers")
    small, heads = fields.count("embedding_size"), fields.count("num_attention_heads")
    architecture = architecture_of(fields) or "AlbertModel"
    part = Part("text")
    part.embedding("embedding", fields.count("vocab_size"), small)
    part.embedding("position_embedding", fields.count("max_position_embeddings"), small)
    part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), small)
    part.norm(small)
    part.linear("embedding_projection", small, hidden)
    sets = fields.times("num_hidden_groups") * fields.times("inner_group_num")
    part.block(sets, hidden, width, heads)
    part.attention_layers = [
        AttentionLayer("text", "bidirectional", layers, "text", heads, heads, hidden // heads, hidden // heads)
    ]
    part.feed_forward = [FeedForwardLayer("text", layers, "text", width, is_gated=False)]
    predicts = architecture.endswith(("ForMaskedLM", "ForPreTraining"))
    tied = fields.flag("tie_word_embeddings")
    if not architecture.endswith(("ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("pooler", hidden, hidden)
    if predicts:
        part.linear("head_transform", hidden, small)
        part.norm(small)
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", small, 0 if tied else fields.count("vocab_size"))
    if architecture.endswith("ForPreTraining"):
        part.linear("head", hidden, label_count(fields))
    labelled(part, fields, architecture, hidden)
    vocabulary = fields.count("vocab_size")
    extra = {"position ids": fields.count("max_position_embeddings"), "vocabulary bias stored again": vocabulary}
    if architecture_of(fields) is None:
        extra["masked-language-model head"] = hidden * small + 3 * small + vocabulary
    return finished(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        hidden_dropout=dropout(fields, "hidden_dropout_prob"),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob"),
        stored_extra=extra,
    )


@family("fnet", "yoso", "longformer")
def read_mixing(fields: Fields) -> Anatomy:
    """BERT with its mixer replaced: Fourier transforms, sampled attention, windows with a second set of projections."""
    model_type = fields.text("model_type")
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, width = fields.count("hidden_size"), fields.count("intermediate_size")
    layers, positions = fields.repeats("num_hidden_layers"), fields.count("max_position_embeddings")
    class_name = {"fnet": "FNetModel", "yoso": "YosoModel", "longformer": "LongformerModel"}[model_type]
    architecture = architecture_of(fields) or class_name
    part = Part("text")
    part.embedding("embedding", fields.count("vocab_size"), hidden)
    part.embedding("position_embedding", positions + (2 if model_type == "yoso" else 0), hidden)
    part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), hidden)
    part.norm(hidden)
    if model_type == "fnet":
        part.linear("embedding_projection", hidden, hidden)
        part.mlp(layers, hidden, width)
        part.norm(hidden, layers=layers, count=2)
    else:
        part.block(layers, hidden, width, fields.count("num_attention_heads"))
    if model_type == "longformer":
        part.linear("attention_global", hidden, hidden, layers=layers, count=3)
    pooled = ("Model", "ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining")
    if model_type == "fnet" or (model_type == "longformer" and architecture.endswith(pooled)):
        part.linear("pooler", hidden, hidden)
    predicts = architecture.endswith(("ForMaskedLM", "ForPreTraining"))
    tied = fields.flag("tie_word_embeddings")
    if predicts or (architecture.endswith("ForSequenceClassification") and model_type != "fnet"):
        part.linear("head_transform", hidden, hidden)
    if model_type == "yoso" and architecture.endswith("ForMultipleChoice"):
        part.linear("pooler", hidden, hidden)
    if predicts:
        part.norm(hidden)
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", hidden, 0 if tied else fields.count("vocab_size"))
    if architecture.endswith(("ForNextSentencePrediction", "ForPreTraining")):
        part.linear("head", hidden, 2)
    labelled(part, fields, architecture, hidden)
    return finished(
        fields,
        part,
        hidden,
        layers,
        architecture,
        is_head_tied=predicts and tied,
        stored_extra={"position ids": positions},
    )


def _read(fields: Fields, part: Part, hidden: int, layers: int, name: str, *, tied: bool = False) -> Anatomy:
    return assemble(
        fields,
        [part],
        hidden=hidden,
        layers=layers,
        architecture=name,
        vocab_size=fields.count("vocab_size"),
        is_head_tied=tied,
        hidden_dropout=dropout(fields, "hidden_dropout_prob"),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob"),
        max_context_tokens=fields.count("max_position_embeddings"),
        stored_extra={"position ids": fields.count("max_position_embeddings")},
    )


def _words(part: Part, fields: Fields, width: int, *, positions: bool = True) -> None:
    part.embedding("embedding", fields.count("vocab_size"), width)
    part.embedding("position_embedding", fields.count("max_position_embeddings") if positions else 0, width)
    part.embedding("segment_embedding", fields.count("type_vocab_size", least=0), width)
    part.norm(width)


def _top(part: Part, fields: Fields, name: str, hidden: int, width: int) -> bool:
    """The head; says whether it projects to the vocabulary with the embedding's weights."""
    if name.endswith("ForMaskedLM"):
        part.linear("head_transform", hidden, width)
        part.norm(width)
        part.vector(fields.count("vocab_size"), "bias")
        if not fields.flag("tie_word_embeddings"):
            raise UnknownAnatomy(f"{fields.where}: an untied head is not described yet")
        return True
    if name.endswith("ForSequenceClassification"):
        part.linear("pooler", hidden, hidden)
    if name.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("head", hidden, label_count(fields))
    elif not name.endswith("Model"):
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    return False


@family("deberta")
def read_deberta(fields: Fields) -> Anatomy:
    """One matrix for queries, keys and values with biases on two of them; relative positions in every layer."""
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    heads, name = fields.count("num_attention_heads"), architecture_of(fields) or "DebertaModel"
    part, head_dim = Part("text"), fields.divide(hidden, fields.count("num_attention_heads"), "hidden_size")
    if fields.flag("talking_head") or fields.count("embedding_size", default=hidden) != hidden:
        raise UnknownAnatomy(f"{fields.where}: talking heads and narrow embeddings are not described yet")
    _words(part, fields, hidden, positions=fields.flag("position_biased_input"))
    part.linear("attention_qkv", hidden, 3 * hidden, bias=False, layers=layers)
    part.vector(hidden, "bias", layers=layers, count=2)
    part.linear("attention_o", hidden, hidden, layers=layers)
    part.attention_layers.append(
        AttentionLayer("text", "bidirectional", layers, "text", heads, heads, head_dim, head_dim)
    )
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, layers=layers, count=2)
    if fields.flag("relative_attention"):
        kinds = fields.raw("pos_att_type", default=[])
        kinds = kinds.split("|") if isinstance(kinds, str) else fields.items("pos_att_type") or []
        reach = fields.raw("max_relative_positions")
        reach = reach if type(reach) is int and 0 < reach <= 10**6 else fields.count("max_position_embeddings")
        part.embedding("position_embedding", 2 * reach, hidden)
        part.linear("attention_position", hidden, hidden, bias=False, layers=layers if "c2p" in kinds else 0)
        part.linear("attention_position", hidden, hidden, layers=layers if "p2c" in kinds else 0)
    return _read(fields, part, hidden, layers, name, tied=_top(part, fields, name, hidden, hidden))


@family("convbert")
def read_convbert(fields: Fields) -> Anatomy:
    """Half of the heads are convolutions whose kernels are computed from the text."""
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    narrow, kernel = fields.size("head_ratio"), fields.size("conv_kernel_size")
    heads, small = fields.count("num_attention_heads"), fields.count("embedding_size")
    name, part = architecture_of(fields) or "ConvBertModel", Part("text")
    if fields.size("num_groups") != 1 or heads < narrow:
        raise UnknownAnatomy(f"{fields.where}: grouped feed-forwards are not described yet")
    head_dim = divided(hidden, heads, "hidden_size")
    inner = heads // narrow * head_dim
    _words(part, fields, small)
    part.linear("embedding_projection", small, hidden if small != hidden else 0)
    part.mixer(layers, hidden, heads // narrow, head_dim=head_dim)
    part.tensors = [t for t in part.tensors if t.role != "attention_o"]
    part.linear("attention_o", 2 * inner, hidden, bias=False, layers=layers)
    part.linear("attention_conv", inner, heads // narrow * kernel, layers=layers)
    part.linear("attention_conv", hidden, inner, layers=layers)
    part.conv(hidden, 1, kernel, bias=False, layers=layers)
    part.conv(inner, hidden, 1, layers=layers)
    part.mlp(layers, hidden, fields.count("intermediate_size"))
    part.norm(hidden, layers=layers, count=2)
    return _read(fields, part, hidden, layers, name, tied=_top(part, fields, name, hidden, small))


@family("dpr")
def read_dpr(fields: Fields) -> Anatomy:
    """A BERT without its pooler; a reader also marks spans and ranks passages."""
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    name, part = architecture_of(fields) or "DPRQuestionEncoder", Part("text")
    projection = fields.size("projection_dim", least=0)
    _words(part, fields, hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.linear("projector", hidden, projection)
    if name.endswith("Reader"):
        part.linear("head", projection or hidden, 2)
        part.linear("head", projection or hidden, 1)
    return _read(fields, part, hidden, layers, name)
