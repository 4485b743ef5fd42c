"""From the macros of a database to the values that they stand for: steps become records, joins rows, macros what they say.

DuckDB parses its own macros. One scenario goes through all steps, so a step joined to another is the same scenario, and DISTINCT changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb

from pipeline.press.flat.values import JOINED, Forest, Items, Node, Record, Row, Value
from pipeline.press.flat.writing import written

Alternatives = list[tuple[tuple[Node, ...], Record]]
ASKED = "asked"  # the relation that is handed in


class Unreadable(ValueError):
    """A construct of SQL that is not known here."""


@dataclass
class Lookup:
    """A join to a table: at most one of its rows, found by a condition that names the row by `name`."""

    name: str
    table: str
    condition: Node | None


@dataclass
class Scope:
    """What a name can mean: variables, then columns of the rows at hand; and how many lambdas and subqueries it stands in.

    Their names are made of that number, so that formulas which say the same are one node."""

    variables: dict[str, Value] = field(default_factory=dict)
    rows: tuple[Value, ...] = ()
    depth: int = 0


class Reading:
    def __init__(
        self, connection: duckdb.DuckDBPyConnection, asked: tuple[str, ...], fixed: Iterable[str] = ()
    ) -> None:
        self.connection, self.forest, self.fixed = connection, Forest(), frozenset(fixed)
        rows = connection.execute(
            "SELECT function_name, parameters, macro_definition, function_type FROM duckdb_functions() "
            "WHERE NOT internal AND function_type IN ('macro', 'table_macro')"
        ).fetchall()
        self.macros = {name: (parameters, text, kind) for name, parameters, text, kind in rows}
        self.views = dict(connection.execute("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").fetchall())
        self.columns: dict[str, frozenset[str]] = {}
        self.lookups: dict[tuple[str, Node | None], Lookup] = {}
        self.asked = Row(ASKED, frozenset(asked))
        self.parsed: dict[str, dict] = {}
        self.steps: dict[str, Alternatives] = {}
        self.count = 0

    # ---- text

    def parse(self, text: str) -> dict:
        if text not in self.parsed:
            tree = json.loads(self.connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0][0])
            if tree["error"]:
                raise Unreadable(tree.get("error_message", text))
            self.parsed[text] = tree["statements"][0]["node"]
        return self.parsed[text]

    def table_columns(self, table: str) -> frozenset[str]:
        if table not in self.columns:
            query = "SELECT column_name FROM duckdb_columns() WHERE table_name = ?"
            self.columns[table] = frozenset(name for (name,) in self.connection.execute(query, [table]).fetchall())
        return self.columns[table]

    # ---- relations

    def macro(self, name: str) -> Alternatives:
        """The rows that a table macro gives."""
        return self.relation(self.parse(self.macros[name][1]), {})

    def relation(self, node: dict, outer: dict[str, Alternatives]) -> Alternatives:
        steps = dict(outer)
        for entry in node["cte_map"]["map"]:
            steps[entry["key"]] = self.select(entry["value"]["query_node"], steps)
            self.steps[entry["key"]] = steps[entry["key"]]
        return self.select(node, steps)

    def select(self, node: dict, steps: dict[str, Alternatives]) -> Alternatives:
        if node["type"] == "SET_OPERATION_NODE":
            if not node["setop_all"] or node["setop_type"] != "UNION_BY_NAME":
                raise Unreadable("a union that is not ALL BY NAME")
            found = [
                one
                for side in node.get("children") or (node["left"], node["right"])
                for one in self.select(side, steps)
            ]
            names = list(dict.fromkeys(name for _, record in found for name in record.fields))
            return [(g, Record({n: r.fields.get(n, self.forest.null) for n in names})) for g, r in found]
        if node["type"] != "SELECT_NODE" or node["group_expressions"]:
            raise Unreadable("a step that groups")
        made = []
        for guards, rows in self.sources(node["from_table"], steps):
            scope = Scope(dict(rows), tuple(rows.values()))
            where = node.get("where_clause")
            if where:
                guards = (*guards, self.forest.whole(self.expression(where, scope)))
            record = Record({})
            scope.rows = (*scope.rows, record)
            for item in node["select_list"]:
                self.column(item, scope, record, rows)
            made.append((guards, record))
        return made

    def sources(self, node: dict, steps: dict[str, Alternatives]) -> list[tuple[tuple[Node, ...], dict[str, Value]]]:
        kind = node["type"]
        if kind == "TABLE_FUNCTION":
            name = node["function"]["function_name"]
            alias = node.get("alias") or name
            if name in self.macros:
                return [(guards, {alias: record}) for guards, record in self.macro(name)]
            return [((), {alias: self.asked})]
        if kind == "SUBQUERY":
            alias = node.get("alias") or f"source{self.fresh()}"
            return [(guards, {alias: record}) for guards, record in self.relation(node["subquery"]["node"], steps)]
        if kind == "BASE_TABLE":
            name = node["table_name"]
            alias = node.get("alias") or name
            if name in steps:
                return [(guards, {alias: record}) for guards, record in steps[name]]
            return [((), {alias: self.lookup(name, alias, None, Scope())})]
        if kind == "JOIN":
            left, right = self.sources(node["left"], steps), node["right"]
            if right["type"] == "BASE_TABLE" and right["table_name"] not in steps:
                alias, condition = right.get("alias") or right["table_name"], node.get("condition") or None

                def joined(rows: dict[str, Value]) -> dict[str, Value]:
                    scope = Scope(rows, tuple(rows.values()))
                    return {**rows, alias: self.lookup(right["table_name"], alias, condition, scope)}

                return [(guards, joined(rows)) for guards, rows in left]
            found = self.sources(right, steps)
            return [((*a, *b), {**first, **second}) for a, first in left for b, second in found]
        raise Unreadable(f"FROM {kind}")

    def lookup(self, table: str, alias: str, condition: dict | None, scope: Scope) -> Value:
        """The row of a table, or what a view makes of it, that a condition finds where `scope` is at hand."""
        if table in self.views:
            select = self.parse(self.views[table].partition(" AS ")[2])
            base = select["from_table"]

            def of(row: Row) -> Value:
                record, scope = Record({}), Scope({base.get("alias") or base["table_name"]: row}, (row,))
                for item in select["select_list"]:
                    self.column(item, scope, record, {})
                return record

            table = base["table_name"]
        else:

            def of(row: Row) -> Value:
                return row

        columns = self.table_columns(table)
        place = of(Row(JOINED, columns))
        asked = None
        if condition is not None:
            inner = Scope(scope.variables | {alias: place}, (place, *scope.rows), scope.depth)
            asked = self.forest.whole(self.expression(condition, inner))
        key = (table, asked)
        if key not in self.lookups:
            self.lookups[key] = Lookup(f"{table}_{len(self.lookups)}", table, asked)
        return of(Row(self.lookups[key].name, columns))

    def column(self, item: dict, scope: Scope, record: Record, rows: dict[str, Value]) -> None:
        if item["class"] == "STAR":
            left_out = {e if isinstance(e, str) else e["column"] for e in item.get("exclude_list", [])}
            whole = item.get("relation_name")
            sources = [self.name([whole], scope)] if whole else list(rows.values())
            for source in sources:
                for name in source.fields if isinstance(source, Record) else sorted(source.columns):
                    if name not in left_out:
                        record.fields[name] = self.forest.field(source, name)
            for entry in item.get("replace_list", []):
                record.fields[entry["key"]] = self.expression(entry["value"], scope)
            return
        name = item.get("alias") or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else None)
        if not name:
            raise Unreadable("a column without a name")
        record.fields[name] = self.expression(item, scope)

    # ---- expressions

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def name(self, names: list[str], scope: Scope) -> Value:
        first, *rest = names
        if first in scope.variables:
            value = scope.variables[first]
        else:
            for row in scope.rows:
                if first in (row.fields if isinstance(row, Record) else row.columns):
                    value = self.forest.field(row, first)
                    break
            else:
                raise Unreadable(f"the name {'.'.join(names)}")
        for name in rest:
            value = self.forest.field(value, name)
        return value

    def expression(self, node: dict, scope: Scope) -> Value:
        handler = getattr(self, f"_{node['class'].lower()}", None)
        if handler is None:
            raise Unreadable(f"{node['class']} {node.get('type')}")
        return handler(node, scope)

    def node(self, node: dict, scope: Scope) -> Node:
        return self.forest.whole(self.expression(node, scope))

    def _constant(self, node: dict, _scope: Scope) -> Node:
        literal = node["literal"]
        kind, text = literal["kind"], literal.get("text")
        if kind == "NULL_LITERAL":
            return self.forest.null
        if kind == "STRING":
            return self.forest.text(text)
        return self.forest.node("constant", text.lower() if kind == "BOOLEAN" else text)

    def _column_ref(self, node: dict, scope: Scope) -> Value:
        return self.name(node["column_names"], scope)

    def _cast(self, node: dict, scope: Scope) -> Value:
        child = self.node(node["child"], scope)
        return self.forest.cast((_type(node["type_expr"]), bool(node.get("try_cast"))), child)

    def _comparison(self, node: dict, scope: Scope) -> Node:
        left, right = self.node(node["left"], scope), self.node(node["right"], scope)
        return self.forest.compared(COMPARE[node["type"]], left, right)

    def _between(self, node: dict, scope: Scope) -> Node:
        return self.forest.node("between", None, [self.node(node[k], scope) for k in ("input", "lower", "upper")])

    def _conjunction(self, node: dict, scope: Scope) -> Node:
        parts = [self.node(child, scope) for child in node["children"]]
        return self.forest.both(parts) if node["type"] == "CONJUNCTION_AND" else self.forest.either(parts)

    def _case(self, node: dict, scope: Scope) -> Value:
        checks = [
            (self.node(c["when_expr"], scope), self.expression(c["then_expr"], scope)) for c in node["case_checks"]
        ]
        otherwise = self.expression(node["else_expr"], scope) if node.get("else_expr") else self.forest.null
        return self.forest.case(checks, otherwise)

    def _operator(self, node: dict, scope: Scope) -> Value:
        kind, forest = node["type"], self.forest
        parts = [self.expression(child, scope) for child in node["children"]]
        if kind == "OPERATOR_COALESCE":
            return forest.coalesced(parts)
        if kind == "OPERATOR_NOT":
            return forest.negated(parts[0])
        if kind == "OPERATOR_IS_NULL":
            return forest.is_null(parts[0])
        if kind == "OPERATOR_IS_NOT_NULL":
            return forest.negated(forest.is_null(parts[0]))
        if kind == "STRUCT_EXTRACT":
            return forest.field(parts[0], parts[1].about.strip("'"))
        if kind == "ARRAY_EXTRACT":
            if parts[1].kind == "constant" and parts[1].about.startswith("'"):
                return forest.field(parts[0], parts[1].about.strip("'"))
            if isinstance(parts[0], Items) and parts[1].kind == "constant":
                place = int(parts[1].about)
                return parts[0].members[place - 1] if 0 < place <= len(parts[0].members) else forest.null
            return forest.node("at", None, [forest.whole(p) for p in parts])
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            found = forest.among([forest.whole(p) for p in parts])
            return found if kind == "COMPARE_IN" else forest.negated(found)
        raise Unreadable(kind)

    def _lambda(self, node: dict, scope: Scope) -> Node:
        left = node["lhs"]
        names = [left] if left["class"] == "COLUMN_REF" else [a["expression"] for a in left["arguments"]]
        own = {n["column_names"][0]: f"v{scope.depth}_{place}" for place, n in enumerate(names)}
        variables = {name: self.forest.node("variable", text) for name, text in own.items()}
        body = self.node(node["expr"], Scope(scope.variables | variables, scope.rows, scope.depth + 1))
        return self.forest.node("lambda", tuple(own.values()), [body])

    def _function(self, node: dict, scope: Scope) -> Value:
        name, forest = node["function_name"], self.forest
        if name in self.macros:
            parameters, text, kind = self.macros[name]
            if kind != "macro":
                raise Unreadable(f"the table macro {name} inside an expression")
            values = [self.expression(a["expression"], scope) for a in node["arguments"]]
            tree = self.parse(f"SELECT {text}")["select_list"][0]
            return self.expression(tree, Scope(dict(zip(parameters, values, strict=True)), (), scope.depth))
        arguments = [(a.get("name"), self.expression(a["expression"], scope)) for a in node["arguments"]]
        if name == "struct_pack":
            return Record({key: value for key, value in arguments})
        if name == "struct_insert" and isinstance(arguments[0][1], Record):
            return Record(arguments[0][1].fields | {key: value for key, value in arguments[1:]})
        if name == "list_value":
            return Items([value for _, value in arguments])
        if node["arguments"] and any(key for key, _ in arguments) and name != "struct_insert":
            raise Unreadable(f"{name} with named arguments")
        parts = [forest.whole(value) for _, value in arguments]
        if name == "struct_insert":
            return forest.node("insert", tuple(key for key, _ in arguments[1:]), parts)
        return forest.called("infix" if node.get("is_operator") else "call", name, parts)

    def _subquery(self, node: dict, scope: Scope) -> Node:
        select = node["subquery"]["node"]
        table = select["from_table"]
        if table["type"] != "BASE_TABLE" or len(select["select_list"]) != 1:
            raise Unreadable("a subquery of more than one table or column")
        alias = table.get("alias") or table["table_name"]
        own = f"{alias}_{scope.depth}"
        inside = Record(
            {c: self.forest.node("inner", (own, c)) for c in sorted(self.table_columns(table["table_name"]))}
        )
        inner = Scope(scope.variables | {alias: inside}, (inside, *scope.rows), scope.depth + 1)
        where = self.node(select["where_clause"], inner) if select.get("where_clause") else self.forest.true
        value = self.node(select["select_list"][0], inner)
        # a row that hangs on the question is joined: a subquery of its own takes as long to plan as a tenth of all steps
        if node["subquery_type"] == "SCALAR" and value.kind == "inner" and where.sources and not scope.depth:
            return self.forest.field(
                self.lookup(table["table_name"], alias, select["where_clause"], scope), value.about[1]
            )
        parts = [value, where]
        if node["subquery_type"] == "ANY" and node["comparison_type"] == "COMPARE_EQUAL":
            child = self.node(node["child"], scope)
            if table["table_name"] in self.fixed and not (where.sources or where.free):
                return self.forest.among([child, *self._words(table["table_name"], own, value, where)])
            parts.append(child)
        elif node["subquery_type"] != "SCALAR":
            raise Unreadable(f"a subquery of kind {node['subquery_type']}")
        return self.forest.node("subquery", (table["table_name"], own, node["subquery_type"]), parts)

    def _words(self, table: str, alias: str, value: Node, where: Node) -> list[Node]:
        """What a subquery gives that asks nothing of its question: words that stand in the file."""
        query = f"SELECT DISTINCT {written(value)} AS word FROM {table} AS {alias} WHERE {written(where)} ORDER BY word"
        return [self.forest.text(word) for (word,) in self.connection.execute(query).fetchall()]


COMPARE = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
}


def _type(tree: dict[str, Any]) -> str:
    name = tree["type_name"]
    if name == "list":
        return f"{_type(tree['children'][0])}[]"
    return name
