"""Counts denoisers in packed formats: the truth for tables/facts/denoiser_part.csv and denoiser_format.csv.

    pip install -e '.[oracle]' gguf
    python tests/oracle/count_packed_denoisers.py            # all rows of packed_denoisers.csv that have no peak yet
    python tests/oracle/count_packed_denoisers.py --again Wan    # rows whose class or model holds this, anew

The class of diffusers is built without weights and packed as its own code does it: `fp8` by its layerwise casting, `nf4` as bitsandbytes
replaces linear layers, GGUF by its GGUFLinear over matrices of the type that ComfyUI-GGUF's converter gives them (`UNPACKED`, by the names that
diffusers gives its tensors). Then it takes one step as in count_pipelines.py, on tensors that hold nothing.
"""

from __future__ import annotations

from pathlib import Path

from count_pipelines import ALIASES, DTYPES, in_words_of_diffusers
from denoiser_inputs import denoiser_inputs
from rows import configs, count_rows

ROWS = Path(__file__).with_name("packed_denoisers.csv")
# by class what the converter leaves in 16 bits (github.com/city96/ComfyUI-GGUF tools/lcpp.patch at 795e4515; of Qwen-Image, Z-Image and FLUX.2
# at 4dfc025e, its branch auto_convert; of Chroma as the sizes of published files say)
UNPACKED = {
    "FluxTransformer2DModel": ("context_embedder", "x_embedder", "time_text_embed", "norm_out", "proj_out"),
    "SD3Transformer2DModel": ("context_embedder", "pos_embed", "time_text_embed", "norm_out", "proj_out"),
    "WanTransformer3DModel": ("patch_embedding", "condition_embedder", "proj_out"),
    "HunyuanVideoTransformer3DModel": ("context_embedder", "x_embedder", "time_text_embed", "norm_out", "proj_out"),
    "LTXVideoTransformer3DModel": ("time_embed", "caption_projection", "proj_in", "proj_out"),
    "QwenImageTransformer2DModel": ("img_in", "txt_in", "time_text_embed", "norm_out", "proj_out"),
    "ZImageTransformer2DModel": (
        *("all_x_embedder", "all_final_layer", "t_embedder", "cap_embedder"),
        *("noise_refiner", "context_refiner"),
    ),
    "Flux2Transformer2DModel": (
        *("x_embedder", "context_embedder", "time_guidance_embed", "norm_out", "proj_out"),
        *("double_stream_modulation_img", "double_stream_modulation_txt", "single_stream_modulation"),
    ),
    "ChromaTransformer2DModel": ("context_embedder", "x_embedder", "distilled_guidance_layer", "proj_out"),
}
TOP = {"proj_out", "proj_in"}  # of these the model's own, not those of its blocks
# type of most matrices; of the values and the last matrix of a block, where the original names them so that the converter knows them; of what
# is one matrix of queries, keys and values there; and of the first block and the last of Qwen-Image
TYPES = {
    "gguf-q8_0": ("Q8_0", "Q8_0", "Q8_0", "Q8_0", None),
    "gguf-q4_0": ("Q4_0", "Q4_0", "Q4_1", "Q4_0", None),
    "gguf-q4_k_s": ("Q4_K", "Q4_K", "Q5_K", "Q4_K", None),
    "gguf-q4_k_m": ("Q4_K", "Q6_K", "Q6_K", "Q5_K", "Q5_K"),
    "gguf-q2_k": ("Q2_K", "Q3_K", "Q2_K", "Q2_K", "Q4_K"),
}
# by class the ends of the names of values, of last matrices, of matrices that are fused in the original, and the blocks that are held apart
KNOWN_NAMES = {
    "WanTransformer3DModel": ((".to_v",), (".net.2",), (), ()),
    "LTXVideoTransformer3DModel": ((".to_v",), (".net.2",), (), ()),
    "QwenImageTransformer2DModel": (
        *((".to_v", ".add_v_proj"), (".net.2",), ()),
        ("transformer_blocks.0.", "transformer_blocks.59."),
    ),
    "ZImageTransformer2DModel": ((), (".feed_forward.w2",), (".to_q", ".to_k", ".to_v"), ()),
    # (of the blocks of two streams)
    "ChromaTransformer2DModel": (
        *((), ()),
        (".attn.to_q", ".attn.to_k", ".attn.to_v", ".add_q_proj", ".add_k_proj", ".add_v_proj"),
        (),
    ),
}


def build(row: dict[str, str], config: dict):
    """The class in 16 bits, on the meta device."""
    import diffusers
    import torch

    kind = getattr(diffusers, ALIASES.get(row["class"], row["class"]))
    config, known = in_words_of_diffusers(config), kind._get_init_keys(kind)
    with torch.device("meta"):
        model = kind(**{k: v for k, v in config.items() if k in known and v is not None})
    return model.to(getattr(torch, DTYPES["bf16"])).eval()


def pack(model, row: dict[str, str]) -> None:
    """Packs its matrices in place, still without memory."""
    if row["dtype_id"] == "fp8":
        return _cast(model)
    if row["dtype_id"] == "nf4":
        return _in_blocks(model)
    return _as_file(model, row)


def _cast(model) -> None:
    import torch

    model.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.bfloat16)


def _in_blocks(model) -> None:
    """As bitsandbytes: every linear layer, 4 bits and an fp32 scale for each 64 elements; whole in 16 bits while it multiplies."""
    import torch

    class Packed(torch.nn.Module):
        def __init__(self, linear) -> None:
            super().__init__()
            size = linear.weight.numel()
            self.shape, self.bias = linear.weight.shape, linear.bias
            self.weight = torch.nn.Parameter(torch.empty(size // 2, dtype=torch.uint8, device="meta"), False)
            self.scales = torch.nn.Parameter(torch.empty(-(-size // 64), device="meta"), False)

        def forward(self, inputs):
            return torch.nn.functional.linear(inputs, inputs.new_empty(self.shape), self.bias)

    _replace(model, lambda name, linear: Packed(linear))


def _as_file(model, row: dict[str, str]) -> None:
    import gguf
    import torch
    from diffusers.quantizers.gguf.utils import GGUFLinear, GGUFParameter

    most, values, last, fused, apart = TYPES[row["dtype_id"]]
    of_values, of_last, of_fused, blocks = KNOWN_NAMES.get(row["class"], ((), (), (), ()))

    def packed(name, linear):
        kind = values if name.endswith(of_values) else last if name.endswith(of_last) else most
        if name.endswith(of_fused) and not name.startswith("single_"):
            kind = fused
        if apart and name.startswith(blocks):
            kind = apart
        places = name.split(".")
        if any(places[0] == part if part in TOP else part in places for part in UNPACKED[row["class"]]):
            kind = "BF16"
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        if linear.in_features % block:
            return linear
        with torch.device("meta"):
            new = GGUFLinear(
                linear.in_features, linear.out_features, linear.bias is not None, compute_dtype=torch.bfloat16
            )
            held = torch.empty(linear.out_features, linear.in_features // block * size, dtype=torch.uint8)
        new.weight, new.bias = GGUFParameter(held, quant_type=gguf.GGMLQuantizationType[kind]), linear.bias
        return new

    _replace(model, packed)


def _replace(model, made) -> None:
    import torch

    for name, module in list(model.named_modules()):
        if type(module) is torch.nn.Linear:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, made(name, module))


def solid(model):
    """Storages that hold nothing, in place of those of the meta device; small ones are zero."""
    import torch

    made = {}  # (what is tied stays so)
    for module in model.modules():
        for held in (module._parameters, module._buffers):
            for name, value in held.items():
                if value is None or value.device.type != "meta":
                    continue
                if id(value) in made:
                    held[name] = made[id(value)][1]
                    continue
                empty = torch.empty(value.shape, dtype=value.dtype)
                if not value.is_floating_point() and value.numel() < 1 << 16:
                    empty.zero_()
                if hasattr(value, "quant_type"):
                    held[name] = type(value)(empty, quant_type=value.quant_type)
                else:
                    held[name] = torch.nn.Parameter(empty, False) if isinstance(value, torch.nn.Parameter) else empty
                made[id(value)] = (value, held[name])
    return model


def count(row: dict[str, str], config: dict) -> tuple[int, int, str]:
    """Bytes of the weights, of the peak beside them, and what made it."""
    import hollow
    import torch

    class Packing(hollow.Convolving):
        """Matrices of packed bytes are as hollow as others."""

        def _run(self, func, args, kwargs):
            tensors = [leaf for leaf in hollow.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            views = any(r.alias_info is not None for r in func._schema.returns)
            if not views and any(t.numel() > hollow.SMALL and not t.is_floating_point() for t in tensors):
                return self._like_meta(func, args, kwargs)
            return super()._run(func, args, kwargs)

    model = build(row, config)
    given = denoiser_inputs(model, row)
    pack(model, row)
    solid(model)
    hollow.install_attention()
    with torch.no_grad(), Packing() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor.as_tensor() if hasattr(tensor, "quant_type") else tensor)
        weights = tracker.total
        for value in given.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        model(**given, return_dict=False)
        return weights, tracker.peak - weights, tracker.at


def main() -> None:
    import diffusers
    import torch

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        weights, peak, at = count(row, known[row["model_id"]])
        print(
            *(row[name] for name in ("model_id", "dtype_id", "width", "height", "frames")),
            weights,
            peak,
            at,
            flush=True,
        )
        versions = f"torch {torch.__version__.split('+')[0]}, diffusers {diffusers.__version__}"
        return {"weights_bytes": str(weights), "peak_bytes": str(peak), "versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {row['class']} {row['dtype_id']}", counted)


if __name__ == "__main__":
    main()
