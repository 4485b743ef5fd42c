"""remote.duckdb: the published tables as views over their Parquet files where these lie, for who joins them over a network.

DuckDB reads the whole catalogue of a file that it attaches, and a megabyte before it to see what it is. This one is smaller than that:
columns and addresses, no rows and no formulas. Each view reads its file by a macro, which names the files here while DuckDB looks what
columns they have, and those far away when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from pipeline.press.file import STORAGE_VERSION, quoted

BLOCK_BYTES = 16_384  # the smallest that there is: a reader fetches whole blocks


def write(connection: duckdb.DuckDBPyConnection, path: Path, places: Mapping[str, tuple[Path, str]]) -> None:
    """Writes the file. `places` has for each table the file here, and the address that it will have."""
    connection.execute(
        f"ATTACH '{quoted(path)}' AS remote (STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_BYTES})"
    )
    connection.execute("USE remote")
    _names_files(connection, {name: str(near) for name, (near, _far) in places.items()})
    for name in sorted(places):
        connection.execute(f"CREATE VIEW \"{name}\" AS FROM read_parquet(file_of('{name}'))")
    _names_files(connection, {name: far for name, (_near, far) in places.items()})
    connection.execute("USE memory")
    connection.execute("DETACH remote")


def _names_files(connection: duckdb.DuckDBPyConnection, files: Mapping[str, str]) -> None:
    """`file_of(table)`: what most files have in common is said once."""
    roots: dict[str, list[str]] = {}
    for name, file in sorted(files.items()):
        root, _, last = file.rpartition("/")
        if last != f"{name}.parquet":
            raise ValueError(f"{file} is not named as its table {name}")
        roots.setdefault(root, []).append(name)
    *others, most = sorted(roots, key=lambda root: len(roots[root]))
    cases = "".join(f"WHEN name IN ({_texts(roots[root])}) THEN {_texts([root])} " for root in others)
    root = f"CASE {cases}ELSE {_texts([most])} END" if others else _texts([most])
    connection.execute(f"CREATE OR REPLACE MACRO file_of(name) AS {root} || '/' || name || '.parquet'")


def _texts(values: list[str]) -> str:
    return ", ".join(f"'{quoted(value)}'" for value in values)
