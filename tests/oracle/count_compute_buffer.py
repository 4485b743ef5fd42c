"""Counts the compute buffers that llama.cpp reserves: the truth that the formula of its activations is held to.

    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36      # carries llama.cpp's source; unpack it
    cmake -B BUILD -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_COMMON=OFF vendor/llama.cpp && cmake --build BUILD --target llama
    python tests/oracle/count_compute_buffer.py vendor/llama.cpp BUILD     # all rows of compute_buffer.csv that have no bytes yet

llama.cpp itself lays out the graph of a micro-batch with as many outputs as tokens, or as its server may be asked for (`output_tokens`), one cache for all sequences, for GPUs that hold
nothing (hollow_gpu.h), from files that have the names and sizes of a model's tensors and no values. `buffer_bytes` is the largest of
the GPUs' buffers. Models are those of the snapshot.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import converted_models
import gguf_holes
import indexed_models
from rows import configs

ROWS = Path(__file__).with_name("compute_buffer.csv")
VERSIONS = "llama.cpp 0c1e57098 (llama-cpp-python 0.3.36)"
NORMS, GEMMA = (
    ("attn_norm", "ffn_norm"),
    ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"),
)
# model_type → what llama.cpp calls it, and how its tensors differ from a Llama's
KINDS = {
    "llama": ("llama", {}),
    "qwen2": ("qwen2", {"biases": ("attn_q", "attn_k", "attn_v")}),
    "qwen3": ("qwen3", {"head_norms": True}),
    "qwen3_moe": ("qwen3moe", {"head_norms": True}),
    "phi3": ("phi3", {"fused": True}),
    "gemma2": ("gemma2", {"norms": GEMMA}),
    "gemma3_text": ("gemma3", {"norms": GEMMA, "head_norms": True}),
    "gemma4_unified_text": ("gemma4", {"norms": GEMMA, "head_norms": True}),
    "gpt_oss": ("gpt-oss", {"norms": ("attn_norm", "post_attention_norm"), "all_biases": True, "sinks": True}),
    "gpt_neox": ("gptneox", {"fused": True, "all_biases": True, "plain": True}),
}


def described(config: dict) -> tuple[str, dict, dict[str, tuple[int, ...]]]:
    """llama.cpp's name of the architecture, the keys of the file, and its tensors."""
    text = config.get("text_config") or config
    arch, how = KINDS[text["model_type"]]
    hidden, layers, heads = (text[n] for n in ("hidden_size", "num_hidden_layers", "num_attention_heads"))
    width, vocabulary = text["intermediate_size"], text["vocab_size"]
    size, cached = text.get("head_dim") or hidden // heads, text.get("num_key_value_heads") or heads
    experts = text.get("num_experts") or text.get("num_local_experts") or 0
    expert_width = text.get("moe_intermediate_size") or width
    sizes, groups = [size] * layers, [cached] * layers
    keys: dict = {
        "block_count": layers, "context_length": 1 << 21, "embedding_length": hidden, "feed_forward_length": width,
        "attention.head_count": heads, "attention.layer_norm_rms_epsilon": 1e-6, "attention.layer_norm_epsilon": 1e-5,
        "vocab_size": vocabulary, "rope.scaling.original_context_length": 4096,
    }  # fmt: skip
    if text.get("sliding_window"):
        keys["attention.sliding_window"] = text["sliding_window"]
    if experts:
        keys |= {"expert_count": experts, "expert_used_count": text["num_experts_per_tok"]}
        keys["expert_feed_forward_length"] = expert_width
    if arch == "gemma2":
        keys |= {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    if arch == "gptneox":
        keys["use_parallel_residual"] = True
    if arch == "gemma4":
        sliding = [kind == "sliding_attention" for kind in text["layer_types"]]
        sizes = [size if near else text["global_head_dim"] for near in sliding]
        groups = [cached if near else text["num_global_key_value_heads"] for near in sliding]
        keys |= {"attention.sliding_window_pattern": sliding, "embedding_length_per_layer_input": 0}
        keys |= {"attention.key_length_swa": size, "attention.value_length_swa": size, "rope.dimension_count_swa": size}
        keys |= {"final_logit_softcapping": 30.0, "attention.shared_kv_layers": 0}
    for name in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        keys[name] = max(sizes)
    keys["attention.head_count_kv"] = groups if len(set(groups)) > 1 else cached

    tensors: dict[str, tuple[int, ...]] = {"token_embd.weight": (hidden, vocabulary), "output_norm.weight": (hidden,)}
    if how.get("plain"):
        tensors["output_norm.bias"] = (hidden,)
    if not text.get("tie_word_embeddings", "gemma" in arch):
        tensors["output.weight"] = (hidden, vocabulary)
    if arch == "gemma4":
        tensors["rope_freqs.weight"] = (max(sizes) // 2,)
    for i, (each, kv) in enumerate(zip(sizes, groups, strict=True)):
        layer: dict[str, tuple[int, ...]] = {name: (hidden,) for name in how.get("norms", NORMS)}
        if how.get("fused"):
            layer["attn_qkv"] = (hidden, each * (heads + 2 * kv))
        else:
            layer |= {"attn_q": (hidden, each * heads), "attn_k": (hidden, each * kv), "attn_v": (hidden, each * kv)}
        layer["attn_output"] = (each * heads, hidden)
        if how.get("head_norms"):
            layer |= {"attn_q_norm": (each,), "attn_k_norm": (each,)}
        if experts:
            layer |= {f"ffn_{n}_exps": (hidden, expert_width, experts) for n in ("gate", "up")}
            layer |= {"ffn_down_exps": (expert_width, hidden, experts), "ffn_gate_inp": (hidden, experts)}
        elif how.get("fused") and not how.get("plain"):
            layer |= {"ffn_up": (hidden, 2 * width), "ffn_down": (width, hidden)}
        else:
            layer |= {"ffn_up": (hidden, width), "ffn_down": (width, hidden)}
            layer |= {} if how.get("plain") else {"ffn_gate": (hidden, width)}
        for name, shape in layer.items():
            tensors[f"blk.{i}.{name}.weight"] = shape
            biased = how.get("plain") if len(shape) == 1 else how.get("all_biases") or name in how.get("biases", ())
            if biased:
                tensors[f"blk.{i}.{name}.bias"] = shape[:1] if len(shape) == 1 else shape[1:]
        if how.get("sinks"):
            tensors[f"blk.{i}.attn_sinks.weight"] = (heads,)
    return arch, keys, tensors


def write(path: Path, config: dict) -> None:
    indexed = indexed_models.keys_of(config)
    if not indexed and (config.get("text_config") or config)["model_type"] not in KINDS:
        converted_models.write(path, config)
        return
    arch, keys, tensors = (*indexed, {}) if indexed else described(config)
    named = {"tokenizer.ggml.model": "none", **{f"{arch}.{name}": value for name, value in keys.items()}}
    gguf_holes.write(path, arch, named, tensors, lambda name: name.endswith(".bias"))


def count(program: Path, file: Path, row: dict[str, str]) -> int:
    kind = {"bf16": "1", "q8_0": "8", "q4_0": "2"}[row["kv_dtype_id"]]
    cells = int(row["context_tokens"]) * int(row["sequences"])
    asked = [str(cells), row["sequences"], str(int(row["attention"] != "eager")), kind, row["gpu_count"]]
    asked += ["512", row["output_tokens"]] if row["output_tokens"] else []
    said = subprocess.run([program, file, *asked], capture_output=True, text=True, check=True)
    sizes = re.findall(r"HOLLOW\d compute buffer size = *([0-9.]+) MiB", said.stdout + said.stderr)
    return round(max(map(float, sizes)) * 2**20)


def main() -> None:
    source, build = (Path(argument).resolve() for argument in sys.argv[1:3])
    sys.path[:0] = [str(source), str(source / "gguf-py")]
    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = configs()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "reserve"
        headers = [f"-I{source / name}" for name in ("include", "ggml/include", "ggml/src")]
        links = [f"-L{build / 'bin'}", f"-Wl,-rpath,{build / 'bin'}", "-lllama", "-lggml", "-lggml-base", "-lggml-cpu"]
        code = Path(__file__).with_name("reserve_text.cpp")
        subprocess.run(["g++", "-std=c++17", code, *headers, *links, "-o", program], check=True)
        for row in rows:
            if row["buffer_bytes"]:
                continue
            path = Path(folder) / (row["model_id"].replace("/", "--") + ".gguf")
            if not path.exists():
                write(path, known[row["model_id"]])
            row["buffer_bytes"], row["versions"] = str(count(program, path, row)), VERSIONS
            print(
                *(row[n] for n in ("model_id", "context_tokens", "sequences", "kv_dtype_id", "buffer_bytes")),
                flush=True,
            )
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
