"""wasted_hops: hops that added nothing of use; replies played by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragmetrics.metrics.bundled._support import Support
from ragmetrics.metrics.bundled.context_recall import SUPPORT
from ragmetrics.metrics.bundled.wasted_hops import wasted_hops
from ragmetrics.records import Ask, LogRow
from tests.builders import end
from tests.fakes.rankings import a_row, play


def trace(*contexts: str, sizes: tuple[int, ...] = (1, 1, 2), **fields: Any) -> LogRow:
    """A row of several hops."""
    about = {"user_input": "q?", "reference": "She lived in Rome. It rained.", **fields}
    return replace(a_row(*contexts), hop_queries=("x",) * len(sizes), hop_sizes=sizes, **about)


def test_a_hop_is_wasted_unless_it_adds_a_context_that_supports_something() -> None:
    """The third hop retrieves again what the first had found, and one that supports nothing."""
    steps = wasted_hops.play(trace("a", "b", "a", "c"))
    data = {"question": "q?", "sentences": ["She lived in Rome.", "It rained."]}
    assert next(steps) == [Ask(SUPPORT, data | {"contexts": [new]}) for new in ("a", "b", "c")]
    score = end(steps, *(Support(supported=one) for one in ([1, 0], [0, 1], [0, 0])))
    assert (score.value, score.details) == (pytest.approx(1 / 3), {"wasted": [3]})


def test_hops_without_contexts_are_all_wasted() -> None:
    """Nothing is asked."""
    score = play(wasted_hops, trace(sizes=(0, 0)))
    assert (score.value, score.details) == (1.0, {"wasted": [1, 2]})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (a_row("a", reference="Rome."), "one retrieval"),
        (trace("a", "b", "c", "d", reference=None), "neither reference nor response"),
    ],
)
def test_what_cannot_be_judged_does_not_apply(row: LogRow, reason: str) -> None:
    """A single retrieval is no trace."""
    assert play(wasted_hops, row).reason == reason
