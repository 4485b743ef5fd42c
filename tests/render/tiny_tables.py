"""A small almanac to render: a few models and cards, every dtype and phase, unknown numbers, and a hostile name.

The numbers are made up; the shape is pipeline.book.schema's, so that a page which renders here renders from the real tables.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import polars as pl

from pipeline.book.scenario import written_out
from pipeline.book.schema import PUBLISHED
from pipeline.press import changes, publish
from pipeline.render import addresses, render
from tests.once import once
from tests.render.tiny_models import ladder
from tests.render.tiny_rows import CONSTANTS, FACTS, all_rows

DEEP = "deep"  # a site lives below the root of its host as well as at it
SITE = f"https://almanac.example/{DEEP}/"
POLARS = {"string": pl.String, "integer": pl.Int64, "number": pl.Float64, "boolean": pl.Boolean}
FILL = {"string": "x", "integer": 1, "number": 1.0, "boolean": False}


# the book's own rules beside the footprint
SQL, RULES = (
    FACTS.parents[1] / "sql",
    (
        *(
            "words.sql",
            "state/state.sql",
            "speed/speed.sql",
            "speed/likely.sql",
            "plans/machine.sql",
            "plans/training.sql",
        ),
        *(
            "plans/techniques.sql",
            "sharding/plans.sql",
            "plans/serving.sql",
            "ask/speculative_of.sql",
            "scenario/versions.sql",
            "activations/training/balance.sql",
            "ask/objective.sql",
            "ask/own_context_of.sql",
            "plans/drafts.sql",
            "pipelines/pipelines.sql",
            "pipelines/training.sql",
            "pipelines/pipeline_training.sql",
            "kv-cache/borrowed.sql",
            "capacity/verdict.sql",
            "capacity/cpu_split.sql",
            "capacity/together.sql",
        ),
    ),
)
# what the real formulas work out as tables, from more than there is here
WORKED_OUT = re.compile(
    r"CREATE OR REPLACE (TABLE|VIEW) (training_run|training_rate|training_share|serving_run|engine_speed|cpu_split|draft_engines|denoiser_adapted)\b"
)


# A formula with the real one's outline: steps, a join that may miss, scalar macros, a reason.
FORMULAS = """
create or replace table shape as select model_id, parameter_count, max_context_tokens, [{'layers': 32, 'elements': 2048}] as caches,
    starts_with(model_id, 'tiny-lab') as is_encoder, false as is_sparsely_read, null::varchar as writes_otherwise, active_parameter_count as token_elements
    from model where parameter_count is not null;
create or replace table weight as select model_id, dtype_id, (parameter_count * bits_per_weight / 8)::bigint as weights_bytes,
    (token_elements * bits_per_weight / 8)::bigint as read_bytes from shape, dtype;
create or replace table denoiser_weight (model_id varchar, pipeline_part varchar, dtype_id varchar, weights_bytes bigint, working_bytes bigint, first_bytes bigint, token_bytes bigint, holds_for varchar);
create or replace table denoiser_adapted (model_id varchar, adapter_elements bigint, adapted_matrices double, pair_layers bigint, single_layers double,
    plan varchar, has_other_blocks boolean);
create or replace table layer_weight (model_id varchar, dtype_id varchar, layer_bytes bigint[], expert_bytes bigint[], matrix_bytes bigint);
create or replace table kv_dtype as select *, null::double as least_capability, null::varchar as targets from (values ('bf16', 16), ('fp8', 8), ('q8_0', 8)) as t(kv_dtype_id, element_bits);
create or replace table model_name as select lower(model_id) as name, model_id from model;
create macro asked_number(value) as try_cast(value as bigint);
create macro kept_per_logit(model, scenario) as 4;
create macro gradients_per_logit(model, scenario) as 4;
create macro cast_elements(model) as 0;
create macro freed_bytes_per_logit(loss, compute_bytes) as 2;
create macro kv_cache_bytes(m, x) as list_sum(list_transform(m.caches, lambda c: c.layers * c.elements * x.context_tokens))::bigint;
create macro footprints_as_written(relation) as table
with asked as (from query_table(relation)),
x as (select coalesce(asked.context_tokens, 8192) as context_tokens, coalesce(asked.sequences, 1) as sequences,
    coalesce(asked.gpu_count, 1) as gpu_count, asked.* exclude (context_tokens, sequences, gpu_count),
    coalesce(asked.engine_id, d.engine_id) as engine_used
    from asked left join dtype as d on d.dtype_id = asked.dtype_id left join engine as e on e.engine_id = asked.engine_id),
part as (select x.*, w.weights_bytes as weights, kv_cache_bytes(m, x) * x.sequences * kv.element_bits // 8 as kv,
    case when x.context_tokens < 1 then 'a context starts at 1' end as unknown_reason
    from x left join shape as m on m.model_id = x.model_id left join weight as w on w.model_id = x.model_id and w.dtype_id = x.dtype_id
    left join kv_dtype as kv on kv.kv_dtype_id = coalesce(x.kv_dtype_id, 'bf16') left join optimizer as o on o.optimizer_id = x.optimizer_id
    left join phase as p on p.phase_id = x.phase_id left join model_name as named on named.name = lower(x.model_id))
select model_id, coalesce(dtype_id, 'bf16') as dtype_id, coalesce(phase_id, 'inference') as phase_id, 'flash' as attention,
    engine_used as engine_id, context_tokens, sequences, gpu_count, weights // gpu_count as weights_bytes, kv // gpu_count as kv_cache_bytes,
    0 as state_bytes, gpu_count as tensor_parallel, 1 as pipeline_parallel,
    case when unknown_reason is null then weights // gpu_count + kv // gpu_count end as total_bytes, 0.04 as error_band, null as peak_moment, unknown_reason
from part;
"""


def build(folder: Path) -> Path:
    """Write every published table but the compatibility view as Parquet, and an almanac.duckdb that holds them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = all_rows()
    for table in PUBLISHED.values():
        if table.name == "compatibility":
            continue
        schema = {c.name: POLARS[c.type] for c in table.columns}
        blank = {c.name: None if c.name in table.nullable else FILL[c.type] for c in table.columns}
        frame = pl.DataFrame([blank | row for row in rows.get(table.name, ())], schema=schema)
        frame = frame.sort([k for k in table.key if k in schema])
        frame.write_parquet(folder / f"{table.name}.parquet")
        frame.write_csv(folder / f"{table.name}.csv")
    (folder / "almanac.duckdb").unlink(missing_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{folder / 'almanac.duckdb'}' as almanac (storage_version 'v1.2.0')")
        for table in PUBLISHED.values():
            if table.name != "compatibility":
                file = folder / f"{table.name}.parquet"
                connection.execute(f"create table almanac.{table.name} as from read_parquet('{file}')")
        connection.execute("create table almanac.ladder as from almanac.footprint limit 0")
        connection.register("ladder_rows", pl.DataFrame(list(ladder()), infer_schema_length=None).to_arrow())
        connection.execute("insert into almanac.ladder by name from ladder_rows")
        connection.execute("use almanac")
        connection.execute(FORMULAS)
        for name in RULES:
            text = written_out((SQL / name).read_text(encoding="utf-8"))
            for statement in connection.extract_statements(text):
                if (
                    "AS TABLE" not in statement.query
                    and not WORKED_OUT.search(statement.query)
                    and " pipeline_number(" not in statement.query
                ):
                    connection.execute(statement.query)
        wide = ", ".join(f"{value}::double as {name}" for name, value in CONSTANTS.items())
        connection.execute(f"create table almanac.constants as select {wide}")
    versions = {"data_version": "tiny", "schema_version": "1.0.0", "snapshot_date": "2026-01-02"}
    changes.write(folder, folder, versions, folder / "release")
    return folder


def built() -> Path:
    """The same, made once for all tests."""
    return once("tiny-tables", build)


def rendered() -> Path:
    """The site of them at SITE, made once for all tests."""
    return once("tiny-site", lambda folder: published(folder / DEEP)) / DEEP


def published(folder: Path) -> None:
    """As a publish makes it."""
    render(built(), folder, site_url=SITE)
    publish.write_far(built(), folder, addresses.known(SITE))
