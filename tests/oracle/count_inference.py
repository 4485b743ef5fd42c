"""Counts what inference of encoders, towers and encoder-decoders holds at its peak: the truth for tables/sql/activations/inference/towers.sql.

    pip install -e '.[oracle]'
    python tests/oracle/count_inference.py                # all rows of inference.csv that have no peak yet
    python tests/oracle/count_inference.py --again bert   # rows of models whose model_type or id holds this, anew

Configs are those of the snapshot. A model runs once on tensors that hold nothing (hollow.py): its towers and its prompt, an encoder its
batch, an encoder-decoder its encoder, the first step of its decoder and the last one. Peaks are bytes of live storage,
and what a convolution works in (hollow.Convolving).
"""

from __future__ import annotations

import math
from pathlib import Path

from rows import configs, count_rows

ROWS = Path(__file__).with_name("inference.csv")
DTYPES = {"bf16": "bfloat16", "fp32": "float32"}
# records that leave out their text's widths: the model that it was made from
TEXT = {
    "OpenGVLab/InternVL3-1B-hf": "Qwen/Qwen2.5-0.5B-Instruct",
    "llava-hf/llava-onevision-qwen2-0.5b-ov-hf": "Qwen/Qwen2-0.5B-Instruct",
}
AUDIO_TOKEN = 24  # where a config names none
LISTENS = {"voxtral": 375, "qwen2_audio": 750}  # tokens of the prompt for a window
WHOLE = ("qwen2_audio", "minicpmv4_6")  # their classes do not ask whose logits are wanted
PACKED = (
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_5",
    "qwen3_5_moe",
    "glm4v",
    "glm5_next",
    "kimi_k25",
    "minimax_m3_vl",
)


def build(config: dict, row: dict[str, str]):
    import torch
    import transformers

    fields = {k: v for k, v in config.items() if k not in ("model_type", "dtype", "torch_dtype", "quantization_config")}
    if config["model_type"] == "qwen3_asr" and "thinker_config" in fields:  # as its own package writes it
        fields = {k: v for k, v in fields["thinker_config"].items() if k in ("audio_config", "text_config")}
        fields = {
            name: {k: v for k, v in inner.items() if v is not None and k != "model_type"}
            for name, inner in fields.items()
        }
    if row["model_id"] in TEXT:
        tied = {"tie_word_embeddings": config["model_type"] != "internvl"}  # by their published totals
        fields = {"text_config": configs()[TEXT[row["model_id"]]] | {"vocab_size": config["vocab_size"]} | tied, **tied}
    settings = transformers.AutoConfig.for_model(config["model_type"], **fields)
    if hasattr(settings, "audio_token_id") and settings.audio_token_id is None:
        settings.audio_token_id = AUDIO_TOKEN
    kind = getattr(transformers, row["class"])
    make = getattr(kind, "_from_config", None) or kind.from_config
    with torch.device("meta"):
        model = make(settings, dtype=getattr(torch, DTYPES[row["dtype_id"]]))
    model = model.eval().to_empty(device="cpu")
    model.tie_weights()
    for buffer in model.buffers():
        if not buffer.is_floating_point():
            buffer.zero_()
    return model


def inputs(model, row: dict[str, str]) -> dict:
    """What the row's model reads: token ids, pixels, samples."""
    import torch

    config, dtype = model.config, next(model.parameters()).dtype
    batch, tokens, images = int(row["sequences"]), int(row["context_tokens"]), int(row["images"] or 0)
    kind = config.model_type
    pixels = lambda *shape: torch.ones(*shape, dtype=dtype)  # noqa: E731
    text = {"input_ids": torch.zeros(batch, tokens, dtype=torch.long)}
    if kind in ("deberta", "deberta-v2"):  # the tokenizer's mask, which they square
        return text | {"attention_mask": torch.ones_like(text["input_ids"])}
    if kind in ("wav2vec2", "hubert"):
        return {"input_values": pixels(batch, int(float(row["audio_seconds"]) * 16000))}
    if kind == "whisper":
        return {"input_features": pixels(batch, config.num_mel_bins, 2 * config.max_source_positions)}
    if kind == "qwen3_asr":  # a chunk a second, each thirteen positions
        seconds, text = int(row["audio_seconds"] or 0), text | {"use_cache": True, "logits_to_keep": 1}
        if seconds:
            text["input_ids"][:, 1 : 1 + 13 * seconds] = config.audio_token_id
            text["input_features"] = pixels(batch, config.audio_config.num_mel_bins, 100 * seconds)
            text["input_features_mask"] = torch.ones(batch, 100 * seconds, dtype=torch.long)
            text["attention_mask"] = torch.ones_like(text["input_ids"])
        return text
    if kind in LISTENS:  # sound in whole windows of thirty seconds, and what the text reads of each
        windows = math.ceil(float(row["audio_seconds"] or 0) / 30)
        text |= {"use_cache": True} | ({} if kind in WHOLE else {"logits_to_keep": 1})
        if not windows:
            return text
        bins, frames = config.audio_config.num_mel_bins, 2 * config.audio_config.max_source_positions
        text["input_ids"][:, 1 : 1 + LISTENS[kind] * windows] = getattr(config, "audio_token_id", None) or AUDIO_TOKEN
        text["input_features"] = pixels(batch * windows, bins, frames)
        if kind == "qwen2_audio":  # which frames are sound, and which tokens are of the prompt
            text["feature_attention_mask"] = torch.ones(batch * windows, frames, dtype=torch.long)
            text["attention_mask"] = torch.ones_like(text["input_ids"])
        return text
    if kind in WHOLE:
        return text | {"use_cache": True}
    vision = getattr(config, "vision_config", config)
    size = getattr(vision, "image_size", 0)
    if kind in ("vit", "dinov2"):
        size = math.isqrt(int(row["image_pixels"])) if row["image_pixels"] else size
        return {"pixel_values": pixels(batch * images, 3, size, size)}
    if kind in ("clip", "siglip"):
        return text | {"pixel_values": pixels(batch * images, 3, size, size)}
    if row["attention"] == "masked":  # one sequence is shorter than the others
        mask = torch.ones_like(text["input_ids"])
        mask[0, :7] = 0
        text |= {"attention_mask": mask, "use_cache": True, "logits_to_keep": 1}
    if not hasattr(config, "vision_config"):
        return text
    text |= {"use_cache": True, "logits_to_keep": 1}
    if not images:
        return text
    side, each, more = math.isqrt(int(row["image_pixels"] or 0)), 0, {}
    if kind in PACKED:
        patch, frames = vision.patch_size, getattr(vision, "temporal_patch_size", 1)
        merge = getattr(vision, "spatial_merge_size", None) or vision.merge_kernel_size[0]
        grid, each = side // patch, (side // patch) ** 2 // merge**2
        more = {
            "pixel_values": pixels(batch * images * grid * grid, 3 * frames * patch * patch),
            "image_grid_thw": torch.tensor([[1, grid, grid]] * batch * images),
        }
        if kind == "kimi_k25":
            more["pixel_values"] = more["pixel_values"].view(-1, 3, patch, patch)
    elif kind in ("mistral3", "lighton_ocr") or getattr(vision, "model_type", "") == "pixtral":
        each = (side // vision.patch_size // getattr(config, "spatial_merge_size", 1)) ** 2
        more = {
            "pixel_values": pixels(batch * images, 3, side, side),
            "image_sizes": torch.tensor([[side, side]] * batch * images),
        }
    elif kind in ("idefics3", "smolvlm"):
        each = 17 * (size // vision.patch_size) ** 2 // config.scale_factor**2
        more = {"pixel_values": pixels(batch, 17 * images, 3, size, size)}
    elif kind == "llama4":  # as many tiles as the processor makes, and the whole
        each = 17 * (size // vision.patch_size) ** 2 // 4
        more = {"pixel_values": pixels(17 * batch * images, 3, size, size)}
    elif kind in ("internvl", "llava_next", "llava_onevision"):  # a square of whole tiles, and the whole
        size = size if isinstance(size, int) else size[0]
        tiles = (math.isqrt(int(row["image_pixels"])) // size) ** 2 + 1
        patch = vision.patch_size if isinstance(vision.patch_size, int) else vision.patch_size[0]
        side = size // patch
        each = tiles * side**2 // 4 if kind == "internvl" else tiles * side**2 + math.isqrt(tiles - 1) * side
        shape = (batch * images, tiles) if kind != "internvl" else (batch * images * tiles,)
        more = {"pixel_values": pixels(*shape, 3, size, size)}
        if kind != "internvl":
            sides = math.isqrt(int(row["image_pixels"]))
            more["image_sizes"] = torch.tensor([[sides, sides]] * batch * images)
    elif kind == "gemma4_unified":
        each, side = vision.num_soft_tokens, vision.model_patch_size
        places = torch.stack(torch.meshgrid(torch.arange(20), torch.arange(14), indexing="xy"), -1).reshape(1, 280, 2)
        patches = pixels(batch * images, each, 3 * side**2)
        more = {"pixel_values": patches, "image_position_ids": places.repeat(batch * images, 1, 1)}
    elif kind == "gemma4":
        each = 280
        grid = torch.stack(torch.meshgrid(torch.arange(60), torch.arange(42), indexing="xy"), -1).reshape(1, 2520, 2)
        patches = pixels(batch * images, 2520, 3 * vision.patch_size**2)
        more = {"pixel_values": patches, "image_position_ids": grid.repeat(batch * images, 1, 1)}
    else:
        each = {"gemma3": 256}.get(kind, (size // vision.patch_size) ** 2)
        more = {"pixel_values": pixels(batch * images, 3, size, size)}
    if kind == "mllama":  # every image fills its tiles; the text reads them beside its own tokens
        tiles = vision.max_num_tiles
        return text | {
            "pixel_values": pixels(batch, images, tiles, 3, size, size),
            "aspect_ratio_ids": torch.ones(batch, images, dtype=torch.long),
            "aspect_ratio_mask": torch.ones(batch, images, tiles, dtype=torch.long),
            "cross_attention_mask": torch.ones(batch, tokens, images, tiles, dtype=torch.long),
        }
    token = getattr(config, "image_token_id", None) or config.image_token_index
    for image in range(images):  # with text between them
        start = 1 + image * (each + 2)
        text["input_ids"][:, start : start + each] = token
    if kind in PACKED:
        more["mm_token_type_ids"] = (text["input_ids"] == token).int()
        more["attention_mask"] = torch.ones_like(text["input_ids"])
    if kind in ("gemma3", "gemma4", "gemma4_unified", "paligemma"):
        more["token_type_ids" if not kind.startswith("gemma4") else "mm_token_type_ids"] = (
            text["input_ids"] == token
        ).long()
    return text | more


def generate(model, given: dict, tokens: int) -> None:
    """The encoder, the decoder's first step, and its last: the cache then holds `tokens`."""
    import torch
    from transformers import DynamicCache, EncoderDecoderCache

    encoded = model.get_encoder()(**given)
    cache = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
    batch = next(iter(given.values())).shape[0]

    def step() -> None:
        """One token of each sequence, its logits in fp32 to choose the next one by."""
        token = torch.zeros(batch, 1, dtype=torch.long)
        output = model(encoder_outputs=encoded, decoder_input_ids=token, past_key_values=cache, use_cache=True)
        output.logits[:, -1].to(torch.float32)

    step()
    for layer in cache.self_attention_cache.layers:
        heads, width = layer.keys.shape[1], layer.keys.shape[3]
        layer.keys = torch.empty(batch, heads, tokens - 1, width, dtype=layer.keys.dtype)
        layer.values = torch.empty(batch, heads, tokens - 1, width, dtype=layer.keys.dtype)
    step()


def count(config: dict, row: dict[str, str]) -> tuple[int, int, str]:
    """Bytes of the weights, of the peak, and what made the peak."""
    import hollow
    import torch

    model = build(config, row)
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        given = inputs(model, row)
        for value in given.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        if model.config.is_encoder_decoder:
            generate(model, given, int(row["context_tokens"]))
        else:
            model(**given)
        return weights, tracker.peak, tracker.at


def main() -> None:
    import torch
    import transformers

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        weights, peak, at = count(known[row["model_id"]], row)
        print(row["model_id"], row["dtype_id"], peak - weights, at, flush=True)
        versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
        return {"weights_and_buffers_bytes": str(weights), "peak_bytes": str(peak), "versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {known[row['model_id']].get('model_type')}", counted)


if __name__ == "__main__":
    main()
