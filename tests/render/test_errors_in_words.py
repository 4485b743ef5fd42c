"""What the accuracy page says before its tables."""

from pipeline.render.pages import errors

NAMES = {"inference": "Inference", "lora": "LoRA"}


def row(error, phase="inference", strict="A", metric="peak"):
    return {"error": error, "phase": phase, "set": strict, "metric": metric}


def test_nine_of_ten_lie_within_what_is_told():
    rows = [row(sign * n / 100) for n, sign in zip(range(1, 21), [1, -1] * 10, strict=True)]
    assert errors.in_words(rows, NAMES, {"peak"}) == ["Inference: nine of ten within 18.0 % (20 measurements)"]


def test_what_is_uncertain_is_not_counted():
    rows = [row(0.01)] * 10 + [row(0.9, strict="B")] * 50
    assert errors.in_words(rows, NAMES, {"peak"}) == ["Inference: nine of ten within 1.0 % (10 measurements)"]


def test_what_is_counted_and_not_predicted_does_not_flatter():
    rows = [row(0.2)] * 10 + [row(0.0, metric="params_count")] * 90
    assert errors.in_words(rows, NAMES, {"peak"}) == ["Inference: nine of ten within 20.0 % (10 measurements)"]


def test_of_a_few_no_share_is_told():
    assert errors.in_words([row(-0.3, "lora")] * 3, NAMES, {"peak"}) == [
        "LoRA: too few to say, 3; the farthest off is 30.0 %"
    ]
    assert errors.in_words([], NAMES, {"peak"}) == []
