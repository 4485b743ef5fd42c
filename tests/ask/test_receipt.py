"""`fits --log`: logs as their programs wrote them, in public threads; lines that nothing is read from are left out."""

import pytest

from tests.ask.conftest import LARGE, SMALL, TEXT

# kserve/kserve pull 4470 (engine, model) and gateway-api-inference-extension pull 550 (memory): two runs, in vLLM's words of 0.8
VLLM_08 = """\
INFO 05-14 17:44:22 [llm_engine.py:240] Initializing a V0 LLM engine (v0.8.5.post1) with config: model='Qwen/Qwen3-14B', speculative_config=None, max_seq_len=4096, tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto
INFO 03-21 20:15:45 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB; PyTorch activation peak memory takes 2.38GiB; the rest of the memory reserved for KV Cache is 56.18GiB.
INFO 03-21 20:15:46 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512
"""
# vllm-project/vllm pull 20707
VLLM = """\
(EngineCore_0 pid=1399537) INFO 08-19 14:58:40 [gpu_worker.py:277] Available KV cache memory: 112.61 GiB
(EngineCore_0 pid=1399537) INFO 08-19 14:58:40 [kv_cache_utils.py:849] GPU KV cache size: 922,496 tokens
(EngineCore_0 pid=1399537) INFO 08-19 14:58:40 [kv_cache_utils.py:853] Maximum concurrency for 40,000 tokens per request: 23.06x
"""
# vllm-project/vllm issue 21348
SGLANG = "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\n"
# ggml-org/llama.cpp issue 11200
LLAMA = """\
llama_kv_cache_init: kv_size = 32768, offload = 1, type_k = 'q8_0', type_v = 'q8_0', n_layer = 64, can_shift = 1
llama_kv_cache_init:      CUDA0 KV buffer size =  2788.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  1564.00 MiB
llama_new_context_with_model: KV self size  = 4352.00 MiB, K (q8_0): 2176.00 MiB, V (q8_0): 2176.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   233.00 MiB
llama_new_context_with_model:      CUDA1 compute buffer size =   237.51 MiB
llama_new_context_with_model:  CUDA_Host compute buffer size =   133.01 MiB
"""
# pytorch/pytorch issue 35901
PYTORCH = """\
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
|       from large pool |    1048 MB |    4865 MB |   89263 MB |   88215 MB |
| GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
"""
MIB, GIB = 2**20, 2**30


@pytest.fixture
def log(tmp_path):
    def write(text):
        path = tmp_path / "start.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def held(told):
    return {row["component"]: row["log_bytes"] for row in told["components"]}


def test_vllm_says_each_component_and_names_its_model(ask_json, log):
    told = ask_json("fits", "--log", log(VLLM_08))
    assert (told["program"], told["version"], told["model"]) == ("vLLM", "0.8.5.post1", "Qwen/Qwen3-14B")
    assert told["context_tokens"] == 4096 and told["engine_id"] == "vllm-0.8"
    assert held(told) == {
        "weights": round(12.55 * GIB),
        "activations": round(2.38 * GIB),
        "beside PyTorch": round(0.16 * GIB),
    }


def test_the_cache_of_a_server_is_compared_by_the_token(ask_json, log):
    told = ask_json("fits", TEXT, "--log", log(VLLM), "--format", "bf16", "--context", "40000")
    assert held(told) == {"KV cache, 1,000 tokens": round(1000 * 112.61 * GIB / 922_496)}
    other = ask_json("fits", TEXT, "--log", log(SGLANG), "--format", "bf16")
    assert other["program"] == "SGLang" and held(other) == {
        "KV cache, 1,000 tokens": round(1000 * 2 * 8.23 * GIB / 367_404)
    }


def test_llama_cpp_is_compared_by_the_card_that_holds_most(ask_json, log):
    told = ask_json("fits", LARGE, "--log", log(LLAMA), "--format", "Q4_K_M", "--context", "32768")
    assert held(told) == {"KV cache": 2788 * MIB, "activations": round(237.51 * MIB)}
    assert told["kv_dtype_id"] == "q8_0" and told["gpu_count"] == 1
    ollama = ask_json("fits", LARGE, "--log", log("Sep 11 01:16:15 lena ollama[1884]: " + LLAMA), "--format", "Q4_K_M")
    assert ollama["program"] == "Ollama"


def test_a_memory_summary_is_compared_by_its_peaks(ask_json, log):
    told = ask_json("fits", SMALL, "--log", log(PYTORCH), "--phase", "lora", "--format", "bf16")
    assert held(told) == {"peak allocated": 4877 * MIB, "peak reserved": 12420 * MIB}


def test_what_is_told_is_a_row_for_the_measurements(ask_json, ask, log):
    told = ask_json("fits", "--log", log(VLLM_08))
    assert [row["metric"] for row in told["measured"]] == [
        "weights_bytes",
        "kv_cache_bytes",
        "compute_buffer",
        "non_torch",
    ]
    first = told["csv"].split("\n")[0].split(",")
    assert first[:5] == ["", "", "Qwen/Qwen3-14B", "inference", "bf16"] and "vLLM 0.8.5.post1" in first
    status, out, _error = ask("fits", "--log", log(VLLM_08))
    assert status == 0 and "difference" in out and "12.550" in out and told["csv"].split("\n")[0] in out


def test_a_log_that_breaks_off_is_read_as_far_as_it_goes(ask_json, log):
    told = ask_json("fits", "--log", log(VLLM_08[: VLLM_08.index("non_torch_memory takes")]))
    assert list(held(told)) == ["weights"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff" * 5000,
        "hello\n" * 50,
        "model weights take GiB",
        "# GPU blocks: " + "9" * 400,
        "general.name = x\n" + " " * 100_000,
    ],
    ids=["empty", "bytes", "other words", "no number", "a number beyond all", "blanks"],
)
def test_what_is_no_log_is_told(ask, log, text):
    status, _out, error = ask("fits", TEXT, "--log", log(text))
    assert status == 2 and "no line that is known here" in " ".join(error.split())


def test_hostile_words_reach_neither_terminal_nor_answer(ask, log):
    text = VLLM_08.replace("Qwen/Qwen3-14B", "\x1b[31mnobody/'; DROP TABLE gpu; --")
    status, out, error = ask("fits", "--log", log(text))
    assert status == 2 and "\x1b[31m" not in out + error


def test_a_file_that_is_not_there_and_a_question_without_a_model_are_told(ask, tmp_path):
    assert ask("fits", "--log", tmp_path / "none.log")[0] == 2
    status, _out, error = ask("fits")
    assert status == 2 and "--log FILE" in error


def test_a_log_that_does_not_name_its_model_asks_for_it(ask, log):
    status, _out, error = ask("fits", "--log", log(VLLM))
    assert status == 2 and "does not name its model" in " ".join(error.split())
