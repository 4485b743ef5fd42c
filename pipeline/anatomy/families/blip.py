"""Image-to-text models of several designs: BLIP's text decoder, the query transformers of BLIP-2, and early VLMs."""

from __future__ import annotations

from pipeline.anatomy.builder import add_parts, assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.families.vision_language import Plan, language_model
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import architecture_of, has_head, nested, ratio, sizes
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy, shown
from pipeline.anatomy.towers import vision_tower
from pipeline.anatomy.towers.part import Part
from pipeline.base.bounds import MOST_REPEATS

BERT = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}


@family("blip")
def read_blip(fields: Fields) -> Anatomy:
    """A BERT that attends to the image in every layer; the bare class projects both sides into one space."""
    name = architecture_of(fields) or "BlipModel"
    if name not in ("BlipModel", "BlipForConditionalGeneration"):
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    inner = nested(fields, "text_config").filled()
    tower = vision_tower(nested(fields, "vision_config"), "blip_vision_model")
    hidden, layers, heads = (
        inner.count("hidden_size"),
        inner.repeats("num_hidden_layers"),
        inner.count("num_attention_heads"),
    )
    vocabulary, text, joint = inner.count("vocab_size"), Part("text"), Part("projector", "projector")
    text.embedding("embedding", vocabulary, hidden)
    text.embedding("position_embedding", inner.count("max_position_embeddings"), hidden)
    text.norm(hidden)
    text.block(layers, hidden, inner.count("intermediate_size"), heads, kind="full", mechanism="full")
    text.mixer(layers, hidden, heads, kind="cross", mechanism="cross", kv_inputs=inner.count("encoder_hidden_size"))
    text.norm(hidden, layers=layers)
    text.linear("pooler" if name == "BlipModel" else "head_transform", hidden, hidden)
    if name == "BlipModel":
        projection = fields.size("projection_dim")
        joint.linear("projector", tower[0].hidden, projection, bias=False)
        joint.linear("projector", hidden, projection, bias=False)
        joint.vector(1, "logit_scale")
    else:
        tied = any(part.flag("tie_word_embeddings") for part in (fields, inner))
        text.norm(hidden)
        text.vector(vocabulary, "bias")
        text.linear("head", hidden, 0 if tied else vocabulary, bias=False)
    return assemble(
        fields,
        [*tower, joint, text],
        hidden=hidden,
        layers=layers,
        architecture=name,
        vocab_size=vocabulary,
        is_head_tied=name != "BlipModel" and tied,
        max_context_tokens=inner.count("max_position_embeddings"),
        stored_extra={"head stored again": vocabulary * hidden, "position ids": inner.count("max_position_embeddings")},
    )


@family("blip-2", "instructblip", "instructblipvideo")
def read_query_transformer(fields: Fields) -> Anatomy:
    """Learned queries attend to the image in every second layer; their outputs enter the language model."""
    name = architecture_of(fields) or ""
    if has_head(name) and not name.endswith("ForConditionalGeneration"):
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    embeds_text = fields.text("model_type") != "blip-2"
    tower = vision_tower(nested(fields, "vision_config"), "blip_2_vision_model")
    text = language_model(fields, Plan("", "opt", text_alone=True))
    former = query_former(nested(fields, "qformer_config"), fields.size("num_query_tokens"), embeds_text=embeds_text)
    former.linear("projector", former.hidden, text.hidden_size)
    return add_parts(fields, text, [*tower, former])


def query_former(fields: Fields, queries: int, *, embeds_text: bool = False) -> Part:
    """Layers whose queries are learned; every n-th of them attends to what a tower made."""
    inner = fields.filled()
    hidden, layers, heads = (
        inner.count("hidden_size"),
        inner.repeats("num_hidden_layers"),
        inner.count("num_attention_heads"),
    )
    width, every = inner.count("intermediate_size"), inner.count("cross_attention_frequency", default=2)
    former = Part("projector", "projector")
    former.parameter(queries * hidden, "queries")
    former.norm(hidden)
    former.block(layers, hidden, width, heads)
    crossing = -(-layers // every)
    former.mixer(crossing, hidden, heads, kv_inputs=inner.count("encoder_hidden_size", default=1408))
    former.norm(hidden, layers=crossing)
    if embeds_text:
        former.embedding("embedding", inner.count("vocab_size"), hidden)
        former.embedding("position_embedding", inner.count("max_position_embeddings"), hidden)
    if embeds_text or inner.flag("use_qformer_text_input"):
        former.mlp(layers, hidden, width)
        former.norm(hidden, layers=layers)
    former.hidden = hidden
    return former


@family("idefics")
def read_idefics(fields: Fields) -> Anatomy:
    """Llama with gated cross-attention blocks between its layers."""
    hidden, layers = fields.count("hidden_size"), fields.repeats("num_hidden_layers")
    fields = fields.filled()
    heads, width, vocabulary = (
        fields.count("num_attention_heads"),
        fields.count("intermediate_size"),
        fields.count("vocab_size"),
    )
    extra = fields.size("additional_vocab_size", least=0)
    resampler = fields.inner("perceiver_config")
    if fields.flag("use_resampler") or (resampler and resampler.flag("use_resampler")) or fields.flag("qk_layer_norms"):
        raise UnknownAnatomy(f"{fields.where}: resamplers and normed queries are not described yet")
    tower = vision_tower(Fields({"embed_dim": 768, **nested(fields, "vision_config").config}), "idefics_vision")
    crossing = layers // fields.size("cross_layer_interval")
    text = Part("text")
    text.embedding("embedding", vocabulary, hidden)
    text.embedding("embedding", extra, hidden)
    text.mixer(layers, hidden, heads, kind="full", mechanism="full", bias=False)
    text.mixer(crossing, hidden, heads, kind="cross", mechanism="cross", kv_inputs=tower[0].hidden, bias=False)
    text.mlp(layers + crossing, hidden, width, gated=True, bias=False)
    text.norm(hidden, layers=layers + crossing, count=2, bias=False)
    text.norm(hidden, bias=False)
    gate = 1 if fields.text("alpha_type") == "float" else hidden
    text.vector(gate, "gate", layers=crossing, count=2)
    tied = fields.flag("tie_word_embeddings")
    text.linear("head", hidden, 0 if tied else vocabulary, bias=False, operator="linear-subclass")
    text.linear("head", hidden, 0 if tied else extra, bias=False)
    return assemble(
        fields,
        [*tower, text],
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary + extra,
        is_head_tied=tied,
        norm_kind="rms",
        max_context_tokens=fields.count("max_position_embeddings", default=None),
    )


@family("git")
def read_git(fields: Fields) -> Anatomy:
    """A BERT that reads image tokens before its own."""
    hidden, layers, heads = (
        fields.count("hidden_size"),
        fields.repeats("num_hidden_layers"),
        fields.count("num_attention_heads"),
    )
    fields = fields.filled()
    vision = {
        "patch_size": 16,
        **nested(fields, "vision_config", required=False).config,
        "model_type": "clip_vision_model",
    }
    tower = vision_tower(Fields(vision), "clip_vision_model")
    text, joint, vocabulary = Part("text"), Part("projector", "projector"), fields.count("vocab_size")
    text.embedding("embedding", vocabulary, hidden)
    text.embedding("position_embedding", fields.count("max_position_embeddings"), hidden)
    text.norm(hidden)
    text.block(layers, hidden, fields.count("intermediate_size"), heads, kind="full", mechanism="full")
    joint.linear("projector", tower[0].hidden, hidden)
    joint.norm(hidden)
    joint.parameter(
        tower[0].hidden * fields.count("num_image_with_embedding", default=0, least=0), "position_embedding"
    )
    predicts, tied = (
        (architecture_of(fields) or "GitForCausalLM").endswith("ForCausalLM"),
        fields.flag("tie_word_embeddings"),
    )
    if predicts:
        text.linear("head", hidden, 0 if tied else vocabulary, bias=False)
        text.vector(vocabulary, "bias")
    return assemble(
        fields,
        [*tower, joint, text],
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary,
        is_head_tied=predicts and tied,
        max_context_tokens=fields.count("max_position_embeddings"),
    )


@family("kosmos-2")
def read_kosmos(fields: Fields) -> Anatomy:
    """A decoder with norms inside its blocks; learned queries bring the image in."""
    inner = nested(fields, "text_config").filled()
    tower = vision_tower(nested(fields, "vision_config", required=False), "kosmos_2_vision_model")
    hidden, layers, heads = inner.count("embed_dim"), inner.repeats("layers"), inner.count("attention_heads")
    if inner.flag("add_cross_attention"):
        raise UnknownAnatomy(f"{inner.where}: cross-attention is not described yet")
    width, vocabulary, text, joint = (
        inner.count("ffn_dim"),
        inner.count("vocab_size"),
        Part("text"),
        Part("projector", "projector"),
    )
    text.embedding("embedding", vocabulary, hidden)
    text.block(layers, hidden, width, heads, kind="full", mechanism="full")
    text.norm(hidden, layers=layers)
    text.norm(width, layers=layers)
    text.norm(hidden)
    joint.parameter(fields.size("latent_query_num") * hidden, "queries")
    joint.linear("projector", tower[0].hidden, hidden)
    joint.mixer(1, hidden, heads)
    tied = any(part.flag("tie_word_embeddings") for part in (fields, inner))
    has_head = not (architecture_of(fields) or "").endswith("Model")
    text.linear("head", hidden, vocabulary if has_head and not tied else 0, bias=False)
    return assemble(
        fields,
        [*tower, joint, text],
        hidden=hidden,
        layers=layers,
        vocab_size=vocabulary,
        is_head_tied=tied and has_head,
        max_context_tokens=inner.count("max_position_embeddings"),
    )


@family("florence2")
def read_florence(fields: Fields) -> Anatomy:
    """DaViT (attention over windows, then over channels) before a BART."""
    from pipeline.anatomy.families.seq2seq import read_bart

    inner = nested(fields, "text_config")
    bart = {"d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, **inner.config, "model_type": "bart"}
    bart |= {"architectures": ["BartForConditionalGeneration"], "tie_word_embeddings": True}
    text, vision = read_bart(Fields(bart, inner.where)), nested(fields, "vision_config", required=False)
    # the names that these have in the code beside Microsoft's checkpoints, or in Transformers
    named = "dim_embed" if vision.raw("dim_embed") is not None else "embed_dim"
    widths, depths = sizes(vision, named, least=1), sizes(vision, "depths")
    places, times_seen = vision.inner("image_pos_embed") or vision, vision.inner("visual_temporal_embedding") or vision
    kernels = sizes(vision, "patch_size", least=1)
    prenorm = vision.items("patch_prenorm") or [False, True, True, True]
    heads = sizes(vision, "num_heads", least=1)
    if (
        not len(widths) == len(depths) == len(kernels) == len(prenorm) == len(heads) <= 100
        or sum(depths) > MOST_REPEATS
        or not widths
    ):
        raise ContradictoryConfig(f"{vision.where}: its lists of stages do not agree")
    part, times, before = (
        Part("vision", "vision-tower"),
        ratio(vision, "mlp_ratio", 4.0),
        vision.count("in_channels", "in_chans", default=3),
    )
    bias = vision.flag("qkv_bias", default=True)
    for width, depth, kernel, first, count in zip(widths, depths, kernels, prenorm, heads, strict=True):
        part.conv(width, before, kernel, kernel)
        part.norm(before if first else width)
        both = 2 * depth
        part.conv(width, 1, 3, 3, layers=both, count=2)
        part.mixer(both, width, count, fused=True, bias=bias, output_bias=True)
        part.mlp(both, width, int(width * times))
        part.norm(width, layers=both, count=2)
        before = width
    joint, projection = Part("projector", "projector"), vision.count("projection_dim", default=1024)
    joint.linear("projector", before, projection, bias=False)
    joint.norm(projection)
    rows = places.count("max_pos_embeddings", "max_position_embeddings", default=50)
    joint.embedding("position_embedding", rows, before // 2)
    joint.embedding("position_embedding", rows, before - before // 2)
    frames = times_seen.count("max_temporal_embeddings", default=100)
    tied, head = fields.flag("tie_word_embeddings"), Part("decoder")
    head.linear("head", text.hidden_size, 0 if tied else (text.vocab_size or 0), bias=False)
    if not inner.flag("tie_word_embeddings"):  # encoder and decoder have tables of their own beside the shared one
        head.embedding("embedding", text.vocab_size or 0, text.hidden_size, count=2)
    stored = {**text.stored_extra, "waves of frames, which nothing learns": frames * before}
    return add_parts(fields, text, [part, joint, head], is_head_tied=tied, stored_extra=stored)
