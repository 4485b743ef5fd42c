"""What a quantisation config says of a module by its name: the format that it is held in, or that it is left in 16 bits.

Every quantiser has words of its own for what it takes and what it leaves out. `recipe` reads them into one form, an ordered list of
rules of which the first that matches decides, and a default for every other matrix:

    compressed-tensors   ignore: names, `re:` patterns; config_groups.*.targets: names, `re:` patterns, classes of modules
    Model Optimizer      ignore, exclude_modules: names and wildcards, and all that lies below them; quantized_layers: a format for each
    fp8, fbgemm_fp8, bitsandbytes, quanto, MXFP4 (Transformers)
                         modules_to_not_convert, ignored_layers, llm_int8_skip_modules: a pattern up to a module's boundary, or how it ends
    AWQ                  modules_to_not_convert: part of a name
    GPTQ                 modules_in_block_to_quantize: the end of what is taken; dynamic: `-:` leaves out, `+:` changes; lm_head
    Quark                exclude: names, wildcards, `re:`; layer_quant_config, layer_type_quant_config, global_quant_config
    AutoRound            extra_config, layer_config: names and patterns with bits of their own, 16 and more left out

Sources: compressed-tensors 0.20.0 (utils/match.py), Transformers 5.23.0 (quantizers/quantizers_utils.py), Model Optimizer 0.47.0, Quark 0.13,
AutoRound 0.16.1, GPTQModel 7.7.0, AutoAWQ, and vLLM, which reads them all (model_executor/layers/quantization).
A format that the almanac does not describe, and a class of modules that it does not know, leave the whole undecided: Undecided says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.confirm.formats import format_of_weights, parts_of, quantised_format
from pipeline.confirm.module_patterns import (
    BEGINNING,
    LINEAR,
    LONGEST,
    OF_MANY,
    PLAIN,
    Test,
    Undecided,
    begins_with,
    by_either,
    by_part,
    by_place,
    by_quark,
    by_rule_of_gptq,
    by_skip,
    by_target,
    by_wildcard,
)

_ALGORITHMS = {
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "FP8": "fp8",
    "FP8_PB_WO": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
}


@dataclass(frozen=True)
class Rule:
    """Names of modules that are held in one format; `dtype_id` is None where they stay in 16 bits.

    `patterns` as they stand in the config, `matcher` what one of them means, `matches` whether any of them is of a name.
    """

    patterns: tuple[str, ...]
    matcher: Callable[[str], Test]
    matches: Test
    dtype_id: str | None


@dataclass(frozen=True)
class Recipe:
    rules: tuple[Rule, ...]
    default: str | None  # of matrices that no rule names; None: they stay in 16 bits

    @property
    def patterns(self) -> Iterator[str]:
        return (pattern for rule in self.rules for pattern in rule.patterns)

    def format_of(self, names: Iterable[str]) -> tuple[str | None, bool]:
        """The format of a module that has one of these names, and whether a rule names it."""
        names = tuple(names)
        for rule in self.rules:
            if any(map(rule.matches, names)):
                return rule.dtype_id, True
        return self.default, False


def _rule(pattern: str, matcher: Callable[[str], Test], dtype_id: str | None) -> Rule:
    return Rule((pattern,), matcher, matcher(pattern), dtype_id)


def recipe(config: Mapping[str, Any]) -> Recipe | None:
    """The recipe of the config's quantiser, or None where it names none. Raises Undecided."""
    for part in parts_of(config):
        if isinstance(part.get("quantization"), Mapping):
            return (
                None  # of MLX, which repeats it as quantization_config for other readers: pipeline/confirm/formats.py
            )
        given = next(
            (part[k] for k in ("quantization_config", "compression_config") if isinstance(part.get(k), Mapping)), None
        )
        if given is None:
            continue
        if isinstance(part.get("expert_dtype", given.get("expert_dtype")), str):
            return _with_experts(part, given)
        inner = given.get("quantization")  # Model Optimizer's own file, put in as it is
        return _read({**given, **inner} if isinstance(inner, Mapping) else given)
    return None


def with_experts(kind: str) -> Recipe:
    """8-bit floats, and routed experts in a format of 4 bits: DeepSeek-V4. What makes its index's weights is left in 16 bits, and so is what
    compresses its keys, which no list names (vLLM 0.26.0, models/deepseek_v4: quant_config=None)."""
    return Recipe((_rule("*.experts*", by_wildcard, kind), _rule("*.weights_proj", by_wildcard, None)), "fp8")


def _with_experts(part: Mapping[str, Any], given: Mapping[str, Any]) -> Recipe:
    is_told = part.get("expert_dtype") == "fp4" and given.get("quant_method") == "fp8"
    if not is_told or given.get("weight_block_size") != [128, 128]:
        raise Undecided("its experts are of another format than the rest")
    return with_experts("nvfp4" if given.get("moe_quant_algo") == "NVFP4" else "mxfp4")


def _read(given: Mapping[str, Any]) -> Recipe:
    method = given.get("quant_method")
    method = method.lower() if isinstance(method, str) else ""
    if method == "quark":
        return _quark(given)
    if "auto-round" in method or "autoround" in method:
        return _auto_round(given)
    if method in ("gptq", "gptqmodel"):
        return _gptq(given)
    if method == "awq":
        whole = _known(quantised_format(given), "AWQ")
        return Recipe(tuple(_rules(given, ("modules_to_not_convert",), by_part)), whole)
    if method in ("compressed-tensors", "modelopt", "modelopt_fp4", "modelopt_mixed", ""):
        return _grouped(given, by_wildcard if method.startswith("modelopt") or _is_modelopt(given) else by_target)
    whole = _known(quantised_format(given), f"the quantiser '{method[:40]}'")
    lists = ("modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "ignore", "exclude_modules")
    return Recipe(tuple(_rules(given, lists, by_skip)), whole)


def _is_modelopt(given: Mapping[str, Any]) -> bool:
    producer = given.get("producer")
    return isinstance(given.get("quant_algo"), str) or (
        isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    )


def _known(dtype_id: str | None, what: str) -> str:
    if dtype_id is None:
        raise Undecided(f"{what} packs weights in a form that is not described")
    return dtype_id


def _texts(value: Any) -> Iterator[str]:
    """The texts of a list, however it is nested."""
    if isinstance(value, str):
        yield value[:LONGEST]
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _rules(
    given: Mapping[str, Any], lists: Iterable[str], matcher: Callable[[str], Test], dtype_id: str | None = None
) -> Iterator[Rule]:
    patterns = [text for name in lists for text in _texts(given.get(name))]
    yield from _listed(patterns, matcher, dtype_id)


def _listed(patterns: Iterable[str], matcher: Callable[[str], Test], dtype_id: str | None) -> Iterator[Rule]:
    """One rule for all names, which a set finds at once, and one for each pattern: lists name every layer."""
    patterns = dict.fromkeys(patterns)
    names = tuple(p for p in patterns if PLAIN.fullmatch(p)) if matcher in OF_MANY else ()
    if names:
        yield Rule(names, matcher, OF_MANY[matcher](frozenset(names)), dtype_id)
    beginnings = tuple(p for p in patterns if BEGINNING.fullmatch(p)) if matcher is by_wildcard else ()
    if beginnings:
        yield Rule(beginnings, matcher, begins_with(frozenset(p[:-1] for p in beginnings)), dtype_id)
    for pattern in patterns:
        if pattern not in names and pattern not in beginnings:
            yield _rule(pattern, matcher, dtype_id)


def _grouped(given: Mapping[str, Any], matcher: Callable[[str], Test]) -> Recipe:
    rules = list(_rules(given, ("ignore", "exclude_modules", "exclude", "modules_to_not_convert"), matcher))
    layers, groups = given.get("quantized_layers"), given.get("config_groups")
    if isinstance(layers, Mapping) and layers:
        for name, own in layers.items():
            algorithm = own.get("quant_algo") if isinstance(own, Mapping) else None
            dtype_id = _known(
                _ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None, f"{str(algorithm)[:40]}"
            )
            rules.append(_rule(str(name)[:LONGEST], by_wildcard, dtype_id))
        return Recipe(tuple(rules), None)
    if not isinstance(groups, Mapping) or not groups:
        algorithm = given.get("quant_algo")
        found = _ALGORITHMS.get(algorithm.upper()) if isinstance(algorithm, str) else None
        return Recipe(tuple(rules), _known(found, f"{str(algorithm)[:40]}"))
    default, named = None, []
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if weights is None:
            continue  # of activations or caches alone
        dtype_id = _known(format_of_weights(weights), "a group of it")
        targets = dict.fromkeys(_texts(group.get("targets", ["Linear"])))
        for target in targets:
            if target.lower() in LINEAR:
                if default not in (None, dtype_id):
                    raise Undecided("two of its groups take every linear layer")
                default = dtype_id
            elif re.fullmatch(r"[A-Z]\w*", target):
                raise Undecided(f"it takes modules of the class {target[:60]}, which is not described")
        classes = [t for t in targets if t.lower() in LINEAR]
        named += _listed((t for t in targets if t not in classes), matcher, dtype_id)
    return Recipe((*rules, *named), default)


def _gptq(given: Mapping[str, Any]) -> Recipe:
    whole, rules = _known(_integers(given), "GPTQ"), []
    dynamic = given.get("dynamic")
    for pattern, own in dynamic.items() if isinstance(dynamic, Mapping) else ():
        text = str(pattern)[:LONGEST]
        if text.startswith("-:"):
            rules.append(_rule(text, by_rule_of_gptq, None))
        else:
            changed = {**given, **own} if isinstance(own, Mapping) else given
            rules.append(_rule(text, by_rule_of_gptq, _known(_integers(changed), f"the rule {text[:60]!r}")))
    taken = list(_texts(given.get("modules_in_block_to_quantize")))
    rules += [_rule(text, by_part, whole) for text in taken]
    if given.get("lm_head") is True:
        rules.append(_rule("lm_head", by_part, whole))
    return Recipe(tuple(rules), None if taken else whole)


def _integers(given: Mapping[str, Any]) -> str | None:
    """GPTQ with 4 or 8 bits in groups of 128."""
    bits, group = given.get("bits"), given.get("group_size")
    return f"gptq-int{bits}" if type(bits) is int and bits in (4, 8) and group in (128, None) else None


def _auto_round(given: Mapping[str, Any]) -> Recipe:
    whole, rules = _known(_auto_rounded(given), "AutoRound"), []
    for key in ("extra_config", "layer_config"):
        own_words = given.get(key)
        for pattern, own in own_words.items() if isinstance(own_words, Mapping) else ():
            text, changed = str(pattern)[:LONGEST], {**given, **own} if isinstance(own, Mapping) else given
            bits = changed.get("bits")
            is_kept = type(bits) is int and bits >= 16
            dtype_id = None if is_kept else _known(_auto_rounded(changed), f"the rule {text[:60]!r}")
            rules.append(_rule(text, by_either, dtype_id))
    rules.sort(key=lambda rule: rule.dtype_id is not None)  # where two rules meet, the wider one
    taken = [text for key in ("block_name_to_quantize", "to_quant_block_names") for text in _texts(given.get(key))]
    taken = [name.strip() for text in taken for name in text.split(",") if name.strip()]
    if taken:
        rules += [_rule(name, by_place, whole) for name in taken]
    return Recipe(tuple(rules), None if taken else whole)


def _auto_rounded(given: Mapping[str, Any]) -> str | None:
    kind, bits, group = given.get("data_type", "int"), given.get("bits"), given.get("group_size")
    packing = given.get("packing_format", "")
    if not all(isinstance(value, str | int | None) for value in (kind, bits, group, packing)):
        return None
    if kind == "int":
        name = "awq-int4" if "awq" in str(packing) and bits == 4 else f"gptq-int{bits}"
        return name if bits in (4, 8) and group == 128 else None
    named = {
        ("nv_fp", 4, 16): "nvfp4",
        ("nv_fp4", 4, 16): "nvfp4",
        ("mx_fp", 4, 32): "mxfp4",
        ("mx_fp4", 4, 32): "mxfp4",
    }
    return "fp8" if kind in ("fp", "fp8", "fp8_e4m3") and bits == 8 else named.get((kind, bits, group))


def _quark(given: Mapping[str, Any]) -> Recipe:
    rules = list(_rules(given, ("exclude",), by_quark))
    layers = given.get("layer_quant_config")
    for pattern, own in layers.items() if isinstance(layers, Mapping) else ():
        rules.append(_rule(str(pattern)[:LONGEST], by_quark, _quark_format(own, f"the rule {str(pattern)[:60]!r}")))
    default = _quark_format(given.get("global_quant_config"), "Quark")
    kinds = given.get("layer_type_quant_config")
    for kind, own in kinds.items() if isinstance(kinds, Mapping) else ():
        if str(kind).lower() not in LINEAR:
            raise Undecided(f"it takes modules of the class {str(kind)[:60]}, which is not described")
        default = _quark_format(own, "Quark")
    return Recipe(tuple(rules), default)


def _quark_format(own: Any, what: str) -> str | None:
    """None where a part of the config quantises no weights."""
    weight = own.get("weight") if isinstance(own, Mapping) else None
    weight = weight[0] if isinstance(weight, list) and weight else weight
    if not isinstance(weight, Mapping):
        return None
    kind, group = weight.get("dtype"), weight.get("group_size")
    if kind in ("fp8_e4m3", "fp8"):
        return "fp8"
    if kind in ("int4", "uint4") and group == 128:
        return "gptq-int4"
    return _known("mxfp4" if kind in ("fp4", "mxfp4") and group == 32 else "int8" if kind == "int8" else None, what)
