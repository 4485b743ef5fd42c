"""Fits what one recurrent layer holds to its widths: where the rows of tables/facts/recurrence.csv come from.

    pip install -e '.[oracle]'
    python tests/oracle/fit_recurrence.py gated-delta full-16 lora-amp prefill-16

A layer of transformers is run alone on fake CUDA tensors, in several shapes that no model has. The bytes that are alive after each of its
operators are a linear function of its widths: every moment that is the largest for some shape is printed with its bytes per element,
`kept` is what the forward pass leaves. tests/formulas/test_recurrent_layers.py and test_training_oracle.py judge the rows on whole models.
"""

from __future__ import annotations

import argparse
import gc
import logging
import warnings

import count_training
import fake_cuda
import live_storage
import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

# what runs: precision of the weights, of the layer's input, whether the weights are frozen, autocast, quantised
REGIMES = {
    "full-16": ("bfloat16", "bfloat16", False, False, False),
    "full-amp": ("float32", "float32", False, True, False),
    "full-32": ("float32", "float32", False, False, False),
    "lora-16": ("bfloat16", "bfloat16", True, False, False),
    "lora-32": ("float32", "float32", True, False, False),
    "lora-amp": ("bfloat16", "bfloat16", True, True, False),
    "qlora-amp": ("bfloat16", "float32", True, True, True),
    "qlora-32": ("bfloat16", "float32", True, False, True),
    "prefill-16": ("bfloat16", "bfloat16", True, False, False),
    "prefill-32": ("float32", "float32", True, False, False),
}
# hidden size, heads of keys or groups, heads, key and value width of a head, tokens of a chunk
SHAPES = {
    "gated-delta": [
        (512, 8, 16, 128, 128, 64), (640, 4, 24, 96, 192, 64), (768, 2, 8, 32, 256, 64), (1536, 4, 8, 256, 32, 64),
        (256, 2, 32, 64, 128, 64), (900, 5, 20, 128, 64, 64), (2048, 3, 12, 64, 64, 64), (300, 2, 4, 192, 256, 64),
    ],
    "mamba2": [
        (512, 2, 16, 64, 64, 64), (1024, 1, 32, 64, 32, 128), (640, 4, 24, 32, 96, 64), (768, 2, 8, 16, 128, 32),
        (1536, 8, 16, 192, 64, 96), (256, 2, 64, 128, 16, 128), (900, 5, 20, 64, 64, 256), (300, 2, 12, 96, 80, 64),
    ],
    "short-convolution": [(512, 1, 0, 0, 0, 1), (1024, 1, 0, 0, 0, 1)],
}  # fmt: skip


def layer(recurrence: str, shape: tuple):
    """The module on the meta device, its call, and its convolution's channels."""
    import transformers
    from transformers.models import lfm2, nemotron_h, qwen3_5

    hidden, groups, heads, key, value, chunk = shape
    first = {"num_hidden_layers": 2, "hidden_size": hidden}
    if recurrence == "gated-delta":
        config = qwen3_5.configuration_qwen3_5.Qwen3_5TextConfig(
            **first, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=groups,
            linear_num_value_heads=heads, linear_key_head_dim=key, linear_value_head_dim=value,
        )  # fmt: skip
        module, channels = qwen3_5.modeling_qwen3_5.Qwen3_5GatedDeltaNet(config, 0), 2 * groups * key + heads * value
    elif recurrence == "mamba2":
        config = nemotron_h.configuration_nemotron_h.NemotronHConfig(
            **first, layer_types=["mamba", "attention"], mamba_num_heads=heads, mamba_head_dim=value, n_groups=groups,
            ssm_state_size=key, chunk_size=chunk,
        )  # fmt: skip
        module, channels = (
            nemotron_h.modeling_nemotron_h.NemotronHMamba2Mixer(config, 0),
            heads * value + 2 * groups * key,
        )
    else:
        config = lfm2.configuration_lfm2.Lfm2Config(
            **first, layer_types=["conv", "full_attention"], num_attention_heads=4, num_key_value_heads=4
        )
        module, channels = lfm2.modeling_lfm2.Lfm2ShortConv(config, 0), hidden
    name = "past_key_values" if recurrence == "short-convolution" else "cache_params"
    cache = lambda: transformers.DynamicCache(config=config)  # noqa: E731
    return module, lambda x, kept: module(x, **{name: cache() if kept else None}), channels


class Series(live_storage.Tracker):
    """Bytes alive after every operator, its scratch included."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: list[int] = []
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.peak = 0
        result = super().__torch_dispatch__(func, types, args, kwargs)
        self.bytes.append(max(self.peak, self.total))
        self.names.append(str(func))
        return result


def run(recurrence: str, shape: tuple, regime: str, tokens: int):
    """What is kept, and beside it the bytes after every operator of the forward pass and of backward, with their names."""
    weights, given, frozen, autocast, quantised = REGIMES[regime]
    reads = regime.startswith("prefill")
    with torch.device("meta"):
        module, call, channels = layer(recurrence, shape)
        module.to(getattr(torch, weights)).train(not reads)
        if quantised:
            count_training.quantise(module)
    for parameter in module.parameters():
        parameter.requires_grad_(not frozen)
    series = Series()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.set_grad_enabled(not reads):
        count_training.to_fake(module)
        count_training.behave_as_with_values()
        with series:
            for tensor in (*module.parameters(), *module.buffers()):
                series.track(tensor)
            size = (1, tokens, shape[0])
            x = torch.empty(size, dtype=getattr(torch, given), device="cuda", requires_grad=not reads) * 1
            before, start = series.total, len(series.bytes)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                output = call(x, reads)
            gc.collect()
            made = output.untyped_storage().nbytes()
            kept = 0 if reads else series.total - before - made
            forward, middle = np.array(series.bytes[start:], float) - before - kept, len(series.bytes)
            if not reads:
                gradient = torch.empty_like(output)
                del x
                series.sums_in_place = True
                torch.autograd.backward([output], [gradient])
            backward = np.array(series.bytes[middle:], float) - before - kept - made
    return kept, forward, backward, series.names[start:middle], series.names[middle:], channels


def widths(shape: tuple, channels: int, tokens: int) -> dict[str, float]:
    hidden, _groups, heads, key, value, chunk = shape
    padded = -(-tokens // chunk) * chunk
    inner = {"key": heads * key, "value": heads * value, "head": heads}
    return (
        {"hidden": hidden * tokens, "convolution": channels * tokens}
        | {name: width * tokens for name, width in inner.items()}
        | {f"padded {name}": width * padded for name, width in inner.items()}
        | {"padded chunk": heads * chunk * padded, "padded state": heads * key * value * padded / chunk}
        | {"output weights": hidden * heads * value, "input weights": hidden * channels}
    )


def fitted(rows: list[dict[str, float]], values: np.ndarray, scale: np.ndarray) -> tuple[str, float]:
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    matrix = np.array([[row[name] for name in names] for row in rows], float) / scale[:, None]
    unit = np.abs(matrix).max(0)
    found = np.linalg.lstsq(matrix / unit, values / scale, rcond=1e-12)[0] / unit
    error = np.abs(matrix @ found - values / scale).max()
    return ", ".join(f"{n} {v:.2f}" for n, v in zip(names, found, strict=True) if abs(v) > 0.05), error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recurrence", choices=SHAPES)
    parser.add_argument("regime", nargs="+", choices=REGIMES)
    parser.add_argument(
        "--chunks", type=int, default=8, help="whole chunks of a sequence; constants show as 1 ÷ chunks"
    )
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    fake_cuda.install()
    live_storage.install_attention()
    for regime in asked.regime:
        rows, runs = [], []
        for shape in SHAPES[asked.recurrence]:
            whole = asked.chunks * shape[-1] if shape[-1] > 1 else 512
            for tokens in (whole - 8, whole - shape[-1] // 2 - 4):
                runs.append(run(asked.recurrence, shape, regime, tokens))
                rows.append(widths(shape, runs[-1][-1], tokens))
        kept = np.array([r[0] for r in runs], float)
        scale = np.maximum(kept, [r[1].max() for r in runs])
        if kept.any():
            print(regime, "kept: {} (error {:.5f})".format(*fitted(rows, kept, scale)))
        for part, names in ((1, 3), (2, 4)):
            if not runs[0][part].size:
                continue
            for index in sorted({int(r[part].argmax()) for r in runs}):
                values = np.array([r[part][index] for r in runs])
                text, error = fitted(rows, values, scale)
                print(
                    regime, "forward" if part == 1 else "backward", runs[0][names][index], f"{text} (error {error:.5f})"
                )


if __name__ == "__main__":
    main()
