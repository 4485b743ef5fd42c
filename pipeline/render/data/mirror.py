"""The formulas for the browser: the SQL macro `footprints` of a database, translated to a JavaScript module.

Nothing is copied by hand. DuckDB parses its own macros; each scalar macro becomes a function, each step of `footprints` an
object made from the one before it. The words of SQL that the formulas use (nulls that spread, three-valued logic, lists,
structs) are in site/assets/sql_words.js. What this translator does not know it refuses, so that a formula which grows a new word
fails the build and not the reader. A test holds the module to the SQL over thousands of scenarios.

One scenario goes in and one row comes out: so every relation of the macro is one row or none (null), a join finds one or none, and of
a union the side that has the row is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb

from pipeline.render.data.mirror_words import COMPARE, FUNCTIONS, WHOLE

ENTRY = "footprints_as_written"  # which `footprints` is made of, for DuckDB


class Untranslatable(ValueError):
    """A construct of SQL that this translator does not know."""


@dataclass(frozen=True)
class Scope:
    """What a name can mean: variables by name, then columns of the rows at hand."""

    variables: dict[str, str] = field(default_factory=dict)
    rows: tuple[str, ...] = ()

    def with_variables(self, names: dict[str, str]) -> Scope:
        return Scope(self.variables | names, self.rows)


class Mirror:
    """Translates the macros that `footprints` reaches. `tables` are those that it reads, once `module` was asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        rows = connection.execute(
            "SELECT function_name, parameters, macro_definition, function_type FROM duckdb_functions() "
            "WHERE NOT internal AND function_type IN ('macro', 'table_macro')"
        ).fetchall()
        self.macros = {name: (parameters, text, kind) for name, parameters, text, kind in rows}
        self.views = dict(connection.execute("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").fetchall())
        self.written: dict[str, str] = {}
        self.tables: set[str] = set()

    def module(self, scalars: Iterable[str] = ()) -> str:
        """The module's text: `footprints(tables, asked)` gives the row of one scenario, `macros` are the scalar macros named."""
        if ENTRY not in self.macros:
            raise Untranslatable(f"the database holds no macro {ENTRY}")
        body = self._relation(self._parse(self.macros[ENTRY][1]))
        for name in scalars:
            if name not in self.macros:
                raise Untranslatable(f"the database holds no macro {name}")
            self._write(name)
        named = ", ".join(f"{name}: m_{name}" for name in scalars)
        functions = "\n".join(self.written[name] for name in sorted(self.written))
        return (
            "const q = await import(`../assets/almanac/sql_words.js${new URL(import.meta.url).search}`);\n"
            "// Translated from the macros of almanac.duckdb by pipeline/render/data/mirror.py.\n"
            f"let db;\n{functions}\nexport function footprints(tables, asked_row) {{\ndb = tables;\n{body}}}\n"
            f"export const macros = {{ {named} }};\n"
        )

    def functions(self, names: Iterable[str]) -> str:
        """The text of these scalar macros and of those that they call."""
        for name in names:
            self._write(name)
        return "\n".join(self.written[name] for name in sorted(self.written))

    def _parse(self, text: str) -> dict:
        tree = json.loads(self.connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0][0])
        if tree["error"]:
            raise Untranslatable(tree.get("error_message", text))
        return tree["statements"][0]["node"]

    # ---- relations

    def _relation(self, node: dict) -> str:
        lines = []
        for entry in node["cte_map"]["map"]:
            lines.append(f"const {_row(entry['key'])} = {self._select(entry['value']['query_node'])};\n")
        return "".join(lines) + f"return {self._select(node)};\n"

    def _select(self, node: dict) -> str:
        if (
            node["type"] == "SET_OPERATION_NODE"
            and node["setop_type"] in ("UNION", "UNION_BY_NAME")
            and node["setop_all"]
        ):
            sides = node.get("children") or [node["left"], node["right"]]
            return "(" + " ?? ".join(self._select(side) for side in sides) + ")"
        if node["type"] != "SELECT_NODE" or node["group_expressions"]:
            raise Untranslatable("a step that groups")
        joins: list[tuple[str, str]] = []
        self._from(node["from_table"], joins)
        rows = [_row(alias) for alias, _code in joins]
        scope = Scope({alias: _row(alias) for alias, _code in joins}, (*rows, "o"))
        made = "".join(
            (f"const {_row(alias)} = {code};\n" if code != _row(alias) else "")
            + f"if ({_row(alias)} == null) return null;\n"
            for alias, code in joins
        )
        where = node.get("where_clause")
        kept = f"if (({self._expression(where, scope)}) !== true) return null;\n" if where else ""
        columns = "".join(self._column(item, scope, rows) for item in node["select_list"])
        return f"(() => {{\n{made}const o = {{}};\n{kept}{columns}return o;\n}})()"

    def _from(self, node: dict, joins: list[tuple[str, str]]) -> None:
        kind = node["type"]
        if kind == "TABLE_FUNCTION":
            name = node["function"]["function_name"]
            if name in self.macros:
                joins.append(
                    (node.get("alias") or name, f"(() => {{\n{self._relation(self._parse(self.macros[name][1]))}}})()")
                )
            else:
                joins.append((node.get("alias") or "asked_row", "asked_row"))
        elif kind == "SUBQUERY":
            joins.append((node.get("alias") or f"source{len(joins)}", self._select(node["subquery"]["node"])))
        elif kind == "BASE_TABLE":
            name = node["table_name"]
            alias = node.get("alias") or name
            joins.append((alias, self._first(name, alias, None, joins)))
        elif kind == "JOIN":
            self._from(node["left"], joins)
            right = node["right"]
            if right["type"] != "BASE_TABLE" or node["join_type"] not in ("LEFT", "INNER"):
                raise Untranslatable("a join that is not to a table")
            alias = right.get("alias") or right["table_name"]
            condition = node.get("condition") or None
            using = node.get("using_columns") or []
            code = self._first(right["table_name"], alias, condition, joins, using)
            joins.append((alias, f"({code} ?? {{}})" if node["join_type"] == "LEFT" else code))
        else:
            raise Untranslatable(f"FROM {kind}")

    def _first(self, table: str, alias: str, condition, joins: list[tuple[str, str]], using=()) -> str:
        """The row of a step where the condition holds for it, or the first of a table's rows that it holds for; else none."""
        steps = dict.fromkeys(name for name, _code in joins)  # in the order of the joins: the text must not vary
        before = tuple(_row(name) for name in steps)
        if not self._is_table(table):
            if using:
                raise Untranslatable("a step joined by USING")
            if condition is None:
                return _row(table)
            scope = Scope({name: _row(name) for name in steps} | {alias: _row(table)}, (_row(table), *before))
            return f"({_row(table)} != null && {self._expression(condition, scope)} === true ? {_row(table)} : null)"
        rows = self._rows(table)
        scope = Scope({name: _row(name) for name in steps} | {alias: "row"}, ("row", *before))
        tests = [self._expression(condition, scope)] if condition else []
        tests += [f'q.eq(q.get(row, "{c}"), q.pick("{c}", {", ".join(before)}))' for c in using]
        return f"q.first({rows}, (row) => {' && '.join(f'{t} === true' for t in tests) or 'true'})"

    def _rows(self, table: str) -> str:
        """All rows of a table, or of a view that packs the rows of one."""
        if table not in self.views:
            self.tables.add(table)
            return f"db.{table}"
        select = self._parse(self.views[table].partition(" AS ")[2])
        base = select["from_table"]
        scope = Scope({base.get("alias") or base["table_name"]: "row"}, ("row",))
        columns = "".join(self._column(item, scope, ["row"]) for item in select["select_list"])
        return f"{self._rows(base['table_name'])}.map((row) => {{ const o = {{}};\n{columns}return o; }})"

    def _is_table(self, name: str) -> bool:
        found = self.connection.execute(
            "SELECT 1 FROM information_schema.tables WHERE table_name = ? LIMIT 1", [name]
        ).fetchall()
        return bool(found)

    def _column(self, item: dict, scope: Scope, rows: list[str]) -> str:
        if item["class"] == "STAR":
            left_out = json.dumps([e if isinstance(e, str) else e["column"] for e in item.get("exclude_list", [])])
            whole = item.get("relation_name")
            source = [self._column_ref({"column_names": [whole]}, scope)] if whole else rows
            code = f"q.spread(o, {left_out}, {', '.join(source)});\n"
            for entry in item.get("replace_list", []):
                code += f"o[{json.dumps(entry['key'])}] = {self._expression(entry['value'], scope)};\n"
            return code
        name = item.get("alias") or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else None)
        if not name:
            raise Untranslatable("a column without a name")
        return f"o[{json.dumps(name)}] = {self._expression(item, scope)};\n"

    # ---- expressions

    def _expression(self, node: dict, scope: Scope) -> str:
        handler = getattr(self, f"_{node['class'].lower()}", None)
        if handler is None:
            raise Untranslatable(f"{node['class']} {node.get('type')}")
        return handler(node, scope)

    def _constant(self, node: dict, _scope: Scope) -> str:
        literal = node["literal"]
        kind, text = literal["kind"], literal.get("text")
        if kind == "NULL_LITERAL":
            return "null"
        return json.dumps(text) if kind == "STRING" else text.lower() if kind == "BOOLEAN" else f"({text})"

    def _column_ref(self, node: dict, scope: Scope) -> str:
        first, *rest = node["column_names"]
        if first in scope.variables:
            code = scope.variables[first]
        elif scope.rows:
            code = f"q.pick({json.dumps(first)}, {', '.join(scope.rows)})"
        else:
            raise Untranslatable(f"the name {first}")
        for name in rest:
            code = f"q.get({code}, {json.dumps(name)})"
        return code

    def _cast(self, node: dict, scope: Scope) -> str:
        child, kind = self._expression(node["child"], scope), node["type_expr"]["type_name"]
        if kind == "list" and node["type_expr"]["children"][0]["type_name"] in WHOLE:
            return f"q.list_transform({child}, q.whole)"
        if kind in WHOLE:
            return f"q.{'try_whole' if node.get('try_cast') else 'whole'}({child})"
        if kind in ("DOUBLE", "FLOAT", "DECIMAL"):
            return child
        if kind == "VARCHAR":
            return f"q.text({child})"
        raise Untranslatable(f"a cast to {kind}")

    def _comparison(self, node: dict, scope: Scope) -> str:
        return f"q.{COMPARE[node['type']]}({self._expression(node['left'], scope)}, {self._expression(node['right'], scope)})"

    def _between(self, node: dict, scope: Scope) -> str:
        value, low, high = (self._expression(node[k], scope) for k in ("input", "lower", "upper"))
        return f"q.and(q.ge({value}, {low}), q.le({value}, {high}))"

    def _conjunction(self, node: dict, scope: Scope) -> str:
        parts = ", ".join(self._expression(child, scope) for child in node["children"])
        return f"q.{'and' if node['type'] == 'CONJUNCTION_AND' else 'or'}({parts})"

    def _case(self, node: dict, scope: Scope) -> str:
        code = self._expression(node["else_expr"], scope) if node.get("else_expr") else "null"
        for check in reversed(node["case_checks"]):
            when, then = (self._expression(check[k], scope) for k in ("when_expr", "then_expr"))
            code = f"({when} === true ? {then} : {code})"
        return code

    def _operator(self, node: dict, scope: Scope) -> str:
        kind, parts = node["type"], [self._expression(child, scope) for child in node["children"]]
        names = {
            "OPERATOR_COALESCE": "coalesce",
            "OPERATOR_NOT": "not",
            "COMPARE_IN": "among",
            "ARRAY_EXTRACT": "at",
            "STRUCT_EXTRACT": "get",
        }
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            return f"({parts[0]} {'==' if kind == 'OPERATOR_IS_NULL' else '!='} null)"
        if kind == "COMPARE_NOT_IN":
            return f"q.not(q.among({', '.join(parts)}))"
        if kind not in names:
            raise Untranslatable(kind)
        return f"q.{names[kind]}({', '.join(parts)})"

    def _lambda(self, node: dict, scope: Scope) -> str:
        left = node["lhs"]
        names = [left] if left["class"] == "COLUMN_REF" else [a["expression"] for a in left["arguments"]]
        variables = {n["column_names"][0]: _row(n["column_names"][0]) for n in names}
        return (
            f"(({', '.join(variables.values())}) => {self._expression(node['expr'], scope.with_variables(variables))})"
        )

    def _function(self, node: dict, scope: Scope) -> str:
        name = node["function_name"]
        arguments = [(a.get("name"), self._expression(a["expression"], scope)) for a in node["arguments"]]
        codes = ", ".join(code for _name, code in arguments)
        if name in self.macros:
            self._write(name)
            return f"m_{name}({codes})"
        if name == "struct_pack":
            return "({" + ", ".join(f"{json.dumps(key)}: {code}" for key, code in arguments) + "})"
        if name == "struct_insert":
            added = ", ".join(f"{json.dumps(key)}: {code}" for key, code in arguments[1:])
            return f"q.struct_insert({arguments[0][1]}, {{{added}}})"
        if name == "-" and len(arguments) == 1:
            return f"q.sub(0, {codes})"
        if name not in FUNCTIONS:
            raise Untranslatable(f"the function {name}")
        return f"q.{FUNCTIONS[name]}({codes})"

    def _subquery(self, node: dict, scope: Scope) -> str:
        select = node["subquery"]["node"]
        table = select["from_table"]
        if table["type"] != "BASE_TABLE" or len(select["select_list"]) != 1:
            raise Untranslatable("a subquery of more than one table or column")
        self.tables.add(table["table_name"])
        inner = Scope(scope.variables | {table.get("alias") or table["table_name"]: "row"}, ("row", *scope.rows))
        where = self._expression(select["where_clause"], inner) if select.get("where_clause") else "true"
        value = self._expression(select["select_list"][0], inner)
        rows = f"q.rows(db.{table['table_name']}, (row) => {where} === true, (row) => {value})"
        if node["subquery_type"] == "SCALAR":
            return f"q.at({rows}, 1)"
        if node["subquery_type"] == "ANY" and node["comparison_type"] == "COMPARE_EQUAL":
            return f"q.among({self._expression(node['child'], scope)}, ...{rows})"
        raise Untranslatable(f"a subquery of kind {node['subquery_type']}")

    def _write(self, name: str) -> None:
        if name in self.written:
            return
        parameters, text, kind = self.macros[name]
        if kind != "macro":
            raise Untranslatable(f"the table macro {name} inside an expression")
        self.written[name] = ""  # a macro cannot call itself
        variables = {p: _row(p) for p in parameters}
        body = self._expression(self._parse(f"SELECT {text}")["select_list"][0], Scope(variables))
        self.written[name] = f"function m_{name}({', '.join(variables.values())}) {{ return {body}; }}"


def _row(name: str) -> str:
    """A SQL name as a JavaScript one; the mark keeps it clear of reserved words."""
    if not name.replace("_", "").isalnum():
        raise Untranslatable(f"the name {name!r}")
    return f"${name}" if name != "asked_row" else name
