"""The declared columns: each says what it holds in its table, and in which unit; a contradiction stops the build."""

import csv

import pytest

from pipeline.book.columns import PATH, Columns, read_columns
from pipeline.book.schema import COLUMNS, FACTS, PUBLISHED, SNAPSHOT, SchemaError, read_tables

TABLES = {table.name: table for tables in (FACTS, SNAPSHOT, PUBLISHED) for table in tables.values()}
UNIT_OF_SUFFIX = {
    "_bytes": ("byte", "byte/element", "as the measurement"),
    "_tokens": ("token",),
    "_gib_nominal": ("GiB",),
    "_mib_reported": ("MiB",),
    "_gb_s": ("GB/s",),
    "_tflops_dense": ("TFLOPS",),
    "_tops_dense": ("TOPS",),
    "_w": ("W",),
    "_usd": ("USD",),
    "_seconds": ("s",),
    "layer_count": ("layer", "tensor/layer"),
    "head_count": ("head",),
    "gpu_count": ("GPU",),
    "_pixels": ("pixel", "pixel/token"),
    "_bits": ("bit", "bit/row"),
}


def row(name="width", tables="", type="integer", least="0", unit="element", meaning="How wide it is"):
    return {"name": name, "tables": tables, "type": type, "least": least, "unit": unit, "meaning": meaning}


def columns_of(*rows):
    return Columns(enumerate(rows, start=2), "column.csv")


def test_what_is_gated_is_said_of_a_model_as_of_a_model():
    assert COLUMNS.of("is_gated", "model").meaning == "Whether the Hub asks for consent before download"
    assert "gate projection" in COLUMNS.of("is_gated", "feed_forward_layer").meaning
    published = {column.name: column for column in PUBLISHED["model"].columns}
    assert published["is_gated"] == COLUMNS.of("is_gated", "model")


@pytest.mark.parametrize("suffix", UNIT_OF_SUFFIX)
def test_a_suffix_names_the_unit(suffix):
    units = {column.unit for column in COLUMNS.everywhere() if column.name.endswith(suffix) and column.type != "string"}
    assert units and units <= set(UNIT_OF_SUFFIX[suffix])


def test_every_number_that_is_published_has_a_unit():
    without = [
        f"{t.name}.{c.name}"
        for t in TABLES.values()
        for c in t.columns
        if c.unit is None and c.type in ("integer", "number")
    ]
    assert without == []


def test_every_table_that_a_column_speaks_of_has_it():
    with PATH.open(encoding="utf-8", newline="") as file:
        for declared in csv.DictReader(file):
            for table in declared["tables"].split():
                assert declared["name"] in TABLES[table].column_names, declared


def test_a_name_declared_twice_stops_the_build_with_its_line():
    with pytest.raises(SchemaError, match=r"column\.csv:3: column width: is declared twice$"):
        columns_of(row(), row(meaning="Something else"))
    with pytest.raises(SchemaError, match=r"column\.csv:3: column width: is declared twice for tower$"):
        columns_of(row(tables="tower"), row(tables="model tower", meaning="Something else"))


def test_a_name_may_mean_one_thing_in_one_table_and_another_elsewhere():
    columns = columns_of(row(tables="tower", meaning="Of a tower"), row(meaning="Of all others"))
    assert columns.of("width", "tower").meaning == "Of a tower"
    assert columns.of("width", "component").meaning == "Of all others"
    with pytest.raises(SchemaError, match="no column height is declared for table tower"):
        columns.of("height", "tower")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (row(unit=""), "needs a unit"),
        (row(type="string", least=""), "is a string and can have no unit"),
        (row(type="text"), "'text' is none of string, integer"),
        (row(meaning=""), "has no meaning"),
    ],
)
def test_what_a_column_lacks_is_told(wrong, told):
    with pytest.raises(SchemaError, match=told):
        columns_of(wrong)


def test_a_name_has_one_unit_everywhere():
    with pytest.raises(SchemaError, match="column width: is integer in element elsewhere"):
        columns_of(row(tables="tower"), row(unit="pixel"))


def test_a_row_with_too_many_cells_is_told(tmp_path):
    path = tmp_path / "column.csv"
    path.write_text("name,tables,type,least,unit,meaning\nwidth,,integer,0,element,How wide, it is\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"column\.csv:2: the row has not as many cells"):
        read_columns(path)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["gpu,facts,Cards,gpu_id,gpu_id name", "gpu,published facts,Cards,gpu_id,gpu_id"], ":3: table gpu: is declared twice for facts"),
        (["gpu,fact,Cards,gpu_id,gpu_id name"], ":2: table gpu: is of 'fact', which is none of facts, snapshot, published"),
        (["gpu,,Cards,gpu_id,gpu_id name"], ":2: table gpu: is of ''"),
        (["gpu,facts,Cards,gpu_id name,gpu_id source"], ":2: table gpu: its key has name, and its columns have not"),
        (["gpu,facts,Cards,gpu_id,gpu_id name gpu_id?"], ":2: table gpu: names a column twice"),
        (["gpu,facts,,gpu_id,gpu_id"], ":2: table gpu: has no meaning"),
        (["gpu,facts,Cards,gpu_id,gpu_id shininess"], ":2: .*no column shininess is declared for table gpu"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_told_with_its_line(tmp_path, rows, told):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["name,of,meaning,key,columns", *rows, ""]), encoding="utf-8")
    with pytest.raises(SchemaError, match=r"table\.csv" + told):
        read_tables(path)
