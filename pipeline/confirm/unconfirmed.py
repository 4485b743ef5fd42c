"""A shape that nothing confirms, and that is likely all the same: what is answered with a wider error band, and what is not.

Where no exact total is published, a shape that is not a model's own can be compared with nothing. Six are let through, as `derived`:

    table      what a library that names this very checkpoint says of it
    dims       the largest of the known models that share the type and all published dims with it
    base       the model that its card names as the one it was made of, where the repository holds a copy of it in another container,
               or its parts as single files (repository_holds.csv, which names the original of copies that the Hub says nothing of, too)
    packed     the model that it was made of and has the listed dims of, where a source says what of it is packed (packed_like.csv)
    listed     the dims that a third party lists with a width of its feed-forward, where they are all that weighs: of an encoder; or the largest
               of the known models of the type that have them all

and none of them where something speaks against it: an estimate of its size or a size in its name that is another, a task that needs a
tower which the shape has not, a type with experts (of which no published dim tells the number) without a size in its name, dims that
known models of different sizes share. How often each would have been right where the total is known: tests/oracle/count_unconfirmed.py;
the worst that was too small makes the band, constant error_band_unconfirmed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from pipeline.anatomy import read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.confirm.completing import DIMS_ONLY, completions, states_width, typed
from pipeline.confirm.filling import SENSING
from pipeline.confirm.grade import Graded, basis, derived
from pipeline.confirm.lenders import Confirmed, Lenders
from pipeline.confirm.packed_like import as_published, is_packed
from pipeline.confirm.repository_kind import COPY, container_named, kind_of, parts_of
from pipeline.confirm.stored import TOWERS
from pipeline.hub.record import Record

NOT_CONFIRMED = "not confirmed: no exact total is published"
NAMED = (0.85, 1.35)  # the count as a multiple of a size in a name: names leave out the embedding, and round down
ESTIMATED = 0.25  # between a third party's estimate and the count: those that are published are up to a fifth off
SPREAD = 0.02  # between models of the same dims: they differ by a head, a pooler, a table of positions
_TABLES = ("library_table", "library_defaults")
_BY_DIMS = ("sibling", "reconstructed")
_SIZE = re.compile(r"(?i)(?<![a-z0-9.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])")
_UNITS = {"b": 1e9, "m": 1e6}
# Widths that classes have beside the listed ones: whose default is one model's and not another's.
_OPEN = frozenset(["embedding_size"])
# Tasks that an encoder is fine-tuned for: a head of labels, or none.
_ENCODERS = (
    "text-classification", "token-classification", "question-answering", "fill-mask", "feature-extraction", "sentence-similarity",
    "text-ranking", "zero-shot-classification", "image-classification", "zero-shot-image-classification", "image-feature-extraction",
    "audio-classification", "automatic-speech-recognition",
)  # fmt: skip
# What senses, in names of repositories.
_SENSES = re.compile(r"(?i)(?<![a-z])(vl|vlm|llava|vision|visual|omni|ocr|audio|asr|speech|tts)(?![a-z])")
# What a repository made of another is named, where it is not a copy of the whole.
_PARTS = re.compile(
    r"(?i)(?<![a-z])q?(lora|adapter|draft|eagle\d?|d?flash\d?|dspark|mtp|assistant|mmproj|vae|tokenizer)(?![a-z])"
)


def unconfirmed(lenders: Lenders, record: Record, found: Graded) -> Confirmed | None:
    """The record and its grade by a shape that is likely its own, or None where there is none."""
    if found.anatomy or record.stored_parameter_count or record.header:
        return None
    try:
        for shape, words in _shapes(lenders, record):
            anatomy = read_config(shape.config)
            # a checkpoint that is named, by a table or as the one that this is a copy of, says how many experts there are
            is_named = record.config_kind in _TABLES or record.config is None
            is_packed = record.config is None and _program(record) is not None
            if not _speaks_against(lenders, record, anatomy, is_named=is_named, is_packed=is_packed):
                return shape, replace(derived(shape, anatomy, words), is_confirmed=False)
    except (UnknownAnatomy, ContradictoryConfig):
        pass  # what nobody can read has the reason that it had
    return None


def _shapes(lenders: Lenders, record: Record) -> Iterator[tuple[Record, str]]:
    """The record with the shape that it is taken to have, and words for whose that is."""
    if record.config_kind in _TABLES:
        yield record, f"{basis(record)}, {NOT_CONFIRMED}"
    elif record.config_kind in _BY_DIMS:
        yield from _of_dims(lenders, record)
    elif (record.config is None or record.config_kind == DIMS_ONLY) and (lender := _copied(lenders, record)):
        how = f"is a copy for {_program(record)}, where other programs load the original"
        yield lenders.lent(record, lender), f"As {lender.model_id}, of which it {how}; {NOT_CONFIRMED}"
    elif record.config is None and (lender := lenders.known.get((parts_of(record.model_id) or "").lower())):
        yield (
            lenders.lent(record, lender),
            f"As {lender.model_id}, whose parts it holds as single files; {NOT_CONFIRMED}",
        )
    elif record.config is None and (lender := _tuned(lenders, record)):
        yield lenders.lent(record, lender), f"As {lender.model_id}, which it was fine-tuned from; {NOT_CONFIRMED}"
    elif record.config_kind == DIMS_ONLY and is_packed(record.model_id) and (lender := lenders.base_of(record)):
        lent = as_published(lenders.lent(record, lender))
        yield lent, f"As {lender.model_id}, which it was packed from; {NOT_CONFIRMED}"
    elif record.config_kind == DIMS_ONLY:
        yield from _listed(lenders, record)


def _listed(lenders: Lenders, record: Record) -> Iterator[tuple[Record, str]]:
    """What a third party lists of its dims: an encoder's are all that weighs; of others, models that are known and have them all."""
    if kind_of(record.library) or not states_width(record.config, record.ffn_width_reported):
        return
    record = replace(record, config=typed(record.config))
    if own := _encoder(record):
        yield own, f"Its dims as a third party lists them, the rest as its class takes it; {NOT_CONFIRMED}"
        return
    relatives = [(lender, read_config(lender.config)) for lender in lenders.with_listed(record)]
    if not relatives:
        return
    largest = max(relatives, key=lambda known: (_weight(known[1]), known[0].model_id))
    counts = [anatomy.parameter_count for _, anatomy in relatives]
    if max(counts) <= (1 + SPREAD) * min(counts) or sizes_named(record.model_id):
        yield lenders.lent(record, largest[0]), f"As {largest[0].model_id}, which has its dims; {NOT_CONFIRMED}"


def _encoder(record: Record) -> Record | None:
    """Its dims as a whole config, where it is an encoder and what they leave open weighs nothing."""
    found = []
    for own, _ in completions(record, of_one_family=True):
        with suppress(UnknownAnatomy, ContradictoryConfig):
            found.append((read_config(own).parameter_count, own))
    if not found or not all(_is_plain_encoder(read_config(own)) for _, own in found):
        return None
    found.sort(key=lambda read: read[0])
    if found[-1][0] > (1 + SPREAD) * found[0][0]:
        return None
    own = found[-1][1]
    return replace(record, config=own, config_inferred_fields=tuple(sorted(own.keys() - record.config.keys())))


def _is_plain_encoder(anatomy: Anatomy) -> bool:
    """Whether listed dims tell all of such a shape: nothing is routed, nothing senses, no class's width is another model's."""
    kinds = {t.operator for t in anatomy.tensors} | {t.tensor_class for t in anatomy.tensors}
    is_encoder = anatomy.attention and all(layer.mechanism == "bidirectional" for layer in anatomy.attention)
    open_widths = class_defaults().get(anatomy.model_type, {}).keys() & _OPEN
    return bool(is_encoder) and not kinds & {"expert", "router", *TOWERS} and not open_widths


def _tuned(lenders: Lenders, record: Record) -> Record | None:
    """The encoder that a repository of a whole model in the usual files was fine-tuned from. What writes on may have gained tokens, or been
    merged or quantised, of which only a total tells."""
    is_whole = kind_of(record.library) is None and not _PARTS.search(record.model_id.partition("/")[2])
    lender = lenders.base_of(record) if is_whole and record.pipeline_tag in _ENCODERS else None
    if lender is None:
        return None
    anatomy = read_config(lender.config)
    is_encoder = anatomy.attention and all(layer.mechanism == "bidirectional" for layer in anatomy.attention)
    return lender if is_encoder else None


def _copied(lenders: Lenders, record: Record) -> Record | None:
    """What a repository holds a copy of, and no part of it: an adapter or a draft can be in the same container."""
    is_whole = _program(record) and not _PARTS.search(record.model_id.partition("/")[2])
    if not is_whole:
        return None
    return lenders.base_of(record) or lenders.known.get((parts_of(record.model_id) or "").lower())


def _program(record: Record) -> str | None:
    """What loads the copy that a repository holds: by the library that the Hub names, or, where it names none, by its name."""
    kind = kind_of(record.library)
    if kind is not None:
        return kind.program if kind.kind == COPY else None
    return container_named(record.model_id) if parts_of(record.model_id) else None


def _of_dims(lenders: Lenders, record: Record) -> Iterator[tuple[Record, str]]:
    """Its own config as it was put together, unless a model of the same dims (and of the same base, where that is known) is larger."""
    own, relatives = read_config(record.config), lenders.of_dims(record)
    of_one_base = [known for known in relatives if record.base_model_id == known[0].base_model_id]
    relatives = (of_one_base if record.base_model_id else None) or relatives
    if not relatives and not sizes_named(record.model_id):
        return
    largest = max(relatives, key=lambda known: (_weight(known[1]), known[0].model_id), default=(record, own))
    counts = [own.parameter_count, *(anatomy.parameter_count for _, anatomy in relatives)]
    if max(counts) > (1 + SPREAD) * min(counts) and not sizes_named(record.model_id):
        return
    if _weight(own) >= _weight(largest[1]):
        yield record, f"{basis(record)}, {NOT_CONFIRMED}"
    else:
        yield lenders.lent(record, largest[0]), f"As {largest[0].model_id}, which has its dims; {NOT_CONFIRMED}"


def _weight(anatomy: Anatomy) -> tuple[int, int]:
    """What orders shapes: parameters, then what they cache where no window bounds it."""
    unbounded = [a for a in anatomy.attention if not a.window_tokens]
    return anatomy.parameter_count, sum(a.layer_count * a.elements_per_token for a in unbounded)


def _speaks_against(
    lenders: Lenders, record: Record, anatomy: Anatomy, *, is_named: bool, is_packed: bool = False
) -> bool:
    count, named = anatomy.parameter_count, sizes_named(record.model_id)
    # (an estimate is made of the size of files, which says nothing of a copy that packs them)
    estimate = None if is_packed else record.approximate_parameter_count
    if estimate and not 1 / (1 + ESTIMATED) <= count / estimate <= 1 + ESTIMATED:
        return True
    if named and not any(NAMED[0] <= count / size <= NAMED[1] for size in named):
        return True
    if not named and not is_named and lenders.may_have_experts(anatomy):
        return True
    is_sensing = record.pipeline_tag in SENSING or _SENSES.search(record.model_id.partition("/")[2])
    return bool(is_sensing) and not {t.tensor_class for t in anatomy.tensors} & set(TOWERS)


def sizes_named(model_id: str) -> list[float]:
    """Parameters that the name of a repository speaks of: 8B, 125m, 8x7B. Not those that are active, or effective: A3B, E4B."""
    name = model_id.partition("/")[2].replace("_", "-")
    return [int(times or 1) * float(size) * _UNITS[unit.lower()] for times, size, unit in _SIZE.findall(name)]
