"""Reading a command line: what is wrong there is told with what is near it, in JSON too where that was asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_WRONG = 2  # argparse's own status
# what other programs call an option of ours
ELSEWHERE = {
    "--format": ("--quant", "--quantization", "--dtype", "--precision", "--bits", "-q"),
    "--context": ("--ctx", "--ctx-size", "--num-ctx", "--n-ctx", "--max-model-len", "--context-length", "--seq-len", "--max-seq-length", "-c", "--tokens"),
    "--kv": ("--kv-cache-dtype", "--cache-type-k", "--cache-type-v", "-ctk", "-ctv", "--kv-cache"),
    "--users": ("--parallel", "--concurrency", "--max-num-seqs", "--batch-size", "-b"),
    "--program": ("--engine", "--backend", "--framework"),
    "--gpu": ("--card", "--device", "--vram", "--tp", "--tp-size", "--tensor-parallel-size", "--gpus", "-g"),
    "--phase": ("--train", "--task", "--method", "--mode"),
    "--rank": ("--lora-rank", "--lora-r", "-r"),
    "--lora-targets": ("--target-modules", "--lora-target", "--lora-target-modules"),
    "--lora-dropout": ("--dropout",),
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """An argument parser; those of its commands are of this class too."""

    given: Sequence[str] = ()
    meant: str = ""  # the command that is meant where none is named

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        given = self._as_meant(list(sys.argv[1:] if args is None else args))
        for parser in (self, *self.commands.values()):
            parser.given = given
        found, rest = self.parse_known_args(given, namespace)
        if rest:
            command = self.commands.get(getattr(found, "command", None) or "", self)
            command.error(command.too_much(rest))
        return found

    def _as_meant(self, given: list[str]) -> list[str]:
        """What is typed by people who know other programs: nothing, `help`, or the question alone."""
        if not self.commands:
            return given
        if not given:
            self.print_help(sys.stderr)
            self.exit(_WRONG)
        first, rest = given[0], given[1:]
        if first == "help":
            return [*rest[:1], "--help"]
        is_question = not first.startswith("-") and first not in self.commands and not _near(first, self.commands)
        return [self.meant, *given] if self.meant and is_question else given

    @property
    def commands(self) -> dict[str, Parser]:
        """The parsers of its commands, by name."""
        choices = (action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next(choices, {})

    def too_much(self, words: Sequence[str]) -> str:
        """A sentence for words that nothing takes."""
        options = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        strange = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if strange is None:
            return f"{_shown(words[0])} is one word too many (a name with spaces stands in quotation marks)"
        return f"{_shown(strange)} is no option of {self.prog}. {_other_word(strange, options) or _near(strange, options) or 'It has: ' + ', '.join(options)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            near = _near(str(value), known)
            raise argparse.ArgumentError(
                action, f"{_shown(str(value))} is none of {', '.join(known)}.{' ' + near if near else ''}"
            )

    def error(self, message: str) -> NoReturn:
        if "--json" in self.given:
            print(json.dumps({"problem": message, "status": _WRONG}, ensure_ascii=False))
        # (a page of usage before it would hide what is wrong)
        self.exit(_WRONG, f"{self.prog}: {message}\nAll that can be asked: {self.prog} --help\n")


def _other_word(word: str, known: Iterable[str]) -> str:
    here = next((ours for ours in known if word.lower() in ELSEWHERE.get(ours, ())), None)
    cards = " (of several cards: --gpu 2xrtx-3090)" if here == "--gpu" else ""
    return f"Here it is {here}{cards}" if here else ""


def _near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # which a right command line does without

    near = get_close_matches(word.lower(), list(known), n=3)
    return f"Near it: {', '.join(near)}" if near else ""


def _shown(word: str) -> str:
    return repr(word[:40])
