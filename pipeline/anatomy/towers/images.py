"""How vision towers run, and how many tokens an image becomes: a rule for each way, by architecture.

Shapes, defaults and what is alive at once were read from the modelling and processing code of transformers 5.23 and are held to it by
tests/oracle/inference.csv.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import pair
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, Tower, UnknownAnatomy
from pipeline.anatomy.towers.shapes import plain, shape_of


def vision(fields: Fields, place: str = "vision_config") -> Fields:
    """The tower's config; where it is silent, what its class in the library defaults to. Without one the default of the whole's class."""
    whole = class_defaults().get(fields.text("model_type", default=""), {})
    default = whole.get(place)
    stated = fields.inner(place)
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


def squares(inner: Fields) -> tuple[int, int, int]:
    """The sides of a patch and of an image, and how many patches fill the image."""
    patch, image = inner.count("patch_size"), inner.count("image_size")
    return patch, image, _whole(inner, image, patch) ** 2


def rectangles(inner: Fields) -> tuple[tuple[int, int], tuple[int, int], int]:
    """The same where either side may differ: height and width."""
    patch, image = pair(inner, "patch_size"), pair(inner, "image_size")
    return patch, image, _whole(inner, image[0], patch[0]) * _whole(inner, image[1], patch[1])


def _whole(inner: Fields, image: int, patch: int) -> int:
    if image < patch:
        raise ContradictoryConfig(f"{inner.where}.image_size is {image}, less than one patch of {patch}")
    return image // patch


def alone(tokens_before: int = 1, *, stretches: bool = False) -> Callable[[Fields, Anatomy], list[Tower]]:
    """ViT, DeiT, DINO: nothing follows. `tokens_before` the patches: of the class, and of what it was distilled from. Those that stretch
    their positions take images of any size."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, _, tokens = rectangles(inner)
        registers = inner.count("num_register_tokens", default=0, least=0)
        area = patch[0] * patch[1]
        facts = {"grid": "dynamic", "pixels_each": area, "default_pixels": tokens * area} if stretches else {}
        channels = inner.count("num_channels")
        return [
            plain(
                anatomy,
                "vision",
                activation(inner),
                reader="none",
                input_elements=channels * area,
                class_tokens=tokens_before + registers,
                **(facts or {"tokens_each": tokens}),
            )
        ]

    return read


def read_by_decoder(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """TrOCR: a decoder attends to every patch of one picture, and to the tokens before them: of the class, in DeiT of what it learned from."""
    inner = vision(fields, "encoder")
    patch, _, tokens = rectangles(inner)
    area, hidden = patch[0] * patch[1], shape_of(anatomy, "vision").hidden
    before = 2 if inner.text("model_type") == "deit" else 1
    facts = {"tokens_each": tokens, "class_tokens": before, "output_elements": hidden}
    elements = inner.count("num_channels") * area
    return [plain(anatomy, "vision", activation(inner), reader="cross-attention", input_elements=elements, **facts)]


def pairs(class_tokens: int) -> Callable[[Fields, Anatomy], list[Tower]]:
    """CLIP and SigLIP: an image and a text, each through its own encoder, the image first."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, _, tokens = rectangles(inner)
        named = activation(inner)
        hidden = shape_of(anatomy, "vision").hidden
        facts = {"tokens_each": tokens, "class_tokens": class_tokens, "output_elements": hidden}
        return [plain(anatomy, "vision", named, reader="none", input_elements=3 * patch[0] * patch[1], **facts)]

    return read


def per_patch(anatomy: Anatomy, merged: int, copies: int) -> int:
    """Elements of the language model's width for each token of the tower."""
    return -(-copies * anatomy.hidden_size // max(merged, 1))


def packed(
    processor_id: str, extra: int = 0, *, deepstack: bool = False, position_copies: int = 0, projected: int = 0
) -> Callable[[Fields, Anatomy], list[Tower]]:
    """Qwen-VL, GLM-V, Kimi K2.5, MiniMax M3: patches in one long row, rotated in fp32; merge² of them make a token of the prompt. `projected`:
    tensors of the text's width that are alive at once where every patch is projected before they are merged."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, shape = inner.count("patch_size"), shape_of(anatomy, "vision")
        told = inner.inner("img_token_compression_config") or inner  # MiniMax says it apart
        merge = told.count("spatial_merge_size", default=None) or pair(inner, "merge_kernel_size")[0]
        frames = told.count("temporal_patch_size", default=1)
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
                stem_elements=projected * anatomy.hidden_size,
                pixels_each=patch * patch,
                merged_tokens=merged,
                processor_id=processor_id,
            )
        ]

    return read


def pooled(processor_id: str, tokens: int = 0, *, factor: bool = False) -> Callable[[Fields, Anatomy], list[Tower]]:
    """SigLIP towers on images of one size, pooled to a fixed number of tokens, or all of them (tokens = 0)."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, _, each = squares(inner)
        text = fields.count("mm_tokens_per_image", default=tokens) if factor else tokens or each
        hidden = shape_of(anatomy, "vision").hidden
        named = activation(inner)
        outputs = hidden + -(-text * anatomy.hidden_size // each)
        facts = {
            "tokens_each": each,
            "text_tokens_each": text,
            "output_elements": outputs,
            "processor_id": processor_id,
        }
        return [plain(anatomy, "vision", named, input_elements=3 * patch * patch, **facts)]

    return read


def llava(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """CLIP's tower read before its last layer, the class token left out; SigLIP or Pixtral where the config names them."""
    inner = vision(fields)
    kind = inner.text("model_type", default="clip_vision_model")
    if kind == "pixtral":
        return pixtral(merge_default=1)(fields, anatomy)
    is_clip = kind != "siglip_vision_model"
    if "anyres" in fields.text("image_aspect_ratio", default=""):
        raise UnknownAnatomy("images are cut into tiles by code of the checkpoint")
    patch, _, each = squares(inner)
    hidden = shape_of(anatomy, "vision").hidden
    facts = {"tokens_each": each, "text_tokens_each": each, "class_tokens": int(is_clip), "processor_id": "clip"}
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


def pixtral(processor_id: str = "pixtral", merge_default: int = 2) -> Callable[[Fields, Anatomy], list[Tower]]:
    """All images in one row under a mask of blocks; Mistral's own merge of patches, a token at the end of each row."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, shape = inner.count("patch_size"), shape_of(anatomy, "vision")
        merge = fields.count("spatial_merge_size", default=merge_default)
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
                max_side_pixels=inner.count("image_size"),
                processor_id=processor_id,
            )
        ]

    return read


def gemma4(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Patches of an image up to pooling² times the tokens that it may become, always padded to that."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, pooling = inner.count("patch_size"), inner.count("pooling_kernel_size")
    text = fields.count("vision_soft_tokens_per_image", default=inner.count("default_output_length", default=280))
    facts = {"tokens_each": text * pooling * pooling, "text_tokens_each": text, "processor_id": "gemma4"}
    facts["pixels_each"] = (patch * pooling) ** 2
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


def patches(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Gemma 4 without a tower: patches of pixels are projected, with a norm on each side, up to a number of tokens."""
    inner = vision(fields)
    side, hidden = inner.count("model_patch_size"), inner.count("mm_embed_dim")
    text, area = inner.count("num_soft_tokens"), 3 * side * side
    facts = {
        "tokens_each": text,
        "text_tokens_each": text,
        "pixels_each": side * side,
        "processor_id": "gemma4",
        "input_elements": area,
        "hidden_tensors": 1,
        "rotary_tensors": 0,
    }
    outputs = hidden + 2 * anatomy.hidden_size
    return [Tower("vision", "language-model", "fixed", hidden, area, False, "gelu", output_elements=outputs, **facts)]
