"""Stands in for what models of other packages load and their weights do not need: renderers, kernels, tables of sparse convolutions."""

from __future__ import annotations

import sys
import types
from unittest.mock import MagicMock


def for_trellis() -> None:
    """spconv, whose convolutions are tables of weights here, and renderers."""
    import torch

    class Convolution(torch.nn.Module):
        def __init__(self, inputs, outputs, kernel_size, *_, bias=True, **__):
            super().__init__()
            self.out_channels = outputs
            self.weight = torch.nn.Parameter(torch.empty(outputs, *[kernel_size] * 3, inputs))
            self.bias = torch.nn.Parameter(torch.empty(outputs)) if bias else None

    spconv = types.ModuleType("spconv.pytorch")
    spconv.SubMConv3d = spconv.SparseConv3d = Convolution
    spconv.ConvAlgo, spconv.SparseConvTensor = MagicMock(), MagicMock()
    package = types.ModuleType("spconv")
    package.pytorch = spconv
    sys.modules |= {"spconv": package, "spconv.pytorch": spconv}
    for name in (
        "flash_attn",
        "xformers",
        "xformers.ops",
        "easydict",
        "utils3d",
        "utils3d.torch",
        "plyfile",
        "kaolin",
        "kaolin.utils",
        "kaolin.utils.testing",
    ):
        sys.modules.setdefault(name, MagicMock())
    for name in ("representations", "representations.mesh", "pipelines", "renderers", "utils"):
        sys.modules.setdefault(f"trellis.{name}", MagicMock())
    elastic = types.ModuleType("trellis.utils.elastic_utils")
    elastic.ElasticModuleMixin = type("ElasticModuleMixin", (), {})
    sys.modules |= {"trellis.utils.elastic_utils": elastic, "trellis.utils.random_utils": MagicMock()}


def for_trellis2() -> None:
    """Besides what TRELLIS needs: kernels of its sparse convolutions, whose weights are those of spconv's, and what makes meshes."""
    import os
    from importlib.util import find_spec

    os.environ["SPARSE_CONV_BACKEND"] = "spconv"
    for name in ("o_voxel", "o_voxel.convert", "flex_gemm", "cumesh", "nvdiffrast", "nvdiffrast.torch"):
        sys.modules.setdefault(name, MagicMock())
    package = types.ModuleType("trellis2")  # without what it imports by itself
    package.__path__ = list(find_spec("trellis2").submodule_search_locations)
    sys.modules["trellis2"] = package
    for name in ("representations", "pipelines", "renderers", "utils"):
        sys.modules.setdefault(f"trellis2.{name}", MagicMock())
    elastic = types.ModuleType("trellis2.utils.elastic_utils")
    elastic.ElasticModuleMixin = type("ElasticModuleMixin", (), {})
    sys.modules["trellis2.utils.elastic_utils"] = elastic


def for_vibevoice() -> None:
    """Names that Transformers gave away by now, and what its classes do once they are built."""
    import transformers

    words = types.ModuleType("transformers.models.qwen2.tokenization_qwen2_fast")
    words.Qwen2TokenizerFast = transformers.Qwen2Tokenizer
    sys.modules.setdefault(words.__name__, words)
    for kind in (transformers.AutoModel, transformers.AutoModelForCausalLM, transformers.AutoConfig):
        register = kind.register
        kind.register = lambda key, made, exist_ok=False, register=register: register(key, made, exist_ok=True)
    transformers.PreTrainedModel.post_init = lambda _self: None


def for_vibevoice_schedule() -> None:
    """Its noise schedule works on numbers and holds no weights."""
    from vibevoice.modular import modeling_vibevoice, modeling_vibevoice_streaming

    modeling_vibevoice.DPMSolverMultistepScheduler = MagicMock()
    modeling_vibevoice_streaming.DPMSolverMultistepScheduler = MagicMock()


def for_birefnet() -> None:
    """Layers of timm without weights, and what works on pictures."""
    import torch

    class Dropped(torch.nn.Module):
        def __init__(self, *_, **__):
            super().__init__()

    layers = types.ModuleType("timm.layers")
    layers.DropPath, layers.trunc_normal_ = Dropped, MagicMock()
    layers.to_2tuple = lambda size: size if isinstance(size, tuple) else (size, size)
    package, pictures = types.ModuleType("timm"), types.ModuleType("dataset")
    package.layers, pictures.class_labels_TR_sorted = layers, []
    sys.modules |= {"timm": package, "timm.layers": layers, "dataset": pictures}
    for name in ("torchvision", "torchvision.ops", "torchvision.models", "kornia", "kornia.filters", "einops"):
        sys.modules.setdefault(name, MagicMock())
    sys.modules["models.backbones.dino_v3"] = MagicMock()
