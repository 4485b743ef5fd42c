"""Puts the sizes that a class was seen with into terms of the fields that move them."""

from __future__ import annotations

import ast
import itertools
import re
from fractions import Fraction

MOST_TERMS = 4


def monomials(fields: list[str]) -> list[str]:
    atoms = list(fields)
    ratios = [f"{a} // {b}" for a, b in itertools.permutations(fields, 2)]
    found = [*atoms, *ratios, *(f"{a} * {b}" for a, b in itertools.combinations_with_replacement(atoms, 2))]
    found += [f"{a} * {b} // {c}" for c in fields for a, b in itertools.combinations([f for f in fields if f != c], 2)]
    found += [f"({r}) ** 2" for r in ratios]
    found += [f"({r}) * {f}" for r in ratios for f in fields]
    found += [f"({r}) * ({s})" for r, s in itertools.combinations(ratios, 2)]
    found += [" * ".join(three) for three in itertools.combinations(fields, 3)]
    return found


def value_of(term: str, values: dict) -> float:
    return eval(compile(ast.fix_missing_locations(_Named(values).visit(ast.parse(term, mode="eval"))), "", "eval"))


class _Named(ast.NodeTransformer):
    def __init__(self, values: dict):
        self.values = values

    def _held(self, node):
        return ast.copy_location(ast.Constant(self.values[ast.unparse(node)]), node)

    visit_Name = visit_Attribute = visit_Subscript = _held


def combined(number: Fraction, monomial: str) -> str:
    text = monomial if re.fullmatch(r"[\w.\[\]]+", monomial) or "//" not in monomial else f"({monomial})"
    if number.numerator != 1:
        text = f"{number.numerator} * {text}"
    return f"{text} // {number.denominator}" if number.denominator != 1 else text


def term(points: list[tuple[dict, int]], fields: list[str]) -> str | int | None:
    """What gives these sizes from these fields: a number, one monomial or two, times whole numbers and plus one."""
    sizes = {size for _, size in points}
    if len(sizes) == 1:
        return sizes.pop()
    if not fields or len(fields) > MOST_TERMS:
        return None
    tried = []
    for monomial in monomials(fields):
        try:
            held = [value_of(monomial, values) for values, _ in points]
        except (ZeroDivisionError, OverflowError):
            continue
        if len(set(held)) == 1:
            continue
        tried.append((monomial, held))
        first, other = 0, next(i for i, v in enumerate(held) if v != held[0])
        step = Fraction(points[other][1] - points[first][1]) / Fraction(held[other] - held[first])
        step = step.limit_denominator(64)
        rest = points[first][1] - int(held[first] * step // 1)
        text = combined(step, monomial) + (f" + {rest}" if rest > 0 else f" - {-rest}" if rest else "")
        if step and all(int(value_of(text, values)) == size for values, size in points):
            return text
    for (one, a), (two, b) in itertools.combinations(tried[:40], 2):
        rows = [(x, y, size) for x, y, (_, size) in zip(a, b, points, strict=True)]
        x0, y0, s0 = rows[0]
        found = None
        for (x1, y1, s1), (x2, y2, s2) in itertools.combinations(rows[1:10], 2):
            d = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
            if d:
                p = Fraction((s1 - s0) * (y2 - y0) - (s2 - s0) * (y1 - y0)) / Fraction(d)
                q = Fraction((x1 - x0) * (s2 - s0) - (x2 - x0) * (s1 - s0)) / Fraction(d)
                found = p, q, s0 - p * Fraction(x0) - q * Fraction(y0)
                break
        if found is None or any(n.denominator != 1 for n in found) or not found[0] or not found[1]:
            continue
        p, q, rest = found
        if len({(x, y) for x, y, _ in rows}) >= 5 and all(
            p * Fraction(x) + q * Fraction(y) + rest == s for x, y, s in rows
        ):
            text = f"{combined(p, one)} + {combined(q, two)}" + (f" + {rest}" if rest else "")
            return text.replace("+ -", "- ")
    return None


def names_in(text: str):
    """The outermost names of a term: text_config.hidden_size is one."""
    stack = [ast.parse(text, mode="eval").body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            yield node
        else:
            stack += list(ast.iter_child_nodes(node))


def sum_of(number: int, terms: list[str]):
    if not terms:
        return number
    counted = {t: terms.count(t) for t in dict.fromkeys(terms)}
    texts = [
        t if n == 1 else f"{n} * {t}" if re.fullmatch(r"[\w.\[\]]+", t) else f"{n} * ({t})" for t, n in counted.items()
    ]
    return " + ".join([*texts, *([str(number)] if number else [])])
