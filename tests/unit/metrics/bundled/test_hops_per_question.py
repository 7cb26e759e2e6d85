"""hops_per_question: how many retrievals an answer took."""

from __future__ import annotations

import pytest

from ragmetrics.metrics.bundled.hops_per_question import hops_per_question
from tests.fakes.rankings import a_row, play


@pytest.mark.parametrize(("sizes", "hops"), [((1, 0, 1), 3), ((2,), 1), (None, 1), ((1, 9), 1)])
def test_a_row_has_the_retrievals_of_its_trace(sizes: tuple[int, ...] | None, hops: int) -> None:
    """One that is no trace, or whose sizes do not fit its contexts, has one."""
    queries = sizes and ("q",) * len(sizes)
    row = a_row("a", "b", hop_queries=queries, hop_sizes=sizes)
    assert play(hops_per_question, row).value == hops
