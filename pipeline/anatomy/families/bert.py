"""Text encoders of BERT's plan: embeddings, layers of bidirectional attention, a head that the class decides.

Families differ in a few places, which `Plan` names. A config that names no class is read as the plan's default class;
what the family's other classes would add stands in `stored_extra`, so that a published total can be explained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import WIDTH_AND_DEPTH, Fields
from pipeline.anatomy.reading import architecture_of, dropout, label_count, sizes
from pipeline.anatomy.rows import Anatomy, FeedForwardLayer, UnknownAnatomy, shown
from pipeline.anatomy.towers.part import Part
from pipeline.anatomy.towers.relative_positions import disentangled


@dataclass(frozen=True)
class Plan:
    """Where a family departs from BERT."""

    default_class: str  # the class of a config that names none
    has_pooler: bool = True  # the bare model ends in a dense layer over the first token
    classifies: str = "pooled"  # sequence classification on the pooler, or on its own dense layer
    has_positions: bool = True
    first_position: int = 0  # RoBERTa counts positions from the padding index + 1: that many rows are never used
    layers: str = "bert"  # bert | gated | pre-norm
    unties_bias: bool = True  # an untied head has a bias of its own beside the shared one
    always_pools: bool = False  # every class keeps the pooler
    norms_embeddings: bool = True
    transforms_head: bool = True  # the masked-language-model head has a dense layer and a norm before the vocabulary


ROBERTA = Plan("RobertaForMaskedLM", classifies="dense", first_position=2)
PLANS = {
    "bert": Plan("BertModel"),
    "ernie": Plan("ErnieModel"),
    "layoutlm": Plan("LayoutLMModel", always_pools=True),
    "lilt": Plan("LiltModel", classifies="dense"),
    "bros": Plan("BrosModel"),
    "big_bird": Plan("BigBirdModel", classifies="dense", always_pools=True),
    "tapas": Plan("TapasModel"),
    "splinter": Plan("SplinterModel", has_pooler=False),
    "bert-generation": Plan("BertGenerationEncoder", has_pooler=False, transforms_head=False),
    "roformer": Plan("RoFormerModel", has_pooler=False, classifies="dense"),
    "roberta": replace(ROBERTA),
    "roberta-prelayernorm": replace(ROBERTA, default_class="RobertaPreLayerNormForMaskedLM", layers="pre-norm"),
    "xlm-roberta": replace(ROBERTA, default_class="XLMRobertaModel"),
    "xlm-roberta-xl": replace(ROBERTA, default_class="XLMRobertaXLModel", layers="pre-norm", norms_embeddings=False),
    "camembert": replace(ROBERTA, default_class="CamembertForMaskedLM"),
    "data2vec-text": replace(ROBERTA, default_class="Data2VecTextForMaskedLM"),
    "jina_embeddings_v3": Plan("JinaEmbeddingsV3Model", classifies="dense", has_positions=False),
    "distilbert": Plan("DistilBertModel", unties_bias=False, has_pooler=False, classifies="dense"),
    "electra": Plan("ElectraModel", unties_bias=False, has_pooler=False, classifies="dense"),
    "mpnet": Plan("MPNetModel", classifies="dense"),
    "deberta-v2": Plan("DebertaV2Model", has_pooler=False, classifies="dense"),
    "nomic_bert": Plan("NomicBertModel", has_pooler=False, has_positions=False, layers="gated"),
    "gte": Plan("GteModel", unties_bias=False, has_pooler=False, has_positions=False, layers="gated"),
    "new": Plan(
        "NewModel", unties_bias=False, has_pooler=False, has_positions=False, layers="gated"
    ),  # GTE by its first code
}

# What code that travels with checkpoints can also build, and the value that is described.
ONLY = {"new": {"position_embedding_type": "rope", "layer_norm_type": "layer_norm"}}

# The same for what a config may leave out: the values that are described where it is said.
IF_SAID = {
    "nomic_bert": {
        "num_experts": (0, None),
        "moe_every_n_layers": (0, None),
        "activation_function": ("swiglu", "geglu", "glu", None),
        "qkv_proj_bias": (False, None),
        "mlp_fc1_bias": (False, None),
        "mlp_fc2_bias": (False, None),
        "prenorm": (False, None),
        "use_rms_norm": (False, None),
    }
}


@family(*PLANS)
def read_encoder(fields: Fields) -> Anatomy:
    plan = PLANS[fields.text("model_type")]
    for name, described in IF_SAID.get(fields.text("model_type"), {}).items():
        if fields.raw(name) not in described and not _is_nomic_moe(fields):
            raise UnknownAnatomy(f"{fields.where}.{name} is {shown(fields.raw(name))!r}, which is not described yet")
    for name, value in ONLY.get(fields.text("model_type"), {}).items():
        if fields.raw(name) != value:
            raise UnknownAnatomy(f"{fields.where}.{name} is {shown(fields.raw(name))!r}, which is not described yet")
    fields = fields.filled(WIDTH_AND_DEPTH)
    hidden = fields.count("hidden_size", "dim", "n_embd")
    layers = fields.repeats("num_hidden_layers", "n_layers", "n_layer")
    part = Part("text")
    embeddings(part, fields, plan, hidden)
    body(part, fields, plan, hidden, layers)
    before_head, architecture = part.element_count, architecture_of(fields) or plan.default_class
    embedding_size = fields.known("embedding_size") or hidden
    tied = fields.flag("tie_word_embeddings", default=True)
    has_vocabulary = head(part, fields, plan, architecture, hidden, embedding_size, tied)
    positions = fields.count("max_position_embeddings")
    extra = {"position ids": positions}
    if architecture_of(fields) is None and part.element_count == before_head + hidden * (hidden + 1) * plan.has_pooler:
        extra |= {
            "masked-language-model head": hidden * (embedding_size + 1)
            + embedding_size * 2
            + fields.count("vocab_size")
        }
        extra |= {"next-sentence head": 2 * (hidden + 1), "ranking head": hidden + 1}
    if not (plan.has_pooler and _has_pooler(architecture, plan)):
        extra["pooler"] = hidden * (hidden + 1)
    if adapters := task_adapters(fields, part):
        extra["adapters of tasks"] = adapters
    return assemble(
        fields,
        [part],
        hidden=hidden,
        layers=layers,
        architecture=architecture,
        vocab_size=fields.count("vocab_size"),
        is_head_tied=has_vocabulary and tied,
        hidden_dropout=dropout(fields, "hidden_dropout_prob", "dropout"),
        attention_dropout=dropout(fields, "attention_probs_dropout_prob", "attention_dropout"),
        max_context_tokens=max(positions - plan.first_position, 1),
        stored_extra=extra,
    )


def task_adapters(fields: Fields, part: Part) -> int:
    """Jina: two narrow matrices beside every other one, the embeddings' tables included, for each task; fused where they have one input."""
    tasks, rank = fields.items("lora_adaptations") or [], fields.count("lora_rank", default=4)
    fused = {"attention_k": 0, "attention_v": 0}  # of their inputs: they share the queries'
    sizes = 0
    for t in part.tensors:
        if t.in_features:
            inputs = fused.get(t.role, t.in_features)
            sizes += t.layer_count * t.per_layer_count * (t.out_features + inputs)
    return len(tasks) * rank * sizes


def embeddings(part: Part, fields: Fields, plan: Plan, hidden: int) -> None:
    """Words, positions, segments and a norm; what layouts and tables add to them."""
    width = fields.known("embedding_size") or hidden
    positions = fields.count("max_position_embeddings")
    model_type = fields.text("model_type")
    part.embedding("embedding", fields.count("vocab_size"), width)
    if model_type == "roformer":
        part.embedding("position_embedding", positions, hidden // fields.count("num_attention_heads"))
    elif plan.has_positions and fields.flag("position_biased_input", default=True) and not _has_slopes(fields):
        part.embedding("position_embedding", positions, width)
    if model_type == "tapas":
        for rows in sizes(fields, "type_vocab_sizes", least=1):
            part.embedding("segment_embedding", rows, width)
    else:
        part.embedding("segment_embedding", fields.size("type_vocab_size", least=0, otherwise=0), width)
    part.norm(width if plan.norms_embeddings else 0)
    if model_type == "layoutlm":
        part.embedding("position_embedding", fields.count("max_2d_position_embeddings"), width, count=4)
    if model_type == "ernie" and fields.flag("use_task_id"):
        part.embedding("segment_embedding", fields.count("task_type_vocab_size"), width)
    if model_type == "lilt":
        narrow = fields.divide(hidden, fields.count("channel_shrink_ratio"), "hidden_size")
        part.embedding("position_embedding", fields.count("max_2d_position_embeddings"), hidden // 6, count=4)
        part.embedding("position_embedding", positions, narrow)
        part.linear("embedding_projection", hidden // 6 * 6, narrow)  # six coordinates of a box, concatenated
        part.norm(narrow)
    if model_type == "bros":
        boxes = fields.count("dim_bbox")
        heads = fields.count("num_attention_heads")
        sinusoid = fields.divide(hidden, 4, "hidden_size") // boxes * boxes
        sinusoid = fields.count("dim_bbox_sinusoid_emb_2d", default=sinusoid)
        narrow = fields.count("dim_bbox_projection", default=hidden // heads)
        part.linear("embedding_projection", sinusoid, narrow, bias=False)
    if width != hidden:
        part.linear("embedding_projection", width, hidden, bias=model_type != "deberta-v2")


def _has_slopes(fields: Fields) -> bool:
    """Attention that fades with distance needs no positions: Jina's second embeddings, a BERT of their own code."""
    return fields.raw("position_embedding_type") == "alibi"


# What the code of Nomic's embedding with experts is described with; half of its layers or less have them.
NOMIC_MOE = {
    "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "prenorm": False, "use_rms_norm": (False, None), "activation_function": "gelu",
}  # fmt: skip


def _is_nomic_moe(fields: Fields) -> bool:
    """Told by both words for its experts; anything else than described is unknown."""
    if fields.text("model_type") != "nomic_bert" or not (
        fields.raw("num_experts") and fields.raw("moe_every_n_layers")
    ):
        return False
    for name, described in NOMIC_MOE.items():
        said = fields.raw(name)
        if said not in (described if isinstance(described, tuple) else (described,)):
            raise UnknownAnatomy(f"{fields.where}.{name} is {shown(said)!r}, which is not described with experts")
    return True


def nomic_experts(part: Part, fields: Fields, hidden: int, layers: int, heads: int, width: int) -> None:
    """Every second layer (or third ..., from the second on) routes each token to some of its experts, which share one bias.

    Source: llama.cpp, src/models/nomic-bert-moe.cpp; held to the published total of nomic-embed-text-v2-moe.
    """
    every, experts = fields.count("moe_every_n_layers", least=2), fields.repeats("num_experts")
    chosen = min(fields.count("moe_top_k", default=2), experts)
    routed = layers // every
    part.mixer(layers, hidden, heads)
    part.mlp(layers - routed, hidden, width)
    part.norm(hidden, layers=layers, count=2)
    part.linear("router", hidden, experts, bias=False, layers=routed)
    for inputs, outputs, role in ((hidden, width, "ffn_up"), (width, hidden, "ffn_down")):
        part.place("expert", role, "expert", outputs, inputs, layers=routed, count=experts)
    part.vector(hidden, "bias", layers=routed)
    if routed:
        shape = {"expert_count": experts, "experts_per_token": chosen, "expert_width": width}
        part.feed_forward.append(FeedForwardLayer("moe", routed, "text", is_gated=False, **shape))


def body(part: Part, fields: Fields, plan: Plan, hidden: int, layers: int) -> None:
    heads, model_type = fields.count("n_heads", "n_head", "num_attention_heads"), fields.text("model_type")
    width = fields.count("hidden_dim", "n_inner", "intermediate_size")
    if fields.raw("feed_forward_type") in ("geglu", "reglu"):
        part.mixer(layers, hidden, heads)
        part.mlp(layers, hidden, width, gated=True, fused=True, bias=False)
        part.vector(hidden, "bias", layers=layers)
        part.norm(hidden, layers=layers, count=2)
        return
    if _is_nomic_moe(fields):
        nomic_experts(part, fields, hidden, layers, heads, width)
        return
    if plan.layers == "gated":
        has_bias = model_type in ("gte", "new")
        part.mixer(layers, hidden, heads, bias=has_bias)
        part.mlp(layers, hidden, width, gated=True, bias=False)
        part.vector(hidden if has_bias else 0, "bias", layers=layers)
        part.norm(hidden, layers=layers, count=2)
        return
    is_decoder = fields.flag("is_decoder")
    crosses = is_decoder and fields.flag("add_cross_attention")
    mechanism = "full" if is_decoder else "bidirectional"
    bias = fields.flag("use_bias") if model_type == "big_bird" else True
    kind = "full" if is_decoder else None
    part.block(layers, hidden, width, heads, mechanism=mechanism, kind=kind, bias=bias, output_bias=True)
    if crosses:
        part.mixer(layers, hidden, heads, mechanism="cross", kind="cross")
        part.norm(hidden, layers=layers)
    if plan.layers == "pre-norm":
        part.norm(hidden)
    if model_type == "mpnet":
        part.embedding("position_embedding", fields.size("relative_attention_num_buckets"), heads)
    if model_type == "lilt":
        narrow = hidden // fields.count("channel_shrink_ratio")
        part.linear("attention_layout", narrow, narrow, layers=layers, count=4)
        part.linear("ffn_up", narrow, width // fields.count("channel_shrink_ratio"), layers=layers)
        part.linear("ffn_down", width // fields.count("channel_shrink_ratio"), narrow, layers=layers)
        part.norm(narrow, layers=layers, count=2)
    if model_type == "deberta-v2":
        disentangled(part, fields, hidden, layers)


def _has_pooler(architecture: str, plan: Plan) -> bool:
    if plan.always_pools:
        return True
    if "ForSequenceClassification" in architecture:
        return plan.classifies == "pooled"
    with_pooler = ("Model", "ForPreTraining", "ForMultipleChoice", "ForNextSentencePrediction")
    return architecture.endswith(with_pooler) and not architecture.endswith("LMHeadModel")


def head(
    part: Part, fields: Fields, plan: Plan, architecture: str, hidden: int, embedding_size: int, tied: bool
) -> bool:
    """The head of this class; says whether it projects to the vocabulary."""
    model_type = fields.text("model_type")
    if plan.has_pooler and _has_pooler(architecture, plan):
        part.linear("pooler", hidden, hidden)
    is_electra_detector = architecture.startswith("Electra") and architecture.endswith("ForPreTraining")
    if is_electra_detector:
        part.linear("pooler", hidden, hidden)
        part.linear("head", hidden, 1)
    elif architecture.endswith(("ForMaskedLM", "ForPreTraining", "LMHeadModel", "ForCausalLM", "Decoder")):
        if plan.transforms_head:
            inner = (
                hidden if fields.text("model_type") == "deberta-v2" and not fields.flag("legacy") else embedding_size
            )
            part.linear("head_transform", hidden, inner)
            part.norm(inner)
        part.vector(fields.count("vocab_size"), "bias")
        part.linear("head", embedding_size, 0 if tied else fields.count("vocab_size"), bias=plan.unties_bias)
        if architecture.endswith("ForPreTraining"):
            part.linear("head", hidden, 2)
        return True
    elif "ForSequenceClassification" in architecture or architecture.endswith("ForMultipleChoice"):
        chooses = architecture.endswith("ForMultipleChoice")
        summarises = model_type != "roformer" and fields.flag("summary_use_proj", default=True)
        if (not plan.has_pooler and (summarises or not chooses)) or (plan.classifies == "dense" and not chooses):
            part.linear("pooler", hidden, hidden)
        part.linear("head", hidden, label_count(fields) if "Sequence" in architecture else 1)
    elif architecture == "BigBirdForQuestionAnswering":
        raise UnknownAnatomy("class 'BigBirdForQuestionAnswering' is not described yet")
    elif architecture.endswith(("ForTokenClassification", "ForQuestionAnswering", "ForNextSentencePrediction")):
        part.linear("head", hidden, 2 if architecture.endswith("NextSentencePrediction") else label_count(fields))
    return False
