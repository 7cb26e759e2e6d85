"""For test suites: a test that fails if retrieval got worse.

from ragmetrics.pytest import assert_no_drop

def test_retrieval_is_as_good_as_before():
    assert_no_drop("before.jsonl", "after.jsonl", "context_relevance", max_drop=0.05)
"""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.records import MetricChange
from ragmetrics.text import chance, clean, number, signed, signed_interval


def assert_no_drop(
    before: Any, after: Any, metric: str, max_drop: float = 0.05, **options: Any
) -> MetricChange:
    """Fail if a metric dropped from `before` to `after` by more than `max_drop`.

    Fails if the drop, or that of a segment of `by`, is above `max_drop` and significant; passes if
    the whole 95% interval of the drop is at `max_drop` or below it; skips the test as inconclusive
    otherwise, with the numbers.
    Both sides and `options` are those of `ragmetrics.compare`: logs, results of `evaluate`, tables,
    nights, builds; `judge`, `settings`, `store`, ... Returns the change. Raises what `compare`
    raises, and ValueError for a negative limit.
    """
    from ragmetrics.delivery import drop_conclusion
    from ragmetrics.pipeline import compare

    __tracebackhide__ = True
    if not max_drop >= 0:
        raise ValueError("max_drop must not be negative")
    found = compare(before, after, metrics=[metric], **options)
    change = found.metrics[0]
    if worse := found.significantly_worse(max_drop):
        lines = (f"{_numbers(one)}: more than {max_drop:g}" for one in worse)
        pytest.fail("\n".join(lines), pytrace=False)
    conclusion = drop_conclusion(change, max_drop)
    if conclusion == "inconclusive":
        pytest.skip(f"inconclusive: {_numbers(change)}; a drop of {max_drop:g} is not ruled out")
    return change


def _numbers(change: MetricChange) -> str:
    if change.difference is None or change.low is None or change.high is None:
        return f"{change.metric} is not compared: {change.reason or 'too few questions'}"
    seen = "" if change.mde is None else f"; smallest detectable drop {change.mde:.3f}"
    where = f" of {clean(str(change.segment), 80)}" if change.segment else ""
    return (
        f"{change.metric}{where} {number(change.mean_a)} -> {number(change.mean_b)}, change"
        f" {signed(change.difference)} {signed_interval(change.low, change.high)},"
        f" p {chance(change.p_adjusted)}, {change.questions:,} questions{seen}"
    )
