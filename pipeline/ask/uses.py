"""How a model is used, as the options say it. What does not go together is told here."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from .problems import Wrong
from .values import IMAGE_SIZE

if TYPE_CHECKING:
    from .almanac import Almanac
    from .question import Use


def use_of(almanac: Almanac, asked: argparse.Namespace, adapter: Any, model: Any) -> Use:
    from . import contexts, formats, pictures, programs, question, shared

    objective = getattr(asked, "objective", None)
    phase = getattr(asked, "phase", None) or ("lora" if objective else question.INFERENCE)
    if objective and (phase == question.INFERENCE or getattr(asked, "draft", None)):
        raise Wrong("--objective is of a training: --phase lora, qlora or full-finetune, without --draft")
    if getattr(asked, "generator", None) and not objective:
        raise Wrong("--generator is of a training on rewards: --objective grpo")
    is_training = phase != question.INFERENCE
    rank = getattr(asked, "rank", None)
    targets, dropout = getattr(asked, "lora_targets", None), getattr(asked, "lora_dropout", None)
    for flag, value in (("--rank", rank), ("--lora-targets", targets), ("--lora-dropout", dropout)):
        if value is not None and phase not in ("lora", "qlora"):
            raise Wrong(f"{flag} is of a LoRA: --phase lora or qlora")
    if asked.kv and is_training:
        raise Wrong("--kv is of inference: a training holds no cache")
    if rank and adapter:
        raise Wrong(f"--rank is said by the adapter: {adapter.rank}")
    if targets and adapter:
        raise Wrong(f"--lora-targets is said by the adapter: {adapter.lora_targets}")
    is_made = model is not None and pictures.is_made_by(almanac, model)
    if (targets or dropout is not None) and (is_made or getattr(asked, "train_on", None)):
        flag = "--lora-targets" if targets else "--lora-dropout"
        raise Wrong(f"{flag} is of models that write text, without --train-on")
    named = getattr(asked, "program", None)
    if is_made and named:
        pictures.check_program(almanac, named)
        named = None  # which is what is told
    program = programs.program_of(almanac, named, phase, bool(objective)) if named else None
    sharding, offload = getattr(asked, "sharding", None), getattr(asked, "offload", None)
    if (sharding or offload) and is_made:
        raise Wrong(
            f"{'--sharding' if sharding else '--offload'} is of models that write text: of what makes pictures each card holds a copy"
        )
    shares = shared.used(sharding, offload, program, is_training=is_training)
    text_only = _text_only(asked, program, is_text=not (is_made or is_training))
    kv = formats.kv_dtype_of(almanac, asked.kv) if asked.kv else None
    is_shared = any(getattr(asked, name, None) is not None for name in ("gpu_layers", "expert_layers"))
    # (of what llama.cpp alone is told, the others have nothing to say)
    is_shared |= getattr(asked, "attention", None) == "eager" or bool(kv and not program and _is_of_llama(almanac, kv))
    use = question.Use(
        program=program and program.program_id,
        program_version=program and program.version,
        engine_id=program.engine_id if program and not text_only else "llama.cpp" if text_only or is_shared else None,
        text_only=text_only,
        **_shared_with_cpu(asked, program, is_text=not (is_made or is_training)),
        is_in_own_format=bool(program and is_training and program.dtype_id and not asked.format),
        phase_id=phase,
        context_tokens=contexts.asked_of(asked.context, model),
        sequences=asked.users or (None if program or objective else 1),
        dtype_id=formats.dtype_of(almanac, asked.format, program and program.engine_id) if asked.format else None,
        kv_dtype_id=kv,
        lora_rank=rank,
        lora_targets=targets,
        lora_dropout=dropout,
        **shares,
        **_said_of_training(almanac, asked, is_made, is_training=is_training),
        loss=_loss(almanac, asked, model, program, phase, is_made),
        **_said_of_server(asked, program, phase, is_made),
        **(_made(asked) if is_made else _seen(asked, is_training)),
    )
    if is_made:
        pictures.check_use(model, use)
    return adapter.used(use) if adapter else use


def _text_only(asked: argparse.Namespace, program: Any, *, is_text: bool) -> bool | None:
    """--no-mmproj: what a model sees with is left out, which is a second file of llama.cpp's and of those that run it."""
    if not getattr(asked, "text_only", False):
        return None
    if not is_text or any(getattr(asked, name, None) for name in ("draft", "objective", "log", "images")):
        raise Wrong("--no-mmproj is of text that llama.cpp writes: without --phase, --draft, --log and --images")
    if getattr(asked, "wish", None) == "vision":
        raise Wrong("--no-mmproj leaves out what a model sees with: without --for vision")
    if program and (program.engine_id != "llama.cpp" or program.program_id == "ollama"):
        raise Wrong(
            "--no-mmproj is of programs that load what a model sees with from a second file: --program llama.cpp"
        )
    return True


def _is_of_llama(almanac: Almanac, kv: str) -> bool:
    """Whether llama.cpp alone has a cache in that format."""
    return bool(
        almanac.value("SELECT any_value(engine_ids) = 'llama.cpp' FROM kv_dtype WHERE kv_dtype_id = $kv", {"kv": kv})
    )


def _shared_with_cpu(asked: argparse.Namespace, program: Any, *, is_text: bool) -> dict[str, Any]:
    """What llama.cpp is told of the CPU and of its attention."""
    names = {
        "gpu_layers": ("-ngl", "gpu_layers"),
        "expert_layers": ("--n-cpu-moe", "expert_layers"),
        "attention": ("--attention", "attention"),
    }
    said = {own: getattr(asked, name, None) for name, (_flag, own) in names.items()}
    for name, (flag, own) in names.items():
        if said[own] is None:
            continue
        if not is_text or any(getattr(asked, other, None) for other in ("draft", "objective", "log")):
            raise Wrong(f"{flag} is of text that llama.cpp writes: without --phase, --draft, --objective and --log")
        engines = ("llama.cpp", "transformers") if name == "attention" else ("llama.cpp",)
        if program and program.engine_id not in engines:
            raise Wrong(f"{flag} is of llama.cpp and of programs that run it: --program llama.cpp")
    return {name: value for name, value in said.items() if value is not None}


def _said_of_training(
    almanac: Almanac, asked: argparse.Namespace, is_made: bool, *, is_training: bool
) -> dict[str, Any]:
    from . import training_words

    checkpointing, optimizer = getattr(asked, "checkpointing", None), getattr(asked, "optimizer", None)
    for flag, value in (("--checkpointing", checkpointing), ("--optimizer", optimizer)):
        if value and not is_training:
            raise Wrong(f"{flag} is of a training: --phase lora, qlora, full-finetune or pretrain")
        if value and is_made:
            raise Wrong(f"{flag} is of models that write text: a pipeline is counted as its own script trains it")
        if value and getattr(asked, "train_on", None):
            raise Wrong(f"--train-on takes the quickest way of all: without {flag}")
    return {
        "checkpointing": checkpointing,
        "optimizer_id": training_words.optimizer_of(almanac, optimizer) if optimizer else None,
    }


def _loss(
    almanac: Almanac, asked: argparse.Namespace, model: Any, program: Any, phase: str, is_made: bool
) -> str | None:
    """The loss by Liger's kernels, where they are asked for."""
    if not getattr(asked, "liger", None):
        return None
    if is_made or phase == "inference" or getattr(asked, "objective", None):
        raise Wrong(
            "--liger is of a training of text without --objective: --phase lora, qlora, full-finetune or pretrain"
        )
    if getattr(asked, "train_on", None):
        raise Wrong("--train-on takes the quickest way of all: without --liger")
    if program and _has_own_head(almanac, program, phase):
        raise Wrong(
            "--liger: this trainer multiplies the head by tiles of its own, and takes no more than Liger's kernels of layers"
        )
    (kernel,) = almanac.rows("SELECT loss, model_types FROM loss_kernel WHERE loss_kernel_id = 'liger'")
    kind = model and model.row.get("model_type")
    if kind and kind not in kernel["model_types"].split():
        raise Wrong(f"--liger: its kernels leave the loss of models of type {kind} as it is")
    return str(kernel["loss"])


def _has_own_head(almanac: Almanac, program: Any, phase: str) -> bool:
    """Whether the release, or the newest, has a loss that Liger's kernels do not replace."""
    rows = almanac.rows(
        "SELECT min_version, loss FROM program WHERE program_id = $program AND list_contains(string_split(phase_ids, ' '), $phase)",
        {"program": program.program_id, "phase": phase},
    )
    own = [row["min_version"] for row in rows if row["loss"] == "tiled"]
    return bool(own) and (program.version is None or _place(program.version) >= min(map(_place, own)))


def _place(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _said_of_server(asked: argparse.Namespace, program: Any, phase: str, is_made: bool) -> dict[str, Any]:
    from . import shared
    from .settings import CARDS

    tensor, pipeline = getattr(asked, "tensor_parallel", None), getattr(asked, "pipeline_parallel", None)
    data, experts = getattr(asked, "data_parallel", None), getattr(asked, "expert_parallel", None)
    share, most = getattr(asked, "share", None), getattr(asked, "max_num_seqs", None)
    step = getattr(asked, "batched_tokens", None)
    is_plan = getattr(asked, "command", None) == "plan"
    is_alone = any(getattr(asked, name, None) for name in ("draft", "objective", "log"))
    ways = (
        ("--tensor-parallel", tensor),
        ("--pipeline-parallel", pipeline),
        ("--data-parallel", data),
        ("--expert-parallel", experts),
    )
    flag = next((name for name, value in ways if value), None)
    if flag and (is_made or is_alone or any("+" in name for name in _named_cards(asked))):
        raise Wrong(
            f"{flag} is of a model that writes text on cards of one kind: without --draft, --objective and --log"
        )
    if (data or experts) and phase != "inference":
        said = "--data-parallel" if data else "--expert-parallel"
        raise Wrong(f"{said} is of a server; how cards share a training is --sharding: {', '.join(shared.KNOWN)}")
    if flag and is_plan and phase != "inference":
        return {"tensor_parallel": tensor, "pipeline_parallel": pipeline}
    if flag and phase != "inference":
        raise Wrong(
            f"{flag} is of a server; how cards share a training is --sharding: {', '.join(shared.KNOWN)} (tp: every layer divided among all cards)"
        )
    if flag and (program is None or program.engine_id.partition("-")[0] not in CARDS):
        raise Wrong(f"{flag} is of vLLM and SGLang: --program vllm")
    if pipeline and (data or experts):
        said = "--data-parallel" if data else "--expert-parallel"
        raise Wrong(f"{said} is counted without stages of layers: without --pipeline-parallel")
    is_vllm = phase == "inference" and program is not None and program.engine_id.startswith("vllm")
    for flag, value in (("--share", share), ("--max-num-seqs", most), ("--max-num-batched-tokens", step)):
        if value and (not is_vllm or is_made or is_alone):
            name = " (its --gpu-memory-utilization)" if value is share else ""
            raise Wrong(f"{flag} is of vLLM{name}: --program vllm, without --draft, --objective and --log")
    eager = getattr(asked, "enforce_eager", False)
    is_server = phase == "inference" and program is not None and program.engine_id.partition("-")[0] in CARDS
    if eager and (not is_server or is_made or is_alone):
        raise Wrong(
            "--enforce-eager is of vLLM and SGLang (its --disable-cuda-graph): --program vllm, without --draft, --objective and --log"
        )
    slots, rank = getattr(asked, "max_loras", None), getattr(asked, "max_lora_rank", None)
    slots = slots or (1 if rank or getattr(asked, "enable_lora", False) else None)
    if slots and (not is_vllm or is_made or is_alone):
        raise Wrong("--enable-lora is of vLLM: --program vllm, without --draft, --objective and --log")
    if most and most < (asked.users or 1):
        raise Wrong(f"--users {asked.users} are more than --max-num-seqs {most}: so many run at once")
    if most and step and step < most:
        raise Wrong(
            f"vLLM does not start where --max-num-batched-tokens {step:,} are fewer than --max-num-seqs {most:,}"
        )
    return {
        "tensor_parallel": tensor, "pipeline_parallel": pipeline, "data_parallel": data if (data or 1) > 1 else None, "expert_parallel": experts,
        "share": share, "max_num_seqs": most, "batched_tokens": step, "enforce_eager": eager or None,
        "max_loras": slots, "max_lora_rank": (rank or 16) if slots else None,
    }  # fmt: skip


def _named_cards(asked: argparse.Namespace) -> list[str]:
    """--gpu, which a plan may have several times."""
    named = getattr(asked, "gpu", None) or []
    return [named] if isinstance(named, str) else named


def _made(asked: argparse.Namespace) -> dict[str, Any]:
    """The pictures or the video that are made, as a use has them."""
    if getattr(asked, "seconds", None):
        raise Wrong("--seconds is of sound: a video is asked by --frames")
    width, height = getattr(asked, "image_size", None) or (None, None)
    return {
        "images": getattr(asked, "images", None),
        "image_width": width,
        "image_height": height,
        "frames": getattr(asked, "frames", None),
    }


def _seen(asked: argparse.Namespace, is_training: bool) -> dict[str, int]:
    """The images of a prompt, as a use has them."""
    from . import pictures

    images, size = getattr(asked, "images", None), getattr(asked, "image_size", None)
    if getattr(asked, "frames", None):
        raise Wrong("--frames is of what makes videos")
    if images is None and size is None:
        return {}
    pictures.check_seen("--images" if images else "--image-size", asked, is_training=is_training)
    if getattr(asked, "seconds", None):
        raise Wrong("--images or --seconds: a model is asked about what it sees, or about what it hears")
    width, height = size or IMAGE_SIZE
    return {"images": images or 1, "image_width": width, "image_height": height}
