"""Facts, anatomy and the SQL of the book become the published tables.

`build_tables(folder, ...)` fills an empty folder with `almanac.duckdb`, and one Parquet and one CSV per table. The formulas are
the macros of tables/sql: the same text fills the tables here and answers whoever opens the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.base.failures import interruptible
from pipeline.base.progress import Progress, quiet, step
from pipeline.book.content import WEEKLY, rows_as_text
from pipeline.book.packs import Packs, fingerprint
from pipeline.book.reads import read_by
from pipeline.book.schema import PUBLISHED
from pipeline.hub.snapshot import Snapshot
from pipeline.press import blank, blocks, file, same_bytes
from pipeline.press.accuracy import fill_accuracy
from pipeline.press.anatomise import anatomise
from pipeline.press.blocks import Block, Contents, Cut
from pipeline.press.file import DATABASE, declared_columns
from pipeline.press.formulas import arguments_of
from pipeline.press.held import ORDER
from pipeline.press.lookup import share_footprints
from pipeline.press.outcomes import fill_outcomes
from pipeline.press.plans import fill_plans
from pipeline.press.work import work_of

# of DuckDB, which takes four fifths of a machine otherwise: what is more goes to files for a while. A step of footprints took 1.6 GB without it,
# and 1.0 with 1 GB, in as many seconds
MEMORY = "1500MB"
ROW_GROUP_ROWS = 50_000
PIPELINES = "pipeline_compatibility"
# what a person opens in a spreadsheet
CSV_ROWS = 50_000
# models of a group of rows of footprint.parquet: footer and group are alike then (tests/press/test_over_http.py asks what a reader fetches)
FOOTPRINTS = Cut(least=20, most=60, one_of=16, together=5)
# (a copy of the schema in Arrow's words would be read by everybody, and says nothing more)
_PAGES = {"data_page_version": "2.0", "compression_level": 9, "store_schema": False}


def build_tables(
    folder: Path, snapshot: Snapshot, progress: Progress = quiet, packs: Packs | None = None
) -> dict[str, int]:
    """Builds every published table into `folder`, which must exist and be empty. Returns rows by table. What `packs` hold is taken from
    there, and what they do not is put there.

    Raises FactError where the book cannot be read. Nothing outside the folder is touched.
    """
    frames = anatomise(snapshot, progress, packs)
    frames["work"] = work_of(frames["model"])
    workshop = folder / "workshop.duckdb"
    with duckdb.connect() as connection, interruptible(connection):
        connection.execute(f"SET memory_limit = '{MEMORY}'; SET temp_directory = '{_quoted(folder / 'workshop.tmp')}'")
        with step(progress, "formulas"):
            blank.begin(workshop, packs)
            connection.execute(f"ATTACH '{_quoted(workshop)}' AS workshop")
            connection.execute("USE workshop")
            # what is put there is written once, when it is left; each checkpoint on the way writes it again
            connection.execute("SET checkpoint_threshold = '1TB'")
            entered = blank.fill(connection, frames, packs)
        with step(progress, "accuracy"):
            fill_accuracy(connection, packs)
            fill_outcomes(connection, packs)
        share_footprints(connection, progress, packs)
        with step(progress, "plans"):
            fill_plans(connection, packs)
            _keep_rows(connection, "rule_error")
            same = _SameFiles(packs, entered)
            same.keys[PIPELINES] = _of_pipelines(connection) if packs else ""
            _keep_rows(connection, PIPELINES, same.rows_of(folder / f"{PIPELINES}.parquet"))
        arguments = _arguments(connection, packs)
        connection.execute("USE memory; DETACH workshop")
        with same_bytes.writing(workshop, folder / DATABASE, arguments, packs) as wait:
            connection.execute(f"ATTACH '{_quoted(workshop)}' AS workshop (READ_ONLY); USE workshop")
            counts = _export(connection, folder, progress, packs, same)
            with step(progress, DATABASE):
                wait()
    workshop.unlink()
    shutil.rmtree(folder / "workshop.tmp", ignore_errors=True)
    if packs:
        packs.tidy()
    return counts


def _arguments(connection: duckdb.DuckDBPyConnection, packs: Packs | None) -> dict[str, str]:
    """Those of all macros, whose texts are told apart once."""
    if packs is None:
        return arguments_of(connection)
    key = hashlib.sha256(f"arguments {fingerprint()}".encode()).hexdigest()
    known = packs.values([key], "arguments").get(key)
    if known is None:
        known = json.dumps(arguments_of(connection)).encode()
        packs.keep({key: known}, "arguments")
    return json.loads(known)


def _keep_rows(connection: duckdb.DuckDBPyConnection, name: str, known: pa.Table | None = None) -> None:
    """A table in the place of a view: it is asked for again and again, and each time would be worked out anew. Its rows may be `known`."""
    connection.execute(f"CREATE TABLE kept_rows ({declared_columns(PUBLISHED[name])})")
    if known is not None:
        connection.register("known", known)
    connection.execute(f"INSERT INTO kept_rows BY NAME FROM {name if known is None else 'known'}")
    connection.unregister("known")
    connection.execute(f"DROP VIEW {name}; ALTER TABLE kept_rows RENAME TO {name}")


def _of_pipelines(connection: duckdb.DuckDBPyConnection) -> str:
    """The key of all verdicts of pipelines: of the rows that these have in the tables that they are made of."""
    piped = "(SELECT DISTINCT model_id FROM component)"
    said = rows_as_text(connection, read_by(connection, [PIPELINES]), piped, WEEKLY)
    query = f"SELECT sha256(concat_ws(' ', $made_of, string_agg(model_id || said, ' ' ORDER BY model_id, said))) FROM ({said})"
    [(key,)] = connection.execute(query, {"made_of": f"{PIPELINES} {fingerprint()}"}).fetchall()
    return key


def write_file(connection: duckdb.DuckDBPyConnection, path: Path, packs: Packs | None = None) -> None:
    """What the connection holds, as the file that is published (but for its bytes, which `same_bytes` settles)."""
    file.write(connection, path, arguments_of(connection), packs)


def _export(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    progress: Progress,
    packs: Packs | None,
    same: _SameFiles,
) -> dict[str, int]:
    """One Parquet file per table, sorted so that a remote reader fetches little; and a CSV of what a person opens. Those that are the `same` as
    before are copied."""
    # (it knows the rules of verdicts as pages do; who reads one config needs neither)
    from pipeline.press.compatibility import write_compatibility

    counts = {}
    contents = blocks.contents_of(connection, packs)
    for name, table in progress(list(PUBLISHED.items()), desc="tables"):
        path = folder / f"{name}.parquet"
        if name == "compatibility":
            counts[name] = write_compatibility(connection, path, packs, contents)
            continue
        if name == "footprint":
            counts[name] = write_footprints(connection, path, packs, contents)
            continue
        counts[name] = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
        files = [path, path.with_suffix(".csv")] if counts[name] <= CSV_ROWS else [path]
        if same.bring(name, files):
            continue
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        query = f"SELECT {columns} FROM {name} ORDER BY {', '.join(table.key)}"
        connection.execute(
            f"COPY ({query}) TO '{_quoted(path)}' "
            f"(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        if counts[name] <= CSV_ROWS:
            connection.execute(f"COPY ({query}) TO '{_quoted(folder / name)}.csv' (FORMAT csv, HEADER)")
        same.keep(name, files)
    same.end()
    return counts


class _SameFiles:
    """The files of tables that say the same while their key is the same: in one pack those that no model enters."""

    def __init__(self, packs: Packs | None, entered: Collection[str]) -> None:
        self.packs = packs
        key = hashlib.sha256(f"same files {fingerprint()}".encode()).hexdigest()
        self.keys = dict.fromkeys(PUBLISHED.keys() - entered, key)
        self.new: dict[str, list[Path]] = {}
        self._packs: dict[str, Path | None] = {}

    def bring(self, name: str, files: Sequence[Path]) -> bool:
        """Writes those of a table as they were; False where they are not known."""
        content = [self._content(name, path) for path in files]
        if None in content:
            return False
        for path, written in zip(files, content, strict=True):
            path.write_bytes(written)
        return True

    def rows_of(self, path: Path) -> pa.Table | None:
        """The rows of a table that its file would hold."""
        content = self._content(path.stem, path)
        return None if content is None else pq.read_table(pa.BufferReader(content))

    def _content(self, name: str, path: Path) -> bytes | None:
        key = self.keys.get(name)
        if not self.packs or not key:
            return None
        if key not in self._packs:
            self._packs[key] = self.packs.places([key]).get(key)
        content = self.packs.content(self._packs[key], path.name) if self._packs[key] else None
        if content is None:
            self._packs[key] = None  # damaged, and removed
        return content

    def keep(self, name: str, files: Sequence[Path]) -> None:
        if name in self.keys:
            self.new.setdefault(self.keys[name], []).extend(files)

    def end(self) -> None:
        for key, files in self.new.items() if self.packs else ():
            self.packs.put_files([key], {path.name: path.read_bytes() for path in files})


def write_footprints(
    connection: duckdb.DuckDBPyConnection, path: Path, packs: Packs | None = None, contents: Contents | None = None
) -> int:
    """A few models at a time; returns how many rows. Who reads one model over a network reads the footer and one group of rows: groups are as
    many as make the two alike and hold whole models, and the footer has ranges of values for models alone, since a group has all of whatever
    else rows are looked up by."""
    table = PUBLISHED["footprint"]
    columns = ", ".join(f'"{name}"' for name in table.column_names)
    # bytes differ from row to row: a dictionary of them is longer than they are
    repeated = [name for name in table.column_names if not name.endswith("_bytes")]
    how = {"compression": "zstd", "write_statistics": ["model_id"], "use_dictionary": repeated, **_PAGES}

    def rows_of(models: Sequence[str]) -> pa.Table:
        rows = connection.sql(
            f"SELECT {columns} FROM footprint WHERE list_contains($models, model_id) ORDER BY {ORDER}",
            params={"models": list(models)},
        ).to_arrow_table()
        return rows.cast(pa.schema([field.with_nullable(field.name in table.nullable) for field in rows.schema]))

    def file_of(rows: pa.Table) -> bytes:
        file = io.BytesIO()
        pq.write_table(rows, file, row_group_size=max(rows.num_rows, 1), **how)
        return file.getvalue()

    def worked_out(some: Sequence[Block]) -> Iterator[bytes]:
        rows = rows_of([model for block in some for model in block.models])
        for block in some:
            yield file_of(rows.filter(pc.is_in(rows["model_id"], pa.array(block.models))))

    contents = contents or blocks.contents_of(connection, packs)
    return blocks.write(contents, path, FOOTPRINTS, file_of(rows_of([])), worked_out, packs)


def _quoted(text: object) -> str:
    return str(text).replace("'", "''")
