"""What a model's tensor headers say: totals where the Hub lists none, and a summary of every tensor's name, dtype and shape.

Headers are a few requests a model, made only when its commit is new: one for all shards of an index where the Hub gives them
together, else one or two for each file. Those that only the summary needs come out of the crawl's allowance; where it is
spent, or headers cannot be had, the model is marked as due, and the next crawl asks. Headers that are broken, or missing, or not reached
cost the model nothing else. Of weights themselves nothing is read.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipeline.hub import gguf, safetensors
from pipeline.hub.answers import Refused
from pipeline.hub.careful import Malformed
from pipeline.hub.client import Hub
from pipeline.hub.gguf_config import config_of
from pipeline.hub.listing import SOURCE, Listed, kind_of
from pipeline.hub.summary import DENOISERS, Tensor, summarise
from pipeline.hub.traffic import BodyTooLarge, Silent, Unavailable

MOST_SHARDS = 256
MOST_SPLITS = 16
FAILURES_IN_A_ROW = 10  # models whose headers cannot be had, one after the other: then none are asked for any more
_MAIN = ("model", "diffusion_pytorch_model")  # names of the library's own files; others lie beside them
_SPLIT = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf")


class Spent(Exception):
    """The crawl has made as many requests for headers as it was given, or headers cannot be had now."""


@dataclass
class Allowance:
    """Requests for headers that one crawl may still make; shared by its threads."""

    left: int
    problem: str = ""  # why no headers are asked for any more
    is_together_down: bool = False  # the one request for all shards fails, and shards are asked for one by one
    _failures: dict[str, int] = field(default_factory=lambda: {"headers": 0, "together": 0})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, must: bool) -> None:
        with self._lock:
            if self.problem or (self.left < 1 and not must):
                raise Spent
            self.left = max(0, self.left - 1)

    def note(self, problem: Exception | None) -> None:
        """How asking for the headers of a model ended."""
        with self._lock:
            self._failures["headers"] = self._failures["headers"] + 1 if problem else 0
            if self._failures["headers"] >= FAILURES_IN_A_ROW and not self.problem:
                self.problem = f"tensor headers of {FAILURES_IN_A_ROW} models in a row could not be had ({problem})"

    def note_together(self, problem: Exception | None) -> None:
        """How the one request for all shards of a model ended."""
        with self._lock:
            self._failures["together"] = self._failures["together"] + 1 if problem else 0
            self.is_together_down = self.is_together_down or self._failures["together"] >= 3


@dataclass
class Headers:
    """The headers of one model. Every request of theirs is counted; `must` says that it is made in any case."""

    hub: Hub
    listed: Listed
    allowance: Allowance
    must: bool

    def ask(self) -> None:
        self.allowance.take(self.must)

    def part(self, name: str, start: int, stop: int) -> tuple[bytes, int | None]:
        self.ask()
        return self.hub.part(self.listed.model_id, self.listed.sha, name, start, stop)


def read_headers(hub: Hub, listed: Listed, allowance: Allowance) -> dict[str, Any]:
    """Facts from headers: what they say, `header_problem` for good, or `is_header_due`. Raises Refused where the model is gone."""
    try:
        found = _read(Headers(hub, listed, allowance, is_needed(listed)))
    except Spent:
        return {"is_header_due": True}
    except Refused as refusal:
        if refusal.is_gone:
            raise
        return {} if is_closed(refusal, listed) else {"header_problem": _shown(refusal)}
    except (Malformed, BodyTooLarge) as problem:
        allowance.note(None)  # it came
        return {"header_problem": _shown(problem)}
    except Silent:
        raise
    except Unavailable as problem:
        allowance.note(problem)
        return {"is_header_due": True}
    if found:
        allowance.note(None)
    return found


def is_needed(listed: Listed) -> bool:
    """Whether headers are asked for beyond the allowance: nothing else gives the total, or what it is a total of."""
    return "stored_parameter_count" not in listed.facts or listed.facts.get("parameters_kind") == "exact_gguf"


def is_closed(refusal: Refused, listed: Listed) -> bool:
    """Whether files are refused because the model is for those alone who were let in. That is no fault of the model's."""
    return refusal.code == "GatedRepo" or (refusal.status in (401, 403) and listed.is_closed)


def _read(headers: Headers) -> dict[str, Any]:
    names = [name for name in headers.listed.files if name.endswith(".safetensors")]
    found = _safetensors(headers, names)
    if found is None:
        return {} if names else _gguf(headers)
    file, file_count, tensors = found
    facts: dict[str, Any] = {}
    if "stored_parameter_count" not in headers.listed.facts:
        counts = safetensors.elements_by_dtype(tensors)
        facts = {
            "parameters_by_dtype": counts,
            "stored_parameter_count": sum(counts.values()),
            "parameters_kind": kind_of(counts),
        }
    return facts | _summary("safetensors", file, file_count, tensors)


def _summary(form: str, file: str, file_count: int, tensors: list[Tensor]) -> dict[str, Any]:
    try:
        return {"header": summarise(form, file, file_count, tensors)}
    except Malformed as problem:  # the totals are right all the same
        return {"header_problem": _shown(problem)}


def _safetensors(headers: Headers, names: list[str]) -> tuple[str, int, list[Tensor]] | None:
    """The main file (or index), of how many files, and their tensors; None where there is none."""
    indices = [n for n in headers.listed.files if n.endswith(".safetensors.index.json") and _is_main(n)]
    index = min(indices, key=_is_beside, default=None)
    if index:
        return index, *_sharded(headers, index)
    single = [n for n in names if _is_main(n) and "-of-" not in n]
    if not single:
        return None
    file = min(single, key=_is_beside)
    return file, 1, safetensors.read_tensors([_header(headers, file)])


def _is_main(name: str) -> bool:
    """Whether a file of weights is the model itself, or the denoiser of its pipeline."""
    folder, _, _ = name.rpartition("/")
    return folder in ("", *DENOISERS) and "adapter" not in name


def _is_beside(name: str) -> bool:
    """Whether a file is not the one that the library loads by itself: another format or precision of the same weights."""
    return name.rpartition("/")[2].partition(".safetensors")[0] not in _MAIN


def _sharded(headers: Headers, index: str) -> tuple[int, list[Tensor]]:
    """All shards by one request where that answers for our commit, else each shard's header by its own."""
    listed = headers.listed
    if not headers.allowance.is_together_down and (found := _together(headers, index)):
        return found
    stem = index.removesuffix(".safetensors.index.json")
    shards = [name for name in listed.files if name.startswith(f"{stem}-") and name.endswith(".safetensors")]
    if not 0 < len(shards) <= MOST_SHARDS:
        raise Malformed(f"{index}: {len(shards)} shards")
    told = {int(match[1]) for match in map(re.compile(r".+-of-(\d{5})\.safetensors").fullmatch, shards) if match}
    if told and told != {len(shards)}:
        raise Malformed(f"{index}: {len(shards)} shards of {max(told)}")
    return len(shards), safetensors.read_tensors(_header(headers, name) for name in shards)


def _together(headers: Headers, index: str) -> tuple[int, list[Tensor]] | None:
    """All shards by one request; None where that gives nothing that is sure to be of our commit."""
    listed = headers.listed
    headers.ask()
    try:
        found, commit = headers.hub.sharded_headers(listed.model_id, index)
    except Refused as refusal:
        if refusal.is_gone:
            raise
        return None
    except Silent:
        raise
    except (Unavailable, Malformed, BodyTooLarge) as problem:
        headers.allowance.note_together(problem)
        return None
    headers.allowance.note_together(None)
    given = found.get("headers") if isinstance(found, Mapping) else None
    if not isinstance(given, Mapping) or commit not in (None, listed.sha):
        return None
    tensors = safetensors.read_tensors((str(file), header, None) for file, header in given.items())
    if commit is None and safetensors.elements_by_dtype(tensors) != listed.facts.get("parameters_by_dtype"):
        return None  # it may be of another commit than the listing
    return len(given), tensors


def _header(headers: Headers, name: str) -> tuple[str, Any, int | None]:
    try:
        return name, *safetensors.read_header(partial(headers.part, name))
    except Malformed as problem:
        raise Malformed(f"{name}: {problem}") from None


def _gguf(headers: Headers) -> dict[str, Any]:
    """Tensors of one file: the 4-bit mix that people run most, else the first by name."""
    names = [n for n in headers.listed.files if n.endswith(".gguf") and "mmproj" not in n.lower()]
    whole = [name for name in names if not _SPLIT.fullmatch(name)]
    first = next((n for n in whole if "q4_k_m" in n.lower()), whole[0] if whole else None)
    files = [first] if first else _split_files(names)
    if not files:
        return {}
    tensors: list[Tensor] = []
    metadata: dict[str, Any] = {}
    for name in files:
        try:
            found_here, said = gguf.read_header(partial(headers.part, name))
        except Malformed as problem:
            raise Malformed(f"{name}: {problem}") from None
        tensors += found_here
        if len(tensors) > gguf.MOST_TENSORS:  # of all files together
            raise Malformed(f"{len(tensors):,} tensors")
        metadata = metadata or said  # of a model in several files the first says it
    if len({name for name, _, _ in tensors}) < len(tensors):
        raise Malformed(f"{files[0]}: a tensor is in two files")
    counts = gguf.elements_by_type(tensors)
    if not sum(counts.values()):
        return {}
    found: dict[str, Any] = {"gguf_file": files[0], "elements_by_gguf_type": counts}
    if "stored_parameter_count" not in headers.listed.facts:
        found |= {"stored_parameter_count": sum(counts.values()), "parameters_kind": "exact_gguf"}
    if config := config_of(metadata, tensors):
        found |= {"config": config, "config_kind": "quoted", "config_source": f"{SOURCE}:metadata of {files[0]}"}
    return found | _summary("gguf", files[0], len(files), tensors)


def _split_files(names: list[str]) -> list[str]:
    """The files of the first model that is split whole."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        match = _SPLIT.fullmatch(name)
        if match:
            groups.setdefault((match[1], match[2]), []).append(name)
    for (_, count), found in sorted(groups.items()):
        if len(found) == int(count) <= MOST_SPLITS:
            return sorted(found)
    return []


def _shown(problem: Exception) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in str(problem))[:500]
