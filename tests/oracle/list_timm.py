"""Lists what timm's architectures hold: tensors by shape, and the most elements that one picture keeps alive.

    pip install -e '.[oracle]' timm torchvision
    python tests/oracle/list_timm.py                  # architectures with published weights that have no row yet
    python tests/oracle/list_timm.py --only resnet    # those whose name begins with this, anew; the whole name of one without weights of its own

A config of timm names an entry of the library's registry and no sizes, so that the library's own table is the only source of its shape.
Writes tables/library/timm.jsonl: a line for each architecture, or for each size of picture where positions are made for one:

    architecture, input_size, global_pool, is_fixed (false: pictures of any size), hidden_size (of the features), layer_count (innermost blocks),
    tensors (role, count, outputs, inputs where it is a matrix), head (those of a classifier: role, count, outputs of each class,
    outputs besides, inputs), classified and bare (what a model has besides with a classifier, and without), parameter_count (with 1,000 classes), buffer_count (what a checkpoint holds besides: running statistics),
    tokens (patches and tokens before them, or cells of 32 × 32 pixels), peak_elements (of one picture, in the compute precision)

Peaks are live storages of a forward pass on tensors that hold nothing (hollow.py), in bf16 and in fp32, of which the larger counts; of
architectures that take any size the larger per pixel of two sizes.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections import Counter
from pathlib import Path

FILE = Path(__file__).parents[2] / "tables" / "library" / "timm.jsonl"
CLASSES = (1000, 1003)  # what differs between the two is the classifier
CELL = 32
ATTENTION = (
    (r"(^|\.|_)qkv(_proj)?$", "attention_qkv"),
    (r"(^|\.|_)q(_proj|uery)?$", "attention_q"),
    (r"(^|\.|_)k(_proj|ey)?$", "attention_k"),
    (r"(^|\.|_)v(_proj|alue)?$", "attention_v"),
    (r"(^|\.|_)kv$", "attention_kv"),
    (r"attn[a-z_0-9]*\.(proj|out_proj)$", "attention_o"),
    (r"(^|\.)fc1$|(^|\.)w1$", "ffn_up"),
    (r"(^|\.)fc1_g$", "ffn_gate"),
    (r"(^|\.)fc1_x$", "ffn_up"),
    (r"(^|\.)fc2$|(^|\.)w2$", "ffn_down"),
)  # fmt: skip


def build(architecture: str, tag: str, classes: int, device: str = "meta", **more):
    import timm
    import torch

    with torch.device(device):
        return timm.create_model(
            f"{architecture}.{tag}" if tag else architecture, pretrained=False, num_classes=classes, **more
        )


def tensors_of(model) -> dict[str, tuple]:
    """By name: role, outputs, inputs (None but for matrices)."""
    import torch

    found, seen = {}, set()
    for path, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            size = parameter.numel()
            if isinstance(module, torch.nn.Linear) and name == "weight":
                role = next((role for pattern, role in ATTENTION if re.search(pattern, path)), "projection")
                found[f"{path}.{name}"] = (role, *parameter.shape)
            elif isinstance(module, torch.nn.Embedding):
                found[f"{path}.{name}"] = ("embedding", *parameter.shape)
            elif name == "weight" and parameter.ndim >= 3:
                found[f"{path}.{name}"] = ("conv", size, None)
            elif name == "weight" and re.search("norm|bn", type(module).__name__.lower()):
                found[f"{path}.{name}"] = ("norm", size, None)
            elif name == "bias":
                found[f"{path}.{name}"] = ("bias", size, None)
            else:
                found[f"{path}.{name}"] = ("scale" if parameter.ndim == 1 else "parameter", size, None)
    return found


def grouped(rows) -> list[list]:
    """[role, count, outputs, inputs?], alike ones together."""
    return [
        [role, count, *(n for n in size if n is not None)]
        for (role, *size), count in sorted(Counter(rows).items(), key=str)
    ]


def block_count(model) -> int:
    """Innermost numbered modules that hold at least two with weights: residual blocks, layers of a transformer."""

    def weighted(module) -> int:
        return sum(1 for m in module.modules() if m._parameters.get("weight") is not None and m.weight.ndim > 1)

    numbered = {
        path for path, module in model.named_modules() if path.split(".")[-1].isdigit() and weighted(module) > 1
    }
    return max(1, sum(not any(other.startswith(f"{path}.") for other in numbered) for path in numbered))


def peak(model, size: tuple[int, ...], dtype: str) -> float:
    """Elements alive at most while one picture passes, its own included."""
    import hollow
    import torch

    hollow.install_attention()
    kind = getattr(torch, dtype)
    with torch.no_grad(), hollow.Hollow() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        before = tracker.total
        picture = torch.ones(1, *size, dtype=kind)
        tracker.track(picture)
        model(picture)
        return (tracker.peak - before) / kind.itemsize


def pooling(model) -> str | None:
    """How features become one vector, as configs name it in `global_pool`; None where the model does not say."""
    for stated in (model, getattr(model, "head", None)):
        pool = getattr(stated, "global_pool", None)
        pool = pool if isinstance(pool, str) else getattr(pool, "pool_type", None)
        if isinstance(pool, str) and pool:
            return pool
    return None


def most(model, sizes: list[tuple[int, ...]]) -> list[float | None]:
    """The peaks of pictures of these sizes, in elements of the precision that takes more; None of a size that the model refuses."""
    import torch

    found: list[list[float]] = [[] for _ in sizes]
    for dtype in ("bfloat16", "float32"):
        model = model.eval().to(getattr(torch, dtype)).to_empty(device="cpu")
        for buffer in model.buffers():
            if not buffer.is_floating_point():
                buffer.zero_()
        for size, peaks in zip(sizes, found, strict=True):
            try:
                peaks.append(peak(model, size, dtype))
            except Exception:
                if size == sizes[0]:
                    raise
    return [max(peaks, default=None) for peaks in found]


def rows_of(architecture: str, sizes: dict[tuple, str]) -> list[dict]:
    import timm

    rows = []
    for size, tag in sizes.items():
        model = build(architecture, tag, CLASSES[0])
        first, second, bare = tensors_of(model), *(tensors_of(build(architecture, tag, n)) for n in (CLASSES[1], 0))
        head = []
        for name, (role, outputs, inputs) in first.items():
            other = second[name][1]
            if other != outputs:
                each, rest = divmod(other - outputs, CLASSES[1] - CLASSES[0])
                if rest or role not in ("projection", "bias", "conv"):
                    raise ValueError(f"{name} is no classifier")
                role = "head" if role == "projection" else role
                head.append((role, each, outputs - each * CLASSES[0], inputs))
        kept = {name: row for name, row in first.items() if second[name] == row and bare.get(name) == row}
        lost = {name for name in first if second[name] == first[name]} - kept.keys()
        row = {
            "architecture": architecture,
            "input_size": list(size),
            "global_pool": pooling(model),
            "hidden_size": int(model.num_features),
            "layer_count": block_count(model),
            "tensors": grouped(kept.values()),
            "head": [
                [role, n, *rest[:2], *(() if rest[2] is None else rest[2:])]
                for (role, *rest), n in Counter(head).items()
            ],
            "classified": grouped(first[name] for name in lost),
            "bare": grouped(row for name, row in bare.items() if name not in kept),
            "parameter_count": sum(p.numel() for p in model.parameters()),
            "buffer_count": sum(v.numel() for v in model.state_dict().values())
            - sum(p.numel() for p in model.parameters()),
        }
        patches = getattr(getattr(model, "patch_embed", None), "num_patches", None)
        tokens = patches and patches + getattr(model, "num_prefix_tokens", 0)
        row["tokens"] = tokens or -(-size[1] // CELL) * -(-size[2] // CELL)
        wide = (size[0], 2 * size[1], 2 * size[2])
        elements, *of_wide = most(model, [size] if tokens else [size, wide])
        row["is_fixed"] = not (of_wide and of_wide[0] is not None and of_wide[0] <= 4 * 1.02 * elements)
        row["peak_elements"] = int(elements if row["is_fixed"] else max(elements, of_wide[0] / 4)) + 1
        row["library_version"] = f"timm {timm.__version__}"
        rows.append(row)
        if len(rows) > 1 and rows[-1]["tensors"] == rows[0]["tensors"] and not rows[0]["is_fixed"]:
            rows.pop()
    return rows


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=None, help="what names of architectures begin with, which are listed anew")
    parser.add_argument("--first", type=Path, help="names that come first, one a line")
    arguments = parser.parse_args()
    import timm
    from timm.models import get_pretrained_cfg

    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    rows = {(row["architecture"], *row["input_size"]): row for row in map(json.loads, lines)}
    sizes: dict[str, dict[tuple, str]] = {}
    for name in timm.list_pretrained():
        architecture, _, tag = name.partition(".")
        config = get_pretrained_cfg(name)
        sizes.setdefault(architecture, {}).setdefault(tuple(config.input_size), tag)
    if arguments.only in timm.list_models() and arguments.only not in sizes:  # its weights are part of another model's
        sizes[arguments.only] = {tuple(get_pretrained_cfg(arguments.only).input_size): ""}
    first = arguments.first.read_text().split() if arguments.first else []
    for architecture in [*(n for n in first if n in sizes), *(n for n in sorted(sizes) if n not in first)]:
        listed = any(key[0] == architecture for key in rows)
        if listed and not (arguments.only and architecture.startswith(arguments.only)):
            continue
        if arguments.only and not architecture.startswith(arguments.only):
            continue
        free = {
            k: v
            for k, v in sizes[architecture].items()
            if get_pretrained_cfg(f"{architecture}.{v}" if v else architecture).fixed_input_size
        }
        wanted = free or dict(list(sizes[architecture].items())[:1])
        try:
            new = rows_of(architecture, wanted)
        except Exception as error:
            print(f"{architecture}: {type(error).__name__} {str(error)[:150]}", flush=True)
            continue
        rows |= {(row["architecture"], *row["input_size"]): row for row in new}
        ordered = [json.dumps(rows[key], separators=(",", ":")) for key in sorted(rows)]
        FILE.write_text("\n".join(ordered) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()
