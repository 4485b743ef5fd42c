"""Which words of a question name a model. What a name speaks of is asked of `repository_of`, once for each: a question of many names at once, whose plan
is correlated, takes five times as long as as many of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.base.bounds import in_words, visible

from .almanac import Almanac
from .near import is_tuned
from .problems import Wrong
from .said import Said
from .sentence_words import BITS, FINE_TUNING, is_between, is_counted

OF_NAME = "bits"  # no option: what is said of a name
_COMMAND = re.compile(
    r"(?i)(ollama (run|pull|show)|(vllm|sglang) serve|llama-(server|cli) -(hf|m)|hf download|lms (get|load))"
)
_SIZE = re.compile(r"(?i)\d+(?:\.\d+)?[bm]")
_NUMBER = re.compile(r"(?i)v?\d+(\.\d+)*[bm]?")
_SAME_SIZE = 0.06  # of the parameters, up to which a model is called by that size
_LONGEST = 10  # words of a name


def place_of(almanac: Almanac, words: Sequence[str]) -> tuple[int, int]:
    """Where the longest run of words begins that names a model, and how many of them are needed for it; no words where none does."""
    runs = [
        (count, -start, " ".join(words[start : start + count]))
        for start in range(len(words))
        for count in range(1, min(len(words) - start, _LONGEST) + 1)
        if not is_between(words[start])
        and not FINE_TUNING.fullmatch(words[start])  # (sft llama 3.1 8b; Llama-3.1-Tulu-3-8B-SFT)
        and not any(  # (gemma3 12 users, llama 3 8b 100 concurrent users)
            is_counted(" ".join(words[start + count - 1 : start + count + more])) for more in (1, 2)
        )
        and not _is_behind(words[start : start + count])
        and all(re.search(r"[0-9A-Za-z]", word) for word in words[start : start + count])
    ]
    ids = _ids_among(almanac, [name for _, _, name in runs])
    for count, start, name in sorted(runs, reverse=True):
        if name in ids or almanac.repository(name)["model_id"]:
            return -start, _needed(almanac, words[-start : -start + count])
    return 0, 0


def _is_behind(words: Sequence[str]) -> bool:
    """Whether an id of the Hub stands behind other words, which are none of it (qlora Qwen/Qwen3-8B): but for the command that was pasted."""
    at = next((at for at, word in enumerate(words) if "/" in word and "://" not in word), 0)
    return at > 0 and not _COMMAND.fullmatch(" ".join(words[:at]))


def _ids_among(almanac: Almanac, names: Sequence[str]) -> set[str]:
    """Those that are the id of a model, or nearly."""
    query = (
        "SELECT name FROM (SELECT name, known_model(name) AS model_id FROM (SELECT unnest($names) AS name)) "
        "SEMI JOIN model USING (model_id)"
    )
    return {row["name"] for row in almanac.rows(query, {"names": list(names)})}


def is_name(almanac: Almanac, name: str) -> bool:
    """Whether that names a model."""
    return bool(_ids_among(almanac, [name]) or almanac.repository(name)["model_id"])


def _needed(almanac: Almanac, words: Sequence[str]) -> int:
    """How many of the words of a name are taken for what all of them are: what stands behind a file or a tag may be passed over there. (A word that the
    model itself is called by is its own: the 4k of Phi-3-mini-4k.)"""
    asked = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
    found = [tuple(almanac.repository(name)[of] for of in ("model_id", "dtype_id", "dtype_named")) for name in asked]
    # (qwen3 alone is a tag of Ollama, which may be what qwen3 8b q4 is: what lies between says it is not the same name)
    others = [count for count, one in enumerate(found, 1) if one != found[-1]]
    count = max(others, default=0) + 1
    model = (found[-1][0] or "").lower()
    own, letters = set(re.split(r"[^\w.]+|_", model)), re.sub(r"[^a-z0-9]", "", model)
    # (its name may have no blank where it was said with one: hunyuan video)
    said = {at: re.sub(r"[^a-z0-9]", "", name.lower()) for at, name in enumerate(asked, 1)}
    return max(count, *(at for at, word in enumerate(words, 1) if word.lower() in own or said[at] in letters), 1)


def with_size(almanac: Almanac, name: str, unheard: list[str]) -> tuple[str, list[str]]:
    """A name with the size or the version that stands apart from it (qlora 70b on 2x3090 llama 3.3), where that names a model."""
    for number in filter(_NUMBER.fullmatch, unheard):
        rest = [word for word in unheard if word != number]
        if is_name(almanac, f"{name} {number}"):
            return f"{name} {number}", rest
        if not _SIZE.fullmatch(number):
            continue
        # (or says once more what the model has: mistral nemo 12b)
        of = "SELECT any_value(parameter_count) FROM model WHERE model_id = $id"
        count = almanac.value(of, {"id": almanac.repository(name)["model_id"]})
        said = float(number[:-1]) * {"b": 10**9, "m": 10**6}[number[-1].lower()]
        if count and abs(count - said) <= _SAME_SIZE * said:
            return name, rest
    return name, unheard


def of_size(name: str, size: str) -> str:
    """The name of another size of a model, where a size alone is said (qwen3 8b, and 14b); empty where none is."""
    is_sized = _SIZE.fullmatch(size) and _SIZE.search(name)
    return " ".join(size if _SIZE.fullmatch(word) else word for word in name.split()) if is_sized else ""


def untuned(almanac: Almanac, name: str, unheard: list[str]) -> tuple[str, list[str]]:
    """The id of what a model was made from, where the words say that it is meant: llama 3.2 3b base."""
    rest = [word for word in unheard if word.lower() not in ("base", "pretrained", "pt")]
    if len(rest) == len(unheard):
        return name, unheard
    found = almanac.repository(name)
    if not found["model_id"] or is_tuned(found["model_id"]) or found["dtype_named"]:
        return name, unheard
    return found["model_id"], rest


def is_of_name(name: str, word: str) -> bool:
    """Whether a number behind a name may be typed of it (wan 2.9, qwen3 9b): a whole one behind a size is none."""
    has_size = any(_SIZE.fullmatch(part) for part in re.split(r"[\s-]+", name))
    return bool(_NUMBER.fullmatch(word)) and not (word.isdigit() and has_size)


def check_format(almanac: Almanac, name: str, unheard: Sequence[str]) -> None:
    """Raises Wrong for a word that is a format of programs which no formula here describes: exl2."""
    for word in unheard:
        found = almanac.repository(f"{name} {word}")
        if found["dtype_named"] and not found["dtype_id"]:
            raise Wrong(
                f"{in_words(word)} is no format of this almanac: {visible(found['note'] or found['dtype_named'])}"
            )


def format_of(name: str, almanac: Almanac, word: str) -> Said | None:
    """The format that a word behind a model's name says, as the name of a repository would: q4, awq; or its bits alone."""
    if BITS.fullmatch(word):
        return Said(OF_NAME, word)
    # (behind a tag of Ollama too, of which it is no part)
    found = almanac.repository(f"{name.replace(':', '-')} {word}")
    if found["dtype_id"] and found["dtype_named"]:
        return Said("format", found["dtype_id"], f"--format {found['dtype_id']}")
    return None
