"""What an anatomy is made of: the rows that every family of architectures is described by.

One `Anatomy` describes the model that a framework would build from a config and an engine would load.
All counts are elements, never bytes. A tensor that is shared (a tied head) is counted once, in the place where
it is first used; `Anatomy.is_head_tied` says that the head is one of those.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.base.bounds import MOST_SHOWN

# The published classes of the census. A tensor belongs to exactly one.
TENSOR_CLASSES = (
    "embedding",  # token, position, token-type and per-layer embeddings
    "head",  # output projection to the vocabulary or to labels, where it is not tied
    "attention",  # every projection of attention, latent ones included
    "feed-forward",  # dense feed-forward
    "expert",  # routed experts
    "shared-expert",  # experts that every token passes
    "router",  # gates of experts, their correction bias if it is a parameter
    "norm",  # norms and every bias vector
    "recurrent",  # state-space, linear-attention and convolutional mixers
    "vision-tower",
    "audio-tower",
    "projector",  # between towers and the language model
    "mtp",  # multi-token prediction layers, where a framework loads them
    "denoiser",  # diffusion transformer or U-Net
    "other",
)

# How an engine sees the tensor, which decides what a quantiser or an adapter may do with it.
OPERATORS = (
    "linear",  # torch.nn.Linear weight, [out_features, in_features]
    "linear-subclass",  # a subclass of nn.Linear or GPT-2's Conv1D: the same shape, skipped by `type(m) is nn.Linear`
    "expert",  # one expert's matrix inside a fused three-dimensional parameter
    "embedding",
    "conv",
    "vector",  # norms, biases, scales, everything with one dimension
    "parameter",  # any other bare parameter
)

# How a layer mixes tokens, which decides what it caches.
MECHANISMS = (
    "full",  # keys and values of every token
    "sliding",  # of the last window_tokens
    "chunked",  # of the current chunk of window_tokens
    "mla",  # one latent per token
    "cross",  # keys and values of the encoder's output, not of generated tokens
    "shared",  # reads another layer's cache, adds none
    "bidirectional",  # an encoder's attention: nothing is cached that is read again
    "recurrent",  # a state of constant size (Mamba, gated delta, RG-LRU, short convolution)
)


# How a recurrent layer computes: which tensors its code in the reference framework holds (tables/facts/recurrence.csv).
RECURRENCES = (
    "mamba",
    "mamba2",
    "gated-delta",
    "gated-delta-fused",  # queries, keys, values and gate in one projection that is taken apart
    "kimi-delta",
    "short-convolution",
    "rg-lru",
    "lightning",
)


@dataclass(frozen=True)
class Tensor:
    """`layer_count × per_layer_count` tensors of one role and shape; [out_features, in_features] where two-dimensional.

    For vectors, convolutions and bare parameters `in_features` is None and `out_features` is the element count of one.
    `role` is a stable fine name that formats and adapters refer to: attention_q, attention_k, attention_v, attention_qkv,
    attention_o, mla_q_a, mla_q_b, mla_kv_a, mla_kv_b, ffn_gate, ffn_up, ffn_gate_up, ffn_down, expert_gate_up,
    expert_gate, expert_up, expert_down, shared_gate, shared_up, shared_down, router, embedding, position_embedding,
    per_layer_embedding, head, norm, bias, ... `component` is text, vision, audio, projector, mtp, encoder, decoder,
    denoiser, text-encoder, vae, ...
    """

    component: str
    tensor_class: str
    role: str
    operator: str
    layer_count: int
    per_layer_count: int
    out_features: int
    in_features: int | None = None

    @property
    def element_count(self) -> int:
        return self.layer_count * self.per_layer_count * self.out_features * (self.in_features or 1)


@dataclass(frozen=True)
class AttentionLayer:
    """A group of layers whose token mixers are alike. `kind` is unique in a model (`full`, `sliding`, `full-2`...).

    `elements_per_token`: elements that ONE layer caches per token (2 × kv_heads × head_dim; kv_lora_rank + rope for a
    latent; 0 where nothing grows). Of a bidirectional layer: those that a decoder's class caches all the same. `state_elements`, `conv_state_elements`: elements of ONE layer per sequence,
    independent of length. `state_dtype_id` is the precision frameworks keep the recurrent state in.

    Recurrent layers: `recurrence` is one of RECURRENCES or None where the code was not read. A state is
    recurrent_head_count × recurrent_key_dim × recurrent_value_dim, a convolution is `convolution_width` channels wide,
    and tokens are worked on in chunks of `chunk_tokens`.

    `blocks`: which layers of the model these are, from 0 on, as numbers with spaces between them, where kinds take turns in
    an order that was read; None where it was not, or where all are alike.
    """

    kind: str
    mechanism: str
    layer_count: int
    component: str = "text"
    head_count: int = 0
    kv_head_count: int = 0
    head_dim: int = 0  # of queries and keys
    value_head_dim: int = 0
    elements_per_token: int = 0
    window_tokens: int | None = None
    state_elements: int = 0
    conv_state_elements: int = 0
    state_dtype_id: str | None = None
    has_qk_norm: bool = False
    has_output_gate: bool = False  # queries are doubled by a gate on attention's output
    recurrence: str | None = None
    recurrent_head_count: int = 0
    recurrent_key_dim: int = 0
    recurrent_value_dim: int = 0
    convolution_width: int = 0
    chunk_tokens: int = 0
    blocks: str | None = None


@dataclass(frozen=True)
class FeedForwardLayer:
    """A group of layers whose feed-forward blocks are alike. Widths are of ONE expert where there are experts."""

    kind: str  # dense, moe, dense-2 ...
    layer_count: int
    component: str = "text"
    width: int = 0  # dense: intermediate size
    is_gated: bool = True
    expert_count: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_width: int = 0  # all shared experts together
    activation: str | None = None  # silu, gelu, gelu_new ... as configs name it


# Who reads what a tower made, and how much of it there is for one input.
READERS = (
    "language-model",  # its tokens are part of the prompt
    "cross-attention",  # a decoder looks at them in layers of their own
    "none",  # nobody: the model ends there, or its halves only meet in a product
)
GRIDS = (
    "fixed",  # every image (or window of sound) has as many tokens
    "tiles",  # an image is cut into tiles of a fixed size
    "dynamic",  # as many tokens as the image has patches
    "context",  # the tokens that are asked for
)


@dataclass(frozen=True)
class Tower:
    """A stage that runs before the text does: a tower of images or sound, or the encoder of an encoder-decoder.

    Counts are elements of the compute precision per token of the tower, unless they say otherwise. A token of the tower is a patch, a
    frame of sound, a token of the encoder's text. Read from the modelling code of transformers, held to it by tests/oracle.
    """

    component: str  # vision | audio | encoder
    reader: str
    grid: str
    hidden_size: int
    width: int  # of the feed-forward block
    is_gated: bool
    activation: str
    hidden_tensors: int  # tensors of the hidden size that are alive beside the feed-forward block's
    rotary_tensors: int  # of the hidden size while queries and keys are rotated in fp32, counted in 16 bits; 0: never
    input_elements: int = 0  # of the pixels or features that a token is made of
    table_elements: int = 0  # positions, rotations, masks
    kept_elements: int = 0  # outputs of layers on the way that are kept to the end
    output_elements: int = 0  # what stays alive while the text runs
    stem_elements: int = 0  # convolutions before the first layer, where they hold most
    square_elements: int = 0  # per pair of tokens: a mask, scores, a bias
    class_tokens: int = 0  # tokens of an image beside its patches
    tokens_each: int = 0  # fixed, tiles: tokens of one image, tile or window
    pixels_each: int = 0  # dynamic: pixels of a patch; tiles: pixels of a tile
    default_pixels: int = 0  # of an image where nobody says; 0: the almanac's default
    max_tiles: int = 0
    text_tokens_each: int = 0  # fixed, tiles: tokens of the prompt for one of them, a window of sound too
    samples_each: int = 0  # of sound, of one window (tiles)
    merged_tokens: int = 0  # dynamic: tokens of the tower that make one of the prompt
    max_side_pixels: int = 0  # longest side that the tower has positions for; 0: any
    processor_id: str | None = (
        None  # how pictures are cut (tables/facts/image_processor.csv); None: not known, or nobody reads its tokens
    )


@dataclass(frozen=True)
class Anatomy:
    """Everything the formulas need to know about one model. Built only from its config (or headers), never its name."""

    model_type: str | None
    architecture: str | None
    hidden_size: int | None  # None, as all that is None here: only tensor headers are at hand
    layer_count: int | None
    vocab_size: int | None
    is_head_tied: bool | None
    norm_kind: str | None  # rms | layer
    tensors: tuple[Tensor, ...]
    attention: tuple[AttentionLayer, ...] = ()
    feed_forward: tuple[FeedForwardLayer, ...] = ()
    towers: tuple[Tower, ...] = ()
    is_block_parallel: bool | None = False  # attention and feed-forward read the same norm (GPT-J, Falcon, Phi)
    has_flash_attention: bool | None = True  # False where the reference implementation only has the eager path
    hidden_dropout: float | None = 0.0  # probabilities that training uses by default
    attention_dropout: float | None = 0.0
    max_context_tokens: int | None = None  # what the config allows, rope scaling included
    trained_context_tokens: int | None = None  # before rope scaling, where the config tells them apart
    # Elements that a checkpoint may hold beyond the loaded parameters, by cause: "tied head stored again",
    # "multi-token prediction layers", "position ids", "router bias buffers". Grades explain published totals by them.
    stored_extra: dict[str, int] = field(default_factory=dict)
    # what is loaded beside the parameters: of files of its own that no published total counts (a codec), or buffers; and a sentence that says so
    apart: tuple[Tensor, ...] = ()
    apart_note: str | None = None
    predicting: tuple[Tensor, ...] = ()  # of the prediction layers among them, where they differ from the last layer
    # layers that predict further tokens, and what they hold beside the embedding and the head, which engines share
    predicting_layer_count: int = 0
    predicting_parameter_count: int = 0

    @property
    def parameter_count(self) -> int:
        return sum(t.element_count for t in self.tensors)

    @property
    def loaded_element_count(self) -> int:
        return self.parameter_count + sum(t.element_count for t in self.apart)

    @property
    def active_parameter_count(self) -> int | None:
        """Parameters that one token passes: all but the routed experts that the router does not choose; None where unknown."""
        routed = sum(t.element_count for t in self.tensors if t.tensor_class == "expert")
        if self.layer_count is None and routed:
            return None
        groups = [f for f in self.feed_forward if f.expert_count]
        shares = {(f.experts_per_token, f.expert_count) for f in groups}
        if len(shares) == 1:  # the same share of every layer's experts, whatever their matrices are
            ((chosen, experts),) = shares
            routed += sum(
                t.element_count for t in self.tensors if t.role == "bias" and t.per_layer_count == experts > 3
            )
            return self.parameter_count - routed + routed * chosen // experts
        chosen = sum(
            f.layer_count * f.experts_per_token * (3 if f.is_gated else 2) * f.expert_width * self.hidden_size
            for f in groups
        )
        return self.parameter_count - routed + min(routed, chosen)


class UnknownAnatomy(ValueError):
    """The config does not determine the model. The message is a reason for people: `no field 'vocab_size'`."""


def shown(value: object) -> str:
    """What somebody's config says, as much of it as a reason repeats."""
    return str(value)[:MOST_SHOWN]


class ContradictoryConfig(ValueError):
    """The config cannot be of any model (negative sizes, heads that do not divide): the record is quarantined."""
