"""Forward passes of classes of other packages than Transformers, for count_forward_passes.py."""

from __future__ import annotations

import sys
from unittest.mock import MagicMock

from rows import Row

# what UniDepth loads to train and to draw
IDLE = (
    *("wandb", "h5py", "cv2", "unidepth.utils.visualization", "unidepth.utils.evaluation_depth", "unidepth.utils.chamfer_distance"),
    *("unidepth.ops.knn", "unidepth.utils.validation", "matplotlib", "matplotlib.cm", "matplotlib.pyplot", "imageio"),
)  # fmt: skip


def packaged(name: str):
    """The class as list_packages.py builds it."""
    import list_packages

    return list_packages.BUILDERS[name][2](list_packages.CONFIGS[name]).eval()


def unidepth(row: Row) -> tuple[int, int, str]:
    """Its parameters, the peak beside them, and what made it. Its own `infer` runs under autocast to fp16 on CUDA alone, which keeps a copy
    of each matrix in 16 bits until it ends: on fake tensors of that device (live_storage.py), with the work of convolutions."""
    import fake_cuda
    import live_storage
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    for name in IDLE:
        sys.modules.setdefault(name, MagicMock())
    fake_cuda.install()
    live_storage.install_attention()

    class Convolving(live_storage.Tracker):
        at = ""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            before, result = self.peak, super().__torch_dispatch__(func, types, args, kwargs)
            if "convolution" in func._schema.name and result.device.type == "cuda":
                copies = live_storage.worked_in(args[0], result)
                self.peak = max(self.peak, self.total + sum(live_storage._round(one.nbytes, 512) for one in copies))
            if self.peak > before:
                self.at = str(func)
            return result

    model = packaged("unidepth")
    # of its configs (configs/config_v2_vitl14.json)
    model.shape_constraints = {"ratio_bounds": [0.5, 2.5], "pixels_max": 600_000, "pixels_min": 200_000}
    with FakeTensorMode(allow_non_fake_inputs=True), Convolving() as tracker:
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                for name, tensor in list(held.items()):
                    if tensor is not None:
                        fake = torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")
                        held[name] = torch.nn.Parameter(fake) if held is module._parameters else fake
        count = sum(parameter.numel() for parameter in model.parameters())
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        tracker.reset_peak()
        sides = int(row["height"]), int(row["width"])
        model.infer(torch.zeros(int(row["sequences"]), 3, *sides, dtype=torch.uint8, device="cuda"))
        return count, tracker.peak - 4 * count, tracker.at


def kronos(row: Row, _dtype):
    """A step of its loop over candles that are codes already, in fp32; or its tokenizer, which makes candles codes and codes candles."""
    import torch
    from count_forecasters import build
    from rows import configs

    config = configs()[row["model_id"]]
    is_tokenizer = "n_enc_layers" in config
    model = build("KronosTokenizer" if is_tokenizer else "Kronos", config)[0].eval()
    many, candles = int(row["sequences"]), int(row["tokens"])
    codes = torch.zeros(many, candles, dtype=torch.long)

    def told() -> None:
        model.encode(torch.zeros(many, candles, config["d_in"]), half=True)
        model.decode([codes, codes], half=True)

    def stepped() -> None:
        coarse, context = model.decode_s1(codes, codes, torch.zeros(many, candles, 5))
        torch.softmax(coarse[:, -1], dim=-1)
        torch.softmax(model.decode_s2(context, codes[:, :1])[:, -1], dim=-1)

    return model, told if is_tokenizer else stepped
