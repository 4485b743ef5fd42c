"""Every command of the documents is one that the command takes, and answers."""

from __future__ import annotations

import re
import shlex

import pytest

from pipeline import ROOT
from pipeline.ask import arguments, command
from tests.ask.test_receipt import VLLM_08
from tests.few import EXPERTS

LINES = [
    line.partition("  #")[0].strip()
    for name in ("README.md", "site/docs/terminal.md")
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S)
    for line in block.splitlines()
    if line.startswith("vram-almanac ")
]

NOT_HELD = (
    "openai/gpt-oss-120b",
    "Qwen/Qwen3-30B-A3B",
)  # mixtures that the small almanac does not have: another is asked for


@pytest.mark.some(2)
@pytest.mark.parametrize("line", dict.fromkeys(LINES))
def test_a_command_of_the_documents_is_answered(tool, ask, line, tmp_path, monkeypatch):
    (tmp_path / "vllm.log").write_text(VLLM_08, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    tool("nvidia-smi", "NVIDIA GeForce RTX 3090, 24576, 24259, [N/A]")
    for model in NOT_HELD:
        line = line.replace(model, EXPERTS)
    status, out, err = ask(*shlex.split(line.partition(" > ")[0])[1:])
    assert status in (0, 1) and out and not err


def test_every_status_and_every_question_is_documented():
    text = (ROOT / "site" / "docs" / "terminal.md").read_text(encoding="utf-8")
    assert {int(found) for found in re.findall(r"^\| (\d+) \|", text, re.M)} == {0, 1, 2, 3, 4, command.MISTAKE}
    commands = next(a.choices for a in arguments.parser()._actions if a.dest == "command")
    assert all(f"vram-almanac {name}" in text for name in commands)
