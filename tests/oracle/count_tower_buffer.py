"""Counts the buffers that llama.cpp reserves for the towers of models that see: the truth that table `tower_graph` is held to.

    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36      # carries llama.cpp's source; unpack it
    cmake -B BUILD -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_COMMON=OFF vendor/llama.cpp && cmake --build BUILD --target llama
    python tests/oracle/count_tower_buffer.py vendor/llama.cpp BUILD     # all rows of tower_buffer.csv that have no bytes yet

llama.cpp itself lays out the graph of a tower for a GPU that holds nothing (hollow_gpu.h), from files that have the names and sizes of
an mmproj's tensors and no values: of the image that it warms up with (no width and height in the row), and of images of other sizes that it passes on.
`image_tokens` are those that the text reads of one image, `sound_bytes` what it reserves beside for the tower of sound that is in the same
file, warmed up with 30 seconds. Models are those of the snapshot.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf_holes
from gguf_holes import Shapes
from rows import configs

ROWS = Path(__file__).with_name("tower_buffer.csv")
VERSIONS = "llama.cpp 0c1e57098 (llama-cpp-python 0.3.36)"


def block(hidden: int, width: int, *, fused: bool, biased: bool, gated: bool, query: int | None = None) -> Shapes:
    """Tensors of one layer, as llama.cpp names them."""
    wide = query or hidden
    layer: Shapes = {"ln1": (hidden,), "ln2": (hidden,), "attn_out": (wide, hidden)}
    if fused:
        layer["attn_qkv"] = (hidden, 3 * wide)
    else:
        layer |= dict.fromkeys(("attn_q", "attn_k", "attn_v"), (hidden, wide))
    layer |= {"ffn_up": (hidden, width), "ffn_down": (width, hidden)}
    if gated:
        layer["ffn_gate"] = (hidden, width)
    found = {f"{name}.weight": shape for name, shape in layer.items()}
    if biased:
        found |= {f"{name}.bias": shape[-1:] for name, shape in layer.items()}
    return found


def linear(name: str, into: int, out: int, biased: bool = True) -> Shapes:
    return {f"{name}.weight": (into, out)} | ({f"{name}.bias": (out,)} if biased else {})


def described(config: dict) -> tuple[str, dict, Shapes]:
    """The projector of llama.cpp, the keys of the file, and its tensors (as ggml has them: the fastest dimension first)."""
    vision, text = config["vision_config"], config.get("text_config") or config.get("llm_config") or config
    kind, to = config["model_type"], text.get("hidden_size")
    get = lambda *names, default=None: next((vision[n] for n in names if vision.get(n) is not None), default)  # noqa: E731
    hidden = get("hidden_size", "vt_hidden_size", default=1024)
    width = get("intermediate_size", "vt_intermediate_size", default=4 * hidden)
    layers = get("depth", "num_hidden_layers", "vt_num_hidden_layers", default=24)
    heads = get("num_heads", "num_attention_heads", "vt_num_attention_heads", default=16)
    patch, side = get("patch_size", default=16), get("image_size", default=0)
    patch, side = (one[0] if isinstance(one, list) else one for one in (patch, side))
    merge = get("spatial_merge_size", default=2)
    how = {"fused": False, "biased": True, "gated": False}
    keys: dict = {"use_gelu": True}
    rest: Shapes = {}
    two_frames = False
    if kind in ("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp"):
        projector, two_frames, to = "qwen3vl_merger", True, vision["out_hidden_size"]
        side = int(vision["num_position_embeddings"] ** 0.5) * patch
        deep = vision.get("deepstack_visual_indexes") or []
        how["fused"] = True
        keys |= {"vision.spatial_merge_size": merge, "vision.is_deepstack_layers": [i in deep for i in range(layers)]}
        rest |= {"v.post_ln.weight": (hidden,), "v.post_ln.bias": (hidden,)}
        rest |= {"v.patch_embd.bias": (hidden,), "v.position_embd.weight": (hidden, vision["num_position_embeddings"])}
        rest |= linear("mm.0", 4 * hidden, 4 * hidden) | linear("mm.2", 4 * hidden, to)
        for i in deep:
            rest |= {f"v.deepstack.{i}.norm.{n}": (4 * hidden,) for n in ("weight", "bias")}
            rest |= linear(f"v.deepstack.{i}.fc1", 4 * hidden, 4 * hidden) | linear(
                f"v.deepstack.{i}.fc2", 4 * hidden, to
            )
    elif kind in ("qwen2_vl", "qwen2_5_vl"):
        two_frames, side, is_newer = True, 560, kind == "qwen2_5_vl"
        projector = "qwen2.5vl_merger" if is_newer else "qwen2vl_merger"
        if not is_newer:
            hidden, to = vision["embed_dim"], vision["hidden_size"]
            width, keys["use_gelu"] = hidden * vision.get("mlp_ratio", 4), False
        else:
            keys |= {"use_silu": True, "use_gelu": False, "vision.n_wa_pattern": vision["fullatt_block_indexes"][0] + 1}
            how["gated"], to = True, vision["out_hidden_size"]
        rest |= {"v.post_ln.weight": (hidden,)} | ({} if is_newer else {"v.post_ln.bias": (hidden,)})
        rest |= linear("mm.0", 4 * hidden, 4 * hidden) | linear("mm.2", 4 * hidden, to)
    elif kind == "gemma3":
        projector = "gemma3"
        rest |= {"v.post_ln.weight": (hidden,), "v.post_ln.bias": (hidden,), "v.patch_embd.bias": (hidden,)}
        rest |= {"v.position_embd.weight": (hidden, (side // patch) ** 2)}
        rest |= {"mm.input_projection.weight": (to, hidden), "mm.soft_emb_norm.weight": (hidden,)}
    elif kind == "gemma4":
        projector, side = "gemma4v", 224
        how |= {"biased": False, "gated": True}
        rest |= {"v.position_embd.weight": (hidden, vision["position_embedding_size"], 2)}
        rest |= {"mm.input_projection.weight": (hidden, to)}
        rest |= {"v.std_bias": (hidden,), "v.std_scale": (hidden,)} if vision.get("standardize") else {}
    elif kind == "gemma4_unified":
        projector, side, layers, heads, width = "gemma4uv", 224, 0, 0, 0
        hidden = vision["mm_embed_dim"]
        large = patch * vision["pooling_kernel_size"]
        rest |= {"v.position_embd.weight": (hidden, vision["mm_posemb_size"], 2), "v.patch_embd.bias": (hidden,)}
        rest |= {"mm.input_projection.weight": (hidden, to)}
        for i, size in ((1, large * large * 3), (2, hidden), (3, hidden)):
            rest |= {f"v.patch_norm.{i}.weight": (size,), f"v.patch_norm.{i}.bias": (size,)}
    elif kind in ("internvl_chat", "internvl"):
        projector = "internvl"
        is_large = hidden == 3200
        keys["vision.projector.scale_factor"] = 2
        rest |= {"v.class_embd": (hidden,), "v.position_embd.weight": (hidden, (side // patch) ** 2 + 1)}
        rest |= {"v.patch_embd.bias": (hidden,)}
        rest |= {"mm.model.mlp.0.weight": (4 * hidden,), "mm.model.mlp.0.bias": (4 * hidden,)}
        rest |= linear("mm.model.mlp.1", 4 * hidden, to) | linear("mm.model.mlp.3", to, to)
        for i in range(layers):
            rest |= {f"v.blk.{i}.{name}.weight": (hidden,) for name in ("ls1", "ls2")}
            if is_large:
                rest |= {f"v.blk.{i}.{name}.weight": (hidden,) for name in ("attn_q_norm", "attn_k_norm")}
    elif kind in ("mistral3", "llava", "lighton_ocr") and vision["model_type"] == "pixtral":
        projector = "lightonocr" if kind == "lighton_ocr" else "pixtral"
        how |= {"biased": False, "gated": True}
        keys |= {"use_gelu": False, "use_silu": True}
        rest |= {"v.pre_ln.weight": (hidden,)}
        if kind != "llava":
            merge = config.get("spatial_merge_size", 2)
            keys["vision.spatial_merge_size"] = merge
            rest |= {"mm.input_norm.weight": (hidden,)} | linear(
                "mm.patch_merger", hidden * merge * merge, hidden, False
            )
        if kind != "lighton_ocr":
            rest["v.token_embd.img_break"] = (to,)
        rest |= linear("mm.1", hidden, to, kind == "llava") | linear("mm.2", to, to, kind == "llava")
    elif kind == "llava":
        projector, keys["use_gelu"], to = "mlp", False, to or 4096  # (of the class, where a checkpoint is silent)
        layers -= 1  # (the last one is left out: its features come from the layer before)
        rest |= {"v.class_embd": (hidden,), "v.position_embd.weight": (hidden, (side // patch) ** 2 + 1)}
        rest |= {"v.pre_ln.weight": (hidden,), "v.pre_ln.bias": (hidden,)}
        rest |= linear("mm.0", hidden, to) | linear("mm.2", to, to)
    elif kind in ("idefics3", "smolvlm"):
        projector = "idefics3"
        factor = config.get("scale_factor", 2)
        keys |= {"vision.projector.scale_factor": factor}
        rest |= {"v.post_ln.weight": (hidden,), "v.post_ln.bias": (hidden,), "v.patch_embd.bias": (hidden,)}
        rest |= {"v.position_embd.weight": (hidden, (side // patch) ** 2)}
        rest |= linear("mm.model.fc", hidden * factor * factor, to, False)
    elif kind == "llama4":
        projector = "llama4"
        keys |= {"vision.projector.scale_factor": round(1 / vision["pixel_shuffle_ratio"])}
        rest |= {"v.class_embd": (hidden,), "v.position_embd.weight": (hidden, (side // patch) ** 2 + 1)}
        rest |= {f"v.{name}_ln.{n}": (hidden,) for name in ("pre", "post") for n in ("weight", "bias")}
        rest |= linear("mm.model.mlp.1", 4 * hidden, vision["projector_input_dim"], False)
        rest |= linear("mm.model.mlp.2", vision["projector_input_dim"], vision["projector_output_dim"], False)
        rest |= linear("mm.model.fc", vision["projector_output_dim"], to, False)
    elif kind == "kimi_k25":
        projector, side = "kimik25", vision.get("init_pos_emb_height", 64) * patch
        how["fused"] = True
        keys |= {"vision.projector.scale_factor": 2}
        rest |= {"v.position_embd.weight": (hidden, side // patch, side // patch), "v.patch_embd.bias": (hidden,)}
        rest |= {"v.post_ln.weight": (hidden,), "v.post_ln.bias": (hidden,)}
        rest |= {"mm.input_norm.weight": (hidden,), "mm.input_norm.bias": (hidden,)}
        rest |= linear("mm.1", 4 * hidden, 4 * hidden) | linear("mm.2", 4 * hidden, to)
    elif kind == "minimax_m3_vl":
        projector, two_frames, between = "minimax_m3", True, config.get("projector_hidden_size") or to
        keys["vision.spatial_merge_size"] = 2
        rest |= {"v.pre_ln.weight": (hidden,), "v.pre_ln.bias": (hidden,)}
        rest |= linear("mm.1", hidden, between) | linear("mm.2", between, to)
        rest |= linear("mm.merger.fc1", 4 * to, between) | linear("mm.merger.fc2", between, to)
    elif kind in ("glm4v", "glm4v_moe"):
        projector, two_frames, to = "glm4v", True, vision["out_hidden_size"]
        how |= {"fused": True, "biased": False, "gated": True}
        keys |= {"use_gelu": False, "use_silu": True, "vision.spatial_merge_size": 2}
        side, wide = get("image_size", default=336), vision["intermediate_size"]
        width = vision["out_hidden_size"]
        rest |= {"v.patch_embd.bias": (hidden,), "v.norm_embd.weight": (hidden,), "v.post_ln.weight": (hidden,)}
        rest |= {"v.position_embd.weight": (hidden, (side // patch) ** 2)}
        rest |= {"mm.patch_merger.weight": (2, 2, hidden, to), "mm.patch_merger.bias": (to,)}
        rest |= linear("mm.model.fc", to, to, False) | {"mm.post_norm.weight": (to,), "mm.post_norm.bias": (to,)}
        rest |= (
            linear("mm.up", to, wide, False) | linear("mm.gate", to, wide, False) | linear("mm.down", wide, to, False)
        )
    else:
        raise ValueError(f"{kind}: what llama.cpp makes of its tower is not described here")
    if projector in ("gemma4uv", "llama4"):
        large = patch * vision.get("pooling_kernel_size", 1)
        rest["v.patch_embd.weight"] = (large * large * 3, hidden)
    else:
        rest["v.patch_embd.weight"] = (patch, patch, 3, hidden)
    if two_frames:
        rest["v.patch_embd.weight.1"] = (patch, patch, 3, hidden)
    keys |= {
        "vision.embedding_length": hidden, "vision.feed_forward_length": width, "vision.block_count": layers,
        "vision.attention.head_count": heads, "vision.projection_dim": to, "vision.patch_size": patch,
        "vision.image_size": side, "vision.attention.layer_norm_epsilon": 1e-6,
        "vision.image_mean": [0.5, 0.5, 0.5], "vision.image_std": [0.5, 0.5, 0.5],
    }  # fmt: skip
    for i in range(layers):
        layer = block(hidden, width, **how)
        if projector in ("qwen2.5vl_merger", "minimax_m3"):  # (norms without a bias, or with)
            drop = ("ln1.bias", "ln2.bias") if projector == "qwen2.5vl_merger" else ()
            layer = {name: shape for name, shape in layer.items() if name not in drop}
        if projector == "internvl" and not vision.get("qkv_bias", True):
            layer = {
                name: shape
                for name, shape in layer.items()
                if name not in ("attn_q.bias", "attn_k.bias", "attn_v.bias")
            }
        if kind == "gemma4":
            layer |= {f"{name}.weight": (hidden // heads,) for name in ("attn_q_norm", "attn_k_norm")}
            layer |= {f"{name}.weight": (hidden,) for name in ("attn_post_norm", "ffn_post_norm")}
        rest |= {f"v.blk.{i}.{name}": shape for name, shape in layer.items()}
    return projector, keys, rest


def heard(config: dict, to: int) -> tuple[dict, Shapes]:
    """What the file of a Gemma 4 that hears has beside: keys and tensors of its conformer."""
    audio = config["audio_config"]
    hidden, layers, bins = audio["hidden_size"], audio["num_hidden_layers"], 128
    channels = audio["subsampling_conv_channels"]
    keys = {
        "has_audio_encoder": True, "audio.projector_type": "gemma4a", "audio.embedding_length": hidden,
        "audio.feed_forward_length": 4 * hidden, "audio.block_count": layers, "audio.num_mel_bins": bins,
        "audio.attention.head_count": audio["num_attention_heads"], "audio.projection_dim": to,
        "audio.attention.layer_norm_epsilon": 1e-6,
    }  # fmt: skip
    found: Shapes = {"a.conv1d.0.weight": (3, 3, 1, channels[0]), "a.conv1d.1.weight": (3, 3, channels[0], channels[1])}
    found |= {f"a.conv1d.{i}.norm.weight": (size,) for i, size in enumerate(channels)}
    found |= linear("a.input_projection", channels[1] * bins // 4, hidden, False) | linear(
        "a.pre_encode.out", hidden, to
    )
    found |= linear("mm.a.input_projection", to, to, False)
    for i in range(layers):
        layer: Shapes = dict.fromkeys(
            ("attn_q", "attn_k", "attn_v", "attn_out", "attn_k_rel", "conv_pw2"), (hidden, hidden)
        )
        layer |= {"conv_pw1": (hidden, 2 * hidden), "conv_dw": (audio["conv_kernel_size"], hidden)}
        for n in ("", "_1"):
            layer |= {f"ffn_up{n}": (hidden, 4 * hidden), f"ffn_down{n}": (4 * hidden, hidden)}
            layer |= {f"ffn_norm{n}": (hidden,), f"ffn_post_norm{n}": (hidden,)}
        for name in ("attn_pre_norm", "attn_post_norm", "ln1", "ln2", "conv_norm", "norm_conv"):
            layer[name] = (hidden,)
        layer["per_dim_scale"] = (hidden // audio["num_attention_heads"],)
        found |= {f"a.blk.{i}.{name}.weight": shape for name, shape in layer.items()}
    return keys, found


def write(path: Path, config: dict) -> None:
    projector, keys, tensors = described(config)
    if projector == "gemma4v" and config.get("audio_config"):
        more, sound = heard(config, keys["vision.projection_dim"])
        keys |= more | {"vision.projector_type": projector}
        tensors |= sound
    else:
        keys["projector_type"] = projector
    named = {f"clip.{name}": value for name, value in ({"has_vision_encoder": True} | keys).items()}
    gguf_holes.write(path, "clip", named, tensors, lambda name: "position_embd" in name)


def count(program: Path, file: Path, rows: list[dict[str, str]]) -> list[re.Match[str]]:
    asked = [size for row in rows for size in (row["image_width"] or "0", row["image_height"] or "0", row["images"])]
    (flash,) = {str(int(row["attention"] != "eager")) for row in rows}
    said = subprocess.run([program, file, flash, *asked], capture_output=True, text=True)
    found = list(re.finditer(r"^TOWER (\d+) (\d+) \d+ (\d+) ([01]) (\d+) (\d+)$", said.stdout, re.M))
    if len(found) != len(rows):
        raise RuntimeError((said.stdout + said.stderr)[-3000:])
    return found


def built(source: Path, build: Path, folder: Path) -> Path:
    """The program that lays graphs out: the tower's code of llama.cpp with a main of ours."""
    program, tower = folder / "reserve", source / "tools/mtmd"
    names = ("include", "ggml/include", "ggml/src", "tools/mtmd", "tools/mtmd/models", "vendor", "common")
    links = [f"-L{build / 'bin'}", f"-Wl,-rpath,{build / 'bin'}", "-lllama", "-lggml", "-lggml-base", "-lggml-cpu"]
    code = [Path(__file__).with_name("reserve_tower.cpp"), *sorted((tower / "models").glob("*.cpp"))]
    subprocess.run(
        ["g++", "-std=c++17", *code, *(f"-I{source / name}" for name in names), *links, "-o", program], check=True
    )
    return program


def main() -> None:
    source, build = (Path(argument).resolve() for argument in sys.argv[1:3])
    sys.path.insert(0, str(source / "gguf-py"))
    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = configs()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = built(source, build, folder)
        waiting = [(row["model_id"], row["attention"]) for row in rows if not row["buffer_bytes"]]
        for model, attention in dict.fromkeys(waiting):
            path = folder / (model.replace("/", "--") + ".gguf")
            write(path, known[model])
            asked = [row for row in rows if (row["model_id"], row["attention"]) == (model, attention)]
            for row, said in zip(asked, count(program, path, asked), strict=True):
                row["buffer_bytes"], row["is_fused"], row["image_tokens"] = said[3], said[4], said[5]
                row["sound_bytes"] = said[6]
                row["versions"] = VERSIONS
                print(*row.values(), f"({said[1]} × {said[2]})", flush=True)
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
