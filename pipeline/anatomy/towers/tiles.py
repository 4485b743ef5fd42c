"""How vision towers run on pictures that are cut into tiles, and how many tokens a tile becomes.

Shapes, defaults and what is alive at once were read as those of `images`, and are held the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.anatomy.fields import Fields
from pipeline.anatomy.reading import ratio
from pipeline.anatomy.rows import Anatomy, Tower
from pipeline.anatomy.towers.images import activation, rectangles, squares, vision
from pipeline.anatomy.towers.shapes import plain, shape_of


def tiled(longest: int) -> Callable[[Fields, Anatomy], list[Tower]]:
    """Idefics 3 and SmolVLM: the image is enlarged to `longest` tiles a side, and a small picture of the whole is added."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        patch, image, each = squares(inner)
        hidden = shape_of(anatomy, "vision").hidden
        factor = fields.size("scale_factor") ** 2
        text = each // factor
        # pixels are copied once, with a mask of a byte each
        facts = {
            "tokens_each": each,
            "text_tokens_each": text,
            "pixels_each": image * image,
            "max_tiles": longest * longest + 1,
            "processor_id": "idefics3",
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


def cut(processor_id: str) -> Callable[[Fields, Anatomy], list[Tower]]:
    """LLaVA-NeXT and OneVision, InternVL: tiles of one size and the whole, all in one batch. LLaVA reads its tower before the last layer and
    packs what is left without the padding; InternVL makes one token of ratio⁻² patches."""

    def read(fields: Fields, anatomy: Anatomy) -> list[Tower]:
        inner = vision(fields)
        (patch, _), (image, _), _ = rectangles(inner)
        each, hidden = (image // patch) ** 2, shape_of(anatomy, "vision").hidden
        is_internvl = processor_id == "internvl"
        times = ratio(fields, "downsample_ratio", 0.5) if is_internvl else 1
        facts = {
            "grid": "tiles",
            "tokens_each": each,
            "text_tokens_each": int(each * times * times),
            "class_tokens": 0 if processor_id == "llava-onevision" else 1,
            "pixels_each": image * image,
            "processor_id": processor_id,
        }
        text = int(anatomy.hidden_size * times * times)
        outputs = hidden + text if is_internvl else 2 * hidden + 2 * text
        if is_internvl:  # its layers name what attention gave, and keep it
            facts["hidden_tensors"] = 5
        named = inner.text("hidden_act", default="gelu")  # InternVL's own class
        return [plain(anatomy, "vision", named, input_elements=3 * patch * patch, output_elements=outputs, **facts)]

    return read


def llama4(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """At most sixteen tiles and the whole, all in one batch; a shuffle makes one token of ratio⁻² patches."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, image, each = squares(inner)
    times = ratio(inner, "pixel_shuffle_ratio", 1) or 1
    text = int(each * times * times)
    outputs = inner.count("vision_output_dim") + anatomy.hidden_size
    facts = {"tokens_each": each, "text_tokens_each": text, "class_tokens": 1, "max_tiles": 17, "grid": "tiles"}
    facts["processor_id"] = "llama4"
    facts |= {"input_elements": 3 * patch * patch, "output_elements": -(-text * outputs // each), "rotary_tensors": 17}
    return [
        plain(anatomy, "vision", activation(inner), pixels_each=image * image, table_elements=shape.head_dim, **facts)
    ]


def mllama(fields: Fields, anatomy: Anatomy) -> list[Tower]:
    """Llama 3.2: every image fills its tiles; all layers' states are kept, some of them joined at the end, and the text reads them by
    cross-attention."""
    inner, shape = vision(fields), shape_of(anatomy, "vision")
    patch, image, each = squares(inner)
    layers = inner.repeats("num_hidden_layers") + inner.repeats("num_global_layers") + 1
    joined = len(inner.items("intermediate_layers_indices") or [])
    facts = {"tokens_each": each + 1, "max_tiles": inner.count("max_num_tiles"), "pixels_each": image * image}
    # joined states, their stack and its slices; what a block holds is no longer there
    facts["hidden_tensors"] = layers + 3 * joined + 1 - 2 * shape.width // shape.hidden
    facts["output_elements"] = inner.count("vision_output_dim") + anatomy.hidden_size
    facts |= {"reader": "cross-attention", "grid": "tiles", "input_elements": 3 * patch * patch}
    return [plain(anatomy, "vision", activation(inner), **facts)]
