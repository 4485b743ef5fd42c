"""The cards of a machine, from scripts that print what the makers' tools print.

nvidia-smi: rows of `--format=csv,noheader,nounits` as its manual has them (MiB without a unit, `[N/A]` where a card does not say); what it says where
the driver is away is its own sentence. rocm-smi: the JSON of a Radeon RX 7900 XT in github.com/marimo-team/marimo issue 9237, and the part of a
processor beside a card in github.com/mudler/LocalAI pull request 7761.
"""

from __future__ import annotations

import json
import stat

import pytest

from pipeline.ask import machine
from tests.few import EXPERTS, LARGE, SMALL, TEXT

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)
RADEON = {
    "GPU use (%)": "0",
    "VRAM Total Memory (B)": "21458059264",
    "VRAM Total Used Memory (B)": "27856896",
    "Card Series": "Radeon RX 7900 XT",
    "Card Model": "0x744c",
    "GFX Version": "gfx1100",
}
RAPHAEL = {"VRAM Total Memory (B)": "67108864", "VRAM Total Used Memory (B)": "26079232", "Card Series": "Raphael"}


def test_the_card_of_this_machine_is_asked(tool, ask_json):
    tool("nvidia-smi", "NVIDIA GeForce RTX 3090, 24576, 24259, [N/A]")
    told = ask_json("fits", TEXT)
    assert told["card"]["gpu_id"] == "rtx-3090" and told["card"]["count"] == 1
    assert told["formats"] == ask_json("fits", TEXT, "--gpu", "rtx-3090")["formats"]
    assert told["card"]["notes"] == []


@pytest.mark.full
def test_what_other_programs_hold_is_not_free(tool, ask_json, ask):
    tool("nvidia-smi", "NVIDIA GeForce RTX 3090, 24576, 6000, [N/A]")
    told = ask_json("fits", TEXT, "--format", "Q8_0")
    assert told["verdict"] == "no" and told["formats"][0]["capacity_bytes"] == 6000 * 2**20
    assert "5.9 of its 23.7 GiB are free now" in ask("fits", TEXT)[1]
    assert ask_json("fits", TEXT, "--format", "Q8_0", "--empty")["verdict"] == "fits"


@pytest.mark.full
def test_all_like_cards_are_asked_where_one_is_too_small(tool, ask_json):
    tool("nvidia-smi", "NVIDIA GeForce RTX 3090, 24576, 24259, [N/A]\nNVIDIA GeForce RTX 3090, 24576, 20000, [N/A]")
    one = ask_json("fits", SMALL, "--format", "Q8_0")
    assert (one["card"]["count"], one["card"]["available"]) == (1, 2)
    both = ask_json("fits", LARGE, "--format", "Q8_0")
    assert both["verdict"] == "fits" and both["card"]["count"] == both["formats"][0]["gpu_count"] == 2
    assert both["formats"][0]["capacity_bytes"] == 20000 * 2**20  # of the fuller one


def test_of_unlike_cards_the_largest_is_asked_and_the_others_named(tool, ask_json):
    tool("nvidia-smi", "NVIDIA GeForce RTX 3060, 12288, 12000, [N/A]\nNVIDIA GeForce RTX 3090, 24576, 24259, [N/A]")
    told = ask_json("fits", TEXT)
    assert told["card"]["gpu_id"] == "rtx-3090" and told["card"]["available"] == 1
    assert told["card"]["notes"] == [
        "This machine has GeForce RTX 3060 12GB too: what unlike cards hold together is not worked out."
    ]


@pytest.mark.full
def test_a_card_that_nobody_described_is_its_memory(tool, ask_json):
    tool("nvidia-smi", "NVIDIA GeForce RTX 9090, 49152, 48000, [N/A]")
    told = ask_json("fits", TEXT)
    assert told["card"]["gpu_id"] is None and told["card"]["usable_bytes"] == 48000 * 2**20
    assert "is not in the almanac" in told["card"]["notes"][0] and told["verdict"] == "fits"
    assert ask_json("fits", TEXT, "--empty")["card"]["usable_bytes"] == 49152 * 2**20


@pytest.mark.full
def test_two_sizes_of_one_name_are_told_apart_by_their_memory(tool, ask_json):
    for size, gpu_id in ((16380, "rtx-4060-ti-16gb"), (8188, "rtx-4060-ti-8gb")):
        tool("nvidia-smi", f"NVIDIA GeForce RTX 4060 Ti, {size}, {size - 300}, [N/A]")
        assert ask_json("what", "--limit", 1)["card"]["gpu_id"] == gpu_id


@pytest.mark.full
def test_a_card_that_does_not_say_its_memory_is_known_by_its_name(tool, ask_json):
    tool("nvidia-smi", "NVIDIA GB10, [N/A], [N/A], [N/A]")
    assert ask_json("what", "--limit", 1)["card"]["gpu_id"] == "gb10"


@pytest.mark.full
def test_a_slice_is_no_card(tool, ask):
    tool("nvidia-smi", "NVIDIA A100-SXM4-40GB, 40960, 40338, Enabled")
    status, _, err = ask("fits", TEXT)
    assert status == 2 and "slices (MIG)" in err and "--free" in err
    tool("nvidia-smi", "NVIDIA A100-SXM4-40GB, 40960, 40338, Disabled")
    assert ask("fits", TEXT)[0] == 0


@pytest.mark.full
def test_a_driver_from_before_slices(tool, ask_json):
    tool("nvidia-smi", "Tesla V100-SXM2-32GB, 32768, 32510", unless="mig.mode.current")
    assert ask_json("fits", TEXT)["card"]["gpu_id"] == "v100-sxm2-32gb"


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (NO_DRIVER, 9, "couldn't communicate with the NVIDIA driver"),
        ("No devices were found", 0, "nvidia-smi lists no card"),
        ("", 0, "nvidia-smi lists no card"),
        ("Segmentation fault", 139, "Segmentation fault"),
        ("something else", 0, "something else"),
    ],
)
def test_a_tool_that_fails_says_why(tool, ask, text, status, said):
    tool("nvidia-smi", text, status)
    ended, out, err = ask("fits", TEXT)
    assert (
        ended == 2
        and out.startswith(f"What {TEXT} needs")
        and said in " ".join(err.split())
        and "--free 10GiB" in " ".join(err.split())
    )


def test_a_tool_that_hangs_is_not_waited_for(alone, ask, monkeypatch):
    monkeypatch.setattr(machine, "PATIENCE_SECONDS", 0.2)
    (alone / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    (alone / "nvidia-smi").chmod(0o755)
    status, _, err = ask("fits", TEXT)
    assert status == 2 and "no answer in" in err


def test_a_tool_that_may_not_run(alone, ask, monkeypatch):
    path = alone / "nvidia-smi"
    path.write_text("no program\n")
    path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    status, _, err = ask("fits", TEXT)
    assert status == 2 and "nvidia-smi: " in err


def test_radeon_cards(tool, ask_json):
    tool("rocm-smi", json.dumps({"card0": RADEON, "card1": RAPHAEL, "system": {"Driver version": "6.10"}}))
    told = ask_json("fits", TEXT, "--format", "Q8_0")
    assert told["card"]["gpu_id"] == "rx-7900-xt" and told["card"]["available"] == 1 and told["verdict"] == "fits"


def test_radeon_cards_where_the_tool_prints_no_json(tool, ask):
    tool("rocm-smi", "ERROR: ROCm is not installed")
    status, _, err = ask("fits", TEXT)
    assert status == 2 and "no JSON" in err


def test_a_mac_is_its_chip_and_its_memory(alone, ask_json, monkeypatch):
    path = alone / "sysctl"
    path.write_text('#!/bin/sh\ncase "$2" in hw.memsize) echo 68719476736;; *) echo "Apple M4 Pro";; esac\n')
    path.chmod(0o755)
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    told = ask_json("fits", TEXT)
    assert told["card"]["gpu_id"] == "m4-pro-64gb" and {"mlx-4bit"} <= {row["dtype_id"] for row in told["formats"]}


def test_the_tools_are_asked_only_where_no_card_is_named(tool, ask):
    tool("nvidia-smi", NO_DRIVER, 9)
    assert ask("fits", TEXT, "--gpu", "rtx-4090")[0] == 0


@pytest.mark.full
def test_an_amount_of_memory_is_of_several_cards_too(ask, ask_json):
    """Four rebuilt cards of 48 GB: no name has them."""
    told = ask_json("fits", LARGE, "--free", "4x47.2GiB", "--format", "bf16")
    assert told["card"]["count"] == 4 and {row["gpu_count"] for row in told["formats"]} == {4}
    assert (
        told["best"]["total_bytes"]
        < 47.2 * 2**30
        < ask_json("fits", LARGE, "--free", "47.2GiB", "--format", "bf16")["best"]["total_bytes"]
    )
    assert "on 4 × 47.2 GiB" in " ".join(ask("fits", LARGE, "--free", "4x47.2GiB", "--format", "bf16")[1].split())
    for more in (("--free", "0x10GiB"), ("--gpu", "4xrtx-4090", "--free", "4x10GiB")):
        status, _out, problem = ask("fits", LARGE, *more)
        assert status == 2 and ("0 cards" in problem or "said by one of" in " ".join(problem.split()))


def test_memory_that_can_be_raised_is_told_and_asked(ask_json, ask):
    """A Mac of 16 GB gives Metal 11.8 GiB as it comes; a person can let it give 14."""
    asked = ("fits", EXPERTS, "--gpu", "m4-16gb", "--context", 32768, "--program", "llama.cpp")
    no = ask_json(*asked)
    [raised] = [told for told in no["helps"] if told["help"] == "raised"]
    assert no["verdict"] == "no" and raised["raised_bytes"] == 14 * 2**30
    assert "iogpu.wired_limit_mb" in " ".join(ask(*asked)[1].split())
    yes = ask_json(*asked, "--free", "14GiB")
    assert (yes["verdict"], yes["card"]["usable_bytes"]) == ("fits", 14 * 2**30)
    assert yes["best"]["total_bytes"] == raised["total_bytes"]
    # not more than that, and not of a card that gives all it has
    assert ask_json(*asked, "--free", "15GiB")["card"]["usable_bytes"] < 12 * 2**30
    assert ask_json("fits", EXPERTS, "--gpu", "rtx-3090", "--free", "30GiB")["card"]["usable_bytes"] < 24 * 2**30
