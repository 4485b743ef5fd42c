"""How several cards share a training, in the words of those who start one: `fits` and `plan` with --sharding, --offload and --program."""

import pytest

from pipeline.ask import shared
from pipeline.ask.problems import Wrong
from tests.few import EXPERTS, LARGE, SMALL, TEXT

FULL = ("--phase", "full-finetune", "--context", 2048)


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("zero2", ("zero2", True, None)),
        ("ZeRO-3", ("zero3", True, None)),
        ("deepspeed zero1", ("zero1", True, None)),
        ("zero2_offload", ("zero2", True, "optimizer")),
        ("zero3-offload", ("zero3", True, "all")),
        ("fsdp", ("zero3", False, None)),
        ("FSDP2", ("zero3", False, None)),
        ("ddp", ("ddp", False, None)),
    ],
)
def test_ways_are_said_as_trainers_are_told_them(said, way):
    assert shared.way_of(said) == shared.Way(*way)


@pytest.mark.parametrize("said", ["zero", "zero4", "zero2offloadx", "hsdp", "zero3 ", "pp"])
def test_other_words_are_told_which_there_are(said):
    if said.strip() == "zero3":
        assert shared.way_of(said).sharding == "zero3"
        return
    with pytest.raises(Wrong, match="it is one of ddp, fsdp2, zero1"):
        shared.way_of(said)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("--sharding", "zero3"), "engine_id := 'deepspeed', sharding := 'zero3'"),
        (("--sharding", "zero2_offload"), "engine_id := 'deepspeed', sharding := 'zero2', offload := 'optimizer'"),
        (("--sharding", "zero3", "--offload", "all"), "engine_id := 'deepspeed', sharding := 'zero3', offload := 'all'"),
    ],
)  # fmt: skip
def test_one_card_with_deepspeed_is_counted_as_deepspeed(ask_json, macro, options, asked):
    """ms-swift --deepspeed zero3 on one card: what it holds is not what it holds without."""
    said = ("fits", TEXT, "--gpu", "h100-sxm", *FULL, "--program", "ms-swift")
    told, plain = ask_json(*said, *options), ask_json(*said)
    (row,) = told["formats"]
    (one,) = macro(
        f"FROM fits_on('h100-sxm', $m, phase_id := 'full-finetune', context_tokens := 2048, program := 'ms-swift', {asked})",
        m=TEXT,
    )
    (all_of_it,) = macro(
        f"FROM footprint_of($m, phase_id := 'full-finetune', context_tokens := 2048, program := 'ms-swift', {asked})",
        m=TEXT,
    )
    assert (row["total_bytes"], row["verdict"], row["engine_id"]) == (one["total_bytes"], one["verdict"], "deepspeed")
    assert row.get("host_bytes", 0) == all_of_it["host_bytes"]
    assert told["use"]["sharding"] == options[1][:5] and told["use"]["program"] == "ms-swift"
    if "offload" in asked:
        assert row["total_bytes"] < plain["formats"][0]["total_bytes"] and row["host_bytes"] > 0
    else:
        # 16 bytes a parameter where the program alone holds 8
        assert row["total_bytes"] > 1.8 * plain["formats"][0]["total_bytes"]


@pytest.mark.full
def test_several_cards_are_told_how_they_were_counted(ask, ask_json):
    said = ("fits", TEXT, "--gpu", "8xh100-sxm", *FULL)
    ways = {way: ask_json(*said, "--sharding", way)["formats"][0] for way in ("zero1", "zero2", "zero3", "ddp")}
    totals = [ways[way]["total_bytes"] for way in ("zero3", "zero2", "zero1", "ddp")]
    assert totals == sorted(totals) and len(set(totals)) == 4
    assert [row["engine_id"] for row in ways.values()] == ["deepspeed"] * 3 + ["transformers"]
    _, out, _ = ask(*said, "--sharding", "zero2")
    assert "Counted with gradients and optimizer in parts, one on each card" in " ".join(out.split())
    _, out, _ = ask(*said, "--sharding", "zero3_offload")
    words = " ".join(out.split())
    assert "(DeepSpeed ZeRO-3)" in words and "wait in the computer's memory" in words and "for each card" in words


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (("--gpu", "h100-sxm", "--sharding", "zero2"), "--sharding is of a training"),
        (("--gpu", "h100-sxm", *FULL, "--offload", "all"), "beside --sharding"),
        (("--gpu", "h100-sxm", *FULL, "--sharding", "fsdp2"), "--sharding fsdp2 is of several cards"),
        (("--gpu", "h100-sxm", *FULL, "--sharding", "ddp"), "--sharding ddp is of several cards"),
        (("--gpu", "2xh100-sxm", *FULL, "--sharding", "zero2", "--offload", "all"), "zero2 keeps all weights on every card"),
        (("--gpu", "2xh100-sxm", *FULL, "--sharding", "fsdp2", "--offload", "optimizer"), "FSDP2 moves weights, gradients and optimizer together"),
        (("--gpu", "2xh100-sxm", *FULL, "--sharding", "zero2_offload", "--offload", "none"), "says --offload optimizer"),
        (("--gpu", "h100-sxm", "--objective", "dpo", "--sharding", "fsdp2"), "--sharding fsdp2 is of several cards"),
        (("--gpu", "h100-sxm", "--checkpointing", "none"), "--checkpointing is of a training"),
        (("--gpu", "h100-sxm", "--optimizer", "adamw"), "--optimizer is of a training"),
        (("--gpu", "h100-sxm", *FULL, "--optimizer", "adamwx"), "no optimizer of this almanac: adafactor, adamw,"),
        (("--gpu", "h100-sxm", "--share", "0.8"), "--share is of vLLM (its --gpu-memory-utilization): --program vllm"),
        (("--gpu", "h100-sxm", "--max-num-batched-tokens", "2048"), "--max-num-batched-tokens is of vLLM: --program vllm"),
        (("--gpu", "h100-sxm", *FULL, "--program", "ms-swift", "--max-num-seqs", 8), "--max-num-seqs is of vLLM"),
        (("--gpu", "h100-sxm", "--program", "vllm", "--max-num-seqs", 4, "--users", 8), "--users 8 are more than"),
        (("--gpu", "4xh100-sxm", *FULL, "--tensor-parallel", 2), "how cards share a training is --sharding"),
        (("--gpu", "4xh100-sxm", "--program", "ollama", "--pipeline-parallel", 2), "--pipeline-parallel is of vLLM and SGLang"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--tensor-parallel", 2), "--pipeline-parallel 2 too, or --gpu 2x"),
        (("--free", "24GiB", "--program", "vllm", "--tensor-parallel", 2), "cards that are divided are named"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--tensor-parallel", 3), "--tensor-parallel 3 does not divide 4 cards"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--tensor-parallel", 2, "--pipeline-parallel", 3), "are 6 cards"),
        (("--gpu", "4xh100-sxm", "--objective", "dpo", "--tensor-parallel", 2), "without --draft, --objective and --log"),
        (("--gpu", "4xh100-sxm", *FULL, "--data-parallel", 2), "--data-parallel is of a server; how cards share a training is --sharding"),
        (("--gpu", "4xh100-sxm", "--program", "ollama", "--data-parallel", 2), "--data-parallel is of vLLM and SGLang"),
        (("--gpu", "4xh100-sxm", "--expert-parallel"), "--expert-parallel is of vLLM and SGLang"),
        (("--gpu", "h100-sxm", "--program", "vllm", "--expert-parallel"), "--expert-parallel is of several cards"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--data-parallel", 3), "--data-parallel 3 does not divide 4 cards"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--data-parallel", 2, "--tensor-parallel", 3), "are 6 cards"),
        (("--gpu", "4xh100-sxm", "--program", "vllm", "--data-parallel", 2, "--pipeline-parallel", 2), "counted without stages of layers"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_says_why(ask, said, reason):
    status, _out, told = ask("fits", SMALL, *said)
    assert status == 2 and reason in " ".join(told.split())


@pytest.mark.full
def test_a_program_of_which_nobody_told_it_is_not_known(ask):
    status, out, _ = ask("fits", TEXT, "--gpu", "2xh100-sxm", "--phase", "lora", "--program", "unsloth", "--sharding", "zero2")  # fmt: skip
    words = " ".join(out.split())
    assert status == 3 and "no source in the book says how Unsloth trains with DeepSpeed" in words
    assert "ms-swift" in words and "transformers" in words


@pytest.mark.full
def test_plans_are_of_that_sharding_and_that_program(ask, ask_json, macro):
    said = ("plan", SMALL, "--gpu", "rtx-3060-12gb", "--phase", "full-finetune", "--program", "ms-swift", "--context", 2048)  # fmt: skip
    plans = ask_json(*said, "--sharding", "zero2", "--limit", 100)["cards"][0]["plans"]
    (first, *_) = macro(
        "FROM plans_for('rtx-3060-12gb', $m, phase_id := 'full-finetune', context_tokens := 2048, sequences := NULL, program := 'ms-swift', "
        "sharding := 'zero2', engine_id := 'deepspeed') ORDER BY plan_rank",
        m=SMALL,
    )
    assert plans[0]["total_bytes"] == first["total_bytes"]
    assert {(p["engine_id"], p["sharding"]) for p in plans} == {("deepspeed", "zero2")}
    assert {p["checkpointing"] for p in plans} == {"full"}  # the program's own
    _, out, _ = ask(*said, "--sharding", "zero2")
    assert "Holds for ms-swift" in out


@pytest.mark.full
def test_plans_of_inference_are_of_the_program_too(ask_json):
    plans = ask_json("plan", TEXT, "--gpu", "rtx-4090", "--program", "vllm")["cards"][0]["plans"]
    assert plans and {p["engine_id"] for p in plans} == {"vllm"}


def test_a_training_with_its_time_takes_the_quickest_way_of_all(ask):
    status, _out, told = ask("plan", SMALL, "--gpu", "h100-sxm", "--phase", "lora", "--train-on", "1GB", "--sharding", "zero2")  # fmt: skip
    assert status == 2 and "--train-on takes the quickest way of all" in " ".join(told.split())


def test_cards_of_a_server_are_divided_as_it_is_told(ask, ask_json, macro):
    """32 heads do not divide by 6: vLLM runs two cards in each of three stages, which --tensor-parallel and --pipeline-parallel say too."""
    said = ("fits", TEXT, "--program", "vllm", "--format", "bf16", "--context", 8192)
    ways = ("--tensor-parallel-size", 2, "--pipeline-parallel-size", 3)
    alone, told, counted = (
        ask_json(*said, *more)
        for more in (("--gpu", "6xrtx-3090"), ("--gpu", "6xrtx-3090", *ways), ("--gpu", "rtx-3090", *ways))
    )
    (row,) = macro(
        "FROM footprint_of($m, dtype_id := 'bf16', engine_id := 'vllm', program := 'vllm', context_tokens := 8192, gpu_count := 6, "
        "tensor_parallel := 2, pipeline_parallel := 3)",
        m=TEXT,
    )
    for answer in (alone, told, counted):
        assert answer["verdict"] == "fits" and answer["best"]["total_bytes"] == row["total_bytes"]
        assert "--tensor-parallel-size 2 --pipeline-parallel-size 3" in answer["settings"][0]["setting"]
    assert "3 stages of 2 cards each" in alone["taken"] and not told.get("taken")
    _, out, _ = ask(*said, "--gpu", "16xrtx-3090")
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in " ".join(out.split()), "as 16 cards are counted"
    assert "--tensor-parallel-size 16" not in out and "--tp 16" not in out


@pytest.mark.full
def test_data_parallel_ranks_serve_their_own_requests(ask, ask_json, macro):
    """Two ranks of two cards: attention is whole in each, and the experts lie over all four."""
    said = ("fits", EXPERTS, "--format", "mxfp4", "--context", 8192, "--users", 4)
    more = ("--data-parallel-size", 2, "--enable-expert-parallel")
    for engine, flags in {
        "vllm": "--tensor-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel",
        "sglang": "--tp-size 4 --dp-size 2 --enable-dp-attention --ep-size 4",
    }.items():
        told = ask_json(*said, "--program", engine, "--gpu", "4xh100-sxm", *more)
        (row,) = macro(
            "FROM footprint_of($m, dtype_id := 'mxfp4', program := $e, context_tokens := 8192, sequences := 4, gpu_count := 4, "
            "data_parallel := 2, expert_parallel := 4)",
            m=EXPERTS,
            e=engine,
        )
        assert told["verdict"] == "fits" and told["best"]["total_bytes"] == row["total_bytes"]
        assert told["settings"][0]["setting"].startswith(
            f"{ {'vllm': '--max-model-len', 'sglang': '--context-length'}[engine] } 8192 {flags}"
        )
        plain = ask_json(*said, "--program", engine, "--gpu", "4xh100-sxm")
        assert plain["best"]["total_bytes"] != told["best"]["total_bytes"] and not told["commands"]
    _, out, _ = ask(*said, "--program", "vllm", "--gpu", "h100-sxm", "--tensor-parallel", 2, *more)
    assert "4 × H100" in out and "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0" in " ".join(out.split())
    alone = ask_json(*said, "--program", "vllm", "--gpu", "4xh100-sxm", "--expert-parallel")
    assert "--tensor-parallel-size 4 --enable-expert-parallel" in alone["settings"][0]["setting"]
    asked = ("plan", *said[1:], "--program", "vllm", "--gpu", "rtx-4090", *more)
    (plan,) = ask_json(*asked)["cards"][0]["plans"]
    assert (plan["tensor_parallel"], plan["data_parallel"]) == (plan["gpu_count"] // 2, 2)
    _, out, _ = ask(*asked)
    assert "--data-parallel-size 2 --enable-expert-parallel" in " ".join(out.split())
    status, _, why = ask("fits", TEXT, "--program", "sglang", "--gpu", "4xh100-sxm", "--data-parallel", 2)
    assert status == 3, why


def test_a_share_of_the_card_is_what_a_server_may_take(ask_json, macro):
    said = ("fits", TEXT, "--gpu", "rtx-4090", "--program", "vllm", "--format", "bf16", "--context", 2048)
    whole, part = ask_json(*said), ask_json(*said, "--gpu-memory-utilization", 0.8, "--max-num-seqs", 32)
    (card,) = macro("FROM gpu WHERE gpu_id = 'rtx-4090'")
    assert part["best"]["capacity_bytes"] == int(0.8 * card["whole_bytes"])
    assert part["best"]["max_context_tokens"] < whole["best"]["max_context_tokens"]
    setting = part["settings"][0]["setting"]
    assert "--gpu-memory-utilization 0.8 " in setting and setting.endswith("--max-num-seqs 32") and not part["commands"]


def test_what_a_step_reads_is_counted_and_told(ask, ask_json, macro):
    """On a card below 70 GiB vLLM reads 2,048 by itself, and figures count 8,192 where nobody says."""
    said = ("fits", TEXT, "--gpu", "rtx-4090", "--program", "vllm", "--format", "bf16", "--context", 8192)
    usual, told = ask_json(*said), ask_json(*said, "--max-num-batched-tokens", 2048)
    (row,) = macro(
        "FROM footprint_of($m, program := 'vllm', dtype_id := 'bf16', context_tokens := 8192, batched_tokens := 2048)",
        m=TEXT,
    )
    assert told["best"]["total_bytes"] == row["total_bytes"] < usual["best"]["total_bytes"]
    assert "--max-num-batched-tokens 2048" in told["best"]["engine_setting"]
    assert told["counted"] == {"sequences": 256, "batched_tokens": 2048}
    _, out, _ = ask(*said, "--max-num-batched-tokens", 2048)
    assert "2,048 tokens in a step, as it was said" in " ".join(out.split())
    assert out.count("--max-num-batched-tokens 2048") == 1, "in the command, or beside it"
    status, _, why = ask(*said, "--max-num-batched-tokens", 128, "--max-num-seqs", 200)
    assert status == 2 and "fewer than --max-num-seqs 200" in " ".join(why.split())


@pytest.mark.full
def test_how_many_requests_it_runs_is_counted_and_told(ask_json, macro):
    """Logits of 256 requests and graphs of all lengths are counted where nobody says."""
    said = ("fits", TEXT, "--gpu", "rtx-4090", "--program", "vllm", "--format", "bf16", "--context", 8192)
    usual, few = ask_json(*said), ask_json(*said, "--max-num-seqs", 8)
    (row,) = macro(
        "FROM footprint_of($m, program := 'vllm', dtype_id := 'bf16', context_tokens := 8192, max_num_seqs := 8)",
        m=TEXT,
    )
    assert few["best"]["total_bytes"] == row["total_bytes"] < usual["best"]["total_bytes"]
    assert "--max-num-seqs 8" in few["best"]["engine_setting"] and few["counted"]["sequences"] == 8


@pytest.mark.full
def test_fewer_requests_are_offered_where_those_of_its_default_do_not_fit(ask, ask_json, macro):
    """A share that holds it with the logits of 16 requests, and not of 256."""
    said = ("fits", TEXT, "--gpu", "rtx-4090", "--program", "vllm", "--format", "bf16", "--context", 8192)
    told = [ask_json(*said, *more)["best"] for more in ((), ("--max-num-seqs", 16))]
    needed = [row["total_bytes"] * (1 + row["error_band"]) for row in told]
    (card,) = macro("FROM gpu WHERE gpu_id = 'rtx-4090'")
    said, share = (*said, "--share"), round(sum(needed) / 2 / card["whole_bytes"], 3)
    (told,) = (one for one in ask_json(*said, share)["helps"] if one["help"] == "requests")
    assert told["max_num_seqs"] == 16 and "--max-num-seqs 16 --max-num-batched-tokens 2048" in told["engine_setting"]
    fewer = ("--max-num-seqs", 16, "--max-num-batched-tokens", 2048)
    assert told["verdict"] == ask_json(*said, share, *fewer)["verdict"] == "fits"
    _, out, _ = ask(*said, share)
    assert "Fewer requests at once (--max-num-seqs 16 --max-num-batched-tokens 2048): bf16 (vLLM) fits" in " ".join(
        out.split()
    )


def test_a_share_is_of_the_whole_card_and_no_more_than_is_free(ask, ask_json, macro):
    """It was of what a process gets: on GB10 0.7 of 101.2 GiB, where vLLM takes 0.7 of 121.7."""
    said = ("fits", TEXT, "--gpu", "gb10", "--program", "vllm", "--format", "bf16", "--context", 2048, "--share")
    (card,) = macro("FROM gpu WHERE gpu_id = 'gb10'")
    part = ask_json(*said, 0.7)
    assert part["best"]["capacity_bytes"] == int(0.7 * card["whole_bytes"]) > 0.7 * card["capacity_bytes"]
    assert "--gpu-memory-utilization 0.7 " in part["settings"][0]["setting"] + " "
    status, _, why = ask(*said, 0.95)
    assert (
        status == 2
        and "vLLM does not start where so much is not free" in why
        and "0.82 at most" in " ".join(why.split())
    )


def test_what_is_chosen_of_a_training_can_be_said(ask, ask_json, macro):
    said = ("fits", SMALL, "--gpu", "h100-sxm", *FULL)
    ours = ask_json(*said, "--gradient-checkpointing", "false", "--optimizer", "adamw_bnb_8bit")["formats"][0]
    (row,) = macro(
        "FROM footprint_of($m, phase_id := 'full-finetune', dtype_id := $d, checkpointing := 'none', optimizer_id := 'adamw-8bit')",
        m=SMALL,
        d=ours["dtype_id"],
    )
    assert ours["total_bytes"] == row["total_bytes"] and ours["checkpointing"] == "none"
    _, out, _ = ask(*said, "--checkpointing", "none")
    assert "what of these nobody said is our choice" in " ".join(out.split())
    plans = ask_json("plan", SMALL, "--gpu", "h100-sxm", *FULL, "--checkpointing", "none")["cards"][0]["plans"]
    assert {plan["checkpointing"] for plan in plans} == {"none"}


@pytest.mark.full
def test_preferences_are_shared_as_they_are_told(ask_json, macro):
    said = ("fits", TEXT, "--gpu", "4xh100-sxm", "--objective", "dpo", "--phase", "full-finetune")
    told = ask_json(*said, "--sharding", "zero3")["preferred"]
    (row,) = macro(
        "FROM preference_of('dpo', $m, phase_id := 'full-finetune', gpu_count := 4, sharding := 'zero3', engine_id := 'deepspeed')",
        m=TEXT,
    )
    assert told["total_bytes"] == row["total_bytes"] < ask_json(*said)["preferred"]["total_bytes"]


@pytest.mark.full
def test_a_plan_divides_layers_as_it_is_told(ask_json, ask):
    asked = ("plan", LARGE, "--gpu", "rtx-3090", "--program", "vllm", "--format", "bf16", "--tensor-parallel", 2)
    (plan,) = ask_json(*asked)["cards"][0]["plans"]
    assert (plan["gpu_count"], plan["tensor_parallel"], plan["pipeline_parallel"]) == (4, 2, 2)
    asked = (
        "fits",
        LARGE,
        "--gpu",
        "4xrtx-3090",
        "--program",
        "vllm",
        "--format",
        "bf16",
        "--tensor-parallel",
        2,
        "--pipeline-parallel",
        2,
    )
    assert ask_json(*asked)["best"]["total_bytes"] == plan["total_bytes"]
    _, out, _ = ask("plan", LARGE, "--gpu", "h100-sxm", "--phase", "full-finetune", "--tensor-parallel", 8)
    assert "tensor 8" in out and "zero3" not in out
    status, _, said = ask("plan", LARGE, "--gpu", "h100-sxm", "--phase", "full-finetune", "--tensor-parallel", 3)
    assert status == 2 and "--tensor-parallel 1, 2, 4, 8" in said


def test_qlora_with_deepspeed_is_answered(ask_json):
    """The card runs what bitsandbytes packs whoever shares it."""
    told = ask_json("fits", LARGE, "--gpu", "2xh100-sxm", "--phase", "qlora", "--sharding", "zero3")
    assert told["verdict"] == "fits" and told["best"]["dtype_id"] == "nf4"


@pytest.mark.full
def test_what_a_server_is_told_is_said_with_the_numbers_of_that_question(ask_json):
    """All ways are one question: each is told with what is its own."""
    found = set()
    for free in ("18.2GiB", "19.6GiB"):
        asked = ("fits", TEXT, "--free", free, "--format", "bf16", "--program", "vllm", "--context", 4096)
        for one in ask_json(*asked)["helps"]:
            if one["help"] in ("requests", "eager"):
                flags = ["--enforce-eager"] * (one["help"] == "eager")
                flags += ["--max-num-seqs", one["max_num_seqs"]] if one.get("max_num_seqs") else []
                flags += ["--max-num-batched-tokens", one["batched_tokens"]] if one.get("batched_tokens") else []
                own = ask_json(*asked, *flags)
                assert (own["verdict"], own["best"]["total_bytes"]) == (one["verdict"], one["total_bytes"])
                found.add((one["help"], own["verdict"]))
    assert found == {("requests", "tight"), ("requests", "fits"), ("eager", "fits")}
