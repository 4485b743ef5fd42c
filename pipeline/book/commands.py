"""The commands to paste: one table (site/commands.csv) for pages and for the terminal, and how its gaps are filled.

A row is an engine's command: the `formats` that it runs, the best first, and in which of them a repository has to be `held`; a row that
needs none stands after the one that does. `cache` is what it is told of a cache in fewer bits, `slots` of several users where the command does
not say them by itself: without these words it takes more than the figures beside it, or serves one after the other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from pipeline import ROOT

FILE = ROOT / "site" / "commands.csv"
# Published so, a model is given out for llama.cpp in the same values, which takes least.
GGUF_OF = {"mxfp4": "gguf-mxfp4"}
CONVERTED = ("gguf-", "mlx-")  # formats that people make of a model's files, packed ones too
# Formats of checkpoints that Transformers unpacks as it loads them (dequantize=True in their quantization_config: quantizer_mxfp4.py,
# quantizer_finegrained_fp8.py and quantizer_compressed_tensors.py of 5.23), so that they are trained in 16 bits
UNPACKED = ("mxfp4", "fp8")
SAFE = re.compile(r"[\w./-]+", re.ASCII)  # an id that a shell takes as it is
TALKING = ("text-generation", "image-text-to-text", "any-to-any", "text2text-generation")  # tasks that the commands run
ENGINES = {"ollama": "llama.cpp", "sglang": "vllm"}  # whose numbers are told of them
SAME_WEIGHTS = 0.01  # of the weights, up to which two repositories hold the same
SHARE = "0.90"  # of a card, which vLLM takes by default
# what is loaded, or left out, where the figures are of the text alone and a repository of GGUF may hold what the model sees with
TEXT_ALONE = {"sight": " --no-mmproj", "beside": " It loads what the model sees with (mmproj) too, which comes on top."}
# what vLLM is told of a model that sees: its figures are of text, and untold it sets memory aside for the largest image and video
NO_IMAGES = {"images": ' --limit-mm-per-prompt \'{"image": 0, "video": 0}\''}
COUNTED = (
    "vllm_default_sequences",
    "vllm_batched_tokens",
)  # constants: what figures of vLLM count, whatever its defaults are on a card
MLX_PROMPTS = 8  # that MLX reads at a time, whatever it is allowed (constant mlx_prefill_sequences)
_MLX = re.compile(r"(?i)mlx.*?(?<!\d)([468])-?bit")


@lru_cache(maxsize=1)
def lines(file: Path = FILE) -> tuple[dict[str, str], ...]:
    with file.open(encoding="utf-8", newline="") as rows:
        return tuple(csv.DictReader(rows))


def kind(model_id: str, stored_format: str | None) -> str:
    """The format of a repository, by its files or by its name; empty where neither tells."""
    leaf = model_id.rpartition("/")[2]
    if "gguf" in leaf.lower():
        return "gguf"
    if mlx := _MLX.search(model_id):  # (mlx-community says it before its names)
        return f"mlx-{mlx[1]}bit"
    return stored_format or ""


def repositories(
    models: Iterable[tuple[str, str | None]], own: str, weights: Mapping[tuple[str, str], int | None]
) -> dict[str, str]:
    """By format the first of these models, given as (id, stored format), that holds it with the `weights` (by id and format) that figures of
    `own` count: makers of one format leave different parts of a model unpacked, and a command names what was counted or nothing."""
    found: dict[str, str] = {}
    for name, stored_format in models:
        held = kind(name, stored_format)
        if held and SAFE.fullmatch(name) and is_counted(name, held, own, weights):
            found.setdefault(held, name)
    return found


def is_counted(name: str, held: str, own: str, weights: Mapping[tuple[str, str], int | None]) -> bool:
    """Whether a repository is the model that was asked for, or its weights are known to be those of it in that format. Of GGUF the mix is a
    file's and not the repository's, and the command says which."""
    if name == own or held == "gguf":
        return True
    counted, told = weights.get((own, held)), weights.get((name, held))
    return bool(counted and told and abs(told - counted) <= SAME_WEIGHTS * counted)


def is_packed(stored_format: str | None, bits: Mapping[str, float | None]) -> bool:
    """Whether a model is published in fewer than 16 bits (`bits` by format) that servers load as they are: what MLX packs nothing else loads."""
    return stored_format is not None and not stored_format.startswith("mlx-") and (bits.get(stored_format) or 16) < 16


def told_of_packed(stored_format: str, bits: Mapping[str, float | None], held: Iterable[str]) -> set[str]:
    """The formats that are told of a model that is published packed: its own, those that a repository of it is `held` in, and of those that its
    files are converted to what has no more bits than they have, in which nothing more is said."""
    most = int(bits[stored_format] or 0)
    made = {name for name, size in bits.items() if name.startswith(CONVERTED) and size and int(size) <= most}
    return {stored_format, "stored", *held, *made}


def formats_of(row: Mapping[str, str], held: Mapping[str, str], stored_format: str | None) -> list[str]:
    """The formats in which a row's command runs a model of which those repositories are `held`, the best first; none where it does not."""
    kept = {name: held[name] for name in row["held"].split() if name in held}
    if row["held"] and not kept:
        return []
    formats = [f for f in row["formats"].split() if not row["held"] or f in kept or "gguf" in kept]
    native = GGUF_OF.get(stored_format)
    # what is published in these few bits is not packed again
    return [native] if native and formats[0].startswith("gguf-") else formats


def told_besides(row: Mapping[str, str], kv: str | None, context: int, users: int) -> dict[str, str]:
    """The gaps of a row's command for a cache in the format `kv` (None: the engine's own), and for several users at once."""
    return {
        "users": str(users),
        "prompts": str(min(users, MLX_PROMPTS)),
        "all_tokens": str(context * users),  # llama-server deals them out among its slots
        "cache": row["cache"].replace("{kv}", kv) if kv else "",
        "slots": row["slots"].replace("{users}", str(users)) if users > 1 else "",
    }


def counted(requests: int, tokens: int, has_windows: bool) -> dict[str, str]:
    """What vLLM is told so that it takes no more than figures count: on large cards its own defaults are more. A cache of windows holds the tokens of two
    steps at once (as tables/sql/ask/engine_setting.sql has it)."""
    tokens //= 2 if has_windows else 1
    return {"counted": f" --max-num-seqs {requests} --max-num-batched-tokens {tokens}"}


def fill(template: str, dtype: str, held: Mapping[str, str], asked: Mapping[str, str]) -> str:
    """A command with its gaps filled, for one card where `asked` says nothing else: as run.js fills them."""
    given = {
        "repository": held.get(dtype) or held.get("gguf", ""),
        "quant": dtype.removeprefix("gguf-").upper(),
        "tag": "" if dtype in GGUF_OF.values() else f":{dtype.removeprefix('gguf-').upper()}",
        "bits": "".join(re.findall(r"mlx-(\d)bit", dtype)),
        "tensor_parallel_size": "",
        "tp": "",
        "devices": "0",
        "users": "1",
        "prompts": "1",
        "all_tokens": asked["context"],
        "cache": "",
        "slots": "",
        **dict.fromkeys((*TEXT_ALONE, *NO_IMAGES, "counted", "kept"), ""),
    } | dict(asked)
    return re.sub(r"\{(\w+)\}", lambda m: given[m[1]], template)
