"""What can be asked of `vram-almanac`: its commands and their options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.base.arguments import Parser

from . import values
from .argument_groups import (
    ATTENTIONS,
    MOST_FRAMES,
    MOST_IMAGES,
    MOST_SECONDS,
    MOST_USERS,
    add_card,
    add_division,
    add_objective,
    add_output,
    add_ram,
    add_spread,
    add_text_only,
    add_use,
)

STATUSES = (
    "Ends with 0 where it fits, 1 where it does not or only without its margin, 2 where the question is wrong, 3 where nobody knows, "
    "4 where there is no almanac to ask."
)


def parser(prog: str = "vram-almanac") -> Parser:
    top = Parser(prog=prog, description="Does this open model fit my GPU, and if not, what does?", epilog=STATUSES)
    top.meant = "fits"
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add(commands)
    done = commands.add_parser("completion", help="print what makes a shell complete this command")
    done.add_argument("shell", choices=("bash", "zsh", "fish"))
    return top


def of_card_alone(asked: argparse.Namespace) -> argparse.Namespace | None:
    """A question of `fits` in which no model is named, as one of `what`; None where an option is set that is of a model alone."""
    commands = parser().commands
    if asked.command != "fits":
        return None
    plain, told = (vars(commands[name].parse_args([])) for name in ("fits", "what"))
    said = {name: value for name, value in vars(asked).items() if name not in plain or value != plain[name]}
    words = said.pop("model")
    if said.keys() - told.keys() - {"command"}:
        return None
    return argparse.Namespace(**{**told, **said, "words": words, "command": "what"})


class _Words(argparse.Action):
    """A name in several words: qwen3 8b, or ollama run qwen3:8b as it is pasted."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, " ".join(values) or None)


def add(commands: Any) -> None:
    """The questions, as commands of a parser."""
    fits = commands.add_parser(
        "fits", help="say whether a model fits a card, in which formats and how far", epilog=STATUSES
    )
    fits.add_argument(
        "model",
        type=values.name,
        metavar="MODEL",
        nargs="*",
        action=_Words,
        help="organisation/name as on the Hugging Face Hub, a tag of Ollama, or a config.json or adapter_config.json; behind it what options "
        "say, in words: llama 3.3 70b awq vllm 2x4090 32k",
    )
    add_card(fits)
    add_use(fits)
    fits.add_argument(
        "--seconds",
        type=values.count("--seconds", MOST_SECONDS),
        metavar="N",
        help="of sound, for a model that hears or speaks (default: 30, where it is not asked by tokens)",
    )
    fits.add_argument(
        "--images",
        type=values.count("--images", MOST_IMAGES),
        metavar="N",
        help="in each prompt, for a model that sees (default: none); or made at once, by one that makes them",
    )
    fits.add_argument(
        "--image-size",
        type=values.image_size,
        metavar="WIDTHxHEIGHT",
        help=f"of an image, in pixels (default: {values.IMAGE_SIZE[0]}x{values.IMAGE_SIZE[1]}; of a video that is made: 832x480)",
    )
    fits.add_argument(
        "--frames",
        type=values.count("--frames", MOST_FRAMES),
        metavar="N",
        help="of a video that is made (default: 81)",
    )
    fits.add_argument(
        "--draft",
        metavar="MODEL",
        help="a smaller model that drafts tokens for it (speculative decoding), on the same card; mtp: its own prediction layers",
    )
    add_objective(fits)
    fits.add_argument(
        "--generator",
        type=values.name,
        metavar="G",
        help="of grpo, what generates its answers: vllm-colocate on the same card, vllm-server on others (default: Transformers)",
    )
    add_division(fits, "vLLM and SGLang")
    add_spread(fits)
    fits.add_argument(
        "--share",
        "--gpu-memory-utilization",
        dest="share",
        type=values.share,
        metavar="S",
        help="of the card, that vLLM may take (its --gpu-memory-utilization): 0.85 (default: vLLM's own)",
    )
    fits.add_argument(
        "--max-num-seqs",
        dest="max_num_seqs",
        type=values.count("--max-num-seqs", MOST_USERS),
        metavar="N",
        help="requests that vLLM runs at once (default: 256 are counted; how many of the whole context: --users)",
    )
    fits.add_argument(
        "--max-num-batched-tokens",
        dest="batched_tokens",
        type=values.count("--max-num-batched-tokens", values.MOST_TOKENS),
        metavar="N",
        help="tokens that vLLM reads in a step: 2048 is its own on cards below 70 GiB (default: 8192, whatever the card)",
    )
    add_ram(fits, "where llama.cpp may keep what the card does not hold")
    fits.add_argument(
        "-ngl",
        "--n-gpu-layers",
        "--gpu-layers",
        dest="gpu_layers",
        type=values.layers,
        metavar="N",
        help="layers that llama.cpp puts on the card (default: all of them)",
    )
    fits.add_argument(
        "--n-cpu-moe",
        dest="expert_layers",
        type=values.layers,
        metavar="N",
        help="layers of a mixture of experts whose experts llama.cpp keeps in the computer's memory, all else on the card",
    )
    fits.add_argument(
        "--attention",
        choices=ATTENTIONS,
        default=None,
        help="of llama.cpp and Transformers: eager is without flash attention (-fa off; default: flash)",
    )
    fits.add_argument(
        "--enforce-eager",
        "--disable-cuda-graph",
        dest="enforce_eager",
        action="store_true",
        help="a server that captures no CUDA graphs and compiles nothing: less memory, slower (vLLM; --disable-cuda-graph of SGLang)",
    )
    fits.add_argument(
        "--enable-lora",
        dest="enable_lora",
        action="store_true",
        help="a server that takes adapters: vLLM sets slots for them aside when it starts (its --enable-lora)",
    )
    fits.add_argument(
        "--max-loras",
        dest="max_loras",
        type=values.count("--max-loras", MOST_USERS),
        metavar="N",
        help="adapters that vLLM serves at once (default: 1, its own)",
    )
    fits.add_argument(
        "--max-lora-rank",
        dest="max_lora_rank",
        type=values.count("--max-lora-rank", 512),
        metavar="R",
        help="largest rank of them, which every slot is set aside for: 8, 16, 32, 64 … (default: 16, its own)",
    )
    add_text_only(fits)
    fits.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="compare with what a start-up log of vLLM, SGLang, llama.cpp or Ollama, or PyTorch's memory summary, says it held",
    )
    fits.add_argument(
        "--all", action="store_true", help="every format, also those that do not run here, each with its reason"
    )
    fits.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="of a config.json: keep the DuckDB file that answered, to ask its macros",
    )
    add_output(fits)
    what = commands.add_parser(
        "what", help="list what fits a card, the newest and most downloaded first", epilog=STATUSES
    )
    what.add_argument(
        "words",
        type=values.name,
        metavar="CARD",
        nargs="*",
        action=_Words,
        help="what options say, in words: 3060 12gb for code 16k",
    )
    add_card(what)
    what.add_argument(
        "--for",
        dest="wish",
        metavar="WISH",
        help="chat, code, vision, embed, qlora, lora or full (default: chat)",
    )
    what.add_argument(
        "--context",
        type=values.tokens,
        metavar="TOKENS",
        help="at least so many (default: as the wish has it)",
    )
    what.add_argument(
        "--users", type=values.count("--users", MOST_USERS), metavar="N", help="at the same time (default: 1)"
    )
    what.add_argument("--format", type=values.name, metavar="F", help="in this format alone, for example Q4_K_M")
    what.add_argument("--kv", type=values.name, metavar="F", help="format of the cache, for example q8_0")
    add_ram(what, "to list what fits with a part of it there too")
    add_text_only(what)
    what.add_argument(
        "--limit",
        type=values.count("--limit", 10_000),
        default=15,
        metavar="N",
        help="rows to show (default: 15), and half as many of what fits with --ram",
    )
    add_output(what)
    plan = commands.add_parser(
        "plan", help="say how many cards of a kind a model takes, and how they share", epilog=STATUSES
    )
    plan.add_argument(
        "model",
        type=values.name,
        metavar="MODEL",
        nargs="+",
        action=_Words,
        help="organisation/name as on the Hugging Face Hub, or a config.json; words behind it as for fits",
    )
    add_card(plan, is_several=True)
    add_use(plan)
    add_objective(plan)
    add_division(plan, "vLLM and SGLang, and a training in Megatron")
    add_spread(plan)
    plan.add_argument(
        "--train-on",
        type=values.text_size,
        metavar="SIZE",
        help="of a training: how much text, for example 1GB or 2Btokens; says how long it takes and what finishes in time",
    )
    plan.add_argument(
        "--days",
        type=values.positive,
        default=1.0,
        metavar="N",
        help="with --train-on: the time that there is (default: 1)",
    )
    plan.add_argument(
        "--price", type=values.positive, metavar="P", help="with --train-on: what an hour of a card costs"
    )
    add_text_only(plan)
    plan.add_argument(
        "--limit", type=values.count("--limit", 100), default=5, metavar="N", help="ways to show (default: 5)"
    )
    add_output(plan)
