"""What a source of a config leaves out, filled in where it shows in the published total: switches, the class, the padding's rows.

A filling changes the config and never the count: the total must equal what the changed config builds, to the element.
Only what the config does not state is filled in, or states as a default of its class; a model whose config had to be filled
in is `matched` at best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pipeline.anatomy import read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.confirm.formats import is_quantised
from pipeline.confirm.gaps import fillings_of
from pipeline.confirm.stored import extras_by_sum
from pipeline.hub.record import Record

# Formats that a repository's name may speak of while its config is silent: then `dtype` is not believed.
NAMED_FORMAT = re.compile(
    r"(?i)(?<![a-z])(nv|mx)?fp[468]|(?<![a-z])(u?int[248]|[2-8]-?bits?|w[48]a|awq|gptq|bnb|exl\d)"
)
# Tasks whose input a language model alone does not take.
SENSING = (
    "image-text-to-text", "image-to-text", "visual-question-answering", "document-question-answering", "any-to-any",
    "visual-document-retrieval", "video-text-to-text", "audio-text-to-text",
)  # fmt: skip
# Switches that sources of shapes tend to leave out, and that leave their trace in a count.
_SWITCHES = (
    {"attention_bias": True},
    {"attention_bias": True, "use_qk_norm": True},
    {"attention_bias": True, "mlp_bias": True},
    {"attention_bias": True, "lm_head_bias": True},
    {"use_qk_norm": True},
    {"attention_bias": False},
)
_CLASSES = {
    "audio-tower": ("ForCTC",),
    "decoder": ("ForConditionalGeneration", "ForSequenceClassification"),
    "text": ("Model", "ForMaskedLM", "ForSequenceClassification"),
}
DRAFT = "draft"  # the kind of config that a draft of stages makes, in checkpoint_gap.csv
_MOST_TOKENS = 64  # that a fine-tuned model adds to the vocabulary of its base
_TABLES = ("library_defaults", "library_table")


def fillings(record: Record, anatomy: Anatomy) -> Iterator[tuple[str, Anatomy]]:
    """The anatomies of the config with one thing filled in, each with words for what that is."""
    for what, changes in _changes(record, anatomy):
        try:
            filled = read_config({**record.config, **changes})
        except (UnknownAnatomy, ContradictoryConfig):
            continue
        if (filled.tensors, filled.stored_extra) != (anatomy.tensors, anatomy.stored_extra):
            yield what, filled


def may_be_quantised(record: Record) -> bool:
    """Whether anything but its total speaks of a quantised checkpoint: the Hub's tag, its name, its config, packed elements."""
    is_named = record.quantization_hint is not None or NAMED_FORMAT.search(record.model_id) is not None
    return is_named or record.parameters_kind == "exact_packed_elements" or is_quantised(record.config or {})


def _changes(record: Record, anatomy: Anatomy) -> Iterator[tuple[str, dict]]:
    is_quantised_name = record.quantization_hint is not None or NAMED_FORMAT.search(record.model_id) is not None
    for switches in _SWITCHES:
        if "mlp_bias" in switches and is_quantised_name:
            continue  # a bias and an 8-bit scale per row count the same
        if not any(name in record.config for name in switches):
            state = " and ".join(f"{name}{'' if value else ' off'}" for name, value in switches.items())
            yield state, switches
    prefix = re.match(r"\w+?(?=For[A-Z]|Model$)", anatomy.architecture or "")
    if not record.config.get("architectures") and prefix:
        held = {t.component for t in anatomy.tensors} | {t.tensor_class for t in anatomy.tensors}
        for suffix in next((classes for part, classes in _CLASSES.items() if part in held), ()):
            if prefix[0] + suffix != anatomy.architecture:
                yield f"the class {prefix[0]}{suffix}", {"architectures": [prefix[0] + suffix]}
    elif record.config_kind == "sibling" and prefix and anatomy.architecture.endswith("Classification"):
        yield f"the class {prefix[0]}ForCausalLM", {"architectures": [f"{prefix[0]}ForCausalLM"]}
    if anatomy.model_type == "deepseek_v4" and "dspark_target_layer_ids" not in record.config:
        for rank in (256, 512):
            targets = list(range(max(anatomy.layer_count - 3, 0), anatomy.layer_count))
            draft = {"dspark_target_layer_ids": targets, "dspark_markov_rank": rank}
            yield "three draft stages", draft
            for filling in fillings_of(anatomy.model_type, DRAFT):
                if found := filling.changed(draft):
                    yield f"three draft stages and {found[0]}", found[1]
    if anatomy.model_type == "laguna" and record.config_kind in (*_TABLES, "sibling"):
        yield from _sliding_heads(record, anatomy)
    kinds = record.config.get("layer_types")
    if record.config_kind in _TABLES and isinstance(kinds, list) and {*kinds[-1:]} == {"linear_attention"}:
        yield "a last layer of full attention", {"layer_types": [*kinds[:-1], "full_attention"]}
    for filling in fillings_of(anatomy.model_type, record.config_kind):
        if found := filling.changed(record.config):
            yield found
    yield from _more_rows(record, anatomy, is_quantised_name)


def _more_rows(record: Record, anatomy: Anatomy, is_quantised: bool) -> Iterator[tuple[str, dict]]:
    """Tables that are longer in this checkpoint than in the sibling or the class: positions, and a few tokens more."""
    more = (record.stored_parameter_count or 0) - anatomy.parameter_count
    names = [n for n in ("n_positions", "max_position_embeddings") if n in class_defaults().get(anatomy.model_type, {})]
    table = next((t for t in anatomy.tensors if (t.component, t.role) == ("text", "position_embedding")), None)
    if table and table.in_features and names and not any(name in record.config for name in names):
        for beside in extras_by_sum(anatomy, has_cache_scales=False):
            rows, rest = divmod(more - beside, table.in_features)
            positions = table.out_features + rows
            if rest == 0 < rows and positions.bit_count() == 1:  # tables of positions are as long as a power of two
                yield f"{positions:,} positions", {names[0]: positions}
    vocabulary, stated = anatomy.vocab_size, record.config.get("vocab_size")
    if record.config_kind == "sibling" and not is_quantised and vocabulary is not None and stated == vocabulary:
        widths = [t.in_features or 1 for t in anatomy.tensors if t.component == "text" and t.out_features == vocabulary]
        rows, rest = divmod(more, max(sum(widths), 1))
        if rest == 0 < rows <= _MOST_TOKENS:
            yield f"a vocabulary of {vocabulary + rows:,}", {"vocab_size": vocabulary + rows}


def wholes(record: Record) -> Iterator[tuple[str, Anatomy]]:
    """Anatomies of a config that determines none by itself, with the parts that its source does not quote: a total decides."""
    for filling in fillings_of(record.config.get("model_type"), record.config_kind):
        if found := filling.changed(record.config):
            try:
                yield found[0], read_config(found[1])
            except (UnknownAnatomy, ContradictoryConfig):
                continue


def _sliding_heads(record: Record, anatomy: Anatomy) -> Iterator[tuple[str, dict]]:
    """Laguna: the class's default has full attention only; of four layers three slide, with heads of their own number."""
    kinds = ["sliding_attention" if i % 4 else "full_attention" for i in range(anatomy.layer_count)]
    heads, shared = record.config.get("num_attention_heads"), record.config.get("num_key_value_heads")
    if "sliding_attention" in (record.config.get("layer_types") or []):
        return
    if type(heads) is not int or type(shared) is not int or not 0 < shared <= heads < 1024:
        return
    for count in range(shared, 2 * heads + 1, shared):
        counts = [heads if kind == "full_attention" else count for kind in kinds]
        what = f"three layers of four that slide, with {count} heads"
        yield what, {"layer_types": kinds, "num_attention_heads_per_layer": counts}


def without(anatomy: Anatomy, role: str) -> Anatomy:
    """The anatomy without the tensors of one role and their biases, which follow them."""
    kept, follows = [], False
    for tensor in anatomy.tensors:
        follows = tensor.role == role or (follows and tensor.role == "bias")
        if not follows:
            kept.append(tensor)
    return replace(anatomy, tensors=tuple(kept))
