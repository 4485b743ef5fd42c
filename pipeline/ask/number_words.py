"""What numbers of a question say: a length, how many there are of what is counted beside them, the size of a picture."""

from __future__ import annotations

import re

from .almanac import Almanac
from .said import Said
from .values import ALL_TOKENS, image_size, share, tokens

# how a length is called, by people and by programs (--max-model-len, num_ctx, max_seq_length, cutoff_len); -c is llama.cpp's
_LENGTH = (
    r"(?:--?)?(?:max[-_ ]?)?(?:context|ctx|seq(?:uence)?|(?<=max.)model)(?:[-_ ]?(?:len(?:gth)?|size|window))?|"
    r"(?:--?)?(?:n|num|max)[-_]ctx|(?:--?)?cutoff[-_ ]len(?:gth)?|seq[-_]?len|-c"
)
_UNIT = r" ?(?:k|m|thousand|million)"
_CONTEXT = re.compile(
    rf"(?i)(?P<before>(?:{_LENGTH})(?: of |[ =:]{{1,2}}))?(?P<number>\d{{1,3}}(?:[. '’\u00a0]\d{{3}})+|\d[\d,_]*|\d+(?:\.\d+)?{_UNIT})"
    r"(?P<behind>(?: (?:context|ctx|kontext|contexte|contexto|tokens?|toks?|seq|sequence)){0,2}(?: (?:len|length|window))?)"
)
_ALL = re.compile(
    r"(?i)(?:with |at )?(?:the |its )?(?:full|whole|entire) (?:context|ctx)(?:[- ](?:length|size|window))?"
)
_IN_THOUSANDS = re.compile(r"\d{1,3}(?:[. '’\u00a0]\d{3})+")
_CARD_BESIDE = re.compile(
    r"(?i)\d{3,4} (?:context|ctx|seq)|(?:max )?(?:context|ctx|seq(?:uence)?)(?: (?:length|size|window))? \d{3}0"
)
_IN_K = re.compile(rf"(?i)\d{_UNIT}$")
_MANY = {"thousand": 10**3, "million": 10**6}
_WHO = r"users?|people|requests?|sequences|clients?|streams?|chats?"
_USERS = re.compile(
    rf"(?i)(\d{{1,7}}) (?:(?:concurrent|simultaneous|parallel) )?(?:{_WHO})(?: at once)?|(\d{{1,7}}) (?:concurrent|simultaneous)|"
    r"(?:concurrency|(?:per[-_]device[-_](?:train[-_])?|micro[-_ ]?)?batch(?:[-_ ]?size)?|bs)(?: of |[ =:]{1,2}|(?<=bs))(\d{1,7})"
)
# an option whose value is a number, and how people say it
_COUNTED = {
    "tensor_parallel": (
        "--tensor-parallel",
        re.compile(r"(?i)(?:--?)?(?:tp(?:[-_]size)?|tensor[-_ ]parallel(?:ism)?(?:[-_ ]size)?)[ =]?(\d{1,4})"),
    ),
    "pipeline_parallel": (
        "--pipeline-parallel",
        re.compile(r"(?i)(?:--?)?(?:pp(?:[-_]size)?|pipeline[-_ ]parallel(?:ism)?(?:[-_ ]size)?)[ =]?(\d{1,4})"),
    ),
    "data_parallel": (
        "--data-parallel",
        re.compile(r"(?i)(?:--?)?(?:dp(?:[-_]size)?|data[-_ ]parallel(?:ism)?(?:[-_ ]size)?)[ =]?(\d{1,4})"),
    ),
    "max_num_seqs": ("--max-num-seqs", re.compile(r"(?i)(?:--?)?max[-_ ]num[-_ ]seqs[ =](\d{1,6})")),
    "batched_tokens": (
        "--max-num-batched-tokens",
        re.compile(r"(?i)(?:--?)?max[-_ ]num[-_ ]batched[-_ ]tokens[ =](\d{1,7})"),
    ),
    "rank": ("--rank", re.compile(r"(?i)(?:rank|(?:lora[-_])?r|lora[-_]rank)(?: of |[ =])(\d{1,5})")),
    "images": ("--images", re.compile(r"(?i)(\d{1,4}) (?:images?|pictures?|photos?)")),
    "frames": ("--frames", re.compile(r"(?i)(\d{1,5}) frames?")),
    "seconds": (
        "--seconds",
        re.compile(r"(?i)(\d{1,5}) (?:seconds?|secs?|s)(?: (?:of )?(?:audio|sound|speech|voice))?"),
    ),
}
_MINUTES = re.compile(r"(?i)(\d{1,4}) (?:minutes?|mins?)(?: (?:of )?(?:audio|sound|speech|voice))?")
_SHARE = re.compile(
    r"(?i)(?:--?)?(?:gpu[-_ ]memory[-_ ]utili[sz]ation|gpu[-_ ]mem(?:ory)?[-_ ]util)[ =](0?\.\d+|1(?:\.0+)?)"
)
_HEIGHTS = {"480p": (832, 480), "720p": (1280, 720), "1080p": (1920, 1080)}  # of videos, as their makers call them


def context(_: Almanac, text: str) -> Said | None:
    if _ALL.fullmatch(text):
        return Said("context", ALL_TOKENS, "--context max")
    found = _CONTEXT.fullmatch(text)
    if not found:
        return None
    number, is_called = found["number"], bool(found["before"] or found["behind"])
    if not (is_called or _IN_K.search(number) or _is_round(number)):
        return None
    if _CARD_BESIDE.fullmatch(text) and not _is_round(number):
        return None  # (4090 ctx 32k; max context 4090)
    if _IN_THOUSANDS.fullmatch(number):
        if not is_called:
            return None  # (16.384 is a length where its tokens are said)
        number = re.sub(r"\D", "", number)
    elif word := next((word for word in _MANY if number.lower().endswith(word)), None):
        number = str(int(float(number[: -len(word)]) * _MANY[word]))
    length = tokens(number.replace(" ", ""))
    return Said("context", length, f"--context {length}")


def _is_round(number: str) -> bool:
    """Whether a bare number is a length: whole thousands or 1,024s, which no card is called."""
    size = int(re.sub(r"\D", "", number) or 0)
    return size >= 1000 and (size % 1000 == 0 or size % 1024 == 0)


def users(_: Almanac, text: str) -> Said | None:
    found = _USERS.fullmatch(text)
    count = int(next(filter(None, found.groups()))) if found else 0
    return Said("users", count, f"--users {count}") if count else None


def counted(_: Almanac, text: str) -> Said | None:
    for option, (flag, pattern) in _COUNTED.items():
        if (found := pattern.fullmatch(text)) and int(found[1]):
            return Said(option, int(found[1]), f"{flag} {int(found[1])}")
    if (found := _MINUTES.fullmatch(text)) and int(found[1]):
        return Said("seconds", 60 * int(found[1]), f"--seconds {60 * int(found[1])}")
    if found := _SHARE.fullmatch(text):
        return Said("share", share(found[1]), f"--share {share(found[1]):g}")
    return None


def size(_: Almanac, text: str) -> Said | None:
    wide, high = _HEIGHTS.get(text.lower()) or image_size(text)
    return Said("image_size", (wide, high), f"--image-size {wide}x{high}")


def is_counted(words: str) -> bool:
    """Whether a number and what it counts stand together: 12 users, 4 images."""
    return bool(_USERS.fullmatch(words) or any(pattern.fullmatch(words) for _, pattern in _COUNTED.values()))
