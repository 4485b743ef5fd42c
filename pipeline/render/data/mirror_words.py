"""Words of SQL by their names in DuckDB's tree, and what site/assets/sql_words.js calls them."""

COMPARE = {
    "COMPARE_EQUAL": "eq",
    "COMPARE_NOTEQUAL": "ne",
    "COMPARE_LESSTHAN": "lt",
    "COMPARE_GREATERTHAN": "gt",
    "COMPARE_LESSTHANOREQUALTO": "le",
    "COMPARE_GREATERTHANOREQUALTO": "ge",
    "COMPARE_NOT_DISTINCT_FROM": "same",
    "COMPARE_DISTINCT_FROM": "differ",
}
FUNCTIONS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "idiv",
    "%": "mod",
    "||": "concat",
    "~~": "like",
    **{
        name: name
        for name in [
            "ceil",
            "floor",
            "round",
            "abs",
            "sqrt",
            "pow",
            "log2",
            "greatest",
            "least",
            "len",
            "list_transform",
            "list_filter",
            "list_sum",
            "list_max",
            "list_min",
            "list_bool_or",
            "list_bool_and",
            "list_append",
            "list_concat",
            "list_contains",
            "list_distinct",
            "flatten",
            "range",
            "lower",
            "starts_with",
            "replace",
            "string_split",
            "struct_insert",
            "printf",
        ]
    },
    "list_value": "list",
    "if": "iif",
}
WHOLE = ("BIGINT", "INTEGER", "HUGEINT", "SMALLINT", "UBIGINT")
