"""What programs print of the memory that they hold: the start-up logs of vLLM, SGLang, llama.cpp and Ollama, and PyTorch's memory summary.

LINES is what is known of their words; nothing else of a log is read, and nothing of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.base.bounds import visible

from .problems import Wrong

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
