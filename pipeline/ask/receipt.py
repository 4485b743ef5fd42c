"""What a program really held, read from its log, against what the almanac says of it.

A start-up log of vLLM, SGLang, llama.cpp or Ollama, or PyTorch's memory summary. LINES is what is known of their words; nothing else of a
log is read, and nothing of it is run. A number that a log does not have is not there in the answer either.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.base.bounds import visible

from .almanac import Almanac, Row
from .problems import Unknown, Wrong
from .question import Model, Use
from .scenarios import sees

_MOST_BYTES, _MOST_LINE, _MOST_CARDS, _MOST_LOADS = 8 * 2**20, 4_000, 64, 16
# what a number counts, and whether the numbers of several cards add up (llama.cpp), or are those of each (a server)
VLLM, SGLANG, LLAMA, PYTORCH = "vLLM", "SGLang", "llama.cpp", "PyTorch"
_SIZE = r"(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B|B)\b"
# (a latent cache has one size; since 0.5.2x the pool is sized once graphs are captured)
_POOL = r"(?:(?<!draft )KV Cache is allocated|sizing: KV cache allocated)\."
_CARD = r"(?P<card>(?:CUDA|ROCm|Vulkan|SYCL|MTL|Metal)\d*)"
LINES: tuple[tuple[str, str, str], ...] = (
    # vllm/v1/worker/gpu_model_runner.py, gpu_worker.py, v1/core/kv_cache_utils.py; before 0.9 worker/worker.py
    (VLLM, "generation", r"Initializing an? (?P<text>V\d) LLM engine"),
    (VLLM, "version", r"Initializing an? (?:V\d )?LLM engine \(v(?P<text>[\w.+]+)\)"),
    (VLLM, "model", r"with config: model='(?P<text>[^']+)'"),
    (VLLM, "model", r"non-default args: \{.{0,2000}?'model(?:_tag)?': '(?P<text>[^']+)'"),
    (VLLM, "draft", r"(?:speculative_config=SpeculativeConfig\(method='|Detected )(?P<text>mtp|MTP)\b"),
    (VLLM, "context_tokens", r"max_seq_len=(?P<value>\d+)"),
    # (with --max-model-len auto the one that was found comes last, and the arguments say −1)
    (VLLM, "context_served", r"Maximum concurrency for (?P<value>\d[\d,]*) tokens per request"),
    (VLLM, "context_asked", r"non-default args: \{.{0,3000}?'max_model_len': (?P<value>\d+)"),
    (VLLM, "gpu_count", r"tensor_parallel_size(?:=|': )(?P<value>\d+)"),
    (VLLM, "quantization", r"\bquantization(?:=|': ')(?P<text>[\w-]+)"),
    (VLLM, "kv_format", r"\bkv_cache_dtype(?:=|': )'?(?P<text>\w+)"),
    (VLLM, "weights", rf"(?:Model loading took|Loading model weights took|model weights take)\s+{_SIZE}"),
    (VLLM, "activations", rf"PyTorch activation peak memory(?: takes)?\s+{_SIZE}"),
    (VLLM, "non_torch", rf"non_torch_memory(?: takes)?\s+{_SIZE}"),
    (
        VLLM,
        "cache_pool",
        rf"(?:Available KV cache memory:|memory reserved for KV Cache is|available_kv_cache_memory)\s+{_SIZE}",
    ),
    (VLLM, "cache_tokens", r"GPU KV cache size: (?P<value>\d[\d,]*) tokens"),
    (VLLM, "cache_blocks", r"# (?:GPU|cuda|CUDA) blocks: (?P<value>\d+)"),
    (VLLM, "graphs", rf"Graph capturing finished in [\d.]+ secs?, took {_SIZE}"),
    (VLLM, "captured", r"(?P<text>Graph capturing finished|enforce_eager=True)"),
    # gpu_worker.py: up to 0.26 (for whoever debugs) with weights and what is beside PyTorch apart; by 0.29 together, and beside the
    # activations what it set aside for graphs by its estimate, unless that was switched off
    (VLLM, "weights", rf"Actual usage is {_SIZE} for weight,"),
    (VLLM, "activations", rf"for weight, {_SIZE} for peak activation"),
    (VLLM, "non_torch", rf"for peak activation, {_SIZE} for non-torch memory"),
    (VLLM, "consumed", rf"Actual usage is {_SIZE} for consumed memory \(weights \+ non-torch\)"),
    (VLLM, "activations_graphs", rf"\(weights \+ non-torch\), {_SIZE} for peak activation"),
    (VLLM, "graphs", rf"and {_SIZE} for CUDAGraph memory"),
    (VLLM, "graphs", rf"CUDA graph pool memory: {_SIZE} \(actual\)"),
    (VLLM, "graphs_estimated", rf"\(actual\), {_SIZE} \(estimated\)"),
    (VLLM, "graphs_estimated", rf"Estimated CUDA graph memory: {_SIZE} total"),
    (VLLM, "graphs_profiled", r"CUDA graph memory profiling is (?P<text>enabled|disabled)"),
    # sglang/srt/model_executor/model_runner.py and mem_cache
    (SGLANG, "version", r"sglang[ =v]+(?P<text>\d[\w.]+)"),
    (SGLANG, "model", r"ServerArgs\(model_path='(?P<text>[^']+)'"),
    (SGLANG, "gpu_count", r"[(, ]tp_size=(?P<value>\d+)"),
    # sglang/srt/server_args.py: attention over several groups of these cards, each with a cache of its own
    (
        SGLANG,
        "data_parallel",
        r"ServerArgs\((?=.{0,9000}?\benable_dp_attention=True).{0,9000}?\bdp_size=(?P<value>\d+)",
    ),
    (SGLANG, "context_tokens", r"context_len=(?P<value>\d+)"),
    (SGLANG, "kv_format", r"ServerArgs\(.{0,3000}?\bkv_cache_dtype='(?P<text>\w+)"),
    (SGLANG, "weights", rf"Load weight end\..{{0,300}}?mem usage={_SIZE}"),
    (SGLANG, "cache_tokens", rf"{_POOL}(?: dtype: [\w.]+,)? #tokens: (?P<value>\d+)"),
    (SGLANG, "cache_keys", rf"{_POOL}.{{0,200}}?\bKV? size: {_SIZE}"),
    (SGLANG, "cache_values", rf"{_POOL}.{{0,200}}?\bV size: {_SIZE}"),
    (SGLANG, "graphs", rf"Capture (?:\w+ )?(?:cuda|CUDA) graph end\..{{0,200}}?mem usage={_SIZE}"),
    # llama.cpp src/llama-model.cpp, llama-kv-cache.cpp, llama-context.cpp; Ollama prints them too
    (LLAMA, "version", r"build(?::|_info: b?| =)\s*(?P<text>\d+)"),
    (LLAMA, "start", r"(?P<text>llama_model_loader: loaded meta data with)"),
    (LLAMA, "model", r"general\.name\s+(?:str\s+)?=\s*(?!n/a\s*$)(?P<text>\S.{0,200})"),
    (LLAMA, "quantization", r"(?:file type\s+=|model ftype\s+=)\s*(?P<text>\S+(?: - \w+)?)"),
    (LLAMA, "context_tokens", r"llama_(?:context|new_context_with_model|init_from_model): n_ctx\s+=\s*(?P<value>\d+)"),
    (LLAMA, "sequence_tokens", r"llama_context: n_ctx_(?:seq|per_seq)\s+=\s*(?P<value>\d+)"),
    # slots with a cache each (llama-context.cpp): n_ctx is of all of them together
    (LLAMA, "slots", r"llama_context: n_seq_max\s+=\s*(?P<value>\d+)"),
    (LLAMA, "slots_share", r"llama_context: kv_unified\s+=\s*(?P<text>\w+)"),
    (LLAMA, "weights", rf"{_CARD} (?:model )?buffer size =\s*{_SIZE}"),
    (LLAMA, "cache", rf"{_CARD} KV buffer size =\s*{_SIZE}"),
    # (of what a model sees with, tools/mtmd/clip.cpp)
    (LLAMA, "tower", rf"compute_meta:\s+{_CARD} compute buffer size =\s*{_SIZE}"),
    (LLAMA, "tower_weights", rf"load_hparams: model size:\s*{_SIZE}"),
    (LLAMA, "activations", rf"^(?!.*compute_meta:).*?{_CARD} compute buffer size =\s*{_SIZE}"),
    (LLAMA, "flash", r"flash_attn\s+= (?P<text>\w+)"),
    (LLAMA, "kv_format", r"(?:K \(|type_k = ')(?P<text>\w+)"),
    (LLAMA, "weights", rf'msg="model weights" device={_CARD} size="{_SIZE}"'),
    (LLAMA, "cache", rf'msg="kv cache" device={_CARD} size="{_SIZE}"'),
    (LLAMA, "activations", rf'msg="compute graph" device={_CARD} size="{_SIZE}"'),
    # torch/cuda/memory.py memory_summary: current, peak, allocated, freed; its units are powers of 1024
    (PYTORCH, "allocated", rf"\| Allocated memory\s+\|[^|]+\|\s*{_SIZE}"),
    (PYTORCH, "reserved", rf"\| GPU reserved memory\s+\|[^|]+\|\s*{_SIZE}"),
)
_COMPILED = tuple((program, what, re.compile(pattern)) for program, what, pattern in LINES)
_OLLAMA = re.compile(r"ollama\[\d+\]:|source=\w+\.go:\d+")
# the words that any line of interest has: most lines of a log have none
_MARKS = re.compile(
    r"took|take|KV|model=|args|loaded meta|_memory|peak|blocks|graph|ServerArgs|Load weight|context_len|buffer size|general\.name|ftype|file type|build|n_ctx|n_seq_max|kv_unified|flash_attn|Detected MTP|msg=|memory  |sglang|LLM engine|type_k|model size|concurrency"
)
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_CACHES_OF_16_BITS = ("auto", "bfloat16", "bf16", "float16", "fp16", "f16", "half", "none")
_CACHES = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "q8_0": "q8_0", "q4_0": "q4_0", "f32": "fp32"}
_MIXES = {"medium": "_m", "small": "_s", "large": "_l"}


@dataclass
class Receipt:
    """What a log told: sizes in bytes of the card that holds most (of a server all hold alike), counts and words."""

    program: str
    is_ollama: bool = False
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    cards: dict[str, dict[str, int]] = field(default_factory=dict)  # of llama.cpp: component → card → bytes

    @property
    def name(self) -> str:
        return "Ollama" if self.is_ollama else self.program


def read(path: Path) -> Receipt:
    """Raises Wrong where the file cannot be read, or is no log of a program that is known here."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Wrong(f"{error.strerror or error}: {visible(str(path))}") from None
    if len(raw) > _MOST_BYTES:
        raise Wrong(
            f"{visible(str(path))} is larger than {_MOST_BYTES // 2**20} MiB: cut it after the start of the program"
        )
    found: dict[str, Receipt] = {}
    loads: list[Receipt] = []
    is_ollama = False
    for line in _lines(raw.decode("utf-8", "replace")):
        is_ollama = is_ollama or bool(_OLLAMA.search(line))
        for program, what, pattern in _COMPILED:
            if match := pattern.search(line):
                if what == "start":  # of each file that llama.cpp loads: Ollama's journal has many, a draft is another
                    found[LLAMA] = Receipt(LLAMA, words={"version": v} if (v := _version(found)) else {})
                    loads = [*loads[-_MOST_LOADS:], found[LLAMA]]
                else:
                    _take(found.setdefault(program, Receipt(program)), what, match)
    told = [one for one in (*found.values(), *loads) if one.numbers or one.cards]
    if not told:
        raise Wrong(
            f"{visible(str(path))} has no line that is known here: of vLLM, SGLang, llama.cpp or Ollama the log from the start on, of PyTorch "
            "what torch.cuda.memory_summary() prints"
        )
    best = max(
        told, key=lambda one: (len(one.numbers) + len(one.cards), max(one.cards.get("weights", {"": 0}).values()))
    )
    best.is_ollama = is_ollama and best.program == LLAMA
    return best


def _version(found: dict[str, Receipt]) -> str | None:
    return found[LLAMA].words.get("version") if LLAMA in found else None


def _lines(text: str) -> Iterator[str]:
    return (line[:_MOST_LINE] for line in text.splitlines() if _MARKS.search(line[:_MOST_LINE]))


def _take(receipt: Receipt, what: str, match: re.Match[str]) -> None:
    groups = match.groupdict()
    if groups.get("text"):
        receipt.words.setdefault(what, groups["text"].strip()[:200])
        return
    digits = groups["value"].replace(",", "")
    if len(digits) > 18:
        return
    unit = groups.get("unit")
    # what logs call GB is 1024 ** 3 in all of them
    number = round(float(digits) * 1024 ** _POWERS[unit[0]]) if unit else int(digits)
    card = groups.get("card")
    if card is None:
        # of several ranks the one that has least for its cache decides; what a draft has is the smaller of two
        least = what == "cache_pool"
        receipt.numbers[what] = (min if least else max)(number, receipt.numbers.get(what, number))
    elif len(held := receipt.cards.setdefault(what, {})) < _MOST_CARDS:
        held[card] = number


def format_of(receipt: Receipt) -> str | None:
    """The format that a log names, in the almanac's words; None where it names none that is known."""
    said = receipt.words.get("quantization", "").lower()
    if receipt.program == LLAMA and said:
        mix, _, kind = said.partition(" - ")
        return f"gguf-{mix}{_MIXES.get(kind, '')}"
    return {
        "awq": "awq-int4",
        "awq_marlin": "awq-int4",
        "gptq": "gptq-int4",
        "gptq_marlin": "gptq-int4",
        "fp8": "fp8",
        "mxfp4": "mxfp4",
        "bitsandbytes": "nf4",
        "none": "bf16",
    }.get(said)


def _held_at(receipt: Receipt, use: Use) -> tuple[int | None, int]:
    """The tokens of a sequence, and how many sequences a cache was set aside for."""
    said, users = receipt.numbers, use.sequences or 1
    if use.context_tokens:
        return use.context_tokens, users
    if receipt.words.get("slots_share") in ("false", "0") and said.get("sequence_tokens"):
        return said["sequence_tokens"], max(users, said.get("slots", users))
    names = ("context_served", "context_tokens", "context_asked", "sequence_tokens")
    return next((said[name] for name in names if said.get(name)), None), users


def compared(almanac: Almanac, model: Model, use: Use, receipt: Receipt, count: int = 1) -> dict[str, Any]:
    """What the log says of each component, what the formulas say, and the difference, on `count` cards where it does not say how many. Raises
    Unknown with the reason where they say nothing."""
    said = receipt.numbers
    context, users = _held_at(receipt, use)
    engine = {VLLM: "vllm", SGLANG: "sglang", LLAMA: "llama.cpp", PYTORCH: None}[receipt.program]
    # 0.8 has both engines and says which it starts; what is older has the first
    first = re.match(r"0\.[0-8]\.", receipt.words.get("version", "")) and receipt.words.get("generation") != "V1"
    if receipt.program == VLLM and first:
        engine = "vllm-0.8"
    asked = {
        "m": model.model_id,
        "dtype": use.dtype_id or (model.dtype_id if engine else None) or format_of(receipt),
        "phase": use.phase_id,
        "engine": engine,
        "context": context,
        "users": users,
        "kv": use.kv_dtype_id or _cache_format(receipt),
        "attention": "eager" if receipt.words.get("flash") in ("0", "disabled", "off") else None,
        "count": max(said.get("gpu_count", count), len(receipt.cards.get("weights", ())), 1),
        "dp": said.get("data_parallel") if receipt.program == SGLANG else None,
    }
    (ours,) = almanac.rows(
        "FROM footprint_of($m, dtype_id := $dtype, phase_id := $phase, engine_id := $engine, context_tokens := $context, sequences := $users, "
        "kv_dtype_id := $kv, gpu_count := $count, attention := $attention, data_parallel := $dp)",
        asked,
    )
    if ours["total_bytes"] is None:
        raise Unknown(f"Not known: what is to be compared with ({visible(ours['unknown_reason'] or 'no reason')})")
    ours |= {"has_counted_tower": sees(almanac, ours["model_id"]), "graphs_bytes": _graphs_of(almanac, ours)}
    if receipt.words.get("draft", "").lower() == "mtp":
        ours = _with_predictions(almanac, asked, ours)
    lines = [
        {
            "component": name,
            "log_bytes": held,
            "ours_bytes": said,
            "difference": round(said / held - 1, 4) if held else None,
        }
        for name, held, said in _pairs(receipt, ours)
        # (cache and buffers of llama.cpp are those of a context, and a log may not say it)
        if context or receipt.program != LLAMA or name == "weights"
    ]
    return {
        "program": receipt.name,
        "version": receipt.words.get("version"),
        "model": model.shown,
        **{
            name: ours[name]
            for name in (
                "dtype_id",
                "phase_id",
                "engine_id",
                "context_tokens",
                "sequences",
                "kv_dtype_id",
                "gpu_count",
                "holds_for",
            )
        },
        "is_context_said": context is not None,
        "components": lines,
        "measured": _rows(receipt, ours if context else ours | {"context_tokens": None}),
    }


def _with_predictions(almanac: Almanac, asked: Row, ours: Row) -> Row:
    """With the layers that predict, where a log says that they draft and it is known what they hold."""
    (both,) = almanac.rows(
        "FROM speculative_of($m, 'mtp', dtype_id := $dtype, engine_id := $engine, context_tokens := $context, sequences := $users, "
        "kv_dtype_id := $kv, gpu_count := $count)",
        {name: value for name, value in asked.items() if name not in ("phase", "attention", "dp")},
    )
    if both["total_bytes"] is None:
        return ours
    return ours | {
        "weights_bytes": ours["weights_bytes"] + both["draft_weights_bytes"],
        "kv_cache_bytes": ours["kv_cache_bytes"] + both["draft_cache_bytes"],
    }


def _cache_format(receipt: Receipt) -> str | None:
    """The format of the cache that a log names, None for the engine's own. Raises Unknown for one that is not described: compared with another
    it would be a wrong row of the book."""
    said = receipt.words.get("kv_format", "auto").lower()
    if said in _CACHES_OF_16_BITS:
        return None
    if said in _CACHES:
        return _CACHES[said]
    raise Unknown(f"Not known: a KV cache in {visible(said)}, which the log names, is not described")


def _graphs_of(almanac: Almanac, ours: Row) -> int | None:
    """What is counted for the graphs of vLLM, a part of overhead_bytes; None for other programs."""
    if not str(ours["engine_id"]).startswith("vllm"):
        return None
    (row,) = almanac.rows(
        "SELECT internal.graphs_bytes_vllm(shape.model, {'engine_id': $engine, 'pipeline_parallel': 1, 'max_num_seqs': NULL::BIGINT, "
        "'enforce_eager': false, 'max_loras': NULL::BIGINT}, "
        "sizes.constants)::BIGINT AS graphs "
        "FROM internal.shape_row AS shape, internal.constants_row AS sizes WHERE shape.model_id = $m",
        {"m": ours["model_id"], "engine": ours["engine_id"]},
    )
    return row["graphs"]


def _activations(receipt: Receipt) -> int | None:
    """The activations of a log that has them together with what vLLM set aside for its graphs; None where it does not say how much that is."""
    both, aside = receipt.numbers["activations_graphs"], receipt.numbers.get("graphs_estimated")
    if receipt.words.get("graphs_profiled") == "disabled":
        return both
    if aside is not None:
        return both - aside if both > aside else None
    return both if "captured" in receipt.words else None  # (an estimate is said in the next line)


def _found(receipt: Receipt, ours: Row) -> dict[str, int]:
    """Sizes by what they are of, of the card that holds most. llama.cpp loads what a model sees with from a file of its own, which is part
    of our figures: where a log has it the two are added, and where it was left out weights and activations are of something else."""
    found = receipt.numbers | {what: max(by.values()) for what, by in receipt.cards.items()}
    if "activations_graphs" in found and (activations := _activations(receipt)):
        found["activations"] = activations
    if receipt.program != LLAMA or ours["has_counted_tower"] is None:
        return found
    if "tower_weights" not in found:
        return {what: size for what, size in found.items() if what not in ("weights", "activations")}
    beside = {"weights": "tower_weights", **({"activations": "tower"} if ours["has_counted_tower"] else {})}
    return found | {what: found[what] + found.get(of, 0) for what, of in beside.items() if what in found}


def _pairs(receipt: Receipt, ours: Row) -> Iterator[tuple[str, int, int]]:
    numbers, most = receipt.numbers, {what: max(by.values()) for what, by in receipt.cards.items()}
    cache = ours["kv_cache_bytes"] + ours["kv_padding_bytes"]
    tokens = ours["context_tokens"] * ours["sequences"]
    if receipt.program == PYTORCH:
        yield from _known(
            ("peak allocated", numbers.get("allocated"), ours["total_bytes"] - ours["overhead_bytes"]),
            ("peak reserved", numbers.get("reserved"), ours["total_bytes"]),
        )
        return
    found = _found(receipt, ours)
    held = numbers.get("cache_keys", 0) + numbers.get("cache_values", 0) or numbers.get("cache_pool")
    yield from _known(
        ("weights", found.get("weights"), ours["weights_bytes"]),
        ("KV cache", most.get("cache"), cache),
        # a server's cache is all that is left: what a token takes of it can be compared
        (
            "KV cache, 1,000 tokens",
            round(1000 * held / numbers["cache_tokens"]) if held and numbers.get("cache_tokens") else None,
            round(1000 * cache / tokens),
        ),
        ("activations", found.get("activations"), ours["activations_bytes"]),
        (
            "beside PyTorch",
            numbers["non_torch"] + numbers.get("graphs", 0) if "non_torch" in numbers else None,
            ours["overhead_bytes"],
        ),
        (
            "weights and beside PyTorch",
            numbers["consumed"] + numbers.get("graphs", 0) if "consumed" in numbers else None,
            ours["weights_bytes"] + ours["overhead_bytes"],
        ),
        ("CUDA graphs, as estimated", numbers.get("graphs_estimated"), ours["graphs_bytes"] or 0),
    )


def _known(*pairs: tuple[str, int | None, int]) -> Iterator[tuple[str, int, int]]:
    return ((name, held, said) for name, held, said in pairs if held)


# of a log's words, the metric of measured.csv
_METRICS = {
    "weights": "weights_bytes",
    "cache": "kv_cache_bytes",
    "cache_pool": "kv_cache_bytes",
    "cache_tokens": "kv_tokens",
    "activations": "compute_buffer",
    "non_torch": "non_torch",
    "allocated": "peak_allocated",
    "reserved": "peak_reserved",
}


def _rows(receipt: Receipt, ours: Row) -> list[dict[str, Any]]:
    found = _found(receipt, ours)
    groups = receipt.numbers.get("data_parallel", 1)
    shared = (
        f"TP{ours['gpu_count']}{f' DP{groups}' if groups > 1 else ''}"
        if receipt.program in (VLLM, SGLANG)
        else f"layer split x{ours['gpu_count']}"
    )
    return [
        {
            "model_id": ours["model_id"],
            "phase": ours["phase_id"],
            "weights_dtype": ours["dtype_id"],
            "micro_batch": ours["sequences"] if ours["sequences"] > 1 else None,
            "seq_len": ours["context_tokens"],
            "parallelism": "1 GPU" if ours["gpu_count"] == 1 else shared,
            "framework": " ".join(filter(None, (receipt.name, receipt.words.get("version")))),
            "metric": metric,
            "value": value,
            "unit": "tokens" if metric == "kv_tokens" else "B",
            "value_bytes": None if metric == "kv_tokens" else value,
            "is_trap": "false",
            "confidence": "high",
            "scope": "per_gpu",
            "kv_dtype": ours["kv_dtype_id"],
        }
        for what, metric in _METRICS.items()
        if (value := found.get(what))
    ]


def as_csv(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Lines of measured.csv; its id, its source and the card are left to who gives them."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writerows({name: "" if row.get(name) is None else row[name] for name in columns} for row in rows)
    return out.getvalue()
