"""Stands in for what TRELLIS loads and its weights do not need: spconv, whose convolutions are tables of weights here, and renderers."""

from __future__ import annotations

import sys
import types
from unittest.mock import MagicMock


def install() -> None:
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
