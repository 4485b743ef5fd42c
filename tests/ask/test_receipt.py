"""`fits --log`: logs as their programs wrote them, in public threads; lines that nothing is read from are left out."""

import pytest

from tests.few import EXPERTS, LARGE, SEEING, SMALL, TEXT

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
# vllm-project/vllm pull 10511: how 0.6.5 wrote it
VLLM_065 = """\
INFO 12-13 19:54:18 worker.py:243] Memory profiling results:
INFO 12-13 19:54:18 worker.py:243] model weights take   14.96GiB
INFO 12-13 19:54:18 worker.py:243] non_torch_memory     1.79GiB
INFO 12-13 19:54:18 worker.py:243] PyTorch activation peak memory       1.26GiB
INFO 12-13 19:54:18 worker.py:243] available_kv_cache_memory    53.29GiB
"""
# what SGLang writes of a latent cache (mem_cache/memory_pool.py) and, since pools are sized behind graphs, kv_pool_runtime.py; then of a draft
SGLANG_LATENT = """\
[2025-10-16 09:06:22 TP0] KV Cache is allocated. #tokens: 600000, KV size: 39.26 GB
[2025-10-16 09:06:30 TP0] KV Cache is allocated. #tokens: 600000, KV size: 0.64 GB
"""
SGLANG_SIZED = """\
Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 367404, KV size: 16.46 GB, avail mem=9.10 GB
Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 367404, KV size: 0.46 GB
"""
# a journal of Ollama: two models, one after the other, and a name that the file does not give (ollama/ollama issue 8984)
OLLAMA = """\
llama_model_loader: loaded meta data with 33 key-value pairs and 399 tensors from /a (version GGUF V3 (latest))
print_info: file type   = Q4_K - Medium
print_info: general.name     = Qwen3 8B
load_tensors:        CUDA0 model buffer size =  4455.34 MiB
llama_context: n_ctx         = 4096
llama_context: flash_attn    = 0
llama_kv_cache_unified:      CUDA0 KV buffer size =   576.00 MiB
llama_context:      CUDA0 compute buffer size =   304.75 MiB
llama_model_loader: loaded meta data with 33 key-value pairs and 310 tensors from /b (version GGUF V3 (latest))
print_info: file type   = Q8_0
print_info: general.name     = n/a
load_tensors:        CUDA0 model buffer size =   604.15 MiB
llama_context: n_ctx         = 16384
llama_kv_cache_unified:      CUDA0 KV buffer size =  1792.00 MiB
"""
# lines of gpustack/runner pull 251 (0.27), and the sum that gpu_worker.py of 0.29 and 0.33 writes, with figures of a start of TEXT
VLLM_029 = """\
(APIServer pid=1) INFO 08-14 14:06:51 [utils.py:253] non-default args: {'model_tag': 'Qwen/Qwen3-8B', 'model': 'Qwen/Qwen3-8B', 'max_model_len': 32768, 'tensor_parallel_size': 2}
(Worker_TP0 pid=447) INFO 08-14 14:07:10 [gpu_model_runner.py:5472] Model loading took 7.64 GiB memory and 4.500000 seconds
(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_model_runner.py:6895] Estimated CUDA graph memory: 0.36 GiB total
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:640] CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization=0.8200 is equivalent to --gpu-memory-utilization=0.8048 without CUDA graph memory profiling. To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to 0.8352. To disable, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:626] Available KV cache memory: 6.87 GiB
(Worker_TP0 pid=447) INFO 08-14 14:07:30 [gpu_worker.py:800] CUDA graph pool memory: 0.09 GiB (actual), 0.36 GiB (estimated), difference: 0.27 GiB (300.0%).
(Worker_TP0 pid=447) INFO 08-14 14:07:30 [gpu_worker.py:860] Free memory on device (22.8/23.5 GiB) on startup. Desired GPU memory utilization is (0.82, 19.3 GiB). Actual usage is 8.03 GiB for consumed memory (weights + non-torch), 1.59 GiB for peak activation, and 0.09 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=1` (0.0 GiB) to fit into requested memory.
"""
# gpu_worker.py of 0.20 to 0.26, for whoever debugs
VLLM_021 = "Actual usage is 15.27 GiB for weight, 1.23 GiB for peak activation, 0.11 GiB for non-torch memory, and 0.45 GiB for CUDAGraph memory. Replace\n"
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


@pytest.mark.some(1)
@pytest.mark.parametrize(("said", "held_in"), [("auto", "bf16"), ("fp8", "fp8"), ("fp8_e4m3", "fp8")])
def test_the_format_of_the_cache_is_the_one_that_the_log_names(ask_json, log, said, held_in):
    """Compared in 16 bits a cache in 8 was "81 % too large", and the row for the measurements said bf16."""
    vllm = log(VLLM_08.replace("kv_cache_dtype=auto", f"kv_cache_dtype={said}").replace("V0 LLM", "V1 LLM"))
    assert ask_json("fits", TEXT, "--log", vllm, "--format", "bf16")["kv_dtype_id"] == held_in
    args = log(f"INFO non-default args: {{'model': 'a', 'kv_cache_dtype': '{said}'}}\n" + VLLM)
    assert {row["kv_dtype"] for row in ask_json("fits", TEXT, "--log", args, "--format", "bf16")["measured"]} == {
        held_in
    }
    sglang = log(f"ServerArgs(model_path='a', kv_cache_dtype='{said}', tp_size=1)\n" + SGLANG)
    assert ask_json("fits", TEXT, "--log", sglang, "--format", "bf16")["kv_dtype_id"] == held_in


def test_a_cache_in_a_format_that_is_not_described_is_compared_with_nothing(ask, log):
    status, _out, problem = ask(
        "fits", TEXT, "--log", log(VLLM_08.replace("=auto", "=turboquant_k8v4")), "--format", "bf16"
    )
    assert status == 3 and "a KV cache in turboquant_k8v4" in problem


def test_llama_cpp_is_compared_by_the_card_that_holds_most(ask_json, log):
    told = ask_json("fits", LARGE, "--log", log(LLAMA), "--format", "Q4_K_M", "--context", "32768")
    assert held(told) == {"KV cache": 2788 * MIB, "activations": round(237.51 * MIB)}
    assert told["kv_dtype_id"] == "q8_0" and told["gpu_count"] == 1
    ollama = ask_json("fits", LARGE, "--log", log("Sep 11 01:16:15 lena ollama[1884]: " + LLAMA), "--format", "Q4_K_M")
    assert ollama["program"] == "Ollama"


def test_vllm_says_what_it_consumed_and_what_it_set_aside_for_graphs(ask_json, log):
    """Since 0.29 weights and what is beside PyTorch are one number, and the activations have the estimate of the graphs in them."""
    told = ask_json("fits", "--log", log(VLLM_029), "--format", "bf16")
    assert (told["model"], told["context_tokens"], told["gpu_count"]) == (TEXT, 32768, 2)
    assert held(told) == {
        "weights": round(7.64 * GIB),
        "activations": round(1.59 * GIB) - round(0.36 * GIB),
        "weights and beside PyTorch": round(8.03 * GIB) + round(0.09 * GIB),
        "CUDA graphs, as estimated": round(0.36 * GIB),
    }
    assert {row["seq_len"] for row in told["measured"]} == {32768}
    before = ask_json("fits", TEXT, "--log", log(VLLM_021), "--format", "bf16")
    assert held(before) == {
        "weights": round(15.27 * GIB),
        "activations": round(1.23 * GIB),
        "beside PyTorch": round(0.11 * GIB) + round(0.45 * GIB),
    }


@pytest.mark.parametrize(("kept", "share"), [("disabled", 1.59), ("enabled", None), ("captured", 1.59)])
def test_activations_are_told_where_the_log_says_what_is_in_them(ask_json, log, kept, share):
    said = {
        "disabled": "CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0).\n",
        "captured": "INFO Graph capturing finished in 5 secs, took 0.09 GiB\n",
        "enabled": "",
    }[kept]
    told = ask_json("fits", TEXT, "--log", log(said + VLLM_029.splitlines()[-1]), "--format", "bf16")
    assert held(told).get("activations") == (share and round(share * GIB))
    assert ("compute_buffer" in {row["metric"] for row in told["measured"]}) is bool(share)


def test_the_context_of_vllm_is_read_wherever_it_stands(ask, ask_json, log):
    """--max-model-len auto: the arguments say −1, and what was found stands with the size of the cache."""
    auto = log("non-default args: {'model': 'a', 'max_model_len': -1}\n" + VLLM)
    assert ask_json("fits", TEXT, "--log", auto, "--format", "bf16")["context_tokens"] == 40_000
    silent = log("\n".join(VLLM_029.splitlines()[1:]))
    told = ask_json("fits", TEXT, "--log", silent, "--format", "bf16")
    assert {row["seq_len"] for row in told["measured"]} == {None} and not told["is_context_said"]
    said = " ".join(ask("fits", TEXT, "--log", silent, "--format", "bf16")[1].split())
    assert "the log does not say how many, nor do the rows" in said


SEES = """\
llama_model_loader: loaded meta data with 40 key-value pairs and 400 tensors from /a (version GGUF V3 (latest))
llama_context: n_ctx         = 8192
load_tensors:        CUDA0 model buffer size =  2500.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =   256.00 MiB
sched_reserve:      CUDA0 compute buffer size =   490.00 MiB
"""
TOWER = """\
load_hparams: model size:         644.26 MiB
warmup: warmup with image size = 1472 x 1472
alloc_compute_meta:      CUDA0 compute buffer size =   223.30 MiB
alloc_compute_meta:        CPU compute buffer size =    24.93 MiB
"""


def test_what_a_model_sees_with_is_added_where_llama_cpp_loads_it(ask_json, log):
    """Its buffer, which is printed last, stood for the text's; and of a log without it weights and buffers are of something else than ours."""
    told = ask_json("fits", SEEING, "--log", log(SEES + TOWER), "--format", "Q4_K_M")
    assert held(told) == {
        "weights": 2500 * MIB + round(644.26 * MIB),
        "KV cache": 256 * MIB,
        "activations": 490 * MIB + round(223.30 * MIB),
    }
    assert {row["metric"]: row["value"] for row in told["measured"]}["compute_buffer"] == held(told)["activations"]
    alone = ask_json("fits", SEEING, "--log", log(SEES), "--format", "Q4_K_M")
    assert held(alone) == {"KV cache": 256 * MIB}
    assert [row["metric"] for row in alone["measured"]] == ["kv_cache_bytes"]


@pytest.mark.full
def test_a_log_that_does_not_say_its_context_is_no_measurement_of_another(ask_json, log):
    """Cache and buffers of 65,536 tokens were compared with those of 8,192, and the row for the measurements said 8,192."""
    silent = SEES.replace("llama_context: n_ctx         = 8192\n", "") + TOWER
    told = ask_json("fits", SEEING, "--log", log(silent), "--format", "Q4_K_M")
    assert set(held(told)) == {"weights"} and {row["seq_len"] for row in told["measured"]} == {None}
    by_sequence = SEES.replace("n_ctx         = 8192", "n_ctx_seq     = 65536") + TOWER
    assert ask_json("fits", SEEING, "--log", log(by_sequence), "--format", "Q4_K_M")["context_tokens"] == 65_536


def test_what_vllm_065_wrote_in_lines_of_their_own_is_read(ask_json, log):
    told = ask_json("fits", TEXT, "--log", log(VLLM_065), "--format", "bf16")
    assert held(told) == {
        "weights": round(14.96 * GIB),
        "activations": round(1.26 * GIB),
        "beside PyTorch": round(1.79 * GIB),
    }


def test_a_pool_of_sglang_is_the_models_and_not_the_drafts(ask_json, log):
    for text, size, tokens in ((SGLANG_LATENT, 39.26, 600_000), (SGLANG_SIZED, 16.46, 367_404)):
        told = ask_json("fits", TEXT, "--log", log(text), "--format", "bf16")
        assert held(told) == {"KV cache, 1,000 tokens": round(1000 * round(size * GIB) / tokens)}


def test_of_several_loads_one_is_told_as_a_whole(ask_json, log):
    """The name of the first stood beside the buffers of the last. Without fused attention its buffer is a larger one."""
    told = ask_json("fits", "--log", log(OLLAMA))
    assert (told["model"], told["context_tokens"], told["dtype_id"]) == (TEXT, 4096, "gguf-q4_k_m")
    assert held(told) == {"weights": round(4455.34 * MIB), "KV cache": 576 * MIB, "activations": round(304.75 * MIB)}
    assert all(abs(row["difference"]) < 0.01 for row in told["components"])


@pytest.mark.full
def test_weights_of_a_log_that_drafts_with_prediction_layers_have_them(ask_json, log):
    asked = ("--format", "bf16", "--context", "8192", "--log")
    loaded = "Model loading took 8.81 GiB memory and 12.1 seconds\n"
    plain = ask_json("fits", SEEING, *asked, log(loaded))["components"][0]["ours_bytes"]
    # vllm-project/vllm issue 46249
    said = (
        "[llm_base_proposer.py:1377] Detected MTP model. Sharing target model embedding weights with the draft model.\n"
    )
    both = ask_json("fits", SEEING, *asked, log(said + loaded))["components"][0]["ours_bytes"]
    assert 0.02 < both / plain - 1 < 0.06


def test_rows_for_the_measurements_stand_in_lines_of_their_own(ask, log):
    status, out, _error = ask("fits", "--log", log(VLLM_08))
    assert status == 0 and "\\u000a" not in out and out.count(",inference,bf16,") == 4


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


@pytest.mark.full
def test_slots_with_a_cache_each_are_so_many_sequences(ask_json, log):
    """n_ctx is of all slots together: taken for one sequence it was beyond what the model reads, and the log refused."""
    text = (
        "llama_context: n_seq_max     = 2\nllama_context: n_ctx         = 81920\nllama_context: n_ctx_seq     = 40960\n"
        "llama_context: kv_unified    = {}\nllama_kv_cache:      CUDA0 KV buffer size =  11520.00 MiB\n"
    )
    told = ask_json("fits", TEXT, "--log", log(text.format("false")), "--format", "q4_k_m")
    assert (told["context_tokens"], told["sequences"]) == (40_960, 2)
    (cache,) = (row for row in told["components"] if row["component"] == "KV cache")
    assert abs(cache["difference"]) < 0.01 and {row["micro_batch"] for row in told["measured"]} == {2}
    whole = text.replace("81920", "40960")
    assert ask_json("fits", TEXT, "--log", log(whole.format("true")), "--format", "q4_k_m")["sequences"] == 1


@pytest.mark.full
def test_attention_in_groups_of_cards_is_read_of_sglang(ask_json, log):
    """Each group has a cache of its own: without it a token took half as much on each card."""
    args = "ServerArgs(model_path='a', tp_size=4, dp_size=2, ep_size=4, enable_dp_attention={})\n"
    grouped, plain = (
        ask_json("fits", EXPERTS, "--log", log(args.format(on) + SGLANG), "--format", "mxfp4")["components"][0][
            "ours_bytes"
        ]
        for on in (True, False)
    )
    assert grouped == 2 * plain


def test_a_piece_of_a_log_is_of_the_cards_that_were_named(ask_json, log):
    text = "INFO model_runner.py:1100] Loading model weights took 3.8 GB\n"
    told = ask_json("fits", TEXT, "--gpu", "4xrtx-4090", "--format", "bf16", "--log", log(text))
    assert told["gpu_count"] == 4 and abs(told["components"][0]["difference"]) < 0.05
