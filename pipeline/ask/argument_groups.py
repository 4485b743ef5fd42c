"""Options that several questions have, in groups."""

from __future__ import annotations

import argparse

from . import values
from .shared import OFFLOADS

ATTENTIONS = ("flash", "eager")
MOST_USERS, MOST_SECONDS = 2**20, 24 * 3600
MOST_IMAGES, MOST_FRAMES, MOST_CARDS = 1024, 65_536, 4096


def add_card(command: argparse.ArgumentParser, *, is_several: bool = False) -> None:
    group = command.add_argument_group("the card (by default that of this machine, and what is free of it)")
    more = {"action": "append"} if is_several else {}
    group.add_argument(
        "--gpu",
        type=values.name,
        metavar="CARD",
        help="id or name, several of them as 2xrtx-3090" + ("; may be said again" if is_several else ""),
        **more,
    )
    if not is_several:
        group.add_argument(
            "--free",
            type=values.amount,
            metavar="SIZE",
            help="so much memory, for example 10GiB: of --gpu, or of a card that nobody names, of several as 4x10GiB",
        )
    group.add_argument(
        "--empty", action="store_true", help="this machine's card as if no other program held a part of it"
    )


def add_use(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--context",
        type=values.tokens,
        metavar="TOKENS",
        help="of one sequence, or max: all that the model reads (default: 8192; in training 2048)",
    )
    command.add_argument(
        "--users",
        "--batch",
        dest="users",
        type=values.count("--users", MOST_USERS),
        default=None,
        metavar="N",
        help="at the same time; in training the micro-batch (default: 1, or the program's)",
    )
    command.add_argument(
        "--format", type=values.name, metavar="F", help="one format, for example Q4_K_M, bf16 or awq-int4"
    )
    command.add_argument(
        "--kv", type=values.name, metavar="F", help="format of the cache, for example q8_0 (default: 16 bits)"
    )
    command.add_argument(
        "--phase",
        type=values.phase_of,
        choices=values.PHASES,
        default=None,
        metavar="P",
        help=f"what is done with it: {', '.join(values.PHASES)} (default: inference)",
    )
    command.add_argument("--rank", type=values.count("--rank", 65_536), metavar="R", help="of a LoRA (default: 16)")
    command.add_argument(
        "--lora-targets",
        type=values.targets,
        metavar="T",
        help=f"what a LoRA adapts: {', '.join(values.LORA_TARGETS)}, or names of modules, q_proj,v_proj (default: all-linear, or the program's)",
    )
    command.add_argument(
        "--lora-dropout",
        type=values.dropout,
        metavar="P",
        help="of a LoRA, from 0 to below 1 (default: 0, or the program's)",
    )
    command.add_argument(
        "--program",
        type=values.name,
        metavar="P",
        help="what you run it with, and its version if you know it: ollama, 'vllm 0.27', llama-factory; what is not said is its own default",
    )
    command.add_argument(
        "--sharding",
        type=values.name,
        metavar="S",
        help="how cards share a training: ddp, fsdp2, tp (Megatron's tensor parallelism), or DeepSpeed's zero1, zero2, zero3, zero2_offload, "
        "zero3_offload (also on one card)",
    )
    command.add_argument(
        "--checkpointing",
        "--gradient-checkpointing",
        dest="checkpointing",
        type=values.checkpointing,
        metavar="C",
        help="of a training: full (every layer recomputed), selective or none (default: full, or the program's)",
    )
    command.add_argument(
        "--optimizer",
        "--optim",
        dest="optimizer",
        type=values.name,
        metavar="O",
        help="of a training: adamw, adamw-8bit, adafactor … or as trainers call it, adamw_bnb_8bit (default: adamw, or the program's)",
    )
    command.add_argument(
        "--liger",
        action="store_true",
        default=None,
        help="a training with Liger's kernels (use_liger_kernel, enable_liger_kernel), whose loss makes no logits of all tokens",
    )
    command.add_argument(
        "--offload",
        choices=OFFLOADS,
        default=None,
        help="with --sharding: what waits in the computer's memory, optimizer (zero1, zero2, zero3) or all (zero3, fsdp2)",
    )


def add_objective(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--objective",
        type=values.name,
        metavar="O",
        help="a training on preferences: dpo, orpo, kto, reward or grpo, as TRL does it (default phase: lora; --batch counts pairs)",
    )


def add_division(command: argparse.ArgumentParser, programs: str) -> None:
    command.add_argument(
        "--tensor-parallel",
        "--tensor-parallel-size",
        dest="tensor_parallel",
        type=values.count("--tensor-parallel", MOST_CARDS),
        metavar="N",
        help=f"cards that divide each layer: {programs} (default: all; with --pipeline-parallel those of a stage)",
    )
    command.add_argument(
        "--pipeline-parallel",
        "--pipeline-parallel-size",
        dest="pipeline_parallel",
        type=values.count("--pipeline-parallel", MOST_CARDS),
        metavar="N",
        help=f"stages of layers, one after the other on other cards: {programs} (default: 1, or where heads do not divide by the cards)",
    )


def add_spread(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data-parallel",
        "--data-parallel-size",
        dest="data_parallel",
        type=values.count("--data-parallel", MOST_CARDS),
        metavar="N",
        help="groups of cards that serve requests of their own: vLLM and SGLang (its --dp-size with --enable-dp-attention); the cards of each divide the layers",
    )
    command.add_argument(
        "--expert-parallel",
        "--enable-expert-parallel",
        dest="expert_parallel",
        action="store_true",
        default=None,
        help="routed experts lie whole, some on each card: vLLM and SGLang (default: each is divided among the cards)",
    )


def add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the answer as JSON, in bytes and tokens")
    command.add_argument(
        "--data",
        metavar="PLACE",
        help="folder, file or address of the almanac (default: VRAM_ALMANAC, else this machine's build, else the last copy)",
    )
    command.add_argument(
        "--fresh",
        action="store_true",
        help="ask the address whether there is a newer almanac, though it was asked today",
    )


def add_text_only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-mmproj",
        dest="text_only",
        action="store_true",
        help="leave out what llama.cpp sees with (its second file): text alone",
    )


def add_ram(command: argparse.ArgumentParser, why: str) -> None:
    command.add_argument("--ram", type=values.ram, metavar="SIZE", help=f"the computer's own memory, {why}: 64GB")
