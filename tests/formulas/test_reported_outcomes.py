"""What people reported of runs in versions that are claimed: what ran is no `no`, what did not run is no `fits` without a setting."""

from __future__ import annotations

import pytest

VLLM = "program := 'vllm', program_version := '{}'"
LLAMA = "program := 'llama.cpp', dtype_id := '{}'"
# where it was reported, whether it ran, card, model, and what was asked
REPORTED = {
    "vllm-project/vllm issue 27508: defaults leave 1.71 GiB for a cache of 4.54": (
        "refused by default", "h100-sxm", "openai/gpt-oss-120b", VLLM.format("0.11"),
    ),
    "vllm-project/vllm issue 33155: 85K tokens with 0.97 of the card": (
        "ran", "h100-sxm", "openai/gpt-oss-120b", VLLM.format("0.11.2") + ", context_tokens := 87040",
    ),
    "the same issue: 0.14.1 runs out of memory at 0.97, with 5120 tokens and one request": (
        "ran out at another share", "h100-sxm", "openai/gpt-oss-120b", VLLM.format("0.14.1") + ", context_tokens := 5120",
    ),
    "vllm-project/vllm issue 41695: out of memory, or no memory for the cache, at 0.95": (
        "did not run", "rtx-5090", "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        VLLM.format("0.20") + ", dtype_id := 'fp8', context_tokens := 16384",
    ),
    "the same issue: its other model": (
        "did not run", "rtx-5090", "Qwen/Qwen3.6-27B", VLLM.format("0.20") + ", dtype_id := 'fp8', context_tokens := 16384",
    ),
    "noonghunna/club-3090 pull request 334: 42,000 tokens start with 0.92 of the card": (
        "ran", "rtx-3090", "google/gemma-4-26B-A4B-it",
        VLLM.format("0.22") + ", dtype_id := 'awq-int4', context_tokens := 42000",
    ),
    "the same: the whole context needs 5.98 GiB where 1.82 are left": (
        "did not run", "rtx-3090", "google/gemma-4-26B-A4B-it",
        VLLM.format("0.22") + ", dtype_id := 'awq-int4', context_tokens := 262144",
    ),
    "vllm-project/vllm issue 49064: 1024 requests are more than the 969 blocks of its recurrent states": (
        "refused by default", "h100-sxm", "Qwen/Qwen3.8-27B", VLLM.format("0.28.0") + ", dtype_id := 'bf16', context_tokens := 132000",
    ),
    "kaito-project/kaito issue 2319: the same with 614 blocks": (
        "refused by default", "h100-sxm", "Qwen/Qwen3.6-27B", VLLM.format("0.25.1") + ", dtype_id := 'bf16'",
    ),
    "vllm-project/recipes pull 551: the same with 856 blocks at 0.95 of the card": (
        "refused by default", "h100-sxm", "Qwen/Qwen3.6-27B-FP8", VLLM.format("0.22.0"),
    ),
    "the same: 0.18 fails while it captures graphs": (
        "refused by default", "h100-sxm", "Qwen/Qwen3.6-27B-FP8", VLLM.format("0.18.0"),
    ),
    "vllm-project/recipes pull 810: 262,144 tokens on two cards, a build before 0.27": (
        "ran", "rtx-5090", "Qwen/Qwen3.8-27B", VLLM.format("0.26") + ", dtype_id := 'fp8', context_tokens := 262144, gpu_count := 2",
    ),
    "LMCache/LMCache issue 3430: 46,368 tokens of cache with 0.976 of the card": (
        "ran", "rtx-a5000", "Qwen/Qwen3-8B", VLLM.format("0.21.0") + ", context_tokens := 16384",
    ),
    "olafkfreund/nixos_config pull request 816: 9.5 of 12 GB, all on the GPU": (
        "ran", "rtx-3060-12gb", "Qwen/Qwen2.5-Coder-14B-Instruct", "program := 'ollama', program_version := '0.30'",
    ),
    "hiyouga/LlamaFactory issue 10367: out of memory at step 128, rank 64": (
        "did not run", "l40s", "Qwen/Qwen3.5-27B",
        "program := 'llama-factory', phase_id := 'qlora', dtype_id := 'nf4-double', context_tokens := 8192, sequences := 1, lora_rank := 64",
    ),
    "OpenRLHF issue 698: out of memory in the step, 128 tokens": (
        "did not run", "a100-sxm-80gb", "meta-llama/Meta-Llama-3-8B",
        "program := 'deepspeed', phase_id := 'full-finetune', context_tokens := 128, sequences := 1, checkpointing := 'full'",
    ),
    "vllm-project/recipes pull 663: verified at 131,072 tokens with a cache in fp8": (
        "ran", "rtx-5090", "nvidia/Qwen3.6-27B-NVFP4", VLLM.format("0.24") + ", context_tokens := 131072, kv_dtype_id := 'fp8'",
    ),
    "the same: its other model": (
        "ran", "rtx-5090", "nvidia/Qwen3.6-35B-A3B-NVFP4", VLLM.format("0.24") + ", context_tokens := 131072, kv_dtype_id := 'fp8'",
    ),
    "vllm-project/vllm issue 36973: 44,016 tokens of cache, where kernels warmed up hold 3.4 GiB (134,144 before)": (
        "ran", "rtx-5090", "Qwen/Qwen3.5-35B-A3B-GPTQ-Int4",
        VLLM.format("0.18") + ", dtype_id := 'gptq-int4', context_tokens := 40960, kv_dtype_id := 'fp8'",
    ),
    "QwenLM: the feed-forward of its own four bits alone, 29.4 GB": (
        "did not run", "rtx-4090", "Qwen/Qwen3.5-27B-GPTQ-Int4", VLLM.format("0.20") + ", dtype_id := 'gptq-int4', context_tokens := 8192",
    ),
    "noonghunna/club-3090 issue 1087: 12.2 GiB left for a cache on each of two": (
        "ran", "rtx-5090", "Qwen/Qwen3.8-27B", VLLM.format("0.27") + ", dtype_id := 'fp8', context_tokens := 131072, gpu_count := 2",
    ),
    "noonghunna/club-3090 issue 1380: 215,040 tokens with a cache of 8 bits, 23,264 MiB with MTP": (
        "ran", "rtx-3090", "Qwen/Qwen3.8-27B", LLAMA.format("gguf-iq4_xs") + ", context_tokens := 215040, kv_dtype_id := 'q8_0'",
    ),
    "noonghunna/club-3090 BENCHMARKS.md @4a29ab57: 200,000 tokens with a cache of 4 bits": (
        "ran", "rtx-3090", "Qwen/Qwen3.6-27B", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 200000, kv_dtype_id := 'q4_0'",
    ),
    "AlexsJones/llmfit pull 815: all layers on a card of 4 GB": (
        "ran", "gtx-1050-ti", "google/gemma-4-E2B-it", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 4096",
    ),
    "the same: another": ("ran", "gtx-1050-ti", "Qwen/Qwen3-4B", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 4096"),
    "AlexsJones/llmfit pull 808: all layers on 20 GB": (
        "ran", "rx-7900-xt", "Qwen/Qwen3-30B-A3B-Instruct-2507", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 4096",
    ),
    "the same: it spilled on 12 GB": (
        "did not run", "rtx-5070", "Qwen/Qwen3-30B-A3B-Instruct-2507", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 4096",
    ),
    "the same: a dense model spilled on 12 GB": (
        "did not run", "rtx-5070", "google/gemma-2-27b-it", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 4096",
    ),
    "lemonade-sdk/llamacpp-rocm issue 79: 18,414 MiB of 15,020": (
        "did not run", "rx-9060-xt-16gb", "Qwen/Qwen3.5-27B", LLAMA.format("gguf-q4_k_m") + ", context_tokens := 32768",
    ),
    "ggml-org/llama.cpp pull 22673: 14,973 MiB left on a Mac of 64 GB": (
        "ran", "m1-max-64gb", "Qwen/Qwen3.6-35B-A3B", LLAMA.format("gguf-q8_0") + ", context_tokens := 8192",
    ),
    "AlexsJones/llmfit pull 871: 39 tokens a second": (
        "ran", "gtx-1070", "google/gemma-4-E4B-it", "program := 'ollama', program_version := '0.32', dtype_id := 'gguf-q4_0'",
    ),
    "0xSero/local-ai-registry pull 43: 64,022 tokens pass": (
        "ran", "m1-max-32gb", "Qwen/Qwen3.5-9B", "program := 'mlx-lm', dtype_id := 'mlx-4bit', context_tokens := 64022",
    ),
    "the same: out of memory at 128,022 tokens, with a buffer that four prompts read together take (tests/formulas/test_mlx.py)": (
        "did not run", "m1-max-32gb", "Qwen/Qwen3.5-9B",
        "program := 'mlx-lm', dtype_id := 'mlx-4bit', context_tokens := 128022, sequences := 4",
    ),
    "ml-explore/mlx-lm pull 1569: 3.30 GB of 18": (
        "ran", "m3-pro-18gb", "Qwen/Qwen3-4B-Instruct-2507", "program := 'mlx-lm', dtype_id := 'mlx-4bit', context_tokens := 2176",
    ),
    "ggml-org/llama.cpp issue 16725: b6816 worked xIELU out on the CPU and kept 41 × 4 results on a card (mended by pull 17895)": (
        "not answered", "rx-7900-xtx", "swiss-ai/Apertus-70B-Instruct-2509",
        "program := 'llama.cpp', program_version := 'b6816', dtype_id := 'gguf-iq4_xs', context_tokens := 20480, gpu_count := 2",
    ),
    # (LoRA over ZeRO-3 ran out in hiyouga/LlamaFactory issue 5070, where our answer is `fits`: no log, no version, no cause known)
    "huggingface/peft docs/source/accelerate/deepspeed.md @09802c1b: LoRA and ZeRO-3 on eight cards, 64 GB": (
        "ran", "h100-sxm", "meta-llama/Llama-2-70b-hf",
        "program := 'deepspeed', phase_id := 'lora', context_tokens := 2048, sequences := 8, gpu_count := 8, "
        "checkpointing := 'full', lora_rank := 8, lora_targets := 'all-linear', lora_dropout := 0.1",
    ),
    "unslothai/unsloth issue 2504: out of memory while it loads": (
        "did not run", "rtx-4090", "Qwen/Qwen3-30B-A3B", "program := 'unsloth', phase_id := 'qlora', context_tokens := 2048",
    ),
    "vllm-project/vllm issue 10517: 20000 tokens on a 3090": (
        "ran", "rtx-3090", "meta-llama/Llama-3.1-8B-Instruct",
        VLLM.format("0.6.4") + ", dtype_id := 'bf16', context_tokens := 20000",
    ),
    "vllm-project/vllm issue 10517: 29000 tokens on a 3090, a whole prompt profiled": (
        "refused by default", "rtx-3090", "meta-llama/Llama-3.1-8B-Instruct",
        VLLM.format("0.6.4") + ", dtype_id := 'bf16', context_tokens := 29000",
    ),
    "vllm-project/vllm issue 10517: 35000 tokens on a 3090, prompts in chunks": (
        "ran", "rtx-3090", "meta-llama/Llama-3.1-8B-Instruct",
        VLLM.format("0.6.4") + ", dtype_id := 'bf16', context_tokens := 35000",
    ),
    "vllm-project/vllm issue 10517: 45000 tokens on a 3090, prompts in chunks": (
        "ran", "rtx-3090", "meta-llama/Llama-3.1-8B-Instruct",
        VLLM.format("0.6.4") + ", dtype_id := 'bf16', context_tokens := 45000",
    ),
    "hiyouga/LlamaFactory issue 9572: out of memory on one card": (
        "did not run", "rtx-4090", "Qwen/Qwen3-30B-A3B-Thinking-2507",
        "program := 'llama-factory', phase_id := 'lora', context_tokens := 8192, sequences := 1, lora_rank := 256",
    ),
}  # fmt: skip


@pytest.mark.some(4)
@pytest.mark.parametrize("reported", REPORTED)
def test_no_answer_contradicts_what_was_reported(book, reported):
    outcome, card, model, asked = REPORTED[reported]
    query = f"SELECT verdict, coalesce(engine_setting, ''), holds_for, unknown_reason FROM fits_on('{card}', '{model}', {asked})"
    ((verdict, setting, holds_for, reason),) = book.execute(query).fetchall()
    if outcome == "not answered":
        assert verdict is None and reason
        return
    assert holds_for
    if outcome == "ran":
        assert verdict in ("fits", "tight")
    elif outcome == "did not run":
        assert verdict == "no"
    elif outcome == "ran out at another share":
        assert verdict != "fits"
    else:
        assert verdict != "fits" or "--gpu-memory-utilization" in setting or "--max-num-seqs" in setting
