"""Counts text encoders of pipelines as Transformers packs them with bitsandbytes, and as diffusers casts them: the truth for `text_dtype_id` of pipeline_of.

    pip install -e '.[oracle]'
    python tests/oracle/count_packed_encoders.py            # all rows of packed_encoders.csv that have no peak yet
    python tests/oracle/count_packed_encoders.py --again T5    # rows whose class or model holds this, anew

fp8 is diffusers' layerwise casting (`apply_layerwise_casting`) of all linear layers but those that SKIPPED names: T5's last matrix, before which its class
casts what it multiplies to the matrix's own numbers, so that 8 bits stop it; tables of tokens, which would lie there whole in 16 bits; heads.

The class of Transformers is built without weights; linear layers but those that its quantiser leaves out (its own lists: tied and output
matrices, what the class keeps in high precision) are held in 4 bits and an fp32 scale for each 64, or in 8 bits and one for each row. Then it
reads a text as in count_pipelines.py, on tensors that hold nothing: a matrix of 4 bits lies there in 16 bits while it is multiplied; of 8 bits
what is multiplied lies there once more in fp16 and in 8 bits, and the result in 32 (bitsandbytes/autograd/_functions.py, MatMul8bitLt).
"""

from __future__ import annotations

from pathlib import Path

from count_packed_denoisers import solid
from count_pipelines import LANGUAGE
from rows import configs, count_rows

ROWS = Path(__file__).with_name("packed_encoders.csv")
SKIPPED = ("embed", "shared", "norm", "wo$", "head")  # skip_modules_pattern


def build(row: dict[str, str], config: dict):
    """In bf16, on the meta device."""
    import torch
    import transformers

    config = config["text_encoder_configs"][row["part"]]
    fields = {k: v for k, v in config.items() if k not in ("model_type", "torch_dtype", "dtype")}
    kind = getattr(transformers, row["class"])
    with torch.device("meta"):
        model = kind._from_config(kind.config_class(**fields), dtype=torch.bfloat16).eval()
    model.tie_weights()
    return model


def pack(model, dtype_id: str) -> None:
    import torch

    if dtype_id == "fp8":
        from diffusers.hooks import apply_layerwise_casting

        apply_layerwise_casting(model, torch.float8_e4m3fn, torch.bfloat16, skip_modules_pattern=SKIPPED)
        return
    from transformers.quantizers.base import HfQuantizer
    from transformers.quantizers.quantizers_utils import should_convert_module

    class In4(torch.nn.Module):
        def __init__(self, linear) -> None:
            super().__init__()
            size = linear.weight.numel()
            self.shape, self.bias = linear.weight.shape, linear.bias
            self.weight = torch.nn.Parameter(torch.empty(size // 2, dtype=torch.uint8, device="meta"), False)
            self.scales = torch.nn.Parameter(torch.empty(-(-size // 64), device="meta"), False)

        def forward(self, inputs):
            return torch.nn.functional.linear(inputs, inputs.new_empty(self.shape), self.bias)

    class In8(torch.nn.Module):
        def __init__(self, linear) -> None:
            super().__init__()
            self.shape, self.bias = linear.weight.shape, linear.bias
            self.weight = torch.nn.Parameter(torch.empty(self.shape, dtype=torch.int8, device="meta"), False)
            self.scales = torch.nn.Parameter(torch.empty(self.shape[0], device="meta"), False)

        def forward(self, inputs):
            halved = inputs.to(torch.float16)
            packed = torch.empty(inputs.shape, dtype=torch.int8)
            del halved
            product = torch.empty((*inputs.shape[:-1], self.shape[0]), dtype=torch.int32)
            result = inputs.new_empty(product.shape)
            del product, packed
            return result

    left = HfQuantizer.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
    kind = In8 if dtype_id == "int8" else In4
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and should_convert_module(name, left):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, kind(module))


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
    pack(model, row["dtype_id"])
    solid(model)
    hollow.install_attention()
    with torch.no_grad(), Packing() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        given = {"input_ids": torch.zeros(1, int(row["text_tokens"]), dtype=torch.long)}
        if row["class"].startswith(LANGUAGE):  # its pipeline reads the states of its layers
            given |= {"attention_mask": torch.ones_like(given["input_ids"]), "output_hidden_states": True}
        for value in given.values():
            if isinstance(value, torch.Tensor):
                tracker.track(value)
        tracker.reset_peak()
        model(**given, return_dict=False)
        return weights, tracker.peak - weights, tracker.at


def main() -> None:
    import torch
    import transformers

    known = configs()

    def counted(row: dict[str, str]) -> dict[str, str]:
        weights, peak, at = count(row, known[row["model_id"]])
        print(*(row[name] for name in ("model_id", "class", "dtype_id")), weights, peak, at, flush=True)
        versions = f"torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
        return {"weights_bytes": str(weights), "peak_bytes": str(peak), "versions": versions}

    count_rows(ROWS, __doc__, lambda row: f"{row['model_id']} {row['class']} {row['dtype_id']}", counted)


if __name__ == "__main__":
    main()
