"""The rules of tables/sql that are asked outside SQL: verdicts, limits, what an engine has to be told; translated, not copied.

The browser has them as a module, Python as functions of values and of polars' columns. As in mirror.py, by which they are translated, a word
of SQL that is not known stops the build.
"""

from __future__ import annotations

import re
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import duckdb

from pipeline.book.facts import TABLES
from pipeline.book.scenario import written_out
from pipeline.render.data import column_words, scalar_words
from pipeline.render.data.mirror import Mirror, Scope, Untranslatable

# files whose macros the rules are, or are made of
FILES = (
    "words",
    "capacity/verdict",
    "capacity/limits",
    "capacity/support",
    "capacity/system",
    "capacity/cpu_split",
    "state/state",
    "ask/engine_setting",
    "speed/speed",
)
NAMES = (
    "needed",
    "takes",
    "ram_takes",
    "word_for",
    "card_verdict",
    "hangs_on_copy",
    "chosen",
    "several",
    "verdict_of",
    "largest_between",
    "largest_beyond",
    "is_serving_engine",
    "most_requests",
    "line_end",
    "context_multiple",
    "card_reason",
    "share_held",
    "share_most",
    "share_needed",
    "apart_bytes",
    "system_bytes",
    "is_computer",
    "decode_reason",
    "decode_most",
)
# of values: one of tables asks others that a rule does not need
_MACRO = re.compile(r"(?:\s|--[^\n]*\n)*CREATE OR REPLACE MACRO \w+\([^()]*\) AS(?! TABLE)\b")


def define(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the macros of FILES in a database; what is asked as a table needs the tables."""
    connection.execute(_statements())


@cache
def _statements() -> str:
    texts = (written_out((TABLES / "sql" / f"{name}.sql").read_text(encoding="utf-8")) for name in FILES)
    with duckdb.connect() as connection:
        found = [each.query for text in texts for each in connection.extract_statements(text)]
    return "\n".join(f"{query};" for query in found if _MACRO.match(query))


@cache
def _translated(kind: type[Mirror]) -> str:
    with duckdb.connect() as connection:
        define(connection)
        return kind(connection).functions(NAMES)


def javascript() -> str:
    """The rules as a module of the browser."""
    return (
        "const q = await import(`../assets/almanac/sql_words.js${new URL(import.meta.url).search}`);\n"
        "// Translated from tables/sql by pipeline/render/data/rules.py.\n"
        f"{_translated(Mirror)}\nexport {{ {', '.join(f'm_{name} as {name}' for name in NAMES)} }};\n"
    )


class InPython(Mirror):
    """The same in Python. What only one branch needs is worked out there: `q` gets branches as functions."""

    def _constant(self, node: dict, _scope: Scope) -> str:
        literal = node["literal"]
        kind, text = literal["kind"], literal.get("text")
        words = {"NULL_LITERAL": "None", "STRING": repr(text), "BOOLEAN": str(text).capitalize()}
        return words.get(kind) or f"({text})"

    def _case(self, node: dict, scope: Scope) -> str:
        checks = [
            self._expression(check[k], scope) for check in node["case_checks"] for k in ("when_expr", "then_expr")
        ]
        otherwise = self._expression(node["else_expr"], scope) if node.get("else_expr") else "None"
        return f"q.case({', '.join(f'lambda: {code}' for code in (*checks, otherwise))})"

    def _operator(self, node: dict, scope: Scope) -> str:
        parts = ", ".join(self._expression(child, scope) for child in node["children"])
        own = {"OPERATOR_IS_NULL": "is_null", "OPERATOR_IS_NOT_NULL": "is_known", "OPERATOR_NOT": "negated"}
        return f"q.{own[node['type']]}({parts})" if node["type"] in own else super()._operator(node, scope)

    def _conjunction(self, node: dict, scope: Scope) -> str:
        parts = ", ".join(self._expression(child, scope) for child in node["children"])
        return f"q.{'all_of' if node['type'] == 'CONJUNCTION_AND' else 'any_of'}({parts})"

    def _lambda(self, node: dict, scope: Scope) -> str:
        names = [node["lhs"]["column_names"][0]]
        variables = {name: _name(name) for name in names}
        return f"(lambda {', '.join(variables.values())}: {self._expression(node['expr'], scope.with_variables(variables))})"

    def _function(self, node: dict, scope: Scope) -> str:
        if node["function_name"].startswith("struct_"):
            raise Untranslatable(f"{node['function_name']} in a rule")
        return super()._function(node, scope)

    def _subquery(self, node: dict, scope: Scope) -> str:
        raise Untranslatable("a subquery in a rule")

    def _write(self, name: str) -> None:
        if name in self.written:
            return
        parameters, text, _kind = self.macros[name]
        self.written[name] = ""
        variables = {p: _name(p) for p in parameters}
        body = self._expression(self._parse(f"SELECT {text}")["select_list"][0], Scope(variables))
        self.written[name] = f"def m_{name}({', '.join(variables.values())}): return {body}"


def _name(name: str) -> str:
    return f"v_{name}"


@cache
def _python(words: ModuleType) -> SimpleNamespace:
    space: dict[str, Any] = {"q": words}
    exec(compile(_translated(InPython), "tables/sql", "exec"), space)
    return SimpleNamespace(**{name: space[f"m_{name}"] for name in NAMES})


def in_python() -> SimpleNamespace:
    """The rules by their names, for single values: a row is a dict, a list of rows a list."""
    return _python(scalar_words)


def in_columns() -> SimpleNamespace:
    """The rules by their names, for expressions of polars: a row is a dict of them, a list of rows a list of known length."""
    return _python(column_words)
