"""What the accuracy page says before its tables."""

from pipeline.render.pages import errors

NAMES = {"inference": "Inference", "lora": "LoRA"}


def row(error, phase="inference", strict="A"):
    return {"error": error, "phase": phase, "set": strict}


def test_nine_of_ten_lie_within_what_is_told():
    rows = [row(sign * n / 100) for n, sign in zip(range(1, 21), [1, -1] * 10, strict=True)]
    assert errors.in_words(rows, NAMES) == ["Inference: nine of ten within 18.0 % (20 measurements)"]


def test_what_is_uncertain_is_not_counted():
    rows = [row(0.01)] * 10 + [row(0.9, strict="B")] * 50
    assert errors.in_words(rows, NAMES) == ["Inference: nine of ten within 1.0 % (10 measurements)"]


def test_of_a_few_no_share_is_told():
    assert errors.in_words([row(-0.3, "lora")] * 3, NAMES) == ["LoRA: too few to say, 3; the farthest off is 30.0 %"]
    assert errors.in_words([], NAMES) == []
