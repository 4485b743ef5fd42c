"""Completion: each shell asks this command itself what may come next, so that options, cards and models are never a list that grows old."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .values import CHECKPOINTINGS

_SCRIPTS = {
    "bash": """\
# vram-almanac completion bash > ~/.local/share/bash-completion/completions/vram-almanac
_vram_almanac() {
    local IFS=$'\\n'
    COMPREPLY=($(vram-almanac complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _vram_almanac vram-almanac""",
    "zsh": """\
#compdef vram-almanac
# vram-almanac completion zsh > "${fpath[1]}/_vram-almanac"
_vram_almanac() {
    local -a found
    found=("${(@f)$(vram-almanac complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
if [[ "$funcstack[1]" = _vram-almanac ]]; then _vram_almanac "$@"; else compdef _vram_almanac vram-almanac; fi""",
    "fish": """\
# vram-almanac completion fish > ~/.config/fish/completions/vram-almanac.fish
complete -c vram-almanac -a '(vram-almanac complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'""",
}
_MOST = 200
_TABLES = {
    "--gpu": "SELECT gpu_id FROM gpu WHERE starts_with(gpu_id, lower($text)) ORDER BY gpu_id",
    "--format": "SELECT dtype_id FROM dtype WHERE starts_with(dtype_id, lower($text)) ORDER BY dtype_id",
    "--kv": "SELECT kv_dtype_id FROM kv_dtype WHERE starts_with(kv_dtype_id, lower($text)) ORDER BY kv_dtype_id",
    "--program": "SELECT DISTINCT program_id FROM program WHERE starts_with(program_id, lower($text)) ORDER BY program_id",
    "--optimizer": "SELECT optimizer_id FROM optimizer WHERE starts_with(optimizer_id, lower($text)) ORDER BY optimizer_id",
    "--objective": "SELECT DISTINCT objective_id FROM objective WHERE starts_with(objective_id, lower($text)) ORDER BY objective_id",
    "--generator": "SELECT DISTINCT generator_id FROM generator WHERE starts_with(generator_id, lower($text)) ORDER BY generator_id",
    "model": "SELECT model_id FROM model WHERE starts_with(lower(model_id), lower($text)) AND anatomy_grade <> 'unknown' "
    "ORDER BY downloads_30d DESC NULLS LAST, model_id",
}


def script(shell: str) -> str:
    return _SCRIPTS[shell]


def complete(words: Sequence[str]) -> int:
    """Prints what the last of the words may become, a line each; nothing where that is a file, or where nobody knows."""
    for line in candidates(words or [""]):
        print(line)
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    from .arguments import parser

    *before, text = words
    commands = parser().commands
    if not before:
        return [name for name in commands if name.startswith(text)]
    command = commands.get(before[0])
    if command is None:
        return []
    options = {flag: action for action in command._actions for flag in action.option_strings}
    asked = options.get(before[-1])
    if asked is not None and asked.nargs != 0:
        return _values(before[-1], asked, text)
    if text.startswith("-"):
        return [flag for flag in options if flag.startswith(text) and flag.startswith("--")]
    place = _placed(before[1:], options)
    waiting = [action for action in command._actions if not action.option_strings]
    return _values("model", waiting[place], text) if place < len(waiting) else []


def _placed(words: Sequence[str], options: dict[str, argparse.Action]) -> int:
    """How many of the words are no options and no values of one."""
    count, is_value = 0, False
    for word in words:
        action = options.get(word)
        if action is not None:
            is_value = action.nargs != 0
        elif is_value:
            is_value = False
        elif not word.startswith("-"):
            count += 1
    return count


def _values(name: str, action: argparse.Action, text: str) -> list[str]:
    if action.choices:
        return [str(choice) for choice in action.choices if str(choice).startswith(text)]
    if action.dest == "checkpointing":
        return [word for word in CHECKPOINTINGS if word.startswith(text)]
    if action.dest == "wish":
        from pipeline.book.wishes import wishes

        return [wish.name for wish in wishes() if wish.name.startswith(text)]
    table = _TABLES.get(name if action.dest != "optimizer" else "--optimizer")
    return _of_almanac(table, text) if table else []


def _of_almanac(query: str, text: str) -> list[str]:
    """Nothing where there is no almanac to ask: a Tab is no place for a reason."""
    from .almanac import opened
    from .problems import Problem

    try:
        with opened(None) as almanac:
            rows = almanac.rows(f"{query} LIMIT {_MOST}", {"text": text})
    except (Problem, OSError):
        return []
    return [next(iter(row.values())) for row in rows]
