"""What the formulas say beside footprints, answer by answer (tests/golden/asked): no number and no branch changes without a line of these files."""

from __future__ import annotations

import pytest

from tests.golden import asked

QUESTIONS = asked.questions()
# planned for a second and more, of macros that have tests of their own: asked in `make check-full`
SLOW = (
    "answers_drawn", "data_parallel", "drafts", "edges", "fits_in", "image_tokens", "layers", "limits", "lookup", "names", "pipeline_cards", "pipeline_of", "pipeline_stages", "pipeline_training", "plans_drawn", "preference_cards", "preferences",
    "program_called", "serving_plan", "serving_plans", "several_gpus", "speculative", "speculative_cards", "speech", "speech_cards", "speed", "speed_of_all", "techniques", "together", "training_plans", "training_ways",
    "verdicts",
)  # fmt: skip


@pytest.fixture(scope="module")
def golden_models(book):
    asked.begin(book)
    yield
    book.execute("DROP TABLE golden_models")


@pytest.mark.usefixtures("golden_models")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if name in SLOW else []) for name in QUESTIONS]
)
def test_every_answer_is_the_one_of_the_file(book, name):
    changed = asked.differences(asked.read(name), asked.alone(book, QUESTIONS[name]))
    assert not changed, "\n".join(
        [
            f"{len(changed)} rows; where that is meant, `python -m tests.golden.asked {name}` writes them anew",
            *changed[:20],
        ]
    )
