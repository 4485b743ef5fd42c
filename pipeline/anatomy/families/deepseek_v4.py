"""DeepSeek-V4: one key-value head whose key is also its value, a window of recent tokens in every layer, and compressed
entries of all that is older. Source: transformers 5.23.0, models/deepseek_v4.

Shapes [out, in], with h the hidden size, d the head dimension, r a compression rate in tokens per entry.
What a layer can read per token: d elements within the window; d / r for ever in a heavily compressed layer (r = 128),
and d / r plus the indexer's key / r in a sparse one (r = 4). A layer of both appears in two rows of attention_layer.
Keys and gates of the tokens that do not fill an entry yet wait beside them: conv_state_elements is the most they take.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.anatomy.families import family
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.parts.builders import Decoder
from pipeline.anatomy.reading import dropout, layer_types
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.anatomy.towers.part import Part, add_parts, layer_count

WINDOW, HEAVY, SPARSE = "sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"
KIND_OF_RATIO = {0: WINDOW, 4: SPARSE, 128: HEAVY}


def kinds(fields: Fields, layers: int) -> list[str]:
    """From `layer_types`, or the older `compress_ratios`, whose entries beyond the layers are prediction layers'."""
    types = fields.items("layer_types")
    if types is not None:
        return layer_types(Fields({"layer_types": types[:layers]}, fields.where), layers, known=(WINDOW, HEAVY, SPARSE))
    ratios = fields.items("compress_ratios")
    if ratios is None:
        return [HEAVY if i < 2 or i % 2 == 0 else SPARSE for i in range(layers)]
    if len(ratios) < layers or any(not isinstance(r, int) or r not in KIND_OF_RATIO for r in ratios):
        raise UnknownAnatomy(f"{fields.where}.compress_ratios does not describe {layers} layers")
    return [KIND_OF_RATIO[r] for r in ratios[:layers]]


@family("deepseek_v4", "deepseek_ref")
def deepseek_v4(fields: Fields) -> Anatomy:
    decoder = Decoder(fields)
    layers = decoder.layers
    decoder.embed()
    types = kinds(fields, layers)
    attend(decoder, fields, types)
    hyper_connections(decoder, fields)
    hyper_head(decoder, fields)
    moe(decoder, fields)
    types = fields.items("mlp_layer_types")
    hashed = fields.count("num_hash_layers", default=3, least=0) if types is None else types[:layers].count("hash_moe")
    if hashed > layers:
        raise ContradictoryConfig(f"{fields.where}: {hashed} hash layers of {layers}")
    decoder.store("router bias buffers", (layers - hashed) * routed_experts(fields))
    decoder.store("hash routing tables", hashed * decoder.vocab * chosen_experts(fields))
    decoder.ends()
    stages = store_prediction_layers(decoder, fields)
    vision = fields.inner("vision_config")
    if vision is not None:  # the router has a bias for images in every layer, and hash layers have one for text too
        experts = routed_experts(fields)
        decoder.store("router biases for images", (layers + stages + hashed) * experts)
    text = decoder.build(has_flash_attention=False, attention_dropout=dropout(fields, "attention_dropout"))
    return text if vision is None else add_parts(fields, text, tower(vision, decoder.hidden, vectors=4))


def hyper_connections(decoder: Decoder, fields: Fields) -> None:
    """Two in each layer: the streams' mixing weights from their concatenation, a base and three scales."""
    streams = fields.count("hc_mult", default=4)
    mixed = streams * streams + 2 * streams
    decoder.parameter("other", "hyper_connection", decoder.layers, mixed * streams * decoder.hidden, 2)
    decoder.vector("hyper_connection", decoder.layers, mixed + 3, 2, tensor_class="other")


def hyper_head(decoder: Decoder, fields: Fields) -> None:
    streams = fields.count("hc_mult", default=4)
    decoder.parameter("other", "hyper_connection", 1, streams * streams * decoder.hidden)
    decoder.vector("hyper_connection", 1, streams + 1, tensor_class="other")


def store_prediction_layers(decoder: Decoder, fields: Fields) -> int:
    """What checkpoints hold to predict further tokens: layers of window attention that end in a head of their own.

    Each has two projections [h, h] and three norms. A checkpoint with `dspark_target_layer_ids` has a draft of as many
    stages instead: [h, stages·h] and a norm at its start, and at its end a norm, a Markov head (two matrices of the
    vocabulary by its rank) and a confidence of h + rank. Returns the number of layers or stages. Source: SGLang's DeepseekV4ForCausalLMDSpark; the published
    totals of DeepSeek-V4-Flash, Pro, Flash-0731 and Pro-DSpark agree.
    """
    hidden, count = decoder.hidden, fields.repeats("num_nextn_predict_layers", default=1, least=0)
    targets = fields.items("dspark_target_layer_ids") or []
    if len(targets) > decoder.layers:
        raise ContradictoryConfig(f"{fields.where}.dspark_target_layer_ids names more layers than there are")
    one = Decoder(fields, layers=len(targets) or min(count, 1))
    one.component = "mtp"
    attend(one, fields, [WINDOW] * one.layers)
    hyper_connections(one, fields)
    moe(one, fields)
    one.norm(one.layers, each=2)
    hyper_head(one, fields)
    bias = one.layers * routed_experts(fields)
    if targets:
        rank = fields.count("dspark_markov_rank")
        one.linear("other", "draft_projection", 1, hidden, len(targets) * hidden)
        one.norm(1, each=3)
        one.linear("other", "markov", 1, decoder.vocab, rank, each=2)
        one.vector("confidence", 1, rank)
        decoder.store("draft stages", sum(t.element_count for t in one.tensors) + bias)
    elif count:
        one.linear("other", "mtp_projection", 1, hidden, hidden, each=2)
        one.norm(1, each=3)
        decoder.store("multi-token prediction layers", count * (sum(t.element_count for t in one.tensors) + bias))
        decoder.store("embedding and head of prediction layers", count * 2 * decoder.vocab * hidden)
    times = 1 if targets else count
    decoder.predicting = [replace(t, layer_count=times * t.layer_count) for t in one.tensors if times]
    return len(targets) or count


def attend(decoder: Decoder, fields: Fields, types: list[str]) -> None:
    layers, hidden, linear = decoder.layers, decoder.hidden, decoder.linear
    heads, dim = fields.count("num_attention_heads"), fields.count("head_dim", default=512)
    rank = fields.count("q_lora_rank", default=1024)
    groups, out_rank = fields.count("o_groups", default=8), fields.count("o_lora_rank", default=1024)
    linear("attention", "mla_q_a", layers, rank, hidden)
    decoder.norm(layers, rank)
    linear("attention", "mla_q_b", layers, heads * dim, rank)
    linear("attention", "attention_kv", layers, dim, hidden)
    decoder.norm(layers, dim)
    grouped = fields.divide(heads * dim, groups, "attention width")
    linear("attention", "attention_o_a", layers, groups * out_rank, grouped, operator="linear-subclass")
    linear("attention", "attention_o", layers, hidden, groups * out_rank)
    decoder.vector("attention_sink", layers, heads, tensor_class="attention")
    shape = {"head_count": heads, "kv_head_count": 1, "head_dim": dim, "value_head_dim": dim}
    window = fields.count("sliding_window", default=128)
    decoder.mixer(
        kind="sliding", mechanism="sliding", layer_count=layers, window_tokens=window, elements_per_token=dim, **shape
    )
    for kind, default in ((HEAVY, 128), (SPARSE, 4)):
        if count := types.count(kind):
            rate = compression(fields, kind, default)
            entry = compress(decoder, fields, count, kind, rate, dim, rank)
            cached = fields.divide(entry, rate, "compressed entry")
            pending = 2 * (rate - 1) * entry if kind == HEAVY else 2 * rate * entry + 4 * (rate - 1) * entry
            name = "compressed" if kind == HEAVY else "sparse"
            decoder.mixer(
                kind=name,
                mechanism="mla",
                layer_count=count,
                elements_per_token=cached,
                conv_state_elements=pending,
                **shape,
            )


def compression(fields: Fields, kind: str, default: int) -> int:
    rates = fields.inner("compress_rates")
    legacy = "compress_rate_hca" if kind == HEAVY else "compress_rate_csa"
    if fields.raw(legacy) is not None:
        return fields.count(legacy)
    return default if rates is None else rates.count(kind, default=default)


def compress(decoder: Decoder, fields: Fields, layers: int, kind: str, rate: int, dim: int, rank: int) -> int:
    """The compressor's tensors; elements of one compressed entry. Sparse layers overlap two series of entries."""
    hidden, linear = decoder.hidden, decoder.linear
    width = dim if kind == HEAVY else 2 * dim
    linear("attention", "compressor", layers, width, hidden, each=2)
    decoder.parameter("attention", "compressor_positions", layers, rate * width)
    decoder.norm(layers, dim)
    if kind == HEAVY:
        return dim
    heads, key = fields.count("index_n_heads", default=64), fields.count("index_head_dim", default=128)
    linear("attention", "indexer_compressor", layers, 2 * key, hidden, each=2)
    decoder.parameter("attention", "compressor_positions", layers, rate * 2 * key)
    decoder.norm(layers, key)
    linear("attention", "indexer_q", layers, heads * key, rank)
    linear("attention", "indexer_weights", layers, heads, hidden)
    return dim + key


def moe(decoder: Decoder, fields: Fields) -> None:
    width = fields.count("moe_intermediate_size", "intermediate_size")
    shared = width * fields.count("n_shared_experts", default=1, least=0)
    decoder.moe(
        decoder.layers,
        routed_experts(fields),
        chosen_experts(fields),
        width,
        shared_width=shared,
        shared_bias=fields.flag("mlp_bias"),
    )


def routed_experts(fields: Fields) -> int:
    return fields.count("n_routed_experts", "num_local_experts", default=256)


def chosen_experts(fields: Fields) -> int:
    return fields.count("num_experts_per_tok", default=6)


def tower(fields: Fields, text: int, *, vectors: int = 3) -> list[Part]:
    """A ViT with RMS norms, rotary positions and gated feed-forwards; two matrices from joined patches to the text's width,
    and vectors that start an image, end its rows and end it (and a fourth that pads)."""
    part, joint = Part("vision", "vision-tower"), Part("projector", "projector")
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    patch, side = fields.count("patch_size", default=14), fields.count("downsample_ratio", default=3)
    part.linear("patch_embedding", 3 * patch * patch, hidden)
    part.mixer(layers, hidden, fields.count("num_attention_heads"), fused=True)
    part.mlp(layers, hidden, fields.count("intermediate_size"), gated=True, bias=False)
    part.norm(hidden, layers=layers, count=2, bias=False)
    part.norm(hidden, bias=False)
    part.hidden, part.layers = hidden, layers
    joint.linear("projector_up", side * side * hidden, text)
    joint.linear("projector_down", text, text)
    joint.vector(text, "image_newline", count=vectors)
    return [part, joint]
