"""Rankings for the metrics that ask no judge: rows, their scores, and trec_eval's opinion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import pytrec_eval
from hypothesis import strategies as st

from ragmetrics.metrics import Metric
from ragmetrics.records import LogRow, Score

POOL = [f"d{n}" for n in range(12)]
CUT_OFFS = st.none() | st.integers(1, 15)


class Case(NamedTuple):
    """The ids retrieved, in rank order, and those of the reference contexts."""

    retrieved: list[str]
    reference: list[str]


def cases(least: int = 0) -> st.SearchStrategy[Case]:
    """Rankings without repeats, of `least` ids or more, and one reference or more."""
    retrieved = st.lists(st.sampled_from(POOL), unique=True, min_size=least)
    reference = st.lists(st.sampled_from(POOL), unique=True, min_size=1)
    return st.builds(Case, retrieved, reference)


def a_row(*contexts: str, **fields: Any) -> LogRow:
    """A row with these contexts and nothing known of the truth, unless told."""
    return LogRow(id="row-1", user_input="Who built it?", retrieved_contexts=contexts, **fields)


def by_ids(retrieved: Sequence[str], reference: Sequence[str]) -> LogRow:
    """A row that holds ids alone."""
    return a_row(retrieved_context_ids=tuple(retrieved), reference_context_ids=tuple(reference))


def play(metric: Metric, row: LogRow, **parameters: Any) -> Score:
    """The score of a row, which the metric gives without a request."""
    with pytest.raises(StopIteration) as stop:
        next(metric.with_parameters(parameters).play(row))
    return stop.value.value


def value(metric: Metric, case: Case, k: int | None = None) -> float:
    """The value of a ranking by ids."""
    found = play(metric, by_ids(*case), k=k).value
    assert found is not None
    return found


def trec(measure: str, case: Case) -> float:
    """What trec_eval says of a ranking by a measure such as `P.5`."""
    judged = {"q": {name: 1 for name in case.reference}}
    run = {"q": {name: float(-rank) for rank, name in enumerate(case.retrieved)}}
    told = pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate(run)["q"]
    return float(told[measure.replace(".", "_")])


def swapped(case: Case, upper: int) -> Case:
    """The ranking with the ids at `upper` and below it changed round."""
    ids = list(case.retrieved)
    ids[upper : upper + 2] = reversed(ids[upper : upper + 2])
    return case._replace(retrieved=ids)
