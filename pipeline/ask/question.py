"""What is asked: a model, a card or an amount of memory, and how the model is used. Names are looked up, near ones told."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.base.bounds import in_words, visible
from pipeline.book.commands import SAME_WEIGHTS, UNPACKED

from .almanac import Almanac, Row
from .near import meant_by, tuned_of
from .near import unknown as unknown_name
from .problems import Unknown, Wrong
from .repositories import by_file, is_packed_copy, is_pipeline, known_as_draft, known_beside

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_AMOUNT = re.compile(r"(?i)\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b?|b)\s*")
_OF_OLLAMA = re.compile(r"(?i):|\bollama\b")  # a tag: qwen3:8b, ollama run qwen3
_PROGRAM = re.compile(r"(.+?)(?:\s*==\s*|\s*@\s*|\s+)[vbVB]?(\d[\w.]*)")
_BITS = re.compile(r"(?i)[\s-][2-8][\s-]?bits?\s*$")
# what people mean by so many bits alone in programs that do not run the mix of llama.cpp which they are told in
_SAME_BITS = {
    "gguf-q2_k": ("mlx-2bit",),
    "gguf-q3_k_m": ("mlx-3bit",),
    "gguf-q4_k_m": ("awq-int4", "mlx-4bit", "nf4"),
    "gguf-q5_k_m": ("mlx-5bit",),
    "gguf-q6_k": ("mlx-6bit",),
    "gguf-q8_0": ("fp8", "mlx-8bit", "int8"),
}
INFERENCE = "inference"
OF_ENGINE = "^(gguf|mlx|exl3)-"  # what formats are called by for their engine, which people leave out


@dataclass(frozen=True)
class Card:
    """What a model is held against: a card of the almanac, a part of one, or an amount of memory that stands for one."""

    gpu_id: str | None
    name: str  # as it is told
    vendor: str | None = None
    capacity_bytes: int | None = None  # what one process may have of it, others left out
    free_bytes: int | None = (
        None  # less than that, where something else holds a part; all there is to know of an unknown card
    )
    whole_bytes: int | None = None  # all of it, of which servers take their share
    count: int = 1
    is_count_said: bool = False
    notes: tuple[str, ...] = ()  # what a person should know of it
    raisable_bytes: int | None = None  # what a person can let it give, where that is more
    raised_by: str | None = None  # how
    larger: tuple[str, ...] = ()  # others of its name, each with more memory than the one before

    @property
    def usable_bytes(self) -> int:
        known = [size for size in (self.capacity_bytes, self.free_bytes) if size is not None]
        return min(known)


@dataclass(frozen=True)
class Use:
    """How a model is used. What is None is the almanac's default."""

    phase_id: str = INFERENCE
    context_tokens: int | None = None
    sequences: int | None = 1
    dtype_id: str | None = None
    kv_dtype_id: str | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    lora_dropout: float | None = None
    adapter: str | None = None
    program: str | None = None  # whose defaults are taken
    program_version: str | None = None
    engine_id: str | None = None  # that of the program
    sharding: str | None = None  # of a training
    sharding_engine_id: str | None = None  # the engine that it is of, where that is not the program's own
    offload: str | None = None  # what waits in the computer's memory
    shares_alone: bool = False  # whether one card has that sharding too
    tensor_parallel: int | None = None  # cards that divide a layer
    pipeline_parallel: int | None = None  # stages of layers
    data_parallel: int | None = None  # groups of cards with requests of their own
    expert_parallel: bool | None = None  # whether routed experts lie over all cards
    checkpointing: str | None = None  # of a training
    optimizer_id: str | None = None
    loss: str | None = None
    share: float | None = None  # of the card, that vLLM may take
    max_num_seqs: int | None = None  # requests that it runs at once
    batched_tokens: int | None = None  # that it reads in a step
    text_only: bool | None = None  # what it sees with is left out
    attention: str | None = None
    ram_bytes: int | None = None  # the computer's own memory
    gpu_layers: int | None = None  # that llama.cpp is told to put on the card
    expert_layers: int | None = None  # whose experts it is told to keep off it
    enforce_eager: bool | None = None  # a server captures no graphs
    max_loras: int | None = None  # slots that it sets aside for adapters
    max_lora_rank: int | None = None
    is_in_own_format: bool = False  # whether that trains in a format of its own, which nobody asked to be another
    images: int | None = None  # in each prompt
    image_width: int | None = None
    image_height: int | None = None
    frames: int | None = None  # of a video that is made
    own_context: dict[str, Any] | None = None  # whose the context is, where nobody said it (contexts.py)

    @property
    def is_training(self) -> bool:
        return self.phase_id != INFERENCE

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing that few ask for: the formulas are shorter then."""
        said = (
            self.lora_rank,
            self.lora_targets,
            self.lora_dropout,
            self.adapter,
            self.program,
            self.sharding,
            self.offload,
        )
        said += (
            self.tensor_parallel,
            self.pipeline_parallel,
            self.expert_parallel,
            self.batched_tokens,
            self.max_num_seqs,
            self.text_only,
            self.enforce_eager,
            self.loss,
        )
        return self.is_usual and all(one is None for one in said)

    @property
    def is_usual(self) -> bool:
        """Whether it says nothing of pictures, data parallelism and adapters that are served, which fewer ask for still."""
        return self.images is None and self.data_parallel is None and self.max_loras is None

    @property
    def is_divided(self) -> bool:
        """Whether it says how cards share a server."""
        return bool(self.tensor_parallel or self.pipeline_parallel or self.data_parallel or self.expert_parallel)


@dataclass(frozen=True)
class Program:
    """A program that people run, as it is for one phase and version: the engine and the format that it takes by itself."""

    program_id: str
    version: str | None
    engine_id: str
    dtype_id: str | None


@dataclass(frozen=True)
class Work:
    """What a training has before it: text in bytes or in tokens, the days that there are, and what an hour of a card costs."""

    data_bytes: int | None
    data_tokens: int | None
    days: float
    price: float | None = None


@dataclass(frozen=True)
class Model:
    """A row of the table `model`, by the name that it is told under."""

    model_id: str
    shown: str
    row: dict[str, Any] = field(repr=False)
    dtype_id: str | None = None  # the format that its name speaks of
    note: str = ""  # what its name was taken for
    dtype_named: str | None = None  # what its name says of a format, whether that is one of the almanac or not
    format_note: str = ""  # and what is to know of that
    is_itself: bool = False  # whether the repository that was asked for is in the almanac, and answered as itself
    repository: str = ""  # that was asked for, whose files not every program loads
    files_engine: str | None = None  # the engine that loads them
    made_from: str | None = (
        ""  # what a repository that is answered as itself was made from: "" where it is no such, None where nobody knows
    )
    beyond_bytes: int = 0  # what its file holds beyond the format that it is counted in, at most
    is_own_mix: bool = False  # whether that file is none of our formats
    tag: str = ""  # of Ollama's library
    is_above: bool = (
        False  # whether it is told in the next mix above the one that its name speaks of, which nobody described
    )
    is_text_alone: bool = (
        False  # whether the figures leave out what it sees or hears with, which its repository may hold
    )
    held_otherwise: str = ""  # what its published total says against the format that its name speaks of
    # of a repository that is not in the almanac, in a format that makers pack in several ways; None where that is not so
    more_bytes: int | None = None  # what it may hold beyond the format, at most
    more_share: float = 0.0  # the same, of the weights that are counted
    more_note: str = ""  # what is to know of that
    left_reason: str = (
        ""  # of a format that the program that is asked runs on no card that is known: what is known of that
    )
    says_bits_alone: bool = False  # whether its name says how many bits, and nothing of a format


_SHOWN_BYTES = 2**30 // 20  # less is 0.0 GiB
PARAMETERS_SHARE = 0.05  # from the number of parameters, within which a total counts them, whatever their bits


def amount(text: str) -> int:
    """Bytes of `10GiB` or `10GB`. Raises ValueError."""
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise ValueError(
            f"{text[:40]!r} is no amount of memory: 10GiB (1,024³ bytes each), or 10GB (a thousand million bytes each)"
        )
    unit = found[2].lower()
    size = int(float(found[1]) * _UNITS[unit if unit.endswith("b") else f"{unit}b"])  # (20g: the fewer bytes)
    if not 0 < size <= 2**50:
        raise ValueError(f"{text[:40]!r} is no amount of memory")
    return size


def in_words_of(name: str, asked: Any) -> str:
    """A name as the program that is asked for has it: of Ollama a name alone is a tag of its library."""
    is_ollamas = re.match(r"(?i)\s*ollama\b", getattr(asked, "program", None) or "")
    return f"ollama run {name}" if is_ollamas and re.fullmatch(r"[\w.:-]+(?<!\.gguf)", name) else name


def model_of(almanac: Almanac, asked: str, *, is_run: bool = False) -> Model:
    """The model of that name; where it is to be run, the one that is tuned to answer. Raises Wrong with the nearest names, Unknown where nothing is
    known of it but its name."""
    rows = almanac.rows("FROM model WHERE model_id = known_model($asked)", {"asked": asked})
    named = almanac.repository(asked)
    if named.get("ollama_tag") and not _OF_OLLAMA.search(asked):
        # (words that are a name of Ollama's library too say nothing of its file)
        of_file = ("dtype_id", "dtype_named", "note", "beyond_bytes", "ollama_tag")
        named = named | {name: None for name in of_file if name in named}
    is_known = bool(rows) and rows[0]["anatomy_grade"] != "unknown"
    otherwise = _held_otherwise(almanac, rows[0], named) if rows and not is_known else ""
    if not is_known and named["model_id"] is not None:
        base = almanac.rows("FROM model WHERE model_id = $id AND anatomy_grade <> 'unknown'", {"id": named["model_id"]})
        rows = base or rows or almanac.rows("FROM model WHERE model_id = $id", {"id": named["model_id"]})
    meant = None if rows else meant_by(almanac, asked)
    if meant:
        rows = almanac.rows("FROM model WHERE model_id = $id", {"id": meant[0]})
    if not rows:
        raise Wrong(
            f"{unknown_name(almanac, asked)}. One that it does not hold is answered from its config.json: "
            "vram-almanac fits path/to/config.json"
        )
    (row,) = rows
    tuned = tuned_of(almanac, asked, row) if is_run and not named.get("ollama_tag") else None
    row = tuned or row
    if row["anatomy_grade"] == "unknown" and not is_pipeline(almanac, row["model_id"]):
        taken = (
            ""
            if row["model_id"].lower() == asked.strip().lower()
            else f"{visible(row['model_id'])} is held, and unknown: "
        )
        among = f". {meant[1]}" if meant and meant[1] else ""
        raise Unknown(
            f"Not known: {taken}{_why(row)}"
            f"{known_as_draft(almanac, row['model_id']) or known_beside(almanac, row['base_model_id'])}"
            f"{by_file(almanac, row['model_id'])}{among}"
        )
    by = "name"
    is_itself = row["model_id"].lower() == asked.strip().lower()
    if is_itself and named["dtype_id"] is None and _BITS.search(asked):  # (its files say more than its name)
        named = named | {"dtype_named": None, "note": None}
    if not named["dtype_named"] and is_packed_copy(almanac, row):
        by, named = "files", named | {"dtype_id": row["stored_format"], "dtype_named": row["stored_format"]}
    beyond = named.get("beyond_bytes")  # (a file from before there was such a column)
    notes = [(meant and meant[1]) or _taken(asked, row["model_id"], named, by)]
    if tuned:
        notes.append(f"That is the one that is tuned to answer; what it was made from: {visible(tuned['base_id'])}.")
    return Model(
        row["model_id"], visible(row["model_id"]), row, named["dtype_id"], " ".join(notes),
        named["dtype_named"], named["note"] or "", is_itself=is_itself,
        beyond_bytes=beyond or 0, is_own_mix=beyond is not None, tag=named.get("ollama_tag") or "",
        held_otherwise=otherwise, says_bits_alone=bool(_BITS.search(asked)) and _is_mix(named["dtype_id"]),
        **({} if is_itself else _unread(almanac, row, named)),
    )  # fmt: skip


def _is_mix(dtype_id: str | None) -> bool:
    return (dtype_id or "").startswith("gguf-")


def _why(row: Row) -> str:
    """Why nothing is counted of a model, in words of whoever asks: what its total leaves open stands behind."""
    note = visible(row["anatomy_note"] or "nothing but its name")
    if "unexplained" not in note:
        return note
    return f"what its files hold, since their published total is that of no format that is described here ({note})"


def _held_otherwise(almanac: Almanac, own: Row, named: Row) -> str:
    """That a repository taken as another in a packed format publishes more than that: each element that it lists takes a byte or more, but for
    a total that counts the parameters themselves; what layers that only predict may have is not loaded."""
    query = """
        SELECT model.model_id, $total - coalesce(model.predicting_parameter_count, 0) AS least_bytes, held.weights_bytes
        FROM weight AS held JOIN model ON model.model_id = held.model_id JOIN dtype ON dtype.dtype_id = held.dtype_id
        WHERE held.model_id = $base AND held.dtype_id = $dtype AND dtype.engine_id = 'vllm' AND dtype.bits_per_weight < 16
            AND $total < $parameters * model.parameter_count AND least_bytes > $more * held.weights_bytes
    """
    total, base, dtype = own["stored_parameter_count"], named["model_id"], named["dtype_id"]
    if None in (total, base, dtype):
        return ""
    shares = {"parameters": 1 - PARAMETERS_SHARE, "more": 1 + SAME_WEIGHTS}
    rows = almanac.rows(query, {"total": total, "base": base, "dtype": dtype} | shares)
    return "".join(
        f"its published total of {total:,} elements, a byte or more each, is above the {row['weights_bytes'] / 2**30:.1f} GiB that "
        f"{visible(base)} takes in {dtype}: it leaves parts in more bits, and which is not known. Packed whole it is: "
        f"vram-almanac fits {visible(base)} --format {dtype}"
        for row in rows
    )


def _unread(almanac: Almanac, base: Row, named: Row) -> dict[str, Any]:
    """Of a repository that is not in the almanac: what it may hold beyond its base as most pack that, and that nobody here has read it."""
    more = named.get("more_bytes")  # (a file from before there was such a column)
    if more is None:
        return {}
    note = "A repository of that name is not in this almanac"
    if not more:
        return {"more_bytes": 0, "more_note": f"{note}: counted with all its linear layers packed, as nearly all are."}
    query = "SELECT weights_bytes FROM weight WHERE model_id = $id AND dtype_id = $dtype"
    weights = almanac.value(query, {"id": base["model_id"], "dtype": named["dtype_id"]})
    if not weights:
        return {}
    reason = (named["more_reason"] or "").rpartition("makers also have ")[2]
    note += (
        f", and what it packs is not known. As most pack this model in {named['dtype_id']} its weights are {weights / 2**30:.1f} GiB; makers also "
        f"have {visible(reason)}, up to {more / 2**30:.1f} GiB more, which these figures have on top: an upper bound."
    )
    if predicting := base.get("predicting_parameter_count"):
        note += f" Not in them are layers that only predict (up to {2 * predicting / 2**30:.1f} GiB), which a server may hold with no draft asked."
    return {"more_bytes": more, "more_share": more / weights, "more_note": note}


def _taken(asked: str, model_id: str, named: dict[str, Any], by: str = "name") -> str:
    """What a name was taken for, where it is not the model's own."""
    parts = [] if model_id.lower() == asked.strip().lower() else [f"{visible(asked)} is taken as {visible(model_id)}"]
    if named["dtype_id"]:
        beyond, shown = named.get("beyond_bytes"), named["dtype_named"] or ""
        is_own = beyond is not None and shown.startswith("the mix of")
        parts.append(f"{parts.pop() if parts else f'By its {by} it is'} in {shown if is_own else named['dtype_id']}")
        if is_own and (beyond or 0) < _SHOWN_BYTES:
            parts.append(f"its file is no larger than {named['dtype_id']}, in which it is counted")
        elif is_own or (beyond or 0) >= _SHOWN_BYTES:
            parts.append(
                f"its file holds up to {(beyond or 0) / 2**30:.1f} GiB more than {named['dtype_id']}, which these figures have on top: an upper bound"
            )
    elif named["dtype_named"]:
        parts.append(f"{visible(named['dtype_named'])}, which its name speaks of, is no format of this almanac")
    return "; ".join(parts) + "." if parts else ""


def dtype_of(almanac: Almanac, asked: str, engine_id: str | None = None) -> str:
    """`Q4_K_M`, `gguf-q4_k_m`, `5.0bpw` or `bf16` as the almanac spells it; of a name that formats of several engines have that of `engine_id`, where it
    is one of them (mxfp4). Raises Wrong with the nearest."""
    # (bits per weight are how people speak of ExLlama's formats)
    said = re.sub(r"(?i)(?:\.00?)?\s?bpw$", "bpw", re.sub(r"(?i)^exl3[-_ ]|[-_ ]exl3$", "", asked.strip()))
    rows = almanac.rows(
        # (MLX has names that say bits alone, which are its own)
        "SELECT dtype_id FROM dtype WHERE lower($asked) = dtype_id OR lower($asked) = regexp_replace(dtype_id, $maker, '') "
        "AND (dtype_id NOT LIKE 'mlx-%' OR engine_id IS NOT DISTINCT FROM $engine) "
        "ORDER BY engine_id IS NOT DISTINCT FROM $engine DESC, len(dtype_id) LIMIT 1",
        {"asked": said, "maker": OF_ENGINE, "engine": engine_id},
    )
    if not rows and re.fullmatch(r"(?i)q[2-8]|awq|gptq", said):  # (as the name of a repository says it)
        rows = [named for named in [almanac.repository(f"it-{said}")] if named["dtype_id"]]
    if not rows:
        near = almanac.value(
            "SELECT nearest_ids('dtype', $asked)",
            {"asked": f"gguf-{asked}" if re.match(r"(?i)i?q\d", asked) else asked},
        )
        above = mix_above(almanac, asked)
        more = f". The next mix above it, by its name: --format {above}" if above else ""
        raise Wrong(f"{in_words(asked)} is no format of this almanac. Near it: {near}{more}")
    return rows[0]["dtype_id"]


def mix_above(almanac: Almanac, named: str) -> str | None:
    """The smallest of the mixes that are told whose bits are more than those that a mix of GGUF has in its name: Q5_K_M of UD-Q4_K_XL."""
    found = re.fullmatch(r"(?i)\s*(?:gguf-)?(?:ud-)?i?q([1-8])_\w+", named)
    if not found:
        return None
    return almanac.value(
        "SELECT arg_min(dtype_id, bits_per_weight) FROM (SELECT unnest(string_split(dtype_ids, ' ')) AS dtype_id FROM scenario_set "
        "WHERE purpose = 'lookup') JOIN dtype USING (dtype_id) "
        "WHERE try_cast(regexp_extract(dtype_id, '^gguf-q([0-9])', 1) AS BIGINT) > $bits",
        {"bits": int(found[1])},
    )


def named_program(asked: str) -> tuple[str, str | None]:
    """The name of a program and its version, where one is said."""
    found = _PROGRAM.fullmatch(asked.strip())
    return (found[1], found[2]) if found else (asked.strip(), None)


def program_of(almanac: Almanac, asked: str, phase_id: str, has_objective: bool = False) -> Program:
    """`ollama`, `vllm 0.27` or `vllm==0.27`. Raises Wrong for a program that is not known, or that does not do this; Unknown with the
    reason where nobody knows what it holds; with an objective its own rows say which releases are known."""
    name, version = named_program(asked)
    (row,) = almanac.rows(
        "FROM program_called($name, version := $version, phase_id := $phase)",
        {"name": name, "version": version, "phase": phase_id},
    )
    if row["unknown_reason"] and not (row["is_known"] and has_objective):
        others = phases_of(almanac, name, version) if row["is_known"] and phase_id != INFERENCE else []
        more = f". Known of it: {', '.join(f'--phase {phase}' for phase in others)}" if others else ""
        raise (Unknown if row["is_known"] else Wrong)(
            f"{'Not known: ' if row['is_known'] else ''}{visible(row['unknown_reason'])}{more}"
        )
    return Program(row["program_id"], version, row["engine_id"], row["dtype_id"])


def phases_of(almanac: Almanac, name: str, version: str | None) -> list[str]:
    """The trainings that are known of a program, of a version of it where one is said."""
    query = (
        "SELECT phase.phase_id FROM (SELECT unnest(['lora', 'qlora', 'full-finetune']) AS phase_id) AS phase, "
        "LATERAL (FROM program_called($name, version := $version, phase_id := phase.phase_id)) AS known "
        "WHERE known.unknown_reason IS NULL ORDER BY phase.phase_id"
    )
    return [row["phase_id"] for row in almanac.rows(query, {"name": name, "version": version})]


def kv_dtype_of(almanac: Almanac, asked: str) -> str:
    known = [row["kv_dtype_id"] for row in almanac.rows("SELECT kv_dtype_id FROM kv_dtype")]
    if asked.strip().lower() not in known:
        raise Wrong(f"{in_words(asked)} is no format of a cache: {', '.join(known)}")
    return asked.strip().lower()


def in_its_format(almanac: Almanac, model: Model, use: Use) -> tuple[Model, Use]:
    """The format that a model's name speaks of, where no other is asked for: of a training only what QLoRA trains over. A program that is named
    and runs that format on no card is asked for the formats that it runs, and the model's note says so."""
    if model.says_bits_alone and use.dtype_id is None:
        model = _in_bits_of_program(almanac, model, use)
    if model.dtype_id is None and model.dtype_named and use.dtype_id is None and not use.is_training:
        return _in_mix_above(almanac, model, use)
    if model.held_otherwise and not use.is_training and use.dtype_id in (None, model.dtype_id):
        raise Unknown(f"Not known: {model.held_otherwise}")
    if model.dtype_id is None or use.dtype_id is not None:
        return model, use
    if use.is_training and use.phase_id != "qlora":
        _check_base(almanac, model, use)
        return model, use
    if use.is_training and model.dtype_id not in ("nf4", "int8"):
        _check_base(almanac, model, use)
        return model, use
    if use.engine_id is not None and not use.is_training and not _runs(almanac, use.engine_id, model.dtype_id):
        name = almanac.value("SELECT any_value(name) FROM program WHERE program_id = $id", {"id": use.program})
        known = _why_not_run(almanac, use.engine_id, model.dtype_id)
        said = known or f"whether {name} runs {model.dtype_id}, and what it holds then, is not described here"
        return replace(model, left_reason=said), use
    return model, replace(use, dtype_id=model.dtype_id)


def _in_bits_of_program(almanac: Almanac, model: Model, use: Use) -> Model:
    """Of a name that says bits alone: the format of as many that the program runs, or that a training is over."""
    same = _SAME_BITS.get(str(model.dtype_id), ())
    if use.is_training:
        meant = next((one for one in same if one in ("nf4", "int8")), None) if use.phase_id == "qlora" else None
    elif use.engine_id is None or _runs(almanac, use.engine_id, str(model.dtype_id)):
        return model
    else:
        meant = next((one for one in same if _runs(almanac, str(use.engine_id), one)), None)
    if meant is None:
        return model
    return replace(model, dtype_id=meant, dtype_named=meant, note=model.note.replace(str(model.dtype_id), meant))


def _check_base(almanac: Almanac, model: Model, use: Use) -> None:
    """Raises Unknown for a training over what AWQ, GPTQ and the like packed: nobody counted that, and the original's figures are another question's."""
    (held,) = almanac.rows("SELECT engine_id, bits_per_weight FROM dtype WHERE dtype_id = $id", {"id": model.dtype_id})
    # (fp8 and MXFP4 are unpacked as they are loaded; files for other programs are told of as such)
    is_served = held["engine_id"] == "vllm" and (held["bits_per_weight"] or 16) < 16
    if not is_served or model.dtype_id in UNPACKED or use.is_in_own_format:
        return
    query = "SELECT lead_model_id FROM work WHERE model_id = $id"
    original = almanac.value(query, {"id": model.model_id}) or model.model_id
    is_original = original == model.model_id and model.row["stored_format"] == model.dtype_id
    asked = "" if is_original else f". Of the original: vram-almanac fits {visible(original)} --phase {use.phase_id}"
    raise Unknown(f"Not known: what a training over a base in {model.dtype_id} takes is not counted here{asked}")


def _in_mix_above(almanac: Almanac, model: Model, use: Use) -> tuple[Model, Use]:
    """A mix of GGUF that nobody described, in the next one above it. Raises Unknown where none is."""
    named = visible(model.dtype_named or "").removeprefix("gguf-").upper()
    if use.engine_id not in (None, "llama.cpp") or not re.fullmatch(r"(UD-)?I?Q[1-8]_\w+", named):
        return model, use
    above = mix_above(almanac, named)
    if above is None:
        raise Unknown(
            f"Not known: {named}, which its name speaks of, is no format of this almanac, and no mix above it is. In those that are it is: "
            f"vram-almanac fits {model.shown} --format Q8_0"
        )
    why = f"{visible(model.format_note)}." if model.format_note and named.startswith("UD-") else ""
    said = f"{why} Told is the next mix above it, by its name; how large its own file is, its repository says.".strip()
    note = " ".join(filter(None, (model.note, said)))
    return replace(model, note=note, dtype_named=named, is_above=True), replace(use, dtype_id=above)


def is_left(model: Model, use: Use) -> bool:
    """Whether a model is told in other formats than the one that its name speaks of (see `in_its_format`)."""
    return model.dtype_id is not None and use.dtype_id is None and use.engine_id is not None and not use.is_training


def is_unread(model: Model, use: Use) -> bool:
    """Whether what is asked about is a repository that is not in the almanac, in a format that makers may pack in several ways."""
    return model.more_bytes is not None and not use.is_training and use.dtype_id == model.dtype_id


def _runs(almanac: Almanac, engine_id: str, dtype_id: str) -> bool:
    """Whether an engine is known to run a format on any card."""
    query = "SELECT bool_or(runs) FROM runs_on WHERE engine_id = $engine AND dtype_id = $dtype AND phase_id = $phase"
    return bool(almanac.value(query, {"engine": engine_id, "dtype": dtype_id, "phase": INFERENCE}))


def _why_not_run(almanac: Almanac, engine_id: str, dtype_id: str) -> str | None:
    """What sources say of an engine with a format that it is known to run on no card."""
    query = (
        "SELECT mode(how ORDER BY gpu_id) FROM runs_on "
        "WHERE engine_id = $engine AND dtype_id = $dtype AND phase_id = $phase AND runs IS NULL"
    )
    return almanac.value(query, {"engine": engine_id, "dtype": dtype_id, "phase": INFERENCE})


def check_use(model: Model, use: Use) -> None:
    """Raises Wrong for a context that the model does not read."""
    most = model.row["max_context_tokens"]
    if use.context_tokens is not None and most is not None and use.context_tokens > most:
        raise Wrong(
            f"{model.shown} reads {most:,} tokens at most; --context {use.context_tokens} is beyond that (--context {most} is all of it)"
        )


def check_draft(draft: Model) -> None:
    """Raises Unknown for a draft that nobody here has read and that may hold more than its format, which is not counted of a draft."""
    held = max(draft.more_bytes or 0, draft.beyond_bytes)
    if held > _SHOWN_BYTES:
        raise Unknown(
            f"Not known: the draft's files may hold up to {held / 2**30:.1f} GiB more than {draft.shown} in {draft.dtype_id}, which is not counted "
            f"here. In that format it is: --draft {draft.shown}"
        )


def check_file(model: Model, use: Use) -> None:
    """Raises Unknown for a file that holds more than its format, or may, where that is counted of one model on like cards alone."""
    if model.more_bytes and is_unread(model, use):
        raise Unknown(
            f"Not known: a repository of that name is not in this almanac, and may hold up to {model.more_bytes / 2**30:.1f} GiB more than "
            f"{model.shown} packed as most are, which is not counted here. Packed so it is: vram-almanac with {model.shown} --format {use.dtype_id}"
        )
    if model.beyond_bytes and not use.is_training and use.dtype_id == model.dtype_id:
        raise Unknown(
            f"Not known: the file of that name holds up to {model.beyond_bytes / 2**30:.1f} GiB more than {use.dtype_id}, which is not counted "
            f"here. In that format it is: vram-almanac with {model.shown} --format {use.dtype_id}"
        )
