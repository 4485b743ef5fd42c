"""What a source of a config leaves out, filled in where it shows in the published total: switches, the class, the padding's rows.

A filling changes the config and never the count: the total must equal what the changed config builds, to the element.
Only what the config does not state is filled in, or states as a default of its class; a model whose config had to be filled
in is `matched` at best.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.anatomy import read_config
from pipeline.anatomy.class_defaults import class_defaults
from pipeline.anatomy.rows import Anatomy, ContradictoryConfig, UnknownAnatomy
from pipeline.confirm.formats import is_quantised
from pipeline.confirm.stored import extras_by_sum
from pipeline.hub.record import Record

# Formats that a repository's name may speak of while its config is silent: then `dtype` is not believed.
NAMED_FORMAT = re.compile(
    r"(?i)(?<![a-z])(nv|mx)?fp[468]|(?<![a-z])(u?int[248]|[2-8]-?bits?|w[48]a|awq|gptq|bnb|exl\d)"
)
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
_PADDED = ("mpnet", "roberta", "xlm-roberta", "camembert")  # positions are counted from the padding index + 1
_V41_TOWER = {"num_hidden_layers": 32, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 2816}
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
            yield "three draft stages and the vision tower of DeepSeek-V4.1", draft | {"vision_config": _V41_TOWER}
    if anatomy.model_type == "nemotron_h" and "num_nextn_predict_layers" not in record.config:
        yield "one prediction layer", {"num_nextn_predict_layers": 1}
    if anatomy.model_type == "step3p7" and "attention_other_setting" not in record.config:
        yield "sliding layers of 96 heads", {"attention_other_setting": {"num_attention_heads": 96}}
    last_mark = record.config.get("audio_stream_eos_id")
    if anatomy.model_type == "higgs_audio_v2" and record.config_kind in _TABLES and type(last_mark) is int:
        # the class's codebooks are too short for the marks of beginning and end that it names itself
        yield f"codebooks of {last_mark + 1:,} rows", {"codebook_size": last_mark + 1}
    if anatomy.model_type == "laguna" and record.config_kind in (*_TABLES, "sibling"):
        yield from _sliding_heads(record, anatomy)
    if anatomy.model_type == "gpt_neox" and "rotary_pct" not in record.config:
        yield "rotary positions over whole heads", {"rotary_pct": 1.0}
    kinds = record.config.get("layer_types")
    if record.config_kind in _TABLES and isinstance(kinds, list) and {*kinds[-1:]} == {"linear_attention"}:
        yield "a last layer of full attention", {"layer_types": [*kinds[:-1], "full_attention"]}
    yield from _nested_defaults(record)
    yield from _more_rows(record, anatomy, is_quantised_name)
    positions = record.config.get("max_position_embeddings")
    if anatomy.model_type in _PADDED and record.config_kind in _TABLES and isinstance(positions, int):
        what = f"{positions + 2} rows of positions, of which the first two belong to padding"
        yield what, {"max_position_embeddings": positions + 2}


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
    quoted = record.config.get("thinker_config")
    if record.config_kind != "quoted" or record.config.get("model_type") != "qwen3_omni_moe":
        return
    if not isinstance(quoted, Mapping):
        return
    text = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128}
    text |= {"moe_intermediate_size": 768, "vocab_size": 152064}
    thinker = {}
    for name, own in {
        "text_config": text,
        "audio_config": {"output_dim": 2048},
        "vision_config": {"out_hidden_size": 2048},
    }.items():
        part = quoted.get(name)
        thinker[name] = own | (dict(part) if isinstance(part, Mapping) else {})
    talker = {
        "num_code_groups": 16,
        "text_config": {"head_dim": 128, "shared_expert_intermediate_size": 768},
        "code_predictor_config": {"num_code_groups": 16},
    }
    try:
        whole = read_config({"talker_config": talker, **record.config, "thinker_config": {**quoted, **thinker}})
    except (UnknownAnatomy, ContradictoryConfig):
        return
    yield "a language model of 32 heads of 128 and 152,064 rows, and a talker of 16 codes a frame", whole


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


def _nested_defaults(record: Record) -> Iterator[tuple[str, dict]]:
    """Defaults of a class that stand in for the values of the model itself, where those are known from elsewhere."""
    text, vision = record.config.get("text_config"), record.config.get("vision_config")
    if record.config_kind not in _TABLES or not isinstance(text, Mapping) or not isinstance(vision, Mapping):
        return
    adapter = record.config.get("adapter_config")
    if isinstance(adapter, Mapping) and "text_hidden_size" in adapter:  # Molmo 2's is the one of another size
        own = {"text_hidden_size": text.get("hidden_size"), "intermediate_size": text.get("intermediate_size")}
        yield "an adapter of the text's widths", {"adapter_config": {**adapter, **own}}
    if text.get("vocab_size") == 32000:  # LLaVA's converted files add tokens for images and round up
        yield "a vocabulary of 32,064", {"text_config": {**text, "vocab_size": 32064}}
    if "index_kpool" in text and "out_hidden_size" in vision:  # SGLang names pools of 4 keys for GLM-5.3-Flash
        own = {"text_config": {**text, "index_kpool": 4}}
        own["vision_config"] = {**vision, "out_hidden_size": text.get("hidden_size")}
        yield "pools of 4 index keys, and a vision tower that ends in the text's width", own


def without(anatomy: Anatomy, role: str) -> Anatomy:
    """The anatomy without the tensors of one role and their biases, which follow them."""
    kept, follows = [], False
    for tensor in anatomy.tensors:
        follows = tensor.role == role or (follows and tensor.role == "bias")
        if not follows:
            kept.append(tensor)
    return replace(anatomy, tensors=tuple(kept))
