"""Counts what real processors make of a picture: the truth for tables/sql/activations/images/image_tokens.sql.

    pip install -e '.[oracle]' torchvision pillow
    python tests/oracle/count_image_tokens.py            # writes image_tokens.csv anew

An image processor resizes and cuts a blank picture, its processor writes what stands for it in the prompt: every placeholder, mark and line
break there is one token. Both have the settings of their classes; what a checkpoint's config says (patch, merge, the tower's image size) is
taken from it, and Qwen's limits are those that its publisher documents, as in image_processor.csv. `tiles` are pictures that reach the tower
where it is cut, `tower_tokens` patches where it is not.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import logging
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

from rows import configs

FILE = Path(__file__).with_name("image_tokens.csv")
FACTS = Path(__file__).parents[2] / "tables" / "facts" / "image_processor.csv"
COLUMNS = [
    "model_id",
    "processor_id",
    "image_width",
    "image_height",
    "prompt_tokens",
    "tower_tokens",
    "tiles",
    "versions",
]
# as many shapes as there are branches: tiny, square, wide, high, odd, larger than any limit, exact halves and multiples
SIZES = [
    (64, 64), (100, 40), (224, 224), (336, 336), (448, 448), (512, 512), (640, 480), (700, 1000), (750, 1000), (896, 896), (1000, 333),
    (1022, 1022), (1024, 1024), (1080, 1920), (1280, 720), (1344, 336), (1920, 1080), (2480, 3508), (3000, 500), (3840, 2160), (4096, 4096),
    (5000, 200), (6000, 8000),
]  # fmt: skip
MARK = re.compile(r"<[^<>]+>|\n+")
# processor: checkpoint, module of the processor and its class, module of the image processor and its class
SETTINGS = {
    "qwen2-vl": ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2_5_vl", "Qwen2_5_VLProcessor", "qwen2_vl", "Qwen2VLImageProcessor"),
    "qwen3-vl": ("Qwen/Qwen3-VL-8B-Instruct", "qwen3_vl", "Qwen3VLProcessor", "qwen2_vl", "Qwen2VLImageProcessor"),
    "glm4v": ("zai-org/GLM-4.1V-9B-Thinking", "glm4v", "Glm4vProcessor", "glm4v", "Glm4vImageProcessor"),
    "glm5-next": ("zai-org/GLM-5.3-Flash", "glm5_next", "Glm5NextProcessor", "glm5_next", "Glm5NextImageProcessor"),
    "kimi-k25": ("moonshotai/Kimi-K2.5", "kimi_k25", "Kimi_K25Processor", "kimi_k25", "Kimi_K25ImageProcessor"),
    "minimax-m3": ("MiniMaxAI/MiniMax-M3", "minimax_m3_vl", "MiniMaxM3VLProcessor", "minimax_m3_vl", "MiniMaxM3VLImageProcessor"),
    "pixtral": ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "pixtral", "PixtralProcessor", "pixtral", "PixtralImageProcessor"),
    "lighton-ocr": ("lightonai/LightOnOCR-2-1B", "lighton_ocr", "LightOnOcrProcessor", "pixtral", "PixtralImageProcessor"),
    "gemma3": ("google/gemma-3-4b-it", "gemma3", "Gemma3Processor", "gemma3", "Gemma3ImageProcessor"),
    "gemma4": ("google/gemma-4-26B-A4B-it", "gemma4", "Gemma4Processor", "gemma4", "Gemma4ImageProcessor"),
    "paligemma": ("google/paligemma-3b-pt-224", "paligemma", "PaliGemmaProcessor", "siglip", "SiglipImageProcessor"),
    "clip": ("llava-hf/llava-1.5-7b-hf", "llava", "LlavaProcessor", "clip", "CLIPImageProcessor"),
    "idefics3": ("HuggingFaceTB/SmolVLM-256M-Instruct", "idefics3", "Idefics3Processor", "idefics3", "Idefics3ImageProcessor"),
    "llama4": ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4", "Llama4Processor", "llama4", "Llama4ImageProcessor"),
    "internvl": ("OpenGVLab/InternVL3-1B-hf", "internvl", "InternVLProcessor", "got_ocr2", "GotOcr2ImageProcessor"),
    "llava-next": ("llava-hf/llava-v1.6-mistral-7b-hf", "llava_next", "LlavaNextProcessor", "llava_next", "LlavaNextImageProcessor"),
    "llava-onevision": (
        "llava-hf/llava-onevision-qwen2-0.5b-ov-hf", "llava_onevision", "LlavaOnevisionProcessor", "llava_onevision", "LlavaOnevisionImageProcessor",
    ),
}  # fmt: skip


def first(value):
    """One side of what may be given as a pair."""
    return value[0] if isinstance(value, list | tuple) else value


def image_settings(name: str, config: dict, facts: dict[str, str]) -> dict:
    """Of the image processor: what the config of the checkpoint says, and Qwen's documented limits."""
    vision = config["vision_config"]
    patch, side = first(vision.get("patch_size", 14)), first(vision.get("image_size"))
    square = {"height": side, "width": side}
    if name in ("qwen2-vl", "qwen3-vl"):
        token = (patch * vision.get("spatial_merge_size", 2)) ** 2
        limits = {
            "shortest_edge": int(facts["min_image_tokens"]) * token,
            "longest_edge": int(facts["max_image_tokens"]) * token,
        }
        return {"patch_size": patch, "size": limits}
    if name in ("pixtral", "lighton-ocr"):
        merge = config.get("spatial_merge_size", 2) if name == "pixtral" else 1
        return {"patch_size": {"height": patch * merge, "width": patch * merge}, "size": {"longest_edge": side}}
    if name == "idefics3":
        return {
            "size": {"longest_edge": 4 * side},
            "max_image_size": {"longest_edge": side},
            "return_row_col_info": True,
        }
    if name == "internvl":
        return {"size": square, "crop_to_patches": True}
    if name == "llava-next":
        return {"size": {"shortest_edge": side}, "crop_size": square}
    if name in ("clip", "paligemma", "gemma3", "llava-onevision"):
        return {"size": square} | ({"crop_size": square} if name == "clip" else {})
    return {}


def text_settings(name: str, config: dict) -> dict:
    """Of the processor, as its tokenizer and the checkpoint's config would set them; marks are <...>."""
    vision = config["vision_config"]
    patch, side = first(vision.get("patch_size", 14)), first(vision.get("image_size"))
    each = (side // patch) ** 2 if side else 0
    facts = {
        "image_token": "<image>",
        "boi_token": "<begin>",
        "eoi_token": "<end>",
        "start_image_token": "<begin>",
        "end_image_token": "<end>",
    }
    facts |= {
        "image_break_token": "<break>",
        "image_end_token": "<end>",
        "patch_size": patch,
        "num_additional_image_tokens": 1,
    }
    facts |= {"spatial_merge_size": config.get("spatial_merge_size", 2), "vision_feature_select_strategy": "default"}
    facts["effective_patch_size"] = patch * facts["spatial_merge_size"]
    if name == "idefics3":
        each //= config.get("scale_factor", 2) ** 2
        facts |= {"fake_image_token": "<around>", "global_image_tag": "<global-img>", "image_seq_len": each}
    if name == "gemma3":
        count = config.get("mm_tokens_per_image", 256)
        facts["full_image_sequence"] = "\n\n<begin>" + "<image>" * count + "<end>\n\n"
    if name == "llava-onevision":
        facts |= {
            "num_image_tokens": each,
            "vision_feature_select_strategy": "full",
            "vision_aspect_ratio": "anyres_max_9",
        }
    if name == "llama4":
        facts |= {"downsample_ratio": round(1 / vision.get("pixel_shuffle_ratio", 0.5) ** 2)}
    return facts | {"image_seq_length": each // 4 if name == "internvl" else each}


def counted(name: str, config: dict, facts: dict[str, str], size: tuple[int, int]) -> dict[str, object]:
    from PIL import Image

    _, module, kind, image_module, image_kind = SETTINGS[name]
    images = getattr(
        importlib.import_module(f"transformers.models.{image_module}.image_processing_{image_module}"), image_kind
    )
    made = images(**image_settings(name, config, facts))
    read = made(images=[Image.new("RGB", size)], return_tensors="pt")
    processor = object.__new__(
        getattr(importlib.import_module(f"transformers.models.{module}.processing_{module}"), kind)
    )
    for key, value in {**text_settings(name, config), "image_processor": made, "tokenizer": SimpleNamespace()}.items():
        with contextlib.suppress(AttributeError):  # a property of the class
            setattr(processor, key, value)
    prompt = processor.replace_image_token(read, 0)
    pixels, grid = read["pixel_values"], read.get("image_grid_thw")
    tiles, patches = "", ""
    if name in ("idefics3", "llama4", "internvl", "llava-next", "llava-onevision"):
        tiles = (
            read["num_patches"][0]
            if "num_patches" in read
            else pixels.shape[0]
            if pixels.ndim == 4
            else pixels.shape[1]
        )
    elif grid is not None:
        patches = int(grid[0].prod())
    return {
        "prompt_tokens": len(MARK.findall(prompt)),
        "tower_tokens": patches,
        "tiles": int(tiles) if tiles != "" else "",
    }


def main() -> None:
    import torch
    import torchvision
    import transformers

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    known = configs()
    with FACTS.open(newline="") as file:
        facts = {row["processor_id"]: row for row in csv.DictReader(file)}
    versions = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}"
    rows = []
    for name, (model_id, *_) in SETTINGS.items():
        config = known[model_id]
        if (
            "vision_config" not in config
        ):  # a record that says no more than its text: its class's default is the checkpoint's
            kind = transformers.AutoConfig.for_model(config["model_type"])
            config = kind.to_dict() | config
        for size in SIZES:
            try:
                found = counted(name, config, facts[name], size)
            except Exception as error:
                print(f"{name} {size}: {type(error).__name__}: {str(error)[:200]}")
                continue
            rows.append(
                {
                    "model_id": model_id,
                    "processor_id": name,
                    "image_width": size[0],
                    "image_height": size[1],
                    **found,
                    "versions": versions,
                }
            )
        print(name, sum(row["processor_id"] == name for row in rows), flush=True)
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
