"""Unsloth loads a repository of its own in place of many a model, and packs no towers: what it keeps in 16 bits counts with the weights."""

import pytest

from pipeline.book.facts import read_facts
from tests.once import bundled_snapshot

UNSLOTH = dict(phase_id="qlora", program="unsloth", lora_rank=8, context_tokens=2048, optimizer_id="adamw-8bit")
GIB = 2**30
# what bitsandbytes adds to a published total for each element: a scale in 8 bits for 64, counted twice as all U8 is, and one in fp32 for 256 of those
PER_ELEMENT = 2 / 64 + 1 / (64 * 256)


def test_what_is_packed_is_what_the_published_total_tells(book):
    """The total of the model beside it tells the scales, and these how much is packed: tables and texts of each matrix are a few hundredths."""
    totals = {record.model_id: record.stored_parameter_count for record in bundled_snapshot().records}
    counts = dict(
        book.execute("SELECT lower(model_id), parameter_count FROM model WHERE NOT model_id ILIKE '%-FP8%'").fetchall()
    )
    rows = [row for row in read_facts()["program_repository"].iter_rows(named=True) if row["packed_elements"]]
    known = [(row, counts[name]) for row in rows for name in row["model_ids"].split() if counts.get(name)]
    assert len({row["loads"] for row, _ in known}) > 3
    for row, parameters in known:
        most = (totals[row["loads"]] - parameters) / PER_ELEMENT
        assert 0.97 * most < row["packed_elements"] <= most, row["loads"]


# what notebooks of Unsloth printed as reserved after loading, adapters included
@pytest.mark.parametrize(
    ("model_id", "least_gib", "most_gib"),
    [("google/gemma-3-27b-it", 19.0, 19.1), ("Qwen/Qwen3-14B", 10.2, 11.898), ("microsoft/phi-4", 10.0, 10.1), ("google/gemma-3-4b-it", 4.2, 4.283),
     ("Qwen/Qwen3-32B", 17.5, 19.121)],
)  # fmt: skip
def test_weights_are_those_of_the_repository_that_is_loaded(footprint_of, model_id, least_gib, most_gib):
    asked = footprint_of(model_id, **UNSLOTH)
    assert least_gib < asked["weights_bytes"] / GIB < most_gib, asked["weights_bytes"] / GIB


def test_an_answer_names_the_repository_and_whether_it_is_a_bound(footprint_of):
    assert (
        footprint_of("Qwen/Qwen3-14B", **UNSLOTH)["holds_for"]
        == "Unsloth 2026.10, loading unsloth/Qwen3-14B-unsloth-bnb-4bit"
    )
    asked = footprint_of("Qwen/Qwen3-8B", **UNSLOTH)
    assert asked["holds_for"].endswith("-bnb-4bit (how much it keeps in 16 bits is not known)")
    assert footprint_of("microsoft/phi-4", **UNSLOTH)["holds_for"].endswith(
        "(with the most that it may keep in 16 bits)"
    )
    assert (
        footprint_of("Qwen/Qwen3-32B", **UNSLOTH)["holds_for"] == "Unsloth 2026.10"
    )  # (its own is too large for Unsloth itself)


def test_a_repository_that_nothing_tells_of_is_between_the_least_and_the_most_that_any_keeps(book, footprint_of):
    """A base and the model tuned of it have the same matrices; of one repository the total is known. It was a flat No, of the most that any keeps."""
    told, unknown = (footprint_of(f"meta-llama/Llama-3.1-8B{tuned}", **UNSLOTH) for tuned in ("-Instruct", ""))
    assert (told["more_bytes"], unknown["more_bytes"] > GIB) == (0, True)
    assert 0 <= told["total_bytes"] - unknown["total_bytes"] < unknown["more_bytes"] / 10
    beyond = unknown["error_band"] * unknown["total_bytes"] - told["error_band"] * told["total_bytes"]
    assert beyond == pytest.approx(unknown["more_bytes"], rel=0.05)
    # the bounds are those of all that have a total
    query = """
        SELECT coalesce(model.tower_linear_elements, 0) > 0, min(share), max(share) FROM (
            SELECT model_id, 1 - packed_elements / packed_by_format(weight, dtype) AS share
            FROM (SELECT unnest(string_split(model_ids, ' ')) AS name, packed_elements FROM program_repository)
            JOIN weight ON lower(weight.model_id) = name AND dtype_id = 'nf4-double' JOIN dtype USING (dtype_id)
            WHERE packed_elements IS NOT NULL
        ) JOIN shape_row USING (model_id) GROUP BY ALL ORDER BY ALL
    """
    constants = dict(
        book.execute("SELECT constant_id, value FROM constant WHERE constant_id LIKE 'unsloth_kept%'").fetchall()
    )
    for (sees, least, most), kind in zip(book.execute(query).fetchall(), ("text", "seeing"), strict=True):
        assert sees == (kind == "seeing")
        assert 0 <= least - constants[f"unsloth_kept_least_share_{kind}"] < 2e-4
        assert 0 <= constants[f"unsloth_kept_share_{kind}"] - most < 2e-4


@pytest.mark.full
def test_another_engine_and_a_base_that_its_user_packs_are_the_plain_format(footprint_of):
    plain = footprint_of(
        "Qwen/Qwen3-14B", phase_id="qlora", dtype_id="nf4-double", engine_id="transformers", precision="pure"
    )["weights_bytes"]
    own = footprint_of("Qwen/Qwen3-14B", **UNSLOTH)["weights_bytes"]
    packed = footprint_of("Qwen/Qwen3-14B", dtype_id="nf4", **UNSLOTH)["weights_bytes"]
    assert plain < packed < own


def test_towers_stay_in_16_bits_where_unsloth_packs_by_itself(footprint_of):
    """Qwen3.5 has no repository of its own there."""
    own = footprint_of("Qwen/Qwen3.5-4B", **UNSLOTH)
    plain = footprint_of(
        "Qwen/Qwen3.5-4B", phase_id="qlora", dtype_id="nf4-double", engine_id="transformers", precision="pure"
    )
    assert own["holds_for"] == "Unsloth 2026.10" and own["weights_bytes"] > plain["weights_bytes"] + 2**28


@pytest.mark.full
def test_attention_with_sinks_does_not_grow_with_the_square_of_the_context(footprint_of):
    """gpt-oss trains with flex attention there: 120b at 4 x 4,096 tokens took 67.8 GiB of a card, 500,000 tokens of 20b 70.5 with tiled blocks."""
    sizes = [
        footprint_of("openai/gpt-oss-20b", **UNSLOTH | {"context_tokens": tokens})["activations_bytes"]
        for tokens in (16384, 32768, 65536)
    ]
    assert sizes[2] - sizes[1] < 2.1 * (sizes[1] - sizes[0])
    asked = UNSLOTH | {"lora_rank": 16, "lora_targets": "attention", "context_tokens": 4096, "sequences": 4}
    assert 66 * GIB < footprint_of("openai/gpt-oss-120b", **asked)["total_bytes"] < 73 * GIB
    eager = footprint_of("openai/gpt-oss-20b", **UNSLOTH | {"context_tokens": 16384, "attention": "eager"})
    assert eager["activations_bytes"] > 10 * sizes[0]
