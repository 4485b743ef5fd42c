"""Tab in real shells; each test needs its shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from pipeline import ROOT
from pipeline.ask import completion

# a command of that name, as an installation would put it there
_PROGRAM = f"""#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -m pipeline.ask "$@"
"""
_BASH = """
source <(vram-almanac completion bash)
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_vram_almanac
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
_ZSH = """
compdef() {{ : }}
compadd() {{ shift; print -l -- "$@" }}
_files() {{ print -l files }}
source <(vram-almanac completion zsh)
words=({words}); CURRENT=$#words
_vram_almanac
"""
_FISH = """
vram-almanac completion fish | source
complete -C "{line}"
"""


@pytest.fixture
def tab(alone):
    program = alone / "vram-almanac"
    program.write_text(_PROGRAM)
    program.chmod(0o755)

    def press(shell: str, line: str) -> list[str]:
        if shutil.which(shell) is None:
            pytest.skip(f"no {shell} on this machine")
        text = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell].format(
            words=line.replace("§", "''"), line=line.replace("§", "")
        )
        command = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}[
            shell
        ]
        environment = {**os.environ, "HOME": str(alone)}
        done = subprocess.run([*command, text], capture_output=True, text=True, env=environment, timeout=60)
        assert done.returncode == 0 or shell == "fish", done.stderr
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    return press


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_cards_and_models(tab, shell):
    assert tab(shell, "vram-almanac fi") == ["fits"]
    assert tab(shell, "vram-almanac fits Qwen/Qwen3-0") == ["Qwen/Qwen3-0.6B"]
    assert {"rtx-4090", "rtx-4090-d", "rtx-4090-laptop"} == set(
        tab(shell, "vram-almanac fits Qwen/Qwen3-8B --gpu rtx-4090")
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], ["fits", "what", "plan", "completion"]),
        (["fits", "--ph"], ["--phase"]),
        (["fits", "--phase", "q"], ["qlora"]),
        (["fits", "--format", "gguf-q4_k"], ["gguf-q4_k_m", "gguf-q4_k_s"]),
        (["fits", "--program", "ol"], ["ollama"]),
        (["plan", "--optim", "adamw-8"], ["adamw-8bit", "adamw-8bit-in-backward"]),
        (["fits", "--checkpointing", "s"], ["selective"]),
        (["fits", "--tensor"], ["--tensor-parallel", "--tensor-parallel-size"]),
        (["what", "--for", "co"], ["code"]),
        (["fits", "--context", ""], []),
        (["fits", "Qwen/Qwen3-8B", ""], []),
        (["fits", "--gpu", "rtx-4090", "openai/gpt-oss-2"], ["openai/gpt-oss-20b"]),
        (["completion", "f"], ["fish"]),
        (["nonsense", ""], []),
        ([], ["fits", "what", "plan", "completion"]),
    ],
)
def test_what_may_come_next(alone, words, found):
    assert completion.candidates(words or [""]) == found


def test_a_tab_without_an_almanac_says_nothing(alone, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("VRAM_ALMANAC", str(tmp_path / "none"))
    assert completion.complete(["fits", "--gpu", "rtx"]) == 0
    assert capsys.readouterr() == ("", "")
