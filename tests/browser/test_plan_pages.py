"""Plans in the browser say what the macros of the published file say; the pages that tell them are read on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.reckoned import reckoned

pytestmark = pytest.mark.browser
MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b", "google/gemma-3-12b-it")
SCRIPTS = ("almanac", "reckon", "plan", "sql_words")
WRITTEN = (
    ("h100-sxm", {"model_id": MODELS[0], "dtype_id": "bf16", "engine_id": "vllm", "sequences": 8}),
    ("h200-sxm", {"model_id": MODELS[1], "dtype_id": "bf16", "engine_id": "vllm", "sequences": 5, "gpu_count": 2}),
    ("rtx-4090", {"model_id": MODELS[3], "dtype_id": "gguf-q4_k_m"}),
    ("rtx-4090", {"model_id": MODELS[2], "dtype_id": "gguf-mxfp4"}),
    ("rtx-4090", {"model_id": MODELS[0], "dtype_id": "gguf-q4_k_m", "sequences": 3}),
    ("mi300x", {"model_id": MODELS[0], "dtype_id": "bf16", "engine_id": "vllm"}),
)
TRAINED = (
    ("h100-sxm", MODELS[0], "lora", 1e9),
    ("rtx-4090", MODELS[0], "qlora", 1e7),
    ("a100-sxm-80gb", MODELS[1], "full-finetune", 1e10),
    ("l40s", MODELS[3], "lora", 1e3),
)
# one card where one suffices; many, whose copies share the data; experts; layers that are divided; nothing that finishes; pre-training on tokens;
# larger micro-batches
PLANNED = (
    ("h100-sxm", MODELS[0], "lora", {"data_bytes": 1e9}),
    ("h100-sxm", MODELS[0], "full-finetune", {"data_bytes": 1e10, "days": 2}),
    ("h100-sxm", MODELS[1], "full-finetune", {"data_bytes": 1e9}),
    ("rtx-4090", MODELS[3], "full-finetune", {"data_bytes": 1e8}),
    ("rtx-3060-12gb", MODELS[0], "lora", {"data_bytes": 1e12}),
    ("h100-sxm", MODELS[0], "pretrain", {"data_tokens": 3e11, "days": 30}),
    ("h100-sxm", MODELS[1], "lora", {"data_bytes": 1e9}),
    ("h100-sxm", MODELS[3], "full-finetune", {"data_bytes": 1e9}),
)


@pytest.fixture(scope="module")
def asked(book, browser):
    """plan.js over the formulas of the book: a function of it, asked with the tables of a model."""
    with reckoned(book, browser, MODELS, SCRIPTS) as ask:
        yield ask


@pytest.mark.full
def test_likely_speeds_are_those_of_speed_on(book, asked):
    for gpu, wanted in WRITTEN:
        code = "const [id, wanted] = more; return plan.likely(own, r.ask(own, { phase_id: 'inference', context_tokens: 8192, ...wanted }), id);"
        told = asked(code, wanted["model_id"], gpu, wanted)
        rest = {k: v for k, v in wanted.items() if k != "model_id"}
        named = ", ".join(f"{name} := ${name}" for name in rest)
        query = f"SELECT decode_tokens_per_second_likely, decode_tokens_per_second_low, prefill_tokens_per_second_likely FROM speed_on($gpu, $model_id, {named})"
        decode, low, prefill = book.execute(query, {"gpu": gpu} | wanted).fetchall()[0]
        assert [told.get("decode"), told.get("low"), told.get("prefill")] == [
            pytest.approx(value) if value is not None else None for value in (decode, low, prefill)
        ], wanted
        assert (told["decode"] is None) == (told["why"] is not None)


@pytest.mark.full
def test_a_training_takes_as_long_as_plan_training_for_says(book, asked):
    for gpu, model, phase, size in TRAINED:
        result = book.execute(
            "FROM plan_training_for($1, $2, phase_id := $3, data_bytes := $4, price_per_gpu_hour := 2) LIMIT 1",
            [gpu, model, phase, size],
        )
        plan = dict(zip([c[0] for c in result.description], result.fetchall()[0], strict=True))
        shared = (
            "gpu_count",
            "sharding",
            "tensor_parallel",
            "pipeline_parallel",
            "context_parallel",
            "expert_parallel",
            "checkpointing",
            "engine_id",
        )
        wanted = {"model_id": model, "phase_id": phase} | {
            name: plan[name] for name in (*shared, "context_tokens", "sequences")
        }
        told = asked("const [id, wanted, asked] = more; return plan.training(own, r.ask(own, wanted), id, asked);", model, gpu, wanted, {"data_bytes": size, "price": 2})  # fmt: skip
        pairs = {
            "hours": "hours", "least": "hours_least", "most": "hours_most", "tokens": "data_tokens", "batch": "global_batch_tokens", "kwh": "energy_kwh_most",
            "cost": "cost", "cpu": "server_cpu_count", "memory": "server_memory_bytes", "disk": "disk_bytes", "network": "network_gb_s_least", "link": "link_gb_s_least",
        }  # fmt: skip
        for mine, theirs in pairs.items():
            assert told[mine] == (None if plan[theirs] is None else pytest.approx(plan[theirs])), (gpu, model, theirs)


@pytest.mark.full
@pytest.mark.parametrize(("gpu", "model", "phase", "work"), PLANNED)
def test_the_fewest_cards_that_finish_are_those_of_plan_training_for(book, asked, gpu, model, phase, work):
    """Of all ways that the tables search; the card's memory is what the table judges by."""
    names = (
        "gpu_count",
        "finishes",
        "sharding",
        "tensor_parallel",
        "pipeline_parallel",
        "expert_parallel",
        "checkpointing",
        "hours",
        "gradient_accumulation",
        "sequences",
        "network_gb_s_least",
    )
    code = """const [id, bytes, wanted, asked] = more, told = plan.planned(own, wanted, id, bytes, asked), row = told.row;
        return [told.cards, told.finishes, row.sharding, row.tensor_parallel, row.pipeline_parallel, row.expert_parallel, row.checkpointing, told.hours, told.micro_batches, row.sequences, told.network];"""
    named = "".join(f", {name} := {value}" for name, value in work.items())
    query = f"SELECT {', '.join(names)} FROM plan_training_for($1, $2, phase_id := $3{named}) LIMIT 1"
    expected = book.execute(query, [gpu, model, phase]).fetchall()[0]
    ((capacity,),) = book.execute("SELECT capacity_bytes FROM gpu WHERE gpu_id = $1", [gpu]).fetchall()
    told = asked(code, model, gpu, capacity, {"model_id": model, "phase_id": phase}, work)
    assert told == [pytest.approx(value) if isinstance(value, float) else value for value in expected], (
        gpu,
        model,
        work,
    )


def test_a_bad_question_has_a_reason_and_no_hours(asked):
    code = "const [id, asked] = more; return plan.training(own, r.ask(own, { model_id: 'Qwen/Qwen3-8B', phase_id: 'lora' }), id, asked);"
    for gpu, question, why in (
        ("rtx-4090", {"data_bytes": 0}, "there has to be data"),
        ("rtx-4090", {"data_bytes": 1e6, "days": 0}, "the time has to be more than 0"),
        ("gtx-1080-ti", {"data_bytes": 1e6}, "no rate of 16-bit products"),
        ("no-card", {"data_bytes": 1e6}, "choose a card"),
    ):
        told = asked(code, MODELS[0], gpu, question)
        assert told["why"].startswith(why) and "hours" not in told


@pytest.mark.full
def test_techniques_are_those_of_techniques_for(book, asked):
    code = "return plan.techniques(own, 'Qwen/Qwen3-8B', 'h100-sxm', { context_tokens: 2048, sequences: 1 }).map((x) => [x.technique.technique_id, x.row.total_bytes, x.least, x.likely]);"
    told = asked(code, MODELS[0])
    query = "SELECT technique_id, total_bytes, token_seconds_least, token_seconds_likely FROM techniques_for('h100-sxm', $1)"
    for mine, theirs in zip(told, book.execute(query, [MODELS[0]]).fetchall(), strict=True):
        assert mine[:2] == list(theirs[:2])
        assert mine[2:] == [None if value is None else pytest.approx(value) for value in theirs[2:]]


@pytest.mark.full
def test_a_draft_is_that_of_drafted_on(book, asked):
    """The draft's rows are those of another model: here the model itself stands for it, which is too large."""
    code = "const [id, wanted] = more; return plan.drafted(own, own, wanted, id);"
    told = asked(
        code,
        MODELS[0],
        "h100-sxm",
        {"model_id": MODELS[0], "draft_id": MODELS[0], "dtype_id": "bf16", "engine_id": "vllm", "context_tokens": 8192},
    )
    query = "SELECT draft_bytes, unknown_reason FROM drafted_on('h100-sxm', $1, $1, engine_id := 'vllm')"
    assert book.execute(query, [MODELS[0]]).fetchall() == [(told["bytes"], told["why"])]


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.full), 390])
def test_the_page_of_plans_leads_to_the_question_in_the_calculator(open_page, width):
    page = open_page("plans/", width=width, height=900)
    cell = page.locator("section[aria-labelledby=users-3] td", has_text="55 tok/s").first
    expect(cell).to_contain_text("not 6")
    cell.locator("a").click()
    page.wait_for_url("**/calculator/?model=acme**")
    assert page.locator("select[name=gpu]").input_value() == "rtx-4090"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [1440, 390])
def test_published_speeds_are_told_row_by_row(open_page, width):
    """What was reported beside what is said; where nothing is said there is no number, and what a source says is text."""
    page = open_page("runs/", width=width, height=900)
    served, trained = page.locator("#served-table tbody tr"), page.locator("#trained-table tbody tr")
    expect(served).to_have_count(2)
    assert served.nth(0).locator("td.n").all_inner_texts() == ["1", "512", "100", "120", "1.20", "50 %"]
    assert served.nth(1).locator("td.n").all_inner_texts() == ["4", "512", "400", "–", "–", "50 %"]
    expect(served.nth(0)).to_contain_text("<b>a table</b>")
    expect(trained).to_contain_text("30 to 60 %")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
