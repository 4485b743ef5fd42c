"""What a model reads besides text: how its towers run, and how many tokens an image or a second of sound becomes.

`with_towers` adds the `towers` of an anatomy from its rows and its config. Rules are by the architecture of the tower, never by a model's
name; an architecture without a rule has no row, and a scenario with images is then unknown. Shapes, defaults and what is alive at once were
read from the modelling and processing code of transformers 5.23 and are held to it by tests/oracle/inference.csv.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.rows import Anatomy, AttentionLayer, ContradictoryConfig, FeedForwardLayer, Tower, UnknownAnatomy
from pipeline.anatomy.towers import pair

_TEXT = ("text", "decoder")


@dataclass(frozen=True)
class Shape:
    """A component's layers, as its family's reader described them."""

    hidden: int
    width: int
    is_gated: bool
    heads: int
    head_dim: int


def with_towers(fields: Fields, anatomy: Anatomy) -> Anatomy:
    """The same anatomy with its towers; without them where the config does not say enough for a rule."""
    rule = RULES.get(anatomy.model_type)
    try:
        towers = tuple(rule(fields, anatomy)) if rule else _encoder(fields, anatomy)
    except (UnknownAnatomy, ContradictoryConfig):
        return anatomy
    towers = tuple(t for t in towers if t is not None)
    alone = next((t for t in towers if t.reader == "none"), None)
    if alone and anatomy.max_context_tokens is None and alone.component == "vision":
        tokens = alone.tokens_each or alone.default_pixels // max(alone.pixels_each, 1)
        return replace(anatomy, towers=towers, max_context_tokens=tokens + alone.class_tokens or None)
    return replace(anatomy, towers=towers)


def shape_of(anatomy: Anatomy, component: str) -> Shape:
    """Of the component's most common layer."""
    attention = [a for a in anatomy.attention if a.component == component and a.head_count]
    blocks = [f for f in anatomy.feed_forward if f.component == component and f.width]
    if not attention or not blocks:
        raise UnknownAnatomy(f"no {component} layers")
    mixer: AttentionLayer = max(attention, key=lambda a: a.layer_count)
    block: FeedForwardLayer = max(blocks, key=lambda f: (f.layer_count, f.width))
    hidden = max(
        (
            t.in_features or 0
            for t in anatomy.tensors
            if t.component == component and t.role in ("ffn_up", "ffn_gate_up")
        ),
        default=0,
    )
    return Shape(hidden, block.width, block.is_gated, mixer.head_count, mixer.head_dim)


def plain(anatomy: Anatomy, component: str, activation: str, **facts) -> Tower:
    """A tower of ViT's plan: in a layer its input, the residual, the norm's output, and the embeddings before the first layer."""
    shape = shape_of(anatomy, component)
    facts = {"reader": "language-model", "grid": "fixed", "hidden_tensors": 4, "rotary_tensors": 0} | facts
    return Tower(
        component,
        hidden_size=shape.hidden,
        width=shape.width,
        is_gated=shape.is_gated,
        activation=activation,
        **facts,
    )


# ---- images


def vision(fields: Fields) -> Fields:
    """The tower's config; where it is silent, what its class in the library defaults to. Without one the default of the whole's class."""
    whole = class_defaults().get(fields.text("model_type", default=""), {})
    default = whole.get("vision_config")
    stated = fields.inner("vision_config")
    if stated is None:
        return Fields(default or {**whole, **_stated(fields)}, fields.where)
    default = default or {}
    own = class_defaults().get(stated.text("model_type", default=default.get("model_type", "")), {})
    if not own or "vision_config" in own:  # older files name the whole here
        own = default
    return Fields({**own, **_stated(stated)}, stated.where)


def _stated(fields: Fields) -> dict:
    return {name: value for name, value in fields.config.items() if value is not None}


def activation(fields: Fields) -> str:
    return fields.text("hidden_act", "hidden_activation")


def alone(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """ViT, DeiT, DINO: nothing follows. Those that stretch their positions take images of any size."""
    inner = vision(fields)
    patch, image = pair(inner, "patch_size"), pair(inner, "image_size")
    registers = inner.count("num_register_tokens", default=0, least=0)
    area, tokens = patch[0] * patch[1], (image[0] // patch[0]) * (image[1] // patch[1])
    facts = {"tokens_each": tokens}
    if anatomy.model_type.startswith("dino"):
        facts = {"grid": "dynamic", "pixels_each": area, "default_pixels": tokens * area}
    extra = 2 if anatomy.model_type == "deit" else 1
    channels = inner.count("num_channels", default=3)
    return [
        plain(
            anatomy,
            "vision",
            activation(inner),
            reader="none",
            input_elements=channels * area,
            class_tokens=extra + registers,
            **facts,
        )
    ]


def pairs(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """CLIP and SigLIP: an image and a text, each through its own encoder, the image first."""
    inner = vision(fields)
    is_siglip = anatomy.model_type == "siglip"
    patch, image = pair(inner, "patch_size"), pair(inner, "image_size")
    tokens = (image[0] // patch[0]) * (image[1] // patch[1])
    named = activation(inner)
    hidden = shape_of(anatomy, "vision").hidden
    facts = {"tokens_each": tokens, "class_tokens": 0 if is_siglip else 1, "output_elements": hidden}
    return [plain(anatomy, "vision", named, reader="none", input_elements=3 * patch[0] * patch[1], **facts)]


def per_patch(anatomy: Anatomy, merged: int, copies: int = 1) -> int:
    """Elements of the language model's width for each token of the tower."""
    return -(-copies * anatomy.hidden_size // max(merged, 1))


def packed(
    extra: int, *, deepstack: bool = False, position_copies: int = 0
) -> Callable[[Fields, Anatomy], list[Tower]]:
    """Qwen-VL and GLM-V: patches over two frames in one long row, rotated in fp32; merge² of them make a token of the prompt."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, merge = inner.count("patch_size"), inner.count("spatial_merge_size")
        frames, shape = inner.count("temporal_patch_size"), shape_of(anatomy, "vision")
        merged = merge * merge
        deep = len(inner.items("deepstack_visual_indexes") or (8, 16, 24)) if deepstack else 0
        return [
            plain(
                anatomy,
                "vision",
                activation(inner),
                grid="dynamic",
                rotary_tensors=17 + extra + position_copies,
                input_elements=3 * frames * patch * patch,
                table_elements=4 * shape.head_dim + 8,
                kept_elements=per_patch(anatomy, merged, deep),
                output_elements=shape.hidden + per_patch(anatomy, merged, 2 + 2 * deep),
                pixels_each=patch * patch,
                merged_tokens=merged,
            )
        ]

    return read


def pooled(tokens: int, *, factor: bool = False) -> Callable[[Fields, Anatomy], list[Tower]]:
    """SigLIP towers on images of one size, pooled to a fixed number of tokens, or all of them (tokens = 0)."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, image = inner.count("patch_size"), inner.count("image_size")
        each = (image // patch) ** 2
        text = fields.count("mm_tokens_per_image", default=tokens) if factor else tokens or each
        hidden = shape_of(anatomy, "vision").hidden
        named = activation(inner)
        outputs = hidden + -(-text * anatomy.hidden_size // each)
        facts = {"tokens_each": each, "text_tokens_each": text, "output_elements": outputs}
        return [plain(anatomy, "vision", named, input_elements=3 * patch * patch, **facts)]

    return read


def llava(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """CLIP's tower read before its last layer, the class token left out; SigLIP or Pixtral where the config names them."""
    inner = vision(fields)
    kind = inner.text("model_type", default="clip_vision_model")
    if kind == "pixtral":
        return pixtral(fields, anatomy)
    is_clip = kind != "siglip_vision_model"
    if "anyres" in fields.text("image_aspect_ratio", default=""):
        raise UnknownAnatomy("images are cut into tiles by code of the checkpoint")
    patch, image = inner.count("patch_size"), inner.count("image_size")
    each = (image // patch) ** 2
    hidden = shape_of(anatomy, "vision").hidden
    facts = {"tokens_each": each, "text_tokens_each": each, "class_tokens": int(is_clip)}
    return [
        plain(
            anatomy,
            "vision",
            activation(inner),
            input_elements=3 * patch * patch,
            output_elements=2 * hidden + anatomy.hidden_size,
            **facts,
        )
    ]


def pixtral(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """All images in one row under a mask of blocks; Mistral's own merge of patches, a token at the end of each row."""
    inner = vision(fields)
    patch, shape = inner.count("patch_size"), shape_of(anatomy, "vision")
    merge = fields.count("spatial_merge_size", default=1 if anatomy.model_type == "llava" else 2)
    merged = merge * merge
    return [
        plain(
            anatomy,
            "vision",
            activation(inner),
            grid="dynamic",
            hidden_tensors=5,
            input_elements=3 * patch * patch,
            table_elements=2 * shape.head_dim + 8,
            square_elements=1,
            output_elements=shape.hidden + per_patch(anatomy, merged, 2),
            pixels_each=patch * patch,
            merged_tokens=merged,
            has_row_ends=True,
        )
    ]


def tiled(longest: int) -> Callable[[Fields, Anatomy], list[Tower]]:
    """Idefics 3 and SmolVLM: the image is enlarged to `longest` tiles a side, and a small picture of the whole is added."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, image = inner.count("patch_size"), inner.count("image_size")
        each, hidden = (image // patch) ** 2, shape_of(anatomy, "vision").hidden
        factor = fields.count("scale_factor", default=2) ** 2
        text = each // factor
        # pixels are copied once, with a mask of a byte each
        facts = {
            "tokens_each": each,
            "text_tokens_each": text,
            "pixels_each": image * image,
            "max_tiles": longest * longest + 1,
        }
        return [
            plain(
                anatomy,
                "vision",
                activation(inner),
                grid="tiles",
                input_elements=6 * patch * patch,
                table_elements=patch * patch // 2,
                output_elements=hidden + -(-text * anatomy.hidden_size // each),
                **facts,
            )
        ]

    return read


def gemma4(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Patches of an image up to pooling² times the tokens that it may become, always padded to that."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, pooling = inner.count("patch_size"), inner.count("pooling_kernel_size")
    text = fields.count("vision_soft_tokens_per_image", default=inner.count("default_output_length", default=280))
    facts = {"tokens_each": text * pooling * pooling, "text_tokens_each": text}
    named = activation(inner)
    outputs = -(-(shape.hidden + anatomy.hidden_size * 2) // (pooling * pooling))
    return [
        plain(
            anatomy,
            "vision",
            named,
            input_elements=3 * patch * patch,
            table_elements=2 * shape.head_dim + 8,
            output_elements=outputs,
            **facts,
        )
    ]


def llama4(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """At most sixteen tiles and the whole, all in one batch; a shuffle makes one token of ratio⁻² patches."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, image = inner.count("patch_size"), inner.count("image_size")
    each, ratio = (image // patch) ** 2, inner.number("pixel_shuffle_ratio") or 1
    text = int(each * ratio * ratio)
    outputs = inner.count("vision_output_dim") + anatomy.hidden_size
    facts = {"tokens_each": each, "text_tokens_each": text, "class_tokens": 1, "max_tiles": 17, "grid": "tiles"}
    facts |= {"input_elements": 3 * patch * patch, "output_elements": -(-text * outputs // each), "rotary_tensors": 17}
    return [
        plain(anatomy, "vision", activation(inner), pixels_each=image * image, table_elements=shape.head_dim, **facts)
    ]


def mllama(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Llama 3.2: every image fills its tiles; all layers' states are kept, some of them joined at the end, and the text reads them by
    cross-attention."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, image = inner.count("patch_size"), inner.count("image_size")
    layers = inner.count("num_hidden_layers") + inner.count("num_global_layers") + 1
    joined = len(inner.items("intermediate_layers_indices") or [])
    facts = {
        "tokens_each": (image // patch) ** 2 + 1,
        "max_tiles": inner.count("max_num_tiles"),
        "pixels_each": image * image,
    }
    # joined states, their stack and its slices; what a block holds is no longer there
    facts["hidden_tensors"] = layers + 3 * joined + 1 - 2 * shape.width // shape.hidden
    facts["output_elements"] = inner.count("vision_output_dim") + anatomy.hidden_size
    facts |= {"reader": "cross-attention", "grid": "tiles", "input_elements": 3 * patch * patch}
    return [plain(anatomy, "vision", activation(inner), **facts)]


def patches(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Gemma 4 without a tower: patches of pixels are projected, with a norm on each side, up to a number of tokens."""
    inner = vision(fields)
    side, hidden = inner.count("model_patch_size"), inner.count("mm_embed_dim")
    text, area = inner.count("num_soft_tokens"), 3 * side * side
    facts = {
        "tokens_each": text,
        "text_tokens_each": text,
        "input_elements": area,
        "hidden_tensors": 1,
        "rotary_tensors": 0,
    }
    outputs = hidden + 2 * anatomy.hidden_size
    return [Tower("vision", "language-model", "fixed", hidden, area, False, "gelu", output_elements=outputs, **facts)]


# ---- sound


def whisper(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Thirty seconds at a time: two frames of features make one of the encoder's positions."""
    shape = shape_of(anatomy, "encoder")
    bins, each = fields.count("num_mel_bins", default=80), fields.count("max_source_positions", default=1500)
    named = fields.text("activation_function", default="gelu")
    facts = {"tokens_each": each, "output_elements": shape.hidden, "input_elements": 2 * bins}
    return [plain(anatomy, "encoder", named, reader="cross-attention", stem_elements=4 * shape.hidden, **facts)]


def waveform(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """wav2vec 2.0 and HuBERT: convolutions over samples, whose first layer is the longest; a token is 20 milliseconds."""
    channels, strides = fields.items("conv_dim") or [512], fields.items("conv_stride") or [5, 2, 2, 2, 2, 2, 2]
    samples = 1
    for stride in strides:
        samples *= stride
    first = channels[0] * samples // strides[0]
    copies = 3 if fields.text("feat_extract_norm", default="group") == "layer" else 2
    facts = {"grid": "context", "stem_elements": copies * first, "input_elements": samples}
    return [plain(anatomy, "audio", fields.text("hidden_act", default="gelu"), reader="none", **facts)]


# ---- encoders of text


def _encoder(fields: Fields, anatomy: Anatomy) -> tuple[Tower, ...]:
    """The encoder of an encoder-decoder; a model that only encodes text has no stage before its text."""
    components = {a.component for a in anatomy.attention}
    if not {"encoder", "decoder"} <= components or not any(a.mechanism == "cross" for a in anatomy.attention):
        return ()
    shape = shape_of(anatomy, "encoder")
    named = next(f.activation for f in anatomy.feed_forward if f.component == "encoder") or "gelu"
    is_t5 = anatomy.norm_kind == "rms" and not anatomy.has_flash_attention
    facts = {
        "grid": "context",
        "output_elements": shape.hidden,
        "input_elements": 4,  # ids of eight bytes
        "hidden_tensors": 4,
        "square_elements": shape.heads if is_t5 else 0,  # the bias of relative positions
    }
    return (plain(anatomy, "encoder", named, reader="cross-attention", **facts),)


RULES: dict[str, Callable[[Fields, Anatomy], list[Tower]]] = {
    **dict.fromkeys(("vit", "deit", "dinov2", "dinov2_with_registers", "dinov3_vit"), alone),
    **dict.fromkeys(("clip", "siglip"), pairs),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "glm4v", "glm4v_moe"), packed(0)),
    "glm5_next": packed(2),
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe"), packed(0, deepstack=True, position_copies=2)),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen4_exp"), packed(0, position_copies=2)),
    "gemma3": pooled(256, factor=True),
    "paligemma": pooled(0),
    **dict.fromkeys(("llava", "video_llava"), llava),
    **dict.fromkeys(("mistral3", "lighton_ocr"), pixtral),
    "idefics3": tiled(4),
    "smolvlm": tiled(4),
    "gemma4": gemma4,
    "gemma4_unified": patches,
    "llama4": llama4,
    "mllama": mllama,
    "whisper": whisper,
    **dict.fromkeys(("wav2vec2", "hubert"), waveform),
}
