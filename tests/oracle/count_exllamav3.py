"""Counts what ExLlamaV3 holds of a converted model, of its cache and at the peak of a prompt's chunk: the truth for its engine's formulas.

    pip install --no-deps exllamav3==1.6.5; pip install tokenizers rich pyyaml marisa_trie pydantic llguidance
    python tests/oracle/count_exllamav3.py          # rows of exllamav3.csv that have no peak yet

ExLlamaV3's own classes run on fake CUDA tensors: its converter gives each matrix its bits (create_q_strategy), its loader lays the tensors
into its blocks of 128 MiB, its cache sets aside its pages, and its model reads the last chunk of a prompt and then takes a step. What its
extension computes writes into tensors that its Python code makes, so that the extension and Triton are stood in for by functions that do
nothing; the one product that makes its own result (BC_LinearEXL3.run_alloc) makes it here.

The checkpoint is a file of holes: names and shapes are those of the class in Transformers, then what the converter leaves of them: of a
matrix `trellis` (16 × bits integers of 16 bits for each tile of 16 × 16), `suh` and `svh` (a half for each input and output), as
exl3_lib/quantize.py makes them. `weights_bytes` are the tensors that lie on the card, `cache_bytes` those of the cache, `peak_bytes` all that is alive at
once, `reserved_bytes` what an emulated allocator took from the driver for it.
"""

from __future__ import annotations

import gc
import json
import math
import re
import struct
import sys
import tempfile
import types
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from inspect import signature
from multiprocessing import get_context
from pathlib import Path

import fake_cuda
import rows

COUNTED = Path(__file__).with_name("exllamav3.csv")
CARD_BYTES = 192 << 30
NAMES = {"BF16": 2, "F16": 2, "F32": 4, "I16": 2, "I32": 4}

# names of checkpoints that the library has renamed since
SEEING = {
    "gemma3": {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."},
    "mistral3": {"model.language_model.": "language_model.model.", "lm_head.": "language_model.lm_head."},
    "qwen2_5_vl": {"model.language_model.": "model."},
}

# what lies in the computer's memory, what is a word of each matrix, and what sees, which nobody asked for
LEFT = re.compile(r"embed_tokens|\.mul1$|vision_tower|multi_modal_projector|visual\.")
# what its configs ask of pictures, none of which is read here
PROCESSORS = {
    "gemma3": "Gemma3ImageProcessor",
    "mistral3": "PixtralImageProcessor",
    "qwen2_5_vl": "Qwen2VLImageProcessor",
}
PICTURES = {
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2, "rescale_factor": 1 / 255, "patch_size": 14,
    "size": {"longest_edge": 1540, "height": 896, "width": 896}, "min_pixels": 3136, "max_pixels": 12845056,
    "temporal_patch_size": 2, "merge_size": 2,
}  # fmt: skip


class Nothing(types.ModuleType):
    """A module whose functions do nothing, whose classes can be made and whose decorators give back what can be called on a grid."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _known.get(name, Idle)


class Idle:
    """Made with anything, called with anything, nothing comes of it."""

    metadata = types.SimpleNamespace(shared=0)

    def __new__(cls, *_args, **_named):
        return super().__new__(cls)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return Idle()

    def __call__(self, *_args, **_named):
        return Idle()

    def __getitem__(self, _grid):
        return self


class Product:
    """BC_LinearEXL3 for few rows: ext/libtorch/linear.cpp, run_alloc."""

    def __init__(self, *_args) -> None:
        pass

    def run_alloc(self, value, out_features: int, is_fp32: bool):
        import torch

        return torch.empty(
            (*value.shape[:-1], out_features), dtype=torch.float if is_fp32 else torch.half, device=value.device
        )


_known = {
    "BC_LinearEXL3": Product,
    "cdiv": lambda count, of: -(-count // of),
    "next_power_of_2": lambda count: 1 << (int(count) - 1).bit_length(),
    "exl3_gemv_int8_max_k": lambda _device: 5,
    "jit": lambda *_args, **_named: Idle(),
}


def stand_in() -> None:
    """The extension, Triton, and the card."""
    import importlib.machinery

    import torch

    # (what would look for Triton)
    import torch._dynamo
    import torch._inductor.test_operators
    from torch._subclasses.fake_tensor import FakeTensor

    fake_cuda.install()
    for name in (
        "exllamav3_ext",
        "triton",
        "triton.language",
        "triton.compiler",
        "triton.backends",
        "triton.backends.compiler",
    ):
        module = Nothing(name)
        module.__spec__ = importlib.machinery.ModuleSpec(
            name, types.SimpleNamespace(), origin=name + importlib.machinery.EXTENSION_SUFFIXES[0]
        )
        module.__path__ = []
        sys.modules[name] = module
    sys.modules["triton"].language = sys.modules["triton.language"]
    card = types.SimpleNamespace(
        multi_processor_count=132, major=9, minor=0, total_memory=CARD_BYTES, is_integrated=0,
        shared_memory_per_block_optin=232448,
    )  # fmt: skip
    torch.cuda.get_device_properties = lambda *_args: card
    torch.cuda.device_count = lambda: 1
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.memory_allocated = torch.cuda.memory_reserved = lambda *_args: 0
    torch.cuda.empty_cache = torch.cuda.synchronize = lambda *_args: None
    torch.cuda.device = lambda *_args: __import__("contextlib").nullcontext()
    FakeTensor.data_ptr = lambda self: 0
    usual = torch.tensor

    def tensor(data, dtype=None, device=None):
        made = real(usual, data, dtype=dtype) if dtype else real(usual, data)
        is_on_card = device is not None and torch.device(device).type == "cuda"
        return torch.empty(made.shape, dtype=made.dtype, device=device) if is_on_card else made

    torch.tensor = tensor


def write_holes(folder: Path, tensors: dict[str, tuple[str, tuple[int, ...]]]) -> None:
    header, at = {}, 0
    for name, (kind, shape) in tensors.items():
        size = NAMES[kind]
        for one in shape:
            size *= one
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def published(config: dict) -> tuple[dict, dict[str, tuple[str, tuple[int, ...]]]]:
    """The config with what its class fills in, and names and shapes as the class writes them."""
    import torch
    import transformers

    said = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "torch_dtype"})
    kind = transformers.AutoModelForImageTextToText if said.model_type in SEEING else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(said, dtype=torch.bfloat16)
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    tensors = {k: ("BF16", tuple(v.shape)) for k, v in model.state_dict().items() if k not in tied}
    for now, once in SEEING.get(said.model_type, {}).items():
        tensors = {once + k.removeprefix(now) if k.startswith(now) else k: v for k, v in tensors.items()}
    filled = json.loads(said.to_json_string(use_diff=False))
    text = filled.get("text_config") or {}
    named = {"architectures": config.get("architectures") or [type(model).__name__]}
    for part in ("text_config", "vision_config"):
        if part in filled:
            named[part] = filled[part] | (config.get(part) or {})
    if said.model_type == "qwen2_5_vl":
        named["vision_config"]["model_type"] = said.model_type
    return {**text, **filled, **config, **named}, tensors


def opened(folder: Path):
    from exllamav3 import Config, Model

    config = Config.from_directory(str(folder))
    return config, Model.from_config(config)


def packed(model, config, tensors: dict, bits: float, head_bits: int) -> dict:
    """What the converter makes of the tensors."""
    from exllamav3.conversion.allocation import create_q_strategy
    from exllamav3.modules import Linear

    # (1.5.0 has whole bits alone)
    halves = {"half_steps": True} if "half_steps" in signature(create_q_strategy).parameters else {}
    strategy, _ = create_q_strategy(model, None, config, bits, head_bits, 4, 0, **halves)
    kept, made = dict(tensors), {}
    for module in model:
        if not isinstance(module, Linear) or module.key not in strategy:
            continue
        source = [module.key, *([module.alt_key] if isinstance(module.alt_key, str) else []), module.fkey]
        width = 16 * strategy[module.key]
        assert width == int(width)
        made[f"{module.key}.trellis"] = ("I16", (module.in_features // 16, module.out_features // 16, int(width)))
        made[f"{module.key}.suh"] = ("F16", (module.in_features,))
        made[f"{module.key}.svh"] = ("F16", (module.out_features,))
        made[f"{module.key}.mul1"] = ("I32", ())
        for name in filter(None, source):
            if f"{name}.bias" in tensors:
                made[f"{module.key}.bias"] = ("F16", (module.out_features,))
            if name != module.alt_key or "embed" not in name:
                kept.pop(f"{name}.weight", None)
                kept.pop(f"{name}.bias", None)
    return {**kept, **made}


def count(row: rows.Row) -> rows.Row:
    import allocator
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    stand_in()
    from exllamav3 import Cache
    from exllamav3.cache import CacheLayer_fp16, CacheLayer_quant
    from exllamav3.constants import PAGE_SIZE
    from exllamav3.loader import SafetensorsCollection
    from exllamav3.modules import Attention, multilinear
    from exllamav3.modules import module as modules_module
    from exllamav3.util import tensor as util_tensor

    # (a word of each matrix that names its code book; a hole holds none)
    SafetensorsCollection.get_codebook_marker = lambda self, key, value: (
        real(torch.tensor, 0) if key in self.tensor_file_map else None
    )
    for module in (util_tensor, modules_module):
        module.to_device = moved
    multilinear.SlicedMultiLinear.c_ptrs = lambda self, outputs: None
    # (a graph that is replayed for single tokens: what it works in are tensors that were made before)
    Attention.bc_attn_step = lambda self, *_args, **_named: None
    bits = float(row["bits"]) if row["bits"] else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # (in a process of its own, which has no stand-ins)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
            config_dict, tensors = own.submit(published, CONFIGS[row["model"]]).result()
        (folder / "config.json").write_text(json.dumps(config_dict))
        (folder / "preprocessor_config.json").write_text(
            json.dumps(PICTURES | {"image_processor_type": PROCESSORS.get(config_dict["model_type"])})
        )
        write_holes(folder, tensors)
        config, model = opened(folder)
        tensors = packed(model, config, tensors, bits, int(row["head_bits"]))
        write_holes(folder, tensors)
        tracker, at = allocator.Tracker(), int(row["chunk_tokens"])
        context, slots = int(row["cache_tokens"]), int(row["slots"])
        with FakeTensorMode(allow_non_fake_inputs=True), torch.inference_mode(), tracker:
            config, model = opened(folder)
            kinds = {"fp16": (CacheLayer_fp16, {})}
            key_bits = row["kv_bits"]
            kind, told = kinds.get(key_bits) or (CacheLayer_quant, {"k_bits": int(key_bits), "v_bits": int(key_bits)})
            cache = Cache(model, max_num_tokens=context, layer_type=kind, max_batch_size=slots, **told)
            model.load(device=torch.device("cuda:0"))
            gc.collect()
            standing = tracker.total
            held = sum(t.numel() * t.element_size() for t in cache.get_all_tensors())
            pages = context // PAGE_SIZE
            table = real(torch.arange, pages).view(1, pages).int()
            past = max(0, context - at)
            # (how far the cache is filled, which the code asks of a tensor of the host)
            usual = torch.Tensor.max
            torch.Tensor.max = lambda self, *a, **k: past if self.device.type == "cpu" else usual(self, *a, **k)
            params = {
                "attn_mode": "flash_attn", "cache": cache, "block_table": table,
                "cache_seqlens": real(torch.full, (1,), past).int(),
            }  # fmt: skip
            tracker.reset_peak()
            model.prefill(torch.zeros((1, at), dtype=torch.long), dict(params))
            gc.collect()
            peak, left = tracker.peak, tracker.total
            tracker.reset_peak()
            model.forward(torch.zeros((1, 1), dtype=torch.long), dict(params))
            step = tracker.peak
    versions = f"torch {torch.__version__}, exllamav3 {version('exllamav3')}, transformers {version('transformers')}"
    on_card = {k: v for k, v in tensors.items() if not LEFT.search(k)}
    weights = sum(NAMES[kind] * math.prod(shape) for kind, shape in on_card.values())
    return {
        "weights_bytes": str(weights),
        "cache_bytes": str(held),
        "standing_bytes": str(standing),
        "peak_bytes": str(peak),
        "left_bytes": str(left),
        "step_bytes": str(step),
        "reserved_bytes": str(tracker.allocator.reserved),
        "versions": versions,
    }


def moved(tensor, device, **_named):
    import torch

    return tensor if tensor.device == device else torch.empty(tensor.shape, dtype=tensor.dtype, device=device)


def real(make, *args, **named):
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        return make(*args, **named)


if __name__ == "__main__":
    CONFIGS = rows.configs()
    rows.count_rows(COUNTED, __doc__, lambda row: row["model"], count)
