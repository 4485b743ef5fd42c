"""The book of facts: that it holds what users rely on, and that each kind of mistake stops the build where it is."""

import re

import polars as pl
import pytest

from pipeline.book.facts import TABLES, FactError, read_facts, read_measured, source_ids
from pipeline.book.schema import FACTS

DTYPES = [
    "fp32",
    "bf16",
    "fp16",
    "fp8",
    "int8",
    "nf4",
    "awq-int4",
    "gptq-int4",
    "mxfp4",
    "nvfp4",
    "gguf-q8_0",
    "gguf-q6_k",
    "gguf-q5_k_m",
    "gguf-q4_k_m",
    "gguf-q3_k_m",
    "gguf-q2_k",
    "stored",
]


@pytest.fixture(scope="module")
def facts():
    return read_facts()


def test_every_table_of_the_schema_is_in_the_book(facts):
    assert set(facts) == set(FACTS)
    for name, frame in facts.items():
        assert frame.columns == list(FACTS[name].column_names)


def test_no_column_is_unsigned_so_that_byte_counts_stay_64_bit(facts):
    allowed = {pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Date}
    for frame in [*facts.values(), read_measured()]:
        assert set(frame.dtypes) <= allowed


def test_the_dtypes_and_phases_that_scripts_rely_on_are_there(facts):
    assert set(DTYPES) <= set(facts["dtype"]["dtype_id"])
    assert set(facts["phase"]["phase_id"]) == {"inference", "pretrain", "full-finetune", "lora", "qlora"}
    assert {"adamw", "adamw-8bit", "adafactor", "sgd", "sgd-momentum", "lion", "muon"} <= set(
        facts["optimizer"]["optimizer_id"]
    )


def test_every_dtype_names_the_engine_that_runs_it(facts):
    engine = dict(facts["dtype"].select("dtype_id", "engine_id").iter_rows())
    assert all(engine[d] == "transformers" for d in ("fp32", "bf16", "fp16", "int8", "nf4"))
    assert all(engine[d] == "vllm" for d in ("fp8", "awq-int4", "gptq-int4", "mxfp4", "nvfp4", "stored"))
    assert all(engine[d] == "llama.cpp" for d in DTYPES if d.startswith("gguf-"))


def test_a_card_never_reports_more_than_its_sticker(facts):
    gpu = facts["gpu"]
    assert gpu.height >= 246
    assert gpu.filter(pl.col("memory_mib_reported") > pl.col("memory_gib_nominal") * 1024).is_empty()
    assert gpu.filter(pl.col("memory_mib_cuda") > pl.col("memory_mib_reported")).is_empty()


def test_doubtful_cards_are_marked(facts):
    note = dict(facts["gpu"].select("gpu_id", "note").iter_rows())
    for gpu_id in ("gaudi3", "rtx-pro-4000", "rtx-pro-4500", "a10g", "h20", "r9700", "tesla-p40", "m5-ultra-256gb"):
        assert "Doubtful" in note[gpu_id], gpu_id
    for gpu_id in ("rubin-r200", "mi455x"):
        assert "Preliminary" in note[gpu_id], gpu_id


# A host that serves packages, however it is mirrored; a package is cited by its name and version instead.
REGISTRY_HOST = re.compile(
    r"\b(?:(?:registry|simple|mirrors?|proxy|files)\.[a-z0-9-]+\.[a-z]{2,}|(?:pypi|crates)\w*\.[a-z]{2,}|\w*npm\w*\.[a-z]{2,})"
    r"|--(?:extra-)?index-url|--find-links",
    re.IGNORECASE,
)


def test_a_package_is_cited_by_name_and_version_and_not_by_the_host_that_serves_it():
    files = [
        *TABLES.rglob("*.csv"),
        *TABLES.rglob("*.jsonl"),
        *TABLES.parent.glob("*.lock"),
        *TABLES.parent.rglob("package-lock.json"),
    ]
    assert len(files) > 50
    told = [
        f"{path.name}: {found[0]}"
        for path in files
        if ".venv" not in path.parts
        and "node_modules" not in path.parts
        and (found := REGISTRY_HOST.search(path.read_text(encoding="utf-8")))
    ]
    assert told == []


@pytest.mark.parametrize(
    "cited", ["https://pypi.example/project/vllm", "registry.example.org/x", "cdn.npm.example", "--index-url https://x"]
)
def test_hosts_of_registries_are_recognised(cited):
    assert REGISTRY_HOST.search(cited)


@pytest.mark.parametrize(
    "cited", ["vllm 0.19.1, vllm/config.py", "github.com/pypa/x", "vllm/model_executor/models/registry.py: a"]
)
def test_a_package_with_its_version_is_no_host(cited):
    assert not REGISTRY_HOST.search(cited)


def test_measurements_cite_their_source(facts):
    measured = read_measured()
    assert measured.height >= 875
    assert measured["source"].str.len_chars().min() > 5
    assert measured.filter(pl.col("value_bytes").is_null())["unit"].unique().sort().to_list() == ["params", "tokens"]


# One mistake per case in an otherwise sound file: what the message must say.
SOURCE = "source_id,title,publisher,licence,locator,retrieved\nbook,A book,,,,\nlog,A log,,,,\n"
ENGINE = (
    "engine_id,name,engine_version,parallelism,most_gpu_count,keeps_logits,keeps_gradients,repeats_keys,chunks_logits,prepares_base,keeps_alternate_products,offloads_checkpoints,expandable_segments,joins_projections,unties_head,packs_head,casts_unpacked,keeps_unpacked,keeps_packed_inputs,norms_embedding,shares_expert_adapters,unpacks_by_matrix,fused_loss,norm_form,loss_chunk_tokens,trained_model_types,waiting_buffers_constant,gradient_bytes,process_context_bytes,training_error_band_constant,unknown_reason,note,source\n"
    "vllm,vLLM,0.19,tp,,false,false,false,false,true,false,false,false,false,false,false,false,false,false,false,false,false,,,,,,,,,,,book\n"
)
DTYPE = "dtype_id,name,engine_id,bits_per_weight,product_bits,is_trainable,has_packed_experts,note,source\n"


def read(folder, **files):
    """The folder's facts: the given files, and empty tables for the others."""
    empty = {name: ",".join(table.column_names) + "\n" for name, table in FACTS.items()}
    for name, text in {**empty, "source": SOURCE, "engine": ENGINE, **files}.items():
        if not (folder / f"{name}.csv").exists():
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return read_facts(folder)


def test_a_sound_folder_is_read_with_its_types(tmp_path):
    frame = read(tmp_path, dtype=DTYPE + 'fp8,"8-bit, float",vllm,8,8,false,false,,book; log\n')["dtype"]
    assert frame.row(0) == ("fp8", "8-bit, float", "vllm", 8.0, 8, False, False, None, "book; log")
    assert source_ids("book; log") == ["book", "log"]


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        ("fp8,x,vllm,abc,8,false,false,,book", 2, "column bits_per_weight: 'abc' is not a number"),
        ("fp8,x,vllm,nan,8,false,false,,book", 2, "column bits_per_weight: 'nan' is not a number"),
        ("fp8,x,vllm,inf,8,false,false,,book", 2, "column bits_per_weight: 'inf' is not a number"),
        ("fp8,x,vllm,1_0,8,false,false,,book", 2, "column bits_per_weight: '1_0' is not a number"),
        ("fp8,x,vllm,-1,8,false,false,,book", 2, "column bits_per_weight: '-1' is less than 0"),
        ("fp8,x,vllm,8,8,yes,false,,book", 2, "column is_trainable: 'yes' is neither true nor false"),
        ("fp8,,vllm,8,8,false,false,,book", 2, "column name: is empty, but must have a value"),
        ("fp8,x,vllm,8,8,false,false,,", 2, "column source: no source is given"),
        ("fp8,x,vllm,8,8,false,false,,hearsay", 2, "column source: 'hearsay' is not in source.csv"),
        ("fp8,x,vllm,8,8,false,false,,book;", 2, "column source: '' is not in source.csv"),
        ("fp8,x,sglang,8,8,false,false,,book", 2, "column engine_id: 'sglang' is not in engine.csv"),
        ("fp8,x ,vllm,8,8,false,false,,book", 2, "column name: 'x ' has blanks at an end"),
        ("fp8,x\x1b,vllm,8,8,false,false,,book", 2, "control character"),
        ("fp8,x,vllm,8,8,false,false,book", 2, "8 fields where the header names 9"),
        (
            "a,x,vllm,8,8,false,false,,book\na,x,vllm,8,8,false,false,,book",
            3,
            "duplicate key: dtype_id 'a' is already at line 2",
        ),
        ('a,x,vllm,8,8,false,false,"one\ntwo",book\nb,x,vllm,eight,8,false,false,,book', 4, "'eight' is not a number"),
        ('a,"x"y,vllm,8,8,false,false,,book', 2, "not CSV"),
    ],
)
def test_a_mistake_in_a_row_names_file_line_and_column(tmp_path, row, line, message):
    with pytest.raises(FactError) as error:
        read(tmp_path, dtype=DTYPE + row + "\n")
    assert any(f"dtype.csv:{line}: " in said and message in said for said in error.value.errors), str(error.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "dtype_id,name,engine_id,bits_per_weight,product_bits,is_trainable,has_packed_experts,note",
            "column source: missing column of table 'dtype'",
        ),
        (DTYPE.strip() + ",colour", "column colour: unknown column of table 'dtype'"),
        (DTYPE.strip() + ",note", "column note: named twice"),
        ("", "file is empty"),
    ],
)
def test_a_mistake_in_the_header_names_file_and_column(tmp_path, header, message):
    with pytest.raises(FactError) as error:
        read(tmp_path, dtype=header)
    assert any("dtype.csv:1: " in said and message in said for said in error.value.errors), str(error.value)


def test_a_value_outside_its_set_is_told_with_the_set(tmp_path):
    text = "constant_id,value,unit,applies_to,source,locator,confidence,note\nk,1,ratio,x,book,,certain,\n"
    with pytest.raises(FactError, match=r"constant.csv:2: column confidence: 'certain' is none of high, medium, low"):
        read(tmp_path, constant=text)


@pytest.mark.parametrize(
    "name", ["x; DROP TABLE model", "1 AS y", "Block_Tokens", "block-tokens", "_x", 'a"b', "2nd", "é"]
)
def test_a_constant_is_named_by_a_word_of_sql(tmp_path, name):
    cell = name.replace('"', '""')
    text = f'constant_id,value,unit,applies_to,source,locator,confidence,note\n"{cell}",1,ratio,x,book,,high,\n'
    with pytest.raises(FactError, match=r"constant.csv:2: column constant_id: .* is no name"):
        read(tmp_path, constant=text)


@pytest.mark.parametrize("name", ["fp8'", "FP8", "../fp8", "fp 8", "fp8;"])
def test_an_id_is_a_word_of_an_address(tmp_path, name):
    with pytest.raises(FactError, match=r"dtype.csv:2: column dtype_id: .* is no id"):
        read(tmp_path, dtype=DTYPE + f"{name},x,vllm,8,8,false,false,,book\n")


def test_whole_numbers_must_be_whole_and_fit_64_bits(tmp_path):
    head = "gguf_type,block_elements,block_bytes,fallback_gguf_type,source\n"
    text = head + "Q8_0,32.5,34,,book\nQ4_0,32,99999999999999999999,,book\nQ5_0,0,22,,book\n"
    with pytest.raises(FactError) as error:
        read(tmp_path, gguf_type=text)
    assert [said.rpartition("/")[2] for said in error.value.errors] == [
        "gguf_type.csv:2: column block_elements: '32.5' is not a whole number of 64 bits",
        "gguf_type.csv:3: column block_bytes: '99999999999999999999' is not a whole number of 64 bits",
        "gguf_type.csv:4: column block_elements: '0' is less than 1",
    ]


def test_the_errors_of_all_files_come_together(tmp_path):
    with pytest.raises(FactError) as error:
        read(
            tmp_path, dtype=DTYPE + "fp8,x,vllm,a,8,b,false,,book\nnf4,x,vllm,c,8,false,false,,book\n", unheard="a,b\n"
        )
    assert len(error.value.errors) == 4
    assert "no fact table is called 'unheard'" in str(error.value)


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "dtype.csv").write_bytes(DTYPE.encode() + b"fp8,\xff,vllm,8,8,false,false,,book\n")
    with pytest.raises(FactError, match=r"dtype\.csv: not UTF-8 text"):
        read(tmp_path)


def test_a_missing_table_is_said(tmp_path):
    read(tmp_path)
    (tmp_path / "phase.csv").unlink()
    with pytest.raises(FactError, match=r"phase\.csv: file is missing"):
        read_facts(tmp_path)
    with pytest.raises(FactError, match=r"measured\.csv: file is missing"):
        read_measured(tmp_path / "measured.csv")


def test_messages_name_a_file_of_the_book_from_the_top_of_the_checkout(monkeypatch):
    monkeypatch.setattr("pipeline.book.facts.FACTS", {})
    with pytest.raises(FactError, match=r"(?m)^tables/facts/gpu.csv: no fact table is called 'gpu'"):
        read_facts()
