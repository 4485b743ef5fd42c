"""Verdicts: the view and the file say the same, and `fits` means that total and error band are below what the card gives."""

from __future__ import annotations

import random

import polars as pl
import pytest

from pipeline.book.packs import Packs
from pipeline.book.schema import PUBLISHED
from pipeline.press import compatibility
from pipeline.press.blocks import Cut
from pipeline.press.compatibility import DERIVED, write_compatibility
from pipeline.press.lookup import fill_footprints

MODELS = ["Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-20b"]


@pytest.fixture(scope="module")
def small(book):
    """The book with the default lookup of four models, from a fraction of a card to several nodes, and what the view says of it (`judged`)."""
    cursor = book.cursor()
    cursor.execute("DELETE FROM footprint")
    fill_footprints(cursor, models=MODELS)
    cursor.execute("CREATE TEMP TABLE judged AS FROM compatibility")
    yield cursor
    cursor.execute("DELETE FROM footprint")
    cursor.close()


def test_the_file_is_the_view(small, tmp_path):
    rows = write_compatibility(small, tmp_path / "compatibility.parquet")
    file = pl.read_parquet(tmp_path / "compatibility.parquet")
    assert file.height == rows == small.execute("SELECT count(*) FROM judged").fetchall()[0][0]
    assert (*file.columns, *DERIVED) == tuple(
        sorted(PUBLISHED["compatibility"].column_names, key=(*file.columns, *DERIVED).index)
    )
    small.register("written", file.to_arrow())
    view = f"(SELECT * EXCLUDE ({', '.join(DERIVED)}) FROM judged)"
    # (as many rows, and none of the one that the other does not have as often)
    assert small.execute(f"SELECT count(*) FROM (FROM written EXCEPT ALL FROM {view})").fetchall()[0][0] == 0
    small.unregister("written")


def test_models_without_any_total_are_a_file_too(small, tmp_path):
    small.execute("CREATE OR REPLACE TEMP TABLE footprint AS FROM footprint WHERE total_bytes IS NULL")
    try:
        rows = write_compatibility(small, tmp_path / "compatibility.parquet")
    finally:
        small.execute("DROP TABLE temp.footprint")
    file = pl.read_parquet(tmp_path / "compatibility.parquet")
    assert file.height == rows > 0
    assert file["verdict"].null_count() == rows
    assert file["unknown_reason"].null_count() == 0


def edits(count: int, seed: int) -> list[dict[str, str]]:
    """Snapshots that follow one another: under which name there is the content of which model."""
    chance, names = random.Random(seed), [f"org/model-{place}" for place in range(6)]
    snapshots = [dict(zip(names, MODELS, strict=False))]
    for _ in range(count):
        following, name = dict(snapshots[-1]), chance.choice(names)
        if name in following and len(following) > 2 and chance.random() < 0.4:
            del following[name]
        else:
            following[name] = chance.choice(MODELS)
        snapshots.append(following)
    return snapshots


@pytest.mark.full
def test_blocks_that_are_kept_make_the_same_file(small, tmp_path, monkeypatch):
    """Over edits of a snapshot, and where what is kept is damaged; and only what changed is worked out."""
    monkeypatch.setattr(compatibility, "CUT", Cut(least=2, most=2, one_of=1, together=2))
    work_out, worked_out = compatibility._worked_out, []
    monkeypatch.setattr(
        compatibility,
        "_worked_out",
        lambda c, blocks: worked_out.extend(b.models for b in blocks) or work_out(c, blocks),
    )
    path, held = tmp_path / "compatibility.parquet", ("model", "shape", "weight", "footprint")
    [(database,)] = small.execute("SELECT current_database()").fetchall()
    seen: set[tuple] = set()

    def file_of(contents: dict[str, str], packs: Packs | None) -> bytes:
        small.execute("CREATE OR REPLACE TEMP TABLE content (shelved_as VARCHAR, content VARCHAR)")
        small.executemany("INSERT INTO content VALUES (?, ?)", list(contents.items()))
        for table in held:
            small.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT held.* REPLACE (shelved_as AS model_id) "
                f"FROM {database}.main.{table} AS held JOIN content ON content = held.model_id"
            )
        worked_out.clear()
        write_compatibility(small, path, packs)
        return path.read_bytes()

    try:
        for contents in edits(3, seed=1):
            kept = file_of(contents, Packs(tmp_path / "packs"))
            asked = {tuple((model, contents[model]) for model in models) for models in worked_out}
            assert asked.isdisjoint(seen)
            seen |= asked
            assert kept == file_of(contents, None)
        assert file_of(contents, Packs(tmp_path / "packs")) == kept and not worked_out
        for pack in (tmp_path / "packs").iterdir():
            file = pack / path.name
            file.write_bytes(file.read_bytes()[:-20] + bytes(20))
        assert file_of(contents, Packs(tmp_path / "packs")) == kept and worked_out
    finally:
        for table in held:
            small.execute(f"DROP TABLE IF EXISTS temp.{table}")


def test_fits_includes_the_error_band(small):
    wrong = small.execute(
        """
        SELECT count(*) FROM judged AS c JOIN gpu USING (gpu_id)
        JOIN footprint AS f ON f.gpu_count = c.gpu_count_needed
            AND (f.model_id, f.dtype_id, f.phase_id, f.engine_id, f.context_tokens, f.sequences)
                = (c.model_id, c.dtype_id, c.phase_id, c.engine_id, c.context_tokens, c.sequences)
            AND f.optimizer_id IS NOT DISTINCT FROM c.optimizer_id AND f.checkpointing IS NOT DISTINCT FROM c.checkpointing
        WHERE c.verdict IN ('fits', 'multi-gpu') AND f.total_bytes * (1 + f.error_band) > capacity_bytes
            OR c.verdict = 'tight' AND (f.total_bytes > capacity_bytes OR f.total_bytes * (1 + f.error_band) <= capacity_bytes)
            OR c.verdict = 'fits' AND c.gpu_count_needed <> 1
            OR c.verdict = 'multi-gpu' AND c.gpu_count_needed < 2
        """
    ).fetchall()[0][0]
    assert wrong == 0


def test_every_verdict_occurs_and_unknown_has_none(small):
    verdicts = dict(small.execute("SELECT verdict, count(*) FROM judged GROUP BY ALL").fetchall())
    assert set(verdicts) == {"fits", "tight", "multi-gpu", "no", None}
    assert small.execute(
        "SELECT count(*) FROM judged WHERE (verdict IS NULL) <> (unknown_reason IS NOT NULL)"
    ).fetchall() == [(0,)]


@pytest.mark.full
def test_what_is_tight_on_several_cards_is_not_refused(small):
    rows = small.execute(
        """
        SELECT c.model_id, c.gpu_count_needed, f.total_bytes, f.error_band, capacity_bytes
        FROM judged AS c JOIN gpu USING (gpu_id)
        JOIN footprint AS f ON f.gpu_count = c.gpu_count_needed AND f.phase_id = 'full-finetune'
            AND (f.model_id, f.dtype_id, f.phase_id, f.engine_id, f.context_tokens, f.sequences, f.optimizer_id, f.checkpointing)
                = (c.model_id, c.dtype_id, c.phase_id, c.engine_id, c.context_tokens, c.sequences, c.optimizer_id, c.checkpointing)
        WHERE c.verdict = 'tight' AND c.gpu_count_needed > 1
        """
    ).fetchall()
    assert rows
    assert all(total <= capacity < total * (1 + band) for _model, _count, total, band, capacity in rows)


def test_servers_are_joined_for_large_models_only(small):
    rows = dict(
        small.execute(
            "SELECT model_id, max(gpu_count_needed) FROM judged WHERE phase_id = 'inference' GROUP BY ALL"
        ).fetchall()
    )
    assert rows["deepseek-ai/DeepSeek-V3"] == 32 and rows["Qwen/Qwen3-0.6B"] < 16
    [(count, sharding)] = small.execute(
        """
        SELECT gpu_count_needed, sharding FROM judged
        WHERE model_id = 'deepseek-ai/DeepSeek-V3' AND dtype_id = 'bf16' AND engine_id = 'vllm' AND gpu_id = 'h100-sxm'
            AND context_tokens = 8192 AND sequences = 1
        """
    ).fetchall()
    # 671B parameters in two bytes each are 1,342 GB: 16 cards of 80 GB give 1,280 GB
    assert (count, sharding) == (32, "tp+pp")


def test_a_larger_card_of_the_same_kind_never_needs_more_gpus(small):
    assert (
        small.execute(
            """
            SELECT count(*) FROM judged AS less JOIN judged AS more
                ON (less.model_id, less.dtype_id, less.phase_id, less.engine_id, less.context_tokens, less.sequences)
                    = (more.model_id, more.dtype_id, more.phase_id, more.engine_id, more.context_tokens, more.sequences)
                AND less.optimizer_id IS NOT DISTINCT FROM more.optimizer_id
                AND less.checkpointing IS NOT DISTINCT FROM more.checkpointing
            WHERE less.gpu_id = 'rtx-4090' AND more.gpu_id = 'h200-sxm'
                AND more.gpu_count_needed > less.gpu_count_needed
            """
        ).fetchall()[0][0]
        == 0
    )


def test_fits_on_and_what_fits_answer_by_card(small):
    verdict = small.execute(
        "SELECT verdict FROM fits_on('rtx-4090', 'meta-llama/Llama-3.1-8B-Instruct', dtype_id := 'gguf-q4_k_m')"
    ).fetchall()
    assert verdict == [("fits",)]
    models = small.execute("SELECT DISTINCT model_id FROM what_fits('rtx-3060-12gb', dtype_id := 'bf16')").fetchall()
    assert ("Qwen/Qwen3-0.6B",) in models
    assert ("deepseek-ai/DeepSeek-V3",) not in models
    (several,) = small.execute("""
        SELECT count(*) FROM what_fits('rtx-3060-12gb') AS listed WHERE NOT EXISTS (FROM footprint WHERE gpu_count = 1
            AND footprint.model_id = listed.model_id AND footprint.dtype_id = listed.dtype_id
            AND footprint.engine_id = listed.engine_id AND footprint.context_tokens = listed.context_tokens
            AND footprint.total_bytes = listed.total_bytes)
    """).fetchall()[0]
    assert several == 0  # what is published of several cards fits none


@pytest.mark.full
def test_a_server_is_told_how_much_of_the_card_it_may_take(book):
    def asked(tokens, engine="vllm"):
        return book.execute(
            "SELECT engine_setting, total_bytes / capacity_bytes FROM fits_on('rtx-4090', 'Qwen/Qwen3-8B', "
            "context_tokens := $tokens, max_context_tokens := 131072, engine_id := $engine)",
            {"tokens": tokens, "engine": engine},
        ).fetchall()[0]

    assert asked(8192)[0] is None, "the default is enough"
    assert asked(28000, "transformers")[0] is None, "takes what it needs by itself"
    setting, share = asked(28000)
    # with its error band, and no more of what the total leaves than half of it
    assert 0.9 < share < float(setting.removeprefix("--gpu-memory-utilization ")) < (1 + share) / 2 + 0.01
    assert asked(60000)[0] is None, "no setting makes it fit"


def test_the_limits_fit_and_the_next_step_does_not(small, book, footprints):
    """The longest context and the most sequences of inference against the forward formula itself."""
    rows = small.execute(
        """
        SELECT c.model_id, dtype_id, c.engine_id, context_tokens, sequences, c.max_context_tokens, max_sequences, capacity_bytes,
            shape.max_context_tokens
        FROM judged AS c JOIN gpu USING (gpu_id) JOIN shape USING (model_id)
        WHERE phase_id = 'inference' AND verdict IS NOT NULL AND gpu_id IN ('rtx-4090', 'h100-sxm', 'rtx-4060')
            AND context_tokens IN (2048, 32768)
        """
    ).fetchall()
    asked, limits = [], []
    for model, dtype, engine, context, sequences, longest, most, capacity, allowed in rows:
        base = {"model_id": model, "dtype_id": dtype, "engine_id": engine}
        # fp32 scores of grouped heads grow with the square of the context: the line between two points lies above them
        steps = (0,) if (dtype, engine) == ("fp32", "transformers") else (0, 1024)
        for step in steps:  # a step larger than any block that an engine rounds to
            for changes, limit, end in (
                ({"context_tokens": longest + step, "sequences": sequences}, longest, longest + step > (allowed or 0)),
                (
                    {"context_tokens": context, "sequences": most + (step > 0)},
                    most,
                    (engine, most) in (("vllm", 256), ("llama.cpp", 64)),
                ),
            ):
                if limit > 0 and not (step and end):
                    asked.append(base | changes)
                    limits.append((step, capacity, "sequences" in changes and changes["sequences"] != sequences))
    assert len(asked) > 500
    for scenario, row, (step, capacity, is_of_sequences) in zip(asked, footprints(asked), limits, strict=True):
        need = row["total_bytes"] * (1 + row["error_band"])
        # (where llama.cpp's buffer starts to grow with the slots the total bends, and the line between two points lies above it: of 15
        # sequences that just fit 14 are told, never one too many)
        next_is_over = need > capacity * (0.998 if is_of_sequences and scenario["engine_id"] == "llama.cpp" else 1)
        assert next_is_over if step else (need <= capacity * (1 + 1e-6)), (scenario, need / capacity)


@pytest.mark.full
def test_the_limits_of_training_fit(small, footprints):
    """The longest sequence and the largest micro-batch that are published for a step never need more than the card gives."""
    rows = small.execute(
        """
        SELECT model_id, dtype_id, phase_id, optimizer_id, checkpointing, context_tokens, sequences, max_context_tokens, max_sequences,
            capacity_bytes
        FROM judged JOIN gpu USING (gpu_id)
        WHERE phase_id <> 'inference' AND verdict IS NOT NULL AND gpu_id IN ('rtx-4090', 'h100-sxm') AND context_tokens IN (512, 8192)
        """
    ).fetchall()
    names = ("model_id", "dtype_id", "phase_id", "optimizer_id", "checkpointing", "context_tokens", "sequences")
    asked, capacities = [], []
    for row in rows:
        base = dict(zip(names, row, strict=False))
        for changes in ({"context_tokens": row[7]}, {"sequences": row[8]}):
            if next(iter(changes.values())):
                asked.append(base | changes)
                capacities.append(row[9])
    assert len(asked) > 200
    for scenario, row, capacity in zip(asked, footprints(asked), capacities, strict=True):
        need = row["total_bytes"] * (1 + row["error_band"])
        assert need <= capacity * (1 + 1e-6), (scenario, need / capacity)


@pytest.mark.full
def test_published_limits_are_never_above_those_that_are_searched(small):
    """The view draws lines between published points; limits_on asks the formula itself."""
    for phase, dtype in (("qlora", "nf4"), ("full-finetune", "bf16"), ("lora", "bf16")):
        published = small.execute(
            """
            SELECT max_context_tokens, max_sequences FROM judged
            WHERE gpu_id = 'rtx-4090' AND model_id = 'Qwen/Qwen3-0.6B' AND phase_id = $phase AND dtype_id = $dtype
                AND optimizer_id = 'adamw' AND checkpointing = 'full' AND context_tokens = 2048 AND sequences = 1
            """,
            {"phase": phase, "dtype": dtype},
        ).fetchall()[0]
        exact = small.execute(
            """
            SELECT max_context_tokens, max_sequences
            FROM limits_on('rtx-4090', 'Qwen/Qwen3-0.6B', phase_id := $phase, dtype_id := $dtype, checkpointing := 'full')
            """,
            {"phase": phase, "dtype": dtype},
        ).fetchall()[0]
        for line, most in zip(published, exact, strict=True):
            assert 0 < line <= most


@pytest.mark.full
def test_what_vllm_has_to_be_told_of_images_that_nobody_sends(book):
    """It sets memory aside for the largest image of a model that sees, which a footprint without images has not."""
    asked = "SELECT engine_setting FROM fits_on('h100-sxm', $model_id, engine_id := $engine, context_tokens := 4096)"

    def setting(model_id, engine):
        return book.execute(asked, {"model_id": model_id, "engine": engine}).fetchall()[0][0]

    assert setting("Qwen/Qwen2.5-VL-7B-Instruct", "vllm") == """--limit-mm-per-prompt '{"image": 0, "video": 0}'"""
    assert setting("Qwen/Qwen2.5-VL-7B-Instruct", "transformers") is None
    assert setting("Qwen/Qwen3-8B", "vllm") is None
