"""What a release says otherwise than the last, in words: on a terminal, and as the body of a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.base.bounds import visible
from pipeline.press.causes import WORDS

LISTED = 20


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The summary of a comparison (changes.json) as Markdown that reads well without being rendered."""
    if summary["since"] is None:
        yield "This is the first release: there is none before it to compare with."
        yield from _accepted(summary)
        return
    old, new = summary["since"], summary["until"]
    moved = summary["numbers"]
    yield f"From {old['data_version']} to {new['data_version']}: {summary['compared']:,} models in both."
    yield (
        f"{moved['changed']:,} numbers changed, {moved['moved']:,} of them by more than 1 %; "
        f"{sum(summary['verdicts'].values()):,} verdicts on one card changed."
    )
    yield from _accepted(summary)
    yield from _causes(summary["causes"])
    yield from _section("Verdicts on one card", (f"{how}: {count:,}" for how, count in summary["verdicts"].items()))
    yield from _section(
        "Models",
        (
            f"{title}: {len(summary[name]):,} ({_some(summary[name])})"
            for name, title in (
                ("added", "new"),
                ("removed", "gone"),
                ("newly_known", "newly known"),
                ("withdrawn", "withdrawn, unknown now"),
            )
            if summary[name]
        ),
    )
    yield from _section(
        "Cards",
        (
            f"{title}: {_some(summary[name])}"
            for name, title in (("added_gpus", "new"), ("removed_gpus", "gone"))
            if summary[name]
        ),
    )
    if old["schema_version"] != new["schema_version"]:
        yield from _section("Schema", [f"version {old['schema_version']} → {new['schema_version']}"])
    far = [entry for entry in summary["models"] if entry["most"]]
    rest = len(far) - LISTED
    yield from _section(
        f"Moved the farthest{f', {LISTED} of {len(far):,} models' if rest > 0 else ''}", map(_moved, far[:LISTED])
    )


def _section(title: str, rows: Iterable[str]) -> Iterator[str]:
    rows = list(rows)
    if rows:
        yield from ("", f"## {title}", "", *(f"- {row}" for row in rows))


def _causes(causes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from _section(
        "Why",
        (
            f"{WORDS[kind]}: {_many(told['models'], 'model')}, {_many(told['numbers'], 'number')} ({told['moved']:,} by more than "
            f"1 %), {_many(told['verdicts'], 'verdict')}: {_some(told['among'], 6) or 'nothing of which a fingerprint is kept'}"
            for kind, told in causes.items()
        ),
    )


def _accepted(summary: Mapping[str, Any]) -> Iterator[str]:
    if found := summary.get("accepted"):
        yield from _section("Published although a gate refused it", (visible(line) for line in found["gates"]))
        yield from ("", f"The reason: {visible(found['reason'])}")


def _moved(entry: Mapping[str, Any]) -> str:
    scenario, old, new = entry["where"]
    change = f"{100 * entry['most']:+.1f} %".replace("-", "−")
    return f"{visible(entry['model_id'])}: {scenario} {old / 2**30:.2f} → {new / 2**30:.2f} GiB ({change}), {', '.join(entry['why'])}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _some(names: list[str], most: int = LISTED) -> str:
    more = len(names) - most
    return ", ".join(visible(name) for name in names[:most]) + (f" and {more:,} more" if more > 0 else "")
