"""What words of a question say: each is what an option says (a card, a program, a phase, a format, a context, how many users …), or holds the sentence
together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

from . import card_names, number_words, shared
from .almanac import Almanac
from .formats import dtype_of
from .problems import Problem
from .programs import named_program
from .said import Said, quoted
from .values import MOST_LAYERS, OBJECTIVES, PHASES, phase_of

LONGEST = 6  # words that say one thing together: "two rtx pro 6000 blackwell 96gb"
# Words that hold a sentence together and say nothing by themselves. (A driver is what a card of its maker is counted with.)
_BETWEEN = re.compile(
    r"(?i)an?|and|at|be|best|biggest|can|cards?|computer|context|cuda|desktop|do|docker|does|each|egpu|embeddings?|enough|fits?|for|from|get|gpus?|have|having|host|how|i|if|in|into|"
    r"is|it|just|largest|llms?|local|locally|longest|many|max|maximum|me|memory|metal|models?|much|my|need(?:s|ed)?|nvlink|of|on|one|only|our|pc|per|please|possible|quants?|quanti[sz]ation|rent|rented|"
    r"require[ds]?|rocm|runs?|running|serve|serving|should|single|some|take|takes|that|the|there|this|to|tokens|train|training|tts|up|us|use|uses|using|via|vram|want|we|"
    r"what|what'?s|which|will|with|work|works|would|x|you|your|"
    # (German, French, Spanish, Italian, Portuguese)
    r"auf|bei|bekomme|braucht|brauche|das|dem|den|der|die|ein|eine[mnrs]?|für|gpu-speicher|grafikkarte|ich|ist|kann|karte|läuft|laeuft|lassen|laufen|"
    r"meine[mnr]?|mein|mit|passt|speicher|und|viel|welche[rs]?|wie|wieviel|zu|"
    r"avec|carte|combien|dans|de|est|est-ce|et|faire|faut-il|il|je|la|le|ma|mémoire|mon|peux|peut|pour|puis-je|que|quelle?|sur|tourne|tourner|une?|"
    r"cabe|consigo|meu|minha|na|num|o|"
    r"con|correr|cuánta|cuanta|ejecutar|en|funciona|in|memoria|mi|necesito|para|posso|puedo|rodar|su|tarjeta|una|"
    # (Russian)
    r"в|видеокарт[аеуы]|видеопамяти|для|запустить|и|какая|ли|меня|мне|мо[йюя]|моей|на|нужно|памяти|пойд[её]т|потянет|с|сколько|у|хватит"
)
# (how it is done is another word: full, LoRA, QLoRA, DPO)
FINE_TUNING = re.compile(r"(?i)fine[ _-]?tun(?:ed?|ing)|sft")
# whose cards are rented: which one is not said by that
_LENDERS = re.compile(
    r"(?i)runpod|vast(?:\.ai)?|lambda(?: ?labs)?|paperspace|coreweave|kaggle|colab(?: ?pro)?|aws|azure|gcp|modal|together(?:\.ai)?"
)
# writing without blanks between words, and what of it says something
_RUN_ON = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_FRENCH_SIZE = re.compile(r"(?<=\d)(?:[gG]o| Go)\b")  # gigaoctets; what a model goes on is another word
_COUNT_APART = re.compile(r"(?i)(?<!\S)(\d{1,4}) [x×] (?=\S)")
_SAID_IN_RUN = (("全量微调", "full finetune"), ("微调", "lora"), ("파인튜닝", "lora"))
LENDER = "lender"  # no option: whose card it is
BITS = re.compile(r"(?i)[2-8][ -]?bits?")
_OF_RAM = re.compile(r"(?i)\d+ ?gi?b ram")
_VERSION = re.compile(r"(?i)v?\d+(\.\d+)+\w*|b\d+")
_CACHE = re.compile(
    r"(?i)(?:kv(?:[ -]?cache)?|cache)(?: quant(?:i[sz]ation|i[sz]ed)?)?(?: in| at| to| type)? (\S+)|"
    r"([2-8][ -]?bits?|\S+) (?:quanti[sz]ed )?(?:kv(?:[ -]?cache)?|cache)|(?:-ctk|--cache-type-k) (\S+)(?: (?:-ctv|--cache-type-v) (\S+))?"
)
_CACHES = {
    "q8": "q8_0",
    "q4": "q4_0",
    "q5": "q5_0",
    "f16": "fp16",
    "8bit": "q8_0",
    "8-bit": "q8_0",
    "4bit": "q4_0",
    "4-bit": "q4_0",
}
_COLOCATED = re.compile(r"(?i)(?:with |using )?(?:vllm[- ]?)?co-?located?(?:[- ]vllm)?")
_LIGER = re.compile(r"(?i)liger(?:[- _]kernels?)?")
_CHECKPOINTING = re.compile(r"(?i)(no |without )?(?:gradient |activation )?(?:re)?checkpointing|(no )recompute")
_RAM = r"(?:system |main |cpu |ddr\d |ddr\d-\d+ )*(?:ram|ddr\d)"
_HOST = re.compile(
    rf"(?i)(?:with )?(\d+(?:\.\d+)?) ?(?:gi?b?|gigs?)?(?: of)? {_RAM}|(?:with )?{_RAM}[: ](\d+(?:\.\d+)?) ?(?:gi?b?|gigs?)?|"
    r"(\d+) ?gi?b (?:main|system) memory"
)
_RAM_SAID = re.compile(rf"(?i)\bram\b|\d ?(?:gi?b?|gigs?)?(?: of)? {_RAM}\b")
_SIZES = re.compile(r"(?i)\b\d+ ?gi?b\b")
_PIXELS = re.compile(r"(?i)\b\d{3,5} ?[x×] ?\d{3,5}\b")
# how many cards, without a sign: where several are meant, or a word before them says that no model's name is (llama 3 on 2 4090)
_APART = re.compile(
    r"(?i)(?:on|with|have|using|auf|mit|sur|avec|con) ([1-9]\d?) ((?!\d+ ?gi?b\b).*\d{2}.*)|([2-9]|1\d) (.*\d0s|.*\d{2}00s.*|.*\d0 ?(?:ti|xtx?|super)s)"
)
_AMOUNT = re.compile(r"(?i)\d+(?:\.\d+)? ?mi?b|\d+\.\d+ ?gi?b")
_EXPERT_LAYERS = re.compile(r"(?i)(?:--?)?(?:n[- ]?cpu[- ]?moe|ncmoe)[ =](\d{1,4})")
_GPU_LAYERS = re.compile(
    r"(?i)(?:--?)?(?:ngl|n?-?gpu-?layers|num_gpu)[ =](-1|all|\d{1,4})|(\d{1,4}) (?:gpu layers|layers on (?:the )?gpu)"
)
_ALL_EXPERTS = re.compile(r"(?i)--?cpu-?moe|(?:all )?experts (?:on|in) (?:the )?(?:cpu|ram)")
_NO_FLASH = re.compile(
    r"(?i)(?:no|without) (?:flash[ -]?att(?:entio)?n|fa)|(?:flash[ -]?att(?:entio)?n|-fa|--flash-attn)[ =](?:off|0|disabled)"
)
_FLASH = re.compile(r"(?i)(?:with )?(?:flash[ -]?att(?:entio)?n|-fa|--flash-attn)(?:[ =](?:on|1|auto|enabled))?")
_OFFLOAD = re.compile(
    r"(?i)(?:with )?(?:partial )?(?:cpu|ram|partial)[ -]?off-?load(?:ing)?(?: to (?:the )?(?:cpu|ram))?"
)
# what no option is: where it is told, or that it changes nothing
_ELSEWHERE = (
    (re.compile(r"(?i)(?:lora[-_ ]?)?alpha[ =:]{1,2}\d+(?:\.\d+)?"), "The alpha of a LoRA takes no memory"),
    (
        re.compile(
            r"(?i)how fast|(?:tokens?|toks?|t|it)(?: per |/| / )(?:s|sec|second)|tps|(?:inference |generation )?speed"
        ),
        "How fast it is, is not told here: the first page of the site has a bound of it for each model",
    ),
    (
        re.compile(
            r"(?i)(?:how many |number of |max(?:imum)? )(?:concurrent |simultaneous |parallel )?(?:users|people|requests|clients)"
        ),
        "How many users it takes, the calculator of the site says and limits_on in SQL; here a number of them is asked: --users 8",
    ),
)
_NO_TOWER = re.compile(r"(?i)--no-mmproj|no-?mmproj|(?:no|without) (?:mmproj|vision)|text[ -]only")


def is_between(word: str) -> bool:
    """Whether a word holds a sentence together and says nothing."""
    return bool(_BETWEEN.fullmatch(_bare(word)))


def spaced(text: str) -> str:
    """A question with what is written without blanks taken apart: what runs on is no part of a model's name."""
    for said, meant in _SAID_IN_RUN:
        text = text.replace(said, f" {meant} ")
    return _COUNT_APART.sub(r"\1x ", _RUN_ON.sub(" ", _FRENCH_SIZE.sub("GB", text)))


def is_counted(words: str) -> bool:
    """Whether words stand together, a number and what it counts (12 users, 4 images) or a format and its cache, so that neither is of a model's name."""
    found = _CACHE.fullmatch(words)
    if found and _cache_of(found[2] or "") in (
        *_CACHES,
        "bit",
        "bits",
        "q8_0",
        "q4_0",
        "q5_0",
        "q5_1",
        "q4_1",
        "fp8",
        "fp16",
    ):
        return True
    return number_words.is_counted(words)


def _cache_of(text: str) -> str:
    return re.sub(r"(\d)[ -]bits?", r"\1bit", text.lower())


def said(almanac: Almanac, text: str) -> Said | None:
    """What one word or several say; None where they say nothing."""
    for reader in _READERS:
        try:
            if found := reader(almanac, text):
                return found
        except (Problem, argparse.ArgumentTypeError):
            continue
    return None


def all_said(
    almanac: Almanac, words: Sequence[str], also: Callable[[Almanac, str], Said | None] | None = None
) -> tuple[list[Said], list[str]]:
    """What words say, the longest that say one thing taken together, and those that say nothing. `also` hears what stands alone, where nothing else does."""
    found, unheard, at = [], [], 0
    while at < len(words):
        for count in range(min(LONGEST, len(words) - at), 0, -1):
            text = _bare(" ".join(words[at : at + count]))
            heard = said(almanac, text) or (
                also(almanac, text) if also and (count == 1 or BITS.fullmatch(text)) else None
            )
            # (4090 with 16gb ram: a card of that size is another)
            is_ram = count > 1 and _OF_RAM.fullmatch(_bare(" ".join(words[at + count - 1 : at + count + 1])))
            if text and heard and not is_ram:
                found.append(heard)
                at += count
                break
        else:
            if (word := _bare(words[at])) and not is_between(word):
                unheard.append(word)
            at += 1
    return found, unheard


def _bare(text: str) -> str:
    return text.strip(",;?!:")


def named_phase(text: str) -> str | None:
    """The phase that words of a sentence name; "full" and "serve" may be of a name, or of the sentence."""
    if text.lower() in ("full", "serve", "serving", *OBJECTIVES):
        return None
    phase = phase_of(text)
    return phase if phase in PHASES else None


def _phase(_: Almanac, text: str) -> Said | None:
    phase = named_phase(text)
    is_loose = bool(phase == "full-finetune" and FINE_TUNING.fullmatch(text))
    return Said("phase", phase, f"--phase {phase}", is_loose=is_loose) if phase else None


def _objective(_: Almanac, text: str) -> Said | None:
    return Said("objective", text.lower(), f"--objective {text.lower()}") if text.lower() in OBJECTIVES else None


def _cache(almanac: Almanac, text: str) -> Said | None:
    from .formats import kv_dtype_of

    found = _CACHE.fullmatch(text)
    if not found or (found[4] and found[4].lower() != found[3].lower()):
        return None  # (keys and values in unlike formats nobody counted)
    said = _cache_of(found[1] or found[2] or found[3])
    return Said("kv", kv := kv_dtype_of(almanac, _CACHES.get(said, said)), f"--kv {kv}")


def _sharding(_: Almanac, text: str) -> Said | None:
    if text.lower() in ("tp",):  # (of a server, or a training's: with its number it is an option)
        return None
    shared.way_of(text)
    return Said("sharding", text, f"--sharding {quoted(text)}")


def _checkpointing(_: Almanac, text: str) -> Said | None:
    found = _CHECKPOINTING.fullmatch(text)
    said = "none" if found and (found[1] or found[2]) else "full"
    return Said("checkpointing", said, f"--checkpointing {said}") if found else None


def _liger(_: Almanac, text: str) -> Said | None:
    return Said("liger", True, "--liger") if _LIGER.fullmatch(text) else None


def _generator(_: Almanac, text: str) -> Said | None:
    return Said("generator", "vllm-colocate", "--generator vllm-colocate") if _COLOCATED.fullmatch(text) else None


def _optimizer(almanac: Almanac, text: str) -> Said | None:
    from .training_words import optimizer_of

    found = optimizer_of(almanac, text.replace(" ", "-"))
    return Said("optimizer", found, f"--optimizer {found}")


def _lender(_: Almanac, text: str) -> Said | None:
    return Said(LENDER, text) if _LENDERS.fullmatch(text) else None


def _host(_: Almanac, text: str) -> Said | None:
    found = _HOST.fullmatch(text)
    size = float(found[1] or found[2] or found[3]) if found else 0
    return Said("ram", int(size * 2**30), f"--ram {size:g}GiB") if size else None


def _shared(_: Almanac, text: str) -> Said | None:
    """What llama.cpp is told of layers, experts, attention and of what a model sees with."""
    if found := _EXPERT_LAYERS.fullmatch(text):
        return Said("expert_layers", int(found[1]), f"--n-cpu-moe {found[1]}")
    if _ALL_EXPERTS.fullmatch(text):
        return Said("expert_layers", MOST_LAYERS, "--cpu-moe")
    if found := _GPU_LAYERS.fullmatch(text):
        said = found[1] or found[2]
        return Said("gpu_layers", MOST_LAYERS if said in ("-1", "all") else int(said), f"-ngl {said}")
    if _NO_FLASH.fullmatch(text):
        return Said("attention", "eager", "--attention eager")
    if _FLASH.fullmatch(text):
        return Said("attention", "flash", "--attention flash")
    if _OFFLOAD.fullmatch(text):
        return Said(
            "", None, note=f"{text} is told of where a card does not hold the model, and with --ram 32GB first of all"
        )
    return Said("text_only", True, "--no-mmproj") if _NO_TOWER.fullmatch(text) else None


def _elsewhere(_: Almanac, text: str) -> Said | None:
    return next((Said("", None, note=note) for pattern, note in _ELSEWHERE if pattern.fullmatch(text)), None)


def _free(_: Almanac, text: str) -> Said | None:
    """An amount of memory that no card is called by: 10000 MB, 9.5 GB."""
    return Said("free", text, f"--free {quoted(text)}") if _AMOUNT.fullmatch(text) else None


def _format(almanac: Almanac, text: str) -> Said | None:
    return Said("format", text, f"--format {dtype_of(almanac, text)}")


# The names by which program_called answers, which plans all that a program may run with: a tenth of a second for each word of a question.
_IS_PROGRAM = """
    SELECT count(*) > 0 FROM program
    WHERE lower($name) IN (program_id, lower(name)) OR list_contains(string_split(lower(other_names), '; '), lower($name))
"""


def _program(almanac: Almanac, text: str) -> Said | None:
    name, version = named_program(text)
    if version and not _VERSION.fullmatch(re.split(r"[\s=@]+", text)[-1]):
        return None
    known = almanac.value(_IS_PROGRAM, {"name": name})
    return Said("program", text, f"--program {quoted(' '.join(filter(None, (name, version))))}") if known else None


def _card(almanac: Almanac, text: str) -> Said | None:
    name = re.sub(r"(?i)^an? |(?: (?:with|and|in|on|at|for|from|using|to))+$", "", text)
    if apart := _APART.fullmatch(name):
        name = f"{apart[1] or apart[3]}x {apart[2] or apart[4]}"
    if _RAM_SAID.search(name) or len(_SIZES.findall(name)) > 1 + name.count("+"):
        return None  # (the memory of the computer, which no name of a card has)
    if not all(re.search(r"(?i)[0-9a-z+×*]", word) for word in name.split()) or _PIXELS.search(name):
        return None  # (a word in other letters, which the name of a card would pass over; the size of a picture)
    for each in card_names.unlike(name):
        card_names.called(almanac, card_names.counted(each)[0])
    return Said("gpu", name, f"--gpu {quoted(name)}") if name else None


_READERS: tuple[Callable[[Almanac, str], Said | None], ...] = (
    _host,
    _free,
    _shared,
    _elsewhere,
    _card,
    _phase,
    _objective,
    number_words.context,
    number_words.users,
    number_words.counted,
    _checkpointing,
    _liger,
    _generator,
    _cache,
    _sharding,
    _program,
    _format,
    _optimizer,
    number_words.size,
    _lender,
)
