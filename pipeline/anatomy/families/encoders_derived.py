"""More text encoders: DeBERTa's first version, ConvBERT, and the encoders of dense passage retrieval."""

from __future__ import annotations

from pipeline.anatomy.families import family
from pipeline.anatomy.families.encoders import BERT
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import dropout
from pipeline.anatomy.rows import Anatomy, AttentionLayer, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, architecture_of, assemble, divided, label_count, layer_count, over


def _read(fields: Fields, part: Part, hidden: int, layers: int, name: str, *, tied: bool = False) -> Anatomy:
    return assemble(
        fields,
        [part],
        hidden=hidden,
        layers=layers,
        architecture=name,
        vocab_size=fields.count("vocab_size"),
        is_head_tied=tied,
        hidden_dropout=dropout(fields, "hidden_dropout_prob", default=0.1),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob", default=0.1),
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
        if not fields.flag("tie_word_embeddings", default=True):
            raise UnknownAnatomy(f"{fields.where}: an untied head is not described yet")
        return True
    if name.endswith("ForSequenceClassification"):
        part.linear("pooler", hidden, hidden)
    if name.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        part.linear("head", hidden, label_count(fields))
    elif not name.endswith("Model"):
        raise UnknownAnatomy(f"class '{name[:60]}' is not described yet")
    return False


@family("deberta")
def read_deberta(fields: Fields) -> Anatomy:
    """One matrix for queries, keys and values with biases on two of them; relative positions in every layer."""
    fields = over(fields, {**BERT, "vocab_size": 50265, "type_vocab_size": 0})
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    heads, name = fields.count("num_attention_heads"), architecture_of(fields) or "DebertaModel"
    part, head_dim = Part("text"), fields.divide(hidden, fields.count("num_attention_heads"), "hidden_size")
    if fields.flag("talking_head") or fields.count("embedding_size", default=hidden) != hidden:
        raise UnknownAnatomy(f"{fields.where}: talking heads and narrow embeddings are not described yet")
    _words(part, fields, hidden, positions=fields.flag("position_biased_input", default=True))
    part.linear("attention_qkv", hidden, 3 * hidden, bias=False, layers=layers)
    part.vector(hidden, "bias", layers=layers, count=2)
    part.linear("attention_o", hidden, hidden, layers=layers)
    part.attention.append(AttentionLayer("text", "bidirectional", layers, "text", heads, heads, head_dim, head_dim))
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
    fields = over(fields, {**BERT, "embedding_size": 768})
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    narrow, kernel = fields.count("head_ratio", default=2), fields.count("conv_kernel_size", default=9)
    heads, small = fields.count("num_attention_heads"), fields.count("embedding_size")
    name, part = architecture_of(fields) or "ConvBertModel", Part("text")
    if fields.count("num_groups", default=1) != 1 or heads < narrow:
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
    fields = over(fields, BERT)
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    name, part = architecture_of(fields) or "DPRQuestionEncoder", Part("text")
    projection = fields.count("projection_dim", default=0, least=0)
    _words(part, fields, hidden)
    part.block(layers, hidden, fields.count("intermediate_size"), fields.count("num_attention_heads"))
    part.linear("projector", hidden, projection)
    if name.endswith("Reader"):
        part.linear("head", projection or hidden, 2)
        part.linear("head", projection or hidden, 1)
    return _read(fields, part, hidden, layers, name)
