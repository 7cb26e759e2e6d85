"""Errors inside metrics: each costs its row, and the run reports them once per metric."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import ragmetrics
from ragmetrics.metrics.bundled import hit_rate
from ragmetrics.metrics.bundled._matching import Ranking
from ragmetrics.records import Score, Status
from ragmetrics.scoring.part_notes import MetricErrors
from tests.fakes.logs import make_rows


def test_an_error_costs_its_row_and_is_a_problem_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 12 rows 11 are scored; the problem names the metric, the rows, the error and its place."""
    calls = 0

    def faulty(ranking: Ranking, k: int | None) -> float:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ZeroDivisionError("no such rank")
        return 1.0

    monkeypatch.setattr(hit_rate, "_hit", faulty)
    rows = [
        {
            **row,
            "retrieved_context_ids": ["a"],
            "reference_context_ids": ["a"],
            "retrieved_contexts": ["x"],
        }
        for row in make_rows(12)
    ]
    manifest = ragmetrics.evaluate(rows, ["hit_rate"]).manifest
    assert manifest.metrics[0].status == {"scored": 11, "metric_failed": 1}
    (problem,) = manifest.problems
    assert problem.startswith("metric hit_rate failed on 1 row, first on row ")
    assert "ZeroDivisionError('no such rank') in test_run_summary_errors.py, line " in problem


def failures(names: Sequence[str]) -> MetricErrors:
    """The errors of one part."""
    errors = MetricErrors()
    for number, name in enumerate(names):
        errors.note(name, f"r-{number}", Score(None, "oops", status=Status.METRIC_FAILED))
        errors.note(name, f"s-{number}", Score(1.0))
    return errors


def test_the_errors_of_parts_add_up() -> None:
    """Parts note them; a part of an earlier version notes none."""
    whole = MetricErrors()
    for notes in (
        failures(["a", "a"]).notes(),
        failures(["b"]).notes(),
        {},
        failures(["a"]).notes(),
    ):
        whole.add(notes)
    assert whole.problems() == [
        "metric a failed on 3 rows, first on row r-0: oops",
        "metric b failed on 1 row, first on row r-0: oops",
    ]
